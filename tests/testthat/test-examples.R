# The examples of all help pages run, with those suggested packages that are installed.

sources <- testthat::test_path("..", "..", "man")
pages <- if (dir.exists(sources)) {
  files <- list.files(sources, "[.]Rd$", full.names = TRUE)
  stats::setNames(as.list(files), basename(files))
} else {
  tools::Rd_db("weft")
}

test_that("there are help pages", {
  expect_gt(length(pages), 90)
})

for (page in names(pages)) {
  script <- tempfile(fileext = ".R")
  tools::Rd2ex(pages[[page]], script)
  if (!file.exists(script)) next
  test_that(paste("the examples run that stand in", page), {
    if (page == "report_parts.Rd") skip_if_not_installed("knitr")
    grDevices::pdf(NULL)
    on.exit(grDevices::dev.off(), add = TRUE)
    run <- function() source(script, local = new.env(parent = globalenv()))
    expect_error(suppressWarnings(suppressMessages(utils::capture.output(run()))), NA)
  })
}
