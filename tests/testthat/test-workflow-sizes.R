# From four samples on: what is measured and counted is kept, steps that need more samples are left out in a sentence
# each, and confounding is said.

bulk <- function(n, p, depth = rep(1, n), dispersion = 0.1, key = 1) {
  how <- list(depth = 5e5 * depth, share = proportions(exp(1.5 * weft:::draws("normal", p, key = key))),
              dispersion = rep(dispersion, p), key = c(0, key), stream = 7)
  x <- .Call(weft:::C_weft_pca_counts_draw, how, weft:::pass_control())
  dimnames(x) <- list(sprintf("s%d", seq_len(n)), sprintf("g%d", seq_len(p)))
  x
}

test_that("3 v 3 counts give quality, components and genes, and a sentence for each step that is left out", {
  x <- bulk(6, 300)
  class <- rep(c("a", "b"), each = 3)
  expect_no_warning(fit <- gene_network(x, class, seed = 1, steps = list(quality = list(transform = "counts"))))
  expect_identical(fit$steps$step, c("quality", "components", "ranking"))
  expect_setequal(names(fit$left_out), c("pairs", "network", "clusters", "bayes", "outliers"))
  expect_match(fit$left_out, "needs? at least [0-9]+ samples; there are 6\\.$")
  expect_output(print(fit), "network +skipped: a network needs at least 20 samples; there are 6")
  two <- gene_network(x[c(1, 2, 4, 5), ], class[c(1, 2, 4, 5)], seed = 1,
                      steps = list(quality = list(transform = "counts")))
  expect_identical(two$steps$step, c("quality", "components", "ranking"))
  expect_error(gene_quality(x[1:3, ]), "at least 4 samples", class = "weft_error_input")
  run <- gene_network(x, class, seed = 1,
                      steps = list(quality = list(transform = "counts"), pairs = function(q) nrow(q$x)))
  expect_identical(run$pairs, 6L) # the user's own function is run
  damaged <- fit
  damaged$left_out <- 1
  expect_error(print(damaged), "`left_out` is damaged", class = "weft_error_input")
})

test_that("what a step needs is in one table", {
  q <- gene_quality(bulk(24, 60), transform = "counts")
  expect_identical(names(weft:::steps_short_of_samples(q)), "bayes")
  rough <- function(...) weft:::steps_that_are_rough(list(quality = q, steps = data.frame(step = c(...))))
  expect_identical(rough("quality", "network"),
                   c(network = "A network from 24 samples is imprecise; at least 50 samples are recommended."))
  expect_null(rough("quality", "components")) # without a network
  expect_true(all(names(weft:::step_needs) %in% weft:::workflow_steps))
  q <- suppressWarnings(gene_quality(bulk(4, 60), class = c(1, 1, 2, 2), batch = c(1, 2, 1, 2),
                                     covariates = c(1, 4, 2, 9), transform = "counts"))
  expect_match(weft:::steps_short_of_samples(q)[["ranking"]], "more samples than classes, batches and covariates")
})

test_that("genes of few counts are left out by the smallest class, as by hand", {
  x <- bulk(12, 200)
  x[, 1:60] <- ceiling(x[, 1:60] / 60)
  x[1, 1:60] <- x[1, 1:60] + 1 # none is constant
  class <- rep(c("a", "b"), c(4, 8))
  quality <- function(...) call_with(gene_quality, list(..., transform = "counts", control = list(max_same = 1)))
  q <- quality(x, class)
  cpm <- x / rowSums(x) * 1e6
  kept <- colSums(cpm >= 10 / stats::median(rowSums(x)) * 1e6) >= 4
  expect_identical(q$genes$kept, unname(kept))
  expect_true(any(!kept))
  expect_identical(unique(q$genes$reason[!kept]), "low counts")
  expect_match(q$log$what, "10 counts in a sample of median total", all = FALSE)
  expect_true(all(quality(x, class, min_count = 0)$genes$kept))
  many <- bulk(60, 50)
  on <- function(samples) replace(many, cbind(setdiff(1:60, samples), 1), 0)
  kept_of <- function(samples) quality(on(samples), rep(1:2, 30))$genes$kept[1]
  expect_true(kept_of(1:24)) # of 30 in a class: 10, and 0.7 of what is beyond
  expect_false(kept_of(1:23))
  skip_if_not_installed("edgeR")
  expect_identical(unname(edgeR::filterByExpr(t(x), group = class, min.total.count = 0)), q$genes$kept)
})

test_that("counts and values before batches and gaps are kept beside the complete values", {
  x <- bulk(16, 80)
  class <- rep(1:2, 8)
  q <- gene_quality(x, class, transform = "counts")
  expect_identical(q$counts, x[rownames(q$x), colnames(q$x)])
  expect_null(q$measured) # it equals x
  batch <- rep(1:2, each = 8)
  with <- gene_quality(x, class, batch, transform = "counts", control = list(min_spread = 0.1))
  expect_identical(with$measured, q$x[, colnames(with$x)])
  expect_identical(with$counts, q$counts[, colnames(with$x)])
  expect_false(isTRUE(all.equal(with$measured, with$x)))
  gaps <- q$x
  gaps[cbind(1:10, 1:10)] <- NA
  filled <- gene_quality(gaps, class, transform = "none")
  expect_identical(filled$measured, gaps)
  expect_false(anyNA(filled$x))
  expect_null(filled$counts)
  for (part in c("measured", "counts")) {
    bad <- with
    bad[[part]] <- bad[[part]][, -1]
    expect_error(gene_components(bad), "unmodified", class = "weft_error_input")
  }
})

