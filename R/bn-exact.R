#' The provably best network, and exact edge posteriors
#'
#' `bn_exact()` finds the best network of up to 37 nodes with proof, and exact posteriors of edges. The shortest call is
#' `bn_exact(x)`; it returns the network as the matrix `dag`, with its score. The optimum is found by dynamic
#' programming over all subsets of nodes (Silander and Myllymaki 2006). This needs 8 bytes for each of the 2^p subsets,
#' which is 1 GB for 27 nodes, 69 GB for 33, 137 GB for 34 and 275 GB for 35. With `run = "cuda"`, the subsets are kept
#' in the memory of the device. If it is too small, the memory of the other devices of `weft_run(devices = )` is used,
#' and then the memory of the host, which is slower; one device does the work. If there is not enough memory, the
#' function stops with an error before it starts.
#'
#' `posterior = "order"` is the exact posterior under a uniform prior over orders (Koivisto and Sood 2004), which
#' `bn_learn(target = "sum")` estimates, with forward and backward sums over all subsets. This takes about p^2 2^p
#' steps, and again 8 bytes per subset. All terms are positive and have separate exponents, which avoids cancellation
#' and underflow for any differences of scores. The two directions are compared, and the probabilities of the parent
#' sets of each node must sum to 1.
#'
#' `posterior = "dag"` is the posterior under a uniform prior over graphs, by inclusion and exclusion (Tian and He
#' 2009). It takes 3^p steps in each of two directions and 12 (p + 2) bytes for each subset: seconds on one core of a
#' CPU for 18 nodes. The limit is 24 nodes on the CPU, and 27 with `run = "cuda"`. Terms of both signs cancel. They are
#' whole numbers in units of 2^-60 of the largest possible sum, and `error` is the largest deviation from 1 of the
#' summed probabilities of a node's parent sets. If it exceeds 1e-6, the function stops with an error. [bn_features()]
#' samples graphs from this posterior.
#'
#' If `x` allows no cycles ([bn_time()] without edges within a time point), the nodes are independent of each other: the
#' optimum and the posterior `"dag"` are computed for each node separately, for any number of nodes.
#'
#' @section Calibration of edge probabilities: An edge represents a dependence that remains given the other variables in
#'   `x`. The probabilities are calibrated if the model of the score is true and all nodes are in the data. Hidden
#'   nodes, and effects that the score cannot describe, make them too high. In linear Gaussian networks with all nodes
#'   in the data, the edges to which `"bge"` assigned a probability of at least 0.8 had a mean probability of 0.98, and
#'   93 % of them were correct. With half of the nodes hidden, the mean was 0.96 and 80 % were correct; with effects
#'   that were sines, squares and steps, the mean was 0.92 and 72 % were correct. Most of the others joined variables
#'   that were dependent given the rest, through a hidden common cause or in the other direction: of all these edges,
#'   99 to 100 % in linear networks, and 93 % with the other effects (100 to 1,000 rows, `inst/bench/bn-calibration.R`).
#'
#' @inheritParams bn_learn
#' @param x a data frame or matrix as for [bn_scores()], or an object returned by `bn_scores()`; for posteriors, the
#'   table must be made with `keep = "all"`.
#' @param max_parents the largest number of parents of a node: one number, or a named vector; the default is that of
#'   [bn_scores()].
#' @param posterior `"none"`, `"dag"` or `"order"`.
#' @param control a list of settings that are rarely needed: `plus_one` and `slack`, as for [bn_scores()].
#' @param run see [weft_run()]. A device has its own memory and, for `"dag"`, a higher limit of nodes. The memory of
#'   other `devices` is also used, but not for `"dag"`.
#' @param ... passed on to [bn_scores()].
#' @return An object of class `weft_bn_exact` and `weft_bn`: `dag`, `score`, `edges` (\[from, to\], NULL without
#'   `posterior`), `log_total` (logarithm of the sum over graphs of exp(score), times orders for `"order"`), and
#'   for `"dag"` `error`.
#' @export
#' @examples
#' d <- data.frame(a = rep(0:1, 20), b = rep(c(0L, 1L, 1L, 1L), 10), c = rep(0:1, each = 20))
#' bn_exact(d, posterior = "dag")$edges
bn_exact <- function(x, max_parents = NULL, score = "bdeu", posterior = c("none", "dag", "order"),
                     control = list(), run = NULL, ...) {
  run <- as_run(run, dry_run = TRUE)
  control <- check_control(control, bn_scores_control)
  started <- proc.time()[[3L]]
  check_dots(..., .control = bn_scores_control, .allowed = bn_score_settings, .known = bn_other_names)
  need_args("x")
  if (missing(score) && is_mixed(x)) score <- "bic-cg"
  posterior <- check_choice(posterior, c("none", "dag", "order"), "posterior")
  keep <- if (posterior == "none") "max" else "all"
  table <- given_table(x, bn_given(match.call(), control), keep)
  p <- if (is.null(table)) node_count(x) else length(table$nodes)
  chosen <- bn_exact_backend(run, p, posterior)
  report_backend(chosen, run)
  if (run$dry_run) {
    before <- if (is.null(table)) bn_scores(x, max_parents = max_parents, score = score, ...,
                                            run = run_but(run, backend = table_backend(run$backend, score)),
                                            keep = keep, control = control)
    return(dry_plan("bn_exact", chosen, if (!is.null(before)) list(before)))
  }
  free <- posterior != "order" && is.null(table) && free_of_cycles(x)
  if (is.null(table)) {
    if (length(p) && !free) check_exact_memory(p, posterior, chosen$name, devices = chosen$devices)
    table <- bn_scores(x, max_parents = max_parents, score = score, ...,
                       run = run_but(run, backend = table_backend(run$backend, score)), keep = keep, control = control)
  }
  if (free) {
    return(record(node_by_node(table, posterior), match.call(), list(name = "cpu", reason = "no cycles"), started))
  }
  nodes <- length(table$nodes)
  check_exact_memory(nodes, posterior, chosen$name, length(table$score), run$threads, devices = chosen$devices)
  control <- run_control(chosen$name, worth_threads(plan_exact(nodes, posterior)$cpu, run), run$progress,
                         table$nodes, "Exact search", chosen$devices)
  best <- .Call(C_weft_bn_optimum, bn_native_table(table), control)
  result <- list(dag = sets_to_dag(table, best$sets), score = best$score, edges = NULL, posterior = posterior,
                 table = table)
  if (posterior != "none") {
    exact <- if (posterior == "order") order_edges(table, best$score, control)
             else graph_edges(table, best$score, control)
    result$edges <- matrix(exact$edges, length(table$nodes), dimnames = dimnames(result$dag))
    result$log_total <- exact$log_total
    if (posterior == "dag") result$error <- exact$error
  }
  record(new_result(result, class = c("weft_bn_exact", "weft_bn")), match.call(), chosen, started)
}

