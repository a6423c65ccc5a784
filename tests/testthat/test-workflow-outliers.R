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

test_that("a pair is found where factors or noise set the two apart", {
  n <- 24
  told <- function(key) {
    normal <- function(rows, part) matrix(weft:::draws("normal", rows * 100, key = 10 * key + part), rows)
    factors <- matrix(weft:::draws("normal", n * 3, key = 10 * key + 3), n)
    x <- normal(n, 1) + factors %*% normal(3, 2)
    dimnames(x) <- list(sprintf("s%d", 1:n), sprintf("g%d", 1:100))
    x[c(7, 14), 1:25] <- x[c(7, 14), 1:25] + 8
    fit <- suppressWarnings(gene_components(gene_quality(x, transform = "none"), leading = 4, seed = 1))
    o <- gene_outliers(fit, data = x)
    all(c("s7", "s14") %in% o$sample[o$outlier])
  }
  expect_gte(sum(vapply(1:20, told, NA)), 18)
})

test_that("distances and densities leave out a sample and its twin, as by hand", {
  n <- 20
  x <- matrix(weft:::draws("normal", n * 30, key = 3), n, dimnames = list(sprintf("s%d", 1:n), sprintf("g%d", 1:30)))
  x[c(4, 9), 1:10] <- x[c(4, 9), 1:10] + 6
  fit <- pca(x, n - 1, scale = TRUE, seed = 1) # all components: the plane of the others is exact
  fit$leading <- 2L
  twin <- weft:::sample_twins(fit, x)
  expect_identical(twin[c(4, 9)], c(9L, 4L))
  z <- scale(x)
  by_hand <- function(i, gone, variance) {
    others <- z[-c(i, gone), ]
    middle <- colMeans(others)
    plane <- svd(sweep(others, 2, middle), 0, 2)$v
    rest <- z[i, ] - middle
    rest <- rest - drop(plane %*% crossprod(plane, rest))
    sqrt(mean(rest^2 / variance))
  }
  expect_equal(weft:::distance_from_others(fit, x), vapply(seq_len(n), by_hand, 0, integer(), 1))
  paired <- which(!is.na(twin))
  expect_equal(weft:::distance_without_twin(fit, x, twin),
               vapply(paired, function(i) by_hand(i, twin[i], apply(z[-twin[i], ], 2, stats::var)), 0))
  scores <- fit$x[, 1:2]
  apart <- as.matrix(stats::dist(scores))
  density <- vapply(paired, function(i) mean(stats::dnorm(apart[i, -c(i, twin[i])] / 0.9)) * stats::dnorm(0) / 0.9^2, 0)
  expect_equal(weft:::density_without_twin(scores, twin, 0.9), log(density))
  expect_true(all(is.na(weft:::sample_twins(fit, x[1:3, ]))))
})

test_that("some rows of a table say of how many they are", {
  e <- weft_example("expression", n = 40, p = 30, spoilt = FALSE)
  r <- gene_ranking(e$x, e$class)
  expect_output(print(r), "^Differences in 30 genes between")
  expect_output(print(utils::head(r, 3)), "^Differences in 3 of 30 genes between.*; of these\\s+[0-3]\\s+differ")
  o <- gene_outliers(gene_components(e$x, seed = 1))
  expect_output(print(o), "^40 samples: ")
  expect_output(print(utils::head(o, 3)), "^3 of 40 samples: ")
})
