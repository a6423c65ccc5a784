# Cells from counts to types: cells of planted types (2,000 genes, 8 % of their counts not zero) are imported into a
# store, decomposed into 50 components on the way from it, grouped, and summed up by metacells (gene_cells()). Prints
# the seconds of each part, the bytes of the store, the most memory that R took, and how well the planted types were
# found (adjusted Rand index), beside what one reaches who knows the types' centres: cells of few counts cannot be told.
#
# Rscript cells.R [cells = 1e5] [backend = "auto"] [folder of the store]
# Times of one run on one machine; that of making the cells is no part of the total.
suppressMessages({
  library(weft)
  library(Matrix)
})
source("inst/bench/bench.R")
source(bench_file("cells-planted.R"))
given <- commandArgs(TRUE)
cells <- as.numeric(c(given, 1e5)[1L])
backend <- if (length(given) > 1L) given[2L] else "auto"
folder <- if (length(given) > 2L) given[3L] else tempdir()
genes <- 2000
types <- 20

set.seed(1)
machine_line()
seconds <- c()
part <- function(name, work) {
  seconds[name] <<- system.time(out <- work)[["elapsed"]]
  cat(sprintf("%-34s %8.2f s   most memory so far %6.2f GB\n", name, seconds[name], memory()))
  out
}
made <- part("cells made", planted_cells(cells, genes, types))
type <- made$type
blocks <- made$blocks
values <- sum(vapply(blocks, function(b) length(b@x), 0))
file <- file.path(folder, "cells.weft")
x <- part("imported", weft_import(blocks, file, samples = "columns", overwrite = TRUE,
                                  run = weft_run(progress = FALSE)))
rm(made, blocks)
invisible(gc())
cat(sprintf("%.0f cells x %d genes, %.4g values (%.1f %%), %.3f bytes per value in the store\n", cells, genes, values,
            100 * values / cells / genes, file.size(file) / values))
found <- part("genes, components, groups", gene_cells(x, k = 50, run = weft_run(backend, progress = FALSE), seed = 1))
fit <- found$components
cat(sprintf("  50 components in %.2f s on %s by \"%s\", %.0f passes, largest residual %.1e, all converged: %s\n",
            fit$seconds, fit$backend, fit$method, fit$passes, max(fit$residual), all(fit$converged)))
share <- table(found$group, type)
cat(sprintf("%d planted types, %d groups found, %d components stand out; every type has a group of its own: %s\n",
            types, nrow(share), fit$leading, identical(sort(unique(max.col(share))), seq_len(types))))
some <- seq_len(min(cells, 2e5))
scores <- fit$x[some, ]
centres <- rowsum(scores, type[some]) / tabulate(type[some]) # of the planted types, which no method knows
spread <- sqrt(colMeans((scores - centres[type[some], ])^2))
units <- t(centres) / spread
told <- max.col(t(t(scores) / spread) %*% units - rep(colSums(units^2) / 2, each = length(some)))
cat(sprintf("adjusted Rand index %.4f; of cells next to the centres of the planted types %.4f\n",
            rand_index(found$group, type), rand_index(told, type[some])))
cat(sprintf("total without making the cells %.1f s\n", sum(seconds[-1L])))
unlink(file)
