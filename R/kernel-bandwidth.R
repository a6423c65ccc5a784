#' Score many bandwidths
#'
#' `kernel_bandwidth()` computes the cross-validation score (least-squares or likelihood) of each bandwidth in a grid.
#' The shortest call is `kernel_bandwidth(x)`; it returns a data frame with one row per bandwidth. The scores are kernel
#' sums over one tree.
#'
#' `"lscv"` is \eqn{\int \hat f^2 - \frac{2}{n} \sum_i \hat f_{-i}(x_i)}, and smaller is better. Its integral is a sum
#' over all pairs of points of the kernel convolved with itself. This convolution is again a kernel for the Gaussian,
#' for the Laplacian in one and three dimensions, and for the uniform and Cauchy kernels in one; it is a Matern
#' function of higher order for the other Matern kernels; and it is tabulated for the rest, from a closed form for the
#' uniform kernel and by quadrature for kernels with bounded support. `"lcv"` is the mean of \eqn{\log \hat
#' f_{-i}(x_i)}, and larger is better. One walk over the trees serves all bandwidths.
#'
#' With more than `queries` points, the means are over a random sample of that many points, each compared with all
#' others. For the Gaussian kernel, `"lscv"` is computed from all pairs of points, whatever `queries` is. In one
#' dimension, the pairs are counted by their distance, once for all bandwidths, on a grid that is fine enough for the
#' sums to keep `rel_error`; in two and three dimensions, each bandwidth has a mesh that keeps it (see
#' [kernel_sum()]), unless that mesh would have too many nodes compared with the points.
#'
#' @param x points in rows: a numeric matrix or data frame, or a vector in one dimension.
#' @param grid multiples of `shape` to score; the default is 24 values about the rule of thumb.
#' @param criterion `"lscv"` or `"lcv"`.
#' @param kernel one of [`?kernels`][kernels] except the polynomial one; the Cauchy kernel in one dimension only.
#' @param shape the bandwidths that a value of 1 in the grid stands for, one per dimension. With `shape = 1`, the
#'   default when `grid` is given, the values of the grid are the bandwidths themselves. Without a grid, `shape` is
#'   Scott's rule.
#' @param rel_error the permitted relative error of the sums.
#' @param queries the largest number of points over which the mean is taken.
#' @param seed a whole number; see [kernel_sum()].
#' @param run see [weft_run()]. With `ranks = TRUE`, the ranks of a job each give their own part of `x`, and all points
#'   are queries.
#' @param ... not used; for an unknown argument, the error suggests the intended one.
#' @return A data frame with a row for each value of the grid: `bandwidth` and `score`. Where `shape` has one bandwidth
#'   per dimension, the first column is `multiple`, of `shape`. The attribute `"best"` is the best bandwidth of the
#'   grid, as [kde()] takes it, and `"shape"` is the shape.
#' @export
#' @examples
#' b <- kernel_bandwidth(faithful$waiting, c(1, 2, 4, 8))
#' b
#' attr(b, "best")
kernel_bandwidth <- function(x, grid = NULL, criterion = c("lscv", "lcv"), kernel = "gaussian", shape = NULL,
                             rel_error = 1e-4, queries = 20000, seed = NULL, run = NULL, ...) {
  run <- as_run(run, ranks = TRUE)
  join_ranks(run$ranks, "kernel_bandwidth", c(each_rank, "x"))
  check_dots(..., .known = kernel_names_elsewhere)
  need_args("x")
  check_seed(seed)
  criterion <- check_choice(criterion, c("lscv", "lcv"), "criterion")
  kernel <- check_choice(kernel, kernel_names, "kernel")
  x <- kernel_points(x, "x")
  if (kernel == "cauchy" && ncol(x) > 1L) {
    abort_input("The Cauchy kernel has no finite integral in more than one dimension.",
                x = sprintf("`x` has %d columns.", ncol(x)))
  }
  n <- rows_of_all(x, run$ranks)
  if (n < 2) abort_input("`x` must have at least two rows for cross-validation.")
  rel_error <- check_number(rel_error, "rel_error", min = 0, max = 0.5)
  queries <- check_number(queries, "queries", min = 2, whole = TRUE)
  if (is.null(shape)) {
    shape <- if (is.null(grid)) spread(x, run$ranks) * n^(-1 / (ncol(x) + 4)) * canonical_ratio(kernel, ncol(x))
      else 1
  }
  if (is.null(grid)) grid <- exp(seq(log(0.1), log(4), length.out = 24))
  grid <- readable_numbers(grid, "grid")
  if (!is_numeric_vector(grid) || !length(grid) || !all(is.finite(grid)) || any(grid <= 0)) {
    abort_input("`grid` must be positive numbers.", x = paste0("It is ", describe(grid), "."))
  }
  reach <- points_reach(x)
  positive <- is.numeric(shape) && all(is.finite(shape)) && all(shape > 0)
  if (!positive || is.matrix(shape) || !length(shape) %in% c(1L, ncol(x))) {
    abort_input(sprintf("`shape` must contain one or %d positive numbers.", ncol(x)),
                x = paste0("It is ", describe(shape), "."))
  }
  for (t in range(grid)) check_bandwidth(t * shape, ncol(x), reach)
  sums <- list(kernel = kernel, rel_error = rel_error, seed = seed)
  score <- bandwidth_scorer(x, shape, criterion, queries, sums, run)
  out <- data.frame(bandwidth = as.double(grid), score = score(as.double(grid)))
  best <- if (criterion == "lscv") which.min(out$score) else which.max(out$score)
  attr(out, "best") <- if (length(best)) out$bandwidth[best] * shape else NA_real_
  attr(out, "shape") <- shape
  if (length(shape) == 1L) out$bandwidth <- out$bandwidth * shape else names(out)[1L] <- "multiple"
  out
}

