#' Kernel sums with guaranteed error
#'
#' `kernel_sum()` adds up a kernel, such as a Gaussian, over many points: \eqn{f(q) = \sum_i w_i\, k(q, x_i)} at every
#' query \eqn{q}. The shortest call is `kernel_sum(x, bandwidth = h)`, which sums over the rows of `x`, at each of these
#' rows. It returns one number for each row. The sum is exact, or within an error bound that you choose and that holds
#' for every query.
#'
#' [`?kernels`][kernels] lists the kernels with their formulas. `vignette("a-million-points")` describes the methods,
#' their bounds, lower precision, CUDA devices and ranks.
#'
#' @section Errors: By default, the result is exact: it is within 1e-12 of \eqn{\sum |w| k}. With a `rel_error`
#'   \eqn{\varepsilon} and an `abs_error` \eqn{\tau}, the result is within \eqn{\varepsilon f + \tau} of the sum, for
#'   every query and column of weights (\eqn{\varepsilon \sum |w| k + \tau} with weights of both signs).
#'
#' @param x the queries, at which to sum: a numeric matrix or data frame with one point per row, or a vector of numbers
#'   in one dimension. Its columns match the columns of `reference` by position.
#' @param reference the points over which to sum; by default, these are the rows of `x`.
#' @param weights `NULL` for weights of 1, a vector with one number per reference, or a matrix with one column per sum.
#'   Weights may have any sign.
#' @param kernel the name of a kernel (see [`?kernels`][kernels]), or [kernel_polynomial()].
#' @param bandwidth one number, the width of the kernel; one number per dimension; or a covariance matrix, for
#'   Mahalanobis distances.
#' @param rel_error the permitted relative error, from 0 (exact) to 1.
#' @param method `"auto"` chooses `"direct"`, `"tree"`, `"line"` or `"mesh"` according to the predicted work.
#'   `"montecarlo"`, `"features"` and `"nystrom"` are approximations for smooth kernels in many dimensions.
#' @param log whether to return the logarithms of sums.
#' @param leave_one_out whether to exclude reference `i` from the sum of query `i`; the references must be the queries.
#' @param control a list of settings that are rarely needed:
#'   * `abs_error`: a permitted absolute error, in addition to `rel_error`. The default is 0.
#'   * `confidence`: the probability with which the bound holds for each query and column of weights. The default is 1.
#'   * `nodes`: how a tree node's contribution is estimated: `"auto"`, `"bounds"`, `"series"` or `"samples"`.
#'   * `tree`: a [kernel_tree()] of the references, so that the tree need not be built again. It can replace
#'     `reference`.
#'   * `precision`: `"double"` (the default), `"single"` or `"tensor"`.
#' @param seed a whole number for random draws and for trees of type `"rp"`; by default, it comes from R's generator.
#' @param run see [weft_run()]. Queries are distributed over devices. Each rank gives its own part of the data.
#' @param ... not used; for an unknown argument, the error suggests the intended one.
#' @return A numeric vector, or a matrix with one column per column of `weights`, with the row names of `x`. Results
#'   from a device have an attribute `"backend"`.
#' @seealso [`?kernels`][kernels], [kde()], [kernel_regression()], [kernel_tree()]
#' @export
#' @examples
#' kernel_sum(faithful, bandwidth = c(0.3, 5))[1:3]
#' places <- cbind(eruptions = c(2, 4), waiting = c(55, 80))
#' kernel_sum(places, faithful, bandwidth = c(0.3, 5), rel_error = 0.01)
#' kernel_sum(faithful$waiting, weights = cbind(1, faithful$eruptions), bandwidth = 4)[1:3, ]
#' kernel_sum(faithful$waiting, bandwidth = 4, leave_one_out = TRUE)[1:3]
kernel_sum <- function(x, reference = NULL, weights = NULL, kernel = "gaussian", bandwidth = 1, rel_error = 0,
                       method = c("auto", "direct", "tree", "line", "mesh", "montecarlo", "features",
                                  "nystrom"), log = FALSE, leave_one_out = FALSE, control = list(), seed = NULL,
                       run = NULL, ...) {
  run <- as_run(run, ranks = TRUE, dry_run = TRUE)
  join_ranks(run$ranks, "kernel_sum", c(each_rank, "x", "reference", "weights", "tree"))
  control <- check_control(control, kernel_sum_control)
  check_dots(..., .control = kernel_sum_control, .known = kernel_names_elsewhere, .inside = polynomial_inside)
  need_args("x")
  check_seed(seed)
  if (is.null(x)) {
    abort_input("`x` must contain points.", x = "It is NULL.",
                i = "To sum at the references, give them as `x`.")
  }
  problem <- kernel_problem(x, reference, weights, kernel, bandwidth, rel_error, control$abs_error,
                            control$confidence, control$tree, log, leave_one_out, run)
  problem["seed"] <- list(seed)
  problem$nodes <- check_node_estimates(control$nodes, problem)
  precision <- check_choice(control$precision, c("double", "single", "tensor"), "precision")
  method <- check_choice(method, c("auto", "direct", "tree", "line", "mesh", "montecarlo", "features", "nystrom"),
                         "method")
  if (run$ranks && method %in% c("line", "mesh")) {
    abort_input(sprintf("Sums over ranks cannot be computed %s.",
                        if (method == "line") "along a line" else "over a mesh"),
                i = "Use \"auto\", \"direct\" or \"tree\".")
  }
  if (run$ranks && precision != "double") {
    abort_input("Sums over ranks need double precision.", x = sprintf("`precision` is \"%s\".", precision))
  }
  if (run$ranks && problem$nodes == "series") {
    abort_input("Sums over ranks need `nodes` \"auto\", \"bounds\" or \"samples\".", x = "`nodes` is \"series\".",
                i = "Over ranks, \"auto\" means \"bounds\".")
  }
  if (run$dry_run) return(dry_sums(problem, method, precision))
  result <- if (run$ranks) kernel_over_ranks(problem, method)
            else if (precision != "double") kernel_single(problem, method, precision)
            else kernel_run(problem, method)
  if (run$verbose) message("Method: ", result$method, " on ", result$backend %||% "cpu", " (", result$reason, ")")
  if (run$ranks && any(unlist(ranks_gather(run$verbose)))) show_counters(result)
  shape_sums(result, problem)
}

