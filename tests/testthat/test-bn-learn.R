dags_of <- function(fit) vapply(fit$dags, function(g) paste(g$dag, collapse = ""), "")

test_that("the same seed gives the same result on any number of threads, and leaves R's generator alone", {
  d <- bn_test_data(300)
  for (target in c("max", "sum", "uniform")) {
    run <- function(...) call_with(bn_learn, list(d, iterations = 600, target = target, chains = 3, ...))
    set.seed(9)
    before <- .Random.seed
    one <- run(seed = 4, threads = 1)
    expect_identical(.Random.seed, before)
    two <- run(seed = 4, threads = 2)
    for (field in c("dag", "score", "dags", "edges", "trace",
                    "diagnostics")) expect_identical(one[[field]], two[[field]])
    expect_false(identical(run(seed = 5)$trace, one$trace))
    set.seed(9)
    a <- run()
    expect_false(identical(.Random.seed, before))
    set.seed(9)
    expect_identical(run()$trace, a$trace)
  }
})

test_that("update goes on as one longer run would", {
  d <- bn_test_data(300)
  for (target in c("max", "sum", "uniform")) {
    whole <- bn_learn(d, iterations = 600, target = target, seed = 3, chains = 2,
                      control = list(thin = 10, burn_in = 50))
    parts <- update(bn_learn(d, iterations = 200, target = target, seed = 3, chains = 2,
                             control = list(thin = 10, burn_in = 50)), iterations = 400)
    for (field in c("score", "trace", "edges", "diagnostics", "order", "layer")) {
      expect_equal(parts[[field]], whole[[field]])
    }
    expect_equal(vapply(parts$dags, `[[`, 0, "score"), vapply(whole$dags, `[[`, 0, "score"))
  }
})

test_that("the best graphs are different, sorted, acyclic and scored rightly", {
  d <- bn_test_data(300)
  fit <- bn_learn(d, iterations = 2000, top = 20, seed = 1)
  scores <- vapply(fit$dags, `[[`, 0, "score")
  expect_equal(length(fit$dags), 20L)
  expect_false(anyDuplicated(dags_of(fit)) > 0)
  expect_false(is.unsorted(-scores))
  expect_equal(vapply(fit$dags, function(g) bn_score(d, g$dag), 0), scores, tolerance = 1e-10)
  # from a full table these are the best of all graphs that are best for some order
  full <- bn_learn(bn_scores(d, keep = "all"), iterations = 20000, top = 5, seed = 1)
  expect_equal(full$score, bn_exact(d)$score)
  expect_equal(scores[1], full$score)
})

test_that("wider networks take other masks and find what narrow ones find", {
  d <- bn_test_data(300)
  few <- bn_learn(d, 3, iterations = 2000, seed = 1)
  constant <- as.data.frame(matrix(factor("x"), 300, 130), stringsAsFactors = TRUE)
  names(constant) <- sprintf("k%03d", 1:130)
  for (more in c(60, 130)) { # 65 and 135 nodes: masks of two and three words
    wide <- cbind(constant[seq_len(more)], d)
    fit <- bn_learn(wide, 3, candidates = 4, iterations = 20000, seed = 2, control = list(plus_one = FALSE))
    expect_equal(fit$score, few$score, tolerance = 1e-9)
    expect_equal(sum(fit$dag), sum(fit$dag[names(d), names(d)]))
    for (target in c("sum", "uniform")) {
      fit <- bn_learn(wide, 2, candidates = 4, iterations = 300, target = target, seed = 2, chains = 2,
                      control = list(plus_one = FALSE))
      expect_true(all(fit$edges >= 0 & fit$edges <= 1 + 1e-12))
    }
  }
})

