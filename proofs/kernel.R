# Thousands of hard cases of kernel sums, fresh ones by default: Rscript proofs/kernel.R [cases] [first seed]. Seeds
# of failures are kept in tests/testthat/kernel-seeds.txt, from where every run of the tests takes them.
library(weft)
library(testthat)
given <- as.numeric(commandArgs(TRUE))
cases <- if (length(given) > 0) given[1] else 2000
first <- if (length(given) > 1) given[2] else sample(1e8, 1)
source("tests/testthat/helper-kernel.R")
test <- parse("tests/testthat/test-kernel-sum.R")
for (definition in test[1:2]) eval(definition) # excess(), check_case()
cat(sprintf("%d cases from seed %.0f on\n", cases, first))
failed <- 0
for (seed in first + seq_len(cases) - 1) {
  wrong <- tryCatch({ check_case(seed); NULL }, error = conditionMessage)
  if (!is.null(wrong)) {
    failed <- failed + 1
    cat(format(seed, scientific = FALSE), "\n", file = "tests/testthat/kernel-seeds.txt", append = TRUE, sep = "")
    cat(wrong, "\n")
  }
}
cat(sprintf("%d of %d cases failed\n", failed, cases))
if (failed) quit(status = 1)
