# HDF5 files of AnnData, 10x Genomics and loom, made here as their programs make them.

skip_if_not_installed("rhdf5")

h5_file <- function(parts, ending = ".h5ad", envir = parent.frame()) {
  file <- withr::local_tempfile(fileext = ending, .local_envir = envir)
  rhdf5::h5createFile(file)
  for (name in names(parts)) {
    if (identical(parts[[name]], "group")) rhdf5::h5createGroup(file, name)
    else rhdf5::h5write(parts[[name]], file, name)
  }
  rhdf5::h5closeAll()
  file
}

h5_attributes <- function(file, object, values) {
  id <- rhdf5::H5Fopen(file)
  at <- rhdf5::H5Oopen(id, object)
  for (name in names(values)) rhdf5::h5writeAttribute(values[[name]], at, name)
  rhdf5::H5Oclose(at)
  rhdf5::H5Fclose(id)
  file
}

# Compressed rows or columns of a matrix as the parts of a group.
compressed <- function(m, by_row, group) {
  by <- if (by_row) Matrix::t(m) else m
  stats::setNames(list("group", by@x, by@i, by@p), c(group, paste0(group, c("/data", "/indices", "/indptr"))))
}

anndata_file <- function(m, by_row = TRUE, more = list(), shape = dim(m),
                         kind = if (by_row) "csr_matrix" else "csc_matrix", change = identity, envir = parent.frame()) {
  file <- h5_file(change(c(compressed(m, by_row, "X"), list(
    obs = "group", "obs/_index" = rownames(m), var = "group", "var/_index" = colnames(m)), more)), envir = envir)
  h5_attributes(file, "X", list("encoding-type" = kind, shape = shape))
  for (side in c("obs", "var")) {
    columns <- grep(sprintf("^%s/[^/]+$", side), names(more), value = TRUE)
    order <- if (length(columns)) list("column-order" = basename(columns))
    h5_attributes(file, side, c(list("_index" = "_index"), order))
  }
  file
}

withr::local_seed(1)
cells <- some_counts(400, 50, 0.2)
small <- some_counts(6, 4, 0.5)

test_that("compressed rows, compressed columns and dense matrices are one store", {
  files <- c(anndata_file(cells), anndata_file(cells, by_row = FALSE))
  dense <- h5_file(list(X = t(as.matrix(cells)), obs = "group", "obs/_index" = rownames(cells), var = "group",
                        "var/_index" = colnames(cells)))
  for (side in c("obs", "var")) h5_attributes(dense, side, list("_index" = "_index"))
  for (memory in c(2^20, 2^28)) {
    sums <- vapply(c(files, dense), function(f) unname(tools::md5sum(store_file(as_store(f, memory = memory)))), "")
    expect_identical(unname(sums), rep(unname(tools::md5sum(store_file(as_store(cells, memory = memory)))), 3))
  }
  expect_identical(as_store(files[1])[, ], cells)
})

test_that("tables come along: numbers, texts, categories and what is missing", {
  file <- anndata_file(small, more = list(
    "obs/n" = 1:6, "obs/depth" = (1:6) / 3, "obs/note" = letters[1:6], "obs/group" = "group",
    "obs/group/codes" = c(0L, 1L, -1L, 1L, 0L, 0L), "obs/group/categories" = c("b", "a"), "obs/maybe" = "group",
    "obs/maybe/values" = 1:6, "obs/maybe/mask" = c(0L, 1L, 0L, 0L, 0L, 0L), "obs/odd" = "group",
    "layers" = "group", "layers/more" = t(as.matrix(small) * 2)))
  x <- as_store(file)
  expect_identical(store_data(x)[c("depth", "group", "maybe", "n", "note")], data.frame(
    depth = (1:6) / 3, group = factor(c("b", "a", NA, "a", "b", "b"), c("b", "a")), maybe = c(1L, NA, 3:6), n = 1:6,
    note = letters[1:6], row.names = rownames(small)))
  expect_identical(as.matrix(as_store(file, layer = "more")), as.matrix(small) * 2)
  expect_error(as_store(file, layer = "none"), "`X`, `more`", class = "weft_error_input")
  expect_error(as_store(file, layer = 3), "must be the name of", class = "weft_error_input")
  expect_error(as_store(file, samples = "rows"), "`samples` must not be given", class = "weft_error_input")
  expect_error(as_store(small, layer = "X"), "`layer` must only be given", class = "weft_error_input")
})

