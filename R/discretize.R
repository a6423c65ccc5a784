# nolint start: line_length_linter. Rows of tables in the help page stand on one line each.
#' Cut numeric columns into bins
#'
#' `discretize()` turns numeric columns into factors. The shortest call is `discretize(x)`, which makes five bins of
#' equal frequency; it returns a data frame of factors. The result keeps the cut points, and `predict()` puts new data
#' into the same bins.
#'
#' | method | bins |
#' |---|---|
#' | `"equalfreq"` | cuts at the values with ranks ceiling(b n / bins), b = 1, 2, ...; equal values stay together, so there may be fewer bins |
#' | `"equalwidth"` | bin 1 + floor((x - min) / w) with w = (max - min) / bins; the maximum belongs to the last bin |
#' | `"sd"` | `under`, `normal` and `over`: below, within and above mean \eqn{\pm} `z` standard deviations |
#' | `"mdl"` | splits a bin as long as this lowers the class entropy by more than the split costs to describe (Fayyad and Irani 1993) |
#' | `"caim"`, `"cacc"`, `"ameva"` | adds the cut that raises a criterion of classes and bins most, as long as the criterion rises (Kurgan and Cios 2004; Tsai, Lee and Yang 2008; Gonzalez-Abril et al. 2009); the first two continue until there are as many bins as classes |
#'
#' Cuts that use a class lie half way between neighbouring values; `x` and `-x` get the same bins, mirrored. A column
#' without information about the class becomes a factor with one level. Bins are closed on the right, except for bins of
#' equal width, which are closed on the left. `"equalwidth"` and `"sd"` compute their cut points; a value that differs
#' from a cut point only by rounding is treated as equal, so bins do not depend on units. Missing values stay missing.
#' New values outside the range fall into the outermost bins.
#'
#' @inheritParams mi_rank
#' @param x a data frame or numeric matrix, or a SummarizedExperiment. In a data frame, columns that are not numeric
#'   stay as they are.
#' @param method the name of the method; see the table above.
#' @param bins the number of bins, for `"equalfreq"` and `"equalwidth"`.
#' @param class for `"mdl"`, `"caim"`, `"cacc"` and `"ameva"`: one category per row.
#' @param z for `"sd"`: the number of standard deviations.
#' @param run see [weft_run()].
#' @param ... not used; for an unknown argument, the error suggests the intended one.
#' @return A data frame of factors, of class `weft_bins`. The attribute `"cuts"` holds the cut points of each column.
#' @seealso `bins =` in [mi_rank()], [mi_matrix()] and [mi_select()], which cuts by equal frequency in the same call.
#' @export
#' @examples
#' d <- discretize(iris, "mdl", class = iris$Species)
#' attr(d, "cuts")$Petal.Width
#' table(d$Petal.Width, iris$Species)
#' predict(d, data.frame(Petal.Width = c(0.3, 2.1)))
# nolint end
discretize <- function(x, method = c("equalfreq", "equalwidth", "mdl", "caim", "cacc", "ameva", "sd"), bins = 5,
                       class = NULL, z = 1, assay = NULL, run = NULL, ...) {
  run <- as_run(run)
  check_dots(..., .known = c(breaks = "bins", nbins = "bins", nb = "bins", disc = "method", y = "class"))
  need_args("x")
  if (!is.null(run$backend)) cpu_only(run$backend, "Columns are discretised")
  if (is.numeric(method) && length(method) == 1L) {
    abort_input("`method` must be the name of a discretisation method.", x = paste0("It is ", describe(method), "."),
                i = sprintf("To set the number of bins, use `bins = %s`.", describe(method)))
  }
  method <- check_choice(method, c("equalfreq", "equalwidth", class_cuts, "sd"), "method")
  bins <- check_number(bins, "bins", min = 1, max = 65535, whole = TRUE)
  z <- check_number(z, "z", min = 0)
  by_class <- method %in% class_cuts
  frame <- memory_errors(bins_frame(x, assay))
  if (by_class && is.null(class)) {
    abort_input(sprintf("`class` must be given for method \"%s\".", method),
                i = "Methods \"equalfreq\" and \"equalwidth\" need no class.")
  }
  target <- if (by_class) class_input(class, x, nrow(frame))
  numbers <- binned_columns(frame)
  values <- memory_errors(column_matrix(frame[numbers]))
  if (method %in% c("equalwidth", "sd")) check_finite_columns(values, names(frame)[numbers])
  rules <- switch(method,
    equalfreq = lapply(find_cuts(values, bins = bins, threads = run$threads), function(cuts) list(cuts = cuts)),
    equalwidth = lapply(seq_len(ncol(values)), function(j) width_rule(values[, j], bins)),
    sd = lapply(seq_len(ncol(values)), function(j) sd_rule(values[, j], z)),
    lapply(find_cuts(values, method, target = target, threads = run$threads), function(cuts) list(cuts = cuts))
  )
  names(rules) <- names(frame)[numbers]
  out <- memory_errors(apply_rules(frame, numbers, rules, run$threads))
  new_result(out, class = c("weft_bins", "data.frame"), method = method, rules = rules,
            cuts = lapply(rules, `[[`, "cuts"))
}

