# The writing of the report. A page has HTML of its own, with tables that can be sorted and searched (inst/report);
# other formats get Markdown. All text from data passes through html_text() or markdown_text().

on_page <- function() startsWith(knitr::pandoc_to() %||% "", "html")

# Text of a page: nothing in it is markup, for HTML or for the Markdown around it, in ASCII, so that it is the same in
# every locale.
html_text <- function(x) {
  x <- replace_characters(plain_text(x), c(utf8ToInt("<>&\"'`")), function(code) sprintf("&#%d;", as.integer(code)))
  ascii_entities(x)
}

# Characters beyond ASCII as numbers, which HTML and Markdown read back.
ascii_entities <- function(x) {
  other <- which(grepl("[^ -~]", x, useBytes = TRUE))
  x[other] <- vapply(x[other], function(text) {
    code <- utf8ToInt(text)
    paste(ifelse(code < 127L, intToUtf8(code, multiple = TRUE), sprintf("&#%d;", code)), collapse = "")
  }, "", USE.NAMES = FALSE)
  x
}

raw_html <- function(...) cat("", "```{=html}", ..., "```", "", sep = "\n")

# The page's own style and script, which no other format has.
style_section <- function() {
  if (on_page()) raw_html("<style>", report_asset("report.css"), "</style>")
}

script_section <- function() {
  if (on_page()) raw_html("<script>", report_asset("report.js"), "</script>")
}

report_asset <- function(name) readLines(system.file("report", name, package = "weft", mustWork = TRUE),
                                         encoding = "UTF-8")

report_paragraph <- function(...) {
  text <- paste(c(...), collapse = " ")
  if (nzchar(text)) cat("", running_text(text), "", sep = "\n")
}

# Sentences, in which no line break separates an arrow from the name that it points to.
running_text <- function(x) gsub(" &#45;&#62; ", " &#8594;&#160;", markdown_text(x), fixed = TRUE)

# ---- tables ----

# A data frame as a table in Markdown, names and values as they are.
report_table <- function(d, caption, rows = nrow(d), digits = 3) {
  d <- utils::head(as.data.frame(d), rows)
  shown <- table_text(d, digits)
  number <- vapply(d, is.numeric, NA)
  shown[] <- lapply(shown, markdown_text)
  knitr::kable(shown, format = "pipe", caption = markdown_text(caption), row.names = FALSE,
               align = ifelse(number, "r", "l"), col.names = markdown_text(names(d)))
}

# On a page all rows (500 at most), of which a script shows the first ones; else these. Columns named in `minor` are not
# shown on phones. links: what databases know genes by, under the names in the column `gene`. more: how to read the
# table, folded away.
put_table <- function(d, caption, name, rows = 20, minor = character(), links = NULL, more = NULL) {
  d <- as.data.frame(d, optional = TRUE)
  most <- 500L
  if (nrow(d) > most) caption <- sprintf("%s The table shows the first %d of %s rows.", caption, most,
                                         thousands(nrow(d)))
  if (!on_page()) return(cat("", report_table(d, paste(c(caption, more), collapse = " "), rows), "", sep = "\n"))
  raw_html(html_table(utils::head(d, most), caption, name, rows, minor, links, more))
}

# A sentence or two on how to read a figure or a table, folded away so that captions stay short.
how_to_read <- function(text) {
  if (!length(text)) return(NULL)
  sprintf("<details class=\"how\"><summary>How to read this</summary><p>%s</p></details>", html_text(text))
}

# A whole table inside the page, as a CSV file that it can be saved as. Other formats have no such thing.
put_download <- function(d, title, name) {
  if (!on_page()) return(invisible())
  file <- tempfile(paste0(name, "-"), tmpdir = normalizePath("."), fileext = ".csv")
  write_text(whole_csv(d), file)
  uri <- sub("^data:[^,]*,", "data:text/csv;charset=utf-8;base64,", knitr::image_uri(file))
  raw_html(sprintf("<p class=\"file\"><a download=\"%s.csv\" href=\"%s\">%s</a> (CSV, %s)</p>", name, uri,
                   html_text(title), bytes_text(file.size(file))))
}

