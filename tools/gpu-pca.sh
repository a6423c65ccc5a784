#!/bin/sh
# On a machine with a device, weft installed in R_LIBS: the device tests of principal components, sanitizers on small sizes,
# timings. Writes into $OUT. To be sourced where a shell function sanitize_r TOOL SCRIPT runs a script under compute-sanitizer.
#   . tools/gpu-pca.sh [test|sanitize|time|figure|sparse ...]     all of them by default
set -u
what=${*:-test sanitize time figure sparse}
out=${OUT:-.}
status=0

for step in $what; do
  echo "== $step"
  case $step in
    test)
      WEFT_TEST_CUDA=1 timeout 150 Rscript -e 'testthat::test_local(".", load_package = "installed", filter = "^pca$", reporter = "summary")' \
        > "$out/test.log" 2>&1 || status=1
      tail -60 "$out/test.log" ;;
    sanitize)
      cat > "$out/small.R" <<'END'
library(weft)
set.seed(1)
x <- matrix(rnorm(130 * 70), 130)
for (m in c("krylov", "gram", "gs", "nipals")) suppressWarnings(pca(x, 3, method = m, backend = "cuda", max_iter = 6, seed = 1))
h <- weft_upload(x)
suppressWarnings(pca(h, 2, method = "gs", max_iter = 4, seed = 1))
suppressWarnings(pca(x, 2, precision = "single", backend = "cuda", max_iter = 4, seed = 1))
s <- Matrix::rsparsematrix(150, 140, 0.1)
suppressWarnings(pca(list(s, s), 2, backend = "cuda", max_iter = 3, seed = 1))
weft_free(h)
END
      sanitize_r memcheck "$out/small.R" > "$out/memcheck.log" 2>&1 || status=9
      tail -4 "$out/memcheck.log"
      sed -i 's/^s <-.*//; s/^suppressWarnings(pca(list.*//' "$out/small.R"
      sanitize_r racecheck "$out/small.R" > "$out/racecheck.log" 2>&1 || status=9
      tail -4 "$out/racecheck.log" ;;
    figure) timeout 280 Rscript inst/bench/pca-figure.R run cuda "$out/pca-figure.csv" 2>&1 | tee "$out/figure.log" || status=1 ;;
    *) timeout 280 Rscript inst/bench/pca-device.R "$step" "$out" 2>&1 | tee "$out/$step.log" || status=1 ;;
  esac
done
exit $status
