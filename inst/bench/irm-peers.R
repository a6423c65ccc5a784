# irm() beside other programs on small graphs: seconds, clusters, NMI with the planted clusters and the log posterior of the
# partition found, by irm_log_posterior(), which irm() and irmlearn look for; graph-tool minimises a description length of its
# own, and spectral co-clustering is told the number of clusters. NA: not done in 100 s. A peer that this machine's Pythons do
# not have is left out.
# Rscript irm-peers.R [large] [python ...]     large: a graph of 1000 x 1000 nodes too, without irmlearn; by default the Pythons
# are /usr/bin/python3 (Debian: python3-graph-tool) and python3
library(weft)
bench_file <- function(name) Find(file.exists, c(file.path("inst/bench", name), system.file("bench", name, package = "weft")))
source(bench_file("bench.R"))
machine_line()
if (file.exists("/proc/loadavg")) cat("load", readLines("/proc/loadavg"), "\n")
pythons <- unique(c(setdiff(commandArgs(TRUE), "large"), "/usr/bin/python3", "python3"))
modules <- c("graph-tool" = "graph_tool", irmlearn = "irmlearn", spectral = "sklearn.cluster")
has <- function(python, module) {
  suppressWarnings(system2(python, c("-c", shQuote(paste("import", module))), stdout = FALSE, stderr = FALSE)) == 0
}
python_of <- lapply(modules, function(module) Find(function(p) has(p, module), pythons))

planted <- function(n, k, density) {
  made <- irm_sample(n, n, k, density, seed = 1)
  list(A = as.matrix(made$A) * 1, type = "bipartite", row = made$row_cluster, col = made$col_cluster, k = k)
}
graphs <- list("planted 100 x 100, K = 4" = planted(100, 4, 0.3), "planted 200 x 200, K = 5" = planted(200, 5, 0.2))
if ("large" %in% commandArgs(TRUE)) graphs[["planted 1000 x 1000, K = 10"]] <- planted(1000, 10, 0.1)
if (requireNamespace("igraph", quietly = TRUE)) {
  graphs[["karate club"]] <- list(A = as.matrix(igraph::as_adjacency_matrix(igraph::make_graph("Zachary"))), type = "undirected", k = 2)
}

peer <- function(name, g) {
  if (is.null(python_of[[name]]) || (name == "irmlearn" && (g$type != "bipartite" || nrow(g$A) > 300))) return(NULL)
  links <- tempfile()
  labels <- tempfile()
  at <- which(if (g$type == "bipartite") g$A == 1 else g$A == 1 & upper.tri(g$A), arr.ind = TRUE) - 1
  utils::write.table(at, links, sep = ",", row.names = FALSE, col.names = FALSE)
  words <- c(100, python_of[[name]], bench_file("irm-peers.py"), name, links, nrow(g$A), if (g$type == "bipartite") ncol(g$A) else 0,
             labels, g$k)
  seconds <- suppressWarnings(as.numeric(system2("timeout", words, stdout = TRUE, stderr = FALSE)))
  if (!file.exists(labels)) return(list(seconds = NA))
  found <- scan(labels, quiet = TRUE)
  list(seconds = seconds, row = found[seq_len(nrow(g$A))], col = if (g$type == "bipartite") found[-seq_len(nrow(g$A))])
}

ours <- function(g, ...) {
  seconds <- system.time(fit <- irm(g$A, g$type, seed = 1, threads = 2, ...))[["elapsed"]]
  list(seconds = seconds, row = fit$row_cluster, col = if (g$type == "bipartite") fit$col_cluster)
}

rows <- list()
for (name in names(graphs)) {
  g <- graphs[[name]]
  runs <- list("weft, 2 chains of 40 sweeps" = ours(g, chains = 2, sweeps = 40), "weft, defaults" = ours(g),
               "graph-tool" = peer("graph-tool", g), irmlearn = peer("irmlearn", g), "spectral co-clustering" = peer("spectral", g))
  for (who in names(runs)[!vapply(runs, is.null, NA)]) {
    r <- runs[[who]]
    found <- !is.null(r$row)
    rows[[length(rows) + 1]] <- data.frame(
      graph = name, by = who, seconds = r$seconds, row_clusters = if (found) length(unique(r$row)) else NA,
      nmi = if (found && !is.null(g$row)) round((irm_nmi(r$row, g$row) + irm_nmi(r$col, g$col)) / 2, 3) else NA,
      log_posterior = if (found) round(irm_log_posterior(g$A, r$row, r$col, type = g$type), 2) else NA)
  }
}
options(width = 140)
print(do.call(rbind, rows), row.names = FALSE, right = FALSE)
cat("not installed here:", toString(names(modules)[vapply(python_of, is.null, NA)]), "\n")
