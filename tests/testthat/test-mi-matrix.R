all_pairs <- function(x, f) {
  p <- ncol(x)
  out <- matrix(0, p, p)
  for (i in seq_len(p)) for (j in seq_len(p)) if (i != j) out[i, j] <- f(x[, i], x[, j])
  out
}

test_that("correlations are those of stats::cor", {
  set.seed(1)
  x <- matrix(rnorm(97 * 11), 97)
  x[, 2] <- x[, 1] + x[, 2]
  x[, 3] <- round(x[, 3], 1) # ties
  x[, 4] <- -exp(x[, 1])
  for (method in c("pearson", "spearman", "kendall")) {
    expected <- ref_of_rho(cor(x, method = method))
    diag(expected) <- 0
    expect_equal(plain_matrix(mi_matrix(x, estimator = method)), expected, tolerance = 1e-12, info = method)
  }
  scores <- apply(x, 2, function(v) qnorm(rank(v) / (length(v) + 1)))
  expected <- ref_of_rho(cor(scores))
  diag(expected) <- 0
  expect_equal(plain_matrix(mi_matrix(x, estimator = "copula")), expected, tolerance = 1e-12)
})

test_that("normal scores are qnorm's", {
  for (n in c(2, 3, 10, 1001)) {
    x <- cbind(seq_len(n), c(rev(seq_len(n - 1)), n))
    s <- qnorm(x / (n + 1))
    expect_equal(mi_matrix(x, estimator = "copula")[1, 2], ref_of_rho(cor(s)[1, 2]), tolerance = 1e-12)
  }
})

test_that("KSG is the formula, for several k", {
  set.seed(2)
  x <- matrix(rnorm(83 * 6), 83)
  x[, 2] <- sin(3 * x[, 1]) + 0.1 * x[, 2]
  x[, 3] <- exp(5 * x[, 3])
  for (k in c(1, 3, 20)) {
    expected <- all_pairs(x, function(a, b) ref_ksg(a, b, k))
    expect_equal(plain_matrix(mi_matrix(x, estimator = "ksg", k = k)), expected, tolerance = 1e-12)
  }
  expect_lt(min(mi_matrix(x, estimator = "ksg")), 0) # negative estimates are kept
})

test_that("nearest neighbours do not depend on units: ties of decimals stay ties", {
  whole <- matrix(sample(0:40, 3 * 120, TRUE), 120)
  whole[, 2] <- whole[, 1] + sample(0:9, 120, TRUE)
  whole[, 3] <- 3 * whole[, 1] # ties between distances along both columns
  expected <- mi_matrix(whole, estimator = "ksg")
  one_by_one <- function(x) t(t(x) * c(1 / 7, 1e-5, 1e4 / 3) + c(0.1, -2e-4, 1e4))
  for (f in list(function(x) x / 10, function(x) x / 3, function(x) x / 1000, function(x) x * 1e-300,
                 function(x) x / 10 + 77.7, function(x) -x / 1e4 - 1, one_by_one)) {
    expect_identical(plain_matrix(mi_matrix(f(whole), estimator = "ksg")), plain_matrix(expected))
    gaps <- f(whole)
    gaps[1:7] <- NA
    expect_identical(mi_matrix(gaps, estimator = "ksg", na = "drop")[1, 2],
                     mi_matrix(whole[-(1:7), ], estimator = "ksg")[1, 2])
  }
  smooth <- matrix(rnorm(300), 100)
  expect_identical(mi_matrix(smooth / 3, estimator = "ksg")[1, 2], mi_matrix(smooth, estimator = "ksg")[1, 2])
})

test_that("KSG agrees with parmigene's numbers", {
  # knnmi.all(t(x), 3, 1e-12) of parmigene 1.1.1
  i <- 1:40
  x <- cbind(sin(i), sin(i) + cos(3 * i) / 3, sqrt(i) * cos(i))
  m <- mi_matrix(x, estimator = "ksg", k = 3, unit = "nats")
  expect_equal(c(m[1, 2], m[1, 3], m[2, 3]), c(0.875904150047, 0.171177765321, 0.267733085001), tolerance = 1e-10)
})