# A function of a vector t: the scores of the bandwidths t * shape. Points are rescaled and put into trees once; all
# bandwidths are walked in one go where trees pay. `sums`: list(kernel, rel_error, seed).
bandwidth_scorer <- function(x, shape, criterion, queries, sums, run) {
  n <- rows_of_all(x, run$ranks)
  d <- ncol(x)
  parts <- check_bandwidth(shape, d, points_reach(x))
  log_shape <- log_volume(parts, d)
  unit <- if (is.null(parts$scale)) rep(parts$h, d) else parts$scale
  scaled <- function() x / rep(unit, each = nrow(x))
  if (run$ranks) {
    return(scorer_over_ranks(scaled(), n, criterion, sums$kernel, sums$rel_error, log_shape, run$threads))
  }
  walking <- function() walking_scorer(scaled(), criterion, log_shape, queries, sums, run)
  if (!scored_by_pairs(criterion, sums$kernel, d)) return(walking())
  if (d == 1L) pairs_scorer(x, unit, sums$rel_error, log_shape, walking)
  else pairs_scorer(scaled(), 1, sums$rel_error, log_shape, walking)
}

# By trees, or where points lie on a line by one sum after another.
walking_scorer <- function(z, criterion, log_shape, queries, sums, run) {
  n <- nrow(z)
  d <- ncol(z)
  kernel <- sums$kernel
  some <- if (n > queries) sort(sample_rows(n, queries, sums$seed)) else seq_len(n)
  own <- z[some, , drop = FALSE]
  others <- z[-some, , drop = FALSE]
  trees <- list(own = kernel_tree(own, run = run),
                others = if (nrow(others)) kernel_tree(others, run = run))
  sums_for <- function(kernel, t, log = FALSE) {
    settings <- list(kernel = kernel, rel_error = sums$rel_error, log = log)
    f <- sums_of_bandwidths(own, trees$own, TRUE, t, settings, run)
    if (!nrow(others)) return(f)
    g <- sums_of_bandwidths(own, trees$others, FALSE, t, settings, run)
    if (!log) return(f + g)
    top <- pmax(f, g)
    ifelse(top == -Inf, -Inf, top + log(exp(f - top) + exp(g - top)))
  }
  if (criterion == "lcv") {
    return(function(t) {
      colMeans(sums_for(kernel, t, TRUE)) - log(n - 1) - log_integral(kernel, d) - log_shape - d * log(t)
    })
  }
  # the integral of the squared density: the mean over all pairs of the kernel convolved with itself, over its
  # integral's square
  squared <- kernel_convolution(kernel, d)
  mass <- log_integral(kernel, d)
  function(t) {
    volume <- exp(-log_shape - d * log(t))
    if (is.null(squared$kernel)) {
      pairs <- pair_sums(squared$radial, trees$own, trees$own, t, sums$rel_error, run)
      if (nrow(others)) pairs <- pairs + pair_sums(squared$radial, trees$own, trees$others, t, sums$rel_error, run)
      plain <- colMeans(sums_for(kernel, t))
    } else {
      both <- colMeans(if (squared$kernel == kernel) sums_for(kernel, c(t, t * squared$wider))
                       else cbind(sums_for(kernel, t), sums_for(squared$kernel, t * squared$wider)))
      plain <- both[seq_along(t)]
      pairs <- squared$at_zero * length(some) * (1 + both[-seq_along(t)])
    }
    volume * (exp(-2 * mass) * pairs / (as.double(n) * length(some)) - 2 * exp(-mass) * plain / (n - 1))
  }
}

