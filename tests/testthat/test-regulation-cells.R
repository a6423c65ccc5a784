# Sparse cells: the same numbers as a dense matrix gives, with halves that are unions of blocks.

sparse_cells <- function(n, p, zeros = 0.7) {
  depth <- stats::rgamma(n, 3, 3)
  rate <- exp(scale(regulated(n, p))) * (1 - zeros) * depth
  counts <- matrix(as.double(stats::rpois(n * p, rate)), n, dimnames = list(NULL, sprintf("g%d", seq_len(p))))
  Matrix::Matrix(counts, sparse = TRUE)
}

# Halves of blocks as rows, for the dense path.
rows_of_blocks <- function(s) {
  apply(s$rows, 2, function(blocks) which(s$position >= 0 & s$position %/% s$block_rows %in% blocks) - 1L)
}

test_that("scores are those of the dense matrix", {
  withr::local_seed(31)
  host <- weft:::run_control()
  for (n in c(5, 30, 400)) {
    x <- sparse_cells(n, 12)
    x[, 2] <- 0
    x[, 3] <- 4
    x[, 4] <- -x[, 4] + (seq_len(n) == 2)
    if (n > 5) x[seq_len(5), 5] <- 1e300
    x@x[sample(length(x@x), 5)] <- 0 # stored zeros
    for (size in list(NULL, runif(n, 0.5, 2))) {
      dense <- as.matrix(x) / (if (is.null(size)) 1 else size)
      found <- weft:::cell_scores(x, size, host)
      scores <- matrix(rep(found$absent, each = n), n)
      scores[cbind(x@i + 1L, rep(seq_len(12), diff(x@p)))] <- readBin(found$scores, "integer", length(x@i), 2)
      expect_identical(scores, unname(weft:::regulation_scores(dense, host, by_rank = 1)))
    }
    expect_identical(weft:::cell_scores(x, size, weft:::run_control(threads = 2)), found)
  }
})

test_that("choices are those of the dense path with the same halves", {
  withr::local_seed(32)
  for (trial in 1:24) {
    n <- sample(c(40, 87, 300), 1)
    p <- sample(c(3, 15, 17, 40), 1)
    x <- sparse_cells(n, p, sample(c(0.1, 0.5, 0.95), 1))
    if (trial %% 3 == 0) x[, p] <- x[, 1]
    if (trial %% 4 == 0) x[, 2] <- 1
    how <- list(blocks = sample(c(2, 6, 10), 1), resamples = 6, copies = trial %% 3, key = c(0, trial),
                host = weft:::run_control())
    cells <- weft:::cell_scores(x, NULL, how$host)
    samples <- weft:::cell_halves(weft:::cell_names(x), how)
    dense <- list(rows = rows_of_blocks(samples), partner = samples$partner)
    expect_identical(dim(dense$rows), as.integer(c(how$blocks / 2 * (n %/% how$blocks), 6)))
    for (k in c(1, 3, 5)) expect_false(any(dense$rows[, k] %in% dense$rows[, k + 1]))
    regulators <- if (trial %% 2) sample(p, sample(p, 1)) - 1L else seq_len(p) - 1L
    targets <- if (trial %% 4 == 1) sample(p, sample(p, 1)) - 1L else seq_len(p) - 1L
    hinges <- trial %% 5 != 0
    favour <- runif(length(regulators) * (1 + how$copies), 0.5, 1)
    scores <- weft:::regulation_scores(as.matrix(x), how$host, by_rank = 1)
    expected <- regulation_select(scores, regulators, targets, dense, hinges, 4, favour = favour)
    for (control in list(weft:::run_control(threads = 1), weft:::run_control(threads = 2),
                         weft:::run_control(devices = rep(0L, 3)))) {
      expect_identical(regulation_select(cells, regulators, targets, samples, hinges, 4, control, favour), expected,
                       label = sprintf("trial %d (%d x %d)", trial, n, p))
    }
  }
})

test_that("sums of blocks come together in groups of halves that memory holds", {
  withr::local_seed(33)
  x <- sparse_cells(60, 2400, 0.98) # features x features of 4,800: two halves at once
  how <- list(blocks = 4, resamples = 6, copies = 0, key = c(0, 1), host = weft:::run_control())
  samples <- weft:::cell_halves(weft:::cell_names(x), how)
  dense <- list(rows = rows_of_blocks(samples), partner = samples$partner)
  some <- c(0L, 7L, 2399L)
  expect_identical(regulation_select(weft:::cell_scores(x, NULL, how$host), 0:2399, some, samples, TRUE, 3),
                   regulation_select(weft:::regulation_scores(as.matrix(x), how$host, by_rank = 1), 0:2399, some, dense,
                                     TRUE, 3))
})

