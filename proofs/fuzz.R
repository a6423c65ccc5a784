# Random invalid calls of every exported function and method: valid arguments of which one to three are spoilt, left
# out, exchanged for other arguments' or given other attributes. What comes back must be a result or a classed
# condition. A call that asks for more work than twenty seconds of the processor is stopped by R then, as an interrupt
# would; one that cannot be stopped is ended after two minutes of the processor, or twenty by the clock, and told, as is
# one that ends R: a process runs some hundred calls.
#
#   Rscript proofs/fuzz.R [--calls 100000] [--seed S] [--jobs 2] [--seconds Inf] [--backend cpu] [--only pca,irm]
#                            [--call S]
#
# --seconds   no call begins later than this; the last line says how many were made
# --backend   cuda: what can run on a device does, unless the call spoils that argument. Each process loads weft by
#             itself then, since CUDA does not survive fork()
#
# A finding is two lines, the second runs it again. Exit status 1 if there was any, or if no call was made.
`%||%` <- function(a, b) if (is.null(a)) b else a
source("proofs/options.R")
for (file in c("helper-arguments.R", "helper-errors.R", "helper-variants.R", "helper-store.R", "helper-store-files.R",
                "helper-spoilt.R")) source(file.path("tests/testthat", file))
given <- options_given(calls = "100000", seed = as.character(sample(1e8, 1L)), jobs = "2", seconds = "Inf",
                       backend = "cpu", only = NA, call = NA)
BATCH <- if (given$backend == "cpu") 200 else 1000
ENDLESS <- 120 # seconds of the processor

# Valid calls, the names of those that are drawn, and any function's arguments.
prepare <- function() {
  suppressPackageStartupMessages(library(weft))
  options(weft.progress = FALSE)
  valid <- valid_calls(variants = TRUE)
  calls <<- lapply(c(valid$exported, valid$methods, valid$variants), function(call) {
    if ("run" %in% names(formals(call$f))) call$args$run <- weft_run(given$backend, threads = 1, progress = FALSE)
    call
  })
  drawn <<- if (is.na(given$only)) names(calls) else strsplit(given$only, ",")[[1L]]
  values <<- unlist(lapply(unname(calls), function(call) unname(call$args)), recursive = FALSE)
}
calls <- drawn <- values <- NULL

one_of <- function(x) x[[sample.int(length(x), 1L)]]

# `x` with other attributes: a class that it does not have, none, other dimensions, names that break lines.
other_attributes <- function(x) {
  if (is.null(x) || is.environment(x) || is.symbol(x)) return(x)
  bad_names <- c("a\nb", "", NA, "<b>", "=1+1", "\u00fc\t,;\"")
  tryCatch(switch(sample(5L, 1L),
                  structure(x, class = one_of(list("data.frame", "Date", "noquote", "weft_pca", "weft_mi_pack"))),
                  `attributes<-`(x, NULL),
                  `dim<-`(x, c(1L, length(x))),
                  `names<-`(x, rep_len(bad_names, length(x))),
                  `dimnames<-`(x, lapply(dim(x), function(n) rep_len(bad_names, n)))), error = function(e) x)
}

# list(f, args, label): a valid call with some arguments changed.
spoilt_call <- function(seed) {
  set.seed(seed, "Mersenne-Twister", "Inversion", "Rejection")
  name <- one_of(drawn)
  call <- calls[[name]]
  args <- call$args
  changed <- sample(call$sweep, min(length(call$sweep), sample(3L, 1L, prob = c(0.7, 0.2, 0.1))))
  how <- vapply(changed, function(arg) {
    how <- sample(c("spoilt", "wrong", "exchanged", "attributes"), 1L, prob = c(0.5, 0.2, 0.15, 0.15))
    value <- args[[arg]] %||% one_of(values)
    choices <- switch(how, spoilt = tryCatch(spoilt_values(value), error = function(e) wrong_values()),
                      wrong = wrong_values(), exchanged = values, attributes = list(other_attributes(value)))
    picked <- sample.int(length(choices), 1L)
    if (how == "wrong" && names(choices)[picked] == "missing") args[[arg]] <<- NULL
    else args[arg] <<- choices[picked]
    paste(arg, "=", how, names(choices)[picked])
  }, "")
  list(f = call$f, args = args, label = sprintf("%s(%s)", name, paste(how, collapse = ", ")))
}

show_finding <- function(seed, label, words) {
  words <- substr(gsub("\\s+", " ", words), 1L, 200L)
  again <- if (given$backend != "cpu") paste(" --backend", given$backend)
  cat(sprintf("%s: %s\n  Rscript proofs/fuzz.R --call %.0f%s\n", label, words, seed, again %||% ""))
}

