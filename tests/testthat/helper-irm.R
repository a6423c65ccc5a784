# Exact posteriors of tiny graphs by going through all partitions, in plain R; independent of the package's code.

# All partitions of n nodes, one per row, labels by first appearance.
all_partitions <- function(n) {
  grow <- function(z) if (length(z) == n) list(z) else unlist(lapply(seq_len(max(z, 0) + 1), function(l) grow(c(z, l))),
                                                              FALSE)
  do.call(rbind, grow(integer()))
}

ref_log_crp <- function(z, alpha) {
  sizes <- tabulate(z)
  length(sizes) * log(alpha) + sum(lgamma(sizes)) + lgamma(alpha) - lgamma(alpha + length(z))
}

# log p(partition) under sticks truncated at k: the sum over all ways to label the clusters.
ref_log_sticks <- function(z, alpha, k) {
  sizes <- tabulate(z)
  if (length(sizes) > k) return(-Inf)
  labelled <- as.matrix(expand.grid(rep(list(seq_len(k)), length(sizes))))
  labelled <- labelled[apply(labelled, 1, function(l) !anyDuplicated(l)), , drop = FALSE]
  log(sum(apply(labelled, 1, function(l) {
    n <- replace(numeric(k), l, sizes)
    above <- rev(cumsum(rev(n))) - n
    use <- seq_len(k - 1)
    exp(sum(lbeta(1 + n[use], alpha + above[use]) - lbeta(1, alpha)))
  })))
}

# log p(A | partitions); `seen` FALSE where a pair does not count.
ref_log_likelihood <- function(A, z, w, beta, family = "bernoulli", seen = !is.na(A), type = "bipartite",
                               self = FALSE) {
  if (type != "bipartite" && !self) diag(seen) <- FALSE
  if (type == "undirected") {
    seen[lower.tri(seen)] <- FALSE
    swap <- outer(z, w, ">")
  } else {
    swap <- matrix(FALSE, nrow(A), ncol(A))
  }
  block <- ifelse(swap, outer(z, w, function(l, m) paste(m, l)), outer(z, w, paste))
  if (family == "gaussian") {
    A <- A - mean(A[seen])
    scale <- sqrt(mean(A[seen]^2))
    A <- A / scale
  }
  total <- 0
  for (b in unique(block[seen])) {
    x <- A[seen & block == b]
    total <- total + if (family == "gaussian") ref_log_t(x, beta) - length(x) *
      log(scale) else if (family == "poisson") {
      lgamma(beta[1] + sum(x)) - lgamma(beta[1]) + beta[1] * log(beta[2]) - (beta[1] + sum(x)) *
        log(beta[2] + length(x)) -
        sum(lfactorial(x))
    } else {
      lbeta(beta[1] + sum(x), beta[2] + sum(1 - x)) - lbeta(beta[1], beta[2])
    }
  }
  total
}

# Values with a normal mean of the precision that all have, which has a gamma law: a multivariate t.
ref_log_t <- function(x, beta) {
  n <- length(x)
  spread <- beta[2] / beta[1] * (diag(n) + 1)
  lgamma(beta[1] + n / 2) - lgamma(beta[1]) - n / 2 * log(2 * beta[1] * pi) - determinant(spread)$modulus[[1]] / 2 -
    (beta[1] + n / 2) * log1p(drop(x %*% solve(spread, x)) / (2 * beta[1]))
}

# The posterior over pairs of partitions: probabilities named by both ("11212 121"); one-mode: by one.
exact_posterior <- function(A, alpha = c(1, 1), beta = c(1, 1), k = NULL, type = "bipartite", ...) {
  prior <- function(z, mode) if (is.null(k)) ref_log_crp(z, alpha[mode]) else ref_log_sticks(z, alpha[mode], k)
  rows <- all_partitions(nrow(A))
  row_prior <- apply(rows, 1, prior, mode = 1)
  name <- function(z) paste(z, collapse = "")
  if (type != "bipartite") {
    value <- row_prior + apply(rows, 1, function(z) ref_log_likelihood(A, z, z, beta, type = type, ...))
    names(value) <- apply(rows, 1, name)
  } else {
    cols <- all_partitions(ncol(A))
    col_prior <- apply(cols, 1, prior, mode = 2)
    both <- expand.grid(r = seq_len(nrow(rows)), c = seq_len(nrow(cols)))
    value <- row_prior[both$r] + col_prior[both$c] +
      mapply(function(r, c) ref_log_likelihood(A, rows[r, ], cols[c, ], beta, ...), both$r, both$c)
    names(value) <- paste(apply(rows, 1, name)[both$r], apply(cols, 1, name)[both$c])
  }
  p <- exp(value - max(value))
  p / sum(p)
}

