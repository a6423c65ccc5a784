# The workflow on simulated data with known truth, step by step and in one call.

small <- weft_example("expression", n = 80, p = 40, seed = 3)
quick <- function(...) {
  call_with(gene_network, list(small$x, small$class, batch = small$batch, seed = 5, ...,
                               run = weft_run(progress = FALSE),
                               steps = list(clusters = list(method = "irm", chains = 2, sweeps = 30),
                            bayes = list(genes = 8, iterations = 2000), pairs = list(permutations = 9))))
}
fit <- quick()

test_that("examples are the same for the same seed and leave R's generator alone", {
  set.seed(1)
  before <- .Random.seed
  a <- weft_example("expression", n = 30, p = 20, seed = 9)
  expect_identical(.Random.seed, before)
  expect_identical(weft_example("expression", n = 30, p = 20, seed = 9), a)
  expect_false(identical(weft_example("expression", n = 30, p = 20, seed = 10)$x, a$x))
  expect_true(all(a$truth[lower.tri(a$truth, TRUE)] == 0)) # parents come first
  expect_true(all(colSums(a$truth)[-(1:3)] >= 1), all(colSums(a$truth) <= 3))
  expect_identical(dim(weft_example("snps", n = 50, p = 30)$x), c(50L, 30L))
  words <- weft_example("words")
  expect_s4_class(words$x, "dgCMatrix")
  expect_gt(mean(as.matrix(words$x[words$row_cluster == "music", words$col_cluster == "music"])), 0.25)
  expect_output(print(words), "words")
  expect_error(weft_example("golub", n = 10), "simulated", class = "weft_error_input")
  expect_true(all(c("name", "available") %in% names(weft_example())))
})

test_that("signal and noise of a gene are equal, so that half of its variance hangs on its parents", {
  e <- weft_example("expression", n = 4000, p = 20, batch = 0, missing = 0, outliers = 0, spoilt = FALSE)
  child <- which(colSums(e$truth) > 0)
  shares <- vapply(child,
                   function(j) summary(stats::lm(e$x[, j] ~
                                                 tanh(1.3 * (e$x[, e$truth[, j] == 1, drop = FALSE] - 8) /
                                                      1.2)))$r.squared, 0)
  expect_true(all(abs(shares[!names(shares) %in% e$drivers] - 0.5) < 0.06))
})

test_that("quality leaves out, fills and writes down", {
  q <- fit$quality
  expect_identical(sort(q$genes$gene[!q$genes$kept]), c("CONSTANT1", "CONSTANT2", "GAPS1", "GAPS2"))
  expect_identical(q$genes$reason[q$genes$gene == "GAPS1"], "missing values")
  expect_false(anyNA(q$x))
  expect_identical(q$imputed, sum(is.na(small$x[, colnames(q$x)])))
  expect_true(all(c("constant", "missing values", "batch") %in% q$log$step))
  first <- q$batch == "first"
  design <- stats::model.matrix(~ class + batch, data.frame(class = q$class, batch = q$batch))
  beta <- qr.coef(qr(design), gene_quality(small$x[, colnames(q$x)], small$class, small$batch, impute = "median")$x)
  whole <- colSums(is.na(small$x[, colnames(q$x)])) == 0
  expect_lt(max(abs(beta["batchsecond", whole])), 1e-10)
  expect_output(print(q), "Constant genes")
})

test_that("filled cells come nearer to the truth than medians", {
  e <- weft_example("expression", n = 100, p = 60, missing = 0, outliers = 0, batch = 0, spoilt = FALSE)
  x <- e$x
  gaps <- (row(x) * 7 + col(x) * 13) %% 50 == 0
  x[gaps] <- NA
  error <- function(impute) sqrt(mean((gene_quality(x, impute = impute)$x - e$x)[gaps]^2))
  expect_lt(error("components"), 0.95 * error("median"))
})

test_that("the call does what its steps do", {
  q <- gene_quality(small$x, small$class, small$batch)
  expect_equal(fit$quality$x, q$x)
  expect_equal(as.data.frame(fit$ranking), as.data.frame(gene_ranking(q)))
  expect_equal(as.matrix(fit$network), as.matrix(gene_regulation(q, seed = 5 + 5)))
  expect_equal(fit$clusters$row_cluster, gene_clusters(q, method = "irm", chains = 2, sweeps = 30,
                                                       seed = 5 + 6)$row_cluster)
  again <- quick()
  expect_identical(again$bayes$edges, fit$bayes$edges)
  expect_identical(again$pairs$p_fwer, fit$pairs$p_fwer)
})

