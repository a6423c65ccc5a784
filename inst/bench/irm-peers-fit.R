# One R peer's partition of an edge list (row, column; from 0): prints seconds, and those of processors; writes the
# labels, one per line, rows then columns.
# Rscript irm-peers-fit.R PEER links.csv rows columns clusters.csv     columns 0: an undirected graph of `rows` nodes
#   blockmodels   variational inference for stochastic and latent block models, numbers of clusters by ICL (Leger)
#   greed         integrated likelihood by a genetic algorithm; on bipartite graphs its degree-corrected model, the only
#                 one it has for them (Côme and Jouvin)
given <- commandArgs(TRUE)
rows <- as.integer(given[3])
columns <- as.integer(given[4])
links <- as.matrix(utils::read.csv(given[2], header = FALSE)) + 1
A <- matrix(0, rows, max(columns, rows * (columns == 0)))
A[links] <- 1
if (columns == 0) A <- pmax(A, t(A))
set.seed(1)
if (given[1] == "blockmodels") {
  seconds <- system.time({
    model <- blockmodels::BM_bernoulli(if (columns == 0) "SBM_sym" else "LBM", A, verbosity = 0, plotting = "",
                                       ncores = 2)
    model$estimate()
  })
  found <- model$memberships[[which.max(model$ICL)]]
  most_likely <- function(z) max.col(z, "first")
  labels <- if (columns == 0) most_likely(found$Z) else c(most_likely(found$Z1), most_likely(found$Z2))
} else {
  suppressPackageStartupMessages(library(greed))
  future::plan("sequential")
  model <- if (columns == 0) Sbm(type = "undirected") else DcLbm()
  seconds <- system.time(fit <- greed(methods::as(Matrix::Matrix(A, sparse = TRUE), "generalMatrix"), model = model,
                                      verbose = FALSE))
  labels <- if (columns == 0) clustering(fit) else c(fit@clrow, fit@clcol)
}
writeLines(as.character(labels), given[5])
cat(sprintf("\n%.3f %.3f\n", seconds[[3]], sum(seconds[c(1, 2, 4, 5)])))
