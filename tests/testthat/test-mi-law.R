# The laws of pairs that are independent: against all orders of the rows where these can be listed, and on data sets
# without a link.

correlated <- function(x, estimator) {
  switch(estimator, pearson = x, spearman = , kendall = rank(x), copula = stats::qnorm(rank(x) / (length(x) + 1)))
}

tails <- function(x, estimator) weft:::column_tails(x + 0, estimator, weft:::run_control("cpu"))

test_that("kurtosis, ties' stretch and numbers of orders are the definitions", {
  columns <- withr::with_seed(1, list(
    stats::rnorm(40), stats::rt(40, 2) * 1e200, stats::rpois(40, 0.3), stats::rpois(40, 3), rep(2, 40),
    c(1, rep(0, 39)), replace(stats::rnorm(40) * 1e-200, 3:9, NA), replace(stats::rpois(40, 1) + 0, 30:40, NA),
    rep(NA_real_, 40)
  ))
  for (n in c(1, 2, 3, 4, 40)) for (estimator in c("pearson", "spearman", "copula", "kendall")) {
    x <- vapply(columns, `[`, numeric(n), seq_len(n))
    found <- tails(matrix(x, n), estimator)
    for (j in seq_along(columns)) {
      known <- stats::na.omit(matrix(x, n)[, j])
      m <- length(known)
      label <- paste(estimator, n, j)
      tied <- as.vector(table(known))
      z <- correlated(known, estimator)
      z <- (z - mean(z)) / max(abs(z), 1e-300)
      kurtosis <- 0
      if (m > 3 && length(tied) > 1) {
        kurtosis <- (m * (m + 1) * sum(z^4) / sum(z^2)^2 - 3 * (m - 1)) * (m - 1) / ((m - 2) * (m - 3))
      }
      expect_equal(found$kurtosis[j], kurtosis, tolerance = 1e-9, label = label)
      orders <- lfactorial(m) - sum(lfactorial(tied)) - (m > 1 && all(tied == 1)) * log(2)
      expect_equal(found$orders[j], orders, tolerance = 1e-12, label = label)
      stretch <- 1
      if (m > 2 && length(tied) > 1) {
        stretch <- (1 - sum(tied * (tied - 1) * (tied - 2)) / (m * (m - 1) * (m - 2))) /
          (1 - sum(tied * (tied - 1)) / (m * (m - 1)))
      }
      expect_equal(found$stretch[j], stretch, tolerance = 1e-12, label = label)
    }
  }
  expect_identical(lengths(tails(matrix(0, 5, 0), "pearson")), c(kurtosis = 0L, stretch = 0L, orders = 0L))
})

test_that("of many rows ranks are sampled, and ties that samples miss are seen", {
  n <- 50001
  x <- withr::with_seed(2, cbind(stats::rnorm(n), stats::rpois(n, 0.4), replace(numeric(n), 50000, 1),
                                 stats::rexp(n)^3))
  found <- tails(x, "spearman")
  z <- apply(x, 2, rank)
  kurtosis_of <- function(r) mean((r - mean(r))^4) / mean((r - mean(r))^2)^2 - 3
  kurtosis <- apply(z, 2, kurtosis_of)
  expect_equal(found$kurtosis[-3], kurtosis[-3], tolerance = 0.03)
  expect_equal(found$kurtosis[3], n, tolerance = 1e-6)
  expect_equal(found$orders[3], log(n))
  raw <- tails(x, "pearson")
  expect_equal(raw$kurtosis[4], kurtosis_of(x[, 4]), tolerance = 1e-3)
  expect_identical(raw$orders, rep(Inf, 4))
})

test_that("the law has the moments of all orders of the rows", {
  n <- 7
  orders <- all_orders(n)
  data <- withr::with_seed(3, list(normal = stats::rnorm(2 * n), ties = stats::rpois(2 * n, 1),
                                   heavy = stats::rt(2 * n, 1)))
  for (name in names(data)) for (estimator in c("pearson", "spearman", "copula")) {
    x <- correlated(data[[name]][1:n], estimator)
    y <- correlated(data[[name]][n + 1:n], estimator)
    r2 <- stats::cor(x, matrix(y[t(orders)], n))^2
    test <- c(list(estimator = estimator, n = n), tails(matrix(data[[name]], n), estimator))
    law <- weft:::pair_law(test, 2)
    above <- function(s) law$p_value(-log1p(-s) / 2, n, 1, 2)
    mean <- stats::integrate(above, 0, 1, rel.tol = 1e-8, stop.on.error = FALSE)$value
    second <- stats::integrate(function(s) 2 * s * above(s), 0, 1, rel.tol = 1e-8, stop.on.error = FALSE)$value
    expect_equal(mean, mean(r2), tolerance = 1e-3, label = paste(name, estimator))
    expect_equal(second, mean(r2^2), tolerance = 0.12, label = paste(name, estimator)) # kurtosis is in steps
  }
})

