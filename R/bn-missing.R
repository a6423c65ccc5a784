# Missing values of Bayesian networks. Both ways complete the data by draws from a network and score the completed rows
# by the same tables: structural EM scores several completions of every row at once, each as a part of a row (expected
# counts); data augmentation draws network, parameters and missing values in turn, so that a chain goes over all three.

bn_na <- c("fail", "drop", "em", "augment")

# What `na` says among the arguments that go on to bn_scores(); `able`: what the caller can do.
asked_na <- function(..., na = "fail", able, what) {
  na <- check_choice(na, bn_na, "na")
  if (na %in% c("fail", "drop", able)) return(na)
  abort_input(sprintf("`na = \"%s\"` cannot be used with %s.", na, what), x = sprintf("`na = \"%s\"` is.", able[1L]),
              i = if (na == "em") "Expected counts give one network and no posterior.")
}

# ---- data with gaps ----

# The data with each gap filled by an observed value of its column, as numbers in units of their standard deviation or
# level codes; which rows lack which node.
with_gaps <- function(x, score, interventions, key) {
  data <- nodes_frame(x)
  lacking <- lapply(data, function(column) if (is.atomic(column)) which(is.na(column)) else integer())
  for (j in which(lengths(lacking) > 0L)) {
    rows <- lacking[[j]]
    if (length(rows) == length(data[[j]])) {
      abort_input("Every column of `x` must have an observed value.",
                  x = sprintf("`%s` has none.", names(data)[j]), i = "Remove it.")
    }
    observed <- data[[j]][-rows]
    data[[j]][rows] <- observed[1 + floor(draws("uniform", length(rows), key = key, stream = j - 1) * length(observed))]
  }
  kind <- if (score == "bge") "numbers" else if (score %in% mixed_scores) "mixed" else score
  input <- memory_errors(bn_input(data, kind, interventions))
  number <- input$number %||% rep(score == "bge", input$p)
  lost <- which(vapply(seq_len(input$p), function(j) any(input$set[lacking[[j]], j] != 0L), NA))
  if (length(lost)) {
    abort_input("A value set by an intervention must not be missing.",
                x = sprintf("Missing in `%s`.", input$names[lost[1L]]))
  }
  values <- if (is.null(input$codes)) input$x else input$codes + 0
  if (any(number)) values[, number] <- input$x[, number]
  units <- lapply(which(number), function(j) units_of(values[setdiff(seq_len(input$n), lacking[[j]]), j]))
  for (k in seq_along(units)) {
    j <- which(number)[k]
    values[, j] <- (values[, j] / units[[k]]$unit - units[[k]]$origin) / units[[k]]$deviation
  }
  colnames(values) <- input$names
  list(seen = 1 - sum(lengths(lacking)) / length(values), input = input, values = values, lacking = unname(lacking),
       number = number, units = units,
       set = if (!is.null(input$set)) lapply(seq_len(input$n), function(i) input$names[input$set[i, ] != 0L]))
}

units_of <- function(observed) {
  unit <- power_of_two(observed)
  values <- observed / unit
  deviation <- if (length(values) > 1L) stats::sd(values - values[1L]) else 0
  list(unit = unit, origin = mean(values), deviation = if (deviation > 0) deviation else 1)
}

# `values`, the rows of the data one or several times, as data to learn from, which count as `weight` of the rows; in
# the units of the data for users.
frame_of <- function(gaps, values, in_units = FALSE, weight = 1) {
  times <- nrow(values) %/% gaps$input$n
  columns <- lapply(seq_len(ncol(values)), function(j) {
    labels <- gaps$input$labels[[j]]
    if (!gaps$number[j]) return(structure(as.integer(values[, j]) + 1L, levels = labels, class = "factor"))
    if (!in_units) return(unname(values[, j]))
    of <- gaps$units[[match(j, which(gaps$number))]]
    (of$origin + values[, j] * of$deviation) * of$unit
  })
  frame <- as.data.frame(stats::setNames(columns, gaps$input$names), optional = TRUE)
  prepared_data(frame, NULL, completions = times / weight, standard = !in_units, forbidden = gaps$input$forbidden,
                interventions = if (!is.null(gaps$set)) rep(gaps$set, times))
}

# ---- draws of missing values ----

