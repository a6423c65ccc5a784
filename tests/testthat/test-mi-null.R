# p-values of mi_rank() against all ways of dealing the classes, simulated tables, and shares of false discoveries.

f <- function(k) ifelse(k > 0, k * log(k), 0)
table_score <- function(a, class) sum(f(table(a, class)))

# Every different arrangement of the labels.
arrangements <- function(class) {
  if (length(unique(class)) == 1L) return(matrix(class, 1L))
  first <- sort(unique(class))[1L]
  places <- utils::combn(length(class), sum(class == first))
  rest <- arrangements(class[class != first])
  do.call(rbind, lapply(seq_len(ncol(places)), function(k) {
    out <- matrix(first, nrow(rest), length(class))
    out[, -places[, k]] <- rest
    out
  }))
}

share_reached <- function(a, class) {
  known <- !is.na(a) & !is.na(class)
  a <- a[known]
  class <- class[known]
  dealt <- arrangements(class) # a row for each; the cells of all their tables are counted together
  cells <- expand.grid(a = unique(a), class = unique(class), stringsAsFactors = FALSE)
  scores <- rowSums(mapply(function(level, of) f(rowSums(dealt[, a == level, drop = FALSE] == of)), cells$a,
                           cells$class))
  mean(scores >= table_score(a, class) - 1e-9)
}

expect_shares <- function(r, x, class) {
  p <- vapply(x[r$feature], share_reached, 0, class = class)
  expect_equal(r$p_value, p, ignore_attr = TRUE, tolerance = 1e-12)
}

test_that("few rows: the share of all arrangements of the labels", {
  withr::local_seed(1)
  classes <- list(rep(1:2, 4), rep(1:2, c(2, 7)), rep(1:3, 3), c(1, 1, 2, 2, 2, 3, 3, 3, 3), rep(letters[1:4], 2))
  for (class in classes) {
    n <- length(class)
    x <- as.data.frame(lapply(1:12, function(j) sample(sample(2:5, 1), n, TRUE)))
    names(x) <- paste0("f", 1:12)
    x$same <- class
    r <- mi_rank(x, class)
    expect_shares(r, x, class)
    expect_equal(r$q_value, p.adjust(r$p_value, "BH"))
  }
})

test_that("missing values leave their rows out, or are a level", {
  withr::local_seed(2)
  class <- c(1, 1, 1, 2, 2, 2, 2, NA, 1)
  x <- as.data.frame(lapply(1:8, function(j) ifelse(runif(9) < 0.2, NA, sample(3, 9, TRUE))))
  names(x) <- paste0("f", 1:8)
  r <- mi_rank(x, class, na = "drop")
  expect_shares(r, x, class)
  r <- mi_rank(x, class, na = "level")
  expect_shares(r, lapply(x, function(v) ifelse(is.na(v), 9, v)), class)
})

test_that("what cannot tell has p = 1", {
  class <- rep(1:2, 10)
  x <- data.frame(constant = 1, own = 1:20, none = NA_integer_, two = rep(1:2, each = 10))
  r <- mi_rank(x, class, na = "drop")
  expect_identical(r$p_value[match(c("constant", "own", "none"), r$feature)], c(1, 1, 1))
  expect_identical(mi_rank(x[-3], seq_len(20))$p_value, c(1, 1, 1))
  expect_identical(mi_rank(x[-3], rep("one", 20))$p_value, c(1, 1, 1))
})

test_that("two levels and two classes: the hypergeometric law, up to many rows", {
  withr::local_seed(3)
  for (n in c(30, 210, 1500)) {
    class <- rep(1:2, c(n / 3, n - n / 3))
    x <- as.data.frame(lapply(1:20, function(j) as.integer(runif(n) < 0.02 + 0.1 * (class == 1) * j / 20)))
    names(x) <- paste0("f", 1:20)
    r <- mi_rank(x, class)
    for (k in which(r$levels == 2 & (r$p_value < 0.05 | n < 100))) {
      a <- x[[r$feature[k]]]
      m <- sum(a)
      at <- max(0, m - sum(class == 2)):min(m, sum(class == 1))
      score <- f(at) + f(m - at) + f(sum(class == 1) - at) + f(sum(class == 2) - m + at)
      p <- sum(dhyper(at, sum(class == 1), sum(class == 2), m)[score >= table_score(a, class) - 1e-7])
      expect_equal(r$p_value[k], p, tolerance = 1e-9)
    }
  }
})

