# nolint start: line_length_linter. Rows of tables in the help page stand on one line each.
#' Networks from mutual information
#'
#' `mi_network()` infers an undirected network of features: it keeps the pairs that are likely to be linked directly,
#' and gives each of them a weight. The shortest call for numeric data is
#' `mi_network(x, "aracne", estimator = "spearman")`; it returns a matrix of weights, and `as.data.frame()` makes a
#' table with one row per edge.
#'
#' | method | weights |
#' |---|---|
#' | `"aracne"` | \eqn{m_{ij}}, the information of i and j; the weakest edge of every triangle is removed if it is below the second weakest minus `eps`, or below `1 - tau` times the second weakest |
#' | `"clr"` | \eqn{\sqrt{z_i^2+z_j^2}}, where z is the deviation of \eqn{m_{ij}} from the mean of row i in standard deviations of that row, or 0 if that is negative; the diagonal is left out, and a row without spread has z = 0 |
#' | `"mrnet"` | for every target t, features are chosen one at a time according to their score, \eqn{m_{it}} minus the mean of \eqn{m_{ij}} over the features already chosen, as long as it is positive; the score is the weight |
#' | `"mrnetb"` | for every target t, each feature scores \eqn{m_{it} - \frac{1}{|S|}\sum_{j \in S \setminus i} m_{ij}}, with S all features at first; the worst leaves S for as long as it is negative, and is then exchanged for the best outside S for as long as that would score more in its place |
#' | `"relnet"` | \eqn{m_{ij}} where it is above `threshold` |
#'
#' `"mrnet"` and `"mrnetb"` give each pair the larger of its two weights. The diagonal of the matrix is not used. Edges
#' are the pairs with a positive weight. Differences that may be due to rounding are treated as 0: at most 1e-12 bits,
#' or, for a plain matrix, at most 9e-16 times the product of its number of rows and its largest entry.
#'
#' @section Significance: With `fdr`, each pair is tested, and the edges that pass at this false discovery rate are kept
#'   (Benjamini and Hochberg, over all pairs). `"relnet"` without `threshold` uses `fdr = 0.05` by default; the other
#'   methods test only if `fdr` is given. For counts, the statistic is G = 2 n I (I in nats) with (levels - 1)(levels -
#'   1) degrees of freedom and Williams' correction for levels of equal frequency. For correlations, the distribution of
#'   \eqn{r^2} under random orders of the rows of one feature is approximated by a beta distribution with the same mean
#'   and second moment (Pitman 1937). For normal features this is Student's t; outliers, ties and few rows give heavier
#'   tails. Ties also widen the variance of Kendall's tau-b, and its p-value is never below the p-value of the normal
#'   approximation. No p-value is below one divided by the number of different orders of the rows; with five samples,
#'   the minimum is 1/60. n is the number of rows in which both features are observed. There is no test for KSG, for
#'   corrected counts, for counts from which missing values were removed, and for a plain matrix. For these, the
#'   function stops with an error if `fdr` is given, and `"relnet"` needs `threshold`. If there is a test,
#'   `as.data.frame()` returns its p- and q-values for every method.
#'
#' @section Other packages: minet (3.65) gives the same weights for `"aracne"`, `"clr"` and `"mrnet"`, parmigene (1.1.1)
#'   for `"aracne"` and `"mrnet"`. parmigene's `clr` includes the diagonal in means and standard deviations and squares
#'   z twice; minet's `mrnetb` includes the target and the diagonal in its sums.
#'
#' @param x an object returned by [mi_matrix()], another symmetric matrix of mutual information, or data, which are
#'   passed to [mi_matrix()] together with `...`.
#' @param method the name of a method; see the table above.
#' @param eps,tau tolerances for `"aracne"`, of which only one can be given: `eps` in the unit of the information, `tau`
#'   between 0 and 1.
#' @param threshold for `"relnet"`, the mutual information that a pair must exceed to be an edge.
#' @param fdr the false discovery rate of edges; `NULL` for no test, except that `"relnet"` without a threshold then
#'   uses 0.05.
#' @param targets names or numbers of features. Only pairs with at least one of them can be edges and are tested;
#'   weights are computed from all features. The default is all pairs.
#' @param ... arguments of [mi_matrix()] if `x` contains data, such as `estimator`, `bins` and `na`.
#' @param run see [weft_run()]. `"clr"` and `"relnet"` always run on the CPU.
#' @return A symmetric matrix of weights of class `weft_network`, with a zero diagonal. Attributes record the call,
#'   method, back end and time; the attribute `mi` is the matrix from which the network was made. To save memory, ARACNE
#'   networks of more than 5,000 features that are made from data on the CPU do not have this attribute; their weights
#'   are the information of the edges.
#' @seealso [plot.weft_network()], [as_igraph()]
#' @export
#' @examples
#' net <- mi_network(mtcars, "aracne", estimator = "spearman")
#' net
#' head(as.data.frame(net))
# nolint end
mi_network <- function(x, method = c("aracne", "clr", "mrnet", "mrnetb", "relnet"), eps = 0, tau = NULL,
                       threshold = NULL, fdr = NULL, targets = NULL, run = NULL, ...) {
  run <- as_run(run, dry_run = TRUE)
  started <- proc.time()[[3L]]
  need_args("x")
  if (is_estimator(method)) {
    abort_input("`method` must be the name of a network method.", x = paste0("It is ", describe(method), "."),
                i = sprintf("To choose an estimator, use `estimator = %s`.", describe(method)))
  }
  method <- check_choice(method, names(network_methods), "method")
  eps <- check_number(eps, "eps", min = 0)
  if (!is.null(tau)) tau <- check_number(tau, "tau", min = 0, max = 1)
  if (!is.null(tau) && eps > 0) abort_input("Only one of `eps` and `tau` must be given.")
  if (!is.null(threshold)) threshold <- check_number(threshold, "threshold")
  if (!is.null(fdr)) fdr <- check_number(fdr, "fdr", min = 0, max = 1)
  only_for(eps > 0, "eps", "aracne", method)
  only_for(!is.null(tau), "tau", "aracne", method)
  only_for(!is.null(threshold), "threshold", "relnet", method)
  tested <- if (is.null(fdr)) method == "relnet" && is.null(threshold) else fdr < 1
  if (tested) refuse_untested(x, list(...)$estimator, method)
  m <- network_input(x, ..., run = run)
  if (inherits(m, "weft_plan")) { # of the matrix, which a dry run does not make
    chosen <- network_backend(method, attr(m, "features"), run)
    return(dry_plan("mi_network", chosen, list(m)))
  }
  if (!is.double(m)) m <- memory_errors(`storage.mode<-`(m, "double"))
  p <- nrow(m)
  chosen <- network_backend(method, p, run)
  report_backend(chosen, run)
  if (run$dry_run) return(dry_plan("mi_network", chosen))
  if (method == "relnet" && is.null(threshold)) fdr <- fdr %||% 0.05
  names <- colnames(m) %||% rownames(m) %||% sprintf("V%d", seq_len(p))
  if (!is.null(targets)) targets <- chosen_columns(factor_text(targets), names, "targets")
  significant <- if (!is.null(fdr) && fdr < 1) {
    memory_errors(significant_pairs(m, fdr, run$threads, targets)) %||% abort_untested(m, method)
  }
  control <- run_control(chosen$name, run$threads, run$progress, colnames(m), "Building the network")
  how <- list(method = method, eps = if (method == "relnet") threshold %||% -Inf else eps, keep = 1 - (tau %||% 0),
              least = rounding_of(m))
  if (!inherits(x, "weft_mi_matrix") && is.null(targets) && works_over(m, method, significant, chosen$name)) {
    m <- aracne_over(m, significant, how, control)
    return(set_attributes(m, run_record(match.call(), chosen, started, method = method, fdr = fdr)))
  }
  weights <- .Call(C_weft_mi_network, m, how, control)
  if (!is.null(significant)) weights <- cut_to_significant(weights, m, significant, pass_control(run$threads))
  weights <- of_targets(weights, targets)
  # at once, so that a large matrix is not copied
  attributes(weights) <- c(list(dim = c(p, p), dimnames = list(names, names),
                                class = c("weft_network", "matrix", "array"), format = result_format),
                           run_record(match.call(), chosen, started, method = method, threshold = threshold, fdr = fdr,
                                      mi = m, targets = targets))
  weights
}

