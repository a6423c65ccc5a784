#' Learn a Bayesian network
#'
#' @description
#' `bn_learn()` learns how variables depend on each other, as a directed acyclic graph in which every node depends on
#' its parents. It searches for the best graph, or estimates the posterior probability of every edge.
#'
#' The shortest call is `bn_learn(x)`. It returns the best graph as the matrix `dag`, with 1 for an edge from the row's
#' node to the column's. `bn_learn(x, target = "uniform")` also returns the posteriors of the edges, `edges`.
#'
#' An edge represents a dependence that remains given the other variables in `x`; it does not prove a causal effect.
#' `vignette("from-expression-to-a-causal-network")` explains targets, edges, missing values and resampling, and
#' `vignette("how-weft-computes")` explains chains and parent sets.
#'
#' @param x a data frame or matrix with one column per node (see [bn_scores()]), or a table returned by `bn_scores()`,
#'   which contains `max_parents` and `score`.
#' @param max_parents the largest number of parents of a node: one number, or a vector named by nodes (4 for the
#'   others). The default is that of [bn_scores()], 4 or fewer; for `"max"` with many nodes it is 12, and only the sets
#'   that the search needs are scored.
#' @param score `"bdeu"`, `"k2"`, `"bic"`, `"aic"` or `"bds"` for categorical variables; `"bge"` for continuous
#'   variables; `"bic-cg"` or `"aic-cg"` for a mixture of both. The default is `"bic-cg"` if only some columns are
#'   doubles.
#' @param iterations the number of steps of every chain; for `"max"`, 0 gives a quick result. The default is 20,000; for
#'   `"max"` with at least four chains, it is 20, or 1,000 if the chains find different graphs.
#' @param chains the number of independent chains, each with its own heated chains; by default 16 for `"max"`, otherwise
#'   4.
#' @param target `"max"` for the best graph; `"sum"` or `"uniform"` for edge posteriors, with a uniform prior over node
#'   orders or graphs.
#' @param top the number of best graphs to keep.
#' @param start a node order (names) or network; by default random.
#' @param resample the number of random half-samples of the rows over which edge posteriors are averaged; 0 for none.
#'   The posterior from all rows is overconfident if the model is misspecified.
#' @param control a list of settings that are rarely needed, such as `temperatures` or `burn_in`: see
#'   [`bn_learn_control`].
#' @param ... passed on to [bn_scores()]: `ess`, `gamma`, `prior`, `candidates`, `interventions`. With missing values,
#'   use `na = "drop"`, or `"em"` for `"max"` and `"augment"` for the other targets.
#' @param seed a whole number; by default, it is drawn from R's generator.
#' @param run see [weft_run()]. Chains are split over ranks and devices.
#' @return An object of class `weft_bn`:
#'   \item{dag, score, dags}{the best graph, a matrix \[from, to\], and its score; the `top` best graphs, each a list of
#'     `dag` and `score`, best first}
#'   \item{edges, edges_all_rows}{the posterior edge probabilities \[from, to\], NULL for `"max"`; with `resample`, the
#'     mean over the half-samples, and the posterior from all rows}
#'   \item{trace}{scores, saved iterations x chains}
#'   \item{diagnostics}{R-hat and effective sample size of the scores, acceptance rates of moves and swaps, and the
#'     largest difference of an edge posterior between chains}
#' @seealso [bn_exact()], [bn_search()], [bn_fit()], [bn_compare()], [plot.weft_bn()], [bn_conditions()], [bn_time()]
#' @export
#' @examples
#' people <- as.data.frame(Titanic)
#' people <- people[rep(seq_len(nrow(people)), people$Freq), c("Class", "Sex", "Age", "Survived")]
#' fit <- bn_learn(people, seed = 1)
#' fit$dag
#' fit <- bn_learn(people, target = "uniform", iterations = 2000, seed = 1)
#' round(fit$edges, 2)
#' max(abs(fit$edges - bn_exact(people, posterior = "dag")$edges))
#'
#' bn_learn(mtcars, score = "bge", seed = 1)
bn_learn <- function(x, max_parents = NULL, score = "bdeu", iterations = NULL, chains = NULL,
                     target = c("max", "sum", "uniform"), top = 10, start = NULL, resample = 0, control = list(),
                     seed = NULL, run = NULL, ...) {
  run <- as_run(run, ranks = TRUE, dry_run = TRUE)
  ranks <- join_ranks(run$ranks, "bn_learn", c(each_rank, "x", "start"))
  control <- check_control(control, bn_learn_control)
  started <- proc.time()[[3L]]
  check_dots(..., .control = bn_learn_control, .allowed = bn_score_settings, .known = bn_other_names)
  need_args("x")
  if (missing(score) && is_mixed(x)) score <- "bic-cg"
  target <- check_choice(target, bn_targets, "target")
  resample <- check_resample(resample, x, target)
  keep <- if (target == "max") "max" else "sum"
  settings <- chain_settings(iterations, chains, control, top, target, seed)
  if (!is.null(ranks)) settings$key <- ranks_gather(settings$key)[[1L]]
  na <- asked_na(..., able = if (target == "max") "em" else "augment", what = sprintf("the target \"%s\"", target))
  if (na %in% c("em", "augment") && !inherits(x, "weft_bn_scores")) {
    gaps <- anyNA(nodes_frame(x))
    if (!is.null(ranks) || resample && gaps) {
      abort_input(sprintf("`na = \"%s\"` needs one process and all rows.", na),
                  x = if (resample) "`resample` is given." else "The call is distributed over ranks.")
    }
    own <- settings
    relearn <- function(data, ..., na, interventions = NULL) {
      given <- setdiff(attr(control, "given"), c("completions", "rounds"))
      bn_learn(data, max_parents, score, iterations, chains, target, top, start, resample, control[given], seed = seed,
               run = run, interventions = interventions, ..., na = "drop")
    }
    if (!gaps || run$dry_run) return(relearn(x, ...))
    if (na == "em") {
      found <- em_for_chains(x, check_choice(score, bn_score_types, "score"), max_parents, own$key, control, run, ...)
      fit <- (function(..., interventions) relearn(found$completed, ...))(...)
      return(by_em(fit, found, match.call(), started))
    }
    fit <- learn_augmented(x, check_choice(score, bn_score_types, "score"), own, max_parents, control, run, ...)
    return(record(fit, match.call(), list(name = "cpu", reason = "tables are made repeatedly"), started))
  }
  table <- given_table(x, bn_given(match.call(), control), keep)
  open_sets <- is.null(table) && is.null(max_parents) && !"candidates" %in% ...names() &&
    !"plus_one" %in% attr(control, "given")
  near <- open_sets && target == "max" && near_pays(x)
  near <- if (near && !run$dry_run) near_table(x, score, settings$key, run, ...)
  table <- table %||% near$table %||%
    bn_scores(x, max_parents = max_parents, score = score, ...,
              run = run_but(run, ranks = FALSE, backend = table_backend(run$backend, score)), keep = keep,
              control = control[names(formals(bn_scores_control))])
  settings <- choose_space(settings, control)
  if (run$dry_run) return(dry_chains(table, x, settings, keep, run))
  check_chain_memory(settings, length(table$nodes))
  settings$order <- if (!is.null(near) && is.null(start)) near_orders(near$order, settings)
                    else memory_errors(start_orders(start, table$nodes, settings))
  # drawn given the orders
  if (settings$layers) settings$layer <- memory_errors(start_orders(NULL, table$nodes, settings))
  same_on_ranks(ranks, x = unclass(table)[setdiff(names(table), "predicted")], start = settings$order)
  sets <- length(table$score)
  nodes <- length(table$nodes)
  chosen <- bn_chain_backend(run, settings, sets, nodes)
  report_backend(chosen, run)
  on <- devices_for(run$devices, chosen$name, chosen$divided)
  worth <- worth_threads(chain_plan(settings, sets, nodes, 1)$cpu, run)
  native <- run_control(chosen$name, worth, run$progress, table$nodes, "Sampling orders", on)
  if (settings$graphs && is.null(start)) settings$order <- memory_errors(settled_orders(table, settings, ranks, native))
  fit <- memory_errors({
    found <- if (settings$open && settings$ladders >= 4) {
      chains_until_agreed(table, settings, ranks, native, run$threads)
    } else {
      list(fit = chain_result(table, settings, run_chains(table, settings, ranks, native)))
    }
    finish_fit(found$fit, run$threads, found$best)
  })
  if (resample) {
    again <- function(...) {
      bn_learn(..., max_parents = max_parents, score = score, iterations = max(1, settings$iterations %/% 10),
               chains = 1, target = target, run = run_but(run, ranks = FALSE, progress = FALSE),
               control = control[c("temperatures", "swap_every", "plus_one", "slack")])$edges
    }
    fit <- resample_edges(fit, x, resample, again, ...)
  }
  record(fit, match.call(), chosen, started)
}

