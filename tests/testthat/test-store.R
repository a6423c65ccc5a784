# Stores: what is written is what is read, whatever it came from.

test_that("what is read is what was written, in blocks of any size", {
  withr::local_seed(1)
  m <- some_counts(1500, 200)
  for (memory in c(2^20, 2^28)) {
    x <- as_store(m, memory = memory)
    expect_identical(dim(x), dim(m))
    expect_identical(dimnames(x), dimnames(m))
    expect_identical(methods::as(x, "dgCMatrix"), m)
    expect_identical(as.matrix(x), as.matrix(m))
    expect_length(store_blocks(x)$rows, if (memory == 2^20) 8L else 1L)
    rows <- sample(1500, 100, replace = TRUE)
    columns <- sample(200, 30)
    expect_equal(x[rows, columns], m[rows, columns])
    expect_equal(x[-(1:1400), c("gene7", "gene2")], m[-(1:1400), c("gene7", "gene2")])
    expect_equal(x[rep(c(TRUE, FALSE), 750), ], m[rep(c(TRUE, FALSE), 750), ])
    expect_equal(x[, 3, drop = TRUE], m[, 3])
    expect_identical(dim(x[integer(), ]), c(0L, 200L))
    expect_identical(Matrix::colSums(x), Matrix::colSums(m))
    expect_identical(Matrix::rowSums(x), Matrix::rowSums(m))
    expect_equal(Matrix::colMeans(x), Matrix::colMeans(m), tolerance = 1e-15)
    expect_equal(Matrix::rowMeans(x), Matrix::rowMeans(m), tolerance = 1e-15)
  }
  about <- summary(x)
  expect_identical(about$values, as.double(length(m@x)))
  expect_identical(about$range, range(m@x))
  expect_identical(about$empty_columns, sum(Matrix::colSums(m) == 0))
  expect_output(print(x), "weft_store.*1500 x 200")
  expect_output(print(about), "1 whole")
})

test_that("numbers of every kind keep their bits", {
  x <- list(
    counts = c(1, 2, 2^31, 2^32 - 1, 2^32), single = c(0.5, -3, 2^-149, 1e30 - 1e30 %% 2^80, -Inf, NaN),
    double = c(pi, 2^32 + 1, -1e-308, 5e-324, 1.7e308, NA), mixed = c(2^32 - 1, 0.5, 3),
    whole_and_fraction = c(16777217, 0.5), constant = rep(7, 5)
  )
  for (name in names(x)) {
    m <- matrix(0, 40, 7)
    m[seq(3, by = 11, length.out = length(x[[name]]))] <- x[[name]]
    got <- as.matrix(as_store(m))
    expect_identical(is.na(got) & !is.nan(got), is.na(m) & !is.nan(m), info = name)
    expect_identical(got, m, info = name)
  }
  expect_identical(as.matrix(as_store(matrix(c(TRUE, NA, FALSE, TRUE), 2))), matrix(c(1, NA, 0, 1), 2))
  expect_identical(as.matrix(as_store(matrix(c(-0, 0, 5L, NA), 2))), matrix(c(0, 0, 5, NA), 2))
  withr::local_seed(2)
  for (bits in c(0, 1, 7, 15, 16, 31, 32)) { # every value of a column beside the largest that so many bits hold
    m <- matrix(pmin(2^bits, floor(stats::runif(640) * 2^bits) + 1), 128)
    m[sample(640, 200)] <- 0
    expect_identical(as.matrix(as_store(m)), m, info = bits)
  }
})

test_that("sizes at the edges", {
  for (d in list(c(0, 0), c(0, 5), c(5, 0), c(1, 1), c(1, 300), c(300, 1))) {
    m <- matrix(as.double(seq_len(prod(d))), d[1], d[2])
    x <- as_store(m)
    expect_identical(as.matrix(x), m)
    expect_identical(Matrix::colSums(x), Matrix::colSums(m))
    expect_identical(Matrix::rowSums(x), Matrix::rowSums(m))
    expect_output(print(summary(x)), "weft_store")
  }
  tall <- Matrix::sparseMatrix(c(1, 70000, 200000), c(1, 2, 1), x = c(1, 2, 3), dims = c(200000, 2))
  x <- as_store(tall)
  expect_identical(store_blocks(x)$rows, c(65536, 65536, 65536, 3392))
  expect_identical(x[, ], tall)
  expect_identical(x[c(200000, 1), 1, drop = TRUE], c(3, 1))
  wide <- Matrix::sparseMatrix(rep(1:2, c(5000, 1)), c(seq_len(5000) * 9, 1), x = 1, dims = c(2, 50000))
  x <- as_store(wide, memory = 2^20 / 4 * 4) # a row of 5,000 values; at least 4,096 are room for one block
  expect_identical(x[, ], methods::as(wide, "dgCMatrix"))
})

