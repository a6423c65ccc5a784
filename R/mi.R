#' Rank features by their information about a class
#'
#' `mi_rank()` finds the features that are most informative about a class. The shortest call is `mi_rank(x, class)`,
#' with features in the columns of `x`; it returns a table with one row per feature, best first.
#'
#' The table contains the mutual information I(C;A) between the class and every feature, with entropies, a test and
#' false discovery rates. Counts are exact and scores have double precision; both back ends give the same ranks.
#'
#' With counts \eqn{n_{ac}} and margins \eqn{n_a} and \eqn{n_c},
#' \eqn{I = \sum_{ac} \frac{n_{ac}}{n} \log_2 \frac{n\,n_{ac}}{n_a n_c}}. The statistic is \eqn{G = 2 n \ln 2 \cdot I}
#' (I in bits), with (levels - 1)(classes - 1) degrees of freedom. Only levels that occur are counted, and p is 1 if
#' there are no degrees of freedom. The score is exactly 0 for a constant feature, for a class with one level, and for a
#' feature that is never observed together with the class.
#'
#' @section p-values: If feature and class are independent, every assignment of the class labels to the rows is equally
#'   likely. `p_value` is the probability that such an assignment gives a table with at least as much information. It is
#'   valid even with few rows, rare levels or classes of unequal size, for which the \eqn{\chi^2} approximation gives
#'   far too many significant features. Unlike a permutation p-value, it has no lower limit. How it is computed depends
#'   on the table:
#'   * If all expected cell counts are at least 100 (1,000 with two levels and two classes), G with the correction of
#'     Williams (1976) is compared with \eqn{\chi^2} down to 1e-20. A \eqn{\chi^2} p-value above 0.1 is also kept if
#'     every expected cell count is at least 5.
#'   * Otherwise, if at most about ten thousand tables have the same margins, all of them are enumerated, and p is
#'     exact.
#'   * Otherwise, p is a saddlepoint approximation with the exact mean, within a few percent of the exact p-value in
#'     most tables. If an expected cell count is below 5, p-values up to 0.2 are corrected using random tables with the
#'     same margins. Importance sampling draws tables with high scores more often; every call uses the same tables. The
#'     relative standard error is about 4 % at p = 0.05 and 10 to 15 % at 1e-6.
#'
#'   `print()` shows how many p-values were computed in each way, and the largest standard error.
#'
#' @section Missing values: Every score is computed from one set of rows. With `na = "fail"` (the default), the function
#'   stops with an error if there are missing values, and names their columns. `"drop"` removes, for each score, the
#'   rows in which one of its features or the class is missing; the entropies are computed from the same rows. `"level"`
#'   treats missing values as an additional level of the feature. Rows with a missing class are removed with `"drop"`
#'   and `"level"`.
#'
#' @section Permutation test: With `permutations = B`, the class labels are permuted among the rows B times.
#'   `p_permutation` is (1 + number of permutations in which the feature scores at least as much) / (B + 1). `p_fwer`
#'   compares the feature with the best feature of each permutation, which controls the family-wise error rate, the
#'   probability of any false positive.
#'
#' @section Back ends: Most of the run time of a ranking is spent reading the input, so `"auto"` keeps it on the CPU. A
#'   pack is ranked on the CPU only, and `run = "cuda"` then stops with an error. Permutations run on either back end.
#'
#' @param x features in columns: a data frame of factors, logicals, characters or whole numbers (or, with `bins`, of any
#'   numeric columns), an integer, raw or whole-number matrix, a sparse Matrix, a DelayedMatrix, a SummarizedExperiment
#'   (features in its rows), or a pack made by [mi_pack()] (in which case `class`, `na` and `assay` must be omitted). A
#'   feature can have at most 65,535 levels.
#' @param class a factor or vector of categories, one value per row; for a SummarizedExperiment, it can also be the name
#'   of a column in its `colData`.
#' @param na the treatment of missing values; see section Missing values of [mi_rank()].
#' @param unit `"bits"` or `"nats"`.
#' @param bins the number of bins of equal frequency into which numeric columns are first cut; see [discretize()].
#' @param permutations the number of label permutations; 0 for no permutation test.
#' @param seed a whole number that seeds the permutations and does not affect R's generator; by default, it is drawn
#'   from R's generator.
#' @param assay for a SummarizedExperiment: the assay's name or number.
#' @param run see [weft_run()].
#' @param ... not used; for an unknown argument, the error suggests the intended one.
#' @return A data frame of class `weft_mi`, best feature first (equal scores in the order of the columns): `feature`,
#'   `mi`, `entropy` of the feature, `levels` (those that occur), `n` (rows), `statistic` (G), `df`, `p_value` and
#'   `q_value` (Benjamini and Hochberg); with permutations also `p_permutation` and `p_fwer`. Attributes record the
#'   call, the unit, the back end and the time.
#' @seealso [plot.weft_mi()]
#' @export
#' @examples
#' set.seed(1)
#' class <- rep(c("case", "control"), each = 100)
#' x <- data.frame(
#'   marker = ifelse(runif(200) < 0.8, class == "case", class != "case"),
#'   noise = sample(c("a", "b", "c"), 200, replace = TRUE)
#' )
#' mi_rank(x, class)
mi_rank <- function(x, class, na = c("fail", "drop", "level"), unit = c("bits", "nats"), bins = NULL, permutations = 0,
                    assay = NULL, seed = NULL, run = NULL, ...) {
  run <- as_run(run, dry_run = TRUE)
  started <- proc.time()[[3L]]
  check_dots(..., .known = mi_names_elsewhere)
  need_args("x")
  permutations <- check_number(permutations, "permutations", min = 0, max = 1e7, whole = TRUE)
  na <- check_choice(na, c("fail", "drop", "level"), "na")
  unit <- check_choice(unit, c("bits", "nats"), "unit")
  scale <- if (unit == "bits") 1 else log(2)
  if (!inherits(x, "weft_mi_pack") || !is.null(bins)) {
    need_args("class")
    cut <- memory_errors(with_bins(x, class, bins, assay, run$threads))
    x <- cut$x
    class <- cut$class
    assay <- cut$assay
  }
  if (permutations > 0 || inherits(x, "weft_mi_pack")) {
    pack <- pack_for(x, class, na, assay, NULL, run)
    if (!inherits(x, "weft_mi_pack")) on.exit(weft_free(pack))
    key <- if (permutations > 0 && !run$dry_run) mi_key(seed)
    ranked <- rank_pack(pack, list(permutations = permutations, key = key), scale, run)
    if (run$dry_run) return(ranked)
    return(record(ranked$table, call = match.call(), ranked$chosen, started, unit = unit,
                  class_levels = pack$class_levels, na = pack$na, tests = ranked$tests, permutations = permutations))
  }
  input <- memory_errors(categorical_input(x, assay))
  target <- class_input(class, x, input$n)
  check_some_rows(target$codes, na)
  chosen <- choose_backend(run$backend, mi_plan("rank", n = input$n, p = input$p, threads = run$threads))
  report_backend(chosen, run)
  if (run$dry_run) return(dry_plan("mi_rank", chosen))
  scores <- for_blocks(input, function(data, columns) {
    control <- run_control(chosen$name, run$threads, run$progress, input$names[columns], "Ranking features")
    .Call(C_weft_mi_rank, data, target$codes, length(target$levels), na == "level", control)
  })
  scores <- do.call(Map, c(list(c), scores))
  if (na == "fail" && any(scores$missing > 0)) abort_missing_features(input, scores$missing)
  tested <- feature_tests(scores, input_laws(input, target, na, run))
  best <- order(-scores$mi)
  result <- rank_table(input$names, scores, tested$p, best, scale)
  record(new_result(result, class = c("weft_mi", "data.frame")), call = match.call(), chosen, started, unit = unit,
         class_levels = target$levels, na = na, tests = tested$tests, permutations = 0)
}