kernel_sum_control <- function(abs_error = 0, confidence = 1, tree = NULL,
                               nodes = c("auto", "bounds", "series", "samples"),
                               precision = c("double", "single", "tensor")) as.list(environment())

check_node_estimates <- function(nodes, problem) {
  nodes <- check_choice(nodes, c("auto", "bounds", "series", "samples"), "nodes")
  if (nodes == "series" && (problem$kernel != "gaussian" || ncol(problem$reference) > 6L)) {
    abort_input("`nodes = \"series\"` needs the Gaussian kernel in up to 6 dimensions.",
                x = sprintf("`kernel` is \"%s\", in %d dimensions.", problem$kernel, ncol(problem$reference)))
  }
  if (nodes == "samples" && (problem$confidence == 1 || is_compact_or_polynomial(problem$kernel))) {
    abort_input("`nodes = \"samples\"` needs `confidence` below 1 and a kernel with unbounded support.",
                x = sprintf("`confidence` is %g, `kernel` \"%s\".", problem$confidence, problem$kernel))
  }
  nodes
}

is_compact_or_polynomial <- function(kernel) kernel == "polynomial" || is_compact(kernel)

# Everything checked and brought into the form that the native code takes. query, reference: points, or what
# points_with() gives.
kernel_problem <- function(query, reference, weights, kernel, bandwidth, rel_error = 0, abs_error = 0, confidence = 1,
                           tree = NULL, log = FALSE, leave_one_out = FALSE, run = as_run()) {
  own <- split_kernel(kernel)
  kernel <- own$name
  run$backend <- if (is.null(run$backend)) weft_backend() else check_choice(run$backend, backends, "backend")
  if (inherits(reference, "weft_kernel_tree")) {
    tree <- reference
    reference <- NULL
  }
  self <- is.null(query) || (is.null(reference) && is.null(tree)) # models ask for the sums at their own points by NULL
  given <- if (inherits(reference, "weft_points")) reference
           else if (!is.null(reference)) checked_points(reference, "reference")
  reference <- given$points
  if (!is.null(tree)) check_tree_shape(tree)
  if (!is.null(tree) && !is.null(reference) && !identical(as.double(dim(reference)), as.double(c(tree$n, tree$d)))) {
    abort_input("`tree` must be built from `reference`.",
                x = sprintf("It has %.0f points with %.0f coordinates, but `reference` has %d with %d.", tree$n, tree$d,
                            nrow(reference), ncol(reference)))
  }
  if (!is.null(tree)) tree <- check_tree(tree, reference)
  if (is.null(given)) {
    given <- if (is.null(tree)) checked_points(query, "query")
             else list(points = tree_points(tree), range = NULL)
    reference <- given$points
  }
  box <- given$range %||% points_range(reference)
  asked <- if (self) list(points = reference, range = box)
           else if (inherits(query, "weft_points")) query
           else checked_points(query, "query")
  query <- asked$points
  query_box <- asked$range
  if (ncol(query) != ncol(reference)) {
    abort_input("`x` and `reference` must have the same columns.",
                x = sprintf("`x` has %d, `reference` %d.", ncol(query), ncol(reference)),
                i = if (min(ncol(query), ncol(reference)) == 1L) {
                  "A vector is treated as points in one dimension; for one point, use `t(x)`."
                })
  }
  leave_one_out <- check_flag(leave_one_out, "leave_one_out")
  same <- function(rows) all(query[rows, ] == reference[rows, ])
  self <- self || (identical(dim(query), dim(reference)) && same(seq_len(min(9L, nrow(query)))) &&
                   all(query == reference))
  if (leave_one_out && !self) {
    abort_input("`leave_one_out = TRUE` needs identical references and queries.", i = "Leave `reference` out.")
  }
  log <- check_flag(log, "log")
  w <- kernel_weights(weights, nrow(reference))
  if (log && (any(w < 0) || kernel == "polynomial")) {
    abort_input("`log = TRUE` needs sums of positive terms.",
                x = if (kernel == "polynomial") "Polynomial kernels can be negative."
                  else "`weights` has negative numbers.")
  }
  reach <- max(0, if (nrow(reference)) abs(box[1:2, ]), if (nrow(query)) abs(query_box[1:2, ]))
  list(
    query = query, reference = reference, self = self, tree = tree, weights = w, vector = is.null(dim(weights)),
    kernel = kernel, bandwidth = if (kernel != "polynomial") check_bandwidth(bandwidth, ncol(reference), reach),
    box = box,
    rel_error = check_number(rel_error, "rel_error", min = 0, max = 1),
    abs_error = check_number(abs_error, "abs_error", min = 0, max = .Machine$double.xmax),
    confidence = check_number(confidence, "confidence", min = 1e-6, max = 1), log = log, leave_one_out = leave_one_out,
    polynomial = own$polynomial, seed = NULL, backend = run$backend, devices = run$devices,
    # the back end is entered when it is chosen
    control = run_control("cpu", run$threads, run$progress, task = "Summing kernels")
  )
}