test_that("hard priors hold for every graph found", {
  d <- bn_test_data(300)
  prior <- bn_prior(d, required = data.frame(from = c("e", "d"), to = c("a", "b")),
                    tiers = list(c("e", "d"), c("a", "b", "c")))
  for (target in c("max", "sum", "uniform")) {
    fit <- bn_learn(d, prior = prior, iterations = 1000, target = target, seed = 1)
    for (g in fit$dags) {
      expect_equal(g$dag["e", "a"] + g$dag["d", "b"], 2)
      expect_equal(sum(g$dag[c("a", "b", "c"), c("e", "d")]), 0)
    }
  }
  expect_equal(unname(fit$edges["e", "a"]), 1)
  expect_error(bn_learn(d, prior = prior, start = c("a", "b", "c", "d", "e")), class = "weft_error_input",
               regexp = "required parent")
  expect_error(bn_learn(d, 0, prior = prior), class = "weft_error_input", regexp = "max_parents")
})

test_that("interventions orient what observation leaves open", {
  withr::local_seed(1)
  a <- sample(1:2, 400, TRUE)
  set <- rep(c(NA, "b"), each = 200)
  b <- ifelse(runif(400) < 0.9, a, 3 - a)
  b[201:400] <- sample(1:2, 200, TRUE)
  fit <- bn_exact(data.frame(a = factor(a), b = factor(b)), interventions = set, posterior = "dag")
  expect_gt(fit$edges["a", "b"], 0.99)
})

test_that("one node, constant columns and one row work", {
  expect_equal(bn_learn(bn_test_data()["a"], iterations = 10)$score, bn_local_score(bn_test_data(), "a"),
               tolerance = 1e-9)
  same <- data.frame(a = factor(rep(1, 20)), b = factor(rep(1, 20)))
  expect_equal(sum(bn_learn(same, iterations = 10)$dag), 0)
  expect_equal(sum(bn_learn(bn_test_data()[1, ], iterations = 50)$dag), 0)
})

test_that("exact answers and the counting of orders can be interrupted", {
  stop_now <- function(done, total) stop("enough")
  withr::local_options(weft.poll = 1e-5)
  d <- withr::with_seed(1, as.data.frame(matrix(sample(0:1, 60 * 17, TRUE), 60)))
  table <- bn_scores(d, 1, keep = "all")
  for (posterior in c("none", "order")) expect_error(bn_exact(table, posterior = posterior,
                                                              run = weft_run(progress = stop_now)),
                                                     "enough")
  expect_error(bn_exact(bn_scores(d[1:12], 1, keep = "all"), posterior = "dag",
                        run = weft_run(progress = stop_now)), "enough")
  # more ladders than go at once
  expect_error(bn_learn(d[1:4], iterations = 1e6, chains = 500, run = weft_run(progress = stop_now)), "enough")
})

test_that("a sum target's order is worth the sum over its graphs, also where scores are thousands of nats apart", {
  withr::local_seed(3)
  x <- sample(4, 4000, TRUE)
  copies <- lapply(1:6, function(k) factor(ifelse(stats::runif(4000) < 0.02 * k, sample(4, 4000, TRUE), x), 1:4))
  names(copies) <- letters[1:6]
  # of 64 sets in a row the last that have no V2 count beside those that follow, 28 nats below the first
  many <- bn_scores(twin_bn_data(), 4, keep = "all")
  for (table in list(bn_scores(list2DF(copies), 3, keep = "all"),
                     bn_scores(bn_test_data(), 4, keep = "sum", control = list(slack = 8)), many)) {
    order_score <- function(order) {
      sum(vapply(seq_along(order), function(k) {
        sets <- (table$start[order[k]] + 1):table$start[order[k] + 1]
        before <- c(0L, order[seq_len(k - 1)])
        scores <- table$score[sets][colSums(matrix(!table$parents[, sets] %in% before, nrow(table$parents))) == 0]
        max(scores) + log(sum(exp(scores - max(scores))))
      }, 0))
    }
    fit <- bn_learn(table, iterations = 200, target = "sum", chains = 12, seed = 1,
                    control = list(temperatures = 1, thin = 200, burn_in = 0))
    expect_equal(unname(fit$trace[1, ]), apply(fit$order + 1, 2, order_score), tolerance = 1e-12)
  }
})

