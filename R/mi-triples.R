#' Search triples and larger tuples of features for joint information about a class
#'
#' `mi_triples()` finds the triples of features that are jointly most informative about a class. The shortest call is
#' `mi_triples(x, class)`; it returns a data frame of the best triples, best first. The score is
#' \eqn{I(C; A_i \times A_j \times A_k)}{I(C; A_i, A_j, A_k)}. `mi_tuples()` does the same for tuples of any order among
#' selected features.
#'
#' The interaction of a triple is its information minus the information of its best pair,
#' \eqn{I(C; A_i \times A_j \times A_k) - \max I(C; pair)}{I(C; A_i, A_j, A_k) - max I(C; pair)}. For a larger tuple,
#' the best tuple without one of its members takes the place of the pair. The interaction is never negative. A device of
#' compute capability 9.0 searches triples if features have at most five levels and no missing values (or missing values
#' as a level), the class has at most eight levels, and `top` is at most 524,288. `"auto"` uses the CPU for all others,
#' and `run = "cuda"` stops with an error. The search is fastest for binary features, followed by features with at most
#' three levels, if the class has two levels and there are up to 65,535 rows. Such a device also searches tuples of four
#' by their information, if features have at most three levels and no missing values, the class has two levels, there
#' are up to 65,535 rows, and `top` is at most 524,288. Other tuples are counted on the CPU.
#'
#' There are p(p-1)(p-2)/6 triples, that is, 166 million for a thousand features; ten thousand features need a device.
#' There are 159 million tuples of four among 250 features (250 choose 4 is 158,882,750), which also need a device. The
#' CPU counts tuples one by one, so select features first, for example the members of the best pairs.
#'
#' @inheritParams mi_pairs
#' @inheritSection mi_rank Missing values
#' @param top the number of triples or tuples to keep; `Inf` for all that reach the minima `min_mi` and `min_gain`.
#' @param features names or numbers of the features to search; by default all features.
#' @param control a list of settings that are rarely needed:
#'   * `min_mi`, `min_gain`: the smallest joint information and interaction of tuples to keep.
#'   * `unit`: `"bits"` or `"nats"`.
#'   * `assay`: for a SummarizedExperiment: the assay's name or number.
#' @param order the number of features in a tuple, from 3 to 16.
#' @return As [mi_pairs()], with `feature3` (and so on) and `mi3`.
#' @seealso [mi_pairs()]
#' @export
#' @examples
#' set.seed(1)
#' x <- matrix(sample(0:1, 300 * 12, TRUE), 300)
#' class <- (x[, 2] + x[, 5] + x[, 9]) %% 2 # no pair says anything
#' mi_triples(x, class, top = 3)
#' class <- (x[, 2] + x[, 5] + x[, 9] + x[, 10]) %% 2
#' mi_tuples(x, class, order = 4, features = c(1:5, 9:12), top = 3)
mi_triples <- function(x, class, top = 1000, by = c("mi", "interaction"), features = NULL,
                       na = c("fail", "drop", "level"), bins = NULL, control = list(), run = NULL, ...) {
  run <- as_run(run, ranks = TRUE, dry_run = TRUE)
  ranks <- join_ranks(run$ranks, "mi_triples", c(each_rank, "x"))
  control <- check_control(control, mi_triples_control)
  check_dots(..., .control = mi_triples_control, .known = mi_names_elsewhere)
  started <- proc.time()[[3L]]
  call <- match.call()
  need_args("x")
  keep <- check_search(top, control$min_mi, control$min_gain, by, control$unit)
  na <- check_choice(na, c("fail", "drop", "level"), "na")
  pack <- pack_for(x, class, na, control$assay, bins, run)
  if (!inherits(x, "weft_mi_pack")) on.exit(weft_free(pack), add = TRUE)
  same_on_ranks(ranks, x = what_is_packed(pack))
  if (pack$dim[2L] > 2^21) {
    abort_input("`x` must have at most 2,097,152 features for triples.", x = sprintf("It has %d.", pack$dim[2L]))
  }
  side <- sides(pack$names, features, NULL)
  p <- as.double(if (is.null(side)) pack$dim[2L] else sum(side != 0))
  chosen <- choose_for_tuples(run, pack, choose(p, 3), order = 3, side = side, top = keep$top)
  chosen <- needs_bit_wgmma(chosen, "triples")
  if (run$dry_run) return(dry_plan("mi_triples", chosen))
  native <- run_control(chosen$name, run$threads, run$progress, pack$names, "Searching triples",
                        devices_for(run$devices, chosen$name, chosen$divided))
  found <- search_tuples(pack, side, 3L, keep, ranks, native)
  record(new_result(tuples_table(found, pack$names, keep$scale), class = c("weft_mi_tuples", "data.frame")), call,
         chosen, started, unit = keep$unit, by = keep$by, class_levels = pack$class_levels, na = pack$na,
         searched = choose(p, 3))
}

