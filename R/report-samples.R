# The report on samples: how close they are to each other, what their components go with, which stand apart and why.

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
  caption <- sprintf(paste("Distances between samples: the root mean square of their %ss' differences, in standard",
                           "deviations (SD) of each %s. Dark is near; samples that are alike stand together.%s",
                           "Farthest from all others on average: %s (%.2f and %.2f; the median sample %.2f).%s"),
                     column_word(q), column_word(q),
                     if (length(strips)) sprintf(" At the left: %s.", paste(rev(strips), collapse = ", then ")) else "",
                     joined(rownames(d)[far]), mean_distance[far[1L]], mean_distance[far[2L]],
                     stats::median(mean_distance),
                     if (n > most) sprintf(" %d of %s samples are shown.", most, thousands(n)) else "")
  put_figure(function() draw_distances(d[by, by], q$class[some][by], q$batch[some][by]),
             "Heat map of the distances between all samples, in the order of a hierarchical clustering.", caption,
             height = 4.9, narrow = c(phone_width, 3.6))
}

most_named <- 60L # samples that have room for their names beside a picture

draw_distances <- function(d, class, batch) {
  n <- nrow(d)
  phone <- on_phone()
  all_named <- n <= most_named && !phone
  graphics::par(mar = if (phone) c(3, 0.6, 1.6, 5) else c(3, 0.6, 2.2, 4.4))
  usual <- range(d[row(d) != col(d)])
  shade <- grDevices::hcl.colors(64L, "Grays")
  level <- if (diff(usual) > 0) (pmin(pmax(d, usual[1L]), usual[2L]) - usual[1L]) / diff(usual) else 0 * d
  graphics::plot(NA, xlim = c(-0.09 * n, n), ylim = c(n, 0), xaxs = "i", yaxs = "i", axes = FALSE, ann = FALSE, asp = 1)
  graphics::rasterImage(matrix(shade[round(63 * level) + 1L], n), 0, n, n, 0, interpolate = FALSE)
  strips <- Filter(Negate(is.null), list(class = class, batch = batch))
  for (k in seq_along(strips)) {
    right <- -0.01 * n - (k - 1) * 0.04 * n
    graphics::rect(right - 0.03 * n, seq_len(n) - 1, right, seq_len(n), border = NA, xpd = NA,
                   col = strip_colours(strips[k]))
  }
  named <- if (all_named) seq_len(n) else sort(order(-rowSums(d))[seq_len(min(10L, n))])
  row <- min(graphics::par("pin") / c(1.09, 1)) / n # in inches
  size <- if (all_named) min(0.7, 0.75 * row / graphics::strheight("X", "inches")) else 0.6
  at <- if (all_named) named else apart_by(named, 1.4 * graphics::strheight("X", "user", size), n)
  if (!all_named) graphics::segments(1.005 * n, named - 0.5, 1.045 * n, at - 0.5, xpd = NA, col = "grey50", lwd = 0.7)
  graphics::text(if (all_named) 1.01 * n else 1.05 * n, at - 0.5, short_name(rownames(d)[named], 14L), adj = c(0, 0.5),
                 xpd = NA, cex = size)
  key_above(class)
  scale_below(shade, c(0, n), n, sprintf("%.2f", usual[1L]), "distance (SD)", sprintf("%.2f", usual[2L]))
}

# What colours stand for, below a picture whose lower edge is at `low` (the axis points down) and as wide as `along`.
scale_below <- function(colours, along, low, least, middle, most) {
  line <- abs(graphics::strheight("M")) * 1.6
  at <- seq(along[1L], along[1L] + 0.45 * diff(along), length.out = length(colours) + 1L)
  top <- low + 0.6 * line
  graphics::rect(at[-length(at)], top, at[-1L], top + 0.6 * line, border = NA, xpd = NA, col = colours)
  graphics::text(range(at), top + 1.2 * line, c(least, most), xpd = NA, cex = 0.75)
  graphics::text(mean(range(at)), top + 1.2 * line, middle, xpd = NA, cex = 0.75)
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
  (if (names(strip) == "batch") batch_colours(nlevels(group)) else class_palette(nlevels(group)))[as.integer(group)]
}

