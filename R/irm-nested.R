# Nested groups with degrees of the nodes' own (src/irm/cpu/nested): arguments, description lengths, rates and levels.

most_nested <- 1024 # groups, by default
nested_levels <- 7  # as in src/irm/cpu/nested/levels.h

check_degrees <- function(degrees) {
  if (identical(degrees, "compare")) return(degrees)
  if (is_flag(degrees)) return(isTRUE(degrees))
  abort_input("`degrees` must be TRUE, FALSE or \"compare\".", x = paste0("It is ", describe(degrees), "."))
}

check_nested <- function(family, degrees, control) {
  if (family == "gaussian") {
    abort_input("`degrees` must be FALSE for real values.", x = paste0("It is ", describe(degrees), "."),
                i = "Only links and counts have degrees.")
  }
  if (identical(degrees, "compare") && !is.null(control$checkpoint)) {
    abort_input("`checkpoint` must not be given with `degrees = \"compare\"`, which runs twice.",
                x = paste0("It is ", describe(control$checkpoint), "."))
  }
}

# ---- pairs that were not observed, whose links are drawn (src/irm/cpu/nested/masked.c) ----

most_masked <- 5e6     # their time is about a microsecond each, per sweep and chain
most_unknown <- 0.9    # of all pairs
most_expected <- 32    # blocks of sweeps over which their expected counts are summed

masked_pairs <- function(graph, model) if (model$nested) length(graph$missing$to) else 0

check_masked <- function(graph) {
  masked <- length(graph$missing$to)
  pairs <- all_pairs(graph)
  if (masked <= min(most_masked, most_unknown * pairs)) return(invisible())
  abort_input(sprintf("With `degrees`, at most %.0f pairs and %.0f %% of all may be missing or held out.", most_masked,
                      100 * most_unknown),
              x = sprintf("There are %d of %.0f.", masked, pairs),
              i = "The links of these pairs are drawn. With `degrees = FALSE`, any number of pairs may be missing.")
}

# Pairs that a graph may link.
all_pairs <- function(graph) {
  n <- c(graph$links$n_row, graph$links$n_col)
  if (graph$kind == "bipartite") return(prod(n))
  n[1L] * (n[1L] - 1) / (if (graph$kind == "undirected") 2 else 1) + n[1L] * graph$self
}

# The sweeps of a block after `done` sweeps.
expected_block <- function(done) 2^max(0, ceiling(log2(done / most_expected)))

# Sums of expected counts, a column for each block, with those of `piece` more sweeps.
add_expected <- function(old, new, job, piece) {
  masked <- masked_pairs(job$graph, job$model)
  block <- expected_block(job$done + piece)
  out <- matrix(0, masked, ceiling((job$done + piece) / block))
  add <- function(sums, first) {
    for (at in seq_len(ncol(sums))) out[, first[at]] <<- out[, first[at]] + sums[, at]
  }
  if (!is.null(old)) add(old, ((seq_len(ncol(old)) - 1) * expected_block(job$done)) %/% block + 1)
  start <- job$done %/% block + 1
  add(matrix(new, masked, ncol(out) - start + 1), seq.int(start, ncol(out)))
  out
}

# Posterior means of the masked pairs' counts, in the order of their list: over whole blocks after the burn-in.
masked_means <- function(job, burn_in) {
  sums <- job$trace$expected
  block <- expected_block(job$done)
  first <- min(ceiling(burn_in / block), ncol(sums) - 1)
  rowSums(sums[, seq.int(first + 1, ncol(sums)), drop = FALSE]) / ((job$done - first * block) * job$chains)
}

# Masked pairs with these: list(from, to, mean).
masked_links <- function(job, burn_in) c(list_pairs(job$graph$missing), list(mean = masked_means(job, burn_in)))

