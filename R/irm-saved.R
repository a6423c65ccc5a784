# What comes from a file or a saved object: fits, and checkpoints, which hold a run. Native code and everything else
# here trust what they are given, so each field is checked for its type, length and range, and against the others,
# before any use.

# ---- checking lists field by field ----

# need(ok, field, must, x): stops unless `ok`. `what` is damaged, `x` what the field holds; `inside` comes before its
# name.
needs <- function(what, inside = "") {
  function(ok, field, must, x = NULL) {
    if (isTRUE(ok)) return(invisible())
    abort_input(sprintf("%s is damaged: `%s%s` must be %s.", what, inside, field, must),
                x = paste0("It is ", describe_values(x), "."))
  }
}

# Of many numbers, how far they go.
describe_values <- function(x) {
  if (!is.atomic(x)) return(paste("of class", class(x)[1L]))
  if (!is.numeric(x) || is.object(x) || length(x) < 2L) return(describe(x))
  if (anyNA(x)) return(paste0(describe(x), ", with missing values"))
  sprintf("%s, from %s to %s", describe(x), format(min(x)), format(max(x)))
}

by_text <- function(shape) paste(sprintf("%.0f", shape), collapse = " x ")

need_record <- function(need, x, fields, field) {
  missing <- if (is.list(x)) setdiff(fields, names(x))
  need(is_record(x, fields), field, paste("a list with", label_some(if (length(missing)) missing else fields)), x)
}

# The list has these fields, each once.
is_record <- function(x, fields) {
  is.list(x) && is.character(names(x)) && !anyDuplicated(names(x)) && all(fields %in% names(x))
}

# ---- graphs ----

# That lists are sorted and share no pair is checked in native code (src/irm/cpu/input/edges_by_row.c).
check_irm_graph <- function(graph, what, inside = "") {
  need <- needs(what, inside)
  need_record(need, graph, c("type", "self", "links", "missing", "kind", "row_names", "col_names"), "graph")
  need(is_count(graph$type, 0, 2), "graph$type", "0, 1 or 2", graph$type)
  need(identical(graph$kind, irm_types[graph$type + 1]), "graph$kind", "equal to `graph$type`", graph$kind)
  need(is_flag(graph$self) && !(graph$self && graph$type == 0), "graph$self",
       "TRUE or FALSE, and FALSE in bipartite graphs", graph$self)
  check_real_scale(graph, need)
  check_irm_edges(graph$links, "graph$links", need, real = !is.null(graph$values))
  check_irm_edges(graph$missing, "graph$missing", need)
  shape <- list_shape(graph$links)
  need(identical(list_shape(graph$missing), shape), "graph$missing", "of the same shape as `graph$links`",
       list_shape(graph$missing))
  need(graph$type == 0 || shape[1L] == shape[2L], "graph$links", "square in a one-mode graph", shape)
  need(is.null(graph$missing$weight), "graph$missing$weight", "NULL", graph$missing$weight)
  need(is_names(graph$row_names, shape[1L]), "graph$row_names", "NULL or one name for each row", graph$row_names)
  need(is_names(graph$col_names, shape[2L]), "graph$col_names", "NULL or one name for each column", graph$col_names)
  graph
}

list_shape <- function(edges) as.double(c(edges$n_row, edges$n_col))

# Without `values` only what is needed to tell how many links there are.
check_irm_edges <- function(x, field, need, values = TRUE, real = FALSE) {
  inside <- function(name) paste0(field, "$", name)
  need_record(need, x, c("n_row", "n_col", "start", "to", "weight"), field)
  for (name in c("n_row", "n_col")) {
    need(is_count(x[[name]], 1, .Machine$integer.max - 1), inside(name), "a number of nodes", x[[name]])
  }
  count <- length(x$to)
  range <- if (real) c(-most_units, most_units) else c(1L, .Machine$integer.max)
  need((is.null(x$weight) && !real) || is_integers(x$weight, count, range[1L], range[2L]), inside("weight"),
       if (real) "a number of units for each value" else "NULL or a count for each link", x$weight)
  need(is_bare(x$to, "integer", count), inside("to"), "whole numbers", x$to)
  if (!values) return(invisible())
  need(is_integers(x$to, count, 0L, x$n_col - 1), inside("to"), sprintf("columns from 0 to %.0f", x$n_col - 1), x$to)
  ok <- is_reals(x$start, x$n_row + 1, 0, count) && x$start[1L] == 0 && x$start[x$n_row + 1] == count &&
    !is.unsorted(x$start) && all(x$start == floor(x$start))
  need(ok, inside("start"), sprintf("%.0f offsets that ascend from 0 to %.0f", x$n_row + 1, count), x$start)
}

