# Classed conditions: weft_error_input, weft_error_memory, weft_error_device, weft_error_internal, all of class
# weft_error. A message says what must be; bullets say what was given (x) and what to do (i).

weft_abort <- function(class, message, x = NULL, i = NULL, call = caller_of_weft(), ...) {
  text <- c(message, bullet("cross", x), bullet("info", i))
  note_error(text)
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

# Evaluates code in which R itself may run out of memory: its error for that has no class, only words, in the user's
# language.
memory_errors <- function(code) {
  withCallingHandlers(code, simpleError = function(e) {
    if (!is_memory_error(e)) return()
    weft_abort("memory", "R cannot allocate memory for a copy of the data.",
               x = paste0(conditionMessage(e), "."),
               i = "Use fewer columns or rows.")
  })
}

is_memory_error <- function(error) {
  words <- sub("%.*", "", gettext("cannot allocate vector of size %0.1f Gb", domain = "R"))
  startsWith(conditionMessage(error), words)
}

# An error of R's that no check foresaw is weft's own, not the user's: it says so, and how to report it. `also`: another
# cause that the user can rule out. Errors that have a class of weft's, and R's error for memory, stay what they are.
abort_bug <- function(error, also = NULL) {
  if (inherits(error, "weft_error")) stop(error)
  Sys.sleep(0) # a stop that the user asked for comes first: it may be why the work failed
  memory_errors(if (is_memory_error(error)) stop(error))
  weft_abort("internal", "This is a bug in weft.", x = plain_text(conditionMessage(error)),
             i = paste(c(how_to_report, also), collapse = " "))
}

how_to_report <- paste("Please report it with the call that caused it and the output of `sessionInfo()` and",
                       "`weft_sitrep()`.")

# The call of the user's that led here: the outermost frame whose function is one of weft's.
caller_of_weft <- function() {
  own <- topenv()
  for (k in seq_len(sys.nframe())) {
    f <- sys.function(k)
    if (identical(topenv(environment(f) %||% baseenv()), own)) return(short_call(sys.call(k), f, own))
  }
  NULL
}

# A call as it reads in a script: do.call() puts the function itself and whole data sets into it.
short_call <- function(call, f, own) {
  if (!is.symbol(call[[1L]]) && !is.call(call[[1L]])) {
    known <- getNamespaceExports(own)
    same <- vapply(known, function(name) identical(get0(name, own), f), NA)
    call[[1L]] <- as.name(if (any(same)) known[same][1L] else "weft")
  }
  for (k in seq_along(call)[-1L]) {
    value <- call[[k]]
    if (missing(value) || is.language(value) ||
        (is.atomic(value) && length(value) <= 1L && is.null(attributes(value)))) next
    call[[k]] <- quote(...)
  }
  call
}

# Called from C (core/r/glue.c) after the native side has freed what it owned.
raise_native <- function(status, message, column, control) {
  if (status == "interrupt") raise_interrupt(message) # a jump out of R code goes on by itself; this is another stop
  if (status == "device" && startsWith(message, "rank ")) abort_stopped(message)
  if (!is.na(column)) message <- paste("Column", column_label(column, control$columns), message)
  hint <- switch(status,
    memory = if (about_device_memory(message)) {
      paste("Use fewer columns or rows, or `run = \"cpu\"`; `options(weft.device_memory =)` limits the memory that",
            "weft uses on a shared device.")
    } else {
      "Use fewer columns or rows, or end other work on this machine."
    },
    device = paste0("`weft_sitrep()` shows the devices of this machine",
                    if (identical(control$backend, "cuda") &&
                        !about_ranks(message)) "; `run = \"cpu\"` gives the same result", "."),
    internal = paste("This is a bug in weft.", how_to_report)
  )
  weft_abort(status, message, i = hint)
}

raise_interrupt <- function(message = "") {
  signalCondition(structure(class = c("interrupt", "condition"), list(message = message, call = NULL)))
  invokeRestart("abort")
}

about_ranks <- function(message) grepl("MPI", message)

# In the wording of weft_fail_memory() (core/call/context.c) and of CUDA's libraries (core/device/device.cu).
about_device_memory <- function(message) startsWith(message, "Not enough device memory")

column_label <- function(j, names) {
  if (is.null(names)) as.character(j) else sprintf("`%s` (%d)", plain_text(names[[j]]), as.integer(j))
}

# "`a`, `b` and 3 more"
label_some <- function(labels, most = 5L) {
  shown <- paste0("`", plain_text(utils::head(labels, most)), "`", collapse = ", ")
  more <- length(labels) - most
  if (more > 0) paste(shown, "and", more, "more") else shown
}

# "12,345", whatever decimal mark the user has set.
thousands <- function(x) {
  trimws(format(x, big.mark = ",", decimal.mark = ".", scientific = FALSE, trim = TRUE, digits = 15L))
}

# "1 row", "2,000 rows".
several <- function(n, what) {
  sprintf("%s %s%s", thousands(n), what, if (n == 1) "" else "s")
}
size_text <- function(x) paste(several(nrow(x), "row"), "and", several(ncol(x), "column"))

describe <- function(x) {
  if (is.null(x)) return("NULL")
  if (is.data.frame(x) && is.list(x)) return(paste("a data frame with", size_text(x)))
  if (is.object(x) || !is.atomic(x)) return(paste("an object of class", class(x)[1L]))
  kind <- paste(if (typeof(x) == "integer") "an" else "a", typeof(x))
  if (is.matrix(x)) return(paste(kind, "matrix with", size_text(x)))
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
    is_missing <- as.call(list(missing, as.name(arg))) # the function itself: an argument may be called `missing`
    if (eval(is_missing, frame)) abort_input(sprintf("`%s` must be given.", arg), x = "It is missing.")
  }
}

