# From what users have to what the native code takes. Samples are in rows, features in columns; a SummarizedExperiment
# has them the other way round and is turned.

# Categorical data: list(data, names, n, p) with `data` an integer, logical, double or raw matrix, a list of such
# columns, or a sparse matrix of class dgCMatrix or ngCMatrix. Nothing is copied that is already in order.
categorical_input <- function(x, assay = NULL, arg = "x") {
  x <- take_assay(x, assay, arg)
  if (inherits(x, "DelayedArray")) {
    data <- x # read in blocks of columns by for_blocks()
  } else if (is.data.frame(x)) {
    data <- as.list.data.frame(x)
    others <- which(!vapply(data, is_categorical, NA))
    data[others] <- lapply(others, function(j) categorical_column(data[[j]], names(x)[j], arg))
  } else if (inherits(x, "sparseMatrix")) {
    data <- sparse_columns(x)
  } else if (is.matrix(x) && (is.numeric(x) || is.logical(x) || is.raw(x))) {
    data <- x
  } else if (is.matrix(x) && is.character(x)) {
    data <- lapply(seq_len(ncol(x)), function(j) unclass(factor(x[, j])))
  } else if (inherits(x, "Matrix")) {
    data <- as.matrix(x)
  } else {
    abort_input(
      sprintf("`%s` must be a matrix, data frame, sparse Matrix, SummarizedExperiment or DelayedMatrix.", arg),
      x = paste0("It is ", describe(x), "."),
      i = if (is.atomic(x) && !is.null(x)) sprintf("For one feature, use `data.frame(feature = %s)`.", arg)
    )
  }
  list(data = data, names = feature_names(x), n = nrow(x), p = ncol(x))
}

# What native code takes as it is.
is_categorical <- function(column) {
  if (is.object(column)) is.factor(column) && typeof(column) == "integer" && is.null(dim(column))
  else is.null(dim(column)) && (is.numeric(column) || is.logical(column) || is.raw(column))
}

categorical_column <- function(column, name, arg) {
  if (is.character(column)) return(unclass(factor(column)))
  abort_input(
    sprintf("Every column of `%s` must be a factor, logical, character, integer or whole number.", arg),
    x = sprintf("Column `%s` is %s.", name, describe(column)),
    i = "Leave it out, or turn it into a factor."
  )
}

sparse_columns <- function(x) {
  if (!inherits(x, c("dgCMatrix", "ngCMatrix"))) {
    x <- methods::as(methods::as(x, "generalMatrix"), "CsparseMatrix")
    if (inherits(x, "lMatrix")) x <- methods::as(x, "dMatrix")
  }
  x
}

# What is not a SummarizedExperiment stays as it is. Either way it has been looked at: native code goes where slots and lengths say.
take_assay <- function(x, assay, arg) {
  if (!inherits(x, "SummarizedExperiment")) {
    if (!is.null(assay)) {
      abort_input("`assay` must be NULL unless `x` is a SummarizedExperiment.", x = paste0("`", arg, "` is ", describe(x), "."))
    }
    return(check_container(x, arg))
  }
  need_package("SummarizedExperiment", "A SummarizedExperiment")
  found <- SummarizedExperiment::assayNames(x)
  assay <- assay %||% 1L
  known <- if (is.character(assay)) assay %in% found else assay %in% seq_along(SummarizedExperiment::assays(x))
  if (length(assay) != 1L || !isTRUE(known)) {
    abort_input("`assay` must name one assay of `x`.", x = paste0("It is ", describe(assay), "."),
                i = paste0("There ", if (length(found)) paste("are", label_some(found)) else "are no named assays", "."))
  }
  turn(check_container(SummarizedExperiment::assay(x, assay), arg))
}

# A data frame with columns of one length, a valid Matrix or list of these, or something else, as it is.
check_container <- function(x, arg) {
  if (is.data.frame(x)) {
    check_frame(x, arg)
  } else if (inherits(x, "Matrix")) {
    problem <- matrix_problem(x)
    if (!is.null(problem)) {
      abort_input(sprintf("`%s` must be a valid Matrix.", arg), x = problem, i = "It was changed, or damaged in a file.")
    }
  } else if (is.list(x) && !is.object(x)) {
    for (part in x) if (inherits(part, "Matrix")) check_container(part, arg)
  }
  x
}