# ---- runs ----

run_fields <- c("graph", "model", "backend", "reason", "family", "sampler", "held", "chains", "done", "target",
                "burn_in", "thin", "seconds", "grows", "first_limits", "init", "state", "trace", "stages")

all_samplers <- c("blocked", "collapsed", "nested")
state_fields <- c("row", "col", "alpha", "beta", "best", "best_row", "best_col", "upper", "best_upper", "drawn")

# Everything that the sampler continues from, and that summaries of samples read. Returns the run.
check_irm_run <- function(job, what) {
  need_record(needs(what), job, run_fields, "run")
  need <- needs(what, "run$")
  check_irm_graph(job$graph, what, "run$")
  need(is_word(job$family, irm_families), "family", "\"bernoulli\", \"poisson\" or \"gaussian\"", job$family)
  need(is_word(job$sampler, all_samplers), "sampler", "\"blocked\", \"collapsed\" or \"nested\"", job$sampler)
  need(is_word(job$backend, c("cpu", "cuda")), "backend", "\"cpu\" or \"cuda\"", job$backend)
  need(is_word(job$reason), "reason", "a text", job$reason)
  need((job$family != "bernoulli") == !is.null(job$graph$links$weight), "graph$links$weight",
       "present only for counts and values", job$graph$links$weight)
  need((job$family == "gaussian") == !is.null(job$graph$values), "graph$values",
       "present only for real values",
       job$graph$values)
  need(job$family != "gaussian" || is.null(job$held), "held", "NULL for real values", job$held)
  need(is_count(job$chains, 1, 1000), "chains", "a whole number from 1 to 1000", job$chains)
  need(is_count(job$done, 0, most_sweeps), "done", "a number of sweeps", job$done)
  need(is_count(job$target, max(1, job$done), most_sweeps), "target", "a number of sweeps of at least `done`",
       job$target)
  need(is.null(job$burn_in) || is_count(job$burn_in, 0, job$target - 1), "burn_in", "NULL or less than `target`",
       job$burn_in)
  need(is_count(job$thin, 1, longest_step), "thin", "a whole number from 1", job$thin)
  need(is_reals(job$seconds, 1L, 0), "seconds", "a time", job$seconds)
  check_irm_held(job$held, list_shape(job$graph$links), need)
  need(is_flag(job$grows), "grows", "TRUE or FALSE", job$grows)
  check_irm_model(job, need)
  check_irm_state(job, need)
  check_irm_trace(job, need)
  job
}

run_nodes <- function(job) c(job$graph$links$n_row, if (job$graph$kind == "bipartite") job$graph$links$n_col else 0)

check_irm_held <- function(held, shape, need) {
  if (is.null(held)) return()
  n <- if (is.data.frame(held)) nrow(held) else 0L
  ok <- n > 0L && identical(names(held), c("row", "col", "count")) && is_integers(held$row, n, 1L, shape[1L]) &&
    is_integers(held$col, n, 1L, shape[2L]) && is_integers(held$count, n, 0L, .Machine$integer.max)
  need(ok, "held", "a data frame of the hidden pairs' `row`, `col` and `count`", held)
}

