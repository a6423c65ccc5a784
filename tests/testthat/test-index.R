# The reference index and the texts name what there is. They are read from the source folder, which a built package is
# not.

root <- test_path("..", "..")
here <- file.exists(file.path(root, "_pkgdown.yml"))

# Topics with their aliases, as pkgdown reads them; internal pages need not be in the index.
topics <- function(internal = TRUE) {
  pages <- list.files(file.path(root, "man"), "\\.Rd$", full.names = TRUE)
  texts <- lapply(pages, readLines)
  tagged <- function(text, tag) sub(sprintf("^\\\\%s\\{(.*)\\}$", tag), "\\1",
                                    grep(sprintf("^\\\\%s\\{", tag), text, value = TRUE))
  names(texts) <- vapply(texts, tagged, "", "name")
  inside <- vapply(texts, function(text) any(grepl("\\keyword{internal}", text, fixed = TRUE)), NA)
  lapply(texts[internal | !inside], tagged, "alias")
}

test_that("the index has every page and every exported function, and nothing else", {
  skip_if_not(here, "a built package has no index")
  lines <- readLines(file.path(root, "_pkgdown.yml"))
  lines <- lines[seq_along(lines) > grep("^reference:", lines)]
  text <- paste(lines, collapse = " ")
  contents <- regmatches(text, gregexpr("contents: \\[[^]]*\\]", text))[[1L]]
  listed <- unlist(strsplit(gsub("contents: \\[ *| *\\]", "", contents), ", *"))
  aliases <- topics()
  matching <- function(entry) {
    selector <- regmatches(entry, regexec("^(starts|ends)_with\\(\"(.*)\"\\)$", entry))[[1L]]
    if (!length(selector)) return(names(aliases)[vapply(aliases, function(a) entry %in% a, NA)])
    by <- if (selector[2L] == "starts") startsWith else endsWith
    names(aliases)[vapply(aliases, function(a) any(by(a, selector[3L])), NA)]
  }
  found <- lapply(listed, matching)
  expect_identical(listed[lengths(found) == 0L], character())
  expect_identical(setdiff(names(topics(internal = FALSE)), unlist(found)), character())
  exported <- grep("^[.]__T__", getNamespaceExports("weft"), value = TRUE, invert = TRUE) # methods of others' generics
  ours <- !vapply(exported, methods::isGeneric, NA, where = asNamespace("weft"))
  expect_identical(setdiff(exported[ours], c(unlist(aliases), "coerce")), character())
  articles <- sub("^ +- ", "", grep("^ +- [a-z-]+$", readLines(file.path(root, "_pkgdown.yml")), value = TRUE))
  expect_setequal(articles, sub("\\.Rmd$", "", list.files(file.path(root, "vignettes"), "\\.Rmd$")))
})

test_that("functions, pages and files that the texts name exist", {
  skip_if_not(here, "a built package has no README")
  pages <- c(file.path(root, c("README.md", "NEWS.md")),
             list.files(file.path(root, "vignettes"), "\\.Rmd$", full.names = TRUE))
  text <- unlist(lapply(pages, readLines))
  all <- function(pattern) unique(unlist(lapply(regmatches(text, gregexpr(pattern, text, perl = TRUE)), identity)))
  called <- all("(?<=`)[A-Za-z_.]+(?=\\()")
  known <- vapply(called, function(name) exists(name, asNamespace("weft")) ||
                  nzchar(utils::getAnywhere(name)$where[1L]) %in% TRUE, NA)
  others <- c("makeCluster", "SnowParam", "install_local") # of packages that need not be here
  expect_identical(setdiff(called[!known], others), character())
  helped <- sub("^\\?", "", all("(?<=`)\\?[a-z_.]+(?=`)"))
  expect_identical(setdiff(helped, unlist(topics())), character())
  linked <- c(all("(?<=\\]\\()[^)#: ]+(?=\\))"), all("inst/[A-Za-z0-9_/.-]+[A-Za-z]"))
  expect_identical(linked[!file.exists(file.path(root, linked))], character())
})