test_that("what was planted is found", {
  expect_true(all(small$outliers %in% utils::head(fit$outliers$sample, 5)))
  expect_gte(length(intersect(utils::head(fit$ranking$gene, 10),
                             c(small$drivers, names(which(colSums(small$truth[small$drivers, ]) > 0))))), 6)
  edges <- as.data.frame(fit, what = "edges")
  expect_gt(nrow(edges), 5)
  truth <- small$truth + t(small$truth)
  expect_gt(mean(truth[cbind(edges$from, edges$to)]), 0.4) # 40 genes have 5 % of pairs linked
  expect_gt(mean(small$truth[cbind(edges$from, edges$to)]), 0.3)
  snps <- weft_example("snps")
  pairs <- gene_pairs(snps$x, snps$class, permutations = 19, seed = 1)
  expect_identical(c(pairs$feature1[1], pairs$feature2[1]), snps$epistatic)
  expect_equal(pairs$p_fwer[1], 0.05)
})

test_that("significant_pairs() is Benjamini and Hochberg's threshold", {
  x <- small$x[, 1:30]
  x[is.na(x)] <- 8
  for (estimator in c("spearman", "kendall", "pearson")) {
    m <- mi_matrix(x, estimator = estimator)
    p <- weft:::pair_p_values(m)
    passes <- stats::p.adjust(p[upper.tri(p)], "BH") <= 0.05
    whole <- as.matrix(m) + 0
    kept <- weft:::cut_to_significant(whole, m, weft:::significant_pairs(m, 0.05), weft:::pass_control())
    expect_identical(kept[upper.tri(m)] > 0, passes)
  }
  none <- weft:::significant_pairs(mi_matrix(matrix(weft:::draws("normal", 900), 30), estimator = "spearman"), 1e-9)
  expect_identical(none$cut, Inf)
  expect_null(weft:::significant_pairs(mi_matrix(x, estimator = "ksg"), 0.05))
})

test_that("edges are counted, listed and cut as by tables", {
  q <- gene_quality(small$x, small$class)
  all <- gene_mi_network(q, fdr = 1, edges = Inf)
  w <- as.matrix(all)
  upper <- w[upper.tri(w)]
  expect_identical(weft:::count_edges(all), as.numeric(sum(upper > 0)))
  expect_equal(weft:::network_degree(all), colSums(w > 0))
  expect_identical(weft:::pairs_reaching(attr(all, "mi"), 0.1), as.numeric(sum(attr(all, "mi")[upper.tri(w)] >= 0.1)))
  for (count in c(1, 7, 50)) {
    kept <- gene_mi_network(q, fdr = 1, edges = count)
    bar <- sort(upper, decreasing = TRUE)[count]
    expect_identical(as.matrix(kept), w * (w >= bar))
    expect_identical(as.data.frame(kept)[1:3], utils::head(as.data.frame(all)[1:3], weft:::count_edges(kept)),
                     ignore_attr = TRUE)
  }
  significant <- gene_mi_network(q, fdr = 1e-6, edges = 5)
  m <- attr(all, "mi")
  expect_identical(as.matrix(significant) > 0,
                   w >= sort(w[upper.tri(w) & m > attr(significant, "cut")], decreasing = TRUE)[5] & w > 0)
  before <- w + 0
  other_name <- w
  control <- weft:::pass_control()
  cut <- .Call(weft:::C_weft_mi_cut_edges, w, w, -Inf, Inf, control)
  expect_identical(w, before) # what has another name is left alone
  expect_true(all(cut == 0))
  expect_identical(.Call(weft:::C_weft_mi_greatest, w, w, -Inf, 1e9, control), 0)
})

