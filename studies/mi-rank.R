# mi_rank of 10,000 rows x 5,000 binary attributes, all of R's work included, beside a plain C histogram loop over the
# same matrix in the same run.
library(weft)
source("inst/bench/bench.R")
load_naive()
machine_line()
set.seed(1)
n <- 10000
p <- 5000
x <- matrix(sample(0:1, n * p, TRUE), n)
class <- sample(0:1, n, TRUE)
snp <- matrix(sample(0:2, n * p, TRUE), n)
seconds <- time_in_turn(
  `naive C loop (counts only)` = function() .Call("naive_counts", x, class),
  `reading the matrix (sum)` = function() sum(x),
  `mi_rank, 1 thread` = function() mi_rank(x, class, run = weft_run("cpu", threads = 1)),
  `mi_rank, 2 threads` = function() mi_rank(x, class, run = weft_run("cpu", threads = 2)),
  `mi_rank of 0/1/2, 1 thread` = function() mi_rank(snp, class, run = weft_run("cpu", threads = 1)),
  times = 15
)
print(data.frame(ms = round(1000 * seconds, 1), ratio_to_naive = round(seconds / seconds[[1]], 2)))
