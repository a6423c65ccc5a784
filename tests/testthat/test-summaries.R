# summary(), plot(), autoplot(), tidy() and glance() of every class; the numbers themselves are tested beside their
# functions.

# Results of small data, one of each class that a function returns.
some_results <- function() {
  withr::local_seed(1)
  x <- as.data.frame(matrix(sample(0:2, 600, TRUE), 100))
  class <- sample(0:1, 100, TRUE)
  e <- weft_example("expression", n = 60, p = 30, seed = 1)
  q <- gene_quality(e$x, e$class)
  dag <- bn_learn(x, iterations = 50, seed = 1)
  snps <- matrix(rbinom(1200, 2, 0.4), 200)
  list(
    mi = mi_rank(x, class), pairs = mi_pairs(x, class, permutations = 9, seed = 1), select = mi_select(x, class, k = 3),
    matrix = mi_matrix(x), network = mi_network(x, "relnet", threshold = 0), bins = discretize(iris[1:4], bins = 3),
    pack = mi_pack(x, class), scan = pair_scan(snps, rnorm(200), top = 5),
    dag = dag, fit = bn_fit(x, dag), scores = bn_scores(x), compare = bn_compare(dag, dag),
    prior = bn_prior(c("a", "b", "c"), required = cbind("a", "b")),
    features = bn_features(bn_exact(x[1:3], posterior = "dag"), draws = 20, seed = 1),
    kde = kde(faithful, "scott"), tree = kernel_tree(as.matrix(faithful)),
    regression = kernel_regression(faithful$waiting, faithful$eruptions, 5), pca = pca(iris[1:4]),
    chosen = pca_choose_k(as.matrix(iris[1:4]), seed = 1), irm = irm(x > 1, sweeps = 8, chains = 2, seed = 1),
    quality = q, outliers = gene_outliers(q), ranking = gene_ranking(q), clusters = gene_clusters(q, k = 2, seed = 1),
    modules = gene_modules(q, seed = 1),
    sets = gene_sets(colnames(e$x)[1:9], list(a = colnames(e$x)[1:6], b = colnames(e$x)[20:26]), colnames(e$x),
                     min_size = 2)
  )
}

methods_of <- function(generic) {
  registered <- getNamespaceInfo("weft", "S3methods")
  registered[registered[, 1L] == generic, 2L]
}

test_that("plot() and autoplot() exist together", {
  skip_if_not_installed("ggplot2")
  loadNamespace("ggplot2")
  drawn <- methods_of("plot")
  with_ggplot <- names(Filter(Negate(is.null), sapply(drawn, function(class) {
    utils::getS3method("autoplot", class, optional = TRUE, envir = asNamespace("ggplot2"))
  }, simplify = FALSE)))
  expect_identical(with_ggplot, drawn)
  methods <- grep("^autoplot[.]", ls(asNamespace("weft")), value = TRUE)
  expect_setequal(sub("autoplot.", "", methods, fixed = TRUE), drawn)
})

test_that("every result has a summary that prints", {
  results <- some_results()
  for (name in names(results)) {
    shown <- utils::capture.output(print(summary(results[[name]])))
    expect_gt(length(shown), 1L, label = name)
    expect_false(any(grepl("attr(,", shown, fixed = TRUE)), label = name)
  }
  tidied <- setdiff(methods_of("tidy"), c("weft_gene_network", "weft_irm", "weft_bn"))
  expect_identical(setdiff(tidied, methods_of("summary")), character())
  s <- summary(results$select)
  expect_identical(s$selected, 3L)
  expect_identical(s$first_rows, tidy(results$select))
  expect_output(print(s), "Selected features\\s+selected: 3\\s+features: 6")
  expect_output(print(summary(results$prior)), "required:\\s+from to nats\\s+a\\s+b\\s+0")
  expect_output(print(summary(results$pairs)), "kept: 15\\s+searched: 15\\s+mi: 0%: ")
})

test_that("tidy() has broom's names", {
  results <- some_results()
  for (name in setdiff(names(results), c("pack", "prior", "tree"))) {
    names <- names(tidy(results[[name]]))
    expect_false(any(c("p_value", "q_value", "p_bonferroni", "std_error", "lower", "upper") %in% names), label = name)
  }
  ranked <- tidy(results$mi)
  expect_identical(ranked$estimate, results$mi$mi)
  expect_identical(ranked$p.value, results$mi$p_value)
  expect_identical(ranked$adj.p.value, results$mi$q_value)
  expect_identical(tidy(results$sets)$p.value, results$sets$p_value)
  expect_identical(glance(results$sets)$tests, nrow(results$sets))
})

test_that("plot() and autoplot() of a class draw the same", {
  skip_if_not_installed("ggplot2")
  results <- some_results()
  withr::local_pdf(NULL)
  for (name in c("bins", "scores", "outliers", "quality", "clusters", "scan", "tree")) {
    drawn <- ggplot2::autoplot(results[[name]])
    expect_no_error(ggplot2::ggplot_build(drawn))
    expect_identical(plot(results[[name]]), results[[name]], label = name)
  }
  p <- sort(results$scan$p_value)
  built <- ggplot2::layer_data(ggplot2::autoplot(results$scan), 3L)
  expect_equal(built$y, -log10(p))
  expect_equal(built$x, -log10((seq_along(p) - 0.5) / attr(results$scan, "tested")))
  bars <- ggplot2::autoplot(results$bins, top = 2)$data
  expect_equal(bars$value, c(3, 3))
  e <- weft_example("expression", n = 60, p = 20, missing = 0, spoilt = FALSE, seed = 1)
  both <- regulation(e$x, compare = rep(1:2, each = 30), permutations = 9, seed = 1,
                     control = list(resamples = 20, null_copies = 0))
  few <- ggplot2::autoplot(both, top = 4)
  expect_no_error(ggplot2::ggplot_build(few))
  expect_identical(few$layers[[1L]]$data$change, utils::head(as.data.frame(both), 4)$change)
  expect_identical(few$labels$title, "1 to 2: the 4 edges that changed most")
})
