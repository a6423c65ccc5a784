# Matrix Market files for weft_import(): R's connections read the text, which may be compressed, in pieces, and C parses
# it (src/store/import/market.c).

market_piece <- 2^22 # bytes

file_import <- function(path, samples, layer, memory) {
  if (dir.exists(path)) return(folder_import(path.expand(path), samples, layer, memory))
  path <- readable_file(path, "x", "a matrix, or the name of a file or folder that can be read")
  if (grepl("\\.(h5ad|h5|hdf5|loom)$", path, ignore.case = TRUE)) return(hdf5_import(path, samples, layer, memory))
  no_layer(layer)
  if (grepl("\\.mtx(\\.(gz|bz2|xz))?$", path, ignore.case = TRUE)) {
    return(market_import(path, identical(samples, "columns"), memory))
  }
  abort_input("`x` must be the name of a file in a known format.", x = sprintf("It is '%s'.", basename(path)),
              i = paste("Known formats: .h5ad, .h5, .loom, .mtx (also compressed), Zarr and BPCells folders,",
                        "and folders with matrix.mtx."))
}

folder_import <- function(path, samples, layer, memory) {
  if (is_zarr(path)) {
    if (!is.null(samples)) abort_input("`samples` must not be given for Zarr folders, which have samples in rows.")
    return(zarr_import(path, layer, memory))
  }
  no_layer(layer)
  if (is_bpcells(path)) bpcells_import(path, samples, memory) else tenx_folder_import(path, samples, memory)
}

# matrix.mtx with barcodes.tsv and features.tsv (or genes.tsv, before version 3), each perhaps compressed.
tenx_folder_import <- function(folder, samples, memory) {
  find <- function(...) {
    names <- paste0(rep(c(...), each = 2L), c("", ".gz"))
    found <- file.path(folder, names)[file.exists(file.path(folder, names))]
    if (!length(found)) {
      abort_input("`x` must be a folder with matrix.mtx, barcodes.tsv and features.tsv.",
                  x = sprintf("There is no %s.", names[1L]), i = "Each file may be compressed (.gz).")
    }
    found[1L]
  }
  files <- c(find("matrix.mtx"), find("barcodes.tsv"), find("features.tsv", "genes.tsv"))
  source <- market_import(files[1L], !identical(samples, "rows"), memory)
  cells <- table_columns(files[2L])
  features <- table_columns(files[3L])
  check_lines <- function(table, count, file) {
    if (length(table[[1L]]) == count) return(invisible())
    abort_input(sprintf("'%s' must have %.0f lines.", basename(file), count),
                x = sprintf("It has %d.", length(table[[1L]])))
  }
  check_lines(cells, source$n, files[2L])
  check_lines(features, source$p, files[3L])
  source$row_names <- cells[[1L]]
  source$names <- features[[1L]]
  source$column_data <- stats::setNames(features[-1L], c("symbol", "type", sprintf("V%d", seq_along(features)))[
    seq_len(length(features) - 1L)])
  source
}

# The columns of a file of tabs without a header, as texts.
table_columns <- function(file) {
  fields <- strsplit(text_lines(file, "x", "a folder whose files can be read"), "\t", fixed = TRUE)
  columns <- max(1L, lengths(fields))
  lapply(seq_len(min(columns, 16L)), function(k) vapply(fields, function(f) f[k], ""))
}

market_import <- function(path, turned, memory) {
  sizes <- market_read(path, "sizes", NULL, NULL, turned, run_control())
  fill <- function(begin, control) {
    writer <- begin()
    if (!market_read(path, "push", writer, NULL, turned, control)$late) return(invisible())
    writer <- begin()
    sorter <- .Call(C_weft_store_sorter, writer, memory, control)
    market_read(path, "count", writer, sorter, turned, control)
    market_read(path, "place", writer, sorter, turned, control)
    .Call(C_weft_store_drain, writer, sorter, control)
  }
  d <- if (turned) c(sizes$columns, sizes$rows) else c(sizes$rows, sizes$columns)
  new_import(d, NULL, fill)
}

# One reading: of the sizes alone, or of all entries, which are pushed in order, counted or placed. Ends early where an
# entry comes too late.
market_read <- function(path, mode, writer, sorter, turned, control) {
  market <- .Call(C_weft_store_market)
  file <- open_to_read(path, "x", "a file that can be read")
  on.exit(close(file))
  repeat {
    bytes <- next_bytes(file, market_piece, path)
    found <- .Call(C_weft_store_market_read, market, writer, sorter, mode, bytes, turned, control)
    if (!length(bytes) || !is.null(found) && (mode == "sizes" || found$late)) return(found)
  }
}
