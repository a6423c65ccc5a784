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
    run <- function(data, ...) suppressWarnings(call_with(pca, c(list(data, 5, ...), call)))
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
  one <- pca(blocks, 4, method = "gram", seed = 1, run = weft_run("cpu", threads = 1))
  expect_identical(one$method, "gram")
  expect_identical(pca(blocks, 4, method = "gram", seed = 1, run = weft_run("cpu", threads = 2))$rotation, one$rotation)
  expect_equal(one$sdev, pca(as.matrix(m), 4, method = "krylov", run = "cpu")$sdev, tolerance = 1e-12)
  long <- pca(m[rep(1:3000, 12), ], 4, method = "gram", seed = 1, run = "cpu") # several ranges of rows
  expect_equal(long$d, one$d * sqrt(12), tolerance = 1e-12)
})

test_that("what squaring loses is found again on the store's rows", {
  withr::local_seed(3)
  m <- shop()
  scales <- 10^seq(0, -7, length.out = 150)
  x <- as_store(m %*% Matrix::Diagonal(x = scales), memory = 2^20)
  for (backend in test_backends()) {
    fit <- pca(x, 40, method = "gram", run = backend, seed = 1, control = list(block_size = 2^16))
    expect_true(all(fit$converged))
    expect_equal(fit$sdev, pca(as.matrix(x), 40, method = "krylov", run = "cpu")$sdev, tolerance = 1e-9)
  }
  far <- as_store(as.matrix(m) + 1e6) # all values stored, far from zero
  fit <- pca(far, 5, method = "gram", run = "cpu", seed = 1)
  expect_equal(fit$sdev, pca(as.matrix(m), 5, run = "cpu")$sdev, tolerance = 1e-7)
})

