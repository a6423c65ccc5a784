# Time series and conditions: the rows against loops, what is learned against scores and priors written out.

series <- function(seed = 1, n = 30) {
  withr::local_seed(seed)
  one <- function(unit) {
    x <- matrix(stats::rnorm(3 * n), n)
    for (t in 2:n) x[t, 2L] <- x[t, 2L] + 0.9 * x[t - 1L, 1L]
    data.frame(unit, day = sort(sample(n * 10, n)), a = x[, 1L], b = x[, 2L], c = x[, 3L], age = unit * 1.5)
  }
  d <- do.call(rbind, lapply(1:4, one))
  d[order(stats::runif(nrow(d))), ]
}

test_that("rows have the values of the points before them in their own unit", {
  d <- series()
  made <- bn_time(d, "day", "unit", lags = 2, static = "age")
  expect_identical(names(made), c("a[t-2]", "b[t-2]", "c[t-2]", "a[t-1]", "b[t-1]", "c[t-1]", "age", "a", "b", "c"))
  expect_identical(nrow(made), 4L * 28L)
  at <- 0L
  for (unit in unique(d$unit)) {
    own <- d[d$unit == unit, ]
    own <- own[order(own$day), ]
    for (t in 3:30) {
      at <- at + 1L
      expect_identical(unlist(made[at, c("a", "b", "c", "age")]), unlist(own[t, c("a", "b", "c", "age")]))
      expect_identical(unname(unlist(made[at, c("a[t-1]", "b[t-1]")])), unname(unlist(own[t - 1L, c("a", "b")])))
      expect_identical(made[["c[t-2]"]][at], own$c[t - 2L])
    }
  }
  by_vector <- bn_time(d[c("a", "b", "c", "age")], d$day, d$unit, lags = 2, static = "age")
  expect_identical(by_vector, made)
})

test_that("without edges within a point in time, every node is for itself", {
  d <- bn_time(series(), "day", "unit", within = FALSE)
  names <- names(d)
  exact <- bn_exact(d, 2, "bge", posterior = "dag")
  bare <- as.data.frame(as.list(d), optional = TRUE)
  expect_false(inherits(bare, "weft_bn_time"))
  past <- grep("t-1", names, value = TRUE)
  for (node in c("a", "b", "c", "age")) {
    sets <- c(list(character()), as.list(past), utils::combn(past, 2, simplify = FALSE))
    score <- vapply(sets, function(set) bn_local_score(bare, node, set, "bge"), 0)
    weight <- exp(score - max(score)) / sum(exp(score - max(score)))
    for (from in names) {
      expected <- sum(weight[vapply(sets, function(set) from %in% set, NA)])
      expect_equal(exact$edges[from, node], expected, tolerance = 1e-9)
    }
    expect_identical(names(which(exact$dag[, node] == 1)), sort(as.character(sets[[which.max(score)]])))
  }
  expect_identical(sum(exact$edges[, past]), 0)
  expect_gt(exact$edges["a[t-1]", "b"], 0.99)
  expect_equal(exact$score, bn_score(bare, exact$dag, "bge"), tolerance = 1e-9)
  search <- bn_search(d, seed = 1, gamma = 1)
  expect_equal(search$score, bn_exact(d, 4, "bge")$score, tolerance = 1e-9)
  chains <- bn_learn(d, 2, "bge", target = "uniform", seed = 1, iterations = 4000)
  expect_lt(max(abs(chains$edges - exact$edges)), 0.06)
  halves <- bn_learn(d, 2, "bge", target = "sum", seed = 1, iterations = 500, resample = 2)
  expect_identical(sum(halves$edges[, past]), 0)
  # more nodes than subsets could be gone through
  wide <- bn_time(data.frame(matrix(withr::with_seed(1, stats::rnorm(25 * 40)), 40), t = 1:40), "t", within = FALSE)
  expect_identical(dim(bn_exact(wide, 1, "bge", posterior = "dag")$edges), c(50L, 50L))
  expect_error(bn_exact(wide, 1, "bge", posterior = "order"), class = "weft_error_memory")
})

