# |got - reference| as a fraction of the bound; below 1e-300 nothing is owed.
excess <- function(got, want, bound) {
  off <- abs(as.vector(got) - as.vector(want))
  max(0, ifelse(off <= 1e-300, 0, off / as.vector(bound)))
}

# Draws a hard case, sums it in every way, and names the seed of what fails.
check_case <- function(seed) {
  case <- hard_case(seed)
  kernel <- sample(all_kernels, 1)
  epsilon <- sample(c(0.5, 0.1, 0.01, 1e-4, 1e-8), 1)
  tau <- sample(c(0, 0, 1e-3), 1)
  info <- sprintf("seed %d: %s, %s, rel_error %g, abs_error %g", seed, kernel, case$what, epsilon, tau)
  plain <- quad_sum(case$q, case$x, case$w, case$h, kernel)
  signed <- quad_sum(case$q, case$x, case$signed, case$h, kernel)
  left <- quad_sum(case$x, case$x, case$w, case$h, kernel, TRUE)
  tree <- kernel_tree(case$x, sample(c("kd", "ball", "vp", "rp"), 1), leaf_size = sample(c(1, 5, 32, 50), 1),
                      seed = seed)
  sum_of <- function(w, ...) call_with(kernel_sum, list(case$q, case$x, w, kernel, case$h, ...,
                                                        control = list(tree = tree)))
  own <- function(...) call_with(kernel_sum, list(case$x, weights = case$w, kernel = kernel, bandwidth = case$h,
                                                  leave_one_out = TRUE, ...))
  for (method in c("direct", "tree")) {
    expect_lte(excess(sum_of(case$w, method = method), plain$sum, 1e-12 * plain$absolute), 1,
               label = paste("exact,", method, info))
    expect_lte(excess(sum_of(case$signed, method = method), signed$sum, 1e-12 * signed$absolute), 1,
               label = paste("signed,", method, info))
    expect_lte(excess(own(method = method), left$sum, 1e-12 * left$absolute), 1,
               label = paste("left out,", method, info))
    logs <- sum_of(case$w, method = method, log = TRUE)
    known <- is.finite(plain$log) & plain$log > -11300 # below, the reference itself is subnormal
    expect_lte(max(0, abs(logs - plain$log)[known] / pmax(1, 1e-4 * abs(plain$log[known]))), 1e-10,
               label = paste("logarithms,", method, info))
  }
  expect_lte(excess(sum_of(case$w, method = "tree", rel_error = epsilon, abs_error = tau), plain$sum,
                    epsilon * plain$sum + tau), 1,
             label = paste("bound,", info))
  expect_lte(excess(sum_of(case$signed, method = "tree", rel_error = epsilon, abs_error = tau), signed$sum,
                    epsilon * signed$absolute + tau), 1,
             label = paste("signed bound,", info))
  expect_lte(excess(own(method = "tree", rel_error = epsilon), left$sum, epsilon * left$sum), 1,
             label = paste("left out bound,", info))
  single <- tryCatch(sum_of(case$signed, precision = "single"), weft_error_input = function(e) NULL)
  if (!is.null(single)) expect_lte(excess(single, signed$sum, attr(single, "error_bound")), 1,
                                   label = paste("single,", info))
}

test_that("sums are exact and bounds hold on hard cases", {
  for (seed in kept_seeds()) check_case(seed)
})

test_that("sums are exact and bounds hold on new hard cases", {
  skip_on_cran()
  for (seed in sample(1e8, 4)) {
    withCallingHandlers(check_case(seed), expectation_failure = function(e) keep_seed(seed),
                        error = function(e) keep_seed(seed))
  }
})

test_that("every kernel is its definition", {
  r <- c(0, 0.3, 0.999, 1, 1.001, 2.5)
  for (kernel in all_kernels) {
    want <- kernel_by_hand(kernel, r)
    for (h in c(1, 2, 0.25)) for (method in c("direct", "tree")) {
      got <- kernel_sum(r * h, 0, kernel = kernel, bandwidth = h, method = method)
      expect_equal(got, want, tolerance = 1e-13, label = kernel)
    }
    expect_equal(weft:::kernel_value(kernel, r), want, tolerance = 1e-14, label = kernel)
  }
  x <- matrix(c(1, 2, 3, 4), 2)
  expect_equal(kernel_sum(x, weights = c(2, -1), kernel = kernel_polynomial(scale = 0.5, offset = 1, degree = 3)),
               drop((0.5 * tcrossprod(x) + 1)^3 %*% c(2, -1)))
})

