# Graphs in every form that users have, to one: list(type, self, links, missing, weighted, row_names, col_names), where
# links and missing are lists by row (src/irm/cpu/input/edges_by_row.c); real values: R/irm-real.R. Pairs are first
# c(from, to) with indices from 1.

irm_types <- c("bipartite", "directed", "undirected")

# `input`: list(self, assay, threshold, dim), as irm_control() has them, and perhaps threads.
irm_graph <- function(A, type = NULL, family = "bernoulli", missing = NULL, input = list(self = FALSE)) {
  if (inherits(A, "weft_irm_graph")) return(check_irm_graph(A, "`x`"))
  if (!is.null(type)) type <- check_choice(type, irm_types, "type")
  self <- check_flag(input$self, "self")
  if (family == "gaussian") return(real_graph(A, type, missing, input))
  if (in_shards(A)) return(shard_graph(A, type, family, missing, input))
  poisson <- family == "poisson"
  pairs <- irm_pairs(A, type, poisson, input$assay, input$threshold, input$dim)
  type <- type %||% pairs$type %||% "bipartite"
  shape <- c(pairs$n_row, pairs$n_col)
  if (type != "bipartite") {
    if (shape[1L] != shape[2L]) {
      abort_input(sprintf("`x` must be square for `type = \"%s\"`: rows and columns must be the same nodes.", type),
                  x = sprintf("It has %d rows and %d columns.", shape[1L], shape[2L]),
                  i = "`type = \"bipartite\"` groups rows and columns separately.")
    }
    if (type == "undirected" && pairs$matrix) pairs <- upper_triangle(listed_pairs(pairs), poisson)
  } else if (self) {
    abort_input("`self = TRUE` needs a one-mode graph.", x = "`type` is \"bipartite\".")
  }
  check_shape(shape)
  control <- run_control("cpu", input$threads %||% 1L, FALSE, NULL, "Sorting links")
  form <- list(shape = shape, kind = type, self = self)
  sorted <- function(from, to, weight, without) sort_links(form, from, to, weight, without, control)
  unseen <- missing_pairs(missing, shape, pairs, type)
  missing <- sorted(c(unseen$from, pairs$na_from), c(unseen$to, pairs$na_to), NULL, NULL)
  whole <- !length(missing$to)
  links <- if (!is.null(pairs$columns) && whole) turned_links(pairs$columns, type, self, control)
  else if (!is.null(pairs$rows) && whole) pairs$rows
  else {
    pairs <- listed_pairs(pairs)
    sorted(pairs$from, pairs$to, if (poisson) pairs$weight %||% rep(1L, length(pairs$from)), missing)
  }
  structure(class = "weft_irm_graph", list(type = match(type, irm_types) - 1L, self = self, links = links,
                                           missing = missing, kind = type, row_names = plain_names(pairs$row_names),
                                           col_names = plain_names(pairs$col_names)))
}

# The canonical list of pairs (indices from 1) without those of another such list. `form`: list(shape, kind, self).
sort_links <- function(form, from, to, weight, without, control) {
  pairs <- list(n_row = form$shape[1L], n_col = form$shape[2L], kind = form$kind, self = form$self,
                from = as.integer(from) - 1L, to = as.integer(to) - 1L, weight = weight,
                missing = if (!is.null(without)) native_edges(without))
  .Call(C_weft_irm_edges, pairs, control)
}

# The canonical list of what list(n_row, n_col, start, to, weight) has by column.
turned_links <- function(columns, kind, self, control) {
  .Call(C_weft_irm_turned, columns, kind != "bipartite" && !self, control)
}

plain_names <- function(x) if (!is.null(x)) enc2utf8(as.character(x))

check_shape <- function(shape) {
  if (all(shape >= 1)) return()
  abort_input("`x` must have at least one row and one column.", x = sprintf("It has %d and %d.", shape[1L], shape[2L]))
}

