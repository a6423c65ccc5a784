# Progress bars. The function returned here is called from native code, at most ten times per second, with the work done
# and the whole. A bar appears after two seconds; without an interactive session only when it was asked for.

progress_function <- function(progress, task) {
  show <- progress %||% getOption("weft.progress") %||% interactive()
  if (is.function(show)) return(show)
  if (!check_flag(show, "progress")) return(NULL)
  started <- proc.time()[[3L]]
  bar <- NULL
  frame <- new.env()
  function(done, total) {
    if (is.null(bar)) {
      if (proc.time()[[3L]] - started < 2) return()
      bar <<- cli::cli_progress_bar(task, total = total, clear = TRUE, .auto_close = FALSE, .envir = frame,
                                    format = "{task} {cli::pb_bar} {cli::pb_percent} | {cli::pb_eta_str}")
    }
    cli::cli_progress_update(set = done, total = total, id = bar, .envir = frame)
    if (done >= total) cli::cli_progress_done(id = bar, .envir = frame)
  }
}
