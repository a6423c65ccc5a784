#' Paths, ancestors, Markov blankets and equivalence classes
#'
#' `bn_features()` estimates posterior probabilities of network features other than single edges: that one node is an
#' ancestor of another, that it belongs to the Markov blanket of another (its parents, its children, and their other
#' parents), and that the network belongs to an equivalence class. The shortest call is `bn_features(fit)`; it returns
#' matrices of probabilities and a table of classes. They are estimated from graphs that are sampled from the posterior,
#' with Monte Carlo standard errors.
#'
#' The graphs of `bn_exact(posterior = "dag")` are sampled exactly and independently from the posterior with a uniform
#' prior over graphs (Talvitie, Vuoksenmaa and Koivisto 2020), layer by layer: the nodes without parents, the nodes
#' whose parents are among these, and so on. For [bn_learn()], the graphs are those that the chains sampled, with a
#' uniform prior over orders for `target = "sum"` and over graphs for `"uniform"`. Their errors come from the means of
#' eight segments of each chain, and are too small if the chains did not converge. `resample` has no effect: the graphs
#' come from the posterior given all rows.
#'
#' An edge represents dependence given the variables in the data, and a path is a chain of such edges. The
#' probabilities are valid if the model is correct and there are no hidden common causes; otherwise they are too high,
#' as for [bn_exact()]. In linear networks of 20 nodes, paths with a probability of at least 0.8 had a mean of 0.97, and
#' 89 % existed; with half of the nodes hidden, the mean was 0.95 and 60 % existed. Of the pairs said to belong to each
#' other's Markov blanket, nearly all did: 100 % and 98 %. With effects that were no lines, 83 % did, and 55 % of the
#' paths existed (`inst/bench/bn-calibration.R`).
#'
#' @param fit an object returned by `bn_exact(posterior = "dag")`, or [bn_learn()] with the target `"sum"` or
#'   `"uniform"`.
#' @param draws the number of graphs to sample from an exact posterior; not for chains, which have already sampled their
#'   graphs.
#' @param seed a whole number; by default, it is drawn from R's generator.
#' @param run see [weft_run()].
#' @return An object of class `weft_bn_features`: matrices \[from, to\] `edges`, `paths` (from is an ancestor of to) and
#'   `blankets` (symmetric); `classes`, a data frame of equivalence classes, most probable first, with their
#'   `probability`, its `error`, and the numbers of `edges` and of `undirected` edges; `cpdags`, the graphs of the
#'   classes, like from [bn_cpdag()]; `errors`, the standard errors of the three matrices; `draws` and `different`, the
#'   numbers of sampled and of distinct graphs.
#' @seealso [bn_exact()], [bn_learn()], [bn_cpdag()]
#' @export
#' @examples
#' d <- data.frame(a = rep(0:1, 20), b = rep(c(0L, 1L, 1L, 1L), 10), c = rep(0:1, each = 20))
#' features <- bn_features(bn_exact(d, posterior = "dag"), draws = 500, seed = 1)
#' features
#' features$paths
bn_features <- function(fit, draws = NULL, seed = NULL, run = NULL, ...) {
  run <- as_run(run)
  check_dots(...)
  started <- proc.time()[[3L]]
  need_args("fit")
  chosen <- list(name = "cpu", reason = "graphs are drawn on the CPU")
  if (!inherits(fit, "weft_bn")) {
    abort_input("`fit` must be an object returned by `bn_exact()` or `bn_learn()`.",
                x = paste0("It is ", describe(fit), "."))
  }
  if (inherits(fit, "weft_bn_search")) {
    abort_input("`fit` must contain sampled graphs.", x = "A local search samples no graphs.",
                i = "Use `bn_learn(data, target = \"uniform\", start = fit)`.")
  }
  exact <- inherits(fit, "weft_bn_exact")
  drawn <- if (exact) draw_exactly(fit, draws, seed, run) else chain_graphs(fit, draws)
  result <- memory_errors(graph_features(if (exact || is.null(fit$drawn)) fit$table else fit$drawn, drawn))
  record(new_result(result, class = "weft_bn_features"), match.call(), chosen, started)
}

# Numbers of sets, a column per graph, and the stretch that each belongs to; `independent` draws.
draw_exactly <- function(fit, draws, seed, run) {
  check_bn(fit, "fit")
  if (!identical(fit$posterior, "dag")) {
    abort_input("`fit` must have a posterior over graphs.",
                x = sprintf("It was made with `posterior = \"%s\"`.", fit$posterior),
                i = "Use `bn_exact(data, posterior = \"dag\")`.")
  }
  check_bn_table(fit[["table"]], "fit$table")
  draws <- check_number(draws %||% 1000, "draws", min = 2, max = 1e6, whole = TRUE)
  check_exact_memory(nrow(fit$dag), "dag", "cpu", length(fit$table$score), run$threads, drawing = TRUE)
  sets <- memory_errors(.Call(C_weft_bn_draw_graphs, bn_native_table(fit$table), fit$score,
                              list(key = draw_key(seed), draws = draws),
                              run_control("cpu", run$threads, run$progress, fit$table$nodes, "Drawing networks")))
  list(sets = sets, stretch = rep(1L, draws), independent = TRUE)
}