irm_pairs <- function(A, type, poisson, assay, threshold, dim) {
  source <- as_source(A, assay, "x")
  A <- source$data
  if (source$kind == "graph") return(igraph_pairs(A, poisson))
  if (source$kind == "genotypes") A <- as.matrix(A)
  if (source$kind == "frame") return(edge_pairs(A, type, poisson, dim))
  # rows are the experiment's, features
  if (source$experiment) A <- turn(if (source$kind == "sparse") A else as.matrix(A))
  if (!is.null(dim)) abort_input("`dim` must only be given with an edge list.", x = paste0("`x` is ", describe(A), "."))
  if (source$kind == "sparse") return(sparse_pairs(A, poisson, threshold, !is.null(type) && type != "bipartite"))
  if (is.matrix(A) && (is.numeric(A) || is.logical(A))) return(dense_pairs(A, poisson, threshold))
  abort_input(
    "`x` must be a matrix, a sparse Matrix, an edge list in a data frame, an igraph or a SummarizedExperiment.",
    x = paste0("It is ", describe(A), "."))
}

# ---- matrices ----

dense_pairs <- function(A, poisson, threshold) {
  at <- which(is.na(A) | A != 0, arr.ind = TRUE, useNames = FALSE)
  matrix_pairs(at[, 1L], at[, 2L], A[at], dim(A), dimnames(A), poisson, threshold)
}

# A compressed matrix that holds links and nothing else stays as it is, in `columns` or `rows`; others become pairs.
sparse_pairs <- function(A, poisson, threshold, one_mode) {
  A <- methods::as(A, "generalMatrix")
  by_row <- inherits(A, "RsparseMatrix") && !one_mode
  if (!by_row) A <- methods::as(A, "CsparseMatrix") # parts of one pair in a triplet matrix add up
  values <- if (!inherits(A, "nMatrix")) A@x
  other <- if (by_row) A@j else A@i
  start <- as.double(A@p)
  whole <- length(other) == start[length(start)]
  if (whole && !is.null(threshold) && !anyNA(values)) {
    above <- (if (is.null(values)) rep(1, length(other)) else values) > check_threshold(threshold)
    if (!all(above)) start <- c(0, cumsum(above))[start + 1]
    other <- other[above]
    values <- NULL
  }
  if (whole && all_links(values, poisson)) {
    weight <- if (poisson) if (is.null(values)) rep(1L, length(other)) else as.integer(values)
    shape <- as.double(if (by_row) A@Dim else rev(A@Dim))
    lists <- list(n_row = shape[1L], n_col = shape[2L], start = start, to = other, weight = weight)
    return(c(stats::setNames(list(lists), if (by_row) "rows" else "columns"),
             list(weight = weight, n_row = A@Dim[1L], n_col = A@Dim[2L], row_names = A@Dimnames[[1L]],
                  col_names = A@Dimnames[[2L]], matrix = TRUE)))
  }
  A <- methods::as(A, "CsparseMatrix")
  to <- rep.int(seq_len(A@Dim[2L]), diff(A@p))
  matrix_pairs(A@i + 1L, to, if (inherits(A, "nMatrix")) rep(1, length(to)) else A@x, A@Dim, A@Dimnames, poisson,
               threshold)
}

# Whether values, of which there are none where every entry is a link, say that every entry is one.
all_links <- function(values, poisson) {
  if (is.null(values) || is.logical(values)) return(is.null(values) || isTRUE(all(values)))
  if (!poisson) return(isTRUE(all(values == 1)))
  isTRUE(all(values >= 1 & values <= .Machine$integer.max)) && all(values == round(values))
}

# The pairs of `columns` or `rows`, one by one.
listed_pairs <- function(pairs) {
  lists <- pairs$columns %||% pairs$rows
  if (is.null(lists)) return(pairs)
  ends <- list(rep.int(seq_len(lists$n_row), diff(lists$start)), lists$to + 1L)
  pairs[c("from", "to")] <- if (is.null(pairs$columns)) ends else rev(ends)
  pairs[c("columns", "rows")] <- NULL
  pairs
}

