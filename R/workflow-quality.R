# The first step of the workflow: from what users have to a complete numeric matrix of samples by genes, with a record
# of everything that was done to it.

#' Filter, normalise and impute expression data
#'
#' `gene_quality()` prepares expression data for the analysis. It removes genes and samples without information,
#' normalises counts, adjusts for batches and covariates, imputes missing values, and records all changes. It is the
#' first step of [gene_network()]. A typical call is `gene_quality(x, class)`. The result can be passed as `x` to the
#' functions for the other steps.
#'
#' @section Steps:
#' 1. Genes without names are named, and duplicated names are made unique.
#' 2. Genes with a proportion of missing values above `max_missing` are removed, and then samples with a proportion
#'    above `max_missing_samples`. Samples without any counts are also removed.
#' 3. Constant genes are removed, as are genes with the same value in more than the proportion `max_same` of the
#'    samples. The default is 95 %; for counts of single cells, a gene is kept if at least ten cells have other values.
#'    Genotypes and other whole numbers with at most five different values are only removed if they are constant.
#' 4. In bulk counts, genes with low counts are removed. A gene is kept if it is expressed in as many samples as the
#'    smallest class contains. If this class has more than ten samples, ten plus 70 % of its other samples are required;
#'    without a class, a fifth of all samples. A gene is expressed in a sample if its counts per million are at least
#'    those of `min_count` counts in a sample with the median library size.
#'
#'    `transform = "auto"` recognises the scale of the data. Raw counts (whole numbers, some above 50 or many
#'    zeros) are transformed to log2 counts per million, after adding half a count. Shallow counts with many zeros, as
#'    from single cells, are transformed to log2(1 + x / size factor); the size factor of a sample is its total divided
#'    by the mean total. Positive values with a long tail are transformed to log2(1 + x). Data that are already on a log
#'    scale are not transformed. A warning reports the transformation. `"counts"`, `"cells"`, `"log2"` and `"none"`
#'    specify it.
#' 5. If there are `batch` or `covariates`, differences between batches and linear effects of covariates are removed
#'    from each gene by least squares. The adjusted values `x` are used for components, networks, clusters and figures.
#'    Tests of genes use the unadjusted values `measured`, with batches and covariates in the model. The class is not in
#'    the model for the adjustment. If it were, errors of the batch means would appear as differences between classes
#'    when batch and class are confounded. Without it, `x` shows smaller differences between classes if they are
#'    confounded with batches. A warning is given if batches and covariates explain at least half of the variation in
#'    the class.
#' 6. Missing values are imputed. `"components"` uses the least-squares fit of up to three components ([pca()] with
#'    `na = "em"`). `"median"` uses the median of the gene, or the most frequent value for genotypes. `"auto"` uses
#'    components for up to two million values.
#' 7. With `min_spread`, this proportion of genes with the smallest median absolute deviation is removed.
#'
#' @section Symbols: The columns keep their names, such as the names of probe sets. If gene symbols are known,
#'   `print()`, figures and [weft_report()] show them. If several columns measure the same gene, the name of the column
#'   is added. Networks, Bayesian networks and pairs use only the most variable column of each gene, so that a gene is
#'   not linked to itself. The ranking contains all columns.
#'
#' @section Confounding: `confounding` lists everything that might be mistaken for a difference between classes:
#'
#'   * batches and covariates that are significantly associated with the class and explain at least a tenth of it,
#'   * classes whose sequencing depth differs by a factor of 1.5 or more,
#'   * cells or metacells, because p-values treat them as independent.
#'
#'   [gene_components()] adds leading components that are correlated with depth or with the proportion of missing
#'   values. If there is any confounding, differences between classes are only suggestive.
#'
#' @param x expression data with samples in rows and genes in columns: a numeric matrix, data frame, sparse Matrix or
#'   DelayedMatrix. Alternatively, a SummarizedExperiment or SingleCellExperiment, which has genes in rows, or a result
#'   of [gene_cells()], whose metacells are the samples.
#' @param class one category per sample, or the name of a column of `colData(x)`. `NULL` if there are no groups.
#' @param batch the batch of each sample, in the same form as `class`.
#' @param covariates other variables that affect expression but are not of interest. A numeric or categorical vector, a
#'   matrix or data frame with one row per sample, or names of columns of `colData(x)`. Named rows are matched to the
#'   samples. `"components"` adjusts for hidden factors. These are significant components of the residuals (of class and
#'   batch, see [gene_components()]) that explain at least `r 100 * least_factor` % of the variance of the median gene.
#'   If most genes depend on a few regulators, this also removes effects of regulation.
#' @param symbols gene symbols, one per column of `x` (NA if unknown). Alternatively, an OrgDb such as `org.Hs.eg.db`,
#'   which is searched for the column names, or the name of a column of `rowData(x)`. By default, a column such as
#'   `symbol` or `gene_name` is used, or column names that occur more than once; see the section Symbols of
#'   [gene_quality()].
#' @param descriptions descriptions of the genes for the report, one per column of `x` (NA if unknown), or the name of a
#'   column of `rowData(x)`. By default, a column such as `description` or `gene_title` is used.
#' @param assay the name or number of an assay of a SummarizedExperiment.
#' @param transform,impute see Steps.
#' @param min_count for bulk counts, the minimum count in a sample with the median library size; 0 keeps all genes. See
#'   Steps.
#' @param control a list of rarely used settings:
#'   * `max_missing`, `max_missing_samples`: the maximum proportion of missing values of a gene or a sample.
#'   * `max_same`: the maximum proportion of samples with the same value; for `NULL`, see Steps.
#'   * `min_spread`: the proportion of genes to remove because of their small spread.
#' @param run see [weft_run()].
#' @return A list of class `weft_quality` with these elements:
#'   * `x`: the complete matrix, which `as.matrix()` returns.
#'   * `class`, `batch`, `covariates`: the design of the remaining samples.
#'   * `kind`: `"expression"`, or `"levels"` for genotypes and other discrete values. `scale`: the specified or
#'     recognised scale of the data.
#'   * `measured`: `x` before the effects of batches and covariates were removed and missing values were imputed, if it
#'   differs from `x`.
#'   * `counts`: the counts of the genes of `x`, if the data are counts.
#'   * `confounding`: a data frame with the columns `kind`, `text` and `p`.
#'   * `log`: a data frame with one row per change and the columns `step`, `genes`, `samples` and `what`.
#'   * `genes`, `samples`: data frames with one row per gene or sample of the input. The columns are `kept`, `reason`
#'     and `missing`. For genes, there are also `median`, `mad` and, if known, `symbol`, `representative` (whether the
#'     column represents its gene) and `description`.
#'   * `imputed`: the number of imputed values.
#'   * `before`: if effects of batches or covariates were removed, the scores of the samples on up to five components
#'     before the removal.
#' @seealso [gene_network()]
#' @export
#' @examples
#' e <- weft_example("expression", n = 60, p = 40)
#' q <- gene_quality(e$x, e$class, e$batch)
#' q
#' q$log
gene_quality <- function(x, class = NULL, batch = NULL, assay = NULL,
                         transform = c("auto", "none", "log2", "counts", "cells"), impute = c("auto", "components",
                                    "median"), covariates = NULL, symbols = NULL, descriptions = NULL, min_count = 10,
                         control = list(), run = NULL, ...) {
  run <- as_run(run)
  control <- check_control(control, gene_quality_control)
  check_dots(..., .control = gene_quality_control)
  need_args("x")
  transform <- check_choice(transform, c("auto", "none", "log2", "counts", "cells"), "transform")
  impute <- check_choice(impute, c("auto", "components", "median"), "impute")
  max_missing <- check_number(control$max_missing, "max_missing", min = 0, max = 1)
  max_missing_samples <- check_number(control$max_missing_samples, "max_missing_samples", min = 0, max = 1)
  max_same <- if (!is.null(control$max_same)) check_number(control$max_same, "max_same", min = 0, max = 1)
  min_spread <- check_number(control$min_spread, "min_spread", min = 0, max = 0.99)
  min_count <- check_number(min_count, "min_count", min = 0)
  made <- if (inherits(x, "weft_cells")) metacell_input(x)
  if (!is.null(made)) {
    x <- made$x
    class <- class %||% made$class
    batch <- batch %||% made$batch
    symbols <- symbols %||% made$symbols
    descriptions <- descriptions %||% made$descriptions
    if (transform == "auto") transform <- "counts"
    min_count <- 0 # the genes were chosen by gene_cells()
  }
  data <- expression_matrix(x, assay, value_count(class), run$threads)
  check_orientation(data, class, x)
  check_samples(nrow(data))
  factors <- wants_factors(covariates, x)
  if (factors) covariates <- NULL
  q <- list(x = data, class = sample_factor(class, x, data, "class"), batch = sample_factor(batch, x, data, "batch"),
            covariates = covariate_frame(covariates, x, data), log = NULL, input = dim(data))
  check_class(q$class)
  if (!is.null(made)) q <- note(q, "cells", made$what, ncol(data), nrow(data))
  symbols <- gene_symbols(symbols, x, data)
  descriptions <- gene_words(descriptions, x, ncol(data), description_columns, "descriptions")
  q <- name_genes(q)
  missing <- missing_shares(q$x, run$threads)
  q$genes <- all_kept("gene", colnames(q$x), missing$genes)
  q$samples <- all_kept("sample", rownames(q$x), missing$samples)
  q <- drop_missing(q, max_missing, max_missing_samples)
  q <- drop_empty_samples(q, transform)
  q <- drop_uninformative(q, max_same %||% usual_same(q$x, transform), run$threads)
  q <- note_duplicates(q)
  q$scale <- scale_of_values(q, transform)
  if (q$scale == "counts") q <- drop_low_counts(q, min_count)
  q <- to_log_scale(q, q$scale, asked = transform != "auto" || named_counts(x, assay))
  q$measured <- q$x
  if (factors) q <- with_hidden_factors(q)
  q <- take_out_nuisance(q)
  q <- fill_gaps(q, impute, run$threads)
  q <- drop_least_spread(q, min_spread, run$threads)
  q <- keep_measured(q)
  at <- match(colnames(q$x), q$genes$gene)
  q$genes$median <- q$genes$mad <- NA_real_
  spread <- column_spreads(q$x, run$threads)
  q$genes$median[at] <- spread$median
  q$genes$mad[at] <- spread$mad
  q <- group_symbols(q, symbols)
  q$genes$description <- descriptions
  rownames(q$log) <- NULL
  optional <- c("before", "measured", "counts")
  parts <- c("x", "class", "batch", "covariates", "kind", "scale", "log", "genes", "samples", "imputed", "input",
             optional[!vapply(q[optional], is.null, NA)])
  q <- new_result(q[parts], class = "weft_quality")
  q$confounding <- confounding(q)
  q
}

