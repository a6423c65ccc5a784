# Checks of what the Bayesian-network functions are handed: saved tables, networks and fits (see R/saved.R), and the
# memory that chains take.

# ---- saved tables ----

# `values`: the sets and scores too, which native code relies on; without them, what printing needs.
check_bn_table <- function(x, arg, values = TRUE) {
  check_at_once(x, arg, "bn_scores()", function(need) {
    need("nodes", function(v) is_labels(v) && length(v) <= 4096L, "different names, at most 4096")
    p <- length(x[["nodes"]])
    need("type", function(v) is_word(v, bn_score_types), "the name of a score")
    need("n", function(v) is_numbers(v, 1L, min = 0, max = 2^31 - 1, whole = TRUE), "a whole number")
    need("keep", function(v) is_word(v, c("max", "sum", "all")), "\"max\", \"sum\" or \"all\"")
    need("slack", function(v) is_numbers(v, 1L, min = 0, finite = FALSE), "a number of at least 0")
    need("max_parents", function(v) is_numbers(v, p, min = 0, whole = TRUE), "whole numbers, one per node")
    need("predicted", function(v) is.data.frame(v) && is_numbers(v[["sets"]], 1L, min = 0),
         "a data frame with the number of sets")
    rises <- function(v) is.double(v) && is_numbers(v, p + 1L, whole = TRUE) && v[1L] == 0 && all(diff(v) >= 1)
    need("start", rises, "increasing whole numbers from 0, one per node plus one")
    total <- x[["start"]][p + 1L]
    need("score", function(v) is.double(v) && length(v) == total, "numbers, one per set")
    need("parents", function(v) is.matrix(v) && is.integer(v) && ncol(v) == total && nrow(v) <= p,
         "a matrix of integers, one column per set")
    need("bits", function(v) is_numbers(v, 1L, min = -1074, max = 40, whole = TRUE), "a whole number of at most 40")
  })
  check_at_once(x, arg, "bn_scores()", check_run_record, function(part) attr(x, part, exact = TRUE))
  if (!values) return(invisible(x))
  wrong <- .Call(C_weft_bn_wrong, bn_native_table(x), run_control("cpu", 1, FALSE, task = "Checking the table"))
  if (!is.null(wrong)) {
    abort_damaged(arg, "bn_scores()", sprintf("Node `%s` has %s.", x[["nodes"]][wrong$node], wrong$what))
  }
  invisible(x)
}

# ---- saved networks ----

is_dag <- function(x) {
  is.matrix(x) && is_table(x, nrow(x), nrow(x), min = 0, max = 1, whole = TRUE) && is_labels(rownames(x)) &&
    identical(rownames(x), colnames(x)) && !length(find_cycle(x != 0))
}

is_edges <- function(x, nodes) {
  is_table(x, length(nodes), length(nodes), min = 0, max = 1 + 1e-9) && identical(rownames(x), nodes) &&
    identical(colnames(x), nodes)
}

# What printing, plotting and converting need of a result of bn_learn(), bn_exact() or bn_search().
check_bn <- function(x, arg) {
  exact <- inherits(x, "weft_bn_exact")
  search <- inherits(x, "weft_bn_search")
  maker <- if (exact) "bn_exact()" else if (search) "bn_search()" else "bn_learn()"
  need <- parts_of(x, arg, maker)
  need("dag", is_dag, "an acyclic matrix of 0 and 1 with the nodes as row and column names")
  nodes <- rownames(x[["dag"]])
  need("score", function(v) is_numbers(v, 1L), "a number")
  need("edges", function(v) is.null(v) || is_edges(v, nodes),
       "NULL or a matrix of probabilities with the nodes as row and column names")
  if (search) return(check_bn_search(x, need))
  need("table", function(v) {
    parts <- unclass(v)
    inherits(v, "weft_bn_scores") && identical(parts[["nodes"]], nodes) && is_word(parts[["type"]], bn_score_types)
  }, "a table of scores for the same nodes")
  check_run_record(parts_of(x, arg, maker, function(part) attr(x, part, exact = TRUE)))
  if (exact) {
    need("posterior", function(v) is_word(v, c("none", "dag", "order")) && (v == "none") == is.null(x[["edges"]]),
         "\"none\", \"dag\" or \"order\", as `edges` are")
    return(invisible(x))
  }
  need("target", function(v) is_word(v, bn_targets) && (v == "max") == is.null(x[["edges"]]),
       "\"max\", \"sum\" or \"uniform\", as `edges` are")
  need("run", is_run, "the settings of the chains")
  ladders <- x[["run"]]$ladders
  need("run", function(v) identical(bn_targets[1 + v$sum + v$layers], x[["target"]]), "settings for the same target")
  need("iterations", function(v) is_numbers(v, 1L, min = 1, max = 2^53, whole = TRUE), "a whole number of at least 1")
  need("trace", function(v) is.matrix(v) && is.double(v) && nrow(v) > 0L && is_table(v, nrow(v), ladders),
       "a matrix of scores, one column per chain")
  need("diagnostics", function(v) is_diagnostics(v, x[["target"]]), "a list of diagnostics")
  need("sample_score", function(v) is_numbers(v) && (x[["target"]] == "max" || length(v) > 0L), "numbers")
  need("dags", function(v) {
    is.list(v) && length(v) > 0L && all(vapply(v, function(one) {
      is.list(one) && is_table(one[["dag"]], length(nodes), length(nodes), min = 0, max = 1) &&
        is_numbers(one[["score"]], 1L)
    }, NA))
  }, "a list of networks with their scores")
  invisible(x)
}

