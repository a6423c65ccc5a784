# The report on samples: how they lie to each other, what their components go with, which stand apart and why.

report_samples <- function(fit) {
  q <- fit$quality
  side_by_side(figure_distances(q), figure_values(q))
  if (!is.null(fit$components)) report_components(fit)
  if (!is.null(fit$outliers)) report_outliers(fit)
}

# ---- distances and values ----

# Root mean squared difference over scaled genes.
sample_distances <- function(x) {
  z <- scaled_columns(x)
  products <- tcrossprod(z)
  squares <- outer(diag(products), diag(products), "+") - 2 * products
  sqrt(pmax(squares, 0) / ncol(z))
}

figure_distances <- function(q, most = 300L) {
  n <- nrow(q$x)
  some <- if (n > most) round(seq(1, n, length.out = most)) else seq_len(n)
  d <- sample_distances(q$x[some, , drop = FALSE])
  by <- stats::hclust(stats::as.dist(d), "average")$order
  mean_distance <- rowSums(d) / (nrow(d) - 1)
  far <- order(-mean_distance)[1:2]
  strips <- c(if (!is.null(q$class)) "class", if (!is.null(q$batch)) "batch in greys")
  caption <- sprintf(paste("Distances between samples: the root mean square of their genes' differences, in standard",
                           "deviations of each gene. Dark is near; samples that are alike stand together.%s Named are",
                           "%s. Farthest from all others on average: %s (%.2f; the middle sample %.2f).%s"),
                     if (length(strips)) sprintf(" Strips: %s.", paste(strips, collapse = ", then ")) else "",
                     if (nrow(d) <= most_named) "all samples" else "the ten that are farthest from all others",
                     joined(rownames(d)[far]), mean_distance[far[1L]], stats::median(mean_distance),
                     if (n > most) sprintf(" %d of %s samples are shown.", most, format(n, big.mark = ",")) else "")
  put_figure(function() draw_distances(d[by, by], q$class[some][by], q$batch[some][by]),
             "Heat map of the distances between all samples, in the order of a hierarchical clustering.", caption,
             height = 4.6)
}

most_named <- 60L # samples that have room for their names beside the map

draw_distances <- function(d, class, batch) {
  n <- nrow(d)
  graphics::par(mar = c(0.6, 0.6, 2.2, 4.4))
  usual <- range(d[row(d) != col(d)])
  shade <- grDevices::hcl.colors(64L, "Blues 3")
  level <- if (diff(usual) > 0) (pmin(pmax(d, usual[1L]), usual[2L]) - usual[1L]) / diff(usual) else 0 * d
  graphics::plot(NA, xlim = c(-0.09 * n, n), ylim = c(n, 0), xaxs = "i", yaxs = "i", axes = FALSE, ann = FALSE, asp = 1)
  graphics::rasterImage(matrix(shade[round(63 * level) + 1L], n), 0, n, n, 0, interpolate = FALSE)
  strips <- Filter(Negate(is.null), list(class = class, batch = batch))
  for (k in seq_along(strips)) {
    right <- -0.01 * n - (k - 1) * 0.04 * n
    graphics::rect(right - 0.03 * n, seq_len(n) - 1, right, seq_len(n), border = NA, xpd = NA,
                   col = strip_colours(strips[k]))
  }
  named <- if (n <= most_named) seq_len(n) else sort(order(-rowSums(d))[1:10])
  row <- min(graphics::par("pin") / c(1.09, 1)) / n # in inches
  size <- min(0.7, 0.75 * row / graphics::strheight("X", "inches"))
  at <- if (n <= most_named) named else apart_by(named, 1.4 * graphics::strheight("X", "user", 0.6), n)
  graphics::text(1.01 * n, at - 0.5, short_name(rownames(d)[named], 14L), adj = c(0, 0.5), xpd = NA,
                 cex = if (n <= most_named) size else 0.6)
  key_above(class)
}

# Heights at least `gap` apart, as near as can be to those wanted, which are in increasing order.
apart_by <- function(wanted, gap, top) {
  gap <- abs(gap)
  at <- wanted
  for (k in seq_along(at)[-1L]) at[k] <- max(at[k], at[k - 1L] + gap)
  at <- pmin(at, top - gap * rev(seq_along(at) - 1))
  at
}

# Classes in colours, batches in greys.
strip_colours <- function(strip) {
  group <- strip[[1L]]
  (if (names(strip) == "batch") batch_colours(nlevels(group)) else report_colours(nlevels(group)))[as.integer(group)]
}

