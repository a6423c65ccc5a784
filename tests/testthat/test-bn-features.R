# Posteriors over graphs and what is drawn from them, against all graphs and against sums without signs.

# Σ of the weights of all graphs, relative to the best sets: graphs as sequences of layers, where each node's parents
# are among the nodes before it and one of them is in the layer before. All terms are positive. `local`: by mask.
slow_graph_total <- function(local) {
  p <- nrow(local)
  all <- 2^p - 1
  weight <- exp(local - apply(local, 1L, max))
  a <- weight
  for (bit in 2^(seq_len(p) - 1)) {
    with <- which(bitwAnd(0:all, bit) > 0)
    a[, with] <- a[, with] + a[, with - bit]
  }
  memo <- new.env()
  completions <- function(done, last) {
    if (done == all) return(1)
    key <- paste(done, last)
    if (!is.null(memo[[key]])) return(memo[[key]])
    outside <- which(bitwAnd(done, 2^(seq_len(p) - 1)) == 0)
    fresh <- a[outside, done + 1] - if (done) a[outside, done - last + 1] else 0
    sum <- 0
    for (n in seq_len(2^length(outside) - 1)) {
      chosen <- bitwAnd(n, 2^(seq_along(outside) - 1)) > 0
      layer <- sum(2^(outside[chosen] - 1))
      sum <- sum + prod(fresh[chosen]) * completions(done + layer, layer)
    }
    memo[[key]] <- sum
    sum
  }
  completions(0, 0)
}

test_that("inclusion and exclusion agree with sums without signs to 1e-10", {
  d <- cbind(bn_test_data(80), stats::setNames(bn_test_data(80, seed = 2)[1:2], c("f", "g")))
  scores <- bn_scores(d, 3, keep = "all")
  local <- mask_scores(scores)
  fit <- bn_exact(scores, posterior = "dag")
  total <- slow_graph_total(local)
  expect_equal(fit$log_total, sum(apply(local, 1L, max)) + log(total), tolerance = 1e-12)
  for (edge in list(c(1, 2), c(2, 1), c(5, 7), c(4, 3))) {
    without <- local
    best <- apply(local, 1L, max)
    without[edge[2L], bitwAnd(0:127, 2^(edge[1L] - 1)) > 0] <- -Inf
    rest <- slow_graph_total(without) * exp(sum(apply(without, 1L, max)) - sum(best))
    expect_lt(abs(fit$edges[edge[1L], edge[2L]] - (1 - rest / total)), 1e-10)
  }
  expect_lt(fit$error, 1e-12)
  threads <- function(n) bn_exact(scores, posterior = "dag", run = weft_run(threads = n))$edges
  expect_identical(threads(2), threads(1))
})

test_that("independent columns, where the most cancels, are still summed to 1e-9", {
  # every score the same: a graph counts 1, and so does the number of labelled graphs
  d <- as.data.frame(matrix(1L, 4, 12))
  fit <- bn_exact(bn_scores(d, 11, keep = "all"), posterior = "dag")
  counts <- 1 # A003024: 1, 1, 3, 25, 543, ...
  for (n in 1:12) {
    k <- seq_len(n)
    counts[n + 1] <- sum((-1)^(k + 1) * choose(n, k) * 2^(k * (n - k)) * counts[n - k + 1])
  }
  expect_equal(fit$log_total, log(counts[13]), tolerance = 1e-12)
  expect_lt(diff(range(fit$edges[row(fit$edges) != col(fit$edges)])), 1e-9)
})

test_that("graphs whose scores no floating-point format holds are summed and drawn, and there is a limit", {
  # without edges exp(-80,000) of what the best parents would be worth
  d <- as.data.frame(matrix(rep(0:1, 20000), 40000, 3))
  scores <- bn_scores(d, keep = "all")
  slow <- enumerated_edges(scores, all_dags(3L), "dag")
  fast <- bn_exact(scores, posterior = "dag")
  expect_lt(max(abs(fast$edges - slow$edges)), 1e-10)
  expect_equal(fast$log_total, slow$log_total, tolerance = 1e-14)
  drawn <- bn_features(fit = fast, draws = 5000, seed = 1)$edges
  expect_lt(max(abs(drawn - slow$edges)), 0.04) # five standard errors
  scores$score <- scores$score * 2^12
  scores$bits <- scores$bits - 12
  expect_error(bn_exact(scores, posterior = "dag"), class = "weft_error_input", regexp = "differ too much")
})

test_that("drawn graphs have the frequencies of all 543 graphs of four nodes", {
  d <- bn_test_data(40)[1:4]
  scores <- bn_scores(d, 3, keep = "all")
  dags <- all_dags(4L)
  weight <- exp(graph_scores(scores, dags))
  weight <- weight / sum(weight)
  fit <- bn_exact(scores, posterior = "dag")
  draws <- 40000
  sets <- draw_exactly(fit, draws, 1, weft_run(threads = 2, progress = FALSE))$sets
  masks <- t(ifelse(scores$parents > 0, 2^(scores$parents - 1), 0))
  drawn <- matrix(rowSums(masks)[scores$start[1:4] + sets + 1], 4)
  number <- match(apply(drawn, 2L, paste, collapse = " "), apply(dags, 1L, paste, collapse = " "))
  expect_false(anyNA(number)) # no cycles
  expected <- draws * weight
  common <- expected >= 5
  counts <- tabulate(number, nrow(dags))
  chi <- sum((counts[common] - expected[common])^2 / expected[common]) +
    (sum(counts[!common]) - sum(expected[!common]))^2 / sum(expected[!common])
  expect_gt(stats::pchisq(chi, sum(common), lower.tail = FALSE), 1e-4)
  drawn <- function(threads) draw_exactly(fit, 100, 1, weft_run(threads = threads, progress = FALSE))$sets
  expect_identical(drawn(1), drawn(2))
  expect_identical(drawn(1), sets[, 1:100])
})

