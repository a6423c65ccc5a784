# Networks of many Gaussian variables: how much of a random graph bn_search() finds, and in what time. As in Andrews and
# others (2023): edges at random, weights uniform from -1 to 1, error variances from 1 to 2, columns shuffled and
# scaled. They report precisions near 1 and recalls of .9 for 1,000 rows, 1,000 variables and a degree of 20.
#   Rscript inst/bench/bn-large.R [nodes = 1000] [degree = 10] [rows = 1000] [sets = 1] [kicks] [starts]
# Adjacencies and arrows are those of equivalence classes. Beside it bnlearn's hc(), where it is installed and the nodes
# are 200 at most. Seconds are of the clock and of all processors together.
suppressPackageStartupMessages(library(weft))
source("inst/bench/bench.R")
given <- as.numeric(commandArgs(TRUE))
setting <- c(nodes = 1000, degree = 10, rows = 1000, sets = 1)
setting[seq_len(min(4, length(given)))] <- utils::head(given, 4L)
machine_line()

draw <- function(p, degree, n, seed) {
  set.seed(seed)
  names <- sprintf("v%04d", seq_len(p))
  dag <- matrix(0L, p, p, dimnames = list(names, names))
  dag[sample(which(upper.tri(dag)), p * degree / 2)] <- 1L
  x <- matrix(0, n, p, dimnames = list(NULL, names))
  for (j in seq_len(p)) {
    parents <- which(dag[, j] > 0)
    x[, j] <- x[, parents, drop = FALSE] %*% stats::runif(length(parents), -1, 1) +
      stats::rnorm(n, sd = sqrt(stats::runif(1, 1, 2)))
  }
  shuffled <- sample(p)
  list(data = as.data.frame(scale(x[, shuffled])), dag = dag[shuffled, shuffled])
}

report <- function(what, learn, drawn) {
  took <- system.time(dag <- learn(drawn$data))
  found <- bn_cpdag(dag) != 0
  true <- bn_cpdag(drawn$dag) != 0
  line <- function(a, b) {
    hits <- sum(a & b)
    sprintf("precision %.3f recall %.3f F1 %.3f", hits / sum(a), hits / sum(b), 2 * hits / (sum(a) + sum(b)))
  }
  cat(sprintf("%-10s adjacencies: %s; arrows: %s; %.1f s (%.1f s of processors)\n", what,
              line(found | t(found), true | t(true)), line(found & !t(found), true & !t(true)), took[[3L]],
              sum(took[1:2])))
}

for (set in seq_len(setting[["sets"]])) {
  drawn <- draw(setting[["nodes"]], setting[["degree"]], setting[["rows"]], set)
  cat(sprintf("%d nodes, degree %g, %d rows, set %d\n", as.integer(setting[["nodes"]]), setting[["degree"]],
              as.integer(setting[["rows"]]), set))
  kicks <- if (length(given) > 4L) given[5L]
  starts <- if (length(given) > 5L) given[6L]
  report("bn_search", function(data) bn_search(data, seed = set,
                                               control = list(kicks = kicks, starts = starts))$dag, drawn)
  if (setting[["nodes"]] <= 200 && requireNamespace("bnlearn", quietly = TRUE)) {
    report("bnlearn hc", function(data) bnlearn::amat(bnlearn::hc(data))[names(data), names(data)], drawn)
  }
}
