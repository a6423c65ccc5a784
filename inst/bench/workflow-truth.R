# The workflow against known truth: Bayesian networks of the selected genes (distance of equivalence classes, beside
# bnlearn's hc() with its defaults where it is installed), planted outliers, the planted epistatic pair.
# Usage: Rscript workflow-truth.R [sets] [file.csv] [quick]   quick: of weft only what gene_bayes() does by default
library(weft)
args <- commandArgs(TRUE)
sets <- if (length(args)) as.integer(args[1L]) else 20L
out <- if (length(args) > 1L) args[2L] else NA
quick <- "quick" %in% args
peer <- requireNamespace("bnlearn", quietly = TRUE)
mean_error <- function(x) sprintf("%.2f (%.2f)", mean(x), stats::sd(x) / sqrt(length(x)))

bayes <- function(n, p, set) {
  e <- weft_example("expression", n = n, p = p, seed = set, batch = 0, missing = 0, outliers = 0, spoilt = FALSE)
  q <- gene_quality(e$x, e$class)
  genes <- rownames(gene_bayes(q, iterations = 1)$dag)
  truth <- e$truth[genes, genes]
  distance <- function(dag) bn_compare(dag, truth)$shd_cpdag
  timed <- function(learn, graph = function(fit) fit$dag) {
    seconds <- system.time(fit <- learn)[[3L]]
    c(distance(graph(fit)), seconds)
  }
  ours <- function(...) gene_bayes(q, genes = genes, seed = set, ...)
  average <- NULL
  rows <- list(default = timed(ours(), function(fit) {
    average <<- fit$average
    fit$dag
  }))
  rows$`average of default` <- c(distance(average), rows$default[2L])
  if (!quick) {
    rows$bge <- timed(ours(score = "bge"))
    rows$`bdeu, 3 bins` <- timed(ours(score = "bdeu"))
    rows$`bge, raw values` <- timed(bn_learn(as.data.frame(e$x[, genes]), score = "bge", max_parents = 3,
                                             target = "max", seed = set))
  }
  if (peer) {
    raw <- as.data.frame(e$x[, genes])
    bins <- as.data.frame(discretize(raw, bins = 3))
    hc <- function(data) timed(bnlearn::hc(data), bnlearn::amat)
    rows <- c(rows, list(`hc, bic-g` = hc(raw), `hc, bic, 3 bins` = hc(bins)))
  }
  data.frame(way = names(rows), shd = vapply(rows, `[`, 0, 1L), seconds = vapply(rows, `[`, 0, 2L), edges = sum(truth),
             row.names = NULL)
}

table <- NULL
for (shape in list(c(200, 100), c(500, 200))) {
  all <- do.call(rbind, lapply(seq_len(sets), function(set) bayes(shape[1L], shape[2L], set)))
  cat(sprintf(paste("\nBayesian network of 20 of %d genes, %d samples, %d sets, %.1f true edges: mean CPDAG",
                    "distance (standard error)\n"),
              shape[2L], shape[1L],
              sets, mean(all$edges)))
  for (way in unique(all$way)) {
    own <- all[all$way == way, ]
    cat(sprintf("  %-20s %s   %.2f s\n", way, mean_error(own$shd), mean(own$seconds)))
    table <- rbind(table, data.frame(genes = shape[2L], samples = shape[1L], sets = sets, way = way,
                                     mean = mean(own$shd), error = round(stats::sd(own$shd) / sqrt(sets), 2)))
  }
}
if (!is.na(out)) utils::write.csv(table, out, row.names = FALSE)

cat("\nPlanted outliers: of three per set, found; and samples flagged besides\n")
for (n in c(60, 200, 500)) {
  counts <- vapply(seq_len(sets), function(set) {
    e <- weft_example("expression", n = n, p = 100, seed = set)
    q <- gene_quality(e$x, e$class, e$batch)
    o <- gene_outliers(gene_components(q, seed = set), data = q)
    flagged <- o$sample[o$outlier]
    c(sum(e$outliers %in% flagged), sum(!flagged %in% e$outliers), all(e$outliers %in% o$sample[1:3]))
  }, numeric(3))
  cat(sprintf(paste("  %d samples: found %.2f of 3, besides %.2f; the three strangest are the planted ones in %.0f",
                    "of %d sets\n"), n,
              mean(counts[1, ]),
              mean(counts[2, ]), sum(counts[3, ]), sets))
}

cat("\nPlanted epistatic pair: rank among 19,900 pairs\n")
rank <- vapply(seq_len(sets), function(set) {
  e <- weft_example("snps", seed = set)
  pairs <- gene_pairs(e$x, e$class, top = 1000, permutations = 0)
  hit <- which(pairs$feature1 == e$epistatic[1L] & pairs$feature2 == e$epistatic[2L])
  if (length(hit)) hit else NA_real_
}, 0)
cat(sprintf("  first in %d of %d sets\n", sum(rank %in% 1), sets))