#' The polynomial kernel
#'
#' The sums of [kernel_sum()] and the components of [kernel_pca()] with this kernel are exact.
#'
#' @param degree,offset,scale the kernel is \eqn{(scale\, x \cdot y + offset)^{degree}}.
#' @return An object of class `weft_kernel` to give as `kernel`; `"polynomial"` stands for `kernel_polynomial()`.
#' @export
#' @examples
#' x <- as.matrix(iris[1:10, 1:2])
#' kernel_sum(x, kernel = kernel_polynomial(degree = 2, offset = 1))
kernel_polynomial <- function(degree = 3, offset = 0, scale = 1) {
  structure(class = "weft_kernel", check_polynomial(list(scale = scale, offset = offset, degree = degree)))
}

polynomial_inside <- list(`kernel = kernel_polynomial` = c("degree", "offset", "scale")) # for check_dots()

# `kernel` as list(name, polynomial).
split_kernel <- function(kernel) {
  if (!inherits(kernel, "weft_kernel")) {
    return(list(name = check_choice(kernel, c(kernel_names, "polynomial"), "kernel"),
                polynomial = list(scale = 1, offset = 0, degree = 3)))
  }
  list(name = "polynomial", polynomial = check_polynomial(unclass(kernel)))
}

check_polynomial <- function(p) {
  most <- .Machine$double.xmax
  list(scale = check_number(p$scale, "scale", -most, most), offset = check_number(p$offset, "offset", -most, most),
       degree = check_number(p$degree, "degree", min = 0, max = 100, whole = TRUE))
}