# Classes above a figure.
key_above <- function(class, shapes = FALSE) {
  if (is.null(class) || nlevels(class) > 8L) return(invisible())
  count <- nlevels(class)
  graphics::legend("bottomleft", inset = c(0, 1), xpd = NA, bty = "n", horiz = count <= 4L,
                   ncol = if (count > 4L) 4L else 1L,
                   legend = plain_text(levels(class)), pch = if (shapes) report_shapes(count) else 22L,
                   pt.bg = class_palette(count),
                   col = "grey30", pt.cex = 1.2, cex = 0.9)
}

figure_values <- function(q, most = 80L) {
  by <- if (is.null(q$class)) seq_len(nrow(q$x)) else order(q$class)
  some <- if (length(by) > most) by[round(seq(1, length(by), length.out = most))] else by
  middle <- apply(q$x, 1L, stats::median)
  odd <- order(-abs(middle - stats::median(middle)))[1L]
  caption <- sprintf(paste("Values of all %ss in each sample%s: boxes hold the middle half, thick lines are medians.",
                           "Boxes should stand at one place; the median of %s is farthest from that of the others (by",
                           "%s).%s%s"),
                     column_word(q), if (is.null(q$class)) "" else ", by class", rownames(q$x)[odd],
                     format(signif(abs(middle[odd] - stats::median(middle)), 2)),
                     if (length(by) > most) sprintf(" %d of the samples are shown.", most) else "",
                     if (q$imputed > 0) sprintf(" %s missing values were filled in.",
                                                thousands(q$imputed)) else "")
  put_figure(function() draw_values(q$x[some, , drop = FALSE], q$class[some]),
             "Box plots of the values of every sample.", caption, height = 4.9,
             narrow = c(phone_width, 1.2 + 0.115 * min(length(some), most_named)))
}

# Horizontal boxes, so that samples' names can be read.
draw_values <- function(x, class) {
  n <- nrow(x)
  names <- if (n <= most_named) short_name(rownames(x), 14L)
  room <- graphics::par("din")[2L] - 1.1 # inches of all boxes
  size <- min(0.7, 6 * room / n)
  graphics::par(mar = c(3.2, 0.6, 2.2, 0.6), mai = c(0.64, 0.2 + if (n <= most_named) names_inches(names, size) else 0,
                                                     0.45, 0.1))
  colour <- if (is.null(class)) rep("#b8c2cc", n) else class_palette(nlevels(class))[as.integer(class)]
  graphics::plot(NA, xlim = range(apply(x, 1L, function(v) grDevices::boxplot.stats(v)$stats[c(1L, 5L)])),
                 ylim = c(n + 0.7, 0.3), yaxs = "i", yaxt = "n", xlab = "value", ylab = "")
  graphics::boxplot(t(x), outline = FALSE, horizontal = TRUE, add = TRUE, axes = FALSE, names = rep("", n), lwd = 0.7,
                    border = "grey30", col = paler(colour), medlwd = 2.4, medcol = "black", whisklty = 1, staplelty = 0)
  if (!is.null(names)) graphics::axis(2L, seq_len(n), names, tick = FALSE, line = -0.4, cex.axis = size)
  key_above(class)
}

