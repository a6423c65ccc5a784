# gene_ranking() on data that are hard, and on what it refuses.

test_that("constant genes, copies, and perfect separation have sound results", {
  d <- ranked_data(n = 12)
  q <- measured_quality(d)
  q$measured[, 1] <- 7.3
  q$measured[, 2] <- ifelse(d$class == "b", 5, 4)
  q$measured[, 3] <- q$measured[, 4]
  r <- gene_ranking(q)
  of <- function(gene, column) r[[column]][r$gene == gene]
  expect_identical(c(of("g1", "t"), of("g1", "p_value")), c(0, 1))
  expect_equal(c(of("g2", "log2_fold_change"), of("g2", "auc")), c(1, 1))
  expect_identical(of("g3", "p_value"), of("g4", "p_value"))
  expect_false(anyNA(r$p_value))
  q$measured[] <- 1
  flat <- gene_ranking(q)
  expect_identical(c(flat$t, flat$p_value), rep(c(0, 1), each = nrow(flat)))
})

test_that("equal rows, ties everywhere, and few genes", {
  d <- ranked_data(n = 12)
  twice <- gene_ranking(d$x[c(1:12, 1:12), ], rep(d$class, 2))
  expect_true(all(twice$p_value >= 0 & twice$p_value <= 1))
  tied <- suppressWarnings(gene_quality(round(d$x / 3), d$class, transform = "none", control = list(max_same = 1)))
  tied$kind <- "expression"
  r <- gene_ranking(tied)
  expect_true(all(r$auc >= 0 & r$auc <= 1) && all(is.na(r$shape_p)))
  r <- gene_ranking(d$x[, 1:3], d$class)
  expect_identical(sort(r$gene), c("g1", "g2", "g3"))
})

test_that("counts of 0 and huge counts", {
  set.seed(5)
  class <- factor(rep(c("a", "b"), each = 6))
  counts <- matrix(rpois(12 * 40, 20), 12, dimnames = list(paste0("s", 1:12), paste0("g", 1:40)))
  q <- counted_quality(counts, class)
  q$counts[, 1] <- 0
  q$counts[, 2] <- q$counts[, 2] * 1e8
  r <- gene_ranking(q)
  expect_identical(r$p_value[r$gene == "g1"] > 0.5, TRUE)
  expect_true(all(is.finite(r$log2_fold_change)))
})

test_that("two samples of each class are enough, and one beside others", {
  d <- ranked_data(n = 8, p = 200)
  fit <- function(rows) {
    q <- measured_quality(d)
    q$x <- q$x[rows, ]
    q$measured <- NULL
    q$samples <- q$samples[rows, ]
    q$class <- droplevels(q$class[rows])
    gene_ranking(q, control = list(robust = FALSE, trend = FALSE, weights = "none"))
  }
  four <- fit(c(1, 3, 2, 4))
  plain <- plain_ranking(d$x[c(1, 3, 2, 4), ], ~ class, list(class = d$class[c(1, 3, 2, 4)]), "classb")
  expect_equal(four$p_value, plain[four$gene, "p_t"])
  three <- fit(c(1, 3, 2))
  expect_match(attr(three, "model")$notes, "one sample")
  expect_error(fit(1:2), "fewer coefficients than", class = "weft_error_input")
})

test_that("a model whose variables follow from each other names them", {
  d <- ranked_data()
  data <- data.frame(class = d$class, site = ifelse(d$class == "a", "x", "y"), sum = as.numeric(d$class == "b") * 2,
                     age = d$age)
  expect_error(gene_ranking(d$x, ~ site + class, data = data), "`classb` is determined by `sitey`",
               class = "weft_error_input")
  expect_error(gene_ranking(d$x, ~ class + age + sum, data = data), "is determined by", class = "weft_error_input")
  data$id <- paste0("i", 1:16)
  expect_error(gene_ranking(d$x, ~ id + class, data = data), "determine each other", class = "weft_error_input")
})