test_that("a search ends where its orders settle, which leaves the chains alone", {
  d <- bn_test_data(300)
  fit <- bn_learn(d, iterations = 40, seed = 1, chains = 2, control = list(temperatures = 1))
  expect_true(all(fit$best_score %in% vapply(fit$dags, `[[`, 0, "score")) || length(fit$dags) == 10L)
  expect_gte(fit$score, max(fit$best_score))
  expect_equal(fit$score, bn_score(d, fit))
  expect_length(bn_learn(d, iterations = 3, seed = 1)$dags[[1]], 2L) # too short for one
})

test_that("long searches can be interrupted", {
  table <- bn_scores(bn_test_data(300))
  expect_stops(function(progress) bn_learn(table, iterations = 1e9, run = weft_run(progress = progress)), "a search")
})

test_that("arguments that break a rule are classed errors", {
  d <- bn_test_data()
  bad <- function(code, text) expect_error(code, class = "weft_error_input", regexp = text)
  bad(bn_learn(d, iterations = -1), "iterations")
  bad(bn_learn(d, control = list(temperatures = c(2, 1))), "start with 1")
  bad(bn_learn(d, chains = 0), "chains")
  bad(bn_learn(d, correct_bias = TRUE), "did you mean `target`")
  bad(bn_learn(d, start = c("a", "b")), "must be a network")
  bad(bn_learn(d, iterations = 10, target = "sum", control = list(thin = 4, burn_in = 9)), "saved step")
})

test_that("results print, summarise, convert and plot", {
  d <- bn_test_data(300)
  fit <- bn_learn(d, iterations = 500, seed = 1)
  expect_null(fit$edges)
  expect_output(print(fit), "No edge posteriors")
  posterior <- bn_learn(d, iterations = 500, target = "sum", seed = 1)
  expect_output(print(posterior), "Edge posteriors from")
  expect_output(print(bn_exact(d)), "proven")
  expect_equal(names(summary(posterior)), c("from", "to", "posterior"))
  expect_equal(nrow(tidy(fit)), sum(fit$dag))
  expect_equal(glance(fit)$nodes, 5L)
  expect_equal(dim(fit$trace), c(500L, 16L))
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  for (which in c("network", "trace", "score", "posterior")) expect_silent(plot(posterior, which))
  expect_error(plot(fit, "posterior"), class = "weft_error_input")
  expect_error(plot(fit, cex = 0), "`cex` must be one number from 0.01", class = "weft_error_input")
  expect_error(plot(bn_exact(d), "trace"), class = "weft_error_input")
})

test_that("what a run takes is found before it is allocated, and what to do is said", {
  d <- bn_test_data(30)[1:3]
  refused <- function(code, text) expect_error(code, class = "weft_error_memory", regexp = text)
  refused(bn_learn(d, iterations = 2^33, chains = 1, control = list(thin = 1)),
          "8589934592 saved steps of 1 ladders.*at most 536870912.*raise `thin`")
  refused(bn_learn(d, iterations = 2^53, target = "sum", control = list(thin = 1)), "available")
  wide <- do.call(cbind, rep(list(d), 20)) # of which 10^8 chains take 340 GB
  names(wide) <- sprintf("v%d", seq_along(wide))
  refused(bn_learn(wide, 1, iterations = 10, chains = 1e5, control = list(temperatures = rep(1, 1000))),
          "fewer `chains`")
  refused(bn_learn(d, iterations = 10, chains = 1e5, top = 1e5), "a smaller `top`")
  fit <- bn_learn(d, iterations = 20, chains = 1, seed = 1, control = list(thin = 1))
  refused(update(fit, iterations = 2^31), "2147483668 saved steps.*Learn the network again")
  expect_error(update(fit, iterations = 2^53), class = "weft_error_input", regexp = "from 1 to 9007199254740972")
})

