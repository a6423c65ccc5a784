# nolint start: line_length_linter. Rows of tables in the help page stand on one line each.
#' Networks from mutual information
#'
#' Keeps of all pairs of features those that speak for a link of their own, and gives them weights.
#'
#' | method | weights |
#' |---|---|
#' | `"aracne"` | `m`, without the weakest edge of every triangle, if it is below the second weakest less `eps`, or below `1 - tau` times it |
#' | `"clr"` | \eqn{\sqrt{z_i^2+z_j^2}}, z the deviation of \eqn{m_{ij}} from the mean of row i in its standard deviations, or 0 if that is negative; the diagonal is left out, and a row without spread has z = 0 |
#' | `"mrnet"` | for every target the features are chosen one after the other by \eqn{m_{it}} less the mean of \eqn{m_{ij}} over those chosen, while this is positive: the weight |
#' | `"mrnetb"` | for every target all features score \eqn{m_{it} - \frac{1}{|S|}\sum_{j \in S \setminus i} m_{ij}}; the worst leaves S while it is negative, then is exchanged for the best outside as long as that scores more in its place |
#' | `"relnet"` | `m` where it is above `threshold` |
#'
#' The weight of both directions in `"mrnet"` and `"mrnetb"` is the greater one. The diagonal of `m` does not matter. Edges
#' are the pairs with a positive weight.
#'
#' @section Significance: For `"relnet"` the default threshold keeps the edges whose test passes at a false discovery rate of
#'   `fdr` (Benjamini and Hochberg, over all pairs). For counts the test is G = 2 n I (I in nats) with (levels - 1)(levels - 1)
#'   degrees of freedom; for Pearson, Spearman and copula 2 n I with one; for Kendall tau-b over its standard deviation under
#'   independence, squared. KSG has no such test and needs `threshold`, and so does a plain matrix. Where there is a test,
#'   `as.data.frame()` gives its p and q values with every method.
#'
#' @section Other packages: minet (3.65) gives the same weights for `"aracne"`, `"clr"` and `"mrnet"`, parmigene (1.1.1) for
#'   `"aracne"` and `"mrnet"`. parmigene's `clr` counts the diagonal into means and deviations and squares z twice; minet's
#'   `mrnetb` has the target and the diagonal among what it sums.
#'
#' @inheritParams mi_rank
#' @param x what [mi_matrix()] returned or another symmetric matrix of information; or data, handed to [mi_matrix()] together
#'   with `...`.
#' @param method one of the names above.
#' @param eps,tau for `"aracne"`: tolerances, `eps` in units of `m`, `tau` from 0 to 1. One of them at a time.
#' @param threshold for `"relnet"`: edges have more information than this, in units of `m`.
#' @param fdr for `"relnet"` without a threshold.
#' @param ... for data: arguments of [mi_matrix()], such as `estimator`, `bins` and `na`.
#' @param threads see [weft_threads()].
#' @param backend where the matrix, when it is made here, and the method run; see [weft_backend()]. The cut of `"relnet"` is
#'   always on the CPU, and says so.
#' @return A symmetric matrix of weights of class `weft_network`, with a zero diagonal. Attributes record the call, method,
#'   back end and time, and `mi` has the matrix it was made from.
#' @seealso [plot.weft_network()], [as_igraph()]
#' @export
#' @examples
#' net <- mi_network(mtcars, "aracne", estimator = "spearman")
#' net
#' head(as.data.frame(net))
# nolint end
mi_network <- function(x, method = c("aracne", "clr", "mrnet", "mrnetb", "relnet"), eps = 0, tau = NULL, threshold = NULL,
                       fdr = 0.05, ..., backend = NULL, threads = NULL, progress = NULL, verbose = FALSE) {
  started <- proc.time()[[3L]]
  method <- check_choice(method, c(network_methods, "relnet"), "method")
  eps <- check_number(eps, "eps", min = 0)
  if (!is.null(tau)) tau <- check_number(tau, "tau", min = 0, max = 1)
  if (!is.null(tau) && eps > 0) abort_input("Only one of `eps` and `tau` can be given.")
  if (!is.null(threshold)) threshold <- check_number(threshold, "threshold")
  fdr <- check_number(fdr, "fdr", min = 0, max = 1)
  verbose <- check_flag(verbose, "verbose")
  threads <- threads_for(threads)
  m <- network_input(x, ..., backend = backend, threads = threads, progress = progress, verbose = verbose)
  if (!is.double(m)) storage.mode(m) <- "double"
  p <- nrow(m)
  chosen <- network_backend(method, p, backend, threads)
  report_backend(chosen, verbose)
  control <- run_control(chosen$name, threads, progress, colnames(m), "Building the network")
  which <- match(method, network_methods, 2L) - 1L # a relevance network is checked like CLR, and then cut
  weights <- .Call(C_weft_mi_network, m, which, eps, 1 - (tau %||% 0), control)
  if (method == "relnet") {
    threshold <- threshold %||% fdr_threshold(m, fdr)
    weights <- ifelse(as.matrix(m) > threshold, as.matrix(m), 0)
    diag(weights) <- 0
  }
  names <- colnames(m) %||% rownames(m) %||% sprintf("V%d", seq_len(p))
  # at once, so that a large matrix is not copied
  attributes(weights) <- c(list(dim = c(p, p), dimnames = list(names, names), class = c("weft_network", "matrix", "array")),
                           run_record(match.call(), chosen, started, method = method, threshold = threshold, mi = m))
  weights
}

