# Round trips with the packages that users have.

e <- weft_example("expression", n = 50, p = 25, seed = 4)
fit <- gene_network(e$x, e$class, batch = e$batch, seed = 2, run = weft_run(progress = FALSE),
                    steps = list(clusters = list(method = "irm", chains = 1, sweeps = 20),
                                 bayes = list(genes = 6, iterations = 1000), pairs = FALSE))

test_that("SummarizedExperiment and SingleCellExperiment come in, and results go back", {
  skip_if_not_installed("SingleCellExperiment")
  sce <- SingleCellExperiment::SingleCellExperiment(list(counts = t(e$x) * 0, logcounts = t(e$x)),
                                                    colData = data.frame(group = e$class, run = e$batch))
  again <- gene_network(sce, "group", assay = "logcounts", batch = "run", seed = 2, run = weft_run(progress = FALSE),
                        steps = list(clusters = list(method = "irm", chains = 1, sweeps = 20),
                                     bayes = list(genes = 6, iterations = 1000), pairs = FALSE))
  expect_equal(again$quality$x, fit$quality$x)
  expect_identical(again$bayes$dag, fit$bayes$dag)
  full <- add_results(sce, again)
  expect_s4_class(full, "SingleCellExperiment")
  rows <- SummarizedExperiment::rowData(full)
  expect_identical(rows$weft_rank, as.data.frame(fit, what = "genes")$rank)
  expect_identical(SummarizedExperiment::colData(full)$weft_outlier, as.data.frame(fit, what = "samples")$outlier)
  expect_true(all(c("group", "run") %in% names(SummarizedExperiment::colData(full))))
  scores <- SingleCellExperiment::reducedDim(full, "weft_pca")
  expect_equal(scores, fit$components$x, ignore_attr = TRUE)
  expect_identical(getExportedValue("S4Vectors", "metadata")(full)$weft$seed, 2)
  expect_identical(SummarizedExperiment::assays(full), SummarizedExperiment::assays(sce))
  se <- methods::as(sce, "SummarizedExperiment")
  expect_true("weft_q_value" %in% names(SummarizedExperiment::rowData(add_results(se, again))))
  expect_error(add_results(sce[1:5, ], again), "genes and samples", class = "weft_error_input")
  expect_error(add_results(sce[rev(seq_len(nrow(sce))), ], again), "same order", class = "weft_error_input")
  nameless <- sce
  nameless@colData@rownames <- replace(colnames(sce), 2L, NA)
  expect_error(add_results(nameless, again), "must not be missing", class = "weft_error_input")
  expect_error(add_results(e$x, again), "SummarizedExperiment", class = "weft_error_input")
})

test_that("igraph has the same edges and knows the genes", {
  skip_if_not_installed("igraph")
  g <- as_igraph(fit)
  edges <- as.data.frame(fit, what = "edges")
  expect_equal(igraph::ecount(g), nrow(edges))
  expect_equal(igraph::E(g)$weight, edges$weight)
  genes <- as.data.frame(fit, what = "genes")
  expect_equal(igraph::V(g)$rank, genes$rank[match(igraph::V(g)$name, genes$gene)])
  d <- as_igraph(fit, "bayes")
  expect_true(igraph::is_directed(d))
  expect_identical(bn_convert(d)[rownames(fit$bayes$dag), rownames(fit$bayes$dag)], fit$bayes$dag, ignore_attr = TRUE)
  expect_identical(igraph::ecount(as_igraph(fit$bayes)), as.numeric(sum(fit$bayes$dag)))
})

