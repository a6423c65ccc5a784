# Text that tries to be more than text, where it is written. `made`: a file that code would make; `secret`: one that an
# image would embed.
attacks <- function(made = "made-by-code", secret = "secret.png") {
  c("<script>alert(1)</script>", "<img src=none onerror=alert(2)>", sprintf("![p](%s)", secret),
    sprintf("<img src='%s'>", secret),
    sprintf("`r system(\"touch %s\")`", made), "`r 1`", sprintf("`r file.create('%s')`", made), "---", "...", "\"", "'",
      "$x$", "$$y$$",
    "\\newcommand{\\a}{b}", "\\(z\\)", "[a](javascript:alert(3))", "https://example.org/?a=b&c",
      "<https://example.org>",
    "a|b", "two\nlines", sprintf("\n---\nkey: !r file.create('%s')\n---\n", made),
    sprintf("\n```{r}\nfile.create('%s')\n```\n", made), "```", "~~~", "=cmd|' /C calc'!A0",
    "+1+1", "-1", "@SUM(A1)", "*b*", "_i_", "# head", "1. one", "    code", ":::", "{=html}", "<!-- no", "-->",
      "&lt;b&gt;",
    "&#60;b&#62;", "]]>", "%s%n", "%d", "tab\there", "bell\a", "esc\033[31m", "zero\u200e\u202ewidth",
      "not a character \ufffe",
    "\u00fcber \u4e2d\u6587", "\\", "\\\\n", "`", "``", "^[note]", "[^1]", "@cite", "H~2~O", "<b>",
      "</td></tr></table>", "{{x}}", "<%= 1 %>")
}

# Bytes that are no text: half a character, a surrogate written as if it were one.
broken_text <- function() {
  x <- c("half \xe4\xb8", "lone \xff", "surrogate \xed\xa0\x80")
  Encoding(x) <- "UTF-8"
  x
}

# What an independent program says of a file; skipped where there is no Python.
ask_python <- function(code, ...) {
  python <- Sys.which("python3")
  testthat::skip_if(!nzchar(python), "python3 is not there")
  script <- withr::local_tempfile(fileext = ".py", lines = code)
  enc <- c("PYTHONIOENCODING=utf-8", "PYTHONUTF8=1")
  out <- suppressWarnings(system2(python, c(shQuote(script), shQuote(c(...))), stdout = TRUE, stderr = TRUE, env = enc))
  Encoding(out) <- "UTF-8"
  if (!is.null(attr(out, "status"))) stop("python3: ", paste(out, collapse = "\n"))
  out
}
