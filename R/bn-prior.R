#' Prior knowledge of a network's edges
#'
#' `bn_prior()` tells network searches which edges are required, forbidden or likely. The shortest call is, for example,
#' `bn_prior(nodes, required = edges)`; it returns a prior for the argument `prior`. It contains the interface matrix R,
#' with a number for each ordered pair of nodes: rows are children, columns are parents. 0.5 is neutral, larger values
#' favour the edge, and smaller ones disfavour it. With `hard = TRUE` an entry of 1 requires the edge and an entry of 0
#' forbids it; entries strictly between are soft.
#'
#' A soft entry R adds this to the score of every parent set with the edge:
#' \itemize{
#'   \item `"log10"`: 100 (R - 0.5)^3 powers of ten, up to 12.5 of them either way (the pairwise prior of Wang, Zhang,
#'     Qian and Yuan);
#'   \item `"logit"`: ln(R / (1 - R)) nats: the logarithm of the edge's prior odds if all edges were independent;
#'   \item a function of R that returns nats.
#' }
#'
#' @param nodes names of the nodes, a data frame whose columns are the nodes, or their number (the names are then
#'   `V1`, `V2`, ...).
#' @param required,forbidden,known edges: a data frame or two-column matrix of names (`from`, `to`), an igraph object,
#'   or an adjacency matrix \[from, to\]. A third column of `known`, or its igraph edge attribute `weight`, gives R for
#'   each edge.
#' @param tiers a list of vectors of names, earliest first, or a vector of numbers named by nodes; no edge can lead from
#'   a later tier to an earlier one.
#' @param known_probability the value of R for known edges that are given without a number.
#' @param R an interface matrix to start from instead of 0.5 everywhere.
#' @param hard whether entries of exactly 1 and 0 denote required and forbidden edges.
#' @param prior_scale `"log10"`, `"logit"` or a function of R.
#' @return An object of class `weft_bn_prior`: `R`, `nats` (both \[child, parent\]), `required` and `forbidden`.
#' @export
#' @examples
#' bn_prior(c("gene", "protein", "disease"), tiers = list("gene", "protein", "disease"),
#'          known = data.frame(from = "gene", to = "protein", probability = 0.8))
bn_prior <- function(nodes, required = NULL, forbidden = NULL, tiers = NULL, known = NULL, known_probability = 0.75,
                     R = NULL, hard = TRUE, prior_scale = c("log10", "logit")) {
  need_args("nodes")
  hard <- check_flag(hard, "hard")
  if (is.data.frame(nodes)) nodes <- names(nodes)
  nodes <- bare_text(nodes)
  if (is.numeric(nodes) && length(nodes) == 1L) {
    nodes <- paste0("V", seq_len(check_number(nodes, "nodes", min = 1, max = 4096, whole = TRUE)))
  }
  if (!is.character(nodes) || !length(nodes) || anyNA(nodes) || anyDuplicated(nodes)) {
    twice <- if (is.character(nodes)) unique(nodes[duplicated(nodes)])
    abort_input("`nodes` must be distinct names, a data frame or the number of nodes.",
                x = if (length(twice)) sprintf("Duplicated: %s.", label_some(twice))
                    else paste0("It is ", describe(nodes), "."))
  }
  known_probability <- check_number(known_probability, "known_probability", min = 0, max = 1)
  R <- start_interface(R, nodes)
  edges <- edge_list(known, nodes, "known")
  R[cbind(edges$to, edges$from)] <- edges$value %||% rep(known_probability, length(edges$from))
  if (!is.null(tiers)) R[outer(tier_of(tiers, nodes), tier_of(tiers, nodes),
                               function(child, parent) parent > child)] <- 0
  bans <- edge_list(forbidden, nodes, "forbidden")
  R[cbind(bans$to, bans$from)] <- 0
  needs <- edge_list(required, nodes, "required")
  clash <- R[cbind(needs$to, needs$from)] == 0
  if (any(clash)) {
    abort_input("An edge must not be both required and forbidden.",
                x = paste0("Required and forbidden: ",
                           label_some(paste(nodes[needs$from[clash]], "->", nodes[needs$to[clash]])), "."),
                i = "Tiers forbid edges into earlier tiers.")
  }
  R[cbind(needs$to, needs$from)] <- 1
  diag(R) <- 0.5
  finish_prior(R, hard, prior_scale)
}

