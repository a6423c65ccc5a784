# gene_ranking() beside one lm() per gene (helper-ranking.R) and, where it is installed, limma as it is called by users.

expect_near <- function(a, b, tolerance = 1e-9) {
  a <- unname(a)
  b <- unname(b)
  expect_identical(is.na(a), is.na(b))
  expect_lte(max(abs(a / b - 1)[!is.na(a)]), tolerance)
}

test_that("two classes with a batch and a covariate are one lm() per gene, with moderated variances", {
  d <- ranked_data()
  q <- measured_quality(d, d$batch, covariates = data.frame(age = d$age))
  r <- gene_ranking(q, control = plain_control)
  plain <- plain_ranking(d$x, ~ batch + age + class, d[c("batch", "age", "class")], "classb")[r$gene, ]
  expect_s3_class(r, c("weft_ranking", "data.frame"), exact = TRUE)
  expect_near(r$t, plain$t)
  expect_near(r$p_value, plain$p_t)
  expect_near(r$log10_p, log10(plain$p_t))
  expect_near(r$log2_fold_change, plain$estimate)
  expect_near(r$lower, plain$estimate - plain$wide)
  expect_near(r$upper, plain$estimate + plain$wide)
  expect_near(r$mean, colMeans(d$x)[r$gene])
  expect_near(r$q_value, p.adjust(plain$p_t, "BH"))
  expect_false(is.unsorted(r$log10_p))
  model <- attr(r, "model")
  expect_near(c(model$d0, model$s02), c(plain$d0[1], plain$s02[1]))
  expect_identical(model[c("levels", "trend", "weights", "n", "df_residual")],
                   list(levels = c("a", "b"), trend = FALSE, weights = "none", n = 16L, df_residual = 12L))
  expect_setequal(r$gene[r$q_value <= 0.05 & r$log2_fold_change > 0][1:5] %in% paste0("g", 1:10), TRUE)
  by_formula <- gene_ranking(d$x, ~ batch + age + class, data = as.data.frame(d[c("batch", "age", "class")]),
                             control = plain_control)
  expect_near(by_formula$t, r$t)
  expect_near(gene_ranking(q, ~ age + batch + class, control = plain_control)$t, r$t)
})

test_that("several levels are tested by F, and the clearest pair is shown", {
  d <- ranked_data(n = 18, levels = 3)
  q <- measured_quality(d, d$batch)
  r <- gene_ranking(q, control = plain_control)
  plain <- plain_ranking(d$x, ~ batch + class, d[c("batch", "class")], c("classb", "classc"))[r$gene, ]
  expect_near(r$f, plain$f)
  expect_near(r$p_value, plain$p_f)
  expect_null(r$t)
  expect_true(all(is.na(r$auc)))
  expect_setequal(unique(r$contrast), c("b - a", "c - a", "c - b"))
  first <- r[1, ]
  levels <- strsplit(first$contrast, " - ")[[1]]
  d$class <- relevel(d$class, levels[2])
  one <- plain_ranking(d$x, ~ batch + class, d[c("batch", "class")], paste0("class", levels[1]))[first$gene, ]
  expect_near(c(first$log2_fold_change, first$lower), c(one$estimate, one$estimate - one$wide))
})

test_that("contrasts test some differences", {
  d <- ranked_data(n = 18, levels = 3)
  q <- measured_quality(d, d$batch)
  r <- gene_ranking(q, contrasts = "c - b", control = plain_control)
  data <- d[c("batch", "class")]
  data$class <- relevel(data$class, "b")
  plain <- plain_ranking(d$x, ~ batch + class, data, "classc")[r$gene, ]
  expect_near(r$t, plain$t)
  expect_near(r$log2_fold_change, plain$estimate)
  both <- gene_ranking(q, contrasts = c("c - b", "a - b"), control = plain_control)
  all <- gene_ranking(q, control = plain_control)
  expect_near(both$f, all$f)
  against <- matrix(c(-0.5, -0.5, 1), dimnames = list(c("a", "b", "c"), "c against the others"))
  mean <- gene_ranking(q, contrasts = against, control = plain_control)
  data$c <- as.numeric(d$class == "c")
  data$b <- as.numeric(d$class == "b") - as.numeric(d$class == "a")
  contrast <- plain_ranking(d$x, ~ batch + b + c, data, "c")[mean$gene, ]
  expect_near(mean$log2_fold_change, contrast$estimate)
  for (wrong in list("c - d", "a", 1:3, "a - a", matrix(c(1, 1, -1)), c("a - b", "b - a"))) {
    expect_error(gene_ranking(q, contrasts = wrong), "contrasts", class = "weft_error_input")
  }
})

