#' Derivatives of kernel sums
#'
#' `kernel_gradient()` computes gradients of the sums of [kernel_sum()], \eqn{\nabla_q \sum_i w_i k(|q - x_i| / h)}, and
#' traces of their second derivatives. The shortest call is `kernel_gradient(x, bandwidth = h)`; it returns a list with
#' `sum` and `gradient`. The score of a density, which is the gradient of its logarithm, is `gradient / sum`.
#'
#' The slope of these kernels is a kernel again, g, over the same squared distance: a gradient is \eqn{c \sum_i w_i g_i
#' A^{-1} (x_i - q)}, where A is the bandwidth as a covariance. It is therefore made of kernel sums whose weights are
#' \eqn{w_i} and \eqn{w_i x_i}, by the method that [kernel_sum()] chooses for them.
#'
#' | kernel | g | c |
#' |---|---|---|
#' | `"gaussian"` | the same | 1 |
#' | `"epanechnikov"` | `"uniform"` | 2 |
#' | `"biweight"` | `"epanechnikov"` | 4 |
#' | `"matern32"` | `"laplacian"`, of bandwidth \eqn{h / \sqrt 3} | 3 |
#' | `"matern52"` | `"matern32"`, of bandwidth \eqn{h \sqrt{3 / 5}} | 5/3 |
#' | `"matern72"` | `"matern52"`, of bandwidth \eqn{h \sqrt{5 / 7}} | 7/5 |
#'
#' The trace of second derivatives is available for `"gaussian"`, `"biweight"`, `"matern52"` and `"matern72"`, for which
#' the slope of g is also a kernel.
#'
#' A device sums all pairs in double precision, in up to 32 dimensions, unless these kernel sums use a mesh. With a
#' `rel_error` of at least 1e-4, the Gaussian kernel and 4 to 64 dimensions, it uses products on tensor cores if they
#' are faster. Queries whose bound exceeds the error are summed again in double precision.
#'
#' @section Errors: Sums are within `rel_error` times \eqn{\sum |w| k}, component j of a gradient times
#'   \eqn{\sqrt{A_jj}} (the bandwidth) within `rel_error` times \eqn{c \sum |w| g}, and a trace within `rel_error`
#'   times \eqn{c\, \mathrm{tr}(A^{-1}) \sum |w| (g + c' g')}, g' and c' being of g what g and c are of the kernel. The
#'   sums that they are made of have smaller errors: with R bandwidths from one end of the points to the other, by a
#'   factor of 2 R for gradients, and by its square for traces. With `rel_error = 0` rounding leaves some 1e-15 times R,
#'   or its square.
#'
#' @param x,reference,weights,kernel,bandwidth see [kernel_sum()]; one column of weights, and a kernel of the table.
#' @param rel_error the permitted relative error, from 0 to 1; see section Errors.
#' @param trace whether to give the traces of second derivatives.
#' @param leave_one_out whether to exclude reference `i` from the sum of query `i`; the references must be the queries.
#' @param run see [weft_run()].
#' @param ... not used; for an unknown argument, the error suggests the intended one.
#' @return A list: `sum`, a number for each row of `x`; `gradient`, for each a row of as many numbers as `x` has
#'   columns; and with `trace` the `trace`.
#' @seealso [kernel_sum()], [kde()], whose `bias = "score"` uses gradients.
#' @export
#' @examples
#' x <- as.matrix(faithful)
#' d <- kernel_gradient(x[1:3, ], x, bandwidth = c(0.3, 5))
#' d$gradient / d$sum # the score
kernel_gradient <- function(x, reference = NULL, weights = NULL, kernel = "gaussian", bandwidth = 1, rel_error = 0,
                            trace = FALSE, leave_one_out = FALSE, run = NULL, ...) {
  run <- as_run(run)
  check_dots(..., .known = kernel_names_elsewhere)
  need_args("x")
  kernel <- check_choice(kernel, names(kernel_slopes), "kernel")
  rel_error <- check_number(rel_error, "rel_error", min = 0, max = 1)
  trace <- check_flag(trace, "trace")
  slopes <- list(kernel_slopes[[kernel]], kernel_slopes[[kernel_slopes[[kernel]]$kernel]])
  if (trace && is.null(slopes[[2L]])) {
    abort_input("`trace = TRUE` needs one of the kernels \"gaussian\", \"biweight\", \"matern52\" and \"matern72\".",
                x = sprintf("`kernel` is \"%s\".", kernel))
  }
  at <- checked_points(x, "x")
  query <- at$points
  self <- is.null(reference)
  over <- if (self) at else checked_points(reference, "reference")
  reference <- over$points
  if (ncol(query) != ncol(reference)) {
    abort_input("`x` and `reference` must have the same columns.",
                x = sprintf("`x` has %d, `reference` %d.", ncol(query), ncol(reference)))
  }
  weights <- kernel_weights(weights, nrow(reference))
  if (NCOL(weights %||% 1) > 1L) {
    abort_input("`weights` must contain one number per reference.", x = sprintf("It has %d columns.", NCOL(weights)))
  }
  given <- check_bandwidth(bandwidth, ncol(query), max(range_reach(at$range), range_reach(over$range)))
  sum_of <- function(kernel, wider, columns, rel_error) {
    kernel_sum(query, if (!self) reference, columns, kernel, scale_bandwidth(bandwidth, wider), rel_error,
               leave_one_out = leave_one_out, run = run)
  }
  first <- slopes[[1L]]
  problem <- list(query = query, reference = reference, self = self, weights = weights, bandwidth = given,
                  leave_one_out = leave_one_out, rel_error = rel_error, abs_error = 0, kernel = kernel, slopes = slopes,
                  trace = trace)
  out <- tensor_gradient(problem, run)
  if (is.null(out)) {
    there <- slopes_there(problem, run)
    frame <- if (is.null(there) || trace) gradient_frame(query, reference, given)
    slope_sums <- function(slope) {
      if (is.null(there)) gradient_sums(slope, frame, weights, trace, rel_error, sum_of) else there(slope)
    }
    of_slope <- slope_sums(first)
    out <- list(sum = if (first$kernel == kernel) of_slope$sum else sum_of(kernel, 1, weights, rel_error),
                gradient = if (first$times == 1) of_slope$gradient else first$times * of_slope$gradient)
  } else if (length(out$missed)) {
    again <- kernel_gradient(query[out$missed, , drop = FALSE], reference, weights, kernel, bandwidth,
                             rel_error = min(rel_error, kernel_limits()[["tensor_error"]]) / 2, run = run)
    out$sum[out$missed] <- again$sum
    out$slopes[out$missed, ] <- again$gradient
  }
  if (is.null(out$gradient)) names(out)[names(out) == "slopes"] <- "gradient"
  out <- out[c("sum", "gradient")]
  dimnames(out$gradient) <- if (!is.null(rownames(query)) || !is.null(colnames(reference))) {
    list(rownames(query), colnames(reference))
  }
  if (trace) {
    second <- slopes[[2L]]
    second$wider <- first$wider * second$wider
    squares <- if (second$kernel == first$kernel) of_slope$squares
               else slope_sums(second)$squares
    out$trace <- first$times * (second$times / first$wider^2 * squares - frame$trace * of_slope$sum)
  }
  out$sum <- name_rows(as.vector(out$sum), rownames(query))
  if (trace) out$trace <- name_rows(as.vector(out$trace), rownames(query))
  out
}

