# The heavy promises of the Bayesian-network room. Run from the package's root:
#   Rscript -e 'testthat::test_file("longtests/testthat/test-bn-long.R")'
# WEFT_BN_ALARM and WEFT_BN_SACHS name the files alarm_data.csv.gz and sachs_data.csv.gz, with *_levels.csv.gz beside
# them.
library(testthat)
library(weft)

read_case <- function(variable) {
  file <- Sys.getenv(variable)
  if (!nzchar(file)) skip(paste(variable, "is not set"))
  data <- utils::read.csv(file)
  levels <- utils::read.csv(sub("_data", "_levels", file))$levels
  data[] <- Map(function(x, r) factor(x, 0:(r - 1)), data, levels)
  data
}

test_that("the best known ALARM network is found from 20 of 20 seeds", {
  alarm <- read_case("WEFT_BN_ALARM")
  found <- vapply(1:20, function(seed) bn_learn(alarm, 4, iterations = 1.5e5, chains = 8, seed = seed,
                                                control = list(temperatures = c(1, 2)))$score, 0)
  expect_equal(found, rep(-11346.1695, 20), tolerance = 1e-8)
})

test_that("the Sachs optimum is found and proven", {
  sachs <- read_case("WEFT_BN_SACHS")
  expect_equal(bn_exact(sachs)$score, -7569.8055, tolerance = 1e-8)
  expect_equal(bn_learn(sachs, seed = 1)$score, -7569.8055, tolerance = 1e-8)
})

test_that("exact optima of 20 to 27 ALARM variables are never below ten searches", {
  alarm <- read_case("WEFT_BN_ALARM")
  for (k in c(20, 23, 27)) {
    part <- alarm[seq_len(k)]
    exact <- bn_exact(part)
    searched <- vapply(1:10, function(seed) bn_learn(part, iterations = 20000, chains = 2, seed = seed)$score, 0)
    expect_true(all(searched <= exact$score + 1e-8))
    expect_equal(bn_score(part, exact), exact$score, tolerance = 1e-9)
  }
})

test_that("networks of 70 to 200 nodes with up to 100 levels learn in bounded memory", {
  for (p in c(70, 130, 200)) {
    set.seed(p)
    data <- as.data.frame(lapply(seq_len(p), function(j) {
      r <- c(2, 3, 5, 20, 100)[j %% 5 + 1]
      factor(sample(seq_len(r), 500, TRUE), seq_len(r))
    }))
    names(data) <- sprintf("v%03d", seq_len(p))
    data$v002 <- factor(ifelse(runif(500) < 0.9, as.integer(data$v001) %% 3 + 1, 1), 1:5)
    .Call(weft:::C_weft_memory, 0)
    fit <- bn_learn(data, 2, iterations = 5000, seed = 1)
    expect_true(fit$dag["v001", "v002"] + fit$dag["v002", "v001"] == 1)
    expect_equal(bn_score(data, fit), fit$score, tolerance = 1e-9)
    narrow <- bn_learn(data, 4, candidates = 8, iterations = 5000, seed = 1)
    expect_gte(narrow$score, fit$score - 1e-6)
    posterior <- bn_learn(data, 2, candidates = 8, iterations = 500, target = "sum", chains = 2, seed = 1)
    expect_gt(posterior$edges["v001", "v002"] + posterior$edges["v002", "v001"], 0.99)
  }
})

report <- function(words, ...) cat(sprintf(paste0("\n  ", words, "\n"), ...))
helpers <- if (file.exists("tests")) "tests/testthat/helper-bn.R" else "../../tests/testthat/helper-bn.R"
source(helpers, local = TRUE)

# All graphs as a list of parent masks (a column per node), node by node, leaving out at once what has a circle.
graphs_by_node <- function(p) {
  graphs <- matrix(0L, 1L, 0L)
  for (v in seq_len(p)) {
    masks <- Filter(function(m) bitwAnd(m, 2^(v - 1)) == 0, 0:(2^p - 1))
    graphs <- do.call(rbind, lapply(masks, function(mask) {
      all <- cbind(graphs, as.integer(mask), deparse.level = 0)
      reached <- as.integer(all[, v]) # from v upwards, through nodes that have parents already
      for (step in seq_len(v)) for (u in seq_len(v)) {
        through <- bitwAnd(reached, 2^(u - 1)) > 0
        reached[through] <- bitwOr(reached[through], all[through, u])
      }
      all[bitwAnd(reached, 2^(v - 1)) == 0, , drop = FALSE]
    }))
  }
  graphs
}

