# Calls of the Bayesian-network room for helper-calls.R: tables, chains and optima are the same bits on both back ends.
calls_bn <- function() {
  list(bn_scores = list(share = 7, make = draw_bn_scores), bn_learn = list(share = 7, make = draw_bn_learn),
       bn_exact = list(share = 4, make = draw_bn_exact), bn_search = list(share = 3, make = draw_bn_search))
}

# Nodes that hang on a hidden number; levels that never occur, constants and copies among them.
some_nodes <- function(p, n, most = 4L) {
  hidden <- stats::rnorm(n)
  columns <- lapply(seq_len(p), function(j) {
    l <- if (chance(0.08)) 1L else if (chance(0.06)) whole(8, 40) else whole(2, most)
    size <- stats::pnorm(hidden * sample(c(-2, 0, 1), 1L) + stats::rnorm(n))
    z <- as.integer(pmin(l, 1 + floor(l * size)))
    if (chance(0.05)) z[] <- 1L
    factor(z, seq_len(l + chance(0.1)))
  })
  d <- list2DF(stats::setNames(columns, sprintf("n%02d", seq_len(p))), n)
  if (p > 1L && chance(0.1)) d[[p]] <- d[[1L]]
  if (chance(0.05)) d[[1L]] <- factor(seq_len(n)) # a level per row
  d
}

some_prior <- function(names) {
  p <- length(names)
  if (chance(0.5)) {
    R <- matrix(0.5, p, p, dimnames = list(names, names))
    R[sample(p * p, min(p * p, 3L))] <- pick(0, 0.2, 0.9)
    diag(R) <- 0.5
    return(R)
  }
  order <- sample(names)
  weft::bn_prior(names, required = if (chance(0.5)) cbind(order[1L], order[2L]),
                 forbidden = if (chance(0.5)) cbind(order[2L], order[1L]),
                 known = if (chance(0.5)) matrix(sample(names, 2L), 1L), prior_scale = pick("log10", "logit"))
}

# What shapes a table.
some_table_settings <- function(d, n) {
  names <- names(d)
  p <- length(names)
  limit <- if (chance(0.15)) stats::setNames(sample(0:3, 1L), sample(names, 1L)) else whole(0, pick(2, 3, 4))
  score <- pick("bdeu", "k2", "bic", "aic", "bds", prob = c(4, 2, 3, 2, 0.2))
  settings <- c(list(max_parents = limit, score = score), maybe(0.3, ess = log_uniform(-3, 4)),
                maybe(0.2, gamma = log_uniform(-3, 1)))
  if (p > 1L && chance(0.2)) settings$prior <- some_prior(names)
  if (p > 3L && chance(0.2)) settings <- c(settings, list(candidates = whole(1, p - 1)), maybe(0.5, plus_one = FALSE))
  if (chance(0.15)) settings$interventions <- sample(c(rep(NA, 3), names), n, TRUE)
  settings
}

some_bn_data <- function(nodes) {
  n <- some_size(300)
  list(data = some_nodes(whole(1, nodes), n), n = n)
}

draw_bn_scores <- function() {
  d <- some_bn_data(11)
  args <- c(list(x = d$data), some_table_settings(d$data, d$n), maybe(0.5, keep = pick("sum", "all")),
            maybe(0.3, slack = pick(0, 1, 20)))
  if (d$n > 3 && chance(0.1)) {
    args$x[[1L]] <- if (chance(0.5)) replace(args$x[[1L]], sample(d$n, 2L), NA)
                       else degenerate_column(pick("empty", "one known", "empty in a group"), args$x[[1L]])
    args$na <- "drop"
  }
  drawn_call("bn_scores", args, fields("start", "score", "parents", "bits"))
}

draw_bn_learn <- function() {
  target <- pick("max", "sum", "uniform")
  d <- some_bn_data(10)
  settings <- some_table_settings(d$data, d$n)
  iterations <- whole(1, 120)
  run <- c(list(iterations = iterations, target = target, seed = whole(0, 1e6)), maybe(0.7, chains = whole(1, 6)),
           maybe(0.8, temperatures = pick(1, c(1, 2), c(1, 1, 3), c(1, 1.5, 2.5, 4, 100))),
           maybe(0.5, swap_every = whole(1, 12)), maybe(0.5, thin = whole(1, min(iterations, 9))),
           maybe(0.3, burn_in = whole(0, iterations - 1)), maybe(0.4, top = whole(1, 40)),
           maybe(0.1, start = sample(names(d$data))))
  table <- function() call_with(weft::bn_scores, c(list(d$data), settings,
                                               list(keep = if (target == "max") "max" else "sum", run = "cpu")))
  args <- if (chance(0.5)) c(list(x = d$data), settings, run)
          else c(list(x = tryCatch(table(), error = function(e) d$data)), run)
  take <- fields("score", "dag", "dags", "best_sets", "edges", "trace", "order", "counts", "sampled", "sample_score",
                 "diagnostics")
  call <- drawn_call("bn_learn", args, take)
  if (chance(0.8)) return(call)
  more <- whole(10, 60)
  call$text <- sprintf("update(%s, iterations = %d)", call$text, more)
  call$run <- function(side) {
    take(stats::update(call_on(side, "bn_learn", args), iterations = more, run = weft_run(threads = side$threads)))
  }
  call
}

draw_bn_exact <- function() {
  d <- some_bn_data(9)
  args <- c(list(x = d$data), some_table_settings(d$data, d$n))
  if (ncol(d$data) <= 6L && chance(0.3)) args$posterior <- pick("dag", "order")
  drawn_call("bn_exact", args, fields("dag", "score", "edges", "log_total"))
}

draw_bn_search <- function() {
  d <- some_bn_data(12)
  numbers <- chance(0.4)
  data <- if (numbers) as.data.frame(some_table(max(d$n, 3), max(ncol(d$data), 2), extreme = 0)) else d$data
  args <- c(list(x = data, kicks = whole(0, 20), starts = whole(1, 3), seed = whole(0, 1e6)),
            maybe(0.5, max_parents = whole(0, 4)), maybe(0.3, gamma = 1), maybe(0.3, candidates = whole(0, 6)),
            if (!numbers) maybe(0.5, score = pick("bdeu", "bic", "k2", "aic")))
  if (nrow(data) > 3L && chance(0.2)) { # in the second row, whose columns have other rows
    args$x[2L, sample(length(data), 1L)] <- NA
    args <- c(args, list(na = "em", completions = 2, rounds = 1))
  }
  drawn_call("bn_search", args, fields("dag", "score", "node_scores", "order", "start_scores", "counts"))
}