test_that("one file whatever it came from", {
  withr::local_seed(3)
  m <- some_counts(1200, 150, 0.2)
  sum_of <- function(...) unname(tools::md5sum(store_file(as_store(..., memory = 2^20))))
  first <- sum_of(m)
  expect_identical(sum_of(Matrix::t(m), samples = "columns"), first)
  expect_identical(sum_of(as.matrix(m)), first)
  expect_identical(sum_of(as.data.frame(as.matrix(m))), first)
  expect_identical(sum_of(t(as.matrix(m)), samples = "columns"), first)
  expect_identical(sum_of(list(m[1:7, ], m[8:1100, ], m[1101:1200, ])), first)
  expect_identical(sum_of(list(Matrix::t(m[1:700, ]), Matrix::t(m[701:1200, ])), samples = "columns"), first)
  expect_identical(sum_of(methods::as(m, "TsparseMatrix")), first)
  binary <- methods::as(m > 1, "nMatrix")
  expect_identical(as_store(binary)[, ], methods::as(binary * 1, "dgCMatrix"))
  skip_if_not_installed("DelayedArray")
  expect_identical(sum_of(DelayedArray::DelayedArray(m)), first)
  expect_identical(sum_of(t(DelayedArray::DelayedArray(as.matrix(m))), samples = "columns"), first)
})

test_that("Matrix Market text of all kinds", {
  withr::local_seed(4)
  file <- withr::local_tempfile(fileext = ".mtx")
  put <- function(...) writeLines(c(...), file)
  m <- unname(as.matrix(some_counts(300, 80, 0.3)))
  lines_of <- function(m, at) sprintf("%d %d %g", at[, 1], at[, 2], m[at])
  head_of <- function(m) {
    c("%%MatrixMarket matrix coordinate real general", "% said by somebody", "",
      sprintf("%d %d %d", nrow(m), ncol(m), sum(m != 0)))
  }
  at <- which(m != 0, arr.ind = TRUE)
  head <- head_of(m)
  lines <- lines_of(m, at)
  for (order in list(order(at[, 1]), order(at[, 2]), sample(nrow(at)))) { # in order of samples, features, none
    put(head, lines[order])
    expect_identical(as.matrix(as_store(file, memory = 2^20)), m)
    expect_identical(as.matrix(as_store(file, samples = "columns", memory = 2^20)), t(m))
  }
  zipped <- withr::local_tempfile(fileext = ".mtx.gz")
  con <- gzfile(zipped, "w")
  writeLines(c(head, lines), con)
  close(con)
  expect_identical(as.matrix(as_store(zipped)), m)
  m <- m[1:60, 1:20]
  head <- head_of(m)
  lines <- lines_of(m, which(m != 0, arr.ind = TRUE))
  expect_identical(in_pieces(c(head, lines), 7, dim(m)), m) # lines that end in another piece
  expect_error(in_pieces(c(head, strrep("1", 600)), 7, dim(m)), "too long", class = "weft_error_input")
  for (comment in paste0(c("%", strrep(" ", 800), "\f %"), c(strrep("x", 3000), "", strrep("x", 3000)))) {
    for (piece in c(100, 1e6)) {
      expect_identical(in_pieces(c(head[1], comment, head[-1], lines), piece, dim(m)), m)
    }
  }
  for (piece in c(100, 1e6)) { # what a line may have does not depend on pieces
    expect_error(in_pieces(c(head, paste0(lines[1], strrep(" ", 600)), lines[-1]), piece, dim(m)), "too long",
                 class = "weft_error_input")
    expect_identical(in_pieces(c(head, paste0(strrep(" ", 600), lines[1]), lines[-1]), piece, dim(m)), m)
  }
  put("%%MatrixMarket matrix coordinate pattern general", "2 2 1", "2 1")
  expect_identical(as.matrix(as_store(file)), matrix(c(0, 1, 0, 0), 2))
  put("%%MatrixMarket matrix coordinate integer symmetric", "3 3 2", "2 2 5", "3 1 -4")
  expect_identical(as.matrix(as_store(file)), matrix(c(0, 0, -4, 0, 5, 0, -4, 0, 0), 3))
  put("%%MatrixMarket matrix coordinate real skew-symmetric", "2 2 1", "2 1 3e-5")
  expect_identical(as.matrix(as_store(file)), matrix(c(0, 3e-5, -3e-5, 0), 2))
  put("%%MatrixMarket matrix array real general", "2 2", "1.5", "0", "-.25", "1E+300")
  expect_identical(as.matrix(as_store(file)), matrix(c(1.5, 0, -0.25, 1e300), 2))
  put("%%MatrixMarket matrix coordinate real general", "2 2 4", "1 1 2", "2 2 0", "1 1 3", "2 1 -0.1")
  expect_identical(as.matrix(as_store(file)), matrix(c(5, -0.1, 0, 0), 2))
  numbers <- c("0.1", "1234567890123456789", "4.35", "-2.2250738585072014e-308", "123456.789e-3", "1e22", "+7.", "inf")
  put("%%MatrixMarket matrix array real general", "8 1", numbers)
  expect_identical(as.matrix(as_store(file))[, 1],
                   c(0.1, 1234567890123456789, 4.35, -2.2250738585072014e-308, 123.456789, 1e22, 7, Inf))
})

