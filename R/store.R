#' A store: a sparse matrix in one file
#'
#' A store makes data larger than memory available to weft. `weft_store(path)` opens a store, a file written by
#' [weft_import()], and returns an object that can be used like a matrix. It contains samples (cells) in rows and
#' features in columns, compressed in blocks of rows, with names and tables. Opening a store reads only the index of the
#' file, and functions read blocks when they need them. A store may therefore be many times larger than memory, and
#' contain more than 2^31 values.
#'
#' `x[i, j]` returns rows and columns as a dgCMatrix; `as.matrix()` and `as(x, "dgCMatrix")` return the whole matrix.
#' `summary()` and, with the package Matrix attached, `colSums()`, `rowSums()`, `colMeans()` and `rowMeans()` read one
#' block after another. [pca()], its `predict()` and [gene_cells()] accept a store of any size; every other function for
#' sparse matrices accepts a store that fits in memory. [store_normalise()] divides counts, takes logarithms and selects
#' features while values are read. `DelayedArray::DelayedArray(x)` makes a DelayedMatrix from a store; its transpose,
#' `t()`, can be an assay of a SummarizedExperiment or SingleCellExperiment.
#'
#' @section The file: Small whole numbers and the positions of values are stored in groups of 128, with as many bits per
#'   number as the largest of the group needs. Other numbers take 32 bits if this is exact, otherwise 64. Values are
#'   read exactly as they were written, bit for bit, except that explicit zeros are dropped. Every block has a checksum.
#'   If a block is damaged, reading stops with an error that names its rows, and the other blocks can still be read. No
#'   code in the file is evaluated. `system.file("store-format.md", package = "weft")` describes every byte.
#'
#' @param path a file written by [weft_import()].
#' @param x,object a store.
#' @param i,j rows and columns: numbers, names or logical values; by default all.
#' @param drop whether a single row or column becomes a vector.
#' @param side whether to return the table of the `"rows"` (samples) or of the `"columns"` (features).
#' @param ... not used.
#' @return `weft_store()`: an object of class `weft_store` with `dim` and `dimnames`. It contains the path of the file,
#'   not its content. It can be saved and opens the file again in another session, unless the file has changed.
#'   `store_data()`: a data frame with one row per sample or feature, like `obs` and `var` of an AnnData file. It has no
#'   columns if the file had no table.
#' @seealso [weft_import()], [store_normalise()], [weft_upload()] to keep a store on devices
#' @export
#' @examples
#' counts <- Matrix::rsparsematrix(100, 20, 0.1, rand.x = function(n) rpois(n, 2) + 1)
#' x <- weft_import(counts, tempfile(fileext = ".weft"))
#' x
#' summary(x)
#' x[1:3, 1:5]
#' identical(Matrix::colSums(x), Matrix::colSums(counts))
#' pca(x, k = 2)
weft_store <- function(path) {
  need_args("path")
  path <- bare_text(path)
  if (!is_word(path)) abort_input("`path` must be the name of a file.", x = paste0("It is ", describe(path), "."))
  path <- normalizePath(path, mustWork = FALSE)
  pointer <- .Call(C_weft_store_open, path, run_control())
  about <- .Call(C_weft_store_about, pointer)
  live <- new.env(parent = emptyenv())
  live$pointer <- pointer
  live$about <- about
  new_result(class = "weft_store", list(path = path, n = about$n, p = about$p, values = about$values, crc = about$crc,
                                        recipe = no_recipe, live = live))
}

# size: what each row's values are divided by; log1p: whether log(1 + v) follows; columns: places (rising) of those that
# are left, or NULL, and `share` of all values that lie in them; what: in words.
no_recipe <- list(size = NULL, log1p = FALSE, columns = NULL, share = 1, what = NULL)

