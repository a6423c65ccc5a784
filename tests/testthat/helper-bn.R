# Independent references for the Bayesian-network tests: scores from tables, all graphs, all orders.

# Factors along a chain with side links; node `wide` has 100 levels, node a one level that never occurs.
bn_test_data <- function(n = 150, wide = FALSE, seed = 1) {
  withr::local_seed(seed)
  a <- sample(1:3, n, TRUE)
  b <- ifelse(stats::runif(n) < 0.7, a, sample(1:3, n, TRUE))
  c <- ifelse(stats::runif(n) < 0.7, (b > 1) + 1, sample(1:2, n, TRUE))
  d <- ifelse(stats::runif(n) < 0.6, (a + c) %% 2 + 1, sample(1:2, n, TRUE))
  e <- sample(1:2, n, TRUE)
  x <- data.frame(a = factor(a, 1:4), b = factor(b, 1:3), c = factor(c, 1:2), d = factor(d, 1:2), e = factor(e, 1:2))
  if (wide) x$wide <- factor(sample(1:100, n, TRUE), 1:100)
  x
}

# Binary columns, each a noisy copy of an earlier one or free.
linked_bn_data <- function(p, n, noise = 0.2, seed = p) {
  withr::local_seed(seed)
  x <- matrix(sample(0:1, n * p, TRUE), n)
  for (j in seq_len(p)[-1L]) {
    copied <- stats::runif(n) >= noise
    x[copied, j] <- x[copied, sample(j - 1, 1L)]
  }
  as.data.frame(x)
}

# Eight columns, the first two alike and the others free.
twin_bn_data <- function() {
  x <- linked_bn_data(8, 60, 1, seed = 4)
  x$V2 <- x$V1
  x
}

# Σ_{t < n} ln(a + t), by its definition.
slow_rising <- function(a, n) vapply(n, function(k) sum(log(a + seq_len(k) - 1)), 0)

reference_score <- function(data, node, parents, score, ess = 1, rows = seq_len(nrow(data))) {
  x <- data[rows, , drop = FALSE]
  r <- nlevels(data[[node]])
  q <- prod(vapply(parents, function(p) nlevels(data[[p]]), 0L))
  configuration <- if (length(parents)) do.call(paste, x[parents]) else rep("", nrow(x))
  counts <- table(configuration, x[[node]])
  totals <- rowSums(counts)
  switch(score,
    bic = , aic = sum(ifelse(counts > 0, counts * log(counts / totals),
                             0)) - q * (r - 1) * if (score == "aic") 1 else log(nrow(x)) / 2,
    {
      alpha <- switch(score, bdeu = ess / (q * r), k2 = 1, bds = ess / (length(totals) * r))
      sum(slow_rising(alpha, counts)) - sum(slow_rising(r * alpha, totals))
    })
}

# ln p(rows of the members) in the units of the data: BGe by Kuipers, Moffa and Heckerman (2014), with alpha_mu = 1,
# alpha_w = p + 2, prior means and a diagonal scale matrix from the means and variances of all rows.
reference_gauss_joint <- function(x, members, rows) {
  l <- length(members)
  if (!l) return(0)
  n <- length(rows)
  all <- as.matrix(x[members])
  y <- all[rows, , drop = FALSE]
  df <- 2 + l # that of the prior with p nodes, alpha_w, less p - l
  prior <- diag(1 / 2 * apply(all, 2L, stats::var), l)
  gap <- colMeans(y) - colMeans(all)
  posterior <- prior + (n - 1) * stats::var(y) + n / (n + 1) * outer(gap, gap)
  log_multigamma <- function(a) l * (l - 1) / 4 * log(pi) + sum(lgamma(a + (1 - seq_len(l)) / 2))
  -l * n / 2 * log(pi) - l / 2 * log(n + 1) + log_multigamma((df + n) / 2) - log_multigamma(df / 2) +
    df / 2 * log(det(prior)) - (df + n) / 2 * log(det(posterior))
}

# The score of standardised columns: each row's density is greater by the standard deviation of the node.
reference_bge <- function(x, node, parents, rows = seq_len(nrow(x))) {
  reference_gauss_joint(x, c(parents, node), rows) - reference_gauss_joint(x, parents, rows) +
    length(rows) * log(stats::sd(x[[node]]))
}

split_parents <- function(x) strsplit(x, ";", fixed = TRUE)[[1L]]

# All graphs of p nodes as a list of parent masks (p columns), by filtering all choices of parent sets.
all_dags <- function(p) {
  masks <- lapply(seq_len(p), function(i) setdiff(0:(2^p - 1),
                                                  Filter(function(m) bitwAnd(m, 2^(i - 1)) > 0, 0:(2^p - 1))))
  grid <- as.matrix(expand.grid(masks))
  closed <- matrix(0L, nrow(grid), 1L) # nodes placed so far
  for (step in seq_len(p)) {
    for (i in seq_len(p)) closed <- bitwOr(closed, 2^(i - 1) * (bitwAnd(grid[, i], closed) == grid[, i]))
  }
  grid[closed == 2^p - 1, , drop = FALSE]
}

count_orders <- function(dags) {
  p <- ncol(dags)
  ways <- matrix(0, nrow(dags), 2^p)
  ways[, 1L] <- 1
  for (s in 0:(2^p - 1)) for (i in seq_len(p)) {
    bit <- 2^(i - 1)
    if (bitwAnd(s, bit)) next
    fits <- bitwAnd(dags[, i], s) == dags[, i]
    ways[, s + bit + 1] <- ways[, s + bit + 1] + ifelse(fits, ways[, s + 1], 0)
  }
  ways[, 2^p]
}

