# How `method = "auto"` chooses: by predicted work alone, in seconds of one thread of the reference machine, so that
# neither a clock nor this machine's rates nor its threads decide; these only weigh back ends. The work of a direct sum
# follows from its size. A walk's is counted: it is begun, with groups of queries from everywhere first, and given up
# when what is left of it is more work than the direct sum. So nothing is done twice where the walk is better, and where
# it is not, it is seen early; also where a device would do what the walk is measured by. Where no sums are wanted, 2 to
# 4 groups are tried. Shorter work goes by the costs below.

# The numbers that decide (src/kernel/limits.h), by name, and `unit`, the seconds of a unit of work.
kernel_limits <- function() .Call(C_weft_kernel_limits)

# Work for each thing that a walk counts, in units of one dimension of one pair; `pairs` is the work of one pair, and
# `m` the number of columns of weights.
kernel_work <- function(kernel, d, m) .Call(C_weft_kernel_work, kernel_kinds[[kernel]]$cost, d, m)

# precision: of direct sums that are asked for; "relative" where tensor cores may take them.
cost_of_direct <- function(problem, precision = if (fits_tensor_cores(problem)) "relative" else "double") {
  kernel_plan("direct", precision = precision, references = nrow(problem$reference), queries = nrow(problem$query),
              d = ncol(problem$reference), m = NCOL(problem$weights), value = kernel_kinds[[problem$kernel]]$cost,
              threads = problem$control$threads)
}

# Seconds of one thread for building the trees that do not exist yet.
cost_of_trees <- function(problem) {
  built <- !is.null(problem$grown) || (!is.null(problem$tree$native) && is.null(problem$bandwidth$scale))
  kernel_plan("trees", references = if (built) 0 else nrow(problem$reference),
              queries = if (problem$self) 0 else nrow(problem$query), d = ncol(problem$reference))$cpu
}

# Where a direct sum runs.
direct_backend <- function(problem, precision = if (fits_tensor_cores(problem)) "relative" else "double") {
  choose_backend(problem$backend, cost_of_direct(problem, precision))
}

# For the rest of the calling function, kernel sums run on the back end of `run`. Returns `run` with that filled in; a
# device that is not there is an error at once.
use_backend <- function(run, frame = parent.frame()) {
  if (is.null(run$backend)) run$backend <- weft_backend()
  else {
    old <- options(weft.backend = run$backend)
    do.call(on.exit, list(bquote(options(.(old))), add = TRUE), envir = frame)
  }
  if (run$backend == "cuda") choose_backend("cuda")
  run
}

# What a device would do and how long it would take here, with all that a plan needs. mesh: whether it may sum over one.
device_plan <- function(problem, mesh = TRUE) {
  plan <- at_reference({
    over <- if (mesh && problem$confidence == 1) mesh_plan(problem, on_device = TRUE)
    pairs <- device_pairs(problem, over)
    if (mesh_pays(over, pairs$seconds)) list(method = "mesh", mesh = over) else pairs
  })
  plan$seconds <- switch(plan$method, mesh = mesh_seconds(plan$mesh), tree = grid_seconds(problem, plan$near),
                         cost_of_direct(problem)$cuda)
  plan
}

# Pairs of points there: all, or over a grid when few of a sample are near each other and no mesh takes less than any
# grid.
device_pairs <- function(problem, mesh) {
  direct <- list(method = "direct", seconds = cost_of_direct(problem)$cuda)
  # looking at points takes some milliseconds
  limits <- kernel_limits()
  few <- problem$log || nrow(problem$reference) < limits[["grid_references"]]
  least <- grid_seconds(problem, 0)
  if (few || direct$seconds <= least || mesh_pays(mesh, least)) return(direct)
  reach <- grid_reach(problem, colSums(abs(weights_of(problem))), problem$abs_error)
  if (is.null(reach)) return(direct)
  near <- share_near(problem, 2 * reach)
  grid <- list(method = "tree", near = near, seconds = grid_seconds(problem, near))
  if (near > limits[["grid_near"]] || direct$seconds <= grid$seconds) direct else grid
}

# The cost of a grid on a device, by the share of the pairs that are near each other.
grid_seconds <- function(problem, near) {
  cost_of_direct(problem, "double")$cuda * near * kernel_limits()[["grid_over_pairs"]] +
    launching(as.double(length(problem$reference)) * 1e-9 + 0.009)
}

