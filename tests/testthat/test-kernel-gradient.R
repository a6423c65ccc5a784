# Derivatives of kernel sums beside finite differences of definitions by hand, and densities without their first bias.

# Central differences of order four, for which kinks are too near with some kernels: points on a ring avoid them.
by_differences <- function(f, q, e) {
  vapply(seq_along(q), function(j) {
    u <- replace(numeric(length(q)), j, e)
    (8 * (f(q + u) - f(q - u)) - f(q + 2 * u) + f(q - 2 * u)) / (12 * e)
  }, 0)
}

test_that("gradients and traces are those of finite differences", {
  withr::local_seed(51)
  for (kernel in names(kernel_slopes)) for (d in c(1, 2, 5)) for (shape in c("one", "each", "full")) {
    h <- switch(shape, one = 1.3, each = runif(d, 0.8, 1.5), full = crossprod(matrix(rnorm(d^2), d) / 3) + diag(d))
    root <- switch(shape, full = t(chol(h)), diag(h, d))
    x <- matrix(rnorm(40 * d), 40)
    length_x <- sqrt(rowSums(x^2))
    x <- 5 + (x / length_x * (length_x %% 0.8 + 0.1)) %*% t(root) # within .9 bandwidths of the query
    if (d > 1) x <- rbind(x, 5 + 0 * x[1, ] + 4 * root[, 1]) # and one out of reach
    w <- rnorm(nrow(x))
    q <- rep(5, d)
    trace <- !kernel %in% c("epanechnikov", "matern32")
    got <- kernel_gradient(t(q), x, w, kernel, h, trace = trace)
    f <- function(z) sum(w * kernel_value(kernel, sqrt(colSums(forwardsolve(root, t(x) - z)^2))))
    info <- paste(kernel, d, shape)
    expect_equal(got$sum, f(q), tolerance = 1e-12, info = info)
    expect_equal(as.vector(got$gradient), by_differences(f, q, 2e-3), tolerance = 1e-7, info = info)
    if (!trace) next
    slopes <- vapply(seq_len(d), function(j) {
      by_differences(function(z) kernel_gradient(t(replace(q, j, z)), x, w, kernel, h)$gradient[j], q[j], 2e-3)
    }, 0)
    expect_equal(got$trace, sum(slopes), tolerance = 1e-7, info = info)
  }
})

test_that("gradients keep their error with every method that may be chosen", {
  withr::local_seed(52)
  for (d in 1:4) for (n in c(300, 3000)) {
    x <- matrix(rnorm(n * d), n) * rep(c(1, 3, 0.2, 1)[1:d], each = n) + 100
    q <- x[seq_len(100), , drop = FALSE]
    h <- 0.3 * c(1, 3, 0.2, 1)[1:d]
    exact <- kernel_gradient(q, x, bandwidth = h, trace = TRUE)
    u <- function(j) outer(q[, j], x[, j], function(a, b) (b - a) / h[j])
    k <- exp(-0.5 * Reduce(`+`, lapply(seq_len(d), function(j) u(j)^2)))
    for (j in seq_len(d)) {
      expect_lt(max(abs(rowSums(k * u(j)) / h[j] - exact$gradient[, j]) / rowSums(k)) * h[j], 1e-10)
    }
    for (error in c(1e-2, 1e-5)) {
      near <- kernel_gradient(q, x, bandwidth = h, rel_error = error, trace = TRUE)
      one <- kernel_gradient(q, x, bandwidth = h, rel_error = error, run = weft_run("cpu", threads = 1))
      two <- kernel_gradient(q, x, bandwidth = h, rel_error = error, run = weft_run("cpu", threads = 2))
      expect_identical(one, two)
      expect_lte(max(abs(near$sum / exact$sum - 1)), error)
      expect_lte(max(abs(near$gradient - exact$gradient) * rep(h, each = 100) / exact$sum), error)
      expect_lte(max(abs(near$trace - exact$trace) / exact$sum) / sum(1 / h^2), 2 * error)
    }
  }
})

