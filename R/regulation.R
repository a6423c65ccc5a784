#' Directed networks by stability selection
#'
#' Infers which genes regulate which other genes. `regulation(x)` takes samples in rows and genes in columns, and
#' returns a network whose edges are ranked: `as.data.frame(net)` lists them with signs, directions and false discovery
#' rates. A list of `regulators` helps more than anything else.
#'
#' For every target, a regression on a few regulators is selected repeatedly on random subsamples of half the samples. A
#' regulator that is chosen early and often gets a large weight.
#'
#' `vignette("which-genes-drive-which")` explains how far to trust edges and directions,
#' `vignette("knock-outs-and-time")` explains interventions and time series, and [regulation_details] describes the
#' method.
#'
#' @param x samples in rows, genes in columns: a numeric matrix, data frame, sparse Matrix, DelayedMatrix or
#'   SummarizedExperiment (genes in its rows), without missing values. Cells with guides may be in a [weft_store()].
#' @param regulators names or numbers of candidate regulators, such as transcription factors. The default is all genes
#'   or, if there are more than 2,000, the 2,000 genes with the largest variance of correlations (with a message);
#'   `"all"` always uses all genes.
#' @param targets names or numbers of the genes to predict; by default all genes.
#' @param interventions the gene that was knocked out, knocked down or overexpressed in each sample: its name, with NA,
#'   "" or a word such as "control" for controls, or several names joined by "+", ";" or ","; a list of such names; a
#'   matrix with samples in rows, genes in columns and TRUE or 1 for perturbed genes; or the name of a column of
#'   `colData(x)`.
#' @param time the time of every sample of a series, NA for samples that belong to no series; or `list(time, unit)`,
#'   where unit identifies the series of a sample, such as a culture, animal or patient. Each may be the name of a
#'   column of `colData(x)`.
#' @param compare a factor with the condition of every sample, or the name of a column of `colData(x)`, to compare the
#'   networks of two or more conditions with at least 8 samples each.
#' @param permutations the number of permutations of the condition labels for `compare`; each takes as long as the
#'   original analysis.
#' @param transform `"counts"` divides by size factors and takes logarithms; `"none"` leaves values unchanged; `"auto"`
#'   means `"counts"` for counts in a sparse matrix and `"none"` otherwise.
#' @param assay for a SummarizedExperiment: the assay's name or number.
#' @param control a list of settings that are rarely needed; [regulation_details] describes the defaults (`NULL`).
#'   * `steps`: the number of regulators that are chosen for a target in each subsample. The default is 2 to 5,
#'     depending on the number of samples.
#'   * `resamples`: the number of subsamples, which must be even.
#'   * `null_copies`: the number of null data sets; each takes about as long as the analysis of the data itself. With 0
#'     there are no q-values. The default is between 1 and 20; it decreases as the number of pairs increases.
#'   * `nonlinear`: whether to include thresholds and saturation in the effects of regulators.
#'   * `stability`: whether to compute the stability of the network; by default, only if this is fast.
#' @param seed a whole number that seeds the choice of subsamples and does not affect R's generator; by default, the
#'   seed is drawn from R's generator.
#' @param run see [weft_run()]. The subsamples are distributed over devices, or over ranks, which must all make the same
#'   call.
#' @param ... not used; for arguments of TIGRESS, GENIE3 and others, the error gives the name used here.
#' @return A matrix of weights of class `weft_regulation` and `weft_network`, with regulators in rows and targets in
#'   columns; [as.data.frame()][as.data.frame.weft_regulation] returns the edges. Attributes record the call, back end
#'   and time.
#'
#'   With `compare`, a list of class `weft_comparison`: `edges`, a data frame described in
#'   [as.data.frame.weft_comparison()]; `p_value` of the overall comparison; `networks`, one for each condition;
#'   `groups`, their numbers of samples; `permutations`; and `noise`, see [regulation_details].
#' @seealso [gene_regulation()] and [gene_network()] for the whole workflow, [plot.weft_regulation()],
#'   [plot.weft_comparison()], [mi_network()]
#' @export
#' @examples
#' e <- weft_example("expression", n = 100, p = 30, batch = 0, missing = 0, outliers = 0,
#'                   spoilt = FALSE, seed = 1)
#' net <- regulation(e$x, seed = 1, control = list(null_copies = 10))
#' net
#' head(as.data.frame(net, fdr = 0.05))
#'
#' # A list of regulators helps most of all.
#' factors <- grep("^TF", colnames(e$x), value = TRUE)
#' regulation(e$x, regulators = factors, seed = 1, control = list(null_copies = 10))
#'
#' # Do the networks of two conditions in a SummarizedExperiment differ?
#' if (requireNamespace("SummarizedExperiment", quietly = TRUE)) {
#'   se <- SummarizedExperiment::SummarizedExperiment(
#'     list(log = t(e$x)), colData = data.frame(half = rep(c("first", "second"), each = 50)))
#'   both <- regulation(se, factors, compare = "half", permutations = 19, seed = 1,
#'                      control = list(resamples = 40, null_copies = 0))
#'   head(as.data.frame(both), 3)
#' }
regulation <- function(x, regulators = NULL, targets = NULL, interventions = NULL, time = NULL, compare = NULL,
                       permutations = 100, transform = c("auto", "none", "counts"), assay = NULL, control = list(),
                       seed = NULL, run = NULL, ...) {
  run <- as_run(run, ranks = TRUE, dry_run = TRUE)
  ranks <- join_ranks(run$ranks, "regulation", c(each_rank, "x", "compare", "interventions", "time"))
  control <- check_control(control, regulation_control)
  need_args("x")
  started <- proc.time()[[3L]]
  check_dots(..., .control = regulation_control, .known = regulation_names_elsewhere)
  steps <- if (!is.null(control$steps)) check_number(control$steps, "steps", min = 1, max = most_steps, whole = TRUE)
  resamples <- check_number(control$resamples, "resamples", min = 2, max = 1e6, whole = TRUE)
  if (resamples %% 2 != 0) {
    abort_input("`resamples` must be even, because subsamples come in pairs.", x = sprintf("It is %g.", resamples))
  }
  nonlinear <- check_flag(control$nonlinear, "nonlinear")
  copies <- if (!is.null(control$null_copies)) {
    check_number(control$null_copies, "null_copies", min = 0, max = 1000, whole = TRUE)
  }
  permutations <- check_number(permutations, "permutations", min = 1, max = 1e5, whole = TRUE)
  stability <- if (!is.null(control$stability)) check_flag(control$stability, "stability")
  transform <- check_choice(transform, c("auto", "none", "counts"), "transform")
  plain <- is.null(interventions) && is.null(time)
  guided <- if (!is.null(interventions) && is.null(time) && is.null(compare)) stored_cells(x, interventions, transform)
  input <- guided$input %||% regulation_input(x, assay, transform, is.null(compare) && plain)
  if (!is.null(compare) && !plain) {
    abort_input("`compare` must not be given with `interventions` or `time`.",
                i = "Call `regulation()` separately for the samples of each condition.")
  }
  groups <- if (!is.null(compare)) compared_groups(compare, x, input$n)
  tested <- if (!plain) tested_rows(input, x, guided$perturbed %||% interventions, time)
  if (!is.null(tested)) input[c("data", "n")] <- list(tested$data, nrow(tested$data))
  half <- half_of(if (is.null(groups)) input$n else min(table(groups)))
  host <- run_control("cpu", run$threads, FALSE, input$names)
  key <- mi_key(seed)
  if (!is.null(ranks)) key <- ranks_gather(key, host)[[1L]]
  placed <- if (is.null(groups)) input$data else places_in_groups(input$data, groups, host)
  blocks <- if (is_cells(placed)) cell_blocks
  if (!is.null(blocks)) half <- blocks %/% 2L * (input$n %/% blocks)
  scores <- scores_of(placed, input$size, host)
  same_on_ranks(ranks, x = list(scores, input$names), compare = groups, others = tested)
  genes <- regulation_genes(input, scores, regulators, targets, host)
  if (!is.null(tested$shifts)) need_perturbed(tested$shifts$perturbed, genes$regulators + 1L)
  sizes <- lengths(genes[c("regulators", "targets")])
  steps <- steps %||% usual_steps(half, sizes[[1L]])
  copies <- copies %||% usual_copies(sizes[[1L]], sizes[[2L]])
  cost_of <- function(copies, threads, calls = 1) {
    regulation_plan(if (is.null(blocks)) "dense" else "cells", n = input$n, p = input$p,
                    stored = if (is.null(blocks)) 0 else length(input$data@x), regulators = sizes[[1L]],
                    targets = sizes[[2L]], steps = steps, resamples = resamples, hinges = nonlinear,
                    copies = copies + !plain, calls = calls, threads = threads)
  }
  runs <- if (!is.null(groups)) 1 + permutations
          else stability_runs(stability, input$n, copies, at_reference(cost_of(0, 1)$cpu))
  chosen <- choose_backend(run$backend, if (is.null(groups)) cost_of(copies + runs, run$threads, 1 + runs)
                                    else cost_of(copies + 2 * runs, run$threads, 2 * runs))
  report_backend(chosen, run)
  if (run$dry_run) return(dry_plan("regulation", chosen))
  control <- run_control(chosen$name, run$threads, run$progress, input$names, "Choosing regulators",
                         devices_for(run$devices, chosen$name, chosen$divided))
  how <- list(genes = genes, names = input$names, nonlinear = nonlinear, steps = steps, resamples = resamples,
              copies = copies, key = key, half = half, blocks = blocks, size = input$size, ranks = ranks,
              control = control, host = host, outcomes = tested$outcomes, order = tested$order,
              sample = tested$sample, shifts = tested$shifts)
  settings <- list(method = "regulation", steps = steps, resamples = resamples, nonlinear = nonlinear, copies = copies,
                   picked = genes$picked, normalised = input$normalised)
  if (!is.null(groups)) {
    out <- compare_regulation(input$data, placed, groups, permutations, how)
    about <- c(run_record(match.call(), chosen, started), settings)
    for (g in levels(groups)) {
      own <- list(complementary = 2 * half <= sum(groups == g))
      attributes(out$networks[[g]]) <- c(attributes(out$networks[[g]]), about, own)
    }
    return(record(out, match.call(), chosen, started))
  }
  choices <- outcome_choices(scores, halves_of(input$data, how), how, part_of_runs(1, 1 + runs))
  found <- regulation_network(choices, copies, common_of(input$data, scores, how), how)
  stable <- if (runs > 0) regulation_stability(input$data, found, runs, how)
  about <- c(run_record(match.call(), chosen, started), settings,
             list(edges = found$edges, stability = stable, complementary = 2 * half <= input$n,
                  interventions = found$about, series = tested$about))
  class <- c("weft_regulation", "weft_network", "matrix", "array")
  set_attributes(found$weights, c(list(class = class, format = result_format), about))
}