mi_triples_control <- function(min_mi = NULL, min_gain = NULL, unit = c("bits", "nats"), assay = NULL) {
  as.list(environment())
}

# The same choice, or the CPU where the device has none of what such tuples need.
needs_bit_wgmma <- function(chosen, what) {
  if (chosen$name != "cuda" || has_bit_wgmma()) return(chosen)
  if (chosen$reason == "requested") {
    weft_abort("device", "`run = \"cuda\"` is not available here.",
               x = sprintf("%s%s need a device of compute capability 9.0 and a build for it.",
                           toupper(substr(what, 1L, 1L)), substring(what, 2L)),
               i = "Use `run = \"cpu\"` or \"auto\".")
  }
  chosen[c("name", "reason")] <- list("cpu", paste(what, "need a device of compute capability 9.0"))
  chosen
}

# The back end of a search of tuples of any order.
choose_for_long_tuples <- function(run, pack, ways, order, columns, keep) {
  info <- .Call(C_weft_mi_pack_info, pack_pointer(pack))
  plan <- function() {
    mi_plan("long_tuples", tuples = ways, n = pack$dim[1L], p = pack$dim[2L], order = order,
            levels = max(info$levels[columns], 0), classes = info$classes, strata = length(pack$strata_levels),
            empty_classes = sum(info$class_rows == 0), missing = pack$na != "level" && any(info$missing[columns] > 0),
            top = min(keep$top, 2^53), by_interaction = keep$by == "interaction" || keep$min_gain > -Inf,
            threads = run$threads)
  }
  stays <- plan()$stays
  chosen <- if (is.null(stays)) needs_bit_wgmma(choose_backend(run$backend, plan()), "tuples of four")
            else cpu_only(run$backend, stays, plan())
  report_backend(chosen, run)
  chosen
}

# 1-bit products of whole warpgroups: compute capability 9.0 itself, no other.
has_bit_wgmma <- function() {
  devices <- weft_devices()
  at <- getOption("weft.device", 0) + 1
  at <= nrow(devices) && identical(devices$capability[at], "9.0") && grepl("90", devices$built_for[at])
}

#' @rdname mi_triples
#' @export
mi_tuples <- function(x, class, order = 4, features = NULL, top = 1000, by = c("mi", "interaction"),
                      na = c("fail", "drop", "level"), bins = NULL, control = list(), run = NULL, ...) {
  run <- as_run(run, dry_run = TRUE)
  control <- check_control(control, mi_triples_control)
  check_dots(..., .control = mi_triples_control, .known = mi_names_elsewhere)
  started <- proc.time()[[3L]]
  call <- match.call()
  need_args("x")
  order <- check_number(order, "order", min = 3, max = 16, whole = TRUE)
  keep <- check_search(top, control$min_mi, control$min_gain, by, control$unit)
  na <- check_choice(na, c("fail", "drop", "level"), "na")
  pack <- pack_for(x, class, na, control$assay, bins, run)
  if (!inherits(x, "weft_mi_pack")) on.exit(weft_free(pack))
  columns <- if (is.null(features)) seq_len(pack$dim[2L]) else sort(chosen_columns(features, pack$names, "features"))
  ways <- choose(length(columns), order)
  if (ways > 1e12) {
    abort_input("`features` must give at most 1e12 tuples.",
                x = sprintf("%d features have %.3g tuples of %d.", length(columns), ways, order),
                i = "Choose fewer features, for example those in the best pairs.")
  }
  chosen <- choose_for_long_tuples(run, pack, ways, order, columns, keep)
  if (run$dry_run) return(dry_plan("mi_tuples", chosen))
  found <- .Call(C_weft_mi_tuples, pack_pointer(pack), as.integer(columns), search_list(order, keep),
                 run_control(chosen$name, run$threads, run$progress, pack$names, "Searching tuples"))
  record(new_result(tuples_table(found, pack$names, keep$scale), class = c("weft_mi_tuples", "data.frame")), call,
         chosen, started, unit = keep$unit, by = keep$by, class_levels = pack$class_levels, na = pack$na,
         searched = ways)
}
