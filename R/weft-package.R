#' weft: structure in wide data, on the CPU and the GPU
#'
#' weft turns an expression matrix into a report: which genes differ between groups, which vary together, which may
#' drive others, and how the samples group. Start with `fit <- gene_network(x, class)`, which runs the whole analysis,
#' and `weft_report(fit, "report.html")`, which writes the report. `vignette("weft-in-ten-minutes")` walks through both,
#' and `vignette("coming-from")` translates calls of other packages.
#'
#' Every step is also a function of its own. These functions take a matrix, data frame, sparse Matrix, DelayedMatrix or
#' SummarizedExperiment, as their help says, and `run` (see [weft_run()]).
#'
#' | question | functions | vignette |
#' |---|---|---|
#' | What does an expression data set show? | [gene_network()], [weft_report()] | `weft-in-ten-minutes` |
#' | Are the data sound? Which samples are outliers? | [gene_quality()], [gene_outliers()] | `weft-in-ten-minutes` |
#' | Which genes differ between groups? | [gene_ranking()] | `differences-between-groups` |
#' | Which features say most about a class? | [mi_rank()], [mi_select()], [discretize()] | `genes-alone-and-together` |
#' | Which do so only together? | [mi_pairs()], [mi_triples()], [mi_tuples()] | `gwas-pair-scan` |
#' | What do genotypes in PLINK files show? | [plink_file()], [read_plink()], [mi_pairs()] | `gwas-pair-scan` |
#' | Which variants interact, given covariates? | [pair_scan()] | `gwas-pair-scan` |
#' | Which features depend on each other? | [mi_matrix()], [mi_network()] | `genes-alone-and-together` |
#' | Which modules do genes form? | [gene_modules()], [module_preservation()] | `from-a-matrix-to-modules` |
#' | Which genes drive which? | [regulation()], [gene_regulation()] | `which-genes-drive-which` |
#' | What do knock-outs and time series say? | [regulation()] with `interventions`, `time` | `knock-outs-and-time` |
#' | Does a network differ between conditions? | [regulation()] with `compare` | `which-genes-drive-which` |
#' | What may cause what? | [bn_learn()], [bn_exact()], [bn_search()] | `from-expression-to-a-causal-network` |
#' | How certain is each of these edges? | [bn_features()], [bn_compare()] | `from-expression-to-a-causal-network` |
#' | In which directions do the data vary? | [pca()], [pca_choose_k()], [kernel_pca()] | `components-of-wide-data` |
#' | Which groups do the samples form? | [gene_clusters()] | `weft-in-ten-minutes` |
#' | Which groups do single cells form? | [weft_import()], [gene_cells()], [regulation()] | `hundred-thousand-cells` |
#' | How are points distributed? | [kde()], [kernel_sum()], [kernel_bandwidth()] | `a-million-points` |
#' | How does y depend on x? | [kernel_regression()], [gp_regression()], [svm_predict()] | `a-million-points` |
#' | Which rows and columns form groups? | [irm()], [read_bag_of_words()] | `genes-by-samples` |
#' | Which known sets of genes are involved? | [gene_sets()], [gene_sets_ranked()], [read_gmt()] | |
#' | How do I export networks? | [as_igraph()], [network_convert()], [write_network()], [bn_convert()] | `coming-from` |
#' | How do I add or plot results? | [add_results()], [autoplot] | `coming-from` |
#' | What does this machine have? | [weft_sitrep()], [weft_install_cuda()] | `running-on-gpus-and-clusters` |
#' | Where does a call run? | [weft_run()], [weft_backend()], [weft_options] | `running-on-gpus-and-clusters` |
#' | How long does a call take? | dry runs of [weft_run()], [weft_calibrate()] | `benchmarks`, `how-weft-computes` |
#' | Which data can I try? | [weft_example()] | |
#'
#' The last column names a vignette, which a call such as `vignette("gwas-pair-scan")` opens.
#'
#' @section Saved results: A result saved with [saveRDS()] works after [readRDS()] in another session, also on a machine
#'   without a device. Its attribute `format` is the number of its format, at present 1. Each function checks this
#'   number, and the types, lengths and ranges of the parts that it uses. If the number is missing or different, or if a
#'   part is damaged, the function stops with an error of class `weft_error_input`. Packs, device matrices and other
#'   handles end with the session. A checkpoint of [irm()] and a store also have checksums.
#'
#' @keywords internal
#' @useDynLib weft, .registration = TRUE
#' @importFrom generics tidy glance
"_PACKAGE"

