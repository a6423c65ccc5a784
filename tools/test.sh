#!/bin/sh
# Runs the tests in as many processes at once as there are processors, long files by themselves and short ones in sixes,
# since a process takes a second to begin; ends with one line of counts. Expects weft and testthat in R_LIBS.
# Usage: tools/test.sh [name of a file ...]
set -u
cd "$(dirname "$0")/.." || exit 1
if [ "${1-}" = --some ]; then # names with commas between them
  log=$TEST_LOGS/$2.log
  Rscript tools/test-and-count.R "$2" >"$log" 2>&1 ||
    { failed=$?; grep -v '^[a-z0-9-]*  *[0-9]* passed, ' "$log"; }
  for name in $(echo "$2" | tr , ' '); do
    grep -q "^$name  *[0-9]* passed, " "$log" || echo "$name 0 passed, 1 failed (ended early), 0 skipped" >>"$log"
    grep -a "^$name  *[0-9]* passed, " "$log"
  done
  exit "${failed-0}"
fi
TEST_LOGS=$(mktemp -d)
OMP_WAIT_POLICY=${OMP_WAIT_POLICY-passive} # threads of several processes share the processors
export TEST_LOGS OMP_WAIT_POLICY
failed=0
run() { # run PROCESSES NAME[,NAME ...] ...: the longest files are named first
  at_once=$1; shift
  printf '%s\n' "$@" | xargs -P "$at_once" -n 1 sh "tools/$(basename "$0")" --some || failed=1
}
if [ $# -gt 0 ]; then run "$(getconf _NPROCESSORS_ONLN)" "$@"
else
  longest='ranks-apart ranks memory irm irm-saved workflow report-parts report kernel-sum calls damaged regulation
    workflow-damaged store-damage mi-rank plink-file mi-damage mi-select'
  # the packages of Bioconductor take five seconds to load: those that use them share two processes
  heavy='store,store-use,store-hdf5,source,capabilities,errors
    pca,irm-real,workflow-batch,workflow-interop,workflow-symbols'
  last=
  if [ -n "${WEFT_TEST_CUDA-}" ]; then last=memory; fi # it looks at how much memory of the device is free
  others=$(ls tests/testthat | sed -n 's/^test-\(.*\)\.R$/\1/p' |
    grep -vxF "$(printf '%s\n' $longest $heavy | tr , '\n')" | paste -d, - - - - - - | sed 's/,*$//')
  run "$(getconf _NPROCESSORS_ONLN)" $(printf '%s\n' $heavy $longest | grep -vxF "${last:-none}") $others
  [ -z "$last" ] || run 1 $last
fi
# what failed, once more before the counts: of a long output often the last lines alone are kept
grep -ahE -C 10 '^[^ ]+ (Failure|Error) \(|passed, [1-9][0-9]* failed' "$TEST_LOGS"/*.log | tail -n 60
cat "$TEST_LOGS"/*.log | grep -aE '^[a-z0-9-]+ +[0-9]+ passed, ' |
  awk '{ passed += $2; failed += $4; skipped += /early/ ? 0 : $6 }
    END { printf "\n%d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed > 0 }' || failed=1
rm -r "$TEST_LOGS"
exit $failed
