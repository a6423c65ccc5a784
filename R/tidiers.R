# tidy(), glance() and augment() of results without such methods in their system's own file: one row per thing found,
# one row per fit, the data with what was found beside them.

#' Results as data frames
#'
#' `tidy()` returns one row for each item of a result, `glance()` one row about the whole fit, and `augment()` the data
#' with additional columns from the result. The shortest call is `tidy(x)`. Columns have broom's names if there is one:
#' `estimate`, `std.error`, `conf.low`, `conf.high`, `statistic`, `p.value`, and `adj.p.value` for q-values and
#' Bonferroni-corrected p-values. `as.data.frame()` returns the same rows with weft's names. These are the methods for
#' results whose own help page has none; the pages of rankings, pairs, networks, Bayesian networks, components,
#' co-clusterings and [gene_network()] describe their own.
#'
#' @param x the result of a weft function.
#' @param data the data, for `augment()`; for a density or a regression, by default the points from which it was made.
#' @param ... ignored.
#' @return A data frame. The rows of `tidy()` are the pairs of a matrix of information; the steps of a selection; the
#'   cuts of discretised columns; the curve of [pca_choose_k()]; the rates of [bn_compare()]; the parent sets of
#'   [bn_scores()]; the levels and configurations of parents, or, for numeric nodes, the coefficients, of [bn_fit()];
#'   the log of [gene_quality()]; the samples of [gene_outliers()]; the tested sets of [gene_sets()]; and the points,
#'   dimensions or components of a density, regression, Gaussian process or kernel component analysis.
#' @name tidiers
#' @examples
#' head(tidy(mi_matrix(mtcars, estimator = "spearman")), 3)
#' glance(kernel_regression(faithful$waiting, faithful$eruptions, 5))
#' head(augment(kde(faithful$waiting)), 3)
NULL

# The names that broom's methods give to such columns. `estimate`: the column that is the estimate.
broom_names <- function(d, estimate = NULL) {
  broom <- c(p_value = "p.value", q_value = "adj.p.value", p_bonferroni = "adj.p.value", std_error = "std.error",
             lower = "conf.low", upper = "conf.high", t = "statistic", f = "statistic", z = "statistic",
             stats::setNames(rep("estimate", length(estimate)), estimate))
  known <- names(d) %in% names(broom)
  names(d)[known] <- broom[names(d)[known]]
  d
}

#' @rdname tidiers
#' @export
tidy.weft_mi_matrix <- function(x, ...) {
  m <- as.matrix(x)
  square <- nrow(m) == ncol(m) && identical(rownames(m), colnames(m))
  at <- which(if (square) upper.tri(m) else matrix(TRUE, nrow(m), ncol(m)), arr.ind = TRUE)
  out <- data.frame(feature1 = rownames(m)[at[, 1L]], feature2 = colnames(m)[at[, 2L]], estimate = m[at])
  out <- out[order(-out$estimate), ]
  rownames(out) <- NULL
  out
}

#' @rdname tidiers
#' @export
glance.weft_mi_matrix <- function(x, ...) {
  check_information(x, record = c("estimator", "unit", "na", run_attributes))
  data.frame(rows = nrow(x), columns = ncol(x), estimator = attr(x, "estimator"), unit = attr(x, "unit"),
             na = attr(x, "na"), backend = attr(x, "backend"), seconds = attr(x, "seconds"))
}

#' @rdname tidiers
#' @export
tidy.weft_selection <- function(x, ...) {
  check_selection(x)
  data.frame(step = seq_len(nrow(x)), feature = x$feature, score = x$score)
}

#' @rdname tidiers
#' @export
glance.weft_selection <- function(x, ...) {
  check_selection(x, c("features", "unit", run_attributes))
  data.frame(selected = nrow(x), features = attr(x, "features"), method = attr(x, "method"), unit = attr(x, "unit"),
             seconds = attr(x, "seconds"))
}

#' @rdname tidiers
#' @export
tidy.weft_bins <- function(x, ...) {
  cuts <- lapply(bin_rules(x, "x"), `[[`, "cuts")
  data.frame(feature = rep(names(cuts), lengths(cuts)), cut = unlist(cuts, use.names = FALSE))
}

#' @rdname tidiers
#' @export
glance.weft_bins <- function(x, ...) {
  cuts <- lapply(bin_rules(x, "x"), `[[`, "cuts")
  data.frame(n = nrow(x), columns = ncol(x), cut = length(cuts), whole = sum(lengths(cuts) == 0L),
             cuts = sum(lengths(cuts)))
}

