# The definition, from a table; independent of the package's code.
reference <- function(a, class, level = FALSE) {
  keep <- !is.na(class) & (level | !is.na(a))
  a <- as.character(a)[keep]
  a[is.na(a)] <- "(missing)"
  counts <- table(a, as.character(class[keep]))
  n <- sum(counts)
  if (n == 0) return(c(mi = 0, entropy = 0, levels = 0, n = 0, df = 0))
  h <- function(k) { p <- k[k > 0] / n; -sum(p * log2(p)) }
  rows <- rowSums(counts)
  cols <- colSums(counts)
  c(mi = h(rows) + h(cols) - h(counts), entropy = h(rows), levels = length(rows), n = n,
    df = (length(rows) - 1) * (length(cols) - 1))
}

expect_rank <- function(x, class, na = "fail", backend = "cpu", columns = as.list(as.data.frame(x)), ...) {
  result <- call_with(mi_rank, list(x, class, na = na, run = backend, ...))
  want <- vapply(columns, reference, numeric(5), class = class, level = na == "level")
  got <- result[match(colnames(want), result$feature), ]
  for (field in rownames(want)) {
    expect_equal(got[[field]], unname(want[field, ]), tolerance = 1e-12, label = paste(field, "on", backend))
  }
  expect_false(is.unsorted(-result$mi))
  invisible(result)
}

random_columns <- function(n, levels) {
  columns <- lapply(levels, function(l) sample(l, n, replace = TRUE))
  names(columns) <- paste0("x", seq_along(levels))
  columns
}

test_that("scores agree with tables counted in R", {
  withr::local_seed(1)
  for (backend in test_backends()) {
    for (n in c(1, 2, 63, 64, 65, 1000, 20001)) {
      x <- as.data.frame(random_columns(n, c(1, 2, 2, 3, 4, 7, 30, 254, 255, 256, 300, 5000)))
      for (classes in c(1, 2, 3, 20, 40, 300)) expect_rank(x, sample(classes, n, replace = TRUE), backend = backend)
    }
  }
})

test_that("every type of column gives the same scores", {
  withr::local_seed(2)
  n <- 500
  codes <- random_columns(n, c(2, 3, 5, 12))
  class <- factor(sample(c("a", "b", "c"), n, replace = TRUE), levels = c("never", "a", "b", "c"))
  want <- mi_rank(as.data.frame(codes), class)
  same <- function(x) expect_equal(tidy(mi_rank(x, class)), tidy(want), tolerance = 1e-14)
  m <- do.call(cbind, codes)
  same(m)
  same(m + 0)
  same(m - 1000L)
  same(m * 100000L) # values that span more than 16 bits
  same(structure(as.raw(m), dim = dim(m), dimnames = dimnames(m)))
  same(as.data.frame(lapply(codes, factor)))
  same(as.data.frame(lapply(codes, function(v) letters[v])))
  same(structure(letters[m], dim = dim(m), dimnames = dimnames(m)))
  logical <- as.data.frame(lapply(codes, function(v) v > 1))
  expect_equal(mi_rank(logical, class)$mi, mi_rank(as.data.frame(lapply(logical, as.integer)), class)$mi)
})

