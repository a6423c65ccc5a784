# Pairs of genes in the workflow.

#' @rdname gene_steps
#' @export
gene_pairs <- function(x, class = NULL, bins = NULL, top = 50, permutations = NULL, seed = NULL, run = NULL, ...) {
  run <- as_run(run)
  check_dots(...)
  q <- checked_data(x, class)
  needs_class(q, "`gene_pairs()`")
  genes <- representatives(q)
  strata <- sample_strata(q)
  bins <- bins %||% usual_bins(nrow(q$x) / max(1L, nlevels(strata)))
  search <- function(permutations) {
    mi_pairs(q$x[, genes, drop = FALSE], q$class, top = top, by = "interaction",
             bins = if (q$kind == "expression") bins, strata = strata, permutations = permutations, seed = seed,
             run = run)
  }
  if (!is.null(permutations)) return(search(permutations))
  for (permutations in usual_permutations(length(genes), nrow(q$x))) {
    found <- search(permutations)
    if (!nrow(found) || permutations == 0 || min(found$p_fwer) > 1 / (permutations + 1)) break
  }
  found
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

# Numbers of permutations, each for where none of the permutations before was as good as the best pair: so noise takes
# 19, and the p-value of what is there goes on to .001 (Besag and Clifford 1991; it holds as one of a fixed number
# does). They end where they would take a minute, or the first some minutes, on one core: the same on every machine.
usual_permutations <- function(genes, n) {
  once <- at_reference(mi_plan("tuples", tuples = choose(genes, 2), n = n, planes = usual_bins(n) - 1, order = 2,
                               threads = 1)$cpu)
  stages <- c(19, 99, 999)
  stages <- stages[stages * once <= c(1200, 60, 60)]
  if (length(stages)) stages else 0
}
