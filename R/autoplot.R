# Figures with ggplot2, one for every result. ggplot2 is only suggested: methods are registered when it is loaded, so
# that it is there when one is called.

#' Figures with ggplot2
#'
#' `ggplot2::autoplot()` draws a result of weft as a ggplot object, which can be modified. It shows the same as the
#' default of `plot()`. The shortest call is `autoplot(x)`.
#'
#' @param object the result of a weft function.
#' @param top the number of features, pairs, edges, components or samples to show.
#' @param n the number of grid points along each dimension.
#' @param components the numbers of two components, for the axes of the plot of clusters.
#' @param which for [gene_network()]: `"samples"`, `"ranking"`, `"pairs"`, `"network"`, `"clusters"`, `"bayes"` or
#'   `"outliers"`.
#' @param ... passed on by the method for [gene_network()], ignored by the others.
#' @return A ggplot.
#' @name autoplot
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' library(ggplot2)
#' autoplot(mi_matrix(mtcars, estimator = "spearman"))
#' autoplot(kde(faithful$waiting))
NULL

ordered_names <- function(names) factor(names, levels = rev(unique(names)))

bars <- function(label, value, title, xlab, fill = NULL) {
  shown <- data.frame(label = ordered_names(label), value = value)
  shown$fill <- fill %||% TRUE
  ggplot2::ggplot(shown, ggplot2::aes(x = value, y = label, fill = fill)) +
    ggplot2::geom_col(color = weft_colours[["blue"]], show.legend = FALSE) +
    ggplot2::scale_fill_manual(values = c(`TRUE` = weft_colours[["blue"]], `FALSE` = "white")) +
    ggplot2::labs(x = xlab, y = NULL, title = title) + ggplot2::theme_minimal()
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_mi <- function(object, top = 20, ...) {
  picture <- ranking_picture(object, top, "object")
  count <- nrow(picture$data)
  ties <- picture$ties
  beside <- ties$value + 0.02 * max(picture$data$mi)
  bars(picture$data$feature, picture$data$mi, paste(picture$title, "(filled: q <= 0.05)"), picture$xlab,
       picture$data$q_value <= 0.05) +
    ggplot2::annotate("segment", x = beside, xend = beside, y = count + 1 - ties$last, yend = count + 1 - ties$first,
                      color = "grey40")
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_ranking <- function(object, ...) {
  model <- checked_ranking(object, "object")
  shown <- data.frame(change = object$log2_fold_change, up = -object$log10_p, found = object$q_value <= 0.05)
  shown <- shown[stats::complete.cases(shown) & is.finite(shown$change), ]
  ggplot2::ggplot(shown, ggplot2::aes(x = change, y = up, colour = found)) +
    ggplot2::geom_point(size = 1, show.legend = FALSE) +
    ggplot2::scale_colour_manual(values = c(`TRUE` = weft_colours[["blue"]], `FALSE` = "grey70")) +
    ggplot2::labs(x = change_label(model), y = "-log10 p", title = sprintf("%d of %s at q <= 0.05", sum(shown$found),
                                                                          several(nrow(shown), "gene"))) +
    ggplot2::theme_minimal()
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_mi_tuples <- function(object, top = 20, ...) {
  picture <- tuples_picture(object, top, "object")
  shown <- picture$data
  bars(shown$label, shown$mi, paste0(picture$title, "; points: without the interaction"), picture$xlab) +
    ggplot2::geom_point(ggplot2::aes(x = value), color = weft_colours[["orange"]], show.legend = FALSE,
                        data = data.frame(label = ordered_names(shown$label), value = shown$without, fill = TRUE))
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_selection <- function(object, top = 20, ...) {
  picture <- selection_picture(object, check_top(top), "object")
  bars(picture$data$feature, picture$data$score, picture$title, picture$xlab)
}

# A heat map of m as it stands, its names beside it where `names` says so.
tiles <- function(m, title, xlab = NULL, ylab = NULL, limits = NULL, names = FALSE,
                  colours = c("#f4f7fa", weft_colours[["dark"]])) {
  marks <- function(labels) if (names) list(breaks = seq_along(labels), labels = labels)
  data <- data.frame(row = rep(seq_len(nrow(m)), ncol(m)), column = rep(seq_len(ncol(m)), each = nrow(m)),
                     value = c(m))
  ggplot2::ggplot(data, ggplot2::aes(x = column, y = row, fill = value)) + ggplot2::geom_raster() +
    ggplot2::scale_fill_gradientn(colours = colours, na.value = "grey90", limits = limits) +
      do.call(ggplot2::scale_y_reverse, c(list(expand = c(0, 0)), marks(rownames(m)))) +
    do.call(ggplot2::scale_x_continuous, c(list(expand = c(0, 0)), marks(colnames(m)))) +
      ggplot2::labs(x = xlab, y = ylab, title = title, fill = NULL) + ggplot2::theme_minimal()
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_mi_matrix <- function(object, ...) {
  m <- clustered_matrix(object)
  named <- max(dim(m)) <= 60L
  title <- sprintf("Mutual information (%s)", attr(object, "unit") %||% "bits")
  tiles(m, title, names = named) +
    if (named) ggplot2::theme(axis.text.x = ggplot2::element_text(angle = 90, hjust = 1, vjust = 0.5))
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_network <- function(object, top = NULL, ...) {
  top <- check_top(top %||% max(10, ceiling(2.5 * nrow(object))))
  edges <- utils::head(as.data.frame(object), top)
  if (!nrow(edges)) abort_input("`object` must have edges to draw.")
  picture_of_network(edges$from, edges$to, edges$weight,
                     sprintf("Network (%s): strongest %d edges", attr(object, "method"), nrow(edges)))
}

picture_of_network <- function(from, to, weight, title, arrows = FALSE) {
  names <- unique(c(from, to))
  w <- matrix(0, length(names), length(names), dimnames = list(names, names))
  w[cbind(from, to)] <- weight
  w <- pmax(w, t(w))
  place <- network_layout(w)
  nodes <- data.frame(name = names, x = place[, 1L], y = place[, 2L], edges = rowSums(w > 0))
  a <- match(from, names)
  b <- match(to, names)
  lines <- data.frame(x = nodes$x[a], y = nodes$y[a], xend = nodes$x[b], yend = nodes$y[b], weight = weight)
  head <- if (arrows) ggplot2::arrow(length = ggplot2::unit(0.08, "inches"))
  ggplot2::ggplot(nodes, ggplot2::aes(x = x, y = y)) +
    ggplot2::geom_segment(ggplot2::aes(xend = xend, yend = yend, alpha = weight), data = lines, color = "grey40",
                          arrow = head) +
    ggplot2::geom_point(ggplot2::aes(size = edges), color = weft_colours[["blue"]]) +
    ggplot2::geom_text(ggplot2::aes(label = name), vjust = -0.9, size = 3, check_overlap = TRUE) +
    ggplot2::scale_size_area(max_size = 6) + ggplot2::scale_x_continuous(expand = ggplot2::expansion(0.12)) +
    ggplot2::coord_equal() + ggplot2::theme_void() + ggplot2::labs(title = title)
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_bn <- function(object, ...) {
  check_bn(object, "object")
  picture_of_dag(object$dag, as.data.frame(object))
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_bn_fit <- function(object, ...) {
  check_fit(object, "object")
  at <- which(object$dag != 0, arr.ind = TRUE)
  names <- rownames(object$dag)
  picture_of_dag(object$dag, data.frame(from = names[at[, 1L]], to = names[at[, 2L]]))
}

# edges: from, to and, where there is one, posterior.
picture_of_dag <- function(dag, edges) {
  at <- layered_layout(dag)
  nodes <- data.frame(name = rownames(dag), x = at$x, y = at$y)
  a <- match(edges$from, nodes$name)
  b <- match(edges$to, nodes$name)
  lines <- data.frame(x = nodes$x[a], y = nodes$y[a], xend = nodes$x[b], yend = nodes$y[b],
                      posterior = edges$posterior %||% rep(1, nrow(edges)))
  lines$yend <- lines$yend - sign(lines$yend - lines$y) * 0.12
  ggplot2::ggplot(nodes, ggplot2::aes(x = x, y = y)) +
    ggplot2::geom_segment(ggplot2::aes(xend = xend, yend = yend, alpha = posterior), data = lines,
                          color = weft_colours[["blue"]],
                          arrow = ggplot2::arrow(length = ggplot2::unit(2, "mm"), type = "closed")) +
    ggplot2::geom_label(ggplot2::aes(label = name), size = 3) +
    ggplot2::scale_alpha(range = c(0.3, 1), limits = c(0, 1)) +
    ggplot2::scale_x_continuous(expand = c(0.08, 0)) + ggplot2::theme_void() +
    ggplot2::labs(title = sprintf("Bayesian network: %d nodes, %d edges", nrow(nodes), nrow(edges))) +
    if (is.null(edges$posterior)) ggplot2::guides(alpha = "none")
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_bn_compare <- function(object, ...) {
  picture <- roc_picture(object, "object")
  base <- ggplot2::ggplot(picture$data, ggplot2::aes(x = fpr, y = tpr)) + ggplot2::geom_abline(color = "grey80") +
    ggplot2::coord_equal(xlim = 0:1, ylim = 0:1) +
    ggplot2::labs(x = picture$xlab, y = picture$ylab, title = picture$title) + ggplot2::theme_minimal()
  if (picture$curve) return(base + ggplot2::geom_line(color = weft_colours[["blue"]]))
  base + ggplot2::geom_point(color = weft_colours[["blue"]]) +
    ggplot2::geom_text(ggplot2::aes(label = entry), hjust = -0.2, size = 3)
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_irm <- function(object, ...) {
  n <- c(length(object$row_cluster), length(object$col_cluster))
  if (prod(n) > 4e6) abort_input("`autoplot()` draws graphs of at most 4 million cells.",
                                 i = "`plot()` draws larger ones as a raster of counts.")
  pairs <- list_pairs(object$run$graph$links, object$family == "gaussian")
  m <- matrix(0, n[1L], n[2L])
  m[cbind(pairs$from, pairs$to)] <- 1
  if (object$type == "undirected") m[cbind(pairs$to, pairs$from)] <- 1
  real <- object$family == "gaussian"
  lines <- if (real) "black" else weft_colours[["orange"]]
  if (real) m <- pmax(pmin(real_matrix(object$run$graph) / 5 + 0.5, 1), 0)
  title <- sprintf("%d x %d clusters", max(object$row_cluster), max(object$col_cluster))
  colours <- if (real) real_ramp else c("#f4f7fa", weft_colours[["dark"]])
  tiles(m[order(object$row_cluster), order(object$col_cluster)], title, "columns by cluster", "rows by cluster",
        c(0, 1), colours = colours) +
    ggplot2::guides(fill = "none") +
    ggplot2::geom_hline(yintercept = cumsum(tabulate(object$row_cluster)) + 0.5, color = lines, linewidth = 0.3) +
    ggplot2::geom_vline(xintercept = cumsum(tabulate(object$col_cluster)) + 0.5, color = lines, linewidth = 0.3)
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_kde <- function(object, n = if (object$d == 1L) 400 else 80, ...) {
  picture <- density_picture(object, n, "object")
  points <- stats::setNames(as.data.frame(picture$points), c("x", "y")[seq_len(object$d)])
  names <- picture$names
  if (object$d == 1L) {
    curve <- data.frame(x = picture$axes[[1L]], density = picture$density)
    return(ggplot2::ggplot(curve, ggplot2::aes(x = x, y = density)) +
             ggplot2::geom_line(color = weft_colours[["blue"]]) +
             ggplot2::geom_rug(ggplot2::aes(x = x), data = points, inherit.aes = FALSE, alpha = 0.3) +
             ggplot2::labs(x = names, y = "density") + ggplot2::theme_minimal())
  }
  grid <- cbind(stats::setNames(expand.grid(picture$axes), c("x", "y")), density = picture$density)
  ggplot2::ggplot(grid, ggplot2::aes(x = x, y = y)) + ggplot2::geom_point(data = points, color = "grey70", size = 0.6) +
    ggplot2::geom_contour(ggplot2::aes(z = density), color = weft_colours[["blue"]]) +
    ggplot2::labs(x = names[1L], y = names[2L]) + ggplot2::theme_minimal()
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_kernel_regression <- function(object, n = 200, ...) { # nolint: object_length_linter.
  band_of_ggplot(regression_picture(object, n, 0.95, "object"))
}

band_of_ggplot <- function(picture) {
  ggplot2::ggplot(picture$curve, ggplot2::aes(x = x, y = y)) +
    ggplot2::geom_point(data = picture$points, color = "grey60", size = 0.8) +
    ggplot2::geom_ribbon(ggplot2::aes(ymin = lower, ymax = upper), fill = weft_colours[["pale"]], alpha = 0.5) +
    ggplot2::geom_line(color = weft_colours[["blue"]]) + ggplot2::labs(x = picture$xlab, y = picture$ylab) +
    ggplot2::theme_minimal()
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_kernel_pca <- function(object, ...) {
  picture <- kernel_pca_picture(object)
  ggplot2::ggplot(picture$data, ggplot2::aes(x = x, y = y)) +
    ggplot2::geom_point(color = weft_colours[["blue"]], alpha = 0.7) +
    ggplot2::labs(x = picture$xlab, y = picture$ylab) + ggplot2::theme_minimal()
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_pca_k <- function(object, ...) {
  picture <- components_picture(object, "object")
  ggplot2::ggplot(picture$data, ggplot2::aes(x = component, y = value)) +
    ggplot2::geom_line(color = weft_colours[["blue"]]) + ggplot2::geom_point(color = weft_colours[["blue"]]) +
    ggplot2::geom_line(ggplot2::aes(y = threshold), color = weft_colours[["orange"]], linetype = 2) +
    ggplot2::labs(y = picture$ylab, title = picture$title, subtitle = paste("dashed:", picture$rule)) +
    ggplot2::theme_minimal()
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_outliers <- function(object, ...) {
  object <- checked_step(object, "outliers", "object", "gene_outliers()")
  shown <- as.data.frame(object)
  picture <- outliers_picture(shown[order(shown$sample), ])
  ggplot2::ggplot(picture$data, ggplot2::aes(x = place, y = score, color = outlier)) + ggplot2::geom_point() +
    ggplot2::geom_text(ggplot2::aes(label = sample), data = picture$data[picture$data$outlier, , drop = FALSE],
                       vjust = -0.7, size = 3, show.legend = FALSE) +
    ggplot2::scale_color_manual(values = c(`TRUE` = weft_colours[["orange"]], `FALSE` = weft_colours[["blue"]]),
                                guide = "none") +
    ggplot2::labs(x = picture$xlab, y = picture$ylab, title = picture$title) + ggplot2::theme_minimal()
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_gene_network <- function(object, which = c("samples", "ranking", "pairs", "network", "clusters", "bayes",
                                                         "outliers"), ...) {
  which <- check_choice(which, c("samples", "ranking", "pairs", "network", "clusters", "bayes", "outliers"), "which")
  object <- with_labels(checked_fit(object, "object"))
  step <- if (which == "samples") "components" else which
  if (is.null(object[[step]])) abort_no_result(sprintf("There is no \"%s\" to plot.", which), object, step)
  drawing("object", if (which == "samples") ggplot2::autoplot(object$components, color = object$quality$class, ...)
                    else ggplot2::autoplot(object[[step]], ...))
}

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_gp <- function(object, n = 200, ...) band_of_ggplot(gp_picture(object, n, "object"))

#' @rdname autoplot
#' @exportS3Method ggplot2::autoplot
autoplot.weft_modules <- function(object, ...) {
  r <- check_modules(object, "object")
  if (!nrow(r$modules)) abort_input("`object` must have modules to draw.", x = "It has none.")
  if (is.null(r$relations)) return(bars(module_labels(r), r$modules$size, several(nrow(r$modules), "module"), "genes"))
  table <- relation_table(r)
  shown <- data.frame(module = ordered_names(rownames(table$r)[row(table$r)]),
                      variable = factor(colnames(table$r)[col(table$r)], colnames(table$r)),
                      correlation = as.vector(table$r), found = as.vector(table$found))
  shown$label <- ifelse(is.na(shown$correlation), "", sprintf("%.2f", shown$correlation))
  ggplot2::ggplot(shown, ggplot2::aes(x = variable, y = module, fill = correlation)) + ggplot2::geom_tile() +
    ggplot2::geom_text(ggplot2::aes(label = label, fontface = ifelse(found, "bold", "plain"))) +
    ggplot2::scale_fill_gradientn(colours = relation_colours(5L), limits = c(-1, 1)) +
    ggplot2::labs(x = NULL, y = NULL, title = "Correlations (bold: q <= 0.05)") +
    ggplot2::theme_minimal()
}

utils::globalVariables(c("value", "label", "fill", "column", "x", "y", "xend", "yend", "weight", "edges", "name",
                         "posterior", "fpr", "tpr", "entry", "density", "lower", "upper", "component", "threshold",
                         "place", "score", "outlier", "change", "up", "found", "module", "variable",
                         "correlation"))