# The same over ranks, one bandwidth after another and all points as queries. `z`: this rank's points of n.
scorer_over_ranks <- function(z, n, criterion, kernel, rel_error, log_shape, threads) {
  d <- ncol(z)
  mean_sums <- function(kernel, t, log = FALSE) {
    vapply(t, function(h) {
      ranks_sum(sum(kernel_sum(z, kernel = kernel, bandwidth = h, rel_error = rel_error, log = log,
                               leave_one_out = TRUE, run = weft_run(threads = threads, ranks = TRUE)))) / n
    }, 0)
  }
  mass <- log_integral(kernel, d)
  if (criterion == "lcv") return(function(t) mean_sums(kernel, t, TRUE) - log(n - 1) - mass - log_shape - d * log(t))
  squared <- kernel_convolution(kernel, d)
  if (is.null(squared$kernel)) {
    abort_input(
      "Least-squares cross-validation over ranks needs a kernel with a known self-convolution.",
      x = sprintf("`kernel` is \"%s\", in %d dimensions.", kernel, d),
      i = "Use the Gaussian kernel, or \"lcv\".")
  }
  function(t) {
    pairs <- squared$at_zero * (1 + mean_sums(squared$kernel, t * squared$wider))
    exp(-log_shape - d * log(t)) * (exp(-2 * mass) * pairs / n - 2 * exp(-mass) * mean_sums(kernel, t) / (n - 1))
  }
}

# Sums at `query` for many bandwidths, one per column: one walk over the trees for all, or directly one after another
# where a sample shows that trees do not pay at the middle bandwidth, or on a device. `sums`: list(kernel, rel_error,
# log).
sums_of_bandwidths <- function(query, tree, self, h, sums, run) {
  middle <- sort(h)[(length(h) + 1) %/% 2]
  problem <- kernel_problem(query, NULL, NULL, sums$kernel, middle, sums$rel_error, tree = tree, log = sums$log,
                            leave_one_out = self, run = run)
  plan <- if (line_pays(problem)) list(method = "line") else plan_method(problem)
  if (plan$method != "tree" || identical(plan$chosen$name, "cuda")) {
    one <- function(h) kernel_sum(query, tree, kernel = sums$kernel, bandwidth = h, rel_error = sums$rel_error,
                                  log = sums$log, leave_one_out = self, run = run)
    return(matrix(vapply(h, one, numeric(nrow(query))), nrow(query)))
  }
  trees <- plan$trees %||% native_trees(problem)
  from <- order(h)
  walked <- walk_trees(problem, trees, split_weights(problem), h[from])$sum
  out <- walked
  out[trees$query$order + 1L, from] <- walked
  out
}

