# Information within strata, against tables in R.

# I(class; the columns together | stratum) over the rows where all are known, and how many these are.
information_within <- function(columns, class, strata, rows) {
  of <- vapply(unique(strata[rows]), function(s) reference_information(columns, class, rows & strata %in% s),
               numeric(2))
  if (!any(rows)) return(c(0, 0))
  c(sum(of[1, ] * of[2, ]) / sum(of[2, ]), sum(of[2, ]))
}

pairs_within <- function(x, class, strata) {
  sets <- utils::combn(ncol(x), 2)
  rows <- apply(sets, 2, function(at) {
    known <- stats::complete.cases(x[at], class, strata)
    of <- function(which) information_within(x[which], class, strata, known)[1]
    each <- vapply(at, of, 0)
    c(of(at), each, of(at) - sum(each), sum(known))
  })
  out <- as.data.frame(cbind(t(sets), t(rows)))
  names(out) <- c("feature1", "feature2", "mi", "mi1", "mi2", "interaction", "n")
  for (k in 1:2) out[[k]] <- names(x)[out[[k]]]
  out
}

test_that("every pair of every kind of column has the information that tables by stratum give", {
  set.seed(1)
  for (n in c(1, 30, 400)) {
    x <- mixed_columns(n)
    class <- sample(c("a", "b", "c", NA), n, TRUE, c(5, 4, 1, 0.3))
    class[1] <- "a"
    strata <- sample(c(1:4, NA), n, TRUE, c(5, 3, 1, 0.1, 0.2))
    strata[1] <- 1
    reference <- pairs_within(x, class, strata)
    found <- mi_pairs(x, class, strata = strata, top = Inf, na = "drop")
    expect_tuples(found, reference)
    full <- mi_pairs(x, class, strata = strata, na = "drop", control = list(full = TRUE))
    below <- lower.tri(full$mi)
    expect_equal(full$mi[below], reference$mi, tolerance = 1e-12)
    expect_equal(full$interaction[below], reference$interaction, tolerance = 1e-12)
  }
  # of more combinations of class and stratum than have planes
  x <- data.frame(a = sample(2, 600, TRUE), b = sample(c(1:3, NA), 600, TRUE), c = sample(5, 600, TRUE))
  class <- sample(9, 600, TRUE)
  strata <- sample(12, 600, TRUE)
  expect_tuples(mi_pairs(x, class, strata = strata, na = "drop"), pairs_within(x, class, strata))
})

test_that("the best within strata are the first of all, whatever the threads and vector code", {
  set.seed(2)
  x <- as.data.frame(lapply(rep(2:4, 15), function(l) replace(sample(l, 300, TRUE), runif(300) < l / 50, NA)))
  names(x) <- sprintf("v%d", seq_along(x))
  x[seq(1, 45, 3)] <- lapply(seq(1, 45, 3), function(k) sample(2, 300, TRUE)) # complete
  class <- sample(2, 300, TRUE)
  strata <- sample(3, 300, TRUE)
  for (by in c("mi", "interaction")) {
    all <- as.data.frame(mi_pairs(x, class, strata = strata, top = Inf, na = "drop", by = by))
    for (level in simd_levels()) {
      for (threads in 1:2) {
        best <- with_simd_level(level, mi_pairs(x, class, strata = strata, top = 30, na = "drop", by = by,
                                                run = weft_run(threads = threads)))
        expect_identical(as.data.frame(best), all[1:30, ], ignore_attr = "row.names")
      }
    }
  }
})

test_that("what strata say of the class is in no score, and one stratum changes nothing", {
  set.seed(3)
  n <- 4000
  strata <- rep(c("old", "new"), each = n / 2)
  rate <- ifelse(strata == "old", 0.1, 0.6) # genotypes and class hang on the stratum, not on each other
  x <- replicate(6, stats::rbinom(n, 2, rate))
  class <- stats::rbinom(n, 1, rate)
  expect_gt(mi_pairs(x, class)$mi[1], 0.1)
  expect_lt(mi_pairs(x, class, strata = strata)$mi[1], 0.01)
  plain <- mi_pairs(x, class)
  expect_identical(tidy(mi_pairs(x, class, strata = rep(1, n))), tidy(plain))
  expect_identical(attr(mi_pairs(x, class, strata = strata), "strata"), c("new", "old"))
  expect_output(print(mi_pairs(x, class, strata = strata)), "a class of 2 levels within 2 strata", fixed = TRUE)
  expect_output(print(plain), "a class of 2 levels (bits)", fixed = TRUE)
})

test_that("permutations exchange labels within strata", {
  set.seed(4)
  n <- 200
  strata <- rep(1:2, n / 2)
  x <- data.frame(a = strata, b = sample(2, n, TRUE), c = strata)
  # the class is its stratum: no exchange within it changes anything
  same <- mi_pairs(x, strata, strata = strata, permutations = 19, seed = 1)
  expect_identical(same$mi, c(0, 0, 0))
  expect_identical(same$p_value, c(1, 1, 1))
  # a pair that holds within strata only
  class <- ifelse(strata == 1, x$b, 3L - x$b)
  found <- mi_pairs(x, class, strata = strata, permutations = 19, seed = 1)
  expect_equal(found$mi[1:2], rep(1, 2), tolerance = 0.01)
  expect_identical(found$p_fwer[1], 1 / 20)
  expect_identical(tidy(mi_pairs(x, class, strata = strata, permutations = 19, seed = 1)), tidy(found))
})

test_that("strata that do not fit are named", {
  x <- matrix(sample(0:1, 40, TRUE), 10)
  class <- rep(1:2, 5)
  expect_error(mi_pairs(x, class, strata = 1:9), "`strata` must have one value per row", class = "weft_error_input")
  expect_error(mi_pairs(x, class, strata = c(NA, 1:9)), "`strata` must not have missing values",
               class = "weft_error_input")
  expect_error(mi_pairs(x, class, strata = runif(10)), "`strata` must contain categories", class = "weft_error_input")
  expect_error(mi_pairs(x, class, strata = replace(rep(NA, 10), 11, 1)[1:10], na = "drop"), "at least one",
               class = "weft_error_input")
  pack <- mi_pack(x, class)
  expect_error(mi_pairs(pack, strata = class), "`strata` must not be given", class = "weft_error_input")
  many <- seq_len(300)
  expect_error(mi_pairs(matrix(0:1, 300, 2), many, strata = many), "at most 65535 combinations",
               class = "weft_error_input")
})
