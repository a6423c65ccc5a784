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
    })
  )
}
