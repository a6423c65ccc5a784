#' Choose the number of principal components
#'
#' * `"parallel"`: components whose singular value exceeds the `level` quantile of singular values after permuting every
#'   column (Horn 1965), up to the first that does not. The quantile is an order statistic, so `level` holds for
#'   independent columns of any distribution; this takes at least 1 / (1 - `level`) - 1 permutations (`times`);
#' * `"signs"`: the components of `"parallel"` that also exceed the quantile for data in which every deviation from the
#'   column median has a random sign (after Hong, Sheng and Dobriban 2020). Unlike permutation, this preserves the
#'   effect of noisier rows;
#' * `"broken_stick"`: components whose proportion of variance exceeds the expected length of a piece of a stick broken
#'   at random, up to the first that does not;
#' * `"gavish_donoho"`: singular values above the optimal hard threshold for white noise of unknown level (Gavish and
#'   Donoho 2014), which is estimated from the median of all of them;
#' * `"q2"`: the number of components that predicts held-out cells best. Cells are held out in `folds` diagonal patterns
#'   and predicted by the least-squares fit (as in `na = "em"`); Q2 = 1 - (squared errors) / (squared errors of the
#'   column means), with errors divided by the scale of their column, if any. The result is 0 if no number is better
#'   than the means, and the smallest one if several are equally good.
#'
#' @param x a numeric matrix or data frame without missing values.
#' @param method one of the names in the description.
#' @param center,scale as in [pca()].
#' @param max_k the largest number considered.
#' @param permutations the number of permutations, and of draws of signs.
#' @param level the quantile that a component must exceed.
#' @param folds the number of patterns of held-out cells.
#' @param seed a whole number for `"parallel"` and `"signs"`; by default, it is drawn from R's generator.
#' @param ... for `plot()`: passed on to [graphics::plot()].
#' @return An object of class `weft_pca_k`: a list with `k` (which may be 0), `method`, and `curve`, a data frame with
#'   the compared values for each number of components; for `"q2"` also `steps`, the number of decompositions of all
#'   fits. `plot()` draws the curve.
#' @seealso [pca()]
#' @export
#' @examples
#' x <- matrix(rnorm(100 * 10), 100) + outer(rnorm(100), rnorm(10, sd = 2))
#' chosen <- pca_choose_k(x, seed = 1)
#' chosen$k
#' plot(chosen)
pca_choose_k <- function(x, method = c("parallel", "signs", "broken_stick", "gavish_donoho", "q2"), center = TRUE,
                         scale = FALSE, max_k = NULL, permutations = 20, level = 0.95, folds = 7, seed = NULL) {
  need_args("x")
  method <- check_choice(method, c("parallel", "signs", "broken_stick", "gavish_donoho", "q2"), "method")
  permutations <- check_number(permutations, "permutations", min = 1, max = 1e6, whole = TRUE)
  level <- check_number(level, "level", min = 0, max = 1)
  folds <- check_number(folds, "folds", min = 2, max = 1000, whole = TRUE)
  source <- pca_source(x)
  if (source$kind != "dense") abort_input("`x` must be a matrix or data frame in memory.",
                                          x = paste0("It is ", describe(x), "."))
  x <- source$data
  if (!all_finite(x)) abort_input("`x` must contain only finite, non-missing values.")
  center <- check_center(center, ncol(x), "center")
  scale <- check_center(scale, ncol(x), "scale")
  if (isTRUE(center) && isTRUE(scale)) {
    facts <- matrix_facts(x)
    constant <- facts$least == facts$greatest
    if (any(constant)) warn_constant((source$names %||% seq_len(ncol(x)))[constant])
  }
  room <- max(1, min(nrow(x) - !isFALSE(center), ncol(x)))
  max_k <- check_number(max_k %||% min(room, if (method == "q2") 8 else if (method %in% by_draws) 50 else room),
                        "max_k", min = 1, max = room, whole = TRUE)
  if (method %in% by_draws || !is.null(seed)) key <- random_key(seed)
  fit <- function(x, k) suppressWarnings(pca(x, k, center = center, scale = scale, seed = 1,
                                             run = weft_run("cpu", progress = FALSE)))
  found <- switch(method,
    parallel = parallel_analysis(fit(x, max_k)$d, x, permutations, level, key, leading_values(center, scale),
                                 permute_columns),
    signs = parallel_analysis(fit(x, max_k)$d, x, permutations, level, key, leading_values(center, scale),
                              c(permute_columns, draw_signs(x))),
    broken_stick = broken_stick(x, max_k, room, fit),
    gavish_donoho = gavish_donoho(x, leading_values(center, scale, "gram")(x, room)),
    q2 = cross_validation(x, max_k, folds, center, scale)
  )
  new_result(class = "weft_pca_k", c(found, list(method = method)))
}

