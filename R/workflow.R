# The whole workflow in one call: checks, components, ranking, pairs, network, clusters, Bayesian network, outliers.
# Each step is a function of its own (workflow-*.R); here they are called in turn, timed, and kept together.

workflow_steps <- c("quality", "components", "ranking", "pairs", "network", "clusters", "bayes", "outliers")

#' Analyse an expression data set
#'
#' `gene_network()` runs a complete analysis of gene expression data in one call. It finds differentially expressed
#' genes, pairs of genes that distinguish the classes only together, a network of genes, groups of samples and genes,
#' and outliers. A typical call is `gene_network(x, class)`. The result can be printed, plotted and converted to data
#' frames, and [weft_report()] writes a report on it.
#'
#' @section Design: `class` defines the groups that are compared. `batch` and `covariates` are other variables that
#'   affect expression; all tests adjust for them. A formula in place of `class` is a shorter way to specify both. For
#'   example, `~ sex + batch + group` compares the groups and adjusts for sex and batch. The variables are columns of
#'   the sample table of the container, or of `covariates` if this is a data frame. For interactions, contrasts and
#'   numeric outcomes, use [gene_ranking()].
#'
#' @section Steps: Each step is also a function that you can call separately:
#'
#' | `steps = list(...)` | function | needs a class |
#' |---|---|---|
#' | `quality` | [gene_quality()] | |
#' | `components` | [gene_components()] | |
#' | `ranking` | [gene_ranking()] | yes |
#' | `pairs` | [gene_pairs()] | yes |
#' | `network` | [gene_regulation()], or [gene_mi_network()] for genotypes, or if its arguments are given | |
#' | `clusters` | [gene_clusters()] | |
#' | `bayes` | [gene_bayes()] | |
#' | `outliers` | [gene_outliers()] | |
#' | `cells` | [gene_cells()], for single cells | |
#'
#' The elements of `steps` change single steps. A list contains arguments of the function, for example `steps =
#' list(network = list(method = "clr"))`. `FALSE` skips the step (except `quality`), for example `steps = list(pairs =
#' FALSE)`. A function replaces the step. It is called with the result of `quality`, and must return the same type of
#' object as the original function. Steps that need a class are skipped if there is none. Steps are also skipped if
#' there are too few samples, and the result reports this.
#'
#' @section Single cells: If `x` is a [weft_store()] or a sparse matrix of counts with at least `r cells_least` cells
#'   (or a list of such matrices), [gene_cells()] first combines similar cells into metacells. The metacells are the
#'   samples of all later steps. `class` and `batch` then have one value per cell, and each metacell contains cells from
#'   one class and batch. The directed network is inferred from the single cells, unless this takes too long or
#'   metacells predict held-out cells better ([gene_regulation()]). `steps = list(cells = FALSE)` treats each cell as a
#'   sample. You can also pass the result of [gene_cells()] as `x`. Tests between classes then refer to these cells, not
#'   to the animals or patients from which they were taken.
#'
#' @section Time and memory: If `progress` is on, the function first prints an estimate of the run time of each step.
#'   `run = weft_run(dry_run = TRUE)` returns the estimates as a data frame without running the analysis. The estimates
#'   can be far from the actual times, which the report lists beside them. Matrices of all pairs of genes need the most
#'   memory. If they need more than 60 % of the free memory, or more than `weft_run(memory = )`, the network includes
#'   only as many genes as fit. These are the genes that are most strongly associated with the class, or the most
#'   variable genes. The log reports this.
#'
#' @section Devices: With `run = "cuda"`, all steps with CUDA code run on the device, and the other steps run on the
#'   CPU. The table `steps` of the result lists the back end of each step.
#'
#' @inheritParams gene_quality
#' @param x expression data with samples in rows and genes in columns: a matrix, data frame, sparse Matrix or
#'   DelayedMatrix. Alternatively, a SummarizedExperiment, SingleCellExperiment or another container
#'   ([weft_containers]). Genotypes are also accepted. Single-cell counts may also be supplied as a [weft_store()], a
#'   list of sparse matrices, or a result of [gene_cells()].
#' @param class one category per sample, the name of a column of the sample table of the container, or a formula (see
#'   Design). `NULL` if there are no groups.
#' @param regulators the names of genes that may regulate others, such as transcription factors; see
#'   [gene_regulation()]. Such a list improves networks more than any other setting.
#' @param interventions,time the perturbations of each sample, and the time points of the samples of a time series; see
#'   [regulation()].
#' @param steps a named list of settings for single steps. Each element is a list of arguments, `FALSE` or a function;
#'   see Steps.
#' @param run see [weft_run()]. `progress` shows the steps and their run times, `memory` limits the size of gene-by-gene
#'   matrices, and `weft_run(dry_run = TRUE)` only estimates time and memory.
#' @param seed a whole number, from which the seed of each step is derived. By default, the seed is drawn from R's
#'   generator. The result contains the seed.
#' @param ... must be empty. If you pass an argument of a step here, the function stops with an error that shows where
#'   to put it.
#' @return An object of class `weft_gene_network`. It is a list that contains the result of each step under the name of
#'   the step (`NULL` for skipped steps), `cells` (if there are metacells), `steps` (a data frame with the columns
#'   `step`, `seconds`, `backend` and `note`), `estimate`, `seed`, `sitrep`, `version`, `date` and `call`.
#' @seealso [weft_report()], [plot.weft_gene_network()], [add_results()], [write_network()]
#' @export
#' @examples
#' e <- weft_example("expression", n = 80, p = 40)
#' fit <- gene_network(e$x, e$class, batch = e$batch, seed = 1,
#'                     steps = list(bayes = list(genes = 8, iterations = 2000), pairs = FALSE))
#' fit
#' head(as.data.frame(fit, what = "edges"))
gene_network <- function(x, class = NULL, batch = NULL, covariates = NULL, regulators = NULL, symbols = NULL,
                         interventions = NULL, time = NULL, steps = list(), assay = NULL, seed = NULL, run = NULL,
                         ...) {
  run <- as_run(run, dry_run = TRUE)
  need_args("x")
  check_step_dots(...)
  call <- match.call()
  settings <- check_steps(steps)
  settings$network <- with_network_arguments(settings$network, regulators = regulators,
                                             interventions = container_value(interventions, x, "interventions"),
                                             time = container_times(time, x))
  if (inherits(class, "formula")) {
    parts <- formula_parts(class, covariates)
    class <- parts$class
    covariates <- parts$covariates
  }
  say <- workflow_progress(run)
  if (identical(run$backend %||% weft_backend(), "cuda")) choose_backend("cuda") # an error here rather than half way
  seed <- if (is.null(seed)) floor(stats::runif(1L) * 2^31)
          else check_number(seed, "seed", min = 0, max = 2^31, whole = TRUE)
  if (isTRUE(run$progress)) run$progress <- FALSE # lines about steps instead of bars
  work <- list(settings = settings, seed = seed, run = run, say = say)
  fit <- list(steps = NULL)
  if (is_many_cells(x, assay, settings$cells)) {
    if (!is.null(interventions) || !is.null(time)) {
      abort_input("`interventions` and `time` need samples, or cells that are not put together.",
                  x = "Metacells are sums of cells.", i = "Take `steps = list(cells = FALSE)`, or `regulation()`.")
    }
    if (!is.null(covariates)) {
      abort_input("`covariates` of single cells cannot be taken into account.",
                  x = "Metacells are made within `class` and `batch` alone.",
                  i = "Give one of them as `batch`, or take `steps = list(cells = FALSE)`.")
    }
    fit <- run_step(fit, work, "cells", function(args) {
      given <- list(x, class, batch, assay, seed = seed, run = run)
      do.call(gene_cells, utils::modifyList(given, args), quote = TRUE)
    })
    work$behind <- list(x, fit$cells, assay = assay)
    x <- fit$cells
    class <- batch <- assay <- NULL
  }
  fit <- run_step(fit, work, "quality", function(args) {
    do.call(gene_quality, c(list(x, class, batch, assay, covariates = covariates, symbols = symbols), args),
            quote = TRUE)
  })
  check_network_step(fit$quality, settings$network)
  if (is.null(fit$quality$class)) work$settings[c("ranking", "pairs")] <- FALSE
  fit$left_out <- left_out_steps(fit$quality, work$settings)
  work$settings[names(fit$left_out)] <- FALSE
  for (sentence in fit$left_out) say(paste(cli::symbol$info, sentence))
  fit$estimate <- workflow_estimate(fit$quality, work)
  if (run$dry_run) return(fit$estimate)
  say(sprintf("About %s of work, at most %s of memory", seconds_text(sum(fit$estimate$seconds)),
              bytes_text(max(0, fit$estimate$bytes))))
  fit <- run_steps(fit, work)
  fit$seed <- seed
  fit$settings <- settings
  fit$sitrep <- weft_sitrep()
  fit$version <- weft_version()
  fit$date <- Sys.time()
  fit$call <- call
  new_result(fit, class = "weft_gene_network")
}

