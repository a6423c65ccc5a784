# Exact edge posteriors against long Markov chains on the same table of scores, under a uniform prior over orders (33
# nodes at most) or over graphs (22, on the CPU).
#   Rscript inst/bench/bn-orders.R [nodes = 33] [backend = cuda] [runs = 8] [iterations = 100000] [rows = 300]
#     [prior = order | dag]
# Runs are independent (seeds 1, 2, ...), so their spread gives the Monte Carlo error of their mean; with few runs the
# ratio of difference and error follows Student's t. The data come from a random graph of binary nodes.
suppressPackageStartupMessages(library(weft))
given <- commandArgs(TRUE)
argument <- function(k, default) if (length(given) >= k) given[k] else default
p <- as.integer(argument(1, 33))
backend <- argument(2, "cuda")
runs <- as.integer(argument(3, 8))
iterations <- as.numeric(argument(4, 1e5))
n <- as.integer(argument(5, 300))
prior <- argument(6, "order")
target <- if (prior == "dag") "uniform" else "sum"

set.seed(p)
x <- matrix(0L, n, p, dimnames = list(NULL, sprintf("n%02d", seq_len(p))))
for (j in seq_len(p)) {
  parents <- if (j > 1) sample(j - 1L, min(j - 1L, sample(0:2, 1)))
  pattern <- drop(x[, parents, drop = FALSE] %*% 2^(seq_along(parents) - 1)) + 1
  x[, j] <- rbinom(n, 1, runif(2^length(parents), 0.15, 0.85)[pattern])
}
table <- bn_scores(as.data.frame(x), max_parents = 3, keep = "all")
seconds <- system.time(exact <- bn_exact(table, posterior = prior, backend = backend))[[3]]
cat(sprintf("%d nodes, %d parent sets: exact in %.2f s (%s)\n", p, length(table$score), seconds, backend))
seconds <- system.time(edges <- vapply(seq_len(runs), function(seed) {
  fit <- bn_learn(table, target = target, iterations = iterations, seed = seed, backend = backend)
  fit$edges
}, exact$edges))[[3]]
off <- row(exact$edges) != col(exact$edges)
mean <- apply(edges, 1:2, mean)[off]
error <- apply(edges, 1:2, sd)[off] / sqrt(runs)
truth <- exact$edges[off]
open <- truth > 1e-3 & truth < 1 - 1e-3 # where a chain of this length can see both
ratio <- (mean - truth)[open] / pmax(error[open], 1e-6)
cat(sprintf("%d runs of %.0f iterations: %.1f s; %d of %d edges between .001 and .999\n", runs, iterations, seconds,
            sum(open), sum(off)))
cat(sprintf("greatest difference %.4f (all edges %.4f), mean of squared differences over errors %.2f (%.2f expected)\n",
            max(abs(mean - truth)[open]), max(abs(mean - truth)), mean(ratio^2), (runs - 1) / (runs - 3)))
cat(sprintf("beyond the 99.9 %% quantile of Student's t: %d of %d (%.1f expected), greatest ratio %.1f\n",
            sum(abs(ratio) > qt(0.9995, runs - 1)), sum(open), sum(open) / 1000, max(abs(ratio))))
