#' Co-cluster a graph: the infinite relational model
#'
#' @description
#' `irm()` groups the rows and the columns of a matrix at the same time: genes and samples, words and documents, or the
#' nodes of a graph. Links within a block (a row cluster by a column cluster) are equally likely; real values within a
#' block have the same mean and variance. You need not know the number of clusters.
#'
#' The shortest call is `irm(x)`. It returns the best partition (`row_cluster`, `col_cluster`), the link probability of
#' each block (`eta`), and the agreement between chains and between samples.
#'
#' `vignette("genes-by-samples")` explains graphs, real values, nested groups and results, and
#' `vignette("how-weft-computes")` explains the samplers and limits.
#'
#' @param x a matrix of 0 and 1, of counts or of real values, with NA for unobserved values; or an edge list (a data
#'   frame), an igraph object or a SummarizedExperiment. Links that no single object can contain are read in shards: see
#'   [irm_shards()].
#' @param type `"bipartite"`; or `"directed"` or `"undirected"` for a single partition, if rows and columns are the same
#'   nodes. The default is the type of an igraph object, otherwise bipartite.
#' @param family `"bernoulli"` for links, `"poisson"` for counts, `"gaussian"` for real values.
#' @param missing pairs that were not observed: a logical matrix, or two columns of indices or names. They take
#'   precedence over `x`. With nested groups, at most 5,000,000 pairs and 90 % of all; each takes a few microseconds per
#'   sweep and chain.
#' @param hold_out the proportion of links to hold out, with an equal number of non-links, to assess prediction; not for
#'   real values.
#' @param max_clusters the maximum number of clusters: one value or c(row, col). The default depends on the number of
#'   nodes and on `alpha`, and is increased if it is reached.
#' @param chains,sweeps the number of chains, and of sweeps per chain (including `burn_in`).
#' @param prior the priors: an object returned by [irm_prior()]. For graphs with hubs, set its argument
#'   `degrees = TRUE`.
#' @param control a list of settings that are rarely needed, such as `sampler`, `threshold` or `checkpoint`: see
#'   [`irm_control`].
#' @param seed a whole number; by default, it is drawn from R's generator.
#' @param run see [weft_run()]. A device draws the same labels as the CPU, with the blocked sampler on bipartite graphs
#'   of links or counts; everything else runs on the CPU.
#' @param ... not used; unknown arguments cause an error.
#' @return A list of class `weft_irm`:
#'   \item{row_cluster, col_cluster}{the best partition, numbered by size}
#'   \item{eta, links, pairs, sd}{for each block: posterior mean, links (or sum of real values), observed pairs, and for
#'     real values the standard deviation}
#'   \item{n_clusters, consensus, coassignment, certainty}{lists with `row` and `col`: posterior of the number of
#'     clusters; the partition closest to all samples; how often two nodes share a cluster; agreement between samples
#'     about the cluster of each node}
#'   \item{log_posterior, nmi, rhat}{convergence: sweeps x chains, as from [irm_log_posterior()]; agreement between the
#'     best partitions of chains, and its chance level; split R-hat}
#'   \item{auc, log_loss, held_out}{prediction of the pairs that were held out}
#'   \item{levels, degrees, compared}{results for nested groups, described in the vignette}
#'   \item{alpha, beta, limits, backend, reason}{the values of alpha and beta for the partition; the limits on the
#'     number of clusters, and how often they were reached; the back end and the reason for it}
#' @seealso [predict.weft_irm()], [plot.weft_irm()], [irm_words()], [irm_nmi()], [irm_sample()]
#' @export
#' @examples
#' high <- scale(mtcars) > 0 # above the mean or not
#' fit <- irm(high, sweeps = 60, seed = 1)
#' fit
#' split(names(fit$col_cluster), fit$col_cluster)
#' round(fit$eta, 2)
#' predict(fit, cbind("Fiat 128", "mpg"))
#'
#' irm(scale(mtcars), family = "gaussian", sweeps = 60, seed = 1)
irm <- function(x, type = NULL, family = c("bernoulli", "poisson", "gaussian"), missing = NULL, hold_out = 0,
                max_clusters = NULL, chains = 4, sweeps = 200, prior = irm_prior(), control = list(), seed = NULL,
                run = NULL, ...) {
  run <- as_run(run, ranks = TRUE, dry_run = TRUE)
  ranks <- join_ranks(run$ranks, "irm", c(each_rank, "x"), given = "checkpoint")
  control <- check_control(control, irm_control)
  started <- proc.time()[[3L]]
  check_dots(..., .control = irm_control, .known = irm_names_elsewhere,
             .inside = list(`prior = irm_prior` = names(formals(irm_prior))))
  need_args("x")
  family <- check_choice(family, irm_families, "family")
  any_sampler <- identical(control$sampler, irm_samplers)
  sampler <- check_choice(control$sampler, irm_samplers, "sampler")
  chains <- check_number(chains, "chains", min = 1, max = 1000, whole = TRUE)
  sweeps <- check_number(sweeps, "sweeps", min = 1, max = 1e8, whole = TRUE)
  hold_out <- check_number(hold_out, "hold_out", min = 0, max = 0.9)
  if (hold_out > 0 && family == "gaussian") {
    abort_input("`hold_out` must be 0 for real values.", x = sprintf("It is %g.", hold_out),
                i = "Use `missing =` to hide values and `predict()` to estimate them.")
  }
  burn_in <- if (!is.null(control$burn_in)) {
    check_number(control$burn_in, "burn_in", min = 0, max = sweeps - 1, whole = TRUE)
  }
  thin <- if (!is.null(control$thin)) check_number(control$thin, "thin", min = 1, max = longest_step, whole = TRUE)
  prior <- check_irm_prior(prior)
  if (!isFALSE(prior$degrees)) check_nested(family, prior$degrees, control)
  attempts <- check_attempts(control$split_merge)
  checkpoint <- check_path(control$checkpoint)
  checkpoint_sweeps <- check_number(control$checkpoint_sweeps, "checkpoint_sweeps", min = 1, max = longest_step,
                                    whole = TRUE)
  control$threads <- threads_for(run$threads)
  control["progress"] <- list(run$progress)
  graph <- irm_graph(x, type, family, missing, control)
  same_on_ranks(ranks, x = graph)
  shared <- list(key = irm_key(seed), problem = if (rank_part(ranks)[1L] == 0L) checkpoint_problem(checkpoint))
  if (!is.null(ranks)) shared <- ranks_gather(shared)[[1L]]
  stop_unwritable(checkpoint, shared$problem)
  key <- shared$key
  held <- if (hold_out > 0) hide_pairs(graph, hold_out, key)
  if (!is.null(held)) graph <- without_pairs(graph, held)
  if (!isFALSE(prior$degrees)) check_masked(graph)
  one_mode <- graph$kind != "bipartite"
  nodes <- c(graph$links$n_row, if (one_mode) 0 else graph$links$n_col)
  nested <- !isFALSE(prior$degrees)
  most <- if (nested) nested_limits(max_clusters, nodes, control$init)
          else most_clusters(max_clusters, nodes, control$init, prior, sampler, any_sampler)
  model <- c(prior[c("sample_alpha", "sample_beta", "hyper")], list(
    poisson = family == "poisson", collapsed = most$sampler == "collapsed", nested = nested,
    degrees = nested, max_clusters = most$clusters, attempts = attempts, key = key
  ))
  chosen <- choose_irm(run, graph, model, chains * sweeps)
  if (run$dry_run) return(dry_plan("irm", chosen))
  graph <- prepare_graph(graph, run)
  on.exit(end_prepared(graph), add = TRUE)
  job <- list(
    graph = graph, model = model, backend = chosen$name, reason = chosen$reason, family = family,
    sampler = most$sampler, held = held,
    chains = chains, done = 0, target = sweeps, burn_in = burn_in,
    thin = thin %||% max(5, ceiling(sum(nodes) / 1e5)), grows = is.null(max_clusters), first_limits = most$clusters,
    init = init_codes(control$init, nodes),
    checkpoint = checkpoint, save_every = checkpoint_sweeps, seconds = 0
  )
  fit_with <- function(degrees) {
    job$model$degrees <- degrees
    job$state <- start_state(graph, job$init, job$model, chains, prior, most$start, run)
    run_irm(job, call, started, run, ranks)
  }
  call <- match.call()
  if (identical(prior$degrees, "compare")) compare_degrees(fit_with) else fit_with(nested)
}