# Classes above a figure.
key_above <- function(class, shapes = FALSE) {
  if (is.null(class) || nlevels(class) > 8L) return(invisible())
  count <- nlevels(class)
  graphics::legend("bottomleft", inset = c(0, 1), xpd = NA, bty = "n", horiz = count <= 4L,
                   ncol = if (count > 4L) 4L else 1L,
                   legend = plain_text(levels(class)), pch = if (shapes) report_shapes(count) else 22L,
                   pt.bg = report_colours(count),
                   col = "grey30", pt.cex = 1.2, cex = 0.9)
}

figure_values <- function(q, most = 80L) {
  by <- if (is.null(q$class)) seq_len(nrow(q$x)) else order(q$class)
  some <- if (length(by) > most) by[round(seq(1, length(by), length.out = most))] else by
  middle <- apply(q$x, 1L, stats::median)
  odd <- order(-abs(middle - stats::median(middle)))[1L]
  colour <- if (is.null(q$class)) "#9fb8cd" else report_colours(nlevels(q$class))[as.integer(q$class)[some]]
  caption <- sprintf(paste("Values of all genes in each sample%s: boxes hold the middle half. Boxes should stand at",
                           "one height; the middle of %s is farthest from that of the others (by %s).%s"),
                     if (is.null(q$class)) "" else ", by class", rownames(q$x)[odd],
                     format(signif(abs(middle[odd] - stats::median(middle)), 2)),
                     if (q$imputed > 0) sprintf(" %s missing values were filled in.",
                                                format(q$imputed, big.mark = ",")) else "")
  put_figure(function() {
    graphics::boxplot(t(q$x[some, , drop = FALSE]), outline = FALSE, xaxt = "n", ylab = "value", border = "grey35",
                      lwd = 0.7, xlab = "", col = colour)
    graphics::title(xlab = if (length(by) > most) sprintf("%d of the samples", most) else "samples", line = 0.8)
    key_above(q$class)
  }, "Box plots of the values of every sample.", caption)
}

# ---- components ----

report_components <- function(fit) {
  q <- fit$quality
  pc <- fit$components
  cat("\n\n### Components {#components}\n\n")
  report_paragraph(components_text(fit))
  if (!is.null(pc$hidden)) report_paragraph("Likely a hidden batch:", hidden_text(q, pc$hidden))
  shown <- min(5L, ncol(pc$x))
  pairs <- list(c(1L, 2L), c(3L, 4L), c(1L, 5L))
  pairs <- Filter(function(two) max(two) <= shown, pairs)
  if (!length(pairs)) pairs <- list(c(1L, shown))
  side_by_side(for (two in pairs) figure_scores(pc$x, two, q, pc$share), figure_variance(pc),
               if (!is.null(q$before)) figure_scores(q$before, c(1L, min(2L, ncol(q$before))), q, NULL))
  known <- sample_variables(q)
  if (length(known)) {
    after <- variable_shares(pc$x[, seq_len(shown), drop = FALSE], known)
    before <- if (!is.null(q$before)) variable_shares(q$before, known)
    all <- rbind(if (!is.null(before)) cbind(data = "before", before),
                 if (is.null(before)) after else cbind(data = "after", after))
    put_table(all,
              paste0("What the first ", shown, " components go with: the share of each one's variance that a variable ",
                     "explains, with its p-value over all components and variables here (Bonferroni).",
                     if (!is.null(before)) " Before and after batch and covariates were taken out." else ""),
              "components", 20)
  }
  put_table(loading_table(pc),
            sprintf(paste("Genes with the largest loadings (weights) on %s: a component is high in samples where genes",
                          "with + are high and genes with - are low."), loadings_of(pc)),
            "loadings", 10)
}

components_text <- function(fit) {
  pc <- fit$components
  text <- sprintf("%s out from what chance gives.", several_stand(pc$leading, "component"))
  if (is.null(fit$quality$class)) return(text)
  share <- variable_shares(pc$x, fit$quality["class"], "share")
  sprintf("%s The classes differ most on PC%d: %s of its variance lies between them.", text, which.max(share),
          share_text(max(share)))
}

several_stand <- function(n, what) sprintf("%s stand%s", several(n, what), if (n == 1L) "s" else "")

