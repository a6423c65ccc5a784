#' Write a store
#'
#' `weft_import()` puts a large matrix of samples (cells) and features into one compressed file, a store, which other
#' functions of weft read in blocks. The shortest call is `weft_import("cells.h5ad", "cells.weft")`; it returns the
#' store, as [weft_store()] opens it. Input on disk is read in pieces and uses no more than about `memory` bytes,
#' however large it is.
#'
#' @section Supported data: From memory:
#'   * matrices, data frames and sparse Matrices of any class, and lists of these (blocks of samples, which together may
#'     have more than 2^31 values);
#'   * SummarizedExperiments and other containers of [weft_containers], and DelayedMatrices (in blocks).
#'
#'   From disk:
#'   * Matrix Market text (`.mtx`, also compressed as `.gz`, `.bz2` or `.xz`);
#'   * 10x Genomics folders with the files `matrix.mtx`, `barcodes.tsv` and `features.tsv` (or `genes.tsv`);
#'   * with the package rhdf5, AnnData's `.h5ad` (compressed rows or columns, or dense; with the tables `obs` and `var`,
#'     see [store_data()]; also in the layout before AnnData 0.7), 10x Genomics' `.h5`, and `.loom`;
#'   * Zarr folders (versions 2 and 3), as AnnData writes them, which give the same store as an `.h5ad` file of the
#'     same data. Their chunks may be plain or compressed by Blosc, gzip, zlib or LZ4, and by Zstandard if libzstd was
#'     found when weft was installed (`weft_sitrep()$build`);
#'   * BPCells folders, packed or not.
#'
#'   If `X` of an `.h5ad` file contains negative values, as scaled data do, its raw values are imported instead, with a
#'   warning. `layer` makes the choice explicit.
#'
#' @section Errors and interrupts: The file is written under a temporary name in the folder of `path`, which begins with
#'   a dot and ends in `.part`. It is renamed when it is complete and on the disk. After an error or an interrupt, the
#'   temporary file is removed. If R is killed, the temporary file stays, and it cannot be opened. Only a regular file
#'   is replaced, never a device or a pipe. If `path` is a symbolic link, the link is replaced, and its target stays as
#'   it is.
#'
#'   The HDF5 library crashes on some damaged files. If R can fork, a child process reads the file, and a crash only
#'   causes an error. On Windows, in RStudio and in R's graphical interface on macOS, a crash may end the session.
#'
#' @param x the data to import; see section Supported data.
#' @param path the file to write.
#' @param samples whether samples are in the `"rows"` or `"columns"` of `x`. The default is rows, but columns for a
#'   SummarizedExperiment, for 10x Genomics files and for BPCells folders.
#' @param assay for a SummarizedExperiment: the assay's name or number.
#' @param layer for an `.h5ad` file or a Zarr folder: `"X"`, `"raw"` or the name of a layer; for a `.loom` file: the
#'   name of a layer.
#' @param overwrite whether a file at `path` may be replaced.
#' @param run see [weft_run()]. `memory` is the number of bytes to use (2^28 by default), in addition to `x` and one
#'   number per row and column. A block holds at most `memory` / 512 values, and at most 2^19. Several threads work on
#'   up to eight blocks at once.
#' @param ... not used; unknown arguments cause an error.
#' @return The store, as [weft_store()] opens it.
#' @seealso [weft_store()]
#' @export
#' @examples
#' folder <- tempfile()
#' dir.create(folder)
#' writeLines(c("%%MatrixMarket matrix coordinate integer general",
#'              "3 2 3", "1 1 5", "3 1 1", "2 2 7"),
#'            file.path(folder, "matrix.mtx"))
#' writeLines(c("cell-1", "cell-2"), file.path(folder, "barcodes.tsv"))
#' writeLines(c("g1\tTP53", "g2\tMYC", "g3\tKRAS"), file.path(folder, "features.tsv"))
#' x <- weft_import(folder, tempfile(fileext = ".weft"))
#' as.matrix(x)
weft_import <- function(x, path, samples = NULL, assay = NULL, layer = NULL, overwrite = FALSE, run = NULL, ...) {
  run <- as_run(run)
  check_dots(...)
  need_args(c("x", "path"))
  path <- store_path(path, check_flag(overwrite, "overwrite"))
  run$memory <- check_number(run$memory %||% 2^28, "memory", min = 2^20, max = 2^45)
  if (!is.null(samples)) samples <- check_choice(samples, c("rows", "columns"), "samples")
  from <- memory_errors(import_source(x, samples, assay, layer, run))
  control <- run_control("cpu", NULL, run$progress, NULL, "Importing")
  writer <- NULL
  on.exit(if (!is.null(writer)) .Call(C_weft_store_abandon, writer))
  begin <- function() {
    if (!is.null(writer)) .Call(C_weft_store_abandon, writer)
    writer <<- NULL
    writer <<- .Call(C_weft_store_begin, path, overwrite, as.double(from$n), as.double(from$p), run$memory, control)
  }
  memory_errors(from$fill(begin, control))
  put_vectors(writer, from, control)
  .Call(C_weft_store_finish, writer, control)
  writer <- NULL
  weft_store(path)
}

