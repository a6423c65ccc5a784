test_that("equal frequency cuts at ranks, and keeps equal values together", {
  x <- c(5, 1, 4, 2, 3, 9, 8, 7, 6, 10)
  d <- discretize(data.frame(x), "equalfreq", bins = 3)
  expect_identical(attr(d, "cuts")$x, c(4, 7)) # sorted[ceiling(10/3)], sorted[ceiling(20/3)]
  expect_identical(as.integer(d$x), 1L + (x > 4) + (x > 7))
  tied <- discretize(data.frame(x = c(1, 1, 1, 1, 2, 3)), "equalfreq", bins = 3)
  expect_identical(as.integer(tied$x), c(1L, 1L, 1L, 1L, 2L, 2L)) # cuts 1 and 1
  expect_identical(nlevels(discretize(data.frame(x = rep(3, 5)))$x), 1L)
  expect_identical(as.integer(discretize(data.frame(x = c(NA, 1, 2)), bins = 2)$x), c(NA, 1L, 2L))
  skewed <- discretize(data.frame(x = c(0, 1, 1, 1, 1)), bins = 2)$x # no empty bin above the maximum
  expect_identical(nlevels(skewed), 1L)
})

test_that("equal width is the formula", {
  x <- c(0, 0.1, 0.3, 0.5, 0.7, 0.99, 1)
  d <- discretize(data.frame(x), "equalwidth", bins = 4)$x
  expect_identical(as.integer(d), as.integer(pmin(1 + floor(x / 0.25), 4)))
  expect_identical(nlevels(d), 4L)
  # infotheo 1.2.0.1: discretize(x, "equalwidth", 4)
  y <- c(3.2, 1.5, 8.8, 2.2, 9.9, 4.1, 7.3, 5.0)
  expect_identical(as.integer(discretize(data.frame(y), "equalwidth", bins = 4)$y), c(1L, 1L, 4L, 1L, 4L, 2L, 3L, 2L))
  expect_error(discretize(data.frame(x = c(1, Inf)), "equalwidth"), "finite", class = "weft_error_input")
})

test_that("sd gives under, normal and over", {
  x <- c(-3, -1, 0, 1, 3, 0, 0)
  d <- discretize(data.frame(x), "sd", z = 1)$x
  expect_identical(as.character(d), c("under", "normal", "normal", "normal", "over", "normal", "normal"))
  expect_identical(as.character(discretize(data.frame(x = c(2, 2, 2)), "sd")$x), rep("normal", 3))
})

test_that("MDL and CAIM cut iris where the package discretization does", {
  # discretization 1.0-1.1: mdlp(iris), disc.Topdown(iris, 1)
  mdl <- attr(discretize(iris, "mdl", class = iris$Species), "cuts")
  expect_equal(unname(mdl), list(c(5.55, 6.15), c(2.95, 3.35), c(2.45, 4.75), c(0.8, 1.75)))
  caim <- attr(discretize(iris, "caim", class = iris$Species), "cuts")
  expect_equal(unname(caim), list(c(5.55, 6.25), c(2.95, 3.05), c(2.45, 4.75), c(0.8, 1.75)))
})

test_that("CAIM, CACC and Ameva are the definitions", {
  for (method in c("caim", "cacc", "ameva")) {
    d <- discretize(iris[1:4], method, class = iris$Species)
    for (j in 1:4) expect_equal(attr(d, "cuts")[[j]], ref_top_down(iris[[j]], iris$Species, method),
                                info = paste(method, j))
  }
})

test_that("CAIM, CACC and Ameva are the definitions where the lowest value is a bin of its own", {
  class <- rep(c("none", "some", "many"), c(20, 10, 11))
  x <- c(rep(0, 20), 1:10, 20:30)
  for (method in c("caim", "cacc", "ameva")) {
    expect_identical(attr(discretize(data.frame(x), method, class = class), "cuts")$x, c(0.5, 15), info = method)
    for (k in 1:30) {
      d <- some_cut_column(sample(5:60, 1))
      if (length(unique(d$x)) < 2 || length(unique(d$class)) < 2) next
      expect_equal(attr(discretize(data.frame(x = d$x), method, class = d$class), "cuts")$x,
                   ref_top_down(d$x, d$class, method), info = paste(method, k))
    }
  }
})

