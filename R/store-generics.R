# Methods of a store for generics of other packages: Matrix's sums and conversion, and the methods that make a store the
# seed of a DelayedArray, so that Bioconductor's containers and tools can read it:
# SummarizedExperiment(list(counts = t(DelayedArray(store)))). weft does not need these packages. The methods are made
# when the packages are loaded, in an environment of their own, because weft's namespace is locked by then.

.onLoad <- function(libname, pkgname) {
  when_loaded("Matrix", make_matrix_methods)
  when_loaded("DelayedArray", make_seed_methods)
}

when_loaded <- function(package, make) {
  if (isNamespaceLoaded(package)) make() else setHook(packageEvent(package, "onLoad"), function(...) make())
}

make_matrix_methods <- function() {
  where <- new.env(parent = topenv())
  add <- function(generic, side, mean) {
    method <- function(x, na.rm = FALSE, dims = 1, ...) store_side(x, side, na.rm, mean)
    methods::setMethod(get(generic, asNamespace("Matrix")), "weft_store", method, where = where)
  }
  add("colSums", "columns", FALSE)
  add("rowSums", "rows", FALSE)
  add("colMeans", "columns", TRUE)
  add("rowMeans", "rows", TRUE)
  methods::setAs("weft_store", "dgCMatrix", function(from) store_sparse(from), where = where)
}

# extract_array() has moved between packages.
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
      DelayedArray::SparseArraySeed(dim(part), nzindex = at, nzdata = part@x)
    })
  }
}

# An index has a vector of places for each side, or NULL for all.
seed_part <- function(x, index) {
  at <- lapply(index, function(i) if (!is.null(i)) as.double(i))
  memory_errors(store_sparse(x, at[[1L]], at[[2L]]))
}
