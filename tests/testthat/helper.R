# On a machine that is meant to have a device (WEFT_TEST_CUDA=1), a skip is a failure.
skip_if_no_cuda <- function() {
  why <- weft:::cuda_missing()
  if (is.null(why)) return(invisible())
  if (identical(Sys.getenv("WEFT_TEST_CUDA"), "1")) stop("WEFT_TEST_CUDA=1, but: ", why)
  testthat::skip(paste("no CUDA device:", why))
}

# The back ends to run a test on.
test_backends <- function() if (is.null(weft:::cuda_missing())) c("cpu", "cuda") else "cpu"

# Runs code in a fresh R with this weft, returns its output; for tests that must not share a process.
run_in_r <- function(code, env = character(), timeout = 60) {
  file <- withr::local_tempfile(fileext = ".R", lines = code)
  lib <- dirname(find.package("weft"))
  env <- c(paste0("R_LIBS=", paste(c(lib, .libPaths()), collapse = .Platform$path.sep)), env)
  suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", shQuote(file)), stdout = TRUE, stderr = TRUE,
                           env = env, timeout = timeout))
}
