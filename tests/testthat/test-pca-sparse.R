# Sparse matrices on the CPU, whose narrow blocks go through the Gram matrix that is not formed
# (src/pca/engines/gram/lanczos.c).

# Values d in blocks of an orthogonal basis that stays sparse: pairs of rows and columns turned by random angles.
known_values <- function(n, p, d) {
  turned <- function(size, k) {
    angle <- runif(k, 0, 2 * pi)
    Matrix::sparseMatrix(i = c(2 * seq_len(k) - 1, 2 * seq_len(k)), j = rep(seq_len(k), 2),
                         x = c(cos(angle), sin(angle)), dims = c(size, k))
  }
  turned(n, length(d)) %*% Matrix::Diagonal(x = d) %*% Matrix::t(turned(p, length(d)))
}
whole <- function(x, k) svd(as.matrix(x), k, k)

test_that("sparse components are those of the dense matrix, whichever side is shorter", {
  set.seed(1)
  for (shape in list(c(900, 300), c(300, 900))) {
    x <- Matrix::rsparsematrix(shape[1], shape[2], 0.05, rand.x = stats::rexp)
    for (k in c(1, 3, 12)) {
      f <- pca(x, k, seed = 1, method = "krylov", run = weft_run("cpu", threads = 1))
      s <- svd(scale(as.matrix(x), scale = FALSE), k, k)
      expect_equal(f$d, s$d[seq_len(k)], tolerance = 1e-12)
      expect_lt(max(f$residual), 1e-12)
      expect_lt(max(abs(abs(crossprod(s$v, f$rotation)) - diag(k))), 1e-9)
      expect_identical(pca(x, k, seed = 1, method = "krylov", run = weft_run("cpu", threads = 3))$d, f$d)
    }
  }
})

test_that("what is multiplied in tiles, large matrices alone, has the same components", {
  set.seed(4)
  for (shape in list(c(5000, 400, 0.6), c(80000, 300, 0.05))) { # tiles of 512 and of 1,024 rows, the last ones not full
    x <- Matrix::rsparsematrix(shape[1], shape[2], shape[3], rand.x = stats::rexp)
    expect_gt(length(x@x), 1e6)
    half <- shape[1] / 2
    for (k in c(3, 10)) {
      f <- pca(x, k, seed = 1, method = "krylov", run = weft_run("cpu", threads = 1))
      g <- Matrix::crossprod(x) - shape[1] * tcrossprod(Matrix::colMeans(x))
      s <- eigen(as.matrix(g), symmetric = TRUE)
      expect_equal(f$d, sqrt(s$values[seq_len(k)]), tolerance = 1e-12)
      expect_lt(max(f$residual), 1e-12)
      leading <- s$vectors[, seq_len(k)]
      expect_lt(max(abs(f$rotation - leading %*% crossprod(leading, f$rotation))), 1e-8)
      expect_identical(pca(x, k, seed = 1, method = "krylov", run = weft_run("cpu", threads = 3))[c("d", "rotation")],
                       f[c("d", "rotation")])
      parts <- list(x[seq_len(half), ], x[-seq_len(half), ])
      expect_equal(pca(parts, k, seed = 1, method = "krylov", run = "cpu")$d, f$d, tolerance = 1e-13)
    }
  }
})

test_that("copies of a value beyond the block's width are found", {
  set.seed(2)
  d <- c(rep(5, 11), rep(3, 9), rep(1, 60))
  x <- known_values(400, 300, d)
  for (k in c(9, 15, 20)) {
    f <- pca(x, k, center = FALSE, seed = 1, method = "krylov", run = "cpu")
    expect_equal(f$d, d[seq_len(k)], tolerance = 1e-12)
    expect_lt(max(abs(crossprod(f$rotation) - diag(k))), 1e-12)
  }
})

test_that("what squaring loses is found again", {
  set.seed(3)
  d <- 10^-(0:39 / 4)
  x <- known_values(400, 300, d)
  f <- pca(x, 30, center = FALSE, seed = 1, method = "krylov", run = "cpu")
  expect_lt(max(abs(f$d - d[1:30])), 1e-14)
  expect_lt(max(f$residual), 1e-12)
})

test_that("a rank below k, an empty matrix and one entry are no trouble", {
  set.seed(4)
  x <- known_values(400, 300, c(4, 2, 1))
  expect_warning(f <- pca(x, 8, center = FALSE, seed = 1, method = "krylov", run = "cpu"), "rank is 3")
  expect_equal(f$d, c(4, 2, 1, 0, 0, 0, 0, 0), tolerance = 1e-12)
  expect_lt(max(abs(crossprod(f$rotation) - diag(8))), 1e-12)
  x <- Matrix::sparseMatrix(i = integer(), j = integer(), x = numeric(), dims = c(400, 300))
  expect_warning(f <- pca(x, 3, center = FALSE, seed = 1, method = "krylov", run = "cpu"), "rank is 0")
  expect_identical(f$d, numeric(3))
  x <- Matrix::sparseMatrix(i = 7, j = 5, x = -2, dims = c(400, 300))
  expect_warning(f <- pca(x, 3, center = FALSE, seed = 1, method = "krylov", run = "cpu"), "rank is 1")
  expect_equal(f$d, c(2, 0, 0))
})

test_that("few iterations end with a warning and what was found", {
  set.seed(5)
  x <- Matrix::rsparsematrix(900, 300, 0.05)
  expect_warning(f <- pca(x, 6, seed = 1, method = "krylov", run = "cpu", control = list(max_iterations = 2)),
                 class = "weft_warning_convergence")
  expect_false(all(f$converged))
  expect_true(all(is.finite(f$d)) && all(diff(f$d) <= 0))
})