# Pairs with at least one target.
of_targets <- function(weights, targets) {
  if (!is.null(targets)) weights[-targets, -targets] <- 0
  weights
}

# ARACNE's weights are the information that stays. With many features, a second matrix would be most of the memory:
# where nothing else refers to the first, and thresholds of information cut, weights take its place. Pairs at the lowest
# threshold or below it remove no pair above it, and need not be examined.
works_over <- function(m, method, significant, backend) {
  method == "aracne" && backend == "cpu" && inherits(m, "weft_mi_matrix") && ncol(m) > many_features &&
    (is.null(significant) || !is.null(significant$thresholds) || identical(significant$cut, significant$information))
}

aracne_over <- function(m, significant, how, control) {
  how$least <- max(how$least, significant$information)
  .Call(C_weft_mi_network_over, m, how, significant$thresholds, control)
  set_attributes(m, list(class = c("weft_network", "matrix", "array"), na = NULL))
}

# The information that a network was made from; weights that have taken its place keep its test.
information_of <- function(net) {
  attr(net, "mi", exact = TRUE) %||% if (!is.null(attr(net, "test", exact = TRUE))) net
}

# Those of src/mi/networks/kinds.h: how reports cite each, and what the weight of an edge is.
weight_is_information <- "is the mutual information of the two genes, which is 0 if they are independent"
weight_is_information_left <- paste("is the mutual information of the two genes minus what other genes reveal",
                                    "about the second")