check_irm_model <- function(job, need) {
  model <- job$model
  fields <- c("sample_alpha", "sample_beta", "hyper", "poisson", "collapsed", "nested", "degrees",
              "max_clusters", "attempts", "key")
  need_record(need, model, fields, "model")
  for (name in c("sample_alpha", "sample_beta", "nested", "degrees")) {
    need(is_flag(model[[name]]), paste0("model$", name), "TRUE or FALSE", model[[name]])
  }
  need(is_reals(model$hyper, 4L, 1e-6, 1e9), "model$hyper", "four numbers from 1e-06 to 1e+09", model$hyper)
  need(identical(model$poisson, job$family == "poisson"), "model$poisson", "TRUE for counts, else FALSE", model$poisson)
  need(identical(model$collapsed, job$sampler == "collapsed"), "model$collapsed",
       "TRUE for the collapsed sampler, else FALSE", model$collapsed)
  need(identical(model$nested, job$sampler == "nested"), "model$nested", "TRUE for nested groups, else FALSE",
       model$nested)
  need(model$nested || !model$degrees, "model$degrees", "FALSE without nested groups", model$degrees)
  need(!model$nested || job$family != "gaussian", "family", "one of links or counts, with nested groups", job$family)
  modes <- run_nodes(job) > 0
  are_limits <- function(k) is_reals(k, 2L, 0, most_labels) && all(k == round(k) & (k > 0) == modes)
  need(are_limits(model$max_clusters), "model$max_clusters",
       sprintf("whole numbers from 1 to %.0f, 0 for what a one-mode graph lacks", most_labels), model$max_clusters)
  need(are_limits(job$first_limits) && all(job$first_limits <= model$max_clusters), "first_limits",
       "whole numbers of at most `model$max_clusters`", job$first_limits)
  need(is_count(model$attempts, 0, most_attempts), "model$attempts", "a number of proposals", model$attempts)
  need(is_reals(model$key, 2L, 0, 2^32 - 1) && all(model$key == floor(model$key)), "model$key",
       "two whole numbers below 2^32", model$key)
}

check_irm_state <- function(job, need) {
  state <- job$state
  need_record(need, state, state_fields, "state")
  most <- job$model$max_clusters
  words <- if (job$model$nested) nested_words(most) * job$chains else 0
  for (name in c("upper", "best_upper")) {
    need(is_integers(state[[name]], words, 0L, sum(most) - 1), paste0("state$", name),
         sprintf("%.0f labels of groups", words), state[[name]])
  }
  masked <- masked_pairs(job$graph, job$model) * job$chains
  need(is_integers(state$drawn, masked, 0L, .Machine$integer.max), "state$drawn",
       sprintf("%.0f counts of missing pairs", masked), state$drawn)
  nodes <- run_nodes(job)
  for (name in c("row", "col", "best_row", "best_col")) {
    mode <- if (endsWith(name, "row")) 1L else 2L
    need(is_integers(state[[name]], nodes[mode] * job$chains, 0L, most[mode] - 1), paste0("state$", name),
         sprintf("%.0f labels from 0 to %.0f", nodes[mode] * job$chains, max(0, most[mode] - 1)), state[[name]])
  }
  init <- job$init
  if (!is.null(init)) need_record(need, init, c("row", "col"), "init")
  for (name in names(init)) {
    mode <- match(name, c("row", "col"))
    need(is_integers(init[[name]], nodes[mode], 0L, most[mode] - 1), paste0("init$", name), "labels from 0",
         init[[name]])
  }
  for (name in c("alpha", "beta")) {
    need(is_reals(state[[name]], 4 * job$chains, least_hyper, most_hyper), paste0("state$", name),
         "four numbers from 1e-09 to 1e+12 for each chain", state[[name]])
  }
  best <- if (job$done == 0) identical(state$best, rep(-Inf, job$chains)) else is_reals(state$best, job$chains)
  need(best, "state$best", "a log posterior for each chain", state$best)
}

