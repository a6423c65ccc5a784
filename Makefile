# make demo | test | check | trust | test-cuda | bench: what newcomers, developers and machines run.
# The first two set up a bare Debian or Ubuntu by themselves.
LIB = .lib
INSTALLED = $(LIB)/installed
SOURCES := $(shell find DESCRIPTION NAMESPACE configure R src inst -type f \
  \( -name '*.[chR]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.in' -o -name '*.sh' \
  -o -path 'inst/*' -o -path DESCRIPTION -o -path NAMESPACE -o -path configure \))
RUN = R_LIBS="$(CURDIR)/$(LIB)$${R_LIBS:+:$$R_LIBS}"
LOG = $(CURDIR)/$(LIB)/make.log
STEP = sh tools/step.sh "$(LOG)"
COMPILING = compiling weft (minutes; with a device more, WEFT_CUDA=no leaves CUDA out)

.PHONY: demo test check trust test-cuda bench install setup setup-check document clean log

# One line per part; everything else is in the log.
demo: log
	@$(STEP) "1/4 R packages (minutes where R itself is missing)" sh tools/setup.sh demo
	@$(STEP) "2/4 $(COMPILING)" $(MAKE) $(INSTALLED)
	@$(RUN) $(STEP) "3/4 analysing leukaemia data (simulated where multtest is missing)" Rscript tools/demo.R analyse
	@$(RUN) $(STEP) "4/4 writing the report" Rscript tools/demo.R report
	@echo "report: $(CURDIR)/demo-output/gene-network.html"

test: log
	@$(STEP) "1/3 R packages (minutes where R itself is missing)" sh tools/setup.sh
	@$(STEP) "2/3 $(COMPILING)" $(MAKE) $(INSTALLED)
	@echo "3/3 tests, one line per file"
	@$(RUN) sh tools/test.sh

# R CMD check with and without CUDA, sanitizers, installation trials, lintr.
check: setup-check
	sh tools/check.sh

# The long proofs: random invalid calls, damaged models and files, interrupts, failing allocations. Under an hour.
trust: $(INSTALLED)
	@$(RUN) sh proofs/trust.sh

test-cuda: export WEFT_TEST_CUDA = 1
test-cuda: test

# Ratios to peers and lower bounds of the same run, with the errors of each; a table per system; at most 15 minutes.
# For a device: tools/bench-device.sh.
bench: $(INSTALLED)
	@$(RUN) OMP_WAIT_POLICY=passive Rscript inst/bench/peers.R --times 3 --seconds 720

log:
	@mkdir -p $(LIB)
	@: >"$(LOG)"

# In parallel, as `make -j` says or else on all processors. `install` always builds; the others only when a source is
# newer than what is installed.
install:
	rm -f $(INSTALLED)
	$(MAKE) $(INSTALLED)

$(INSTALLED): $(SOURCES)
	sh tools/setup.sh
	mkdir -p $(LIB)
	jobs=$$(echo " $$MAKEFLAGS" | grep -o -e ' -j[0-9]*' | head -n 1); \
	MAKEFLAGS=$${jobs:--j$$(getconf _NPROCESSORS_ONLN)} WEFT_TESTS=yes \
	  R CMD INSTALL --preclean --no-docs --library="$(LIB)" .
	touch $(INSTALLED)

setup:
	sh tools/setup.sh

setup-check:
	sh tools/setup.sh check

document: setup
	Rscript tools/document.R

clean:
	./cleanup
	rm -rf $(LIB) demo-output weft.Rcheck
