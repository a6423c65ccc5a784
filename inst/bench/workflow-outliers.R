# Samples that stand apart: how often clean data of several origins have any by gene_outliers(), and how many of three
# planted ones are found, both asked at 0.05.
# Then one outlier alone ("moved"), and two that have the same genes moved alike: the shares that are found.
# Usage: Rscript workflow-outliers.R [runs] [file.csv] [samples ...]   (default: 50 runs of 24 and 60 samples)
# "moved": a quarter of the genes of each planted sample, drawn for it alone, lie 4 standard deviations away, give or
# take one; "noisy": all its values are 2.5 times as far from the genes' means. Numbers of components are given: those
# that the origin has (of two at least), and two more where samples are moved, since these add components of their own.
# Each row is added to the file when it is done, and is not made again.
suppressMessages(library(weft))
given <- commandArgs(TRUE)
runs <- if (length(given)) as.integer(given[1L]) else 50L
file <- if (length(given) > 1L) given[2L]
sizes <- if (length(given) > 2L) as.integer(given[-(1:2)]) else c(24L, 60L)
genes <- 100L
planted <- c(7L, 14L, 21L)
components <- c(plain = 2, t5 = 2, t3 = 2, rows = 2, "factors, rows" = 3, groups = 2, batches = 2, factors = 3,
                "t factors" = 3, counts = 2, network = 6, "network, batch" = 6, golub = 3)
leukaemia <- weft_example("golub")

clean <- function(origin, n, seed) {
  set.seed(seed)
  noise <- function(df = Inf) matrix(rt(n * genes, df), n)
  factors <- function(df = Inf) matrix(rt(n * 3, df), n) %*% matrix(rnorm(3 * genes), 3)
  network <- function(batch) weft_example("expression", n, genes, seed, batch, 0, 0, FALSE)$x
  x <- switch(origin, plain = noise(), t5 = noise(5), t3 = noise(3), rows = noise() * sqrt(5 / rchisq(n, 5)),
    "factors, rows" = (noise() + factors()) * sqrt(8 / rchisq(n, 8)),
    groups = noise() + outer(seq_len(n) <= 0.15 * n, rnorm(genes, 0, 1.5)),
    batches = noise() + matrix(rnorm(3 * genes), 3)[sample(3, n, TRUE, c(6, 3, 1)), ],
    factors = noise() + factors(), "t factors" = noise(4) + factors(4),
    counts = log_counts(n), network = network(0), "network, batch" = network(0.5),
    golub = leukaemia$x[sample(which(leukaemia$class == "ALL"), n), sample(ncol(leukaemia$x), genes)])
  dimnames(x) <- list(paste0("s", seq_len(n)), paste0("g", seq_len(genes)))
  x
}

# Negative binomial counts of samples of different depth, with two factors; as log2 counts per million.
log_counts <- function(n) {
  level <- exp(0.3 * matrix(rnorm(n * 2), n) %*% matrix(rnorm(2 * genes), 2))
  mean <- outer(exp(rnorm(n, 0, 0.3)), exp(rnorm(genes, 4, 1.5))) * level
  x <- matrix(rnbinom(n * genes, mu = mean, size = 4), n)
  log2((x + 0.5) / (rowSums(x) + 1) * 1e6)
}

spoil <- function(x, how) {
  if (how == "clean") return(x)
  means <- rep(colMeans(x), each = length(planted))
  if (how == "noisy") x[planted, ] <- means + 2.5 * (x[planted, ] - means)
  else {
    far <- matrix(rnorm(length(planted) * genes), length(planted))
    moved <- matrix(runif(length(far)) < 0.25, length(planted)) * (4 * sign(far) + far)
    x[planted, ] <- x[planted, ] + moved * rep(apply(x, 2, sd), each = length(planted))
  }
  x
}

# Sample 7, or samples 7 and 14 with the same genes moved by as much.
alike <- function(x, count) {
  far <- rnorm(genes)
  moved <- (runif(genes) < 0.25) * (4 * sign(far) + far) * apply(x, 2, sd)
  samples <- planted[seq_len(count)]
  x[samples, ] <- x[samples, ] + rep(moved, each = count)
  x
}

told <- function(x, k) {
  x <- x[, apply(x, 2, sd) > 0]
  fit <- suppressWarnings(gene_components(gene_quality(x, transform = "none"), leading = k, seed = 1))
  o <- gene_outliers(fit, data = x[, rownames(fit$rotation)])
  match(o$sample[o$outlier], rownames(x))
}

done <- if (!is.null(file) && file.exists(file)) read.csv(file, comment.char = "#")
for (n in sizes) for (origin in names(components)) {
  if (any(done$origin == origin & done$samples == n) || (origin == "golub" && n > 27)) next
  found <- vapply(seq_len(runs), function(seed) {
    x <- clean(origin, n, seed)
    sets <- lapply(c("clean", "moved", "noisy"), function(how) {
      told(spoil(x, how), components[[origin]] + 2 * (how == "moved"))
    })
    few <- lapply(1:2, function(count) {
      set.seed(seed)
      mean(planted[seq_len(count)] %in% told(alike(x, count), components[[origin]] + 1))
    })
    c(length(sets[[1L]]) > 0, mean(planted %in% sets[[2L]]), mean(planted %in% sets[[3L]]),
      length(setdiff(unlist(sets[-1L]), planted)) > 0, unlist(few))
  }, numeric(6))
  row <- data.frame(origin = origin, samples = n, runs = runs, t(round(rowMeans(found), 3)))
  names(row)[4:9] <- c("clean_with_any", "moved_found", "noisy_found", "others_told", "one_found", "two_alike_found")
  cat(sprintf("%-15s %3d samples: clean with any %.2f; found of moved %.2f, of noisy %.2f, of one %.2f, of two %.2f\n",
              origin, n, row[[4L]], row[[5L]], row[[6L]], row[[8L]], row[[9L]]))
  done <- rbind(done, row)
  if (!is.null(file)) write.csv(done, file, row.names = FALSE)
}
