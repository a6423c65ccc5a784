test_that("parameters are posterior means and the likelihood is their product", {
  d <- bn_test_data()
  dag <- matrix(0, 5, 5, dimnames = list(names(d), names(d)))
  dag["a", "b"] <- dag["a", "c"] <- dag["b", "c"] <- 1
  fit <- bn_fit(d, dag, ess = 2)
  counts <- table(d$b, d$a)
  expect_equal(unname(fit$nodes$b$probability), unname(unclass(sweep(counts + 2 / 12, 2,
                                                                     colSums(counts) + 2 / 4, `/`))),
                                                                     ignore_attr = TRUE)
  by_hand <- vapply(seq_len(nrow(d)), function(i) {
    r <- vapply(d[i, ], as.integer, 0L)
    log(fit$nodes$a$probability[r["a"]]) + log(fit$nodes$b$probability[r["b"], r["a"]]) +
      log(fit$nodes$c$probability[r["c"], r["a"],
                                  r["b"]]) + log(fit$nodes$d$probability[r["d"]]) + log(fit$nodes$e$probability[r["e"]])
  }, 0)
  expect_equal(bn_log_lik(fit, d), unname(by_hand))
  set <- rep(c(NA, "b"), length.out = nrow(d))
  free <- bn_fit(d[is.na(set), ], dag, ess = 2)
  expect_equal(bn_fit(d, dag, ess = 2, interventions = set)$nodes$b, free$nodes$b)
})

test_that("predictions are conditionals of the joint, also when columns are left out", {
  d <- bn_test_data()[1:4]
  dag <- matrix(0, 4, 4, dimnames = list(names(d), names(d)))
  dag["a", "b"] <- dag["b", "c"] <- dag["a", "c"] <- dag["c", "d"] <- 1
  fit <- bn_fit(d, dag)
  grid <- expand.grid(fit$labels)
  joint <- exp(bn_log_lik(fit, grid))
  expect_equal(sum(joint), 1)
  for (given in list(c("b", "c", "d"), "d", c("b", "d"), character())) {
    new <- grid[c(1, 7, 30, 48), given, drop = FALSE]
    p <- predict(fit, new, "a")
    for (i in 1:4) {
      fits <- rep(TRUE, nrow(grid))
      for (g in given) fits <- fits & grid[[g]] == new[i, g]
      expect_equal(unname(p[i, ]), as.vector(tapply(joint[fits], grid$a[fits], sum)) / sum(joint[fits]))
    }
  }
  expect_equal(levels(predict(fit, grid, "c", "class")), c("1", "2"))
  expect_error(predict(fit, data.frame(b = "zz"), "a"), class = "weft_error_input", regexp = "new levels")
})

test_that("samples follow the network, the seed, and what is set", {
  d <- bn_test_data()
  fit <- bn_fit(d, bn_exact(d))
  s <- bn_sample(fit, 20000, seed = 1)
  expect_identical(s, bn_sample(fit, 20000, seed = 1))
  expect_identical(lapply(s, levels), lapply(d, levels))
  p <- predict(fit, data.frame(row = 1)[, 0, drop = FALSE], "c")
  # four standard errors of 20,000 draws
  expect_lt(abs(mean(s$c == "1") - p[1]), 4 * sqrt(0.25 / 20000))
  forced <- bn_sample(fit, 50, do = list(b = "3"), seed = 2)
  expect_true(all(forced$b == "3"))
  expect_equal(nrow(bn_sample(fit, 0)), 0L)
  expect_error(bn_sample(fit, 5, do = list(b = "9")), class = "weft_error_input")
})

test_that("Gaussian networks: least squares, normal likelihood, conditional means", {
  withr::local_seed(1)
  a <- rnorm(200)
  b <- 2 * a + rnorm(200)
  c <- a - b + rnorm(200)
  d <- data.frame(a, b, c)
  dag <- matrix(0, 3, 3, dimnames = list(names(d), names(d)))
  dag["a", "b"] <- dag["a", "c"] <- dag["b", "c"] <- 1
  fit <- bn_fit(d, dag)
  expect_equal(unname(fit$nodes$c$slopes), unname(coef(lm(c ~ a + b))[-1]))
  expect_equal(sum(bn_log_lik(fit, d)),
               sum(dnorm(a, mean(a), sd(a), TRUE), dnorm(resid(lm(b ~ a)), 0, summary(lm(b ~ a))$sigma, TRUE),
                   dnorm(resid(lm(c ~ a + b)), 0, summary(lm(c ~ a + b))$sigma, TRUE)))
  expect_equal(predict(fit, d[c("a", "b")], "c"), unname(fitted(lm(c ~ a + b))))
  s <- bn_sample(fit, 50000, seed = 1)
  expect_equal(unname(coef(lm(a ~ c, s))), unname(coef(lm(predict(fit, s["c"], "a") ~ s$c))), tolerance = 0.05)
  expect_gt(bn_exact(d, 2, "bge")$score, bn_score(d, dag * 0, "bge"))
})

