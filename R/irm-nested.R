# Nested groups with degrees of the nodes' own (src/irm/cpu/nested): arguments, description lengths, rates and levels.

most_nested <- 1024 # groups, by default
nested_levels <- 7  # as in src/irm/cpu/nested/levels.h

check_degrees <- function(degrees) {
  if (identical(degrees, "compare")) return(degrees)
  if (is_flag(degrees)) return(isTRUE(degrees))
  abort_input("`degrees` must be TRUE, FALSE or \"compare\".", x = paste0("It is ", describe(degrees), "."))
}

# The description length is of the whole graph, not a sum over pairs.
why_all_pairs <- "The model describes all links of a node together. With `degrees = FALSE`, pairs may be missing."

check_nested <- function(family, degrees, missing, control) {
  if (!is.null(missing)) {
    abort_input("`missing` must not be given with `degrees`, which needs all pairs observed.",
                x = paste0("It is ", describe(missing), "."),
                i = c(why_all_pairs, "Use `hold_out` to measure the prediction of links."))
  }
  if (family == "gaussian") {
    abort_input("`degrees` must be FALSE for real values.", x = paste0("It is ", describe(degrees), "."),
                i = "Only links and counts have degrees.")
  }
  if (identical(degrees, "compare") && !is.null(control$checkpoint)) {
    abort_input("`checkpoint` must not be given with `degrees = \"compare\"`, which runs twice.",
                x = paste0("It is ", describe(control$checkpoint), "."))
  }
}

need_all_pairs <- function(graph) {
  if (!length(graph$missing$to)) return(invisible())
  abort_input("`x` must not have missing values with `degrees`, which needs all pairs observed.",
              x = sprintf("It has %d.", length(graph$missing$to)), i = why_all_pairs)
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

nested_length <- function(graph, row, col, most, upper, degrees, run = NULL) {
  one_mode <- graph$kind != "bipartite"
  .Call(C_weft_irm_nested_length, native_graph(graph),
        list(row = row, col = if (one_mode) integer() else col, upper = upper, clusters = as.double(most),
             degrees = degrees), run_control("cpu", run$threads, FALSE))
}

# Whether the groups gain less than log(20) nats over a single one of each mode.
nested_worth_nothing <- function(job, run) {
  n <- run_nodes(job)
  one <- -nested_length(job$graph, integer(n[1L]), integer(n[2L]), job$model$max_clusters, NULL, job$model$degrees, run)
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

# Degrees of the nodes: list(row, col), of a directed graph out and in, of an undirected one the same twice.
graph_degrees <- function(graph) {
  links <- list_pairs(graph$links)
  weight <- as.double(graph$links$weight %||% rep(1, length(links$from)))
  sums <- function(at, n) as.double(tapply(weight, factor(at, seq_len(n)), sum, default = 0))
  out <- list(row = sums(links$from, graph$links$n_row), col = sums(links$to, graph$links$n_col))
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
