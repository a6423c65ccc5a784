# How often gene_quality() warns that batch and class are nearly the same, and gene_components() of a likely hidden
# batch: on data that have one, by its strength and size, and on data that have none. Then noise with a batch, which
# moves each gene by a normal draw, and a class that does nothing: how often components stand out, classes are said to
# differ along one, and pairs of genes to say something about the class (19 permutations; asked at .05), and whether the
# confounding is said.
# Usage: Rscript workflow-batches.R [sets] [samples]    (default: 100 sets of 60 samples); 100 genes
suppressMessages(library(weft))
given <- as.integer(commandArgs(TRUE))
sets <- if (length(given)) given[1L] else 100L
n <- if (length(given) > 1L) given[2L] else 60L
genes <- 100L

warned <- function(class, expr) {
  seen <- FALSE
  withCallingHandlers(expr, warning = function(w) {
    if (inherits(w, class)) seen <<- TRUE
    invokeRestart("muffleWarning")
  })
  seen
}

expression_of <- function(seed, shift = 0) {
  weft_example("expression", n, genes, seed = seed, batch = shift, missing = 0, outliers = 0, spoilt = FALSE)
}

hidden <- function(made, class = made$class) {
  warned("weft_warning_hidden_batch", gene_components(gene_quality(made$x, class, transform = "none"), seed = 1))
}

# A batch of a share of the samples moves each gene by `shift` standard deviations, times a normal draw.
with_hidden <- function(seed, shift, share) {
  made <- expression_of(seed)
  set.seed(seed)
  inside <- sample(n) <= share * n
  made$x <- made$x + outer(as.numeric(inside), rnorm(genes, 0, shift) * apply(made$x, 2, sd))
  made
}

# Batches of the first class's samples and of the second's, but for a share of them.
agreeing <- function(seed, share) {
  made <- expression_of(seed)
  set.seed(seed)
  batch <- as.integer(factor(made$class)) %% 2L
  other <- sample(n, round((1 - share) * n))
  batch[other] <- 1L - batch[other]
  warned("weft_warning_batch_class", gene_quality(made$x, made$class, factor(batch), transform = "none"))
}

rate <- function(what, one) {
  share <- mean(vapply(seq_len(sets), one, NA))
  cat(sprintf("%-58s %.2f\n", what, share))
}

cat(sprintf("%s, %s, %d sets of %d samples and %d genes: share of sets with the warning\n", format(Sys.Date()),
            R.version.string, sets, n, genes))
for (share in c(0.5, 0.7, 0.8, 0.85, 0.9, 0.95)) { # where all do, it is an error
  rate(sprintf("batch and class: %.0f %% of the samples agree", 100 * share), function(seed) agreeing(seed, share))
}
rate("hidden batch: none, a regulatory network", function(seed) hidden(expression_of(seed)))
rate("hidden batch: none, independent normal genes", function(seed) {
  set.seed(seed)
  hidden(list(x = matrix(rnorm(n * genes), n, dimnames = list(NULL, paste0("g", seq_len(genes))))), NULL)
})
rate("hidden batch: none, three smooth factors", function(seed) {
  set.seed(seed)
  x <- matrix(rnorm(n * 3), n) %*% matrix(rnorm(3 * genes), 3) + rnorm(n * genes)
  dimnames(x) <- list(NULL, paste0("g", seq_len(genes)))
  hidden(list(x = x), NULL)
})
rate("hidden batch: none, the class moves half of the genes", function(seed) {
  made <- expression_of(seed)
  set.seed(seed)
  moved <- rnorm(genes) * (runif(genes) < 0.5)
  made$x <- made$x + outer(as.numeric(factor(made$class)) - 1, moved * apply(made$x, 2, sd) * 1.5)
  hidden(made)
})
for (share in c(0.5, 0.25)) for (shift in c(0.5, 1, 1.5, 2)) {
  rate(sprintf("hidden batch of %.0f %%, genes moved by %.1f sd", 100 * share, shift),
       function(seed) hidden(with_hidden(seed, shift, share)))
}

# Two classes of 20 samples; in each, so many are of its own batch.
with_batch <- function(seed, share) {
  set.seed(seed)
  class <- rep(1:2, each = 20)
  own <- round(20 * share)
  batch <- c(rep(1:2, c(own, 20 - own)), rep(1:2, c(20 - own, own)))
  x <- matrix(rnorm(40 * genes), 40) + outer(batch - 1, rnorm(genes))
  colnames(x) <- paste0("g", seq_len(genes))
  q <- suppressWarnings(gene_quality(x, class, factor(batch), transform = "none"))
  fit <- suppressWarnings(gene_components(q, seed = seed))
  pairs <- gene_pairs(q, permutations = 19, seed = seed)
  c(fit$choice$k > 0, fit$apart$p <= 0.05, min(pairs$p_fwer) <= 0.05, "batch" %in% q$confounding$kind)
}

statements <- c("a component stands out", "classes differ along one", "a pair is told", "confounding is said")
for (share in c(0.5, 0.7, 0.8, 0.9)) {
  found <- rowMeans(vapply(seq_len(sets), with_batch, numeric(4), share = share))
  cat(sprintf("%-58s %.3f\n", sprintf("noise, batch agrees in %.0f %%: %s", 100 * share, statements), found), sep = "")
}
