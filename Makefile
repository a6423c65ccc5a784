# make demo | test | check | test-cuda | bench: what a newcomer, a developer and a machine run.
# The first two set a bare Debian or Ubuntu up by themselves.
LIB = .lib
INSTALLED = $(LIB)/installed
SOURCES := $(shell find DESCRIPTION NAMESPACE configure R src inst -type f \( -name '*.[chR]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.in' \
  -o -path 'inst/*' -o -path DESCRIPTION -o -path NAMESPACE -o -path configure \))
RUN = R_LIBS="$(CURDIR)/$(LIB)$${R_LIBS:+:$$R_LIBS}"

.PHONY: demo test check test-cuda bench install setup setup-demo setup-check document clean

demo: setup-demo $(INSTALLED)
	$(RUN) Rscript tools/demo.R

test: $(INSTALLED)
	$(RUN) sh tools/test.sh

# R CMD check with and without CUDA, sanitizers, installation trials, lintr.
check: setup-check
	sh tools/check.sh

test-cuda: $(INSTALLED)
	WEFT_TEST_CUDA=1 $(RUN) sh tools/test.sh

bench: $(INSTALLED)
	for f in inst/bench/*.R; do $(RUN) Rscript $$f || exit 1; done

# `install` always builds; the others only when a source is newer than what is installed.
install:
	rm -f $(INSTALLED)
	$(MAKE) $(INSTALLED)

$(INSTALLED): $(SOURCES)
	sh tools/setup.sh
	mkdir -p $(LIB)
	MAKEFLAGS=-j$$(getconf _NPROCESSORS_ONLN) WEFT_TESTS=yes R CMD INSTALL --preclean --no-docs --library="$(LIB)" .
	touch $(INSTALLED)

setup:
	sh tools/setup.sh

# knitr, rmarkdown and pandoc for the report, multtest for the data
setup-demo:
	sh tools/setup.sh demo

setup-check:
	sh tools/setup.sh check

document: setup
	Rscript tools/document.R

clean:
	./cleanup
	rm -rf $(LIB) demo-output weft.Rcheck
