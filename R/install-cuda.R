# A CUDA object without a toolkit, in the user's own folder, from where it is opened. It is built of the sources that
# the installed package carries, by NVIDIA's compiler, which comes as Python wheels; or it was built elsewhere and is
# taken from a file (R/install-cuda-file.R).

# What is fetched, in megabytes: what the object is compiled and linked with, and no more. The SHA-256 of each wheel, by
# processor: pip refuses any other file, wherever it comes from.
cuda_wheels <- data.frame(
  package = c("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-cccl", "nvidia-cuda-runtime",
              "nvidia-curand", "nvidia-nvjitlink", "nvidia-cublas", "nvidia-cusolver", "nvidia-cusparse"),
  version = c("13.0.88", "13.0.88", "13.0.88", "13.0.85", "13.0.96", "10.4.5.25", "13.5.37", "13.10.0.20", "12.4.1.2",
              "12.9.4.2"),
  megabytes = c(37, 62, 1, 3, 2, 77, 47, 444, 260, 166),
  x86_64 = c("56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03",
             "c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0",
             "2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4",
             "e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649",
             "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
             "22bb226a857e5888fe6b54ae465fc4371296bcff13a35f79e19691bcf454f529",
             "280d7cb9649704145f074b8dbde500de04ce02d0872e066e20a83c17bcaa93eb",
             "dcc6d63884c53d07e267ce7e6feac17b2538cebaafec5db865736c3e28e4dc84",
             "b3b8e02fd2f2df869369af075dc3a179d43f6f7b85e94632a7dce556697be044",
             "072667e58c851a318738f5527a12eb225cbf058803f2ea451c722d8cf8edddec"),
  aarch64 = c("c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f",
              "c4376a291d72d22a315d9d2f69bdae8f8cd83a627f75bad395cee49a0fe65dc1",
              "ee2ea2a97073e02ee62bb27841f437332be2c248e3eac013df07997ada39c003",
              "6f0203e29fed809ee2b7fe9b1344df66ecab990c37d6a2e0e189b26d6c97ed7c",
              "ef9bcbe90493a2b9d810e43d249adb3d02e98dd30200d86607d8d02687c43f55",
              "07c75d8ba14b627d1a01d2c1bfa1eece88f25d564d3aae7e6b6fb44f7bbec9c1",
              "893f6f9a55b2720ed94913b5ba3332e972da8c78dfa2863d0244403dbd528ffc",
              "c5f3418c0a845232a8cabc58f6fa52cfae7d8bd3680d94c3907aca710fd48d70",
              "1f54c8e0d5b1ebd183b4c5a79f0709fa90241e8254da381ca5b969ee97c8de32",
              "e2ce97f185c9c4b285e4a8fbf02cb96dd1b8dd66736ebe2f0a8da5f6012a4fb7")
)
least_driver <- 580 # of CUDA 13

