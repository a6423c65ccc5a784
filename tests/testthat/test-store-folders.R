# Folders of Zarr and BPCells, which tools/make-folders.py wrote with anndata, zarr and bpcells: the same stores as from
# .h5ad files of the same data, every codec, damaged folders, and JSON.

folder <- withr::local_tempdir()
utils::untar(test_path("folders.tgz"), exdir = folder)
at <- function(...) file.path(folder, ...)
quiet <- weft_run(progress = FALSE)

planted <- function(modulo = 5, most = 5) {
  out <- outer(0:39, 0:12, function(i, j) ifelse((i * 7 + j * 13) %% modulo == 0, 1 + (i * j) %% most, 0))
  dimnames(out) <- list(sprintf("cell%d", 0:39), sprintf("gene%d", 0:12))
  out
}

test_that("csr, csc and dense folders of both versions hold what AnnData was given", {
  k <- 0:39
  for (name in paste0(rep(c("csr", "csc", "dense"), each = 2), c("_2", "_3"), ".zarr")) {
    x <- as_store(at(name))
    expect_identical(as.matrix(x), planted(), info = name)
    obs <- store_data(x)
    expect_equal(obs$whole, k, info = name)
    expect_identical(obs$real, k / 7)
    expect_identical(obs$flag, k %% 3 == 0)
    expect_identical(obs$kind, factor(c("b", "a", "c")[k %% 3 + 1], c("c", "b", "a")))
    expect_identical(obs$gaps, factor(ifelse(k %% 4 == 0, NA, "only"), "only"))
    expect_equal(obs$maybe, ifelse(k %% 5 == 0, NA, k))
    expect_equal(store_data(x, "columns"), data.frame(size = 0:12 * 10, row.names = sprintf("gene%d", 0:12)))
  }
})

test_that("a folder gives the bytes of the store that the .h5ad file gives", {
  skip_if_not_installed("rhdf5")
  sum_of <- function(path, ...) unname(tools::md5sum(store_file(as_store(path, ...))))
  for (layout in c("csr", "csc", "dense")) {
    sums <- vapply(at(paste0(layout, c(".h5ad", "_2.zarr", "_3.zarr"))), sum_of, "")
    expect_identical(unname(sums), rep(sums[[1L]], 3), info = layout)
    expect_identical(sum_of(at(paste0(layout, "_3.zarr")), memory = 2^20), sums[[1L]])
  }
})

test_that("every codec, type, order and absent chunk is read", {
  k <- 0:2499
  values <- as.integer((k * k) %/% 3) %% 7L * (k %% 11 > 3)
  grid <- matrix(0:76, 7) # R's order of dimensions
  file <- weft:::zarr_file(at("codecs_2.zarr"))
  for (name in file$members("")) expect_true(file$has(name))
  vectors <- grep("grid|columns|absent", list.files(at("codecs_2.zarr")), value = TRUE, invert = TRUE)
  expect_gte(length(vectors), 19L)
  for (name in vectors) {
    expect_equal(file$read(name), values, info = name)
    expect_equal(file$read(name, 990, 1020), values[990:2009], info = name) # of three chunks
  }
  for (name in c(list.files(at("codecs_2.zarr"), "^grid_"), "columns")) {
    expect_equal(file$read(name), grid, info = name)
    expect_equal(file$read(name, c(3, 4), c(2, 7)), grid[3:4, 4:10], info = name)
  }
  expect_lt(length(list.files(at("codecs_2.zarr", "absent"), "^[0-9]")), 9L)
  expect_equal(file$read("absent"), grid * (grid %% 40 == 5))
  file <- weft:::zarr_file(at("codecs_3.zarr"))
  for (name in c("blosc", "bits", "zstd", "gzip", "sum", "plain")) expect_equal(file$read(name), values, info = name)
  expect_equal(file$read("columns"), grid)
  expect_equal(file$read("shards"), values)
  expect_equal(file$read("shards", 990, 1020), values[990:2009])
  expect_equal(file$read("shards_grid"), grid * (grid %% 40 == 5))
  damaged <- at("codecs_3.zarr", "shards", "c", "1")
  bytes <- bytes_of(damaged)
  for (wrong in list(replace(bytes, length(bytes) - 20, as.raw(77)), utils::head(bytes, 60), raw())) {
    writeBin(wrong, damaged)
    expect_error(weft:::zarr_file(at("codecs_3.zarr"))$read("shards"), "checksum|ends at byte",
                 class = "weft_error_input")
  }
  writeBin(bytes, damaged)
})