store_path <- function(path, overwrite) {
  path <- path.expand(check_output(path, "path"))
  if (!overwrite && (file.exists(path) || isTRUE(Sys.readlink(path) != ""))) {
    abort_input("`path` must be the name of a new file.", x = sprintf("'%s' already exists.", basename(path)),
                i = "`overwrite = TRUE` replaces it.")
  }
  path
}

# ---- names and tables ----

put_vectors <- function(writer, from, control) {
  put <- function(name, value) .Call(C_weft_store_put_vector, writer, enc2utf8(name), value, control)
  put_names <- function(name, value) if (!is.null(value)) put(name, store_text(value))
  put_names("row names", from$row_names)
  put_names("column names", from$names)
  put_store_table(put, "row", from$row_data)
  put_store_table(put, "column", from$column_data)
}

# A table's columns are vectors "row data: <name>"; a factor's levels, and what logical values are called, are
# "row levels: <name>".
put_store_table <- function(put, side, table) {
  for (name in names(table)) {
    column <- table[[name]]
    data <- paste0(side, " data: ", name)
    check_factor(column, sprintf("Column `%s` of the %s data", name, side))
    if (is.factor(column) || is.logical(column)) {
      put(data, if (is.factor(column)) as.integer(column) else as.integer(column) + 1L)
      put(paste0(side, if (is.factor(column)) " levels: " else " flags: ", name),
          if (is.factor(column)) store_text(levels(column)) else c("FALSE", "TRUE"))
    } else {
      put(data, if (is.numeric(column)) as.vector(unclass(column)) else store_text(column))
    }
  }
}

store_text <- function(x) {
  x <- enc2utf8(as.character(x))
  if (!all(validUTF8(x[!is.na(x)]))) {
    abort_input("Names and text must be valid.", x = "Some cannot be converted to UTF-8.",
                i = "Give their encoding with `Encoding()`, or convert them with `iconv()`.")
  }
  x
}

#' @rdname weft_store
#' @export
store_data <- function(x, side = c("rows", "columns")) {
  need_args("x")
  if (!inherits(x, "weft_store")) abort_input("`x` must be a store.", x = paste0("It is ", describe(x), "."))
  side <- check_choice(side, c("rows", "columns"), "side")
  k <- match(side, c("rows", "columns"))
  kept <- if (k == 2L) unclass(x)$recipe$columns # of the file's
  count <- whole_store(x)[[c("n", "p")[k]]]
  prefix <- paste0(c("row", "column")[k], " data: ")
  vectors <- open_store(x)$about$vectors
  named <- substring(vectors[startsWith(vectors, prefix)], nchar(prefix) + 1L)
  columns <- lapply(named, function(name) chosen_names(store_column(x, c("row", "column")[k], name, count), kept))
  count <- dim(x)[k]
  names(columns) <- named
  labels <- dimnames(x)[[k]]
  structure(columns, class = "data.frame",
            row.names = if (is.null(labels) || anyNA(labels) || anyDuplicated(labels)) .set_row_names(count)
                        else labels)
}

store_column <- function(x, side, name, count) {
  column <- store_vector(x, paste0(side, " data: ", name), count)
  levels <- store_vector(x, paste0(side, " levels: ", name), type = "text")
  flags <- is.null(levels) && !is.null(store_vector(x, paste0(side, " flags: ", name), type = "text"))
  if (is.null(levels) && !flags) return(column)
  most <- if (flags) 2L else length(levels)
  if (!is.integer(column) || any(column < 1L | column > most, na.rm = TRUE) || anyDuplicated(levels) || anyNA(levels)) {
    abort_input(sprintf("The values of \"%s\" must have levels in '%s'.", basename(unclass(x)$path), name),
                x = "Some values have no level, or levels are not unique.",
                i = "The file is damaged. Import the data again.")
  }
  if (flags) column == 2L else factor(levels[column], levels)
}

# ---- sources ----