test_that("what batches explain is taken out without the class, so that it does not become a difference", {
  n <- 40
  x <- matrix(weft:::draws("normal", n * 200, key = 12), n, dimnames = list(NULL, sprintf("g%d", 1:200)))
  class <- rep(1:2, each = 20)
  batch <- c(rep(1:2, c(18, 2)), rep(1:2, c(2, 18)))
  q <- suppressWarnings(gene_quality(x, class, batch, transform = "none"))
  expect_equal(q$x, stats::residuals(stats::lm(x ~ factor(batch))) + rep(colMeans(x), each = n), ignore_attr = TRUE)
  between <- function(v) mean(apply(v, 2, function(g) summary(stats::lm(g ~ factor(class)))$r.squared))
  expect_lt(between(q$x), 1 / 39) # what noise has; with the class in the model it is 4 times that
})

test_that("confounding: batch and covariates with the class, depth, and cells", {
  class <- rep(c("a", "b"), each = 10)
  x <- bulk(20, 100, depth = rep(c(1, 3), each = 10) * exp(weft:::draws("normal", 20, key = 3) / 10))
  batch <- c(rep(1:2, c(9, 1)), rep(1:2, c(1, 9)))
  q <- suppressWarnings(gene_quality(x, class, batch, covariates = data.frame(age = seq_len(20)), transform = "counts"))
  expect_identical(q$confounding$kind, c("batch", "covariate", "depth"))
  expect_equal(q$confounding$p[1], stats::fisher.test(table(batch, class))$p.value)
  expect_equal(q$confounding$p[2], summary(stats::aov(age ~ class, data.frame(age = 1:20, class)))[[1]][["Pr(>F)"]][1])
  expect_match(q$confounding$text[1], "18 of 20 samples belong to the most common class of their batch")
  expect_match(q$confounding$text[3], "samples of a have a mean of .* counts, samples of b")
  none <- gene_quality(bulk(20, 100), class, rep(1:2, 10), transform = "counts")
  expect_identical(nrow(none$confounding), 0L)
  cells <- gene_quality(bulk(20, 100), class, transform = "cells")
  expect_identical(cells$confounding$kind, "cells")
  expect_identical(nrow(gene_quality(bulk(20, 100), transform = "cells")$confounding), 0L)
  follows <- weft:::confounding(gene_quality(x, transform = "counts"),
                                list(x = cbind(log(rowSums(x)), rep(1:2, 10)), leading = 2))
  expect_identical(follows$kind, "component")
  expect_match(follows$text, "^PC1 follows sequencing depth, which explains 100 % of its variance")
})

test_that("samples without counts are left out, and that is said", {
  counts <- matrix(as.double(withr::with_seed(5, stats::rnbinom(40 * 30, 0.5, mu = 2))), 40,
                   dimnames = list(sprintf("s%d", 1:40), sprintf("g%d", 1:30)))
  counts[c(7, 19), ] <- 0
  class <- rep(c("a", "b"), 20)
  for (transform in c("auto", "cells")) {
    q <- suppressWarnings(gene_quality(counts, class, transform = transform))
    expect_identical(rownames(q$x), rownames(counts)[-c(7, 19)])
    expect_identical(as.character(q$class), class[-c(7, 19)])
    expect_match(q$log$what[q$log$step == "no counts"], "s7, s19", fixed = TRUE)
    expect_equal(q$x, suppressWarnings(gene_quality(counts[-c(7, 19), ], class[-c(7, 19)], transform = transform))$x)
  }
  fit <- suppressWarnings(gene_network(counts, class, seed = 1, run = weft_run(progress = FALSE), steps = list(
    cells = FALSE, network = FALSE, clusters = FALSE, pairs = FALSE, outliers = FALSE, components = FALSE)))
  expect_identical(fit$quality$samples$sample[!fit$quality$samples$kept], c("s7", "s19"))
  expect_error(suppressWarnings(gene_quality(0 * counts, transform = "cells")), class = "weft_error_input")
})

test_that("samples that differ by no more than counting are said to be repeats", {
  mean <- exp(weft:::draws("normal", 300, key = 5) + 5)
  set.seed(5)
  sampled <- function(scatter) {
    x <- matrix(stats::rnbinom(6 * 300, mu = rep(mean, each = 6), size = 1 / scatter^2), 6,
                dimnames = list(NULL, paste0("g", 1:300)))
    gene_quality(x, rep(c("a", "b"), 3), transform = "counts")$confounding$kind
  }
  expect_identical(sampled(0.01), "repeats")
  expect_identical(sampled(0.1), character())
})

test_that("logarithms of cells are taken for cells, those of tissues are not", {
  set.seed(6)
  logs <- function(n, mean) {
    x <- log2(1 + matrix(stats::rnbinom(n * 60, mu = mean, size = 1), n, dimnames = list(NULL, paste0("g", 1:60))))
    gene_quality(x, rep(c("a", "b"), n / 2), transform = "none")$confounding$kind
  }
  expect_identical(logs(120, 0.7), "cells")
  expect_identical(logs(120, 20), character())
  expect_identical(logs(40, 0.7), character())
})