#' Build the CUDA back end without a CUDA toolkit
#'
#' This is for a machine that has an NVIDIA driver but no `nvcc`. The function fetches NVIDIA's compiler and libraries
#' as Python wheels (and says beforehand what they are and how large), builds the CUDA object from the sources that
#' the installed package contains, and loads it. Neither root privileges nor a new installation of weft are needed.
#' What the object does not need is deleted afterwards. pip checks every wheel against its SHA-256, which weft contains,
#' and Python imports nothing from the working folder, `PYTHONPATH` or the user's own packages.
#'
#' Everything goes into one folder below `tools::R_user_dir("weft", "data")`, which `remove = TRUE` deletes. The
#' object belongs to the sources from which it was built: another version of weft does not open it, and this function
#' must then be called again. Where weft was installed with its own CUDA object, that one is used.
#'
#' With `from = "weft-cuda-....tar.xz"`, a file or an address, no compiler, Python or make is needed: the file holds an
#' object that `tools/gpu-object.sh` built of the same sources for devices of compute capability 7.5 to 12.0. It is
#' installed when its SHA-256 is right. NVIDIA's libraries (cuBLAS, and cuSOLVER, which needs cuSPARSE) are opened
#' when a call first needs them: from wheels, conda, the packages `cuda13.*` of mlverse, a toolkit or the system,
#' whichever is there.
#'
#' @section Needed: Linux, `python3` with pip, `make` and the C and C++ compiler that R was configured with; a driver of
#'   version `r least_driver` or later; 4 GB of disk while it works, of which 1.2 GB stay.
#'
#' @param arch compute capabilities to build for, as in `"90"` or `c("80", "90")`; by default those of this machine's
#'   devices.
#' @param ask whether to ask before anything is fetched. In scripts it must be `FALSE`.
#' @param from a folder with the wheels, from which pip then takes them without a network; or an object that was built
#'   elsewhere: a file, or an address that begins with `https://`.
#' @param sha256 the SHA-256 that such a file must have; by default, the one in the file beside it whose name has
#'   `.sha256` at its end.
#' @param remove whether to delete what an earlier call built.
#' @param quiet whether to hide the output of pip, configure and make.
#' @return The path of the object, invisibly; `NULL` when the answer was no, or it was removed.
#' @seealso [weft_sitrep()]
#' @export
#' @examples
#' # what would be fetched
#' weft:::cuda_wheels[1:3]
#' if (interactive()) weft_install_cuda()
weft_install_cuda <- function(arch = NULL, ask = TRUE, from = NULL, sha256 = NULL, remove = FALSE, quiet = TRUE) {
  ask <- check_flag(ask, "ask")
  quiet <- check_flag(quiet, "quiet")
  root <- user_cuda_dir()
  if (check_flag(remove, "remove")) {
    unlink(cuda_home(), recursive = TRUE)
    return(invisible())
  }
  if (is.null(root)) abort_input("This installation of weft does not contain the sources of the CUDA object.",
                                 i = "Install weft from source.")
  if (!is.null(from) && !dir.exists(check_text(from, "from"))) {
    return(invisible(install_object(from, sha256, ask, root, quiet)))
  }
  if (!is.null(sha256)) abort_input("`sha256` must be NULL unless `from` is a file or an address.")
  arch <- checked_arch(arch)
  tools <- needed_tools()
  if (!agreed(ask, from, root)) return(invisible())
  unlink(root, recursive = TRUE)
  dir.create(root, recursive = TRUE)
  finished <- FALSE
  on.exit(if (!finished) unlink(root, recursive = TRUE))
  toolkit <- fetch_wheels(tools[["python3"]], root, from, quiet)
  object <- build_cuda(root, toolkit, arch, tools[["make"]], quiet)
  trim_toolkit(root, toolkit, object)
  finished <- TRUE
  report_object()
  invisible(object)
}

report_object <- function() {
  missing <- cuda_missing()
  message(if (is.null(missing)) "The CUDA back end is ready; weft_sitrep() shows the devices."
          else paste0("The CUDA object was installed, but cannot be used yet: ", missing))
}

cuda_home <- function() file.path(user_folder("data"), "cuda")

# The folder of the object of these sources; NULL where the package carries none.
user_cuda_dir <- function() {
  key <- session$cuda_key %||% (session$cuda_key <- installed_key())
  if (nzchar(key)) file.path(cuda_home(), key)
}

# Of the sources that the package carries; read once, since every call asks where the CUDA object is.
installed_key <- function() {
  file <- system.file("cuda", "key", package = "weft")
  if (nzchar(file)) readLines(file, n = 1L) else ""
}

checked_arch <- function(arch) {
  if (is.null(arch)) {
    found <- device_report("compute_cap")
    arch <- gsub(".", "", unique(found), fixed = TRUE)
    if (!length(arch)) {
      abort_input("`arch` must be given on a machine without a GPU.", x = "`nvidia-smi` lists no GPU.",
                  i = "For example `arch = \"90\"` for an H100 or H200.")
    }
  }
  arch <- as.character(arch)
  if (!length(arch) || anyNA(arch) || !all(grepl("^[0-9]{2,3}$", arch)) || any(as.integer(arch) < 75L)) {
    abort_input("`arch` must contain compute capabilities of at least 75, such as \"90\".",
                x = sprintf("It is %s.", toString(arch)))
  }
  check_driver()
  arch
}