paler <- function(colours, share = 0.55) {
  part <- grDevices::col2rgb(colours)
  grDevices::rgb(t(255 - (255 - part) * share), maxColorValue = 255)
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
  mark <- strangest_mark(fit)
  side_by_side(for (two in pairs) figure_scores(pc$x, two, q, pc$share, mark), figure_variance(pc),
               if (!is.null(q$before)) figure_scores(q$before, c(1L, min(2L, ncol(q$before))), q, NULL))
  known <- sample_variables(q)
  if (length(known)) {
    after <- variable_shares(pc$x[, seq_len(shown), drop = FALSE], known, ncol(pc$x))
    before <- if (!is.null(q$before)) variable_shares(q$before, known, ncol(pc$x))
    all <- rbind(if (!is.null(before)) cbind(data = "before", before),
                 if (is.null(before)) after else cbind(data = "after", after))
    put_table(all,
              paste0("What the first ", shown, " components go with: the share of each one's variance that a variable ",
                     "explains, with its p-value corrected for ", ncol(pc$x), " components (Bonferroni).",
                     if (!is.null(before)) " Before and after batch and covariates were taken out." else ""),
              "components", 20)
  }
  put_table(loading_table(pc, paste0(column_word(q), "s")),
            sprintf(paste("%ss with the largest loadings (weights in a component) on %s: a component is high in",
                          "samples where those with + are high and those with - are low. Thousands take part in each,",
                          "so that even the largest are small."), if (column_word(q) == "probe") "Probe" else "Gene",
                    loadings_of(pc)),
            "loadings", 10)
}

components_text <- function(fit) {
  pc <- fit$components
  stand <- standing_out(pc)
  text <- if (!is.null(stand)) sub("^no", "No", paste(several_stand(stand, "component"), "out from what chance gives."))
  if (is.null(fit$quality$class)) return(text %||% "")
  apart <- apart_on_components(pc, fit$quality)
  paste(c(text, sprintf("The classes differ most on PC%d: %s of its variance lies between them%s.", apart$best,
                        share_text(apart$share), if (apart$p > 0.05) ", no more than chance gives" else "")),
        collapse = " ")
}

# mark: the sample to be ringed, if any, as strangest_mark() has it.
figure_scores <- function(scores, two, q, share, mark = NULL) {
  class <- q$class
  label <- paste0("PC", two, if (is.null(share)) "" else sprintf(" (%s of the variance)", share_text_each(share[two])))
  what <- if (is.null(share)) "Before batch and covariates were taken out: samples" else "Samples"
  caption <- sprintf(paste("%s on PC%d and PC%d. Each point is a sample; points that are close have",
                           "similar values in the genes of these components.%s Named are the three farthest from the",
                           "middle by robust standard deviations%s.%s"), what,
                     two[1L], two[2L], if (is.null(class)) "" else between_classes(scores, two, class),
                     if (is.null(mark)) "" else " and the strangest sample", if (is.null(mark)) "" else mark$caption)
  if (!is.null(q$batch)) {
    caption <- paste(caption, sprintf("Points of the batch \"%s\" are filled with grey.", levels(q$batch)[1L]))
  }
  put_figure(function() {
    count <- if (is.null(class)) 1L else nlevels(class)
    code <- if (is.null(class)) rep(1L, nrow(scores)) else as.integer(class)
    line <- class_palette(count)[code]
    filled <- if (is.null(q$batch)) line else ifelse(as.integer(q$batch) == 1L, "grey85", line)
    graphics::plot(scores[, two[1L]], scores[, two[2L]], pch = report_shapes(count)[code], bg = filled, col = line,
                   lwd = 1.3,
                   cex = if (nrow(scores) > 500L) 0.6 else 1.1, xlab = label[1L], ylab = label[2L])
    name_extremes(scores[, two, drop = FALSE], mark = mark)
    if (!is.null(mark)) graphics::points(scores[mark$sample, two, drop = FALSE], pch = 1L, cex = 2.2, lwd = 1.4)
    key_above(class, shapes = TRUE)
  }, sprintf("Scatter plot of the samples on components %d and %d.", two[1L], two[2L]), caption)
}

# What a picture of two components shows of the classes.
between_classes <- function(scores, two, class) {
  share <- apply(scores[, two, drop = FALSE], 2L, share_explained, class)["share", ]
  sprintf(" Colour and shape are the class: %s of PC%d and %s of PC%d lie between the classes.",
          small_share(share[1L]), two[1L], small_share(share[2L]), two[2L])
}