network_methods <- c("aracne", "clr", "mrnet", "mrnetb") # in the order of weft_network_method

network_backend <- function(method, p, backend, threads) {
  if (method == "relnet") {
    if (!is.null(backend)) check_choice(backend, backends, "backend")
    return(list(name = "cpu", reason = "a threshold is too little for a device"))
  }
  choose_backend(backend, cost_network(p, method, threads))
}

# A matrix of information stays; everything else is data.
network_input <- function(x, ...) {
  if (inherits(x, "weft_mi_matrix")) {
    if (nrow(x) != ncol(x) || is.null(attr(x, "test"))) {
      abort_input("`x` must be a square matrix of information.", x = sprintf("It is %d x %d.", nrow(x), ncol(x)),
                  i = "Leave `y` out of `mi_matrix()`.")
    }
    return(x)
  }
  given <- names(list(...))
  extra <- setdiff(given, c("backend", "threads", "progress", "verbose"))
  square <- is.matrix(x) && is.numeric(x) && nrow(x) == ncol(x) && identical(rownames(x), colnames(x)) && !length(extra)
  if (square && isSymmetric(unname(x), check.attributes = FALSE)) return(x)
  mi_matrix(x, ...)
}

# ---- significance ----

# p-values of pairs, or NULL when there is no test. at: a matrix of row and column numbers; NULL: all pairs, as a matrix.
pair_p_values <- function(m, at = NULL) {
  test <- attr(m, "test")
  if (is.null(test) || test$estimator == "ksg" || anyNA(test$n)) return(NULL)
  taken <- function(v) if (is.null(at)) v else v[at]
  mi <- taken(as.matrix(m)) * if (identical(attr(m, "unit"), "nats")) 1 else log(2)
  n <- if (length(test$n) > 1L) taken(test$n) else test$n
  if (!is.null(test$levels)) {
    if (test$estimator != "empirical") return(NULL)
    free <- pmax(test$levels, 1) - 1
    df <- if (is.null(at)) outer(free, free) else free[at[, 1L]] * free[at[, 2L]]
    p <- stats::pchisq(2 * n * mi, pmax(df, 1), lower.tail = FALSE)
    p[df == 0] <- 1
  } else if (test$estimator == "kendall") {
    variance <- 2 * (2 * n + 5) / (9 * n * (n - 1))
    p <- stats::pchisq((1 - exp(-2 * mi)) / variance, 1, lower.tail = FALSE)
  } else {
    p <- stats::pchisq(2 * n * mi, 1, lower.tail = FALSE)
  }
  if (!is.null(at)) return(p)
  dim(p) <- dim(mi)
  diag(p) <- NA
  p
}

# The greatest information that the false discovery rate does not let through.
fdr_threshold <- function(m, fdr) {
  p <- pair_p_values(m)
  if (is.null(p)) {
    abort_input("`threshold` must be given: there is no test of this information.",
                x = if (is.null(attr(m, "test"))) "It is a plain matrix." else sprintf("It is from \"%s\".", attr(m, "estimator")),
                i = "\"empirical\" counts without missing values, and correlations, have one.")
  }
  upper <- upper.tri(p)
  passes <- stats::p.adjust(p[upper], "BH") <= fdr
  mi <- as.matrix(m)[upper]
  if (all(passes)) return(if (length(mi)) min(mi) - 1 else 0)
  max(mi[!passes], 0)
}

# ---- edges ----

# Passes over matrices that may be most of the memory (mi_edges.c): no copies, all threads.
pass_control <- function(threads = NULL) run_control("cpu", threads_for(threads), FALSE)
smallest_weight <- 5e-324

# How many pairs have at least this information.
pairs_reaching <- function(m, bar, threads = NULL) sum(.Call(C_weft_mi_reaching, m, bar, FALSE, pass_control(threads)))

network_degree <- function(net) {
  if (is_directed(net)) return(directed_degree(net))
  stats::setNames(.Call(C_weft_mi_reaching, net, smallest_weight, TRUE, pass_control()), colnames(net))
}

count_edges <- function(net) if (is_directed(net)) length(shown_edges(net)) else sum(network_degree(net)) / 2

# Row and column numbers of the edges, heaviest first.
network_ends <- function(net) {
  starts <- c(0, cumsum(.Call(C_weft_mi_reaching, net, smallest_weight, FALSE, pass_control())))
  found <- .Call(C_weft_mi_edge_list, net, starts, pass_control())
  at <- cbind(found$from, found$to)
  at[order(-net[at], at[, 1L], at[, 2L]), , drop = FALSE]
}

