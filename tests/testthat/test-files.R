# What reads and writes files of users, from the tables of helper-files.R: only regular files are read and replaced, and
# a file that cannot be written whole leaves the old one as it was.

skip_on_os("windows")

test_that("what is no regular file is not read, whatever reads it", {
  folder <- withr::local_tempdir()
  readers <- Filter(Negate(is.null), file_readers())
  for (name in names(readers)) {
    reader <- readers[[name]]
    for (kind in c(odd_kinds, "nothing", "link to nothing")) {
      path <- file.path(folder, paste0(name, match(kind, odd_kinds, 0), kind == "nothing", reader$ending))
      there <- switch(kind, nothing = TRUE, "link to nothing" = file.symlink(file.path(folder, "none"), path),
                      if (kind == "system link") FALSE else put_odd(kind, path))
      # folders that are imported hold other files
      if (!isTRUE(there) || kind == "folder" && name %in% c("market", "h5ad", "tenx_matrix")) next
      error <- tryCatch(reader$read(path), error = identity)
      expect_s3_class(error, "weft_error_input")
      said <- switch(kind, pipe = , "link to a pipe" = "is a pipe, not a regular", zero = ,
                     "link to a device" = "is a device, not a regular", folder = "is a folder",
                     "link to itself" = "cannot be read", "does not exist|There is no")
      if (!grepl("^(tenx|zarr)", name)) expect_match(conditionMessage(error), said, info = paste(name, kind))
    }
  }
})

test_that("regular files and links to them are read, whatever reads them", {
  folder <- withr::local_tempdir()
  readers <- Filter(Negate(is.null), file_readers())
  for (name in names(readers)) {
    path <- file.path(folder, paste0(name, readers[[name]]$ending))
    suppressMessages(readers[[name]]$make(path))
    expect_identical(file_end(suppressWarnings(readers[[name]]$read(path))), "done", info = name)
    link <- file.path(folder, paste0(name, "-link", readers[[name]]$ending))
    file.symlink(path, link)
    expect_identical(file_end(suppressWarnings(readers[[name]]$read(link))), "done", info = name)
  }
})

test_that("a file that may not be read says so, whatever reads it", {
  skip_if(file.access(test_path("test-files.R"), 4) == 0 && Sys.info()[["effective_user"]] == "root",
          "root may read everything")
  folder <- withr::local_tempdir()
  readers <- Filter(Negate(is.null), file_readers())
  for (name in names(readers)) {
    path <- file.path(folder, paste0(name, readers[[name]]$ending))
    suppressMessages(readers[[name]]$make(path))
    Sys.chmod(path, "000")
    expect_error(readers[[name]]$read(path), "cannot be read: ", class = "weft_error_input", info = name)
  }
})

test_that("a compressed file that was cut short says so", {
  folder <- withr::local_tempdir()
  whole <- tempfile()
  texts <- list(gmt = sprintf("set %d\tno\tgene %.9f", 1:4000, sin(1:4000)),
                mtx = c("%%MatrixMarket matrix coordinate real general", "4000 1 4000",
                        sprintf("%d 1 %.9f", 1:4000, sin(1:4000))),
                bag = c(1, 4000, 4000, sprintf("1 %d %d", 1:4000, 1:4000)))
  read <- list(gmt = read_gmt, mtx = function(path) weft_import(path, tempfile(), run = weft_run(progress = FALSE)),
               bag = read_bag_of_words)
  for (kind in names(texts)) {
    to <- gzfile(whole, "wb")
    writeLines(texts[[kind]], to)
    close(to)
    bytes <- readBin(whole, "raw", 1e6)
    path <- file.path(folder, paste0("cut.", kind, ".gz"))
    writeBin(bytes[seq_len(length(bytes) - 500)], path)
    expect_error(read[[kind]](path), "could not be read to its end|ends after|three lines of sizes",
                 class = "weft_error_input", info = kind)
  }
})