# Missing values of all rows of `values` anew, given the network `fit` with its parameters.
draw_missing <- function(gaps, fit, values, key, round, sweeps = 3) {
  if (fit$gaussian && is.null(gaps$set)) return(draw_jointly(gaps, fit, values, key, round))
  n <- gaps$input$n
  p <- ncol(values)
  copies <- n * (seq_len(nrow(values) %/% n) - 1)
  set <- gaps$input$set
  for (sweep in seq_len(sweeps)) for (j in which(lengths(gaps$lacking) > 0L)) {
    rows <- as.vector(outer(gaps$lacking[[j]], copies, `+`))
    name <- colnames(values)[j]
    children <- which(fit$dag[j, ] != 0)
    near <- unique(c(name, fit$nodes[[j]]$parents, unlist(lapply(fit$nodes[children], `[[`, "parents")),
                     names(fit$nodes)[children]))
    part <- values[rows, near, drop = FALSE]
    counts <- function(child) if (is.null(set)) rep(1, length(rows)) else (set[(rows - 1) %% n + 1, child] == 0L) + 0
    stream <- ((round * sweeps + sweep) * p + j) %% 2^32
    values[rows, j] <- if (gaps$number[j]) {
      draw_number(fit, name, children, part, counts, draws("normal", length(rows), key = key, stream = stream))
    } else {
      draw_category(fit, name, children, part, counts, draws("uniform", length(rows), key = key, stream = stream))
    }
  }
  values
}

# Given its parents, its children, and their other parents. `counts(child)`: 0 where a row says nothing about it.
draw_category <- function(fit, name, children, part, counts, u) {
  levels <- length(fit$labels[[name]])
  weight <- matrix(0, nrow(part), levels)
  for (level in seq_len(levels)) {
    part[, name] <- level - 1
    total <- node_density(fit, name, part)
    for (child in children) {
      own <- node_density(fit, names(fit$nodes)[child], part, least = 1e-6)
      total <- total + replace(own, counts(child) == 0, 0)
    }
    weight[, level] <- total
  }
  weight <- exp(weight - do.call(pmax, as.data.frame(weight)))
  reached <- weight[, 1L]
  level <- double(nrow(part))
  bar <- u * rowSums(weight)
  for (k in seq_len(levels - 1L)) {
    level <- level + (bar > reached)
    reached <- reached + weight[, k + 1L]
  }
  level
}

# Normal: precisions of what its parents and each child that is a number say add up.
draw_number <- function(fit, name, children, part, counts, z) {
  node <- fit$nodes[[name]]
  precision <- 1 / least_sd(gauss_sd(node, part))^2
  sum <- precision * gauss_mean(node, part)
  part[, name] <- 0
  for (child in children) {
    other <- fit$nodes[[child]]
    slope <- if (!is.matrix(other$slopes)) other$slopes[[name]]
             else other$slopes[name, number_configuration(other, part)]
    weight <- counts(child) / least_sd(gauss_sd(other, part))^2
    precision <- precision + weight * slope^2
    sum <- sum + weight * slope * (part[, names(fit$nodes)[child]] - gauss_mean(other, part))
  }
  sum / precision + z / sqrt(precision)
}

# In units of the column: a node that others determine is still drawn.
least_sd <- function(sd) pmax(sd, 1e-6)

# Numbers alone: all that a row lacks at once, from the normal distribution given what it has.
draw_jointly <- function(gaps, fit, values, key, round) {
  n <- gaps$input$n
  copies <- nrow(values) %/% n
  through <- diag(ncol(values))
  for (i in seq_len(ncol(values))) {
    at <- match(fit$nodes[[i]]$parents, colnames(values))
    through[at, i] <- -fit$nodes[[i]]$slopes
  }
  precision <- tcrossprod(through %*% diag(1 / least_sd(vapply(fit$nodes, `[[`, 0, "sd")), ncol(values)))
  mean <- solve(t(through), vapply(fit$nodes, `[[`, 0, "intercept"))
  z <- draws("normal", copies * sum(lengths(gaps$lacking)), key = key, stream = round %% 2^32)
  used <- 0L
  row <- rep(seq_along(gaps$lacking), lengths(gaps$lacking))
  for (lacks in split(cbind(unlist(gaps$lacking), row), unlist(gaps$lacking))) {
    i <- lacks[1L]
    out <- lacks[-seq_len(length(lacks) %/% 2L)]
    root <- chol(precision[out, out, drop = FALSE])
    has <- setdiff(seq_len(ncol(values)), out)
    pull <- precision[out, has, drop = FALSE] %*% (values[i, has] - mean[has])
    centre <- mean[out] - backsolve(root, forwardsolve(t(root), pull))
    noise <- backsolve(root, matrix(z[used + seq_len(length(out) * copies)], length(out)))
    values[i + n * (seq_len(copies) - 1L), out] <- t(noise + as.vector(centre))
    used <- used + length(out) * copies
  }
  values
}