leading_run <- function(above) if (all(above)) length(above) else which(!above)[1L] - 1L

by_draws <- c("parallel", "signs")

# `observed`: the data's singular values; `nulls`: how to draw data without components; all thresholds must be exceeded.
# Of t draws and the data itself, the data's value is one of the (1 - level) (t + 1) greatest with that probability.
parallel_analysis <- function(observed, x, times, level, key, values, nulls) {
  most <- length(observed)
  place <- max(1, min(times, ceiling((times + 1) * level - 1e-9)))
  thresholds <- vapply(c(nulls), function(null) {
    drawn <- vapply(seq_len(times), function(t) values(null(x, key, t), most), numeric(most))
    apply(matrix(drawn, most), 1L, function(d) sort(d)[place])
  }, numeric(most))
  threshold <- apply(matrix(thresholds, most), 1L, max)
  list(k = leading_run(observed > threshold),
       curve = as_frame(list(component = seq_len(most), value = observed, threshold = threshold)))
}

# Each column by itself, in the order of draws of its own.
permute_columns <- function(x, key, stream) null_data(x, key, stream, NULL)

# About medians. A mean carries a row of much noise into all others, where it lines up with that row in the data and not
# under drawn signs: of 150 sets of 24 rows with scales of their own (the noise of a t distribution with 5 degrees of
# freedom) 21 % had a component too many with means, 5 % with medians; of 12 rows 25 and 5 %.
draw_signs <- function(x) {
  centre <- apply(x, 2L, stats::median)
  function(x, key, stream) null_data(x, key, 2^31 + stream, centre)
}

null_data <- function(x, key, stream, mean) {
  if (!is.double(x)) storage.mode(x) <- "double"
  .Call(C_weft_pca_null, x, list(key = as_halves(key), stream = stream, mean = mean), run_control(progress = FALSE))
}

broken_stick <- function(x, most, room, fit) {
  share <- fit(x, most)$share
  threshold <- rev(cumsum(1 / rev(seq_len(room))))[seq_len(most)] / room
  list(k = leading_run(share > threshold),
       curve = as_frame(list(component = seq_len(most), value = share, threshold = threshold)))
}

# A function(x, k) of the k greatest singular values, without what pca() computes from their vectors and reports about
# them.
leading_values <- function(center, scale, method = "auto") {
  control <- run_control("cpu", NULL, FALSE, task = "Principal components")
  plan <- NULL # that of the first x: all have its shape, and the same k
  function(x, k) {
    source <- dense_source(x)
    moments <- column_moments(source, NULL, control)
    form <- pca_form(moments, center, scale, NULL, NULL, source$n)
    if (is.null(plan)) { # small decompositions, one after another: threads that wait for each other take more
      plan <<- pca_plan(source, k, method, 1L)
      control$threads <<- as.integer(max(1, min(control$threads, plan$cost$cpu / 0.01)))
    }
    job <- pca_job(plan, "cpu", choose = TRUE, k = as.integer(k), tol = default_tolerance(FALSE, "residual", "fail"),
                   paper = FALSE, max_iter = 1000L, block = 0L, key = random_key(1), start = NULL)
    pca_native(source, form, job, FALSE, control)$d * 2^form$exponent
  }
}

gavish_donoho <- function(x, d) {
  sides <- sort(c(nrow(x) - 1, ncol(x)))
  beta <- max(sides[1L], 1) / max(sides[2L], 1)
  lambda <- sqrt(2 * (beta + 1) + 8 * beta / (beta + 1 + sqrt(beta^2 + 14 * beta + 1)))
  threshold <- lambda / sqrt(marchenko_pastur_median(beta)) * stats::median(d)
  list(k = sum(d > threshold), curve = data.frame(component = seq_along(d), value = d, threshold = threshold))
}

