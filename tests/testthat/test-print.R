# What is printed fits a console.

test_that("rows fit the console: long names lose their middle, spare columns go and are named", {
  withr::local_options(width = 60)
  d <- data.frame(feature = paste0("a_rather_long_name_of_a_feature_", 1:3), mi = c(0.5, 0.25, 0.123456789),
                  statistic = 1:3 * 1000.5, df = 1L, n = 200L, p_value = 1e-4, q_value = 2e-4)
  lines <- utils::capture.output(weft:::print_rows(d))
  expect_true(all(nchar(lines) < 60))
  expect_length(lines, 5L)
  expect_match(lines[2], "^ a_rather_long\\.\\.feature_1 ")
  expect_match(lines[4], "0.1235", fixed = TRUE)
  expect_match(lines[5], "^Not shown: .*df; see as.data.frame\\(\\)\\.$")
  withr::local_options(width = 120)
  expect_length(utils::capture.output(weft:::print_rows(d)), 4L)
})

test_that("results print no line that is wider than the console", {
  x <- matrix(weft:::draws("normal", 40 * 12, key = 1), 40,
              dimnames = list(NULL, sprintf("a gene with quite a long name %d", 1:12)))
  class <- rep(c("control", "case"), 20)
  shown <- list(mi_rank(x, class, bins = 3), mi_pairs(discretize(x, bins = 2), class, top = 5),
                mi_network(x, "clr", estimator = "spearman"), regulation(x, seed = 1,
                                                                         control = list(null_copies = 1,
                                                                                        resamples = 20)),
                regulation(x, compare = factor(class), permutations = 3, seed = 1,
                           control = list(resamples = 10, null_copies = 0)),
                gene_quality(x, class))
  for (one in shown) {
    lines <- utils::capture.output(print(one))
    expect_true(all(nchar(lines, "width") <= 80), info = class(one)[1L])
    expect_lte(length(lines), 30L)
  }
})

test_that("printed numbers have the digits of the values", {
  out <- utils::capture.output(print(pca(iris[1:4], 2, scale = TRUE)))
  expect_match(out[3], "1\\.7084 +0\\.9560")
  class <- rep(c("a", "b"), 25)
  r <- mi_rank(data.frame(x = c(rep(1:2, 24), 2, 2), y = rep(1:5, 10)), class)
  shown <- utils::capture.output(print(r))
  expect_match(shown[3], format(r$mi[1], digits = 4), fixed = TRUE)
})

test_that("a ranking of no features is one, and prints", {
  r <- mi_rank(data.frame(a = 1:3)[0], c("a", "b", "a"))
  expect_type(r$p_value, "double")
  expect_output(print(r), "0 features")
})

test_that("the greatest R-hat is printed, and that chains disagree", {
  fit <- irm(matrix(rep(c(0, 1), 18), 6), seed = 1, sweeps = 20)
  fit$rhat[] <- c(1.02, 1.4, 1.1)[seq_along(fit$rhat)]
  expect_output(print(fit), "R-hat up to 1.400 .*did\\s+not\\s+converge: ")
  fit$rhat[] <- 1.01
  expect_match(utils::capture.output(print(fit)), "R-hat up to 1.010 \\(log posterior\\)$", all = FALSE)
})

test_that("a search prints what of its score is for edges, and what it cannot know it leaves out", {
  d <- data.frame(a = rep(0:1, 40), b = rep(c(0L, 0L, 1L, 1L), 20), c = rep(0:1, 40))
  found <- bn_search(d, seed = 1)
  expect_output(print(found), sprintf("1 edge, [a-z]+ %.4f, including %.4f for", found$score, log(found$gamma)))
  expect_match(utils::capture.output(print(bn_search(d, gamma = 1, seed = 1)))[1], "1 edge, [a-z]+ [-.0-9]+$")
  expect_no_match(utils::capture.output(print(bn_learn(d, seed = 1))), "NA")
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  fit <- bn_fit(d, found)
  expect_identical(plot(fit), fit)
  expect_identical(summary(fit), glance(fit))
})