# Whether prepared data allow no cycle at all, as time series without edges within a point in time.
free_of_cycles <- function(x) {
  forbidden <- prepared_parts(x)$forbidden
  if (is.null(forbidden)) return(FALSE)
  allowed <- !forbidden
  diag(allowed) <- FALSE
  !length(find_cycle(allowed))
}

# Every choice of sets is a network: the best of each node, and each node's own probabilities.
node_by_node <- function(table, posterior) {
  p <- length(table$nodes)
  dag <- sets_to_dag(table, matrix(0L, p, 1L))
  result <- list(dag = dag, score = sum(table$score[table$start[seq_len(p)] + 1]), edges = NULL, posterior = posterior,
                 table = table)
  if (posterior == "dag") {
    result$edges <- dag + 0
    result$log_total <- 0
    result$error <- 0
    for (i in seq_len(p)) {
      sets <- (table$start[i] + 1):table$start[i + 1L]
      weight <- exp(table$score[sets] - table$score[sets[1L]])
      result$log_total <- result$log_total + table$score[sets[1L]] + log(sum(weight))
      of <- table$parents[, sets, drop = FALSE]
      result$edges[, i] <- vapply(seq_len(p), function(j) sum(weight[colSums(of == j) > 0]), 0) / sum(weight)
    }
  }
  new_result(result, class = c("weft_bn_exact", "weft_bn"))
}

# `shape`: into how many low and middle bits native code cuts subsets; zeros leave it the choice.
order_edges <- function(table, optimum, control, shape = list(low = 0L, middle = 0L)) {
  .Call(C_weft_bn_edges_orders, bn_native_table(table), optimum, shape, control)
}

graph_edges <- function(table, optimum, control) {
  .Call(C_weft_bn_edges_graphs, bn_native_table(table), optimum, control)
}

