# What pictures show: a function per picture returns its data and its labels, from which plot() draws with base graphics
# and autoplot() with ggplot2. arg: what the caller calls the object.

weft_colours <- c(blue = "#2c5f8a", pale = "#8fb3d1", orange = "#b3541e", dark = "#1f3b57")

check_top <- function(top) check_number(top, "top", min = 1, whole = TRUE)

check_dimensions <- function(x, most, arg, what) {
  if (x$d <= most) return()
  abort_input(sprintf("`%s` must be %s to be drawn.", arg, what), x = sprintf("It has %d.", x$d))
}

# The first rows of a result.
best_rows <- function(x, top, arg, what) {
  shown <- utils::head(as.data.frame(x), top)
  if (!nrow(shown)) abort_input(sprintf("`%s` must have at least one %s to plot.", arg, what))
  shown
}

information_label <- function(x) sprintf("mutual information (%s)", attr(x, "unit"))

ranking_picture <- function(x, top, arg) {
  check_ranking(x, arg)
  shown <- best_rows(x, check_top(top), arg, "feature")
  more <- sum(x$mi[-seq_len(nrow(shown))] == shown$mi[nrow(shown)])
  list(data = shown, ties = runs_of_equals(shown$mi), xlab = information_label(x),
       title = sprintf("Best %d of %d features%s", nrow(shown), nrow(x),
                       if (more) sprintf(", %d more tied", more) else ""))
}

# First, last and value of every run of equal values.
runs_of_equals <- function(values) {
  runs <- rle(values)
  last <- cumsum(runs$lengths)
  data.frame(first = last - runs$lengths + 1L, last = last, value = runs$values)[runs$lengths > 1L, ]
}

# ---- bars ----

# The lines that names take beside bars.
bar_margins <- function(labels) c(4, 1.2 + 0.58 * max(nchar(labels, "width"), 1L), 3, 1) + 0.1

# Bars from left to right with every name, as large as it fits; settings are those of barplot(), which `...` overrides.
draw_bars <- function(settings, ...) {
  settings <- utils::modifyList(c(settings, list(horiz = TRUE, las = 1)), list(...))
  labels <- settings$names.arg
  settings$names.arg <- rep("", length(settings$height))
  at <- do.call(graphics::barplot, settings)
  room <- if (length(at) > 1L) min(diff(sort(at))) / (1.15 * graphics::strheight("Mg", cex = 1)) else 1
  graphics::axis(2L, at, labels, tick = FALSE, las = 1, line = -0.6, gap.axis = -1, cex.axis = max(0.4, min(1, room)))
  at
}

# Brackets right of tied bars; bars stand in reverse order.
draw_ties <- function(ties, at, count, widest) {
  if (!nrow(ties)) return(invisible())
  x <- ties$value + 0.02 * widest
  low <- at[count + 1L - ties$last]
  high <- at[count + 1L - ties$first]
  graphics::segments(x, low, x, high, col = "grey40")
  tick <- 0.008 * widest
  graphics::segments(c(x, x), c(low, high), c(x, x) - tick, c(low, high), col = "grey40")
}

tuples_picture <- function(x, top, arg) {
  check_tuples(x, arg)
  shown <- best_rows(x, check_top(top), arg, "tuple")
  label <- do.call(paste, c(shown[paste0("feature", seq_len(tuple_order(x)))], sep = " \u00d7 "))
  list(data = data.frame(label = label, mi = shown$mi, without = shown$mi - shown$interaction),
       xlab = information_label(x), title = sprintf("Best %d %s", nrow(shown), tuple_word(tuple_order(x))))
}

selection_picture <- function(x, top, arg) {
  check_result(x, arg, "method", "feature", "score")
  shown <- best_rows(list2DF(list(feature = x$feature, score = x$score), nrow(x)), top, arg, "feature")
  list(data = shown, xlab = "score",
       title = sprintf("%d features in order of selection (%s)", nrow(shown), attr(x, "method")))
}