test_that("edges within a point in time are those of a prior that forbids the others", {
  d <- bn_time(series(), "day", "unit", static = "age")
  bare <- as.data.frame(as.list(d), optional = TRUE)
  forbidden <- matrix(0, 7, 7, dimnames = list(names(d), names(d)))
  forbidden[, c("a[t-1]", "b[t-1]", "c[t-1]", "age")] <- 1
  diag(forbidden) <- 0
  prior <- bn_prior(names(d), forbidden = forbidden)
  expect_equal(bn_exact(d, 3, "bge", posterior = "dag")$edges,
               bn_exact(bare, 3, "bge", posterior = "dag", prior = prior)$edges, tolerance = 1e-9)
  required <- matrix(0, 7, 7, dimnames = list(names(d), names(d)))
  required["a", "b[t-1]"] <- 1
  expect_error(bn_exact(d, 3, "bge", prior = bn_prior(names(d), required = required)), "forbid",
               class = "weft_error_input")
})

test_that("interventions go with their rows", {
  d <- series()
  set <- ifelse(seq_len(nrow(d)) %% 3 == 0, "b", NA)
  made <- bn_time(d, "day", "unit", interventions = set)
  bare <- as.data.frame(as.list(made), optional = TRUE)
  order <- order(match(d$unit, unique(d$unit)), d$day)
  first <- !duplicated(d$unit[order])
  now <- order[!first]
  expect_equal(bn_local_score(made, "b", "a[t-1]", "bge"),
               bn_local_score(bare, "b", "a[t-1]", "bge", interventions = set[now]), tolerance = 1e-12)
})

test_that("a condition is a node without parents", {
  withr::local_seed(1)
  condition <- sample(c("rest", "heat", "salt"), 150, TRUE)
  x <- data.frame(a = stats::rnorm(150) + (condition == "heat"), b = stats::rnorm(150))
  x$c <- x$a + stats::rnorm(150)
  d <- bn_conditions(x, condition, "rest")
  expect_identical(names(d), c("a", "b", "c", "in heat", "in salt"))
  expect_identical(d[["in heat"]], (condition == "heat") + 0)
  bare <- as.data.frame(as.list(d), optional = TRUE)
  forbidden <- matrix(0, 5, 5, dimnames = list(names(d), names(d)))
  forbidden[, 4:5] <- 1
  diag(forbidden) <- 0
  exact <- bn_exact(d, 4, "bge", posterior = "dag")
  prior <- bn_prior(names(d), forbidden = forbidden)
  expect_equal(exact$edges, bn_exact(bare, 4, "bge", posterior = "dag", prior = prior)$edges, tolerance = 1e-9)
  expect_gt(exact$edges["in heat", "a"], 0.9)
  expect_lt(max(exact$edges["in salt", ], exact$edges["in heat", c("b", "c")]), 0.5)
  free <- bn_conditions(cbind(x, condition), "condition", "rest", change = "free")
  expect_identical(levels(free[["in salt"]]), c("no", "yes"))
  expect_gt(bn_exact(free, 3, posterior = "dag")$edges["in heat", "a"], 0.9)
  counts <- bn_conditions(linked_bn_data(3, 150), condition, "rest")
  expect_identical(sum(bn_exact(counts, 4)$dag[, 4:5]), 0L)
})

test_that("what cannot be prepared is said", {
  d <- series()
  expect_error(bn_time(d, "hour"), "name of a column", class = "weft_error_input")
  expect_error(bn_time(d[c("a", "b")], rep(1, nrow(d))), "must not repeat", class = "weft_error_input")
  expect_error(bn_time(d, "day", "unit", lags = 30), "more time points", class = "weft_error_input")
  expect_error(bn_time(d, "day", "unit", static = "a"), "one value in each unit", class = "weft_error_input")
  expect_error(bn_time(d, replace(d$day, 1, NA), "unit"), "missing values", class = "weft_error_input")
  expect_error(bn_time(d, as.character(d$day), "unit"), "numbers or dates", class = "weft_error_input")
  expect_error(bn_time(d[0, ], "day", "unit"), class = "weft_error_input")
  expect_error(bn_conditions(d["a"], rep("x", nrow(d))), "two different", class = "weft_error_input")
  expect_error(bn_conditions(d["a"], d$unit, "9"), class = "weft_error_input")
  expect_error(bn_search(bn_time(d, "day", "unit")[1:20, ]), "prepared data", class = "weft_error_input")
})
