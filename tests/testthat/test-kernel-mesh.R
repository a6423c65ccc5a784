# Sums of the Gaussian kernel over a mesh: `method = "mesh"`, and sums over all pairs of points.

all_widths <- c(4L, 6L, 8L, 10L, 12L, 14L, 16L)

# What a mesh of this width alone makes of sums, without what is summed otherwise.
bare_mesh <- function(q, x, w, h, width, spacing, target) {
  task <- weft:::sums_task("gaussian", h, list(columns = q), list(columns = x), t(w), FALSE)
  .Call(weft:::C_weft_kernel_mesh, task, c(width, spacing), target, weft:::run_control("cpu", 1L, FALSE))
}

test_that("a mesh is as near as its error says, for every width and dimension, and not much nearer in the worst case", {
  withr::local_seed(1)
  target <- c(`4` = 1e-2, `6` = 1e-4, `8` = 1e-6, `10` = 1e-7, `12` = 1e-9, `14` = 1e-10, `16` = 1e-11)
  spacing <- c(`4` = 0.45, `6` = 0.55, `8` = 0.5, `10` = 0.43, `12` = 0.36, `14` = 0.36, `16` = 0.35)
  for (d in 1:3) for (width in all_widths) {
    x <- matrix(runif(d, -1, 1), 1) # of one reference: the kernel itself
    q <- matrix(runif(4000 * d, -4, 4), ncol = d) / sqrt(d)
    out <- bare_mesh(q, x, matrix(1), 0.7, width, spacing[[paste(width)]], target[[paste(width)]])
    away <- abs(out$sum - kernel_value_matrix(q, x, 0.7, "gaussian"))
    label <- paste(width, d)
    expect_lte(out$error, 1.001 * target[[paste(width)]], label = label)
    expect_true(all(away <= out$error), label = label)
    if (d == 1) expect_gt(max(away), 0.1 * out$error, label = label)
  }
})

test_that("no spacing keeps an error that is too small for the width", {
  expect_null(bare_mesh(matrix(0), matrix(0), matrix(1), 1, 4L, 0.5, 1e-8))
  for (on_device in c(FALSE, TRUE)) {
    size <- list(m = 1, extent = 1, references = 1, queries = 1, on_device = on_device)
    expect_null(.Call(weft:::C_weft_kernel_mesh_choose, size, 1e-15))
    predicted <- .Call(weft:::C_weft_kernel_mesh_choose, size, 1e-6)[["seconds"]] # by the model of costs: no clock
    expect_true(is.finite(predicted) && predicted > 0)
  }
})

test_that("sums over a mesh keep their bounds on hard cases", {
  ran <- 0
  for (seed in sample(1e7, 40)) {
    case <- hard_case(seed)
    least <- if (is.matrix(case$h)) sqrt(min(eigen(case$h, TRUE, TRUE)$values)) else min(case$h)
    nodes <- prod(apply(case$x, 2, function(v) diff(range(v))) / least / 0.2 + 20)
    if (ncol(case$x) > 3L || nodes > 1e5 && nodes < 1e12) next # which would take long; of still more it is refused
    label <- paste(case$what, seed)
    within <- function(got, want, rel, abs) {
      ran <<- ran + 1
      allowed <- rel * want$absolute + abs + 1e-300
      expect_true(all(abs(as.matrix(got) - want$sum) <= allowed), label = label)
    }
    # a mesh of too many nodes is refused
    sums <- function(q, w, ...) {
      tryCatch(call_with(kernel_sum, list(q, case$x, weights = w, bandwidth = case$h, method = "mesh", ...)),
               weft_error_input = function(e) { expect_match(conditionMessage(e), "cannot be used for these"); NULL })
    }
    plain <- quad_sum(case$q, case$x, case$w, case$h, "gaussian")
    signed <- quad_sum(case$q, case$x, case$signed, case$h, "gaussian")
    rel <- 10^runif(1, -7, -0.5)
    tau <- sum(case$w) * 10^runif(1, -8, -1)
    if (!is.null(got <- sums(case$q, case$w, rel_error = rel))) within(got, plain, rel, 0)
    if (!is.null(got <- sums(case$q, case$signed, abs_error = tau))) within(got, signed, 0, tau)
    if (!is.null(got <- sums(case$q, case$w, rel_error = rel, abs_error = tau))) within(got, plain, rel, tau)
    own <- quad_sum(case$x, case$x, case$w, case$h, "gaussian", TRUE)
    if (!is.null(got <- sums(case$x, case$w, rel_error = rel, leave_one_out = TRUE))) within(got, own, rel, 0)
    logs <- sums(case$q, case$w, rel_error = rel, log = TRUE)
    seen <- is.finite(plain$log) & plain$log > -11300 # below, the reference itself is subnormal
    if (!is.null(logs)) expect_lt(max(0, abs(logs - plain$log)[seen]), -log1p(-rel) + 1e-9, label = label)
  }
  expect_gt(ran, 5)
})

