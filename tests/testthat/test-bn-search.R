# The search of many nodes by best moves: against exact optima and single scores, for each score, with priors,
# interventions, limits and candidates; the same with any number of threads; damaged results; errors.

search_data <- function(n = 200, p = 12, seed = 3) {
  withr::local_seed(seed)
  x <- matrix(stats::rnorm(n * p), n, p, dimnames = list(NULL, paste0("v", seq_len(p))))
  for (j in seq_len(p)[-(1:2)]) x[, j] <- x[, j] + x[, j - 1L] - 0.7 * x[, j - 2L]
  as.data.frame(x)
}

test_that("the score is that of the network, under every score", {
  categories <- bn_test_data(300)
  numbers <- search_data()
  for (score in c("bdeu", "k2", "bic", "aic", "bds")) {
    fit <- bn_search(categories, score, gamma = 0.5, ess = 2, seed = 1, control = list(kicks = 20))
    expect_equal(fit$score, bn_score(categories, fit$dag, score, ess = 2, gamma = 0.5), tolerance = 1e-9, info = score)
    expect_equal(fit$score, sum(fit$node_scores))
    expect_equal(fit$score, max(fit$start_scores), tolerance = 1e-9)
  }
  fit <- bn_search(numbers, seed = 1)
  expect_equal(fit$score, bn_score(numbers, fit$dag, "bge", gamma = 1 / sqrt(12)), tolerance = 1e-9)
  expect_true(all(diff(match(unlist(apply(which(fit$dag != 0, arr.ind = TRUE), 1L, function(e) rownames(fit$dag)[e])),
                             fit$order))[c(TRUE, FALSE)] > 0)) # parents come first
})

test_that("of few nodes it finds the proven optimum", {
  for (seed in 1:4) {
    x <- as.data.frame(lapply(linked_bn_data(9, 150, 0.3, seed), factor))
    fit <- bn_search(x, "bic", gamma = 1, max_parents = 4, seed = seed, control = list(kicks = 200))
    expect_equal(fit$score, bn_exact(x, 4, "bic")$score, tolerance = 1e-9, info = seed)
  }
  x <- search_data()
  fit <- bn_search(x, gamma = 1, seed = 2)
  expect_equal(fit$score, bn_exact(x, 11, "bge")$score, tolerance = 1e-9)
})

test_that("two parents are found that tell something together alone", {
  withr::local_seed(1)
  x <- replicate(8, sample(0:1, 400, TRUE))
  x[, 5] <- ifelse(stats::runif(400) < 0.95, (x[, 1] + x[, 3]) %% 2, x[, 5])
  x <- as.data.frame(lapply(as.data.frame(x), factor))
  expect_gte(min(vapply(c(1, 3), function(k) bn_local_score(x, "V5", score = "bic") -
                                              bn_local_score(x, "V5", names(x)[k], "bic"), 0)), 0)
  fit <- bn_search(x, "bic", gamma = 1, seed = 1)
  expect_setequal(names(which((fit$dag | t(fit$dag))["V5", ])), c("V1", "V3"))
})

test_that("many nodes: more parents than a table holds, and weak ones among many", {
  withr::local_seed(5)
  p <- 150
  x <- matrix(stats::rnorm(500 * p), 500, dimnames = list(NULL, paste0("v", seq_len(p))))
  x[, 1] <- x[, 1] + rowSums(x[, 2:13])
  for (j in 20:p) x[, j] <- x[, j] + 0.6 * x[, j - 7]
  truth <- matrix(0, p, p, dimnames = list(colnames(x), colnames(x)))
  truth[2:13, 1] <- 1
  truth[cbind(13:(p - 7), 20:p)] <- 1
  fit <- bn_search(as.data.frame(x), seed = 1, control = list(starts = 1, kicks = 20))
  rates <- bn_compare(fit, truth)
  expect_equal(rates$skeleton_tpr, 1)
  expect_lt(rates$skeleton_fpr, 2e-3)
  expect_setequal(names(which(fit$dag[, "v1"] != 0)), paste0("v", 2:13))
  expect_gt(fit$counts[["candidates"]], 0)
})

