#!/bin/sh
# On a machine with a device and an installed weft: twin tests, sanitizers on small sizes, timings of pairs and triples.
# With `quick`, twin tests and timings only. `sanitize_r TOOL SCRIPT` must run an R script under compute-sanitizer.
set -u
status=0
for part in mi-pairs mi-triples; do
  WEFT_TEST_CUDA=1 timeout 150 Rscript -e 'testthat::test_local(".", load_package = "installed", filter = "'$part'", reporter = "check", stop_on_failure = TRUE)' \
    >"$OUT/test-$part.log" 2>&1 || { echo "FAILED: $part"; grep -v '^ *[0-9]*: ' "$OUT/test-$part.log" | tail -40; status=1; }
done
if [ "${1-}" != quick ]; then
  cat >"$OUT/small.R" <<'R'
library(weft)
set.seed(1)
x <- matrix(sample(0:1, 300 * 290, TRUE), 300)
y <- cbind(as.data.frame(x[, 1:20]), matrix(sample(c(0:2, NA), 300 * 70, TRUE), 300))
class <- sample(0:1, 300, TRUE)
mi_pairs(x, class, top = 50, backend = "cuda")
mi_pairs(x, class, top = 50, features = 1:99, with = 80:200, by = "interaction", backend = "cuda")
mi_pairs(y, class, top = 50, na = "drop", backend = "cuda")
invisible(mi_pairs(y, class, full = TRUE, na = "level", backend = "cuda"))
mi_triples(x[, 1:140], class, top = 20, backend = "cuda")
R
  for tool in memcheck racecheck; do
    sanitize_r $tool "$OUT/small.R" >"$OUT/$tool.log" 2>&1 || { echo "FAILED: $tool"; grep '=====' "$OUT/$tool.log" | head -30; status=1; }
    tail -1 "$OUT/$tool.log"
  done
fi
timeout 240 Rscript inst/bench/mi-pairs.R cuda || status=1
exit $status