#' Rare settings of a network search
#'
#' The entries of the list that [bn_learn()] takes as `control`, for example
#' `bn_learn(x, target = "sum", control = list(thin = 5))`.
#'
#' * `temperatures`: the temperatures of a ladder of chains, starting with 1; a single temperature means no heating. The
#'   default is 1 and 2 for `"max"`; 1, 1.5, 2.5 and 4 for `"sum"`; 1, 1.3, 1.7 and 2.2 for `"uniform"`.
#' * `swap_every`: steps between swaps of neighbouring temperatures; 10 by default.
#' * `space`: what chains for `"uniform"` walk over: `"partitions"` of the nodes into layers (the default), or
#'   `"graphs"`, on the CPU. Over graphs, a step gives all nodes new parents in turn, and there is a single temperature
#'   by default. With more than about 64 nodes, chains over graphs mix much faster than chains over partitions. But each
#'   starts from the result of a search, so chains may agree although all of them miss a mode. With few nodes,
#'   partitions are more reliable.
#' * `thin`: the number of steps between saved scores and, except for `"max"`, between sampled graphs; by default, about
#'   1,000 are saved.
#' * `burn_in`: the number of steps before the first graph is sampled (not for `"max"`); by default a quarter of the
#'   steps.
#' * `plus_one`, `slack`: see [bn_scores()], which computes the table of scores.
#' * `completions`, `rounds`: for missing values. For `"em"`, see [bn_search()]. For `"augment"`, `completions` is the
#'   number of times that each chain completes the rows, 100 by default.
#'
#' @name bn_learn_control
#' @seealso [bn_learn()]
#' @examples
#' d <- data.frame(a = rep(0:1, 20), b = rep(c(0L, 1L, 1L, 1L), 10), c = rep(0:1, each = 20))
#' bn_learn(d, target = "sum", iterations = 1000, control = list(thin = 5, temperatures = 1),
#'          seed = 1)$edges
NULL

