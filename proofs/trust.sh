#!/bin/sh
# The long proofs, one line each: what was done, and what was found. `make trust` runs all of them, in under an hour on
# two processors; the soak of an hour is a command of its own (proofs/soak.R).
# Usage: proofs/trust.sh [name ...]     names as below; expects weft and testthat in R_LIBS
set -u
cd "$(dirname "$0")/.." || exit 1
CORES=$(getconf _NPROCESSORS_ONLN); JOBS=$(((CORES + 1) / 2))
OMP_WAIT_POLICY=${OMP_WAIT_POLICY-passive} MC_CORES=$JOBS; export OMP_WAIT_POLICY MC_CORES
ulimit -c 0
long() { file=$1; shift; Rscript "proofs/$file.R" "$@"; }

# The longest first. What may take longer than it should is bounded, and reports how far it came.
all='models invalid protection memory interrupts parsers plain soak arguments stores threads files paths counts variants
 ranks'
prove() {
  case $1 in
    invalid)    long fuzz --calls "${TRUST_CALLS:-100000}" --jobs "$JOBS" --seconds 2400 ;; # random invalid calls
    models)     long damaged ;;                                                # every part of what is saved, spoilt
    arguments)  long errors ;;                                                 # every argument wrong in every way
    threads)    long backends --against threads --calls 4000 --jobs "$JOBS" ;; # random valid calls: the same bits
    variants)   long backends --against variants --calls 2000 --jobs "$JOBS" ;;
    plain)      long plain --calls 5000 --seconds 600 ;;                       # random calls against plain R code
    stores)     long store-damage ;;                                           # stores and their sources, byte by byte
    files)      long store-files 2000 ;;                                       # files that are imported, byte by byte
    paths)      long files ;;                                                  # pipes, devices, full disks, kills
    protection) long native --jobs "$JOBS" --seconds 600 ;;                    # R's memory collected in native code
    memory)     env WEFT_EVERY_ALLOCATION=1 sh tools/test.sh memory ;;         # each allocation fails
    ranks)      sh tools/test.sh ranks ranks-apart ;;                          # that err, lag, disagree, are killed
    parsers)    sh proofs/parsers.sh --seconds 60 ;;                        # libFuzzer, where there is clang
    counts)     long instructions ;;                                           # instructions, where there is valgrind
    interrupts) long interrupts --count 1000 --seconds 600 ;;                  # at random moments
    soak)       long soak --seconds 300 ;;
    *)          echo "there is no proof $1"; return 2 ;;
  esac
}

# Runs one; its last line is what it found. Seconds of the processor, of all its processes that have ended, say more
# than the clock on a busy machine.
if [ "${1-}" = --one ]; then
  from=$(date +%s); state=ok
  prove "$2" >"$TRUST_LOGS/$2" 2>&1 || { state=FAIL; : >"$TRUST_LOGS/failed"; }
  times >"$TRUST_LOGS/$2.times" # not in a subshell, which has had none
  used=$(awk 'NR == 2 { for (k = 1; k <= 2; k++) { split($k, at, "m"); all += 60 * at[1] + at[2] }
    printf "%.0f", all }' "$TRUST_LOGS/$2.times")
  printf '%-5s %-12s %4d s, processor %5d s  %s\n' $state "$2" $(($(date +%s) - from)) "$used" \
    "$(grep . "$TRUST_LOGS/$2" | tail -n 1)"
  [ $state = ok ] || tail -n 40 "$TRUST_LOGS/$2"
  exit
fi

# Two at once, each with half of the processors, since many proofs are one process.
TRUST_LOGS=$(mktemp -d); export TRUST_LOGS
began=$(date +%s)
printf 'weft %s, %s, %s\n' "$(git rev-parse --short HEAD 2>/dev/null)" "$(uname -m)" "$(date -u '+%-d %B %Y')"
printf '%s\n' ${*:-$all} | xargs -P 2 -n 1 sh "proofs/$(basename "$0")" --one
failed=$([ -e "$TRUST_LOGS/failed" ] && echo 1 || echo 0)
printf '%d minutes, status %d\n' $((($(date +%s) - began) / 60)) "$failed"
[ "$failed" = 0 ] && rm -r "$TRUST_LOGS" || echo "Logs: $TRUST_LOGS"
exit "$failed"
