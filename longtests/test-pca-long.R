# Heavy checks of principal components: run by hand or by the nightly, with
#   Rscript -e 'testthat::test_file("longtests/test-pca-long.R", package = "weft", load_package = "installed")'

test_that("a call stops within a second of an interrupt, whatever the method, on either back end", {
  skip_on_os("windows")
  backends <- if (is.null(weft:::cuda_missing())) c("cpu", "cuda") else "cpu"
  for (backend in backends) for (case in c("krylov", "gram", "filter", "gs", "nipals", "gaps")) {
    code <- sprintf('
      library(weft)
      case <- "%s"
      backend <- "%s"
      set.seed(1)
      n <- if (backend == "cuda") 12000 else 3000
      x <- matrix(rnorm(n * 2500), n)
      if (case == "gaps") x[sample(length(x), 1e5)] <- NA
      method <- switch(case, filter = "gram", gaps = "nipals", case)
      run <- function(...) suppressWarnings(pca(x, if (case == "gram") 400 else 20, method = method, backend = backend,
                                                tol = if (case == "gram") NULL else 0, seed = 1, ...))
      invisible(run(max_iter = 1))
      system(sprintf("(sleep 1; date +%%%%s.%%%%N; kill -INT %%d) &", Sys.getpid()))
      tryCatch(repeat run(max_iter = 1e6), interrupt = function(e) cat("stopped at", format(as.numeric(Sys.time()), digits = 15), "\\n"))
      Sys.sleep(0.2)
    ', case, backend)
    file <- withr::local_tempfile(fileext = ".R", lines = code)
    out <- system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", file), stdout = TRUE, stderr = TRUE,
                   env = paste0("R_LIBS=", paste(c(dirname(find.package("weft")), .libPaths()), collapse = ":")))
    sent <- as.numeric(grep("^[0-9.]+$", out, value = TRUE))
    stopped <- as.numeric(sub("stopped at ", "", grep("^stopped", out, value = TRUE)))
    expect_length(stopped, 1)
    cat(sprintf("%s on %s: stopped %.2f s after the interrupt\n", case, backend, stopped - sent))
    expect_lt(stopped - sent, 1)
  }
})

test_that("100,000 cells by 20,000 genes at 5 %, in bounded memory", {
  loadNamespace("Matrix")
  set.seed(1)
  cells <- 100000L
  genes <- 20000L
  each <- cells %/% 20L
  x <- methods::new("dgCMatrix", Dim = c(cells, genes), p = as.integer(seq(0, genes) * each),
                    i = rep(as.integer((seq_len(each) - 1) * 20 + floor(runif(each) * 20)), genes), x = rexp(genes * each))
  fit <- pca(x, 10, tol = 1e-4, seed = 1)
  peak <- .Call(weft:::C_weft_memory, NULL)[["host_peak"]]
  status <- "/proc/self/status"
  most <- if (file.exists(status)) grep("VmHWM", readLines(status), value = TRUE) else "not known"
  cat(sprintf("100,000 x 20,000, %.0f stored: %.0f s, %g passes, %.2f GB of weft's own at most; the process: %s\n", length(x@x),
              fit$seconds, fit$passes, peak / 1e9, most))
  expect_true(all(fit$converged))
  expect_lt(peak, 3e9)
})
