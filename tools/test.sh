#!/bin/sh
# Runs the tests, every file in a process of its own and as many at once as there are processors, and closes with one
# line of counts. Expects weft and testthat in R_LIBS. Usage: tools/test.sh [name of a file ...]
set -u
cd "$(dirname "$0")/.." || exit 1
if [ "${1-}" = --one ]; then
  Rscript tools/test-and-count.R "^$2\$" >"$TEST_LOGS/$2.log" 2>&1 || { failed=$?; cat "$TEST_LOGS/$2.log"; }
  tail -n 1 "$TEST_LOGS/$2.log" | grep -q ' passed, ' ||
    echo '0 passed, 1 failed (ended early), 0 skipped' >>"$TEST_LOGS/$2.log"
  printf '%-20s %s\n' "$2" "$(tail -n 1 "$TEST_LOGS/$2.log")"
  exit "${failed-0}"
fi
TEST_LOGS=$(mktemp -d)
OMP_WAIT_POLICY=${OMP_WAIT_POLICY-passive} # threads of several processes share the processors
export TEST_LOGS OMP_WAIT_POLICY
failed=0
run() { # run PROCESSES NAME ...: the longest files are named first
  at_once=$1; shift
  printf '%s\n' "$@" | xargs -P "$at_once" -n 1 sh "tools/$(basename "$0")" --one || failed=1
}
if [ $# -gt 0 ]; then run "$(getconf _NPROCESSORS_ONLN)" "$@"
else
  longest='ranks ranks-apart workflow report memory irm-saved irm report-parts kernel-sum pca workflow-damaged'
  longest="$longest mi-damage"
  last=
  if [ -n "${WEFT_TEST_CUDA-}" ]; then last=memory; fi # it looks at how much memory of the device is free
  others=$(ls tests/testthat | sed -n 's/^test-\(.*\)\.R$/\1/p' | grep -vxF "$(printf '%s\n' $longest)")
  run "$(getconf _NPROCESSORS_ONLN)" $(printf '%s\n' $longest | grep -vxF "${last:-none}") $others
  [ -z "$last" ] || run 1 $last
fi
cat "$TEST_LOGS"/*.log | grep -E '^[0-9]+ passed, ' |
  awk '{ passed += $1; failed += $3; skipped += /early/ ? 0 : $5 }
    END { printf "\n%d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed > 0 }' || failed=1
rm -r "$TEST_LOGS"
exit $failed