test_that("Matrix Market text that is wrong says where", {
  file <- withr::local_tempfile(fileext = ".mtx")
  to <- withr::local_tempfile()
  refused <- function(lines, regexp) {
    writeLines(lines, file)
    expect_error(weft_import(file, to), regexp, class = "weft_error_input")
    expect_false(file.exists(to))
  }
  head <- "%%MatrixMarket matrix coordinate real general"
  refused(character(), "ends before its sizes")
  refused("1 1 1", "must begin with")
  refused(sub("real", "complex", head), "cannot be read")
  refused(c(head, "2 2"), "Line 2 .* three whole numbers")
  refused(c(head, "2 2 x"), "three whole numbers")
  refused(c(head, "-2 2 1"), "three whole numbers")
  refused(c(head, "99999999999 2 1"), "2147483647")
  refused(c(head, "2 2 2", "1 1 1"), "after 1 of 2")
  refused(c(head, "2 2 1", "1 1 1", "2 2 2"), "Line 4 .* after the stated")
  refused(c(head, "2 2 1", "3 1 1"), "Line 3 .* outside")
  refused(c(head, "2 2 1", "0 1 1"), "outside")
  refused(c(head, "2 2 1", "1 18446744073709551617 1"), "must be a row, a column and a number")
  refused(c(head, "2 2 1", "1 1 one"), "must be a row, a column and a number")
  refused(c(head, "2 2 1", "1 1 0x10"), "must be a row, a column and a number")
  refused(c(head, "2 2 1", paste("1 1", strrep("1", 600))), "too long")
  refused(c(head, "2 2 99999999999999999", "1 1 1"), "ends after 1")
  refused("%%MatrixMarket matrix coordinate real hermitian", "cannot be read")
  expect_length(list.files(dirname(to), paste0(basename(to), ".*part"), all.files = TRUE), 0L)
})

test_that("a folder of 10x Genomics has cells in its columns, and tables", {
  folder <- withr::local_tempdir()
  withr::local_seed(5)
  m <- some_counts(30, 20)
  Matrix::writeMM(Matrix::t(m), file.path(folder, "matrix.mtx"))
  writeLines(rownames(m), file.path(folder, "barcodes.tsv"))
  expect_error(as_store(folder), "features.tsv", class = "weft_error_input")
  writeLines(paste(colnames(m), sprintf("S\u00e4%d", 1:20), "Gene Expression", sep = "\t"),
             file.path(folder, "features.tsv"), useBytes = TRUE)
  x <- as_store(folder)
  expect_identical(x[, ], m)
  expect_identical(store_data(x, "columns"),
                   data.frame(symbol = sprintf("S\u00e4%d", 1:20), type = "Gene Expression", row.names = colnames(m)))
  writeLines(rownames(m)[-1], file.path(folder, "barcodes.tsv"))
  expect_error(as_store(folder), "must have 30 lines", class = "weft_error_input")
})