test_that("p-values are near those of all orders, and never below one over their number", {
  n <- 8
  orders <- all_orders(n)
  x <- withr::with_seed(4, matrix(stats::rnorm(n * 6), n))
  x[, 2] <- x[, 1] + x[, 2] / 3
  x[, 4] <- x[, 3] + x[, 4] / 8
  x[, 5:6] <- round(x[, 5:6])
  for (estimator in c("pearson", "spearman", "copula", "kendall")) {
    p <- weft:::pair_p_values(mi_matrix(x, estimator = estimator))
    for (at in list(c(1, 2), c(3, 4), c(1, 3), c(5, 6), c(1, 5))) {
      of <- function(rows) stats::cor(correlated(x[, at[1]], estimator), correlated(x[, at[2]], estimator)[rows],
                                      method = if (estimator == "kendall") "kendall" else "pearson")
      found <- abs(if (estimator == "kendall") apply(orders[seq(1, 40320, 29), ], 1, of) else
        as.vector(stats::cor(correlated(x[, at[1]], estimator),
                             matrix(correlated(x[, at[2]], estimator)[t(orders)], n))))
      exact <- mean(found >= abs(of(1:n)) - 1e-12)
      if (exact > 0.002) expect_within_factor(p[at[1], at[2]], exact, 2.2, label = paste(estimator, at[1], at[2]))
    }
  }
  straight <- cbind(1:5, 1:5 + 0.5, c(2, 1, 5, 3, 4))
  for (estimator in c("pearson", "spearman", "copula", "kendall")) {
    p <- weft:::pair_p_values(mi_matrix(straight, estimator = estimator))
    expect_gte(p[1, 2], 1 / 60 - 1e-12)
    expect_identical(nrow(as.data.frame(mi_network(matrix(c(1, 2, 5, 3), 2), "relnet", estimator = estimator))), 0L)
  }
})

test_that("data without a link give few edges: few rows, ties, counts, outliers", {
  sets <- list(
    normal = function(n) stats::rnorm(n * 60), heavy = function(n) stats::rt(n * 60, 3),
    counts = function(n) log1p(stats::rnbinom(n * 60, mu = rep(exp(stats::rnorm(60, 0.5, 1.2)), each = n), size = 1)),
    sparse = function(n) stats::rpois(n * 60, rep(stats::runif(60, 0.05, 0.5), each = n))
  )
  estimators <- c("pearson", "spearman", "copula", "kendall")
  for (name in names(sets)) for (estimator in estimators) for (n in c(5, 8, 12, 20)) {
    found <- withr::with_seed(5, vapply(1:15, function(k) {
      net <- mi_network(matrix(sets[[name]](n), n), "relnet", estimator = estimator, fdr = 0.05)
      nrow(as.data.frame(net)) > 0
    }, NA))
    expect_lte(sum(found), 4, label = paste(name, estimator, n)) # a binomial of 15 and 0.05 is more in 1 of 1,700
  }
  noise <- withr::with_seed(1, matrix(stats::rnorm(8 * 300), 8))
  q <- suppressWarnings(gene_quality(noise, rep(1:2, 4)))
  for (method in c("clr", "aracne", "mrnet")) {
    expect_identical(weft:::count_edges(gene_mi_network(q, method = method)), 0)
  }
})

test_that("a test of no pairs finds no edge", {
  for (columns in 0:1) for (estimator in c("pearson", "spearman", "copula", "kendall")) {
    net <- mi_network(matrix(stats::rnorm(9 * columns), 9), "relnet", estimator = estimator, fdr = 0.05)
    expect_identical(nrow(as.data.frame(net)), 0L)
  }
})

test_that("an outlier that two columns share is no evidence, and a link is found beside it", {
  x <- withr::with_seed(6, matrix(stats::rnorm(50 * 4), 50))
  x[7, 1:2] <- 1000
  x[, 4] <- x[, 3] + x[, 4] / 2
  p <- weft:::pair_p_values(mi_matrix(x, estimator = "pearson"))
  expect_gt(p[1, 2], 0.01)
  expect_lt(p[3, 4], 1e-10)
})

test_that("thresholds of kinds are those of every pair", {
  w <- withr::with_seed(7, { w <- matrix(stats::runif(64), 8); w + t(w) })
  thresholds <- list(kind = c(0L, 1L, 2L, 0L, 1L, 1L, 0L, 2L),
                     threshold = matrix(c(0.8, 1, Inf, 1, 1.2, 0.5, Inf, 0.5, 0), 3))
  each <- outer(1:8, 1:8, function(i, j) thresholds$threshold[cbind(thresholds$kind[i], thresholds$kind[j]) + 1L])
  reaches <- w >= each
  for (threads in 1:2) {
    control <- weft:::pass_control(threads)
    expect_identical(.Call(weft:::C_weft_mi_reaching_thresholds, w, thresholds, control),
                     vapply(1:8, function(j) sum(reaches[seq_len(j - 1), j]) + 0, 0))
    other_name <- w
    expect_identical(.Call(weft:::C_weft_mi_cut_thresholds, w, w, thresholds, control), w * reaches)
    expect_identical(other_name, w) # what has another name is left alone
  }
})

test_that("results saved before columns' laws were recorded keep a test", {
  m <- mi_matrix(mtcars[1:4], estimator = "pearson")
  old <- m
  attr(old, "test") <- attr(m, "test")[c("estimator", "n")]
  expect_equal(weft:::pair_p_values(old)[1, 2], stats::cor.test(mtcars[[1]], mtcars[[2]])$p.value, tolerance = 1e-6)
  for (name in c("kurtosis", "stretch", "orders")) for (wrong in list(1:2, "a", c(1, 2, NA, 4), c(-Inf, 1, 2, 3))) {
    bad <- m
    attr(bad, "test")[[name]] <- wrong
    expect_error(mi_network(bad, fdr = 0.05), "`test`", class = "weft_error_input")
  }
})
