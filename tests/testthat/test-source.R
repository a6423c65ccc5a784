# as_source(): one record of every container that users have, and one that comes to all systems by its method alone.

kinds <- function(...) vapply(list(...), function(x) weft:::as_source(x)$kind, "")

# Without what is of one run: the call and the seconds.
without_run <- function(x) {
  if (is.list(x)) {
    x[] <- lapply(unclass(x), without_run)
    x[intersect(names(x), c("call", "seconds", "run"))] <- NULL
  }
  attributes(x)[c("call", "seconds")] <- NULL
  x
}

test_that("every container is one kind, with samples in rows", {
  m <- matrix(c(0, 1, 2, 0), 2, dimnames = list(NULL, c("a", "b")))
  own <- structure(list(a = 1), class = c("own", "data.frame"), row.names = 1L)
  expect_identical(kinds(m, m > 0, as.data.frame(m), own, list(1), NULL, letters, 1:3, as.raw(1), quote(a)),
                   rep(c("matrix", "frame", "other"), c(2, 2, 6)))
  skip_if_not_installed("Matrix")
  dense <- methods::as(methods::as(methods::as(m, "dMatrix"), "generalMatrix"), "unpackedMatrix")
  sparse <- Matrix::Matrix(m, sparse = TRUE)
  expect_identical(kinds(dense, sparse, methods::as(sparse, "TsparseMatrix"), Matrix::Diagonal(2), list(sparse, sparse),
                         list(sparse, 1)),
                   c("matrix", "sparse", "sparse", "sparse", "blocks", "other"))
  expect_identical(weft:::as_source(dense)$data, m)
  broken <- sparse
  broken@i <- rev(broken@i) + 7L
  expect_error(weft:::as_source(broken), "valid Matrix", class = "weft_error_input")
  expect_error(weft:::as_source(list(sparse, broken)), "valid Matrix", class = "weft_error_input")
  expect_error(weft:::as_source(m, "counts"), "`assay` must only be given", class = "weft_error_input")
})

test_that("columns of a data frame have one value per row, whatever they are", {
  frame <- function(...) structure(list(...), class = "data.frame", names = paste0("v", seq_len(...length())),
                                   row.names = c(NA, -3L))
  fine <- frame(1:3, c(1, 2, 3), as.raw(1:3), factor(1:3), c(TRUE, NA, TRUE), letters[1:3], list(1, 2, 3),
                matrix(1:6, 3), data.frame(a = 1:3), Sys.Date() + 0:2)
  expect_identical(weft:::as_source(fine)$data, fine)
  for (wrong in list(1:2, matrix(1:3, 1), data.frame(a = 1, b = 2, c = 3), factor(1:4), NULL, sum)) {
    expect_error(weft:::as_source(frame(1:3, wrong)), "one value per row", class = "weft_error_input")
  }
  expect_error(weft:::as_source(structure(pairlist(a = 1:3), class = "data.frame", row.names = 1:3)),
               "one value per row", class = "weft_error_input")
})

test_that("what native code takes as it is, is a plain vector or a factor", {
  plain <- list(1L, 1, TRUE, as.raw(1), factor(1), factor(character()), integer())
  other <- list("a", NULL, list(1), 1i, matrix(1), array(1, 1), Sys.Date(),
                structure(factor(1:2), dim = 2L), sum, quote(a))
  expect_identical(.Call(weft:::C_weft_plain_columns, c(plain, other)),
                   rep(c(TRUE, FALSE), c(length(plain), length(other))))
})

test_that("an experiment is turned", {
  skip_if_not_installed("SummarizedExperiment")
  m <- matrix(1:6, 2, dimnames = list(c("g", "h"), NULL))
  assays <- list(first = m, second = Matrix::Matrix(m * 2, sparse = TRUE))
  experiment <- SummarizedExperiment::SummarizedExperiment(assays)
  expect_identical(weft:::as_source(experiment), list(kind = "matrix", data = t(m), experiment = TRUE))
  expect_identical(weft:::as_source(experiment, "second")$kind, "sparse")
  expect_identical(as.matrix(weft:::as_source(experiment, 2)$data), t(m * 2))
  expect_error(weft:::as_source(experiment, "third"), "name of one assay", class = "weft_error_input")
})

