# The report on genes and pairs of genes: the differences and their size, figures of all genes, tables, and the values.

genes_section <- function(fit, top) {
  q <- fit$quality
  r <- fit$ranking
  report_paragraph(genes_text(fit))
  if (inherits(r, "weft_ranking")) {
    report_paragraph(attr(r, "model")$notes)
    side_by_side(figure_volcano(r), figure_mean_difference(r), figure_p_values(r), kind = "side three")
  }
  results <- gene_results(fit)
  put_table(results, genes_caption(fit), "genes", top, minor = minor_gene_columns(results), links = gene_links(fit),
            more = genes_how(fit))
  put_download(as.data.frame(fit, what = "genes"),
               sprintf("Download all %s and all columns", columns_text(q, nrow(q$genes))),
               "all-genes")
  if (is.null(q$class)) return(invisible())
  strips <- utils::head(ranked_genes(r), 12L)
  columns <- shown_columns(fit, strips)
  side_by_side(for (k in seq_along(strips)) figure_strip(q, columns[k], strips[k], k), kind = "tiles")
  report_paragraph(sprintf("Values of the first %s by class. Each point is a sample, and bars are medians.%s",
                           columns_text(q, length(strips)), strips_text(q, columns, strips)))
  figure_heatmap(fit)
}

# How many samples of two classes the best threshold for the first gene misclassifies.
strips_text <- function(q, columns, names) {
  if (nlevels(q$class) != 2L || !length(columns) || is.na(columns[1L])) return("")
  value <- q$x[, columns[1L]]
  second <- as.integer(q$class)[order(value)] == 2L
  last <- c(which(diff(sort(value)) > 0), length(value)) # a cut may not separate equal values
  wrong <- c(sum(!second), (cumsum(second) + sum(!second) - cumsum(!second))[last])
  wrong <- min(wrong, length(value) - wrong)
  sprintf(" The best threshold for %s misclassifies %s.", names[1L],
          if (wrong) several(wrong, "sample") else "no sample")
}

# Numbers of the columns of the data that are shown under these names.
shown_columns <- function(fit, shown) {
  label <- gene_labels(fit$quality)
  match(shown, if (is.null(label)) colnames(fit$quality$x) else label)
}

# ---- the table ----

# One row per gene, best first.
gene_results <- function(fit) {
  q <- fit$quality
  r <- as.data.frame(fit$ranking)
  at <- shown_columns(fit, ranked_genes(r))
  known <- !is.na(at)
  r <- r[known, , drop = FALSE]
  at <- at[known]
  by <- if (inherits(fit$ranking, "weft_ranking")) r$log10_p else -ranked_bits(r)
  out <- data.frame(rank = as.integer(rank(by, ties.method = "min", na.last = "keep")), gene = ranked_genes(r))
  if (!is.null(q$genes$description)) out$description <- q$genes$description[match(colnames(q$x)[at], q$genes$gene)]
  if (!is.null(q$genes$symbol)) out[[if (column_word(q) == "probe") "probe" else "column"]] <- colnames(q$x)[at]
  if (inherits(fit$ranking, "weft_ranking")) cbind(out, linear_columns(r, ranking_levels(fit)))
  else cbind(out, level_columns(q, r, at))
}

# The table of linear models: fold change with its interval, statistics, area under the ROC curve, information and
# shape.
linear_columns <- function(r, levels) {
  out <- list()
  if (!is.null(r$contrast)) out$`differs most` <- r$contrast
  else if (length(levels) == 2L) out$`higher in` <- levels[1L + (r$log2_fold_change > 0)]
  out$`log2 fold change` <- r$log2_fold_change
  out$`CI lower` <- r$lower
  out$`CI upper` <- r$upper
  out$mean <- r$mean
  if (!is.null(r$t)) out$t <- r$t else out$F <- r$f
  out$p <- r$p_value
  out$q <- r$q_value
  if (!all(is.na(r$auc))) out$AUC <- r$auc
  out$bits <- r$bits
  if (!all(is.na(r$shape_q))) out$`shape q` <- r$shape_q
  as.data.frame(out, optional = TRUE, stringsAsFactors = FALSE)
}

