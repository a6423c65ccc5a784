# What other functions make of a store: the same as of the matrix that it holds.

test_that("components from a store are those of the matrix, in memory or read in blocks", {
  withr::local_seed(1)
  m <- some_counts(2500, 60, 0.3)
  m[, 1] <- stats::rpois(2500, 40)
  x <- as_store(m, memory = 2^20)
  expect_gt(length(store_blocks(x)$rows), 2L)
  dense <- pca(as.matrix(m), k = 6, scale = TRUE, run = "cpu")
  for (backend in test_backends()) for (block_size in c(2^28, 2^19, 2^17)) {
    fit <- pca(x, k = 6, scale = TRUE, run = backend, seed = 1, control = list(block_size = block_size))
    expect_equal(fit$sdev, dense$sdev, tolerance = 1e-10)
    expect_equal(abs(Matrix::colSums(fit$rotation * dense$rotation)), rep(1, 6), tolerance = 1e-8, ignore_attr = TRUE)
    expect_identical(dimnames(fit$x), dimnames(dense$x))
    expect_true(all(fit$converged))
  }
  parts <- weft:::pca_source(x, block_size = 2^17)
  expect_identical(parts$kind, "stored")
  expect_gt(length(parts$starts), 2L)
  weighted <- pca(x, k = 2, weights = rep(1:2, 1250), run = "cpu", control = list(block_size = 2^17))
  expect_equal(weighted$sdev, pca(m, k = 2, weights = rep(1:2, 1250), run = "cpu")$sdev, tolerance = 1e-10)
  one <- pca(x, k = 3, seed = 1, run = weft_run("cpu", threads = 1), control = list(block_size = 2^17))
  two <- pca(x, k = 3, seed = 1, run = weft_run("cpu", threads = 2), control = list(block_size = 2^17))
  expect_identical(one$rotation, two$rotation)
})

test_that("a pass over a damaged or missing store ends in an error, and an interrupt ends it", {
  skip_on_os("windows")
  withr::local_seed(2)
  m <- some_counts(2500, 60, 0.3)
  x <- as_store(m, memory = 2^20)
  bytes <- bytes_of(store_file(x))
  at <- 64 + sum(store_blocks(x)$block_bytes[1:2]) - 10
  bytes[at] <- xor(bytes[at], as.raw(1))
  file <- withr::local_tempfile()
  writeBin(bytes, file)
  expect_error(pca(weft_store(file), k = 2, control = list(block_size = 2^17)), "block 2 of",
               class = "weft_error_input")
  m[5, 5] <- NA
  y <- as_store(m, memory = 2^20)
  expect_error(pca(y, k = 2, control = list(block_size = 2^17)), "Missing values need", class = "weft_error_input")
  expect_error(pca(y, k = 2, na = "em", control = list(block_size = 2^17)), "ordinary matrix",
               class = "weft_error_input")
  expect_stops(function(progress) pca(x, k = 2, run = weft_run(progress = progress),
                                      control = list(block_size = 2^17)), "components of a store")
})

test_that("systems that take sparse matrices take a store", {
  withr::local_seed(3)
  m <- some_counts(120, 30, 0.4)
  m@x <- pmin(m@x, 3)
  class <- rep(1:2, 60)
  x <- as_store(m)
  expect_identical(weft:::as_source(x), list(kind = "sparse", data = m, experiment = FALSE))
  expect_identical(mi_rank(x, class)$mi, mi_rank(m, class)$mi)
  expect_identical(mi_pairs(x, class, top = 5)[1:3], mi_pairs(m, class, top = 5)[1:3])
  expect_identical(mi_matrix(x)[, ], mi_matrix(m)[, ])
  expect_identical(discretize(x, bins = 2), discretize(m, bins = 2))
  expect_identical(kernel_sum(x, m, bandwidth = 2)[1:5], kernel_sum(m, m, bandwidth = 2)[1:5])
  expect_identical(irm(x, family = "poisson", chains = 1, sweeps = 3, seed = 1)$log_posterior,
                   irm(m, family = "poisson", chains = 1, sweeps = 3, seed = 1)$log_posterior)
  expect_identical(predict(pca(m, k = 2, seed = 1), x), predict(pca(m, k = 2, seed = 1), m))
  expect_error(bn_scores(x), class = "weft_error_input")
})

