# Files of cells in the formats that weft_import() reads, and the same damaged: bytes set, bits flipped, runs cut out,
# doubled or zeroed, the end cut off. Tests do a few; proofs/store-files.R does thousands.

# The matrix m in one file (or folder of files) of each format; none of HDF5 without rhdf5.
cell_files <- function(folder, m = some_counts(30, 8, 0.4)) {
  at <- function(...) file.path(folder, ...)
  Matrix::writeMM(Matrix::t(m), at("plain.mtx"))
  dir.create(at("tenx"))
  packed <- function(lines, name) {
    file <- gzfile(at("tenx", name), "w")
    on.exit(close(file))
    writeLines(lines, file)
  }
  packed(readLines(at("plain.mtx")), "matrix.mtx.gz")
  packed(rownames(m), "barcodes.tsv.gz")
  packed(paste(colnames(m), toupper(colnames(m)), "Gene", sep = "\t"), "features.tsv.gz")
  files <- c(at("plain.mtx"), at("tenx", c("matrix.mtx.gz", "barcodes.tsv.gz", "features.tsv.gz")))
  if (requireNamespace("rhdf5", quietly = TRUE)) files <- c(files, cell_hdf5_files(m, at))
  c(files, cell_folders(folder))
}

# Files of the folders in folders.tgz, which hold other numbers: all of BPCells', and of AnnData's X and a factor.
cell_folders <- function(to) {
  utils::untar(Find(file.exists, c("folders.tgz", "tests/testthat/folders.tgz")), exdir = to)
  files <- list.files(to, all.files = TRUE, recursive = TRUE, full.names = TRUE)
  grep("(csr_2|csr_3|csc_2|dense_3)[.]zarr/([^/]*|X/.*|obs/[^/]*|obs/kind/.*)$|bpcells_csc/", files, value = TRUE)
}

# What is imported of a file that is part of a folder.
import_from <- function(file) sub("(/tenx|[.]zarr|/bpcells_csc)/.*", "\\1", file)

cell_hdf5_files <- function(m, at) {
  rows <- Matrix::t(m)
  # level: of deflation; 0: numbers lie one after another; NULL: as rhdf5 does it, which also shuffles them
  write <- function(name, parts, attributes = list(), level = NULL) {
    file <- at(name)
    rhdf5::h5createFile(file)
    for (part in names(parts)) {
      if (!is.null(level) && part %in% c("X/data", "X/indices")) {
        rhdf5::h5createDataset(file, part, length(parts[[part]]), storage.mode = storage.mode(parts[[part]]),
                               chunk = if (level > 0) 64, level = level, shuffle = FALSE)
      }
      if (identical(parts[[part]], "group")) rhdf5::h5createGroup(file, part)
      else rhdf5::h5write(parts[[part]], file, part)
    }
    id <- rhdf5::H5Fopen(file)
    for (object in names(attributes)) {
      to <- rhdf5::H5Oopen(id, object)
      for (a in names(attributes[[object]])) rhdf5::h5writeAttribute(attributes[[object]][[a]], to, a)
      rhdf5::H5Oclose(to)
    }
    rhdf5::H5Fclose(id)
    file
  }
  compressed <- function(group, x = rows) {
    stats::setNames(list("group", x@x, x@i, x@p), paste0(group, c("", "/data", "/indices", "/indptr")))
  }
  tables <- list(obs = "group", "obs/_index" = rownames(m), "obs/n" = seq_len(nrow(m)), "obs/kind" = "group",
                 "obs/kind/codes" = rep(0:1, length.out = nrow(m)), "obs/kind/categories" = c("a", "b"),
                 var = "group", "var/_index" = colnames(m))
  index <- list("_index" = "_index")
  columns <- c(index, list("column-order" = c("n", "kind")))
  c(write("csr.h5ad", c(compressed("X"), tables),
          list(X = list("encoding-type" = "csr_matrix", shape = dim(m)), obs = columns, var = index)),
    write("whole.h5ad", c(compressed("X"), tables),
          list(X = list("encoding-type" = "csr_matrix", shape = dim(m)), obs = columns, var = index), level = 0),
    write("deflated.h5ad", c(compressed("X"), tables),
          list(X = list("encoding-type" = "csr_matrix", shape = dim(m)), obs = columns, var = index), level = 5),
    write("csc.h5ad", c(compressed("X", m), tables),
          list(X = list("encoding-type" = "csc_matrix", shape = dim(m)), obs = columns, var = index)),
    write("dense.h5ad", c(list(X = t(as.matrix(m))), tables), list(obs = columns, var = index)),
    write("tenx.h5", c(compressed("matrix"),
                       list("matrix/shape" = rev(dim(m)), "matrix/barcodes" = rownames(m), "matrix/features" = "group",
                            "matrix/features/id" = colnames(m)))),
    write("cells.loom", list(matrix = as.matrix(m), row_attrs = "group", "row_attrs/Gene" = colnames(m),
                             col_attrs = "group", "col_attrs/CellID" = rownames(m))))
}

# One to four changes: bytes set, bits flipped, runs cut out or doubled, the end cut off.
spoil_bytes <- function(bytes) {
  for (k in seq_len(sample(4, 1))) {
    at <- sample(length(bytes), 1)
    run <- seq(at, min(length(bytes), at + sample(c(1, 4, 8, 64), 1) - 1))
    bytes <- switch(sample(6, 1),
      replace(bytes, at, as.raw(sample(c(0:3, 32, 33, 64, 127, 128, 254, 255), 1))),
      replace(bytes, at, xor(bytes[at], as.raw(2^sample(0:7, 1)))),
      replace(bytes, run, as.raw(sample(c(0, 255), 1))), bytes[-run], append(bytes, bytes[run], at),
      bytes[seq_len(at)])
    if (length(bytes) < 2L) return(bytes)
  }
  bytes
}

# What becomes of a file when its bytes are spoilt: "result", "input" or "memory"; another error is signalled. A part of
# a folder is imported with it.
import_spoilt <- function(file, to) {
  whole <- bytes_of(file)
  on.exit(writeBin(whole, file))
  writeBin(if (length(whole)) spoil_bytes(whole) else as.raw(sample(0:255, 3)), file)
  from <- import_from(file)
  tryCatch({
    x <- suppressWarnings(weft_import(from, to, overwrite = TRUE, run = weft_run(progress = FALSE)))
    methods::validObject(x[, ])
    store_data(x)
    summary(x)
    "result"
  }, weft_error_input = function(e) "input", weft_error_memory = function(e) "memory")
}
