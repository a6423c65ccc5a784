# How `method = "auto"` chooses: what both ways cost in the same unit, a pair of the direct sum in this dimension and kernel.
# The tree's share is measured on a sample of the queries, not guessed: 4 groups of neighbours are walked, and what they
# took in pairs and nodes stands for all.

# Work of a pair, in units of one dimension of one pair; measured on AVX-512 (inst/bench/kernel.R), of which only ratios matter.
pair_cost <- function(kernel, d, m) {
  evaluation <- c(gaussian = 12, laplacian = 22, matern12 = 22, matern32 = 24, matern52 = 26, cauchy = 8, uniform = 5, epanechnikov = 5,
                  triangular = 12, biweight = 5, cosine = 12)
  d + evaluation[[kernel]] + 2 * (m - 1)
}

# A node for one query: both distances of the box, the moments and three kernel values.
node_cost <- function(kernel, d, m) 4 * d + 1.5 * m * d + 3 * pair_cost(kernel, 0, m) + 12

# Building, per point: each level reads the points, splits and bounds them.
build_cost <- function(n, d) n * (d + 8) * max(1, log2(n / 32)) * 3

# Where a direct sum runs. Pairs a second as measured on one H200 (inst/bench/kernel-device.R), about the slower of the kernels.
direct_backend <- function(problem, precision = "double") {
  d <- ncol(problem$reference)
  n <- as.double(nrow(problem$reference))
  nq <- as.double(nrow(problem$query))
  m <- ncol(problem$weights)
  pairs <- n * nq
  cpu <- pairs * pair_cost(problem$kernel, d, m) / (if (precision == "double") 1.6e10 else 3.5e10) / problem$control$threads
  rate <- switch(precision, double = 8e12 / (2 * d + 14 + 2 * m), single = 1.3e13 / (d + 3 + m), tensor = 2.4e12)
  choose_backend(problem$backend, cpu, pairs / rate + (n * (d + m) + nq * (d + 2 * m)) * 8 / 5e9 + 0.01)
}

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

# What a device would do and how long it would take: over a grid when few of a sample of pairs are near each other.
device_plan <- function(problem) {
  n <- as.double(nrow(problem$reference))
  nq <- as.double(nrow(problem$query))
  d <- ncol(problem$reference)
  m <- ncol(problem$weights)
  seconds <- n * nq / (8e12 / (2 * d + 14 + 2 * m)) + (n * (d + m) + nq * (d + 2 * m)) * 8 / 5e9 + 0.01
  direct <- list(method = "direct", seconds = seconds)
  if (problem$log || n < 2e4) return(direct)
  weights <- abs(problem$weights)
  reach <- grid_reach(problem, colSums(weights), problem$abs_error)
  if (is.null(reach)) return(direct)
  z <- function(x, size) {
    x <- x[unique(round(seq(1, nrow(x), length.out = min(nrow(x), size)))), , drop = FALSE]
    t(native_points(x, problem)$x)
  }
  q <- z(problem$query, 200)
  x <- z(problem$reference, 2000)
  square <- 0
  for (j in seq_len(d)) square <- square + outer(q[, j], x[, j], "-")^2
  near <- mean(square < (2 * reach)^2) + 1e-4
  if (near > 0.2) direct else list(method = "tree", seconds = seconds * near * 2 + n * d * 1e-9 + 0.02)
}

plan_method <- function(problem) {
  n <- as.double(nrow(problem$reference))
  nq <- as.double(nrow(problem$query))
  d <- ncol(problem$reference)
  if (problem$backend == "cuda") {
    method <- device_plan(problem)$method
    return(list(method = method, reason = sprintf("a sample shows %s pairs to be near each other",
                                                  if (method == "tree") "few" else "many")))
  }
  m <- ncol(split_weights(problem$weights[seq_len(min(n, 1000)), , drop = FALSE])$weights)
  direct <- nq * n * pair_cost(problem$kernel, d, m)
  built <- !is.null(problem$grown) || (!is.null(problem$tree$native) && is.null(problem$bandwidth$scale))
  build <- if (built) 0 else build_cost(n, d)
  build <- build + if (problem$self) 0 else build_cost(nq, d)
  took <- function(work) work / 1.6e10 / problem$control$threads
  seconds <- function(work) seconds_text(took(work))
  if (direct < 1e7 || direct < 1.5 * build) {
    return(list(method = "direct", reason = sprintf("about %s of direct work, less than a tree would take", seconds(direct))))
  }
  trees <- native_trees(problem)
  walk <- sample_walk(problem, trees)
  tree <- nq * (walk[1L] * pair_cost(problem$kernel, d, m) + walk[2L] * node_cost(problem$kernel, d, m)) + build
  least <- took(min(tree, direct))
  if (problem$backend == "auto" && least > 2 * cuda_start_seconds) { # else no device could pay
    device <- device_plan(problem)
    chosen <- choose_backend("auto", least, device$seconds)
    if (chosen$name == "cuda") return(list(method = device$method, chosen = chosen,
                                           reason = "the device is faster than both ways on the CPU"))
  }
  list(method = if (tree < direct) "tree" else "direct", trees = trees, chosen = list(name = "cpu", reason = "on the CPU"),
       reason = sprintf("about %s by trees, %s directly", seconds(tree), seconds(direct)))
}

# Pairs and bounded nodes a query, from walks with up to 4 groups of 128 neighbours.
sample_walk <- function(problem, trees, size = 128, groups = 4) {
  nq <- ncol(trees$query$x)
  split <- split_weights(problem$weights)
  starts <- unique(floor(seq(0, max(0, nq - size), length.out = groups + 2L)[seq_len(groups) + 1L]))
  problem$control["progress"] <- list(NULL)
  problem$leave_one_out <- FALSE
  taken <- vapply(starts, function(from) {
    some <- seq.int(from + 1, min(nq, from + size))
    points <- list(x = trees$query$x[, some, drop = FALSE], lo = trees$query$lo[, some, drop = FALSE])
    query <- grow_tree(points, "kd", 32, c(0, 0), problem$control)
    walk_trees(problem, list(query = query, reference = trees$reference), split)$effort[1:2] / length(some)
  }, numeric(2))
  # nodes are counted a tile of 32 queries
  rowMeans(taken) * c(1, 32)
}
