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
