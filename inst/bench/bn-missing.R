# Missing values: how many edges are wrong with na = "em" beside complete data and beside half of the rows, complete;
# what limits that; and whether the probabilities that na = "augment" states are right as often as they say.
#   Rscript inst/bench/bn-missing.R em [kind = gauss] [sets = 6] [nodes = 20] [rows = 500] [peers = none] [first = 1]
#   Rscript inst/bench/bn-missing.R limit categories [sets = 4] [nodes = 15] [rows = 500]
#   Rscript inst/bench/bn-missing.R augment [kind = categories] [sets = 40] [nodes = 5] [rows = 100]
# em: random graphs of degree 3 (bn-peers.R), one value in ten or three in ten missing: completely at random (MCAR), or
# in every second column, with a probability that depends on the column before it (MAR, the same proportion there). SHD
# of classes; ratios of SHD + 1 with 95 % intervals. `half`: half of the rows, complete; `families`: complete data with
# as many rows as have three given nodes, on average. Peers ("bnlearn" or "bnlearn,bnstruct"): structural.em(), and hc()
# by the penalised node-average likelihood ("pnal"), both at their defaults, and bnstruct's structural EM, which is for
# categories and takes minutes.
# limit: structural EM from its own start, from the true network and from the one that complete data give (MCAR), each
# with four last rounds by BDeu, with wrong edges, and the score of each network given what was observed: BDeu of the
# completed rows, less their log-likelihood, plus the log-likelihood of what was observed, exact (Cheeseman and Stutz
# 1996). Where the network found has the better score, no better search by that score would find the true one.
# augment: graphs drawn uniformly, categories with parameters from the prior of BDeu with ess = 4, so that the posterior
# of complete data is right by construction; numbers with slopes of variance 1.
suppressPackageStartupMessages(library(weft))
source("inst/bench/bench.R")
given <- commandArgs(TRUE)
arg <- function(k, default) if (length(given) >= k) given[k] else default
task <- arg(1L, "em")
kind <- arg(2L, if (task == "em") "gauss" else "categories")
sets <- as.integer(arg(3L, switch(task, em = 6, limit = 4, 40)))
p <- as.integer(arg(4L, switch(task, em = 20, limit = 15, 5)))
n <- as.integer(arg(5L, if (task == "augment") 100 else 500))
peers <- strsplit(arg(6L, "none"), ",", fixed = TRUE)[[1L]]
first <- as.integer(arg(7L, 1)) # the seed of the first set
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

search <- function(data, ...) {
  bn_search(data, ..., seed = 1, control = list(kicks = 300, starts = 2), run = weft_run(threads = 1))
}

wrong <- function(found, truth) bn_compare(found, truth)$shd_cpdag

by_peers <- function(lost, truth) {
  known <- function(net) wrong(bnlearn::amat(net)[names(lost), names(lost)], truth)
  out <- double()
  if ("bnlearn" %in% peers) {
    out <- c(structural.em = known(bnlearn::structural.em(lost)),
             pnal = known(bnlearn::hc(lost, score = if (kind == "gauss") "pnal-g" else "pnal")))
  }
  if (!"bnstruct" %in% peers || kind == "gauss") return(out)
  rows <- bnstruct::BNDataset(vapply(lost, as.integer, integer(nrow(lost))), discreteness = rep(TRUE, length(lost)),
                              variables = names(lost), node.sizes = lengths(lapply(lost, levels)), starts.from = 1)
  utils::capture.output(net <- bnstruct::learn.network(rows, algo = "sem"))
  c(out, bnstruct = wrong(structure(bnstruct::dag(net), dimnames = list(names(lost), names(lost))), truth))
}

# The log-likelihood of what was observed, summed over all completions of each row.
observed_log_lik <- function(fit, gaps) {
  sum(vapply(seq_len(gaps$input$n), function(i) {
    out <- which(vapply(gaps$lacking, function(rows) i %in% rows, NA))
    fills <- as.matrix(expand.grid(lapply(lengths(gaps$input$labels[out]), function(k) seq_len(k) - 1)))
    rows <- gaps$values[rep(i, max(1L, nrow(fills))), , drop = FALSE]
    rows[, out] <- fills
    log <- row_log_lik(fit, rows)
    max(log) + log(sum(exp(log - max(log))))
  }, 0))
}