test_that("10x Genomics' and loom's files have cells in their columns", {
  parts <- compressed(small, TRUE, "matrix")
  tenx <- h5_file(c(parts, list("matrix/shape" = rev(dim(small)), "matrix/barcodes" = rownames(small),
                                "matrix/features" = "group", "matrix/features/id" = colnames(small),
                                "matrix/features/name" = letters[1:4])), ".h5")
  x <- as_store(tenx)
  expect_identical(x[, ], small)
  expect_identical(store_data(x, "columns"), data.frame(symbol = letters[1:4], row.names = colnames(small)))
  loom <- h5_file(list(matrix = as.matrix(small), row_attrs = "group", "row_attrs/Gene" = colnames(small),
                       col_attrs = "group", "col_attrs/CellID" = rownames(small)), ".loom")
  expect_identical(as_store(loom)[, ], small)
})

test_that("numbers of one byte are numbers", {
  part <- small
  part@x <- pmin(part@x, 200)
  file <- anndata_file(part, change = function(parts) parts[names(parts) != "X/data"])
  rhdf5::h5createDataset(file, "X/data", length(part@x), H5type = "H5T_STD_U8LE")
  rhdf5::h5write(as.integer(Matrix::t(part)@x), file, "X/data") # row after row
  rhdf5::h5closeAll()
  expect_identical(as_store(file)[, ], part)
})

# The same file with values of another type.
typed_file <- function(m, type, envir = parent.frame()) {
  file <- anndata_file(m, change = function(parts) parts[names(parts) != "X/data"], envir = envir)
  values <- Matrix::t(m)@x # row after row
  rhdf5::h5createDataset(file, "X/data", length(values), H5type = type)
  rhdf5::h5write(if (grepl("I64|U32", type)) as.double(values) else values, file, "X/data")
  rhdf5::h5closeAll()
  file
}

test_that("rows of any type, many blocks and long rows make the bytes that the same matrix in memory makes", {
  sum_of <- function(x, ...) unname(tools::md5sum(store_file(as_store(x, memory = 2^20, ...))))
  many <- some_counts(600, 200, 0.2) # some blocks of 4,096 values
  by <- function(f) {
    many@x <- f(many@x)
    many
  }
  long <- rbind(some_counts(3, 6000, 0.3), some_counts(2, 6000, 0.9), some_counts(30, 6000, 0.01))
  rownames(long) <- paste0("c", seq_len(nrow(long)))
  cases <- list(
    list(many, "H5T_NATIVE_FLOAT"), list(many, "H5T_NATIVE_INT16"), list(many, "H5T_STD_U32LE"),
    list(many, "H5T_STD_I64LE"), list(many, "H5T_NATIVE_DOUBLE"), list(long, "H5T_NATIVE_FLOAT"),
    list(by(function(x) 70000 + x), "H5T_NATIVE_INT32"), list(by(function(x) x - 2.5), "H5T_NATIVE_FLOAT"),
    list(by(function(x) x / 7), "H5T_NATIVE_DOUBLE"), list(by(function(x) 2^25 + 4 * x), "H5T_NATIVE_FLOAT"),
    list(by(function(x) ifelse(seq_along(x) == 9000, NaN, x)), "H5T_NATIVE_FLOAT"))
  for (case in cases) {
    file <- typed_file(case[[1L]], case[[2L]])
    layer <- if (any(case[[1L]]@x < 0, na.rm = TRUE)) "X"
    expect_identical(sum_of(file, layer = layer), sum_of(case[[1L]]), label = case[[2L]])
    expect_identical(as_store(file, memory = 2^20, layer = layer)[, ], case[[1L]])
  }
})

# The same with rows that lie in the file as `how` says: whole, one after another, or in chunks of 1,024 numbers, which
# are plain, deflated, or shuffled and deflated.
laid_out <- function(m, how, values = "H5T_NATIVE_FLOAT", indices = "H5T_NATIVE_INT32", envir = parent.frame()) {
  file <- anndata_file(m, change = function(parts) parts[!names(parts) %in% c("X/data", "X/indices")], envir = envir)
  put <- function(name, x, type) {
    rhdf5::h5createDataset(file, name, length(x), H5type = type, chunk = if (how != "whole") 1024,
                           level = if (how %in% c("deflated", "shuffled")) 4 else 0, shuffle = how == "shuffled")
    rhdf5::h5write(if (grepl("64|UINT32", type)) as.double(x) else x, file, name)
  }
  rows <- Matrix::t(m)
  put("X/data", rows@x, values)
  put("X/indices", rows@i, indices)
  rhdf5::h5closeAll()
  file
}