#' Rare settings of a co-clustering
#'
#' The entries of the list that [irm()] takes as `control`, for example
#' `irm(x, control = list(sampler = "collapsed", thin = 2))`.
#'
#' * `burn_in`: the number of initial sweeps to exclude from all averages; by default half of them.
#' * `thin`: keep the partition of every thin-th sweep for averages; by default 5, more for more than 500,000 nodes.
#' * `sampler`: `"blocked"` or `"collapsed"`; by default blocked, unless `alpha` is so large that it would need
#'   millions of blocks. Nested groups have a sampler of their own.
#' * `split_merge`: TRUE (30), FALSE, or the number of proposals per sweep and mode, at most 65,536; from the 61st
#'   sweep on a fifth of it. Unless it is FALSE, the first 10 sweeps of bipartite graphs also join clusters whose union
#'   is better. They are part of the start, so `burn_in` should be at least 10.
#' * `init`: list(row, col) of clusters to start all chains from. By default, a chain starts from `max_clusters` random
#'   nodes, each with the nodes that share the most neighbours with it; for real values, it starts from `max_clusters`
#'   random clusters.
#' * `self`: whether links of nodes to themselves count in one-mode graphs.
#' * `assay`, `threshold`: the assay of a SummarizedExperiment, and the value above which there is a link, which is also
#'   used for matrices.
#' * `dim`: the numbers of rows and columns of an edge list of indices, if the last ones may have no link.
#' * `checkpoint`: a file to save the run to every `checkpoint_sweeps` sweeps; [irm_resume()] continues from there.
#' * `checkpoint_sweeps`: 20 by default.
#'
#' @section Checkpoints: The file is written under another name in the same folder and then renamed, so it is always
#'   complete. Only a regular file or a symbolic link is replaced. If the file cannot be written, the function stops
#'   with an error before the run starts. If writing fails later, there is a warning (`weft_warning_checkpoint`), the
#'   run continues, and the next checkpoint tries again.
#'
#' @name irm_control
#' @seealso [irm()], [irm_prior()], [irm_resume()]
#' @examples
#' fit <- irm(scale(mtcars) > 0, sweeps = 40, seed = 1,
#'            control = list(sampler = "collapsed", burn_in = 10))
#' fit$n_clusters$col
NULL