# As weft_store() made it: what other functions read goes where this says.
whole_store <- function(x) {
  check_format(x, "x")
  parts <- if (is.list(x)) unclass(x)
  recipe <- parts$recipe
  fine <- is_word(parts$path) && is_numbers(parts$n, 1L, min = 0, whole = TRUE) &&
    is_numbers(parts$p, 1L, min = 0, whole = TRUE) && is_numbers(parts$crc, 1L) && is.environment(parts$live) &&
    is_numbers(parts$values, 1L, min = 0) && is.list(recipe) && is_flag(recipe$log1p) &&
    sound_sizes(recipe$size, parts) && is_numbers(recipe$share, 1L, min = 0, max = 1) &&
    (is.null(recipe$columns) || is.double(recipe$columns) && length(recipe$columns) > 0L &&
       is_numbers(recipe$columns, length(recipe$columns), min = 1, max = parts$p, whole = TRUE) &&
       !is.unsorted(recipe$columns, strictly = TRUE)) && (is.null(recipe$what) || is_word(recipe$what))
  if (!isTRUE(fine)) {
    abort_input("The store must not have changed since `weft_store()` opened it.",
                i = "Open it again with `weft_store()`.")
  }
  parts
}

# A positive number for each row, or NULL. A store on devices remembers the last that were: looking at millions takes a
# tenth of a second, several times in a call.
sound_sizes <- function(size, parts) {
  if (is.null(size)) return(TRUE)
  if (!is.double(size) || length(size) != parts$n) return(FALSE)
  if (!is.null(parts$resident) && identical(parts$live$sound, size)) return(TRUE)
  fine <- is_numbers(size, parts$n, min = 0) && all(size > 0)
  if (fine && !is.null(parts$resident)) parts$live$sound <- size
  fine
}

# list(pointer, about): the open file, which is opened again in another session.
open_store <- function(x) {
  parts <- whole_store(x)
  live <- parts$live
  about <- if (typeof(live$pointer) == "externalptr") .Call(C_weft_store_about, live$pointer)
  if (is.null(about)) {
    live$names <- NULL
    live$pointer <- .Call(C_weft_store_open, parts$path, run_control())
    about <- .Call(C_weft_store_about, live$pointer)
  }
  if (!identical(c(about$n, about$p, about$crc, about$values), c(parts$n, parts$p, parts$crc, parts$values))) {
    abort_input("The store file must not have changed since it was opened.",
                x = sprintf("'%s' has changed.", basename(parts$path)),
                i = "Open it again with `weft_store()`.")
  }
  list(pointer = live$pointer, about = about, recipe = parts$recipe[c("size", "log1p")])
}

# A vector beside the matrix, or NULL. Names are checked: they come from a file.
store_vector <- function(x, name, length = NULL, type = NULL) {
  file <- open_store(x)
  at <- match(name, file$about$vectors)
  if (is.na(at)) return(NULL)
  if (!is.null(length) && file$about$lengths[at] != length || !is.null(type) && file$about$types[at] != type) {
    abort_input(sprintf("'%s' must have %s of %.0f.", basename(unclass(x)$path), name, length),
                x = sprintf("It has %.0f, %s.", file$about$lengths[at], file$about$types[at]),
                i = "The file is damaged. Import the data again.")
  }
  out <- memory_errors(.Call(C_weft_store_vector, file$pointer, as.double(at), run_control()))
  if (is.character(out) && !all(validUTF8(out[!is.na(out)]))) {
    abort_input(sprintf("'%s' must have names in UTF-8.", basename(unclass(x)$path)), x = "Some names are not valid.",
                i = "The file is damaged. Import the data again.")
  }
  out
}

#' @export
dim.weft_store <- function(x) {
  parts <- whole_store(x)
  as.integer(c(parts$n, if (is.null(parts$recipe$columns)) parts$p else length(parts$recipe$columns)))
}

