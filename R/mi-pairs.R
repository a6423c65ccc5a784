#' Search all pairs of features for joint information about a class
#'
#' `mi_pairs()` finds the pairs of features that are jointly most informative about a class. The shortest call is
#' `mi_pairs(x, class)`. It returns a data frame of the 1,000 best pairs, best first. Most calls also set `bins` for
#' numeric features, `by = "interaction"` for synergy and `permutations` for p-values.
#'
#' The score is \eqn{I(C; A_m \times A_n)}, the information that both features together carry about the class. The
#' interaction is the information that the pair carries beyond that of its members,
#' \eqn{I(C; A_m \times A_n) - I(C; A_m) - I(C; A_n)}. It is positive for synergy, as in an exclusive or, and negative
#' for redundancy, as for two identical features. Counts are exact, and results do not depend on the back end or the
#' number of threads.
#'
#' `vignette("gwas-pair-scan")` explains tests, strata, traits and large data, and
#' `vignette("genes-alone-and-together")` shows a search of expression data.
#'
#' @param x features in columns, such as a data frame of factors; see [mi_rank()] for all accepted types. For a pack
#'   made by [mi_pack()], do not give `class`, `na` or `assay`.
#' @param class a factor or vector of categories, one value per row, or the name of a column of `colData(x)`.
#' @param top the number of pairs to keep; `Inf` for all.
#' @param by the score to order by, `"mi"` or `"interaction"`.
#' @param features names or numbers of the features to pair; by default all.
#' @param strata categories (like `class`) within which to score pairs. Rows without a stratum are treated like rows
#'   without a class.
#' @param permutations the number of label permutations; 0 for no test.
#' @param na the treatment of missing values: `"fail"` stops with an error, `"drop"` removes their rows, and `"level"`
#'   makes them an additional level; see [mi_rank()].
#' @param bins the number of bins of equal frequency into which numeric columns are first cut; see [discretize()].
#' @param control a list of settings that are rarely needed:
#'   * `min_mi`, `min_gain`: the smallest joint information and interaction of pairs to keep, in `unit`.
#'   * `with`: names or numbers of features; only pairs of one of `features` with one of these are searched.
#'   * `min_distance`: exclude pairs on one chromosome that are closer than this, in bases.
#'   * `positions`: a data frame of each feature's `chromosome` and `position` (not for data from [plink_file()] and
#'     [read_plink()]). Features without a position are never close to others.
#'   * `full`: whether to return all pairs as matrices.
#'   * `unit`: `"bits"` or `"nats"`.
#'   * `assay`: the name or number of the assay to use.
#' @param seed a whole number; by default, it is drawn from R's generator.
#' @param run see [weft_run()]. The search is split over devices and ranks.
#' @param ... not used; unknown arguments cause an error.
#' @return A data frame of class `weft_mi_tuples`, best pair first: `feature1` and `feature2` (in column order), their
#'   joint `mi`, the `mi1` and `mi2` of the individual features, the `interaction`, and the number `n` of rows used.
#'   `permutations` adds `p_value`, for the individual pair, and `p_fwer`, for the whole search. With `full`, a list of
#'   two symmetric matrices, `mi` and `interaction`; the diagonal of `mi` is the information of individual features.
#' @seealso [mi_triples()], [mi_trait()], [pair_scan()] for covariates
#' @export
#' @examples
#' mi_pairs(iris[1:4], iris$Species, bins = 3)
#' set.seed(1)
#' x <- matrix(sample(0:1, 200 * 30, TRUE), 200)
#' class <- xor(x[, 3], x[, 7]) # neither is informative alone
#' mi_pairs(x, class, top = 2, by = "interaction", permutations = 99, seed = 1)
#' round(mi_pairs(x[, 1:4], class, control = list(full = TRUE))$interaction, 3)
mi_pairs <- function(x, class, top = 1000, by = c("mi", "interaction"), features = NULL, strata = NULL,
                     permutations = 0, na = c("fail", "drop", "level"), bins = NULL, control = list(), seed = NULL,
                     run = NULL, ...) {
  run <- as_run(run, ranks = TRUE, dry_run = TRUE)
  ranks <- join_ranks(run$ranks, "mi_pairs", c(each_rank, "x"))
  control <- check_control(control, mi_pairs_control)
  started <- proc.time()[[3L]]
  call <- match.call()
  check_dots(..., .control = mi_pairs_control, .known = mi_names_elsewhere)
  need_args("x")
  keep <- check_search(top, control$min_mi, control$min_gain, by, control$unit)
  full <- check_flag(control$full, "full")
  permutations <- check_number(permutations, "permutations", min = 0, max = 1e7, whole = TRUE)
  na <- check_choice(na, c("fail", "drop", "level"), "na")
  at_once <- if (is.null(ranks) && !full && !missing(class)) variants_at_once(x)
  if (is.null(at_once)) {
    only_searched <- is.null(ranks) && !full && permutations == 0 && is.null(features) &&
      is.null(control$with)
    where <- if (only_searched) where_planes(x, run) else list(name = "cpu")
    pack <- pack_for(x, class, na, control$assay, bins, run, strata, backend = where$name,
                     devices = devices_for(run$devices, where$name, where$divided))
    if (!inherits(x, "weft_mi_pack")) on.exit(weft_free(pack), add = TRUE)
    same_on_ranks(ranks, x = what_is_packed(pack))
  }
  names <- if (is.null(at_once)) pack$names else colnames(x)
  side <- sides(names, features, control$with)
  near <- near_pairs(control$min_distance, control$positions %||% positions_of(x), length(names))
  keep$near <- near
  p <- as.double(if (is.null(side)) length(names) else sum(side != 0))
  choose <- function(pack) {
    choose_for_tuples(run, pack, p * (p - 1) / 2 * (1 + permutations))
  }
  control_of <- function(chosen, pack) {
    run_control(chosen$name, run$threads, run$progress, pack$names, "Searching pairs",
                devices_for(run$devices, chosen$name, chosen$divided))
  }
  if (run$dry_run) {
    chosen <- if (is.null(at_once)) choose(pack) else where_planes(x, run)
    return(dry_plan("mi_pairs", chosen))
  }
  if (is.null(at_once)) {
    chosen <- choose(pack)
    native <- control_of(chosen, pack)
  }
  if (full) {
    if (!is.null(side) || permutations > 0 || run$ranks || !is.null(near)) {
      abort_input(paste("`full = TRUE` cannot be used with `features`, `with`, `min_distance`, `permutations` and",
                        "ranks."),
                  i = "Use a subset of the columns of `x`.")
    }
    return(record(full_pairs(pack, native, keep$scale), call, chosen, started, unit = keep$unit,
                  strata = pack$strata_levels))
  }
  test <- if (permutations > 0) list(permutations = permutations, key = mi_key(seed))
  if (is.null(at_once)) {
    found <- search_tuples(pack, side, 2L, keep, ranks, native)
    tested <- if (permutations > 0) test_pairs(pack, side, found, keep, test, ranks, native)
  } else {
    pack_of <- function(at) pack_for(some_variants(x, at), class, na, control$assay, bins, run, strata)
    parts <- search_by_blocks(side, length(names), at_once, keep, pack_of, choose, control_of, test)
    found <- parts$found
    tested <- parts$tested
    chosen <- parts$chosen
    pack <- parts$about
  }
  out <- tuples_table(found, names, keep$scale)
  if (permutations > 0) {
    out$p_value <- (1 + Reduce(`+`, lapply(tested, `[[`, "at_least"))) / (permutations + 1)
    out$p_fwer <- fwer(found[[keep$by]], do.call(pmax, lapply(tested, `[[`, "greatest")))
  }
  record(new_result(out, class = c("weft_mi_tuples", "data.frame")), call, chosen, started, unit = keep$unit,
         by = keep$by,
         class_levels = pack$class_levels, strata = pack$strata_levels, na = pack$na, permutations = permutations,
         searched = choose_tuples(side, p, 2) - count_near(near, side))
}

