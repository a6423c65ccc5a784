# Missing values: how many edges are wrong with na = "em" beside complete data and beside half of the rows, complete;
# and whether the probabilities that na = "augment" states are right as often as they say.
#   Rscript inst/bench/bn-missing.R em [kind = gauss] [sets = 6] [nodes = 20] [rows = 500]
#   Rscript inst/bench/bn-missing.R augment [kind = categories] [sets = 40] [nodes = 5] [rows = 100]
# em: random graphs of degree 3 (bn-peers.R), one value in ten or three in ten missing: completely at random (MCAR), or
# in every second column, with a probability that depends on the column before it (MAR, the same share of these). SHD
# of classes; ratios of SHD + 1 with 95 % intervals. augment: graphs drawn uniformly, categories with parameters from
# the prior of BDeu with ess = 4, so that the posterior of complete data is right by
# construction; numbers with slopes of variance 1.
suppressPackageStartupMessages(library(weft))
source("inst/bench/bench.R")
given <- commandArgs(TRUE)
arg <- function(k, default) if (length(given) >= k) given[k] else default
task <- arg(1L, "em")
kind <- arg(2L, if (task == "em") "gauss" else "categories")
sets <- as.integer(arg(3L, if (task == "em") 6 else 40))
p <- as.integer(arg(4L, if (task == "em") 20 else 5))
n <- as.integer(arg(5L, if (task == "em") 500 else 100))
for (line in parse("inst/bench/bn-peers.R")) { # its generators
  if (is.call(line) && identical(line[[1L]], quote(`<-`)) && is.call(line[[3L]]) &&
        identical(line[[3L]][[1L]], quote(`function`))) eval(line)
}
machine_line()

lose <- function(data, share, at_random) {
  for (j in seq_along(data)) {
    chance <- rep(share, nrow(data))
    if (!at_random) {
      if (j %% 2 == 1) next
      v <- as.numeric(data[[j - 1L]])
      chance <- pmin(2 * share * rank(v, ties.method = "average") / length(v), 0.95)
    }
    data[[j]][stats::runif(nrow(data)) < chance] <- NA
  }
  data
}

search <- function(data, ...) bn_search(data, ..., seed = 1, control = list(kicks = 300, starts = 2))

wrong <- function(found, truth) bn_compare(found, truth)$shd_cpdag

if (task == "em") {
  for (share in c(0.1, 0.3)) for (mechanism in c("MCAR", "MAR")) {
    rows <- NULL
    for (set in seq_len(sets)) {
      drawn <- draw(p, 3, n, set)
      lost <- lose(drawn$data, share, mechanism == "MCAR")
      took <- system.time(em <- search(lost, na = "em"))[[3L]]
      one <- c(whole = wrong(search(drawn$data), drawn$dag),
               half = wrong(search(drawn$data[seq_len(n %/% 2), ]), drawn$dag),
               em = wrong(em, drawn$dag),
               dropped = if (mechanism == "MAR" && sum(stats::complete.cases(lost)) > 20) {
                 wrong(search(lost, na = "drop"), drawn$dag)
               } else NA, seconds = took)
      rows <- rbind(rows, one)
    }
    ratio <- function(to) {
      logs <- log((rows[, "em"] + 1) / (rows[, to] + 1))
      error <- 1.96 * stats::sd(logs) / sqrt(length(logs))
      sprintf("%.2f (%.2f to %.2f)", exp(mean(logs)), exp(mean(logs) - error), exp(mean(logs) + error))
    }
    cat(sprintf("%s, %d nodes, %d rows, %s, %g missing: SHD %s; em to complete %s, to half of the rows %s\n", kind, p,
                n, mechanism, share, paste(colnames(rows), round(colMeans(rows, na.rm = TRUE), 1), collapse = ", "),
                ratio("whole"), ratio("half")))
  }
} else {
  random_graph <- function() {
    repeat {
      dag <- matrix(0L, p, p, dimnames = rep(list(paste0("v", seq_len(p))), 2L))
      dag[row(dag) != col(dag)] <- sample(0:1, p * (p - 1), TRUE)
      left <- dag
      for (k in seq_len(p)) {
        root <- which(colSums(left) == 0)
        if (!length(root)) break
        left <- left[-root, -root, drop = FALSE]
        if (!nrow(left)) return(dag)
      }
    }
  }
  parents_first <- function(dag) {
    out <- integer()
    while (length(out) < p) out <- c(out, Find(function(j) all(which(dag[, j] > 0) %in% out), setdiff(seq_len(p), out)))
    out
  }
  simulate <- function(dag) {
    x <- matrix(0, n, p, dimnames = list(NULL, colnames(dag)))
    for (j in parents_first(dag)) {
      parents <- which(dag[, j] > 0)
      if (kind == "gauss") {
        x[, j] <- x[, parents, drop = FALSE] %*% stats::rnorm(length(parents)) + stats::rnorm(n)
      } else {
        q <- 2^length(parents)
        row <- 1 + x[, parents, drop = FALSE] %*% 2^(seq_along(parents) - 1)
        x[, j] <- stats::runif(n) < stats::rbeta(q, 2 / q, 2 / q)[row]
      }
    }
    x <- as.data.frame(x)
    if (kind != "gauss") x[] <- lapply(x, factor, levels = 0:1)
    x
  }
  score <- if (kind == "gauss") "bge" else "bdeu"
  for (share in c(0, 0.1, 0.3)) {
    said <- true <- NULL
    for (set in seq_len(sets)) {
      set.seed(set)
      dag <- random_graph()
      lost <- lose(simulate(dag), share, TRUE)
      fit <- bn_learn(lost, p - 1, score, iterations = 6000, chains = 2, target = "uniform", ess = 4, na = "augment",
                      seed = set, control = list(completions = 150))
      off <- row(dag) != col(dag)
      said <- c(said, fit$edges[off])
      true <- c(true, dag[off])
    }
    bin <- cut(said, c(0, 0.2, 0.4, 0.6, 0.8, 1), include.lowest = TRUE)
    cat(sprintf("%s, %d nodes, %d rows, %g missing, %d sets: stated (right, number) %s; Brier score %.3f\n", kind, p, n,
                share, sets,
                paste(sprintf("%.2f (%.2f, %d)", tapply(said, bin, mean), tapply(true, bin, mean), table(bin)),
                      collapse = " "), mean((said - true)^2)))
  }
}
