# Pairs that were not observed, in nested groups (src/irm/cpu/nested/masked.c).

masked <- function(x, type, ..., chains = 2, sweeps = 30, seed = 1, degrees = TRUE) {
  irm(x, type, prior = irm_prior(degrees = degrees), chains = chains, sweeps = sweeps, seed = seed,
      run = weft_run("cpu", progress = FALSE), ...)
}

tiny <- function(kind, counts) {
  A <- if (kind == "bipartite") matrix(rpois(6, 1), 2) else matrix(rpois(16, 1), 4)
  if (kind == "undirected") A[lower.tri(A)] <- t(A)[lower.tri(A)]
  if (counts) A else 1 * (A > 0)
}

test_that("groups and hidden links agree with exact enumeration over both", {
  skip_on_cran()
  withr::local_seed(1)
  cases <- expand.grid(kind = c("undirected", "directed", "bipartite"), counts = c(FALSE, TRUE),
                       stringsAsFactors = FALSE)
  for (case in seq_len(nrow(cases))) {
    kind <- cases$kind[case]
    counts <- cases$counts[case]
    A <- tiny(kind, counts)
    hidden <- if (kind == "bipartite") cbind(1:2, 2:3) else cbind(1:2, 3:2)
    if (counts) hidden <- hidden[1, , drop = FALSE]
    limits <- if (kind == "bipartite") dim(A) else c(4, 1)
    want <- exact_masked(A, kind, limits, hidden, if (counts) 20 else 6)
    fit <- masked(A, kind, family = if (counts) "poisson" else "bernoulli", missing = hidden, chains = 4, sweeps = 2100,
                  max_clusters = if (kind == "bipartite") limits else 4,
                  control = list(thin = 1, burn_in = 128, self = kind != "bipartite"))
    draws <- weft:::kept_samples(fit$run, 128)
    z <- if (kind == "bipartite") rbind(draws$row, draws$col + 10L) else draws$row
    seen <- apply(z, 2, function(x) paste(match(x, unique(x)), collapse = ""))
    got <- vapply(split(seen, rep(1:4, each = 1972)), function(s) {
      as.vector(table(factor(s, names(want$partitions)))) / 1972
    }, want$partitions)
    # the error of the mean of four chains, from how they differ; counts have a tail beyond what is enumerated
    error <- apply(got, 1, sd) / 2
    expect_true(all(abs(rowMeans(got) - want$partitions) < 5 * error + 5e-3), info = paste(kind, counts))
    if (!counts) next # two pairs are enumerated up to 6 only
    expect_equal(weft:::masked_means(fit$run, 128), unname(want$means), tolerance = 0.1, info = kind)
  }
})

test_that("the log posterior of a partition is the sum over the counts of hidden pairs", {
  withr::local_seed(2)
  for (kind in c("undirected", "directed", "bipartite")) for (degrees in c(TRUE, FALSE)) {
    A <- if (kind == "bipartite") matrix(rpois(30, 1), 5) else matrix(rpois(49, 1), 7)
    if (kind == "undirected") A[lower.tri(A)] <- t(A)[lower.tri(A)]
    hidden <- cbind(c(1, 2, 3), c(3, 2, 4))
    limits <- c(3, 3 * (kind == "bipartite"))
    length_of <- function(A, missing = NULL, key = c(0, 0)) {
      graph <- weft:::irm_graph(A, kind, "poisson", missing = missing, input = list(self = kind != "bipartite"))
      weft:::nested_length(graph, rep_len(c(0L, 1L, 1L), nrow(A)), rep_len(0:2, ncol(A)), limits, NULL, degrees,
                           key = key)
    }
    links <- function(A) sum(if (kind == "undirected") A[upper.tri(A, TRUE)] else A)
    pairs <- if (kind == "undirected") 28 else length(A)
    observed <- replace(A, hidden, 0)
    if (kind == "undirected") observed[hidden[, 2:1]] <- 0
    mean <- links(observed) * pairs / (pairs - 3)
    counts <- as.matrix(expand.grid(0:12, 0:12, 0:12))
    each <- apply(counts[rowSums(counts) < 16, ], 1, function(x) {
      A[hidden] <- x
      if (kind == "undirected") A[hidden[, 2:1]] <- x
      links(A) * log(mean / (1 + mean)) - length_of(A)
    })
    got <- vapply(1:60, function(key) -length_of(A, hidden, c(0, key)), 0)
    # an unbiased estimate: its mean, within five errors
    ratio <- exp(got - log_sum(each))
    expect_lt(abs(mean(ratio) - 1), 5 * sd(ratio) / sqrt(60) + 1e-9)
    expect_lt(sd(ratio), 0.2)
  }
})

test_that("large and small counts of hidden cells are found", {
  withr::local_seed(3)
  for (rate in c(0.5, 30, 1000, 1e6)) {
    A <- matrix(rpois(200, rate), 10)
    hidden <- cbind(c(1, 2, 3, 7), c(1, 5, 5, 20))
    fit <- masked(A, "bipartite", family = "poisson", missing = hidden)
    error <- sqrt(rate * (1 + 1 / 8)) # of a count, with its row and column estimated
    expect_lt(max(abs(predict(fit, hidden) - rate)), 5 * error)
  }
  extreme <- matrix(c(0, 1e9, 1e9, NA), 2)
  expect_true(all(is.finite(masked(extreme, "bipartite", family = "poisson")$log_posterior)))
  for (kind in c("directed", "undirected")) {
    expect_true(all(is.finite(predict(masked(replace(matrix(1, 3, 3), c(2, 4), NA), kind)))))
  }
  alone <- masked(matrix(c(3, NA), 1), "bipartite", family = "poisson", sweeps = 400)
  expect_true(is.finite(predict(alone, cbind(1, 2))))
})