check_driver <- function() {
  driver <- suppressWarnings(as.numeric(sub("[.].*", "", device_report("driver_version"))))
  if (length(driver) && any(driver < least_driver, na.rm = TRUE)) {
    abort_input(sprintf("The NVIDIA driver must have version %d or later.", least_driver),
                x = sprintf("Its version is %.0f.", min(driver)),
                i = "Ask the administrator of this machine for a newer driver, or a CUDA toolkit that fits this one.")
  }
}

# What nvidia-smi says of all devices; nothing without them.
device_report <- function(what) {
  smi <- Sys.which("nvidia-smi")
  if (!nzchar(smi)) return(character())
  said <- suppressWarnings(system2(smi, c(paste0("--query-gpu=", what), "--format=csv,noheader"), stdout = TRUE,
                                   stderr = FALSE))
  trimws(said[grepl("^ *[0-9]+([.][0-9]+)* *$", said)])
}

needed_tools <- function() {
  if (Sys.info()[["sysname"]] != "Linux") abort_input("`weft_install_cuda()` only works on Linux.",
                                                      x = sprintf("This system is %s.", Sys.info()[["sysname"]]))
  names <- c("python3", "make")
  found <- Sys.which(names)
  if (any(!nzchar(found))) abort_input("`weft_install_cuda()` needs python3 and make.",
                                       x = sprintf("Not found: %s.", toString(names[!nzchar(found)])))
  said <- in_empty_folder(suppressWarnings(system2(found[["python3"]], c(pip_alone, "--version"), stdout = TRUE,
                                                   stderr = TRUE, env = without_r_libraries())))
  if (!is.null(attr(said, "status"))) {
    abort_input("`weft_install_cuda()` needs Python's pip.", x = plain_text(paste(said, collapse = " ")),
                i = "On Debian and Ubuntu: `apt-get install python3-pip`.")
  }
  found
}

agreed <- function(ask, from, root) {
  total <- sum(cuda_wheels$megabytes)
  message(sprintf("%s %.1f GB of NVIDIA's compiler and libraries (CUDA 13):",
                  if (is.null(from)) "This will fetch" else "This will unpack",
                  total / 1000))
  message(paste(sprintf("  %-20s %-11s %4.0f MB", cuda_wheels$package, cuda_wheels$version, cuda_wheels$megabytes),
                collapse = "\n"))
  message(sprintf(paste0("from %s into %s,\nand build weft's CUDA object there. ",
                         "It needs 4 GB of disk space while it runs, and 1.2 GB afterwards."),
                  from %||% "the index that pip uses (PyPI)", root))
  message("The wheels are under NVIDIA's own licence: https://docs.nvidia.com/cuda/eula/")
  if (!ask) return(TRUE)
  if (!interactive()) abort_input("`weft_install_cuda()` asks before it downloads anything.",
                                  i = "In a script, use `weft_install_cuda(ask = FALSE)`.")
  isTRUE(utils::askYesNo("Go on?"))
}

# R puts its folders before those in which programs look for libraries, and a Python that the user installed then takes
# the system's libraries for its own. The system's folders are searched all the same.
without_r_libraries <- function() {
  folders <- strsplit(Sys.getenv("LD_LIBRARY_PATH"), ":", fixed = TRUE)[[1L]]
  kept <- folders[nzchar(folders) & folders != R.home("lib") & !grepl("^/(usr/)?lib(32|64)?(/|$)", folders)]
  paste0("LD_LIBRARY_PATH=", shQuote(paste(kept, collapse = ":")))
}

# Runs a program; what it said comes with the error.
run_tool <- function(program, args, what, quiet, env = character()) {
  message(what)
  log <- tempfile()
  on.exit(unlink(log))
  to <- if (quiet) log else ""
  status <- system2(program, args, stdout = to, stderr = to, env = c(without_r_libraries(), env))
  if (status == 0L) return(invisible())
  last <- if (quiet) utils::tail(grep("[^ ]", readLines(log, warn = FALSE), value = TRUE),
                                 5L) else "The output above shows the reason."
  abort_input(sprintf("%s failed.", what), x = plain_text(paste(last, collapse = "\n")),
              i = "`quiet = FALSE` shows the complete output.")
}

# Python's pip without what may lie in the working folder, in PYTHONPATH or in the user's own packages (-I).
pip_alone <- c("-I", "-m", "pip")

