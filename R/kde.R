#' Kernel density estimates
#'
#' `kde()` estimates a density from points in one or more dimensions. The shortest call is `kde(x)`; it returns an
#' object whose `predict()` method evaluates the density at any points, and whose `plot()` method draws it. The density
#' is evaluated with [kernel_sum()], with a guaranteed relative error.
#'
#' The density is \eqn{\frac{1}{n\,c \prod_j h_j} \sum_i k(q, x_i)}, where \eqn{c} is the integral of the kernel over
#' the whole space, so the density integrates to 1. All kernels of [kernel_sum()] except the polynomial one can be used,
#' but the Cauchy kernel only in one dimension, where its integral is finite.
#'
#' @section Bias: A kernel estimate is too low at peaks and too high in valleys, by half of \eqn{h^2} times the second
#'   derivative. `bias = "score"` first moves each point by half of \eqn{h^2} (or the covariance) times the score, the
#'   gradient of the logarithm of the plain estimate. This is half of a mean-shift step; the remaining bias is of order
#'   \eqn{h^4}. The result is also a density. This needs the Gaussian kernel. The error of each coordinate of a moved
#'   point is at most `rel_error` times (1 + |s|) bandwidths, where s is the score in bandwidths. Bandwidths are chosen
#'   as for the plain estimate, although the best ones were 1.2 to 1.7 times as wide in ten simulated cases with 1 to 8
#'   dimensions.
#'
#' @section Bandwidths: A number, a vector with one number per dimension, or a covariance matrix is used as given. For
#'   \eqn{n} points in \eqn{d} dimensions with standard deviations \eqn{s_j}:
#'   * `"scott"`: \eqn{s_j n^{-1/(d+4)}};
#'   * `"silverman"`: Scott's rule times \eqn{(4/(d+2))^{1/(d+4)}};
#'   * `"plugin"`: per dimension, the two-stage direct plug-in of Wand and Jones (1995), with pairwise functionals of
#'     the points on a fine grid (relative error about 1e-5);
#'   * `"lscv"` and `"lcv"`: the multiple of Scott's bandwidth that minimises the least-squares criterion or maximises
#'     the leave-one-out likelihood, over a grid as in [kernel_bandwidth()] and then by golden section search. If there
#'     are several optima, the one with the largest bandwidth is used, because tied points always favour small
#'     bandwidths. If there is no optimum between 0.05 and 4 times Scott's bandwidth, there is a warning
#'     (`weft_warning_bandwidth`).
#'
#'   The first three rules are defined for the Gaussian kernel. For another kernel, they are multiplied by the ratio of
#'   canonical bandwidths (Marron and Nolan 1988), which gives the same amount of smoothing; `"lscv"` and `"lcv"` use
#'   the kernel itself.
#'
#' @param x points in rows: a numeric matrix or data frame, or a vector in one dimension.
#' @param bandwidth the bandwidth, or the name of the rule to choose it; see section Bandwidths.
#' @param kernel the name of a kernel; see [`?kernels`][kernels].
#' @param rel_error the largest relative error of densities, by default 1e-4; 0 for exact values.
#' @param tree the type of the tree; see [kernel_tree()]. By default, no tree is built in one dimension for kernels that
#'   [kernel_sum()] sums along a line.
#' @param bias `"none"`, or `"score"` for an estimate with less bias; see section Bias.
#' @param seed a whole number for trees of type `"rp"`; by default, it is drawn from R's generator.
#' @param run see [weft_run()]. With `ranks = TRUE`, each rank of a job gives its own part of `x`, and the density is
#'   computed from all points. All ranks then call `predict()` together, each with its own `newdata`; without `newdata`,
#'   each rank gets the densities at its own part. `"plugin"` does not support ranks.
#' @param ... not used; for an unknown argument, the error suggests the intended one.
#' @return An object of class `weft_kde`: `bandwidth`, `kernel`, `n`, `d`, the points in a tree, and the settings.
#'   `backend` is the back end for predictions; `"auto"` chooses it for each prediction. The object can be saved with
#'   `saveRDS()`, including the tree.
#' @references
#' Marron and Nolan (1988), Canonical kernels for density estimation, Statistics and Probability Letters 7, 195-199.
#' Wand and Jones (1995), Kernel Smoothing, Chapman and Hall.
#' @seealso [predict.weft_kde()], [kernel_bandwidth()]
#' @export
#' @examples
#' d <- kde(faithful, "silverman")
#' d
#' predict(d, data.frame(eruptions = c(2, 4), waiting = c(55, 80)))
#' plot(d)
#' plot(kde(faithful$waiting, "lscv"))
kde <- function(x, bandwidth = "scott", kernel = "gaussian", rel_error = 1e-4, tree = c("kd", "ball", "vp", "rp"),
                bias = c("none", "score"), seed = NULL, run = NULL, ...) {
  run <- as_run(run, ranks = TRUE)
  started <- proc.time()[[3L]]
  join_ranks(run$ranks, "kde", c(each_rank, "x"))
  check_dots(..., .known = kernel_names_elsewhere)
  need_args("x")
  check_seed(seed)
  kernel <- check_choice(kernel, kernel_names, "kernel")
  run <- use_backend(run)
  tree <- check_choice(tree, tree_types, "tree")
  rel_error <- check_number(rel_error, "rel_error", min = 0, max = 1)
  bias <- check_choice(bias, c("none", "score"), "bias")
  given <- checked_points(x, "x", digest = bias == "none")
  x <- given$points
  n <- rows_of_all(x, run$ranks)
  if (n < 1) abort_input("`x` must have at least one row.")
  if (kernel == "cauchy" && ncol(x) > 1L) {
    abort_input("The Cauchy kernel has no finite integral in more than one dimension.",
                x = sprintf("`x` has %d columns.", ncol(x)),
                i = "Use another kernel, for example \"laplacian\".")
  }
  rule <- if (is.character(bandwidth)) check_choice(bandwidth, bandwidth_rules, "bandwidth") else "given"
  if (bias == "score") check_score(kernel, run)
  if (rule != "given") bandwidth <- rule_bandwidth(x, rule, kernel, run, seed)
  if (bias == "score") {
    x <- moved_by_score(x, bandwidth, range_reach(given$range), rel_error, run)
    given <- points_facts(x)
  }
  object <- points_model(x, n, bandwidth, list(kernel = kernel, tree = tree, rel_error = rel_error, seed = seed), run,
                         given)
  new_result(class = "weft_kde", c(object, list(
    rule = rule, log_scale = -log(n) - log_integral(kernel, ncol(x)) - log_volume(object$parts, ncol(x)),
    call = match.call(),
    backend = run$backend, seconds = proc.time()[[3L]] - started
  )))
}