test_that("an experiment brings its tables", {
  skip_if_not_installed("SummarizedExperiment")
  withr::local_seed(6)
  m <- some_counts(25, 12)
  cells <- S4Vectors::DataFrame(group = factor(rep(c("b", "a", NA), length.out = 25), c("b", "a")),
                                good = c(NA, rep(TRUE, 24)), depth = stats::rnorm(25), n = 1:25,
                                note = c(NA, rep("\u00fc", 24)), row.names = rownames(m))
  experiment <- SummarizedExperiment::SummarizedExperiment(list(counts = Matrix::t(m)), colData = cells)
  x <- as_store(experiment)
  expect_identical(x[, ], m)
  expect_identical(store_data(x), as.data.frame(cells))
  expect_identical(dim(store_data(x, "columns")), c(12L, 0L))
  expect_error(as_store(experiment, samples = "rows"), "must not be given", class = "weft_error_input")
})

test_that("a saved store opens its file again, and another file is no longer it", {
  withr::local_seed(7)
  m <- some_counts(20, 10)
  x <- as_store(m)
  saved <- unserialize(serialize(x, NULL))
  expect_identical(saved[, ], m)
  expect_identical(dimnames(saved), dimnames(m))
  weft_import(m * 2, store_file(x), overwrite = TRUE)
  expect_identical(x[, ], m) # the file that was opened is still there
  expect_error(unserialize(serialize(x, NULL))[, ], "has changed", class = "weft_error_input")
  unlink(store_file(x))
  expect_error(unserialize(serialize(x, NULL))[, ], "does not exist", class = "weft_error_input")
})

test_that("nothing is left of what was stopped or failed, and links are not followed", {
  skip_on_os("windows")
  folder <- withr::local_tempdir()
  withr::local_seed(8)
  m <- some_counts(3000, 100)
  path <- file.path(folder, "x.weft")
  expect_stops(function(progress) weft_import(m, path, run = weft_run(memory = 2^20, progress = progress)), "an import")
  expect_identical(list.files(folder, all.files = TRUE, no.. = TRUE), character())
  expect_identical(list.files(folder, all.files = TRUE, no.. = TRUE), character())
  other <- file.path(folder, "precious")
  writeLines("precious", other)
  file.symlink(other, path)
  expect_error(weft_import(m, path), "already", class = "weft_error_input")
  x <- weft_import(m, path, overwrite = TRUE)
  expect_identical(readLines(other), "precious")
  expect_identical(Sys.readlink(path), "")
  expect_identical(x[, ], m)
  expect_error(weft_import(m, file.path(folder, "none", "x")), "must exist", class = "weft_error_input")
  expect_error(weft_import(m, folder), "is a folder", class = "weft_error_input")
})

test_that("what cannot be imported or asked for is an error that says so", {
  x <- as_store(matrix(1:6, 2, dimnames = list(NULL, c("a", "b", "c"))))
  to <- withr::local_tempfile()
  for (bad in list(NULL, letters, list(1), matrix("a"), 1:3, mean)) {
    expect_error(weft_import(bad, to), class = "weft_error_input")
  }
  expect_error(weft_import("no such file", to), "does not exist", class = "weft_error_input")
  expect_error(weft_import(store_file(x), to), "known format", class = "weft_error_input")
  expect_error(weft_import(x, to), "already be a store", class = "weft_error_input")
  expect_error(weft_import(matrix(1), to, samples = "both"), class = "weft_error_input")
  expect_error(weft_import(matrix(1), to, run = weft_run(memory = 10)), class = "weft_error_input")
  expect_error(weft_import(matrix(1)), class = "weft_error_input")
  expect_error(weft_store(3), class = "weft_error_input")
  expect_error(weft_store(tempdir()), "folder", class = "weft_error_input")
  for (bad in list(4, -4, 1.5, NA, "d", TRUE, c(-1, 1), factor("a"), list(1))) {
    expect_error(x[, bad], class = "weft_error_input", info = deparse(bad))
  }
  expect_error(x[1], "rows and columns", class = "weft_error_input")
  expect_error(store_data(1), class = "weft_error_input")
  for (part in c("n", "p", "crc", "live", "recipe", "values")) {
    y <- unclass(x)
    y[[part]] <- "wrong"
    expect_error(dim(structure(y, class = "weft_store")[, ]), class = "weft_error_input", info = part)
  }
  y <- unclass(x)
  y$recipe <- list(size = c(1, -1), log1p = TRUE)
  expect_error(Matrix::colSums(structure(y, class = "weft_store")), class = "weft_error_input")
  y <- unclass(x)
  y$live <- list2env(list(pointer = .Call(weft:::C_weft_store_market)))
  expect_identical(dim(structure(y, class = "weft_store")[, ]), c(2L, 3L)) # another handle is not the file
})

