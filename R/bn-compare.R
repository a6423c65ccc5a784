#' Compare networks
#'
#' @param x a network, a learned result with or without edge posteriors, a matrix of posteriors \[from, to\], or a list
#'   of networks or results (for example over prior strengths).
#' @param truth the network to compare with.
#' @param threshold the smallest posterior of an edge, for a matrix of posteriors.
#' @return An object of class `weft_bn_compare`: true and false positive rates of directed edges (`tpr`, `fpr`) and of
#'   the skeleton (`skeleton_tpr`, `skeleton_fpr`), the structural Hamming distance `shd` (a reversed edge counts 1) and
#'   the distance of the equivalence classes, `shd_cpdag`; and `roc`, over thresholds of posteriors or over the entries
#'   of a list. Rates without any cases are NA.
#' @export
#' @examples
#' truth <- matrix(0, 3, 3, dimnames = list(letters[1:3], letters[1:3]))
#' truth["a", "b"] <- truth["b", "c"] <- 1
#' other <- t(truth)
#' bn_compare(other, truth)
bn_compare <- function(x, truth, threshold = 0.5) {
  need_args("x", "truth")
  truth <- as_dag(truth, arg = "truth")
  threshold <- check_number(threshold, "threshold", min = 0, max = 1)
  nodes <- rownames(truth)
  if (is.list(x) && !is.object(x)) {
    if (!length(x)) abort_input("`x` must contain at least one network if it is a list.", x = "It is empty.")
    each <- lapply(x, function(one) bn_compare(one, truth, threshold))
    roc <- data.frame(entry = names(x) %||% as.character(seq_along(x)), tpr = vapply(each, `[[`, 0, "tpr"),
                      fpr = vapply(each, `[[`, 0, "fpr"))
    last <- each[[length(each)]]
    last$roc <- roc
    return(last)
  }
  posterior <- if (inherits(x, "weft_bn")) check_bn(x, "x")$edges else if (is_posterior(x)) check_posterior(x)
  if (!is.null(posterior)) posterior <- align_matrix(posterior, nodes)
  dag <- if (is_posterior(x)) (posterior >= threshold) + 0L else as_dag(x, nodes = nodes, arg = "x")
  result <- c(edge_rates(dag != 0, truth != 0), list(
    shd = hamming(dag, truth),
    shd_cpdag = if (length(find_cycle(dag != 0))) NA_integer_ else hamming(class_of(dag), class_of(truth)),
    roc = if (!is.null(posterior)) posterior_roc(posterior, truth)
  ))
  new_result(result, class = "weft_bn_compare")
}

is_posterior <- function(x) is.matrix(x) && is.double(x) && any(x != 0 & x != 1, na.rm = TRUE)

check_posterior <- function(x) {
  if (is_numbers(x, min = 0, max = 1 + 1e-9)) return(x)
  abort_input("`a` must contain 0 and 1, or posterior probabilities, if it is a matrix.",
              x = if (anyNA(x)) "It has missing values."
                  else sprintf("Its values range from %.3g to %.3g.", min(x), max(x)))
}

align_matrix <- function(x, nodes) {
  if (nrow(x) != length(nodes) || ncol(x) != length(nodes)) {
    abort_input("`a` and `truth` must have the same nodes.", x = paste0("It is ", describe(x), "."))
  }
  x <- name_both_sides(x, "a")
  if (is.null(rownames(x))) return(x)
  if (!setequal(rownames(x), nodes)) {
    abort_input("`a` and `truth` must have the same nodes.", x = not_the_same(rownames(x), nodes))
  }
  x[nodes, nodes, drop = FALSE]
}

share <- function(hits, of) if (of > 0) hits / of else NA_real_

edge_rates <- function(found, truth) {
  off <- row(truth) != col(truth)
  skeleton <- (found | t(found))[upper.tri(found)]
  true_skeleton <- (truth | t(truth))[upper.tri(truth)]
  list(tpr = share(sum(found & truth), sum(truth)), fpr = share(sum(found & !truth & off), sum(!truth & off)),
       skeleton_tpr = share(sum(skeleton & true_skeleton), sum(true_skeleton)),
       skeleton_fpr = share(sum(skeleton & !true_skeleton), sum(!true_skeleton)))
}

# Pairs of nodes whose connection differs.
hamming <- function(a, b) {
  differs <- (a != 0) != (b != 0)
  sum((differs | t(differs))[upper.tri(differs)])
}

