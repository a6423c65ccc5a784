# Products of matrices, whatever their shape.

test_that("products of long factors are right, and the same with any number of threads", {
  withr::local_seed(1)
  product <- function(a, b, threads) {
    weft:::matrix_product(a, b, weft:::run_control("cpu", threads, FALSE), transposed = TRUE)
  }
  for (shape in list(c(66000, 65, 70), c(98305, 66, 65), c(65536, 3, 100), c(65535, 70, 70))) {
    a <- matrix(stats::rnorm(shape[1] * shape[2]), shape[1])
    b <- matrix(stats::rnorm(shape[1] * shape[3]), shape[1])
    one <- product(a, b, 1)
    expect_equal(one, crossprod(a, b), tolerance = 1e-13, info = shape)
    expect_identical(product(a, b, 2), one, info = shape)
    expect_identical(product(a, b, 3), one, info = shape)
  }
})
