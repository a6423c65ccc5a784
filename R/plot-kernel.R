#' Plot densities
#'
#' In one dimension, draws the curve, with a rug of the points; in two, contours over the points, or a surface in
#' perspective.
#'
#' @param x an object returned by [kde()], of one or two dimensions.
#' @param style for two dimensions, `"contour"` or `"perspective"`.
#' @param n the number of grid points along each dimension.
#' @param points whether to draw the points (at most 2,000 of them).
#' @param theta,phi angles of the perspective, in degrees.
#' @param ... passed on to the plotting function.
#' @return The evaluated grid, invisibly: a list of `x`, `y` and for two dimensions `z`.
#' @export
#' @examples
#' d <- kde(faithful)
#' plot(d)
#' plot(d, style = "perspective")
plot.weft_kde <- function(x, style = c("contour", "perspective"), n = if (x$d == 1L) 400 else 80, points = TRUE,
                          theta = -30, phi = 30, ...) {
  style <- check_choice(style, c("contour", "perspective"), "style")
  points <- check_flag(points, "points")
  theta <- check_number(theta, "theta", min = -360, max = 360)
  phi <- check_number(phi, "phi", min = -360, max = 360)
  picture <- density_picture(x, n, "x")
  axes <- picture$axes
  if (x$d == 1L) return(plot_curve(x, picture, points, ...))
  grid <- list(x = axes[[1L]], y = axes[[2L]], z = matrix(picture$density, length(axes[[1L]])))
  if (style == "contour") plot_contours(x, grid, picture$points, picture$names, points, ...)
  else plot_surface(x, grid, picture$names, theta, phi, ...)
  invisible(grid)
}

plot_range <- function(x, j, n) {
  h <- if (is.matrix(x$bandwidth)) sqrt(diag(x$bandwidth)) else rep_len(x$bandwidth, x$d)
  reach <- if (is_compact(x$kernel)) 1.05 else 3
  r <- range(x$data[, j])
  seq(r[1L] - reach * h[j], r[2L] + reach * h[j], length.out = n)
}

plot_curve <- function(x, picture, points, ...) {
  at <- picture$axes[[1L]]
  f <- picture$density
  settings <- list(x = at, y = f, type = "l", lwd = 2, col = "#2c5f8a", xlab = picture$names, ylab = "density",
                   ylim = c(0, max(f) * 1.05), main = sprintf("%.0f points, bandwidth %.4g", x$n, x$bandwidth[1L]))
  do.call(graphics::plot.default, utils::modifyList(settings, list(...)))
  graphics::polygon(c(at, rev(at)), c(f, 0 * f), border = NA, col = grDevices::adjustcolor("#2c5f8a", 0.15))
  if (points) graphics::rug(picture$points[, 1L], col = grDevices::adjustcolor("black", 0.3), quiet = TRUE)
  invisible(list(x = at, y = f))
}

plot_contours <- function(x, grid, shown, names, points, ...) {
  settings <- list(x = range(grid$x), y = range(grid$y), type = "n", xlab = names[1L], ylab = names[2L], xaxs = "i",
                   yaxs = "i", main = sprintf("%.0f points, %s kernel", x$n, x$kernel))
  do.call(graphics::plot.default, utils::modifyList(settings, list(...)))
  levels <- max(grid$z) * c(0.01, seq(0.1, 0.9, by = 0.1))
  colours <- rev(grDevices::hcl.colors(length(levels), "Blues 3"))
  graphics::.filled.contour(grid$x, grid$y, grid$z, c(levels, max(grid$z) * 1.001), colours)
  if (points) graphics::points(shown, pch = 16, cex = 0.35, col = grDevices::adjustcolor("black", 0.35))
  graphics::contour(grid$x, grid$y, grid$z, levels = levels, add = TRUE, drawlabels = FALSE, col = "#1b3a57", lwd = 0.7)
  graphics::box()
}

plot_surface <- function(x, grid, names, theta, phi, ...) {
  n <- length(grid$x)
  z <- grid$z
  facet <- (z[-1L, -1L] + z[-1L, -n] + z[-n, -1L] + z[-n, -n]) / 4
  colours <- rev(grDevices::hcl.colors(64, "Blues 3"))
  fill <- colours[pmin(64, 1 + floor(63 * facet / max(facet)))]
  settings <- list(x = grid$x, y = grid$y, z = z, theta = theta, phi = phi, col = fill, border = NA, shade = 0.3,
                   expand = 0.6, ticktype = "detailed", cex.axis = 0.7,
                   # empty lines take the names off the numbers
                   xlab = paste0("\n", names[1L]), ylab = paste0("\n", names[2L]), zlab = "\n\ndensity",
                   main = sprintf("%.0f points, %s kernel", x$n, x$kernel))
  do.call(graphics::persp, utils::modifyList(settings, list(...)))
}

#' @rdname predict.weft_kernel_regression
#' @export
plot.weft_kernel_regression <- function(x, n = 300, level = 0.95, ...) {
  plot_band(regression_picture(x, n, level, "x"),
            sprintf("Kernel regression, bandwidth %.4g, %g%% bands", x$bandwidth[1L], 100 * level), ...)
  invisible(x)
}

#' @rdname predict.weft_gp
#' @param n the number of points at which the curve is drawn.
#' @export
plot.weft_gp <- function(x, n = 300, ...) {
  plot_band(gp_picture(x, n, "x"), sprintf("Gaussian process, %s kernel, 95%% bands", x$kernel), ...)
  invisible(x)
}

#' @rdname predict.weft_kernel_pca
#' @export
plot.weft_kernel_pca <- function(x, ...) {
  picture <- kernel_pca_picture(x)
  settings <- list(x = picture$data$x, y = picture$data$y, pch = 16, cex = 0.7,
                   col = grDevices::adjustcolor("#2c5f8a", 0.7), xlab = picture$xlab, ylab = picture$ylab,
                   main = sprintf("Kernel principal components, %s kernel", x$kernel))
  do.call(graphics::plot.default, utils::modifyList(settings, list(...)))
  invisible(x)
}

# Points, and a curve with its band where it is known.
plot_band <- function(picture, main, ...) {
  curve <- picture$curve
  settings <- list(x = picture$points$x, y = picture$points$y, pch = 16, cex = 0.5,
                   col = grDevices::adjustcolor("black", 0.3), xlab = picture$xlab, ylab = picture$ylab, main = main,
                   ylim = range(picture$points$y, curve$lower, curve$upper, finite = TRUE))
  do.call(graphics::plot.default, utils::modifyList(settings, list(...)))
  known <- !is.na(curve$y)
  run <- cumsum(c(TRUE, diff(known) != 0))
  for (part in split(which(known), run[known])) {
    graphics::polygon(c(curve$x[part], rev(curve$x[part])), c(curve$lower[part], rev(curve$upper[part])), border = NA,
                      col = grDevices::adjustcolor("#2c5f8a", 0.25))
  }
  graphics::lines(curve$x, curve$y, lwd = 2, col = "#2c5f8a")
}