#' @rdname tidiers
#' @export
tidy.weft_pca_k <- function(x, ...) check_pca_k(x, "x")$curve

#' @rdname tidiers
#' @export
glance.weft_pca_k <- function(x, ...) {
  check_pca_k(x, "x")
  data.frame(k = x$k, method = x$method)
}

#' @rdname tidiers
#' @export
tidy.weft_bn_compare <- function(x, ...) as.data.frame(x)

#' @rdname tidiers
#' @export
glance.weft_bn_compare <- function(x, ...) as.data.frame(x)

#' @rdname tidiers
#' @export
tidy.weft_bn_fit <- function(x, ...) {
  check_fit(x, "x")
  number <- number_nodes(x)
  if (any(number) && !all(number)) return(tidy_mixed(x, number))
  rows <- lapply(names(x$nodes), function(name) {
    node <- x$nodes[[name]]
    if (x$gaussian) {
      return(data.frame(node = name, term = c("(intercept)", names(node$slopes), "sd"),
                        estimate = c(node$intercept, unname(node$slopes), node$sd)))
    }
    levels <- expand.grid(x$labels[c(name, node$parents)], KEEP.OUT.ATTRS = FALSE, stringsAsFactors = FALSE)
    given <- lapply(node$parents, function(parent) paste(parent, levels[[parent]], sep = " = "))
    data.frame(node = name, level = levels[[1L]],
               parents = if (length(given)) do.call(paste, c(given, sep = ", ")) else "",
               estimate = c(node$probability))
  })
  out <- do.call(rbind, rows)
  rownames(out) <- NULL
  out
}

# For networks of numbers and categories: `term` is a level, "(intercept)", a parent that is a number, or "sd"; in
# `parents` are the categories of the other parents.
tidy_mixed <- function(x, number) {
  out <- do.call(rbind, lapply(names(x$nodes), function(name) {
    node <- x$nodes[[name]]
    by <- node$parents[!number[node$parents]]
    levels <- expand.grid(x$labels[by], KEEP.OUT.ATTRS = FALSE, stringsAsFactors = FALSE)
    given <- lapply(by, function(parent) paste(parent, levels[[parent]], sep = " = "))
    given <- if (length(given)) do.call(paste, c(given, sep = ", ")) else ""
    term <- if (number[[name]]) c("(intercept)", node$parents[number[node$parents]], "sd") else x$labels[[name]]
    estimate <- if (number[[name]]) rbind(c(node$intercept), matrix(node$slopes, ncol = length(given)), c(node$sd))
                else node$probability
    data.frame(node = name, parents = rep(given, each = length(term)), term, estimate = c(estimate))
  }))
  rownames(out) <- NULL
  out
}

#' @rdname tidiers
#' @export
glance.weft_bn_fit <- function(x, ...) {
  check_fit(x, "x")
  free <- vapply(x$nodes, function(node) {
    if (is.null(node$probability)) length(node$slopes) + 2 * length(node$sd)
    else length(node$probability) * (1 - 1 / dim(node$probability)[1L])
  }, 0)
  data.frame(nodes = nrow(x$dag), edges = sum(x$dag), n = x$n, parameters = sum(free),
             kind = if (x$gaussian) "gaussian" else if (any(number_nodes(x))) "conditional gaussian" else "categories")
}

#' @rdname tidiers
#' @export
tidy.weft_quality <- function(x, ...) {
  checked_quality(x, "x")$log %||% data.frame(step = character(), genes = integer(), samples = integer(),
                                              what = character())
}

#' @rdname tidiers
#' @export
glance.weft_quality <- function(x, ...) {
  x <- checked_quality(x, "x")
  data.frame(samples = nrow(x$x), genes = ncol(x$x), samples_left_out = sum(!x$samples$kept),
             genes_left_out = sum(!x$genes$kept),
             imputed = x$imputed, kind = x$kind)
}

#' @rdname tidiers
#' @export
tidy.weft_bn_scores <- function(x, ...) as.data.frame(x)

#' @rdname tidiers
#' @export
glance.weft_bn_scores <- function(x, ...) {
  check_bn_table(x, "x", values = FALSE)
  data.frame(nodes = length(x$nodes), n = x$n, score = x$type, sets = length(x$score), seconds = attr(x, "seconds"))
}