test_that("vector variants and threads agree", {
  withr::local_seed(1)
  x <- matrix(rnorm(3000), ncol = 3)
  w <- matrix(rnorm(2000), ncol = 2)
  for (kernel in all_kernels) {
    run <- function(method, threads = 1, ...) call_with(kernel_sum, list(x, weights = w, kernel = kernel,
                                                                         bandwidth = 0.7, method = method,
                                                                         run = weft_run("cpu", threads = threads),
                                                                         ...))
    want <- run("direct")
    expect_identical(run("direct", threads = 2), want)
    bounded <- run("tree", rel_error = 0.1)
    expect_identical(run("tree", threads = 2, rel_error = 0.1), bounded)
    for (level in simd_levels()) {
      expect_equal(with_simd_level(level, run("direct")), want, tolerance = 1e-12, label = paste(kernel, level))
      expect_equal(with_simd_level(level, run("tree")), want, tolerance = 1e-12, label = paste(kernel, level))
      if (kernel != "uniform") {
        single <- with_simd_level(level, run("direct", precision = "single"))
        expect_true(all(abs(single - want) <= attr(single, "error_bound")), label = paste(kernel, level))
      }
    }
  }
})

test_that("auto gives the same sums and says what it did", {
  withr::local_seed(2)
  x <- matrix(runif(40000), ncol = 2)
  want <- kernel_sum(x, kernel = "epanechnikov", bandwidth = 0.02, method = "direct")
  expect_message(got <- kernel_sum(x, kernel = "epanechnikov", bandwidth = 0.02,
                                   run = weft_run(verbose = TRUE)), "tree")
  expect_equal(got, want, tolerance = 1e-12)
  expect_message(kernel_sum(x[1:10, ], run = weft_run(verbose = TRUE)), "direct")
})

test_that("trees are reused, saved and refused by version", {
  withr::local_seed(3)
  x <- matrix(rnorm(900), ncol = 3, dimnames = list(NULL, c("a", "b", "c")))
  want <- kernel_sum(x, bandwidth = 0.5)
  for (type in c("kd", "ball", "vp", "rp")) {
    tree <- kernel_tree(x, type)
    expect_identical(tree, { t <- kernel_tree(x, type, seed = 1)
      if (type == "rp") tree else { t$seconds <- tree$seconds; t } })
    file <- withr::local_tempfile()
    saveRDS(tree, file)
    back <- readRDS(file)
    expect_equal(kernel_sum(x, bandwidth = 0.5, method = "tree", control = list(tree = back)), want, tolerance = 1e-12)
    expect_equal(kernel_sum(x, back, bandwidth = 0.5, method = "tree"), want, tolerance = 1e-12)
    expect_equal(kernel_sum(x, bandwidth = c(1, 2, 0.5), method = "tree", control = list(tree = back)),
                 kernel_sum(x, bandwidth = c(1, 2, 0.5)), tolerance = 1e-12)
    expect_output(print(tree), paste(type, "tree of 300 points in 3 dimensions"))
  }
  attr(back, "format") <- 99L
  expect_error(kernel_sum(x, control = list(tree = back)), class = "weft_error_input", regexp = "Compute it again")
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  expect_silent(plot(kernel_tree(x[, 1:2])))
  expect_error(plot(tree), class = "weft_error_input", regexp = "two dimensions")
})

test_that("approximations keep their bound at their rate", {
  withr::local_seed(4)
  x <- matrix(rnorm(40000), ncol = 4)
  q <- x[1:200, ]
  w <- cbind(runif(1e4), rnorm(1e4))
  want <- kernel_sum(q, x, w, bandwidth = 2.5)
  most <- kernel_sum(q, x, abs(w), bandwidth = 2.5)
  for (method in c("montecarlo", "features", "nystrom")) {
    got <- kernel_sum(q, x, w, bandwidth = 2.5, rel_error = 0.03, method = method, seed = 5,
                      control = list(confidence = 0.95))
    expect_lte(mean(abs(got - want) > 0.03 * most), if (method == "nystrom") 0 else 0.05)
    expect_identical(kernel_sum(q, x, w, bandwidth = 2.5, rel_error = 0.03, method = method, seed = 5,
                                run = weft_run(threads = 1), control = list(confidence = 0.95)), got)
  }
  expect_error(kernel_sum(q, x, method = "montecarlo", rel_error = 0.1), class = "weft_error_input",
               regexp = "confidence")
  expect_error(kernel_sum(q, x, method = "nystrom"), class = "weft_error_input", regexp = "exact")
  expect_error(kernel_sum(q, x, kernel = "uniform", method = "features", rel_error = 0.1,
                          control = list(confidence = 0.9)),
               class = "weft_error_input", regexp = "positive definite")
})