bn_learn_control <- function(temperatures = NULL, swap_every = 10, thin = NULL, burn_in = NULL, plus_one = TRUE,
                             slack = 20, completions = NULL, rounds = NULL, space = NULL) as.list(environment())

# The space that the chains of `settings` walk over. Heated chains of many nodes hardly ever swap.
choose_space <- function(settings, control) {
  space <- check_choice(control$space %||% "partitions", c("partitions", "graphs"), "space")
  if (!is.null(control$space) && !settings$layers) {
    abort_input("`space` needs `target = \"uniform\"`.", x = "Chains for other targets walk over orders.")
  }
  settings$graphs <- space == "graphs"
  if (settings$graphs && is.null(control$temperatures)) settings$beta <- 1
  settings
}

# `sets`: of all nodes together.
bn_chain_backend <- function(run, settings, sets, nodes) {
  plan <- function() chain_plan(settings, sets, nodes, run$threads)
  stays <- plan()$stays
  if (is.null(stays)) choose_backend(run$backend, plan()) else cpu_only(run$backend, stays, plan())
}

chain_plan <- function(settings, sets, nodes, threads) {
  target <- if (settings$graphs) "graphs" else bn_targets[1 + settings$sum + settings$layers]
  plan_chains(target, settings$iterations, settings$ladders, length(settings$beta), sets / nodes, nodes, threads)
}

# The dry run of bn_learn(): `table`, or what bn_scores() predicts of it, of whose sets not all are kept. A near table
# takes less.
dry_chains <- function(table, x, settings, keep, run) {
  if (inherits(table, "weft_bn_scores")) {
    chosen <- bn_chain_backend(run, settings, length(table$score), length(table$nodes))
    return(dry_plan("bn_learn", chosen))
  }
  dry_plan("bn_learn", bn_chain_backend(run, settings, kept_sets[[keep]] * table$sets, node_count(x)), list(table))
}

# `sets`: of a node.
plan_chains <- function(target, iterations, chains, temperatures, sets, nodes, threads) {
  bn_plan("chains", kind = target, iterations = iterations, chains = chains, temperatures = temperatures,
          node_sets = sets, p = nodes, threads = threads)
}

