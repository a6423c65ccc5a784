# Genes with symbols, and genes that several columns measure.

e <- weft_example("expression", n = 60, p = 24, seed = 4, missing = 0, spoilt = FALSE)
probes <- sprintf("p%02d_at", seq_len(24))
copy <- function(j) e$x[, j] + 0.1 * weft:::draws("normal", 60, key = j)
x <- cbind(e$x, copy(1), copy(1), copy(5))
colnames(x) <- c(probes, "p01_s_at", "p01_x_at", "p05_s_at")
symbols <- c(colnames(e$x), "TF01", "TF01", colnames(e$x)[5])
symbols[7] <- "---"
q <- gene_quality(x, e$class, e$batch, symbols = symbols)

test_that("columns keep their names, the widest of a gene stands for it", {
  expect_identical(colnames(q$x), colnames(x))
  genes <- q$genes
  expect_identical(genes$symbol[c(1, 7, 25)], c("TF01", NA, "TF01"))
  expect_identical(sum(!genes$representative), 3L)
  of <- genes[genes$symbol %in% "TF01", ]
  expect_identical(of$gene[of$representative], of$gene[which.max(of$mad)])
  expect_match(q$log$what, "2 genes are measured by several probes.*: TF01 \\(3\\), G02 \\(2\\)", all = FALSE)
})

test_that("a gene is not linked to itself", {
  stands <- q$genes$gene[q$genes$representative]
  expect_identical(colnames(gene_mi_network(q)), stands)
  expect_identical(colnames(gene_regulation(q, resamples = 20, seed = 1)), stands)
  expect_true(all(gene_bayes(q, genes = 24, seed = 1, iterations = 100)$genes %in% stands))
  pairs <- gene_pairs(q, permutations = 1, top = 1000, seed = 1)
  expect_true(all(c(pairs$feature1, pairs$feature2) %in% stands))
  expect_identical(sort(gene_ranking(q)$gene), sort(colnames(x)))
  few <- gene_mi_network(q, genes = 10)
  expect_identical(ncol(few), 10L)
  expect_true(all(colnames(few) %in% stands))
  named <- gene_mi_network(q, genes = c("p01_at", "p01_s_at", "p02_at")) # who names them gets them
  expect_identical(colnames(named), c("p01_at", "p01_s_at", "p02_at"))
})

test_that("what is shown has symbols, and the column's name where there are several", {
  label <- weft:::gene_labels(q)
  expect_identical(unname(label[c("p02_at", "p01_s_at", "p07_at")]), c("TF02", "TF01 (p01_s_at)", "p07_at"))
  expect_identical(anyDuplicated(label), 0L)
  fit <- gene_network(x, e$class, batch = e$batch, seed = 2, run = weft_run(progress = FALSE), symbols = symbols,
                      steps = list(pairs = list(permutations = 5),
                                   clusters = list(method = "irm", chains = 1, sweeps = 10),
                                   bayes = list(genes = 5, iterations = 200), network = list(method = "mrnet")))
  text <- paste(utils::capture.output(print(fit)), collapse = " ")
  expect_match(text, "TF0[1-3]")
  expect_false(grepl("p0[2346]_at", text))
  expect_true(all(as.data.frame(fit, "edges")$from %in% colnames(x))) # tables have the columns' names
  expect_identical(as.data.frame(fit, "genes")$symbol[1:2], c("TF01", "TF02"))
  withr::local_pdf(NULL)
  for (which in c("overview", "ranking", "pairs", "network", "clusters", "bayes")) expect_invisible(plot(fit, which))
  shown <- weft:::with_labels(fit)
  expect_identical(rownames(shown$bayes$dag), unname(label[rownames(fit$bayes$dag)]))
  expect_identical(unname(as.matrix(shown$network)), unname(as.matrix(fit$network)))
  skip_if_not_installed("ggplot2")
  expect_s3_class(ggplot2::autoplot(fit, "bayes"), "ggplot")
})

test_that("names that occur more than once are symbols", {
  twice <- x
  colnames(twice) <- symbols
  colnames(twice)[7] <- "G04b"
  again <- gene_quality(twice, e$class, e$batch)
  expect_identical(sum(!again$genes$representative), 3L)
  expect_identical(unname(weft:::gene_labels(again)[c("TF01", "TF01.1")]), c("TF01", "TF01 (TF01.1)"))
  expect_null(gene_quality(e$x, e$class)$genes$symbol)
})

test_that("a SummarizedExperiment has them in its rows", {
  skip_if_not_installed("SummarizedExperiment")
  se <- SummarizedExperiment::SummarizedExperiment(list(t(x)), rowData = data.frame(id = colnames(x), Symbol = symbols),
                                                   colData = data.frame(group = e$class))
  expect_identical(gene_quality(se, "group")$genes$symbol[1:3], symbols[1:3])
  expect_identical(gene_quality(se, "group", symbols = "id")$genes$symbol, colnames(x))
  expect_error(gene_quality(se, "group", symbols = "name"), "There is no \"name\"", class = "weft_error_input")
  expect_error(gene_quality(x, e$class, symbols = 1:27), "as text", class = "weft_error_input")
  expect_error(gene_quality(x, e$class, symbols = c("a", "b")), "one value per gene", class = "weft_error_input")
})

test_that("descriptions are kept, found in rowData, checked and shown", {
  said <- sprintf("gene number %d", seq_along(symbols))
  said[3] <- " "
  described <- gene_quality(x, e$class, descriptions = said)
  expect_identical(described$genes$description[c(1, 3)], c("gene number 1", NA))
  expect_null(q$genes$description)
  fit <- gene_network(x, e$class, seed = 1, run = weft_run(progress = FALSE),
                      steps = list(quality = list(descriptions = said), components = FALSE, network = FALSE,
                                   pairs = FALSE, clusters = FALSE, bayes = FALSE, outliers = FALSE))
  shown <- weft:::gene_results(fit)
  at <- match(shown$gene, colnames(x))
  expect_identical(shown$description, described$genes$description[at])
  expect_error(gene_quality(x, e$class, descriptions = 1), "`descriptions` must have one value per gene, as text",
               class = "weft_error_input")
  broken <- fit
  broken$quality$genes$description <- 1
  expect_error(print(broken), class = "weft_error_input")
  skip_if_not_installed("SummarizedExperiment")
  se <- SummarizedExperiment::SummarizedExperiment(list(t(x)), rowData = data.frame(Gene.Title = said),
                                                   colData = data.frame(group = e$class))
  expect_identical(gene_quality(se, "group")$genes$description, described$genes$description)
})

test_that("equal genes have one rank", {
  shown <- weft:::gene_results(gene_network(x, e$class, seed = 1, run = weft_run(progress = FALSE),
                                            steps = list(components = FALSE, network = FALSE, pairs = FALSE,
                                                         clusters = FALSE, bayes = FALSE, outliers = FALSE)))
  expect_identical(shown$rank, rank(shown$p, ties.method = "min"))
})

test_that("the leukaemia data have symbols of today", {
  symbols <- weft:::golub_symbols(c("X95735_at", "M27783_s_at", "AFFX-HUMISGF3A/M97935_MA_at", "none"))
  expect_identical(symbols, c("ZYX", "ELANE", NA, NA))
})