test_that("equivalence classes are those of all graphs with the same skeleton and v-structures", {
  dags <- all_dags(4L)
  as_matrix <- function(masks) {
    m <- vapply(masks, function(k) bitwAnd(k, 2^(0:3)) > 0, logical(4)) + 0
    dimnames(m) <- list(letters[1:4], letters[1:4])
    m
  }
  key <- function(dag) {
    linked <- dag | t(dag)
    v <- unlist(lapply(1:4, function(c) {
      into <- which(dag[, c] != 0)
      if (length(into) < 2) return()
      apply(utils::combn(into, 2), 2, function(p) if (!linked[p[1], p[2]]) paste(p[1], p[2], c))
    }))
    paste(paste(linked + 0, collapse = ""), paste(sort(unlist(v)), collapse = ","))
  }
  all <- apply(dags, 1L, as_matrix, simplify = FALSE)
  class <- vapply(all, key, "")
  for (one in unique(class)) {
    members <- all[class == one]
    essential <- Reduce(`|`, members) + 0
    expect_equal(unname(bn_cpdag(members[[1]]) + 0), unname(essential))
  }
  expect_equal(length(unique(class)), 185L)
})

test_that("equivalent graphs have the same BDeu and the same BGe score", {
  d <- bn_test_data()
  a_to_b <- matrix(0, 5, 5, dimnames = list(names(d), names(d)))
  a_to_b["a", "b"] <- 1
  expect_equal(bn_score(d, a_to_b), bn_score(d, t(a_to_b)), tolerance = 1e-12)
  x <- data.frame(a = c(1, 2.5, 3), b = c(0.5, 1, -1))
  g <- a_to_b[1:2, 1:2]
  expect_equal(bn_score(x, g, "bge"), bn_score(x, t(g), "bge"), tolerance = 1e-12)
})

test_that("comparisons count edges, reversals and classes", {
  truth <- matrix(0, 4, 4, dimnames = list(letters[1:4], letters[1:4]))
  truth["a", "b"] <- truth["b", "c"] <- 1
  found <- truth * 0
  found["b", "a"] <- found["b", "c"] <- found["c", "d"] <- 1
  r <- bn_compare(found, truth)
  expect_equal(c(r$tpr, r$fpr), c(0.5, 2 / 10))
  expect_equal(c(r$skeleton_tpr, r$skeleton_fpr), c(1, 1 / 4))
  expect_equal(r$shd, 2L)
  expect_equal(r$shd_cpdag, 1L)
  expect_true(is.na(bn_compare(found, truth * 0)$tpr))
  posterior <- truth * 0.9 + 0.01
  roc <- bn_compare(posterior, truth)$roc
  expect_true(any(roc$tpr == 1 & roc$fpr == 0))
  several <- bn_compare(list(weak = found, strong = truth), truth)
  expect_equal(several$roc$tpr, c(0.5, 1))
  expect_output(print(r), "Hamming distance 2")
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  expect_silent(plot(several))
})

test_that("networks go to other packages and back", {
  d <- bn_test_data(300)
  fit <- bn_learn(d, iterations = 300, target = "sum", seed = 1)
  expect_identical(bn_convert(fit), fit$dag)
  if (requireNamespace("igraph", quietly = TRUE)) {
    expect_identical(bn_convert(bn_convert(fit, "igraph")), fit$dag)
    expect_equal(igraph::edge_attr(bn_convert(fit, "igraph"), "posterior"), summary(fit)$posterior)
  }
  if (requireNamespace("graph", quietly = TRUE)) expect_identical(bn_convert(bn_convert(fit, "graphNEL")), fit$dag)
  if (nzchar(system.file(package = "bnlearn"))) { # not declared: see bn_convert()
    bnlearn_score <- getExportedValue("bnlearn", "score")
    net <- bn_convert(fit, "bnlearn")
    expect_identical(bn_convert(net), fit$dag)
    for (type in c("bde", "k2", "bic", "aic")) {
      ours <- bn_score(d, fit, switch(type, bde = "bdeu", type))
      theirs <- suppressWarnings(if (type ==
                                     "bde") bnlearn_score(net, d, type, iss = 1) else bnlearn_score(net, d, type))
      expect_equal(ours, theirs, tolerance = 1e-10)
    }
  }
  if (requireNamespace("coda", quietly = TRUE)) expect_equal(coda::nchain(bn_convert(fit, "coda")), 4L)
  expect_error(bn_convert(fit$dag, "coda"), class = "weft_error_input")
  loop <- fit$dag * 0
  loop["a", "b"] <- loop["b", "a"] <- 1
  expect_error(bn_convert(loop), class = "weft_error_input", regexp = "acyclic")
})

