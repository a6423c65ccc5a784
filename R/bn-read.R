#' Read a network from a file
#'
#' `bn_read()` reads a categorical network in one of the formats of the Bayesian network repositories: BIF, Hugin's NET,
#' and Microsoft's DSC. The shortest call is `bn_read("file.bif")`. The result is a network like from [bn_fit()]:
#' [bn_sample()], [bn_log_lik()] and `predict()` accept it, and [bn_compare()] accepts its graph as the truth.
#'
#' Nothing in a file is executed. Nodes must be declared before they are used as parents. Every combination of the
#' states of the parents needs probabilities that sum to 1 within 0.001; they are then scaled to sum to 1 exactly.
#' Properties, labels and positions are ignored. Errors give the line number.
#'
#' @param file the name of the file. It may be compressed with gzip, bzip2 or xz.
#' @param format `"bif"`, `"net"` or `"dsc"`; by default, it is inferred from the extension (before `.gz`, `.bz2` or
#'   `.xz`).
#' @return An object of class `weft_bn_fit`; see [bn_fit()].
#' @export
#' @examples
#' file <- tempfile(fileext = ".bif")
#' writeLines(c(
#'   "network example { }",
#'   "variable rain { type discrete [ 2 ] { yes, no }; }",
#'   "variable wet { type discrete [ 2 ] { yes, no }; }",
#'   "probability ( rain ) { table 0.2, 0.8; }",
#'   "probability ( wet | rain ) { (yes) 0.9, 0.1; (no) 0.05, 0.95; }"
#' ), file)
#' fit <- bn_read(file)
#' fit$nodes$wet$probability
#' bn_sample(fit, 3, seed = 1)
bn_read <- function(file, format = NULL) {
  need_args("file")
  file <- readable_file(file, "file")
  if (is.null(format)) {
    format <- sub(".*[.]", "", sub("[.](gz|bz2|xz)$", "", tolower(basename(file))))
    if (!format %in% names(bn_formats)) {
      abort_input("`format` must be given if it cannot be inferred from the name of the file.",
                  x = sprintf("The file name ends in `%s`.", format),
                  i = paste0("Known formats: ", label_some(names(bn_formats)), "."))
    }
  }
  format <- check_choice(format, names(bn_formats), "format")
  tokens <- bn_tokens(read_text(file), bn_formats[[format]], file)
  memory_errors(network_of(read_parts(tokens, bn_formats[[format]]), tokens))
}

read_text <- function(file) {
  bytes <- whole_bytes(file, "file", "the name of a file that can be read", 2^29)
  if (any(bytes == 0L)) abort_input("`file` must be a text file.", x = sprintf("`%s` contains NUL bytes.", file))
  text <- rawToChar(bytes)
  Encoding(text) <- "UTF-8"
  if (!validUTF8(text)) text <- iconv(text, "latin1", "UTF-8")
  text
}

# ---- tokens ----

# A reader of the words, quoted strings and signs of a file, one after another.
bn_tokens <- function(text, format, file) {
  comment <- paste0("/[*][\\s\\S]*?[*]/|//[^\n]*", format$comment)
  at <- gregexpr(sprintf("%s|\"[^\"]*\"|%s|\\S", comment, format$words), text, perl = TRUE)[[1L]]
  token <- if (at[1L] > 0) regmatches(text, list(at))[[1L]] else character()
  breaks <- gregexpr("\n", text, fixed = TRUE)[[1L]]
  line <- findInterval(as.integer(at), breaks[breaks > 0]) + 1L
  kept <- !grepl(sprintf("^(%s)", comment), token, perl = TRUE)
  reader <- list2env(list(token = token[kept], line = line[kept], at = 1L, file = file))
  reader$quoted <- grepl("^\"", reader$token)
  reader$value <- gsub("^\"|\"$", "", reader$token)
  # where each sign comes next, from every token on
  reader$coming <- lapply(stats::setNames(nm = c(";", ")", "{", "}")), function(sign) {
    at <- ifelse(reader$token == sign & !reader$quoted, seq_along(reader$token), NA_integer_)
    at[is.na(at)] <- .Machine$integer.max
    rev(cummin(rev(at)))
  })
  reader
}

fail_at <- function(r, what, line = r$line[min(r$at, length(r$line))]) {
  abort_input(sprintf("`file` must be a network in one of the formats of `bn_read()`: %s.", what),
              x = if (length(line)) sprintf("Line %d of `%s`.", line[1L], r$file) else sprintf("In `%s`.", r$file))
}

at_end <- function(r) r$at > length(r$token)
sees <- function(r, sign) !at_end(r) && !r$quoted[r$at] && r$token[r$at] == sign

take <- function(r) {
  if (at_end(r)) fail_at(r, "it ends too early")
  r$at <- r$at + 1L
  r$value[r$at - 1L]
}

take_sign <- function(r, sign) {
  if (at_end(r)) fail_at(r, sprintf("`%s` is expected", sign))
  if (!sees(r, sign)) fail_at(r, sprintf("`%s` is expected instead of `%s`", sign, r$token[r$at]))
  r$at <- r$at + 1L
}

