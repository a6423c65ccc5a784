# Sums in one dimension: `method = "line"`, and sums over all pairs of points on a line.

line_kernels <- with(weft:::kernel_sheet(), name[line])

hard_lines <- function(count) {
  seeds <- sample(1e7, 40 * count)
  cases <- list()
  for (seed in seeds) {
    case <- hard_case(seed)
    if (ncol(case$x) == 1L) cases[[length(cases) + 1L]] <- c(case, seed = seed)
    if (length(cases) == count) break
  }
  cases
}

expect_within <- function(got, want, rel, abs, label) {
  allowed <- max(rel, 1e-12) * want$absolute + abs + 1e-300
  expect_true(all(abs(as.matrix(got) - want$sum) <= allowed), label = label)
}

test_that("sums along a line are exact, and keep their bounds, on hard cases", {
  for (case in hard_lines(3)) for (kernel in line_kernels) {
    label <- paste(kernel, case$what, case$seed)
    sums <- function(w, ...) call_with(kernel_sum, list(case$q, case$x, weights = w, kernel = kernel,
                                                        bandwidth = case$h, method = "line", ...))
    plain <- quad_sum(case$q, case$x, case$w, case$h, kernel)
    signed <- quad_sum(case$q, case$x, case$signed, case$h, kernel)
    expect_within(sums(case$w), plain, 0, 0, label)
    expect_within(sums(case$signed), signed, 0, 0, label)
    rel <- 10^runif(1, -10, -0.5)
    expect_within(sums(case$w, rel_error = rel), plain, rel, 0, label)
    tau <- sum(case$w) * 10^runif(1, -8, -1)
    expect_within(sums(case$signed, abs_error = tau), signed, 0, tau, label)
    own <- quad_sum(case$x, case$x, case$w, case$h, kernel, TRUE)
    got <- kernel_sum(case$x, weights = case$w, kernel = kernel, bandwidth = case$h, method = "line", rel_error = rel,
                      leave_one_out = TRUE)
    expect_within(got, own, rel, 0, label)
    logs <- sums(case$w, log = TRUE)
    seen <- is.finite(plain$log) & plain$log > -11300 # below, the reference itself is subnormal
    expect_lt(max(0, abs(logs - plain$log)[seen]), 1e-10, label = label)
  }
})

test_that("many references, ties and ends of kernels that meet references are summed as directly", {
  withr::local_seed(4)
  sets <- list(lattice = sample(0:40, 4000, TRUE) / 10, normal = rnorm(4000), skewed = exp(rnorm(4000, sd = 3)))
  for (what in names(sets)) for (kernel in line_kernels) {
    x <- sets[[what]]
    y <- rnorm(4000)
    for (loo in c(FALSE, TRUE)) {
      run <- function(method, ...) call_with(kernel_sum, list(x, weights = cbind(1, y), kernel = kernel,
                                                              bandwidth = 0.3, method = method, leave_one_out = loo,
                                                              ...))
      size <- kernel_sum(x, weights = cbind(1, abs(y)), kernel = kernel, bandwidth = 0.3, leave_one_out = loo)
      want <- run("direct")
      got <- run("line", threads = 1)
      expect_true(all(abs(got - want) <= 2e-12 * size + 1e-300), label = paste(what, kernel, loo))
      expect_identical(run("line", threads = 2), got)
      loose <- run("line", rel_error = 0.01)
      expect_true(all(abs(loose - want) <= 0.01 * size + 1e-12), label = paste(what, kernel, loo))
    }
  }
})

test_that("auto sums along a line in one dimension, and says where it cannot be done", {
  x <- rnorm(3000)
  expect_message(got <- kernel_sum(x, bandwidth = 0.2, run = weft_run(verbose = TRUE)), "Method: line on cpu")
  expect_equal(got, kernel_sum(x, bandwidth = 0.2, method = "direct", run = "cpu"), tolerance = 1e-12)
  expect_message(kernel_sum(1:5, run = weft_run(verbose = TRUE)), "Method: direct")
  expect_message(kernel_sum(x, kernel = "cauchy", run = weft_run(verbose = TRUE)), "Method: (direct|tree)")
  expect_error(kernel_sum(x, kernel = "cauchy", method = "line"), "one dimension", class = "weft_error_input")
  expect_error(kernel_sum(cbind(x, x), method = "line"), "in 2 dimensions", class = "weft_error_input")
  expect_error(kernel_sum(x, method = "line", run = "cuda"), class = "weft_error_device")
  expect_identical(kernel_sum(numeric(0), x, method = "line"), numeric(0))
  expect_identical(kernel_sum(x[1:3], numeric(0), method = "line"), c(0, 0, 0))
})