# Rows drawn without R's state being touched when there is a seed.
sample_rows <- function(n, size, seed) {
  order(draws("uniform", n, key = kernel_key(seed)))[seq_len(size)]
}

# Standard deviations; a column without any is an error, since no rule can scale it.
spread <- function(x, distributed = FALSE) {
  n <- rows_of_all(x, distributed)
  s <- if (distributed) sd_of_all(x, n) else .Call(C_weft_kernel_deviations, x, control_of_size(length(x)))
  if (n < 2 || any(!(s > 0))) {
    abort_input("A bandwidth rule needs columns that vary.",
                x = if (n < 2) sprintf("`x` has %d row.", n)
                  else sprintf("Column %d is constant.", which(!(s > 0))[1L]),
                i = "Remove it, or give `bandwidth` as numbers.")
  }
  unname(s)
}

rule_bandwidth <- function(x, rule, kernel, run, seed) {
  d <- ncol(x)
  if (run$ranks && rule == "plugin") {
    abort_input("The plug-in rule needs all points on one rank.",
                i = "Over ranks, use \"scott\", \"silverman\", \"lscv\" or \"lcv\".")
  }
  deviations <- spread(x, run$ranks)
  if (rule == "plugin") {
    h <- vapply(seq_len(d), function(j) plugin_bandwidth(if (d > 1L) x[, j] else x, deviations[j]), 0)
    return(h * canonical_ratio(kernel, d))
  }
  scott <- deviations * rows_of_all(x, run$ranks)^(-1 / (d + 4))
  if (rule == "scott") return(scott * canonical_ratio(kernel, d))
  if (rule == "silverman") return(scott * (4 / (d + 2))^(1 / (d + 4)) * canonical_ratio(kernel, d))
  shape <- scott * canonical_ratio(kernel, d)
  score <- bandwidth_scorer(x, shape, rule, 20000, list(kernel = kernel, rel_error = 1e-4, seed = seed), run)
  sign <- if (rule == "lscv") 1 else -1
  grid <- 0.05 * 80^(0:19 / 19)
  looks <- if (!run$ranks && scored_by_pairs(rule, kernel, d)) list(12:20, 1:11) else list(1:20)
  scores <- scores_from_wide(grid, looks, function(t) sign * score(t))
  grid <- grid[seq.int(to = length(grid), length.out = length(scores))]
  best <- largest_minimum(scores)
  if (!length(local_minima(scores))) warn_no_minimum(rule, best == 1L, grid[best])
  around <- grid[c(max(best - 1L, 1L), min(best + 1L, length(grid)))]
  finite <- function(t) {
    s <- sign * score(t)
    s[!is.finite(s)] <- 1e300
    s
  }
  found <- if (length(looks) > 1L && d == 1L) least_within(finite, around)
           else stats::optimize(finite, around, tol = 1e-3 * around[1L])
  t <- if (isTRUE(found$objective <= scores[best])) found$minimum else grid[best]
  t * shape
}

warn_no_minimum <- function(rule, narrow, multiple) {
  weft_warn("bandwidth",
            sprintf("\"%s\" found no optimum from 0.05 to 4 times Scott's bandwidth: using the %s (%.2g times).",
                    rule, if (narrow) "narrowest" else "widest", multiple),
            i = if (narrow) "With tied values, smaller is always better; \"plugin\" and \"scott\" are not affected."
                else "The rules \"plugin\" and \"scott\" need no search.")
}

