# From a finished run to what users see: partitions, their agreement, and held-out prediction.

coassignment_limit <- 2000L

irm_result <- function(job, call, started, run = NULL) {
  graph <- job$graph
  one_mode <- graph$kind != "bipartite"
  n <- c(graph$links$n_row, graph$links$n_col)
  names <- list(row = graph$row_names, col = if (one_mode) graph$row_names else graph$col_names)
  chain <- which.max(job$state$best)
  best <- chain_labels(job, "best_")
  row <- by_size(best$row[, chain], names$row)
  col <- if (one_mode) row else by_size(best$col[, chain], names$col)
  alpha <- matrix(job$state$alpha, 4L)[3:4, chain]
  beta <- matrix(job$state$beta, 4L)[3:4, chain]
  blocks <- irm_blocks(graph, row - 1L, col - 1L, run)
  nested <- job$model$nested
  flat <- if (nested) nested_worth_nothing(job, run)
          else worth_nothing(blocks, graph$kind, job$family, row, col, alpha, beta)
  values <- graph$values
  if (any(flat)) {
    if (flat[["row"]]) row[] <- 1L
    if (flat[["col"]]) col[] <- 1L
    blocks <- irm_blocks(graph, row - 1L, col - 1L, run)
  }
  burn_in <- job$burn_in %||% (job$done %/% 2)
  after <- seq.int(burn_in + 1, length.out = job$done - burn_in)
  samples <- kept_samples(job, burn_in)
  modes <- if (one_mode) "row" else c("row", "col")
  together <- lapply(stats::setNames(nm = modes), function(mode) coassignment(samples[[mode]], names[[mode]]))
  consensus <- lapply(stats::setNames(nm = modes), function(mode) {
    if (flat[[mode]]) return(by_size(rep(1L, nrow(best[[mode]])), names[[mode]]))
    by_size(consensus_partition(samples[[mode]], best[[mode]], together[[mode]]), names[[mode]])
  })
  certainty <- lapply(stats::setNames(nm = modes), function(mode) node_certainty(consensus[[mode]], samples[[mode]]))
  counts <- lapply(stats::setNames(nm = modes), function(mode) {
    seen <- as.integer(job$trace[[paste0(mode, "_clusters")]][after, ])
    counts <- tabulate(seen)
    stats::setNames(counts[counts > 0L] / length(seen), which(counts > 0L))
  })
  both <- function(x) if (one_mode) list(row = x$row, col = x$row) else x
  fit <- new_result(class = "weft_irm", list(
    row_cluster = row, col_cluster = col, log_posterior = with_best(job$trace$log_posterior, job$state$best),
    n_clusters = both(counts), consensus = both(consensus), certainty = both(certainty),
    coassignment = both(together),
    eta = if (is.null(values)) block_mean(blocks, job$family, beta) else real_mean(blocks, values),
    links = if (is.null(values)) blocks$links else values[1L] * blocks$pairs + values[2L] * blocks$links,
    pairs = blocks$pairs,
    sd = if (!is.null(values)) real_sd(blocks, beta, values),
    levels = if (nested) nested_tree(job, chain, any(flat), names), degrees = job$model$degrees,
    nmi = chain_agreement(best, modes, job$model$key), rhat = chain_rhat(job$trace, after, modes),
    alpha = alpha[seq_along(modes)],
    beta = beta, auc = NA_real_, log_loss = NA_real_, held_out = job$held, limits = limits_of(job),
    type = graph$kind, family = job$family, sampler = job$sampler, burn_in = burn_in, backend = job$backend,
    reason = job$reason, call = call, run = job
  ))
  if (!is.null(job$held)) fit[c("auc", "log_loss")] <- held_out_scores(fit, run)
  fit$run$seconds <- job$seconds + proc.time()[[3L]] - started
  fit$run[c("checkpoint", "save_every")] <- NULL
  fit$run$graph["prepared"] <- NULL
  fit
}

# A partition that is better than the sample it was reached from takes the place of its chain's best sample.
with_best <- function(trace, best) {
  for (chain in which(best > apply(trace, 2L, max))) trace[which.max(trace[, chain]), chain] <- best[chain]
  trace
}