# ---- structural EM ----

# The data with each row completed several times. The network that completes them pays about a nat for each parameter,
# as by AIC: an edge that it lacks is weakened in what it completes, and then not found in that, while one too many does
# no harm. `search`: from completed data, score, gamma and control to a network.
complete_by_em <- function(x, score, ess, interventions, key, control, search) {
  gaps <- with_gaps(x, score, interventions, key)
  if (!sum(lengths(gaps$lacking))) return(list(completed = nodes_frame(x), rounds = 0, completions = 1))
  completions <- check_number(control$completions %||% 10, "completions", min = 2, max = 1000, whole = TRUE)
  rounds <- check_number(control$rounds %||% 8, "rounds", min = 1, max = 1000, whole = TRUE)
  check_completed_memory(gaps$input, completions)
  values <- gaps$values[rep(seq_len(gaps$input$n), completions), , drop = FALSE]
  dag <- tree_of_pairs(gaps)
  easy <- if (score == "bge") score else if (score %in% mixed_scores) "aic-cg" else "aic"
  gamma <- if (score == "bge") max(1, sqrt(gaps$input$n) * exp(-2)) else 1
  for (round in seq_len(rounds + 3)) { # the first three for the parameters of the tree
    if (round > 3) dag <- search(frame_of(gaps, values), easy, gamma, list(starts = 1, kicks = 200))$dag
    fit <- bn_fit(frame_of(gaps, values), dag, ess)
    values <- draw_missing(gaps, fit, values, key, round)
  }
  list(completed = frame_of(gaps, values, in_units = TRUE, weight = gaps$seen), rounds = rounds,
       completions = completions)
}

# A result that was learned from completed data.
by_em <- function(fit, found, call, started) {
  fit[c("completed", "em")] <- list(found$completed, found[c("rounds", "completions")])
  if (!is.null(fit$n)) fit$n <- fit$n %/% found$completions
  attr(fit, "call") <- call
  attr(fit, "seconds") <- proc.time()[[3L]] - started
  fit
}

em_line <- function(x) {
  em <- x[["em"]]
  if (!is.list(em) || !is_count(em$rounds, 1) || !is_count(em$completions)) return(NULL)
  sprintf("Missing values: structural EM (%s, %d completions per row)", several(em$rounds, "round"),
          as.integer(em$completions))
}

check_completed_memory <- function(input, completions) {
  need <- 60 * as.double(input$n) * input$p * completions
  free <- host_free()
  if (free < 0 || need <= free) return(invisible())
  weft_abort("memory", sprintf("The completed rows need about %s of memory; %s is available.", bytes_text(need),
                               bytes_text(free)),
             x = sprintf("There are %s rows of %d nodes, each completed %s times.", number_text(input$n),
                         as.integer(input$p),
                         number_text(completions)), i = "Lower `control$completions`.")
}

