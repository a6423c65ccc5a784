#' Mutual information between all pairs of columns
#'
#' `mi_matrix()` measures how much each pair of columns depends on each other, for numeric or categorical data. The
#' shortest call is `mi_matrix(x, estimator = "spearman")` for numeric data, or `mi_matrix(x)` for categorical data; it
#' returns a symmetric matrix with one row and one column per feature. With `y`, it compares the features of `x` with
#' the features of `y`.
#'
#' @section Categories: `"empirical"` is the plug-in estimate \eqn{H(X)+H(Y)-H(XY)} from counts. `"miller-madow"` adds
#'   (occupied cells - 1) / 2n nats to each entropy; `"shrink"` shrinks the frequencies towards equal ones over the
#'   occupied cells (James and Stein); `"schurmann-grassberger"` adds 1 / cells to every count. The diagonal holds the
#'   entropy H(A) of each feature, and constants give 0. Numeric columns need `bins`, or [discretize()].
#'
#' @section Correlations: `"pearson"`, `"spearman"`, `"kendall"` (tau-b) and `"copula"` give
#'   \eqn{-\frac{1}{2}\ln(1-\rho^2)}; for `"copula"`, \eqn{\rho} is the correlation of the normal scores
#'   \eqn{\Phi^{-1}(\mathrm{rank}/(n+1))}. Tied values share their average rank. This is the mutual information of
#'   Gaussian columns (for `"copula"`, of columns that increasing transformations make Gaussian), and it misses
#'   dependence that is not monotone. It is infinite for a perfect correlation. Rounding cannot distinguish
#'   \eqn{\rho^2 > 1 - 2^{-46}} from 1, so values are capped at 23 bits (15.94 nats). The diagonal is 0, because the
#'   information of a column about itself is not finite here. Constants give 0.
#'
#' @section Nearest neighbours: `"ksg"` is the second estimator of Kraskov, Stoegbauer and Grassberger (2004) with the
#'   maximum norm, after each column has been divided by its standard deviation. For each point, take the largest
#'   distances along x and along y to any of its `k` nearest neighbours, and let \eqn{n_x} and \eqn{n_y} be the numbers
#'   of other points within these distances; then
#'   \eqn{I = \psi(k) - 1/k + \psi(n) - \mathrm{mean}(\psi(n_x)+\psi(n_y))}. It finds any kind of dependence. Near
#'   independence, estimates scatter around 0, and negative estimates are kept. No noise is added: all points at the
#'   distance of the k-th neighbour count as neighbours, and k is then their number for that point. Without ties this is
#'   the published formula; with ties it approaches the estimate for categorical data. The result does not change when a
#'   column is multiplied or shifted, because two distances along a column count as equal if they differ by less than
#'   \eqn{2^{-47}} (7e-15) of its greatest absolute value, which is more than rounding. The diagonal, constants, and
#'   pairs with no more than `k` common rows give 0.
#'
#' @section Other packages: infotheo (1.2.0.1) and praznik give the same numbers for `"empirical"`, infotheo for
#'   `"miller-madow"`, and parmigene (1.1.1) for `"ksg"` without its noise. infotheo's `"sg"` divides 1 by the number of
#'   cells in integer arithmetic and so adds 0; its `"shrink"` is the posterior mean instead of the entropy of the
#'   shrunk frequencies, and is NaN for constants.
#'
#' @section Missing values: With `na = "fail"` (the default), the function stops with an error if there are missing
#'   values, and names their columns. `"drop"` removes, for each pair, the rows in which either feature is missing;
#'   ranks, standard deviations and entropies are computed from the remaining rows. `"level"`, for categorical data
#'   only, treats missing values as an additional level.
#'
#' @inheritParams mi_rank
#' @param x features in columns: for the estimators of categories, the same as in [mi_rank()]; for the others, a numeric
#'   matrix or data frame, a sparse Matrix, a DelayedMatrix or a SummarizedExperiment.
#' @param y data of the same kind with as many rows, or `NULL` to compare `x` with itself.
#' @param estimator the name of an estimator; see the sections Categories, Correlations and Nearest neighbours.
#' @param bins for the estimators of categories: the number of bins of equal frequency into which numeric columns are
#'   first cut.
#' @param k for `"ksg"`: the number of neighbours.
#' @param ... not used; for an unknown argument, the error suggests the intended one.
#' @return A matrix of class `weft_mi_matrix` with feature names: symmetric without `y`, otherwise with one row per
#'   feature of `x` and one column per feature of `y`. Attributes record the call, estimator, unit, back end and time;
#'   `as.matrix()` drops them.
#' @seealso [mi_network()]
#' @export
#' @examples
#' m <- mi_matrix(mtcars[c("mpg", "wt", "hp", "qsec")], estimator = "spearman")
#' m
#' mi_matrix(mtcars, bins = 3)["mpg", "wt"]
#' mi_matrix(mtcars["mpg"], mtcars[c("wt", "hp")], estimator = "ksg", k = 5)
mi_matrix <- function(x, y = NULL,
                      estimator = c("empirical", "miller-madow", "shrink", "schurmann-grassberger", "copula",
                                    "pearson", "spearman", "kendall", "ksg"), bins = NULL, k = 3,
                      na = c("fail", "drop", "level"), unit = c("bits", "nats"), assay = NULL, run = NULL, ...) {
  run <- as_run(run, dry_run = TRUE)
  started <- proc.time()[[3L]]
  check_dots(..., .known = mi_names_elsewhere)
  need_args("x")
  if (is_estimator(y)) {
    abort_input("`y` must contain data like `x`, or be omitted.", x = paste0("It is ", describe(y), "."),
                i = sprintf("To choose an estimator, use `estimator = %s`.", describe(y)))
  }
  estimator <- check_choice(estimator, c(count_estimators, numeric_estimators), "estimator")
  na <- check_choice(na, c("fail", "drop", "level"), "na")
  unit <- check_choice(unit, c("bits", "nats"), "unit")
  between <- if (estimator %in% count_estimators) count_matrix else numeric_matrix
  out <- name_estimators(memory_errors(between(x, y, estimator, list(bins = bins, k = k, na = na, assay = assay), run)))
  if (run$dry_run) return(if (is.null(y)) out else set_attributes(out, list(features = NULL)))
  about <- run_record(match.call(), attr(out, "chosen"), started, estimator = estimator, unit = unit, na = na,
                      test = attr(out, "test"))
  if (unit == "nats") out <- memory_errors(out * log(2))
  set_attributes(out, c(list(chosen = NULL, test = NULL, class = c("weft_mi_matrix", "matrix", "array"),
                             format = result_format), about))
}