test_that("a number is an outcome, and interactions are terms", {
  d <- ranked_data()
  r <- gene_ranking(d$x, d$age, control = plain_control)
  plain <- plain_ranking(d$x, ~ age, d["age"], "age")[r$gene, ]
  expect_near(r$t, plain$t)
  expect_true(all(is.na(r$auc)) && !anyNA(r$bits) && all(is.na(r$shape_p)))
  cut <- findInterval(d$age, sort(d$age)[ceiling(16 * (1:2) / 3)], left.open = TRUE)
  bits <- mi_rank(d$x, cut, bins = 3)
  expect_equal(r$bits, bits$mi[match(r$gene, bits$feature)])
  r <- gene_ranking(d$x, ~ batch * class, data = as.data.frame(d[c("batch", "class")]), control = plain_control)
  plain <- plain_ranking(d$x, ~ batch * class, d[c("batch", "class")], "batchv:classb")[r$gene, ]
  expect_near(r$t, plain$t)
  r <- gene_ranking(d$x, ~ log(age) + class, data = as.data.frame(d[c("age", "class")]), term = "log(age)",
                    control = plain_control)
  expect_near(r$t, plain_ranking(d$x, ~ log(age) + class, d[c("age", "class")], "log(age)")[r$gene, "t"])
})

test_that("genes with gaps are fitted by themselves", {
  d <- ranked_data(n = 20)
  set.seed(3)
  d$x[cbind(sample(20, 40, TRUE), sample(30, 40, TRUE))] <- NA
  q <- measured_quality(d, d$batch)
  q$measured[d$class == "b", 5] <- NA # what cannot be tested
  d$x <- q$measured
  r <- gene_ranking(q, control = c(plain_control, shape = FALSE))
  expect_identical(r$gene[is.na(r$p_value)], "g5")
  expect_identical(r$gene[nrow(r)], "g5")
  plain <- plain_ranking(d$x[, -5], ~ batch + class, d[c("batch", "class")], "classb")
  expect_near(r$t[-nrow(r)], plain[r$gene[-nrow(r)], "t"])
  expect_near(r$p_value[-nrow(r)], plain[r$gene[-nrow(r)], "p_t"])
  seen <- gene_ranking(q)
  expect_true(all(is.na(seen$shape_p[seen$gene %in% colnames(d$x)[colSums(is.na(d$x)) > 0]])))
})

test_that("t, d0, s02 and p are limma's: plain, with a trend, precision weights, gaps", {
  skip_if_not_installed("limma")
  d <- ranked_data(p = 400, n = 12)
  d$x <- d$x * rep(exp(-0.1 * colMeans(d$x)), each = 12)
  design <- model.matrix(~ batch + class, d)
  q <- measured_quality(d, d$batch)
  for (trend in c(FALSE, TRUE)) {
    r <- gene_ranking(q, control = list(trend = trend, robust = FALSE, weights = "none"))
    f <- limma::eBayes(limma::lmFit(t(d$x), design), trend = trend)
    expect_near(r$t, f$t[r$gene, "classb"])
    expect_near(r$p_value, f$p.value[r$gene, "classb"])
    model <- attr(r, "model")
    expect_near(c(model$d0, model$s02), c(f$df.prior, median(f$s2.prior)))
  }
  skip_if_not_installed("statmod") # which limma's robust fit needs
  r <- gene_ranking(q, control = list(trend = FALSE, weights = "none"))
  f <- limma::eBayes(limma::lmFit(t(d$x), design), robust = TRUE)
  called <- function(p) p.adjust(p, "BH") <= 0.05
  expect_gte(mean(called(r$p_value) == called(f$p.value[r$gene, "classb"])), 0.98)
  expect_near(r$p_value, f$p.value[r$gene, "classb"], 0.02)
  r <- gene_ranking(q, control = list(trend = TRUE, weights = "none"))
  f <- limma::eBayes(limma::lmFit(t(d$x), design), robust = TRUE, trend = TRUE)
  expect_gte(mean(called(r$p_value) == called(f$p.value[r$gene, "classb"])), 0.98)
})

