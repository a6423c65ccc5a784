# The choice of `method = "auto"`: processor time of the whole call over the better of "direct" and "tree", on a grid of
# (n, d, h, relative error, kernel), one thread. Prints the grid and the worst ratio. Processor time, so that other work
# on the machine counts little; of each method the best of three runs in turn counts, of twelve where the ratio is above
# 1.3 after three, a run being as many calls as add up to a twentieth of a second. The first call is left out. What
# takes more than ten times the direct sum is run once. Arguments: a number that scales n, and the share of the grid to
# run (default 1 1).
library(weft)
source("inst/bench/bench.R")
machine_line()
cat("load:", system("uptime", intern = TRUE), "\n")
given <- c(as.numeric(commandArgs(TRUE)), 1, 1)
set.seed(1)
clustered <- function(n, d) {
  centres <- matrix(runif(50 * d), 50)
  centres[sample(50, n, TRUE), , drop = FALSE] + matrix(rnorm(n * d, sd = 0.05), n)
}
grid <- expand.grid(n = c(5000, 20000) * given[1], d = c(1, 2, 4, 10), h = c(0.01, 0.1, 1), rel_error = c(0, 1e-3, 0.1),
                    kernel = c("gaussian", "epanechnikov"), stringsAsFactors = FALSE)
# in any order, so that what an early end leaves is of all kinds
grid <- grid[sample(nrow(grid), round(given[2] * nrow(grid))), ]
busy <- function(work, times) {
  t <- system.time(for (k in seq_len(times)) work())
  (t[["user.self"]] + t[["sys.self"]]) / times
}
began <- proc.time()
seconds <- t(mapply(function(n, d, h, rel_error, kernel) {
  x <- clustered(n, d)
  run <- function(method) function() kernel_sum(x, kernel = kernel, bandwidth = h, rel_error = rel_error,
                                                method = method, run = weft_run("cpu", threads = 1))
  methods <- c(direct = "direct", tree = "tree", auto = "auto")
  t <- vapply(methods, function(m) busy(run(m), 1), 0)
  again <- methods[t < 10 * t[["direct"]]]
  times <- ceiling(0.05 / pmax(t, 1e-3))
  best <- replace(t, again, Inf)
  for (round in 1:12) {
    if (round > 3 && best[["auto"]] <= 1.3 * min(best[c("direct", "tree")])) break
    best[again] <- pmin(best[again], vapply(again, function(m) busy(run(m), times[[m]]), 0))
  }
  t <- best
  cat(sprintf("%6.0f %2d %5.2f %6g %-12s direct %.4f tree %.4f auto %.4f ratio %.2f\n", n, d, h, rel_error, kernel,
              t[["direct"]], t[["tree"]], t[["auto"]], t[["auto"]] / min(t[["direct"]], t[["tree"]])))
  t
}, grid$n, grid$d, grid$h, grid$rel_error, grid$kernel))
spent <- proc.time() - began
grid <- cbind(grid, round(seconds, 4), ratio = round(seconds[, "auto"] / pmin(seconds[, "direct"], seconds[, "tree"]),
                                                     2))
print(grid[order(grid$ratio), ], row.names = FALSE)
long <- pmin(seconds[, "direct"], seconds[, "tree"]) > 0.01
cat(sprintf(paste("%d cells: worst ratio %.2f; above 1.3 in %d; among the %d that take more than 0.01 s either way",
                  "%.2f, above 1.3 in %d; %.0f s of processor\n"), nrow(grid), max(grid$ratio), sum(grid$ratio > 1.3),
                  sum(long),
            max(grid$ratio[long]), sum(grid$ratio[long] > 1.3), sum(spent[1:2])))
