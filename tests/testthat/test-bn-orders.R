# Exact posteriors over orders against the definition: all graphs, and sums over all subsets in logarithms.

log_add <- function(x, y) {
  high <- pmax(x, y)
  high + ifelse(is.finite(high), log1p(exp(-abs(x - y))), 0)
}

# Sums over subsets (or supersets) of `x`, logarithms by mask.
log_zeta <- function(x, p, supersets = FALSE) {
  masks <- seq_along(x) - 1
  for (bit in 2^(seq_len(p) - 1)) {
    with <- masks[bitwAnd(masks, bit) > 0] + 1
    if (supersets) x[with - bit] <- log_add(x[with - bit], x[with]) else x[with] <- log_add(x[with], x[with - bit])
  }
  x
}

slow_order_posterior <- function(scores) {
  p <- length(scores$nodes)
  masks <- 0:(2^p - 1)
  size <- rowSums(vapply(2^(seq_len(p) - 1), function(bit) (bitwAnd(masks, bit) > 0) + 0, double(2^p)))
  weight <- mask_scores(scores)
  a <- lapply(seq_len(p), function(v) log_zeta(weight[v, ], p))
  f <- b <- rep(-Inf, 2^p)
  f[1L] <- b[2^p] <- 0
  for (k in seq_len(p)) for (s in seq_len(p)) {
    at <- masks[size == k & bitwAnd(masks, 2^(s - 1)) > 0] + 1
    f[at] <- log_add(f[at], f[at - 2^(s - 1)] + a[[s]][at - 2^(s - 1)])
    at <- masks[size == p - k & bitwAnd(masks, 2^(s - 1)) == 0] + 1
    b[at] <- log_add(b[at], b[at + 2^(s - 1)] + a[[s]][at])
  }
  edges <- matrix(0, p, p, dimnames = list(from = scores$nodes, to = scores$nodes))
  for (v in seq_len(p)) {
    without <- bitwAnd(masks, 2^(v - 1)) == 0
    through <- rep(-Inf, 2^p)
    through[without] <- f[without] + b[which(without) + 2^(v - 1)]
    share <- exp(weight[v, ] + log_zeta(through, p, TRUE) - f[2^p])
    for (u in seq_len(p)) edges[u, v] <- sum(share[bitwAnd(masks, 2^(u - 1)) > 0])
  }
  list(edges = edges, log_total = f[2^p])
}

cut_edges <- function(scores, shape, threads = 1) {
  order_edges(scores, bn_exact(scores)$score, run_control(threads = threads),
              list(low = shape[1L], middle = shape[2L]))
}

test_that("every score, with interventions and priors, gives what all graphs give", {
  dags <- all_dags(4L)
  agree <- function(scores) {
    for (over in c("order", "dag")) {
      slow <- enumerated_edges(scores, dags, over)
      fast <- bn_exact(scores, posterior = over)
      expect_lt(max(abs(fast$edges - slow$edges)), 1e-10)
      expect_equal(fast$log_total, slow$log_total, tolerance = 1e-12)
    }
  }
  d <- bn_test_data()[1:4]
  set <- rep(list(NULL, "a", c("b", "c"), "d", NULL), 30)
  prior <- bn_prior(names(d), required = cbind("b", "d"), forbidden = cbind("c", "a"), known = cbind("a", "b"))
  for (score in setdiff(bn_score_types, c("bge", mixed_scores))) {
    agree(bn_scores(d, 3, score, keep = "all"))
    agree(bn_scores(d, 3, score, keep = "all", interventions = set, prior = prior))
  }
  x <- as.data.frame(matrix(stats::rnorm(200), 50))
  x[[2]] <- x[[1]] + x[[3]] + 0.3 * x[[2]]
  agree(bn_scores(x, 3, "bge", keep = "all"))
  agree(bn_scores(x, 3, "bge", keep = "all", interventions = rep(list(NULL, "V2"), 25), gamma = 0.2))
})