network_methods <- list(
  aracne = list(cite = "ARACNE (Margolin et al. 2006)", weight = weight_is_information),
  clr = list(cite = "CLR (Faith et al. 2007)",
             weight = paste("is the excess of the mutual information of the two genes over their usual values with",
                            "other genes, in standard deviations")),
  mrnet = list(cite = "MRNET (Meyer et al. 2007)", weight = weight_is_information_left),
  mrnetb = list(cite = "MRNETB (Meyer et al. 2010)", weight = weight_is_information_left),
  relnet = list(cite = "a threshold (relevance network)", weight = weight_is_information)
)

only_for <- function(given, arg, method, used) {
  if (!given || method == used) return(invisible())
  abort_input(sprintf("`%s` must only be given with method \"%s\".", arg, method),
              x = sprintf("`method` is \"%s\".", used),
              i = if (arg == "threshold") "`fdr` keeps significant edges with any method.")
}

# Before the work: information of data by an estimator that has no test.
refuse_untested <- function(x, estimator, method) {
  if (!inherits(x, "weft_mi_matrix") && is_word(estimator, untested_estimators)) {
    abort_untested(NULL, method, estimator)
  }
}

untested_estimators <- c("ksg", "miller-madow", "shrink", "schurmann-grassberger")

abort_untested <- function(m, method, estimator = attr(m, "estimator")) {
  must <- if (method == "relnet") "`threshold` must be given" else "`fdr` must be NULL"
  abort_input(paste0(must, ", because this information has no test."),
              x = if (is.null(estimator)) "`x` is a plain matrix." else sprintf("The estimator is \"%s\".", estimator),
              i = "There are tests for correlations, and for \"empirical\" without missing values.")
}

# Information up to this is what rounding leaves of independence; a matrix from elsewhere has a scale of its own.
rounding_of <- function(m) {
  if (!inherits(m, "weft_mi_matrix")) 0 else if (identical(attr(m, "unit"), "nats")) 1e-12 * log(2) else 1e-12
}

network_backend <- function(method, p, run) {
  plan <- function() mi_plan("networks", kind = method, p = p, threads = run$threads)
  if (is.finite(plan()$cuda)) return(choose_backend(run$backend, plan()))
  if (!is.null(run$backend)) check_choice(run$backend, backends, "backend")
  list(name = "cpu", reason = "the method has too little work for a device", plan = plan())
}

# A matrix of information stays, and a square one whose rows and columns have the same names; everything else is data.
network_input <- function(x, ...) {
  if (inherits(x, "weft_mi_matrix")) {
    check_information(x)
    if (nrow(x) != ncol(x) || is.null(attr(x, "test"))) {
      abort_input("`x` must be a square matrix of information.", x = sprintf("It is %d x %d.", nrow(x), ncol(x)),
                  i = "Call `mi_matrix()` without `y`.")
    }
    return(x)
  }
  given <- names(list(...))
  extra <- setdiff(given, "run")
  square <- is.matrix(x) && !is.object(x) && is.numeric(x) && nrow(x) == ncol(x) &&
    identical(rownames(x), colnames(x)) && !length(extra)
  if (square && (!is.null(colnames(x)) || is_symmetric(unname(x)))) return(x)
  mi_matrix(x, ...)
}

# isSymmetric() takes the mean of all differences, which an exactly symmetric matrix does not need.
is_symmetric <- function(x) {
  (is.double(x) && .Call(C_weft_symmetric, x, control_of_size(length(x)))) ||
    isSymmetric(x, check.attributes = FALSE)
}

