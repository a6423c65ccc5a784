# How `method = "auto"` chooses. The direct sum's time is known from 10^6 pairs of the kind, timed a moment ago, as
# processor time, which other work on the machine hardly changes. The walk is begun, with groups of queries from
# everywhere first, and given up when what is left of it would take longer than the direct sum, whose pairs are timed
# again before it is. So nothing is done twice where the walk is better, and where it is not, it is seen early. Where no
# sums are wanted, or a device might be faster than both, 2 to 4 groups are tried. Shorter work goes by the costs below.

cost_of_direct <- function(problem, precision = "double") {
  cost_direct_sums(nrow(problem$query), nrow(problem$reference), ncol(problem$reference), NCOL(problem$weights),
                   problem$kernel, precision, problem$control$threads)
}

# Of building trees that are not there, in seconds of one thread.
cost_of_trees <- function(problem) {
  d <- ncol(problem$reference)
  built <- !is.null(problem$grown) || (!is.null(problem$tree$native) && is.null(problem$bandwidth$scale))
  core_seconds("double") * ((if (built) 0 else build_cost(as.double(nrow(problem$reference)), d)) +
                              if (problem$self) 0 else build_cost(as.double(nrow(problem$query)), d))
}

# Where a direct sum runs.
direct_backend <- function(problem, precision = "double") choose_backend(problem$backend,
                                                                         cost_of_direct(problem, precision))

# For the rest of the calling function, kernel sums run on `backend`; a device that is not there is an error at once.
use_backend <- function(backend, frame = parent.frame()) {
  if (is.null(backend)) backend <- weft_backend()
  else {
    backend <- check_choice(backend, backends, "backend")
    old <- options(weft.backend = backend)
    do.call(on.exit, list(bquote(options(.(old))), add = TRUE), envir = frame)
  }
  if (backend == "cuda") choose_backend(backend)
  backend
}

# What a device would do and how long it would take, with all that a plan needs. mesh: whether it may sum over one.
device_plan <- function(problem, mesh = TRUE) {
  pairs <- device_pairs(problem)
  mesh <- if (mesh && problem$confidence == 1) mesh_plan(problem, on_device = TRUE)
  if (mesh_pays(mesh, pairs$seconds)) list(method = "mesh", mesh = mesh, seconds = mesh$seconds) else pairs
}

# Pairs of points there: all, or over a grid when few of a sample are near each other.
device_pairs <- function(problem) {
  n <- as.double(nrow(problem$reference))
  nq <- as.double(nrow(problem$query))
  d <- ncol(problem$reference)
  seconds <- cost_of_direct(problem)$cuda
  direct <- list(method = "direct", seconds = seconds)
  made <- launching(n * d * 1e-9 + 0.009) # a grid
  if (problem$log || n < 2e4 || seconds <= made) return(direct) # looking at points takes some milliseconds
  reach <- grid_reach(problem, colSums(abs(weights_of(problem))), problem$abs_error)
  if (is.null(reach)) return(direct)
  near <- share_near(problem, reach)
  grid <- list(method = "tree", seconds = seconds * near * 4 + made)
  if (near > 0.2 || direct$seconds <= grid$seconds) direct else grid
}

# The share of pairs within twice the kernel's reach, in a sample of 100 queries and 1,000 points.
share_near <- function(problem, reach) {
  sampled <- function(x, size) {
    x <- x[unique(round(seq(1, nrow(x), length.out = min(nrow(x), size)))), , drop = FALSE]
    t(native_points(x, problem)$x)
  }
  q <- sampled(problem$query, 100)
  x <- sampled(problem$reference, 1000)
  square <- 0
  for (j in seq_len(ncol(q))) square <- square + outer(q[, j], x[, j], "-")^2
  mean(square < (2 * reach)^2) + 1e-4
}