# A data frame from what discretize() and `bins =` take.
bins_frame <- function(x, assay, arg = "x") {
  source <- as_source(x, assay, arg)
  x <- source$data
  if (source$kind == "frame") return(structure(as.list(x), names = names(x), class = "data.frame",
                                               row.names = attr(x, "row.names")))
  x <- source_matrix(source)
  if (is.numeric(x) || is.logical(x)) {
    colnames(x) <- feature_names(x)
    return(as.data.frame(x, optional = TRUE))
  }
  abort_input(sprintf("`%s` must be a data frame, numeric matrix or SummarizedExperiment.", arg),
              x = paste0("It is ", describe(source$data), "."))
}

binned_columns <- function(frame) {
  which(vapply(frame, function(column) is.numeric(column) && !is.factor(column) && is.null(dim(column)), NA))
}

column_matrix <- function(frame) {
  matrix(as.double(unlist(frame, use.names = FALSE)), nrow(frame), length(frame))
}

check_finite_columns <- function(values, names) {
  bad <- colSums(is.infinite(values)) > 0
  if (any(bad)) {
    abort_input("`x` must be finite for this method.",
                x = sprintf("Infinite values occur in %s.", label_some(names[bad])),
                i = "Method \"equalfreq\" accepts infinite values.")
  }
}

# Native code cuts by these and by "equalfreq": src/mi/bins/kinds.h.
class_cuts <- c("mdl", "caim", "cacc", "ameva")

# Cut points of every column of a double matrix.
find_cuts <- function(values, method = "equalfreq", bins = 0, target = NULL, threads = NULL) {
  .Call(C_weft_mi_cuts, values, list(method = method, bins = bins), target$codes, length(target$levels),
        run_control("cpu", threads, FALSE))
}

width_rule <- function(x, bins) {
  x <- x[!is.na(x)]
  least <- if (length(x)) min(x) else 0
  width <- if (length(x)) max(x) / bins - least / bins else 0
  if (!width > 0) return(list(cuts = numeric(), least = least, width = 1, bins = 1))
  list(cuts = least + seq_len(bins - 1) * width, least = least, width = width, bins = bins)
}

sd_rule <- function(x, z) {
  x <- x[!is.na(x)]
  varies <- length(x) > 1L && max(x) > min(x)
  unit <- if (varies) 2^floor(log2(max(abs(x)))) # so that squares neither vanish nor overflow
  spread <- if (varies) stats::sd(x / unit) * unit else 0
  center <- if (!length(x)) 0 else if (spread > 0) mean(x) else x[1L]
  list(cuts = center + c(-z, z) * spread, sd = TRUE)
}

# By how much rounding may move decimals of this size beside an edge that was computed from them.
edge_slack <- function(...) 2^-47 * max(abs(c(...)))

