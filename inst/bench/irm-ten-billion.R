# Co-clustering of a planted bipartite graph that comes in shards, up to 10^10 links. By default it has the shape of
# open chromatin: 10^6 cells by 10^6 regions, of which 1 % are open in a cell. Options: --links, --rows, --columns,
# --clusters (of rows and of columns), --shard (links in one), --sweeps, --max (clusters; default: irm()'s own),
# --attempts, --backend, --devices, --threads, --every (sweeps between two looks at the clusters; each look sends the
# links to the devices again). It prints what the call does as it goes, the agreement with the planted clusters at each
# look, the seconds of the call without those in which links are drawn, and memory.
#   Rscript inst/bench/irm-ten-billion.R --backend cuda --devices 2 --sweeps 12 --every 6      10^10 links, two devices
#   Rscript inst/bench/irm-ten-billion.R --backend cuda --links 1e9 --rows 3e5 --columns 3e5 --clusters 100 --sweeps 12
#   Rscript inst/bench/irm-ten-billion.R same --links 1e8 --rows 1e5 --columns 1e5 --clusters 50 --sweeps 12
# `same` compares the labels of one shard, of several, of the CPU and of one and two devices.
library(weft)
source("inst/bench/bench.R")
load_c("irm-shards", c("PKG_CFLAGS = -fopenmp -O3", "PKG_LIBS = -fopenmp -lm"))
number <- function(name, default) as.numeric(option(name, default))
rows <- number("rows", 1e6)
columns <- number("columns", 1e6)
k <- number("clusters", 200)
links <- number("links", 1e10)
sweeps <- number("sweeps", 60)
devices <- number("devices", 1)
every <- number("every", sweeps)

# Lines with the seconds since the script began; one every few seconds from within a stage.
opened <- proc.time()[[3]]
say <- function(...) {
  cat(sprintf("[%5.1f s] ", proc.time()[[3]] - opened), sprintf(...), "\n", sep = "")
  flush(stdout())
}
doing <- "starting"
last <- opened
progress <- function(done, total) {
  if (proc.time()[[3]] - last < 5) return()
  last <<- proc.time()[[3]]
  say("  %s%s", doing, if (total > 0) sprintf(": %.0f of 100", 100 * done / total) else "")
}

set.seed(1)
truth <- list(row = sample.int(k, rows, TRUE), col = sample.int(k, columns, TRUE))
rate <- matrix(stats::rexp(k * k), k) # column l: the rates of row cluster l
rate <- pmin(rate * links / sum(outer(tabulate(truth$col, k), tabulate(truth$row, k)) * rate), 0.9)
by_cluster <- order(truth$col) - 1L
begins <- c(0, cumsum(tabulate(truth$col, k)))
drawing <- 0

planted <- function(in_shard) {
  n <- max(1, floor(rows * in_shard / links))
  irm_shards(shards = ceiling(rows / n), function(i) {
    first <- (i - 1) * n
    seconds <- system.time({
      made <- .Call("planted_rows", first, min(n, rows - first), truth$row - 1L, by_cluster, begins, rate)
    }, gcFirst = FALSE)
    drawing <<- drawing + seconds[["elapsed"]]
    shard <- methods::new(methods::getClass("ngRMatrix", where = asNamespace("Matrix")))
    shard@p <- made[[1]]
    shard@j <- made[[2]]
    shard@Dim <- as.integer(c(min(n, rows - first), columns))
    shard
  })
}

# Gigabytes: the most that this process had, and of that native memory; and memory of all devices together.
peaks <- function() {
  line <- grep("VmHWM", readLines("/proc/self/status"), value = TRUE)
  native <- .Call(weft:::C_weft_memory, NULL)[c("host_peak", "device_peak")]
  c(as.numeric(gsub("[^0-9]", "", line)) * 1024, native) / 1e9
}

# The clusters that a run is at, looked at before each of its pieces of sweeps.
look <- function(job) {
  if (job$done == 0) return()
  z <- lapply(job$state[c("row", "col")], function(x) x + 1L)
  say("after sweep %d: NMI %.6f of rows, %.6f of columns; %d x %d clusters; log posterior %.10g", job$done,
      irm_nmi(z$row, truth$row), irm_nmi(z$col, truth$col), length(unique(z$row)), length(unique(z$col)),
      job$state$best)
}