# list(method, reason, and of these what is known: trees, chosen; budget: processor seconds, and the plan `otherwise`).
# try: a walk may be begun to see how long it takes.
plan_method <- function(problem, try = FALSE) {
  n <- as.double(nrow(problem$reference))
  nq <- as.double(nrow(problem$query))
  d <- ncol(problem$reference)
  if (problem$backend == "cuda") {
    plan <- device_plan(problem, try)
    plan$reason <- switch(plan$method, mesh = sprintf("about %s over a mesh", seconds_text(plan$seconds)),
                          sprintf("a sample shows %s pairs to be near each other",
                                  if (plan$method == "tree") "few" else "many"))
    return(plan)
  }
  m <- NCOL(problem$weights) + if (is.null(problem$weights)) 0 else sum(points_range(problem$weights)[1L, ] < 0)
  work <- nq * n * pair_cost(problem$kernel, d, m)
  threads <- problem$control$threads
  took <- work * core_seconds("double") / threads
  build <- cost_of_trees(problem) / threads
  # splits cut few of many dimensions, so that a walk spares little until points are many
  cut <- max(1, 2 * d / log2(max(n, 64) / 32))^2
  if (work < 3e7 || took < 1.5e-3 * cut || took < 1.5 * build) {
    return(list(method = "direct",
                reason = sprintf("about %s of direct work, less than a tree would take", seconds_text(took))))
  }
  no_less <- problem$rel_error == 0 && problem$abs_error == 0 && !is_compact(problem$kernel) # than all pairs
  by_trees <- if (no_less) Inf else build + cut * on_core(nq * 4e-6) / threads
  mesh <- if (try && problem$confidence == 1) mesh_plan(problem)
  at_once <- device_at_once(problem, min(took, by_trees, mesh$seconds), try)
  if (!is.null(at_once)) return(at_once)
  if (mesh_pays(mesh, min(took, by_trees), 0.5)) {
    return(list(method = "mesh", mesh = mesh,
                reason = sprintf("about %s over a mesh, %s directly", seconds_text(mesh$seconds),
                                 seconds_text(took))))
  }
  trees <- native_trees(problem)
  direct <- direct_seconds(problem, trees)
  here <- list(name = "cpu", reason = "on the CPU")
  # else no device could pay
  may_move <- problem$backend == "auto" && device_may_pay(direct)
  if (try && !may_move) {
    text <- sprintf("about %s directly", seconds_text(direct))
    if (mesh_pays(mesh, direct)) {
      text <- sprintf("about %s over a mesh", seconds_text(mesh$seconds))
      return(list(method = "tree", trees = trees, chosen = here, budget = mesh$seconds * threads,
                  reason = paste0(text, ", less by trees"),
                  otherwise = list(method = "mesh", mesh = mesh, reason = paste0(text, ", longer by trees"))))
    }
    return(list(method = "tree", trees = trees, chosen = here, budget = direct * threads,
                reason = paste0(text, ", less by trees"),
                otherwise = list(method = "direct", chosen = here, reason = paste0(text, ", longer by trees"))))
  }
  tree <- walk_seconds(problem, trees)
  device <- device_at_once(problem, min(tree, direct), try)
  if (!is.null(device)) return(device)
  if (mesh_pays(mesh, min(tree, direct))) {
    return(list(method = "mesh", mesh = mesh, reason = sprintf("about %s over a mesh", seconds_text(mesh$seconds))))
  }
  # groups differ more than pairs do: near a tie the direct sum is the safer one
  list(method = if (1.15 * tree < direct) "tree" else "direct", trees = trees, chosen = here,
       reason = sprintf("about %s by trees, %s directly", seconds_text(tree), seconds_text(direct)))
}

# The plan where a device is faster than what the CPU would do in `least` seconds.
device_at_once <- function(problem, least, mesh) {
  if (problem$backend != "auto" || !device_may_pay(least)) return(NULL)
  device <- device_plan(problem, mesh)
  device$chosen <- choose_backend("auto", cost(least, device$seconds))
  device$reason <- "the device is faster than any way on the CPU"
  if (device$chosen$name == "cuda") device
}

# Seconds of the whole walk, by one of 2 to 4 groups of queries.
walk_seconds <- function(problem, trees) {
  threads <- problem$control$threads
  problem$control <- trial_control(problem$control)
  effort <- walk_trees(problem, trees, split_weights(problem),
                       trial = min(4, max(2, ncol(trees$query$x) %/% 20000)))$effort
  (effort[["prepared"]] + effort[["walked"]] * ncol(trees$query$x) / effort[["queries"]]) / threads
}

trial_control <- function(control) {
  control["progress"] <- list(NULL)
  control$threads <- 1L
  control
}

# Seconds of the whole direct sum, by some 3 x 10^5 pairs. For each kind of pair the shortest recent time is kept, since
# other work on the machine adds to processor time too, though less than to the time that passes.
direct_seconds <- function(problem, trees) {
  split <- split_weights(problem)
  kind <- pair_kind(problem, trees$reference, split)
  known <- pairs_of_late(kind)
  now <- min(known, Inf)
  if (length(known) < 3) {
    now <- .Call(C_weft_kernel_pair_seconds, native_task(problem, trees$query, trees$reference, split),
                 trial_control(problem$control))
    now <- if (now > 0) min(now, 2.5 * know_pairs(kind, now)) # more is not the machine's pace
           # a profiler's clock stands still meanwhile
           else pair_cost(problem$kernel, nrow(trees$query$x), nrow(split$weights)) * core_seconds("double")
  }
  now * ncol(trees$query$x) * ncol(trees$reference$x) / problem$control$threads
}

# What must be equal for pairs to take equally long.
pair_kind <- function(problem, points, split) paste(problem$kernel, nrow(points$x), nrow(split$weights),
                                                    is.null(points$lo))

# Seconds of a pair of the kind, as measured recently, named by the time of measurement: a machine may have become
# slower.
pairs_of_late <- function(kind) {
  known <- pair_seconds[[kind]]
  utils::tail(known[as.numeric(names(known)) > proc.time()[[3L]] - pace_lasts], 8L)
}

# The shortest of them, with one more taken into account.
know_pairs <- function(kind, seconds) {
  pair_seconds[[kind]] <- c(pairs_of_late(kind), stats::setNames(seconds, proc.time()[[3L]]))
  min(pair_seconds[[kind]])
}

pace_lasts <- 5 # seconds
pair_seconds <- new.env(parent = emptyenv())