# Bins from 1 of the values of a double matrix, column j by rules[[j]].
bin_values <- function(values, rules, threads = NULL) {
  if (length(rules) && !is.null(rules[[1L]]$width)) {
    codes <- vapply(seq_along(rules), function(j) {
      rule <- rules[[j]]
      slack <- edge_slack(rule$least, rule$least + rule$bins * rule$width)
      as.integer(pmin(pmax(1 + floor((values[, j] - rule$least + slack) / rule$width), 1), rule$bins))
    }, integer(nrow(values)))
    return(matrix(codes, nrow(values), length(rules)))
  }
  if (length(rules) && !is.null(rules[[1L]]$sd)) {
    codes <- vapply(seq_along(rules), function(j) {
      cuts <- rules[[j]]$cuts
      slack <- edge_slack(cuts)
      1L + (values[, j] >= cuts[1L] - slack) + (values[, j] > cuts[2L] + slack)
    }, integer(nrow(values)))
    return(matrix(codes, nrow(values), length(rules)))
  }
  cuts <- lapply(rules, `[[`, "cuts")
  starts <- c(0, cumsum(as.double(lengths(cuts))))
  .Call(C_weft_mi_cut, values, as.double(unlist(cuts, use.names = FALSE)), starts, run_control("cpu", threads, FALSE))
}

apply_rules <- function(frame, numbers, rules, threads = NULL) {
  codes <- bin_values(column_matrix(frame[numbers]), unname(rules), threads)
  columns <- unclass(frame) # a data frame would copy all its columns for each that changes
  columns[numbers] <- lapply(seq_along(numbers), function(i) {
    structure(codes[, i], levels = bin_labels(rules[[i]]), class = "factor")
  })
  class(columns) <- class(frame)
  columns
}

bin_labels <- function(rule) {
  if (!is.null(rule$sd)) return(c("under", "normal", "over"))
  cuts <- rule$cuts
  if (!length(cuts)) return("all")
  for (digits in 4:17) {
    text <- formatC(cuts, digits = digits, format = "g", width = 1)
    if (!anyDuplicated(text)) break
  }
  from <- c("-Inf", text)
  to <- c(text, "Inf")
  if (is.null(rule$width)) paste0("(", from, ",", to, "]") else paste0("[", from, ",", to, ")")
}

#' Use and print cut points
#'
#' @param object,x an object returned by [discretize()].
#' @param newdata a data frame or matrix with the columns that were cut, in any order; other columns stay as they are.
#' @param ... ignored.
#' @return `predict()`: a data frame of factors with the levels of `object`; `print()`: `x`, invisibly.
#' @export
#' @examples
#' d <- discretize(mtcars, bins = 3)
#' d
#' predict(d, mtcars[1:3, c("mpg", "wt")])
predict.weft_bins <- function(object, newdata, ...) {
  if (missing(newdata)) return(as.data.frame(object))
  frame <- bins_frame(newdata, NULL, "newdata")
  rules <- bin_rules(object, "object")
  known <- which(names(frame) %in% names(rules))
  if (!length(known)) {
    abort_input("`newdata` must contain columns that were discretised.",
                x = sprintf("It has %s.", label_some(names(frame))),
                i = sprintf("The discretised columns are %s.", label_some(names(rules))))
  }
  numeric <- vapply(frame[known], is.numeric, NA)
  if (!all(numeric)) {
    abort_input("Columns of `newdata` that are discretised must be numeric.", x = sprintf("Not numeric: %s.",
                label_some(names(frame)[known[!numeric]])))
  }
  if (identical(names(frame)[known], names(rules))) return(apply_rules(frame, known, rules))
  twice <- unique(c(names(rules)[duplicated(names(rules))], names(frame)[known][duplicated(names(frame)[known])]))
  if (length(twice)) {
    abort_input("Columns of `newdata` must have unique names, because they are matched by name.",
                x = sprintf("These occur twice: %s.", label_some(twice)))
  }
  apply_rules(frame, known, rules[match(names(frame)[known], names(rules))])
}

