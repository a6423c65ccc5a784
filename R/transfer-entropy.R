#' Transfer entropy between genes over time
#'
#' `transfer_entropy()` finds genes whose past improves the prediction of another gene's next value beyond what that
#' gene's own past allows. The shortest call is `transfer_entropy(x, time)`, with samples in the rows of `x`; it returns
#' a table with one row per significant edge. All ordered pairs are tested by permutation. The scores are computed from
#' the joint counts of three categories: the level of gene y at time t, its level `lag` samples earlier, and the level
#' of gene x at that earlier time.
#'
#' @section Method: With `bins`, values are divided into levels of equal frequency, as by [discretize()]. The transfer
#'   entropy from x to y is the conditional mutual information \eqn{I(Y_t; X_{t-lag} \mid Y_{t-lag})} (Schreiber 2000),
#'   computed from the counts of all steps of all series. It is positive even for independent genes: with n steps,
#'   \eqn{G = 2 n \log 2 \mathrm{TE}} is then about equal to its degrees of freedom (levels of x minus 1, times the
#'   levels that follow each level of y, minus 1 each). It is larger if both genes change slowly, or if measurement
#'   noise hides the state of y.
#'
#'   A permuted data set shifts the past of all sources cyclically within each series by a random number of steps.
#'   Sources and targets keep their own dynamics, but lose their relation. The first half of the permuted data sets
#'   gives the mean of G divided by its degrees of freedom, for each source, for each target and over all pairs. The
#'   expected value of a pair is the mean of its source times the mean of its target, divided by the mean over all
#'   pairs. G relative to this expected value is converted to a standard score, `z` (Wilson and Hilferty 1931). The
#'   second half gives the distribution of z. A p-value is the proportion of scores of all pairs in these data sets that
#'   reach z, including the score itself, and q-values are computed over all pairs by the method of Benjamini and
#'   Hochberg. Scores are rounded to multiples of 1/64 before they are compared. Because the scores of all pairs are
#'   pooled, few permutations suffice for many genes. The p-values are valid on average over pairs; if trends dominate,
#'   p-values of individual pairs are approximate.
#'
#'   The null hypothesis is that x gives no information about y in addition to the previous level of y. A common cause,
#'   an intermediate gene, and the past of y beyond one step can all make x informative. If series are short or few, a
#'   regression detects more; see [regulation()] with `time`.
#'
#' @param x samples in rows, genes in columns: a numeric matrix, data frame, sparse Matrix, DelayedMatrix or
#'   SummarizedExperiment without missing values.
#' @param time the time or pseudotime of every sample, NA for samples to exclude; or `list(time, unit)`, where unit
#'   identifies the series of a sample, such as a culture, animal, patient or branch. Each may be the name of a column
#'   of `colData(x)`. Samples of a unit at the same time follow each other in the order of rows.
#' @param regulators,targets names or numbers of the genes whose past is used, and of the genes that are predicted; by
#'   default all genes.
#' @param bins the number of levels, from 2 to 16; `NULL` if the values are already levels, such as whole numbers or the
#'   factors of [discretize()].
#' @param permutations the number of permuted data sets, an even number. The default is at least 20, enough for 10,000
#'   scores in the null distribution, and at most 1,000. With 0 there is no test, and z is relative to the degrees of
#'   freedom alone.
#' @param fdr edges with a q-value up to this are returned; 1 for all pairs.
#' @param control a list of settings that are rarely needed:
#'   * `lag`: the number of samples between past and present.
#'   * `top`: the largest number of edges to return, in decreasing order of z.
#' @param seed a whole number that seeds the permutations and leaves R's random number generator alone; `NULL` to draw
#'   the seed from R's generator.
#' @param assay for a SummarizedExperiment: the assay's name or number.
#' @param run see [weft_run()].
#' @param ... not used; for an unknown argument, the error suggests the intended one.
#' @return A data frame of class `weft_transfer`, one row per edge, in decreasing order of `z`: `from`, `to`; `te`, the
#'   transfer entropy in bits minus `bias`, its expected value under independence (so that `te` can be negative); `z`;
#'   and, with permutations, `p_value` and `q_value`. The attributes are `tested` and `significant`, the numbers of
#'   pairs with a score and of significant pairs (`top` may return fewer); `steps`, `series` and `levels`.
#' @references
#' Schreiber (2000). Measuring information transfer. *Physical Review Letters* 85, 461-464.
#'
#' Kim, Jakobsen, Natarajan, Won (2021). TENET: gene network reconstruction using transfer entropy reveals key
#' regulatory factors from single cell transcriptomic data. *Nucleic Acids Research* 49, e1.
#' @seealso [as.data.frame.weft_transfer()], [regulation()], [mi_network()]
#' @export
#' @examples
#' set.seed(1)
#' x <- matrix(rnorm(300 * 8), 300, dimnames = list(NULL, paste0("g", 1:8)))
#' x[-1, "g2"] <- x[-300, "g1"] + rnorm(299) / 2
#' edges <- transfer_entropy(x, time = 1:300, seed = 1)
#' edges
#' summary(edges)
transfer_entropy <- function(x, time, regulators = NULL, targets = NULL, bins = 3, permutations = NULL, fdr = 0.05,
                             assay = NULL, control = list(), seed = NULL, run = NULL, ...) {
  run <- as_run(run, dry_run = TRUE)
  control <- check_control(control, transfer_entropy_control)
  check_dots(..., .control = transfer_entropy_control, .known = transfer_names_elsewhere)
  need_args("x", "time")
  started <- proc.time()[[3L]]
  if (!is.null(bins)) bins <- check_number(bins, "bins", min = 2, max = most_transfer_levels, whole = TRUE)
  if (!is.null(permutations)) {
    permutations <- check_number(permutations, "permutations", min = 0, max = 1e6, whole = TRUE)
    if (permutations %% 2 != 0) {
      abort_input("`permutations` must be even.", x = sprintf("It is %g.", permutations),
                  i = "One half gives the mean of scores without transfer, the other half their spread.")
    }
  }
  fdr <- check_number(fdr, "fdr", min = 0, max = 1)
  lag <- check_number(control$lag, "lag", min = 1, max = 1e6, whole = TRUE)
  top <- check_number(control$top, "top", min = 1, max = 1e8, whole = TRUE)
  input <- transfer_input(x, assay, bins)
  series <- transfer_series(sample_times(time, x, input$n), lag)
  sources <- if (is.null(regulators)) seq_len(input$p) else chosen_columns(regulators, input$names, "regulators")
  places <- if (is.null(targets)) seq_len(input$p) else chosen_columns(targets, input$names, "targets")
  pairs <- as.double(length(sources)) * length(places) - length(intersect(sources, places))
  if (is.null(permutations)) permutations <- 2 * min(500, max(10, ceiling(10000 / max(pairs, 1))))
  if (permutations > 0) need_permutable(series, lag)
  key <- mi_key(seed)
  chosen <- choose_backend(run$backend, mi_plan("transfer", n = series$steps, p = input$p, pairs = pairs,
                                                levels = bins %||% 3, permutations = permutations,
                                                threads = run$threads))
  report_backend(chosen, run)
  if (run$dry_run) return(dry_plan("transfer_entropy", chosen))
  native <- run_control(chosen$name, run$threads, run$progress, input$names, "Following genes")
  how <- list(n = input$n, order = series$order, starts = series$starts, lag = lag, bins = bins %||% 0,
              sources = sources - 1L, targets = places - 1L, permutations = permutations, key = key, fdr = fdr,
              top = top)
  found <- memory_errors(.Call(C_weft_mi_transfer, input$data, how, native))
  record(transfer_table(found, input$names[sources], input$names[places], permutations > 0, top), match.call(), chosen,
         started, tested = found$about[1L], significant = if (permutations > 0) found$about[2L], fdr = fdr,
         permutations = permutations, steps = found$about[3L], series = length(series$starts) - 1,
         levels = found$about[4L], lag = lag)
}

