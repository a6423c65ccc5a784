# Gaussian sums and slopes as tensor cores make them, or their twin on the CPU, beside definitions by hand: errors are
# within the bounds that come with the sums.

tensor_problem <- function(x, q = NULL, h = 1, weights = NULL, backend = "cpu") {
  list(query = q %||% x, reference = x, self = is.null(q), weights = if (!is.null(weights)) matrix(weights),
       kernel = "gaussian", rel_error = 1e-4, abs_error = 0, log = FALSE, leave_one_out = FALSE, trace = FALSE,
       bandwidth = check_bandwidth(h, ncol(x), points_reach(x, q %||% x)), control = run_control(backend))
}

# Sums, sums of |w| k, and sums of w k (x - q) in bandwidths, pair by pair.
by_definition <- function(problem, h) {
  u <- lapply(seq_len(ncol(problem$query)), function(j) {
    outer(problem$query[, j], problem$reference[, j], function(a, b) (b - a) / rep_len(h, ncol(problem$query))[j])
  })
  k <- exp(-0.5 * Reduce(`+`, lapply(u, `^`, 2)))
  w <- problem$weights %||% matrix(1, nrow(problem$reference))
  list(sum = as.vector(k %*% w), size = as.vector(k %*% abs(w)),
       slopes = matrix(vapply(u, function(u) as.vector((k * u) %*% w), k[, 1]), nrow(k)))
}

hard_sets <- list(
  normal = function(n, d) matrix(rnorm(n * d), n),
  `far from zero` = function(n, d) matrix(rnorm(n * d), n) + 1e6,
  outliers = function(n, d) rbind(matrix(rnorm((n - 2) * d), n - 2), 1e9, 60),
  copies = function(n, d) matrix(rnorm(7 * d), 7)[sample(7, n, TRUE), ],
  `one point` = function(n, d) matrix(3, 1, d),
  clusters = function(n, d) matrix(rnorm(n * d, sd = 0.3), n) + sample(c(-6, 6), n, TRUE)
)

test_that("errors of sums and slopes are within their bounds", {
  withr::local_seed(61)
  for (backend in test_backends()) for (set in names(hard_sets)) for (d in c(4, 9, 16, 21, 40, 64)) {
    x <- hard_sets[[set]](500, d)
    h <- 0.45 + 0.03 * d
    for (q in list(NULL, rbind(x[seq_len(min(9, nrow(x))), ] + 0.1, x[1, ] + 30 * h))) {
      for (w in list(NULL, rexp(nrow(x))^3, rnorm(nrow(x)))) {
        problem <- tensor_problem(x, q, h, w, backend)
        want <- by_definition(problem, h)
        info <- paste(backend, set, d, length(q), length(w))
        for (slopes in c(FALSE, TRUE)) {
          got <- tensor_sums(problem, if (slopes) rep(1, d))
          kept <- setdiff(seq_len(nrow(problem$query)), got$missed)
          expect_true(all(abs(got$sum[kept] - want$sum[kept]) <= 1e-4 * want$size[kept] + 1e-300), info = info)
          if (slopes) {
            off <- abs(got$slopes[kept, ] / h - want$slopes[kept, ])
            expect_true(all(off <= 1e-4 * want$size[kept] + 1e-300), info = info)
          } else if (set == "normal") expect_lt(length(got$missed), 0.1 * nrow(problem$query) + 2)
        }
      }
    }
  }
  for (backend in test_backends()) {
    x <- matrix(rnorm(3000), 300)
    h <- runif(10, 0.6, 1.2)
    problem <- tensor_problem(x, NULL, h, NULL, backend)
    want <- by_definition(problem, h)
    got <- tensor_sums(problem, rep(2, 10))
    expect_equal(got$sum, want$sum, tolerance = 1e-4)
    expect_equal(got$slopes, 2 * want$slopes, tolerance = 1e-4) # native points are in bandwidths
    expect_identical(tensor_sums(problem, rep(2, 10)), got)
    moved <- tensor_sums(tensor_problem(x, NULL, 0.8, NULL, backend), rep(0.5, 10), moved = TRUE)
    expect_equal(moved$slopes, kde(x, 0.8, bias = "score", rel_error = 0, run = "cpu")$data, tolerance = 1e-4)
    none <- tensor_sums(tensor_problem(x, NULL, 1, numeric(300), backend), rep(1, 10))
    expect_identical(none[c("sum", "slopes")], list(sum = numeric(300), slopes = matrix(0, 300, 10)))
  }
})