start_interface <- function(R, nodes) {
  p <- length(nodes)
  if (is.null(R)) return(matrix(0.5, p, p, dimnames = list(child = nodes, parent = nodes)))
  if (!is.matrix(R) || !is.numeric(R) || any(dim(R) != p) || anyNA(R) || any(R < 0 | R > 1)) {
    abort_input(sprintf("`R` must be a %d x %d matrix of numbers from 0 to 1 (rows: children, columns: parents).", p,
                        p),
                x = paste0("It is ", describe(R), "."))
  }
  if (!is.null(rownames(R)) && !is.null(colnames(R))) {
    if (!setequal(rownames(R), nodes) || !setequal(colnames(R), nodes)) {
      abort_input("`R` must have the nodes as row and column names.",
                  x = paste0("Its row names are ", label_some(rownames(R)), "."))
    }
    R <- R[nodes, nodes, drop = FALSE]
  }
  matrix(as.double(R), p, p, dimnames = list(child = nodes, parent = nodes))
}

finish_prior <- function(R, hard, prior_scale) {
  nodes <- rownames(R)
  off <- row(R) != col(R)
  required <- hard & R == 1 & off
  forbidden <- hard & R == 0 & off
  cycle <- find_cycle(t(required))
  if (length(cycle)) {
    abort_input("Required edges must not form a cycle.",
                x = paste0("They form the cycle ", paste(nodes[cycle], collapse = " -> "), "."))
  }
  nats <- if (is.function(prior_scale)) prior_scale(R) else
    switch(check_choice(prior_scale, c("log10", "logit"), "prior_scale"),
           log10 = log(10) * 100 * (R - 0.5)^3, logit = log(R) - log1p(-R))
  if (!is.numeric(nats) || length(nats) != length(R)) {
    abort_input("`prior_scale` must return one number for each entry of R.",
                x = paste0("It returned ", describe(nats), "."))
  }
  nats <- matrix(as.double(nats), nrow(R), dimnames = dimnames(R))
  nats[required | forbidden | !off] <- 0
  if (any(!is.finite(nats))) {
    abort_input("Soft entries of `R` must have a finite prior.", x = "Some are infinite or missing.",
                i = "With `prior_scale = \"logit\"`, entries of 0 and 1 must be hard.")
  }
  new_result(list(R = R, nats = nats, required = required, forbidden = forbidden, hard = hard), class = "weft_bn_prior")
}

# list(from, to, value) as node numbers.
edge_list <- function(x, nodes, arg) {
  if (is.null(x)) return(list(from = integer(), to = integer()))
  value <- NULL
  if (inherits(x, "igraph")) {
    if (!requireNamespace("igraph", quietly = TRUE)) abort_input(sprintf("`%s` needs the package igraph.", arg))
    value <- igraph::edge_attr(x, "weight")
    x <- igraph::as_edgelist(x)
  } else if (is.matrix(x) && (is.numeric(x) || is.logical(x)) && nrow(x) == length(nodes) && ncol(x) == length(nodes)) {
    at <- which(x != 0, arr.ind = TRUE)
    names <- if (is.null(rownames(x))) nodes else rownames(x)
    x <- cbind(names[at[, 1L]], names[at[, 2L]])
  } else if (is.data.frame(x) && ncol(x) >= 2L) {
    if (all(c("from", "to") %in% names(x))) x <- x[c("from", "to", setdiff(names(x), c("from", "to")))]
    if (ncol(x) > 2L && is.numeric(x[[3L]])) value <- x[[3L]]
    ends <- lapply(1:2, function(j) as.character(check_factor(x[[j]], sprintf("Column %d of `%s`", j, arg))))
    x <- do.call(cbind, ends)
  }
  if (!is.matrix(x) || !is.atomic(x) || ncol(x) != 2L) {
    abort_input(sprintf(paste("`%s` must be a data frame or matrix of edges with columns from and to, an igraph object",
                              "or an adjacency matrix."), arg),
                x = paste0("It is ", describe(x), "."))
  }
  unknown <- setdiff(x, nodes)
  if (length(unknown)) abort_input(sprintf("`%s` must contain names of nodes.", arg),
                                   x = paste0("There is no ", label_some(unknown), "."))
  if (any(x[, 1L] == x[, 2L])) {
    abort_input(sprintf("`%s` must not contain an edge from a node to itself.", arg),
                x = paste0("This is the case for ", label_some(x[x[, 1L] == x[, 2L], 1L]), "."))
  }
  if (!is.null(value) && (anyNA(value) || any(value < 0 | value > 1))) {
    abort_input(sprintf("The probabilities in `%s` must lie between 0 and 1.", arg),
                x = sprintf("They range from %g to %g.", min(value), max(value)))
  }
  list(from = match(x[, 1L], nodes), to = match(x[, 2L], nodes), value = value)
}