figure_scores <- function(scores, two, q, share) {
  class <- q$class
  label <- paste0("PC", two, if (is.null(share)) "" else sprintf(" (%s of the variance)", share_text_each(share[two])))
  what <- if (is.null(share)) "Before batch and covariates were taken out: samples" else "Samples"
  caption <- sprintf(paste("%s on PC%d and PC%d. Each point is a sample; near points have like values in the genes of",
                           "these components.%s Named are the three farthest out."), what,
                     two[1L], two[2L], if (is.null(class)) "" else between_classes(scores, two, class))
  if (!is.null(q$batch)) caption <- paste(caption, sprintf("Points of the batch %s are filled with grey.",
                                                           levels(q$batch)[1L]))
  put_figure(function() {
    count <- if (is.null(class)) 1L else nlevels(class)
    code <- if (is.null(class)) rep(1L, nrow(scores)) else as.integer(class)
    line <- report_colours(count)[code]
    filled <- if (is.null(q$batch)) line else ifelse(as.integer(q$batch) == 1L, "grey85", line)
    graphics::plot(scores[, two[1L]], scores[, two[2L]], pch = report_shapes(count)[code], bg = filled, col = line,
                   lwd = 1.3,
                   cex = if (nrow(scores) > 500L) 0.6 else 1.1, xlab = label[1L], ylab = label[2L])
    name_extremes(scores[, two, drop = FALSE])
    key_above(class, shapes = TRUE)
  }, sprintf("Scatter plot of the samples on components %d and %d.", two[1L], two[2L]), caption)
}

# What a picture of two components shows of the classes.
between_classes <- function(scores, two, class) {
  share <- variable_shares(scores[, two, drop = FALSE], list(class = class), "share")
  sprintf(" Colour and shape are the class: %s of PC%d and %s of PC%d lie between the classes.",
          small_share(share[1L]), two[1L], small_share(share[2L]), two[2L])
}

# Names of the samples that lie farthest out.
name_extremes <- function(at, cex = 0.75) {
  write_names(at, plain_text(rownames(at)), extremes(at), 0.75 * graphics::strwidth("o"), cex, all = TRUE)
}

extremes <- function(at, count = 3L) {
  z <- apply(at, 2L, function(v) (v - stats::median(v)) / max(robust_sd(v), 1e-300))
  utils::head(order(-rowSums(z^2)), count)
}

share_text_each <- function(share) vapply(share, share_text, "")

figure_variance <- function(pc) {
  put_figure(function() {
    at <- graphics::barplot(100 * pc$share, names.arg = seq_along(pc$share), border = NA,
                            ylab = "share of the variance (%)", xlab = "component",
                            col = ifelse(seq_along(pc$share) <= pc$leading, "#0072B2", "grey80"))
    graphics::abline(v = at[pc$leading] + 0.6, lty = 2)
  }, "Bars of the components' shares of the variance.",
  sprintf(paste("Shares of the variance. The first %d, dark, stand out against data without dependence between genes;",
                "all %d together have %s."), pc$leading, length(pc$share), share_text(sum(pc$share))))
}

sample_variables <- function(q) {
  parts <- c(list(class = q$class, batch = q$batch), as.list(q$covariates))
  Filter(function(v) !is.null(v) && length(unique(v)) > 1L, parts)
}

# The share of each component's variance that a variable explains: as numbers, or as a table with p-values.
variable_shares <- function(scores, variables, form = "table") {
  n <- nrow(scores)
  one <- function(v, s) {
    design <- cbind(1, if (is.factor(v)) contrast_columns(v) else as.numeric(v))
    total <- sum((s - mean(s))^2)
    rest <- sum(stats::lm.fit(design, s)$residuals^2)
    df <- c(ncol(design) - 1L, n - ncol(design))
    share <- if (total > 0) max(0, 1 - rest / total) else 0
    p <- if (df[2L] < 1L || total <= 0) 1
         else if (rest <= 0) 0
         else stats::pf((total - rest) / df[1L] / (rest / df[2L]), df[1L], df[2L], lower.tail = FALSE)
    c(share, p)
  }
  found <- lapply(variables, function(v) apply(scores, 2L, function(s) one(v, s)))
  if (form == "share") return(found[[1L]][1L, ])
  tries <- length(variables) * ncol(scores)
  columns <- lapply(seq_len(ncol(scores)), function(k) vapply(found, function(f) {
    sprintf("%s (p %s)", small_share(f[1L, k]),
            probability_text(min(1, f[2L, k] * tries)))
  }, ""))
  data.frame(variable = names(variables), stats::setNames(columns, paste0("PC", seq_len(ncol(scores)))),
             row.names = NULL)
}

small_share <- function(share) if (share < 0.001) "< 0.1 %" else share_text(share)

