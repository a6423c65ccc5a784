#' What this machine offers, and what is missing
#'
#' Opens the CUDA and MPI objects, if they were built, and prints driver, runtime, devices, built architectures, MPI,
#' OpenMP, threads and vector instructions, each with the reason when it is missing. Include it in a bug report.
#'
#' @return A list of class `weft_sitrep`, one element per part.
#' @export
#' @examples
#' weft_sitrep()
weft_sitrep <- function() {
  devices <- weft_devices()
  openmp <- .Call(C_weft_openmp)
  mpi <- .Call(C_weft_mpi, libs_dir())
  structure(class = "weft_sitrep", list(
    version = weft_version(),
    R = R.version.string, platform = R.version$platform,
    build = read_build(),
    openmp = openmp, threads = weft_threads(), simd = .Call(C_weft_simd, NULL),
    memory = host_free(),
    backend = tryCatch(weft_backend(), weft_error_input = function(e) "auto"),
    backend_problem = tryCatch({ weft_backend(); NULL }, weft_error_input = conditionMessage),
    cuda = is.null(attr(devices, "reason")), cuda_reason = attr(devices, "reason"), devices = devices,
    mpi = isTRUE(attr(mpi, "available")), mpi_text = as.character(mpi)
  ))
}

# What configure found when the package was installed.
read_build <- function() {
  file <- file.path(libs_dir(), "weft-build.dcf")
  if (!file.exists(file)) return(NULL)
  as.list(read.dcf(file)[1L, ])
}

#' @export
print.weft_sitrep <- function(x, ...) {
  line <- function(ok, name, text) {
    cat(sprintf("%s %-9s %s\n", if (ok) cli::symbol$tick else cli::symbol$cross, name, text))
  }
  gib <- function(bytes) sprintf("%.1f GiB", bytes / 2^30)
  cat(sprintf("weft %s, %s, %s\n", x$version, x$R, x$platform))
  line(TRUE, "CPU", sprintf("%d thread%s, %s instructions, %s free", x$threads, if (x$threads == 1) "" else "s",
                            x$simd, if (x$memory < 0) "unknown memory" else gib(x$memory)))
  line(!is.na(x$openmp), "OpenMP", if (is.na(x$openmp)) x$build$OpenMP %||% "no" else x$build$OpenMP %||% x$openmp)
  if (x$cuda) {
    d <- x$devices
    line(TRUE, "CUDA", sprintf("driver for %s, runtime %s, built for %s", cuda_version(d$driver[1L]),
                               cuda_version(d$runtime[1L]), d$built_for[1L]))
    for (k in seq_len(nrow(d))) {
      cat(sprintf("    %d: %s, compute capability %s, %g multiprocessors, %s of %s free\n", k - 1L, d$name[k],
                  d$capability[k], d$processors[k], gib(d$available[k]), gib(d$total[k])))
    }
  } else {
    line(FALSE, "CUDA", x$cuda_reason)
    if (!is.null(x$build$CUDA)) cat("    at installation: ", x$build$CUDA, "\n", sep = "")
    if (startsWith(x$cuda_reason, "weft was installed without CUDA support")) {
      cat("    weft_install_cuda() builds it on a machine with a driver, without a toolkit\n")
    }
  }
  line(x$mpi, "MPI", x$mpi_text)
  if (!x$mpi && !is.null(x$build$MPI)) cat("    at installation: ", x$build$MPI, "\n", sep = "")
  if (is.null(x$backend_problem)) cat(sprintf("Default back end: \"%s\"\n", x$backend))
  else cat("Default back end: not valid.", plain_text(strsplit(x$backend_problem, "\n")[[1L]]), "", sep = "\n")
  invisible(x)
}

cuda_version <- function(v) sprintf("%d.%d", as.integer(v) %/% 1000L, (as.integer(v) %% 1000L) %/% 10L)
