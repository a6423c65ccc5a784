# The report on genes and pairs of genes: tables with directions and sizes, and the values.

report_genes <- function(fit, top) {
  q <- fit$quality
  results <- gene_results(fit)
  report_paragraph(genes_text(fit, results))
  put_table(results, genes_caption(fit), "genes", top,
            minor = c("probe", "column", "description", "information", "p",
                      grep("^mean ", names(results), value = TRUE)))
  strips <- utils::head(ranked_genes(fit$ranking), 12L)
  columns <- shown_columns(fit, strips)
  side_by_side(for (k in seq_along(strips)) figure_strip(q, columns[k], strips[k], k), kind = "tiles")
  report_paragraph(sprintf(paste("Values of the first %s by class: each point is a sample, bars are medians. One that",
                                 "tells the classes apart has clouds that hardly overlap%s."),
                           columns_text(q, length(strips)), strips_text(q, columns, strips)))
  figure_heatmap(fit)
}

# Of two classes, how many samples of the first gene lie on the wrong side of the best cut.
strips_text <- function(q, columns, names) {
  if (nlevels(q$class) != 2L || !length(columns) || is.na(columns[1L])) return("")
  value <- q$x[, columns[1L]]
  second <- as.integer(q$class)[order(value)] == 2L
  last <- c(which(diff(sort(value)) > 0), length(value)) # a cut may not separate equal values
  wrong <- c(sum(!second), (cumsum(second) + sum(!second) - cumsum(!second))[last])
  wrong <- min(wrong, length(value) - wrong)
  sprintf(": cut where it separates best, %s has %s on the wrong side", names[1L],
          if (wrong) several(wrong, "sample") else "none")
}

# Numbers of the columns of the data that are shown under these names.
shown_columns <- function(fit, shown) {
  label <- gene_labels(fit$quality)
  match(shown, if (is.null(label)) colnames(fit$quality$x) else label)
}

# One row per gene, best first, equal ones with one rank: in which class it is highest, by how much, the means, and what
# it says about the class.
gene_results <- function(fit) {
  q <- fit$quality
  r <- as.data.frame(fit$ranking)
  at <- shown_columns(fit, ranked_genes(r))
  known <- !is.na(at)
  r <- r[known, ]
  at <- at[known]
  means <- vapply(levels(q$class), function(level) colMeans(q$x[q$class == level, at, drop = FALSE]),
                  numeric(length(at)))
  means <- matrix(means, length(at), dimnames = list(NULL, levels(q$class)))
  highest <- max.col(means, "first")
  difference <- apply(means, 1L, function(m) diff(range(m)))
  by <- if (is.null(r$p_value) || !is.null(r$mi)) -ranked_bits(r) else r$log10_p
  out <- data.frame(rank = rank(by, ties.method = "min"), gene = ranked_genes(r))
  if (!is.null(q$genes$description)) out$description <- q$genes$description[match(colnames(q$x)[at], q$genes$gene)]
  if (!is.null(q$genes$symbol)) out[[if (column_word(q) == "probe") "probe" else "column"]] <- colnames(q$x)[at]
  out$`higher in` <- levels(q$class)[highest]
  two <- nlevels(q$class) == 2L
  out[[if (q$kind == "levels") "difference" else if (two) "log fold change" else "greatest difference"]] <-
    if (two) means[, 2L] - means[, 1L] else difference
  for (level in seq_len(min(nlevels(q$class), 6L))) out[[paste("mean", levels(q$class)[level])]] <- means[, level]
  out$information <- ranked_bits(r)
  out$p <- r$p_value
  out$q <- r$q_value
  out
}

genes_caption <- function(fit) {
  class <- fit$quality$class
  word <- column_word(fit$quality)
  sprintf(paste("%s by what they say about the class. %s Information (mutual, in %s): 0 for one that says nothing,",
                "%.2f for one that tells every sample's class; values are cut into few levels, so that even one",
                "whose classes do not overlap may have less. p is that of each by itself; q is the smallest false",
                "discovery rate at which it is listed, over all %s."),
          if (word == "probe") "Probes (columns of the data; several may measure one gene)" else "Genes",
          if (nlevels(class) == 2L) sprintf(paste("The log fold change is the mean in %s less that in %s, on the",
                                                  "scale of the data (where that is log2, 1 is a doubling)."),
                                            levels(class)[2L], levels(class)[1L])
          else "Differences are between the highest and the lowest class mean.",
          ranking_unit(fit$ranking), class_entropy(class, ranking_unit(fit$ranking)),
          columns_text(fit$quality, nrow(fit$ranking)))
}

