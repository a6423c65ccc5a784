# Plots of networks. The layout is layered: a node lies one layer below its lowest parent; within layers nodes are
# ordered by the mean place of their neighbours, sweeping down and up (Sugiyama, Tagawa and Toda 1981).

#' Plot learned networks
#'
#' @param x an object returned by [bn_learn()] or [bn_exact()].
#' @param which `"network"` (the width and shade of an edge show the posterior probability that its nodes are adjacent;
#'   its head is filled if at least nine tenths of this probability are in the direction drawn, and hollow if the
#'   direction is uncertain; edges that are not in the best network but have a posterior of at least `threshold` in
#'   their direction are dashed), `"trace"` (score along each chain), `"score"` (best score so far against iteration) or
#'   `"posterior"` (sorted edge posteriors).
#' @param threshold see `which`.
#' @param cex the largest size of node names, which are smaller in crowded layers.
#' @param ... ignored.
#' @return `x`, invisibly.
#' @export
#' @examples
#' d <- data.frame(a = rep(0:1, 20), b = rep(c(0L, 1L, 1L, 1L), 10), c = rep(0:1, each = 20))
#' plot(bn_exact(d, posterior = "dag"))
plot.weft_bn <- function(x, which = c("network", "trace", "score", "posterior"), threshold = 0.5, cex = 0.8, ...) {
  which <- check_choice(which, c("network", "trace", "score", "posterior"), "which")
  threshold <- check_number(threshold, "threshold", min = 0, max = 1)
  cex <- check_number(cex, "cex", min = 0.01, max = 100)
  check_bn(x, "x")
  if (which %in% c("trace", "score") && is.null(x$trace)) {
    abort_input(sprintf("`which = \"%s\"` needs an object returned by `bn_learn()`.", which),
                x = if (inherits(x, "weft_bn_exact")) "An exact result has no chains."
                    else "A network found by local search has no chains.")
  }
  if (which == "posterior" && is.null(x$edges)) {
    abort_input("`which = \"posterior\"` needs edge posteriors.",
                i = "Use `target = \"sum\"`, or `posterior =` of `bn_exact()`.")
  }
  switch(which, network = plot_network(x$dag, x$edges, threshold, cex), trace = with_wide_axis(plot_traces(x)),
         score = with_wide_axis(plot_scores(x)), posterior = plot_posteriors(x$edges))
  invisible(x)
}

#' @rdname bn_fit
#' @param cex the size of names.
#' @export
plot.weft_bn_fit <- function(x, cex = 0.8, ...) {
  check_fit(x, "x")
  plot_network(x$dag, NULL, 0.5, check_number(cex, "cex", min = 0.01, max = 100))
  invisible(x)
}

bn_blue <- "#2c5f8a"

bn_ink <- "#3d4b59"

# Scores have many digits: room for them left of the axis.
with_wide_axis <- function(draw) {
  old <- graphics::par(mar = c(4.1, 6.1, 3.1, 1.1), mgp = c(2.6, 0.8, 0))
  on.exit(graphics::par(old))
  draw
}

chain_colours <- function(x) grDevices::hcl.colors(max(ncol(x$trace), 3L), "Dark 3")

plot_traces <- function(x) {
  at <- seq_len(nrow(x$trace)) * x$run$thin
  graphics::matplot(at, x$trace, type = "l", lty = 1, col = chain_colours(x), xlab = "iteration", ylab = "", las = 1,
                    main = sprintf("%d chains, R-hat %.2f", ncol(x$trace), x$diagnostics$r_hat))
  graphics::title(ylab = if (x$target == "max") "score of the best graph of the order" else "score of the order",
                  line = 4.8)
}

plot_scores <- function(x) {
  at <- seq_len(nrow(x$trace)) * x$run$thin
  best <- apply(x$trace, 2L, cummax)
  graphics::matplot(at, best, type = "s", lty = 1, col = chain_colours(x), xlab = "iteration", ylab = "", las = 1,
                    main = "Score against iteration")
  graphics::title(ylab = "best score so far", line = 4.8)
  if (x$target == "max") graphics::abline(h = x$score, lty = 3)
}

plot_posteriors <- function(edges) {
  p <- sort(edges[row(edges) != col(edges)], decreasing = TRUE)
  graphics::plot(seq_along(p), p, type = "h", col = bn_blue, ylim = c(0, 1), las = 1,
                 xlab = "edge, most probable first",
                 ylab = "posterior",
                 main = sprintf("%d of %d possible edges with a posterior of at least 0.5", sum(p >= 0.5), length(p)))
}

