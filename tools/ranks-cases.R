# Kernel sums over ranks against 113-bit arithmetic, on the hard cases of the tests, in parts of every kind.
#   mpirun -n 5 Rscript tools/ranks-cases.R [first seed] [number of seeds]
# tools/ranks-cases.sh runs it for 1 to 7 ranks. Every rank works on all cases; rank 0 prints what fails, and how many
# passed.
suppressMessages(library(weft))
source("tests/testthat/helper-kernel.R")
skip <- function(...) stop("no compiler with libquadmath")
at <- weft_ranks()
me <- attr(at, "rank")
size <- attr(at, "size")
args <- as.integer(commandArgs(TRUE))
seeds <- seq.int(if (length(args)) args[1L] else 3001L, length.out = if (length(args) > 1L) args[2L] else 20L)
gather <- function(x) weft:::ranks_gather(x)
from_rank_0 <- function(work) gather(if (me == 0) work())[[1L]]

# Which rank has each of n rows: alike, at random and uneven, all at one rank, or none at every other rank.
deal <- function(n, how) {
  switch(how, even = (seq_len(n) - 1L) %% size, uneven = sample(0:(size - 1L), n, TRUE, (1:size)^4),
         one = rep(size - 1L, n),
         some = 2L * sample(0:((size - 1L) %/% 2L), n, TRUE), runs = sort((seq_len(n) - 1L) %% size))
}
deals <- c("even", "uneven", "one", "some", "runs")
tried <- 0
worst <- 0
failed <- character()
# Sums of all ranks in the order of the rows; `rows`: those of this rank.
together <- function(sums, rows, n) {
  all <- gather(list(sums = as.matrix(sums), rows = rows))
  out <- matrix(NA_real_, n, ncol(all[[1L]]$sums))
  for (part in all) out[part$rows, ] <- part$sums
  out
}
compare <- function(got, want, bound, info) {
  off <- abs(got - want)
  ratio <- max(0, ifelse(off <= 1e-300, 0, off / bound))
  tried <<- tried + 1
  if (is.na(ratio) || ratio > 1) failed <<- c(failed,
                                              sprintf("%s: %g of the bound", info,
                                                      ratio)) else worst <<- max(worst, ratio)
}
for (seed in seeds) {
  case <- hard_case(seed)
  kernel <- sample(setdiff(all_kernels, "matern12"), 1)
  epsilon <- sample(c(0.5, 0.1, 0.01, 1e-4, 1e-8), 1)
  tau <- sample(c(0, 0, 1e-3), 1)
  method <- sample(c("auto", "direct", "tree", "tree"), 1)
  # duplicates may be among the queries of leave-one-out sums
  n <- nrow(case$x)
  nq <- nrow(case$q)
  own <- deal(n, sample(deals, 1)) == me
  asks <- deal(nq, sample(deals, 1)) == me
  x <- case$x[own, , drop = FALSE]
  q <- case$q[asks, , drop = FALSE]
  known <- from_rank_0(function() list(plain = quad_sum(case$q, case$x, case$w, case$h, kernel),
                                       signed = quad_sum(case$q, case$x, case$signed, case$h, kernel),
                                       left = quad_sum(case$x, case$x, case$w, case$h, kernel, TRUE)))
  info <- function(what) sprintf("seed %d, %s: %s, %s, %s, rel_error %g, abs_error %g", seed, what, kernel, method,
                                 case$what, epsilon, tau)
  sum_of <- function(w, ...) {
    together(kernel_sum(q, x, w[own, , drop = FALSE], kernel, case$h, method = method, run = weft_run(ranks = TRUE),
                        ...),
             which(asks), nq)
  }
  self <- function(...) {
    together(kernel_sum(x, weights = case$w[own, , drop = FALSE], kernel = kernel, bandwidth = case$h, method = method,
                        leave_one_out = TRUE, run = weft_run(ranks = TRUE), ...), which(own), n)
  }
  compare(sum_of(case$w), known$plain$sum, 1e-12 * known$plain$absolute, info("exact"))
  compare(sum_of(case$signed), known$signed$sum, 1e-12 * known$signed$absolute, info("signed"))
  compare(self(), known$left$sum, 1e-12 * known$left$absolute, info("left out"))
  compare(sum_of(case$w, rel_error = epsilon, abs_error = tau), known$plain$sum, epsilon * known$plain$sum + tau,
          info("bound"))
  compare(sum_of(case$signed, rel_error = epsilon, abs_error = tau), known$signed$sum,
          epsilon * known$signed$absolute + tau,
          info("signed bound"))
  compare(self(rel_error = epsilon), known$left$sum, epsilon * known$left$sum, info("left out bound"))
  logs <- sum_of(case$w, log = TRUE)
  finite <- is.finite(known$plain$log)
  compare(logs[finite], known$plain$log[finite], 1e-10 * pmax(1, 1e-4 * abs(known$plain$log[finite])),
          info("logarithms"))
}
if (me == 0) {
  if (length(failed)) cat(failed, sep = "\n")
  cat(sprintf("%d ranks, %d seeds: %d sums, %d failed; the others took at most %.2g of their bound\n", size,
              length(seeds), tried, length(failed), worst))
}
