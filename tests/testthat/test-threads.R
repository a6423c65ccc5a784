# A region of several threads ends when its last thread has had its turn, which takes milliseconds where other programs
# want the processors: small calls must not begin any, however many threads they may use.

woken_by <- function(call) {
  before <- .Call(C_weft_woken)
  suppressWarnings(suppressMessages(force(call)))
  .Call(C_weft_woken) - before
}

test_that("calls on small data wake no other threads", {
  skip_if(is.na(.Call(C_weft_openmp)), "built without OpenMP")
  withr::local_options(weft.progress = FALSE)
  set.seed(1)
  binary <- matrix(rbinom(250, 1, 0.4), 50, dimnames = list(NULL, letters[1:5]))
  numbers <- matrix(rnorm(250), 50, dimnames = list(sprintf("s%d", 1:50), letters[1:5]))
  counts <- matrix(rpois(250, 50), 50, dimnames = dimnames(numbers))
  class <- rep(0:1, 25)
  levels <- as.data.frame(lapply(as.data.frame(binary), factor))
  table <- bn_scores(levels, max_parents = 2, run = weft_run(threads = 1))
  m <- mi_matrix(numbers, estimator = "spearman", run = weft_run(threads = 1))
  fit <- gene_components(counts, k = 2, run = weft_run(threads = 1))
  stem <- withr::local_tempfile()
  writeBin(as.raw(c(0x6c, 0x1b, 0x01, 0xdc, 0x0f)), paste0(stem, ".bed"))
  writeLines(c("1 rs1 0 100 A G", "1 rs2 0 200 C T"), paste0(stem, ".bim"))
  writeLines(sprintf("f%d i%d 0 0 0 -9", 1:4, 1:4), paste0(stem, ".fam"))
  calls <- list(
    mi_rank = quote(mi_rank(binary, class, run = weft_run(threads = 8))),
    mi_pairs = quote(mi_pairs(binary, class, run = weft_run(threads = 8))),
    permutations = quote(mi_rank(binary, class, permutations = 99, seed = 1, run = weft_run(threads = 8))),
    mi_triples = quote(mi_triples(binary, class, run = weft_run(threads = 8))),
    mi_matrix = quote(mi_matrix(binary, run = weft_run(threads = 8))),
    spearman = quote(mi_matrix(numbers, estimator = "spearman", run = weft_run(threads = 8))),
    ksg = quote(mi_matrix(numbers[1:20, ], estimator = "ksg", run = weft_run(threads = 8))),
    clr = quote(mi_network(m, method = "clr", run = weft_run(threads = 8))),
    mrnet = quote(mi_network(m, method = "mrnet", run = weft_run(threads = 8))),
    aracne = quote(mi_network(m, method = "aracne", run = weft_run(threads = 8))),
    mi_select = quote(mi_select(binary, class, k = 2, run = weft_run(threads = 8))),
    discretize = quote(discretize(numbers, bins = 3, run = weft_run(threads = 8))),
    pca = quote(pca(numbers, 2, run = weft_run(threads = 8))),
    bn_scores = quote(bn_scores(levels, max_parents = 2, run = weft_run(threads = 8))),
    bn_exact = quote(bn_exact(table, run = weft_run(threads = 8))),
    bn_learn = quote(bn_learn(table, iterations = 20, chains = 2, seed = 1, run = weft_run(threads = 8))),
    kernel_sum = quote(kernel_sum(numbers, bandwidth = 1, run = weft_run(threads = 8))),
    kde = quote(kde(numbers, bandwidth = "scott", run = weft_run(threads = 8))),
    kernel_tree = quote(kernel_tree(numbers, run = weft_run(threads = 8))),
    irm = quote(irm(binary, chains = 1, sweeps = 2, seed = 1, run = weft_run(threads = 8))),
    regulation = quote(regulation(numbers, seed = 1, run = weft_run(threads = 8),
                                  control = list(resamples = 60, null_copies = 1))),
    read_plink = quote(read_plink(stem, threads = 8)), plink_file = quote(plink_file(stem, min_maf = 0.1, threads = 8)),
    gene_quality = quote(gene_quality(counts, class, run = weft_run(threads = 8))),
    gene_outliers = quote(gene_outliers(fit, data = counts, run = weft_run(threads = 8)))
  )
  for (name in names(calls)) expect_identical(woken_by(eval(calls[[name]])), 0, label = paste("threads woken by", name))
  large <- matrix(rnorm(4e5), 200)
  expect_gt(woken_by(mi_matrix(large, estimator = "spearman", run = weft_run("cpu", threads = 2))), 0)
})

test_that("the method of pca() does not depend on the number of threads", {
  skip_if_not_installed("Matrix")
  for (kind in c("dense", "sparse", "stored")) for (n in c(50, 184, 1000, 20000)) for (p in c(27, 200, 3000)) {
    source <- list(kind = kind, n = n, p = p, values = n * p / 4)
    stored <- methods::new("dgCMatrix")
    stored@x <- numeric(min(n * p / 4, 1e6)) # of which only the number is asked for
    if (kind == "sparse") source$data <- list(stored)
    methods <- lapply(c(1, 2, 16, 128), function(threads) weft:::pca_plan(source, 10, "auto", threads)$methods)
    for (other in methods[-1L]) expect_identical(other, methods[[1L]], info = paste(kind, n, p))
  }
})
