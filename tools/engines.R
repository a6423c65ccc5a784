# Writes the tables of engines in src/<room>/README.md from src/<room>/engines.h, between the two marks there.
# Usage: Rscript tools/engines.R [check]    check: writes nothing; exit status 1 where a table is not that of its sheet
quoted <- "\"(?:[^\"\\\\]|\\\\.)*\""

# The strings of each row ENGINE(ID, ...); neighbouring ones are one.
rows_of <- function(file) {
  text <- gsub("\\\\\n", " ", paste(readLines(file, encoding = "UTF-8"), collapse = "\n"))
  text <- gsub("(?<!\\\\)\"\\s+\"", "", text, perl = TRUE)
  rows <- regmatches(text, gregexpr(sprintf("ENGINE\\([A-Z_]+(,\\s*%s)+\\)", quoted), text, perl = TRUE))[[1L]]
  lapply(rows, function(row) {
    column <- regmatches(row, gregexpr(quoted, row, perl = TRUE))[[1L]]
    gsub("\\\\(.)", "\\1", substr(column, 2L, nchar(column) - 1L))
  })
}

table_of <- function(rows) {
  head <- c("engine", "where it is", "operation", "runs on", "fits", "gain, and the command", "chosen in")
  used <- vapply(seq_along(head), function(k) any(nzchar(vapply(rows, `[[`, "", k))), NA)
  line <- function(columns) paste0("| ", paste(columns[used], collapse = " | "), " |")
  c(line(head), paste0("|", strrep("---|", sum(used))), vapply(rows, line, ""))
}

checks <- identical(commandArgs(TRUE), "check")
other <- character()
for (sheet in Sys.glob("src/*/engines.h")) {
  file <- file.path(dirname(sheet), "README.md")
  text <- readLines(file, encoding = "UTF-8")
  marks <- match(c("<!-- from engines.h by tools/engines.R -->", "<!-- end -->"), text)
  if (anyNA(marks)) stop(file, " lacks the marks between which the engines stand")
  rows <- rows_of(sheet)
  if (!length(rows) || any(lengths(rows) != 7L)) stop(sheet, " has a row that is not of an id and seven strings")
  now <- c(text[seq_len(marks[1L])], "", table_of(rows), "", text[marks[2L]:length(text)])
  if (identical(now, text)) next
  other <- c(other, file)
  if (!checks) writeLines(now, file, useBytes = TRUE)
}
if (length(other)) {
  cat(if (checks) "Not the engines of engines.h: run `Rscript tools/engines.R`:" else "Written:", other, sep = "\n  ")
}
quit(status = checks && length(other) > 0L)