test_that("graphNEL has the same edges and weights", {
  skip_if_not_installed("graph")
  g <- network_convert(fit, "graphNEL")
  expect_s4_class(g, "graphNEL")
  m <- methods::as(g, "matrix")
  edges <- as.data.frame(fit, what = "edges")
  shown <- matrix(0, nrow(m), ncol(m), dimnames = dimnames(m))
  shown[cbind(edges$from, edges$to)] <- edges$weight
  expect_equal(m, shown, ignore_attr = TRUE)
  d <- network_convert(fit, "graphNEL", "bayes")
  expect_identical(graph::edgemode(d), "directed")
  expect_identical(bn_convert(bn_convert(fit$bayes, "graphNEL")), fit$bayes$dag, ignore_attr = TRUE)
})

test_that("tidygraph takes the tables", {
  skip_if_not(nzchar(system.file(package = "tidygraph")), "tidygraph cannot be loaded")
  g <- network_convert(fit, "tidygraph")
  expect_s3_class(g, "tbl_graph")
  expect_equal(igraph::ecount(g), nrow(as.data.frame(fit, what = "edges")))
})

test_that("bnlearn takes the Bayesian network and gives it back", {
  skip_if_not_installed("bnlearn")
  b <- network_convert(fit, "bnlearn", "bayes")
  expect_s3_class(b, "bn")
  expect_identical(bn_convert(b), fit$bayes$dag, ignore_attr = TRUE)
  expect_error(network_convert(fit, "bnlearn"), "Bayesian", class = "weft_error_input")
})

test_that("GraphML is read back by igraph, names with odd characters too", {
  skip_if_not_installed("igraph")
  m <- as.matrix(mi_matrix(mtcars[1:5], estimator = "spearman"))
  dimnames(m) <- rep(list(c("a<b", "c&d", "e\"f", "g'h", "\u00fcber")), 2)
  net <- mi_network(m, "relnet", threshold = 0.1)
  file <- withr::local_tempfile(fileext = ".graphml")
  write_network(net, file)
  g <- igraph::read_graph(file, "graphml")
  expect_setequal(igraph::V(g)$name, rownames(m))
  expect_equal(sort(igraph::E(g)$weight), sort(as.data.frame(net)$weight))
  expect_false(igraph::is_directed(g))
  write_network(fit, file, which = "bayes")
  g <- igraph::read_graph(file, "graphml")
  expect_true(igraph::is_directed(g))
  expect_equal(igraph::ecount(g), sum(fit$bayes$dag))
})

test_that("SIF and CSV have a line per edge", {
  file <- withr::local_tempfile(fileext = ".sif")
  write_network(fit, file, isolated = FALSE)
  edges <- as.data.frame(fit, what = "edges")
  expect_identical(readLines(file), paste(edges$from, "drives", edges$to, sep = "\t"))
  write_network(fit, file, which = "bayes", format = "csv")
  expect_identical(nrow(utils::read.csv(file)), nrow(as.data.frame(fit, what = "directed")))
  expect_error(write_network(fit, "network.xyz"), "format", class = "weft_error_input")
})

test_that("components stay what factoextra and broom take", {
  skip_if_not_installed("broom")
  expect_equal(broom::tidy(fit$components, matrix = "d")$std.dev, fit$components$sdev)
  skip_if_not_installed("factoextra")
  expect_equal(factoextra::get_eig(fit$components)$eigenvalue, fit$components$sdev^2)
  expect_s3_class(factoextra::fviz_pca_ind(fit$components), "ggplot")
})