# Seconds that a walk takes at least, of `direct` for all pairs: those within the kernel's reach, which it cannot spare,
# by a sample; whole walks take 1.4 to 15 times as long. To begin one takes half of a mesh's time, for its series.
least_of_walk <- function(problem, direct) {
  if (problem$kernel != "gaussian" || direct <= 0) return(0)
  reach <- grid_reach(problem, colSums(abs(weights_of(problem))), problem$abs_error)
  if (is.null(reach)) direct else direct * share_near(problem, reach)
}

# The share of pairs at most `reach` apart, in a sample of 100 queries and 1,000 points.
share_near <- function(problem, reach) {
  sampled <- function(x, size) t(native_points(x[sampled_rows(x, size), , drop = FALSE], problem)$x)
  q <- sampled(problem$query, 100)
  x <- sampled(problem$reference, 1000)
  square <- 0
  for (j in seq_len(ncol(q))) square <- square + outer(q[, j], x[, j], "-")^2
  mean(square < reach^2) + 1e-4
}

sampled_rows <- function(x, size) unique(round(seq(1, nrow(x), length.out = min(nrow(x), size)))) # evenly spaced

# Whether trees would spare next to nothing of all pairs, by the distances in a sample. A leaf is about as wide as its
# points' nearest ones are far; where the kernel varies within that, and most pairs are no more than its reach and two
# leaves apart, nearly all leaves would be opened (README.md); but leaves much wider than a bandwidth only in part.
trees_spare_little <- function(problem) {
  limits <- kernel_limits()
  n <- nrow(problem$reference)
  if (ncol(problem$reference) < limits[["look_dims"]]) return(FALSE)
  queries <- sampled_rows(problem$query, 30)
  references <- sampled_rows(problem$reference, 300)
  if (problem$self) references <- setdiff(references, queries)
  x <- native_points(problem$reference[references, , drop = FALSE], problem)$x
  middle <- rowMeans(x)
  x <- x - middle
  q <- native_points(problem$query[queries, , drop = FALSE], problem)$x - middle
  squares <- outer(colSums(q^2), colSums(x^2), "+") - 2 * crossprod(q, x)
  if (!length(squares)) return(FALSE)
  nearest <- ceiling(length(squares) * min(1, 32 / n))
  leaf <- sqrt(max(0, sort(squares, partial = nearest)[nearest]))
  wide <- leaf / problem$bandwidth$h
  if (wide < limits[[if (is_compact(problem$kernel)) "look_compact" else "look_narrow"]] ||
      wide > limits[["look_wide"]]) return(FALSE)
  reach <- grid_reach(problem, colSums(abs(weights_of(problem))), problem$abs_error)
  is.null(reach) || mean(squares < (reach + 2 * leaf)^2) > limits[["look_near"]]
}

gaussian_vanishes <- 38.6 # exp(-r^2 / 2) is 0 beyond

