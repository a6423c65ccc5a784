# Building the CUDA object without a toolkit: with a pip, a compiler and a make that only do what real ones would leave.

skip_on_os(c("windows", "mac"))
skip_on_cran()

# Programs of these names and lines come first on the PATH; what is built goes below the folder that is returned.
machine <- function(..., env = parent.frame()) {
  there <- withr::local_tempdir(.local_envir = env)
  programs <- list(...)
  for (name in names(programs)) {
    writeLines(c("#!/bin/sh", programs[[name]]), file.path(there, name))
    Sys.chmod(file.path(there, name), "755")
  }
  withr::local_envvar(PATH = paste(there, Sys.getenv("PATH"), sep = ":"), R_USER_DATA_DIR = file.path(there, "data"),
                      .local_envir = env)
  there
}

compiler <- c("case \"$*\" in *--list-gpu-code*) echo sm_75 sm_90; exit ;; esac",
              "while [ $# -gt 0 ]; do if [ \"$1\" = -o ]; then : >\"$2\"; fi; shift; done")
# pip --version answers; pip install puts a compiler and libraries into the target
pip <- function(lines = character()) {
  c("case \"$*\" in *--version*) echo pip 23; exit 0 ;; esac", lines,
    "while [ $# -gt 0 ]; do if [ \"$1\" = --target ]; then t=$2/nvidia/cu13; fi; shift; done",
    "mkdir -p \"$t/bin\" \"$t/lib\"; for l in cublas cusolver cusparse; do : >\"$t/lib/lib$l.so.13\"; done",
    "cat >\"$t/bin/nvcc\" <<'END'", "#!/bin/sh", compiler, "END", "chmod +x \"$t/bin/nvcc\"")
}
make <- "grep '^CUDA_LIBS' Makevars >libraries.txt; cp libraries.txt weft_cuda.so"

test_that("the object is built in the user's folder, with what was fetched, and removed again", {
  skip_if_not(nzchar(system.file("cuda", "sources.tar.xz", package = "weft")), "no sources in this installation")
  there <- machine(python3 = pip(), make = make)
  said <- testthat::capture_messages(object <- weft_install_cuda(arch = "90", ask = FALSE))
  expect_match(said, "fetch 1.1 GB", all = FALSE)
  expect_match(said, "nvidia-cublas .* 444 MB", all = FALSE)
  expect_match(said, "Compiling for 90", all = FALSE)
  expect_true(startsWith(object, normalizePath(file.path(there, "data"))))
  expect_true(file.exists(object))
  expect_match(readLines(object), "-cudart static -L.*/nvidia/cu13/lib ")
  expect_no_match(readLines(object), "cublas|cusolver|cusparse")
  expect_match(readLines(file.path(dirname(object), "libraries")), "/nvidia/cu13/lib$")
  expect_setequal(list.files(readLines(file.path(dirname(object), "libraries"))),
                  sprintf("lib%s.so.13", c("cublas", "cusolver", "cusparse")))
  own <- file.exists(file.path(weft:::libs_dir(), "cuda", "weft_cuda.so"))
  expect_identical(weft:::cuda_dir(), if (own) weft:::libs_dir() else weft:::user_cuda_dir())
  weft_install_cuda(remove = TRUE)
  expect_false(file.exists(object))
  expect_identical(weft:::cuda_dir(), weft:::libs_dir())
})

test_that("the package has all sources of the object, and all that they include", {
  archive <- system.file("cuda", "sources.tar.xz", package = "weft")
  skip_if_not(nzchar(archive), "no sources in this installation")
  there <- withr::local_tempdir()
  utils::untar(archive, exdir = there, tar = "internal")
  src <- file.path(there, "src")
  files <- list.files(src, "[.](c|h|cu|cuh)$", recursive = TRUE)
  included <- unlist(lapply(files, function(file) {
    lines <- grep("^#[[:space:]]*include \"", readLines(file.path(src, file), encoding = "UTF-8"), value = TRUE)
    file.path(src, sub(".*include \"([^\"]*)\".*", "\\1", lines))
  }))
  expect_gt(length(included), 300)
  expect_identical(included[!file.exists(included)], character())
  own <- testthat::test_path("..", "..", "src")
  skip_if_not(dir.exists(own), "no sources here")
  expect_identical(setdiff(list.files(own, "[.]cu$", recursive = TRUE), files), character())
})

