# What a damaged file may end (a library that crashes) or hold up is done in a forked child, whose end is an error here.
# Children also read ahead while their parent works.

# Windows has no fork, and windows of RStudio and macOS do not bear one: everything is then done here.
can_fork <- function() .Platform$OS.type == "unix" && !.Platform$GUI %in% c("AQUA", "RStudio")

# Begins f() in a child; end_apart() waits for what it returns.
begin_apart <- function(f) {
  here <- list(f = f)
  if (!can_fork()) return(here)
  begin <- getExportedValue("parallel", "mcparallel") # which Windows does not have
  tryCatch(begin({
    .Call(C_weft_child_begin)
    tryCatch(list(value = f()), error = function(e) list(error = e))
  }, silent = TRUE, mc.set.seed = FALSE), error = function(e) here) # no process or memory was left for it
}

# What f() returned, or the error that it ended with. died(): what to do where the child ended without either.
end_apart <- function(job, died) {
  if (!inherits(job, "parallelJob")) return(job$f())
  done <- FALSE
  on.exit(if (!done) stop_apart(job))
  out <- suppressWarnings(getExportedValue("parallel", "mccollect")(job))[[1L]]
  done <- TRUE
  if (!is.list(out)) died()
  if (!is.null(out$error)) stop(out$error)
  out$value
}

stop_apart <- function(job) {
  if (!inherits(job, "parallelJob")) return(invisible())
  tools::pskill(job$pid, tools::SIGKILL)
  suppressWarnings(getExportedValue("parallel", "mccollect")(job))
  invisible()
}

apart <- function(f, died) end_apart(begin_apart(f), died)

# use(k, read(k)) for k = 1 .. count, in this order, while children read the next ones.
read_ahead <- function(count, read, use, died, ahead = 2L) {
  jobs <- list()
  begun <- 0L
  on.exit(lapply(jobs, stop_apart))
  for (k in seq_len(count)) {
    while (begun < min(count, k + ahead)) {
      begun <- begun + 1L
      jobs[[begun - k + 1L]] <- local({
        at <- begun
        begin_apart(function() read(at))
      })
    }
    job <- jobs[[1L]]
    jobs <- jobs[-1L]
    value <- end_apart(job, died)
    use(k, value)
  }
}
