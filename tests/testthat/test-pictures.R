# plot() and autoplot() draw from the same data and labels (R/pictures.R).

# The texts that a call of base graphics has written.
texts_of <- function(draw) {
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  grDevices::dev.control("enable")
  draw()
  arguments <- lapply(grDevices::recordPlot()[[1L]], function(call) as.list(call[[2L]]))
  unlist(Filter(is.character, unlist(arguments, recursive = FALSE)))
}

test_that("autoplot() has the labels and the data that plot() has", {
  skip_if_not_installed("ggplot2")
  withr::local_seed(1)
  x <- as.data.frame(matrix(sample(0:2, 1000, TRUE), 100))
  class <- sample(0:1, 100, TRUE)
  ranked <- mi_rank(x, class)
  drawn <- ggplot2::autoplot(ranked, top = 4)
  texts <- texts_of(function() plot(ranked, top = 4))
  expect_true(drawn$labels$x %in% texts)
  expect_true(sub(" [(].*", "", drawn$labels$title) %in% texts)
  expect_identical(drawn$data$value, utils::head(ranked$mi, 4))
  results <- list(mi_select(x, class, k = 3), pca_choose_k(as.matrix(iris[1:4]), seed = 1), kde(faithful$waiting))
  for (result in results) {
    drawn <- ggplot2::autoplot(result)
    texts <- texts_of(function() plot(result))
    expect_true(all(unlist(Filter(is.character, drawn$labels[c("x", "y", "title")])) %in% texts))
  }
})

test_that("a picture of nothing is an error under the name that the caller gave", {
  skip_if_not_installed("ggplot2")
  none <- mi_rank(data.frame(a = c(0, 1, 0, 1)), c(0, 0, 1, 1))[0, ]
  expect_error(plot(none), "`x` must have at least one feature", class = "weft_error_input")
  expect_error(ggplot2::autoplot(none), "`object` must have at least one feature", class = "weft_error_input")
})