regulation_control <- function(steps = NULL, resamples = 200, null_copies = NULL, stability = NULL,
                               nonlinear = TRUE) as.list(environment())

# What others call arguments that have another name here.
regulation_names_elsewhere <- c(
  tfs = "regulators", tf = "regulators", TFs = "regulators", TF = "regulators", Tf = "regulators",
  tf_names = "regulators", tflist = "regulators", factors = "regulators", candidates = "regulators",
  genes = "targets", targetlist = "targets", L = "steps", nsteps = "steps", nstepsLARS = "steps",
  nsplit = "resamples", subsamples = "resamples", halves = "resamples", B = "resamples", nboot = "resamples",
  hinges = "nonlinear", nulls = "null_copies", copies = "null_copies", group = "compare", groups = "compare",
  condition = "compare", conditions = "compare", unit = "time", series = "time", pseudotime = "time",
  perturbation = "interventions", perturbations = "interventions", guides = "interventions",
  knockouts = "interventions", nperm = "permutations", nCores = "threads",
  ncores = "threads", nthreads = "threads"
)

most_steps <- 32
most_regulators <- 2000L # of all genes, unless they are asked for

# Samples in a half of n. With few samples a half is two thirds, as regressions on fewer than some 16 are noise.
half_of <- function(n) max(n %/% 2L, min(16L, (2L * n) %/% 3L))

