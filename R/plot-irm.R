#' Plot a co-clustering
#'
#' `"matrix"` draws the links with rows and columns in the order of their clusters and lines between these; large graphs
#' are drawn as a raster of counts, and real values are averaged, with blue below and orange above the overall mean.
#' `"trace"` draws the log posterior of every chain, `"eta"` the link probabilities of the blocks, and `"sizes"` the
#' sizes of the clusters. `"tree"` draws nested groups ([irm_prior()] with `degrees`): a column of bars per level, whose
#' lengths are numbers of nodes, each beside its subgroups.
#'
#' @param x an object returned by [irm()].
#' @param what `"matrix"`, `"trace"`, `"eta"`, `"sizes"` or `"tree"`.
#' @param resolution the largest number of pixels per side.
#' @param ... further graphical parameters for the titles.
#' @return `x`, invisibly; `irm_words()`: a list of names, one element per cluster.
#' @export
#' @examples
#' planted <- irm_sample(80, 60, k = 3, density = 0.3, seed = 1)
#' fit <- irm(planted$A, chains = 2, sweeps = 40, seed = 1)
#' plot(fit)
#' plot(fit, "trace")
plot.weft_irm <- function(x, what = c("matrix", "trace", "eta", "sizes", "tree"), resolution = 1000L, ...) {
  check_irm_fit(x)
  what <- check_choice(what, c("matrix", "trace", "eta", "sizes", "tree"), "what")
  resolution <- check_number(resolution, "resolution", min = 1, max = 1e4, whole = TRUE)
  switch(what, matrix = plot_irm_matrix(x, resolution, ...), trace = plot_irm_trace(x, ...), eta = plot_irm_eta(x, ...),
         sizes = plot_irm_sizes(x, ...), tree = plot_irm_tree(x, ...))
  invisible(x)
}

plot_irm_matrix <- function(x, resolution, ...) {
  if (x$family == "gaussian") return(plot_real_matrix(x, resolution, ...))
  n <- c(length(x$row_cluster), length(x$col_cluster))
  place <- function(z) order(order(z))
  pairs <- list_pairs(x$run$graph$links)
  if (x$type == "undirected") pairs <- list(from = c(pairs$from, pairs$to), to = c(pairs$to, pairs$from))
  pixels <- pmin(n, resolution)
  i <- ceiling(place(x$row_cluster)[pairs$from] * pixels[1L] / n[1L])
  j <- ceiling(place(x$col_cluster)[pairs$to] * pixels[2L] / n[2L])
  count <- matrix(tabulate(i + pixels[1L] * (j - 1), prod(pixels)), pixels[1L])
  shade <- if (any(count > 0)) pmin(1, count / stats::quantile(count[count > 0], 0.95)) else count
  graphics::plot(NA, xlim = c(0, n[2L]), ylim = c(n[1L], 0), xaxs = "i", yaxs = "i", xlab = "columns by cluster",
                 ylab = "rows by cluster", main = sprintf("%s links", thousands(link_total(x))), ...)
  graphics::rasterImage(grDevices::as.raster(matrix(1 - 0.85 * shade, pixels[1L])), 0, n[1L], n[2L], 0,
                        interpolate = FALSE)
  graphics::abline(h = utils::head(cumsum(tabulate(x$row_cluster)), -1L),
                   v = utils::head(cumsum(tabulate(x$col_cluster)), -1L),
                   col = "#c0392b", lwd = 0.8)
  graphics::box()
}

plot_real_matrix <- function(x, resolution, ...) {
  n <- c(length(x$row_cluster), length(x$col_cluster))
  z <- real_matrix(x$run$graph)[order(x$row_cluster), order(x$col_cluster), drop = FALSE]
  pixel <- function(mode) ceiling(seq_len(n[mode]) * min(n[mode], resolution) / n[mode])
  averaged <- function(v) t(rowsum(t(rowsum(v, pixel(1L))), pixel(2L)))
  z <- averaged(ifelse(is.na(z), 0, z)) / averaged(1 * !is.na(z))
  graphics::plot(NA, xlim = c(0, n[2L]), ylim = c(n[1L], 0), xaxs = "i", yaxs = "i", xlab = "columns by cluster",
                 ylab = "rows by cluster", main = sprintf("%s values", thousands(link_total(x))), ...)
  graphics::rasterImage(grDevices::as.raster(real_colours(z)), 0, n[1L], n[2L], 0, interpolate = FALSE)
  graphics::abline(h = utils::head(cumsum(tabulate(x$row_cluster)), -1L),
                   v = utils::head(cumsum(tabulate(x$col_cluster)), -1L),
                   col = "black", lwd = 0.8)
  graphics::box()
}

