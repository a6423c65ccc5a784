#' Local scores of Bayesian networks
#'
#' `bn_scores()` computes the score of every parent set of every node. The shortest call is `bn_scores(x)`; it returns a
#' table without the sets that cannot matter, which [bn_learn()] and [bn_exact()] accept in place of data.
#' `bn_local_score()` and `bn_score()` return individual scores.
#'
#' All scores are natural logarithms. With counts \eqn{N_{kj}} (parent configuration k of q, state j of r) and
#' \eqn{\alpha_{kj} = \mathrm{ess} / (q r)},
#' \deqn{\mathrm{BDeu} = \sum_k \left[\ln\frac{\Gamma(\alpha_k)}{\Gamma(\alpha_k + N_k)} +
#'   \sum_j \ln\frac{\Gamma(\alpha_{kj} + N_{kj})}{\Gamma(\alpha_{kj})}\right].}{BDeu = sum_k [ ln(Gamma(a_k) /
#'   Gamma(a_k + N_k)) + sum_j ln(Gamma(a_kj + N_kj) / Gamma(a_kj)) ], with a for alpha.}
#' `"k2"` has \eqn{\alpha_{kj} = 1}; `"bds"` spreads `ess` over the parent configurations that occur; `"bic"` and
#' `"aic"` are the log-likelihood minus q (r - 1) times half the logarithm of the number of rows, or times one;
#' `"bge"` is the marginal likelihood of Gaussian data (see section Units of numeric columns). `gamma` adds |parents| ln
#' `gamma`, and `prior` adds the log prior of each parent.
#'
#' All levels of a factor are counted, even if they do not occur.
#'
#' @section Units of numeric columns: `"bge"` (Geiger and Heckerman 2002; Kuipers, Moffa and Heckerman 2014) is computed
#'   from columns that are standardised to mean 0 and variance 1 over all rows, with \eqn{\alpha_\mu = 1},
#'   \eqn{\alpha_w = p + 2}, prior mean 0 and prior scale matrix \eqn{T = t I},
#'   \eqn{t = \alpha_\mu (\alpha_w - p - 1) / (\alpha_\mu + 1) = 1/2}. In the units of the data, this corresponds to a
#'   prior mean equal to the column means and a diagonal \eqn{T} of t times the column variances. Scores and networks
#'   therefore do not depend on the unit or the origin of a column. The log density of the data in their original units
#'   is lower by the sum over nodes of the number of counted rows times the logarithm of the column's standard
#'   deviation, for any network. A constant column is replaced by 0.
#'
#' @section Mixed data: With `"bic-cg"` and `"aic-cg"`, columns of doubles are numeric and all others are categorical. A
#'   categorical node can be the parent of a numeric one, but not the reverse. A numeric node is normal with a mean that
#'   is linear in its m numeric parents; intercept, slopes and variance differ between the q configurations of its
#'   categorical parents. The score is the log-likelihood in the units of the data, with variances from n - m - 1
#'   degrees of freedom in each configuration of n rows, minus q (m + 2) times the penalty, as in `"bic-cg"` and
#'   `"aic-cg"` of bnlearn. It is -Inf if a configuration that occurs has at most m + 1 rows or no residual variance.
#'   Scores of equivalent networks can differ slightly.
#'
#' @section Interventions: A row with an intervention on a node is not counted in the score of this node, but in all
#'   others. BIC uses the number of counted rows.
#'
#' @section Sets that are kept: With `keep = "max"`, a set is dropped if a subset has at least the same score, because
#'   it is then not needed for a best graph. With `keep = "sum"`, a set is dropped if the score of a subset is higher by
#'   `slack` nats; for any order, its weight is then at most exp(-`slack`) times the weight of the subset.
#'   `keep = "all"` keeps all sets.
#'
#' @section Candidates: With `candidates`, the parents of a node come from its list; all sets of at most `max_parents`
#'   of them are scored. With `plus_one`, every kept set is also scored together with each single node that is not in
#'   the list.
#'
#' @param x a data frame or matrix with one column per node (or a SummarizedExperiment, nodes in its rows): factors,
#'   logicals, or integers and characters with few values; numeric columns for `score = "bge"`; or an object returned by
#'   [bn_time()] or [bn_conditions()].
#' @param max_parents the largest number of parents of a node, at most 62: one number, or a vector named by nodes (4 for
#'   the others). The default is 4, and fewer for `"bdeu"`, `"bds"` and `"k2"` if 4 parents with the usual number of
#'   levels (the geometric mean) have more configurations than there are rows. These scores have no penalty, and rise
#'   again if the parents separate all rows.
#' @param score `"bdeu"`, `"k2"`, `"bic"`, `"aic"`, `"bds"` or `"bge"`; `"bic-cg"` or `"aic-cg"` for a mixture of
#'   numeric and categorical columns. The default is `"bic-cg"` if only some columns are doubles.
#' @param ess the equivalent sample size of `"bdeu"` and `"bds"`.
#' @param gamma the prior factor for each edge.
#' @param prior an object returned by [bn_prior()], or an interface matrix (see `bn_prior()`); NULL for none.
#' @param candidates candidate parents: the number of nodes with the highest mutual information or correlation, a named
#'   list of names, or a matrix \[from, to\]; by default all nodes.
#' @param interventions the nodes that were set by an intervention: a list with one entry per row (names, NULL or NA),
#'   or a factor with the name of the node, NA for rows without an intervention.
#' @param keep the sets to keep; see section Sets that are kept.
#' @param na `"fail"`, or `"drop"` to remove rows with missing values. ([bn_search()], [bn_learn()] and [bn_fit()] have
#'   more choices.)
#' @param control a list of settings that are rarely needed:
#'   * `plus_one`: whether a set can contain one parent that is not a candidate.
#'   * `slack`: the difference of scores above which `keep = "sum"` drops a set, in nats.
#' @param run see [weft_run()]. Both back ends give the same table. The scores "bds", "bge", "bic-cg" and "aic-cg", and
#'   the scores of sets with more than 2^18 combinations of levels, are computed on the CPU. A dry run predicts memory
#'   and time.
#' @return `bn_scores()`: an object of class `weft_bn_scores`; `as.data.frame()` returns `node`, `parents` (joined by ;)
#'   and `score`. With `dry_run`, the data frame that every dry run returns (see `weft_run()`), with two more columns:
#'   `sets`, the number of sets, and `joint_sets`, the number of sets that are counted for several nodes at once.
#' @export
#' @examples
#' set.seed(1)
#' a <- sample(c("no", "yes"), 200, replace = TRUE)
#' b <- ifelse(runif(200) < 0.8, a, "no")
#' c <- sample(c("no", "yes"), 200, replace = TRUE)
#' d <- data.frame(a = factor(a), b = factor(b), c = factor(c))
#' scores <- bn_scores(d, max_parents = 2)
#' as.data.frame(scores)
#' bn_local_score(d, "b", "a")
bn_scores <- function(x, max_parents = NULL, score = c("bdeu", "k2", "bic", "aic", "bds", "bge", "bic-cg", "aic-cg"),
                      ess = 1, gamma = 1, prior = NULL, candidates = NULL, interventions = NULL,
                      keep = c("max", "sum", "all"), na = c("fail", "drop"), control = list(), run = NULL, ...) {
  run <- as_run(run, dry_run = TRUE)
  control <- check_control(control, bn_scores_control)
  check_dots(..., .control = bn_scores_control, .known = bn_other_names)
  started <- proc.time()[[3L]]
  need_args("x")
  score <- if (missing(score) && is_mixed(x)) "bic-cg" else check_choice(score, bn_score_types, "score")
  keep <- check_choice(keep, c("max", "sum", "all"), "keep")
  na <- check_choice(na, c("fail", "drop"), "na")
  ess <- check_ess(ess)
  gamma <- check_gamma(gamma)
  slack <- check_number(control$slack, "slack", min = 0)
  plus_one <- check_flag(control$plus_one, "plus_one")
  input <- memory_errors(bn_input(x, score, interventions, na))
  problem <- bn_problem(input, score, ess, prior, gamma)
  problem$max_parents <- bn_limits(max_parents %||% usual_parents(input, score), input$names)
  problem$slack <- switch(keep, max = 0, sum = slack, all = Inf)
  problem[c("allowed", "outside")] <- bn_candidates(candidates, plus_one, input, problem, run$threads)
  sizes <- bn_sizes(problem, keep, run$threads)
  plan <- function() do.call(bn_plan, c(list("table", kind = problem$score), sizes))
  stays <- if (input$completions > 1) "weighted rows are counted" else plan()$stays
  chosen <- if (is.null(stays)) choose_backend(run$backend, plan()) else cpu_only(run$backend, stays, plan())
  report_backend(chosen, run)
  predicted <- predict_scores(sizes, chosen)
  if (run$dry_run) return(predicted)
  bn_check_memory(predicted, problem, keep)
  if (run$verbose) message(sprintf("%s parent sets, about %s, %s", thousands(predicted$sets),
                               bytes_text(predicted$bytes), seconds_text(predicted$seconds)))
  control <- run_control(chosen$name, worth_threads(chosen$plan$cpu * run$threads, run), run$progress, input$names,
                         "Scoring parent sets")
  table <- memory_errors(.Call(C_weft_bn_scores, bn_native_problem(problem), control))
  result <- c(table, list(
    nodes = input$names, n = input$n, type = score, max_parents = stats::setNames(problem$max_parents, input$names),
    ess = ess, gamma = gamma, keep = keep, slack = slack, labels = input$labels,
    predicted = predicted,
    priors = !is.null(prior), interventions = !is.null(input$set), candidates = !is.null(candidates)
  ))
  record(new_result(result, class = "weft_bn_scores"), match.call(), chosen, started)
}

