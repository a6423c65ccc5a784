# The records of kernels: R's against native code's, and both against the kernels themselves.
sheet <- weft:::kernel_sheet()

test_that("R and native code have the same kernels", {
  native <- unname(vapply(all_kernels, weft:::native_kernel, ""))
  expect_setequal(native, sheet$name)
  expect_identical(native[duplicated(native)], "laplacian")
  expect_identical(anyDuplicated(sheet$name), 0L)
  expect_setequal(compact_kernels, c("uniform", sheet$name[sheet$form == "COMPACT"]))
  for (kernel in compact_kernels) expect_identical(kernel_value(kernel, c(1.001, 2)), c(0, 0), label = kernel)
  for (kernel in setdiff(all_kernels, compact_kernels)) expect_gt(kernel_value(kernel, 20), 0, label = kernel)
})

test_that("a kernel that native code lacks is an error", {
  problem <- kernel_problem(1:3, NULL, NULL, "gaussian", 1, run = weft_run(threads = 1))
  points <- native_points(problem$reference, problem)
  task <- native_task(problem, points, points, split_weights(problem))
  for (name in list("box", NULL, NA_character_, 3L, c("gaussian", "cauchy"))) {
    task["kernel"] <- list(name)
    expect_error(.Call(C_weft_kernel_direct, task, problem$control), class = "weft_error_internal",
                 regexp = "no kernel")
  }
})

test_that("kernels are 1 at 0, never increase, and are convex in the square of the distance", {
  s <- seq(0, 4, length.out = 20001)
  for (kernel in setdiff(all_kernels, "uniform")) {
    k <- kernel_by_hand(kernel, sqrt(s))
    expect_identical(k[1], 1, label = kernel)
    expect_lte(max(diff(k)), 0, label = kernel)
    expect_gte(min(diff(diff(k))), -1e-15, label = kernel)
  }
})

test_that("slopes are those of the kernels, rounded up", {
  r <- c(10^seq(-3, -2, length.out = 2000), seq(0.01, 20, length.out = 200001))
  step <- 1e-4
  for (row in which(sheet$form != "STEP")) {
    kernel <- sheet$name[row]
    slope <- abs(kernel_by_hand(kernel, r + r * step) - kernel_by_hand(kernel, r - r * step)) / (2 * r * step)
    by_square <- slope / (2 * r)
    found <- c(d1 = max(slope), d2 = max(r * slope), e0 = max(by_square), e1 = max(r^2 * by_square))
    stated <- unlist(sheet[row, names(found)])
    if (sheet$single[row] == "APART") stated <- stated[c("d1", "d2")]
    else expect_true(all(is.finite(stated)), label = kernel)
    expect_true(all(stated >= found[names(stated)] * (1 - 1e-6)), label = paste(kernel, "slopes, at least"))
    expect_true(all(stated <= found[names(stated)] * 1.01), label = paste(kernel, "slopes, nearly"))
  }
})

test_that("integrals are those of the kernels", {
  for (kernel in all_kernels) for (d in if (kernel == "cauchy") 1 else 1:8) {
    end <- if (kernel %in% compact_kernels) 1 else Inf
    radial <- stats::integrate(function(r) r^(d - 1) * kernel_by_hand(kernel, r), 0, end, rel.tol = 1e-10)$value
    expect_equal(weft:::kernel_kinds[[kernel]]$log_radial(d), log(radial), tolerance = 1e-9, label = paste(kernel, d))
  }
})

test_that("definite kernels are, in as many dimensions as are stated", {
  withr::local_seed(1)
  for (kernel in definite_kernels) for (d in unique(pmin(1:8, weft:::kernel_kinds[[kernel]]$definite))) {
    x <- matrix(runif(150 * d), 150)
    for (h in c(0.3, 2) * sqrt(d)) {
      least <- min(eigen(kernel_value_matrix(x, x, h, kernel), symmetric = TRUE, only.values = TRUE)$values)
      expect_gt(least, -1e-12, label = paste(kernel, d, h))
    }
  }
  x <- matrix(runif(900), ncol = 3)
  for (kernel in setdiff(compact_kernels, definite_kernels)) {
    least <- min(eigen(kernel_value_matrix(x, x, 0.5, kernel), symmetric = TRUE, only.values = TRUE)$values)
    expect_lt(least, -0.01, label = kernel)
  }
})

test_that("frequencies are drawn from the kernel's spectrum", {
  r <- c(0.2, 0.7, 1.5, 3)
  for (kernel in setdiff(definite_kernels, compact_kernels)) for (d in c(1L, 3L)) {
    omega <- weft:::spectral_draws(kernel, d, 2e4, c(1, 2), 1)
    got <- vapply(r, function(r) mean(cos(r * omega[1L, ])), 0)
    expect_equal(got, kernel_by_hand(kernel, r), tolerance = 0.03, label = paste(kernel, d))
  }
})

test_that("what lies very far adds nothing, whatever the kernel", {
  for (kernel in all_kernels) {
    for (far in c(1e14, 1e100)) for (method in c("direct", "tree")) {
      got <- kernel_sum(0, c(0, far), kernel = kernel, method = method)
      expect_identical(got, 1, label = paste(kernel, far, method))
    }
    if (of_sheet(kernel, "single") == "NEVER") next
    expect_identical(as.vector(kernel_sum(0, c(0, 1e14), kernel = kernel,
                                          control = list(precision = "single"))), 1, label = kernel)
  }
})

test_that("a kernel that is definite in few dimensions is refused in more", {
  withr::local_seed(2)
  x <- matrix(runif(2000), ncol = 4)
  low <- x[, 1:3]
  input <- function(...) expect_error(..., class = "weft_error_input")
  input(gp_regression(x, x[, 1], "wendland"), regexp = "up to 3 dimensions")
  expect_identical(gp_regression(low, x[, 1], "wendland", noise = 0.1)$n, 500L)
  some <- function(x, method) {
    kernel_sum(x, kernel = "wendland", bandwidth = 4, rel_error = 0.1, method = method,
               control = list(confidence = 0.9))
  }
  want <- kernel_sum(low, kernel = "wendland", bandwidth = 4, method = "direct")
  expect_lte(max(abs(some(low, "nystrom") / want - 1)), 0.1)
  input(some(x, "nystrom"), regexp = "in more than 3 dimensions")
  input(some(low, "features"), regexp = "No spectrum")
})
