# The draws against their laws, against published words, and against themselves: any cut, any number of threads and both
# back ends give the same bits. All seeds are fixed, so that a bound which holds once holds always.

every_kind <- list(
  list("words"), list("words", 3), list("uniform"), list("normal"), list("exponential"), list("gumbel"),
  list("gamma", 0.02), list("gamma", 0.7), list("gamma", 1), list("gamma", 3.5), list("gamma", 1e10),
  list("log_gamma", 1e-300), list("log_gamma", 1e-3), list("log_gamma", 12), list("log_gamma", 1e300),
  list("beta", 2, 3), list("beta", 0.1, 40), list("log_beta", 1e-5, 1e-5), list("log_beta", 3, 0.2),
  list("log1m_beta", 1e-300, 1e-200), list("log1m_beta", 1e6, 2),
  list("below", 6), list("below", 3 * 2^51), list("below", 3 * 2^62),
  list("categorical", 10, 0.5), list("categorical", 2, -1),
  list("categorical_log", 10, 0.5), list("categorical_log", 2, -1)
)

draw_like <- function(kind, n, ...) {
  do.call(draws, c(list(kind = kind[[1]], n = n, a = c(kind, 0, 0)[[2]], b = c(kind, 0, 0)[[3]]), list(...)))
}

label_of <- function(kind) paste(unlist(kind), collapse = " ")

# sqrt(n) times the Kolmogorov-Smirnov distance; above 2.23 with probability 1e-4 (2 exp(-2 x^2)).
ks_distance <- function(x, law) {
  p <- law(sort(x))
  n <- length(x)
  sqrt(n) * max(seq_len(n) / n - p, p - (seq_len(n) - 1) / n)
}

expect_law <- function(x, law, label) {
  expect_false(anyNA(x), label = label)
  expect_lt(ks_distance(x, law), 2.23, label = paste("KS distance of", label))
}

expect_counts <- function(x, probability, label) {
  counts <- tabulate(x + 1, length(probability))
  expect_identical(sum(counts), length(x), label = label)
  expect_gt(suppressWarnings(chisq.test(counts, p = probability)$p.value), 1e-4,
            label = paste("chi-square p of", label))
}

test_that("words are those that Random123 publishes for philox4x32-10", {
  hex <- function(text) strtoi_double(strsplit(text, " ")[[1]])
  strtoi_double <- function(x) strtoi(substr(x, 1, 4), 16L) * 65536 + strtoi(substr(x, 5, 8), 16L)
  known <- function(counter, key) {
    counter <- hex(counter)
    draws("words", 1, a = counter[4], stream = counter[3], first = counter[2:1], key = rev(hex(key)))
  }
  expect_identical(
    known("00000000 00000000 00000000 00000000", "00000000 00000000"),
    hex("6627e8d5 e169c58d bc57ac4c 9b00dbd8")
  )
  expect_identical(
    known("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff"),
    hex("408f276d 41c83b0e a20bc7c6 6d5451fd")
  )
  expect_identical(
    known("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0"),
    hex("d16cfe09 94fdcceb 5001e420 24126ea1")
  )
})

test_that("a uniform is an odd multiple of 2^-53 made of the first two words, so neither 0 nor 1", {
  from_words <- function(high, low) {
    k <- high * 2^21 + low %/% 2^11
    (k + (k %% 2 == 0)) / 2^53
  }
  words <- matrix(draws("words", 1e5, key = 21), 4)
  u <- draws("uniform", 1e5, key = 21)
  expect_identical(u, from_words(words[1, ], words[2, ]))
  expect_identical(from_words(0, 0), 2^-53)
  expect_identical(1 - from_words(2^32 - 1, 2^32 - 1), 2^-53)
  expect_true(all(u > 0 & u < 1))
})

test_that("uniform, normal, exponential and gumbel follow their laws", {
  n <- 1e5
  expect_law(draws("uniform", n, key = 3), punif, "uniform")
  expect_law(draws("normal", n, key = 3), pnorm, "normal")
  expect_law(draws("exponential", n, key = 3), pexp, "exponential")
  expect_law(draws("gumbel", n, key = 3), function(g) exp(-exp(-g)), "gumbel")
  x <- draws("normal", 1e6, key = 4)
  beyond_three <- sum(abs(x) > 3)
  expect_lt(abs(beyond_three - 1e6 * 2 * pnorm(-3)), 4 * sqrt(1e6 * 2 * pnorm(-3)))
})

# P(log G <= t). Below exp(-30) only the first term of the series is left: x^a / Gamma(a + 1).
log_gamma_law <- function(shape) {
  function(t) ifelse(t < -30, exp(shape * t - lgamma(shape + 1)), pgamma(exp(t), shape))
}

