# Cliffs: one number of a call (rows, columns, components, levels, dimensions, bandwidth) grows in steps of at most a
# fifth, and what is printed is where the processor time of a call grows by more than half from one step to the next,
# with the figures before and after. The steps of a sweep are gone through upwards and downwards in turn, three times;
# of each the least time counts, since other work on the machine only adds to it. A call that takes less than 20 ms is
# repeated. A jump that three more measurements of the two steps do not show was the machine's.
#
# Usage: Rscript smooth.R [--only name] [--seconds 300] [--csv smooth.csv] [--threads 1]
library(weft)
source("inst/bench/bench.R")

steps <- function(from, to, by = 1.15) unique(round(from * by^(0:floor(log(to / from) / log(by)))))
normal <- function(n, p) matrix(stats::rnorm(n * p), n)
levels_of <- function(n, p, levels) matrix(sample.int(levels, n * p, TRUE) - 1L, n)
quiet <- function(...) suppressWarnings(suppressMessages(...))

# A sweep: the values, and a function of one that makes the data and returns the call. Differences that lie in the
# problem itself (the first component more that fills no gap) are no cliffs of weft's; what is known of them stands in
# `why`.
sweep <- function(values, call, why = "") list(values = values, call = call, why = why)

sweeps <- list(
  "pca, components" = sweep(30:58, function(k) { x <- normal(1000, 6000); function() pca(x, k) }),
  "pca, rows" = sweep(steps(200, 3000), function(n) { x <- normal(n, 2000); function() pca(x, 10) },
                      "eigenvectors of the smaller side grow with its cube: half more for each step up to 1,024"),
  "pca, columns" = sweep(steps(200, 3000), function(p) { x <- normal(2000, p); function() pca(x, 10) },
                         "eigenvectors of the smaller side grow with its cube: half more for each step up to 1,024"),
  "pca, sparse, components" = sweep(5:24, function(k) {
    x <- Matrix::rsparsematrix(5000, 1000, 0.02)
    function() pca(x, k)
  }),
  "kernel_pca, points" = sweep(steps(300, 1500), function(n) { x <- normal(n, 4); function() kernel_pca(x, 5) }),
  "mi_pairs, levels" = sweep(2:34, function(levels) {
    x <- levels_of(1000, 300, levels)
    class <- rep(0:1, 500)
    function() mi_pairs(x, class)
  }, "counts grow with the square of the levels; more than 24 are counted row by row, without vectors"),
  "mi_pairs, rows" = sweep(steps(200, 6000), function(n) {
    x <- levels_of(n, 400, 2)
    class <- rep_len(0:1, n)
    function() mi_pairs(x, class)
  }),
  "mi_pairs, columns" = sweep(steps(100, 1500), function(p) {
    x <- levels_of(500, p, 2)
    class <- rep_len(0:1, 500)
    function() mi_pairs(x, class)
  }),
  "mi_matrix, levels" = sweep(2:34, function(levels) {
    x <- levels_of(1000, 200, levels)
    function() mi_matrix(x)
  }, "counts grow with the square of the levels; more than 24 are counted row by row, without vectors"),
  "mi_rank, columns" = sweep(steps(200, 6000), function(p) {
    x <- levels_of(300, p, 3)
    class <- rep_len(0:1, 300)
    function() mi_rank(x, class)
  }),
  "mi_network, clr, genes" = sweep(steps(200, 1500), function(p) {
    m <- abs(stats::cor(normal(30, p)))
    function() mi_network(m, method = "clr")
  }, "from 800 genes on the matrix and its copies leave the cache"),
  "discretize, columns" = sweep(steps(200, 6000), function(p) { x <- normal(100, p); function() discretize(x) }),
  "bn_scores, rows" = sweep(steps(500, 60000), function(n) {
    x <- as.data.frame(levels_of(n, 10, 2))
    x[] <- lapply(x, factor, levels = 0:1)
    function() bn_scores(x, max_parents = 2, run = weft_run(progress = FALSE))
  }),
  "bn_scores, nodes" = sweep(6:24, function(p) {
    x <- as.data.frame(levels_of(1000, p, 2))
    x[] <- lapply(x, factor, levels = 0:1)
    function() bn_scores(x, max_parents = 3, run = weft_run(progress = FALSE))
  }, "sets of three parents grow with the cube of the nodes, which at 6 to 10 nodes is more than half a step"),
  "kernel_sum, points, 1-D" = sweep(steps(100, 30000), function(n) {
    x <- stats::rnorm(n)
    function() kernel_sum(x, bandwidth = n^-0.2)
  }),
  "kernel_sum, points, 3-D" = sweep(steps(300, 8000), function(n) {
    x <- normal(n, 3)
    function() kernel_sum(x, bandwidth = 0.3, rel_error = 1e-3)
  }, "from 1,500 points on trees are grown, and given up where that is seen not to pay: a millisecond"),
  "kernel_sum, dimensions" = sweep(1:16, function(d) {
    x <- normal(3000, d)
    function() kernel_sum(x, bandwidth = 0.5, rel_error = 1e-3)
  }, "one dimension is summed along a line"),
  "kernel_sum, bandwidth, 1-D" = sweep(0.001 * 1.15^(0:60), function(h) {
    x <- stats::rnorm(5000)
    function() kernel_sum(x, bandwidth = h, rel_error = 1e-4)
  }),
  "kernel_sum, bandwidth, 2-D" = sweep(0.01 * 1.15^(0:40), function(h) {
    x <- normal(4000, 2)
    function() kernel_sum(x, bandwidth = h, rel_error = 1e-3)
  }),
  "kde, lscv, points" = sweep(steps(100, 50000), function(n) { x <- stats::rnorm(n); function() kde(x, "lscv") },
                              "pairs are counted again where a search goes below the bandwidths that it began with"),
  "kde, plug-in, points" = sweep(steps(100, 50000), function(n) { x <- stats::rnorm(n); function() kde(x, "plugin") }),
  "gp_regression, points" = sweep(steps(50, 1500), function(n) {
    x <- matrix(stats::runif(8 * n), n)
    y <- stats::rnorm(n)
    function() quiet(gp_regression(x, y, bandwidth = 0.5))
  }, "a factor grows with the cube of the points; the choice of one goes by the pace of R's BLAS, which is timed")
)