# As optimize() has it, where scoring many costs as much as scoring one: nine at a time, twice, and the parabola through
# the least of them and its neighbours, which in logarithms are one in seventy apart.
least_within <- function(score, around, count = 9L) {
  for (look in 1:2) {
    step <- log(around[2L] / around[1L]) / (count - 1)
    t <- log(around[1L]) + step * 0:(count - 1L)
    s <- score(exp(t))
    best <- min(max(which.min(s), 2L), count - 1L)
    around <- exp(t[best + c(-1L, 1L)])
  }
  bend <- s[best - 1L] - 2 * s[best] + s[best + 1L]
  moved <- if (bend > 0) (s[best - 1L] - s[best + 1L]) / (2 * bend) else 0
  list(minimum = exp(t[best] + max(min(moved, 1), -1) * step), objective = min(s))
}

# Scores of the widest bandwidths of the grid, `looks` at it one after another, until one of them is a local minimum:
# the narrower ones cannot change what largest_minimum() chooses, and on a line they need the finer bins.
scores_from_wide <- function(grid, looks, score) {
  scores <- numeric()
  for (look in looks) {
    now <- score(grid[look])
    now[!is.finite(now)] <- Inf
    scores <- c(now, scores)
    if (length(local_minima(scores))) break
  }
  scores
}

# The largest bandwidth with a local minimum, as Hall and Marron (1991) advise: with tied points both criteria have no
# bound as the bandwidth goes to zero. The least score where no minimum is inside the grid.
largest_minimum <- function(scores) {
  inside <- local_minima(scores)
  if (length(inside)) max(inside) else which.min(scores)
}

local_minima <- function(scores) {
  k <- length(scores)
  which(scores[-c(1L, k)] <= scores[seq_len(k - 2L)] & scores[-c(1L, k)] < scores[seq.int(3L, k)]) + 1L
}

# Two-stage direct plug-in in one dimension (Wand and Jones 1995, section 3.6), with bandwidths and functionals in units
# of a robust deviation: the ninth power of any other unit could overflow or vanish.
plugin_bandwidth <- function(x, deviation) {
  n <- length(x)
  range <- diff(.Call(C_weft_kernel_quantiles, x, c(0.25, 0.75), control_of_size(n))) / 1.349
  sigma <- if (range > 0) min(deviation, range) else deviation
  check_bandwidth(sigma * n^-0.2, 1L, max(abs(range(x))))
  at_zero <- c(`4` = 3, `6` = -15) / sqrt(2 * pi)
  functional <- pairwise_functionals(x, sigma)
  g6 <- (-2 * at_zero[["6"]] / (105 / (32 * sqrt(pi)) * n))^(1 / 9)
  g4 <- (-2 * at_zero[["4"]] / (functional(6, g6, 0.6 * g6) * n))^(1 / 7) # most often more than 0.6 g6
  sigma * (1 / (2 * sqrt(pi)) / (functional(4, g4) * n))^(1 / 5)
}

# A function of r and g: the mean over all pairs, points with themselves among them, of the r-th derivative of a normal
# density of deviation g, r being 4 or 6, in units of `unit`. Bins of a twenty-fifth of g leave an error of some 1e-5 of
# it; those of `next_g`, where another one is expected after it, serve both. Where points lie too far apart for so many
# bins, gaps wider than the derivative reaches are closed; what then still needs wider bins has half of its points 10^5
# times as far apart as the other half.
pairwise_functionals <- function(x, unit = 1, most_bins = 2^20) {
  n <- as.double(length(x))
  reach <- 10
  known <- list(bin = Inf)
  count <- function(bin, g) {
    pairs <- pair_counts(x, bin, most_bins)
    if (is.null(pairs)) {
      x <- cumsum(c(0, pmin(diff(sort(x)), reach * g)))
      bin <- max(bin, x[length(x)] / (16 * most_bins - 8))
      pairs <- pair_counts(x, bin, 16 * most_bins)
    }
    list(bin = bin, pairs = pairs)
  }
  function(r, g, next_g = g) {
    width <- g * unit
    if (known$bin > width / 25) known <<- count(next_g * unit / 25, width)
    sum <- lag_sums(known, width, reach, r) + n * c(`4` = 3, `6` = -15)[[paste(r)]]
    sum / (sqrt(2 * pi) * n^2 * g^(r + 1))
  }
}
