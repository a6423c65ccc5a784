# What ranks edges: areas, the standing of regulators and, where genes have much in common, correlations.

# Genes that a few hidden ones move, more or less.
moved <- function(n, p, hidden, noise) {
  x <- matrix(rnorm(n * hidden), n) %*% matrix(rnorm(hidden * p), hidden) + noise * matrix(rnorm(n * p), n)
  dimnames(x) <- list(sprintf("s%d", seq_len(n)), sprintf("g%d", seq_len(p)))
  x
}

few <- list(resamples = 10, null_copies = 0)
area_of <- function(net) {
  edges <- attr(net, "edges")
  out <- matrix(0, nrow(net), ncol(net))
  out[cbind(edges$from, edges$to)] <- edges$area / (attr(net, "steps") * attr(net, "resamples"))
  out
}

# `x` as what common_of() takes.
common_share <- function(x) {
  how <- list(key = c(0, 1), host = weft:::run_control())
  weft:::common_of(x, weft:::regulation_scores(x, how$host), how)$share
}

test_that("weights follow from areas and scores, whatever genes have in common", {
  withr::local_seed(41)
  shares <- NULL
  for (noise in c(0.5, 1.6, 2.2, 4)) for (n in c(30, 120)) {
    x <- moved(n, 60, 3, noise)
    x[, 60] <- 1 # constant
    shares <- c(shares, common_share(x))
    scores <- reference_scores(x)
    net <- regulation(x, seed = 1, control = few)
    expect_equal(as.matrix(net), reference_weights(area_of(net), scores), tolerance = 1e-8, ignore_attr = TRUE)
    net <- regulation(x, regulators = 5:25, seed = 1, control = few)
    expect_equal(as.matrix(net), reference_weights(area_of(net), scores, 5:25, 1:60, TRUE), tolerance = 1e-8,
                 ignore_attr = TRUE)
    net <- regulation(x, regulators = c(9, 3, 7, 60), targets = c(7, 1, 2, 3, 50), seed = 1, control = few)
    expect_equal(as.matrix(net), reference_weights(area_of(net), scores, c(9, 3, 7, 60), c(7, 1, 2, 3, 50), TRUE),
                 tolerance = 1e-8, ignore_attr = TRUE)
    net <- regulation(x, targets = 11:30, seed = 1, control = few)
    expect_equal(as.matrix(net), reference_weights(area_of(net), scores, 1:60, 11:30), tolerance = 1e-8,
                 ignore_attr = TRUE)
  }
  expect_true(any(shares == 0) && any(shares == 1) && any(shares > 0 & shares < 1))
})

test_that("weights are above 0 where there is an edge, at most 1, and need not many genes", {
  withr::local_seed(42)
  for (p in c(2, 3, 5)) {
    x <- moved(40, p, 1, 0.3)
    for (net in list(regulation(x, seed = 1, control = few), regulation(x, 1, seed = 1, control = few),
                     regulation(x, targets = 2, seed = 1, control = few),
                     regulation(x, 1, targets = 2, seed = 1, control = few))) {
      w <- as.matrix(net)
      expect_true(all(is.finite(w)) && all(w <= 1))
      expect_identical(w > 0, area_of(net) > 0, ignore_attr = TRUE)
    }
  }
  expect_identical(sum(as.matrix(regulation(matrix(1, 20, 4), 1:2, seed = 1, control = few))), 0)
})

test_that("neither threads nor the order of samples or blocks of targets change weights", {
  withr::local_seed(43)
  for (shape in list(c(40, 90), c(200, 30))) {
    x <- moved(shape[1], shape[2], 2, 0.7)
    expect_gt(common_share(x), 0.9)
    net <- as.matrix(regulation(x, 1:20, seed = 1, control = few))
    expect_identical(as.matrix(regulation(x, 1:20, seed = 1, control = few, run = weft_run(threads = 1))), net)
    expect_identical(as.matrix(regulation(x[sample(shape[1]), ], 1:20, seed = 1, control = few)), net)
  }
  how <- list(key = c(0, 1), host = weft:::run_control())
  common <- weft:::common_of(x, weft:::regulation_scores(x, how$host), how)
  genes <- list(regulators = 0:9, targets = 0:29)
  edges <- list(from = rep(1:10, 30), to = rep(1:30, each = 10), starts = 10 * 0:30)
  whole <- weft:::correlation_excess(edges, genes, common, how$host)
  expect_equal(weft:::correlation_excess(edges, genes, common, how$host, block = 7L), whole, tolerance = 1e-10)
})

test_that("where genes have much in common, a regulator that follows all of them does not come first", {
  withr::local_seed(44)
  n <- 150
  ahead <- replicate(8, {
    state <- rnorm(n)
    x <- outer(state, runif(80, 0.6, 1.2)) + matrix(rnorm(n * 80), n)
    x[, 2] <- state + 0.1 * rnorm(n) # measures what all follow, and regulates nothing
    for (j in 3:8) x[, j + 10] <- x[, j + 10] + 0.9 * (x[, j] - state)
    colnames(x) <- sprintf("g%d", 1:80)
    edges <- as.data.frame(regulation(x, regulators = 1:10, seed = 1, control = list(resamples = 40)))
    true <- paste0("g", 3:8, " g", 13:18)
    rank_of <- function(order) mean(match(true, paste(edges$from, edges$to)[order]))
    rank_of(order(-edges$area * tapply(edges$area, edges$from, sum)[edges$from])) - rank_of(order(-edges$weight))
  })
  expect_gt(mean(ahead), 20)
})

test_that("edges that are chosen both ways alike have no direction", {
  withr::local_seed(45)
  x <- matrix(rnorm(600 * 8), 600, dimnames = list(NULL, letters[1:8]))
  for (j in seq(2, 8, 2)) x[, j] <- x[, j - 1] + 0.5 * x[, j]
  edges <- as.data.frame(regulation(x, seed = 1, control = few))
  pairs <- edges[paste0(pmin(edges$from, edges$to), pmax(edges$from, edges$to)) %in% c("ab", "cd", "ef", "gh"), ]
  expect_identical(sort(paste(edges$from, edges$to)[1:8]), sort(paste(pairs$from, pairs$to)))
  expect_equal(pairs$direction, rep(0.5, 8), tolerance = 1e-6)
})

test_that("q-values do not depend on what ranks the edges", {
  withr::local_seed(46)
  x <- moved(60, 40, 2, 0.8)
  edges <- as.data.frame(regulation(x, 1:15, seed = 1, control = list(resamples = 20, null_copies = 2)))
  by_area <- edges[order(-edges$area), ]
  expect_false(is.unsorted(by_area$q_value))
  expect_false(is.unsorted(-edges$weight))
  expect_true(is.unsorted(-edges$area))
})

test_that("sparse cells are ranked as their dense matrix is, by some of them", {
  withr::local_seed(47)
  x <- Matrix::Matrix(matrix(rpois(1100 * 30, exp(rnorm(1100))), 1100), sparse = TRUE)
  colnames(x) <- sprintf("g%d", 1:30)
  of <- function(x) as.matrix(regulation(x, 1:10, transform = "none", seed = 1, control = few))
  net <- of(x)
  expect_identical(of(x[sample(1100), ]), net)
  how <- list(key = c(0, 1), host = weft:::run_control())
  dense <- as.matrix(x)
  expect_equal(weft:::common_of(x, NULL, how)$share, common_share(dense), tolerance = 0.1)
  expect_gt(common_share(dense), 0.5)
})