transfer_entropy_control <- function(lag = 1, top = 1e6) as.list(environment())

most_transfer_levels <- 16 # WEFT_TRANSFER_LEVELS of src/mi/transfer/both/transfer.h

# What others call arguments that have another name here.
transfer_names_elsewhere <- c(pseudotime = "time", unit = "time", branch = "time", series = "time", tau = "lag",
                              dt = "lag", history = "lag", k = "lag", nbins = "bins", sources = "regulators",
                              tfs = "regulators", nperm = "permutations", shuffles = "permutations",
                              surrogates = "permutations", alpha = "fdr")

# As categorical_input() has it; numbers to be cut are a double or a sparse matrix.
transfer_input <- function(x, assay, bins) {
  if (is.null(bins)) {
    input <- whole_input(categorical_input(x, assay))
  } else {
    source <- as_source(x, assay, "x")
    if (source$kind == "sparse") {
      x <- sparse_numbers(source$data)
      input <- list(data = x, names = feature_names(x), n = nrow(x), p = ncol(x))
    } else {
      input <- numeric_input(source$data, NULL, "x")
    }
  }
  values <- if (is_cells(input$data)) list(input$data@x) else if (is.list(input$data)) input$data else list(input$data)
  if (any(vapply(values, anyNA, NA))) {
    abort_input("`x` must not have missing values.", i = "Remove these genes or samples, or impute the values.")
  }
  if (input$p < 1L) abort_input("`x` must have at least one gene (column).", x = "It has none.")
  input$names <- distinct_names(input$names)
  input
}

