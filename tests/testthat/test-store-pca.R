# Components of a store's blocks by the Gram matrix, which sums the products of the values of each row.

shop <- function(n = 1500, p = 150, density = 0.2) {
  m <- some_counts(n, p, density)
  m[, 3] <- 4 # the same in all cells
  m[17, ] <- 0
  Matrix::drop0(m)
}

test_that("components by the Gram matrix of a store's blocks are those of the dense matrix", {
  withr::local_seed(1)
  m <- shop()
  x <- as_store(m, memory = 2^20)
  dense <- as.matrix(m)
  weights <- rep(1:3, 500)
  about <- stats::runif(150)
  calls <- list(list(), list(scale = TRUE), list(center = FALSE), list(weights = weights), list(center = about),
                list(scale = TRUE, weights = weights, col_weights = 1 + about))
  for (call in calls) for (backend in test_backends()) {
    run <- function(data, ...) suppressWarnings(do.call(pca, c(list(data, 5, ...), call)))
    expected <- run(dense, method = "krylov", backend = "cpu")
    fit <- run(x, method = "gram", block_size = 2^16, backend = backend, seed = 1)
    expect_identical(fit$method, "gram")
    expect_true(all(fit$converged))
    expect_lte(fit$passes, 4)
    expect_equal(fit$sdev, expected$sdev, tolerance = 1e-10)
    expect_equal(abs(Matrix::colSums(fit$rotation * expected$rotation) / Matrix::colSums(expected$rotation^2)),
                 rep(1, 5), tolerance = 1e-8, ignore_attr = TRUE)
    expect_equal(abs(fit$x[, 1:2]), abs(expected$x[, 1:2]), tolerance = 1e-7)
  }
})

test_that("the Gram matrix of sparse rows is the dense one's, whatever the threads and the blocks", {
  withr::local_seed(2)
  m <- shop(3000, 140, 0.3)
  blocks <- list(m[1:7, ], m[8:2000, ], m[2001:3000, ])
  one <- pca(blocks, 4, method = "gram", seed = 1, backend = "cpu", threads = 1)
  expect_identical(one$method, "gram")
  expect_identical(pca(blocks, 4, method = "gram", seed = 1, backend = "cpu", threads = 2)$rotation, one$rotation)
  expect_equal(one$sdev, pca(as.matrix(m), 4, method = "krylov", backend = "cpu")$sdev, tolerance = 1e-12)
  long <- pca(m[rep(1:3000, 12), ], 4, method = "gram", seed = 1, backend = "cpu") # several ranges of rows
  expect_equal(long$d, one$d * sqrt(12), tolerance = 1e-12)
})

test_that("what squaring loses is found again on the store's rows", {
  withr::local_seed(3)
  m <- shop()
  scales <- 10^seq(0, -7, length.out = 150)
  x <- as_store(m %*% Matrix::Diagonal(x = scales), memory = 2^20)
  for (backend in test_backends()) {
    fit <- pca(x, 40, method = "gram", block_size = 2^16, backend = backend, seed = 1)
    expect_true(all(fit$converged))
    expect_equal(fit$sdev, pca(as.matrix(x), 40, method = "krylov", backend = "cpu")$sdev, tolerance = 1e-9)
  }
  far <- as_store(as.matrix(m) + 1e6) # all values stored, far from zero
  fit <- pca(far, 5, method = "gram", backend = "cpu", seed = 1)
  expect_equal(fit$sdev, pca(as.matrix(m), 5, backend = "cpu")$sdev, tolerance = 1e-7)
})

test_that("a device takes blocks that do not fit again for each pass", {
  skip_if(!"cuda" %in% test_backends(), "needs a device")
  withr::local_seed(4)
  x <- as_store(shop(8000, 300, 0.8), memory = 2^20) # 23 MB of values
  withr::local_options(weft.device_memory = 2.6e7)
  fit <- pca(x, 3, method = "gram", block_size = 2^16, backend = "cuda", seed = 1)
  expected <- pca(x, 3, method = "gram", block_size = 2^16, backend = "cpu", seed = 1)
  expect_equal(fit$sdev, expected$sdev, tolerance = 1e-10)
})

test_that("few columns are decomposed by their Gram matrix", {
  method <- function(n, p, values) {
    weft:::pca_plan(list(kind = "stored", n = n, p = p, values = values), 50, "auto", 2)$methods[["cpu"]]
  }
  expect_identical(method(1e7, 2000, 1.6e9), "gram")
  expect_identical(method(1e5, 20000, 1e8), "krylov")
  expect_identical(method(1000, 20000, 1e6), "krylov")
})