irm_control <- function(burn_in = NULL, thin = NULL, sampler = c("blocked", "collapsed"), split_merge = TRUE,
                        init = NULL, self = FALSE, assay = NULL, threshold = NULL, dim = NULL, checkpoint = NULL,
                        checkpoint_sweeps = 20) as.list(environment())

#' Priors of a co-clustering
#'
#' @param alpha concentration of the Chinese restaurant processes, one value or c(row, col), or `"sample"`.
#' @param beta prior weight of links and non-links (counts: shape and rate; real values: shape and rate of the
#'   precision), or `"sample"`.
#' @param hyper gamma priors, shape and rate, of sampled `alpha` and `beta`, which stay between 1e-9 and 1e12.
#' @param degrees whether nodes have individual propensities, in nested groups: TRUE, FALSE or `"compare"`; see
#'   `vignette("genes-by-samples")`. The links of pairs that were not observed are then drawn in each sweep, and
#'   predictions are averages over these draws.
#' @return A list of class `weft_irm_prior` for [irm()].
#' @export
#' @examples
#' planted <- irm_sample(60, 40, k = 3, density = 0.3, seed = 1)
#' irm(planted$A, prior = irm_prior(alpha = "sample"), chains = 2, sweeps = 40, seed = 1)
#'
#' hubs <- matrix(rpois(60 * 40, outer(rexp(60), rexp(40)) * rep(c(1, 3), each = 30)), 60)
#' fit <- irm(hubs, family = "poisson", prior = irm_prior(degrees = TRUE),
#'            chains = 2, sweeps = 20, seed = 1)
#' plot(fit, "tree")
irm_prior <- function(alpha = 1, beta = c(1, 1), hyper = list(alpha = c(1, 1), beta = c(1, 1)), degrees = FALSE) {
  check_hyper(alpha, beta, hyper)
  structure(class = "weft_irm_prior",
            list(alpha = alpha, beta = beta, hyper = hyper, degrees = check_degrees(degrees)))
}

