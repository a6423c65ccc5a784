#' Kernel principal components
#'
#' `kernel_pca()` finds kernel principal components. The shortest call is `kernel_pca(x)`; it returns an object with
#' eigenvalues, eigenvectors and scores. The leading eigenvectors of the centred kernel matrix \eqn{H K H} come from a
#' block Krylov iteration whose products are exact kernel sums. For up to 5,000 points, the matrix is stored during the
#' call (200 MB) if it fits into a quarter of the free memory; otherwise, the kernels are evaluated again for each
#' product.
#'
#' Scores of the training points have length \eqn{\sqrt{\lambda}}: column j of the scores is
#' \eqn{\sqrt{\lambda_j}\, u_j}. `predict()` projects new points,
#' \eqn{\sum_i u_{ij} \tilde k(q, x_i) / \sqrt{\lambda_j}} with the centred kernel \eqn{\tilde k}, and returns the
#' scores at the training points.
#'
#' @param x points in rows: a numeric matrix or data frame, or a vector in one dimension.
#' @param k the number of components.
#' @param kernel,bandwidth as for [kernel_sum()]; the polynomial kernel is allowed.
#' @param tolerance the largest residual of an eigenvector, relative to the largest eigenvalue.
#' @param max_iterations the largest number of blocks.
#' @param seed a whole number that determines the starting block; by default, it is drawn from R's generator.
#' @param run see [weft_run()].
#' @param ... not used; for an unknown argument, the error suggests the intended one.
#' @return An object of class `weft_kernel_pca`: `values` (\eqn{\lambda}), `vectors` (\eqn{u}), `scores`. It can be
#'   saved with `saveRDS()`.
#' @export
#' @examples
#' p <- kernel_pca(iris[1:4], 2, bandwidth = 2)
#' p
#' plot(p$scores, col = iris$Species)
#' predict(p, iris[1:2, 1:4])
kernel_pca <- function(x, k = 2, kernel = "gaussian", bandwidth = 1, tolerance = 1e-8, max_iterations = 60, seed = NULL,
                       run = NULL, ...) {
  run <- as_run(run)
  started <- proc.time()[[3L]]
  check_dots(..., .known = kernel_names_elsewhere, .inside = polynomial_inside)
  need_args("x")
  own <- split_kernel(kernel)
  kernel <- own$name
  run <- use_backend(run)
  x <- kernel_points(x, "x")
  n <- nrow(x)
  if (n < 2L) abort_input("`x` must have at least two rows.")
  for (names in dimnames(x)) check_encoding(names, "x")
  k <- check_number(k, "k", min = 1, max = n - 1, whole = TRUE)
  tolerance <- check_number(tolerance, "tolerance", min = 1e-13, max = 0.1)
  max_iterations <- check_number(max_iterations, "max_iterations", min = 1, max = 1e6, whole = TRUE)
  object <- new_result(class = "weft_kernel_pca", list(
    kernel = kernel, bandwidth = if (kernel == "polynomial") 1 else plain_bandwidth(bandwidth, x),
    polynomial = unlist(own$polynomial, use.names = FALSE), data = unname(x), names = colnames(x),
    rows = rownames(x), n = n, d = ncol(x), backend = run$backend
  ))
  sums <- kernel_pca_matrix(object, run) %||%
    function(v) kernel_pca_sums(object, NULL, v, run)
  centred <- function(v) {
    out <- sums(v)
    out - rep(colMeans(out), each = n)
  }
  found <- block_krylov(centred, n, k, tolerance, max_iterations, kernel_key(seed), run_control("cpu", run$threads))
  object$values <- found$values
  object$vectors <- found$vectors
  object$scores <- found$vectors * rep(sqrt(pmax(found$values, 0)), each = n)
  dimnames(object$scores) <- list(object$rows, paste0("KPC", seq_len(k)))
  # the mean over the training points of k(x_l, x_i), projected: what centres new points
  object$shift <- colSums(found$vectors * as.vector(sums(matrix(1 / n, n))))
  object$iterations <- found$iterations
  object$call <- match.call()
  object$seconds <- proc.time()[[3L]] - started
  object
}

kernel_pca_sums <- function(object, query, weights, run) {
  p <- object$polynomial
  points <- if (is.null(query)) object$data else query
  out <- kernel_sum(points, if (!is.null(query)) object$data, weights = weights,
                    kernel = if (object$kernel == "polynomial") kernel_polynomial(p[3L], p[2L], p[1L])
                             else object$kernel,
                    bandwidth = object$bandwidth, run = run_but(run, verbose = FALSE))
  matrix(out, nrow(points), ncol(weights))
}

# Products with the kernel matrix, held: a function of the vectors; NULL where evaluating kernels anew is asked for (on
# a device), or needed.
kernel_pca_matrix <- function(object, run) {
  there <- .Call(C_weft_host_available)
  if (object$n > 5000 || object$kernel == "polynomial" || object$backend == "cuda" ||
      (there > 0 && 8 * object$n^2 > there / 4)) return(NULL)
  problem <- kernel_problem(object$data, NULL, NULL, object$kernel, object$bandwidth, run = run)
  points <- native_points(object$data, problem)
  held <- kernel_matrix(points, points, problem)
  function(v) matrix_product(held, v, problem$control, transposed = TRUE) # symmetric; read along its columns
}