check_frame <- function(x, arg) {
  columns <- if (is.list(x)) unclass(x)
  n <- .row_names_info(x, 2L)
  rows <- vapply(columns, NROW, 0)
  if (!is.null(columns) && all(rows == n)) return(invisible())
  abort_input(sprintf("`%s` must be a data frame whose columns have one value a row.", arg),
              x = if (any(rows != n)) sprintf("Column %d has %.0f values for %d rows.", which(rows != n)[1L], rows[rows != n][1L], n))
}

# What is wrong with a Matrix, as a sentence, or NULL. Indices are looked at natively, once.
matrix_problem <- function(x) {
  slots <- tryCatch(methods::getSlots(methods::getClass(class(x))), error = function(e) NULL)
  if (is.null(slots)) return("Its class is unknown.")
  problem <- if (inherits(x, "sparseMatrix")) .Call(C_weft_sparse_problem, x, if ("x" %in% names(slots)) slots[["x"]] else "")
             else NA
  if (is.character(problem)) return(problem)
  if (is.null(problem) && methods::is(x, "generalMatrix")) return(NULL)
  tryCatch({
    methods::validObject(x)
    NULL
  }, error = conditionMessage)
}

# t() of whatever an assay is; the generics live in different packages.
turn <- function(x) {
  if (inherits(x, "DelayedArray")) getExportedValue("BiocGenerics", "t")(x)
  else if (inherits(x, "Matrix")) Matrix::t(x)
  else t(x)
}

feature_names <- function(x) {
  names <- colnames(x)
  if (is.null(names)) sprintf("V%d", seq_len(ncol(x))) else enc2utf8(names)
}

# Calls f(data, columns) for the whole input, or block after block of a DelayedArray's columns; returns the results.
for_blocks <- function(input, f, block_bytes = 2^28) {
  if (!inherits(input$data, "DelayedArray")) return(list(f(input$data, seq_len(input$p))))
  need_package("DelayedArray", "A DelayedMatrix")
  at_once <- max(1L, as.integer(block_bytes / (8 * max(1, input$n))))
  starts <- seq.int(1L, max(1L, input$p), by = at_once)
  lapply(starts, function(first) {
    columns <- seq.int(first, length.out = min(at_once, input$p - first + 1L))
    block <- as.matrix(input$data[, columns, drop = FALSE])
    f(categorical_input(block)$data, columns)
  })
}

# A class: list(codes from 0 with NA, levels). `x` is the original input, in which a single name may be looked up.
class_input <- function(class, x, n, arg = "class") {
  if (inherits(x, "SummarizedExperiment") && is.character(class) && length(class) == 1L && n != 1L) {
    known <- names(SummarizedExperiment::colData(x))
    if (!class %in% known) {
      abort_input(sprintf("`%s` must name a column of `colData(x)`, or have one value a sample.", arg),
                  x = sprintf("There is no \"%s\".", class), i = paste0("There are ", label_some(known), "."))
    }
    class <- SummarizedExperiment::colData(x)[[class]]
  }
  if (is.data.frame(class) && ncol(class) == 1L) class <- class[[1L]]
  categories <- is.atomic(class) && !is.null(class) && is.null(dim(class)) && !is.raw(class) && !is.complex(class)
  if (!categories && !is.factor(class)) {
    abort_input(sprintf("`%s` must be a factor or a vector of categories, one value a row of `x`.", arg),
                x = paste0("It is ", describe(class), "."))
  }
  if (length(class) != n) {
    abort_input(
      sprintf("`%s` must have one value a row of `x`: %d.", arg, n), x = sprintf("It has %d.", length(class)),
      i = if (length(class) == ncol(x)) "`x` has as many columns: are the samples in its columns? Then use `t(x)`."
    )
  }
  if (is.double(class) && !is.object(class) && any(class != round(class) | is.infinite(class), na.rm = TRUE)) {
    abort_input(sprintf("`%s` must hold categories.", arg), x = "It has numbers with a fraction.",
                i = "Turn it into a factor, for example with `cut()`.")
  }
  class <- droplevels(as.factor(class))
  if (nlevels(class) > 65535L) {
    abort_input(sprintf("`%s` must have at most 65535 levels.", arg), x = sprintf("It has %d.", nlevels(class)))
  }
  list(codes = as.integer(class) - 1L, levels = levels(class))
}