test_that("gammas follow their law at every shape", {
  for (shape in c(0.3, 0.999, 1, 1.5, 7, 123, 1e4, 1e10)) {
    expect_law(draws("gamma", 5e4, shape, key = 5), function(x) pgamma(x, shape), paste("gamma", shape))
  }
  for (shape in c(1e-300, 1e-100, 1e-8, 1e-3, 0.1, 0.9, 1, 20, 1e6, 1e10)) {
    x <- draws("log_gamma", 5e4, shape, key = 6)
    expect_true(all(is.finite(x)))
    expect_law(x, log_gamma_law(shape), paste("log_gamma", shape))
  }
})

test_that("log_gamma is the logarithm of gamma, and a gamma of a huge shape is its shape", {
  for (shape in c(0.05, 0.8, 1, 50, 1e10)) {
    # exp and log each within 1 ulp; the error of exp grows with its argument, here at most 745
    expect_equal(log(draws("gamma", 1000, shape)), draws("log_gamma", 1000, shape), tolerance = 1e-13)
  }
  expect_equal(draws("gamma", 1000, 1e300), rep(1e300, 1000), tolerance = 1e-15)
  # deviations in units of the standard deviation: the acceptance step must not lose itself to cancellation
  x <- (draws("gamma", 5e4, 1e12, key = 7) - 1e12) / 1e6
  expect_law(x, pnorm, "gamma 1e12, standardised")
})

# P(log(x / (1 - x)) <= t) with the first term of the series beyond 30 on either side.
log_odds_law <- function(a, b) {
  lower <- function(t, a, b) exp(a * t - log(a) - lbeta(a, b))
  function(t) {
    ifelse(t < -30, lower(t, a, b), ifelse(t > 30, 1 - lower(-t, b, a), pbeta(plogis(t), a, b)))
  }
}

test_that("betas follow their law at every pair of shapes, and both logarithms are finite", {
  for (shapes in list(c(1, 1), c(2, 3), c(0.5, 0.5), c(30, 0.7), c(1e10, 1e10))) {
    x <- draws("beta", 5e4, shapes[1], shapes[2], key = 8)
    expect_law(x, function(x) pbeta(x, shapes[1], shapes[2]), paste("beta", label_of(shapes)))
  }
  for (shapes in list(
    c(1e-300, 1e-300), c(1e-300, 3e-300), c(1e-5, 1e-5), c(1e-3, 5), c(0.2, 0.01), c(1, 1), c(4, 700), c(1e8, 1e-2)
  )) {
    log_x <- draws("log_beta", 5e4, shapes[1], shapes[2], key = 9)
    log_1mx <- draws("log1m_beta", 5e4, shapes[1], shapes[2], key = 9)
    expect_true(all(is.finite(log_x) & is.finite(log_1mx) & log_x <= 0 & log_1mx <= 0))
    expect_equal(exp(log_x) + exp(log_1mx), rep(1, 5e4), tolerance = 1e-15)
    expect_law(log_x - log_1mx, log_odds_law(shapes[1], shapes[2]), paste("log odds of beta", label_of(shapes)))
  }
  expect_equal(log(draws("beta", 1000, 2, 3)), draws("log_beta", 1000, 2, 3), tolerance = 1e-14)
})

test_that("whole numbers below n are uniform", {
  expect_identical(draws("below", 100, 1), numeric(100))
  for (n in c(2, 6, 1000)) expect_counts(draws("below", 1e5, n, key = 10), rep(1 / n, n), paste("below", n))
  x <- draws("below", 1e5, 3 * 2^51, key = 11)
  expect_true(all(x == floor(x) & x >= 0 & x < 3 * 2^51))
  expect_counts(x %/% 2^51, rep(1 / 3, 3), "thirds of below 3 * 2^51")
  expect_counts(x %% 8, rep(1 / 8, 8), "last bits of below 3 * 2^51")
  # n = 3 * 2^62: every third result has two of the 2^64 words, so a word that is a multiple of 4 must be passed over
  words <- matrix(draws("words", 1e5, key = 11), 4)
  passed_over <- words[2, ] %% 4 == 0
  settled <- !passed_over | words[4, ] %% 4 != 0
  word <- ifelse(passed_over, words[3, ] * 2^32 + words[4, ], words[1, ] * 2^32 + words[2, ])
  x <- draws("below", 1e5, 3 * 2^62, key = 11)
  expect_gt(sum(passed_over & settled), 1000)
  expect_lt(max(abs(x - 0.75 * word)[settled]), 2^64 * 2^-51)
})

