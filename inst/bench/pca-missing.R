# Principal components with missing values, by EM: Rscript pca-missing.R [rows columns k]. 2 % of the cells are missing,
# and components stand out, or are hardly longer than noise. On every back end, beside one decomposition of the complete
# matrix and softImpute (if installed; the same model without shrinkage). "off": the fits' largest difference over the
# standard deviation.
library(weft)
source("inst/bench/bench.R")
given <- as.numeric(commandArgs(TRUE))
n <- if (length(given)) given[1] else 50000
p <- if (length(given)) given[2] else 500
k <- if (length(given)) given[3] else 10
machine_line()
set.seed(1)
signal <- tcrossprod(matrix(rnorm(n * k), n) %*% diag(seq(3, 1, length.out = k)), matrix(rnorm(p * k), p)) / sqrt(10)
for (noise in c(1, 20)) {
  complete <- signal + noise * rnorm(n * p)
  x <- replace(complete, sample(n * p, n * p * 0.02), NA)
  gaps <- which(is.na(x))
  cat(sprintf("%.0f x %.0f, K = %.0f, noise %g\n", n, p, k, noise))
  first <- NULL
  for (backend in c("cpu", if (nrow(weft_devices())) "cuda")) {
    pca(x[1:1000, ], k, na = "em", seed = 1, run = backend)
    seconds <- vapply(1:3, function(i) pca(x, k, na = "em", seed = 1, run = backend)$seconds, 0)
    fit <- pca(x, k, na = "em", seed = 1, run = backend)
    whole <- stats::median(vapply(1:3, function(i) pca(complete, k, seed = 1, run = backend)$seconds, 0))
    cells <- fitted(fit)[gaps]
    first <- if (is.null(first)) cells else first
    cat(sprintf("  %-11s %.3f s (%.3f to %.3f), %d steps, %.0f readings, off %.0e; complete %.3f s\n", backend,
                stats::median(seconds), min(seconds), max(seconds), fit$iterations[1], fit$passes,
                max(abs(cells - first)) / stats::sd(x, na.rm = TRUE), whole))
  }
  if (requireNamespace("softImpute", quietly = TRUE)) {
    peer <- system.time(soft <- softImpute::softImpute(scale(x, scale = FALSE), k, lambda = 0, thresh = 1e-12,
                                                       maxit = 1000))[["elapsed"]]
    cells <- rowSums(soft$u[row(x)[gaps], ] * rep(soft$d, each = length(gaps)) * soft$v[col(x)[gaps], ]) +
      colMeans(x, na.rm = TRUE)[col(x)[gaps]]
    cat(sprintf("  softImpute  %.3f s, off %.0e\n", peer, max(abs(cells - first)) / stats::sd(x, na.rm = TRUE)))
  }
}