test_that("priors, limits, candidates and interventions hold", {
  x <- search_data()
  prior <- bn_prior(names(x), required = data.frame(from = c("v9", "v12"), to = c("v1", "v9")),
                    forbidden = data.frame(from = "v3", to = "v4"))
  fit <- bn_search(x, prior = prior, seed = 1, control = list(kicks = 30))
  expect_equal(fit$dag["v9", "v1"], 1L)
  expect_equal(fit$dag["v12", "v9"], 1L)
  expect_equal(fit$dag["v3", "v4"], 0L)
  expect_equal(fit$score, bn_score(x, fit$dag, "bge", gamma = 1 / sqrt(12), prior = prior), tolerance = 1e-9)
  expect_lte(max(colSums(bn_search(x, max_parents = 1, seed = 1)$dag)), 1)
  expect_equal(max(colSums(bn_search(x, max_parents = 0, seed = 1)$dag)), 0)
  allowed <- list(v3 = c("v1", "v2"), v4 = "v3")
  fit <- bn_search(x, candidates = allowed, seed = 1)
  expect_true(all(fit$dag[, c("v3", "v4")][-(1:3), ] == 0) && all(fit$dag[, setdiff(names(x), c("v3", "v4"))] == 0))
  set <- rep(c("v4", NA), c(50, 150))
  fit <- bn_search(x, interventions = set, seed = 1)
  expect_equal(fit$score, bn_score(x, fit$dag, "bge", gamma = 1 / sqrt(12), interventions = set), tolerance = 1e-9)
})

test_that("threads do not matter, seeds and starts do", {
  x <- as.data.frame(lapply(linked_bn_data(20, 100, 0.5, seed = 1), factor))
  one <- bn_search(x, "bdeu", seed = 4, run = weft_run(threads = 1), control = list(kicks = 50))
  two <- bn_search(x, "bdeu", seed = 4, run = weft_run(threads = 2), control = list(kicks = 50))
  same <- c("dag", "score", "order", "start_scores", "counts")
  expect_identical(one[same], two[same])
  first <- bn_search(x, "bdeu", seed = 4, control = list(starts = 1, kicks = 50))
  expect_identical(first$start_scores, one$start_scores[1L])
})

test_that("many nodes: kicks in lanes are the same with any number of threads, no worse than none, and keep priors", {
  x <- search_data(60, 260)
  required <- data.frame(from = paste0("v", c(260, 90, 77)), to = paste0("v", c(1, 30, 76)))
  run <- function(...) {
    call_with(bn_search, list(x, prior = bn_prior(names(x), required = required), seed = 2, max_parents = 4, ...))
  }
  one <- run(threads = 1, kicks = 100)
  three <- run(threads = 3, kicks = 100)
  same <- c("dag", "score", "order", "start_scores", "counts")
  expect_identical(one[same], three[same])
  expect_true(all(one$dag[as.matrix(required)] == 1))
  expect_equal(one$score, sum(one$node_scores))
  expect_true(all(match(required$from, one$order) < match(required$to, one$order)))
  none <- run(threads = 1, kicks = 0)
  expect_true(all(one$start_scores > none$start_scores)) # a start has the same beginning with kicks and without
  few <- run(threads = 2, kicks = 3) # fewer than lanes
  expect_true(all(few$start_scores >= none$start_scores))
  polls <- 0
  withr::local_options(weft.poll = 0)
  expect_error(run(progress = function(done, total) if ((polls <<- polls + 1) > 60) stop("enough")), "enough")
  expect_gt(polls, 60)
})

test_that("few numbers: starts begin again from other orders, with the same result for any number of threads", {
  withr::local_seed(8)
  p <- 20
  x <- matrix(stats::rnorm(100 * p), 100, dimnames = list(NULL, paste0("v", seq_len(p))))
  for (j in 2:p) {
    from <- sample(j - 1L, min(j - 1L, 3L))
    x[, j] <- x[, j] + x[, from, drop = FALSE] %*% stats::runif(length(from), -1, 1)
  }
  x <- as.data.frame(x[, sample(p)])
  one <- bn_search(x, seed = 1, run = weft_run(threads = 1))
  two <- bn_search(x, seed = 1, run = weft_run(threads = 2))
  same <- c("dag", "score", "order", "start_scores", "counts")
  expect_identical(one[same], two[same])
  expect_equal(one$score, bn_score(x, one$dag, "bge", gamma = 1 / sqrt(p)), tolerance = 1e-9)
  few <- bn_search(x, seed = 1, control = list(kicks = 100)) # one order: both starts agree, 0.3 nats below
  expect_identical(max(diff(few$start_scores)), 0)
  expect_gt(one$score, few$score + 0.1)
  expect_lt(few$counts[["moves"]], one$counts[["moves"]] / 10)
  alone <- bn_search(x, seed = 1, control = list(starts = 1))
  expect_gte(alone$score, few$score - 1e-6)
  required <- bn_prior(names(x), required = data.frame(from = c("v9", "v12"), to = c("v1", "v9")))
  fit <- bn_search(x, prior = required, seed = 1, control = list(kicks = 1000))
  expect_true(fit$dag["v9", "v1"] == 1 && fit$dag["v12", "v9"] == 1)
  polls <- 0
  withr::local_options(weft.poll = 0)
  stop_late <- function(done, total) if ((polls <<- polls + 1) > 50) stop("enough")
  expect_error(bn_search(x, seed = 1, run = weft_run(threads = 1, progress = stop_late)), "enough")
})