test_that("counts are scaled and weighted as by edgeR and limma's voom()", {
  skip_if_not_installed("edgeR")
  skip_if_not_installed("limma")
  set.seed(4)
  size <- runif(10, 0.5, 2)
  class <- factor(rep(c("a", "b"), 5))
  batch <- factor(rep(c("u", "v"), each = 5))
  mu <- outer(size, exp(rnorm(800, 4, 1.5)))
  mu[class == "b", 1:80] <- 3 * mu[class == "b", 1:80]
  counts <- matrix(rnbinom(8000, mu = mu, size = 5), 10, dimnames = list(paste0("s", 1:10), paste0("g", 1:800)))
  q <- counted_quality(counts, class, batch)
  control <- weft:::run_control("cpu", 1, FALSE)
  doubles <- q$counts + 0
  factors <- .Call(weft:::C_weft_ranking_factors, doubles, control)
  expect_equal(factors, unname(edgeR::calcNormFactors(t(q$counts))), tolerance = 1e-12)
  for (turn in 1:20) { # many ties
    few <- matrix(rpois(240, 3) + rep(c(1, 0, 0, 0), each = 60), 6)
    expect_equal(.Call(weft:::C_weft_ranking_factors, few, control), edgeR::calcNormFactors(t(few)), tolerance = 1e-12)
  }
  r <- gene_ranking(q, control = list(robust = FALSE))
  weighed <- limma::voom(t(q$counts), model.matrix(~ batch + class), rowSums(q$counts) * factors)
  f <- limma::eBayes(limma::lmFit(weighed, model.matrix(~ batch + class)))
  expect_near(r$t, f$t[r$gene, "classb"], 1e-8)
  expect_near(r$p_value, f$p.value[r$gene, "classb"], 1e-8)
  expect_near(attr(r, "model")$d0, f$df.prior, 1e-8)
  expect_identical(attr(r, "model")$weights, "precision")
  given <- gene_ranking(q, control = list(robust = FALSE, factors = factors))
  expect_identical(given$t, r$t)
  expect_error(gene_ranking(q, control = list(factors = 1:3)), "factors", class = "weft_error_input")
})

test_that("information is that of three bins, and the area counts ties as half", {
  d <- ranked_data(n = 30)
  d$x <- round(d$x)
  q <- suppressWarnings(gene_quality(d$x, d$class, transform = "none"))
  r <- gene_ranking(q)
  bits <- mi_rank(q$x, d$class, bins = 3)
  expect_equal(r$bits, bits$mi[match(r$gene, bits$feature)])
  area <- apply(q$x[, r$gene], 2, function(v) {
    pairs <- outer(v[d$class == "b"], v[d$class == "a"], function(b, a) (b > a) + (b == a) / 2)
    mean(pairs)
  })
  expect_equal(r$auc, unname(area))
})

test_that("units do not matter, and any number of threads gives the same bits", {
  d <- ranked_data(n = 24, p = 300)
  d$x[cbind(1:24, 1:24)] <- NA
  q <- measured_quality(d, d$batch)
  r <- gene_ranking(q)
  ranked <- function(threads) as.data.frame(gene_ranking(q, run = weft_run(threads = threads)))
  expect_identical(ranked(2), ranked(1))
  for (power in c(-900, -300, 300, 900)) {
    q$measured <- d$x * 2^power
    scaled <- gene_ranking(q)
    same <- setdiff(names(r), c("log2_fold_change", "lower", "upper", "mean"))
    expect_equal(as.data.frame(scaled)[same], as.data.frame(r)[same], tolerance = 1e-9)
    expect_equal(scaled$log2_fold_change / 2^power, r$log2_fold_change)
  }
})
