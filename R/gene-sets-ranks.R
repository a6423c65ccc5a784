# Sets of genes whose members shift together: a test over the whole ranking, which finds a set even if none of its genes
# differs clearly. Genes of a set are correlated, so their mean varies more than the mean of independent genes; the test
# allows for this (Wu and Smyth 2012).

#' Do the genes of a set shift together in a ranking?
#'
#' `gene_sets_ranked()` tests whether the genes of a set stand higher or lower in a ranking than all other genes. It
#' needs no threshold, so it also finds a set whose genes each differ only a little. The shortest call is
#' `gene_sets_ranked(fit, "sets.gmt")`, where `fit` is a result of [gene_network()]; it returns a table with one row per
#' set, smallest p-value first.
#'
#' For a result of [gene_network()], the statistics of the genes become normal scores. A t-test then compares the mean
#' score of the set with the mean score of all other genes; its variance allows for the correlation of the set's genes
#' within the classes (Wu and Smyth 2012). A named vector has no information about correlations. Its ranks become normal
#' scores, and the p-value compares the set with random sets of the same size. Genes of a real set are correlated, so
#' this p-value is too small for a claim about other samples; use it to order sets.
#'
#' @param x an object returned by [gene_network()] for two classes or a numeric outcome; or a named vector of numbers,
#'   one per gene, such as the `geneList` of clusterProfiler or the `stats` of fgsea.
#' @param sets,min_size,max_size see [gene_sets()].
#' @return A data frame with one row per set, smallest p-value first: `set`, `size` (its genes in the ranking),
#'   `direction`, `shift` (the mean score of the set minus the mean score of the other genes, in standard deviations),
#'   `correlation` (the mean over pairs of the set's genes; `NA` for a vector), `p_value`, `q_value` (Benjamini and
#'   Hochberg).
#' @references Wu, D., Smyth, G. K. (2012). Camera: a competitive gene set test accounting for inter-gene correlation.
#'   *Nucleic Acids Research* 40(17), e133.
#' @seealso [gene_sets()], which tests lists of genes
#' @export
#' @examples
#' statistics <- stats::setNames(qnorm((1:200 - 0.5) / 200), sprintf("gene%d", 1:200))
#' sets <- list(top = names(statistics)[181:200], spread = names(statistics)[seq(1, 200, 10)])
#' gene_sets_ranked(statistics, sets)
gene_sets_ranked <- function(x, sets, min_size = 5, max_size = 500) {
  need_args("x", "sets")
  min_size <- check_number(min_size, "min_size", min = 1, whole = TRUE)
  max_size <- check_number(max_size, "max_size", min = min_size, whole = TRUE)
  sets <- sets_of(sets)
  if (inherits(x, "weft_gene_network")) {
    fit <- checked_fit(x, "x")
    if (is.null(fit$ranking)) abort_no_result("`x` must contain a ranking.", fit, "ranking")
    found <- reading("x", ranked_sets(fit, sets, min_size, max_size))
    if (is.null(found) && !has_directions(fit$ranking)) {
      abort_input("`x` must contain a ranking with signed effects (for two classes or a numeric outcome).",
                  i = "`gene_sets()` tests the top genes of any ranking.")
    }
  } else {
    x <- ranked_vector(x)
    found <- set_shifts(normal_scores(x), NULL, length(x) - 2, lapply(sets, function(set) which(names(x) %in% set)),
                        c(min_size, max_size), c("high", "low"))
  }
  found %||% as_frame(list(set = character(), size = integer(), direction = character(), shift = numeric(),
                           correlation = numeric(), p_value = numeric(), q_value = numeric()))
}

