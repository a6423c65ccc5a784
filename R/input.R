# Converts what users have into what native code takes. Samples are in rows, features in columns; a SummarizedExperiment
# has them the other way round and is transposed.

# Categorical data: list(data, names, n, p) with `data` an integer, logical, double or raw matrix, a list of such
# columns, a sparse matrix of class dgCMatrix or ngCMatrix, or genotype_columns(). Nothing is copied that is already in
# order.
categorical_input <- function(x, assay = NULL, arg = "x") {
  source <- as_source(x, assay, arg)
  x <- source$data
  data <- switch(source$kind,
    delayed = x, # read in blocks of columns by for_blocks()
    frame = categorical_columns(x, arg), sparse = sparse_columns(x), genotypes = genotype_columns(x),
    matrix = if (is.character(x)) lapply(seq_len(ncol(x)), function(j) unclass(factor(sortable_text(x[, j]))))
             else if (is.numeric(x) || is.logical(x) || is.raw(x)) x
  )
  if (is.null(data)) {
    abort_input(
      sprintf("`%s` must be a matrix, data frame, sparse Matrix, SummarizedExperiment, DelayedMatrix or plink_file().",
              arg),
      x = paste0("It is ", describe(x), "."),
      i = if (is.atomic(x) && !is.null(x)) sprintf("For one feature, use `data.frame(feature = %s)`.", arg)
    )
  }
  list(data = data, names = feature_names(x), n = nrow(x), p = ncol(x))
}

# A delayed input in memory, as any other is.
whole_input <- function(input) if (is_delayed(input)) categorical_input(as.matrix(input$data)) else input

is_delayed <- function(input) inherits(input$data, "DelayedArray")

categorical_columns <- function(x, arg) {
  data <- as.list.data.frame(x)
  others <- which(!.Call(C_weft_plain_columns, data))
  data[others] <- lapply(others, function(j) categorical_column(data[[j]], names(x)[j], arg))
  data
}

categorical_column <- function(column, name, arg) {
  if (is.character(column)) return(unclass(factor(sortable_text(column))))
  abort_input(
    sprintf("Every column of `%s` must be a factor, logical, character, integer or whole number.", arg),
    x = sprintf("Column `%s` is %s.", name, describe(column)),
    i = "Remove it, or convert it into a factor."
  )
}

sparse_columns <- function(x) {
  if (!inherits(x, c("dgCMatrix", "ngCMatrix"))) {
    x <- methods::as(methods::as(x, "generalMatrix"), "CsparseMatrix")
    if (inherits(x, "lMatrix")) x <- methods::as(x, "dMatrix")
  }
  x
}

feature_names <- function(x) {
  names <- if (inherits(x, "weft_plink")) x$variants$variant else colnames(x) # colnames() labels the samples, too
  if (is.null(names)) sprintf("V%d", seq_len(ncol(x))) else enc2utf8(names)
}

# Calls f(data, columns) for the whole input, or block after block of a DelayedArray's columns; returns the results.
for_blocks <- function(input, f, block_bytes = 2^28) {
  if (!is_delayed(input)) return(list(f(input$data, seq_len(input$p))))
  at_once <- max(1L, as.integer(block_bytes / (8 * max(1, input$n))))
  starts <- seq.int(1L, max(1L, input$p), by = at_once)
  lapply(starts, function(first) {
    columns <- seq.int(first, length.out = min(at_once, input$p - first + 1L))
    block <- as.matrix(input$data[, columns, drop = FALSE])
    f(categorical_input(block)$data, columns)
  })
}

# Values of a class of their own as categories: its methods turn them into text, and may fail.
factor_of <- function(class, arg) {
  refuse <- function(e) {
    abort_input(sprintf("`%s` must be a factor or a vector of categories, one value per row of `x`.", arg),
                x = sprintf("It is %s, which cannot be converted to text.", describe(class)),
                i = "Use `factor()` or `unclass()`.")
  }
  tryCatch(as.factor(class), error = refuse, warning = refuse)
}

# A class: list(codes from 0 with NA, levels). `x` is the original input, in which a single name may be looked up.
class_input <- function(class, x, n, arg = "class") {
  if (is_experiment(x) && is.character(class) && length(class) == 1L && n != 1L) {
    samples <- container_samples(x)
    known <- names(samples)
    if (!class %in% known) {
      abort_input(sprintf("`%s` must be the name of a column in `%s`, or have one value per sample.", arg,
                          container_samples_name(x)),
                  x = sprintf("There is no \"%s\".", class), i = paste0("Available: ", label_some(known), "."))
    }
    class <- samples[[class]]
  }
  if (is.data.frame(class) && ncol(class) == 1L) class <- class[[1L]]
  categories <- is.atomic(class) && !is.null(class) && is.null(dim(class)) && !is.raw(class) && !is.complex(class)
  if (!categories && !is.factor(class)) {
    abort_input(sprintf("`%s` must be a factor or a vector of categories, one value per row of `x`.", arg),
                x = paste0("It is ", describe(class), "."))
  }
  check_factor(class, sprintf("`%s`", arg))
  if (length(class) != n) {
    abort_input(
      sprintf("`%s` must have one value per row of `x` (%d).", arg, n), x = sprintf("It has %d.", length(class)),
      i = if (identical(length(class), ncol(x))) # a list of blocks has none
            "`x` has this number of columns. If they are the samples, use `t(x)`."
    )
  }
  if (is.double(class) && !is.object(class) && any(class != round(class) | is.infinite(class), na.rm = TRUE)) {
    abort_input(sprintf("`%s` must contain categories.", arg), x = "It contains fractional numbers.",
                i = "Convert it into a factor, for example with `cut()`.")
  }
  class <- if (is.object(class) && !is.factor(class)) factor_of(class, arg) else as.factor(sortable_text(class))
  if (!all(tabulate(class, nlevels(class)) > 0L)) class <- droplevels(class)
  if (nlevels(class) > 65535L) {
    abort_input(sprintf("`%s` must have at most 65535 levels.", arg), x = sprintf("It has %d.", nlevels(class)))
  }
  list(codes = as.integer(class) - 1L, levels = levels(class))
}
