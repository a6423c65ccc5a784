# What the benchmark scripts share: timing, the naive C loops, and a header that names the machine.

# Medians of `times` runs of each expression, in turn, so that a drift of the machine hits all alike.
time_in_turn <- function(..., times = 7) {
  work <- list(...)
  seconds <- sapply(seq_len(times), function(k) vapply(work, function(f) system.time(f())[["elapsed"]], 0))
  apply(matrix(seconds, length(work), dimnames = list(names(work), NULL)), 1, stats::median)
}

load_naive <- function() {
  file <- file.path(tempdir(), "naive.c")
  source_file <- Find(file.exists, c("inst/bench/naive.c", system.file("bench", "naive.c", package = "weft")))
  file.copy(source_file, file, overwrite = TRUE)
  if (!system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", file), stdout = FALSE) == 0) stop("cannot build naive.c")
  dyn.load(sub("c$", "so", file))
}

machine_line <- function() {
  cpu <- "unknown CPU"
  if (file.exists("/proc/cpuinfo")) cpu <- sub(".*: ", "", grep("model name", readLines("/proc/cpuinfo"), value = TRUE)[1])
  gpu <- weft_devices()$name
  cat(sprintf("%s, %d cores%s, %s, weft %s\n", cpu, parallel::detectCores(), if (length(gpu)) paste(",", gpu[1]) else "",
              format(Sys.Date()), utils::packageVersion("weft")))
}
