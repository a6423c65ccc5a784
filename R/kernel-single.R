# Direct sums in 32-bit floats, with a bound for each query.

# list(sum, size, bound) of the queries `order`, neighbours next to each other: size is the sum of |w| k, and the bound
# of the error of both is over the sum of |w|. query: their points, as a tree has them.
single_sums <- function(problem, chosen, order, tensor = FALSE,
                        query = native_points(problem$query[order, , drop = FALSE], problem),
                        reference = native_points(problem$reference, problem)) {
  split <- split_weights(problem)
  most <- vapply(seq_len(nrow(split$weights)), function(c) max(split$weights[c, ], 0), 0)
  unit <- ifelse(most > 0, 2^floor(log2(most)), 1) # so that no column's weights vanish in float, or overflow
  if (any(unit != 1)) split$weights <- split$weights / unit
  own <- if (problem$leave_one_out) order - 1L
  problem$control$backend <- chosen$name
  problem$control$devices <- devices_for(problem$devices, chosen$name, chosen$divided)
  out <- .Call(C_weft_kernel_single, native_task(problem, query, reference, split), own, tensor, problem$control)
  parts <- out$sum * rep(unit, each = nrow(out$sum))
  m <- NCOL(problem$weights)
  size <- parts[, seq_len(m), drop = FALSE]
  for (k in seq_along(split$part)[-seq_len(m)]) size[, split$part[k]] <- size[, split$part[k]] + parts[, k]
  list(sum = join_parts(parts, split, m), size = size, bound = out$bound)
}

# Where single precision is worth trying for a direct sum, and nothing stands against it.
may_be_lower <- function(problem) {
  limits <- kernel_limits()
  problem$rel_error >= limits[["single_error"]] && !problem$log && !problem$bandwidth$full &&
    problem$kernel != "polynomial" &&
    of_sheet(problem$kernel, "single") != "NEVER" &&
    as.double(nrow(problem$query)) * nrow(problem$reference) >= limits[["single_pairs"]] &&
    points_reach(problem$reference, problem$query) / min(problem$bandwidth$h, problem$bandwidth$scale) <=
      if (is.null(problem$bandwidth$scale)) 1e15 else 1e6
}

# Errors of each query and column. Not outer(), whose product wakes the threads of BLAS, for some milliseconds.
error_of <- function(bound, total) matrix(rep(total, each = length(bound)) * bound, length(bound), length(total))

# A walk that is less work than direct sums in single precision, or these where they keep their bound; NULL where
# neither is so, or where sums that take the place of the walk are not direct ones on the CPU.
walk_or_lower <- function(problem, plan) {
  directly <- identical(plan$otherwise$method, "direct") && plan$otherwise$chosen$name == "cpu"
  if (!directly || !may_be_lower(problem)) return(NULL)
  plan$budget <- kernel_limits()[["single_share"]] * plan$budget
  kernel_walk(problem, plan) %||% kernel_lower(problem, plan$otherwise)
}

# A direct sum on the CPU in single precision, queries that miss their bound in double; NULL where that does not pay, as
# eight groups of queries show. Queries keep their order where bounds of groups are small enough without a tree.
kernel_lower <- function(problem, plan) {
  if (!may_be_lower(problem)) return(NULL)
  chosen <- plan$chosen %||% direct_backend(problem)
  if (chosen$name != "cpu") return(NULL)
  total <- colSums(abs(weights_of(problem)))
  missed <- function(out) {
    error <- error_of(out$bound, total)
    allowed <- problem$rel_error * pmax(out$size - error, 0) + problem$abs_error
    rowSums(!is.finite(out$sum) | error > allowed) > 0
  }
  reference <- native_points(problem$reference, problem)
  share_missed <- function(order) { # of eight groups
    groups <- round(seq(0, length(order) - 64, length.out = 8))
    mean(missed(single_sums(problem, chosen, order[rep(groups, each = 64) + 1:64], reference = reference)))
  }
  order <- seq_len(nrow(problem$query))
  query <- if (problem$self) reference else native_points(problem$query, problem)
  if (!is.null(plan$trees) || share_missed(order) > kernel_limits()[["single_missed_unsorted"]]) {
    query <- (plan$trees %||% native_trees(problem, only_query = TRUE))$query
    order <- query$order + 1L
    if (share_missed(order) > kernel_limits()[["single_missed"]]) return(NULL)
  }
  out <- single_sums(problem, chosen, order, query = query, reference = reference)
  again <- missed(out)
  sums <- out$sum
  if (any(again)) sums[again, ] <- sums_in_double(problem, order[again])
  out$sum[order, ] <- sums
  list(sum = out$sum, method = "direct", backend = "cpu",
       effort = effort_of(as.double(nrow(sums)) * nrow(problem$reference), repeated = sum(again)),
       reason = sprintf("%s; in single precision, %d queries in double", plan$reason, sum(again)))
}

# Of some queries, which leave themselves out where queries do.
sums_in_double <- function(problem, some) {
  split <- split_weights(problem)
  query <- native_points(problem$query[some, , drop = FALSE], problem)
  task <- native_task(problem, query, native_points(problem$reference, problem), split)
  if (problem$leave_one_out) task$own <- some - 1L
  join_parts(.Call(C_weft_kernel_direct, task, problem$control)$sum, split, NCOL(problem$weights))
}