test_that("queries that miss their error are summed in double", {
  skip_if_no_cuda()
  withr::local_seed(62)
  # clusters so far apart that those at the ends are beyond the grid, and queries that are far from all points
  x <- matrix(rnorm(20000 * 6), 20000) + sample(c(-60, 0, 60), 20000, TRUE, c(0.01, 0.98, 0.01))
  q <- rbind(x[1:3000, ] + 0.1, matrix(20, 5, 6))
  problem <- tensor_problem(x, q, 0.8, NULL, "cuda")
  problem$rel_error <- 3e-4
  missed <- tensor_sums(problem, rep(1, 6))$missed
  expect_gt(length(missed), 5)
  expect_lt(length(missed), 1500)
  exact <- kernel_gradient(q, x, bandwidth = 0.8, run = "cuda")
  near <- kernel_gradient(q, x, bandwidth = 0.8, rel_error = 3e-4, run = "cuda")
  # sums of queries that are far from all points are 0
  expect_true(all(abs(near$sum - exact$sum) <= 3e-4 * exact$sum))
  expect_true(all(abs(near$gradient - exact$gradient) * 0.8 <= 3e-4 * exact$sum))
  sums <- kernel_sum(q, x, bandwidth = 0.8, rel_error = 1e-4, run = "cuda")
  expect_true(all(abs(sums - exact$sum) <= 1e-4 * exact$sum))
})

test_that("only sums that fit tensor cores go there", {
  problem <- tensor_problem(matrix(0, 3, 8))
  expect_true(fits_tensor_cores(problem))
  for (other in list(list(kernel = "laplacian"), list(rel_error = 5e-5), list(log = TRUE), list(leave_one_out = TRUE),
                     list(weights = matrix(1, 3, 2)), list(reference = matrix(0, 3, 3)),
                     list(reference = matrix(0, 3, 65)))) {
    expect_false(fits_tensor_cores(utils::modifyList(problem, other)))
  }
  size <- list(references = 1e6, queries = 1e5, d = 16, m = 1, value = 5, threads = 4)
  plan <- function(operation, precision) do.call(kernel_plan, c(operation, size, precision = precision))
  for (operation in c("direct", "slopes")) {
    expect_identical(plan(operation, "relative")$engine[["cuda"]], tensor_engine)
    expect_lt(plan(operation, "relative")$cuda, plan(operation, "double")$cuda)
    expect_identical(plan(operation, "relative")$cpu, plan(operation, "double")$cpu)
  }
})

test_that("calls on a device keep their errors", {
  skip_if_no_cuda()
  withr::local_seed(63)
  x <- matrix(rnorm(20000 * 12), 20000)
  q <- x[1:2000, ] + 0.05
  w <- rnorm(20000)
  for (h in list(0.8, runif(12, 0.6, 1))) {
    exact <- kernel_gradient(q, x, w, bandwidth = h, run = "cuda")
    size <- kernel_sum(q, x, abs(w), bandwidth = h, run = "cuda")
    near <- kernel_gradient(q, x, w, bandwidth = h, rel_error = 3e-4, run = "cuda")
    expect_lte(max(abs(near$sum - exact$sum) / size), 3e-4)
    expect_lte(max(abs(near$gradient - exact$gradient) * rep(h, each = 2000, length.out = 24000) / size), 3e-4)
    sums <- kernel_sum(q, x, w, bandwidth = h, rel_error = 1e-4, run = "cuda")
    expect_lte(max(abs(sums - exact$sum) / size), 1e-4)
  }
  expect_equal(kde(x, 0.8, bias = "score", run = "cuda")$data,
               kde(x, 0.8, bias = "score", rel_error = 0, run = "cuda")$data, tolerance = 1e-5)
  far <- rbind(x, 1e4 + x[1:9, ]) # beyond the grid
  expect_equal(kde(far, 0.8, bias = "score", run = "cuda")$data,
               kde(far, 0.8, bias = "score", rel_error = 0, run = "cuda")$data, tolerance = 1e-5)
})
