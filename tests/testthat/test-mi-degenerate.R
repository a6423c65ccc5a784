# Columns that say nothing: without any known value, or without one in a class or a stratum. Tables and buffers are
# sized by products of levels; with a factor of 0 they were written past their ends.

# One shape of column in each place of a search: planes and codes, few and many classes.
searches <- list(
  few_levels = list(levels = 3L, classes = 2L), many_classes = list(levels = 8L, classes = 40L),
  coded = list(levels = 40L, classes = 3L), coded_classes = list(levels = 2L, classes = 70L)
)

with_column <- function(kind, levels, classes, n = 400) {
  class <- rep_len(seq_len(classes), n)
  x <- as.data.frame(matrix(sample(levels, 5 * n, TRUE), n))
  x$V2 <- degenerate_column(kind, x$V2, class)
  list(x = x, class = class)
}

test_that("an attribute of a pack has at least one level, with or without known values", {
  for (s in searches) {
    d <- with_column("empty", s$levels, s$classes)
    for (x in list(d$x, transform(d$x, V2 = NA_character_), transform(d$x, V2 = factor(NA, "a")))) {
      pack <- mi_pack(x, d$class, na = "drop")
      expect_identical(min(.Call(weft:::C_weft_mi_pack_info, pack$pointer)$levels), 1L)
      weft_free(pack)
    }
  }
})

test_that("pairs, triples and tuples with a degenerate column have the scores of plain tables", {
  for (s in searches) {
    for (kind in degenerate_kinds) {
      d <- with_column(kind, s$levels, s$classes)
      expect_tuples(mi_pairs(d$x, d$class, na = "drop", top = Inf), reference_tuples(d$x, d$class, 2))
      expect_tuples(mi_triples(d$x, d$class, na = "drop", top = Inf, run = "cpu"),
                    reference_tuples(d$x, d$class, 3))
      expect_tuples(mi_tuples(d$x, d$class, order = 4, na = "drop", top = Inf), reference_tuples(d$x, d$class, 4))
    }
  }
})

test_that("a column without values has information 0 and p-value 1, and no rows", {
  x <- data.frame(id = rep_len(1:20, 64), empty = NA_integer_, other = rep_len(1:3, 64))
  class <- rep_len(1:10, 64)
  pairs <- mi_pairs(x, class, na = "drop", top = Inf, permutations = 4, seed = 1)
  none <- pairs[pairs$feature1 == "empty" | pairs$feature2 == "empty", ]
  expect_identical(none[c("mi", "mi1", "mi2", "interaction", "n", "p_value", "p_fwer")],
                   list2DF(list(mi = c(0, 0), mi1 = c(0, 0), mi2 = c(0, 0), interaction = c(0, 0), n = c(0, 0),
                                p_value = c(1, 1), p_fwer = c(1, 1))), ignore_attr = TRUE)
  rank <- mi_rank(x, class, na = "drop")
  at <- rank$feature == "empty"
  expect_identical(unlist(rank[at, c("mi", "entropy", "n", "p_value")], use.names = FALSE), c(0, 0, 0, 1))
  m <- mi_matrix(x, na = "drop")
  expect_identical(unname(m["empty", ]), numeric(3))
  expect_identical(plain_matrix(mi_matrix(x, x, na = "drop"))[2, ], numeric(3))
  expect_identical(mi_select(x, class, k = 3, na = "drop", method = "mim")$score[3], 0)
})

test_that("strata in which a column has no value, and columns without any, take no part", {
  n <- 500
  x <- as.data.frame(matrix(sample(0:2, 6 * n, TRUE), n))
  strata <- rep(1:5, n / 5)
  class <- rep(1:2, n / 2)
  x$V2[strata == 3] <- NA
  whole <- mi_pairs(x[strata != 3, ], class[strata != 3], strata = strata[strata != 3], na = "drop", top = Inf)
  some <- mi_pairs(x, class, strata = strata, na = "drop", top = Inf)
  of_v2 <- function(d) d[d$feature1 == "V2" | d$feature2 == "V2", ]
  expect_equal(as.data.frame(of_v2(some)), as.data.frame(of_v2(whole)), tolerance = 1e-12, ignore_attr = TRUE)
  x$V1 <- NA
  one <- mi_pairs(x, class, features = 1, strata = strata, na = "drop", control = list(with = 5))
  expect_identical(unlist(one[c("mi", "interaction", "n")], use.names = FALSE), numeric(3))
})

test_that("a genotype that failed everywhere is a column without values", {
  codes <- matrix(sample(0:2, 300 * 10, TRUE), 300, dimnames = list(NULL, sprintf("s%d", 1:10)))
  codes[, 4] <- NA
  codes[1:50, 5] <- NA
  stem <- write_genotypes(file.path(withr::local_tempdir(), "x"), codes)
  class <- rep(c(NA, 1:2), c(50, 125, 125))
  names <- sprintf("rs%d", 1:10)
  reference <- reference_tuples(stats::setNames(as.data.frame(codes), names), class, 2)
  for (x in list(plink_file(stem), read_plink(stem))) {
    expect_tuples(mi_pairs(x, class, na = "drop", top = Inf), reference)
  }
})
