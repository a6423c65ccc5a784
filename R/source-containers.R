# Containers of Bioconductor and Seurat, which have samples in their columns, and tables of samples and genes beside
# these: SummarizedExperiment (and DESeqDataSet, which is one), DGEList, ExpressionSet, Seurat. All but the first are
# read by their slots, without their packages. Nothing in them is evaluated, and what they hold is checked like any
# other input.

#' Containers of expression data
#'
#' Functions of weft that take a SummarizedExperiment also take these, without conversion. Samples (or cells) are in
#' their columns, so that nothing has to be transposed. Where a function takes one value per sample, such as `class`,
#' `batch`, `covariates` or `strata`, the name of a column of the container's table of samples will do; where it takes
#' one value per gene, such as `symbols`, the name of a column of its table of genes.
#'
#' * A SummarizedExperiment, and thus a SingleCellExperiment or DESeqDataSet: the first assay, or the one that `assay`
#'   names. The tables are `colData(x)` and `rowData(x)`.
#' * A DGEList of edgeR: `x$counts`, without `norm.factors` being applied. The tables are `x$samples` and `x$genes`.
#' * An ExpressionSet of Biobase: `exprs(x)`, or the element of `assayData(x)` that `assay` names. The tables are
#'   `pData(x)` and `fData(x)`.
#' * A Seurat object of version 3, 4 or 5: the counts of the active assay, or of the one that `assay` names, and its
#'   normalised data where it has no counts. The tables are `x[[]]` and those of the assay's genes.
#'
#' Layers of counts in which Seurat 5 keeps several samples (`counts.1`, `counts.2`) are put side by side when they have
#' the same genes; [SeuratObject's](https://satijalab.github.io/seurat-object/) `JoinLayers()` does this for others.
#'
#' @examples
#' if (requireNamespace("Biobase", quietly = TRUE)) {
#'   e <- weft_example("expression", n = 40, p = 20, missing = 0, spoilt = FALSE)
#'   samples <- Biobase::AnnotatedDataFrame(data.frame(group = e$class, row.names = rownames(e$x)))
#'   set <- Biobase::ExpressionSet(t(e$x), samples)
#'   mi_rank(set, "group", bins = 3)
#' }
#' @name weft_containers
NULL

experiment_classes <- c("SummarizedExperiment", "DGEList", "ExpressionSet", "Seurat")

# Whether samples are in the columns of a container.
is_experiment <- function(x) inherits(x, experiment_classes)
experiment_class <- function(x) Find(function(name) inherits(x, name), experiment_classes)

# Genes and samples.
experiment_dim <- function(x) if (inherits(x, "SummarizedExperiment")) dim(x) else dim(experiment_values(x, NULL, "x"))

# The table of samples, a data frame or DataFrame, and how users call it. Seurat's is in the order of its cells.
container_samples <- function(x) {
  switch(experiment_class(x), SummarizedExperiment = SummarizedExperiment::colData(x),
         DGEList = plain_table(unclass(x)$samples), ExpressionSet = annotated_table(x, "phenoData"),
         Seurat = plain_table(slot_of(x, "meta.data")))
}

container_samples_name <- function(x) {
  switch(experiment_class(x), SummarizedExperiment = "colData(x)", DGEList = "x$samples", ExpressionSet = "pData(x)",
         Seurat = "x[[]]")
}

# The table of genes.
container_genes <- function(x) {
  switch(experiment_class(x), SummarizedExperiment = SummarizedExperiment::rowData(x),
         DGEList = plain_table(unclass(x)$genes), ExpressionSet = annotated_table(x, "featureData"),
         Seurat = seurat_features(x))
}

# A data frame as it is; an empty one where there is none.
plain_table <- function(table) {
  if (!is.data.frame(table) || typeof(table) != "list") return(data.frame())
  check_frame(table, "x")
  table
}

annotated_table <- function(x, slot) plain_table(slot_of(slot_of(x, slot), "data"))

# A slot without the class's definition, which a package may not be there to give. NULL where there is none.
slot_of <- function(x, name) {
  value <- attr(x, name, exact = TRUE)
  if (is.symbol(value)) NULL else value # how R keeps a slot that is NULL
}