# What stands before the sign, without commas; the sign is taken too.
take_until <- function(r, sign) {
  end <- r$coming[[sign]][r$at]
  if (is.na(end) || end == .Machine$integer.max) fail_at(r, sprintf("`%s` is missing", sign))
  at <- seq_len(end - r$at) + r$at - 1L
  r$at <- end + 1L
  r$value[at[r$quoted[at] | r$token[at] != ","]]
}

take_numbers <- function(r, sign) {
  line <- r$line[min(r$at, length(r$line))]
  words <- take_until(r, sign)
  numbers <- suppressWarnings(as.numeric(words))
  if (anyNA(numbers)) fail_at(r, sprintf("`%s` is not a number", words[is.na(numbers)][1L]), line)
  numbers
}

# Continues after the end of a block that has been opened.
skip_block <- function(r) {
  depth <- 1L
  while (depth > 0L) {
    if (sees(r, "{")) depth <- depth + 1L
    if (sees(r, "}")) depth <- depth - 1L
    take(r)
  }
}

# child | parents: without commas.
take_family <- function(r) {
  line <- r$line[min(r$at, length(r$line))]
  take_sign(r, "(")
  names <- take_until(r, ")")
  names <- names[names != "|"]
  if (!length(names)) fail_at(r, "a node is expected", line)
  list(child = names[1L], parents = names[-1L], line = line)
}

# ---- the formats: words of a file's parts, and what reads a node's states and a row of a node's table ----

# list(states: by node, families)
read_parts <- function(r, format) {
  states <- families <- list()
  while (!at_end(r)) {
    kind <- tolower(take(r))
    line <- r$line[r$at - 1L]
    if (kind == format$head) {
      format$skip_head(r)
    } else if (kind == format$node) {
      name <- take(r)
      in_block(r, function() {
        if (tolower(take(r)) != format$states) return(take_until(r, ";"))
        states <<- add_states(r, states, name, format$take_states(r), line)
        if (format$stop || sees(r, ";")) take_sign(r, ";")
      })
    } else if (kind == format$family) {
      family <- take_family(r)
      rows <- list()
      in_block(r, function() rows[[length(rows) + 1L]] <<- format$take_row(r, family))
      families <- c(families, list(c(family, list(rows = rows))))
    } else fail_at(r, sprintf("`%s` is not allowed in %s", kind, format$name), line)
  }
  list(states = states, families = families)
}

# Calls entry() until the block ends.
in_block <- function(r, entry) {
  take_sign(r, "{")
  while (!sees(r, "}")) entry()
  take_sign(r, "}")
}

in_braces <- function(r) {
  take_until(r, "{")
  take_until(r, "}")
}

bif_row <- function(r, family) {
  line <- r$line[r$at]
  if (sees(r, "(")) {
    take_sign(r, "(")
    given <- take_until(r, ")")
  } else {
    word <- tolower(take(r))
    if (word == "property") { take_until(r, ";"); return(NULL) }
    if (!word %in% c("table", "default")) fail_at(r, sprintf("`%s` is not allowed in a probability block", word), line)
    if (word == "table" && length(family$parents)) {
      fail_at(r, "a node with parents needs a row for each combination of their states, not `table`", line)
    }
    given <- if (word == "default") NULL else character()
  }
  list(given = given, values = take_numbers(r, ";"), line = line)
}

dsc_row <- function(r, family) {
  line <- r$line[min(r$at, length(r$line))]
  given <- character()
  if (sees(r, "(")) {
    take_sign(r, "(")
    given <- as.integer(round(take_numbers(r, ")"))) + 1L # states by their numbers, from 0
    take_sign(r, ":")
  }
  list(given = given, values = take_numbers(r, ";"), line = line)
}

# All of a node's table at once: the child's states vary fastest.
net_table <- function(r, family) {
  if (tolower(take(r)) != "data") {
    take_until(r, ";")
    return(NULL)
  }
  take_sign(r, "=")
  line <- r$line[r$at]
  words <- take_until(r, ";")
  numbers <- suppressWarnings(as.numeric(words[!words %in% c("(", ")")])) # nesting repeats what the order says
  if (anyNA(numbers)) fail_at(r, "a number is expected in `data`", line)
  list(given = NA, values = numbers, line = line)
}

bn_formats <- list(
  bif = list(
    name = "BIF", words = "[^][(){}|,;\"\\s]+", head = "network", node = "variable", states = "type", stop = TRUE,
    family = "probability", take_states = in_braces, take_row = bif_row,
    skip_head = function(r) {
      take_until(r, "{")
      skip_block(r)
    }
  ),
  net = list(
    name = "NET", words = "[^][(){}|,;=\"\\s]+", comment = "|%[^\n]*", head = "net", node = "node",
    states = "states", stop = TRUE,
    family = "potential", take_row = net_table,
    skip_head = function(r) {
      take_sign(r, "{")
      skip_block(r)
    },
    take_states = function(r) {
      take_sign(r, "=")
      take_sign(r, "(")
      take_until(r, ")")
    }
  ),
  dsc = list(
    name = "DSC", words = "[^][(){}|,;:=\"\\s]+", head = "belief", node = "node", states = "type", stop = FALSE,
    family = "probability", take_states = in_braces, take_row = dsc_row,
    skip_head = function(r) while (!at_end(r) && !sees(r, "node") && !sees(r, "probability")) take(r)
  )
)