#' @rdname tidiers
#' @export
tidy.weft_outliers <- function(x, ...) broom_names(as.data.frame(x), "score")

#' @rdname tidiers
#' @export
glance.weft_outliers <- function(x, ...) {
  x <- checked_step(x, "outliers", "x", "gene_outliers()")
  data.frame(samples = nrow(x), outliers = sum(x$outlier), components = attr(x, "components"), fdr = attr(x, "fdr"))
}

#' @rdname tidiers
#' @export
tidy.weft_gene_sets <- function(x, ...) broom_names(as.data.frame(x), "fold")

#' @rdname tidiers
#' @export
glance.weft_gene_sets <- function(x, ...) {
  check_result(x, text = c("query", "set"), numbers = "q_value")
  data.frame(lists = length(unique(x$query)), sets = length(unique(x$set)), tests = nrow(x),
             significant = sum(x$q_value <= 0.05))
}

#' @rdname tidiers
#' @export
augment.weft_irm <- function(x, data = NULL, ...) as.data.frame(x)

point_frame <- function(x) {
  points <- as.data.frame(x$data)
  names(points) <- x$names %||% if (ncol(points) == 1L) "x" else sprintf("x%d", seq_along(points))
  points
}

#' @rdname tidiers
#' @export
tidy.weft_kde <- function(x, ...) {
  check_parts(x, "kde()", kde_parts(x)[c(shown_parts, "names")])
  h <- if (is.matrix(x$bandwidth)) sqrt(diag(x$bandwidth)) else rep_len(x$bandwidth, x$d)
  data.frame(dimension = names(point_frame(x)), bandwidth = h)
}

#' @rdname tidiers
#' @export
augment.weft_kde <- function(x, data = NULL, ...) {
  cbind(if (is.null(data)) point_frame(x) else as.data.frame(data), .density = stats::predict(x, data))
}

#' @rdname tidiers
#' @export
tidy.weft_kernel_regression <- function(x, ...) augment(x)

#' @rdname tidiers
#' @export
glance.weft_kernel_regression <- function(x, ...) {
  check_parts(x, "kernel_regression()", regression_parts(x)[c(shown_parts, "r_squared")])
  data.frame(n = x$n, d = x$d, kernel = x$kernel, rule = x$rule, r_squared = x$r_squared, seconds = x$seconds)
}

#' @rdname tidiers
#' @export
augment.weft_kernel_regression <- function(x, data = NULL, ...) {
  if (!is.null(data)) return(cbind(as.data.frame(data), .fitted = stats::predict(x, data)))
  check_parts(x, "kernel_regression()", regression_parts(x)["names"])
  cbind(point_frame(x), .fitted = stats::fitted(x), .resid = stats::residuals(x))
}

#' @rdname tidiers
#' @export
tidy.weft_kernel_pca <- function(x, ...) {
  check_parts(x, "kernel_pca()", pca_parts(x))
  data.frame(component = seq_along(x$values), value = x$values)
}

#' @rdname tidiers
#' @export
glance.weft_kernel_pca <- function(x, ...) {
  check_parts(x, "kernel_pca()", pca_parts(x))
  data.frame(n = nrow(x$scores), components = ncol(x$scores), kernel = x$kernel, iterations = x$iterations,
             seconds = x$seconds)
}

#' @rdname tidiers
#' @export
augment.weft_kernel_pca <- function(x, data = NULL, ...) {
  check_parts(x, "kernel_pca()", pca_parts(x))
  if (is.null(data)) as.data.frame(x$scores) else cbind(as.data.frame(data), as.data.frame(stats::predict(x, data)))
}

#' @rdname tidiers
#' @export
tidy.weft_gp <- function(x, ...) augment(x)

#' @rdname tidiers
#' @export
glance.weft_gp <- function(x, ...) {
  check_parts(x, "gp_regression()", gp_parts(x))
  data.frame(n = x$n, d = x$d, kernel = x$kernel, noise = x$noise, variance = x$variance, iterations = x$iterations,
             seconds = x$seconds)
}

#' @rdname tidiers
#' @export
augment.weft_gp <- function(x, data = NULL, ...) {
  if (!is.null(data)) return(cbind(as.data.frame(data), .fitted = stats::predict(x, data)))
  check_parts(x, "gp_regression()", gp_parts(x))
  fitted <- stats::predict(x, x$data)
  cbind(point_frame(x), .fitted = fitted, .resid = x$y - fitted)
}
