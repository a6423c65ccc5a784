# A store as the seed of a DelayedArray, so that Bioconductor's containers and tools read one:
# SummarizedExperiment(list(counts = t(DelayedArray(store)))). The methods are made when DelayedArray is loaded, which
# weft does not need for itself.

.onLoad <- function(libname, pkgname) {
  if (isNamespaceLoaded("DelayedArray")) make_seed_methods()
  else setHook(packageEvent("DelayedArray", "onLoad"), function(...) make_seed_methods())
}

# They live in an environment of their own: the package's is locked by then. extract_array() has moved between packages.
make_seed_methods <- function() {
  home <- function(generic) {
    for (package in c("S4Arrays", "DelayedArray")) {
      if (isNamespaceLoaded(package) && exists(generic, asNamespace(package), inherits = FALSE)) return(package)
    }
  }
  where <- new.env(parent = topenv())
  add <- function(generic, method) {
    package <- home(generic)
    if (!is.null(package)) {
      methods::setMethod(methods::getGeneric(generic, package = package), "weft_store", method, where = where)
    }
  }
  add("extract_array", function(x, index) unname(as.matrix(seed_part(x, index))))
  if (exists("SparseArraySeed", asNamespace("DelayedArray"), inherits = FALSE)) {
    add("is_sparse", function(x) TRUE)
    add("extract_sparse_array", function(x, index) {
      part <- seed_part(x, index)
      at <- cbind(part@i, rep.int(seq_len(ncol(part)), diff(part@p)) - 1L) + 1L
      getExportedValue("DelayedArray", "SparseArraySeed")(dim(part), nzindex = at, nzdata = part@x)
    })
  }
}

# An index has a vector of places for each side, or NULL for all.
seed_part <- function(x, index) {
  at <- lapply(index, function(i) if (!is.null(i)) as.double(i))
  memory_errors(store_sparse(x, at[[1L]], at[[2L]]))
}
