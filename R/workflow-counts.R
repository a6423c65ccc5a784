# Counts and scales: which kind of values the data are, which genes have too few counts, and how values come to a scale
# on which genes can be compared.

# What the values are and become: "counts", "cells", "log2" or "none".
scale_of_values <- function(q, transform) {
  if (transform != "auto") return(transform)
  if (q$kind == "levels") "none" else guess_scale(q$x)
}

# Samples without any count have no scale: they are left out.
drop_empty_samples <- function(q, transform) {
  empty <- rowSums(q$x != 0, na.rm = TRUE) == 0
  if (!any(empty) || all(empty)) return(q)
  if (transform == "auto") transform <- guess_scale(q$x)
  if (!transform %in% c("counts", "cells")) return(q)
  samples <- rownames(q$x)[empty]
  q <- leave_out(q, samples = samples, reason = "no counts")
  note(q, "no counts", sprintf("Samples without counts were removed: %s.", some_named(samples)), 0L, length(samples))
}

# Genes of bulk counts that too few samples express are left out: with a handful of counts the test of a gene has no
# power, and it costs the others theirs. A sample expresses a gene that has as many counts per million as `min_count`
# counts are in a sample of the median total. The samples that must are as many as the smallest class has, since a gene
# may be on in one class alone; of a class of more than ten, ten and seven tenths of the others (Chen, Lun and Smyth
# 2016). Without a class it is a fifth of the samples, two at least.
drop_low_counts <- function(q, min_count) {
  if (min_count == 0) return(q)
  total <- sample_sizes(q$x)
  least <- min_count / stats::median(total)
  n <- nrow(q$x)
  smallest <- if (is.null(q$class)) max(2, ceiling(n / 5)) else min(table(q$class))
  needed <- ceiling(if (smallest > 10) 10 + 0.7 * (smallest - 10) else smallest)
  expressed <- colSums(q$x / total >= least * (1 - 1e-12), na.rm = TRUE)
  genes <- colnames(q$x)[expressed < needed]
  if (!length(genes)) return(q)
  q <- leave_out(q, genes, reason = "low counts")
  note(q, "low counts",
       sprintf(paste("Genes were removed if fewer than %d samples had at least %s counts per million (%s counts in a",
                     "sample of median total): %s."),
               as.integer(needed), format(signif(1e6 * least, 2)), format(min_count), some_named(genes)),
       length(genes))
}

# Counts: whole numbers from 0, in the hundreds, or with many zeros as from single cells. Intensities: positive, with a
# tail that a log scale would not have.
to_log_scale <- function(q, transform, asked) {
  if (transform == "none") return(q)
  if (any(q$x < 0, na.rm = TRUE)) {
    abort_input(sprintf("`transform = \"%s\"` needs values that are not negative.", transform),
                x = sprintf("The smallest value is %g.", min(q$x, na.rm = TRUE)))
  }
  size <- if (transform != "log2") sample_sizes(q$x)
  if (transform != "log2" && !anyNA(q$x)) q$counts <- q$x
  factors <- if (transform == "counts") scaling_factors(q$counts)
  scaled <- size * (factors %||% 1)
  q$x <- switch(transform, counts = log2((q$x + 0.5) / (scaled + 1) * 1e6), cells = log2(1 + q$x / (size / mean(size))),
                log2 = log2(1 + q$x))
  if (!asked) warn_scale(transform)
  plainly <- function(v) format(v, big.mark = ",", scientific = FALSE)
  totals <- if (transform != "log2") sprintf(" The totals are %s to %s.", plainly(min(size)), plainly(max(size)))
  what <- switch(transform, counts = paste0("Raw counts were transformed to log2((count + 0.5) per million)",
                                            if (is.null(factors)) "."
                                            else sprintf(". The totals were multiplied by scaling factors from %s.",
                                                         paste(signif(range(factors), 3), collapse = " to "))),
                 cells = paste("Raw counts were transformed to log2(1 + x / size factor). The size factor of a sample",
                               "is its total divided by the mean total."),
                 log2 = "Values were transformed to log2(1 + x).")
  note(q, "scale", paste0(what, totals, if (!asked) " The type of the data was recognised from the values."), ncol(q$x),
       nrow(q$x))
}

# Factors by which totals are multiplied, so that a few genes with very many counts do not make all others look lower
# (the trimmed mean of M-values); NULL where values are missing.
scaling_factors <- function(counts, native = run_control()) {
  if (is.null(counts)) return(NULL)
  storage.mode(counts) <- "double"
  .Call(C_weft_ranking_factors, counts, native)
}

sample_sizes <- function(x) {
  size <- rowSums(x, na.rm = TRUE)
  if (all(size > 0)) return(size)
  abort_input("Every sample must have counts.", x = sprintf("None: %s.", label_some(rownames(x)[size <= 0])))
}

# What was recognised, and how to say it or something else.
warn_scale <- function(transform) {
  says <- sprintf(paste("`transform = \"%s\"` does the same without this warning, and `transform = \"none\"` keeps the",
                        "values"), transform)
  switch(transform,
    counts = weft_warn("counts", paste("`x` looks like raw counts: it contains whole numbers, some of them large or",
                                       "many zeros. It was transformed to log2 counts per million."),
                       i = paste0(says, ".")),
    cells = weft_warn("counts", paste("`x` looks like raw counts of single cells: it contains whole numbers, many",
                                      "zeros and few counts. It was transformed to log2(1 + x / size factor)."),
                      i = paste0(says, ". `transform = \"counts\"` computes log2 counts per million.")),
    log2 = weft_warn("scale", paste("`x` contains positive values with a long tail, like intensities that are not on a",
                                    "log scale. It was transformed to log2(1 + x)."),
                     i = paste0(says, ".")))
}

shallow_mean <- 10 # counts per gene and sample, below which half a count matters

guess_scale <- function(x) {
  v <- if (anyNA(x)) x[!is.na(x)] else x
  if (length(v) > 1e6) v <- v[seq(1, length(v), length.out = 1e6)]
  if (min(v) < 0) return("none")
  top <- stats::quantile(v, 0.99, names = FALSE)
  if (all(v == round(v))) {
    zeros <- mean(v == 0)
    if (max(v) > 5 && zeros > 0.3 && mean(v) < shallow_mean) return("cells")
    if (max(v) > 50 || max(v) > 5 && zeros > 0.3) return("counts")
  }
  if (top > 100 && mean(v) > 1.5 * stats::median(v)) "log2" else "none"
}
