# The report on samples: the distances between them, their components and the variables behind these, and the outliers.

samples_section <- function(fit) {
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
  caption <- sprintf(paste("Distances between %ssamples. Dark cells indicate small distances. %s are farthest from the",
                           "others."),
                     if (n > most) sprintf("%d of %s ", most, thousands(n)) else "", joined(rownames(d)[far]))
  strips <- c(if (!is.null(q$class)) "class", if (!is.null(q$batch)) "batch")
  more <- sprintf(paste("The distance is the root mean square difference over all %ss, in standard deviations (SD) of",
                        "each %s. The samples are ordered by hierarchical clustering.%s The mean distance to all other",
                        "samples is %s; the median of these mean distances over all samples is %.2f."),
                  column_word(q), column_word(q),
                  if (!length(strips)) ""
                  else sprintf(" The %s on the left %s the %s.", if (length(strips) == 1L) "strip" else "strips",
                               if (length(strips) == 1L) "shows" else "show",
                               paste(rev(strips), collapse = " and the ")),
                  paste(sprintf("%.2f for %s", mean_distance[far], rownames(d)[far]), collapse = " and "),
                  stats::median(mean_distance))
  put_figure(function() draw_distances(d[by, by], q$class[some][by], q$batch[some][by]),
             "Heat map of the distances between all samples, in the order of a hierarchical clustering.", caption,
             size = c(5.2, 4.9), narrow = c(phone_width, 3.6), more = more)
}

most_named <- 60L # samples that have room for their names beside a picture

