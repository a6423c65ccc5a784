#' The ranks of a distributed job
#'
#' Several R processes, started together by `mpirun` or `srun`, work on one problem when a function that
#' they share, such as [mi_pairs()] or [kernel_sum()], is called with
#' `run = weft_run(ranks = TRUE)`. Every rank runs the
#' same script. `weft_ranks()` tells how many there are, where they run and which device each has; a process that was
#' started alone is the only rank, and needs no MPI.
#'
#' Start a script with
#'
#' ```sh
#' mpirun -n 4 Rscript job.R
#' srun --mpi=pmix -n 4 Rscript job.R
#' ```
#'
#' weft starts MPI when it is first needed, unless Rmpi or pbdMPI has done so, and communicates over communicators of
#' its own. Ranks of one host take its devices in turn, unless the option `weft.device` chooses one. All ranks must make
#' the first of these calls, even if it is `weft_ranks()`; later calls of `weft_ranks()` may be made by any.
#'
#' @section Calls of all ranks: Every rank must make every distributed call. A call begins with a comparison: the
#'   function, how many such calls the rank has made, the settings, the seed, and the data where all ranks must hold the
#'   same, or their columns where each has rows of its own. `run` may differ apart
#'   from `ranks`. Where anything else differs, every rank gets the same error of class
#'   `weft_error_ranks`, which names the arguments and the ranks.
#'
#'   An error or an interrupt on one rank ends the call on all: the others get an error of class `weft_error_ranks` that
#'   says which rank stopped and why, at the latest when they next need it. A call ends with a result on all ranks or
#'   with an error on all. In a script that catches these errors, the ranks can continue with their next call; once the
#'   script of a rank has ended, the others get an error. An error that a script does not catch ends the whole job with
#'   a message that names the rank, and so does a crash.
#'
#' @return A data frame of class `weft_ranks` with one row per rank: `rank` from 0, `host`, `pid`, `threads`, `device`
#'   (`NA` without one). Attributes `"rank"` and `"size"` are this process's number and the number of ranks.
#' @seealso [mi_pairs()], [kernel_sum()], [kde()]; [weft_sitrep()] says whether weft was installed with MPI.
#' @export
#' @examples
#' weft_ranks()
weft_ranks <- function() {
  ranks_start()
  ranks$table %||% table_of_ranks()
}

table_of_ranks <- function() {
  me <- ranks$me
  here <- data.frame(rank = me$rank, host = Sys.info()[["nodename"]], pid = Sys.getpid(), threads = weft_threads(),
                     device = if (is.null(cuda_missing())) getOption("weft.device", 0) else NA_real_)
  structure(do.call(rbind, ranks_gather(here)), class = c("weft_ranks", "data.frame"), rank = me$rank, size = me$size)
}

#' @export
print.weft_ranks <- function(x, ...) {
  hosts <- length(unique(x$host))
  cat(sprintf("%d rank%s on %d host%s; this is rank %d\n", nrow(x), if (nrow(x) == 1) "" else "s", hosts,
              if (hosts == 1) "" else "s", attr(x, "rank")))
  print(data.frame(x), row.names = FALSE, ...)
  invisible(x)
}

ranks <- new.env(parent = emptyenv())

# Set by the launchers of Open MPI, MPICH and their kin, and by srun for either.
launcher_variables <- c("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_SIZE")

# list(rank, size, on_host) of this process; starts MPI when a launcher started the process. The table of ranks is
# gathered here, where all must come, so that to read it later needs no others.
ranks_start <- function() {
  if (!is.null(ranks$me) && (ranks$me$size == 1L || !is.null(ranks$table))) return(ranks$me)
  me <- list(rank = 0L, size = 1L, on_host = 0L)
  if (any(nzchar(Sys.getenv(launcher_variables)))) {
    mpi <- .Call(C_weft_mpi, libs_dir())
    if (!attr(mpi, "available")) {
      weft_abort("device", "A distributed job needs weft's MPI engine.", x = paste0("MPI: ", mpi, "."),
                 i = paste("Install Open MPI or MPICH (libopenmpi-dev), then reinstall weft;",
                           "with `WEFT_MPI=yes` the installation reports what is wrong."))
    }
    me <- .Call(C_weft_ranks_start, run_control())
    if (is.null(ranks$me)) reg.finalizer(ranks, see_out, onexit = TRUE)
    if (me$size > 1L && !interactive()) end_job_on_error(me$rank)
    devices <- nrow(weft_devices())
    if (devices && is.null(getOption("weft.device"))) options(weft.device = me$on_host %% devices)
  }
  ranks$me <- me
  if (me$size > 1L) ranks$table <- table_of_ranks()
  ranks$me
}

see_out <- function(e) .Call(C_weft_ranks_stop, reason_to_stop("Its script ended during the call."))

