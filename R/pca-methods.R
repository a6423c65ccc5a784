#' Print, summarise and use principal components
#'
#' `predict()` gives the scores of supplementary rows. With `type = "columns"` it places supplementary columns, measured
#' on the same rows, by their loadings (regressions on the scores of unit length) and their correlations with the
#' components. `fitted()` is the approximation by the components, in the units of the data; `residuals()` is the
#' difference between the data and this approximation.
#'
#' `tidy()` returns what broom returns for [stats::prcomp()]: `matrix = "u"` the scores, `"v"` the loadings, `"d"` the
#' standard deviations with their proportions of the total variance. `augment()` adds scores to the data.
#'
#' @param object,x an object returned by [pca()]; for `residuals()`, `x` is the data from which it was computed.
#' @param newdata the rows (or columns) to place: a matrix, data frame, sparse Matrix, store or [plink_file()]. The rows
#'   of a store are read in blocks. In a [plink_file()], counts must be of the alleles that were counted in the data,
#'   and missing genotypes are replaced by the mean of the data.
#' @param type `"rows"` or `"columns"`.
#' @param k the number of components to use.
#' @param assay for `residuals()` of a SummarizedExperiment: the assay's name or number.
#' @param matrix `"u"`, `"v"` or `"d"` (or `"scores"`, `"loadings"`, `"eigenvalues"`).
#' @param data the data to add scores to.
#' @param digits the number of significant digits.
#' @param ... not used.
#' @return `predict()`: a matrix of scores, or for `type = "columns"` a list of two matrices, `loadings` and
#'   `correlation`; `fitted()`, `residuals()`: a matrix; `summary()`: an object of class `summary.prcomp` with
#'   `importance`; `glance()`: one row about the run.
#' @export
#' @examples
#' fit <- pca(USArrests[-(1:5), ], k = 2, scale = TRUE)
#' predict(fit, USArrests[1:5, ])
#' predict(fit, cbind(random = rnorm(45)), type = "columns")$correlation
#' summary(fit)
print.weft_pca <- function(x, digits = 4L, ...) {
  check_pca(x, "x")
  digits <- check_number(digits, "digits", min = 1, max = 22, whole = TRUE)
  k <- length(x$sdev)
  cat(sprintf("%s of %s and %s (method \"%s\")\n", several(k, "principal component"), several(x$n, "row"),
              several(nrow(x$rotation), "column"), x$method))
  shown <- seq_len(min(k, 8L))
  table <- rbind(`standard deviation` = x$sdev, `share of variance` = x$share, `cumulative share` = cumsum(x$share))
  colnames(table) <- colnames(x$rotation)
  print(table[, shown, drop = FALSE], digits = digits)
  if (k > 8L) cat(sprintf("... and %d more\n", k - 8L))
  if (!all(x$converged)) cat("Did not converge:", label_some(paste0("PC", which(!x$converged))), "\n")
  cat_wrapped(sprintf("%s back end (%s), %s", x$backend, x$reason, seconds_text(x$seconds)))
  invisible(x)
}

#' @rdname print.weft_pca
#' @export
summary.weft_pca <- function(object, ...) {
  check_pca(object, "object")
  importance <- rbind(`Standard deviation` = object$sdev, `Proportion of Variance` = object$share,
                      `Cumulative Proportion` = cumsum(object$share))
  colnames(importance) <- colnames(object$rotation)
  object$importance <- importance
  structure(unclass(object), class = "summary.prcomp")
}

#' @rdname print.weft_pca
#' @export
predict.weft_pca <- function(object, newdata, type = c("rows", "columns"), ...) {
  type <- check_choice(type, c("rows", "columns"), "type")
  check_pca(object, "object")
  if (missing(newdata)) return(object$x)
  source <- as_source(newdata, NULL, "newdata", stored = type == "rows")
  x <- if (source$kind == "frame") frame_matrix(source$data, "newdata") else source$data
  if (is.null(dim(x)) && is.numeric(x)) x <- if (type == "rows") t(x) else cbind(x)
  if (!source$kind %in% c("sparse", "delayed", "store", "genotypes") &&
      !(is.matrix(x) && (is.numeric(x) || is.logical(x)))) {
    abort_input("`newdata` must be a numeric matrix, data frame or Matrix, a store or a `plink_file()`.",
                x = paste0("It is ", describe(newdata), "."))
  }
  if (type == "columns") return(place_columns(object, x))
  p <- nrow(object$rotation)
  columns <- columns_of_fit(rownames(object$rotation), x)
  count <- if (is.null(columns)) ncol(x) else length(columns)
  if (count != p) abort_input(sprintf("`newdata` must have %d columns.", p), x = sprintf("It has %d.", count))
  loads <- object$rotation / scale_of(object, p)
  if (source$kind == "genotypes") return(genotype_scores(object, x, columns))
  scores <- if (source$kind == "store") store_product(x, columns, loads)
            else as.matrix((if (is.null(columns)) x else x[, columns, drop = FALSE]) %*% loads)
  scores <- scores - rep(colSums(loads * center_of(object, p)), each = nrow(scores))
  dimnames(scores) <- list(rownames(x), colnames(object$rotation))
  scores
}

