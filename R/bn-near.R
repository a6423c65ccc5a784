# The table of a search for the best graph of many nodes: only the parent sets that it needs
# (src/bn/cpu/search/near_table.c).

most_near_parents <- 12
near_width <- 8 # candidates by their own score, beside those that a greedy search around a node finds

# Whether all sets of four parents would take longer to count than a search needs altogether: by the number of nodes and
# rows alone, so that the result does not depend on the machine.
near_pays <- function(data) {
  p <- node_count(data)
  n <- if (is_experiment(data)) experiment_dim(data)[2L] else NROW(data)
  length(p) == 1L && bn_plan("near", n = n, p = p)$engine[["cpu"]] == "near table"
}

# A table, and the orders where the searches ended that made it. `...`: what other tables are made with.
near_table <- function(data, score, key, run, ess = 1, gamma = 1, prior = NULL, interventions = NULL,
                       na = c("fail", "drop"), ...) {
  started <- proc.time()[[3L]]
  score <- check_choice(score, bn_score_types, "score")
  na <- check_choice(na, c("fail", "drop"), "na")
  ess <- check_ess(ess)
  gamma <- check_gamma(gamma)
  input <- memory_errors(bn_input(data, score, interventions, na))
  problem <- memory_errors(bn_problem(input, score, ess, prior, gamma))
  problem$max_parents <- bn_limits(most_near_parents, input$names)
  check_search_memory(input, score, most_near_parents, 1, run$threads)
  problem$allowed <- bn_candidates(NULL, FALSE, input, problem, run$threads)$allowed
  plan <- list(width = near_width, key = key)
  control <- run_control("cpu", run$threads, run$progress, input$names, "Scoring parent sets")
  found <- memory_errors(.Call(C_weft_bn_near_table, bn_native_problem(problem), plan, control))
  table <- c(found[c("start", "score", "parents", "bits")], list(
    nodes = input$names, n = input$n, type = score, max_parents = stats::setNames(problem$max_parents, input$names),
    ess = ess, gamma = gamma, keep = "max", slack = 0, labels = input$labels,
    predicted = data.frame(sets = found$scored),
    priors = !is.null(prior), interventions = !is.null(input$set), candidates = TRUE, near = TRUE
  ))
  chosen <- list(name = "cpu", reason = "few parent sets need a score")
  list(table = record(new_result(table, class = "weft_bn_scores"), sys.call(), chosen, started), order = found$order)
}

# The orders to start from: a ladder has one of those for all its temperatures; ladders beyond them have random ones.
near_orders <- function(order, settings) {
  temperatures <- length(settings$beta)
  ladder <- rep(seq_len(settings$ladders), each = temperatures)
  out <- matrix(-1L, nrow(order), length(ladder))
  there <- ladder <= ncol(order)
  out[, there] <- order[, ladder[there]]
  out
}