# Which components the table of loadings is of.
loadings_of <- function(pc, most = 5L) {
  if (pc$leading <= most) return("the components that stand out")
  sprintf("the first %d of the %d components that stand out (fit$components$rotation has all)", most,
          pc$leading)
}

loading_table <- function(pc) {
  v <- pc$rotation
  do.call(rbind, lapply(seq_len(min(pc$leading, 5L)), function(j) {
    first <- utils::head(order(-abs(v[, j])), 8L)
    data.frame(component = colnames(v)[j], share = share_text(pc$share[j]),
               genes = paste(sprintf("%s (%+.2f)", rownames(v)[first], v[first, j]), collapse = ", "))
  }))
}

# ---- samples that stand apart ----

report_outliers <- function(fit) {
  o <- as.data.frame(fit$outliers)
  cat("\n\n### Samples that stand apart {#outliers}\n\n")
  report_paragraph(if (any(o$outlier)) {
    sprintf(paste("%s stand%s apart at a false discovery rate of %g. Look at how they were taken and measured before",
                  "leaving them out."),
            joined(o$sample[o$outlier]), if (sum(o$outlier) == 1L) "s" else "", attr(fit$outliers, "fdr"))
  } else {
    sprintf(paste("None of %d samples stands apart from the others at a false discovery rate of %g. The strangest is",
                  "%s: among as many samples chance alone gives one as strange."),
            nrow(o), attr(fit$outliers, "fdr"), strangest_text(fit, o))
  })
  figure_outliers(fit, o)
  put_table(outlier_table(fit, o), minor = c("score", "stands apart"),
            paste("Strangest samples first. The score is in standard deviations of a normal law; a spread is 1.48",
                  "times the median distance of all samples from their middle."), "samples",
            max(6L, min(20L, sum(o$outlier))))
}

outlier_table <- function(fit, o) {
  class <- fit$quality$class
  reason <- outlier_reasons(fit, o)
  out <- data.frame(sample = o$sample)
  if (!is.null(class)) out$class <- as.character(class[o$sample])
  cbind(out, score = o$score, q = o$q_value, `stands apart` = ifelse(o$outlier, "yes", "no"), `farthest out` = reason)
}

# "patient21 (q 0.26; PC4: 4.6 spreads below the middle)"
strangest_text <- function(fit, o) {
  reason <- outlier_reasons(fit, o[1L, ])
  sprintf("%s (q %s%s)", o$sample[1L], probability_text(o$q_value[1L]),
          if (nzchar(reason)) paste0("; ", reason) else "")
}

# On which component, or off all of them, each sample is farthest out.
outlier_reasons <- function(fit, o) {
  scores <- fit$components$x
  if (is.null(scores)) return(rep("", nrow(o)))
  k <- min(attr(fit$outliers, "components"), ncol(scores))
  spreads <- function(v) (v - stats::median(v)) / max(robust_sd(v), 1e-300)
  z <- apply(scores[, seq_len(k), drop = FALSE], 2L, spreads)[match(o$sample, rownames(scores)), , drop = FALSE]
  off <- if (anyNA(o$distance)) rep(0, nrow(o)) else spreads(o$distance)
  vapply(seq_len(nrow(o)), function(i) {
    best <- which.max(abs(z[i, ]))
    if (!length(best)) return("")
    if (off[i] > abs(z[i, best])) return(sprintf("what no component has: %.1f spreads more than usual", off[i]))
    sprintf("PC%d: %.1f spreads %s the middle", best, abs(z[i, best]), if (z[i, best] > 0) "above" else "below")
  }, "")
}

figure_outliers <- function(fit, o) {
  put_figure(function() {
    at <- match(o$sample, rownames(fit$quality$x))
    top <- max(o$score[is.finite(o$score)], 3)
    graphics::plot(at, pmin(o$score, top), pch = ifelse(o$outlier, 17L, 16L),
                   col = ifelse(o$outlier, "#D55E00", "#0072B2"), xlab = "sample",
                   ylab = "score", ylim = c(0, 1.08 * top))
    write_names(cbind(at, pmin(o$score, top)), plain_text(o$sample), seq_len(max(2L, min(10L, sum(o$outlier)))),
                0.75 * graphics::strwidth("o"), 0.75, all = TRUE)
  }, "Outlier score of every sample.",
  sprintf("How strange each sample is, in standard deviations of a normal law. %s Named: the strangest.",
          if (any(o$outlier)) sprintf("Triangles stand apart: %d of %d.", sum(o$outlier), nrow(o))
          else "None stands apart; those that did would be triangles."),
  width = 5.6, height = 3.2)
}