test_that("a trace of many steps is transformed in portions of few columns", {
  trace <- withr::with_seed(1, matrix(stats::rnorm(2 * 2^19 * 3), 2^19 * 2)) # a column is more than a portion
  few <- trace[1:4000, ]
  slow <- function(x) stats::acf(x, lag.max = 3, type = "covariance", plot = FALSE)$acf
  expect_equal(weft:::mean_autocovariance(few)[1:4], rowMeans(apply(few, 2, slow)))
  expect_equal(weft:::mean_autocovariance(trace)[1:4], rowMeans(apply(trace, 2, slow)))
})

test_that("arguments that are left out, misspelt or name what is not there say so", {
  d <- bn_test_data()
  dag <- bn_exact(d)$dag
  fit <- bn_fit(d, dag)
  bad <- function(code, text) expect_error(code, class = "weft_error_input", regexp = text)
  for (f in list(bn_learn, bn_exact, bn_scores, bn_local_score, bn_score)) bad(f(), "`x` must be given")
  bad(bn_local_score(d), "`node` must be given")
  bad(bn_score(d), "`dag` must be given")
  bad(bn_fit(), "`x` must be given")
  bad(bn_fit(dag = dag), "`x` must be given")
  bad(bn_sample(fit), "`n` must be given")
  bad(bn_sample(), "`fit` must be given")
  bad(bn_log_lik(fit), "`x` must be given")
  bad(predict(fit), "`newdata` must be given")
  bad(predict(fit, d), "`node` must be given")
  bad(bn_compare(dag), "`truth` must be given")
  bad(bn_cpdag(), "`dag` must be given")
  bad(bn_convert(), "`x` must be given")
  bad(bn_prior(), "`nodes` must be given")
  bad(update(bn_learn(d, iterations = 10)), "`iterations` must be given")
  bad(bn_learn(d, iterations = 10, itertions = 5), "Unknown argument `itertions`; did you mean `iterations`")
  bad(bn_exact(d, essence = 5), "Unknown argument `essence`")
  bad(bn_local_score(d, "a", c("b", "zz")), "There is no `zz`")
  bad(bn_score(d, cbind(dag, zz = 0)), "square matrix")
  bad(bn_scores(stats::setNames(d, c("a", "b", "b", "d", "e"))), "Duplicated: `b`")
  bad(bn_scores(stats::setNames(d, c("a", "", "c", "d", "e"))), "Columns without a name: `2`")
  bad(bn_scores(d, max_parents = c(a = 1, q = 2)), "There is no `q`")
  bad(bn_scores(d, max_parents = c(a = 1, a = 2)), "Duplicated: `a`")
  bad(bn_learn(d, start = c("a", "b", "c", "d", "zz")), "Unknown: `zz`. Missing: `e`")
  bad(bn_prior(c("x", "y", "x")), "Duplicated: `x`")
  bad(bn_sample(fit, 2^31), "from 0 to 2147483647")
  bad(bn_sample(fit, 5, do = list(zz = 1)), "There is no `zz`")
  bad(bn_sample(fit, 5, do = list(a = 1, a = 2)), "Duplicated: `a`")
  bad(bn_log_lik(fit, cbind(d, a = d$a)), "Duplicated: `a`")
  bad(bn_log_lik(fit, d[-2]), "Missing: `b`")
  bad(bn_compare(list(), dag), "It is empty")
  bad(bn_compare(dag * NA_real_, dag), "must be a network")
  bad(bn_compare(dag * 7.5, dag), "from 0 to 7.5")
})

test_that("an error names the function that was called, not the data that do.call() put into the call", {
  d <- bn_test_data()
  for (f in list(bn_learn, "bn_learn")) {
    failed <- tryCatch(do.call(f, list(d, iterations = -1)), error = identity)
    expect_identical(deparse(conditionCall(failed)), "bn_learn(..., iterations = -1)")
  }
})