test_that("edges: no rows, one point, far queries, data frames", {
  none <- matrix(0, 0, 2)
  x <- matrix(c(0, 1, 0, 1), 2)
  expect_identical(kernel_sum(x, none), c(0, 0))
  expect_identical(kernel_sum(x, none, log = TRUE), c(-Inf, -Inf))
  expect_identical(kernel_sum(none, x), numeric())
  expect_identical(dim(kernel_sum(x, x, weights = matrix(1, 2, 3))), c(2L, 3L))
  expect_identical(kernel_sum(x + 100, x, kernel = "biweight", method = "tree"), c(0, 0))
  expect_identical(kernel_sum(x + 100, x, kernel = "biweight", method = "direct"), c(0, 0))
  expect_equal(kernel_sum(as.data.frame(x), x), kernel_sum(x))
  expect_identical(kernel_sum(1, leave_one_out = TRUE), 0)
  expect_equal(kernel_sum(x + 1e4, x, log = TRUE, method = "tree"),
               kernel_sum(x + 1e4, x, log = TRUE, method = "direct"),
               tolerance = 1e-12)
  expect_identical(colnames(kernel_sum(x, weights = cbind(a = 1:2, b = 1))), c("a", "b"))
})

test_that("errors say what must be", {
  x <- matrix(rnorm(20), 10)
  input <- function(...) expect_error(call_with(kernel_sum, list(...)), class = "weft_error_input")
  input(x, kernel = "box")
  input(x, bandwidth = 0)
  input(x, bandwidth = c(1, 2, 3))
  input(x, bandwidth = matrix(c(1, 2, 2, 1), 2))
  input(x, bandwidth = NA_real_)
  input(replace(x, 3, NA))
  input(replace(x, 3, Inf))
  input(x, x[, 1])
  input(x, x[1:5, ], leave_one_out = TRUE)
  input(x, weights = 1:3)
  input(x, weights = -(1:10), log = TRUE)
  input(x, kernel = "polynomial", log = TRUE)
  input(x, kernel = "polynomial", method = "tree")
  input(x, kernel = "uniform", precision = "single")
  input(x * 1e9, bandwidth = 1e-9, precision = "single")
  input(x, tree = 1)
  input("a")
  input(x, rel_error = -1)
  input(x, rel_error = 2)
  input(NULL, x)
  input(reference = x)
  input()
  expect_error(kernel_sum(x, c(1, 2)), class = "weft_error_input", regexp = "one point")
  input(x, bandwidth = 1e-120)
  input(data.frame(a = letters[1:3]))
  expect_error(kernel_sum(x, kernel = "polynomial", run = "cuda"), class = "weft_error_device",
               regexp = "on the CPU only")
  if (!is.null(weft:::cuda_missing())) {
    for (method in c("auto", "direct", "tree")) {
      expect_error(kernel_sum(x, kernel = "epanechnikov", method = method, run = "cuda"),
                   class = "weft_error_device", regexp = "CUDA")
    }
    expect_error(kde(x, run = "cuda"), class = "weft_error_device")
    expect_error(kernel_regression(x, 1:10, run = "cuda"), class = "weft_error_device")
    expect_error(gp_regression(x, 1:10, run = "cuda"), class = "weft_error_device")
  }
})

