# What users give to kernel sums, and the records that native code takes: points, weights, bandwidths.

# A double matrix with finite coordinates.
kernel_points <- function(x, arg) checked_points(x, arg)$points

# Also returns points_range(), because another pass over many points takes long.
# digest: also with their digest.
checked_points <- function(x, arg, digest = FALSE) {
  source <- as_source(x, NULL, arg)
  x <- source_matrix(source) %||% source$data
  if (source$kind == "frame") {
    numeric <- vapply(x, is.numeric, NA)
    if (!all(numeric)) {
      abort_input(sprintf("`%s` must have numeric columns.", arg),
                  x = paste("Not numeric:", label_some(names(x)[!numeric])))
    }
    x <- as.matrix(x)
  }
  if (is.numeric(x) && is.null(dim(x))) {
    if (is.object(x)) x <- as.double(x)
    x <- if (is.null(names(x))) with_shape(x, length(x), 1L)
         else matrix(x, ncol = 1L, dimnames = list(names(x), NULL))
  }
  if (!is.matrix(x) || !is.numeric(x)) {
    abort_input(sprintf("`%s` must be a numeric matrix or data frame with points in rows.", arg),
                x = paste0("It is ", describe(x), "."))
  }
  if (ncol(x) < 1L) abort_input(sprintf("`%s` must have at least one column.", arg))
  if (!is.double(x)) storage.mode(x) <- "double"
  facts <- if (digest) points_facts(x) else list(range = points_range(x))
  if (any(facts$range[3L, ] > 0)) {
    bad <- !is.finite(x)
    at <- which(bad, arr.ind = TRUE)[1L, ]
    abort_input(sprintf("`%s` must have finite coordinates.", arg),
                x = sprintf("%d are missing or infinite, the first in row %d, column %d.", sum(bad), at[1L], at[2L]))
  }
  points_with(x, facts)
}

# Points that have been checked, for kernel_problem(): list(points, range, digest).
points_with <- function(x, facts) structure(c(list(points = x), facts), class = "weft_points")

# A vector as a matrix. Written in this way, R wraps a long one and copies nothing.
with_shape <- function(x, rows, columns) {
  dim(x) <- c(rows, columns)
  x
}

# 3 rows: least, greatest and number of infinite coordinates, column by column, in one pass without copies.
points_range <- function(x) .Call(C_weft_kernel_range, x, control_of_size(length(x)))

# list(range, digest): the same with a digest of the numbers.
points_facts <- function(x) .Call(C_weft_kernel_facts, x, control_of_size(length(x)))

# For passes over `count` numbers: below 32 MB on one thread, since to wake the others takes longer, with a control
# that is made once: such calls are many and short.
control_of_size <- function(numbers) {
  if (is.null(one_thread$control)) one_thread$control <- run_control("cpu", 1L, FALSE)
  if (numbers > 4e6) run_control("cpu", progress = FALSE) else one_thread$control
}

one_thread <- new.env(parent = emptyenv())

# The greatest distance from 0 of a coordinate.
points_reach <- function(...) max(0, vapply(list(...), function(x) range_reach(points_range(x)), 0))

# As points_range() returns it; 0 if there are no points.
range_reach <- function(range) max(0, abs(range[1:2, is.finite(range[1L, ])]))

# A matrix, or NULL for 1 each: as many ones as there are points are only made where they are needed.
kernel_weights <- function(weights, n) {
  if (is.null(weights)) return(NULL)
  if (is.data.frame(weights)) weights <- plain_matrix(weights)
  if (!is.numeric(weights) || (is.matrix(weights) && ncol(weights) < 1L)) {
    abort_input("`weights` must be a numeric vector, or a numeric matrix with one column per sum.",
                x = paste0("It is ", describe(weights), "."))
  }
  if (NROW(weights) != n) {
    abort_input(sprintf("`weights` must have one row per reference (%d).", n), x = sprintf("It has %d.", NROW(weights)))
  }
  w <- matrix(as.double(weights), n, NCOL(weights))
  range <- points_range(w)
  strange <- sum(range[3L, ])
  if (strange) abort_input("`weights` must be finite.", x = sprintf("%d are not.", strange))
  if (n && max(abs(range[1:2, ])) > 1e290) { # else sums are infinite
    abort_input("`weights` must lie between -1e290 and 1e290.",
                x = sprintf("They range from %g to %g.", min(range[1L, ]), max(range[2L, ])))
  }
  colnames(w) <- colnames(weights)
  w
}