# Seven digits of numbers; text that spreadsheets would take for a formula is marked as text.
whole_csv <- function(d) {
  cells <- lapply(d, function(column) {
    if (!is.numeric(column)) return(ifelse(is.na(column), "", csv_text(as.character(column))))
    text <- formatC(column, digits = 7, format = "g", width = 1L, decimal.mark = ".")
    ifelse(is.na(column), "", text)
  })
  c(paste(csv_text(names(d)), collapse = ","), if (nrow(d)) do.call(paste, c(unname(cells), sep = ",")))
}

html_table <- function(d, caption, name, rows, minor = character(), links = NULL, more = NULL) {
  number <- vapply(d, is.numeric, NA)
  less <- names(d) %in% minor
  shown <- table_text(d)
  cells <- lapply(seq_along(d), function(j) {
    text <- html_text(shown[[j]])
    if (!number[j]) {
      wide <- nchar(shown[[j]], "chars") > longest_unbroken
      text[wide] <- gsub("_", "_<wbr>", text[wide], fixed = TRUE) # where names of probes may break on phones
      long <- any(nchar(shown[[j]], "chars") > 40L)
      class <- class_words(c("long", "minor")[c(long, less[j])])
      if (names(d)[j] != "gene" || is.null(links)) return(sprintf("<td%s>%s</td>", class, text))
      # what is sorted and saved is the name alone
      return(sprintf("<td%s data-v=\"%s\">%s</td>", class, html_text(shown[[j]]), linked_genes(text, links[d[[j]]])))
    }
    exact <- ifelse(is.na(d[[j]]), "", format_exact(d[[j]]))
    sprintf("<td%s data-v=\"%s\">%s</td>", class_words(c("num", if (less[j]) "minor")), exact, text)
  })
  head <- sprintf("<th scope=\"col\"%s>%s</th>",
                  vapply(seq_along(d), function(j) class_words(c("num", "minor")[c(number[j], less[j])]), ""),
                  html_text(names(d)))
  c("<figure class=\"table\">", sprintf("<figcaption>%s</figcaption>", html_text(caption)), "<div class=\"scroll\">",
    sprintf("<table data-name=\"%s\" data-first=\"%d\">", name, as.integer(rows)), "<thead><tr>", head, "</tr></thead>",
    "<tbody>", if (nrow(d)) paste0("<tr>", do.call(paste0, cells), "</tr>"), "</tbody></table>", "</div>",
    how_to_read(more), "</figure>")
}

# Names of genes with links to GeneCards and Ensembl, where what these databases know them by is plain letters.
linked_genes <- function(text, known) {
  fine <- !is.na(known) & grepl("^[A-Za-z][A-Za-z0-9.-]{1,24}$", known)
  link <- function(address, shown, title) {
    sprintf("<a href=\"%s%s\" target=\"_blank\" rel=\"noopener noreferrer\" title=\"%s\">%s</a>", address, known, title,
            shown)
  }
  ifelse(fine, paste(link("https://www.genecards.org/cgi-bin/carddisp.pl?gene=", text, "GeneCards"),
                     link("https://www.ensembl.org/Multi/Search/Results?q=", "<small>Ensembl</small>", "Ensembl")),
         text)
}

longest_unbroken <- 14L

class_words <- function(words) if (length(words)) sprintf(" class=\"%s\"", paste(words, collapse = " ")) else ""

format_exact <- function(v) vapply(v, function(one) format(one, digits = 7L, trim = TRUE, decimal.mark = "."), "")

# What readers see: three digits of the greatest of a column and as many decimals for all, probabilities with their own
# words.
table_text <- function(d, digits = 3) {
  number <- vapply(d, is.numeric, NA)
  probability <- number & grepl("^(p|q|p_.*|q_value|FDR|shape q)$", names(d))
  d[] <- lapply(seq_along(d), function(j) {
    v <- d[[j]]
    if (probability[j]) probability_text(v)
    else if (is.double(v)) ifelse(is.na(v), "", decimal_text(v, digits))
    else if (number[j]) ifelse(is.na(v), "", thousands(v))
    else plain_text(v)
  })
  d
}