# A search needs a row, and one whose class is known. codes: NULL for no class.
check_some_rows <- function(codes, na, n = length(codes)) {
  if (n < 1L) abort_input("`x` must have at least one row.", x = "It has none.")
  if (na == "fail" && anyNA(codes)) abort_missing_class(codes)
  if (length(codes) && all(is.na(codes))) abort_input("`class` must have at least one value that is not missing.",
                                                      x = sprintf("All %d are missing.", n))
}

# Results come back from users, out of files and after changes: abort_changed() says what is not as it was made.
abort_changed <- function(arg, what) {
  abort_input(sprintf("`%s` must be an unmodified weft result.", arg), x = sprintf("It was modified: %s.", what),
              i = "Compute it again.")
}

# What methods read of any result: attributes of one text or number, which must be there when they are among `record`,
# and columns of text or numbers.
check_result <- function(x, arg = "x", record = character(), text = character(), numbers = character()) {
  check_format(x, arg)
  check <- function(names, right) {
    for (name in names) {
      value <- attr(x, name, exact = TRUE)
      if (is.null(value) && !name %in% record) next
      if (right(value) && length(value) == 1L && !is.na(value)) next
      abort_changed(arg, sprintf("its attribute `%s` is damaged", name))
    }
  }
  check(c("backend", "reason", "unit", "na", "method", "estimator", "by"), is.character)
  check(c("seconds", "searched", "features", "threshold", "fdr"), is.numeric)
  if (is.data.frame(x)) check_frame(x, arg)
  changed <- function(name) abort_changed(arg, sprintf("its column `%s` is damaged", name))
  for (name in text) if (!is.character(x[[name]]) || anyNA(x[[name]])) changed(name)
  for (name in numbers) if (!is.numeric(x[[name]]) || anyNA(x[[name]])) changed(name)
}