mi_pairs_control <- function(min_mi = NULL, min_gain = NULL, with = NULL, min_distance = 0, positions = NULL,
                             full = FALSE, unit = c("bits", "nats"), assay = NULL) as.list(environment())

# What the ranks' permutations say of the pairs found: lists of `at_least` and `greatest`.
test_pairs <- function(pack, side, found, keep, test, ranks, control) {
  if (!is.null(ranks)) test$key <- ranks_gather(test$key, control)[[1L]]
  how <- c(list(by_interaction = keep$by == "interaction"), test, near_list(keep$near), rank_part(ranks))
  tested <- .Call(C_weft_mi_permute_pairs, pack_pointer(pack), side, found$columns, how, control)
  if (is.null(ranks)) list(tested) else ranks_gather(tested, control)
}

# The arguments that all searches share; minima in bits.
check_search <- function(top, min_mi, min_gain, by, unit) {
  by <- check_choice(by, c("mi", "interaction"), "by")
  unit <- check_choice(unit, c("bits", "nats"), "unit")
  scale <- if (unit == "bits") 1 else log(2)
  top <- check_number(top, "top", min = 1)
  if (is.finite(top)) top <- check_number(top, "top", min = 1, max = 2^31 - 1, whole = TRUE)
  minimum <- function(value, arg) if (is.null(value)) -Inf else minimum_in_bits(check_number(value, arg), scale)
  list(top = top, by = by, unit = unit, scale = scale, min_mi = minimum(min_mi, "min_mi"),
       min_gain = minimum(min_gain, "min_gain"))
}

