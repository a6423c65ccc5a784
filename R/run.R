#' Settings for running a function
#'
#' The argument `run` controls how a function runs: the back end (CPU or GPU), the number of threads and the progress
#' bar. Most calls need only `run = "cpu"` or `run = "cuda"`; for other settings, use `run = weft_run(...)`, which
#' returns a list of settings. Except for rounding, results do not depend on the back end, the devices or the number of
#' threads; `memory` can limit how many genes [gene_network()] includes.
#'
#' Every function of weft with long computations has the argument `run`. It may be `NULL` for the settings of the
#' session (see [weft_options]); `"cpu"`, `"cuda"` or `"auto"` for a back end; an object returned by `weft_run()`; or a
#' `BPPARAM` of BiocParallel, whose number of workers becomes the number of threads. A function ignores settings that it
#' cannot use: a function without code for several devices runs on one device, and `memory` matters only if a help page
#' says so. If the requested back end is not available, the function stops with an error.
#'
#' @param backend `"auto"`, `"cpu"` or `"cuda"`; `NULL` for the back end of the session; see [weft_backend()].
#' @param devices `NULL` for one CUDA device, `"all"`, or device numbers, starting at 0; see [weft_devices()].
#' @param ranks whether to distribute the work over the ranks of a job, which must all make the same call; see
#'   [weft_ranks()].
#' @param threads the number of threads, or a `BPPARAM` with as many workers; `NULL` for the number set for the session;
#'   see [weft_threads()].
#' @param memory the number of bytes that the call may use in addition to its input; `NULL` for the default of the
#'   function.
#' @param progress whether to show a progress bar; `NULL` for the option `weft.progress`, whose default is to show it
#'   only in interactive sessions. If it is a function(done, total), this function is called instead of showing a bar.
#' @param verbose whether to print the chosen back end, with the reason.
#' @param dry_run whether to return a prediction of the work instead of the result; see section Dry runs.
#' @return A list of class `weft_run`.
#' @section Dry runs: With `dry_run = TRUE`, a function with several engines checks its arguments, chooses an engine,
#'   and returns a data frame with one row, of class `weft_plan`: the name of the `function`, the `engine` that would do
#'   most of the work, the `backend`, the predicted `seconds`, the predicted `bytes` of memory in addition to the input
#'   (`NA` if nothing is predicted), and the `reason` for the back end. These functions are [mi_rank()], [mi_pairs()],
#'   [mi_triples()], [mi_tuples()], [pair_scan()], [transfer_entropy()], [mi_matrix()], [mi_network()], [mi_select()],
#'   [bn_learn()], [bn_exact()], [bn_search()], [irm()], [pca()], [regulation()] and [kernel_sum()]. [bn_scores()] also
#'   returns the number of sets, and [gene_network()] returns one row for each step. Seconds are a rough estimate for a
#'   machine with the rates that [weft_calibrate()] measured.
#' @seealso [weft_backend()], [weft_devices()], [weft_ranks()], [weft_sitrep()]
#' @export
#' @examples
#' x <- as.data.frame(lapply(mtcars[c("cyl", "gear", "carb", "vs")], factor))
#' mi_pairs(x, mtcars$am, run = "cpu")
#' mi_pairs(x, mtcars$am, run = weft_run("cpu", threads = 1, verbose = TRUE))
#' mi_pairs(x, mtcars$am, run = weft_run(dry_run = TRUE))
weft_run <- function(backend = NULL, devices = NULL, ranks = FALSE, threads = NULL, memory = NULL, progress = NULL,
                     verbose = FALSE, dry_run = FALSE) {
  if (!is.null(backend)) backend <- check_choice(backend, backends, "backend")
  if (!is.null(devices)) devices_for(devices, "cpu")
  if (inherits(threads, "BiocParallelParam")) threads <- workers_of(threads)
  if (!is.null(threads)) threads <- check_number(threads, "threads", min = 1, max = 4096, whole = TRUE)
  if (!is.null(memory)) memory <- check_number(memory, "memory", min = 1e6, max = 2^50)
  if (!is.null(progress) && !is.function(progress)) progress <- check_flag(progress, "progress")
  structure(class = "weft_run", list(
    backend = backend, devices = devices, ranks = check_flag(ranks, "ranks"), threads = threads, memory = memory,
    progress = progress, verbose = check_flag(verbose, "verbose"), dry_run = check_flag(dry_run, "dry_run")
  ))
}

