# Every native allocation is made to fail in turn: each gives the classed memory error and leaves nothing behind.

live <- function() .Call(weft:::C_weft_memory, NULL)[c("host", "device")]

test_that("a failed allocation anywhere is an error, and nothing leaks", {
  x <- data.frame(a = rep(1:3, 100), wide = seq_len(300) * 1000000, z = rep(1:2, 150))
  works <- list(cpu = function() mi_rank(x, rep(1:4, 75), run = "cpu"))
  if (is.null(weft:::cuda_missing())) {
    works <- c(works, cuda = function() mi_rank(x, rep(1:4, 75), run = "cuda"),
               draws = function() weft:::draws("normal", 10, backend = "cuda"),
               upload = function() weft_free(weft_upload(matrix(0, 2, 2))))
  }
  expect_survives_failures(works)
})

test_that("every operation says what memory it lacked, whichever allocation failed", {
  every <- nzchar(Sys.getenv("WEFT_EVERY_ALLOCATION")) # of 1,600 on the CPU; on a device all of them take minutes
  works <- expect_all_survive_failures("cpu", if (every) Inf else 16)
  expect_true(all(c("mi_pairs", "bn_scores", "irm", "pca", "kernel_sum", "mi_network", "regulation",
                    "gene_ranking", "gene_clusters") %in% works))
  if (is.null(weft:::cuda_missing())) expect_all_survive_failures("cuda", if (every) Inf else 8)
})

test_that("a block that the machine does not have is refused before it is asked for", {
  skip_if(.Call(weft:::C_weft_host_available) < 0, "free memory is unknown here")
  expect_gt(.Call(weft:::C_weft_host_available), 0)
})

test_that("handles give their memory back", {
  skip_if_no_cuda()
  gc()
  before <- live()
  m <- matrix(stats::rnorm(60), 6, dimnames = list(letters[1:6], NULL))
  h <- weft_upload(m)
  expect_identical(dim(h), c(6L, 10L))
  expect_identical(as.matrix(h), m)
  expect_gt(live()[["device"]], before[["device"]])
  single <- weft_upload(m, precision = "single")
  expect_equal(as.matrix(single), m, tolerance = 1e-6)
  weft_free(h)
  weft_free(h)
  expect_error(as.matrix(h), class = "weft_error_input", regexp = "freed")
  expect_output(print(h), "freed")
  rm(single)
  gc()
  expect_identical(live(), before)
  big <- matrix(stats::runif(5e6), 1000)
  hb <- weft_upload(big)
  expect_identical(as.matrix(hb), big)
  weft_free(hb)
  withr::local_options(weft.device_memory = 1000)
  expect_error(weft_upload(matrix(0, 100, 100)), class = "weft_error_memory")
})

test_that("a thousand calls leave memory where it was", {
  x <- data.frame(a = rep(1:3, 10), b = seq_len(30))
  for (backend in test_backends()) {
    mi_rank(x, rep(1:2, 15), run = backend)
    gc()
    before <- live()
    free <- if (backend == "cuda") weft_devices()$available[1]
    for (k in 1:1000) mi_rank(x, rep(1:2, 15), run = backend)
    gc()
    expect_identical(live(), before)
    if (backend == "cuda") expect_equal(weft_devices()$available[1], free, tolerance = 0.001)
  }
})

test_that("upload refuses what is no numeric matrix", {
  expect_error(weft_upload("a"), class = "weft_error_input")
  expect_error(weft_upload(matrix("a")), class = "weft_error_input")
  expect_error(weft_free(1), class = "weft_error_input")
})
