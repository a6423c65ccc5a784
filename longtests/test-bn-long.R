# The heavy promises of the Bayesian-network room. Run from the package's root:
#   Rscript -e 'testthat::test_file("longtests/test-bn-long.R")'
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
  found <- vapply(1:20, function(seed) bn_learn(alarm, 4, iterations = 1.5e5, chains = 8,
                                                temperatures = c(1, 2), seed = seed)$score, 0)
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

test_that("samplers of ten nodes agree with the exact posteriors", {
  set.seed(1)
  a <- matrix(rbinom(2000, 1, 0.5), 200)
  for (j in 2:10) a[, j] <- ifelse(runif(200) < 0.7, a[, j - 1], a[, j])
  data <- as.data.frame(a)
  data[] <- lapply(data, factor, levels = 0:1)
  for (over in c("order", "dag")) {
    fit <- bn_learn(data, 3, target = if (over == "order") "sum" else "uniform", slack = 40, iterations = 4e5,
                    thin = 40, seed = 2)
    # 30,000 draws
    expect_lt(max(abs(fit$edges - bn_exact(data, 3, posterior = over)$edges)), 0.03)
  }
})
