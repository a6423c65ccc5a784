# The workflow's network: directed for expression, of mutual information for levels and where a method of it is asked
# for.

#' Infer the directed network of a data set
#'
#' `gene_regulation()` calls [regulation()] with the data and defaults of [gene_network()]. The shortest call is
#' `gene_regulation(q)`. It is the default method for networks of expression data. On simulated networks and on the
#' networks of the DREAM4 challenge, it ranked true edges better than MRNET, CLR and ARACNE (`inst/bench/regulation.R`),
#' which are available in [gene_mi_network()]. The result contains the complete ranking. The edges that are counted,
#' listed and drawn are those at the false discovery rate.
#'
#' In [gene_network()], `steps = list(network = list(...))` accepts the arguments of this function. If it contains an
#' argument that only [gene_mi_network()] has, such as `method = "clr"`, that function is called instead.
#'
#' @section Single cells: Sums over similar cells have less noise than single cells, but there are fewer of them. To
#'   decide which of them to use, a quarter of the cells (at most 5,000) are held out. Networks are inferred from the
#'   other cells, and from the metacells of the other cells, for up to 300 random regulators and 100 random targets in
#'   40 subsamples. The five best regulators of each target are then used to predict it in the held-out cells. Metacells
#'   are used if they explain more of the variance, averaged over targets, by more than two standard errors. They are
#'   also used if the predicted time for single cells is more than `r cells_seconds` seconds, if single cells need more
#'   than `memory`, and if there are batches or covariates. Cells without counts are removed. The attribute `made_of`,
#'   `print()` and the report give the decision and its reason.
#'
#' @inheritParams gene_steps
#' @param regulators,targets,interventions,time,resamples see [regulation()]. Genes that were filtered out are ignored,
#'   and the result reports this. Samples in which such genes were perturbed are not used as controls.
#' @param fdr the false discovery rate of the edges that are shown; 1 for all edges.
#' @param control a list of rarely used settings: `steps` and `null_copies`; see [regulation()].
#' @param genes names of genes, or their number; see [gene_mi_network()].
#' @param cells for metacells: a list of two elements, the counts for [gene_cells()] and its result. The network is then
#'   inferred from single cells unless metacells predict better; see Single cells. [gene_network()] sets this argument.
#'   In its `steps$network`, `TRUE` always uses single cells, and `FALSE` always uses metacells.
#' @param run see [weft_run()]; `memory` as for [gene_mi_network()].
#' @param ... must be empty; the function stops with an error if there are other arguments.
#' @return A result of [regulation()] with the attributes `fdr` and `limited` (a sentence, if genes were excluded
#'   because of `memory`).
#' @seealso [gene_network()], [gene_steps]
#' @export
#' @examples
#' e <- weft_example("expression", n = 80, p = 30)
#' gene_regulation(gene_quality(e$x, e$class, e$batch), resamples = 50, seed = 1)
gene_regulation <- function(x, regulators = NULL, targets = NULL, interventions = NULL, time = NULL, fdr = 0.05,
                            resamples = 200, genes = NULL, cells = NULL, control = list(), seed = NULL, run = NULL,
                            ...) {
  run <- as_run(run)
  control <- check_control(control, gene_regulation_control)
  check_dots(..., .control = gene_regulation_control)
  q <- checked_data(x)
  fdr <- check_number(fdr, "fdr", min = 0, max = 1)
  chosen <- network_genes(q, genes, run$memory)
  data <- q$x[, chosen, drop = FALSE]
  named <- list(regulators = kept_genes(q, regulators, colnames(data), "regulators"),
                targets = kept_genes(q, targets, colnames(data), "targets"))
  aims <- lapply(named, `[[`, "names")
  control <- c(control, list(resamples = resamples))
  unit <- check_cells(cells, !is.null(interventions) || !is.null(time))
  if (!is.null(unit)) unit <- cells_of_network(q, unit, chosen, aims, control, seed %||% random_key(NULL)[1L], run)
  net <- regulation(unit$data %||% data, aims$regulators, aims$targets,
                    interventions = kept_interventions(q, interventions, colnames(data)),
                    time = kept_times(q, time), transform = "none", seed = seed, run = run, control = control)
  lost <- unlist(lapply(named, `[[`, "lost"))
  set_attributes(net, list(fdr = if (attr(net, "copies") > 0) fdr, limited = attr(chosen, "limited"),
                           lost = if (length(lost)) paste(lost, collapse = " "), made_of = unit$about))
}