# Whether the clusters of a mode, or of both, gain less than log(20) nats over a single one: the evidence for them is
# then too weak for them to be reported. In graphs without structure some partition always happens to be a little
# better.
worth_nothing <- function(blocks, kind, family, row, col, alpha, beta) {
  f <- function(links, pairs, squares = NULL) {
    if (family == "gaussian") return(real_score(list(links = links, pairs = pairs, squares = squares), beta))
    if (family == "poisson") {
      return(sum(lgamma(beta[1L] + links) - lgamma(beta[1L]) + beta[1L] * log(beta[2L]) -
                 (beta[1L] + links) * log(beta[2L] + pairs)))
    }
    sum(lbeta(beta[1L] + links, beta[2L] + pairs - links) - lbeta(beta[1L], beta[2L]))
  }
  crp <- function(z, alpha, flat) {
    sizes <- if (flat) length(z) else tabulate(z)
    length(sizes) * log(alpha) + sum(lgamma(sizes))
  }
  if (kind != "bipartite") {
    once <- if (kind == "undirected") upper.tri(blocks$links, diag = TRUE) else TRUE
    now <- f(blocks$links[once], blocks$pairs[once]) + crp(row, alpha[1L], FALSE)
    one <- f(sum(blocks$links[once]), sum(blocks$pairs[once])) + crp(row, alpha[1L], TRUE)
    return(c(row = one > now - log(20), col = one > now - log(20)))
  }
  value <- function(flat_row, flat_col) {
    merged <- function(x) {
      if (flat_row) x <- rowsum(x, rep(1, max(row)))
      if (flat_col) t(rowsum(t(x), rep(1, max(col)))) else x
    }
    squares <- if (!is.null(blocks$squares)) merged(blocks$squares)
    f(merged(blocks$links), merged(blocks$pairs), squares) + crp(row, alpha[1L], flat_row) +
      crp(col, alpha[2L], flat_col)
  }
  now <- value(FALSE, FALSE)
  if (value(TRUE, TRUE) > now - log(20)) return(c(row = TRUE, col = TRUE))
  alone <- c(row = value(TRUE, FALSE), col = value(FALSE, TRUE))
  alone > now - log(20) & alone == max(alone)
}

# Matrices n x chains, labels from 1.
chain_labels <- function(job, prefix = "") {
  lapply(stats::setNames(nm = c("row", "col")), function(mode) {
    matrix(job$state[[paste0(prefix, mode)]] + 1L, ncol = job$chains)
  })
}

# Labels from 1 by size, ties by first appearance.
by_size <- function(z, names = NULL) {
  seen <- unique(z)
  sizes <- tabulate(match(z, seen), length(seen))
  out <- match(match(z, seen), order(-sizes))
  names(out) <- names
  out
}

irm_blocks <- function(graph, row, col, run = NULL) {
  .Call(C_weft_irm_blocks, native_graph(graph), native_partition(row, col), run_control("cpu", run$threads, FALSE))
}

block_mean <- function(blocks, family, beta) {
  if (family == "poisson") return((blocks$links + beta[1L]) / (blocks$pairs + beta[2L]))
  (blocks$links + beta[1L]) / (blocks$pairs + beta[1L] + beta[2L])
}

# list(row, col): one column per kept sweep after the burn-in, chain after chain; which sweep and chain: attributes.
kept_samples <- function(job, burn_in) {
  at <- seq_len(job$done %/% job$thin) * job$thin
  use <- which(at > burn_in)
  lapply(list(row = job$trace$row_samples, col = job$trace$col_samples), function(x) {
    x <- x[, use, , drop = FALSE]
    structure(matrix(x, dim(x)[1L]), sweep = rep(at[use], job$chains),
              chain = rep(seq_len(job$chains), each = length(use)))
  })
}

