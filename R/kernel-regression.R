#' Kernel regression
#'
#' `kernel_regression()` fits a smooth curve or surface to responses. The shortest call is `kernel_regression(x, y)`; it
#' returns an object for `predict()` and `plot()`. The estimate is the local mean of Nadaraya and Watson,
#' \eqn{\hat m(q) = \sum_i k(q, x_i) y_i / \sum_i k(q, x_i)}, with the numerator and the denominator from one pass of
#' [kernel_sum()].
#'
#' Responses are taken relative to their mean \eqn{\bar y}. With `rel_error` \eqn{\varepsilon}, the numerator is within
#' \eqn{\varepsilon \sum k |y_i - \bar y|} and the denominator within \eqn{\varepsilon \sum k}. The regression is `NA`
#' if no reference is within reach of a compact kernel, or if all are so far away that the denominator is below
#' \eqn{10^{-290}} of the weights.
#'
#' `bandwidth = "cv"` uses the multiple of Scott's rule with the smallest mean squared leave-one-out error; points that
#' are out of reach of all others are predicted by \eqn{\bar y}. In four or more dimensions, `scores` are means over a
#' random sample of at most 5,000 points, and the search around the best score uses a sample of 10,000 points; each
#' point of a sample is compared with all others. There, with `rel_error` of at least 1e-4, scores are computed from
#' kernel values in single precision. Without a `seed`, the samples are the same in every call.
#'
#' @param x points in rows: a numeric matrix or data frame, or a vector in one dimension.
#' @param y the responses, one per row.
#' @param bandwidth `"cv"`, `"scott"`, `"silverman"`, or numbers as for [kernel_sum()].
#' @param weights `NULL`, or one non-negative number per row.
#' @param kernel,rel_error,tree,seed see [kde()].
#' @param run see [weft_run()]. With `ranks = TRUE`, each rank of a job gives its own part of `x`, `y` and `weights`;
#'   see [kde()].
#' @param ... not used; for an unknown argument, the error suggests the intended one.
#' @return An object of class `weft_kernel_regression`, which can be saved with `saveRDS()`, including the tree.
#' @seealso [predict.weft_kernel_regression()]
#' @export
#' @examples
#' r <- kernel_regression(faithful$waiting, faithful$eruptions)
#' r
#' predict(r, c(50, 80), interval = "confidence")
#' plot(r)
kernel_regression <- function(x, y, bandwidth = "cv", weights = NULL, kernel = "gaussian", rel_error = 1e-4,
                              tree = c("kd", "ball", "vp", "rp"), seed = NULL, run = NULL, ...) {
  run <- as_run(run, ranks = TRUE)
  started <- proc.time()[[3L]]
  join_ranks(run$ranks, "kernel_regression", c(each_rank, "x", "y", "weights"))
  check_dots(..., .known = kernel_names_elsewhere)
  need_args("x", "y")
  check_seed(seed)
  kernel <- check_choice(kernel, kernel_names, "kernel")
  run <- use_backend(run)
  tree <- check_choice(tree, tree_types, "tree")
  rel_error <- check_number(rel_error, "rel_error", min = 0, max = 1)
  x <- kernel_points(x, "x")
  y <- check_response(y, nrow(x), run$ranks)
  if (!rows_of_all(x, run$ranks)) abort_input("`x` must have at least one row.")
  w <- check_case_weights(weights, nrow(x), run$ranks)
  rule <- if (is.character(bandwidth)) check_choice(bandwidth, regression_rules[-1L], "bandwidth") else "given"
  scores <- NULL
  sums <- list(kernel = kernel, tree = tree, rel_error = rel_error, seed = seed)
  if (rule == "cv") {
    found <- regression_cv(x, y, w, sums, run)
    bandwidth <- found$bandwidth
    scores <- found$scores
  } else if (rule != "given") bandwidth <- rule_bandwidth(x, rule, kernel, run, seed)
  object <- regression_model(x, y, w, bandwidth, sums, run)
  object$rule <- rule
  object$scores <- scores
  left_out <- unname(regression_sums(object, leave_one_out = TRUE, run = run)$fit)
  left_out[is.na(left_out)] <- object$centre
  residual <- y - left_out
  object$residual_square <- residual^2
  squares <- c(sum(w * residual^2), sum(w * (y - object$centre)^2))
  if (run$ranks) squares <- ranks_sum(squares)
  object$r_squared <- 1 - squares[1L] / squares[2L]
  object$call <- match.call()
  object$seconds <- proc.time()[[3L]] - started
  object
}

