test_that("every triple of every kind of column has the score that tables in R give", {
  set.seed(1)
  for (n in c(1, 2, 40, 130)) {
    x <- mixed_columns(n)[c("a", "b", "c", "d", "e", "g", "h", "i", "j")]
    for (classes in c(1, 2, 3)) {
      class <- sample(seq_len(classes), n, TRUE)
      class[sample(n, n %/% 9)] <- NA
      found <- mi_triples(x, class, top = Inf, na = "drop", run = "cpu")
      expect_tuples(found, reference_tuples(x, class, 3))
      expect_false(is.unsorted(-found$mi))
    }
  }
})

test_that("the best triples are the first of all; XOR is found first", {
  set.seed(2)
  x <- matrix(sample(0:1, 100 * 80, TRUE), 100)
  class <- (x[, 4] + x[, 66] + x[, 71]) %% 2
  for (by in c("mi", "interaction")) {
    all <- as.data.frame(mi_triples(x, class, top = Inf, by = by))
    expect_identical(unlist(all[1, 1:3], use.names = FALSE), c("V4", "V66", "V71"))
    for (threads in 1:2) {
      best <- as.data.frame(mi_triples(x, class, top = 25, by = by, run = weft_run(threads = threads)))
      expect_identical(best, all[1:25, ], ignore_attr = "row.names")
    }
    cut <- all$interaction[3]
    gained <- as.data.frame(mi_triples(x, class, top = Inf, by = by, control = list(min_gain = cut)))
    expect_identical(gained, all[all$interaction >= cut, ], ignore_attr = "row.names")
  }
  among <- mi_triples(x, class, features = c(1:9, 66, 71), top = Inf)
  expect_identical(nrow(among), as.integer(choose(11, 3)))
  expect_identical(among$mi[1], all$mi[1])
})

test_that("tuples of any order, in the order of triples", {
  set.seed(3)
  x <- mixed_columns(60)[c("a", "b", "c", "d", "g", "h", "j")]
  class <- sample(0:2, 60, TRUE)
  for (order in 3:5) {
    found <- mi_tuples(x, class, order = order, top = Inf, na = "drop")
    expect_tuples(found, reference_tuples(x, class, order))
  }
  three <- mi_tuples(x, class, order = 3, top = 10, na = "drop", by = "interaction")
  expect_identical(as.data.frame(three), as.data.frame(mi_triples(x, class, top = 10, na = "drop", by = "interaction")))
  y <- matrix(sample(0:1, 200 * 10, TRUE), 200)
  four <- mi_tuples(y, (y[, 1] + y[, 4] + y[, 8] + y[, 9]) %% 2, features = c(9, 1:8), top = 1)
  expect_identical(unlist(four[1, 1:4], use.names = FALSE), paste0("V", c(1, 4, 8, 9)))
  expect_identical(nrow(mi_tuples(y[, 1:3], y[, 1])), 0L)
  expect_error(mi_tuples(y, y[, 1], order = 2), "`order` must be", class = "weft_error_input")
  expect_error(mi_tuples(matrix(0L, 2, 1000), 0:1, order = 9), "at most 1e12", class = "weft_error_input")
})

test_that("CUDA finds the same triples, in the same order, with the same scores", {
  skip_if_no_cuda()
  set.seed(4)
  for (shape in list(c(30, 20, 2), c(300, 150, 2), c(1000, 140, 2))) {
    x <- matrix(sample(0:1, shape[1] * shape[2], TRUE), shape[1])
    class <- sample(seq_len(shape[3]), shape[1], TRUE)
    for (by in c("mi", "interaction")) {
      cpu <- as.data.frame(mi_triples(x, class, top = 100, by = by, run = "cpu"))
      cuda <- as.data.frame(mi_triples(x, class, top = 100, by = by, run = "cuda"))
      expect_identical(cuda, cpu, label = paste(c(shape, by), collapse = " "))
    }
  }
})

test_that("triples that a device does not search are an error for a named device, and say why", {
  set.seed(5)
  binary <- matrix(sample(0:1, 60 * 8, TRUE), 60)
  class <- sample(0:1, 60, TRUE)
  expect_why <- function(expr, why) expect_error(expr, why, class = "weft_error_device")
  expect_why(mi_triples(cbind(binary, sample(0:5, 60, TRUE)), class, run = "cuda"), "more than five levels")
  expect_why(mi_triples(replace(binary, 3, NA), class, na = "drop", run = "cuda"), "missing values")
  expect_why(mi_triples(binary, sample(0:8, 60, TRUE), run = "cuda"), "more than eight levels")
  expect_why(mi_triples(binary, class, top = Inf, run = "cuda"), "small `top`")
  expect_why(mi_triples(binary[, 1:2], class, run = "cuda"), "fewer than three")
  expect_why(mi_tuples(binary, class, order = 5, run = "cuda"), "order other than 4")
  expect_why(mi_tuples(binary, class, by = "interaction", run = "cuda"), "Interactions")
  expect_why(mi_tuples(binary + 1, sample(0:2, 60, TRUE), run = "cuda"), "without exactly two levels")
  expect_why(mi_tuples(cbind(binary, 1:60), class, run = "cuda"), "more than three levels")
  expect_why(mi_tuples(replace(binary, 3, NA), class, na = "drop", run = "cuda"), "missing values")
  expect_why(mi_tuples(binary, class, top = Inf, run = "cuda"), "small `top`")
  expect_why(mi_tuples(binary[, 1:3], class, run = "cuda"), "fewer than four")
  expect_why(mi_select(binary, class, 2, run = "cuda"), "selected on the CPU")
  found <- mi_triples(binary, sample(0:8, 60, TRUE), top = 3)
  expect_identical(attr(found, "backend"), "cpu")
  expect_match(attr(found, "reason"), "more than eight levels")
  pack <- mi_pack(binary, class)
  expect_why(mi_rank(pack, run = "cuda"), "A pack is ranked on the CPU")
  weft_free(pack)
})
