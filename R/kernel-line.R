# Sums in one dimension (src/kernel/cpu/line/line.h), and sums over all pairs of points there.

# Whether sums can be taken so: points in one dimension, and a kernel that moments are enough for.
has_line <- function(kernel, d) d == 1L && kernel != "polynomial" && of_sheet(kernel, "line")

# Whether they pay. Sorting and cells take some hundred nanoseconds per point and query, a pair about half of one; cells
# alone, which do for few queries of a Gaussian kernel within a tolerance, a tenth of that per point. For many queries
# of that kernel a mesh takes less.
line_pays <- function(problem) {
  n <- as.double(nrow(problem$reference))
  nq <- as.double(nrow(problem$query))
  limits <- kernel_limits()
  scattered <- problem$kernel == "gaussian" && !problem$leave_one_out &&
    problem$rel_error >= limits[["line_scattered_error"]] && n >= limits[["line_few_queries"]] * nq
  sorted <- limits[["line_pairs_of_a_point"]]
  has_line(problem$kernel, ncol(problem$reference)) && is.null(problem$bandwidth$scale) && problem$backend != "cuda" &&
    n * nq > (if (scattered) limits[["line_pairs_scattered"]] else sorted) * n + sorted * nq
}

# alone: on one thread.
cost_of_line <- function(problem, alone = FALSE) {
  kernel_plan("line", references = nrow(problem$reference), queries = nrow(problem$query),
              m = columns_of_one_sign(problem), threads = if (alone) 1 else problem$control$threads)
}

# A plan for a mesh where that takes less than half of what a line would, or for a device where that is faster, else
# NULL.
instead_of_line <- function(problem) {
  line <- at_reference(cost_of_line(problem, alone = TRUE)$cpu)
  limits <- kernel_limits()
  here <- cost_of_line(problem)$cpu
  if (line < limits[["line_seconds"]]) return(NULL)
  if (problem$confidence < 1 || !has_mesh(problem)) {
    if (here < limits[["line_beside_device"]]) return(NULL)
    return(if_faster(device_instead_of(problem, here, mesh = FALSE), here))
  }
  mesh <- mesh_anywhere(problem, here / 2)
  if (!mesh_pays(mesh, if (isTRUE(mesh$on_device)) Inf else line, limits[["mesh_over_others"]])) return(NULL)
  list(method = "mesh", mesh = mesh, reason = sprintf("about %s with a mesh, %s along a line on one thread",
                                                      seconds_text(mesh$seconds), seconds_text(line)))
}

kernel_line <- function(problem, reason = "requested") {
  if (!has_line(problem$kernel, ncol(problem$reference))) {
    abort_input("`method = \"line\"` needs one dimension and a kernel other than \"cauchy\" and \"polynomial\".",
                x = sprintf("`kernel` is \"%s\", in %d dimensions.", problem$kernel, ncol(problem$reference)))
  }
  cpu_only(problem$backend, "Sums along a line are computed")
  split <- split_weights(problem, spare = TRUE)
  reference <- list(columns = problem$reference) # one column lies in memory as one row does
  query <- if (problem$self) reference else list(columns = problem$query)
  task <- native_task(problem, NULL, NULL, split)
  task$query <- query
  task$reference <- reference
  task$abs_error <- problem$abs_error
  out <- .Call(C_weft_kernel_line, task, if (split$both) split$part - 1L, problem$box, problem$control)
  list(sum = join_parts(out$sum, split, NCOL(problem$weights)), method = "line", backend = "cpu", effort = out$effort,
       reason = sprintf("%s; %.0f cells visited, a fraction %.3g of the pairs computed", reason, out$effort[["nodes"]],
                        out$effort[["pairs"]] / (as.double(nrow(problem$query)) * nrow(problem$reference))))
}

# ---- sums over all pairs ----