test_that("what fails is named, with the last words of the program, and leaves nothing behind", {
  skip_if_not(nzchar(system.file("cuda", "sources.tar.xz", package = "weft")), "no sources in this installation")
  there <- machine(python3 = pip("echo no such wheel; exit 1"), make = make)
  failed <- function(...) expect_error(suppressMessages(weft_install_cuda(arch = "90", ask = FALSE)), ...,
                                       class = "weft_error_input")
  failed("Downloading.*no such wheel")
  expect_false(dir.exists(weft:::user_cuda_dir()))
  there <- machine(python3 = pip(), make = "echo out of disk; exit 2")
  failed("Compiling.*out of disk")
  expect_false(dir.exists(weft:::user_cuda_dir()))
  there <- machine(python3 = c("case \"$*\" in *--version*) echo no module; exit 1 ;; esac"))
  failed("needs Python's pip")
})

test_that("arguments, devices and drivers are looked at before anything is fetched", {
  there <- machine(python3 = pip("echo called; exit 1"), make = make, "nvidia-smi" = "exit 9")
  expect_error(weft_install_cuda(ask = FALSE), "`arch` must be given on a machine without a GPU",
               class = "weft_error_input")
  expect_error(weft_install_cuda("sm_90", ask = FALSE), "must contain compute capabilities",
               class = "weft_error_input")
  expect_error(weft_install_cuda("61", ask = FALSE), "must contain compute capabilities", class = "weft_error_input")
  expect_error(weft_install_cuda("90", ask = NA), "`ask` must be TRUE or FALSE", class = "weft_error_input")
  expect_error(weft_install_cuda("90", from = "/no/such"), "`from` must be a folder", class = "weft_error_input")
  expect_error(weft_install_cuda("90", ask = FALSE, sha256 = strrep("0", 64)), "`sha256` must be NULL",
               class = "weft_error_input")
  skip_if(interactive())
  expect_error(suppressMessages(weft_install_cuda("90")), "asks before it downloads", class = "weft_error_input")
  there <- machine("nvidia-smi" = c("case \"$*\" in *compute_cap*) echo 9.0; echo 8.6 ;; *) echo 550.54.15 ;; esac"))
  expect_error(weft_install_cuda(ask = FALSE), "driver must have version 580.*Its version is 550",
               class = "weft_error_input")
  there <- machine("nvidia-smi" = c("case \"$*\" in *compute_cap*) echo 9.0; echo 9.0 ;; *) echo 580.65.06 ;; esac"))
  expect_identical(weft:::checked_arch(NULL), "90")
})

test_that("programs do not find R's libraries before their own", {
  withr::local_envvar(LD_LIBRARY_PATH = paste(R.home("lib"), "/usr/lib/x86_64-linux-gnu", "/opt/own/lib", sep = ":"))
  expect_identical(weft:::without_r_libraries(), paste0("LD_LIBRARY_PATH=", shQuote("/opt/own/lib")))
})

