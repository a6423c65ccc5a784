# Two samples that are alike and stand apart.

test_that("two outliers that are alike do not hide each other, and a group of three is none", {
  n <- 24
  moved <- c(7, 14, 20)
  told <- function(key, count) {
    x <- matrix(weft:::draws("normal", n * 100, key = key), n,
                dimnames = list(sprintf("s%d", 1:n), sprintf("g%d", 1:100)))
    x[moved[seq_len(count)], 1:25] <- x[moved[seq_len(count)], 1:25] + 4
    fit <- suppressWarnings(gene_components(gene_quality(x, transform = "none"), leading = 3, seed = 1)) # a group of 3
    o <- gene_outliers(fit, data = x)
    o$sample[o$outlier]
  }
  for (key in 1:5) {
    expect_identical(told(key, 1), "s7")
    expect_setequal(told(key, 2), c("s7", "s14"))
    expect_length(told(key, 3), 0)
  }
})

test_that("distances and densities leave out a sample and its twin, as by hand", {
  n <- 20
  x <- matrix(weft:::draws("normal", n * 30, key = 3), n, dimnames = list(sprintf("s%d", 1:n), sprintf("g%d", 1:30)))
  x[c(4, 9), 1:10] <- x[c(4, 9), 1:10] + 6
  fit <- pca(x, n - 1, scale = TRUE, seed = 1) # all components: the plane of the others is exact
  fit$leading <- 2L
  twin <- weft:::sample_twins(weft:::twin_data(fit, x))
  expect_identical(which(!is.na(twin)), c(4L, 9L))
  expect_identical(twin[c(4, 9)], c(9L, 4L))
  z <- scale(x)
  by_hand <- vapply(seq_len(n), function(i) {
    others <- z[-c(i, twin[i][!is.na(twin[i])]), ]
    middle <- colMeans(others)
    plane <- svd(sweep(others, 2, middle), 0, 2)$v
    rest <- z[i, ] - middle
    rest <- rest - drop(plane %*% crossprod(plane, rest))
    sqrt(mean(rest^2 / if (is.na(twin[i])) 1 else apply(z[-twin[i], ], 2, stats::var)))
  }, 0)
  expect_equal(weft:::distance_from_others(fit, x, twin), by_hand)
  scores <- fit$x[, 1:2]
  apart <- as.matrix(stats::dist(scores))
  density <- vapply(c(4, 9), function(i) mean(stats::dnorm(apart[i, -c(4, 9)] / 0.9)) * stats::dnorm(0) / 0.9^2, 0)
  expect_equal(weft:::density_without_twin(scores, twin, 0.9), log(density))
  expect_true(all(is.na(weft:::sample_twins(z[1:3, ]))))
})