roc_picture <- function(x, arg) {
  check_comparison(x, arg)
  if (is.null(x$roc)) {
    abort_input(sprintf("`%s` must contain a ROC curve to plot.", arg),
                i = "Use `bn_compare()` with posteriors, or with a list of networks.")
  }
  list(data = x$roc, curve = "threshold" %in% names(x$roc), xlab = "false positive rate", ylab = "true positive rate",
       title = "Directed edges")
}

# How many components a rule keeps, and what it goes by.
components_picture <- function(x, arg) {
  check_pca_k(x, arg)
  list(data = x$curve,
       ylab = switch(x$method, broken_stick = "proportion of variance", q2 = expression(Q^2), "singular value"),
       rule = switch(x$method, parallel = "of permuted columns", signs = "of data without components",
                     broken_stick = "broken stick", gavish_donoho = "threshold", q2 = "column means"),
       title = sprintf("%d component%s", as.integer(x$k), if (x$k == 1) "" else "s"))
}

# A density on a grid of n points along each of its one or two dimensions; at most 2,000 of its points.
density_picture <- function(x, n, arg) {
  check_parts(x, "kde()", kde_parts(x))
  check_dimensions(x, 2L, arg, "a density of one or two dimensions")
  n <- check_number(n, "n", min = 2, max = if (x$d == 1L) 1e5 else 2000, whole = TRUE)
  axes <- lapply(seq_len(x$d), function(j) plot_range(x, j, n))
  list(axes = axes, density = stats::predict(x, if (x$d == 1L) axes[[1L]] else as.matrix(expand.grid(axes))),
       points = x$data[unique(round(seq(1, nrow(x$data), length.out = min(nrow(x$data), 2000)))), , drop = FALSE],
       names = x$names %||% if (x$d == 1L) "x" else c("x1", "x2"))
}

regression_picture <- function(x, n, level, arg) {
  check_parts(x, "kernel_regression()", regression_parts(x))
  check_dimensions(x, 1L, arg, "a regression on one column")
  n <- check_number(n, "n", min = 2, max = 1e5, whole = TRUE)
  at <- seq(min(x$data), max(x$data), length.out = n)
  band <- stats::predict(x, at, interval = "confidence", level = level)
  list(points = data.frame(x = x$data[, 1L], y = x$response),
       curve = data.frame(x = at, y = band[, 1L], lower = band[, 2L], upper = band[, 3L]), xlab = x$names %||% "x",
       ylab = "y")
}

gp_picture <- function(object, n, arg) {
  check_parts(object, "gp_regression()", gp_parts(object))
  check_dimensions(object, 1L, arg, "a process on one variable")
  n <- check_number(n, "n", min = 2, max = 1e5, whole = TRUE)
  points <- data.frame(x = object$data[, 1L], y = object$y)
  at <- seq(min(points$x), max(points$x), length.out = n)
  found <- stats::predict(object, matrix(at), se = TRUE)
  curve <- data.frame(x = at, y = found$fit, lower = found$fit - 1.96 * found$se, upper = found$fit + 1.96 * found$se)
  list(points = points, curve = curve, xlab = object$names %||% "x", ylab = "y")
}

# The first two components, or one beside the points' numbers.
kernel_pca_picture <- function(object) {
  check_parts(object, "kernel_pca()", pca_parts(object))
  scores <- object$scores
  if (ncol(scores) < 2L) {
    return(list(data = data.frame(x = seq_len(nrow(scores)), y = scores[, 1L]), xlab = "point",
                ylab = "first component"))
  }
  list(data = data.frame(x = scores[, 1L], y = scores[, 2L]), xlab = "first component", ylab = "second component")
}