bn_scores_control <- function(plus_one = TRUE, slack = 20) as.list(environment())

# `allowed` and `outside`, [child, parent]. Required parents are always candidates, forbidden ones never.
bn_candidates <- function(candidates, plus_one, input, problem, threads) {
  p <- input$p
  everyone <- matrix(TRUE, p, p)
  diag(everyone) <- FALSE
  everyone[problem$forbidden] <- FALSE
  allowed <- everyone
  if (!is.null(candidates)) allowed <- candidate_matrix(candidates, input, problem, threads) & everyone
  if (!is.null(problem$required)) {
    allowed <- allowed | problem$required > 0L
    short <- rowSums(problem$required) > problem$max_parents
    if (any(short)) {
      abort_input("A node must not have more required parents than `max_parents`.",
                  x = paste0("This is the case for ", label_some(input$names[short]), "."),
                  i = "Increase `max_parents`.")
    }
  }
  outside <- everyone & !allowed
  list(allowed = allowed + 0L, outside = if (!is.null(candidates) && plus_one && any(outside)) outside + 0L)
}

candidate_matrix <- function(candidates, input, problem, threads) {
  p <- input$p
  names <- input$names
  if (is.list(candidates) && !is.data.frame(candidates)) {
    if (is.null(names(candidates)) || !all(names(candidates) %in% names) || !all(unlist(candidates) %in% names)) {
      abort_input("If `candidates` is a list, its names and entries must be names of nodes.",
                  x = paste0("Unknown: ", label_some(setdiff(c(names(candidates), unlist(candidates)), names)), "."))
    }
    allowed <- matrix(FALSE, p, p)
    allowed[cbind(rep(match(names(candidates), names), lengths(candidates)), match(unlist(candidates), names))] <- TRUE
    return(allowed)
  }
  if (is.matrix(candidates)) {
    edges <- edge_list(candidates, names, "candidates")
    allowed <- matrix(FALSE, p, p)
    allowed[cbind(edges$to, edges$from)] <- TRUE
    return(allowed)
  }
  count <- check_number(candidates, "candidates", min = 1, whole = TRUE)
  strength <- if (is.null(input$codes)) abs(bn_correlation(input$x))
              else .Call(C_weft_bn_screen, bn_native_problem(screen_problem(problem)),
                         run_control("cpu", threads, FALSE, names))
  diag(strength) <- -1
  strength[problem$forbidden] <- -1
  t(apply(strength, 1L, are_greatest, min(count, p)))
}

