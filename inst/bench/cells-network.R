# Networks of single cells through gene_network(): average precision over density, of the cells as it takes them and of
# metacells alone, on cells that are simulated from the networks of SERGIO (Dibaeinia and Sinha 2020) with its noise:
# outliers among genes, depths, dropout, counts. Regulators are named (pairs with them count) or not (all pairs do).
# Usage: Rscript cells-network.R FOLDER [sets]
# FOLDER has Interaction_*.txt and Regs_*.txt of one network, as SERGIO publishes them, such as those of
# De-noised_100G_9T_300cPerT_4_DS1.
library(weft)

args <- commandArgs(TRUE)
folder <- args[1]
if (is.na(folder) || !dir.exists(folder)) stop("The first argument must be the folder of a network.")
sets <- if (length(args) > 1) as.integer(args[2]) else 8L

# ---- the simulator ----

# list(edges: from, to, k (below 0: lowers), steepness; rate: master regulators x types)
published <- function(folder) {
  rows <- function(kind) lapply(strsplit(readLines(list.files(folder, kind, full.names = TRUE)), ","), as.numeric)
  edges <- do.call(rbind, lapply(rows("^Interaction"), function(v) {
    at <- function(part) v[2 + part * v[2] + seq_len(v[2])]
    data.frame(from = at(0), to = v[1], k = at(1), steepness = at(2))
  }))
  masters <- do.call(rbind, rows("^Regs"))
  genes <- sort(unique(c(edges$from, edges$to, masters[, 1])))
  rate <- matrix(0, length(genes), ncol(masters) - 1)
  rate[match(masters[, 1], genes), ] <- masters[, -1]
  edges[c("from", "to")] <- lapply(edges[c("from", "to")], match, genes)
  list(edges = edges, rate = rate, names = paste0("g", genes))
}

# dx = (made - .8 x) dt + sqrt(made) dW1 + sqrt(.8 x) dW2, by steps of .01 from rest; each cell is taken at random from
# the course of its type.
simulate_cells <- function(net, each, decay = 0.8, step = 0.01, burn = 100L, apart = 15L) {
  edges <- net$edges
  half <- rep(NA_real_, nrow(edges)) # of an effect: where the regulator is on average over types
  effects <- function(x) {
    share <- x[edges$from, , drop = FALSE]^edges$steepness
    share <- share / (half^edges$steepness + share)
    abs(edges$k) * ifelse(edges$k > 0, 1, 0) * share + abs(edges$k) * ifelse(edges$k < 0, 1, 0) * (1 - share)
  }
  rest <- net$rate / decay
  waiting <- unique(edges$to)
  while (length(waiting)) { # genes whose regulators are all at rest
    ready <- waiting[!vapply(waiting, function(g) any(edges$from[edges$to == g] %in% waiting), NA)]
    if (!length(ready)) stop("The network has a cycle.")
    for (g in ready) {
      into <- edges$to == g
      half[into] <- rowMeans(rest[edges$from[into], , drop = FALSE])
      rest[g, ] <- (net$rate[g, ] + colSums(effects(rest)[into, , drop = FALSE])) / decay
    }
    waiting <- setdiff(waiting, ready)
  }
  into <- Matrix::sparseMatrix(edges$to, seq_len(nrow(edges)), x = 1, dims = c(nrow(rest), nrow(edges)))
  types <- ncol(rest)
  taken <- vapply(seq_len(types), function(type) burn + sample.int(apart * each, each), integer(each))
  out <- array(0, c(nrow(rest), each, types))
  x <- rest
  noise <- function() stats::rnorm(length(x)) * sqrt(step)
  for (t in seq_len(burn + apart * each)) {
    made <- pmax(net$rate + as.matrix(into %*% effects(x)), 0)
    x <- pmax(x + (made - decay * x) * step + sqrt(made) * noise() + sqrt(decay * x) * noise(), 0)
    for (type in which(colSums(taken == t) > 0)) out[, taken[, type] == t, type] <- x[, type]
  }
  matrix(out, nrow(rest))
}

# With the noise that SERGIO's own example adds.
counted <- function(x) {
  odd <- which(stats::runif(nrow(x)) < 0.01)
  x[odd, ] <- x[odd, , drop = FALSE] * stats::rlnorm(length(odd), 0.8, 1)
  x <- x * rep(stats::rlnorm(ncol(x), 4.6, 0.4) / colSums(x), each = nrow(x))
  v <- log1p(x)
  x <- x * (stats::runif(length(x)) < stats::plogis(6.5 * (v - stats::quantile(v, 0.82))))
  matrix(stats::rpois(length(x), x), nrow(x))
}

# ---- run ----

precision_over_density <- function(w, truth) {
  all <- matrix(0, nrow(truth), ncol(truth), dimnames = dimnames(truth))
  rows <- intersect(rownames(w), rownames(truth))
  all[rows, colnames(w)] <- as.matrix(w)[rows, ]
  counts <- rownames(truth)[row(truth)] != colnames(truth)[col(truth)]
  hit <- truth[counts][order(-all[counts], stats::runif(sum(counts)))]
  mean((cumsum(hit) / seq_along(hit))[hit]) / mean(hit)
}

net <- published(folder)
truth <- matrix(FALSE, length(net$names), length(net$names), dimnames = list(net$names, net$names))
truth[cbind(net$edges$from, net$edges$to)] <- TRUE
regulators <- net$names[sort(unique(net$edges$from))]
others <- list(components = FALSE, pairs = FALSE, clusters = FALSE, bayes = FALSE, outliers = FALSE)
cat(sprintf("%s, %s, %d threads\n", format(Sys.Date()), R.version.string, weft_threads()))
table <- NULL
for (each in c(100L, 300L)) for (set in seq_len(sets)) {
  set.seed(set)
  x <- t(counted(simulate_cells(net, each)))
  dimnames(x) <- list(sprintf("cell%d", seq_len(nrow(x))), net$names)
  for (named in c(TRUE, FALSE)) for (cells in list(NULL, FALSE)) {
    if (isFALSE(cells) && nrow(x) < 2000) next # there are no metacells
    fit <- suppressWarnings(gene_network(
      Matrix::Matrix(x, sparse = TRUE), regulators = if (named) regulators, seed = 1, run = weft_run(progress = FALSE),
      steps = c(others, list(network = list(cells = cells)))))
    ratio <- precision_over_density(fit$network, if (named) truth[regulators, ] else truth)
    table <- rbind(table, data.frame(cells = nrow(x), named, made_of = if (is.null(cells)) "default" else "metacells",
                                     ratio, by_cells = identical(attr(fit$network, "made_of")$unit, "cells")))
  }
}
shown <- stats::aggregate(cbind(ratio, by_cells) ~ cells + named + made_of, table, mean)
shown$error <- stats::aggregate(ratio ~ cells + named + made_of, table, stats::sd)$ratio / sqrt(sets)
print(shown, row.names = FALSE, digits = 3)