test_that("sparse matrices are counted without being filled", {
  withr::local_seed(3)
  n <- 400
  dense <- matrix(rpois(n * 30, 0.3) * sample(c(-1, 1), n * 30, TRUE), n, dimnames = list(NULL, paste0("g", 1:30)))
  dense[, 1] <- 0
  dense[, 2] <- 4
  dense[, 3] <- ifelse(dense[, 3] != 0, 70000 * seq_len(n), 0)
  class <- sample(3, n, replace = TRUE)
  sparse <- Matrix::Matrix(dense, sparse = TRUE)
  for (backend in test_backends()) {
    expect_equal(tidy(mi_rank(sparse, class, run = backend)), tidy(mi_rank(dense, class)), tolerance = 1e-14)
    pattern <- methods::as(sparse != 0, "nMatrix")
    expect_equal(tidy(mi_rank(pattern, class, run = backend)), tidy(mi_rank((dense != 0) + 0L, class)),
                 tolerance = 1e-14)
    many <- sample(300, n, replace = TRUE) # more classes than a byte counts
    expect_equal(tidy(mi_rank(pattern, many, run = backend)), tidy(mi_rank((dense != 0) + 0L, many)),
                 tolerance = 1e-14)
    expect_equal(tidy(mi_rank(sparse, many, run = backend)), tidy(mi_rank(dense, many)), tolerance = 1e-14)
  }
  triplets <- methods::as(sparse, "TsparseMatrix")
  expect_equal(tidy(mi_rank(triplets, class)), tidy(mi_rank(dense, class)), tolerance = 1e-14)
  class[1:50] <- NA
  dense[sample(length(dense), 200)] <- NA
  expect_rank(dense, class, "drop")
  for (na in c("drop", "level")) {
    expect_equal(tidy(mi_rank(Matrix::Matrix(dense, sparse = TRUE), class, na = na)),
                 tidy(mi_rank(dense, class, na = na)),
                 tolerance = 1e-14)
  }
})

test_that("missing values follow the policy, over the same rows for every part of a score", {
  withr::local_seed(4)
  n <- 999
  x <- random_columns(n, c(2, 2, 3, 254, 255, 700))
  x <- as.data.frame(lapply(x, function(v) replace(v, sample(n, 100), NA)))
  x$all <- NA
  x$none <- rep(1:2, length.out = n)
  class <- replace(sample(4, n, replace = TRUE), sample(n, 50), NA)
  for (backend in test_backends()) {
    expect_rank(x, class, "drop", backend)
    expect_rank(x, class, "level", backend)
  }
  expect_identical(mi_rank(x["all"], class, na = "drop")$n, 0)
  doubles <- as.data.frame(lapply(x, as.double))
  expect_identical(tidy(mi_rank(doubles, class, na = "drop")), tidy(mi_rank(x, class, na = "drop")))
  expect_error(mi_rank(x, class), class = "weft_error_input", regexp = "class")
  expect_error(mi_rank(x, replace(class, is.na(class), 1)), class = "weft_error_input", regexp = "7 of 8 columns: `x1`")
})

test_that("hard columns: constant, unique, wide, many levels", {
  withr::local_seed(5)
  n <- 70000
  wide <- sample(c(-.Machine$integer.max, -5L, 0L, 7L, .Machine$integer.max), n, replace = TRUE)
  x <- list(constant = rep(3L, n), wide = wide, most = sample(65535L, n, TRUE), two = wide > 0)
  class <- sample(2, n, replace = TRUE)
  for (backend in test_backends()) {
    expect_rank(as.data.frame(x), class, backend = backend)
    expect_rank(as.data.frame(x), sample(1000, n, replace = TRUE), backend = backend)
    expect_rank(data.frame(unique = seq_len(5000)), rep(1:5000), backend = backend)
    expect_error(mi_rank(data.frame(a = 1:2, all = seq_len(n)), class, run = backend),
                 class = "weft_error_input", regexp = "`all` \\(2\\).*at most 65535")
  }
  exact <- mi_rank(data.frame(c = rep(1, 10), copy = rep(1:2, 5)), rep(1:2, 5))
  expect_equal(exact$mi, c(1, 0), tolerance = 1e-15)
  expect_identical(exact$mi[2], 0)
  expect_identical(exact$entropy[2], 0)
  expect_identical(exact$p_value[2], 1)
  expect_identical(mi_rank(data.frame(a = 1:10), rep("one", 10))$mi, 0)
})

test_that("exact decimals for small cases", {
  # 3 of 4 agree: I = 1 - H(1/4) for balanced margins needs 8 rows
  a <- rep(c(0, 1), each = 8)
  b <- c(rep(0, 6), 1, 1, rep(1, 6), 0, 0)
  expect_equal(mi_rank(data.frame(a), b)$mi, 1 - 0.811278124459132864, tolerance = 1e-15)
  # a copy carries the entropy of the class: H(1/8, 3/8, 1/2)
  class <- rep(1:3, c(1, 3, 4))
  expect_equal(mi_rank(data.frame(class), class)$mi, 1.405639062229566256, tolerance = 1e-15)
  expect_equal(mi_rank(data.frame(class), class, unit = "nats")$mi, 1.405639062229566256 * log(2), tolerance = 1e-15)
})

