# Stores that are damaged, cut short, or made by somebody who means harm: an error of weft's own or the right numbers,
# never a crash. proofs/store-damage.R does the same for longer.

small_store <- function(envir = parent.frame()) {
  withr::local_seed(1)
  m <- some_counts(60, 12, 0.3)
  m[7, 3] <- 0.25
  experiment <- list(m[1:30, ], m[31:60, ])
  as_store(experiment, envir = envir)
}

test_that("a file cut short, or made longer, is an error", {
  x <- small_store()
  bytes <- bytes_of(store_file(x))
  file <- withr::local_tempfile()
  for (size in unique(c(0, 1, 63, 64, seq(65, length(bytes) - 1, length.out = 40) %/% 1))) {
    writeBin(bytes[seq_len(size)], file)
    expect_error(weft_store(file), class = "weft_error_input")
  }
  writeBin(c(bytes, as.raw(0)), file)
  expect_error(weft_store(file), "extended", class = "weft_error_input")
})

test_that("every byte that is changed is noticed", {
  x <- small_store()
  bytes <- bytes_of(store_file(x))
  file <- withr::local_tempfile()
  withr::local_seed(2)
  for (at in unique(c(1:64, sample(length(bytes), 100)))) {
    bad <- bytes
    bad[at] <- xor(bad[at], as.raw(2^sample(0:7, 1)))
    writeBin(bad, file)
    expect_identical(use_store(file), "input", info = at)
  }
})

test_that("a damaged block is named, and the others can be read", {
  withr::local_seed(3)
  m <- some_counts(1500, 200)
  x <- as_store(m, memory = 2^20)
  about <- store_blocks(x)
  bytes <- bytes_of(store_file(x))
  bytes[64 + about$block_bytes[1] + 40] <- as.raw(255 - as.integer(bytes[64 + about$block_bytes[1] + 40]))
  file <- withr::local_tempfile()
  writeBin(bytes, file)
  y <- weft_store(file)
  expect_identical(y[seq_len(about$rows[1]), ], m[seq_len(about$rows[1]), ])
  where <- sprintf("block 2 of %d \\(rows %.0f to %.0f\\)", length(about$rows), about$rows[1] + 1, sum(about$rows[1:2]))
  expect_error(y[, ], where, class = "weft_error_input")
  expect_error(Matrix::colSums(y), paste(where, "has a wrong checksum"), class = "weft_error_input")
})

test_that("numbers that lie are found out, whatever the checksums say", {
  x <- small_store()
  good <- use_store(store_file(x))
  bytes <- bytes_of(store_file(x))
  file <- withr::local_tempfile()
  withr::local_seed(4)
  directory <- get_number(bytes, 40, 8)
  block <- 64 + c(0:40, 60)
  places <- unique(c(8:55, block, directory + 0:150, sample(64:(length(bytes) - 1), 60)))
  for (at in places) {
    bad <- bytes
    bad[at + 1] <- as.raw(sample(setdiff(c(0:3, 32, 33, 127, 128, 255), as.integer(bad[at + 1])), 1))
    writeBin(with_checksums(bad), file)
    got <- use_store(file)
    expect_true(is.character(got) || is.list(got), info = at) # and R is still here
  }
  for (huge in c(2^31, 2^32, 2^53, 2^63)) for (at in c(16, 24, 32, 40, 48, directory, directory + 8, directory + 16 +
                                                       c(0, 8, 16, 24))) {
    writeBin(with_checksums(put_number(bytes, at, huge, if (at == directory + 40) 4 else 8)), file)
    expect_true(use_store(file)[[1L]] %in% c("input", "memory"), info = c(at, huge))
  }
  expect_identical(use_store(store_file(x)), good)
})

test_that("checksums are what the format says", {
  x <- small_store()
  expect_identical(crc32c(charToRaw("123456789")), 0xE3069283)
  bytes <- bytes_of(store_file(x))
  expect_identical(with_checksums(bytes), bytes)
  read <- use_store(store_file(x))
  for (level in simd_levels()) with_simd_level(level, { # by tables or by the processor's instruction
    expect_identical(use_store(store_file(x)), read, info = level)
    expect_identical(bytes_of(store_file(small_store())), bytes, info = level)
  })
})

test_that("an import that was killed leaves nothing that opens", {
  skip_on_os("windows")
  folder <- withr::local_tempdir()
  path <- file.path(folder, "x.weft")
  run_in_r(c("library(weft)", "m <- Matrix::rsparsematrix(5000, 100, 0.2)", "options(weft.poll = 0)",
             sprintf("weft_import(m, '%s', run = weft_run(memory = 2^20, progress = function(done, total)", path),
             "  if (done > 2500) tools::pskill(Sys.getpid(), 9)))"))
  left <- list.files(folder, all.files = TRUE, no.. = TRUE, full.names = TRUE)
  expect_length(left, 1L)
  expect_match(left, "\\.part$")
  expect_gt(file.size(left), 1000)
  expect_error(weft_store(left), "not finished", class = "weft_error_input")
})

test_that("damaged files of other formats are errors of weft's own, and leave nothing behind", {
  folder <- withr::local_tempdir()
  withr::local_seed(6)
  files <- cell_files(folder)
  to <- file.path(folder, "out.weft")
  for (file in rep(files, each = 4)) {
    expect_true(import_spoilt(file, to) %in% c("result", "input", "memory"), info = basename(file))
  }
  expect_identical(list.files(folder, "part$", all.files = TRUE), character())
  gz <- file.path(folder, "tenx", "matrix.mtx.gz")
  bytes <- bytes_of(gz)
  bytes[31] <- xor(bytes[31], as.raw(255))
  writeBin(bytes, gz)
  expect_error(weft_import(dirname(gz), to, overwrite = TRUE), "could not be read|Matrix Market",
               class = "weft_error_input")
})
