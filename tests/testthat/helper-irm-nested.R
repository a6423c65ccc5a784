# Description lengths of nested groups in plain R, after the formulas of Peixoto (2017), and exact posteriors of tiny
# graphs: sums over all partitions of the nodes, of the groups, and so on.

# Number of partitions of e into at most n parts, by its recursion.
ref_parts <- function(e, n) {
  if (e == 0) return(1)
  if (n == 0 || e < 0) return(0)
  ways <- c(1, numeric(e))
  for (part in seq_len(n)) {
    for (sum in seq_len(e)) if (sum >= part) ways[sum + 1] <- ways[sum + 1] + ways[sum - part + 1]
  }
  ways[e + 1]
}

ref_multisets <- function(n, x) ifelse(x == 0, 0, lchoose(n + x - 1, x))

ref_partition <- function(b, type) {
  sum(vapply(split(b, type), function(z) {
    n <- length(z)
    sizes <- as.vector(table(z))
    lchoose(n - 1, length(sizes) - 1) + lfactorial(n) - sum(lfactorial(sizes)) + log(n)
  }, 0))
}

# A: counts between nodes; undirected: symmetric, with twice the self links. Links between groups.
ref_block_links <- function(A, b) {
  g <- outer(sort(unique(b)), b, "==") * 1
  g %*% A %*% t(g)
}

ref_level_zero <- function(A, b, directed, degrees) {
  e <- ref_block_links(A, b)
  n <- as.vector(table(b))
  out <- rowSums(e)
  length <- if (directed) -sum(lfactorial(e)) + sum(lfactorial(A)) else {
    half <- diag(e) / 2
    own <- diag(A) / 2
    -sum(lfactorial(e[upper.tri(e)])) - sum(lfactorial(half) + half * log(2)) + sum(lfactorial(A[upper.tri(A)])) +
      sum(lfactorial(own) + own * log(2))
  }
  ends <- function(sums, k) {
    if (!degrees) return(sum(sums * log(n)))
    each <- vapply(seq_along(n), function(r) {
      log(ref_parts(sums[r], n[r])) + lfactorial(n[r]) - sum(lfactorial(table(k[b == sort(unique(b))[r]])))
    }, 0)
    sum(lfactorial(sums)) + sum(each) - sum(lfactorial(k))
  }
  length + ends(out, rowSums(A)) + if (directed) ends(colSums(e), colSums(A)) else 0
}

ref_upper_level <- function(e, b, directed) {
  sums <- ref_block_links(e, b)
  n <- as.vector(table(b))
  pairs <- outer(n, n)
  if (directed) return(sum(ref_multisets(pairs, sums)))
  up <- upper.tri(sums)
  sum(ref_multisets(pairs[up], sums[up])) + sum(ref_multisets(n * (n + 1) / 2, diag(sums) / 2))
}

# Partitions of nodes that do not mix types, with at most `most` groups of each.
ref_partitions <- function(type, most) {
  z <- all_partitions(length(type))
  ok <- apply(z, 1, function(b) all(tapply(type, b, function(x) length(unique(x))) == 1) &&
                all(tapply(b, type, function(x) length(unique(x))) <= most[sort(unique(type))]))
  z[ok, , drop = FALSE]
}

log_sum <- function(x) max(x) + log(sum(exp(x - max(x))))

# -log Σ exp(-length) over all ways to fill the levels from `level` on; `most`: limits of each level, the last the top.
ref_upper <- function(e, type, level, most, directed) {
  if (level > length(most)) return(0)
  z <- ref_partitions(type, most[[level]])
  -log_sum(-apply(z, 1, function(b) {
    first <- match(sort(unique(b)), b)
    ref_partition(b, type) + ref_upper_level(e, b, directed) +
      ref_upper(ref_block_links(e, b), type[first], level + 1, most, directed)
  }))
}

# log p over partitions of the nodes (of a bipartite graph, rows and then columns), named by their labels, without the
# constant that normalises it. `limits`: the most groups of each type.
nested_values <- function(A, kind, limits, degrees = TRUE) {
  n <- nrow(A)
  type <- rep(1L, n)
  if (kind == "bipartite") {
    type <- rep(1:2, dim(A))
    n <- sum(dim(A))
    A <- rbind(cbind(matrix(0, nrow(A), nrow(A)), A), cbind(t(A), matrix(0, ncol(A), ncol(A))))
  } else if (kind == "undirected") {
    A <- A + diag(diag(A), n)
  }
  directed <- kind == "directed"
  most <- c(Reduce(function(k, level) ceiling(k / 2), 1:4, limits, accumulate = TRUE), list(c(1, 1)))
  z <- ref_partitions(type, limits)
  value <- apply(z, 1, function(b) {
    first <- match(sort(unique(b)), b)
    -ref_partition(b, type) - ref_level_zero(A, b, directed, degrees) -
      ref_upper(ref_block_links(A, b), type[first], 1, most, directed)
  })
  names(value) <- apply(z, 1, paste, collapse = "")
  value
}

exact_nested <- function(A, kind, limits) {
  value <- nested_values(A, kind, limits)
  exp(value - log_sum(value))
}

# The posterior where the pairs `hidden` (row, column) were not observed: sums over their counts from 0 to `most`, with
# a geometric prior of the number of links. list(partitions, means of the hidden counts).
exact_masked <- function(A, kind, limits, hidden, most, degrees = TRUE) {
  n <- nrow(A)
  with_counts <- function(x) {
    A[hidden] <- x
    if (kind == "undirected") A[hidden[, 2:1, drop = FALSE]] <- x
    A
  }
  links <- function(A) sum(if (kind == "undirected") A[upper.tri(A, TRUE)] else A)
  pairs <- if (kind == "undirected") n * (n + 1) / 2 else length(A)
  mean <- max(1, links(with_counts(0))) * pairs / (pairs - nrow(hidden))
  counts <- as.matrix(expand.grid(rep(list(0:most), nrow(hidden))))
  value <- apply(counts, 1, function(x) {
    full <- with_counts(x)
    nested_values(full, kind, limits, degrees) + links(full) * log(mean / (1 + mean))
  })
  all <- log_sum(value)
  list(partitions = exp(apply(value, 1, log_sum) - all),
       means = colSums(counts * exp(apply(value, 2, log_sum) - all)))
}

# A degree-corrected graph: groups z, rates within and between them, and propensities theta.
planted_degrees <- function(z, theta, within, between) {
  rate <- outer(theta, theta) * ifelse(outer(z, z, "=="), within, between)
  A <- matrix(rpois(length(rate), rate), length(z))
  A[lower.tri(A, TRUE)] <- 0
  1 * (A + t(A) > 0)
}
