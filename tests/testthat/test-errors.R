# A short form of proofs/errors.R: every exported function of the mutual-information room and what all rooms share,
# with each of its arguments left out, NULL, NA and of another type.

test_that("wrong arguments are classed errors", {
  skip_on_cran()
  path <- errors_folder()
  d <- errors_data(path)
  fits <- list(weft_network = mi_network(d$numbers, "mrnet", estimator = "pearson"),
               weft_mi_matrix = mi_matrix(d$levels),
               weft_mi_pack = mi_pack(d$levels, d$class))
  calls <- mi_arguments(d, fits, path)
  mine <- c("discretize", "mi_matrix", "mi_network", "mi_pack", "mi_pairs", "mi_rank", "mi_select", "mi_trait",
            "mi_triples", "mi_tuples", "plink_file", "read_plink", "weft_file", "weft_free", "weft_upload")
  found <- wrong_calls(exported_calls(calls[mine]),
                       wrong_values()[c("missing", "null", "na", "text", "infinite", "nothing", "a_function",
                                        "malformed", "bytes")])
  expect_identical(sprintf("%s: %s", found$call, found$message), character())
  expect_gt(attr(found, "made"), 700)
})

test_that("the long form calls every exported function", {
  path <- errors_folder()
  d <- errors_data(path)
  known <- c(names(mi_arguments(d, list(), path)), names(kernel_arguments(d)), names(bn_arguments(d, list())),
             names(irm_arguments(d, list(), path)), names(gene_arguments(d, list(), path)))
  optional <- c("weft_install_cuda", "weft_calibrate", # have their own tests, which fetch nothing and write nothing
                "add_results", "pca_reduced_dim", "svm_predict", "augment", "glance", "tidy")
  expect_setequal(c(known, optional), getNamespaceExports("weft"))
})

test_that("an error is about the call as it was written", {
  x <- data.frame(a = 1:4, b = 4:1)
  message <- function(code) tryCatch(code, error = function(e) deparse(conditionCall(e)))
  expect_identical(message(mi_rank(x, c(NA, 1, 1, 2))), "mi_rank(x, c(NA, 1, 1, 2))")
  expect_identical(message(do.call(mi_rank, list(x, c(NA, 1, 1, 2)))), "mi_rank(..., ...)")
  expect_identical(message(do.call("mi_rank", list(x, class = c(NA, 1, 1, 2), bins = 2))),
                   "mi_rank(..., class = ..., bins = 2)")
  expect_error(mi_rank(x, rep(0:1, 2), run = weft_run(threads = 2^31)), "from 1 to 4096")
  expect_error(weft_file(tempfile(), 2^33), "from 1 to 2147483647", class = "weft_error_input")
  expect_error(discretize(x, 3), "bins = 3", class = "weft_error_input")
  expect_error(discretize(x, breaks = 3), "Unknown argument `breaks`; did you mean `bins`\\?",
               class = "weft_error_input")
  expect_error(mi_network(x, "spearman"), "estimator = \"spearman\"", class = "weft_error_input")
  expect_error(mi_matrix(x, "spearman"), "estimator = \"spearman\"", class = "weft_error_input")
  for (f in c(mi_network, mi_matrix)) {
    expect_error(f(x + 0.5), "`bins =`.*`estimator = \"copula\"`", class = "weft_error_input")
  }
  expect_error(mi_matrix(x, 1:4), "data.frame\\(feature = y\\)", class = "weft_error_input")
  m <- as.matrix(mi_matrix(x))
  m[1, 2] <- 9
  expect_error(mi_network(m), "symmetric: \\[1, 2\\] is 9", class = "weft_error_input")
  names(x) <- c("a", "a")
  expect_error(mi_pairs(x, rep(0:1, 2), features = "a"), "Duplicated: `a`", class = "weft_error_input")
})