#' @export
dimnames.weft_store <- function(x) {
  parts <- whole_store(x)
  live <- parts$live
  if (is.null(live$names)) {
    names <- list(store_vector(x, "row names", parts$n, "text"), store_vector(x, "column names", parts$p, "text"))
    live$names <- list(if (!all(vapply(names, is.null, NA))) names)
  }
  names <- live$names[[1L]]
  if (!is.null(names)) names[2L] <- list(chosen_names(names[[2L]], parts$recipe$columns))
  names
}

# ---- any rows and columns ----

#' @rdname weft_store
#' @export
`[.weft_store` <- function(x, i, j, ..., drop = FALSE) {
  if (nargs() - (!missing(drop)) != 3L) {
    abort_input("A store must be indexed by rows and columns.",
                i = "For example `x[1:10, ]`; `x[, ]` is the whole matrix.")
  }
  d <- dim(x)
  names <- dimnames(x)
  rows <- if (!missing(i)) store_places(i, d[1L], names[[1L]], "i")
  columns <- if (!missing(j)) store_places(j, d[2L], names[[2L]], "j")
  out <- store_sparse(x, rows, columns)
  if (check_flag(drop, "drop") && any(dim(out) == 1L)) out[, , drop = TRUE] else out
}

# Places from 1 of what an index says.
store_places <- function(index, count, names, arg) {
  wrong <- function(what) {
    abort_input(sprintf("`%s` must contain valid names, or indices up to %d.", arg, count), x = what)
  }
  if (is.factor(index) || is.object(index)) wrong(paste0("It is ", describe(index), "."))
  if (is.character(index)) {
    at <- match(index, names)
    if (anyNA(at)) wrong(sprintf("There is no %s.", label_some(unique(index[is.na(at)]))))
    return(as.double(at))
  }
  if (is.logical(index) && length(index) == count && !anyNA(index)) return(as.double(which(index)))
  if (!is.numeric(index) || anyNA(index) || any(index != trunc(index)) || any(abs(index) > count)) {
    wrong(if (is.numeric(index) && !anyNA(index)) "Some are not whole numbers in this range."
          else paste0("It is ", describe(index), "."))
  }
  if (any(index < 0) && any(index > 0)) wrong("Some are negative and some are positive.")
  if (any(index < 0)) as.double(setdiff(seq_len(count), -index)) else as.double(index[index > 0])
}

# Rows and columns (places from 1, in any order; NULL: all) as a dgCMatrix.
store_sparse <- function(x, rows = NULL, columns = NULL) {
  need_package("Matrix", "A dgCMatrix")
  file <- open_store(x)
  names <- dimnames(x)
  at <- lapply(list(rows, columns), function(i) if (!is.null(i)) sort(unique(i)))
  kept <- unclass(x)$recipe$columns
  free <- host_free()
  most <- min(.Machine$integer.max, if (free > 0) floor(0.8 * free / 12) else Inf)
  slots <- memory_errors(.Call(C_weft_store_select, file$pointer, zero_based(at[[1L]]),
                               zero_based(chosen_names(kept, at[[2L]]) %||% at[[2L]]), file$recipe, most,
                               NULL, run_control(task = "Reading")))
  size <- as.integer(c(if (is.null(rows)) file$about$n else length(at[[1L]]),
                       if (is.null(columns)) dim(x)[2L] else length(at[[2L]])))
  out <- methods::new("dgCMatrix", p = slots$p, i = slots$i, x = slots$x, Dim = size)
  if (!is.null(rows) && !identical(rows, at[[1L]])) out <- out[match(rows, at[[1L]]), , drop = FALSE]
  if (!is.null(columns) && !identical(columns, at[[2L]])) out <- out[, match(columns, at[[2L]]), drop = FALSE]
  out@Dimnames <- list(chosen_names(names[[1L]], rows), chosen_names(names[[2L]], columns))
  out
}

zero_based <- function(at) if (!is.null(at)) at - 1

# Those at places `at`, or all.
chosen_names <- function(names, at) if (is.null(at)) names else names[at]

