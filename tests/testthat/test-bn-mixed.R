# Networks of numbers and categories (score "bic-cg"), against densities written out (helper-bn.R).

test_that("tables and single scores of numbers and categories are those of the definition", {
  d <- mixed_bn_data()
  expect_warning(reference_mixed(d, "d", c("a", "b")), NA)
  for (score in c("bic-cg", "aic-cg")) {
    table <- as.data.frame(bn_scores(d, 3, score, keep = "all", run = weft_run("cpu", threads = 2)))
    for (k in seq_len(nrow(table))) {
      parents <- split_parents(table$parents[k])
      expected <- reference_mixed(d, table$node[k], parents, score)
      expect_equal(table$score[k], expected, tolerance = 1e-10)
      expect_equal(bn_local_score(d, table$node[k], parents, score), expected, tolerance = 1e-12)
    }
  }
  # categories have categories as parents only: of three, or of all five others
  expect_identical(as.vector(table(table$node)), c(4L, 26L, 4L, 26L, 4L, 26L))
})

test_that("units, origins and threads do not change what is found", {
  d <- mixed_bn_data()
  table <- bn_scores(d, 3, run = weft_run("cpu", threads = 1))
  expect_identical(table$type, "bic-cg")
  expect_identical(bn_scores(d, 3, run = weft_run("cpu", threads = 2))$score, table$score)
  moved <- transform(d, b = 1e150 * b, d = 1e-150 * d + 1e-148, f = f + 1e6)
  other <- bn_scores(moved, 3, run = weft_run("cpu", threads = 2))
  expect_identical(other$parents, table$parents)
  expect_equal(other$score, table$score + rep(c(0, -150 * 200 * log(10), 0, 150 * 200 * log(10), 0, 0),
                                              diff(table$start)), tolerance = 1e-8)
  expect_equal(bn_score(d[6:1], bn_exact(d)$dag), bn_exact(d)$score, tolerance = 1e-10)
})

test_that("searches, chains and the exact answer find the same best network", {
  d <- mixed_bn_data()
  exact <- bn_exact(d, max_parents = 5)
  expect_equal(exact$score, sum(vapply(names(d), function(node) {
    reference_mixed(d, node, names(which(exact$dag[, node] == 1)))
  }, 0)), tolerance = 1e-10)
  search <- bn_search(d, gamma = 1, seed = 1, control = list(kicks = 50))
  expect_identical(search$type, "bic-cg")
  expect_equal(search$score, exact$score, tolerance = 1e-10)
  expect_equal(bn_learn(d, 5, seed = 1, iterations = 200)$score, exact$score, tolerance = 1e-10)
  expect_identical(sum(search$dag[c("b", "d", "f"), c("a", "c", "e")]), 0L)
  expect_identical(search$dag, bn_search(d, gamma = 1, seed = 1, control = list(kicks = 50),
                                         run = weft_run(threads = 2))$dag)
  few <- bn_search(d, gamma = 1, candidates = 2, seed = 1, control = list(kicks = 50))
  expect_equal(few$score, bn_score(d, few$dag), tolerance = 1e-10)
  posterior <- bn_exact(d, max_parents = 5, posterior = "dag")$edges
  expect_identical(max(posterior[c("b", "d", "f"), c("a", "c", "e")]), 0)
  expect_gt(posterior["c", "d"], 0.9)
  expect_s3_class(bn_features(bn_learn(d, 3, seed = 1, iterations = 200, target = "uniform")), "weft_bn_features")
})

test_that("interventions leave rows out for the node that was set", {
  d <- mixed_bn_data()
  set <- rep(c(NA, "d"), c(150, 50))
  for (parents in list(character(), "a", c("b", "c"))) {
    expect_equal(bn_local_score(d, "d", parents, interventions = set),
                 reference_mixed(d, "d", parents, rows = 1:150), tolerance = 1e-10)
  }
  table <- as.data.frame(bn_scores(d, 2, interventions = set, keep = "all"))
  of <- table[table$node == "d", ]
  expect_equal(of$score, vapply(of$parents, function(parents) {
    reference_mixed(d, "d", split_parents(parents), rows = 1:150)
  }, 0, USE.NAMES = FALSE), tolerance = 1e-10)
})