check_irm_trace <- function(job, need) {
  trace <- job$trace
  fields <- c("log_posterior", "row_clusters", "col_clusters", "row_full", "col_full", "alpha", "beta", "row_samples",
              "col_samples", "expected")
  if (job$done == 0) {
    need(is.null(trace), "trace", "NULL before the first sweep", trace)
    return()
  }
  need_record(need, trace, fields, "trace")
  steps <- job$done * job$chains
  kept <- job$done %/% job$thin
  most <- job$model$max_clusters
  nodes <- run_nodes(job)
  check <- function(name, ok, shape, must) {
    x <- trace[[name]]
    need(ok(x) && has_shape(x, shape), paste0("trace$", name), paste(must, "of shape", by_text(shape)), x)
  }
  by_sweep <- c(job$done, job$chains)
  check("log_posterior", function(x) is_reals(x, steps), by_sweep, "finite numbers")
  for (mode in 1:2) {
    name <- c("row", "col")[mode]
    one <- as.integer(nodes[mode] > 0)
    check(paste0(name, "_clusters"), function(x) is_integers(x, steps, one, min(most[mode], nodes[mode])), by_sweep,
          "numbers of clusters")
    check(paste0(name, "_full"), function(x) is_integers(x, steps, 0L, one), by_sweep, "0 or 1")
    check(paste0(name, "_samples"), function(x) is_integers(x, nodes[mode] * kept * job$chains, 0L, most[mode] - 1),
          c(nodes[mode], kept, job$chains), "labels of clusters")
  }
  for (name in c("alpha", "beta")) {
    least <- if (name == "beta") least_hyper else 0 # the alpha of a mode that is not there
    check(name, function(x) is_reals(x, 2 * steps, least, most_hyper), c(job$done, 2, job$chains), "numbers")
  }
  sums <- c(masked_pairs(job$graph, job$model), ceiling(job$done / expected_block(job$done)))
  check("expected", function(x) is_reals(x, prod(sums), 0), sums, "sums of expected counts")
  need(is_reals(job$stages, 5L) && is.null(dim(job$stages)), "stages", "five times", job$stages)
}

# ---- fits ----

fit_fields <- c("row_cluster", "col_cluster", "log_posterior", "n_clusters", "consensus", "certainty", "coassignment",
                "eta",
                "links", "pairs", "nmi", "rhat", "alpha", "beta", "auc", "log_loss", "limits", "type", "family",
                "sampler",
                "burn_in", "backend", "reason", "run")

# What a method shows of a fit, and with `job` all that it computes from. Returns the fit.
check_irm_fit <- function(x, job = FALSE) {
  if (!inherits(x, "weft_irm")) {
    abort_input("The fit must be an object returned by `irm()`.", x = paste0("It is ", describe(x), "."))
  }
  check_format(x, "fit")
  need <- needs("The fit")
  x <- unclass(x)
  need_record(need, x, fit_fields, "fit")
  need(is_word(x$type, irm_types), "type", "that of a graph", x$type)
  need(is_word(x$family, irm_families), "family", "\"bernoulli\", \"poisson\" or \"gaussian\"", x$family)
  need(is_word(x$sampler, all_samplers), "sampler", "\"blocked\", \"collapsed\" or \"nested\"", x$sampler)
  need(is_word(x$backend, c("cpu", "cuda")), "backend", "\"cpu\" or \"cuda\"", x$backend)
  need(is_word(x$reason), "reason", "a text", x$reason)
  one_mode <- x$type != "bipartite"
  for (mode in c("row_cluster", "col_cluster")) {
    need(is_partition(x[[mode]]), mode, "clusters numbered by size", x[[mode]])
  }
  need(!one_mode || identical(x$row_cluster, x$col_cluster), "col_cluster", "`row_cluster` in a one-mode graph",
       x$col_cluster)
  check_irm_blocks(x, need)
  trace <- x$log_posterior
  need(length(dim(trace)) == 2L && is_reals(trace, length(trace)) && length(trace) > 0L, "log_posterior",
       "finite numbers by sweep and chain", trace)
  need(is_count(x$burn_in, 0, nrow(trace) - 1), "burn_in", "less than the number of sweeps", x$burn_in)
  check_irm_summaries(x, if (one_mode) "row" else c("row", "col"), need)
  check_irm_held(x$held_out, lengths(x[c("row_cluster", "col_cluster")], use.names = FALSE), need)
  need_record(need, x$run, c("graph", "model", "seconds"), "run")
  need(is_reals(x$run$seconds, 1L, 0), "run$seconds", "a time", x$run$seconds)
  need_record(need, x$run$graph, "links", "run$graph")
  if (x$family == "gaussian") {
    need_record(need, x$run$graph, c("type", "values"), "run$graph")
    check_real_scale(x$run$graph, needs("The fit", "run$"))
    need(!is.null(x$run$graph$values), "run$graph$values", "centre, scale and unit", NULL)
  }
  check_irm_edges(x$run$graph$links, "run$graph$links", need, values = job, real = x$family == "gaussian")
  if (job) check_irm_run(x$run, "The fit")
  check_irm_agreement(x, job, need)
  invisible(x)
}

