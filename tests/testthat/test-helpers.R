# What helper.R says of stops and of memory is found wrong where it is.

failures_of <- function(code) {
  found <- character()
  withCallingHandlers(code, expectation = function(e) {
    if (inherits(e, "expectation_failure")) found <<- c(found, conditionMessage(e))
    invokeRestart("continue_test")
  })
  found
}

test_that("work that goes on after it was told to stop is found", {
  expect_length(failures_of(expect_stops(function(progress) progress(1, 2))), 0)
  asks_again <- function(progress) {
    try(progress(1, 2), silent = TRUE)
    progress(2, 2)
  }
  expect_match(failures_of(expect_stops(asks_again)), "polls of the work")
  works_on <- function(progress) {
    told <- tryCatch(progress(1, 2), error = identity)
    until <- processor_seconds() + 1.2
    while (processor_seconds() < until) NULL
    stop(told)
  }
  expect_match(failures_of(expect_stops(works_on)), "processor seconds that ending took")
})

test_that("memory that is left behind and errors of another class are found", {
  skip_on_cran()
  x <- data.frame(a = rep(1:3, 30))
  rank <- function() mi_rank(x, rep(1:2, 45), run = weft_run(threads = 1))
  expect_length(failures_of(expect_survives_failures(list(rank = rank), 3)), 0)
  kept <- list()
  keeps <- function() kept[[length(kept) + 1L]] <<- mi_pack(x)
  expect_match(failures_of(expect_survives_failures(list(keeps = keeps), 2)), "bytes left", all = FALSE)
  other <- function() tryCatch(rank(), error = function(e) stop("another"))
  expect_match(failures_of(expect_survives_failures(list(other = other), 2)), "another, 0 bytes left", all = FALSE)
})

test_that("what helper files define for a room is found", {
  lines <- unlist(lapply(list.files(test_path(), "^helper.*[.]R$", full.names = TRUE), readLines))
  for (prefix in c("calls_", "twins_")) {
    defined <- sub(" .*", "", grep(paste0("^", prefix, "[a-z]+ <- function"), lines, value = TRUE))
    expect_setequal(lapply(defined, function(name) get(name)), functions_of_rooms(prefix))
  }
})