# The table of levels: means by class, and information.
level_columns <- function(q, r, at) {
  means <- vapply(levels(q$class), function(level) colMeans(q$x[q$class == level, at, drop = FALSE]),
                  numeric(length(at)))
  means <- matrix(means, length(at), dimnames = list(NULL, levels(q$class)))
  out <- list(`higher in` = levels(q$class)[max.col(means, "first")])
  for (level in seq_len(min(nlevels(q$class), 6L))) out[[paste("mean", levels(q$class)[level])]] <- means[, level]
  out$bits <- ranked_bits(r)
  out$p <- r$p_value
  out$q <- r$q_value
  as.data.frame(out, optional = TRUE, stringsAsFactors = FALSE)
}

# What phones do without.
minor_gene_columns <- function(results) {
  c("probe", "column", "description", "higher in", "CI lower", "CI upper", "mean", "t", "F", "AUC", "bits", "shape q",
    grep("^mean ", names(results), value = TRUE))
}

genes_caption <- function(fit) {
  probes <- column_word(fit$quality) == "probe"
  levels <- ranking_levels(fit)
  linear <- inherits(fit$ranking, "weft_ranking")
  paste(c(sprintf("%s, ordered by %s.", if (probes) "Probes" else "Genes",
                  if (linear) "p-value" else "their mutual information with the class"),
          if (linear && length(levels) == 2L) sprintf("The log2 fold change is %s minus %s.", levels[2L], levels[1L]),
          if (probes) "Several probes may measure the same gene."), collapse = " ")
}

# How to read the columns.
genes_how <- function(fit) {
  if (!inherits(fit$ranking, "weft_ranking")) {
    return(sprintf(paste("The column bits is the mutual information with the class, from 0 (no association) to %.2f",
                         "(the gene determines the class). The column p is the p-value of the individual gene. The",
                         "column q is the smallest false discovery rate at which the gene is significant (%s were",
                         "tested)."),
                   class_entropy(fit$quality$class, "bits"), columns_text(fit$quality, nrow(fit$ranking))))
  }
  paste(c("The columns CI lower and CI upper are the limits of the 95 % confidence interval of the fold change. If the",
          "values are on a log2 scale, a log2 fold change of 1 is a doubling. The column",
          if (is.null(fit$ranking$t)) "F is the moderated F statistic." else "t is the moderated t statistic.",
          "The column p is the p-value of the individual gene. The column q is the smallest false discovery rate at",
          sprintf("which the gene is significant (%s were tested).", columns_text(fit$quality, nrow(fit$ranking))),
          if (!all(is.na(fit$ranking$auc))) paste("AUC is the probability that a sample of the second class has the",
                                                  "larger value; it is 0.5 for a gene without a difference."),
          "The column bits is the mutual information between the class and the values in three bins.",
          if (!all(is.na(fit$ranking$shape_q))) paste("The column shape q is the q-value of a test for differences in",
                                                      "spread or shape that a test of means does not detect.")),
        collapse = " ")
}

class_entropy <- function(class, unit) {
  share <- tabulate(class) / length(class)
  share <- share[share > 0]
  -sum(share * log(share)) / if (unit == "bits") log(2) else 1
}

genes_text <- function(fit) {
  r <- fit$ranking
  q <- fit$quality
  sure <- which(r$q_value <= 0.05)
  if (!length(sure)) {
    return(sprintf("None of %s is %s %s at a false discovery rate of 0.05.", columns_text(q, nrow(r)),
                   sub("^is ", "", ranking_verb(fit, 1L)), ranking_subject(fit)))
  }
  paste0(sprintf("%s%s %s %s at a false discovery rate of 0.05.", some_of_columns(q, length(sure), nrow(r)),
                 genes_behind(q, ranked_genes(r)[sure]), ranking_verb(fit, length(sure)), ranking_subject(fit)),
         ways_text(r, sure, ranking_levels(fit)), shape_text(q, r, sure))
}

