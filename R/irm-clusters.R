# How many clusters a run allows, and what it says when they were too few. With n nodes and concentration α the Chinese
# restaurant process has Σ_i α / (α + i), i < n, clusters on average.
#
# Blocked sampler, K sticks: partitions change only where two nodes or more lie beyond the first K - 1 sticks, two of
# them apart. What is left of the stick there, R, has moments E R^j = (α / (α + j))^(K - 1), so that the total
# variation is at most
#
#   min(n E R, n (n - 1) / 2 · α / (1 + α) · E R²)
#
# Collapsed sampler: at most K clusters. Their number is a sum of independent 0 or 1, for which Bernstein's inequality
# holds.

truncation_goal <- 1e-3 # of the default
most_labels <- 65536    # a device keeps labels in 16 bits
most_blocks <- 2^22     # by default, from the blocked sampler
most_start <- 512       # random clusters, by default
full_share <- 0.05      # of the sweeps after the burn-in
full_sweeps <- 10       # with fewer after the burn-in chains may not have left the many clusters that they start from

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
    mean <- expected_clusters(alpha, n)
    return(pmin(n, ceiling(mean + nats / 3 + sqrt(nats^2 / 9 + 2 * mean * nats))))
  }
  one <- log(n / error) / log1p(1 / alpha)
  two <- log(n * (n - 1) / 2 * alpha / (1 + alpha) / error) / log1p(2 / alpha)
  ifelse(n > 1, 1 + ceiling(pmax(0, pmin(one, two))), n)
}

# The limits, how many random clusters chains start from, and the sampler: list(clusters, start, sampler).
# `any_sampler`: the user chose none.
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
  init <- unclass(init)
  given <- vapply(c("row", "col"), function(mode) {
    if (is.list(init) && is.atomic(init[[mode]])) length(unique(init[[mode]])) else 0L
  }, 0L, USE.NAMES = FALSE)
  start <- pmin(most_start, pmax(20, ceiling(2 * sqrt(nodes))))
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

# By mode: the limit, the share of the sweeps after the burn-in in which more clusters might have been (NA for a limit
# of one, which was asked for), how many such sweeps there are, and what the limit was before it was raised.
limits_of <- function(job) {
  burn_in <- job$burn_in %||% (job$done %/% 2)
  after <- seq.int(burn_in + 1, length.out = job$done - burn_in)
  modes <- if (job$graph$kind == "bipartite") c("row", "col") else "row"
  limit <- job$model$max_clusters[seq_along(modes)]
  full <- vapply(modes, function(mode) mean(job$trace[[paste0(mode, "_full")]][after, ]), 0)
  alpha <- vapply(seq_along(modes), function(at) mean(job$trace$alpha[after, at, ]), 0)
  as_frame(list(mode = modes, limit = limit, full = unname(ifelse(limit == 1, NA, full)),
                first = job$first_limits[seq_along(modes)], alpha = alpha, sweeps = rep(length(after), length(modes))))
}

is_reached <- function(limits) !is.na(limits$full) & limits$full > full_share

# Twice the limits that were reached, where the user gave none; NULL when none is to be raised.
larger_limits <- function(job) {
  if (!job$grows) return(NULL)
  limits <- limits_of(job)
  nodes <- run_nodes(job)
  k <- job$model$max_clusters
  raise <- which(is_reached(limits) & limits$sweeps >= full_sweeps)
  k[raise] <- pmin(2 * k[raise], most_labels)
  blocks <- prod(k[c(1L, if (nodes[2L] > 0) 2L else 1L)])
  if (identical(k, job$model$max_clusters) || (job$sampler == "blocked" && blocks > most_blocks)) return(NULL)
  k
}

# The run from its beginning, with other limits.
run_again <- function(job, limits, run) {
  job$model$max_clusters <- limits
  alpha <- if (job$model$sample_alpha) c(1, 1) else job$state$alpha[1:2]
  beta <- if (job$model$sample_beta) c(1, 1) else job$state$beta[1:2]
  start <- pmin(limits, pmax(most_start, job$first_limits))
  job$state <- start_state(job$graph, job$init, job$model, job$chains, list(alpha = alpha, beta = beta), start, run)
  job$done <- 0
  job["trace"] <- list(NULL)
  job
}

mode_nodes <- function(type, at) if (type == "bipartite") c("rows", "columns")[at] else "nodes"

# What print() and summary() say of the limits.
limit_notes <- function(limits, type) {
  nodes <- mode_nodes(type, seq_len(nrow(limits)))
  raised <- sprintf("The limit of %.0f clusters of %s was reached, so the analysis was repeated with a limit of %.0f.",
                    limits$first, nodes, limits$limit)
  reached <- sprintf(paste("The limit of %.0f clusters of %s was reached in %.0f %% of the sweeps:",
                           "do not interpret their number. Use a larger `max_clusters`%s."),
                     limits$limit, nodes, 100 * limits$full,
                     ifelse(limits$sweeps < full_sweeps, ", or more `sweeps`", ""))
  c(raised[limits$limit > limits$first], reached[is_reached(limits)])
}

warn_truncated <- function(fit) {
  limits <- fit$limits
  for (at in which(is_reached(limits) & limits$sweeps >= full_sweeps)) {
    n <- length(fit[[paste0(limits$mode[at], "_cluster")]])
    nodes <- mode_nodes(fit$type, at)
    k <- limits$limit[at]
    alpha <- limits$alpha[at]
    error <- truncation_error(alpha, n, k, fit$sampler)
    why <- if (error > truncation_goal) sprintf("a limit of %.0f changes this by up to %.2g", k, error)
           else "the links require more"
    weft_warn("truncation",
              sprintf(paste("`max_clusters` (%.0f) must be larger for the %s: the limit was reached in %.0f %%",
                            "of the sweeps after `burn_in`."), k, nodes, 100 * limits$full[at]),
              i = sprintf(paste("With alpha = %.3g, the prior mean for %d %s is %.1f clusters;",
                                "%s. Omit `max_clusters`, or try %.0f."),
                          alpha, n, nodes, expected_clusters(alpha, n), why,
                          max(2 * k, clusters_needed(alpha, n, fit$sampler))))
  }
}
