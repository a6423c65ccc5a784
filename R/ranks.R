#' The ranks of a distributed job
#'
#' Several R processes, started together by `mpirun` or `srun`, work on one problem when a function that takes
#' `distributed`, such as [mi_pairs()] or [kernel_sum()], is called with `distributed = TRUE`. Every rank runs the same script.
#' `weft_ranks()` tells how many there are, where they run and which device each has; a process that was started alone is
#' one rank of one, and needs no MPI.
#'
#' Start a script with
#'
#' ```sh
#' mpirun -n 4 Rscript job.R
#' srun --mpi=pmix -n 4 Rscript job.R
#' ```
#'
#' weft starts MPI when it is first needed, unless Rmpi or pbdMPI has, and talks over a communicator of its own. Ranks of
#' one host take its devices in turn, unless the option `weft.device` chooses one. An R error, an interrupt or a crash on
#' one rank ends the whole job with a message that names the rank: the others would wait for it for ever.
#'
#' All ranks must make the first call of `weft_ranks()`, like every call of a distributed function; later ones of any rank say the same.
#'
#' @return A data frame of class `weft_ranks` with one row a rank: `rank` from 0, `host`, `pid`, `threads`, `device` (`NA`
#'   without one). Attributes `"rank"` and `"size"` are this process's number and the number of ranks.
#' @seealso [mi_pairs()], [kernel_sum()], [kde()]; [weft_sitrep()] says whether weft was installed with MPI.
#' @export
#' @examples
#' weft_ranks()
weft_ranks <- function() {
  me <- ranks_start()
  if (!is.null(ranks$table)) return(ranks$table)
  here <- data.frame(rank = me$rank, host = Sys.info()[["nodename"]], pid = Sys.getpid(), threads = weft_threads(),
                     device = if (is.null(cuda_missing())) getOption("weft.device", 0) else NA_real_)
  table <- structure(do.call(rbind, ranks_gather(here)), class = c("weft_ranks", "data.frame"), rank = me$rank, size = me$size)
  if (me$size > 1L) ranks$table <- table
  table
}

#' @export
print.weft_ranks <- function(x, ...) {
  cat(sprintf("%d rank%s on %d host%s; this is rank %d\n", nrow(x), if (nrow(x) == 1) "" else "s", length(unique(x$host)),
              if (length(unique(x$host)) == 1) "" else "s", attr(x, "rank")))
  print(data.frame(x), row.names = FALSE, ...)
  invisible(x)
}

ranks <- new.env(parent = emptyenv())

# Set by the launchers of Open MPI, MPICH and their kin, and by srun for either.
launcher_variables <- c("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_SIZE")

# list(rank, size, on_host) of this process; starts MPI when a launcher started the process.
ranks_start <- function() {
  if (!is.null(ranks$me)) return(ranks$me)
  at <- c(0L, 1L, 0L)
  if (any(nzchar(Sys.getenv(launcher_variables)))) {
    mpi <- .Call(C_weft_mpi, libs_dir())
    if (!attr(mpi, "available")) {
      weft_abort("device", "A distributed job needs weft's MPI engine.", x = paste0("MPI: ", mpi, "."),
                 i = paste("Install Open MPI or MPICH (libopenmpi-dev), then weft again;",
                           "`WEFT_MPI=yes` makes its installation say what is wrong."))
    }
    at <- .Call(C_weft_ranks_start, run_control())
    reg.finalizer(ranks, function(e) .Call(C_weft_ranks_stop), onexit = TRUE)
    if (at[2L] > 1L && !interactive()) end_job_on_error(at[1L])
    devices <- nrow(weft_devices())
    if (devices && is.null(getOption("weft.device"))) options(weft.device = at[3L] %% devices)
  }
  ranks$me <- list(rank = at[1L], size = at[2L], on_host = at[3L])
}

# A script's error anywhere ends all ranks; R itself prints the message before this runs.
end_job_on_error <- function(rank) {
  if (!is.null(getOption("error"))) return(invisible())
  options(error = function() {
    message(sprintf("weft: rank %d on %s stopped (an error or an interrupt); the job ends.", rank, Sys.info()[["nodename"]]))
    .Call(C_weft_ranks_end)
  })
}

# This rank's share of 1 .. count, neighbours; empty for some ranks when there are more of them.
dealt_to <- function(count, ranks) which(ceiling(seq_len(count) * ranks$size / count) == ranks$rank + 1)

# Every rank's `x`, a list in the order of the ranks, the same on all of them. Every rank must come here.
ranks_gather <- function(x, control = run_control()) {
  me <- ranks_start()
  if (me$size == 1L) return(list(x))
  lapply(.Call(C_weft_ranks_gather, control, serialize(x, NULL)), unserialize)
}
