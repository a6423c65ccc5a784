# Directed networks. The reference in helper-regulation.R is plain R; its decisions must be the same.

test_that("scores are whole numbers: normal scores, of few samples the values in part", {
  withr::local_seed(1)
  for (n in c(4, 5, 17, 50, 99, 100, 200)) {
    x <- matrix(rnorm(n * 9), n)
    x[, 2] <- round(x[, 2])
    x[, 3] <- 7
    x[1, 4] <- Inf
    x[2, 4] <- -Inf
    x[, 5] <- sample(c(0, -0, 1), n, TRUE)
    x[, 7] <- c(-Inf, Inf, 0)[rep_len(c(1, 2, 1, 2, 3), n)]
    x[, 8] <- x[, 8] * 1e308
    x[, 9] <- rt(n, 1)
    expect_identical(unname(weft:::regulation_scores(x, weft:::run_control())), unname(reference_scores(x)))
    expect_identical(unname(weft:::regulation_scores(x, weft:::run_control(), by_rank = 1)),
                     unname(reference_scores(x, 1)))
    expect_identical(weft:::regulation_scores(x, weft:::run_control(threads = 2)),
                     weft:::regulation_scores(x, weft:::run_control(threads = 1)))
  }
  # units do not matter, and in what is left of the values no extreme goes beyond a normal score
  x <- matrix(rnorm(125), 25)
  expect_identical(weft:::regulation_scores(4 * x + 2^20, weft:::run_control()),
                   weft:::regulation_scores(4 * x + 2^20 - 2^20, weft:::run_control()))
  far <- x
  far[which.max(x[, 1]), 1] <- 1e6
  expect_lt(max(abs(weft:::regulation_scores(far, weft:::run_control()) -
                      weft:::regulation_scores(x, weft:::run_control()))), 500)
  x <- cbind(rnorm(3000))
  expect_identical(weft:::regulation_scores(exp(x), weft:::run_control()),
                   weft:::regulation_scores(x, weft:::run_control()))
  expect_lte(sum(weft:::regulation_scores(x, weft:::run_control())^2), 2^31) # of all rows, let alone of half of them
})

test_that("halves come in pairs without a common sample, and partners are one cycle", {
  withr::local_seed(2)
  for (n in c(4, 5, 30, 31)) {
    x <- matrix(rnorm(n * 3), n)
    s <- regulation_samples(x, 40, 3)
    expect_identical(dim(s$rows), as.integer(c(n %/% 2, 40)))
    for (k in seq(1, 40, 2)) {
      both <- c(s$rows[, k], s$rows[, k + 1])
      expect_false(anyDuplicated(both) > 0)
      expect_true(all(both >= 0 & both < n))
      expect_false(is.unsorted(s$rows[, k], strictly = TRUE))
    }
    for (copy in 1:3) {
      at <- 0
      for (k in seq_len(n - 1)) {
        at <- s$partner[at + 1, copy]
        expect_true(at != 0)
      }
      expect_identical(s$partner[at + 1, copy], 0L)
    }
    expect_identical(regulation_samples(x, 40, 3), s)
    expect_false(identical(regulation_samples(x, 40, 3, c(0, 2))$rows, s$rows))
  }
  # larger ones share as few samples as can be, and leave none out
  for (size in list(c(25, 16), c(5, 3), c(6, 6), c(31, 16))) {
    s <- regulation_samples(matrix(rnorm(3 * size[1]), size[1]), 20, 0, half = size[2])$rows
    for (k in seq(1, 20, 2)) {
      expect_length(intersect(s[, k], s[, k + 1]), 2 * size[2] - size[1])
      expect_setequal(c(s[, k], s[, k + 1]), seq_len(size[1]) - 1)
      expect_false(is.unsorted(s[, k + 1], strictly = TRUE))
    }
  }
  expect_identical(vapply(c(4L, 5L, 25L, 31L, 32L, 33L, 1000L), weft:::half_of, 0L),
                   c(2L, 3L, 16L, 16L, 16L, 16L, 500L))
  # each sample in each half as often as another: 2000 halves, 6 standard deviations
  s <- regulation_samples(matrix(rnorm(20), 20), 4000, 0)
  expect_true(all(abs(tabulate(s$rows + 1L, 20) - 2000) < 6 * sqrt(1000)))
})