check_score <- function(kernel, run) {
  if (kernel != "gaussian") {
    abort_input("`bias = \"score\"` needs the Gaussian kernel.", x = sprintf("`kernel` is \"%s\".", kernel))
  }
  if (run$ranks) abort_input("`bias = \"score\"` needs all points on one rank.", x = "They are distributed over ranks.")
}

# Points moved by A / 2 times the score, A being the bandwidth as a covariance. A point stays where its
# neighbours are too many bandwidths away to add to its own term. A score within 2 `rel_error` moves it to within
# `rel_error` bandwidths of its place. reach: the greatest distance from 0 of a coordinate.
moved_by_score <- function(x, bandwidth, reach, rel_error, run) {
  given <- check_bandwidth(bandwidth, ncol(x), reach)
  run <- run_but(run, ranks = FALSE)
  near <- if (is.null(given$scale)) {
    tensor_gradient(list(query = x, reference = x, self = TRUE, weights = NULL, kernel = "gaussian", trace = FALSE,
                         leave_one_out = FALSE, rel_error = min(2 * rel_error, 1), abs_error = 0, bandwidth = given),
                    run, given$h^2 / 2, moved = TRUE)
  }
  score_of <- function(some, rel_error) {
    d <- kernel_gradient(if (isTRUE(some)) x else x[some, , drop = FALSE], if (!isTRUE(some)) x,
                         bandwidth = bandwidth, rel_error = rel_error, run = run)
    d$gradient / as.vector(d$sum)
  }
  if (!is.null(near)) {
    missed <- near$missed
    if (length(missed)) {
      near$slopes[missed, ] <- x[missed, , drop = FALSE] +
        given$h^2 / 2 * score_of(missed, min(rel_error, kernel_limits()[["tensor_error"]]) / 2)
    }
    if (!is.null(dimnames(x))) dimnames(near$slopes) <- dimnames(x)
    return(near$slopes)
  }
  score <- score_of(TRUE, rel_error)
  moved <- x + if (given$full) score %*% tcrossprod(given$scale) / 2
                else score * rep((given$scale %||% rep(given$h, ncol(x)))^2 / 2, each = nrow(x))
  dimnames(moved) <- dimnames(x)
  moved
}

bandwidth_rules <- c("scott", "silverman", "plugin", "lscv", "lcv")

log_volume <- function(parts, d) {
  if (parts$full) sum(log(diag(parts$scale))) else if (!is.null(parts$scale)) sum(log(parts$scale))
  else d * log(parts$h)
}

# How much wider than the Gaussian's this kernel's bandwidth is for the same smoothing: (R(K) / mu_2(K)^2)^(1 / (d +
# 4)).
canonical_ratio <- function(kernel, d) {
  if (kernel %in% c("gaussian", "cauchy")) return(1)
  canonical <- function(kernel) {
    k <- function(r) kernel_value(kernel, r)
    upper <- if (is_compact(kernel)) 1 else Inf
    radial <- function(power, f) stats::integrate(function(r) r^(d - 1 + power) * f(r), 0, upper, rel.tol = 1e-9)$value
    log_mass <- log(radial(0, k))
    log_r <- log(radial(0, function(r) k(r)^2)) - 2 * log_mass - log_sphere(d)
    log_mu <- log(radial(2, k)) - log_mass - log(d)
    (log_r - 2 * log_mu) / (d + 4)
  }
  exp(canonical(kernel) - canonical("gaussian"))
}