test_that("a sparse matrix of many cells stays sparse, and is the same network in any order", {
  withr::local_seed(34)
  x <- sparse_cells(1200, 30)
  expect_message(net <- regulation(x, seed = 1, control = list(resamples = 20)), "size factor")
  expect_match(attr(net, "normalised"), "log2\\(1 \\+ x / size factor\\)")
  expect_output(print(net), "size factor")
  edges <- as.data.frame(net)
  pair <- paste(pmin(edges$from, edges$to), pmax(edges$from, edges$to))
  expect_true(all(c("g2 g3", "g5 g6") %in% utils::head(pair, 25)))
  expect_no_message(again <- regulation(x, transform = "counts", seed = 1, run = weft_run(threads = 1),
                                        control = list(resamples = 20)))
  expect_identical(as.matrix(again), as.matrix(net))
  shuffled <- x[sample(1200), ]
  expect_identical(as.matrix(regulation(shuffled, transform = "counts", seed = 1,
                                        control = list(resamples = 20))), as.matrix(net))
  expect_gt(attr(net, "stability")$overlap, 0.7)
  expect_identical(attr(net, "stability")[["left_out"]], 12L)
  plain <- regulation(x, transform = "none", seed = 1, control = list(resamples = 20))
  expect_null(attr(plain, "normalised"))
  expect_false(identical(as.matrix(plain), as.matrix(net)))
  expect_no_message(ratios <- regulation(x / 3.7, seed = 1, control = list(resamples = 4))) # not whole: no counts
  expect_null(attr(ratios, "normalised"))
  other <- methods::as(x, "TsparseMatrix")
  expect_identical(as.matrix(suppressMessages(regulation(other, seed = 1, control = list(resamples = 20)))),
                   as.matrix(net))
  # of a dense matrix, by name
  dense <- as.matrix(x)[1:90, ]
  size <- pmax(rowSums(dense), 1)
  expect_identical(as.matrix(regulation(dense, transform = "counts", seed = 1, control = list(resamples = 4))),
                   as.matrix(regulation(log2(1 + dense / (size / mean(size))), seed = 1,
                                        control = list(resamples = 4))))
  expect_null(attr(regulation(dense, seed = 1, control = list(resamples = 4)), "normalised"))
  expect_identical(as.matrix(suppressMessages(regulation(x[1:90, ], seed = 1, control = list(resamples = 4)))),
                   as.matrix(regulation(dense, transform = "counts", seed = 1, control = list(resamples = 4))))
})

test_that("depth alone makes no edges between counts", {
  withr::local_seed(35)
  depth <- stats::rgamma(1500, 3, 3)
  counts <- Matrix::Matrix(matrix(as.double(stats::rpois(1500 * 30, 2 * depth)), 1500), sparse = TRUE)
  correlation <- function(size) {
    found <- weft:::cell_scores(counts, size, weft:::run_control())
    scores <- matrix(rep(found$absent, each = 1500), 1500)
    at <- cbind(counts@i + 1L, rep(seq_len(30), diff(counts@p)))
    scores[at] <- readBin(found$scores, "integer", nrow(at), 2)
    r <- stats::cor(scores)
    mean(r[upper.tri(r)])
  }
  size <- weft:::size_factors(counts, "auto")$size
  expect_equal(size, pmax(Matrix::rowSums(counts), 1))
  expect_gt(correlation(NULL), 0.2)
  expect_lt(abs(correlation(size)), 0.06)
})

test_that("mistakes with cells are classed errors, and memory is given back", {
  x <- sparse_cells(1000, 5)
  bad <- x
  bad@x[3] <- NA
  expect_error(regulation(bad), class = "weft_error_input", regexp = "missing values.*g1")
  bad@x[3] <- -1
  expect_error(regulation(bad, transform = "counts"), class = "weft_error_input", regexp = "non-negative")
  expect_error(regulation(x, transform = "rpkm"), class = "weft_error_input")
  empty <- Matrix::Matrix(0, 1000, 3, sparse = TRUE, doDiag = FALSE)
  expect_identical(nrow(as.data.frame(suppressMessages(regulation(empty, seed = 1,
                                                                  control = list(resamples = 4))))), 0L)
  skip_on_cran()
  withr::defer(.Call(weft:::C_weft_memory, 0))
  work <- function() regulation(x, transform = "counts", seed = 1, control = list(resamples = 4))
  .Call(weft:::C_weft_memory, 0)
  work()
  asked <- .Call(weft:::C_weft_memory, 0)[["allocations"]]
  before <- .Call(weft:::C_weft_memory, NULL)[c("host", "device")]
  for (k in seq(1, asked, length.out = 40)) {
    .Call(weft:::C_weft_memory, -round(k))
    expect_error(work(), class = "weft_error_memory")
  }
  .Call(weft:::C_weft_memory, 0)
  gc()
  expect_identical(.Call(weft:::C_weft_memory, NULL)[c("host", "device")], before)
})