# The functions whose arguments the steps take.
step_functions <- function() {
  list(cells = gene_cells, quality = gene_quality, components = gene_components, ranking = gene_ranking,
       pairs = gene_pairs, network = gene_regulation, network = gene_mi_network, clusters = gene_clusters,
       bayes = gene_bayes, outliers = gene_outliers)
}

# Names of the settings that `control` of a step's functions holds.
step_control <- function(step) {
  names(formals(switch(step, cells = gene_cells_control, quality = gene_quality_control, bayes = gene_bayes_control,
                       network = gene_regulation_control,
                       function() NULL)))
}

# `steps` with every step under its name.
check_steps <- function(steps) {
  known <- c(workflow_steps, "cells")
  named <- is.list(steps) && !is.object(steps) && (!length(steps) || (!is.null(names(steps)) && !anyNA(names(steps))))
  if (!named || !all(names(steps) %in% known) || anyDuplicated(names(steps))) {
    wrong <- if (named) setdiff(names(steps), known)
    abort_input("`steps` must be a list with arguments of steps, under their names.",
                x = if (length(wrong)) sprintf("There is no step %s.", label_some(wrong))
                    else paste0("It is ", describe(steps), "."),
                i = sprintf("Steps are %s; for example `steps = list(network = list(method = \"clr\"))`.",
                            label_some(known, most = length(known))))
  }
  settings <- stats::setNames(rep(list(list()), length(known)), known)
  settings[names(steps)] <- steps
  for (step in known) check_step(settings[[step]], step)
  settings
}

