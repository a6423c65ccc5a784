test_that("an interrupt stops the work within a second, and the session goes on", {
  skip_on_os("windows")
  skip_on_cran()
  for (backend in test_backends()) {
    setup <- "
      wide <- rep(list(seq_len(60000) * 1000), 50000) # counted by sorting, milliseconds each
      narrow <- rep(list(rep(1:50, 20000)), 50000)
      rank <- function(data, progress) {
        data <- list2DF(stats::setNames(data, seq_along(data)))
        mi_rank(data, seq_len(nrow(data)) %% 2, run = weft::weft_run('%s', progress = progress))
      }"
    result <- interrupted_works(
      sprintf(gsub("%%", "%%%%", setup, fixed = TRUE), backend),
      "list(wide = function(progress) rank(wide, progress), narrow = function(progress) rank(narrow, progress))",
      c("cat('and then', mi_rank(data.frame(a = 1:2), 1:2)$mi, '\\n')",
        "cat('live', .Call(weft:::C_weft_memory, NULL)[['host']], '\\n')"))
    expect_interrupted(result, c("wide", "narrow"))
    expect_true(all(c("and then 1 ", "live 0 ") %in% result$output), info = paste(result$output, collapse = "\n"))
  }
})