test_that("pip imports nothing of the working folder, PYTHONPATH or the user's packages", {
  python <- Sys.which("python3")
  run <- function(...) system2(python, c("-I", ...), stdout = TRUE, stderr = TRUE, env = weft:::without_r_libraries())
  skip_if_not(nzchar(python) && is.null(attr(suppressWarnings(run("-m", "pip", "--version")), "status")), "no pip")
  folder <- withr::local_tempdir()
  marker <- file.path(folder, "marker")
  poison <- sprintf("open('%s', 'a').write(__name__)", marker)
  modules <- c("pip", "sitecustomize", "usercustomize", "zipfile", "json")
  version <- run("-c", shQuote("import sys; print('python%d.%d' % sys.version_info[:2])"))
  own <- file.path(folder, "base", "lib", version, "site-packages")
  dir.create(own, recursive = TRUE)
  for (module in modules) for (to in c(folder, own)) writeLines(poison, file.path(to, paste0(module, ".py")))
  dir.create(wheels <- file.path(folder, "wheels"))
  root <- withr::local_tempdir()
  withr::local_dir(folder)
  withr::local_envvar(PYTHONPATH = folder, PYTHONUSERBASE = file.path(folder, "base"), PIP_CONFIG_FILE = "/dev/null")
  weft:::needed_tools()
  expect_error(suppressMessages(weft:::fetch_wheels(python, root, wheels, TRUE)), "Downloading",
               class = "weft_error_input")
  expect_false(file.exists(marker))
  expect_identical(basename(getwd()), basename(folder))

  # a wheel that is another than weft's is refused
  machine <- Sys.info()[["machine"]]
  skip_if_not(machine %in% c("x86_64", "aarch64"), "no wheels for this processor")
  wheel <- sprintf("%s-%s-py3-none-manylinux2014_%s.whl", gsub("-", "_", weft:::cuda_wheels$package),
                   weft:::cuda_wheels$version, machine)
  for (name in wheel) writeLines("something else", file.path(wheels, name))
  expect_error(suppressMessages(weft:::fetch_wheels(python, root, wheels, TRUE)), "[Hh]ash|HASH|sha256",
               class = "weft_error_input")
})

test_that("every wheel has a checksum for each processor, and pip must keep to it", {
  sums <- unlist(weft:::cuda_wheels[c("x86_64", "aarch64")])
  expect_match(sums, "^[0-9a-f]{64}$")
  expect_identical(anyDuplicated(sums), 0L)
  expect_match(weft:::wheel_requirements(), "^nvidia-[a-z-]+==[0-9.]+( --hash=sha256:[0-9a-f]{64}){2}$")
  there <- machine(python3 = c("echo \"$@\"", "cat wheels.txt", "exit 1"))
  said <- tryCatch(suppressMessages(weft:::fetch_wheels(file.path(there, "python3"), there, NULL, TRUE)),
                   error = conditionMessage)
  expect_match(said, "nvidia-cusparse==12.9.4.2 --hash=sha256:", fixed = TRUE)
})

# ---- an object that was built elsewhere ----

# An archive as tools/gpu-object.sh makes it, of these files; its SHA-256 beside it.
object_archive <- function(folder, files = list(key = basename(weft:::user_cuda_dir()), weft_cuda.so = "an object")) {
  inside <- withr::local_tempdir()
  for (name in names(files)) writeLines(files[[name]], file.path(inside, name))
  archive <- file.path(folder, "weft-cuda.tar.xz")
  withr::with_dir(inside, utils::tar(archive, names(files), compression = "xz", tar = "internal"))
  writeLines(paste0(weft:::sha256_of(archive), "  weft-cuda.tar.xz"), paste0(archive, ".sha256"))
  archive
}

test_that("an object from a file is installed without a compiler, make, Python or pip", {
  skip_if_not(nzchar(system.file("cuda", "sources.tar.xz", package = "weft")), "no sources in this installation")
  there <- machine()
  file.symlink(Sys.which("sha256sum"), file.path(there, "sha256sum"))
  withr::local_envvar(PATH = there, CUDA_HOME = "", CONDA_PREFIX = "")
  archive <- object_archive(there)
  said <- testthat::capture_messages(object <- weft_install_cuda(from = archive, ask = FALSE))
  expect_identical(readLines(object), "an object")
  expect_match(said, "installed|ready", all = FALSE)
  expect_identical(dirname(dirname(object)), normalizePath(weft:::user_cuda_dir()))
  expect_true(file.exists(file.path(dirname(object), "libraries")))
  sum <- weft:::sha256_of(archive)
  unlink(paste0(archive, ".sha256"))
  expect_error(weft_install_cuda(from = archive), "`sha256` must be given", class = "weft_error_input")
  expect_identical(suppressMessages(weft_install_cuda(from = archive, sha256 = toupper(sum))), object)
  weft_install_cuda(remove = TRUE)
  expect_false(file.exists(object))
})