test_that("halves depend on a sample's values: order does not matter, and one sample less changes little", {
  withr::local_seed(3)
  x <- matrix(rnorm(60), 30)
  members <- function(s, x) apply(s$rows + 1L, 2, function(rows) sort(x[rows, 1]))
  s <- regulation_samples(x, 20, 1)
  again <- x[sample(30), ]
  expect_identical(members(regulation_samples(again, 20, 1), again), members(s, x))
  less <- regulation_samples(x[-7, ], 20, 1)
  gone <- vapply(1:20, function(k) length(setdiff(members(s, x)[, k], members(less, x[-7, ])[, k])), 0L)
  expect_true(all(gone <= 2))
  partner_value <- function(s, x) x[s$partner[order(x[, 1]), 1] + 1, 1]
  moved <- partner_value(s, x)[rank(x[, 1])[-7]] != partner_value(less, x[-7, ])[rank(x[-7, 1])]
  expect_lte(sum(moved), 1)
  # rows of the same values are told apart by their number
  twins <- regulation_samples(x[rep(1, 10), ], 20, 1)
  expect_false(anyDuplicated(twins$rows[, 1]) > 0)
  expect_gt(length(unique(c(twins$rows[1, ]))), 1)
})

test_that("choices are those of a reference", {
  withr::local_seed(4)
  for (trial in 1:60) {
    n <- sample(c(4:9, 12, 25, 40, 61), 1)
    p <- sample(c(2:6, 15, 17, 33, 40), 1)
    x <- regulated(n, p)
    if (trial %% 2) {
      x[, p] <- 3
      x[, 1] <- x[, max(1, p - 1)]
      if (p > 2) x[, 2] <- round(x[, 2])
    }
    if (trial %% 5 == 0) x <- round(x)
    scores <- reference_scores(x)
    samples <- regulation_samples(x, 4, trial %% 3)
    regulators <- if (trial %% 4) sample(p, sample(p, 1)) - 1L else seq_len(p) - 1L
    targets <- if (trial %% 4 == 1) sample(p, sample(p, 1)) - 1L else seq_len(p) - 1L
    steps <- sample(c(1, 2, 5, 8), 1)
    hinges <- trial %% 3 != 0
    favour <- if (trial %% 2) 1 else runif(length(regulators) * (1 + trial %% 3), 0.2, 1)
    expected <- reference_choices(scores, regulators, targets, samples$rows, samples$partner, steps, hinges, favour)
    for (threads in 1:2) {
      got <- regulation_select(scores, regulators, targets, samples, hinges, steps,
                               weft:::run_control(threads = threads), favour)
      expect_identical(got, expected, label = sprintf("trial %d (%d x %d), %d threads", trial, n, p, threads))
    }
  }
})

test_that("more features than a block of them, and all vector variants, choose the same", {
  withr::local_seed(5)
  before <- .Call(weft:::C_weft_simd, NULL)
  levels <- c("portable", "avx2", "avx512")
  withr::defer(.Call(weft:::C_weft_simd, match(before, levels) - 1L))
  x <- regulated(33, 300)
  scores <- reference_scores(x)
  samples <- regulation_samples(x, 2, 1)
  some <- c(0L, 5L, 299L)
  expected <- reference_choices(scores, 0:299, some, samples$rows, samples$partner, 5, TRUE)
  for (level in 0:2) {
    if (is.null(.Call(weft:::C_weft_simd, level))) next
    expect_identical(regulation_select(scores, 0:299, some, samples, TRUE, 5), expected, label = levels[level + 1])
    linear <- regulation_select(scores, 0:299, 0:299, samples, FALSE, 3)
    if (level == 0) portable <- linear
    expect_identical(linear, portable)
  }
})