is_estimator <- function(x) is.character(x) && length(x) == 1L && x %in% c(count_estimators, numeric_estimators)

# Numbers where categories are needed: native code, which ranking shares, names `bins =`; here there are estimators,
# too.
name_estimators <- function(code) {
  tryCatch(code, weft_error_input = function(e) {
    if (grepl("discretize()", e$message, fixed = TRUE)) {
      e$message <- paste0(e$message, "\n", bullet("info", paste(
        "Or use an estimator for numeric data: `estimator = \"copula\"`, \"pearson\", \"spearman\", \"kendall\"",
        "or \"ksg\".")))
    }
    stop(e)
  })
}

# ---- categories ----

# how: the arguments bins, k, na and assay of mi_matrix().
count_matrix <- function(x, y, estimator, how, run) {
  bins <- how$bins
  na <- how$na
  inputs <- lapply(c("x", "y"), function(arg) {
    part <- if (arg == "x") x else y
    if (is.null(part) && arg == "y") return(NULL)
    if (!is.null(bins)) part <- bin_input(part, bins, how$assay, run$threads, arg)
    input <- categorical_input(part, if (is.null(bins)) how$assay, arg = arg)
    whole_input(input)
  })
  check_rows(inputs[[1L]], inputs[[2L]])
  facts <- lapply(Filter(Negate(is.null), inputs), column_facts, na, run$threads)
  if (na == "fail") {
    fail_missing(inputs[[1L]]$names, facts[[1L]]$missing, "x")
    if (!is.null(y)) fail_missing(inputs[[2L]]$names, facts[[2L]]$missing, "y")
  }
  p <- vapply(inputs, function(input) if (is.null(input)) 0 else as.double(input$p), 0)
  pairs <- if (is.null(y)) p[1L]^2 / 2 else p[1L] * p[2L]
  levels <- vapply(facts, function(fact) if (length(fact$levels)) mean(fact$levels) else 1, 0)
  planes <- pmin(pmax(levels - 1, 1), 24)
  chosen <- choose_backend(run$backend, mi_plan("counts", pairs = pairs, n = inputs[[1L]]$n, p = p[1L], p_y = p[2L],
                                                planes = planes[1L], planes_y = planes[length(planes)],
                                                threads = run$threads))
  most <- vapply(facts, function(fact) max(fact$levels, 0), 0)
  chosen <- note_large(chosen, prod(rep_len(most[most > 0], 2)))
  report_backend(chosen, run)
  if (run$dry_run) return(set_attributes(dry_plan("mi_matrix", chosen), list(features = p[1L])))
  control <- run_control(chosen$name, run$threads, run$progress, inputs[[1L]]$names, "Counting pairs")
  m <- mi_counts_matrix(inputs[[1L]], inputs[[2L]], estimator, na, control)
  complete <- all(unlist(lapply(facts, `[[`, "missing")) == 0) || na == "level"
  test <- list(estimator = estimator, levels = facts[[1L]]$levels, n = if (complete) inputs[[1L]]$n else NA)
  set_attributes(m, list(chosen = chosen, test = if (is.null(y)) test))
}

