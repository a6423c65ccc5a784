# How much of regulation()'s network stays when one cell of 3,000 is left out: the share of the 1,000 heaviest edges
# that are among the 1,000 heaviest again.
# Usage: Rscript regulation-leave-one.R [cells] [genes] [regulators] [left out]
# Counts of simulated cells; left out are cells at even steps, the one of most counts and the one of fewest.
suppressMessages(library(weft))

given <- as.integer(commandArgs(TRUE))
or <- function(k, usual) if (length(given) >= k) given[k] else usual
cells <- or(1, 3000L)
genes <- or(2, 600L)
regulators <- or(3, 60L)
count <- or(4, 8L)

# Regulators come in ten programmes; each other gene follows one to three of them by a threshold or a line. Depths vary
# threefold.
simulated <- function(n, p, regulators) {
  programme <- matrix(rnorm(n * 10), n)
  x <- matrix(rnorm(n * p), n, dimnames = list(sprintf("cell%d", seq_len(n)), sprintf("g%d", seq_len(p))))
  x[, seq_len(regulators)] <- 0.7 * x[, seq_len(regulators)] + programme[, rep_len(1:10, regulators)]
  for (j in (regulators + 1):p) {
    parents <- sample.int(regulators, sample.int(3, 1))
    way <- sample(c(-1, 1), length(parents), TRUE)
    felt <- if (j %% 2) pmax(x[, parents, drop = FALSE], 0) else x[, parents, drop = FALSE]
    x[, j] <- 0.5 * x[, j] + drop(felt %*% way)
  }
  depth <- exp(rnorm(n, 0, 0.5))
  mean <- depth * exp(0.8 * scale(x) + rep(rnorm(p, -2.5, 1), each = n))
  Matrix::Matrix(matrix(as.double(rpois(n * p, mean)), n, dimnames = dimnames(x)), sparse = TRUE)
}

heaviest <- function(x) {
  edges <- as.data.frame(regulation(x, regulators = seq_len(regulators), transform = "counts", seed = 1,
                                    control = list(null_copies = 0)))
  utils::head(paste(edges$from, edges$to), 1000)
}

cat(sprintf("%s, %s\n", format(Sys.Date()), R.version.string))
overlaps <- vapply(1:3, function(set) {
  set.seed(set)
  x <- simulated(cells, genes, regulators)
  whole <- heaviest(x)
  size <- Matrix::rowSums(x)
  left <- c(which.max(size), which.min(size), as.integer(seq(1, cells, length.out = count - 2L)))
  overlap <- vapply(left, function(i) mean(whole %in% heaviest(x[-i, ])), 0)
  unnamed <- x
  rownames(unnamed) <- NULL
  by_values <- mean(heaviest(unnamed) %in% heaviest(unnamed[-left[3L], ]))
  cat(sprintf("set %d, %d cells x %d genes, %.0f %% not 0: %s; mean %.3f, least %.3f; cells without names %.3f\n", set,
              cells, genes, 100 * Matrix::nnzero(x) / length(x), paste(sprintf("%.3f", overlap), collapse = " "),
              mean(overlap), min(overlap), by_values))
  overlap
}, numeric(count))
cat(sprintf("all: mean %.3f, least %.3f\n", mean(overlaps), min(overlaps)))
