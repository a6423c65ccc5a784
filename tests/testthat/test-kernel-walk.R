# Points of a hard kind, many enough for nodes with series and samples: list(q, x, w, h).
large_case <- function(seed) {
  withr::local_seed(seed)
  d <- sample(c(1, 1, 2, 2, 3, 5), 1)
  n <- sample(c(900, 3000), 1)
  self <- stats::runif(1) < 0.5
  points <- function(n) matrix(stats::rnorm(n * d), n)
  x <- switch(sample(c("plain", "clusters", "cauchy", "duplicates", "outlier", "offset", "scale"), 1),
              plain = points(n),
    clusters = points(n) * 0.05 + sample(c(0, 30), n, TRUE), cauchy = matrix(stats::rcauchy(n * d), n),
    duplicates = points(20)[sample(20, n, TRUE), , drop = FALSE], outlier = rbind(points(n - 1), 1e8),
    offset = points(n) + 1e4,
    scale = points(n) * 1e-6)
  spread <- stats::median(apply(x, 2, stats::mad)) + 1e-3 * min(apply(x, 2, stats::sd))
  h <- spread * exp(stats::runif(1, log(0.1), log(15)))
  if (d > 1 && stats::runif(1) < 0.3) h <- h * stats::runif(d, 0.5, 2)
  q <- if (self) x else points(400) * spread * 1.5 + rep(x[1, ], each = 400)
  w <- if (stats::runif(1) < 0.5) matrix(1, n, 1) else cbind(stats::rexp(n), abs(stats::rcauchy(n)))
  list(q = q, x = x, w = w, h = h, self = self,
       what = sprintf("seed %d: %d points, d = %d, h = %.3g", seed, n, d, h[1]))
}

test_that("series keep their bound on hard cases, and are used", {
  used <- 0
  for (seed in c(1:8, sample(1e8, 2))) {
    case <- large_case(seed)
    want <- kernel_sum(case$q, case$x, case$w, bandwidth = case$h, method = "direct", run = "cpu")
    for (epsilon in c(1e-2, 1e-7)) {
      got <- kernel_sum(case$q, case$x, case$w, bandwidth = case$h, rel_error = epsilon, method = "tree", run = "cpu",
                        control = list(nodes = "series"))
      expect_lte(max(0, abs(got - want) / ifelse(want > 1e-300, (epsilon + 1e-12) * want, Inf)), 1,
                 label = paste("series,", case$what, epsilon))
    }
    p <- weft:::kernel_problem(case$q, case$x, case$w, "gaussian", case$h, 1e-3, run = weft:::as_run("cpu"))
    used <- used + (weft:::kernel_run(p, "tree")$effort[["series"]] > 0)
    if (case$self) {
      left <- kernel_sum(case$x, weights = case$w, bandwidth = case$h, leave_one_out = TRUE, method = "direct",
                         run = "cpu")
      got <- kernel_sum(case$x, weights = case$w, bandwidth = case$h, leave_one_out = TRUE, rel_error = 1e-4,
                        method = "tree", run = "cpu", control = list(nodes = "series"))
      expect_lte(max(0, abs(got - left) / ifelse(left > 1e-300, 1e-4 * left, Inf)), 1,
                 label = paste("left out,", case$what))
    }
  }
  expect_gt(used, 0)
})

test_that("series are left out where their moments would take as long as the pairs", {
  withr::local_seed(3)
  effort <- function(n, nodes) {
    x <- matrix(rnorm(2 * n), ncol = 2)
    p <- weft:::kernel_problem(x, NULL, NULL, "gaussian", 2, 1e-3, run = weft:::as_run("cpu"))
    p$nodes <- nodes
    weft:::kernel_run(p, "tree")$effort[["series"]]
  }
  expect_equal(effort(1200, "auto"), 0)
  expect_gt(effort(1200, "series"), 0)
  expect_gt(effort(5000, "auto"), 0)
})

test_that("samples keep their bound at its rate, whatever the weights, and do not depend on threads", {
  withr::local_seed(7)
  x <- matrix(rnorm(3e5), ncol = 6)
  tree <- kernel_tree(x)
  q <- x[1:128, ]
  cases <- list(list("gaussian", rep(1, 5e4)), list("gaussian", abs(rcauchy(5e4))), list("laplacian", rnorm(5e4)),
                list("cauchy", runif(5e4)))
  for (case in cases) {
    run <- function(...) call_with(kernel_sum, list(q, tree, case[[2]], case[[1]], 4, rel_error = 0.1, method = "tree",
                                                    run = "cpu", seed = 5, ...,
                                                    control = list(confidence = 0.9, nodes = "samples")))
    got <- run()
    want <- kernel_sum(q, x, case[[2]], case[[1]], 4, method = "direct", run = "cpu")
    most <- kernel_sum(q, x, abs(case[[2]]), case[[1]], 4, method = "direct", run = "cpu")
    expect_lte(mean(abs(got - want) > 0.1 * most), 0.1, label = case[[1]])
    expect_identical(run(threads = 1), got)
  }
  p <- weft:::kernel_problem(q, NULL, NULL, "gaussian", 4, 0.1, confidence = 0.9, tree = tree)
  p$seed <- 5
  expect_gt(weft:::kernel_run(p, "tree")$effort[["samples"]], 0)
  expect_error(kernel_sum(q, x, control = list(nodes = "samples")), class = "weft_error_input", regexp = "confidence")
  expect_error(kernel_sum(q, x, kernel = "laplacian", control = list(nodes = "series")), class = "weft_error_input",
               regexp = "Gaussian")
})

