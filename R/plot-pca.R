#' Plot principal components
#'
#' `plot()` is a scree plot: it shows proportions of the variance as bars, and their cumulative sum as a line.
#' `biplot()` is [stats::biplot()] of the scores and loadings. `autoplot()` draws scores with ggplot2, coloured by a
#' variable if one is given.
#'
#' @param x,object an object returned by [pca()].
#' @param top the largest number of components to show.
#' @param components two components.
#' @param color a vector with one value per row.
#' @param ... passed on to [graphics::barplot()] by `plot()`.
#' @return `plot()`: `x`, invisibly; `autoplot()`: a ggplot.
#' @export
#' @examples
#' fit <- pca(iris[1:4], scale = TRUE)
#' plot(fit)
#' biplot(fit)
plot.weft_pca <- function(x, top = 20L, ...) {
  top <- check_number(top, "top", min = 1, whole = TRUE)
  check_pca(x, "x")
  share <- 100 * utils::head(x$share, top)
  settings <- list(height = share, names.arg = seq_along(share), col = "#2c5f8a", border = NA, las = 1,
                   ylim = c(0, 105), yaxs = "i", xlab = "component", ylab = "proportion of variance (%)", main = "")
  at <- do.call(graphics::barplot, utils::modifyList(settings, list(...)))
  graphics::lines(at, cumsum(share), type = "o", pch = 16, cex = 0.7, col = "#b3541e")
  graphics::legend("topleft", bty = "n", legend = c("share", "cumulative"), fill = c("#2c5f8a", NA), border = NA,
                   col = c(NA, "#b3541e"), pch = c(NA, 16), lty = c(NA, 1))
  invisible(x)
}

#' @rdname plot.weft_pca
#' @exportS3Method ggplot2::autoplot
autoplot.weft_pca <- function(object, components = 1:2, color = NULL, ...) {
  check_pca(object, "object")
  if (!is.numeric(components) || length(components) != 2L || !all(components %in% seq_along(object$sdev))) {
    abort_input(sprintf("`components` must contain two numbers from 1 to %d.", length(object$sdev)),
                x = paste0("It is ", describe(components), "."))
  }
  if (!is.null(color) && !is.atomic(color)) {
    abort_input("`color` must be a factor or a vector.", x = paste0("It is ", describe(color), "."))
  }
  check_factor(color, "`color`")
  if (!is.null(color) && length(color) != nrow(object$x)) {
    abort_input(sprintf("`color` must have one value per row (%d).", nrow(object$x)),
                x = sprintf("It has %d.", length(color)))
  }
  data <- data.frame(first = object$x[, components[1L]], second = object$x[, components[2L]])
  label <- sprintf("PC%d (%.1f %%)", components, 100 * object$share[components])
  if (is.null(color)) {
    points <- ggplot2::geom_point(color = "#2c5f8a", alpha = 0.7)
  } else {
    data$color <- if (is.factor(color)) color else as.vector(unclass(color))
    points <- ggplot2::geom_point(ggplot2::aes(color = color), alpha = 0.7)
  }
  own <- if (is.factor(color)) ggplot2::scale_color_manual(values = class_palette(nlevels(color)))
  ggplot2::ggplot(data, ggplot2::aes(x = first, y = second)) + points + own +
    ggplot2::labs(x = label[1L], y = label[2L], color = NULL) + ggplot2::coord_equal() + ggplot2::theme_minimal()
}

utils::globalVariables(c("first", "second"))