# A forest of greatest mutual information, each pair from the rows that have both; numbers in five bins. No number is
# the parent of a category, nor is there what is forbidden.
tree_of_pairs <- function(gaps) {
  p <- ncol(gaps$values)
  nodes <- lapply(seq_len(p), function(j) {
    v <- gaps$values[, j]
    if (gaps$number[j]) v <- findInterval(v, unique(stats::quantile(v, seq(0.2, 0.8, 0.2), names = FALSE)))
    v[gaps$lacking[[j]]] <- NA
    v
  })
  one_hot <- lapply(nodes, function(v) outer(v, sort(unique(v)), `==`) %in% TRUE)
  width <- lengths(one_hot) %/% gaps$input$n
  hot <- matrix(as.double(unlist(one_hot)), gaps$input$n)
  of <- rep(seq_len(p), width)
  seen <- matrix(as.double(!is.na(unlist(nodes))), gaps$input$n)
  entropy <- function(counts) ifelse(counts > 0, counts * log(counts), 0)
  both <- rowsum(t(rowsum(entropy(crossprod(hot)), of)), of)
  own <- rowsum(entropy(crossprod(hot, seen)), of)
  rows <- crossprod(seen)
  gain <- both - own - t(own) + entropy(rows) - outer(width - 1, width - 1) * log(pmax(rows, 1)) / 2
  forbidden <- gaps$input$forbidden
  rank <- order(gaps$number) # categories first
  dag <- matrix(0L, p, p, dimnames = list(from = gaps$input$names, to = gaps$input$names))
  allowed <- matrix(TRUE, p, p)
  allowed[outer(match(seq_len(p), rank), match(seq_len(p), rank), `>`)] <- FALSE
  if (!is.null(forbidden)) allowed <- allowed & !forbidden
  gain[!(allowed | t(allowed))] <- 0
  diag(gain) <- 0
  group <- seq_len(p)
  for (k in order(-gain)) {
    if (gain[k] <= 0) break
    i <- (k - 1L) %% p + 1L
    j <- (k - 1L) %/% p + 1L
    if (!allowed[i, j] || group[i] == group[j]) next
    dag[i, j] <- 1L
    group[group == group[j]] <- group[i]
  }
  dag
}

# For bn_learn(): what it passes on to bn_scores() goes to searches.
em_for_chains <- function(x, score, max_parents, key, control, run, ..., ess = 1, gamma = 1, prior = NULL,
                          candidates = NULL, interventions = NULL, na = "em") {
  complete_by_em(x, score, check_ess(ess), interventions, key, control, function(data, score, gamma, control) {
    bn_search(data, score, max_parents, gamma, candidates, prior, ess = ess, run = run_but(run, progress = FALSE),
              seed = key[2L], control = control)
  })
}

# The parameters of a network by EM, its graph known.
fit_by_em <- function(x, dag, ess, interventions, key, kind) {
  gaps <- with_gaps(x, c(numbers = "bge", mixed = "bic-cg", bdeu = "bdeu")[[kind]], interventions, key)
  check_completed_memory(gaps$input, 20)
  values <- gaps$values[rep(seq_len(gaps$input$n), 20L), , drop = FALSE]
  for (round in seq_len(25L)) {
    values <- draw_missing(gaps, bn_fit(frame_of(gaps, values), dag, ess), values, key, round)
  }
  bn_fit(frame_of(gaps, values, in_units = TRUE), dag, ess)
}

# ---- data augmentation ----

# Chains of bn_learn() each of which draws, in turn: an order or partition and graphs given the completed data, the
# parameters of the last graph, and the missing values. A chain is not heated: its copies would need data of their own.
learn_augmented <- function(x, score, settings, max_parents, control, run, ..., ess = 1, interventions = NULL,
                            na = "augment") {
  if (score %in% mixed_scores) {
    abort_input("`na = \"augment\"` needs columns that are all numeric or all categorical.",
                x = sprintf("The score is \"%s\".", score), i = "Write `target = \"max\"`, and `na = \"em\"`.")
  }
  ess <- check_ess(ess)
  gaps <- with_gaps(x, score, interventions, settings$key)
  rounds <- check_number(control$completions %||% 100, "completions", min = 4, max = 1e6, whole = TRUE)
  steps <- max(1, settings$iterations %/% rounds)
  if (steps >= 10) steps <- steps %/% 10 * 10
  settings[c("iterations", "thin", "burn_in", "beta")] <- list(rounds * steps, steps, (rounds %/% 4) * steps, 1)
  scores <- function(data) {
    bn_scores(data, max_parents = max_parents, score = score, ess = ess, ..., keep = "sum",
              run = run_but(run, ranks = FALSE, progress = FALSE, backend = "cpu"),
              control = control[names(formals(bn_scores_control))])
  }
  chains <- lapply(seq_len(settings$ladders), function(chain) {
    one_augmented(gaps, score, ess, settings, scores, chain, rounds, run)
  })
  augmented_fit(chains, settings, rounds)
}