test_that("steps can be left out, given arguments and replaced", {
  q <- gene_quality(small$x, small$class)
  part <- gene_network(small$x, small$class, seed = 1, steps = list(
    components = FALSE, outliers = FALSE, clusters = FALSE, bayes = FALSE, pairs = FALSE,
    network = list(method = "clr", edges = 12), ranking = function(q) gene_ranking(q, control = list(trend = TRUE))))
  expect_null(part$components)
  expect_true("components" %in% names(part))
  expect_equal(weft:::count_edges(part$network), 12)
  expect_equal(part$ranking$t, gene_ranking(q, control = list(trend = TRUE))$t)
  expect_output(print(part), "not run +components, pairs, clusters, bayes, outliers")
  none <- gene_network(small$x, steps = list(components = FALSE, outliers = FALSE, clusters = FALSE, bayes = FALSE,
                                             network = FALSE))
  expect_null(none$ranking)
  expect_error(plot(none), "a result to plot", class = "weft_error_input")
  expect_error(as.data.frame(none, what = "edges"), "was not run", class = "weft_error_input")
  expect_error(gene_network(small$x, steps = list(network = "clr")), "list of arguments", class = "weft_error_input")
  expect_error(gene_network(small$x, steps = list(quality = FALSE)), "`steps$quality` must", fixed = TRUE,
               class = "weft_error_input")
  expect_error(gene_network(small$x, steps = list(components = FALSE)), "needs the step `components`",
               class = "weft_error_input")
})

test_that("time and memory are estimated, and memory is kept to", {
  estimate <- gene_network(small$x, small$class, run = weft_run(dry_run = TRUE))
  expect_identical(estimate$step, weft:::workflow_steps[-1])
  expect_true(all(estimate$seconds > 0 & estimate$bytes > 0))
  q <- gene_quality(small$x, small$class)
  net <- gene_mi_network(q, run = weft_run(memory = 1e6))
  expect_identical(ncol(net), 40L)
  withr::local_options(weft.progress = FALSE)
  wide <- matrix(weft:::draws("normal", 20 * 400), 20)
  expect_identical(ncol(gene_mi_network(wide, run = weft_run(memory = 1e6))), as.integer(floor(sqrt(1e6 / 24))))
  expect_error(gene_mi_network(wide, genes = 300, run = weft_run(memory = 1e6)), "may be used",
               class = "weft_error_memory")
  said <- gene_network(wide, seed = 1, steps = list(clusters = FALSE, bayes = FALSE, outliers = FALSE),
                       run = weft_run(memory = 1e6))
  expect_match(said$quality$log$what, "of the 204 genes that vary most: all pairs of 400 genes", all = FALSE)
  expect_null(attr(fit$network, "limited"))
})

test_that("progress tells the steps and their times", {
  said <- testthat::capture_messages(gene_network(small$x, small$class, run = weft_run(progress = TRUE), seed = 1,
                                                  steps = list(bayes = FALSE, clusters = FALSE, pairs = FALSE)))
  expect_match(said[1], "quality .*80 samples and 40 genes kept")
  expect_match(said[2], "^About .* of work, at most .* of memory")
  expect_match(said[length(said)], "outliers")
})

test_that("a page is printed, tables have a row per gene and sample", {
  text <- utils::capture.output(print(fit))
  expect_lt(length(text), 40)
  expect_true(all(nchar(text) <= 115))
  genes <- as.data.frame(fit, what = "genes")
  expect_identical(genes$gene, colnames(small$x))
  expect_identical(genes$rank[match(fit$ranking$gene[1], genes$gene)], 1L)
  expect_true(all(is.na(genes[["p_value"]][!genes$kept])))
  samples <- augment(fit)
  expect_identical(samples$sample, rownames(small$x))
  expect_equal(samples$PC1, unname(fit$components$x[, 1]))
  expect_identical(samples$outlier, samples$sample %in% fit$outliers$sample[fit$outliers$outlier])
  expect_identical(nrow(glance(fit)), 1L)
  expect_identical(as.data.frame(fit, what = "log")$step, fit$quality$log$step)
  expect_identical(tidy(fit), genes)
  expect_identical(as.data.frame(fit, "edges"), as.data.frame(fit, what = "edges"))
  expect_error(as.data.frame(fit, "edge"), "must be one of", class = "weft_error_input")
  narrow <- withr::with_options(list(width = 60), utils::capture.output(print(fit)))
  expect_true(all(nchar(narrow[-length(narrow)]) <= 60))
  expect_type(summary(fit), "list")
})