# ---- arguments ----

check_irm_prior <- function(prior) {
  if (inherits(prior, "weft_irm_prior") && is.list(prior)) {
    return(c(check_hyper(prior$alpha, prior$beta, prior$hyper), list(degrees = check_degrees(prior$degrees))))
  }
  abort_input("`prior` must be an object returned by `irm_prior()`.", x = paste0("It is ", describe(prior), "."))
}

# What the limit of clusters, the sweeps and others are called elsewhere. There is no argument for a number of clusters
# that is to be found: that is what the model is for.
irm_names_elsewhere <- c(
  A = "x", k = "max_clusters", K = "max_clusters", n_clusters = "max_clusters", nclusters = "max_clusters",
  centers = "max_clusters", iterations = "sweeps", iter = "sweeps", n_iter = "sweeps", niter = "sweeps",
  iter.max = "sweeps", nchains = "chains", n_chains = "chains", nstart = "chains", burnin = "burn_in",
  warmup = "burn_in", random_state = "seed", method = "sampler", model = "family", gpu = "backend", cores = "threads",
  ncores = "threads"
)
irm_families <- c("bernoulli", "poisson", "gaussian")
irm_samplers <- c("blocked", "collapsed")
most_sweeps <- 2^28 - 1 # of a chain: their numbers are the upper bits of a draw's index
longest_step <- 1e9
most_attempts <- 2^16
least_hyper <- 1e-9 # of alpha and beta: src/irm/cpu/collapsed.c
most_hyper <- 1e12

check_hyper <- function(alpha, beta, hyper = list()) {
  positive <- function(x, arg, n, many) {
    if (is.numeric(x) && length(x) %in% n && all(is.finite(x)) &&
        all(x >= 1e-6 & x <= 1e9)) return(rep_len(as.double(x), 2L))
    abort_input(sprintf("`%s` must be %s, from 1e-06 to 1e+09.", arg, many), x = paste0("It is ", describe(x), "."))
  }
  prior <- function(which) positive(hyper[[which]] %||% c(1, 1), paste0("hyper$", which), 2L,
                                    "two numbers, shape and rate")
  named <- is.list(hyper) && (!length(hyper) || !is.null(names(hyper)))
  if (!named || length(setdiff(names(hyper), c("alpha", "beta")))) {
    abort_input("`hyper` must be a list with `alpha` and `beta`.",
                x = if (named) paste0("It has ", label_some(names(hyper)), ".")
                    else paste0("It is ", describe(hyper), "."))
  }
  sampled <- c(identical(alpha, "sample"), identical(beta, "sample"))
  list(alpha = if (sampled[1L]) c(1, 1) else positive(alpha, "alpha", 1:2, "one number, c(row, col) or \"sample\""),
       beta = if (sampled[2L]) c(1, 1) else positive(beta, "beta", 2L, "two numbers or \"sample\""),
       sample_alpha = sampled[1L], sample_beta = sampled[2L], hyper = c(prior("alpha"), prior("beta")))
}

