# The steps of the workflow between the checks and the Bayesian network: each takes what gene_quality() returned, or
# data, and returns what the system behind it returns.

#' Steps of the workflow
#'
#' Each is one part of [gene_network()], with defaults for expression data. They take what [gene_quality()] returned, or
#' the data that it takes.
#'
#' * `gene_components()`: principal components of the scaled genes ([pca()]), and how many of them stand out from what
#'   data without dependence between genes have (of more than half a million values by as many genes, 200 at least, as
#'   have them, chosen at random): values permuted within genes, or with random signs about the medians as
#'   [pca_choose_k()] draws them, and batches and covariates taken out as of the data. Of counts they are components of
#'   Pearson residuals under a negative binomial model of independent genes, from which the sets to compare with are
#'   drawn.
#' * `gene_pairs()`: pairs of genes that together say what neither says alone ([mi_pairs()] by interaction), with a
#'   permutation test of the whole search: 19 permutations, 99 where none of these is as good as the best pair, and 999
#'   where none of those is, as far as 99 or 999 take at most a minute of one core; none only where 19 would take more
#'   than 20 minutes. The p-values hold as those of a fixed number do. With a batch, information is counted, and classes
#'   are permuted, within batches.
#' * `gene_mi_network()`: the network of mutual information ([mi_matrix()], [mi_network()]), cut to the edges whose
#'   information is significant at a false discovery rate.
#'
#' @section Which network: On simulated networks of 100 to 300 genes with 50 to 2,000 samples, MRNET on Spearman's
#'   correlation ranked true edges best of nine estimators and five methods (`inst/bench/network-estimators.R`): its
#'   area under the precision-recall curve was 0.72 with 200 samples, that of five bins 0.66, that of nearest neighbours
#'   0.61. It is the default for up to 1,000 genes; for more, the default is ARACNE, which takes less time. Genotypes
#'   and other levels are counted (`"empirical"`).
#'
#' @section Which edges: First, edges must be significant: the test is that of [mi_network()], with Benjamini and
#'   Hochberg's threshold over all pairs of genes. With hundreds of samples, nearly every pair passes, as everything
#'   depends a little on everything else. `edges = "auto"` therefore keeps as many of the heaviest edges as ARACNE
#'   finds, which drops those that a third gene explains. On the simulated networks, eight in ten of these edges were
#'   true with 200 samples or more, and half with 50. `Inf` keeps all that are significant, and together with `fdr =
#'   1` the whole ranking.
#'
#' @param x what [gene_quality()] returned, or data for it.
#' @param class one category per sample, when `x` is data.
#' @param k the number of components, by default at most 10; for `estimator = "ksg"`, the number of neighbours.
#' @param leading how many components to look at further, for outliers and hidden batches; by default those that stand
#'   out from data without dependence between genes, and at least two.
#' @param bins the number of bins of equal frequency; by default 3, but 2 for pairs with fewer than 100 samples.
#'   Levels stay as they are.
#' @param top how many pairs to keep.
#' @param permutations number of permutations; for pairs see below.
#' @param method,estimator see [mi_network()] and [mi_matrix()]; `"auto"`: see below.
#' @param fdr false discovery rate of edges; 1 for no test.
#' @param edges `"auto"`, or the number of heaviest edges to keep; see below.
#' @param genes for the network: names of genes, or how many to take: those with the most information about the class
#'   or, without one, with the largest spread. `NULL`: as many as `memory` allows.
#' @param targets for the network: names or numbers of genes; pairs without any of them are not tested and are no edges.
#' @param run see [weft_run()]. `memory` is the largest number of bytes that matrices of all pairs of genes may take; by
#'   default 60 % of what is free.
#' @param seed a whole number; by default the draws come from R's generator.
#' @param ... not used: any further argument is an error.
#' @section Hidden batches: `gene_components()` looks along the leading components, with class, batch and covariates
#'   taken out, for a direction in which samples fall into two groups (at least 80 % of its variance is between them; a
#'   normal distribution gives 64 %) and which explains a quarter of the variance of a tenth of the genes, and 8 % of
#'   that of the median one: a regulator that is on in some samples and off in others separates the values of its
#'   targets, and leaves most genes as they are. A batch that moves fewer than half of the genes is therefore not
#'   detected. `hidden` then has the samples' `score` and `group`, and a warning says what to do. Groups of biological
#'   origin look the same: groups are reported for 9 to 13 in 100 simulated sets with two classes that were not given,
#'   mostly these classes; without classes, they are reported for 2 in 100 (`inst/bench/workflow-levels.R`).
#'
#' @section Classes along components: `apart` of `gene_components()` has the component on which classes differ most.
#'   Without batches and covariates its p-value is of an analysis of variance, corrected for the number of components.
#'   With them, classes are compared within batches: the share of the variance is what the class explains beyond
#'   batches and covariates, and the p-value is the share of `permutations` of the class within batches in which any
#'   component has as great a share. Neither the components nor what was taken out of the data depend on the class.
#'
#' @return `gene_components()`: as [pca()], with `leading`, `choice`, where it was not given (its `k` is how many stand
#'   out), with a class `apart` (`best`, the number of the component, `share`, `p` and `permutations`), `confounding`
#'   (a data frame as [gene_quality()] has it, with components that follow sequencing depth), and, where there are any,
#'   `hidden` groups (`score`, `group`, `share` of the variance, share of `genes`, `split`: share of the score's
#'   variance between the groups); `gene_pairs()`: as [mi_pairs()]; `gene_mi_network()`: as [mi_network()], with
#'   attributes `fdr`, `cut`, the information that an edge must exceed, and `limited`, a sentence where `memory` left
#'   genes out.
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