# A device counts tables in its shared memory (coded.cuh); larger ones are counted on the CPU, and the result says
# so.
note_large <- function(chosen, cells) {
  if (chosen$name == "cuda" && is.finite(cells) && cells > largest_device_table) {
    chosen$reason <- paste0(chosen$reason, "; the largest tables on the CPU")
  }
  chosen
}

largest_device_table <- 5e4

# Levels, missing values and entropy of every column: its information about a class of one level.
column_facts <- function(input, na, threads) {
  if (is.null(input)) return(NULL)
  .Call(C_weft_mi_rank, input$data, integer(input$n), 1L, na == "level",
        run_control("cpu", threads, FALSE, input$names))
}

fail_missing <- function(names, missing, arg, level = TRUE) {
  if (is.null(missing) || !any(missing > 0)) return(invisible())
  abort_input(sprintf("`%s` must not have missing values.", arg),
              x = sprintf("Missing in %d of %d columns: %s.", sum(missing > 0), length(names),
                          label_some(names[missing > 0])),
              i = paste0("`na = \"drop\"` removes these rows for each score",
                         if (level) "; `na = \"level\"` treats missing values as a level", "."))
}

check_rows <- function(a, b) {
  check_some_rows(NULL, "drop", a$n)
  if (is.null(b) || a$n == b$n) return(invisible())
  abort_input("`x` and `y` must have the same rows.", x = sprintf("They have %d and %d rows.", a$n, b$n))
}

# ---- numbers ----

numeric_estimators <- c("copula", "pearson", "spearman", "kendall", "ksg") # those of src/mi/matrix/kinds.h

