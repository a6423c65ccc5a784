# Units, at length: every call of tests/testthat/helper-units.R on random data in random units and origins, near and at
# the ends of what a double holds. Run from the package's root:
#   Rscript -e 'testthat::test_file("longtests/testthat/test-units-long.R")'
# WEFT_UNITS_ROUNDS: how many data sets (20). A failure names the call, the round and the unit.
library(testthat)
library(weft)
options(weft.progress = FALSE)
source(testthat::test_path("../../tests/testthat/helper-units.R"))

rounds <- as.integer(Sys.getenv("WEFT_UNITS_ROUNDS", "20"))
sizes <- function(round) withr::with_seed(round, c(n = sample(40:200, 1L), p = sample(6:12, 1L)))

test_that("columns in random units with random origins give the same numbers", {
  for (round in seq_len(rounds)) {
    size <- sizes(round)
    x <- unit_data(round, size[["n"]], size[["p"]])
    for (name in names(calls_by_column)) {
      call <- function(x) suppressWarnings(calls_by_column[[name]](x))
      wanted <- call(x)
      for (seed in 1:3) {
        y <- in_other_units(x, 100 * round + seed)
        expect_same_numbers(call(y), wanted, sprintf("%s, round %d, units %d", name, round, seed), 1e-5)
      }
      y <- in_other_units(x, round, 300, FALSE)
      expect_same_or_refused(function() call(y), wanted, sprintf("%s, round %d, far units", name, round), 1e-5)
    }
  }
})

test_that("a random unit for all columns gives the same numbers, or a classed error", {
  for (round in seq_len(rounds)) {
    x <- unit_data() # of the size that responses of these calls have
    for (name in names(calls_in_one_unit)) {
      call <- calls_in_one_unit[[name]]
      wanted <- call(x, 1)
      near <- withr::with_seed(round, 10^runif(1, -6, 6))
      expect_same_numbers(call(x * near, near), wanted, sprintf("%s, unit %g", name, near), 1e-5)
      far <- withr::with_seed(round, 10^runif(1, -300, 300))
      expect_same_or_refused(function() call(x * far, far), wanted, sprintf("%s, unit %g", name, far), 1e-5)
    }
  }
})
