# Planted modules: gene_modules() beside blockwiseModules() of WGCNA with its defaults (one block). The adjusted Rand
# index is over all genes, those in no module being a group.
#   Rscript inst/bench/modules.R table [first seed] [sets] [kinds ...]   a row per kind of data
#   Rscript inst/bench/modules.R large                                   20,000 genes x 200 samples: seconds, memory
suppressMessages(library(weft))

kinds <- c("equal", "unequal", "weak", "overlap", "shared", "signs", "t3", "counts", "few", "many", "hubs", "noise",
           "one")

# list(x: samples x genes, truth: modules from 1, 0 for background).
planted <- function(kind, seed) {
  set.seed(seed)
  n <- switch(kind, few = 40, many = 150, 100)
  p <- switch(kind, many = 3000, 1200)
  sizes <- switch(kind, unequal = c(400, 200, 100, 60, 40, 30, 20, 20), weak = rep(80, 6), noise = integer(),
                  few = rep(100, 5), many = round(exp(seq(log(20), log(200), length.out = 20))), one = p, rep(60, 8))
  u <- matrix(rnorm(n * max(1, length(sizes))), n)
  if (kind == "overlap") u[, c(2, 4, 6, 8)] <- 0.6 * u[, c(1, 3, 5, 7)] + 0.8 * u[, c(2, 4, 6, 8)]
  truth <- c(rep(seq_along(sizes), sizes), integer(p - sum(sizes)))
  loading <- switch(kind, weak = runif(p, 0.3, 0.5), hubs = 0.3 + 0.6 * runif(p)^3, runif(p, 0.3, 0.8))
  if (kind == "signs") loading <- loading * sample(c(-1, 1), p, TRUE)
  x <- matrix(if (kind == "t3") rt(n * p, 3) / sqrt(3) else rnorm(n * p), n)
  own <- truth > 0
  x[, own] <- u[, truth[own], drop = FALSE] * rep(loading[own], each = n) +
    x[, own] * rep(sqrt(1 - loading[own]^2), each = n)
  if (kind == "shared") x <- x + rnorm(n) %o% runif(p, 0.2, 0.6)
  if (kind == "counts") {
    mean <- exp(outer(rnorm(n, 0, 0.3), rnorm(p, 4, 1), `+`) + 0.5 * x)
    x <- matrix(rnbinom(n * p, mu = mean, size = 20), n)
    x <- log2((x + 0.5) / (rowSums(x) + 1) * 1e6)
  }
  colnames(x) <- sprintf("g%d", seq_len(p))
  list(x = x, truth = truth)
}

adjusted_rand <- function(a, b) {
  pairs <- function(v) sum(v * (v - 1) / 2)
  both <- table(a, b)
  rows <- pairs(rowSums(both))
  columns <- pairs(colSums(both))
  chance <- rows * columns / pairs(length(a))
  if (rows + columns == 2 * chance) 1 else (pairs(both) - chance) / ((rows + columns) / 2 - chance)
}

wgcna_modules <- function(x) {
  quiet <- capture.output(suppressWarnings(suppressMessages({
    fit <- blockwiseModules(as.data.frame(x), maxBlockSize = 2e4, numericLabels = TRUE, verbose = 0)
  })))
  fit$colors
}

# A row per kind: mean adjusted Rand index and its standard deviation over the sets, and the mean number of modules.
table_of <- function(seeds, kinds) {
  peer <- suppressWarnings(suppressMessages(require("WGCNA", quietly = TRUE))) # attached, or it takes another cor()
  score <- function(truth, z) c(adjusted_rand(truth, z), length(setdiff(unique(z), 0)))
  for (kind in kinds) {
    got <- sapply(seeds, function(seed) {
      d <- planted(kind, seed)
      ours <- suppressWarnings(gene_modules(gene_quality(d$x, transform = "none"), seed = 1))$module
      c(score(d$truth, ours), if (peer) score(d$truth, wgcna_modules(d$x)))
    })
    row <- data.frame(kind, planted = length(setdiff(unique(planted(kind, seeds[1])$truth), 0)), sets = length(seeds),
                      weft = mean(got[1, ]), sd = stats::sd(got[1, ]), modules = mean(got[2, ]))
    if (peer) row <- cbind(row, wgcna = mean(got[3, ]), wgcna_sd = stats::sd(got[3, ]), wgcna_modules = mean(got[4, ]),
                           ahead = sum(got[1, ] >= got[3, ]))
    utils::write.table(format(row, digits = 2), quote = FALSE, row.names = FALSE, sep = ",",
                       col.names = kind == kinds[1])
  }
}

large <- function() {
  set.seed(1)
  n <- 200
  p <- 20000
  sizes <- round(exp(seq(log(20), log(400), length.out = 40)))
  truth <- c(rep(seq_along(sizes), sizes), integer(p - sum(sizes)))
  loading <- runif(p, 0.3, 0.8) * (truth > 0)
  u <- matrix(rnorm(n * length(sizes)), n)
  x <- u[, pmax(truth, 1)] * rep(loading, each = n) + matrix(rnorm(n * p), n) * rep(sqrt(1 - loading^2), each = n)
  colnames(x) <- sprintf("g%d", seq_len(p))
  q <- gene_quality(x, transform = "none")
  invisible(gc(reset = TRUE))
  time <- system.time(m <- gene_modules(q, seed = 1))
  status <- if (file.exists("/proc/self/status")) grep("VmHWM", readLines("/proc/self/status"), value = TRUE)
  cat(sprintf(paste("20,000 genes x 200 samples: %d of %d modules, adjusted Rand index %.2f, %.0f s (%.0f s of",
                    "processors), %s\n"), nrow(m$modules), length(sizes), adjusted_rand(truth, m$module), time[[3]],
            time[[1]] + time[[2]], status))
}

args <- commandArgs(TRUE)
if (identical(args[1], "large")) {
  large()
} else if (identical(args[1], "table")) {
  seeds <- as.integer(c(args[2], 1)[1]) + seq_len(as.integer(c(args[3], 5)[1])) - 1L
  table_of(seeds, if (length(args) > 3) args[-(1:3)] else kinds)
} else {
  cat("Rscript inst/bench/modules.R table [first seed] [sets] [kinds ...] | large\n")
}
