# Every result that can be saved carries the number of its format, and what reads it looks at that first.

folder <- errors_folder()
data <- errors_data(folder)
fits <- errors_fits(data, folder)

# These end with the session, or are data.
unsaved <- c("weft_mi_pack", "weft_example")

test_that("every result has a format number, which saving keeps", {
  file <- withr::local_tempfile()
  for (name in setdiff(names(fits), unsaved)) {
    expect_identical(attr(fits[[name]], "format"), 1L, info = name)
    if (name == "weft_store") next
    saveRDS(fits[[name]], file)
    expect_identical(attr(readRDS(file), "format"), 1L, info = name)
  }
})

test_that("another format, or none, is refused by what reads a result", {
  for (name in setdiff(names(fits), unsaved)) {
    for (format in list(2L, 1, "1", NULL)) {
      other <- fits[[name]]
      attr(other, "format") <- format
      expect_error(utils::capture.output(print(other)), class = "weft_error_input", regexp = "must have format 1",
                   info = name)
    }
  }
  older <- fits$weft_pca
  attr(older, "format") <- NULL
  expect_error(predict(older, data$numbers), class = "weft_error_input", regexp = "It has no format number")
  older <- fits$weft_bn_scores
  attr(older, "format") <- 7L
  expect_error(bn_learn(older, iterations = 10), class = "weft_error_input", regexp = "Its format is 7")
  fit <- fits$weft_gene_network
  attr(fit$components, "format") <- 2L
  expect_error(weft_report(fit, withr::local_tempfile(), open = FALSE), class = "weft_error_input",
               regexp = "`fit\\$components` must have format 1")
})

test_that("what is no result is not asked for its format", {
  expect_error(bn_features(data$levels), class = "weft_error_input",
               regexp = "returned by `bn_exact\\(\\)` or `bn_learn\\(\\)`")
  few <- fits$weft_mi[c("feature", "mi")] # R drops the attributes
  expect_output(print(few), "feature")
})

test_that("results changed in one place are read, or refused with an error of weft's", {
  skip_on_cran()
  cases <- rest_damage_cases(c("weft_outliers", "weft_gene_sets", "weft_regulation", "weft_comparison",
                               "weft_kernel_regression", "weft_gp", "weft_kernel_pca", "weft_store", "weft_plink"))
  first <- sample(6L, 1L)
  for (name in names(cases)) {
    copies <- mi_damaged(cases[[name]][[1L]], depth = 1L)
    some <- copies[seq_along(copies) %% 6L == first - 1L]
    expect_gt(length(some), 10)
    expect_identical(mi_unclassed_uses(some, cases[[name]][[2L]]), character(), info = name)
  }
})

test_that("proofs/damaged.R has every class of result", {
  table <- getNamespaceInfo("weft", "S3methods")
  printed <- table[table[, 1L] == "print", 2L]
  here <- c("weft_sitrep", "weft_ranks", "weft_rates", "weft_device_matrix", "weft_resident_store", "weft_run",
            "weft_plan", # these belong to one session,
            "weft_example", "summary.weft_store", "weft_summary") # or data
  has <- function(f) { # the names of its cases
    text <- paste(deparse(f), collapse = " ")
    unique(regmatches(text, gregexpr("weft_[a-z_]+", text))[[1L]])
  }
  made <- c("weft_bn", "weft_bn_exact", "weft_bn_scores", "weft_bn_fit", "weft_bn_prior", "weft_bn_compare", "weft_pca",
            "weft_pca_k") # by damage_cases(), which takes seconds
  classes <- c(has(mi_damage_cases), has(rest_damage_cases), made)
  expect_identical(setdiff(printed, c(classes, here)), character())
})

# ---- text, flags and numbers that say that they are something else ----

test_that("a class that a value cannot have is dropped from text and flags, or is an error", {
  net <- fits$weft_network
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  as_date <- function(x) structure(x, class = "Date")
  expect_error(plot(net, labels = as_date(1)), class = "weft_error_input", regexp = "`labels` must be TRUE, FALSE")
  expect_error(plot(net, labels = NA), class = "weft_error_input", regexp = "`labels` must be TRUE, FALSE")
  expect_silent(plot(net, labels = as_date(FALSE)))
  expect_silent(plot(net, labels = as_date("a")))
  x <- data$numbers[, 2L]
  y <- data$y
  same <- predict(kernel_regression(x, y, 0.5), 0)
  expect_identical(predict(kernel_regression(x, y, 0.5, run = weft_run(ranks = as_date(FALSE))), 0), same)
  expect_identical(predict(kde(x, 0.5, run = weft_run(ranks = as_date(FALSE))), 0), predict(kde(x, 0.5), 0))
  strange <- structure(y, class = "data.frame")
  expect_error(kernel_regression(x, strange, 0.5), class = "weft_error_input", regexp = "one finite number")
  expect_error(gp_regression(x, strange), class = "weft_error_input", regexp = "one finite number")
  expect_error(kernel_bandwidth(x, structure(c(0.2, 0.5), class = "data.frame")), class = "weft_error_input",
               regexp = "`grid` must be positive")
  expect_error(bn_learn(data$levels, iterations = 5, control = list(temperatures = structure(1, class = "data.frame"))),
               class = "weft_error_input", regexp = "`temperatures`")
  file <- withr::local_tempfile(fileext = ".csv")
  expect_identical(write_network(net, as_date(file)), file)
  expect_gt(file.size(file), 0)
  expect_error(plink_file(folder("snps.bed"), variants = as_date("a")), class = "weft_error_input",
               regexp = "There is no `a`")
  expect_identical(dim(plink_file(folder("snps.bed"), chromosome = as_date("1"))), c(4L, 2L))
  expect_error(gene_mi_network(fits$weft_quality, genes = as_date("none")), class = "weft_error_input")
  expect_identical(mi_pairs(data$levels, data$class, features = as_date(c("a", "b")))$mi,
                   mi_pairs(data$levels, data$class, features = c("a", "b"))$mi)
})

test_that("points are coloured by vectors and factors alone", {
  skip_if_not_installed("ggplot2")
  fit <- fits$weft_pca
  expect_error(ggplot2::autoplot(fit, color = list(1)), class = "weft_error_input", regexp = "`color` must be a factor")
  odd <- structure(rep(1:2, 15), class = "weft_pca")
  expect_s3_class(ggplot2::autoplot(fit, color = odd), "ggplot")
})