# Seconds in parts of a call, those in which links are drawn among the shards'.
parts <- c(shards = "shard_graph", prepare = "prepare_graph", start = "start_state", sweeps = "irm_chains",
           result = "irm_result")
began <- spent <- stats::setNames(numeric(length(parts)), parts)
enter <- function(part, frame) {
  doing <<- names(parts)[parts == part]
  began[[part]] <<- proc.time()[[3]]
  if (part == "irm_chains") look(frame$job)
  say("%s", doing)
}
leave <- function(part) {
  took <- proc.time()[[3]] - began[[part]]
  spent[[part]] <<- spent[[part]] + took
  say("%s took %.1f s; %.1f GB of host memory, devices %.1f GB", names(parts)[parts == part], took, peaks()[1],
      peaks()[3])
}
for (part in parts) {
  suppressMessages(trace(part, where = asNamespace("weft"), print = FALSE,
                         bquote(.(enter)(.(part), environment())), exit = bquote(.(leave)(.(part)))))
}
# Pieces of sweeps come with checkpoints, which would contain all links.
utils::assignInNamespace("save_checkpoint", function(job) NULL, "weft")

fitted <- function(in_shard, backend, on = seq_len(devices) - 1) {
  drawing <<- 0
  spent[] <<- 0
  control <- c(list(split_merge = number("attempts", 30)),
               if (every < sweeps) list(checkpoint = tempfile(), checkpoint_sweeps = every))
  most <- number("max", NA)
  threads <- number("threads", NA)
  run <- weft_run(backend = backend, devices = if (backend == "cuda") on, progress = progress,
                  threads = if (!is.na(threads)) threads)
  seconds <- system.time(fit <- irm(planted(in_shard), chains = 1, sweeps = sweeps, seed = 1, run = run,
                                    max_clusters = if (!is.na(most)) most, control = control))[["elapsed"]]
  agree <- c(irm_nmi(fit$row_cluster, truth$row), irm_nmi(fit$col_cluster, truth$col))
  found <- which(fit$log_posterior[, 1] >= max(fit$log_posterior) - 1e-6 * abs(max(fit$log_posterior)))[1]
  cat(sprintf(paste("%s: %.4g links, %.1f s and %.1f s of drawing them; NMI %.4f of rows, %.4f of columns; %d x %d",
                    "clusters; within 10^-6 of the best log posterior %.8g from sweep %d on\n"),
              fit$backend, length(fit$run$graph$links$to), seconds - drawing, drawing, agree[1], agree[2],
              max(fit$row_cluster), max(fit$col_cluster), max(fit$log_posterior), found))
  cat(sprintf("  %s\n", paste(sprintf("%s %.1f s", names(parts), spent), collapse = ", ")))
  memory <- peaks()
  cat(sprintf("  stages of a device: %s s; up to %.1f GB of host memory, %.1f of it native; devices %.1f GB\n",
              paste(sprintf("%s %.2f", c("parameters", "rows", "columns", "blocks", "other"), fit$run$stages),
                    collapse = ", "), memory[1], memory[2], memory[3]))
  at <- unique(round(seq(1, sweeps, length.out = 8)))
  trace <- fit$run$trace
  cat(sprintf("  clusters at sweeps %s: %s\n", toString(at),
              paste(trace$row_clusters[at, 1], trace$col_clusters[at, 1], sep = " x ", collapse = ", ")))
  fit[c("row_cluster", "col_cluster", "log_posterior")]
}

machine_line()
if ("same" %in% commandArgs(TRUE)) {
  first <- fitted(links, "cpu")
  others <- list("several shards" = function() fitted(links / 7, "cpu"))
  if (nrow(weft_devices())) {
    others <- c(others, "a device" = function() fitted(links / 3, "cuda", 0),
                "a device as two" = function() fitted(links / 3, "cuda", c(0, 0)))
  }
  for (name in names(others)) {
    cat(sprintf("%s: %s\n", name, if (identical(first, others[[name]]())) "the same" else "OTHER LABELS"))
  }
} else {
  fit <- fitted(number("shard", 1e8), option("backend", "cuda"))
}
