# weft's own object goes to libs/, where R CMD check looks at symbols and registration; the CUDA and MPI objects are no
# R libraries and go to libs/cuda/ and libs/mpi/. weft-build.dcf keeps what configure found, for weft_sitrep().
libs <- file.path(R_PACKAGE_DIR, paste0("libs", R_ARCH))
dir.create(libs, recursive = TRUE, showWarnings = FALSE)
put <- function(file, dir) {
  if (!file.exists(file)) return(invisible())
  dir.create(dir, recursive = TRUE, showWarnings = FALSE)
  if (!file.copy(file, dir, overwrite = TRUE)) stop("cannot copy ", file, " to ", dir)
}
put(paste0("weft", SHLIB_EXT), libs)
# Debugging symbols are four fifths of the object, names of local functions a thirtieth of the rest. WEFT_DEBUG=1 keeps
# both, WEFT_TESTS=yes the names, by which instructions are counted (proofs/instructions.R).
if (nzchar(Sys.which("strip")) && !nzchar(Sys.getenv("WEFT_DEBUG")) && .Platform$OS.type == "unix") {
  names <- if (Sys.getenv("WEFT_TESTS") != "yes") "-x"
  system2("strip", c("-S", names, shQuote(file.path(libs, paste0("weft", SHLIB_EXT)))), stdout = FALSE, stderr = FALSE)
}
put("weft_cuda.so", file.path(libs, "cuda"))
put("weft_mpi.so", file.path(libs, "mpi"))
put("weft-build.dcf", libs)
put("symbols.rds", libs)

# What weft_install_cuda() builds the CUDA object from: configure, and the files on which the object's parts depend
# according to Makevars. An object of other sources is told by the key.
if (.Platform$OS.type == "unix") {
  there <- file.path(R_PACKAGE_DIR, "cuda")
  dir.create(there, showWarnings = FALSE)
  rules <- strsplit(gsub("\\\n", " ", paste(readLines("Makevars"), collapse = "\n"), fixed = TRUE), "\n")[[1L]]
  lists <- grep("^CUDA_OBJECTS *=", rules, value = TRUE)
  objects <- grep("[.]o$", unlist(strsplit(lists, " +")), value = TRUE)
  needed <- unlist(strsplit(sub("^[^:]*: *", "", rules[sub(":.*", "", rules) %in% objects]), " +"))
  sources <- sort(unique(c("configure", file.path("src", c("Makevars.in", "objects.sh", needed)))), method = "radix")
  old <- setwd("..")
  sums <- tempfile()
  writeLines(paste(sources, tools::md5sum(sources)), sums)
  writeLines(unname(tools::md5sum(sums)), file.path(there, "key"))
  utils::tar(file.path(there, "sources.tar.xz"), sources, compression = "xz", compression_level = 9, tar = "internal")
  setwd(old)
}
