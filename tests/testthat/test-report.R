# The report: what it holds, and that names, titles and saved objects put nothing into it but their own letters.

skip_if_not_installed("rmarkdown")
skip_if_not(rmarkdown::pandoc_available("1.12.3"), "no pandoc")
skip_on_cran()

# One analysis twice: with harmless names, and with names that attack.
analysed <- function(rename) {
  e <- weft_example("expression", n = 60, p = 60, seed = 4, missing = 0, spoilt = FALSE)
  colnames(e$x) <- rename(colnames(e$x))
  rownames(e$x) <- rename(rownames(e$x))
  class <- factor(e$class, labels = rename(c("control", "case")))
  batch <- factor(e$batch, labels = rename(c("first", "second")))
  gene_network(e$x, class, batch = batch, seed = 2, run = weft_run(progress = FALSE),
               steps = list(clusters = list(method = "irm", chains = 1, sweeps = 20), pairs = list(permutations = 9),
                            bayes = list(genes = 6, iterations = 500)))
}
made <- tempfile("made-by-code")
secret <- tempfile("secret")
writeLines("what nobody may read", secret)
nasty <- c(attacks(made, secret), broken_text())
attacking <- function(names) rep_len(if (length(names) == 2L) nasty[c(15, 1)] else nasty, length(names))
harmless <- analysed(identity)
attacked <- suppressWarnings(analysed(attacking))

# Counts of elements, names of attributes, and the text of a page, as another program sees them.
page_parts <- function(file) {
  read <- ask_python(c(
    "import sys, json, html.parser, collections",
    "class P(html.parser.HTMLParser):",
    "  def __init__(s):",
    "    super().__init__(); s.tags, s.attributes, s.text, s.skip = collections.Counter(), set(), [], 0; s.images = []",
    "  def handle_starttag(s, t, a):",
    "    s.tags[t] += 1; s.skip += t in ('script', 'style')",
    "    s.attributes |= {k for k, v in a}",
    "    s.images += [v[:22] for k, v in a if k == 'src' and t == 'img']",
    "  def handle_endtag(s, t): s.skip -= t in ('script', 'style')",
    "  def handle_data(s, d):",
    "    if not s.skip: s.text.append(d)",
    "p = P(); p.feed(open(sys.argv[1], encoding='utf-8').read())",
    "for t in ('script', 'img', 'a', 'link', 'iframe', 'object', 'embed', 'form', 'svg', 'math', 'em', 'strong',",
    "          'code', 'b', 'i', 'h1', 'sup', 'sub', 'style', 'meta', 'table'): print('tag', t, p.tags[t])",
    "for k in sorted(p.attributes): print('attribute', k)",
    "for k in p.images: print('image', k)",
    "print('text', ' '.join(''.join(p.text).split()))"
  ), file)
  list(tags = grep("^tag ", read, value = TRUE), attributes = grep("^attribute ", read, value = TRUE),
       images = sub("^image ", "", grep("^image ", read, value = TRUE)),
         text = sub("^text ", "", grep("^text ", read, value = TRUE)))
}

plain <- NULL # the parts of the harmless page

shown <- function(name) gsub(" +", " ", trimws(weft:::plain_text(name)))

test_that("the report is one file without links out", {
  file <- withr::local_tempfile(fileext = ".html")
  expect_identical(weft_report(harmless, file, author = "Author", open = FALSE), normalizePath(file))
  plain <<- page_parts(file)
  page <- paste(readLines(file, warn = FALSE), collapse = "\n")
  expect_false(grepl("(src|href)=\"https?://", page))
  for (heading in c("Data", "Components", "Outliers", "Network",
                    "Bayesian network", "Methods")) {
    expect_match(page, heading, fixed = TRUE)
  }
  expect_gte(lengths(regmatches(page, gregexpr("data:image/png;base64", page))), 8)
})

test_that("names, levels, title and author put nothing into a page but their letters", {
  file <- withr::local_tempfile(fileext = ".html")
  title <- paste(nasty, collapse = " ")
  weft_report(attacked, file, title = title, author = nasty, top = 1000, open = FALSE)
  expect_false(file.exists(made))
  page <- page_parts(file)
  # a network of small parts is drawn once more for phones where its names leave room
  but_pictures <- function(tags) grep("^tag svg ", tags, value = TRUE, invert = TRUE)
  expect_identical(but_pictures(page$tags), but_pictures(plain$tags))
  expect_identical(page$attributes, plain$attributes)
  expect_identical(unique(page$images), "data:image/png;base64,")
  expect_true(grepl(shown(title), page$text, fixed = TRUE))
  names <- shown(c(colnames(attacked$quality$x), levels(attacked$quality$class)))
  for (name in names) expect_true(grepl(name, page$text, fixed = TRUE), info = name)
})