# What a sum took, as native code counts it: of what is summed without trees.
effort_of <- function(pairs = 0, nodes = 0, repeated = 0) c(pairs = pairs, nodes = nodes, repeated = repeated)

join_parts <- function(sums, split, m) {
  if (!split$both) return(sums)
  out <- sums[, seq_len(m), drop = FALSE]
  for (k in seq_along(split$part)[-seq_len(m)]) out[, split$part[k]] <- out[, split$part[k]] - sums[, k]
  out
}

shape_sums <- function(result, problem) {
  sums <- if (problem$vector) as.vector(result$sum) else result$sum
  if (!problem$vector) colnames(sums) <- colnames(problem$weights)
  sums <- name_rows(sums, rownames(problem$query))
  if (!is.null(result$bound)) attr(sums, "error_bound") <- result$bound
  if (identical(result$backend, "cuda")) attr(sums, "backend") <- "cuda"
  sums
}

# list(sum, method, reason, effort) of a problem in double precision.
kernel_run <- function(problem, method = "auto") {
  exact <- problem$rel_error == 0 && problem$abs_error == 0
  if (problem$kernel == "polynomial") {
    cpu_only(problem$backend, "Polynomial kernels are summed")
    return(polynomial_run(problem, method))
  }
  if (!nrow(problem$query) || !nrow(problem$reference)) {
    return(list(sum = matrix(if (problem$log) -Inf else 0, nrow(problem$query), NCOL(problem$weights)),
                method = "direct", reason = "nothing to sum", effort = effort_of()))
  }
  if (method %in% c("montecarlo", "features", "nystrom")) {
    cpu_only(problem$backend, "Approximations by samples, features and reduced sets run")
    return(kernel_approximate(problem, method))
  }
  if (method == "line") return(kernel_line(problem))
  if (method == "mesh") return(mesh_asked_for(problem))
  if (method == "auto" && is.null(problem$plan) && line_pays(problem)) {
    problem$plan <- instead_of_line(problem)
    if (is.null(problem$plan)) return(kernel_line(problem, "one dimension"))
  }
  if (method == "auto" && is.null(problem$plan)) problem$plan <- plan_method(problem, try = TRUE)
  plan <- problem$plan %||% list(method = method, reason = "requested")
  direct <- function(plan) {
    (if (method == "auto") kernel_lower(problem, plan) %||% kernel_tensor(problem, plan)) %||%
      kernel_direct(problem, plan)
  }
  by_mesh <- function(plan) kernel_mesh(problem, plan$mesh, plan$reason) %||% direct(plan)
  run <- function(plan) {
    if (plan$method == "tree" && "cuda" %in% c(problem$backend, plan$chosen$name)) return(kernel_grid(problem, plan))
    switch(plan$method, direct = direct(plan), mesh = by_mesh(plan),
           walk_or_lower(problem, plan) %||% kernel_walk(problem, plan) %||% run(plan$otherwise))
  }
  run(plan)
}

