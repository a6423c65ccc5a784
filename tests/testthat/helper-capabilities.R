# What inst/capabilities.csv says of a function, asked of the function itself: the data in another container or with
# other content, or one argument more. "yes" where the call works, "no" where it is an error of weft's own or the
# function has no such argument, NA where this machine cannot tell.

capability_calls <- function() {
  set.seed(1)
  binary <- matrix(rbinom(240, 1, 0.4), 40, dimnames = list(NULL, letters[1:6]))
  class <- rep(0:1, 20)
  numbers <- matrix(rnorm(240), 40, dimnames = list(NULL, letters[1:6]))
  few <- list(chains = 2, iterations = 200, seed = 1)
  with_class <- function(f, ...) list(f = f, data = "x", args = list(x = binary, class = class, ...))
  of_numbers <- function(f, ..., data = "x") {
    list(f = f, data = data, args = c(stats::setNames(list(numbers), data), list(...)))
  }
  densities <- function(x, bandwidth, seed = NULL, run = NULL) { # the sums are taken by predict()
    stats::predict(kde(x, bandwidth, seed = seed, run = run), x,
                   run = if (!inherits(run, "weft_run") || !run$ranks) run)
  }
  list(
    mi_rank = with_class(mi_rank), mi_pairs = with_class(mi_pairs), mi_triples = with_class(mi_triples),
    mi_tuples = with_class(mi_tuples, features = 1:4),
    pair_scan = list(f = pair_scan, data = "x", args = list(x = binary, outcome = numbers[, 1])),
    mi_matrix = list(f = mi_matrix, data = "x", args = list(x = binary)),
    mi_network = of_numbers(mi_network, method = "aracne", estimator = "copula"),
    "mi_network, method = \"relnet\"" = of_numbers(mi_network, method = "relnet", estimator = "copula",
                                                   threshold = 0.1), mi_select = with_class(mi_select, k = 2),
    transfer_entropy = of_numbers(transfer_entropy, time = seq_len(nrow(numbers)), permutations = 2),
    discretize = of_numbers(discretize, bins = 3),
    pca = of_numbers(pca, k = 2), pca_choose_k = of_numbers(pca_choose_k, method = "gavish_donoho"),
    bn_scores = list(f = bn_scores, data = "x", args = list(x = binary, max_parents = 2)),
    "bn_scores, score = \"bge\"" = list(f = bn_scores, data = "x",
                                        args = list(x = numbers, score = "bge", max_parents = 2)),
    "bn_scores, score = \"bds\"" = list(f = bn_scores, data = "x",
                                        args = list(x = binary, score = "bds", max_parents = 2)),
    "bn_scores, score = \"bic-cg\"" = list(f = bn_scores, data = "x",
                                           args = list(x = binary, score = "bic-cg", max_parents = 2)),
    bn_learn = list(f = bn_learn, data = "x", args = c(list(x = binary, max_parents = 2), few)),
    bn_exact = list(f = bn_exact, data = "x", args = list(x = binary, max_parents = 2)),
    bn_search = list(f = bn_search, data = "x", args = list(x = numbers, control = list(kicks = 5))),
    "bn_search, score = \"bic\"" = list(f = bn_search, data = "x",
                                        args = list(x = binary, score = "bic", control = list(kicks = 5))),
    kernel_sum = of_numbers(kernel_sum, bandwidth = 1), kernel_gradient = of_numbers(kernel_gradient),
    kde = of_numbers(densities, bandwidth = "scott"),
    kernel_regression = of_numbers(kernel_regression, y = numbers[, 1], bandwidth = 1),
    gp_regression = of_numbers(gp_regression, y = numbers[, 1]), kernel_pca = of_numbers(kernel_pca, k = 2),
    irm = list(f = irm, data = "x", args = list(x = binary, chains = 1, sweeps = 4, seed = 1)),
    "irm, real values" = list(f = irm, data = "x",
                              args = list(x = numbers, family = "gaussian", chains = 1, sweeps = 4, seed = 1)),
    "irm, degrees" = list(f = irm, data = "x", args = list(x = binary, prior = irm_prior(degrees = TRUE), chains = 1,
                                                           sweeps = 4, seed = 1)),
    irm_log_posterior = list(f = irm_log_posterior, data = "x",
                             args = list(x = binary, row_cluster = rep(1:2, 20), col_cluster = rep(1:2, 3))),
    regulation = of_numbers(regulation, control = list(resamples = 4)),
    "regulation, interventions and time" = of_numbers(
      regulation, interventions = rep(c("", "a", "b"), c(30, 5, 5)), control = list(resamples = 4),
      time = list(c(rep(1:10, 2), rep(NA, 20)), rep(1:4, each = 10))),
    gene_ranking = of_numbers(gene_ranking, class), gene_clusters = of_numbers(gene_clusters, k = 2, seed = 1),
    gene_modules = of_numbers(gene_modules, seed = 1),
    gene_cells = list(f = gene_cells, data = "x", args = list(x = binary, k = 2, sweeps = 10, seed = 1))
  )
}