decimal_text <- function(v, digits) {
  size <- abs(v[is.finite(v) & v != 0])
  alike <- length(size) && max(size) < 1e4 * min(size) && max(size) < 1e6
  if (!alike || all(size == round(size))) {
    return(vapply(signif(v, digits), function(one) format(one, big.mark = ",", decimal.mark = "."), ""))
  }
  decimals <- if (max(size) <= 1) digits else max(0, digits - max(1, floor(log10(max(size)))))
  formatC(v, digits = decimals, format = "f", big.mark = ",", decimal.mark = ".")
}

# Two digits, down to 1e-300. log10: the logarithms, where the numbers themselves may have become 0.
probability_text <- function(v, log10 = NULL) {
  large <- formatC(v, digits = 2, format = "fg", flag = "#", decimal.mark = ".")
  small <- formatC(v, digits = 1, format = "e", decimal.mark = ".")
  least <- if (is.null(log10)) v < 1e-300 else log10 < -300
  ifelse(is.na(v), "", ifelse(least, "< 1e-300", ifelse(v < 0.001, small, large)))
}

# The same after "p" or "q": "= 0.05", or "< 1e-300".
p_text <- function(v) after_p(probability_text(v))

after_p <- function(text) ifelse(startsWith(text, "<"), text, paste("=", text))

# ---- figures ----

# Draws a picture and puts it into the text, with a caption that may hold names and a text for those who cannot see it.
# narrow: width and height in inches of a second drawing for phones, where the first could not be read; draw() may ask
# on_phone() which of them it makes. more: how to read it, folded away on a page.
put_figure <- function(draw, alt, caption = NULL, size = c(5.2, 4.2), kind = "", narrow = NULL, more = NULL) {
  file <- drawn_file(draw, size)
  if (!on_page()) { # those without a caption stand in one line
    if (!is.null(caption)) caption <- paste(c(caption, more), collapse = " ")
    image <- sprintf("![%s](%s){width=%.0f%%}", markdown_text(caption %||% alt), basename(file),
                     min(100, 100 * size[1L] / 7))
    return(cat(if (!is.null(caption)) "\n", image, "\n", if (!is.null(caption)) "\n", sep = ""))
  }
  image <- sprintf("<img alt=\"%s\" width=\"%d\" src=\"%s\">", html_text(alt), as.integer(size[1L] * 120),
                   knitr::image_uri(file))
  if (!is.null(narrow)) {
    phone <- knitr::image_uri(drawn_file(draw, narrow, 200, 9.5))
    image <- sprintf("<picture><source media=\"(max-width: 640px)\" srcset=\"%s\">%s</picture>", phone, image)
  }
  raw_html(sprintf("<figure%s>", if (nzchar(kind)) sprintf(" class=\"%s\"", kind) else ""), "<div class=\"scroll\">",
           image, "</div>", if (!is.null(caption)) sprintf("<figcaption>%s</figcaption>", html_text(caption)),
           how_to_read(more), "</figure>")
}

drawn_file <- function(draw, size, resolution = 120, points = 12) {
  file <- tempfile("figure-", tmpdir = normalizePath("."), fileext = ".png")
  before <- grDevices::dev.cur()
  open_png(file, size[1L], size[2L], resolution, points)
  mine <- grDevices::dev.cur()
  tryCatch(draw(), finally = {
    grDevices::dev.off(mine)
    if (before > 1L) grDevices::dev.set(before)
  })
  file
}

phone_width <- 3.3 # inches of a drawing that fills a phone's screen

on_phone <- function() graphics::par("din")[1L] < 4

