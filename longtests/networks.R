# Searches, chains and exact sums of networks that are large enough for several threads: random calls (backends.R) have
# some ten nodes, for which no thread is woken. Each runs with one thread and with four, which must give the same bits.
#
#   Rscript longtests/networks.R [words that the calls' names contain]
#
# longtests/races.sh runs it under ThreadSanitizer, tools/sanitized.sh under the other sanitizers. A line for each call;
# exit status 1 if two sides differ, or if a call woke no thread and so proves nothing.
suppressPackageStartupMessages(library(weft))
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
  fit <- bn_learn(data, 3, candidates = 6, iterations = 1500, target = target, chains = 6, temperatures = c(1, 1.5, 2),
                  thin = 20, seed = 3, threads = threads, backend = "cpu", ...)
  list(sampled(fit), sampled(stats::update(fit, iterations = 300, threads = threads)))
}

set.seed(1)
levels40 <- linked_levels(40, 300)
numbers40 <- linked_numbers(40, 120)
numbers270 <- linked_numbers(270, 90)
levels13 <- linked_levels(13, 150, 2L)
levels16 <- linked_levels(16, 150, 2L)
calls <- list(
  "search, starts, levels" = function(threads) {
    found(bn_search(levels40, kicks = 150, starts = 4, seed = 2, threads = threads))
  },
  "search, starts, BDeu of few candidates" = function(threads) {
    found(bn_search(levels40, score = "bdeu", candidates = 5, kicks = 60, starts = 5, seed = 3, threads = threads))
  },
  "search, starts, numbers" = function(threads) {
    found(bn_search(numbers40, kicks = 150, starts = 4, seed = 2, threads = threads))
  },
  "search, lanes" = function(threads) { # one for every 16 of at least 256 numbers, with trees that all share
    found(bn_search(numbers270, candidates = 8, kicks = 200, starts = 2, seed = 2, threads = threads))
  },
  "search, lanes, many rounds" = function(threads) {
    found(bn_search(numbers270, max_parents = 3, candidates = 6, kicks = 1200, starts = 1, seed = 4, threads = threads))
  },
  "chains, max" = function(threads) chains(levels40, "max", threads, top = 20),
  "chains, sum" = function(threads) chains(levels40, "sum", threads),
  "chains, uniform" = function(threads) chains(levels40, "uniform", threads),
  "chains, uniform, BGe" = function(threads) chains(numbers40, "uniform", threads, score = "bge"),
  "exact, none" = function(threads) summed(bn_exact(levels16, 3, threads = threads, backend = "cpu")),
  "exact, order" = function(threads) {
    summed(bn_exact(levels16, 3, posterior = "order", threads = threads, backend = "cpu"))
  },
  "exact, dag, with draws" = function(threads) {
    fit <- bn_exact(levels13, 3, posterior = "dag", threads = threads, backend = "cpu")
    list(summed(fit), plain(unclass(bn_features(fit, draws = 300, seed = 1, threads = threads))))
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
