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

test_that("ties are runs of equal values, and the title counts those left out", {
  expect_identical(weft:::runs_of_equals(c(3, 2, 2, 1, 1, 1, 0)),
                   data.frame(first = c(2L, 4L), last = c(3L, 6L), value = c(2, 1), row.names = 2:3))
  x <- data.frame(a = c(0, 0, 1, 1), b = c(0, 0, 1, 1), c = c(1, 1, 0, 0), d = c(0, 1, 0, 1))
  texts <- texts_of(function() plot(mi_rank(x, c(0, 0, 1, 1)), top = 2))
  expect_true("Best 2 of 4 features, 1 more tied" %in% texts)
  expect_true(all(c("a", "b") %in% texts))
})

test_that("plot() and autoplot() of a directed network draw the same edges", {
  skip_if_not_installed("ggplot2")
  e <- weft_example("expression", n = 60, p = 20, missing = 0, spoilt = FALSE)
  net <- regulation(e$x, seed = 1, control = list(null_copies = 5, resamples = 40))
  sure <- as.data.frame(net, fdr = 0.2)
  attr(net, "fdr") <- 0.2
  drawn <- ggplot2::autoplot(net)
  expect_identical(drawn$labels$title, sprintf("regulation: %d edges at a false discovery rate of 0.2", nrow(sure)))
  expect_identical(nrow(drawn$layers[[1]]$data), nrow(sure))
  expect_true(drawn$labels$title %in% texts_of(function() plot(net)))
  few <- ggplot2::autoplot(net, top = 7)
  expect_identical(nrow(few$layers[[1]]$data), 7L)
  expect_true(few$labels$title %in% texts_of(function() plot(net, edges = 7)))
})

test_that("names stand clear of points and of each other, or are left out", {
  withr::local_pdf(NULL)
  graphics::plot(0:10, 0:10, type = "n")
  place <- cbind(c(5, 5.4, 5.4, 9.9), c(5, 5, 5.5, 5))
  names <- c("first", "second", "third", "at the edge")
  boxes <- t(weft:::write_names(place, names, 1:4, 0.1, 0.8))
  expect_true(all(names[1:3] %in% colnames(boxes)))
  for (name in colnames(boxes)) {
    b <- boxes[, name]
    others <- boxes[, colnames(boxes) != name, drop = FALSE]
    expect_false(any(b[1] < others[3, ] & b[3] > others[1, ] & b[2] < others[4, ] & b[4] > others[2, ]))
    foreign <- place[names != name, ]
    expect_false(any(foreign[, 1] > b[1] & foreign[, 1] < b[3] & foreign[, 2] > b[2] & foreign[, 2] < b[4]))
    expect_lte(b[3], graphics::par("usr")[2])
  }
})