# Of data that are still to be checked; NULL when they say nothing.
node_count <- function(data) {
  if (is_experiment(data)) experiment_dim(data)[1L] else if (length(dim(data)) == 2L) ncol(data)
}

# Where an exact answer is computed, and on which devices its subsets may be kept. Subsets that they do not hold stay on
# the CPU, unless a device was asked for.
bn_exact_backend <- function(run, p, posterior) {
  p <- if (length(p)) p else 1
  chosen <- choose_backend(run$backend, plan_exact(p, posterior, threads = run$threads))
  chosen$devices <- if (posterior == "dag") first_device() else devices_for(run$devices, chosen$name)
  asked <- (run$backend %||% weft_backend()) == "cuda"
  if (chosen$name == "cuda" && !asked && beyond_devices(chosen$plan, chosen$devices) > 0) {
    chosen[c("name", "reason")] <- list("cpu", "more subsets than the device holds")
  }
  chosen
}

plan_exact <- function(p, posterior, sets = 0, threads = 1) {
  bn_plan("exact", kind = posterior, p = p, sets = sets, threads = threads)
}

# Bytes that the devices cannot hold; the first one keeps some for the work (src/bn/cuda/exact/subsets.cu).
beyond_devices <- function(plan, devices) {
  room <- weft_devices()$available[unique(devices) + 1L]
  limit <- getOption("weft.device_memory", 0)
  if (limit > 0) room <- pmin(room, limit)
  if (plan$device_bytes <= room[1L] - min(1e9, room[1L] / 4)) return(0)
  max(0, plan$device_bytes - sum(room - pmin(c(6e9, rep(1e9, length(room) - 1L)), room / 4)))
}

# `drawing`: graphs, for which each thread needs 32 bytes per subset, and one thread the weights of first layers.
# `devices`: those on which subsets may be kept; the host keeps the others.
check_exact_memory <- function(p, posterior, backend, sets = 0, threads = 1, drawing = FALSE, devices = NULL) {
  plan <- plan_exact(p, posterior, sets, threads)
  spread <- backend == "cuda" && posterior != "dag"
  held <- if (spread) plan$device_bytes - beyond_devices(plan, devices) else 0
  need <- if (spread) plan$bytes_cuda + plan$device_bytes else if (backend == "cuda") plan$bytes_cuda else plan$bytes
  if (drawing) need <- need + 32 * (threads + 1) * 2^p
  free <- host_free()
  most <- if (posterior != "dag") 37L else if (backend == "cuda") 27L else 24L
  if (p > most || (free >= 0 && need - held > free)) {
    weft_abort("memory", sprintf("The exact method needs about %s of memory for %d nodes; %s is available.",
                                 bytes_text(need), as.integer(p),
                                 if (free < 0) "an unknown amount" else bytes_text(free + held)),
               x = if (p > most) sprintf("The limit is %d nodes%s.", most,
                                         switch(posterior, none = "", order = " for `posterior = \"order\"`",
                                                dag = sprintf(" for `posterior = \"dag\"` with `run = \"%s\"`",
                                                              backend))),
               i = switch(posterior, none = "Use `bn_learn()`, or fewer nodes.",
                          order = "Use `bn_learn(target = \"sum\")`, or fewer nodes.",
                          dag = "Use `bn_learn(target = \"uniform\")`, or fewer nodes."))
  }
}

#' @rdname print.weft_bn
#' @export
print.weft_bn_exact <- function(x, ...) {
  check_bn(x, "x")
  cat(sprintf("Optimal Bayesian network of %s (proven): %s, %s %.4f\n", several(nrow(x$dag), "node"),
              several(sum(x$dag), "edge"), x$table$type, x$score))
  if (!is.null(x$edges)) {
    cat(sprintf("Exact edge posteriors (uniform prior over %ss): %d of at least 0.5\n",
                if (x$posterior == "dag") "graph" else "order",
                sum(x$edges >= 0.5)))
    cat_wrapped(edge_meaning)
  }
  invisible(x)
}

#' @rdname print.weft_bn
#' @export
glance.weft_bn_exact <- function(x, ...) {
  check_bn(x, "x")
  data.frame(nodes = nrow(x$dag), edges = sum(x$dag), score = x$score, type = x$table$type, posterior = x$posterior,
             seconds = attr(x, "seconds"))
}
