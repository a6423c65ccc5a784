# Facts of columns from native code, against R's own loops.

test_that("facts of columns are those that R finds", {
  set.seed(1)
  x <- matrix(sample(c(-2, -0, 0, 0.5, 3, 120, NA, NaN, Inf, -Inf), 41 * 30, TRUE), 41)
  x[, 1] <- 7
  x[, 2] <- NA
  x[, 3] <- rnorm(41)
  found <- matrix_facts(x, threads = 2, same = TRUE)
  each <- function(f) apply(x, 2, f)
  expect_equal(found$missing, each(function(v) sum(is.na(v))))
  expect_equal(found$infinite, each(function(v) sum(is.infinite(v))))
  expect_identical(found$least, suppressWarnings(each(function(v) min(v, na.rm = TRUE))))
  expect_identical(found$greatest, suppressWarnings(each(function(v) max(v, na.rm = TRUE))))
  commonest <- function(v) if (any(!is.na(v))) max(table(v[!is.na(v)] + 0)) else 1L
  expect_equal(found$same, each(commonest))
  few <- function(v) {
    v <- unique(v[!is.na(v)])
    length(v) <= 5 && all(v == round(v)) && all(abs(v) < 100)
  }
  expect_identical(found$few, each(few))
  expect_identical(all_finite(c(1, NA)), FALSE)
  expect_identical(all_finite(replace(numeric(2e5), 1e5, Inf)), FALSE)
  expect_identical(all_finite(numeric(2e5)), TRUE)
})

test_that("medians and distances have R's bits", {
  set.seed(2)
  for (n in c(1, 2, 7, 64, 101)) {
    x <- cbind(matrix(rnorm(n * 20), n), rep(3, n), seq_len(n), rev(seq_len(n)), round(rnorm(n)), 1e300 * rnorm(n))
    found <- column_spreads(x, threads = 2)
    median <- apply(x, 2, stats::median)
    expect_identical(found$median, median)
    expect_identical(found$mad, apply(abs(x - rep(median, each = n)), 2, stats::median))
    y <- x[, -25, drop = FALSE]
    scale <- runif(24) + 1
    z <- (y - rep(colMeans(y), each = n)) / rep(scale, each = n)
    expect_identical(row_squares(y, colMeans(y), scale, threads = 2), rowSums(z^2))
  }
})

test_that("data without components are permuted columns and drawn signs", {
  set.seed(3)
  x <- matrix(rnorm(37 * 5), 37)
  u <- matrix(draws("uniform", length(x), key = 5, stream = 2), 37)
  expect_identical(permute_columns(x, 5, 2), sapply(1:5, function(j) x[order(u[, j]), j]))
  u <- matrix(draws("uniform", length(x), key = 5, stream = 2^31 + 2), 37)
  expect_identical(draw_signs(x)(x, 5, 2), ifelse(u < 0.5, -1, 1) * (x - rep(apply(x, 2, median), each = 37)))
})