test_that("leave-one-out sums are exact however wide the bandwidth", {
  withr::local_seed(10)
  expect_equal(kernel_sum(c(0, 0.1, 0.2), kernel = "triangular", bandwidth = 1e7, leave_one_out = TRUE),
               2 - c(3, 2, 3) * 1e-8, tolerance = 1e-15)
  for (kernel in all_kernels) for (method in c("direct", "tree")) {
    for (h in c(0.3, 10, 1e4, 1e9)) {
      x <- matrix(rnorm(120), ncol = sample(c(1, 2, 5), 1))
      w <- cbind(rexp(nrow(x)), rnorm(nrow(x)))
      want <- quad_sum(x, x, w, h, kernel, TRUE)
      got <- kernel_sum(x, weights = w, kernel = kernel, bandwidth = h, leave_one_out = TRUE, method = method)
      expect_lte(excess(got, want$sum, 1e-12 * want$absolute), 1, label = paste(kernel, method, h))
    }
  }
})

test_that("single precision keeps its bound in units of any size", {
  withr::local_seed(11)
  x <- matrix(rnorm(80), 40)
  w <- cbind(runif(40), rnorm(40))
  for (kernel in setdiff(all_kernels, "uniform")) {
    want <- kernel_sum(x, weights = w, kernel = kernel)
    for (unit in 10^c(-90, -25, -19, 0, 19, 25, 90)) for (size in 10^c(-250, -45, 0, 38, 250)) {
      got <- kernel_sum(x * unit, weights = w * size, kernel = kernel, bandwidth = unit,
                        control = list(precision = "single"))
      expect_lte(excess(got, want * size, 1.001 * attr(got, "error_bound")), 1, label = paste(kernel, unit, size))
    }
  }
  far <- kernel_sum(x + 2^40, kernel = "gaussian", control = list(precision = "single"))
  expect_lte(excess(far, kernel_sum(x + 2^40), attr(far, "error_bound")), 1)
  none <- kernel_sum(x[0, ], x, weights = w, control = list(precision = "single"))
  expect_identical(dim(none), c(0L, 2L))
  expect_identical(dim(attr(none, "error_bound")), c(0L, 2L))
})

test_that("row names of queries stay with their sums", {
  x <- matrix(c(1, 2, 4, 1, 3, 0), 3)
  q <- matrix(c(1, 2, 1, 3), 2, dimnames = list(c("a", "b"), c("u", "v")))
  expect_identical(names(kernel_sum(q, x)), c("a", "b"))
  expect_identical(dimnames(kernel_sum(q, x, cbind(s = 1:3, t = 1))), list(c("a", "b"), c("s", "t")))
  expect_identical(names(kernel_sum(as.data.frame(q), x, control = list(precision = "single"))), c("a", "b"))
  expect_identical(names(kernel_sum(c(p = 1, q = 2))), c("p", "q"))
  expect_null(names(kernel_sum(x, q)))
  expect_null(names(kernel_sum(as.data.frame(x))))
})

test_that("what no number can hold is an error, not a wrong sum", {
  input <- function(..., regexp) expect_error(call_with(kernel_sum, list(...)), class = "weft_error_input",
                                              regexp = regexp)
  for (kernel in c("matern32", "cauchy")) input(c(0, 1e170), kernel = kernel, bandwidth = 1e100, regexp = "below 1e150")
  input(diag(2), bandwidth = diag(c(1, 1e-250)), regexp = "1e-100 and 1e100")
  input(diag(2) * 1e60, bandwidth = diag(c(1, 1e-90)), regexp = "1e-100 and 1e100")
  input(1:2, weights = c(1, 1e300), regexp = "1e290")
  input(1:2, kernel = "polynomial", scale = 1e300, degree = 50, regexp = "must be finite")
  input(1:2, kernel = "polynomial", scale = Inf, regexp = "`scale`")
  input(1:2, abs_error = Inf, regexp = "`abs_error`")
  expect_equal(kernel_sum(c(0, 1e50), kernel = "matern32", bandwidth = 1e-50), c(1, 1))
})

test_that("a seed leaves R's random numbers as they were", {
  x <- matrix(seq_len(200) / 7, ncol = 2)
  withr::local_seed(1)
  before <- .Random.seed
  kernel_tree(x, "rp", seed = 4)
  kernel_sum(x, bandwidth = 20, method = "montecarlo", rel_error = 0.5, seed = 4, control = list(confidence = 0.9))
  expect_identical(.Random.seed, before)
})

