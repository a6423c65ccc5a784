# Batches, covariates and groups of samples that nobody named.

make <- function(n, p, key, batch = 0) {
  weft_example("expression", n = n, p = p, seed = key, batch = batch, outliers = 0, missing = 0, spoilt = FALSE)
}

test_that("batch and class nearly the same: a warning with the numbers, and one only then", {
  e <- make(40, 30, 1)
  mostly <- function(share) {
    other <- c("control", "case")[3 - as.integer(e$class)]
    swapped <- rank(weft:::draws("uniform", 40, key = 5) + (e$class == "case")) %% 20 < 20 * (1 - share)
    factor(ifelse(swapped, other, as.character(e$class)), c("control", "case"))
  }
  batch <- mostly(0.9)
  expect_identical(sum(batch == e$class), 36L)
  said <- expect_warning(q <- gene_quality(e$x, e$class, batch), class = "weft_warning_batch_class")
  expect_match(conditionMessage(said), "36 of 40 samples belong to the most common class of their batch")
  expect_match(conditionMessage(said), "explain 64 % of the class.* 36 % of the samples") # canonical correlation 0.8
  expect_match(q$log$what, "36 of 40", all = FALSE)
  expect_no_warning(gene_quality(e$x, e$class, mostly(0.7)), class = "weft_warning_batch_class")
  expect_warning(gene_quality(e$x, e$class, covariates = as.numeric(e$class) + weft:::draws("normal", 40, key = 2) / 5),
                 class = "weft_warning_batch_class")
  expect_error(suppressWarnings(gene_quality(e$x, e$class, e$class)), "must not be identical",
               class = "weft_error_input")
})

test_that("the share of the class that batches explain is the squared canonical correlation", {
  class <- weft:::contrast_columns(factor(rep(1:3, c(10, 8, 12))))
  part <- cbind(weft:::draws("normal", 30, key = 3), rep(0:1, 15))
  expect_equal(weft:::class_explained(part, class), stats::cancor(part, class)$cor[1]^2)
})

test_that("covariates are taken out, class differences stay", {
  e <- make(60, 20, 2)
  age <- stats::setNames(weft:::draws("normal", 60, key = 4), rownames(e$x))
  x <- e$x + outer(age, seq(-2, 2, length.out = 20))
  q <- gene_quality(x, e$class, covariates = age)
  expect_equal(q$x, stats::residuals(stats::lm(x ~ age)) + rep(colMeans(x), each = 60), ignore_attr = TRUE)
  expect_identical(q$measured, x)
  expect_equal(gene_quality(x, e$class, covariates = rev(age))$x, q$x) # by name
  expect_match(q$log$what, "Linear effects of covariate were removed for components", all = FALSE)
  frame <- data.frame(age = unname(age), site = rep(c("a", "b", "c"), 20), same = 1)
  both <- gene_quality(x, e$class, batch = rep(1:2, each = 30), covariates = frame)
  design <- stats::model.matrix(~ age + site + batch, data.frame(frame, batch = factor(rep(1:2, each = 30))))
  expect_lt(max(abs(qr.coef(qr(design), both$x)[c("age", "siteb", "sitec", "batch2"), ])), 1e-12)
  expect_match(both$log$what, "with a single value were ignored: same", all = FALSE)
  expect_identical(names(both$covariates), c("age", "site"))
  skip_if_not_installed("SummarizedExperiment")
  se <- SummarizedExperiment::SummarizedExperiment(list(t(x)), colData = data.frame(group = e$class, age = age))
  expect_equal(gene_quality(se, "group", covariates = "age")$x, q$x)
  expect_error(gene_quality(se, "group", covariates = "weight"), "There is no `weight`", class = "weft_error_input")
})

test_that("covariates that make no sense are refused", {
  e <- make(20, 12, 1)
  refused <- function(v, why) expect_error(gene_quality(e$x, e$class, covariates = v), why, class = "weft_error_input")
  refused(1:3, "a value or row for every sample")
  refused(mean, "numeric or categorical")
  refused(list(1), "numeric or categorical")
  refused(c(1:19, Inf), "numeric or categorical")
  refused(c(1:19, NA), "known for every sample")
  refused(cbind(1:20, 2 * 1:20), "One of them is a linear combination of the others")
})

test_that("a hidden batch is told, with its groups, and goes when it is given", {
  e <- make(60, 100, 2, batch = 1)
  said <- expect_warning(fit <- gene_components(gene_quality(e$x, e$class), seed = 1),
                         class = "weft_warning_hidden_batch")
  expect_match(conditionMessage(said), "groups of 30 and 30 .* that class cannot explain.* of the genes")
  agree <- mean((fit$hidden$group == "high") == (e$batch == "second"))
  expect_gt(max(agree, 1 - agree), 0.95)
  expect_gt(fit$hidden$genes, 0.2)
  expect_no_warning(again <- gene_components(gene_quality(e$x, e$class, e$batch), seed = 1),
                    class = "weft_warning_hidden_batch")
  expect_null(again$hidden)
  expect_no_warning(gene_components(gene_quality(e$x, e$class, covariates = fit$hidden$score), seed = 1),
                    class = "weft_warning_hidden_batch")
})

test_that("networks without a hidden batch raise no alarm", {
  told <- vapply(1:12, function(key) {
    e <- make(c(24, 60, 100)[key %% 3 + 1], 60, key)
    if (key %% 4 == 0) e <- weft_example("expression", n = 60, p = 60, seed = key, batch = 0, outliers = 3)
    !is.null(suppressWarnings(gene_components(gene_quality(e$x, e$class), seed = 1))$hidden)
  }, NA)
  expect_identical(sum(told), 0L)
})

