# What users hand over is taken apart here, and nowhere else. container_source() has one method per container, and every
# system reads the record that as_source() gives: list(kind, data, experiment).
#   kind "matrix"    a base matrix of any type
#        "frame"     a data frame whose columns have one value per row
#        "sparse"    a valid sparse Matrix of any class
#        "delayed"   a DelayedArray, to be read in blocks or brought into memory
#        "blocks"    a list of valid sparse Matrices, blocks of rows
#        "file", "resident", "graph", "genotypes"   what weft_file(), weft_upload(), igraph and plink_file() make
#        "store"     a weft_store(), for systems that read it in blocks (`stored`); for others it is brought into memory
#        "other"     anything else, as it is: the system says what it takes
#   experiment       the container had samples in its columns and has been transposed: `data` has them in its rows
# A new container is one method here that ends in one of these kinds; those with tables of samples and genes are in the
# file R/source-containers.R.

as_source <- function(x, assay = NULL, arg = "x", stored = FALSE) {
  source <- container_source(x, assay, arg)
  if (source$kind == "store" && !stored) {
    source <- new_source("sparse", memory_errors(store_sparse(source$data)), source$experiment)
  }
  if (!is.null(assay) && !source$experiment) {
    abort_input("`assay` must only be given if `x` is a container with assays.",
                x = paste0("`", arg, "` is ", describe(x), "."))
  }
  source
}

new_source <- function(kind, data, experiment = FALSE) list(kind = kind, data = data, experiment = experiment)

container_source <- function(x, assay, arg) UseMethod("container_source")

#' @exportS3Method
container_source.default <- function(x, assay, arg) {
  if (!is.matrix(x)) return(new_source("other", x))
  check_names(dimnames(x), arg)
  new_source("matrix", x)
}

#' @exportS3Method
container_source.data.frame <- function(x, assay, arg) {
  for (column in check_frame(x, arg)) {
    if (inherits(x[[column]], "integer64")) x[[column]] <- numbers_of_64_bits(x[[column]], arg)
  }
  check_names(list(NULL, names(x)), arg)
  new_source("frame", x)
}

#' @exportS3Method
container_source.integer64 <- function(x, assay, arg) as_source(numbers_of_64_bits(x, arg), NULL, arg)

# Numbers in a form that R and native code read as what they are: those of class integer64 as doubles.
readable_numbers <- function(x, arg) if (inherits(x, "integer64")) numbers_of_64_bits(x, arg) else x

# bit64 keeps whole numbers in the bits of doubles, where R and native code would read other numbers.
numbers_of_64_bits <- function(x, arg) {
  need_package("bit64", "Reading numbers of class integer64")
  array_of <- dim(x)
  numbers <- suppressWarnings(as.double(x)) # which says that it rounds
  far <- sum(abs(numbers) > 2^53, na.rm = TRUE)
  if (far) abort_input(sprintf("`%s` must contain 64-bit integers between -2^53 and 2^53.", arg),
                       x = sprintf("%d %s outside this range.", far, if (far == 1) "is" else "are"),
                       i = "`as.double()` rounds them; `factor()` converts them to categories.")
  dim(numbers) <- array_of
  numbers
}

#' @exportS3Method
container_source.Matrix <- function(x, assay, arg) {
  check_matrix(x, arg)
  check_names(dimnames(x), arg)
  if (inherits(x, "sparseMatrix")) new_source("sparse", x) else new_source("matrix", as.matrix(x))
}

#' @exportS3Method
container_source.list <- function(x, assay, arg) {
  for (part in x) if (inherits(part, "Matrix")) check_names(dimnames(check_matrix(part, arg)), arg)
  new_source(if (length(x) && all(vapply(x, inherits, NA, "sparseMatrix"))) "blocks" else "other", x)
}

#' @exportS3Method
container_source.DelayedArray <- function(x, assay, arg) {
  need_package("DelayedArray", "A DelayedMatrix")
  seed <- x@seed
  if (inherits(seed, "weft_store")) return(container_source(seed, assay, arg))
  check_names(dimnames(x), arg)
  new_source("delayed", x)
}

#' @exportS3Method
container_source.DataFrame <- function(x, assay, arg) {
  need_package("S4Vectors", "A DataFrame")
  frame <- tryCatch(as.data.frame(x, optional = TRUE), error = function(e) {
    abort_input(sprintf("`%s` must be a valid DataFrame.", arg), x = conditionMessage(e),
                i = "It was modified, or its file is damaged.")
  })
  as_source(frame, NULL, arg)
}