# Proposals per sweep and mode.
check_attempts <- function(split_merge) {
  if (is.logical(split_merge)) return(if (check_flag(split_merge, "split_merge")) 30 else 0)
  check_number(split_merge, "split_merge", min = 0, max = most_attempts, whole = TRUE)
}

check_path <- function(path) {
  if (is.null(path)) return(NULL)
  path <- bare_scalar(path)
  if (is_word(path) && nzchar(path)) return(as.vector(path))
  abort_input("`checkpoint` must be the name of a file.", x = paste0("It is ", describe(path), "."))
}

choose_irm <- function(run, graph, model, sweeps) {
  plan <- function() irm_run_plan(graph, model, sweeps, run$threads)
  stays <- plan()$stays
  if (is.null(stays)) choose_backend(run$backend, plan()) else cpu_only(run$backend, stays, plan())
}

# `sweeps`: of all chains.
irm_run_plan <- function(graph, model, sweeps = 1, threads = 1) {
  k <- model$max_clusters
  irm_plan("run", sweeps = sweeps, rows = graph$links$n_row, columns = graph$links$n_col,
           links = length(graph$links$to), k_rows = k[1L], k_columns = k[2L], collapsed = model$collapsed,
           one_mode = graph$kind != "bipartite", real = !is.null(graph$values), nested = model$nested,
           threads = threads)
}

# ---- starting ----

# The clusters to start from, labels from 0; NULL for random ones.
init_codes <- function(init, nodes) {
  if (is.null(init)) return(NULL)
  modes <- c("row", if (nodes[2L] > 0) "col")
  if (!is.list(init) || !all(modes %in% names(init))) {
    abort_input("`init` must be a list with `row` and, for bipartite graphs, `col`.",
                x = paste0("It is ", describe(init), "."))
  }
  list(row = cluster_codes(init$row, nodes[1L], "init$row"),
       col = if (nodes[2L] > 0) cluster_codes(init$col, nodes[2L], "init$col") else integer())
}

# `start`: how many clusters of each mode there are at most without `init`. Chains start from random nodes, each with
# those that have most in common with it (src/irm/cpu/start.c); of real values from random clusters.
start_state <- function(graph, init, model, chains, prior, start = model$max_clusters, run = NULL) {
  labels <- if (!is.null(init)) given_start(init, model$max_clusters, chains)
            else if (!is.null(graph$values)) random_start(start, model$key, chains, run_nodes(list(graph = graph)))
            else .Call(C_weft_irm_start, native_graph(graph),
                       native_model(if (model$nested) model else replace(model, "max_clusters", list(start))),
                       as.integer(chains),
                       run_control("cpu", run$threads, run$progress, NULL, "Finding clusters to start from"))
  upper <- if (!model$nested) integer() else labels$upper %||% integer(nested_words(model$max_clusters) * chains)
  list(row = labels$row, col = labels$col, alpha = rep(rep(prior$alpha, 2L), chains),
       beta = rep(rep(prior$beta, 2L), chains), best = rep(-Inf, chains), best_row = labels$row,
       best_col = labels$col, upper = upper, best_upper = upper,
       drawn = labels$drawn %||% integer(masked_pairs(graph, model) * chains))
}

random_start <- function(start, key, chains, nodes) {
  labels <- function(mode) as.integer(draws("below", nodes[mode] * chains, a = start[mode], key = key,
                                            stream = 2^31 + mode))
  list(row = labels(1L), col = labels(2L))
}

given_start <- function(init, most, chains) {
  for (mode in 1:2) {
    if (!length(init[[mode]]) || max(init[[mode]]) < most[mode]) next
    abort_input(sprintf("`init$%s` must have at most `max_clusters` clusters: %.0f.", c("row", "col")[mode],
                        most[mode]),
                x = sprintf("It has %d.", max(init[[mode]]) + 1L))
  }
  lapply(init, rep, chains)
}

