# Objects of saved results, changed in one place each. `paths()` names all places down to a depth, attributes among
# them; `damaged()` has one of them replaced.

paths <- function(x, depth) {
  here <- list()
  if (depth == 0L) return(here)
  parts <- if (is.list(x)) if (is.null(names(x))) seq_along(x) else names(x) else character()
  for (name in utils::head(parts, 40L)) {
    at <- list(list("part", name))
    here <- c(here, list(at), lapply(paths(.subset2(x, name), depth - 1L), function(p) c(at, p)))
  }
  for (name in setdiff(names(attributes(x)), c("names"))) {
    at <- list(list("attribute", name))
    here <- c(here, list(at), lapply(paths(attr(x, name, exact = TRUE), depth - 1L), function(p) c(at, p)))
  }
  here
}

damaged <- function(x, path, change) {
  if (!length(path)) return(change(x))
  step <- path[[1L]]
  class <- oldClass(x)
  if (step[[1L]] == "attribute") {
    new <- damaged(attr(x, step[[2L]], exact = TRUE), path[-1L], change)
    tryCatch(attr(x, step[[2L]]) <- new, error = function(e) NULL)
    return(x)
  }
  x <- unclass(x)
  new <- damaged(x[[step[[2L]]]], path[-1L], change)
  if (is.null(new)) x[step[[2L]]] <- list(NULL) else x[[step[[2L]]]] <- new
  tryCatch(`oldClass<-`(x, class), error = function(e) x)
}

path_text <- function(path) {
  paste(vapply(path, function(s) paste0(if (s[[1L]] == "attribute") "@" else "$", s[[2L]]), ""), collapse = "")
}

# What happens to a place.
changes <- list(
  null = function(v) NULL, text = function(v) "<b>", none = function(v) if (is.null(v)) NULL else v[0L],
  missing = function(v) NA, negative = function(v) if (is.numeric(v)) -abs(v) - 1 else -1,
  huge = function(v) if (is.numeric(v)) v + 1e9 else 1e9, list = function(v) list(1, "a"),
  code = function(v) function(...) stop("called"),
  gone = function(v) if (is.atomic(v) && length(v) > 1L) v[-1L] else numeric(),
  nan = function(v) if (is.numeric(v)) v * NaN else NaN, plain = function(v) unclass(v), deep = function(v) list(v)
)

# Runs f; NULL where it works or says classed what is wrong, else what it said.
unclassed <- function(f) {
  tryCatch({
    utils::capture.output(suppressMessages(suppressWarnings(f())))
    NULL
  }, weft_error = function(e) NULL, error = function(e) paste(class(e)[1L], conditionMessage(e)))
}