test_that("hard inputs: one node, one row, constants, copies, wide levels", {
  expect_equal(sum(bn_search(data.frame(a = c(1, 2, 3.5)), seed = 1)$dag), 0)
  expect_s3_class(bn_search(data.frame(a = 1.5, b = 2.5), seed = 1), "weft_bn_search")
  x <- search_data(50, 6)
  x$constant <- 1
  x$copy <- x$v2
  fit <- bn_search(x, seed = 1)
  expect_equal((fit$dag | t(fit$dag))["copy", "v2"], TRUE)
  expect_true(is.finite(fit$score))
  wide <- bn_test_data(100, wide = TRUE)
  expect_true(is.finite(bn_search(wide, "bic", gamma = 1, seed = 1, control = list(kicks = 10))$score))
  huge <- x * 1e100
  expect_true(is.finite(bn_search(huge[1:4], seed = 1)$score))
})

test_that("numbers are told from categories, whatever holds them", {
  x <- search_data(60, 5)
  expect_identical(bn_search(as.matrix(x), seed = 1)$type, "bge")
  expect_identical(bn_search(data.frame(a = rep(1:2, 10), b = rep(1:2, each = 10)), seed = 1)$type, "bdeu")
  expect_identical(bn_search(cbind(x, a = rep(1:2, 30)), seed = 1, control = list(kicks = 5))$type, "bic-cg")
  expect_error(bn_search(cbind(x, a = 1L), "bdeu", seed = 1), "Column `v1`", class = "weft_error_input")
  skip_if_not_installed("Matrix")
  sparse <- bn_search(Matrix::Matrix(as.matrix(x), sparse = TRUE), seed = 1)
  expect_identical(sparse$dag, bn_search(x, seed = 1)$dag)
})

test_that("what it returns prints, converts and is checked", {
  x <- search_data()
  fit <- bn_search(x, seed = 1, control = list(starts = 2, kicks = 0))
  expect_output(print(fit), "the scores of 2\\s+starts\\s+differ")
  expect_output(print(bn_search(x, seed = 1, control = list(starts = 1))), "one start")
  expect_identical(nrow(summary(fit)), sum(fit$dag))
  expect_identical(as.integer(bn_convert(fit)), as.integer(fit$dag))
  expect_identical(glance(fit)$type, "bge")
  expect_s3_class(bn_fit(x, fit), "weft_bn_fit")
  expect_error(update(fit, 10), "no chains", class = "weft_error_input")
  expect_error(plot(fit, "trace"), class = "weft_error_input")
  for (part in c("dag", "score", "type", "start_scores", "counts")) {
    damaged <- fit
    damaged[[part]] <- NULL
    expect_error(print(damaged), "bn_search", class = "weft_error_input", info = part)
  }
})

test_that("errors say what must be", {
  x <- search_data(30, 3)
  expect_error(bn_search(), class = "weft_error_input")
  expect_error(bn_search(x, "bic"), class = "weft_error_input")
  for (wrong in list(list(starts = 0), list(kicks = -1), list(candidates = -1), list(gamma = 0), list(max_parents = -1),
                     list(na = "x"), list(seed = -1), list(verbose = 2))) {
    expect_error(call_with(bn_search, c(list(x), wrong)), class = "weft_error_input", info = names(wrong))
  }
  expect_error(bn_search(x, run = weft_run(threads = 1), control = list(starts = 1000, kicks = 0)), NA)
})

test_that("it can be interrupted, and leaves no memory when an allocation fails", {
  x <- search_data(100, 8)
  polls <- 0
  withr::local_options(weft.poll = 0)
  bn_search(x, seed = 1, run = weft_run(progress = function(done, total) polls <<- polls + 1),
            control = list(kicks = 50))
  expect_gt(polls, 3)
  expect_error(bn_search(x, seed = 1, run = weft_run(progress = function(done, total) stop("enough"))), "enough")
  few <- bn_test_data(40)[1:4]
  expect_survives_failures(list(
    numbers = function() bn_search(x[1:20, 1:4], seed = 1, run = weft_run(threads = 1),
                                   control = list(starts = 1, kicks = 2)),
    categories = function() bn_search(few, "bic", max_parents = 2, seed = 1, run = weft_run(threads = 1),
                                      control = list(starts = 1, kicks = 2))
  ))
})

