# Numbers of components on data with a known number.

planted <- function(k, n = 120, p = 25) {
  set.seed(31)
  matrix(rnorm(n * k), n) %*% matrix(rnorm(k * p), k) * 2 + matrix(rnorm(n * p), n)
}

test_that("planted components are counted, and none in noise", {
  for (method in c("parallel", "gavish_donoho", "q2")) {
    expect_identical(as.integer(pca_choose_k(planted(3), method, seed = 1)$k), 3L, label = method)
  }
  set.seed(32)
  noise <- matrix(rnorm(200 * 20), 200)
  for (method in c("parallel", "broken_stick", "gavish_donoho", "q2")) {
    expect_identical(as.integer(pca_choose_k(noise, method, seed = 1)$k), 0L, label = method)
  }
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
