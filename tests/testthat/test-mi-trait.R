# F tests of pairs on a quantitative trait, against stats::anova() of stats::lm().

anova_of <- function(a, b, y) {
  rows <- !is.na(a) & !is.na(b) & !is.na(y)
  d <- data.frame(a = factor(a[rows]), b = factor(b[rows]), y = y[rows])
  whole <- stats::lm(y ~ interaction(a, b, drop = TRUE), d)
  one <- stats::anova(stats::lm(y ~ 1, d), whole)
  added <- stats::anova(stats::lm(y ~ a + b, d), whole)
  c(nrow(d), one$F[2L], one$`Pr(>F)`[2L], added$F[2L], added$`Pr(>F)`[2L])
}

tested <- function(table) unname(as.matrix(table[c("n", "f_joint", "p_joint", "f_interaction", "p_interaction")]))

test_that("F tests are those of linear models, of raw numbers and of normal scores", {
  set.seed(1)
  n <- 300
  x <- as.data.frame(matrix(sample(0:2, n * 6, TRUE, c(0.6, 0.3, 0.1)), n))
  x$V2 <- factor(c("a", "b")[1 + x$V2 %% 2])
  x$V3[sample(n, 40)] <- NA
  trait <- stats::rnorm(n, 100, 3) + 6 * (x$V1 == 1) * (x$V4 == 0)
  trait[c(3, 90)] <- NA
  found <- mi_pairs(x, discretize(data.frame(trait), bins = 3)$trait, top = 15, na = "drop")
  expect <- function(y) t(mapply(function(i, j) anova_of(x[[i]], x[[j]], y), found$feature1, found$feature2,
                                 USE.NAMES = FALSE))
  raw <- mi_trait(found, x, trait, "raw")
  expect_equal(tested(raw), expect(trait), tolerance = 1e-9)
  scores <- trait
  scores[!is.na(trait)] <- stats::qnorm((rank(trait[!is.na(trait)]) - 0.5) / sum(!is.na(trait)))
  normal <- mi_trait(found, x, trait)
  expect_equal(tested(normal), expect(scores), tolerance = 1e-9)
  expect_identical(normal$p_bonferroni, pmin(1, normal$p_interaction * choose(6, 2)))
  best <- normal[which.min(normal$p_interaction), ]
  expect_identical(sort(c(best$feature1, best$feature2)), c("V1", "V4"))
})

test_that("normal scores do not change with the trait's scale, and raw F do not with its unit", {
  set.seed(2)
  x <- matrix(sample(0:2, 200 * 5, TRUE), 200)
  trait <- stats::rnorm(200)
  found <- mi_pairs(x, discretize(data.frame(trait), bins = 2)$trait)
  expect_equal(mi_trait(found, x, trait), mi_trait(found, x, exp(3 * trait)))
  expect_equal(mi_trait(found, x, trait, "raw"), mi_trait(found, x, 1e200 * trait, "raw"), tolerance = 1e-9)
  expect_equal(mi_trait(found, x, trait, "raw"), mi_trait(found, x, 1e6 + trait, "raw"), tolerance = 1e-6)
})

test_that("tables without a test are NA, and no table is an empty result", {
  x <- data.frame(one = 1L, two = rep(1:2, 6), three = rep(1:3, 4), all = 1:12)
  trait <- c(1, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 12)
  found <- mi_pairs(x, rep(1:2, each = 6))
  out <- mi_trait(found, x, trait)
  with_one <- found$feature1 == "one"
  expect_true(all(is.na(out$f_interaction[with_one])))
  expect_true(all(is.na(out$p_joint[out$feature2 == "all"]))) # a cell for each row
  expect_false(anyNA(out[out$feature1 == "two" & out$feature2 == "three", -(1:2)]))
  expect_identical(nrow(mi_trait(mi_pairs(x, rep(1:2, 6), control = list(min_mi = 5)), x, trait)), 0L)
  expect_identical(mi_trait(found, x, rep(2, 12))$f_joint[!is.na(out$f_joint)], rep(0, sum(!is.na(out$f_joint))))
})

test_that("what is wrong with pairs, data and trait is said", {
  set.seed(4)
  x <- as.data.frame(matrix(sample(0:2, 60 * 4, TRUE), 60))
  class <- rep(1:2, 30)
  found <- mi_pairs(x, class)
  pack <- mi_pack(x, class)
  on.exit(weft_free(pack))
  wrong <- function(message, ...) expect_error(mi_trait(...), message, class = "weft_error_input")
  wrong("table of pairs", mi_triples(x, class), x, 1:60)
  wrong("table of pairs", as.data.frame(found), x, 1:60)
  wrong("is a pack", found, pack, 1:60)
  wrong("There is no `V1`", found, x[2:4], 1:60)
  wrong("must have one value per row of `x` .60", found, x, 1:59)
  wrong("one number per row", found, x, factor(1:60))
  wrong("finite or NA", found, x, c(Inf, 2:60))
  twice <- stats::setNames(x, c("V1", "V2", "V3", "V3"))
  wrong("unique names", mi_pairs(x[1:3], class), cbind(twice, V4 = 1L), 1:60)
  attr(found, "searched") <- "many"
  wrong("an unmodified weft result", found, x, 1:60)
})