test_that("what does not fit as a dense matrix says so", {
  huge <- Matrix::sparseMatrix(1, 1, x = 1, dims = c(2e8, 1e5)) # 160 TB
  expect_error(discretize(huge), "160000.0 GB", class = "weft_error_memory")
  expect_error(as.matrix(as_store(huge)), "must fit into memory as a dense", class = "weft_error_memory")
})

test_that("normalised counts are seen by all that read, and never written", {
  withr::local_seed(4)
  m <- some_counts(2000, 50, 0.2)
  m[3, ] <- 0
  m <- Matrix::drop0(m)
  x <- as_store(m, memory = 2^20)
  y <- store_normalise(x)
  total <- unname(Matrix::rowSums(m))
  by_hand <- m
  by_hand@x <- log1p(m@x / (total / 1e4)[m@i + 1])
  expect_equal(y[, ], by_hand, tolerance = 1e-14)
  expect_equal(y[c(9, 3, 1999), 4:2], by_hand[c(9, 3, 1999), 4:2], tolerance = 1e-14)
  expect_equal(Matrix::colSums(y), Matrix::colSums(by_hand), tolerance = 1e-12)
  expect_equal(summary(y)$range, range(by_hand@x), tolerance = 1e-14)
  expect_equal(pca(y, k = 3, control = list(block_size = 2^17))$sdev, pca(by_hand, k = 3)$sdev, tolerance = 1e-10)
  plain <- store_normalise(x, total = NULL, log = FALSE)
  expect_equal(Matrix::rowSums(plain)[-3], stats::setNames(rep(mean(total), 1999), rownames(m)[-3]), tolerance = 1e-12)
  expect_identical(x[, ], m)
  expect_equal(unserialize(serialize(y, NULL))[, ], by_hand, tolerance = 1e-14)
  expect_output(print(y), "Normalised: rows have a total of 10000, then log")
  expect_output(print(summary(y)), "Normalised")
  expect_error(store_normalise(y), "already", class = "weft_error_input")
  expect_error(store_normalise(m), "must be a store", class = "weft_error_input")
  expect_error(store_normalise(x, total = 0), class = "weft_error_input")
  expect_error(store_normalise(as_store(matrix(c(1, -1), 1))), "smallest value is -1", class = "weft_error_input")
  expect_error(store_normalise(as_store(matrix(c(1, NA), 1))), "missing", class = "weft_error_input")
  expect_identical(dim(store_normalise(as_store(matrix(0, 0, 3)))), c(0L, 3L))
})

test_that("a store is an assay that Bioconductor reads", {
  skip_if_not_installed("SummarizedExperiment")
  skip_if_not_installed("DelayedArray")
  withr::local_seed(5)
  m <- some_counts(300, 40, 0.2)
  x <- as_store(m)
  delayed <- DelayedArray::DelayedArray(x)
  expect_identical(dim(delayed), dim(m))
  expect_identical(dimnames(delayed), dimnames(m))
  expect_identical(as.matrix(delayed), as.matrix(m))
  expect_identical(as.matrix(delayed[c(7, 2, 7), 3:1]), as.matrix(m[c(7, 2, 7), 3:1]))
  expect_equal(as.matrix(log1p(delayed)[1:5, ]), log1p(as.matrix(m)[1:5, ]))
  expect_equal(DelayedArray::colSums(delayed), Matrix::colSums(m))
  expect_identical(methods::as(delayed, "dgCMatrix"), m)
  experiment <- SummarizedExperiment::SummarizedExperiment(list(counts = t(delayed)))
  expect_identical(weft:::as_source(experiment), list(kind = "sparse", data = m, experiment = TRUE))
  expect_identical(weft:::as_source(experiment, stored = TRUE)$kind, "store")
  expect_equal(pca(experiment, k = 2)$sdev, pca(m, k = 2)$sdev, tolerance = 1e-10)
  part <- experiment[1:20, ]
  expect_identical(weft:::as_source(part)$kind, "delayed")
  expect_equal(pca(part, k = 2)$sdev, pca(m[, 1:20], k = 2)$sdev, tolerance = 1e-10)
  again <- as_store(experiment)
  expect_identical(again[, ], m)
  skip_if_not(methods::is(delayed, "DelayedArray") && exists("SparseArraySeed", asNamespace("DelayedArray")))
  expect_true(DelayedArray::is_sparse(delayed))
})