# Numbers among categories are screened in five bins of as many values.
screen_problem <- function(problem) {
  for (j in which(problem$number > 0L)) {
    cuts <- unique(stats::quantile(problem$numbers[, j], seq(0.2, 0.8, 0.2), names = FALSE))
    problem$codes[, j] <- findInterval(problem$numbers[, j], cuts)
    problem$levels[j] <- length(cuts) + 1L
  }
  problem["number"] <- list(NULL)
  problem
}

# Which are the `count` greatest, of equal ones the first.
are_greatest <- function(x, count) {
  bar <- -sort.int(-x, partial = count)[count]
  out <- x > bar
  out[which(x == bar)[seq_len(count - sum(out))]] <- TRUE
  out
}

# A constant column correlates with nothing.
bn_correlation <- function(x) {
  r <- suppressWarnings(stats::cor(x))
  r[!is.finite(r)] <- 0
  r
}

# The scores, in the order of src/bn/score_kinds.h, which has the properties of each.
bn_score_types <- c("bdeu", "k2", "bic", "aic", "bds", "bge", "bic-cg", "aic-cg")
bn_score_kind <- function(score, kinds = .Call(C_weft_bn_score_kinds)) lapply(kinds, `[[`, match(score, kinds$name))

# The share of sets that a table keeps, as a rule.
kept_sets <- c(max = 0.01, sum = 0.3, all = 1)