test_that("in other formats, too, names are only text", {
  skeleton <- weft:::report_template(NULL)
  params <- list(fit = attacked, title = weft:::markdown_text("`r 1` \"t\""), author = "", top = 1000)
  folder <- withr::local_tempdir()
  written <- function(format, ending) {
    file.copy(skeleton, file.path(folder, "report.Rmd"), overwrite = TRUE)
    suppressWarnings( # of options of figures that only pages have
      rmarkdown::render(file.path(folder, "report.Rmd"), format, paste0("report.", ending), params = params,
                        quiet = TRUE, envir = new.env(parent = globalenv()))
    )
  }
  file <- written(rmarkdown::md_document("markdown", preserve_yaml = TRUE), "md")
  expect_false(file.exists(made))
  again <- withr::local_tempfile(fileext = ".html")
  rmarkdown::pandoc_convert(file, to = "html", from = "markdown", output = again)
  page <- page_parts(again)
  expect_identical(intersect(page$tags, paste("tag", c("script", "iframe", "math", "em", "object", "link"), "0")),
                   paste("tag", c("script", "link", "iframe", "object", "math", "em"), "0"))
  word <- written(rmarkdown::word_document(), "docx")
  expect_false(file.exists(made))
  read <- ask_python(c(
    "import sys, zipfile, xml.dom.minidom as m", "z = zipfile.ZipFile(sys.argv[1])",
    "d = m.parseString(z.read('word/document.xml'))", "all = d.getElementsByTagName('*')",
    "others = [n for n in z.namelist() if n.startswith('word/media') and not n.endswith('.png')]",
    "print(len(d.getElementsByTagName('m:oMath')), len(others))",
    "part = lambda t: t.firstChild.data if t.tagName == 'w:t' and t.firstChild else ' '",
    "print(' '.join(''.join(part(t) for t in all if t.tagName in ('w:t', 'w:p')).split()))"), word)
  expect_identical(read[1], "0 0")
  for (name in shown(colnames(attacked$quality$x))) expect_true(grepl(name, read[2], fixed = TRUE), info = name)
})

test_that("a saved object with code in its text runs none of it", {
  code <- sprintf("\"\nkey: !r file.create('%s')\nother: \"`r file.create('%s')`", made, made)
  fit <- harmless
  fit$version <- code
  fit$steps$note[] <- code
  fit$steps$backend[] <- "![](x.png)<script>"
  fit$quality$log$what[] <- code
  attr(fit$network, "method") <- code
  attr(fit$ranking, "unit") <- "<script>"
  fit$sitrep$R <- paste("``````", "<script>", sep = "\n")
  fit$components$method <- code
  fit$call <- str2lang(sprintf("gene_network(file.create('%s'), \"``` <script>\")", made))
  attr(fit$date, "tzone") <- code
  file <- withr::local_tempfile(fileext = ".html")
  suppressWarnings(weft_report(fit, file, author = "Author", open = FALSE))
  expect_false(file.exists(made))
  expect_identical(page_parts(file)$tags, plain$tags)
  fit <- harmless
  fit$date <- code
  expect_error(weft_report(fit, file, open = FALSE), "part `date` is damaged", class = "weft_error_input")
  fit <- harmless
  fit$call <- structure(list(), class = "no_call")
  expect_error(weft_report(fit, file, open = FALSE), "part `call` is damaged", class = "weft_error_input")
})

test_that("a part that another function made is named, not called", {
  loud <- function(...) stop("called")
  registerS3method("plot", "weft_test_foreign", loud, envir = asNamespace("graphics"))
  registerS3method("print", "weft_test_foreign", loud, envir = asNamespace("base"))
  registerS3method("as.data.frame", "weft_test_foreign", loud, envir = asNamespace("base"))
  fit <- harmless
  fit$network <- structure(list(1), class = c("weft_test_foreign", "weft_network"))
  expect_output(print(fit), "network +a result of class weft_test_foreign")
  expect_error(as.data.frame(fit, "edges"), "done by another function", class = "weft_error_input")
  expect_error(plot(fit, "network"), "done by another function", class = "weft_error_input")
  file <- withr::local_tempfile(fileext = ".html")
  weft_report(fit, file, open = FALSE)
  expect_match(paste(readLines(file, warn = FALSE), collapse = "\n"), "done by a function of the user", fixed = TRUE)
})

