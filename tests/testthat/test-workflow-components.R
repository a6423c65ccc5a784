# Components of counts, how many stand out, and classes along them.

counted <- function(n, p, key, dispersion = 0.25, depth = exp(0.3 * weft:::draws("normal", n, key = key, stream = 1)),
                    mean = exp(4 + 1.5 * weft:::draws("normal", p, key = key, stream = 2))) {
  how <- list(depth = depth, share = mean, dispersion = rep(dispersion, p), key = c(0, key), stream = 3)
  x <- .Call(weft:::C_weft_pca_counts_draw, how, weft:::pass_control())
  dimnames(x) <- list(sprintf("s%d", seq_len(n)), sprintf("g%d", seq_len(p)))
  x
}

test_that("draws are negative binomial", {
  n <- 2e4
  mean <- c(0.3, 3, 9.9, 10.1, 300, 1e5)
  for (dispersion in c(0, 0.1, 2)) {
    x <- counted(n, length(mean), 11, dispersion, rep(1, n), mean)
    size <- if (dispersion == 0) Inf else 1 / dispersion
    for (j in seq_along(mean)) {
      law <- function(q) stats::pnbinom(q, mu = mean[j], size = size)
      at <- sort(unique(x[, j]))
      expect_lt(max(abs(stats::ecdf(x[, j])(at) - law(at))), 1.63 / sqrt(n) * 1.3) # Kolmogorov, p below .001
    }
  }
  expect_identical(counted(50, 7, 3), counted(50, 7, 3))
  expect_identical(counted(50, 7, 3)[, 1:4], counted(50, 4, 3, mean = exp(4 + 1.5 * weft:::draws("normal", 4, key = 3,
                                                                                                 stream = 2))))
})

test_that("dispersions and residuals are as by their formulas", {
  x <- counted(30, 20, 5)
  depth <- rowSums(x)
  share <- colSums(x) / sum(depth)
  mean <- outer(depth, share)
  by_hand <- pmax(0, colSums(30 / 29 * (x - mean)^2 - mean) / colSums(mean^2))
  control <- weft:::pass_control()
  expect_equal(.Call(weft:::C_weft_pca_counts_moments, x, list(depth = depth, share = share), control), by_hand,
               ignore_attr = TRUE)
  how <- list(depth = depth, share = share, dispersion = by_hand, most = 2)
  z <- (x - mean) / sqrt(mean + rep(by_hand, each = 30) * mean^2)
  expect_equal(.Call(weft:::C_weft_pca_counts_residuals, x, how, control), pmax(-2, pmin(2, z)), ignore_attr = TRUE)
  model <- weft:::count_model(x, FALSE)
  expect_gt(stats::cor(model$depth, exp(0.3 * weft:::draws("normal", 30, key = 5, stream = 1))), 0.9)
  expect_identical(weft:::count_model(x, TRUE)$depth, depth)
})

test_that("components of counts are of residuals, with batches taken out, and outliers are told by the same", {
  x <- counted(24, 60, 6)
  batch <- rep(1:2, 12)
  q <- gene_quality(x, batch = batch, transform = "counts")
  data <- weft:::component_data(q)
  expect_lt(max(abs(stats::cor(data$x, batch))), 1e-10)
  fit <- gene_components(q, seed = 1)
  expect_equal(fit$sdev, stats::prcomp(data$x, scale. = TRUE)$sdev[seq_along(fit$sdev)])
  expect_no_error(gene_outliers(fit, data = q))
  plain <- gene_components(gene_quality(x, transform = "none"), seed = 1)
  expect_equal(plain$choice$k, pca_choose_k(x, "signs", scale = TRUE, max_k = 10, permutations = 19, seed = 1)$k)
})

test_that("independent counts seldom stand out, and two factors do", {
  alone <- vapply(1:20, function(key) {
    gene_components(gene_quality(counted(16, 60, 20 + key), transform = "counts"), seed = key)$choice$k
  }, 0)
  expect_lte(sum(alone > 0), 4) # of 20 at .05: more with probability .003
  factor <- weft:::draws("normal", 40, key = 4)
  x <- counted(40, 100, 7)
  x[, 1:30] <- round(x[, 1:30] * exp(factor))
  expect_identical(gene_components(gene_quality(x, transform = "counts"), seed = 1)$choice$k, 1L, ignore_attr = TRUE)
})

test_that("classes on components are tested within batches, and noise with a batch is no difference", {
  n <- 40
  class <- rep(1:2, each = 20)
  batch <- c(rep(1:2, c(17, 3)), rep(1:2, c(3, 17)))
  told <- vapply(1:20, function(key) {
    noise <- matrix(weft:::draws("normal", n * 100, key = key, stream = 5), n)
    x <- noise + outer(batch, weft:::draws("normal", 100, key = key, stream = 6))
    colnames(x) <- sprintf("g%d", 1:100)
    gene_components(gene_quality(x, class, batch, transform = "none"), seed = key)$apart$p
  }, 0)
  expect_lte(sum(told <= 0.05), 4) # of 20 at .05: more with probability .003
  scores <- matrix(weft:::draws("normal", n * 3, key = 9), n)
  q <- list(class = factor(class), batch = factor(batch), kind = "expression")
  found <- weft:::classes_on_components(scores, q, 199)
  partial <- apply(scores, 2, function(v) {
    rest <- stats::lm(v ~ factor(batch))
    1 - sum(stats::lm(v ~ factor(batch) + factor(class))$residuals^2) / sum(rest$residuals^2)
  })
  expect_equal(found$each, partial)
  expect_identical(found$best, which.max(partial))
  expect_identical(found$permutations, 199)
  orders <- weft:::orders_within(q$batch, n, 50)
  expect_true(all(apply(orders, 2, function(o) all(sort(o) == seq_len(n)) && all(batch[o] == batch))))
  expect_gt(length(unique(orders[1, ])), 5)
  scores[, 2] <- scores[, 2] + 3 * (class == 2)
  expect_identical(weft:::classes_on_components(scores, q, 199)[c("best", "p")], list(best = 2L, p = 1 / 200))
  q$batch <- NULL
  expect_equal(weft:::classes_on_components(scores, q)$p,
               min(1, 3 * summary(stats::aov(scores[, 2] ~ factor(class)))[[1]][["Pr(>F)"]][1]))
})

test_that("pairs are counted within batches, with classes permuted there", {
  e <- weft_example("snps", n = 120, p = 12)
  batch <- factor(rep(1:3, 40))
  q <- gene_quality(e$x, e$class, batch)
  own <- gene_pairs(q, permutations = 9, seed = 1)
  expect_equal(as.data.frame(own), as.data.frame(mi_pairs(q$x, q$class, top = 50, by = "interaction", strata = batch,
                                                          permutations = 9, seed = 1)))
  q$covariates <- data.frame(sex = factor(rep(1:2, 60)), site = factor(rep(1:60, 2)))
  expect_identical(nlevels(weft:::sample_strata(q)), 6L) # sixty sites would leave two samples each
})

test_that("correlations of values that batches were taken out of are tested as of fewer samples", {
  x <- matrix(weft:::draws("normal", 30 * 8, key = 2), 30, dimnames = list(NULL, letters[1:8]))
  q <- gene_quality(x, batch = rep(1:6, 5), transform = "none")
  m <- mi_matrix(q$x, estimator = "spearman")
  expect_identical(attr(weft:::less_taken_out(m, q), "test")$n, attr(m, "test")$n - 5L, ignore_attr = TRUE)
})