chain_graphs <- function(fit, draws) {
  if (is.null(fit[["drawn"]])) check_bn_chains(fit, "fit") else check_drawn(check_bn(fit, "fit"))
  if (fit$target == "max") {
    abort_input("`fit` must contain sampled graphs.", x = "It was learned with `target = \"max\"`.",
                i = "Use `bn_learn(data, target = \"uniform\")`.")
  }
  if (!is.null(draws)) {
    abort_input("`draws` can only be given for an exact posterior.",
                x = sprintf("The chains sampled %d networks.", length(fit$sample_score)))
  }
  p <- nrow(fit$dag)
  samples <- nrow(fit$sample_score)
  stretches <- ceiling(seq_len(samples) / samples * min(8, samples))
  list(sets = matrix(fit$drawn$sets %||% fit$sampled, p),
       stretch = as.integer(outer(stretches, 8 * (seq_len(ncol(fit$sample_score)) - 1L), `+`)), independent = FALSE)
}

# `cells` of matrices are looked at together.
graph_features <- function(table, drawn, cells = 2^20) {
  p <- length(table$nodes)
  key <- apply(drawn$sets, 2L, paste, collapse = " ")
  first <- which(!duplicated(key))
  check_feature_memory(p, ncol(drawn$sets), length(first), length(unique(drawn$stretch)), cells, drawn$independent)
  dags <- lapply(first, function(k) sets_to_dag(table, drawn$sets[, k, drop = FALSE]))
  # how often each different graph was drawn in each stretch
  shares <- rowsum(rep(1, length(key)), paste(drawn$stretch, match(key, key[first])))
  at <- matrix(as.integer(unlist(strsplit(rownames(shares), " ", fixed = TRUE))), 2L)
  stretch <- match(at[1L, ], unique(at[1L, ]))
  weight <- matrix(0, max(stretch), length(first))
  weight[cbind(stretch, at[2L, ])] <- shares
  cpdags <- lapply(dags, class_of)
  text <- vapply(cpdags, paste, "", collapse = "")
  number <- match(text, unique(text))
  square <- function(x) matrix(x, p, p, dimnames = list(from = table$nodes, to = table$nodes))
  of_graphs <- function(f) { # some graphs at a time; sums of counts are exact in any order
    mass <- matrix(0, nrow(weight), p * p)
    for (some in split(seq_along(dags), ceiling(seq_along(dags) * p * p / cells))) {
      holds <- vapply(dags[some], function(dag) as.double(f(dag != 0)), double(p * p))
      mass <- mass + tcrossprod(weight[, some, drop = FALSE], matrix(holds, p * p))
    }
    estimate_share(mass, weight, drawn)
  }
  found <- list(edges = of_graphs(identity), paths = of_graphs(ancestors_of), blankets = of_graphs(blankets_of))
  classes <- estimate_share(t(rowsum(t(weight), number)), weight, drawn)
  ranked <- order(-classes$share)
  cpdags <- cpdags[!duplicated(number)][ranked]
  undirected <- vapply(cpdags, function(x) sum(x & t(x)) / 2, 0)
  c(lapply(found, function(f) square(f$share)), list(
    classes = data.frame(probability = classes$share[ranked], error = classes$error[ranked],
                         edges = vapply(cpdags, sum, 0) - undirected, undirected = undirected, row.names = NULL),
    cpdags = cpdags, errors = lapply(found, function(f) square(f$error)), draws = ncol(drawn$sets),
    different = length(first), independent = drawn$independent
  ))
}

# Of each draw its sets as text; of each different graph its matrix, that of its class, both with names, the text of the
# latter, and how often each stretch has it; the matrices that are looked at together.
feature_bytes <- function(p, draws, different, stretches, cells) {
  draws * (8 * p + 150) + as.double(different) * (11 * p^2 + 1500 + 16 * stretches) + 24 * cells
}

check_feature_memory <- function(p, draws, different, stretches, cells, independent) {
  need <- feature_bytes(p, draws, different, stretches, cells)
  free <- host_free()
  if (free < 0 || need <= free) return(invisible())
  weft_abort("memory", sprintf("The features need about %s of memory; %s is available.", bytes_text(need),
                               bytes_text(free)),
             x = sprintf("There are %s different networks of %d nodes.", number_text(different), as.integer(p)),
             i = if (independent) "Use fewer `draws`." else "Learn with a larger `thin`, which draws fewer networks.")
}

