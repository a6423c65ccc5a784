# The figures of the house beside their limits: files in a folder, lines of functions, comments above them, identifiers
# of one letter, arguments of R functions, formatting, tables of engines. Exit status 1 where a figure is above its limit.
# Usage: Rscript tools/house.R [names]    names: lists the functions without a comment, too
#
# clang-format puts the braces of a function's body at the beginning of a line, by which functions are found.
sources <- list.files("src", "[.](c|h|cu|cuh)$", recursive = TRUE, full.names = TRUE)
lines <- lapply(stats::setNames(nm = sources), readLines, encoding = "UTF-8", warn = FALSE)

# Rows: file, name, first (of the signature), length (of signature and body), said (whether a comment stands above).
functions_of <- function(file) {
  text <- lines[[file]]
  opens <- which(text == "{")
  closes <- which(text == "}" | text == "};")
  rows <- lapply(opens, function(open) {
    close <- closes[closes > open][1L]
    first <- open - 1L
    while (first > 1L && grepl("[^;}/]$", text[first - 1L]) && !grepl("^(#|/[*]| [*]|$)", text[first - 1L])) {
      first <- first - 1L
    }
    signature <- paste(text[first:(open - 1L)], collapse = " ")
    if (is.na(close) || !grepl("\\(", signature) || grepl("^(enum|struct|union|typedef)", signature)) return(NULL)
    name <- regmatches(signature, regexpr("[A-Za-z_][A-Za-z_0-9]*(?=\\()", signature, perl = TRUE))
    above <- text[seq_len(first - 1L)]
    lead <- "^(template|__global__|__launch_bounds__|static)" # lines of a signature
    above <- trimws(utils::tail(above[nzchar(above) & !grepl(lead, above)], 1L))
    data.frame(file, name = c(name, "?")[1L], first, length = close - first + 1L,
               said = length(above) > 0L && grepl("^/[*]|[*]/$", above))
  })
  do.call(rbind, rows)
}
functions <- do.call(rbind, lapply(sources, functions_of))
long <- functions[functions$length > 15L, ]

# Identifiers without comments, strings and preprocessor lines.
code <- unlist(lapply(lines, function(text) {
  text <- gsub("/[*].*?[*]/", "", paste(text, collapse = "\n"), perl = TRUE)
  text <- gsub("(?s)/[*].*?[*]/", "", text, perl = TRUE)
  gsub("//[^\n]*|\"[^\"\n]*\"", "", text)
}))
identifiers <- unlist(regmatches(code, gregexpr("\\b[A-Za-z_][A-Za-z_0-9]*\\b", code)))
letters_used <- identifiers[nchar(identifiers) == 1L & !identifiers %in% c("n", "p", "k", "i", "j", "x", "y", "w")]
words <- length(grep("^(most|least)_", identifiers, ignore.case = TRUE))

unformatted <- function() {
  if (!nzchar(Sys.which("clang-format"))) return(NA)
  version <- system2("clang-format", "--version", stdout = TRUE)
  if (!grepl("version 14[.]", version)) return(NA) # another one breaks other lines
  status <- system2("clang-format", c("--dry-run", "--Werror", "--ferror-limit=1", sources), stdout = FALSE,
                    stderr = FALSE)
  status
}

# Names of the arguments of each R function, without `...`.
arguments <- lapply(unlist(lapply(lapply(list.files("R", full.names = TRUE), parse), as.list)), function(e) {
  value <- if (is.call(e) && identical(e[[1L]], as.name("<-"))) e[[3L]]
  if (is.call(value) && identical(value[[1L]], as.name("function"))) setdiff(names(value[[2L]]), "...")
})
how <- c("backend", "threads", "devices", "distributed", "progress", "verbose") # what `run` says, see weft_run()

share <- function(part, all) round(100 * part / all, 1L)
figures <- list( # figure, limit
  "files in the largest folder of src" = c(max(table(dirname(sources))), 20),
  "functions over 60 lines" = c(sum(functions$length > 60L), 50),
  "the longest function" = c(max(functions$length), 130),
  "functions over 15 lines without a comment above, %" = c(share(sum(!long$said), nrow(long)), 2),
  "identifiers of one letter but n, p, k, i, j, x, y, w, %" = c(share(length(letters_used), length(identifiers)), 6),
  "most_ and least_ in src, where max_ and min_ are meant" = c(words, 0),
  "R functions with more than 12 arguments" = c(sum(lengths(arguments) > 12L), 0),
  "R arguments that `run` stands for" = c(sum(unlist(arguments) %in% how), 90),
  "sources that clang-format would change (0: none)" = c(unformatted(), 0),
  "tables of engines other than engines.h has them (0: none)" = c(system2("Rscript", c("tools/engines.R", "check")), 0)
)
if ("names" %in% commandArgs(TRUE)) {
  bare <- long[!long$said, ]
  cat(sprintf("%s:%d %s (%d lines)\n", bare$file, bare$first, bare$name, bare$length), sep = "")
}
above <- vapply(figures, function(f) isTRUE(f[1L] > f[2L]), NA)
cat(sprintf("%-58s %7s  limit %-6s %s\n", names(figures), vapply(figures, function(f) format(f[1L]), ""),
            vapply(figures, function(f) format(f[2L]), ""), ifelse(above, "ABOVE", "")), sep = "")
quit(status = any(above))