test_that("KSG with ties: whole numbers go over into counts, whatever their order and unit", {
  set.seed(3)
  a <- sample(1:3, 300, TRUE)
  b <- ifelse(runif(300) < 0.7, a, sample(1:3, 300, TRUE))
  m <- mi_matrix(cbind(a, b), estimator = "ksg")[1, 2]
  expect_equal(m, ref_mi(a, b), tolerance = 0.15)
  shuffled <- sample(300)
  expect_identical(mi_matrix(cbind(a, b)[shuffled, ], estimator = "ksg")[1, 2], m)
  expect_identical(mi_matrix(cbind(b, a), estimator = "ksg")[1, 2], m)
  expect_identical(mi_matrix(cbind(a * 8, b / 4), estimator = "ksg")[1, 2], m)
  grid <- expand.grid(1:7, 1:7)
  expect_identical(mi_matrix(grid, estimator = "ksg")[1, 2], mi_matrix(grid[49:1, 2:1], estimator = "ksg")[1, 2])
})

test_that("perfect correlation gives 23 bits, constants 0, the diagonal 0", {
  x <- cbind(a = c(1, 2, 4, 8, 9), b = 2 * c(1, 2, 4, 8, 9) + 1, c = -c(1, 2, 4, 8, 9), d = 0.1)
  for (estimator in c("pearson", "spearman", "kendall", "copula")) {
    m <- plain_matrix(mi_matrix(x, estimator = estimator))
    expect_identical(c(m[1, 2], m[1, 3], m[2, 3]), c(23, 23, 23), info = estimator)
    expect_identical(m[4, ], numeric(4))
    expect_identical(diag(m), numeric(4))
  }
  expect_identical(plain_matrix(mi_matrix(x, estimator = "ksg", k = 1))[4, ], numeric(4))
})

test_that("scale does not matter, however large or small", {
  set.seed(4)
  x <- matrix(rnorm(40 * 3), 40)
  far <- cbind(x[, 1] * 1e300, x[, 2] * 1e-300, x[, 3])
  for (estimator in c("pearson", "spearman", "copula", "kendall", "ksg")) {
    expect_equal(plain_matrix(mi_matrix(far, estimator = estimator)), plain_matrix(mi_matrix(x, estimator = estimator)),
                 tolerance = 1e-10, info = estimator)
  }
})

test_that("missing values: pairs are over their common rows", {
  set.seed(5)
  x <- matrix(rnorm(70 * 5), 70)
  x[sample(length(x), 60)] <- NA
  x[, 5] <- c(NA, x[-1, 1])
  for (method in c("pearson", "spearman", "kendall")) {
    expected <- ref_of_rho(cor(x, method = method, use = "pairwise.complete.obs"))
    diag(expected) <- 0
    expect_equal(plain_matrix(mi_matrix(x, estimator = method, na = "drop")), expected, tolerance = 1e-12,
                 info = method)
  }
  pair <- x[complete.cases(x[, 2:3]), 2:3]
  expect_equal(mi_matrix(x, estimator = "ksg", na = "drop")[2, 3], ref_ksg(pair[, 1], pair[, 2], 3), tolerance = 1e-12)
  scores <- apply(pair, 2, function(v) qnorm(rank(v) / (length(v) + 1)))
  expect_equal(mi_matrix(x, estimator = "copula", na = "drop")[2, 3], ref_of_rho(cor(scores)[1, 2]), tolerance = 1e-12)
  expect_error(mi_matrix(x, estimator = "ksg"), "missing values", class = "weft_error_input")
  expect_error(mi_matrix(x, estimator = "ksg", na = "level"), class = "weft_error_input")
  y <- cbind(c(1, NA, 3, NA), c(NA, 2, NA, 4), 1:4)
  for (estimator in c("pearson", "spearman", "copula", "kendall", "ksg")) {
    expect_identical(mi_matrix(y, estimator = estimator, na = "drop", k = 2)[1, 2], 0, info = estimator)
  }
})

test_that("x against y is the block of the whole", {
  set.seed(6)
  x <- as.data.frame(matrix(rnorm(50 * 70), 50))
  for (estimator in c("pearson", "spearman", "copula", "kendall", "ksg")) {
    whole <- as.matrix(mi_matrix(x, estimator = estimator))
    block <- as.matrix(mi_matrix(x[1:37], x[38:70], estimator = estimator))
    expect_identical(block, whole[1:37, 38:70], info = estimator)
  }
  bins <- as.matrix(mi_matrix(x, bins = 3))
  expect_equal(as.matrix(mi_matrix(x[1:5], x[6:9], bins = 3)), bins[1:5, 6:9], tolerance = 1e-14)
  expect_error(mi_matrix(x, x[1:5, ], estimator = "ksg"), "same rows", class = "weft_error_input")
})