# By which way a child hands over some of a file's rows: 5 numbers say where they lie, 2 that their chunks were handed
# over, 1 that the child has read them.
way_of <- function(file, from, count) {
  shared <- .Call(weft:::C_weft_store_shared, 4096, 2, file)
  way <- NULL
  weft:::file_stream(file, function(file, send) {
    send(weft:::shared_pieces(file, "X", shared, c(1, 4096))(from, count)$how)
  }, function(how) way <<- length(how))
  way
}

test_that("however rows lie in the file, they make the same bytes, with any instructions and number of threads", {
  many <- some_counts(700, 300, 0.2)
  right <- unname(tools::md5sum(store_file(as_store(many, memory = 2^20))))
  inflates <- startsWith(weft:::read_build()$inflating, "yes")
  types <- c("NATIVE_INT8", "NATIVE_UINT8", "NATIVE_INT16", "NATIVE_UINT16", "NATIVE_INT32", "NATIVE_UINT32",
             "NATIVE_INT64", "NATIVE_UINT64", "NATIVE_FLOAT", "NATIVE_DOUBLE", "STD_I32BE")
  columns <- c(types[3:8], rep("NATIVE_INT64", 5)) # there are more than 255
  for (how in c("whole", "chunks", "deflated", "shuffled")) {
    for (k in seq_along(types)) {
      file <- laid_out(many, how, paste0("H5T_", types[k]), paste0("H5T_", columns[k]))
      sum <- unname(tools::md5sum(store_file(as_store(file, memory = 2^20))))
      expect_identical(sum, right, label = paste(how, types[k]))
    }
    file <- laid_out(many, how)
    if (weft:::can_fork()) {
      expected <- c(whole = 5L, chunks = 1L)[how]
      if (is.na(expected)) expected <- if (inflates) 2L else 1L
      expect_identical(way_of(file, 1000, 3000), unname(expected))
      expect_identical(way_of(laid_out(many, how, "H5T_IEEE_F32BE"), 1000, 3000), 1L) # not of this machine's order
    }
    for (level in simd_levels()) {
      for (threads in 1:2) {
        withr::local_options(weft.threads = threads)
        sum <- with_simd_level(level, unname(tools::md5sum(store_file(as_store(file, memory = 2^20)))))
        expect_identical(sum, right, label = paste(how, level, threads))
      }
    }
  }
})

test_that("chunks that were damaged are errors, and so is what lies beyond a file's end", {
  many <- some_counts(700, 300, 0.2)
  right <- as.matrix(many)
  file <- laid_out(many, "deflated")
  whole <- bytes_of(file)
  to <- withr::local_tempfile()
  ends <- vapply(seq(0.3, 0.9, length.out = 30), function(part) {
    at <- round(part * length(whole))
    writeBin(replace(whole, at, xor(whole[at], as.raw(16))), file)
    tryCatch(identical(as.matrix(weft_import(file, to, overwrite = TRUE, run = weft_run(memory = 2^20))), right),
             weft_error_input = function(e) NA)
  }, NA)
  expect_gt(sum(is.na(ends)), 20) # a chunk's checksum tells
  expect_true(all(ends, na.rm = TRUE))

  control <- weft:::run_control("cpu", NULL, FALSE, NULL, "Importing")
  shared <- .Call(weft:::C_weft_store_shared, 4096, 2, laid_out(many, "whole"))
  skip_if(is.null(shared))
  blocks <- function(...) {
    writer <- .Call(weft:::C_weft_store_begin, to, TRUE, 2, 5, 2^20, control)
    on.exit(.Call(weft:::C_weft_store_abandon, writer))
    .Call(weft:::C_weft_store_blocks, writer, shared, list(list(0, c(0, 3, 3000), 1, c(...))), control)
  }
  expect_error(blocks(1, 4, 0, 8, 1e12), "beyond its end", class = "weft_error_input")
  expect_error(blocks(1, 4, 2^52, 8, 0), "beyond its end", class = "weft_error_input")
  for (wrong in list(c(4, -1, 8, 0), c(99, 0, 8, 0), c(4, 0, -1, 0), c(4, NaN, 8, 0))) {
    expect_error(blocks(1, wrong), class = "weft_error_internal")
  }
  expect_error(blocks(3), class = "weft_error_internal")
  expect_error(blocks(1, 1), class = "weft_error") # a slot in which there are no chunks
})

