# options_given(name = default, ...): what `--name value` and `--name=value` on the command line say, as text.
options_given <- function(..., words = commandArgs(TRUE)) {
  given <- list(...)
  words <- unlist(strsplit(words, "=", fixed = TRUE))
  if (length(words) %% 2L) stop("options come as --name value")
  for (k in seq_len(length(words) %/% 2L)) {
    name <- sub("^--", "", words[2L * k - 1L])
    if (!name %in% names(given)) stop("there is no option --", name)
    given[[name]] <- words[2L * k]
  }
  given
}
