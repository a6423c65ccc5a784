# Kernel sums over the ranks of a job: each has its own references and queries and gets the sums of its own queries.
#
#   global tree   ranks are halved again and again; a group splits its points by the widest coordinate, at the rank
#                 that gives each half its share, and pairs of ranks across the split exchange what lies on the
#                 other's side
#   reach         every rank announces the boxes around its queries and what error each may have; every other rank
#                 sends it what of its references the bounds do not prune: points, or one point for a node whose
#                 kernel values hardly differ
#   sums          each rank sums over its own and the received references as one rank would, some queries at a time
#   balance       a rank without work asks the ranks whose numbers differ from its own in one bit; one with more than
#                 1/beta times the work left hands over (1 - beta) / 2 of its queries, with the references they need
#   end           the numbers of finished queries are added up over all ranks until all are finished
#
# Errors: a tenth of the tolerance each for what is pruned and for what is pruned again when queries are handed over,
# the rest for the sums themselves. Exact sums have 1e-13 in place of these tenths.

# list(sum, method, reason, effort, counters) as kernel_run().
kernel_over_ranks <- function(problem, method = "auto") {
  me <- ranks_start()
  if (method == "nystrom") {
    abort_input("There is no reduced set for references that are distributed over ranks.",
                x = "`method` is \"nystrom\".",
                i = "Use \"auto\", \"direct\", \"tree\", \"montecarlo\" or \"features\".")
  }
  if (me$size == 1L) return(kernel_run(problem, method))
  if (problem$kernel == "polynomial" && !method %in% c("auto", "direct")) {
    return(polynomial_run(problem, method)) # says why not
  }
  problem$control["progress"] <- list(ranks_progress(NULL))
  problem$weights <- weights_of(problem)
  problem <- agree_on_problem(problem, method)
  if (method %in% c("montecarlo", "features")) return(approximate_over_ranks(problem, method))
  sum_over_ranks(share_tolerance(problem), method)
}

# The same for a problem on which all ranks agree, by direct sums and trees.
sum_over_ranks <- function(problem, method) {
  me <- ranks_start()
  count <- new_counters()
  region <- gather_region(problem, me, count)
  count$lap("tree")
  received <- exchange_references(problem, region, me, count)
  count$lap("reach")
  merged <- cbind(region$references, received)
  query <- t(region$queries[seq_len(problem$d), , drop = FALSE])
  local <- local_sums(problem, query, merged, region$own, method, region$tree)
  count$lap("plan")
  sums <- balanced_sums(problem, local, region, me, count)
  count$lap("sums")
  sums <- send_home(problem, region, sums, me, count)
  count$lap("home")
  if (problem$size$n == 0) sums[] <- if (problem$log) -Inf else 0
  list(sum = sums, method = local$method, reason = sprintf("%d ranks; here %s", me$size, local$reason),
       backend = local$backend, effort = count$effort, counters = count)
}

# ---- counters ----

# What a rank did: seconds of each phase, numbers sent (doubles, to other ranks), queries sent and received.
new_counters <- function() {
  count <- new.env(parent = emptyenv())
  count$seconds <- numeric()
  count$sent <- numeric()
  count$messages <- 0
  count$given <- count$helped <- count$asked <- 0
  count$effort <- effort_of()
  last <- proc.time()[[3L]]
  count$lap <- function(phase) {
    now <- proc.time()[[3L]]
    count$seconds[phase] <- now - last
    last <<- now
  }
  count$send <- function(phase, n) {
    n <- n[n > 0]
    count$sent[phase] <- sum(count$sent[phase], n, na.rm = TRUE)
    count$messages <- count$messages + length(n)
  }
  count
}

# A data frame with one row per rank, the same on all; every rank must come here.
ranks_counters <- function(result) {
  count <- result$counters
  if (is.null(count)) return(NULL)
  sent <- function(phase) 8 * sum(count$sent[phase], na.rm = TRUE)
  here <- data.frame(
    rank = ranks$me$rank, references = count$references, queries = count$queries, received = count$received,
    together = count$together, pairs = count$effort[["pairs"]],
    nodes = if (result$method == "tree") count$effort[["nodes"]] else NA,
    given = count$given, helped = count$helped, asked = count$asked,
    bytes_tree = sent("tree"), bytes_reach = sent("reach"), bytes_balance = sent("balance"), bytes_home = sent("home"),
    messages = count$messages, t(round(count$seconds, 3)), method = result$method
  )
  do.call(rbind, ranks_gather(here))
}

