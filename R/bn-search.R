#' Search for a good network of hundreds or thousands of variables
#'
#' A search that needs no table of all parent sets, so that nodes may have many parents, and there may be many nodes: it
#' moves nodes to their best places in an order, and grows and shrinks the parents of each greedily among the nodes
#' before it (Andrews, Ramsey, Sanchez Romero, Camchong and Kummerfeld 2023). For some dozen variables, [bn_learn()] and
#' [bn_exact()] tell more: how good other networks are, how probable each edge is, and whether there is a better
#' network.
#'
#' @section How it searches: Nodes are inserted in a random order, each at the place among the others where the total
#'   score is highest. Then each node in turn moves to the place where the score is highest now, until none moves. Then
#'   some nodes that are near each other are moved to random places, and the search continues from there; a worse result
#'   is discarded. This is repeated `kicks` times from each of `starts` orders. With 256 numeric nodes or more, kicks
#'   are tried in lanes, one for every 16 nodes and at most 64, from the same order; the order then takes over what each
#'   lane moved, if the score is no worse with it. The best parents of a node among any set of nodes before it are kept
#'   in a tree, so that most of them are looked up. In addition, all sets of up to 2, 3 or 4 candidates, as far as
#'   their number allows, are listed: two parents may explain together what neither explains alone. For the same reason,
#'   with fewer than 256 numeric nodes and no required edges, parents are also found from the other end whenever an
#'   order is better than all before: all candidates before a node, of which the one that explains least is left out
#'   again and again. Such sets are remembered, and taken in other orders, too.
#'
#'   A node's candidates are the nodes that a greedy search around it finds among all nodes, the `candidates` nodes with
#'   the best scores as its only parent, and the nodes of which it is a candidate. When the search has ended, every node
#'   before another is tried as its parent once more; those that raise the score become candidates, and the search
#'   continues. For categories, chains may continue from there with all small sets of each node's neighbours and of a
#'   few more candidates: `bn_learn(bn_scores(data, candidates = near), start = fit)`, where `near` is a matrix of 0 and
#'   1.
#'
#'   The score of a network is that of [bn_scores()]: without a limit by `max_parents`, [bn_score()] gives the same
#'   number. Results depend on the seed, not on the number of threads, which share starts and lanes. It runs on the
#'   CPU.
#'
#' @section How many edges: If many nodes are tried as parents, some fit by chance. A prior for each edge allows for
#'   that: `gamma = NULL` means 1 / sqrt(p) for p nodes, the factor by which the extended BIC with weight one half
#'   (Foygel and Drton 2010) differs from the BIC. `gamma = 1` gives the plain score. For 1,000 Gaussian variables,
#'   1,000 rows and 5,000 edges with random weights between -1 and 1, 98 % of the adjacencies found are right, and 92 %
#'   of the true ones are found; weights near 0 cannot be detected (`inst/bench/bn-large.R`).
#'
#'   The network with the highest plain score is not the one with the fewest wrong edges. On ten networks of the
#'   Bayesian network repository with 8 to 76 nodes, six samples of 5,000 rows each, BDeu with this prior, the default
#'   for categories, has no more wrong edges in its equivalence class, on average, than any of bnlearn's `hc()`,
#'   `tabu()` and `mmhc()` by their default, the BIC, on all but one (`inst/bench/bn-repository.R`; peers: the best of
#'   them; [bn_learn()] is by BDeu, too, but without the prior):
#'
#'   | network | default | `bn_learn()` | `"bic"` | peers |
#'   |---|---|---|---|---|
#'   | Asia | 0.8 | 3.2 | 0.8 | 0.8 |
#'   | Child | 0 | 0 | 0 | 3.3 |
#'   | Insurance | 13.0 | 14.2 | 21.0 | 40.0 |
#'   | Alarm | 2.2 | 4.3 | 4.3 | 22.7 |
#'   | Water | 44.7 | 55.2 | 57.2 | 57.5 |
#'   | Mildew | 24.3 | 24.3 | 46.2 | 44.0 |
#'   | Hepar2 | 62.5 | 66.5 | 65.2 | 64.8 |
#'   | Hailfinder | 47.5 | 46.8 | 46.5 | 35.2 |
#'   | Win95pts | 32.8 | 107.7 | 25.8 | 47.7 |
#'   | Barley | 44.2 | 45.5 | 60.7 | 62.7 |
#'
#'   In single samples this holds for eight (one sample) or nine of the ten. With 1,000 rows (three samples) the default
#'   has more wrong edges than the best peer on Hailfinder, 47 and 36, and on Water, 60.3 and 60.0. On Andes, with 223
#'   nodes, it has 67 with 5,000 rows and `hc()` 80. Beside the same peers by BDeu, it also has one more on Mildew than
#'   `tabu()`.
#'
#'   Use `gamma = 1` when you want the best-scoring network itself, as a start for chains with the plain score.
#'   `score = "bic"` with its default prior is at most 8 nats below `gamma = 1` on these networks (one sample), and its
#'   BIC is that of the best peer or higher but on Hepar2, where it is up to 9 nats lower in two samples of six. On
#'   Andes it is 89 nats below `hc()`: orders are hard to leave there.
#'
#' @section Missing values: `na = "em"` completes the rows and learns from expected counts (structural EM; Friedman
#'   1998). Each row is completed `completions` times by draws from a network; a network and its parameters are learned
#'   from all completed rows, each of which counts as a part of a row; and so on for `rounds`. The first network is a
#'   forest of the pairs of highest mutual information, of which each pair is judged by the rows that have both values;
#'   later ones are searched with a low price of an edge, as by AIC, because an edge that the completing network lacks
#'   is weakened in what it completes, and then not found in that. The last search is by `score` and `gamma`, and takes
#'   the number of rows for n times the share of values that are there. `fit$completed` has the completed rows, which
#'   [bn_score()], [bn_fit()] and others take as data. Values must be missing at random given those that are there. A
#'   value that was set from outside must not be missing. What is missing costs edges: of 20 numbers and 500 rows (six
#'   networks), 6.0 edges were wrong with complete data, 8.0 with one value in ten missing completely at random, 7.2
#'   where that depended on other columns (11.8 without these rows), 9.8 with three in ten, and 7.8 with half of the
#'   rows, complete; of 15 categories (five networks), 4.8, and 7.4 with one value in ten missing
#'   (`inst/bench/bn-missing.R`).
#'
#' @inheritParams bn_scores
#' @param na `"fail"`, `"drop"` to leave out rows with missing values, or `"em"`; see below.
#' @param max_parents the largest number of parents of a node, as for [bn_scores()]; NULL: 25 for numbers, 6 for
#'   categories.
#' @param score `"bge"` for numbers; `"bic"`, `"bdeu"`, `"k2"`, `"aic"` or `"bds"` for categories; `"bic-cg"` or
#'   `"aic-cg"` for both together. NULL: `"bge"` when every column is a double, and for sparse matrices and stores,
#'   which hold numbers; `"bic-cg"` when some columns are; else `"bdeu"`.
#' @param gamma a factor for every edge; NULL: see below.
#' @param candidates how many candidates by their own score each node has at least; or a named list of names or a matrix
#'   \[from, to\], beyond which nothing is tried. NULL: all of up to 128 nodes; of more nodes, 25 of numbers, 30 of
#'   categories.
#' @param control a list of settings that are rarely needed:
#'   * `starts`: how many random orders; NULL: 2 for numbers, 4 for categories.
#'   * `kicks`: how often each start is perturbed at random; NULL: the number of nodes, at least 200; for categories,
#'     10 times the number of nodes, at least 5,000.
#'   * `completions`, `rounds`: for `na = "em"`, how often each row is completed (NULL: 10), and how many networks
#'     complete it (NULL: 8).
#' @param seed a whole number; NULL draws the key from R's generator.
#' @return An object of class `weft_bn_search` and `weft_bn`: `dag` (adjacency \[from, to\]), `score`, `node_scores`,
#'   `order` (names), `start_scores` (the score that each start reached), `counts` (best moves, parent sets scored,
#'   pairs of a node and a candidate, and how often candidates were added; with many thousands of nodes, the number of
#'   sets that are scored twice may vary), and with `na = "em"` also `completed` and `em`. Functions that take networks
#'   take it: [bn_fit()], [bn_compare()], [bn_convert()], [plot.weft_bn()], `start` of [bn_learn()].
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
    return(dry_plan("bn_search", list(name = "cpu", reason = "searches run on the CPU only", engine = "search")))
  }
  p <- input$p
  gauss <- score == "bge"
  gamma <- check_gamma(gamma %||% (1 / sqrt(p)))
  starts <- check_number(control$starts %||% (if (gauss) 2 else 4), "starts", min = 1, max = 1000, whole = TRUE)
  kicks <- control$kicks %||% (if (gauss) max(200, p) else max(5000, 10 * p))
  kicks <- check_number(kicks, "kicks", min = 0, max = 1e9, whole = TRUE)
  limits <- bn_limits(max_parents %||% (if (gauss) 25 else 6), input$names)
  key <- draw_key(seed)
  check_search_memory(input, score, max(limits), starts, min(run$threads, max(starts, p)))
  problem <- memory_errors(bn_problem(input, score, ess, prior, gamma))
  problem$max_parents <- limits
  counted <- is.null(candidates) || (is.numeric(candidates) && !is.matrix(candidates))
  problem$allowed <- bn_candidates(if (!counted) candidates, FALSE, input, problem, run$threads)$allowed
  width <- if (counted) candidates %||% (if (p <= 128) p else if (gauss) 25 else 30) else p
  listed <- if (!gauss) min(2e6, 5e9 / max(input$n, 1)) else if (p <= 128) 3e4 else 2e6 # small sets
  plan <- list(starts = starts, kicks = kicks, listed = listed, key = key,
               width = check_number(width, "candidates", min = 0, max = 4096, whole = TRUE))
  chosen <- list(name = "cpu", reason = "best moves run on the CPU")
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
  near <- min(p, 60)
  pairs <- as.double(p) * near
  gauss <- score == "bge"
  lanes <- if (p < 256 || !gauss) 0 else min(p %/% 16, 64)
  shares <- if (lanes) 1 else starts
  trees <- 19 * (2^14 + min(256 * pairs, max(2^20, 2^24 / shares)) + 16 * pairs + 62 * p) + 64 * p
  cells <- if (gauss) 256 * p else 2 * (most + 2) * (2^21 + 14 * input$n) + 2^25
  need <- 10 * as.double(input$n) * p + 40 * as.double(p)^2 + gauss * min(8 * pairs * (near + 16), 2^30) +
    shares * trees + starts * (lanes + 1) * 80 * p + threads * (cells + 80 * p)
  free <- host_free()
  if (free < 0 || need <= free) return(invisible())
  weft_abort("memory", sprintf("The search needs about %s of memory, %s are free.", bytes_text(need),
                               bytes_text(free)),
             x = sprintf("%d nodes, %s rows, %d starts.", as.integer(p), number_text(input$n), as.integer(starts)),
             i = "Use fewer `starts`, `threads` or nodes.")
}

#' @rdname print.weft_bn
#' @export
print.weft_bn_search <- function(x, ...) {
  check_bn(x, "x")
  of_edges <- sum(x$dag) * log(if (is_number(x$gamma)) x$gamma else 1)
  prior <- if (of_edges == 0) "" else sprintf(", of which %.4f for the number of edges (`gamma`)", of_edges)
  cat_wrapped(sprintf("%s, %s %.4f%s", network_size(x), x$type, x$score, prior))
  behind <- max(x$start_scores) - min(x$start_scores)
  starts <- length(x$start_scores)
  cat_wrapped(sprintf("Best moves through orders: %s moves, %s parent sets scored%s", number_text(x$counts[["moves"]]),
                      number_text(x$counts[["sets"]]),
                      if (starts == 1L) "; one start" else
                        sprintf("; %d starts came within %.4g nats of each other", starts, behind)))
  cat_wrapped(em_line(x))
  cat("A good network, not proven to be the best\n")
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
