# Exact edge posteriors against long Markov chains on the same table of scores, under a uniform prior over orders (33
# nodes at most) or over graphs (27 on a device, 24 on the CPU).
#   Rscript studies/bn-orders.R [nodes = 33] [backend = cuda] [chains = 64] [iterations = 100000] [rows = 300]
#     [prior = order | dag] [seed = 1]
# Ladders of chains are independent, so that the spread of their means gives the error of the mean over all; the ratio
# of difference and error follows Student's t where an edge is met often enough in every ladder. Six or eight ladders
# are too few for that: the mean of an edge that some of them hardly ever meet is skewed, and where it is low, so is
# its error. Whether the chains agree with each other is told by the same comparison of one half of the ladders with the
# other, which the exact values have no part in. The data come from a random graph of binary nodes.
suppressPackageStartupMessages(library(weft))
given <- commandArgs(TRUE)
argument <- function(k, default) if (length(given) >= k) given[k] else default
p <- as.integer(argument(1, 33))
backend <- argument(2, "cuda")
ladders <- as.integer(argument(3, 64))
iterations <- as.numeric(argument(4, 1e5))
n <- as.integer(argument(5, 300))
prior <- argument(6, "order")
seed <- as.numeric(argument(7, 1))
target <- if (prior == "dag") "uniform" else "sum"

set.seed(p)
x <- matrix(0L, n, p, dimnames = list(NULL, sprintf("n%02d", seq_len(p))))
for (j in seq_len(p)) {
  parents <- if (j > 1) sample(j - 1L, min(j - 1L, sample(0:2, 1)))
  pattern <- drop(x[, parents, drop = FALSE] %*% 2^(seq_along(parents) - 1)) + 1
  x[, j] <- rbinom(n, 1, runif(2^length(parents), 0.15, 0.85)[pattern])
}
table <- bn_scores(as.data.frame(x), max_parents = 3, keep = "all")
seconds <- system.time(exact <- bn_exact(table, posterior = prior, run = backend))[[3]]
cat(sprintf("%d nodes, %d parent sets: exact in %.2f s (%s)\n", p, length(table$score), seconds, backend))
seconds <- system.time(fit <- bn_learn(table, target = target, iterations = iterations, chains = ladders, seed = seed,
                                       run = if (target == "sum") backend else "cpu"))[[3]]
native <- weft:::bn_native_table(fit$table)
edges <- vapply(seq_len(ladders), function(ladder) {
  own <- fit$sampled[, , ladder, drop = FALSE]
  as.vector(.Call(weft:::C_weft_bn_edge_means, native, own, weft:::run_control("cpu", 1, FALSE))$edges)
}, double(p * p))

off <- as.vector(row(exact$edges) != col(exact$edges))
truth <- as.vector(exact$edges)
open <- off & truth > 1e-3 & truth < 1 - 1e-3
variance <- apply(edges, 1L, stats::var)
ratio <- ((rowMeans(edges) - truth) / sqrt(variance / ladders))[open]
half <- seq_len(ladders) <= ladders %/% 2
apart <- rowMeans(edges[, half]) - rowMeans(edges[, !half])
error <- sqrt(apply(edges[, half], 1L, stats::var) / sum(half) + apply(edges[, !half], 1L, stats::var) / sum(!half))
draws <- (truth * (1 - truth) / variance)[open]
saved <- dim(fit$sampled)[2L]
# of the indicators of each edge: variance of the mean over what it would be if draws were independent
r_hat <- sqrt(1 + variance / pmax(rowMeans(edges * (1 - edges)), 1e-12))[open]
line <- function(what, ratio, degrees) {
  quantiles <- vapply(c(0.05, 0.01, 0.001), function(share) {
    sprintf("%d (%.1f)", sum(abs(ratio) > qt(1 - share / 2, degrees)), share * length(ratio))
  }, "")
  cat(sprintf("%s: mean square %.2f (%.2f), beyond 95 %%: %s, 99 %%: %s, 99.9 %%: %s, greatest %.1f\n", what,
              mean(ratio^2), degrees / (degrees - 2), quantiles[1L], quantiles[2L], quantiles[3L], max(abs(ratio))))
}
cat(sprintf("%d ladders of %.0f iterations, %d draws each: %.1f s; %d of %d edges between .001 and .999\n", ladders,
            iterations, saved, seconds, sum(open), sum(off)))
cat(sprintf("R-hat of the score %.4f; of edges: median %.4f, greatest %.4f; %.0f to %.0f independent draws a ladder\n",
            fit$diagnostics$r_hat, stats::median(r_hat), max(r_hat), min(draws), max(draws)))
cat(sprintf("greatest difference %.5f (edges near 0 and 1: %.5f)\n", max(abs(rowMeans(edges) - truth)[open]),
            max(abs(rowMeans(edges) - truth)[off & !open], 0)))
line("ladders against exact, ratios and their expectation", ratio, ladders - 1)
line("one half of the ladders against the other", (apart / error)[open], ladders - 2)
rare <- truth[open] < 0.01 | truth[open] > 0.99
if (any(!rare)) line("ladders against exact, edges between .01 and .99", ratio[!rare], ladders - 1)
if (any(rare)) line("ladders against exact, the rarer ones", ratio[rare], ladders - 1)
# what six ladders alone would have said, from the same chains
groups <- split(seq_len(ladders), (seq_len(ladders) - 1L) %/% 6L)
groups <- groups[lengths(groups) == 6L]
if (length(groups)) {
  beyond <- vapply(groups, function(k) {
    few <- edges[open, k, drop = FALSE]
    sum(abs(rowMeans(few) - truth[open]) > qt(0.9995, 5) * sqrt(apply(few, 1L, stats::var) / 6))
  }, 0)
  cat(sprintf("%d groups of six ladders: %.1f edges beyond 99.9 %% on average (%.1f), %d at most\n", length(groups),
              mean(beyond), sum(open) / 1000, max(beyond)))
}
