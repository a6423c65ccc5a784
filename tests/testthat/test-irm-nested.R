nested <- function(x, type, ..., chains = 1, sweeps = 20, seed = 1, degrees = TRUE) {
  irm(x, type, prior = irm_prior(degrees = degrees), chains = chains, sweeps = sweeps, seed = seed,
      run = weft_run("cpu", progress = FALSE), ...)
}

small_counts <- function(kind) {
  if (kind == "bipartite") return(matrix(rpois(12, 1.2), 3, 4))
  A <- matrix(rpois(25, 1), 5)
  if (kind == "directed") return(A)
  A[lower.tri(A)] <- t(A)[lower.tri(A)]
  A
}

test_that("chains of nested groups agree with exact enumeration", {
  skip_on_cran()
  withr::local_seed(1)
  for (kind in c("undirected", "directed", "bipartite")) {
    A <- small_counts(kind)
    limits <- if (kind == "bipartite") dim(A) else c(5, 1)
    want <- exact_nested(A, kind, limits)
    fit <- nested(A, kind, family = "poisson", chains = 4, sweeps = 6000, seed = 4,
                  max_clusters = if (kind == "bipartite") limits else 5,
                  control = list(thin = 1, burn_in = 100, self = kind != "bipartite"))
    draws <- weft:::kept_samples(fit$run, 100)
    z <- if (kind == "bipartite") rbind(draws$row, draws$col + 10L) else draws$row
    seen <- apply(z, 2, function(x) paste(match(x, unique(x)), collapse = ""))
    got <- vapply(split(seen, rep(1:4, each = 5900)), function(s) as.vector(table(factor(s, names(want)))) / 5900, want)
    # the error of the mean of four chains, from how they differ; 5 of them and a little for rare partitions
    error <- apply(got, 1, sd) / 2
    expect_true(all(abs(rowMeans(got) - want) < 5 * error + 4e-3), info = kind)
  }
})

test_that("the description length is that of the formulas", {
  withr::local_seed(2)
  for (kind in c("undirected", "directed", "bipartite")) for (degrees in c(TRUE, FALSE)) {
    A <- if (kind == "bipartite") matrix(rpois(80, 1), 8) else matrix(rpois(81, 1), 9)
    if (kind == "undirected") A[lower.tri(A)] <- t(A)[lower.tri(A)]
    z <- rep_len(c(1, 2, 2), nrow(A))
    w <- rep_len(1:4, ncol(A))
    graph <- weft:::irm_graph(A, kind, "poisson", input = list(self = kind != "bipartite"))
    got <- weft:::nested_length(graph, as.integer(z) - 1L, as.integer(w) - 1L, c(4, 4 * (kind == "bipartite")), NULL,
                                degrees)
    type <- rep(1L, nrow(A))
    full <- A
    b <- z
    if (kind == "bipartite") {
      type <- rep(1:2, dim(A))
      full <- rbind(cbind(matrix(0, 8, 8), A), cbind(t(A), matrix(0, 10, 10)))
      b <- c(z, w + 2)
    } else if (kind == "undirected") full <- A + diag(diag(A))
    first <- match(sort(unique(b)), b)
    one <- type[first] # everything in one group of its type, at every level above
    want <- ref_partition(b, type) + ref_level_zero(full, b, kind == "directed", degrees) +
      ref_partition(one, one) + ref_upper_level(ref_block_links(full, b), one, kind == "directed")
    expect_equal(got, want, tolerance = 1e-10, info = paste(kind, degrees))
  }
})

test_that("groups are found where degrees vary, and noise with hubs is one group", {
  withr::local_seed(3)
  z <- rep(1:4, each = 40)
  theta <- rexp(160)^1.5 + 0.2
  A <- planted_degrees(z, theta, 0.25, 0.01)
  fit <- nested(A, "undirected")
  expect_gt(irm_nmi(fit$row_cluster, z), 0.9)
  noise <- planted_degrees(rep(1, 160), theta, 0.08, 0)
  expect_equal(max(nested(noise, "undirected")$row_cluster), 1)
  both <- nested(noise, "undirected", degrees = "compare")
  expect_true(both$degrees)
  expect_equal(min(both$compared$description_length), -max(both$log_posterior))
})

test_that("a run may be cut, continued and saved, on any number of threads", {
  withr::local_seed(4)
  A <- matrix(rpois(600, rep(c(0.2, 1), each = 300)), 20)
  whole <- nested(A, "bipartite", family = "poisson", chains = 2, sweeps = 14, hold_out = 0.1)
  parts <- update(nested(A, "bipartite", family = "poisson", chains = 2, sweeps = 9, hold_out = 0.1), sweeps = 5)
  expect_identical(parts$run$trace, whole$run$trace)
  expect_identical(parts$run$state, whole$run$state)
  one <- irm(A, "bipartite", "poisson", prior = irm_prior(degrees = TRUE), chains = 2, sweeps = 14, seed = 1,
             hold_out = 0.1, run = weft_run("cpu", threads = 1, progress = FALSE))
  expect_identical(one$run$trace, whole$run$trace)
  file <- withr::local_tempfile()
  saved <- nested(A, "bipartite", family = "poisson", chains = 2, sweeps = 14, hold_out = 0.1,
                  control = list(checkpoint = file, checkpoint_sweeps = 6))
  expect_identical(irm_resume(file)$run$trace, saved$run$trace)
})