test_that("formulas that cannot be fitted say why", {
  d <- ranked_data()
  data <- data.frame(class = d$class, age = c(NA, d$age[-1]), one = "x", far = c(Inf, d$age[-1]), id = 1:16)
  refused <- function(formula, words, ...) {
    expect_error(call_with(gene_ranking, list(d$x, formula, data = data, ...)), words, class = "weft_error_input")
  }
  refused(y ~ class, "no left side")
  refused(~ class + (1 | age), "random effects")
  refused(~ 0 + class, "intercept")
  refused(~ nothing + class, "There is no `nothing`")
  refused(~ age + class, "first is in row 1")
  refused(~ one + class, "at least two distinct values")
  refused(~ far + class, "finite")
  refused(~ class, "term", term = "age")
  refused(~ class * id, "part of", term = "class")
  expect_error(gene_ranking(d$x, ~ class, data = data[1:3, ]), "It has 3 rows for 16", class = "weft_error_input")
  expect_error(gene_ranking(d$x, d$class, data = data), "without a formula", class = "weft_error_input")
  expect_error(gene_ranking(d$x), "needs `class`", class = "weft_error_input")
  expect_error(gene_ranking(d$x, d$class, control = list(trends = TRUE)), "There is no `trends`",
               class = "weft_error_input")
  expect_error(gene_ranking(d$x, d$class, control = list(trend = "yes")), "trend", class = "weft_error_input")
  expect_error(gene_ranking(d$x, d$class, run = "cuda"), "CPU only", class = "weft_error_device")
  d$x[1, 1] <- Inf
  expect_error(gene_ranking(d$x, d$class), "infinite", class = "weft_error_input")
})

test_that("variables come from colData(x)", {
  skip_if_not_installed("SummarizedExperiment")
  d <- ranked_data()
  se <- SummarizedExperiment::SummarizedExperiment(list(logcounts = t(d$x)),
                                                   colData = data.frame(batch = d$batch, class = d$class, age = d$age))
  r <- gene_ranking(se, ~ batch + class)
  expect_identical(r$t, gene_ranking(d$x, ~ batch + class, data = as.data.frame(d[c("batch", "class")]))$t)
  expect_identical(gene_ranking(se, "age")$t, gene_ranking(d$x, d$age)$t)
})

test_that("samples that gene_quality() left out are left out of the data", {
  d <- ranked_data(n = 20)
  d$x[3, 1:40] <- NA
  data <- data.frame(batch = d$batch, class = d$class)
  r <- gene_ranking(d$x, ~ batch + class, data = data, control = plain_control)
  expect_identical(attr(r, "model")$n, 19L)
  expect_equal(r$t, plain_ranking(d$x[-3, ], ~ batch + class, data[-3, ], "classb")[r$gene, "t"])
})

# ---- weights of classes ----

test_that("classes whose variances differ are weighted, which is said", {
  set.seed(6)
  class <- factor(rep(c("a", "b"), c(6, 18)))
  x <- matrix(rnorm(24 * 400), 24, dimnames = list(NULL, paste0("g", 1:400)))
  x[class == "a", ] <- 3 * x[class == "a", ]
  r <- gene_ranking(x, class)
  model <- attr(r, "model")
  expect_identical(model$weights, "group")
  expect_match(model$notes[1], "variance of a is [89]|10")
  weights <- ifelse(class == "a", 1 / 9, 1)
  plain <- plain_ranking(x, ~ class, list(class = class), "classb", weights)
  expect_gt(cor(qlogis(r$p_value), qlogis(plain[r$gene, "p_t"])), 0.99)
  expect_lt(mean(r$p_value <= 0.05), 0.08)
  expect_gt(mean(gene_ranking(x, class, control = list(weights = "none"))$p_value <= 0.05), 0.15)
  expect_identical(attr(gene_ranking(x[, ] * 1, class[c(1:6, 7:24)], control = list(weights = "none")),
                        "model")$weights, "none")
  same <- gene_ranking(matrix(rnorm(24 * 400), 24, dimnames = dimnames(x)), class)
  expect_identical(attr(same, "model")$weights, "none")
})

test_that("two classes get variances of their own where the ratio depends on the gene", {
  set.seed(16)
  class <- factor(rep(c("a", "b"), c(6, 18)))
  x <- matrix(rnorm(24 * 400), 24, dimnames = list(NULL, paste0("g", 1:400)))
  x[class == "a", 1:200] <- 3 * x[class == "a", 1:200]
  x[class == "b", 201:400] <- 3 * x[class == "b", 201:400]
  r <- gene_ranking(x, class)
  model <- attr(r, "model")
  expect_true(model$by_class)
  expect_match(model$notes, "depends on the gene, so the test")
  expect_output(print(r), "separately\\s+for\\s+each\\s+class")
  variances <- lapply(split(seq_len(24), class), function(rows) {
    s2 <- apply(x[rows, ], 2, var)
    prior <- plain_prior(s2, length(rows) - 1)
    list(v = (prior$d0 * prior$s02 + (length(rows) - 1) * s2) / (prior$d0 + length(rows) - 1) / length(rows),
         df = prior$d0 + length(rows) - 1)
  })
  v <- lapply(variances, `[[`, "v")
  t <- (colMeans(x[class == "b", ]) - colMeans(x[class == "a", ])) / sqrt(v$a + v$b)
  df <- (v$a + v$b)^2 / (v$a^2 / variances$a$df + v$b^2 / variances$b$df)
  plain <- gene_ranking(x, class, control = list(robust = FALSE, trend = FALSE))
  expect_equal(plain$t, unname(t[plain$gene]), tolerance = 1e-9)
  expect_equal(plain$p_value, unname(2 * pt(-abs(t), df))[match(plain$gene, colnames(x))], tolerance = 1e-9)
})

