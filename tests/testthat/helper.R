# On a machine that is meant to have a device (WEFT_TEST_CUDA=1), a skip is a failure.
skip_if_no_cuda <- function() {
  why <- weft:::cuda_missing()
  if (is.null(why)) return(invisible())
  if (identical(Sys.getenv("WEFT_TEST_CUDA"), "1")) stop("WEFT_TEST_CUDA=1, but: ", why)
  testthat::skip(paste("no CUDA device:", why))
}

# The back ends to run a test on.
test_backends <- function() if (is.null(weft:::cuda_missing())) c("cpu", "cuda") else "cpu"

# Runs code in a fresh R with this weft, returns its output; for tests that must not share a process. The timeout ends
# what hangs, and is far from what a busy machine takes.
run_in_r <- function(code, env = character(), timeout = 900) {
  file <- withr::local_tempfile(fileext = ".R", lines = code)
  lib <- dirname(find.package("weft"))
  env <- c(paste0("R_LIBS=", paste(c(lib, .libPaths()), collapse = .Platform$path.sep)), env)
  suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", shQuote(file)), stdout = TRUE,
                           stderr = TRUE, env = env, timeout = timeout))
}

# Processor time of this process and of all its threads, which other work on the machine hardly changes.
processor_seconds <- function() sum(proc.time()[1:2])

# Tells `work(progress)` to stop when it first polls: it must not poll again, and end within a second of processor time.
expect_stops <- function(work, what = "the work") {
  polls <- 0
  told <- NA
  withr::local_options(weft.poll = 0) # each poll goes into R
  stop_now <- function(done, total) {
    polls <<- polls + 1
    if (polls == 1) told <<- processor_seconds()
    stop(structure(class = c("told_to_stop", "error", "condition"), list(message = "stop", call = NULL)))
  }
  testthat::expect_error(work(stop_now), class = "told_to_stop", label = what)
  testthat::expect_identical(polls, 1, label = paste("polls of", what))
  testthat::expect_lt(processor_seconds() - told, 1, label = paste("processor seconds that ending took", what))
}

# Interrupts works of minutes in a fresh R, each in the middle. `works`: code of a named list of function(progress). A
# list of each one's name, how it ended, and the seconds from its last poll before the interrupt to its end: those that
# passed, or of the processor if these are fewer, as on a machine that is busy with other work. `after`: code to run
# then, whose output comes along.
interrupted_works <- function(setup, works, after = character()) {
  out <- run_in_r(c(
    "library(weft)", setup, paste("works <-", paste(works, collapse = "\n")),
    "at_work <- tempfile()",
    "interrupter <- paste('(until [ -e %s ]; do sleep 0.02; done; sleep 0.3; kill -INT %d)', '>/dev/null 2>&1 &')",
    "clocks <- function() c(proc.time()[[3]], sum(proc.time()[1:2]))",
    "for (name in names(works)) {",
    "  polled <- NULL",
    "  progress <- function(done, total) {",
    "    if (is.null(polled)) file.create(at_work)",
    "    polled <<- clocks()",
    "  }",
    "  system(sprintf(interrupter, at_work, Sys.getpid()))",
    "  how <- tryCatch({ works[[name]](progress); 'finished' }, interrupt = function(e) 'interrupted')",
    "  cat('ENDED', name, how, min(clocks() - polled), '\\n')",
    "  unlink(at_work)",
    "}", after))
  ended <- strsplit(sub("^ENDED ", "", grep("^ENDED ", out, value = TRUE)), " ")
  part <- function(k) vapply(ended, `[`, "", k)
  list(works = part(1L), how = part(2L), seconds = as.numeric(part(3L)), output = out)
}

expect_interrupted <- function(result, works) {
  output <- paste(result$output, collapse = "\n")
  testthat::expect_identical(result$works, works, info = output)
  testthat::expect_identical(result$how, rep("interrupted", length(works)), info = output)
  testthat::expect_true(all(result$seconds < 1), info = output)
}

# Makes the native allocations of each work (a named list of functions) fail, one after another, at most `most` of them:
# the call must end with the classed error that says what was needed and what helps there, leave nothing behind, and
# work on the second try where only one failed. In a fresh R, since memory is collected after each failure, which takes
# longer the more packages are loaded.
expect_survives_failures <- function(works, most = 50) {
  testthat::skip_on_cran()
  file <- withr::local_tempfile(fileext = ".rds")
  saveRDS(list(fail = fail_each, works = works, most = most), file)
  helper <- normalizePath(testthat::test_path("helper-arguments.R"))
  out <- run_in_r(c("library(weft)", sprintf("source('%s')", helper), sprintf("given <- readRDS('%s')", file),
                    "given$fail(given$works, given$most)"))
  expect_failures_told(out, names(works))
}

