# Components of a store whose blocks stay on devices (weft_upload()), beside the same call that reads the store's file.
# Cells of planted types are made, at most a million of them, of which the store gets as many copies as it needs: time
# and memory depend on the number of values and on the spectrum, which copies do not change. The store lies in /dev/shm
# where there is one.
#
# Rscript inst/bench/cells-resident.R cells genes components [devices = 0] [density = 0.06]
#   100000 5000 100                a first look: half a minute, 2 GB
#   982490 5000 100                one device: about 2 minutes, 10 GB
#   11.44e6 5000 100 0,1,2,3       four devices: about 5 minutes, 60 GB; the file is read by one
# Prints seconds of upload and of pca() with tolerances 1e-6 and 1e-12, each twice, residuals, whether the file gives
# the same bits, and by how much scores of 1,000 rows differ from products of the file's rows with the loadings. The
# floor is bytes and operations of each step over what an H100 reached in other calls (2.5e12 bytes/s of its memory,
# 4.3e13 rows x columns^2 of a Gram matrix in double, 1.2e14 from halves, 5e10 bytes/s to the host).
suppressMessages({
  library(weft)
  library(Matrix)
})
source("inst/bench/bench.R")
source(bench_file("cells-planted.R"))
given <- commandArgs(TRUE)
cells <- as.numeric(given[1L])
genes <- as.numeric(given[2L])
k <- as.numeric(given[3L])
on <- as.integer(strsplit(c(given[-(1:3)], "0")[1L], ",")[[1L]])
density <- as.numeric(c(given[-(1:4)], 0.06)[1L])
free_there <- suppressWarnings(as.numeric(strsplit(system("df -kP /dev/shm", TRUE)[2L], " +")[[1L]][4L]))
folder <- if (isTRUE(1024 * free_there > 2 * cells * genes * density)) "/dev/shm" else tempdir()

timed <- function(name, work) {
  took <- system.time(out <- work)[["elapsed"]]
  cat(sprintf("%-44s %8.3f s\n", name, took))
  out
}
quiet <- function(...) weft_run("cuda", progress = FALSE, ...)

make_store <- function(cells, name) {
  distinct <- min(cells, 1e6)
  made <- planted_cells(distinct, genes, 20, min(250000, distinct), density)$blocks
  copies <- rep(made, length.out = ceiling(cells / distinct * length(made)))
  rows <- cumsum(vapply(copies, ncol, 0L))
  last <- which(rows >= cells)[1L]
  copies <- copies[seq_len(last)]
  over <- rows[last] - cells
  if (over > 0) copies[[last]] <- copies[[last]][, seq_len(ncol(copies[[last]]) - over)]
  weft_import(copies, file.path(folder, name), samples = "columns", overwrite = TRUE, run = weft_run(progress = FALSE))
}

set.seed(1)
machine_line()
small <- store_normalise(make_store(20000, "cells-small.weft")) # opens devices and libraries
there <- weft_upload(small, devices = on)
for (tolerance in c(1e-6, 1e-12)) {
  invisible(suppressWarnings(pca(there, k, "gram", run = quiet(), control = list(tolerance = tolerance))))
}
weft_free(there)
counts <- timed("cells made and imported", make_store(cells, "cells-resident.weft"))
values <- unclass(counts)$values
bytes <- file.size(unclass(counts)$path)
cat(sprintf("%.0f cells x %.0f genes, %.4g values (%.1f %%), %.3f bytes per value\n", cells, genes, values,
            100 * values / cells / genes, bytes / values))
x <- timed("normalised (one reading on the CPU)", store_normalise(counts))
dense <- cells * genes / length(on)
cat(sprintf(paste("floor on %d device%s: unpacking %.3f s, one pass over rows spread out %.3f s, Gram matrix %.3f s in",
                  "double, %.3f s from halves, scores to the host %.3f s\n"), length(on),
            if (length(on) > 1L) "s" else "", 1.5e-10 * values / length(on), dense * 16 / 2.5e12,
            dense * genes / 4.3e13, dense * genes / 1.2e14,
            8 * cells * k / 5e10 / length(on)))

fit_of <- function(data, name, tolerance) {
  fit <- timed(sprintf("%s, tolerance %.0e", name, tolerance),
               pca(data, k, seed = 1, run = quiet(), control = list(tolerance = tolerance)))
  cat(sprintf("  by itself %.3f s, \"%s\", %.0f passes, largest residual %.1e, all converged %s, orthogonality %.1e\n",
              fit$seconds, fit$method, fit$passes, max(fit$residual), all(fit$converged), max(fit$orthogonality)))
  fit
}

y <- timed("uploaded, with moments", weft_upload(x, devices = on))
print(y)
rows <- sort(sample(cells, min(cells, 1000)))
for (tolerance in c(1e-6, 1e-12)) {
  streamed <- fit_of(x, "components from the file", tolerance)
  kept <- streamed[c("sdev", "rotation")]
  some <- streamed$x[rows, ]
  rm(streamed)
  invisible(gc())
  for (turn in 1:2) {
    fit <- fit_of(y, "components of what stays", tolerance)
    values_apart <- max(abs(fit$sdev - kept$sdev)) / kept$sdev[1L]
    centred <- as.matrix(x[rows, ]) - rep(fit$center, each = length(rows))
    by_rows <- max(abs(centred %*% fit$rotation - fit$x[rows, ])) / max(abs(fit$x[rows, ]))
    cat(sprintf("  file's bits %s, standard deviations apart by %.1e, scores of %d rows by %.1e\n",
                identical(fit$rotation, kept$rotation) && identical(fit$x[rows, ], some), values_apart, length(rows),
                by_rows))
    rm(fit)
    invisible(gc())
  }
}
invisible(timed("one product with X (unpacking, one pass)",
                weft:::kept_product(weft:::kept_source(y, "y"), matrix(1, genes, 1L))))
for (tolerance in c(1e-6, 1e-12)) {
  invisible(timed(sprintf("10 components of what stays, tolerance %.0e", tolerance),
                  pca(y, min(k, 10), "gram", seed = 1, run = quiet(), control = list(tolerance = tolerance))))
}
sums <- timed("colSums() of what stays", Matrix::colSums(y))
expected <- timed("colSums() of the file", Matrix::colSums(x))
cat(sprintf("  apart by %.1e\n", max(abs(sums - expected)) / max(abs(expected))))
invisible(timed("moments of counts by other totals", weft:::column_moments(weft:::kept_source(
  store_normalise(weft_upload(counts, devices = on), log = FALSE), "x"), NULL)))
weft_free(y)
unlink(file.path(folder, c("cells-small.weft", "cells-resident.weft")))