# Which columns of x are those of the data, called `names`; NULL: all of them in their order.
columns_of_fit <- function(names, x) {
  if (is.null(names) || is.null(colnames(x)) || identical(names, colnames(x))) return(NULL)
  lost <- setdiff(names, colnames(x))
  if (length(lost)) abort_input("`newdata` must have the columns of the original data.",
                                x = sprintf("Missing: %s.", label_some(lost)))
  twice <- unique(c(names[duplicated(names)], intersect(names, colnames(x)[duplicated(colnames(x))])))
  if (length(twice)) {
    abort_input("Columns of `newdata` must have unique names, because they are matched by name.",
                x = sprintf("Duplicated: %s.", label_some(twice)),
                i = "If the columns are in the order of the original data, remove the names with `unname()`.")
  }
  match(names, colnames(x))
}

# x[, columns] %*% loads of a store, some rows after others.
store_product <- function(x, columns, loads, block_size = 2^28) {
  file <- open_store(x)
  runs <- store_runs(file, file$about$block_values * unclass(x)$recipe$share, block_size / 4 / 12)
  out <- matrix(0, nrow(x), ncol(loads))
  for (i in seq_along(runs$starts)) {
    rows <- as.double(seq(runs$starts[i] + 1, runs$ends[i]))
    out[rows, ] <- as.matrix(store_sparse(x, rows, columns) %*% loads)
  }
  out
}

# Scores of the people of a plink_file(), read in its file. The mean of the data stands for missing genotypes.
genotype_scores <- function(fit, x, columns) {
  p <- nrow(fit$rotation)
  variants <- genotype_columns(x)
  if (!is.null(columns)) variants <- variants[columns]
  n <- as.double(nrow(x))
  source <- native_source(list(kind = "genotypes", n = n, p = as.double(p), data = unclass(variants)))
  control <- run_control("cpu", NULL, FALSE)
  if (isFALSE(fit$center)) {
    missing <- sum(.Call(C_weft_pca_moments, source, NULL, control)$missing)
    if (missing > 0) abort_input("`newdata` must be complete for components of data that were not centred.",
                                 x = sprintf("%.0f of its genotypes are missing.", missing))
  }
  form <- list(center = center_of(fit, p), factor = 1 / scale_of(fit, p), row = NULL, missing = NULL, single = FALSE,
               own = FALSE)
  scores <- .Call(C_weft_pca_times, source, form, fit$rotation, FALSE, control)
  dimnames(scores) <- list(rownames(x), colnames(fit$rotation))
  scores
}

center_of <- function(fit, p) if (isFALSE(fit$center)) numeric(p) else fit$center
scale_of <- function(fit, p) if (isFALSE(fit$scale)) rep(1, p) else fit$scale

# A column is treated as those of the data were: centred if they were, weighted alike.
place_columns <- function(fit, x) {
  if (nrow(x) != fit$n) abort_input(sprintf("`newdata` must have %.0f rows.", fit$n),
                                    x = sprintf("It has %d.", nrow(x)))
  w <- fit$weights %||% rep(1, fit$n)
  x <- as.matrix(x)
  if (!isFALSE(fit$center)) x <- sweep(x, 2L, colSums(x * w) / sum(w))
  unit <- fit$x / rep(ifelse(fit$d > 0, fit$d, 1), each = nrow(fit$x))
  loadings <- crossprod(x * w, unit)
  size <- sqrt(colSums(x^2 * w))
  list(loadings = loadings / sqrt(max(1, sum(w) - 1)), correlation = loadings / ifelse(size > 0, size, 1))
}

#' @rdname print.weft_pca
#' @export
fitted.weft_pca <- function(object, k = length(object$sdev), ...) {
  check_pca(object, "object")
  k <- check_number(k, "k", min = 1, max = length(object$sdev), whole = TRUE)
  p <- nrow(object$rotation)
  use <- seq_len(k)
  fit <- tcrossprod(object$x[, use, drop = FALSE], object$rotation[, use, drop = FALSE])
  scale <- scale_of(object, p)
  fit <- fit * rep(ifelse(is.finite(scale), scale, 0), each = nrow(fit)) + rep(center_of(object, p), each = nrow(fit))
  dimnames(fit) <- list(rownames(object$x), rownames(object$rotation))
  fit
}