test_that("exact posteriors of six nodes are sums over all 3,781,503 graphs: scores, priors, interventions", {
  dags <- graphs_by_node(6L)
  expect_identical(nrow(dags), 3781503L)
  parts <- split(seq_len(nrow(dags)), (seq_len(nrow(dags)) - 1L) %/% 300000L)
  orders <- unlist(lapply(parts, function(rows) count_orders(dags[rows, ])))
  d <- cbind(bn_test_data(), f = factor(rep(1:3, 50)))
  set <- rep(list(NULL, "a", c("b", "c"), "d", "f"), 30)
  prior <- bn_prior(names(d), required = cbind("b", "d"), forbidden = cbind("c", "a"), known = cbind("a", "b"))
  numbers <- as.data.frame(withr::with_seed(1, matrix(stats::rnorm(360), 60) %*% matrix(stats::rnorm(36), 6)))
  tables <- unlist(lapply(setdiff(weft:::bn_score_types, c("bge", weft:::mixed_scores)), function(score) {
    list(bn_scores(d, 5, score, keep = "all"), bn_scores(d, 5, score, keep = "all", gamma = 0.3),
         bn_scores(d, 5, score, keep = "all", interventions = set, prior = prior))
  }), recursive = FALSE)
  tables <- c(tables, list(bn_scores(numbers, 5, "bge", keep = "all"),
                           bn_scores(numbers, 5, "bge", keep = "all", interventions = rep(list(NULL, "V2"), 30),
                                     prior = bn_prior(names(numbers), forbidden = cbind("V1", "V4")))))
  for (table in tables) {
    score <- graph_scores(table, dags)
    for (over in c("order", "dag")) {
      fast <- bn_exact(table, posterior = over)
      weight <- exp(score - max(score)) * if (over == "order") orders else 1
      slow <- vapply(1:36, function(k) sum(weight[bitwAnd(dags[, (k - 1) %/% 6 + 1], 2^((k - 1) %% 6)) > 0]), 0)
      expect_lt(max(abs(as.vector(fast$edges) - slow / sum(weight))), 1e-10)
      expect_equal(fast$log_total, max(score) + log(sum(weight)), tolerance = 1e-12)
    }
  }
})

# bn-layers.c beside this file, compiled: layered_total() of helper-bn.R in C.
native_layers <- function() {
  folder <- withr::local_tempdir(.local_envir = parent.frame())
  file.copy(file.path(dirname(helpers), "../../proofs/bn-layers.c"), folder)
  library <- file.path(folder, paste0("bn-layers", .Platform$dynlib.ext))
  system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "-o", library, file.path(folder, "bn-layers.c")),
          stdout = FALSE, env = "PKG_CFLAGS=-O3")
  total <- getNativeSymbolInfo("layered_total", dyn.load(library))
  withr::defer(dyn.unload(library), parent.frame())
  function(weight) .C(total, nrow(weight), t(weight), total = 0)$total
}

# Cases: nodes, parents at most, and how many of the edges.
test_that("sums over graphs of up to 16 nodes are those of a recursion in which nothing cancels", {
  total <- native_layers()
  small <- bn_scores(linked_bn_data(6, 40), 3, keep = "all")
  expect_equal(slow_graph_posterior(small, total_of = total), slow_graph_posterior(small), tolerance = 1e-13)
  for (case in list(c(10, 3, 90), c(12, 3, 132), c(12, 11, 40), c(14, 3, 12), c(16, 3, 2))) {
    p <- case[1L]
    scores <- bn_scores(linked_bn_data(p, 40), case[2L], keep = "all")
    fast <- bn_exact(scores, posterior = "dag")
    edges <- which(diag(p) == 0, arr.ind = TRUE)
    edges <- edges[round(seq(1, nrow(edges), length.out = case[3L])), , drop = FALSE]
    slow <- slow_graph_posterior(scores, edges, total)
    expect_lt(max(abs(fast$edges[edges] - slow$edges[edges])), 1e-10)
    expect_equal(fast$log_total, slow$log_total, tolerance = 1e-12)
    report("%d nodes, at most %d parents: %d edges, greatest difference %.1e", p, case[2L], nrow(edges),
           max(abs(fast$edges[edges] - slow$edges[edges])))
  }
})

# Ladders are independent: the spread of their means gives the error of the mean over all. A limit is passed by chance
# once in 1e4 for an edge.
test_that("samplers of 8, 12 and 20 nodes agree with the exact posteriors within their Monte Carlo error", {
  ladders <- 64L
  for (p in c(8, 12, 20)) for (over in c("order", "dag")) {
    table <- bn_scores(linked_bn_data(p, 200), 3, keep = "all")
    exact <- bn_exact(table, posterior = over)$edges
    fit <- bn_learn(table, target = if (over == "order") "sum" else "uniform", iterations = 20000, chains = ladders,
                    seed = 1, run = "cpu")
    native <- weft:::bn_native_table(table)
    edges <- vapply(seq_len(ladders), function(ladder) {
      own <- fit$sampled[, , ladder, drop = FALSE]
      as.vector(.Call(weft:::C_weft_bn_edge_means, native, own, weft:::run_control("cpu", 1, FALSE))$edges)
    }, double(p * p))
    error <- apply(edges, 1L, stats::sd) / sqrt(ladders)
    open <- exact > 0.01 & exact < 0.99
    ratio <- ((rowMeans(edges) - exact) / error)[open]
    expect_lt(max(abs(ratio)), stats::qt(1 - 5e-5, ladders - 1))
    expect_lt(mean(ratio^2), 3) # 1 expected; as if a dozen edges were independent: 0.4 off by chance
    expect_lt(max(abs(rowMeans(edges) - exact)[!open]), 0.005)
  }
})

test_that("samplers of ten nodes agree with the exact posteriors", {
  set.seed(1)
  a <- matrix(rbinom(2000, 1, 0.5), 200)
  for (j in 2:10) a[, j] <- ifelse(runif(200) < 0.7, a[, j - 1], a[, j])
  data <- as.data.frame(a)
  data[] <- lapply(data, factor, levels = 0:1)
  for (over in c("order", "dag")) {
    fit <- bn_learn(data, 3, target = if (over == "order") "sum" else "uniform", iterations = 4e5, seed = 2,
                    control = list(thin = 40, slack = 40))
    # 30,000 draws
    expect_lt(max(abs(fit$edges - bn_exact(data, 3, posterior = over)$edges)), 0.03)
  }
})
