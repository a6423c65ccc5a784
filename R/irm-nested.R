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

# Blocks of observed links with the expected ones of masked pairs.
with_masked <- function(blocks, masked, z, w, kind) {
  sum <- rowsum(masked$mean, z[masked$from] + nrow(blocks$links) * w[masked$to])
  at <- as.numeric(rownames(sum)) + 1
  add <- replace(0 * blocks$links, at, sum)
  if (kind == "undirected") add <- add + t(add) - diag(diag(add), nrow(add))
  blocks$links <- blocks$links + add
  blocks
}

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

# Degrees of the nodes: list(row, col), of a directed graph out and in, of an undirected one the same twice. Masked
# pairs count with their means.
graph_degrees <- function(graph, masked) {
  links <- list_pairs(graph$links)
  weight <- c(as.double(graph$links$weight %||% rep(1, length(links$from))), masked$mean)
  sums <- function(at, n) as.double(tapply(weight, factor(at, seq_len(n)), sum, default = 0))
  out <- list(row = sums(c(links$from, masked$from), graph$links$n_row),
              col = sums(c(links$to, masked$to), graph$links$n_col))
  if (graph$kind == "undirected") out$row <- out$col <- out$row + out$col
  out
}

# Mean and shape of the rates of pairs (row, col) of one partition, labels from 0. A block's links e have a rate from an
# exponential prior with the mean of all blocks, and a node's share of its group's ends is Dirichlet(1, ..., 1).
nested_rates <- function(graph, z, w, row, col, blocks, degree) {
  e <- blocks$links
  if (graph$kind == "undirected") diag(e) <- 2 * diag(e)
  mean <- max(sum(e) / length(e), 1e-300)
  share <- function(z, degree, i) {
    n <- tabulate(z + 1L)
    if (is.null(degree)) return(1 / n[z[i] + 1L])
    sums <- as.double(tapply(degree, factor(z, seq_along(n) - 1L), sum, default = 0))
    (degree[i] + 1) / (sums + n)[z[i] + 1L]
  }
  size <- e[cbind(z[row], w[col]) + 1L] + 1
  list(mean = size * mean / (1 + mean) * share(z, degree$row, row) * share(w, degree$col, col), size = size)
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