# The least number of bits that is not below `value` once it is reported, times `scale`. value / scale alone may be
# rounded up, and a score that is reported as `value` would then be lost: its neighbours are tried too.
minimum_in_bits <- function(value, scale) {
  near <- value / scale * (1 + (-4:4) * 2^-53)
  min(near[near * scale >= value])
}

# The columns of `names` that an argument chooses.
chosen_columns <- function(which, names, arg) {
  which <- bare_text(which)
  if (is.character(which) && anyDuplicated(names) && any(twice <- which %in% names[duplicated(names)])) {
    abort_input(sprintf("Features in `%s` must have unique names.", arg),
                x = sprintf("Duplicated: %s.", label_some(unique(which[twice]))),
                i = "Use their numbers instead.")
  }
  at <- if (is.character(which)) match(which, names) else if (is.numeric(which)) match(which, seq_along(names)) else NA
  if (length(which) && !anyNA(at)) return(unique(at))
  bad <- if (is.atomic(which) && !is.object(which) && length(which)) which[is.na(at)] else character()
  abort_input(sprintf("`%s` must contain names or numbers of features.", arg),
              x = if (length(bad) && is.atomic(which)) sprintf("There is no feature %s.", label_some(as.character(bad)))
                  else paste0("It is ", describe(which), "."))
}

# A byte per feature: bit 0, in the first set; bit 1, in the second; NULL: all pairs.
sides <- function(names, features, with) {
  if (is.null(features) && is.null(with)) return(NULL)
  first <- if (is.null(features)) seq_along(names) else chosen_columns(features, names, "features")
  second <- if (is.null(with)) first else chosen_columns(with, names, "with")
  side <- integer(length(names))
  side[first] <- 1L
  side[second] <- side[second] + 2L
  as.raw(side)
}

# The best tuples of `order`; over ranks each searches its tiles.
search_tuples <- function(pack, side, order, keep, ranks, control) {
  found <- .Call(C_weft_mi_search, pack_pointer(pack), side, search_list(order, keep, ranks), control)
  if (is.null(ranks)) found else best_of(ranks_gather(found, control), keep)
}

# This rank's part of what is dealt, from 0, and how many parts there are.
# What native code reads of a search: check_search() and which part of it this rank does.
search_list <- function(order, keep, ranks = NULL) {
  c(list(order = order, by_interaction = keep$by == "interaction"), keep[c("top", "min_mi", "min_gain")],
    near_list(keep$near), rank_part(ranks))
}

# ---- pairs left out because they are neighbours ----

# Where the variants of genotypes lie, NULL for other data.
positions_of <- function(x) {
  if (inherits(x, "weft_mi_pack")) return(x$positions)
  variants <- if (inherits(x, "weft_plink")) whole_plink(x)$variants else if (is.matrix(x)) attr(x, "variants")
  if (is.data.frame(variants) && all(c("chromosome", "position") %in% names(variants)))
    variants[c("chromosome", "position")]
}

