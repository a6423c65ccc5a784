# Co-clustering of real values: exact posteriors by enumeration, threads, missing values, and every method.

small <- rbind(c(1.2, -0.3, 0.4), c(0.9, 0.1, 0.2), c(-1.5, 2, 0.7), c(-0.8, 1.6, 0.1))
gaps <- replace(small, cbind(c(1, 4), c(2, 1)), NA)
# Planted blocks of means 2 apart, of noise 1.
set.seed(41)
rows <- rep(1:3, c(20, 15, 10))
cols <- rep(1:2, c(12, 8))
planted <- rbind(c(0, 2), c(2, 0), c(-2, -2))[rows, cols] + rnorm(45 * 20)
dimnames(planted) <- list(sprintf("s%02d", 1:45), sprintf("g%02d", 1:20))

test_that("the log posterior is that of a multivariate t", {
  z <- c(1, 1, 2, 2)
  w <- c(1, 2, 2)
  for (A in list(small, gaps, 1e6 + 1e3 * small, 1e-100 * gaps)) {
    for (beta in list(c(1, 1), c(0.3, 4))) {
      expect_equal(irm_log_posterior(A, z, w, alpha = c(2, 0.5), beta = beta, family = "gaussian"),
                   ref_log_likelihood(A, z, w, beta, "gaussian") + ref_log_crp(z, 2) + ref_log_crp(w, 0.5),
                   tolerance = 1e-5)
    }
  }
})

test_that("samplers agree with exact enumeration", {
  skip_on_cran()
  cases <- list(list(small), list(gaps, alpha = c(2, 0.5), beta = c(0.7, 0.4)))
  for (case in cases) {
    for (sampler in c("blocked", "collapsed")) {
      for (split_merge in c(FALSE, TRUE)) {
        k <- if (sampler == "blocked") 3
        exact <- do.call(exact_posterior, c(case, list(family = "gaussian", k = k)))
        fit <- suppressWarnings(call_with(irm, c(case, list(
          family = "gaussian", sampler = sampler, max_clusters = k %||% 4, chains = 16, sweeps = 400, burn_in = 0,
                                                          thin = 1,
          split_merge = split_merge, seed = 7, backend = "cpu"))))
        expect_posterior(fit, exact, label = paste(sampler, split_merge))
      }
    }
  }
})

test_that("planted blocks of values are found, by both samplers, with missing values", {
  hidden <- replace(planted, sample(length(planted), 100), NA)
  for (sampler in c("blocked", "collapsed")) {
    fit <- irm(hidden, family = "gaussian", chains = 2, sweeps = 60, seed = 2, control = list(sampler = sampler))
    expect_identical(irm_nmi(fit$row_cluster, rows), 1)
    expect_identical(irm_nmi(fit$col_cluster, cols), 1)
    expect_equal(fit$eta[fit$row_cluster[1], fit$col_cluster[20]], 2, tolerance = 0.15)
    expect_equal(unname(fit$sd), matrix(1, 3, 2), tolerance = 0.2)
    expect_equal(max(fit$log_posterior),
                 irm_log_posterior(hidden, fit$row_cluster, fit$col_cluster, family = "gaussian"))
    told <- predict(fit)[is.na(hidden)]
    expect_gt(stats::cor(told, planted[is.na(hidden)]), 0.7)
  }
  block <- hidden[fit$row_cluster == 1, fit$col_cluster == 1]
  expect_equal(fit$links[1, 1], sum(block, na.rm = TRUE), tolerance = 1e-5)
  expect_identical(fit$pairs[1, 1], 1 * sum(!is.na(block)))
})

test_that("noise is one cluster, in any unit", {
  noise <- matrix(weft:::draws("normal", 40 * 30, key = 5), 40)
  fit <- irm(noise, family = "gaussian", chains = 2, sweeps = 60, seed = 1)
  expect_identical(c(max(fit$row_cluster), max(fit$col_cluster)), c(1L, 1L))
  same <- irm(8 * noise + 1024, family = "gaussian", chains = 2, sweeps = 60, seed = 1)
  expect_identical(same$n_clusters, fit$n_clusters)
  expect_equal(same$eta, 8 * fit$eta + 1024, tolerance = 1e-6)
})