test_that("chunks without a file have the fill value, and those of other sizes are errors", {
  folder <- withr::local_tempdir()
  put <- function(...) {
    about <- utils::modifyList(list(shape = "[5]", chunks = "[2]", dtype = "\"<f8\"", fill_value = "\"NaN\"",
                                    order = "\"C\"", filters = "null", compressor = "null", zarr_format = "2"),
                               list(...))
    unlink(file.path(folder, "x"), recursive = TRUE)
    dir.create(file.path(folder, "x"))
    writeLines(sprintf("{%s}", paste0("\"", names(about), "\": ", unlist(about), collapse = ", ")),
               file.path(folder, "x", ".zarray"))
    writeBin(c(1.5, 2.5), file.path(folder, "x", "1"))
    weft:::zarr_file(folder)
  }
  writeLines("{\"zarr_format\": 2}", file.path(folder, ".zgroup"))
  expect_identical(put()$read("x"), c(NaN, NaN, 1.5, 2.5, NaN))
  expect_identical(put(fill_value = "null")$read("x"), c(0, 0, 1.5, 2.5, 0))
  expect_identical(put(fill_value = "\"-Infinity\"")$read("x", 4, 2), c(2.5, -Inf))
  refused <- function(..., says) {
    expect_error(put(...)$read("x"), says, class = "weft_error_input")
  }
  refused(dtype = "\"<f4\"", says = "wrong size")
  refused(chunks = "[0]", says = "no shape")
  refused(chunks = "[2, 2]", says = "no shape")
  refused(shape = "[1e300]", says = "no shape")
  refused(shape = "[-1]", says = "no shape")
  refused(shape = "\"many\"", says = "no shape")
  refused(chunks = "[4e9]", says = "has chunks of")
  refused(shape = "[2e12]", says = "too large")
  refused(dtype = "\"<c16\"", says = "which weft cannot read")
  refused(compressor = "{\"id\": \"bz2\"}", says = "compressed by")
  refused(filters = "[{\"id\": \"delta\"}]", says = "has filters")
  refused(compressor = "{\"id\": \"blosc\"}", says = "size")
  refused(compressor = "{\"id\": \"zlib\"}", says = "cannot be decompressed")
  refused(compressor = "{\"id\": \"lz4\"}", says = "size")
  refused(dtype = "\"|O\"", filters = "[{\"id\": \"vlen-utf8\"}]", says = "does not")
  expect_error(put()$read("x", 5, 2), "fewer values", class = "weft_error_input")
})

test_that("a name cannot lead out of the folder", {
  inner <- at("csr_2.zarr")
  file <- weft:::zarr_file(file.path(inner, "obs"))
  expect_true(file$has("kind"))
  for (name in c("../var", "kind/../real", ".", "", "/etc", "kind//codes", "..")) {
    expect_identical(file$has(name), name == "", info = name)
  }
})