# Rayleigh and Ritz over the span of V, A V, A^2 V ..., each block made orthogonal to all before, twice. `product`
# applies a symmetric operator whose range is orthogonal to the constants.
block_krylov <- function(product, n, k, tolerance, max_iterations, key, control) {
  width <- if (n <= 64) n - 1 else min(n - 1, k + 4) # of few points the whole space, by one product
  centre <- function(v) v - rep(colMeans(v), each = n)
  times <- function(a, b) matrix_product(a, b, control)
  cross <- function(a, b) matrix_product(a, b, control, transposed = TRUE)
  block <- qr.Q(qr(centre(matrix(draws("normal", n * width, key = key, stream = 4), n))))
  basis <- image <- matrix(0, n, 0)
  small <- matrix(0, 0, 0) # basis' A basis
  outside <- function(v) { # of the constants and of the basis
    v <- centre(v)
    v - times(basis, cross(basis, v))
  }
  for (iteration in seq_len(max_iterations)) {
    fresh <- product(block)
    beside <- cross(basis, fresh)
    own <- cross(block, fresh)
    small <- rbind(cbind(small, beside), cbind(t(beside), (own + t(own)) / 2))
    basis <- cbind(basis, block)
    image <- cbind(image, fresh)
    e <- eigen(small, symmetric = TRUE)
    top <- seq_len(min(k, ncol(basis)))
    ritz <- e$vectors[, top, drop = FALSE]
    vectors <- times(basis, ritz)
    residual <- times(image, ritz) - vectors * rep(e$values[top], each = n)
    settled <- length(top) == k && max(sqrt(colSums(residual^2))) <= tolerance * max(abs(e$values[1L]), 1e-300)
    room <- n - 1 - ncol(basis)
    if (settled || room < 1) break
    rounding <- 1e-10 * sqrt(max(colSums(fresh^2))) # what is left of a column that the basis holds already
    left <- svd(outside(outside(fresh)), nv = 0)
    rank <- min(sum(left$d > rounding), room)
    if (rank < 1) break
    block <- qr.Q(qr(outside(outside(left$u[, seq_len(rank), drop = FALSE]))))
  }
  if (ncol(vectors) < k) { # fewer eigenvalues than asked for are not zero
    vectors <- cbind(vectors, matrix(0, n, k - ncol(vectors)))
  }
  list(values = c(e$values[top], numeric(k - length(top))), vectors = vectors, iterations = iteration)
}

#' Project new points onto kernel principal components
#'
#' @param object,x an object returned by [kernel_pca()].
#' @param newdata points in rows, whose columns are matched by name; by default the training points.
#' @param run see [weft_run()].
#' @param ... for `plot()`, arguments of [graphics::plot.default()]; otherwise ignored.
#' @return `predict()`: a matrix of scores; `print()` and `plot()`: `x`, invisibly. `plot()` draws the scores of the
#'   first two components, or of the only one.
#' @export
#' @examples
#' p <- kernel_pca(iris[1:4], 2, bandwidth = 2)
#' all.equal(predict(p, iris[1:4]), p$scores)
#' plot(p, col = iris$Species)
predict.weft_kernel_pca <- function(object, newdata = NULL, ..., run = NULL) {
  run <- as_run(run)
  check_parts(object, "kernel_pca()", pca_parts(object))
  if (is.null(newdata)) return(object$scores)
  q <- match_columns(newdata, object)$points
  sums <- kernel_pca_sums(object, q, object$vectors, run)
  root <- sqrt(pmax(object$values, 0))
  scores <- (sums - rep(object$shift, each = nrow(q))) / rep(ifelse(root > 0, root, Inf), each = nrow(q))
  dimnames(scores) <- list(rownames(q), colnames(object$scores))
  scores
}

pca_parts <- function(object) {
  k <- length(object$values)
  seen <- new.env()
  c(point_parts(object, c(kernel_names, "polynomial"), seen), list(
    bandwidth = function(v) object$kernel == "polynomial" || !is.null(model_bandwidth(object, seen$facts$range)),
    polynomial = function(v) is_reals(v, 3L) && is_count(v[3L]) && v[3L] <= 100,
    values = function(v) is_reals(v, k) && k > 0L,
    vectors = function(v) is.double(v) && is_table(v, object$n, k),
    scores = function(v) {
      root <- sqrt(pmax(object$values, 0))
      is.double(v) && is_table(v, object$n, k) && same_numbers(v, object$vectors * rep(root, each = object$n))
    },
    shift = function(v) is_reals(v, k),
    iterations = is_count
  ))
}

same_numbers <- function(a, b) all(abs(a - b) <= 1e-10 * max(abs(b), 1e-300))

#' @rdname predict.weft_kernel_pca
#' @export
print.weft_kernel_pca <- function(x, ...) {
  check_parts(x, "kernel_pca()", pca_parts(x))
  cat(sprintf("Kernel principal components of %d points in %d dimension%s, %s kernel\n", x$n, x$d, if (x$d == 1L) ""
              else "s", x$kernel))
  cat("Eigenvalues:", paste(signif(x$values, 5), collapse = ", "), "\n")
  cat(sprintf("%.0f blocks, %s\n", x$iterations, seconds_text(x$seconds)))
  invisible(x)
}

#' @rdname predict.weft_kernel_pca
#' @export
summary.weft_kernel_pca <- function(object, ...) glance(object)
