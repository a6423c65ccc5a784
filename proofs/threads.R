# Calls that are large enough for several threads: searches, chains and exact sums of networks, components, stores,
# co-clustering, kernel sums. Random calls (backends.R) have some ten columns, for which no thread is woken. Each
# runs with one thread and with four, which must give the same bits.
#
#   Rscript proofs/threads.R [words that the calls' names contain]
#
# proofs/races.sh runs it under ThreadSanitizer, tools/sanitized.sh under the other sanitizers. A line for each call;
# exit status 1 if two sides differ, or if a call woke no thread and so proves nothing.
suppressPackageStartupMessages({
  library(weft)
  library(Matrix)
})
options(weft.progress = FALSE)
source("tests/testthat/helper-calls.R")
threads <- 4

# Nodes in a row, each a noisy copy of one of the three before it; a tenth of them have a second parent.
linked_numbers <- function(p, n) {
  x <- matrix(stats::rnorm(n * p), n, dimnames = list(NULL, sprintf("n%03d", seq_len(p))))
  for (j in seq_len(p)[-1L]) {
    x[, j] <- x[, j] + x[, j - sample(min(j - 1L, 3L), 1L)]
    if (j > 9L && chance(0.1)) x[, j] <- x[, j] - x[, j - 9L]
  }
  x
}

linked_levels <- function(p, n, levels = 3L) {
  as.data.frame(lapply(as.data.frame(linked_numbers(p, n)), function(x) {
    factor(cut(x, c(-Inf, stats::quantile(x, seq_len(levels - 1L) / levels), Inf), labels = FALSE), seq_len(levels))
  }))
}

found <- fields("dag", "score", "node_scores", "order", "start_scores", "counts")
sampled <- fields("score", "dag", "dags", "best_sets", "edges", "trace", "order", "counts", "sampled", "sample_score",
                  "diagnostics")
summed <- fields("dag", "score", "edges", "log_total")

chains <- function(data, target, threads, ...) {
  fit <- bn_learn(data, 3, candidates = 6, iterations = 1500, target = target, chains = 6, seed = 3,
                  run = weft_run("cpu", threads = threads), ..., control = list(temperatures = c(1, 1.5, 2), thin = 20))
  list(sampled(fit), sampled(stats::update(fit, iterations = 300, threads = threads)))
}

# Counts, of which a tenth are not 0, in enough rows for several bands of tiles (src/pca/cpu/tiles.c).
some_counts <- function(n, p) {
  Matrix::sparseMatrix(sample(n, n * p / 10, TRUE), sample(p, n * p / 10, TRUE), x = 1, dims = c(n, p))
}

components <- function(x, threads, ...) {
  fit <- pca(x, seed = 1, run = weft_run("cpu", threads = threads), ...)
  plain(unclass(fit)[c("d", "rotation", "x", "center", "residual", "passes")])
}

# What is read of a store, normalised: sums, values, components.
read_store <- function(counts, threads, ...) {
  withr::local_options(weft.threads = threads)
  path <- withr::local_tempfile(fileext = ".weft")
  store <- store_normalise(weft_import(counts, path, ...))
  plain(list(Matrix::colSums(store), Matrix::rowSums(store), store[, 3:90], store[seq(1, nrow(counts), 7), ],
             components(store, threads, k = 4)))
}

groups <- function(A, threads, ...) {
  fit <- irm(A, seed = 1, run = weft_run("cpu", progress = FALSE, threads = threads), ...)
  plain(unclass(fit)[c("row_cluster", "col_cluster", "log_posterior", "n_clusters", "eta")])
}

sums <- function(points, threads, ...) {
  plain(kernel_sum(points[1:2000, ], points, run = weft_run("cpu", threads = threads), ...))
}