# list(order: rows by series and time, from 0; starts: where series begin there, and the end; steps: their number).
transfer_series <- function(times, lag) {
  order <- order(times$unit, times$time, na.last = NA)
  lengths <- rle(times$unit[order])$lengths
  steps <- sum(pmax(lengths - lag, 0))
  if (steps < 2) {
    abort_input(sprintf("`time` must contain a series of more than %s.", several(lag + 1, "sample")),
                x = if (length(lengths)) sprintf("The longest series has %d.",
                                                 max(lengths)) else "No sample has a time.",
                i = "To give units, use `time = list(time, unit)`.")
  }
  list(order = order - 1L, starts = as.integer(c(0, cumsum(lengths))), steps = steps)
}

# Series go round in as many ways as steps less one.
need_permutable <- function(series, lag) {
  ways <- prod(pmax(diff(series$starts) - lag - 1, 1))
  if (ways >= 19) return(invisible())
  abort_input("`permutations` must be 0 for series with too few possible permutations.",
              x = sprintf("They can be permuted in %s.", several(ways, "way")),
              i = "A series of n steps can be shifted cyclically by 1 to n - 1 steps.")
}

# The edges that native code found, greatest z first.
transfer_table <- function(found, sources, targets, tested, top) {
  by_score <- utils::head(order(-found$z, found$source, found$target), top)
  column <- function(name) found[[name]][by_score]
  out <- list(from = sources[column("source")], to = targets[column("target")], te = column("te") - column("usual"),
              bias = column("usual"), z = column("z"))
  if (tested) out[c("p_value", "q_value")] <- list(column("p"), column("q"))
  new_result(as_frame(out, length(by_score)), class = c("weft_transfer", "data.frame"))
}

# ---- results ----

#' Print, summarise and convert edges of transfer entropy
#'
#' @param x,object an object returned by [transfer_entropy()].
#' @param n the number of edges to show.
#' @param ... ignored.
#' @return `print()`: `x`, invisibly. `summary()`: a list with the numbers of pairs `tested`, of `edges`, of `steps`,
#'   `series` and `levels`, and the genes with the most edges `from` and `to` them. `as.data.frame()` and `tidy()`: a
#'   plain data frame. `glance()`: one row about the run. `as_igraph()`: a directed igraph graph of the genes with
#'   edges, with `weight`, the square of z, and the columns of the table as attributes.
#' @export
#' @examples
#' set.seed(1)
#' x <- matrix(rnorm(300 * 4), 300, dimnames = list(NULL, paste0("g", 1:4)))
#' x[-1, "g2"] <- x[-300, "g1"] + rnorm(299) / 2
#' edges <- transfer_entropy(x, time = 1:300, fdr = 1, seed = 1)
#' head(as.data.frame(edges), 2)
#' if (requireNamespace("igraph", quietly = TRUE)) as_igraph(edges)
as.data.frame.weft_transfer <- function(x, ...) {
  check_frame(x, "x")
  list2DF(unclass(x)[names(x)], nrow(x))
}

