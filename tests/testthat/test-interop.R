# What other packages and programs have, in and out, one call each. Elsewhere these are tested in depth: containers in
# test-source.R, files in test-store-hdf5.R, test-store-anndata.R and test-store-folders.R, results in
# test-workflow-interop.R, Bayesian networks in test-bn-use.R.

counts <- withr::with_seed(1, matrix(stats::rnbinom(360, mu = 50, size = 2), 30,
                                     dimnames = list(sprintf("gene%d", 1:30), sprintf("s%d", 1:12))))
storage.mode(counts) <- "integer"
samples <- data.frame(group = factor(rep(c("a", "b"), 6)), row.names = colnames(counts))
plain <- function() tidy(mi_rank(t(counts), samples$group, bins = 3))

test_that("containers of Bioconductor and Seurat go in as they are", {
  make <- list(
    SummarizedExperiment = function() {
      SummarizedExperiment::SummarizedExperiment(list(counts = counts), colData = samples)
    },
    SingleCellExperiment = function() {
      SingleCellExperiment::SingleCellExperiment(list(counts = counts), colData = samples)
    },
    DESeq2 = function() suppressMessages(DESeq2::DESeqDataSetFromMatrix(counts, samples, ~ group)),
    edgeR = function() edgeR::DGEList(counts, samples = samples),
    Biobase = function() Biobase::ExpressionSet(counts + 0, Biobase::AnnotatedDataFrame(samples)),
    SeuratObject = function() {
      sparse <- methods::as(counts + 0, "CsparseMatrix")
      suppressWarnings(SeuratObject::CreateSeuratObject(sparse, meta.data = samples))
    },
    HDF5Array = function() {
      on_disk <- HDF5Array::writeHDF5Array(counts, with.dimnames = TRUE)
      SummarizedExperiment::SummarizedExperiment(list(counts = on_disk), colData = samples)
    }
  )
  here <- Filter(function(package) requireNamespace(package, quietly = TRUE), names(make))
  skip_if(!length(here), "none of the packages")
  for (package in here) expect_equal(tidy(mi_rank(make[[package]](), "group", bins = 3)), plain(), info = package)
})

test_that("an HDF5Array is read from disk", {
  skip_if_not_installed("HDF5Array")
  on_disk <- HDF5Array::writeHDF5Array(t(counts), with.dimnames = TRUE)
  expect_equal(as.matrix(as_store(on_disk)), t(counts) + 0)
  expect_equal(pca(on_disk, 2)$sdev, pca(t(counts), 2)$sdev)
})

test_that("files of AnnData (HDF5 and Zarr, old and new), 10x Genomics and BPCells are imported", {
  folder <- withr::local_tempdir()
  utils::untar(test_path("folders.tgz"), exdir = folder)
  files <- c("csr_2.zarr", "csr_3.zarr", if (requireNamespace("rhdf5", quietly = TRUE)) "csr.h5ad")
  for (file in files) expect_identical(dim(as_store(file.path(folder, file))), c(40L, 13L), info = file)
  expect_identical(dim(as_store(file.path(folder, "bpcells_csc"))), c(40L, 13L))
  Matrix::writeMM(methods::as(counts + 0, "CsparseMatrix"), file.path(folder, "matrix.mtx"))
  writeLines(colnames(counts), file.path(folder, "barcodes.tsv"))
  writeLines(paste(rownames(counts), rownames(counts), sep = "\t"), file.path(folder, "genes.tsv"))
  expect_equal(as.matrix(as_store(folder)), t(counts) + 0)
})

test_that("a BPPARAM says how many threads", {
  skip_if_not_installed("BiocParallel")
  two <- BiocParallel::MulticoreParam(2)
  expect_identical(weft_run(threads = two)$threads, 2)
  expect_identical(weft_run(threads = BiocParallel::SerialParam())$threads, 1)
  expect_identical(weft_run(threads = BiocParallel::SnowParam(3))$threads, 3)
  expect_equal(tidy(mi_rank(t(counts), samples$group, bins = 3, run = two)), plain())
  expect_identical(weft:::as_run(two)$threads, weft:::as_run(weft_run(threads = 2))$threads)
  damaged <- structure(list(), class = "BiocParallelParam")
  expect_error(weft_run(threads = damaged), "BPPARAM must have 1 to 4096 workers", class = "weft_error_input")
  expect_error(mi_rank(t(counts), samples$group, run = damaged), "BPPARAM", class = "weft_error_input")
})

test_that("gene sets come as a GeneSetCollection, and as clusterProfiler's TERM2GENE", {
  universe <- rownames(counts)
  sets <- list(one = universe[1:8], two = universe[5:20])
  by_list <- gene_sets(universe[1:6], sets, universe)
  terms <- data.frame(term = rep(names(sets), lengths(sets)), gene = unlist(sets))
  expect_identical(gene_sets(universe[1:6], terms, universe), by_list)
  # the class as GSEABase defines it, so that the package need not be there
  set <- function(name) {
    structure(list(), class = structure("GeneSet", package = "GSEABase"), geneIds = sets[[name]],
              setName = structure(name, class = structure("ScalarCharacter", package = "Biobase")))
  }
  collection <- structure(lapply(names(sets), set), class = structure("GeneSetCollection", package = "GSEABase"))
  expect_identical(gene_sets(universe[1:6], collection, universe), by_list)
  collection[[2L]] <- letters
  expect_error(gene_sets(universe[1:6], collection, universe), "valid GeneSetCollection", class = "weft_error_input")
  skip_if_not_installed("GSEABase")
  made <- GSEABase::GeneSetCollection(lapply(names(sets), function(name) {
    GSEABase::GeneSet(sets[[name]], setName = name)
  }))
  expect_identical(gene_sets(universe[1:6], made, universe), by_list)
})