# The network's arguments with those that were given beside them.
with_network_arguments <- function(setting, ...) {
  given <- list(...)
  given <- given[!vapply(given, is.null, NA)]
  if (!length(given) || isFALSE(setting)) return(setting)
  twice <- if (is.list(setting)) intersect(names(given), names(setting)) else names(given)
  if (length(twice)) {
    abort_input(sprintf("`%s` must be given once.", twice[1L]),
                x = if (is.list(setting)) sprintf("It is in `steps$network`, too.")
                    else "`steps$network` is a function, which takes none.")
  }
  c(setting, given)
}

# A formula in place of a class: its last variable is the class, and the others are covariates. They are columns of
# `covariates`, or else of the sample table of the data, in which gene_quality() looks up names.
formula_parts <- function(formula, covariates) {
  parts <- tryCatch(stats::terms(formula), error = function(e) NULL)
  labels <- attr(parts, "term.labels")
  variables <- all.vars(formula)
  if (is.null(parts) || attr(parts, "response") || !length(labels) || !setequal(labels, variables)) {
    abort_input("A formula for `class` must be a sum of variables, the class last.",
                x = sprintf("It is `%s`.", paste(deparse(formula, width.cutoff = 500L), collapse = " ")),
                i = "For example `~ batch + class`. For interactions and contrasts, use `gene_ranking()`.")
  }
  others <- setdiff(labels, labels[length(labels)])
  if (is.data.frame(covariates)) {
    lost <- setdiff(labels, names(covariates))
    if (length(lost)) {
      abort_input("Variables of the formula must be columns of `covariates`.",
                  x = sprintf("There is no %s.", label_some(lost)),
                  i = sprintf("There are %s.", label_some(names(covariates))))
    }
    return(list(class = covariates[[labels[length(labels)]]], covariates = if (length(others)) covariates[others]))
  }
  if (!is.null(covariates)) {
    abort_input("`covariates` must be a data frame with the variables of the formula, or NULL.",
                x = paste0("It is ", describe(covariates), "."))
  }
  list(class = labels[length(labels)], covariates = if (length(others)) others)
}

