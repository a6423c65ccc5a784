#' F tests of pairs of features on a quantitative trait
#'
#' `mi_trait()` tests pairs of features from [mi_pairs()] for effects on a quantitative trait. The shortest call is
#' `mi_trait(pairs, x, trait)`; it returns a data frame with one row per pair. The tests ask whether the means of the
#' trait differ between combinations of levels, and whether they differ from the sum of the effects of both features.
#'
#' A search for a quantitative trait has two stages. [mi_pairs()] scores all pairs on classes that quantiles cut from
#' the trait, `discretize(data.frame(trait), bins = 3)$trait`, which are the same whether cut from the trait or from its
#' normal scores; then `mi_trait()` tests the pairs it kept on the trait itself. `p_bonferroni` is `p_interaction` times
#' the number of pairs that the first stage searched, at most 1. It is valid for all of these, for any choice of
#' classes.
#'
#' The F statistics are those of [stats::anova()] for `lm(y ~ a * b)`, with a and b as factors, against `lm(y ~ a + b)`
#' and against `lm(y ~ 1)`. They are computed from the counts, sums and squares in the cells of a table, in one pass
#' over the rows. By default, y contains normal scores of the trait, which are quantiles of the normal distribution for
#' its ranks. This prevents interactions that are due to a few extreme values, and the p-values hold for traits of any
#' distribution with independent rows.
#'
#' @param pairs an object returned by [mi_pairs()].
#' @param x the data that [mi_pairs()] searched (not a pack).
#' @param trait one number per row of `x`. Rows with a missing value are removed, and for each pair also rows in which a
#'   feature is missing.
#' @param scores `"normal"` to test normal scores of the trait, `"raw"` to test its original values.
#' @param assay name or number of the assay of a `SummarizedExperiment`.
#' @return A data frame with a row per pair, in the order of `pairs`: `feature1`, `feature2`, `n` rows, `f_joint` and
#'   `p_joint` of the table against one mean, `f_interaction` and `p_interaction` against the sum of both effects, and
#'   `p_bonferroni`. They are `NA` if a table has too few combinations or rows for a test.
#' @seealso [mi_pairs()], [discretize()]; [pair_scan()] for models with covariates
#' @export
#' @examples
#' set.seed(1)
#' x <- as.data.frame(matrix(sample(0:2, 500 * 20, TRUE), 500))
#' trait <- rnorm(500) + 0.9 * (x$V3 == 2) * (x$V8 == 0)
#' found <- mi_pairs(x, discretize(data.frame(trait), bins = 3)$trait, top = 10)
#' head(mi_trait(found, x, trait), 3)
mi_trait <- function(pairs, x, trait, scores = c("normal", "raw"), assay = NULL) {
  need_args("pairs", "x", "trait")
  scores <- check_choice(scores, c("normal", "raw"), "scores")
  check_pairs_found(pairs)
  features <- features_of_pairs(pairs, x, assay)
  y <- trait_values(trait, features$n)
  if (scores == "normal") y <- normal_scores(y)
  one <- match(pairs$feature1, features$names)
  other <- match(pairs$feature2, features$names)
  tested <- vapply(seq_len(nrow(pairs)), function(k) {
    trait_test(features$codes[[one[k]]], features$codes[[other[k]]], y)
  }, c(n = 0, f_joint = 0, p_joint = 0, f_interaction = 0, p_interaction = 0))
  out <- list2DF(c(list(feature1 = pairs$feature1, feature2 = pairs$feature2),
                   lapply(stats::setNames(seq_len(5L), rownames(tested)), function(k) as.vector(tested[k, ]))))
  out$p_bonferroni <- pmin(1, out$p_interaction * attr(pairs, "searched"))
  out
}

check_pairs_found <- function(pairs) {
  if (!inherits(pairs, "weft_mi_tuples") || tuple_order(pairs) != 2L) {
    abort_input("`pairs` must be a table of pairs returned by `mi_pairs()`.",
                x = paste0("It is ", describe(pairs), "."))
  }
  check_tuples(pairs, "pairs", record = "searched")
  if (!is.numeric(attr(pairs, "searched"))) abort_changed("pairs", "its number of searched pairs is damaged")
}