row_log_lik <- function(fit, rows) {
  rowSums(matrix(vapply(names(fit$nodes), weft:::node_density, double(nrow(rows)), fit = fit, rows, least = 1e-12),
                 nrow(rows)))
}

# Structural EM of categories, in the steps of bn_search() and then by BDeu alone, or by that from `start`.
em_from <- function(lost, start = NULL, key = c(1, 7), copies = 10) {
  gaps <- weft:::with_gaps(lost, "bdeu", NULL, key)
  values <- gaps$values[rep(seq_len(n), copies), ]
  complete <- function(dag, round) {
    values <<- weft:::draw_missing(gaps, bn_fit(weft:::frame_of(gaps, values), dag), values, key, round)
  }
  found <- function(...) search(weft:::frame_of(gaps, values), ...)$dag
  dag <- start %||% weft:::tree_of_pairs(gaps)
  for (round in 1:6) complete(dag, round)
  if (is.null(start)) for (round in 7:14) complete(found("aic", gamma = 1), round)
  for (round in 15:18) complete(dag <- found(), round)
  fit <- bn_fit(weft:::frame_of(gaps, values), dag)
  completed <- bn_score(weft:::frame_of(gaps, values), dag, "bdeu", gamma = 1 / sqrt(p))
  list(dag = dag, score = completed - sum(row_log_lik(fit, values)) / copies + observed_log_lik(fit, gaps))
}

if (task == "limit") {
  stopifnot(kind == "categories")
  for (share in c(0.1, 0.3)) for (set in first + seq_len(sets) - 1L) {
    drawn <- draw(p, 3, n, set)
    set.seed(set)
    lost <- lose(drawn$data, share, TRUE)
    whole <- search(drawn$data)$dag
    from <- lapply(list(NULL, drawn$dag, whole), em_from, lost = lost)
    edges <- vapply(from, function(one) wrong(one$dag, drawn$dag), 0)
    score <- vapply(from, `[[`, 0, "score")
    cat(sprintf(paste0("%g missing, set %d: wrong edges %g, complete data %g; from the true network %g, from that of ",
                       "complete data %g; observed score of EM's own %+.1f, %+.1f nats beside these\n"), share, set,
                edges[1L], wrong(whole, drawn$dag), edges[2L], edges[3L], score[1L] - score[2L],
                score[1L] - score[3L]))
  }
} else if (task == "em") {
  for (share in c(0.1, 0.3)) for (mechanism in c("MCAR", "MAR")) {
    rows <- NULL
    for (set in first + seq_len(sets) - 1L) {
      drawn <- draw(p, 3, n, set)
      set.seed(set)
      lost <- lose(drawn$data, share, mechanism == "MCAR")
      took <- system.time(em <- search(lost, na = "em"))[[3L]]
      seen <- !is.na(lost)
      whole_families <- mean(replicate(300, mean(rowSums(seen[, sample(ncol(seen), 3)]) == 3)))
      one <- c(whole = wrong(search(drawn$data), drawn$dag),
               half = wrong(search(drawn$data[seq_len(n %/% 2), ]), drawn$dag),
               families = wrong(search(drawn$data[seq_len(n * whole_families), ]), drawn$dag),
               em = wrong(em, drawn$dag),
               dropped = if (sum(stats::complete.cases(lost)) > 20) wrong(search(lost, na = "drop"), drawn$dag) else NA,
               by_peers(lost, drawn$dag), seconds = took)
      rows <- rbind(rows, one)
    }
    ratio <- function(to) {
      logs <- log((rows[, "em"] + 1) / (rows[, to] + 1))
      error <- 1.96 * stats::sd(logs) / sqrt(length(logs))
      sprintf("%.2f (%.2f to %.2f)", exp(mean(logs)), exp(mean(logs) - error), exp(mean(logs) + error))
    }
    cat(sprintf("%s, %d nodes, %d rows, %s, %g missing: SHD %s; em to complete %s, to half %s, to families %s\n", kind,
                p, n, mechanism, share,
                paste(colnames(rows), round(colMeans(rows, na.rm = TRUE), 1), collapse = ", "), ratio("whole"),
                ratio("half"), ratio("families")))
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
