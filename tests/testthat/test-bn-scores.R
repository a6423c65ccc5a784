types <- setdiff(weft:::bn_score_types, c("bge", weft:::mixed_scores))

test_that("tables and single scores agree with scores by their definition, unseen and 100 levels, interventions", {
  d <- bn_test_data(wide = TRUE)
  set <- withr::with_seed(2, sample(c(NA, "a", "c", "wide"), nrow(d), TRUE))
  for (type in types) for (interventions in list(NULL, set)) {
    table <- as.data.frame(bn_scores(d, 3, type, ess = 2.5, keep = "all", interventions = interventions))
    expect_equal(nrow(table), 6 * (1 + 5 + 10 + 10))
    slow <- mapply(function(node, parents) {
      rows <- if (is.null(interventions)) seq_len(nrow(d)) else which(is.na(set) | set != node)
      reference_score(d, node, split_parents(parents), type, 2.5, rows)
    }, table$node, table$parents)
    single <- mapply(function(node, parents) {
      bn_local_score(d, node, split_parents(parents), type, ess = 2.5, interventions = interventions)
    }, table$node, table$parents)
    # fixed point: half of 2^-36 per value
    expect_lt(max(abs(table$score - slow)), 1e-8)
    expect_lt(max(abs(single - slow)), 1e-8)
  }
})

test_that("BGe agrees with the closed form and with one-step predictive densities, interventions among them", {
  x <- withr::with_seed(3, matrix(rnorm(60), 20))
  x[, 2] <- x[, 1] + 0.3 * x[, 2]
  d <- as.data.frame(sweep(x, 2L, c(3, 0.01, 200), `*`) + 5)
  # p(standardised data of S) as a product of one-step predictive densities of the normal-Wishart marginal
  z <- scale(d)
  sequential <- function(members) {
    l <- length(members)
    if (!l) return(0)
    y <- z[, members, drop = FALSE]
    mean <- double(l)
    kappa <- 1
    nu <- 3 + 2 - 3 + l # of alpha, p and l
    scatter <- diag(0.5, l)
    total <- 0
    for (i in seq_len(nrow(y))) {
      df <- nu - l + 1
      sigma <- scatter * (kappa + 1) / (kappa * df)
      gap <- y[i, ] - mean
      total <- total + lgamma((df + l) / 2) - lgamma(df / 2) - l / 2 * log(df * pi) - log(det(sigma)) / 2 -
        (df + l) / 2 * log1p(sum(gap * solve(sigma, gap)) / df)
      scatter <- scatter + kappa / (kappa + 1) * tcrossprod(gap)
      mean <- (kappa * mean + y[i, ]) / (kappa + 1)
      kappa <- kappa + 1
      nu <- nu + 1
    }
    total
  }
  for (set in list(NULL, rep(c(NA, "V1", "V3", NA), 5))) {
    table <- as.data.frame(bn_scores(d, 2, "bge", keep = "all", interventions = set))
    rows <- function(node) if (is.null(set)) 1:20 else which(is.na(set) | set != node)
    slow <- mapply(function(node, parents) reference_bge(d, node, split_parents(parents), rows(node)), table$node,
                   table$parents)
    single <- mapply(function(node, parents) {
      bn_local_score(d, node, split_parents(parents), "bge", interventions = set)
    }, table$node, table$parents)
    expect_lt(max(abs(table$score - slow)), 1e-8)
    expect_lt(max(abs(single - slow)), 1e-8)
    if (!is.null(set)) next
    by_rows <- mapply(function(node, parents) {
      parents <- match(split_parents(parents), names(d))
      sequential(c(parents, match(node, names(d)))) - sequential(parents)
    }, table$node, table$parents)
    expect_lt(max(abs(table$score - by_rows)), 1e-8)
  }
})

test_that("a kept set has no subset as good; a dropped one has", {
  d <- bn_test_data()
  full <- bn_scores(d, 4, keep = "all")
  local <- mask_scores(full)
  for (slack in c(0, 2)) {
    pruned <- if (slack) bn_scores(d, 4, keep = "sum", control = list(slack = slack)) else bn_scores(d, 4)
    kept <- is.finite(mask_scores(pruned))
    for (i in 1:5) for (m in which(is.finite(local[i, ])) - 1) {
      subsets <- Filter(function(s) bitwAnd(s, m) == s && s != m, 0:m)
      best <- max(-Inf, local[i, subsets + 1])
      expect_identical(kept[i, m + 1], if (slack) local[i, m + 1] > best - slack else local[i, m + 1] > best)
    }
  }
  expect_false(is.unsorted(-pruned$score[pruned$start[1] + seq_len(pruned$start[2])]))
})