test_that("an address from which nothing comes is named, with the reason", {
  skip_if_not(nzchar(system.file("cuda", "sources.tar.xz", package = "weft")), "no sources in this installation")
  there <- machine("nvidia-smi" = "exit 9")
  expect_error(suppressMessages(weft_install_cuda(from = "https://127.0.0.1:1/object.tar.xz", ask = FALSE)),
               "127[.]0[.]0[.]1:1/object.tar.xz could not be fetched.*connect", class = "weft_error_input")
  expect_error(suppressMessages(weft_install_cuda(from = "http://127.0.0.1:1/object.tar.xz", ask = FALSE)),
               "must be a folder", class = "weft_error_input")
})

test_that("an archive that was changed, holds something else or is of another version is refused", {
  skip_if_not(nzchar(system.file("cuda", "sources.tar.xz", package = "weft")), "no sources in this installation")
  there <- machine("nvidia-smi" = "exit 9")
  refused <- function(archive, ...) {
    expect_error(suppressMessages(weft_install_cuda(from = archive, ask = FALSE)), ..., class = "weft_error_input")
    expect_false(dir.exists(weft:::user_cuda_dir()))
  }
  key <- basename(weft:::user_cuda_dir())
  archive <- object_archive(there)
  writeLines("0123", paste0(archive, ".sha256"))
  refused(archive, "64 hexadecimal digits")
  writeLines(strrep("0", 64), paste0(archive, ".sha256"))
  refused(archive, "must have the SHA-256")
  refused(object_archive(there, list(key = key)), "archive of `key`")
  refused(object_archive(there, list(key = key, weft_cuda.so = "x", more = "y")), "It contains .*more")
  refused(object_archive(there, list(key = "another", weft_cuda.so = "x")), "Its key is another")
  text <- file.path(there, "text")
  writeLines("no archive", text)
  writeLines(weft:::sha256_of(text), paste0(text, ".sha256"))
  refused(text, "archive of `key`")
  if (!interactive()) {
    expect_error(suppressMessages(weft_install_cuda(from = "https://localhost/none.tar.xz")),
                 "asks before it downloads", class = "weft_error_input")
  }
  file <- object_archive(there)
  there <- machine("nvidia-smi" = c("case \"$*\" in *compute_cap*) echo 9.0 ;; *) echo 550.54 ;; esac"))
  refused(file, "driver must have version 580")
})

test_that("NVIDIA's libraries are found where conda, mlverse's packages and toolkits have them", {
  there <- machine(python3 = "exit 1")
  has <- function(...) {
    folder <- file.path(there, ...)
    dir.create(folder, recursive = TRUE)
    file.create(file.path(folder, "libcublas.so.13"))
    normalizePath(folder)
  }
  conda <- has("conda", "lib")
  toolkit <- has("toolkit", "lib64")
  package <- has("library", "cuda13.0", "lib")
  withr::local_envvar(CONDA_PREFIX = file.path(there, "conda"), CUDA_HOME = file.path(there, "toolkit"))
  withr::local_libpaths(file.path(there, "library"), action = "prefix")
  expect_identical(weft:::library_folders()[1:3], c(conda, package, toolkit))
  wheels <- has("site", "nvidia", "cu13", "lib")
  machine(python3 = sprintf("echo %s", file.path(there, "site")))
  expect_identical(weft:::library_folders()[1], wheels)
})