check_response <- function(y, n, distributed = FALSE) {
  y <- readable_numbers(y, "y")
  if (!is_numeric_vector(y) || length(y) != n) {
    abort_input(sprintf("`y` must contain one finite number per row of `x` (%d).", n),
                x = paste0("It is ", describe(y), "."))
  }
  bad <- which(!is.finite(y) | abs(y) > 1e100)
  if (length(bad)) {
    abort_input("`y` must contain numbers from -1e100 to 1e100.",
                x = sprintf("%d are missing, infinite or larger; the first is element %d.", length(bad), bad[1L]))
  }
  greatest <- max(abs(y), 0)
  if (!distributed && greatest > 0 && greatest < 1e-100) { # squares would vanish
    abort_input("The largest absolute value in `y` must be 0 or at least 1e-100.", x = sprintf("It is %g.", greatest),
                i = "Rescale `y`.")
  }
  as.double(y)
}

check_case_weights <- function(weights, n, distributed = FALSE) {
  if (is.null(weights)) return(rep(1, n))
  weights <- readable_numbers(weights, "weights")
  valid <- is_numeric_vector(weights) && length(weights) == n && all(is.finite(weights)) &&
    all(weights >= 0 & weights <= 1e100)
  if (!valid || (if (distributed) ranks_sum(sum(weights)) else sum(weights)) < 1e-100) {
    abort_input(sprintf("`weights` must contain %d numbers from 0 to 1e100 whose sum is at least 1e-100.", n),
                x = paste0("It is ", describe(weights), "."))
  }
  as.double(weights)
}

regression_model <- function(x, y, w, bandwidth, sums, run) {
  object <- points_model(x, rows_of_all(x, run$ranks), bandwidth, sums, run_but(run, progress = NULL))
  new_result(class = "weft_kernel_regression", c(object, list(
    response = y, weights = w, centre = mean_of_all(y, w, run$ranks), backend = weft_backend()
  )))
}

# The least score around the best of a grid of multiples of Scott's rule. With many points in four and more dimensions,
# where sums take long, the grid is scored over some of them, and what is around its best over more.
regression_cv <- function(x, y, w, sums, run) {
  shape <- spread(x, run$ranks) * rows_of_all(x, run$ranks)^(-1 / (ncol(x) + 4)) * canonical_ratio(sums$kernel, ncol(x))
  z <- unname(x / rep(shape, each = nrow(x)))
  sums$rel_error <- max(sums$rel_error, 1e-6)
  grid <- exp(seq(log(0.05), log(4), length.out = 16))
  at_once <- cv_at_once(z, y, w, sums, run, stats::median(grid))
  all <- run$ranks || ncol(x) < 4L || sum(w > 0) <= cv_rows[["grid"]]
  fine <- (at_once %||% cv_one_by_one(z, y, w, sums, run))(if (all) Inf else cv_rows[["search"]])
  rough <- replace(sums, "rel_error", max(sums$rel_error, 1e-3))
  scores <- if (all) fine(grid) else (at_once %||% cv_one_by_one(z, y, w, rough, run))(cv_rows[["grid"]])(grid)
  start <- which.min(scores)
  found <- if (!is.null(at_once)) least_of_many(fine, grid, start)
           else least_of_few(fine, grid, start, if (all) scores)
  list(bandwidth = found * shape, scores = data.frame(multiple = grid, score = scores))
}

# By golden section, where each score costs as much as the first. scores: of the grid, NULL where `fine` is another
# function.
least_of_few <- function(fine, grid, start, scores) {
  best <- if (is.null(scores)) walk_down(start, length(grid), function(i) fine(grid[i]))
          else list(at = start, least = scores[start])
  around <- grid[c(max(best$at - 1L, 1L), min(best$at + 1L, length(grid)))]
  found <- stats::optimize(fine, around, tol = 1e-3 * around[1L])
  if (found$objective <= best$least) found$minimum else grid[best$at]
}