test_that("a query takes as much work among many references as among few", {
  withr::local_seed(5)
  q <- seq(-2, 2, length.out = 500)
  effort <- function(n, kernel, rel) {
    problem <- weft:::kernel_problem(q, rnorm(n), NULL, kernel, 0.3, rel)
    weft:::kernel_line(problem)$effort[c("pairs", "nodes")] / length(q)
  }
  for (kernel in c("gaussian", "epanechnikov", "matern52")) {
    many <- effort(30000, kernel, 1e-4)
    expect_lt(many[["nodes"]], 60)
    expect_lt(many[["pairs"]], 60) # of 30,000
    expect_lt(sum(many), 2 * sum(effort(3000, kernel, 1e-4)) + 10)
  }
})

test_that("densities in one dimension need no tree, and are those of one", {
  x <- c(rnorm(500), 40)
  d <- kde(x, 0.3)
  expect_null(d$native)
  tree <- kde(x, 0.3, tree = "ball")
  expect_false(is.null(tree$native))
  q <- seq(-5, 45, length.out = 300)
  expect_equal(predict(d, q, rel_error = 0), predict(tree, q, rel_error = 0), tolerance = 1e-11)
  file <- withr::local_tempfile()
  saveRDS(d, file)
  expect_identical(predict(readRDS(file), q), predict(d, q))
  damaged <- tree
  damaged["native"] <- list(NULL)
  expect_error(predict(damaged, q), "`native` is damaged", class = "weft_error_input")
})

test_that("least-squares scores on a line are of all pairs, within their error", {
  withr::local_seed(6)
  n <- 700
  x <- c(rnorm(n - 60), rep(0.5, 50), rcauchy(10, scale = 20))
  far <- as.vector(dist(x))
  score <- function(h) {
    (n + 2 * sum(exp(-far^2 / 4 / h^2))) / (n^2 * h * 2 * sqrt(pi)) -
      4 * sum(exp(-far^2 / 2 / h^2)) / (n * (n - 1) * h * sqrt(2 * pi))
  }
  h <- c(0.02, 0.1, 0.5, 3)
  got <- kernel_bandwidth(x, h, queries = 50)
  expect_identical(kernel_bandwidth(x, h, queries = 50)$score, got$score) # nothing is drawn
  size <- vapply(h, function(h) sum(exp(-far^2 / 2 / h^2)) / (n^2 * h), 0)
  expect_true(all(abs(got$score - vapply(h, score, 0)) <= 1e-4 * 4 * size))
  pairs <- weft:::gaussian_pairs(matrix(x), 0.02, 1e-4)(h)
  want <- vapply(h, function(h) 2 * sum(exp(-far^2 / 2 / h^2)), 0)
  expect_true(all(abs(pairs - want) <= 1e-4 * want))
  expect_null(weft:::gaussian_pairs(matrix(c(x, 1e9)), 0.02, 1e-4)) # too many bins: walked
  walked <- kernel_bandwidth(c(x, 1e9), h)$score
  expect_true(all(is.finite(walked)))
})

test_that("the plug-in rule's functionals are means over all pairs", {
  withr::local_seed(7)
  normal <- rnorm(300)
  sets <- list(normal = normal, tied = round(normal, 1), outliers = c(normal, 1e7, -1e9), shifted = 1e6 + normal / 100)
  for (what in names(sets)) for (r in c(4, 6)) {
    x <- sets[[what]]
    g <- 0.4 * IQR(x)
    u <- outer(x, x, "-") / g
    he <- if (r == 4) u^4 - 6 * u^2 + 3 else u^6 - 15 * u^4 + 45 * u^2 - 15
    want <- mean(he * dnorm(u)) / g^(r + 1)
    got <- weft:::pairwise_functionals(x)(r, g)
    expect_equal(got, want, tolerance = 2e-5, label = paste(what, r))
  }
})

