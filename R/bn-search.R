#' Search for a good network of hundreds or thousands of variables
#'
#' `bn_search()` learns a Bayesian network of many variables, with many parents per node. The shortest call is
#' `bn_search(x)`; it returns the network as the matrix `dag`, with its score. The search needs no table of all parent
#' sets: it moves nodes to their best positions in an order, and grows and shrinks the parents of each node greedily
#' among the nodes before it (Andrews, Ramsey, Sanchez Romero, Camchong and Kummerfeld 2023). For a few dozen variables,
#' [bn_learn()] and [bn_exact()] give more information: how good other networks are, how probable each edge is, and
#' whether there is a better network.
#'
#' @section Search algorithm: Nodes are inserted in random order, each at the position with the highest total score.
#'   Then each node in turn moves to the position with the highest score, until no node moves. Next, some neighbouring
#'   nodes are moved to random positions, and the search continues from there; a worse result is discarded. For
#'   categorical variables, a node also moves together with its descendants, and every second perturbation reverses an
#'   edge. This is repeated up to `kicks` times for each of `starts` orders. The search ends earlier if at least two
#'   starts, and at least half of all starts, have reached the same best score after half of the kicks, or after about
#'   a second each, measured in work done, not by a clock. With fewer than 256 numeric nodes, "half of the kicks" means
#'   200, and fewer with more than 100 nodes. Because starts can agree on a wrong order, each start then begins again
#'   from other random orders, until 20 orders have reached the best score or each start has done the work of about
#'   half a second. Searches that take longer have one order for each start. They end after 400 kicks (fewer with more
#'   than 100 nodes), or when the best score has not risen for a quarter of these. With 256 numeric nodes or more, all
#'   kicks are tried in parallel lanes from the same order, one lane for every 16 nodes and at most 64. The moves of
#'   each lane are then accepted if they do not lower the score. The best parents of a node among any set of preceding
#'   nodes are stored in a tree and rarely need to be computed again. In addition, all sets of up to 2, 3 or 4
#'   candidates are listed, as far as their number allows, because two parents may jointly explain what neither
#'   explains alone. For the same reason, parents are also selected backwards whenever an order is better than all
#'   previous ones, with fewer than 256 numeric nodes and no required edges: starting from all preceding candidates of
#'   a node, the search repeatedly removes the least informative one. Such sets are stored and also used in other
#'   orders.
#'
#'   The candidates of a node are the nodes that a greedy search finds among all nodes, the `candidates` nodes with the
#'   best scores as its only parent (for categorical variables, also those with the best AIC, because BDeu and the BIC
#'   favour parents with few levels), and the nodes of which it is a candidate. At the end, every other node that is not
#'   a descendant is tried as a parent; those that increase the score become candidates, and the search continues. For
#'   categorical variables, chains can continue from the result, with all small sets of the neighbours of each node and
#'   a few more candidates: `bn_learn(bn_scores(data, candidates = near), start = fit)`, where `near` is a matrix of 0
#'   and 1.
#'
#'   The score of a network is defined as for [bn_scores()]; if `max_parents` sets no limit, [bn_score()] returns the
#'   same number. Starts and lanes are distributed over threads. Results depend on the seed, but not on the number of
#'   threads. The search runs on the CPU.
#'
#' @section Number of edges: If many nodes are tried as parents, some fit by chance. A prior for each edge accounts for
#'   this: `gamma = NULL` means 1 / sqrt(p) for p nodes, the factor by which the extended BIC with weight one half
#'   (Foygel and Drton 2010) differs from the BIC. `gamma = 1` gives the plain score. For 1,000 Gaussian variables,
#'   1,000 rows and 5,000 edges with random weights between -1 and 1, 98 % of the adjacencies found are correct, and 92
#'   % of the true ones are found; weights near 0 cannot be detected (`inst/bench/bn-large.R`).
#'
#'   The network with the highest plain score is not the one with the fewest wrong edges. The table shows the mean
#'   number of wrong edges in the equivalence class, on ten networks of the Bayesian network repository and six samples
#'   of 5,000 rows each, with the columns in random order. The default is BDeu with this prior, and [bn_learn()] uses
#'   BDeu without it. The column peers is for the best of bnlearn's `hc()`, `tabu()` and `mmhc()` with their default
#'   score, the BIC (`inst/bench/bn-repository.R`).
#'
#'   | network | default | `bn_learn()` | `"bic"` | peers |
#'   |---|---|---|---|---|
#'   | Asia | 0.8 | 0.8 | 1.0 | 1.2 |
#'   | Child | 0 | 0 | 0 | 3.8 |
#'   | Insurance | 14.0 | 13.5 | 18.5 | 32.5 |
#'   | Alarm | 2.5 | 5.0 | 4.3 | 24.5 |
#'   | Water | 49.7 | 57.2 | 57.7 | 58.8 |
#'   | Mildew | 24.3 | 24.2 | 46.0 | 44.5 |
#'   | Hepar2 | 67.0 | 66.7 | 68.0 | 77.5 |
#'   | Hailfinder | 42.2 | 48.7 | 48.5 | 50.8 |
#'   | Win95pts | 31.2 | 104.7 | 41.8 | 74.3 |
#'   | Barley | 46.0 | 46.2 | 63.5 | 74.5 |
#'
#'   In single samples, the default has more wrong edges than the best peer in 4 of 60 cases, by 1 to 6 edges (two on
#'   Hepar2, one each on Asia and Hailfinder). With 1,000 rows, this occurs in 7 of 60 cases, four of them on
#'   Hailfinder, but on no network on average.
#'
#'   With `"bdeu"`, `"bds"` and `"k2"`, sets of parents that have more configurations than there are rows are left out,
#'   except required parents. These scores have no penalty and rise again if the parents separate all rows: without this
#'   limit, 37 edges were found among 20 independent variables with three equally frequent levels and 50 rows.
#'
#'   Use `gamma = 1` for the best-scoring network itself, as a start for chains with the plain score. In all these
#'   samples, the BIC of its network was at least as high as the BIC of the best peer. With the default prior,
#'   `score = "bic"` was at most 9 nats lower than that with 5,000 rows, and 19 with 1,000.
#'
#' @section Missing values: `na = "em"` completes the rows and learns from expected counts (structural EM; Friedman
#'   1998). Each row is completed `completions` times with values sampled from a network. A network and its parameters
#'   are learned from all completed rows, each with a fractional weight. This is repeated `rounds` times. The first
#'   network is a forest that maximises mutual information (Chow and Liu 1968), computed for each pair from the rows
#'   with both values. Later networks are learned with a small penalty per edge, as in AIC, because an edge that is
#'   missing from the network used for completion is weakened in the completed data and may then not be found. The last
#'   search uses `score` and `gamma`, with the number of rows multiplied by the proportion of observed values.
#'   `fit$completed` contains the completed rows, which [bn_score()], [bn_fit()] and others accept as data. Values must
#'   be missing at random given the observed values. A value set by an intervention must not be missing. Missing values
#'   reduce the accuracy. It was measured by the number of wrong edges plus 1, relative to complete data, for 500 rows
#'   of 20 numeric variables (25 networks) and of 15 categorical variables (30 networks; `inst/bench/bn-missing.R`).
#'   With 10 % of the values missing completely at random, the ratio was 1.08 for numeric variables (95 % interval 0.98
#'   to 1.18) and 1.38 for categorical variables (1.16 to 1.64). With 10 % missing at random, depending on other
#'   columns, it was 1.07 and 1.03. With 30 % missing completely at random, the ratio relative to complete data with
#'   half of the rows was 1.09 (0.98 to 1.21) and 1.25 (1.12 to 1.40). `na = "em"` is about as accurate as complete data
#'   with as many rows as have three given variables observed.
#'
#' @inheritParams bn_scores
#' @param na `"fail"`, `"drop"` to remove rows with missing values, or `"em"`; see section Missing values.
#' @param max_parents the largest number of parents of a node, as for [bn_scores()]; by default 62 for numeric variables
#'   and 6 for categorical variables.
#' @param score `"bge"` for numeric variables; `"bic"`, `"bdeu"`, `"k2"`, `"aic"` or `"bds"` for categorical variables;
#'   `"bic-cg"` or `"aic-cg"` for a mixture of both. The default is `"bge"` if every column is a double, and for sparse
#'   matrices and stores, `"bic-cg"` if only some columns are doubles, and otherwise `"bdeu"`.
#' @param gamma the prior factor for each edge; for the default, `NULL`, see section Number of edges.
#' @param candidates the smallest number of candidates of each node, chosen by their scores as the only parent; or all
#'   candidates as a named list of names or a matrix \[from, to\]. The default is all nodes if there are up to 255
#'   numeric or 128 categorical nodes, otherwise 25 for numeric and 30 for categorical variables.
#' @param control a list of settings that are rarely needed:
#'   * `starts`: the number of starts, each from a random order of its own (with fewer than 256 numeric nodes, also from
#'     further ones), by default 2 for numeric and 4 for categorical variables.
#'   * `kicks`: the largest number of random perturbations of each start, by default 100,000 for fewer than 256 numeric
#'     nodes (searches end earlier, see section Search algorithm), otherwise the number of nodes; for categorical nodes,
#'     10 times the number of nodes, at least 5,000.
#'   * `completions`, `rounds`: for `na = "em"`, the number of completions of each row (by default 10), and the number
#'     of networks that complete it (by default 8).
#' @param seed a whole number; by default, it is drawn from R's generator.
#' @param run see [weft_run()]. The search runs on the CPU.
#' @return An object of class `weft_bn_search` and `weft_bn`: `dag` (adjacency \[from, to\]), `score`, `node_scores`,
#'   `order` (names), `start_scores` (the score that each start reached), `counts` (moves, scored parent sets, pairs of
#'   a node and a candidate, and the number of times that candidates were added; with many thousands of nodes, the
#'   number of sets that are scored twice can vary), and with `na = "em"` also `completed` and `em`. All functions for
#'   networks accept it: [bn_fit()], [bn_compare()], [bn_convert()], [plot.weft_bn()] and `start` of [bn_learn()].
#' @seealso [bn_learn()], [bn_score()], [bn_cpdag()]
#' @export
#' @examples
#' set.seed(1)
#' x <- matrix(rnorm(200 * 30), 200, dimnames = list(NULL, paste0("v", 1:30)))
#' for (j in 2:30) x[, j] <- x[, j] + x[, j - 1]
#' fit <- bn_search(as.data.frame(x), seed = 1)
#' fit
#' head(summary(fit))
bn_search <- function(x, score = NULL, max_parents = NULL, gamma = NULL, candidates = NULL, prior = NULL,
                      interventions = NULL, ess = 1, na = c("fail", "drop", "em"), control = list(), seed = NULL,
                      run = NULL, ...) {
  run <- as_run(run, dry_run = TRUE)
  control <- check_control(control, bn_search_control)
  check_dots(..., .control = bn_search_control, .known = bn_other_names)
  started <- proc.time()[[3L]]
  need_args("x")
  score <- if (is.null(score)) suited_score(x) else check_choice(score, bn_score_types, "score")
  na <- asked_na(na = if (missing(na)) "fail" else na, able = "em", what = "searches")
  ess <- check_ess(ess)
  if (na == "em" && !run$dry_run) {
    key <- draw_key(seed)
    search <- function(data, score, gamma, control) {
      bn_search(data, score, max_parents, gamma, candidates, prior, ess = ess, run = run_but(run, progress = FALSE),
                seed = key[2L], control = control)
    }
    found <- complete_by_em(x, score, ess, interventions, key, control, search)
    fit <- search(found$completed, score, gamma, control[c("starts", "kicks")])
    return(by_em(fit, found, match.call(), started))
  }
  input <- memory_errors(bn_input(x, score, interventions, if (na == "em") "drop" else na))
  if (run$dry_run) {
    return(dry_plan("bn_search", list(name = "cpu", reason = "local search runs on the CPU only", engine = "search")))
  }
  p <- input$p
  gauss <- score == "bge"
  gamma <- check_gamma(gamma %||% (1 / sqrt(p)))
  starts <- check_number(control$starts %||% (if (gauss) 2 else 4), "starts", min = 1, max = 1000, whole = TRUE)
  all <- p <= if (gauss) 255 else 128 # up to these numbers, all are candidates of each other
  kicks <- control$kicks %||% (if (!gauss) max(5000, 10 * p) else if (p < 256) 1e5 else p)
  kicks <- check_number(kicks, "kicks", min = 0, max = 1e9, whole = TRUE)
  limits <- bn_limits(max_parents %||% (if (gauss) 62 else 6), input$names)
  key <- draw_key(seed)
  check_search_memory(input, score, max(limits), starts, min(run$threads, max(starts, p)))
  problem <- memory_errors(bn_problem(input, score, ess, prior, gamma))
  problem$max_parents <- limits
  counted <- is.null(candidates) || (is.numeric(candidates) && !is.matrix(candidates))
  problem$allowed <- bn_candidates(if (!counted) candidates, FALSE, input, problem, run$threads)$allowed
  width <- if (counted) candidates %||% (if (all) p else if (gauss) 25 else 30) else p
  thinned <- all && p > 128 && is.null(candidates) && is.null(problem$required) # finds what lists of pairs would
  listed <- if (!gauss) min(2e6, 5e9 / max(input$n, 1)) else if (p <= 128) 3e4 else if (thinned) 0 else 2e6
  plan <- list(starts = starts, kicks = kicks, listed = listed, key = key,
               width = check_number(width, "candidates", min = 0, max = 4096, whole = TRUE))
  chosen <- list(name = "cpu", reason = "local search runs on the CPU")
  report_backend(chosen, run)
  control <- run_control("cpu", run$threads, run$progress, input$names, "Searching orders")
  found <- memory_errors(.Call(C_weft_bn_search, bn_native_problem(problem), plan, control))
  record(search_result(input, score, gamma, found), match.call(), chosen, started)
}

