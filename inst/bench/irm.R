# Seconds per sweep of the blocked sampler on random graphs of 1e5 x 1e5 nodes, and the time to the planted partition of
# graphs of 1000 x 1000 and 10,000 x 10,000 nodes, seed by seed. A sweep is the slope between two runs, so that building
# the graph does not count. Rscript irm.R [sweeps|planted ...] [cuda], sweeps and planted by default.
library(weft)
source("inst/bench/bench.R")
machine_line()
sweep_seconds <- function(graph, k, threads) {
  run <- function(sweeps) system.time(irm(graph, chains = 1, sweeps = sweeps, max_clusters = k, seed = 1,
                                          run = weft_run(threads = threads),
                                          control = list(split_merge = FALSE)))[["elapsed"]]
  (run(7) - run(2)) / 5
}
what <- setdiff(commandArgs(TRUE), "cuda")
if (!length(what)) what <- c("sweeps", "planted")
for (links in if ("sweeps" %in% what) c(1e6, 1e7)) {
  set.seed(1)
  graph <- data.frame(sample.int(1e5, links, TRUE), sample.int(1e5, links, TRUE))
  for (k in c(128, 256, 512)) {
    cat(sprintf("%.0e links, K = %d: %.3f s per sweep on 1 thread, %.3f on 2\n", links, k, sweep_seconds(graph, k, 1),
                sweep_seconds(graph, k, 2)))
  }
}
if (!"planted" %in% what) quit()
# Elapsed and processor seconds of whole calls, the first sweep within 10 nats of the planted partition, and how many
# are.
backend <- if ("cuda" %in% commandArgs(TRUE)) "cuda" else "cpu"
planted <- function(n, k, density, seeds, chains, sweeps) {
  seconds <- hit <- numeric()
  for (seed in seeds) {
    made <- irm_sample(n, n, k, density, seed = seed)
    target <- irm_log_posterior(made$A, made$row_cluster, made$col_cluster) - 10
    time <- system.time(fit <- irm(made$A, chains = chains, sweeps = sweeps, seed = seed,
                                   run = weft_run(backend, threads = 2)))
    first <- which(apply(fit$log_posterior, 1, max) >= target)[1]
    seconds <- c(seconds, time[[3]])
    hit <- c(hit, !is.na(first))
    cat(sprintf(paste("%d x %d, K = %d, seed %d: %.2f s, %.2f s of processors; within 10 nats at sweep %d of %d;",
                      "best %+.1f nats from planted\n"),
                n, n, k, seed, time[[3]], time[[1]] + time[[2]], first, sweeps, max(fit$log_posterior) - target - 10))
  }
  cat(sprintf("%d of %d seeds on the %s; slowest %.2f s, median %.2f\n", sum(hit), length(hit), backend, max(seconds),
              stats::median(seconds)))
}
if (file.exists("/proc/loadavg")) cat("load", readLines("/proc/loadavg"), "\n")
if (backend == "cuda") invisible(irm(diag(10), chains = 1, sweeps = 1, run = "cuda"))
planted(1000, 10, 0.1, 1:20, chains = 2, sweeps = 40)
planted(10000, 50, 0.01, 1:5, chains = 1, sweeps = 50)