#' @rdname print.weft_pca
#' @export
residuals.weft_pca <- function(object, x, k = length(object$sdev), assay = NULL, ...) {
  check_pca(object, "object")
  need_args("x") # the call that made the object is not evaluated: it may come from a file
  source <- memory_errors(pca_source(x, assay))
  if (source$n != object$n || source$p != nrow(object$rotation)) {
    abort_input("`x` must contain the data of `object`.",
                x = sprintf("It has %.0f rows and %.0f columns instead of %.0f and %d.", source$n, source$p,
                                                                object$n, nrow(object$rotation)))
  }
  data <- switch(source$kind, dense = source$data, sparse = as.matrix(do.call(rbind, source$data)),
                 as.matrix(as_source(x, assay, "x")$data))
  data - stats::fitted(object, k = k)
}

#' @rdname print.weft_pca
#' @export
tidy.weft_pca <- function(x, matrix = "u", ...) {
  if (is_word(matrix)) matrix <- switch(matrix, u = , x = , samples = , scores = "u",
                                        v = , rotation = , loadings = , variables = "v",
                   d = , pcs = , eigenvalues = "d", matrix)
  matrix <- check_choice(matrix, c("u", "v", "d"), "matrix")
  check_pca(x, "x")
  if (matrix == "d") {
    return(as_frame(list(PC = seq_along(x$sdev), std.dev = x$sdev, percent = x$share, cumulative = cumsum(x$share))))
  }
  values <- if (matrix == "u") x$x else x$rotation
  what <- rownames(values) %||% seq_len(nrow(values))
  out <- as_frame(list(rep(what, times = ncol(values)), PC = rep(seq_len(ncol(values)), each = nrow(values)),
                       value = c(values)))
  names(out)[1L] <- if (matrix == "u") "row" else "column"
  out
}

#' @rdname print.weft_pca
#' @export
glance.weft_pca <- function(x, ...) {
  check_pca(x, "x")
  as_frame(list(components = length(x$sdev), share = sum(x$share), rank = x$rank, method = x$method,
                iterations = max(x$iterations), converged = all(x$converged), residual = max(x$residual),
                backend = x$backend, seconds = x$seconds))
}

#' @rdname print.weft_pca
#' @export
augment.weft_pca <- function(x, data = NULL, newdata = NULL, ...) {
  check_pca(x, "x")
  scores <- if (is.null(newdata)) x$x else stats::predict(x, newdata)
  colnames(scores) <- paste0(".fitted", colnames(scores))
  base <- newdata %||% data
  names <- rownames(scores) %||% as.character(seq_len(nrow(scores)))
  out <- data.frame(.rownames = names, scores, check.names = FALSE, row.names = NULL)
  if (is.null(base)) return(out)
  base <- as.data.frame(base)
  if (nrow(base) != nrow(out)) {
    abort_input("`data` must have the rows of the model.",
                x = sprintf("It has %d rows instead of %d.", nrow(base), nrow(out)))
  }
  cbind(out[1L], base, out[-1L], row.names = NULL)
}

#' @importFrom generics augment
#' @export
generics::augment

#' Principal components of a SingleCellExperiment
#'
#' Runs [pca()] on an assay, whose columns are cells, and stores the scores as a reduced dimension; the loadings and the
#' percentages of variance become its attributes, where other packages expect them.
#'
#' @param x a SingleCellExperiment.
#' @param k the number of components.
#' @param ... passed on to [pca()], for example `assay =`.
#' @param name the name of the reduced dimension.
#' @return `x` with `reducedDim(x, name)`.
#' @export
#' @examplesIf requireNamespace("SingleCellExperiment", quietly = TRUE)
#' counts <- matrix(rpois(200, 5), 20)
#' sce <- SingleCellExperiment::SingleCellExperiment(list(logcounts = log1p(counts)))
#' sce <- pca_reduced_dim(sce, k = 2)
#' SingleCellExperiment::reducedDim(sce, "PCA")
pca_reduced_dim <- function(x, k = 50, ..., name = "PCA") {
  need_args("x")
  if (!inherits(x, "SingleCellExperiment")) {
    abort_input("`x` must be a SingleCellExperiment.", x = paste0("It is ", describe(x), "."),
                i = "For a SummarizedExperiment, use `pca()`, which returns the scores in `$x`.")
  }
  name <- bare_scalar(name)
  if (!is_word(name) || !nzchar(name)) {
    abort_input("`name` must be one non-empty name.", x = paste0("It is ", describe(name), "."))
  }
  need_package("SingleCellExperiment", "A SingleCellExperiment")
  fit <- pca(x, k = k, ...)
  scores <- fit$x
  attr(scores, "rotation") <- fit$rotation
  attr(scores, "varExplained") <- fit$sdev^2
  attr(scores, "percentVar") <- 100 * fit$share
  tryCatch(SingleCellExperiment::`reducedDim<-`(x, name, value = scores), error = function(e) {
    abort_input("`x` must be a SingleCellExperiment that accepts the scores.", x = conditionMessage(e))
  })
}
