# Interventions in cells of a store: guides lower their own genes and change some others (made by cells.c). Prints the
# seconds of regulation(), beside one pass over the file, the most memory that R took, and how many of the planted
# changes were found at a q-value of .05. Usage, from the root of the sources:
#   Rscript inst/bench/perturb-seq.R [cells = 1e5] [genes = 2000] [guides = 200] [backend = "auto"]
# The figure that counts is `1e6 8000 2000 cuda`.
suppressMessages({
  library(weft)
  library(Matrix)
})
source("inst/bench/bench.R")
source(bench_file("cells-planted.R"))
given <- commandArgs(TRUE)
sizes <- c(1e5, 2000, 200)
for (k in seq_len(min(3L, length(given)))) sizes[k] <- as.numeric(given[k])
cells <- sizes[1L]
genes <- sizes[2L]
guides <- sizes[3L]
backend <- if (length(given) > 3L) given[4L] else "auto"
changed <- 10 # genes that a guide changes beside its own

seconds <- function(name, work) {
  took <- system.time(out <- work)[["elapsed"]]
  cat(sprintf("%-42s %8.2f s   most memory so far %6.2f GB\n", name, took, memory()))
  list(out = out, took = took)
}

set.seed(1)
machine_line()
build_planted()
controls <- ceiling(guides / 20) # kinds of cells without a guide: one cell in 21
chance <- pmin(0.7, stats::rlnorm(genes, -0.5, 1) * 0.08)
effect <- matrix(1, genes, guides + controls)
effect[cbind(seq_len(guides), seq_len(guides))] <- 0.2
others <- cbind(as.vector(replicate(guides, sample(genes, changed))), rep(seq_len(guides), each = changed))
others <- others[others[, 1L] != others[, 2L], ]
effect[others] <- sample(c(0.5, 2), nrow(others), TRUE)
how <- pmin(chance * effect / mean(chance) * 0.1, 0.95) * 2^32
made <- seconds("cells made", lapply(seq(0, cells - 1, by = 250000), function(first) {
  out <- .Call("make_cells", first, min(250000, cells - first), how, 1)
  list(block = methods::new("dgCMatrix", p = out[[1L]], i = out[[2L]], x = out[[3L]],
                            Dim = c(as.integer(genes), length(out[[1L]]) - 1L),
                            Dimnames = list(sprintf("g%d", seq_len(genes)), NULL)), type = out[[4L]])
}))$out
type <- unlist(lapply(made, `[[`, "type"))
values <- sum(vapply(made, function(m) length(m$block@x), 0))
file <- tempfile(fileext = ".weft")
x <- seconds("imported", weft_import(lapply(made, `[[`, "block"), file, samples = "columns",
                                     run = weft_run(progress = FALSE)))$out
rm(made, how)
invisible(gc(reset = TRUE))
cat(sprintf("%.0f cells x %.0f genes, %.0f guides, %.4g values (%.1f %%), %.3f bytes per value\n", cells, genes, guides,
            values, 100 * values / cells / genes, file.size(file) / values))
of <- ifelse(type > guides, "", sprintf("g%d", type))
pass <- seconds("one pass: sums of columns", invisible(Matrix::colSums(x)))
whole <- seconds("regulation(), all guides", regulation(x, regulators = seq_len(guides), interventions = of, seed = 1,
                                                        transform = "counts",
                                                        control = list(stability = FALSE),
                                                        run = weft_run(backend, progress = FALSE)))
cat(sprintf("%s back end: %.1f passes over the file\n", attr(whole$out, "backend"), whole$took / pass$took))
edges <- attr(whole$out, "edges")
found <- which(!is.na(edges$shift_q) & edges$shift_q <= 0.05)
planted <- others[, 2L] + (others[, 1L] - 1) * guides
hits <- sum((edges$from + (edges$to - 1) * guides)[found] %in% planted)
cat(sprintf("changes found %d of %d, %.1f %% of the found ones were not planted\n", hits, length(planted),
            100 * (1 - hits / max(1, length(found)))))
unlink(file)
