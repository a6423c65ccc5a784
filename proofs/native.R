# Every native entry point with R's memory collected at each of its allocations (gctorture): the same result as without,
# bit by bit. What is not protected is gone then, and shows.
#
#   Rscript proofs/native.R [--only mi_rank,irm] [--jobs 2] [--seconds Inf] [--torture yes]
#
# --torture   no: only which entry points the calls enter, which random invalid calls, interrupts and failing
#             allocations begin with too
# --seconds   no function begins later than this, and one that is at work then is stopped; the last line counts the rest
suppressPackageStartupMessages(library(weft))
`%||%` <- function(a, b) if (is.null(a)) b else a
source("proofs/options.R")
for (file in c("helper-arguments.R", "helper-errors.R", "helper-variants.R", "helper-store.R",
               "helper-store-files.R")) {
  source(file.path("tests/testthat", file))
}
given <- options_given(only = NA, jobs = "2", seconds = "Inf", torture = "yes")
source("proofs/entered.R")
tortured <- FALSE # collecting only within native calls: what the R code around them does would take hours
watch_native_calls(function(name) if (tortured) gctorture(TRUE), function() gctorture(FALSE))
options(weft.progress = FALSE)
valid <- valid_calls(variants = TRUE)
calls <- c(valid$exported, valid$methods, valid$variants)
if (!is.na(given$only)) calls <- calls[strsplit(given$only, ",")[[1L]]]

# What a call returns, as far as it can be compared: handles and times differ from call to call.
result_of <- function(call, torture) {
  tortured <<- torture
  on.exit(tortured <<- FALSE)
  utils::capture.output(out <- tryCatch(suppressMessages(suppressWarnings(do.call(call$f, call$args, quote = TRUE))),
                                        weft_error = conditionMessage))
  without_times(out)
}

without_times <- function(x) {
  if (is.environment(x) || is.function(x) || typeof(x) %in% c("externalptr", "language", "symbol")) return(NULL)
  if (is.list(x)) {
    x <- unclass(x)
    x[intersect(names(x), c("seconds", "time", "stages", "started", "call", "run", "sitrep", "memory", "date"))] <- NULL
    x <- lapply(x, without_times)
  }
  for (name in setdiff(names(attributes(x)), c("names", "dim", "dimnames", "levels"))) attr(x, name) <- NULL
  x
}

# list(state, entries, what) of one function or method; state: same, different or late.
compare <- function(name) {
  if (Sys.time() >= deadline) return(list(state = "late"))
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off()) # one job has one process for all
  setwd(tempdir())
  RNGkind("Mersenne-Twister", "Inversion", "Rejection")
  result_of(calls[[name]], FALSE) # what it sets or frees it has set or freed
  set.seed(1)
  plain <- result_of(calls[[name]], FALSE)
  set.seed(1)
  setTimeLimit(elapsed = max(1, as.numeric(deadline - Sys.time(), units = "secs")))
  under <- tryCatch(result_of(calls[[name]], given$torture == "yes"), error = function(e) {
    if (Sys.time() >= deadline) NULL else stop(e)
  })
  setTimeLimit()
  if (is.null(under) && !is.null(plain)) return(list(state = "late"))
  same <- identical(plain, under)
  list(state = if (same) "same" else "different", entries = entries,
       what = if (!same) paste(utils::head(all.equal(plain, under), 3), collapse = "; "))
}

deadline <- Sys.time() + as.numeric(given$seconds)
compared <- parallel::mclapply(stats::setNames(nm = names(calls)), compare, mc.cores = as.numeric(given$jobs),
                               mc.preschedule = FALSE)
ended <- !vapply(compared, is.list, NA)
compared[ended] <- lapply(compared[ended], function(what) {
  list(state = "different", what = paste(c("R ended", if (inherits(what, "try-error")) what), collapse = ": "))
})
states <- factor(vapply(compared, function(found) found$state, ""), c("same", "different", "late"))
for (name in names(calls)[states == "different"]) cat(name, ": ", compared[[name]]$what, "\n", sep = "")
entered <- unique(unlist(lapply(compared, function(found) found$entries)))
missed <- setdiff(all_entries(), entered)
if (length(missed) && is.na(given$only)) cat("Not entered:", paste(missed, collapse = ", "), "\n")
if (any(states == "late")) cat("Not ended in time:", paste(names(calls)[states == "late"], collapse = ", "), "\n")
cat(sprintf("%d calls, %d of %d native entry points, %d different, %d not ended in time\n", length(calls),
            length(entered), length(all_entries()), sum(states == "different"), sum(states == "late")))
quit(status = any(states == "different"))
