# What must not depend on units: columns multiplied and shifted, one by one or all by one number; units at the ends of
# what a double holds give the same numbers or a classed error.

test_that("columns in units and with origins of their own give the same numbers", {
  x <- unit_data()
  ways <- list(`by 100` = x / 100, thirds = x / 3, random = in_other_units(x, 1))
  for (name in names(calls_by_column)) {
    call <- calls_by_column[[name]]
    wanted <- suppressWarnings(call(x))
    for (way in names(ways)) {
      expect_same_numbers(suppressWarnings(call(ways[[way]])), wanted, paste(name, way, sep = ", "))
    }
  }
})

test_that("one unit for all columns gives the same numbers", {
  x <- unit_data()
  for (name in names(calls_in_one_unit)) {
    call <- calls_in_one_unit[[name]]
    wanted <- call(x, 1)
    for (unit in c(1e-6, 1 / 3, 1000)) expect_same_numbers(call(x * unit, unit), wanted, sprintf("%s, %g", name, unit))
  }
})

test_that("units that squares overflow or vanish in give the same numbers or a classed error", {
  x <- unit_data()
  for (name in setdiff(names(calls_by_column), "bn_learn, halves")) {
    call <- calls_by_column[[name]]
    wanted <- suppressWarnings(call(x))
    for (way in list(x * 1e-300, x * 1e300, in_other_units(x, 2, 290, FALSE))) {
      expect_same_or_refused(function() suppressWarnings(call(way)), wanted, name)
    }
  }
  for (name in names(calls_in_one_unit)) {
    call <- calls_in_one_unit[[name]]
    wanted <- call(x, 1)
    for (unit in c(1e-300, 1e-160, 1e-36, 1e36, 1e160, 1e300)) {
      expect_same_or_refused(function() call(x * unit, unit), wanted, sprintf("%s, %g", name, unit))
    }
  }
})

test_that("the plug-in rule has no unit", {
  x <- unit_data()[, 1L]
  h <- kde(x, "plugin")$bandwidth
  for (unit in c(1e-90, 1e-35, 1e36, 1e90)) expect_equal(kde(x * unit, "plugin")$bandwidth / unit, h, tolerance = 1e-9)
  expect_error(kde(x * 1e-150, "plugin"), class = "weft_error_input")
})

test_that("responses and weights whose squares vanish are refused", {
  x <- unit_data()
  bad <- function(code, what) expect_error(code, what, class = "weft_error_input")
  bad(kernel_regression(x[, 1L], x[, 2L] * 1e-150), "at least 1e-100")
  bad(gp_regression(x[, 1L], x[, 2L] * 1e-150), "at least 1e-100")
  bad(kernel_regression(x[, 1L], x[, 2L], weights = rep(1e-150, nrow(x))), "sum is at least 1e-100")
  expect_equal(kernel_regression(x[, 1L], x[, 2L], 1, weights = rep(1e-90, nrow(x)))$r_squared,
               kernel_regression(x[, 1L], x[, 2L], 1)$r_squared)
})

test_that("a constant column is one in every unit", {
  x <- unit_data()
  x[, 4L] <- 1
  wanted <- bn_score(x, unit_dag(x), "bge")
  for (value in c(0, 0.1, 1 / 3, 1e-300, 1e300)) {
    x[, 4L] <- value
    expect_equal(bn_score(x, unit_dag(x), "bge"), wanted, tolerance = 1e-12)
  }
})

test_that("parameters do not depend on a far origin", {
  x <- unit_data()
  far <- x
  far[, 1L] <- far[, 1L] + 1e9 # of a spread of 1: least squares in these units would leave it out
  expect_equal(bn_fit(far, unit_dag(x))$nodes$v2$slopes, bn_fit(x, unit_dag(x))$nodes$v2$slopes, tolerance = 1e-6)
})

test_that("a node that was set in every row has no parameters", {
  x <- unit_data()
  expect_error(bn_fit(x, unit_dag(x), interventions = rep("v2", nrow(x))), "v2", class = "weft_error_input")
})
