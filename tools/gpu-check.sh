#!/bin/sh
# On a machine with a device: the tests with WEFT_TEST_CUDA=1, random calls on both back ends, and the table of
# operations under compute-sanitizer. Expects weft and testthat in R_LIBS. Usage: tools/gpu-check.sh [tests calls
# memcheck racecheck initcheck]
set -u
LOGS=${LOGS:-$(mktemp -d)}; export LOGS
parts=${*:-tests calls memcheck racecheck initcheck}
rooms="draws|pack|generator mi_|transfer pair_scan pca bn|sums kernel irm regulation"
shares=16 # of a room under racecheck, the slowest of the tools, and 4 under others: each in a process of its own
failed=0

# R's front end is a shell script; the sanitizer wants the program itself.
R_HOME=$(R RHOME); export R_HOME
: "${R_SHARE_DIR:=$(R --no-echo -e 'cat(R.home("share"))')}"
: "${R_INCLUDE_DIR:=$(R --no-echo -e 'cat(R.home("include"))')}"
: "${R_DOC_DIR:=$(R --no-echo -e 'cat(R.home("doc"))')}"
export R_SHARE_DIR R_INCLUDE_DIR R_DOC_DIR

# Racecheck follows every access to shared memory: it is limited to our kernels, without those of libraries.
# (By mangled name: its length and itself.)
OUR_KERNELS=$(find src -name '*.cu*' -exec cat {} + | tr '\n' ' ' | grep -oE '__global__[^{;]*' |
  sed -E 's/__(launch_bounds|cluster_dims)__\([^)]*\)//g; s/\(.*//; s/ *$//; s/.* //' | sort -u |
  awk '{ printf "--kernel-name kns=%d%s ", length($1), $1 }')
export OUR_KERNELS

one() { # one racecheck pca 2/6
  log="$LOGS/$1-$(echo "$2$3" | tr -c 'a-z0-9\n' '_').log"
  only= operations="^($2)"
  # the tools themselves fail within R at clusters of blocks ("gs") and at cuBLAS's products of halves ("loose",
  # "many columns");
  # alone() checks these
  [ "$1 $2" = "initcheck pca" ] && operations="^pca, ([^g]|gs|gram(, filtered)?$)"
  if [ "$1" = racecheck ]; then
    only=$OUR_KERNELS
    [ "$2" = pca ] && operations="^pca, ([^g]|gram(, filtered)?$)"
  fi
  # the tools see errors at the ends of blocks only where each is the driver's own
  WEFT_DEVICE_KEEP=no WEFT_OPERATIONS=$operations WEFT_SHARE=$3 OMP_NUM_THREADS=2 \
    LD_LIBRARY_PATH=$R_HOME/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
    compute-sanitizer --tool "$1" $only --error-exitcode 9 "$R_HOME/bin/exec/R" --no-save --no-restore --no-echo \
    -f tools/gpu-operations.R > "$log" 2>&1
  status=$?
  echo "$1 $2 $3: exit $status: $(grep SUMMARY "$log")"
  [ $status = 0 ] || { tail -40 "$log"; return 1; }
}

alone() { # alone racecheck: kernels of principal components outside R
  nvcc -O2 -arch=native -lineinfo -I src -o "$LOGS/race-pca" tools/race-pca.cu || return 1
  for shape in "301 203" "1000 3001"; do
    compute-sanitizer --tool "$1" --error-exitcode 9 "$LOGS/race-pca" $shape > "$LOGS/race-pca.log" 2>&1
    status=$?
    echo "$1 pca alone, $shape: exit $status: $(grep SUMMARY "$LOGS/race-pca.log")"
    [ $status = 0 ] || { tail -40 "$LOGS/race-pca.log"; return 1; }
  done
}

if [ "${1:-}" = one ]; then one "$2" "$3" "${4:-1/1}"; exit; fi
for part in $parts; do
  if [ "$part" = tests ]; then WEFT_TEST_CUDA=1 OMP_NUM_THREADS=4 sh tools/test.sh || failed=1
  elif [ "$part" = calls ]; then
    OMP_NUM_THREADS=2 Rscript proofs/backends.R --jobs "$(($(getconf _NPROCESSORS_ONLN) / 2))" || failed=1
  else
    of=4; [ "$part" = racecheck ] && of=$shares
    for share in $(seq "$of"); do for room in $rooms; do echo "$part $room $share/$of"; done; done |
      xargs -P "$((($(getconf _NPROCESSORS_ONLN) + 1) / 2))" -L 1 sh "$0" one || failed=1
  fi
  case $part in racecheck | initcheck) alone "$part" || failed=1 ;; esac
done
exit $failed
