# Sums of the Gaussian kernel over a mesh (src/kernel/both/mesh.h): in one to three dimensions, within an error.

has_mesh <- function(problem) {
  problem$kernel == "gaussian" && ncol(problem$reference) <= 3L && (problem$rel_error > 0 || problem$abs_error > 0)
}

# What a mesh would do, on the CPU or on a device: its scheme, the error that this is made for, over the sum of weights,
# and its seconds on one thread of the reference machine; NULL where there is none. The error of a sum is the same for
# all queries, so that a relative one is kept where the sum is large enough: for references of mean weight and more
# among the queries. Other queries may count on a thousandth of that.
mesh_plan <- function(problem, on_device = FALSE) {
  if (!has_mesh(problem)) return(NULL)
  n <- as.double(nrow(problem$reference))
  split <- split_weights(problem, spare = TRUE)
  total <- max(total_weights(problem, split))
  share <- if (problem$self && !problem$leave_one_out) 1 / n else 1e-3 / n
  tau <- if (problem$log) 0 else problem$abs_error / if (split$both) 2 else 1
  target <- min(max(problem$rel_error * share, least_mesh_error) + if (total > 0) tau / total else 0, 0.01)
  if (problem$rel_error == 0) target <- min(tau / total, 0.01)
  if (!isTRUE(target >= least_mesh_error)) return(NULL)
  size <- list(m = length(split$part), extent = mesh_extent(problem), references = n,
               queries = as.double(nrow(problem$query)), on_device = on_device)
  choice <- .Call(C_weft_kernel_mesh_choose, size, target)
  if (is.null(choice)) return(NULL)
  nodes <- choice[["nodes"]] * size$m
  mesh <- list(choice = choice, target = target, size = size, nodes = nodes, on_device = on_device, split = split)
  mesh$seconds <- at_reference(mesh_seconds(mesh))
  mesh
}

# Its seconds on this machine.
mesh_seconds <- function(mesh, threads = 1L) {
  size <- mesh$size
  seconds <- kernel_plan("mesh", native = mesh$choice[["seconds"]], references = size$references,
                         queries = size$queries, d = length(size$extent), m = size$m, nodes = mesh$nodes,
                         threads = threads)
  if (mesh$on_device) seconds$cuda else seconds$cpu
}

least_mesh_error <- 1e-12 # below, rounding is as large

# Of the references in each dimension, in bandwidths; of a covariance at most.
mesh_extent <- function(problem) {
  box <- problem$box %||% points_range(problem$reference)
  range <- box[2L, ] - box[1L, ]
  b <- problem$bandwidth
  if (is.null(b$scale)) return(range / b$h)
  if (!b$full) return(range / b$scale)
  inverse <- forwardsolve(b$scale, diag(length(range)))
  as.vector(abs(inverse) %*% range)
}

# On a device where that takes less than a mesh on the CPU and than `least` seconds.
mesh_anywhere <- function(problem, least = Inf) {
  mesh <- mesh_plan(problem, problem$backend == "cuda")
  least <- min(least, if (!is.null(mesh)) mesh_seconds(mesh, problem$control$threads))
  if (problem$backend == "auto" && device_may_pay(least)) {
    there <- mesh_plan(problem, on_device = TRUE)
    if (!is.null(there) && choose_backend("auto", cost(least, mesh_seconds(there)))$name == "cuda") return(there)
  }
  mesh
}

# Where a mesh does in much less time what trees or all pairs, which take at least so many seconds, would.
mesh_pays <- function(mesh, seconds, much = 1) {
  !is.null(mesh) && mesh$nodes <= kernel_limits()[["mesh_nodes"]] && mesh$seconds < much * seconds
}

# NULL where no mesh is right for these points. Queries whose sums turn out too small for the mesh's error are summed by
# trees or directly, so that the errors hold for each.
kernel_mesh <- function(problem, mesh, reason) {
  split <- mesh$split
  # without low parts, which would take as long to read as all else; weft_mesh_error() counts them
  points <- function(x) if (is.null(problem$bandwidth$scale)) list(columns = x) else native_points(x, problem)["x"]
  task <- native_task(problem, NULL, NULL, split)
  task$reference <- points(problem$reference)
  task$query <- if (problem$self) task$reference else points(problem$query)
  chosen <- if (mesh$on_device) choose_backend("cuda") else list(name = "cpu")
  problem$control$backend <- chosen$name
  problem$control$devices <- devices_for(problem$devices, chosen$name)[1L]
  out <- .Call(C_weft_kernel_mesh, task, mesh$choice, mesh$target, problem$control)
  if (is.null(out)) return(NULL)
  sums <- join_parts(out$sum, split, NCOL(problem$weights))
  if (length(out$missed)) sums[out$missed + 1L, ] <- sums_of_some(problem, out$missed + 1L)
  list(sum = sums, method = "mesh", backend = chosen$name,
       effort = effort_of(length(out$missed) * as.double(nrow(problem$reference)), mesh$nodes, length(out$missed)),
       reason = sprintf("%s; %.3g nodes, %g bandwidths apart, error %.2g of the weights, %d queries summed without it",
                        reason, mesh$nodes, signif(mesh$choice[["spacing"]], 2), out$error, length(out$missed)))
}