# Of the limiting distribution of the eigenvalues of W'W / n, W with independent entries of variance 1 and sides in the
# ratio beta.
marchenko_pastur_median <- function(beta) {
  low <- (1 - sqrt(beta))^2
  high <- (1 + sqrt(beta))^2
  # x = low + (high - low) sin^2 a takes the square roots out of the ends
  density <- function(a) {
    x <- low + (high - low) * sin(a)^2
    ifelse(x > 0, (high - low)^2 * (sin(a) * cos(a))^2 / (pi * beta * pmax(x, 1e-300)), 0)
  }
  mass <- function(a) stats::integrate(density, 0, a, rel.tol = 1e-10)$value
  a <- stats::uniroot(function(a) mass(a) - 0.5, c(1e-6, pi / 2), tol = 1e-10)$root
  low + (high - low) * sin(a)^2
}

# Squared errors of left-out cells, relative to the fit by column means of what is left. The fit with one component more
# starts from that with one less, and ends when it explains what is left hardly better than a step before: on the way to
# a fit of noise there is no end, and none is needed to see that it predicts worse.
cross_validation <- function(x, most, folds, center, scale) {
  fold <- (row(x) + col(x) * (if (folds %% 3 == 0) 1 else 3)) %% folds # no row's cells are all in one
  most <- min(most, ncol(x) - 1L, nrow(x) - 1L)
  errors <- numeric(max(most, 0) + 1)
  steps <- 0
  control <- run_control("cpu", NULL, FALSE, task = "Principal components")
  # errors are in the columns' scale where they have one, and in a unit in which squares neither overflow nor vanish
  unit <- if (isFALSE(scale)) rep(1, ncol(x))
          else pca_form(column_moments(dense_source(x), NULL, control), center, scale, NULL, NULL, nrow(x))$scale
  unit <- unit * power_of_two(x / rep(unit, each = nrow(x)))
  x <- x / rep(unit, each = nrow(x))
  if (is.numeric(center)) center <- center / unit
  if (is.numeric(scale)) scale <- scale / unit
  settings <- list(center = center, scale = scale)
  for (f in seq_len(folds) - 1) {
    out <- fold == f
    left <- replace(x, out, NA)
    base <- colMeans(left, na.rm = TRUE)
    if (anyNA(base)) next
    errors[1L] <- errors[1L] + sum((x[out] - base[col(x)[out]])^2)
    cells <- NULL
    source <- dense_source(left)
    moments <- column_moments(source, NULL, control)
    for (k in seq_len(most)) {
      job <- list(k = k, tol = 1e-4, fall = 1e-4, max_iter = 200, block = 0L, key = random_key(1))
      found <- em_fit(source, moments, cells, job, settings, control)
      cells <- found$cells
      steps <- steps + found$steps
      errors[k + 1L] <- errors[k + 1L] + sum((x[out] - cells)^2)
    }
  }
  q2 <- if (errors[1L] > 0) 1 - errors / errors[1L] else numeric(length(errors))
  list(k = which(q2 >= max(q2) - 1e-6)[1L] - 1L,
       curve = data.frame(component = seq_along(q2) - 1L, value = q2, threshold = 0), steps = steps)
}

#' @rdname pca_choose_k
#' @export
print.weft_pca_k <- function(x, ...) {
  check_pca_k(x, "x")
  cat(sprintf("%d component%s by method \"%s\"\n", as.integer(x$k), if (x$k == 1) "" else "s", x$method))
  invisible(x)
}

#' @rdname pca_choose_k
#' @export
plot.weft_pca_k <- function(x, ...) {
  picture <- components_picture(x, "x")
  curve <- picture$data
  settings <- list(x = curve$component, y = curve$value, type = "o", pch = ifelse(curve$component <= x$k, 16, 1),
                   col = "#2c5f8a",
                   las = 1, xlab = "component", ylab = picture$ylab, ylim = range(curve$value, curve$threshold),
                   main = picture$title)
  do.call(graphics::plot, utils::modifyList(settings, list(...)))
  graphics::lines(curve$component, curve$threshold, col = "#b3541e", lty = 2)
  graphics::legend(if (x$method == "q2") "bottomright" else "topright", bty = "n", legend = c("data", picture$rule),
                   col = c("#2c5f8a", "#b3541e"),
                   lty = 1:2, pch = c(16, NA))
  invisible(x)
}