test_that("features that can hardly be told apart are chosen as by the reference, of many", {
  withr::local_seed(15)
  before <- .Call(weft:::C_weft_simd, NULL)
  levels <- c("portable", "avx2", "avx512")
  withr::defer(.Call(weft:::C_weft_simd, match(before, levels) - 1L))
  n <- 41
  one <- rnorm(n)
  p <- 1010 # with fewer all gains are computed
  twice <- regulated(n, p / 2)
  data <- list(
    `one gene, many times` = one + 1e-3 * matrix(rnorm(n * p), n),
    `each gene twice` = cbind(twice, twice),
    `each gene twice, nearly` = cbind(twice, -twice + 0.02 * rnorm(n * p / 2)),
    `three dimensions` = matrix(rnorm(3 * n), n) %*% matrix(rnorm(3 * p), 3),
    `few values` = matrix(rbinom(p * n, 1, 0.06), n) + 0,
    `random` = regulated(n, p),
    `differences` = cbind(twice, twice - 0.99 * twice[, c(seq(2, p / 2), 1)])
  )
  for (name in names(data)) for (half in c(20L, 27L)) {
    scores <- reference_scores(data[[name]])
    samples <- regulation_samples(data[[name]], 4, 1, half = half)
    favour <- runif(p * 2, 0.3, 1)
    some <- c(7L, p - 1L)
    expected <- reference_choices(scores, seq_len(p) - 1L, some, samples$rows, samples$partner, 5, TRUE, favour)
    for (level in 0:2) {
      if (is.null(.Call(weft:::C_weft_simd, level))) next
      got <- regulation_select(scores, seq_len(p) - 1L, some, samples, TRUE, 5, weft:::run_control(), favour)
      expect_identical(got, expected, label = paste(name, half, levels[level + 1]))
    }
  }
})

test_that("halves dealt over several parts give the same choices", {
  withr::local_seed(6)
  x <- regulated(20, 9)
  scores <- reference_scores(x)
  for (resamples in c(2, 10)) {
    samples <- regulation_samples(x, resamples, 1)
    whole <- regulation_select(scores, 0:8, 0:8, samples, TRUE, 4)
    for (parts in 2:4) {
      control <- weft:::run_control(devices = rep(0L, parts))
      expect_identical(regulation_select(scores, 0:8, 0:8, samples, TRUE, 4, control), whole)
    }
  }
})

test_that("edges, weights and q-values follow from the choices", {
  withr::local_seed(7)
  x <- regulated(40, 12)
  net <- regulation(x, seed = 5, control = list(steps = 5, resamples = 30, null_copies = 2))
  samples <- regulation_samples(x, 30, 2, c(0, 5))
  choose <- function(halves, favour) reference_choices(reference_scores(x), 0:11, 0:11, samples$rows[, halves],
                                                       samples$partner, 5, TRUE, favour)
  early <- choose(1:14, 1)
  favour <- sapply(1:3, function(world) {
    share <- apply(reference_area(early, 12, world), 1, var)
    share <- share / max(share)
    (share + 0.1 * mean(share))^0.15
  })
  choices <- array(c(early, choose(15:30, favour)), c(5, 12, 3, 30))
  area <- reference_area(choices, 12)
  expect_equal(as.matrix(net), reference_weights(area, reference_scores(x)), tolerance = 1e-10, ignore_attr = TRUE)
  expect_identical(dimnames(net), list(colnames(x), colnames(x)))
  edges <- as.data.frame(net)
  expect_identical(nrow(edges), sum(area > 0))
  expect_false(is.unsorted(-edges$weight))
  at <- cbind(match(edges$from, colnames(x)), match(edges$to, colnames(x)))
  expect_equal(edges$area, area[at], tolerance = 1e-12)
  expect_equal(edges$weight, net[at], tolerance = 1e-12, ignore_attr = TRUE)
  for (k in c(1, 5, nrow(edges))) { # signs and frequencies of some, by hand
    hits <- apply(choices[, at[k, 2], 1, ], 2, function(v) match(at[k, 1], (abs(v) - 1) %% 12 + 1))
    expect_equal(edges$frequency[k], mean(!is.na(hits)))
    sign <- sum((6 - hits) * sign(choices[cbind(hits, at[k, 2], 1, 1:30)]), na.rm = TRUE) / sum(6 - hits, na.rm = TRUE)
    expect_equal(edges$sign[k], sign)
  }
  w <- as.matrix(net)
  expect_equal(edges$direction, w[at] / (w[at] + w[at[, 2:1]]), tolerance = 1e-12)
  null <- c(reference_area(choices, 12, 2), reference_area(choices, 12, 3))
  rate <- vapply(sort(unique(edges$area)), function(a) (sum(null >= a - 1e-9) + 1) / 2 / sum(edges$area >= a - 1e-9), 0)
  expected <- pmin(cummin(rate), 1)[match(round(edges$area, 9), round(sort(unique(edges$area)), 9))]
  expect_equal(edges$q_value, expected)
  greater <- function(a) pmax(a, t(a))
  apart <- function(a) greater(a)[upper.tri(a)]
  chance <- c(apart(reference_area(choices, 12, 2)), apart(reference_area(choices, 12, 3)))
  pair <- round(greater(area)[at], 9)
  rate <- vapply(sort(unique(pair)), function(a) (sum(chance >= a - 1e-9) + 1) / 2 / sum(apart(area) >= a - 1e-9), 0)
  expect_equal(edges$pair_q, pmin(cummin(rate), 1)[match(pair, sort(unique(pair)))])
  expect_identical(as.data.frame(net, fdr = 0.1), edges[edges$q_value <= 0.1, ], ignore_attr = "row.names")
})