# Rank 0 prints it.
show_counters <- function(result) {
  all <- ranks_counters(result)
  if (is.null(all) || ranks$me$rank > 0L) return(invisible())
  if (all(is.na(all$nodes))) all$nodes <- NULL # sums without trees
  old <- options(width = 500)
  on.exit(options(old))
  message(paste(utils::capture.output(print(all, row.names = FALSE)), collapse = "\n"))
}

# ---- what must be the same on all ranks ----

# Adds to the problem what concerns all ranks: size (n references, nq queries), totals of weights, an origin, a key
# for what is drawn.
agree_on_problem <- function(problem, method) {
  alike <- c("kernel", "bandwidth", "rel_error", "abs_error", "confidence", "log", "leave_one_out", "polynomial",
             "nodes")
  d <- ncol(problem$reference)
  columns <- list(d, list(ncol(problem$weights), problem$vector))
  names(columns) <- c("the columns of the points", "the columns of weights")
  said <- c(columns, method = method, problem[intersect(alike, names(problem))])
  draws <- method %in% c("montecarlo", "features") || identical(problem$nodes, "samples") ||
    identical(problem$tree$type, "rp")
  all <- ranks_gather(list(
    said = lapply(said, digest_of), n = nrow(problem$reference), nq = nrow(problem$query),
    total = colSums(abs(problem$weights)), negative = colSums(problem$weights < 0) > 0,
    first = if (nrow(problem$reference)) problem$reference[1L, ],
    balance = check_number(getOption("weft.balance", 0.5), "weft.balance", min = 0, max = 1),
    draws = draws, key = if (draws) kernel_key(problem$seed) else c(0, 0)
  ), problem$control)
  compare_said(lapply(all, `[[`, "said"))
  problem$d <- d
  problem$m <- ncol(problem$weights)
  problem$size <- list(n = sum(vapply(all, `[[`, 0, "n")), nq = sum(vapply(all, `[[`, 0, "nq")))
  problem$total <- Reduce(`+`, lapply(all, `[[`, "total"))
  problem$negative <- Reduce(`|`, lapply(all, `[[`, "negative"))
  firsts <- Filter(Negate(is.null), lapply(all, `[[`, "first"))
  problem$origin <- if (length(firsts)) as.double(firsts[[1L]]) else numeric(d)
  problem$balance <- all[[1L]]$balance
  drawing <- Filter(function(one) one$draws, all)
  problem$key <- if (length(drawing)) drawing[[1L]]$key else c(0, 0)
  problem$seed <- problem$seed %||% 0 # what is only tried must not draw from R's random numbers
  problem$nodes <- if (identical(problem$nodes, "samples")) "samples" else "bounds"
  problem
}

# What pruning may cost, and what is left for the sums.
share_tolerance <- function(problem) {
  exact <- problem$rel_error <= 1e-12 && problem$abs_error == 0
  share <- 0.1
  problem$prune <- if (exact) c(5e-14, 0) else share * c(problem$rel_error, problem$abs_error)
  if (!exact) {
    rel <- (1 - 2 * share) * problem$rel_error / (1 + 2 * share * problem$rel_error)
    problem$abs_error <- problem$abs_error * (1 - 2 * share - 2 * share * rel)
    problem$rel_error <- rel
  }
  problem
}

# ---- the global tree ----