mesh_asked_for <- function(problem) {
  if (!has_mesh(problem)) {
    abort_input("`method = \"mesh\"` needs the Gaussian kernel, at most three dimensions and an error above 0.",
                x = sprintf("`kernel` is \"%s\", in %d dimensions, with `rel_error` %g and `abs_error` %g.",
                            problem$kernel, ncol(problem$reference), problem$rel_error, problem$abs_error))
  }
  mesh <- mesh_anywhere(problem)
  most <- kernel_limits()[["mesh_nodes_asked"]]
  fits <- !is.null(mesh) && mesh$nodes <= most
  result <- if (fits) kernel_mesh(problem, mesh, "requested")
  if (!is.null(result)) return(result)
  abort_input(
    "`method = \"mesh\"` cannot be used for these sums.",
    x = if (is.null(mesh)) sprintf("The errors allow less than %g of the summed weights.", least_mesh_error)
      else sprintf("The mesh would have %.3g nodes; at most %g are allowed.", mesh$nodes, most),
    i = "Use `method = \"auto\"`."
  )
}

# Sums of some queries by trees, directly or along a line, on the device of a mesh where that is less than to grow
# trees; they leave themselves out where queries do.
sums_of_some <- function(problem, some) {
  p <- problem
  p$query <- problem$query[some, , drop = FALSE]
  p$self <- FALSE
  if (problem$control$backend == "cuda" && at_reference(cost_of_direct(p)$cuda < cost_of_trees(p))) {
    return(sums_in_double(problem, some))
  }
  p$backend <- p$control$backend <- problem$control$backend <- "cpu"
  if (!problem$leave_one_out && line_pays(p)) return(kernel_line(p)$sum)
  p$leave_one_out <- FALSE # for the plan
  plan <- plan_method(p)
  if (plan$method == "direct") return(sums_in_double(problem, some))
  trees <- plan$trees %||% native_trees(p)
  split <- split_weights(p)
  task <- native_task(problem, trees$query, trees$reference, split,
                      split$weights[, trees$reference$order + 1L, drop = FALSE])
  if (problem$leave_one_out) task$own <- own_places(some, trees$reference)[trees$query$order + 1L]
  out <- .Call(C_weft_kernel_walk, task, trees$query, trees$reference, walk_plan("if worth"), problem$control)
  sums <- out$sum
  sums[trees$query$order + 1L, ] <- out$sum
  join_parts(sums, split, NCOL(p$weights))
}

# ---- sums over all pairs ----

# Sums over all ordered pairs of different points, as a function of bandwidths: within `rel_error`, NA where a mesh does
# not keep it or would take longer than all pairs. Points that are spread evenly have the least sum for their range; an
# error for that is tried first.
mesh_pairs <- function(z, rel_error) {
  n <- as.double(nrow(z))
  box <- points_range(z)
  range <- box[2L, ] - box[1L, ]
  points <- list(columns = z)
  weights <- matrix(1, 1L, nrow(z))
  control <- run_control("cpu", progress = FALSE)
  sum_of <- function(h, target) {
    size <- list(m = 1, extent = range / h, references = n, queries = 0, on_device = FALSE)
    choice <- if (target >= least_mesh_error / 10) .Call(C_weft_kernel_mesh_choose, size, target)
    if (is.null(choice) || choice[["nodes"]] > 3e7 || choice[["seconds"]] > 3e-9 * n^2) return(NULL)
    .Call(C_weft_kernel_mesh_pairs, sums_task("gaussian", h, points, points, weights, FALSE), choice, target, control)
  }
  one <- function(h) {
    share <- prod(pmin(1, sqrt(2 * pi) * h / range))
    target <- 0.3 * rel_error * share
    for (again in 1:2) {
      out <- sum_of(h, min(target, 0.01))
      if (is.null(out)) return(NA_real_)
      others <- out[1L] - n
      if (out[2L] <= rel_error * (others - out[2L])) return(others)
      target <- 0.3 * rel_error * others / n^2
    }
    NA_real_
  }
  function(h) vapply(h, one, 0)
}