# One number, text or truth value without its class, whose methods would otherwise decide what it means.
bare_scalar <- function(x) {
  if (is.null(attributes(x)) || !is.atomic(x) || length(x) != 1L || is.factor(x)) x else as.vector(unclass(x))
}

# A factor's labels; what is no factor stays as it is, and so does one whose codes and levels do not fit, as a list,
# which no argument may be.
factor_text <- function(x) {
  if (is.factor(x)) tryCatch(as.character(x), error = function(e) list(x)) else x
}

# Refuses a factor some of whose codes have no level, as codes become places in native code, and R's own error says not
# whose fault it is. `what`: of the user's.
check_factor <- function(x, what) {
  if (!is.factor(x)) return(invisible(x))
  codes <- unclass(x)
  labels <- attr(x, "levels", exact = TRUE)
  if (is.integer(codes) && is.character(labels) && min(1L, codes, na.rm = TRUE) == 1L &&
        max(0L, codes, na.rm = TRUE) <= length(labels)) return(invisible(x))
  abort_input(sprintf("%s must be a valid factor: every code needs a level.", what),
              x = if (!is.integer(codes)) "Its codes are not integers."
                  else if (!is.character(labels)) "Its levels are not text."
                  else sprintf("Its codes range from %d to %d, but it has %d levels.", min(codes, na.rm = TRUE),
                               max(codes, na.rm = TRUE), length(labels)),
              i = "Create it again from the original values with `factor()`.")
}

# A data frame as a matrix; one whose columns do not fit stays as it is.
plain_matrix <- function(x) tryCatch(as.matrix(x), error = function(e) x)

# Text or truth values without a class, which cannot mean anything there and whose methods fail: a date's, for example.
bare_text <- function(x) {
  if (is.object(x) && (is.character(x) || is.logical(x))) oldClass(x) <- NULL
  x
}

# Not a vector that says that it is a data frame, either. Classes that change what numbers are keep them.
is_numeric_vector <- function(x) is.numeric(x) && !is.data.frame(x)