test_that("a DataFrame of Bioconductor does what its data frame does", {
  skip_if_not_installed("S4Vectors")
  skip_if_not_installed("SummarizedExperiment") # loads what as.data.frame() needs
  withr::local_seed(1)
  own <- data.frame(a = round(rnorm(40), 1), `b c` = round(rnorm(40), 1), c = rnorm(40), check.names = FALSE)
  levels <- as.data.frame(lapply(own, function(v) factor(v > 0)), optional = TRUE)
  class <- rep(1:2, 20)
  same <- function(f, frame, ...) {
    expect_identical(without_run(f(S4Vectors::DataFrame(frame, check.names = FALSE), ...)), without_run(f(frame, ...)))
  }
  same(mi_rank, levels, class = class)
  same(mi_pairs, own, class = class, bins = 3)
  same(mi_matrix, own, estimator = "spearman")
  same(discretize, own)
  same(pca, own, k = 2, seed = 1)
  same(bn_learn, levels, iterations = 20, chains = 1, seed = 1, run = weft_run(progress = FALSE))
  same(kernel_sum, own)
  same(irm, data.frame(from = c(1, 2, 3), to = c(2, 3, 1)), chains = 1, sweeps = 3, seed = 1,
       run = weft_run(progress = FALSE))
  same(function(x) gene_quality(x, class), own)
  damaged <- S4Vectors::DataFrame(levels)
  damaged@listData[[1]] <- factor(1:3)
  expect_error(mi_rank(damaged, class), class = "weft_error_input")
})

# Printed, too: what containers of Bioconductor accept, they need not be able to show.
test_that("missing names are refused, whatever has them", {
  skip_if_not_installed("Matrix")
  m <- matrix(c(1, 2, 0, 4, 5, 6), 2)
  refused <- function(f, side, ...) {
    expect_error(f(...), paste0("names of `[xA]` must not be missing.*The name of ", side, " is"),
                 class = "weft_error_input")
  }
  sparse <- Matrix::Matrix(m, sparse = TRUE)
  named <- function(x, rows = NULL, columns = NULL) `dimnames<-`(x, list(rows, columns))
  gap <- c("a", NA, "b")
  for (x in list(m, sparse)) {
    refused(weft:::as_source, "row 2", named(x, c("a", NA)))
    refused(weft:::as_source, "column 2", named(x, NULL, gap))
  }
  refused(weft:::as_source, "row 1", list(sparse, named(sparse, c(NA, "b"))))
  refused(weft:::as_source, "column 2", `names<-`(as.data.frame(m), gap))
  refused(weft_import, "column 2", named(sparse, NULL, gap), path = tempfile())
  skip_if_not_installed("igraph")
  ring <- igraph::set_vertex_attr(igraph::make_ring(3), "name", value = gap)
  refused(irm, "vertex 2", ring, chains = 1, sweeps = 3, seed = 1, run = weft_run(progress = FALSE))
  skip_if_not_installed("DelayedArray")
  refused(weft:::as_source, "row 2", DelayedArray::DelayedArray(named(m, c("a", NA))))
  skip_if_not_installed("SingleCellExperiment")
  cells <- SingleCellExperiment::SingleCellExperiment(list(counts = m))
  for (x in list(cells, methods::as(cells, "SummarizedExperiment"))) {
    rows <- columns <- x
    names(rows) <- c("a", NA)
    columns@colData@rownames <- gap # `colnames<-` takes no such names, a damaged file may have them
    for (f in list(pca, pca_reduced_dim, gene_quality, gene_cells, weft_import, mi_matrix)) {
      if (identical(f, pca_reduced_dim) && !inherits(x, "SingleCellExperiment")) next
      further <- if (identical(f, weft_import)) list(path = tempfile()) else if ("k" %in% names(formals(f))) list(k = 1)
      for (given in list(list("row 2", rows), list("column 2", columns))) {
        do.call(refused, c(f, given, further))
      }
    }
  }
})

# What loads the packages of Bioconductor, which takes seconds, is here, whatever function it is about.

