# Packs and device matrices behind external pointers: wrong, gone, from another session, and freed while they are in
# use.

binary <- function(n = 200, p = 300) {
  withr::local_seed(1)
  as.data.frame(matrix(sample(0:2, n * p, TRUE), n))
}
host_live <- function() .Call(weft:::C_weft_memory, NULL)[["host"]]

test_that("what is no handle, or one of another kind or session, is refused", {
  d <- binary(20, 4)
  pack <- mi_pack(d, rep(0:1, 10))
  with_pointer <- function(pointer, class = "weft_mi_pack") {
    structure(utils::modifyList(unclass(pack), list(pointer = pointer)), class = class)
  }
  file <- withr::local_tempfile()
  saveRDS(pack, file)
  not_ours <- list(with_pointer(NULL), with_pointer(1), with_pointer("a"), with_pointer(globalenv()),
                   structure(list(), class = "weft_mi_pack"), structure(1:3, class = "weft_mi_pack"),
                   structure(list(pointer = NULL), class = "weft_device_matrix"))
  for (handle in c(not_ours, list(NULL, 1, "a"))) expect_error(weft_free(handle), class = "weft_error_input")
  other <- with_pointer(weft:::handle_pointer(pack), "weft_device_matrix")
  for (handle in c(not_ours[1:6], list(with_pointer(methods::new("externalptr")), readRDS(file)))) {
    expect_error(mi_pairs(handle), class = "weft_error_input")
    expect_error(mi_rank(handle), class = "weft_error_input")
  }
  expect_null(weft_free(with_pointer(methods::new("externalptr"))))
  expect_null(weft_free(other)) # a pack's pointer is no device matrix: nothing is freed
  expect_error(as.matrix(other), class = "weft_error_input")
  expect_error(pca(other, 1), class = "weft_error_input")
  expect_identical(nrow(mi_pairs(pack)), 6L)
  weft_free(pack)
  expect_error(mi_pairs(pack), "freed", class = "weft_error_input")
  expect_null(weft_free(pack))
  expect_output(print(pack), "freed")
})

test_that("a pack freed while a call uses it ends after that call", {
  withr::local_options(weft.poll = 0)
  d <- binary()
  class <- rep(0:1, 100)
  whole <- mi_pairs(d, class)
  gc()
  before <- host_live()
  calls <- list(pairs = function(x, ...) call_with(mi_pairs, list(x, ...)),
                triples = function(x, ...) call_with(mi_triples, list(x, features = 1:60, ...)),
                full = function(x, ...) call_with(mi_pairs, list(x, ..., control = list(full = TRUE))),
                tuples = function(x, ...) call_with(mi_tuples, list(x, order = 3, features = 1:60, ...)))
  for (call in names(calls)) {
    pack <- mi_pack(d, class)
    asked <- 0
    expected <- calls[[call]](pack)
    found <- tryCatch(calls[[call]](pack, progress = function(done, total) {
      asked <<- asked + 1
      weft_free(pack)
      gc()
      if (asked == 1) expect_error(mi_pairs(pack), "freed", class = "weft_error_input")
    }), weft_error_input = function(e) conditionMessage(e))
    expect_gt(asked, 0)
    # what comes after the search asks for the pack again, and is told
    if (is.character(found)) expect_match(found,
                                          "freed") else expect_identical(unclass(found)[[1]], unclass(expected)[[1]],
                                                                         info = call)
    expect_identical(host_live(), before, info = call)
  }
  pack <- mi_pack(d, class)
  owner <- new.env()
  owner$pack <- pack
  reg.finalizer(owner, function(e) weft_free(e$pack))
  rm(owner)
  found <- mi_pairs(pack, run = weft_run(progress = function(done, total) gc()))
  expect_identical(found$mi, whole$mi)
  gc()
  expect_identical(host_live(), before)
})

