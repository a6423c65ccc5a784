#!/bin/sh
# Installs weft with the address and undefined-behaviour sanitizers and warnings, without CUDA and MPI, and runs a
# command with it. The compiler's output stays beside the library, in LIBRARY.log. A folder is built from a copy, so that
# no object that needs the sanitizers is left in it.
# Usage: tools/sanitized.sh LIBRARY SOURCE [COMMAND ...]     SOURCE: a source package or its folder
set -eu
lib=$1; source=$2; shift 2
mkdir -p "$lib"; lib=$(cd "$lib" && pwd)
if [ ! -d "$lib/weft" ]; then
  printf 'CFLAGS = -g -O1 -Wall -Wextra -Wno-cast-function-type %s\nLDFLAGS = %s\n' \
    '-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer' \
    '-fsanitize=address,undefined' >"$lib.mk"
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' EXIT
  if [ -d "$source" ]; then
    source=$(cd "$source" && pwd)
    (cd "$copy" && R CMD build --no-build-vignettes --no-manual "$source" >"$lib.log" 2>&1)
    source=$(ls "$copy"/weft_*.tar.gz)
  fi
  WEFT_CUDA=no WEFT_MPI=no WEFT_DEBUG=1 WEFT_TESTS=yes R_MAKEVARS_USER=$lib.mk \
    R CMD INSTALL --preclean --no-docs --no-test-load --library="$lib" "$source" >"$lib.log" 2>&1
  rm -rf "$copy"
fi
[ $# -gt 0 ] || exit 0
# gcc puts vectors of 64 bytes into stack frames that libasan aligns to 32 where it looks for use after return
ASAN_OPTIONS=detect_stack_use_after_return=0:detect_leaks=0:allocator_may_return_null=1:handle_segv=2:handle_abort=2
LD_PRELOAD=$(gcc -print-file-name=libasan.so) R_LIBS=$lib${R_LIBS:+:$R_LIBS}
export ASAN_OPTIONS LD_PRELOAD R_LIBS
exec "$@"