test_that("threads do not change a sum, and vector codes only within the bound", {
  withr::local_seed(2)
  for (d in 1:3) {
    x <- matrix(rnorm(9000 * d), ncol = d)
    w <- cbind(1, rexp(9000))
    run <- function(threads = 1) {
      kernel_sum(x, weights = w, bandwidth = 0.3, rel_error = 1e-6, method = "mesh", run = weft_run(threads = threads))
    }
    want <- run()
    expect_identical(run(2), want)
    for (level in simd_levels()) {
      got <- with_simd_level(level, run())
      expect_true(all(abs(got / want - 1) < 1e-10), label = paste(level, d))
    }
  }
})

test_that("queries beyond the mesh and in the tails are summed otherwise", {
  withr::local_seed(3)
  x <- matrix(rnorm(4000), ncol = 2)
  q <- rbind(x[1:50, ], c(7, 7), c(30, 0), c(-1e5, 1e5))
  for (loo in c(FALSE, TRUE)) {
    points <- if (loo) rbind(x, c(6, -6)) else q
    shown <- capture_messages(got <- kernel_sum(points, if (!loo) x, bandwidth = 0.3, rel_error = 1e-6, method = "mesh",
                                                leave_one_out = loo, run = weft_run(verbose = TRUE)))
    count <- as.numeric(sub(".* ([0-9]+) queries summed without it.*", "\\1", paste(shown, collapse = "")))
    expect_gt(count, 0)
    expect_lt(count, 0.3 * nrow(points))
    want <- kernel_sum(points, if (!loo) x, bandwidth = 0.3, method = "direct", leave_one_out = loo)
    expect_true(all(abs(got - want) <= 1e-6 * want))
  }
})

test_that("auto takes a mesh for many points and a wide kernel, and not without an error", {
  withr::local_seed(4)
  x <- matrix(rnorm(2e4), ncol = 2)
  said <- function(...) paste(capture_messages(call_with(kernel_sum, list(x, bandwidth = 0.3,
                                                                          run = weft_run("cpu", verbose = TRUE), ...))),
                              collapse = "")
  expect_match(said(rel_error = 1e-4), "Method: mesh")
  expect_no_match(said(), "Method: mesh")
  expect_no_match(said(rel_error = 1e-4, kernel = "cauchy"), "Method: mesh")
})

test_that("a mesh is taken at once where pairs within reach alone take longer", {
  method <- function(x) {
    problem <- weft:::kernel_problem(x, NULL, NULL, "gaussian", 1, 1e-4, 0, run = weft:::as_run("cpu"))
    weft:::plan_method(problem, TRUE)$method
  }
  set.seed(1)
  x <- matrix(stats::rnorm(90000), 30000)
  wide <- x / (4 / 5 / 30000)^(1 / 7) # in bandwidths, by Scott's rule
  expect_identical(method(wide), "mesh") # 2 or 3 ms of it, where a walk takes .3 s
  expect_identical(method(4 * wide), "tree")
})

test_that("on a line auto takes a mesh for many queries of the Gaussian kernel, and a line for others", {
  withr::local_seed(8)
  x <- rnorm(2e4)
  said <- function(q, ...) paste(capture_messages(call_with(kernel_sum, list(q, x, bandwidth = 0.1,
                                                                             run = weft_run("cpu", verbose = TRUE),
                                                                             ...))), collapse = "")
  expect_match(said(x, rel_error = 1e-4), "Method: mesh")
  expect_match(said(x[1:100], rel_error = 1e-4), "Method: line")
  expect_match(said(x), "Method: line")
  expect_match(said(x, rel_error = 1e-4, kernel = "laplacian"), "Method: line")
})