test_that("where something is missing or of another kind, the error says what", {
  changed <- function(edit) {
    to <- withr::local_tempdir(.local_envir = parent.frame())
    file.copy(at("csr_2.zarr"), to, recursive = TRUE)
    to <- file.path(to, "csr_2.zarr")
    edit(function(...) file.path(to, ...))
    to
  }
  refused <- function(edit, says) {
    expect_error(weft_import(changed(edit), tempfile(fileext = ".weft"), run = quiet), says,
                 class = "weft_error_input")
  }
  refused(function(at) unlink(at("X"), recursive = TRUE), "must be the name of a matrix")
  refused(function(at) unlink(at("X", "indptr"), recursive = TRUE), "has no shape, or parts")
  refused(function(at) writeLines("{", at("X", ".zattrs")), "is not JSON")
  refused(function(at) writeLines("[1, 2", at("X", "data", ".zarray")), "is not JSON")
  refused(function(at) writeLines("3", at("X", ".zgroup")), "metadata of unknown form")
  refused(function(at) writeBin(as.raw(1:9), at("X", "data", "0")), "Blosc")
  refused(function(at) unlink(at("X", "indptr", "0")), "does not increase")
  refused(function(at) {
    unlink(at("X", "data", "0"))
    dir.create(at("X", "data", "0"))
  }, "folder")
  refused(function(at) {
    text <- readLines(at("obs", "whole", ".zarray"))
    first <- grep("40", text)[1L] # of the shape, not of the chunks
    text[first] <- sub("40", "39", text[first])
    writeLines(text, at("obs", "whole", ".zarray"))
  }, "39 values instead of 40")
  expect_error(as_store(at("csr_2.zarr"), samples = "rows"), "samples", class = "weft_error_input")
  expect_error(as_store(at("csr_2.zarr"), layer = "none"), "must be the name of a matrix", class = "weft_error_input")
  expect_error(as_store(at("bpcells_csc"), layer = "none"), "layer", class = "weft_error_input")
  expect_error(as_store(at("codecs_2.zarr", "lz4")), class = "weft_error_input")
})

test_that("folders of BPCells hold what was packed, whichever way", {
  truth <- unname(planted(3, 50))
  for (order in c("csc", "csr")) {
    x <- as_store(at(paste0("bpcells_", order)))
    expect_identical(unname(as.matrix(x)), truth)
    expect_identical(unname(as.matrix(as_store(at(paste0("bpcells_", order)), samples = "rows"))), t(truth))
  }
})

# What BPCells' page on its format describes, written plainly: numbers of 32 or 64 bits, not packed.
unpacked_folder <- function(m, type, names = TRUE, version = 2, envir = parent.frame()) {
  folder <- withr::local_tempdir(.local_envir = envir)
  put <- function(part, values, head, size) {
    file <- file(file.path(folder, part), "wb")
    on.exit(close(file))
    writeBin(charToRaw(head), file)
    if (size == 64L) values <- as.vector(rbind(values, 0)) # small ones
    writeBin(if (size > 0L) as.integer(values) else values, file, size = if (size > 0L) 4L else -size / 8)
  }
  m <- methods::as(m, "CsparseMatrix")
  put("idxptr", m@p, if (version == 2) "UINT64v1" else "UINT32v1", if (version == 2) 64L else 32L)
  put("index", m@i, "UINT32v1", 32L)
  switch(type, uint = put("val", m@x, "UINT32v1", 32L), float = put("val", m@x, "FLOATSv1", -32L),
         double = put("val", m@x, "DOUBLEv1", -64L))
  put("shape", dim(m), "UINT32v1", 32L)
  writeLines("col", file.path(folder, "storage_order"))
  writeLines(sprintf("unpacked-%s-matrix-v%d", type, version), file.path(folder, "version"))
  writeLines(if (names) rownames(m) else character(), file.path(folder, "row_names"))
  writeLines(if (names) colnames(m) else character(), file.path(folder, "col_names"))
  folder
}

test_that("folders of BPCells that are not packed are read, with names", {
  m <- withr::with_seed(1, some_counts(30, 50, 0.2))
  for (version in 1:2) {
    expect_identical(as.matrix(as_store(unpacked_folder(m, "uint", version = version))), t(as.matrix(m)))
  }
  expect_identical(as.matrix(as_store(unpacked_folder(m / 3, "double"))), t(as.matrix(m / 3)))
  expect_identical(as.matrix(as_store(unpacked_folder(m / 4, "float"))), t(as.matrix(m / 4)))
  expect_null(rownames(as_store(unpacked_folder(m, "uint", names = FALSE))))
  damaged <- function(edit, says) {
    folder <- unpacked_folder(m, "uint")
    edit(function(part) file.path(folder, part))
    expect_error(weft_import(folder, tempfile(fileext = ".weft"), run = quiet), says, class = "weft_error_input")
  }
  damaged(function(at) writeLines("packed-uint-matrix-v9", at("version")), "version")
  damaged(function(at) writeLines("diagonal", at("storage_order")), "order")
  damaged(function(at) writeLines("one", at("row_names")), "names instead of")
  damaged(function(at) unlink(at("index")), "index")
  damaged(function(at) writeBin(charToRaw("UINT99v1"), at("val")), "unknown number type")
  damaged(function(at) writeBin(charToRaw("UINT32v1abc"), at("val")), "truncated")
  damaged(function(at) writeBin(c(charToRaw("UINT32v1"), as.raw(rep(c(255, 0), 2))), at("shape")), "shape")
  for (part in c("index_idx", "index_data", "index_starts", "val_data", "val_idx")) {
    folder <- withr::local_tempdir()
    file.copy(at("bpcells_csc"), folder, recursive = TRUE)
    damaged_part <- file.path(folder, "bpcells_csc", part)
    bytes <- bytes_of(damaged_part)
    writeBin(utils::head(bytes, -4), damaged_part)
    expect_error(as_store(file.path(folder, "bpcells_csc")), class = "weft_error_input")
    unlink(damaged_part)
    expect_error(as_store(file.path(folder, "bpcells_csc")), class = "weft_error_input")
  }
})