test_that("edge posteriors over halves of the rows", {
  x <- bn_test_data(80)
  run <- function(...) call_with(bn_learn, list(x, 2, target = "sum", iterations = 1000, chains = 2, seed = 5, ...))
  whole <- run()
  halves <- run(resample = 3)
  expect_identical(halves$edges_all_rows, whole$edges)
  expect_identical(halves$dag, whole$dag)
  again <- lapply(1:3, function(k) {
    rows <- sort(order(draws("uniform", 80, key = whole$run$key, stream = k))[1:40])
    bn_learn(x[rows, ], 2, target = "sum", iterations = 100, chains = 1, seed = 5 + k)$edges
  })
  expect_equal(halves$edges, Reduce(`+`, again) / 3, tolerance = 1e-12)
  expect_output(print(halves), "means over 3 subsamples")
  expect_error(update(halves, 10), "3 subsamples", class = "weft_error_input")
  expect_error(bn_learn(x, resample = 2), "target", class = "weft_error_input")
  expect_error(bn_learn(bn_scores(x, 2, keep = "sum"), target = "sum", resample = 2), class = "weft_error_input")
  set <- rep(list("a", NULL, c("b", "c"), NA), 20)
  expect_true(all(is.finite(run(resample = 2, interventions = set)$edges)))
})

test_that("gene_bayes() takes halves of the samples, unless it is told not to, and BDeu for levels", {
  numbers <- matrix(weft:::draws("normal", 60 * 5, key = 3), 60, dimnames = list(NULL, letters[1:5]))
  learned <- function(x, ...) {
    q <- suppressWarnings(gene_quality(x, rep(c("p", "q"), 30)))
    call_with(gene_bayes, list(q, genes = 5, seed = 1, run = weft_run(progress = FALSE), ...,
                               iterations = 200, control = list(chains = 2)))
  }
  expect_identical(as.integer(learned(numbers)$resample), 20L)
  levels <- (numbers > 0) + 0
  fit <- learned(levels)
  expect_identical(as.integer(fit$resample), 20L)
  expect_identical(fit$table$type, "bdeu")
  expect_null(learned(levels, resample = 0)$resample)
  expect_identical(learned(levels, resample = 0)$edges, fit$edges_all_rows)
  expect_null(learned(levels, target = "max")$resample)
  expect_identical(as.integer(learned(levels, resample = 3)$resample), 3L)
})

test_that("whole numbers are categories also in a DelayedMatrix, and doubles numbers", {
  skip_if_not_installed("DelayedArray")
  x <- as.matrix(linked_bn_data(4, 100))
  whole <- bn_search(DelayedArray::DelayedArray(x), seed = 1, control = list(kicks = 5))
  expect_identical(whole$type, "bdeu")
  expect_identical(whole$dag, bn_search(x, seed = 1, control = list(kicks = 5))$dag)
  expect_identical(bn_search(DelayedArray::DelayedArray(x + 0.5 * x[4:1, ][rep(1:4, 25), ]),
                             control = list(kicks = 5))$type, "bge")
})

test_that("what calls itself a data frame and is none is a classed error", {
  x <- Matrix::rsparsematrix(40, 6, 0.5)
  attr(x, "class") <- "data.frame"
  expect_error(bn_search(x), class = "weft_error_input", regexp = "data frame")
})

test_that("parents that are informative only all together are found from the other end", {
  withr::local_seed(3)
  x <- matrix(stats::rnorm(400 * 8), 400, dimnames = list(NULL, letters[1:8]))
  x[, 7] <- 0.1 * x[, 7] - rowSums(x[, 1:6])
  x <- cbind(x, y = rowSums(x[, 1:7]) + 0.01 * stats::rnorm(400))
  d <- as.data.frame(x)
  # only y may have parents
  forbidden <- expand.grid(from = names(d), to = letters[1:8], stringsAsFactors = FALSE)
  forbidden <- forbidden[forbidden$from != forbidden$to, ]
  prior <- bn_prior(names(d), forbidden = forbidden)
  fit <- bn_search(d, prior = prior, seed = 1, control = list(kicks = 5))
  expect_identical(names(which(fit$dag[, "y"] == 1)), letters[1:7])
  expect_equal(fit$score, bn_score(d, fit$dag, "bge", gamma = 1 / 3, prior = prior), tolerance = 1e-9)
  expect_identical(max(fit$start_scores), fit$score)
  expect_identical(bn_search(d, prior = prior, seed = 1, control = list(kicks = 5), run = weft_run(threads = 2))$dag,
                   fit$dag)
})

