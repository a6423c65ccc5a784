# On a machine with a device, after installing: twin tests, memcheck and racecheck at small sizes, then timings.
set -e
WEFT_TEST_CUDA=1 Rscript -e 'testthat::test_local(".", load_package = "installed", reporter = "summary", filter = "mi-matrix|mi-network")'
small=$(mktemp --suffix=.R)
cat > "$small" <<'END'
library(weft)
set.seed(1)
for (shape in list(c(33, 35), c(130, 40))) {
  x <- matrix(rnorm(prod(shape)), shape[1])
  x[, 2] <- round(x[, 2], 1)
  for (estimator in c("pearson", "copula", "kendall", "ksg"))
    stopifnot(identical(as.matrix(mi_matrix(x, estimator = estimator, backend = "cuda")),
                        as.matrix(mi_matrix(x, estimator = estimator, backend = "cpu"))))
  m <- round(as.matrix(mi_matrix(x, estimator = "pearson")), 2)
  stopifnot(identical(as.matrix(mi_network(m, "aracne", backend = "cuda")), as.matrix(mi_network(m, "aracne", backend = "cpu"))))
}
END
sanitize_r memcheck "$small"
sanitize_r racecheck "$small"
Rscript inst/bench/mi-networks.R cuda
