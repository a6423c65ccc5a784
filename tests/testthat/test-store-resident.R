# Stores whose blocks stay on devices (weft_upload()): panels of any columns and recipe are made of what was sent once.

# Handles of panels of a store as C_weft_store_packed() makes them, and its blocks of rows.
panels_of_file <- function(x, runs) {
  file <- weft:::open_store(x)
  lapply(seq_along(runs$starts), function(i) {
    .Call(weft:::C_weft_store_packed, file$pointer, as.double(c(runs$starts[i], runs$ends[i])), NULL,
          list(size = NULL, log1p = FALSE), 1e9, NULL, weft:::run_control())
  })
}

test_that("panels of what stays are the store's rows and columns by any recipe", {
  entry <- get0("C_weft_panels_test", asNamespace("weft"))
  skip_if(is.null(entry), "not a test build")
  withr::local_seed(11)
  draws <- list(function(m) stats::rgeom(m, 0.3) + 1, function(m) sample(64, m, TRUE) / 8, stats::rnorm)
  for (draw in draws) {
    m <- Matrix::rsparsematrix(2500, 70, 0.3, rand.x = draw)
    m[, 9] <- 0
    m <- Matrix::drop0(m)
    x <- as_store(m, memory = 2^20)
    file <- weft:::open_store(x)
    runs <- weft:::resident_runs(file, file$about$block_values, 3L, 2^15)
    expect_gt(length(runs$starts), 3)
    expect_identical(unique(runs$part), 1:3)
    handles <- panels_of_file(x, runs)
    some <- sort(sample(70, 31))
    size <- stats::runif(2500, 0.5, 2)
    for (columns in list(NULL, some)) for (sizes in list(NULL, size)) for (part in list(NULL, 0, 1, 2)) {
      logs <- !is.null(sizes) && identical(draw, draws[[1L]])
      found <- .Call(entry, handles, as.double(runs$part - 1),
                     list(columns = if (!is.null(columns)) columns - 1, size = sizes, log1p = logs, part = part))
      expected <- if (is.null(columns)) m else m[, columns]
      if (!is.null(sizes)) expected <- Matrix::Diagonal(x = 1 / sizes) %*% expected
      if (logs) expected <- log1p(expected)
      in_part <- if (is.null(part)) seq_along(runs$starts) else which(runs$part == part + 1)
      first <- runs$starts[in_part[1L]]
      rows <- unlist(lapply(in_part, function(i) seq(runs$starts[i] + 1, runs$ends[i])))
      made <- do.call(rbind, lapply(seq_along(found), function(k) {
        one <- found[[k]]
        expect_identical(one$row, runs$starts[in_part[k]] - first)
        methods::new("dgCMatrix", p = one$p, i = one$i, x = one$x,
                     Dim = c(as.integer(runs$ends[in_part[k]] - runs$starts[in_part[k]]), ncol(expected)))
      }))
      expect_equal(as.matrix(made), as.matrix(expected[rows, ]), tolerance = 1e-15, ignore_attr = TRUE)
    }
  }
})

test_that("a store is uploaded only where there is a device", {
  x <- as_store(some_counts(200, 30, 0.2), memory = 2^20)
  if (nrow(weft_devices()) == 0) expect_error(weft_upload(x), "read the file", class = "weft_error_device")
  expect_error(weft_upload(x, devices = "two"), class = if (nrow(weft_devices())) "weft_error_input"
                                                       else "weft_error_device")
})

test_that("one that was freed, restored or changed is refused", {
  x <- as_store(some_counts(200, 30, 0.2), memory = 2^20)
  parts <- unclass(x)
  resident <- function(...) {
    parts$resident <- list(...)
    structure(parts, class = c("weft_resident_store", "weft_store"))
  }
  none <- .Call(weft:::C_weft_panels_begin, c(2, 200, 30), weft:::run_control())
  file <- withr::local_tempfile()
  saveRDS(resident(pointer = none, devices = 0L), file)
  for (y in list(resident(), resident(pointer = 1, devices = 0L), readRDS(file),
                 resident(pointer = weft:::open_store(x)$pointer, devices = 0L),
                 structure(utils::modifyList(parts, list(resident = 1)), class = class(resident())))) {
    expect_error(pca(y, 2), "Upload the store again", class = "weft_error_input")
    expect_error(store_normalise(y), "Upload the store again", class = "weft_error_input")
    expect_error(Matrix::colSums(y), "Upload the store again", class = "weft_error_input")
    expect_output(print(y), "not on a device")
    expect_identical(dim(y), c(200L, 30L))
    expect_identical(y[1:3, ], x[1:3, ])
    expect_s3_class(summary(y), "summary.weft_store")
    expect_error(weft_upload(y), "on the device already", class = "weft_error_input")
  }
  expect_null(weft_free(resident(pointer = none, devices = 0L)))
  expect_error(weft_free(resident(pointer = 1)), class = "weft_error_input")
  expect_error(weft_free(structure(1, class = class(resident()))), class = "weft_error_input")
})

