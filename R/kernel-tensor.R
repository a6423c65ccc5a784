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

# list(sum, missed): one column for each query, and with `slopes` another for each dimension, of w k (x - q) in the units
# of native_points(); which queries miss their error. Weights of both signs are summed one sign after the other.
tensor_sums <- function(problem, slopes) {
  w <- as.double(problem$weights %||% rep(1, nrow(problem$reference)))
  signs <- if (any(w < 0)) c(1, -1) else 1
  reference <- native_points(problem$reference, problem)
  query <- if (problem$self) reference else native_points(problem$query, problem)
  sum <- size <- error <- 0
  for (sign in signs) {
    rows <- if (length(signs) > 1L) which(sign * w > 0)
    some <- if (is.null(rows)) reference else lapply(reference[c("x", "lo")], function(x) x[, rows, drop = FALSE])
    task <- sums_task("gaussian", problem$bandwidth$h, query[c("x", "lo")], some[c("x", "lo")],
                      matrix(if (is.null(rows)) w else sign * w[rows], 1L), FALSE)
    out <- .Call(C_weft_kernel_gaussian, task, slopes, problem$control)
    sum <- if (length(signs) > 1L) sum + sign * out$sum else out$sum
    size <- size + out$sum[, 1L]
    error <- error + out$bounds * out$sum[, 1L]
  }
  allowed <- problem$rel_error * (size - error[, 1L]) + problem$abs_error
  kept <- error[, 1L] <= allowed & (!slopes | error[, 2L] <= allowed)
  list(sum = sum, missed = which(!(kept %in% TRUE)))
}

# As kernel_direct(); NULL where these sums are not for tensor cores.
kernel_tensor <- function(problem, plan) {
  if (!fits_tensor_cores(problem)) return(NULL)
  chosen <- plan$chosen %||% direct_backend(problem)
  planned <- cost_of_direct(problem)
  if (chosen$name != "cuda" || planned$engine[["cuda"]] != tensor_engine) return(NULL)
  problem$control$backend <- chosen$name
  problem$control$devices <- devices_for(problem$devices, chosen$name, planned$divided)
  out <- tensor_sums(problem, FALSE)
  if (length(out$missed)) out$sum[out$missed, ] <- sums_in_double(problem, out$missed)
  list(sum = out$sum, method = "direct", backend = chosen$name,
       effort = effort_of(as.double(nrow(out$sum)) * nrow(problem$reference), repeated = length(out$missed)),
       reason = sprintf("%s; on tensor cores, %d queries in double; %s", plan$reason, length(out$missed),
                        chosen$reason))
}

# list(sum, gradient, missed) of kernel_gradient()'s problem; NULL where it is not for tensor cores. A gradient with a
# covariance would need smaller errors in the units of native_points().
tensor_gradient <- function(problem, run) {
  if (problem$trace || problem$bandwidth$full || !fits_tensor_cores(problem)) return(NULL)
  chosen <- slopes_backend(problem, "gaussian", run, "relative")
  if (chosen$name != "cuda" || chosen$plan$engine[["cuda"]] != tensor_engine) return(NULL)
  problem$control <- slopes_control(chosen, run)
  out <- tensor_sums(problem, TRUE)
  by <- problem$bandwidth$scale
  moved <- out$sum[, -1L, drop = FALSE]
  list(sum = out$sum[, 1L], missed = out$missed,
       gradient = if (is.null(by)) moved * problem$bandwidth$h^-2 else moved / rep(by, each = nrow(moved)))
}