test_that("samples that are shifted as a whole are noticed", {
  d <- ranked_data(n = 20, p = 200)
  expect_length(attr(gene_ranking(d$x, d$class), "model")$notes, 0)
  set.seed(17)
  expect_match(attr(gene_ranking(d$x + 2 * rnorm(20), d$class), "model")$notes, "shift")
})

# ---- shape ----

test_that("the law of the shape statistic is that of permutations within batches", {
  law <- function(sizes, draws = 0) {
    .Call(weft:::C_weft_ranking_shape, list(sizes = sizes, draws = draws, key = c(0, 1)),
          weft:::run_control("cpu", 1, FALSE))
  }
  bits <- function(bin, group) {
    joint <- table(bin, group) / length(bin)
    sum(ifelse(joint > 0, joint * log2(joint / outer(rowSums(joint), colSums(joint))), 0))
  }
  sizes <- matrix(c(3L, 2L, 2L, 4L), 2)
  all <- expand.grid(first = seq_len(choose(5, 2)), second = seq_len(choose(6, 4)))
  ones <- list(combn(5, 2), combn(6, 4))
  bin <- c((3 * 0:4) %/% 5, (3 * 0:5) %/% 6)
  values <- apply(all, 1, function(at) {
    group <- integer(11)
    group[ones[[1]][, at[1]]] <- 1L
    group[5 + ones[[2]][, at[2]]] <- 1L
    bits(bin, group)
  })
  exact <- law(sizes)
  expect_equal(sum(exact$probability), 1)
  for (at in unique(round(values, 9))) {
    expect_equal(sum(exact$probability[exact$statistic >= at - 1e-9]), mean(values >= at - 1e-9))
  }
  three <- matrix(c(4L, 5L, 6L), 3)
  drawn <- law(three, 20000)
  expect_null(drawn$probability)
  set.seed(1)
  other <- replicate(4000, bits((3 * 0:14) %/% 15, sample(rep(0:2, three))))
  expect_gt(stats::ks.test(unique(drawn$statistic), unique(other), exact = FALSE)$p.value, 1e-6)
  expect_equal(mean(drawn$statistic), mean(other), tolerance = 0.05)
})

test_that("genes that differ in spread are found beside those that differ in mean", {
  set.seed(7)
  class <- factor(rep(c("a", "b"), each = 60))
  batch <- factor(rep(c("u", "v"), 60))
  x <- matrix(rnorm(120 * 300), 120, dimnames = list(NULL, paste0("g", 1:300)))
  x[class == "b", 1:10] <- 6 * x[class == "b", 1:10]
  x <- x + (batch == "v")
  x[class == "b", 11:20] <- x[class == "b", 11:20] + 2
  q <- gene_quality(x, class, batch)
  r <- gene_ranking(q)
  expect_gte(sum(r$shape_q <= 0.05 & r$gene %in% paste0("g", 1:10)), 8)
  expect_lte(sum(r$shape_q <= 0.05 & !r$gene %in% paste0("g", 1:10)), 3)
  expect_gte(sum(r$q_value <= 0.05 & r$gene %in% paste0("g", 11:20)), 10)
  expect_equal(mean(r$shape_p[!r$gene %in% paste0("g", 1:10)] <= 0.05), 0.05, tolerance = 0.8)
  expect_true(all(is.na(gene_ranking(x[c(1:7, 61:120), ], class[c(1:7, 61:120)])$shape_p)))
  expect_true(all(is.na(gene_ranking(q, control = list(shape = FALSE))$shape_p)))
})

# ---- subjects ----