add_states <- function(r, states, name, labels, line) {
  if (name %in% names(states)) fail_at(r, sprintf("node `%s` occurs twice", name), line)
  if (!length(labels) || anyDuplicated(labels) || !all(nzchar(labels))) {
    fail_at(r, sprintf("node `%s` must have different states", name), line)
  }
  states[[name]] <- labels
  states
}

# ---- the network ----

network_of <- function(found, r) {
  states <- found$states
  nodes <- names(states)
  if (!length(nodes)) fail_at(r, "it has no nodes")
  of <- vapply(found$families, `[[`, "", "child")
  if (anyDuplicated(of)) {
    again <- found$families[[anyDuplicated(of)]]
    fail_at(r, sprintf("node `%s` has probabilities twice", again$child), again$line)
  }
  for (family in found$families) {
    unknown <- setdiff(c(family$child, family$parents), nodes)
    if (length(unknown)) fail_at(r, sprintf("there is no node `%s`", unknown[1L]), family$line)
    if (anyDuplicated(c(family$child, family$parents))) {
      fail_at(r, sprintf("the family of `%s` must consist of different nodes", family$child), family$line)
    }
  }
  without <- setdiff(nodes, of)
  if (length(without)) fail_at(r, sprintf("node `%s` has no probabilities", without[1L]))
  dag <- matrix(0L, length(nodes), length(nodes), dimnames = list(from = nodes, to = nodes))
  for (family in found$families) dag[family$parents, family$child] <- 1L
  cycle <- find_cycle(dag != 0)
  if (length(cycle)) fail_at(r, paste0("it contains the cycle ", paste(nodes[cycle], collapse = " -> ")), NULL)
  tables <- lapply(found$families, function(family) family_table(family, states, nodes, r))
  names(tables) <- of
  check_fit(new_result(list(dag = dag, nodes = tables[nodes], labels = states, gaussian = FALSE, n = 0, ess = 0),
                      class = "weft_bn_fit"), "file")
}

# The probabilities of a family, the child's levels first, then its parents' in the order of the nodes.
family_table <- function(family, states, nodes, r) {
  labels <- states[c(family$child, family$parents)]
  dims <- lengths(labels, use.names = FALSE)
  columns <- prod(dims[-1L])
  if (prod(dims) > 2^26) fail_at(r, sprintf("node `%s` has more than 2^26 probabilities", family$child), family$line)
  table <- matrix(NA_real_, dims[1L], columns)
  for (row in family$rows) {
    whole <- length(row$given) == 1L && is.na(row$given)
    need <- if (whole) length(table) else dims[1L]
    if (length(row$values) != need) {
      fail_at(r, sprintf("node `%s` needs %d numbers here, but %d were found", family$child, as.integer(need),
                         length(row$values)),
              row$line)
    }
    if (whole) table <- net_order(row$values, dims)
    else if (is.null(row$given)) table[, is.na(table[1L, ])] <- row$values
    else table[, column_of(row, labels[-1L], family, r)] <- row$values
  }
  line <- family$line
  if (anyNA(table)) {
    fail_at(r, sprintf("node `%s` lacks probabilities for a combination of its parents' states", family$child), line)
  }
  totals <- colSums(table)
  if (any(table < 0) || any(abs(totals - 1) > 1e-3)) {
    fail_at(r, sprintf("the probabilities of node `%s` must be at least 0 and sum to 1, not %.6g", family$child,
                       totals[which.max(abs(totals - 1))]), line)
  }
  ranked <- order(match(family$parents, nodes))
  whole <- array(table / rep(totals, each = dims[1L]), dims, dimnames = labels)
  list(parents = family$parents[ranked], probability = aperm(whole, c(1L, 1L + ranked)))
}

# Values with the last parent varying fastest but for the child, as a matrix with the first parent fastest.
net_order <- function(values, dims) {
  turned <- array(values, c(dims[1L], rev(dims[-1L])))
  matrix(aperm(turned, c(1L, rev(seq_along(dims)[-1L]))), dims[1L])
}

column_of <- function(row, labels, family, r) {
  if (length(row$given) != length(labels)) {
    fail_at(r, sprintf("node `%s` has %d parents, not %d", family$child, length(labels), length(row$given)), row$line)
  }
  at <- vapply(seq_along(labels), function(k) {
    if (is.character(row$given)) match(row$given[k], labels[[k]])
    else if (row$given[k] %in% seq_along(labels[[k]])) as.integer(row$given[k]) else NA_integer_
  }, 0L)
  if (anyNA(at)) {
    fail_at(r, sprintf("`%s` is not a state of node `%s`", row$given[is.na(at)][1L], names(labels)[is.na(at)][1L]),
            row$line)
  }
  1 + sum((at - 1) * cumprod(c(1, lengths(labels, use.names = FALSE)))[seq_along(at)])
}