# Sums of the Gaussian kernel over all pairs of x's points but those of a point with itself, as a function of
# bandwidths, none below `least`: within `rel_error`, NA where that is not sure. NULL where a grid would have too many
# bins.
#
# Points are divided among the bins of a grid as cubic interpolation divides a value, and the pairs of bins counted by
# their distance, by the fast Fourier transform. In bandwidths, with v a distance: between points `bin` apart,
# interpolation errs by at most 3/128 bin^4 times the greatest fourth derivative, for one of two points, and by 1.25
# times as much for the other. For bins of at most 1/8 that derivative is at most `steepest` exp(-v^2 / 6), whose sum
# over all pairs is at most sqrt(3) times that of exp(-v^2 / 2), both being integrals of a squared modulus. Without the
# pairs of points with themselves it is what the grid says of it, with a margin.
gaussian_pairs <- function(x, least, rel_error, most_bins = 2^20) {
  if (rel_error < 1e-9) return(NULL)
  steepest <- 3.5
  error <- 3 / 128 * 2.25 * steepest
  bin <- least * min((rel_error / (2 * error * sqrt(3)))^0.25, 1 / 8)
  pairs <- pair_counts(x, bin, most_bins)
  if (is.null(pairs)) return(NULL)
  reach <- sqrt(-2 * log(1e-4 * rel_error))
  n <- length(x)
  counted <- list(pairs = pairs, bin = bin)
  function(h) {
    sum <- lag_sums(counted, h, reach)
    per_pair <- error * (bin / h)^4
    kept <- per_pair * (sqrt(3) * (sum + n) - n) <= rel_error * sum
    if (all(kept)) return(sum)
    left <- which(!kept)
    kept[left] <- per_pair[left] * 1.5 * lag_sums(counted, sqrt(3) * h[left], reach) <= rel_error * sum[left]
    sum[!kept] <- NA_real_
    sum
  }
}

# Sums over counted pairs, list(pairs, bin), for each h: of exp(-u^2 / 2), u being the distance over h, times the
# Hermite polynomial of an order; what lies beyond `reach` is left out.
lag_sums <- function(counted, h, reach, order = 0) {
  .Call(C_weft_kernel_lag_sums, counted$pairs, h, list(bin = counted$bin, reach = reach, order = order),
        control_of_size(0))
}

# Whether least-squares scores are of sums over all pairs, on a line or over a mesh.
scored_by_pairs <- function(criterion, kernel, d) criterion == "lscv" && kernel == "gaussian" && d <= 3L

# Least-squares scores of bandwidths in units of `unit`; of those that neither bins nor a mesh can serve by what
# `walking()` returns.
pairs_scorer <- function(z, unit, rel_error, log_shape, walking) {
  n <- as.double(nrow(z))
  d <- ncol(z)
  squared <- kernel_convolution("gaussian", d)
  mass <- log_integral("gaussian", d)
  known <- list(least = Inf)
  by_walk <- NULL
  function(t) {
    if (d > 1L && is.null(known$pairs)) known <<- list(least = 0, pairs = mesh_pairs(z, rel_error))
    if (min(t) < known$least) known <<- list(least = min(t), pairs = gaussian_pairs(z, min(t) * unit, rel_error))
    if (is.null(known$pairs)) scores <- rep(NA_real_, length(t))
    else {
      sums <- known$pairs(c(t, t * squared$wider) * unit)
      own <- seq_along(t)
      integral <- exp(-2 * mass) * squared$at_zero * (1 + sums[-own] / n) / n
      scores <- exp(-log_shape - d * log(t)) * (integral - 2 * exp(-mass) * sums[own] / (n * (n - 1)))
    }
    if (!anyNA(scores)) return(scores)
    left <- is.na(scores)
    if (is.null(by_walk)) by_walk <<- walking()
    scores[left] <- by_walk(t[left])
    scores
  }
}

# Ordered pairs of different points by distance, in bins: 0, 1, 2, ... Points are divided among bins, so that counts are
# not whole numbers. NULL where bins would be too many.
pair_counts <- function(x, bin, most_bins) {
  range <- points_range(if (is.matrix(x)) x else matrix(x))
  bins <- ceiling((range[2L, 1L] - range[1L, 1L]) / bin) + 4
  if (!(bins <= most_bins)) return(NULL)
  grid <- list(bins = bins, least = range[1L, 1L] - 1.5 * bin, per_bin = 1 / bin)
  parted <- .Call(C_weft_kernel_bin, x, grid, control_of_size(length(x)))
  size <- stats::nextn(2 * bins)
  spectrum <- stats::fft(c(parted$bin, numeric(size - bins)))
  square <- Re(spectrum)^2 + Im(spectrum)^2
  pairs <- Re(stats::fft(square, inverse = TRUE)[seq_len(bins)]) * (2 / size)
  pairs[1L] <- pairs[1L] / 2
  pairs[1:4] <- pairs[1:4] - c(1, 2, 2, 2) * parted$own
  pairs
}