# ---- values: a matrix with genes in rows ----

experiment_values <- function(x, assay, arg) {
  values <- switch(experiment_class(x), DGEList = dgelist_values(x, assay, arg),
                   ExpressionSet = expression_set_values(x, assay, arg), Seurat = seurat_values(x, assay, arg))
  if (length(dim(values)) != 2L || !is.numeric(values) && !inherits(values, "Matrix")) invalid_container(x, arg)
  samples <- container_samples(x)
  if (ncol(samples) && nrow(samples) != ncol(values)) {
    invalid_container(x, arg, sprintf("It has %d samples, but `%s` has %d rows.", ncol(values),
                                      container_samples_name(x), nrow(samples)))
  }
  values
}

# Whether a container says by name that its values are counts.
named_counts <- function(x, assay) {
  if (!inherits(x, "SummarizedExperiment")) return(inherits(x, c("DGEList", "Seurat")))
  names <- SummarizedExperiment::assayNames(x)
  chosen <- assay %||% 1L
  identical(if (is.character(chosen)) chosen else names[chosen], "counts")
}

invalid_container <- function(x, arg, what = "It has no matrix of values.") {
  abort_input(sprintf("`%s` must be a valid %s.", arg, experiment_class(x)), x = what,
              i = "It was modified, or its file is damaged.")
}

# The position of `assay` (a name or a number) among those that there are.
choose_assay <- function(assay, known) {
  at <- if (is.character(assay) && length(assay) == 1L) match(assay, known)
        else if (is.numeric(assay) && length(assay) == 1L) match(assay, seq_along(known))
        else NA_integer_
  if (!is.na(at)) return(at)
  abort_input("`assay` must be the name of one assay of `x`.", x = paste0("It is ", describe(assay), "."),
              i = sprintf("Available: %s.", label_some(known)))
}

dgelist_values <- function(x, assay, arg) {
  choose_assay(assay %||% "counts", "counts")
  unclass(x)$counts
}

# assayData() is an environment or a list. What is bound in an environment by a function or a promise would be evaluated
# when it is read, and is refused.
expression_set_values <- function(x, assay, arg) {
  elements <- slot_of(x, "assayData")
  if (is.environment(elements)) {
    name <- ls(elements, all.names = TRUE, sorted = TRUE)
  } else {
    if (!is.list(elements) || is.null(names(elements))) invalid_container(x, arg)
    name <- names(elements)
  }
  if (!length(name)) invalid_container(x, arg)
  name <- name[choose_assay(assay %||% "exprs", name)]
  if (is.list(elements)) return(elements[[name]])
  if (bindingIsActive(as.name(name), elements)) invalid_container(x, arg)
  value <- eval(call("substitute", as.name(name), elements)) # the value itself, or the expression of a promise
  if (is.language(value)) invalid_container(x, arg)
  value
}

# ---- Seurat ----

seurat_assay <- function(x, assay, arg = "x") {
  assays <- slot_of(x, "assays")
  if (!is.list(assays) || !length(assays) || is.null(names(assays))) invalid_container(x, arg, "It has no assays.")
  assays[[choose_assay(assay %||% slot_of(x, "active.assay"), names(assays))]]
}

# Cells in the order of the table of cells.
seurat_values <- function(x, assay, arg) {
  from <- seurat_assay(x, assay, arg)
  values <- if (is.null(slot_of(from, "layers"))) assay_values(from) else layer_values(from, x, arg)
  if (length(dim(values)) != 2L) invalid_container(x, arg)
  cells <- rownames(container_samples(x))
  if (is.null(colnames(values)) || identical(colnames(values), cells)) return(values)
  if (!setequal(colnames(values), cells)) {
    abort_input(sprintf("The assay of `%s` must contain all of its cells.", arg),
                x = sprintf("It has %d of %d.", sum(cells %in% colnames(values)), length(cells)),
                i = "Subset the object to these cells first.")
  }
  values[, cells, drop = FALSE]
}

# Versions 3 and 4: a slot for counts and one for normalised data, which may be empty.
assay_values <- function(from) {
  counts <- slot_of(from, "counts")
  if (length(counts)) counts else slot_of(from, "data")
}

