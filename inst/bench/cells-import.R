# An .h5ad file into a store, beside reading it (by h5py, by H5Dread() in C where h5cc is, by rhdf5) and beside BPCells:
# seconds, processor time (of children too), the most memory of the process (VmHWM), bytes on disk. The file, written by
# anndata without compression and with gzip, holds planted cells x 20,000 genes, 5 % not zero: 2 GB at 250,000 cells.
# Each part has a process of its own; the file is in the page cache.
#
# Rscript cells-import.R Python-with-anndata-and-bpcells [cells = 250000] [folder]
source("inst/bench/bench.R")
given <- commandArgs(TRUE)
genes <- 20000
suppressMessages({
  library(weft)
  library(Matrix)
})
source(bench_file("cells-planted.R"))

# Compressed rows as bytes, some cells at a time.
make_cells <- function(cells, folder) {
  out <- lapply(c(p = "p", i = "i", x = "x"), function(name) file(file.path(folder, name), "wb"))
  on.exit(lapply(out, close))
  writeBin(0, out$p)
  before <- 0
  set.seed(1)
  build_planted()
  how <- rates(genes, 20, 0.05)
  for (first in seq(0, cells - 1, by = 10000)) {
    made <- .Call("make_cells", first, min(10000, cells - first), how, 1)
    writeBin(before + as.double(made[[1L]][-1L]), out$p)
    writeBin(made[[2L]], out$i)
    writeBin(made[[3L]], out$x, size = 4)
    before <- before + length(made[[2L]])
  }
}

read_h5 <- function(file) { # rhdf5, as the import uses it
  about <- rhdf5::h5ls(file, recursive = TRUE)
  stored <- as.numeric(about$dim[about$group == "/X" & about$name == "data"])
  for (first in seq(1, stored, by = 2^22)) {
    for (part in c("X/data", "X/indices")) {
      rhdf5::h5read(file, part, start = first, count = min(2^22, stored - first + 1))
    }
  }
}

part_of <- function(what, folder, file) {
  if (what != "make") loadNamespace("rhdf5")
  spent <- system.time(switch(what, make = make_cells(as.numeric(file), folder), rhdf5 = read_h5(file),
                              weft = weft::weft_import(file, file.path(folder, "cells.weft"), overwrite = TRUE,
                                                       run = weft_run(progress = FALSE))))
  cat(spent[["elapsed"]], sum(spent[c(1, 2, 4, 5)], na.rm = TRUE), memory(),
      if (what == "weft") file.size(file.path(folder, "cells.weft")) else 0, "\n")
}
if (identical(given[1L], "--part")) {
  part_of(given[2L], given[3L], given[4L])
  quit(status = 0)
}

python <- given[1L]
cells <- as.numeric(c(given[-1L], 250000)[1L])
folder <- c(given[-(1:2)], tempfile("import"))[1L]
dir.create(folder)
machine_line()
script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
in_r <- function(what, file) {
  system2(file.path(R.home("bin"), "Rscript"), c(script, "--part", what, folder, format(file, scientific = FALSE)),
          stdout = TRUE)
}
in_python <- function(what, file) system2(python, c(bench_file("cells-import.py"), what, folder, file), stdout = TRUE)
in_c <- if (nzchar(Sys.which("h5cc"))) {
  built <- file.path(folder, "read")
  if (system2("h5cc", c("-O2", "-o", built, bench_file("cells-import.c")), stdout = FALSE) == 0) built
}
report <- function(name, said) {
  v <- suppressWarnings(as.numeric(strsplit(trimws(utils::tail(c("", said), 1L)), " +")[[1L]]))
  if (length(v) != 4L || anyNA(v)) return(cat(sprintf("%-28s did not run\n", name)))
  cat(sprintf("%-28s %7.2f s  processor %7.2f s  memory %5.2f GB%s\n", name, v[1], v[2], v[3],
              if (v[4] > 0) sprintf("  %.4g GB on disk", v[4] / 1e9) else ""))
}
invisible(in_r("make", cells))
report("written by anndata", in_python("write", genes))
unlink(file.path(folder, c("p", "i", "x")))
for (name in c("plain", "gzip")) {
  file <- file.path(folder, paste0(name, ".h5ad"))
  cat(sprintf("%s.h5ad: %.4g GB\n", name, file.size(file) / 1e9))
  report("  read by h5py", in_python("read", file))
  report("  read by H5Dread() in C", if (!is.null(in_c)) system2(in_c, file, stdout = TRUE))
  report("  read by rhdf5", in_r("rhdf5", file))
  report("  imported by weft", in_r("weft", file))
  if (name == "plain") report("  imported by BPCells", in_python("bpcells", file))
}
unlink(folder, recursive = TRUE)
