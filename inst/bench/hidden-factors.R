# What covariates = "components" of gene_quality() does to networks: average precision of the ranking, and the share of
# the pairs at a false discovery rate of .05 that the moral graph does not join, with and without it, where no, one or
# three hidden factors move 60 % of the genes; and how many pairs inside and outside of the moral graph follow a
# component that moves most genes (p_given_components above .05).
# Usage: Rscript hidden-factors.R [sets] [genes and samples]
library(weft)

args <- as.integer(commandArgs(TRUE))
sets <- if (length(args)) args[1] else 4L
p <- if (length(args) > 1) args[2] else 100L

# Up to two regulators of each gene among those before it; linear effects, all variances alike.
simulate <- function(factors) {
  truth <- matrix(FALSE, p, p)
  x <- matrix(stats::rnorm(p * p), p, dimnames = list(sprintf("s%d", seq_len(p)), sprintf("g%d", seq_len(p))))
  for (gene in seq_len(p)) {
    if (gene > 3) truth[sample(gene - 1L, sample(0:2, 1L, prob = c(1, 2, 1))), gene] <- TRUE
    own <- which(truth[, gene])
    effect <- drop(x[, own, drop = FALSE] %*% (sample(c(-1, 1), length(own), TRUE) * stats::runif(length(own), 0.5, 1)))
    if (length(own)) x[, gene] <- effect / stats::sd(effect) + stats::runif(1L, 0.4, 0.8) * x[, gene]
    x[, gene] <- as.vector(scale(x[, gene]))
  }
  loads <- matrix(stats::rnorm(factors * p) * (stats::runif(factors * p) < 0.6), factors, p)
  list(x = x + 0.7 * matrix(stats::rnorm(p * factors), p, factors) %*% loads, truth = truth)
}

judged <- function(made, covariates) {
  fit <- suppressWarnings(gene_network(
    made$x, covariates = covariates, seed = 1, run = weft_run("cpu", progress = FALSE),
    steps = list(quality = list(transform = "none"), pairs = FALSE, clusters = FALSE, bayes = FALSE, outliers = FALSE)))
  edges <- as.data.frame(fit, "edges")
  at <- cbind(match(edges$from, colnames(made$x)), match(edges$to, colnames(made$x)))
  moral <- made$truth | t(made$truth) | made$truth %*% t(made$truth) > 0
  apart <- row(moral) != col(moral)
  hit <- made$truth[apart][order(-unclass(fit$network)[apart])]
  follows <- if (is.null(edges$p_given_components)) rep(FALSE, nrow(at)) else edges$p_given_components > 0.05
  c(precision = mean((cumsum(hit) / seq_along(hit))[hit]), edges = nrow(at), outside = mean(!moral[at]),
    follow_inside = mean(follows[moral[at]]), follow_outside = mean(follows[!moral[at]]))
}

for (factors in c(0, 1, 3)) for (covariates in list(NULL, "components")) {
  each <- vapply(seq_len(sets), function(set) {
    set.seed(100 * set + factors)
    judged(simulate(factors), covariates)
  }, numeric(5))
  cat(sprintf("%d hidden factors, %-10s", factors, if (is.null(covariates)) "as it is" else covariates),
      sprintf("%s %.3f", rownames(each), rowMeans(each, na.rm = TRUE)), "\n")
}
