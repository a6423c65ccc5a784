# inst/capabilities.csv, which ?weft_backend and the vignette on devices show, says what the functions do.
said <- utils::read.csv(system.file("capabilities.csv", package = "weft"), row.names = 1)
why <- stats::setNames(said$why, rownames(said))
said$why <- NULL
calls <- capability_calls()

test_that("the table has a row for every function that is tried", expect_identical(rownames(said), names(calls)))

test_that("what has no device code says why", {
  expect_true(all(nzchar(why[said$cuda == "no"])))
  lines <- capability_lines()
  for (name in names(why)[nzchar(why)]) expect_true(any(grepl(why[[name]], lines, fixed = TRUE)), label = name)
})

test_that("the help page shows the table as it is", {
  page <- testthat::test_path("..", "..", "man", "weft_backend.Rd")
  skip_if_not(file.exists(page), "no sources here")
  shown <- paste(readLines(page), collapse = " ")
  for (name in names(why)[nzchar(why)]) expect_true(grepl(why[[name]], shown, fixed = TRUE), label = name)
  for (name in unique(sub(",.*", "", rownames(said)))) {
    expect_true(grepl(paste0(name, "()"), shown, fixed = TRUE), label = name)
  }
})

for (name in names(calls)) {
  test_that(paste("the table is right about", name), {
    found <- vapply(names(said), function(what) capability_of(calls[[name]], what), "")
    expect_identical(found[!is.na(found)], unlist(said[name, ])[!is.na(found)])
  })
}
