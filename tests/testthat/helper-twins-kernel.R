# The kernel sums' rows of the table in test-twins.R. Double sums differ by the order of their additions; single ones
# lie within their bound of the double ones on either back end.
twins_kernel <- function() {
  kernels <- native_kernels
  points <- function(n, d) matrix(stats::rnorm(n * d), n)
  direct <- lapply(kernels, function(kernel) {
    list(tolerance = 1e-11, work = function(backend) {
      d <- sample(c(1, 3, 10, 33, 64, 70), 1)
      x <- points(sample(100:400, 1), d)
      w <- cbind(stats::runif(nrow(x)), stats::rnorm(nrow(x)), 1)
      h <- 0.7 * sqrt(d)
      sum <- function(...) as.vector(call_with(kernel_sum,
                                               list(..., kernel = kernel, method = "direct", run = backend)))
      list(sum(points(60, d), x, w, bandwidth = h), sum(x, weights = w[, 1], bandwidth = h, leave_one_out = TRUE),
           sum(points(9, d), x, w[, 1], bandwidth = h * stats::runif(d, 0.5, 2)),
           sum(points(9, 2), x[, c(1, d)], w[, 1], bandwidth = stats::runif(2, 1, 2)),
           sum(points(9, 3), x[, c(d, 1, d)], w, bandwidth = stats::runif(3, 1, 2)),
           sum(points(40, d), x, w[, 1], bandwidth = h, log = TRUE))
    })
  })
  single <- function(precision) list(tolerance = 1e-4, work = function(backend) {
    lapply(setdiff(kernels, "uniform"), function(kernel) lapply(c(2, 10, 17, 36), function(d) {
      x <- points(300, d)
      lapply(list(stats::runif(300), cbind(stats::runif(300), 1)), function(w) {
        as.vector(kernel_sum(x, weights = w, kernel = kernel, bandwidth = sqrt(d), run = backend,
                             control = list(precision = precision)))
      })
    }))
  })
  # far from zero, in units of any size: coordinates are 10^9 bandwidths and more
  single_far <- list(tolerance = 1e-3, work = function(backend) {
    lapply(c("gaussian", "laplacian", "matern52", "matern72", "epanechnikov", "cosine", "wendland"), function(kernel) {
      unit <- 10^stats::runif(1, -60, 60)
      x <- (points(200, 3) + 2^sample(25:45, 1)) * unit
      lapply(c("single", "tensor"), function(precision) {
        as.vector(kernel_sum(x, weights = stats::runif(200) * unit, kernel = kernel, bandwidth = 5 * unit,
                             run = backend, control = list(precision = precision))) / unit
      })
    })
  })
  # more queries than are summed together
  slabs <- list(tolerance = 1e-4, work = function(backend) {
    n <- if (has_test_entries()) 8001 else 270001
    q <- matrix(stats::runif(n * 2), n)
    x <- q[sample(n, 8), ]
    lapply(c(single = "single", tensor = "tensor", double = "double"), function(precision) {
      as.vector(kernel_sum(q, x, stats::runif(8), "gaussian", 0.5, method = "direct", run = backend,
                           control = list(precision = precision)))
    })
  })
  slabs_of_itself <- list(tolerance = 1e-11, work = function(backend) {
    x <- matrix(stats::runif(2 * sample(1537:5000, 1)), ncol = 2)
    w <- cbind(stats::runif(nrow(x)), 1)
    as.vector(kernel_sum(x, weights = w, kernel = "cosine", bandwidth = 0.5, method = "direct", leave_one_out = TRUE,
                         run = backend))
  })
  slopes <- list(tolerance = 1e-10, work = function(backend) {
    smooth <- setdiff(names(weft:::kernel_slopes), "epanechnikov")
    lapply(smooth, function(kernel) lapply(c(2, 4, 7, 16, 20), function(d) {
      x <- points(sample(100:3000, 1), d) + 5
      q <- points(sample(1:400, 1), d) + 5
      w <- stats::rnorm(nrow(x))
      h <- 0.7 * sqrt(d) * stats::runif(d, 0.7, 1.5)
      gradient <- function(...) unname(call_with(kernel_gradient, list(..., kernel = kernel, run = backend)))
      trace <- kernel != "matern32"
      list(gradient(q, x, w, bandwidth = h[1], trace = trace), gradient(q, x, bandwidth = h, trace = trace),
           gradient(q, x, w, bandwidth = diag(h^2) + 0.1), gradient(q, bandwidth = h[1], leave_one_out = TRUE))
    }))
  })
  # each number of blocks of 8 dimensions that has a kernel of its own; slopes of references and of other points
  tensor <- list(tolerance = 1e-4, work = function(backend) {
    lapply(c(4, 8, 10, 16, 20, 30, 40, 64), function(d) {
      x <- points(sample(60:900, 1), d) + 5
      q <- x[sample(nrow(x), sample(1:300, 1), TRUE), , drop = FALSE] + 0.1
      sums <- function(q, w, h, slopes) {
        problem <- list(query = if (is.null(q)) x else q, reference = x, self = is.null(q), weights = w,
                        rel_error = 1e-3, abs_error = 0, bandwidth = weft:::check_bandwidth(h, d, 20),
                        control = weft:::run_control(backend))
        unlist(weft:::tensor_sums(problem, if (slopes) rep(1, d))[c("sum", "slopes")])
      }
      h <- 0.4 * sqrt(d)
      w <- matrix(stats::rnorm(nrow(x)))
      list(sums(NULL, NULL, h, TRUE), sums(q, NULL, h * stats::runif(d, 0.8, 1.2), TRUE), sums(q, w, h, TRUE),
           sums(q, abs(w), h, FALSE), sums(NULL, w, h, FALSE))
    })
  })
  on_grid <- c("gaussian", compact_kernels)
  grid <- lapply(on_grid, function(kernel) {
    list(tolerance = if (kernel == "gaussian") 1e-3 else 1e-11, work = function(backend) {
      error <- if (kernel == "gaussian") 1e-3 else 0 # the device sums compact kernels exactly, whatever is asked
      lapply(c(1, 2, 4, 6, 8, 10, 13), function(d) {
        x <- matrix(stats::runif(700 * d), 700)
        w <- cbind(stats::runif(700), 1)
        sum <- function(...) as.vector(call_with(kernel_sum, list(..., kernel = kernel, bandwidth = 0.15 * sqrt(d),
                                                                  rel_error = error, method = "tree", run = backend)))
        list(sum(matrix(stats::runif(70 * d), 70) * 1.2, x, w), sum(x, weights = w, leave_one_out = TRUE))
      })
    })
  })
  # 64 runs of 32 points for each part and more
  grid_parts <- list(tolerance = 1e-11, work = function(backend) {
    withr::local_options(weft.devices = c(0, 0, 0))
    d <- sample(c(2, 3, 10), 1)
    x <- matrix(stats::runif(7000 * d), 7000)
    w <- cbind(stats::runif(7000), 1)
    sum <- function(q = x, ...) as.vector(call_with(kernel_sum, list(q, ..., kernel = "biweight", bandwidth = 0.1 * d,
                                                                     run = backend)))
    list(sum(weights = w, method = "tree", leave_one_out = TRUE), sum(x[1:5000, ] * 1.1, x, w[, 1], method = "tree"),
         sum(method = "direct", leave_one_out = TRUE))
  })
  # what cells get wrong first: each kind of points with queries among them, on the border of their box, beside it and
  # far away
  hard_points <- list(
    "close together" = function(n, d) 1000 + matrix(stats::runif(n * d, -1, 1), n) * 10^stats::runif(1, -8, -5),
    "far from zero" = function(n, d) sample(c(-1, 1), 1) * 1e5 + matrix(stats::runif(n * d, -4, 4), n),
    copies = function(n, d) matrix(sample(0:1, n * d, TRUE), n) + 0,
    "flat but for one dimension" = function(n, d) matrix(7, n, d) + cbind(stats::runif(n), matrix(0, n, d - 1)),
    spread = function(n, d) matrix(stats::rcauchy(n * d), n)
  )
  grid_hard <- lapply(hard_points, function(draw) list(tolerance = 1e-11, work = function(backend) {
    lapply(c(1, 2, sample(3:24, 4)), function(d) {
      n <- sample(c(1, 2, 17, 63, 200, 700), 1)
      x <- matrix(draw(n, d), n)
      box <- apply(x, 2, range)
      corners <- matrix(box[cbind(sample(2, 6 * d, TRUE), rep(seq_len(d), each = 6))], 6)
      q <- rbind(x[sample(n, 9, TRUE), , drop = FALSE], corners, corners * 1.5, matrix(stats::runif(9 * d, -2, 2), 9),
                 -1, 1e5)
      size <- max(box[2, ] - box[1, ], 1e-6) * sqrt(d)
      h <- sample(c(size * c(0.1, 0.3, 1, 1e4, 1e9), max(abs(x), 1e-6), 2.88), 1)
      sum <- function(...) {
        as.vector(call_with(kernel_sum, list(..., kernel = sample(compact_kernels, 1), bandwidth = h, method = "tree",
                                             run = backend)))
      }
      list(sum(q, x), sum(x, weights = stats::runif(n), leave_one_out = TRUE),
           sum(rbind(x, q), x, cbind(stats::runif(n), 1)))
    })
  }))
  # the same scheme on both, so that sums differ by rounding alone; widths of one block of nodes and of several
  mesh_scheme <- function(d, n, width, spacing, target, columns = TRUE) list(tolerance = 1e-10, work = function(on) {
    x <- points(n, d)
    q <- rbind(x[1:min(n, 9), , drop = FALSE], points(60, d) * 1.5, matrix(c(-9, 7), 2, d))
    w <- cbind(stats::runif(n), stats::rexp(n))
    sums <- function(query, weights, h) {
      as_native <- function(x) if (columns) list(columns = x) else {
        .Call(weft:::C_weft_kernel_points, x, x[1, ], as.double(seq_len(d)), FALSE, weft:::run_control())
      }
      reference <- as_native(x)
      task <- weft:::sums_task("gaussian", h, if (is.null(query)) reference else as_native(query), reference,
                               t(weights), FALSE)
      .Call(weft:::C_weft_kernel_mesh, task, c(width, spacing), target, weft:::run_control(on))$sum
    }
    list(sums(NULL, w, 0.6), sums(q, w * 1e-200, 0.4) * 1e200, sums(NULL, w[, 1, drop = FALSE] * 1e200, 0.9) * 1e-200)
  })
  mesh_schemes <- list(
    "1-D, 8 nodes" = mesh_scheme(1, 3000, 8, 0.5, 1e-6), "1-D, 16 nodes" = mesh_scheme(1, 700, 16, 0.35, 1e-11),
    "2-D, 4 nodes" = mesh_scheme(2, 5000, 4, 0.45, 1e-2), "2-D, 12 nodes" = mesh_scheme(2, 2000, 12, 0.4, 1e-8, FALSE),
    "3-D, 6 nodes" = mesh_scheme(3, 900, 6, 0.5, 1e-4, FALSE), "3-D, 10 nodes" = mesh_scheme(3, 400, 10, 0.45, 1e-7),
    "one point" = mesh_scheme(3, 1, 8, 0.5, 1e-6)
  )
  mesh_calls <- list(tolerance = 1e-6, work = function(backend) {
    x <- points(2000, sample(3, 1))
    w <- cbind(stats::rnorm(2000), 1)
    sum <- function(...) as.vector(call_with(kernel_sum, list(..., bandwidth = 0.5, method = "mesh", run = backend)))
    list(sum(x, weights = w, abs_error = 1e-5), sum(x, rel_error = 1e-7, leave_one_out = TRUE),
         sum(x[1:50, , drop = FALSE] * 2, x, w[, 2], rel_error = 1e-6), sum(x, rel_error = 1e-7, log = TRUE))
  })
  mesh_chunks <- list(tolerance = 1e-10, work = function(backend) {
    withr::local_options(weft.device_memory = 2e7)
    x <- points(200000, 2)
    task <- weft:::sums_task("gaussian", 1, list(columns = x), list(columns = x), matrix(1, 1, 200000), FALSE)
    .Call(weft:::C_weft_kernel_mesh, task, c(8, 0.5), 1e-6, weft:::run_control(backend))$sum
  })
  c(stats::setNames(direct, paste0("kernel sums, ", kernels)),
    list("kernel sums, single" = single("single"), "kernel sums, tensor" = single("tensor"),
         "kernel sums, single and tensor, far from zero" = single_far,
         "kernel gradients" = slopes, "kernel sums on tensor cores" = tensor,
         "kernel sums, more queries than at a time" = slabs,
         "kernel sums, more queries than at a time, each left out" = slabs_of_itself),
    stats::setNames(grid, paste0("kernel sums, grid, ", on_grid)),
    stats::setNames(grid_hard, paste0("kernel sums, grid, points ", names(hard_points))),
    list("kernel sums, grid of three parts" = grid_parts),
    stats::setNames(mesh_schemes, paste0("kernel sums, mesh, ", names(mesh_schemes))),
    list("kernel sums, mesh, calls" = mesh_calls, "kernel sums, mesh, more points than fit" = mesh_chunks))
}