#' @exportS3Method
container_source.weft_file <- function(x, assay, arg) new_source("file", x)

#' @exportS3Method
container_source.weft_store <- function(x, assay, arg) {
  whole_store(x)
  new_source("store", x)
}

#' @exportS3Method
container_source.weft_plink <- function(x, assay, arg) {
  whole_plink(x)
  new_source("genotypes", x)
}

#' @exportS3Method
container_source.weft_device_matrix <- function(x, assay, arg) new_source("resident", x)

#' @exportS3Method
container_source.igraph <- function(x, assay, arg) new_source("graph", x)

# The whole as a base matrix, where it is one, sparse, delayed or genotypes; else NULL.
source_matrix <- function(source) {
  if (source$kind == "sparse") check_dense_fits(source$data)
  switch(source$kind, matrix = source$data, sparse = , delayed = , genotypes = as.matrix(source$data))
}

# Before something sparse becomes dense.
check_dense_fits <- function(x) {
  bytes <- 8 * prod(as.double(dim(x)))
  free <- host_free()
  if (free <= 0 || bytes <= 0.8 * free) return(invisible())
  weft_abort("memory", "The sparse matrix must fit into memory as a dense matrix.",
             x = sprintf("It needs %.1f GB, but only %.1f GB are available.", bytes / 1e9, free / 1e9),
             i = "Use a subset such as `x[1:1000, ]`, or the components from `pca()`.")
}

# Names that are missing find nothing, and containers of other packages do not take them.
check_names <- function(names, arg, sides = c("row", "column")) {
  for (side in seq_along(names)) {
    missing <- which(is.na(names[[side]]))
    if (length(missing)) {
      abort_input(sprintf("The names of `%s` must not be missing.", arg),
                  x = sprintf("The name of %s %.0f is missing.", sides[side], missing[1L]),
                  i = "Set this name, or remove all names of this dimension.")
    }
  }
}

# What reads results refuses text in no encoding, as a damaged file may have it.
check_encoding <- function(names, arg) {
  names <- as.character(names) # also of NULL
  bad <- which(!validEnc(names) | Encoding(names) == "bytes")
  if (length(bad)) {
    abort_input(sprintf("The names of `%s` must be text in a known encoding.", arg),
                x = sprintf("%s is not valid.", describe(names[bad[1L]])),
                i = "Convert them, for example with `iconv(names, \"latin1\", \"UTF-8\")`.")
  }
}

# Native code goes where slots and lengths say.
check_matrix <- function(x, arg) {
  problem <- matrix_problem(x)
  if (!is.null(problem)) {
    abort_input(sprintf("`%s` must be a valid Matrix.", arg), x = problem,
                i = "It was modified, or its file is damaged.")
  }
  x
}

# Returns the numbers of columns that have attributes.
check_frame <- function(x, arg) {
  columns <- if (typeof(x) == "list") unclass(x)
  n <- .row_names_info(x, 2L)
  rows <- as.double(lengths(columns, use.names = FALSE))
  boxed <- which(!.Call(C_weft_plain_columns, columns))
  rows[boxed] <- vapply(columns[boxed], NROW, 0)
  if (!is.null(columns) && all(rows == n)) return(invisible(boxed))
  wrong <- which(rows != n)[1L]
  abort_input(sprintf("`%s` must be a data frame whose columns have one value per row.", arg),
              x = if (!is.na(wrong)) sprintf("Column %d has %.0f values for %d rows.", wrong, rows[wrong], n))
}

# What is wrong with a Matrix, as a sentence, or NULL. Indices are looked at natively, once.
matrix_problem <- function(x) {
  slots <- tryCatch(methods::getSlots(methods::getClass(class(x))), error = function(e) NULL)
  if (is.null(slots)) return("Its class is unknown.")
  numbers <- if ("x" %in% names(slots)) slots[["x"]] else ""
  problem <- if (inherits(x, "sparseMatrix")) .Call(C_weft_sparse_problem, x, numbers) else NA
  if (is.character(problem)) return(problem)
  if (is.null(problem) && methods::is(x, "generalMatrix")) return(NULL)
  tryCatch({
    methods::validObject(x)
    NULL
  }, error = conditionMessage)
}

# t() of whatever an assay is; the generics live in different packages.
turn <- function(x) {
  if (inherits(x, "DelayedArray")) BiocGenerics::t(x)
  else if (inherits(x, "Matrix")) Matrix::t(x)
  else t(x)
}
