# Random valid calls of every function that has both back ends. A maker draws one call from R's random numbers, hard
# input first of all; calls_<room>() in the other helper files names the makers. A call runs twice, on two "sides" (CPU
# and device, one thread and two), and what comes back is compared by what the function promises. test-calls.R and
# proofs/backends.R do that.

# run(side) gives what is compared; `side` has backend, threads and devices. agree(a, b): NULL, or words for the
# difference, where sums may be added in another order; `exact`: the same bits whatever the threads, as everything but a
# choice that goes by time.
drawn_call <- function(f, args, take = plain, agree = same_bits, exact = TRUE, text = call_text(f, args)) {
  list(text = text, agree = agree, exact = exact, run = function(side) take(call_on(side, f, args)))
}

call_on <- function(side, f, args) {
  f <- get(f, asNamespace("weft"))
  side <- side[setdiff(intersect(names(side), settings_of_run), names(args))]
  out <- call_with(f, c(args, if ("run" %in% names(formals(f))) side))
  last_run$backend <- attr(out, "backend") %||% (if (is.list(out)) out$backend) %||% "cpu"
  out
}

last_run <- new.env() # where the last call says that it ran

# ---- running and comparing ----

# The call of a seed: of any function, or of the named ones.
seeded_call <- function(seed, only = NULL, makers = call_makers()) {
  seed_numbers(seed)
  name <- sample(names(makers), 1L, prob = vapply(makers, `[[`, 0, "share"))
  if (length(only)) name <- only[sample(length(only), 1L, prob = vapply(makers[only], `[[`, 0, "share"))]
  seed_numbers(seed) # again, so that a call is the same however its function was chosen
  c(list(name = name, seed = seed), makers[[name]]$make())
}

seed_numbers <- function(seed) set.seed(seed, "Mersenne-Twister", "Inversion", "Rejection")

# Makers by name: list(make, share), share their part of all calls.
call_makers <- function() {
  out <- unlist(lapply(functions_of_rooms("calls_"), function(make) make()), recursive = FALSE)
  out[order(names(out))]
}

# What helper files define under <prefix><room>.
functions_of_rooms <- function(prefix) {
  rooms <- c("base", "bn", "genes", "irm", "kernel", "mi", "models", "pca", "regulation", "store")
  Filter(Negate(is.null), lapply(paste0(prefix, rooms), get0, envir = environment(), mode = "function"))
}

# sides: two of them; `bits`: TRUE when they owe each other the same bits.
check_call <- function(call, sides) {
  on_side <- function(side) {
    withr::local_options(side$options)
    if (is.null(side$variant)) outcome(call, side) else with_simd_level(side$variant, outcome(call, side))
  }
  a <- on_side(sides[[1L]])
  b <- on_side(sides[[2L]])
  compare_outcomes(call, a, b, isTRUE(sides$bits), !is.null(sides[[2L]]$options$weft.device_memory))
}

# list(value, warnings), or list(class, message, warnings) of an error.
outcome <- function(call, side) {
  warnings <- character()
  seed_numbers(call$seed %||% 1) # calls without `seed` draw from R's random numbers
  note <- function(w) {
    warnings <<- c(warnings, class(w)[1L])
    invokeRestart("muffleWarning")
  }
  out <- tryCatch(withCallingHandlers(list(value = call$run(side)), warning = note),
                  error = function(e) list(class = class(e), message = conditionMessage(e)))
  c(out, list(warnings = warnings))
}

# list(state, text): "same", "failed" (the same class of error), "refused" (the second side says that it does not do
# this work, or has too little memory for it) or "different".
compare_outcomes <- function(call, a, b, bits, little_memory = FALSE) {
  verdict <- function(state, text = "") list(state = state, text = text)
  words <- function(o) {
    if (is.null(o$class)) "a value" else paste0(o$class[1L], ": ", strsplit(o$message, "\n")[[1L]][1L])
  }
  for (o in list(a, b)) {
    unclassed <- !is.null(o$class) && !"weft_error" %in% o$class
    if (unclassed) return(verdict("different", paste("an error without a class,", words(o))))
  }
  if (little_memory && "weft_error_memory" %in% b$class) return(verdict("refused"))
  if (!identical(a$class, b$class)) {
    refused <- "weft_error_device" %in% b$class && grepl("on the CPU only|Triples need a device", b$message)
    may <- !is.null(call$may_refuse) && !bits && any(grepl(call$may_refuse, c(a$message, b$message), fixed = TRUE))
    if (refused || may) return(verdict("refused"))
    return(verdict("different", paste(words(a), "and", words(b))))
  }
  if (!is.null(a$class)) return(verdict("failed", a$class[1L]))
  difference <- if (bits && call$exact) same_bits(a$value, b$value)
  difference <- difference %||% call$agree(a$value, b$value)
  if (bits && call$exact && is.null(difference) && !identical(a$warnings, b$warnings)) {
    difference <- sprintf("warnings %s and %s", toString(a$warnings), toString(b$warnings))
  }
  if (is.null(difference)) verdict("same") else verdict("different", difference)
}

# ---- comparing values ----

`%||%` <- function(a, b) if (is.null(a)) b else a

# Only what was computed: no calls, times, back ends and reasons, and no attributes but names, shapes and levels.
plain <- function(x) {
  if (is.function(x) || is.environment(x) || typeof(x) == "externalptr" || is.language(x)) return(NULL)
  kept <- attributes(x)[c("names", "dim", "dimnames", "levels")]
  kept <- kept[!vapply(kept, is.null, NA)]
  if (is.list(x)) {
    x <- lapply(unclass(x), plain)
    if (!is.null(names(x))) x <- x[setdiff(names(x), c("seconds", "backend", "reason", "call", "run", "table"))]
    return(if (is.null(kept$dim)) x else structure(x, dim = kept$dim, dimnames = kept$dimnames))
  }
  attributes(x) <- kept
  x
}