test_that("few pairs have more null copies, and are not lost for want of them", {
  withr::local_seed(14)
  copies <- function(p, ...) attr(regulation(matrix(rnorm(20 * p), 20), ..., seed = 1, control = quick), "copies")
  quick <- list(resamples = 2, stability = FALSE)
  expect_identical(c(copies(3), copies(100), copies(30, 1:2, targets = 3:5)), c(20, 10, 20))
  expect_identical(weft:::usual_copies(2000, 20000), 1)
  x <- matrix(rnorm(20 * 60), 20, dimnames = list(sprintf("s%d", 1:20), sprintf("g%d", 1:60)))
  x[, 11:20] <- x[, 1:10] + 0.2 * x[, 11:20]
  found <- function(...) {
    net <- regulation(x, seed = 1, control = list(resamples = 50, stability = FALSE, ...))
    sum(as.data.frame(net)$pair_q <= 0.05)
  }
  expect_lt(found(null_copies = 1), 2)
  expect_gte(found(), 8)
})

test_that("edges are stated as pairs and as directions, too", {
  withr::local_seed(15)
  x <- regulated(80, 15)
  net <- regulation(x, seed = 1, control = list(resamples = 40))
  edges <- as.data.frame(net, fdr = 0.2)
  pair <- paste(pmin(edges$from, edges$to), pmax(edges$from, edges$to))
  best <- vapply(split(edges$direction, pair), max, 0)
  stated <- summary(net, fdr = 0.2)
  expect_identical(stated$pairs, length(best))
  expect_identical(stated$pair_fdr, max(edges$pair_q))
  expect_identical(stated$directed, sum(best >= 0.9))
  if (any(best >= 0.9)) expect_equal(stated$wrong, mean(1 - best[best >= 0.9]))
  given <- regulation(x, 1:5, 6:15, seed = 1, control = list(resamples = 40))
  expect_identical(as.data.frame(given)$pair_q, as.data.frame(given)$q_value) # each pair has one direction
  expect_output(print(given), "directions were\\s+given")
  expect_null(summary(regulation(x, seed = 1, control = list(resamples = 4, null_copies = 0)))$pairs)
})

test_that("the bound for complementary halves is not given where halves share samples", {
  withr::local_seed(10)
  x <- regulated(40, 6)
  bound <- function(rows) as.data.frame(regulation(x[rows, ], seed = 1,
                                                   control = list(resamples = 20, null_copies = 0)))$expected_false
  expect_true(any(!is.na(bound(1:40))))
  expect_true(any(!is.na(bound(1:32))))
  expect_true(all(is.na(bound(1:31))))
  both <- regulation(x, compare = rep(c("few", "many"), c(8, 32)), permutations = 1, seed = 1,
                     control = list(resamples = 20, null_copies = 0))
  expect_true(all(is.na(as.data.frame(both$networks$few)$expected_false)))
  expect_true(any(!is.na(as.data.frame(both$networks$many)$expected_false)))
})

test_that("few samples: the values find more edges than their ranks alone", {
  withr::local_seed(12)
  ranks_only <- function(x) apply(x, 2, function(v) stats::qnorm((rank(v) - 0.5) / length(v)))
  true_first <- function(x, edges) {
    found <- as.data.frame(regulation(x, seed = 1, control = list(null_copies = 0)))[seq_along(edges), ]
    mean(edges %in% paste(found$from, found$to))
  }
  gained <- replicate(12, {
    x <- matrix(rnorm(24 * 30), 24, dimnames = list(sprintf("s%d", 1:24), sprintf("g%d", 1:30)))
    parent <- rep(1:3, each = 9)
    x[, 4:30] <- 0.5 * x[, 4:30] + x[, parent]
    edges <- sprintf("g%d g%d", parent, 4:30)
    true_first(x, edges) - true_first(ranks_only(x), edges)
  })
  expect_gt(mean(gained), 0.02)
})