# Scores of every (node, parent mask) of a table with `keep = "all"`.
mask_scores <- function(scores) {
  p <- length(scores$nodes)
  out <- matrix(-Inf, p, 2^p)
  for (i in seq_len(p)) for (k in (scores$start[i] + 1):scores$start[i + 1]) {
    members <- scores$parents[scores$parents[, k] > 0, k]
    out[i, sum(2^(members - 1)) + 1] <- scores$score[k]
  }
  out
}

# The log score of every graph.
graph_scores <- function(scores, dags) {
  local <- mask_scores(scores)
  rowSums(vapply(seq_along(scores$nodes), function(i) local[i, dags[, i] + 1], double(nrow(dags))))
}

# Exact edge posteriors by summing over all graphs, weighted by their orders when `over` is "order".
enumerated_edges <- function(scores, dags, over) {
  p <- length(scores$nodes)
  total <- graph_scores(scores, dags)
  if (over == "order") total <- total + log(count_orders(dags))
  weight <- exp(total - max(total))
  edges <- matrix(0, p, p, dimnames = list(from = scores$nodes, to = scores$nodes))
  for (u in seq_len(p)) for (v in seq_len(p)) edges[u, v] <- sum(weight[bitwAnd(dags[, v], 2^(u - 1)) > 0]) /
    sum(weight)
  list(edges = edges, log_total = max(total) + log(sum(weight)), best = max(total))
}

# Logarithm of the sum over all graphs by layers: `f` has, for the nodes within the layers so far and the last of them,
# the weight of the graphs; a node of the next layer has a parent in the last. Every term is positive. `weight`: p x 2^p
# by mask, at most about 1.
layered_total <- function(weight) {
  p <- nrow(weight)
  masks <- 0:(2^p - 1)
  sums <- t(weight) # over subsets
  for (bit in 2^(seq_len(p) - 1)) {
    with <- masks[bitwAnd(masks, bit) > 0] + 1
    sums[with, ] <- sums[with, ] + sums[with - bit, ]
  }
  f <- vector("list", 2^p)
  for (inside in order(vapply(masks, function(m) sum(bitwAnd(m, 2^(seq_len(p) - 1)) > 0), 0)) - 1) {
    last <- if (inside) masks[masks > 0 & bitwAnd(masks, inside) == masks] else 0
    so_far <- if (inside) f[[inside + 1]][last] else 1
    add <- function(layer, from, product) {
      if (layer) f[[inside + layer + 1]][layer] <<- sum(product * so_far)
      for (v in seq(from, length.out = max(0, p + 1 - from))) {
        if (bitwAnd(inside, 2^(v - 1))) next
        fresh <- sums[inside + 1, v] - if (inside) sums[inside - last + 1, v] else 0
        add(layer + 2^(v - 1), v + 1, product * fresh)
      }
    }
    add(0, 1, rep(1, length(last)))
  }
  log(sum(f[[2^p]], na.rm = TRUE))
}

# An edge's probability is what is missing when its sets have no weight.
slow_graph_posterior <- function(scores, edges = which(diag(length(scores$nodes)) == 0, arr.ind = TRUE),
                                 total_of = layered_total) {
  p <- length(scores$nodes)
  local <- mask_scores(scores)
  best <- apply(local, 1L, max)
  weight <- exp(local - best)
  total <- total_of(weight)
  posterior <- matrix(0, p, p, dimnames = list(from = scores$nodes, to = scores$nodes))
  for (k in seq_len(nrow(edges))) {
    without <- weight
    without[edges[k, 2L], bitwAnd(0:(2^p - 1), 2^(edges[k, 1L] - 1)) > 0] <- 0
    posterior[edges[k, 1L], edges[k, 2L]] <- -expm1(total_of(without) - total)
  }
  list(edges = posterior, log_total = total + sum(best))
}

# Numbers (b, d, f) and categories (a, c, e): a category decides means and slopes of numbers.
mixed_bn_data <- function(n = 200, seed = 1) {
  withr::local_seed(seed)
  a <- sample(3, n, TRUE)
  c <- ifelse(stats::runif(n) < 0.7, (a > 1) + 1, sample(2, n, TRUE))
  b <- c(-1, 0, 2)[a] + stats::rnorm(n)
  d <- c(1, -1)[c] * b + stats::rnorm(n, sd = c(0.5, 1)[c])
  data.frame(a = factor(a, 1:3), b = b, c = factor(c("no", "yes")[c]), d = 1000 * d, e = factor(sample(2, n, TRUE)),
             f = d + stats::rnorm(n))
}

# The conditional Gaussian score by its definition: the density of each row, with the variance of lm().
reference_mixed <- function(data, node, parents, score = "bic-cg", rows = seq_len(nrow(data))) {
  x <- data[rows, , drop = FALSE]
  penalty <- if (score == "bic-cg") log(nrow(x)) / 2 else 1
  numbers <- parents[vapply(data[parents], is.double, NA)]
  categories <- setdiff(parents, numbers)
  if (!is.double(data[[node]])) {
    if (length(numbers)) return(-Inf)
    return(reference_score(data, node, parents, sub("-cg", "", score), rows = rows))
  }
  parts <- if (length(categories)) split(x, x[categories], drop = TRUE) else list(x)
  density <- vapply(parts, function(part) {
    if (nrow(part) <= length(numbers) + 1) return(-Inf)
    fit <- stats::lm(stats::reformulate(if (length(numbers)) numbers else "1", node), part)
    if (all(abs(stats::resid(fit)) < 1e-7 * stats::sd(data[[node]]))) return(-Inf)
    sum(stats::dnorm(part[[node]], stats::fitted(fit), summary(fit)$sigma, log = TRUE))
  }, 0)
  q <- prod(vapply(categories, function(p) nlevels(data[[p]]), 0L))
  sum(density) - penalty * q * (length(numbers) + 2)
}
