# The Bayesian network of the workflow: on a few genes, with the candidates that mutual information suggests.

#' Learn a Bayesian network of selected genes
#'
#' `gene_bayes()` learns a Bayesian network of a few genes, with a probability for each edge and each direction. The
#' shortest call is `gene_bayes(q)`. It calls [bn_learn()]. The candidate parents of a gene are the genes with which it
#' shares the most information. The network of mutual information can also be used as prior knowledge. An edge is a
#' dependence given the other genes of the network; hidden common causes are not modelled.
#'
#' With `score = "auto"`, numeric data are converted to normal scores (ranks converted to quantiles of the normal
#' distribution) and use the linear Gaussian score `"bge"`. Levels use `"bdeu"`. If you choose another score for
#' categories, numeric data are divided into three bins of equal frequency.
#'
#' @section Certainty of edges: A posterior assumes that all relevant variables are in the network. Most genes are not,
#'   so the posterior is too confident. Therefore, the probabilities are means over the posteriors of `resample` random
#'   subsamples of half of the samples. `dag` contains the edges whose two directions together have a probability of at
#'   least one half, in the more probable direction. The table compares the stated probabilities with the proportion
#'   that was correct, for edges with a stated probability of at least 0.8 and, for the directions, the more probable
#'   direction of true edges. An edge is correct if the network has a path from one node to the other on which all
#'   nodes between them are hidden. The column dependent contains the proportion of edges whose nodes are dependent
#'   given the other nodes in the data, which is what an edge means. There were 4 data sets for each network and each
#'   number of samples from 100 to 1,000, with a uniform prior over orders (`inst/bench/bn-calibration.R` and `.csv`,
#'   which contain more methods):
#'
#'   | data | way | Brier score | edges: stated | correct | dependent | directions: stated | correct |
#'   |---|---|---|---|---|---|---|---|
#'   | Gaussian, all nodes measured | bge | .017 | .98 | .93 | 1.00 | .92 | .84 |
#'   | | bge, subsamples | .018 | .94 | .96 | 1.00 | .84 | .84 |
#'   | Gaussian, a quarter of the nodes hidden | bge | .021 | .95 | .81 | .99 | .89 | .84 |
#'   | | bge, subsamples | .021 | .93 | .91 | 1.00 | .81 | .84 |
#'   | Gaussian, half of the nodes hidden | bge | .028 | .96 | .80 | .99 | .82 | .79 |
#'   | | bge, subsamples | .025 | .94 | .92 | 1.00 | .74 | .82 |
#'   | Gaussian, three quarters of the nodes hidden | bge | .016 | .93 | .89 | 1.00 | .77 | .77 |
#'   | | bge, subsamples | .016 | .89 | .91 | 1.00 | .71 | .77 |
#'   | sines, squares and steps, all nodes measured | bge | .047 | .92 | .72 | .93 | .73 | .65 |
#'   | | bge, subsamples | .046 | .89 | .80 | .95 | .66 | .64 |
#'   | expression, half to nine tenths of the genes hidden | bge | .036 | .94 | .92 | .98 | .88 | .91 |
#'   | | bge, subsamples | .034 | .91 | 1.00 | 1.00 | .84 | .94 |
#'   | Child, Insurance and Alarm, all measured | bic | .034 | .96 | .78 | .96 | .91 | .77 |
#'   | | bdeu | .026 | .97 | .91 | .97 | .93 | .89 |
#'   | | bdeu, subsamples | .029 | .94 | .93 | .99 | .83 | .85 |
#'   | Child, Insurance and Alarm, half hidden | bic | .090 | .94 | .63 | .98 | .84 | .67 |
#'   | | bdeu | .089 | .94 | .66 | .98 | .84 | .70 |
#'   | | bdeu, subsamples | .084 | .91 | .76 | 1.00 | .77 | .71 |
#'
#'   With subsamples, edges and directions of the linear networks and of expression were correct about as often as
#'   stated, or more often. If nodes are hidden in a network of categories, or effects are not linear, the
#'   probabilities are too high even with subsamples. Read these edges as dependence given these variables: this was
#'   correct for 95 to 100 % of them. If half of the nodes are hidden and effects are not linear, few edges reach 0.8:
#'   without subsamples, 35 % of them were correct, and 85 % join dependent nodes. Do not trust the directions from a
#'   score of categories for numeric data in bins: in linear networks, their stated probabilities were 0.8 on average,
#'   but 60 % of the directions were correct, with or without subsamples.
#'
#'   The network is also closer to the true network. Its mean distance between equivalence classes was 12.7 (20 of 100
#'   genes, 200 samples) and 11.7 (20 of 200 genes, 500 samples) over 6 data sets each. The distance was 18.8 and 15.3
#'   for the best network with the score `"bic"`, and 26.7 and 27.3 with `"bge"`.
#'
#' @param x a result of [gene_quality()], or data for it.
#' @param class one category per sample, if `x` is data.
#' @param genes names of genes, or their number. Genes are selected by their information about the class. Without a
#'   class, they are selected by the number of their edges in `network`, or by their spread.
#' @param network a result of [gene_mi_network()], which determines the candidate parents. If it is `NULL`, mutual
#'   information is computed for the selected genes.
#' @param ranking a result of [gene_ranking()], if available.
#' @param candidates the number of candidate parents per gene. Other genes can be added one at a time.
#' @param prior the weight, from 0 to 1, of `network` as prior knowledge. The strongest edge gets a prior probability of
#'   0.5 + `prior` / 2 (at most 0.99), and a missing edge gets 0.5. With 0, no prior knowledge is used.
#' @param iterations see [bn_learn()].
#' @param resample the number of subsamples; see Certainty of edges. `NULL` means 20, or none for `target = "max"`.
#' @param control a list of rarely used settings:
#'   * `score`, `max_parents`, `chains`, `target` and the settings of [bn_learn()]: see there.
#' @param ... further arguments of [bn_learn()].
#' @param seed see [bn_learn()].
#' @param run see [weft_run()].
#' @return A result of [bn_learn()] with the additional elements `genes` and `data` (the data frame from which the
#'   network was learned). Unless `target` is `"max"`, `dag` is the network described above, which is also the element
#'   `average`, and `score` is its score. `dags` contains the best single networks.
#' @seealso [gene_network()]
#' @export
#' @examples
#' e <- weft_example("expression", n = 100, p = 30)
#' q <- gene_quality(e$x, e$class, e$batch)
#' gene_bayes(q, genes = 8, iterations = 2000)
gene_bayes <- function(x, class = NULL, genes = 20, network = NULL, ranking = NULL, candidates = 8, prior = 0,
                       iterations = 20000, resample = NULL, control = list(), seed = NULL, run = NULL, ...) {
  run <- as_run(run)
  chain <- if (is.list(control)) control[intersect(names(control), names(formals(bn_learn_control)))]
  control <- check_control(control[setdiff(names(control), names(chain))], gene_bayes_control)
  check_dots(..., .control = gene_bayes_control, .allowed = c("max_parents", "top", "start", bn_score_settings),
             .known = bn_other_names)
  q <- checked_data(x, class)
  score <- check_choice(control$score, c("auto", "bge", "bdeu", "k2", "bic", "aic", "bds"), "score")
  target <- check_choice(control$target, c("sum", "uniform", "max"), "target")
  resample <- resample %||% usual_halves(target)
  prior <- check_number(prior, "prior", min = 0, max = 1)
  if (score == "auto") score <- if (q$kind == "levels") "bdeu" else "bge"
  network <- checked_step(network, "network", "network", "gene_mi_network()")
  ranking <- checked_step(ranking, "ranking", "ranking", "gene_ranking()")
  chosen <- bayes_genes(q, genes, network, ranking)
  data <- bayes_data(q$x[, chosen, drop = FALSE], q$kind, score)
  screen <- bayes_candidates(q, chosen, network, check_number(candidates, "candidates", min = 1, whole = TRUE),
                             run$threads)
  knowledge <- if (prior > 0) bayes_prior(chosen, network, prior)
  fit <- bn_learn(data, max_parents = control$max_parents, score = score, iterations = iterations,
                  chains = control$chains, target = target, candidates = screen, prior = knowledge,
                  resample = resample, ..., control = chain, seed = seed, run = run)
  fit$genes <- chosen
  fit$data <- data
  if (is.null(fit$edges)) return(fit)
  fit$average <- fit$dag <- average_network(fit$edges)
  fit$score <- bn_score(data, fit$dag, score, ess = fit$table$ess, gamma = fit$table$gamma, prior = knowledge,
                        interventions = list(...)$interventions, na = list(...)$na %||% "fail")
  fit
}

