# A CUDA object that tools/gpu-object.sh built elsewhere: an archive of weft_cuda.so and `key`, the key of its sources.
# Nothing of it is looked at before its SHA-256 was.

# Installs it below `root`, the folder of these sources' object. Its path; NULL when the answer was no.
install_object <- function(from, sha256, ask, root, quiet) {
  there <- grepl("^https://", from)
  if (!there && !file.exists(from)) {
    abort_input("`from` must be a folder with wheels, or a file or an https address of an object.",
                x = sprintf("There is no %s.", describe(from)))
  }
  check_driver()
  folder <- tempfile("object-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  if (there && !agreed_to_object(from, ask)) return(NULL)
  file <- if (there) fetch_file(from, file.path(folder, "archive"), quiet) else from
  wanted <- wanted_sum(from, sha256, there, folder, quiet)
  found <- sha256_of(file)
  if (!identical(found, wanted)) {
    abort_input("The file must have the SHA-256 that is given for it.", x = sprintf("It is %s, not %s.", found, wanted),
                i = "It was cut short, or is another one: do not use it.")
  }
  unpack_object(file, folder, basename(root))
  unlink(root, recursive = TRUE)
  dir.create(file.path(root, "cuda"), recursive = TRUE)
  object <- put_in_place(file.path(folder, "weft_cuda.so"), file.path(root, "cuda", "weft_cuda.so"))
  folders <- library_folders()
  writeLines(folders, file.path(root, "cuda", "libraries"))
  if (!length(folders)) {
    message("NVIDIA's libraries of CUDA ", cuda_major, " were not found. Calls that need none of them work. For the ",
            "others: python3 -m pip install nvidia-cublas nvidia-cusolver nvidia-cusparse nvidia-nvjitlink, or a ",
            "toolkit, and install the object again.")
  }
  if (file.exists(file.path(libs_dir(), "cuda", "weft_cuda.so"))) {
    message("This installation of weft has an object of its own, which is used.")
  }
  report_object()
  object
}

cuda_major <- 13L

agreed_to_object <- function(from, ask) {
  message(sprintf("This will fetch weft's CUDA object (some 15 MB) from %s.", from))
  if (!ask) return(TRUE)
  if (!interactive()) abort_input("`weft_install_cuda()` asks before it downloads anything.",
                                  i = "In a script, use `weft_install_cuda(ask = FALSE)`.")
  isTRUE(utils::askYesNo("Go on?"))
}

fetch_file <- function(from, to, quiet) {
  old <- options(timeout = max(3600, getOption("timeout")))
  on.exit(options(old))
  why <- character()
  status <- withCallingHandlers(
    tryCatch(utils::download.file(from, to, mode = "wb", quiet = quiet), error = function(e) 1L),
    warning = function(w) {
      why <<- c(why, conditionMessage(w))
      invokeRestart("muffleWarning")
    })
  if (status != 0L) abort_input(sprintf("%s could not be fetched.", from), x = plain_text(paste(why, collapse = "; ")))
  to
}

# As given, or as the first word of the file beside it.
wanted_sum <- function(from, sha256, there, folder, quiet) {
  where <- "`sha256`"
  if (is.null(sha256)) {
    where <- paste0(from, ".sha256")
    beside <- if (there) fetch_file(where, file.path(folder, "sum"), quiet) else where
    if (!file.exists(beside)) {
      abort_input("`sha256` must be given, or be in a file next to the object.",
                  x = sprintf("There is no %s.", describe(where)))
    }
    sha256 <- sub("[[:space:]].*", "", c(text_lines(beside, "from"), "")[1L])
  }
  sha256 <- tolower(check_text(sha256, "sha256"))
  if (!grepl("^[0-9a-f]{64}$", sha256)) {
    abort_input(sprintf("%s must be 64 hexadecimal digits.", where), x = sprintf("It is %s.", describe(sha256)))
  }
  sha256
}

# R computes it itself from 4.5 on.
sha256_of <- function(file) {
  own <- get0("sha256sum", asNamespace("tools"), inherits = FALSE)
  if (!is.null(own)) return(unname(own(file)))
  program <- Sys.which("sha256sum")
  if (!nzchar(program)) abort_input("`weft_install_cuda()` needs sha256sum, or R 4.5.",
                                    i = "It belongs to the package coreutils.")
  substr(system2(program, stdin = file, stdout = TRUE), 1L, 64L)
}

# Its two files, into `folder`.
unpack_object <- function(file, folder, key) {
  parts <- c("key", "weft_cuda.so")
  found <- tryCatch(utils::untar(file, list = TRUE, tar = "internal"), error = conditionMessage)
  if (!identical(sort(found), parts)) {
    abort_input("The file must be an archive of `key` and `weft_cuda.so`, as `tools/gpu-object.sh` makes it.",
                x = sprintf("It contains %s.", label_some(plain_text(found))))
  }
  utils::untar(file, exdir = folder, tar = "internal")
  path <- file.path(folder, parts)
  if (any(nzchar(Sys.readlink(path))) || !all(file.exists(path)) || any(dir.exists(path))) {
    abort_input("The archive must contain two files.", x = "It contains something that is not a file.")
  }
  its <- c(readLines(path[1L], n = 1L, warn = FALSE), "")[1L]
  if (!identical(its, key)) {
    abort_input("The object must be built of the sources of this weft.",
                x = sprintf("Its key is %s, not %s.", plain_text(its), key),
                i = "Each version of weft has its own object.")
  }
}

# The folders in which NVIDIA's libraries of this version lie, of the places where wheels, conda, R packages of mlverse,
# toolkits and the system have them.
library_folders <- function() {
  python <- Sys.which("python3")
  paths <- if (nzchar(python)) {
    suppressWarnings(system2(python, c("-I", "-c", shQuote("import sys; print(*sys.path, sep=chr(10))")), stdout = TRUE,
                             stderr = FALSE, env = without_r_libraries()))
  }
  own <- Sys.glob(file.path(path.expand("~"), ".local/lib/python3*/site-packages"))
  wheels <- file.path(c(paths, own), "nvidia", sprintf("cu%d", cuda_major), "lib")
  conda <- Sys.getenv("CONDA_PREFIX")
  home <- Sys.getenv("CUDA_HOME")
  places <- c(wheels, if (nzchar(conda)) file.path(conda, c("lib", sprintf("targets/%s-linux/lib",
                                                                            Sys.info()[["machine"]]))),
              Sys.glob(file.path(.libPaths(), sprintf("cuda%d*", cuda_major), "lib")),
              if (nzchar(home)) file.path(home, c("lib64", "lib")), Sys.glob("/usr/local/cuda*/lib64"),
              "/opt/cuda/lib64", Sys.glob("/usr/lib/*-linux-gnu"), "/usr/lib64")
  has <- file.exists(file.path(places, sprintf("libcublas.so.%d", cuda_major)))
  unique(normalizePath(places[has]))
}