test_that("the statistic G is R's", { # its p-values: test-mi-null.R
  withr::local_seed(6)
  x <- as.data.frame(random_columns(300, c(2, 3, 6)))
  class <- sample(3, 300, TRUE)
  r <- mi_rank(x, class)
  for (k in seq_len(nrow(r))) {
    o <- table(x[[r$feature[k]]], class)
    e <- outer(rowSums(o), colSums(o)) / sum(o)
    g <- 2 * sum(ifelse(o > 0, o * log(o / e), 0))
    expect_equal(r$statistic[k], g, tolerance = 1e-10)
    expect_identical(r$df[k], (nrow(o) - 1) * (ncol(o) - 1))
  }
  expect_equal(r$q_value, p.adjust(r$p_value, "BH"))
})

test_that("ties keep the order of the columns, and names survive", {
  x <- stats::setNames(data.frame(c(1, 1, 2, 2), c(2, 2, 1, 1)), c("b b", "\u00e4"))
  x <- cbind(x, x)
  r <- mi_rank(x, factor(c("\u00fc", "\u00fc", "o", "o")))
  expect_identical(r$feature, c("b b", "\u00e4", "b b", "\u00e4"))
  expect_identical(mi_rank(matrix(1:4, 2), 1:2)$feature, c("V1", "V2"))
})

test_that("no columns give an empty answer, no rows an error", {
  for (backend in test_backends()) {
    expect_identical(nrow(mi_rank(data.frame(a = 1:3)[, FALSE, drop = FALSE], 1:3, run = backend)), 0L)
  }
  none <- data.frame(a = integer(), b = factor(character()), c = integer())
  searches <- list(mi_rank, mi_pairs, mi_triples, function(...) call_with(mi_tuples, list(..., order = 3)),
                   function(...) call_with(mi_select, list(..., k = 1)),
                   function(...) call_with(mi_rank, list(..., permutations = 5)), mi_pack)
  for (search in searches) {
    expect_error(search(none, integer()), "at least one", class = "weft_error_input")
    expect_error(search(data.frame(a = 1:2, b = 2:1, c = 1:2), c(NA, NA), na = "drop"), "at least one value",
                 class = "weft_error_input")
  }
  for (estimator in c("empirical", "pearson", "ksg")) {
    expect_error(mi_matrix(none[1], estimator = estimator), "at least one", class = "weft_error_input")
    expect_error(mi_network(none[1], estimator = estimator), "at least one", class = "weft_error_input")
  }
})

test_that("integers, numbers and factors give the same bits, missing values as a level too", {
  withr::local_seed(11)
  for (n in c(82, 371)) {
    class <- sample(17, n, TRUE)
    x <- data.frame(one = ifelse(runif(n) < 0.3, NA, 5L), two = sample(c(1:2, NA), n, TRUE),
                    late = rep(c(4L, 3L, NA), c(n - 20, 10, 10)),
                    first = c(7L, rep(NA, n - 1)), three = sample(c(1:3, NA), n, TRUE), whole = sample(2L, n, TRUE))
    same <- mi_rank(x, class, na = "level", run = "cpu")
    for (y in list(x + 0, as.data.frame(lapply(x, factor)), as.data.frame(lapply(x, as.character)))) {
      for (backend in test_backends()) expect_identical(tidy(mi_rank(y, class, na = "level", run = backend)),
                                                        tidy(same))
    }
  }
})

test_that("threads and back ends give the same bits", {
  withr::local_seed(7)
  x <- as.data.frame(random_columns(3000, rep(c(2, 3, 9, 400), 20)))
  class <- sample(5, 3000, TRUE)
  one <- mi_rank(x, class, run = weft_run("cpu", threads = 1))
  expect_identical(tidy(mi_rank(x, class, run = weft_run("cpu", threads = 2))), tidy(one))
  skip_if_no_cuda()
  expect_identical(tidy(mi_rank(x, class, run = "cuda")), tidy(one))
})

