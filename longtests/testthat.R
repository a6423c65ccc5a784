# Tests that take minutes, in the form in which Bioconductor runs them.
library(testthat)
library(weft)
test_check("weft")