check_bn_search <- function(x, need) {
  check_run_record(parts_of(x, "x", "bn_search()", function(part) attr(x, part, exact = TRUE)))
  need("edges", is.null, "NULL")
  need("type", function(v) is_word(v, bn_score_types), "the name of a score")
  need("start_scores", function(v) is_numbers(v) && length(v) > 0L, "numbers")
  need("counts", function(v) is_numbers(v, 4L, min = 0) && all(c("moves", "sets") %in% names(v)), "four named numbers")
  invisible(x)
}

is_run <- function(x) {
  counts <- list(ladders = 1e5, iterations = 2^53, thin = 2^53, swap_every = 2^31, best = 1e5)
  beta <- x[["beta"]]
  is.list(x) && all(vapply(names(counts), function(part) is_count(x[[part]], 1, counts[[part]]), NA)) &&
    is_count(x[["burn_in"]]) && is_count(x[["first"]]) && is_flag(x[["sum"]]) && is_flag(x[["layers"]]) &&
    is_flag(x[["graphs"]]) && (x[["layers"]] || !x[["graphs"]]) && (x[["sum"]] || !x[["layers"]]) &&
    is.double(x[["key"]]) && is_numbers(x[["key"]], 2L, min = 0, max = 2^32 - 1, whole = TRUE) &&
    is.double(beta) && length(beta) %in% 1:1000 && is_numbers(beta, min = 0, max = 1) &&
    beta[1L] == 1 && all(diff(beta) <= 0)
}

is_diagnostics <- function(x, target) {
  number_or_na <- function(v) is.numeric(v) && length(v) == 1L
  is.list(x) && number_or_na(x[["r_hat"]]) && number_or_na(x[["ess"]]) && is.matrix(x[["acceptance"]]) &&
    is.numeric(x[["acceptance"]]) && (is.null(x[["swaps"]]) || is.numeric(x[["swaps"]])) &&
    (target == "max" || number_or_na(x[["edge_difference"]]))
}

# What update() needs in addition, to continue.
check_bn_chains <- function(x, arg) {
  check_bn(x, arg)
  need <- parts_of(x, arg, "bn_learn()")
  if (inherits(x, c("weft_bn_exact", "weft_bn_search"))) {
    abort_input(sprintf("`%s` must be an object returned by `bn_learn()`.", arg),
                x = if (inherits(x, "weft_bn_exact")) "An exact result has no chains to continue."
                    else "A network found by local search has no chains to continue.")
  }
  check_bn_table(x[["table"]], sprintf("%s$table", arg))
  settings <- x[["run"]]
  p <- nrow(x[["dag"]])
  replicas <- settings$ladders * length(settings$beta)
  sets <- diff(x[["table"]]$start)
  # recycled: the first dimension is the nodes
  within_sets <- function(v) is.integer(v) && !anyNA(v) && all(v >= 0L & v < sets)
  orders <- function(v) {
    is.integer(v) && is_table(v, p, replicas, min = 0, max = p - 1) && all(apply(v, 2L, anyDuplicated) == 0L)
  }
  need("order", orders, "node orders, one column per chain and temperature")
  layers <- function(v) {
    if (settings$graphs) is_table(v, p, replicas) && within_sets(v)
    else if (settings$layers) is.integer(v) && is_table(v, p, replicas, min = 0, max = p - 1) else is.null(v)
  }
  need("layer", layers, "the layer or set of each node, one column per chain and temperature, or NULL for orders")
  need("counts", function(v) {
    is_table(v[["accepted"]], if (settings$graphs) 6L else length(move_shares(settings)) + 1L, replicas, min = 0) &&
      is_numbers(v[["swapped"]], 2 * settings$ladders * (length(settings$beta) - 1), min = 0)
  }, "the numbers of moves and swaps")
  need("best_score", function(v) is_numbers(v) && length(v) > 0L, "numbers")
  need("best_sets", function(v) is.matrix(v) && nrow(v) == p && ncol(v) == length(x[["best_score"]]) && within_sets(v),
       "numbers of sets, one column per network")
  if (!settings$sum) return(invisible(x))
  need("sampled",
       function(v) length(dim(v)) == 3L && all(dim(v)[c(1L, 3L)] == c(p, settings$ladders)) && within_sets(v),
       "numbers of sets for each node, saved step and chain")
  need("sample_score", function(v) is_table(v, dim(x[["sampled"]])[2L], settings$ladders),
       "numbers for each saved step and chain")
  invisible(x)
}