gene_quality_control <- function(max_missing = 0.2, max_missing_samples = 0.5, max_same = NULL,
                                 min_spread = 0) as.list(environment())

# The values as they were measured, on the scale of `x`, and the counts, of the genes that are kept. `measured` is left
# out where it equals `x`.
keep_measured <- function(q) {
  kept <- function(v) if (ncol(v) == ncol(q$x)) v else v[, colnames(q$x), drop = FALSE]
  if (!is.null(q$counts)) q$counts <- kept(q$counts)
  same <- is.null(q$before) && q$imputed == 0L && !isTRUE(q$taken_out)
  q$measured <- if (!same) kept(q$measured)
  q
}

# The table of genes or samples, before any is left out.
all_kept <- function(what, names, missing) {
  count <- length(names)
  columns <- list(names, kept = rep(TRUE, count), reason = character(count), missing = as.vector(missing))
  names(columns)[1L] <- what
  as_frame(columns, count)
}

value_count <- function(class) if (is.data.frame(class)) nrow(class) else length(class)

# ---- input ----

# classified: how many values the class has, which tells samples from genes when x cannot be read.
expression_matrix <- function(x, assay, classified = 0L, threads = NULL) {
  source <- as_source(x, assay, "x")
  x <- source_matrix(source) %||% source$data
  if (source$kind == "frame") {
    number <- vapply(x, function(column) is.numeric(column) && !is.factor(column) || is.logical(column), NA)
    if (!all(number)) abort_text_columns(x, number, classified)
    if (inherits(x, "data.table")) x <- as.data.frame(x)
    x <- as.matrix(x)
  }
  if (is.character(x) && is.matrix(x)) abort_character(x)
  if (!is.matrix(x) || !(is.numeric(x) || is.logical(x))) {
    abort_input("`x` must be a numeric matrix or data frame with samples in rows, or a SummarizedExperiment.",
                x = paste0("It is ", describe(x), "."))
  }
  if (!is.double(x)) storage.mode(x) <- "double"
  bad <- which(matrix_facts(x, threads)$infinite > 0)
  if (length(bad)) {
    abort_input("`x` must not have infinite values.", x = sprintf("Found in %d of %d genes: %s.", length(bad), ncol(x),
                label_some((colnames(x) %||% as.character(seq_len(ncol(x))))[bad])),
                i = "They come from the logarithm of 0: take `log2(x + 1)`, or make them NA.")
  }
  if (ncol(x) < 3L) abort_input("`x` must have at least 3 genes.", x = sprintf("It has %d columns.", ncol(x)))
  samples <- rownames(x) %||% sprintf("sample%d", seq_len(nrow(x)))
  samples <- make.unique(valid_utf8(samples))
  if (!identical(rownames(x), samples)) rownames(x) <- samples # which copies it
  x
}