# What was an argument by itself, or is one of a step, belongs in `steps`.
check_step_dots <- function(...) {
  given <- names(substitute(list(...)))[-1L]
  functions <- step_functions()
  takes <- vapply(functions, function(f) any(given %in% names(formals(f))), NA)
  step <- intersect(given, c(workflow_steps, "cells"))
  for (one in unique(names(functions))) {
    inside <- intersect(given, step_control(one))
    if (length(inside)) {
      abort_input(sprintf("Unknown argument `%s`; use `steps = list(%s = list(control = list(%s = )))`.", inside[1L],
                          one,
                          inside[1L]))
    }
  }
  if (!length(step) && !any(takes)) return(check_dots(..., .has = names(formals(gene_network))))
  of <- unique(names(functions)[takes])[1L]
  name <- if (length(step)) step[1L] else intersect(given, names(formals(functions[[which(takes)[1L]]])))[1L]
  abort_input(sprintf(if (length(step)) "Unknown argument `%s`; use `steps = list(%s = )`."
                      else "Unknown argument `%s`; use `steps = list(%s = list(%s = ))`.",
                      name, if (length(step)) name else of, name))
}

check_step <- function(setting, step) {
  names <- names(setting)
  named <- is.list(setting) && (!length(setting) || (!is.null(names) && !anyNA(names) && all(nzchar(names))))
  replaced <- is.function(setting) && step != "cells"
  plain <- !is.object(setting) # a class might have its own !
  if (replaced || (plain && (named || (isFALSE(setting) && step != "quality")))) return(check_step_names(names, step))
  abort_input(sprintf("`steps$%s` must be a list of arguments by name%s.", step,
                      switch(step, quality = ", a function", cells = ", or FALSE for none",
                             ", a function, or FALSE to leave the step out")),
              x = paste0("It is ", describe(setting), "."),
              i = sprintf("For example `steps = list(%s = list(%s))`.", step, switch(step,
                quality = "min_count = 5", components = "k = 5", ranking = "control = list(robust = FALSE)",
                pairs = "top = 100",
                network = "method = \"clr\"", clusters = "genes = 200", bayes = "genes = 15",
                outliers = "fdr = 0.01", cells = "genes = 3000")))
}

# Names of arguments that a step's functions have; those with `...` reject by themselves what they do not know.
check_step_names <- function(names, step) {
  functions <- step_functions()
  known <- unlist(lapply(functions[names(functions) == step], function(f) names(formals(f))))
  above <- intersect(names, c("x", if (step == "quality") c("class", "batch", "covariates", "symbols", "assay")))
  if (length(above)) {
    abort_input(sprintf("`steps$%s` must not contain arguments that `gene_network()` itself takes.", step),
                x = sprintf("It has %s.", label_some(above)))
  }
  wrong <- setdiff(names, known)
  inside <- intersect(wrong, step_control(step))
  if (length(inside)) {
    abort_input(sprintf("Unknown argument `%s` of `steps$%s`; use `control = list(%s = )`.", inside[1L], step,
                        inside[1L]))
  }
  wrong <- intersect(wrong, c(names(run_settings), wrong[!"..." %in% known]))
  if (!length(wrong)) return()
  abort_input(sprintf("`steps$%s` must be a list of arguments by name.", step),
              x = sprintf("There is no %s.", label_some(wrong)), i = sprintf("There are %s.", label_some(known)))
}

workflow_progress <- function(run) {
  show <- run$progress %||% getOption("weft.progress") %||% interactive()
  if (!is.function(show) && !check_flag(show, "progress")) return(function(...) invisible())
  function(...) message(...)
}

