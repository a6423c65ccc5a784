#' Convert networks
#'
#' @param x a network: what [bn_learn()], [bn_exact()] or [bn_fit()] returned, an adjacency matrix \[from, to\], a `bn`
#'   (bnlearn), `graphNEL` or `igraph` object.
#' @param to `"adjacency"`, `"igraph"`, `"graphNEL"`, `"bnlearn"` (class `bn`), or `"coda"` (the score traces of a
#'   [bn_learn()] result as an `mcmc.list`).
#' @return The network in the requested form. igraph edges have the attribute `posterior` when there is one.
#' @export
#' @examples
#' dag <- matrix(0, 2, 2, dimnames = list(c("a", "b"), c("a", "b")))
#' dag["a", "b"] <- 1
#' bn_convert(dag)
bn_convert <- function(x, to = c("adjacency", "igraph", "graphNEL", "bnlearn", "coda")) {
  need_args("x")
  to <- check_choice(to, c("adjacency", "igraph", "graphNEL", "bnlearn", "coda"), "to")
  if (to == "coda") return(traces_to_coda(x))
  dag <- as_dag(x, arg = "x")
  if (to == "adjacency") return(dag)
  need_package(switch(to, igraph = "igraph", graphNEL = "graph", bnlearn = "bnlearn"), sprintf("`to = \"%s\"`", to))
  nodes <- rownames(dag)
  edges <- edge_table(dag, if (inherits(x, "weft_bn")) x$edges)
  switch(to,
    igraph = igraph::graph_from_data_frame(edges, vertices = data.frame(name = nodes)),
    graphNEL = methods::as(dag, "graphNEL"),
    bnlearn = bnlearn::`arcs<-`(bnlearn::empty.graph(nodes), value = as.matrix(edges[c("from", "to")]))
  )
}

traces_to_coda <- function(x) {
  if (!inherits(x, "weft_bn") || is.null(x$trace)) {
    abort_input("`to = \"coda\"` is for what `bn_learn()` returned.", x = paste0("`x` is ", describe(x), "."))
  }
  check_bn(x, "x")
  need_package("coda", "`to = \"coda\"`")
  thin <- x$run$thin
  coda::mcmc.list(lapply(seq_len(ncol(x$trace)), function(c) coda::mcmc(x$trace[, c], start = thin, thin = thin)))
}

# An acyclic adjacency [from, to] with names, rows and columns in the order of `nodes` when they are given.
as_dag <- function(x, nodes = NULL, arg = "dag") {
  dag <- as_adjacency(x, nodes, arg)
  cycle <- find_cycle(dag != 0)
  if (length(cycle)) {
    abort_input(sprintf("`%s` must have no cycle.", arg),
                x = paste0("There is one: ", paste(rownames(dag)[cycle], collapse = " -> "), "."))
  }
  dag
}

as_adjacency <- function(x, nodes, arg) {
  if (inherits(x, "weft_bn")) x <- check_bn(x, arg)$dag
  else if (inherits(x, "weft_bn_fit")) x <- check_fit(x, arg)$dag
  else if (inherits(x, "igraph")) x <- igraph::as_adjacency_matrix(x, sparse = FALSE)
  else if (inherits(x, "graphNEL")) x <- methods::as(x, "matrix")
  else if (inherits(x, "bn")) x <- bnlearn_adjacency(x)
  if (!is.matrix(x) || !(is.numeric(x) || is.logical(x)) || nrow(x) != ncol(x) || anyNA(x)) {
    abort_input(sprintf("`%s` must be a network: a square matrix [from, to], or a network object.", arg),
                x = paste0("It is ", describe(x), "."))
  }
  x <- name_both_sides(x, arg)
  names <- rownames(x) %||% nodes %||% paste0("V", seq_len(nrow(x)))
  if (length(names) != nrow(x) || (!is.null(nodes) && !setequal(names, nodes))) {
    abort_input(sprintf("The nodes of `%s` must be the columns of the data.", arg), x = not_the_same(names, nodes))
  }
  dimnames(x) <- list(from = names, to = names)
  if (!is.null(nodes)) x <- x[nodes, nodes, drop = FALSE]
  storage.mode(x) <- "double"
  matrix(as.integer(x != 0), nrow(x), dimnames = list(from = rownames(x), to = rownames(x)))
}

# A square matrix with the same names, in the same order, on both sides; as it is when it has none.
name_both_sides <- function(x, arg) {
  rows <- rownames(x) %||% colnames(x)
  columns <- colnames(x) %||% rows
  if (is.null(rows)) return(x)
  if (anyNA(c(rows, columns)) || !all(nzchar(c(rows, columns)))) {
    abort_input(sprintf("The nodes of `%s` must have unique names.", arg), x = "Some names are missing or empty.")
  }
  twice <- unique(c(rows[duplicated(rows)], columns[duplicated(columns)]))
  if (length(twice)) {
    abort_input(sprintf("The nodes of `%s` must have unique names.", arg),
                x = sprintf("Twice: %s.", label_some(twice)))
  }
  if (!setequal(rows, columns)) {
    abort_input(sprintf("The rows and columns of `%s` must have the same names.", arg),
                x = sprintf("Only one side has %s.", label_some(c(setdiff(rows, columns), setdiff(columns, rows)))))
  }
  dimnames(x) <- list(rows, columns)
  x[, rows, drop = FALSE]
}

# How names differ from those of the nodes: "Unknown: `q`. Missing: `a`."
not_the_same <- function(names, nodes) {
  unknown <- setdiff(names, nodes)
  missing <- setdiff(nodes, names)
  if (!length(unknown) && !length(missing)) return(sprintf("There are %d, not %d.", length(names), length(nodes)))
  paste(c(if (length(unknown)) sprintf("Unknown: %s.", label_some(unknown)),
          if (length(missing)) sprintf("Missing: %s.", label_some(missing))), collapse = " ")
}

bnlearn_adjacency <- function(x) {
  nodes <- names(x[["nodes"]])
  if (!is.matrix(x[["arcs"]]) || ncol(x[["arcs"]]) != 2L || !all(x[["arcs"]] %in% nodes)) {
    abort_input("A network of class `bn` must have arcs between its nodes.",
                x = "This one has others, or none of that form.")
  }
  dag <- matrix(0, length(nodes), length(nodes), dimnames = list(nodes, nodes))
  dag[x[["arcs"]]] <- 1
  dag
}

# Node numbers, parents first; of those ready the lowest.
topological_order <- function(dag) {
  waiting <- colSums(dag != 0)
  order <- integer()
  while (length(order) < nrow(dag)) {
    ready <- which(waiting == 0)[1L]
    order <- c(order, ready)
    waiting[ready] <- -1
    children <- which(dag[ready, ] != 0)
    waiting[children] <- waiting[children] - 1
  }
  order
}
