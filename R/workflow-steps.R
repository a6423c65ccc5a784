# The steps of the workflow between the checks and the Bayesian network: each takes what gene_quality() returned, or
# data, and returns what the system behind it returns.

#' Components, pairs and networks of genes
#'
#' These functions are steps of [gene_network()] that you can also call separately. They accept a result of
#' [gene_quality()] or the data for it. The shortest calls are `gene_components(q)`, `gene_pairs(q)` and
#' `gene_mi_network(q)`.
#'
#' * `gene_components()` computes principal components of the scaled genes ([pca()]) and tests how many of them are
#'   significant.
#' * `gene_pairs()` searches for pairs of genes that carry more information about the class together than separately
#'   ([mi_pairs()] by interaction). A permutation test adjusts for all pairs.
#' * `gene_mi_network()` infers a network from mutual information ([mi_matrix()], [mi_network()]). It contains only
#'   edges that are significant at a false discovery rate.
#'
#' @section Number of components: A component is significant if it exceeds the components of data in which the genes are
#'   independent. These data are made in two ways: values are permuted within genes, or get random signs about the
#'   medians ([pca_choose_k()]). Batches and covariates are removed from them as from the data. For counts, the
#'   components are computed from Pearson residuals of a negative binomial model with independent genes, and the
#'   comparison data are drawn from this model. If there are more than half a million values, the test uses a random
#'   selection of at least 200 genes.
#'
#' @section Permutations for pairs: By default, there are 19 permutations. If none of them contains a pair as good as
#'   the best pair, there are 99, and then 999, as long as these take at most a minute on one core. There is no test if
#'   19 permutations take more than 20 minutes. The p-values are as valid as for a fixed number of permutations. If
#'   there is a batch, information is computed and classes are permuted within batches.
#'
#' @section Method of the network: We compared nine estimators and five methods on simulated networks of 100 to 300
#'   genes with 50 to 2,000 samples (`inst/bench/network-estimators.R`). MRNET with Spearman's correlation ranked true
#'   edges best. With 200 samples, its area under the precision-recall curve was 0.72, compared with 0.66 for five bins
#'   and 0.61 for nearest neighbours. It is the default for up to 1,000 genes. For more genes, the default is ARACNE,
#'   which is faster. Genotypes and other levels are counted (`"empirical"`).
#'
#' @section Number of edges: All edges must be significant in the test of [mi_network()], adjusted for all pairs by the
#'   method of Benjamini and Hochberg. With hundreds of samples, nearly all pairs are significant, because all genes
#'   depend weakly on each other. With `edges = "auto"`, only the edges with the largest weights are kept. Their number
#'   is the number of edges that ARACNE finds, which removes edges that a third gene explains. In the simulated
#'   networks, 80 % of these edges were true with 200 samples or more, and half of them with 50 samples. `edges = Inf`
#'   keeps all significant edges. With `fdr = 1` in addition, the result is the complete ranking.
#'
#' @section Hidden batches: `gene_components()` searches for two groups of samples along the leading components, after
#'   removing class, batch and covariates. Two conditions must hold. At least 80 % of the variance along the direction
#'   is between the groups (64 % for a normal distribution). The direction explains at least a quarter of the variance
#'   of a tenth of the genes, and 8 % of the variance of the median gene. The second condition excludes single
#'   regulators, which affect only their targets. As a consequence, a batch that affects fewer than half of the genes is
#'   not detected. `hidden` contains the `score` and the `group` of each sample, and a warning explains what to do.
#'   Biological groups cannot be distinguished from batches. In simulations with two classes that were not specified,
#'   groups were reported in 9 to 13 % of data sets, and mostly corresponded to the classes. Without classes, they were
#'   reported in 2 % of data sets (`inst/bench/workflow-levels.R`).
#'
#' @section Classes and components: The element `apart` of `gene_components()` describes the component on which the
#'   classes differ most. Without batches and covariates, the p-value is from an analysis of variance, adjusted for the
#'   number of components. With batches or covariates, the proportion of variance is the part that the class explains in
#'   addition to them. The p-value is the proportion of `permutations` of the class within batches in which any
#'   component has at least this proportion. The components and the adjusted data do not depend on the class.
#'
#' @param x a result of [gene_quality()], or data for it.
#' @param class one category per sample, if `x` is data.
#' @param k the number of components, by default at most 10. For `estimator = "ksg"`, the number of neighbours.
#' @param leading the number of components that are used for outliers and hidden batches. The default is the number of
#'   significant components, and at least two.
#' @param bins the number of bins of equal frequency. The default is 3, or 2 for pairs with fewer than 100 samples.
#'   Levels are not binned.
#' @param top the number of pairs to return.
#' @param permutations the number of permutations.
#' @param method,estimator see [mi_network()] and [mi_matrix()]; for `"auto"`, see Method of the network.
#' @param fdr the false discovery rate of edges; 1 for no test.
#' @param edges `"auto"` or the maximum number of edges; see Number of edges.
#' @param genes for the network: names of genes, or their number. Genes are selected by their information about the
#'   class or, without a class, by their spread. `NULL`: as many genes as `memory` allows.
#' @param targets for the network: names or numbers of genes. Pairs without any of these genes are not tested.
#' @param run see [weft_run()]. `memory` is the maximum size in bytes of matrices of all pairs of genes. The default is
#'   60 % of the free memory.
#' @param seed a whole number. By default, random numbers depend on R's generator.
#' @param ... must be empty; the functions stop with an error if there are other arguments.
#' @return `gene_components()` returns a result of [pca()] with these additional elements: `leading`; `choice` (if
#'   `leading` was not given), whose `k` is the number of significant components; `apart` (if there is a class), with
#'   `best` (the number of the component), `share`, `p` and `permutations`; `confounding`, as in [gene_quality()]; and
#'   `hidden` (if there are hidden groups), with `score`, `group`, `share` (of the variance), `genes` (the proportion of
#'   affected genes) and `split` (the proportion of the variance of the score between the groups).
#'
#'   `gene_pairs()` returns a result of [mi_pairs()]. `gene_mi_network()` returns a result of [mi_network()] with the
#'   attributes `fdr`, `cut` (the minimum information of an edge) and `limited` (a sentence, if genes were excluded
#'   because of `memory`).
#' @seealso [gene_network()], [gene_ranking()], [gene_clusters()], [gene_bayes()], [gene_outliers()]
#' @name gene_steps
#' @examples
#' e <- weft_example("expression", n = 80, p = 30)
#' q <- gene_quality(e$x, e$class, e$batch)
#' gene_components(q)$leading
#' gene_mi_network(q)
NULL