# As most_clusters() for the other priors.
nested_limits <- function(max_clusters, nodes, init) {
  given <- most_clusters(max_clusters, nodes, init, list(sample_alpha = FALSE, alpha = c(1, 1)), "collapsed", FALSE)
  if (is.null(max_clusters)) given$clusters <- pmax(pmin(nodes, most_nested, pmax(20, ceiling(4 * sqrt(nodes)))),
                                                    pmin(given$start, nodes))
  list(clusters = given$clusters, start = given$clusters, sampler = "nested")
}

# Labels of the levels above the groups that a chain has, for these limits, by level.
nested_sizes <- function(most) {
  first <- most[1L]
  second <- most[2L]
  sizes <- first + second
  for (level in seq_len(nested_levels - 2L)) {
    if (level > 1L) {
      first <- ceiling(first / 2)
      second <- ceiling(second / 2)
    }
    sizes <- c(sizes, first + second)
  }
  sizes
}

nested_words <- function(most) sum(nested_sizes(most))

# Runs with and without degrees, and keeps the one of the shorter description.
compare_degrees <- function(fit_with) {
  fits <- list(fit_with(TRUE), fit_with(FALSE))
  length <- -vapply(fits, function(fit) max(fit$log_posterior), 0)
  fit <- fits[[which.min(length)]]
  fit$compared <- as_frame(list(degrees = c(TRUE, FALSE), description_length = length))
  fit
}

# With masked pairs, an estimate: minus the log of the sum over all their counts.
nested_length <- function(graph, row, col, most, upper, degrees, run = NULL, key = c(0, 0)) {
  one_mode <- graph$kind != "bipartite"
  model <- list(poisson = !is.null(graph$links$weight), collapsed = FALSE, nested = TRUE, degrees = degrees,
                attempts = 0, sample_alpha = FALSE, sample_beta = FALSE, max_clusters = most, hyper = rep(1, 4),
                key = key)
  .Call(C_weft_irm_nested_length, native_graph(graph), native_model(model),
        list(row = row, col = if (one_mode) integer() else col, upper = upper), run_control("cpu", run$threads, FALSE))
}

# Whether the groups gain less than log(20) nats over a single one of each mode.
nested_worth_nothing <- function(job, run) {
  n <- run_nodes(job)
  one <- -nested_length(job$graph, integer(n[1L]), integer(n[2L]), job$model$max_clusters, NULL, job$model$degrees, run,
                        job$model$key)
  nothing <- one > max(job$state$best) - log(20)
  c(row = nothing, col = nothing)
}

# Labels of every node by level, a column each, numbered by size, down to a single group: list(row, col).
nested_tree <- function(job, chain, flat, names) {
  sizes <- nested_sizes(job$model$max_clusters)
  upper <- matrix(job$state$best_upper, ncol = job$chains)[, chain]
  at <- split(upper, rep(factor(seq_along(sizes)), sizes))
  codes <- list(row = matrix(job$state$best_row, ncol = job$chains)[, chain],
                col = matrix(job$state$best_col, ncol = job$chains)[, chain] + job$model$max_clusters[1L])
  lapply(stats::setNames(nm = if (job$graph$kind == "bipartite") c("row", "col") else "row"), function(mode) {
    z <- if (flat) codes[[mode]] * 0L else codes[[mode]]
    out <- cbind(by_size(z))
    for (level in at[-length(at)]) {
      z <- level[z + 1L]
      if (max(out[, ncol(out)]) == 1L) break
      if (length(unique(z)) < max(out[, ncol(out)])) out <- cbind(out, by_size(z))
    }
    if (max(out[, ncol(out)]) > 1L) out <- cbind(out, 1L)
    dimnames(out) <- list(names[[mode]], paste0("level_", seq_len(ncol(out))))
    out
  })
}

# ---- rates of pairs ----