plot_irm_trace <- function(x, ...) {
  y <- x$log_posterior
  graphics::matplot(y, type = "l", lty = 1, xlab = "sweep", ylab = "log posterior", main = "Chains",
                    ylim = range(utils::tail(y, max(2L, ceiling(0.9 * nrow(y))))), ...)
  graphics::abline(v = x$burn_in + 0.5, lty = 3)
}

plot_irm_eta <- function(x, ...) {
  k <- dim(x$eta)
  graphics::image(seq_len(k[2L]), seq_len(k[1L]), t(x$eta), col = grDevices::hcl.colors(64L, "Blues", rev = TRUE),
                  ylim = c(k[1L], 0) + 0.5, xlab = "column cluster", ylab = "row cluster",
                  main = sprintf("eta, %.3g to %.3g", min(x$eta), max(x$eta)), ...)
  graphics::box()
}

plot_irm_sizes <- function(x, ...) {
  both <- if (x$type == "bipartite") list(row = x$row_cluster, column = x$col_cluster) else list(node = x$row_cluster)
  old <- graphics::par(mfrow = c(1L, length(both)))
  on.exit(graphics::par(old))
  for (mode in names(both)) {
    graphics::barplot(tabulate(both[[mode]]), names.arg = seq_len(max(both[[mode]])), border = NA,
                      col = "#2c5f8a", xlab = paste(mode, "cluster"), ylab = "nodes", ...)
  }
}

# A bar per group and level, one panel per mode: nodes in the order of the levels, the coarsest first.
plot_irm_tree <- function(x, ...) {
  if (is.null(x$levels)) {
    abort_input("`what = \"tree\"` needs nested groups.", x = "This fit has no nested groups.",
                i = "`irm(prior = irm_prior(degrees = TRUE))` infers them.")
  }
  old <- graphics::par(mfrow = c(length(x$levels), 1L))
  on.exit(graphics::par(old))
  for (mode in names(x$levels)) {
    z <- x$levels[[mode]]
    depth <- ncol(z)
    place <- do.call(order, rev(lapply(seq_len(depth), function(level) z[, level])))
    graphics::plot(NA, xlim = c(0, nrow(z)), ylim = c(0, depth), xaxs = "i", yaxs = "i", yaxt = "n",
                   xlab = c(row = if (length(x$levels) > 1L) "rows" else "nodes", col = "columns")[[mode]],
                   ylab = "level", main = sprintf("%s groups", paste(apply(z, 2L, max), collapse = ", ")), ...)
    graphics::axis(2L, seq_len(depth) - 0.5, seq_len(depth), las = 1L, tick = FALSE)
    for (level in seq_len(depth)) {
      runs <- rle(z[place, level])
      right <- cumsum(runs$lengths)
      graphics::rect(right - runs$lengths, level - 0.95, right, level - 0.05, border = "white",
                     col = grDevices::hcl.colors(max(2L, max(z[, level])), "Set 2")[runs$values])
      wide <- runs$lengths > 0.03 * nrow(z)
      graphics::text((right - runs$lengths / 2)[wide], level - 0.5, runs$values[wide], cex = 0.8)
    }
  }
}

#' @rdname plot.weft_irm
#' @param mode `"row"` or `"col"`.
#' @param top the largest number of names per cluster; those with the most links come first.
#' @export
irm_words <- function(x, mode = c("row", "col"), top = 20L) {
  need_args("x")
  check_irm_fit(x)
  mode <- check_choice(mode, c("row", "col"), "mode")
  top <- check_number(top, "top", min = 1, whole = TRUE)
  z <- if (mode == "row") x$row_cluster else x$col_cluster
  pairs <- list_pairs(x$run$graph$links, x$family == "gaussian")
  ends <- if (x$type != "bipartite") c(pairs$from, pairs$to) else if (mode == "row") pairs$from else pairs$to
  degree <- tabulate(ends, length(z))
  if (x$family == "gaussian") degree[] <- 0L # all have as many values: names keep their order
  label <- names(z) %||% as.character(seq_along(z))
  lapply(split(seq_along(z), z), function(i) utils::head(label[i[order(-degree[i])]], top))
}
