#' Select features for a class one at a time
#'
#' `mi_select()` chooses a few features that are jointly informative about a class and not redundant. The shortest call
#' is `mi_select(x, class)`; it returns a table of ten features in the order in which they were chosen.
#'
#' The selection is greedy. The feature with the most information about the class comes first, and each further feature
#' is the best one given the features already chosen.
#'
#' With W the features chosen so far, Y the class and X a candidate:
#'
#' | method | score of X |
#' |---|---|
#' | `"mim"` | I(X;Y) |
#' | `"mrmr"` | I(X;Y) - mean over W of I(X;W) |
#' | `"jmi"`, `"jmim"` | sum, minimum, over W of I(X,W;Y) |
#' | `"disr"`, `"njmim"` | sum, minimum, over W of I(X,W;Y) / H(X,W,Y) |
#' | `"cmim"` | the minimum of I(X;Y) and, over W, I(X;Y given W) |
#' | `"cmi"` | I(X;Y given all of W together) |
#' | `"jim"` | sum over W of the Gini gain \eqn{\sum p_{xwy}^2/p_{xw} - \sum p_y^2} |
#'
#' The first feature is chosen according to I(X;Y), or according to its Gini gain under `"jim"`. Scores that differ by
#' at most 1e-12 bits are ties, and the first column is chosen. `"cmim"` and `"cmi"` stop if the best score is at most
#' 1e-12. Every score is computed from the rows in which all of its variables are observed.
#'
#' Selection runs on the CPU only, because sending the features to a device would take longer than counting them;
#' `run = "cuda"` stops with an error. For the redundancy of all pairs of features, use [mi_matrix()], which runs on
#' either back end.
#'
#' @inheritParams mi_rank
#' @param k the number of features, at most as many as there are; by default ten, or all if there are fewer.
#' @param method the name of a method; see the table in Details.
#' @param unit `"bits"` or `"nats"`; ratios and Gini gains have no unit.
#' @param ... not used; for an unknown argument, the error suggests the intended one.
#' @return A data frame of class `weft_selection` with `feature` and `score` in order of selection.
#' @export
#' @examples
#' x <- lapply(mtcars[c("cyl", "gear", "carb", "vs")], factor)
#' mi_select(as.data.frame(x), mtcars$am, k = 3, method = "jmi")
#' mi_select(iris[1:4], iris$Species, k = 2, method = "mrmr", bins = 5)
mi_select <- function(x, class, k = 10, method = c("mrmr", "mim", "jmi", "jmim", "njmim", "disr", "cmim", "cmi", "jim"),
                      bins = NULL, na = c("fail", "drop", "level"), unit = c("bits", "nats"), assay = NULL, run = NULL,
                      ...) {
  run <- as_run(run, dry_run = TRUE)
  started <- proc.time()[[3L]]
  check_dots(..., .known = mi_names_elsewhere)
  need_args("x", "class")
  chosen <- cpu_only(run$backend, "Features are selected")
  method <- check_choice(method, names(select_methods), "method")
  na <- check_choice(na, c("fail", "drop", "level"), "na")
  unit <- check_choice(unit, c("bits", "nats"), "unit")
  given <- memory_errors(with_bins(x, class, bins, assay, run$threads))
  input <- memory_errors(whole_input(categorical_input(given$x, given$assay)))
  if (missing(k)) k <- min(k, input$p)
  k <- check_number(k, "k", min = 0, whole = TRUE)
  if (k > input$p) abort_input("`k` must be at most the number of features.",
                               x = sprintf("`k` is %g, and there are %d features.", k, input$p))
  target <- class_input(given$class, given$x, input$n)
  check_some_rows(target$codes, na)
  if (na == "fail") fail_missing(input$names, column_facts(input, na, run$threads)$missing, "x")
  if (run$dry_run) return(dry_plan("mi_select", c(chosen, list(engine = "selection and bins"))))
  control <- run_control("cpu", run$threads, run$progress, input$names, "Selecting features")
  picked <- .Call(C_weft_mi_select, input$data, target$codes, length(target$levels), na == "level",
                  list(method = method, k = k), control)
  in_unit <- c(select_methods[[method]][["first"]],
               rep(select_methods[[method]][["later"]], max(length(picked$score) - 1L, 0L)))
  scale <- ifelse(in_unit[seq_along(picked$score)] & unit == "nats", log(2), 1)
  out <- as_frame(list(feature = input$names[picked$feature], score = picked$score * scale), length(picked$score))
  record(new_result(out, class = c("weft_selection", "data.frame")), match.call(), chosen, started, method = method,
         unit = unit, columns = picked$feature, features = input$p)
}

# Those of src/mi/select/kinds.h; whether the first score, and the later ones, are information, which has a
# unit.
select_methods <- list(
  mrmr = c(first = TRUE, later = TRUE), mim = c(first = TRUE, later = TRUE), jmi = c(first = TRUE, later = TRUE),
  jmim = c(first = TRUE, later = TRUE), njmim = c(first = TRUE, later = FALSE), disr = c(first = TRUE, later = FALSE),
  cmim = c(first = TRUE, later = TRUE), cmi = c(first = TRUE, later = TRUE), jim = c(first = FALSE, later = FALSE)
)

#' Print and plot selections
#'
#' @param x an object returned by [mi_select()].
#' @param n the number of features to show.
#' @param ... passed on to [graphics::barplot()] by `plot()`, ignored by `print()`.
#' @return `x`, invisibly.
#' @export
#' @examples
#' s <- mi_select(iris[1:4], iris$Species, k = 4, bins = 5)
#' s
#' plot(s)
print.weft_selection <- function(x, n = 20L, ...) {
  if (is.null(attr(x, "method")) || !all(c("feature", "score") %in% names(x))) return(print_as_frame(x, n))
  check_selection(x, c("features", run_attributes))
  n <- check_shown(n)
  cat(sprintf("%d of %.0f features selected (%s)\n", nrow(x), attr(x, "features"), attr(x, "method")))
  print_first(list2DF(list(feature = x$feature, score = x$score), nrow(x)), n, row.names = TRUE)
  invisible(x)
}

check_selection <- function(x, record = character()) check_result(x, "x", c("method", record), "feature", "score")

#' @rdname print.weft_selection
#' @export
plot.weft_selection <- function(x, n = 20L, ...) {
  check_selection(x)
  picture <- selection_picture(x, check_shown(n), "x")
  shown <- picture$data[rev(seq_len(nrow(picture$data))), ]
  labels <- cut_name(shown$feature, 24L)
  old <- graphics::par(mar = bar_margins(labels))
  on.exit(graphics::par(old))
  draw_bars(list(height = shown$score, names.arg = labels, col = "#2c5f8a", border = NA, xlab = picture$xlab,
                 main = picture$title), ...)
  invisible(x)
}
