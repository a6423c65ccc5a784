# What statements about directed networks are worth: networks of three kinds are simulated, regulation() finds their
# edges at a false discovery rate of .05, and pairs of genes are held against the truth. A row of the table for each
# kind and number of samples: the pairs found, the share of these that no edge joins (not_direct), the share that the
# moral graph does not join either, in which genes with a common target are joined (outside, with its standard error
# over sets), how many have a direction (.9 of the weight of both or more), the share of these whose direction is right,
# and the share that the weights expect to be (said). Genes are also hidden, as most causes are in real data: `seen` is
# the share that is measured, and then `outside` is of the whole graph. The report quotes the table.
#
#   Rscript inst/bench/direction-models.R [table.csv] [sets]
library(weft)

arguments <- commandArgs(TRUE)
file <- if (length(arguments)) arguments[1L] else "inst/bench/direction-models.csv"
sets <- if (length(arguments) > 1L) as.integer(arguments[2L]) else 20L
genes <- 60L
samples <- c(30L, 50L, 100L, 200L)

# Every gene has up to two regulators among those before it; a quarter of them have none.
random_network <- function() {
  truth <- matrix(0, genes, genes)
  for (gene in 4:genes) {
    for (regulator in sample(gene - 1L, sample(0:2, 1L, prob = c(1, 2, 1)))) {
      truth[regulator, gene] <- sample(c(-1, 1), 1L)
    }
  }
  truth
}

# What its regulators do to a gene, without noise. x: their values, samples in rows; sign: raises or lowers.
effects <- list(
  linear = function(x, sign) drop(x %*% (sign * stats::runif(length(sign), 0.5, 1))),
  threshold = function(x, sign) drop((x > 0) %*% sign) * 2,
  kinetic = function(x, sign) { # the logarithm of a rate that regulators share, by Hill functions
    amount <- exp(x)^2 / (1 + exp(x)^2)
    log(0.05 + Reduce(`*`, lapply(seq_along(sign), function(k) if (sign[k] > 0) amount[, k] else 1 - amount[, k])))
  }
)

simulate <- function(kind, truth, n) {
  x <- matrix(stats::rnorm(n * genes), n, dimnames = list(NULL, paste0("g", seq_len(genes))))
  for (gene in seq_len(genes)) {
    regulators <- which(truth[, gene] != 0)
    if (!length(regulators)) next
    effect <- effects[[kind]](x[, regulators, drop = FALSE], truth[regulators, gene])
    x[, gene] <- effect / max(stats::sd(effect), 1e-9) + stats::runif(1L, 0.4, 0.8) * x[, gene]
    x[, gene] <- (x[, gene] - mean(x[, gene])) / stats::sd(x[, gene]) # no variance tells which gene comes first
  }
  x
}

# Pairs that were found: whether an edge joins them, and of those that have a direction, whether that is right.
judged <- function(kind, n, seen, set) {
  set.seed(1000 * n + set)
  truth <- random_network()
  x <- simulate(kind, truth, n)[, sort(sample(genes, seen * genes))]
  edges <- as.data.frame(regulation(x, seed = set, run = weft_run("cpu", threads = 1, progress = FALSE),
                                    control = list(resamples = 100, stability = FALSE)), fdr = 0.05)
  from <- match(edges$from, paste0("g", seq_len(genes)))
  to <- match(edges$to, paste0("g", seq_len(genes)))
  first <- !duplicated(paste(pmin(from, to), pmax(from, to)))
  joined <- truth[cbind(from, to)] != 0 | truth[cbind(to, from)] != 0
  parents <- (truth != 0) %*% t(truth != 0) > 0 # of a common target
  clear <- edges$direction >= 0.9
  c(pairs = sum(first), not_direct = sum(first & !joined), outside = sum(first & !joined & !parents[cbind(from, to)]),
    directed = sum(clear & joined), right = sum(clear & truth[cbind(from, to)] != 0),
    said = sum(edges$direction[clear & joined]))
}

rows <- list()
for (kind in names(effects)) {
  for (n in samples) for (seen in c(1, 0.5)) {
    each <- vapply(seq_len(sets), function(set) judged(kind, n, seen, set), numeric(6L))
    total <- rowSums(each)
    pairs <- max(1, total[["pairs"]])
    outside <- total[["outside"]] / pairs # a ratio of sums
    spread <- stats::sd(each["outside", ] - outside * each["pairs", ]) * sqrt(sets) / pairs
    rows[[length(rows) + 1L]] <- data.frame(
      model = kind, samples = n, seen = seen, pairs = total[["pairs"]],
      not_direct = round(total[["not_direct"]] / pairs, 3), outside = round(outside, 3),
      outside_error = round(spread, 3), directed = total[["directed"]],
      right = round(total[["right"]] / max(1, total[["directed"]]), 3),
      said = round(total[["said"]] / max(1, total[["directed"]]), 3))
    print(rows[[length(rows)]])
  }
}
write.csv(do.call(rbind, rows), file, row.names = FALSE)