run_steps <- function(fit, work) {
  q <- fit$quality
  own <- function(step, f, ..., device = TRUE) {
    run <- work$run
    if (!device && identical(run$backend %||% weft_backend(), "cuda")) run$backend <- "auto"
    run_step(fit, work, step, function(args) {
      if (is.function(work$settings[[step]])) return(work$settings[[step]](q))
      given <- list(..., seed = work$seed + match(step, workflow_steps), run = run)
      do.call(f, c(list(q), utils::modifyList(given, args)), quote = TRUE)
    })
  }
  fit <- own("components", gene_components)
  fit <- own("ranking", gene_ranking, device = q$kind == "levels")
  fit <- own("pairs", gene_pairs)
  fit <- own("network", workflow_network, behind = work$behind)
  for (what in c("limited", "lost")) {
    said <- attr(fit$network, what)
    if (!is.null(said)) fit$quality <- note(fit$quality, if (what == "lost") "network" else "memory", said,
                                            ncol(fit$network))
  }
  known <- function(step) if (own_result(step, fit[[step]])) fit[[step]]
  fit <- own("clusters", gene_clusters, components = known("components"), device = FALSE)
  fit <- own("bayes", gene_bayes, network = known("network"), ranking = known("ranking"), device = FALSE)
  run_step(fit, work, "outliers", function(args) {
    if (is.function(work$settings$outliers)) return(work$settings$outliers(q))
    if (is.null(known("components"))) {
      abort_input("The step `outliers` needs the step `components`.",
                  i = "Leave both out: `steps = list(components = FALSE, outliers = FALSE)`.")
    }
    do.call(gene_outliers,
            utils::modifyList(list(fit$components, data = q, run = work$run), args), quote = TRUE)
  })
}

# Runs one step, keeps its result and a row about it. Results stay NULL where a step is left out.
run_step <- function(fit, work, step, f) {
  setting <- work$settings[[step]]
  if (isFALSE(setting)) {
    fit[step] <- list(NULL)
    return(fit)
  }
  if (step == "quality" &&
      is.function(setting)) f <- function(args) abort_input("`steps$quality` must be a list of arguments.")
  started <- proc.time()[[3L]]
  result <- f(if (is.list(setting)) setting else list())
  fit[[step]] <- result
  seconds <- proc.time()[[3L]] - started
  where <- attr(result, "backend") %||% (if (is.list(result)) result$backend) %||% "cpu"
  row <- data.frame(step = step, seconds = seconds, backend = where, note = step_note(step, result, fit))
  fit$steps <- rbind(fit$steps, row)
  work$say(sprintf("%s %-10s %8s  %s", cli::symbol$tick, step, seconds_text(seconds), row$note))
  fit
}

# One line about a step's result; a replaced step may return something else.
step_note <- function(step, result, fit) {
  if (step != "quality" && !own_result(step, result)) return("")
  count <- function(n, what) sprintf("%s %s%s", thousands(n), what, if (n == 1) "" else "s")
  tryCatch(switch(step,
    cells = sprintf("%s, %s, %s", count(length(result$group), "cell"), count(max(result$group, na.rm = TRUE), "group"),
                    count(nrow(result$metacells), "metacell")),
    quality = sprintf("%s and %s kept", count(nrow(result$x), "sample"), count(ncol(result$x), "gene")),
    components = sprintf("%s%s, PC1 %s of the variance", count(length(result$sdev), "component"),
                         if (is.null(standing_out(result))) ""
                         else sprintf(", %d significant", standing_out(result)), share_text(result$share[1L])),
    ranking = sprintf("%s with q <= 0.05", count(length(found_genes(result)), "gene")),
    pairs = sprintf("%s searched, %s", count(attr(result, "searched"), "pair"),
                    if (is.null(result$p_fwer)) "not tested"
                    else if (any(result$p_fwer <= 0.05)) sprintf("%d significant", sum(result$p_fwer <= 0.05))
                    else "none significant"),
    network = sprintf("%s, %s (%s)", count(nrow(result), if (nrow(result) < ncol(result)) "candidate regulator"
                                                          else "gene"),
                      count(count_edges(result), "edge"), attr(result, "method")),
    clusters = paste(c(count(max(sample_groups(result)), "sample cluster"),
                       if (!is.null(gene_groups(result))) count(max(gene_groups(result)), "gene cluster")),
                     collapse = ", "),
    bayes = sprintf("%s, %s", count(nrow(result$dag), "gene"), count(sum(result$dag), "edge")),
    outliers = count(sum(result$outlier), "outlier")
  ), error = function(e) "")
}