#' Densities at new points
#'
#' @param object,x an object returned by [kde()].
#' @param newdata points in rows, whose columns are matched by name; by default the points of the density.
#' @param log whether to return logarithms, which are finite even if the density underflows. (Otherwise, values of the
#'   kernel below 1e-299, before scaling by the bandwidth, may be treated as 0.)
#' @param leave_one_out whether to exclude each point from its own density; only without `newdata`.
#' @param rel_error the largest relative error; by default as in `object`.
#' @param run see [weft_run()].
#' @param ... ignored.
#' @return `predict()`: densities, one per row, with an attribute `"backend"` when they come from a device; `print()`:
#'   `x`, invisibly; `summary()`: a list; `glance()`: one row.
#' @export
#' @examples
#' d <- kde(faithful$waiting)
#' predict(d, c(50, 80))
#' sum(predict(d, log = TRUE, leave_one_out = TRUE))
predict.weft_kde <- function(object, newdata = NULL, log = FALSE, leave_one_out = FALSE, rel_error = NULL, ...,
                             run = NULL) {
  run <- as_run(run)
  join_ranks(of_ranks(object), "predict", c(each_rank, "object", "newdata"))
  seen <- new.env()
  check_parts(object, "kde()", kde_parts(object, seen))
  object$facts <- seen$facts
  leave_one_out <- check_flag(leave_one_out, "leave_one_out")
  if (leave_one_out && !is.null(newdata)) {
    abort_input("`newdata` must not be given with `leave_one_out = TRUE`, which uses the points of the density.")
  }
  result <- model_sums(object, newdata, NULL, log, leave_one_out, rel_error, run)
  n <- if (leave_one_out) base::log(object$n) - base::log(max(object$n - 1, 1)) else 0
  scale <- object$log_scale + n
  sums <- as.vector(result$sum)
  f <- if (check_flag(log, "log")) sums + scale else if (abs(scale) < 600) sums * exp(scale)
    else exp(base::log(sums) + scale)
  f <- name_rows(f, result$rows)
  if (identical(result$backend, "cuda")) structure(f, backend = "cuda") else f
}

kde_parts <- function(object, seen = new.env()) {
  c(tree_parts(object, seen), list(
    rule = function(v) is_word(v, c("given", bandwidth_rules)),
    log_scale = function(v) {
      known <- -log(object$n) - log_integral(object$kernel, object$d) - log_volume(object$parts, object$d)
      is_number(v) && abs(v - known) <= 1e-8 * max(1, abs(known))
    }
  ))
}

# Those that printing shows.
shown_parts <- c("kernel", "d", "n", "distributed", "data", "bandwidth", "rel_error", "tree_type", "rule", "backend",
                 "seconds")

#' @rdname predict.weft_kde
#' @export
print.weft_kde <- function(x, ...) {
  check_parts(x, "kde()", kde_parts(x)[shown_parts])
  cat(sprintf("Kernel density of %.0f points in %d dimension%s, %s kernel\n", x$n, x$d, if (x$d == 1L) "" else "s",
              x$kernel))
  print_bandwidth(x)
  cat(sprintf("Relative error at most %g, %s tree, computed in %s\n", x$rel_error, x$tree_type,
              seconds_text(x$seconds)))
  invisible(x)
}

print_bandwidth <- function(x) {
  rule <- if (x$rule == "given") "given" else paste0("by \"", x$rule, "\"")
  if (is.matrix(x$bandwidth)) {
    cat(sprintf("Bandwidth matrix (%s):\n", rule))
    print(signif(x$bandwidth, 4))
  } else {
    cat(sprintf("Bandwidth (%s): %s\n", rule, paste(signif(x$bandwidth, 4), collapse = ", ")))
  }
}

#' @rdname predict.weft_kde
#' @export
summary.weft_kde <- function(object, ...) {
  join_ranks(of_ranks(object), "summary", c(each_rank, "object"))
  check_parts(object, "kde()", kde_parts(object)[shown_parts])
  f <- stats::predict(object, log = TRUE, leave_one_out = object$n > 1)
  as_summary(list(n = object$n, d = object$d, kernel = object$kernel, bandwidth = object$bandwidth,
                  rule = object$rule, log_likelihood = if (isTRUE(object$distributed)) ranks_sum(sum(f)) else sum(f),
                  densities = stats::quantile(exp(stats::predict(object, log = TRUE)))), "Kernel density")
}

#' @rdname predict.weft_kde
#' @export
glance.weft_kde <- function(x, ...) {
  check_parts(x, "kde()", kde_parts(x)[shown_parts])
  data.frame(n = x$n, d = x$d, kernel = x$kernel, rule = x$rule, rel_error = x$rel_error, backend = x$backend,
             seconds = x$seconds)
}