matrix_pairs <- function(from, to, value, shape, names, poisson, threshold) {
  gone <- is.na(value)
  if (!is.null(threshold)) value <- as.double(value > check_threshold(threshold))
  if (any(gone)) check_values(value[!gone], from[!gone], to[!gone], poisson, threshold)
  else check_values(value, from, to, poisson, threshold)
  link <- !gone & value != 0
  of_links <- function(x) if (all(link)) x else x[link]
  list(from = of_links(from), to = of_links(to), weight = if (poisson) as.integer(of_links(value)),
       na_from = from[gone], na_to = to[gone], n_row = shape[1L], n_col = shape[2L], row_names = names[[1L]],
       col_names = names[[2L]], matrix = TRUE)
}

check_threshold <- function(threshold) {
  threshold <- check_number(threshold, "threshold")
  if (threshold < 0) abort_input("`threshold` must not be negative.", x = sprintf("It is %g.", threshold))
  threshold
}

check_values <- function(value, from, to, poisson, threshold) {
  bad <- if (poisson) value < 0 | value != round(value) | value > .Machine$integer.max else value != 0 & value != 1
  if (!any(bad)) return()
  at <- which(bad)[1L]
  more <- sum(bad) - 1L
  where <- sprintf("Row %d, column %d contains %s%s.", as.integer(from[at]), as.integer(to[at]), format(value[at]),
                   if (more) sprintf("; %d more invalid", more) else "")
  if (poisson) {
    abort_input("`x` must contain whole numbers from 0 to 2147483647 for `family = \"poisson\"`.", x = where)
  }
  abort_input("`x` must contain only 0 and 1.", x = where,
              i = "Use `family = \"poisson\"` for counts, or `threshold =` to turn every larger value into a link.")
}

# A symmetric matrix says every pair twice; one triangle is kept. NA on either side hides the pair.
upper_triangle <- function(pairs, poisson) {
  n <- pairs$n_row
  key <- function(a, b) (as.double(a) - 1) * n + b
  value <- pairs$weight %||% rep(1L, length(pairs$from))
  forward <- key(pairs$from, pairs$to)
  back <- match(key(pairs$to, pairs$from), forward)
  hidden <- c(key(pairs$na_from, pairs$na_to), key(pairs$na_to, pairs$na_from))
  odd <- (is.na(back) | value[back] != value) & !(forward %in% hidden)
  if (any(odd)) {
    at <- which(odd)[1L]
    abort_input("`x` must be symmetric for `type = \"undirected\"`.",
                x = sprintf("x[%d, %d] and x[%d, %d] differ.", as.integer(pairs$from[at]), as.integer(pairs$to[at]),
                            as.integer(pairs$to[at]), as.integer(pairs$from[at])),
                i = "Use `type = \"directed\"` for an asymmetric matrix.")
  }
  keep <- pairs$from <= pairs$to
  pairs$from <- pairs$from[keep]
  pairs$to <- pairs$to[keep]
  if (poisson) pairs$weight <- pairs$weight[keep]
  pairs
}

# ---- edge lists ----

edge_pairs <- function(A, type, poisson, dim) {
  wanted <- if (poisson) 2:3 else 2L
  if (!ncol(A) %in% wanted) {
    abort_input(if (poisson) "An edge list must have two columns, or three columns with counts."
                else "An edge list must have two columns.",
                x = paste0("`x` is ", describe(A), "."), i = "`as.matrix()` converts a 0/1 data frame into a matrix.")
  }
  weight <- NULL
  if (ncol(A) == 3L) {
    weight <- A[[3L]]
    if (!is.numeric(weight) || anyNA(weight)) abort_input("The third column of an edge list must contain counts.",
                                                          x = paste0("It is ", describe(weight), "."))
    check_values(weight, seq_along(weight), rep(3L, length(weight)), TRUE, NULL)
    weight <- as.integer(weight)
  }
  if (!is.null(dim) && (!is.numeric(dim) || !length(dim) %in% 1:2)) {
    abort_input("`dim` must be one number or c(rows, columns).", x = paste0("It is ", describe(dim), "."))
  }
  one_mode <- !is.null(type) && type != "bipartite"
  ends <- edge_ends(A[[1L]], A[[2L]], one_mode, dim)
  list(from = ends$from, to = ends$to, weight = weight, n_row = ends$n_row, n_col = ends$n_col,
       row_names = ends$row_names, col_names = ends$col_names, matrix = FALSE)
}

