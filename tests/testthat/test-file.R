test_that("raw files read back by block, in both layouts and types", {
  m <- matrix(c(1.5, -2, 3, 4, 5.25, 1e10), 3)
  file <- withr::local_tempfile()
  for (type in c("double", "float")) {
    size <- if (type == "float") 4 else 8
    writeBin(as.double(t(m)), file, size = size)
    x <- weft_file(file, ncol = 2, type = type)
    expect_equal(dim(x), c(3, 2))
    expect_equal(as.matrix(x), m, tolerance = if (type == "float") 1e-7 else 0)
    expect_equal(x[2:3, ], m[2:3, ], tolerance = 1e-7)
    writeBin(as.double(m), file, size = size)
    y <- weft_file(file, ncol = 2, type = type, layout = "column")
    expect_equal(as.matrix(y), m, tolerance = 1e-7)
    expect_equal(y[, 2], m[, 2, drop = FALSE], tolerance = 1e-7)
  }
  expect_output(print(x), "3 x 2")
})

test_that("files that do not fit their description are refused", {
  file <- withr::local_tempfile()
  writeBin(as.double(1:7), file)
  expect_error(weft_file(file, ncol = 2), class = "weft_error_input", regexp = "56 bytes")
  expect_error(weft_file(file, ncol = 7, nrow = 2), class = "weft_error_input")
  expect_error(weft_file("no such file", ncol = 1), class = "weft_error_input")
  x <- weft_file(file, ncol = 7)
  expect_error(x[2, ], class = "weft_error_input")
  expect_error(x[, 1], class = "weft_error_input", regexp = "consecutive rows")
  writeBin(as.double(1:3), file)
  expect_error(as.matrix(x), class = "weft_error_input", regexp = "ends after 3")
})