# Of genes and of samples.
missing_shares <- function(x, threads = NULL) {
  missing <- matrix_facts(x, threads)$missing
  list(genes = missing / nrow(x), samples = if (any(missing > 0)) rowMeans(is.na(x)) else numeric(nrow(x)))
}

abort_character <- function(x) {
  number <- suppressWarnings(as.numeric(x))
  odd <- which(is.na(number) & !is.na(x) & !x %in% c("NA", ""))
  if (!length(odd)) {
    abort_input("`x` must contain numbers.", x = "It is a character matrix: numbers stored as text.",
                i = paste("`storage.mode(x) <- \"double\"` turns it into numbers. `as.matrix()` makes text of a data",
                          "frame with one text column."))
  }
  at <- arrayInd(odd[1L], dim(x))
  share <- tabulate(arrayInd(odd, dim(x))[, 2L], ncol(x)) / nrow(x)
  names <- colnames(x) %||% as.character(seq_len(ncol(x)))
  text <- which(share > 0.5)
  text_row <- which(tabulate(arrayInd(odd, dim(x))[, 1L], nrow(x)) > 0.5 * ncol(x))
  abort_input("`x` must contain numbers.",
              x = sprintf(paste("It is a character matrix; row %d, column `%s` holds \"%s\", one of %d cells that",
                                "are not numbers."),
                          at[1L], names[at[2L]], x[odd[1L]], length(odd)),
              i = if (length(text)) sprintf(paste("Text is in %s: take names out (`rownames(x) <- x[, %d]; x <- x[,",
                                                  "-%d]`),", "then `storage.mode(x) <- \"double\"`."),
                                            label_some(names[text]), text[1L], text[1L])
                  else if (length(text_row)) sprintf(paste("Row %d is text: take names out (`colnames(x) <- x[%d, ];",
                                                           "x <- x[-%d, ]`),", "then `storage.mode(x) <- \"double\"`."),
                                                     text_row[1L], text_row[1L], text_row[1L]))
}