#' @export
generics::tidy
#' @export
generics::glance

#' Options and environment variables
#'
#' These options and environment variables set defaults for a session. For example, `options(weft.threads = 1)` limits
#' weft to one thread. An argument of a call overrides an option, and an option overrides an environment variable.
#'
#' | option | variable | meaning |
#' |---|---|---|
#' | `weft.backend` | `WEFT_BACKEND` | `"auto"` (default), `"cpu"` or `"cuda"`; see [weft_backend()] |
#' | `weft.threads` | `OMP_NUM_THREADS`, `OMP_THREAD_LIMIT` | the largest number of threads; see [weft_threads()] |
#' | `weft.device` | `CUDA_VISIBLE_DEVICES` | which device, from 0 (default 0) |
#' | `weft.devices` | | the devices of calls that take several, `"all"` or numbers from 0; see [weft_devices()] |
#' | `weft.device_memory` | | bytes of each device's memory that weft may use; work that needs more is done in chunks |
#' | `weft.memory` | | bytes for the genotypes of a [plink_file()] in [mi_pairs()] (default: 0.7 of the free memory) |
#' | `weft.calibrate` | `WEFT_CALIBRATE` | whether `"auto"` measures this machine; see [weft_calibrate()] |
#' | `weft.balance` | | over ranks, queries go to a rank with less than this share of the work (default 0.5; 0: never) |
#' | `weft.progress` | | whether to show progress bars (default: only in interactive sessions) |
#' | | `WEFT_SIMD` | the most advanced vector instructions to use: `"portable"`, `"avx2"`, `"avx512"` |
#'
#' @name weft_options
#' @examples
#' old <- options(weft.threads = 1)
#' weft_threads()
#' options(old)
NULL

# The native code stays as long as R may call a finaliser of it.
.onUnload <- function(libpath) {
  session$waits <- FALSE # unloading the object waits
  gc()
  if (.Call(C_weft_finalisers) == 0) library.dynam.unload("weft", libpath)
}

# A data frame of columns of one length, and false discovery rates by Benjamini and Hochberg: data.frame() and
# stats::p.adjust() look at so much that they take longer than most small calls.
as_frame <- function(columns, rows = length(columns[[1L]])) {
  attributes(columns) <- list(names = names(columns), class = "data.frame", row.names = .set_row_names(rows))
  columns
}

false_rates <- function(p) {
  n <- length(p)
  if (n < 2L || anyNA(p)) return(stats::p.adjust(p, "BH"))
  falling <- order(p, decreasing = TRUE)
  p[falling] <- pmin.int(1, cummin(n / n:1 * p[falling]))
  p
}

# As the namespace knows it: utils::packageVersion() reads a file.
weft_version <- function() unname(getNamespaceVersion(topenv()))

# R makes the list of all loaded libraries anew for whoever asks, which takes longer than most of a small call.
libs_dir <- function() session$libs %||% (session$libs <- dirname(getLoadedDLLs()[["weft"]][["path"]]))

# Where the CUDA object is: weft's own, or the one that weft_install_cuda() built from the same sources.
cuda_dir <- function() {
  own <- libs_dir()
  if (file.exists(file.path(own, "cuda", "weft_cuda.so"))) return(own)
  built <- user_cuda_dir()
  if (!is.null(built) && file.exists(file.path(built, "cuda", "weft_cuda.so"))) built else own
}

#' @importFrom stats setNames
NULL