#' @rdname as.data.frame.weft_transfer
#' @export
tidy.weft_transfer <- function(x, ...) {
  checked_transfer(x, "x")
  broom_names(as.data.frame(x), "te")
}

is_transfer <- function(x) all(c("from", "to", "te", "z") %in% names(x)) && !is.null(attr(x, "steps"))

# A whole result; an error where it was changed.
checked_transfer <- function(x, arg) {
  check_result(x, arg, c(run_attributes, "fdr"), c("from", "to"), c("te", "z"))
  counts <- vapply(c("tested", "permutations", "steps", "series", "levels", "lag"),
                   function(name) is_number(attr(x, name, exact = TRUE), 0), NA)
  significant <- attr(x, "significant", exact = TRUE)
  if (!all(counts) || !is.null(significant) && !is_number(significant, 0)) abort_changed(arg,
                                                                                         "its attributes are damaged")
  for (name in intersect(c("p_value", "q_value"), names(x))) {
    if (!is.numeric(x[[name]])) abort_changed(arg, sprintf("its column `%s` is damaged", name))
  }
  invisible(x)
}

#' @rdname as.data.frame.weft_transfer
#' @export
print.weft_transfer <- function(x, n = 6L, ...) {
  if (!is_transfer(x)) return(print_as_frame(x, n))
  checked_transfer(x, "x")
  n <- check_shown(n)
  a <- attributes(x)
  cat_wrapped(sprintf("Transfer entropy in %s of %s with %.0f levels: %s tested", several(a$steps, "step"),
                      if (a$series == 1) "one series" else paste(thousands(a$series), "series"), a$levels,
                      several(a$tested, "ordered pair")))
  print_first(as.data.frame(x), n, digits = 3L)
  if (!is.null(a$significant)) {
    cat_wrapped(sprintf("%s significant at a false discovery rate of %s (%s).", several(a$significant, "edge"),
                        format(a$fdr),
                        several(a$permutations, "permutation")))
  }
  invisible(x)
}

#' @rdname as.data.frame.weft_transfer
#' @export
summary.weft_transfer <- function(object, ...) {
  checked_transfer(object, "object")
  most <- function(names) {
    counts <- table(names)
    utils::head(sort(stats::setNames(as.double(counts), names(counts)), decreasing = TRUE), 10L)
  }
  as_summary(c(list(edges = nrow(object)),
               attributes(object)[c("tested", "fdr", "permutations", "steps", "series", "levels")],
               list(from = most(object$from), to = most(object$to), run = run_line(object))), "Transfer entropy")
}

#' @rdname as.data.frame.weft_transfer
#' @export
glance.weft_transfer <- function(x, ...) {
  checked_transfer(x, "x")
  data.frame(edges = nrow(x), tested = attr(x, "tested"), steps = attr(x, "steps"), series = attr(x, "series"),
             permutations = attr(x, "permutations"), backend = attr(x, "backend"), seconds = attr(x, "seconds"))
}

#' @rdname as.data.frame.weft_transfer
#' @export
as_igraph.weft_transfer <- function(x, ...) {
  checked_transfer(x, "x")
  if (!requireNamespace("igraph", quietly = TRUE)) {
    abort_input("`as_igraph()` needs the package igraph.", i = "`as.data.frame()` returns the edges without it.")
  }
  edges <- as.data.frame(x)
  edges$weight <- edges$z^2
  igraph::graph_from_data_frame(edges, directed = TRUE)
}
