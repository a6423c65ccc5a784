# Damaged fits and checkpoints: every slot of a saved object with another length, type, range, NA or NULL.

# Paths of all parts of a nested list, as vectors of positions; not into `leave`.
slot_paths <- function(x, leave = character(), path = integer()) {
  if (!is.list(x)) return(list(path))
  parts <- lapply(setdiff(seq_along(x), which(names(x) %in% leave)), function(i) slot_paths(x[[i]], leave, c(path, i)))
  c(if (length(path)) list(path), unlist(parts, FALSE))
}

slot_name <- function(x, path) {
  names <- character()
  for (i in path) {
    names <- c(names, names(x)[i] %||% i)
    x <- x[[i]]
  }
  paste(names, collapse = "$")
}

`%||%` <- function(a, b) if (is.null(a)) b else a

get_slot <- function(x, path) {
  for (i in path) x <- x[[i]]
  x
}

# `value` NULL: the slot stays, empty.
set_slot <- function(x, path, value) {
  class <- oldClass(x)
  x <- unclass(x)
  if (length(path) > 1L) x[[path[1L]]] <- set_slot(x[[path[1L]]], path[-1L], value)
  else if (is.null(value)) x[path] <- list(NULL)
  else x[[path]] <- value
  oldClass(x) <- class
  x
}

# Other values of a slot, by what was done to it.
damages <- function(v) {
  out <- list(null = NULL, text = "text", `function` = function(x) stop("evaluated"), call = quote(stop("evaluated")),
              list = list(1, "a"), environment = globalenv(), none = if (is.list(v)) list() else v[0L], twice = c(v, v),
              matrix = matrix(0, 2, 2))
  if (is.list(v)) return(c(out, list(unnamed = unname(v), turned = rev(v))))
  if (!is.atomic(v) || is.null(v)) return(out)
  first <- function(value) if (length(v)) replace(v, 1L, value) else value
  greatest <- .Machine$integer.max
  c(out, list(short = v[-1L], shapeless = as.vector(v), missing = first(NA)),
    if (is.numeric(v)) list(negative = first(-1), large = first(1e6), greatest = first(greatest + 0),
                            huge = first(1e300),
                            infinite = first(Inf), nan = first(NaN), half = first(0.5), double = v + 0,
                            integer = suppressWarnings(as.integer(v))),
    if (is.integer(v)) list(negative_integer = first(-1L), large_integer = first(1000000L),
                            greatest_integer = first(greatest)),
    if (is.character(v)) list(factor = factor(v), bytes = first("\xff\xfe")))
}

# The outcomes of uses (functions of the damaged object) that are neither values nor errors of weft's, by name.
irm_unclassed <- function(x, uses) {
  force(x)
  found <- lapply(uses, function(use) {
    tryCatch({
      utils::capture.output(suppressWarnings(use(x)))
      NULL
    }, error = function(e) if (!inherits(e, "weft_error")) paste(class(e)[1L], conditionMessage(e)))
  })
  unlist(found)
}
