#' Trees for kernel sums
#'
#' `kernel_tree()` builds a binary tree of points, which saves time if [kernel_sum()] is called several times with
#' different weights, kernels or bandwidths. The shortest call is `kernel_tree(x)`; the result is given as
#' `control = list(tree = )`.
#'
#' The types differ in how a node is split: `"kd"` at the median of its widest coordinate, `"ball"` along the line
#' through two far points, `"vp"` by the distance from a vantage point, `"rp"` along a random direction. All splits are
#' by rank, so leaves are full. Nodes store the box around their points and, except in kd-trees, also a ball. kd-trees
#' are built fastest, and are best in few dimensions.
#'
#' A tree is an ordinary R object that can be saved with `saveRDS()`. It contains the version of its format, and
#' functions stop with an error if it comes from another version.
#'
#' @param x points in rows: a numeric matrix or data frame, or a vector in one dimension.
#' @param type `"kd"`, `"ball"`, `"vp"` or `"rp"`.
#' @param leaf_size the largest number of points in a leaf. Multiples of 32 suit the vector code.
#' @param seed a whole number for type `"rp"`; by default, it is drawn from R's generator.
#' @param run see [weft_run()].
#' @param ... not used; unknown arguments cause an error.
#' @return An object of class `weft_kernel_tree`.
#' @export
#' @examples
#' set.seed(1)
#' x <- matrix(rnorm(4000), ncol = 2)
#' tree <- kernel_tree(x)
#' tree
#' plot(tree)
#' kernel_sum(x[1:3, ], weights = seq_len(2000), bandwidth = 0.2, control = list(tree = tree))
kernel_tree <- function(x, type = c("kd", "ball", "vp", "rp"), leaf_size = 32, seed = NULL, run = NULL, ...) {
  run <- as_run(run)
  check_dots(..., .known = kernel_names_elsewhere)
  started <- proc.time()[[3L]]
  need_args("x")
  type <- check_choice(type, tree_types, "type")
  leaf_size <- check_number(leaf_size, "leaf_size", min = 1, max = 2^20, whole = TRUE)
  x <- kernel_points(x, "x")
  control <- run_control("cpu", run$threads, run$progress, task = "Building a tree")
  check_seed(seed)
  key <- if (type == "rp") kernel_key(seed) else c(0, 0)
  points <- .Call(C_weft_kernel_points, x, numeric(ncol(x)), NULL, FALSE, control)
  native <- grow_tree(points, type, leaf_size, key, control)
  new_result(class = "weft_kernel_tree", list(
    type = type, n = nrow(x), d = ncol(x), leaf_size = leaf_size, names = colnames(x),
    native = native, digest = digest_of(native$x),
    seconds = proc.time()[[3L]] - started
  ))
}

tree_types <- c("kd", "ball", "vp", "rp")

grow_tree <- function(points, type, leaf_size, key, control) {
  if (ceiling(ncol(points$x) / leaf_size) >= 2^30) {
    abort_input("A tree must have fewer than 2^30 leaves.",
                x = sprintf("%d points give %.0f leaves of size %g.", ncol(points$x),
                                                                        ceiling(ncol(points$x) / leaf_size), leaf_size),
                i = "Use a larger `leaf_size`.")
  }
  .Call(C_weft_tree_grow, points, list(type = type, leaf_size = leaf_size, key = as.double(key)), control)
}

# A wrong seed is an error even where nothing is drawn.
check_seed <- function(seed) if (!is.null(seed)) kernel_key(seed)

# Two words for the draws: from the seed, or from R's random numbers.
kernel_key <- function(seed) {
  if (is.null(seed)) return(floor(stats::runif(2) * 2^32))
  seed <- check_number(seed, "seed", min = 0, max = 2^53, whole = TRUE)
  c(seed %/% 2^32, seed %% 2^32)
}

# A tree may come from a file: what native code takes from it is looked at first, and done again where it follows from
# the points. points: NULL, or those that the tree must be of.
check_tree <- function(tree, points = NULL) {
  check_tree_shape(tree)
  if (!identical(tree$digest, digest_of(tree$native$x))) damaged_tree("native$x")
  wrong <- wrong_in_tree(tree$native, tree$n, tree$d, tree$type, points)
  if (is.null(wrong)) return(tree)
  if (wrong == "points") {
    abort_input("`tree` must be built from `reference`.", x = "Its points differ or have another order.")
  }
  damaged_tree(wrong)
}

# All but its arrays.
check_tree_shape <- function(tree) {
  if (!inherits(tree, "weft_kernel_tree") || !is.list(tree)) {
    abort_input("`tree` must be an object returned by `kernel_tree()`.", x = paste0("It is ", describe(tree), "."))
  }
  check_format(tree, "tree")
  parts <- list(type = function(v) is_word(v, tree_types), n = is_count, d = function(v) is_count(v, 1),
                leaf_size = function(v) is_count(v, 1) && v <= 2^20, names = function(v) is_names(v, tree$d),
                native = function(v) {
                  is.list(v) && is_number(v$leaf_size) && v$leaf_size == tree$leaf_size && is.matrix(v$x) &&
                    all(dim(v$x) == c(tree$d, tree$n))
                },
                seconds = function(v) is_number(v, 0))
  for (name in names(parts)) if (!isTRUE(parts[[name]](tree[[name]]))) damaged_tree(name)
}