class_entropy <- function(class, unit) {
  share <- tabulate(class) / length(class)
  share <- share[share > 0]
  -sum(share * log(share)) / if (unit == "bits") log(2) else 1
}

genes_text <- function(fit, results) {
  sure <- results$q %in% results$q[which(results$q <= 0.05)]
  text <- if (any(sure)) sprintf("%s%s differ %s at a false discovery rate of 0.05: %s.",
                                 some_of_columns(fit$quality, sum(sure), nrow(results)),
                                 genes_behind(fit$quality, results$gene[sure]), among_classes(fit$quality$class),
                                 joined(sprintf("%d are %s in %s",
                                                table(factor(results$`higher in`[sure], levels(fit$quality$class))),
                                                if (nlevels(fit$quality$class) == 2L) "higher" else "highest",
                                                levels(fit$quality$class))))
          else sprintf("No %s of %s differs %s at a false discovery rate of 0.05.", column_word(fit$quality),
                       thousands(nrow(results)), among_classes(fit$quality$class))
  twelfth <- results$information[min(12L, nrow(results))]
  tied <- sum(results$information == twelfth)
  paste(text, if (tied > 1L) {
    sprintf(paste("Values are cut into few levels, so that many %ss say the same: %d have rank %d, and their order",
                  "says nothing."), column_word(fit$quality), tied, sum(results$information > twelfth) + 1L)
  })
}

# "349 of 3,051 probes"
some_of_columns <- function(q, some, all) sprintf("%s of %s", thousands(some), columns_text(q, all))

# ", which measure 335 genes,": where columns are probes. `shown` are their labels.
genes_behind <- function(q, shown) {
  if (column_word(q) == "gene") return("")
  kept <- q$genes[q$genes$kept, ]
  at <- match(shown, gene_labels(q))
  genes <- unique(ifelse(is.na(kept$symbol[at]), kept$gene[at], kept$symbol[at]))
  sprintf(", of %s,", several(length(genes), "gene"))
}

figure_strip <- function(q, column, name, rank_of) {
  put_figure(function() {
    value <- q$x[, column]
    code <- as.integer(q$class)
    count <- nlevels(q$class)
    graphics::par(mar = c(2.2, 2.6, 1.8, 0.4), mgp = c(1.6, 0.5, 0), tcl = -0.25)
    place <- stats::ave(value, code, FUN = function(v) rank(v, ties.method = "first"))
    aside <- ((7 * place) %% 11 - 5) / 5 # no randomness
    graphics::plot(code + 0.22 * aside, value, pch = report_shapes(count)[code], bg = class_palette(count)[code],
                   col = "white", lwd = 0.4,
                   cex = if (length(value) > 300L) 0.5 else 1.1, xlim = c(0.5, count + 0.5), xaxt = "n", xlab = "",
                   ylab = "", cex.axis = 0.8)
    graphics::axis(1L, seq_len(count), plain_text(levels(q$class)), tick = FALSE, line = -0.6,
                   cex.axis = if (count > 3L) 0.6 else 0.85)
    middle <- vapply(split(value, q$class), stats::median, 0)
    graphics::segments(seq_len(count) - 0.3, middle, seq_len(count) + 0.3, middle, lwd = 2)
    graphics::title(short_name(name, 22L), cex.main = 0.95, line = 0.5)
  }, sprintf("Values of gene %d of the ranking in each class.", rank_of), width = 2.15, height = 2.3)
}

short_name <- function(x, most) {
  x <- plain_text(x)
  ifelse(nchar(x, "width") > most, paste0(substr(x, 1L, most - 2L), ".."), x)
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
             sprintf(paste("The first %s (rows) in %s samples (columns), classes side by side: purple is above the",
                           "mean of the row, green below, by up to 2.5 of its standard deviations (SD); rows and",
                           "columns that are alike stand together. On top: class%s. %sAll were chosen by the",
                           "class, so that blocks along it are not a finding in themselves."),
                     columns_text(q, length(names)), thousands(length(samples)),
                     if (is.null(q$batch)) "" else ", and batch in greys",
                     if (sure == length(names)) "" else sprintf("%d of the %d have a q of at most 0.05. ", sure,
                                                                length(names))),
             width = 7.4, height = 1.4 + 0.15 * length(names), kind = "tall",
             narrow = c(phone_width, 1.2 + 0.125 * length(names)))
}

