# Runs `code` on `size` ranks; the output of all. A job that does not end is killed, which fails the test, after a time
# far beyond what any takes on a crowded machine. What a rank writes with cat() goes through a file of its own, since
# mpirun lets lines of several ranks run together.
run_ranks <- function(size, code) {
  skip_on_cran()
  skip_on_os("windows")
  mpirun <- Sys.which("mpirun")
  skip_if(!nzchar(mpirun) || !attr(.Call(weft:::C_weft_mpi, weft:::libs_dir()), "available"), "no MPI")
  folder <- withr::local_tempdir()
  script <- file.path(folder, "job.R")
  helper <- normalizePath(testthat::test_path("helper-arguments.R"))
  writeLines(c("suppressMessages(library(weft))", sprintf("source('%s')", helper),
               sprintf(".lines <- sprintf('%s/%%d.txt', Sys.getpid())", folder),
               "cat <- function(...) base::cat(..., file = .lines, append = TRUE)", code), script)
  oversubscribe <- if (any(grepl("Open MPI", system2(mpirun, "--version", stdout = TRUE)))) "--oversubscribe"
  withr::local_envvar(OMPI_ALLOW_RUN_AS_ROOT = 1, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM = 1, OMP_NUM_THREADS = 1,
                      R_LIBS = paste(c(dirname(find.package("weft")), .libPaths()), collapse = ":"))
  # in a sanitizer's run, its library is preloaded into R, not into mpirun
  job <- paste(mpirun, oversubscribe, "-n", size, file.path(R.home("bin"), "Rscript"), "--vanilla", script,
               "; echo The job has ended.")
  out <- suppressWarnings(system2("timeout", c("-k", 20, 900, "sh", "-c", shQuote(job)), stdout = TRUE, stderr = TRUE))
  if (!"The job has ended." %in% out) testthat::fail(paste(c("The job did not end:", out), collapse = "\n"))
  c(out[out != "The job has ended."], unlist(lapply(list.files(folder, "[.]txt$", full.names = TRUE), readLines)))
}

# Several pieces of code in one job, each in an environment of its own that knows the rank as `me`: what the ranks said
# in each. Of a job that does not come to its end every part says all.
run_ranks_in_parts <- function(size, parts) {
  out <- run_ranks(size, c('me <- attr(weft_ranks(), "rank")',
                           sprintf("cat('== %s\\n')\nlocal({%s})", names(parts), unlist(parts)), "cat('== \\n')"))
  head <- grepl("^== ", out)
  if (sum(out == "== ") < size) return(lapply(parts, function(part) out))
  part <- c("", sub("^== ", "", out[head]))[1L + cumsum(head)]
  lapply(stats::setNames(nm = names(parts)), function(name) out[!head & part == name])
}

# What every rank has of each of some calls: a matrix of ranks and names of calls with "ok", or the class and message
# of an error. `calls`: their code, by name; `before`: what they need.
outcomes <- function(size, before, calls) {
  out <- run_ranks(size, c('me <- attr(weft_ranks(), "rank")', before, 'say <- function(k, code) {
      got <- tryCatch({ code; "ok" }, interrupt = function(e) "interrupt",
                      error = function(e) paste(class(e)[1L], gsub("\\n", " ", conditionMessage(e))))
      cat(sprintf("outcome|%d|%d|%s\\n", me, k, got))
    }', sprintf("say(%d, {%s})", seq_along(calls), calls)))
  lines <- strsplit(grep("^outcome", out, value = TRUE), "|", fixed = TRUE)
  found <- matrix(NA_character_, length(calls), size, dimnames = list(names(calls), 0:(size - 1)))
  for (line in lines) found[as.integer(line[3L]), as.integer(line[2L]) + 1L] <- line[4L]
  if (anyNA(found)) testthat::fail(paste(c("Some calls have no outcome:", out), collapse = "\n"))
  found
}