test_that("x and -x are cut into the same bins, mirrored", {
  for (method in c("mdl", "caim", "cacc", "ameva")) {
    for (k in 1:30) {
      d <- some_cut_column(sample(5:60, 1))
      cuts <- function(x) attr(discretize(data.frame(x), method, class = d$class), "cuts")$x
      counts <- unclass(table(d$x, d$class))
      if (identical(unname(counts), unname(counts[rev(seq_len(nrow(counts))), , drop = FALSE]))) next # no direction
      expect_identical(cuts(-d$x), -rev(cuts(d$x)), info = paste(method, k))
    }
  }
})

test_that("bins do not depend on units, and neighbouring doubles can be told apart", {
  x <- c(0:10, 3, 7)
  for (method in c("equalwidth", "sd")) {
    codes <- function(x) as.integer(discretize(data.frame(x), method, bins = 10)$x)
    for (unit in c(0.1, 1 / 3, 1e-3, 7e5, 1e-300)) expect_identical(codes(x * unit), codes(x),
                                                                    info = paste(method, unit))
    expect_identical(codes(x / 10 + 5.3), codes(x), info = method)
  }
  expect_identical(codes(c(1, 2, 3) / 10), c(2L, 2L, 2L)) # the mean less and plus the standard deviation
  near <- rep(c(0.3, 0.1 + 0.2), each = 10)
  for (x in list(near, -near, near + 2^-52)) {
    for (method in c("mdl", "caim")) {
      d <- discretize(data.frame(x), method, class = rep(1:2, each = 10))
      expect_identical(length(unique(as.integer(d$x))), 2L, info = method)
    }
  }
})

test_that("cuts by class: one class, one value, missing values", {
  x <- data.frame(a = 1:6, b = 1)
  for (method in c("mdl", "caim", "cacc", "ameva")) {
    expect_identical(vapply(discretize(x, method, class = rep("u", 6)), nlevels, 0L), c(a = 1L, b = 1L))
    d <- discretize(data.frame(a = c(1:10, NA, 50)), method, class = c(rep("u", 5), rep("v", 5), "u", NA))
    expect_identical(attr(d, "cuts")$a, 5.5, info = method)
    expect_identical(is.na(d$a), seq_len(12) == 11)
  }
  expect_error(discretize(x, "mdl"), "class", class = "weft_error_input")
})

test_that("new data get the same bins", {
  for (method in c("equalfreq", "equalwidth", "mdl", "caim", "cacc", "ameva", "sd")) {
    d <- discretize(iris, method, class = iris$Species)
    expect_identical(predict(d, iris), as.data.frame(d), info = method)
    expect_identical(predict(d, iris[5:1, c(3, 1)])$Petal.Length, d$Petal.Length[5:1], info = method)
    outside <- predict(d, data.frame(Sepal.Width = c(-100, 100)))$Sepal.Width
    expect_identical(as.integer(outside), c(1L, nlevels(d$Sepal.Width)), info = method)
  }
  expect_error(predict(d, data.frame(other = 1)), "were discretised", class = "weft_error_input")
  expect_error(predict(d, data.frame(Sepal.Width = "a")), "numeric", class = "weft_error_input")
  expect_output(print(d), "150 rows, 4 of 5 columns discretised \\(sd\\)")
})

test_that("bins = cuts in place what is numeric", {
  x <- data.frame(a = c(0.1, 0.5, 0.9, 0.2), b = factor(c("u", "v", "u", "v")))
  expect_identical(weft:::bin_input(x, 2), data.frame(a = c(1L, 2L, 2L, 1L), b = x$b))
  m <- matrix(c(1.5, 2.5, 3.5, 4.5), 4, dimnames = list(NULL, "g"))
  expect_identical(weft:::bin_input(m, 4), matrix(1:4, 4, dimnames = list(NULL, "g")))
  r <- mi_rank(iris[1:4], iris$Species, bins = 5)
  codes <- discretize(iris[1:4], bins = 5)
  expect_identical(r$mi, mi_rank(codes, iris$Species)$mi)
  expect_error(mi_rank(iris[1:4], iris$Species), "discretize", class = "weft_error_input")
})

test_that("labels are unique however close the cuts", {
  x <- 1 + (1:10) * 1e-12
  expect_identical(anyDuplicated(levels(discretize(data.frame(x), bins = 5)$x)), 0L)
})
