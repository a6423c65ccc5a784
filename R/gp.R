#' Gaussian-process regression without a matrix
#'
#' `gp_regression()` fits a Gaussian process to many points. The shortest call is `gp_regression(x, y)`; it returns an
#' object whose `predict()` method gives means and standard deviations at new points. It solves
#' \eqn{(K + noise\, I)\, \alpha = y} with preconditioned conjugate gradients whose products are exact kernel sums,
#' without storing the \eqn{n \times n} matrix.
#'
#' The prior has mean zero and covariance `variance` times the kernel; `y` is not centred. The preconditioner is a
#' pivoted Cholesky factor of low rank plus the noise or, if this is faster, the Cholesky factor of the whole matrix,
#' whose solution is then checked and refined by one or two steps of conjugate gradients. Predictive variances need one
#' more solution per query; these are computed in blocks.
#'
#' @param x points in rows: a numeric matrix or data frame, or a vector in one dimension.
#' @param y the responses, one per row.
#' @param kernel the name of a kernel (see [`?kernels`][kernels]), which must be positive definite in the dimensions of
#'   `x`.
#' @param bandwidth the bandwidth of the kernel, as for [kernel_sum()].
#' @param noise the variance of the noise, which must be positive.
#' @param variance the variance of the process.
#' @param rank the rank of the preconditioner: a number up to 2000, or the number of points for the factor of the whole
#'   matrix. By default, the whole matrix is used for up to 20,000 points if it fits into a quarter of the free memory
#'   and is predicted to be faster, otherwise 100.
#' @param tolerance the tolerance of the residual relative to `y` (for predictive variances, relative to the
#'   covariances).
#' @param max_iterations the largest number of iterations.
#' @param run see [weft_run()].
#' @param ... not used; for an unknown argument, the error suggests the intended one.
#' @return An object of class `weft_gp`: `alpha`, `iterations`, `residual` and the arguments. It can be saved with
#'   `saveRDS()`.
#' @export
#' @examples
#' y <- faithful$eruptions - mean(faithful$eruptions)
#' g <- gp_regression(faithful$waiting, y, bandwidth = 10, noise = 0.1)
#' g
#' predict(g, c(50, 80), se = TRUE)
gp_regression <- function(x, y, kernel = "gaussian", bandwidth = 1, noise = 1e-2, variance = 1, rank = NULL,
                          tolerance = 1e-6, max_iterations = 1000, run = NULL, ...) {
  run <- as_run(run)
  started <- proc.time()[[3L]]
  check_dots(..., .known = kernel_names_elsewhere)
  need_args("x", "y")
  kernel <- check_choice(kernel, definite_kernels, "kernel")
  run <- use_backend(run)
  x <- kernel_points(x, "x")
  check_definite(kernel, ncol(x))
  y <- check_response(y, nrow(x))
  noise <- check_number(noise, "noise", min = 1e-12, max = 1e100)
  variance <- check_number(variance, "variance", min = 1e-100, max = 1e100)
  if (!is.null(rank)) rank <- check_number(rank, "rank", min = 0, max = max(2000, nrow(x)), whole = TRUE)
  tolerance <- check_number(tolerance, "tolerance", min = 1e-14, max = 1)
  max_iterations <- check_number(max_iterations, "max_iterations", min = 1, max = 1e9, whole = TRUE)
  if (!nrow(x)) abort_input("`x` must have at least one row.")
  chosen <- list(rank = rank %||% gp_rank(nrow(x), ncol(x), kernel, run$backend))
  object <- new_result(class = "weft_gp", list(
    kernel = kernel, bandwidth = plain_bandwidth(bandwidth, x), noise = noise,
    variance = variance, rank = chosen$rank, tolerance = tolerance, max_iterations = max_iterations, data = unname(x),
    names = colnames(x), rows = rownames(x), d = ncol(x), n = nrow(x), y = y, backend = run$backend
  ))
  if (is.null(rank)) chosen <- gp_look(object, run)
  object$rank <- chosen$rank
  solved <- gp_solve(object, gp_preconditioner(object, run$threads, chosen$root), matrix(y), run)
  object$alpha <- solved$x[, 1L]
  object$iterations <- solved$iterations
  object$residual <- solved$residual
  object$call <- match.call()
  object$seconds <- proc.time()[[3L]] - started
  object
}

# A function that applies (L L' + noise I)^-1, by the Woodbury identity, or the inverse of the whole matrix. root: L
# without the variance, where it is known.
gp_preconditioner <- function(object, threads, root = NULL) {
  r <- min(object$rank, object$n)
  if (r < 1) return(function(v) v)
  problem <- kernel_problem(object$data, NULL, NULL, object$kernel, object$bandwidth,
                            run = as_run(weft_run(threads = threads)))
  z <- native_points(object$data, problem)
  whole <- if (r == object$n && is.null(root)) {
    gp_factor(z, object$kernel, problem$bandwidth$h, object$variance, object$noise, problem$control)
  }
  if (!is.null(whole)) return(whole)
  r <- min(r, 2000)
  if (is.null(root)) root <- pivoted_cholesky(z, problem, r, function(residual) FALSE)$root
  root <- sqrt(object$variance) * root
  times <- function(v, transposed = FALSE) matrix_product(root, v, problem$control, transposed)
  inner <- chol(times(root, TRUE) + diag(object$noise, ncol(root)))
  function(v) (v - times(backsolve(inner, forwardsolve(t(inner), times(v, TRUE))))) / object$noise
}