# -2 times the slope of a kernel over s = r^2 / h^2 is `times` the `kernel` whose bandwidth is `wider` times h.
kernel_slopes <- list(
  gaussian = list(kernel = "gaussian", times = 1, wider = 1),
  epanechnikov = list(kernel = "uniform", times = 2, wider = 1),
  biweight = list(kernel = "epanechnikov", times = 4, wider = 1),
  matern32 = list(kernel = "laplacian", times = 3, wider = sqrt(1 / 3)),
  matern52 = list(kernel = "matern32", times = 5 / 3, wider = sqrt(3 / 5)),
  matern72 = list(kernel = "matern52", times = 7 / 5, wider = sqrt(5 / 7))
)

scale_bandwidth <- function(bandwidth, by) {
  if (is.data.frame(bandwidth)) bandwidth <- plain_matrix(bandwidth)
  if (is.matrix(bandwidth)) bandwidth * by^2 else bandwidth * by
}

# Points relative to the least corner of all, over the ranges of the references, so that weights times coordinates are
# from 0 to 1 times the weights. inverse: of the covariance A; `ends`, how far apart points are along each column.
gradient_frame <- function(query, reference, given) {
  d <- ncol(query)
  box <- points_range(if (nrow(reference)) reference else query)
  both <- if (nrow(query)) points_range(query) else box
  origin <- if (nrow(reference) || nrow(query)) box[1L, ] else numeric(d)
  range <- box[2L, ] - origin
  range[!(range > 0)] <- 1
  inverse <- if (given$full) chol2inv(t(given$scale)) else diag(1 / (given$scale %||% rep(given$h, d))^2, d)
  ends <- if (nrow(query)) pmax(range, abs(both[1L, ] - origin), abs(both[2L, ] - origin)) else range
  relative <- function(x) (x - rep(origin, each = nrow(x))) / rep(range, each = nrow(x))
  reach <- drop(abs(inverse) %*% ends)
  list(reference = relative(reference), query = relative(query), range = range, inverse = inverse,
       trace = sum(diag(inverse)), bandwidths = max(reach / sqrt(diag(inverse))), square = sum(reach^2))
}