#' @export
as.matrix.weft_store <- function(x, ...) {
  check_dense_fits(x)
  memory_errors(as.matrix(store_sparse(x)))
}

# ---- sums ----

store_sums <- function(x, skip_missing = FALSE) {
  if (sums_on_devices(x)) return(kept_sums(x))
  file_sums(x, skip_missing)
}

file_sums <- function(x, skip_missing = FALSE) {
  file <- open_store(x)
  memory_errors(.Call(C_weft_store_sums, file$pointer, zero_based(unclass(x)$recipe$columns), file$recipe,
                      check_flag(skip_missing, "na.rm"), run_control(task = "Adding up")))
}

methods::setOldClass(c("weft_resident_store", "weft_store"))

# Sums or means of one side ("rows" or "columns"), under its names.
store_side <- function(x, side, na.rm, mean = FALSE) {
  k <- match(side, c("rows", "columns"))
  counts <- c("row_counts", "column_counts")[k]
  found <- store_sums(x, na.rm)
  out <- found[[side]]
  if (mean) {
    missing <- if (na.rm && !sums_on_devices(x)) store_sums(x)[[counts]] - found[[counts]] else 0
    out <- out / (dim(x)[3L - k] - missing)
  }
  stats::setNames(out, dimnames(x)[[k]])
}

# ---- words ----

#' @rdname weft_store
#' @export
summary.weft_store <- function(object, ...) {
  about <- open_store(object)$about
  sums <- file_sums(object, skip_missing = TRUE)
  values <- stored_values(object)
  structure(class = "summary.weft_store", list(
    path = unclass(object)$path, dim = dim(object), values = values, bytes = about$bytes,
    range = if (values > 0) sums$range, blocks = length(about$rows), kinds = table(about$kinds),
    per_row = stats::quantile(sums$row_counts, names = FALSE), row_sums = stats::quantile(sums$rows, names = FALSE),
    empty_columns = sum(sums$column_counts == 0), empty_rows = sum(sums$row_counts == 0),
    recipe = unclass(object)$recipe$what
  ))
}

#' @export
print.summary.weft_store <- function(x, ...) {
  cat(store_heading(x$dim, x$values, x$bytes), "\n", sep = "")
  five <- function(v) paste(format(v, digits = 3L, trim = TRUE), collapse = ", ")
  if (length(x$range)) cat(sprintf("Non-zero values range from %g to %g\n", x$range[1L], x$range[2L]))
  if (x$dim[1L] > 0L) {
    cat("Values per row (minimum, quartiles, maximum): ", five(x$per_row), "\n", sep = "")
    cat("Sums of rows: ", five(x$row_sums), "\n", sep = "")
  }
  cat(sprintf("Empty: %.0f rows, %.0f columns\n", x$empty_rows, x$empty_columns))
  kinds <- paste(sprintf("%d %s", x$kinds, names(x$kinds)), collapse = ", ")
  cat(sprintf("%s: %s\n", several(x$blocks, "block"), kinds))
  if (!is.null(x$recipe)) cat(x$recipe, "\n", sep = "")
  invisible(x)
}

# Of the columns that are left.
stored_values <- function(x) {
  parts <- unclass(x)
  round(parts$values * parts$recipe$share)
}

store_heading <- function(dim, values, bytes) {
  share <- if (all(dim > 0L)) sprintf(" (%.3g %%)", 100 * values / prod(as.double(dim))) else ""
  sprintf("<weft_store> %d x %d, %.0f values%s, %s", dim[1L], dim[2L], values, share, bytes_text(bytes))
}

#' @export
print.weft_store <- function(x, ...) {
  about <- open_store(x)$about
  parts <- unclass(x)
  cat(store_heading(dim(x), stored_values(x), about$bytes), "\n", parts$path, "\n", sep = "")
  if (!is.null(parts$recipe$what)) cat(parts$recipe$what, "\n", sep = "")
  invisible(x)
}