# list(method, reason, and of these what is known: trees, chosen; budget: work, and the plan `otherwise`). try: a walk
# may be begun to see how much work it is.
plan_method <- function(problem, try = FALSE) {
  n <- as.double(nrow(problem$reference))
  nq <- as.double(nrow(problem$query))
  d <- ncol(problem$reference)
  if (problem$backend == "cuda") {
    plan <- device_plan(problem, try)
    plan$reason <- switch(plan$method, mesh = sprintf("about %s with a mesh", seconds_text(plan$seconds)),
                          sprintf("a sample suggests that %s pairs are close",
                                  if (plan$method == "tree") "few" else "many"))
    return(plan)
  }
  m <- columns_of_one_sign(problem)
  work <- nq * n * kernel_work(problem$kernel, d, m)[["pairs"]]
  limits <- kernel_limits()
  unit <- limits[["unit"]]
  direct <- work * unit
  build <- at_reference(cost_of_trees(problem))
  here <- slowness("core") / problem$control$threads # seconds on this machine
  # splits cut few of many dimensions, so that a walk spares little until points are many
  cut <- max(1, 2 * d / log2(max(n, 64) / 32))^2
  if (work < limits[["min_work"]] || direct < limits[["min_seconds"]] * cut ||
      direct < limits[["min_over_trees"]] * build) {
    return(list(method = "direct", reason = sprintf("about %s directly, which is less than a tree would take",
                                                    seconds_text(direct * here))))
  }
  exact <- problem$rel_error == 0 && problem$abs_error == 0
  # without an error, a kernel without an end is spared where it is 0 as a double; few are before the Gaussian one
  no_less <- (exact && !is_compact(problem$kernel) && sum(mesh_extent(problem)^2) < gaussian_vanishes^2) ||
    trees_spare_little(problem)
  by_trees <- if (no_less) Inf else build + cut * nq * limits[["walk_of_a_query"]]
  mesh <- if (try && problem$confidence == 1) mesh_plan(problem)
  mesh_here <- if (!is.null(mesh)) mesh_seconds(mesh, problem$control$threads)
  device <- device_instead_of(problem, min(direct * here, mesh_here), try)
  at_once <- if_faster(device, min(direct * here, by_trees * here, mesh_here))
  if (!is.null(at_once)) return(at_once)
  if (mesh_pays(mesh, min(direct, by_trees), limits[["mesh_over_others"]]) ||
        mesh_pays(mesh, least_of_walk(problem, direct))) {
    return(list(method = "mesh", mesh = mesh,
                reason = sprintf("about %s with a mesh, %s directly", seconds_text(mesh_here),
                                 seconds_text(direct * here))))
  }
  directly <- list(method = "direct", chosen = list(name = "cpu", reason = "on the CPU"),
                   reason = sprintf("about %s directly", seconds_text(direct * here)))
  if (no_less) return(directly)
  trees <- native_trees(problem)
  if (!try) {
    tree <- walk_work(problem, trees) * unit
    instead <- if_faster(device, min(tree, direct) * here)
    if (!is.null(instead)) return(instead)
    return(list(method = if (limits[["trees_over_direct"]] * tree < direct) "tree" else "direct", trees = trees,
                chosen = directly$chosen,
                reason = sprintf("about %s with trees, %s directly", seconds_text(tree * here),
                                 seconds_text(direct * here))))
  }
  otherwise <- directly
  least <- direct
  if (mesh_pays(mesh, direct)) {
    otherwise <- list(method = "mesh", mesh = mesh, reason = sprintf("about %s with a mesh", seconds_text(mesh_here)))
    least <- min(direct, mesh$seconds)
  }
  instead <- if_faster(device, least * here)
  if (!is.null(instead)) {
    otherwise <- instead
    otherwise$reason <- sprintf("about %s on the device", seconds_text(instead$seconds))
    least <- instead$seconds / here
  }
  begun <- list(method = "tree", trees = trees, chosen = directly$chosen, budget = least / unit,
                reason = paste0(otherwise$reason, ", less with trees"), otherwise = otherwise)
  begun$otherwise$reason <- paste0(otherwise$reason, ", longer with trees")
  begun$otherwise$trees <- trees
  begun
}

# Columns of weights of one sign; a column of both signs counts as two (split_weights()).
columns_of_one_sign <- function(problem) {
  w <- problem$weights
  if (is.null(w)) 1 else NCOL(w) + sum(points_range(w)[1L, ] < 0)
}

# A device's plan where it may take less than `seconds` of the CPU, and that plan where it takes less than `least`.
device_instead_of <- function(problem, seconds, mesh) {
  if (problem$backend == "auto" && device_may_pay(seconds)) device_plan(problem, mesh)
}
if_faster <- function(device, least) {
  if (is.null(device)) return(NULL)
  device$chosen <- choose_backend("auto", cost(least, device$seconds))
  device$reason <- "the device is faster than any method on the CPU"
  if (device$chosen$name == "cuda") device
}

# Work of the whole walk, by what 2 to 4 groups of queries took.
walk_work <- function(problem, trees) {
  problem$control["progress"] <- list(NULL)
  problem$control$threads <- 1L
  split <- split_weights(problem)
  effort <- walk_trees(problem, trees, split, trial = min(4, max(2, ncol(trees$query$x) %/% 20000)))$effort
  costs <- kernel_work(problem$kernel, nrow(trees$query$x), nrow(split$weights))
  sum(costs * effort[names(costs)]) * ncol(trees$query$x) / effort[["queries"]]
}
