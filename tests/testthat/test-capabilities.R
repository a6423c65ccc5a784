# inst/capabilities.csv, from which README.md and ?weft_backend are made, says what the functions do.
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

for (name in names(calls)) {
  test_that(paste("the table is right about", name), {
    found <- vapply(names(said), function(what) capability_of(calls[[name]], what), "")
    expect_identical(found[!is.na(found)], unlist(said[name, ])[!is.na(found)])
  })
}