# Points travel as columns: coordinates, weights, role (1 a reference, 2 a query, 3 both), and where they came from.
gather_region <- function(problem, me, count) {
  d <- problem$d
  m <- problem$m
  column <- function(x, w, role) {
    n <- nrow(x)
    t(cbind(unname(x), unname(w), rep(role, n), rep(me$rank, n), seq_len(n), deparse.level = 0))
  }
  none <- matrix(0, nrow(problem$query), m)
  cloud <- if (problem$self) column(problem$reference, problem$weights, 3)
           else cbind(column(problem$reference, problem$weights, 1), column(problem$query, none, 2))
  scale <- problem$bandwidth$scale
  scale <- if (is.null(scale)) rep(1, d) else if (is.matrix(scale)) sqrt(rowSums(scale^2)) else scale
  cloud <- split_among_ranks(cloud, d, scale, problem$control, count)
  role <- cloud[d + m + 1L, ]
  self <- all(role == 3)
  is_reference <- role %% 2 == 1
  is_query <- role >= 2
  queries <- if (self) cloud else cloud[, is_query, drop = FALSE]
  count$references <- sum(is_reference)
  count$queries <- ncol(queries)
  # neighbours in a tree's order are summed together, and handed over together
  tree <- grow_region(problem, queries[seq_len(d), , drop = FALSE])
  order <- tree$order + 1L
  tree$order <- seq_along(order) - 1L
  queries <- queries[, order, drop = FALSE]
  own <- if (problem$leave_one_out && self) seq_along(order)
         else if (problem$leave_one_out) ifelse(role == 3, cumsum(is_reference), 0)[is_query][order]
  # one tree serves both where all points are both
  references <- if (self) queries[seq_len(d + m), , drop = FALSE] else cloud[seq_len(d + m), is_reference, drop = FALSE]
  list(references = references, queries = queries, own = own, tree = tree, self = self)
}

grow_region <- function(problem, columns) {
  grow_tree(points_of_columns(columns, problem), "kd", 32, c(0, 0), problem$control)
}

points_of_columns <- function(columns, problem) {
  if (is.null(problem$bandwidth$scale)) list(x = columns, lo = NULL) else native_points(t(columns), problem)
}

# Halves the ranks until each is alone. Any number of ranks: a half gets its share of the points.
split_among_ranks <- function(cloud, d, scale, control, count) {
  group <- .Call(C_weft_ranks_regroup, control, NA_integer_)
  while (group$size > 1L) {
    rank <- group$rank
    half <- group$size %/% 2L
    box <- if (ncol(cloud)) vapply(seq_len(d), function(j) range(cloud[j, ]), c(0, 0)) else matrix(c(Inf, -Inf), 2L, d)
    box <- .Call(C_weft_ranks_reduce, control, c(box[1L, ], -box[2L, ]), TRUE)
    width <- (-box[d + seq_len(d)] - box[seq_len(d)]) / scale
    left <- .Call(C_weft_ranks_split, control, group, cloud[which.max(width), ], half / group$size)
    goes <- if (rank < half) !left else left
    parts <- vector("list", group$size)
    parts[[1L + if (rank < half) half + rank else (rank - half) %% half]] <- as.vector(cloud[, goes])
    count$send("tree", lengths(parts))
    came <- Filter(length, .Call(C_weft_ranks_exchange, control, parts))
    cloud <- do.call(cbind, c(list(cloud[, !goes, drop = FALSE]), lapply(came, matrix, nrow = nrow(cloud))))
    group <- .Call(C_weft_ranks_regroup, control, as.integer(rank >= half))
  }
  .Call(C_weft_ranks_regroup, control, NA_integer_)
  cloud
}

# ---- references for the queries of other ranks ----

# The received references, columns of coordinates and weights.
exchange_references <- function(problem, region, me, count) {
  d <- problem$d
  m <- problem$m
  control <- problem$control
  others <- setdiff(seq_len(me$size), me$rank + 1L)
  count$received <- count$together <- 0
  send <- function(parts) {
    count$send("reach", lengths(parts[others]))
    parts[me$rank + 1L] <- list(NULL)
    .Call(C_weft_ranks_exchange, control, parts)
  }
  if (problem$kernel == "polynomial") {
    came <- send(rep(list(as.vector(region$references)), me$size))
    count$received <- length(unlist(came)) / (d + m)
    return(matrix(unlist(came), d + m))
  }
  boxes <- query_boxes(region$tree)
  reach <- reach_of_rank(problem, region$references, if (region$self) region$tree)
  told <- ranks_gather(list(boxes = boxes$box, far = max(abs(reach$tree$box), abs(boxes$box), 0)), control)
  count$send("reach", rep(length(boxes$box), me$size - 1L))
  reach$far <- max(vapply(told, `[[`, 0, "far"))
  allowed <- allowed_errors(problem, region, reach, told, boxes, send)
  allowed_by_all <- ranks_gather(allowed$box, control)
  count$send("reach", rep(length(allowed$box), me$size - 1L))
  parts <- lapply(seq_len(me$size), function(r) {
    if (r == me$rank + 1L || !ncol(told[[r]]$boxes)) return(NULL)
    needed <- .Call(C_weft_ranks_needed, control, reach, told[[r]]$boxes, allowed_by_all[[r]], TRUE)
    count$together <- count$together + sum(needed$one)
    as.vector(needed_points(reach$tree, needed, region$references, d)$columns)
  })
  came <- send(parts)
  count$received <- length(unlist(came)) / (d + m)
  count$allowed <- allowed$query
  matrix(unlist(came), d + m)
}