test_that("threads change nothing, and what failed for lack of memory leaves nothing behind", {
  withr::local_seed(9)
  m <- some_counts(4000, 300)
  read <- function(x, threads) {
    withr::local_options(weft.threads = threads)
    list(x[, ], x[seq(1, 4000, 3), 5:200], Matrix::rowSums(x), Matrix::colSums(x))
  }
  for (memory in c(2^28, 2^24)) { # one block, and several of which two are decoded at once
    whole <- as_store(m * pi, memory = memory)
    stores <- list(whole, store_normalise(whole), store_normalise(as_store(m, memory = memory)))
    one <- lapply(stores, read, 1)
    before <- .Call(weft:::C_weft_woken)
    expect_identical(lapply(stores, read, 2), one)
    # a machine of one processor has no other thread
    two <- withr::with_options(list(weft.threads = 2), weft:::threads_for(NULL)) == 2L
    if (two) expect_gt(.Call(weft:::C_weft_woken), before)
  }
  expect_survives_failures(list(
    import = function() {
      x <- weft_import(Matrix::sparseMatrix(c(3, 9, 9), c(1, 2, 1), x = 1:3), tempfile(), run = weft_run(memory = 2^20))
      out <- list(x[, ], x[2:9, 1], summary(x)$values)
      unlink(unclass(x)$path)
      out
    },
    text = function() {
      file <- tempfile(fileext = ".mtx")
      on.exit(unlink(file))
      writeLines(c("%%MatrixMarket matrix coordinate real symmetric", "70000 70000 3", "70000 1 2", "5 5 1", "9 2 1"),
                 file)
      x <- weft_import(file, paste0(file, ".weft"), overwrite = TRUE, run = weft_run(memory = 2^20))
      on.exit(unlink(paste0(file, ".weft")), add = TRUE)
      sum(x[c(1, 70000), ])
    }), most = 40)
})

test_that("bytes are what the page on the format says, and take about their entropy", {
  withr::local_seed(11)
  m <- some_counts(900, 300, 0.05)
  m[c(5, 70, 900), 7] <- c(1e6, 2^32, 2^31) # large numbers among small ones
  m[, 9] <- 1
  x <- as_store(m)
  expect_identical(x[, ], m)
  got <- block_entries(store_file(x))
  expect_identical(as.integer(got$row - 1), m@i)
  expect_equal(diff(c(0, cumsum(tabulate(got$column, 300)))), diff(m@p))
  expect_identical(got$value, m@x)
  dense <- Matrix::rsparsematrix(20000, 40, 0.1, rand.x = function(k) stats::rgeom(k, 0.5) + 1)
  bits <- 8 * sum(store_blocks(as_store(dense))$block_bytes) / length(dense@x)
  floor <- -(0.1 * log2(0.1) + 0.9 * log2(0.9)) / 0.1 + 2
  expect_lt(bits, floor + 0.6) # by the width of the largest of 128: 9.5, the floor being 6.7
})

test_that("stores of version 1 are read", {
  i <- rep(1:300, 4)
  j <- (i * rep(c(1, 3, 7, 11), each = 300)) %% 13 + 1
  m <- Matrix::sparseMatrix(i = i, j = j, x = (i * j) %% 19 + 1 + 100000 * (i == 17), dims = c(300, 13))
  m[200, 3] <- 1
  file <- test_path("store-version-1.weft")
  expect_identical(get_number(bytes_of(file), 8, 8), 1)
  x <- weft_store(file)
  expect_identical(x[, ], m)
  expect_identical(x[c(3, 200), c(2, 3, 9)], m[c(3, 200), c(2, 3, 9)])
  got <- block_entries(file)
  expect_identical(got$value, m@x)
  bytes <- put_number(bytes_of(file), 8, 3, 8)
  later <- withr::local_tempfile()
  writeBin(with_checksums(bytes), later)
  expect_error(weft_store(later), "newer format", class = "weft_error_input")
})