# ---- measuring ----

seconds_of <- function(f) {
  times <- 1
  repeat {
    t <- system.time(for (k in seq_len(times)) f(), gcFirst = FALSE)
    if (sum(t[1:2]) >= 0.02 || times >= 256) return(sum(t[1:2]) / times)
    times <- times * 4
  }
}

measure <- function(sweep, rounds, until) {
  set.seed(1)
  calls <- lapply(sweep$values, sweep$call)
  least <- rep(Inf, length(calls))
  for (f in calls[c(1L, length(calls))]) f() # pages and caches are warm
  for (round in seq_len(rounds)) {
    order <- if (round %% 2) seq_along(calls) else rev(seq_along(calls))
    for (k in order) least[k] <- min(least[k], seconds_of(calls[[k]]))
    if (proc.time()[[3L]] > until) break
  }
  for (k in jumps(sweep$values, least)) {
    for (again in 1:3) for (j in c(k, k + 1L)) least[j] <- min(least[j], seconds_of(calls[[j]]))
  }
  least
}

# Steps whose time grows by more than half more than the value does.
jumps <- function(values, seconds) {
  k <- length(values) - 1L
  growth <- seconds[-1L] / seconds[seq_len(k)]
  which(growth > 1.5 & values[-1L] / values[seq_len(k)] < 1.2)
}

options(weft.threads = as.numeric(option("threads", 1)), weft.backend = "cpu")
only <- option("only", NULL)
if (!is.null(only)) sweeps <- sweeps[grepl(only, names(sweeps), fixed = TRUE)]
until <- proc.time()[[3L]] + as.numeric(option("seconds", 300))
rows <- NULL
for (name in names(sweeps)) {
  if (proc.time()[[3L]] > until) { cat("(time is up before ", name, ")\n", sep = ""); next }
  s <- sweeps[[name]]
  took <- measure(s, 3, until)
  rows <- rbind(rows, data.frame(sweep = name, value = s$values, seconds = took))
  found <- jumps(s$values, took)
  cat(sprintf("%-28s %g .. %g: %.2g .. %.2g s, %d jumps%s\n", name, s$values[1L], s$values[length(s$values)], took[1L],
              took[length(took)], length(found), if (length(found) && nzchar(s$why)) paste0(" (", s$why, ")") else ""))
  for (k in found) {
    cat(sprintf("    %g: %.3g s, %g: %.3g s, x %.1f\n", s$values[k], took[k], s$values[k + 1L], took[k + 1L],
                took[k + 1L] / took[k]))
  }
}
if (!is.null(option("csv", NULL))) utils::write.csv(rows, option("csv", NULL), row.names = FALSE)