# Few samples cannot tell many features apart, and of few regulators all would be chosen everywhere; m: samples in a
# half.
usual_steps <- function(m, regulators) max(1, min(5, max(2, floor(log2(m)) - 1), ceiling(regulators / 2)))

# The least q-value of k edges is 1 / (k copies): where there are few pairs, and few edges, one copy would keep none.
usual_copies <- function(regulators, targets = regulators) max(1, min(20, floor(1000 / sqrt(regulators * targets))))

# As numeric_input(), with `size` and `normalised` where counts are divided by size factors; sparse cells stay sparse.
regulation_input <- function(x, assay, transform = "none", sparse = FALSE) {
  source <- as_source(x, assay, "x")
  x <- source$data
  counts <- NULL
  if (source$kind == "sparse") {
    x <- sparse_numbers(x)
    if (!anyNA(x@x)) counts <- size_factors(x, transform)
  }
  input <- if (sparse && is_cells(x) && nrow(x) >= least_cells) {
    list(data = x, names = feature_names(x), n = nrow(x), p = ncol(x), size = counts$size)
  } else {
    numeric_input(x, NULL, "x")
  }
  fail_missing_values(input)
  if (is.null(counts) && transform == "counts") counts <- size_factors(input$data, transform)
  if (is.matrix(input$data) && !is.null(counts)) input$data <- log2(1 + input$data / counts$relative)
  input$normalised <- counts$what
  if (!is.null(counts) && transform == "auto") {
    message(counts$what, " `transform = \"counts\"` requests this, `\"none\"` leaves values unchanged.")
  }
  if (input$n < 4L) abort_input("`x` must have at least 4 samples (rows).", x = sprintf("It has %d.", input$n))
  if (input$n > 2^22) abort_input("`x` must have at most 4,194,304 samples (rows).", x = sprintf("It has %d.", input$n))
  if (input$p < 2L) abort_input("`x` must have at least 2 genes (columns).", x = sprintf("It has %d.", input$p))
  input$names <- distinct_names(input$names)
  input
}