test_that("gamma, soft priors, required and forbidden edges and limits of each node act together", {
  d <- bn_test_data()
  R <- matrix(0.5, 5, 5, dimnames = list(names(d), names(d)))
  R["b", "a"] <- 1 # child b, parent a
  R["a", c("b", "e")] <- 0
  R["c", "b"] <- 0.9
  prior <- bn_prior(names(d), R = R)
  limits <- c(a = 1, b = 2, c = 3, d = 0, e = 4)
  table <- as.data.frame(bn_scores(d, limits, gamma = 0.5, prior = prior, keep = "all"))
  sizes <- lengths(lapply(table$parents, split_parents))
  expect_true(all(sizes <= limits[table$node]))
  expect_true(all(grepl("a", table$parents[table$node == "b"])))
  expect_false(any(grepl("b|e", table$parents[table$node == "a"])))
  expect_equal(as.vector(table(table$node)[c("a", "b", "c", "d", "e")]), c(3, 4, 15, 1, 16))
  slow <- mapply(function(node, parents) reference_score(d, node, split_parents(parents), "bdeu"), table$node,
                 table$parents)
  soft <- ifelse(table$node == "c" & grepl("b", table$parents), log(10) * 100 * 0.4^3, 0)
  expect_lt(max(abs(table$score - (slow + sizes * log(0.5) + soft))), 1e-8)
  expect_equal(bn_local_score(d, "c", "b", prior = prior), reference_score(d, "c", "b", "bdeu") + log(10) * 6.4)
  expect_equal(bn_local_score(d, "b", prior = prior), -Inf)
  expect_equal(bn_local_score(d, "a", "e", prior = prior), -Inf)
})

test_that("candidates bound the sets, and one outsider may join each", {
  d <- bn_test_data()
  list_of <- list(a = "b", b = c("a", "c"), d = c("a", "c"))
  plain <- as.data.frame(bn_scores(d, 3, candidates = list_of, keep = "all", control = list(plus_one = FALSE)))
  expect_equal(as.vector(table(factor(plain$node, names(d)))), c(2, 4, 1, 4, 1))
  grown <- as.data.frame(bn_scores(d, 3, candidates = list_of, keep = "all"))
  # a: {} {b} each with one of c, d, e; b and d: 4 sets with one of 2; c and e: {} with one of 4
  expect_equal(as.vector(table(factor(grown$node, names(d)))), c(2 * 4, 4 * 3, 5, 4 * 3, 5))
  expect_false(anyDuplicated(grown[c("node", "parents")]) > 0)
  slow <- mapply(function(node, parents) reference_score(d, node, split_parents(parents), "bdeu"), grown$node,
                 grown$parents)
  expect_lt(max(abs(grown$score - slow)), 1e-8)
  # with all nodes as candidates, nothing changes
  everyone <- matrix(1, 5, 5, dimnames = list(names(d), names(d))) - diag(5)
  expect_equal(as.data.frame(bn_scores(d, 3, candidates = everyone)), as.data.frame(bn_scores(d, 3)))
  by_number <- bn_scores(d, 4, candidates = 2, keep = "all", control = list(plus_one = FALSE))
  expect_equal(diff(by_number$start), rep(4, 5))
})

test_that("pruned tables with outsiders keep no set that a subset equals", {
  d <- bn_test_data()
  table <- bn_scores(d, 3, candidates = list(a = "b", b = c("a", "c"), c = "b", d = c("a", "c"), e = "a"))
  local <- mask_scores(table)
  for (i in 1:5) for (m in which(is.finite(local[i, ])) - 1) {
    subsets <- Filter(function(s) bitwAnd(s, m) == s && s != m, 0:m)
    expect_true(all(local[i, subsets + 1] < local[i, m + 1]))
  }
})

# Ten nodes of 1 to 20 levels, among which are groups of nodes with as many levels, and copies and rare levels, so that
# some sets have cells of a few rows and are counted in another way than others.
sorted_test_data <- function(rows) {
  levels <- c(3, 2, 16, 2, 1, 3, 17, 2, 4, 20)
  d <- withr::with_seed(11, as.data.frame(lapply(levels, function(r) sample(r, rows, TRUE, prob = 0.6^seq_len(r)))))
  names(d) <- sprintf("n%d", seq_along(levels))
  d$n4 <- pmin(d$n2 + (d$n1 == 3), 2L)
  d$n6 <- d$n1
  as.data.frame(Map(factor, d, lapply(levels, seq_len)))
}