gene_regulation_control <- function(steps = NULL, null_copies = NULL) as.list(environment())

# list(names: of the genes that an argument names and that are in the network, or NULL or "all"; lost: a sentence on
# those that were filtered out).
kept_genes <- function(q, which, genes, arg) {
  if (is.null(which) || identical(which, "all")) return(list(names = which))
  which <- if (is.logical(which)) NA else factor_text(which)
  gone <- if (is.character(which)) intersect(which, setdiff(q$genes$gene, genes))
  if (length(gone) && all(which %in% gone)) {
    abort_input(sprintf("`%s` must name genes that are in the network.", arg),
                x = sprintf("All of them were filtered out: %s.", label_some(gone)),
                i = "The log of `gene_quality()` gives the reasons.")
  }
  list(names = genes[chosen_columns(if (length(gone)) setdiff(which, gone) else which, genes, arg)],
       lost = if (length(gone)) sprintf("Filters removed %d of the %d specified %s from the network: %s.",
                                        length(gone), length(unique(which)), arg, some_named(gone)))
}

check_cells <- function(cells, outcomes) {
  if (is.null(cells) || isFALSE(cells)) return(NULL)
  if (!is.list(cells) || length(cells) < 2L || !inherits(cells[[2L]], "weft_cells")) {
    abort_input("`cells` must be a list of counts and the object that `gene_cells()` returned for them.",
                x = paste0("It is ", describe(cells), "."),
                i = "In `steps$network` of `gene_network()`, use TRUE or FALSE.")
  }
  if (outcomes) abort_input("`cells` must not be given together with `interventions` or `time`.")
  cells
}

# Mistakes in what says when and how samples were treated, before any work is done.
check_network_step <- function(q, setting) {
  if (!is.list(setting)) return(invisible())
  given <- intersect(c("interventions", "time"), names(setting))
  if (length(given) && !is_directed_step(q, names(setting))) {
    abort_input(sprintf("`%s` needs the directed network of expression.", given[1L]),
                x = if (q$kind == "expression") "`steps$network` asks for a network of mutual information."
                    else "The data are levels.")
  }
  for (arg in c("regulators", "targets")) kept_genes(q, setting[[arg]], colnames(q$x), arg)
  kept_interventions(q, setting$interventions, colnames(q$x))
  kept_times(q, setting$time)
  invisible()
}

# Interventions in the samples that are kept; genes outside the network may have been perturbed, too.
kept_interventions <- function(q, interventions, genes) {
  if (is.null(interventions)) return(NULL)
  set <- perturbations(interventions, NULL, genes, nrow(q$samples), setdiff(q$genes$gene, genes))
  some_perturbations(set, which(q$samples$kept))
}

kept_times <- function(q, time) {
  if (is.null(time)) return(NULL)
  times <- sample_times(time, NULL, nrow(q$samples))
  list(time = times$time[q$samples$kept], unit = times$unit[q$samples$kept])
}

# Both functions' arguments, told apart by name. behind: the cells of metacells, as gene_regulation() takes them.
workflow_network <- function(q, ..., cells = NULL, behind = NULL, seed = NULL, run = as_run()) {
  given <- list(q, ..., run = run)
  if (!is_directed_step(q, names(list(...)))) return(do.call(gene_mi_network, given))
  if (!is.null(cells)) cells <- check_flag(cells, "cells")
  if (isTRUE(cells) && is.null(behind)) {
    abort_input("`cells` must not be given if there are no metacells.", i = "The samples are already cells.")
  }
  if (!isFALSE(cells) && !is.null(behind)) behind$always <- isTRUE(cells)
  do.call(gene_regulation, c(given, list(cells = if (!isFALSE(cells)) behind, seed = seed)), quote = TRUE)
}

# Of expression, unless an argument is given that gene_mi_network() alone has.
is_directed_step <- function(q, given) {
  q$kind == "expression" && !any(given %in% setdiff(names(formals(gene_mi_network)), names(formals(gene_regulation))))
}