# A script's error anywhere ends all ranks; R itself prints the message before this runs.
end_job_on_error <- function(rank) {
  if (!is.null(getOption("error"))) return(invisible())
  options(error = function() {
    message(sprintf("weft: rank %d on %s stopped (an error or an interrupt); the job ends.", rank,
                    Sys.info()[["nodename"]]))
    .Call(C_weft_ranks_end)
  })
}

# This rank's share of 1 .. count, neighbours; empty for some ranks when there are more of them.
dealt_to <- function(count, ranks) which(ceiling(seq_len(count) * ranks$size / count) == ranks$rank + 1)

# Every rank's `x`, a list in the order of the ranks, the same on all of them. Every rank must come here.
ranks_gather <- function(x, control = run_control()) {
  me <- ranks$me %||% ranks_start()
  if (me$size == 1L) return(list(x))
  lapply(.Call(C_weft_ranks_gather, control, serialize(x, NULL)), unserialize)
}

# ---- calls of all ranks ----

# Arguments in which ranks may differ.
each_rank <- "run"
no_value <- new.env(parent = emptyenv())

# What begins and ends calls runs under: no option that is out of order keeps a rank from telling the others.
bare_control <- list(backend = "cpu", libs = "", threads = 1L, devices = 0L, device_limit = 0, progress = NULL,
                     poll = 0.1, columns = NULL)

# The first line of every function that ranks call together: NULL for a call of this process alone, else this rank.
# Compares the arguments of the function that calls it with those of the other ranks, but for this rank's `own`; of
# `given` only whether they are NULL. When that function ends, with a value or by an error, all ranks know.
join_ranks <- function(shared, call, own = each_rank, given = character(), frame = parent.frame()) {
  if (!shared) return(NULL)
  me <- ranks_start()
  if (me$size == 1L) return(me)
  fun <- sys.function(sys.parent())
  if (!length(ranks$calls)) {
    ranks$over <- FALSE
    ranks$error_before <- geterrmessage()
  }
  ranks$calls <- c(ranks$calls, call)
  ranks$number <- (ranks$number %||% 0) + 1
  do.call(on.exit, list(quote(leave_ranks(returnValue(no_value))), add = TRUE), envir = frame)
  number <- ranks$number
  said <- arguments_alike(frame, formals(fun), own, given)
  same <- .Call(C_weft_ranks_enter, bare_control, number, digest_of(list(call, said)))
  if (!same) compare_calls(ranks_gather(list(call = call, number = number, said = said)))
  me
}

# Whether a model is of points that ranks have together. It may be damaged.
of_ranks <- function(object) is.list(object) && isTRUE(object$distributed)

arguments_alike <- function(frame, formals, own, given) {
  names <- setdiff(names(formals), c(own, "control", "..."))
  said <- lapply(stats::setNames(names, names), function(name) {
    required <- identical(formals[[name]], substitute())
    if (required && eval(call("missing", as.name(name)), frame)) return(digest_of(quote(missing)))
    value <- get(name, envir = frame)
    if (name %in% given) return(digest_of(is.null(value)))
    choices <- !required && is.character(value) && length(value) > 1L && identical(value, eval(formals[[name]], frame))
    digest_of(if (choices) value[1L] else value)
  })
  settings <- if ("control" %in% names(formals)) get("control", envir = frame)
  asked <- intersect(given, names(settings))
  settings[asked] <- lapply(settings[asked], is.null)
  said <- c(said, lapply(settings[setdiff(names(settings), own)], digest_of))
  if (!"..." %in% names(formals)) return(said)
  more <- eval(quote(list(...)), frame)
  c(said, lapply(more[!names(more) %in% own], digest_of))
}

digest_of <- function(x) .Call(C_weft_ranks_digest, if (is.function(x)) deparse(x) else x)

# The same error on every rank, when they have not made the same call.
compare_calls <- function(all) {
  calls <- vapply(all, `[[`, "", "call")
  numbers <- vapply(all, `[[`, 0, "number")
  ranks$number <- max(numbers)
  if (any(calls != calls[1L])) {
    apart <- split(seq_along(calls) - 1L, factor(calls, unique(calls)))
    each <- sprintf("`%s()` on %s", names(apart), vapply(apart, name_ranks, ""))
    abort_apart("All ranks must make the same call.", paste(each, collapse = ", "))
  }
  if (any(numbers != numbers[1L])) {
    apart <- split(seq_along(numbers) - 1L, numbers)
    each <- sprintf("`%s()` is call number %s on %s", calls[1L], names(apart), vapply(apart, name_ranks, ""))
    abort_apart("All ranks must make the same distributed calls in the same order.", paste(each, collapse = ", "))
  }
  compare_said(lapply(all, `[[`, "said"))
}

