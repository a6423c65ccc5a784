# A whole transcriptome: matrix of information, CLR and ARACNE networks cut at a false discovery rate, components;
# seconds by the clock and of processor time, and peak memory of the process (VmHWM), a step. Beside it, where they are
# installed, minet and parmigene at smaller sizes in the same run, and what these come to at full size.
# Usage: Rscript workflow-large.R [genes] [samples] [cpu|cuda] [both|weft|peers|whole|whole-class]
# whole, whole-class: gene_network() with its defaults instead, without or with a class of two levels.
library(weft)
source("inst/bench/bench.R")
args <- commandArgs(TRUE)
genes <- if (length(args)) as.integer(args[1L]) else 20000L
samples <- if (length(args) > 1L) as.integer(args[2L]) else 500L
backend <- if (length(args) > 2L) args[3L] else "cpu"
part <- if (length(args) > 3L) args[4L] else "both"
has <- function(package) requireNamespace(package, quietly = TRUE)

# Genes that depend on 200 regulators: as many dependences as in real expression, in a second.
expression <- function(p) {
  set.seed(1)
  regulators <- matrix(rnorm(samples * 200), samples)
  parts <- lapply(1:2, function(k) regulators[, sample(200, p, TRUE)] * rep(runif(p), each = samples))
  matrix(parts[[1L]] + parts[[2L]] + rnorm(samples * p), samples, dimnames = list(NULL, sprintf("G%d", seq_len(p))))
}

peak_gb <- function() {
  if (!file.exists("/proc/self/status")) return(NA_real_)
  as.numeric(gsub("[^0-9]", "", grep("VmHWM", readLines("/proc/self/status"), value = TRUE))) / 1024^2
}
total <- c(0, 0)
step <- function(what, expr, counts = TRUE) {
  t <- system.time(result <- expr)
  seconds <- c(t[[3L]], t[[1L]] + t[[2L]])
  if (counts) total <<- total + seconds
  cat(sprintf("%-42s %8.2f s  processor %8.2f s   peak %5.2f GiB so far\n", what, seconds[1L], seconds[2L], peak_gb()))
  result
}

machine_line()
cat(sprintf("%d genes, %d samples, backend \"%s\", %d threads, load %s\n\n", genes, samples, backend, weft_threads(),
            if (file.exists("/proc/loadavg")) sub(" .*", "", readLines("/proc/loadavg")) else "?"))
if (part %in% c("whole", "whole-class")) {
  x <- expression(genes)
  class <- if (part == "whole-class") factor(x[, 1L] + rnorm(samples) > 0)
  fit <- step("gene_network()", gene_network(x, class, seed = 1, run = weft_run(backend, progress = FALSE)))
  print(fit$steps[c("step", "seconds", "backend", "note")], right = FALSE, row.names = FALSE)
} else if (part != "peers") {
  x <- expression(genes)
  if (backend == "cuda") invisible(step("(device started)",
                                        mi_matrix(x[, 1:64], estimator = "spearman", run = backend), FALSE))
  q <- step("checks", gene_quality(x))
  rm(x)
  invisible(step("components", gene_components(q, seed = 1, run = backend)))
  net <- step("ARACNE network from data", gene_mi_network(q, method = "aracne", run = backend))
  cat(sprintf("  %s edges; these steps together %.2f s, processor %.2f s\n",
              format(weft:::count_edges(net), big.mark = ","), total[1L],
              total[2L]))
  rm(net)
  invisible(gc())
  net <- step("CLR network from data, 100,000 edges",
              gene_mi_network(q, method = "clr", edges = 1e5, run = backend))
  cat(sprintf("  %s edges\n", format(weft:::count_edges(net), big.mark = ",")))
  rm(net)
  invisible(gc())
  cat("\nThe network's parts\n")
  m <- step("matrix of information (Spearman)", mi_matrix(q$x, estimator = "spearman", run = backend))
  for (method in c("aracne", "clr")) {
    w <- step(toupper(method), mi_network(m, method, run = backend))
    if (method == "aracne") invisible(step("  its edges in a table", as.data.frame(w)))
    rm(w)
    invisible(gc())
  }
  invisible(step("threshold of a false discovery rate", weft:::significant_pairs(m, 0.01)))
  rm(m)
  cat(sprintf("\nPeak memory of all: %.2f GiB\n", peak_gb()))
}

# ---- peers ----

# Each step at two sizes, `repeats` times each. It is carried to full size by the power of the number of genes that its
# algorithm has (pairs: 2, triples: 3) and the constant measured at the larger size. `shown` is the power between the
# two sizes: where it is below that of the algorithm the smaller size still has other costs in it; where it is above,
# caches are left.
repeats <- 3L
powers <- c(matrix = 2, ARACNE = 3, CLR = 2)
peers <- list(
  minet = list(
    matrix = list(what = "Spearman", at = c(2000L, 4000L), f = function(d, m) minet::build.mim(d, "spearman")),
    ARACNE = list(what = "ARACNE", at = c(1000L, 2000L), f = function(d, m) minet::aracne(m)),
    CLR = list(what = "CLR", at = c(2000L, 4000L), f = function(d, m) minet::clr(m))
  ),
  parmigene = list(
    matrix = list(what = "nearest neighbours", at = c(200L, 400L), f = function(d, m) parmigene::knnmi.all(t(d))),
    ARACNE = list(what = "ARACNE", at = c(1000L, 2000L), f = function(d, m) parmigene::aracne.a(m)),
    CLR = list(what = "CLR", at = c(2000L, 4000L), f = function(d, m) parmigene::clr(m))
  )
)
time_peer <- function(step, size) {
  d <- expression(size)
  m <- mi_matrix(d, estimator = "spearman", unit = "nats", run = "cpu")
  attributes(m) <- attributes(m)[c("dim", "dimnames")]
  replicate(repeats, {
    t <- system.time(step$f(d, m))
    c(processor = t[[1L]] + t[[2L]], elapsed = t[[3L]])
  })
}
carried <- function(package) {
  rows <- lapply(names(peers[[package]]), function(name) {
    step <- peers[[package]][[name]]
    power <- powers[[name]]
    small <- time_peer(step, step$at[1L])["processor", ]
    large <- time_peer(step, step$at[2L])
    up <- (genes / step$at[2L])^power
    used <- large["processor", ]
    data.frame(step = step$what, genes = step$at[2L], seconds = stats::median(used), least = min(used),
               most = max(used),
               shown = log(stats::median(used) / stats::median(small)) / log(step$at[2L] / step$at[1L]), power = power,
               whole = stats::median(used) * up, whole_least = min(used) * up, whole_most = max(used) * up,
               whole_elapsed = stats::median(large["elapsed", ]) * up)
  })
  do.call(rbind, rows)
}
if (part %in% c("both", "peers")) for (package in Filter(has, names(peers))) {
  cat(sprintf(paste("\n%s %s, %d samples: seconds of processor time at `genes` (median, least and most of %d), the",
                    "power between that\n"),
              package, utils::packageVersion(package), samples, repeats),
      "and half as many genes, the algorithm's power, and what it comes to at ", genes,
      " genes (`whole`; `whole_elapsed` by the clock).\nNOT run at that size.\n", sep = "")
  table <- carried(package)
  print(data.frame(table[1L], signif(table[-1L], 3)), row.names = FALSE, width = 160)
  cat(sprintf("Matrix and ARACNE at %d genes: some %.0f s (%.0f to %.0f) of processor time\n", genes,
              sum(table$whole[1:2]), sum(table$whole_least[1:2]), sum(table$whole_most[1:2])))
}