# The graphs of chains that also drew missing values.
check_drawn <- function(x) {
  drawn <- x[["drawn"]]
  need <- parts_of(drawn, "fit$drawn", "bn_learn()")
  p <- nrow(x[["dag"]])
  need("nodes", function(v) identical(v, rownames(x[["dag"]])), "the names of the nodes")
  need("start", function(v) is_numbers(v, p + 1L, whole = TRUE) && v[1L] == 0 && all(diff(v) >= 1),
       "increasing whole numbers from 0, one per node plus one")
  need("parents", function(v) {
    is.matrix(v) && is.integer(v) && ncol(v) == drawn$start[p + 1L] && is_table(v, nrow(v), ncol(v), min = 0, max = p)
  }, "a matrix of nodes, one column per set")
  need("sets", function(v) {
    is.matrix(v) && is.integer(v) && nrow(v) == p && ncol(v) == length(x[["sample_score"]]) && !anyNA(v) &&
      all(v >= 0L & v < diff(drawn$start))
  }, "numbers of sets, one column per network")
  invisible(x)
}

# ---- saved fits and priors ----

check_fit <- function(x, arg = "fit") {
  if (!inherits(x, "weft_bn_fit")) {
    abort_input(sprintf("`%s` must be an object returned by `bn_fit()`.", arg), x = paste0("It is ", describe(x), "."))
  }
  need <- parts_of(x, arg, "bn_fit()")
  need("dag", is_dag, "an acyclic matrix of 0 and 1 with the nodes as row and column names")
  dag <- x[["dag"]]
  need("gaussian", is_flag, "TRUE or FALSE")
  need("n", function(v) is_numbers(v, 1L, min = 0, max = 2^31 - 1, whole = TRUE), "a whole number")
  need("labels", function(v) {
    if (x[["gaussian"]]) is.null(v)
    else is.list(v) && identical(names(v), rownames(dag)) &&
      all(vapply(v, function(levels) is.null(levels) || is_levels(levels), NA))
  }, "the levels of every node")
  need("nodes", function(v) {
    is.list(v) && identical(names(v), rownames(dag)) && all(vapply(rownames(dag), function(name) {
      is_node(v[[name]], name, rownames(dag)[dag[, name] != 0], x[["labels"]])
    }, NA))
  }, "the distribution of every node given its parents in `dag`")
  invisible(x)
}

is_levels <- function(x) is.character(x) && length(x) > 0L && !anyDuplicated(x) # one may be NA

is_node <- function(node, name, parents, labels) {
  if (!is.list(node) || !identical(node[["parents"]], parents)) return(FALSE)
  if (!is.null(labels) && is.null(labels[[name]])) return(is_mixed_node(node, parents, labels))
  if (is.null(labels)) {
    slopes <- node[["slopes"]]
    return(is_number(node[["intercept"]]) && is_number(node[["sd"]], min = 0) && is_numbers(slopes, length(parents)) &&
             identical(names(slopes) %||% character(), parents))
  }
  v <- node[["probability"]]
  levels <- labels[c(name, parents)]
  is_numbers(v, min = 0, max = 1 + 1e-9) && identical(dim(v), lengths(levels, use.names = FALSE)) &&
    identical(dimnames(v), levels) && all(abs(colSums(matrix(v, dim(v)[1L])) - 1) < 1e-6)
}

# A number among categories: one configuration after the other.
is_mixed_node <- function(node, parents, labels) {
  category <- !vapply(labels[parents], is.null, NA)
  if (!any(category)) return(is_node(node, "", parents, NULL))
  levels <- labels[parents[category]]
  dims <- lengths(levels, use.names = FALSE)
  by_cell <- function(v, min) {
    is_numbers(v, prod(dims), min = min) && identical(dim(v), dims) && identical(dimnames(v), levels)
  }
  slopes <- node[["slopes"]]
  by_cell(node[["intercept"]], -Inf) && by_cell(node[["sd"]], 0) && is.matrix(slopes) &&
    is_table(slopes, sum(!category), prod(dims)) && identical(rownames(slopes) %||% character(), parents[!category])
}