test_that("few queries among many references keep their bounds without an order of these", {
  withr::local_seed(8)
  n <- 3000
  sets <- list(normal = rnorm(n), clusters = c(rnorm(n / 2, 0, 1e-3), rnorm(n / 2, 30)), tied = rep(7, n),
               shifted = 1e7 + rnorm(n), outlier = c(rnorm(n - 1), 1e6), heavy = rcauchy(n))
  for (what in names(sets)) for (h in c(0.05, 1, 20)) for (rel in c(1e-5, 1e-2)) {
    x <- sets[[what]]
    q <- c(range(x) + c(-15, 15) * h, sample(x, 20), mean(range(x)) + rnorm(10))
    w <- cbind(runif(n), rnorm(n), 0)
    size <- kernel_sum(q, x, weights = abs(w), bandwidth = h, method = "direct")
    want <- kernel_sum(q, x, weights = w, bandwidth = h, method = "direct")
    got <- kernel_sum(q, x, weights = w, bandwidth = h, method = "line", rel_error = rel)
    label <- paste(what, h, rel)
    expect_true(all(abs(got - want) <= rel * size + 1e-290), label = paste(label, "relative"))
    far <- kernel_sum(q, x, weights = w, bandwidth = h, method = "line", control = list(abs_error = 10 * rel))
    expect_true(all(abs(far - want) <= 10 * rel), label = label)
    log <- kernel_sum(q, x, bandwidth = h, method = "line", rel_error = rel, log = TRUE)
    expect_lt(max(abs(log - kernel_sum(q, x, bandwidth = h, method = "direct", log = TRUE))), 2 * rel, label = label)
  }
})

test_that("scattered references take no pairs, and threads change nothing", {
  withr::local_seed(9)
  x <- rnorm(60000)
  q <- seq(-4, 4, length.out = 400)
  run <- function(rel, q, threads = 1) {
    weft:::kernel_line(weft:::kernel_problem(q, x, NULL, "gaussian", 0.06, rel, run = weft_run(threads = threads)))
  }
  expect_identical(run(1e-4, q)$effort[["pairs"]], 0)
  expect_gt(run(1e-10, q)$effort[["pairs"]], 0) # too exact for plain sums
  expect_gt(run(1e-4, c(q, 30))$effort[["pairs"]], 0) # and what is far from all
  expect_identical(run(1e-4, q, 2)$sum, run(1e-4, q)$sum)
  expect_message(kernel_sum(q[1:100], x, bandwidth = 0.06, rel_error = 1e-4, run = weft_run(verbose = TRUE)),
                 "Method: line")
})

test_that("parts of many references add up to the sums over all, on any number of threads", {
  withr::local_seed(15)
  q <- seq(-3, 3, length.out = 40)
  for (n in c(65536, 65543, 400003)) for (weights in list(NULL, runif(n))) {
    x <- rnorm(n)
    want <- vapply(q, function(at) sum((weights %||% 1) * exp(-(at - x)^2 / (2 * 0.06^2))), 0)
    sums <- lapply(1:3, function(threads) {
      kernel_sum(q, x, weights = weights, bandwidth = 0.06, rel_error = 1e-6, method = "line",
                 run = weft_run(threads = threads))
    })
    expect_lt(max(abs(sums[[1L]] / want - 1)), 1e-6)
    expect_identical(sums[[2L]], sums[[1L]])
    expect_identical(sums[[3L]], sums[[1L]])
  }
})