test_that("`iterations = 0` settles alone, at a graph that no order next to its own betters", {
  d <- linked_bn_data(12, 400)
  quick <- bn_learn(d, iterations = 0, seed = 1)
  expect_equal(quick$score, bn_score(d, quick), tolerance = 1e-10)
  best <- bn_exact(d)$score
  expect_lte(quick$score, best + 1e-9)
  start <- rev(names(d))
  expect_gt(quick$score, bn_learn(d, iterations = 1, seed = 1)$score)
  expect_gt(bn_learn(d, iterations = 0, chains = 1, start = start, seed = 1)$score,
            bn_learn(d, iterations = 1, chains = 1, start = start, seed = 1)$score)
  expect_identical(bn_learn(d, iterations = 0, seed = 1, run = weft_run(threads = 2))$dags, quick$dags)
  more <- update(quick, iterations = 2000)
  expect_gte(more$score, quick$score)
  expect_identical(more$order, bn_learn(d, iterations = 2001, seed = 1, control = list(thin = 1))$order)
  expect_output(print(quick), "12 nodes")
  expect_error(bn_learn(d, iterations = 0, target = "sum"), class = "weft_error_input", regexp = "from 1")
})

test_that("arguments by other packages' names are errors that name the ones meant", {
  d <- bn_test_data()
  for (f in list(bn_learn, bn_exact)) {
    expect_error(f(d, iss = 5), class = "weft_error_input", regexp = "did you mean `ess`")
    expect_error(f(d, maxp = 2), class = "weft_error_input", regexp = "`max_parents`")
  }
  expect_error(bn_learn(d, restart = 5), class = "weft_error_input", regexp = "`chains`")
})

test_that("a search of no stated length ends when its ladders agree, and is the whole search when they do not", {
  d <- bn_test_data()
  table <- bn_scores(d, 4)
  short <- bn_learn(table, seed = 1)
  expect_lt(short$iterations, 20000)
  expect_equal(short$score, bn_exact(table)$score)
  expect_equal(nrow(short$trace) * short$run$thin, short$iterations)
  longer <- update(short, iterations = 100)
  expect_equal(longer$iterations, short$iterations + 100)
  expect_gte(longer$score, short$score)
  # of graphs that score the same, others may be the ten that are kept
  fields <- c("score", "best_score", "trace", "order", "iterations", "counts", "diagnostics")
  few <- bn_learn(table, chains = 3, seed = 1, control = list(thin = 7)) # three may agree by chance
  told <- bn_learn(table, iterations = 20000, chains = 3, seed = 1, control = list(thin = 7))
  expect_identical(unclass(few)[fields], unclass(told)[fields])
  noise <- withr::with_seed(3, as.data.frame(matrix(sample(0:1, 60 * 24, TRUE), 60)))
  noise <- bn_scores(noise, 4, gamma = 1)
  open <- bn_learn(noise, seed = 1)
  expect_lte(open$iterations, 1000)
  expect_gte(open$score, bn_learn(noise, iterations = 20000, seed = 1)$score - 1e-9)
})

test_that("settled orders have no node with a better place, on any number of threads and with masks of any width", {
  for (more in c(0, 60, 130)) { # masks of one, two and three words
    d <- linked_bn_data(12, 400)
    constant <- as.data.frame(matrix(factor("x"), 400, more), stringsAsFactors = TRUE)
    if (more) names(constant) <- sprintf("k%03d", seq_len(more))
    d <- if (more) cbind(constant, d) else d
    table <- bn_scores(d, 3, candidates = min(6, ncol(d) - 1), control = list(plus_one = FALSE))
    p <- ncol(d)
    settle <- function(order, kicks, threads = 1) {
      .Call(weft:::C_weft_bn_settle, weft:::bn_native_table(table), list(order = order, kicks = kicks, best = 5,
            key = c(1, 2), first = 0), weft:::run_control("cpu", threads, FALSE))
    }
    order <- withr::with_seed(1, replicate(3, sample(p) - 1L))
    once <- settle(order, 0)
    expect_identical(settle(order, 0, 3), once)
    worth <- function(order) {
      place <- order(order)
      sum(vapply(seq_len(p), function(z) {
        sets <- (table$start[z] + 1):table$start[z + 1]
        before <- c(0L, which(place < place[z]))
        table$score[sets[match(TRUE, colSums(matrix(!table$parents[, sets] %in% before, nrow(table$parents))) == 0)]]
      }, 0))
    }
    expect_equal(once$end, apply(once$order, 2, worth), tolerance = 1e-12)
    expect_identical(sort(once$order[, 1]), seq_len(p) - 1L)
    if (!more) {
      best <- once$order[, 1]
      moved <- outer(seq_len(p), seq_len(p), Vectorize(function(v, to) worth(append(best[-v], best[v], to - 1))))
      expect_lte(max(moved), once$end[1] + 1e-9)
      expect_equal(max(settle(order, 100)$end), bn_exact(table)$score, tolerance = 1e-12)
    }
    kicked <- settle(order, 20)
    expect_true(all(kicked$end >= once$end - 1e-9))
    expect_identical(settle(order, 20, 2), kicked)
    expect_equal(kicked$best_score[1], max(kicked$end))
    expect_false(is.unsorted(-kicked$best_score))
  }
})