abort_text_columns <- function(x, number, classified) {
  text <- which(!number)
  first <- names(x)[text[1L]]
  column <- if (make.names(first) == first) paste0("x$", first) else sprintf("x[[\"%s\"]]", first)
  by_class <- classified == sum(number) && classified != nrow(x)
  odd <- odd_cell(x[[text[1L]]])
  abort_input("Every column of `x` must be a gene, with numbers.",
              x = sprintf("Not numeric: %s (%s).", label_some(names(x)[text]), describe(x[[text[1L]]])),
              i = if (length(text) == 1L &&
                      (by_class || classified == 0L && sum(number) > 2L && table_turned(x, text, number))) sprintf(
                    "%s `rownames(x) <- %s; %s <- NULL; gene_network(t(x)%s)` transposes it.",
                    if (by_class) "`class` has as many values as there are other columns: genes are in the rows." else
                      "Are genes in the rows, and these their names?", column, column, if (by_class) ", class" else "")
                  else if (!is.null(odd)) sprintf(
                    paste("Most of its values are numbers, but row %d has \"%s\": `%s <- as.numeric(%s)` makes such",
                          "cells NA."),
                    odd$row, odd$value, column, column)
                  else if (length(text) > ncol(x) / 2)
                    "Were numbers read as text? `type.convert(x, as.is = TRUE)` turns them back."
                  else sprintf(paste("Sample names belong in the row names, groups in `class`: `%s <- NULL`",
                                     "takes the column out."), column))
}