test_that("the network finds what regulates, with its sign, and a list of regulators is respected", {
  withr::local_seed(8)
  n <- 120
  a <- rnorm(n)
  b <- rnorm(n)
  x <- cbind(A = a, B = b, C = a - b + 0.3 * rnorm(n), D = pmax(a, 0) + 0.2 * rnorm(n), E = -exp(b) + 0.2 * rnorm(n),
             matrix(rnorm(n * 25), n))
  colnames(x)[6:30] <- sprintf("N%d", 6:30)
  edges <- as.data.frame(regulation(x, regulators = c("A", "B", sprintf("N%d", 6:20)), seed = 1))[1:4, ]
  expect_setequal(paste(edges$from, edges$to), c("A C", "B C", "A D", "B E"))
  expect_equal(edges$sign[match(c("A C", "B C", "A D", "B E"), paste(edges$from, edges$to))], c(1, -1, 1, -1))
  expect_true(all(is.na(edges$direction[edges$to %in% c("C", "D")])))
  net <- regulation(x, regulators = c("B", "A"), targets = c("D", "C"), seed = 1, control = list(resamples = 10))
  expect_identical(dimnames(net), list(c("B", "A"), c("D", "C")))
  expect_identical(dim(as.matrix(regulation(x, regulators = c("B", "A", "C"), targets = "D", seed = 1,
                                            control = list(resamples = 10)))), c(3L, 1L))
})

test_that("with names of samples, rounding of their values changes little", {
  withr::local_seed(8)
  x <- regulated(60, 12)
  near <- x * (1 + 1e-14 * rnorm(length(x)))
  weights <- function(x) as.matrix(regulation(x, seed = 1, control = list(resamples = 20)))
  expect_false(identical(weights(near), weights(x))) # their values name the samples
  rownames(x) <- rownames(near) <- paste0("s", 1:60)
  expect_identical(weights(near), weights(x))
  mixed <- sample(60)
  expect_identical(weights(x[mixed, ]), weights(x))
})

test_that("seeds, threads, units and the order of samples", {
  withr::local_seed(9)
  x <- regulated(50, 20)
  net <- as.matrix(regulation(x, seed = 3, control = list(resamples = 20)))
  expect_identical(as.matrix(regulation(x, seed = 3, run = weft_run(threads = 1), control = list(resamples = 20))), net)
  expect_false(identical(as.matrix(regulation(x, seed = 4, control = list(resamples = 20))), net))
  shuffled <- x[sample(50), ]
  expect_identical(as.matrix(regulation(shuffled, seed = 3, control = list(resamples = 20))), net)
  expect_identical(as.matrix(regulation(as.data.frame(x), seed = 3, control = list(resamples = 20))), net)
  state <- .Random.seed
  regulation(x, seed = 1, control = list(resamples = 4))
  expect_identical(.Random.seed, state)
  drawn <- withr::with_seed(1, as.matrix(regulation(x, control = list(resamples = 20))))
  expect_identical(withr::with_seed(1, as.matrix(regulation(x, control = list(resamples = 20)))), drawn)
})

test_that("leaving a sample out keeps most of the heaviest edges", {
  withr::local_seed(10)
  x <- regulated(200, 60)
  top <- function(x) with(utils::head(as.data.frame(regulation(x, seed = 1, control = list(null_copies = 0))), 60),
                          paste(from, to))
  all <- top(x)
  expect_true(all(vapply(c(1, 77, 200), function(i) mean(top(x[-i, ]) %in% all), 0) >= 0.85))
})

test_that("independent genes have few edges at the stated rate", {
  withr::local_seed(11)
  called <- vapply(1:60, function(k) {
    net <- regulation(matrix(rnorm(25 * 30), 25), seed = k, control = list(resamples = 50, null_copies = 20))
    c(nrow(as.data.frame(net, fdr = 0.05)), nrow(as.data.frame(net, fdr = 0.2))) > 0
  }, c(NA, NA))
  expect_lte(sum(called[1, ]), 7) # 60 runs at .05: more than 7 with probability .01
  expect_lte(sum(called[2, ]), 19) # at .2: more than 19 with probability .01
})

