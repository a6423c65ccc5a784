# summary() of results: a list of what was found, which prints on one page. Methods of single classes give their own
# parts to as_summary(); for the others these are what glance() and tidy() return.

#' Summaries of results
#'
#' `summary()` of a result returns a list of its most important numbers, which prints on one page. The shortest call is
#' `summary(x)`; `summary(x)$features`, for example, returns one of the numbers. These are the methods for results whose
#' own help page has none.
#'
#' @param object the result of a weft function.
#' @param x a summary.
#' @param n the number of rows of each table to print.
#' @param ... ignored.
#' @return A list of class `weft_summary`: the columns of [glance()][tidiers], and `first_rows`, the first rows of
#'   [tidy()][tidiers]. `print()`: `x`, invisibly.
#' @name summaries
#' @examples
#' summary(mi_select(iris[1:4], iris$Species, k = 2, bins = 3))
NULL

as_summary <- function(parts, title) structure(parts, class = "weft_summary", title = title)

summary_of <- function(object, title, rows = 10L) {
  as_summary(c(as.list(generics::glance(object)), list(first_rows = utils::head(generics::tidy(object), rows))), title)
}

#' @rdname summaries
#' @export
print.weft_summary <- function(x, n = 10L, ...) {
  n <- check_shown(n)
  title <- attr(x, "title", exact = TRUE)
  if (is_word(title)) cat_wrapped(title)
  parts <- unclass(x)
  for (name in names(parts)) print_part(gsub("_", " ", name), parts[[name]], n)
  invisible(x)
}

# A number, text or short vector on a line of its own, a data frame below its name; other lists are not shown.
print_part <- function(name, value, n) {
  if (is.data.frame(value)) {
    if (!nrow(value)) return(invisible())
    cat("\n", name, ":\n", sep = "")
    return(print_first(value, n))
  }
  if (!is.atomic(value) || !length(value) || all(is.na(value))) return(invisible())
  text <- summary_text(value)
  if (!is.null(names(value))) text <- paste(names(value), text, sep = ": ")
  more <- length(text) - 12L
  if (more > 0L) text <- c(utils::head(text, 12L), sprintf("and %d more", more))
  cat(strwrap(plain_text(sprintf("%s: %s", name, paste(text, collapse = if (is.null(names(value))) ", " else "; "))),
              getOption("width"), indent = 2L, exdent = 4L), sep = "\n")
}

summary_text <- function(value) {
  if (!is.numeric(value)) return(as.character(value))
  vapply(as.double(value), function(v) if (!is.na(v) && v == round(v)) thousands(v) else format(v, digits = 4L), "")
}

#' @rdname summaries
#' @export
summary.weft_bins <- function(object, ...) summary_of(object, "Discretised columns")

#' @rdname summaries
#' @export
summary.weft_bn_compare <- function(object, ...) {
  as_summary(as.list(generics::glance(object)), "Comparison of Bayesian networks")
}

#' @rdname summaries
#' @export
summary.weft_bn_features <- function(object, ...) summary_of(object, "Posterior features of Bayesian networks")

#' @rdname summaries
#' @export
summary.weft_bn_prior <- function(object, ...) {
  check_prior(object, "object")
  edges <- function(these) {
    at <- which(these, arr.ind = TRUE)
    data.frame(from = colnames(object$R)[at[, 2L]], to = rownames(object$R)[at[, 1L]], nats = object$nats[at])
  }
  soft <- row(object$R) != col(object$R) & !object$required & !object$forbidden & object$nats != 0
  as_summary(list(nodes = nrow(object$R), required = edges(object$required), forbidden = edges(object$forbidden),
                  soft = edges(soft)), "Prior of edges")
}

#' @rdname summaries
#' @export
summary.weft_clusters <- function(object, ...) {
  r <- check_clusters(object, "object")
  as_summary(c(as.list(generics::glance(object)), list(sizes = table(r$cluster, dnn = NULL), stability = r$stability)),
             "Groups of samples")
}

#' @rdname summaries
#' @export
summary.weft_gene_sets <- function(object, ...) summary_of(object, "Gene sets")

#' @rdname summaries
#' @export
summary.weft_outliers <- function(object, ...) summary_of(object, "Outlier scores of samples")

#' @rdname summaries
#' @export
summary.weft_pca_k <- function(object, ...) summary_of(object, "Number of principal components")

#' @rdname summaries
#' @export
summary.weft_quality <- function(object, ...) summary_of(object, "Quality of samples and genes", 50L)

#' @rdname summaries
#' @export
summary.weft_selection <- function(object, ...) summary_of(object, "Selected features")

#' @rdname summaries
#' @export
summary.weft_kernel_tree <- function(object, ...) {
  check_tree_shape(object)
  as_summary(list(type = object$type, points = object$n, dimensions = object$d, leaf_size = object$leaf_size,
                  seconds = object$seconds), "Tree of points")
}

#' @rdname summaries
#' @export
summary.weft_mi_pack <- function(object, ...) {
  size <- dim(object)
  as_summary(list(rows = size[1L], features = size[2L], class = handle_part(object, "class_levels"),
                  missing_values = handle_part(object, "na"), strata = handle_part(object, "strata_levels")),
             "Packed features")
}

#' @rdname summaries
#' @export
summary.weft_plink <- function(object, ...) {
  size <- dim(object)
  variants <- object$variants
  filters <- intersect(c("maf", "missing", "hwe"), names(variants))
  as_summary(c(list(samples = size[1L], variants = size[2L],
                    chromosomes = table(factor(variants$chromosome, unique(variants$chromosome)), dnn = NULL)),
               lapply(variants[filters], function(v) stats::quantile(v, na.rm = TRUE))), "Genotypes")
}