# The first cell that is not a number, of a text column of which most are; else NULL.
odd_cell <- function(column) {
  if (!is.character(column)) return(NULL)
  odd <- which(is.na(suppressWarnings(as.numeric(column))) & !is.na(column))
  if (length(odd) && length(odd) < length(column) / 2) list(row = odd[1L], value = column[odd[1L]])
}

check_samples <- function(n) {
  if (n >= least_samples) return(invisible())
  abort_input(sprintf("`x` must have at least %d samples.", least_samples),
              x = sprintf("It has %d rows, which are the samples.", n),
              i = paste("With fewer, no difference can be distinguished from chance.",
                        "Are the samples in the columns? Then use `t(x)`."))
}

sample_factor <- function(value, x, data, arg) {
  if (is.null(value)) return(NULL)
  if (is.data.frame(value) && ncol(value) != 1L) {
    groups <- which(vapply(value, function(column) anyDuplicated(column) > 0, NA))
    abort_input(sprintf("`%s` must be a single column.", arg), x = paste0("It is ", describe(value), "."),
                i = if (length(groups)) sprintf("For example `%s$%s`.", arg, names(value)[groups[1L]]))
  }
  check_order(value, x, arg)
  target <- class_input(value, x, nrow(data), arg)
  group <- target$levels[target$codes + 1L] # which may be a level NA
  unknown <- group %in% c("", NA) # an empty cell of a table is not a group
  if (any(unknown)) {
    lost <- which(unknown)
    name <- if (is.character(value) && length(value) == 1L) sprintf("x$%s", value) else arg
    abort_input(
      sprintf("`%s` must be known for every sample.", arg),
      x = sprintf("It is missing for %d of %d: %s.", length(lost), nrow(data), label_some(rownames(data)[lost])),
      i = if (!anyNA(group)) sprintf(paste("Empty text is not a group. `%s[%s == \"\"] <- NA`, and leave these",
                                           "samples out."), arg, arg)
          else if (anyNA(target$levels)) sprintf("NA is a level. Leave out where `is.na(as.character(%s))`.", name)
          else if (is_experiment(x)) sprintf("Leave these samples out: `x[, !is.na(%s)]`.", name)
          else sprintf("Leave these samples out: `keep <- !is.na(%s); gene_network(x[keep, ], %s[keep])`.", arg, arg)
    )
  }
  level <- make.unique(valid_utf8(target$levels))
  stats::setNames(factor(level[target$codes + 1L], levels = level), rownames(data))
}

# Names tell when samples are in another order than in x.
check_order <- function(value, x, arg) {
  named <- names(value)
  samples <- if (!is_experiment(x)) rownames(x)
  if (is.null(named) || is.null(samples) || is.data.frame(value) || length(named) != length(samples) ||
      anyDuplicated(named)) return()
  if (setequal(named, samples) && !identical(named, samples)) {
    at <- which(named != samples)[1L]
    abort_input(sprintf("`%s` must be in the order of the rows of `x`.", arg),
                x = sprintf("Its value %d is of `%s`, row %d is `%s`.", at, named[at], at, samples[at]),
                i = sprintf("`%s[rownames(x)]` puts it in order.", arg))
  }
}

check_class <- function(class) {
  if (is.null(class)) return()
  if (nlevels(class) < 2L) {
    abort_input("`class` must have at least two levels.", x = sprintf("All samples are \"%s\".", levels(class)),
                i = "Leave `class` out for an analysis without one.")
  }
  if (nlevels(class) > length(class) / 2) {
    abort_input("`class` must assign samples to groups.",
                x = sprintf("It has %d levels for %d samples.", nlevels(class), length(class)),
                i = "Is it an identifier? Use `cut()` to divide numbers into groups.")
  }
  missing <- intersect(levels(class), c("NA", "N/A", "na", "n/a", "NaN"))
  if (length(missing)) {
    weft_warn("class_na", sprintf("The class of %s is the text \"%s\", which is treated as a group.",
                                  several(sum(class %in% missing), "sample"), missing[1L]),
              i = sprintf("If the class is unknown, set `class[class == \"%s\"] <- NA` and remove these samples.",
                          missing[1L]))
  }
  small <- names(which(table(class) < 2L))
  if (length(small)) {
    weft_warn("small_class",
              sprintf("There is only one sample of class %s, so its variance is estimated from the other classes.",
                      label_some(small)))
  }
}

# ---- the parts ----