# The chains of `settings`; over ranks each has its ladders, and all get what one run gives.
run_chains <- function(table, settings, ranks, control) {
  table <- bn_native_table(table)
  if (is.null(ranks)) return(.Call(C_weft_bn_chain, table, bn_native_run(settings), control))
  temperatures <- length(settings$beta)
  mine <- dealt_to(settings$ladders, ranks)
  own <- if (length(mine)) {
    columns <- seq(to = max(mine) * temperatures, length.out = length(mine) * temperatures)
    part <- utils::modifyList(settings, list(ladders = length(mine), order = settings$order[, columns, drop = FALSE],
                                        layer = if (settings$layers) settings$layer[, columns, drop = FALSE]))
    .Call(C_weft_bn_chain, table, bn_native_run(part, mine[1L] - 1), control)
  }
  parts <- Filter(Negate(is.null), ranks_gather(own, control))
  together <- function(what, bind) do.call(bind, lapply(parts, `[[`, what))
  out <- list(order = together("order", cbind), layer = together("layer", cbind), trace = together("trace", cbind),
              accepted = together("accepted", cbind),
              swapped = together("swapped", c), sampled = together("sampled", c),
              sample_score = matrix(together("sample_score", c), ncol = settings$ladders))
  best <- best_graphs(together("best_sets", cbind), together("best_score", c), settings$best)
  c(out, list(best_sets = best$sets, best_score = best$score))
}

# What native code reads of a run; `ladder0`: ladders before the first of these.
bn_native_run <- function(settings, ladder0 = 0) {
  read <- c("ladders", "iterations", "thin", "burn_in", "swap_every", "best", "first", "key", "beta", "sum", "layers",
            "graphs", "order")
  c(settings[read], list(layer = settings$layer, ladder0 = ladder0))
}

# Columns of `sets` with their scores, best first; of equal scores the first, each graph once.
best_graphs <- function(sets, scores, most) {
  best <- order(-scores, na.last = NA)
  best <- utils::head(best[!duplicated(t(sets[, best, drop = FALSE]))], most)
  list(sets = sets[, best, drop = FALSE], score = scores[best])
}

bn_targets <- c("max", "sum", "uniform")

# Their kinds of moves, with the share of the steps that tries each (src/bn/both/moves.h,
# src/bn/cpu/chains/partitions.c). Of graphs (graphs.c): renewals in a step; the others are counted when they are
# tried.
move_shares <- function(settings, nodes = 1) {
  if (settings$graphs) return(c(renew = nodes, turn = NA, reverse = NA))
  if (!settings$layers) return(c(swap = 4, adjacent = 4, shift = 8) / 16)
  c(swap = 1, adjacent = 1, shift = 4, split = 2, reverse = 4, renew = 4) / 16
}

# What arguments are called elsewhere.
bn_other_names <- c(data = "x", iss = "ess", alpha = "ess", maxp = "max_parents", max.parents = "max_parents",
                    max_iter = "iterations", n_iter = "iterations", restart = "chains", restarts = "chains",
                    whitelist = "prior", blacklist = "prior", method = "score", nthreads = "threads",
                    n_threads = "threads", verbosity = "verbose", correct_bias = "target")

bn_score_settings <- c("ess", "gamma", "prior", "candidates", "interventions", "na")

# Arguments of a call that shape a score table.
bn_given <- function(call, control) {
  c(intersect(names(call), c("max_parents", "score", bn_score_settings)),
    intersect(attr(control, "given"), names(formals(bn_scores_control))))
}

chain_settings <- function(iterations, chains, control, top, target, seed) {
  open <- is.null(iterations) && target == "max"
  iterations <- check_number(iterations %||% 20000, "iterations", min = if (target == "max") 0 else 1, max = 2^53,
                             whole = TRUE)
  quick <- iterations == 0
  iterations <- max(iterations, 1)
  temperatures <- control$temperatures %||%
    switch(target, max = c(1, 2), sum = c(1, 1.5, 2.5, 4), uniform = c(1, 1.3, 1.7, 2.2))
  chains <- chains %||% (if (target == "max") 16 else 4)
  temperatures <- readable_numbers(temperatures, "temperatures")
  if (is_numeric_vector(temperatures)) temperatures <- as.double(temperatures)
  if (!is_numeric_vector(temperatures) || !length(temperatures) || length(temperatures) > 1000L ||
        anyNA(temperatures) || temperatures[1L] != 1 || any(diff(temperatures) < 0) || any(!is.finite(temperatures))) {
    abort_input("`temperatures` must contain only finite numbers that start with 1 and do not decrease.",
                x = paste0("They are ", describe(temperatures), "."))
  }
  thin <- check_number(control$thin %||% max(1, iterations %/% 1000), "thin", min = 1, max = iterations, whole = TRUE)
  burn_in <- check_number(control$burn_in %||% (iterations %/% 4), "burn_in", min = 0, max = iterations - 1,
                          whole = TRUE)
  list(
    ladders = check_number(chains, "chains", min = 1, max = 1e5, whole = TRUE), iterations = iterations, thin = thin,
    burn_in = burn_in, swap_every = check_number(control$swap_every, "swap_every", min = 1, max = 2^31, whole = TRUE),
    best = check_number(top, "top", min = 1, max = 1e5, whole = TRUE), first = 0, key = draw_key(seed),
    beta = 1 / as.double(temperatures), sum = target != "max", layers = target == "uniform", graphs = FALSE,
    quick = quick, open = open
  )
}