test_that("all of up to 128 nodes are candidates", {
  d <- as.data.frame(matrix(stats::rnorm(40 * 40), 40))
  pairs <- function(...) bn_search(d, seed = 1, control = list(kicks = 0), ...)$counts[["candidates"]]
  expect_identical(pairs(), 40 * 39)
  expect_lt(pairs(candidates = 5), 40 * 39)
})

# Alone, each of the two parents scores lower than 140 nodes of two levels that have nothing to do with their child.
test_that("two parents of many levels are found among many nodes of few levels", {
  set.seed(3)
  x <- as.data.frame(matrix(sample(0:1, 400 * 140, TRUE), 400))
  x$one <- sample(0:11, 400, TRUE)
  x$two <- sample(0:11, 400, TRUE)
  x$child <- ((x$one + 3 * x$two) %% 18) %/% 2
  x[] <- lapply(x, factor)
  empty <- matrix(0, 143, 143, dimnames = list(names(x), names(x)))
  score <- function(parents) {
    dag <- empty
    dag[parents, "child"] <- 1
    bn_score(x, dag, "bdeu", gamma = 1 / sqrt(143))
  }
  noise <- vapply(names(x)[1:140], score, 0)
  expect_lt(max(score("one"), score("two")), sort(noise, decreasing = TRUE)[30])
  fit <- bn_search(x, seed = 1, run = weft_run(threads = 1))
  expect_equal(names(which(fit$dag[, "child"] > 0)), c("one", "two"))
  expect_gte(fit$score, score(c("one", "two")))
})

# Each later node takes over one of two earlier ones, as a third one tells: two parents are needed at once.
test_that("families that explain only together do not hold nodes in a wrong order: the true network is reached", {
  withr::local_seed(3)
  founders <- 10L
  x <- replicate(founders, sample(4, 500, TRUE, c(.4, .3, .2, .1)), simplify = FALSE)
  names(x) <- sprintf("h%02d", seq_len(founders))
  parents <- list()
  for (k in founders + seq_len(60)) {
    from <- sprintf("h%02d", sample(k - 1L, 2L))
    switch <- sample(2L, 500, TRUE)
    parents[[sprintf("h%02d", k)]] <- c(sprintf("z%02d", k), from)
    x[[sprintf("z%02d", k)]] <- switch
    x[[sprintf("h%02d", k)]] <- ifelse(switch == 1L, x[[from[1L]]], x[[from[2L]]])
  }
  x <- as.data.frame(lapply(x[sample(names(x))], factor))
  true <- matrix(0L, length(x), length(x), dimnames = list(names(x), names(x)))
  for (node in names(parents)) true[parents[[node]], node] <- 1L
  fit <- bn_search(x, seed = 1, control = list(kicks = 200, starts = 2)) # without families: 91 nats below
  expect_gte(fit$score, bn_score(x, true, "bdeu", gamma = 1 / sqrt(length(x))) - 1e-6)
})

test_that("parents that separate all rows explain nothing, unless they are required", {
  for (size in list(c(3, 50), c(10, 200))) for (score in c("bdeu", "bds", "k2")) {
    withr::local_seed(5)
    x <- as.data.frame(lapply(1:12, function(j) factor(sample(size[1], size[2], TRUE), seq_len(size[1]))),
                       col.names = sprintf("v%02d", 1:12))
    fit <- bn_search(x, score, seed = 1)
    if (score != "k2") expect_lte(sum(fit$dag), 1, label = paste(score, size[1])) # K2 expects even tables
    configurations <- apply(fit$dag > 0, 2L, function(parents) size[1]^sum(parents))
    expect_lte(max(configurations), size[2])
  }
  # 10^3 configurations, 200 rows; and a fourth parent would be one more of them
  x$v01 <- x$v05
  required <- cbind(c("v02", "v03", "v04"), "v01")
  fit <- bn_search(x, prior = bn_prior(x, required = required), seed = 1)
  expect_identical(names(which(fit$dag[, "v01"] > 0)), c("v02", "v03", "v04"))
  expect_gt(sum(fit$dag[, "v05"]), 0)
})