# Pairs with links, masked pairs and pairs of a node with itself, with their counts. A link is a count of 1 or more
# where counts were not given: those counts (`link`) are unknown, and so are the links of a node with itself (`own`)
# in a graph that allows none. list(kind, size, from, to, count, link, own).
nested_pairs <- function(graph, masked, counts) {
  links <- list_pairs(graph$links)
  n <- length(links$from)
  own <- if (graph$kind == "bipartite" || graph$self) integer() else seq_len(graph$links$n_row)
  list(kind = graph$kind, size = c(graph$links$n_row, graph$links$n_col),
       from = c(links$from, masked$from, own), to = c(links$to, masked$to, own),
       count = c(as.double(graph$links$weight %||% rep(1, n)), masked$mean, numeric(length(own))),
       link = if (counts) integer() else seq_len(n), own = n + length(masked$mean) + seq_along(own))
}

sum_at <- function(x, at, n) {
  sums <- rowsum(x, at, reorder = FALSE)
  replace(numeric(n), as.integer(rownames(sums)), sums)
}

# Each node's part of the ends of its group's links; degree NULL: all nodes have the same. Labels from 0.
node_parts <- function(z, degree) {
  n <- tabulate(z + 1L)
  if (is.null(degree)) return(1 / n[z + 1L])
  (degree + 1) / (sum_at(degree, z + 1L, length(n)) + n)[z + 1L]
}

# Rates of one partition, labels from 0: a block's links have a rate from an exponential prior with the mean of all
# blocks, and the nodes' parts of their group's ends are Dirichlet(1, ..., 1). list(block, row, col).
nested_rates <- function(pairs, z, w, degrees) {
  undirected <- pairs$kind == "undirected"
  shape <- c(max(z), max(w)) + 1L
  block <- matrix(sum_at(pairs$count, z[pairs$from] + 1L + shape[1L] * w[pairs$to], prod(shape)), shape[1L])
  degree <- if (degrees) list(sum_at(pairs$count, pairs$from, pairs$size[1L]),
                              sum_at(pairs$count, pairs$to, pairs$size[2L]))
  if (undirected) {
    block <- block + t(block)
    if (degrees) degree[[1L]] <- degree[[2L]] <- degree[[1L]] + degree[[2L]]
  }
  list(block = block, row = node_parts(z, degree[[1L]]), col = node_parts(w, degree[[2L]]), z = z, w = w,
       undirected = undirected)
}

# Mean and shape of the rates of pairs (from, to).
rates_of <- function(rates, from, to) {
  mean <- max(mean(rates$block), 1e-300)
  size <- rates$block[cbind(rates$z[from], rates$w[to]) + 1L] + 1
  mean <- size * mean / (1 + mean) * rates$row[from] * rates$col[to]
  if (rates$undirected) mean <- mean / (1 + (from == to)) # both ends of such a link are the node's
  list(mean = mean, size = size)
}

most_rounds <- 30L     # of expectation and maximization for a partition; the next one goes on from its counts
enough_change <- 1e-4  # of all counts

# Pairs with the counts that their rates make one expect, and these rates: list(pairs, rates).
expect_counts <- function(pairs, z, w, degrees) {
  unknown <- c(pairs$link, pairs$own)
  for (round in seq_len(most_rounds)) {
    rates <- nested_rates(pairs, z, w, degrees)
    if (!length(unknown)) break
    mean <- rates_of(rates, pairs$from[unknown], pairs$to[unknown])$mean
    link <- seq_along(pairs$link)
    mean[link] <- ifelse(mean[link] < 1e-8, 1, mean[link] / -expm1(-mean[link])) # given that it is not 0
    change <- sum(abs(mean - pairs$count[unknown]))
    pairs$count[unknown] <- mean
    if (change <= enough_change * sum(pairs$count)) break
  }
  list(pairs = pairs, rates = rates)
}

# Mean and mean square of links, which are Poisson with gamma rates; as probabilities of a link where there is 0 or 1.
rate_moments <- function(rates, poisson) {
  mean <- rates$mean
  within <- mean^2 / rates$size
  if (!poisson) {
    within <- within * exp(-2 * mean)
    mean <- -expm1(-mean)
  }
  cbind(mean, within + mean^2)
}