gene_bayes_control <- function(score = c("auto", "bge", "bdeu", "k2", "bic", "aic", "bds"), max_parents = 3,
                               chains = 4, target = c("sum", "uniform", "max")) as.list(environment())

usual_halves <- function(target = "sum") if (target == "max") 0 else 20

# Edges of posterior one half and more, directions together, from the most certain on; one that would close a cycle is
# left out.
average_network <- function(edges) {
  either <- edges + t(edges)
  dag <- matrix(0L, nrow(edges), ncol(edges), dimnames = dimnames(edges))
  at <- which(either >= 0.5 & (edges > t(edges) | (edges == t(edges) & upper.tri(edges))), arr.ind = TRUE)
  for (k in order(-either[at])) {
    dag[at[k, 1L], at[k, 2L]] <- 1L
    if (length(find_cycle(dag != 0))) dag[at[k, 1L], at[k, 2L]] <- 0L
  }
  dag
}

bayes_genes <- function(q, genes, network, ranking) {
  if (is.character(genes)) return(colnames(q$x)[chosen_columns(genes, colnames(q$x), "genes")])
  count <- min(check_number(genes, "genes", min = 2, max = 4096, whole = TRUE), ncol(q$x))
  if (is.null(q$class) && !is.null(network)) {
    return(most_joined(network, intersect(colnames(q$x), network_features(network)), count))
  }
  leading <- leading_genes(q, ncol(q$x), ranking)
  colnames(q$x)[sort(utils::head(leading[leading %in% representatives(q)], count))]
}