# What a plan of the table asks for (src/bn/plan.h).
bn_sizes <- function(problem, keep, threads) {
  p <- problem$p
  universe <- rowSums(problem$allowed)
  limit <- pmin(problem$max_parents, universe)
  count <- function(n, s) sum(choose(n, 0:s))
  sets <- mapply(count, universe, limit)
  most <- max(problem$max_parents)
  cells <- function(members) prod(utils::head(sort(as.double(problem$levels), decreasing = TRUE), members))
  list(n = problem$n, p = p, sets = sum(sets), largest = max(sets), joint_sets = count(p, max(most, 0) + 1),
       max_parents = max(most, 0), width = max(limit, 0), kept = kept_sets[[keep]],
       plane_levels = sum(problem$levels[problem$levels <= 16L] - 1), outside = sum(problem$outside),
       interventions = !is.null(problem$set) || length(problem$scatter_rows) > 1L, cells = cells(most),
       family_cells = cells(most + 1), threads = threads)
}

# What a dry run returns, with the numbers of sets.
predict_scores <- function(sizes, chosen) {
  jointly <- chosen$plan$engine[["cpu"]] != "counts by child"
  predicted <- dry_plan("bn_scores", chosen)
  predicted[c("sets", "joint_sets")] <- list(sizes$sets, if (jointly) sizes$joint_sets else 0)
  predicted
}

# The back end that counts the table for other work on `backend`: the CPU where a device does not count such scores.
table_backend <- function(backend, score) {
  kinds <- .Call(C_weft_bn_score_kinds)
  if (isTRUE(score %in% kinds$name[!kinds$device])) "cpu" else backend
}

