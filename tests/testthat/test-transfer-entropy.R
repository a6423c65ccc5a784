# A reference in plain loops: tables of (now, before, source) of every pair.
slow_entropy <- function(codes, now, before, source_rows = before) {
  p <- ncol(codes)
  out <- matrix(0, p, p)
  for (i in seq_len(p)) for (j in seq_len(p)) {
    table <- table(codes[now, j], codes[before, j], codes[source_rows, i]) / length(now)
    whole <- function(keep) if (length(keep)) apply(table, keep, sum) else 1
    entropy <- function(keep) -sum(ifelse(whole(keep) > 0, whole(keep) * log2(whole(keep)), 0))
    out[i, j] <- entropy(c(1, 2)) + entropy(c(2, 3)) - entropy(2) - entropy(1:3)
  }
  out
}

cut_columns <- function(x, bins) {
  vapply(as.data.frame(x), function(v) {
    cuts <- sort(v)[ceiling(seq_len(bins - 1) * length(v) / bins)]
    rowSums(outer(v, unique(cuts[cuts < max(v)]), ">"))
  }, numeric(nrow(x)))
}

followed <- function(n = 200, p = 5) {
  x <- matrix(rnorm(n * p), n, dimnames = list(NULL, sprintf("g%d", seq_len(p))))
  x[-1, 2] <- x[-n, 1] + rnorm(n - 1) / 2
  x[, 3] <- round(x[, 3])
  x
}

all_pairs <- function(m, e, names) m[cbind(match(e$from, names), match(e$to, names))]

test_that("scores are as from tables in plain loops, for any levels, lag and series", {
  set.seed(1)
  for (bins in c(2, 3, 4, 7)) for (lag in 1:2) {
    x <- followed()
    unit <- rep(1:3, c(90, 60, 50))
    shuffled <- sample(200)
    e <- transfer_entropy(x[shuffled, ], list(shuffled, unit[shuffled]), bins = bins, permutations = 0,
                          control = list(lag = lag))
    now <- unlist(lapply(1:3, function(s) which(unit == s)[-seq_len(lag)]))
    expected <- slow_entropy(cut_columns(x, bins), now, now - lag)
    expect_equal(nrow(e), 20)
    expect_equal(attr(e, "steps"), 200 - 3 * lag)
    expect_equal(e$te + e$bias, all_pairs(expected, e, colnames(x)), tolerance = 1e-12)
    if (lag == 1) expect_equal(c(e$from[1L], e$to[1L]), c("g1", "g2"))
    # without copies, what is usual is the degrees of freedom
    codes <- cut_columns(x, bins)
    df <- outer(apply(codes[now - lag, ], 2, function(v) length(unique(v)) - 1), vapply(1:5, function(j) {
      sum(tapply(codes[now, j], codes[now - lag, j], function(v) length(unique(v)) - 1))
    }, 0))
    expect_equal(e$bias, all_pairs(df, e, colnames(x)) / (2 * log(2) * length(now)), tolerance = 1e-12)
    ratio <- (e$te + e$bias) / e$bias
    spread <- 2 / (9 * all_pairs(df, e, colnames(x)))
    expect_equal(e$z, (ratio^(1 / 3) - 1 + spread) / sqrt(spread), tolerance = 1e-10)
  }
})

test_that("copies go round, give what is usual in their first half, and p-values in the second", {
  set.seed(2)
  x <- followed(120, 4)
  unit <- rep(1:2, c(70, 50))
  copies <- 40
  e <- transfer_entropy(x, list(c(1:70, 1:50), unit), bins = 3, permutations = copies, fdr = 1, seed = 7)
  codes <- cut_columns(x, 3)
  now <- setdiff(1:120, c(1, 71))
  n <- length(now)
  series <- split(seq_len(n), unit[now])
  by <- vapply(series, function(own) { # the draws of weft, the rest by itself
    draws <- weft:::draws("below", 2 * copies, length(own) - 1, key = weft:::mi_key(7), stream = 74)
    1 + draws[2 * seq_len(copies) - (own[1L] == 1)]
  }, numeric(copies))
  null <- lapply(seq_len(copies), function(copy) {
    rows <- now - 1
    for (s in 1:2) rows[series[[s]]] <- rows[series[[s]][(seq_along(series[[s]]) - 1 + by[copy, s]) %%
                                                           length(series[[s]]) + 1]]
    2 * log(2) * n * slow_entropy(codes, now, now - 1, rows)
  })
  df <- outer(rep(2, 4), vapply(1:4, function(j) {
    sum(tapply(codes[now, j], codes[now - 1, j], function(v) length(unique(v)) - 1))
  }, 0))
  diag(df) <- NA
  ratios <- lapply(null, `/`, df)
  of <- function(f) Reduce(`+`, lapply(ratios[1:20], f, na.rm = TRUE))
  grand <- sum(of(rowSums)) / (20 * 12)
  usual <- outer((of(rowSums) + 10 * grand) / (20 * 3 + 10), (of(colSums) + 10 * grand) / (20 * 3 + 10)) / grand
  z_of <- function(ratio) ((ratio / usual)^(1 / 3) - 1 + 2 / (9 * df)) / sqrt(2 / (9 * df))
  spread <- unlist(lapply(ratios[21:40], z_of))
  spread <- spread[!is.na(spread)]
  at <- cbind(match(e$from, colnames(x)), match(e$to, colnames(x)))
  expect_equal(e$bias, (usual * df)[at] / (2 * log(2) * n), tolerance = 1e-4) # means are kept in parts of 2^-16
  expect_equal(e$z, z_of(2 * log(2) * n * slow_entropy(codes, now, now - 1) / df)[at], tolerance = 1e-3)
  p <- vapply(e$z, function(z) (1 + sum(floor(64 * spread) >= floor(64 * z))) / (1 + length(spread)), 0)
  expect_equal(e$p_value, p, tolerance = 0.1) # a score at the edge of a step may move
  expect_true(all(diff(e$z) <= 0) && all(diff(e$p_value) >= 0) && all(diff(e$q_value) >= 0))
  expect_equal(e$q_value, pmin(1, rev(cummin(rev(e$p_value * 12 / rank(e$p_value, ties.method = "max"))))))
})

