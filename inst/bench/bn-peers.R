# bn_search() beside searches of others: FLOP (Python's flopsearch, 20 restarts), BOSS (causal-learn), and bnlearn's
# hc(), tabu() and mmhc(), in score and wrong edges, on random graphs of 30, 50 and 100 nodes, of degree 3 and 8,
# with 200 and 1,000 rows, of numbers and of categories.
#   [WEFT_PEERS_PYTHON=python] Rscript inst/bench/bn-peers.R [kind = gauss] [sets = 3] [nodes = 30,50,100] [peers = all]
# kind: gauss or categories. Scores are weft's own: of numbers BGe, with the prior of an edge that bn_search() has by
# default; of categories the BIC. FLOP and BOSS are for numbers; both minimise a BIC of their own, for which their
# equivalence class is extended to a graph. Seconds are processor time; of Python's methods without loading them.
suppressPackageStartupMessages(library(weft))
source("inst/bench/bench.R")
given <- commandArgs(TRUE)
kind <- if (length(given)) given[1L] else "gauss"
sets <- if (length(given) > 1L) as.integer(given[2L]) else 3L
sizes <- if (length(given) > 2L) as.integer(strsplit(given[3L], ",")[[1L]]) else c(30L, 50L, 100L)
python <- Sys.getenv("WEFT_PEERS_PYTHON")
peers <- c(if (requireNamespace("bnlearn", quietly = TRUE)) c("hc", "tabu", "mmhc"),
           if (nzchar(python) && kind == "gauss") c("flop", "boss"))
if (length(given) > 3L && given[4L] != "all") peers <- intersect(peers, strsplit(given[4L], ",")[[1L]])
machine_line()

random_dag <- function(p, degree) {
  names <- sprintf("v%03d", seq_len(p))
  dag <- matrix(0L, p, p, dimnames = list(names, names))
  dag[sample(which(upper.tri(dag)), p * degree / 2)] <- 1L
  dag
}

# Weights from -1 to 1 and error variances from 1 to 2.
draw_numbers <- function(dag, n) {
  x <- matrix(0, n, ncol(dag), dimnames = list(NULL, colnames(dag)))
  for (j in seq_len(ncol(dag))) {
    parents <- which(dag[, j] > 0)
    x[, j] <- x[, parents, drop = FALSE] %*% stats::runif(length(parents), -1, 1) +
      stats::rnorm(n, sd = sqrt(stats::runif(1, 1, 2)))
  }
  as.data.frame(scale(x))
}

# Two or three levels; probabilities from a Dirichlet distribution with 1/2 for each level.
draw_categories <- function(dag, n) {
  p <- ncol(dag)
  levels <- sample(2:3, p, TRUE)
  x <- matrix(0L, n, p)
  for (j in seq_len(p)) {
    parents <- which(dag[, j] > 0)
    weight <- matrix(stats::rgamma(prod(levels[parents]) * levels[j], 0.5), ncol = levels[j])
    reached <- t(apply(weight / rowSums(weight), 1L, cumsum))
    row <- 1 + x[, parents, drop = FALSE] %*% cumprod(c(1, levels[parents]))[seq_along(parents)]
    x[, j] <- rowSums(stats::runif(n) > reached[row, -levels[j], drop = FALSE])
  }
  as.data.frame(lapply(stats::setNames(nm = seq_len(p)), function(j) factor(x[, j], seq_len(levels[j]) - 1L)),
                col.names = colnames(dag))
}

draw <- function(p, degree, n, seed) {
  set.seed(seed)
  dag <- random_dag(p, degree)
  if (kind != "gauss") for (j in seq_len(p)) dag[utils::tail(which(dag[, j] > 0), -4L), j] <- 0L
  data <- if (kind == "gauss") draw_numbers(dag, n) else draw_categories(dag, n)
  order <- sample(p)
  list(data = data[order], dag = dag[order, order])
}