test_that("every result tidies, glances and draws itself", {
  skip_if_not_installed("ggplot2")
  withr::local_pdf(NULL)
  set.seed(1)
  levels <- as.data.frame(lapply(mtcars[c("cyl", "gear", "am")], factor))
  results <- list(
    mi_matrix(mtcars, estimator = "spearman"), mi_rank(mtcars[c("cyl", "gear")], mtcars$am),
                                                       mi_pairs(mtcars[c("cyl", "gear", "carb")], mtcars$am),
    mi_select(mtcars[c("cyl", "gear", "carb")], mtcars$am, k = 2), fit$network, fit$bayes, fit$clusters, fit$components,
    fit$outliers, fit,
    kde(faithful), kde(faithful$waiting), kernel_regression(faithful$waiting, faithful$eruptions,
                                                            5), kernel_pca(faithful, 2, bandwidth = 2, seed = 1),
    pca_choose_k(matrix(stats::rnorm(400), 40), seed = 1), fit$quality, gene_quality(mtcars),
    discretize(mtcars, bins = 3),
    bn_fit(levels, bn_learn(levels, iterations = 200, seed = 1)),
    bn_fit(iris[1:4], bn_learn(iris[1:4], score = "bge", iterations = 200, seed = 1)),
    bn_scores(levels), gp_regression(faithful$waiting, faithful$eruptions, bandwidth = 12, noise = 0.1)
  )
  for (r in results) {
    expect_s3_class(tidy(r), "data.frame")
    expect_s3_class(glance(r), "data.frame")
    expect_identical(nrow(glance(r)), 1L)
    p <- ggplot2::autoplot(r)
    expect_s3_class(p, "ggplot")
    expect_no_error(print(p))
  }
  for (which in c("ranking", "network", "bayes", "clusters",
                  "outliers")) expect_s3_class(ggplot2::autoplot(fit, which), "ggplot")
  g <- gp_regression(faithful$waiting, faithful$eruptions, bandwidth = 12, noise = 0.1)
  expect_equal(augment(g)$.fitted + augment(g)$.resid, faithful$eruptions)
  expect_identical(names(augment(kde(faithful$waiting))), c("x", ".density"))
  expect_equal(augment(results[[13]])$.fitted, fitted(results[[13]]))
  expect_identical(nrow(tidy(discretize(mtcars, bins = 3))), sum(lengths(attr(discretize(mtcars, bins = 3), "cuts"))))
  compared <- bn_compare(fit$bayes, fit$bayes$dag)
  expect_identical(nrow(glance(compared)), 1L)
  made <- bn_fit(levels, bn_exact(levels)$dag)
  expect_equal(c(tapply(tidy(made)$estimate, paste(tidy(made)$node, tidy(made)$parents), sum)),
               rep(1, sum(lengths(tapply(
    tidy(made)$parents, tidy(made)$node, unique)))), ignore_attr = TRUE)
  expect_identical(glance(made)$parameters,
                   sum(tapply(tidy(made)$estimate, paste(tidy(made)$node, tidy(made)$parents), length) - 1))
  expect_s3_class(ggplot2::autoplot(compared), "ggplot")
  expect_s3_class(tidy(compared), "data.frame")
})

test_that("what is missing or no network is a classed error", {
  for (f in list(as_igraph, network_tables, network_convert, bn_convert, gene_bayes, gene_outliers, gene_quality,
                 gene_network, weft_report, add_results, gene_ranking)) {
    expect_error(f(), "must be given", class = "weft_error_input")
  }
  expect_error(as_igraph(3), "must be a network", class = "weft_error_input")
  expect_error(gene_bayes(fit$quality, ranking = "mi"), "`ranking` must", class = "weft_error_input")
  expect_error(gene_outliers(fit$components, data = "x"), "complete matrix", class = "weft_error_input")
  expect_error(gene_quality(e$x, class = data.frame()), "class", class = "weft_error_input")
  expect_error(gene_mi_network(fit$quality, estimator = mean), "`estimator` must be one text",
               class = "weft_error_input")
  expect_error(print(fit, top = "a"), "`top` must", class = "weft_error_input")
})

test_that("a step may be done by a function that returns something else", {
  other <- gene_network(e$x, e$class, seed = 1, steps = list(pairs = FALSE, clusters = FALSE,
                                                             bayes = list(genes = 4, iterations = 200),
                                                             network = function(q) list("mine"),
                                                             ranking = function(q) 1))
  expect_identical(other$network, list("mine"))
  expect_output(print(other), "network +a result of class list")
  expect_s3_class(other$bayes, "weft_bn")
})
