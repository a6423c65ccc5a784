# What is printed where settings, limits and tables are unusual.

e <- weft_example("expression", n = 40, p = 12, seed = 1, missing = 0, spoilt = FALSE)

test_that("a report's settings are those that the steps got, however the call named them", {
  chosen <- list(genes = 8, resamples = 20)
  fit <- gene_network(e$x, e$class, seed = 1, run = weft_run(progress = FALSE),
                      steps = list(pairs = FALSE, clusters = FALSE, bayes = FALSE, network = chosen))
  table <- weft:::settings_table(fit)
  own <- table[table$step == "network" & table$setting %in% names(chosen), ]
  expect_identical(own$value[match(names(chosen), own$setting)], c("8", "20"))
  expect_identical(own$`set by`, rep("the call", 2))
  expect_identical(weft:::network_chosen(fit), paste(
    "The network contains the genes that are most strongly associated with the class. The class may therefore explain",
    "some of the edges."))
  named <- list(genes = colnames(e$x)[1:5], resamples = 20)
  fit <- gene_network(e$x, e$class, seed = 1, run = weft_run(progress = FALSE),
                      steps = list(pairs = FALSE, clusters = FALSE, bayes = FALSE, network = named))
  expect_identical(weft:::network_chosen(fit), "The genes of the network were specified in the call.")
})

test_that("the time that is left is that of the work so far, and is not said where work begins again", {
  left <- weft:::remaining_time(started = 0)
  expect_null(left(1, 100, 1))
  expect_identical(left(10, 100, 10), " | 90.0 s left")
  expect_identical(left(50, 100, 20), " | 20.0 s left")
  expect_identical(left(1, 100, 21), "")
  expect_identical(left(90, 100, 30), "")
  expect_identical(weft:::remaining_time(0)(0, 100, 5), "")
})

test_that("permutations are parts of one progress", {
  said <- NULL
  withr::local_options(weft.poll = 0)
  x <- as.data.frame(matrix(weft:::draws("below", 60 * 40, a = 3, key = 1), 60))
  mi_pairs(x, rep(1:2, 30), permutations = 7, seed = 1,
           run = weft_run("cpu", threads = 1, progress = function(done, total) said <<- rbind(said, c(done, total))),
           by = "interaction")
  permuted <- said[said[, 2] == 7, 1]
  expect_gt(length(permuted), 7)
  expect_false(is.unsorted(ceiling(permuted)))
  expect_identical(max(permuted), 7)
})

test_that("tables whose columns were renamed print as data frames", {
  x <- as.data.frame(matrix(rep(c(1, 2, 2, 1, 1, 2), 8), 12, dimnames = list(NULL, letters[1:4])))
  class <- rep(1:2, 6)
  tables <- list(mi_rank(x, class), mi_pairs(x, class), mi_select(x, class, k = 2), gene_outliers(e$x),
                 gene_sets(c("a", "b"), list(one = letters[1:6]), universe = letters))
  for (table in tables) {
    for (column in c("feature", "feature1", "sample", "set", "q_value", "mi", "score")) {
      if (!column %in% names(table)) next
      other <- table
      names(other)[names(other) == column] <- "renamed"
      expect_output(print(other, n = 3), "renamed", info = paste(class(table)[1L], column))
    }
  }
})

test_that("a comma as the user's decimal mark changes no markup, file or count", {
  withr::local_options(OutDec = ",", warn = 2)
  expect_identical(weft:::thousands(c(1234567, 12)), c("1,234,567", "12"))
  expect_identical(weft:::several(1200, "row"), "1,200 rows")
  expect_match(weft:::html_table(data.frame(a = c(0.5, 1.25)), "c", "n", 5), "data-v=\"1.25\">1.25<", fixed = TRUE,
               all = FALSE)
  written <- function(ending) {
    file <- withr::local_tempfile(fileext = ending)
    write_network(mi_network(mtcars[1:5], "clr", estimator = "spearman"), file)
    readLines(file)
  }
  for (ending in c(".graphml", ".sif", ".gml", ".tsv", ".csv")) {
    if (!ending %in% paste0(".", c("graphml", "sif"))) next
    expect_identical(written(ending), withr::with_options(list(OutDec = "."), written(ending)))
  }
  file <- withr::local_tempfile()
  weft:::write_rates(stats::setNames(seq_along(weft:::reference_rates) / 3, names(weft:::reference_rates)), file)
  expect_equal(unname(weft:::read_rates(file)), signif(seq_along(weft:::reference_rates) / 3, 4))
})

