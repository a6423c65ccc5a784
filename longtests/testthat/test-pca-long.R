# Heavy checks of principal components: run by hand or by the nightly, with
#   Rscript -e 'testthat::test_file("longtests/testthat/test-pca-long.R", package = "weft", load_package = "installed")'
source("../../tests/testthat/helper.R") # from the folder of this file, where testthat runs it

test_that("a call stops within a second of an interrupt, whatever the method, on either back end", {
  skip_on_os("windows")
  backends <- if (is.null(weft:::cuda_missing())) c("cpu", "cuda") else "cpu"
  cases <- c("krylov", "gram", "filter", "gs", "nipals", "gaps")
  for (backend in backends) {
    setup <- sprintf('
      set.seed(1)
      backend <- "%s"
      n <- if (backend == "cuda") 12000 else 3000
      x <- gaps <- matrix(rnorm(n * 2500), n)
      gaps[sample(length(gaps), 1e5)] <- NA
      run <- function(case) function(progress) repeat {
        method <- switch(case, filter = "gram", gaps = "nipals", case)
        suppressWarnings(pca(if (case == "gaps") gaps else x, if (case == "gram") 400 else 20, method = method,
                             seed = 1, control = list(tolerance = if (case != "gram") 0, max_iterations = 1e6),
                             run = weft_run(backend, progress = progress)))
      }', backend)
    works <- sprintf("lapply(c(%s), run)", paste0(cases, " = '", cases, "'", collapse = ", "))
    result <- interrupted_works(setup, works)
    cat(sprintf("%s on %s: stopped %.2f s after the last poll before the interrupt\n", result$works, backend,
                result$seconds), sep = "")
    expect_interrupted(result, cases)
  }
})

test_that("100,000 cells by 20,000 genes at 5 %, in bounded memory", {
  loadNamespace("Matrix")
  set.seed(1)
  cells <- 100000L
  genes <- 20000L
  each <- cells %/% 20L
  x <- methods::new("dgCMatrix", Dim = c(cells, genes), p = as.integer(seq(0, genes) * each),
                    i = rep(as.integer((seq_len(each) - 1) * 20 + floor(runif(each) * 20)), genes),
                    x = rexp(genes * each))
  fit <- pca(x, 10, seed = 1, control = list(tolerance = 1e-4))
  peak <- .Call(weft:::C_weft_memory, NULL)[["host_peak"]]
  status <- "/proc/self/status"
  most <- if (file.exists(status)) grep("VmHWM", readLines(status), value = TRUE) else "not known"
  cat(sprintf("100,000 x 20,000, %.0f stored: %.0f s, %g passes, %.2f GB of weft's own at most; the process: %s\n",
              length(x@x), fit$seconds, fit$passes, peak / 1e9, most))
  expect_true(all(fit$converged))
  expect_lt(peak, 3e9)
})
