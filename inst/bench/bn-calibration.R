# Are stated probabilities of edges right as often as they say? Networks of several origins with known truth, learned
# from few rows or many, with none, some or most nodes hidden; each way of learning them states a probability for every
# edge.
#   Rscript inst/bench/bn-calibration.R [sets = 10] [file.csv] [way ...]
#   WEFT_BN_NETWORKS=folder   networks of the repository (.bif), those of child, insurance and alarm that are there
# The file is written after each origin; what it holds already is not made again, so that a stopped run goes on, and
# rows can be made by several processes, each with a file and ways of its own.
# An edge i -> j is true when the network has a path from i to j all of whose inner nodes are hidden. Printed for each
# origin and way: Brier score and logarithmic loss (nats) over all ordered pairs; of what was said to be .8 or surer,
# how many, how sure it was on average, how often it was right, and how often the two nodes are dependent given the
# other nodes in the data, whatever joins them; the same of directions: of pairs that are truly joined one way and were
# said to be joined with .5 or more, how sure the likelier direction was given that they are joined, and how often it
# was right. Ways that end in "paths" and "blankets" are bn_features() of the graphs drawn: is one node an ancestor of
# another, are two dependent given the others? bnlearn's boot.strength(), where it is installed, is a peer. At the end
# each way's means over the origins that it can learn. gene_bayes() learns numbers as "bge, orders, resampled".
# Sets are drawn with seeds from 101: the methods were chosen on seeds from 1.
suppressPackageStartupMessages(library(weft))
given <- commandArgs(TRUE)
sets <- if (length(given)) as.integer(given[1L]) else 10L
out <- if (length(given) > 1L) given[2L] else NA
wanted <- given[-(1:2)]
folder <- Sys.getenv("WEFT_BN_NETWORKS")

# ---- networks and data ----

# Edges among the nodes that are kept: paths whose inner nodes are hidden.
seen_truth <- function(dag, kept) {
  for (h in setdiff(rownames(dag), kept)) {
    dag[outer(dag[, h] != 0, dag[h, ] != 0, "&")] <- 1
    dag[h, ] <- dag[, h] <- 0
  }
  dag[kept, kept] != 0
}

# Nodes that are dependent given all others that are kept: joined by hidden nodes alone in the moral graph of ancestors.
dependent_truth <- function(dag, kept) {
  above <- kept
  while (length(more <- setdiff(rownames(dag)[rowSums(dag[, above, drop = FALSE]) > 0], above))) above <- c(above, more)
  dag <- dag[above, above] != 0
  joined <- dag | t(dag) | tcrossprod(dag) > 0
  for (h in setdiff(above, kept)) joined <- joined | outer(joined[, h], joined[h, ], "&")
  joined <- joined[kept, kept]
  diag(joined) <- FALSE
  joined
}

truths <- function(dag, kept) {
  edges <- seen_truth(dag, kept)
  paths <- edges
  for (v in kept) paths <- paths | outer(paths[, v], paths[v, ], "&")
  list(edges = edges, paths = paths, blankets = dependent_truth(dag, kept))
}

# 1.25 parents a node on average; parents come before their children.
random_dag <- function(p) {
  names <- sprintf("v%02d", seq_len(p))
  dag <- matrix(0, p, p, dimnames = list(names, names))
  dag[upper.tri(dag)] <- stats::runif(p * (p - 1) / 2) < 2.5 / (p - 1)
  dag
}

gaussian <- function(set, n, p, kept) {
  set.seed(set)
  dag <- random_dag(p)
  names <- colnames(dag)
  x <- matrix(0, n, p, dimnames = list(NULL, names))
  for (j in seq_len(p)) {
    parents <- which(dag[, j] != 0)
    weight <- stats::runif(length(parents), 0.3, 1) * sample(c(-1, 1), length(parents), TRUE)
    x[, j] <- x[, parents, drop = FALSE] %*% weight + stats::rnorm(n)
  }
  kept <- names[sort(sample(p, kept))]
  list(data = as.data.frame(scale(x[, kept])), truth = truths(dag, kept))
}

# Effects that no line follows: each parent acts by a sine, a square or a step, so that the model of every way is wrong.
nonlinear <- function(set, n, p, kept) {
  set.seed(set)
  dag <- random_dag(p)
  names <- colnames(dag)
  x <- matrix(0, n, p, dimnames = list(NULL, names))
  shapes <- list(function(v) 1.5 * sin(2 * v), function(v) v^2 - 1, function(v) 1.5 * (v > 0.5))
  for (j in seq_len(p)) {
    for (i in which(dag[, j] != 0)) {
      x[, j] <- x[, j] + sample(c(-1, 1), 1L) * stats::runif(1, 0.5, 1) * shapes[[sample(3L, 1L)]](x[, i])
    }
    x[, j] <- as.vector(scale(x[, j] + stats::rnorm(n)))
  }
  kept <- names[sort(sample(p, kept))]
  list(data = as.data.frame(x[, kept]), truth = truths(dag, kept))
}