test_that("mi_rank() takes Bioconductor's containers as they are", {
  skip_if_not_installed("SummarizedExperiment")
  withr::local_seed(10)
  m <- matrix(rpois(200, 1), 20, dimnames = list(paste0("gene", 1:20), paste0("s", 1:10)))
  se <- SummarizedExperiment::SummarizedExperiment(list(counts = m, other = 1L - m),
                                                   colData = data.frame(group = rep(c("a", "b"), 5)))
  want <- mi_rank(t(m), rep(c("a", "b"), 5))
  expect_equal(tidy(mi_rank(se, "group")), tidy(want))
  expect_equal(tidy(mi_rank(se, "group", assay = "counts")), tidy(want))
  expect_error(mi_rank(se, "group", assay = "none"), class = "weft_error_input", regexp = "`counts`, `other`")
  expect_error(mi_rank(se, "batch"), class = "weft_error_input", regexp = "`group`")
  expect_error(mi_rank(t(m), rep(1:2, 5), assay = 1), class = "weft_error_input")
  sparse <- SummarizedExperiment::SummarizedExperiment(list(Matrix::Matrix(m, sparse = TRUE)),
                                                       colData = data.frame(g = rep(1:2, 5)))
  expect_equal(tidy(mi_rank(sparse, "g")), tidy(want))
  skip_if_not_installed("DelayedArray")
  delayed <- DelayedArray::DelayedArray(t(m))
  expect_equal(tidy(mi_rank(delayed, rep(1:2, 5))), tidy(want))
  input <- weft:::categorical_input(delayed)
  parts <- weft:::for_blocks(input, function(data, columns) length(columns), block_bytes = 8 * 10 * 6)
  expect_identical(unlist(parts), c(6L, 6L, 6L, 2L))
})

test_that("mi_pairs() takes matrices that are sparse, raw and delayed", {
  set.seed(7)
  x <- matrix(rbinom(60 * 8, 1, 0.3), 60)
  class <- sample(0:1, 60, TRUE)
  dense <- as.data.frame(mi_pairs(x, class))
  expect_identical(as.data.frame(mi_pairs(Matrix::Matrix(x, sparse = TRUE), class)), dense)
  expect_identical(as.data.frame(mi_pairs(Matrix::Matrix(x != 0, sparse = TRUE), class)), dense)
  expect_identical(as.data.frame(mi_pairs(matrix(as.raw(x), 60), class)), dense)
  if (requireNamespace("DelayedArray", quietly = TRUE))
    expect_identical(as.data.frame(mi_pairs(DelayedArray::DelayedArray(x), class)), dense)
})

test_that("irm() takes a SummarizedExperiment and igraphs as graphs", {
  skip_if_not_installed("SummarizedExperiment")
  counts <- matrix(c(5, 0, 0, 9, 2, 0, 7, 0), 4, dimnames = list(paste0("gene", 1:4), c("s1", "s2")))
  se <- SummarizedExperiment::SummarizedExperiment(list(counts = counts))
  graph <- weft:::irm_graph(se, input = list(self = FALSE, assay = "counts", threshold = 1))
  expect_identical(graph[c("row_names", "col_names")], list(row_names = rownames(counts), col_names = colnames(counts)))
  z <- c(1, 2, 2, 1)
  expect_equal(irm_log_posterior(se, z, c(1, 2), assay = "counts", threshold = 1),
               irm_log_posterior(1 * (counts > 1), z, c(1, 2)))
  skip_if_not_installed("igraph")
  pairs <- rbind(c("a", "x"), c("b", "x"), c("b", "y"))
  g <- igraph::graph_from_edgelist(pairs, directed = FALSE)
  igraph::V(g)$type <- igraph::V(g)$name %in% c("x", "y")
  expect_equal(irm_log_posterior(g, c(1, 2), c(1, 2)), irm_log_posterior(rbind(c(1, 0), c(1, 1)), c(1, 2), c(1, 2)))
  one <- igraph::make_ring(5)
  expect_identical(weft:::irm_graph(one)$kind, "undirected")
  ring <- as.matrix(igraph::as_adjacency_matrix(one))
  expect_equal(irm_log_posterior(one, c(1, 1, 2, 2, 2)), irm_log_posterior(ring, c(1, 1, 2, 2, 2), type = "undirected"))
})

test_that("bn_exact() counts the nodes of a SummarizedExperiment, not the columns of something", {
  skip_if_not_installed("SummarizedExperiment")
  many <- SummarizedExperiment::SummarizedExperiment(list(x = matrix(0:1, 40, 4,
                                                                     dimnames = list(paste0("g", 1:40), NULL))))
  expect_error(bn_exact(many, 1), class = "weft_error_memory", regexp = "40 nodes")
})

