# Saved results with every part spoilt in every way: using them is a classed error or has a result, and R goes on. All
# uses of all copies: proofs/damaged.R.

test_that("a damaged copy of what was saved is a classed error or has a result, whatever takes it", {
  skip_on_cran()
  cases <- damage_cases()
  for (name in names(cases)) {
    case <- cases[[name]]
    expect_identical(unclassed_uses(case[[1L]], case[[2L]], share = 90L, native = case[[3L]]), character(),
                     label = name)
  }
})

test_that("what is whole passes, and says what it said before it was saved", {
  cases <- damage_cases()
  file <- withr::local_tempfile()
  for (name in names(cases)) {
    case <- cases[[name]]
    saveRDS(case[[1L]], file)
    for (use in intersect(c("print", "tidy", "update", "predict", "residuals"), names(case[[2L]]))) {
      if (use == "update" && inherits(case[[1L]], "weft_bn_exact")) next
      expect_no_error(utils::capture.output(case[[2L]][[use]](readRDS(file))))
    }
  }
})