bn_check_memory <- function(predicted, problem, keep) {
  free <- host_free()
  if (keep == "all" && predicted$sets > 2^31 - 1) {
    abort_input(sprintf("A table must have at most %s parent sets.", number_text(2^31 - 1)),
                x = sprintf("`keep = \"all\"` would give %s.", number_text(predicted$sets)),
                i = "Lower `max_parents`, or use `keep = \"max\"` or \"sum\".")
  }
  if (free >= 0 && predicted$bytes > free) {
    weft_abort("memory", sprintf("The score table needs about %s of memory; %s is available.",
                                 bytes_text(predicted$bytes), bytes_text(free)),
               x = sprintf("There are %s parent sets for %d nodes with at most %d parents each.",
                           thousands(signif(predicted$sets, 4)),
                           as.integer(problem$p), max(problem$max_parents)),
               i = "Lower `max_parents`, for some or all nodes, or give `candidates` (for example 20).")
  }
}

bytes_text <- function(bytes) {
  if (bytes < 1e6) return(sprintf("%.0f kB", bytes / 1e3))
  if (bytes < 1e9) return(sprintf("%.0f MB", bytes / 1e6))
  if (bytes < 1e15) sprintf("%.1f GB", bytes / 1e9) else sprintf("%.1e bytes", bytes)
}

# What native code reads of a table.
bn_native_table <- function(table) unclass(table)[c("start", "score", "parents", "bits")]

# NULL unless `data` is a table already: then nothing that shapes a table may be given in addition.
given_table <- function(data, given, keep) {
  if (!inherits(data, "weft_bn_scores")) return(NULL)
  check_bn_table(data, "x")
  if (length(given)) {
    abort_input("Arguments that determine the score table must not be given together with a table.",
                x = paste0("Given: ", label_some(given), "."), i = "Give them to `bn_scores()` instead.")
  }
  enough <- switch(keep, max = TRUE, sum = data$keep != "max", all = data$keep == "all")
  if (!enough) {
    abort_input(sprintf("This needs a score table made with `keep = \"%s\"`.", keep),
                x = sprintf("It was made with `keep = \"%s\"`.", data$keep),
                i = if (keep == "sum") "`keep = \"all\"` also works.")
  }
  data
}

#' @rdname bn_scores
#' @param object an object returned by `bn_scores()`, and `x` of `print()` and `as.data.frame()`.
#' @param ... ignored.
#' @export
print.weft_bn_scores <- function(x, ...) {
  check_bn_table(x, "x", values = FALSE)
  sizes <- diff(x$start)
  cat_wrapped(sprintf("Local scores (%s) of %d nodes, %d rows: %s of %s parent sets kept (for %s)", x$type,
                      length(x$nodes),
              x$n,
              thousands(sum(sizes)), thousands(x$predicted$sets),
              switch(x$keep, max = "the best graph", sum = sprintf("sums, slack %g nats", x$slack), all = "all uses")))
  if (isTRUE(x$near)) cat("Only the parent sets needed to find the best graph were scored\n")
  cat(sprintf("At most %s parents per node; %d to %d sets per node\n",
              paste(unique(range(x$max_parents)), collapse = " to "),
              min(sizes), max(sizes)))
  invisible(x)
}

#' @rdname bn_scores
#' @export
summary.weft_bn_scores <- function(object, ...) {
  check_bn_table(object, "object")
  first <- object$start[-length(object$start)] + 1
  data.frame(node = object$nodes, sets = diff(object$start), best = object$score[first],
             parents = set_names(object, first))
}

#' @rdname bn_scores
#' @param row.names,optional ignored.
#' @export
as.data.frame.weft_bn_scores <- function(x, row.names = NULL, optional = FALSE, ...) {
  check_bn_table(x, "x")
  data.frame(node = rep(x$nodes, diff(x$start)), parents = set_names(x, seq_along(x$score)), score = x$score)
}

# "a;b" for the sets with these numbers.
set_names <- function(table, sets) {
  members <- table$parents[, sets, drop = FALSE]
  if (!nrow(members)) return(rep("", length(sets)))
  out <- rep("", ncol(members))
  for (row in seq_len(nrow(members))) {
    there <- members[row, ] > 0L
    out[there] <- paste0(out[there], if (row > 1L) ";", table$nodes[members[row, there]])
  }
  out
}

# ---- single scores ----