# Codes from 1, NA where missing, of the features that are in a pair.
features_of_pairs <- function(pairs, x, assay) {
  if (inherits(x, "weft_mi_pack")) {
    abort_input("`x` must contain the data that were searched.",
                x = "It is a pack, which does not contain the values of features.",
                i = "Give the data from which the pack was created.")
  }
  data <- as_source(x, assay)$data
  if (length(dim(data)) != 2L) {
    abort_input("`x` must contain the data that `mi_pairs()` searched.", x = paste0("It is ", describe(x), "."))
  }
  known <- feature_names(data)
  names <- unique(c(pairs$feature1, pairs$feature2))
  at <- match(names, known)
  if (anyNA(at)) {
    abort_input("`x` must contain the features in `pairs`.",
                x = sprintf("There is no %s.", label_some(names[is.na(at)])),
                i = "Give the data that `mi_pairs()` searched.")
  }
  if (any(twice <- names %in% known[duplicated(known)])) {
    abort_input("The features in `pairs` must have unique names in `x`.",
                x = sprintf("Duplicated: %s.", label_some(names[twice])))
  }
  if (inherits(data, "weft_plink")) {
    data <- as.matrix(some_variants(data, at))
    at <- seq_along(at)
  }
  code <- function(j) {
    column <- if (is.data.frame(data)) data[[j]] else as.vector(data[, j])
    if (is.raw(column)) column <- as.integer(column)
    as.integer(factor(sortable_text(check_factor(column, sprintf("Column `%s` of `x`", known[j])))))
  }
  list(codes = lapply(at, code), names = names, n = nrow(data))
}

trait_values <- function(trait, n) {
  if (!is.numeric(trait) || is.factor(trait) || length(dim(trait)) > 1L) {
    abort_input("`trait` must contain one number per row of `x`.", x = paste0("It is ", describe(trait), "."))
  }
  if (length(trait) != n) {
    abort_input(sprintf("`trait` must have one value per row of `x` (%d).", n),
                x = sprintf("It has %d.", length(trait)))
  }
  if (any(is.infinite(trait))) {
    abort_input("`trait` must be finite or NA.", x = sprintf("%d are infinite.", sum(is.infinite(trait))))
  }
  as.double(trait)
}

# Ties share the mean of their ranks.
normal_scores <- function(y) {
  known <- !is.na(y)
  y[known] <- stats::qnorm((rank(y[known]) - 0.5) / sum(known))
  y
}

# Of one table: sums of squares from counts and means of its cells.
trait_test <- function(a, b, y) {
  rows <- !is.na(a) & !is.na(b) & !is.na(y)
  none <- c(n = sum(rows), f_joint = NA, p_joint = NA, f_interaction = NA, p_interaction = NA)
  if (!any(rows)) return(none)
  cell <- (a[rows] - 1L) * max(b[rows]) + b[rows]
  y <- y[rows] - mean(y[rows])
  y <- y / max(1e-300, max(abs(y)))
  count <- tabulate(cell)
  there <- which(count > 0L)
  count <- count[there]
  mean_of <- rowsum(y, cell)[, 1L] / count
  within <- sum((y - mean_of[match(cell, there)])^2)
  first <- (there - 1L) %/% max(b[rows])
  second <- (there - 1L) %% max(b[rows])
  effects <- function(level) outer(level, sort(unique(level))[-1L], `==`) + 0
  added <- stats::lm.wfit(cbind(1, effects(first), effects(second)), mean_of, count)
  left <- length(y) - length(there)
  test <- function(squares, freedom) {
    if (freedom < 1L || left < 1L) return(c(NA_real_, NA_real_))
    f <- if (squares <= 1e-20 * length(y)) 0 else (squares / freedom) / (within / left)
    c(f, stats::pf(f, freedom, left, lower.tail = FALSE))
  }
  joint <- test(sum(count * mean_of^2), length(there) - 1L)
  interaction <- test(sum(count * added$residuals^2), length(there) - added$rank)
  none[-1L] <- c(joint, interaction)
  none
}