# Few colours compress well; text stays smooth.
open_png <- function(file, width, height, resolution, points) {
  type <- if (isTRUE(capabilities("cairo")[[1L]])) "cairo" else getOption("bitmapType")
  grDevices::png(file, width, height, units = "in", res = resolution, pointsize = points, type = type)
  graphics::par(mar = c(3.4, 3.6, 0.9, 0.6) + 0.1, mgp = c(2.3, 0.6, 0), tcl = -0.3, las = 1, cex.main = 1,
                font.main = 1)
}

# Inches that names of this size take; capitals and digits are wider.
names_inches <- function(names, cex) {
  wide <- nchar(gsub("[^A-Z0-9_]", "", names), "width")
  graphics::par("ps") * cex * max(0.0081 * nchar(names, "width") + 0.0015 * wide, 0.0081)
}

# What `write` puts onto the page, folded away under a title; elsewhere as it is.
folded <- function(title, write) {
  if (on_page()) raw_html("<details>", sprintf("<summary>%s</summary>", html_text(title)))
  force(write)
  if (on_page()) raw_html("</details>")
  invisible()
}

# Figures side by side, where there is room.
side_by_side <- function(..., kind = "side") {
  if (on_page()) raw_html(sprintf("<div class=\"%s\">", kind))
  force(list(...))
  if (on_page()) raw_html("</div>")
  invisible()
}

# Lines as a block of code, whose fence is longer than any in it; on a page folded away under `title`.
verbatim <- function(lines, title = NULL) {
  lines <- plain_text(cli::ansi_strip(lines))
  if (on_page() && !is.null(title)) {
    return(raw_html("<details>", sprintf("<summary>%s</summary>", html_text(title)),
                    paste0("<pre>", paste(html_text(lines), collapse = "&#10;"), "</pre>"), "</details>"))
  }
  runs <- unlist(regmatches(lines, gregexpr("`+", lines)))
  fence <- strrep("`", max(3L, nchar(runs) + 1L))
  cat("", fence, lines, fence, "", sep = "\n")
}

# ---- words and colours ----

# What a column of the data is called: a probe where several columns measure one gene.
column_word <- function(q) if (length(representatives(q)) < ncol(q$x)) "probe" else "gene"

# "3,051 probes", "1 gene".
columns_text <- function(q, n) several(n, column_word(q))

report_ink <- "#3d4b59" # of what has no class

# Light and dark in turn, and none of the classes' colours; from 13 batches on they recur.
batch_colours <- function(count) {
  rep_len(c("#e8dcc4", "#6b4226", "#b5d99c", "#4a4e69", "#f4a6c0", "#7a8b3a", "#cdd5de", "#8c2f5b", "#ffe27a",
            "#2f5d62", "#c9a7eb", "#3b3b3b"), count)
}

report_shapes <- function(count) rep_len(c(21L, 24L, 22L, 25L, 23L), count)

# Green below the middle, purple above: both kept from classes, and told apart by colour-blind readers.
two_sided <- function(z, most = 2.5) {
  ramp <- grDevices::colorRampPalette(c("#1b7837", "#a6dba0", "#f7f7f7", "#c2a5cf", "#762a83"))(101L)
  out <- ramp[round(50 * (pmin(pmax(z, -most), most) / most)) + 51L]
  out[is.na(z)] <- "#bbbbbb"
  out
}

# Names beside a figure: whole, unless they would leave no room for it; then the middle, where names of one set differ
# least, is left out.
shown_names <- function(x, most = 40L) cut_name(plain_text(x), most)

# "No component is", "1 component is", "7 components are".
several_are <- function(n, what) {
  if (n == 0) paste("No", what, "is") else paste(several(n, what), if (n == 1) "is" else "are")
}

joined <- function(x) {
  if (length(x) < 2L) return(paste(x))
  paste(toString(utils::head(x, -1L)), "and", utils::tail(x, 1L))
}

# Names from data in a sentence; errors put them into `label_some()`'s quotation marks.
some_named <- function(names, most = 5L) some_of(plain_text(names), most)

some_of <- function(x, most) paste0(toString(utils::head(x, most)),
                                    if (length(x) > most) sprintf(" and %s more", thousands(length(x) - most)))
