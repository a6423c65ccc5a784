# Runs the tests, or those whose file name fits a pattern, and closes with one line of counts.
pattern <- c(commandArgs(TRUE), list(NULL))[[1]]
results <- as.data.frame(testthat::test_local(".", filter = pattern, load_package = "installed", reporter = "check",
                                              stop_on_failure = FALSE))
failed <- sum(results$failed) + sum(results$error)
cat(sprintf("\n%d passed, %d failed, %d skipped\n", sum(results$passed), failed, sum(results$skipped)))
quit(status = failed > 0)