test_that("rows with zeros, with a place twice and in any order are put right", {
  rows <- Matrix::t(some_counts(600, 200, 0.2))
  columns <- rep(seq_len(600), diff(rows@p))
  spoilt <- list(zeros = rows, twice = rows, unordered = rows)
  spoilt$zeros@x[seq(1, length(rows@x), 50)] <- 0
  for (j in which(diff(rows@p) > 3)) {
    at <- rows@p[j] + seq_len(diff(rows@p)[j])
    spoilt$twice@i[at[2L]] <- rows@i[at[1L]]
    spoilt$unordered@i[at] <- rev(rows@i[at])
  }
  for (how in names(spoilt)) {
    x <- spoilt[[how]]
    right <- Matrix::sparseMatrix(i = columns, j = x@i + 1L, x = x@x, dims = c(600, 200),
                                  dimnames = rev(dimnames(rows)))
    file <- anndata_file(Matrix::t(rows), change = function(parts) {
      parts[["X/data"]] <- x@x
      parts[["X/indices"]] <- x@i
      parts
    })
    expect_identical(as.matrix(as_store(file, memory = 2^20)), as.matrix(right), label = how)
  }
})

test_that("files that lie are errors", {
  to <- withr::local_tempfile()
  refused <- function(file, regexp) {
    expect_error(weft_import(file, to), regexp, class = "weft_error_input")
    expect_identical(list.files(dirname(to), basename(to), all.files = TRUE), character())
  }
  with <- function(name, value) anndata_file(small, change = function(parts) {
    parts[[name]] <- value
    parts
  }, envir = parent.frame(2))
  count <- length(small@x)
  refused(with("X/indices", rep(99L, count)), "column 100 of 4")
  refused(with("X/indices", rep(-1L, count)), "column 0 of 4")
  refused(with("X/indices", 1:2), "of inconsistent length")
  refused(with("X/indptr", as.integer(c(0, 5, 3, 4, 5, 6, count))), "does not increase")
  refused(with("X/indptr", c(small@p[1:4], 1000L, 1000L, 1000L)), "does not increase|inconsistent")
  refused(with("X/data", rep("a", count)), "no numbers")
  refused(with("obs/_index", "only one"), "1 names instead of 6")
  refused(anndata_file(small, more = list("obs/short" = 1:2)), "2 values instead of 6")
  refused(anndata_file(small, shape = c(6, 2)), "4 names instead of 2")
  refused(anndata_file(small, shape = c(7, 4)), "of inconsistent length")
  refused(anndata_file(small, shape = c(-1, 4)), "shape")
  refused(anndata_file(small, kind = "coo"), "unsupported type")
  refused(anndata_file(small, more = list("obs/group" = "group", "obs/group/codes" = rep(7L, 6),
                                          "obs/group/categories" = "a")), "without a category")
  refused(h5_file(list(a = 1:3)), "AnnData")
  bytes <- withr::local_tempfile(fileext = ".h5ad", lines = "no HDF5 at all")
  refused(bytes, "must be an HDF5 file")
})

test_that("a crash of the HDF5 library is an error, and R lives", {
  skip_if_not(weft:::can_fork())
  file <- anndata_file(some_counts(20, 5, 0.3))
  crash <- function(file, ...) tools::pskill(Sys.getpid(), 11)
  expect_error(weft:::h5_apart(file, crash), "could not be read.*The HDF5 library crashed", class = "weft_error_input")
  expect_error(weft:::file_stream(file, crash, list), "library crashed", class = "weft_error_input")
  expect_identical(weft:::h5_apart(file, function(file) file$size("X/indptr")), 21)
})