test_that("p-values of a DelayedMatrix are those of the matrix", {
  skip_if_not_installed("DelayedArray")
  withr::local_seed(6)
  x <- matrix(sample(0:2, 40 * 30, TRUE), 40, dimnames = list(NULL, paste0("f", 1:30)))
  class <- sample(c("u", "v"), 40, TRUE)
  same <- c("feature", "p_value", "q_value")
  expect_equal(mi_rank(DelayedArray::DelayedArray(x), class)[same], mi_rank(x, class)[same], ignore_attr = TRUE)
})

test_that("64-bit integers are the numbers that they stand for, or need the package", {
  bits <- structure(c(1, 2, 40) * 2^-1074, class = "integer64") # whole numbers in the bits of doubles
  frame <- data.frame(a = 1:3)
  frame$b <- bits
  if (!requireNamespace("bit64", quietly = TRUE)) {
    expect_error(pca(frame, 1), class = "weft_error_input", regexp = "bit64")
    expect_error(kernel_sum(0, bits, bandwidth = 1), class = "weft_error_input", regexp = "bit64")
    skip("package bit64 is not installed")
  }
  plain <- data.frame(a = 1:3, b = c(1, 2, 40))
  expect_equal(mi_matrix(frame, estimator = "pearson"), mi_matrix(plain, estimator = "pearson"),
               ignore_attr = TRUE)
  expect_equal(kernel_sum(3, bits, bandwidth = 1), kernel_sum(3, c(1, 2, 40), bandwidth = 1))
  expect_equal(kernel_sum(3, 1:4, bandwidth = bits[2]), kernel_sum(3, 1:4, bandwidth = 2))
  expect_identical(check_number(bits[3], "k", whole = TRUE), 40)
  expect_identical(check_pair(bits[1:2], "max_clusters", 1), c(1, 2))
  expect_equal(kernel_bandwidth(c(1, 2, 4, 9), grid = bits[1:2]), kernel_bandwidth(c(1, 2, 4, 9), grid = 1:2))
  beyond <- structure(c(1, 2), class = "integer64") # 4.6e18 and more
  expect_error(kernel_sum(3, beyond, bandwidth = 1), class = "weft_error_input", regexp = "2 are outside")
  expect_error(kde(c(1, 2, 4), bandwidth = beyond[1]), class = "weft_error_input", regexp = "1 is outside")
  expect_error(check_number(beyond[1], "k"), class = "weft_error_input", regexp = "1 is outside")
  expect_error(kernel_bandwidth(c(1, 2, 4, 9), grid = beyond), class = "weft_error_input", regexp = "2 are outside")
})

test_that("numbers that a class writes otherwise are numbers", {
  expect_equal(kernel_sum(3, as.hexmode(1:3), bandwidth = 1), kernel_sum(3, 1:3, bandwidth = 1))
})

test_that("names in no encoding are refused by what would not read them back", {
  set.seed(1)
  x <- matrix(stats::rnorm(40), 20, dimnames = list(NULL, c("a", "\xff\xfe")))
  for (f in list(bn_search, bn_learn, function(x) kernel_pca(x, 1), function(x) kernel_pca(t(x), 1))) {
    expect_error(f(x), "text in a known encoding", class = "weft_error_input")
  }
  colnames(x)[2L] <- iconv("\u00fc", "UTF-8", "latin1")
  expect_output(print(kernel_pca(x, 1)))
  expect_identical(rownames(bn_search(x)$dag), c("a", "\u00fc"))
})

# ---- DGEList, ExpressionSet, Seurat, DESeqDataSet ----

# Counts of 30 genes in 12 samples, and the tables beside them.
beside <- function() {
  withr::local_seed(1)
  m <- matrix(stats::rnbinom(360, mu = 50, size = 2), 30,
              dimnames = list(sprintf("gene%d", 1:30), sprintf("s%d", 1:12)))
  storage.mode(m) <- "integer"
  list(m = m, samples = data.frame(group = rep(c("a", "b"), 6), age = 30 + 1:12, row.names = colnames(m)),
       genes = data.frame(symbol = sprintf("SYM%d", 1:30), row.names = rownames(m)))
}