# " 300 are higher in B, and 391 are higher in A."
ways_text <- function(r, sure, levels) {
  change <- r$log2_fold_change[sure]
  if (is.null(change) || !is.null(r$contrast) || anyNA(change)) return("")
  up <- sum(change > 0)
  counted <- paste(thousands(c(up, length(sure) - up)), ifelse(c(up, length(sure) - up) == 1L, "is", "are"))
  if (is.null(levels)) return(sprintf(" %s positively and %s negatively associated.", counted[1L], counted[2L]))
  sprintf(" %s higher in %s, and %s higher in %s.", counted[1L], levels[2L], counted[2L], levels[1L])
}

# " 97 probes differ in spread or shape (shape q at most 0.05); 61 of these do not differ in the mean."
shape_text <- function(q, r, sure) {
  shape <- which(r$shape_q <= 0.05)
  if (!length(shape)) return("")
  sprintf(" %s %s in spread or shape (shape q at most 0.05); %s of these %s not differ significantly in the mean.",
          columns_text(q, length(shape)), if (length(shape) == 1L) "differs" else "differ",
          thousands(length(setdiff(shape, sure))), if (length(setdiff(shape, sure)) == 1L) "does" else "do")
}

# "349 of 3,051 probes"
some_of_columns <- function(q, some, all) sprintf("%s of %s", thousands(some), columns_text(q, all))

# " (335 genes)", if columns are probes. `shown` are their labels.
genes_behind <- function(q, shown) {
  if (column_word(q) == "gene") return("")
  kept <- q$genes[q$genes$kept, ]
  at <- match(shown, gene_labels(q))
  genes <- unique(ifelse(is.na(kept$symbol[at]), kept$gene[at], kept$symbol[at]))
  sprintf(" (%s)", several(length(genes), "gene"))
}

# For each name that is shown, what databases know the gene by: its symbol or Ensembl identifier; NULL where the data
# have neither.
gene_links <- function(fit) {
  q <- fit$quality
  kept <- q$genes[q$genes$kept, ]
  known <- kept$symbol %||% if (names_of_genes(kept$gene) >= 2) kept$gene
  if (is.null(known)) return(NULL)
  stats::setNames(known, gene_labels(q) %||% kept$gene)
}

# ---- pictures of all genes ----

figure_volcano <- function(r) {
  put_figure(function() draw_volcano(r, 0.05, 10L), "Volcano plot: fold change and p-value of every gene.",
             "Volcano plot. Coloured genes have a q-value of at most 0.05.",
             more = paste("Genes at the top have the smallest p-values. Genes at the sides have the largest fold",
                          "changes. Up to ten genes with the smallest p-values are labelled."), size = c(4.2, 4))
}

figure_mean_difference <- function(r) {
  put_figure(function() draw_mean_difference(r, 0.05, 10L), "Fold change of every gene against its mean value.",
             "Fold change against mean value. Coloured genes have a q-value of at most 0.05.",
             more = paste("Most genes should have a fold change around 0, whatever their mean. A trend away from 0",
                          "means that the samples are not normalised to the same scale."), size = c(4.2, 4))
}

figure_p_values <- function(r) {
  put_figure(function() draw_p_values(r), "Histogram of the p-values of all genes.",
             "Histogram of p-values. The dashed line is the expected height if no gene differs.",
             more = paste("The p-values of genes without a difference are uniformly distributed. Differentially",
                          "expressed genes add to the bars on the left. If the bars rise to the right or in the",
                          "middle, the test does not fit the data, for example because of hidden batches."),
             size = c(4.2, 4))
}

figure_strip <- function(q, column, name, rank_of) {
  put_figure(function() {
    value <- q$x[, column]
    code <- as.integer(q$class)
    count <- nlevels(q$class)
    graphics::par(mar = c(2.2, 2.6, 1.8, 0.4), mgp = c(1.6, 0.5, 0), tcl = -0.25)
    if (tile_slanted(levels(q$class))) {
      below <- 0.16 + names_inches(shown_names(levels(q$class), 16L), 0.7)
      graphics::par(mai = replace(graphics::par("mai"), 1L, below))
    }
    place <- stats::ave(value, code, FUN = function(v) rank(v, ties.method = "first"))
    aside <- ((7 * place) %% 11 - 5) / 5 # no randomness
    graphics::plot(code + 0.22 * aside, value, pch = report_shapes(count)[code], bg = class_palette(count)[code],
                   col = "white", lwd = 0.4,
                   cex = if (length(value) > 300L) 0.5 else 1.1, xlim = c(0.5, count + 0.5), xaxt = "n", xlab = "",
                   ylab = "", cex.axis = 0.8)
    tile_axis(levels(q$class))
    middle <- vapply(split(value, q$class), stats::median, 0)
    graphics::segments(seq_len(count) - 0.3, middle, seq_len(count) + 0.3, middle, lwd = 2)
    name <- plain_text(name)
    size <- min(0.95, 1.9 / names_inches(name, 1))
    graphics::title(if (size < 0.5) shown_names(name, 40L) else name, cex.main = max(size, 0.5), line = 0.5)
  }, sprintf("Values of gene %d of the ranking in each class.", rank_of), size = c(2.15, 2.3))
}