kernel_direct <- function(problem, plan) {
  split <- split_weights(problem)
  reference <- native_points(problem$reference, problem)
  query <- if (problem$self) reference else native_points(problem$query, problem)
  chosen <- plan$chosen %||% direct_backend(problem, "double")
  problem$control$backend <- chosen$name
  problem$control$devices <- devices_for(problem$devices, chosen$name, cost_of_direct(problem, "double")$divided)
  out <- .Call(C_weft_kernel_direct, native_task(problem, query, reference, split), problem$control)
  list(sum = join_parts(out$sum, split, NCOL(problem$weights)), method = "direct", backend = chosen$name,
       reason = paste0(plan$reason, "; ", chosen$reason), effort = out$effort)
}

# Over a grid on the device: all pairs within reach, exactly. A kernel without an end is cut off where what lies beyond
# adds less than the tolerance; queries whose sum turns out too small for that are summed directly. So the bound holds
# for each.
kernel_grid <- function(problem, plan) {
  chosen <- choose_backend("cuda")
  problem$control$backend <- chosen$name
  direct <- function(p, why) kernel_direct(p, list(reason = why, chosen = chosen))
  if (problem$log) return(direct(problem, "logarithms of sums are computed directly on the device"))
  split <- split_weights(problem, spare = TRUE)
  totals <- total_weights(problem, split)
  tau <- problem$abs_error / if (split$both) 2 else 1
  reach <- grid_reach(problem, totals, tau)
  if (is.null(reach)) return(direct(problem, "the kernel extends over all points"))
  # Twice what the pairs of the sample take, as cells hold pairs that are farther apart. Each device makes the grid for
  # itself: 10^6 points in 4 dimensions take .017 s on one H100 and .025 s on two.
  problem$control$devices <- devices_for(problem$devices, chosen$name,
                                         2 * share_near(problem, reach) * cost_of_direct(problem, "double")$divided,
                                         again = grid_seconds(problem, 0)) # both counted for "all" alone
  points <- function(x) if (is.null(problem$bandwidth$scale)) list(columns = x) else native_points(x, problem)
  task <- native_task(problem, NULL, NULL, split)
  if (identical(nrow(split$weights), 1L) && all(points_range(problem$weights)[1:2, ] == 1)) {
    task["weights"] <- list(NULL)
  }
  task$reference <- points(problem$reference)
  task$query <- if (problem$self) task$reference else points(problem$query)
  out <- .Call(C_weft_kernel_grid, task, reach, problem$control)
  if (is.null(out)) return(direct(problem, "no grid suits these points"))
  if (!is_compact(problem$kernel)) {
    beyond <- totals * kernel_value(problem$kernel, reach / problem$bandwidth$h)
    missed <- which(rowSums(rep(beyond, each = nrow(out$sum)) > problem$rel_error * out$sum + tau) > 0)
    if (length(missed) && problem$leave_one_out) return(direct(problem, "sums too small for a grid"))
    if (length(missed)) {
      some <- problem
      some$query <- problem$query[missed, , drop = FALSE]
      some$self <- FALSE
      if (!is.null(split$weights)) some$weights <- t(split$weights)
      out$sum[missed, ] <- direct(some, "")$sum
    }
    plan$reason <- sprintf("%s; cut off at %.3g bandwidths, %d queries summed directly", plan$reason,
                           reach / problem$bandwidth$h, length(missed))
  }
  list(sum = join_parts(out$sum, split, NCOL(problem$weights)), method = "tree", backend = chosen$name,
       reason = paste0(plan$reason, "; a grid on the device"), effort = out$effort)
}