test_that("least-squares bandwidths are those of the whole grid, from a part of it", {
  withr::local_seed(10)
  sets <- list(rnorm(500), c(rnorm(300), rnorm(300, 8, 0.1)), rexp(400), round(rnorm(500), 1), rt(500, 2))
  looked <- numeric()
  for (x in sets) {
    x <- matrix(x)
    score <- weft:::bandwidth_scorer(x, sd(x) * length(x)^-0.2, "lscv", 20000,
                                     list(kernel = "gaussian", rel_error = 1e-4, seed = 1),
                                     weft_run(threads = 1, progress = FALSE))
    grid <- exp(seq(log(0.05), log(4), length.out = 20))
    scored <- 0
    some <- weft:::scores_from_wide(grid, list(16:20, 11:15, 1:10), function(t) {
      scored <<- scored + length(t)
      score(t)
    })
    of_all <- grid[weft:::largest_minimum(score(grid))]
    expect_identical(rev(grid)[length(some) + 1 - weft:::largest_minimum(some)], of_all)
    expect_length(some, scored)
    looked <- c(looked, scored)
  }
  expect_identical(looked[1:3], c(10, 20, 20)) # of 20
})

test_that("deviations and quartiles of columns are R's", {
  withr::local_seed(11)
  sets <- list(normal = rnorm(5000), one = 3, two = c(5, -1), tied = rpois(3000, 2) + 0, constant = rep(0.1, 200),
               heavy = rcauchy(4000), huge = rnorm(100) * 1e200, tiny = rnorm(100) * 1e-320, sorted = 1:999 + 0,
               far = 1e9 + rnorm(700), ends = c(-.Machine$double.xmax, runif(50), .Machine$double.xmax),
               falling = 4000:1 + 0, outlier = c(1e300, runif(600)), many = rnorm(3e5))
  control <- weft:::control_of_size(0)
  for (what in names(sets)) {
    x <- sets[[what]]
    p <- c(0.25, 0.75, runif(3), 0, 1)
    got <- .Call(weft:::C_weft_kernel_quantiles, x, p, control)
    if (what != "ends") expect_equal(got, unname(quantile(x, p)), tolerance = 1e-14, label = what)
    else expect_equal(got[1:2], unname(quantile(x, p[1:2])), tolerance = 1e-14)
    deviations <- .Call(weft:::C_weft_kernel_deviations, cbind(x, rev(x), 0), control)
    if (what %in% c("huge", "outlier", "ends")) expect_equal(deviations[1] / stats::sd(x / 1e200) / 1e200, 1)
    else expect_equal(deviations[1:2], rep(stats::sd(x), 2), tolerance = 1e-12, label = what)
    expect_identical(deviations[3], if (length(x) > 1) 0 else NaN)
  }
})

test_that("sums over counted pairs are those of the function at each distance", {
  withr::local_seed(12)
  pairs <- runif(5000)
  h <- c(0.3, 2, 40)
  for (order in c(0, 4, 6)) {
    he <- function(u) switch(paste(order), `0` = 1, `4` = u^4 - 6 * u^2 + 3, `6` = u^6 - 15 * u^4 + 45 * u^2 - 15)
    want <- vapply(h, function(h) {
      u <- (seq_along(pairs) - 1) * 0.02 / h
      sum((pairs * he(u) * exp(-u^2 / 2))[u < 7])
    }, 0)
    expect_equal(weft:::lag_sums(list(pairs = pairs, bin = 0.02), h, 7, order), want, tolerance = 1e-9)
  }
})

test_that("kernels end where they should along a line, to the last bit", {
  withr::local_seed(21)
  for (kernel in Filter(is_compact, all_kernels)) for (k in 1:4) {
    h <- 10^runif(1, -5, 4)
    x <- switch(k, round(runif(500) * 200) * h / 20, rnorm(500) * 3 * h + 1e8 * h, sample(c(-0.5, 0.5), 500, TRUE) * h,
                runif(500) * 50 * h)
    q <- c(x[1:20] + h, x[1:20] - h, x[1:20] + h * (1 + 2e-16), x[1:20] - h * (1 - 2e-16), x[1:20])
    for (loo in c(FALSE, TRUE)) {
      sums <- function(method) {
        kernel_sum(if (loo) x else q, if (!loo) x, kernel = kernel, bandwidth = h, rel_error = 0, leave_one_out = loo,
                   method = method, run = "cpu")
      }
      got <- sums("line")
      want <- sums("direct")
      expect_lte(max(abs(got - want) - 1e-12 * want), 0, label = paste(kernel, k, loo))
      if (kernel == "uniform") expect_identical(round(got), round(want))
    }
  }
})
