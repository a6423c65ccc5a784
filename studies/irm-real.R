# Real graphs: how often irm() with its defaults (4 chains) reaches the best log posterior known, which is the best of
# these and of 64 long chains by both samplers. Edge lists in a folder can be added: a line "rows columns", then one
# link a line, from 1. Rscript irm-real.R [folder]
library(weft)
source("inst/bench/bench.R")
machine_line()

women <- list(c(1:6, 8, 9), c(1:3, 5:8), 2:9, c(1, 3:8), c(3:5, 7), c(3, 5, 6, 8), 5:8, c(6, 8, 9), c(5, 7:9),
              c(7:9, 12),
              c(8:10, 12), c(8:10, 12:14), c(7:10, 12:14), c(6, 7, 9:14), c(7, 8, 10:12), 8:9, c(9, 11), c(9, 11))
graphs <- list("Southern Women" = list(data.frame(rep(1:18, lengths(women)), unlist(women))),
               "occupations of fathers and sons, counts" = list(unclass(datasets::occupationalStatus),
                                                                type = "directed", self = TRUE,
                                                                family = "poisson", beta = c(0.5, 0.01)),
               "hair by eye colour, counts" = list(apply(datasets::HairEyeColor, 1:2, sum), family = "poisson",
                                                   beta = c(0.5, 0.01)))
if (requireNamespace("igraph", quietly = TRUE)) {
  karate <- as.matrix(igraph::as_adjacency_matrix(igraph::make_graph("Zachary")))
  graphs[["karate club"]] <- list(karate, type = "undirected")
  graphs[["karate club, bipartite"]] <- list(karate)
}
if (requireNamespace("MASS", quietly = TRUE)) {
  graphs[["hair by eye colour in Caithness, counts"]] <- list(as.matrix(MASS::caith), family = "poisson",
                                                              beta = c(0.5, 0.01))
}
if (requireNamespace("cba", quietly = TRUE)) {
  utils::data(list = c("Votes", "townships"), package = "cba", envir = environment())
  graphs[["townships by features"]] <- list(as.matrix(townships[, -1]) * 1)
  graphs[["members of Congress by votes, with missing"]] <- list(1 * (as.matrix(Votes[, 1:16]) == "y"))
}
if (requireNamespace("cluster",
                     quietly = TRUE)) graphs[["animals by traits, with missing"]] <- list(as.matrix(cluster::animals) -
                                                                                          1)
for (file in list.files(c(commandArgs(TRUE), NA)[1], "[.]txt$", full.names = TRUE)) {
  x <- as.matrix(utils::read.table(file))
  graphs[[basename(file)]] <- list(data.frame(x[-1, ]), dim = x[1, ])
}

fit <- function(graph, ...) do.call(irm, c(graph, list(...)))
if (file.exists("/proc/loadavg")) cat("load", readLines("/proc/loadavg"), "\n")
for (name in names(graphs)) {
  long <- lapply(c("blocked", "collapsed"), function(sampler) {
    apply(fit(graphs[[name]], chains = 32, sweeps = 500, sampler = sampler, seed = 100)$log_posterior, 2, max)
  })
  used <- system.time(found <- vapply(1:10, function(seed) max(fit(graphs[[name]], seed = seed)$log_posterior), 0))
  best <- max(unlist(long), found)
  at_best <- function(x) sum(x > best - 1e-6)
  cat(sprintf("%s: best known %.4f (by %d of 32 long blocked chains, %d of 32 collapsed)\n", name, best,
              at_best(long[[1]]), at_best(long[[2]])))
  cat(sprintf("  defaults reach it with %d of 10 seeds, worst %.4f, %.2f s each, %.2f s of processors\n",
              at_best(found), min(found), used[[3]] / 10, (used[[1]] + used[[2]]) / 10))
}
