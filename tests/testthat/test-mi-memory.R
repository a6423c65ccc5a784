test_that("failed allocations leave nothing behind", {
  set.seed(1)
  x <- matrix(rnorm(30 * 6), 30)
  x[2, 2] <- NA
  m <- as.matrix(mi_matrix(x, estimator = "spearman", na = "drop"))
  y <- rep(1:2, 15)
  select <- function(...) call_with(mi_select, list(round(x[, -2]), y, 3, ...))
  # two threads where each takes memory of its own; one where the second would only repeat the first
  expect_survives_failures(list(
    copula = function() mi_matrix(x, estimator = "copula", na = "drop", run = weft_run(threads = 2)),
    kendall = function() mi_matrix(x, estimator = "kendall", na = "drop", run = weft_run(threads = 1)),
    ksg = function() mi_matrix(x, estimator = "ksg", na = "drop", run = weft_run(threads = 1)),
    aracne = function() mi_network(m, "aracne", run = weft_run(threads = 1)),
    mrnetb = function() mi_network(m, "mrnetb", run = weft_run(threads = 1)),
    jmi = function() select("jmi", threads = 1), cmi = function() select("cmi", threads = 2),
    equalfreq = function() discretize(x, "equalfreq", run = weft_run(threads = 1)),
    mdl = function() discretize(x, "mdl", class = y, run = weft_run(threads = 1)),
    caim = function() discretize(x, "caim", class = y, run = weft_run(threads = 1))
  ))
})

test_that("an interrupt stops the work and leaves nothing behind", {
  x <- matrix(rnorm(400 * 150), 400)
  before <- .Call(weft:::C_weft_memory, NULL)[["host"]]
  withr::local_options(weft.poll = 0)
  expect_error(mi_matrix(x, estimator = "ksg",
                         run = weft_run(progress = function(done, total) if (done > 0) stop("enough"))), "enough")
  m <- as.matrix(mi_matrix(x, estimator = "spearman"))
  expect_error(mi_network(m, "mrnetb", run = weft_run(progress = function(done, total) stop("enough"))), "enough")
  expect_identical(.Call(weft:::C_weft_memory, NULL)[["host"]], before)
})
