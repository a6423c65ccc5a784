# Printing and conversion of the result of gene_ranking().

#' Print and convert rankings of genes
#'
#' @param x,object an object returned by [gene_ranking()].
#' @param n the number of genes to show.
#' @param alpha the false discovery rate up to which a gene counts as different.
#' @param ... ignored.
#' @return `print()`: `x`, invisibly. `summary()`: a list with the number of `genes`, the numbers of genes that `differ`
#'   and that differ in `shape`, `alpha`, and the `model`. `tidy()`: a data frame with broom's names. `glance()`: one
#'   row about the model.
#' @export
#' @examples
#' e <- weft_example("expression", n = 40, p = 30, spoilt = FALSE)
#' r <- gene_ranking(e$x, e$class)
#' summary(r)$differ
#' head(tidy(r), 3)
print.weft_ranking <- function(x, n = 10L, ...) {
  if (!is_gene_ranking(x)) return(NextMethod())
  model <- checked_ranking(x, "x")
  n <- check_shown(n)
  cat_wrapped(title_of_ranking(x, model))
  shown <- as.data.frame(x)
  shown <- shown[vapply(shown, function(column) !all(is.na(column)), NA) | !names(shown) %in% c("shape_p", "shape_q")]
  print_first(shown, n)
  cat_wrapped(sprintf("%s; %s%s differ at q <= 0.05%s.", formula_line(model),
                      if (is_number(model$genes) && nrow(x) < model$genes) "of these " else "",
                      format(sum(x$q_value <= 0.05, na.rm = TRUE), big.mark = ","),
                      if (all(is.na(x$shape_q))) ""
                      else sprintf(", %s in spread or shape", format(sum(x$shape_q <= 0.05, na.rm = TRUE),
                                                                     big.mark = ","))))
  for (note in model$notes) cat_wrapped(note)
  invisible(x)
}

title_of_ranking <- function(x, model) {
  levels <- model$levels
  what <- if (is.null(levels)) sprintf("by `%s`", model$term)
          else if (length(levels) == 2L) sprintf("between %s (%d samples) and %s (%d)", levels[1L], model$samples[[1L]],
                                                 levels[2L], model$samples[[2L]])
          else sprintf("between %d levels of `%s`", length(levels), model$term)
  sprintf("Differences in %s %s", counted_of(nrow(x), model$genes, "gene"), what)
}

formula_line <- function(model) {
  sprintf("Linear model %s%s, variances moderated by %s degrees of freedom%s", model$formula,
          switch(model$weights, none = "", precision = ", weighted by precision", group = ", weighted by class"),
          format(signif(model$d0, 3)),
          paste0(if (model$trend) " with a trend over the mean" else "",
                 if (isTRUE(model$by_class)) ", separately for each class" else ""))
}

is_gene_ranking <- function(x) {
  all(c("gene", "log2_fold_change", "p_value", "q_value") %in% names(x)) && is.list(attr(x, "model"))
}

# The model of a whole result; an error where it was changed.
checked_ranking <- function(x, arg) {
  check_result(x, arg, run_attributes, "gene", character())
  model <- attr(x, "model", exact = TRUE)
  if (!sound_ranking(x)) abort_changed(arg, "its columns or its attribute `model` are damaged")
  model
}

sound_ranking <- function(r) {
  statistic <- if ("t" %in% names(r)) "t" else "f"
  columns <- c(gene = "character", log2_fold_change = "numeric", lower = "numeric", upper = "numeric", mean = "numeric",
               p_value = "numeric", log10_p = "numeric", q_value = "numeric", bits = "numeric", auc = "numeric",
               shape_p = "numeric", shape_q = "numeric")
  columns[statistic] <- "numeric"
  is_frame(r, columns) && !anyNA(r$gene) && sound_ranking_model(attr(r, "model", exact = TRUE))
}

sound_ranking_model <- function(model) {
  is.list(model) && is_word(model$formula) && is_word(model$term) && is_word(model$weights) &&
    model$weights %in% c("none", "precision", "group") && is.numeric(model$d0) && length(model$d0) == 1L &&
    !is.na(model$d0) && is.logical(model$trend) && length(model$trend) == 1L && !is.na(model$trend) &&
    is.character(model$notes) && !anyNA(model$notes) && is_number(model$n) && is_number(model$df_residual) &&
    (is.null(model$levels) || is.character(model$levels) && !anyNA(model$levels) && length(model$levels) >= 2L &&
       is.numeric(model$samples) && length(model$samples) == length(model$levels) && !anyNA(model$samples))
}

#' @rdname print.weft_ranking
#' @export
summary.weft_ranking <- function(object, alpha = 0.05, ...) {
  model <- checked_ranking(object, "object")
  alpha <- check_number(alpha, "alpha", min = 0, max = 1)
  as_summary(list(genes = nrow(object), differ = sum(object$q_value <= alpha, na.rm = TRUE),
                  shape = sum(object$shape_q <= alpha, na.rm = TRUE), alpha = alpha, model = model,
                  run = run_line(object)), title_of_ranking(object, model))
}

#' @rdname print.weft_ranking
#' @export
as.data.frame.weft_ranking <- function(x, ...) {
  check_frame(x, "x")
  list2DF(unclass(x)[names(x)])
}

#' @rdname print.weft_ranking
#' @export
tidy.weft_ranking <- function(x, ...) {
  checked_ranking(x, "x")
  broom_names(as.data.frame(x), "log2_fold_change")
}

#' @rdname print.weft_ranking
#' @export
glance.weft_ranking <- function(x, ...) {
  model <- checked_ranking(x, "x")
  data.frame(genes = nrow(x), samples = model$n, term = model$term, differ = sum(x$q_value <= 0.05, na.rm = TRUE),
             df_residual = model$df_residual, d0 = model$d0, trend = model$trend, weights = model$weights,
             backend = attr(x, "backend"), seconds = attr(x, "seconds"))
}

# ---- what other steps read ----

# The genes of a ranking, best first: of gene_ranking(), or of mi_rank() for levels.
ranked_genes <- function(ranking) ranking$gene %||% ranking$feature

# The information of each.
ranked_bits <- function(ranking) ranking$bits %||% ranking$mi

# How many are found at this false discovery rate, and which.
found_genes <- function(ranking, fdr = 0.05) ranked_genes(ranking)[which(ranking$q_value <= fdr)]

ranking_unit <- function(ranking) attr(ranking, "unit") %||% "bits"

# The first genes with their fold changes, or their information where these are levels or have several changes.
ranked_text <- function(ranking, top) {
  shown <- utils::head(ranked_genes(ranking), top)
  change <- ranking$log2_fold_change
  words <- if (is.null(change)) sprintf("%.2f", utils::head(ranking$mi, top))
           else sprintf("log2 fold change %.2g", utils::head(change, top))
  paste(sprintf("%s (%s)", shown, words), collapse = ", ")
}