test_that("every vector variant gives the same bits", {
  withr::local_seed(8)
  x <- as.data.frame(random_columns(1027, c(2, 2, 3, 9, 400)))
  x$x1[5] <- NA
  class <- sample(3, 1027, TRUE)
  want <- tidy(mi_rank(x, class, na = "drop"))
  for (level in simd_levels()) {
    expect_identical(with_simd_level(level, tidy(mi_rank(x, class, na = "drop"))), want)
  }
})

test_that("a device with little memory works in chunks", {
  skip_if_no_cuda()
  withr::local_seed(9)
  x <- as.data.frame(random_columns(2000, rep(c(2, 50, 300), 30)))
  class <- sample(3, 2000, TRUE)
  want <- mi_rank(x, class, run = "cpu")
  withr::local_options(weft.device_memory = 4e6)
  expect_identical(tidy(mi_rank(x, class, run = "cuda")), tidy(want))
  withr::local_options(weft.device_memory = 1e4)
  expect_error(mi_rank(x, class, run = "cuda"), class = "weft_error_memory", regexp = "needed")
})

test_that("bad input is refused in words that help", {
  x <- data.frame(a = 1:4, b = c(1.5, 2, 3, 4))
  class <- c(1, 1, 2, 2)
  expect_snapshot(error = TRUE, {
    mi_rank(x, class)
    mi_rank(data.frame(a = Inf), 1)
    mi_rank(data.frame(a = 3e9), 1)
    mi_rank(1:4, class)
    mi_rank(list(1), class)
    mi_rank(x["a"], class[-1])
    mi_rank(matrix(1:8, 2), class)
    mi_rank(x["a"], class + 0.25)
    mi_rank(x["a"], quote(class))
    mi_rank(data.frame(a = 1:4, when = Sys.Date() + 1:4), class)
    mi_rank(replace(x["a"], 1, NA), class)
    mi_rank(x["a"], c(1, NA, 2, 2))
    mi_rank(x["a"], class, na = "omit")
    mi_rank(x["a"], class, run = weft_run(threads = 0))
    mi_rank(x["a"], class, run = "gpu")
    mi_rank(x["a"], class, run = weft_run(verbose = NA))
  })
})

test_that("results print, summarise, plot and say how they were made", {
  withr::local_seed(11)
  x <- as.data.frame(random_columns(100, rep(2, 30)))
  class <- rep(1:2, 50)
  r <- mi_rank(x, class, run = "cpu")
  expect_output(print(r), "30 features with a class of 2 levels")
  expect_output(print(r), "and 20 more")
  expect_match(summary(r)$run, "cpu back end \\(requested\\)")
  expect_output(print(r[1:2, c("feature", "mi")]), "feature")
  expect_s3_class(r, c("weft_mi", "data.frame"), exact = TRUE)
  expect_identical(class(tidy(r)), "data.frame")
  expect_identical(glance(r)$features, 30L)
  expect_identical(summary(r)$features, 30L)
  expect_message(mi_rank(x, class, run = weft_run(verbose = TRUE)), "Back end")
  withr::local_pdf(NULL)
  expect_no_error(plot(r))
  expect_no_error(plot(r, top = 3, main = "mine"))
})

test_that("bytes say what the same whole numbers say", {
  withr::local_seed(7)
  class <- sample(c("a", "b", NA), 90, TRUE)
  numbers <- data.frame(from0 = sample(0:1, 90, TRUE), from1 = sample(1:2, 90, TRUE),
                        gaps = sample(c(0L, 3L, 7L), 90, TRUE), high = sample(c(250L, 255L), 90, TRUE),
                        all = sample(0:255, 90, TRUE), one = 0L)
  for (rows in list(1:90, which(!is.na(class)))) {
    scores <- function(x) as.data.frame(mi_rank(mi_pack(x[rows, ], class[rows], na = "drop")))
    expect_identical(scores(as.data.frame(lapply(numbers, as.raw))), scores(numbers))
  }
})
