# Files that weft_import() reads (Matrix Market, 10x Genomics' folders and .h5, AnnData's .h5ad and Zarr folders, loom,
# BPCells), changed at random: every import must end in a store that can be read or in an error of weft's own, leave
# nothing behind, and R must live.
# Rscript proofs/store-files.R [number of files, default 4000] [first seed]
# Imports run in processes of their own, a hundred each: a library that ends R is named with the seed that did it.
arguments <- commandArgs(TRUE)
helpers <- function() {
  suppressPackageStartupMessages(library(weft))
  for (file in c("helper-store.R", "helper-store-files.R")) source(file.path("tests/testthat", file))
}

run_some <- function(first, count, log) {
  helpers()
  folder <- tempfile("files")
  dir.create(folder)
  set.seed(1)
  files <- cell_files(folder)
  to <- file.path(folder, "out.weft")
  for (seed in first + seq_len(count) - 1) {
    set.seed(seed)
    file <- files[seed %% length(files) + 1]
    cat(sprintf("%.0f\t%s\tdied\n", seed, basename(file)), file = log, append = TRUE)
    how <- tryCatch(import_spoilt(file, to), error = function(e) paste0("other: ", conditionMessage(e)))
    if (length(list.files(folder, "part$", all.files = TRUE))) how <- "other: a temporary file is left"
    cat(sprintf("%.0f\t%s\t%s\n", seed, basename(file), gsub("[\t\n]", " ", how)), file = log, append = TRUE)
  }
  unlink(folder, recursive = TRUE)
}

if (identical(arguments[1L], "--some")) {
  run_some(as.numeric(arguments[2L]), as.numeric(arguments[3L]), arguments[4L])
  quit(status = 0)
}
arguments <- as.numeric(arguments)
count <- if (length(arguments) > 0L) arguments[1L] else 4000
first <- if (length(arguments) > 1L) arguments[2L] else 1
log <- tempfile("log")
script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
seed <- first
while (seed < first + count) {
  some <- min(100, first + count - seed)
  system2(file.path(R.home("bin"), "Rscript"), c(script, "--some", format(seed, scientific = FALSE), some, log),
          stdout = FALSE, stderr = FALSE)
  done <- utils::read.delim(log, header = FALSE, quote = "", comment.char = "")
  seed <- if (nrow(done)) max(seed, max(done[[1L]])) + 1 else seed + some # past the one that ended its process
}
done <- utils::read.delim(log, header = FALSE, col.names = c("seed", "file", "end"), quote = "", comment.char = "")
done <- done[!duplicated(done$seed, fromLast = TRUE), ]
odd <- done[!done$end %in% c("result", "input", "memory"), ]
for (k in seq_len(nrow(odd))) cat(sprintf("seed %.0f, %s: %s\n", odd$seed[k], odd$file[k], odd$end[k]))
print(table(done$file, sub(":.*", "", done$end)))
cat(sprintf("%d files: %d results, %d input errors, %d memory errors, %d others\n", nrow(done),
            sum(done$end == "result"), sum(done$end == "input"), sum(done$end == "memory"), nrow(odd)))
quit(status = nrow(odd) > 0 || nrow(done) < count)