# Edges of a directed network to draw: as many as asked for, or those at the false discovery rate, of more than 150 the
# strongest 100, or where none was tested as many as features.
directed_picture <- function(x, edges, fdr) {
  if (!is.null(attr(x, "edges"))) check_regulation(x)
  tested <- !is.null(attr(x, "edges")$q_value) && is.null(edges)
  table <- as.data.frame(x, fdr = if (tested) fdr)
  table <- table[table$from != table$to, ]
  few <- if (nrow(table) > 150L) 100L else nrow(table)
  shown <- utils::head(table, edges %||% if (tested) few else length(network_features(x)))
  title <- if (!tested) sprintf("regulation: strongest %d of %d edges", nrow(shown), length(attr(x, "edges")$area))
           else sprintf("regulation: %s%d edges at a false discovery rate of %g",
                        if (nrow(shown) < nrow(table)) sprintf("strongest %d of ", nrow(shown)) else "", nrow(table),
                        fdr)
  list(data = shown, title = title)
}

# Scores in the order given; those that are infinite are drawn beside the greatest that is not.
outliers_picture <- function(x) {
  top <- max(x$score[is.finite(x$score)], 3)
  list(data = data.frame(place = seq_along(x$score), score = pmin(x$score, top), outlier = x$outlier,
                         sample = x$sample),
       top = top, xlab = "sample", ylab = "outlier score",
       title = sprintf("%d outlying sample%s", sum(x$outlier), if (sum(x$outlier) == 1L) "" else "s"))
}

# Writes names beside their points, `chosen` in order: right, left, above, below or at a corner, wherever a name covers
# no point, no name before it and no edge of the picture. Those without room are left out, or, where `all` must be
# there, written where they cover least. `rim`: in a light rim, on lines. `crowd`: the points that no name may cover; by
# default all.
write_names <- function(place, names, chosen, radius, cex, all = FALSE, rim = FALSE, crowd = seq_len(nrow(place))) {
  wide <- graphics::strwidth(names, cex = cex)
  high <- graphics::strheight("Mg", cex = cex)
  scale <- graphics::yinch(1) / graphics::xinch(1) # what is as far upwards on paper
  radius <- rep_len(radius, nrow(place))
  taken <- unname(cbind(place[, 1L] - radius, place[, 2L] - radius * scale, place[, 1L] + radius,
                        place[, 2L] + radius * scale))
  rownames(taken) <- rep("", nrow(place))
  edge <- graphics::par("usr")
  for (i in chosen[nzchar(names[chosen])]) {
    boxes <- name_boxes(place[i, ], wide[i], high, radius[i] * 1.15, scale)
    outside <- boxes[, 1L] < edge[1L] | boxes[, 3L] > edge[2L] | boxes[, 2L] < edge[3L] | boxes[, 4L] > edge[4L]
    others <- taken[c(setdiff(crowd, i), seq_len(nrow(taken))[-seq_len(nrow(place))]), , drop = FALSE]
    covers <- apply(boxes, 1L, function(box) {
      sum(box[1L] < others[, 3L] & box[3L] > others[, 1L] & box[2L] < others[, 4L] & box[4L] > others[, 2L])
    }) + 1000 * outside
    best <- which.min(covers)
    if (covers[best] > 0 && !all) next
    box <- boxes[best, ]
    write_name((box[1L] + box[3L]) / 2, (box[2L] + box[4L]) / 2, names[i], cex, if (rim) 0.12 * high)
    taken <- rbind(taken, box)
    rownames(taken)[nrow(taken)] <- names[i]
  }
  invisible(taken[-seq_len(nrow(place)), , drop = FALSE]) # where names stand
}

# Where a name may stand: x0, y0, x1, y1 in a row each, best first.
name_boxes <- function(at, wide, high, radius, scale) {
  up <- radius * scale
  left <- at[1L] + c(radius, -radius - wide, -wide / 2, -wide / 2, radius / 2, radius / 2, -radius / 2 - wide,
                     -radius / 2 - wide)
  low <- at[2L] + c(-high / 2, -high / 2, up, -up - high, up / 2, -up / 2 - high, up / 2, -up / 2 - high)
  cbind(left, low, left + wide, low + high)
}

write_name <- function(x, y, name, cex, rim = NULL) {
  if (!is.null(rim)) for (turn in (0:7) * pi / 4) {
    graphics::text(x + rim * cos(turn), y + rim * sin(turn), name, cex = cex, col = "white")
  }
  graphics::text(x, y, name, cex = cex, col = "#222222")
}
