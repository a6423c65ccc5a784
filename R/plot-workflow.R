# Pictures of the workflow's result: one per step, and a page of them.

#' Plot the result of the workflow
#'
#' `"overview"` draws these parts on one page: samples on the first two components, the best genes, the network, the
#' Bayesian network, the co-clustering, and the samples' outlier scores, except for steps that were left out.
#'
#' @param x an object returned by [gene_network()].
#' @param which `"overview"`, or one of the parts: `"samples"`, `"variance"`, `"ranking"`, `"pairs"`, `"network"`,
#'   `"clusters"`, `"bayes"`, `"outliers"`.
#' @param ... passed on to the part's own `plot()`; ignored by `"overview"`, `"samples"` and `"outliers"`.
#' @return `x`, invisibly.
#' @export
#' @examples
#' e <- weft_example("expression", n = 60, p = 30)
#' fit <- gene_network(e$x, e$class, seed = 1,
#'                     steps = list(pairs = FALSE, clusters = FALSE, bayes = FALSE))
#' plot(fit)
#' plot(fit, "samples")
plot.weft_gene_network <- function(x, which = c("overview", "samples", "variance", "ranking", "pairs", "network",
                                                "clusters", "bayes", "outliers"), ...) {
  which <- check_choice(which, c("overview", "samples", "variance", "ranking", "pairs", "network", "clusters", "bayes",
                                 "outliers"),
                        "which")
  fit <- checked_fit(x, "x")
  drawing("x", plot_fit(with_labels(fit), which, ...))
  invisible(x)
}

plot_fit <- function(x, which, ...) {
  if (which == "overview") return(plot_overview(x))
  step <- switch(which, samples = , variance = "components", which)
  if (is.null(x[[step]])) abort_no_result(sprintf("There is no \"%s\" to plot.", which), x, step)
  switch(which, samples = plot_samples(x), variance = plot(x$components, ...), ranking = plot(x$ranking, ...),
         pairs = plot_tested_pairs(x$pairs, ...),
         network = plot_workflow_network(x, ...), clusters = plot_clusters(x, ...), bayes = plot(x$bayes, ...),
         outliers = plot_outliers(x))
}

# Says so where the pairs shown are what chance gives.
plot_tested_pairs <- function(pairs, main = NULL, ...) {
  state <- if (is.null(pairs$p_fwer)) "not tested" else if (!any(pairs$p_fwer <= 0.05)) "none significant"
  if (is.null(main) && !is.null(state)) main <- sprintf("Pairs with the strongest interaction (%s)", state)
  if (is.null(main)) plot(pairs, ...) else plot(pairs, main = main, ...)
}

plot_overview <- function(x) {
  parts <- intersect(c("samples", "ranking", "network", "bayes", "clusters", "outliers"),
                     c(workflow_steps[vapply(workflow_steps, function(s) !is.null(x[[s]]), NA)],
                       if (!is.null(x$components)) "samples"))
  if (!length(parts)) abort_input("`x` must contain a result to plot.",
                                  x = "All steps were skipped or were computed by user-defined functions.")
  shape <- c(ceiling(length(parts) / 2), min(length(parts), 2L))
  old <- graphics::par(mfrow = shape, cex = 0.62, cex.main = 1.05, mgp = c(2.4, 0.7, 0))
  on.exit(graphics::par(old))
  for (part in parts) {
    if (part == "ranking") plot(x$ranking, top = 15L) else plot_fit(x, part)
  }
}

# Of a large network the heaviest edges: more cannot be read, and would take long to lay out.
plot_workflow_network <- function(x, edges = if (!is_directed(x$network) && ncol(x$network) > 100L) 200, ...) {
  plot(x$network, edges = edges, groups = network_groups(x), ...)
}