test_that("children hand over values and errors, items in order, and end with their parent's work", {
  skip_if_not(weft:::can_fork())
  died <- function() stop("died")
  expect_identical(weft:::apart(function() list(1:3, NULL), died), list(1:3, NULL))
  expect_null(weft:::apart(function() NULL, died))
  expect_error(weft:::apart(function() weft:::abort_input("wrong"), died), "wrong", class = "weft_error_input")
  expect_error(weft:::apart(function() tools::pskill(Sys.getpid(), 9), died), "died")
  seen <- list()
  produce <- function(send) for (k in 1:6) if (k < 6) send(list(k, rnorm(k * 1e4))) else stop("the sixth")
  use <- function(item) seen[[length(seen) + 1L]] <<- c(item[[1L]], length(item[[2L]]))
  expect_error(weft:::stream_apart(produce, use, died), "the sixth")
  expect_identical(seen, lapply(1:5, function(k) c(k, k * 10000L)))
  halfway <- function(send) {
    send(list(1L, 1))
    tools::pskill(Sys.getpid(), 9)
  }
  expect_error(weft:::stream_apart(halfway, use, died), "died")
  expect_length(seen, 6L)
  expect_error(weft:::stream_apart(function(send) repeat send(1), function(item) stop("enough"), died), "enough")
})

# The layout before AnnData 0.7, as scanpy's own example pbmc68k_reduced has it.
older_file <- function(m, scaled, change = identity, envir = parent.frame()) {
  rows <- Matrix::t(m)
  file <- h5_file(change(list(
    X = t(scaled), "raw.X" = "group", "raw.X/data" = rows@x, "raw.X/indices" = rows@i, "raw.X/indptr" = rows@p,
    obs = data.frame(index = rownames(m), kind = rep_len(c(0L, 1L, -1L), nrow(m)), n = seq_len(nrow(m)),
                     share = seq_len(nrow(m)) / 7),
    var = data.frame(index = colnames(m), mean = seq_len(ncol(m)) / 2), "raw.var" = data.frame(index = colnames(m)),
    uns = "group", "uns/kind_categories" = c("B cell", "T cell"))), envir = envir)
  h5_attributes(file, "raw.X", list(h5sparse_format = "csr", h5sparse_shape = dim(m)))
}

test_that("the older layout of AnnData has names, tables and raw values", {
  m <- some_counts(30, 8, 0.4)
  scaled <- scale(as.matrix(m))
  file <- older_file(m, scaled)
  expect_warning(x <- as_store(file), "negative values.*raw values were imported", class = "weft_warning_import")
  expect_identical(x[, ], m)
  table <- store_data(x)
  expect_identical(names(table), c("kind", "n", "share"))
  expect_identical(as.character(table$kind), rep_len(c("B cell", "T cell", NA), 30))
  expect_equal(table$share, seq_len(30) / 7)
  expect_no_warning(y <- as_store(file, layer = "X"))
  expect_equal(as.matrix(y), scaled[, ], ignore_attr = "scaled:center")
  expect_equal(store_data(y, "columns")$mean, seq_len(8) / 2)
  expect_no_warning(expect_identical(as_store(file, layer = "raw")[, ], m))
  expect_no_warning(expect_equal(as.matrix(as_store(older_file(m, abs(scaled)))), abs(scaled[, ])))
})

test_that("older files without raw values or names are imported with a warning, damaged ones not at all", {
  m <- some_counts(30, 8, 0.4)
  scaled <- scale(as.matrix(m))
  whole <- function(change) suppressWarnings(as_store(older_file(m, scaled, change)))
  plain <- h5_file(list(X = t(scaled), obs = data.frame(index = rownames(m)), var = data.frame(index = colnames(m))))
  expect_warning(x <- as_store(plain), "no raw values. X was imported", class = "weft_warning_import")
  expect_equal(as.matrix(x), scaled[, ])
  nameless <- h5_file(list(X = t(abs(scaled)), obs = data.frame(index = rownames(m))))
  expect_warning(x <- as_store(nameless), "No names of genes", class = "weft_warning_import")
  expect_identical(rownames(x), rownames(m))
  expect_error(whole(function(parts) replace(parts, "obs", list(parts$obs[1:7, ]))), "7.* records instead of 30",
               class = "weft_error_input")
  stale <- whole(function(parts) replace(parts, "uns/kind_categories", list("only one")))
  expect_identical(store_data(stale)$kind, rep_len(c(0L, 1L, -1L), 30)) # numbers that these categories do not fit
})
