# plot() and autoplot() of results that have no file of figures of their own; each pair draws the same data.

#' Plot other results
#'
#' `plot()` draws the columns with the most levels after [discretize()], the nodes with the most parent sets in
#' [bn_scores()], the scores of samples from [gene_outliers()], or the values of samples from [gene_quality()]. The
#' shortest call is `plot(x)`.
#'
#' @param x an object returned by [discretize()], [bn_scores()], [gene_outliers()] or [gene_quality()].
#' @param top the number of columns, nodes or samples to show.
#' @param ... passed on to [graphics::barplot()], to [graphics::plot.default()] for outliers, or to
#'   [graphics::boxplot()] for samples.
#' @return `x`, invisibly.
#' @name plot_results
#' @examples
#' plot(discretize(iris[1:4], bins = 4))
NULL

levels_picture <- function(x, top) {
  top <- check_top(top)
  levels <- sort(vapply(x, nlevels, 0L), decreasing = TRUE)
  shown <- utils::head(levels, top)
  list(label = names(shown), value = unname(shown), xlab = "levels",
       title = sprintf("Columns with the most levels (%d of %d)", length(shown), length(levels)))
}

sets_picture <- function(x, top) {
  top <- check_top(top)
  sets <- table(factor(as.data.frame(x)$node, levels = x$nodes))
  shown <- utils::head(sort(sets, decreasing = TRUE), top)
  list(label = names(shown), value = as.numeric(shown), xlab = "parent sets kept",
       title = sprintf("Nodes with the most parent sets (%d of %d)", length(shown), length(sets)))
}

# At most `top` samples, evenly spaced.
values_picture <- function(x, top, arg) {
  x <- checked_quality(x, arg)
  top <- check_top(top)
  some <- unique(round(seq(1, nrow(x$x), length.out = min(nrow(x$x), top))))
  list(values = x$x[some, , drop = FALSE], class = x$class[some],
       title = sprintf("Values of %d samples and %d genes", length(some), ncol(x$x)))
}

draw_picture_bars <- function(picture, ...) {
  old <- graphics::par(mar = bar_margins(picture$label))
  on.exit(graphics::par(old))
  draw_bars(list(height = rev(picture$value), names.arg = rev(picture$label), col = weft_colours[["blue"]],
                 xlab = picture$xlab, main = picture$title), ...)
}

