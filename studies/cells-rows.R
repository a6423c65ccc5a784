# Components of stores with very many cells: how long each part takes at some sizes, and by a line through them at the
# size that is aimed at. Cells of planted types are made once, and as many copies of them imported as are asked for:
# time and memory depend on the number of values and on the spectrum, which copies do not change.
#
# Rscript cells-rows.R genes density components cells-aimed-at cells ... [backend = "auto"] [methods = "auto"]
#   5000 0.105 100 11.4e6 7e5 1.4e6 2.8e6                       6 x 10^9 values
#   20000 0.1 50 1.3e6 1.5e5 3e5 6e5 cuda krylov,gram           2.6 x 10^9, each store by both methods
#   2000 0.08 32 44e6 2.5e6 5e6 1e7                             7 x 10^9
# Each line is printed as soon as its figures are known, so that a run that is stopped leaves those before.
# "reading": a pass that reads all values and adds them up. pca() takes one such pass for the columns' means and one,
# with sending, to place them on the device; "rest" is what it takes beyond two.
suppressMessages({
  library(weft)
  library(Matrix)
})
source("inst/bench/bench.R")
source(bench_file("cells-planted.R"))
given <- commandArgs(TRUE)
words <- suppressWarnings(is.na(as.numeric(given)))
backend <- c(given[words], "auto")[1L]
methods <- strsplit(c(given[words][-1L], "auto")[1L], ",")[[1L]]
numbers <- as.numeric(given[!words])
genes <- numbers[1L]
k <- numbers[3L]
aim <- numbers[4L]
sizes <- sort(numbers[-(1:4)])

set.seed(1)
machine_line()
each <- min(50000, sizes[1L])
made <- planted_cells(2 * each, genes, 20, each, numbers[2L])$blocks

one_size <- function(cells) {
  file <- tempfile(fileext = ".weft")
  on.exit(unlink(file))
  blocks <- rep(made, length.out = max(1, round(cells / each)))
  imported <- system.time(x <- weft_import(blocks, file, samples = "columns",
                                           run = weft_run(progress = FALSE)))[["elapsed"]]
  normal <- store_normalise(x)
  reading <- system.time(Matrix::colSums(normal))[["elapsed"]]
  out <- data.frame(cells = nrow(x), values = unclass(x)$values, import = imported, reading = reading)
  cat(sprintf("%.3g cells x %.0f genes, %.3g values, %.2f bytes each: import %.1f s, reading %.1f s\n", cells,
              genes, out$values, file.size(file) / out$values, imported, reading))
  do.call(rbind, lapply(methods, one_method, normal, out))
}

one_method <- function(method, normal, out) {
  fit <- pca(normal, k, method, seed = 1, run = weft_run(backend, progress = FALSE))
  out <- data.frame(out, asked = method, pca = fit$seconds, rest = fit$seconds - 2 * out$reading, GB = memory())
  cat(sprintf(paste("  %.0f components on %s by \"%s\" %.1f s, without two readings %.1f s, %.0f passes;",
                    "residual %.1e, all converged %s; most memory %.1f GB\n"), k, fit$backend, fit$method, out$pca,
              out$rest, fit$passes, max(fit$residual), all(fit$converged), out$GB))
  out
}

by_a_line <- function(table) {
  line <- vapply(c("values", "import", "reading", "pca", "rest", "GB"), function(part) {
    unname(stats::predict(stats::lm(stats::reformulate("cells", part), table), data.frame(cells = aim)))
  }, 0)
  cat(sprintf(paste("by a line, method %s: %.3g cells, %.2g values: import %.0f s, reading %.0f s, components %.0f s,",
                    "without two readings %.1f s; %.0f GB\n"), table$asked[1L], aim, line[["values"]],
              line[["import"]], line[["reading"]], line[["pca"]], line[["rest"]], line[["GB"]]))
}

# What is done once in a session, as opening the device, is not counted.
if (backend != "cpu") invisible(utils::capture.output(one_size(each)))
table <- do.call(rbind, lapply(sizes, one_size))
if (length(sizes) > 1L) for (method in methods) by_a_line(table[table$asked == method, ])
