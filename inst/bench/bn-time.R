# Dynamic networks and conditions with unknown targets: how good they are and whether stated probabilities are right.
#   Rscript inst/bench/bn-time.R dream4 FOLDER [networks = 1,2,3]     FOLDER/NUMBER as for interventions.R
#   Rscript inst/bench/bn-time.R simulated [sets = 20]
#   Rscript inst/bench/bn-time.R conditions [sets = 40]
# dream4: area under the precision-recall curve and under the ROC curve of edges between genes, of the exact posterior
# without edges within a point in time; beside it the correlation with the row before, and the t statistic of a gene in
# a regression on it and on the target's own past. simulated: 15 nodes that depend on the point before, each on itself
# and on two others on average; all seen, or one in three hidden. conditions: 8 nodes, three conditions of 40 rows and a
# reference of 120; each condition moves the mean of one or two nodes by one to two standard deviations, by .3 to .6
# ("weak") or not at all ("none"), or changes their slopes too ("free"). For targets that are called at .5, .9 and
# .99, the level is the proportion of other nodes that are called, and the power is the proportion of targets that are
# called, with standard errors between sets.
suppressPackageStartupMessages(library(weft))
source("inst/bench/bench.R")
given <- commandArgs(TRUE)
task <- if (length(given)) given[1L] else "simulated"
machine_line()

areas <- function(value, truth) {
  ranked <- truth[order(-value, stats::runif(length(value)))]
  precision <- cumsum(ranked) / seq_along(ranked)
  c(aupr = sum(precision[ranked]) / sum(ranked),
    auroc = mean(rank(value)[truth] - (sum(truth) + 1) / 2) / sum(!truth))
}

stated <- function(label, said, true) {
  bin <- cut(said, c(0, 0.2, 0.4, 0.6, 0.8, 1), include.lowest = TRUE)
  cat(sprintf("%s: stated (right, number) %s; Brier score %.3f\n", label,
              paste(sprintf("%.2f (%.2f, %d)", tapply(said, bin, mean), tapply(true, bin, mean), table(bin)),
                    collapse = " "), mean((said - true)^2)))
}

if (task == "dream4") {
  folder <- given[2L]
  networks <- if (length(given) > 2L) strsplit(given[3L], ",")[[1L]] else c("1", "2", "3")
  for (network in networks) {
    lines <- readLines(path <- gzfile(file.path(folder, network, "timeseries.tsv.gz")))
    close(path)
    course <- utils::read.delim(text = lines[nzchar(trimws(lines))], check.names = FALSE)
    genes <- names(course)[-1L]
    gold <- utils::read.csv(file.path(folder, network, "gold.csv"))
    truth <- matrix(FALSE, length(genes), length(genes), dimnames = list(genes, genes))
    truth[cbind(match(gold$Gene1, genes), match(gold$Gene2, genes))] <- TRUE
    made <- bn_time(course, "Time", cumsum(course$Time == 0), within = FALSE)
    past <- sprintf("%s[t-1]", genes)
    took <- system.time(exact <- bn_exact(made, 2, "bge", posterior = "dag", gamma = 1 / length(genes)))[[3L]]
    edges <- exact$edges[past, genes]
    before <- as.matrix(as.data.frame(as.list(made), optional = TRUE)[past])
    now <- as.matrix(as.data.frame(as.list(made), optional = TRUE)[genes])
    correlation <- abs(stats::cor(before, now))
    own <- vapply(seq_along(genes), function(j) {
      y <- stats::residuals(stats::lm(now[, j] ~ before[, j]))
      abs(stats::cor(stats::residuals(stats::lm(before ~ before[, j])), y))
    }, double(length(genes)))
    off <- row(truth) != col(truth)
    for (way in list(list("bn_exact()", edges), list("correlation with the row before", correlation),
                     list("given the own past", own))) {
      cat(sprintf("DREAM4 %s, %d rows: %-32s AUPR %.3f, AUROC %.3f\n", network, nrow(made), way[[1L]],
                  areas(way[[2L]][off], truth[off])[1L], areas(way[[2L]][off], truth[off])[2L]))
    }
    stated(sprintf("DREAM4 %s, %.1f s", network, took), edges[off], truth[off])
  }
}

