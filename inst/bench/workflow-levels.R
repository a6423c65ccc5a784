# How often clean data have more components than there are, and groups that no variable names: gene_components() on 100
# genes, asked at 0.05. workflow-outliers.R has their outliers.
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
              classes = NA)

regulated <- function(n, seed) {
  weft_example("expression", n, genes, seed = seed, batch = 0, missing = 0, outliers = 0, spoilt = FALSE)
}

clean <- function(setting, n, seed) {
  set.seed(seed)
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
    q <- suppressWarnings(gene_quality(clean(setting, n, seed), transform = "none"))
    fit <- suppressWarnings(gene_components(q, seed = seed))
    told <- !is.null(fit$hidden)
    agrees <- if (told && setting == "classes") agreement(fit$hidden$group, regulated(n, seed)$class) >= 0.8 else NA
    c(fit$choice$k > settings[[setting]], told, agrees)
  }, numeric(3))
  row <- data.frame(setting = setting, samples = n, runs = runs,
                    too_many_components = mean(found[1L, ]), hidden_batch = mean(found[2L, ]),
                    hidden_classes = mean(found[3L, ], na.rm = TRUE))
  cat(sprintf("%-10s %3d samples: runs with too many components %.3f, with a hidden batch %.3f\n",
              setting, n, row$too_many_components, row$hidden_batch))
  done <- rbind(done, row)
  if (!is.null(file)) write.csv(done, file, row.names = FALSE)
}