test_that("levels hold each other, down to one group", {
  withr::local_seed(5)
  z <- rep(1:6, each = 30)
  A <- planted_degrees(z, rexp(180) + 0.5, 0.3, 0.01)
  levels <- nested(A, "undirected")$levels$row
  expect_equal(max(levels[, ncol(levels)]), 1)
  for (level in seq_len(ncol(levels) - 1)) {
    expect_true(all(tapply(levels[, level + 1], levels[, level], function(x) length(unique(x))) == 1))
  }
})

test_that("rates predict what was hidden, and add up to the links", {
  withr::local_seed(6)
  theta <- rexp(60) + 0.1
  C <- matrix(rpois(60 * 40, outer(theta, rexp(40)) * 2), 60)
  fit <- nested(C, "bipartite", family = "poisson", hold_out = 0.05)
  expect_gt(fit$auc, 0.7)
  all <- predict(nested(C, "bipartite", family = "poisson"))
  expect_equal(sum(all), sum(C), tolerance = 0.05)
})

test_that("wrong uses say what to do", {
  A <- diag(4)
  expect_error(irm_prior(degrees = NA), "must be TRUE, FALSE or", class = "weft_error_input")
  expect_error(nested(A, "bipartite", family = "gaussian"), "must be FALSE for real", class = "weft_error_input")
  expect_error(plot(irm(diag(4), chains = 1, sweeps = 4, seed = 1), "tree"), "needs nested", class = "weft_error_input")
})

test_that("hard graphs run", {
  expect_equal(unname(nested(matrix(0, 3, 3), "directed")$row_cluster), c(1, 1, 1))
  expect_equal(unname(nested(matrix(1, 1, 1), "bipartite")$row_cluster), 1)
  fit <- nested(matrix(c(0, 1e9, 1e9, 0), 2), "undirected", family = "poisson")
  expect_true(all(is.finite(fit$log_posterior)))
  expect_length(nested(diag(12), "bipartite", max_clusters = 2)$row_cluster, 12)
  withr::local_seed(7)
  expect_equal(max(nested(matrix(rpois(9, 30), 3), "directed", family = "poisson", max_clusters = 1)$row_cluster), 1)
  expect_output(print(summary(nested(matrix(0, 1, 1), "directed"))), "density 0")
})

# A graph that is large enough for the visits by threads.
large_graph <- function(n, links, groups, kind = "undirected") {
  z <- sample.int(groups, n, TRUE)
  members <- split(seq_len(n), factor(z, seq_len(groups)))
  from <- sample.int(n, links, TRUE)
  to <- sample.int(n, links, TRUE)
  own <- runif(links) < 0.8
  for (g in seq_len(groups)) {
    at <- which(own & z[from] == if (kind == "bipartite") g %% groups + 1 else g)
    to[at] <- sample(members[[g]], length(at), TRUE)
  }
  x <- if (kind == "undirected") data.frame(pmin(from, to), pmax(from, to)) else data.frame(from, to)
  list(x = x, z = z, n = n)
}

test_that("large graphs have the planted groups, whatever the kind and the threads", {
  skip_on_cran()
  withr::local_seed(8)
  for (kind in c("undirected", "directed", "bipartite")) {
    made <- large_graph(66000, 700000, 12, kind)
    fits <- lapply(1:2, function(threads) {
      irm(made$x, kind, "poisson", prior = irm_prior(degrees = TRUE), chains = 1, sweeps = 1, seed = 1,
          control = list(dim = made$n, self = kind != "bipartite"), run = weft_run("cpu", threads = threads))
    })
    expect_identical(fits[[1]]$run$state, fits[[2]]$run$state, info = kind)
    expect_gt(irm_nmi(fits[[1]]$row_cluster, made$z), 0.99)
    # what was kept is the description length of the labels, counted anew
    run <- fits[[1]]$run
    state <- run$state
    length <- weft:::nested_length(run$graph, state$best_row, state$best_col, run$model$max_clusters, state$best_upper,
                                   TRUE)
    expect_equal(length, -state$best, tolerance = 1e-12, info = kind)
  }
})

test_that("a start in a large graph stops at each poll, and leaves nothing behind", {
  skip_on_cran()
  withr::local_seed(9)
  made <- large_graph(66000, 500000, 4)
  graph <- weft:::irm_graph(made$x, "undirected", "poisson", input = list(self = TRUE, dim = made$n))
  withr::local_options(weft.poll = 0)
  model <- weft:::native_model(list(poisson = TRUE, collapsed = FALSE, nested = TRUE, degrees = TRUE, attempts = 0,
                                    sample_alpha = FALSE, sample_beta = FALSE, hyper = rep(1, 4),
                                    max_clusters = c(1024, 0), key = c(1, 2)))
  start <- function(last) {
    polls <- 0
    count <- function(done, total) {
      polls <<- polls + 1
      if (polls == last) stop(structure(class = c("told_to_stop", "error", "condition"), list(message = "stop")))
    }
    expect_error(
      .Call(weft:::C_weft_irm_start, weft:::native_graph(graph), model, 1L, weft:::run_control("cpu", 2L, count)),
      class = "told_to_stop")
    expect_identical(polls, last)
  }
  for (last in c(1, 3, 10, 30, 60, 100)) start(last)
  expect_equal(.Call(weft:::C_weft_memory, NULL)[["host"]], 0)
})
