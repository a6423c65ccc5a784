#' Bag-of-words files
#'
#' These functions read and write the format of the UCI bag-of-words collection: three lines with the numbers of
#' documents, words and entries, then a line "document word count" for each entry. The vocabulary is a separate file
#' with one word per line. Files may be gzipped.
#'
#' @param file,vocab names of the files; without `vocab` words have no names. Written files replace others as those of
#'   [write_network()] do.
#' @param counts whether to keep the counts, for `family = "poisson"`; otherwise a word is either present or absent.
#' @param x a sparse Matrix or matrix with words in rows and documents in columns, as `read_bag_of_words()` returns.
#' @return `read_bag_of_words()`: a dgCMatrix (counts) or ngCMatrix, words in rows, documents in columns;
#'   `write_bag_of_words()`: `file`, invisibly.
#' @export
#' @examples
#' A <- Matrix::sparseMatrix(i = c(1, 2, 2), j = c(1, 1, 3), dims = c(2, 3),
#'                           dimnames = list(c("gene", "cell"), NULL))
#' file <- tempfile()
#' write_bag_of_words(A, file, paste0(file, ".vocab"))
#' read_bag_of_words(file, paste0(file, ".vocab"))
read_bag_of_words <- function(file, vocab = NULL, counts = FALSE) {
  need_args("file")
  counts <- check_flag(counts, "counts")
  file <- readable_file(file, "file", "a bag-of-words file")
  if (!is.null(vocab)) vocab <- readable_file(vocab, "vocab", "a file of words")
  numbers <- whole_numbers(file)
  if (length(numbers) < 3L || length(numbers) != 3 + 3 * as.double(numbers[3L])) {
    abort_input("`file` must start with three lines of sizes, followed by one line of three numbers per entry.",
                x = sprintf("It has %.0f numbers.", length(numbers)))
  }
  if (any(numbers[1:2] >= .Machine$integer.max)) {
    abort_input("`file` must have fewer than 2147483647 documents and words.",
                x = sprintf("It has %d and %d.", numbers[1L], numbers[2L]))
  }
  ask_memory(8 * numbers[1L] + 8 * numbers[2L], "The matrix in `file` must fit into memory.")
  entries <- matrix(numbers[-(1:3)], 3L)
  if (any(entries[1L, ] < 1L | entries[1L, ] > numbers[1L] | entries[2L, ] < 1L | entries[2L, ] > numbers[2L])) {
    abort_input("Every entry of `file` must lie within the stated numbers of documents and words.")
  }
  words <- if (!is.null(vocab)) text_lines(vocab, "vocab")
  if (!is.null(words) && length(words) != numbers[2L]) {
    abort_input(sprintf("`vocab` must have one line for each word (%d).", numbers[2L]),
                x = sprintf("It has %.0f.", length(words)))
  }
  entries <- entries[, entries[3L, ] > 0L, drop = FALSE]
  if (counts) {
    Matrix::sparseMatrix(i = entries[2L, ], j = entries[1L, ], x = as.double(entries[3L, ]), dims = numbers[2:1],
                         dimnames = list(words, NULL))
  } else {
    Matrix::sparseMatrix(i = entries[2L, ], j = entries[1L, ], dims = numbers[2:1], dimnames = list(words, NULL))
  }
}

# All of a file, which may be gzipped.
whole_numbers <- function(file) {
  input <- open_to_read(file, "file", "a bag-of-words file")
  on.exit(close(input))
  numbers <- list()
  rest <- raw()
  at_once <- 2^16 # R makes room for all that is asked for: small files do not pay for large ones
  repeat {
    bytes <- next_bytes(input, at_once, file)
    text <- c(rest, bytes)
    cut <- if (length(bytes)) max(0L, which(text == as.raw(10L))) else length(text)
    found <- .Call(C_weft_irm_numbers, text[seq_len(cut)])
    if (!is.null(attr(found, "bad"))) abort_input("`file` must contain only whole numbers.",
                                                  x = paste0(describe(file), " contains something else."))
    numbers[[length(numbers) + 1L]] <- found
    rest <- if (cut == 0L) text else text[-seq_len(cut)]
    if (!length(bytes)) return(unlist(numbers))
    at_once <- min(2^26, 8 * at_once)
  }
}

#' @rdname read_bag_of_words
#' @export
write_bag_of_words <- function(x, file, vocab = NULL) {
  need_args("x", "file")
  file <- check_output(file, "file")
  if (!is.null(vocab)) vocab <- check_output(vocab, "vocab")
  pairs <- listed_pairs(irm_pairs(x, "bipartite", TRUE, NULL, NULL, NULL))
  names <- enc2utf8(as.character(pairs$row_names %||% paste0("V", seq_len(pairs$n_row))))
  if (!is.null(vocab) && any(grepl("[\r\n]", names, useBytes = TRUE))) {
    abort_input("Row names of `x` must not contain line breaks, because each becomes a line of `vocab`.",
                x = sprintf("The name of row %d contains one.", which(grepl("[\r\n]", names, useBytes = TRUE))[1L]))
  }
  order <- order(pairs$to, pairs$from)
  entries <- sprintf("%d %d %d", as.integer(pairs$to[order]), as.integer(pairs$from[order]), pairs$weight[order])
  write_text(c(pairs$n_col, pairs$n_row, length(order), entries), file, "file")
  if (!is.null(vocab)) write_text(names, vocab, "vocab")
  invisible(file)
}
