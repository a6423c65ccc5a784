# module_preservation(): are modules present in other data? Each module's statistics are compared with random genes.

#' Are modules preserved in other data?
#'
#' `module_preservation()` tests whether the modules of one study are also present in a second study of the same genes.
#' The shortest call is `module_preservation(m, other)`, where `m` is a result of [gene_modules()] and `other` is the
#' second data set; it returns a table with one row per module. Each module is compared with random sets of genes of the
#' same size.
#'
#' @section Statistics: `density` is the mean correlation between the genes of a module in the other data; genes on
#'   opposite sides of the eigengene count with the opposite sign. `agreement` compares the memberships in the two data
#'   sets by their correlation over the module's genes. Here, the membership of a gene in the other data is its
#'   correlation with the sum of the module's other genes, weighted by their memberships in the first data. For both
#'   statistics, `permutations` random sets of the same size replace the module in the other data, with its signs and
#'   memberships. This is the same as permuting the labels of the genes (Langfelder et al. 2011).
#'
#'   `z_density` and `z_agreement` are the distances of a module from the mean of the random sets, in standard
#'   deviations of these sets, and `z` is the mean of both. `p_value` is the proportion of random sets with at least
#'   this `z`; the module itself counts as one of them. The usual rule is that `z` above 10 is strong evidence of
#'   preservation, `z` between 2 and 10 is weak to moderate evidence, and `z` below 2 is no evidence; `z` grows with the
#'   size of a module. The other data must have other samples: modules are always preserved in the data in which they
#'   were found.
#'
#' @param x an object returned by [gene_modules()].
#' @param other the other data: an object returned by [gene_quality()], or data for it. Genes are matched by name.
#' @param permutations the number of random sets of genes.
#' @param seed a whole number; by default, it is drawn from R's generator.
#' @param run see [weft_run()].
#' @param ... not used; unknown arguments cause an error.
#' @return A data frame with one row per module: `module`, `size`, `common` (genes that the other data have),
#'   `density`, `agreement`, `z_density`, `z_agreement`, `z`, `p_value` and `q_value` (Benjamini and Hochberg). All
#'   statistics are NA if the two data sets have fewer than 3 genes of the module in common.
#' @references Langfelder, P., Luo, R., Oldham, M. C. and Horvath, S. (2011). Is my network module preserved and
#'   reproducible? PLoS Computational Biology 7, e1001057.
#' @seealso [gene_modules()]
#' @export
#' @examples
#' e <- weft_example("expression", n = 160, p = 100, batch = 0)
#' m <- gene_modules(e$x[1:80, ], seed = 1)
#' module_preservation(m, e$x[81:160, ], permutations = 99, seed = 1)
module_preservation <- function(x, other, permutations = 999, seed = NULL, run = NULL, ...) {
  run <- as_run(run)
  check_dots(...)
  need_args("x", "other")
  r <- check_modules(x, "x")
  permutations <- check_number(permutations, "permutations", min = 9, max = 1e6, whole = TRUE)
  cpu_only(run$backend, "Preservation is computed")
  q <- checked_data(other)
  check_for_modules(q)
  common <- intersect(names(r$module), colnames(q$x))
  if (length(common) < 3L) {
    abort_input("`other` must contain genes of the modules.",
                x = sprintf("It contains %d of the %s.", length(common), several(length(r$module), "gene")),
                i = "Genes are matched by column name.")
  }
  z <- module_scores(q$x[, common, drop = FALSE])
  at <- match(common, names(r$module))
  key <- random_key(seed)
  rows <- lapply(seq_len(nrow(r$modules)), function(m) {
    own <- which(r$module[at] == m)
    one <- list(module = m, size = r$modules$size[m], common = length(own))
    c(one, preserved(z, own, r$membership[at[own], m], permutations, key, m))
  })
  columns <- c("module", "size", "common", preserved_columns)
  table <- as_frame(lapply(stats::setNames(nm = columns), function(column) {
    vapply(rows, function(row) as.double(row[[column]]), 0)
  }), length(rows))
  table$q_value <- stats::p.adjust(table$p_value, "BH")
  table
}

preserved_columns <- c("density", "agreement", "z_density", "z_agreement", "z", "p_value")
fewest_preserved <- 3L # genes

# The statistics of one module, beside those of random genes in its place.
preserved <- function(z, own, membership, permutations, key, stream) {
  count <- length(own)
  if (count < fewest_preserved) return(stats::setNames(rep(list(NA_real_), 6L), preserved_columns))
  found <- placed(z, own, membership)
  random <- vapply(seq_len(permutations), function(again) {
    draw <- draws("uniform", ncol(z), key = key, stream = stream, first = again * as.double(ncol(z)))
    placed(z, order(draw)[seq_len(count)], membership)
  }, numeric(2L))
  centre <- rowMeans(random)
  spread <- apply(random, 1L, stats::sd)
  scaled <- function(v) (v - centre) / ifelse(spread > 0, spread, Inf)
  score <- mean(scaled(found))
  chance <- colMeans(scaled(random))
  list(density = found[1L], agreement = found[2L], z_density = scaled(found)[1L], z_agreement = scaled(found)[2L],
       z = score, p_value = (1 + sum(chance >= score - 1e-12)) / (permutations + 1))
}

# Density and agreement of the genes `at`, which stand for genes with these memberships.
placed <- function(z, at, membership) {
  side <- ifelse(membership < 0, -1, 1)
  turned <- z[, at, drop = FALSE] * rep(side, each = nrow(z))
  count <- length(at)
  whole <- sum(rowSums(turned)^2)
  weight <- abs(membership)
  sum <- as.vector(turned %*% weight)
  with <- as.vector(crossprod(turned, sum))
  rest <- pmax(sum(sum^2) - 2 * weight * with + weight^2, 1e-12)
  own <- (with - weight) / sqrt(rest)
  agreement <- if (stats::sd(weight) > 0 && stats::sd(own) > 0) stats::cor(weight, own) else 0
  c((whole - sum(colSums(turned^2))) / (count * (count - 1)), agreement)
}
