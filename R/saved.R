# Results come back from files, and files are damaged or written by others. What a result holds is looked at before it is
# used, type, size and range, and refused with what is wrong; a call or formula in it is never evaluated.

# A function(part, fine, must): an error unless fine(the part) is TRUE. `x` came as argument `arg` and was made by `maker`;
# `must` says what the part must be. `take` gets a part by its whole name, where `$` would be content with its beginning.
parts_of <- function(x, arg, maker, take = function(part) unclass(x)[[part]]) {
  function(part, fine, must) {
    ok <- tryCatch(suppressWarnings(isTRUE(fine(take(part)))), error = function(e) FALSE)
    if (!ok) abort_damaged(arg, maker, sprintf("Its `%s` must be %s.", part, must))
  }
}

abort_damaged <- function(arg, maker, what) {
  abort_input(sprintf("`%s` must be what `%s` returned.", arg, maker), x = what,
              i = "It was changed after it was made, or its file is damaged: make it again.")
}

# What run_record() adds, as attributes or as parts of a list.
check_run_record <- function(need) {
  need("backend", function(v) is_word(v, c("cpu", "cuda")), "\"cpu\" or \"cuda\"")
  need("reason", is_word, "a string")
  need("seconds", function(v) is_numbers(v, 1L, min = 0), "a number")
}

is_numbers <- function(x, length = NULL, min = -Inf, max = Inf, whole = FALSE, finite = TRUE) {
  if (!is.numeric(x) || is.object(x) || (!is.null(length) && length(x) != length) || anyNA(x)) return(FALSE)
  if (!length(x)) return(TRUE)
  range <- range(x)
  range[1L] >= min && range[2L] <= max && (!finite || all(is.finite(range))) && (!whole || is.integer(x) || all(x == round(x)))
}

is_table <- function(x, rows, columns, ...) is.matrix(x) && nrow(x) == rows && ncol(x) == columns && is_numbers(x, ...)

# A data frame whose columns are vectors of its length.
is_frame <- function(x) {
  is.data.frame(x) && all(vapply(unclass(x), function(v) is.atomic(v) && is.null(dim(v)) && length(v) == nrow(x), NA))
}

is_word <- function(x, choices = NULL) {
  is.character(x) && length(x) == 1L && !is.na(x) && (is.null(choices) || x %in% choices)
}

is_yes_or_no <- function(x) is.logical(x) && length(x) == 1L && !is.na(x)

# Different labels; `length` NULL: at least one.
is_labels <- function(x, length = NULL) {
  is.character(x) && !anyNA(x) && !anyDuplicated(x) && (if (is.null(length)) length(x) > 0L else length(x) == length)
}