# Clean data of one kind, n samples of p genes.
clean <- function(kind, key, n = 60, p = 60) {
  normal <- function(r, c, stream) matrix(weft:::draws("normal", r * c, key = key, stream = stream), r)
  chi <- function(count, df, stream) 2 * weft:::draws("gamma", count, a = df / 2, b = 1, key = key, stream = stream)
  z <- normal(n, p, 1)
  x <- switch(kind, plain = z, groups = z + outer(seq_len(n) <= 0.15 * n, 1.5 * drop(normal(1, p, 2))),
              t = z / sqrt(matrix(chi(n * p, 3, 3), n) / 3), rows = z / sqrt(chi(n, 5, 3) / 5),
              batches = z + normal(3, p, 2)[rep(1:3, n * c(0.6, 0.3, 0.1)), ],
              factors = z / sqrt(matrix(chi(n * p, 4, 3), n) / 4) + normal(n, 3, 4) %*% normal(3, p, 5))
  dimnames(x) <- list(paste0("s", seq_len(n)), paste0("g", seq_len(p)))
  x
}

test_that("outliers and numbers of components hold their levels on clean data", {
  # of 16 runs at a level of 0.05 more than 4 have a probability of 0.001
  for (kind in c("plain", "groups", "t", "batches", "factors")) {
    known <- c(plain = 0, groups = 1, t = 0, batches = 2, factors = 3)[[kind]]
    over <- vapply(1:16, function(key) {
      x <- clean(kind, key)
      fit <- suppressWarnings(gene_components(x, k = 6, seed = key))
      c(any(gene_outliers(fit, data = x)$outlier), fit$choice$k > known)
    }, logical(2))
    expect_lte(sum(over[1L, ]), 4, label = paste("runs with outliers:", kind))
    expect_lte(sum(over[2L, ]), 4, label = paste("runs with more components:", kind))
  }
})

test_that("samples that do stand apart are found, and no others", {
  found <- vapply(1:6, function(key) {
    e <- weft_example("expression", n = 80, p = 60, seed = key, batch = 0, missing = 0, spoilt = FALSE)
    fit <- suppressWarnings(gene_components(e$x, seed = key))
    o <- gene_outliers(fit, data = e$x)
    told <- o$sample[o$outlier]
    c(sum(told %in% e$outliers), sum(!told %in% e$outliers))
  }, numeric(2))
  expect_gte(sum(found[1L, ]), 16) # of 18
  expect_lte(sum(found[2L, ]), 1)
  # components of their own, to which a plane of all samples leans
  e <- weft_example("expression", n = 150, p = 80, seed = 4)
  q <- gene_quality(e$x, e$class, e$batch)
  o <- gene_outliers(gene_components(q, leading = 7, seed = 1), data = q)
  expect_setequal(o$sample[o$outlier], e$outliers)
  expect_lt(max(o$q_value[o$outlier]), 1e-4)
  few <- gene_outliers(pca(as.matrix(q), 2, scale = TRUE, seed = 1), data = q) # makes components to spare
  expect_true(all(e$outliers %in% few$sample[few$outlier]))
})

test_that("distances are those from the plane of the other samples", {
  x <- clean("factors", 3, n = 20, p = 12)
  fit <- gene_components(x, k = 12, leading = 3, seed = 1)
  z <- scale(x)
  apart <- vapply(seq_len(20), function(i) {
    others <- stats::prcomp(z[-i, ])
    own <- z[i, ] - others$center
    sqrt(mean((own - others$rotation[, 1:3] %*% crossprod(others$rotation[, 1:3], own))^2))
  }, 0)
  expect_equal(weft:::distance_from_others(fit, x), apart, tolerance = 1e-10)
  o <- gene_outliers(fit, data = x)
  at <- match(o$sample, rownames(x))
  alone <- is.na(weft:::sample_twins(fit, x))[at]
  expect_gt(sum(alone), 10)
  expect_equal(o$distance[alone], apart[at][alone], tolerance = 1e-10)
})