fields <- function(...) function(x) plain(unclass(x)[c(...)])

same_bits <- function(a, b) if (!identical(a, b)) first_difference(a, b)

# Words for where two values differ.
first_difference <- function(a, b, at = "") {
  if (is.list(a) && is.list(b) && length(a) == length(b) && identical(names(a), names(b))) {
    for (k in seq_along(a)) {
      if (!identical(a[[k]], b[[k]])) return(first_difference(a[[k]], b[[k]], paste0(at, "$", names(a)[k] %||% k)))
    }
  }
  alike <- identical(attributes(a), attributes(b)) && length(a) == length(b) && typeof(a) == typeof(b) && !is.list(a)
  if (!alike) return(sprintf("%s: %s and %s", at, value_text(a), value_text(b)))
  off <- which(!mapply(identical, a, b))
  sprintf("%s: %d of %d numbers differ, number %d is %s and %s", at, length(off), length(a), off[1L],
          exact_text(a[off[1L]]), exact_text(b[off[1L]]))
}

exact_text <- function(x) format(x, digits = 17)

# Numbers within `bound` of each other (one, or as many); NA and infinite ones in the same places.
within <- function(a, b, bound, what = "") {
  if (length(a) != length(b) || !identical(dim(a), dim(b))) {
    return(sprintf("%s: %s and %s", what, value_text(a), value_text(b)))
  }
  dim(a) <- dim(b) <- NULL
  off <- abs(a - b)
  off[a == b | (is.na(a) & is.na(b))] <- 0
  off[is.na(off)] <- Inf
  bound <- rep_len(as.vector(bound), length(off))
  wrong <- which(off > bound)
  if (!length(wrong)) return(NULL)
  k <- wrong[which.max(off[wrong] / pmax(bound[wrong], 1e-300))]
  sprintf("%s: %d of %d numbers too far apart, number %d is %s and %s, %.3g may be between them", what, length(wrong),
          length(off), k, exact_text(a[k]), exact_text(b[k]), bound[k])
}

# The first difference of several comparisons.
first_of <- function(...) {
  for (k in seq_len(...length())) if (!is.null(found <- ...elt(k))) return(found)
  NULL
}

# ---- telling ----

call_text <- function(f, args) {
  shown <- vapply(args, value_text, "")
  names <- names(args) %||% rep("", length(args))
  sprintf("%s(%s)", f, paste0(ifelse(nzchar(names), paste(names, "= "), ""), shown, collapse = ", "))
}

value_text <- function(x) {
  if (is.data.frame(x)) return(sprintf("<data frame %d x %d>", nrow(x), ncol(x)))
  if (isS4(x)) return(sprintf("<%s %s>", class(x)[1L], paste(dim(x), collapse = " x ")))
  if (is.object(x) && !is.factor(x)) return(sprintf("<%s>", class(x)[1L]))
  if (!is.null(dim(x))) return(sprintf("<%s %s>", typeof(x), paste(dim(x), collapse = " x ")))
  short <- is.atomic(x) && length(x) <= 6L && !is.factor(x)
  if (short) return(paste(deparse(unname(x), control = "digits17"), collapse = ""))
  if (is.list(x) && length(x) <= 4L) return(call_text("list", x))
  if (is.function(x)) return("<function>")
  sprintf("<%s of %d>", class(x)[1L], length(x))
}

# ---- drawing ----

pick <- function(..., prob = NULL) { # one of the arguments
  choices <- list(...)
  choices[[sample(length(choices), 1L, prob = prob)]]
}

chance <- function(p) stats::runif(1) < p
whole <- function(from, to) from + sample(to - from + 1L, 1L) - 1L
log_uniform <- function(from, to) 10^stats::runif(1, from, to)
some_size <- function(most, least = 0) max(least, if (chance(0.25)) pick(0, 1, 2, 3, 4) else whole(1, most))

# What a call gives for an argument, or nothing at all, so that defaults are tried too.
maybe <- function(p, ...) if (chance(p)) list(...) else list()

# Numbers of one column: shapes, ties, constants; tiny or huge spread, at an offset or not.
some_numbers <- function(n, extreme = 0.4) {
  x <- switch(pick("normal", "uniform", "ties", "constant", "skewed", "copies", prob = c(5, 2, 2, 0.5, 1, 1)),
    normal = stats::rnorm(n), uniform = stats::runif(n), ties = sample(0:3, n, TRUE), constant = rep(1, n),
    skewed = stats::rcauchy(n), copies = stats::rnorm(max(1, n %/% 4))[sample(max(1, n %/% 4), n, TRUE)])
  if (chance(extreme)) x <- x * log_uniform(-12, 8) + pick(0, 1, -1) * log_uniform(-2, 8)
  x
}

# Columns that say little or nothing: without any value, with one, with none in a group of rows, of one value, or of as
# many as there are rows. `groups`: a class or strata. Which kinds there are, for those who must know how many levels.
degenerate_kinds <- c("empty", "one known", "empty in a group", "constant", "all distinct")
degenerate_column <- function(kind, z, groups = NULL) {
  n <- length(z)
  if (!n) return(z)
  in_group <- if (is.null(groups)) seq_len(n) <= n / 2 else groups %in% sample(groups, 1L)
  at <- switch(kind, empty = seq_len(n), "one known" = -sample(n, 1L), "empty in a group" = which(in_group), integer())
  z[at] <- NA
  if (kind == "constant") z[] <- z[1L]
  if (kind == "all distinct") z[] <- sample(n)
  z
}

with_gaps <- function(x, share) {
  if (share > 0) x[stats::runif(length(x)) < share] <- NA
  x
}