test_that("threads, and cutting a run in two, change nothing", {
  run <- function(threads, sweeps = 30) {
    irm(planted, family = "gaussian", chains = 2, sweeps = sweeps, seed = 3, run = weft_run(threads = threads),
        max_clusters = 20, prior = irm_prior(alpha = "sample", beta = "sample"), control = list(thin = 1))
  }
  one <- suppressWarnings(run(1))
  expect_identical(suppressWarnings(run(2))$run$trace, one$run$trace)
  expect_identical(suppressWarnings(update(run(1, 12), 18))$run$trace, one$run$trace)
  file <- withr::local_tempfile()
  saved <- irm(planted, family = "gaussian", chains = 1, sweeps = 10, seed = 3,
               control = list(checkpoint = file, checkpoint_sweeps = 5))
  resumed <- irm_resume(file)
  expect_identical(resumed$run$trace, saved$run$trace)
  expect_identical(resumed$eta, saved$eta)
})

test_that("every method takes a fit of values", {
  fit <- irm(planted, family = "gaussian", chains = 2, sweeps = 40, seed = 2)
  expect_output(print(fit), "45 rows and 20 columns, 900 values")
  expect_output(print(summary(fit)), "blocks explain [5-9][0-9] % of the variance")
  expect_identical(glance(fit)$links, 900)
  expect_true(all(is.finite(as.data.frame(fit, what = "blocks")$sd)))
  told <- predict(fit, cbind("s01", "g20"), uncertainty = TRUE)
  expect_equal(told$estimate, 2, tolerance = 0.2)
  expect_gt(told$sd, 0)
  expect_lt(told$sd, 0.5)
  expect_equal(fitted(fit)["s01", "g20"], told$estimate, tolerance = 0.1)
  withr::local_pdf(NULL)
  for (what in c("matrix", "trace", "eta", "sizes")) expect_invisible(plot(fit, what))
  expect_invisible(plot(irm(gaps, family = "gaussian", chains = 1, sweeps = 4, seed = 1), resolution = 2))
  expect_identical(lengths(irm_words(fit)), stats::setNames(c(20L, 15L, 10L), 1:3))
  if (requireNamespace("ggplot2", quietly = TRUE)) expect_s3_class(ggplot2::autoplot(fit), "ggplot")
})

test_that("what is no matrix of values is refused", {
  refused <- function(why, ..., class = "weft_error_input") {
    expect_error(call_with(irm, list(..., family = "gaussian", chains = 1, sweeps = 2)), why, class = class)
  }
  refused("matrix of numbers", data.frame(1:3, 1:3))
  refused("matrix of numbers", matrix(letters[1:4], 2))
  refused("finite numbers or NA", replace(small, 5, Inf))
  refused("must contain observed values", small * NA)
  refused("`type` must not be given for real values", small[1:3, ], type = "undirected")
  refused("`threshold` must not be given for real values", small, threshold = 1)
  refused("`dim` must not be given for real values", small, dim = c(4, 3))
  refused("`hold_out` must be 0", small, hold_out = 0.1)
})

test_that("hard values: constant, one cell, huge, tiny, a sparse matrix, an assay", {
  quick <- function(A, ...) call_with(irm, list(A, family = "gaussian", chains = 1, sweeps = 10, seed = 1, ...))
  for (A in list(matrix(3, 4, 5), matrix(0, 3, 3), matrix(7), 1e300 * small, 1e-300 * small, 1e15 + small)) {
    fit <- quick(A)
    expect_true(all(is.finite(fit$eta)) && all(is.finite(fit$log_posterior)))
  }
  expect_equal(quick(matrix(3, 4, 5))$eta, matrix(3))
  expect_identical(quick(Matrix::Matrix(small, sparse = TRUE))$log_posterior, quick(small)$log_posterior)
  expect_identical(quick(small, missing = is.na(gaps))$log_posterior, quick(gaps)$log_posterior)
  one <- replace(matrix(0, 30, 20), 5, 1e9) # one value far out
  expect_true(all(is.finite(quick(one)$log_posterior)))
  skip_if_not_installed("SummarizedExperiment")
  se <- SummarizedExperiment::SummarizedExperiment(list(x = small))
  expect_identical(quick(se, assay = "x")$log_posterior, quick(small)$log_posterior)
})

test_that("damaged fits of values are refused", {
  fit <- irm(small, family = "gaussian", chains = 1, sweeps = 10, seed = 1)
  broken <- function(change) {
    x <- fit
    x <- change(x)
    expect_error(update(x, 5), class = "weft_error_input")
  }
  broken(function(x) { x$run$graph$values <- NULL; x })
  broken(function(x) { x$run$graph$values[3] <- 0; x })
  broken(function(x) { x$run$graph$values[2] <- -1; x })
  broken(function(x) { x$run$graph$links$weight[1] <- 2^20L + 1L; x })
  broken(function(x) { x$run$graph$links["weight"] <- list(NULL); x })
  broken(function(x) { x$sd <- NULL; x })
  broken(function(x) { x$run$held <- list(); x })
})
