# Kernel sums over ranks: one job of one size, started by ranks.sh. Times, processor time, numbers sent and work of each
# rank go as lines of a table to the file named last.
#   mpirun -n P Rscript ranks.R uniform 10 166912 weak 0.5 results.csv
# Points: "uniform" in the unit cube or "clustered"; dimensions; points, a rank (`weak`) or in all (`strong`); the
# bandwidth of one rank, which weak scaling halves for every fourfold number of ranks, as the paper does; Epanechnikov
# kernel, relative error 0.1.
suppressMessages(library(weft))
args <- commandArgs(TRUE)
at <- weft_ranks()
me <- attr(at, "rank")
size <- attr(at, "size")
d <- as.integer(args[2])
weak <- args[4] == "weak"
n <- as.numeric(args[3]) * if (weak) size else 1
h <- as.numeric(args[5]) / if (weak) sqrt(size) else 1
# The same points however many ranks there are: row i is drawn by its number.
rows <- seq(floor(me * n / size) + 1, floor((me + 1) * n / size))
x <- matrix(weft:::draws("uniform", length(rows) * d, key = c(1, 2), first = (rows[1] - 1) * d), ncol = d, byrow = TRUE)
if (args[1] == "clustered") {
  set.seed(1)
  centres <- matrix(runif(50 * d), 50)
  x <- centres[rows %% 50 + 1, , drop = FALSE] + stats::qnorm(x) * 0.02
}
invisible(weft:::ranks_gather(0))
before <- proc.time()
problem <- weft:::kernel_problem(x, NULL, NULL, "epanechnikov", h, rel_error = 0.1)
result <- weft:::kernel_over_ranks(problem)
took <- proc.time() - before
if (size == 1) {
  all <- data.frame(rank = 0, references = n, queries = n, received = 0, together = 0, pairs = result$effort[["pairs"]],
                    nodes = result$effort[["nodes"]],
                    given = 0, helped = 0, asked = 0, bytes_tree = 0, bytes_reach = 0, bytes_balance = 0,
                    bytes_home = 0, messages = 0,
                    tree = NA, reach = NA, plan = NA, sums = NA, home = NA, method = result$method)
} else {
  all <- weft:::ranks_counters(result)
}
times <- do.call(rbind, weft:::ranks_gather(data.frame(seconds = took[[3]], busy = took[[1]] + took[[2]])))
if (me == 0) {
  load <- if (file.exists("/proc/loadavg")) as.numeric(strsplit(readLines("/proc/loadavg"), " ")[[1]][1]) else NA
  out <- cbind(data.frame(points = args[1], d = d, n = n, scaling = args[4], h = h, ranks = size, load = load), all,
               times)
  file <- args[6]
  utils::write.table(out, file, sep = ",", row.names = FALSE, col.names = !file.exists(file),
                     append = file.exists(file), quote = FALSE)
  print(out[c("n", "h", "ranks", "rank", "received", "pairs", "bytes_tree", "bytes_reach", "given", "seconds", "busy",
              "method")],
        row.names = FALSE)
}