# How far pairs count; NULL where that is no less than all. Without a tolerance of its own, a query is taken to have a
# sum of at least its own weight when it is a reference, else a thousandth of what a mean pair within one bandwidth
# would give.
grid_reach <- function(problem, totals, tau) {
  h <- problem$bandwidth$h
  if (is_compact(problem$kernel)) return(h)
  if (problem$rel_error == 0 && tau == 0) return(NULL)
  counts_itself <- problem$self && !problem$leave_one_out
  own <- if (counts_itself) min(abs(problem$weights %||% 1)) else 1e-3 * max(totals) / nrow(problem$reference)
  target <- min((problem$rel_error * own + tau) / max(totals), 0.5)
  if (!isTRUE(target > 0)) return(NULL) # NaN where all weights are 0
  far <- switch(problem$kernel, gaussian = sqrt(-2 * log(target)), cauchy = sqrt(1 / target), 6 - 2 * log(target))
  far <- far * (1 + 1e-6) # so that rounding does not keep its value above the target
  if (kernel_value(problem$kernel, far) > target) return(NULL)
  near <- stats::uniroot(function(r) log(kernel_value(problem$kernel, r) / target), c(0, far),
                         tol = 1e-6)$root * (1 + 1e-5)
  box <- problem$box %||% points_range(problem$reference)
  range <- box[2L, ] - box[1L, ]
  if (is.null(problem$bandwidth$scale) && near * h > 0.5 * max(range)) NULL else near * h
}

# NULL when the plan has a budget that the walk would not keep.
kernel_walk <- function(problem, plan) {
  split <- split_weights(problem)
  trees <- plan$trees %||% native_trees(problem)
  out <- walk_trees(problem, trees, split, budget = plan$budget %||% 0)
  effort <- as.list(out$effort)
  if (effort$given_up > 0) return(NULL)
  sums <- out$sum
  sums[trees$query$order + 1L, ] <- out$sum
  used <- c(if (effort$series > 0) sprintf("series for %.0f nodes", effort$series),
            if (effort$samples > 0) sprintf("%.0f sampled pairs", effort$samples),
            sprintf("%.0f nodes bounded", effort$nodes),
            sprintf("a fraction %.3g of the pairs computed",
                    effort$pairs / (as.double(nrow(sums)) * nrow(problem$reference))))
  list(sum = join_parts(sums, split, NCOL(problem$weights)), method = "tree", effort = out$effort,
       reason = paste0(plan$reason, "; ", paste(used, collapse = ", ")))
}

series_use <- c(bounds = "never", samples = "never", auto = "if worth", series = "always")

# How trees are walked: the record that C_weft_kernel_walk() reads.
walk_plan <- function(series, confidence = 1, key = c(0, 0), trial = 0, budget = 0, costs = numeric(7)) {
  list(series = series, confidence = confidence, key = as.double(key), trial = trial, budget = budget, costs = costs)
}

# Walks for one bandwidth or many, narrowest first; sums in the query tree's order.
walk_trees <- function(problem, trees, split, h = problem$bandwidth$h, trial = 0, budget = 0) {
  task <- native_task(problem, trees$query, trees$reference, split,
                      split$weights[, trees$reference$order + 1L, drop = FALSE], h)
  nodes <- problem$nodes %||% "auto"
  samples <- nodes %in% c("auto", "samples") && problem$confidence < 1
  walk <- walk_plan(series_use[[nodes]], if (samples) problem$confidence else 1,
                    if (samples) kernel_key(problem$seed) else c(0, 0), trial, budget,
                    kernel_work(problem$kernel, ncol(problem$reference), nrow(split$weights)))
  .Call(C_weft_kernel_walk, task, trees$query, trees$reference, walk, problem$control)
}

