# Named lists from R are read by name: what is missing, unknown or of another type is an internal error that names it.

matrix_under <- function(control) {
  .Call(weft:::C_weft_mi_matrix_counts, matrix(1:2, 4, 3), NULL, "empirical", FALSE, control)
}

test_that("a record must have the names that are read, and no others", {
  control <- weft:::run_control("cpu", 1, FALSE)
  expect_length(matrix_under(control), 9)
  expect_length(matrix_under(rev(control)), 9)
  for (name in names(control)) {
    expect_error(matrix_under(control[names(control) != name]), paste0("`control` has no element `", name, "`"),
                 class = "weft_error_internal", fixed = TRUE)
  }
  expect_error(matrix_under(c(control, list(other = 1))), "`other`, which is unknown", class = "weft_error_internal")
  expect_error(matrix_under(c(control, control["poll"])), "`poll`, which is unknown", class = "weft_error_internal")
  expect_error(matrix_under(unname(control)), "have no names", class = "weft_error_internal")
  expect_error(matrix_under(unlist(control["poll"])), "must be a", class = "weft_error_internal")
})

test_that("a record's values must have their types", {
  control <- weft:::run_control("cpu", 1, FALSE)
  wrong <- list(threads = "2", threads = c(1L, 2L), threads = NULL, threads = NA_integer_, threads = 1.5, backend = 1,
                libs = NA_character_, poll = NULL, device_limit = "no")
  for (k in seq_along(wrong)) {
    expect_error(matrix_under(replace(control, names(wrong)[k], wrong[k])), paste0("`", names(wrong)[k], "`"),
                 class = "weft_error_internal", fixed = TRUE)
  }
})
