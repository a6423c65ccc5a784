# p-values of mi_rank() against all ways of dealing the classes, all tables, random tables, and shares of false
# discoveries.

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

# All tables of two classes, or of three levels and three classes: their scores, the greatest first, P(score or more),
# and cells, a column per table, level by level within a class.
all_tables <- function(rows, columns) {
  least <- function(n) expand.grid(lapply(n, function(m) 0:m))
  if (length(columns) == 2L) {
    first <- as.matrix(least(rows[-1]))
    first <- cbind(columns[1] - rowSums(first), first)
    cells <- cbind(first, matrix(rows, nrow(first), length(rows), byrow = TRUE) - first)
  } else {
    two <- function(m) {
      at <- as.matrix(least(c(m, m)))
      at[rowSums(at) <= m, , drop = FALSE]
    }
    a <- two(rows[1])
    b <- two(rows[2])
    at <- expand.grid(a = seq_len(nrow(a)), b = seq_len(nrow(b)))
    x <- cbind(a[at$a, 1], b[at$b, 1], columns[1] - a[at$a, 1] - b[at$b, 1])
    y <- cbind(a[at$a, 2], b[at$b, 2], columns[2] - a[at$a, 2] - b[at$b, 2])
    cells <- cbind(x, y, matrix(rows, nrow(x), 3L, byrow = TRUE) - x - y)
  }
  cells <- cells[apply(cells, 1, min) >= 0, , drop = FALSE]
  score <- round(rowSums(f(cells)), 8)
  log_p <- sum(lgamma(rows + 1)) + sum(lgamma(columns + 1)) - lgamma(sum(rows) + 1) - rowSums(lgamma(cells + 1))
  best <- order(-score)
  last <- !duplicated(score[best], fromLast = TRUE)
  list(p = cumsum(exp(log_p[best]))[last], cells = t(unname(cells))[, best[last], drop = FALSE], tables = length(score))
}

# p-values of tables with these margins, beside those of other features with other margins.
p_of_tables <- function(cells, rows, columns, ...) {
  class <- rep(seq_along(columns), columns)
  x <- apply(cells, 2, function(t) rep(rep(seq_along(rows), length(columns)), t))
  colnames(x) <- seq_len(ncol(cells))
  r <- call_with(mi_rank, list(x, class, ...))
  expect_false(is.unsorted(-r$p_value[order(r$mi)])) # more information, smaller p
  r$p_value[match(colnames(x), r$feature)]
}

test_that("more tables than are visited: near all of them, far into the tail", {
  cases <- list(list(c(10, 9, 9, 8, 7, 6), c(30, 19)), list(c(45, 35, 25, 15), c(70, 50)),
                list(c(70, 55, 30, 10), c(140, 25)), list(c(20, 18, 16), c(22, 17, 15)), list(c(40, 21, 4),
                                                                                              c(45, 14, 6)),
                list(c(14, 11, 9, 5, 3, 2, 1), c(33, 12)))
  for (case in cases) {
    all <- all_tables(case[[1]], case[[2]])
    if (all$tables <= 10000) next # these are exact
    wanted <- 10^-c(0.5, 1, 1.3, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25)
    at <- unique(vapply(wanted, function(p) which.min(abs(log(all$p / p))), 0L))
    ratio <- p_of_tables(all$cells[, at], case[[1]], case[[2]]) / all$p[at]
    near <- all$p[at] > 5e-7
    about <- paste(c(case[[1]], "by", case[[2]]), collapse = " ")
    expect_true(all(abs(log(ratio[near])) < log(1.25)), label = paste(about, paste(signif(ratio, 3), collapse = " ")))
    expect_true(all(abs(log(ratio[!near])) < log(5)), label = paste(about, paste(signif(ratio, 3), collapse = " ")))
  }
})

