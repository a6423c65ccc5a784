# How often clean data have more components than there are, and groups that no variable names: gene_components() on 100
# genes, asked at 0.05. workflow-outliers.R has their outliers. "bulk", "low" and "cells" are counts of independent
# genes of different depth, which is tied to a class in "bulk, depth" and so on (three times as deep); of these also how
# often classes are said to differ along a component. Last come comparisons of equal networks by regulation(): with as
# much noise in both conditions, twice as much in one, and, as a network that does differ, without the regulators of two
# genes.
# Usage: Rscript workflow-levels.R [runs] [file.csv] [samples ...]    (default: 200 runs of 24, 60 and 150 samples)
# Groups of samples that no variable names are there in "groups", "batches" and "classes" alone: a network in which two
# classes that are not given differ. "network" is the same without what sets the classes apart. hidden_classes: of the
# groups told in "classes", the share that agrees with these in 80 % of the samples.
# Each setting's row is added to the file when it is done, and is not made again: runs that were stopped go on.
suppressMessages(library(weft))
given <- commandArgs(TRUE)
runs <- if (length(given)) as.integer(given[1L]) else 200L
file <- if (length(given) > 1L) given[2L]
sizes <- if (length(given) > 2L) as.integer(given[-(1:2)]) else c(24L, 60L, 150L)
genes <- 100L
# components that there are; NA where it is not known
settings <- c(rows = 0, plain = 0, groups = 1, batches = 2, t5 = 0, t3 = 0, factors = 3, "t factors" = 3, network = NA,
              classes = NA, bulk = 0, "bulk, depth" = 0, low = 0, "low, depth" = 0, cells = 0, "cells, depth" = 0)

regulated <- function(n, seed) {
  weft_example("expression", n, genes, seed = seed, batch = 0, missing = 0, outliers = 0, spoilt = FALSE)
}

counted <- function(setting, n) {
  depth <- exp(rnorm(n, 0, 0.3)) * if (grepl("depth", setting)) rep_len(c(1, 3), n) else 1
  kind <- sub(",.*", "", setting)
  mean <- switch(kind, bulk = exp(rnorm(genes, 4, 1.5)), low = exp(rnorm(genes, -0.5)), cells = exp(rnorm(genes, -1)))
  matrix(rnbinom(n * genes, mu = outer(depth, mean), size = c(bulk = 4, low = 5, cells = 2)[[kind]]), n)
}

clean <- function(setting, n, seed) {
  set.seed(seed)
  if (grepl("bulk|low|cells", setting)) {
    x <- counted(setting, n)
    dimnames(x) <- list(paste0("s", seq_len(n)), paste0("g", seq_len(genes)))
    return(x[, colSums(x) > 0])
  }
  noise <- function(df = Inf) matrix(rt(n * genes, df), n)
  factors <- function(df = Inf) matrix(rt(n * 3, df), n) %*% matrix(rnorm(3 * genes), 3)
  x <- switch(setting,
    plain = noise(), groups = noise() + outer(seq_len(n) <= 0.15 * n, rnorm(genes, 0, 1.5)), t3 = noise(3),
    t5 = noise(5),
    rows = noise() * sqrt(5 / rchisq(n, 5)), batches = noise() +
      matrix(rnorm(3 * genes), 3)[sample(3, n, TRUE, c(6, 3, 1)), ],
    factors = noise() + factors(), "t factors" = noise(4) + factors(4),
    network = { e <- regulated(n, seed); stats::residuals(stats::lm(e$x ~ e$class)) }, classes = regulated(n, seed)$x)
  dimnames(x) <- list(paste0("s", seq_len(n)), paste0("g", seq_len(genes)))
  x
}

# The share of samples in which two groupings into two agree.
agreement <- function(a, b) {
  same <- mean(as.integer(factor(a)) == as.integer(factor(b)))
  max(same, 1 - same)
}

done <- if (!is.null(file) && file.exists(file)) read.csv(file, comment.char = "#")
for (n in sizes) for (setting in names(settings)) {
  if (any(done$setting == setting & done$samples == n)) next
  found <- vapply(seq_len(runs), function(seed) {
    scale <- if (grepl("bulk|low", setting)) "counts" else if (grepl("cells", setting)) "cells" else "none"
    q <- suppressWarnings(gene_quality(clean(setting, n, seed), if (scale != "none") rep_len(1:2, n), transform = scale,
                                       min_count = if (grepl("bulk", setting)) 10 else 0))
    fit <- suppressWarnings(gene_components(q, seed = seed))
    told <- !is.null(fit$hidden)
    agrees <- if (told && setting == "classes") agreement(fit$hidden$group, regulated(n, seed)$class) >= 0.8 else NA
    c(fit$choice$k > settings[[setting]], told, agrees, if (is.null(fit$apart)) NA else fit$apart$p <= 0.05)
  }, numeric(4))
  row <- data.frame(setting = setting, samples = n, runs = runs,
                    too_many_components = mean(found[1L, ]), hidden_batch = mean(found[2L, ]),
                    hidden_classes = mean(found[3L, ], na.rm = TRUE), classes_differ = mean(found[4L, ]))
  cat(sprintf("%-10s %3d samples: runs with too many components %.3f, with a hidden batch %.3f\n",
              setting, n, row$too_many_components, row$hidden_batch))
  done <- rbind(done, row)
  if (!is.null(file)) write.csv(done, file, row.names = FALSE)
}

# Conditions of n samples each; the first three of 30 genes have no regulator.
compared <- function(what, n, seed) {
  set.seed(seed)
  e <- weft_example("expression", 2 * n, 30, seed = seed, batch = 0, missing = 0, outliers = 0, spoilt = FALSE)$x
  second <- n + seq_len(n)
  spread <- apply(e, 2, sd)
  if (what == "noisier") e[second, ] <- e[second, ] + rep(spread, each = n) * rnorm(n * 30)
  if (what == "factors, noisier") {
    e[] <- matrix(rnorm(4 * n), 2 * n) %*% matrix(rnorm(60), 2) + rep(1:2, each = n) * rnorm(60 * n)
  }
  if (what == "other") for (j in c(11, 21)) e[second, j] <- sample(e[second, j])
  regulation(e, compare = rep(c("a", "b"), each = n), permutations = 19, seed = seed,
             control = list(null_copies = 0, resamples = 20))
}

for (what in c("equal", "noisier", "factors, noisier", "other")) {
  found <- vapply(seq_len(runs), function(seed) {
    both <- compared(what, 60, seed)
    c(both$p_value <= 0.05, !is.null(both$noise))
  }, logical(2))
  cat(sprintf("comparison, %-18s 60 + 60 samples: networks differ in %.3f, noise is said in %.3f\n", what,
              mean(found[1L, ]), mean(found[2L, ])))
}