coassignment <- function(samples, names) {
  n <- nrow(samples)
  if (n > coassignment_limit || ncol(samples) == 0L) return(NULL)
  out <- matrix(0, n, n, dimnames = if (!is.null(names)) list(names, names))
  if (n <= 30L) { # a pass over all samples for each node; of many nodes the clusters are fewer than the pairs
    for (i in seq_len(n)) out[i, ] <- rowMeans(samples == rep(samples[i, ], each = n))
    return(out)
  }
  for (s in seq_len(ncol(samples))) {
    for (together in split(seq_len(n), samples[, s])) out[together, together] <- out[together, together] + 1
  }
  out / ncol(samples)
}

# The candidate of least mean variation of information from the samples. Candidates: the samples, the chains' best, all
# in one cluster, and cuts of a tree of co-assignments. together: those of all samples, where they are known.
consensus_partition <- function(samples, best, together = NULL) {
  if (ncol(samples) == 0L) return(best[, 1L])
  n <- nrow(samples)
  most <- max(4, min(60, floor(sqrt(2e8 / n))))
  if (ncol(samples) > most) together <- NULL
  some <- function(x) x[, unique(round(seq(1, ncol(x), length.out = min(ncol(x), most)))), drop = FALSE]
  samples <- some(samples) + 1L
  candidates <- distinct_columns(cbind(rep(1L, n), best, samples))
  if (n <= 500L && n > 2L) {
    together <- together %||% coassignment(samples, NULL)
    tree <- stats::hclust(stats::as.dist(1 - together), "average")
    candidates <- distinct_columns(cbind(candidates, stats::cutree(tree, k = seq_len(min(n, max(samples) + 1L)))))
  }
  of_samples <- own_entropies(samples)
  loss <- apply(candidates, 2L, function(z) {
    z <- match(z, unique(z))
    mean(2 * joint_entropies(z, samples) - own_entropies(cbind(z)) - of_samples)
  })
  candidates[, which.min(loss)]
}

# How far samples agree with a consensus about each node: the nodes that its cluster there and its cluster in a sample
# share over those in either, averaged over samples. NA without samples.
node_certainty <- function(consensus, samples) {
  z <- unname(consensus)
  size <- tabulate(z)[z]
  use <- unique(round(seq(1, ncol(samples), length.out = min(ncol(samples), 200L))))
  if (!ncol(samples)) use <- integer()
  total <- numeric(length(z))
  for (s in use) {
    w <- samples[, s] + 1L
    code <- as.double(z) * max(w) + w
    both <- match(code, seen <- unique(code))
    common <- tabulate(both, length(seen))[both]
    total <- total + common / (size + tabulate(w)[w] - common)
  }
  stats::setNames(if (length(use)) total / length(use) else rep(NA_real_, length(z)), names(consensus))
}

distinct_columns <- function(x) {
  columns <- lapply(seq_len(ncol(x)), function(j) x[, j])
  x[, !duplicated(columns), drop = FALSE]
}

# NMI of all pairs of chains, and the same with one of the two shuffled.
chain_agreement <- function(best, modes, key) {
  chains <- ncol(best$row)
  if (chains < 2L) {
    none <- rep(NA_real_, length(modes))
    return(as_frame(list(mode = modes, nmi = none, sd = none, chance = none)))
  }
  pairs <- utils::combn(chains, 2L)
  if (ncol(pairs) > 50L) pairs <- pairs[, 1:50]
  rows <- lapply(modes, function(mode) {
    z <- best[[mode]]
    nmi <- apply(pairs, 2L, function(p) irm_nmi(z[, p[1L]], z[, p[2L]]))
    keys <- matrix(draws("uniform", nrow(z) * ncol(pairs), key = key, stream = 2^31 + 11), nrow(z))
    chance <- vapply(seq_len(ncol(pairs)), function(k) irm_nmi(z[, pairs[1L, k]], z[order(keys[, k]), pairs[2L, k]]), 0)
    data.frame(mode = mode, nmi = mean(nmi), sd = stats::sd(nmi), chance = mean(chance))
  })
  do.call(rbind, rows)
}