# Two 32-bit halves: from R's generator, or of the seed, which leaves the generator alone.
draw_key <- function(seed) {
  if (is.null(seed)) return(floor(stats::runif(2L) * 2^32))
  as_halves(check_number(seed, "seed", min = 0, max = 2^53, whole = TRUE))
}

start_orders <- function(start, nodes, settings) {
  replicas <- settings$ladders * length(settings$beta)
  if (is.null(start)) return(matrix(-1L, length(nodes), replicas))
  if (is.character(start) && (length(start) != length(nodes) || !setequal(start, nodes))) {
    abort_input("`start` must be a network or an order of all nodes.", x = not_the_same(start, nodes))
  }
  order <- if (is.character(start)) match(start, nodes)
           else topological_order(as_dag(start, nodes = nodes, arg = "start"))
  matrix(as.integer(order) - 1L, length(nodes), replicas)
}

# Sets as numbers within each node's list, p x graphs, to adjacencies.
sets_to_dag <- function(table, sets) {
  p <- length(table$nodes)
  dag <- matrix(0L, p, p, dimnames = list(from = table$nodes, to = table$nodes))
  parents <- table$parents[, table$start[seq_len(p)] + sets + 1, drop = FALSE]
  at <- which(parents > 0L)
  dag[cbind(parents[at], col(parents)[at])] <- 1L
  dag
}

chain_result <- function(table, settings, out) {
  p <- length(table$nodes)
  found <- sum(!is.na(out$best_score))
  colnames(out$trace) <- paste0("chain", seq_len(settings$ladders))
  list(
    dag = NULL, score = NA_real_, dags = NULL, edges = NULL, trace = out$trace, table = table, run = settings,
    order = out$order, layer = out$layer, counts = out[c("accepted", "swapped")],
    best_sets = out$best_sets[, seq_len(found), drop = FALSE], best_score = out$best_score[seq_len(found)],
    sampled = if (settings$sum) array(out$sampled, c(p, nrow(out$sample_score), settings$ladders)),
    sample_score = out$sample_score,
    iterations = settings$iterations, target = bn_targets[1 + settings$sum + settings$layers]
  )
}

# Chains that end when enough of their ladders settle at the same best score, and the best graphs then. Where they do
# not, more kicks help more than more steps.
chains_until_agreed <- function(table, settings, ranks, control, threads) {
  fit <- settled <- NULL
  kicks <- most_kicks(table)
  for (upto in unique(pmax(c(20, 1000) %/% settings$thin, 1) * settings$thin)) {
    done <- if (is.null(fit)) 0 else fit$iterations
    part <- utils::modifyList(settings, list(iterations = upto - done, first = done, burn_in = 0))
    if (done) part$order <- fit$order
    more <- chain_result(table, part, run_chains(table, part, ranks, control))
    fit <- if (done) join_fits(fit, more) else more
    if (!done) {
      settled <- settle(fit, kicks %/% 8, threads)
      if (agreeing(settled) == length(settled$end)) break
    }
    settled <- settle(fit, kicks, threads, settled)
    if (agreeing(settled) >= max(4, length(settled$end) / 4)) break
  }
  list(fit = fit, best = settled)
}

# Orders to start chains over graphs from: each replica's own search from a random order. Chains of many nodes that
# start anywhere do not reach the good graphs, one node or edge at a time.
settled_orders <- function(table, settings, ranks, control) {
  few <- utils::modifyList(settings, list(iterations = 20, thin = 20, burn_in = 0, best = 1, sum = FALSE,
                                          layers = FALSE, graphs = FALSE))
  random <- run_chains(table, few, ranks, control)$order
  .Call(C_weft_bn_settle, bn_native_table(table), list(order = random, kicks = 10 * length(table$nodes), best = 1,
                                                       key = (settings$key + 1) %% 2^32, first = 0), control)$order
}

# How many settled at the best score; those of equal networks may differ in their last digits.
agreeing <- function(settled) sum(settled$score[1L] - settled$end <= 1e-9 * abs(settled$score[1L]))

