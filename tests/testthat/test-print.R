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
                mi_network(x, "clr", estimator = "spearman"), regulation(x, copies = 1, resamples = 20, seed = 1),
                regulation(x, compare = factor(class), permutations = 3, resamples = 10, copies = 0, seed = 1),
                gene_quality(x, class))
  for (one in shown) {
    lines <- utils::capture.output(print(one))
    expect_true(all(nchar(lines, "width") <= 80), info = class(one)[1L])
    expect_lte(length(lines), 30L)
  }
})
