# Folders of BPCells for weft_import(): a sparse matrix in compressed rows or columns. Each array is a file, and its
# first 8 bytes name the type of its values. Whole numbers may be packed in groups of 128, with as many bits as the
# largest of the group needs (src/store/import/bp128.h). Nothing in them is trusted. R/store-anndata.R explains the
# functions of a file.

is_bpcells <- function(path) all(file.exists(file.path(path, c("version", "storage_order", "shape"))))

# Cells are in columns unless `samples` says otherwise.
bpcells_import <- function(path, samples, memory) {
  turned <- !identical(samples, "rows")
  file <- bpcells_file(path)
  d <- bpcells_numbers(file, "shape")
  if (length(d) != 2L) wrong_file(file, "Its shape does not consist of two numbers.")
  by_column <- switch(paste(bpcells_lines(file, "storage_order"), collapse = " "), col = TRUE, row = FALSE,
                      wrong_file(file, "Its storage order is neither \"col\" nor \"row\"."))
  source <- compressed_parts(file, "matrix", if (turned) rev(d) else d, by_column == turned, memory)
  names <- lapply(list("row_names", "col_names"), function(part) {
    if (file.exists(file.path(path, part))) bpcells_lines(file, part)
  })
  names <- lapply(names, function(n) if (length(n)) n) # empty where there are none
  if (turned) names <- rev(names)
  for (side in 1:2) {
    if (!is.null(names[[side]]) && length(names[[side]]) != source[[c("n", "p")[side]]]) {
      wrong_file(file, sprintf("It has %d names instead of %.0f.", length(names[[side]]), source[[c("n", "p")[side]]]))
    }
  }
  source["row_names"] <- names[1L]
  source["names"] <- names[2L]
  source
}

# As a file with the vectors matrix/data, matrix/indices and matrix/indptr.
bpcells_file <- function(path) {
  file <- list(path = path, name = basename(path), what = "a BPCells folder")
  about <- bpcells_about(file)
  stored <- function() {
    ends <- bpcells_range(file, "idxptr", NULL, NULL)
    if (length(ends)) ends[length(ends)] else 0
  }
  cache <- new.env(parent = emptyenv())
  packed <- function(part) part == "indices" || about$type == "uint"
  named <- c(indices = "index", data = "val", indptr = "idxptr")
  part_of <- function(name) sub("^matrix/", "", name)
  c(file, list(
    said = function(code, name) code,
    has = function(name) part_of(name) %in% names(named),
    size = function(name) {
      part <- part_of(name)
      if (part != "indptr" && about$packed && packed(part)) cache$stored %||% (cache$stored <- stored())
      else bpcells_length(file, named[[part]])
    },
    read = function(name, first, count) {
      part <- part_of(name)
      if (part != "indptr" && about$packed && packed(part)) bpcells_unpack(file, named[[part]], first - 1, count, cache)
      else bpcells_range(file, named[[part]], first - 1, count)
    }
  ))
}

# The version, such as "packed-uint-matrix-v2".
bpcells_about <- function(file) {
  version <- bpcells_lines(file, "version")
  parts <- strsplit(paste(version, collapse = " "), "-", fixed = TRUE)[[1L]]
  known <- length(parts) == 4L && parts[1L] %in% c("packed", "unpacked") &&
    parts[2L] %in% c("uint", "float", "double") && parts[3L] == "matrix" && parts[4L] %in% c("v1", "v2")
  if (!known) wrong_file(file, sprintf("weft cannot read its version, %s.", describe(version)))
  list(packed = parts[1L] == "packed", type = parts[2L])
}

bpcells_lines <- function(file, part) {
  text <- text_lines(file.path(file$path, part), "x", "a BPCells folder with readable files")
  text[nzchar(text) | seq_along(text) < length(text)]
}

bpcells_types <- c(UINT32v1 = "uint32", UINT64v1 = "uint64", FLOATSv1 = "float32", DOUBLEv1 = "float64")

# What kind of numbers an array has.
bpcells_kind <- function(file, part) {
  head <- zarr_bytes(file.path(file$path, part), part, first = 0, size = 8)
  kind <- if (any(head == 0)) NA else unname(bpcells_types[rawToChar(head)])
  if (is.na(kind)) wrong_file(file, sprintf("\"%s\" has an unknown number type.", part))
  kind
}

bpcells_length <- function(file, part) {
  size <- (file.size(file.path(file$path, part)) - 8) / zarr_sizes[[bpcells_kind(file, part)]]
  if (is.na(size) || size != floor(size)) wrong_file(file, sprintf("\"%s\" is missing or truncated.", part))
  size
}

# Numbers of an array from `first` on, from 0; NULL: all of them.
bpcells_range <- function(file, part, first, count) {
  kind <- bpcells_kind(file, part)
  wide <- zarr_sizes[[kind]]
  first <- first %||% 0
  count <- count %||% bpcells_length(file, part)
  if (wide * count > max_chunk) wrong_file(file, sprintf("\"%s\" is too large.", part))
  bytes <- zarr_bytes(file.path(file$path, part), part, whole = wide * count, first = 8 + wide * first,
                      size = wide * count)
  .Call(C_weft_store_numbers, bytes, kind, FALSE)
}

bpcells_numbers <- function(file, part) bpcells_range(file, part, NULL, NULL)

# Where the chunks of a packed array begin among its numbers of 32 bits. What is above 2^32 is counted in
# `<part>_idx_offsets` (version 2): from which chunk on how many times 2^32 are to be added.
bpcells_ends <- function(file, part, first, count) {
  ends <- bpcells_range(file, paste0(part, "_idx"), first, count)
  offsets <- paste0(part, "_idx_offsets")
  if (!file.exists(file.path(file$path, offsets))) return(ends)
  begin <- bpcells_numbers(file, offsets)
  if (is.unsorted(begin) || !length(begin)) wrong_file(file, sprintf("\"%s\" does not increase.", offsets))
  ends + 2^32 * pmax(0, findInterval(first + seq_len(count) - 1, begin) - 1)
}

# Packed numbers from `first` on, from 0.
bpcells_unpack <- function(file, part, first, count, cache) {
  if (!count) return(numeric())
  chunk <- floor(first / 128)
  chunks <- floor((first + count - 1) / 128) - chunk + 1
  ends <- bpcells_ends(file, part, chunk, chunks + 1)
  words <- ends[chunks + 1] - ends[1L]
  if (is.unsorted(ends) || words > 128 * chunks) wrong_file(file, sprintf("\"%s_idx\" does not increase.", part))
  data <- paste0(part, "_data")
  if (!identical(bpcells_kind(file, data), "uint32")) wrong_file(file, sprintf("\"%s\" does not contain whole numbers.",
                                                                               data))
  bytes <- zarr_bytes(file.path(file$path, data), data, first = 8 + 4 * ends[1L], size = 4 * words)
  starts <- if (part == "index") as.double(bpcells_range(file, "index_starts", chunk, chunks))
  out <- memory_errors(.Call(C_weft_store_unpack, bytes, as.double(ends - ends[1L]), starts))
  if (is.null(out)) wrong_file(file, sprintf("\"%s\" has a chunk of invalid size.", data))
  out[first - 128 * chunk + seq_len(count)]
}