test_that("only a regular file is replaced, whoever writes", {
  folder <- withr::local_tempdir()
  writers <- file_writers()
  for (name in names(writers)) {
    for (kind in odd_kinds) {
      path <- file.path(folder, paste0(name, match(kind, odd_kinds), ".html"))
      if (!isTRUE(put_odd(kind, path))) next
      before <- kind_at(path)
      expect_identical(file_end(writers[[name]](path)), "refused", info = paste(name, kind))
      expect_identical(kind_at(path), before, info = paste(name, kind))
    }
  }
  expect_identical(kind_at("/dev/zero"), "character special file")
  expect_identical(list.files(folder, "part$", all.files = TRUE), character())
})

test_that("a file is replaced in one step, with its rights, and a link itself, whoever writes", {
  folder <- withr::local_tempdir()
  writers <- file_writers()
  for (name in names(writers)) {
    path <- file.path(folder, name)
    writeLines("old", path)
    Sys.chmod(path, "600")
    held <- file(path, "r") # the old file itself stays, for whoever has it open
    expect_identical(file_end(writers[[name]](path)), "done", info = name)
    expect_identical(readLines(held), "old")
    close(held)
    expect_gt(file.size(path), 4096)
    expect_identical(format(file.mode(path)), "600", info = name)
    precious <- file.path(folder, paste0(name, "-precious"))
    for (leads in c(precious, file.path(folder, "nowhere"))) {
      writeLines("precious", precious)
      link <- file.path(folder, paste0(name, "-link"))
      unlink(link)
      file.symlink(leads, link)
      expect_identical(file_end(writers[[name]](link)), "done", info = name)
      expect_identical(Sys.readlink(link), "", info = name)
      expect_identical(readLines(precious), "precious", info = name)
    }
  }
  expect_false(file.exists(file.path(folder, "nowhere")))
  expect_identical(list.files(folder, "part$", all.files = TRUE), character())
})

test_that("a folder or file that may not be written is refused", {
  writers <- file_writers()
  folder <- withr::local_tempdir()
  for (name in names(writers)) {
    expect_identical(file_end(writers[[name]](file.path(folder, "none", "x"))), "refused", info = name)
    expect_identical(file_end(writers[[name]]("/proc/x")), "refused", info = name)
  }
  skip_if(Sys.info()[["effective_user"]] == "root", "root may write everything")
  for (name in names(writers)) {
    path <- file.path(folder, name)
    writeLines("old", path)
    Sys.chmod(path, "400")
    expect_identical(file_end(writers[[name]](path)), "refused", info = name)
    expect_identical(readLines(path), "old", info = name)
  }
})

# A limit on the size of files fails as a full disk does: in the middle of writing.
test_that("what was there stays whole where a new file does not fit, whoever writes", {
  folder <- withr::local_tempdir()
  script <- file.path(folder, "script.R")
  writeLines(c("suppressPackageStartupMessages(library(weft))",
               sprintf("source(%s)", deparse(normalizePath(test_path("helper-files.R")))),
               "writers <- file_writers()", "for (name in names(writers)) {",
               sprintf("  path <- file.path(%s, name)", deparse(folder)), "  writeLines('old', path)",
               "  cat(name, file_end(writers[[name]](path)), readLines(path, 1, warn = FALSE), '\\n')", "}"), script)
  said <- suppressWarnings(system2("sh", c("-c", shQuote(sprintf(
    "trap '' XFSZ; ulimit -f 8; exec %s --no-init-file %s", shQuote(file.path(R.home("bin"), "Rscript")),
    shQuote(script)))), stdout = TRUE, stderr = TRUE, env = paste0("R_LIBS=", shQuote(paste(.libPaths(),
                                                                                              collapse = ":")))))
  skip_if(any(grepl("ulimit", said)), "there is no limit on the size of files")
  said <- grep(" (done|refused) ", said, value = TRUE)
  expect_identical(trimws(said), paste(names(file_writers()), "refused old"))
  expect_identical(list.files(folder, "part$", all.files = TRUE), character())
})
