# Runs the tests and closes with one line of counts.
results <- as.data.frame(testthat::test_local(".", load_package = "installed", reporter = "check", stop_on_failure = FALSE))
failed <- sum(results$failed) + sum(results$error)
cat(sprintf("\n%d passed, %d failed, %d skipped\n", sum(results$passed), failed, sum(results$skipped)))
quit(status = failed > 0)