# Potential scale reduction of halves of chains (Gelman and others 2013); 1 where nothing varies, NA where it is not
# defined: in short runs, and where nothing varies within halves that differ.
split_rhat <- function(x) {
  half <- nrow(x) %/% 2L
  if (half < 2L) return(NA_real_)
  x <- cbind(x[seq_len(half), , drop = FALSE], x[nrow(x) - half + seq_len(half), , drop = FALSE])
  within <- mean(apply(x, 2L, stats::var))
  between <- stats::var(colMeans(x))
  if (within == 0) return(if (between == 0) 1 else NA_real_)
  sqrt((half - 1) / half + between / within)
}

chain_rhat <- function(trace, after, modes) {
  take <- function(x) matrix(as.double(x[after, ]), ncol = ncol(x))
  out <- c(log_posterior = split_rhat(take(trace$log_posterior)), row_clusters = split_rhat(take(trace$row_clusters)))
  if ("col" %in% modes) out[["col_clusters"]] <- split_rhat(take(trace$col_clusters))
  out
}

# ---- holding out ----

# Indices from 1 of a list by row, which may be a damaged fit's.
list_pairs <- function(edges, real = FALSE) {
  check_irm_edges(edges, "run$graph$links", needs("The fit"), real = real)
  list(from = rep.int(seq_len(edges$n_row), diff(edges$start)), to = edges$to + 1L)
}

# A share of the links and as many observed pairs without a link: data frame row, col, count.
hide_pairs <- function(graph, share, key) {
  links <- list_pairs(graph$links)
  n <- length(links$from)
  if (n == 0) abort_input("`hold_out` needs a graph with links.", x = "It has none.")
  hidden <- max(1L, round(share * n))
  at <- order(draws("uniform", n, key = key, stream = 2^31 + 3))[seq_len(hidden)]
  at <- at[order(links$from[at], links$to[at])]
  none <- random_non_links(graph, links, hidden, key)
  data.frame(row = c(links$from[at], none$from), col = c(links$to[at], none$to),
             count = c(if (is.null(graph$links$weight)) rep(1L, hidden) else graph$links$weight[at],
                       rep(0L, length(none$from))))
}

random_non_links <- function(graph, links, wanted, key) {
  shape <- c(graph$links$n_row, graph$links$n_col)
  unseen <- list_pairs(graph$missing)
  code <- function(from, to) (as.double(from) - 1) * shape[2L] + to - 1
  taken <- c(code(links$from, links$to), code(unseen$from, unseen$to))
  undirected <- graph$kind == "undirected"
  possible <- if (graph$kind == "bipartite") prod(shape) else shape[1L] * (shape[1L] - !graph$self)
  if (undirected) possible <- possible / 2 + if (graph$self) shape[1L] / 2 else 0
  wanted <- min(wanted, possible - length(taken))
  if (length(taken) > 0.9 * possible) return(free_pairs(graph, shape, taken, wanted, key)) # few draws would be free
  found <- numeric()
  first <- 0
  while (length(found) < wanted) {
    n <- 2 * (wanted - length(found)) + 100
    from <- 1 + draws("below", n, a = shape[1L], key = key, stream = 2^31 + 4, first = first)
    to <- 1 + draws("below", n, a = shape[2L], key = key, stream = 2^31 + 5, first = first)
    first <- first + n
    if (undirected) {
      turned <- pmin(from, to)
      to <- pmax(from, to)
      from <- turned
    }
    new <- code(from, to)[graph$kind == "bipartite" | graph$self | from != to]
    found <- utils::head(unique(c(found, new[!new %in% taken])), wanted)
  }
  pairs_of(found, shape)
}

pairs_of <- function(code, shape) {
  list(from = as.integer(code %/% shape[2L]) + 1L, to = as.integer(code %% shape[2L]) + 1L)
}

# The same from a list of all free pairs.
free_pairs <- function(graph, shape, taken, wanted, key) {
  all <- seq_len(prod(shape)) - 1
  at <- pairs_of(all, shape)
  if (graph$kind == "undirected") all <- all[at$from < at$to | (graph$self & at$from == at$to)]
  else if (graph$kind == "directed" && !graph$self) all <- all[at$from != at$to]
  free <- all[!all %in% taken]
  pairs_of(free[order(draws("uniform", length(free), key = key, stream = 2^31 + 4))[seq_len(wanted)]], shape)
}

