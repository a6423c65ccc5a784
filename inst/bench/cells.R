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
bench_file <- function(name) {
  Find(file.exists, c(file.path("inst/bench", name), system.file("bench", name, package = "weft")))
}
source(bench_file("bench.R"))
given <- commandArgs(TRUE)
cells <- as.numeric(c(given, 1e5)[1L])
backend <- if (length(given) > 1L) given[2L] else "auto"
folder <- if (length(given) > 2L) given[3L] else tempdir()
genes <- 2000
types <- 20
at_once <- 250000

build <- function() {
  file.copy(bench_file("cells.c"), tempdir(), overwrite = TRUE)
  writeLines(c("PKG_CFLAGS = -fopenmp -O3", "PKG_LIBS = -fopenmp -lm"), file.path(tempdir(), "Makevars"))
  old <- setwd(tempdir())
  on.exit(setwd(old))
  built <- system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "cells.c"), stdout = FALSE)
  if (built != 0) stop("cannot build cells.c")
  dyn.load("cells.so")
}

# Chances of seeing a gene in a cell, out of 2^32: genes x types. Each type has a twentieth of the genes as its own.
rates <- function() {
  chance <- pmin(0.7, stats::rlnorm(genes, -0.5, 1) * 0.08)
  markers <- vapply(seq_len(types), function(t) seq_len(genes) %in% sample(genes, genes / 20), logical(genes))
  all <- chance * (1 + 3 * markers)
  all[all > 0.95] <- 0.95
  2^32 * all * 0.08 / mean(all)
}

# A list of blocks with cells in their columns, as 10x files have them.
make <- function() {
  how <- rates()
  starts <- seq(0, cells - 1, by = at_once)
  lapply(starts, function(first) {
    made <- .Call("make_cells", first, min(at_once, cells - first), how, 1)
    block <- methods::new("dgCMatrix", p = made[[1L]], i = made[[2L]], x = made[[3L]],
                          Dim = c(as.integer(genes), length(made[[1L]]) - 1L))
    list(block = block, type = made[[4L]])
  })
}

memory <- function() {
  line <- grep("^VmHWM", tryCatch(readLines("/proc/self/status"), error = function(e) ""), value = TRUE)
  if (length(line)) as.numeric(gsub("[^0-9]", "", line)) / 2^20 else NA
}

rand_index <- function(a, b) {
  pairs <- function(n) sum(n * (n - 1) / 2)
  joint <- table(a, b)
  by_chance <- pairs(rowSums(joint)) * pairs(colSums(joint)) / pairs(length(a))
  (pairs(joint) - by_chance) / ((pairs(rowSums(joint)) + pairs(colSums(joint))) / 2 - by_chance)
}

set.seed(1)
machine_line()
seconds <- c()
part <- function(name, work) {
  seconds[name] <<- system.time(out <- work)[["elapsed"]]
  cat(sprintf("%-34s %8.2f s   most memory so far %6.2f GB\n", name, seconds[name], memory()))
  out
}
build()
made <- part("cells made", make())
type <- unlist(lapply(made, `[[`, "type"))
blocks <- lapply(made, `[[`, "block")
values <- sum(vapply(blocks, function(b) length(b@x), 0))
file <- file.path(folder, "cells.weft")
x <- part("imported", weft_import(blocks, file, samples = "columns", overwrite = TRUE, progress = FALSE))
rm(made, blocks)
invisible(gc())
cat(sprintf("%.0f cells x %d genes, %.4g values (%.1f %%), %.3f bytes per value in the store\n", cells, genes, values,
            100 * values / cells / genes, file.size(file) / values))
found <- part("genes, components, groups", gene_cells(x, k = 50, backend = backend, seed = 1, progress = FALSE))
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