# Regulators and targets are found by name.
distinct_names <- function(names) {
  if (!anyDuplicated(names)) return(names)
  message(sprintf("Duplicated gene names were made unique with numbers: %s.",
                  label_some(unique(names[duplicated(names)]))))
  make.unique(names)
}

sparse_numbers <- function(x) {
  if (inherits(x, "dgCMatrix")) x
  else methods::as(methods::as(methods::as(x, "dMatrix"), "generalMatrix"), "CsparseMatrix")
}

# Rows of regressions whose outcomes are not the predictors' own values, with those of series_rows(): shifts, a list of
# the samples that say what interventions do and what was perturbed in them.
tested_rows <- function(input, x, interventions, time) {
  perturbed <- if (!is.null(interventions)) perturbations(interventions, x, input$names, input$n)
  times <- if (!is.null(time)) sample_times(time, x, input$n)
  if (any(is.infinite(input$data))) {
    abort_input("`x` must be finite if `interventions` or `time` is given.", x = "It contains infinite values.")
  }
  out <- series_rows(input$data, times, perturbed)
  if (nrow(out$data) < 4L) {
    abort_input("`time` must give at least 4 time steps or samples outside of series.",
                x = sprintf("There are %d.", nrow(out$data)))
  }
  if (!is.null(perturbed)) out$shifts <- samples_of_shifts(input$data, perturbed, times)
  out
}