# ---- significance ----

# The test of a matrix of information, or NULL where it has none: list(estimator, n, levels), as mi_matrix() left it.
pair_test <- function(m) {
  test <- attr(m, "test")
  if (is.null(test)) return(NULL)
  p <- ncol(m)
  number <- function(v, lengths) is.numeric(v) && length(v) %in% lengths
  each <- function(v, least, most = 1e300) is.null(v) || number(v, p) && isTRUE(all(v >= least & v <= most))
  fine <- is.list(test) && is.character(test$estimator) && length(test$estimator) == 1L && !is.na(test$estimator) &&
    p == nrow(m) && each(test$levels, 0) && each(test$kurtosis, -1e300) && each(test$stretch, 1e-3) &&
    each(test$orders, 0, Inf) && (identical(test$n, NA) || number(test$n, c(1, as.double(p)^2)))
  if (!fine) abort_changed("x", "its attribute `test` is damaged")
  if (test$estimator %in% untested_estimators || anyNA(test$n)) NULL else test
}

# ---- edges ----

# A network as mi_network() made it, before its sizes and names are trusted.
check_network <- function(x, arg = "x") {
  check_information(x, arg)
  if (is_directed(x)) return(check_regulation(x, arg)) # regulators in rows need not be the targets in columns
  if (nrow(x) != ncol(x)) abort_changed(arg, sprintf("it has %d rows and %d columns", nrow(x), ncol(x)))
  if (!identical(rownames(x), colnames(x))) abort_changed(arg, "its names")
  targets <- attr(x, "targets", exact = TRUE)
  if (!is.null(targets) && !is_numbers(targets, NULL, 1, ncol(x),
                                       whole = TRUE)) abort_changed(arg, "its attribute `targets` is damaged")
  m <- attr(x, "mi", exact = TRUE)
  if (!is.null(m) && (!is.double(m) || !identical(dim(m), dim(x)))) abort_changed(arg, "its attribute `mi` is damaged")
  x
}

# Passes over matrices that may be most of the memory (networks/cpu/edges.c): no copies, all threads.
pass_control <- function(threads = NULL) run_control("cpu", threads_for(threads), FALSE)
smallest_weight <- 5e-324

# How many pairs have at least this information.
pairs_reaching <- function(m, threshold, threads = NULL) {
  sum(.Call(C_weft_mi_reaching, m, threshold, FALSE, pass_control(threads)))
}

network_degree <- function(net) {
  if (is_directed(net)) return(directed_degree(net))
  check_network(net)
  stats::setNames(.Call(C_weft_mi_reaching, net, smallest_weight, TRUE, pass_control()), colnames(net))
}

count_edges <- function(net) if (is_directed(net)) length(shown_edges(net)) else sum(network_degree(net)) / 2

# Row and column numbers of the edges, heaviest first.
network_ends <- function(net) {
  check_network(net)
  starts <- c(0, cumsum(.Call(C_weft_mi_reaching, net, smallest_weight, FALSE, pass_control())))
  found <- .Call(C_weft_mi_edge_list, net, starts, pass_control())
  at <- cbind(found$from, found$to)
  if (anyNA(net[at])) abort_changed("x", "its weights are damaged")
  at[order(-net[at], at[, 1L], at[, 2L]), , drop = FALSE]
}

many_features <- 5000L # more than these, and what is kept of all pairs would outgrow the matrices themselves

network_edges <- function(net, q_values = TRUE) {
  at <- network_ends(net)
  m <- information_of(net)
  names <- colnames(net)
  out <- list(from = names[at[, 1L]], to = names[at[, 2L]], weight = net[at])
  if (!is.null(m)) {
    out$mi <- m[at]
    if (q_values && !is.null(attr(net, "mi")) && !is.null(pair_test(m))) {
      pairs <- which(upper.tri(m), arr.ind = TRUE)
      p <- pair_p_values(m, pairs)
      targets <- attr(net, "targets", exact = TRUE)
      if (!is.null(targets)) p[!(pairs[, 1L] %in% targets | pairs[, 2L] %in% targets)] <- NA # not tested
      place <- (at[, 2L] - 1) * (at[, 2L] - 2) / 2 + at[, 1L] # above the diagonal, column after column
      out$p_value <- p[place]
      out$q_value <- false_rates(p)[place]
    } else if (!is.null(p <- pair_p_values(m, at))) {
      out$p_value <- p
    }
  }
  as_frame(out, nrow(at))
}