test_that("too many tables: simulated, near R's own simulation and always the same", {
  withr::local_seed(4)
  class <- rep(1:4, each = 10)
  x <- as.data.frame(lapply(1:40, function(j) sample(rep(1:5, 8))))
  names(x) <- paste0("f", 1:40)
  r <- mi_rank(x, class, threads = 1)
  tables <- stats::r2dtable(20000, rep(8, 5), rep(10, 4))
  scores <- vapply(tables, function(t) sum(f(t)), 0)
  p <- vapply(x[r$feature], function(a) mean(scores >= table_score(a, class) - 1e-9), 0)
  expect_true(all(abs(p - r$p_value) < 5 * sqrt(pmax(p, 1e-4) * (1 - p) / 20000) + 1e-4))
  expect_identical(mi_rank(x, class, threads = 2)$p_value, r$p_value)
  expect_identical(mi_rank(x[5:1], class)$p_value, r$p_value[r$feature %in% paste0("f", 1:5)])
  # one that needs every table beside those that need few changes none of their p-values
  beside <- mi_rank(data.frame(x, sure = class), class)
  expect_equal(beside$p_value[match(r$feature, beside$feature)], r$p_value, tolerance = 0)
  sure <- mi_rank(data.frame(a = rep(1:4, each = 10)), class)
  expect_lt(sure$p_value, 1e-6)
})

test_that("many rows: chi-squared with Williams' correction where it is small, and near the exact law", {
  withr::local_seed(5)
  class <- sample(3, 300, TRUE)
  x <- as.data.frame(lapply(1:30, function(j) ifelse(runif(300) < j / 150, class, sample(4, 300, TRUE))))
  names(x) <- paste0("f", 1:30)
  r <- mi_rank(x, class)
  for (k in which(r$p_value < 0.1)) {
    o <- table(x[[r$feature[k]]], class)
    q <- 1 + (300 * sum(1 / rowSums(o)) - 1) * (300 * sum(1 / colSums(o)) - 1) / (6 * 300 * r$df[k])
    expect_equal(r$p_value[k], pchisq(r$statistic[k] / q, r$df[k], lower.tail = FALSE), tolerance = 1e-9)
  }
  chi2 <- pchisq(r$statistic, r$df, lower.tail = FALSE)
  expect_equal(r$p_value[chi2 > 0.11], chi2[chi2 > 0.11], tolerance = 1e-9)
})

test_that("every form of the same features has the same p-values, with permutations and from a pack too", {
  withr::local_seed(6)
  x <- matrix(sample(0:2, 40 * 30, TRUE), 40, dimnames = list(NULL, paste0("f", 1:30)))
  class <- sample(c("u", "v"), 40, TRUE)
  r <- mi_rank(x, class)[c("feature", "p_value", "q_value")]
  expect_equal(mi_rank(as.data.frame(x), class)[names(r)], r, ignore_attr = TRUE)
  expect_equal(mi_rank(Matrix::Matrix(x, sparse = TRUE), class)[names(r)], r, ignore_attr = TRUE)
  expect_equal(mi_rank(x, class, permutations = 3, seed = 1)[names(r)], r, ignore_attr = TRUE)
  pack <- mi_pack(x, class)
  expect_equal(mi_rank(pack)[names(r)], r, ignore_attr = TRUE)
})

test_that("at q <= 0.05 at most that share is false, where chi-squared calls mostly chance", {
  withr::local_seed(7)
  told <- rep(c(TRUE, FALSE), c(10, 190))
  shares <- function(n, class, bins, sets = 40) {
    rowMeans(replicate(sets, {
      x <- matrix(stats::rnorm(n * 200), n)
      x[, told] <- x[, told] + 12 / sqrt(n) * class
      r <- mi_rank(x, class, bins = bins)
      told <- told[as.integer(sub("V", "", r$feature))]
      false <- function(p) {
        found <- p.adjust(p, "BH") <= 0.05
        if (any(found)) mean(!told[found]) else 0
      }
      c(false(r$p_value), false(pchisq(r$statistic, pmax(r$df, 1), lower.tail = FALSE)))
    }))
  }
  cases <- list(list(12, rep(1:2, 6), 3), list(20, rep(1:2, 10), 3), list(20, rep(1:2, c(5, 15)), 2),
                list(20, rep(1:3, c(7, 7, 6)), 4), list(20, rep(1:3, c(7, 7, 6)), 3))
  for (case in cases) {
    share <- shares(case[[1]], case[[2]], case[[3]])
    expect_lt(share[1], 0.07) # 0.05, and two standard errors of the mean of 40 sets
    expect_gt(share[2], 0.09)
  }
})

test_that("failed allocations and interrupts leave nothing behind", {
  withr::local_seed(8)
  x <- as.data.frame(lapply(1:6, function(j) sample(rep(1:5, 5))))
  names(x) <- paste0("f", 1:6)
  class <- rep(1:5, each = 5)
  expect_survives_failures(list(exact = function() mi_rank(x[1:2], class > 2, threads = 2)))
  expect_survives_failures(list(simulated = function() mi_rank(x[1:2], class, threads = 1)), most = 8)
  before <- .Call(weft:::C_weft_memory, NULL)[["host"]]
  withr::local_options(weft.poll = 0)
  x$f1 <- class # no table scores as high: none of the draws is spared
  calls <- 0
  stops <- function(done, total) if ((calls <<- calls + 1) > 8) stop("enough")
  expect_error(mi_rank(x, class, progress = stops), "enough")
  expect_identical(.Call(weft:::C_weft_memory, NULL)[["host"]], before)
})
