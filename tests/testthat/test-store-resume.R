# Imports that are killed, and go on.

skip_on_os("windows")

# What a killed import leaves: the file in the making, and the list of its blocks.
left_by <- function(path) {
  parts <- file.path(dirname(path), paste0(".", basename(path), ".resume.part", c("", ".list")))
  stats::setNames(parts, c("part", "list"))
}

# How many rows the next call would find.
rows_there <- function(file, path, size) {
  key <- weft:::import_key(file, NULL, NULL)
  writer <- .Call(weft:::C_weft_store_begin, path, FALSE, size[1], size[2], 2^20, key, FALSE, weft:::run_control())
  on.exit(.Call(weft:::C_weft_store_abandon, writer))
  .Call(weft:::C_weft_store_resumed, writer)
}

kill_import <- function(file, path, at) {
  run_in_r(c("library(weft)", "options(weft.poll = 0)",
             sprintf("weft_import('%s', '%s', memory = 2^20, resume = TRUE,", file, path),
             "  progress = function(done, total)",
             sprintf("  if (done > %d) tools::pskill(Sys.getpid(), 9))", at)))
}

# Matrix Market has no names.
unname_side <- function(m) {
  dimnames(m) <- list(NULL, NULL)
  m
}

go_on <- function(file, path, ...) weft_import(file, path, memory = 2^20, resume = TRUE, progress = FALSE, ...)

test_that("an import that was killed goes on, from any format, to the same bytes", {
  folder <- withr::local_tempdir()
  withr::local_seed(1)
  m <- some_counts(5000, 50, 0.3)
  files <- cell_files(folder, m)
  files <- unique(ifelse(basename(dirname(files)) == "tenx", dirname(files), files))[-1L] # but plain.mtx
  for (file in files) {
    name <- basename(file)
    whole <- weft_import(file, file.path(folder, "whole.weft"), memory = 2^20, progress = FALSE, overwrite = TRUE)
    path <- file.path(folder, paste0(name, ".weft"))
    kill_import(file, path, 3000)
    expect_false(file.exists(path), info = name)
    expect_error(weft_store(left_by(path)[["part"]]), "never finished", class = "weft_error_input")
    there <- rows_there(file, path, dim(m))
    expect_gt(there, 2000)
    expect_lt(there, 5000)
    go_on(file, path)
    expect_identical(bytes_of(path), bytes_of(store_file(whole)), info = name)
    expect_identical(list.files(folder, "resume", all.files = TRUE), character())
  }
})

test_that("what is damaged or of another file is not gone on with", {
  folder <- withr::local_tempdir()
  withr::local_seed(2)
  m <- some_counts(5000, 50, 0.3)
  file <- file.path(folder, "m.mtx")
  Matrix::writeMM(Matrix::t(m), file)
  path <- file.path(folder, "m.weft")
  of_columns <- function(...) {
    weft_import(file, path, samples = "columns", memory = 2^20, resume = TRUE, progress = FALSE, ...)
  }
  stop_at <- function(row) {
    expect_error(withr::with_options(list(weft.poll = 0), weft_import(
      file, path, samples = "columns", memory = 2^20, resume = TRUE,
      progress = function(done, total) if (done > row) stop("enough")
    )), "enough")
  }
  there <- function() {
    key <- weft:::import_key(file, "columns", NULL)
    writer <- .Call(weft:::C_weft_store_begin, path, FALSE, 5000, 50, 2^20, key, FALSE, weft:::run_control())
    on.exit(.Call(weft:::C_weft_store_abandon, writer))
    .Call(weft:::C_weft_store_resumed, writer)
  }
  spoil <- function(which, at) {
    bytes <- bytes_of(left_by(path)[[which]])
    bytes[at] <- xor(bytes[at], as.raw(1))
    writeBin(bytes, left_by(path)[[which]])
  }
  stop_at(3000)
  whole <- there()
  expect_gt(whole, 2000)
  size <- file.size(left_by(path)[["part"]])
  spoil("part", size - 10) # in the last block
  rest <- there()
  expect_lt(rest, whole)
  expect_gt(rest, 0)
  expect_lt(file.size(left_by(path)[["part"]]), size)
  spoil("list", 48 + 2 * 48 + 5) # the third block's record
  expect_lt(there(), rest)
  expect_identical(of_columns()[, ], unname_side(m))
  unlink(path)
  stop_at(3000)
  spoil("list", 20) # its head
  expect_identical(there(), 0)
  stop_at(3000)
  changed <- Matrix::t(m)
  changed@x <- changed@x + 1
  Matrix::writeMM(changed, file)
  Sys.setFileTime(file, Sys.time() + 5)
  expect_identical(of_columns()[, ], unname_side(Matrix::t(changed)))
  expect_error(weft_import(m, file.path(folder, "n.weft"), resume = TRUE), "must name a file",
               class = "weft_error_input")
})

test_that("entries that come late are not lost when an import goes on", {
  folder <- withr::local_tempdir()
  withr::local_seed(3)
  m <- unname_side(some_counts(5000, 50, 0.3))
  entries <- Matrix::summary(m)
  entries <- entries[order(entries$i), ]
  late <- which(entries$i == 7)[1:2]
  entries <- entries[c(setdiff(seq_len(nrow(entries)), late), late), ] # two of row 7 end the file
  file <- file.path(folder, "m.mtx")
  writeLines(c("%%MatrixMarket matrix coordinate real general", paste(5000, 50, nrow(entries)),
               paste(entries$i, entries$j, entries$x)), file)
  path <- file.path(folder, "m.weft")
  kill_import(file, path, 3000)
  expect_gt(rows_there(file, path, dim(m)), 2000)
  expect_identical(go_on(file, path)[, ], m)
})

test_that("two imports do not write the same file", {
  folder <- withr::local_tempdir()
  withr::local_seed(4)
  file <- file.path(folder, "m.mtx")
  Matrix::writeMM(some_counts(5000, 50, 0.3), file)
  path <- file.path(folder, "m.weft")
  said <- NULL
  go_on_twice <- function(done, total) {
    if (!is.null(said)) return()
    said <<- run_in_r(c("library(weft)", sprintf(
      "tryCatch(weft_import('%s', '%s', memory = 2^20, resume = TRUE), error = function(e) cat(conditionMessage(e)))",
      file, path)))
  }
  x <- withr::with_options(list(weft.poll = 0), weft_import(file, path, memory = 2^20, resume = TRUE,
                                                            progress = go_on_twice))
  expect_match(paste(said, collapse = " "), "another import may be writing it")
  expect_identical(nrow(x), 5000L)
})