one_augmented <- function(gaps, score, ess, settings, scores, chain, rounds, run) {
  key <- c(settings$key[1L], (settings$key[2L] + chain) %% 2^32)
  steps <- settings$iterations / rounds
  part <- utils::modifyList(settings, list(ladders = 1, iterations = steps, thin = max(1, steps %/% 10), burn_in = 0))
  p <- gaps$input$p
  part$order <- matrix(-1L, p, 1L)
  if (part$layers) part$layer <- matrix(-1L, p, 1L)
  native <- run_control("cpu", 1, FALSE, gaps$input$names, "Sampling orders")
  values <- gaps$values
  dag <- tree_of_pairs(gaps)
  for (round in 1:3) values <- draw_missing(gaps, bn_fit(frame_of(gaps, values), dag, ess), values, key, round)
  trace <- double(rounds)
  accepted <- 0
  sets <- list()
  for (round in seq_len(rounds)) {
    data <- frame_of(gaps, values)
    table <- scores(data)
    part$first <- (round - 1) * steps
    out <- .Call(C_weft_bn_chain, bn_native_table(table), bn_native_run(part, chain - 1), native)
    part[c("order", "layer")] <- out[c("order", "layer")]
    trace[round] <- out$trace[nrow(out$trace), 1L]
    accepted <- accepted + out$accepted
    drawn <- matrix(out$sampled, p)
    dag <- sets_to_dag(table, drawn[, ncol(drawn), drop = FALSE])
    fit <- draw_parameters(bn_input(data, score), dag, score, ess, key, 2 * round)
    values <- draw_missing(gaps, fit, values, key, round + 3)
    if (round > rounds %/% 4) {
      sets[[length(sets) + 1L]] <- list(members = apply(drawn, 2L, members_of, table = table), score = out$sample_score)
    }
  }
  list(trace = trace, accepted = accepted, table = table,
       members = do.call(cbind, lapply(sets, `[[`, "members")), score = unlist(lapply(sets, `[[`, "score")))
}

# The parents of every node as text, their numbers.
members_of <- function(sets, table) {
  members <- table$parents[, table$start[seq_along(table$nodes)] + sets + 1, drop = FALSE]
  if (!nrow(members)) return(rep("", ncol(members)))
  apply(members, 2L, function(of) paste(of[of > 0L], collapse = " "))
}

# A graph for each column of `members`, as numbers of each node's sets in a list of those that occur (`start`,
# `parents`), which sets_to_dag() reads.
drawn_graphs <- function(members, nodes) {
  p <- length(nodes)
  each <- lapply(seq_len(p), function(i) unique(members[i, ]))
  parents <- lapply(strsplit(unlist(each), " ", fixed = TRUE), as.integer)
  width <- max(lengths(parents))
  list(nodes = nodes, start = c(0, cumsum(lengths(each))),
       parents = matrix(vapply(parents, function(of) c(of, integer(width - length(of))), integer(width)), width),
       sets = vapply(seq_len(ncol(members)), function(k) {
         vapply(seq_len(p), function(i) match(members[i, k], each[[i]]) - 1L, 0L)
       }, integer(p)))
}

augmented_fit <- function(chains, settings, rounds) {
  table <- chains[[1L]]$table
  drawn <- drawn_graphs(do.call(cbind, lapply(chains, `[[`, "members")), table$nodes)
  drawn$sets <- matrix(drawn$sets, length(table$nodes))
  chain <- rep(seq_along(chains), vapply(chains, function(one) ncol(one$members), 0L))
  score <- unlist(lapply(chains, `[[`, "score"))
  share <- lapply(seq_along(chains), function(c) edge_shares(drawn, chain == c))
  edges <- Reduce(`+`, share) / length(share)
  # graphs with the most edges that are likely, less those that are not
  key <- apply(drawn$sets, 2L, paste, collapse = " ")
  first <- which(!duplicated(key))
  dags <- lapply(first, function(k) list(dag = sets_to_dag(drawn, drawn$sets[, k, drop = FALSE]), score = score[k]))
  agrees <- vapply(dags, function(one) sum((edges - 0.5)[one$dag != 0]), 0)
  dags <- dags[utils::head(order(-agrees), settings$best)]
  trace <- do.call(cbind, lapply(chains, `[[`, "trace"))
  colnames(trace) <- paste0("chain", seq_along(chains))
  fit <- list(
    dag = dags[[1L]]$dag, score = dags[[1L]]$score, dags = dags, edges = edges, trace = trace, table = table,
    run = settings, counts = list(accepted = do.call(cbind, lapply(chains, `[[`, "accepted")), swapped = double()),
    sample_score = matrix(score, ncol = length(chains)), iterations = settings$iterations,
    target = bn_targets[1 + settings$sum + settings$layers], completions = rounds, drawn = drawn
  )
  fit$diagnostics <- chain_diagnostics(fit)
  fit$diagnostics$edge_difference <- max(Reduce(pmax, share) - Reduce(pmin, share))
  new_result(fit, class = "weft_bn")
}

