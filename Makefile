# make demo | test | check | test-cuda | bench: what a newcomer, a developer and a machine run.
# The first two set a bare Debian or Ubuntu up by themselves.
LIB = .lib
RUN = R_LIBS="$(CURDIR)/$(LIB)$${R_LIBS:+:$$R_LIBS}"

.PHONY: demo test check test-cuda bench install setup setup-demo setup-check document clean

demo: setup-demo install
	$(RUN) Rscript tools/demo.R

test: install
	$(RUN) Rscript tools/test-and-count.R

# R CMD check with and without CUDA, sanitizers, installation trials, lintr.
check: setup-check
	sh tools/check.sh

test-cuda: install
	WEFT_TEST_CUDA=1 $(RUN) Rscript tools/test-and-count.R

bench: install
	for f in inst/bench/*.R; do $(RUN) Rscript $$f || exit 1; done

install: setup
	mkdir -p $(LIB)
	R CMD INSTALL --preclean --no-docs --library="$(LIB)" .

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