# Where several scores cost little more than one: seven from one neighbour of the best to the other, and the least of
# the spline through their logarithms. Where that is at an end, what is around that end.
least_of_many <- function(fine, grid, start) {
  looked <- integer()
  repeat {
    from <- log(grid[c(max(start - 1L, 1L), min(start + 1L, length(grid)))])
    t <- seq(from[1L], from[2L], length.out = 7L)
    score <- fine(exp(t))
    looked <- c(looked, start)
    best <- which.min(score)
    next_start <- start + if (best == 1L) -1L else if (best == 7L) 1L else 0L
    if (next_start %in% c(0L, looked, length(grid) + 1L)) break
    start <- next_start
  }
  through <- stats::splinefun(t, score)
  found <- stats::optimize(through, t[c(max(best - 1L, 1L), min(best + 1L, 7L))], tol = 1e-4)
  exp(if (isTRUE(found$objective <= score[best])) found$minimum else t[best])
}

# NULL, or a function of the most rows to take a mean over, whose result is a function of many t: their scores by one
# pass over the distances (src/kernel/cpu/direct/wide.c). For points of many dimensions on the CPU, where trees do not
# spare most pairs at the bandwidth `middle`.
cv_at_once <- function(z, y, w, sums, run, middle) {
  limits <- kernel_limits()
  if (run$ranks || ncol(z) < 4L || sums$rel_error < limits[["single_error"]] || sum(w > 0) < 2L ||
      of_sheet(sums$kernel, "single") == "NEVER" || points_reach(z) > 1e6) return(NULL)
  problem <- kernel_problem(z[seq_len(min(nrow(z), cv_rows[["grid"]])), , drop = FALSE], z, NULL, sums$kernel, middle,
                            limits[["wide_error"]], run = run)
  work <- prod(dim(problem$query)[1L], nrow(z), kernel_work(sums$kernel, ncol(z), 2)[["pairs"]])
  seconds <- cost_of_direct(problem)
  share <- limits[["wide_share"]]
  if (choose_backend(problem$backend, cost(share * seconds$cpu, seconds$cuda))$name != "cpu") return(NULL)
  if (work > limits[["min_work"]] && walk_work(problem, native_trees(problem)) < share * work) return(NULL)
  function(most) cv_scores(z, y, w, sums, run, most)
}

# The same, one sum after another.
cv_one_by_one <- function(z, y, w, sums, run) {
  function(most) {
    score <- cv_score(z, y, w, sums, run, most)
    function(t) vapply(t, score, 0)
  }
}

# The most rows over which cross-validation takes its mean.
cv_rows <- c(grid = 5000, search = 10000)

# From number i of n to the nearest at which f is not greater than at its neighbours: list(at, least).
walk_down <- function(i, n, f) {
  known <- rep(NA_real_, n)
  at <- function(i) {
    if (i < 1L || i > n) return(Inf)
    if (is.na(known[i])) known[i] <<- f(i)
    known[i]
  }
  repeat {
    near <- c(at(i - 1L), at(i), at(i + 1L))
    if (which.min(near) == 2L || near[2L] <= min(near)) return(list(at = i, least = at(i)))
    i <- i + which.min(near) - 2L
  }
}

# A function of t, many bandwidths: the mean square leave-one-out error with each, as cv_score() has it for one.
cv_scores <- function(z, y, w, sums, run, most) {
  centre <- sum(w * y) / sum(w)
  counts <- which(w > 0)
  some <- if (length(counts) > most) sort(sample_rows(length(counts), most, sums$seed %||% 0)) else seq_along(counts)
  z <- t(z[counts, , drop = FALSE])
  y <- y[counts] - centre
  w <- w[counts]
  control <- run_control("cpu", run$threads, run$progress, task = "Cross-validation")
  columns <- rbind(w / max(w), w / max(w) * (y / max(abs(y), 1e-300))) # in floats
  task <- sums_task(native_kernel(sums$kernel), 1, list(x = z[, some, drop = FALSE]), list(x = z), columns, TRUE,
                    own = some - 1L)
  vanishing <- log(1e-290) + log(sum(columns[1L, ]))
  function(t) {
    out <- .Call(C_weft_kernel_wide, task, as.double(t), control)
    first <- 2L * seq_along(t) - 1L
    below <- out$sum[, first, drop = FALSE]
    known <- below > 0 & log(below) - out$shift > vanishing
    ratio <- ifelse(known, out$sum[, first + 1L, drop = FALSE] / below, 0) * max(abs(y), 1e-300)
    colSums(w[some] * (y[some] - ratio)^2) / sum(w[some])
  }
}