test_that("templates of one's own get the parameters that they declare, and arguments are checked", {
  folder <- withr::local_tempdir()
  template <- file.path(folder, "own.Rmd")
  file <- file.path(folder, "own.html")
  own <- function(...) writeLines(c("---", ..., "output: html_document", "params:", "  fit: null", "---", "",
                                    "`r nrow(params$fit$steps)` steps"),
                                  template)
  own("title: \"Own\"")
  weft_report(harmless, file, template = template, open = FALSE)
  expect_match(readLines(file, warn = FALSE), "8 steps", all = FALSE, fixed = TRUE)
  for (bytes in list(as.raw(c(65, 0, 66)), as.raw(c(0xff, 0xfe, 10)))) {
    writeBin(bytes, template)
    expect_error(weft_report(harmless, file, template = template, open = FALSE), "not readable text in UTF-8",
                 class = "weft_error_input")
  }
  writeLines("no parameters", template)
  expect_error(weft_report(harmless, file, template = template, open = FALSE), "declare the parameter `fit`",
               class = "weft_error_input")
  writeLines(c("---", "params:", "  fit: null", "---", "`r stop('an error of my own')`"), template)
  expect_error(weft_report(harmless, file, template = template, open = FALSE), "an error of my own",
               class = "weft_error_input")
  expect_error(weft_report(harmless, "report.txt"), "ends in .html", class = "weft_error_input")
  expect_error(weft_report(harmless, "report.html", format = "pdf"), "ends in .pdf", class = "weft_error_input")
  expect_error(weft_report(harmless, file, format = "doc"), "`format` must be one of", class = "weft_error_input")
  expect_error(weft_report(harmless, file, sets = list(1)), "`sets` must be a named list", class = "weft_error_input")
  expect_error(weft_report(harmless, "/no/such/folder/report.html"), "must exist", class = "weft_error_input")
  expect_error(weft_report(harmless, folder), "is a folder", class = "weft_error_input")
  expect_error(weft_report(harmless, file, title = NA), "`title` must be one text", class = "weft_error_input")
  expect_error(weft_report(harmless, file, author = 1), "`author` must be names", class = "weft_error_input")
  expect_error(weft_report(harmless, file, template = folder), "is a folder", class = "weft_error_input")
  expect_error(weft_report(), "`fit` must be given", class = "weft_error_input")
})

test_that("a ranking in a document of one's own is a table of letters, too", {
  x <- as.data.frame(matrix(weft:::draws("below", 30 * length(nasty), a = 2, key = 1), 30))
  names(x) <- nasty
  table <- paste(knitr::knit_print(mi_rank(x, rep(1:2, 15)), n = 100), collapse = "\n")
  for (name in nasty) expect_true(grepl(weft:::markdown_text(name), table, fixed = TRUE), info = name)
  expect_false(grepl("[<`$*]|\\]\\(", gsub("(?m)^Table: .*$", "", table, perl = TRUE)))
})

test_that("errors and printed pages cannot write to the terminal", {
  expect_false(any(grepl("[\a\u001b\u202e]", utils::capture.output(print(attacked)))))
  x <- attacked$quality$x
  colnames(x)[1:2] <- "twice\033[2J"
  said <- tryCatch(write_network(structure(diag(2), dimnames = rep(list(colnames(x)[1:2]), 2),
                                           class = c("weft_network", "matrix", "array"),
                                           format = 1L, method = "x"), "x.sif"), error = conditionMessage)
  expect_match(said, "twice\\u001b[2J", fixed = TRUE)
})

test_that("what weft itself says is ASCII, which every locale has", {
  lines <- c(utils::capture.output(print(harmless)), weft:::methods_text(harmless),
             weft:::network_words(harmless, weft:::report_edges(harmless$network)))
  expect_identical(lines, iconv(lines, "UTF-8", "ASCII"), ignore_attr = TRUE)
})

test_that("findings are sure, at most five, and lead to their evidence", {
  found <- weft:::findings_of(harmless)
  expect_lte(nrow(found), 5)
  expect_identical(found$strength, found$strength[order(match(found$strength, names(weft:::strengths)))])
  expect_match(found$text[found$section == "ranking"],
               "genes are differentially expressed between control and case \\(FDR 0.05\\). The top gene is ")
  page <- weft:::findings_page(harmless)
  expect_match(page[1], "^- \\[strong\\]\\{\\.strength \\.strong\\} .*\\[Evidence\\]\\(#[a-z]+\\)$")
  file <- withr::local_tempfile(fileext = ".html")
  weft_report(harmless, file, open = FALSE)
  html <- paste(readLines(file, warn = FALSE), collapse = " ")
  for (section in found$section) expect_match(html, sprintf("id=\"%s\"", section), fixed = TRUE)
  expect_match(html, "<span class=\"strength strong\">strong</span>", fixed = TRUE)
})

test_that("noise is no finding", {
  for (key in 1:3) {
    noise <- matrix(weft:::draws("normal", 40 * 30, key = key), 40,
                    dimnames = list(paste0("s", 1:40), paste0("g", 1:30)))
    class <- rep(c("one", "two"), 20)
    fit <- gene_network(noise, class, seed = key, run = weft_run(progress = FALSE),
                        steps = list(bayes = FALSE, clusters = list(method = "irm", chains = 2, sweeps = 40)))
    found <- weft:::findings_of(fit)
    expect_false("strong" %in% found$strength)
    expect_gte(length(attr(found, "in_vain")) + length(attr(found, "open")) + nrow(found), 5)
  }
  expect_match(attr(found, "in_vain"), "expression between one and two \\(30 genes tested\\)", all = FALSE)
  expect_match(utils::tail(weft:::findings_page(fit), 1), "^\\*\\*Not found:\\*\\* ")
})

test_that("what is as good as the last one named is said", {
  expect_identical(weft:::best_names(c("a", "b", "c", "d", "e"), c(3, 2, 1, 1, 0)),
                   "a, b and c (tied with 1 more)")
  expect_identical(weft:::best_names(c("a", "b"), 2:1), "a and b")
  expect_identical(weft:::best_names("a", 1), "a")
})