# Colours of classes in every picture, which colour-blind readers can tell apart (Okabe and Ito 2008).
class_palette <- function(count) {
  eight <- c("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
  if (count <= 8L) eight[seq_len(count)] else grDevices::hcl.colors(count, "Viridis")
}

plot_samples <- function(x) {
  fit <- x$components
  scores <- fit$x
  second <- min(2L, ncol(scores))
  class <- x$quality$class
  colour <- if (is.null(class)) "#2c5f8a" else class_palette(nlevels(class))[as.integer(class)]
  label <- sprintf("PC%d (%s of the variance)", c(1L, second), vapply(fit$share[c(1L, second)], percent, ""))
  old <- graphics::par(mar = c(4, 4, 2.5, 1) + 0.1)
  on.exit(graphics::par(old))
  graphics::plot(scores[, 1L], scores[, second], type = "n", xlab = label[1L], ylab = label[2L], las = 1, main = "")
  graphics::title("Samples", adj = if (is.null(class)) 0.5 else 0)
  density <- if (!is.null(x$outliers)) sample_contours(scores[, c(1L, second), drop = FALSE])
  if (!is.null(density)) {
    graphics::contour(density$x, density$y, density$z, nlevels = 6, drawlabels = FALSE, col = "grey80", add = TRUE)
  }
  graphics::points(scores[, 1L], scores[, second], pch = 21, bg = colour, col = "white", lwd = 0.5, cex = 1.2)
  odd <- if (!is.null(x$outliers)) match(x$outliers$sample[x$outliers$outlier], rownames(scores))
  if (length(odd)) {
    graphics::points(scores[odd, 1L], scores[odd, second], pch = 1, cex = 2.2, lwd = 1.5)
    write_names(scores[, c(1L, second), drop = FALSE], plain_text(rownames(scores)), utils::head(odd, 20L),
                1.1 * graphics::strwidth("o"), 0.75, all = TRUE)
  }
  few <- !is.null(class) && nlevels(class) <= 4L # these go above the points, which a legend would hide
  if (!is.null(class)) graphics::legend(if (few) "bottomright" else "topleft", levels(class), pch = 21,
                                        pt.bg = class_palette(nlevels(class)), col = "white", pt.cex = 1.3,
                                        bg = "#ffffffcc", bty = if (few) "n" else "o", box.col = NA, cex = 0.9,
                                        horiz = few, xpd = NA, inset = if (few) c(0, 1) else 0)
}

# The density of the two scores on a grid, for its contours.
sample_contours <- function(scores, cells = 60L) {
  if (ncol(scores) < 2L || any(apply(scores, 2L, robust_sd) <= 0)) return(NULL)
  spread <- apply(scores, 2L, robust_sd)
  usr <- graphics::par("usr")
  at <- list(seq(usr[1L], usr[2L], length.out = cells), seq(usr[3L], usr[4L], length.out = cells))
  d <- kde(scores, spread * nrow(scores)^(-1 / 6), run = weft_run(progress = FALSE))
  list(x = at[[1L]], y = at[[2L]], z = matrix(stats::predict(d, as.matrix(expand.grid(at)), progress = FALSE), cells))
}

# Colours of genes in the network: their cluster, when clusters are few enough to be told apart.
network_groups <- function(x) {
  z <- if (!is.null(x$clusters)) gene_groups(x$clusters)
  if (is.null(z)) return(NULL)
  of <- z[match(colnames(x$network), names(z))]
  if (all(is.na(of))) return(NULL)
  if (mean(is.na(of)) > 0.5) return(NULL)
  large <- as.integer(names(sort(table(of), decreasing = TRUE)))[1:7]
  large <- large[!is.na(large)]
  if (length(large) < 2L) return(NULL)
  factor(ifelse(of %in% large, paste("cluster", of), "other"), c(paste("cluster", sort(large)), "other"))
}

# The matrix in the order of its groups, with the samples' classes in a strip beside it.
plot_clusters <- function(x, ...) {
  picture <- blocks_picture(x)
  class <- x$quality$class[picture$rows]
  n <- dim(picture$colours)
  phone <- on_phone()
  old <- graphics::par(mar = if (phone) c(3.4, 3.2, 3, 1.4) else c(4, 4, 3, if (is.null(class)) 1 else 2) + 0.1,
                       mgp = if (phone) c(1.9, 0.4, 0) else c(2.4, 0.6, 0), tcl = -0.2)
  on.exit(graphics::par(old))
  graphics::par(mai = replace(graphics::par("mai"), 3L, 0.26 + key_inches(class)))
  graphics::plot(NA, xlim = c(0, n[2L]), ylim = c(n[1L], 0), xaxs = "i", yaxs = "i", axes = FALSE,
                 xlab = sprintf("groups of %ss", column_word(x$quality)), ylab = "groups of samples", main = "")
  group_axis(1L, picture$gene_group)
  group_axis(2L, picture$sample_group)
  graphics::mtext(picture$title, 3L, 0.3, adj = 0, cex = 0.9)
  graphics::rasterImage(grDevices::as.raster(picture$colours), 0, n[1L], n[2L], 0, interpolate = FALSE)
  graphics::abline(h = cumsum(tabulate(picture$sample_group)), v = cumsum(tabulate(picture$gene_group)),
                   col = picture$lines, lwd = 0.8)
  graphics::box()
  if (is.null(class)) return(invisible())
  usr <- graphics::par("usr")
  width <- 0.02 * n[2L]
  graphics::rect(usr[2L] + width * 0.4, seq_len(n[1L]) - 1, usr[2L] + width * 1.4, seq_len(n[1L]),
                 col = class_palette(nlevels(class))[as.integer(class)], border = NA, xpd = NA)
  key_above(class)
}

# Colours of the samples (rows) and genes in the order of their groups, and these groups. Of genes grouped by consensus
# 300 are shown: of each group its share, those that vary most.
blocks_picture <- function(x, most = 300L) {
  r <- x$clusters
  q <- x$quality
  class <- q$class
  if (is_consensus(r)) {
    z <- r$gene_cluster %||% stats::setNames(rep(1L, ncol(q$x)), gene_labels(q) %||% colnames(q$x))
    columns <- shown_columns(x, names(z))
    spread <- apply(q$x[, columns, drop = FALSE], 2L, stats::mad)
    share <- stats::ave(-spread, z, FUN = function(v) rank(v, ties.method = "first") / length(v))
    some <- sort(utils::head(order(share), most))
    z <- z[some]
    m <- two_sided(scaled_columns(q$x[, columns[some], drop = FALSE]))
    dim(m) <- c(nrow(q$x), length(some))
  } else {
    z <- r$col_cluster
    shape <- c(length(r$row_cluster), length(z))
    if (r$family == "gaussian") m <- matrix(two_sided(real_matrix(r$run$graph)), shape[1L])
    else {
      pairs <- list_pairs(r$run$graph$links)
      m <- matrix("#eef2f6", shape[1L], shape[2L])
      m[cbind(pairs$from, pairs$to)] <- "#2c5f8a"
    }
  }
  samples <- sample_groups(r)
  rows <- order(samples, if (is.null(class)) seq_along(samples) else as.integer(class))
  columns <- order(z)
  list(colours = m[rows, columns, drop = FALSE], rows = rows, sample_group = samples[rows], gene_group = z[columns],
       lines = if (is_consensus(r) || r$family == "gaussian") "black" else "white",
       title = paste0(sprintf("%s of samples, %d of %ss", several(max(samples), "group"), max(gene_groups(r), 1L),
                              column_word(q)), if (groups_hold(r)) "" else " (not converged)"))
}

# The number of each group in its middle, every one: small groups' numbers move apart, and shrink where there are many.
group_axis <- function(side, group) {
  size <- tabulate(group)
  there <- which(size > 0L)
  middle <- (cumsum(size) - size / 2)[there]
  long <- graphics::par("pin")[if (side == 1L) 1L else 2L]
  step <- length(group) / long # per inch
  cex <- min(0.75, 0.75 * long / (0.17 * length(there)))
  at <- apart_by(middle, 0.17 * step * cex / 0.75, length(group))
  graphics::axis(side, at, there, tick = FALSE, las = 1, line = 0.1 - graphics::par("mgp")[2L], cex.axis = cex,
                 gap.axis = -1)
}

plot_outliers <- function(x) {
  o <- as.data.frame(x$outliers)
  o <- o[match(x$quality$samples$sample[x$quality$samples$kept], o$sample), ]
  old <- graphics::par(mar = c(4, 4, 2.5, 1) + 0.1)
  on.exit(graphics::par(old))
  picture <- outliers_picture(o)
  score <- picture$data$score
  class <- x$quality$class
  colour <- if (is.null(class)) "#2c5f8a" else class_palette(nlevels(class))[as.integer(class)]
  graphics::plot(seq_along(score), score, pch = 16, col = colour, las = 1, xlab = picture$xlab, ylab = picture$ylab,
                 ylim = c(0, picture$top * 1.08), main = picture$title)
  odd <- which(o$outlier)
  graphics::points(odd, score[odd], pch = 1, cex = 2.2, lwd = 1.5)
  write_names(cbind(seq_along(score), score), plain_text(o$sample), utils::head(odd[order(-score[odd])], 20L),
              0.75 * graphics::strwidth("o"), 0.75, all = TRUE)
}