# A function of t: the mean square leave-one-out error with bandwidth t, over `most` rows with a weight at most. Where
# they are drawn, the others are a model of their own.
cv_score <- function(z, y, w, sums, run, most) {
  centre <- mean_of_all(y, w, run$ranks)
  total <- if (run$ranks) ranks_sum(sum(w)) else sum(w)
  columns <- cbind(w, w * (y - centre))
  counts <- which(w > 0)
  drawn <- length(counts) > most
  some <- if (drawn) sort(counts[sample_rows(length(counts), most, sums$seed %||% 0)]) else seq_along(y)
  models <- list(own = points_model(z[some, , drop = FALSE], rows_of_all(z[some, , drop = FALSE], run$ranks), 1, sums,
                                    run_but(run, progress = NULL)))
  if (drawn) models$other <- points_model(z[-some, , drop = FALSE], nrow(z) - most, 1, sums,
                                          run_but(run, progress = NULL))
  function(t) {
    s <- 0
    for (name in names(models)) {
      model <- models[[name]]
      model$bandwidth <- model$parts$h <- t
      model$backend <- weft_backend()
      own <- name == "own"
      s <- s + model_sums(model, if (!own) z[some, , drop = FALSE],
                          columns[if (own) some else -some, , drop = FALSE], leave_one_out = own, run = run)$sum
    }
    off <- y[some] - centre - ifelse(s[, 1L] > 1e-290 * total, s[, 2L] / s[, 1L], 0)
    score <- c(sum(w[some] * off^2), sum(w[some]))
    if (run$ranks) score <- ranks_sum(score)
    score[1L] / score[2L]
  }
}

#' Predictions of a kernel regression
#'
#' @param object,x an object returned by [kernel_regression()].
#' @param newdata points in rows, whose columns are matched by name; by default the points of the regression.
#' @param interval `"none"` or `"confidence"`: pointwise bands \eqn{\hat m \pm z\, \hat\sigma(q) \sqrt{\rho / \sum_i
#'   k}}, where
#'   \eqn{\hat\sigma^2} is the local mean of the squared leave-one-out residuals and \eqn{\rho = \int k^2 / \int k}.
#'   They do not account for the bias.
#' @param level the level of the bands.
#' @param leave_one_out whether to exclude each point from its own prediction; only without `newdata`.
#' @param run see [weft_run()].
#' @param rel_error see [kernel_sum()].
#' @param n the number of points of the curve.
#' @param ... ignored by `predict()` and `print()`, passed on to [graphics::plot.default()] by `plot()`.
#' @return `predict()`: numbers, which are `NA` if no point is within reach; with an interval, a matrix with the columns
#'   `fit`, `lwr` and `upr`. `print()` and `plot()`: `x`, invisibly.
#' @export
#' @examples
#' r <- kernel_regression(faithful$waiting, faithful$eruptions, bandwidth = 4, kernel = "epanechnikov")
#' predict(r, c(50, 80, 500))
predict.weft_kernel_regression <- function(object, newdata = NULL, interval = c("none", "confidence"), level = 0.95,
                                           leave_one_out = FALSE, rel_error = NULL, ..., run = NULL) {
  run <- as_run(run)
  join_ranks(of_ranks(object), "predict", c(each_rank, "object", "newdata"))
  seen <- new.env()
  check_parts(object, "kernel_regression()", regression_parts(object, seen))
  object$facts <- seen$facts
  interval <- check_choice(interval, c("none", "confidence"), "interval")
  level <- check_number(level, "level", min = 0, max = 1)
  leave_one_out <- check_flag(leave_one_out, "leave_one_out")
  if (leave_one_out && !is.null(newdata)) {
    abort_input("`newdata` must not be given with `leave_one_out = TRUE`, which predicts at the points of the model.")
  }
  with_bands <- interval == "confidence"
  sums <- regression_sums(object, newdata, leave_one_out, with_bands, rel_error, run)
  if (!with_bands) return(sums$fit)
  s <- sums$sum
  error <- sqrt(pmax(s[, 3L] / s[, 1L], 0) * square_ratio(object$kernel, object$d) * s[, 4L]) / s[, 1L]
  z <- stats::qnorm((1 + level) / 2)
  out <- cbind(fit = sums$fit, lwr = sums$fit - z * error, upr = sums$fit + z * error)
  out[is.na(sums$fit), ] <- NA_real_
  out
}