test_that("cells that expect a row or less: p-values are those of random tables, and print says how exact they are", {
  withr::local_seed(12)
  cases <- list(list(rep(5, 8), rep(8, 5)), list(c(12, 9, 7, 5, 3, 2, 1, 1), c(14, 11, 8, 5, 2)),
                list(c(300, 80, 15, 5), c(340, 45, 15)))
  for (case in cases) {
    drawn <- stats::r2dtable(3e4, case[[1]], case[[2]])
    score <- round(vapply(drawn, function(t) sum(f(t)), 0), 8)
    first <- which(!duplicated(score))
    share <- tabulate(match(score, score[first])) / length(score)
    cells <- vapply(drawn[first], as.vector, numeric(length(case[[1]]) * length(case[[2]])))
    p <- p_of_tables(cells, case[[1]], case[[2]])
    about <- paste(c(case[[1]], "by", case[[2]]), collapse = " ")
    reached <- vapply(c(0.1, 0.05, 0.02, 0.01, 0.002), function(x) sum(share[p <= x]) / x, 0)
    expect_true(all(reached < 1.1 + 3 / sqrt(3e4 * c(0.1, 0.05, 0.02, 0.01, 0.002))), label = about)
    expect_equal(sum(share[p - share / 2 <= 0.05]), 0.05, tolerance = 0.1, label = about) # mid-p
    exact <- vapply(score[first], function(s) sum(share[score[first] >= s]), 0)
    some <- exact > 0.02 & exact < 0.15 # 4 % are the reference's error at most
    expect_lt(max(abs(log(p[some] / exact[some]))), log(1.2), label = about)
  }
  shown <- gsub("\\s+", " ", paste(utils::capture.output(print(
    mi_rank(data.frame(x = rep(1:8, 5)), rep(1:5, 8)[c(40, 1:39)]))), collapse = " "))
  expect_match(shown, "from random tables with the same margins|an approximation")
})

test_that("far tails where cells expect many rows: the hypergeometric law", {
  for (n in c(2e4, 1e6)) {
    rows <- c(0.3, 0.7) * n
    columns <- c(0.4, 0.6) * n
    for (log_p in c(60, 300, 640)) {
      x <- round(rows[1] * columns[1] / n + sqrt(2 * log_p * prod(rows, columns) / n^3))
      p <- p_of_tables(cbind(c(x, columns[1] - x, rows[1] - x, rows[2] - columns[1] + x)), rows, columns)
      # the other tail, of the same information, is some way from the mean too
      score <- function(x) f(x) + f(columns[1] - x) + f(rows[1] - x) + f(rows[2] - columns[1] + x)
      low <- stats::uniroot(function(y) score(y) - score(x), c(max(0, 2 * rows[1] * columns[1] / n - 1.5 * x),
                                                             rows[1] * columns[1] / n), tol = 1e-6)$root
      tails <- c(stats::phyper(x - 1, columns[1], columns[2], rows[1], lower.tail = FALSE, log.p = TRUE),
                 stats::phyper(floor(low + 1e-6), columns[1], columns[2], rows[1], log.p = TRUE))
      expected <- max(tails) + log1p(exp(-abs(diff(tails))))
      expect_lt(abs(log(p) - expected), log(1.2), label = sprintf("n = %g, log p = %g, %g", n, log(p), expected))
    }
  }
})

test_that("few tables, though many are equal: all are visited", {
  for (case in list(list(rep(4, 8), c(16, 16)), list(c(100, rep(3, 6)), c(62, 56)), list(c(60, 50, 40), c(80, 70)),
                    list(c(9, 8, 7), c(10, 8, 6)))) {
    all <- all_tables(case[[1]], case[[2]])
    at <- unique(round(exp(seq(0, log(sum(all$p < 0.09)), length.out = 25))))
    expect_equal(p_of_tables(all$cells[, at], case[[1]], case[[2]]), all$p[at], tolerance = 1e-9)
  }
})

test_that("a table that no other beats has its own probability, however small", {
  for (times in c(3, 6, 30)) { # 19! tables are as good, each with this probability
    class <- rep(1:19, times)
    log_p <- lgamma(20) + 19 * lgamma(times + 1) - lgamma(19 * times + 1)
    expect_equal(mi_rank(data.frame(same = class), class)$p_value, exp(log_p), tolerance = 1e-9)
  }
  withr::local_seed(9)
  x <- data.frame(same = class, matrix(sample(class, 570 * 40, TRUE), 570))
  expect_lt(mi_rank(x, class)$q_value[1], 1e-300)
})

