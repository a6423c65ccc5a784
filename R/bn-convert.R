#' Convert networks
#'
#' @param x a network: an object returned by [bn_learn()], [bn_exact()] or [bn_fit()], an adjacency matrix \[from, to\],
#'   a `bn` or `bn.fit` (bnlearn), `graphNEL` or `igraph` object.
#' @param to `"adjacency"`, `"igraph"`, `"graphNEL"`, `"bnlearn"` (class `bn`), `"coda"` (the score traces of a
#'   [bn_learn()] result as an `mcmc.list`), or `"fit"`: a `bn.fit` of bnlearn, with its parameters, in the form that
#'   [bn_fit()] returns, for [bn_sample()], [bn_log_lik()] and `predict()`. bnlearn need not be installed for that.
#' @return The network in the requested form. igraph edges have the attribute `posterior` if it is known.
#' @export
#' @examples
#' dag <- matrix(0, 2, 2, dimnames = list(c("a", "b"), c("a", "b")))
#' dag["a", "b"] <- 1
#' bn_convert(dag)
bn_convert <- function(x, to = c("adjacency", "igraph", "graphNEL", "bnlearn", "coda", "fit")) {
  need_args("x")
  to <- check_choice(to, c("adjacency", "igraph", "graphNEL", "bnlearn", "coda", "fit"), "to")
  if (to == "coda") return(traces_to_coda(x))
  if (to == "fit") return(fit_of_bnlearn(x))
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
    abort_input("`to = \"coda\"` needs an object returned by `bn_learn()`.", x = paste0("`x` is ", describe(x), "."))
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
    abort_input(sprintf("`%s` must be acyclic.", arg),
                x = paste0("It contains the cycle ", paste(rownames(dag)[cycle], collapse = " -> "), "."))
  }
  dag
}

as_adjacency <- function(x, nodes, arg) {
  if (inherits(x, "weft_bn")) x <- check_bn(x, arg)$dag
  else if (inherits(x, "weft_bn_fit")) x <- check_fit(x, arg)$dag
  else if (inherits(x, "igraph")) x <- igraph::as_adjacency_matrix(x, sparse = FALSE)
  else if (inherits(x, "graphNEL")) x <- methods::as(x, "matrix")
  else if (inherits(x, "bn")) x <- bnlearn_adjacency(x)
  else if (inherits(x, "bn.fit")) x <- bnlearn_fit_adjacency(x)
  if (!is.matrix(x) || !(is.numeric(x) || is.logical(x)) || nrow(x) != ncol(x) || anyNA(x)) {
    abort_input(sprintf("`%s` must be a network: a square matrix [from, to], or a network object.", arg),
                x = paste0("It is ", describe(x), "."))
  }
  x <- name_both_sides(x, arg)
  names <- rownames(x) %||% nodes %||% paste0("V", seq_len(nrow(x)))
  if (length(names) != nrow(x) || (!is.null(nodes) && !setequal(names, nodes))) {
    abort_input(sprintf("`%s` must have the columns of the data as its nodes.", arg), x = not_the_same(names, nodes))
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
                x = sprintf("Duplicated: %s.", label_some(twice)))
  }
  if (!setequal(rows, columns)) {
    abort_input(sprintf("The rows and columns of `%s` must have the same names.", arg),
                x = sprintf("Found on one side only: %s.",
                            label_some(c(setdiff(rows, columns), setdiff(columns, rows)))))
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
    abort_input("The arcs of a network of class `bn` must connect its nodes.",
                x = "`arcs` is not a two-column matrix of node names.")
  }
  dag <- matrix(0, length(nodes), length(nodes), dimnames = list(nodes, nodes))
  dag[x[["arcs"]]] <- 1
  dag
}

bnlearn_fit_adjacency <- function(x) {
  nodes <- names(x)
  known <- length(nodes) > 0L && all(vapply(unclass(x), function(node) {
    is.list(node) && is.character(node[["parents"]]) && all(node[["parents"]] %in% nodes)
  }, NA))
  if (!known) {
    abort_input("A network of class `bn.fit` must have named nodes, each with its parents among them.",
                x = "In this one, some nodes or parents are missing or have another form.")
  }
  dag <- matrix(0, length(nodes), length(nodes), dimnames = list(nodes, nodes))
  for (name in nodes) dag[x[[name]][["parents"]], name] <- 1
  dag
}