test_that("a walk keeps its budget or is given up, whatever the threads", {
  withr::local_seed(9)
  x <- matrix(rnorm(9000), ncol = 3)
  w <- cbind(1, rnorm(3000))
  walk <- function(budget, threads = 1) {
    problem <- kernel_problem(x, NULL, w, "gaussian", 0.3, run = weft_run(threads = threads))
    kernel_walk(problem, list(method = "tree", budget = budget, reason = ""))
  }
  problem <- kernel_problem(x, NULL, w, "gaussian", 0.3, run = weft_run(threads = 1))
  want <- kernel_run(problem, "direct")$sum
  expect_null(walk(1e-9))
  expect_equal(walk(1e15)$sum, want, tolerance = 1e-12)
  work <- walk_work(problem, native_trees(problem))
  given_up <- vapply(seq(0.1, 1.5, by = 0.1), function(share) {
    one <- walk(share * work)
    expect_identical(walk(share * work, 2)$sum, one$sum)
    if (!is.null(one)) expect_equal(one$sum, want, tolerance = 1e-12)
    is.null(one)
  }, NA)
  expect_true(given_up[[1]] && !given_up[[15]] && !is.unsorted(!given_up))
  problem$plan <- list(method = "tree", budget = 1e-9, reason = "",
                       otherwise = list(method = "direct", reason = "otherwise"))
  expect_identical(kernel_run(problem)$sum, want)
})

test_that("no choice depends on the machine's pace or on threads", {
  withr::local_seed(4)
  with_rates <- function(pace, work) { # as if it had been measured to be so much faster
    known <- session$rates
    withr::defer(session$rates <- known)
    session$rates <- pace * reference_rates
    work()
  }
  cases <- list(list("laplacian", 1, 0.1, 1e-3), list("gaussian", 2, 0.1, 1e-3), list("gaussian", 3, 0.02, 1e-2),
                list("cauchy", 3, 0.05, 0.1), list("epanechnikov", 2, 0.1, 0), list("matern32", 6, 0.3, 1e-2))
  used <- character()
  for (case in cases) {
    x <- matrix(runif(7000 * case[[2]]), 7000)
    run <- function(threads) {
      problem <- kernel_problem(x, NULL, NULL, case[[1]], case[[3]], case[[4]],
                                run = weft_run("cpu", threads = threads))
      kernel_run(problem)[c("method", "sum", "effort")]
    }
    usual <- run(1)
    used <- c(used, usual$method)
    for (pace in c(1e-3, 1, 1e3)) {
      expect_identical(with_rates(pace, function() run(2)), usual, label = paste(unlist(case), collapse = " "))
    }
    for (try in c(FALSE, TRUE)) {
      plan <- function(threads) {
        problem <- kernel_problem(x, NULL, NULL, case[[1]], case[[3]], case[[4]],
                                  run = weft_run("cpu", threads = threads))
        plan_method(problem, try)[c("method", "budget")]
      }
      expect_identical(with_rates(1e3, function() plan(2)), plan(1))
    }
  }
  expect_setequal(used, c("direct", "line", "mesh", "tree"))
})

test_that("a sample shows where trees would spare nothing, and exact narrow kernels where they would", {
  withr::local_seed(12)
  n <- 6000
  uniform <- matrix(runif(n * 10), n)
  centres <- matrix(runif(500), 50)
  clustered <- centres[sample(50, n, TRUE), ] + rnorm(10 * n, sd = 0.02)
  problem <- function(x, h, rel, kernel) kernel_problem(x, NULL, NULL, kernel, h, rel, run = as_run("cpu"))
  little <- function(...) trees_spare_little(problem(...))
  plan <- function(...) plan_method(problem(...), TRUE)$method
  expect_true(little(uniform, 0.5, 0.1, "epanechnikov"))
  expect_false(little(clustered, 0.1, 0.1, "epanechnikov"))
  expect_false(little(uniform[, 1:3], 0.5, 0.1, "epanechnikov"))
  expect_true(little(matrix(rnorm(n * 10), n), 0.5, 1e-4, "gaussian"))
  expect_false(little(uniform, 5, 1e-4, "gaussian")) # nodes are summed as wholes
  expect_true(little(1e99 * uniform, 5e98, 0.1, "epanechnikov"))
  expect_identical(plan(uniform, 0.5, 0.1, "epanechnikov"), "direct")
  expect_identical(plan(clustered, 0.1, 0.1, "epanechnikov"), "tree")
  # a part of the points as queries, and points that are all the same
  part <- kernel_problem(uniform[1:3000, ], uniform, NULL, "epanechnikov", 0.5, 0.1, run = as_run("cpu"))
  expect_true(trees_spare_little(part))
  expect_type(little(matrix(1, n, 5), 0.5, 0.1, "epanechnikov"), "logical")
  # without an error, values are spared that are 0 as doubles
  expect_identical(plan(clustered[, 1:4], 0.002, 0, "gaussian"), "tree")
  expect_identical(plan(clustered[, 1:4], 0.2, 0, "gaussian"), "direct")
})