is_time_limit <- function(condition) {
  words <- tryCatch(conditionMessage(condition), error = function(e) "")
  identical(words, gettext("reached CPU time limit", domain = "R"))
}

# How many findings a call has. `tell` is told what it is before it begins.
run_call <- function(seed, tell = function(label) NULL) {
  call <- spoilt_call(seed)
  tell(call$label)
  found <- Filter(function(condition) !is_time_limit(condition), one_call(call$f, call$args))
  for (condition in found) {
    words <- tryCatch(conditionMessage(condition), error = function(e) "a condition without a message")
    show_finding(seed, call$label, paste0(class(condition)[1L], ": ", words))
  }
  length(found)
}

# Seconds of the processor that a process has used; by the clock where the system does not tell.
processor_seconds_of <- function(pid) {
  stat <- tryCatch(suppressWarnings(scan(sprintf("/proc/%d/stat", pid), "", quiet = TRUE)), error = function(e) NULL)
  if (length(stat) < 15L) proc.time()[[3L]] else sum(as.numeric(stat[14:15])) / 100
}

# Waits for a process that keeps c(seed at work, calls made, findings) in the file `at`, and what it does in a second
# line. It gives the last two numbers when it is done; one that stays at a seed is killed.
follow <- function(job, at) {
  kept <- c(NA, 0, 0)
  clock <- function() c(processor_seconds_of(job$pid), proc.time()[[3L]] / 10)
  since <- clock()
  repeat {
    out <- suppressWarnings(parallel::mccollect(job, wait = FALSE, timeout = 2))
    now <- tryCatch(as.numeric(suppressWarnings(scan(at, nlines = 1L, quiet = TRUE))), error = function(e) NULL)
    if (length(now) == 3L && !identical(now, kept)) {
      kept <- now
      since <- clock()
    }
    if (!is.null(out)) break
    if (any(clock() - since > ENDLESS)) tools::pskill(job$pid, tools::SIGKILL)
  }
  suppressWarnings(parallel::mccollect(job))
  done <- is.numeric(out[[1L]])
  list(done = done, seed = kept[1L], counts = if (done) out[[1L]] else kept[2:3])
}

# c(made, found) of some calls in a process of their own; in one more from the next call on where a call ended it.
run_batch <- function(from, to) {
  at <- tempfile()
  counts <- c(0, 0)
  while (from <= to && Sys.time() < deadline) {
    job <- parallel::mcparallel({
      grDevices::pdf(NULL)
      setwd(tempdir()) # files that are written by default, or named "a", do not stay
      if (is.null(calls)) prepare()
      here <- c(0, 0)
      for (seed in from:to) {
        if (Sys.time() >= deadline) break
        tell <- function(label) cat(sprintf("%.0f %.0f %.0f\n%s\n", seed, here[1L], here[2L], label), file = at)
        here <- here + c(1, run_call(seed, tell))
      }
      here
    })
    out <- follow(job, at)
    counts <- counts + out$counts
    if (out$done) break
    if (is.na(out$seed)) stop("a process ended before its first call")
    show_finding(out$seed, readLines(at)[2L], "R ended, or had to be ended")
    counts <- counts + 1
    from <- out$seed + 1
  }
  counts
}

if (given$backend == "cpu" || !is.na(given$call)) prepare()
if (!is.na(given$call)) quit(status = run_call(as.numeric(given$call)) > 0)
deadline <- Sys.time() + as.numeric(given$seconds)
first <- as.numeric(given$seed)
last <- first + as.numeric(given$calls) - 1
cat(sprintf("%s invalid calls on %s, from seed %.0f on\n", given$calls, given$backend, first))
suggested <- sub("[^[:alnum:].].*", "", strsplit(utils::packageDescription("weft")$Suggests, ",[[:space:]]*")[[1L]])
absent <- Filter(function(package) !nzchar(system.file(package = package)), suggested)
if (length(absent)) cat("packages that are not here, whose methods are left out:", paste(absent, collapse = ", "), "\n")
batches <- parallel::mclapply(seq(first, last, by = BATCH), function(from) run_batch(from, min(last, from + BATCH - 1)),
                              mc.cores = as.numeric(given$jobs), mc.preschedule = FALSE)
lost <- !vapply(batches, is.numeric, NA)
total <- Reduce(`+`, batches[!lost], c(0, 0))
cat(sprintf("%.0f calls, %.0f findings%s\n", total[1L], total[2L],
            if (any(lost)) ", and batches that were lost" else ""))
quit(status = total[2L] > 0 || total[1L] == 0 || any(lost))