# A network of bnlearn with its parameters as bn_fit() gives them: parents in the order of the nodes.
fit_of_bnlearn <- function(x) {
  if (inherits(x, "weft_bn_fit")) return(check_fit(x, "x"))
  if (!inherits(x, "bn.fit")) {
    abort_input("`to = \"fit\"` is for networks with parameters, of class `bn.fit` (bnlearn).",
                x = paste0("`x` is ", describe(x), "."), i = "Use `bn_fit()` for parameters from data.")
  }
  dag <- as_dag(x, arg = "x")
  x <- unclass(x)
  names <- rownames(dag)
  number <- !vapply(lapply(x, `[[`, "coefficients"), is.null, NA)
  labels <- lapply(stats::setNames(nm = names), function(name) if (!number[[name]]) dimnames(x[[name]][["prob"]])[[1L]])
  nodes <- lapply(stats::setNames(nm = names[order(number)]), function(name) { # categories first: others need levels
    node <- if (number[[name]]) bnlearn_number(x[[name]], names, labels)
            else if (is_levels(labels[[name]])) bnlearn_category(x[[name]], name, names, labels)
    if (is_node(node, name, names[dag[, name] != 0], if (!all(number)) labels)) return(node)
    abort_input("A network of class `bn.fit` must have all its parameters.",
                x = sprintf("Those of node `%s` are missing, not finite, or of another form.", name),
                i = "In bnlearn, `bn.fit(method = \"bayes\")` gives a probability to what does not occur.")
  })
  new_result(list(dag = dag, nodes = nodes[names], labels = if (!all(number)) labels, gaussian = all(number), n = 0,
                  ess = 0), class = "weft_bn_fit")
}

bnlearn_category <- function(node, name, names, labels) {
  parents <- node[["parents"]]
  all_labels <- labels[c(name, parents)]
  table <- node[["prob"]]
  if (!is.numeric(table) || !identical(dim(table), lengths(all_labels, use.names = FALSE)) ||
        !identical(unname(dimnames(table)), unname(all_labels))) return(NULL)
  totals <- colSums(matrix(table, nrow(table)))
  if (anyNA(totals) || any(abs(totals - 1) > 1e-3)) return(NULL)
  ranked <- order(match(parents, names))
  whole <- array(table / rep(totals, each = nrow(table)), dim(table), dimnames = all_labels)
  list(parents = parents[ranked], probability = aperm(whole, c(1L, 1L + ranked)))
}

# Coefficients and standard deviations are vectors, or have a column or an element for each configuration of the parents
# that are categories, the first of which varies fastest.
bnlearn_number <- function(node, names, labels) {
  ranked <- node[["parents"]][order(match(node[["parents"]], names))]
  category <- lengths(labels[ranked]) > 0L
  numbers <- ranked[!category]
  given <- intersect(node[["parents"]], ranked[category]) # in bnlearn's order
  dims <- lengths(labels[given], use.names = FALSE)
  coefficients <- as.matrix(node[["coefficients"]])
  if (!is.numeric(coefficients) || !all(c("(Intercept)", numbers) %in% rownames(coefficients)) ||
        !is.numeric(node[["sd"]]) || ncol(coefficients) != prod(dims) || length(node[["sd"]]) != prod(dims)) {
    return(NULL)
  }
  if (!any(category)) {
    slopes <- coefficients[numbers, 1L]
    return(list(parents = ranked, intercept = coefficients[["(Intercept)", 1L]],
                slopes = stats::setNames(as.double(slopes), numbers), sd = as.double(node[["sd"]])))
  }
  cells <- aperm(array(seq_len(prod(dims)), dims), order(match(given, names)))
  by_cell <- function(v) array(as.double(v[cells]), dim(cells), dimnames = labels[ranked[category]])
  list(parents = ranked, intercept = by_cell(coefficients["(Intercept)", ]),
       slopes = matrix(coefficients[numbers, cells], length(numbers), length(cells), dimnames = list(numbers, NULL)),
       sd = by_cell(node[["sd"]]))
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