run_attributes <- c("backend", "reason", "seconds") # what run_line() says

check_shown <- function(n, arg = "n") check_number(n, arg, min = 0, whole = TRUE)

# The ranking of a pack, with a permutation test when there are permutations: list(table, chosen, tests). `test`:
# list(permutations, key).
rank_pack <- function(pack, test, scale, run) {
  permutations <- test$permutations
  chosen <- if (permutations == 0) cpu_only(run$backend, "A pack is ranked")
            else choose_backend(run$backend, mi_plan("rank_permute", n = pack$dim[1L], p = pack$dim[2L],
                                                     permutations = permutations, threads = run$threads))
  report_backend(chosen, run)
  if (run$dry_run) {
    if (permutations == 0) chosen$plan <- mi_plan("rank", n = pack$dim[1L], p = pack$dim[2L], threads = run$threads)
    return(dry_plan("mi_rank", chosen))
  }
  control <- run_control(chosen$name, run$threads, run$progress, pack$names, "Ranking features")
  scores <- .Call(C_weft_mi_pack_rank, pack_pointer(pack), control)
  tested <- feature_tests(scores, function(which) .Call(C_weft_mi_null, pack_pointer(pack), which, control))
  best <- order(-scores$mi)
  result <- rank_table(pack$names, scores, tested$p, best, scale)
  if (permutations > 0) {
    permuted <- .Call(C_weft_mi_permute_rank, pack_pointer(pack), test, control)
    result$p_permutation <- ((1 + permuted$at_least) / (permutations + 1))[best]
    result$p_fwer <- fwer(permuted$observed, permuted$greatest)[best]
  }
  list(table = new_result(result, class = c("weft_mi", "data.frame")), chosen = chosen, tests = tested$tests)
}

rank_table <- function(names, scores, p_value, best, scale) {
  at <- function(field) scores[[field]][best]
  df <- (pmax(at("levels"), 1) - 1) * (pmax(at("class_levels"), 1) - 1)
  as_frame(list(
    feature = names[best], mi = at("mi") * scale, entropy = at("entropy") * scale, levels = at("levels"), n = at("n"),
    statistic = feature_statistic(scores)[best], df = df, p_value = p_value[best],
    q_value = false_rates(p_value)[best]
  ))
}

# What every result records of its run.
record <- function(result, call, chosen, started, ...) {
  attributes(result) <- c(attributes(result), run_record(call, chosen, started, ...))
  result
}

# Sets the attributes of a result that nothing else refers to in place: R would copy a matrix of gigabytes.
set_attributes <- function(x, attributes) .Call(C_weft_set_attributes, x, attributes)

run_record <- function(call, chosen, started, ...) {
  list(call = call, backend = chosen$name, reason = chosen$reason, seconds = proc.time()[[3L]] - started, ...)
}

report_backend <- function(chosen, run) {
  if (run$verbose) message("Back end: ", chosen$name, " (", chosen$reason, ")")
}

run_line <- function(x) {
  if (is.null(attr(x, "seconds"))) return(NULL)
  sprintf("%s back end (%s), %s", attr(x, "backend"), attr(x, "reason"), seconds_text(attr(x, "seconds")))
}

#' Print, summarise and plot feature rankings
#'
#' `plot()` draws the information of the best features as bars; the bars of significant features (q at most `alpha`) are
#' filled. A bracket joins features with equal scores, whose order is arbitrary. The title counts further features with
#' the score of the last one shown.
#'
#' @param x,object an object returned by [mi_rank()].
#' @param n,top the number of features to show.
#' @param alpha the false discovery rate up to which a feature counts as significant.
#' @param ... passed on to [graphics::barplot()] by `plot()`, ignored by the others.
#' @return `print()` and `plot()`: `x`, invisibly. `summary()`: a list with the number of features, the number of
#'   significant features and the quartiles of their information. `tidy()`: a plain data frame with broom's names, such
#'   as `estimate` for the information. `glance()`: one row about the run.
#' @export
#' @examples
#' x <- as.data.frame(lapply(mtcars[c("cyl", "gear", "carb", "vs")], factor))
#' r <- mi_rank(x, mtcars$am)
#' summary(r)
#' plot(r)
print.weft_mi <- function(x, n = 10L, ...) {
  if (!is_ranking(x)) return(print_as_frame(x, n))
  check_ranking(x, record = c("unit", run_attributes))
  n <- check_shown(n)
  cat(sprintf("Mutual information of %s with a class of %s (%s)\n", several(nrow(x), "feature"),
              several(length(attr(x, "class_levels")), "level"), attr(x, "unit")))
  print_first(as.data.frame(x), n)
  tests <- attr(x, "tests")
  permutations <- attr(x, "permutations") %||% 0
  if (is_tests(tests) && is_count(permutations, 0, 1e7)) cat_wrapped(tests_text(tests, permutations))
  invisible(x)
}