test_that("what is missing counts neither as a link nor as none", {
  withr::local_seed(4)
  A <- matrix(rbinom(900, 1, 0.4), 30)
  hidden <- which(matrix(runif(900) < 0.3, 30), arr.ind = TRUE)
  same <- masked(replace(A, hidden, NA), "directed")
  one <- masked(replace(A, hidden, 1), "directed", missing = hidden)
  expect_identical(one$run$trace, same$run$trace)
  expect_lt(abs(mean(predict(same, hidden[hidden[, 1] != hidden[, 2], ])) - 0.4), 0.1)
})

test_that("a run with hidden pairs may be cut, continued and saved, on any number of threads", {
  withr::local_seed(5)
  A <- matrix(rpois(600, rep(c(0.2, 1), each = 300)), 20)
  A[sample(600, 60)] <- NA
  run <- function(sweeps, threads = 2, ...) {
    irm(A, "bipartite", "poisson", prior = irm_prior(degrees = TRUE), chains = 2, sweeps = sweeps, seed = 1,
        hold_out = 0.1, run = weft_run("cpu", threads = threads, progress = FALSE), ...)
  }
  whole <- run(70)
  parts <- update(run(31), sweeps = 39) # blocks of expected counts are joined on the way
  expect_identical(parts$run$trace, whole$run$trace)
  expect_identical(parts$run$state, whole$run$state)
  expect_identical(parts$auc, whole$auc)
  expect_identical(run(70, threads = 1)$run$trace, whole$run$trace)
  file <- withr::local_tempfile()
  saved <- run(70, control = list(checkpoint = file, checkpoint_sweeps = 26))
  expect_identical(saved$run$trace, whole$run$trace)
  expect_identical(irm_resume(file)$run$trace, whole$run$trace)
})

test_that("links of a planted graph are predicted better than by degrees alone", {
  skip_on_cran()
  withr::local_seed(6)
  z <- rep(1:4, each = 40)
  theta <- rexp(160)^1.5 + 0.2
  A <- planted_degrees(z, theta, 0.25, 0.01)
  pairs <- which(upper.tri(A), arr.ind = TRUE)
  hidden <- pairs[sample(nrow(pairs), nrow(pairs) / 10), ]
  truth <- A[hidden]
  fit <- masked(A, "undirected", missing = hidden, sweeps = 100)
  seen <- replace(replace(A, hidden, 0), hidden[, 2:1], 0)
  by_degrees <- irm_auc(rowSums(seen)[hidden[, 1]] * rowSums(seen)[hidden[, 2]], truth)
  expect_gt(irm_auc(predict(fit, hidden), truth), by_degrees + 0.05)
  expect_gt(irm_nmi(fit$row_cluster, z), 0.8)
  # the number of hidden links has an error of its own
  expect_lt(abs(sum(predict(fit, hidden)) - sum(truth)), 2.5 * sqrt(sum(truth)))
  expect_equal(sum(predict(fit, which(upper.tri(A), arr.ind = TRUE))), sum(A) / 2, tolerance = 0.05)
})

test_that("probabilities of links have the closed form of a single group, and add up to the links", {
  withr::local_seed(7)
  for (kind in c("undirected", "directed", "bipartite")) for (density in c(0.1, 0.5, 0.9)) {
    A <- matrix(rbinom(225, 1, density), 15)
    if (kind == "undirected") A[lower.tri(A)] <- t(A)[lower.tri(A)]
    if (kind != "bipartite") diag(A) <- 0
    graph <- weft:::irm_graph(A, kind, "bernoulli")
    one <- integer(15)
    pairs <- weft:::nested_pairs(graph, NULL, FALSE)
    for (again in 1:20) pairs <- weft:::expect_counts(pairs, one, one, FALSE)$pairs
    rate <- weft:::rates_of(weft:::expect_counts(pairs, one, one, FALSE)$rates, 2, 3)$mean
    expect_equal(1 - exp(-rate), sum(A) / if (kind == "bipartite") 225 else 210, tolerance = 1e-3)
  }
  # three dense groups, where rates are far from probabilities
  z <- rep(1:3, each = 20)
  theta <- rep(c(0.5, 1, 2, 4), 15)
  A <- planted_degrees(z, theta, 0.3, 0.02)
  fit <- masked(A, "undirected")
  expect_equal(sum(predict(fit, which(upper.tri(A), arr.ind = TRUE))), sum(A) / 2, tolerance = 0.05)
})

test_that("too many hidden pairs are an error with the limit", {
  A <- matrix(1, 10, 10)
  A[-1] <- NA
  expect_error(masked(A, "bipartite"), "There are 99 of 100", class = "weft_error_input")
  expect_error(masked(A, "bipartite"), "90 %", class = "weft_error_input")
})