if (task == "simulated") {
  sets <- if (length(given) > 1L) as.integer(given[2L]) else 20L
  for (hidden in c(0, 5)) for (n in c(50, 200)) for (within in c(FALSE, TRUE)) {
    said <- true <- NULL
    for (set in seq_len(sets)) {
      set.seed(set)
      p <- 15
      effect <- matrix(stats::rnorm(p^2, sd = 0.4) * (stats::runif(p^2) < 2 / p), p)
      diag(effect) <- stats::runif(p, 0.2, 0.6)
      effect <- effect / max(1, Mod(eigen(effect)$values) / 0.9)
      x <- matrix(stats::rnorm(p), n + 50, p, dimnames = list(NULL, paste0("g", seq_len(p))))
      for (t in 2:(n + 50)) x[t, ] <- x[t - 1L, ] %*% effect + stats::rnorm(p)
      kept <- colnames(x)[sort(sample(p, p - hidden))]
      made <- bn_time(as.data.frame(x[-(1:50), kept]), seq_len(n), within = within)
      fit <- if (within) bn_learn(made, 3, "bge", target = "uniform", iterations = 20000, chains = 2, seed = set)
             else bn_exact(made, 3, "bge", posterior = "dag")
      said <- c(said, fit$edges[sprintf("%s[t-1]", kept), kept])
      true <- c(true, effect[match(kept, colnames(x)), match(kept, colnames(x))] != 0)
    }
    stated(sprintf("%d of 15 nodes hidden, %d rows, %s", hidden, as.integer(n),
                   if (within) "edges within a point in time too" else "edges from the past only"), said, true)
  }
}

if (task == "conditions") {
  sets <- if (length(given) > 1L) as.integer(given[2L]) else 40L
  for (kind in c("shift", "weak", "none", "free", "categories")) {
    said <- true <- each <- NULL
    for (set in seq_len(sets)) {
      set.seed(set)
      p <- 8
      condition <- rep(c("none", "c1", "c2", "c3"), c(120, 40, 40, 40))
      n <- length(condition)
      dag <- matrix(0, p, p)
      dag[upper.tri(dag)] <- stats::runif(p * (p - 1) / 2) < 0.35
      target <- matrix(FALSE, 3, p)
      for (k in 1:3) target[k, sample(p, sample(2, 1L))] <- kind != "none"
      x <- matrix(0, n, p, dimnames = list(NULL, letters[seq_len(p)]))
      for (j in seq_len(p)) {
        parents <- which(dag[, j] > 0)
        for (k in c("none", "c1", "c2", "c3")) {
          rows <- condition == k
          hit <- k != "none" && target[match(k, c("c1", "c2", "c3")), j]
          # the own distribution of the node, drawn anew where the condition acts on it
          set.seed(1000 * set + 10 * j + (if (hit) match(k, c("c1", "c2", "c3")) else 0))
          if (kind == "categories") {
            chance <- stats::rbeta(2^length(parents), 1, 1)
            x[rows, j] <- chance[1 + x[rows, parents, drop = FALSE] %*% 2^(seq_along(parents) - 1)]
          } else {
            slopes <- stats::runif(length(parents), 0.4, 1) * sample(c(-1, 1), length(parents), TRUE)
            if (kind != "free") {
              set.seed(1000 * set + 10 * j)
              slopes <- stats::runif(length(parents), 0.4, 1) * sample(c(-1, 1), length(parents), TRUE)
            }
            x[rows, j] <- x[rows, parents, drop = FALSE] %*% slopes
            size <- if (kind == "weak") 0.3 else 1
            if (hit) x[rows, j] <- x[rows, j] + size * sample(c(-1, 1), 1L) * stats::runif(1, 1, 2)
          }
        }
        set.seed(1000 * set + 10 * j + 9)
        x[, j] <- if (kind == "categories") stats::runif(n) < x[, j] else x[, j] + stats::rnorm(n)
      }
      x <- as.data.frame(x)
      if (kind == "categories") x[] <- lapply(x, factor, levels = 0:1)
      made <- bn_conditions(x, condition, "none", change = if (kind == "free") "free" else "shift")
      fit <- bn_exact(made, 4, switch(kind, free = "bic-cg", categories = "bdeu", "bge"), posterior = "dag")
      said <- c(said, fit$edges[paste("in", c("c1", "c2", "c3")), seq_len(p)])
      true <- c(true, target)
      each <- c(each, rep(set, length(target)))
    }
    stated(paste("targets of conditions,", kind), said, true)
    for (bar in c(0.5, 0.9, 0.99)) {
      rate <- function(which) {
        if (!any(which)) return("")
        by_set <- tapply(said[which] >= bar, each[which], mean)
        sprintf("%.3f (%.3f)", mean(said[which] >= bar), stats::sd(by_set) / sqrt(length(by_set)))
      }
      cat(sprintf("  called at %.2f: level %s, power %s\n", bar, rate(!true), rate(true)))
    }
  }
}