test_that("what has no density is -Inf alone, left out of tables, and refused where nothing is left", {
  d <- mixed_bn_data(30)
  d$rare <- factor(rep(1:10, c(3, 3, 3, 3, 3, 3, 3, 3, 3, 3)))
  expect_identical(bn_local_score(d, "d", c("rare", "b", "f")), -Inf)
  expect_identical(bn_local_score(d, "a", "b"), -Inf)
  expect_true(is.finite(bn_local_score(d, "d", c("rare", "b"))))
  table <- as.data.frame(bn_scores(d, 3, keep = "all"))
  expect_false("b;f;rare" %in% table$parents[table$node == "d"])
  twice <- transform(d, copy = d)
  expect_identical(bn_local_score(twice, "d", "copy"), -Inf)
  expect_false("copy" %in% as.data.frame(bn_scores(twice, 1, keep = "all"))$parents[
    as.data.frame(bn_scores(twice, 1, keep = "all"))$node == "d"])
  same <- transform(d, still = 1)
  expect_identical(bn_local_score(same, "still"), -Inf)
  # a constant has no slope, but takes a degree of freedom and a parameter
  squares <- sum(stats::resid(stats::lm(d ~ b, d))^2)
  expect_equal(bn_local_score(same, "d", c("b", "still")),
               -15 * log(2 * pi * squares / 27) - 27 / 2 - 4 * log(30) / 2, tolerance = 1e-10)
  expect_error(bn_scores(same), class = "weft_error_input", regexp = "still.*constant")
  expect_error(bn_search(same), class = "weft_error_input", regexp = "still.*constant")
  expect_error(bn_scores(transform(d, b = replace(b, 1, Inf))), class = "weft_error_input", regexp = "finite")
  expect_error(bn_scores(transform(d, b = replace(b, 1, NA))), class = "weft_error_input", regexp = "missing")
  expect_identical(bn_scores(transform(d, b = replace(b, 1, NA)), na = "drop")$n, 29L)
  prior <- bn_prior(names(d), required = cbind("b", "a"))
  expect_error(bn_scores(d, prior = prior), class = "weft_error_input", regexp = "parent of a categorical")
})

test_that("a network of numbers and categories is fitted, drawn from, and predicts", {
  d <- mixed_bn_data(400)
  dag <- matrix(0, 6, 6, dimnames = list(names(d), names(d)))
  dag["a", c("b", "c")] <- dag["c", "d"] <- dag["b", "d"] <- dag["d", "f"] <- 1
  fit <- bn_fit(d, dag)
  for (level in levels(d$c)) {
    part <- stats::lm(d ~ b, d[d$c == level, ])
    at <- match(level, levels(d$c))
    expect_equal(c(fit$nodes$d$intercept[[level]], fit$nodes$d$slopes[, at], fit$nodes$d$sd[[level]]),
                 c(stats::coef(part), stats::sigma(part)), ignore_attr = TRUE, tolerance = 1e-10)
  }
  density <- bn_log_lik(fit, d)
  by_hand <- with(d, log(fit$nodes$a$probability[a]) + log(fit$nodes$c$probability[cbind(c, a)]) +
    log(fit$nodes$e$probability[e]) +
    stats::dnorm(b, fit$nodes$b$intercept[a], fit$nodes$b$sd[a], log = TRUE) +
    stats::dnorm(d, fit$nodes$d$intercept[c] + fit$nodes$d$slopes[1L, c] * b, fit$nodes$d$sd[c], log = TRUE) +
    stats::dnorm(f, fit$nodes$f$intercept + fit$nodes$f$slopes * d, fit$nodes$f$sd, log = TRUE))
  expect_equal(density, as.vector(by_hand), tolerance = 1e-12)
  drawn <- bn_sample(fit, 20000, seed = 1)
  expect_identical(lapply(drawn, levels), lapply(d, levels))
  again <- bn_fit(drawn, dag)
  expect_equal(again$nodes$d$slopes, fit$nodes$d$slopes, tolerance = 0.05)
  expect_equal(again$nodes$d$sd, fit$nodes$d$sd, tolerance = 0.05)
  expect_identical(unique(bn_sample(fit, 10, do = list(d = 5), seed = 1)$d), 5)
  # P(c | a, b, d) and E(d | a, b), summed by hand
  told <- d[1:20, ]
  given <- vapply(1:2, function(level) {
    fit$nodes$c$probability[cbind(level, told$a)] *
      stats::dnorm(told$d, fit$nodes$d$intercept[level] + fit$nodes$d$slopes[1L, level] * told$b, fit$nodes$d$sd[level])
  }, double(20))
  expect_equal(predict(fit, told[c("a", "b", "d")], "c"), given / rowSums(given), ignore_attr = TRUE,
               tolerance = 1e-10)
  mean <- vapply(1:2, function(level) {
    fit$nodes$c$probability[cbind(level, told$a)] *
      (fit$nodes$d$intercept[level] + fit$nodes$d$slopes[1L, level] * told$b)
  }, double(20))
  expect_equal(predict(fit, told[c("a", "b")], "d"), rowSums(mean), tolerance = 1e-10)
  expect_identical(predict(fit, told[c("a", "b", "d")], "c", type = "class"),
                   factor(levels(d$c)[max.col(given, "first")], levels(d$c)))
  expect_equal(glance(fit)$parameters, 2 + 6 + 3 + 6 + 1 + 3)
  expect_identical(sum(tidy(fit)$term == "sd"), 3L + 2L + 1L)
  expect_error(bn_fit(d, t(dag)), class = "weft_error_input", regexp = "parent of a categorical")
  expect_output(print(fit), "conditional Gaussian")
  for (part in c("intercept", "slopes", "sd")) {
    spoilt <- fit
    spoilt$nodes$d[[part]] <- spoilt$nodes$d[[part]][-1L]
    expect_error(bn_sample(spoilt, 3), class = "weft_error_input")
  }
})