numeric_matrix <- function(x, y, estimator, how, run) {
  if (!is.null(how$bins)) {
    abort_input("`bins` must not be given for an estimator for numeric data.",
                x = sprintf("`estimator` is \"%s\".", estimator))
  }
  if (how$na == "level") {
    abort_input("`na` must be \"fail\" or \"drop\" for an estimator for numeric data.", x = "It is \"level\".")
  }
  k <- as.integer(check_number(how$k, "k", min = 1, max = 2^31 - 1, whole = TRUE))
  a <- numeric_input(x, how$assay, "x")
  b <- if (!is.null(y)) numeric_input(y, how$assay, "y")
  check_rows(a, b)
  n <- a$n
  missing <- list(count_missing(a, estimator, "x"), count_missing(b, estimator, "y"))
  if (how$na == "fail") {
    fail_missing(a$names, missing[[1L]], "x", level = FALSE)
    fail_missing(b$names, missing[[2L]], "y", level = FALSE)
  }
  if (estimator == "ksg" && n > 0 && k >= n) {
    abort_input("`k` must be less than the number of rows.", x = sprintf("`k` is %d, and there are %d rows.", k, n))
  }
  pairs <- a$p * (if (is.null(b)) a$p / 2 else b$p)
  chosen <- choose_backend(run$backend,
                           mi_plan("numbers", kind = estimator, pairs = pairs, n = n, threads = run$threads))
  report_backend(chosen, run)
  if (run$dry_run) return(set_attributes(dry_plan("mi_matrix", chosen), list(features = a$p)))
  control <- run_control(chosen$name, run$threads, run$progress, c(a$names, b$names), "Comparing columns")
  data <- if (is.null(b)) a$data else cbind(a$data, b$data)
  m <- .Call(C_weft_mi_numeric, data, list(estimator = estimator, split = if (is.null(b)) 0L else a$p, k = k), control)
  n <- if (sum(unlist(missing)) == 0) n else if (is.null(b)) crossprod(!is.na(a$data))
  test <- if (is.null(b)) c(list(estimator = estimator, n = n),
                            if (estimator != "ksg") column_tails(data, estimator, control))
  set_attributes(m, list(dimnames = list(a$names, (b %||% a)$names), chosen = chosen, test = test))
}

# list(data: double matrix, names, n, p).
numeric_input <- function(x, assay = NULL, arg = "x") {
  source <- as_source(x, assay, arg)
  x <- source$data
  if (source$kind == "frame") {
    plain <- vapply(x, function(column) (is.numeric(column) || is.logical(column)) && !is.factor(column) &&
                                          is.null(dim(column)), NA)
    if (!all(plain)) {
      abort_input(sprintf("Every column of `%s` must be numeric for this estimator.", arg),
                  x = sprintf("Not numeric: %s.", label_some(names(x)[!plain])),
                  i = "`estimator = \"empirical\"` accepts categories.")
    }
  }
  if (!source$kind %in% c("frame", "matrix", "sparse", "delayed", "genotypes")) {
    abort_input(sprintf(paste("`%s` must be a numeric matrix, data frame, sparse Matrix, SummarizedExperiment or",
                              "DelayedMatrix."), arg),
                x = paste0("It is ", describe(x), "."),
                i = if (is.atomic(x) && !is.null(x)) sprintf("For one feature, use `data.frame(feature = %s)`.", arg))
  }
  names <- feature_names(x)
  data <- if (is.data.frame(x) && !ncol(x)) matrix(0, nrow(x), 0L) else as.matrix(x)
  if (!is.numeric(data) && !is.logical(data)) {
    abort_input(sprintf("`%s` must contain numbers for this estimator.", arg), x = paste0("It is ", describe(x), "."))
  }
  if (!is.double(data)) storage.mode(data) <- "double"
  list(data = data, names = names, n = nrow(data), p = ncol(data))
}

# Missing values by column; infinities are an error where sizes matter, not only order.
count_missing <- function(input, estimator, arg) {
  if (is.null(input)) return(NULL)
  total <- sum(input$data)
  if (is.finite(total)) return(numeric(input$p))
  if (estimator %in% c("pearson", "ksg") && any(bad <- colSums(is.infinite(input$data)) > 0)) {
    abort_input(sprintf("`%s` must be finite for this estimator.", arg),
                x = sprintf("Infinite values occur in %s.", label_some(input$names[bad])),
                i = "The estimator \"spearman\", which uses ranks, accepts infinite values.")
  }
  colSums(is.na(input$data))
}

# ---- results ----

#' Print, summarise and plot matrices of mutual information
#'
#' `plot()` draws the matrix as a heat map, with rows and columns in the order of a hierarchical clustering.
#'
#' @param x,object an object returned by [mi_matrix()].
#' @param n the number of rows and columns to show.
#' @param ... ignored.
#' @return `x`, invisibly; `summary()`: a list with the number of features and the quartiles of the mutual information
#'   of different features; `as.matrix()`: a plain matrix.
#' @export
#' @examples
#' m <- mi_matrix(mtcars, estimator = "kendall")
#' summary(m)
#' plot(m)
print.weft_mi_matrix <- function(x, n = 6L, ...) {
  n <- check_shown(n)
  m <- as.matrix(x)
  if (is.null(attr(x, "unit"))) return(invisible(print(m)))
  check_result(x, record = c("estimator", run_attributes))
  cat(sprintf("Mutual information of %s features (%s, %s)\n", paste(unique(dim(m)), collapse = " x "),
              attr(x, "estimator"), attr(x, "unit")))
  if (length(m)) print(m[seq_len(min(n, nrow(m))), seq_len(min(n, ncol(m))), drop = FALSE], digits = 4L)
  if (any(dim(m) > n)) cat("...\n")
  invisible(x)
}

