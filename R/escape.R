# Text from data, written for where it goes. Names of genes, samples, classes and batches, titles, and whatever a saved
# object holds may be anything. Every writer and printer puts them through one of these functions, and nothing else into
# its markup.

# UTF-8 that all of R's functions accept: invalid bytes become "<ff>", the two noncharacters "\ufffe" and "\uffff" as
# text. Latin-1 is translated.
valid_utf8 <- function(x) {
  x <- enc2utf8(as.character(bare_text(x)))
  bad <- which(!validUTF8(x))
  x[bad] <- iconv(x[bad], "UTF-8", "UTF-8", sub = "byte")
  gsub("\uffff", "\\uffff", gsub("\ufffe", "\\ufffe", x, fixed = TRUE), fixed = TRUE)
}

# Text that R can sort, for categories: what is marked as bytes is shown by their numbers.
sortable_text <- function(x) {
  at <- if (is.character(x)) which(Encoding(x) == "bytes")
  if (length(at)) x[at] <- valid_utf8(x[at])
  x
}

# One line that shows all of the text, for consoles, figures, and lines between tabs: what controls a terminal, breaks a
# line or changes the direction of writing is written as in R, "\n" or "\u202e". NA becomes "NA".
plain_text <- function(x) replace_characters(x, hidden_characters, escaped_as_in_r)

hidden_characters <- c(1:31, 127:159, 0x61c, 0x200e:0x200f, 0x2028:0x202e, 0x2066:0x2069, 0xfeff, 0xfff9:0xfffb)

escaped_as_in_r <- function(code) {
  short <- c("\\t", "\\n", "\\r")[match(code, c(9, 10, 13))]
  ifelse(is.na(short), sprintf("\\u%04x", as.integer(code)), short)
}

# For pandoc's Markdown, its front matter in YAML, and whatever is made from these: every character with a meaning in
# any of them is a number, and so is a space that a line begins with, so that no sequence of them can be markup,
# mathematics, a link, a quotation or code; and so is every character beyond ASCII, which a locale may lack.
#' @rdname report_parts
#' @export
markdown_text <- function(x) {
  x <- replace_characters(plain_text(x), setdiff(33:126, c(48:57, 65:90, 97:122)),
                          function(code) sprintf("&#%d;", as.integer(code)))
  ascii_entities(sub("^ ", "&#32;", x))
}

# For text and quoted attributes of XML. What XML cannot hold in any form is shown as by plain_text(); the rest is read
# back as it was.
xml_text <- function(x) {
  forbidden <- c(1:8, 11:12, 14:31)
  reserved <- c(9, 10, 13, utf8ToInt("<>&\"'"))
  x <- replace_characters(x, reserved, function(code) sprintf("&#%d;", as.integer(code)))
  replace_characters(x, forbidden, escaped_as_in_r)
}

# A quoted cell of a CSV file. Spreadsheets take a cell that begins with one of these for a formula, unless an
# apostrophe is before it.
csv_text <- function(x) {
  x <- valid_utf8(x)
  formula <- grepl("^[[:space:]]*[-=+@\uff0b\uff0d\uff1d\uff20]|^[\t\r\n]", x)
  x[formula] <- paste0("'", x[formula])
  paste0("\"", gsub("\"", "\"\"", x, fixed = TRUE), "\"")
}

# `chosen`: code points; `written`: a function of those that occur. Every different text is looked at once.
replace_characters <- function(x, chosen, written) {
  x <- valid_utf8(x)
  x[is.na(x)] <- "NA"
  different <- unique(x)
  if (!any(utf8ToInt(paste(different, collapse = "")) %in% chosen)) return(x)
  replaced <- vapply(different, function(text) {
    code <- utf8ToInt(text)
    at <- which(code %in% chosen)
    if (!length(at)) return(text)
    parts <- intToUtf8(code, multiple = TRUE)
    parts[at] <- written(code[at])
    paste(parts, collapse = "")
  }, "", USE.NAMES = FALSE)
  replaced[match(x, different)]
}