estimate_regulation <- function(n, genes, given, threads) {
  regulators <- given("network", "regulators", NULL)
  count <- if (is.null(regulators)) min(genes, most_regulators)
           else if (identical(regulators, "all")) genes
           else length(regulators)
  targets <- length(given("network", "targets", seq_len(genes)))
  control <- given("network", "control", NULL)
  outcomes <- !is.null(given("network", "interventions", NULL)) || !is.null(given("network", "time", NULL))
  regulation_plan("dense", n = n, regulators = count, targets = targets, steps = control$steps %||% 5,
                  resamples = given("network", "resamples", 200), hinges = TRUE,
                  copies = (control$null_copies %||% usual_copies(count, targets)) + outcomes,
                  calls = 1, threads = threads)
}

# What report and print say of it.
regulation_text <- function(r, top) {
  pairs <- network_pairs(report_edges(r))
  sure <- sum(pairs$direction >= clear_direction, na.rm = TRUE)
  sprintf("%s among %s at a false discovery rate of %g, %s with a clear direction%s",
          several(nrow(pairs), if (is.null(network_regulators(r))) "co-expressed pair" else "regulator-target pair"),
          several(length(network_features(r)), "gene"), attr(r, "fdr") %||% 1,
          if (sure) thousands(sure) else "none",
          paste(c(hub_text(r, top), sub("[.]$", "", c(unit_text(r), series_text(r), interventions_text(r)))),
                collapse = ". "))
}

regulation_methods <- function(r) {
  text <- sprintf(
    paste("The directed network was inferred by stability selection (Haury et al. 2012). For each gene, %d",
          "features derived from other genes were selected by forward regression in each of %d random",
          "subsamples, each containing half of the samples. Edges are ranked by how early and how often they were",
          "selected, and by how often their regulator was selected for other genes. If most genes are correlated, the",
          "rank also depends on the correlation above this background. Edges were selected at a",
          "false discovery rate of %g, which was estimated from %s with permuted targets."),
    as.integer(attr(r, "steps")), as.integer(attr(r, "resamples")), attr(r, "fdr") %||% 1,
    several(as.integer(attr(r, "copies")), "data set"))
  paste(c(text, unit_text(r), if (!is.null(attr(r, "series"))) {
    "In time series, the regulators at one time point explained the value towards which their targets moved next."
  }, if (!is.null(attr(r, "interventions"))) {
    paste("Samples in which a gene was perturbed were not used as outcomes of this gene. Changes of other genes in",
          "these samples were tested with moderated t statistics. Indirect paths through other perturbed regulators",
          "were removed, and the tests were added to the evidence.")
  }), collapse = " ")
}

check_regulation <- function(x, arg = "x") {
  check_result(x, arg)
  if (!holds(sound_regulation(x))) abort_changed(arg, "its attributes, its weights or its names")
  x
}

sound_regulation <- function(r) {
  e <- attr(r, "edges")
  whole <- c("from", "to", "area", "signed_area", "times", "both")
  count <- length(e$area)
  is.matrix(r) && is.double(r) && !anyNA(unclass(r)) && is.character(rownames(r)) && is.character(colnames(r)) &&
    is.list(e) &&
    all(vapply(e[whole], function(v) is.integer(v) && length(v) == count && !anyNA(v), NA)) &&
    all(e$from >= 1L & e$from <= nrow(r) & e$to >= 1L & e$to <= ncol(r)) &&
    (is.null(e$q_value) || is.double(e$q_value) && length(e$q_value) == count) && is_number(attr(r, "steps")) &&
    is_number(attr(r, "resamples")) && is_number(attr(r, "copies")) && is_word(attr(r, "method")) &&
    (is.null(attr(r, "fdr")) || is_number(attr(r, "fdr"))) && sound_stability(attr(r, "stability")) &&
    (is.null(e$pair_q) || is_bare(e$pair_q, "double", count)) && sound_unit(attr(r, "made_of")) &&
    sound_interventions(r) && sound_series(attr(r, "series"))
}

# The overlap is NA where no edge was kept.
sound_stability <- function(s) {
  numbers <- c("left_out", "samples", "top", "runs")
  is.null(s) || is.list(s) && all(vapply(s[numbers], is_number, NA)) && is_numbers(s$runs, 1L, whole = TRUE) &&
    (is_number(s$overlap) || is_bare(s$overlap, c("double", "logical"), 1L))
}