# list(chromosome: numbers from 1, position, distance), or NULL when nothing is left out.
near_pairs <- function(min_distance, positions, p) {
  min_distance <- check_number(min_distance, "min_distance", min = 0)
  if (min_distance == 0) return(NULL)
  fine <- is.data.frame(positions) && all(c("chromosome", "position") %in% names(positions)) &&
    nrow(positions) == p && is.numeric(positions$position)
  if (!fine) {
    abort_input(sprintf("`positions` must be a data frame with the `chromosome` and `position` of %.0f features.", p),
                x = paste0("It is ", describe(positions), "."),
                i = "`min_distance` needs `positions =`, except with data from `plink_file()` and `read_plink()`.")
  }
  position <- as.double(positions$position)
  position[is.na(positions$chromosome)] <- NaN
  list(chromosome = match(positions$chromosome, unique(positions$chromosome)), position = position,
       distance = min_distance)
}

near_list <- function(near) {
  if (is.null(near)) list(chromosome = NULL, position = NULL, distance = 0) else near
}

# How many pairs of a search are left out.
count_near <- function(near, side) {
  if (is.null(near)) return(0)
  within <- function(which) {
    groups <- split(near$position[which], near$chromosome[which])
    sum(vapply(groups, function(position) {
      position <- sort(position)
      sum(findInterval(position + near$distance, position, left.open = TRUE) - seq_along(position))
    }, 0))
  }
  if (is.null(side)) return(within(seq_along(near$position)))
  within(which(side != 0)) - within(which(side == 1)) - within(which(side == 2))
}

rank_part <- function(ranks) if (is.null(ranks)) c(part = 0L, parts = 1L) else c(part = ranks$rank, parts = ranks$size)

# The best of several finds of tuples, in the order of one search.
best_of <- function(found, keep) {
  together <- function(what, bind) do.call(bind, lapply(found, `[[`, what))
  columns <- together("columns", cbind)
  score <- together(keep$by, c)
  by_column <- lapply(seq_len(nrow(columns)), function(k) columns[k, ])
  best <- utils::head(do.call(order, c(list(-score), by_column)), keep$top)
  list(columns = columns[, best, drop = FALSE], each = together("each", cbind)[, best, drop = FALSE],
       mi = together("mi", c)[best], interaction = together("interaction", c)[best], n = together("n", c)[best])
}

choose_tuples <- function(side, p, order) {
  if (is.null(side) || order > 2) return(choose(p, order))
  first <- sum(side == 1L)
  second <- sum(side == 2L)
  both <- sum(side == 3L)
  first * second + both * (first + second) + choose(both, 2)
}

# The back end of a search of pairs, or of triples of the features that `side` says, of which `top` are kept.
choose_for_tuples <- function(run, pack, tuples, order = 2, side = NULL, top = 0) {
  info <- .Call(C_weft_mi_pack_info, pack_pointer(pack))
  most <- two_greatest(info$levels)
  of <- if (is.null(side)) rep(TRUE, pack$dim[2L]) else side != 0
  plan <- function() {
    mi_plan("tuples", tuples = tuples, n = pack$dim[1L], p = pack$dim[2L], order = order,
            planes = if (most[1L] <= 2) 1 else mean(pmin(pmax(info$levels - 1, 1), 24)), packed_bytes = info$bytes,
            levels = most[1L], classes = info$classes, strata = length(pack$strata_levels),
            rows_of_a_class = max(info$class_rows), empty_classes = sum(info$class_rows == 0),
            missing = pack$na != "level" && any(info$missing[of] > 0), searched = sum(of),
            searched_levels = max(info$levels[of], 0), top = min(top, 2^53), threads = run$threads)
  }
  stays <- plan()$stays
  chosen <- if (is.null(stays)) choose_backend(run$backend, plan()) else cpu_only(run$backend, stays, plan())
  chosen <- note_large(chosen, if (most[1L] > 24 || info$classes > 64) prod(most) * info$classes else 0)
  report_backend(chosen, run)
  chosen
}

# The back end that will search all pairs of a PLINK file, as far as its size says, to make the planes there.
where_planes <- function(x, run) {
  if (!inherits(x, "weft_plink")) return(list(name = "cpu"))
  d <- as.double(dim(x))
  choose_backend(run$backend, mi_plan("tuples", tuples = d[2L] * (d[2L] - 1) / 2, n = d[1L], p = d[2L], order = 2,
                                      planes = 2, packed_bytes = d[1L] * d[2L] / 4, threads = run$threads))
}