set.seed(1)
counts <- some_counts(13000, 250)
values <- counts
values@x <- stats::rexp(length(values@x)) # too many different ones in a row for a table
levels40 <- linked_levels(40, 300)
numbers40 <- linked_numbers(40, 120)
numbers270 <- linked_numbers(270, 90)
numbers600 <- linked_numbers(600, 80)
gaps <- matrix(stats::rnorm(2.2e6), 2000)
gaps[sample(length(gaps), 1000)] <- NA
links <- some_counts(3000, 1500) > 0
plane <- matrix(stats::rnorm(60000), ncol = 2)
levels13 <- linked_levels(13, 150, 2L)
levels16 <- linked_levels(16, 150, 2L)
calls <- list(
  "components, tiles of few values" = function(threads) components(counts, threads, k = 4),
  "components, tiles of any values" = function(threads) components(values, threads, k = 7, scale = TRUE),
  "components, tiles of some panels" = function(threads) components(list(counts, values), threads, k = 3),
  "components, tiles, products one by one" = function(threads) {
    components(counts, threads, k = 4, method = "krylov", weights = seq(1, 2, length.out = nrow(counts)))
  },
  "store, blocks at once" = function(threads) read_store(counts, threads, memory = 2^21),
  "store, one block" = function(threads) read_store(counts, threads),
  "components, dense" = function(threads) {
    list(components(t(numbers600), threads, k = 5), components(gaps[, 1:600][1:700, ], threads, na = "em", k = 2))
  },
  "components, gaps" = function(threads) components(gaps, threads, method = "nipals", k = 1, tol = 0.5),
  "components, few columns" = function(threads) components(counts[, 1:60], threads, k = 30, method = "gram"),
  "network, ARACNE" = function(threads) {
    plain(mi_network(numbers600, "aracne", estimator = "pearson", run = weft_run("cpu", threads = threads)))
  },
  "co-clustering" = function(threads) groups(links, threads, chains = 1, sweeps = 3),
  "co-clustering, chains abreast" = function(threads) { # of twice as many threads
    groups(links[1:500, 1:100], if (threads > 1) 8 else 1, chains = 2, sweeps = 20)
  },
  "kernel sums, over trees" = function(threads) {
    tree <- kernel_tree(plane, leaf_size = 20)
    list(sums(plane, threads, bandwidth = 0.3, method = "tree", rel_error = 1e-3),
         plain(kernel_sum(plane[1:2000, ], tree, bandwidth = 0.05, run = weft_run(threads = threads),
                          rel_error = 1e-6)))
  },
  "kernel sums, directly" = function(threads) sums(plane, threads, bandwidth = 0.3),
  "search, starts, levels" = function(threads) {
    found(bn_search(levels40, seed = 2, run = weft_run(threads = threads), control = list(kicks = 150, starts = 4)))
  },
  "search, starts, BDeu of few candidates" = function(threads) {
    found(bn_search(levels40, score = "bdeu", candidates = 5, seed = 3, run = weft_run(threads = threads),
                    control = list(kicks = 60, starts = 5)))
  },
  "search, starts, numbers" = function(threads) {
    found(bn_search(numbers40, seed = 2, run = weft_run(threads = threads), control = list(kicks = 150, starts = 4)))
  },
  "search, lanes" = function(threads) { # one for every 16 of at least 256 numbers, with trees that all share
    found(bn_search(numbers270, candidates = 8, seed = 2, run = weft_run(threads = threads),
                    control = list(kicks = 200, starts = 2)))
  },
  "search, lanes, many rounds" = function(threads) {
    found(bn_search(numbers270, max_parents = 3, candidates = 6, seed = 4, run = weft_run(threads = threads),
                    control = list(kicks = 1200, starts = 1)))
  },
  "chains, max, sets as needed" = function(threads) { # near_table.c, whose orders settle (best_places.c)
    sampled(bn_learn(levels40, iterations = 800, chains = 6, seed = 3, run = weft_run("cpu", threads = threads)))
  },
  "chains, max, sets as needed, numbers" = function(threads) {
    sampled(bn_learn(numbers40, score = "bge", iterations = 800, chains = 4, seed = 3,
                     run = weft_run("cpu", threads = threads)))
  },
  "chains, max" = function(threads) chains(levels40, "max", threads, top = 20),
  "chains, sum" = function(threads) chains(levels40, "sum", threads),
  "chains, uniform" = function(threads) chains(levels40, "uniform", threads),
  "chains, uniform, BGe" = function(threads) chains(numbers40, "uniform", threads, score = "bge"),
  "exact, none" = function(threads) summed(bn_exact(levels16, 3, run = weft_run("cpu", threads = threads))),
  "exact, order" = function(threads) {
    summed(bn_exact(levels16, 3, posterior = "order", run = weft_run("cpu", threads = threads)))
  },
  "exact, dag, with draws" = function(threads) {
    fit <- bn_exact(levels13, 3, posterior = "dag", run = weft_run("cpu", threads = threads))
    list(summed(fit), plain(unclass(bn_features(fit, draws = 300, seed = 1, run = weft_run(threads = threads)))))
  }
)

words <- commandArgs(TRUE)
if (length(words)) calls <- calls[Reduce(`|`, lapply(words, grepl, names(calls), fixed = TRUE))]
wrong <- 0
for (name in names(calls)) {
  alone <- calls[[name]](1)
  before <- .Call(weft:::C_weft_woken)
  together <- calls[[name]](threads)
  woken <- .Call(weft:::C_weft_woken) - before
  difference <- same_bits(alone, together)
  if (woken == 0) difference <- "no other thread was woken"
  wrong <- wrong + !is.null(difference)
  cat(sprintf("%-40s %6.0f regions of %d threads  %s\n", name, woken, threads,
              if (is.null(difference)) "the same" else paste("DIFFERENT", difference)))
}
quit(status = wrong > 0)