fail_missing_values <- function(input) {
  if (!anyNA(if (is_cells(input$data)) input$data@x else input$data)) return(invisible())
  missing <- if (is_cells(input$data)) Matrix::colSums(is.na(input$data)) else colSums(is.na(input$data))
  abort_input("`x` must not have missing values.",
              x = sprintf("Missing in %d of %d columns: %s.", sum(missing > 0), input$p,
                          label_some(input$names[missing > 0])),
              i = "Remove these genes or samples, or impute the values.")
}

scores_of <- function(data, size, control) {
  if (is_cells(data)) cell_scores(data, size, control) else regulation_scores(data, control)
}

# Halves of the rows of `data`, whose names say which rows they hold.
halves_of <- function(data, how) {
  if (is_cells(data)) cell_halves(sample_names(data), how) else regulation_halves(data, how)
}

# Numbers that tell samples apart, whatever their order: of their names; where they have none, their values.
sample_names <- function(data) {
  names <- rownames(data)
  if (is.null(names) || anyDuplicated(names)) return(if (is_cells(data)) cell_names(data) else data)
  matrix(vapply(enc2utf8(names), function(name) sum(as.integer(digest_of(name)[1:6]) * 256^(0:5)), 0))
}

# Few samples: their ranks say little about how far apart values are, and the noise of ranks hides which of two close
# genes is the regulator. So much of the scores is of ranks, the rest of the values themselves.
share_by_rank <- function(n) min(1, n / 100)

rank_quantiles <- function(n) stats::qnorm((seq(2, 2 * n) / 2 - 0.5) / n)

# Whole numbers so small that their products' sum over half of the rows fits in 32 bits. placed: `data` has places
# already, those of samples within conditions.
regulation_scores <- function(data, control, by_rank = share_by_rank(nrow(data)), placed = FALSE) {
  n <- nrow(data)
  most <- min(2047, floor(sqrt((2^31 - 1) / (n %/% 2))))
  .Call(C_weft_regulation_scores, data, list(quantile = if (!placed) rank_quantiles(n), by_rank = by_rank, most = most),
        control)
}

# list(regulators, targets): columns from 0; picked: how many of all genes were, when they were.
regulation_genes <- function(input, scores, regulators, targets, control) {
  columns <- function(which, arg) {
    which <- if (is.logical(which)) NA else factor_text(which)
    chosen_columns(which, input$names, arg)
  }
  all <- is.null(regulators) || identical(regulators, "all")
  out <- list(regulators = if (all) seq_len(input$p) else columns(regulators, "regulators"),
              targets = if (is.null(targets)) seq_len(input$p) else columns(targets, "targets"))
  if (is.null(regulators) && input$p > most_regulators) {
    out$regulators <- pick_regulators(if (is_cells(input$data)) some_cells(input, control) else scores, control)
    message(sprintf("Using %s of %s genes as candidate regulators (largest variance of correlations).\n",
                    thousands(most_regulators), thousands(input$p)),
            "Use `regulators =` for a list, such as known transcription factors, or ",
            "`regulators = \"all\"` for all genes.")
    out$picked <- most_regulators
  }
  out$named <- !all && length(out$regulators) < input$p
  out$regulators <- as.integer(out$regulators - 1L)
  out$targets <- as.integer(out$targets - 1L)
  out
}

# Against every gene, or some thousand of them, and at most a thousand samples: both in even steps.
pick_regulators <- function(scores, control, most = most_regulators) {
  p <- ncol(scores)
  some <- function(count, limit) unique(as.integer(seq(0, count - 1, length.out = min(count, limit))))
  genes <- list(regulators = seq_len(p) - 1L, targets = some(p, 2000), rows = some(nrow(scores), 1000))
  hub <- .Call(C_weft_regulation_hubs, scores, genes, control)
  sort(utils::head(order(-hub, seq_len(p)), most))
}