test_that("the sets that a search needs lead to the best graph of all sets, and have their scores", {
  for (seed in 1:3) {
    d <- linked_bn_data(12, 300 + 100 * seed)
    for (score in c("bdeu", "bic", "k2", "bds")) {
      near <- weft:::near_table(d, score, c(seed, 1), weft_run(threads = 1, progress = FALSE))$table
      expect_s3_class(weft:::check_bn_table(near, "near"), "weft_bn_scores")
      found <- bn_exact(near)
      expect_gte(found$score, bn_exact(d, 4, score)$score - 1e-6)
      expect_equal(bn_score(d, found, score), found$score, tolerance = 1e-9)
      expect_identical(weft:::near_table(d, score, c(seed, 1), weft_run(threads = 3, progress = FALSE))$table[
                         c("start", "score", "parents")],
                       near[c("start", "score", "parents")])
    }
  }
  prior <- bn_prior(d, required = stats::setNames(data.frame(names(d)[1], names(d)[2]), c("from", "to")),
                    forbidden = stats::setNames(data.frame(names(d)[3], names(d)[4]), c("from", "to")))
  near <- weft:::near_table(d, "bdeu", c(1, 1), weft_run(threads = 1, progress = FALSE), prior = prior)$table
  sets <- as.data.frame(near)
  expect_true(all(grepl(paste0("(^|;)", names(d)[1], "(;|$)"), sets$parents[sets$node == names(d)[2]])))
  expect_false(any(grepl(paste0("(^|;)", names(d)[3], "(;|$)"), sets$parents[sets$node == names(d)[4]])))
  expect_gte(bn_exact(near)$score, bn_exact(d, prior = prior)$score - 1e-6)
})

test_that("many nodes are searched without all sets, unless sets are asked for", {
  d <- linked_bn_data(40, 300)
  fit <- bn_learn(d, seed = 1, run = weft_run(threads = 1))
  expect_true(fit$table$near)
  expect_identical(bn_learn(d, seed = 1, run = weft_run(threads = 3))[c("dags", "trace", "order")],
                   fit[c("dags", "trace", "order")])
  expect_equal(fit$score, bn_score(d, fit), tolerance = 1e-9)
  expect_output(print(fit), "that the search needed were scored")
  expect_output(print(fit$table), "needed to find the best graph")
  whole <- bn_learn(d, 3, seed = 1)
  expect_null(whole$table$near)
  expect_gte(fit$score, whole$score - 1e-6)
  expect_null(bn_learn(d, candidates = 3, iterations = 20, seed = 1)$table$near)
  expect_null(bn_learn(d[1:10], iterations = 20, seed = 1)$table$near)
  expect_error(bn_learn(fit$table, target = "sum"), class = "weft_error_input", regexp = "keep")
  expect_error(bn_learn(d, score = "bde"), class = "weft_error_input", regexp = "score")
  expect_gte(bn_learn(d, start = rev(names(d)), iterations = 0, seed = 1)$score, fit$score - 50)
  expect_gte(update(fit, iterations = 100)$score, fit$score)
})