test_that("cells are summed by subject, and subjects in both classes are blocks", {
  set.seed(8)
  person <- rep(paste0("p", 1:8), each = 10)
  class <- rep(c("a", "b"), each = 40)
  effect <- matrix(rgamma(8 * 60, 5, 5), 8)
  counts <- matrix(rpois(80 * 60, 10 * effect[as.integer(factor(person)), ]), 80,
                   dimnames = list(NULL, paste0("g", 1:60)))
  q <- suppressWarnings(gene_quality(rowsum(counts, person), factor(rep(c("a", "b"), each = 4)), transform = "counts"))
  r <- suppressWarnings(gene_ranking(counts, class, subject = person))
  expect_identical(r$t, gene_ranking(q)$t)
  expect_match(attr(r, "model")$notes[1], "80 samples were summed to 8 sums of 8 subjects")
  sparse <- Matrix::Matrix(counts, sparse = TRUE)
  expect_identical(suppressWarnings(gene_ranking(sparse, class, subject = person))$t, r$t)
  paired <- suppressWarnings(gene_ranking(counts, ~ treated, data = data.frame(treated = rep(c("no", "yes"), 40),
                                                                               who = person), subject = "who"))
  expect_match(attr(paired, "model")$formula, "subject")
  expect_identical(attr(paired, "model")$df_residual, 7L)
  expect_error(gene_ranking(counts + 0.5, class, subject = person), "counts", class = "weft_error_input")
  expect_error(gene_ranking(counts, class, subject = 1:80), "several samples with", class = "weft_error_input")
  expect_error(gene_ranking(q, subject = person), "must not be given", class = "weft_error_input")
})

# ---- what is returned ----

test_that("rankings print, convert and are checked", {
  d <- ranked_data(n = 20)
  r <- gene_ranking(d$x, d$class)
  expect_output(print(r), "Differences in 60 genes between a \\(10 samples\\) and b \\(10\\)")
  expect_output(print(r), "Linear model ~class, variances moderated by .* degrees of freedom")
  expect_output(print(r[1:3]), "log2_fold_change")
  expect_identical(summary(r)$differ, sum(r$q_value <= 0.05))
  expect_identical(names(tidy(r))[1:4], c("gene", "estimate", "conf.low", "conf.high"))
  expect_identical(glance(r)$samples, 20L)
  expect_identical(class(as.data.frame(r)), "data.frame")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_identical(plot(r), r)
  expect_error(plot(r, alpha = 2), "alpha", class = "weft_error_input")
  bad <- r
  bad$t <- "x"
  expect_error(print(bad), "an unmodified weft result", class = "weft_error_input")
  attr(r, "model")$notes <- 1
  expect_error(summary(r), "an unmodified weft result", class = "weft_error_input")
})

test_that("genotypes keep their ranking by information", {
  set.seed(9)
  x <- matrix(sample(0:2, 40 * 10, TRUE), 40, dimnames = list(NULL, paste0("v", 1:10)))
  class <- factor(rep(c("a", "b"), 20))
  q <- gene_quality(x, class)
  expect_equal(as.data.frame(gene_ranking(q)), as.data.frame(mi_rank(q$x, q$class)))
  expect_true("p_fwer" %in% names(gene_ranking(q, control = list(permutations = 9), seed = 1)))
})

test_that("units and origins of numbers in the model do not matter", {
  d <- ranked_data(n = 20)
  data <- data.frame(class = d$class, age = d$age)
  of <- function(age, formula = ~ age) {
    data$age <- age
    gene_ranking(d$x, formula, data = data, control = plain_control)
  }
  plain <- of(d$age)
  beside <- of(d$age, ~ age + class)
  both <- of(d$age, ~ poly(age, 2))
  seconds <- round(d$age * 86400)
  for (age in list(d$age * 2^600, d$age * 2^-600, d$age - 50)) {
    r <- of(age)
    expect_equal(r$p_value, plain$p_value)
    expect_equal(r$log2_fold_change * max(abs(diff(age))), plain$log2_fold_change * max(abs(diff(d$age))))
    expect_equal(of(age, ~ age + class)$t, beside$t)
  }
  expect_equal(of(seconds + 1.7e9)$t, of(seconds)$t) # dates in seconds
  expect_equal(of(seconds + 1.7e9, ~ age + class)$t, of(seconds, ~ age + class)$t)
  expect_equal(of(seconds, ~ class * age)$t, of(seconds + 1.7e9, ~ class * age)$t)
  expect_equal(of(2 * d$age, ~ poly(age, 2))$f, both$f)
  slope <- function(gene) coef(lm(d$x[, gene] ~ d$age))[[2]]
  expect_equal(plain$log2_fold_change, vapply(plain$gene, slope, 0, USE.NAMES = FALSE))
})