# Names of the samples that lie farthest out; that of the marked one first.
name_extremes <- function(at, cex = 0.75, mark = NULL) {
  names <- plain_text(rownames(at))
  chosen <- extremes(at)
  if (!is.null(mark)) {
    chosen <- union(match(mark$sample, rownames(at)), chosen)
  }
  write_names(at, names, chosen, (if (is.null(mark)) 0.75 else 1.1) * graphics::strwidth("o"), cex, all = TRUE)
}

extremes <- function(at, count = 3L) {
  z <- apply(at, 2L, function(v) (v - stats::median(v)) / max(robust_sd(v), 1e-300))
  utils::head(order(-rowSums(z^2)), count)
}

share_text_each <- function(share) vapply(share, share_text, "")

figure_variance <- function(pc) {
  stand <- standing_out(pc) %||% 0
  put_figure(function() {
    at <- graphics::barplot(100 * pc$share, names.arg = seq_along(pc$share), border = NA,
                            ylab = "share of the variance (%)", xlab = "component",
                            col = ifelse(seq_along(pc$share) <= stand, report_ink, "grey80"))
    if (stand) graphics::abline(v = at[stand] + 0.6, lty = 2)
  }, "Bars of the components' shares of the variance.",
  sprintf("Shares of the variance.%s All %d together have %s.",
          if (is.null(standing_out(pc))) ""
          else if (stand == 0) " None stands out against data without dependence between genes."
          else sprintf(" The first%s, dark, %s out against data without dependence between genes.",
                       if (stand == 1) "" else paste0(" ", stand), if (stand == 1) "stands" else "stand"),
          length(pc$share), share_text(sum(pc$share))))
}

sample_variables <- function(q) {
  parts <- c(list(class = q$class, batch = q$batch), as.list(q$covariates))
  Filter(function(v) !is.null(v) && length(unique(v)) > 1L, parts)
}

# A table of these, with p-values corrected for as many components as were looked at, shown or not.
variable_shares <- function(scores, variables, tries) {
  found <- lapply(variables, function(v) apply(scores, 2L, share_explained, v))
  columns <- lapply(seq_len(ncol(scores)), function(k) vapply(found, function(f) {
    sprintf("%s (p %s)", small_share(f["share", k]), probability_text(min(1, f["p", k] * tries)))
  }, ""))
  data.frame(variable = names(variables), stats::setNames(columns, paste0("PC", seq_len(ncol(scores)))),
             row.names = NULL)
}

small_share <- function(share) if (share < 0.001) "< 0.1 %" else share_text(share)

# Which components the table of loadings is of.
loadings_of <- function(pc) {
  stand <- standing_out(pc)
  shown <- loadings_shown(pc)
  first <- if (shown == 1L) "the first component" else sprintf("the first %d components", shown)
  if (is.null(stand)) return(first)
  if (stand == shown) return(if (stand == 1L) "the component that stands out" else "the components that stand out")
  if (stand < shown) return(sprintf("%s, of which %s out", first, several_stand(stand)))
  sprintf("the first %d of the %d components that stand out (fit$components$rotation has all)", shown, stand)
}

loadings_shown <- function(pc) min(pc$leading %||% 2L, ncol(pc$x), 5L)

loading_table <- function(pc, word) {
  v <- pc$rotation
  do.call(rbind, lapply(seq_len(loadings_shown(pc)), function(j) {
    first <- utils::head(order(-abs(v[, j])), 8L)
    stats::setNames(data.frame(colnames(v)[j], share_text(pc$share[j]),
                               paste(sprintf("%s (%+.2f)", rownames(v)[first], v[first, j]), collapse = ", ")),
                    c("component", "share", word))
  }))
}

# ---- samples that stand apart ----