test_that("sums in logarithms over all subsets agree to 1e-10, up to 16 nodes", {
  for (p in c(1, 2, 9, 12, 16)) {
    scores <- bn_scores(linked_bn_data(p, 200), min(3, p - 1), keep = "all")
    slow <- slow_order_posterior(scores)
    fast <- bn_exact(scores, posterior = "order")
    expect_lt(max(abs(fast$edges - slow$edges)), 1e-10)
    expect_equal(fast$log_total, slow$log_total, tolerance = 1e-12)
  }
})

test_that("nothing underflows where scores lie thousands of nats apart", {
  # copies of one column: every node's best set costs the others theirs, and no double holds the empty set's weight
  scores <- bn_scores(linked_bn_data(9, 20000, noise = 0.02), 2, keep = "all")
  apart <- vapply(seq_len(9), function(i) scores$score[scores$start[i] + 1] - scores$score[scores$start[i + 1]], 0)
  expect_gt(min(apart), 5000)
  slow <- slow_order_posterior(scores)
  fast <- bn_exact(scores, posterior = "order")
  # logarithms of 1e5 are right to 1e-11
  expect_lt(max(abs(fast$edges - slow$edges)), 1e-8)
  expect_equal(fast$log_total, slow$log_total, tolerance = 1e-12)
})

test_that("candidates and limits of each node are summed as they are", {
  d <- linked_bn_data(10, 300)
  for (scores in list(bn_scores(d, 3, candidates = 3, keep = "all"),
                      bn_scores(d, c(V1 = 0, V2 = 1, V3 = 5), keep = "all"))) {
    slow <- slow_order_posterior(scores)
    expect_lt(max(abs(bn_exact(scores, posterior = "order")$edges - slow$edges)), 1e-10)
  }
})

test_that("threads do not change a bit, nor the cut of subsets more than rounding", {
  scores <- bn_scores(linked_bn_data(11, 300), 4, keep = "all")
  one <- bn_exact(scores, posterior = "order", run = weft_run(threads = 1))
  expect_identical(bn_exact(scores, posterior = "order", run = weft_run(threads = 2))$edges, one$edges)
  # what the device does: other low parts, more mid parts, no tops
  for (shape in list(c(8, 3), c(8, 0), c(5, 6), c(1, 10), c(1, 0), c(3, 4))) {
    expect_lt(max(abs(cut_edges(scores, shape)$edges - one$edges)), 1e-12)
    expect_identical(cut_edges(scores, shape, 2), cut_edges(scores, shape, 1))
  }
  expect_error(cut_edges(scores, c(8, 4)), class = "weft_error_internal")
})

test_that("the best graph of a table that keeps all sets is that of the pruned one", {
  d <- linked_bn_data(12, 300)
  expect_identical(bn_exact(bn_scores(d, 4, keep = "all"))$dag, bn_exact(d)$dag)
})

test_that("sums over orders stop when told, and what does not fit is refused before anything is scored", {
  scores <- bn_scores(linked_bn_data(17, 100), 2, keep = "all")
  best <- bn_exact(scores)$score
  expect_stops(function(stop_now) order_edges(scores, best, run_control(threads = 1, progress = stop_now)), "sums")
  polls <- 0
  withr::local_options(weft.poll = 0)
  order_edges(scores, best, run_control(threads = 1, progress = function(done, total) polls <<- polls + 1))
  expect_gt(polls, 40) # 32 top parts, forward and backward
  wide <- function(p) as.data.frame(matrix(0:1, 4, p))
  expect_error(bn_exact(wide(38), 1, posterior = "order"), class = "weft_error_memory", regexp = "The limit is 37")
  # 8 bytes for each subset
  expect_error(bn_exact(wide(37), 1, run = "cpu"), class = "weft_error_memory",
               regexp = "needs about 1099[.]. GB of memory for 37 nodes")
})