polynomial_run <- function(problem, method) {
  if (!method %in% c("auto", "direct")) {
    abort_input("`method` must be \"auto\" or \"direct\" for the polynomial kernel.",
                x = sprintf("`method` is \"%s\".", method))
  }
  out <- polynomial_products(problem, problem$query, weights_of(problem),
                             if (problem$leave_one_out) seq_len(nrow(problem$query)))
  if (!all(is.finite(out$sum))) {
    abort_input("Sums of the polynomial kernel must be finite.",
                x = sprintf("%d of %d are not.", sum(!is.finite(out$sum)), length(out$sum)),
                i = "Use a smaller `scale`.")
  }
  list(sum = out$sum, method = "direct", reason = "polynomial kernels are summed directly", effort = out$effort)
}

# list(sum, effort) of the polynomial kernel, by blocks of queries. own: the reference that each of them leaves out, or
# NULL.
polynomial_products <- function(problem, query, weights, own) {
  p <- problem$polynomial
  columns <- t(problem$reference)
  sums <- matrix(0, nrow(query), ncol(weights))
  at_once <- max(1, floor(polynomial_cells / ncol(columns)))
  memory_errors(for (first in seq(1, by = at_once, length.out = ceiling(nrow(query) / at_once))) {
    rows <- first:min(first + at_once - 1, nrow(query))
    values <- matrix_product(query[rows, , drop = FALSE], columns, problem$control)
    values <- (p$scale * values + p$offset)^p$degree
    if (!is.null(own)) values[cbind(seq_along(rows), own[rows])] <- 0
    sums[rows, ] <- matrix_product(values, weights, problem$control)
  })
  list(sum = sums, effort = effort_of(pairs = as.double(nrow(query)) * ncol(columns)))
}
polynomial_cells <- 2^20 # of a block: 8 MiB

kernel_single <- function(problem, method, precision) {
  refuse <- function(x, i = "Use `precision = \"double\"`.") {
    abort_input("`precision` must be \"double\" for these sums.", x = x, i = i)
  }
  if (!method %in% c("auto", "direct")) refuse(sprintf("`method` is \"%s\", but single precision needs \"direct\".",
                                                       method))
  if (problem$kernel == "polynomial" || of_sheet(problem$kernel, "single") == "NEVER") {
    refuse(sprintf("The %s kernel has no error bound in single precision.", problem$kernel))
  }
  if (problem$log || !is.null(problem$bandwidth$scale)) {
    refuse("Logarithms and bandwidths with several values need double precision.")
  }
  reach <- points_reach(problem$reference, problem$query) / problem$bandwidth$h
  total <- colSums(abs(weights_of(problem)))
  if (reach > 1e15) refuse(sprintf("Coordinates are as large as %g bandwidths.", reach))
  chosen <- direct_backend(problem, precision)
  # neighbours in a tree's order share a block, which is what the bound wants
  tree <- native_trees(problem, only_query = TRUE)$query
  order <- tree$order + 1L
  out <- single_sums(problem, chosen, order, precision == "tensor", query = tree)
  sums <- out$sum
  sums[order, ] <- out$sum
  bound <- numeric(nrow(problem$query))
  bound[order] <- out$bound
  error <- error_of(bound, total)
  if (!all(is.finite(sums))) refuse("Queries are too many bandwidths apart.")
  asked <- problem$rel_error > 0 || problem$abs_error > 0
  least <- pmax(abs(sums) - error, 0) # of the sum of |w| k
  if (asked && any(error > problem$rel_error * least + problem$abs_error)) {
    refuse(sprintf("Its error can be %.2g of the summed weights.", max(bound)))
  }
  if (!asked && any(bound > 0.01)) {
    refuse(sprintf("Its error can be %.2g of the summed weights, as queries are many bandwidths apart.", max(bound)))
  }
  list(sum = sums, bound = if (problem$vector) as.vector(error) else error, method = "direct", backend = chosen$name,
       reason = sprintf("%s precision; %s", precision, chosen$reason))
}