# ---- running ----

# Runs to job$target sweeps, saving on the way, and makes the result.
run_irm <- function(job, call, started, run, ranks = NULL) {
  check_room(job)
  if (is.null(job$graph$prepared)) {
    job$graph <- prepare_graph(job$graph, run)
    on.exit(end_prepared(job$graph))
  }
  repeat {
    job <- run_sweeps(job, run, ranks)
    limits <- larger_limits(job)
    if (is.null(limits)) break
    job <- run_again(job, limits, run)
  }
  fit <- irm_result(job, call, started, run)
  warn_truncated(fit)
  fit
}

# The devices of a run: where chains are fewer than devices, all share every sweep if that is predicted to be faster
# than a device for each chain. A device that is named twice is for trying out the parts.
irm_devices <- function(on, job) {
  if (length(on) <= job$chains || anyDuplicated(on)) return(on)
  if (job$chains * plan_sweep(job, length(on))$cuda < plan_sweep(job, 1)$cuda) on else on[seq_len(job$chains)]
}

# One sweep of a chain, with what it waits for on the host beside.
plan_sweep <- function(job, devices, nodes = 0) {
  links <- job$graph$links
  k <- job$model$max_clusters
  irm_plan("sweep", rows = links$n_row, columns = links$n_col, links = length(links$to), k_rows = k[1L],
           k_columns = k[2L], devices = devices, nodes = nodes)
}

# Seconds of a sweep of a chain that has a device of its own.
irm_chain_seconds <- function(job) {
  plan <- plan_sweep(job, 1, sum(run_nodes(job)))
  plan$cuda + plan$beside
}

run_sweeps <- function(job, run, ranks) {
  unsaved <- NULL
  while (job$done < job$target) {
    piece <- job$target - job$done
    if (!is.null(job$checkpoint)) piece <- min(piece, job$save_every)
    on <- irm_devices(devices_for(run$devices, job$backend, piece * job$chains * irm_chain_seconds(job)), job)
    control <- run_control(job$backend, run$threads, run$progress, NULL, "Co-clustering", on)
    left <- irm_chains(job, piece, ranks, control)
    job$state <- left[names(job$state)]
    job$trace <- add_trace(job$trace, left, job, piece)
    job$stages <- (job$stages %||% 0) + left$stages
    job$done <- job$done + piece
    if (!is.null(job$checkpoint) && rank_part(ranks)[1L] == 0L) {
      problem <- save_checkpoint(job)
      if (is.null(unsaved)) warn_unsaved(job, problem)
      unsaved <- problem
    }
  }
  job
}

# Traces and samples are R's own vectors.
check_room <- function(job) {
  samples <- 4 * sum(run_nodes(job)) * (job$target %/% job$thin)
  masked <- masked_pairs(job$graph, job$model) * (8 * most_expected + 4 * job$chains)
  ask_memory(2 * (job$chains * (56 * job$target + samples) + masked), # a copy is made when a part is added
             sprintf("The samples of %.0f chains of %.0f sweeps must fit into memory.", job$chains, job$target),
             i = "Use fewer `sweeps` or `chains`, or a larger `thin`.")
}

# An allocation that would fail in R is an error of weft's beforehand.
ask_memory <- function(bytes, message, i = NULL) {
  available <- host_free()
  if (available < 0 || bytes <= available) return(invisible())
  weft_abort("memory", message,
             x = sprintf("They need %.3g GB, but only %.3g GB are available.", bytes / 1e9, available / 1e9),
             i = i)
}

stop_unwritable <- function(path, problem) {
  if (is.null(problem)) return(invisible())
  abort_input("`checkpoint` must be a file that can be written.",
              x = sprintf("%s %s.", describe(path), problem))
}

