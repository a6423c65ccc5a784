# How many clusters a run allows, and what it says when they were too few. With n nodes and concentration α the Chinese restaurant
# process has Σ_i α / (α + i), i < n, clusters on average.
#
# Blocked sampler, K sticks: partitions change only where two nodes or more lie beyond the first K - 1 sticks, two of them apart. What
# is left of the stick there, R, has moments E R^j = (α / (α + j))^(K - 1), so that the total variation is at most
#
#   min(n E R, n (n - 1) / 2 · α / (1 + α) · E R²)
#
# Collapsed sampler: at most K clusters. Their number is a sum of independent 0 or 1, for which Bernstein's inequality holds.

truncation_goal <- 1e-3 # of the default
most_labels <- 65536    # a device keeps labels in 16 bits
most_blocks <- 2^22     # by default, from the blocked sampler
full_share <- 0.05      # of the sweeps after the burn-in
full_sweeps <- 10       # below these nothing is said: chains start from many clusters

expected_clusters <- function(alpha, n) ifelse(n > 0, pmin(n, alpha * (digamma(alpha + n) - digamma(alpha))), 0)

truncation_error <- function(alpha, n, k, sampler) {
  if (sampler == "collapsed") {
    mean <- expected_clusters(alpha, n)
    more <- k + 1 - mean
    return(ifelse(k >= n, 0, ifelse(more <= 0, 1, exp(-more^2 / (2 * (mean + more / 3))))))
  }
  one <- n * exp(-(k - 1) * log1p(1 / alpha))
  two <- n * (n - 1) / 2 * alpha / (1 + alpha) * exp(-(k - 1) * log1p(2 / alpha))
  pmin(1, one, two)
}

clusters_needed <- function(alpha, n, sampler, error = truncation_goal) {
  if (sampler == "collapsed") {
    nats <- -log(error)
    return(pmin(n, ceiling(expected_clusters(alpha, n) + nats / 3 + sqrt(nats^2 / 9 + 2 * expected_clusters(alpha, n) * nats))))
  }
  one <- log(n / error) / log1p(1 / alpha)
  two <- log(n * (n - 1) / 2 * alpha / (1 + alpha) / error) / log1p(2 / alpha)
  ifelse(n > 1, 1 + ceiling(pmax(0, pmin(one, two))), n)
}

# The limits, how many random clusters chains start from, and the sampler: list(clusters, start, sampler). `any_sampler`: the user
# chose none.
most_clusters <- function(max_clusters, nodes, init, prior, sampler, any_sampler) {
  if (!is.null(max_clusters)) {
    k <- check_pair(max_clusters, "max_clusters", 1)
    if (any(k != round(k)) || any(k > most_labels)) {
      abort_input("`max_clusters` must be whole numbers from 1 to 65536.", x = sprintf("It is %s.", toString(k)))
    }
    k <- k * (nodes > 0)
    return(list(clusters = k, start = k, sampler = sampler))
  }
  alpha <- prior_alpha(prior)
  given <- vapply(c("row", "col"), function(mode) if (is.list(init) && is.atomic(init[[mode]])) length(unique(init[[mode]])) else 0L, 0L,
                  USE.NAMES = FALSE)
  start <- pmin(512, pmax(20, ceiling(2 * sqrt(nodes))))
  least <- pmax(start, 2 * given)
  k <- pmax(least, clusters_needed(alpha, nodes, sampler)) * (nodes > 0)
  if (sampler == "blocked" && prod(k[c(1L, if (nodes[2L] > 0) 2L else 1L)]) > most_blocks) {
    if (any_sampler) sampler <- "collapsed"
    k <- pmax(least, if (any_sampler) clusters_needed(alpha, nodes, sampler) else pmin(k, sqrt(most_blocks)))
  }
  list(clusters = pmin(k, most_labels) * (nodes > 0), start = least * (nodes > 0), sampler = sampler)
}

# A sampled alpha's prior mean.
prior_alpha <- function(prior) if (prior$sample_alpha) rep(prior$hyper[1L] / prior$hyper[2L], 2L) else prior$alpha

# The share of the sweeps after the burn-in in which more clusters might have been, by mode; NA where nothing can be said.
share_full <- function(fit) {
  trace <- fit$run$trace
  after <- sweeps_after(fit)
  most <- fit$run$model$max_clusters
  modes <- if (fit$type == "bipartite") c("row", "col") else "row"
  vapply(stats::setNames(nm = modes), function(mode) {
    if (length(after) < full_sweeps || most[match(mode, c("row", "col"))] == 1) return(NA_real_)
    mean(trace[[paste0(mode, "_full")]][after, ])
  }, 0)
}

sweeps_after <- function(fit) seq.int(fit$burn_in + 1, length.out = fit$run$done - fit$burn_in)

warn_truncated <- function(fit) {
  share <- share_full(fit)
  for (mode in names(share)[!is.na(share) & share > full_share]) {
    at <- match(mode, c("row", "col"))
    n <- length(fit[[paste0(mode, "_cluster")]])
    k <- fit$run$model$max_clusters[at]
    alpha <- mean(fit$run$trace$alpha[sweeps_after(fit), at, ])
    nodes <- if (fit$type != "bipartite") "nodes" else c("rows", "columns")[at]
    weft_warn("truncation", sprintf("`max_clusters` = %.0f must be larger for the %s: there might have been more in %.0f %% of the sweeps.", k, nodes,
                                    100 * share[[mode]]),
              i = sprintf("At alpha = %.3g, %d %s have %.1f clusters on average, before their links are known; %.0f do for these, %.0f are off by up to %.2g.",
                          alpha, n, nodes, expected_clusters(alpha, n), clusters_needed(alpha, n, fit$sampler), k,
                          truncation_error(alpha, n, k, fit$sampler)))
  }
}