# Of these genes those with the most edges, in either direction, and among equals those with the most weight, in the
# order of columns. A directed network has a row for each regulator and a column for each target. Nothing copies the
# network, which may be most of the memory.
most_joined <- function(network, genes, count) {
  at <- function(sums, names) { # zero for a gene that is not there
    sums <- sums[match(genes, names)]
    ifelse(is.na(sums), 0, sums)
  }
  weight <- at(base::rowSums(network, na.rm = TRUE), rownames(network)) +
    at(base::colSums(network, na.rm = TRUE), colnames(network))
  edges <- if (is_directed(network)) {
    ends <- as.data.frame(network)
    tabulate(match(c(ends$from, ends$to), genes), length(genes))
  } else at(network_degree(network), colnames(network))
  genes[sort(order(-edges, -weight, seq_along(genes))[seq_len(min(count, length(genes)))])]
}

bayes_data <- function(x, kind, score) {
  if (kind == "levels") return(as.data.frame(lapply(as.data.frame(x, optional = TRUE), factor), optional = TRUE))
  if (score == "bge") {
    n <- nrow(x)
    return(as.data.frame(apply(x, 2L, function(v) stats::qnorm(rank(v) / (n + 1))), optional = TRUE))
  }
  as.data.frame(discretize(x, "equalfreq", bins = 3))
}

# A matrix [from, to] of the genes that share the most information with each.
bayes_candidates <- function(q, chosen, network, count, threads) {
  p <- length(chosen)
  if (count >= p - 1L) return(NULL)
  m <- attr(network, "mi")
  at <- match(chosen, colnames(m))
  m <- if (!is.null(m) && !anyNA(at)) unclass(m)[at, at]
       else as.matrix(mi_matrix(q$x[, chosen, drop = FALSE],
                                estimator = if (q$kind == "levels") "empirical" else "spearman",
                                run = weft_run(threads = threads, progress = FALSE)))
  diag(m) <- -Inf
  allowed <- matrix(0, p, p, dimnames = list(from = chosen, to = chosen))
  for (j in seq_len(p)) allowed[order(-m[, j])[seq_len(count)], j] <- 1
  allowed
}

bayes_prior <- function(chosen, network, weight) {
  if (is.null(network)) abort_input("`prior` above 0 needs `network`.")
  w <- as.matrix(network)
  w <- t(w[match(chosen, rownames(w)), match(chosen, colnames(w)), drop = FALSE]) # what regulates is a parent
  w[is.na(w)] <- 0
  R <- 0.5 + weight / 2 * (if (max(w) > 0) w / max(w) else w)
  dimnames(R) <- list(child = chosen, parent = chosen)
  bn_prior(chosen, R = pmin(R, 0.99), hard = FALSE, prior_scale = "logit")
}