test_that("clusters of any width are found whole, to the tolerance asked for", {
  set.seed(7)
  for (i in 1:40) {
    groups <- sample(5, 1)
    base <- sort(runif(groups, 1, 5), decreasing = TRUE)
    spread <- 10^-sample(c(2:15, Inf), groups, replace = TRUE)
    d <- unlist(Map(function(b, s) b * (1 + s * runif(sample(12, 1))), base, spread))
    d <- sort(c(d, runif(sample(0:60, 1), 0, 0.99)), decreasing = TRUE)
    k <- sample(min(20, length(d)), 1)
    tol <- sample(c(1e-12, 1e-8, 1e-4), 1)
    x <- known_values(400, 300, d)
    f <- pca(x, k, center = FALSE, seed = i, method = "krylov", run = "cpu", control = list(tolerance = tol))
    expect_lt(max(abs(f$d - d[seq_len(k)])) / d[1], 1.5 * tol + 1e-13)
    expect_lt(max(abs(crossprod(f$rotation) - diag(k))), 1e-12)
  }
})

test_that("a flat spectrum takes few passes, and fewer for a loose tolerance", {
  set.seed(6)
  x <- Matrix::rsparsematrix(4000, 500, 0.02, rand.x = stats::rexp)
  centred <- scale(as.matrix(x), scale = FALSE)
  fits <- lapply(c(1e-12, 1e-8, 1e-4), function(tol) {
    f <- pca(x, 10, seed = 1, method = "krylov", run = weft_run("cpu", threads = 1), control = list(tolerance = tol))
    left <- crossprod(centred, sweep(f$x, 2, f$d, "/")) - sweep(f$rotation, 2, f$d, "*")
    expect_lte(max(sqrt(colSums(left^2))), tol * f$d[1] * 1.01 + 1e-13 * f$d[1])
    f
  })
  expect_equal(fits[[1]]$d, svd(centred, 0, 0)$d[1:10], tolerance = 1e-12)
  passes <- vapply(fits, `[[`, 0, "passes") # one for each block of four vectors and two more: 58, 49 and 36
  expect_lt(passes[1], 64)
  expect_lt(passes[3], 0.7 * passes[1])
})

test_that("components that stand out take as many passes as they need, whatever copies there might be", {
  set.seed(8)
  x <- known_values(3000, 2000, c(20:1, runif(400, 0, 0.1)))
  f <- pca(x, 19, center = FALSE, seed = 1, method = "krylov", run = weft_run("cpu", threads = 1))
  expect_equal(f$d, 20:2, tolerance = 1e-12)
  expect_lt(f$passes, 21) # 13; with a search for copies, 36
})

test_that("sparse data of any values and shapes have the components of dense ones, the same with any threads", {
  skip_on_cran()
  set.seed(7)
  values <- list(counts = function(k) stats::rpois(k, 1) + 1, numbers = stats::rnorm, # few, all different, some of each
                 both = function(k) ifelse(stats::runif(k) < 0.97, stats::rpois(k, 1) + 1, stats::rnorm(k)))
  for (draw in values) for (shape in list(c(3000, 700, 0.1), c(20011, 150, 0.06), c(700, 2500, 0.12))) {
    x <- Matrix::rsparsematrix(shape[1], shape[2], shape[3], rand.x = draw)
    x[sample(nrow(x), 3), ] <- 0
    x[, sample(ncol(x), 5)] <- 0
    x <- Matrix::drop0(x)
    for (k in c(2, 3, 11)) {
      weights <- if (k == 3) stats::runif(nrow(x)) + 0.1
      run <- function(threads) pca(x, k, "krylov", weights = weights, seed = 1,
                                   run = weft_run("cpu", threads = threads))
      one <- run(1)
      expect_identical(run(2)[c("d", "rotation", "x")], one[c("d", "rotation", "x")])
      expect_equal(one$d, pca(as.matrix(x), k, weights = weights, seed = 1, run = "cpu")$d, tolerance = 1e-11)
    }
  }
})

test_that("a device makes the Gram matrix of a sparse matrix where that takes less, and small ones need cuBLAS alone", {
  plan <- function(kind, n, p, k, method = "auto", share = 1) {
    weft:::ask_pca_plan(kind, method, list(n = n, p = p, cells = n * p * share, k = k, threads = 2))
  }
  on_device <- function(n, p, share) plan("sparse", n, p, 2, share = share)$methods[["cuda"]]
  expect_identical(on_device(200, 150, 0.1), "gram")
  expect_identical(on_device(150, 3000, 0.1), "gram") # small enough to become dense
  expect_identical(on_device(50000, 3000, 0.01), "gram")
  expect_identical(on_device(3000, 50000, 0.01), "krylov")
  expect_identical(on_device(1e5, 20000, 0.01), "krylov")
  libraries <- function(n, p, k) plan("dense", n, p, k, "gram")$libraries
  expect_identical(libraries(400, 300, 2), "cublas") # eigenvectors on the host
  expect_identical(libraries(500, 400, 2), c("cublas", "cusolver"))
  expect_identical(libraries(2000, 1000, 2), "cublas") # filtered
  expect_identical(libraries(2000, 1000, 200), c("cublas", "cusolver"))
  expect_identical(plan("sparse", 1e5, 20000, 20, share = 0.01)$libraries, "cublas")
})