#' @rdname print.weft_mi_matrix
#' @export
as.matrix.weft_mi_matrix <- function(x, ...) {
  check_information(x)
  attributes(x) <- attributes(x)[c("dim", "dimnames")]
  x
}

# A matrix of doubles with names that fit, and a record that can be read.
check_information <- function(x, arg = "x", record = character()) {
  if (!is.matrix(x) || !is.double(x)) abort_changed(arg,
                                                    sprintf("it is of type %s and length %.0f", typeof(x), length(x)))
  named <- vapply(1:2, function(side) dim(x)[side] == 0L || is.character(dimnames(x)[[side]]) &&
                  !anyNA(dimnames(x)[[side]]), NA)
  if (!all(named)) abort_changed(arg, "its names were changed")
  check_result(x, arg, record)
}

finite_information <- function(x, arg) {
  check_information(x, arg)
  if (!all(is.finite(x))) abort_changed(arg, "it has missing or infinite values")
  as.matrix(x)
}

#' @rdname print.weft_mi_matrix
#' @export
summary.weft_mi_matrix <- function(object, ...) {
  m <- finite_information(object, "object")
  if (identical(rownames(m), colnames(m)) && nrow(m) == ncol(m)) m <- m[upper.tri(m)]
  as_summary(list(features = dim(object), mi = if (length(m)) stats::quantile(m), unit = attr(object, "unit"),
                  run = run_line(object)), "Mutual information")
}

# Rows and columns in the order of a hierarchical clustering; NA where a feature meets itself.
clustered_matrix <- function(x) {
  m <- as.matrix(x)
  square <- nrow(m) == ncol(m) && identical(rownames(m), colnames(m))
  if (square) diag(m) <- NA
  arrange <- function(rows) {
    rows[is.na(rows)] <- 0
    if (nrow(rows) > 2L) stats::hclust(stats::dist(rows), "average")$order else seq_len(nrow(rows))
  }
  by_row <- arrange(m)
  m[by_row, if (square) by_row else arrange(t(m)), drop = FALSE]
}

#' @rdname print.weft_mi_matrix
#' @export
plot.weft_mi_matrix <- function(x, ...) {
  finite_information(x, "x")
  if (!length(x)) abort_input("`x` must have at least one feature to plot.")
  m <- clustered_matrix(x)
  labels <- function(names) if (length(names) <= 60L) names else rep("", length(names))
  text_size <- function(count) max(0.4, min(0.9, 30 / count))
  space <- function(names) if (length(names) <= 60L) 1 + 0.5 * text_size(length(names)) * min(max(nchar(names)), 24)
    else 1
  old <- graphics::par(mar = c(space(colnames(m)), space(rownames(m)), 2.5, 1) + 0.1)
  on.exit(graphics::par(old))
  size <- dim(m)
  graphics::image(seq_len(size[2L]), seq_len(size[1L]), t(m[rev(seq_len(size[1L])), , drop = FALSE]), axes = FALSE,
                  xlab = "", ylab = "", col = grDevices::hcl.colors(64L, "Blues 3", rev = TRUE),
                  main = sprintf("Mutual information, 0 to %.3g %s", max(m, 0, na.rm = TRUE),
                                 attr(x, "unit") %||% "bits"))
  graphics::axis(1, seq_len(size[2L]), labels(colnames(m)), las = 2, tick = FALSE, line = -0.8,
                 cex.axis = text_size(size[2L]))
  graphics::axis(2, seq_len(size[1L]), labels(rev(rownames(m))), las = 1, tick = FALSE, line = -0.8,
                 cex.axis = text_size(size[1L]))
  invisible(x)
}