regulation_halves <- function(data, how) {
  plan <- list(half = how$half, pairs = how$resamples / 2, copies = how$copies, key = how$key)
  .Call(C_weft_regulation_halves, sample_names(data), plan, how$host)
}

# steps x targets x (1 + copies) x halves. The first half of the pairs says which regulators the others favour,
# in the data and in every copy by itself: regulators that stand out by chance must do so in copies too.
regulation_choices <- function(scores, samples, how, part = part_of_runs(1, 1)) {
  genes <- how$genes
  halves <- ncol(samples$rows)
  regulators <- length(genes$regulators)
  size <- c(how$steps, length(genes$targets), 1 + ncol(samples$partner), halves)
  if (prod(size) > 2^40) abort_input("The product of `resamples`, `null_copies` and `targets` must be smaller.")
  first <- if (halves > 2) seq_len(2 * (halves %/% 4)) else seq_len(halves)
  choices_of <- function(columns, start, end) {
    control <- part_of_progress(how$control, part, start, end)
    choices_in_halves(columns, scores, genes, samples, how, control)
  }
  genes$favour <- matrix(1, regulators, size[3L])
  choices <- choices_of(first, 0, 0.5)
  if (length(first) == halves) return(choices)
  genes$favour <- vapply(seq_len(size[3L]) - 1L, function(world) {
    moments <- .Call(C_weft_regulation_counts, choices, list(regulators = regulators, world = world), how$host)
    favoured(variance_share(moments, length(genes$targets)), how$half)
  }, numeric(regulators))
  all <- c(choices, choices_of(setdiff(seq_len(halves), first), 0.5, 1))
  dim(all) <- size
  all
}

# As regulation_choices(); where outcomes differ from what predicts them, row i of the scores meets row i of the
# outcomes' scores, which stand behind the others: a world that takes the place of the first, as a null copy's rows
# would.
outcome_choices <- function(scores, samples, how, part = part_of_runs(1, 1)) {
  if (is.null(how$outcomes)) return(regulation_choices(scores, samples, how, part))
  n <- nrow(scores)
  if (length(how$order)) samples$partner <- series_partners(samples$partner, how$order, how$key)
  behind <- matrix(n + seq_len(n) - 1L, n, 1L + ncol(samples$partner))
  samples$partner <- rbind(cbind(seq_len(n) - 1L, samples$partner) + n, behind)
  storage.mode(samples$partner) <- "integer"
  choices <- regulation_choices(rbind(scores, regulation_scores(how$outcomes, how$host)), samples, how, part)
  choices[, , -1L, , drop = FALSE]
}

# Of several runs that take equally long, the one that is under way.
part_of_runs <- function(run, runs) list(run = run, runs = runs)

# The run's share from `start` to `end` of a progress that spans all runs.
part_of_progress <- function(control, part, start, end) {
  whole <- control$progress
  if (is.null(whole)) return(control)
  control$progress <- function(done, total) {
    whole((part$run - 1 + start + (end - start) * done / total) / part$runs, 1)
  }
  control
}

favoured <- function(share, m) (share + 0.1 * mean(share))^(0.15 * min(1, 75 / m))

# Of some halves; over ranks each has a run of pairs.
choices_in_halves <- function(halves, scores, genes, samples, how, control) {
  select <- function(columns) {
    samples$rows <- samples$rows[, columns, drop = FALSE]
    .Call(C_weft_regulation_select, scores, genes, samples, how[c("nonlinear", "steps")], control)
  }
  if (is.null(how$ranks)) return(select(halves))
  pairs <- dealt_to(length(halves) / 2, how$ranks)
  own <- select(halves[c(rbind(2L * pairs - 1L, 2L * pairs))])
  array(unlist(ranks_gather(own, control), use.names = FALSE), c(dim(own)[1:3], length(halves)))
}

