# irm() beside other programs: seconds, those of processors, clusters, NMI with the planted clusters, and the log
# posterior of the partition found, by irm_log_posterior(), which irm() and irmlearn look for. The others have goals of
# their own: graph-tool a description length, blockmodels and greed integrated likelihoods, and spectral co-clustering
# is told the number of clusters. NA: not done within the limit, 100 s, of large graphs 300 s. A peer that this machine
# does not have is left out. Two threads.
# Rscript irm-peers.R [large | huge] [python ...]     large: a graph of 1000 x 1000 nodes too, where irmlearn and
#                                                     blockmodels,
# which go through all pairs, are left out; huge: of 10,000 x 10,000 too, for weft and graph-tool. By default the
# Pythons are /usr/bin/python3 (Debian: python3-graph-tool) and python3
library(weft)
source("inst/bench/bench.R")
machine_line()
if (file.exists("/proc/loadavg")) cat("load", readLines("/proc/loadavg"), "\n")
pythons <- unique(c(setdiff(commandArgs(TRUE), c("large", "huge")), "/usr/bin/python3", "python3"))
modules <- c("graph-tool" = "graph_tool", irmlearn = "irmlearn", spectral = "sklearn.cluster")
has <- function(python, module) {
  suppressWarnings(system2(python, c("-c", shQuote(paste("import", module))), stdout = FALSE, stderr = FALSE)) == 0
}
r_peers <- Filter(function(name) requireNamespace(name, quietly = TRUE), c("blockmodels", "greed"))
python_of <- lapply(modules, function(module) Find(function(p) has(p, module), pythons))

planted <- function(n, k, density) {
  made <- irm_sample(n, n, k, density, seed = 1)
  list(A = made$A, type = "bipartite", row = made$row_cluster, col = made$col_cluster, k = k)
}
sizes <- commandArgs(TRUE)
graphs <- list("planted 100 x 100, K = 4" = planted(100, 4, 0.3), "planted 200 x 200, K = 5" = planted(200, 5, 0.2))
if (any(c("large", "huge") %in% sizes)) graphs[["planted 1000 x 1000, K = 10"]] <- planted(1000, 10, 0.1)
if ("huge" %in% sizes) graphs[["planted 10,000 x 10,000, K = 50"]] <- planted(10000, 50, 0.01)
if (requireNamespace("igraph", quietly = TRUE)) {
  graphs[["karate club"]] <- list(A = as.matrix(igraph::as_adjacency_matrix(igraph::make_graph("Zachary"))),
                                  type = "undirected", k = 2)
}

# The largest number of rows for those who cannot have more.
most_rows <- c(irmlearn = 300, blockmodels = 300, greed = 1000, spectral = 1000)

peer <- function(name, g) {
  in_r <- name %in% r_peers
  if (!in_r && is.null(python_of[[name]])) return(NULL)
  if ((name == "irmlearn" && g$type != "bipartite") || nrow(g$A) >
      c(most_rows, Inf)[match(name, names(most_rows), 5)]) return(NULL)
  links <- tempfile()
  labels <- tempfile()
  at <- if (g$type == "bipartite") Matrix::which(g$A == 1,
                                                 arr.ind = TRUE) else which(g$A == 1 & upper.tri(g$A), arr.ind = TRUE)
  utils::write.table(at - 1, links, sep = ",", row.names = FALSE, col.names = FALSE)
  file <- bench_file(if (in_r) "irm-peers-fit.R" else "irm-peers.py")
  words <- c(if (nrow(g$A) < 1000) 100 else 300, if (in_r) file.path(R.home("bin"), "Rscript") else python_of[[name]],
             file, name, links, nrow(g$A), if (g$type == "bipartite") ncol(g$A) else 0, labels, g$k)
  said <- suppressWarnings(system2("timeout", words, stdout = TRUE, stderr = FALSE, env = "OMP_NUM_THREADS=2"))
  if (!file.exists(labels)) return(list(seconds = NA, processor = NA))
  found <- scan(labels, quiet = TRUE)
  seconds <- scan(text = utils::tail(said, 1), quiet = TRUE)
  list(seconds = seconds[1], processor = seconds[2], row = found[seq_len(nrow(g$A))],
       col = if (g$type == "bipartite") found[-seq_len(nrow(g$A))])
}

ours <- function(g, ...) {
  seconds <- system.time(fit <- irm(g$A, g$type, seed = 1, run = weft_run(threads = 2), ...))
  list(seconds = seconds[[3]], processor = seconds[[1]] + seconds[[2]], row = fit$row_cluster,
       col = if (g$type == "bipartite") fit$col_cluster)
}

cat(sprintf("%-32s %-27s %9s %9s %8s %6s %14s\n", "graph", "by", "seconds", "processor", "clusters", "NMI",
            "log posterior"))
for (name in names(graphs)) {
  g <- graphs[[name]]
  runs <- list("weft, 2 chains of 40 sweeps" = function() ours(g, chains = 2, sweeps = 40),
               "weft, defaults" = function() if (nrow(g$A) <= 1000) ours(g),
               "graph-tool" = function() peer("graph-tool", g),
               blockmodels = function() peer("blockmodels", g), greed = function() peer("greed", g),
               irmlearn = function() peer("irmlearn", g), "spectral co-clustering" = function() peer("spectral", g))
  for (who in names(runs)) {
    r <- runs[[who]]()
    if (is.null(r)) next
    found <- !is.null(r$row)
    nmi <- if (found && !is.null(g$row)) (irm_nmi(r$row, g$row) + irm_nmi(r$col, g$col)) / 2 else NA
    value <- if (found) irm_log_posterior(g$A, r$row, r$col, type = g$type) else NA
    cat(sprintf("%-32s %-27s %9.2f %9.2f %8s %6.3f %14.2f\n", name, who, r$seconds, r$processor,
                if (found) paste(unique(c(length(unique(r$row)), if (length(r$col)) length(unique(r$col)))),
                                 collapse = ", ") else "", nmi,
                value))
  }
}
cat("not installed here:", toString(c(names(modules)[vapply(python_of, is.null, NA)],
                                      setdiff(c("blockmodels", "greed"), r_peers))), "\n")