two_greatest <- function(x) {
  at <- which.max(x)
  c(x[at], max(x[-at], 0))
}

tuples_table <- function(found, names, scale) {
  order <- nrow(found$columns)
  features <- lapply(seq_len(order), function(k) names[found$columns[k, ]])
  each <- lapply(seq_len(order), function(k) found$each[k, ] * scale)
  as_frame(c(
    stats::setNames(features, paste0("feature", seq_len(order))), list(mi = found$mi * scale),
    stats::setNames(each, paste0("mi", seq_len(order))), list(interaction = found$interaction * scale, n = found$n)
  ))
}

full_pairs <- function(pack, control, scale) {
  p <- pack$dim[2L]
  need <- 2 * 8 * as.double(p)^2
  have <- host_free()
  if (have >= 0 && need > have) {
    weft_abort("memory", sprintf("`full = TRUE` needs two matrices of %d by %d numbers, %.1f GB.", p, p, need / 1e9),
               x = sprintf("Only %.1f GB are available.", have / 1e9),
               i = "`top =` or `min_mi =` keep only the best pairs.")
  }
  out <- .Call(C_weft_mi_full, pack_pointer(pack), control)
  alone <- .Call(C_weft_mi_pack_rank, pack_pointer(pack), control)$mi
  diag(out$mi) <- alone
  diag(out$interaction) <- -alone
  lapply(out, function(m) {
    dimnames(m) <- list(pack$names, pack$names)
    if (scale == 1) m else m * scale
  })
}

# The two halves of the 64-bit key of the permutations.
mi_key <- function(seed) {
  if (is.null(seed)) return(floor(stats::runif(2) * 2^32))
  as_halves(check_number(seed, "seed", min = 0, max = 2^53 - 1, whole = TRUE))
}

# Probability that the best score of a permutation is at least this one's.
fwer <- function(scores, greatest) {
  sorted <- sort(greatest)
  (1 + length(sorted) - findInterval(scores, sorted, left.open = TRUE)) / (length(sorted) + 1)
}

#' Print, summarise and plot pairs, triples and tuples of features
#'
#' `plot()` draws the joint information of the best tuples as bars. A dot marks the information without the interaction:
#' for a pair the sum of the single features, for larger tuples the best of the tuples without one member. A dot to the
#' left of the end of a bar means synergy, and a dot to its right means redundancy.
#'
#' @param x,object an object returned by [mi_pairs()], [mi_triples()] or [mi_tuples()].
#' @param n,top the number of tuples to show.
#' @param ... passed on to [graphics::barplot()] by `plot()`, ignored by the others.
#' @return `x`, invisibly; `summary()`: a list with the number of tuples kept and searched, and the quartiles of
#'   information and interaction; `as.data.frame()`: a plain data frame; `tidy()`: the same with broom's names;
#'   `glance()`: one row about the run.
#' @export
#' @examples
#' x <- as.data.frame(lapply(mtcars[c("cyl", "gear", "carb", "vs")], factor))
#' r <- mi_pairs(x, mtcars$am)
#' summary(r)
#' plot(r)
print.weft_mi_tuples <- function(x, n = 10L, ...) {
  if (!is_tuples(x)) return(print_as_frame(x, n))
  check_tuples(x, record = c("unit", "searched", run_attributes))
  n <- check_shown(n)
  order <- tuple_order(x)
  strata <- length(attr(x, "strata"))
  cat_wrapped(sprintf("Joint information of %s with a class of %d level%s%s (%s): %s kept of %s",
              tuple_word(order), length(attr(x, "class_levels")),
              if (length(attr(x, "class_levels")) == 1L) "" else "s",
              if (strata) sprintf(" within %d strat%s", strata, if (strata == 1L) "um" else "a") else "",
              attr(x, "unit"),
              thousands(nrow(x)), thousands(attr(x, "searched"))))
  if (!is.null(x$p_fwer) && nrow(x)) {
    beyond <- sum(x$p_fwer <= 0.05)
    cat_wrapped(if (beyond) sprintf("%d significant at a family-wise error rate of 0.05.", beyond)
                else sprintf("None is significant: the smallest family-wise p-value is %.2g.", min(x$p_fwer)))
  }
  print_first(as.data.frame(x), n)
  if (!is.null(x$p_value) && !is.null(x$p_fwer)) cat_wrapped(permutations_text(x))
  invisible(x)
}