test_that("an offset is refused, and covariates may have any name", {
  d <- ranked_data()
  data <- data.frame(class = d$class, age = d$age)
  expect_error(gene_ranking(d$x, ~ offset(age) + class, data = data), "offset", class = "weft_error_input")
  usual <- gene_ranking(measured_quality(d, covariates = data.frame(age = d$age)))
  for (name in c("", NA, ".", "...", "..1", "class", "a b", "I(1)", "`", "-1", "if")) {
    named <- stats::setNames(data.frame(d$age), name)
    expect_identical(gene_ranking(measured_quality(d, covariates = named))$t, usual$t, label = name)
  }
})

test_that("a class, a batch and variables may be text that is marked as bytes", {
  d <- ranked_data()
  bytes <- "\xff\xfe"
  Encoding(bytes) <- "bytes"
  class <- ifelse(d$class == "a", bytes, "z")
  usual <- gene_ranking(d$x, ifelse(d$class == "a", "A", "z"))
  expect_identical(gene_ranking(d$x, class)$p_value, usual$p_value)
  expect_identical(gene_ranking(d$x, ~ class, data = data.frame(class))$p_value, usual$p_value)
  expect_no_error(gene_quality(d$x, d$class, ifelse(d$batch == "u", bytes, "z")))
  expect_no_error(gene_quality(d$x, d$class, covariates = data.frame(ifelse(d$batch == "u", bytes, "z"))))
  expect_no_error(mi_rank(data.frame(a = class), d$class))
  expect_no_error(bn_scores(data.frame(a = class, b = d$batch)))
  expect_no_error(irm(data.frame(class, "b"), type = "bipartite", chains = 1, sweeps = 1, seed = 1))
})

test_that("a term that is no text is refused", {
  d <- ranked_data()
  for (term in list(methods::new("externalptr"), NA_character_, 1, c("a", "b"), quote(class), matrix("b"),
                    function(x) x)) {
    expect_error(gene_ranking(d$x, ~ class, data = data.frame(class = d$class), term = term), "term",
                 class = "weft_error_input")
  }
})

test_that("what is no formula, subject or class is refused", {
  set.seed(1)
  counts <- matrix(rpois(400, 50), 40, dimnames = list(NULL, letters[1:10]))
  class <- rep(c("a", "b"), 20)
  subject <- rep(sprintf("p%d", 1:10), 4)
  data <- data.frame(class = class)
  refused <- function(...) expect_error(gene_ranking(...), class = "weft_error_input")
  for (wrong in list(structure(quote(class()), class = "formula"), (~ class)[1L])) {
    refused(counts, wrong, data = data, subject = subject)
    refused(counts, wrong, data = data)
  }
  refused(TRUE, ~ class, subject = subject)
  refused(counts, matrix(0, 40, 2), subject = subject)
  codes <- structure(rep(c(2L, 9L), 20), class = "factor", levels = "a")
  refused(counts, ~ class, data = data.frame(class = I(class), other = 1)[0, ], subject = subject)
  data$class <- codes
  refused(counts, ~ class, data = data, subject = subject)
  refused(counts, class, subject = codes)
  odd <- structure(subject, class = "data.frame")
  usual <- gene_ranking(counts, class, subject = subject)
  expect_identical(gene_ranking(counts, stats::setNames(class, rep(NA, 40)), subject = odd)$p_value, usual$p_value)
})

test_that("an odd gene whose tail underflows is set apart", {
  set.seed(1)
  few <- weft:::freedom_of_largest(c(rep(1, 99), 42.7), 53, 6030, -Inf)
  expect_gt(few, 0)
  expect_equal(pf(42.7, 53, few, lower.tail = FALSE), 0.5, tolerance = 1e-6)
})

test_that("a trend over means of which one is far from all others is none", {
  d <- ranked_data()
  d$x[1, 1] <- 1e300
  r <- suppressWarnings(gene_ranking(gene_quality(d$x, d$class, transform = "none"), control = list(trend = TRUE)))
  expect_gt(sum(!is.na(r$p_value)), 50)
  matrix <- gene_ranking(ranked_data()$x, ~ class, data = data.frame(class = d$class), term = matrix("class"))
  expect_identical(attr(matrix, "model")$term, "class")
})