test_that("the same table on any number of threads and with any instruction set", {
  d <- bn_test_data(700, wide = TRUE)
  fields <- c("start", "score", "parents", "bits")
  one <- unclass(bn_scores(d, 4, keep = "all", run = weft_run(threads = 1)))[fields]
  expect_identical(unclass(bn_scores(d, 4, keep = "all", run = weft_run(threads = 2)))[fields], one)
  now <- .Call(weft:::C_weft_simd, NULL)
  withr::defer(.Call(weft:::C_weft_simd, match(now, c("portable", "avx2", "avx512")) - 1L))
  other <- sorted_test_data(2000)
  two <- unclass(bn_scores(other, 4, keep = "all", run = weft_run(threads = 2)))[fields]
  for (level in 0:2) {
    if (is.null(.Call(weft:::C_weft_simd, level))) next
    expect_identical(unclass(bn_scores(d, 4, keep = "all", run = weft_run(threads = 1)))[fields], one)
    expect_identical(unclass(bn_scores(other, 4, keep = "all", run = weft_run(threads = 1)))[fields], two)
  }
})

test_that("sets are counted right whichever way suits their cells", {
  for (rows in c(63, 64, 65, 3000)) {
    d <- sorted_test_data(rows)
    for (score in c("bdeu", "bic")) {
      table <- as.data.frame(bn_scores(d, 4, score, keep = "all", run = weft_run(threads = 1)))
      picked <- table[withr::with_seed(rows, sample(nrow(table), 150)), ]
      slow <- mapply(function(node, parents) reference_score(d, node, split_parents(parents), score), picked$node,
                     picked$parents)
      expect_lt(max(abs(picked$score - slow) / pmax(abs(slow), 1)), 1e-9)
    }
  }
})

test_that("more than 64 nodes, many levels, few rows, one row, no row, one node", {
  d <- withr::with_seed(5, as.data.frame(lapply(1:90, function(j) factor(sample(1:(2 + j %% 9 * 12), 40,
                                                                                TRUE), 1:(2 + j %% 9 * 12)))))
  names(d) <- sprintf("v%02d", 1:90)
  d$v90 <- d$v01
  table <- bn_scores(d, 2)
  picked <- as.data.frame(table)
  picked <- picked[seq(1, nrow(picked), length.out = 50), ]
  slow <- mapply(function(node, parents) reference_score(d, node, split_parents(parents), "bdeu"), picked$node,
                 picked$parents)
  expect_lt(max(abs(picked$score - slow)), 1e-8)
  expect_true("v01" %in% as.data.frame(table)$parents[as.data.frame(table)$node == "v90"])
  one_row <- as.data.frame(bn_scores(bn_test_data()[1, ], 4, keep = "all"))
  expect_equal(one_row$score, -log(c(4, 3, 2, 2, 2))[match(one_row$node, letters[1:5])], tolerance = 1e-9)
  none <- as.data.frame(bn_scores(bn_test_data()[0, ], 4, keep = "all"))
  expect_equal(none$score, rep(0, nrow(none)))
  expect_equal(as.data.frame(bn_scores(bn_test_data()["a"]))$parents, "")
})

test_that("memory and time are predicted, and too much is refused with advice", {
  d <- bn_test_data()
  planned <- bn_scores(d, 2, keep = "all", run = weft_run(dry_run = TRUE))
  expect_equal(planned$sets, 5 * 11)
  expect_output(print(planned), "55 parent sets")
  wide <- as.data.frame(matrix(0:1, 4, 300))
  expect_error(bn_scores(wide, 6), class = "weft_error_memory", regexp = "max_parents.*candidates")
  expect_gt(bn_scores(wide, 6, run = weft_run(dry_run = TRUE))$bytes, 1e12)
})

test_that("planes beyond a cache count what lists of rows count", {
  # 27 cells of 70,000 rows are 236 KB of planes, 81 cells 709 KB
  d <- withr::with_seed(1, as.data.frame(matrix(sample(3, 5 * 70000, TRUE), 70000)))
  d[[2]] <- ifelse(d[[1]] > 1, d[[2]], 1L)
  d[] <- lapply(d, factor, levels = 1:3)
  for (score in c("bdeu", "bic", "k2")) {
    scores <- bn_scores(d, 4, score, keep = "all")
    for (parents in list(1:3, 1:4)) {
      expect_equal(mask_scores(scores)[5, sum(2^(parents - 1)) + 1],
                   reference_score(d, "V5", paste0("V", parents), score), tolerance = 1e-10)
    }
  }
})