is_partition <- function(z) {
  n <- length(z)
  if (n == 0L || !is_integers(z, n, 1L, n) || !is_names(names(z), n)) return(FALSE)
  sizes <- tabulate(z, max(z))
  all(sizes > 0L) && !is.unsorted(-sizes)
}

check_irm_blocks <- function(x, need) {
  shape <- c(max(x$row_cluster), max(x$col_cluster))
  cells <- prod(shape)
  real <- x$family == "gaussian"
  top <- if (x$family == "bernoulli") 1 else Inf
  need(is_reals(x$eta, cells, if (real) -Inf else 0, top) && has_shape(x$eta, shape), "eta",
       sprintf("a matrix of %s probabilities, rates or means", by_text(shape)), x$eta)
  if (real) {
    for (name in c("links", "sd")) {
      need(is_reals(x[[name]], cells, if (name == "sd") 0 else -Inf) && has_shape(x[[name]], shape), name,
           sprintf("a matrix of %s numbers", by_text(shape)), x[[name]])
    }
  }
  for (name in c(if (!real) "links", "pairs")) {
    need(is_reals(x[[name]], cells, 0) && has_shape(x[[name]], shape) && all(x[[name]] == round(x[[name]])), name,
         sprintf("a matrix of %s counts", by_text(shape)), x[[name]])
  }
  need(x$family != "bernoulli" || all(x$links <= x$pairs), "links", "at most equal to `pairs`", x$links)
}

check_irm_summaries <- function(x, modes, need) {
  sizes <- list(row = length(x$row_cluster), col = length(x$col_cluster))
  for (field in c("n_clusters", "consensus")) need_record(need, x[[field]], c("row", "col"), field)
  need(is.list(x$coassignment), "coassignment", "a list", x$coassignment)
  for (mode in c("row", "col")) {
    n <- sizes[[mode]]
    need(are_counted(x$n_clusters[[mode]], n), paste0("n_clusters$", mode), "probabilities of numbers of clusters",
         x$n_clusters[[mode]])
    need(length(x$consensus[[mode]]) == n && is_partition(x$consensus[[mode]]), paste0("consensus$", mode),
         sprintf("clusters of %d nodes, numbered by size", n), x$consensus[[mode]])
    together <- x$coassignment[[mode]]
    ok <- is.null(together) || (is_reals(together, as.double(n)^2, 0, 1 + 1e-9) && has_shape(together, c(n, n)))
    need(ok, paste0("coassignment$", mode), sprintf("NULL or %d x %d probabilities", n, n), together)
  }
  check_irm_levels(x, modes, need)
  nmi <- x$nmi
  ok <- is.data.frame(nmi) && identical(names(nmi), c("mode", "nmi", "sd", "chance")) && identical(nmi$mode, modes) &&
    all(vapply(nmi[-1L], is_reals, NA, n = length(modes), missing = TRUE))
  need(ok, "nmi", "a data frame with `nmi`, `sd` and `chance` of each mode", nmi)
  names <- c("log_posterior", paste0(modes, "_clusters"))
  need(is_reals(x$rhat, length(names), missing = TRUE) && identical(names(x$rhat), names), "rhat",
       paste("numbers named", label_some(names)), x$rhat)
  need(is_reals(x$alpha, length(modes), least_hyper, most_hyper), "alpha", "a positive number for each mode", x$alpha)
  need(is_reals(x$beta, 2L, least_hyper, most_hyper), "beta", "two positive numbers", x$beta)
  check_irm_limits(x$limits, modes, need)
  for (name in c("auc", "log_loss")) need(is_reals(x[[name]], 1L, missing = TRUE), name, "a number or NA", x[[name]])
}