# ---- time and memory before the work ----

# What each step costs, as the functions that it calls predict it (R/plan.R); bytes beyond the data.
workflow_estimate <- function(q, work) {
  n <- as.double(nrow(q$x))
  p <- as.double(ncol(q$x))
  threads <- work$run$threads
  given <- function(step, name, usual) {
    setting <- work$settings[[step]]
    if (is.list(setting)) setting[[name]] %||% usual else usual
  }
  count <- function(genes) if (is.numeric(genes)) min(p, genes) else length(genes)
  net <- count(given("network", "genes", min(p, floor(sqrt(memory_limit(work$run$memory) / 24)))))
  method <- given("network", "method", "auto")
  if (method == "auto") method <- if (net <= 1000) "mrnet" else "aracne"
  estimator <- given("network", "estimator", "auto")
  pairs <- choose(p, 2)
  permutations <- given("pairs", "permutations", NULL) %||% usual_permutations(p, n)[1L]
  clustered <- count(given("clusters", "genes", 300))
  by_consensus <- given("clusters", "method", "consensus") == "consensus"
  sweeps <- given("clusters", "chains", 4) * given("clusters", "sweeps", 100)
  nodes <- count(given("bayes", "genes", 20))
  bins <- mi_plan("bins", n = n, p = p)
  steps <- list(
    components = estimate_components(n, p, given("components", "k", 10), threads),
    ranking = list(bins, mi_plan("rank", n = n, p = p, threads = threads)),
    pairs = list(bins, mi_plan("tuples", tuples = pairs * (1 + permutations), n = n, p = p, order = 2, planes = 2,
                               packed_bytes = n * p, threads = threads),
                 cost(0.01 * permutations)),
    network = if (is_directed_step(q, names(work$settings$network))) {
      list(estimate_regulation(n, net, given, threads))
    } else list(mi_plan("numbers", kind = if (estimator == "auto") "spearman" else estimator, pairs = net^2 / 2, n = n,
                        threads = threads),
                mi_plan("networks", kind = method, p = net, threads = threads)),
    clusters = list(if (by_consensus) cost_consensus(n, p)
                    else if (q$kind == "levels") {
                      irm_plan("run", sweeps = sweeps, rows = n, columns = clustered, links = n * clustered / 2,
                               k_rows = 20, k_columns = 20, threads = threads)
                    }
                    else cost(sweeps * (1e-3 + 1.6e-7 * n * clustered) / min(threads, 4), Inf, 32 * n * clustered)),
    bayes = c(list(plan_chains("sum", given("bayes", "iterations", 20000), given("bayes", "chains", 4), 4, 50 * nodes,
                               nodes, threads)),
              if ((halves <- given("bayes", "resample", usual_halves())) > 0) {
                list(plan_chains("sum", given("bayes", "iterations", 20000) / 10, halves, 4, 50 * nodes, nodes, 1))
              }),
    outliers = list(cost(n^2 * 2e-8 + 6e-5 * n + 0.1, Inf, 40 * n))
  )[workflow_steps[-1L]]
  left_out <- vapply(work$settings[names(steps)], isFALSE, NA)
  steps <- steps[!left_out]
  data.frame(step = names(steps),
             seconds = vapply(steps, function(parts) sum(vapply(parts, `[[`, 0, "cpu")), 0, USE.NAMES = FALSE),
             bytes = vapply(steps, function(parts) max(vapply(parts, `[[`, 0, "bytes")), 0, USE.NAMES = FALSE))
}

# Components are compared with those of 38 draws; see gene_components().
estimate_components <- function(n, p, k, threads) {
  once <- function(p) {
    ask_pca_plan("dense", "cheapest", list(n = n, p = p, cells = n * p, k = k, threads = threads))$cost
  }
  c(list(once(p)), rep(list(once(component_genes(c(n, p)))), 39))
}
