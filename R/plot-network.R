# Drawing a network with base graphics: components are laid out each by itself so that distances on paper follow
# distances along edges (Kamada and Kawai's stress, by majorisation), and packed side by side, large ones first. No
# randomness.

#' Draw a network
#'
#' Features are drawn as points, larger with more edges; edges are lines, wider with more weight. Names are written if
#' they do not overlap, starting with the features with the most edges. The layout is the same in every call.
#'
#' @param x an object returned by [mi_network()].
#' @param edges the number of edges to draw, in decreasing order of weight; by default two and a half times the number
#'   of features, or the number of features if there are more than a hundred.
#' @param labels `TRUE`, `FALSE`, or the names to write.
#' @param groups a factor or vector, one value per feature, shown by colour; by default the neighbourhoods are not
#'   coloured.
#' @param main the title.
#' @param ... ignored.
#' @return `x`, invisibly.
#' @export
#' @examples
#' plot(mi_network(mtcars, "aracne", estimator = "spearman"))
plot.weft_network <- function(x, edges = NULL, labels = TRUE, groups = NULL, main = NULL, ...) {
  ends <- network_ends(x)
  weight <- x[ends]
  p <- nrow(x)
  most <- max(10, if (p <= 100) ceiling(2.5 * p) else p, 250 * (p > 100))
  if (!is.null(main) && !is_word(bare_text(main))) {
    abort_input("`main` must be one string.", x = paste0("It is ", describe(main), "."))
  }
  if (!is.null(edges)) most <- check_number(edges, "edges", min = 0, whole = TRUE)
  groups <- check_groups(groups, p)
  labels <- check_network_labels(labels)
  shown <- min(most, nrow(ends))
  drawn <- if (shown > 0) which(weight >= weight[shown]) else integer()
  keep <- sort(unique(c(ends[drawn, ])))
  at <- matrix(match(ends[drawn, ], keep), ncol = 2L)
  w <- matrix(0, length(keep), length(keep))
  w[rbind(at, at[, 2:1, drop = FALSE])] <- weight[drawn]
  if (is.null(main)) main <- network_title(x, shown, nrow(ends), p - length(keep))
  old <- graphics::par(mar = c(0.5, 0.5, 2.5, 0.5))
  on.exit(graphics::par(old))
  graphics::plot.new()
  if (!length(keep)) {
    graphics::title(main, cex.main = 1)
    return(invisible(x))
  }
  place <- network_layout(w)
  range_of <- function(v) range(v) + c(-1, 1) * max(0.06 * diff(range(v)), 0.5)
  graphics::plot.window(range_of(place[, 1L]), range_of(place[, 2L]), asp = 1)
  graphics::title(main, cex.main = 1)
  draw_edges(place, w)
  colour <- if (is.null(groups)) rep("#2c5f8a", length(keep)) else group_colours(groups)[keep]
  draw_features(place, colnames(x)[keep], rowSums(w > 0), labels, colour)
  if (!is.null(groups)) draw_groups(groups)
  invisible(x)
}

check_network_labels <- function(labels) {
  labels <- bare_text(labels)
  if (is.character(labels) || isTRUE(labels) || isFALSE(labels)) return(labels)
  abort_input("`labels` must be TRUE, FALSE or the names of nodes to label.",
              x = paste0("It is ", describe(labels), "."))
}

# Points, larger with more edges, and their names: all of them, some, or none (labels as in plot.weft_network()).
draw_features <- function(place, names, degree, labels, colour) {
  size <- 0.5 + 1.5 * sqrt(degree / max(degree))
  if (length(names) > 100) size <- size * 0.7
  graphics::points(place, pch = 21, cex = size, bg = colour, col = "white", lwd = 0.7)
  if (isFALSE(labels)) return(invisible())
  if (is.character(labels)) names[!names %in% labels] <- ""
  draw_labels(place, names, degree, size)
}

network_title <- function(x, shown, all, left_out) {
  text <- sprintf("%s network: %s", attr(x, "method") %||% "",
                  if (shown < all) sprintf("strongest %d of %d edges", shown, all)
                                                               else sprintf("%d edges", all))
  if (left_out > 0) text <- paste0(text,
                                   sprintf("; %d feature%s without edges", left_out, if (left_out == 1) "" else "s"))
  trimws(text)
}

group_palette <- function(count) grDevices::hcl.colors(max(count, 2L), "Dark 3")[seq_len(count)]

# NULL, or a factor with one value for each of p features.
check_groups <- function(groups, p) {
  if (is.null(groups)) return(NULL)
  if (!is.atomic(groups)) {
    abort_input("`groups` must be a factor or a vector.", x = paste0("It is ", describe(groups), "."))
  }
  check_factor(groups, "`groups`")
  if (length(groups) != p) {
    abort_input("`groups` must have one value per feature.",
                x = sprintf("It has %d for %d features.", length(groups), p))
  }
  if (is.factor(groups)) return(groups)
  groups <- sortable_text(as.vector(unclass(groups)))
  factor(groups, sort(unique(groups), method = "radix")) # colours are the same in every locale
}

group_colours <- function(groups) {
  group_palette(nlevels(groups))[as.integer(groups)]
}

draw_groups <- function(groups) {
  graphics::legend("bottomleft", plain_text(levels(groups)), pch = 21, pt.bg = group_palette(nlevels(groups)),
                   col = "white", pt.cex = 1.3, bty = "n", cex = 0.8)
}