# For one slope: sums of w g, A^-1 sums of w g (x - q), and of w g |A^-1 (x - q)|^2. With errors e of the sums of w g
# and w g x, the second have errors of at most 2 e times `ends`, the third 4 e times the square of the longest A^-1 x.
gradient_sums <- function(slope, frame, weights, trace, rel_error, sum_of) {
  x <- frame$reference
  q <- frame$query
  d <- ncol(q)
  w <- weights %||% 1
  to <- frame$inverse * rep(frame$range, each = d) # from relative coordinates
  columns <- cbind(if (is.null(weights)) rep(1, nrow(x)) else weights, x * as.vector(w))
  smaller <- 2 * max(frame$bandwidths, 1)
  if (trace) {
    length_x <- rowSums(tcrossprod(x, to)^2)
    most <- max(length_x, 1e-300)
    columns <- cbind(columns, as.vector(w) * (length_x / most))
    smaller <- max(smaller, 4 * frame$square / frame$trace)
  }
  s <- sum_of(slope$kernel, slope$wider, unname(columns), rel_error / smaller)
  s <- matrix(as.vector(s), nrow(q), ncol(columns))
  total <- s[, 1L]
  moved <- tcrossprod(s[, 1L + seq_len(d), drop = FALSE] - q * total, to)
  out <- list(sum = total, gradient = moved)
  if (trace) {
    at <- tcrossprod(q, to)
    means <- tcrossprod(s[, 1L + seq_len(d), drop = FALSE], to)
    out$squares <- most * s[, d + 2L] - 2 * rowSums(at * means) + rowSums(at^2) * total
  }
  out
}

# What gradient_sums() gives, by all pairs on a device (src/kernel/cuda/direct/slopes.cu): a function of the slope; or
# NULL where sums of more columns are to be preferred, or a device is not.
slopes_there <- function(problem, run) {
  d <- ncol(problem$query)
  kernels <- unique(vapply(problem$slopes[seq_len(1L + problem$trace)], function(slope) slope$kernel, ""))
  if (d > slopes_on_device$dims || !all(kernels %in% slopes_on_device$kernels)) return(NULL)
  if (problem$trace && problem$bandwidth$full) return(NULL)
  if (d <= 3L && problem$rel_error > 0 && kernels[1L] == "gaussian") return(NULL) # meshes
  chosen <- slopes_backend(problem, kernels[1L], run, "double")
  if (chosen$name != "cuda") return(NULL)
  control <- slopes_control(chosen, run)
  function(slope) slopes_by_pairs(problem, slope, control)
}

# Where sums of all pairs with their slopes run.
slopes_backend <- function(problem, kernel, run, precision) {
  d <- ncol(problem$query)
  choose_backend(run$backend, kernel_plan("slopes", precision = precision, references = nrow(problem$reference),
                                          queries = nrow(problem$query), d = d, m = d + 1 + problem$trace,
                                          value = kernel_kinds[[kernel]]$cost,
                                          threads = run_control("cpu", run$threads, FALSE)$threads))
}

slopes_control <- function(chosen, run) {
  run_control("cuda", run$threads, run$progress, NULL, "Summing kernels",
              devices_for(run$devices, "cuda", chosen$divided))
}

# The kernels of slopes_cuda(), and WEFT_KERNEL_SLOPE_DIMS.
slopes_on_device <- list(kernels = c("gaussian", "epanechnikov", "laplacian", "matern32", "matern52"), dims = 32L)

# The same on the back end of `control`. Where dimensions have bandwidths of their own, points come in these units.
slopes_by_pairs <- function(problem, slope, control) {
  given <- problem$bandwidth
  problem$control <- control
  d <- ncol(problem$query)
  h <- given$h
  reference <- native_points(problem$reference, problem)
  query <- if (problem$self) reference else native_points(problem$query, problem)
  each <- if (!problem$trace) numeric(d) else if (is.null(given$scale)) rep(1 / h^4, d) else 1 / given$scale^2
  weights <- matrix(as.double(problem$weights %||% rep(1, nrow(problem$reference))), 1L)
  task <- sums_task(native_kernel(slope$kernel), h * slope$wider, query, reference, weights,
                    problem$leave_one_out)
  s <- .Call(C_weft_kernel_slopes, task, each, control)
  moved <- s[, 1L + seq_len(d), drop = FALSE]
  moved <- if (given$full) moved %*% forwardsolve(given$scale, diag(d))
           else if (is.null(given$scale)) moved * h^-2
           else moved / rep(given$scale, each = nrow(s))
  list(sum = s[, 1L], gradient = moved, squares = s[, d + 2L])
}