tier_of <- function(tiers, nodes) {
  if (is.list(tiers) && all(vapply(tiers, is.character, NA))) {
    tiers <- stats::setNames(rep(seq_along(tiers), lengths(tiers)), unlist(tiers))
  }
  named <- names(tiers)
  if (!is.numeric(tiers) || is.null(named) || anyDuplicated(named) || !setequal(named, nodes)) {
    wrong <- unique(c(setdiff(nodes, named), setdiff(named, nodes), named[duplicated(named)]))
    abort_input("`tiers` must assign every node to one tier.",
                x = if (is.null(named)) paste0("It is ", describe(tiers), ".")
                    else paste0("Missing, unknown or duplicated: ", label_some(wrong), "."))
  }
  tiers[nodes]
}

# Nodes of a cycle of an adjacency [from, to], or nothing.
find_cycle <- function(adjacency) {
  left <- rep(TRUE, nrow(adjacency))
  repeat {
    ends <- left & colSums(adjacency[left, , drop = FALSE]) == 0
    if (!any(ends)) break
    left[ends] <- FALSE
  }
  if (!any(left)) return(integer())
  path <- which(left)[1L]
  repeat { # backwards: every node that is left has a parent that is left
    parent <- which(left & adjacency[, path[1L]])[1L]
    if (parent %in% path) return(c(parent, path[seq_len(match(parent, path))]))
    path <- c(parent, path)
  }
}

# A prior for the nodes at hand: NULL, a weft_bn_prior, or an interface matrix.
bn_use_prior <- function(prior, nodes) {
  if (is.null(prior)) return(NULL)
  if (is.matrix(prior)) prior <- bn_prior(nodes, R = prior)
  if (!inherits(prior, "weft_bn_prior")) {
    abort_input("`prior` must be an object returned by `bn_prior()`, or an interface matrix.",
                x = paste0("It is ", describe(prior), "."))
  }
  check_prior(prior)
  if (!setequal(rownames(prior$R), nodes)) {
    abort_input("`prior` must have the columns of `x` as its nodes.", x = not_the_same(rownames(prior$R), nodes))
  }
  lapply(prior[c("nats", "required", "forbidden")], function(m) unname(m[nodes, nodes, drop = FALSE]))
}

#' @rdname bn_prior
#' @param x an object returned by `bn_prior()`.
#' @param ... ignored.
#' @export
print.weft_bn_prior <- function(x, ...) {
  check_prior(x, "x")
  off <- row(x$R) != col(x$R)
  soft <- off & !x$required & !x$forbidden & x$nats != 0
  cat(sprintf("Edge prior for %d nodes: %d required, %d forbidden, %d soft\n", nrow(x$R),
              sum(x$required),
              sum(x$forbidden), sum(soft)))
  if (any(soft)) cat(sprintf("Soft priors range from %.3g to %.3g nats\n", min(x$nats[soft]), max(x$nats[soft])))
  invisible(x)
}
