# Results back into the containers that data came in.

#' Keep results where the data are
#'
#' Adds the workflow's numbers to a SummarizedExperiment or SingleCellExperiment: those of genes to its `rowData`, those
#' of samples to its `colData`, scores of components to `reducedDims` (SingleCellExperiment only), and the call and the
#' table of steps to `metadata`. Genes and samples that were excluded have `NA`.
#'
#' @param x the SummarizedExperiment or SingleCellExperiment that `fit` was made from, or one with the same rows and
#'   columns.
#' @param fit an object returned by [gene_network()].
#' @param prefix the text with which the names of new columns begin.
#' @param name the name of the reduced dimension.
#' @return `x` with these added.
#' @seealso [gene_network()], [pca_reduced_dim()]
#' @export
#' @examples
#' if (requireNamespace("SummarizedExperiment", quietly = TRUE)) {
#'   e <- weft_example("expression", n = 40, p = 20, spoilt = FALSE)
#'   se <- SummarizedExperiment::SummarizedExperiment(list(logcounts = t(e$x)),
#'                                                    colData = data.frame(group = e$class))
#'   fit <- gene_network(se, "group", seed = 1,
#'                       steps = list(pairs = FALSE, clusters = FALSE, bayes = FALSE))
#'   SummarizedExperiment::rowData(add_results(se, fit))
#' }
add_results <- function(x, fit, prefix = "weft_", name = "weft_pca") {
  need_args("x", "fit")
  if (!inherits(x, "SummarizedExperiment")) {
    abort_input("`x` must be a SummarizedExperiment or SingleCellExperiment.", x = paste0("It is ", describe(x), "."),
                i = paste("`as.data.frame(fit, \"genes\")` and `as.data.frame(fit, \"samples\")` give the same columns",
                          "as data frames."))
  }
  fit <- checked_fit(fit, "fit")
  prefix <- check_text(prefix, "prefix")
  name <- check_text(name, "name")
  need_package("SummarizedExperiment", "`add_results()`")
  check_names(dimnames(x), "x")
  if (!identical(as.integer(dim(x)), as.integer(rev(fit$quality$input)))) {
    abort_input("`x` must have the genes and samples that `fit` was computed from.",
                x = sprintf("It has %d genes and %d samples instead of %d and %d.", nrow(x), ncol(x),
                            fit$quality$input[2L],
                            fit$quality$input[1L]))
  }
  genes <- as.data.frame(fit, what = "genes")
  if (!is.null(rownames(x)) && !identical(make.unique(rownames(x)), genes$gene)) {
    abort_input("`x` must have the genes that `fit` was computed from, in the same order.",
                x = sprintf("The first difference is `%s` in `x` and `%s` in `fit`.", rownames(x)[1L], genes$gene[1L]))
  }
  put <- function(old, new) {
    for (column in setdiff(names(new),
                           c("gene", "sample", "class", "batch"))) old[[paste0(prefix, column)]] <- new[[column]]
    old
  }
  samples <- as.data.frame(fit, what = "samples")
  scores <- fit$components$x
  SummarizedExperiment::rowData(x) <- put(SummarizedExperiment::rowData(x), genes)
  SummarizedExperiment::colData(x) <- put(SummarizedExperiment::colData(x),
                                          samples[setdiff(names(samples), colnames(scores))])
  if (!is.null(scores) && inherits(x, "SingleCellExperiment")) {
    need_package("SingleCellExperiment", "`add_results()`")
    whole <- matrix(NA_real_, ncol(x), ncol(scores), dimnames = list(colnames(x), colnames(scores)))
    whole[match(rownames(scores), samples$sample), ] <- scores
    reduced <- SingleCellExperiment::reducedDims(x)
    reduced[[name]] <- whole
    SingleCellExperiment::reducedDims(x) <- reduced
  }
  about <- list(call = fit$call, steps = fit$steps, log = fit$quality$log, seed = fit$seed, version = fit$version)
  metadata <- S4Vectors::metadata(x)
  metadata[[sub("_$", "", prefix)]] <- about
  S4Vectors::`metadata<-`(x, value = metadata)
}