note <- function(q, step, what, genes = 0L, samples = 0L) {
  line <- list(step = step, genes = as.integer(genes), samples = as.integer(samples), what = what)
  q$log <- as_frame(if (is.null(q$log)) line else Map(c, q$log, line))
  q
}

name_genes <- function(q) {
  names <- colnames(q$x)
  if (is.null(names)) {
    colnames(q$x) <- sprintf("V%d", seq_len(ncol(q$x)))
    return(note(q, "names", "The genes had no names and were named V1, V2, ...", ncol(q$x)))
  }
  readable <- valid_utf8(names)
  if (!identical(readable, enc2utf8(names))) {
    q <- note(q, "names", "Invalid characters in names of genes are shown as byte codes.",
              sum(readable != enc2utf8(names), na.rm = TRUE))
  }
  names <- readable
  empty <- is.na(names) | !nzchar(names)
  names[empty] <- "gene"
  twice <- duplicated(names)
  different <- make.unique(names)
  if (!identical(colnames(q$x), different)) colnames(q$x) <- different # which copies it
  if (any(twice | empty)) {
    q <- note(q, "names", sprintf("Numbers were added to duplicated or missing names of genes: %s.",
                                  some_named(unique(names[twice | empty]))),
              sum(twice | empty))
  }
  q
}

leave_out <- function(q, genes = character(), samples = character(), reason) {
  if (length(genes)) {
    at <- match(genes, q$genes$gene)
    q$genes$kept[at] <- FALSE
    q$genes$reason[at] <- reason
    q$x <- q$x[, !colnames(q$x) %in% genes, drop = FALSE]
  }
  if (length(samples)) {
    at <- match(samples, q$samples$sample)
    q$samples$kept[at] <- FALSE
    q$samples$reason[at] <- reason
    stay <- !rownames(q$x) %in% samples
    q$x <- q$x[stay, , drop = FALSE]
    if (!is.null(q$class)) q$class <- droplevels(q$class[stay])
    if (!is.null(q$batch)) q$batch <- droplevels(q$batch[stay])
    if (!is.null(q$covariates)) q$covariates <- q$covariates[stay, , drop = FALSE]
  }
  if (ncol(q$x) < 3L || nrow(q$x) < least_samples) {
    abort_input(sprintf("At least 3 genes and %d samples must remain after filtering.", least_samples),
                x = sprintf("%d genes and %d samples remain. The last filter was: %s.", ncol(q$x), nrow(q$x), reason),
                i = "`max_missing`, `max_missing_samples`, `max_same` and `min_count` control the filters.")
  }
  q
}

share_text <- function(share) sprintf("%s %%", format(signif(100 * share, 2), trim = TRUE, scientific = FALSE))

drop_missing <- function(q, max_missing, max_missing_samples) {
  if (!anyNA(q$x)) return(q)
  genes <- colnames(q$x)[missing_shares(q$x)$genes > max_missing]
  if (length(genes)) {
    q <- leave_out(q, genes, reason = "missing values")
    q <- note(q, "missing values",
              sprintf("Genes with more than %s missing values were removed: %s.", share_text(max_missing),
                      some_named(genes)),
              length(genes))
  }
  samples <- rownames(q$x)[missing_shares(q$x)$samples > max_missing_samples]
  if (length(samples)) {
    q <- leave_out(q, samples = samples, reason = "missing values")
    q <- note(q, "missing values",
              sprintf("Samples with more than %s missing values were removed: %s.", share_text(max_missing_samples),
                                           some_named(samples)), 0L, length(samples))
  }
  q
}

# Few cells see a gene: ten suffice, of however many cells.
usual_same <- function(x, transform) {
  if (transform == "auto") transform <- guess_scale(x)
  if (transform == "cells") max(0.95, 1 - 10 / nrow(x)) else 0.95
}

drop_uninformative <- function(q, max_same, threads) {
  facts <- matrix_facts(q$x, threads, same = TRUE)
  constant <- facts$least == facts$greatest
  if (any(constant)) {
    genes <- colnames(q$x)[constant]
    q <- leave_out(q, genes, reason = "constant")
    q <- note(q, "constant", sprintf("Constant genes were removed: %s.", some_named(genes)), length(genes))
  }
  q$kind <- if (all(facts$few[!constant])) "levels" else "expression"
  if (q$kind == "expression" && max_same < 1) {
    same <- (facts$same / (nrow(q$x) - facts$missing))[!constant]
    if (any(same > max_same)) {
      genes <- colnames(q$x)[same > max_same]
      q <- leave_out(q, genes, reason = "low information")
      q <- note(q, "low information", sprintf("Genes with the same value in more than %s of samples were removed: %s.",
                                              share_text(max_same), some_named(genes)), length(genes))
    }
  }
  q
}

