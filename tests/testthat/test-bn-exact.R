test_that("exact edge posteriors are sums over all 29,281 graphs, under flat, gamma and pairwise priors", {
  d <- bn_test_data()
  dags <- all_dags(5L)
  expect_equal(nrow(dags), 29281)
  R <- matrix(0.5, 5, 5, dimnames = list(names(d), names(d)))
  R["c", "a"] <- 0.7
  R["d", "e"] <- 0.2
  priors <- list(flat = list(), gamma = list(gamma = 0.3), pairwise = list(prior = R))
  for (settings in priors) {
    scores <- call_with(bn_scores, c(list(d, 4, keep = "all"), settings))
    for (over in c("dag", "order")) {
      slow <- enumerated_edges(scores, dags, over)
      fast <- bn_exact(scores, posterior = over)
      expect_lt(max(abs(fast$edges - slow$edges)), 1e-8)
      expect_equal(fast$log_total, slow$log_total, tolerance = 1e-10)
    }
    expect_equal(fast$score, max(enumerated_edges(scores, dags, "dag")$best), tolerance = 1e-12)
  }
})

test_that("posteriors over graphs are those of a recursion over layers, in which nothing cancels", {
  for (scores in list(bn_scores(linked_bn_data(6, 40), 5, keep = "all"),
                      bn_scores(linked_bn_data(6, 200), 2, keep = "all"))) {
    fast <- bn_exact(scores, posterior = "dag")
    slow <- slow_graph_posterior(scores)
    expect_lt(max(abs(fast$edges - slow$edges)), 1e-10)
    expect_equal(fast$log_total, slow$log_total, tolerance = 1e-12)
    expect_lt(fast$error, 1e-14)
  }
})

test_that("sampling agrees with the exact posterior over orders, and a search with the optimum", {
  d <- bn_test_data()
  scores <- bn_scores(d, 4, keep = "all")
  fit <- bn_learn(scores, iterations = 40000, target = "sum", seed = 1, control = list(thin = 10))
  # 12,000 draws: standard error 0.0046 for independent ones at 0.5
  expect_lt(max(abs(fit$edges - bn_exact(scores, posterior = "order")$edges)), 0.03)
  expect_lt(fit$diagnostics$r_hat, 1.02)
  # the search's target: an order has the weight of its best graph
  best <- bn_learn(scores, iterations = 5000, seed = 1)
  expect_equal(best$score, bn_exact(scores)$score)
})

test_that("the max target visits orders in proportion to their best graph", {
  d <- bn_test_data(30)[1:3]
  scores <- bn_scores(d, 2, keep = "all")
  local <- mask_scores(scores)
  orders <- list(c(1, 2, 3), c(1, 3, 2), c(2, 1, 3), c(2, 3, 1), c(3, 1, 2), c(3, 2, 1))
  value <- vapply(orders, function(o) sum(vapply(1:3, function(k) {
    before <- sum(2^(o[seq_len(k - 1)] - 1))
    max(local[o[k], Filter(function(m) bitwAnd(m, before) == m, 0:7) + 1])
  }, 0)), 0)
  weight <- exp(value - max(value))
  fit <- bn_learn(scores, iterations = 40000, chains = 2, seed = 3, control = list(thin = 1))
  mean_score <- mean(fit$trace[-seq_len(100), ])
  expect_equal(mean_score, sum(weight * value) / sum(weight), tolerance = 2e-4)
})

test_that("the optimum equals a dynamic program in R", {
  for (p in c(1, 2, 5, 8)) {
    d <- withr::with_seed(p, as.data.frame(matrix(sample(0:1, 60 * p, TRUE), 60)))
    if (p > 2) d[[2]] <- ifelse(d[[1]] == 1L & d[[3]] == 1L, 1L, d[[2]])
    scores <- bn_scores(d, p - 1, keep = "all")
    local <- mask_scores(scores)
    best <- c(0, rep(-Inf, 2^p - 1))
    within <- local # best subset of each mask
    for (i in seq_len(p)) for (bit in 2^(seq_len(p) - 1)) for (m in 0:(2^p - 1)) {
      if (bitwAnd(m, bit)) within[i, m + 1] <- max(within[i, m + 1], within[i, m - bit + 1])
    }
    for (m in seq_len(2^p - 1)) for (i in seq_len(p)) {
      bit <- 2^(i - 1)
      if (bitwAnd(m, bit)) best[m + 1] <- max(best[m + 1], best[m - bit + 1] + within[i, m - bit + 1])
    }
    exact <- bn_exact(d, p - 1)
    expect_equal(exact$score, best[2^p], tolerance = 1e-12)
    expect_equal(bn_score(d, exact), exact$score, tolerance = 1e-10)
  }
})

test_that("the optimum keeps required and forbidden edges and is never below a search", {
  d <- bn_test_data(400, wide = FALSE)
  d <- cbind(d, stats::setNames(bn_test_data(400, seed = 2), letters[6:10]))
  prior <- bn_prior(d, required = cbind("e", "a"), forbidden = cbind("a", "b"))
  exact <- bn_exact(d, prior = prior)
  expect_equal(exact$dag["e", "a"], 1L)
  expect_equal(exact$dag["a", "b"], 0L)
  for (seed in 1:3) expect_lte(bn_learn(d, prior = prior, iterations = 500, seed = seed)$score, exact$score + 1e-9)
  expect_identical(bn_exact(d, run = weft_run(threads = 1))$dag, bn_exact(d, run = weft_run(threads = 2))$dag)
  expect_error(bn_exact(d, posterior = "dag", max_parents = 1)$edges, NA)
})

test_that("graphs beyond memory are refused", {
  wide <- as.data.frame(matrix(0:1, 4, 40))
  expect_error(bn_exact(wide, 1), class = "weft_error_memory", regexp = "40 nodes")
  expect_error(bn_exact(wide[1:25], 1, posterior = "dag", run = "cpu"), class = "weft_error_memory",
               regexp = "The limit is 24")
})

test_that("sums over graphs are the same with any number of threads, and stop when told", {
  scores <- bn_scores(linked_bn_data(17, 50), 1, keep = "all")
  two <- bn_exact(scores, posterior = "dag", run = weft_run(threads = 2))
  expect_identical(bn_exact(scores, posterior = "dag", run = weft_run(threads = 1))$edges, two$edges)
  expect_lt(two$error, 1e-12)
  polls <- 0
  count <- function(done, total) polls <<- polls + 1
  withr::with_options(list(weft.poll = 0), graph_edges(scores, two$score, run_control(progress = count)))
  expect_gt(polls, 17 + 2 * 18 + 17) # sums over subsets, sizes in two directions, sums over supersets
  expect_stops(function(stop_now) graph_edges(scores, two$score, run_control(threads = 1, progress = stop_now)), "sums")
})

test_that("the nodes of a table are counted, not the columns of something", {
  wide <- as.data.frame(matrix(0:1, 4, 40))
  expect_error(bn_exact(bn_scores(wide, 1)), class = "weft_error_memory", regexp = "40 nodes")
  expect_error(bn_exact(as.data.frame(matrix(0:1, 4, 2000)), 1), class = "weft_error_memory", regexp = "e\\+|Inf")
})