# How far samples agree about each node, and nested groups' levels.
check_irm_levels <- function(x, modes, need) {
  need_record(need, x$certainty, c("row", "col"), "certainty")
  for (mode in modes) {
    z <- x[[paste0(mode, "_cluster")]]
    p <- x$certainty[[mode]]
    ok <- is_reals(unname(p), length(z), missing = TRUE) && all(is.na(p) | (p >= 0 & p <= 1))
    need(ok, paste0("certainty$", mode), "a proportion for each node", p)
  }
  if (x$sampler != "nested") {
    need(is.null(x$levels), "levels", "NULL without nested groups", x$levels)
    return(invisible())
  }
  need_record(need, x$levels, modes, "levels")
  for (mode in modes) {
    z <- x$levels[[mode]]
    ok <- is.matrix(z) && nrow(z) == length(x[[paste0(mode, "_cluster")]]) && ncol(z) > 0L &&
      is_integers(c(z), length(z), 1L, nrow(z))
    need(ok, paste0("levels$", mode), "a matrix of groups by node and level", z)
  }
}

# Probabilities with numbers of clusters for names, of n nodes.
are_counted <- function(counts, n) {
  numbers <- suppressWarnings(as.numeric(names(counts)))
  length(counts) > 0L && is_reals(counts, length(counts), 0, 1 + 1e-9) && abs(sum(counts) - 1) < 1e-6 &&
    length(numbers) == length(counts) && !anyDuplicated(numbers) && is_numbers(numbers, min = 1, max = n, whole = TRUE)
}

check_irm_limits <- function(limits, modes, need) {
  n <- length(modes)
  ok <- is.data.frame(limits) && identical(names(limits), c("mode", "limit", "full", "first", "alpha", "sweeps")) &&
    identical(limits$mode, modes) && is_reals(limits$limit, n, 1, most_labels) &&
    is_reals(limits$first, n, 1, most_labels) && is_bare(limits$full, c("double", "logical"), n) &&
    all(is.na(limits$full) | (limits$full >= 0 & limits$full <= 1)) &&
    is_reals(limits$alpha, n, least_hyper, most_hyper) && is_integers(limits$sweeps, n, 1L, .Machine$integer.max)
  need(ok, "limits", "a data frame of the limits of each mode", limits)
}

# What summary() returned.
check_irm_summary <- function(x) {
  check_format(x, "x")
  need <- needs("The summary")
  x <- unclass(x)
  need_record(need, x, c("sizes", "type", "n_clusters", "density", "rhat", "convergence", "certainty", "consensus",
                         "glance", "limits"), "summary")
  need(is_word(x$type, irm_types), "type", "that of a graph", x$type)
  check_irm_limits(x$limits, if (x$type == "bipartite") c("row", "col") else "row", need)
  of_values <- is_reals(x$explained, 1L, 0, 1) && length(x$density) == 1L && is.na(x$density)
  need(of_values || is_reals(x$density, 1L, 0), "density", "a number", x$density)
  need(is.data.frame(x$glance) && is_reals(x$glance$log_posterior, 1L), "glance", "a data frame of one row", x$glance)
  named <- function(v) length(v) > 0L && is_text(names(v), length(v))
  need(named(x$rhat) && is_reals(x$rhat, length(x$rhat), missing = TRUE), "rhat", "named numbers", x$rhat)
  need(is_word(x$convergence), "convergence", "a text", x$convergence)
  modes <- c("row", "col")
  need(is_reals(unname(x$certainty), 2L, 0, 1 + 1e-9, missing = TRUE) && identical(names(x$certainty), modes),
       "certainty", "proportions for rows and columns", x$certainty)
  need(is_integers(unname(x$consensus), 2L, 1L, .Machine$integer.max) && identical(names(x$consensus), modes),
       "consensus", "numbers of clusters of rows and columns", x$consensus)
  for (field in c("sizes", "n_clusters")) need_record(need, x[[field]], c("row", "col"), field)
  for (mode in c("row", "col")) {
    sizes <- x$sizes[[mode]]
    need(is_integers(sizes, length(sizes), 1L, .Machine$integer.max), paste0("sizes$", mode), "sizes of clusters",
         sizes)
    counts <- x$n_clusters[[mode]]
    need(named(counts) && is_reals(counts, length(counts), 0, 1 + 1e-9), paste0("n_clusters$", mode),
         "named probabilities", counts)
  }
}