test_that("a configuration without enough rows has the coefficients of all rows", {
  d <- mixed_bn_data(60)
  d$a <- factor(d$a, 1:4)
  dag <- matrix(0, 6, 6, dimnames = list(names(d), names(d)))
  dag[c("a", "b"), "d"] <- 1
  fit <- bn_fit(d, dag)
  all <- stats::lm(d ~ b, d)
  expect_equal(c(fit$nodes$d$intercept[["4"]], fit$nodes$d$slopes[, 4L], fit$nodes$d$sd[["4"]]),
               c(stats::coef(all), stats::sigma(all)), ignore_attr = TRUE, tolerance = 1e-10)
  expect_true(all(is.finite(bn_log_lik(fit, bn_sample(fit, 50, do = list(a = "4"), seed = 1)))))
})

test_that("scores of numbers and categories are bnlearn's", {
  skip_if_not_installed("bnlearn")
  d <- bnlearn::clgaussian.test[1:1000, ]
  number <- vapply(d, is.double, NA)
  withr::local_seed(1)
  for (graph in 1:10) {
    dag <- matrix(0L, 8, 8, dimnames = list(names(d), names(d)))
    dag[upper.tri(dag)] <- stats::rbinom(28, 1, 0.3)
    shuffled <- sample(8)
    dag[shuffled, shuffled] <- dag
    dag[number, !number] <- 0L
    net <- bnlearn::empty.graph(names(d))
    bnlearn::amat(net) <- dag
    for (score in c("bic-cg", "aic-cg")) {
      expect_equal(bn_score(d, dag, score), bnlearn::score(net, d, type = score), tolerance = 1e-8)
    }
  }
})

test_that("searches, chains and the exact answer are not behind bnlearn's, and parameters are the same", {
  skip_if_not_installed("bnlearn")
  d <- bnlearn::clgaussian.test
  hc <- bnlearn::hc(d, score = "bic-cg")
  theirs <- bnlearn::score(hc, d, type = "bic-cg")
  expect_equal(bn_score(d, hc, "bic-cg"), theirs, tolerance = 1e-8)
  exact <- bn_exact(d, max_parents = 7, score = "bic-cg")
  expect_gte(exact$score, theirs - 1e-6)
  for (fit in list(exact, bn_search(d, gamma = 1, seed = 1, control = list(kicks = 100)),
                   bn_learn(d, 7, iterations = 200, seed = 1))) {
    expect_equal(fit$score, exact$score, tolerance = 1e-10)
    expect_equal(bnlearn::score(bn_convert(fit, "bnlearn"), d, type = "bic-cg"), exact$score, tolerance = 1e-8)
  }
  fitted <- bnlearn::bn.fit(hc, d)
  taken <- bn_convert(fitted, "fit")
  expect_equal(sum(bn_log_lik(taken, d)), as.double(stats::logLik(fitted, d)), tolerance = 1e-10)
  ours <- bn_fit(d, hc, ess = 1e-9)
  for (node in names(d)) {
    expect_equal(ours$nodes[[node]], taken$nodes[[node]], tolerance = 1e-8)
  }
})

test_that("features of numbers and categories are sums of bnlearn's scores over all graphs", {
  skip_if_not_installed("bnlearn")
  d <- bnlearn::clgaussian.test[1:60, c("E", "A", "B", "D")]
  masks <- as.matrix(expand.grid(rep(list(0:1), 12)))
  dags <- Filter(function(dag) !any(dag[c("D", "E"), c("A", "B")] != 0) && !length(weft:::find_cycle(dag != 0)),
                 lapply(seq_len(nrow(masks)), function(k) {
                   dag <- matrix(0, 4, 4, dimnames = list(names(d), names(d)))
                   dag[row(dag) != col(dag)] <- masks[k, ]
                   dag
                 }))
  net <- bnlearn::empty.graph(names(d))
  log <- vapply(dags, function(dag) {
    bnlearn::amat(net) <- dag
    bnlearn::score(net, d, type = "bic-cg")
  }, 0)
  weight <- exp(log - max(log))
  mean_of <- function(part) Reduce(`+`, Map(function(dag, w) part(dag) * w, dags, weight / sum(weight)))
  exact <- bn_exact(d, max_parents = 3, score = "bic-cg", posterior = "dag")
  expect_equal(exact$edges, mean_of(identity), tolerance = 1e-8, ignore_attr = TRUE)
  paths <- mean_of(function(dag) (dag + dag %*% dag + dag %*% dag %*% dag > 0) + 0)
  features <- bn_features(exact, draws = 4000, seed = 1)
  expect_lt(max(abs(features$paths - paths)), 0.04) # five standard errors of 4,000 draws
  chains <- bn_learn(d, 3, "bic-cg", iterations = 40000, chains = 2, target = "uniform", seed = 1)
  expect_lt(max(abs(bn_features(chains)$edges - exact$edges)), 0.04)
})