edge_ends <- function(a, b, one_mode, dim) {
  check_factor(a, "The first column of an edge list")
  check_factor(b, "The second column of an edge list")
  if (anyNA(a) || anyNA(b)) {
    abort_input("An edge list must not contain missing values.",
                x = sprintf("Row %d has one.", which(is.na(a) | is.na(b))[1L]),
                i = "Give unobserved pairs in `missing =`.")
  }
  if (one_mode && is.numeric(a) != is.numeric(b)) {
    abort_input("Both columns of a one-mode edge list must identify nodes in the same way.",
                x = sprintf("They are %s and %s.", class(a)[1L], class(b)[1L]))
  }
  if (one_mode && !is.numeric(a)) {
    names <- union(levels(as_names(a)), levels(as_names(b)))
    if (!is.factor(a) && !is.factor(b)) names <- sort(names)
    a <- factor(a, names)
    b <- factor(b, names)
  }
  first <- edge_side(a, "first", dim[1L])
  second <- edge_side(b, "second", dim[length(dim)])
  if (one_mode) first$n <- second$n <- max(first$n, second$n)
  list(from = first$index, to = second$index, n_row = first$n, n_col = second$n, row_names = first$names,
       col_names = second$names)
}

as_names <- function(x) {
  if (is.factor(x)) return(x)
  x <- sortable_text(x)
  factor(x, sort(unique(as.character(x))))
}

# One column: indices from 1, how many nodes there are, and their names.
edge_side <- function(x, which, size) {
  if (is.character(x) || is.factor(x)) {
    x <- as_names(x)
    return(list(index = as.integer(x), n = nlevels(x), names = levels(x)))
  }
  if (!is.numeric(x) || is.object(x)) {
    abort_input(sprintf("The %s column of an edge list must contain indices, names or a factor.", which),
                x = paste0("It is ", describe(x), "."))
  }
  most <- .Machine$integer.max - 1
  if (!is.null(size)) size <- most <- check_number(size, "dim", min = 1, max = most, whole = TRUE)
  if (length(x) && (min(x) < 1 || max(x) > most || (is.double(x) && any(x != round(x))))) {
    bad <- x != round(x) | x < 1 | x > most
    abort_input(sprintf("The %s column of an edge list must contain indices from 1%s.", which,
                        if (is.null(size)) "" else sprintf(" to %.0f", size)),
                x = sprintf("Row %d contains %s.", which(bad)[1L], format(x[which(bad)[1L]])))
  }
  list(index = as.integer(x), n = size %||% max(0, x), names = NULL)
}