test_that("categories come in proportion to their weights, from weights and from their logarithms", {
  for (kind in c("categorical", "categorical_log")) {
    for (n in c(1, 2, 7, 64)) {
      weights <- 1 + 0.5 * (seq_len(n) - 1)
      x <- draws(kind, 1e5, n, 0.5, key = 12)
      if (n == 1) expect_identical(x, numeric(1e5)) else expect_counts(x, weights / sum(weights), paste(kind, n))
    }
    expect_identical(draws(kind, 1000, 2, -1), numeric(1000))
    expect_error(draws(kind, 1, 3, -1), "weight")
  }
})

test_that("neighbouring indices, streams, keys and sub-counters are independent", {
  n <- 1e5
  cells <- function(x, y) floor(16 * x) + 16 * floor(16 * y)
  u <- draws("uniform", n, key = 13)
  others <- list(
    index = draws("uniform", n, key = 13, first = 1),
    stream = draws("uniform", n, key = 13, stream = 1),
    key = draws("uniform", n, key = 14),
    high_key = draws("uniform", n, key = c(1, 13)),
    high_index = draws("uniform", n, key = 13, first = c(1, 0)),
    sub = matrix(draws("words", n, a = 1, key = 13), 4)[1, ] / 2^32
  )
  for (name in names(others)) {
    expect_counts(cells(u, others[[name]]), rep(1 / 256, 256), paste("pairs by", name))
    expect_lt(abs(cor(u, others[[name]])) * sqrt(n), 4)
  }
  pair <- matrix(draws("words", n, key = 13) / 2^32, 4)
  expect_counts(cells(pair[1, ], pair[3, ]), rep(1 / 256, 256), "words 0 and 2 of a block")
})

test_that("any cut of the indices and any number of threads give the same bits", {
  for (kind in every_kind) {
    n <- if (kind[[1]] == "categorical_log") 40000 else 70000
    whole <- draw_like(kind, n, key = 15, first = 2^32 - 1000, threads = 1)
    expect_identical(draw_like(kind, n, key = 15, first = 2^32 - 1000, threads = 2), whole, label = label_of(kind))
    parts <- c(
      draw_like(kind, 777, key = 15, first = 2^32 - 1000),
      draw_like(kind, n - 777, key = 15, first = 2^32 - 223, threads = 2)
    )
    expect_identical(parts, whole, label = label_of(kind))
    expect_identical(draw_like(kind, 0), numeric(0))
  }
})

test_that("the index runs through all 64 bits and wraps", {
  around <- draws("uniform", 16, first = c(2^32 - 1, 2^32 - 8))
  expect_identical(around[9:16], draws("uniform", 8, first = 0))
  expect_identical(anyDuplicated(around), 0L)
})

test_that("parameters outside a kind's range are refused", {
  expect_error(draws("gamma", 1, 0), "shape")
  expect_error(draws("log_gamma", 1, NaN), "shape")
  expect_error(draws("beta", 1, 1, Inf), "shapes")
  expect_error(draws("below", 1, 0.5), "below 2\\^64")
  expect_error(draws("categorical", 1, 65), "categories")
  expect_error(draws("words", 1, -1), "sub-counter")
  expect_error(draws("curand_words", 1), "CUDA")
})

test_that("CUDA draws the same bits as the CPU", {
  skip_if_no_cuda()
  for (kind in every_kind) {
    for (first in list(0, 2^32 - 1000, c(2^32 - 1, 2^32 - 5000))) {
      cpu <- draw_like(kind, 20000, key = c(77, 15), stream = 9, first = first)
      cuda <- draw_like(kind, 20000, key = c(77, 15), stream = 9, first = first, backend = "cuda")
      expect_identical(cuda, cpu, label = label_of(kind))
    }
  }
  # more than one launch
  expect_identical(draws("normal", 5e6, backend = "cuda"), draws("normal", 5e6))
})

test_that("our words are cuRAND's Philox words", {
  skip_if_no_cuda()
  for (first in c(0, 1, 2^32 - 500, 2^50)) {
    for (place in list(c(0, 0), c(5, 0), c(2^32 - 1, 0), c(5, 2^31 + 3), c(2^32 - 1, 2^32 - 1))) {
      ours <- draws("words", 1000, a = place[2], key = c(123456789, 987654321), stream = place[1], first = first)
      theirs <- draws("curand_words", 1000,
        a = place[2], key = c(123456789, 987654321), stream = place[1], first = first, backend = "cuda"
      )
      expect_identical(theirs, ours)
    }
  }
})
