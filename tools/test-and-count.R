# Runs the tests of some files, whose names stand in the first argument with commas between them, and prints a line of
# counts for each.
names <- strsplit(commandArgs(TRUE)[1L], ",", fixed = TRUE)[[1L]]
results <- as.data.frame(testthat::test_local(".", filter = sprintf("^(%s)$", paste(names, collapse = "|")),
                                              load_package = "installed", reporter = "check", stop_on_failure = FALSE))
total <- function(name, column) sum(results[[column]][results$file == sprintf("test-%s.R", name)])
cat("\n")
for (name in unique(c(names, sub("^test-(.*)[.]R$", "\\1", results$file)))) {
  cat(sprintf("%-20s %d passed, %d failed, %d skipped\n", name, total(name, "passed"),
              total(name, "failed") + total(name, "error"), total(name, "skipped")))
}
quit(status = sum(results$failed) + sum(results$error) > 0)
