#!/bin/sh
# ThreadSanitizer on random valid calls with several threads. weft is built by clang with LLVM's OpenMP, of which Archer
# tells the sanitizer what waits for what; R and its BLAS are not instrumented, and accesses in them are left out.
# Needs clang and libomp-dev (with libarcher.so). Usage: longtests/races.sh [calls, default 3000] [library to build into,
# or that has been built]
# Exit status 1 if there is a race, or a call that gives something else than one thread does.
#
# longtests/races.supp says what is no race, and why.
set -u
cd "$(dirname "$0")/.." || exit 1
calls=${1:-3000}; made=; lib=${2:-}
[ -n "$lib" ] || { lib=$(mktemp -d); made=$lib; }
mkdir -p "$lib"; lib=$(cd "$lib" && pwd)
command -v clang >/dev/null || { echo "no clang: nothing was tried"; exit 0; }
run_time=$(clang -print-file-name=libclang_rt.tsan-"$(uname -m)".so)
archer=$(ls "$(dirname "$(clang -print-file-name=libomp.so)")"/libarcher.so /usr/lib/llvm-*/lib/libarcher.so 2>/dev/null |
  head -n 1)
[ -e "$run_time" ] && [ -n "$archer" ] || { echo "no libclang_rt.tsan or no libarcher: nothing was tried"; exit 0; }
if [ ! -d "$lib/weft/libs" ]; then
  # a copy, so that objects of the usual build stay as they are
  mkdir -p "$lib/source" && tar cf - --exclude=.git --exclude=.lib --exclude='*.o' --exclude='*.so' . |
    tar xf - -C "$lib/source"
  printf 'CC = clang\nCFLAGS = -g -O1 -fsanitize=thread -shared-libsan\nLDFLAGS = %s\nSHLIB_OPENMP_CFLAGS = -fopenmp\n' \
    "-fsanitize=thread -shared-libsan -fopenmp" >"$lib/flags.mk"
  WEFT_CUDA=no WEFT_MPI=no WEFT_TESTS=yes R_MAKEVARS_USER=$lib/flags.mk \
    R CMD INSTALL --no-docs --no-test-load --library="$lib" "$lib/source" >"$lib/install.log" 2>&1 ||
    { tail "$lib/install.log"; exit 1; }
fi
TSAN_OPTIONS="ignore_noninstrumented_modules=1:suppressions=$PWD/longtests/races.supp:log_path=$lib/report:exitcode=0"
R_LIBS=$lib${R_LIBS:+:$R_LIBS} OMP_TOOL_LIBRARIES=$archer OMP_NUM_THREADS=4 OMP_THREAD_LIMIT=8
export TSAN_OPTIONS R_LIBS OMP_TOOL_LIBRARIES OMP_NUM_THREADS OMP_THREAD_LIMIT
rm -f "$lib"/report.*
# the sanitizer wants addresses where it expects them
setarch "$(uname -m)" -R env LD_PRELOAD="$run_time" Rscript longtests/backends.R --against threads --calls "$calls" \
  >"$lib/calls.log" 2>&1
status=$?
races=$(cat "$lib"/report.* 2>/dev/null | grep -c '^WARNING: ThreadSanitizer')
tail -n 1 "$lib/calls.log"
cat "$lib"/report.* 2>/dev/null | grep '^SUMMARY' | sort | uniq -c | sort -rn | head -n 20
echo "$calls calls with two threads and one, status $status, $races races"
[ "$status" = 0 ] && [ "$races" = 0 ] || { echo "reports: $lib/report.*"; exit 1; }
[ -z "$made" ] || rm -r "$made"