# Kicks of each start where nothing limits the search: some hundredths of a second for all of them.
most_kicks <- function(table) {
  p <- length(table$nodes)
  floor(min(10 * p, 16000 / p, 3e7 / length(table$score)))
}

# Kicks of a search of so many steps, which take a small part of its time; none in very short ones.
kicks_of <- function(fit) {
  if (isTRUE(fit$run$quick)) return(min(length(fit$table$nodes), most_kicks(fit$table)))
  min(fit$iterations %/% 100, most_kicks(fit$table))
}

# The best graphs where the ladders' last orders settle (src/bn/cpu/search/best_places.c), or those where they settled
# `before`. Of many ladders, only the best ones are followed. The chains, from which update() goes on, are left as they
# are.
settle <- function(fit, kicks, threads, before = NULL) {
  settings <- fit$run
  if (fit$iterations < 20 && !isTRUE(settings$quick)) return(list(sets = fit$best_sets, score = fit$best_score))
  p <- length(fit$table$nodes)
  followed <- utils::head(order(-fit$trace[nrow(fit$trace), ]), max(1, min(64, 2e7 / p^2)))
  coldest <- (sort(followed) - 1L) * length(settings$beta) + 1L
  plan <- list(order = before$order %||% fit$order[, coldest, drop = FALSE], kicks = kicks, best = settings$best,
               key = (settings$key + 1) %% 2^32, first = fit$iterations)
  found <- .Call(C_weft_bn_settle, bn_native_table(fit$table), plan, run_control("cpu", threads, FALSE))
  there <- !is.na(found$best_score)
  best <- best_graphs(cbind(before$sets, fit$best_sets, found$best_sets[, there, drop = FALSE]),
                      c(before$score, fit$best_score, found$best_score[there]), settings$best)
  c(best, found[c("order", "end")])
}

# Graphs, edges, weights and diagnostics from what the chains left.
finish_fit <- function(fit, threads, best = NULL) {
  if (is.null(best)) best <- if (fit$target == "max") settle(fit, kicks_of(fit), threads)
                             else list(sets = fit$best_sets, score = fit$best_score)
  fit$dags <- lapply(seq_along(best$score),
                     function(k) list(dag = sets_to_dag(fit$table, best$sets[, k]), score = best$score[k]))
  fit$dag <- fit$dags[[1L]]$dag
  fit$score <- fit$dags[[1L]]$score
  fit$diagnostics <- chain_diagnostics(fit)
  if (fit$run$sum) {
    if (!length(fit$sample_score)) {
      abort_input("`iterations` must leave at least one saved step after `burn_in`.",
                  x = sprintf("`iterations` is %s, `burn_in` %s, `thin` %s.", number_text(fit$run$iterations),
                              number_text(fit$run$burn_in), number_text(fit$run$thin)))
    }
    means <- .Call(C_weft_bn_edge_means, bn_native_table(fit$table), fit$sampled, run_control("cpu", threads, FALSE))
    fit$edges <- matrix(means$edges, nrow(fit$dag), dimnames = dimnames(fit$dag))
    fit$diagnostics$edge_difference <- means$difference
  }
  new_result(fit, class = "weft_bn")
}

# ---- diagnostics ----

chain_diagnostics <- function(fit) {
  temperatures <- length(fit$run$beta)
  accepted <- fit$counts$accepted
  replica <- rep(seq_len(temperatures), fit$run$ladders)
  shares <- move_shares(fit$run, nrow(fit$dag))
  kinds <- seq_along(shares)
  of_replicas <- function(rows) t(rowsum(t(accepted[rows, , drop = FALSE]), replica))
  tried <- outer(shares, of_replicas(nrow(accepted))[1L, ])
  if (fit$run$graphs) tried[-1L, ] <- of_replicas(4:5)
  done <- of_replicas(kinds)
  acceptance <- done / tried
  dimnames(acceptance) <- list(move = names(shares), temperature = format(1 / fit$run$beta))
  swaps <- array(fit$counts$swapped, c(2L, temperatures - 1L, fit$run$ladders))
  late <- fit$trace[seq_len(nrow(fit$trace)) > nrow(fit$trace) %/% 4L, , drop = FALSE]
  list(r_hat = split_r_hat(late), ess = effective_size(late), acceptance = acceptance,
       swaps = if (temperatures > 1L) apply(swaps, 2L, function(s) sum(s[1L, ]) / sum(s[2L, ])))
}