test_that("a grid reaches as far as the tolerance asks for, whatever it is", {
  withr::local_seed(3)
  for (kernel in Filter(Negate(is_compact), all_kernels)) for (k in 1:200) {
    n <- round(10^runif(1, 1, 7))
    rel <- 10^runif(1, -8, 0)
    tau <- sample(c(0, 10^runif(1, -6, 9)), 1)
    problem <- list(kernel = kernel, bandwidth = list(h = 1e-9, scale = NULL), rel_error = rel, self = TRUE,
                    leave_one_out = FALSE, weights = matrix(1, 1), reference = matrix(0, 1), box = matrix(c(0, 1), 2))
    reach <- grid_reach(problem, n, tau)
    expect_lte(kernel_value(kernel, reach / 1e-9), (rel + tau) / n)
  }
})

test_that("a grid's queries keep their bounds each", {
  skip_if_no_cuda()
  for (seed in sample(1e6, 12)) {
    withr::local_seed(seed)
    d <- sample(c(1, 2, 3, 4, 6, 10), 1)
    n <- 8000
    x <- matrix(runif(7 * d), 7)[sample(7, n, TRUE), , drop = FALSE] +
      matrix(if (seed %% 2) rnorm(n * d) else rcauchy(n * d), n) * 0.01
    q <- rbind(x[1:100, , drop = FALSE] * 1.001, matrix(runif(200 * d), 200))
    kernel <- sample(setdiff(all_kernels, compact_kernels), 1)
    h <- 0.01 * sqrt(d) * (if (kernel == "gaussian") 1 else 0.2) * exp(runif(1, -1.5, 1))
    rel <- sample(c(1e-4, 0.01, 0.2), 1)
    tau <- sample(c(0, 1e-3, 2), 1)
    for (job in list(list(x), list(q, x), list(x, leave_one_out = TRUE))) {
      sum <- function(...) call_with(kernel_sum, c(job, list(kernel = kernel, bandwidth = h, ...)))
      want <- as.vector(sum(method = "direct", backend = "cpu"))
      got <- sum(method = "tree", backend = "cuda", rel_error = rel, abs_error = tau)
      parts <- sum(method = "tree", backend = "cuda", rel_error = rel, abs_error = tau, devices = c(0, 0))
      beyond <- abs(as.vector(got) - want) - ((rel + 1e-11) * want + tau)
      expect_lte(max(beyond), 1e-300, label = paste("beyond the bound, seed", seed, kernel))
      expect_equal(as.vector(parts), as.vector(got), tolerance = 1e-11)
    }
  }
})

test_that("ranges of columns leave out what is not finite, and count it", {
  for (n in c(1, 7, 8, 9, 70000)) {
    x <- matrix(rnorm(2 * n), n)
    if (n > 8) x[cbind(c(9, 3, 4), c(1, 2, 2))] <- c(NA, -Inf, NaN)
    want <- apply(x, 2, function(v) c(range(v[is.finite(v)]), sum(!is.finite(v))))
    expect_identical(points_range(x), want)
  }
  expect_identical(points_range(matrix(0, 0, 1)), matrix(c(Inf, -Inf, 0)))
})

test_that("ranges of columns are those of range(), in any number of pieces", {
  x <- withr::with_seed(12, matrix(stats::rnorm(2 * 2200001), ncol = 2))
  x[c(1, 2200001, 1048577), 2] <- c(9, -9, NA)
  of <- function(x, threads) .Call(weft:::C_weft_kernel_range, x, weft:::run_control("cpu", threads))
  right <- rbind(apply(x, 2, range, na.rm = TRUE), c(0, 1))
  for (threads in 1:3) expect_identical(of(x, threads), right)
  expect_identical(of(matrix(0, 0, 1), 2L), matrix(c(Inf, -Inf, 0)))
})

