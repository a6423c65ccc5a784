#' Bag-of-words files
#'
#' The format of the UCI bag-of-words collection: three lines with the numbers of documents, words and entries, then a line
#' "document word count" for each entry; the vocabulary is a file of its own, a word a line. Files may be gzipped.
#'
#' @param file,vocab names of the files; without `vocab` words have no names.
#' @param counts keep the counts, for `family = "poisson"`; else a word is there or not.
#' @param A a sparse Matrix or matrix with words in rows and documents in columns, as `read_bag_of_words()` returns.
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
  counts <- check_flag(counts, "counts")
  if (!is.character(file) || length(file) != 1L || !file.exists(file)) {
    abort_input("`file` must be a bag-of-words file.", x = paste0("There is no file ", describe(file), "."))
  }
  input <- gzfile(file, "rb")
  on.exit(close(input))
  numbers <- list()
  rest <- raw()
  repeat {
    bytes <- readBin(input, raw(), 2^26)
    text <- c(rest, bytes)
    cut <- if (length(bytes)) max(0L, which(text == as.raw(10L))) else length(text)
    found <- .Call(C_weft_irm_numbers, text[seq_len(cut)])
    if (!is.null(attr(found, "bad"))) abort_input("`file` must hold whole numbers only.",
                                                  x = paste0(describe(file), " holds something else."))
    numbers[[length(numbers) + 1L]] <- found
    rest <- text[-seq_len(cut)]
    if (cut == 0L) rest <- text
    if (!length(bytes)) break
  }
  numbers <- unlist(numbers)
  if (length(numbers) < 3L || length(numbers) != 3 + 3 * as.double(numbers[3L])) {
    abort_input("`file` must have three lines of sizes and a line of three numbers an entry.",
                x = sprintf("It has %d numbers.", length(numbers)))
  }
  entries <- matrix(numbers[-(1:3)], 3L)
  if (any(entries[1L, ] < 1L | entries[1L, ] > numbers[1L] | entries[2L, ] < 1L | entries[2L, ] > numbers[2L])) {
    abort_input("Every entry of `file` must lie within its numbers of documents and words.")
  }
  words <- if (!is.null(vocab)) readLines(vocab, encoding = "UTF-8")
  if (!is.null(words) && length(words) != numbers[2L]) {
    abort_input(sprintf("`vocab` must have a line a word: %d.", numbers[2L]), x = sprintf("It has %d.", length(words)))
  }
  parts <- list(i = entries[2L, ], j = entries[1L, ], dims = numbers[2:1], dimnames = list(words, NULL))
  if (counts) parts$x <- as.double(entries[3L, ])
  do.call(Matrix::sparseMatrix, parts)
}

#' @rdname read_bag_of_words
#' @export
write_bag_of_words <- function(A, file, vocab = NULL) {
  pairs <- irm_pairs(A, "bipartite", TRUE, NULL, NULL, NULL)
  order <- order(pairs$to, pairs$from)
  out <- file(file, "w")
  on.exit(close(out))
  writeLines(c(pairs$n_col, pairs$n_row, length(order), sprintf("%d %d %d", as.integer(pairs$to[order]), as.integer(pairs$from[order]),
                                                                 pairs$weight[order])), out)
  if (!is.null(vocab)) writeLines(pairs$row_names %||% paste0("V", seq_len(pairs$n_row)), vocab, useBytes = TRUE)
  invisible(file)
}