# Names of classes below a small picture: upright where they fit side by side, else all of them turned.
tile_slanted <- function(levels) sum(vapply(plain_text(levels), names_inches, 0, cex = 0.75) + 0.08) > 1.6

tile_axis <- function(levels) {
  at <- seq_along(levels)
  if (tile_slanted(levels)) {
    graphics::axis(1L, at, shown_names(levels, 16L), tick = FALSE, line = -0.7, las = 2, cex.axis = 0.7, gap.axis = -1)
  } else graphics::axis(1L, at, plain_text(levels), tick = FALSE, line = -0.6, cex.axis = 0.75, gap.axis = -1)
}

# ---- heat map of the first fifty ----

figure_heatmap <- function(fit, count = 50L, most = 400L) {
  q <- fit$quality
  names <- utils::head(ranked_genes(fit$ranking), count)
  columns <- shown_columns(fit, names)
  some <- if (nrow(q$x) > most) round(seq(1, nrow(q$x), length.out = most)) else seq_len(nrow(q$x))
  z <- scaled_columns(q$x[some, columns, drop = FALSE])
  tree <- function(m) if (nrow(m) > 2L) stats::hclust(stats::dist(m), "average")$order else seq_len(nrow(m))
  class <- q$class[some]
  samples <- unlist(lapply(levels(class), function(level) {
    own <- which(class == level)
    own[tree(z[own, , drop = FALSE])]
  }))
  genes <- tree(t(z))
  sure <- sum(fit$ranking$q_value[seq_along(names)] <= 0.05, na.rm = TRUE)
  word <- column_word(q)
  put_figure(function() draw_heatmap(t(z[samples, genes, drop = FALSE]), names[genes], class[samples],
                                     q$batch[some][samples]),
             sprintf("Heat map of the first %d %ss in all samples, classes side by side.", length(names), word),
             sprintf(paste("Heat map of the first %s in %s samples. Purple values are above the mean of the row, and",
                           "green values are below it. The %ss were selected for their association with the class."),
                     columns_text(q, length(names)), thousands(length(samples)), word),
             more = sprintf(paste("Colours show the distance from the mean of the row in standard deviations (SD), up",
                                  "to 2.5. Rows and columns are ordered by hierarchical clustering. %s Because the",
                                  "%ss were selected for their association with the class, a pattern that follows the",
                                  "class is not additional evidence.%s"),
                            if (is.null(q$batch)) "The strip at the top shows the class."
                            else "The strips at the top show the class and the batch.", word,
                            if (sure == length(names)) ""
                            else sprintf(" %d of the %d %ss have a q-value of at most 0.05.", sure, length(names),
                                         word)),
             size = c(7.4, 1.4 + 0.15 * length(names)), kind = "tall",
             narrow = c(phone_width, 1.2 + 0.125 * length(names)))
}