#' @rdname bn_scores
#' @param node the name of a node.
#' @param parents names of its parents.
#' @return `bn_local_score()` and `bn_score()`: a number.
#' @export
bn_local_score <- function(x, node, parents = character(),
                           score = c("bdeu", "k2", "bic", "aic", "bds", "bge", "bic-cg", "aic-cg"),
                           ess = 1, gamma = 1, prior = NULL, interventions = NULL, na = c("fail", "drop")) {
  need_args("x", "node")
  score <- if (missing(score) && is_mixed(x)) "bic-cg" else check_choice(score, bn_score_types, "score")
  na <- check_choice(na, c("fail", "drop"), "na")
  input <- memory_errors(bn_input(x, score, interventions, na))
  node <- check_nodes(node, input$names, "node")
  parents <- check_nodes(parents, input$names, "parents")
  if (length(node) != 1L) abort_input("`node` must be the name of one node.", x = paste0("It is ", describe(node), "."))
  if (node %in% parents || anyDuplicated(parents)) {
    abort_input("`parents` must be different nodes other than `node`.",
                x = paste0("They are ", label_some(input$names[parents]), "."))
  }
  local_score(input, node, parents, score, check_ess(ess), check_gamma(gamma), bn_use_prior(prior, input$names))
}

#' @rdname bn_scores
#' @param dag a network: an adjacency matrix \[from, to\], or any object that [bn_convert()] accepts.
#' @export
bn_score <- function(x, dag, score = c("bdeu", "k2", "bic", "aic", "bds", "bge", "bic-cg", "aic-cg"), ess = 1,
                     gamma = 1, prior = NULL, interventions = NULL, na = c("fail", "drop")) {
  need_args("x", "dag")
  score <- if (missing(score) && is_mixed(x)) "bic-cg" else check_choice(score, bn_score_types, "score")
  na <- check_choice(na, c("fail", "drop"), "na")
  input <- memory_errors(bn_input(x, score, interventions, na))
  dag <- as_dag(dag, nodes = input$names)
  ess <- check_ess(ess)
  gamma <- check_gamma(gamma)
  prior <- bn_use_prior(prior, input$names)
  sum(vapply(seq_len(input$p), function(i) local_score(input, i, which(dag[, i] != 0), score, ess, gamma, prior), 0))
}

check_nodes <- function(x, names, arg) {
  if (!length(x)) return(integer())
  at <- if (is.character(x)) match(x, names) else NA
  if (anyNA(at)) {
    abort_input(sprintf("`%s` must contain column names of `x`.", arg),
                x = if (is.character(x)) sprintf("There is no %s.", label_some(unique(x[is.na(at)])))
                    else paste0("It is ", describe(x), "."),
                i = paste0("Available: ", label_some(names), "."))
  }
  at
}

# The score of one family, in double: what the table's fixed point is checked against.
local_score <- function(input, node, parents, score, ess, gamma, prior) {
  shares <- length(parents) * log(gamma)
  if (!is.null(prior)) {
    if (any(prior$forbidden[node, parents]) ||
        any(prior$required[node, -parents_or_none(parents, input$p)])) return(-Inf)
    shares <- shares + sum(prior$nats[node, parents])
  }
  rows <- if (is.null(input$set)) seq_len(input$n) else which(input$set[, node] == 0L)
  shares + if (score == "bge") local_gauss(input, node, parents, rows)
    else if (isTRUE(input$number[node])) local_mixed(input, node, parents, rows, score)
    else if (any(input$number[parents])) -Inf
    else local_counts(input, node, parents, rows, score, ess)
}

parents_or_none <- function(parents, p) if (length(parents)) parents else p + 1L

