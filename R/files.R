# Files of users. Whatever weft reads is looked at by readable_file() first, and what R code reads is opened by
# open_to_read(); whatever weft writes is written by write_file(), and only stores, which are written in pieces, do the
# same in native code. What is refused, and what happens to links: src/core/data/file.h.

# ---- to read ----

# The path of a regular file that can be read; only such a file has an end. `must`: what the argument `arg` must be.
readable_file <- function(path, arg, must = "the name of a file that can be read") {
  path <- bare_text(path)
  problem <- if (is_word(path) && nzchar(path)) file_problem(path)
  if (is_word(path) && nzchar(path) && is.null(problem)) return(path)
  abort_input(sprintf("`%s` must be %s.", arg, must),
              x = if (is.null(problem)) paste0("It is ", describe(path), ".")
                  else sprintf("%s %s.", describe(path), problem),
              i = if (isTRUE(grepl("not a regular file", problem))) "Write its content to a file first.")
}

# NULL, or why a file cannot be read, as what follows its name: "does not exist".
file_problem <- function(path) {
  found <- .Call(C_weft_file_look, path.expand(path))
  if (is.character(found)) found
}

# A connection to a file that can be read, which may be compressed by gzip, bzip2 or xz. The caller closes it.
open_to_read <- function(path, arg, must = "the name of a file that can be read") {
  path <- readable_file(path, arg, must)
  from_file(gzfile(path, "rb"), path)
}

# What `read` gives of a file. R says in a warning that compressed data are damaged.
from_file <- function(read, path) {
  damaged <- function(e) {
    if (inherits(e, "weft_error")) stop(e)
    abort_cut_short(path, plain_text(conditionMessage(e)))
  }
  tryCatch(memory_errors(read), error = damaged, warning = damaged)
}

abort_cut_short <- function(path, what) {
  abort_input(sprintf("'%s' could not be read to its end.", basename(path)), x = what,
              i = "It is damaged or truncated.")
}

# At most `most` bytes more of an open file; none at its end. The user can stop between two pieces.
next_bytes <- function(connection, most, path) {
  .Call(C_weft_file_pause)
  from_file(readBin(connection, "raw", most), path)
}

# All lines of a text file, which are taken for UTF-8.
text_lines <- function(path, arg, must = "the name of a text file") {
  connection <- open_to_read(path, arg, must)
  on.exit(close(connection))
  parts <- list()
  repeat {
    .Call(C_weft_file_pause)
    lines <- from_file(readLines(connection, 2^17, warn = FALSE, encoding = "UTF-8", skipNul = TRUE), path)
    if (!length(lines)) break
    parts[[length(parts) + 1L]] <- lines
  }
  as.character(unlist(parts))
}

# All bytes of a file, of which there may be at most `most`: a small compressed file may hold much.
whole_bytes <- function(path, arg, must, most) {
  connection <- open_to_read(path, arg, must)
  on.exit(close(connection))
  parts <- list()
  total <- 0
  ask <- 2^16 # R makes room for all that is asked for: small files do not pay for large ones
  repeat {
    bytes <- next_bytes(connection, ask, path)
    if (!length(bytes)) break
    total <- total + length(bytes)
    if (total > most) abort_input(sprintf("`%s` must have at most %s.", arg, bytes_text(most)))
    parts[[length(parts) + 1L]] <- bytes
    ask <- min(8 * ask, 2^26)
  }
  if (!gzip_ends(path, total)) abort_cut_short(path, "The compressed data end too early.")
  do.call(c, c(parts, list(raw())))
}

# R takes a file of gzip that was cut short for whole. Its last four bytes are the size of what its last part holds,
# which is all of it where there are no further parts.
gzip_ends <- function(path, total) {
  bytes <- readBin(path, "raw", file.size(path))
  head <- as.raw(c(0x1f, 0x8b, 0x08))
  if (length(bytes) < 18L || !identical(bytes[1:3], head)) return(TRUE)
  last <- sum(as.integer(utils::tail(bytes, 4L)) * 256^(0:3))
  last <= total && (last == total || length(grepRaw(head, bytes, 4L, fixed = TRUE)) > 0L)
}

# ---- to write ----

# A path at which a file can be written: checked before the work.
check_output <- function(file, arg) {
  file <- bare_text(file)
  if (!is_word(file) || !nzchar(file)) {
    abort_input(sprintf("`%s` must be one path.", arg), x = paste0("It is ", describe(file), "."))
  }
  folder <- dirname(file)
  if (!dir.exists(folder)) {
    abort_input(sprintf("The folder of `%s` must exist.", arg), x = sprintf("There is no %s.", describe(folder)))
  }
  stop_unwritten(file, arg, write_problem(file))
  file
}

# NULL, or why no file can be written there, as what follows its name.
write_problem <- function(file) .Call(C_weft_file_may_write, path.expand(file))

stop_unwritten <- function(file, arg, problem) {
  if (is.null(problem)) return(invisible(file))
  abort_input(sprintf("`%s` must be writable.", arg), x = sprintf("%s %s.", describe(file), problem))
}

# Writes a whole file in one step: whatever fails, what was there before stays as it was.
write_file <- function(bytes, file, arg = "file") {
  stop_unwritten(file, arg, .Call(C_weft_file_write, path.expand(file), bytes))
}

write_text <- function(lines, file, arg = "file") write_file(text_bytes(lines), file, arg)

# In pieces, since no text in R has more than 2^31 bytes.
text_bytes <- function(lines) {
  lines <- enc2utf8(as.character(lines))
  first <- seq(1, length.out = ceiling(length(lines) / 2^16), by = 2^16)
  parts <- lapply(first, function(k) {
    charToRaw(paste0(lines[seq(k, min(k + 2^16 - 1, length(lines)))], "\n", collapse = ""))
  })
  do.call(c, c(parts, list(raw())))
}

# The same for a file that another program has made elsewhere. Returns the whole path.
put_in_place <- function(from, file) {
  write_file(readBin(from, "raw", file.size(from)), file)
  normalizePath(file)
}
