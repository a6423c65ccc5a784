# Pictures of a ranking of genes: volcano plot, fold change by mean, and the distribution of p-values.

#' Plot a ranking of genes
#'
#' `"volcano"` draws the fold change and the p-value of every gene, `"mean"` the fold change against the mean value, and
#' `"p"` the histogram of the p-values, with what genes without any difference would give.
#'
#' @param x an object returned by [gene_ranking()].
#' @param which `"volcano"`, `"mean"` or `"p"`.
#' @param alpha the false discovery rate up to which genes are coloured.
#' @param top the number of genes to label.
#' @param ... passed on to [graphics::plot()] or, for `"p"`, to [graphics::hist()].
#' @return `x`, invisibly.
#' @export
#' @examples
#' e <- weft_example("expression", n = 60, p = 40)
#' r <- gene_ranking(e$x, e$class)
#' plot(r)
#' plot(r, "mean")
#' plot(r, "p")
plot.weft_ranking <- function(x, which = c("volcano", "mean", "p"), alpha = 0.05, top = 10L, ...) {
  which <- check_choice(which, c("volcano", "mean", "p"), "which")
  checked_ranking(x, "x")
  alpha <- check_number(alpha, "alpha", min = 0, max = 1)
  top <- check_shown(top, "top")
  if (!any(is.finite(x$log10_p))) abort_input("`x` must contain tested genes.", x = "It has none.")
  drawing("x", switch(which, volcano = draw_volcano(x, alpha, top, ...),
                      mean = draw_mean_difference(x, alpha, top, ...), p = draw_p_values(x, ...)))
  invisible(x)
}

# Purple where genes are higher, green where lower, grey where not beyond `alpha`: as in heat maps.
ranking_colours <- function(r, alpha) {
  found <- !is.na(r$q_value) & r$q_value <= alpha
  ifelse(!found, "#b4bcc4", ifelse(r$log2_fold_change > 0, "#762a83", "#1b7837"))
}

change_label <- function(model) {
  if (length(model$levels) == 2L) sprintf("log2 fold change, %s - %s", plain_text(model$levels[2L]),
                                          plain_text(model$levels[1L]))
  else if (is.null(model$levels)) sprintf("log2 change per unit of %s", plain_text(model$term))
  else "log2 fold change of the most different pair"
}

draw_volcano <- function(r, alpha, top, ...) {
  draw_genes(r, r$log2_fold_change, -r$log10_p, alpha, top, xlab = change_label(attr(r, "model")),
             ylab = expression(-log[10](p)), ...)
}

draw_mean_difference <- function(r, alpha, top, ...) {
  draw_genes(r, r$mean, r$log2_fold_change, alpha, top, xlab = "mean", ylab = change_label(attr(r, "model")), ...)
  graphics::abline(h = 0, col = "grey40", lty = 2)
}

# Points for all genes, those beyond `alpha` on top, and the first `top` of these with their names.
draw_genes <- function(r, x, y, alpha, top, ...) {
  shown <- which(is.finite(x) & is.finite(y))
  colour <- ranking_colours(r, alpha)
  found <- !is.na(r$q_value) & r$q_value <= alpha
  shown <- shown[order(found[shown])]
  wide <- grDevices::extendrange(x[shown], f = 0.12)
  settings <- list(x = x[shown], y = y[shown], pch = 16, cex = if (length(shown) > 2000L) 0.45 else 0.7,
                   col = colour[shown], xlim = wide, ylim = grDevices::extendrange(y[shown], f = c(0.04, 0.08)),
                   las = 1, bty = "l")
  do.call(graphics::plot, utils::modifyList(settings, list(...)))
  named <- utils::head(which(found & is.finite(x) & is.finite(y)), top)
  if (length(named)) {
    write_names(cbind(x, y), shown_names(r$gene), named, 0.4 * graphics::strwidth("o"), 0.7, rim = TRUE,
                crowd = named)
  }
}

draw_p_values <- function(r, ...) {
  p <- r$p_value[!is.na(r$p_value)]
  old <- graphics::par(mar = replace(graphics::par("mar"), 2L, 4.4)) # for counts of thousands
  on.exit(graphics::par(old))
  settings <- list(x = p, breaks = seq(0, 1, 0.05), col = "#8fb3d1", border = "white", main = "", xlab = "p-value",
                   ylab = "", las = 1)
  do.call(graphics::hist, utils::modifyList(settings, list(...)))
  graphics::title(ylab = "genes", line = 3.2)
  graphics::abline(h = length(p) / 20, lty = 2)
}
