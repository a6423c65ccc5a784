# The Bayesian network of the workflow: on a few genes, with the candidates that mutual information suggests.

#' A Bayesian network of the selected genes
#'
#' Shows which gene may drive which, as far as data can tell. It calls [bn_learn()] on a few genes, whose candidate
#' parents are the genes with which they share the most information; the network of mutual information can serve as
#' prior knowledge.
#'
#' `score = "auto"` is `"bge"`, the linear Gaussian score, on normal scores (ranks turned into quantiles of the normal
#' distribution) for numbers, and `"bdeu"` for levels. Other scores of categories take numbers in three bins of equal
#' frequency.
#'
#' @section How certain the edges are: Most genes are not in the network, so that a posterior, which assumes that
#'   there is nothing else, is too confident. Probabilities are therefore means over posteriors of `resample` random
#'   halves of the samples. The network that is returned as `dag` has the edges whose two directions together come to
#'   at least one half, each in its likelier direction. The table compares the mean probability that was stated with
#'   the share that was right, for edges with a stated probability of .8 or more and for the likelier direction of
#'   true edges: 4 to 6 sets for each network and each number of rows from 100 to 1,000, under a prior that is uniform
#'   over orders (`inst/bench/bn-calibration.R` and `.csv`, with more ways):
#'
#'   | data | way | Brier score | edges: stated | right | directions: stated | right |
#'   |---|---|---|---|---|---|---|
#'   | Gaussian, all nodes seen | bge | .016 | .97 | .90 | .91 | .88 |
#'   | | bge, halves | .017 | .94 | .96 | .83 | .87 |
#'   | Gaussian, a quarter of the nodes hidden | bge | .021 | .97 | .77 | .89 | .88 |
#'   | | bge, halves | .018 | .93 | .85 | .82 | .89 |
#'   | Gaussian, half of the nodes hidden | bge | .027 | .95 | .57 | .84 | .76 |
#'   | | bge, halves | .020 | .93 | .81 | .76 | .80 |
#'   | Gaussian, three quarters of the nodes hidden | bge | .020 | .95 | .47 | .79 | .78 |
#'   | | bge, halves | .015 | .90 | .58 | .70 | .78 |
#'   | expression, half or nine tenths of the genes hidden | bic, three bins | .035 | .96 | .86 | .94 | .89 |
#'   | | bge | .025 | .94 | .90 | .90 | .93 |
#'   | | bge, halves | .022 | .91 | .98 | .85 | .94 |
#'   | Child, Insurance and Alarm, all seen | bic | .035 | .96 | .81 | .90 | .77 |
#'   | | bdeu | .029 | .97 | .91 | .93 | .87 |
#'   | | bdeu, halves | .030 | .94 | .94 | .82 | .84 |
#'   | Child and Insurance, half hidden | bic | .054 | .93 | .54 | .85 | .77 |
#'   | | bdeu | .050 | .94 | .61 | .84 | .79 |
#'   | | bdeu, halves | .043 | .90 | .73 | .77 | .85 |
#'
#'   With halves, directions were on average right at least as often as stated. Where nodes are hidden in a linear
#'   network or one of categories, even the halves are too confident about edges: two genes with a hidden common cause
#'   look like parent and child. With three quarters hidden, two in five of the edges to which halves give a
#'   probability of .8 or more do not exist. Do not trust directions that a score of categories gives for numbers in
#'   bins: in linear networks, their stated probabilities were .7 to .9, but they were right only half of the time,
#'   with halves or without.
#'
#'   The network is nearer to the truth, too: its mean distance between equivalence classes was 12.7 (20 of 100 genes,
#'   200 samples) and 11.7 (20 of 200 genes, 500 samples) over 6 sets each, against 18.8 and 15.3 for the best graph
#'   by `"bic"`, and 26.7 and 27.3 for that by `"bge"`.
#'
#' @param x what [gene_quality()] returned, or data for it.
#' @param class one category per sample, when `x` is data.
#' @param genes names of genes, or how many: those with the most information about the class or, without one, with the
#'   most edges in `network`, or with the largest spread.
#' @param network what [gene_mi_network()] returned: its information determines the candidates; with `NULL` it is
#'   computed for the genes.
#' @param ranking what [gene_ranking()] returned, if there is one.
#' @param candidates how many candidate parents per gene; other genes can be added one at a time.
#' @param prior weight from 0 to 1 of `network` as prior knowledge: the strongest edge has prior odds that correspond
#'   to a probability of 0.5 + `prior` / 2 (at most 0.99), and a missing edge those of 0.5; 0 for no prior knowledge.
#' @param iterations see [bn_learn()].
#' @param resample how many halves of the samples, see below; NULL: 20, but none for `target = "max"`.
#' @param control a list of settings that are rarely needed:
#'   * `score`, `max_parents`, `chains`, `target`, and those of [bn_learn()]: see there.
#' @param ... further arguments of [bn_learn()].
#' @param seed see [bn_learn()].
#' @param run see [weft_run()].
#' @return As [bn_learn()], with `genes` and `data` (the data frame that it was learned from). Except for `"max"`, `dag`
#'   is the network described below, also called `average`, and `score` its score; the best single graphs are in `dags`.
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