# Gelman and Rubin's ratio with every chain split in halves; 1 when nothing varies.
split_r_hat <- function(trace) {
  half <- nrow(trace) %/% 2L
  if (half < 2L) return(NA_real_)
  parts <- cbind(utils::head(trace, half), utils::tail(trace, half))
  within <- mean(apply(parts, 2L, stats::var))
  between <- half * stats::var(colMeans(parts))
  if (between == 0) return(1)
  sqrt(((half - 1) / half * within + between / half) / within)
}

# Autocorrelations over all chains, summed by Geyer's initial monotone sequence.
effective_size <- function(trace) {
  n <- nrow(trace)
  m <- ncol(trace)
  if (n < 4L) return(NA_real_)
  variance <- apply(trace, 2L, stats::var)
  within <- mean(variance)
  total <- (n - 1) / n * within + if (m > 1L) stats::var(colMeans(trace)) else 0
  if (total == 0) return(NA_real_)
  covariance <- mean_autocovariance(trace)
  rho <- 1 - (within - covariance * n / (n - 1)) / total
  rho[1L] <- 1
  pairs <- rho[seq(1L, n - 1L, 2L)] + rho[seq(2L, n, 2L)]
  last <- match(TRUE, pairs < 0, nomatch = length(pairs) + 1L) - 1L
  min(n * m * log10(max(n * m, 10)), n * m / max(2 * sum(cummin(pairs[seq_len(last)])) - 1, 1e-3))
}

trace_cells <- 2^20 # of a trace and what it is padded with that are transformed at once, or one chain's
padded_length <- function(n) 2^ceiling(log2(2 * n))

# Of all columns, by the Fourier transform of their mean spectrum; columns in portions that bound the memory.
mean_autocovariance <- function(trace) {
  n <- nrow(trace)
  padded <- padded_length(n)
  portions <- split(seq_len(ncol(trace)), (seq_len(ncol(trace)) - 1L) %/% max(1, trace_cells %/% padded))
  power <- Reduce(`+`, lapply(portions, function(columns) {
    x <- trace[, columns, drop = FALSE]
    rowSums(Mod(stats::mvfft(rbind(sweep(x, 2L, colMeans(x)), matrix(0, padded - n, ncol(x)))))^2)
  }))
  Re(stats::fft(power, inverse = TRUE))[seq_len(n)] / (as.double(padded) * n * ncol(trace))
}

# ---- more iterations ----

#' Continue a network search
#'
#' The chains continue from where they ended, with the same key: if a is a multiple of the fit's `thin`, `update(fit,
#' iterations = b)` after a steps gives the same result as a + b steps at once.
#'
#' @param object an object returned by [bn_learn()].
#' @param iterations the number of additional steps.
#' @param run see [weft_run()].
#' @param ... ignored.
#' @return As [bn_learn()], over all steps so far.
#' @export
#' @examples
#' d <- data.frame(a = c(0L, 1L, 1L, 0L), b = c(0L, 1L, 1L, 1L))
#' fit <- bn_learn(d, iterations = 100)
#' update(fit, iterations = 100)$iterations
update.weft_bn <- function(object, iterations, ..., run = NULL) {
  run <- as_run(run)
  started <- proc.time()[[3L]]
  need_args("iterations")
  check_bn_chains(object, "object")
  if (!is.null(object$completions) || !is.null(object$em)) {
    abort_input("`object` must have been learned from data without missing values.",
                x = "Missing values were completed during learning.",
                i = "Learn the network again with more `iterations`.")
  }
  if (!is.null(object$resample)) {
    abort_input("`object` must have been learned without `resample`.",
                x = sprintf("Its edge posteriors are means over %d subsamples of the rows.",
                            as.integer(object$resample)),
                i = "Learn the network again with more `iterations`.")
  }
  settings <- object$run
  settings$first <- object$iterations
  settings$iterations <- check_number(iterations, "iterations", min = settings$thin, max = 2^53 - settings$first,
                                      whole = TRUE)
  settings$burn_in <- min(max(settings$burn_in - settings$first, 0), settings$iterations)
  check_chain_memory(settings, length(object$table$nodes), before = nrow(object$trace))
  settings$order <- object$order
  settings$layer <- object$layer
  backend <- attr(object, "backend")
  divided <- chain_plan(settings, length(object$table$score), length(object$table$nodes), 1)$divided
  native <- run_control(backend, run$threads, run$progress, object$table$nodes, "Sampling orders",
                        devices_for(run$devices, backend, divided))
  fit <- memory_errors({
    more <- chain_result(object$table, settings, run_chains(object$table, settings, NULL, native))
    finish_fit(join_fits(object, more), run$threads)
  })
  record(fit, match.call(), list(name = backend, reason = attr(object, "reason")), started)
}