note_duplicates <- function(q) {
  if (q$kind == "levels") return(q)
  few <- q$x[, unique(round(seq(1, ncol(q$x), length.out = min(ncol(q$x), 200L)))), drop = FALSE]
  twice <- rownames(q$x)[duplicated(few)]
  if (!length(twice)) return(q)
  note(q, "duplicates", sprintf("Duplicated samples were found and kept: %s.", some_named(twice)), 0L,
       length(twice))
}

fill_gaps <- function(q, impute, threads) {
  q$imputed <- 0L
  if (!anyNA(q$x)) return(q)
  gaps <- is.na(q$x)
  q$imputed <- sum(gaps)
  if (impute == "auto") impute <- if (q$kind == "expression" && length(q$x) <= 2e6) "components" else "median"
  if (q$kind == "levels") impute <- "median"
  if (impute == "components") {
    k <- max(1, min(3, nrow(q$x) %/% 10, ncol(q$x) - 1L))
    fit <- suppressWarnings(pca(q$x, k, scale = TRUE, na = "em", seed = 1,
                                run = weft_run("auto", threads = threads, progress = FALSE),
                                control = list(tolerance = 1e-4, max_iterations = 200)), classes = "weft_warning")
    q$x[gaps] <- stats::fitted(fit)[gaps]
    how <- sprintf("the values fitted by %s", several(as.integer(k), "component"))
  } else {
    for (j in which(colSums(gaps) > 0)) {
      seen <- q$x[!gaps[, j], j]
      q$x[gaps[, j], j] <- if (q$kind == "levels") as.numeric(names(which.max(table(seen)))) else stats::median(seen)
    }
    how <- if (q$kind == "levels") "the most frequent value of the gene" else "the median of the gene"
  }
  note(q, "missing values",
       sprintf("%s missing values (%s) were imputed with %s.", format(q$imputed, big.mark = ","),
               share_text(mean(gaps)), how),
       sum(colSums(gaps) > 0), sum(rowSums(gaps) > 0))
}

drop_least_spread <- function(q, least_spread, threads) {
  if (least_spread == 0) return(q)
  mad <- column_spreads(q$x, threads)$mad
  genes <- colnames(q$x)[order(mad)][seq_len(floor(least_spread * ncol(q$x)))]
  if (!length(genes)) return(q)
  q <- leave_out(q, genes, reason = "small spread")
  note(q, "small spread",
       sprintf("The %s of genes with the smallest median absolute deviation were removed.", share_text(least_spread)),
       length(genes))
}

# ---- the result ----

#' @rdname gene_quality
#' @param ... ignored.
#' @export
print.weft_quality <- function(x, ...) {
  x <- checked_quality(x, "x")
  cat(sprintf("%d samples and %s genes, of %d and %s\n", nrow(x$x), format(ncol(x$x), big.mark = ","), x$input[1L],
              format(x$input[2L], big.mark = ",")))
  if (!is.null(x$class)) cat("Class:", plain_text(paste(class_sizes(x$class, "%s %d"), collapse = ", ")), "\n")
  if (is.null(x$log)) cat("No values were changed.\n")
  for (line in x$log$what) cat(strwrap(plain_text(line), width = getOption("width"), prefix = "  ", initial = "* "),
                               sep = "\n")
  invisible(x)
}

#' @rdname gene_quality
#' @export
as.matrix.weft_quality <- function(x, ...) checked_quality(x, "x")$x

# What the other steps take: a weft_quality, or data that is made into one with the defaults.
checked_data <- function(x, class = NULL) {
  need_args("x")
  if (!inherits(x, "weft_quality")) return(gene_quality(x, class))
  if (!is.null(class)) abort_input("`class` must not be given with a result of `gene_quality()`.",
                                   i = "It contains the class.")
  checked_quality(x, "x")
}

needs_class <- function(q, what) {
  if (is.null(q$class)) abort_input(sprintf("%s needs `class`: one category per sample.", what))
}