expression <- function(set, n, p) {
  e <- weft_example("expression", n = n, p = p, seed = set, batch = 0, missing = 0, outliers = 0, spoilt = FALSE)
  q <- gene_quality(e$x, e$class)
  genes <- rownames(gene_bayes(q, seed = 1, run = weft_run(progress = FALSE), iterations = 1)$dag)
  list(data = as.data.frame(q$x[, genes]), truth = truths(e$truth, genes))
}

repository <- function(name) {
  network <- bn_read(file.path(folder, paste0(name, ".bif")))
  nodes <- rownames(network$dag)
  function(set, n, kept) {
    set.seed(set)
    some <- nodes[sort(sample(length(nodes), ceiling(kept * length(nodes))))]
    list(data = bn_sample(network, n, seed = set)[some], truth = truths(network$dag, some))
  }
}

hidden_share <- function(hidden) if (hidden) sprintf("%g %% hidden", 100 * hidden) else "all seen"
origins <- list()
add_origin <- function(name, hidden, n, draw) {
  origins[[sprintf("%s, %s, %d rows", name, hidden_share(hidden), as.integer(n))]] <<- draw
}
for (hidden in c(0, 0.25, 0.5, 0.75)) for (n in c(100, 200, 1000)) local({
  kept <- 20
  all <- round(kept / (1 - hidden))
  rows <- n
  add_origin("Gaussian", hidden, n, function(set) gaussian(set, rows, all, kept))
  if (hidden %in% c(0, 0.5)) add_origin("nonlinear", hidden, n, function(set) nonlinear(set, rows, all, kept))
})
for (of in c(40, 100, 200)) for (n in c(100, 200, 500)) local({
  genes <- of
  rows <- n
  add_origin("expression", 1 - 20 / of, n, function(set) expression(set, rows, genes))
})
for (name in c("child", "insurance", "alarm")) {
  if (!file.exists(file.path(folder, paste0(name, ".bif")))) next
  draw <- repository(name)
  for (hidden in c(0, 0.5)) for (n in c(100, 300, 1000)) local({
    rows <- n
    share <- 1 - hidden
    from <- draw
    add_origin(name, hidden, n, function(set) from(set, rows, share))
  })
}

# ---- ways ----

in_bins <- function(data) {
  if (all(vapply(data, is.double, NA))) as.data.frame(discretize(data, "equalfreq", bins = 3)) else data
}
normal_scores <- function(data) as.data.frame(lapply(data, function(v) stats::qnorm(rank(v) / (length(v) + 1))))
learned <- function(data, score, target, seed, feature = "edges", ...) {
  fit <- bn_learn(data, 3, score, target = target, iterations = 4000, seed = seed,
                  candidates = min(8, ncol(data) - 1), ..., run = weft_run(progress = FALSE, threads = 1))
  if (feature == "edges") fit$edges else structure(bn_features(fit)[[feature]], feature = feature)
}
of_bins <- function(score, target, ...) function(d, seed) learned(in_bins(d$data), score, target, seed, ...)
of_categories <- function(feature) {
  function(d, seed) {
    if (is.factor(d$data[[1L]])) learned(d$data, "bdeu", "uniform", seed, feature, control = list(thin = 40))
  }
}
ways <- list(
  `bic, orders` = of_bins("bic", "sum"), `bic, graphs` = of_bins("bic", "uniform"),
  `bdeu, orders` = of_bins("bdeu", "sum"), `bdeu, graphs` = of_bins("bdeu", "uniform"),
  `bic, orders, resampled` = of_bins("bic", "sum", resample = 20),
  `bic, graphs, resampled` = of_bins("bic", "uniform", resample = 20),
  `bdeu, orders, resampled` = of_bins("bdeu", "sum", resample = 20),
  `bdeu, graphs, resampled` = of_bins("bdeu", "uniform", resample = 20),
  `bdeu, paths` = of_categories("paths"), `bdeu, blankets` = of_categories("blankets")
)
of_numbers <- function(target, ...) {
  function(d, seed) if (all(vapply(d$data, is.double, NA))) learned(normal_scores(d$data), "bge", target, seed, ...)
}
ways[paste0("bge, ", c("orders", "graphs", "orders, resampled", "graphs, resampled", "paths", "blankets"))] <-
  list(of_numbers("sum"), of_numbers("uniform"), of_numbers("sum", resample = 20),
       of_numbers("uniform", resample = 20), of_numbers("uniform", feature = "paths", control = list(thin = 40)),
       of_numbers("uniform", feature = "blankets", control = list(thin = 40)))