# The cut points of a result, on which native code and the labels rely.
bin_rules <- function(x, arg) {
  check_format(x, arg)
  rules <- attr(x, "rules", exact = TRUE)
  number <- function(v, lengths = 1L) is.numeric(v) && length(v) %in% lengths && !anyNA(v)
  fine <- function(rule) {
    is.list(rule) && is.numeric(rule$cuts) && !anyNA(rule$cuts) && !is.unsorted(rule$cuts) &&
      (is.null(rule$width) || number(rule$width) && number(rule$least) && number(rule$bins) &&
       length(rule$cuts) == rule$bins - 1) &&
      (is.null(rule$sd) || isTRUE(rule$sd) && length(rule$cuts) == 2L)
  }
  whole <- is.list(rules) && (length(rules) == 0L || is.character(names(rules)) && !anyNA(names(rules))) &&
    all(vapply(rules, fine, NA))
  kinds <- if (whole) vapply(rules, function(rule) 2 * is.null(rule$sd) + is.null(rule$width), 0)
  if (!whole || length(unique(kinds)) > 1L) abort_changed(arg, "its attribute `rules` is damaged")
  rules
}

#' @rdname predict.weft_bins
#' @export
print.weft_bins <- function(x, ...) {
  if (is.null(attr(x, "rules"))) return(NextMethod())
  check_result(x, record = "method")
  rules <- bin_rules(x, "x")
  cat(sprintf("%d rows, %d of %d columns discretised (%s)\n", nrow(x), length(rules), length(x), attr(x, "method")))
  for (j in utils::head(seq_along(rules), 10L)) {
    cuts <- rules[[j]]$cuts
    shown <- paste(format(utils::head(cuts, 6L), digits = 4L), collapse = " ")
    cat(sprintf("  %s: %s%s\n", names(rules)[j], if (length(cuts)) shown else "one bin",
                if (length(cuts) > 6L) " ..." else ""))
  }
  if (length(rules) > 10L) cat(sprintf("  ... and %d more\n", length(rules) - 10L))
  invisible(x)
}

#' @rdname predict.weft_bins
#' @export
as.data.frame.weft_bins <- function(x, ...) {
  check_frame(x, "x")
  structure(as.list(x)[names(x)], names = names(x), class = "data.frame", row.names = attr(x, "row.names"))
}

# `bins =`: numeric columns of the input by equal frequency, as whole numbers from 1; other columns as they are.
bin_input <- function(x, bins, assay = NULL, threads = NULL, arg = "x") {
  bins <- check_number(bins, "bins", min = 1, max = 65535, whole = TRUE)
  source <- as_source(x, assay, arg)
  x <- source_matrix(source) %||% source$data
  if (source$kind == "frame") {
    numbers <- binned_columns(x)
    if (!length(numbers)) return(x)
    values <- column_matrix(bins_frame(x, NULL)[numbers])
  } else {
    if (!is.matrix(x) || !is.numeric(x)) return(x)
    values <- x
    if (!is.double(values)) storage.mode(values) <- "double"
  }
  codes <- bin_values(values, lapply(find_cuts(values, bins = bins, threads = threads),
                                     function(cuts) list(cuts = cuts)), threads)
  if (!is.data.frame(x)) return(`dimnames<-`(codes, dimnames(x)))
  x[numbers] <- lapply(seq_along(numbers), function(i) codes[, i])
  x
}

# The same for a function of `x` and `class`, where the class may be the name of a column of `x`: list(x, class, assay),
# where `assay` is what is left to be chosen. Without bins they stay as they are.
with_bins <- function(x, class, bins, assay = NULL, threads = NULL) {
  if (inherits(x, "weft_mi_pack")) abort_input("`bins` must not be given for a pack.",
                                               i = "Give `bins` to `mi_pack()`, or use `discretize()` first.")
  if (is.null(bins)) return(list(x = x, class = class, assay = assay))
  if (is.null(class)) return(list(x = bin_input(x, bins, assay, threads)))
  if (is_experiment(x)) {
    target <- class_input(class, x, experiment_dim(x)[2L])
    class <- factor(target$levels[target$codes + 1L], levels = target$levels)
  }
  list(x = bin_input(x, bins, assay, threads), class = class)
}