# Which permutations p-values are from, where these end, and how many would show a pair among all that were searched.
permutations_text <- function(x) {
  permutations <- attr(x, "permutations")
  searched <- attr(x, "searched")
  if (!is_count(permutations, 1, 1e7) || !is_number(searched, 0)) {
    return("p_value and p_fwer are based on random permutations of the class.")
  }
  text <- sprintf("p_value and p_fwer are based on %s of the class%s and cannot be below %s.",
                  several(permutations, "random permutation"), if (length(attr(x, "strata"))) " within strata" else "",
                  format(1 / (permutations + 1), digits = 2))
  needed <- ceiling(searched / 0.05) - 1
  if (permutations >= needed) return(text)
  paste(text,
        sprintf(paste("p_fwer is corrected for all pairs. After Bonferroni correction for %s pairs, p_value could",
                            "only be significant with at least %s permutations."), thousands(searched),
                            thousands(needed)))
}

is_tuples <- function(x) all(c("feature1", "feature2", "mi", "interaction") %in% names(x)) && !is.null(attr(x, "unit"))
check_tuples <- function(x, arg = "x", record = character()) {
  check_result(x, arg, record, c("feature1", grep("^feature", names(x), value = TRUE)), c("mi", "interaction"))
}
tuple_order <- function(x) sum(grepl("^feature[0-9]+$", names(x)))
tuple_word <- function(order) {
  if (order == 2L) "pairs" else if (order == 3L) "triples" else sprintf("tuples of %d", order)
}

#' @rdname print.weft_mi_tuples
#' @export
summary.weft_mi_tuples <- function(object, ...) {
  check_tuples(object, "object")
  as_summary(list(kept = nrow(object), searched = attr(object, "searched"),
                  mi = stats::quantile(object$mi, names = TRUE),
                  interaction = stats::quantile(object$interaction, names = TRUE), unit = attr(object, "unit"),
                  run = run_line(object)), "Tuples of features")
}

#' @rdname print.weft_mi_tuples
#' @export
as.data.frame.weft_mi_tuples <- function(x, ...) {
  check_frame(x, "x")
  list2DF(unclass(x)[names(x)])
}

#' @rdname print.weft_mi_tuples
#' @export
tidy.weft_mi_tuples <- function(x, ...) broom_names(as.data.frame(x), "mi")

#' @rdname print.weft_mi_tuples
#' @export
glance.weft_mi_tuples <- function(x, ...) {
  check_tuples(x, record = c("unit", "na", "by", "searched", run_attributes))
  data.frame(kept = nrow(x), searched = attr(x, "searched"), order = tuple_order(x), by = attr(x, "by"),
             unit = attr(x, "unit"), na = attr(x, "na"), backend = attr(x, "backend"), seconds = attr(x, "seconds"))
}

#' @rdname print.weft_mi_tuples
#' @export
plot.weft_mi_tuples <- function(x, top = 20L, ...) {
  picture <- tuples_picture(x, top, "x")
  shown <- picture$data[rev(seq_len(nrow(picture$data))), ]
  labels <- cut_name(shown$label, 36L)
  old <- graphics::par(mar = bar_margins(labels) + c(0, 0, 1.6, 0))
  on.exit(graphics::par(old))
  settings <- list(height = shown$mi, names.arg = labels, border = NA, col = "#8fb3d1",
                   xlab = picture$xlab, xlim = c(0, max(shown$mi, shown$without, 1e-12) * 1.05),
                   main = picture$title)
  at <- draw_bars(settings, ...)
  graphics::points(shown$without, at, pch = 19, col = "#1f3b57")
  graphics::legend(graphics::grconvertX(0.5, "nfc"), graphics::par("usr")[4L], xjust = 0.5, yjust = 0.2, xpd = NA,
                   horiz = TRUE, bty = "n", pch = c(15, 19), pt.cex = c(1.8, 1), cex = 0.9,
                   legend = c("joint", "without the interaction"), col = c("#8fb3d1", "#1f3b57"))
  invisible(x)
}