draw_distances <- function(d, class, batch) {
  n <- nrow(d)
  phone <- on_phone()
  all_named <- n <= most_named && !phone
  names <- shown_names(rownames(d))
  beside <- max(0.5, names_inches(names, if (all_named) 0.7 else 0.6) + if (all_named) 0.12 else 0.3)
  graphics::par(mai = c(0.55, 0.1, key_inches(class, batch), min(beside, 0.4 * graphics::par("din")[1L])))
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
  graphics::text(if (all_named) 1.01 * n else 1.05 * n, at - 0.5, names[named], adj = c(0, 0.5), xpd = NA, cex = size)
  key_above(class, batch = batch)
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

# ---- what colours mean, above a figure ----

# The entries of a key: classes, then batches; in rows as wide as the figure. A data frame: `label`, `colour`, `shape`,
# `row`, and `left`, where the entry begins in inches. shapes: points have them, for batches where there are any.
key_entries <- function(class, batch = NULL, shapes = FALSE, size = key_size, wide = graphics::par("din")[1L] - 0.3) {
  of <- function(group, colours, shape) {
    if (is.null(group)) return(NULL)
    data.frame(label = plain_text(levels(group)), colour = colours(nlevels(group)), shape = shape)
  }
  entries <- rbind(of(class, class_palette, if (shapes && is.null(batch)) report_shapes(nlevels(class)) else 22L),
                   if (shapes) of(batch, function(count) rep("white", count), report_shapes(nlevels(batch)))
                   else of(batch, batch_colours, 22L))
  if (is.null(entries)) return(NULL)
  room <- vapply(entries$label, names_inches, 0, cex = size, USE.NAMES = FALSE) + 0.26
  entries$row <- 1L
  entries$left <- 0
  at <- 0
  row <- 1L
  for (k in seq_len(nrow(entries))) {
    new_group <- !is.null(class) && k == nlevels(class) + 1L # batches begin a row
    if (at > 0 && (new_group || at + room[k] > wide)) {
      row <- row + 1L
      at <- 0
    }
    entries$row[k] <- row
    entries$left[k] <- at
    at <- at + room[k]
  }
  entries
}

key_size <- 0.8
key_step <- 0.17 # inches from one row of a key to the next

# Inches that a key takes above a figure.
key_inches <- function(class, batch = NULL) {
  entries <- key_entries(class, batch)
  0.12 + if (is.null(entries)) 0 else key_step * max(entries$row)
}

# The key above what was drawn, as key_inches() left room for it.
key_above <- function(class, shapes = FALSE, batch = NULL) {
  entries <- key_entries(class, batch, shapes)
  if (is.null(entries)) return(invisible())
  left <- graphics::grconvertX(0.12 + entries$left, "inches", "user")
  top <- graphics::grconvertY(graphics::par("din")[2L] - 0.1 - key_step * (entries$row - 1L), "inches", "user")
  graphics::points(left, top, pch = entries$shape, bg = entries$colour, col = "grey30", cex = 1.1, xpd = NA)
  graphics::text(graphics::grconvertX(0.22 + entries$left, "inches", "user"), top, entries$label, adj = c(0, 0.5),
                 cex = key_size, xpd = NA)
}

figure_values <- function(q, most = 80L) {
  by <- if (is.null(q$class)) seq_len(nrow(q$x)) else order(q$class)
  some <- if (length(by) > most) by[round(seq(1, length(by), length.out = most))] else by
  middle <- apply(q$x, 1L, stats::median)
  odd <- order(-abs(middle - stats::median(middle)))[1L]
  caption <- sprintf("Values in %s%s. %s has the most extreme median.",
                     if (length(by) > most) sprintf("%d of the samples", most) else "each sample",
                     if (is.null(q$class)) "" else ", ordered by class", rownames(q$x)[odd])
  more <- sprintf(paste("Each box shows the interquartile range of the %ss, and the thick line is the median. The",
                        "medians should be similar. The median of %s differs from the typical median by %s.%s"),
                  column_word(q),
                  rownames(q$x)[odd], two_digits(abs(middle[odd] - stats::median(middle))),
                  if (q$imputed > 0) sprintf(" %s missing values were imputed.", thousands(q$imputed)) else "")
  put_figure(function() draw_values(q$x[some, , drop = FALSE], q$class[some]),
             "Box plots of the values of every sample.", caption, size = c(5.2, 4.9),
             narrow = c(phone_width, 1.2 + 0.115 * min(length(some), most_named)), more = more)
}

# Horizontal boxes, so that samples' names can be read.
draw_values <- function(x, class) {
  n <- nrow(x)
  names <- if (n <= most_named) shown_names(rownames(x))
  room <- graphics::par("din")[2L] - 1.1 # inches of all boxes
  size <- min(0.7, 6 * room / n)
  graphics::par(mai = c(0.64, 0.2 + if (n <= most_named) names_inches(names, size) else 0, key_inches(class), 0.1))
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
  if (!is.null(pc$hidden)) report_paragraph("There may be a hidden batch:", hidden_text(q, pc$hidden))
  shown <- min(5L, ncol(pc$x))
  pairs <- list(c(1L, 2L), c(3L, 4L), c(1L, 5L))
  pairs <- Filter(function(two) max(two) <= shown, pairs)
  if (!length(pairs)) pairs <- list(c(1L, shown))
  mark <- strangest_mark(fit)
  between <- if (!is.null(q$class)) apart_on_components(pc, q)$each
  if (!is_numbers(between, ncol(pc$x))) between <- NULL # of a result of another version
  side_by_side(for (two in pairs) figure_scores(pc$x, two, q, pc$share, mark, between), figure_variance(pc),
               if (!is.null(q$before)) figure_scores(q$before, c(1L, min(2L, ncol(q$before))), q, NULL))
  known <- sample_variables(q)
  if (length(known)) {
    # what the class explains of values from which batches were taken out is compared within batches, in the text
    of <- if (is.null(q$before)) known else known[names(known) != "class"]
    after <- variable_shares(pc$x[, seq_len(shown), drop = FALSE], of, ncol(pc$x))
    before <- if (!is.null(q$before)) variable_shares(q$before, known, ncol(pc$x))
    all <- rbind(if (!is.null(before)) cbind(data = "before", before),
                 if (is.null(before)) after else cbind(data = "after", after))
    put_table(all,
              sprintf("Proportion of the variance of the first %d components that each variable explains%s.", shown,
                      if (!is.null(before)) ", before and after batch and covariates were removed" else ""),
              "components", 20,
              more = sprintf(paste0("The p-values are from an analysis of variance and are adjusted for %d components ",
                                    "(Bonferroni).%s"), ncol(pc$x),
                             if (length(known) > 1L) paste0(" Each variable is tested with the batches and the other ",
                                                            "covariates in the model.") else ""))
  }
  put_table(loading_table(pc, paste0(column_word(q), "s")),
            sprintf("%ss with the largest loadings on %s.", if (column_word(q) == "probe") "Probe" else "Gene",
                    loadings_of(pc)),
            "loadings", 10,
            more = paste("A loading is the weight of a gene in a component. A sample has a high score if genes with",
                         "positive loadings are highly expressed and genes with negative loadings are weakly",
                         "expressed. Many genes contribute to each component, so even the largest loadings are small."))
}

components_text <- function(fit) {
  pc <- fit$components
  stand <- standing_out(pc)
  text <- if (!is.null(stand)) paste(several_are(stand, "component"), "significant.")
  if (is.null(fit$quality$class)) return(text %||% "")
  apart <- apart_on_components(pc, fit$quality)
  paste(c(text, sprintf("The classes differ most on PC%d: the class explains %s of its variance (p %s).", apart$best,
                        share_text(apart$share), p_text(apart$p))), collapse = " ")
}

# mark: the sample to be ringed, if any, as strangest_mark() has it; between: the share of each component's variance
# that lies between the classes.
figure_scores <- function(scores, two, q, share, mark = NULL, between = NULL) {
  class <- q$class
  label <- paste0("PC", two, if (is.null(share)) "" else sprintf(" (%s of the variance)", share_text_each(share[two])))
  caption <- sprintf("Samples on PC%d and PC%d%s.%s", two[1L], two[2L],
                     if (is.null(share)) " before batch and covariates were removed" else "",
                     if (is.null(between)) ""
                     else sprintf(" The class explains %s and %s of their variance%s.",
                                  small_share(between[two[1L]]), small_share(between[two[2L]]),
                                  if (is.null(q$before)) "" else " within batches"))
  more <- sprintf(paste("Each point is a sample. Samples that are close together have similar values of the genes that",
                        "contribute to these components.%s The three samples farthest from the centre are labelled.%s"),
                  if (is.null(q$batch)) "" else if (is.null(class)) " The shape shows the batch."
                  else " The colour shows the class, and the shape shows the batch.",
                  if (is.null(mark)) "" else mark$caption)
  put_figure(function() {
    shape_of <- q$batch %||% class
    shape <- if (is.null(shape_of)) 21L else report_shapes(nlevels(shape_of))[as.integer(shape_of)]
    colour <- if (is.null(class)) report_ink else class_palette(nlevels(class))[as.integer(class)]
    graphics::par(mai = replace(graphics::par("mai"), 3L, key_inches(class, q$batch)))
    at <- scores[, two, drop = FALSE]
    graphics::plot(at, pch = shape, bg = colour, col = "white", lwd = 0.5, cex = if (nrow(scores) > 500L) 0.6 else 1.2,
                   xlim = grDevices::extendrange(at[, 1L], f = 0.14), xlab = label[1L], ylab = label[2L])
    name_extremes(at, mark = mark)
    if (!is.null(mark)) graphics::points(scores[mark$sample, two, drop = FALSE], pch = 1L, cex = 2.2, lwd = 1.4)
    key_above(class, shapes = TRUE, batch = q$batch)
  }, sprintf("Scatter plot of the samples on components %d and %d.", two[1L], two[2L]), caption, more = more)
}

# Names of the samples that lie farthest out; that of the marked one first.
name_extremes <- function(at, cex = 0.75, mark = NULL) {
  names <- plain_text(rownames(at))
  chosen <- extremes(at)
  if (!is.null(mark)) {
    chosen <- union(match(mark$sample, rownames(at)), chosen)
  }
  write_names(at, names, chosen, (if (is.null(mark)) 0.75 else 1.1) * graphics::strwidth("o"), cex)
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
                            ylab = "variance explained (%)", xlab = "component",
                            col = ifelse(seq_along(pc$share) <= stand, report_ink, "grey80"))
    if (stand) graphics::abline(v = at[stand] + 0.6, lty = 2)
  }, "Bar plot of the variance that each component explains.",
  sprintf("Proportion of the variance that each component explains.%s", if (is.null(standing_out(pc))) ""
          else if (stand == 0) " No component is significant."
          else if (stand == 1) " The dark bar is the significant component."
          else sprintf(" Dark bars are the %d significant components.", stand)),
  more = sprintf("%sAll %d components together explain %s of the variance.",
                 if (is.null(standing_out(pc))) ""
                 else paste0("A component is significant if it explains more variance than expected if the genes were",
                             " independent. "), length(pc$share), share_text(sum(pc$share))))
}

