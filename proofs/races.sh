#!/bin/sh
# ThreadSanitizer on random valid calls with several threads, on larger ones (proofs/threads.R), and on one of each
# function and method (proofs/valid.R). weft is built by clang with LLVM's OpenMP, about which Archer tells the
# sanitizer what waits for what; R and its BLAS are not instrumented, and accesses in them are ignored. In this build no
# work is too little for several threads, or random calls would wake hardly any, and each thread has a fixed share of
# every loop, or the first would do all of a short one before others begin. Parallel regions that had one thread alone,
# and so show no race, are listed at the end.
# Needs clang and libomp-dev (with libarcher.so).
# Usage: proofs/races.sh [calls, default 3000] [library to build into, or that has been built]
# Exit status 1 if there is a race, or a call whose result differs from that of one thread.
#
# proofs/races.supp lists what is not a race, and why.
set -u
cd "$(dirname "$0")/.." || exit 1
calls=${1:-3000}; made=; lib=${2:-}
[ -n "$lib" ] || { lib=$(mktemp -d); made=$lib; }
mkdir -p "$lib"; lib=$(cd "$lib" && pwd)
command -v clang >/dev/null || { echo "no clang: nothing was tried"; exit 0; }
beside=$(dirname "$(clang -print-file-name=libomp.so)")
archer=$(ls "$beside"/libarcher.so /usr/lib/llvm-*/lib/libarcher.so 2>/dev/null | head -n 1)
[ -n "$archer" ] || { echo "no libarcher: nothing was tried"; exit 0; }
R_HOME=$(R RHOME); export R_HOME
# -rdynamic, with OpenMP behind it: what weft asks OpenMP for goes by races.c
clang -g -O1 -fsanitize=thread -fopenmp proofs/races.c $(R CMD config --cppflags) -L"$R_HOME/lib" \
  -Wl,-rpath,"$R_HOME/lib" -lR -rdynamic -Wl,--no-as-needed -o "$lib/R" || exit 1
TSAN_OPTIONS="ignore_noninstrumented_modules=1:suppressions=$PWD/proofs/races.supp:log_path=$lib/report:exitcode=0"
symbolizer=$(ls /usr/lib/llvm-*/bin/llvm-symbolizer 2>/dev/null | head -n 1)
[ -z "$symbolizer" ] || TSAN_OPTIONS=$TSAN_OPTIONS:external_symbolizer_path=$symbolizer
R_LIBS=$lib${R_LIBS:+:$R_LIBS} OMP_TOOL_LIBRARIES=$archer OMP_NUM_THREADS=4 OMP_THREAD_LIMIT=8
export TSAN_OPTIONS R_LIBS OMP_TOOL_LIBRARIES OMP_NUM_THREADS OMP_THREAD_LIMIT
if [ ! -d "$lib/weft/libs" ]; then
  # a copy, so that objects of the usual build stay as they are
  mkdir -p "$lib/source" && tar cf - --exclude=.git --exclude=.lib --exclude='*.o' --exclude='*.so' . |
    tar xf - -C "$lib/source"
  printf 'CC = clang\nCFLAGS = -g -O1 %s\nLDFLAGS = %s -fopenmp\nSHLIB_OPENMP_CFLAGS = -fopenmp\n' \
    '-fsanitize=thread -DWEFT_WORTH_THREADS=1 -Ddynamic=static -Dguided=static' -fsanitize=thread >"$lib/flags.mk"
  # configure runs what it compiles to see whether there is OpenMP: under the same options as all else here
  WEFT_CUDA=no WEFT_MPI=no WEFT_TESTS=yes R_MAKEVARS_USER=$lib/flags.mk \
    setarch "$(uname -m)" -R R CMD INSTALL --no-docs --no-test-load --library="$lib" "$lib/source" \
    >"$lib/install.log" 2>&1 || { tail "$lib/install.log"; exit 1; }
fi
rm -f "$lib"/report.* "$lib/regions"
seed=${SEED:-$(($(date +%s) % 100000000))}
for name in SHARE INCLUDE DOC; do
  value=$(R --no-echo -e "cat(R.home(tolower('$name')))"); eval "R_${name}_DIR=$value; export R_${name}_DIR"
done
# the sanitizer wants addresses where it expects them
watched() { setarch "$(uname -m)" -R "$lib/R" --no-echo --no-save --no-restore -f "$@"; }
races_of() { cat "$lib"/report.* 2>/dev/null | grep -c '^WARNING: ThreadSanitizer'; }
clang -fPIC -shared -g -O1 -fsanitize=thread -fopenmp proofs/races-control.c -o "$lib/control.so" || exit 1
for name in waiting racing; do
  echo "dyn.load('$lib/control.so'); invisible(.C('$name', 0L))" >"$lib/control.R"
  watched "$lib/control.R" >/dev/null 2>&1
  case "$name $(races_of)" in
    "waiting 0" | "racing "[1-9]*) ;;
    *) echo "the sanitizer does not tell a race from none: $name, $(races_of) reports"; exit 1 ;;
  esac
done
rm -f "$lib"/report.*
echo "if (is.na(.Call(weft:::C_weft_openmp))) quit(status = 1)" >"$lib/control.R"
watched "$lib/control.R" >/dev/null 2>&1 || { echo "weft was built without OpenMP: $lib/install.log"; exit 1; }
WEFT_REGIONS=$lib/regions; export WEFT_REGIONS
watched proofs/backends.R --args --against threads \
  --share "$seed/$((seed + calls - 1))/1" --counts "$lib/counts" >"$lib/calls.log" 2>&1
status=$?
grep -q DIFFERENT "$lib/calls.log" && status=1
watched proofs/threads.R >"$lib/threads.log" 2>&1 || status=1
watched proofs/valid.R >"$lib/valid.log" 2>&1 || status=1
races=$(races_of)
tail -n 3 "$lib/calls.log"
cat "$lib/threads.log" "$lib/valid.log"
cat "$lib"/report.* 2>/dev/null | grep '^SUMMARY' | sort | uniq -c | sort -rn | head -n 20
(cd src && grep -rnE 'WEFT_PARALLEL(_FOR)?\(' --include='*.c' . | sed 's,^\./,,; s/\(:[0-9]*\):.*/\1/') |
  sort -u >"$lib/all-regions"
sort -u "$lib/regions" | comm -23 "$lib/all-regions" - >"$lib/alone"
echo "$(comm -23 "$lib/all-regions" "$lib/alone" | wc -l) parallel regions had several threads, these never:" \
  $(cat "$lib/alone")
echo "$calls calls from seed $seed on with two threads and one, status $status, $races races"
[ "$status" = 0 ] && [ "$races" = 0 ] || { echo "reports: $lib/report.*"; exit 1; }
[ -z "$made" ] || rm -r "$made"
