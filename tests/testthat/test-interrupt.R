# A child R runs a computation of minutes, gets SIGINT in the middle, must stop within a second and go on working.
interrupt_child <- function(backend) {
  dir <- withr::local_tempdir()
  code <- sprintf('
    library(weft)
    x <- rep(list(seq_len(60000) * 1000), 50000)       # wide columns: counted by sorting, milliseconds each
    narrow <- rep(list(rep(1:50, 20000)), 50000)
    setwd("%s")
    for (data in list(x, narrow)) {
      data <- list2DF(stats::setNames(data, seq_along(data)))
      stopped <- tryCatch({
        writeLines(as.character(Sys.getpid()), "pid")
        mi_rank(data, seq_len(nrow(data)) %%%% 2, backend = "%s", progress = function(done, total) writeLines("", "started"))
        "finished"
      }, interrupt = function(e) "interrupted")
      writeLines(format(as.numeric(Sys.time()), digits = 15), "stopped")
      cat(stopped, "\n")
      while (file.exists("stopped")) Sys.sleep(0.02)
    }
    cat("and then", mi_rank(data.frame(a = 1:2), 1:2)$mi, "\n")
    cat("live", .Call(weft:::C_weft_memory, NULL)[["host"]], "\n")
  ', dir, backend)
  script <- file.path(dir, "child.R")
  writeLines(code, script)
  lib <- paste(c(dirname(find.package("weft")), .libPaths()), collapse = .Platform$path.sep)
  output <- file.path(dir, "output")
  system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", script), stdout = output, stderr = output, wait = FALSE,
          env = paste0("R_LIBS=", shQuote(lib)))
  await <- function(file, seconds = 60) {
    for (k in seq_len(seconds * 50)) {
      if (file.exists(file.path(dir, file))) return(TRUE)
      Sys.sleep(0.02)
    }
    FALSE
  }
  took <- numeric()
  for (round in 1:2) {
    if (!await("started")) break
    pid <- as.integer(readLines(file.path(dir, "pid")))
    asked <- as.numeric(Sys.time())
    tools::pskill(pid, tools::SIGINT)
    if (!await("stopped", 20)) { tools::pskill(pid, tools::SIGKILL); break }
    Sys.sleep(0.1)
    took[round] <- as.numeric(readLines(file.path(dir, "stopped"))) - asked
    unlink(file.path(dir, c("started", "stopped")))
  }
  for (k in 1:500) {
    if (any(grepl("live", readLines(output)))) break
    Sys.sleep(0.02)
  }
  list(took = took, output = readLines(output))
}

test_that("an interrupt stops the work within a second, and the session goes on", {
  skip_on_os("windows")
  skip_on_cran()
  for (backend in test_backends()) {
    result <- interrupt_child(backend)
    expect_identical(sum(grepl("^interrupted", result$output)), 2L, info = paste(result$output, collapse = "\n"))
    expect_true("and then 1 " %in% result$output)
    expect_true("live 0 " %in% result$output)
    expect_length(result$took, 2)
    expect_true(all(result$took < 1), info = paste(backend, toString(result$took)))
  }
})