sample_variables <- function(q) {
  parts <- c(list(class = q$class, batch = q$batch), as.list(q$covariates))
  Filter(function(v) !is.null(v) && length(unique(v)) > 1L, parts)
}

# A table of these, with p-values corrected for as many components as were looked at, shown or not. Each variable is
# tested with batches and covariates in the model.
variable_shares <- function(scores, variables, tries) {
  found <- lapply(names(variables), function(name) {
    apply(scores, 2L, share_explained, variables[[name]], variables[setdiff(names(variables), c("class", name))])
  })
  columns <- lapply(seq_len(ncol(scores)), function(k) vapply(found, function(f) {
    sprintf("%s (p %s)", small_share(f["share", k]), p_text(min(1, f["p", k] * tries)))
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
  if (stand == shown) return(if (stand == 1L) "the significant component" else "the significant components")
  if (stand < shown) {
    return(sprintf("%s, of which %s significant", first,
                   if (stand == 0) "none is" else if (stand == 1L) "one is" else paste(stand, "are")))
  }
  sprintf("the first %d of %d significant components (all loadings are in fit$components$rotation)", shown, stand)
}

loadings_shown <- function(pc) min(pc$leading %||% 2L, ncol(pc$x), 5L)

loading_table <- function(pc, word) {
  v <- pc$rotation
  do.call(rbind, lapply(seq_len(loadings_shown(pc)), function(j) {
    first <- utils::head(order(-abs(v[, j])), 8L)
    stats::setNames(data.frame(colnames(v)[j], share_text(pc$share[j]),
                               paste(sprintf("%s (%+.2f)", rownames(v)[first], v[first, j]), collapse = ", ")),
                    c("component", "variance", word))
  }))
}

# ---- outliers ----

report_outliers <- function(fit) {
  o <- as.data.frame(fit$outliers)
  fdr <- attr(fit$outliers, "fdr")
  cat("\n\n### Outliers {#outliers}\n\n")
  report_paragraph(if (any(o$outlier)) {
    sprintf(paste("%s %s at a false discovery rate of %g. Find out how such samples were collected and measured before",
                  "you exclude them."), joined(o$sample[o$outlier]),
            if (sum(o$outlier) == 1L) "is an outlier" else "are outliers", fdr)
  } else {
    sprintf("None of the %s samples is an outlier at a false discovery rate of %g. The most extreme sample is %s.",
            thousands(nrow(o)), fdr, strangest_text(fit, o))
  })
  figure_outliers(fit, o)
  put_table(outlier_table(fit, o), minor = c("score", "outlier"),
            "Outlier scores of the samples, most extreme first.", "samples",
            max(6L, min(20L, sum(o$outlier))),
            more = paste(tested_text(fit, o),
                         "The column q is the smallest false discovery rate at which the sample is called an outlier.",
                         "SD is a robust standard deviation over all samples (1.48 times the median absolute",
                         "deviation)."))
}

# Explains the test, and why a point that catches the eye need not be significant.
tested_text <- function(fit, o) {
  k <- attr(fit$outliers, "components")
  paste(sprintf(paste("The test uses the scores of a sample on the first %s and its residual distance. The residual",
                      "distance is the distance from the subspace that the components of the other samples span. It",
                      "is large if many genes behave differently in this sample than in all others. Samples differ in",
                      "their noise, so even a deviation of several SD may occur by chance."),
                several(k, "component")),
        if (!any(o$outlier)) "The test is conservative and misses some outliers.")
}

outlier_table <- function(fit, o) {
  class <- fit$quality$class
  reason <- outlier_reasons(fit, o)
  out <- data.frame(sample = o$sample)
  if (!is.null(class)) out$class <- as.character(class[o$sample])
  cbind(out, score = o$score, q = o$q_value, outlier = ifelse(o$outlier, "yes", "no"),
        `largest deviation` = reason)
}

# "patient21 (4.6 SD below the median on PC4; q 0.34). By chance, 29 % of data sets of 38 samples contain ..."
strangest_text <- function(fit, o) {
  reason <- c(outlier_reasons(fit, o[1L, ]), besides(fit, o[1L, ]))
  named <- sprintf("%s (%sq %s)", o$sample[1L], if (nzchar(reason[1L])) paste0(joined(reason), "; ") else "",
                   p_text(o$q_value[1L]))
  if (o$outlier[1L]) return(named)
  sprintf("%s. By chance, %s of data sets of %d samples contain a sample that is at least as extreme", named,
          share_text(strangest_chance(o$p_value[1L], nrow(o))), nrow(o))
}

# If a sample with a large residual distance is far out on one component as well.
besides <- function(fit, o, least = 3) {
  if (is.null(fit$components$x)) return(NULL)
  place <- outlier_places(fit, o)
  z <- place$on[1L, ]
  best <- which.max(abs(z))
  if (length(best) && place$off[1L] > abs(z[best]) && abs(z[best]) >= least) on_component(best, z[best])
}

on_component <- function(k, z) sprintf("%.1f SD %s the median on PC%d", abs(z), if (z > 0) "above" else "below", k)

# How often the least of n p-values is at most p by chance.
strangest_chance <- function(p, n) -expm1(n * log1p(-pmin(p, 1)))

# The most extreme sample, its component, and a sentence for figures of samples; NULL without a test.
strangest_mark <- function(fit) {
  if (is.null(fit$outliers)) return(NULL)
  o <- as.data.frame(fit$outliers)[1L, ]
  at <- farthest_component(fit, o)
  list(sample = o$sample, component = if (is.na(at)) 0L else at,
       caption = sprintf(" A ring marks the most extreme sample, %s, which %s (q %s).", o$sample,
                         if (o$outlier) "is an outlier" else "is not an outlier", p_text(o$q_value)))
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
      return(sprintf("residual distance %.1f times the median, %.1f SD above it", place$times[i], place$off[i]))
    }
    on_component(best, z[best])
  }, "")
}