draw_heatmap <- function(z, names, class, batch) {
  p <- nrow(z)
  n <- ncol(z)
  phone <- on_phone()
  names <- short_name(names, if (phone) 15L else 26L)
  size <- if (phone) 0.72 else 0.7
  graphics::par(mai = c(0.52, 0.08 + names_inches(names, size), 0.4, if (phone) 0.04 else 0.12))
  graphics::plot(NA, xlim = c(0, n), ylim = c(p, -0.055 * p), xaxs = "i", yaxs = "i", axes = FALSE, ann = FALSE)
  graphics::rasterImage(matrix(two_sided(z), p), 0, p, n, 0, interpolate = FALSE)
  strips <- Filter(Negate(is.null), list(class = class, batch = batch))
  for (k in seq_along(strips)) {
    low <- -0.01 * p - (k - 1) * 0.022 * p
    graphics::rect(seq_len(n) - 1, low, seq_len(n), low - 0.018 * p, border = NA, xpd = NA,
                   col = strip_colours(strips[k]))
  }
  graphics::axis(2L, seq_len(p) - 0.5, names, las = 1, tick = FALSE, line = -0.5, cex.axis = size)
  graphics::abline(v = cumsum(tabulate(class, nlevels(class))), col = "white", lwd = 2)
  key_above(class)
  scale_below(two_sided(seq(-2.5, 2.5, length.out = 101L)), c(0.02, 0.92) * n, p, "-2.5", "0", "2.5 SD")
}

# ---- pairs ----

# Pairs are shown only where they were tested: the best of many million are always impressive.
report_pairs <- function(fit, top) {
  r <- as.data.frame(fit$pairs)
  report_paragraph(pairs_text(fit$pairs), genes_paired(fit),
                   paste("The interaction of a pair is what it says about the class beyond what its members say by",
                         "themselves. By chance alone it is positive for many pairs; p says which exceed that."))
  if (!nrow(r) || is.null(r$p_fwer)) return(invisible())
  sure <- utils::head(r[r$p_fwer <= strengths[["suggestive"]], ], 2L)
  if (nrow(sure)) side_by_side(for (k in seq_len(nrow(sure))) figure_pair(fit, sure$feature1[k], sure$feature2[k]))
  shown <- data.frame(`first gene` = r$feature1, `second gene` = r$feature2, information = r$mi,
                      interaction = r$interaction, p = r$p_fwer,
                      check.names = FALSE)
  put_table(shown,
            sprintf(paste("Pairs with the most interaction of %s. Information: what the two say together about the",
                          "class; interaction: how much of it neither says alone. p: how often the best of all pairs",
                          "has as much interaction when the classes are shuffled."), pairs_searched(fit)),
            "pairs", min(top, 10), minor = "information")
}

# One gene of a pair against the other, by class: what neither tells alone.
figure_pair <- function(fit, first, second) {
  q <- fit$quality
  at <- shown_columns(fit, c(first, second))
  if (anyNA(at)) return(invisible())
  cut <- q$kind != "levels" && usual_bins(nrow(q$x)) == 2 && is.null(step_settings(fit, "pairs")$bins)
  put_figure(function() {
    count <- nlevels(q$class)
    code <- as.integer(q$class)
    values <- unname(q$x[, at])
    if (q$kind == "levels") values <- values + 0.07 * (((7 * row(values)) %% 11 - 5) / 5) # equal ones side by side
    graphics::plot(values, pch = report_shapes(count)[code], bg = class_palette(count)[code], col = "white", lwd = 0.4,
                   cex = 1.3, xlab = short_name(first, 26L), ylab = short_name(second, 26L))
    if (cut) graphics::abline(v = stats::median(values[, 1L]), h = stats::median(values[, 2L]), lty = 2, col = "grey")
    key_above(q$class, shapes = TRUE)
  }, "Scatter plot of the values of the pair in all samples, by class.",
  sprintf(paste("%s against %s, a point per sample.%s A pair that says more than its members has its classes in",
                "opposite corners, though they are mixed along either axis."), first, second,
          if (cut) " Dashed: the medians, at which values were cut for the search." else ""))
}
