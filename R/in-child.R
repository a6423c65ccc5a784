# Work in which a damaged file may crash a library or make it hang is done in a forked child, whose death is an error
# here. Children also work ahead of their parent.

# Windows has no fork, and neither RStudio nor the graphical interface of R on macOS tolerates one: everything is then
# done in this process.
can_fork <- function() .Platform$OS.type == "unix" && !.Platform$GUI %in% c("AQUA", "RStudio")

# Starts f() in a child; end_apart() waits for what it returns. loud: what the child prints is seen.
begin_apart <- function(f, loud = FALSE) {
  here <- list(f = f)
  if (!can_fork()) return(here)
  begin <- parallel::mcparallel # which Windows does not have
  tryCatch(begin({
    if (!loud) .Call(C_weft_child_begin)
    tryCatch(list(value = f()), error = function(e) list(error = e))
  }, silent = !loud, mc.set.seed = FALSE), error = function(e) here) # no process or memory was left for it
}

# What f() returned, or the error that it ended with. died(): what to do where the child ended without either.
end_apart <- function(job, died) {
  if (!inherits(job, "parallelJob")) return(job$f())
  done <- FALSE
  on.exit(if (!done) stop_apart(job))
  out <- suppressWarnings(parallel::mccollect(job))[[1L]]
  done <- TRUE
  if (!is.list(out)) died()
  if (!is.null(out$error)) stop(out$error)
  out$value
}

stop_apart <- function(job) {
  if (!inherits(job, "parallelJob")) return(invisible())
  tools::pskill(job$pid, tools::SIGKILL)
  # no longer than a second: a program that the child had started may keep its pipe open
  suppressWarnings(parallel::mccollect(job, wait = FALSE, timeout = 1))
  invisible()
}

apart <- function(f, died, loud = FALSE) end_apart(begin_apart(f, loud), died)

# use(item) for each item that produce(send) hands to send(), while a child makes the next one.
stream_apart <- function(produce, use, died) {
  if (!can_fork()) return(produce(use))
  ends <- .Call(C_weft_pipe)
  job <- begin_apart(function() {
    .Call(C_weft_pipe_close, ends[1L])
    on.exit(.Call(C_weft_pipe_close, ends[2L])) # mcparallel()'s child waits for its parent before it ends
    produce(function(item) .Call(C_weft_pipe_send, ends[2L], serialize(item, NULL, xdr = FALSE)))
    NULL
  })
  .Call(C_weft_pipe_close, ends[2L])
  done <- FALSE
  on.exit({
    .Call(C_weft_pipe_close, ends[1L])
    if (!done) stop_apart(job)
  })
  if (!inherits(job, "parallelJob")) { # no child could be started
    done <- TRUE
    return(produce(use))
  }
  while (!is.null(bytes <- .Call(C_weft_pipe_receive, ends[1L]))) use(unserialize(bytes))
  done <- TRUE
  end_apart(job, died)
}