capability_of <- function(call, what) {
  args <- call$args
  known <- names(formals(call$f))
  x <- args[[call$data]]
  needs <- c(cuda = "run", devices = "run", ranks = "run", seed = "seed")
  if (what %in% names(needs) && !needs[[what]] %in% known) return("no")
  if (what %in% c("cuda", "devices") && !nrow(weft_devices())) return(NA_character_)
  if (what == "ranks" && !isTRUE(weft_sitrep()$mpi)) return(NA_character_)
  if (what == "delayed" && !requireNamespace("DelayedArray", quietly = TRUE)) return(NA_character_)
  args <- switch(what,
    cpu = if ("run" %in% known) c(args, run = "cpu") else args,
    cuda = c(args, run = "cuda"), devices = c(args, list(run = weft_run("cuda", devices = "all"))),
    ranks = c(args, list(run = weft_run(ranks = TRUE))), seed = utils::modifyList(args, list(seed = 2)),
    sparse = utils::modifyList(args, stats::setNames(list(Matrix::Matrix(x, sparse = TRUE)), call$data)),
    store = {
      file <- withr::local_tempfile(fileext = ".weft")
      args[[call$data]] <- weft_import(x, file, run = weft_run(progress = FALSE))
      args
    },
    delayed = utils::modifyList(args, stats::setNames(list(DelayedArray::DelayedArray(x)), call$data)),
    missing = {
      x[3, 2] <- NA
      args[[call$data]] <- x
      passed_on <- any(vapply(list(bn_learn, bn_exact, mi_network), identical, NA, call$f)) # in `...`
      if ("na" %in% known || passed_on) {
        args$na <- if (identical(call$f, pca)) "em" else "drop"
      }
      args
    })
  refused <- function(condition) "no"
  tryCatch({
    if (what == "devices") return(if (asks_for_devices(call$f, args)) "yes" else "no")
    out <- suppressWarnings(call_with(call$f, args))
    ran <- if (inherits(out, c("weft_clusters", "weft_modules"))) out$backend else attr(out, "backend")
    if (what == "cuda" && identical(ran, "cpu")) "no" else "yes" # some work is always on the CPU
  }, weft_error_input = refused, weft_error_device = refused)
}

# Whether a call on a device chooses devices by what `run` says of them.
asks_for_devices <- function(f, args) {
  asked <- new.env()
  asked$devices <- FALSE
  space <- asNamespace("weft")
  tracer <- bquote(if (backend == "cuda" && !is.null(devices)) assign("devices", TRUE, .(asked)))
  suppressMessages(trace("devices_for", tracer, print = FALSE, where = space))
  on.exit(suppressMessages(untrace("devices_for", where = space)))
  suppressWarnings(call_with(f, args))
  asked$devices
}
