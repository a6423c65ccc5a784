# Which devices configure builds for: with a compiler and a driver's tool that only say what real ones would.

root <- test_path("..", "..")

configured <- function(capabilities, arch = NULL, flags = NULL, cuda = "yes") {
  skip_on_os("windows")
  skip_if_not(file.exists(file.path(root, "_pkgdown.yml")), "a built package has no folder to configure")
  there <- withr::local_tempdir()
  file.copy(file.path(root, "configure"), there)
  dir.create(file.path(there, "src"))
  file.copy(file.path(root, "src", c("Makevars.in", "objects.sh")), file.path(there, "src"))
  script <- function(name, ...) {
    writeLines(c("#!/bin/sh", ...), file.path(there, name))
    Sys.chmod(file.path(there, name), "755")
  }
  script("nvcc", "case \"$*\" in *--list-gpu-code*) echo sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 ;; esac")
  script("nvidia-smi", sprintf("echo '%s'", capabilities), if (!any(grepl("^[0-9]", capabilities))) "exit 9")
  withr::local_envvar(PATH = paste(normalizePath(there), Sys.getenv("PATH"), sep = ":"),
                      NVCC = file.path(normalizePath(there), "nvcc"), WEFT_CUDA = cuda, WEFT_CUDA_ARCH = arch %||% NA,
                      WEFT_MPI = "no", WEFT_OPENMP = "no", WEFT_TESTS = "no", MAKEFLAGS = flags %||% NA,
                      R_HOME = R.home())
  withr::local_dir(there)
  suppressWarnings(system2("sh", "configure", stdout = TRUE, stderr = TRUE))
}

cuda_lines <- function(...) {
  said <- configured(...)
  c(sub(".*, for (.*)\\)$", "\\1", grep("^weft: CUDA: yes", said, value = TRUE)),
    grep("takes about", said, value = TRUE))
}

test_that("CUDA is built for the devices of the machine, for all without one, and as told", {
  all <- "75,80,86,89,90,100"
  expect_identical(cuda_lines("9.0")[1L], "90")
  expect_identical(cuda_lines(c("9.0", "8.6", "9.0"))[1L], "86,90")
  expect_identical(cuda_lines("10.0")[1L], "100")
  expect_identical(cuda_lines("12.0")[1L], all) # newer than the compiler
  expect_identical(cuda_lines("6.1")[1L], all)  # older than what weft takes
  expect_identical(cuda_lines("NVIDIA-SMI has failed")[1L], all)
  expect_identical(cuda_lines("9.0", "all")[1L], all)
  expect_identical(cuda_lines("9.0", "80 86")[1L], "80,86")
})

test_that("a line says how long CUDA takes and how to leave it out", {
  serial <- cuda_lines("no device")[2L]
  expect_match(serial, "about 14 min .*WEFT_CUDA_ARCH=100 for one kind of device, WEFT_CUDA=no leaves it out")
  expect_match(cuda_lines("9.0", flags = "-j1")[2L], "about 4 min (WEFT_CUDA=no leaves it out)", fixed = TRUE)
})

test_that("without a device CUDA is built where it is asked for", {
  skip_if(any(file.exists("/dev/nvidia0", "/dev/dxg")), "this machine has a device")
  said <- function(...) grep("^weft: CUDA:", configured("no device", ...), value = TRUE)
  expect_match(said(cuda = "auto"), "no (no device here; WEFT_CUDA=yes", fixed = TRUE)
  expect_match(said(cuda = "auto", arch = "90"), "yes .*for 90")
  expect_match(said(cuda = "yes"), "yes .*for 75")
})