# Evaluates code with an empty working folder.
in_empty_folder <- function(code) {
  folder <- tempfile("empty-")
  dir.create(folder)
  old <- setwd(folder)
  on.exit({
    setwd(old)
    unlink(folder, recursive = TRUE)
  })
  code
}

# The lines of a requirements file of pip.
wheel_requirements <- function() {
  sprintf("%s==%s --hash=sha256:%s --hash=sha256:%s", cuda_wheels$package, cuda_wheels$version, cuda_wheels$x86_64,
          cuda_wheels$aarch64)
}

# The folder of the toolkit.
fetch_wheels <- function(python, root, from, quiet) {
  where <- if (!is.null(from)) c("--no-index", "--find-links", shQuote(normalizePath(from)))
  target <- file.path(root, "wheels")
  in_empty_folder({
    writeLines(wheel_requirements(), "wheels.txt")
    run_tool(python, c(pip_alone, "install", "--no-deps", "--no-compile", "--only-binary", ":all:", "--require-hashes",
                       "--target", shQuote(target), where, "-r", "wheels.txt"),
             "Downloading (takes minutes)", quiet)
  })
  toolkit <- file.path(target, "nvidia", "cu13")
  if (!file.exists(file.path(toolkit, "bin", "nvcc"))) abort_input("The wheels must contain nvcc.",
                                                                   x = sprintf("It was not found in %s.", toolkit))
  toolkit
}

build_cuda <- function(root, toolkit, arch, make, quiet) {
  work <- file.path(root, "build")
  # R's own untar: the system's may lack xz
  utils::untar(system.file("cuda", "sources.tar.xz", package = "weft", mustWork = TRUE), exdir = work, tar = "internal")
  old <- setwd(work)
  on.exit(setwd(old))
  env <- c(paste0("NVCC=", shQuote(file.path(toolkit, "bin", "nvcc"))),
           paste0("WEFT_CUDA_ARCH=", shQuote(paste(arch, collapse = " "))), "WEFT_CUDA=yes",
           "WEFT_MPI=no", "WEFT_TESTS=no", paste0("R_HOME=", shQuote(R.home())))
  run_tool("sh", "configure", "Configuring", quiet, env)
  setwd("src")
  jobs <- max(1L, parallel_jobs())
  run_tool(make, c(sprintf("-j%d", jobs), "-f", "Makevars", "-f", shQuote(file.path(R.home("etc"), "Makeconf")),
                   "weft_cuda.so"),
           sprintf("Compiling for %s on %d processor%s (about %d minutes)", toString(arch), jobs,
                   if (jobs == 1L) "" else "s",
                   as.integer(ceiling((1.5 + 2 * length(arch)) / jobs))), quiet, paste0("R_HOME=", shQuote(R.home())))
  dir.create(file.path(root, "cuda"))
  object <- file.path(root, "cuda", "weft_cuda.so")
  put_in_place("weft_cuda.so", object)
  object
}

parallel_jobs <- function() {
  said <- suppressWarnings(system2("getconf", "_NPROCESSORS_ONLN", stdout = TRUE, stderr = FALSE))
  count <- suppressWarnings(as.integer(said[1L]))
  if (length(count) && !is.na(count)) count else 1L
}

# Keeps the libraries that the object opens, and theirs.
trim_toolkit <- function(root, toolkit, object) {
  unlink(file.path(root, "build"), recursive = TRUE)
  parts <- list.files(file.path(root, "wheels"), all.files = TRUE, no.. = TRUE, full.names = TRUE)
  unlink(parts[basename(parts) != "nvidia"], recursive = TRUE)
  parts <- list.files(toolkit, all.files = TRUE, no.. = TRUE, full.names = TRUE)
  unlink(parts[basename(parts) != "lib"], recursive = TRUE)
  libraries <- list.files(file.path(toolkit, "lib"), full.names = TRUE)
  unlink(libraries[!grepl("^lib(cublas|cublasLt|cusolver|cusparse|nvJitLink)[.]so", basename(libraries))],
         recursive = TRUE)
  writeLines(normalizePath(file.path(toolkit, "lib")), file.path(dirname(object), "libraries"))
  invisible()
}