# Shares of the graphs `which` that have each edge.
edge_shares <- function(drawn, which) {
  p <- length(drawn$nodes)
  out <- matrix(0, p, p, dimnames = list(from = drawn$nodes, to = drawn$nodes))
  for (i in seq_len(p)) {
    weight <- tabulate(drawn$sets[i, which] + 1L, drawn$start[i + 1L] - drawn$start[i]) / sum(which)
    of <- drawn$parents[, drawn$start[i] + seq_along(weight), drop = FALSE]
    at <- which(of > 0L)
    share <- rowsum(weight[col(of)[at]], of[at])
    out[as.integer(rownames(share)), i] <- share
  }
  out
}

# Parameters from their posterior given a graph and completed data, with the prior of the score: a fitted network.
draw_parameters <- function(input, dag, score, ess, key, stream) {
  gaussian <- score == "bge"
  scatter <- if (gaussian) bn_scatter(input)
  p <- input$p
  nodes <- lapply(seq_len(p), function(i) {
    parents <- which(dag[, i] != 0)
    rows <- if (is.null(input$set)) seq_len(input$n) else which(input$set[, i] == 0L)
    at <- (stream * p + i) %% 2^32
    if (gaussian) draw_line(input, i, parents, rows, scatter, key, at)
    else draw_table(input, i, parents, rows, if (score == "k2") NULL else ess, key, at)
  })
  list(dag = dag, nodes = stats::setNames(nodes, input$names), labels = input$labels, gaussian = gaussian)
}

# Dirichlet draws by gammas; of small shapes a by gamma(a + 1) u^(1 / a), in logarithms.
draw_table <- function(input, node, parents, rows, ess, key, stream) {
  counts <- count_family(input, node, parents, rows)
  shape <- as.double(counts) + if (is.null(ess)) 1 else ess / length(counts)
  u <- draws("uniform", 2 * length(shape), key = key, stream = stream)
  draw <- log(stats::qgamma(u[seq_along(shape)], shape + 1)) + log(u[-seq_along(shape)]) / shape
  draw <- matrix(draw, dim(counts)[1L])
  draw <- exp(draw - rep(apply(draw, 2L, max), each = nrow(draw)))
  probability <- pmax(draw / rep(colSums(draw), each = nrow(draw)), 1e-300)
  list(parents = input$names[parents],
       probability = array(probability, dim(counts), dimnames = input$labels[c(node, parents)]))
}

# For the normal-Wishart posterior behind BGe: R, the posterior scatter matrix, s the residual of the node given its l
# parents in it; variance s / chi^2 with n + l + 3 degrees of freedom (alpha_w - p + l + 1 + n), slopes normal with
# covariance variance x (R of the parents)^-1, and the mean's height with variance / (n + 1).
draw_line <- function(input, node, parents, rows, scatter, key, stream) {
  p <- input$p
  l <- length(parents)
  n <- scatter$scatter_rows[scatter$group[node] + 1L]
  R <- matrix(scatter$scatter[scatter$group[node] * p^2 + seq_len(p^2)], p) # nolint: object_name_linter.
  mean <- colSums(input$x[rows, c(node, parents), drop = FALSE]) / (n + 1)
  u <- draws("uniform", 1, key = key, stream = stream)
  z <- draws("normal", l + 1, key = key, stream = stream, first = 2^20)
  slopes <- double()
  left <- R[node, node]
  if (l) {
    root <- chol(R[parents, parents, drop = FALSE])
    slopes <- backsolve(root, forwardsolve(t(root), R[parents, node]))
    left <- left - sum(slopes * R[parents, node])
  }
  sd <- sqrt(left / (2 * stats::qgamma(u, (n + l + 3) / 2)))
  if (l) slopes <- slopes + sd * backsolve(root, z[-1L])
  list(parents = input$names[parents], intercept = mean[1L] - sum(slopes * mean[-1L]) + sd * z[1L] / sqrt(n + 1),
       slopes = stats::setNames(slopes, input$names[parents]), sd = sd)
}
