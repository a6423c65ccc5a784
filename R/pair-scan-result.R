# What pair_scan() returns: printing, pictures and conversion.

#' Print, plot and convert scans of pairs
#'
#' `plot()` draws the p-values of the pairs that were fitted against those that as many pairs as were tested would have
#' by chance, both as -log10. Pairs above the line are more than chance; the dashed line is 0.05 after Bonferroni.
#'
#' @param x,object an object returned by [pair_scan()].
#' @param n the number of pairs to show.
#' @param alpha the p-value, after Bonferroni, up to which a pair counts as found.
#' @param ... passed on to [graphics::plot()] by `plot()`, ignored by the others.
#' @return `x`, invisibly; `summary()`: a list with the numbers of pairs that were `fitted`, `searched`, `tested` (those
#'   with a score) and `found`, the numbers of variants `left_out`, the `model` and `alpha`; `tidy()`: a data frame
#'   with broom's names; `glance()`: one row about the scan.
#' @export
#' @examples
#' set.seed(1)
#' x <- matrix(rbinom(200 * 12, 2, 0.4), 200)
#' found <- pair_scan(x, rnorm(200) + x[, 2] * x[, 5])
#' summary(found)$found
#' head(tidy(found), 2)
#' plot(found)
print.weft_pair_scan <- function(x, n = 10L, ...) {
  if (!is_pair_scan(x)) return(print_as_frame(x, n))
  model <- checked_scan(x, "x")
  n <- check_shown(n)
  tested <- attr(x, "tested")
  cat_wrapped(sprintf("Pairwise interactions in a %s model (%s): %s%s", model$kind, scan_words(model),
                      if (nrow(x) < tested) paste(thousands(nrow(x)), "of ") else "",
                      several(max(nrow(x), tested), "pair")))
  shown <- as.data.frame(x)
  if (all(is.na(shown$reason))) shown$reason <- NULL
  print_first(shown, n)
  beyond <- sum(x$p_bonferroni <= 0.05, na.rm = TRUE)
  cat_wrapped(sprintf("%s significant at p_bonferroni <= 0.05 (%s tested).",
                      if (beyond > 1L) paste(thousands(beyond), "are") else if (beyond) "One is" else "None is",
                      several(tested, "pair")))
  without <- sum(is.na(x$p_value))
  if (without) cat_wrapped(sprintf("%s no test: see `reason`.", if (without == 1L) "One pair has"
                                                               else paste(thousands(without), "pairs have")))
  if (is.numeric(x$p_fwer) && nrow(x)) {
    cat_wrapped(sprintf("p_fwer is based on %s of the residuals and cannot be below %s.",
                        several(attr(x, "permutations"), "permutation"),
                        format(1 / (attr(x, "permutations") + 1), digits = 2)))
  }
  invisible(x)
}

scan_words <- function(model) {
  sprintf("%s%s%s", several(model$rows, "row"),
          if (model$covariates) paste0(", ", several(model$covariates, "term"), " for covariates") else "",
          if (model$kind == "logistic") sprintf(", %s versus %s", model$levels[2L], model$levels[1L])
          else if (model$scores == "normal") ", normal scores" else "")
}

is_pair_scan <- function(x) {
  all(c("feature1", "feature2", "p_value", "p_bonferroni") %in% names(x)) && is.list(attr(x, "model"))
}

# The model of a whole result; an error where it was changed.
checked_scan <- function(x, arg) {
  check_result(x, arg, c(run_attributes, "searched"), c("feature1", "feature2"), "n")
  model <- attr(x, "model", exact = TRUE)
  left_out <- attr(x, "left_out", exact = TRUE)
  sound <- is_frame(x, c(statistic = "numeric", p_value = "numeric", p_bonferroni = "numeric")) &&
    (is.character(x$reason) || is.null(x$reason)) && is_number(attr(x, "tested", exact = TRUE), 0) &&
    is_count(attr(x, "permutations", exact = TRUE)) && is.integer(left_out) && !anyNA(left_out) && is.list(model) &&
    is_word(model$kind, c("linear", "logistic")) && is_count(model$rows, 1) && is_count(model$covariates) &&
    is_number(model$df, 1, 4) && is_word(model$scores, c("raw", "normal")) &&
    (model$kind == "linear" || is_text(model$levels, 2L))
  if (!isTRUE(sound)) abort_changed(arg, "its columns or attributes are damaged")
  model
}

#' @rdname print.weft_pair_scan
#' @export
summary.weft_pair_scan <- function(object, alpha = 0.05, ...) {
  model <- checked_scan(object, "object")
  alpha <- check_number(alpha, "alpha", min = 0, max = 1)
  as_summary(list(fitted = nrow(object), searched = attr(object, "searched"), tested = attr(object, "tested"),
                  found = sum(object$p_bonferroni <= alpha, na.rm = TRUE), left_out = attr(object, "left_out"),
                  model = model, alpha = alpha, run = run_line(object)), "Interactions of variants")
}

#' @rdname print.weft_pair_scan
#' @export
as.data.frame.weft_pair_scan <- function(x, ...) {
  check_frame(x, "x")
  list2DF(unclass(x)[names(x)])
}

#' @rdname print.weft_pair_scan
#' @export
tidy.weft_pair_scan <- function(x, ...) {
  checked_scan(x, "x")
  broom_names(as.data.frame(x))
}

#' @rdname print.weft_pair_scan
#' @export
glance.weft_pair_scan <- function(x, ...) {
  model <- checked_scan(x, "x")
  data.frame(fitted = nrow(x), searched = attr(x, "searched"), tested = attr(x, "tested"), model = model$kind,
             nobs = model$rows, covariates = model$covariates, df = model$df, backend = attr(x, "backend"),
             seconds = attr(x, "seconds"))
}

#' @rdname print.weft_pair_scan
#' @export
plot.weft_pair_scan <- function(x, ...) {
  picture <- scan_picture(x, "x")
  d <- picture$data
  settings <- list(x = d$expected, y = d$seen, pch = 19, col = "#2c5f8a", xlab = picture$xlab, ylab = picture$ylab,
                   ylim = c(0, max(d$seen, picture$threshold) * 1.03), xlim = c(0, max(d$expected)), las = 1,
                   main = picture$title)
  do.call(graphics::plot, utils::modifyList(settings, list(...)))
  graphics::abline(0, 1, col = "grey60")
  graphics::abline(h = picture$threshold, lty = 2)
  invisible(x)
}

scan_picture <- function(x, arg) {
  checked_scan(x, arg)
  p <- sort(x$p_value[!is.na(x$p_value)])
  if (!length(p)) abort_input(sprintf("`%s` must have a pair with a p-value.", arg), x = "It has none.")
  tested <- max(attr(x, "tested"), length(p))
  list(data = data.frame(expected = -log10((seq_along(p) - 0.5) / tested), seen = -log10(pmax(p, 1e-320))),
       threshold = -log10(0.05 / tested), xlab = "expected -log10 p", ylab = "-log10 p",
       title = sprintf("%s of %s tested", thousands(length(p)), several(tested, "pair")))
}
