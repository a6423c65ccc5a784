#' weft: structure in wide data, on the CPU and the GPU
#'
#' Start with [gene_network()], which goes from an expression matrix to networks and a report, and `vignette("weft-in-ten-minutes")`.
#' By themselves: [mi_rank()], [mi_pairs()] and [mi_network()] (mutual information), [pca()] (components), [bn_learn()] (Bayesian
#' networks), [kernel_sum()] and [kde()] (kernel sums), [irm()] (groups of rows and columns). [weft_sitrep()] says what this machine
#' offers; [weft_options] lists the settings.
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
  gc()
  if (.Call(C_weft_finalisers) == 0) library.dynam.unload("weft", libpath)
}

# R makes the list of all loaded libraries anew for whoever asks, which takes longer than most of a small call.
libs_dir <- function() session$libs %||% (session$libs <- dirname(getLoadedDLLs()[["weft"]][["path"]]))

#' @importFrom stats setNames
NULL
