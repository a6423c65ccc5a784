#!/bin/sh
# The long proofs, one line each: what was done, and what was found. `make trust` runs all of them, in under an hour on
# two processors; the soak of an hour is a command of its own (longtests/soak.R).
# Usage: longtests/trust.sh [name ...]     names as below; expects weft and testthat in R_LIBS
set -u
cd "$(dirname "$0")/.." || exit 1
CORES=$(getconf _NPROCESSORS_ONLN); JOBS=$(((CORES + 1) / 2)); logs=$(mktemp -d); asked=${*:-}
OMP_WAIT_POLICY=${OMP_WAIT_POLICY-passive}; MC_CORES=$JOBS; export OMP_WAIT_POLICY MC_CORES
ulimit -c 0
processor() { # used: seconds of all processes that have ended, which say more than the clock on a busy machine
  times >"$logs/times-$lane" # not in a subshell, which has had none
  used=$(awk 'NR == 2 { for (k = 1; k <= 2; k++) { split($k, at, "m"); all += 60 * at[1] + at[2] }
    printf "%.0f", all }' "$logs/times-$lane")
}
proof() { # proof NAME COMMAND ...: its last line is what it found
  name=$1; shift
  [ -z "$asked" ] || case " $asked " in *" $name "*) ;; *) return ;; esac
  from=$(date +%s); processor; before=$used
  if "$@" >"$logs/$name" 2>&1; then state=ok; else state=FAIL; : >"$logs/failed"; fi
  processor
  printf '%-5s %-12s %4d s, processor %5d s  %s\n' $state "$name" $(($(date +%s) - from)) $((used - before)) \
    "$(grep . "$logs/$name" | tail -n 1)"
  [ $state = ok ] || tail -n 40 "$logs/$name"
}
long() { file=$1; shift; Rscript "longtests/$file.R" "$@"; }

# Two lanes at once, each with half of the processors, since many proofs are one process. What may take longer than it
# should is bounded, and reports how far it came.
calls_lane() {
  lane=calls
  proof invalid    long fuzz --calls "${TRUST_CALLS:-100000}" --jobs "$JOBS" --seconds 2400 # random invalid calls
  proof models     long damaged                                                # every part of what is saved, spoilt
}
other_lane() {
  lane=other
  proof arguments  long errors                                                 # every argument wrong in every way
  proof threads    long backends --against threads --calls 4000 --jobs "$JOBS" # random valid calls: the same bits
  proof variants   long backends --against variants --calls 2000 --jobs "$JOBS"
  proof stores     long store-damage                                           # stores and their sources, byte by byte
  proof files      long store-files 2000                                       # files that are imported, byte by byte
  proof protection long native --jobs "$JOBS" --seconds 600                    # R's memory collected in native code
  proof memory     env WEFT_EVERY_ALLOCATION=1 sh tools/test.sh memory         # each allocation fails
  proof ranks      sh tools/test.sh ranks ranks-apart                          # that err, lag, disagree, are killed
  proof parsers    sh longtests/parsers.sh --seconds 60                        # libFuzzer, where there is clang
  proof counts     long instructions                                           # instructions, where there is valgrind
  proof interrupts long interrupts --count 1000 --seconds 600                  # at random moments
  proof soak       long soak --seconds 300
}

began=$(date +%s)
printf 'weft %s, %s, %s\n' "$(git rev-parse --short HEAD 2>/dev/null)" "$(uname -m)" "$(date -u '+%-d %B %Y')"
calls_lane &
other_lane &
wait
failed=$([ -e "$logs/failed" ] && echo 1 || echo 0)
printf '%d minutes, status %d\n' $((($(date +%s) - began) / 60)) "$failed"
[ "$failed" = 0 ] && rm -r "$logs" || echo "Logs: $logs"
exit "$failed"