# list(x, y) of the nodes: y the layer from the top, x from 0 to 1.
layered_layout <- function(dag) {
  p <- nrow(dag)
  layer <- rep(1L, p)
  for (i in topological_order(dag)) {
    parents <- which(dag[, i] != 0)
    if (length(parents)) layer[i] <- max(layer[parents]) + 1L
  }
  for (i in rev(topological_order(dag))) { # roots down to their children
    children <- which(dag[i, ] != 0)
    if (length(children) && !any(dag[, i] != 0)) layer[i] <- min(layer[children]) - 1L
  }
  layer <- layer - min(layer) + 1L
  linked <- (dag != 0) | t(dag != 0)
  place <- spread_layers(stats::ave(seq_len(p), layer, FUN = rank), layer)
  for (sweep in 1:24) {
    neighbours <- linked & outer(layer, layer, if (sweep %% 2L) `>` else `<`)
    count <- rowSums(neighbours)
    wanted <- ifelse(count > 0, drop(neighbours %*% place) / pmax(count, 1), place)
    place <- spread_layers(wanted, layer)
  }
  list(x = place, y = -layer)
}

# Keeps the order within layers, evenly from 0 to 1.
spread_layers <- function(wanted, layer) {
  stats::ave(wanted, layer, FUN = function(w) (rank(w, ties.method = "first") - 0.5) / length(w))
}

plot_network <- function(dag, edges, threshold, cex) {
  nodes <- rownames(dag)
  at <- layered_layout(dag)
  old <- graphics::par(mar = c(0.5, 0.5, 2, 0.5))
  on.exit(graphics::par(old))
  title <- sprintf("%s, %s%s", several(length(nodes), "node"), several(sum(dag != 0), "edge"),
                   if (is.null(edges)) "" else "; width: posterior")
  graphics::plot(NA, xlim = c(-0.02, 1.02), ylim = range(at$y) + c(-0.5, 0.5), axes = FALSE, xlab = "", ylab = "",
                 main = title)
  box_width <- function(cex) graphics::strwidth(nodes, cex = cex) + graphics::strwidth("m", cex = cex)
  cex <- max(min(cex, 0.45), cex * min(1, 0.92 / max(box_width(cex) * stats::ave(at$y, at$y, FUN = length))))
  half_width <- box_width(cex) / 2
  half_height <- graphics::strheight("Mg", cex = cex) * 0.9
  joined <- if (is.null(edges)) dag * 0.6 else pmin(edges + t(edges), 1)
  clear <- if (is.null(edges)) dag != 0 else edges >= clear_direction * joined
  shown <- which(dag != 0 | (!is.null(edges) & (edges %||% dag) >= threshold), arr.ind = TRUE)
  for (k in seq_len(nrow(shown))) {
    from <- shown[k, 1L]
    to <- shown[k, 2L]
    draw_edge(at, from, to, half_width, half_height, joined[from, to], dag[from, to] != 0, clear[from, to])
  }
  graphics::rect(at$x - half_width, at$y - half_height, at$x + half_width, at$y + half_height, col = "white",
                 border = bn_ink)
  graphics::text(at$x, at$y, nodes, cex = cex)
}

# From box to box; an edge across several layers, or within one, bends so as not to run through nodes.
draw_edge <- function(at, from, to, half_width, half_height, posterior, in_best, clear) {
  x <- at$x[c(from, to)]
  y <- at$y[c(from, to)]
  bend <- if (abs(diff(y)) > 1.5 || diff(y) == 0) 0.04 * (if (x[1L] <= mean(at$x)) -1 else 1) else 0
  t <- seq(0, 1, length.out = 40)
  px <- x[1L] + diff(x) * t + bend * 4 * t * (1 - t)
  py <- y[1L] + diff(y) * t + (if (diff(y) == 0) 0.3 else 0) * 4 * t * (1 - t)
  inside <- function(k) abs(px - at$x[k]) <= half_width[k] & abs(py - at$y[k]) <= half_height * 1.15
  kept <- which(!inside(from) & !inside(to))
  if (length(kept) < 2L) return()
  shade <- grDevices::colorRampPalette(c("white", bn_ink))(101L)[round(100 * (0.25 + 0.75 * posterior)) + 1L]
  graphics::lines(px[kept], py[kept], col = shade, lwd = 0.5 + 3 * posterior, lty = if (in_best) 1 else 2)
  n <- length(kept)
  draw_head(px[kept[c(n - 1L, n)]], py[kept[c(n - 1L, n)]], shade, clear)
}

# An arrowhead that ends where the line from the first to the second of two points does: filled, or hollow.
draw_head <- function(x, y, shade, filled, length = 0.1) {
  inch <- c(graphics::xinch(1), graphics::yinch(1))
  along <- c(diff(x), diff(y)) / inch
  along <- along / max(sqrt(sum(along^2)), 1e-9) * length
  corner <- function(back, aside) {
    c(x[2L], y[2L]) - (back * along + aside * 0.4 * c(-along[2L], along[1L])) * inch
  }
  head <- cbind(corner(0, 0), corner(1, 1), corner(1, -1))
  graphics::polygon(head[1L, ], head[2L, ], col = if (filled) shade else "white", border = shade, lwd = 1.2)
}