#' @rdname gene_steps
#' @export
gene_mi_network <- function(x, class = NULL, method = c("auto", "mrnet", "aracne", "clr", "mrnetb", "relnet"),
                            estimator = "auto", k = 3, fdr = 0.01, edges = "auto", genes = NULL, targets = NULL,
                            run = NULL, ...) {
  run <- as_run(run)
  check_dots(...)
  q <- checked_data(x, class)
  method <- check_choice(method, c("auto", "mrnet", "aracne", "clr", "mrnetb", "relnet"), "method")
  fdr <- check_number(fdr, "fdr", min = 0, max = 1)
  if (!identical(edges, "auto")) edges <- check_number(edges, "edges", min = 1)
  started <- proc.time()[[3L]]
  estimator <- check_text(estimator, "estimator")
  if (estimator == "auto") estimator <- if (q$kind == "levels") "empirical" else "spearman"
  whole <- identical(edges, "auto") && method %in% c("auto", "aracne") && !estimator %in% count_estimators &&
    network_backend("aracne", many_features, run)$name == "cpu"
  chosen <- network_genes(q, genes, run$memory, whole)
  data <- q$x[, chosen, drop = FALSE]
  aims <- kept_genes(q, targets, colnames(data), "targets")
  if (!is.null(targets)) targets <- match(aims$names, colnames(data))
  if (method == "auto") method <- if (ncol(data) <= 1000L) "mrnet" else "aracne"
  counted <- estimator %in% count_estimators
  m <- mi_matrix(data, estimator = estimator, k = k, bins = if (counted && q$kind == "expression") 3, run = run)
  if (!counted) m <- less_taken_out(m, q)
  significant <- if (fdr < 1) significant_pairs(m, fdr, run$threads, targets)
  cut <- significant$information %||% NA_real_
  ran <- network_backend(method, ncol(m), run)
  if (identical(edges, "auto") && is.null(targets) && works_over(m, method, significant, ran$name)) {
    how <- list(method = method, eps = 0, keep = 1, least = rounding_of(m))
    net <- aracne_over(m, significant, how, run_control(ran$name, run$threads, run$progress, colnames(m),
                                                        "Building the network"))
    return(set_attributes(net, c(run_record(match.call(), ran, started, method = method, fdr = fdr),
                                 list(cut = cut, limited = attr(chosen, "limited")))))
  }
  control <- pass_control(run$threads)
  # `net` has one name here, so that a matrix of billions of cells is cut in place
  network <- function(method, most) {
    net <- mi_network(m, method, threshold = if (method == "relnet") 0, run = run)
    if (!is.null(significant)) net <- cut_to_significant(net, m, significant, control)
    net <- of_targets(net, targets)
    threshold <- if (most < 1) Inf
                 else if (is.finite(most)) .Call(C_weft_mi_greatest, net, net, 0, most, control)
                 else 0
    if (threshold > 0) net <- .Call(C_weft_mi_cut_edges, net, net, -Inf, threshold, control)
    attributes(net) <- c(attributes(net), list(fdr = fdr, cut = cut, limited = attr(chosen, "limited"),
                                               targets = targets, lost = aims$lost))
    net
  }
  few <- method %in% c("aracne", "relnet")
  # counted before the network is made: at no time are there two of them
  if (identical(edges, "auto")) edges <- if (few) Inf else count_edges(network("aracne", Inf))
  net <- network(method, edges)
  attr(net, "seconds") <- proc.time()[[3L]] - started
  net
}

