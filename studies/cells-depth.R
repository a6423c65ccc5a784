# Does gene_cells() find planted types where cells differ in how many counts they have, and is that number a component?
# Overdispersed counts of types that differ in some genes, from panels of 300 genes to 3,000 genes; printed are the
# adjusted Rand index, the numbers of groups and of components that stand out (one less than the types, if every type
# differs from all others), and the greatest correlation of one of the first two components with the logarithm of the
# total.
# Usage: Rscript cells-depth.R [sets of each kind = 4]
suppressPackageStartupMessages(library(weft))
source("inst/bench/bench.R")
source(bench_file("cells-planted.R"))
given <- commandArgs(TRUE)
sets <- if (length(given)) as.integer(given[1L]) else 4L
machine_line()

# size: of the gamma distribution of rates; spread: of logarithms of the totals
kinds <- data.frame(
  kind = c("panel, few counts", "panel", "Poisson", "usual", "deep", "shallow", "one type"),
  cells = c(2000, 2000, 1500, 2000, 1500, 2000, 1500), genes = c(300, 300, 1000, 1500, 3000, 3000, 400),
  total = c(150, 600, 400, 1000, 8000, 500, 300), types = c(5, 5, 4, 6, 6, 6, 1), fold = c(5, 4, 2.5, 2.5, 1.7, 4, 1),
  share = c(.08, .08, .06, .04, .04, .04, 0), size = c(2, 2, 50, 2, 3, 2, 2), spread = c(.5, .5, .3, .5, .4, .7, .5)
)

cells_of <- function(kind, seed) {
  set.seed(seed)
  n <- kind$cells * kind$genes
  rate <- stats::rgamma(kind$genes, 0.5, 0.5)^1.2 + 0.01
  type <- sample(kind$types, kind$cells, TRUE, prob = rev(seq_len(kind$types)))
  raised <- vapply(seq_len(kind$types), function(t) 1 + (kind$fold - 1) * (stats::runif(kind$genes) < kind$share),
                   numeric(kind$genes))
  depth <- exp(stats::rnorm(kind$cells, 0, kind$spread))
  mean <- depth * t(raised[, type] * rate / sum(rate) * kind$total) * stats::rgamma(n, kind$size, kind$size)
  x <- matrix(stats::rpois(n, mean), kind$cells, dimnames = list(NULL, sprintf("g%d", seq_len(kind$genes))))
  list(counts = Matrix::Matrix(x, sparse = TRUE), type = type)
}

for (k in seq_len(nrow(kinds))) {
  rows <- vapply(seq_len(sets), function(seed) {
    made <- cells_of(kinds[k, ], seed)
    found <- suppressWarnings(gene_cells(made$counts, seed = 1))
    in_group <- !is.na(found$group)
    follows <- max(abs(stats::cor(found$components$x[, 1:2], log(Matrix::rowSums(made$counts)))))
    agrees <- if (kinds$types[k] > 1) rand_index(found$group[in_group], made$type[in_group]) else NA
    c(agrees, max(found$group[in_group]), found$components$choice$k, follows)
  }, numeric(4))
  cat(sprintf("%-18s %d types: adjusted Rand index %.3f, groups %s, components %s, correlation with totals %.2f\n",
              kinds$kind[k], as.integer(kinds$types[k]), mean(rows[1L, ]), paste(rows[2L, ], collapse = " "),
              paste(rows[3L, ], collapse = " "), max(rows[4L, ])))
}