test_that("an OrgDb knows the symbols of Ensembl and Entrez identifiers", {
  skip_if_not_installed("org.Hs.eg.db")
  db <- getExportedValue("org.Hs.eg.db", "org.Hs.eg.db")
  x <- t(counts)[, 1:4]
  known <- function(names) {
    colnames(x) <- names
    suppressWarnings(gene_quality(x, samples$group, symbols = db, min_count = 0))$genes$symbol
  }
  expect_identical(known(c("ENSG00000141510", "ENSG00000136997.14", "Not in `x`", "ENSG00000133703")),
                   c("TP53", "MYC", NA, "KRAS"))
  expect_identical(known(c("7157", "4609", "3845", "none")), c("TP53", "MYC", "KRAS", NA))
  expect_error(known(letters[1:4]), "must know the names", class = "weft_error_input")
})

test_that("sets in a ranking have the p-values of a million permutations", {
  skip_on_cran()
  withr::local_seed(3)
  statistics <- stats::setNames(stats::rt(60, 4), sprintf("g%d", 1:60)) # as clusterProfiler's geneList
  statistics <- sort(statistics, decreasing = TRUE)
  sets <- list(high = names(statistics)[c(1, 3, 8, 14, 21, 30)], low = names(statistics)[c(20, 35, 44, 50, 55, 58)],
               none = names(statistics)[seq(5, 55, 10)])
  found <- gene_sets_ranked(statistics, sets)
  expect_identical(found$direction[match(c("high", "low"), found$set)], c("high", "low"))
  scores <- stats::qnorm((rank(statistics) - 0.5) / 60)
  draws <- 1e6
  sums <- vapply(seq_len(draws), function(k) sum(scores[sample.int(60L, 6L)]), 0)
  by_permutation <- vapply(found$set, function(s) mean(abs(sums) >= abs(sum(scores[sets[[s]]])) - 1e-12), 0)
  # the law of t differs from that of permutations by some percent at this size
  expect_true(all(abs(found$p_value - by_permutation) < 0.03 * by_permutation + 4 * sqrt(by_permutation / draws)))
  expect_equal(found$q_value, stats::p.adjust(found$p_value, "BH"))
  by_mean <- vapply(found$set, function(s) {
    inside <- names(statistics) %in% sets[[s]]
    stats::t.test(scores[inside], scores[!inside], var.equal = TRUE)$p.value
  }, 0)
  expect_equal(found$p_value, unname(by_mean))
  expect_identical(gene_sets_ranked(exp(statistics), sets), found) # only ranks count
  expect_identical(nrow(gene_sets_ranked(statistics, sets, min_size = 7)), 0L)
  refused <- function(x, says) expect_error(gene_sets_ranked(x, sets), says, class = "weft_error_input")
  refused(unname(statistics), "a named numeric vector")
  refused(stats::setNames(statistics, "g1"), "a named numeric vector")
  refused(stats::setNames(1:4, c("a", "a", "b", "c")), "must be unique")
  refused(statistics * NA, "at least 4 finite")
  refused(statistics * 0, "not all equal")
  refused("list", "returned by")
  with_gaps <- replace(statistics, 5, NA)
  expect_equal(gene_sets_ranked(with_gaps, sets), gene_sets_ranked(statistics[-5], sets))
})

test_that("sets in the ranking of a whole analysis are tested with the correlation of their genes", {
  e <- weft_example("expression", n = 40, p = 30, seed = 4, missing = 0, spoilt = FALSE)
  fit <- gene_network(e$x, e$class, seed = 2, run = weft_run(progress = FALSE),
                      steps = list(clusters = FALSE, bayes = FALSE, pairs = FALSE, network = FALSE))
  sets <- list(some = colnames(e$x)[1:9], others = colnames(e$x)[11:25])
  found <- gene_sets_ranked(fit, sets)
  expect_identical(sort(found$set), c("others", "some"))
  expect_false(anyNA(found$correlation))
  fit$ranking <- NULL
  expect_error(gene_sets_ranked(fit, sets), class = "weft_error_input")
})

test_that("networks become objects of igraph, tidygraph, graph, bnlearn and coda", {
  net <- mi_network(mtcars[1:5], "relnet", estimator = "spearman", threshold = 0.3)
  levels <- as.data.frame(lapply(mtcars[c("cyl", "gear", "am", "vs")], factor))
  fit <- bn_learn(levels, iterations = 400, chains = 2, seed = 1)
  to <- list(igraph = function() igraph::ecount(network_convert(net, "igraph")),
             tidygraph = function() igraph::ecount(network_convert(net, "tidygraph")),
             graph = function() graph::numEdges(network_convert(net, "graphNEL")))
  for (package in names(to)) {
    if (requireNamespace(package, quietly = TRUE)) {
      expect_equal(to[[package]](), nrow(as.data.frame(net)), info = package, ignore_attr = TRUE)
    }
  }
  if (requireNamespace("bnlearn", quietly = TRUE)) expect_s3_class(bn_convert(fit, "bnlearn"), "bn")
  skip_if_not_installed("coda")
  expect_equal(coda::nchain(bn_convert(fit, "coda")), 2L)
})
