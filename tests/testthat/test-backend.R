test_that("the back end is chosen by argument, option, variable", {
  withr::local_options(weft.backend = NULL)
  withr::local_envvar(WEFT_BACKEND = NA)
  expect_identical(weft_backend(), "auto")
  withr::local_envvar(WEFT_BACKEND = "cpu")
  expect_identical(weft_backend(), "cpu")
  expect_identical(weft_backend("auto"), "cpu")
  expect_identical(weft_backend(), "auto")
  expect_error(weft_backend("gpu"), class = "weft_error_input")
  withr::local_options(weft.backend = "opencl")
  expect_error(weft_backend(), class = "weft_error_input", regexp = "weft.backend")
})

test_that("a named back end that cannot run says why", {
  why <- weft:::cuda_missing()
  skip_if(is.null(why), "there is a device")
  err <- expect_error(mi_rank(data.frame(a = 1:2), 1:2, run = "cuda"), class = "weft_error_device")
  expect_match(conditionMessage(err), why, fixed = TRUE)
  expect_s3_class(err, "weft_error")
  expect_identical(deparse(conditionCall(err)[[1]]), "mi_rank")
})

test_that("auto records what it chose and why", {
  r <- mi_rank(data.frame(a = 1:2), 1:2, run = "auto")
  expect_identical(attr(r, "backend"), "cpu")
  expect_match(attr(r, "reason"), "too little for a device")
  large <- weft:::choose_backend("auto", list(cpu = 100, cuda = 1))
  expect_identical(large$name, if (is.null(weft:::cuda_missing())) "cuda" else "cpu")
  if (large$name == "cpu") expect_identical(large$reason, weft:::cuda_missing())
})

test_that("threads follow options and are checked", {
  withr::local_options(weft.threads = 1)
  expect_identical(weft_threads(), 1L)
  expect_identical(weft_threads(2), 1)
  expect_lte(weft_threads(), 2L)
  expect_error(weft_threads(0), class = "weft_error_input")
  withr::local_envvar(`_R_CHECK_LIMIT_CORES_` = "TRUE")
  weft_threads(NULL)
  expect_lte(weft_threads(), 2L)
})

test_that("the situation report has every part", {
  s <- weft_sitrep()
  expect_output(print(s), "CPU")
  expect_output(print(s), "OpenMP")
  expect_output(print(s), "CUDA")
  expect_output(print(s), "MPI")
  expect_output(print(s), "Default back end")
  expect_identical(nrow(weft_devices()) > 0, s$cuda)
  if (!s$cuda) expect_true(nzchar(s$cuda_reason))
})

test_that("loading touches no device", {
  skip_on_cran()
  out <- run_in_r(c(
    "loadNamespace('weft')",
    "maps <- if (file.exists('/proc/self/maps')) readLines('/proc/self/maps') else ''",
    "cat('CUDA', any(grepl('weft_cuda|libcuda|libmpi', maps)), '\\n')"
  ))
  expect_true("CUDA FALSE " %in% out, info = paste(out, collapse = "\n"))
})

test_that("a forked child works on one thread, without CUDA", {
  skip_on_os("windows")
  x <- data.frame(a = rep(1:2, 50), b = rep(1:4, 25))
  want <- tidy(mi_rank(x, x$a)) # starts the parent's threads
  child <- parallel::mclapply(1:2, function(k) {
    list(threads = weft_threads(), result = tidy(mi_rank(x, x$a, run = weft_run(threads = 2))),
         cuda = tryCatch(mi_rank(x, x$a, run = "cuda"), weft_error_device = conditionMessage))
  }, mc.cores = 2)
  for (k in 1:2) {
    expect_identical(child[[k]]$threads, 1L)
    expect_identical(child[[k]]$result, want)
    expect_match(child[[k]]$cuda, "forked")
  }
})

test_that("progress is shown when asked for, and its errors come through", {
  withr::local_options(weft.poll = 0)
  x <- rep(list(seq_len(3000) %% 300), 200)
  x <- list2DF(stats::setNames(x, paste0("x", seq_along(x))))
  calls <- NULL
  mi_rank(x, seq_len(3000) %% 7,
          run = weft_run(threads = 1, progress = function(done, total) calls <<- rbind(calls, c(done, total))))
  expect_true(nrow(calls) >= 1)
  stop_now <- structure(class = c("mine", "error", "condition"), list(message = "own words", call = NULL))
  before <- .Call(weft:::C_weft_memory, NULL)
  for (backend in test_backends()) {
    expect_error(mi_rank(x, seq_len(3000) %% 7,
                         run = weft_run(backend, progress = function(done, total) stop(stop_now))),
                 "own words", class = "mine")
  }
  expect_identical(.Call(weft:::C_weft_memory, NULL)[c("host", "device")], before[c("host", "device")])
})