report_outliers <- function(fit) {
  o <- as.data.frame(fit$outliers)
  fdr <- attr(fit$outliers, "fdr")
  cat("\n\n### Samples that stand apart {#outliers}\n\n")
  report_paragraph(if (any(o$outlier)) {
    sprintf(paste("%s stand%s apart at a false discovery rate of %g. Look at how they were taken and measured before",
                  "leaving them out."),
            joined(o$sample[o$outlier]), if (sum(o$outlier) == 1L) "s" else "", fdr)
  } else {
    sprintf("None of %d samples stands apart from the others at a false discovery rate of %g. The strangest is %s.",
            nrow(o), fdr, strangest_text(fit, o))
  }, tested_text(fit, o))
  figure_outliers(fit, o)
  put_table(outlier_table(fit, o), minor = c("score", "stands apart"),
            paste("Strangest samples first. Score: see the figure. q: the smallest false discovery rate at which the",
                  "sample would be said to stand apart. SD: robust standard deviations of all samples, 1.48 times the",
                  "median distance from their median. Off all components: the sample's distance from what",
                  "the components of the other samples describe."), "samples",
            max(6L, min(20L, sum(o$outlier))))
}

# Why a point that catches the eye need not be beyond chance.
tested_text <- function(fit, o) {
  k <- attr(fit$outliers, "components")
  text <- sprintf(paste("What is tested: a sample's place among the first %s at once (five at most), and its distance",
                        "from what all components of the other samples describe, which is large where many genes do",
                        "what they do in no other sample. Some samples are noisier than others in any data, so that",
                        "even several SD may be chance."), several(k, "component"))
  if (any(o$outlier)) return(text)
  second <- outlier_reasons(fit, o[min(2L, nrow(o)), ])
  paste(text, sprintf("Of %s in %s one is always the farthest%s.", several(nrow(o), "sample"),
                      several(k, "component"),
                      if (nzchar(second)) sprintf(" (after %s: %s, %s)", o$sample[1L], o$sample[2L], second) else ""),
        sprintf(paste("The test is cautious and misses some that do stand apart: look at how %s was taken and measured",
                      "all the same."), o$sample[1L]))
}

outlier_table <- function(fit, o) {
  class <- fit$quality$class
  reason <- outlier_reasons(fit, o)
  out <- data.frame(sample = o$sample)
  if (!is.null(class)) out$class <- as.character(class[o$sample])
  cbind(out, score = o$score, q = o$q_value, `stands apart` = ifelse(o$outlier, "yes", "no"), `farthest out` = reason)
}

# "patient21 (PC4: 4.6 SD below the median; p 0.0088, q 0.34): chance alone gives one that strange in 29 % of ..."
strangest_text <- function(fit, o) {
  reason <- c(outlier_reasons(fit, o[1L, ]), besides(fit, o[1L, ]))
  named <- sprintf("%s (%sq %s)", o$sample[1L], if (nzchar(reason[1L])) paste0(joined(reason), "; ") else "",
                   probability_text(o$q_value[1L]))
  if (o$outlier[1L]) return(named)
  sprintf("%s: chance alone gives one that strange in %s of sets of %d samples", named,
          share_text(strangest_chance(o$p_value[1L], nrow(o))), nrow(o))
}

# Where a sample that is off all components is far out on one as well.
besides <- function(fit, o, least = 3) {
  if (is.null(fit$components$x)) return(NULL)
  place <- outlier_places(fit, o)
  z <- place$on[1L, ]
  best <- which.max(abs(z))
  if (length(best) && place$off[1L] > abs(z[best]) && abs(z[best]) >= least) on_component(best, z[best])
}

on_component <- function(k, z) sprintf("PC%d: %.1f SD %s the median", k, abs(z), if (z > 0) "above" else "below")

# How often the least of n p-values is at most p by chance.
strangest_chance <- function(p, n) -expm1(n * log1p(-pmin(p, 1)))

# The strangest sample, its component, and what pictures of samples say of it; NULL without a test.
strangest_mark <- function(fit) {
  if (is.null(fit$outliers)) return(NULL)
  o <- as.data.frame(fit$outliers)[1L, ]
  at <- farthest_component(fit, o)
  list(sample = o$sample, component = if (is.na(at)) 0L else at,
       caption = sprintf(" Ringed is the strangest sample, %s, which %s (q %s).", o$sample,
                         if (o$outlier) "stands apart" else "is not beyond chance", probability_text(o$q_value)))
}