# A graph of an equivalence class (1: from row to column, 2: undirected): again and again a node without children
# whose undirected neighbours are adjacent to all others that are adjacent to it. NULL when there is none.
graph_of_class <- function(class) {
  dag <- (class == 1L) + 0L
  arrow <- class == 1L
  line <- class == 2L
  left <- seq_len(nrow(class))
  while (length(left)) {
    sink <- Find(function(x) {
      joined <- left[line[x, left] | arrow[left, x]]
      !any(arrow[x, left]) && all(vapply(left[line[x, left]], function(y) {
        others <- setdiff(joined, y)
        all(line[y, others] | arrow[y, others] | arrow[others, y])
      }, NA))
    }, left)
    if (is.null(sink)) return(NULL)
    dag[left[line[sink, left]], sink] <- 1L
    left <- setdiff(left, sink)
  }
  dag
}

by_python <- function(method, data) {
  files <- tempfile(fileext = c(".csv", ".csv"))
  utils::write.table(as.matrix(data), files[1L], sep = ",", row.names = FALSE, col.names = FALSE)
  said <- system2(python, c("-W", "ignore", "inst/bench/bn-peers.py", method, files), stdout = TRUE, stderr = FALSE)
  class <- as.matrix(utils::read.csv(files[2L], header = FALSE))
  dimnames(class) <- list(names(data), names(data))
  list(dag = graph_of_class(class), seconds = as.numeric(utils::tail(said, 1L)))
}

learn <- function(method, data) {
  if (method %in% c("flop", "boss")) return(by_python(method, data))
  took <- system.time(dag <- switch(
    method,
    weft = if (kind == "gauss") bn_search(data, seed = 1, run = weft_run(threads = 1))$dag
           else bn_search(data, "bic", gamma = 1, seed = 1, run = weft_run(threads = 1))$dag,
    bnlearn::amat(getExportedValue("bnlearn", method)(data))[names(data), names(data)]
  ))
  list(dag = dag, seconds = sum(took[1:2]))
}

score_of <- function(data, dag) {
  if (kind == "gauss") bn_score(data, dag, "bge", gamma = 1 / sqrt(ncol(data))) else bn_score(data, dag, "bic")
}

rows <- NULL
for (p in sizes) for (degree in c(3, 8)) for (n in c(200, 1000)) for (set in seq_len(sets)) {
  drawn <- draw(p, degree, n, set)
  for (method in c("weft", peers)) {
    found <- tryCatch(learn(method, drawn$data), error = function(e) list())
    if (is.null(found$dag)) next
    rows <- rbind(rows, data.frame(
      set = sprintf("%3d nodes, degree %d, %4d rows, set %d", as.integer(p), as.integer(degree), as.integer(n), set),
      method, score = score_of(drawn$data, found$dag), seconds = found$seconds,
      shd = as.numeric(bn_compare(found$dag, drawn$dag)$shd_cpdag)
    ))
  }
  of <- utils::tail(rows, sum(rows$set == rows$set[nrow(rows)]))
  own <- of[of$method == "weft", ]
  cat(sprintf("%s: %s\n", own$set, paste(sprintf("%s %+.1f (SHD %g, %.2f s)", of$method, of$score - own$score, of$shd,
                                                 of$seconds), collapse = "; ")))
}

own <- rows[rows$method == "weft", ]
best <- own$score
for (method in setdiff(unique(rows$method), "weft")) {
  their <- rows[rows$method == method, ]
  mine <- own[match(their$set, own$set), ]
  at <- match(their$set, own$set)
  best[at] <- pmax(best[at], their$score)
  ratio <- log((mine$shd + 1) / (their$shd + 1))
  error <- 1.96 * stats::sd(ratio) / sqrt(length(ratio))
  cat(sprintf(paste("beside %-5s score ahead or equal on %d of %d, mean %+.2f nats; ratio of SHD + 1 %.3f",
                    "(%.3f to %.3f), of seconds %.2f\n"),
              method, sum(mine$score >= their$score - 1e-3), nrow(their), mean(mine$score - their$score),
              exp(mean(ratio)), exp(mean(ratio) - error), exp(mean(ratio) + error),
              sum(mine$seconds) / sum(their$seconds)))
}
cat(sprintf("ahead of or equal to all of them on %d of %d sets\n", sum(own$score >= best - 1e-3), nrow(own)))