bn_search_control <- function(starts = NULL, kicks = NULL, completions = NULL, rounds = NULL) as.list(environment())

# Numeric data are doubles throughout, or in a container that is not one of R's own matrices and has no type, such as a
# DelayedArray; anything else is categorical, or an error that says so.
suited_score <- function(data) {
  numbers <- if (is.data.frame(data) && is.list(data)) length(data) > 0L && all(vapply(data, is.double, NA))
             else if (inherits(data, "DelayedArray")) BiocGenerics::type(data) == "double"
             else is.double(data) || (is.object(data) && !is.atomic(data))
  if (numbers) "bge" else if (is_mixed(data)) "bic-cg" else "bdeu"
}

search_result <- function(input, score, gamma, found) {
  names <- input$names
  new_result(list(
    dag = matrix(found$dag, input$p, dimnames = list(from = names, to = names)), score = sum(found$node_score),
    node_scores = stats::setNames(found$node_score, names), order = names[found$order + 1L], edges = NULL,
    start_scores = found$start_score, type = score, gamma = gamma, n = input$n,
    counts = stats::setNames(found$counts, c("moves", "sets", "candidates", "widenings"))
  ), class = c("weft_bn_search", "weft_bn"))
}

# The data, matrices over pairs of nodes, covariances of each node's candidates (src/bn/cpu/search/candidates.c), trees
# (grow_shrink_trees.c), what a start and each of its lanes know of an order (climb.c), and cells that a thread counts
# (table/count.c).
check_search_memory <- function(input, score, most, starts, threads) {
  p <- input$p
  near <- min(p, if (score == "bge" && p < 256) p else 128)
  pairs <- as.double(p) * near
  gauss <- score == "bge"
  lanes <- if (p < 256 || !gauss) 0 else min(p %/% 16, 64)
  shares <- if (lanes) 1 else starts
  trees <- 21 * (2^14 + min(256 * pairs, max(2^20, 2^24 / shares)) + 16 * pairs + 126 * p) + 64 * p
  cells <- if (gauss) 256 * p else 2 * (most + 2) * (2^21 + 14 * input$n) + 2^25
  need <- 10 * as.double(input$n) * p + 40 * as.double(p)^2 + gauss * min(8 * pairs * (near + 16), 2^30) +
    shares * trees + starts * (lanes + 1) * (if (gauss) 95 else 220) * p + threads * (cells + 80 * p)
  free <- host_free()
  if (free < 0 || need <= free) return(invisible())
  weft_abort("memory", sprintf("The search needs about %s of memory; %s is available.", bytes_text(need),
                               bytes_text(free)),
             x = sprintf("There are %d nodes, %s rows and %d starts.", as.integer(p), number_text(input$n),
                         as.integer(starts)),
             i = "Use fewer `starts`, `threads` or nodes.")
}