test_that("counts with bins are those of the bins", {
  set.seed(7)
  x <- as.data.frame(matrix(rnorm(60 * 4), 60))
  codes <- lapply(x, function(v) 1 + findInterval(v, sort(v)[ceiling(1:3 * 60 / 4)], left.open = TRUE))
  m <- mi_matrix(x, bins = 4)
  expect_equal(m[1, 2], ref_mi(codes[[1]], codes[[2]]), tolerance = 1e-12)
  expect_equal(m[3, 3], ref_entropy(codes[[3]]), tolerance = 1e-12)
  expect_equal(mi_matrix(x, bins = 4, unit = "nats")[1, 2], m[1, 2] * log(2), tolerance = 1e-14)
  expect_identical(dimnames(m), list(names(x), names(x)))
})

test_that("results do not depend on threads and vectors", {
  set.seed(8)
  x <- matrix(rnorm(77 * 40), 77)
  x[5, 3] <- NA
  before <- .Call(weft:::C_weft_simd, NULL)
  levels <- c("portable", "avx2", "avx512")
  for (estimator in c("pearson", "spearman", "copula", "kendall", "ksg")) {
    one <- as.matrix(mi_matrix(x, estimator = estimator, na = "drop", run = weft_run(threads = 1)))
    expect_identical(as.matrix(mi_matrix(x, estimator = estimator, na = "drop", run = weft_run(threads = 3))), one,
                     info = estimator)
    for (level in 0:2) {
      if (is.null(.Call(weft:::C_weft_simd, level))) next
      expect_identical(as.matrix(mi_matrix(x, estimator = estimator, na = "drop")), one, info = levels[level + 1])
    }
    .Call(weft:::C_weft_simd, match(before, levels) - 1L)
  }
})

test_that("small and odd inputs", {
  for (estimator in c("pearson", "spearman", "copula", "kendall")) {
    expect_identical(dim(mi_matrix(matrix(0, 5, 0), estimator = estimator)), c(0L, 0L))
    expect_identical(plain_matrix(mi_matrix(matrix(1:3, 1), estimator = estimator)), matrix(0, 3, 3))
    expect_identical(plain_matrix(mi_matrix(matrix(c(1, 2, 5, 3), 2), estimator = estimator))[1, 2], 23)
  }
  expect_error(mi_matrix(matrix(1:6, 2), estimator = "ksg"), "less than the number of rows", class = "weft_error_input")
  expect_error(mi_matrix(cbind(a = c(1, Inf, 3), b = 1:3), estimator = "pearson"), "finite", class = "weft_error_input")
  expect_equal(mi_matrix(cbind(c(1, Inf, 3, 0), 1:4), estimator = "spearman")[1, 2],
               ref_of_rho(cor(c(2, 4, 3, 1), 1:4)), tolerance = 1e-12)
  expect_error(mi_matrix(iris, estimator = "spearman"), "Species", class = "weft_error_input")
  expect_error(mi_matrix(list(1), estimator = "spearman"), class = "weft_error_input")
  expect_error(mi_matrix(iris[1:4]), "discretize", class = "weft_error_input")
  expect_error(mi_matrix(iris[1:4], bins = 3, estimator = "ksg"), class = "weft_error_input")
  m <- mi_matrix(matrix(rnorm(40), 10, dimnames = list(NULL, c("\u00e9", "b", "b", "\u6f22"))), estimator = "pearson")
  expect_identical(colnames(m), c("\u00e9", "b", "b", "\u6f22"))
})

test_that("a matrix prints, sums up, plots", {
  m <- mi_matrix(mtcars, estimator = "kendall")
  expect_output(print(m), "11 features \\(kendall, bits\\)")
  expect_identical(summary(m)$features, c(11L, 11L))
  withr::local_pdf(NULL)
  expect_identical(plot(m), m)
  expect_identical(class(as.matrix(m)), c("matrix", "array"))
})

test_that("both back ends give the same bits", {
  skip_if_no_cuda()
  set.seed(9)
  for (shape in list(c(2, 3), c(33, 35), c(130, 67), c(1001, 9), c(14000, 3))) {
    x <- matrix(rnorm(prod(shape)), shape[1])
    x[, 2] <- round(x[, 2], 1)
    x[, ncol(x)] <- 1
    if (ncol(x) > 5) x[sample(nrow(x), 2), 5] <- NA
    for (estimator in c("pearson", "spearman", "copula", "kendall", "ksg")) {
      if (estimator == "kendall" && nrow(x) > 2000) next
      k <- min(3, nrow(x) - 1)
      run <- function(backend, ...) as.matrix(call_with(mi_matrix, list(x, ..., estimator = estimator, k = k,
                                                                        na = "drop", run = backend)))
      expect_identical(run("cuda"), run("cpu"), info = paste(estimator, shape[1]))
      expect_identical(run("cuda", y = x[, 2:3]), run("cpu", y = x[, 2:3]), info = paste(estimator, shape[1]))
    }
  }
})
