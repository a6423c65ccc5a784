# What learning takes is predicted, and refused where it is too much; all of it can be stopped.

test_that("a search beyond memory is refused before it begins", {
  expect_silent(weft:::check_search_memory(list(p = 100, n = 1000), "bge", 8, 1, 1))
  expect_error(weft:::check_search_memory(list(p = 4096, n = 1e9), "bge", 8, 1000, 1), class = "weft_error_memory",
               regexp = "needs about .* of memory.*4096 nodes, .* rows and 1000 starts.*fewer `starts`")
})

test_that("features of more networks than memory holds are refused", {
  expect_silent(weft:::check_feature_memory(20, 1e4, 1e4, 8, 1, FALSE))
  refused <- function(independent, text) {
    expect_error(weft:::check_feature_memory(4096, 1e6, 1e6, 8, 1, independent), class = "weft_error_memory",
                 regexp = paste0("1000000 different networks of 4096 nodes.*", text))
  }
  refused(TRUE, "fewer `draws`")
  refused(FALSE, "larger `thin`")
})

test_that("features do not depend on how many graphs are looked at together, and take what is predicted", {
  names <- sprintf("v%02d", 1:25)
  d <- withr::with_seed(1, as.data.frame(matrix(sample(0:1, 25 * 40, TRUE), 40, dimnames = list(NULL, names))))
  fit <- bn_learn(d, 2, target = "sum", iterations = 20000, chains = 1, seed = 1,
                  control = list(thin = 12, temperatures = 1))
  drawn <- weft:::chain_graphs(fit, NULL)
  invisible(gc(reset = TRUE))
  before <- sum(gc()[, 2L])
  gctorture2(5000) # otherwise what is no longer needed counts, until R happens to collect it
  withr::defer(gctorture2(0))
  whole <- weft:::graph_features(fit$table, drawn)
  gctorture2(0)
  bytes_taken <- (sum(gc()[, 6L]) - before) * 2^20
  expect_gt(whole$different, 1000)
  predicted <- weft:::feature_bytes(25, ncol(drawn$sets), whole$different, 8, 2^20)
  expect_gt(bytes_taken, predicted / 2)
  expect_lt(bytes_taken, predicted)
  expect_identical(weft:::graph_features(fit$table, drawn, cells = 7000), whole)
})

test_that("searches, tables, exact answers, draws and halves stop within a second", {
  d <- withr::with_seed(1, as.data.frame(matrix(sample(0:1, 60 * 18, TRUE), 60)))
  numbers <- withr::with_seed(2, as.data.frame(matrix(stats::rnorm(100 * 60), 100)))
  table <- bn_scores(d, 1, keep = "all")
  small <- bn_exact(bn_scores(d[1:9], 2, keep = "all"), posterior = "dag")
  works <- list(
    `a search of numbers` = function(progress) bn_search(numbers, run = weft_run(threads = 1, progress = progress),
                                                         control = list(kicks = 1e8)),
    `a search of categories` = function(progress) bn_search(d, run = weft_run(threads = 1, progress = progress),
                                                            control = list(kicks = 1e8)),
    `a table` = function(progress) bn_scores(d, 7, run = weft_run(progress = progress)),
    `a table of numbers` = function(progress) bn_scores(numbers[1:24], 6, "bge", run = weft_run(progress = progress)),
    `the best graph` = function(progress) bn_exact(table, run = weft_run(progress = progress)),
    `the posterior under orders` = function(progress) bn_exact(table, posterior = "order",
                                                               run = weft_run(progress = progress)),
    `draws` = function(progress) bn_features(small, draws = 1e6, run = weft_run(progress = progress))
  )
  for (work in names(works)) expect_stops(works[[work]], work)
})

test_that("an interrupt ends a run over halves of the rows, whichever half it is at", {
  skip_on_os("windows")
  skip_on_cran()
  result <- interrupted_works(
    "options(weft.poll = 0); d <- as.data.frame(matrix(rep(0:1, 600), 100))",
    "list(halves = function(progress) { # told when the run of all rows has begun, which is short
       bn_learn(d, 2, target = 'sum', iterations = 2000, chains = 1, resample = 1e5,
                run = weft_run(progress = progress))
     })")
  expect_identical(result$how, "interrupted", info = paste(result$output, collapse = "\n"))
})