#' @rdname print.weft_bn
#' @export
print.weft_bn_search <- function(x, ...) {
  check_bn(x, "x")
  of_edges <- sum(x$dag) * log(if (is_number(x$gamma)) x$gamma else 1)
  prior <- if (of_edges == 0) "" else sprintf(", including %.4f for the number of edges (`gamma`)", of_edges)
  cat_wrapped(sprintf("%s, %s %.4f%s", network_size(x), x$type, x$score, prior))
  behind <- max(x$start_scores) - min(x$start_scores)
  starts <- length(x$start_scores)
  cat_wrapped(sprintf("Local search over orders: %s moves, %s parent sets scored%s", number_text(x$counts[["moves"]]),
                      number_text(x$counts[["sets"]]),
                      if (starts == 1L) "; one start" else
                        sprintf("; the scores of %d starts differ by %.4g nats at most", starts, behind)))
  cat_wrapped(em_line(x))
  cat("The network is not proven to be optimal\n")
  invisible(x)
}

network_size <- function(x) {
  sprintf("Bayesian network of %s and %s", several(nrow(x$dag), "node"), several(sum(x$dag), "edge"))
}

#' @rdname print.weft_bn
#' @export
glance.weft_bn_search <- function(x, ...) {
  check_bn(x, "x")
  data.frame(nodes = nrow(x$dag), edges = sum(x$dag), score = x$score, type = x$type, starts = length(x$start_scores),
             moves = x$counts[["moves"]], seconds = attr(x, "seconds"))
}