# said: of each rank a list, with names of arguments or words for what is compared.
compare_said <- function(said) {
  arguments <- unique(unlist(lapply(said, names)))
  apart <- lapply(stats::setNames(arguments, arguments), function(name) {
    which(!vapply(said, function(one) identical(one[[name]], said[[1L]][[name]]), NA)) - 1L
  })
  apart <- apart[lengths(apart) > 0L]
  if (!length(apart)) return(invisible())
  quoted <- ifelse(grepl(" ", names(apart), fixed = TRUE), names(apart), sprintf("`%s`", names(apart)))
  each <- sprintf("%s (%s)", quoted, vapply(apart, name_ranks, ""))
  abort_apart(sprintf("All ranks must call `%s()` with the same arguments.", this_call()),
              paste("Different from rank 0:", paste(each, collapse = ", ")), arguments = names(apart), ranks = apart)
}

this_call <- function() utils::tail(c("", ranks$calls), 1L)

# An error that occurs on all ranks alike: none has to be told.
abort_apart <- function(message, x, ...) {
  ranks$over <- TRUE
  weft_abort(c("ranks", "input"), message, x = paste0(x, "."), ...)
}

name_ranks <- function(r) {
  if (length(r) == 1L) return(sprintf("rank %d", r))
  if (length(r) > 6L) return(sprintf("ranks %s and %d more", paste(r[1:5], collapse = ", "), length(r) - 5L))
  sprintf("ranks %s and %d", paste(r[-length(r)], collapse = ", "), r[length(r)])
}

# Further arguments of the present call that must be the same on all ranks, in the form in which they are used.
same_on_ranks <- function(me, ...) {
  if (is.null(me) || me$size == 1L) return(invisible())
  compare_said(ranks_gather(lapply(list(...), digest_of)))
}

# As a call ends: with a value everybody waits for the others' values; without one the others are told why.
leave_ranks <- function(value) {
  outermost <- length(ranks$calls) == 1L
  on.exit({
    ranks$calls <- ranks$calls[-length(ranks$calls)]
    if (outermost) {
      ranks$over <- FALSE
      ranks$why <- NULL
      .Call(C_weft_ranks_forget)
    }
  })
  if (!identical(value, no_value)) {
    if (outermost) .Call(C_weft_ranks_leave, bare_control)
  } else if (!isTRUE(ranks$over)) {
    ranks$over <- TRUE
    .Call(C_weft_ranks_give_up, bare_control, reason_to_stop())
  }
}

# ---- stopping ----

# Errors of weft's own are noted as they are raised; of R's errors R keeps the message.
note_error <- function(text) {
  if (length(ranks$calls)) ranks$why <- list(text = text, before = geterrmessage())
}

# The function, and in further lines why it stopped. R does not distinguish an error that comes twice from none.
reason_to_stop <- function(none = "Interrupted, or the same error as before.") {
  last <- geterrmessage()
  why <- if (!is.null(ranks$why) && last == ranks$why$before) ranks$why$text
         else if (!identical(last, ranks$error_before)) sub("\n+$", "", last)
         else none
  paste0(this_call(), "\n", paste(why, collapse = "\n"))
}

# The error of a rank whose call others have ended. `how`: 1 stopped, 2 the script has ended; `why`: as
# reason_to_stop().
abort_stopped <- function(message, how = NULL, why = NULL) {
  if (is.null(how)) {
    at <- .Call(C_weft_ranks_stopped)
    how <- at$how
    why <- at$why
  }
  first <- which(nzchar(why))[1L]
  if (is.na(first)) {
    ended <- which(how == 2L) - 1L
    if (length(ended)) message <- sprintf("This call needs %s, but the script there has ended.", name_ranks(ended))
    weft_abort("ranks", message, i = "Every rank must make every distributed call.", ranks = ended)
  }
  text <- strsplit(why[first], "\n", fixed = TRUE)[[1L]]
  inside <- if (nzchar(text[1L])) sprintf(" in `%s()`", text[1L]) else ""
  weft_abort("ranks", sprintf("Rank %d stopped%s, which ended this call on all ranks.", first - 1L, inside),
             x = paste(text[-1L], collapse = "\n"), i = "All ranks can continue with their next distributed call.",
             ranks = which(nzchar(why)) - 1L)
}

# A handler of progress that also hears of other ranks that stopped.
ranks_progress <- function(show) {
  if (!length(ranks$calls)) return(show)
  function(done, total) {
    heard <- .Call(C_weft_ranks_heard)
    if (!is.null(heard)) {
      why <- character(ranks$me$size)
      why[heard$rank + 1L] <- heard$why
      abort_stopped(NULL, 0L, why)
    }
    if (!is.null(show)) show(done, total)
  }
}