test_that("changed bytes give a store or an error of weft's", {
  withr::local_seed(7)
  for (name in c("csr_2.zarr", "csc_3.zarr", "dense_3.zarr", "bpcells_csc", "bpcells_csr")) {
    files <- list.files(at(name), all.files = TRUE, recursive = TRUE)
    ends <- vapply(1:40, function(k) {
      to <- tempfile()
      dir.create(to)
      on.exit(unlink(to, recursive = TRUE))
      file.copy(at(name), to, recursive = TRUE)
      chosen <- file.path(to, name, sample(files, 1L))
      bytes <- bytes_of(chosen)
      if (length(bytes)) {
        where <- sample(length(bytes), min(length(bytes), sample(3, 1)))
        bytes[where] <- as.raw(sample(0:255, length(where), TRUE))
        if (k %% 5 == 0) bytes <- utils::head(bytes, sample(length(bytes), 1L))
      }
      writeBin(bytes, chosen)
      path <- tempfile(fileext = ".weft")
      tryCatch({
        suppressWarnings(weft_import(file.path(to, name), path, run = quiet))
        "store"
      }, weft_error = function(e) "refused", error = function(e) paste("error:", conditionMessage(e)))
    }, "")
    expect_true(all(ends %in% c("store", "refused")), info = paste(name, setdiff(ends, c("store", "refused"))))
    expect_true(all(c("store", "refused") %in% ends), info = name)
  }
})

test_that("JSON is read as it is meant, and other texts are refused", {
  read <- weft:::parse_json
  expect_identical(read(" { \"a\" : [ 1 , -2.5e-3, true , null, \"x\" ], \"b\": {} } "),
                   list(a = list(1, -2.5e-3, TRUE, NULL, "x"), b = stats::setNames(list(), character())))
  expect_identical(read("[NaN, Infinity, -Infinity]"), list(NaN, Inf, -Inf))
  expect_identical(read("\"a\\n\\\"\\\\\\/\\u00e9\\ud83d\\ude00\""), "a\n\"\\/\u00e9\U0001f600")
  expect_identical(read("\"\u00fcber {}[],:\""), "\u00fcber {}[],:")
  for (wrong in c("", "{", "[1,]", "[1 2]", "{\"a\"}", "{\"a\":1,}", "{a:1}", "01x", "\"a", "[1]]", "tru", "\"\\q\"",
                  "\"\\ud800\"", "\"\\u0000\"", "{\"a\":1,\"a\":2}", strrep("[", 1000), "'a'", "-", "\"\t\"")) {
    expect_error(read(wrong), class = "weft_json", info = wrong)
  }
})

test_that("an import of a folder stops when it is told to, and leaves nothing", {
  for (name in c("csr_3.zarr", "dense_2.zarr", "bpcells_csc")) {
    to <- withr::local_tempdir()
    path <- file.path(to, "x.weft")
    expect_stops(function(progress) weft_import(at(name), path, run = weft_run(progress = progress)), name)
    expect_identical(list.files(to, all.files = TRUE, no.. = TRUE), character())
  }
})