test_that("a walk of many bandwidths gives what one of each gives", {
  withr::local_seed(8)
  x <- matrix(rnorm(3000), ncol = 2)
  tree <- kernel_tree(x)
  h <- c(0.5, 0.02, 3, 0.1)
  for (kernel in c("gaussian", "epanechnikov", "matern32", "uniform")) for (log in c(FALSE, TRUE)) {
    p <- weft:::kernel_problem(x, tree, NULL, kernel, 1, 1e-3, log = log, leave_one_out = TRUE)
    trees <- weft:::native_trees(p)
    got <- weft:::walk_trees(p, trees, weft:::split_weights(p), sort(h))$sum
    got[trees$query$order + 1L, ] <- got
    for (k in seq_along(h)) {
      want <- kernel_sum(x, kernel = kernel, bandwidth = sort(h)[k], leave_one_out = TRUE, log = log, method = "direct",
                         run = "cpu")
      off <- if (log) ifelse(want == got[, k], 0, abs(want - got[, k])) else abs(want - got[, k]) / pmax(want, 1e-300)
      expect_lte(max(off[want != 0 | log]), 1.01e-3, label = paste(kernel, sort(h)[k], log))
    }
  }
})

test_that("kernels convolved with themselves are their integrals", {
  for (kernel in setdiff(all_kernels, c("gaussian", "cauchy"))) {
    value <- function(r) weft:::kernel_value(kernel, r)
    at <- c(0, 0.4, 0.9, 1.3, 1.97)
    end <- if (weft:::is_compact(kernel)) 1 else 40
    want <- vapply(at, function(r) {
      cuts <- sort(unique(c(-end, 0, r, r - end, end)))
      cuts <- cuts[cuts >= -end & cuts <= end]
      sum(vapply(seq_len(length(cuts) - 1), function(k) {
        stats::integrate(function(t) value(abs(t)) * value(abs(t - r)), cuts[k], cuts[k + 1], rel.tol = 1e-9)$value
      }, 0))
    }, 0)
    zero <- weft:::convolution_at_zero(kernel, 1L)
    expect_equal(weft:::convolution_values(kernel, 1L, at, zero), want, tolerance = 1e-7, label = kernel)
    for (d in c(2L, 3L, 6L)) { # their integral over space is that of the kernel, squared
      r <- seq(0, if (weft:::is_compact(kernel)) 2 else 45, length.out = 401)
      g <- weft:::convolution_values(kernel, d, r, weft:::convolution_at_zero(kernel, d))
      mass <- sum((r^(d - 1) * g)[-1]) * r[2] * exp(weft:::log_sphere(d))
      expect_equal(mass, exp(2 * weft:::log_integral(kernel, d)), tolerance = 2e-3, label = paste(kernel, d))
      expect_equal(g[1], weft:::convolution_at_zero(kernel, d), tolerance = 1e-7)
    }
  }
})

test_that("least-squares scores are their definition for every kernel", {
  withr::local_seed(9)
  y <- c(rnorm(120), rnorm(80, 4, 0.5))
  two <- matrix(rnorm(80), ncol = 2)
  h <- c(0.3, 1)
  at <- seq(-50, 55, length.out = 4001)
  for (kernel in all_kernels) {
    volume <- exp(weft:::log_integral(kernel, 1)) * h
    want <- vapply(1:2, function(k) {
      f <- rowMeans(matrix(weft:::kernel_value(kernel, abs(outer(at, y, "-")) / h[k]), length(at))) / volume[k]
      each <- matrix(weft:::kernel_value(kernel, abs(outer(y, y, "-")) / h[k]), 200) / volume[k]
      sum(f^2) * (at[2] - at[1]) - 2 * (sum(each) - sum(diag(each))) / (200 * 199)
    }, 0)
    expect_equal(kernel_bandwidth(y, h, "lscv", kernel = kernel)$score, want, tolerance = 2e-3, label = kernel)
    if (kernel %in% c("cauchy", "gaussian")) next
    # in two dimensions: all pairs of the convolution
    zero <- weft:::convolution_at_zero(kernel, 2L)
    g <- weft:::convolution_values(kernel, 2L, as.vector(dist(two)) / 0.8, zero)
    mass <- exp(weft:::log_integral(kernel, 2L))
    k <- weft:::kernel_value(kernel, as.vector(dist(two)) / 0.8)
    want <- (40 * zero + 2 * sum(g)) / (40^2 * mass^2 * 0.64) - 2 * 2 * sum(k) / (40 * 39 * mass * 0.64)
    expect_equal(kernel_bandwidth(two, 0.8, "lscv", kernel = kernel)$score, want, tolerance = 1e-3, label = kernel)
  }
  expect_error(kernel_bandwidth(two, 1, "lscv", kernel = "cauchy"), class = "weft_error_input")
})