# A user's ranking: known numbers under different names.
ranked_vector <- function(x) {
  named <- is.numeric(x) && is.null(dim(x)) && !is.object(x) && length(names(x)) == length(x)
  if (!named || anyNA(names(x)) || !all(nzchar(names(x)))) {
    abort_input("`x` must be an object returned by `gene_network()`, or a named numeric vector.",
                x = paste0("It is ", describe(x), "."))
  }
  twice <- names(x)[duplicated(names(x))]
  if (length(twice)) abort_input("The names of `x` must be unique.", x = sprintf("Duplicated: %s.", label_some(twice)))
  x <- x[!is.na(x)]
  if (length(x) < 4L || all(x == x[1L])) {
    abort_input("`x` must have at least 4 finite numbers that are not all equal.", x = sprintf("It has %d.", length(x)))
  }
  x
}

has_directions <- function(ranking) {
  inherits(ranking, "weft_ranking") && is.null(ranking$contrast) && !is.null(ranking$t)
}

# The data frame of gene_sets_ranked(). NULL where the ranking has no sign (of levels, or of more than two classes), or
# no set has a size that is tested.
ranked_sets <- function(fit, sets, min_size = 5, max_size = 500) {
  r <- fit$ranking
  if (!has_directions(r)) return(NULL)
  q <- fit$quality
  genes <- representatives(q)
  name <- colnames(q$x)[genes]
  symbol <- q$genes$symbol[match(name, q$genes$gene)] %||% name
  symbol <- ifelse(is.na(symbol), name, symbol)
  place <- match(name, r$gene)
  z <- sign(r$t[place]) * stats::qnorm(r$log10_p[place] * log(10) - log(2), lower.tail = FALSE, log.p = TRUE)
  known <- is.finite(z)
  rest <- unit_residuals(q, genes[known])
  set_shifts(z[known], rest$units, rest$df, lapply(sets, function(set) which(symbol[known] %in% set)),
             c(min_size, max_size), shift_words(ranking_levels(fit)))
}

shift_words <- function(levels) {
  if (length(levels) == 2L) sprintf("higher in %s", levels[2:1]) else c("rising", "falling")
}

# What the classes leave of each gene, as columns of length 1, and its degrees of freedom.
unit_residuals <- function(q, genes) {
  x <- q$x[, genes, drop = FALSE]
  design <- cbind(1, if (!is.null(q$class)) contrast_columns(q$class))
  rest <- stats::lm.fit(design, x)$residuals
  length <- sqrt(colSums(rest^2))
  list(units = rest / rep(ifelse(length > 0, length, 1), each = nrow(rest)), df = nrow(x) - ncol(design))
}

# The statistics z of the genes of each set (`members`, places among the genes) against those of all others: Student's t
# with the variance of the set's mean inflated by its genes' correlation, which is that of the columns of `units`; NULL:
# genes are independent. `words`: for sets that are high and low.
set_shifts <- function(z, units, df, members, sizes, words) {
  size <- lengths(members)
  members <- members[size >= sizes[1L] & size <= sizes[2L] & size < length(z) - 1L]
  size <- lengths(members)
  if (!length(members)) return(NULL)
  all <- length(z)
  inflation <- if (is.null(units)) rep(NA_real_, length(members))
               else vapply(members, function(at) sum(rowSums(units[, at, drop = FALSE])^2) / length(at), 0)
  shift <- all / (all - size) * (vapply(members, function(at) mean(z[at]), 0) - mean(z))
  pooled <- ((all - 1) * stats::var(z) - shift^2 * size * (all - size) / all) / (all - 2)
  t <- shift / sqrt(pooled * (pmax(inflation, 1, na.rm = TRUE) / size + 1 / (all - size)))
  p <- 2 * stats::pt(abs(t), min(df, all - 2), lower.tail = FALSE)
  out <- data.frame(set = names(members), size = unname(size), direction = ifelse(shift > 0, words[1L], words[2L]),
                    shift = unname(shift), correlation = unname((inflation - 1) / pmax(size - 1, 1)),
                    p_value = unname(p), q_value = stats::p.adjust(unname(p), "BH"), row.names = NULL)
  out <- out[order(out$p_value, -abs(out$shift)), ]
  rownames(out) <- NULL
  out
}
