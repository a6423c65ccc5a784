# Heavy checks of principal components: run by hand or by the nightly, with
#   Rscript -e 'testthat::test_file("longtests/test-pca-long.R", package = "weft", load_package = "installed")'

test_that("a call stops within a second of an interrupt, whatever the method", {
  skip_on_os("windows")
  for (method in c("krylov", "gram", "gs", "nipals")) {
    code <- sprintf('
      library(weft)
      set.seed(1)
      x <- matrix(rnorm(3000 * 2500), 3000)
      pid <- Sys.getpid()
      system(sprintf("(sleep 2; kill -INT %%d) &", pid))
      started <- proc.time()[[3]]
      tryCatch(pca(x, if ("%s" == "gram") 400 else 20, method = "%s", tol = if ("%s" == "krylov") 0 else NULL, max_iter = 1e6),
               interrupt = function(e) cat("stopped after", proc.time()[[3]] - started))
    ', method, method, method)
    file <- withr::local_tempfile(fileext = ".R", lines = code)
    out <- system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", file), stdout = TRUE, stderr = TRUE,
                   env = paste0("R_LIBS=", dirname(find.package("weft"))))
    seconds <- as.numeric(sub("stopped after ", "", grep("^stopped", out, value = TRUE)))
    expect_length(seconds, 1)
    expect_lt(seconds, 3.2)
  }
})

test_that("100,000 cells by 20,000 genes at 5 %, in bounded memory", {
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
  message(sprintf("100,000 x 20,000, %.0f stored: %.0f s, %g passes, %.2f GB of weft's own at most; the process: %s", length(x@x), fit$seconds,
                  fit$passes, peak / 1e9, most))
  expect_true(all(fit$converged))
  expect_lt(peak, 3e9)
})