# Robust standard deviations from the median on the components that are tested, and off all of them.
outlier_places <- function(fit, o) {
  scores <- fit$components$x
  spreads <- function(v) (v - stats::median(v)) / max(robust_sd(v), 1e-300)
  k <- min(attr(fit$outliers, "components"), ncol(scores))
  z <- apply(scores[, seq_len(k), drop = FALSE], 2L, spreads)
  off <- as.data.frame(fit$outliers)
  at <- match(o$sample, off$sample)
  list(on = z[match(o$sample, rownames(scores)), , drop = FALSE],
       off = if (anyNA(off$distance)) rep(0, nrow(o)) else spreads(off$distance)[at],
       times = off$distance[at] / stats::median(off$distance))
}

# The component on which one sample is farthest out; NA where it is farther off all of them.
farthest_component <- function(fit, o) {
  if (is.null(fit$components$x)) return(NA_integer_)
  place <- outlier_places(fit, o)
  best <- which.max(abs(place$on[1L, ]))
  if (!length(best) || place$off > abs(place$on[1L, best])) NA_integer_ else unname(best)
}

# On which component, or off all of them, each sample is farthest out.
outlier_reasons <- function(fit, o) {
  if (is.null(fit$components$x)) return(rep("", nrow(o)))
  place <- outlier_places(fit, o)
  vapply(seq_len(nrow(o)), function(i) {
    z <- place$on[i, ]
    best <- which.max(abs(z))
    if (!length(best)) return("")
    if (place$off[i] > abs(z[best])) {
      return(sprintf("off all components: %.1f times as far as the median sample, %.1f SD", place$times[i],
                     place$off[i]))
    }
    on_component(best, z[best])
  }, "")
}

figure_outliers <- function(fit, o) {
  class <- fit$quality$class
  fdr <- attr(fit$outliers, "fdr")
  bar <- stats::qnorm(fdr / nrow(o) / 2, lower.tail = FALSE) # what the strangest needs, standing apart alone
  put_figure(function() {
    at <- match(o$sample, rownames(fit$quality$x))
    top <- max(o$score[is.finite(o$score)], bar)
    score <- pmin(o$score, top)
    count <- if (is.null(class)) 1L else nlevels(class)
    code <- if (is.null(class)) rep(1L, nrow(o)) else as.integer(class)[at]
    graphics::par(mar = c(2, 3.6, 2.2, 0.6))
    graphics::plot(at, score, pch = report_shapes(count)[code],
                   bg = if (is.null(class)) report_ink else class_palette(count)[code], col = "white", lwd = 0.4,
                   cex = 1.2, xlab = "", ylab = "score", ylim = c(0, 1.1 * top), xaxt = "n")
    graphics::title(xlab = "samples in the order of the data", line = 0.8)
    graphics::abline(h = bar, lty = 2)
    graphics::text(graphics::par("usr")[1L], bar, " beyond chance above this line", adj = c(0, -0.4), cex = 0.75)
    odd <- which(o$outlier)
    graphics::points(at[odd], score[odd], pch = 1L, cex = 2.4, lwd = 1.5)
    names <- plain_text(o$sample)
    write_names(cbind(at, score), names, seq_len(max(2L, min(10L, length(odd)))), 0.9 * graphics::strwidth("o"), 0.75,
                all = TRUE)
    key_above(class, shapes = TRUE)
  }, "Outlier score of every sample, with the score that would be beyond chance.",
  sprintf(paste("How strange each sample is: its p-value as standard deviations of a normal distribution, so that",
                "about one sample in twenty exceeds 2 by chance; 0 is not strange at all. The dashed line is what a",
                "single sample must exceed to stand apart among %d. %s"), nrow(o),
          if (any(o$outlier)) sprintf("Rings: %d of %d stand apart.", sum(o$outlier), nrow(o))
          else sprintf("None does; %s, the strangest, is not beyond chance.", o$sample[1L])),
  width = 5.6, height = 3.4, narrow = c(phone_width, 2.7))
}
