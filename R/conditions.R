# Classed conditions: weft_error_input, weft_error_memory, weft_error_device, weft_error_internal, all of class
# weft_error. A message says what must be; bullets say what was given (x) and what to do (i).

weft_abort <- function(class, message, x = NULL, i = NULL, call = caller_of_weft(), ...) {
  text <- c(message, bullet("cross", x), bullet("info", i))
  stop(structure(
    class = c(paste0("weft_error_", class), "weft_error", "error", "condition"),
    list(message = paste(text, collapse = "\n"), call = call, ...)
  ))
}

abort_input <- function(message, x = NULL, i = NULL, call = caller_of_weft(), ...) {
  weft_abort("input", message, x, i, call, ...)
}

weft_warn <- function(class, message, i = NULL) {
  text <- paste(c(message, bullet("info", i)), collapse = "\n")
  warning(structure(class = c(paste0("weft_warning_", class), "weft_warning", "warning", "condition"),
                    list(message = text, call = caller_of_weft())))
}

bullet <- function(symbol, text) {
  if (length(text)) paste(cli::symbol[[symbol]], text)
}

# The call of the user's that led here: the outermost frame whose function is one of weft's.
caller_of_weft <- function() {
  own <- topenv()
  for (k in seq_len(sys.nframe())) {
    if (identical(topenv(environment(sys.function(k)) %||% baseenv()), own)) return(sys.call(k))
  }
  NULL
}

# Called from C (base/glue.c) after the native side has freed what it owned.
raise_native <- function(status, message, column, condition, control) {
  if (status == "interrupt") {
    if (inherits(condition, "error")) stop(condition)
    signalCondition(condition)
    invokeRestart("abort")
  }
  if (!is.na(column)) message <- paste("Column", column_label(column, control$columns), message)
  hint <- switch(status,
    memory = "Use fewer columns or rows, or set `options(weft.device_memory =)` lower if other work shares the device.",
    device = paste0("`weft_sitrep()` shows what this machine has",
                    if (identical(control$backend, "cuda") && !about_ranks(message)) "; `backend = \"cpu\"` gives the same result", "."),
    internal = "This is a bug in weft; please report it with the call that led here."
  )
  weft_abort(status, message, i = hint)
}

about_ranks <- function(message) grepl("MPI|^rank ", message)

column_label <- function(j, names) {
  if (is.null(names)) as.character(j) else sprintf("`%s` (%d)", names[[j]], as.integer(j))
}

# "`a`, `b` and 3 more"
label_some <- function(labels, most = 5L) {
  shown <- paste0("`", utils::head(labels, most), "`", collapse = ", ")
  more <- length(labels) - most
  if (more > 0) paste(shown, "and", more, "more") else shown
}

describe <- function(x) {
  if (is.null(x)) return("NULL")
  if (is.data.frame(x)) return(sprintf("a data frame of %d rows and %d columns", nrow(x), ncol(x)))
  if (is.object(x) || is.list(x) || is.function(x) || is.language(x)) return(paste("of class", class(x)[1L]))
  kind <- paste(if (typeof(x) == "integer") "an" else "a", typeof(x))
  if (is.matrix(x)) return(sprintf("%s matrix of %d rows and %d columns", kind, nrow(x), ncol(x)))
  if (length(x) != 1L) return(sprintf("%s vector of length %d", kind, length(x)))
  if (is.character(x) && !is.na(x)) encodeString(x, quote = "\"") else as.character(x %|na|% "NA")
}

`%|na|%` <- function(a, b) if (is.na(a)) b else a

`%||%` <- function(a, b) if (is.null(a)) b else a

need_package <- function(package, what) {
  if (requireNamespace(package, quietly = TRUE)) return(invisible())
  abort_input(sprintf("%s needs the package %s.", what, package), i = "Install it from CRAN or Bioconductor.")
}

# ---- checks of single arguments ----

# Says which of the calling function's arguments, by name, was left out.
need_args <- function(...) {
  frame <- parent.frame()
  for (arg in c(...)) {
    if (eval(call("missing", as.name(arg)), frame)) abort_input(sprintf("`%s` must be given.", arg), x = "It is missing.")
  }
}

check_choice <- function(x, choices, arg) {
  if (identical(x, choices)) return(choices[1L])
  if (is.character(x) && length(x) == 1L && !is.na(x) && x %in% choices) return(x)
  abort_input(
    sprintf("`%s` must be one of %s.", arg, paste0("\"", choices, "\"", collapse = ", ")),
    x = paste0("It is ", describe(x), ".")
  )
}

check_flag <- function(x, arg) {
  if (is.logical(x) && length(x) == 1L && !is.na(x)) return(x)
  abort_input(sprintf("`%s` must be TRUE or FALSE.", arg), x = paste0("It is ", describe(x), "."))
}

check_number <- function(x, arg, min = -Inf, max = Inf, whole = FALSE) {
  ok <- is.numeric(x) && length(x) == 1L && !is.na(x) && x >= min && x <= max && (!whole || x == round(x))
  if (ok) return(as.double(x))
  range <- if (is.finite(min) && is.finite(max)) sprintf(" from %s to %s", number_text(min), number_text(max))
           else if (is.finite(min)) sprintf(" of at least %s", number_text(min))
           else if (is.finite(max)) sprintf(" of at most %s", number_text(max))
           else ""
  abort_input(sprintf("`%s` must be one %snumber%s.", arg, if (whole) "whole " else "", range),
              x = paste0("It is ", describe(x), "."))
}

# A bound in full: 2147483647, 1e-06.
number_text <- function(x) format(x, digits = 16L, scientific = x != 0 && (abs(x) < 1e-4 || abs(x) >= 1e16))