test_that("a device matrix freed or changed is refused, and one freed while a call uses it ends after that call", {
  skip_if_no_cuda()
  withr::local_options(weft.poll = 0)
  withr::local_seed(2)
  x <- matrix(stats::rnorm(3e5), 1000)
  before <- .Call(weft:::C_weft_memory, NULL)[["device"]]
  handle <- weft_upload(x)
  whole <- pca(handle, 3, seed = 1, run = "cuda")
  for (change in list(list(dim = c(1000L, 400L)), list(dim = NULL), list(dimnames = list("a", NULL)),
                      list(pointer = 1))) {
    changed <- structure(utils::modifyList(unclass(handle), change), class = class(handle))
    expect_error(pca(changed, 3, run = "cuda"), class = "weft_error_input")
    expect_error(as.matrix(changed), class = "weft_error_input")
  }
  asked <- 0
  found <- tryCatch(pca(handle, 3, seed = 1, run = weft_run("cuda", progress = function(done, total) {
    asked <<- asked + 1
    weft_free(handle)
    gc()
  })), weft_error_input = function(e) conditionMessage(e))
  expect_gt(asked, 0)
  # a later step of the same call asks for the matrix again, and is told
  if (is.character(found)) expect_match(found, "freed") else expect_identical(found$sdev, whole$sdev)
  expect_identical(.Call(weft:::C_weft_memory, NULL)[["device"]], before)
  expect_error(as.matrix(handle), "freed", class = "weft_error_input")
})

test_that("jumps out of a progress handler pass by the native work, and go on", {
  withr::local_options(weft.poll = 0)
  pack <- mi_pack(binary(), rep(0:1, 100))
  gc()
  before <- host_live()
  run <- function(handler) mi_pairs(pack, run = weft_run(progress = handler))
  expect_identical(tryCatch(run(function(done, total) warning("w")), warning = conditionMessage), "w")
  expect_identical(tryCatch(run(function(done, total) stop("e")), error = conditionMessage), "e")
  own <- structure(class = c("own", "condition"), list())
  expect_identical(tryCatch(run(function(done, total) signalCondition(own)), own = function(e) "own"), "own")
  interrupt <- structure(class = c("interrupt", "condition"), list(message = "", call = NULL))
  expect_identical(tryCatch(run(function(done, total) signalCondition(interrupt)), interrupt = function(e) "interrupt"),
                   "interrupt")
  expect_identical(withRestarts(run(function(done, total) invokeRestart("leave", 7)), leave = identity), 7)
  expect_identical(callCC(function(leave) run(function(done, total) leave(8))), 8)
  handled <- 0
  tryCatch(withCallingHandlers(run(function(done, total) stop("once")), error = function(e) handled <<- handled + 1),
           error = identity)
  expect_identical(handled, 1)
  nested <- function(done, total) mi_pairs(pack, top = 5,
                                           run = weft_run(progress = function(done, total) stop("inner")))
  expect_identical(tryCatch(run(nested), error = conditionMessage), "inner")
  expect_identical(host_live(), before)
  expect_identical(nrow(mi_pairs(pack, top = 5)), 5L)
})

test_that("the package can be unloaded while handles and finalisers remain", {
  out <- run_in_r(c(
    "library(weft)", "d <- data.frame(a = c(0, 1, 0, 1), b = c(0, 0, 1, 1))", "p <- mi_pack(d, d$a)",
    "r <- mi_pairs(d, d$a, run = weft_run(threads = 2))",
    "unloadNamespace('weft')", "invisible(gc())", "rm(p)", "invisible(gc())", "cat(weft::mi_rank(d, d$a)$mi, '\\n')",
    "unloadNamespace('weft')", "invisible(gc())",
    "cat('weft' %in% names(getLoadedDLLs()), weft::mi_rank(d, d$a)$mi[1], '\\n')"
  ))
  expect_identical(utils::tail(out, 2L), c("1 0 ", "FALSE 1 "))
})

test_that("what only has the class of a handle is told so", {
  for (class in c("weft_mi_pack", "weft_device_matrix")) {
    x <- structure(c(1, 2), class = class)
    expect_error(dim(x), class = "weft_error_input")
    expect_error(dimnames(x), class = "weft_error_input")
  }
})