test_that("the targets of a regulator that is on or off are no batch", {
  n <- 60
  x <- matrix(weft:::draws("normal", n * 100, key = 8), n, dimnames = list(NULL, sprintf("g%03d", 1:100)))
  x[1:30, 1:25] <- x[1:30, 1:25] + 4
  expect_no_warning(fit <- gene_components(gene_quality(x, transform = "none"), seed = 1),
                    class = "weft_warning_hidden_batch")
  expect_null(fit$hidden)
  x[1:30, 26:100] <- x[1:30, 26:100] + rep(2 * weft:::draws("normal", 75, key = 9), each = 30)
  expect_warning(gene_components(gene_quality(x, transform = "none"), seed = 1), class = "weft_warning_hidden_batch")
})

test_that("the best split of a score: two groups of a size, found by trying all", {
  score <- c(weft:::draws("normal", 20, key = 6), 6 + weft:::draws("normal", 10, key = 7))
  cut <- weft:::best_split(score)
  every <- vapply(sort(score)[3:27], function(at) summary(stats::lm(score ~ I(score > at)))$r.squared, 0)
  expect_equal(cut$share, max(every))
  expect_identical(sum(score > cut$at), 10L)
})

test_that("covariates with names of some samples are refused where their rows could be in order", {
  withr::local_seed(9)
  x <- matrix(rnorm(20 * 6), 20, dimnames = list(1:20, paste0("g", 1:6)))
  age <- data.frame(age = c(30, 20 + 1:20))[-1, , drop = FALSE] # row numbers 2 to 21
  class <- rep(c("a", "b"), 10)
  expect_error(gene_quality(x, class, covariates = age), "names of all samples", class = "weft_error_input")
  rownames(age) <- NULL
  expect_identical(gene_quality(x, class, covariates = age)$covariates$age, 20 + 1:20)
  mixed <- data.frame(age = 1:20, row.names = 20:1)
  expect_identical(gene_quality(x, class, covariates = mixed)$covariates$age, 20:1)
})

test_that("hidden factors are taken out where they are asked for, and nothing is where there are none", {
  withr::local_seed(21)
  n <- 80
  x <- matrix(stats::rnorm(n * 60), n, dimnames = list(sprintf("s%d", 1:n), sprintf("g%d", 1:60)))
  class <- rep(c("a", "b"), n / 2)
  x[class == "b", 1:5] <- x[class == "b", 1:5] + 2
  plain <- gene_quality(x, class, covariates = "components", transform = "none")
  expect_null(plain$covariates)
  expect_match(plain$log$what, "so there is no hidden factor", all = FALSE)
  expect_equal(plain$x, x)
  factor <- stats::rnorm(n)
  moved <- x + outer(factor, stats::rnorm(60))
  q <- gene_quality(moved, class, covariates = "components", transform = "none")
  expect_identical(names(q$covariates), "component1")
  expect_gt(abs(stats::cor(q$covariates$component1, factor)), 0.95)
  expect_equal(tapply(q$covariates$component1, class, mean), c(a = 0, b = 0), ignore_attr = TRUE) # none of the class
  rest <- stats::residuals(stats::lm(moved ~ q$covariates$component1))
  expect_equal(scale(q$x, scale = FALSE), rest, ignore_attr = TRUE)
  expect_equal(q$measured, moved)
  both <- gene_quality(moved, class, batch = rep(c("u", "u", "v", "v"), n / 4), covariates = "components",
                       transform = "none")
  expect_equal(tapply(both$covariates$component1, both$batch, mean), c(u = 0, v = 0), ignore_attr = TRUE)
  gaps <- moved
  gaps[cbind(1:20, 1:20)] <- NA
  filled <- gene_quality(gaps, class, covariates = "components", transform = "none")
  expect_gt(abs(stats::cor(filled$covariates$component1, factor)), 0.95)
  levels <- matrix(sample(0:2, 900, TRUE), 30)
  expect_null(suppressWarnings(gene_quality(levels, covariates = "components"))$covariates)
})

test_that("edges that follow a hidden factor are found by their correlation given it", {
  withr::local_seed(22)
  n <- 100
  x <- matrix(stats::rnorm(n * 50), n, dimnames = list(sprintf("s%d", 1:n), sprintf("g%d", 1:50)))
  x[, 2] <- x[, 1] + 0.3 * x[, 2]
  moved <- x + outer(stats::rnorm(n), stats::runif(50, 0.8, 1.5) * sample(c(-1, 1), 50, TRUE))
  rest <- list(pairs = FALSE, clusters = FALSE, bayes = FALSE, outliers = FALSE)
  fit <- suppressWarnings(gene_network(moved, seed = 1, steps = c(rest, list(network = list(fdr = 1)))))
  edges <- as.data.frame(fit, "edges")
  score <- fit$components$x[, 1]
  for (k in c(1, 50, nrow(edges))) { # as a regression with the component tests it
    fitted <- stats::lm(moved[, edges$to[k]] ~ moved[, edges$from[k]] + score)
    expect_equal(edges$p_given_components[k], summary(fitted)$coefficients[2, 4])
  }
  both <- edges$from %in% c("g1", "g2") & edges$to %in% c("g1", "g2")
  expect_lt(max(edges$p_given_components[both]), 1e-10)
  expect_gt(mean(edges$p_given_components[!both] > 0.05), 0.6)
  expect_output(print(fit), "Most\\s+genes\\s+are\\s+correlated\\s+with")
  expect_match(weft:::factors_text(fit, weft:::report_edges(fit$network)), "are correlated with PC1. After adjustment")
  none <- suppressWarnings(gene_network(x, seed = 1, steps = rest))
  expect_null(weft:::edges_given_factors(none, as.data.frame(none$network)))
  expect_null(as.data.frame(none, "edges")$p_given_components)
})