test_that("what R has no memory for is a classed error", {
  skip_on_os(c("windows", "mac", "solaris"))
  skip_on_cran()
  skip_if(nzchar(Sys.getenv("LD_PRELOAD")), "under a sanitizer, which takes terabytes of addresses")
  script <- withr::local_tempfile(fileext = ".R", lines = c(
    "library(weft)",
    "class_of <- function(code) tryCatch({ code; 'none' }, error = function(e) class(e)[1])",
    "x <- matrix(0:1, 4, 40000)", # 12.8 GB of results
    "cat(class_of(mi_matrix(x)), class_of(mi_matrix(x + 0, estimator = 'pearson')),",
    "    class_of(mi_pairs(x, rep(0:1, 2), control = list(full = TRUE))),",
    "    class_of(mi_network(x, 'clr')), '\\n')",
    "x <- matrix(0L, 1e6, 100)", # doubles of it take 800 MB more, twice
    "cat(class_of(mi_matrix(x, estimator = 'pearson')), class_of(discretize(x)),",
    "    class_of(mi_rank(x, x[, 1], bins = 2)), '\\n')"
  ))
  lib <- paste(c(dirname(find.package("weft")), .libPaths()), collapse = .Platform$path.sep)
  command <- sprintf("ulimit -v 1700000; R_LIBS=%s WEFT_BACKEND=cpu OMP_NUM_THREADS=2 %s --vanilla %s", shQuote(lib),
                     shQuote(file.path(R.home("bin"), "Rscript")), shQuote(script))
  out <- suppressWarnings(system2("sh", c("-c", shQuote(command)), stdout = TRUE, stderr = TRUE))
  expect_identical(strsplit(trimws(utils::tail(out, 2L)), " "),
                   list(rep("weft_error_memory", 4), rep("weft_error_memory", 3)))
})

test_that("names of other packages are errors that say what is meant here", {
  x <- as.matrix(mtcars)
  meant <- function(call, here) expect_error(call, sprintf("did you mean `%s`", here), class = "weft_error_input")
  meant(kde(x[, 1], h = 1), "bandwidth")
  meant(kde(x[, 1:2], H = diag(2)), "bandwidth")
  meant(kernel_sum(x, bw = 1), "bandwidth")
  meant(kernel_regression(x[, 1], x[, 2], bw = 1), "bandwidth")
  meant(kernel_bandwidth(x[, 1], gridsize = 5), "grid")
  meant(kernel_pca(x, features = 2), "k")
  meant(gp_regression(x[, 1], x[, 2], h = 1), "bandwidth")
  meant(pca(x, scale. = TRUE), "scale")
  meant(mi_rank(x, y = mtcars$am), "class")
  meant(mi_pairs(x, Y = mtcars$am), "class")
  meant(mi_matrix(x, method = "spearman"), "estimator")
  meant(mi_network(x, disc = "equalfreq"), "bins")
  meant(mi_select(x, mtcars$am, nbins = 3), "bins")
  said <- expect_error(mi_rank(x, mtcars$am, eval.points = 1), "Unknown argument `eval.points`\\.",
                       class = "weft_error_input")
  expect_false(grepl("mean", conditionMessage(said))) # what another function has is not offered
  expect_error(discretize(x, 3), "use `bins = 3`", fixed = TRUE, class = "weft_error_input")
  expect_error(gene_network(x, mtcars$am, max_same = 1),
               "`steps = list(quality = list(control = list(max_same = )))`", fixed = TRUE, class = "weft_error_input")
  expect_error(gene_network(x, mtcars$am, method = "clr"), "`steps = list(network = list(method = ))`", fixed = TRUE,
               class = "weft_error_input")
  expect_error(gene_network(x, mtcars$am, pairs = FALSE), "use `steps = list(pairs = )`", fixed = TRUE,
               class = "weft_error_input")
  expect_error(gene_network(x, steps = list(pears = FALSE)), "There is no step `pears`", class = "weft_error_input")
  expect_error(gene_network(x, steps = list(quality = list(batch = 1))), "`gene_network\\(\\)` itself takes",
               class = "weft_error_input")
  expect_error(gene_network(x, regulators = "cyl", steps = list(network = list(regulators = "hp"))), "given once",
               class = "weft_error_input")
  expect_error(gene_network(x, mtcars$am, nonsense = 1), "Unknown argument `nonsense`", class = "weft_error_input")
  expect_error(mi_network(x), "estimator = \"copula\"", class = "weft_error_input")
})