# Conjugate gradients for all columns of b at once.
gp_solve <- function(object, precondition, b, run) {
  x <- matrix(0, nrow(b), ncol(b))
  r <- b
  size <- sqrt(colSums(b^2))
  size[size == 0] <- 1
  z <- precondition(r)
  p <- z
  rz <- colSums(r * z)
  iterations <- 0
  while (any(sqrt(colSums(r^2)) > object$tolerance * size) && iterations < object$max_iterations) {
    q <- gp_product_self(object, p, run) + object$noise * p
    step <- rz / colSums(p * q)
    step[!is.finite(step)] <- 0
    x <- x + p * rep(step, each = nrow(b))
    r <- r - q * rep(step, each = nrow(b))
    z <- precondition(r)
    new <- colSums(r * z)
    ratio <- new / rz
    ratio[!is.finite(ratio)] <- 0
    p <- z + p * rep(ratio, each = nrow(b))
    rz <- new
    iterations <- iterations + 1
  }
  residual <- max(sqrt(colSums(r^2)) / size)
  if (residual > object$tolerance) {
    weft_warn("convergence", sprintf("Conjugate gradients stopped after %.0f iterations with a residual of %.2g.",
                                     iterations, residual),
              i = "Raise `noise`, `rank` or `max_iterations`.")
  }
  list(x = x, iterations = iterations, residual = residual)
}

gp_product_self <- function(object, v, run) {
  matrix(object$variance *
         kernel_sum(object$data, weights = v, kernel = object$kernel, bandwidth = object$bandwidth,
                    run = run_but(run, verbose = FALSE)), nrow(v))
}

#' Predictions of a Gaussian process
#'
#' @param object,x an object returned by [gp_regression()].
#' @param newdata points in rows, whose columns are matched by name; by default the points of the regression.
#' @param se whether to also return the standard deviations of the process (without the noise).
#' @param run see [weft_run()].
#' @param ... for `plot()`, arguments of [graphics::plot.default()]; otherwise ignored.
#' @return `predict()`: the mean, or with `se = TRUE` a list of `fit` and `se`. `print()` and `plot()`: `x`, invisibly.
#'   `plot()` draws a process on one variable with bands of 1.96 standard deviations.
#' @export
#' @examples
#' g <- gp_regression(1:10, sin(1:10), bandwidth = 2)
#' predict(g, c(2.5, 100), se = TRUE)
#' plot(g)
predict.weft_gp <- function(object, newdata = NULL, se = FALSE, ..., run = NULL) {
  run <- as_run(run)
  check_parts(object, "gp_regression()", gp_parts(object))
  se <- check_flag(se, "se")
  q <- if (is.null(newdata)) name_rows(object$data, object$rows) else match_columns(newdata, object)$points
  fit <- object$variance *
    kernel_sum(q, object$data, weights = object$alpha, kernel = object$kernel, bandwidth = object$bandwidth, run = run)
  if (!se) return(fit)
  precondition <- gp_preconditioner(object, run$threads)
  problem <- kernel_problem(q, object$data, NULL, object$kernel, object$bandwidth, run = run)
  at <- native_points(object$data, problem)
  to <- native_points(q, problem)
  error <- numeric(nrow(q))
  for (first in seq(1, max(1, nrow(q)), by = 32)) {
    if (!nrow(q)) break
    some <- seq.int(first, min(nrow(q), first + 31))
    k <- kernel_matrix(at, some_points(to, some), problem, object$variance)
    error[some] <- sqrt(pmax(object$variance - colSums(k * gp_solve(object, precondition, k, run)$x), 0))
  }
  list(fit = fit, se = name_rows(error, rownames(q)))
}

gp_parts <- function(object) {
  seen <- new.env()
  c(point_parts(object, definite_kernels, seen), list(
    bandwidth = function(v) !is.null(model_bandwidth(object, seen$facts$range)),
    noise = function(v) is_number(v, 1e-12, 1e100),
    variance = function(v) is_number(v, 1e-100, 1e100),
    rank = is_count,
    tolerance = function(v) is_number(v, 1e-14, 1),
    max_iterations = function(v) is_count(v, 1),
    y = function(v) is_reals(v, object$n),
    alpha = function(v) is_reals(v, object$n),
    iterations = is_count,
    residual = function(v) is_number(v, 0)
  ))
}

#' @rdname predict.weft_gp
#' @export
print.weft_gp <- function(x, ...) {
  check_parts(x, "gp_regression()", gp_parts(x))
  cat(sprintf("Gaussian process on %d points in %d dimension%s, %s kernel, noise %g\n", x$n, x$d,
              if (x$d == 1L) "" else "s", x$kernel, x$noise))
  cat(sprintf("%.0f iterations to a residual of %.2g, %s\n", x$iterations, x$residual, seconds_text(x$seconds)))
  invisible(x)
}

#' @rdname predict.weft_gp
#' @export
summary.weft_gp <- function(object, ...) glance(object)