test_that("rounding does not grow with the points of a block, whose runs are added up apart", {
  withr::local_seed(9)
  for (d in 1:3) {
    n <- 30000
    x <- rbind(matrix(runif(n * d, -0.5, 0.5), ncol = d), matrix(6, 1, d)) # whole runs in a few blocks, and one far
    w <- rexp(n + 1)
    got <- kernel_sum(x, weights = cbind(w, 1), bandwidth = 0.5, method = "mesh",
                      control = list(abs_error = 1e-11 * sum(w)))
    some <- c(1:30, n + 1)
    want <- kernel_sum(x[some, , drop = FALSE], x, cbind(w, 1), bandwidth = 0.5, method = "direct")
    expect_lt(max(abs(got[some, ] - want)), 1e-11 * sum(w), label = paste(d, "dimensions"))
    shown <- capture_messages(kernel_sum(rep(x[, 1], 30), bandwidth = 0.5, method = "mesh",
                                         run = weft_run(verbose = TRUE), control = list(abs_error = 2e-6)))
    bound <- as.numeric(sub(".*error ([-0-9.e]+) of.*", "\\1", paste(shown, collapse = "")))
    expect_lt(bound, 5e-12) # of 900,000 points next to each other; added one after another 1e-10
  }
})

test_that("a mesh says where it does not apply", {
  x <- matrix(0.5, 3, 4)
  expect_error(kernel_sum(x, method = "mesh", rel_error = 0.1), "in 4 dimensions", class = "weft_error_input")
  expect_error(kernel_sum(x[, 1:2], method = "mesh"), "an error above 0", class = "weft_error_input")
  expect_error(kernel_sum(x[, 1:2], kernel = "laplacian", method = "mesh", rel_error = 0.1), "Gaussian",
               class = "weft_error_input")
  far <- rbind(c(0, 0, 0), c(1, 1, 1) * 1e6)
  expect_error(kernel_sum(far, method = "mesh", rel_error = 0.1), "nodes", class = "weft_error_input")
  expect_equal(kernel_sum(far, rel_error = 0.1), c(1, 1))
  expect_equal(kernel_sum(1:3, weights = c(0, 0, 0), method = "mesh", control = list(abs_error = 0.1)), c(0, 0, 0))
  expect_identical(kernel_sum(numeric(0), 1:3, method = "mesh", rel_error = 0.1), numeric(0))
})

test_that("least-squares scores in two and three dimensions are those of all pairs", {
  withr::local_seed(5)
  for (d in 2:3) {
    x <- matrix(rnorm(1500 * d), ncol = d)
    grid <- c(0.3, 0.5, 0.9)
    square <- as.matrix(stats::dist(x))^2
    n <- nrow(x)
    want <- vapply(grid, function(h) {
      sum(exp(-square / 4 / h^2)) / (n^2 * (4 * pi * h^2)^(d / 2)) -
        2 * (sum(exp(-square / 2 / h^2)) - n) / (n * (n - 1) * (2 * pi * h^2)^(d / 2))
    }, 0)
    expect_equal(kernel_bandwidth(x, grid)$score, want, tolerance = 1e-3)
    pairs <- weft:::mesh_pairs(x, 1e-6)(grid)
    known <- !is.na(pairs) # else all pairs take no longer
    if (d == 2) expect_true(all(known))
    expect_true(all(abs(pairs / vapply(grid, function(h) sum(exp(-square / 2 / h^2)) - n, 0) - 1)[known] < 1e-6))
    expect_true(all(is.na(weft:::mesh_pairs(x, 0)(grid))))
  }
})

test_that("on a device sums have the same bits in every run, and are within the bound", {
  skip_if_no_cuda()
  withr::local_seed(7)
  for (d in 1:3) for (error in c(1e-3, 1e-6, 1e-10)) {
    x <- matrix(rnorm(30000 * d), ncol = d)
    w <- rexp(30000)
    sums <- function() kernel_sum(x, weights = w, bandwidth = 0.4, method = "mesh", run = "cuda",
                                  control = list(abs_error = error * sum(w)))
    got <- sums()
    expect_identical(attr(got, "backend"), "cuda")
    for (again in 1:3) expect_identical(sums(), got)
    some <- sample(30000, 300)
    want <- kernel_sum(x[some, , drop = FALSE], x, w, bandwidth = 0.4, method = "direct", run = "cpu")
    expect_true(all(abs(got[some] - want) <= error * sum(w)), label = paste(d, error))
  }
})