test_that("p-values of distances hold for samples that are noisier than others by degrees", {
  law <- function(key) 0.5 * log(5 / (2 * weft:::draws("gamma", 30, a = 2.5, b = 1, key = key)))
  least <- vapply(51:250, function(key) min(weft:::spread_p(law(key))), 0)
  for (level in c(0.05, 0.2)) {
    range <- stats::qbinom(c(5e-4, 1 - 5e-4), 200, 1 - (1 - level / 30)^30)
    expect_gte(sum(30 * least <= level), range[1L])
    expect_lte(sum(30 * least <= level), range[2L])
  }
  expect_equal(weft:::spread_p(2 + 3 * law(7)), weft:::spread_p(law(7)))
  expect_identical(weft:::spread_p(rep(1, 20)), rep(1, 20))
  expect_identical(weft:::spread_p(c(9, 1:8)), (1:9)[c(1, 9:2)] / 9)
})

test_that("the tail's p-values are those of exponential samples, whatever the scale", {
  p <- vapply(1:400, function(key) {
    s <- 3 + 10 * weft:::draws("exponential", 50, key = key)
    weft:::tail_p(s)[which.max(s)]
  }, 0)
  # the greatest of five: (1 - u)^5 with u = 10 p
  expect_gt(stats::ks.test(1 - (1 - 10 * p)^5, "punif")$p.value, 0.001)
  expect_identical(weft:::tail_p(rep(1, 20)), rep(1, 20))
  expect_true(all(weft:::tail_p(c(rep(0, 19), 1)) == 1))
  expect_true(all(weft:::tail_p(1:8) <= 1))
})

test_that("plots draw without error", {
  withr::local_pdf(NULL)
  for (which in c("overview", "samples", "variance", "ranking", "pairs", "network", "clusters", "bayes", "outliers")) {
    expect_invisible(plot(fit, which))
  }
  expect_error(plot(fit, "all"), class = "weft_error_input")
})

test_that("counts, intensities and genotypes are told apart", {
  counts <- matrix(stats::rpois(40 * 30, rep(stats::rexp(30, 1 / 300), each = 40)), 40)
  if (requireNamespace("SummarizedExperiment", quietly = TRUE)) { # an assay's name says it
    named <- function(name) SummarizedExperiment::SummarizedExperiment(stats::setNames(list(t(counts)), name))
    expect_silent(q <- gene_quality(named("counts")))
    expect_identical(q$scale, "counts")
    expect_warning(gene_quality(named("other")), class = "weft_warning_counts")
  }
  expect_warning(q <- gene_quality(counts), "raw counts", class = "weft_warning_counts")
  offset <- q$x - log2(counts + 0.5) # one per sample: the total times a factor near 1
  expect_lt(max(abs(offset - offset[, 1])), 1e-12)
  expect_lt(max(abs(offset[, 1] + log2(rowSums(counts) + 1) - log2(1e6))), 0.2)
  expect_silent(gene_quality(counts, transform = "counts"))
  cells <- matrix(stats::rpois(300 * 30, outer(stats::rexp(300) + 0.2, stats::rexp(30, 1))), 300)
  cells[1, 1] <- 60
  expect_warning(q <- gene_quality(cells, control = list(max_same = 1)), "single cells", class = "weft_warning_counts")
  size <- rowSums(cells)
  expect_equal(q$x[, 2], log2(1 + cells[, 2] / (size / mean(size))), ignore_attr = TRUE)
  expect_silent(gene_quality(cells, transform = "cells", control = list(max_same = 1)))
  expect_error(gene_quality(cells - 1, transform = "cells"), "not negative", class = "weft_error_input")
  expect_warning(gene_quality(exp(matrix(stats::rnorm(1200, 5, 2), 40))), "long tail", class = "weft_warning_scale")
  expect_identical(gene_quality(weft_example("snps", n = 60, p = 30)$x)$kind, "levels")
})

test_that("depth of cells does not become correlation of genes", {
  withr::local_seed(9)
  x <- matrix(stats::rpois(300 * 40, outer(exp(stats::rnorm(300, 0, 0.7)), exp(stats::rnorm(40, 0, 1)))), 300)
  mean_correlation <- function(transform) {
    r <- stats::cor(gene_quality(x, transform = transform, min_count = 0)$x)
    mean(r[upper.tri(r)])
  }
  expect_lt(abs(mean_correlation("cells")), 0.02)
  expect_gt(mean_correlation("log2"), 0.05) # as without a size factor
})