# The fit beside the run that it came from.
check_irm_agreement <- function(x, whole, need) {
  job <- x$run
  shape <- c(length(x$row_cluster), length(x$col_cluster))
  need(all(list_shape(job$graph$links) == shape), "run$graph$links", sprintf("of %s nodes", by_text(shape)),
       list_shape(job$graph$links))
  if (!whole) return()
  same <- function(a, b, field, as) need(identical(a, b), paste0("run$", field), sprintf("as `%s`", as), b)
  for (field in c("family", "sampler", "backend", "reason")) same(x[[field]], job[[field]], field, field)
  same(x$held_out, job$held, "held", "held_out")
  same(x$limits$limit, job$model$max_clusters[seq_along(x$limits$limit)], "model$max_clusters", "limits")
  same(x$type, job$graph$kind, "graph$kind", "type")
  need(has_shape(x$log_posterior, c(job$done, job$chains)), "run$done", "the number of sweeps of `log_posterior`",
       job$done)
}

# ---- checkpoints ----

checkpoint_format <- "weft irm 4"

# A run can be saved at `path`, as far as can be seen beforehand: NULL, or why not.
checkpoint_problem <- function(path) if (!is.null(path)) write_problem(path)

# Saves the run under its checkpoint's name, in one step: NULL, or why that failed; in that case what was there before
# is kept.
save_checkpoint <- function(job) {
  path <- path.expand(job$checkpoint)
  job["checkpoint"] <- NULL
  job$graph["prepared"] <- NULL
  saved <- list(format = checkpoint_format, checksum = .Call(C_weft_irm_saved_sum, job), run = job)
  bytes <- tryCatch(serialize(saved, NULL, version = 2L), error = function(e) NULL)
  if (is.null(bytes)) return("needs more memory than is available")
  .Call(C_weft_file_write, path, bytes)
}

# The run of a checkpoint. Nothing in the file is evaluated: see src/irm/r/saved.c.
read_checkpoint <- function(file) {
  refuse <- function(why) abort_input("`file` must be a checkpoint of `irm()`.", x = paste(describe(file), why))
  saved <- tryCatch(.Call(C_weft_irm_saved_read, file_bytes(file)), error = function(e) {
    if (inherits(e, "weft_error")) stop(e)
    refuse(paste0(conditionMessage(e), "."))
  })
  ours <- is_record(saved, "format") && is_word(saved$format) && startsWith(saved$format, "weft irm ")
  if (!ours) refuse("has another format.")
  if (saved$format != checkpoint_format) {
    refuse(sprintf("has format \"%s\"; this version of weft reads \"%s\".", saved$format, checkpoint_format))
  }
  job <- check_irm_run(saved$run, describe(file))
  need <- needs(describe(file), "run$")
  need(is_count(job$save_every, 1, longest_step), "save_every", "a whole number from 1", job$save_every)
  job["checkpoint"] <- NULL
  if (!identical(saved$checksum, .Call(C_weft_irm_saved_sum, job))) {
    abort_input(sprintf("%s is damaged: its checksum does not match its content.", describe(file)),
                x = "It was modified after weft wrote it.")
  }
  job
}

# The bytes of a file, which may be gzipped.
file_bytes <- function(file) {
  input <- open_to_read(file, "file", "a checkpoint of `irm()`")
  on.exit(close(input))
  pieces <- list(next_bytes(input, 14L, file))
  if (!identical(pieces[[1L]][1:2], charToRaw("X\n"))) stop("has another format")
  available <- host_free()
  size <- 0
  ask <- 2^16 # what is asked for is allocated, however short the file is
  repeat {
    piece <- next_bytes(input, ask, file)
    if (!length(piece)) return(do.call(c, pieces))
    ask <- min(2 * ask, 2^26)
    size <- size + length(piece)
    if (available >= 0 && 3 * size > available) {
      weft_abort("memory", "A checkpoint must fit into memory.",
                 x = sprintf("%s contains more than %.3g bytes.", describe(file), size))
    }
    pieces[[length(pieces) + 1L]] <- piece
  }
}