test_that("factors whose codes have no level are refused where they colour", {
  broken <- structure(rep(7L, 40), class = "factor", levels = c("a", "b"))
  expect_error(plot(gene_mi_network(e$x), groups = broken[1:12]), "`groups` must be a valid factor",
               class = "weft_error_input")
  skip_if_not_installed("ggplot2")
  expect_error(ggplot2::autoplot(pca(e$x, 2), color = broken), "`color` must be a valid factor",
               class = "weft_error_input")
})

test_that("what is refused is refused before work and memory are spent", {
  wide <- Matrix::sparseMatrix(1, 1, x = 1, dims = c(1e5, 1e5))
  expect_error(gene_outliers(pca(e$x, 2), data = wide), "complete matrix that `x` was made from",
               class = "weft_error_input")
  worked <- FALSE
  expect_error(mi_network(e$x, "clr", estimator = "ksg", fdr = 0.05,
                          run = weft_run(progress = function(...) worked <<- TRUE)),
               "this information has no test", class = "weft_error_input")
  expect_false(worked)
  expect_error(mi_network(e$x, "relnet", estimator = "ksg"), "`threshold` must be given", class = "weft_error_input")
  expect_s3_class(mi_network(e$x, "relnet", estimator = "ksg", threshold = 0.1), "weft_network")
  expect_s3_class(mi_network(e$x, "clr", estimator = "ksg", fdr = 1), "weft_network")
  expect_error(mi_network(e$x, "clr", estimator = "nothing", fdr = 0.05), "`estimator` must be one of",
               class = "weft_error_input")
})

test_that("a back end that the environment names wrongly is named as such, and weft_sitrep() says so", {
  said <- run_in_r(c("library(weft)", "print(weft_sitrep())", "tryCatch(weft_backend(), error = function(e) print(e))",
                     "old <- weft_backend('cpu')"), env = "WEFT_BACKEND=foo")
  expect_match(said, "Default back end: not valid", all = FALSE)
  expect_match(said, "`WEFT_BACKEND` must be one of \"auto\", \"cpu\", \"cuda\"", all = FALSE, fixed = TRUE)
})

test_that("no home is no warning", {
  for (home in c("", "/dev/null")) {
    said <- run_in_r(c("options(warn = 2)", "library(weft)", "invisible(weft_sitrep())",
                       "cat('rates', weft:::calibrate_once(), '\\n')"), env = paste0("HOME=", home))
    expect_match(said, "^rates", all = FALSE, info = paste(said, collapse = "\n"))
  }
})

test_that("memory that is free is not more than a limit on the process leaves", {
  skip_if_not(file.exists("/proc/self/status"), "no /proc")
  file <- withr::local_tempfile(fileext = ".R", lines = c(
    "library(weft)", "cat('free', weft:::host_free(), '\\n')",
    "said <- tryCatch(pca(matrix(0, 1e4, 1e4), 2), error = function(e) class(e)[1])"))
  lib <- dirname(find.package("weft"))
  said <- system(sprintf("ulimit -v 4000000; OMP_NUM_THREADS=1 R_LIBS=%s %s --vanilla %s 2>&1", shQuote(lib),
                         shQuote(file.path(R.home("bin"), "Rscript")), shQuote(file)), intern = TRUE)
  free <- as.numeric(sub("free ", "", grep("^free ", said, value = TRUE)))
  expect_true(free > 0 && free < 4e9, info = paste(said, collapse = "\n"))
})

test_that("R-hat beyond the bound never looks like the bound", {
  expect_identical(weft:::rhat_number(c(1.1001, 1.5, 16.03)), c("1.11", "1.50", "16.03"))
})

test_that("a seed of no number is refused where nothing is drawn, too", {
  x <- as.matrix(mtcars[1:2])
  calls <- list(function(seed) kernel_sum(x, bandwidth = 1, seed = seed), function(seed) kde(x, seed = seed),
                function(seed) kernel_regression(x[, 1], x[, 2], seed = seed),
                function(seed) kernel_bandwidth(x, seed = seed), function(seed) kernel_tree(x, seed = seed))
  for (call in calls) {
    for (seed in list(character(), "1", NA, -1)) {
      expect_error(call(seed), "`seed` must be one whole number", class = "weft_error_input")
    }
  }
})
