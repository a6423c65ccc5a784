# Progress bars. The function returned here is called from native code, at most ten times per second, with the work done
# and the whole. A bar appears after two seconds; without an interactive session only when it was asked for.

progress_function <- function(progress, task) {
  show <- progress %||% getOption("weft.progress") %||% interactive()
  if (is.function(show)) return(show)
  if (!check_flag(show, "progress")) return(NULL)
  remaining <- remaining_time()
  bar <- NULL
  frame <- new.env()
  function(done, total) {
    frame$left <- remaining(done, total, proc.time()[[3L]])
    if (is.null(bar)) {
      if (is.null(frame$left)) return()
      bar <<- cli::cli_progress_bar(task, total = total, clear = TRUE, .auto_close = FALSE, .envir = frame,
                                    format = "{task} {cli::pb_bar} {cli::pb_percent}{left}")
    }
    cli::cli_progress_update(set = done, total = total, id = bar, .envir = frame)
    if (done >= total) cli::cli_progress_done(id = bar, .envir = frame)
  }
}

# A function(done, total, now), `now` in seconds, that says how long the rest of the work takes at the speed so far:
# NULL in the first two seconds, and an empty text before a hundredth is done and where the work began again, as then
# nobody knows how often it will.
remaining_time <- function(started = proc.time()[[3L]]) {
  share <- 0
  again <- FALSE
  function(done, total, now) {
    before <- share
    share <<- if (total > 0) min(done / total, 1) else 0
    again <<- again || share < before / 2
    if (now - started < 2) return(NULL)
    if (again || share < 0.01) return("")
    sprintf(" | %s left", seconds_text((now - started) * (1 - share) / share))
  }
}
