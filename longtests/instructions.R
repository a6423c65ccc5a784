# Instructions that native code takes, counted by valgrind's callgrind: no clock, so the same on a busy machine. Each
# call may take at most what stands beside it, some tenths above what it took when it was written; one that takes more
# has lost what was gained.
#
#   Rscript longtests/instructions.R [--only mesh]
source("longtests/options.R")
given <- options_given(only = NA)

# Millions of instructions within native calls, with AVX2 and one thread; `data` is not counted.
guards <- list(
  "density on a line" = list(most = 53, data = "x <- rnorm(1e5); d <- kde(x, 0.1); q <- seq(-4, 4, length.out = 401)",
                             call = "predict(d, q)"),
  "sums on a line" = list(most = 207, data = "x <- rnorm(2e4)",
                          call = "kernel_sum(x, bandwidth = 0.1, rel_error = 1e-4)"),
  "plug-in" = list(most = 29, data = "x <- rnorm(1e5)", call = "kde(x, 'plugin')"),
  "mesh in two dimensions" = list(most = 183, data = "x <- matrix(rnorm(4e4), ncol = 2)",
                                  call = "kernel_sum(x, bandwidth = 0.2, rel_error = 1e-4, method = 'mesh')"),
  "mesh in three dimensions" = list(most = 911, data = "x <- matrix(rnorm(3e4), ncol = 3)",
                                    call = "kernel_sum(x, bandwidth = 0.4, rel_error = 1e-4, method = 'mesh')"),
  "least squares in two dimensions" = list(most = 711, data = "x <- matrix(rnorm(1e4), ncol = 2)",
                                           call = "kde(x, 'lscv')"),
  "sparse components" = list(most = NA, data = "x <- Matrix::rsparsematrix(2000, 500, 0.02)", call = "pca(x, 10)")
)

# The count of one call in a session of its own.
millions <- function(guard) {
  dir <- tempfile("instructions")
  dir.create(dir)
  on.exit(unlink(dir, recursive = TRUE))
  script <- file.path(dir, "call.R")
  options <- "suppressMessages(library(weft)); options(weft.threads = 1, weft.backend = 'cpu', weft.progress = FALSE)"
  writeLines(c(options, "set.seed(1)", guard$data, paste("invisible(", guard$call, ")")), script)
  # counted from the entry of the one function under which all native work runs
  tool <- paste0("valgrind --tool=callgrind --toggle-collect=weft_glue_run --callgrind-out-file=",
                 file.path(dir, "out"))
  env <- c("WEFT_SIMD=avx2", "OMP_NUM_THREADS=1")
  shown <- system2("R", c("--vanilla", "--no-echo", "-d", shQuote(tool), "-f", script), env = env, stdout = TRUE,
                   stderr = TRUE)
  total <- grep("^(summary|totals):", readLines(file.path(dir, "out")), value = TRUE)
  if (!length(total)) stop(paste(utils::tail(shown, 5L), collapse = "\n"))
  as.numeric(sub(".*: *([0-9]+).*", "\\1", total[1L])) / 1e6
}

if (!nzchar(Sys.which("valgrind"))) { cat("no valgrind: not counted\n"); quit(status = 0) }
if (!is.na(given$only)) guards <- guards[grepl(given$only, names(guards), fixed = TRUE)]
over <- 0
for (name in names(guards)) {
  took <- millions(guards[[name]])
  ok <- took <= guards[[name]]$most
  over <- over + !isTRUE(ok)
  cat(sprintf("%-34s %8.1f million instructions, at most %.0f%s\n", name, took, guards[[name]]$most,
              if (isTRUE(ok)) "" else ": TOO MANY"))
}
cat(sprintf("%d calls counted, %d above their guard\n", length(guards), over))
quit(status = over > 0)
