# What the benchmark scripts share: timing, the naive C loops, a header that names the machine, and simulated data. The
# scripts are run from the root of the sources; of this folder, only the tables that vignettes draw are installed.

`%||%` <- function(a, b) if (is.null(a)) b else a

# A file beside these scripts.
bench_file <- function(name) file.path("inst/bench", name)

# What follows --name on the command line.
option <- function(name, default) {
  given <- commandArgs(TRUE)
  at <- match(paste0("--", name), given)
  if (is.na(at)) default else given[at + 1L]
}

# Medians of `times` runs of each expression, in turn, so that a drift of the machine hits all alike.
time_in_turn <- function(..., times = 7) {
  work <- list(...)
  seconds <- sapply(seq_len(times), function(k) vapply(work, function(f) system.time(f())[["elapsed"]], 0))
  apply(matrix(seconds, length(work), dimnames = list(names(work), NULL)), 1, stats::median)
}

# Builds and loads a C file that is beside these scripts. WEFT_BENCH_OBJECTS names a folder of what was built elsewhere,
# for a machine without a compiler; `settings`: lines of a Makevars.
load_c <- function(name, settings = character()) {
  ready <- file.path(Sys.getenv("WEFT_BENCH_OBJECTS", "."), paste0(name, ".so"))
  if (nzchar(Sys.getenv("WEFT_BENCH_OBJECTS")) && file.exists(ready)) return(dyn.load(ready))
  source_name <- paste0(name, ".c")
  folder <- tempfile(name)
  dir.create(folder)
  file.copy(bench_file(source_name), folder)
  writeLines(settings, file.path(folder, "Makevars"))
  old <- setwd(folder)
  on.exit(setwd(old))
  if (system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", source_name), stdout = FALSE) != 0) {
    stop("cannot build ", source_name)
  }
  dyn.load(file.path(folder, paste0(name, ".so")))
}

load_naive <- function() load_c("naive")

machine_line <- function() {
  cpu <- "unknown CPU"
  if (file.exists("/proc/cpuinfo")) cpu <- sub(".*: ", "",
                                               grep("model name", readLines("/proc/cpuinfo"), value = TRUE)[1])
  gpu <- weft_devices()$name
  cat(sprintf("%s, %d cores%s, %s, weft %s\n", cpu, parallel::detectCores(),
              if (length(gpu)) paste(",", gpu[1]) else "",
              format(Sys.Date()), utils::packageVersion("weft")))
}

# Data of a random network of three-level nodes with at most three parents each.
random_categories <- function(p, n = 1000, seed = 1) {
  set.seed(seed)
  codes <- matrix(0L, n, p)
  for (j in seq_len(p)) {
    parents <- sample.int(j - 1, min(j - 1, sample(0:3, 1)))
    configuration <- if (length(parents)) codes[, parents, drop = FALSE] %*% 3^(seq_along(parents) - 1) else rep(0, n)
    weights <- matrix(stats::rgamma(3^(length(parents) + 1), 0.4), ncol = 3)
    reached <- t(apply(weights / rowSums(weights), 1, cumsum))[configuration + 1, , drop = FALSE]
    codes[, j] <- rowSums(stats::runif(n) > reached[, 1:2])
  }
  as.data.frame(lapply(as.data.frame(codes), factor, levels = 0:2))
}