# Correlations of values that batches and covariates were taken out of are tested as those of fewer samples.
less_taken_out <- function(m, q) {
  part <- if (q$kind == "expression") nuisance_design(q)
  if (!is.null(part)) attr(m, "test")$n <- attr(m, "test")$n - qr(part)$rank
  m
}

# Information and weights are two matrices of p x p doubles; a third is left for what else a method, and R, may need.
# over: weights take the place of the information (works_over()), and a quarter of a matrix is left.
network_genes <- function(q, genes, memory, over = FALSE) {
  if (is.character(genes)) return(chosen_columns(genes, colnames(q$x), "genes"))
  candidates <- representatives(q)
  p <- length(candidates)
  limit <- memory_limit(memory)
  each <- if (over && limit > 10 * many_features^2 && p > many_features) 10 else 24
  most <- floor(sqrt(limit / each))
  count <- if (is.null(genes)) p else check_number(genes, "genes", min = 3, whole = TRUE)
  if (!is.null(genes) && min(count, p) > most) {
    weft_abort("memory", sprintf("A network of %.0f genes needs about %s of memory; %s may be used.", min(count, p),
                                 bytes_text(each * min(count, p)^2), bytes_text(limit)),
               i = "Lower `genes`, or leave it out to take as many as fit.")
  }
  count <- min(count, most, p)
  if (count == p) return(candidates)
  leading <- leading_genes(q, ncol(q$x))
  chosen <- sort(leading[leading %in% candidates][seq_len(count)])
  if (is.null(genes)) attr(chosen, "limited") <- sprintf(
    "The network is of the %s genes that %s: all pairs of %s genes would take %s of memory, and %s may be used.",
    format(count, big.mark = ","), if (is.null(q$class)) "vary most" else "differ most clearly between classes",
    format(p, big.mark = ","), bytes_text(each * p^2), bytes_text(limit)
  )
  chosen
}

# The genes that differ most clearly between classes, or vary most.
leading_genes <- function(q, count, ranking = NULL) {
  if (!is.null(q$class)) {
    ranking <- ranking %||% gene_ranking(q, run = weft_run(progress = FALSE))
    return(match(utils::head(ranked_genes(ranking), count), colnames(q$x)))
  }
  order(-column_spreads(q$x)$mad, seq_len(ncol(q$x)))[seq_len(count)]
}

memory_limit <- function(memory) {
  if (!is.null(memory)) return(check_number(memory, "memory", min = 1e6))
  free <- host_free()
  if (free > 0) 0.6 * free else 4e9
}