# What pruning asks about a tree of references.
reach_of_rank <- function(problem, references, tree = NULL) {
  d <- problem$d
  if (is.null(tree)) tree <- grow_region(problem, references[seq_len(d), , drop = FALSE])
  list(tree = tree, weights = abs(references[-seq_len(d), tree$order + 1L, drop = FALSE]),
       kernel = native_kernel(problem$kernel), h = problem$bandwidth$h, far = max(abs(tree$box), 0))
}

# The boxes of the uppermost nodes, at most `most` of them: list(box, first, count).
query_boxes <- function(tree, most = 64L) {
  nodes <- if (length(tree$first)) 1L else integer()
  repeat {
    inner <- tree$child[nodes] >= 0L
    if (!any(inner) || length(nodes) + sum(inner) > most) break
    nodes <- c(nodes[!inner], outer(1:2, tree$child[nodes[inner]], "+"))
  }
  nodes <- nodes[order(tree$first[nodes])]
  list(box = tree$box[, nodes, drop = FALSE], first = tree$first[nodes], count = tree$count[nodes])
}

# By how much the kernel values of a reference may be off for each box and each query, from lower bounds of its sum:
# what the nearest leaf here adds, and what the other ranks are sure to.
allowed_errors <- function(problem, region, reach, told, boxes, send) {
  m <- problem$m
  each <- length(boxes$count)
  of_box <- rep(seq_len(each), boxes$count)
  if (is_compact(problem$kernel) && problem$prune[2L] == 0 && problem$prune[1L] < 1e-12) {
    return(list(box = numeric(each), query = numeric(length(of_box))))
  }
  lower <- lapply(told, function(other) as.vector(.Call(C_weft_ranks_lower, problem$control, reach, other$boxes)))
  lower <- send(lower)
  lower <- Reduce(`+`, Filter(length, lower), matrix(0, m, each))
  task <- sums_task(reach$kernel, reach$h, region$tree[c("x", "lo")], reach$tree[c("x", "lo")], reach$weights,
                    problem$leave_one_out, own = if (problem$leave_one_out) own_places(region$own, reach$tree))
  near <- t(.Call(C_weft_ranks_nearest, problem$control, task, region$tree, reach$tree))
  f <- near + lower[, of_box, drop = FALSE]
  allowed <- (problem$prune[1L] * f + problem$prune[2L]) / problem$total
  shifted <- problem$log && of_sheet(problem$kernel, "form") == "EXPONENTIAL"
  if (shifted) allowed[f < 1e-280] <- -1 # exponents are shifted there
  allowed[problem$total == 0, ] <- Inf
  allowed <- do.call(pmin, c(list(rep(Inf, ncol(allowed))), lapply(seq_len(m), function(c) allowed[c, ])))
  list(box = vapply(split(allowed, factor(of_box, seq_len(each))), min, 0, USE.NAMES = FALSE), query = allowed)
}

# The places, from 0, that references have in a tree's order; -1 for none (0).
own_places <- function(own, tree) {
  place <- integer(length(tree$order))
  place[tree$order + 1L] <- seq_along(tree$order) - 1L
  out <- rep(-1L, length(own))
  out[own > 0] <- place[own]
  out
}

# list(columns, index): the columns of `cloud` that are needed; index: of those that stand for themselves.
needed_points <- function(tree, needed, cloud, d) {
  under <- function(nodes) tree$order[sequence(tree$count[nodes], tree$first[nodes] + 1)] + 1L
  points <- tree$order[needed$keep] + 1L
  nodes <- which(needed$one)
  columns <- cloud[, points, drop = FALSE]
  if (length(nodes)) {
    some <- cloud[, tree$order[tree$first[nodes] + tree$count[nodes] %/% 2 + 1] + 1L, drop = FALSE]
    sums <- rowsum(t(cloud[-seq_len(d), under(nodes), drop = FALSE]), rep(seq_along(nodes), tree$count[nodes]),
                   reorder = FALSE)
    some[-seq_len(d), ] <- t(sums)
    columns <- cbind(columns, some)
  }
  list(columns = columns, index = points)
}

