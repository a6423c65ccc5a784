# What could pass for a difference between classes, or for a pattern among samples, and is not known to be one: batches
# and covariates that go with the class, sequencing depth that does, components that follow depth, and cells or repeated
# measurements that are taken for independent samples. Where any of these is there, no finding about classes is more
# than suggestive.

# A data frame with a row for each: `kind` ("batch", "covariate", "depth", "component", "cells" or
# "repeats"), `text` (a sentence) and `p` (of the test behind it, NA where there is none). components: what
# gene_components() found.
confounding <- function(q, components = NULL) {
  rows <- c(confounded_variables(q), list(confounded_depth(q)), technical_components(q, components),
            list(dependent_cells(q), repeated_measurements(q)))
  rows <- Filter(Negate(is.null), rows)
  of <- function(field, mode) as.vector(vapply(rows, function(row) row[[field]], mode))
  data.frame(kind = of("kind", ""), text = of("text", ""), p = of("p", 0))
}

confounded <- function(kind, text, p = NA_real_) list(kind = kind, text = text, p = p)

# With many samples even a slight agreement is beyond chance; one that explains less than this does no harm.
least_confounded <- 0.1

confounded_variables <- function(q) {
  if (is.null(q$class)) return(NULL)
  variables <- c(if (!is.null(q$batch) && nlevels(q$batch) > 1L) list(batch = q$batch), as.list(q$covariates))
  lapply(seq_along(variables), function(k) {
    v <- variables[[k]]
    design <- if (is.factor(v)) contrast_columns(v) else as.matrix(v)
    share <- class_explained(design, contrast_columns(q$class))
    p <- if (is.factor(v)) p_independent(v, q$class) else share_explained(v, q$class)[["p"]]
    if (p > 0.05 || share < least_confounded) return(NULL)
    of_batch <- k == 1L && !is.null(q$batch) && nlevels(q$batch) > 1L
    agree <- if (is.factor(v)) {
      sprintf("%d of %d samples belong to the most common class of their %s", sum(apply(table(v, q$class), 1L, max)),
              length(v), if (of_batch) "batch" else "group")
    } else sprintf("the classes explain %s of its variance", share_text(share_explained(v, q$class)[["share"]]))
    confounded(if (of_batch) "batch" else "covariate",
               sprintf(paste("Class and %s are associated (p %s): %s. %s explains %s of the variation in class:",
                             "differences between classes are estimated only from the remainder."),
                       if (of_batch) "batch" else plain_text(names(variables)[k]), p_text(p), agree,
                       if (of_batch) "The batch" else "It", share_text(share)), p)
  })
}

# Whether two categories are independent: exactly for small tables, else by the chi-squared distribution.
p_independent <- function(a, b) {
  counted <- table(a, b)
  exact <- if (sum(counted) <= 200 && length(counted) <= 12L) {
    tryCatch(stats::fisher.test(counted, workspace = 2e6)$p.value, error = function(e) NULL)
  }
  exact %||% suppressWarnings(stats::chisq.test(counted, correct = FALSE)$p.value)
}

least_depths <- 1.5 # the ratio of two depths from which on they matter

log_depth <- function(q) if (!is.null(q$counts)) log(rowSums(q$counts))

confounded_depth <- function(q) {
  depth <- log_depth(q)
  if (is.null(depth) || is.null(q$class)) return(NULL)
  found <- share_explained(depth, q$class)
  usual <- exp(tapply(depth, q$class, mean))
  if (found[["p"]] > 0.05 || found[["share"]] < least_confounded || max(usual) < least_depths * min(usual)) return(NULL)
  extremes <- c(which.min(usual), which.max(usual))
  confounded("depth", sprintf(
    paste("Classes differ in sequencing depth (p %s): samples of %s have a mean of %s counts, samples of %s one of %s.",
          "Effects of depth on genes with few counts can look like differences between classes."),
    p_text(found[["p"]]), plain_text(names(usual)[extremes[1L]]), whole_text(usual[extremes[1L]]),
    plain_text(names(usual)[extremes[2L]]), whole_text(usual[extremes[2L]])), found[["p"]])
}

whole_text <- function(v) format(round(v), big.mark = ",", scientific = FALSE)

# Leading components a quarter of whose variance goes with depth, or with the share of values that were missing, and
# more than goes with the class.
technical_components <- function(q, components) {
  technical <- list("sequencing depth" = log_depth(q), "the proportion of missing values" = missing_of_samples(q))
  differs <- function(v, least) !is.null(v) && stats::sd(v) > least
  technical <- technical[c(differs(technical[[1L]], log(least_depths) / 2), differs(technical[[2L]], 0.01))]
  if (is.null(components) || !length(technical)) return(NULL)
  tried <- seq_len(min(components$leading %||% 2L, ncol(components$x)))
  of_class <- function(k) if (is.null(q$class)) 0 else share_explained(components$x[, k], q$class)[["share"]]
  unlist(lapply(names(technical), function(what) {
    lapply(tried, function(k) {
      found <- share_explained(components$x[, k], technical[[what]])
      p <- min(1, found[["p"]] * length(tried))
      if (p > 0.05 || found[["share"]] < max(0.25, of_class(k))) return(NULL)
      confounded("component", sprintf("PC%d follows %s, which explains %s of its variance (p %s): it may be technical.",
                                      k, what, share_text(found[["share"]]), p_text(p)), p)
    })
  }), recursive = FALSE)
}

missing_of_samples <- function(q) q$samples$missing[q$samples$kept]

dependent_cells <- function(q) {
  metacells <- "cells" %in% q$log$step
  if (is.null(q$class) || !metacells && !identical(q$scale, "cells") && !like_cells(q)) return(NULL)
  confounded("cells", sprintf(
    paste("Samples %s. P-values treat them as independent, but cells of one person or animal are not:",
          "a difference between classes may be a difference between a few individuals."),
    if (metacells) "are metacells" else if (like_cells(q)) "look like single cells" else "are cells"))
}

# Values on a log scale, of more samples than bulk studies have, of which as many are 0 as in single cells alone.
like_cells <- function(q) {
  x <- q$measured %||% q$x
  q$kind == "expression" && nrow(x) >= 100 && min(x, na.rm = TRUE) >= 0 && mean(x == 0, na.rm = TRUE) >= 0.4
}

# A coefficient of variation: samples of one cell line have .05 to .1, those of people .4.
least_scatter <- 0.04

# Bulk counts whose samples of one class differ by hardly more than counting does.
repeated_measurements <- function(q, least_genes = 50L) {
  if (is.null(q$class) || is.null(q$counts) || !identical(q$scale, "counts") || "cells" %in% q$log$step) return(NULL)
  class <- as.integer(q$class)
  df <- length(class) - nlevels(q$class)
  counts <- q$counts[, colMeans(q$counts) >= 30, drop = FALSE]
  if (df < 1 || ncol(counts) < least_genes) return(NULL)
  size <- rowSums(q$counts) * scaling_factors(q$counts)
  expected <- (rowsum(counts, class) / as.vector(rowsum(size, class)))[as.character(class), , drop = FALSE] * size
  excess <- colSums((counts - expected)^2 / pmax(expected, 1e-9)) / df - 1 # beyond that of Poisson counts
  scatter <- sqrt(max(0, mean(excess / colMeans(counts), trim = 0.05)))
  if (scatter >= least_scatter) return(NULL)
  confounded("repeats", sprintf(
    paste("Samples of one class differ little beyond counting noise (coefficient of variation %s %%). If they are",
          "repeated measurements of one sample, the p-values apply to that sample and not to its class."),
    format(signif(100 * scatter, 2))))
}