test_that("what stays gives the bits of the file, by any recipe, and is let go", {
  skip_if_no_cuda()
  withr::local_seed(12)
  before <- .Call(weft:::C_weft_memory, NULL)[["device"]]
  m <- some_counts(1500, 150, 0.2)
  x <- as_store(m, memory = 2^20)
  y <- weft:::upload_store(x, block_size = 2^16)
  expect_output(print(y), "on device")
  some <- c(3, 7:90, 150)
  for (data in list(list(x, y), list(store_normalise(x), store_normalise(y)))) for (method in c("gram", "krylov")) {
    fits <- lapply(data, pca, k = 5, method = method, seed = 1, run = "cuda", control = list(block_size = 2^16))
    expect_identical(fits[[1]]$rotation, fits[[2]]$rotation)
    expect_identical(fits[[1]]$x, fits[[2]]$x)
  }
  few <- lapply(list(store_normalise(x, genes = some), store_normalise(y, genes = some)), pca, k = 5, seed = 1,
                run = "cuda", control = list(block_size = 2^16))
  expect_equal(few[[1]]$sdev, few[[2]]$sdev, tolerance = 1e-12)
  expect_identical(Matrix::rowSums(y), Matrix::rowSums(x))
  expect_identical(Matrix::colSums(y), Matrix::colSums(x))
  cells <- lapply(list(x, y), gene_cells, genes = 100, k = 5, seed = 1, run = "cuda")
  expect_identical(cells[[1]]$genes$chosen, cells[[2]]$genes$chosen)
  expect_equal(cells[[1]]$components$sdev, cells[[2]]$components$sdev, tolerance = 1e-9)
  unlink(store_file(x)) # nothing of that reads the file
  expect_identical(pca(y, 5, seed = 1)$sdev, pca(y, 5, seed = 1)$sdev)
  expect_error(pca(y, 2, run = "cpu"), "run = \"cuda\"", class = "weft_error_input")
  expect_error(pca(y, 2, run = weft_run("cuda", devices = c(0, 0))), "devices", class = "weft_error_input")
  weft_free(y)
  weft_free(y)
  expect_error(pca(y, 2), "Upload the store again", class = "weft_error_input")
  expect_identical(.Call(weft:::C_weft_memory, NULL)[["device"]], before)
})

test_that("rows in parts give what one device does, and only methods that add up take them", {
  skip_if_no_cuda()
  withr::local_seed(13)
  x <- as_store(some_counts(1500, 150, 0.2), memory = 2^20)
  one <- weft:::upload_store(x, block_size = 2^16)
  three <- weft:::upload_store(x, c(0, 0, 0), block_size = 2^16)
  on.exit(lapply(list(one, three), weft_free))
  for (method in c("gram", "krylov")) for (tolerance in c(1e-12, 1e-6)) {
    fits <- lapply(list(one, three), pca, k = 5, method = method, seed = 1, control = list(tolerance = tolerance))
    expect_true(all(fits[[2]]$converged))
    expect_equal(fits[[1]]$sdev, fits[[2]]$sdev, tolerance = tolerance)
    expect_equal(unname(abs(fits[[1]]$x[, 1])), unname(abs(fits[[2]]$x[, 1])), tolerance = 1e4 * tolerance)
  }
  expect_error(pca(three, 2, "gs"), "several devices", class = "weft_error_input")
})

test_that("a store that does not fit is refused with what it needs", {
  skip_if_no_cuda()
  x <- as_store(some_counts(3000, 150, 0.4), memory = 2^20)
  withr::local_options(weft.device_memory = 5e4)
  expect_error(weft_upload(x), "free", class = "weft_error_memory")
})
