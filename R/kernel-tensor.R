# Gaussian sums and gradients on a device's tensor cores (src/kernel/cuda/direct/gaussian.cu). Each sum comes with a
# bound of its error, relative to it; queries that miss theirs are summed in double.

fits_tensor_cores <- function(problem) {
  limits <- kernel_limits()
  d <- ncol(problem$reference)
  isTRUE(problem$kernel == "gaussian") && isTRUE(problem$rel_error >= limits[["tensor_error"]]) &&
    d >= limits[["tensor_dims"]] && d <= tensor_dims && !isTRUE(problem$log) && !isTRUE(problem$leave_one_out) &&
    NCOL(problem$weights %||% 1) == 1L
}

tensor_dims <- 64L # WEFT_KERNEL_GAUSSIAN_DIMS
tensor_engine <- "Gaussian sums on tensor cores" # of engines.h

# list(sum, slopes, missed): `missed` are the queries that miss their error. Slopes are sums of w k (x - q) in the
# units of native_points(), times `scale`; there are none where this is NULL. moved: they are the queries moved by
# their slopes over their sums. Weights of both signs are summed one sign after the other.
tensor_sums <- function(problem, scale = NULL, moved = FALSE) {
  w <- with_shape(problem$weights %||% rep(1, nrow(problem$reference)), 1L, nrow(problem$reference))
  signs <- if (!is.null(problem$weights) && any(w < 0)) c(1, -1) else 1
  # R's own columns go to one device as they are
  plain <- problem$control$backend == "cuda" && length(problem$control$devices) == 1L &&
    is.null(problem$bandwidth$scale) && length(signs) == 1L
  points <- function(x) if (plain) list(columns = x) else native_points(x, problem)[c("x", "lo")]
  reference <- points(problem$reference)
  query <- if (problem$self) reference else points(problem$query)
  sums <- function(sign) {
    rows <- if (length(signs) > 1L) which(sign * w > 0)
    some <- if (is.null(rows)) reference else lapply(reference, function(x) if (!is.null(x)) x[, rows, drop = FALSE])
    task <- sums_task("gaussian", problem$bandwidth$h, query, some,
                      if (is.null(rows)) w else matrix(sign * w[rows], 1L), FALSE)
    .Call(C_weft_kernel_gaussian, task, scale, moved, problem$control)
  }
  out <- sums(signs[1L])
  if (length(signs) == 1L && !may_miss(out, problem$rel_error)) return(c(out, list(missed = integer())))
  size <- out$sum
  error <- out$bounds * size
  if (length(signs) > 1L) {
    other <- sums(-1)
    size <- size + other$sum
    error <- error + other$bounds * other$sum
    out$sum <- out$sum - other$sum
    if (!is.null(scale)) out$slopes <- out$slopes - other$slopes
  }
  allowed <- problem$rel_error * (size - error[, 1L]) + problem$abs_error
  kept <- error[, 1L] <= allowed
  if (!is.null(scale)) kept <- kept & error[, 2L] <= allowed
  out$missed <- which(is.na(kept) | !kept)
  out
}

# Whether a query may miss its error, by the greatest bounds.
may_miss <- function(out, rel_error) {
  range <- points_range(out$bounds)[, seq_len(if (is.null(out$slopes)) 1L else 2L), drop = FALSE]
  any(range[3L, ] > 0, range[2L, ] > rel_error * (1 - range[2L, 1L]))
}

# As kernel_direct(); NULL where these sums are not for tensor cores.
kernel_tensor <- function(problem, plan) {
  if (!fits_tensor_cores(problem)) return(NULL)
  chosen <- plan$chosen %||% direct_backend(problem)
  planned <- cost_of_direct(problem)
  if (chosen$name != "cuda" || planned$engine[["cuda"]] != tensor_engine) return(NULL)
  problem$control$backend <- chosen$name
  problem$control$devices <- devices_for(problem$devices, chosen$name, planned$divided)
  out <- tensor_sums(problem)
  sums <- matrix(out$sum)
  if (length(out$missed)) sums[out$missed, ] <- sums_in_double(problem, out$missed)
  list(sum = sums, method = "direct", backend = chosen$name,
       effort = effort_of(as.double(nrow(sums)) * nrow(problem$reference), repeated = length(out$missed)),
       reason = sprintf("%s; on tensor cores, %d queries in double; %s", plan$reason, length(out$missed),
                        chosen$reason))
}

# tensor_sums() of kernel_gradient()'s problem; NULL where it is not for tensor cores. A gradient with a covariance
# would need smaller errors in the units of native_points(). moved: queries are moved by `scale` times their score.
tensor_gradient <- function(problem, run, scale = 1, moved = FALSE) {
  by <- problem$bandwidth
  if (problem$trace || by$full || !fits_tensor_cores(problem)) return(NULL)
  alike <- problem$self && (is.null(problem$weights) || all(problem$weights == problem$weights[1L]))
  if (!alike && problem$rel_error < kernel_limits()[["tensor_slopes_error"]]) return(NULL)
  chosen <- slopes_backend(problem, "gaussian", run, "relative")
  if (chosen$name != "cuda" || chosen$plan$engine[["cuda"]] != tensor_engine) return(NULL)
  problem$control <- slopes_control(chosen, run)
  tensor_sums(problem, scale * if (is.null(by$scale)) rep(by$h^-2, ncol(problem$query)) else 1 / by$scale, moved)
}
