# Hard inputs, for every counting function and on every back end there is.

# Information of all pairs of columns by tables in R, over the rows where both are known; entropies on the diagonal.
reference_matrix <- function(x) {
  outer(seq_along(x), seq_along(x), Vectorize(function(i, j) {
    rows <- stats::complete.cases(x[c(i, j)])
    if (!any(rows)) return(0)
    h <- function(...) reference_entropy(...)
    a <- x[[i]][rows]
    b <- x[[j]][rows]
    if (i == j) h(a) else h(a) + h(b) - h(paste(a, b))
  }))
}

test_that("one and two rows, nothing known, one class, names twice, any alphabet", {
  for (backend in test_backends()) {
    for (n in 1:2) {
      x <- data.frame(a = seq_len(n), b = rep(1L, n), c = rep(NA_integer_, n), d = c("\u00e9", "\u6f22")[seq_len(n)])
      x <- x[c(1:4, 4)]
      names(x)[5] <- "d"
      one <- mi_pairs(x, rep("x", n), top = Inf, na = "drop", run = backend)
      expect_identical(one$mi, rep(0, 10))
      two <- mi_pairs(x, seq_len(n), na = "drop", run = backend, control = list(full = TRUE))$mi
      known <- outer(c(1, 0, NA, 1, 1), c(1, 0, NA, 1, 1), pmax) * (n - 1)
      known[is.na(known)] <- 0
      expect_equal(unname(two), known, tolerance = 1e-15)
      m <- mi_matrix(x, na = "drop", run = backend)
      expect_identical(colnames(m), c("a", "b", "c", "d", "d"))
      expect_equal(unname(as.matrix(m)), reference_matrix(x), tolerance = 1e-15)
      for (estimator in c("miller-madow", "shrink", "schurmann-grassberger")) {
        expect_false(anyNA(mi_matrix(x, na = "drop", estimator = estimator, run = backend)))
      }
    }
    expect_identical(dim(mi_matrix(matrix(0L, 3, 0), run = backend)), c(0L, 0L))
    expect_identical(dim(mi_matrix(matrix(0L, 3, 2), matrix(0L, 3, 0), run = backend)), c(2L, 0L))
  }
  x <- data.frame(a = 1L, b = NA_integer_, d = "\u00e9")
  for (method in c("mrmr", "jmi", "cmim", "disr")) {
    expect_false(anyNA(mi_select(x, 1L, 3, method, na = "drop")$score))
    expect_false(anyNA(mi_select(x[c(1, 1), ], 1:2, 3, method, na = "drop")$score))
  }
})

test_that("many rows, many levels, all values different", {
  set.seed(6)
  n <- 70000L
  x <- data.frame(most = seq_len(n) %% 65535L, some = rep_len(1:300, n), two = seq_len(n) %/% 7L %% 2L,
                  small = sample(17L, n, TRUE))
  for (backend in test_backends()) {
    expect_equal(unname(as.matrix(mi_matrix(x, run = backend))), reference_matrix(x), tolerance = 1e-12)
    different <- data.frame(a = 1:900, b = 900:1, c = rep(0:1, 450), d = rep(1:30, 30))
    expect_equal(unname(as.matrix(mi_matrix(different, run = backend))), reference_matrix(different),
                 tolerance = 1e-12)
    expect_tuples(mi_pairs(different, rep(1:3, 300), run = backend), reference_tuples(different, rep(1:3, 300), 2))
  }
  picked <- mi_select(x, x$two, 2, "jmi")
  expect_identical(picked$feature[1], "two") # the class itself
})

test_that("XOR of two and of three is found first", {
  set.seed(7)
  x <- matrix(sample(0:1, 200 * 40, TRUE), 200)
  for (backend in test_backends()) {
    found <- mi_pairs(x, xor(x[, 11], x[, 29]), top = 2, run = backend)
    expect_identical(c(found$feature1[1], found$feature2[1]), c("V11", "V29"))
    expect_equal(found$mi[1], reference_entropy(xor(x[, 11], x[, 29])), tolerance = 1e-12)
    class <- (x[, 3] + x[, 20] + x[, 31]) %% 2
    found <- mi_triples(x, class, top = 2, run = backend)
    expect_identical(unlist(found[1, 1:3], use.names = FALSE), c("V3", "V20", "V31"))
    found <- mi_triples(x, class, top = 2, by = "interaction", run = backend)
    expect_identical(unlist(found[1, 1:3], use.names = FALSE), c("V3", "V20", "V31"))
  }
})