warn_unsaved <- function(job, problem) {
  if (is.null(problem)) return(invisible())
  weft_warn("checkpoint", sprintf("The checkpoint could not be saved after %.0f sweeps: %s %s.", job$done,
                                  describe(job$checkpoint), problem),
            i = sprintf("The run continues and tries again every %.0f sweeps. The previous content of %s is intact.",
                        job$save_every, describe(job$checkpoint)))
}

# `piece` more sweeps of all chains; over ranks each has its own. All that comes back is chain after chain.
irm_chains <- function(job, piece, ranks, control) {
  native <- function(state, first) {
    plan <- list(done = job$done, sweeps = piece, thin = job$thin, block = expected_block(job$done + piece),
                 first_chain = first)
    state <- state[state_fields]
    .Call(C_weft_irm_run, native_graph(job$graph), native_model(job$model), state, plan, control)
  }
  if (is.null(ranks)) return(native(job$state, 0))
  mine <- dealt_to(job$chains, ranks)
  own <- if (length(mine)) {
    state <- lapply(job$state, function(x) c(matrix(x, ncol = job$chains)[, mine]))
    native(state, mine[1L] - 1)
  }
  parts <- Filter(Negate(is.null), ranks_gather(own, control))
  left <- do.call(Map, c(c, unname(parts)))
  for (sum in c("stages", "expected")) left[[sum]] <- Reduce(`+`, lapply(parts, `[[`, sum))
  left
}

# What src/irm/r/irm.c reads of a graph, a model and two partitions with labels from 0.
native_graph <- function(graph) {
  list(kind = graph$kind, self = graph$self, links = native_edges(graph$links), missing = native_edges(graph$missing),
       values = graph$values, prepared = graph$prepared)
}

# The graph with its lists in both orders, checked, in native memory, which several calls share. It is ended before a
# fit is returned, and never saved.
prepare_graph <- function(graph, run = NULL) {
  graph["prepared"] <- list(NULL)
  graph$prepared <- .Call(C_weft_irm_prepared, native_graph(graph),
                          run_control("cpu", run$threads, run$progress, NULL, "Arranging links"))
  graph
}

end_prepared <- function(graph) if (!is.null(graph$prepared)) .Call(C_weft_irm_prepared_end, graph$prepared)

native_edges <- function(edges) {
  list(n_row = edges$n_row, n_col = edges$n_col, start = edges$start, to = edges$to, weight = edges$weight)
}

native_model <- function(model) {
  c(model[c("poisson", "collapsed", "nested", "degrees", "attempts", "sample_alpha", "sample_beta")],
    list(max_clusters = as.double(model$max_clusters), alpha_prior = as.double(model$hyper[1:2]),
         beta_prior = as.double(model$hyper[3:4]), key = as.double(model$key)))
}

native_partition <- function(row, col) {
  list(row = as.integer(row), col = as.integer(col), row_clusters = max(row) + 1L, col_clusters = max(col) + 1L)
}

# Traces are arrays with one row per sweep; samples have one column per kept sweep, then one slice per chain.
add_trace <- function(trace, left, job, piece) {
  chains <- job$chains
  n <- run_nodes(job)
  kept <- (job$done + piece) %/% job$thin - job$done %/% job$thin
  new <- list(
    log_posterior = matrix(left$log_posterior, piece, chains), row_clusters = matrix(left$row_clusters, piece, chains),
    col_clusters = matrix(left$col_clusters, piece, chains), row_full = matrix(left$row_full, piece, chains),
    col_full = matrix(left$col_full, piece, chains), alpha = array(left$alpha_trace, c(piece, 2L, chains)),
    beta = array(left$beta_trace, c(piece, 2L, chains)), row_samples = array(left$row_samples, c(n[1L], kept, chains)),
    col_samples = array(left$col_samples, c(n[2L], kept, chains)),
    expected = add_expected(trace$expected, left$expected, job, piece)
  )
  if (is.null(trace)) return(new)
  samples <- c("row_samples", "col_samples")
  trace$expected <- new$expected
  for (field in setdiff(names(new), "expected")) {
    trace[[field]] <- bind_along(trace[[field]], new[[field]], if (field %in% samples) 2L else 1L)
  }
  trace
}

