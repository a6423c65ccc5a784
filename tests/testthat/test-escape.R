# Text from data in every file that weft writes: nothing in a name adds a field, a line, markup or a formula.

nasty <- c(attacks(), broken_text())

test_that("valid_utf8() keeps what is valid and shows other bytes", {
  latin <- "\xfcber"
  Encoding(latin) <- "latin1"
  expect_identical(weft:::valid_utf8(c("a", latin, "\u4e2d", NA)), c("a", "\u00fcber", "\u4e2d", NA))
  expect_identical(weft:::valid_utf8(broken_text()), c("half <e4><b8>", "lone <ff>", "surrogate <ed><a0><80>"))
  expect_true(all(validUTF8(weft:::valid_utf8(nasty))))
  expect_identical(weft:::valid_utf8(factor(c("x", "y"))), c("x", "y"))
})

test_that("plain_text() is one line that shows every control character, and leaves the rest", {
  expect_identical(weft:::plain_text(c("a\tb", "a\nb", "a\rb", "\033[1m", "\u202ex", "\ufffe", "\u0085", NA, "")),
                   c("a\\tb", "a\\nb", "a\\rb", "\\u001b[1m", "\\u202ex", "\\ufffe", "\\u0085", "NA", ""))
  shown <- weft:::plain_text(nasty)
  expect_false(any(grepl("[[:cntrl:]]", shown)))
  fine <- c("TP53", "HLA-A", "a b", "\u00fc\u4e2d\U1f600", "<&>\"'`$\\")
  expect_identical(weft:::plain_text(fine), fine)
  expect_identical(weft:::plain_text(character()), character())
})

test_that("markdown_text() has no character that means anything in Markdown, HTML, YAML, TeX or knitr", {
  written <- weft:::markdown_text(nasty)
  expect_false(any(grepl("[^A-Za-z0-9 &#;]", gsub("[^\x01-\x7f]", "", written))))
  expect_false(any(grepl("&(?!#[0-9]+;)|(?<!&)#|(?<![0-9]);", written, perl = TRUE))) # & # ; only as parts of a number
  expect_identical(weft:::markdown_text("<a>*"), "&#60;a&#62;&#42;")
  skip_if_not_installed("rmarkdown")
  file <- withr::local_tempfile(fileext = ".Rmd")
  writeLines(c("---", sprintf("t%d: \"%s\"", seq_along(written), written), "---"), file, useBytes = TRUE)
  expect_identical(unname(unlist(rmarkdown::yaml_front_matter(file))), written)
})

test_that("pandoc shows what markdown_text() wrote, letter by letter, in text, tables, lists and front matter", {
  skip_if_not_installed("rmarkdown")
  skip_if_not(rmarkdown::pandoc_available("2.0"), "no pandoc")
  written <- weft:::markdown_text(nasty)
  input <- withr::local_tempfile(fileext = ".md")
  output <- withr::local_tempfile(fileext = ".html")
  for (form in c("text", "list", "table", "title")) {
    lines <- switch(form, text = paste0(written, "\n"), list = paste("*", written),
                    title = unlist(lapply(written, function(text) c(
      "---", sprintf("title: \"%s\"", text), "---", "", paste("x", text, "\n")))),
      table = c("| a |", "|---|", sprintf("| %s |", written)))
    writeLines(enc2utf8(lines), input, useBytes = TRUE)
    rmarkdown::pandoc_convert(input, to = "html", from = "markdown+autolink_bare_uris+tex_math_single_backslash",
                              output = output, options = "--wrap=none")
    page <- paste(readLines(output, encoding = "UTF-8", warn = FALSE), collapse = "\n")
    expect_false(grepl("<(script|img|a|em|strong|code|pre|h1|math|sup|sub|blockquote|br|span|ol)[ >]", page))
    text <- gsub("&#39;", "'", gsub("&quot;", "\"", gsub("&gt;", ">", gsub("&lt;", "<", gsub("<[^>]*>", "", page))),
                                    fixed = TRUE))
    text <- gsub("&amp;", "&", text, fixed = TRUE)
    names <- trimws(weft:::plain_text(nasty))
    for (name in names) expect_true(grepl(name, text, fixed = TRUE), info = paste(form, name))
  }
})

test_that("xml_text() is read back by another program", {
  file <- withr::local_tempfile(fileext = ".xml")
  written <- weft:::xml_text(nasty)
  writeLines(c("<?xml version=\"1.0\" encoding=\"UTF-8\"?>", "<r>", sprintf("<n a=\"%s\">%s</n>", written, written),
               "</r>"), file,
             useBytes = TRUE)
  read <- ask_python(c("import sys, xml.dom.minidom",
                       "for n in xml.dom.minidom.parse(sys.argv[1]).getElementsByTagName('n'):",
                       "  t = n.firstChild.data if n.firstChild else ''", "  assert t == n.getAttribute('a')",
                       "  print(t.replace('\\\\', '\\\\\\\\').replace('\\n', '\\\\n').replace('\\r', '\\\\r'))"), file)
  forbidden <- grepl("[\a\u001b\ufffe]", weft:::valid_utf8(nasty))
  expected <- gsub("\n", "\\n", gsub("\\", "\\\\", weft:::valid_utf8(nasty), fixed = TRUE), fixed = TRUE)
  expect_identical(read[!forbidden], expected[!forbidden])
  expect_identical(gsub("\\\\", "\\", read[forbidden], fixed = TRUE), weft:::plain_text(nasty)[forbidden])
})

