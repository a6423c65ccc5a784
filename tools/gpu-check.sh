#!/bin/sh
# On a machine with a device: the whole suite with WEFT_TEST_CUDA=1, and the table of operations under compute-sanitizer.
# Expects weft and testthat in R_LIBS. Usage: tools/gpu-check.sh [memcheck racecheck initcheck]
set -u
tools=${*:-memcheck racecheck initcheck}
failed=0
WEFT_TEST_CUDA=1 Rscript -e 'testthat::test_local(".", load_package = "installed", reporter = "check")' || failed=1

# R's front end is a shell script; the sanitizer wants the program itself.
home=$(R RHOME)
R_HOME=$home; export R_HOME
: "${R_SHARE_DIR:=$(R --no-echo -e 'cat(R.home("share"))')}" "${R_INCLUDE_DIR:=$(R --no-echo -e 'cat(R.home("include"))')}"
: "${R_DOC_DIR:=$(R --no-echo -e 'cat(R.home("doc"))')}"
export R_SHARE_DIR R_INCLUDE_DIR R_DOC_DIR
for tool in $tools; do
  LD_LIBRARY_PATH=$home/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
    compute-sanitizer --tool "$tool" --error-exitcode 9 "$home/bin/exec/R" --no-save --no-restore --no-echo \
    -f tools/gpu-operations.R > "${TMPDIR:-/tmp}/sanitize-$tool.log" 2>&1
  status=$?
  echo "$tool: exit $status: $(grep 'ERROR SUMMARY' "${TMPDIR:-/tmp}/sanitize-$tool.log")"
  [ $status = 0 ] || { failed=1; tail -40 "${TMPDIR:-/tmp}/sanitize-$tool.log"; }
done
exit $failed