test_that("features are the sums over all graphs, within five standard errors", {
  d <- bn_test_data(60)[1:4]
  scores <- bn_scores(d, 3, keep = "all")
  dags <- all_dags(4L)
  weight <- exp(graph_scores(scores, dags))
  weight <- weight / sum(weight)
  graphs <- lapply(seq_len(nrow(dags)), function(k) {
    vapply(1:4, function(v) bitwAnd(dags[k, v], 2^(0:3)) > 0, logical(4))
  })
  # by definition: paths by powers, blankets node by node
  paths <- Reduce(`+`, Map(function(g, w) w * ((g + g %*% g + g %*% g %*% g) > 0), graphs, weight))
  blanket <- function(g) {
    out <- matrix(FALSE, 4, 4)
    for (v in 1:4) {
      children <- which(g[v, ])
      out[unique(c(which(g[, v]), children, which(rowSums(g[, children, drop = FALSE]) > 0))), v] <- TRUE
    }
    diag(out) <- FALSE
    out
  }
  blankets <- Reduce(`+`, Map(function(g, w) w * blanket(g), graphs, weight))
  class_of <- vapply(graphs, function(g) paste(bn_cpdag(structure(g + 0, dimnames = list(letters[1:4], letters[1:4]))),
                                               collapse = ""), "")
  classes <- sort(tapply(weight, class_of, sum), decreasing = TRUE)
  fit <- bn_exact(scores, posterior = "dag")
  near <- function(found, exact) {
    expect_lte(max(abs(unname(found) - exact) - 5 * sqrt(exact * (1 - exact) / 4000)), 1e-12)
  }
  features <- bn_features(fit, draws = 4000, seed = 3)
  near(features$edges, unname(fit$edges))
  near(features$paths, paths)
  near(features$blankets, blankets)
  expect_lt(abs(features$classes$probability[1] - classes[[1]]), 5 * sqrt(classes[[1]] * (1 - classes[[1]]) / 4000))
  expect_equal(sum(features$classes$probability), 1)
  expect_equal(features$errors$paths, sqrt(features$paths * (1 - features$paths) / 4000))
  expect_output(print(features), "Features of 4000 networks sampled from the exact posterior over graphs")
  expect_output(print(features), "a dependence given these variables")

  chains <- bn_learn(scores, iterations = 20000, target = "uniform", seed = 1, control = list(thin = 10))
  learned <- bn_features(chains)
  expect_equal(learned$edges, chains$edges, tolerance = 1e-12)
  expect_lt(max(abs(unname(learned$paths) - paths)), 0.05)
  expect_true(all(learned$errors$paths < 0.05) && any(learned$errors$paths > 0))
})

test_that("features need a fit that has graphs", {
  d <- bn_test_data(60)[1:3]
  bad <- function(code, text) expect_error(code, class = "weft_error_input", regexp = text)
  bad(bn_features(bn_exact(d)), "posterior over graphs")
  bad(bn_features(bn_learn(d, iterations = 100)), "target = \"max\"")
  bad(bn_features(bn_learn(d, iterations = 100, target = "sum"), draws = 10), "for an exact posterior")
  bad(bn_features(bn_exact(d, posterior = "dag"), draws = 1), "draws")
  bad(bn_features(d), "bn_learn")
})

test_that("features are a data frame of ordered pairs, and damaged ones are named", {
  x <- as.data.frame(withr::with_seed(1, matrix(stats::rnorm(200), 50)))
  x$V2 <- x$V2 + x$V1
  features <- bn_features(bn_exact(x, 3, "bge", posterior = "dag"), draws = 300, seed = 1)
  pairs <- as.data.frame(features)
  expect_identical(nrow(pairs), 12L)
  expect_false(is.unsorted(-pairs$path))
  at <- cbind(match(pairs$from, names(x)), match(pairs$to, names(x)))
  for (part in c("edge", "path", "blanket")) {
    expect_identical(pairs[[part]], features[[paste0(part, "s")]][at])
    expect_identical(pairs[[paste0(part, "_error")]], features$errors[[paste0(part, "s")]][at])
  }
  expect_identical(tidy(features), pairs)
  expect_identical(glance(features)$classes, nrow(features$classes))
  expect_identical(rownames(features$classes), as.character(seq_len(nrow(features$classes))))
  for (part in c("edges", "paths", "blankets", "errors")) {
    for (value in list(NULL, 1, "a", list())) {
      damaged <- features
      damaged[part] <- list(value)
      expect_error(as.data.frame(damaged), part, class = "weft_error_input", info = part)
    }
  }
  expect_error(bn_features(bn_search(x, seed = 1)), "start = fit", class = "weft_error_input")
})
