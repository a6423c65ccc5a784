# JSON (RFC 8259) as Zarr's metadata have it, in plain R. Python also writes NaN, Infinity and -Infinity, which are
# read.

# What a text says: objects become named lists, arrays lists, others single values, null NULL. An error of class
# weft_json, with a phrase that follows the file's name, where the text is something else.
parse_json <- function(text) {
  reader <- json_tokens(text)
  value <- json_value(reader, 0L)
  if (reader$at <= length(reader$tokens)) stop_json("continues after its end")
  value
}

stop_json <- function(what) stop(errorCondition(paste("is not JSON: it", what), class = "weft_json"))

# The tokens of a text, one after another, as what json_value() walks along.
json_tokens <- function(text) {
  if (!validUTF8(text)) stop_json("is not UTF-8")
  pattern <- paste0("\"(?:[^\"\\\\\\x00-\\x1f]++|\\\\.)*+\"|",
                    "-?(?:Infinity|[0-9]++(?:\\.[0-9]++)?(?:[eE][-+]?[0-9]++)?)|",
                    "NaN|true|false|null|[\\]\\[{}:,]|[ \\t\\r\\n]++|.")
  tokens <- tryCatch(regmatches(text, gregexpr(pattern, text, perl = TRUE))[[1L]],
                     error = function(e) stop_json("cannot be split into tokens"), warning = function(w) {
                       stop_json("cannot be split into tokens")
                     })
  tokens <- tokens[!grepl("^[ \t\r\n]", tokens)]
  list2env(list(tokens = tokens, kinds = substr(tokens, 1L, 1L), at = 1L), parent = emptyenv())
}

json_next <- function(reader) {
  if (reader$at > length(reader$tokens)) stop_json("ends too early")
  token <- reader$tokens[reader$at]
  reader$at <- reader$at + 1L
  token
}

json_value <- function(reader, depth) {
  if (depth > 64L) stop_json("is nested too deeply")
  token <- json_next(reader)
  if (token == "{") return(json_object(reader, depth))
  if (token == "[") return(json_array(reader, depth))
  if (startsWith(token, "\"") && nchar(token) > 1L) return(json_text(token))
  switch(token, true = return(TRUE), false = return(FALSE), null = return(NULL), "NaN" = return(NaN),
         "Infinity" = return(Inf), "-Infinity" = return(-Inf))
  if (!grepl("^-?[0-9]", token)) stop_json(sprintf("has %s", describe(token)))
  as.double(token)
}

# One value behind another, each behind its name where `named`, up to the token `end`.
json_items <- function(reader, depth, end, named) {
  values <- list()
  names <- character()
  if (reader$at <= length(reader$tokens) && reader$tokens[reader$at] == end) {
    reader$at <- reader$at + 1L
    return(list(values, names))
  }
  repeat {
    if (named) {
      token <- json_next(reader)
      if (!startsWith(token, "\"") || nchar(token) < 2L) stop_json("has a value without a name")
      names[length(names) + 1L] <- json_text(token)
      if (json_next(reader) != ":") stop_json("lacks a colon")
    }
    value <- json_value(reader, depth + 1L)
    values[length(values) + 1L] <- list(value)
    token <- json_next(reader)
    if (token == end) return(list(values, names))
    if (token != ",") stop_json("lacks a comma")
  }
}

json_array <- function(reader, depth) json_items(reader, depth, "]", FALSE)[[1L]]

json_object <- function(reader, depth) {
  items <- json_items(reader, depth, "}", TRUE)
  if (anyDuplicated(items[[2L]])) stop_json("has a duplicated name")
  stats::setNames(items[[1L]], items[[2L]])
}

# The text between quotation marks, with what stands behind backslashes.
json_text <- function(token) {
  text <- substr(token, 2L, nchar(token) - 1L)
  if (!grepl("\\", text, fixed = TRUE)) return(text)
  parts <- regmatches(text, gregexpr("\\\\u[0-9a-fA-F]{4}|\\\\.|[^\\\\]+", text, perl = TRUE))[[1L]]
  codes <- lapply(parts, json_codes)
  codes <- unlist(codes)
  high <- which(codes >= 0xD800 & codes < 0xDC00)
  if (length(high)) { # pairs stand for what 16 bits do not hold
    low <- codes[high + 1L]
    if (anyNA(low) || any(low < 0xDC00 | low >= 0xE000)) stop_json("has an incomplete surrogate pair")
    codes[high] <- 0x10000 + (codes[high] - 0xD800) * 0x400 + low - 0xDC00
    codes <- codes[-(high + 1L)]
  }
  if (any(codes == 0 | codes >= 0xD800 & codes < 0xE000)) stop_json("has an incomplete surrogate pair")
  intToUtf8(codes)
}

json_codes <- function(part) {
  if (!startsWith(part, "\\")) return(utf8ToInt(part))
  if (startsWith(part, "\\u") && nchar(part) == 6L) return(strtoi(substring(part, 3L), 16L))
  code <- c("\"" = 34L, "\\" = 92L, "/" = 47L, b = 8L, f = 12L, n = 10L, r = 13L, t = 9L)[substring(part, 2L)]
  if (is.na(code)) stop_json(sprintf("has %s", describe(part)))
  unname(code)
}
