# Cells of planted types for cells.R and cells-peers.R, made by cells.c; the adjusted Rand index; the most memory
# that this process took. Expects bench_file().

build_planted <- function() {
  file.copy(bench_file("cells.c"), tempdir(), overwrite = TRUE)
  writeLines(c("PKG_CFLAGS = -fopenmp -O3", "PKG_LIBS = -fopenmp -lm"), file.path(tempdir(), "Makevars"))
  old <- setwd(tempdir())
  on.exit(setwd(old))
  built <- system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "cells.c"), stdout = FALSE)
  if (built != 0) stop("cannot build cells.c")
  dyn.load("cells.so")
}

# Chances of seeing a gene in a cell, out of 2^32: genes x types. Each type has a twentieth of the genes as its own.
rates <- function(genes, types, density) {
  chance <- pmin(0.7, stats::rlnorm(genes, -0.5, 1) * 0.08)
  markers <- vapply(seq_len(types), function(t) seq_len(genes) %in% sample(genes, genes / 20), logical(genes))
  all <- chance * (1 + 3 * markers)
  all[all > 0.95] <- 0.95
  2^32 * all * density / mean(all)
}

# list(blocks, type): blocks of a quarter of a million cells in their columns, as 10x files have them.
planted_cells <- function(cells, genes, types, at_once = 250000, density = 0.08) {
  build_planted()
  how <- rates(genes, types, density)
  made <- lapply(seq(0, cells - 1, by = at_once), function(first) {
    out <- .Call("make_cells", first, min(at_once, cells - first), how, 1)
    block <- methods::new("dgCMatrix", p = out[[1L]], i = out[[2L]], x = out[[3L]],
                          Dim = c(as.integer(genes), length(out[[1L]]) - 1L))
    list(block = block, type = out[[4L]])
  })
  list(blocks = lapply(made, `[[`, "block"), type = unlist(lapply(made, `[[`, "type")))
}

rand_index <- function(a, b) {
  pairs <- function(n) sum(n * (n - 1) / 2)
  joint <- table(a, b)
  by_chance <- pairs(rowSums(joint)) * pairs(colSums(joint)) / pairs(length(a))
  (pairs(joint) - by_chance) / ((pairs(rowSums(joint)) + pairs(colSums(joint))) / 2 - by_chance)
}

# In GB (VmHWM).
memory <- function() {
  line <- grep("^VmHWM", tryCatch(readLines("/proc/self/status"), error = function(e) ""), value = TRUE)
  if (length(line)) as.numeric(gsub("[^0-9]", "", line)) / 2^20 else NA
}