test_that("priors are built and checked", {
  nodes <- c("x", "y", "z")
  p <- bn_prior(nodes, required = cbind("x", "y"), tiers = c(x = 1, y = 2, z = 2),
                known = data.frame(from = "y", to = "z", value = 0.8))
  expect_true(p$required["y", "x"])
  expect_true(all(p$forbidden["x", c("y", "z")]))
  expect_equal(p$nats["z", "y"], log(10) * 100 * 0.3^3)
  expect_equal(bn_prior(nodes, known = cbind("x", "y"), prior_scale = "logit")$nats["y", "x"], log(3))
  expect_equal(bn_prior(nodes, known = cbind("x", "y"), prior_scale = function(r) 10 * (r - 0.5))$nats["y", "x"], 2.5)
  soft <- bn_prior(nodes, required = cbind("x", "y"), hard = FALSE)
  expect_equal(soft$nats["y", "x"], 12.5 * log(10))
  expect_false(any(soft$required))
  expect_output(print(p), "1 required, 2 forbidden, 1 soft")
  bad <- function(code, text) expect_error(code, class = "weft_error_input", regexp = text)
  bad(bn_prior(nodes, required = rbind(c("x", "y"), c("y", "x"))), "cycle")
  bad(bn_prior(nodes, required = cbind("x", "y"), forbidden = cbind("x", "y")), "both required and forbidden")
  bad(bn_prior(nodes, required = cbind("x", "q")), "no `q`")
  bad(bn_prior(nodes, tiers = list("x")), "one tier")
  bad(bn_prior(nodes, R = matrix(2, 3, 3)), "from 0 to 1")
  bad(bn_prior(nodes, known = data.frame(from = "x", to = "y", value = 1), hard = FALSE, prior_scale = "logit"),
      "finite")
  if (requireNamespace("igraph", quietly = TRUE)) {
    expect_true(bn_prior(nodes, required = igraph::make_graph(c("x", "y")))$required["y", "x"])
  }
})

test_that("rows and columns of a network are matched by their names", {
  names <- c("a", "b", "c")
  dag <- matrix(0, 3, 3, dimnames = list(names, names))
  dag["a", "b"] <- dag["b", "c"] <- 1
  turned <- dag[, 3:1]
  expect_identical(bn_convert(turned), bn_convert(dag))
  expect_identical(bn_compare(turned, dag)$shd, 0L)
  posterior <- dag * 0.9
  expect_identical(bn_compare(posterior[, 3:1], dag)[c("tpr", "shd")], bn_compare(posterior, dag)[c("tpr", "shd")])
  bad <- function(code, text) expect_error(code, class = "weft_error_input", regexp = text)
  bad(bn_convert(matrix(0, 2, 2, dimnames = list(c("a", "b"), c("a", "z")))), "Found on one side only: `b`, `z`")
  bad(bn_convert(matrix(0, 2, 2, dimnames = list(c("a", "a"), NULL))), "Duplicated: `a`")
  bad(bn_compare(posterior[1:2, 1:2], dag), "same nodes")
})

test_that("Gaussian predictions do not depend on the units of what is known", {
  withr::local_seed(4)
  a <- stats::rnorm(200)
  b <- stats::rnorm(200)
  c <- a + b + stats::rnorm(200)
  names <- c("a", "b", "c")
  dag <- matrix(0, 3, 3, dimnames = list(names, names))
  dag["a", "c"] <- dag["b", "c"] <- 1
  expected <- stats::predict(bn_fit(data.frame(a, b, c), dag), data.frame(a, b), "c")
  for (unit in c(1e-9, 1e9)) {
    d <- data.frame(a = a * unit, b, c)
    expect_equal(stats::predict(bn_fit(d, dag), d[1:2], "c"), expected, tolerance = 1e-8)
    expect_equal(stats::predict(bn_fit(d, dag), d["c"], "b"),
                 stats::predict(bn_fit(data.frame(a, b, c), dag), data.frame(c), "b"),
                 tolerance = 1e-8)
  }
})

test_that("a sample beyond memory is refused", {
  d <- bn_test_data()
  fit <- bn_fit(d, bn_exact(d))
  free <- .Call(weft:::C_weft_host_available)
  skip_if(free < 0 || free > 2e11)
  expect_error(bn_sample(fit, 2^31 - 1), class = "weft_error_memory", regexp = "2147483647 rows")
})