# Version 5: matrices without names, and tables of flags that say which genes and cells each has.
layer_values <- function(from, x, arg) {
  layers <- slot_of(from, "layers")
  if (!is.list(layers) || is.null(names(layers))) invalid_container(x, arg)
  chosen <- grep("^counts($|[.])", names(layers), value = TRUE)
  if (!length(chosen)) chosen <- grep("^data($|[.])", names(layers), value = TRUE)
  if (!length(chosen)) invalid_container(x, arg, "It has no layer of counts or data.")
  parts <- lapply(chosen, function(layer) {
    values <- layers[[layer]]
    names <- list(layer_names(from, "features", layer), layer_names(from, "cells", layer))
    if (length(dim(values)) != 2L || !identical(lengths(names), dim(values))) {
      invalid_container(x, arg, sprintf("The dimensions of its layer `%s` do not match its genes and cells.", layer))
    }
    if (!is.matrix(values) && !inherits(values, "Matrix")) {
      abort_input(sprintf("The layers of `%s` must be matrices in memory.", arg),
                  x = paste0("`", layer, "` is ", describe(values), "."),
                  i = "`as(layer, \"dgCMatrix\")` converts it.")
    }
    dimnames(values) <- names
    values
  })
  if (length(parts) == 1L) return(parts[[1L]])
  genes <- rownames(parts[[1L]])
  if (!all(vapply(parts, function(part) setequal(rownames(part), genes), NA))) {
    abort_input(sprintf("The count layers of `%s` must have the same genes.", arg),
                x = sprintf("Genes differ between %s.", label_some(chosen)),
                i = "`SeuratObject::JoinLayers()` joins them.")
  }
  do.call(cbind, lapply(parts, function(part) part[genes, , drop = FALSE]))
}

# A LogMap is a matrix of flags, whose rows are all genes or cells and whose columns are layers.
layer_names <- function(from, side, layer) {
  map <- slot_of(from, side)
  names <- attr(map, "dimnames", exact = TRUE)
  size <- attr(map, "dim", exact = TRUE)
  if (!is.logical(map) || length(size) != 2L || length(names) != 2L || !layer %in% names[[2L]]) return(character())
  names[[1L]][which(matrix(as.vector(map), size[1L])[, match(layer, names[[2L]])])]
}

seurat_features <- function(x) {
  from <- seurat_assay(x, NULL)
  plain_table(slot_of(from, "meta.features") %||% slot_of(from, "meta.data"))
}

# ---- the methods ----

experiment_source <- function(x, assay, arg) {
  values <- experiment_values(x, assay, arg)
  source <- as_source(turn(values), NULL, arg)
  new_source(source$kind, source$data, experiment = TRUE)
}

#' @exportS3Method
container_source.DGEList <- function(x, assay, arg) experiment_source(x, assay, arg)

#' @exportS3Method
container_source.ExpressionSet <- function(x, assay, arg) experiment_source(x, assay, arg)

#' @exportS3Method
container_source.Seurat <- function(x, assay, arg) experiment_source(x, assay, arg)

#' @exportS3Method
container_source.SummarizedExperiment <- function(x, assay, arg) { # nolint: object_length_linter.
  need_package("SummarizedExperiment", "A SummarizedExperiment")
  check_names(dimnames(x), arg) # with which it could not be shown either
  found <- SummarizedExperiment::assayNames(x)
  assay <- assay %||% 1L
  known <- if (is.character(assay)) assay %in% found else assay %in% seq_along(SummarizedExperiment::assays(x))
  if (length(assay) != 1L || !isTRUE(known)) {
    there <- if (length(found)) paste("are", label_some(found)) else "are not named assays"
    abort_input("`assay` must be the name of one assay of `x`.", x = paste0("It is ", describe(assay), "."),
                i = paste0("There ", there, "."))
  }
  source <- as_source(turn(SummarizedExperiment::assay(x, assay)), NULL, arg, stored = TRUE)
  new_source(if (source$kind == "frame") "matrix" else source$kind, source$data, experiment = TRUE)
}