test_that("genotypes go through the whole workflow", {
  e <- weft_example("snps", n = 200, p = 30)
  x <- e$x
  x[cbind(1:5, 1:5)] <- NA
  fit <- gene_network(x, e$class, seed = 1, steps = list(clusters = list(method = "irm", chains = 1, sweeps = 20),
                                                         bayes = list(genes = 5, iterations = 500)))
  expect_identical(fit$bayes$table$type, "bdeu")
  expect_true(all(fit$quality$x == round(fit$quality$x)))
})

test_that("Bayesian networks take genes, scores and the network as prior", {
  q <- gene_quality(small$x, small$class)
  net <- gene_mi_network(q)
  genes <- colnames(q$x)[1:7]
  a <- gene_bayes(q, genes = genes, network = net, candidates = 3, seed = 1,
                  iterations = 500, control = list(score = "bge"))
  expect_identical(rownames(a$dag), genes)
  expect_identical(a$table$type, "bge")
  expect_equal(a$data[[1]], stats::qnorm(rank(q$x[, 1]) / 81), ignore_attr = TRUE)
  expect_identical(a$average, weft:::average_network(a$edges))
  expect_length(weft:::find_cycle(a$average != 0), 0)
  ring <- rbind(c(0, 0.9, 0.1), c(0, 0, 0.8), c(0.6, 0, 0))
  expect_identical(weft:::average_network(ring), rbind(c(0L, 1L, 0L), c(0L, 0L, 1L), c(0L, 0L, 0L)))
  b <- gene_bayes(q, genes = genes, seed = 1, iterations = 500, control = list(score = "bdeu", target = "max"))
  expect_null(b$edges)
  expect_identical(vapply(b$data, nlevels, 0L), stats::setNames(rep(3L, 7), genes))
  p <- gene_bayes(q, genes = genes, network = net, prior = 1, seed = 1, iterations = 500, control = list(score = "bge"))
  strongest <- which(as.matrix(net)[genes, genes] == max(as.matrix(net)[genes, genes]), arr.ind = TRUE)[1, ]
  expect_gte(max(p$edges[strongest[1], strongest[2]] + p$edges[strongest[2], strongest[1]]),
             a$edges[strongest[1], strongest[2]] + a$edges[strongest[2], strongest[1]] - 0.02)
  expect_error(gene_bayes(q, genes = 5, prior = 1), "needs `network`", class = "weft_error_input")
  expect_error(gene_bayes(q, genes = c("TF01", "none")), "`genes` must", class = "weft_error_input")
  expect_error(gene_bayes(q, genes = 5, network = as.matrix(net)), "gene_mi_network", class = "weft_error_input")
})

test_that("pairs are tested when it is affordable, and chance is not named", {
  expect_identical(weft:::usual_permutations(1000, 100), c(19, 99, 999))
  expect_identical(weft:::usual_permutations(20000, 500), 19)
  expect_identical(weft:::usual_permutations(1e5, 1e5), 0)
  noise <- matrix(weft:::draws("normal", 40 * 20, key = 3), 40, dimnames = list(NULL, paste0("g", 1:20)))
  fit <- gene_network(noise, rep(1:2, 20), seed = 1, run = weft_run(progress = FALSE),
                      steps = list(network = FALSE, clusters = FALSE, bayes = FALSE))
  expect_gt(min(fit$pairs$p_fwer), 0.05)
  text <- gsub(" +", " ", paste(utils::capture.output(print(fit)), collapse = " ")) # lines are wrapped
  expect_match(text, "none of 190 pairs is significant \\(smallest p, adjusted for all pairs: 0\\.")
  expect_match(fit$steps$note[fit$steps$step == "pairs"], "190 pairs searched, none significant")
  expect_match(weft:::pairs_text(fit$pairs), "No pair is significant. The smallest p-value, .* is 0\\.")
  expect_match(weft:::pairs_text(fit$pairs[0, ]), "There are no pairs")
  expect_identical(attr(fit$pairs, "permutations"), 19)
  snps <- weft_example("snps", n = 400, p = 30)
  usual <- gene_pairs(snps$x, snps$class, seed = 1)
  expect_gt(attr(usual, "permutations"), 19)
  expect_identical(data.frame(usual), data.frame(gene_pairs(snps$x, snps$class, seed = 1,
                                                            permutations = attr(usual, "permutations"))))
  told <- weft:::pair_text(gene_pairs(snps$x, snps$class, permutations = 39, seed = 1), 3)
  expect_match(told, "of 435 pairs (is|are) significant. Top: rs.* x rs.*adjusted p = 0.025")
  untested <- gene_pairs(snps$x, snps$class, permutations = 0)
  expect_identical(weft:::pair_text(untested, 3), "435 pairs, not tested")
  withr::local_pdf(NULL)
  expect_invisible(plot(fit, "pairs"))
})