# ---- sums of some queries over references that are all here ----

# A list with run(rows): the sums of these queries, and the method that it uses. references: columns of coordinates and
# weights. query_tree: NULL, or a tree of the queries, for the sample from which "auto" chooses.
local_sums <- function(problem, query, references, own, method, query_tree = NULL) {
  d <- problem$d
  here <- seq_len(d)
  p <- problem
  p$query <- query
  p$reference <- t(references[here, , drop = FALSE])
  p$box <- NULL
  p$weights <- t(references[-here, , drop = FALSE])
  p$self <- FALSE
  p["grown"] <- list(NULL)
  p["tree"] <- list(if (!is.null(problem$tree)) problem$tree[c("type", "leaf_size")])
  work <- list(method = "direct", reason = "nothing to sum", backend = "cpu", problem = p, query = query,
               references = references, own = own)
  if (!nrow(query) || !ncol(references)) {
    work$run <- function(rows) list(sum = matrix(if (p$log) -Inf else 0, length(rows), p$m), effort = effort_of())
    return(work)
  }
  if (p$kernel == "polynomial") return(polynomial_sums(work))
  grow <- function() {
    grow_tree(points_of_columns(references[here, , drop = FALSE], p), p$tree$type %||% "kd", p$tree$leaf_size %||% 32,
              if (identical(p$tree$type, "rp")) p$key else c(0, 0), p$control)
  }
  p$trees <- function() list(reference = grow(), query = query_tree)
  plan <- if (p$backend == "cuda") list(method = "direct", reason = "a device sums directly over ranks")
          else if (method == "auto") plan_method(p)
          else list(method = method, reason = "requested")
  if (p$leave_one_out) plan$chosen <- cpu_only(p$backend, "Leave-one-out sums over ranks run")
  work$reason <- plan$reason
  work$method <- plan$method
  split <- split_weights(p)
  if (plan$method == "direct") {
    chosen <- plan$chosen %||% direct_backend(p)
    p$control$backend <- work$backend <- chosen$name
    reference <- native_points(p$reference, p)
    work$run <- function(rows) {
      task <- native_task(p, native_points(query[rows, , drop = FALSE], p), reference, split)
      if (p$leave_one_out) task$own <- as.integer(own[rows]) - 1L
      out <- .Call(C_weft_kernel_direct, task, p$control)
      list(sum = join_parts(out$sum, split, p$m), effort = out$effort)
    }
    return(work)
  }
  tree <- plan$trees$reference %||% grow()
  weights <- split$weights[, tree$order + 1L, drop = FALSE]
  tree$moments <- .Call(C_weft_kernel_moments, p$control, native_task(p, tree, tree, split, weights), tree)
  places <- if (p$leave_one_out) own_places(own, tree)
  work$tree <- tree
  work$run <- function(rows) {
    block <- grow_tree(native_points(query[rows, , drop = FALSE], p), "kd", 32, c(0, 0), p$control)
    task <- native_task(p, block, tree, split, weights)
    if (p$leave_one_out) task$own <- places[rows][block$order + 1L]
    # no series: one of all references for each block of queries would not pay
    walk <- if (p$nodes == "samples") walk_plan("never", p$confidence, p$key) else walk_plan("never")
    out <- .Call(C_weft_kernel_walk, task, block, tree, walk, p$control)
    sums <- out$sum
    sums[block$order + 1L, ] <- out$sum
    list(sum = join_parts(sums, split, p$m), effort = out$effort)
  }
  work
}

polynomial_sums <- function(work) {
  p <- work$problem
  work$reason <- "polynomial kernels are summed directly"
  work$run <- function(rows) {
    polynomial_products(p, work$query[rows, , drop = FALSE], p$weights, if (p$leave_one_out) work$own[rows])
  }
  work
}

# ---- balance ----

message_kinds <- list(ask = 0L, deny = 1L, task = 2L, sums = 3L)
block_seconds <- 0.2 # of work between two looks at what has arrived