# The variance of each regulator's areas over all targets, by the largest one; 1 where there is a single target.
variance_share <- function(moments, targets) {
  if (targets < 2) return(rep(1, length(moments$sums)))
  variance <- moments$squares - moments$sums^2 / targets
  if (max(variance) > 0) variance / max(variance) else rep(1, length(variance))
}

# ---- choices to edges ----

# Edges of the data (world 0) or of a null copy, one per regulator and target that met at all, by target.
regulation_edges <- function(choices, regulators, world, control) {
  of <- list(regulators = regulators, world = world)
  moments <- .Call(C_weft_regulation_counts, choices, of, control)
  of$starts <- c(0, cumsum(moments$counts))
  edges <- .Call(C_weft_regulation_edges, choices, of, control)
  c(edges, list(starts = of$starts, sums = moments$sums, share = variance_share(moments, dim(choices)[2L])))
}

# list(weights: a plain matrix, edges). common: see common_of().
regulation_network <- function(choices, copies, common, how) {
  control <- how$host
  regulators <- how$names[how$genes$regulators + 1L]
  targets <- how$names[how$genes$targets + 1L]
  need <- 8 * as.double(length(regulators)) * length(targets)
  have <- host_free()
  if (have >= 0 && need > have) {
    weft_abort("memory", sprintf("A network of %d regulators and %d targets needs %.1f GB of memory.",
                                 length(regulators), length(targets),
                                 need / 1e9),
               x = sprintf("Only %.1f GB are available.", have / 1e9), i = "Use fewer `regulators` or `targets`.")
  }
  edges <- regulation_edges(choices, length(regulators), 0L, control)
  null <- lapply(seq_len(copies), function(copy) {
    chance <- regulation_edges(choices, length(regulators), copy, control)
    list(edges = chance$area, pairs = pair_areas(chance, how$genes, control, once = TRUE))
  })
  null <- list(edges = unlist(lapply(null, `[[`, "edges")), pairs = unlist(lapply(null, `[[`, "pairs")))
  if (copies > 0) {
    edges$q_value <- area_q_values(edges$area, null$edges, copies)
    edges$pair_q <- area_q_values(pair_areas(edges, how$genes, control), null$pairs, copies,
                                  pair_areas(edges, how$genes, control, once = TRUE))
  }
  full <- dim(choices)[1L] * dim(choices)[4L]
  weights <- matrix(0, length(regulators), length(targets), dimnames = list(regulators, targets))
  weights[pair_number(edges, dim(weights))] <- edge_weights(edges, how$genes, full, common, control)
  edges[c("share", "sums", "starts")] <- NULL
  found <- list(weights = weights, edges = edges)
  if (is.null(how$shifts)) found else with_interventions(found, null$edges, how)
}

# The least false discovery rate at which each edge is kept: of edges with at least some area, those that the copies
# have, and one more, over those that the data have. counted: areas of the data, where not each counts once.
area_q_values <- function(area, null, copies, counted = area) {
  if (!length(area)) return(numeric())
  top <- max(area)
  reach <- function(v, cap) rev(cumsum(rev(tabulate(pmin(v, cap), cap))))
  rate <- (reach(null, top) + 1) / copies / pmax(reach(counted, top), 1)
  pmin(cummin(rate), 1)[area]
}

# The greater area of both directions of each edge; once: of one edge of each pair.
pair_areas <- function(edges, genes, control, once = FALSE) {
  reversed <- reversed_areas(edges, as.double(edges$area), genes, control)
  greater <- as.integer(pmax(edges$area, reversed, na.rm = TRUE))
  if (!once) return(greater)
  forth <- is.na(reversed) | edges$area > reversed |
    edges$area == reversed & genes$regulators[edges$from] < genes$targets[edges$to]
  greater[forth]
}