is_tests <- function(x) is.integer(x) && identical(names(x), names(tests_of(0L))) && !anyNA(x) && sum(x) > 0

shorten_numbers <- function(table) {
  table[] <- lapply(table, function(column) if (is.double(column)) signif(column, 4) else column)
  table
}

#' @exportS3Method knitr::knit_print
knit_print.weft_mi <- function(x, options = list(), n = 10L, ...) {
  n <- check_shown(n)
  if (!is_ranking(x)) return(knitr::knit_print(as.data.frame(x), options = options, ...))
  check_ranking(x)
  shown <- utils::head(as.data.frame(x), n)
  caption <- sprintf("Best %d of %d features (mutual information in %s)", nrow(shown), nrow(x), attr(x, "unit"))
  form <- knitr::opts_knit$get("out.format")
  escapes <- isTRUE(form %in% c("latex", "listings", "sweave", "html")) # kable() does, for these
  knitr::knit_print(if (escapes) knitr::kable(shorten_numbers(shown), row.names = FALSE, caption = caption)
                    else report_table(shown, caption, digits = 4), ...)
}

# A subset by columns or rows keeps the class; it prints as a data frame when the shape is gone.
is_ranking <- function(x) all(c("feature", "mi", "p_value", "q_value") %in% names(x)) && !is.null(attr(x, "unit"))

check_ranking <- function(x, arg = "x", record = character()) {
  check_result(x, arg, record, "feature", c("mi", "p_value", "q_value"))
}

#' @rdname print.weft_mi
#' @export
summary.weft_mi <- function(object, alpha = 0.05, ...) {
  check_ranking(object, "object")
  alpha <- check_number(alpha, "alpha", min = 0, max = 1)
  as_summary(list(features = nrow(object), significant = sum(object$q_value <= alpha), alpha = alpha,
                  mi = stats::quantile(object$mi, names = TRUE), unit = attr(object, "unit"),
                  run = run_line(object)), "Ranking of features")
}

#' @rdname print.weft_mi
#' @export
as.data.frame.weft_mi <- function(x, ...) {
  check_frame(x, "x")
  list2DF(unclass(x)[names(x)])
}

#' @rdname print.weft_mi
#' @export
tidy.weft_mi <- function(x, ...) broom_names(as.data.frame(x), "mi")

#' @rdname print.weft_mi
#' @export
glance.weft_mi <- function(x, ...) {
  check_result(x, record = c("unit", "na", run_attributes))
  data.frame(features = nrow(x), unit = attr(x, "unit"), na = attr(x, "na"), backend = attr(x, "backend"),
             seconds = attr(x, "seconds"))
}

#' @rdname print.weft_mi
#' @export
plot.weft_mi <- function(x, top = 20L, alpha = 0.05, ...) {
  picture <- ranking_picture(x, top, "x")
  alpha <- check_number(alpha, "alpha", min = 0, max = 1)
  shown <- picture$data[rev(seq_len(nrow(picture$data))), ]
  labels <- cut_name(shown$feature, 24L)
  old <- graphics::par(mar = bar_margins(labels))
  on.exit(graphics::par(old))
  significant <- shown$q_value <= alpha
  settings <- list(height = shown$mi, names.arg = labels, border = "#2c5f8a",
                   col = ifelse(significant, "#2c5f8a", "white"),
                   xlab = paste0(picture$xlab, if (all(significant)) sprintf("; all q <= %g", alpha)),
                   main = picture$title,
                   xlim = c(0, max(shown$mi, 1e-12) * 1.08))
  at <- draw_bars(settings, ...)
  draw_ties(picture$ties, at, nrow(shown), max(shown$mi, 1e-12))
  if (!all(significant)) graphics::legend("bottomright", bty = "n",
                                          legend = as.expression(list(bquote(q <= .(alpha)), "not significant")),
                                           fill = c("#2c5f8a", "white"), border = "#2c5f8a")
  invisible(x)
}

# What arguments are called in other packages (infotheo, minet, praznik, sklearn), and here.
mi_names_elsewhere <- c(y = "class", Y = "class", target = "class", X = "x", dataset = "x",
                        method = "estimator", disc = "bins", nbins = "bins", breaks = "bins", n_neighbors = "k")