join_fits <- function(old, new) {
  fit <- unclass(old)
  attributes(fit) <- list(names = names(fit))
  best <- best_graphs(cbind(old$best_sets, new$best_sets), c(old$best_score, new$best_score), old$run$best)
  fit$best_sets <- best$sets
  fit$best_score <- best$score
  fit$trace <- rbind(old$trace, new$trace)
  fit$order <- new$order
  fit$layer <- new$layer
  fit$counts <- Map(`+`, old$counts, new$counts)
  fit$iterations <- old$iterations + new$iterations
  fit$run$quick <- FALSE
  if (fit$run$sum) {
    dims <- dim(old$sampled)
    more <- dim(new$sampled)[2L]
    fit$sampled <- array(0L, dims + c(0L, more, 0L))
    fit$sampled[, seq_len(dims[2L]), ] <- old$sampled
    if (more) fit$sampled[, dims[2L] + seq_len(more), ] <- new$sampled
    fit$sample_score <- rbind(old$sample_score, new$sample_score)
  }
  fit
}

# ---- methods ----

#' Print and summarise learned networks
#'
#' @param x,object an object returned by [bn_learn()] or [bn_exact()].
#' @param ... ignored.
#' @return `summary()`: a data frame of the edges in the best network, with their posterior if there is one.
#' @export
#' @examples
#' d <- data.frame(a = c(0L, 1L, 1L, 0L), b = c(0L, 1L, 1L, 1L))
#' summary(bn_exact(d))
print.weft_bn <- function(x, ...) {
  check_bn(x, "x")
  d <- x$diagnostics
  cat(sprintf("%s, %s %.4f\n", network_size(x), x$table$type, x$score))
  mixed <- if (is.finite(d$r_hat)) sprintf("; R-hat of the score %s, effective sample size %s",
                                           format(d$r_hat, digits = 3),
                                           format(d$ess, digits = 3))
  space <- if (x$run$graphs) "Graph" else if (x$run$layers) "Partition" else "Order"
  cat_wrapped(sprintf("%s MCMC (%s): %s of %s, %s steps each%s", space, x$target,
                      several(x$run$ladders, "ladder"), several(length(x$run$beta), "temperature"),
                      thousands(x$iterations), mixed %||% ""))
  if (isTRUE(x$table$near)) {
    cat_wrapped("Only the parent sets that the search needed were scored; `max_parents = 4` scores all up to that size")
  }
  cat_wrapped(if (is.null(x$edges)) "No edge posteriors with target \"max\"; `target = \"sum\"` estimates them"
      else sprintf("Edge posteriors from %d sampled graphs (uniform prior over %s): %d of at least 0.5",
                   length(x$sample_score), if (x$run$layers) "graphs" else "orders", sum(x$edges >= 0.5)))
  if (!is.null(x$edges)) cat_wrapped(edge_meaning)
  cat_wrapped(em_line(x))
  if (!is.null(x$completions)) {
    cat_wrapped(sprintf("Parameters and missing values were sampled %s times in each chain", thousands(x$completions)))
  }
  if (!is.null(x$resample)) {
    cat_wrapped(sprintf("They are means over %d subsamples of the rows; `edges_all_rows` is computed from all rows",
                        as.integer(x$resample)))
  }
  invisible(x)
}

edge_meaning <- "An edge is a dependence given these variables; hidden common causes are not modelled"

#' @rdname print.weft_bn
#' @export
summary.weft_bn <- function(object, ...) {
  check_bn(object, "object")
  edge_table(object$dag, object$edges)
}

#' @rdname print.weft_bn
#' @param row.names,optional ignored.
#' @export
as.data.frame.weft_bn <- function(x, row.names = NULL, optional = FALSE, ...) summary(x)

#' @rdname print.weft_bn
#' @export
tidy.weft_bn <- function(x, ...) summary(x)

#' @rdname print.weft_bn
#' @export
glance.weft_bn <- function(x, ...) {
  check_bn(x, "x")
  data.frame(nodes = nrow(x$dag), edges = sum(x$dag), score = x$score, type = x$table$type, target = x$target,
             iterations = x$iterations, r_hat = x$diagnostics$r_hat, ess = x$diagnostics$ess,
             seconds = attr(x, "seconds"))
}

edge_table <- function(dag, posterior) {
  at <- which(dag != 0, arr.ind = TRUE)
  out <- data.frame(from = rownames(dag)[at[, 1L]], to = colnames(dag)[at[, 2L]])
  if (!is.null(posterior)) out$posterior <- posterior[at]
  out
}