bind_along <- function(a, b, along) {
  shape <- dim(a)
  shape[along] <- shape[along] + dim(b)[along]
  out <- array(vector(typeof(a), 1L), shape)
  first <- seq_len(dim(a)[along])
  second <- seq_len(dim(b)[along]) + length(first)
  if (length(shape) == 2L) {
    out[first, ] <- a
    out[second, ] <- b
  } else if (along == 1L) {
    out[first, , ] <- a
    out[second, , ] <- b
  } else {
    out[, first, ] <- a
    out[, second, ] <- b
  }
  out
}

#' Continue a run
#'
#' `update()` adds sweeps to every chain of a fit, with the same result as if all had been run at once. `irm_resume()`
#' reads what `irm(checkpoint =)` saved and finishes the run, which continues to save checkpoints to the same file.
#'
#' A checkpoint contains a format number and a checksum. It is read as plain vectors and lists: nothing in it is
#' evaluated, and every field is checked. If the file is damaged, the function stops with an error that describes the
#' problem.
#'
#' @param object an object returned by [irm()].
#' @param sweeps the number of additional sweeps.
#' @param checkpoint,checkpoint_sweeps see [`irm_control`].
#' @param run see [weft_run()].
#' @param ... not used.
#' @return A new fit.
#' @export
#' @examples
#' planted <- irm_sample(30, 30, k = 2, density = 0.3, seed = 1)
#' fit <- irm(planted$A, chains = 2, sweeps = 20, seed = 1)
#' more <- update(fit, sweeps = 30)
#' dim(more$log_posterior)
update.weft_irm <- function(object, sweeps, checkpoint = NULL, checkpoint_sweeps = 20, ..., run = NULL) {
  run <- as_run(run)
  started <- proc.time()[[3L]]
  check_dots(..., .known = irm_names_elsewhere)
  need_args("sweeps")
  job <- where_it_runs(check_irm_fit(object, job = TRUE)$run)
  job$grows <- FALSE # the sweeps so far stay
  job$target <- job$done + check_number(sweeps, "sweeps", min = 1, max = 1e8, whole = TRUE)
  if (job$target > most_sweeps) {
    abort_input(sprintf("A chain must have at most %.0f sweeps.", most_sweeps),
                x = sprintf("It would have %.0f.", job$target))
  }
  job$checkpoint <- check_path(checkpoint)
  job$save_every <- check_number(checkpoint_sweeps, "checkpoint_sweeps", min = 1, max = longest_step, whole = TRUE)
  stop_unwritable(job$checkpoint, checkpoint_problem(job$checkpoint))
  run_irm(job, object$call, started, run)
}

# Where there is no device, a run that began on one continues on the CPU, bit for bit the same. A saved run may say that
# it began on one although it has no device code.
where_it_runs <- function(job) {
  stays <- irm_run_plan(job$graph, job$model)$stays
  why <- if (job$backend == "cuda") if (is.null(stays)) cuda_missing() else paste(stays, "on the CPU only")
  if (!is.null(why)) job[c("backend", "reason")] <- list("cpu", why)
  job
}

#' @rdname update.weft_irm
#' @param file the checkpoint.
#' @export
irm_resume <- function(file, run = NULL, ...) {
  run <- as_run(run)
  check_dots(...)
  started <- proc.time()[[3L]]
  need_args("file")
  file <- readable_file(file, "file", "a checkpoint of `irm()`")
  job <- where_it_runs(read_checkpoint(file))
  job$checkpoint <- file
  if (job$done < job$target) stop_unwritable(file, checkpoint_problem(file))
  run_irm(job, match.call(), started, run)
}