test_that("without a class, the genes of the Bayesian network are those that a directed network joins most", {
  e <- weft_example("expression", n = 60, p = 30, seed = 6, missing = 0, spoilt = FALSE)
  set.seed(6)
  regulators <- colnames(e$x)[11:22] # neither all genes nor the first
  fit <- gene_network(e$x, seed = 1, run = weft_run(progress = FALSE), regulators = regulators,
                      steps = list(clusters = FALSE, pairs = FALSE,
                                   bayes = list(genes = 5, iterations = 200, resample = 0)))
  edges <- as.data.frame(fit$network)
  ends <- table(factor(c(edges$from, edges$to), colnames(e$x)))
  w <- as.matrix(fit$network)
  weight <- colSums(w)[colnames(e$x)]
  weight[regulators] <- weight[regulators] + rowSums(w)[regulators]
  expect_setequal(fit$bayes$genes, colnames(e$x)[order(-ends, -weight)[1:5]])
  # who regulates is a parent in the prior
  chosen <- c(regulators[1:2], colnames(e$x)[1:2])
  stronger <- fit$network
  stronger[regulators[1], chosen[3]] <- 2 * max(w)
  prior <- weft:::bayes_prior(chosen, stronger, 1)
  expect_identical(unname(which(prior$R == max(prior$R), arr.ind = TRUE)[1, ]), c(3L, 1L))
})

test_that("a level NA is no group of samples", {
  x <- matrix(stats::rnorm(240), 40)
  g <- rep(c("a", "b"), 20)
  unknown <- addNA(factor(c(NA, g[-1])))
  expect_error(gene_quality(x, unknown), "`class` must be known for every sample.*missing for 1 of 40",
               class = "weft_error_input")
  expect_error(gene_quality(x, g, batch = unknown), "NA is a level", class = "weft_error_input")
})

test_that("a formula says class and covariates, of a data frame or of the container's table", {
  quick <- function(...) call_with(gene_network, list(small$x, ..., seed = 1, run = weft_run(progress = FALSE),
                                                      steps = list(
    components = FALSE, outliers = FALSE, clusters = FALSE, bayes = FALSE, network = FALSE, pairs = FALSE)))
  samples <- data.frame(group = small$class, run = small$batch, age = seq_len(nrow(small$x)))
  by_formula <- quick(~ run + age + group, covariates = samples)
  by_hand <- quick(small$class, covariates = samples[c("run", "age")])
  expect_identical(by_formula$quality, by_hand$quality)
  expect_identical(as.data.frame(by_formula$ranking), as.data.frame(by_hand$ranking))
  expect_error(quick(~ run + sex, covariates = samples), "There is no `sex`", class = "weft_error_input")
  expect_error(quick(~ run * group, covariates = samples), "sum of variables", class = "weft_error_input")
  expect_error(quick(group ~ run, covariates = samples), "sum of variables", class = "weft_error_input")
  expect_error(quick(~ group, covariates = 1:3), "data frame with the variables of the formula",
               class = "weft_error_input")
  skip_if_not_installed("SummarizedExperiment")
  se <- SummarizedExperiment::SummarizedExperiment(list(values = t(small$x)), colData = samples)
  of_table <- gene_network(se, ~ run + age + group, seed = 1, run = weft_run(progress = FALSE), steps = list(
    components = FALSE, outliers = FALSE, clusters = FALSE, bayes = FALSE, network = FALSE, pairs = FALSE))
  expect_equal(of_table$quality$x, by_hand$quality$x, ignore_attr = TRUE)
})
