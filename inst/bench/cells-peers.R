# Single cells, weft beside others: the planted cells of cells.R (2,000 genes, 8 % of their counts not zero), each
# method in a process of its own that reads them from a file. Prints seconds, processor time, the most memory (VmHWM),
# the largest sine between the method's first 20 loadings (19 where there are 20) and those of weft at a tolerance of
# 1e-12, and the adjusted Rand index of groups.
#
# Rscript cells-peers.R [cells = 1e5] [Python with scanpy, igraph and leidenalg, or -] [genes = 2000] [share not zero =
#   0.08] [components = 50; with another number of them no groups]
#
#   weft         components of a dgCMatrix in memory; from a store, read in blocks; and gene_cells(), groups and all
#   irlba        irlba(), centred implicitly, its default tolerance, on a dgCMatrix in memory
#   RSpectra     svds() with products that centre, its default tolerance, on the same
#   scanpy       pp.normalize_total(), pp.log1p(), pp.pca(); then pp.neighbors() and tl.leiden() with igraph's flavour
source("inst/bench/bench.R")
given <- commandArgs(TRUE)
source(bench_file("cells-planted.R"))

# One method: writes list(seconds, cpu, memory, v, group).
one_part <- function(name, folder, k) {
  suppressMessages(library(Matrix))
  file <- file.path(folder, "cells.weft")
  seconds <- NULL
  timed <- function(work) {
    seconds <<- system.time(out <- work)
    out
  }
  scaled <- function() {
    x <- readRDS(file.path(folder, "cells.rds"))
    x@x <- log1p(x@x / (rowSums(x) / 1e4)[x@i + 1])
    x
  }
  v <- group <- NULL
  if (name == "weft, in memory") {
    v <- timed(weft::pca(scaled(), k, run = weft_run("cpu", progress = FALSE), seed = 1,
                         control = list(tolerance = 1e-8)))$rotation
  } else if (name == "weft, components") {
    v <- timed(weft::pca(weft::store_normalise(weft::weft_store(file)), k, seed = 1, run = weft_run(progress = FALSE),
                         control = list(tolerance = 1e-8, block_size = 2^24)))$rotation
  } else if (name == "weft, groups") {
    fit <- timed(weft::gene_cells(weft::weft_store(file), k = k, seed = 1, run = weft_run(progress = FALSE),
                                  control = list(block_size = 2^24)))
    v <- fit$components$rotation
    group <- fit$group
  } else if (name == "irlba") {
    v <- timed({
      x <- scaled()
      irlba::irlba(x, nv = k, center = colMeans(x))
    })$v
  } else {
    v <- timed({
      x <- scaled()
      about <- colMeans(x)
      RSpectra::svds(function(v, args) as.numeric(x %*% v) - sum(about * v), k, dim = dim(x),
                     Atrans = function(u, args) as.numeric(crossprod(x, u)) - about * sum(u))
    })$v
  }
  saveRDS(list(seconds = seconds[["elapsed"]], cpu = sum(seconds[c(1, 2, 4, 5)], na.rm = TRUE), memory = memory(),
               v = v, group = group), file.path(folder, "out.rds"))
}

if (identical(given[1L], "--part")) {
  one_part(given[2L], given[3L], as.numeric(given[4L]))
  quit(status = 0)
}
suppressMessages({
  library(weft)
  library(Matrix)
})
cells <- as.numeric(c(given, 1e5)[1L])
python <- if (length(given) > 1L && given[2L] != "-") given[2L] else NA
genes <- as.numeric(c(given[-(1:2)], 2000)[1L])
density <- as.numeric(c(given[-(1:3)], 0.08)[1L])
k <- as.numeric(c(given[-(1:4)], 50)[1L])
folder <- tempfile("cells")
dir.create(folder)
set.seed(1)
machine_line()
made <- planted_cells(cells, genes, 20, density = density)
x <- t(do.call(cbind, made$blocks))
dimnames(x) <- list(NULL, sprintf("g%d", seq_len(ncol(x))))
saveRDS(x, file.path(folder, "cells.rds"), compress = FALSE)
invisible(weft_import(x, file.path(folder, "cells.weft"), run = weft_run(progress = FALSE)))
right <- pca(store_normalise(weft_store(file.path(folder, "cells.weft"))), k, seed = 2,
             run = weft_run(progress = FALSE))$rotation
script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))

# The largest sine of angles from the first ones of v to the span of all of the right ones: single ones turn where
# values are close.
sine <- function(v) {
  v <- qr.Q(qr(v))[, seq_len(min(20, k - 1))]
  max(svd(v - right %*% crossprod(right, v))$d)
}

report <- function(name, out) {
  groups <- if (!is.null(out$group)) {
    sprintf("  %d groups, adjusted Rand index %.4f", length(unique(out$group)), rand_index(out$group, made$type))
  }
  cat(sprintf("%-20s %8.1f s  processor %8.1f s  memory %6.2f GB  sine %.1e%s\n", name, out$seconds, out$cpu,
              out$memory, sine(out$v), paste0("", groups)))
}

for (name in c("weft, in memory", "weft, components", if (k == 50) "weft, groups", "irlba", "RSpectra")) {
  if (name %in% c("irlba", "RSpectra") && !requireNamespace(name, quietly = TRUE)) next
  status <- system2(file.path(R.home("bin"), "Rscript"), c(script, "--part", shQuote(name), folder, k))
  if (status == 0) report(name, readRDS(file.path(folder, "out.rds")))
}
if (!is.na(python)) {
  rows <- t(x)
  for (part in c("p", "i", "x")) {
    values <- methods::slot(rows, part)
    writeBin(if (part == "x") as.integer(values) else values, file.path(folder, part))
  }
  status <- system2(python, c(bench_file("cells-peers.py"), folder, nrow(x), ncol(x), k))
  if (status == 0) {
    numbers <- readBin(file.path(folder, "out"), "double", 3 + k * ncol(x) + nrow(x))
    report("scanpy", list(seconds = numbers[1], cpu = numbers[2], memory = numbers[3],
                          v = matrix(numbers[3 + seq_len(k * ncol(x))], ncol(x)),
                          group = if (k == 50) utils::tail(numbers, nrow(x))))
  }
}
unlink(folder, recursive = TRUE)