test_that("hard data", {
  withr::local_seed(12)
  two <- matrix(rnorm(8), 4)
  expect_identical(dim(regulation(two, seed = 1, control = list(resamples = 2))), c(2L, 2L))
  constant <- cbind(a = rep(1, 10), b = rep(2, 10))
  net <- regulation(constant, seed = 1, control = list(resamples = 10))
  expect_true(all(net == 0))
  expect_identical(nrow(as.data.frame(net)), 0L)
  expect_output(print(net), "0 edges ranked")
  expect_identical(summary(net)$edges, 0L)
  huge <- cbind(a = rnorm(30) * 1e300, b = rnorm(30) * 1e-300, c = c(-Inf, Inf, rnorm(28)))
  expect_true(all(is.finite(regulation(huge, seed = 1, control = list(resamples = 10)))))
  same <- matrix(rep(rnorm(20), 5), 20) # five times one gene: the first that is not the target
  net <- regulation(same, seed = 1, control = list(resamples = 10, nonlinear = FALSE))
  expect_identical(which(as.matrix(net) > 0, arr.ind = TRUE)[, 1], c(2L, 1L, 1L, 1L, 1L), ignore_attr = TRUE)
  one <- regulation(regulated(20, 5), regulators = 1, targets = 2, seed = 1, control = list(resamples = 4))
  expect_identical(dim(one), c(1L, 1L))
})

test_that("mistakes are classed errors", {
  x <- regulated(10, 4)
  bad <- x
  bad[3, 2] <- NA
  expect_error(regulation(bad), class = "weft_error_input", regexp = "missing values.*g2")
  expect_error(regulation(x[1:3, ]), class = "weft_error_input", regexp = "4 samples")
  expect_error(regulation(x[, 1, drop = FALSE]), class = "weft_error_input", regexp = "2 genes")
  expect_error(regulation(x, regulators = "nobody"), class = "weft_error_input", regexp = "nobody")
  expect_error(regulation(x, targets = 9), class = "weft_error_input", regexp = "9")
  expect_error(regulation(x, regulators = c(TRUE, FALSE)), class = "weft_error_input")
  expect_error(regulation(x, regulators = character()), class = "weft_error_input")
  expect_error(regulation(x, control = list(resamples = 3)), class = "weft_error_input", regexp = "even")
  expect_error(regulation(x, tfs = "g1"), class = "weft_error_input",
               regexp = "Unknown argument `tfs`; did you mean `regulators`")
  expect_error(regulation(x, group = 1, nsplit = 2), class = "weft_error_input",
               regexp = "did you mean `compare`.*`nsplit`; did you mean `control = list\\(resamples")
  expect_error(regulation(x, whatever = 1), class = "weft_error_input", regexp = "Unknown argument `whatever`\\.")
  expect_error(regulation(x, control = list(steps = 0)), class = "weft_error_input")
  expect_error(regulation(x, control = list(null_copies = -1)), class = "weft_error_input")
  expect_error(regulation(data.frame(a = letters)), class = "weft_error_input")
  net <- regulation(x, control = list(resamples = 2, null_copies = 0))
  expect_error(as.data.frame(net, fdr = 0.1), class = "weft_error_input", regexp = "copies")
})

test_that("of many genes some are picked as regulators, which is said", {
  withr::local_seed(13)
  n <- 30
  x <- matrix(rnorm(n * 2100), n)
  for (j in 101:400) x[, j] <- x[, j] * 0.3 + x[, 2050]
  expect_message(net <- regulation(x, targets = 1:3, seed = 1,
                                   control = list(resamples = 2, null_copies = 0)), "2,000 of 2,100")
  expect_identical(nrow(net), 2000L)
  expect_true("V2050" %in% rownames(net))
  expect_no_message(all <- regulation(x, regulators = "all", targets = 1:3, seed = 1,
                                      control = list(resamples = 2, null_copies = 0)))
  expect_identical(nrow(all), 2100L)
  r2 <- stats::cor(weft:::regulation_scores(x, weft:::run_control())[, seq_len(40)])^2
  diag(r2) <- 0
  genes <- list(regulators = 0:39, targets = 0:39, rows = 0:29)
  hub <- .Call(weft:::C_weft_regulation_hubs, weft:::regulation_scores(x, weft:::run_control())[, 1:40], genes,
               weft:::run_control())
  expect_equal(hub, unname(apply(r2, 1, var)), tolerance = 1e-10)
})