# list(fit, sum): the local means, and what they and their bands are made of.
regression_sums <- function(object, newdata = NULL, leave_one_out = FALSE, with_bands = FALSE, rel_error = NULL,
                            run = as_run()) {
  w <- object$weights
  columns <- cbind(w, w * (object$response - object$centre))
  if (with_bands) columns <- cbind(columns, w * object$residual_square, w^2)
  result <- model_sums(object, newdata, columns, FALSE, leave_one_out, rel_error, run)
  s <- result$sum
  fit <- object$centre + s[, 2L] / s[, 1L]
  total <- if (isTRUE(object$distributed)) ranks_sum(sum(w)) else sum(w)
  fit[!(s[, 1L] > 1e-290 * total)] <- NA_real_ # smaller numbers have lost their digits
  list(fit = name_rows(fit, result$rows), sum = s)
}

regression_parts <- function(object, seen = new.env()) {
  here <- function(v, min = -Inf) is_reals(v, nrow(object$data), min)
  c(tree_parts(object, seen), list(
    response = here,
    weights = function(v) here(v, 0),
    centre = function(v) is_number(v) && (isTRUE(object$distributed) || same_mean(v, object$response, object$weights)),
    residual_square = function(v) here(v, 0),
    rule = function(v) is_word(v, regression_rules),
    scores = function(v) is.null(v) || (is.data.frame(v) && identical(names(v), c("multiple", "score"))),
    r_squared = function(v) is.double(v) && length(v) == 1L && !is.object(v)
  ))
}

regression_rules <- c("given", "cv", "scott", "silverman")

same_mean <- function(mean, y, w) abs(mean - sum(w * y) / sum(w)) <= 1e-8 * max(abs(y))

# Integral of k^2 over that of k.
square_ratio <- function(kernel, d) {
  if (kernel == "gaussian") return(2^(-d / 2))
  upper <- if (is_compact(kernel)) 1 else Inf
  square <- stats::integrate(function(r) r^(d - 1) * kernel_value(kernel, r)^2, 0, upper, rel.tol = 1e-8)$value
  if (kernel == "cauchy" && d > 1) return(1)
  plain <- stats::integrate(function(r) r^(d - 1) * kernel_value(kernel, r), 0, upper, rel.tol = 1e-8)$value
  square / plain
}

#' @rdname predict.weft_kernel_regression
#' @export
fitted.weft_kernel_regression <- function(object, ...) stats::predict(object)

#' @rdname predict.weft_kernel_regression
#' @export
residuals.weft_kernel_regression <- function(object, ...) {
  fit <- stats::predict(object)
  object$response - fit
}

#' @rdname predict.weft_kernel_regression
#' @export
print.weft_kernel_regression <- function(x, ...) {
  check_parts(x, "kernel_regression()", regression_parts(x)[c(shown_parts, "r_squared")])
  cat(sprintf("Kernel regression on %.0f points in %d dimension%s, %s kernel\n", x$n, x$d, if (x$d == 1L) "" else "s",
              x$kernel))
  print_bandwidth(x)
  cat(sprintf("Leave-one-out R squared %.3f, computed in %s\n", x$r_squared, seconds_text(x$seconds)))
  invisible(x)
}

#' @rdname predict.weft_kernel_regression
#' @export
summary.weft_kernel_regression <- function(object, ...) glance(object) # nolint: object_length_linter.