if (requireNamespace("bnlearn", quietly = TRUE)) {
  ways$`bnlearn boot.strength` <- function(d, seed) {
    set.seed(seed)
    data <- in_bins(d$data)
    strength <- bnlearn::boot.strength(data, R = 100, algorithm = "hc")
    edges <- matrix(0, ncol(data), ncol(data), dimnames = list(names(data), names(data)))
    edges[cbind(strength$from, strength$to)] <- strength$strength * strength$direction
    edges
  }
}
if (length(wanted)) ways <- ways[wanted]

# ---- what was said, and what is so ----

judged <- function(origin, way, edges, truths, seconds) {
  feature <- attr(edges, "feature")
  names <- rownames(edges)
  truth <- truths[[if (is.null(feature)) "edges" else feature]][names, names]
  off <- row(edges) != col(edges)
  joined <- edges + t(edges)
  pairs <- which(upper.tri(edges) & is.null(feature) & joined >= 0.5 & xor(truth, t(truth)), arr.ind = TRUE)
  back <- pairs[, 2:1, drop = FALSE]
  forward <- edges[pairs] / joined[pairs]
  data.frame(origin = origin, way = way, said = c(edges[off], pmax(forward, 1 - forward)),
             so = c(truth[off], ifelse(forward >= 0.5, truth[pairs], truth[back])),
             dependent = c(truths$blankets[names, names][off], rep(NA, nrow(pairs))),
             what = rep(c("edge", "direction"), c(sum(off), nrow(pairs))), seconds = seconds)
}

summary_of <- function(all) {
  edge <- all[all$what == "edge", ]
  sure <- edge[edge$said >= 0.8, ]
  way <- all[all$what == "direction", ]
  said <- pmin(pmax(edge$said, 1e-3), 1 - 1e-3)
  data.frame(origin = all$origin[1L], way = all$way[1L], brier = mean((edge$said - edge$so)^2),
             loss = -mean(ifelse(edge$so, log(said), log1p(-said))), sure = nrow(sure), said = mean(sure$said),
             right = mean(sure$so), dependent = mean(sure$dependent), directions = nrow(way),
             direction_said = mean(way$said), direction_right = mean(way$so), seconds = mean(all$seconds), sets = sets)
}

numbers <- c("brier", "loss", "said", "right", "dependent", "direction_said", "direction_right", "seconds")
save_table <- function() {
  if (is.na(out)) return(invisible())
  rounded <- table
  rounded[numbers] <- lapply(rounded[numbers], signif, 4)
  utils::write.csv(rounded, out, row.names = FALSE)
}

table <- if (!is.na(out) && file.exists(out)) utils::read.csv(out)
for (origin in names(origins)) {
  todo <- setdiff(names(ways), table$way[table$origin == origin])
  if (!length(todo)) next
  cat(sprintf("\n%s, %d sets\n%-28s %7s %6s  %s  %s\n", origin, sets, "", "Brier", "loss",
              "n(>= .8) said right dependent", "n(direction) said right"))
  drawn <- lapply(100L + seq_len(sets), origins[[origin]])
  for (way in todo) {
    all <- do.call(rbind, lapply(seq_len(sets), function(set) {
      took <- system.time(edges <- ways[[way]](drawn[[set]], set))
      if (!is.null(edges)) judged(origin, way, edges, drawn[[set]]$truth, sum(took[1:2]))
    }))
    if (is.null(all)) next
    row <- summary_of(all)
    cat(sprintf("%-28s %7.4f %6.4f  %6d %6.2f %5.2f %9.2f  %6d %10.2f %5.2f  %6.1f s\n", way, row$brier,
                row$loss, row$sure, row$said, row$right, row$dependent, row$directions, row$direction_said,
                row$direction_right, row$seconds))
    table <- rbind(table, row)
  }
  save_table()
}
cat(sprintf("\n%-28s %7s %7s %6s  %s  %s\n", "means over origins", "origins", "Brier", "loss",
            "(>= .8) said right dependent", "(direction) said right"))
for (rows in split(table, factor(table$way, names(ways)))) {
  over <- function(value, count) sum(value * count, na.rm = TRUE) / sum(count)
  cat(sprintf("%-28s %7d %7.4f %6.4f  %12.2f %5.2f %9.2f  %16.2f %5.2f\n", rows$way[1L], nrow(rows), mean(rows$brier),
              mean(rows$loss), over(rows$said, rows$sure), over(rows$right, rows$sure),
              over(rows$dependent, rows$sure), over(rows$direction_said, rows$directions),
              over(rows$direction_right, rows$directions)))
}
