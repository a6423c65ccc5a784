# The choice of `method = "auto"`: processor time of the whole call over the better of "direct" and "tree", on a grid of
# (n, d, h, relative error, kernel), one thread. Prints the grid and the worst ratio. Processor time, so that other work on the machine
# counts little; the best of 2 runs in turn. An argument scales n.
library(weft)
source(Find(file.exists, c("inst/bench/bench.R", system.file("bench", "bench.R", package = "weft"))))
machine_line()
cat("load:", system("uptime", intern = TRUE), "\n")
size <- as.numeric(c(commandArgs(TRUE), 1)[1])
set.seed(1)
clustered <- function(n, d) {
  centres <- matrix(runif(50 * d), 50)
  centres[sample(50, n, TRUE), , drop = FALSE] + matrix(rnorm(n * d, sd = 0.05), n)
}
grid <- expand.grid(n = c(5000, 20000) * size, d = c(1, 2, 4, 10), h = c(0.01, 0.1, 1), rel_error = c(0, 1e-3, 0.1),
                    kernel = c("gaussian", "epanechnikov"), stringsAsFactors = FALSE)
busy <- function(work) { gc(FALSE); t <- system.time(work()); t[["user.self"]] + t[["sys.self"]] }
grid <- grid[sample(nrow(grid)), ] # so that what an early end leaves is of all kinds
seconds <- t(mapply(function(n, d, h, rel_error, kernel) {
  x <- clustered(n, d)
  run <- function(method) busy(function() kernel_sum(x, kernel = kernel, bandwidth = h, rel_error = rel_error, method = method,
                                                     backend = "cpu", threads = 1))
  t <- replicate(2, vapply(c(direct = "direct", tree = "tree", auto = "auto"), run, 0))
  t <- apply(t, 1, min)
  cat(sprintf("%6.0f %2d %5.2f %6g %-12s direct %.3f tree %.3f auto %.3f ratio %.2f\n", n, d, h, rel_error, kernel, t[["direct"]],
              t[["tree"]], t[["auto"]], t[["auto"]] / min(t[["direct"]], t[["tree"]])))
  t
}, grid$n, grid$d, grid$h, grid$rel_error, grid$kernel))
grid <- cbind(grid, round(seconds, 3), ratio = round(seconds[, "auto"] / pmin(seconds[, "direct"], seconds[, "tree"]), 2))
print(grid, row.names = FALSE)
long <- pmin(seconds[, "direct"], seconds[, "tree"]) > 0.05
cat(sprintf("worst ratio %.2f; among the %d that take more than 0.05 s either way %.2f, above 1.3 in %d\n", max(grid$ratio), sum(long),
            max(grid$ratio[long]), sum(grid$ratio[long] > 1.3)))
