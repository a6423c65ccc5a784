#!/bin/sh
# libFuzzer on what reads files from elsewhere: stores, Matrix Market text, bag-of-words text, PLINK's files,
# checkpoints and compressed pieces of Zarr folders (the harnesses are in proofs/parsers), under the address and
# undefined-behaviour sanitizers.
# Needs clang, and R as a shared library.
# Usage: proofs/parsers.sh [--seconds 60] [name ...]     exit status 1 if any input was a finding,
# which stays in the folder that is then named.
set -u
cd "$(dirname "$0")/.." || exit 1
seconds=60
if [ "${1-}" = --seconds ]; then seconds=$2; shift 2; fi
asked=${*:-store market words plink checkpoint codecs}
command -v clang >/dev/null || { echo "no clang: nothing was tried"; exit 0; }
w=$(mktemp -d); failed=0
R_HOME=$(R RHOME); export R_HOME
flags="-I src -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -fno-sanitize=function
  -Wall -Wextra -Wno-unused-variable"
with_r="$(R CMD config --cppflags) -L$R_HOME/lib -Wl,-rpath,$R_HOME/lib -lR"
core="src/core/call/arena.c src/core/call/context.c src/core/data/file.c"
store=$(find src/store -name '*.c' ! -path '*/r/*')
sources() { # what is linked beside the harness
  case $1 in
    store | market) echo "$core src/core/call/simd.c $store" ;;
    codecs) echo "-DWEFT_ZLIB -DWEFT_ZSTD $core src/core/call/simd.c $store -lz -lzstd" ;;
    words) echo "src/irm/cpu/input/parse_counts.c" ;;
    plink) echo "$core src/core/data/bits*.c src/core/call/simd.c src/mi/pack/cpu/plink.c src/mi/r/plink.c $with_r" ;;
    checkpoint) echo "src/irm/r/saved.c $with_r" ;;
    *) echo "there is no parser $1" >&2; exit 2 ;;
  esac
}
# Seeds of the corpus: valid files of each kind.
Rscript - "$w" <<'END' >"$w/seeds.log" 2>&1 || { cat "$w/seeds.log"; exit 1; }
suppressPackageStartupMessages(library(weft))
at <- function(kind, name) { dir.create(file.path(w, kind), FALSE); file.path(w, kind, name) }
w <- commandArgs(TRUE)[1L]
set.seed(1)
m <- matrix(stats::rpois(60, 0.5), 12, dimnames = list(NULL, letters[1:5]))
for (k in 1:4) weft_import(list(m, m / 3, m[, 1, drop = FALSE], m * 0)[[k]], at("store", k))
if (file.exists("tests/testthat/store-version-1.weft")) {
  invisible(file.copy("tests/testthat/store-version-1.weft", at("store", "version-1")))
}
writeLines(c(" %%MatrixMarket matrix coordinate real general", "% c", "5 4 2", "1 1 2.5", "5 4 1e-3"), at("market", 1))
writeLines(c(" %%MatrixMarket matrix array integer skew-symmetric", "3 3", "1", "2", "3"), at("market", 2))
writeLines(c("!%%MatrixMarket matrix coordinate pattern symmetric", "5 5 2", "2 1", "5 5"), at("market", 3))
writeLines(c("2", "3", "3", "1 1 2", "1 3 1", "2 2 7"), at("words", 1))
writeBin(as.raw(c(1, 4, 2, 1, 0x6c, 0x1b, 0x01, 0xdc, 0x0f, 0xff)), at("plink", "bed"))
writeBin(charToRaw("01 rs1 0 100 A G\n1 rs2 0\t200 C T\n\n"), at("plink", "bim"))
irm(irm_sample(6, 5, k = 2, seed = 1)$A, chains = 1, sweeps = 2, seed = 1, run = weft_run(progress = FALSE),
    control = list(checkpoint = at("checkpoint", 1)))
for (k in 2:3) writeBin(serialize(list(a = 1:3, b = c(x = "u", y = NA), c = list(TRUE, NULL), d = diag(2)), NULL,
                                  version = k), at("checkpoint", k))
# pieces of the tests' folders, whatever compressed them, behind the three bytes that the harness reads first
utils::untar("tests/testthat/folders.tgz", exdir = folder <- tempfile())
pieces <- list.files(folder, "^[0-9.]+$", recursive = TRUE, full.names = TRUE)
for (k in seq_along(pieces)) {
  bytes <- readBin(pieces[k], "raw", file.size(pieces[k]))
  for (codec in 0:7) writeBin(c(as.raw(c(codec + 8, 0, 0)), bytes), at("codecs", paste(k, codec)))
}
END
for name in $asked; do
  if ! clang $flags "proofs/parsers/$name.c" $(sources "$name") -lm -o "$w/$name.run" >"$w/$name.log" 2>&1
  then echo "FAIL  $name: it cannot be built"; cat "$w/$name.log"; failed=1; continue; fi
  mkdir -p "$w/found-$name"
  LD_LIBRARY_PATH=$R_HOME/lib ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
    "$w/$name.run" -max_total_time="$seconds" -max_len=4096 -rss_limit_mb=4096 -timeout=25 \
    -print_final_stats=1 -artifact_prefix="$w/found-$name/" "$w/$name" \
    >"$w/$name.log" 2>&1
  status=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$w/$name.log")
  cover=$(grep -o 'cov: [0-9]*' "$w/$name.log" | tail -n 1)
  if [ $status = 0 ]; then echo "ok    $name: $runs inputs, $cover edges, 0 findings"
  else echo "FAIL  $name: $w/found-$name"; tail -n 30 "$w/$name.log"; failed=1; fi
done
[ $failed = 1 ] || rm -r "$w"
exit $failed
