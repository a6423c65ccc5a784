# Seconds a sweep of the blocked sampler on random graphs of 1e5 x 1e5 nodes, and the time to the planted partition of a
# 1000 x 1000 graph, beside graph-tool (Debian's python3-graph-tool) where it is installed. A sweep is the slope between two
# runs, so that building the graph does not count. Rscript irm.R [sweeps|planted ...], both by default.
library(weft)
source(Find(file.exists, c("inst/bench/bench.R", system.file("bench", "bench.R", package = "weft"))))
machine_line()
sweep_seconds <- function(graph, k, threads) {
  run <- function(sweeps) system.time(irm(graph, chains = 1, sweeps = sweeps, max_clusters = k, split_merge = FALSE, seed = 1,
                                          threads = threads))[["elapsed"]]
  (run(7) - run(2)) / 5
}
what <- if (length(commandArgs(TRUE))) commandArgs(TRUE) else c("sweeps", "planted")
for (links in if ("sweeps" %in% what) c(1e6, 1e7)) {
  set.seed(1)
  graph <- data.frame(sample.int(1e5, links, TRUE), sample.int(1e5, links, TRUE))
  for (k in c(128, 256, 512)) {
    cat(sprintf("%.0e links, K = %d: %.3f s a sweep on 1 thread, %.3f on 2\n", links, k, sweep_seconds(graph, k, 1),
                sweep_seconds(graph, k, 2)))
  }
}
if (!"planted" %in% what) quit()
planted <- irm_sample(1000, 1000, 10, 0.1, seed = 1)
target <- irm_log_posterior(planted$A, planted$row_cluster, planted$col_cluster) - 10
seconds <- system.time(fit <- irm(planted$A, chains = 2, sweeps = 30, seed = 1))[["elapsed"]]
cat(sprintf("1000 x 1000, K = 10: %.2f s for 2 chains of 30 sweeps; within 10 nats: %s\n", seconds, max(fit$log_posterior) >= target))

# graph-tool minimises a description length of its own; its partition is judged by irm_log_posterior() all the same.
peer <- Find(file.exists, c("inst/bench/irm-peers.py", system.file("bench", "irm-peers.py", package = "weft")))
has_graph_tool <- function(p) system2(p, c("-c", shQuote("import graph_tool")), stdout = FALSE, stderr = FALSE) == 0
python <- Find(has_graph_tool, c("/usr/bin/python3", "python3"))
if (is.null(python)) {
  cat("graph-tool is not installed here\n")
} else {
  links <- tempfile()
  labels <- tempfile()
  at <- methods::as(planted$A, "TsparseMatrix")
  utils::write.table(cbind(at@i, at@j), links, sep = ",", row.names = FALSE, col.names = FALSE)
  seconds <- as.numeric(system2(python, c(peer, links, 1000, labels), stdout = TRUE))
  found <- scan(labels, quiet = TRUE)
  cat(sprintf("graph-tool: %.2f s, %d and %d clusters, %.1f nats from the planted partition\n", seconds, length(unique(found[1:1000])),
              length(unique(found[1001:2000])), irm_log_posterior(planted$A, found[1:1000], found[1001:2000]) - target - 10))
}