test_that("csv_text() is one quoted cell, and no formula", {
  file <- withr::local_tempfile(fileext = ".csv")
  writeLines(c("a,b", paste(weft:::csv_text(nasty), "1", sep = ",")), file, useBytes = TRUE)
  read <- utils::read.csv(file, encoding = "UTF-8", quote = "\"", strip.white = FALSE)
  expect_identical(nrow(read), length(nasty))
  expect_true(all(read$b == 1))
  expect_false(any(grepl("^[[:space:]]*[-=+@]", read$a)))
  expect_identical(sub("^'(?=\\s*[-=+@]|[\t\n\r])", "", read$a, perl = TRUE), weft:::valid_utf8(nasty))
  expect_identical(weft:::csv_text(c("=1", "\t=1", "a=1", "-", "\uff1dx", "x\"y")),
                   c("\"'=1\"", "\"'\t=1\"", "\"a=1\"", "\"'-\"", "\"'\uff1dx\"", "\"x\"\"y\""))
})

# ---- whole files ----

named_network <- function(names) {
  p <- length(names)
  m <- matrix(0.01, p, p, dimnames = list(names, names))
  m[cbind(seq_len(p - 1), seq_len(p)[-1])] <- m[cbind(seq_len(p)[-1], seq_len(p - 1))] <- seq_len(p - 1) / 3
  diag(m) <- 0
  mi_network(m, "relnet", threshold = 0.1)
}

test_that("SIF has a line per edge and three fields a line, whatever the names are", {
  net <- named_network(nasty)
  file <- withr::local_tempfile(fileext = ".sif")
  write_network(net, file)
  lines <- readLines(file, encoding = "UTF-8")
  expect_length(lines, length(nasty) - 1)
  fields <- strsplit(lines, "\t", fixed = TRUE)
  expect_true(all(lengths(fields) == 3))
  expect_setequal(unlist(lapply(fields, `[`, c(1, 3))), weft:::plain_text(nasty))
  alike <- named_network(c("a\tb", "a\\tb", "c"))
  expect_error(write_network(alike, file), "must differ", class = "weft_error_input")
  lonely <- mi_network(matrix(0, 3, 3, dimnames = rep(list(c("a pp b", "c", "d")), 2)), "relnet", threshold = 1)
  write_network(lonely, file)
  expect_identical(readLines(file), c("a pp b\t", "c\t", "d\t"))
})

test_that("GraphML is well-formed and reads back, whatever the names are", {
  net <- named_network(nasty)
  file <- withr::local_tempfile(fileext = ".graphml")
  write_network(net, file)
  read <- ask_python(c("import sys, xml.dom.minidom", "d = xml.dom.minidom.parse(sys.argv[1])",
                       "n, e = d.getElementsByTagName('node'), d.getElementsByTagName('edge')", "print(len(n), len(e))",
                       "data = lambda x: x.getElementsByTagName('data')[0].firstChild.data",
                       "for x in n: print(data(x).encode('unicode_escape').decode())",
                       "for x in e: print(data(x))"), file)
  p <- length(nasty)
  expect_identical(read[1], paste(p, p - 1))
  expect_length(unique(read[1 + seq_len(p)]), p)
  expect_identical(as.double(read[-seq_len(1 + p)]), as.data.frame(net)$weight) # thirds: all digits are there
})

test_that("CSV has a row per edge, and text that is no formula", {
  net <- named_network(nasty)
  file <- withr::local_tempfile(fileext = ".csv")
  write_network(net, file)
  read <- utils::read.csv(file, encoding = "UTF-8")
  edges <- as.data.frame(net)
  expect_identical(nrow(read), nrow(edges))
  expect_identical(read$weight, edges$weight)
  expect_false(any(grepl("^[[:space:]]*[-=+@]", c(read$from, read$to))))
})

test_that("files are written where they should be, or an error says why not", {
  net <- named_network(c("a", "b", "c"))
  folder <- withr::local_tempdir()
  expect_error(write_network(net, folder, "sif"), "is a folder", class = "weft_error_input")
  expect_error(write_network(net, file.path(folder, "no", "x.sif")), "must exist", class = "weft_error_input")
  expect_error(write_network(net, NA_character_), "one path", class = "weft_error_input")
  expect_error(write_network(net), "`file` must be given", class = "weft_error_input")
  expect_error(write_network(file = "x.sif"), "`x` must be given", class = "weft_error_input")
  infinite <- named_network(c("a", "b", "c"))
  infinite[1, 2] <- infinite[2, 1] <- Inf
  file <- file.path(folder, "n.graphml")
  write_network(infinite, file)
  expect_match(readLines(file), ">INF<", all = FALSE)
  skip_on_os("windows")
  skip_if(Sys.info()[["effective_user"]] == "root" && file.access("/proc/version", 2) == 0, "root may write anywhere")
  expect_error(write_network(net, "/proc/version", "sif"), "must be writable", class = "weft_error_input")
})