test_that("a progress handler is called, and its error stops the work", {
  withr::local_options(weft.poll = 0)
  x <- regulated(30, 20)
  polls <- 0
  regulation(x, seed = 1, run = weft_run(progress = function(done, total) polls <<- polls + 1),
             control = list(resamples = 20))
  expect_gte(polls, 4)
  expect_error(regulation(x, run = weft_run(progress = function(done, total) stop("enough")),
                          control = list(resamples = 20)), "enough")
  expect_identical(.Call(weft:::C_weft_memory, NULL)[["host"]], 0)
})

test_that("a failed allocation is an error, and nothing leaks", {
  skip_on_cran()
  withr::defer(.Call(weft:::C_weft_memory, 0))
  x <- regulated(12, 8)
  for (backend in test_backends()) {
    work <- function() regulation(x, seed = 1, run = backend, control = list(resamples = 4))
    work()
    .Call(weft:::C_weft_memory, 0)
    work()
    asked <- .Call(weft:::C_weft_memory, 0)[["allocations"]]
    expect_gt(asked, 10)
    before <- .Call(weft:::C_weft_memory, NULL)[c("host", "device")]
    for (k in seq_len(asked)) {
      .Call(weft:::C_weft_memory, -k)
      expect_error(work(), class = "weft_error_memory")
    }
    .Call(weft:::C_weft_memory, 0)
    gc()
    expect_identical(.Call(weft:::C_weft_memory, NULL)[c("host", "device")], before)
  }
})

test_that("a directed network is one for tables, files, other packages and pictures", {
  withr::local_seed(14)
  x <- regulated(60, 12)
  net <- regulation(x, regulators = c("g2", "g5", "g8"), targets = c("g3", "g6", "g9", "g2"), seed = 1,
                    control = list(resamples = 20))
  tables <- network_tables(net)
  expect_true(tables$directed)
  expect_setequal(tables$nodes$name, c("g2", "g3", "g5", "g6", "g8", "g9"))
  expect_identical(names(tables$edges)[1:3], c("from", "to", "weight"))
  expect_identical(tables$edges$from, as.data.frame(net)$from)
  nameless <- net
  colnames(nameless)[2L] <- NA
  expect_error(network_tables(nameless), "Features must have names", class = "weft_error_input")
  file <- withr::local_tempfile(fileext = ".graphml")
  write_network(net, file)
  expect_true(any(grepl("edgedefault=\"directed\"", readLines(file))))
  if (requireNamespace("igraph", quietly = TRUE)) {
    graph <- as_igraph(net)
    expect_true(igraph::is_directed(graph))
    expect_equal(igraph::vcount(graph), 6)
    expect_equal(igraph::ecount(graph), nrow(as.data.frame(net)))
  }
  s <- summary(net)
  expect_identical(s[c("features", "regulators", "targets")], list(features = 6L, regulators = 3L, targets = 4L))
  expect_identical(summary(net, fdr = NULL)$edges, nrow(as.data.frame(net)))
  expect_identical(glance(net)$edges, s$edges)
  expect_output(print(net), "3 regulators of 4 targets")
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  expect_identical(plot(net, edges = 5), net)
  expect_identical(plot(net), net) # none at that rate
  expect_identical(plot(net, edges = 5, groups = c(1, 1, 1, 2, 2, 2)), net)
  expect_error(plot(net, groups = 1:3), class = "weft_error_input")
  if (requireNamespace("ggplot2", quietly = TRUE)) expect_s3_class(ggplot2::autoplot(net), "ggplot")
})

test_that("genes of one name are told apart by numbers", {
  set.seed(1)
  a <- stats::rnorm(80)
  y <- cbind(a = a, b = a + stats::rnorm(80) / 3, c = stats::rnorm(80), d = stats::rnorm(80))
  of <- function(x) as.data.frame(regulation(x, seed = 1, control = list(resamples = 20)))
  apart <- of(y)
  colnames(y) <- c("g", "g", "c", "d")
  expect_message(same <- of(y), "made unique with numbers: `g`")
  expect_identical(same[-(1:2)], apart[-(1:2)])
  expect_setequal(same$from, c("g", "g.1", "c", "d"))
})

test_that("conditions that are a level NA are refused", {
  y <- matrix(stats::rnorm(150), 30)
  groups <- addNA(factor(rep(c("a", "b", NA), each = 10)))
  expect_error(regulation(y, compare = groups, seed = 1), "10 of 30 are missing", class = "weft_error_input")
})
