# A whole transcriptome: matrix of information, CLR and ARACNE networks cut at a false discovery rate, components; seconds and
# peak memory of the process (VmHWM) a step. Beside it, where they are installed, minet and parmigene at smaller sizes in the same
# run, and what these come to at full size by the power of the number of genes that their last two sizes show.
# Usage: Rscript workflow-large.R [genes] [samples] [cpu|cuda]
library(weft)
source(Find(file.exists, c("inst/bench/bench.R", system.file("bench", "bench.R", package = "weft"))))
args <- commandArgs(TRUE)
genes <- if (length(args)) as.integer(args[1L]) else 20000L
samples <- if (length(args) > 1L) as.integer(args[2L]) else 500L
backend <- if (length(args) > 2L) args[3L] else "cpu"
has <- function(package) requireNamespace(package, quietly = TRUE)

# Genes that hang on 200 regulators: as many dependences as in real expression, in a second.
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
total <- 0
step <- function(what, expr, counts = TRUE) {
  seconds <- system.time(result <- expr)[[3L]]
  if (counts) total <<- total + seconds
  cat(sprintf("%-42s %8.2f s   peak %5.2f GiB so far\n", what, seconds, peak_gb()))
  result
}

machine_line()
cat(sprintf("%d genes, %d samples, backend \"%s\", %d threads, load %s\n\n", genes, samples, backend, weft_threads(),
            if (file.exists("/proc/loadavg")) sub(" .*", "", readLines("/proc/loadavg")) else "?"))
x <- expression(genes)
if (backend == "cuda") step("(device started)", mi_matrix(x[, 1:64], estimator = "spearman", backend = backend), FALSE)
q <- step("checks", gene_quality(x))
rm(x)
invisible(step("components", gene_components(q, seed = 1, backend = backend)))
net <- step("ARACNE network from data", gene_mi_network(q, method = "aracne", backend = backend))
cat(sprintf("  %s edges; these steps together %.2f s\n", format(weft:::count_edges(net), big.mark = ","), total))
rm(net)
invisible(gc())
net <- step("CLR network from data, 100,000 edges", gene_mi_network(q, method = "clr", edges = 1e5, backend = backend))
cat(sprintf("  %s edges\n", format(weft:::count_edges(net), big.mark = ",")))
rm(net)
invisible(gc())
cat("\nThe network's parts\n")
m <- step("matrix of information (Spearman)", mi_matrix(q$x, estimator = "spearman", backend = backend))
for (method in c("aracne", "clr")) {
  w <- step(toupper(method), mi_network(m, method, backend = backend))
  step("  its edges in a table", invisible(as.data.frame(w)))
  rm(w)
  invisible(gc())
}
invisible(step("threshold of a false discovery rate", weft:::significant_information(m, 0.01)))
rm(m)
cat(sprintf("\nPeak memory of all: %.2f GiB\n", peak_gb()))

# ---- peers ----

sizes <- list(minet = c(500L, 1000L, 2000L), parmigene = c(100L, 200L, 400L))
peers <- list()
if (has("minet")) peers$minet <- list(
  `matrix (Spearman)` = function(d, m) minet::build.mim(d, "spearman"), ARACNE = function(d, m) minet::aracne(m),
  CLR = function(d, m) minet::clr(m)
)
if (has("parmigene")) peers$parmigene <- list(
  `matrix (nearest neighbours)` = function(d, m) parmigene::knnmi.all(t(d)), ARACNE = function(d, m) parmigene::aracne.a(m),
  CLR = function(d, m) parmigene::clr(m)
)
for (package in names(peers)) {
  at <- sizes[[package]]
  seconds <- vapply(at, function(p) {
    d <- expression(p)
    m <- NULL
    vapply(peers[[package]], function(f) {
      t <- system.time(r <- f(d, m))[[3L]]
      if (is.null(m)) m <<- r
      t
    }, 0)
  }, numeric(3L))
  power <- log(seconds[, 3L] / seconds[, 2L]) / log(2)
  whole <- seconds[, 3L] * (genes / at[3L])^power
  cat(sprintf("\n%s %s: seconds at %s genes, power of the last two, and from it at %d\n", package, utils::packageVersion(package),
              paste(at, collapse = ", "), genes))
  print(signif(cbind(seconds, power, whole), 3))
  cat(sprintf("matrix and ARACNE at %d genes: some %.0f s\n", genes, sum(whole[1:2])))
}
