# Which native entry points weft's R code enters: watch_native_calls() puts a function in the place of `.Call`. It comes
# before anything that keeps one of weft's functions, as lists of calls do.
entries <- character() # their names so far

# before(name) is called when the arguments of an entry point have been evaluated, after() when it has ended.
watch_native_calls <- function(before = function(name) NULL, after = function() NULL) {
  native_call <<- function(.NAME, ...) {
    entries <<- union(entries, .NAME$name)
    force(list(...))
    on.exit(after())
    before(.NAME$name)
    .Call(.NAME, ...)
  }
  weft <- asNamespace("weft")
  for (name in ls(weft, all.names = TRUE)) {
    f <- get(name, weft)
    if (!is.function(f) || !".Call" %in% all.names(body(f))) next
    body(f) <- with_native_call(body(f))
    utils::assignInNamespace(name, f, "weft")
  }
  methods_table <- getNamespaceInfo("weft", "S3methods")
  for (row in seq_len(nrow(methods_table))) {
    f <- get(methods_table[row, 3L], weft)
    if ("native_call" %in% all.names(body(f))) {
      registerS3method(methods_table[row, 1L], methods_table[row, 2L], methods_table[row, 3L], weft)
    }
  }
}

# `code` with `native_call`, which weft's functions find in the global environment, for `.Call`.
with_native_call <- function(code) {
  if (identical(code, quote(.Call))) return(quote(native_call))
  if (is.call(code) || is.pairlist(code)) {
    for (k in seq_along(code)) {
      part <- code[[k]]
      if (!missing(part) && !is.null(part)) code[[k]] <- with_native_call(part)
    }
  }
  code
}

all_entries <- function() ls(asNamespace("weft"), pattern = "^C_weft_", all.names = TRUE)