posterior_roc <- function(posterior, truth) {
  off <- row(truth) != col(truth)
  scores <- posterior[off]
  is_edge <- truth[off] != 0
  cuts <- sort(unique(c(scores, Inf)), decreasing = TRUE)
  data.frame(threshold = cuts, tpr = vapply(cuts, function(c) share(sum(scores >= c & is_edge), sum(is_edge)), 0),
             fpr = vapply(cuts, function(c) share(sum(scores >= c & !is_edge), sum(!is_edge)), 0))
}

#' The equivalence class of a network
#'
#' The completed partially directed graph: edges of v-structures and those that Meek's rules (1995) orient keep their
#' direction; all others are undirected.
#'
#' @param dag a network; see [bn_convert()].
#' @return A matrix \[from, to\]; an edge without direction has both entries.
#' @export
#' @examples
#' dag <- matrix(0, 3, 3, dimnames = list(letters[1:3], letters[1:3]))
#' dag["a", "b"] <- dag["b", "c"] <- 1
#' bn_cpdag(dag)
bn_cpdag <- function(dag) {
  need_args("dag")
  class_of(as_dag(dag))
}

# Of a matrix of 0 and 1 that is known to have no cycle.
class_of <- function(dag) {
  dag <- dag != 0
  linked <- dag | t(dag)
  directed <- dag & FALSE
  for (child in seq_len(nrow(dag))) {
    parents <- which(dag[, child])
    apart <- parents[vapply(parents, function(a) any(!linked[a, setdiff(parents, a)]), NA)]
    directed[apart, child] <- TRUE
  }
  repeat {
    open <- dag & !directed # edges without direction, as they stand in the graph
    grown <- directed | (open & (meek_chain(directed, linked) | meek_triangle(directed) |
                          meek_kite(directed, linked, open)))
    if (all(grown == directed)) break
    directed <- grown
  }
  out <- directed | (dag & !directed) | t(dag & !directed)
  matrix(as.integer(out), nrow(dag), dimnames = dimnames(dag))
}

# a -> b where some x -> a, x not linked to b: the other direction would make a v-structure.
meek_chain <- function(directed, linked) crossprod(directed, !linked & row(linked) != col(linked)) > 0

# a -> b where a -> x -> b.
meek_triangle <- function(directed) (directed %*% directed) > 0

# a -> b where a - x -> b and a - y -> b with x and y not linked.
meek_kite <- function(directed, linked, open) {
  both <- open | t(open)
  out <- directed & FALSE
  for (b in which(colSums(directed) > 1)) {
    into <- which(directed[, b])
    for (a in which(linked[, b])) {
      x <- into[both[a, into]]
      if (length(x) > 1L && any(!linked[x, x][upper.tri(diag(length(x)))])) out[a, b] <- TRUE
    }
  }
  out
}

#' @rdname bn_compare
#' @param x an object returned by `bn_compare()`.
#' @param ... ignored.
#' @export
print.weft_bn_compare <- function(x, ...) {
  check_comparison(x)
  cat(sprintf("Edges: %s of the true ones found, %s of the others\n", percent(x$tpr), percent(x$fpr)))
  cat(sprintf("Skeleton: %s and %s\n", percent(x$skeleton_tpr), percent(x$skeleton_fpr)))
  cat(sprintf("Structural Hamming distance %d (%d between equivalence classes)\n", as.integer(x$shd),
              as.integer(x$shd_cpdag)))
  if (!is.null(x$roc)) cat(sprintf("ROC curve with %d points\n", nrow(x$roc)))
  invisible(x)
}

percent <- function(x) if (is.na(x)) "none" else sprintf("%.1f%%", 100 * x)

#' @rdname bn_compare
#' @export
as.data.frame.weft_bn_compare <- function(x, ...) {
  check_comparison(x)
  as.data.frame(unclass(x)[c("tpr", "fpr", "skeleton_tpr", "skeleton_fpr", "shd", "shd_cpdag")])
}

#' @rdname bn_compare
#' @export
plot.weft_bn_compare <- function(x, ...) {
  picture <- roc_picture(x, "x")
  old <- graphics::par(pty = "s")
  on.exit(graphics::par(old))
  graphics::plot(c(0, 1), c(0, 1), type = "n", las = 1, xlab = picture$xlab, ylab = picture$ylab, main = picture$title)
  graphics::abline(0, 1, col = "grey80")
  if (picture$curve) graphics::lines(x$roc$fpr, x$roc$tpr, col = "#2c5f8a", lwd = 2)
  else {
    graphics::points(x$roc$fpr, x$roc$tpr, pch = 19, col = "#2c5f8a")
    graphics::text(x$roc$fpr, x$roc$tpr, x$roc$entry, pos = 4, cex = 0.8)
  }
  invisible(x)
}