draw_edges <- function(place, w) {
  at <- which(upper.tri(w) & w > 0, arr.ind = TRUE)
  weight <- w[at]
  # wider than all others
  if (any(is.infinite(weight))) weight[is.infinite(weight)] <- max(weight[is.finite(weight)], 0) + 1
  share <- if (diff(range(weight)) > 0) (weight - min(weight)) / diff(range(weight)) else rep(1, length(weight))
  by_weight <- order(weight)
  at <- at[by_weight, , drop = FALSE]
  share <- share[by_weight]
  graphics::segments(place[at[, 1L], 1L], place[at[, 1L], 2L], place[at[, 2L], 1L], place[at[, 2L], 2L],
                     lwd = 0.6 + 2 * share, col = grDevices::grey(0.8 - 0.45 * share))
}

# Names of the genes with the most edges first, as far as there is room.
draw_labels <- function(place, names, degree, size) {
  cex <- if (nrow(place) <= 30) 0.9 else if (nrow(place) <= 80) 0.75 else 0.6
  write_names(place, names, utils::head(order(-degree, seq_along(names)), 100L), size * graphics::strwidth("o") * 0.45,
              cex, rim = TRUE)
}

# ---- layout ----

# Positions of all nodes of a weighted adjacency matrix, about one unit per edge, in a picture of this shape.
network_layout <- function(w, shape = 1.25) {
  component <- graph_components(w > 0)
  parts <- split(seq_len(nrow(w)), component)
  parts <- parts[order(-lengths(parts), vapply(parts, `[`, 0L, 1L))]
  pieces <- lapply(parts, function(nodes) turn_wide(stress_layout(w[nodes, nodes, drop = FALSE])))
  corners <- pack_boxes(vapply(pieces, function(xy) apply(xy, 2L, function(v) diff(range(v))), numeric(2L)) + c(1, 0.7),
                        shape)
  place <- matrix(0, nrow(w), 2L)
  for (k in seq_along(parts)) {
    least <- apply(pieces[[k]], 2L, min)
    place[parts[[k]], ] <- sweep(pieces[[k]], 2L, corners[, k] - least, "+")
  }
  place
}

graph_components <- function(linked) {
  component <- integer(nrow(linked))
  for (start in seq_len(nrow(linked))) {
    if (component[start]) next
    mark <- max(component) + 1L
    front <- start
    while (length(front)) {
      component[front] <- mark
      front <- which(colSums(linked[front, , drop = FALSE]) > 0 & component == 0L)
    }
  }
  component
}

# Steps along edges between all nodes of a connected graph.
graph_distances <- function(linked) {
  d <- matrix(Inf, nrow(linked), nrow(linked))
  diag(d) <- 0
  reach <- diag(nrow(linked)) > 0
  for (step in seq_len(nrow(linked))) {
    further <- (reach %*% linked) > 0 & is.infinite(d)
    if (!any(further)) break
    d[further] <- step
    reach <- further
  }
  d
}

# Minimises the sum over pairs of d^-2 (|x_i - x_j| - d)^2 by majorisation, from classical scaling.
stress_layout <- function(w, rounds = 150L) {
  n <- nrow(w)
  if (n == 1L) return(matrix(0, 1L, 2L))
  if (n == 2L) return(cbind(c(0, 1), 0))
  d <- graph_distances(w > 0)
  xy <- suppressWarnings(stats::cmdscale(d, 2L))
  angle <- seq_len(n) * 2.399963 # a golden spiral, so that no two nodes begin in one place
  spread <- 0.1 * sqrt(seq_len(n) / n) * cbind(cos(angle), sin(angle))
  xy <- cbind(xy, matrix(0, n, 2L))[, 1:2] + spread
  weight <- 1 / d^2
  diag(weight) <- 0
  laplacian <- diag(rowSums(weight)) - weight
  inverse <- solve(laplacian + 1 / n)
  for (round in seq_len(rounds)) {
    apart <- as.matrix(stats::dist(xy))
    b <- -weight * d / pmax(apart, 1e-9)
    diag(b) <- 0
    diag(b) <- -rowSums(b)
    before <- xy
    xy <- inverse %*% (b %*% xy)
    if (max(abs(xy - before)) < 1e-3) break
  }
  xy
}

# The longer axis lies flat.
turn_wide <- function(xy) {
  if (nrow(xy) < 3L) return(xy)
  centred <- scale(xy, scale = FALSE)
  axes <- svd(centred)$v
  flip <- sign(colSums(centred %*% axes * seq_len(nrow(xy))))
  sweep(centred %*% axes, 2L, ifelse(flip == 0, 1, flip), "*")
}

# Lower left corners of boxes (width, height by column) set on shelves of about the width of the whole.
pack_boxes <- function(size, shape) {
  width <- max(size[1L, 1L], shape * sqrt(sum(size[1L, ] * size[2L, ])))
  corners <- matrix(0, 2L, ncol(size))
  x <- y <- high <- 0
  for (k in seq_len(ncol(size))) {
    if (x > 0 && x + size[1L, k] > width) {
      y <- y - high
      x <- high <- 0
    }
    corners[, k] <- c(x, y - size[2L, k])
    x <- x + size[1L, k]
    high <- max(high, size[2L, k])
  }
  corners
}
