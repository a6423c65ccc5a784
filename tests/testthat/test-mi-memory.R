# Makes every allocation of a call fail in turn: an error of its class each time, and nothing left behind.
expect_no_leaks <- function(run) {
  before <- .Call(weft:::C_weft_memory, 0)
  on.exit(.Call(weft:::C_weft_memory, 0))
  run()
  count <- .Call(weft:::C_weft_memory, NULL)[["allocations"]]
  testthat::expect_gt(count, 0)
  for (k in seq_len(count)) {
    .Call(weft:::C_weft_memory, k) # a failed call is tried once more, and then works: both ways must leave nothing
    try(run(), silent = TRUE)
    after <- .Call(weft:::C_weft_memory, 0)
    if (after[["host"]] != before[["host"]]) { # a handle that the collector has yet to end
      gc()
      after <- .Call(weft:::C_weft_memory, 0)
    }
    testthat::expect_identical(after[["host"]], before[["host"]], info = k)
  }
}

test_that("failed allocations leave nothing behind", {
  skip_on_cran() # long: memory is collected after each
  set.seed(1)
  x <- matrix(rnorm(30 * 6), 30)
  x[2, 2] <- NA
  # two threads where each takes memory of its own; one where the second would only repeat the first
  expect_no_leaks(function() mi_matrix(x, estimator = "copula", na = "drop", threads = 2))
  for (estimator in c("kendall", "ksg")) {
    expect_no_leaks(function() mi_matrix(x, estimator = estimator, na = "drop", threads = 1))
  }
  m <- as.matrix(mi_matrix(x, estimator = "spearman", na = "drop"))
  for (method in c("aracne", "mrnetb")) expect_no_leaks(function() mi_network(m, method, threads = 1))
  y <- rep(1:2, 15)
  expect_no_leaks(function() mi_select(round(x[, -2]), y, 3, "jmi", threads = 1))
  expect_no_leaks(function() mi_select(round(x[, -2]), y, 3, "cmi", threads = 2))
  for (method in c("equalfreq", "mdl", "caim")) {
    expect_no_leaks(function() discretize(x, method, class = y, threads = 1))
  }
})

test_that("an interrupt stops the work and leaves nothing behind", {
  x <- matrix(rnorm(400 * 150), 400)
  before <- .Call(weft:::C_weft_memory, NULL)[["host"]]
  withr::local_options(weft.poll = 0)
  expect_error(mi_matrix(x, estimator = "ksg", progress = function(done, total) if (done > 0) stop("enough")), "enough")
  m <- as.matrix(mi_matrix(x, estimator = "spearman"))
  expect_error(mi_network(m, "mrnetb", progress = function(done, total) stop("enough")), "enough")
  expect_identical(.Call(weft:::C_weft_memory, NULL)[["host"]], before)
})