test_that("the digest of points differs where one bit does, and not by threads", {
  x <- withr::with_seed(14, matrix(stats::rnorm(3 * 70000), ncol = 3))
  of <- function(x, threads = 2L) .Call(weft:::C_weft_kernel_facts, x, weft:::run_control("cpu", threads))
  for (threads in 1:3) expect_identical(of(x, threads), of(x))
  expect_identical(of(x)$range, weft:::points_range(x))
  places <- c(1, 8, 65535, 65536, 65537, 69999, 70000, 70001, 140000, 210000)
  digests <- lapply(places, function(k) of(replace(x, k, x[k] * (1 + 2^-52)))$digest)
  shapes <- lapply(1:3, function(columns) of(matrix(x, ncol = columns))$digest)
  swapped <- list(of(x[, 3:1])$digest, of(x[c(2, 1, 3:70000), ])$digest)
  expect_false(anyDuplicated(c(digests, shapes, swapped)) > 0)
  expect_false(identical(of(matrix(0, 0, 1))$digest, of(matrix(0, 0, 2))$digest))
})

test_that("the root of a kernel matrix is its own, in any number of columns at a time", {
  x <- withr::with_seed(13, matrix(stats::rnorm(140), 70))
  problem <- weft:::kernel_problem(x, NULL, NULL, "gaussian", 0.4)
  points <- weft:::native_points(x, problem)
  k <- weft:::kernel_matrix(points, points, problem)
  expect_equal(k, kernel_value_matrix(x, x, 0.4, "gaussian"), tolerance = 1e-14)
  for (together in c(1L, 7L, 32L, 100L)) {
    chol <- weft:::pivoted_cholesky(points, problem, 50, function(residual) FALSE, together)
    expect_length(chol$pivots, 50)
    expect_equal(tcrossprod(chol$root)[chol$pivots, ], k[chol$pivots, ], tolerance = 1e-9)
    expect_equal(1 - rowSums(chol$root^2), chol$residual, tolerance = 1e-12)
    some <- weft:::pivoted_cholesky(points, problem, 70, function(residual) max(residual) < 0.2, together)
    expect_lt(max(some$residual), 0.2)
    expect_identical(some$pivots, chol$pivots[seq_along(some$pivots)])
  }
})

test_that("wide errors are kept in single precision, and in double where its bound is not within them", {
  withr::local_seed(11)
  x <- rbind(matrix(rnorm(49970), ncol = 5), matrix(c(30, -40, 60), 3, 5) + rnorm(15))
  n <- nrow(x)
  x <- rbind(x, matrix(rnorm(5 * (10001 - n)), ncol = 5))
  w <- cbind(1, rnorm(nrow(x)))
  for (loo in c(FALSE, TRUE)) {
    sums <- function(weights, ...) {
      call_with(kernel_sum, list(x, weights = weights, bandwidth = 2, leave_one_out = loo, run = "cpu", ...))
    }
    expect_message(got <- sums(w, rel_error = 0.01, verbose = TRUE), "single precision, [1-9][0-9]* queries in double")
    want <- sums(w, method = "direct")
    expect_true(all(abs(got - want) <= 0.01 * sums(abs(w), method = "direct")))
    expect_false(identical(got, want))
  }
  # bounds relative to Gaussian sums, for a bandwidth of each dimension, and sums that no float holds
  some <- w[, c(1, 2, 2)]
  some[, 3] <- abs(some[, 3])
  for (h in list(c(0.9, 1, 1.1, 1.2, 1), 0.1)) {
    sums <- function(...) {
      kernel_sum(x, weights = some, bandwidth = h, leave_one_out = TRUE, run = weft_run("cpu", verbose = TRUE), ...)
    }
    shown <- testthat::capture_messages(got <- sums(rel_error = 1e-4))
    if (length(h) > 1L) expect_match(shown, "in single precision", all = FALSE)
    suppressMessages(want <- sums(method = "direct"))
    expect_true(all(abs(got - want) <= 1e-4 * want[, c(1, 3, 3)]))
  }
  narrow <- function() {
    kernel_sum(x, kernel = "epanechnikov", bandwidth = 0.2, rel_error = 1e-3, run = weft_run("cpu", verbose = TRUE))
  }
  expect_no_match(paste(testthat::capture_messages(narrow()), collapse = ""), "single")
})
