# Results come back from files, and files are damaged or written by others. What a result holds is checked before it is
# used, its type, size and range, and rejected with what is wrong; a call or formula in it is never evaluated.

# Every result that can be saved has the number of its format as attribute `format`. It rises when parts of any result
# come to mean something else or have another form.
result_format <- 1L

# structure(), with that number.
new_result <- function(.Data, ...) structure(.Data, ..., format = result_format) # nolint: object_name_linter.

# `x` came as argument `arg`. What does not claim to be a result is for others to reject.
check_format <- function(x, arg) {
  found <- attr(x, "format", exact = TRUE)
  if (identical(found, result_format)) return(invisible(x))
  if (is.null(found) && !any(startsWith(class(x), "weft_"))) return(invisible(x))
  abort_input(sprintf("`%s` must have format %d, the format of this version of weft.", arg, result_format),
              x = if (is.null(found)) "It has no format number." else sprintf("Its format is %s.", describe(found)),
              i = "It was modified, or made by another version of weft. Compute it again.")
}

# A function(part, fine, must): an error unless fine(the part) is TRUE. `x` came as argument `arg` and was made by
# `maker`; `must` says what the part must be. `take` gets a part by its whole name, where `$` would accept a part of it.
parts_of <- function(x, arg, maker, take = function(part) unclass(x)[[part]]) {
  check_format(x, arg)
  function(part, fine, must) {
    ok <- holds(suppressWarnings(fine(take(part))))
    if (!ok) abort_damaged(arg, maker, sprintf("Its `%s` must be %s.", part, must))
  }
}

# The same for what is looked at in every call: `look` is a function(need). One handler serves for all parts, and they
# are gone through again, each with its own, only to say which is wrong.
check_at_once <- function(x, arg, maker, look, take = function(part) unclass(x)[[part]]) {
  need <- parts_of(x, arg, maker, take)
  quick <- function(part, fine, must) if (!isTRUE(fine(take(part)))) stop(part)
  if (!holds(suppressWarnings({ look(quick); TRUE }))) look(need)
}

abort_damaged <- function(arg, maker, what) {
  abort_input(sprintf("`%s` must be an object returned by `%s`.", arg, maker), x = what,
              i = "It was modified, or its file is damaged. Compute it again.")
}

# What run_record() adds, as attributes or as parts of a list.
check_run_record <- function(need) {
  need("backend", function(v) is_word(v, c("cpu", "cuda")), "\"cpu\" or \"cuda\"")
  need("reason", is_word, "a string")
  need("seconds", function(v) is_numbers(v, 1L, min = 0), "a number")
}

# ---- what a part may be: no class, and of a type, length and range ----

is_bare <- function(x, type, n = NULL) is.atomic(x) && !is.object(x) && any(typeof(x) == type) &&
  (is.null(n) || length(x) == n)

is_numbers <- function(x, length = NULL, min = -Inf, max = Inf, whole = FALSE, finite = TRUE) {
  if (!is_bare(x, c("double", "integer"), length)) return(FALSE)
  if (is.double(x) && length(x) > 1e4 && finite) { # in one reading
    each <- points_range(x)
    return(!any(each[3L, ] > 0) && min(each[1L, ]) >= min && max(each[2L, ]) <= max && (!whole || all(x == round(x))))
  }
  if (anyNA(x)) return(FALSE)
  if (!length(x)) return(TRUE)
  if (length(x) == 1L) return(x >= min && x <= max && (!finite || is.finite(x)) && (!whole || x == round(x)))
  range <- range(x)
  range[1L] >= min && range[2L] <= max && (!finite || all(is.finite(range))) && (!whole || is.integer(x) ||
                                                                                 all(x == round(x)))
}

is_number <- function(x, min = -Inf, max = Inf) is_numbers(x, 1L, min, max)
is_count <- function(x, min = 0, max = 2^53) is_numbers(x, 1L, min, max, whole = TRUE)

# Of one type, for native code. `missing`: NA and infinite numbers, too.
is_reals <- function(x, n, min = -Inf, max = Inf, missing = FALSE) is_bare(x, "double", n) &&
  (missing || is_numbers(x, n, min, max))
is_integers <- function(x, n, min, max) is_bare(x, "integer", n) && is_numbers(x, n, min, max)

is_table <- function(x, rows, columns, ...) is.matrix(x) && has_shape(x, c(rows, columns)) && is_numbers(x, ...)
has_shape <- function(x, shape) identical(as.double(dim(x)), as.double(shape))

is_flag <- function(x) is_bare(x, "logical", 1L) && !is.na(x)

is_text <- function(x, n = NULL) is_bare(x, "character", n) && !anyNA(x) && all(validEnc(x) & Encoding(x) != "bytes")
is_word <- function(x, choices = NULL) is_text(x, 1L) && (is.null(choices) || x %in% choices)

# Names of n things, or none.
is_names <- function(x, n) is.null(x) || is_text(x, n)

# Different labels; `length` NULL: at least one.
is_labels <- function(x, length = NULL, unique = TRUE) {
  is_text(x, length) && (!is.null(length) || length(x) > 0L) && (!unique || !anyDuplicated(x))
}

# A data frame whose named columns are plain and of the types given.
is_frame <- function(x, columns = character()) {
  plain <- function(name) {
    column <- .subset2(x, name)
    !is.object(column) && is.null(dim(column)) &&
      switch(columns[[name]], numeric = is.numeric(column), character = is.character(column),
             logical = is.logical(column))
  }
  inherits(x, "data.frame") && is.list(x) && all(names(columns) %in% names(x)) &&
    length(unique(lengths(unclass(x)))) <= 1L && length(attr(x, "row.names")) == length(.subset2(x, 1L)) &&
    all(vapply(names(columns), plain, NA))
}