# Frequencies of the sampled pairs of partitions, one column per chain.
sampled_posterior <- function(fit, states) {
  trace <- fit$run$trace
  name <- function(x) apply(x + 1L, 2:3, paste, collapse = "")
  seen <- name(trace$row_samples)
  if (fit$type == "bipartite") seen[] <- paste(seen, name(trace$col_samples))
  stopifnot(all(seen %in% states))
  apply(seen, 2, function(s) tabulate(match(s, states), length(states)) / length(s))
}

# Every state's mean frequency over independent chains lies within `z` standard errors of its probability; the error has
# a floor, the binomial error of half of the sweeps, for states that few chains saw.
expect_posterior <- function(fit, exact, z = 5.5, label = "posterior") {
  seen <- sampled_posterior(fit, names(exact))
  n <- ncol(seen)
  error <- sqrt(pmax(apply(seen, 1, stats::var) / n, exact * (1 - exact) * 2 / (n * nrow(fit$log_posterior))))
  score <- ifelse(error > 0, (rowMeans(seen) - exact) / error, 0)
  testthat::expect_lt(max(abs(score)), z, label = paste(label, names(exact)[which.max(abs(score))]))
  invisible(score)
}

# Tiny graphs of every kind: arguments of irm(), which exact_posterior() takes too. `missing` pairs are NA.
exact_cases <- function() {
  graph <- rbind(c(1, 0, 1, 0), c(1, 0, 0, 1), c(0, 1, 1, 0), c(1, 0, 0, 0))
  counts <- rbind(c(3, 0, 1), c(2, 1, 0), c(0, 0, 5))
  both_ways <- 1 * (graph | t(graph))
  table <- rbind(c(1, 1, 0), c(1, 1, 0), c(0, 0, 1), c(0, 1, 1))
  a <- c(2, 0.5)
  b <- c(0.3, 1.7)
  without <- function(A, rows, cols) replace(A, cbind(rows, cols), NA)
  list(
    bipartite = list(table),
    "bipartite, missing" = list(without(table, c(1, 4), c(2, 1)), alpha = a, beta = b),
    "bipartite, counts" = list(counts, beta = b, family = "poisson"),
    "bipartite, counts, missing" = list(without(counts, 2:3, c(1, 3)), alpha = a, family = "poisson"),
    directed = list(graph, type = "directed"),
    "directed, self, missing" = list(without(graph, c(1, 3), c(2, 3)), type = "directed", self = TRUE, alpha = c(2, 2),
                                     beta = b),
    "directed, counts, missing" = list(without(counts, 1, 3), type = "directed", beta = b, family = "poisson"),
    undirected = list(both_ways, type = "undirected", alpha = c(0.5, 0.5)),
    "undirected, self, missing" = list(without(both_ways, c(1, 3, 2), c(3, 1, 2)), type = "undirected", self = TRUE,
                                       beta = b),
    "undirected, counts" = list(counts + t(counts), type = "undirected", self = TRUE, alpha = c(2, 2),
                                family = "poisson")
  )
}

# Both samplers of every case on the CPU, on a device what runs there: 16 chains of `sweeps`; sticks are cut at 3, with
# fewer clusters than nodes.
expect_exact <- function(backend, sweeps) {
  cases <- exact_cases()
  if (backend == "cuda") cases <- cases[startsWith(names(cases), "bipartite")]
  for (name in names(cases)) {
    for (sampler in c("blocked", if (backend == "cpu") "collapsed")) {
      for (split in if (name == "bipartite, missing") c(0, 2) else 2) {
        k <- if (sampler == "blocked") 3
        fit <- suppressWarnings(call_with(irm, c(cases[[name]], list(
          sampler = sampler, max_clusters = k, split_merge = split, chains = 16, sweeps = sweeps, thin = 1, burn_in = 0,
          seed = 11,
          backend = backend))), "weft_warning_truncation")
        testthat::expect_identical(fit$backend, backend)
        expect_posterior(fit, do.call(exact_posterior, c(cases[[name]], list(k = k))),
                         label = paste(backend, name, sampler, split))
      }
    }
  }
}