test_that("a device takes blocks that do not fit again for each pass", {
  skip_if(!"cuda" %in% test_backends(), "needs a device")
  withr::local_seed(4)
  x <- as_store(shop(8000, 300, 0.8), memory = 2^20) # 23 MB of values
  withr::local_options(weft.device_memory = 2.6e7)
  fit <- pca(x, 3, method = "gram", run = "cuda", seed = 1, control = list(block_size = 2^16))
  expected <- pca(x, 3, method = "gram", run = "cpu", seed = 1, control = list(block_size = 2^16))
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

test_that("krylov reads a store once per step, and finds the components of the dense matrix", {
  withr::local_seed(9)
  m <- some_counts(1500, 400, 0.1)
  x <- as_store(m, memory = 2^20)
  weights <- rep(1:3, 500)
  about <- stats::runif(400)
  for (call in list(list(), list(scale = TRUE), list(center = about, weights = weights, col_weights = 1 + about))) {
    run <- function(data, ...) call_with(pca, c(list(data, 5, backend = "cpu", seed = 1, ...), call))
    expected <- run(as.matrix(m), method = "gram")
    fit <- run(x, method = "krylov", block_size = 2^16)
    expect_identical(fit$method, "krylov")
    expect_true(all(fit$converged))
    expect_equal(fit$passes, fit$iterations[[1L]] + 2)
    expect_equal(fit$d, expected$d, tolerance = 1e-12)
    expect_equal(abs(fit$x), abs(expected$x), tolerance = 1e-6)
    expect_identical(run(x, method = "krylov", block_size = 2^16, threads = 2)$rotation, fit$rotation)
    loose <- run(x, method = "krylov", block_size = 2^16, tolerance = 1e-5)
    expect_lt(loose$passes, fit$passes)
    expect_lte(max(abs(loose$d - expected$d)), 1e-5 * expected$d[1])
  }
})

test_that("values and spans are LAPACK's, and residuals are what they say, flat spectra included", {
  withr::local_seed(6)
  flat <- as.matrix(some_counts(900, 60, 0.3)) # no direction stands out
  steep <- flat %*% diag(10^seq(0, -5, length.out = 60))
  for (m in list(flat, steep)) for (method in c("gram", "krylov")) {
    x <- as_store(m, memory = 2^20)
    centred <- m - rep(colMeans(m), each = nrow(m))
    exact <- svd(centred)
    fit <- pca(x, 12, method = method, run = "cpu", seed = 1, control = list(block_size = 2^15))
    expect_true(all(fit$converged))
    expect_lte(max(abs(fit$d - exact$d[1:12])) / exact$d[1], 1e-12)
    u <- fit$x / rep(fit$d, each = nrow(m))
    residual <- pmax(sqrt(colSums((centred %*% fit$rotation - fit$x)^2)),
                     sqrt(colSums((crossprod(centred, u) - fit$rotation * rep(fit$d, each = 60))^2))) / exact$d[1]
    expect_lte(max(residual), 2e-12)
    out <- fit$rotation - exact$v[, 1:12] %*% crossprod(exact$v[, 1:12], fit$rotation)
    gap <- (exact$d[12] - exact$d[13]) / exact$d[1]
    expect_lte(norm(out, "2"), 1e-11 / gap) # sines, by the theorem of Davis and Kahan
  }
  wide <- as.matrix(some_counts(1500, 400, 0.3))
  early <- NULL
  expect_warning(early <- pca(as_store(wide), 12, method = "krylov", run = "cpu", seed = 1,
                              control = list(max_iterations = 2, block_size = 2^15)),
                 class = "weft_warning_convergence")
  expect_false(any(early$converged))
  centred <- wide - rep(colMeans(wide), each = nrow(wide))
  u <- early$x / rep(early$d, each = nrow(wide))
  reached <- pmax(sqrt(colSums((centred %*% early$rotation - early$x)^2)),
                  sqrt(colSums((crossprod(centred, u) - early$rotation * rep(early$d, each = 400))^2)))
  expect_equal(early$residual * early$d[1], reached, tolerance = 0.1, ignore_attr = TRUE) # and not what was wanted
})

test_that("a device is not chosen for a store whose vectors it cannot hold", {
  source <- list(kind = "stored", n = 1e7, p = 2000, values = 1.6e9)
  skip_if(nrow(weft_devices()) > 0, "the device's own memory counts too")
  withr::local_options(weft.device_memory = 1e11)
  plan <- weft:::pca_plan(source, 32, "auto", 16)
  expect_lt(plan$cost$cuda, plan$cost$cpu)
  withr::local_options(weft.device_memory = 1e10)
  expect_identical(weft:::pca_plan(source, 32, "auto", 16)$cost$cuda, Inf)
  small <- weft:::pca_plan(list(kind = "stored", n = 3000, p = 100, values = 15000), 5, "auto", 16)$cost
  expect_gt(small$cuda, small$cpu)
})

test_that("scores of a store's rows are those of the matrix, found in blocks", {
  withr::local_seed(8)
  m <- some_counts(600, 30, 0.3)
  fit <- pca(m, 4, run = "cpu", seed = 1)
  x <- as_store(m, memory = 2^20)
  expect_gt(length(store_blocks(x)$rows), 1L)
  expect_equal(predict(fit, x), predict(fit, m), tolerance = 1e-13)
  turned <- as_store(m[, 30:1], memory = 2^20)
  expect_equal(predict(fit, turned), predict(fit, m), tolerance = 1e-13)
  normal <- store_normalise(x)
  scaled <- pca(as.matrix(normal), 4, scale = TRUE, run = "cpu", seed = 1)
  expect_equal(predict(scaled, normal), predict(scaled, as.matrix(normal)), tolerance = 1e-12)
  loads <- matrix(stats::rnorm(60), 30)
  expect_equal(weft:::store_product(x, NULL, loads, block_size = 2^10), as.matrix(m %*% loads), tolerance = 1e-13,
               ignore_attr = TRUE)
  expect_error(predict(fit, x[, 1:5]), "Missing", class = "weft_error_input")
  expect_error(predict(fit, as_store(unname(m)[, 1:5])), "30 columns", class = "weft_error_input")
})

test_that("a Gram matrix made roughly on a device is corrected to what krylov finds", {
  skip_if_no_cuda()
  withr::local_seed(11)
  type <- sample(8, 6000, TRUE)
  i <- rep(seq_along(type), each = 40)
  own <- Matrix::sparseMatrix(i = i, j = 100 * type[i] + sample(60, length(i), TRUE), x = 1, dims = c(6000, 4100))
  x <- store_normalise(as_store(some_counts(6000, 4100, 0.02) + own))
  for (k in c(5, 30, 70)) for (scale in c(FALSE, TRUE)) {
    fits <- lapply(c("gram", "krylov"), function(method) {
      pca(x, k, method, scale = scale, seed = 1, run = weft_run("cuda", progress = FALSE),
          control = list(block_size = 2^22))
    })
    expect_identical(fits[[1]]$method, "gram")
    expect_true(all(fits[[1]]$converged))
    expect_lte(max(fits[[1]]$residual), 1e-12)
    expect_equal(fits[[1]]$sdev, fits[[2]]$sdev, tolerance = 1e-11)
    angles <- svd(crossprod(fits[[1]]$rotation[, 1:4], fits[[2]]$rotation[, 1:4]))$d
    expect_equal(angles, rep(1, 4), tolerance = 1e-11)
  }
})

test_that("packed blocks hold the rows and values that are read otherwise", {
  skip_if(is.null(get0("C_weft_store_packed_test", asNamespace("weft"))), "not a test build")
  withr::local_seed(22)
  values <- list(function(m) stats::rgeom(m, 0.3) + 1, function(m) floor(2^stats::runif(m, 0, 32)),
                 function(m) sample(64, m, TRUE) / 8, stats::rnorm)
  for (draw in values) for (some in c(FALSE, TRUE)) {
    m <- Matrix::rsparsematrix(1200, 60, 0.4, rand.x = draw)
    m[, 7] <- 1
    m[300:310, ] <- 0
    x <- as_store(Matrix::drop0(m), memory = 2^20)
    if (some) x <- store_normalise(as_store(abs(Matrix::drop0(m)), memory = 2^20), genes = c(3, 7:30, 60))
    source <- weft:::pca_source(x, block_size = 2^17)$for_device()
    expect_gt(length(source$starts), 1)
    for (i in seq_along(source$starts)) {
      packed <- .Call(get("C_weft_store_packed_test", asNamespace("weft")), source$packed(i))
      plain <- source$data(i)
      stored <- seq_along(packed$i)
      expect_identical(packed[c("p", "i", "x")], list(p = plain$p, i = plain$i[stored], x = plain$x[stored]))
    }
  }
  few <- length(source$starts)
  withr::local_options(weft.device_memory = 3e5) # a device with less takes fewer at once
  expect_gt(length(weft:::pca_source(x, block_size = 2^17)$for_device()$starts), few)
  expect_error(.Call(weft:::C_weft_store_packed, weft:::open_store(x)$pointer, c(1, 1200), NULL,
                     weft:::open_store(x)$recipe, 1e9, NULL, weft:::run_control("cpu")), class = "weft_error_internal")
})

test_that("a device finds the rows and values of packed blocks, or the damage, as the host does", {
  skip_if_no_cuda()
  withr::local_seed(21)
  x <- as_store(shop(900, 40, 0.3), memory = 2^20)
  bytes <- bytes_of(store_file(x))
  file <- withr::local_tempfile()
  weights <- stats::runif(900)
  moments <- function(backend) {
    tryCatch(packed_moments(weft:::pca_source(weft_store(file), block_size = 8), weights, backend),
             weft_error_input = function(e) conditionMessage(e))
  }
  for (turn in 1:150) {
    spoilt <- bytes
    at <- 88 + sample(sum(store_blocks(x)$block_bytes) - 24, sample(3, 1))
    spoilt[at] <- as.raw(sample(0:255, length(at), TRUE))
    writeBin(with_checksums(spoilt), file)
    expect_equal(moments("cuda"), moments("cpu"), tolerance = 1e-12, info = turn)
  }
})
