# Numbers of components on data with a known number.

planted <- function(k, n = 120, p = 25) {
  set.seed(31)
  matrix(rnorm(n * k), n) %*% matrix(rnorm(k * p), k) * 2 + matrix(rnorm(n * p), n)
}

test_that("planted components are counted, and none in noise", {
  for (method in c("parallel", "signs", "gavish_donoho", "q2")) {
    expect_identical(as.integer(pca_choose_k(planted(3), method, seed = 1)$k), 3L, label = method)
  }
  set.seed(32)
  noise <- matrix(rnorm(200 * 20), 200)
  for (method in c("parallel", "signs", "broken_stick", "gavish_donoho", "q2")) {
    expect_identical(as.integer(pca_choose_k(noise, method, seed = 1)$k), 0L, label = method)
  }
})

test_that("rows of more noise than others are no components to drawn signs", {
  found <- vapply(1:20, function(key) {
    x <- matrix(weft:::draws("normal", 40 * 60, key = key), 40) * rep(c(3, 1), c(8, 32))
    c(pca_choose_k(x, "parallel", scale = TRUE, max_k = 5, permutations = 19, seed = key)$k,
      pca_choose_k(x, "signs", scale = TRUE, max_k = 5, permutations = 19, seed = key)$k) > 0
  }, logical(2))
  expect_gte(sum(found[1L, ]), 15)
  expect_lte(sum(found[2L, ]), 4)
  # Few rows, each with a scale of its own: a mean would carry the largest into the others.
  found <- vapply(1:40, function(key) {
    scale <- exp(weft:::draws("normal", 16, key = 100 + key) / 2)
    x <- matrix(weft:::draws("normal", 16 * 100, key = key), 16) * scale
    pca_choose_k(x, "signs", scale = TRUE, max_k = 2, permutations = 19, seed = key)$k > 0
  }, NA)
  expect_lte(sum(found), 5)
})

test_that("the threshold is the order statistic that holds the level", {
  x <- matrix(weft:::draws("normal", 30 * 8, key = 3), 30)
  curve <- pca_choose_k(x, max_k = 3, permutations = 19, seed = 4)$curve
  null <- vapply(1:19, function(t) stats::prcomp(weft:::permute_columns(x, weft:::random_key(4),
                                                                        t))$sdev[1:3] * sqrt(29), numeric(3))
  expect_equal(curve$threshold, apply(null, 1L, max))
  expect_equal(pca_choose_k(x, max_k = 3, permutations = 39, level = 0.9, seed = 4)$curve$threshold[1],
               sort(vapply(1:39, function(t) stats::prcomp(weft:::permute_columns(x, weft:::random_key(4),
                                                                                  t))$sdev[1] * sqrt(29), 0))[36])
})

test_that("the median of Marchenko and Pastur's law is right", {
  set.seed(33)
  for (beta in c(0.2, 1)) {
    w <- svd(matrix(rnorm(400 * 400 * beta), 400), nu = 0, nv = 0)$d^2 / 400
    expect_equal(weft:::marchenko_pastur_median(beta), median(w), tolerance = 0.03)
  }
  # the published factor of the threshold for square matrices
  beta <- 1
  expect_equal(4 / sqrt(3) / sqrt(weft:::marchenko_pastur_median(1)), 2.858, tolerance = 1e-3)
})

test_that("broken stick compares with the expected pieces", {
  chosen <- pca_choose_k(planted(1), "broken_stick", seed = 1)
  expect_equal(chosen$curve$threshold[1:2], c(sum(1 / (1:25)), sum(1 / (2:25))) / 25)
})

test_that("a seed fixes the result and leaves R's generator alone", {
  set.seed(34)
  x <- planted(2)
  set.seed(35)
  before <- .Random.seed
  a <- pca_choose_k(x, seed = 5)
  expect_identical(.Random.seed, before)
  expect_identical(pca_choose_k(x, seed = 5), a)
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_no_error(plot(a))
  expect_output(print(a), "2 components")
})

test_that("left-out cells are predicted in few steps, with the answer of many", {
  set.seed(36)
  for (k in 0:2) {
    x <- matrix(rnorm(60 * 40), 60) + matrix(rnorm(60 * k), 60, k) %*% matrix(rnorm(40 * k), k, 40) * 2
    chosen <- pca_choose_k(x, "q2")
    expect_identical(as.integer(chosen$k), k)
    expect_lte(chosen$steps, 1000) # 56 fits; each to the end of a descent without one took 200
    if (k) { # the definition, with the whole fit
      fold <- (row(x) + 3 * col(x)) %% 7
      errors <- vapply(0:6, function(f) {
        left <- replace(x, fold == f, NA)
        fit <- suppressWarnings(pca(left, k, na = "em", seed = 1,
                                    control = list(tolerance = 1e-5, max_iterations = 2000)))
        base <- colMeans(left, na.rm = TRUE)
        c(sum((x - fitted(fit))[fold == f]^2), sum((x - base[col(x)])[fold == f]^2))
      }, c(0, 0))
      expect_equal(chosen$curve$value[k + 1], 1 - sum(errors[1, ]) / sum(errors[2, ]), tolerance = 0.01)
    }
  }
})

test_that("left-out cells leave something in each row, and units change nothing", {
  x <- planted(3)
  expect_identical(as.integer(pca_choose_k(x, "q2", folds = 3)$k), 3L) # all of a row, if the pattern went by rows
  chosen <- pca_choose_k(x, "q2")
  for (unit in c(2^600, 2^-600)) expect_identical(pca_choose_k(x * unit, "q2")$curve, chosen$curve)
  exact <- matrix(rnorm(50 * 2), 50) %*% matrix(rnorm(2 * 20), 2)
  expect_identical(as.integer(pca_choose_k(exact, "q2")$k), 2L) # more fit as well
})

test_that("small data wake no threads", {
  skip_on_os("windows")
  skip_if_not(dir.exists("/proc/self/task"))
  started <- run_in_r(c(
    "library(weft)", "set.seed(1)", "x <- matrix(rnorm(60 * 40), 60)",
      "before <- length(list.files('/proc/self/task'))",
    "invisible(pca_choose_k(x, 'q2'))", "cat('started', length(list.files('/proc/self/task')) - before, '\\n')"),
    env = c("OMP_NUM_THREADS=2", "OMP_THREAD_LIMIT=2"))
  expect_true("started 0 " %in% started, info = paste(started, collapse = "\n"))
})
