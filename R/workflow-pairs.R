# Pairs of genes in the workflow.

#' @rdname gene_steps
#' @export
gene_pairs <- function(x, class = NULL, bins = NULL, top = 50, permutations = NULL, seed = NULL, backend = NULL,
                       threads = NULL, progress = NULL) {
  q <- checked_data(x, class)
  needs_class(q, "`gene_pairs()`")
  genes <- representatives(q)
  strata <- sample_strata(q)
  bins <- bins %||% usual_bins(nrow(q$x) / max(1L, nlevels(strata)))
  permutations <- permutations %||% usual_permutations(length(genes), nrow(q$x))
  mi_pairs(q$x[, genes, drop = FALSE], q$class, top = top, by = "interaction", bins = if (q$kind == "expression") bins,
           strata = strata, permutations = permutations, seed = seed, backend = backend, threads = threads,
           progress = progress)
}

# Batches, within which information about the class is counted and classes are permuted; crossed with covariates that
# are categories while ten samples stay on average. What is linear in the others was taken out of the values.
sample_strata <- function(q, least = 10) {
  strata <- if (!is.null(q$batch) && nlevels(q$batch) > 1L) q$batch
  for (v in Filter(is.factor, as.list(q$covariates))) {
    crossed <- if (is.null(strata)) v else interaction(strata, v, drop = TRUE)
    if (length(v) / nlevels(crossed) >= least) strata <- crossed
  }
  strata
}

usual_bins <- function(n) if (n < 100) 2 else 3

# As many as take about a minute, or for very many pairs some minutes, on one core: the same on every machine. 19 are
# enough to tell at 0.05 whether the best pair is more than chance.
usual_permutations <- function(genes, n) {
  once <- at_reference(cost_tuples(choose(genes, 2), n, usual_bins(n) - 1, 0, 1)$cpu)
  if (100 * once <= 60) 99 else if (20 * once <= 1200) 19 else 0
}