# list(h, scale, full): h one number; scale NULL, divisors, or the lower triangle of a covariance (h is then 1). reach:
# the greatest distance from 0 of a coordinate.
check_bandwidth <- function(bandwidth, d, reach) {
  if (is.data.frame(bandwidth)) bandwidth <- plain_matrix(bandwidth)
  bandwidth <- readable_numbers(bandwidth, "bandwidth")
  if (!is.numeric(bandwidth) || !length(bandwidth) || !all(is.finite(bandwidth))) {
    abort_input("`bandwidth` must contain only finite numbers.", x = paste0("It is ", describe(bandwidth), "."))
  }
  if (is.matrix(bandwidth) && !identical(dim(bandwidth), c(1L, 1L))) return(bandwidth_matrix(bandwidth, d, reach))
  if (is.matrix(bandwidth)) bandwidth <- sqrt(max(bandwidth, 0))
  if (!length(bandwidth) %in% c(1L, d) || any(bandwidth <= 0)) {
    abort_input(sprintf("`bandwidth` must be one or %d positive numbers, or a covariance matrix.", d),
                x = paste0("It is ", describe(bandwidth), "."))
  }
  if (min(bandwidth) < 1e-100 || max(bandwidth) > 1e100) strange_bandwidth(range(bandwidth), reach)
  if (reach / min(bandwidth) > 1e100 || reach > 1e150) strange_bandwidth(range(bandwidth), reach)
  bandwidth <- as.double(bandwidth)
  if (all(bandwidth == bandwidth[1L])) return(list(h = bandwidth[1L], scale = NULL, full = FALSE))
  list(h = 1, scale = bandwidth, full = FALSE)
}

bandwidth_matrix <- function(bandwidth, d, reach) {
  symmetric <- nrow(bandwidth) == d && isSymmetric(unname(bandwidth), tol = 1e-10)
  root <- if (symmetric) tryCatch(chol(bandwidth), error = function(e) NULL)
  if (is.null(root)) {
    abort_input(sprintf("A bandwidth matrix must be a positive definite covariance matrix with %d rows.", d),
                x = paste0("It is ", describe(bandwidth), "."))
  }
  root <- unname(t(root))
  widths <- c(1 / max(rowSums(abs(forwardsolve(root, diag(d))))), max(root)) # narrowest and widest, to a factor of d
  if (!isTRUE(widths[1L] >= 1e-100) || widths[2L] > 1e100 || reach / widths[1L] > 1e100 || reach > 1e150) {
    strange_bandwidth(widths, reach)
  }
  list(h = 1, scale = root, full = TRUE)
}

# Squares of distances, in and over bandwidths, must be finite.
strange_bandwidth <- function(range, reach) {
  abort_input("Bandwidths and coordinates in bandwidths must lie between 1e-100 and 1e100, coordinates below 1e150.",
              x = sprintf("Bandwidths range from %g to %g, coordinates up to %g.", range[1L], range[2L], reach))
}

# Points as native code takes them; with a scale relative to the first reference.
native_points <- function(x, problem) {
  b <- problem$bandwidth
  origin <- problem$origin %||% if (nrow(problem$reference)) problem$reference[1L, ] else numeric(ncol(x))
  .Call(C_weft_kernel_points, x, as.double(origin), b$scale, b$full, problem$control)
}

weights_of <- function(problem) problem$weights %||% matrix(1, nrow(problem$reference), 1L)

# Sums of the columns that split_weights() gives.
total_weights <- function(problem, split) {
  if (is.null(split$weights)) as.double(nrow(problem$reference)) else rowSums(split$weights)
}

# Signed columns become two: list(weights = m x n, part = which column, sign, both). spare: NULL for weights that are
# all 1, as sums along lines, over meshes and grids take them.
split_weights <- function(problem, spare = FALSE, negative = NULL) {
  if (spare && is.null(problem$weights)) return(list(weights = NULL, part = 1L, sign = 1, both = FALSE))
  w <- weights_of(problem)
  negative <- negative %||% (points_range(w)[1L, ] < 0)
  part <- c(seq_len(ncol(w)), which(negative))
  sign <- rep(c(1, -1), c(ncol(w), sum(negative)))
  rows <- if (length(part) == 1L) with_shape(w, 1L, length(w)) # one column lies in memory as one row does
          else .Call(C_weft_kernel_signs, w, part - 1L, sign, control_of_size(length(w)))
  list(weights = rows, part = part, sign = sign, both = any(negative))
}

native_task <- function(problem, query, reference, split, weights = split$weights, h = problem$bandwidth$h) {
  sums_task(native_kernel(problem$kernel), h, query[c("x", "lo")], reference[c("x", "lo")], weights,
            problem$leave_one_out, problem$log, problem$rel_error, problem$abs_error / if (split$both) 2 else 1)
}

# The record that weft_kernel_task_of() reads. own: what each query leaves out, from 0, where that is not the reference
# of its number.
sums_task <- function(kernel, h, query, reference, weights, leave_one_out, log = FALSE, rel_error = 0, abs_error = 0,
                      own = NULL) {
  list(kernel = kernel, h = as.double(h), query = query, reference = reference, weights = weights,
       leave_one_out = leave_one_out, own = own, log = log, rel_error = rel_error, abs_error = abs_error)
}