check_choice <- function(x, choices, arg) {
  if (identical(x, choices)) return(choices[1L])
  x <- bare_scalar(x)
  if (is_word(x) && x %in% choices) return(x)
  abort_input(
    sprintf("`%s` must be one of %s.", arg, paste0("\"", choices, "\"", collapse = ", ")),
    x = paste0("It is ", describe(x), "."),
    i = if (is_word(x) && length(like <- most_alike(x, choices))) sprintf("Did you mean \"%s\"?", like)
  )
}

check_flag <- function(x, arg) {
  x <- bare_scalar(x)
  if (is.logical(x) && length(x) == 1L && !is.na(x)) return(x)
  abort_input(sprintf("`%s` must be TRUE or FALSE.", arg), x = paste0("It is ", describe(x), "."))
}

# What `...` may hold: arguments called `.allowed`. A function has `...` so that a wrong name is an error of ours, which
# says what is meant: what other packages' names (`.known`, from their name to ours) are called here, what is part of
# another argument (`.inside`, by name; `.control` has the settings of `control` as its arguments), or the argument
# whose name is most alike. Its own arguments begin with a dot, or a user's `k` would be taken for `known`.
check_dots <- function(..., .allowed = character(), .known = character(), .control = NULL, .inside = list(),
                       .has = names(formals(sys.function(sys.parent())))) {
  if (!...length()) return(invisible())
  given <- names(substitute(list(...)))[-1L] %||% rep("", ...length())
  wrong <- given[!given %in% .allowed]
  if (!length(wrong)) return(invisible())
  if (!any(nzchar(wrong))) {
    abort_input("Arguments must match those of the function.",
                x = sprintf("There %s too many without a name.",
                            if (length(wrong) == 1L) "is one" else paste("are", length(wrong))))
  }
  wrong <- wrong[nzchar(wrong)]
  if (!is.null(.control)) .inside$`control = list` <- names(formals(.control))
  meant <- vapply(wrong, argument_meant, "", setdiff(c(.has, .allowed), "..."), .known, .inside)
  abort_input(paste0("Unknown argument `", plain_text(wrong[1L]), "`", meant[1L],
                     if (!endsWith(meant[1L], "?")) "."),
              x = if (length(wrong) > 1L) {
                paste0("Also unknown: ", paste0("`", plain_text(wrong[-1L]), "`", meant[-1L], collapse = ", "), ".")
              })
}

# "; use `run = "cuda"`", and the like; "" where nothing is like it.
argument_meant <- function(name, has, known, inside) {
  place <- function(name) { # where an argument stands, in words of code
    if (name %in% names(run_settings) && "run" %in% has) return(paste0("run = ", run_settings[[name]]))
    for (of in names(inside)) if (name %in% inside[[of]]) return(sprintf("%s(%s = )", of, name))
    if (name %in% has) name
  }
  at <- place(name)
  if (!is.null(at)) return(sprintf("; use `%s`", at))
  like <- if (name %in% names(known)) known[[name]] else most_alike(name, c(has, unlist(inside), names(known)))
  if (!length(like)) return("")
  at <- place(if (like %in% names(known)) known[[like]] else like)
  if (is.null(at)) "" else sprintf("; did you mean `%s`?", at)
}

# The word in `words` that is most like `word`: one begins or ends with the other, or few letters differ. NULL: none.
most_alike <- function(word, words) {
  if (!length(words) || !nzchar(word) || nchar(word) > 100L) return(NULL)
  part <- words[startsWith(words, word) | startsWith(word, words) | endsWith(words, word)]
  if (nchar(word) > 1L && length(part)) return(part[which.max(nchar(part))])
  apart <- utils::adist(tolower(word), tolower(words))
  if (min(apart) <= nchar(word) %/% 3) words[which.min(apart)]
}

check_number <- function(x, arg, min = -Inf, max = Inf, whole = FALSE) {
  x <- readable_numbers(x, arg)
  if (is.numeric(x)) x <- bare_scalar(x) # a date is none
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
