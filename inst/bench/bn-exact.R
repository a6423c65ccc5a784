# Exact answers from all subsets on a device: seconds, and whether they are right.
#   Rscript inst/bench/bn-exact.R [nodes = 30,33,34] [devices = 0] [gigabytes of each device = all]
# The nodes are two halves without edges between them, so that the best network is the two halves' best networks, the
# probability of every edge under a uniform prior over orders is the same as in its half alone, and the number of orders
# is choose(p, p / 2) times the product of both numbers. The halves are computed on the CPU. Subsets that the devices do
# not hold are kept by the host: try it with few gigabytes.
suppressPackageStartupMessages(library(weft))
source("inst/bench/bench.R")
given <- commandArgs(TRUE)
argument <- function(k, default) if (length(given) >= k) given[k] else default
nodes <- as.integer(strsplit(argument(1, "30,33,34"), ",")[[1L]])
devices <- as.integer(strsplit(argument(2, "0"), ",")[[1L]])
limit <- argument(3, "all")
machine_line()
if (limit != "all") options(weft.device_memory = 1e9 * as.numeric(limit))
seconds <- function(work) {
  took <- system.time(value <- work())[["elapsed"]]
  list(value = value, seconds = took)
}

for (p in nodes) {
  data <- random_categories(p, 300)
  half <- rep(1:2, length.out = p)
  near <- outer(half, half, "==") - diag(p)
  dimnames(near) <- list(names(data), names(data))
  scored <- function(columns) {
    bn_scores(data[columns], 3, candidates = near[columns, columns], keep = "all", run = "cpu",
              control = list(plus_one = FALSE))
  }
  alone <- lapply(1:2, function(k) bn_exact(scored(half == k), posterior = "order", run = "cpu"))
  table <- scored(rep(TRUE, p))
  run <- weft_run("cuda", devices = devices)
  best <- seconds(function() bn_exact(table, run = run))
  cat(sprintf("%d nodes, %.1f GB of subsets, %d parent sets: best graph %.2f s, score apart by %.2g\n", p,
              8 * 2^p / 1e9, length(table$score), best$seconds,
              best$value$score - alone[[1L]]$score - alone[[2L]]$score))
  orders <- seconds(function() bn_exact(table, posterior = "order", run = run))
  apart <- vapply(1:2, function(k) {
    max(abs(orders$value$edges[half == k, half == k] - alone[[k]]$edges))
  }, 0)
  cat(sprintf("  with sums over orders %.2f s; edges apart by %.2g, logarithm of the sum by %.2g\n", orders$seconds,
              max(apart), orders$value$log_total - alone[[1L]]$log_total - alone[[2L]]$log_total -
                lchoose(p, sum(half == 1))))
}
