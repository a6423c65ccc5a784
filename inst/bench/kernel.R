# Kernel sums: pairs per second, sums beside sklearn and mlpack in the same run with the bounds each breaks, and the
# time to build each type of tree; the choice of "auto" has kernel-auto.R. Peers need a Python with scikit-learn and
# mlpack: name it in WEFT_PYTHON. A number as argument scales the sizes (default 1; 10 gives those of the peers'
# published figures).
library(weft)
source("inst/bench/bench.R")
machine_line()
size <- as.numeric(c(commandArgs(TRUE), 1)[1])
set.seed(1)
seconds <- function(work) system.time(work())[["elapsed"]]
clustered <- function(n, d) {
  centres <- matrix(runif(50 * d), 50)
  centres[sample(50, n, TRUE), , drop = FALSE] + matrix(rnorm(n * d, sd = 0.02), n)
}

cat("\nDirect sums, d = 10, 1 thread, 1e9 pairs per second\n")
x <- matrix(runif(1e5), ncol = 10)
rate <- function(kernel, precision) {
  run <- function() kernel_sum(x, kernel = kernel, method = "direct", run = weft_run(threads = 1),
                               control = list(precision = precision))
  nrow(x)^2 / stats::median(replicate(3, seconds(run))) / 1e9
}
print(round(sapply(c(double = "double", single = "single"),
                   function(p) sapply(c(epanechnikov = "epanechnikov", gaussian = "gaussian"), rate, p)), 2))

python <- Sys.getenv("WEFT_PYTHON")
peer_script <- "inst/bench/kernel-peers.py"
run_peer <- function(x, q, kernel, h, error, peer) {
  dir <- tempfile("peer")
  dir.create(dir)
  on.exit(unlink(dir, recursive = TRUE))
  save <- function(m, name) utils::write.table(format(m, digits = 17), file.path(dir, name), sep = ",",
                                               row.names = FALSE, col.names = FALSE, quote = FALSE)
  save(x, "x.csv")
  save(q, "q.csv")
  out <- suppressWarnings(system2(python, c(shQuote(peer_script), dir, kernel, format(h, digits = 17), error, peer),
                                  stdout = TRUE, stderr = FALSE))
  if (!file.exists(file.path(dir, "f.csv"))) return(list(seconds = NA, f = rep(NA, nrow(q))))
  list(seconds = as.numeric(utils::tail(out, 1)), f = scan(file.path(dir, "f.csv"), quiet = TRUE))
}

cat("\nSums with relative error 0.1, tree included; `broken`: queries outside their bound\n")
compare <- function(label, x, q, kernel, h) {
  want <- kernel_sum(q, x, kernel = kernel, bandwidth = h)
  ours <- list(seconds = seconds(function() f <<- kernel_sum(q, x, kernel = kernel, bandwidth = h, rel_error = 0.1,
                                                             run = weft_run(threads = 2))))
  row <- function(who, s, f) data.frame(work = label, who = who, seconds = round(s, 3),
                                        broken = sum(!(abs(f - want) <= 0.1 * want + 1e-300)), of = length(want))
  rows <- row("weft, 2 threads", ours$seconds, f)
  for (peer in if (nzchar(python)) c("sklearn", "mlpack")) {
    p <- run_peer(x, q, kernel, h, 0.1, peer)
    rows <- rbind(rows, row(peer, p$seconds, p$f))
  }
  rows
}
x4 <- clustered(1e4 * size, 4)
far <- rbind(matrix(rcauchy(4000), ncol = 2), matrix(rnorm(4000), ncol = 2))
two <- rbind(matrix(rnorm(4000), ncol = 2), matrix(rnorm(4000) + 1e4, ncol = 2))
print(rbind(
  compare("4-D clustered, Epanechnikov .02", x4, x4, "epanechnikov", 0.02),
  compare("4-D clustered, Gaussian .00707", x4, x4, "gaussian", 0.00707),
  compare("Cauchy tails, Gaussian 1", far, far, "gaussian", 1),
  compare("two far clusters, Gaussian .5", two, two, "gaussian", 0.5),
  compare("queries far out, Gaussian .3", far[2001:4000, ], far[2001:4000, ] * 5, "gaussian", 0.3)
), row.names = FALSE)

cat("\nBuilding trees, 2 threads, seconds\n")
sizes <- round(c(1e4, 3e4, 1e5, 3e5) * size^0.5)
built <- sapply(c("kd", "ball", "vp", "rp"), function(type) sapply(sizes, function(n) {
  x <- matrix(runif(n * 4), ncol = 4)
  stats::median(replicate(3, seconds(function() kernel_tree(x, type))))
}))
rownames(built) <- format(sizes, scientific = TRUE, digits = 2)
print(round(built, 4))
if (interactive() || nzchar(Sys.getenv("WEFT_BENCH_PLOTS"))) {
  grDevices::png(file.path(Sys.getenv("WEFT_BENCH_PLOTS", "."), "kernel-trees.png"), 900, 700, res = 120)
  graphics::matplot(sizes, built, type = "b", log = "xy", pch = 16, lty = 1, xlab = "points (4-D)",
                    ylab = "seconds to build", main = "Tree types")
  graphics::legend("topleft", colnames(built), col = 1:4, lty = 1, pch = 16, bty = "n")
  invisible(grDevices::dev.off())
}