# The sums of the region's queries, some of them by other ranks, while this rank helps others.
balanced_sums <- function(problem, local, region, me, count) {
  control <- problem$control
  nq <- ncol(region$queries)
  sums <- matrix(0, nq, problem$m)
  first <- 1    # queries first .. last are still to be summed here
  last <- nq
  done <- 0     # sums that are here
  rate <- NA    # seconds per query
  given <- list()
  guests <- list() # other ranks' queries: list(owner, id, work, at, sums)
  bits <- 2^(0:20)
  partners <- bitwXor(me$rank, bits[bits < 2 * me$size])
  partners <- partners[partners < me$size]
  stage <- 0
  waiting <- FALSE
  again <- 0    # when to ask next
  pause <- 0.005
  post <- function(to, kind, values) {
    if (kind > 1L) count$send("balance", length(values))
    .Call(C_weft_ranks_post, control, to, kind, as.double(values))
  }
  left <- function() {
    if (last < first) return(0)
    if (is.na(rate)) Inf else (last - first + 1) * rate
  }
  hand_over <- function(to, load) {
    rows <- floor(0.5 * (1 - problem$balance) * (last - first + 1))
    if (is.na(rate) || rows < 32 || left() < block_seconds || load >= problem$balance * left()) {
      return(post(to, message_kinds$deny, numeric()))
    }
    rows <- seq.int(last - rows + 1, last)
    last <<- rows[1L] - 1
    given[[length(given) + 1L]] <<- rows
    post(to, message_kinds$task, pack_task(problem, local, region, rows, length(given), count))
    count$given <- count$given + length(rows)
  }
  read <- function(message) {
    v <- message$values
    if (message$kind == message_kinds$ask) hand_over(message$from, v)
    else if (message$kind == message_kinds$deny) waiting <<- FALSE
    else if (message$kind == message_kinds$task) {
      waiting <<- FALSE
      pause <<- 0.005
      guests[[length(guests) + 1L]] <<- unpack_task(problem, v, message$from)
    } else {
      rows <- given[[v[1L]]]
      sums[rows, ] <<- v[-1L]
      done <<- done + length(rows)
    }
  }
  some <- function(from, to, rate) {
    rows <- if (is.na(rate)) 512 * control$threads else block_seconds / max(rate, 1e-9)
    seq.int(from, min(to, from + 32 * max(1, round(rows / 32)) - 1))
  }
  timed <- function(work, rows) {
    started <- proc.time()[[3L]]
    out <- work$run(rows)
    count$effort <- count$effort + out$effort[names(count$effort)]
    list(sum = out$sum, rate = max(proc.time()[[3L]] - started, 1e-4) / length(rows))
  }
  help_guest <- function() {
    guest <- guests[[1L]]
    rows <- some(guest$at, nrow(guest$sums), guest$rate)
    out <- timed(guest$work, rows)
    guest$sums[rows, ] <- out$sum
    guest$rate <- out$rate
    guest$at <- rows[length(rows)] + 1
    count$helped <- count$helped + length(rows)
    if (guest$at <= nrow(guest$sums)) guests[[1L]] <<- guest
    else {
      post(guest$owner, message_kinds$sums, c(guest$id, guest$sums))
      guests[[1L]] <<- NULL
    }
  }
  ask_next <- function() {
    stage <<- stage %% length(partners) + 1
    post(partners[stage], message_kinds$ask, 0)
    count$asked <- count$asked + 1
    waiting <<- TRUE
    if (stage == length(partners)) { # all were asked: wait before the next round
      again <<- proc.time()[[3L]] + pause
      pause <<- min(2 * pause, 0.1)
    }
  }
  serve <- function() while (!is.null(message <- .Call(C_weft_ranks_receive, control))) read(message)
  all <- NA
  while (is.na(all)) {
    serve()
    if (length(guests)) help_guest()
    else if (first <= last) {
      rows <- some(first, last, rate)
      out <- timed(local, rows)
      sums[rows, ] <- out$sum
      rate <- if (is.na(rate)) out$rate else 0.5 * (rate + out$rate)
      done <- done + length(rows)
      first <- rows[length(rows)] + 1
    } else {
      if (done == nq) all <- .Call(C_weft_ranks_total, control, done)
      if (is.na(all) && !waiting && length(partners) && proc.time()[[3L]] >= again) ask_next()
      else if (is.na(all)) Sys.sleep(0.001)
    }
  }
  if (all != problem$size$nq) weft_abort("internal", sprintf("%g of %g queries were summed.", all, problem$size$nq))
  # nobody has work: answers that are still owed, then the end
  over <- NA
  while (is.na(over)) {
    serve()
    if (!waiting) over <- .Call(C_weft_ranks_total, control, 0)
    if (is.na(over)) Sys.sleep(0.0005)
  }
  sums
}