# What a container holds goes through every kind of function as the matrix and columns do.
expect_like_matrix <- function(x, given, symbols = TRUE) {
  rows <- t(given$m)
  class <- given$samples$group
  source <- weft:::as_source(x)
  expect_true(source$experiment)
  expect_equal(as.matrix(source$data), rows)
  expect_equal(tidy(mi_rank(x, "group", bins = 3)), tidy(mi_rank(rows, class, bins = 3)))
  expect_equal(as.data.frame(mi_pairs(x, "group", bins = 2, strata = "group")),
               as.data.frame(mi_pairs(rows, class, bins = 2, strata = class)))
  expect_equal(pca(x, 2)$x, pca(rows, 2)$x)
  expect_error(mi_rank(x, "nothing"), "`group`", class = "weft_error_input")
  expect_error(mi_rank(x, "group", assay = "nothing"), "name of one assay", class = "weft_error_input")
  quality <- suppressWarnings(gene_quality(x, "group", covariates = "age"))
  expect_identical(as.character(quality$class), class)
  expect_equal(quality$x, suppressWarnings(gene_quality(rows, class, covariates = given$samples["age"]))$x)
  if (symbols) expect_identical(suppressWarnings(gene_quality(x, "group"))$genes$symbol, given$genes$symbol)
  store <- as_store(x)
  expect_equal(as.matrix(store), rows)
  table <- store_data(store)[c("group", "age")]
  table$group <- as.character(table$group) # which edgeR makes a factor
  expect_equal(table, given$samples)
  expect_error(weft_import(x, tempfile(), samples = "rows"), "`samples` must not be given", class = "weft_error_input")
  expect_identical(dim(discretize(x)), dim(rows))
}

test_that("a DGEList goes where a SummarizedExperiment does", {
  skip_if_not_installed("edgeR")
  given <- beside()
  x <- edgeR::DGEList(given$m, samples = given$samples, genes = given$genes)
  expect_like_matrix(x, given)
  expect_identical(tidy(mi_rank(x, "group", assay = "counts", bins = 3)), tidy(mi_rank(x, "group", bins = 3)))
  damaged <- unclass(x)
  for (wrong in list(NULL, letters, sum, given$m[, -1], quote(stop("evaluated")))) {
    y <- x
    y@.Data[[match("counts", names(damaged))]] <- wrong
    expect_error(mi_rank(y, "group"), "valid DGEList", class = "weft_error_input")
  }
})

test_that("an ExpressionSet goes where a SummarizedExperiment does, and runs nothing", {
  skip_if_not_installed("Biobase")
  given <- beside()
  x <- Biobase::ExpressionSet(given$m + 0, Biobase::AnnotatedDataFrame(given$samples),
                              Biobase::AnnotatedDataFrame(given$genes))
  expect_like_matrix(x, given)
  other <- x
  attr(other, "assayData") <- list(exprs = given$m + 0, se = given$m * 2)
  expect_equal(weft:::as_source(other, "se")$data, t(given$m * 2))
  ran <- FALSE
  elements <- new.env()
  delayedAssign("exprs", {
    ran <<- TRUE
    given$m
  }, assign.env = elements)
  bound <- new.env()
  makeActiveBinding("exprs", function() {
    ran <<- TRUE
    given$m
  }, bound)
  for (env in list(elements, bound, new.env())) {
    attr(x, "assayData") <- env
    expect_error(mi_rank(x, "group"), "valid ExpressionSet|must be the name of one assay", class = "weft_error_input")
  }
  attr(x, "assayData") <- letters
  expect_error(mi_rank(x, "group"), "valid ExpressionSet", class = "weft_error_input")
  expect_false(ran)
})

test_that("a DESeqDataSet is a SummarizedExperiment", {
  skip_if_not_installed("DESeq2")
  given <- beside()
  given$samples$group <- factor(given$samples$group)
  x <- suppressMessages(DESeq2::DESeqDataSetFromMatrix(given$m, given$samples, ~ group))
  rows <- t(given$m)
  expect_equal(tidy(mi_rank(x, "group", bins = 3)), tidy(mi_rank(rows, given$samples$group, bins = 3)))
  expect_equal(suppressWarnings(gene_quality(x, "group", covariates = "age"))$x,
               suppressWarnings(gene_quality(rows, given$samples$group, covariates = given$samples["age"]))$x)
})