test_that("a class that one value should not have does not change what it means", {
  of_class <- function(x, class) structure(x, class = class)
  for (class in c("data.frame", "Date", "weft_pca", "noquote")) {
    if (class != "Date") expect_identical(weft:::check_number(of_class(2, class), "x"), 2)
    expect_identical(weft:::check_flag(of_class(TRUE, class), "x"), TRUE)
    expect_identical(weft:::check_choice(of_class("b", class), c("a", "b"), "x"), "b")
    expect_error(weft:::check_number(of_class("b", class), "x"), class = "weft_error_input")
    expect_error(weft:::check_choice(of_class(2, class), c("a", "b"), "x"), class = "weft_error_input")
  }
  expect_error(weft:::check_number(Sys.Date(), "x"), "of class Date", class = "weft_error_input")
  expect_error(pca_choose_k(diag(4), center = of_class("a", "Date")), class = "weft_error_input")
  expect_error(dim(of_class("a", "weft_mi_pack")), class = "weft_error_input")
  expect_error(plot(mi_network(mtcars, "clr", estimator = "pearson"), groups = as.list(1:11)), "factor or a vector",
               class = "weft_error_input")
})

test_that("nodes without names, tiers that are no names and functions called as arguments are told", {
  nodes <- c("a", NA)
  expect_error(bn_cpdag(matrix(0, 2, 2, dimnames = list(nodes, nodes))), "names are missing",
               class = "weft_error_input")
  expect_error(bn_prior(c("a", "b"), tiers = list(mtcars, 1)), "every node to one tier", class = "weft_error_input")
  expect_error(irm_log_posterior(diag(3), 1:3, 1:3, missing = function(...) stop("called")), class = "weft_error_input")
  table <- mi_network(mtcars, "clr", estimator = "pearson")
  expect_error(network_tables(table, which = function(...) "x"), "one of \"network\"", class = "weft_error_input")
})

test_that("a class or names that a value should not have are an error of weft's own, or are left aside", {
  refused <- function(...) expect_error(..., class = "weft_error_input")
  set.seed(1)
  levels <- as.data.frame(lapply(1:3, function(j) factor(sample(c("u", "v"), 30, TRUE))), col.names = c("a", "b", "c"))
  class <- rep(c("case", "control"), 15)
  strange <- structure(class, class = "Date") # whose methods take numbers
  refused(mi_pairs(levels, strange))
  refused(discretize(data.frame(a = stats::rnorm(30)), method = "mdl", class = strange))
  nameless <- levels
  attr(nameless, "names") <- NULL
  refused(bn_scores(nameless))
  refused(bn_scores(levels, max_parents = structure(matrix(1, 2, 2), class = "data.frame")))
  genes <- matrix(stats::rnorm(240), 20, dimnames = list(NULL, letters[1:12]))
  refused(gene_network(genes, class = quote(spoilt)))
  refused(gene_network(quote(spoilt)))
  refused(gene_network(genes, steps = list(network = structure(FALSE, class = "Date"))))
  refused(gene_network(genes, steps = list(outliers = structure(FALSE, class = "data.frame"))))
  refused(gene_network(genes, steps = list(quality = list(version = 1))))
  refused(gene_network(genes, steps = list(ranking = stats::setNames(list(1), NA))))
  refused(gene_mi_network(gene_quality(genes), estimator = structure("none", class = "Date")))
  one <- structure(0, class = "data.frame")
  few <- list(steps = 1, null_copies = one)
  expect_null(attr(gene_regulation(genes, resamples = 4, control = few, seed = 1), "fdr"))
  file <- withr::local_tempfile()
  said <- write_bag_of_words(matrix(1, 2, 2, dimnames = list(c("x", "y"), NULL)), structure(file, class = "Date"))
  expect_identical(said, file)
})