#' @rdname plot_results
#' @export
plot.weft_bins <- function(x, top = 20, ...) {
  draw_picture_bars(levels_picture(x, top), ...)
  invisible(x)
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_bins <- function(object, top = 20, ...) {
  picture <- levels_picture(object, top)
  bars(picture$label, picture$value, picture$title, picture$xlab)
}

#' @rdname plot_results
#' @export
plot.weft_bn_scores <- function(x, top = 20, ...) {
  draw_picture_bars(sets_picture(x, top), ...)
  invisible(x)
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_bn_scores <- function(object, top = 20, ...) {
  picture <- sets_picture(object, top)
  bars(picture$label, picture$value, picture$title, picture$xlab)
}

#' @rdname plot_results
#' @export
plot.weft_outliers <- function(x, ...) {
  shown <- as.data.frame(checked_step(x, "outliers", "x", "gene_outliers()"))
  picture <- outliers_picture(shown[order(shown$sample), ])
  d <- picture$data
  settings <- list(x = d$place, y = d$score, pch = 16, las = 1, xlab = picture$xlab, ylab = picture$ylab,
                   main = picture$title, col = weft_colours[ifelse(d$outlier, "orange", "blue")])
  do.call(graphics::plot.default, utils::modifyList(settings, list(...)))
  if (any(d$outlier)) graphics::text(d$place[d$outlier], d$score[d$outlier], d$sample[d$outlier], pos = 3, cex = 0.8)
  invisible(x)
}

#' @rdname plot_results
#' @export
plot.weft_quality <- function(x, top = 100, ...) {
  picture <- values_picture(x, top, "x")
  colours <- if (is.null(picture$class)) weft_colours[["pale"]]
             else group_palette(nlevels(picture$class))[as.integer(picture$class)]
  settings <- list(x = as.data.frame(t(picture$values)), names = rep("", nrow(picture$values)), outline = FALSE,
                   col = colours, las = 1, xlab = "sample", ylab = "value", main = picture$title)
  do.call(graphics::boxplot, utils::modifyList(settings, list(...)))
  if (!is.null(picture$class)) {
    graphics::legend("topright", levels(picture$class), fill = group_palette(nlevels(picture$class)), bty = "n",
                     cex = 0.8)
  }
  invisible(x)
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_quality <- function(object, top = 100, ...) {
  picture <- values_picture(object, top, "object")
  part <- picture$values
  values <- data.frame(sample = factor(rownames(part), levels = rownames(part))[row(part)], value = c(part))
  values$class <- (picture$class %||% factor(rep("sample", nrow(part))))[row(part)]
  ggplot2::ggplot(values, ggplot2::aes(x = sample, y = value, fill = class)) +
    ggplot2::geom_boxplot(outlier.shape = NA, linewidth = 0.2) +
    ggplot2::labs(x = "sample", title = picture$title) +
    ggplot2::theme_minimal() +
    ggplot2::theme(axis.text.x = ggplot2::element_blank(), panel.grid.major.x = ggplot2::element_blank()) +
    ggplot2::scale_fill_manual(values = group_palette(nlevels(values$class))) +
    if (is.null(picture$class)) ggplot2::guides(fill = "none")
}

# ---- ggplot2 beside plot() methods of other files ----

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_clusters <- function(object, components = 1:2, ...) {
  picture <- clusters_picture(check_clusters(object, "object"), components)
  ggplot2::ggplot(picture$data, ggplot2::aes(x = x, y = y, colour = group, alpha = probability)) +
    ggplot2::geom_point() + ggplot2::scale_colour_manual(values = class_palette(nlevels(picture$data$group))) +
    ggplot2::scale_alpha(range = c(0.25, 1), limits = c(0, 1)) +
    ggplot2::labs(x = picture$labels[1L], y = picture$labels[2L], title = picture$title) + ggplot2::theme_minimal()
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_pair_scan <- function(object, ...) {
  picture <- scan_picture(object, "object")
  ggplot2::ggplot(picture$data, ggplot2::aes(x = expected, y = seen)) +
    ggplot2::geom_abline(colour = "grey60") + ggplot2::geom_hline(yintercept = picture$threshold, linetype = 2) +
    ggplot2::geom_point(colour = weft_colours[["blue"]]) +
    ggplot2::labs(x = picture$xlab, y = picture$ylab, title = picture$title) + ggplot2::theme_minimal()
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_comparison <- function(object, top = NULL, ...) {
  picture <- changes_picture(checked_comparison(object, "object"), if (!is.null(top)) check_top(top), 0.05)
  edges <- picture$data
  if (!nrow(edges)) return(ggplot2::ggplot() + ggplot2::theme_void() + ggplot2::labs(title = picture$title))
  weight <- do.call(pmax, edges[sprintf("area_%s", names(object$groups))])
  network <- picture_of_network(edges$from, edges$to, weight, picture$title, arrows = TRUE)
  network$layers[[1L]]$data$change <- edges$change
  network$layers[[1L]]$mapping$colour <- quote(change)
  network$layers[[1L]]$aes_params$colour <- NULL
  network + ggplot2::scale_colour_manual(values = change_colours)
}

#' @rdname autoplot
#' @param depth for [kernel_tree()]: the deepest level to draw; the root has level 0.
#' @exportS3Method ggplot2::autoplot
autoplot.weft_kernel_tree <- function(object, depth = 6, ...) {
  picture <- tree_picture(object, depth, "object")
  points <- data.frame(x = picture$points[, 1L], y = picture$points[, 2L])
  ggplot2::ggplot(points, ggplot2::aes(x = x, y = y)) + ggplot2::geom_point(colour = "#9aa5b1", size = 0.3) +
    ggplot2::geom_rect(ggplot2::aes(xmin = xmin, ymin = ymin, xmax = xmax, ymax = ymax, colour = level),
                       data = picture$boxes, inherit.aes = FALSE, fill = NA) +
    ggplot2::scale_colour_viridis_c() +
    ggplot2::labs(x = picture$names[1L], y = picture$names[2L], title = picture$title) + ggplot2::theme_minimal()
}

utils::globalVariables(c("group", "probability", "expected", "seen", "xmin", "ymin", "xmax", "ymax", "level"))