# What a device does pair by pair, by its twin.
test_that("gradients by pairs are those by sums", {
  withr::local_seed(54)
  for (kernel in setdiff(names(kernel_slopes), "epanechnikov")) for (d in c(1, 3, 9)) {
    x <- matrix(rnorm(60 * d), 60) + 10
    q <- matrix(rnorm(7 * d), 7) + 10
    w <- rnorm(60)
    full <- crossprod(matrix(rnorm(d^2), d) / 3) + diag(d)
    for (h in list(1.5, seq(1, 2, length.out = d), full)) {
      problem <- list(query = q, reference = x, self = FALSE, weights = matrix(w), leave_one_out = FALSE,
                      bandwidth = check_bandwidth(h, d, 20), trace = !(is.matrix(h) && d > 1))
      slope <- kernel_slopes[[kernel]]
      trace <- problem$trace && kernel != "matern32"
      frame <- gradient_frame(q, x, problem$bandwidth)
      sum_of <- function(kernel, wider, columns, ...) kernel_sum(q, x, columns, kernel, scale_bandwidth(h, wider))
      want <- gradient_sums(slope, frame, matrix(w), trace, 0, sum_of)
      got <- slopes_by_pairs(problem, slope, run_control("cpu"))
      expect_equal(got[names(want)], want, tolerance = 1e-10, info = paste(kernel, d, length(h)))
      expect_identical(slopes_by_pairs(problem, slope, run_control("cpu", 1L)), slopes_by_pairs(problem, slope,
                                                                                              run_control("cpu", 2L)))
    }
  }
  x <- matrix(c(0, 0, 1, 0), 2)
  own <- list(query = x, reference = x, self = TRUE, weights = NULL, leave_one_out = TRUE,
              bandwidth = check_bandwidth(1, 2, 1), trace = FALSE)
  expect_equal(slopes_by_pairs(own, kernel_slopes$gaussian, run_control("cpu"))$sum, rep(exp(-0.5), 2))
})

test_that("gradients of hard input", {
  expect_identical(dim(kernel_gradient(matrix(0, 0, 2), matrix(1, 3, 2))$gradient), c(0L, 2L))
  none <- kernel_gradient(matrix(1, 2, 2), matrix(0, 0, 2), trace = TRUE)
  expect_identical(none, list(sum = c(0, 0), gradient = matrix(0, 2, 2), trace = c(0, 0)))
  same <- kernel_gradient(matrix(7, 4, 3), leave_one_out = TRUE, trace = TRUE)
  expect_equal(same, list(sum = rep(3, 4), gradient = matrix(0, 4, 3), trace = rep(-9, 4)))
  for (unit in c(1e-60, 1, 1e60)) {
    x <- c(0, 1, 3) * unit
    expect_equal(drop(kernel_gradient(x, bandwidth = unit)$gradient) * unit, drop(kernel_gradient(c(0, 1, 3))$gradient))
  }
  named <- matrix(c(1, 2, 3, 4), 2, dimnames = list(c("a", "b"), c("u", "v")))
  expect_identical(dimnames(kernel_gradient(named)$gradient), dimnames(named))
  expect_identical(names(kernel_gradient(named)$sum), c("a", "b"))
  expect_error(kernel_gradient(named, named[, 1]), "same columns", class = "weft_error_input")
  expect_error(kernel_gradient(named, kernel = "cauchy"), class = "weft_error_input")
  expect_error(kernel_gradient(named, kernel = "matern32", trace = TRUE), "matern52", class = "weft_error_input")
  expect_error(kernel_gradient(named, weights = named), "one number", class = "weft_error_input")
  expect_error(kernel_gradient(replace(named, 1, NA)), class = "weft_error_input")
})

test_that("a density that is moved by its score has less bias", {
  withr::local_seed(53)
  x <- cbind(rnorm(400), rnorm(400))
  h <- c(0.5, 0.7)
  k <- exp(-0.5 * ((outer(x[, 1], x[, 1], "-") / h[1])^2 + (outer(x[, 2], x[, 2], "-") / h[2])^2))
  expect_equal(kde(x, h, bias = "score", rel_error = 0)$data, (x + k %*% x / rowSums(k)) / 2, tolerance = 1e-10)
  expect_equal(kde(x, diag(h^2), bias = "score", rel_error = 0)$data, (x + k %*% x / rowSums(k)) / 2, tolerance = 1e-10)
  expect_equal(kde(x, bias = "score")$bandwidth, apply(x, 2, sd) * 400^(-1 / 6))
  # E f = f + O(h^4): at the peak of a normal density with 20,000 points and h = .5
  y <- qnorm((seq_len(20000) - 0.5) / 20000)
  at <- c(0, 1, 2)
  plain <- abs(predict(kde(y, 0.5), at) - dnorm(at))
  moved <- abs(predict(kde(y, 0.5, bias = "score"), at) - dnorm(at))
  expect_true(all(moved < plain / 2))
  d <- kde(y, 0.5, bias = "score")
  expect_equal(sum(predict(d, seq(-6, 6, 0.01))) * 0.01, 1, tolerance = 1e-6)
  expect_error(kde(x, bias = "score", kernel = "biweight"), "Gaussian", class = "weft_error_input")
  expect_silent(kde(c(0, 1e5), 1, bias = "score"))
})