# A task of queries for another rank: numbers of queries and references, which way, then queries with what they leave
# out, and the references that they need.
pack_task <- function(problem, local, region, rows, id, count) {
  d <- problem$d
  cloud <- local$references
  own <- if (problem$leave_one_out) local$own[rows] else numeric(length(rows))
  needed <- list(columns = cloud, index = seq_len(ncol(cloud)))
  if (problem$kernel != "polynomial" && ncol(cloud)) {
    reach <- reach_of_rank(problem, cloud, local$tree)
    reach$far <- max(reach$far, abs(region$tree$box))
    at <- unique(round(seq(0, length(rows), length.out = min(64L, ceiling(length(rows) / 32)) + 1)))
    boxes <- vapply(seq_along(at)[-1L], function(k) {
      x <- region$tree$x[, rows[seq.int(at[k - 1L] + 1, at[k])], drop = FALSE]
      as.vector(t(apply(x, 1L, range)))
    }, numeric(2L * d))
    allowed <- vapply(seq_along(at)[-1L], function(k) min(count$allowed[rows[seq.int(at[k - 1L] + 1, at[k])]]), 0)
    needed <- .Call(C_weft_ranks_needed, problem$control, reach, boxes, allowed, !problem$leave_one_out)
    needed <- needed_points(reach$tree, needed, cloud, d)
  }
  if (problem$leave_one_out) own <- match(own, needed$index, nomatch = 0L)
  c(id, length(rows), ncol(needed$columns), local$method == "tree",
    rbind(region$queries[seq_len(d), rows, drop = FALSE], own), needed$columns)
}

unpack_task <- function(problem, v, owner) {
  d <- problem$d
  n <- v[2L]
  query <- matrix(v[4 + seq_len(n * (d + 1))], d + 1)
  references <- matrix(v[-seq_len(4 + n * (d + 1))], d + problem$m)
  work <- local_sums(problem, t(query[seq_len(d), , drop = FALSE]), references, query[d + 1L, ],
                     if (v[4L] == 1) "tree" else "direct")
  list(owner = owner, id = v[1L], work = work, at = 1, rate = NA, sums = matrix(0, n, problem$m))
}

# Sums go to the ranks that asked for them.
send_home <- function(problem, region, sums, me, count) {
  home <- region$queries[problem$d + problem$m + 2:3, , drop = FALSE]
  columns <- rbind(home[2L, ], t(sums))
  parts <- lapply(seq_len(me$size) - 1, function(r) as.vector(columns[, home[1L, ] == r]))
  count$send("home", lengths(parts[-(me$rank + 1L)]))
  came <- matrix(unlist(.Call(C_weft_ranks_exchange, problem$control, parts)), nrow(columns))
  out <- matrix(0, nrow(problem$query), problem$m)
  out[came[1L, ], ] <- t(came[-1L, , drop = FALSE])
  out
}

# ---- numbers of all parts, for bandwidths and models ----

# Sums over the ranks, the same bits on all of them.
ranks_sum <- function(x) Reduce(`+`, ranks_gather(x))

# Points of which each rank has some must have the same columns.
rows_of_all <- function(x, distributed) {
  if (!distributed) return(nrow(x))
  all <- ranks_gather(list(n = as.double(nrow(x)), columns = ncol(x), names = colnames(x)))
  compare_columns(all)
  sum(vapply(all, `[[`, 0, "n"))
}

# A rank whose columns have no names takes the others'.
compare_columns <- function(all) {
  names <- Filter(Negate(is.null), lapply(all, `[[`, "names"))
  compare_said(lapply(all, function(one) {
    list(`the columns of x` = one$columns, `names of the columns of x` = one$names %||% if (length(names)) names[[1L]])
  }))
}

sd_of_all <- function(x, n) {
  mean <- ranks_sum(colSums(x)) / n
  sqrt(ranks_sum(colSums((x - rep(mean, each = nrow(x)))^2)) / (n - 1))
}

mean_of_all <- function(y, w, distributed) {
  sums <- c(sum(w * y), sum(w))
  if (distributed) sums <- ranks_sum(sums)
  sums[1L] / sums[2L]
}