damaged_tree <- function(part) {
  abort_input("`tree` must not have changed since `kernel_tree()` returned it.",
              x = sprintf("Its part `%s` is damaged.", part),
              i = "Build it again with `kernel_tree()`.")
}

# NULL, or the name of the array that a tree of n points in d dimensions cannot have; "points": they are not those
# given, rescaled.
wrong_in_tree <- function(native, n, d, type, points = NULL, bandwidth = list(scale = NULL, full = FALSE)) {
  origin <- if (is.null(points) || !nrow(points)) numeric(d) else as.double(points[1L, ])
  expected <- list(type = type, n = n, d = d, columns = points, origin = origin, scale = bandwidth$scale,
                   full = bandwidth$full)
  .Call(C_weft_tree_check, native, expected, control_of_size(as.double(n) * d))
}

# The points in the order of the rows that the tree was made from.
tree_points <- function(tree) {
  x <- matrix(0, tree$n, tree$d, dimnames = list(NULL, tree$names))
  x[tree$native$order + 1L, ] <- t(tree$native$x)
  x
}

# The trees of a problem: its own where the bandwidth is one number, else of the rescaled points.
native_trees <- function(problem, only_query = FALSE) {
  if (is.function(problem$trees)) return(problem$trees())
  key <- c(0, 0)
  grow <- function(x, type, leaf_size) grow_tree(native_points(x, problem), type, leaf_size, key, problem$control)
  if (!is.null(problem$grown)) {
    return(list(reference = problem$grown, query = if (problem$self) problem$grown else grow(problem$query, "kd", 32)))
  }
  usable <- !is.null(problem$tree$native) && is.null(problem$bandwidth$scale)
  if (only_query && !(problem$self && usable)) return(list(query = grow(problem$query, "kd", 32)))
  if (!is.null(problem$tree) && problem$tree$type == "rp") key <- kernel_key(problem$seed)
  reference <- if (usable) problem$tree$native
               else grow(problem$reference, problem$tree$type %||% "kd", problem$tree$leaf_size %||% 32)
  list(reference = reference, query = if (problem$self) reference else grow(problem$query, "kd", 32))
}

#' Print and plot trees
#'
#' `plot()` draws the boxes of a tree of two dimensions level by level over its points.
#'
#' @param x an object returned by [kernel_tree()].
#' @param depth the deepest level to draw; the root has level 0.
#' @param ... passed on to [graphics::plot.default()] by `plot()`, ignored by `print()`.
#' @return `x`, invisibly.
#' @examples
#' tree <- kernel_tree(as.matrix(faithful))
#' tree
#' plot(tree, depth = 4)
#' @export
print.weft_kernel_tree <- function(x, ...) {
  check_tree_shape(x)
  nodes <- max(0, 2 * ceiling(x$n / x$leaf_size) - 1)
  cat_wrapped(sprintf(paste("<weft_kernel_tree> %s tree of %d points in %d dimension%s, %.0f nodes, leaf size at",
                            "most %d (built in %s)"),
              x$type, x$n, x$d, if (x$d == 1L) "" else "s", nodes, x$leaf_size, seconds_text(x$seconds)))
  invisible(x)
}

#' @rdname print.weft_kernel_tree
#' @export
plot.weft_kernel_tree <- function(x, depth = 6, ...) {
  picture <- tree_picture(x, depth, "x")
  settings <- list(x = picture$points[, 1L], y = picture$points[, 2L], pch = 16, cex = 0.3, col = "#9aa5b1",
                   xlab = picture$names[1L], ylab = picture$names[2L], main = picture$title)
  do.call(graphics::plot.default, utils::modifyList(settings, list(...)))
  box <- picture$boxes
  graphics::rect(box$xmin, box$ymin, box$xmax, box$ymax, lwd = 0.6 + 1.6 / (1 + box$level),
                 border = grDevices::hcl.colors(depth + 3, "Viridis")[box$level + 1L])
  invisible(x)
}

# list(points, names, title, boxes: the nodes down to a depth, deepest first).
tree_picture <- function(x, depth, arg) {
  x <- check_tree(x)
  if (x$d != 2L) {
    abort_input(sprintf("`%s` must have two dimensions to be drawn.", arg), x = sprintf("It has %d.", x$d))
  }
  if (!x$n) abort_input(sprintf("`%s` must have points to be drawn.", arg))
  depth <- check_number(depth, "depth", min = 0, max = 40, whole = TRUE)
  level <- tree_levels(x$native$child)
  shown <- which(level <= depth)
  shown <- shown[order(-level[shown])]
  box <- x$native$box[, shown, drop = FALSE]
  list(points = t(x$native$x), names = x$names %||% c("x1", "x2"),
       title = sprintf("%s tree, %d points", x$type, x$n),
       boxes = data.frame(xmin = box[1L, ], ymin = box[2L, ], xmax = box[3L, ], ymax = box[4L, ], level = level[shown]))
}

# Nodes are in breadth-first order, children after their parents.
tree_levels <- function(child) {
  level <- integer(length(child))
  for (v in which(child >= 0L)) level[child[v] + 1:2] <- level[v] + 1L
  level
}