draw_heatmap <- function(z, names, class, batch) {
  p <- nrow(z)
  n <- ncol(z)
  phone <- on_phone()
  names <- shown_names(names, if (phone) 22L else 40L)
  size <- if (phone) 0.68 else 0.7
  graphics::par(mai = c(0.52, 0.08 + names_inches(names, size), key_inches(class, batch), if (phone) 0.04 else 0.12))
  graphics::plot(NA, xlim = c(0, n), ylim = c(p, -0.055 * p), xaxs = "i", yaxs = "i", axes = FALSE, ann = FALSE)
  most <- min(2.5, max(abs(z), 0.1, na.rm = TRUE)) # few samples have no values far out
  graphics::rasterImage(matrix(two_sided(z, most), p), 0, p, n, 0, interpolate = FALSE)
  strips <- Filter(Negate(is.null), list(class = class, batch = batch))
  for (k in seq_along(strips)) {
    low <- -0.01 * p - (k - 1) * 0.022 * p
    graphics::rect(seq_len(n) - 1, low, seq_len(n), low - 0.018 * p, border = NA, xpd = NA,
                   col = strip_colours(strips[k]))
  }
  graphics::axis(2L, seq_len(p) - 0.5, names, las = 1, tick = FALSE, line = -0.5, cex.axis = size)
  graphics::abline(v = cumsum(tabulate(class, nlevels(class))), col = "white", lwd = 2)
  key_above(class, batch = batch)
  ends <- sprintf(c("-%.1f", "%.1f SD"), most)
  scale_below(two_sided(seq(-2.5, 2.5, length.out = 101L)), c(0.02, 0.92) * n, p, ends[1L], "0", ends[2L])
}

# ---- pairs ----

# Pairs are shown only where they were tested: the best of many million are always impressive.
pairs_section <- function(fit, top) {
  r <- as.data.frame(fit$pairs)
  report_paragraph(pairs_text(fit$pairs), genes_paired(fit),
                   paste("The interaction of a pair is the information that the two genes carry about the class",
                         "together, minus the information that they carry separately. Many pairs have a positive",
                         "interaction by chance. The p-value compares a pair with the best pair in permutations of the",
                         "class labels."))
  if (!nrow(r) || is.null(r$p_fwer)) return(invisible())
  sure <- utils::head(r[r$p_fwer <= strengths[["suggestive"]], ], 2L)
  if (nrow(sure)) side_by_side(for (k in seq_len(nrow(sure))) figure_pair(fit, sure$feature1[k], sure$feature2[k]))
  shown <- data.frame(`first gene` = r$feature1, `second gene` = r$feature2, information = r$mi,
                      interaction = r$interaction, p = r$p_fwer,
                      check.names = FALSE)
  put_table(shown, sprintf("The pairs with the largest interaction (%s were tested).", pairs_searched(fit)), "pairs",
            min(top, 10), minor = "information",
            more = paste("The column information is the information about the class in both genes together, in bits.",
                         "The column interaction is the part of it that the genes do not carry separately. The column",
                         "p is (1 + the number of permutations in which the best of all pairs has at least as much",
                         "interaction) / (1 + the number of permutations)."))
}

# One gene of a pair against the other, by class.
figure_pair <- function(fit, first, second) {
  q <- fit$quality
  at <- shown_columns(fit, c(first, second))
  if (anyNA(at)) return(invisible())
  cut <- q$kind != "levels" && usual_bins(nrow(q$x)) == 2 && is.null(step_settings(fit, "pairs")$bins)
  put_figure(function() {
    count <- nlevels(q$class)
    code <- as.integer(q$class)
    values <- unname(q$x[, at])
    graphics::par(mai = replace(graphics::par("mai"), 3L, key_inches(q$class)))
    if (q$kind == "levels") values <- values + 0.07 * (((7 * row(values)) %% 11 - 5) / 5) # equal ones side by side
    graphics::plot(values, pch = report_shapes(count)[code], bg = class_palette(count)[code], col = "white", lwd = 0.4,
                   cex = 1.3, xlab = shown_names(first), ylab = shown_names(second))
    if (cut) graphics::abline(v = stats::median(values[, 1L]), h = stats::median(values[, 2L]), lty = 2, col = "grey")
    key_above(q$class, shapes = TRUE)
  }, "Scatter plot of the values of the pair in all samples, by class.",
  sprintf("Values of %s and %s. Each point is a sample.", first, second),
  more = paste(c("If a pair is synergistic, each class lies in two diagonally opposite corners, although the classes",
                 "overlap along each axis.",
                 if (cut) "The dashed lines are the medians. For the test, the values were divided at the medians."),
               collapse = " "))
}
