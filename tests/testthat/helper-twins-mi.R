# The mutual-information room's rows of the table in test-twins.R. Shapes are drawn, so that they are multiples of nothing.
twins_mi <- function() {
  some <- function(levels, n, missing = 0) {
    columns <- lapply(levels, function(l) replace(sample(l, n, TRUE), stats::runif(n) < missing, NA))
    list2DF(stats::setNames(columns, paste0("x", seq_along(levels))))
  }
  list(
    "mi_rank, binary" = list(tolerance = 0, work = function(backend) {
      n <- sample(2000, 1)
      tidy(mi_rank(some(rep(2, sample(300, 1)), n), sample(2, n, TRUE), backend = backend))
    }),
    "mi_rank, mixed levels" = list(tolerance = 0, work = function(backend) {
      n <- sample(5000, 1)
      tidy(mi_rank(some(c(1, 2, 3, 100, 255, 256, 3000), n), sample(sample(300, 1), n, TRUE), backend = backend))
    }),
    "mi_rank, missing left out" = list(tolerance = 0, work = function(backend) {
      n <- sample(3000, 1)
      tidy(mi_rank(some(c(2, 2, 3, 300), n, 0.1), sample(c(1:7, NA), n, TRUE), na = "drop", backend = backend))
    }),
    "mi_rank, missing as a level" = list(tolerance = 0, work = function(backend) {
      n <- sample(3000, 1)
      tidy(mi_rank(some(c(2, 2, 3, 254, 255), n, 0.1), sample(c(1:3, NA), n, TRUE), na = "level", backend = backend))
    }),
    "mi_pairs, binary" = list(tolerance = 0, work = function(backend) {
      n <- sample(900, 1)
      tidy(mi_pairs(as.matrix(some(rep(2, sample(20:200, 1)), n)), sample(2, n, TRUE), top = sample(300, 1), backend = backend))
    }),
    "mi_pairs, binary, by interaction between two sets" = list(tolerance = 0, work = function(backend) {
      n <- sample(900, 1)
      tidy(mi_pairs(some(rep(2, 90), n), sample(2, n, TRUE), by = "interaction", features = 1:50, with = 30:90, min_gain = 1e-3,
                    top = Inf, backend = backend))
    }),
    "mi_pairs, mixed levels, missing left out" = list(tolerance = 0, work = function(backend) {
      n <- sample(900, 1)
      tidy(mi_pairs(some(c(rep(2, 30), rep(3, 30), 5, 40, 300), n, 0.05), sample(3, n, TRUE), na = "drop", top = 100, backend = backend))
    }),
    "mi_pairs, full" = list(tolerance = 0, work = function(backend) {
      n <- sample(900, 1)
      mi_pairs(some(rep(2:3, 20), n), sample(2, n, TRUE), full = TRUE, backend = backend)$mi
    }),
    "mi_pairs, permutations" = list(tolerance = 0, work = function(backend) {
      tidy(mi_pairs(some(rep(2, 40), 150), sample(2, 150, TRUE), top = 20, permutations = 9, seed = 1, backend = backend))
    }),
    "mi_triples, binary" = list(tolerance = 0, work = function(backend) {
      n <- sample(500, 1)
      tidy(mi_triples(some(rep(2, sample(10:80, 1)), n), sample(2, n, TRUE), top = 50, backend = backend))
    }),
    "mi_matrix of numbers" = list(tolerance = 0, work = function(backend) {
      x <- matrix(stats::rnorm(100 * sample(3:60, 1)), 100)
      x[, 2] <- round(x[, 2])
      lapply(c("pearson", "spearman", "copula", "kendall", "ksg"),
             function(estimator) as.matrix(mi_matrix(x, estimator = estimator, backend = backend)))
    }),
    "mi_network, aracne" = list(tolerance = 0, work = function(backend) {
      m <- as.matrix(mi_matrix(matrix(stats::rnorm(40 * sample(3:150, 1)), 40), estimator = "pearson", backend = "cpu"))
      as.matrix(mi_network(m, "aracne", eps = 0.01, backend = backend))
    })
  )
}