test_that("equal seeds give equal edges with any number of threads; fdr and top cut", {
  set.seed(3)
  x <- followed(300, 40)
  one <- transfer_entropy(x, 1:300, fdr = 1, seed = 4, run = weft_run(threads = 1))
  two <- transfer_entropy(x, 1:300, fdr = 1, seed = 4, run = weft_run(threads = 2))
  expect_identical(as.data.frame(one), as.data.frame(two))
  few <- transfer_entropy(x, 1:300, seed = 4)
  expect_identical(as.data.frame(few), as.data.frame(one)[one$q_value <= 0.05, ])
  expect_equal(attr(few, "significant"), nrow(few))
  top <- transfer_entropy(x, 1:300, fdr = 1, seed = 4, control = list(top = 7))
  expect_identical(as.data.frame(top), head(as.data.frame(one), 7L))
  some <- transfer_entropy(x, 1:300, c("g1", "g5"), c("g2", "g5", "g9"), fdr = 1, seed = 4, permutations = 0)
  all <- transfer_entropy(x, 1:300, permutations = 0)
  both <- merge(as.data.frame(some), as.data.frame(all), by = c("from", "to"))
  expect_equal(nrow(both), 5)
  expect_identical(both$te.x, both$te.y)
})

test_that("levels may be given; sparse, dense and stored data are the same", {
  set.seed(4)
  x <- Matrix::rsparsematrix(150, 12, 0.3)
  colnames(x) <- letters[1:12]
  e <- as.data.frame(transfer_entropy(x, 1:150, bins = 4, fdr = 1, seed = 1))
  expect_identical(as.data.frame(transfer_entropy(as.matrix(x), 1:150, bins = 4, fdr = 1, seed = 1)), e)
  cut <- as.data.frame(discretize(as.data.frame(as.matrix(x)), bins = 4))
  expect_identical(as.data.frame(transfer_entropy(cut, 1:150, bins = NULL, fdr = 1, seed = 1)), e)
  expect_identical(as.data.frame(transfer_entropy(exp(as.matrix(x)), 1:150, bins = 4, fdr = 1, seed = 1)), e)
})

test_that("independent series that change slowly give p-values of their level, where chi-squared does not", {
  set.seed(5)
  n <- 400
  x <- vapply(1:40, function(j) {
    sin(2 * pi * (seq_len(n) / n * runif(1, 0.3, 2) + runif(1))) * runif(1, 0, 2) + rnorm(n)
  }, numeric(n))
  e <- transfer_entropy(x, seq_len(n), fdr = 1, seed = 1)
  expect_lt(mean(e$p_value <= 0.05), 0.12) # ten sets: .071, standard error .002
  expect_equal(sum(e$q_value <= 0.05), 0)
  expect_gt(mean(pchisq(2 * log(2) * (n - 1) * (e$te + e$bias), 12, lower.tail = FALSE) <= 0.05), 0.15)
})

test_that("constant genes have no edges, and hard values no surprises", {
  x <- cbind(a = rep(1, 30), b = rep(c(1, 2), 15), c = c(-Inf, rnorm(28), Inf), d = rnorm(30) * 1e300)
  e <- transfer_entropy(x, 1:30, permutations = 0)
  expect_false("a" %in% c(e$from, e$to))
  expect_true(all(is.finite(e$z)))
  expect_false("b" %in% e$to) # what follows is known
  none <- transfer_entropy(x[, c("a", "a")], 1:30, permutations = 0)
  expect_equal(nrow(none), 0)
  expect_equal(nrow(transfer_entropy(x[, "c", drop = FALSE], 1:30)), 0)
  expect_output(print(none), "0 ordered pairs")
})

test_that("wrong arguments are named", {
  x <- followed(40, 3)
  expect_error(transfer_entropy(x, 1:39), "one value per row", class = "weft_error_input")
  expect_error(transfer_entropy(x, rep(NA_real_, 40)), "a series of more than 2 samples", class = "weft_error_input")
  expect_error(transfer_entropy(x, 1:40, permutations = 3), "must be even", class = "weft_error_input")
  expect_error(transfer_entropy(x, 1:40, bins = NULL), "whole numbers with at most 16 levels",
               class = "weft_error_input")
  expect_error(transfer_entropy(replace(x, 3, NA), 1:40), "missing values", class = "weft_error_input")
  expect_error(transfer_entropy(x, rep(1:2, 20), list()), class = "weft_error_input")
  expect_error(transfer_entropy(x, list(rep(1:2, 20), rep(1:20, each = 2))), "too few possible permutations",
               class = "weft_error_input")
  expect_error(transfer_entropy(x, 1:40, tau = 2), "control = list\\(lag", class = "weft_error_input")
})

test_that("results are printed, summarised and converted", {
  set.seed(6)
  x <- followed(200, 4)
  e <- transfer_entropy(x, 1:200, seed = 1)
  expect_output(print(e), "199 steps of one series")
  expect_equal(names(tidy(e))[5:7], c("statistic", "p.value", "adj.p.value"))
  expect_equal(glance(e)$tested, 12)
  expect_equal(summary(e)$from[["g1"]], 1)
  skip_if_not_installed("igraph")
  expect_equal(igraph::ecount(as_igraph(e)), nrow(e))
})