figure_outliers <- function(fit, o) {
  class <- fit$quality$class
  fdr <- attr(fit$outliers, "fdr")
  bar <- stats::qnorm(fdr / nrow(o) / 2, lower.tail = FALSE) # the threshold for a single outlier
  put_figure(function() {
    at <- match(o$sample, rownames(fit$quality$x))
    top <- max(o$score[is.finite(o$score)], bar)
    score <- pmin(o$score, top)
    count <- if (is.null(class)) 1L else nlevels(class)
    code <- if (is.null(class)) rep(1L, nrow(o)) else as.integer(class)[at]
    graphics::par(mai = c(0.4, 0.72, key_inches(class), 0.12))
    graphics::plot(at, score, pch = report_shapes(count)[code],
                   bg = if (is.null(class)) report_ink else class_palette(count)[code], col = "white", lwd = 0.4,
                   cex = 1.2, xlab = "", ylab = "score", ylim = c(0, 1.1 * top), xaxt = "n")
    graphics::title(xlab = "samples, in the order of the data", line = 0.8)
    graphics::abline(h = bar, lty = 2)
    graphics::text(graphics::par("usr")[1L], bar, " threshold for a single outlier", adj = c(0, -0.4), cex = 0.75)
    odd <- which(o$outlier)
    graphics::points(at[odd], score[odd], pch = 1L, cex = 2.4, lwd = 1.5)
    names <- plain_text(o$sample)
    write_names(cbind(at, score), names, seq_len(max(2L, min(10L, length(odd)))), 0.9 * graphics::strwidth("o"), 0.75,
                all = any(o$outlier))
    key_above(class, shapes = TRUE)
  }, "Outlier score of every sample, with the threshold for an outlier.",
  sprintf("Outlier score of each sample. %s.", if (any(o$outlier)) {
    sprintf(if (sum(o$outlier) == 1L) "The ring marks the outlier" else "Rings mark the %d outliers", sum(o$outlier))
  } else sprintf("No sample is an outlier; %s has the highest score", o$sample[1L])),
  more = sprintf(paste("The score is the p-value, converted to a quantile of the normal distribution. About one",
                       "sample in twenty has a score above 2 by chance. The dashed line is the threshold for a single",
                       "outlier among %s."), several(nrow(o), "sample")),
  size = c(5.6, 3.4), narrow = c(phone_width, 2.7))
}
