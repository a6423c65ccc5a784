# Sparse matrices for stores, and stores taken apart: offsets as inst/store-format.md has them, and checksums in R.

some_counts <- function(n, p, density = 0.1) {
  m <- Matrix::rsparsematrix(n, p, density, rand.x = function(k) stats::rgeom(k, 0.4) + 1)
  dimnames(m) <- list(sprintf("cell%d", seq_len(n)), sprintf("gene%d", seq_len(p)))
  m
}

# A store in a file that goes with the test.
as_store <- function(x, ..., envir = parent.frame()) {
  call_with(weft_import, list(x, withr::local_tempfile(fileext = ".weft", .local_envir = envir), ...,
                              run = weft_run(progress = FALSE)))
}

store_file <- function(x) unclass(x)$path
store_blocks <- function(x) weft:::open_store(x)$about

bytes_of <- function(file) readBin(file, "raw", file.size(file))

# CRC-32C, bit after bit: slow, and shares nothing with the package's.
crc32c <- function(bytes) {
  table <- vapply(0:255, function(k) {
    for (bit in 1:8) k <- if (k %% 2 == 1) xor_32(k %/% 2, 0x82F63B78) else k %/% 2
    k
  }, 0)
  crc <- 2^32 - 1
  for (b in as.integer(bytes)) {
    crc <- xor_32(crc %/% 256, table[bitwXor(as.integer(crc %% 256), b) + 1])
  }
  xor_32(crc, 2^32 - 1)
}

xor_32 <- function(a, b) {
  high <- bitwXor(as.integer(a %/% 65536), as.integer(b %/% 65536))
  low <- bitwXor(as.integer(a %% 65536), as.integer(b %% 65536))
  high * 65536 + low
}

get_number <- function(bytes, at, size) sum(as.double(bytes[at + seq_len(size)]) * 256^(seq_len(size) - 1))
put_number <- function(bytes, at, value, size) {
  bytes[at + seq_len(size)] <- as.raw(value %/% 256^(seq_len(size) - 1) %% 256)
  bytes
}

# Makes the checksums right again after bytes were changed, as somebody would who wants to lead a reader astray.
with_checksums <- function(bytes) {
  directory <- get_number(bytes, 40, 8)
  size <- get_number(bytes, 48, 8)
  inside <- function(at, count) is.finite(at + count) && at >= 0 && count >= 0 && at + count <= length(bytes)
  if (inside(directory, size) && size >= 16) {
    blocks <- min(get_number(bytes, directory, 8), (size - 16) %/% 40)
    for (k in seq_len(blocks)) {
      entry <- directory + 16 + 40 * (k - 1)
      at <- get_number(bytes, entry, 8)
      count <- get_number(bytes, entry + 8, 8)
      if (inside(at, count)) bytes <- put_number(bytes, entry + 32, crc32c(bytes[at + seq_len(count)]), 4)
    }
    bytes <- put_number(bytes, 56, crc32c(bytes[directory + seq_len(size)]), 4)
  }
  put_number(bytes, 60, crc32c(bytes[1:60]), 4)
}

# The numbers of a packed stream and of a block's entries, from the page alone.
unpack <- function(bytes, count, version) {
  chunks <- ceiling(count / 128)
  width <- as.integer(bytes[seq_len(chunks)])
  high <- if (version > 1) as.integer(bytes[chunks + seq_len(chunks)]) else integer(chunks)
  at <- chunks * (1 + (version > 1))
  bits <- function(from) as.integer(rawToBits(from))
  out <- unlist(lapply(seq_len(chunks), function(k) {
    low <- bits(bytes[at + seq_len(16 * width[k])])
    above <- diff(c(0, which(bits(bytes[at + 16 * width[k] + seq_len(high[k])]) == 1))) - 1
    at <<- at + 16 * width[k] + high[k]
    numbers <- vapply(0:127, function(i) {
      place <- i %/% 4 * width[k] + seq_len(width[k]) - 1 # in the lane
      sum(low[(place %/% 32 * 4 + i %% 4) * 32 + place %% 32 + 1] * 2^(seq_len(width[k]) - 1))
    }, 0)
    numbers + if (version > 1) above * 2^width[k] else 0
  }))
  stopifnot(at == length(bytes))
  out[seq_len(count)]
}

block_entries <- function(file, block = 1) {
  bytes <- bytes_of(file)
  version <- get_number(bytes, 8, 8)
  entry <- get_number(bytes, 40, 8) + 16 + 40 * (block - 1)
  at <- get_number(bytes, entry, 8)
  stopifnot(get_number(bytes, entry + 28, 4) == 1) # whole numbers
  size <- vapply(0:2, function(k) get_number(bytes, at + 8 * k, 8), 0)
  stream <- function(k, count) unpack(bytes[at + 24 + sum(size[seq_len(k - 1)]) + seq_len(size[k])], count, version)
  counts <- stream(1, get_number(bytes, 24, 8))
  column <- rep(seq_along(counts), counts)
  stored <- get_number(bytes, entry + 16, 8)
  list(row = unsplit(lapply(split(stream(2, stored) + 1, column), cumsum), column), column = column,
       value = stream(3, stored) + 1)
}

# All blocks as a device is given them.
pack_store <- function(x) {
  source <- weft:::pca_source(x, block_size = 8)
  if (is.null(source$for_device)) return(invisible())
  source <- source$for_device()
  for (i in seq_along(source$starts)) source$packed(i)
}

# Everything that reads a store; an error must be one of weft's own.
use_store <- function(file) {
  tryCatch({
    x <- weft_store(file)
    pack_store(x)
    m <- x[, ]
    methods::validObject(m)
    list(m, dimnames(x), summary(x), x[seq_len(min(2, nrow(x))), ], store_data(x), Matrix::colSums(x))
  }, weft_error_input = function(e) "input", weft_error_memory = function(e) "memory")
}

# Matrix Market lines handed over in pieces of so many bytes; the matrix of a store made of them.
in_pieces <- function(lines, size, dim) {
  file <- withr::local_tempfile()
  control <- weft:::run_control()
  writer <- .Call(weft:::C_weft_store_begin, file, FALSE, dim[1], dim[2], 2^20, control)
  market <- .Call(weft:::C_weft_store_market)
  bytes <- charToRaw(paste0(lines, "\n", collapse = ""))
  for (first in c(seq(1, length(bytes), by = size), length(bytes) + 1)) {
    piece <- bytes[seq_len(length(bytes)) >= first & seq_len(length(bytes)) < first + size]
    .Call(weft:::C_weft_store_market_read, market, writer, NULL, "push", piece, FALSE, control)
  }
  .Call(weft:::C_weft_store_finish, writer, control)
  as.matrix(weft_store(file))
}