test_that("the smooth law is near R's own simulation, and the same beside any other features and on any threads", {
  withr::local_seed(4)
  class <- rep(1:4, each = 10)
  x <- as.data.frame(lapply(1:40, function(j) sample(rep(1:5, 8))))
  names(x) <- paste0("f", 1:40)
  r <- mi_rank(x, class, run = weft_run(threads = 1))
  tables <- stats::r2dtable(20000, rep(8, 5), rep(10, 4))
  scores <- vapply(tables, function(t) sum(f(t)), 0)
  p <- vapply(x[r$feature], function(a) mean(scores >= table_score(a, class) - 1e-9), 0)
  expect_true(all(abs(p - r$p_value) < 5 * sqrt(p * (1 - p) / 20000) + 0.1 * p + 1e-4))
  expect_identical(mi_rank(x, class, run = weft_run(threads = 2))$p_value, r$p_value)
  expect_identical(mi_rank(x[5:1], class)$p_value, r$p_value[r$feature %in% paste0("f", 1:5)])
  beside <- mi_rank(data.frame(x, sure = class, few = rep(1:2, 20)), class)
  expect_identical(beside$p_value[match(r$feature, beside$feature)], r$p_value)
  expect_lt(beside$p_value[1], 1e-15)
})

test_that("under independence p-values are as small as they say", {
  withr::local_seed(10)
  for (case in list(list(40, 5, c(20, 20)), list(60, 4, c(40, 15, 5)), list(150, 6, c(50, 50, 50)))) {
    class <- rep(seq_along(case[[3]]), case[[3]])
    p <- mi_rank(matrix(sample(case[[2]], case[[1]] * 4000, TRUE), case[[1]]), class)$p_value
    expect_lt(mean(p <= 0.05), 0.05 * 1.1 + 3 * sqrt(0.05 * 0.95 / 4000))
    expect_gt(mean(p <= 0.05), 0.045 - 3 * sqrt(0.05 * 0.95 / 4000))
    expect_lt(mean(p <= 0.01), 0.01 * 1.1 + 3 * sqrt(0.01 / 4000))
  }
})

test_that("cells that expect 100 rows: chi-squared with Williams' correction", {
  withr::local_seed(5)
  class <- sample(3, 3000, TRUE)
  x <- as.data.frame(lapply(1:30, function(j) ifelse(runif(3000) < j / 500, class, sample(4, 3000, TRUE))))
  names(x) <- paste0("f", 1:30)
  r <- mi_rank(x, class)
  chi2 <- pchisq(r$statistic / (1 + 5 * 4 / 18000), r$df, lower.tail = FALSE) # margins that are all equal
  for (k in which(chi2 < 0.1)) {
    o <- table(x[[r$feature[k]]], class)
    q <- 1 + (3000 * sum(1 / rowSums(o)) - 1) * (3000 * sum(1 / colSums(o)) - 1) / (6 * 3000 * r$df[k])
    expect_equal(r$p_value[k], pchisq(r$statistic[k] / q, r$df[k], lower.tail = FALSE), tolerance = 1e-3)
  }
  expect_equal(r$p_value[chi2 > 0.1], chi2[chi2 > 0.1], tolerance = 1e-9)
})

test_that("print says which law p-values are from, and what permutations cannot show", {
  withr::local_seed(11)
  class <- rep(1:3, c(40, 15, 5))
  x <- data.frame(few = rep(1:2, 30), many = sample(6, 60, TRUE))
  expect_output(print(mi_rank(x, class)), "1 exact; 1 an approximation")
  expect_output(print(mi_rank(x["few"], class)), "p_value: exact.")
  r <- mi_rank(x, class, permutations = 19, seed = 1)
  shown <- gsub("\\s+", " ", paste(utils::capture.output(print(r)), collapse = " "))
  expect_match(shown, "19 permutations, so no p-value is below 0.05", fixed = TRUE)
  expect_match(shown, "at least 39 permutations", fixed = TRUE)
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
  expect_survives_failures(list(exact = function() mi_rank(x[1:2], class > 2, run = weft_run(threads = 2))))
  expect_survives_failures(list(smooth = function() mi_rank(x[1:2], class, run = weft_run(threads = 1))), most = 8)
  before <- .Call(weft:::C_weft_memory, NULL)[["host"]]
  withr::local_options(weft.poll = 0)
  x <- as.data.frame(matrix(sample(5, 25 * 200, TRUE), 25)) # a law of their own for most of them
  calls <- 0
  stops <- function(done, total) if ((calls <<- calls + 1) > 4) stop("enough")
  expect_error(mi_rank(x, class, run = weft_run(progress = stops)), "enough")
  expect_identical(.Call(weft:::C_weft_memory, NULL)[["host"]], before)
})