# The graph with more pairs missing.
without_pairs <- function(graph, held) {
  form <- list(shape = c(graph$links$n_row, graph$links$n_col), kind = graph$kind, self = graph$self)
  control <- run_control("cpu", 1L, FALSE)
  sorted <- function(pairs, weight, without) {
    sort_links(form, pairs$from, pairs$to, weight, without, control)
  }
  unseen <- list_pairs(graph$missing)
  graph$missing <- sorted(list(from = c(unseen$from, held$row), to = c(unseen$to, held$col)), NULL, NULL)
  graph$links <- sorted(list_pairs(graph$links), graph$links$weight, graph$missing)
  graph
}

held_out_scores <- function(fit, run) {
  held <- fit$held_out
  use <- each_sample(fit, held$row, held$col, function(links, pairs, beta, squares, rates) {
    if (!is.null(rates)) {
      p <- -expm1(-rates$mean)
      cbind(rates$mean, if (fit$family == "poisson") stats::dnbinom(held$count, size = rates$size, mu = rates$mean)
                        else ifelse(held$count > 0, p, 1 - p))
    } else if (fit$family == "poisson") {
      size <- beta[1L] + links
      cbind(size / (beta[2L] + pairs),
            stats::dnbinom(held$count, size = size, prob = (beta[2L] + pairs) / (beta[2L] + pairs + 1)))
    } else {
      p <- (links + beta[1L]) / (pairs + sum(beta))
      cbind(p, ifelse(held$count > 0, p, 1 - p))
    }
  }, run = run)
  mean_of <- Reduce(`+`, use) / length(use)
  link <- held$count > 0
  list(auc = if (any(link) && !all(link)) irm_auc(mean_of[, 1L], link) else NA_real_,
       log_loss = -mean(log(mean_of[, 2L])))
}

# f(links, pairs, beta, squares, rates) of the blocks that pairs (row, col) fall into, for each of at most `most`
# samples; `rates` are nested groups' and NULL otherwise.
each_sample <- function(fit, row, col, f, most = 100L, run = NULL) {
  job <- fit$run
  samples <- kept_samples(job, fit$burn_in)
  one_mode <- fit$type != "bipartite"
  if (ncol(samples$row) == 0L) samples <- list(row = cbind(unname(fit$row_cluster) - 1L),
                                               col = cbind(unname(fit$col_cluster) - 1L))
  use <- unique(round(seq(1, ncol(samples$row), length.out = min(most, ncol(samples$row)))))
  sweep <- attr(samples$row, "sweep")
  chain <- attr(samples$row, "chain")
  if (job$model$nested) return(each_nested_sample(fit, samples, use, row, col, f))
  graph <- prepare_graph(job$graph, run)
  on.exit(end_prepared(graph))
  lapply(use, function(s) {
    z <- samples$row[, s]
    w <- if (one_mode) z else samples$col[, s]
    blocks <- irm_blocks(graph, z, w, run)
    at <- cbind(z[row], w[col]) + 1L
    beta <- if (is.null(sweep)) fit$beta else job$trace$beta[sweep[s], , chain[s]]
    f(blocks$links[at], blocks$pairs[at], beta, blocks$squares[at], NULL)
  })
}

# Rates alone.
each_nested_sample <- function(fit, samples, use, row, col, f) {
  job <- fit$run
  masked <- if (length(job$graph$missing$to)) masked_links(job, fit$burn_in)
  pairs <- nested_pairs(job$graph, masked, fit$family == "poisson")
  lapply(use, function(s) {
    z <- samples$row[, s]
    expected <- expect_counts(pairs, z, if (fit$type == "bipartite") samples$col[, s] else z, job$model$degrees)
    pairs <<- expected$pairs
    f(NULL, NULL, NULL, NULL, rates_of(expected$rates, row, col))
  })
}