# The same of every exported function and method that takes native memory, each allocation of it. Gives their names. All
# allocations (five minutes of a processor) are shared by as many processes as $MC_CORES says.
expect_all_survive_failures <- function(backend, most = Inf) {
  testthat::skip_on_cran()
  helpers <- normalizePath(list.files(testthat::test_path(), "^helper.*[.]R$", full.names = TRUE))
  lanes <- if (is.infinite(most) && backend == "cpu") as.integer(Sys.getenv("MC_CORES", "1")) else 1L
  run_lane <- function(lane) {
    run_in_r(c("library(weft)", sprintf("for (file in %s) source(file)", paste(deparse(helpers), collapse = "\n")),
               sprintf("works <- works_that_allocate('%s', %s)", backend, is.infinite(most)),
               sprintf("works <- works[seq_along(works) %%%% %d == %d]", lanes, lane - 1L),
               "cat('WORKS', names(works), '\n')", sprintf("fail_each(works, %f)", most)),
             timeout = if (is.infinite(most)) 3600 else 900) # of the clock: the machine may be busy
  }
  out <- unlist(parallel::mclapply(seq_len(lanes), run_lane, mc.cores = lanes))
  begun <- grep("^WORKS ", out, value = TRUE)
  testthat::expect_length(begun, lanes)
  works <- unlist(strsplit(sub("^WORKS ", "", begun), " "))
  # a device's second try is in smaller pieces, and may not come to the block that fails
  if (backend != "cpu") out <- grep("^WRONG .*: works, 0 bytes left$", out, value = TRUE, invert = TRUE)
  expect_failures_told(out, works)
  works
}

expect_failures_told <- function(out, works) {
  done <- strsplit(sub("^DONE ", "", grep("^DONE ", out, value = TRUE)), "\t")
  testthat::expect_identical(vapply(done, `[`, "", 1L), works, info = paste(out, collapse = "\n"))
  testthat::expect_true(all(as.numeric(vapply(done, `[`, "", 2L)) > 0), info = paste(out, collapse = "\n"))
  testthat::expect_identical(grep("^WRONG", out, value = TRUE), character())
}

# Valid calls that take native memory on this back end; not those that only make calls of others, or need other
# packages. Of the workflow the steps that have native code of their own. `variants`: other ways of the same functions
# as well.
works_that_allocate <- function(backend, variants = FALSE) {
  path <- errors_folder()
  d <- errors_data(path, sparse = FALSE) # collecting memory takes five times as long when Matrix is loaded
  fits <- errors_fits(d, path)
  calls <- exported_calls(c(mi_arguments(d, fits, path), kernel_arguments(d), bn_arguments(d, fits),
                            irm_arguments(d, fits, path),
                            gene_arguments(d, fits, path)[c("gene_clusters", "gene_ranking")]))
  methods <- errors_methods(d, fits)
  others <- c("as_igraph", "bn_convert", "network_convert", "irm_sample", "irm_words", "read_bag_of_words",
              "write_bag_of_words")
  calls <- c(calls[setdiff(names(calls), others)], methods[grepl("^(predict|update)", names(methods))],
             if (variants) variant_calls(d, fits, path, sparse = FALSE))
  works <- list()
  for (name in names(calls)) local({
    call <- calls[[name]]
    if ("run" %in% names(formals(call$f))) call$args$run <- weft_run(backend, threads = 1, progress = FALSE)
    else if (backend != "cpu") return()
    work <- function() suppressMessages(suppressWarnings(do.call(call$f, call$args, quote = TRUE)))
    .Call(weft:::C_weft_memory, 0)
    done <- tryCatch(!inherits(work(), "error"), weft_error = function(e) FALSE)
    if (done && .Call(weft:::C_weft_memory, 0)[["allocations"]] > 0) works[[name]] <<- work
  })
  works
}

fail_each <- function(works, most) {
  memory <- function(fail_at) .Call(weft:::C_weft_memory, fail_at)
  live <- function() memory(NULL)[c("host", "device")]
  told <- function(e) { # the class, where the message says how much of which memory and the hint is about that memory
    lines <- strsplit(conditionMessage(e), "\n")[[1L]]
    which <- regmatches(lines[1L], regexpr("^Not enough (host|device) memory.* needed", lines[1L]))
    fits <- length(which) && length(lines) == 2L && grepl("device", lines[2L]) == grepl("device memory", which)
    if (fits) class(e)[1L] else paste("said:", conditionMessage(e))
  }
  for (name in names(works)) {
    works[[name]]()
    gc()
    before <- live()
    memory(0)
    works[[name]]()
    asked <- memory(0)[["allocations"]]
    check <- function(fail_at, wanted) {
      memory(fail_at)
      how <- tryCatch({
        works[[name]]()
        "works"
      }, error = told)
      memory(0)
      if (!identical(live(), before)) gc(full = FALSE) # handles of results, which are young
      if (!identical(live(), before)) gc()
      left <- sum(live() - before)
      if (how != wanted || left != 0) cat(sprintf("WRONG %s, %.0f: %s, %.0f bytes left\n", name, fail_at, how, left))
    }
    each <- seq_len(asked)
    if (asked > most) each <- sort(unique(c(seq_len(most %/% 3), sample(asked, most - most %/% 3)))) # others each time
    for (k in each) check(-k, "weft_error_memory") # on the second try, too
    for (k in each[unique(round(seq(1, length(each), length.out = 5)))]) check(k, "works")
    cat(sprintf("DONE %s\t%.0f\n", name, asked))
  }
}
