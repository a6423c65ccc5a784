#' weft: structure in wide data, on the CPU and the GPU
#'
#' Start with [gene_network()], which goes from an expression matrix to networks, and [weft_report()], which writes a
#' report on the result. `vignette("weft-in-ten-minutes")` walks through both, and `vignette("coming-from")` maps
#' calls of other packages to those of weft. Functions take a matrix, data frame, sparse Matrix, DelayedMatrix or
#' SummarizedExperiment, as their help says, and `run` (see [weft_run()]).
#'
#' | what you want to know | functions | read |
#' |---|---|---|
#' | what an expression data set shows | [gene_network()], [weft_report()] | `weft-in-ten-minutes` |
#' | whether the data are sound, which samples are odd | [gene_quality()], [gene_outliers()] | `weft-in-ten-minutes` |
#' | which features tell about a class | [mi_rank()], [mi_select()], [discretize()] | `genes-alone-and-together` |
#' | which do so only together | [mi_pairs()], [mi_triples()], [mi_tuples()] | `gwas-pair-scan` |
#' | what genotypes say, from PLINK's files | [plink_file()], [read_plink()], [mi_pairs()] | `gwas-pair-scan` |
#' | which variants interact, given covariates | [pair_scan()] | `gwas-pair-scan` |
#' | which go together | [mi_matrix()], [mi_network()] | `genes-alone-and-together` |
#' | modules of genes, and what they follow | [gene_modules()], [module_preservation()] | `from-a-matrix-to-modules` |
#' | which drive which, with false discovery rates | [regulation()], [gene_regulation()] | `which-genes-drive-which` |
#' | whether a network differs between conditions | [regulation()] with `compare` | `which-genes-drive-which` |
#' | which may cause which | [bn_learn()], [bn_exact()], [bn_search()] | `from-expression-to-a-causal-network` |
#' | how certain each of these edges is | [bn_features()], [bn_compare()] | `from-expression-to-a-causal-network` |
#' | in which directions data vary | [pca()], [pca_choose_k()], [kernel_pca()] | `components-of-wide-data` |
#' | what single cells have in common | [weft_import()], [gene_cells()], [regulation()] | `hundred-thousand-cells` |
#' | how points are distributed | [kde()], [kernel_sum()], [kernel_bandwidth()] | `a-million-points` |
#' | how a value depends on others | [kernel_regression()], [gp_regression()], [svm_predict()] | `a-million-points` |
#' | how rows and columns group | [irm()], [read_bag_of_words()] | `genes-by-samples` |
#' | which known sets of genes are involved | [gene_sets()], [read_gmt()] | |
#' | how to pass a network on | [as_igraph()], [network_convert()], [write_network()], [bn_convert()] | `coming-from` |
#' | how to add results to the data, and plot them | [add_results()], [autoplot] | `coming-from` |
#' | what this machine offers | [weft_sitrep()], [weft_install_cuda()] | `running-on-gpus-and-clusters` |
#' | which parts of it are used | [weft_run()], [weft_backend()], [weft_options] | `running-on-gpus-and-clusters` |
#' | time and accuracy of calls | dry runs of [weft_run()], [weft_calibrate()] | `benchmarks`, `how-weft-computes` |
#' | data to try it on | [weft_example()] | |
#'
#' The last column names vignettes, which open by calls such as `vignette("gwas-pair-scan")`.
#'
#' @section Saved results: A result that [saveRDS()] wrote works after [readRDS()] in another session, and on a machine
#'   without a device. Its attribute `format` is the number of its format, at present 1. A function that is given a
#'   result checks that number and the types, lengths and ranges of the parts that it uses, and rejects a result of
#'   another format, without a number, or with a damaged part by an error of class `weft_error_input`. Packs, device
#'   matrices and other handles end with the session. A checkpoint of [irm()] and a store have checksums, too.
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
#' An argument of a call comes before an option, an option before an environment variable.
#'
#' | option | variable | meaning |
#' |---|---|---|
#' | `weft.backend` | `WEFT_BACKEND` | `"auto"` (default), `"cpu"` or `"cuda"`; see [weft_backend()] |
#' | `weft.threads` | `OMP_NUM_THREADS`, `OMP_THREAD_LIMIT` | most threads to use; see [weft_threads()] |
#' | `weft.device` | `CUDA_VISIBLE_DEVICES` | which device, from 0 (default 0) |
#' | `weft.devices` | | the devices of calls that take several, `"all"` or numbers from 0; see [weft_devices()] |
#' | `weft.device_memory` | | most bytes of each device's memory to use; work that needs more is done in chunks |
#' | `weft.memory` | | most bytes for planes of a [plink_file()] in [mi_pairs()] (default: 0.7 of what is free) |
#' | `weft.calibrate` | `WEFT_CALIBRATE` | whether `"auto"` measures this machine; see [weft_calibrate()] |
#' | `weft.balance` | | over ranks, queries go to a rank with less than this share of the work (default 0.5; 0: never) |
#' | `weft.progress` | | show progress bars: default only in interactive sessions |
#' | | `WEFT_SIMD` | cap on the CPU's vector instructions: `"portable"`, `"avx2"`, `"avx512"` |
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