# Shares of properties, and their standard errors: of independent draws, or from the stretches' means. `mass`: the
# weight of the graphs with each property (columns) in each stretch (rows), `weight` that of each graph.
estimate_share <- function(mass, weight, drawn) {
  share <- pmin(colSums(mass) / sum(weight), 1)
  if (drawn$independent) return(list(share = share, error = sqrt(share * (1 - share) / ncol(drawn$sets))))
  means <- mass / rowSums(weight)
  list(share = share, error = apply(means, 2L, stats::sd) / sqrt(nrow(means)))
}

# [from, to]: from is an ancestor of to.
ancestors_of <- function(edges) {
  for (k in seq_len(nrow(edges))) edges <- edges | outer(edges[, k], edges[k, ], `&`)
  edges
}

# Parents, children, and the children's other parents.
blankets_of <- function(edges) {
  blanket <- edges | t(edges) | (edges %*% t(edges)) > 0
  diag(blanket) <- FALSE
  blanket
}

#' @rdname bn_features
#' @param x an object returned by `bn_features()`.
#' @param ... ignored.
#' @export
print.weft_bn_features <- function(x, ...) {
  check_features(x)
  best <- x$classes[1L, ]
  cat(sprintf("Features of %d networks %s: %d distinct, in %d equivalence classes\n", as.integer(x$draws),
              if (x$independent) "sampled from the exact posterior over graphs" else "sampled by MCMC",
              as.integer(x$different), nrow(x$classes)))
  cat(sprintf("Most probable class: probability %.3f (standard error %.3f), %d edges, %d of them undirected\n",
              best$probability,
              best$error, as.integer(best$edges), as.integer(best$undirected)))
  cat(sprintf("Probability of at least 0.5: %d directed paths, %d pairs in each other's Markov blanket\n",
              sum(x$paths >= 0.5), sum(x$blankets >= 0.5) / 2))
  cat_wrapped(edge_meaning)
  invisible(x)
}

#' @rdname bn_features
#' @param row.names,optional ignored.
#' @return `as.data.frame()`: one row for each ordered pair of nodes, with the most probable paths first: `from`, `to`,
#'   the probabilities `edge`, `path` and `blanket`, and their standard errors `edge_error`, `path_error` and
#'   `blanket_error`.
#' @export
as.data.frame.weft_bn_features <- function(x, row.names = NULL, optional = FALSE, ...) {
  check_features(x)
  at <- which(row(x$paths) != col(x$paths))
  nodes <- rownames(x$paths)
  out <- data.frame(from = nodes[row(x$paths)[at]], to = nodes[col(x$paths)[at]], edge = x$edges[at],
                    path = x$paths[at], blanket = x$blankets[at], edge_error = x$errors$edges[at],
                    path_error = x$errors$paths[at], blanket_error = x$errors$blankets[at])
  out <- out[order(-out$path, -out$edge), ]
  rownames(out) <- NULL
  out
}

#' @rdname bn_features
#' @export
tidy.weft_bn_features <- function(x, ...) as.data.frame(x)

#' @rdname bn_features
#' @export
glance.weft_bn_features <- function(x, ...) {
  check_features(x)
  data.frame(nodes = nrow(x$paths), draws = x$draws, different = x$different, classes = nrow(x$classes),
             best_class = x$classes$probability[1L], independent = x$independent, seconds = attr(x, "seconds"))
}

check_features <- function(x) {
  need <- parts_of(x, "x", "bn_features()")
  columns <- c("probability", "error", "edges", "undirected")
  need("classes", function(v) is.data.frame(v) && nrow(v) > 0L && all(vapply(v[columns], is_numbers, NA, min = 0)),
       "a data frame of numbers")
  for (part in c("paths", "edges", "blankets")) {
    need(part, function(v) is_edges(v, rownames(x[["paths"]])),
         "a matrix of probabilities with the nodes as row and column names")
  }
  need("errors", function(v) is.list(v) && all(vapply(c("edges", "paths", "blankets"), function(of) {
    is_table(v[[of]], nrow(x[["paths"]]), nrow(x[["paths"]]), min = 0)
  }, NA)), "a list of matrices of standard errors")
  for (part in c("draws", "different")) {
    need(part, function(v) is_numbers(v, 1L, min = 1, whole = TRUE), "a whole number")
  }
  need("independent", is_flag, "TRUE or FALSE")
  check_run_record(parts_of(x, "x", "bn_features()", function(part) attr(x, part, exact = TRUE)))
  invisible(x)
}
