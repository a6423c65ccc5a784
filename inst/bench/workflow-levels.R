# How often clean data have "outliers", and more components than there are: gene_outliers() and gene_components() on 100
# genes. Both are asked at 0.05. Rscript inst/bench/workflow-levels.R [runs] [samples]
suppressMessages(library(weft))
given <- as.integer(commandArgs(TRUE))
runs <- if (length(given)) given[1L] else 200L
sizes <- if (length(given) > 1L) given[-1L] else c(24L, 60L, 150L)
genes <- 100L
# components that there are; NA where it is not known
settings <- c(plain = 0, groups = 1, t3 = 0, t5 = 0, rows = 0, batches = 2, factors = 3, "t factors" = 3, network = NA)

clean <- function(setting, n, seed) {
  set.seed(seed)
  noise <- function(df = Inf) matrix(rt(n * genes, df), n)
  factors <- function(df = Inf) matrix(rt(n * 3, df), n) %*% matrix(rnorm(3 * genes), 3)
  x <- switch(setting,
    plain = noise(), groups = noise() + outer(seq_len(n) <= 0.15 * n, rnorm(genes, 0, 1.5)), t3 = noise(3), t5 = noise(5),
    rows = noise() * sqrt(5 / rchisq(n, 5)), batches = noise() + matrix(rnorm(3 * genes), 3)[sample(3, n, TRUE, c(6, 3, 1)), ],
    factors = noise() + factors(), "t factors" = noise(4) + factors(4),
    network = weft_example("expression", n, genes, seed = seed, batch = 0, missing = 0, outliers = 0, spoilt = FALSE)$x)
  dimnames(x) <- list(paste0("s", seq_len(n)), paste0("g", seq_len(genes)))
  x
}

for (n in sizes) for (setting in names(settings)) {
  found <- vapply(seq_len(runs), function(seed) {
    q <- suppressWarnings(gene_quality(clean(setting, n, seed), transform = "none"))
    fit <- suppressWarnings(gene_components(q, seed = seed))
    c(any(gene_outliers(fit, data = q)$outlier), fit$choice$k > settings[[setting]])
  }, numeric(2))
  cat(sprintf("%-10s %3d samples: runs with outliers %.3f, with too many components %.3f\n", setting, n, mean(found[1L, ]),
              mean(found[2L, ])))
}
