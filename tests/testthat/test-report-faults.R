# What goes wrong while a report is made: whose fault it is, and that it can be stopped.

skip_if_not_installed("rmarkdown")
skip_if_not(rmarkdown::pandoc_available("1.12.3"), "no pandoc")
skip_on_cran()

e <- weft_example("expression", n = 60, p = 30, seed = 4, missing = 0, spoilt = FALSE)
fit <- gene_network(e$x, e$class, seed = 1, run = weft_run(progress = FALSE), regulators = colnames(e$x)[1:8],
                    steps = list(pairs = FALSE, clusters = FALSE, bayes = FALSE))

test_that("a network with candidate regulators has a report: their directions were not tried the other way", {
  direction <- as.data.frame(fit, "edges")$direction
  expect_true(anyNA(direction) && !all(is.na(direction)))
  file <- withr::local_tempfile(fileext = ".html")
  expect_identical(weft_report(fit, file, open = FALSE), normalizePath(file))
  page <- paste(readLines(file, warn = FALSE), collapse = "\n")
  expect_match(page, "only one direction was tested", fixed = TRUE)
  # arrows whose direction was given have the head of an open one
  edges <- weft:::report_edges(fit$network)
  svg <- weft:::network_svg(weft:::drawn_edges(edges, 200), "caption")
  heads <- regmatches(svg, regexpr("url\\(#(arrow|open)-", svg))
  expect_identical(heads == "url(#arrow-", !is.na(edges$direction) & edges$direction >= 0.9)
})

test_that("an error that no check foresaw is a bug in weft, whatever the user gave", {
  said <- "This is a bug in weft.*wrong inside.*sessionInfo"
  inside <- function() stop("wrong inside")
  expect_error(weft:::reading("x", inside()), said, class = "weft_error_internal")
  expect_error(weft:::render_failed(simpleError("wrong inside"), FALSE, tempdir()), said,
               class = "weft_error_internal")
  expect_error(weft:::drawing("x", inside()), "could not be drawn.*wrong inside.*Otherwise this is a bug in weft")
  # what has a class already, or R's own for memory, keeps it
  expect_error(weft:::reading("x", weft:::abort_input("no")), "no", class = "weft_error_input")
  no_memory <- gettextf("cannot allocate vector of size %0.1f Gb", 20, domain = "R")
  expect_error(weft:::reading("x", stop(no_memory)), class = "weft_error_memory")
  # templates of one's own, full disks and pandoc are told apart
  expect_error(weft:::render_failed(simpleError("wrong inside"), TRUE, tempdir()), "`template` must be",
               class = "weft_error_input")
  expect_error(weft:::render_failed(simpleError("wrong inside"), FALSE, "/no/such/folder"), "must have space",
               class = "weft_error_input")
  failed <- simpleError("pandoc document conversion failed with error 83")
  expect_error(weft:::render_failed(failed, FALSE, tempdir()), "pandoc did not make the page",
               class = "weft_error_internal")
  stopped <- simpleError("pandoc document conversion failed with error 2")
  expect_identical(tryCatch(weft:::render_failed(stopped, FALSE, tempdir()), interrupt = function(e) "interrupt"),
                   "interrupt")
})

test_that("Ctrl-C while pandoc runs is an interrupt, not an error", {
  skip_on_os("windows")
  folder <- withr::local_tempdir()
  path <- function(name) file.path(folder, name)
  # a pandoc that takes for ever, and says which process it is
  writeLines(c("#!/bin/sh", sprintf("[ \"$1\" = --version ] && exec %s --version", rmarkdown::pandoc_exec()),
               sprintf("echo $$ > %s && mv %s %s", path("new"), path("new"), path("began")), "exec sleep 600"),
             path("pandoc"))
  Sys.chmod(path("pandoc"), "755")
  saveRDS(fit, path("fit.rds"))
  interrupter <- "(until [ -e %s ]; do sleep 0.05; done; sleep 0.3; kill -INT %%d %s) >/dev/null 2>&1 &"
  for (with_pandoc in c(TRUE, FALSE)) { # a terminal interrupts all programs in front; RStudio only R
    unlink(path("began"))
    other <- if (with_pandoc) sprintf("$(cat %s)", path("began")) else ""
    ended <- run_in_r(c(
      "library(weft)", sprintf("invisible(rmarkdown::find_pandoc(cache = FALSE, dir = '%s'))", folder),
      sprintf("fit <- readRDS('%s')", path("fit.rds")),
      sprintf("system(sprintf('%s', Sys.getpid()))", sprintf(interrupter, path("began"), other)),
      sprintf("how <- tryCatch(weft_report(fit, '%s', open = FALSE), interrupt = function(e) 'interrupted')",
              path("report.html")),
      "cat('ENDED', how, '\\n')"
    ), timeout = 120)
    expect_match(ended, "^ENDED interrupted", all = FALSE, info = paste(ended, collapse = "\n"))
    try(tools::pskill(as.integer(readLines(path("began")))), silent = TRUE)
  }
})