# What is imported, as list(n, p, row_names, names, row_data, column_data, fill). fill(begin, control) calls begin() for
# a writer, once or anew, and hands it all rows.
import_source <- function(x, samples, assay, layer, run) {
  if (is_word(x)) return(file_import(x, samples, layer, run$memory))
  no_layer(layer)
  if (inherits(x, "weft_store")) {
    abort_input("`x` must not already be a store.", i = "Copy its file, or read it into memory with `x[, ]`.")
  }
  experiment <- is_experiment(x)
  if (experiment && !is.null(samples)) abort_input(sprintf("`samples` must not be given for a %s.",
                                                           experiment_class(x)))
  given <- as_source(x, assay)
  turned <- identical(samples, "columns")
  source <- switch(given$kind,
    matrix = matrix_import(given$data, turned), frame = matrix_import(frame_matrix(given$data, "x"), turned),
    sparse = sparse_import(list(given$data), turned), blocks = sparse_import(given$data, turned),
    delayed = delayed_import(given$data, turned, run$memory)
  )
  if (is.null(source)) {
    abort_input(paste("`x` must be a numeric matrix or data frame, a sparse Matrix or a list of them, a",
                      "SummarizedExperiment, a DelayedMatrix, or the name of a file."),
                      x = paste0("It is ", describe(x), "."))
  }
  if (experiment) source[c("row_data", "column_data")] <- experiment_tables(x)
  source
}

# Columns that are vectors of numbers, texts, factors or flags; others are left out.
experiment_tables <- function(x) {
  plain <- function(table) {
    columns <- as.list(table)
    columns[vapply(columns, function(v) is.factor(v) || is.atomic(v) && !is.object(v) && is.null(dim(v)) &&
                     (is.numeric(v) || is.logical(v) || is.character(v)), NA)]
  }
  list(plain(container_samples(x)), plain(container_genes(x)))
}

new_import <- function(d, names, fill, ...) {
  list(n = d[1L], p = d[2L], row_names = names[[1L]], names = names[[2L]], fill = fill, ...)
}

matrix_import <- function(x, turned) {
  if (!is.numeric(x) && !is.logical(x)) return(NULL)
  if (turned) x <- t(x)
  new_import(dim(x), dimnames(x), function(begin, control) {
    .Call(C_weft_store_columns, begin(), 0, as.double(nrow(x)), NULL, NULL, x, control)
  })
}

# Blocks of samples. With samples in columns, a block's compressed columns are rows of the store already.
sparse_import <- function(blocks, turned) {
  side <- if (turned) ncol else nrow
  other <- if (turned) nrow else ncol
  features <- vapply(blocks, other, 0L)
  if (any(features != features[1L])) {
    abort_input("The blocks of `x` must have the same features.",
                x = sprintf("They have %s features.", paste(unique(features), collapse = ", ")))
  }
  counts <- as.double(vapply(blocks, side, 0L))
  first <- cumsum(c(0, counts))
  labels <- lapply(blocks, function(b) dimnames(b)[[1L + turned]])
  names <- list(if (!any(vapply(labels, is.null, NA))) unlist(labels), dimnames(blocks[[1L]])[[2L - turned]])
  new_import(c(sum(counts), features[1L]), names, function(begin, control) {
    writer <- begin()
    for (k in seq_along(blocks)) put_sparse(writer, blocks[[k]], first[k], turned, control)
  })
}

put_sparse <- function(writer, block, first, turned, control) {
  block <- sparse_columns(block)
  values <- if (methods::is(block, "nMatrix")) NULL else block@x
  if (turned) .Call(C_weft_store_rows, writer, first, as.double(block@p), block@i, values, control)
  else .Call(C_weft_store_columns, writer, first, as.double(nrow(block)), block@p, block@i, values, control)
}

# A few samples at a time, as many as are a quarter of `memory` were they dense.
delayed_import <- function(x, turned, memory) {
  d <- as.double(dim(x))
  k <- 1L + turned
  at_once <- max(1, floor(memory / 32 / max(1, d[3L - k])))
  sparse <- DelayedArray::is_sparse(x)
  new_import(if (turned) rev(d) else d, if (turned) rev(dimnames(x)) else dimnames(x), function(begin, control) {
    writer <- begin()
    for (first in seq(0, length.out = ceiling(d[k] / at_once), by = at_once)) {
      range <- seq(first + 1, min(first + at_once, d[k]))
      part <- if (turned) x[, range, drop = FALSE] else x[range, , drop = FALSE]
      if (sparse) {
        put_sparse(writer, check_matrix(methods::as(part, "dgCMatrix"), "x"), first, turned, control)
      } else {
        dense <- as.matrix(part)
        if (turned) dense <- t(dense)
        .Call(C_weft_store_columns, writer, first, as.double(nrow(dense)), NULL, NULL, dense, control)
      }
    }
  })
}
