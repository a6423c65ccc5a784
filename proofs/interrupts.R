# Interrupts at random moments of every exported function and method: each ends with R's interrupt condition or had
# finished, leaves no native memory behind, and the same call then gives the result that it gave before.
#
#   Rscript proofs/interrupts.R [--count 1000] [--seed S] [--backend cpu] [--only irm,pca] [--seconds Inf]
#
# --backend   cuda: the calls that a device does; the others run on the CPU, and the last line says how many did
# --seconds   no function is begun later than this; the last line says how many interrupts there were
suppressPackageStartupMessages(library(weft))
`%||%` <- function(a, b) if (is.null(a)) b else a
source("proofs/options.R")
for (file in sprintf("helper-%s.R", c("arguments", "errors", "variants", "store", "store-files"))) {
  source(file.path("tests/testthat", file))
}
given <- options_given(count = "1000", seed = as.character(sample(1e8, 1L)), backend = "cpu", only = NA,
                       seconds = "Inf")
deadline <- Sys.time() + as.numeric(given$seconds)
options(weft.progress = FALSE)
valid <- valid_calls(variants = TRUE)
calls <- c(valid$exported, valid$methods, valid$variants)
calls <- Filter(function(call) "run" %in% names(formals(call$f)), calls) # those that work for long
if (!is.na(given$only)) calls <- calls[strsplit(given$only, ",")[[1L]]]
live <- function() {
  gc()
  .Call(weft:::C_weft_memory, NULL)[c("host", "device")]
}

# The call on the asked back end, where that does it.
on_backend <- function(call) {
  if (given$backend == "cpu" || !"run" %in% names(formals(call$f))) return(call)
  there <- call
  there$args$run <- weft_run(given$backend, threads = 1)
  out <- suppressMessages(suppressWarnings(tryCatch(do.call(call$f, there$args, quote = TRUE),
                                                    weft_error = identity)))
  if (inherits(out, "weft_error")) call else there
}

# Two ways: as a user does, by a signal while the call is at work; and at its k-th look for one.
run <- function(call, progress = FALSE) {
  args <- as_arguments(call$f, c(call$args, list(progress = progress)))
  suppressMessages(suppressWarnings(tryCatch(do.call(call$f, args, quote = TRUE), weft_error = conditionMessage)))
}
signal <- function() tools::pskill(Sys.getpid(), tools::SIGINT)

# "interrupted", or "finished" where the call had ended before.
interrupted_at_poll <- function(call, at) {
  seen <- 0
  state <- "interrupted"
  tryCatch({
    run(call, function(done, total) {
      seen <<- seen + 1
      if (seen == at) signal()
    })
    state <- "finished"
    Sys.sleep(0.01) # here it is seen at the latest
  }, interrupt = function(e) NULL)
  state
}
interrupted_after <- function(call, seconds) {
  sent <- tempfile()
  on.exit(unlink(sent))
  state <- "interrupted"
  system(sprintf("(sleep %.4f; kill -INT %d; : > %s) >/dev/null 2>&1 &", seconds, Sys.getpid(), sent))
  tryCatch({
    run(call)
    state <- "finished"
    while (!file.exists(sent)) Sys.sleep(0.01)
    Sys.sleep(0.01)
  }, interrupt = function(e) while (!file.exists(sent)) Sys.sleep(0.01))
  state
}

grDevices::pdf(NULL)
setwd(tempdir())
set.seed(as.numeric(given$seed))
calls <- calls[sample(length(calls))] # a run that ends early has seen any of them
how <- c(interrupted = 0, finished = 0)
wrong <- 0
say <- function(name, ...) {
  wrong <<- wrong + 1
  cat(name, ": ", ..., "\n", sep = "")
}
cat(sprintf("%s interrupts of %d functions and methods, seed %s\n", given$count, length(calls), given$seed))
each <- split(seq_len(as.numeric(given$count)), rep_len(seq_along(calls), as.numeric(given$count)))
for (k in seq_along(each)) {
  if (Sys.time() > deadline) break
  name <- names(calls)[k]
  calls[[k]] <- on_backend(calls[[k]])
  polls <- 0
  options(weft.poll = 0) # each look goes into R
  invisible(run(calls[[k]], function(done, total) polls <<- polls + 1))
  seconds <- system.time(run(calls[[k]]))[[3L]]
  before <- live()
  for (time in each[[k]]) {
    if (polls > 0 && time %% 2 == 0) state <- interrupted_at_poll(calls[[k]], sample(polls, 1L))
    else {
      options(weft.poll = NULL)
      state <- interrupted_after(calls[[k]], stats::runif(1, 0, seconds))
      options(weft.poll = 0)
    }
    how[state] <- how[state] + 1
  }
  left <- live() - before
  if (any(left != 0)) say(name, sprintf("%.0f bytes of host and %.0f of device memory stay", left[[1L]], left[[2L]]))
  if (inherits(try(run(calls[[k]]), silent = TRUE), "try-error")) say(name, "does not work any more")
}
on_device <- sum(vapply(calls, function(call) identical(call$args$backend, "cuda"), NA))
cat(sprintf("%.0f interrupted, %.0f had finished, %d wrong%s\n", how[["interrupted"]], how[["finished"]], wrong,
            if (given$backend == "cpu") "" else sprintf(", %d functions on a device", on_device)))
quit(status = wrong > 0)