# What every function makes of its argument `run`: the same with the number of threads that the session allows. Whether
# a job of ranks and dry runs are taken is said by the function; others refuse them.
as_run <- function(run = NULL, ranks = FALSE, dry_run = FALSE) {
  if (is.null(run)) run <- weft_run()
  else if (is_word(run) && run %in% backends) run <- weft_run(run)
  else if (inherits(run, "BiocParallelParam")) run <- weft_run(threads = run)
  else if (!inherits(run, "weft_run") || !identical(names(run), names(formals(weft_run)))) {
    abort_input("`run` must be NULL, \"cpu\", \"cuda\", \"auto\", an object returned by `weft_run()`, or a BPPARAM.",
                x = paste0("It is ", describe(run), "."))
  }
  if (run$ranks && !ranks) {
    abort_input("`weft_run(ranks = TRUE)` must only be given to a function that runs over ranks.",
                i = "`?weft_ranks` lists these functions. Each rank can call this function independently.")
  }
  if (run$dry_run && !dry_run) {
    abort_input("`weft_run(dry_run = TRUE)` must only be given to a function with dry runs.",
                i = paste("These are mi_rank(), mi_pairs(), mi_triples(), mi_tuples(), mi_matrix(), mi_network(),",
                          "mi_select(), bn_scores(), bn_learn(), bn_exact(), bn_search(), irm(), pca(), regulation(),",
                          "kernel_sum() and gene_network()."))
  }
  run["threads"] <- list(threads_for(run$threads))
  run
}

# How many workers a BPPARAM has. It starts none: weft's threads do the work.
workers_of <- function(param) {
  need_package("BiocParallel", "A BPPARAM")
  workers <- tryCatch(BiocParallel::bpnworkers(param), error = function(e) NULL)
  if (!is_numbers(workers, 1L, min = 1, max = 4096, whole = TRUE)) {
    abort_input("A BPPARAM must have 1 to 4096 workers.",
                x = paste0("It is ", describe(param), "."))
  }
  workers
}

# `control` of a function, whose settings and their usual values are the arguments of `settings`.
check_control <- function(control, settings) {
  known <- names(formals(settings))
  named <- is.list(control) && !is.object(control) && (!length(control) || !is.null(names(control)))
  if (!named) abort_input("`control` must be a named list of settings.", x = paste0("It is ", describe(control), "."))
  wrong <- setdiff(names(control), known)
  if (length(wrong)) {
    like <- most_alike(wrong[1L], known)
    abort_input(paste0("Unknown setting `", plain_text(wrong[1L]), "` in `control`",
                       if (length(like)) sprintf("; did you mean `%s`?", like) else "."),
                i = sprintf("Available: %s.", label_some(known, 20L)))
  }
  if (anyDuplicated(names(control))) {
    abort_input("`control` must contain each setting only once.",
                x = sprintf("%s occurs more than once.", label_some(names(control)[duplicated(names(control))])))
  }
  structure(do.call(settings, control, quote = TRUE), given = names(control))
}

# The same run with other settings.
run_but <- function(run, ...) {
  settings <- list(...)
  run[names(settings)] <- settings
  run
}

#' @export
print.weft_run <- function(x, ...) {
  set <- Filter(function(setting) !is.null(setting) && !isFALSE(setting), unclass(x))
  cat_wrapped(if (length(set)) paste0("weft_run: ", paste(names(set), vapply(set, describe, ""), sep = " = ",
                                                          collapse = ", "))
              else "weft_run: settings of the session")
  invisible(x)
}

# Where what were once arguments of every function are now.
run_settings <- c(backend = "\"cuda\"", devices = "weft_run(devices = )", distributed = "weft_run(ranks = TRUE)",
                  ranks = "weft_run(ranks = TRUE)", threads = "weft_run(threads = )", memory = "weft_run(memory = )",
                  progress = "weft_run(progress = )", verbose = "weft_run(verbose = )",
                  dry_run = "weft_run(dry_run = TRUE)")