test_that("every allocation may fail and nothing leaks", {
  d <- bn_test_data()
  expect_survives_failures(list(
    candidates = function() bn_scores(d, 3, candidates = 2, run = weft_run(threads = 1)),
    k2 = function() bn_scores(d, 3, "k2", run = weft_run(threads = 1)),
    learn = function() bn_learn(d, iterations = 20, target = "sum", chains = 2, seed = 1, run = weft_run(threads = 1)),
    uniform = function() bn_learn(d, iterations = 20, target = "uniform", chains = 2, seed = 1,
                                  run = weft_run(threads = 1)),
    dag = function() bn_exact(d, posterior = "dag", run = weft_run(threads = 1)),
    order = function() bn_exact(d, posterior = "order", run = weft_run(threads = 1)),
    features = function() {
      bn_features(bn_exact(d[1:3], posterior = "dag", run = weft_run(threads = 1)), draws = 5, seed = 1,
                  run = weft_run(threads = 1))
    }
  ), most = 25)
})

test_that("inputs that break a rule are classed errors", {
  d <- bn_test_data()
  bad <- function(code, text) expect_error(code, class = "weft_error_input", regexp = text)
  bad(bn_scores(list(1)), "data frame")
  bad(bn_scores(cbind(d, x = rnorm(150)), score = "bdeu"), "discretize")
  bad(bn_scores(cbind(d, x = sprintf("s%d", 1:150))), "150 distinct values")
  for (none in list(factor(character()), character(), integer())) {
    bad(bn_scores(data.frame(a = none)), "`a` must have at least one level")
  }
  bad(bn_scores(replace(d, "a", list(replace(d$a, 3, NA)))), "Missing in 1 of 5 columns: `a`")
  expect_equal(bn_scores(replace(d, "a", list(replace(d$a, 3, NA))), na = "drop")$n, 149)
  bad(bn_scores(d, -1), "max_parents")
  bad(bn_scores(d, c(a = 1, zz = 2)), "max_parents")
  bad(bn_scores(d, score = "bge"), "numeric")
  bad(bn_scores(d, ess = 0), "positive")
  bad(bn_scores(d, interventions = "a"), "one entry per row")
  bad(bn_scores(d, interventions = rep("zz", 150)), "no column `zz`")
  set <- c(list(quote(f(x))), rep(list(NULL), 149)) # neither a name nor NA
  bad(bn_scores(d, interventions = set), "Entry 1 is an object of class call")
  expect_identical(bn_interventions(c(list("b", factor("c")), set[-(1:2)]), names(d), 150),
                   bn_interventions(c(list("b", "c"), set[-(1:2)]), names(d), 150)) # a factor among names
  bad(bn_scores(d, candidates = list("a")), "names of nodes")
  bad(bn_local_score(d, "a", "a"), "other than")
  bad(bn_local_score(d, "z"), "column names")
  bad(bn_scores(stats::setNames(d, c("a", "a", "b", "c", "d"))), "unique column names")
  expect_error(bn_scores(d, score = "bds", run = "cuda"), class = "weft_error_device") # counted on the CPU
  bad(bn_learn(bn_scores(d), ess = 2), "must not be given together")
  bad(bn_learn(bn_scores(d), target = "sum"), "keep = \"sum\"")
})

test_that("tables print, summarise and convert", {
  table <- bn_scores(bn_test_data())
  expect_output(print(table), "of 80 parent sets kept")
  expect_equal(names(summary(table)), c("node", "sets", "best", "parents"))
})

test_that("a node without any set of parents is an error that names it", {
  d <- withr::with_seed(1, data.frame(a = factor(sample(3, 1000, TRUE)),
                                      f = factor(sample(30000, 1000, TRUE), 1:30000)))
  expect_error(bn_scores(d, 1, "bic"), "Column `f` \\(2\\) has no parent set", class = "weft_error_input")
  expect_error(bn_learn(d[2:1], 1, "bic", prior = bn_prior(c("f", "a"), required = cbind("f", "a"))), "`f`",
               class = "weft_error_input")
})

test_that("more sets than a table can number are refused before they are scored", {
  wide <- as.data.frame(matrix(rep(0:1, each = 100), 2))
  expect_error(bn_scores(wide, 6, keep = "all"), "at most 2147483647 parent sets", class = "weft_error_input")
  expect_error(bn_scores(wide, 30), class = "weft_error_memory")
})