many_features <- 5000L # more than these, and what is kept of all pairs would outgrow the matrices themselves

network_edges <- function(net, q_values = TRUE) {
  at <- network_ends(net)
  m <- attr(net, "mi")
  out <- list(feature1 = rownames(net)[at[, 1L]], feature2 = colnames(net)[at[, 2L]], weight = net[at])
  if (!is.null(m)) {
    out$mi <- m[at]
    if (q_values && !is.null(p <- pair_p_values(m))) {
      out$p_value <- p[at]
      p[upper.tri(p)] <- stats::p.adjust(p[upper.tri(p)], "BH")
      out$q_value <- p[at]
    } else if (!is.null(p <- pair_p_values(m, at))) {
      out$p_value <- p
    }
  }
  list2DF(out, nrow(at))
}

# ---- results ----

#' Print, summarise and convert networks
#'
#' @param x,object what [mi_network()] returned.
#' @param n how many edges to show.
#' @param ... ignored.
#' @return `as.data.frame()` and `tidy()`: one row an edge, heaviest first: `feature1`, `feature2`, `weight`, the information
#'   `mi` it stands on, and `p_value` and `q_value` where there is a test (`q_value`, which needs all pairs in order, up to
#'   5,000 features). `summary()`: a list with the number of features and
#'   edges, the density, the features of most edges, and how many have none. `as.matrix()`: a plain matrix.
#' @export
#' @examples
#' net <- mi_network(mtcars, "mrnet", estimator = "spearman")
#' summary(net)
#' as.data.frame(net)[1:3, ]
print.weft_network <- function(x, n = 6L, ...) {
  edges <- as.data.frame(x)
  cat(sprintf("Network of %d features with %d edges (%s)\n", nrow(x), nrow(edges), attr(x, "method") %||% "?"))
  if (nrow(edges)) {
    shown <- utils::head(edges, n)
    shown[] <- lapply(shown, function(column) if (is.double(column)) signif(column, 4) else column)
    print.data.frame(shown, row.names = FALSE)
  }
  if (nrow(edges) > n) cat(sprintf("... and %d more\n", nrow(edges) - n))
  if (!is.null(attr(x, "seconds"))) cat(run_line(x), "\n", sep = "")
  invisible(x)
}

#' @rdname print.weft_network
#' @export
as.matrix.weft_network <- function(x, ...) {
  attributes(x) <- attributes(x)[c("dim", "dimnames")]
  x
}

#' @rdname print.weft_network
#' @export
summary.weft_network <- function(object, ...) {
  degree <- network_degree(object)
  p <- nrow(object)
  list(features = p, edges = sum(degree) / 2, density = if (p > 1) sum(degree) / (p * (p - 1)) else 0,
       most = utils::head(sort(degree[degree > 0], decreasing = TRUE), 10L), isolated = sum(degree == 0),
       method = attr(object, "method"))
}

#' @rdname print.weft_network
#' @export
as.data.frame.weft_network <- function(x, ...) network_edges(x, q_values = ncol(x) <= many_features)

#' @rdname print.weft_network
#' @export
tidy.weft_network <- function(x, ...) as.data.frame(x)

#' @rdname print.weft_network
#' @export
glance.weft_network <- function(x, ...) {
  s <- summary(x)
  data.frame(features = s$features, edges = s$edges, density = s$density, method = s$method, backend = attr(x, "backend"),
             seconds = attr(x, "seconds"))
}

#' A network as an igraph
#'
#' @param x what [mi_network()] or [regulation()] returned.
#' @param isolated keep features without edges.
#' @param ... ignored.
#' @return An igraph, directed for [regulation()] and else undirected, with the edge attributes of `as.data.frame(x)`, weights among them.
#' @export
#' @examples
#' net <- mi_network(mtcars, "aracne", estimator = "spearman")
#' if (requireNamespace("igraph", quietly = TRUE)) as_igraph(net)
as_igraph <- function(x, ...) UseMethod("as_igraph")

#' @rdname as_igraph
#' @export
as_igraph.weft_network <- function(x, isolated = TRUE, ...) {
  if (!requireNamespace("igraph", quietly = TRUE)) {
    abort_input("`as_igraph()` needs the package igraph.", i = "`as.data.frame()` gives the edges without it.")
  }
  edges <- as.data.frame(x)
  if (anyDuplicated(colnames(x))) abort_input("Features must have names of their own for igraph.",
    x = sprintf("Twice: %s.", label_some(unique(colnames(x)[duplicated(colnames(x))]))))
  nodes <- if (isolated) network_features(x) else unique(c(edges[[1L]], edges[[2L]]))
  igraph::graph_from_data_frame(edges, directed = is_directed(x), vertices = data.frame(name = nodes))
}