igraph_pairs <- function(A, poisson) {
  if (!requireNamespace("igraph", quietly = TRUE)) abort_input("An igraph needs the package igraph.",
                                                               i = "Install it from CRAN.")
  ends <- igraph::as_edgelist(A, names = FALSE)
  names <- igraph::vertex_attr(A, "name")
  check_names(list(names), "x", "vertex")
  weight <- if (poisson) igraph::edge_attr(A, "weight")
  if (!is.null(weight)) {
    check_values(weight, ends[, 1L], ends[, 2L], TRUE, NULL)
    weight <- as.integer(weight)
  }
  side <- igraph::vertex_attr(A, "type")
  n <- igraph::vcount(A)
  if (is.null(side)) {
    kind <- if (igraph::is_directed(A)) "directed" else "undirected"
    return(list(from = ends[, 1L], to = ends[, 2L], weight = weight, n_row = n, n_col = n, row_names = names,
                col_names = names, type = kind, matrix = FALSE))
  }
  side <- as.logical(side)
  turned <- side[ends[, 1L]]
  if (any(turned == side[ends[, 2L]])) {
    abort_input("A bipartite igraph must only link vertices of different `type`.",
                x = sprintf("Edge %d links two vertices of the same `type`.", which(turned == side[ends[, 2L]])[1L]),
                i = "`igraph::delete_vertex_attr(A, \"type\")` makes it a one-mode graph.")
  }
  within <- integer(n)
  within[!side] <- seq_len(sum(!side))
  within[side] <- seq_len(sum(side))
  list(from = within[ifelse(turned, ends[, 2L], ends[, 1L])], to = within[ifelse(turned, ends[, 1L], ends[, 2L])],
       weight = weight, n_row = sum(!side), n_col = sum(side), row_names = names[!side], col_names = names[side],
       type = "bipartite", matrix = FALSE)
}

# ---- pairs that were not observed ----

missing_pairs <- function(missing, shape, pairs, type) {
  if (is.null(missing)) return(list(from = integer(), to = integer()))
  if (inherits(missing, "sparseMatrix")) {
    check_missing_shape(check_matrix(missing, "missing"), shape)
    at <- methods::as(methods::as(missing, "generalMatrix"), "TsparseMatrix")
    keep <- if (inherits(at, "nMatrix")) rep(TRUE, length(at@i)) else at@x != 0
    return(list(from = at@i[keep] + 1L, to = at@j[keep] + 1L))
  }
  if (is.matrix(missing) && is.logical(missing)) {
    check_missing_shape(missing, shape)
    at <- which(missing, arr.ind = TRUE, useNames = FALSE)
    return(list(from = at[, 1L], to = at[, 2L]))
  }
  named_pairs(missing, shape, pairs$row_names, pairs$col_names, "missing",
              i = sprintf("A logical matrix of %d rows and %d columns is also accepted.", shape[1L], shape[2L]))
}

check_missing_shape <- function(missing, shape) {
  if (identical(as.integer(dim(missing)), as.integer(shape))) return()
  abort_input("`missing` must have the shape of `x`.",
              x = sprintf("It has %d rows and %d columns, but `x` has %d and %d.",
                                                                   nrow(missing), ncol(missing), shape[1L], shape[2L]))
}

# Two columns of indices or names to list(from, to).
named_pairs <- function(x, shape, row_names, col_names, arg, i = NULL) {
  if (!(is.data.frame(x) || is.matrix(x)) || ncol(x) != 2L) {
    abort_input(sprintf("`%s` must have two columns with the rows and columns of `x`, as indices or names.", arg),
                x = paste0("It is ", describe(x), "."), i = i)
  }
  list(from = look_up(x[, 1L, drop = TRUE], row_names, shape[1L], arg, "row"),
       to = look_up(x[, 2L, drop = TRUE], col_names, shape[2L], arg, "column"))
}

look_up <- function(x, names, n, arg, what) {
  if (is.factor(x)) x <- as.character(check_factor(x, sprintf("`%s`", arg)))
  known <- if (is.character(x)) match(x, names) else rep(NA_real_, length(x))
  if (is.numeric(x)) known <- ifelse(x == round(x) & x >= 1 & x <= n, x, NA)
  if (!anyNA(known)) return(as.integer(known))
  bad <- x[[which(is.na(known))[1L]]]
  abort_input(sprintf("`%s` must refer to %ss of `x`%s.", arg, what,
                      if (is.character(x)) "" else sprintf(" by indices from 1 to %d", as.integer(n))),
              x = sprintf("There is no %s %s.", what, format(bad)),
              i = if (is.character(x) && is.null(names)) "`x` has no such names; use indices.")
}