test_that("a Seurat object of version 3 or 4 goes where a SummarizedExperiment does", {
  skip_if_not_installed("SeuratObject")
  given <- beside()
  sparse <- Matrix::Matrix(given$m + 0, sparse = TRUE)
  x <- suppressWarnings(SeuratObject::CreateSeuratObject(sparse, meta.data = given$samples))
  skip_if_not(is.null(attr(x@assays[[1L]], "layers")), "SeuratObject makes objects of version 5")
  expect_like_matrix(x, given, symbols = FALSE)
  expect_identical(weft:::as_source(x)$kind, "sparse")
  only_data <- x
  only_data@assays[["RNA"]] <- SeuratObject::CreateAssayObject(data = log1p(sparse))
  expect_equal(as.matrix(weft:::as_source(only_data, "RNA")$data), log1p(t(given$m)))
})

# The classes of SeuratObject 5 as its documentation defines them: layers without names, and tables of flags that say
# which genes and cells each has. Only slots are read, so that the package need not be there.
seurat_5 <- function(layers, genes, cells, samples) {
  map <- function(all, has) {
    structure(vapply(has, function(names) all %in% names, logical(length(all))), class = structure("LogMap",
      package = "SeuratObject"), dimnames = list(all, names(has)))
  }
  from <- structure(list(), class = structure("Assay5", package = "SeuratObject"), layers = layers,
                    features = map(unique(unlist(genes)), genes), cells = map(unique(unlist(cells)), cells),
                    default = 1L, meta.data = data.frame(row.names = unique(unlist(genes))))
  structure(list(), class = structure("Seurat", package = "SeuratObject"), assays = list(RNA = from),
            meta.data = samples, active.assay = "RNA")
}

test_that("a Seurat object of version 5 does too, with its counts in one layer or several", {
  given <- beside()
  sparse <- Matrix::Matrix(given$m + 0, sparse = TRUE)
  bare <- function(x) {
    dimnames(x) <- list(NULL, NULL)
    x
  }
  one <- seurat_5(list(counts = bare(sparse), data = bare(log1p(sparse))),
                  list(counts = rownames(given$m), data = rownames(given$m)),
                  list(counts = colnames(given$m), data = colnames(given$m)), given$samples)
  expect_like_matrix(one, given, symbols = FALSE)
  turned <- rev(seq_len(12))
  several <- seurat_5(list(counts.1 = bare(sparse[, 7:12]), counts.2 = bare(sparse[, 1:6])),
                      list(counts.1 = rownames(given$m), counts.2 = rownames(given$m)),
                      list(counts.1 = colnames(given$m)[7:12], counts.2 = colnames(given$m)[1:6]), given$samples)
  expect_like_matrix(several, given, symbols = FALSE)
  expect_equal(as.matrix(weft:::as_source(seurat_5(list(data = bare(sparse)), list(data = rownames(given$m)),
                                                   list(data = colnames(given$m)), given$samples[turned, ]))$data),
               t(given$m)[turned, ])
  wrong <- list(
    "same genes" = seurat_5(list(counts.1 = bare(sparse[1:9, 1:6]), counts.2 = bare(sparse[, 7:12])),
                            list(counts.1 = rownames(given$m)[1:9], counts.2 = rownames(given$m)),
                            list(counts.1 = colnames(given$m)[1:6], counts.2 = colnames(given$m)[7:12]), given$samples),
    "do not match its genes" = seurat_5(list(counts = bare(sparse)), list(counts = rownames(given$m)[-1]),
                                      list(counts = colnames(given$m)), given$samples),
    "no layer of counts" = seurat_5(list(scale.data = bare(sparse)), list(scale.data = rownames(given$m)),
                                    list(scale.data = colnames(given$m)), given$samples),
    "all of its cells" = seurat_5(list(counts = bare(sparse[, 1:6])), list(counts = rownames(given$m)),
                                  list(counts = colnames(given$m)[1:6]), given$samples),
    "matrices in memory" = seurat_5(list(counts = as.data.frame(as.matrix(sparse))), list(counts = rownames(given$m)),
                                    list(counts = colnames(given$m)), given$samples),
    "valid Seurat" = structure(list(), class = "Seurat"))
  for (said in names(wrong)) expect_error(mi_rank(wrong[[said]], "group"), said, class = "weft_error_input")
})