local_counts <- function(input, node, parents, rows, score, ess) {
  r <- input$levels[node]
  q <- prod(input$levels[parents])
  configuration <- rep(1L, length(rows))
  for (j in parents) { # numbers of the configurations that occur
    code <- configuration * input$levels[j] + input$codes[rows, j]
    configuration <- match(code, unique(code))
  }
  child <- input$codes[rows, node]
  parent_counts <- tabulate(configuration)
  family <- (configuration - 1) * r + child
  each <- input$completions
  counts <- tabulate(match(family, unique(family))) / each
  parent_counts <- parent_counts / each
  if (score %in% c("bic", "aic", mixed_scores)) {
    penalty <- if (startsWith(score, "aic")) 1 else if (length(rows)) log(length(rows) / each) / 2 else 0
    return(sum(counts * log(counts)) - sum(parent_counts * log(parent_counts)) - penalty * q * (r - 1))
  }
  alpha <- switch(score, bdeu = ess / (q * r), k2 = 1, bds = ess / (max(length(parent_counts), 1) * r))
  total <- switch(score, bdeu = ess / q, k2 = r, bds = ess / max(length(parent_counts), 1))
  sum(log_rising(alpha, counts)) - sum(log_rising(total, parent_counts))
}

# A number given categories and numbers: least squares in each configuration of the categories, with a variance of its
# own. -Inf where a configuration that occurs has too few rows for one, or no variance is left.
local_mixed <- function(input, node, parents, rows, score) {
  numbers <- parents[input$number[parents]]
  categories <- parents[!input$number[parents]]
  m <- length(numbers)
  parts <- if (length(categories)) split(rows, as.data.frame(input$codes[rows, categories]), drop = TRUE)
           else if (length(rows)) list(rows)
  times <- input$completions
  each <- vapply(parts, function(part) {
    n <- length(part) / times
    if (n <= m + 1L) return(-Inf)
    y <- standard_values(input$x[part, node])
    squares <- sum(stats::lm.fit(cbind(1, standard_columns(input$x[part, numbers, drop = FALSE])), y)$residuals^2)
    if (!(squares > 1e-13 * sum(y^2))) return(-Inf)
    # squares: of numbers with variance 1
    variance <- squares / times / (n - m - 1) * stats::var(input$x[part, node] - input$x[part[1L], node])
    -n / 2 * (log(2 * pi) + log(variance)) - (n - m - 1) / 2
  }, 0)
  penalty <- if (startsWith(score, "aic")) 1 else if (length(rows)) log(length(rows) / times) / 2 else 0
  sum(each) - length(rows) / times * input$log_unit[node] - penalty * prod(input$levels[categories]) * (m + 2)
}

# ln of a (a + 1) ... (a + n - 1). The difference of two lgamma loses digits where a is large: there Stirling's series
# is taken of the difference itself.
log_rising <- function(a, n) {
  if (a < 1e3) return(lgamma(a + n) - lgamma(a))
  tail <- function(x) 1 / (12 * x) - 1 / (360 * x^3)
  (a - 0.5) * log1p(n / a) + n * log(a + n) - n + tail(a + n) - tail(a)
}

local_gauss <- function(input, node, parents, rows) {
  log_joint <- function(members) {
    l <- length(members)
    if (!l) return(0)
    p <- input$p
    n <- length(rows) / input$completions
    alpha_w <- p + 2
    nu <- if (input$n && !input$standard) colMeans(input$x[, members, drop = FALSE]) else double(l)
    scatter <- diag(0.5, l)
    if (n) {
      x <- input$x[rows, members, drop = FALSE]
      squares <- crossprod(sweep(x, 2L, colMeans(x))) / input$completions
      scatter <- scatter + squares + n / (n + 1) * tcrossprod(nu - colMeans(x))
    }
    half <- (alpha_w - p + l) / 2
    steps <- (seq_len(l) - 1) / 2
    l / 2 * log(1 / (n + 1)) - l * n / 2 * log(pi) + half * l * log(0.5) +
      sum(lgamma(half + n / 2 - steps) - lgamma(half - steps)) -
      (half + n / 2) * as.numeric(determinant(scatter)$modulus)
  }
  log_joint(c(parents, node)) - log_joint(parents)
}
