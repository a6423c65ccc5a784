# Calls that no test may reach: scripts name functions and arguments that exist, and every call of native code has as
# many arguments as its entry point.

bench <- testthat::test_path("..", "..", "inst", "bench") # in the sources

# Every call below a piece of code: list(name, package ("" where none is named), arguments (their names), code).
calls_in <- function(code) {
  if (is.pairlist(code) || is.expression(code)) code <- as.list(code)
  if (!is.call(code) && !is.list(code)) return(NULL)
  parts <- Filter(function(part) !identical(part, substitute()), as.list(code))
  below <- unlist(lapply(parts, calls_in), recursive = FALSE)
  if (!is.call(code)) return(below)
  head <- code[[1L]]
  of_package <- is.call(head) && (identical(head[[1L]], quote(`::`)) || identical(head[[1L]], quote(`:::`)))
  if (!is.name(head) && !of_package) return(below)
  own <- list(name = as.character(if (of_package) head[[3L]] else head),
              package = if (of_package) as.character(head[[2L]]) else "", arguments = setdiff(names(code), ""),
              code = code)
  c(list(own), below)
}

# Names that a piece of code gives to values or to arguments of its own functions.
names_given_in <- function(code) {
  if (is.pairlist(code) || is.expression(code)) code <- as.list(code)
  if (!is.call(code) && !is.list(code)) return(NULL)
  parts <- Filter(function(part) !identical(part, substitute()), as.list(code))
  own <- if (is.call(code) && as.character(code[[1L]])[1L] %in% c("<-", "<<-", "=")) as.character(code[[2L]])[1L]
         else if (is.call(code) && identical(code[[1L]], quote(`function`))) names(code[[2L]])
  c(own, unlist(lapply(parts, names_given_in)))
}

wrong_calls_of_weft <- function(files) {
  code <- stats::setNames(lapply(files, parse, keep.source = FALSE), basename(files))
  given <- unlist(lapply(code, names_given_in))
  weft <- asNamespace("weft")
  wrong_in <- function(code) {
    unlist(lapply(calls_in(code), function(call) {
      named <- call$package == "weft"
      if (!named && (nzchar(call$package) || call$name %in% given)) return(NULL)
      if (!exists(call$name, weft, mode = "function", inherits = FALSE)) {
        return(if (named) sprintf("no weft:::%s()", call$name))
      }
      # without weft::: only what weft exports is found
      if (!named && !call$name %in% getNamespaceExports("weft")) return(NULL)
      known <- names(formals(get(call$name, weft)))
      if ("..." %in% known) known <- c(known, weft:::bn_score_settings, names(formals(weft:::bn_learn)))
      wrong <- setdiff(call$arguments, known)
      if (length(wrong)) sprintf("%s() has no argument `%s`", call$name, wrong)
    }))
  }
  unlist(lapply(names(code), function(name) {
    wrong <- unique(wrong_in(code[[name]]))
    if (length(wrong)) paste0(name, ": ", wrong)
  }))
}

test_that("benchmarks call what exists", {
  skip_if_not(dir.exists(bench), "no sources here")
  files <- list.files(c(bench, test_path("..", "..", "studies")), "[.]R$", full.names = TRUE)
  expect_gt(length(files), 40)
  expect_identical(wrong_calls_of_weft(files), NULL)
})

test_that("the tables that vignettes draw are installed", {
  vignettes <- testthat::test_path("..", "..", "vignettes")
  skip_if_not(dir.exists(vignettes), "no sources here")
  lines <- unlist(lapply(list.files(vignettes, "[.]Rmd$", full.names = TRUE), readLines))
  tables <- unique(unlist(regmatches(lines, gregexpr("(?<=\")[a-z0-9-]+[.]csv(?=\")", lines, perl = TRUE))))
  expect_gt(length(tables), 5)
  expect_identical(setdiff(tables, list.files(system.file("bench", package = "weft"))), character())
})

test_that("scripts and tables that help, README and vignettes name are installed", {
  top <- testthat::test_path("..", "..")
  files <- c(file.path(top, "README.md"), list.files(file.path(top, c("R", "vignettes")), "[.](R|Rmd)$",
                                                     full.names = TRUE))
  skip_if_not(all(file.exists(files)) && length(files) > 100, "no sources here")
  lines <- unlist(lapply(files, readLines))
  named <- unique(unlist(regmatches(lines, gregexpr("(?<=inst/bench/)[A-Za-z0-9-]+[.][A-Za-z]+", lines, perl = TRUE))))
  expect_gt(length(named), 15)
  expect_identical(setdiff(named, list.files(system.file("bench", package = "weft"))), character())
})

test_that("native code gets as many arguments as its entry points take", {
  weft <- asNamespace("weft")
  functions <- Filter(function(f) is.function(f) && ".Call" %in% all.names(body(f)), as.list(weft, all.names = TRUE))
  calls <- unlist(lapply(functions, function(f) calls_in(body(f))), recursive = FALSE)
  calls <- Filter(function(call) call$name == ".Call" && is.name(call$code[[2L]]), calls)
  expect_gt(length(calls), 100)
  fits <- vapply(calls, function(call) length(call$code) - 2L == get(call$code[[2L]], weft)$numParameters, NA)
  expect_identical(lapply(unname(calls[!fits]), `[[`, "code"), list())
})

test_that("a call of what does not exist is found", {
  lines <- c("weft:::no_such(1)", "mi_rank(x, y, bin = 3)", "mi_rank(x, bins = 3)")
  file <- withr::local_tempfile(fileext = ".R", lines = lines)
  expect_identical(sub("^[^:]*: ", "", wrong_calls_of_weft(file)),
                   c("no weft:::no_such()", "mi_rank() has no argument `bin`"))
})