# ---- results ----

#' Print, summarise and convert networks
#'
#' @param x,object an object returned by [mi_network()].
#' @param n the number of edges to show.
#' @param ... ignored.
#' @return `as.data.frame()` and `tidy()`: one row per edge, in decreasing order of weight: `from`, `to`, `weight`, `mi`
#'   (the information of the pair), and `p_value` and `q_value` if there is a test (`q_value` only for up to 5,000
#'   features, because it needs all pairs in order). `summary()`: a list with the number of features and edges, the
#'   density, the features with the most edges, and the number of features without edges. `as.matrix()`: a plain matrix.
#' @export
#' @examples
#' net <- mi_network(mtcars, "mrnet", estimator = "spearman")
#' summary(net)
#' as.data.frame(net)[1:3, ]
print.weft_network <- function(x, n = 6L, ...) {
  n <- check_shown(n)
  edges <- as.data.frame(x)
  cat(sprintf("Network of %s with %s (%s)\n", several(nrow(x), "feature"), several(nrow(edges), "edge"),
              attr(x, "method") %||% "?"))
  print_first(edges, n)
  if (!is.null(attr(x, "seconds"))) check_result(x, record = run_attributes)
  invisible(x)
}

#' @rdname print.weft_network
#' @export
as.matrix.weft_network <- function(x, ...) {
  check_information(x) # a directed network has as many rows as regulators
  attributes(x) <- attributes(x)[c("dim", "dimnames")]
  x
}

#' @rdname print.weft_network
#' @export
summary.weft_network <- function(object, ...) {
  degree <- network_degree(object)
  p <- nrow(object)
  as_summary(list(features = p, edges = sum(degree) / 2, density = if (p > 1) sum(degree) / (p * (p - 1)) else 0,
                  most = utils::head(sort(degree[degree > 0], decreasing = TRUE), 10L), isolated = sum(degree == 0),
                  method = attr(object, "method"), run = run_line(object)), "Network")
}

#' @rdname print.weft_network
#' @export
as.data.frame.weft_network <- function(x, ...) network_edges(x, q_values = ncol(x) <= many_features)

#' @rdname print.weft_network
#' @export
tidy.weft_network <- function(x, ...) broom_names(as.data.frame(x))

#' @rdname print.weft_network
#' @export
glance.weft_network <- function(x, ...) {
  check_result(x, record = c("method", run_attributes))
  s <- summary(x)
  data.frame(features = s$features, edges = s$edges, density = s$density, method = s$method,
             backend = attr(x, "backend"),
             seconds = attr(x, "seconds"))
}

#' Convert a network to igraph
#'
#' `as_igraph(net)` passes a network to the package igraph, for its plots, layouts and measures.
#'
#' @param x an object returned by [mi_network()] or [regulation()].
#' @param isolated whether to keep features without edges.
#' @param ... ignored.
#' @return An igraph graph, directed for [regulation()] and undirected otherwise. Its edges have the columns of
#'   `as.data.frame(x)` as attributes, `weight` among them.
#' @export
#' @examples
#' net <- mi_network(mtcars, "aracne", estimator = "spearman")
#' if (requireNamespace("igraph", quietly = TRUE)) as_igraph(net)
as_igraph <- function(x, ...) {
  need_args("x")
  UseMethod("as_igraph")
}

#' @exportS3Method as_igraph default
as_igraph.default <- function(x, ...) {
  abort_input("`x` must be a network returned by `mi_network()`, `gene_network()` or `bn_learn()`.",
              x = paste0("It is ", describe(x), "."))
}

#' @rdname as_igraph
#' @export
as_igraph.weft_network <- function(x, isolated = TRUE, ...) {
  isolated <- check_flag(isolated, "isolated")
  if (!requireNamespace("igraph", quietly = TRUE)) {
    abort_input("`as_igraph()` needs the package igraph.", i = "`as.data.frame()` returns the edges without it.")
  }
  edges <- as.data.frame(x)
  if (anyDuplicated(colnames(x))) abort_input("Features must have unique names for igraph.",
    x = sprintf("Duplicated: %s.", label_some(unique(colnames(x)[duplicated(colnames(x))]))))
  nodes <- if (isolated) network_features(x) else unique(c(edges[[1L]], edges[[2L]]))
  igraph::graph_from_data_frame(edges, directed = is_directed(x), vertices = data.frame(name = nodes))
}