check_prior <- function(x, arg = "prior") {
  need <- parts_of(x, arg, "bn_prior()")
  need("R", function(v) {
    is_table(v, nrow(v), nrow(v), min = 0, max = 1) && is_labels(rownames(v)) && identical(rownames(v), colnames(v))
  }, "a matrix of numbers from 0 to 1 with the nodes as row and column names")
  nodes <- rownames(x[["R"]])
  of_nodes <- function(v) identical(rownames(v), nodes) && identical(colnames(v), nodes)
  need("nats", function(v) is_table(v, length(nodes), length(nodes)) && of_nodes(v),
       "a finite matrix of the shape of `R`")
  for (part in c("required", "forbidden")) {
    need(part, function(v) is.matrix(v) && is.logical(v) && !anyNA(v) && of_nodes(v) && !any(diag(v)),
         "a logical matrix of the shape of `R` that is FALSE on the diagonal")
  }
  invisible(x)
}

check_comparison <- function(x, arg = "x") {
  need <- parts_of(x, arg, "bn_compare()")
  rate <- function(v) is.numeric(v) && length(v) == 1L && (is.na(v) || is_numbers(v, 1L, min = 0, max = 1))
  for (part in c("tpr", "fpr", "skeleton_tpr", "skeleton_fpr")) need(part, rate, "a number from 0 to 1, or NA")
  distance <- function(v) is.numeric(v) && length(v) == 1L && (is.na(v) || is_numbers(v, 1L, min = 0, whole = TRUE))
  for (part in c("shd", "shd_cpdag")) need(part, distance, "a whole number, or NA")
  need("roc", function(v) {
    is.null(v) || (is_frame(v) && all(vapply(v[c("tpr", "fpr")], is.numeric, NA)) &&
                   (is.numeric(v[["threshold"]]) || is.character(v[["entry"]])))
  }, "NULL or a data frame of rates")
  invisible(x)
}

# ---- memory ----

most_saved_steps <- 2^29 # of a chain: the Fourier transform of its scores is still one of R's

# Before anything of the size of a run is allocated: scores and graphs that are saved, the chains' own state, and what
# the diagnostics take. `before`: steps that are saved already.
check_chain_memory <- function(settings, p, before = 0) {
  at_thin <- function(thin) {
    saved <- settings$iterations %/% thin + before
    samples <- if (settings$sum) max(0, saved - settings$burn_in %/% thin) else 0
    padded <- padded_length(max(saved, 1))
    traces <- 4 * 8 * saved * settings$ladders + 100 * min(max(padded, trace_cells), padded * settings$ladders)
    words <- ceiling(p / 64)
    replica <- 16 * p * words + 40 * p + 64
    # of layers: their members, what was before, what is proposed, a drawn graph, and 4,096 values that are remembered
    if (settings$graphs) replica <- replica + 32 * p * words + 4 * p * (512 * 12 + 40) # tables of sets (graphs.c)
    else if (settings$layers) replica <- replica + 32 * p * words + 12 * p + 4096 * (16 * words + 12)
    list(saved = saved, bytes = traces + 2 * (4 * p + 8) * samples * settings$ladders +
           settings$ladders * (length(settings$beta) * replica + settings$best * (24 + 4 * p)))
  }
  free <- host_free()
  fits <- function(need, part = 1) need$saved <= most_saved_steps && (free < 0 || need$bytes <= part * free)
  need <- at_thin(settings$thin)
  if (fits(need)) return(invisible())
  thinner <- 2^seq(ceiling(log2(settings$thin + 1)), 53)
  enough <- thinner[thinner <= settings$iterations & vapply(thinner, function(thin) fits(at_thin(thin), 0.5), NA)]
  at_most <- sprintf("; at most %s steps can be saved", number_text(most_saved_steps))
  weft_abort(
    "memory", sprintf("The chains need about %s of memory; %s is available.", bytes_text(need$bytes),
                      if (free < 0) "an unknown amount" else bytes_text(free)),
    x = sprintf("%s saved steps of %s ladders of %d temperatures, %d nodes%s.", number_text(need$saved),
                number_text(settings$ladders), length(settings$beta), p,
                 if (need$saved > most_saved_steps) at_most else ""),
    i = if (length(enough)) sprintf(if (before) "Learn the network again with a larger `thin`, for example %s."
                                    else "Save fewer steps: raise `thin`, for example to %s.", number_text(enough[1L]))
        else "Use fewer `chains` or `temperatures`, or a smaller `top`."
  )
}
