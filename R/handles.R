#' Keep a matrix or a store on devices
#'
#' `weft_upload()` sends a numeric matrix to the device once, so that several calls share the transfer. A [weft_store()]
#' is sent as compressed blocks (about one byte per value). It can be divided among several devices, and each gets one
#' part of the rows. The memory is released by `weft_free()`, or when R collects the object as garbage.
#'
#' Between calls, weft keeps up to 128 MB of memory on each device that it has used, in blocks of at most 32 MB, since
#' small calls would otherwise wait for the driver. Without an argument, `weft_free()` gives this memory back, for
#' example if another program needs it. If the option `weft.device_memory` is set, nothing is kept.
#'
#' @section Stores: The result is a store for all functions. [pca()], the moments that [gene_cells()] uses to select
#'   genes, and sums and means of rows and columns of whole-number counts are computed from the blocks on the devices.
#'   [store_normalise()] returns a store that uses the same blocks, with other sizes or fewer columns. Everything else
#'   (`[`, `summary()`, names, sums by metacells, sums of other numbers) is read from the file. [pca()] runs on the
#'   devices that have the blocks. The result is the same as from the file: bit for bit on one device if all columns are
#'   used, otherwise up to rounding. The blocks are checked when they are sent. After `weft_free()`, or in another R
#'   session, these functions stop with an error, and the store must be uploaded again.
#'
#' @param x a numeric matrix, or a store. A matrix must have no missing values if the function that uses it requires
#'   that.
#' @param precision `"double"`, or `"single"` to keep a matrix as 32-bit floats.
#' @param devices `NULL` for one device, `"all"`, or device numbers, as in [weft_run()]. A matrix goes to one device.
#' @param handle an object returned by `weft_upload()` or [mi_pack()]. If it is not given, `weft_free()` frees what weft
#'   keeps on devices between calls.
#' @return `weft_upload()`: for a matrix, an object of class `weft_device_matrix` with `dim` and `dimnames`;
#'   `as.matrix()` brings the numbers back. For a store, a store of class `weft_resident_store`. `weft_free()`: `NULL`,
#'   invisibly.
#' @export
#' @examples
#' if (nrow(weft_devices()) > 0) {
#'   h <- weft_upload(matrix(rnorm(20), 5))
#'   print(h)
#'   weft_free(h)
#'
#'   counts <- Matrix::rsparsematrix(100, 20, 0.2, rand.x = function(n) rpois(n, 2) + 1)
#'   x <- weft_upload(weft_import(counts, tempfile(fileext = ".weft")))
#'   pca(store_normalise(x), k = 2)
#'   weft_free(x)
#' }
weft_upload <- function(x, precision = c("double", "single"), devices = NULL) {
  need_args("x")
  precision <- check_choice(precision, c("double", "single"), "precision")
  if (is_resident_store(x)) {
    abort_input("`x` must be a matrix or a store in a file.", x = "It is on the device already.")
  }
  if (inherits(x, "weft_store")) return(upload_store(x, devices))
  if (!is.matrix(x) || !is.numeric(x)) {
    abort_input("`x` must be a numeric matrix or a `weft_store()`.", x = paste0("It is ", describe(x), "."))
  }
  if (!is.double(x)) storage.mode(x) <- "double"
  choose_backend("cuda")
  on <- if (is.null(devices)) first_device() else devices_for(devices, "cuda")
  if (length(on) > 1L) abort_input("A matrix must be uploaded to one device.", x = "Only stores are divided.")
  pointer <- .Call(C_weft_upload, x, precision == "single", run_control("cuda", task = "Uploading", devices = on))
  structure(class = "weft_device_matrix",
            list(pointer = pointer, dim = dim(x), dimnames = dimnames(x), precision = precision))
}

#' @rdname weft_upload
#' @export
weft_free <- function(handle) {
  if (missing(handle)) return(invisible(.Call(C_weft_free_kept)))
  pointer <- handle_pointer(handle)
  if (is_resident_store(handle)) {
    pointer <- handle_pointer(handle_part(handle, "resident"))
    if (typeof(pointer) == "externalptr") return(invisible(.Call(C_weft_panels_free, pointer)))
  }
  if (inherits(handle, "weft_mi_pack") && !is.null(pointer)) return(invisible(.Call(C_weft_mi_pack_free, pointer)))
  if (inherits(handle, "weft_device_matrix") && !is.null(pointer)) return(invisible(.Call(C_weft_free, pointer)))
  abort_input("`handle` must be an object returned by `weft_upload()` or `mi_pack()`.",
              x = paste0("It is ", describe(handle), "."))
}

# What a handle points to, which may be gone; NULL where it is no handle.
handle_pointer <- function(x) {
  pointer <- if (is.list(x)) unclass(x)$pointer
  if (typeof(pointer) == "externalptr") pointer
}

# A part of the list around a handle. R asks every object of the class for its dim(), even one that was tampered with.
handle_part <- function(x, part) {
  if (is.list(x)) unclass(x)[[part]] else abort_changed("x", "the list around the handle is damaged")
}

#' @export
dim.weft_device_matrix <- function(x) handle_part(x, "dim")
#' @export
dimnames.weft_device_matrix <- function(x) handle_part(x, "dimnames")

#' @export
as.matrix.weft_device_matrix <- function(x, ...) {
  if (!is_resident(x)) {
    abort_input("`x` must be on the device.", x = "It was freed or belongs to another R session.",
                i = "Create it again with `weft_upload()`.")
  }
  out <- .Call(C_weft_download, x$pointer, run_control("cuda", task = "Downloading"))
  dimnames(out) <- dimnames(x)
  out
}

# Whether it is on the device, and the list says of it what the device has.
is_resident <- function(x) {
  pointer <- handle_pointer(x)
  size <- if (!is.null(pointer)) .Call(C_weft_resident, pointer)
  names <- if (!is.null(size)) x$dimnames
  !is.null(size) && identical(as.double(x$dim), size) && (is.null(names) || is.list(names) && length(names) == 2L) &&
    all(lengths(names) == 0L | lengths(names) == size)
}

#' @export
print.weft_device_matrix <- function(x, ...) {
  d <- dim(x)
  size <- prod(d) * if (x$precision == "single") 4 else 8
  cat(sprintf("<weft_device_matrix> %d x %d, %s precision, %.1f MB, %s\n", d[1L], d[2L], x$precision,
              size / 1e6, if (is_resident(x)) "on the device" else "freed"))
  invisible(x)
}

#' A matrix in a raw file
#'
#' Describes a file of 32-bit or 64-bit floats in this machine's byte order, without a header, so that functions can
#' read it in blocks. Nothing is read but the size.
#'
#' @param path the path of the file.
#' @param ncol the number of columns.
#' @param type `"double"` or `"float"`.
#' @param layout `"row"`: row after row (points one after another); `"column"`: column after column, as in R.
#' @param nrow the number of rows; by default, it is derived from the size of the file.
#' @return An object of class `weft_file` with `dim`; `as.matrix()` reads it whole, `x[i, ]` with consecutive rows (for
#'   layout `"column"`: `x[, j]` with consecutive columns) reads a block.
#' @export
#' @examples
#' file <- tempfile()
#' writeBin(as.double(t(matrix(1:6, 3))), file)
#' x <- weft_file(file, ncol = 2)
#' dim(x)
#' x[2:3, ]
weft_file <- function(path, ncol, type = c("double", "float"), layout = c("row", "column"), nrow = NULL) {
  need_args("path", "ncol")
  type <- check_choice(type, c("double", "float"), "type")
  layout <- check_choice(layout, c("row", "column"), "layout")
  ncol <- check_number(ncol, "ncol", min = 1, max = 2^31 - 1, whole = TRUE)
  if (!is.null(nrow)) nrow <- check_number(nrow, "nrow", min = 0, max = 2^52, whole = TRUE)
  path <- readable_file(path, "path")
  found <- file.size(path) / number_bytes(type) / ncol
  if (is.null(nrow)) nrow <- found
  if (nrow != round(nrow) || nrow > found) {
    abort_input(sprintf("`path` must contain a whole number of rows, each with %.0f numbers of type \"%s\".", ncol,
                        type),
                x = sprintf("It has %.0f bytes, which are %.10g rows.", file.size(path), found),
                i = "Check `ncol`, `nrow` and `type`.")
  }
  new_result(class = "weft_file", list(path = normalizePath(path), dim = c(nrow, ncol), type = type, layout = layout))
}

number_bytes <- function(type) if (type == "float") 4 else 8

# As weft_file() made it: what other functions read goes where these say.
whole_file <- function(x) {
  check_format(x, "x")
  parts <- if (is.list(x)) unclass(x)
  one <- function(name, choices) is.character(parts[[name]]) && length(parts[[name]]) == 1L &&
    parts[[name]] %in% choices
  size <- parts$dim
  fine <- one("path", parts$path) && one("type", c("double", "float")) && one("layout", c("row", "column")) &&
    is.double(size) &&
    length(size) == 2L && all(is.finite(size)) && all(size >= c(0, 1)) && all(size == round(size)) && !is.na(parts$path)
  if (!fine) abort_input("The file description must not have changed since `weft_file()` returned it.",
                         i = "Call `weft_file()` again.")
  there <- file.size(parts$path) %/% number_bytes(parts$type) # checked before memory is requested
  if (!is.na(there) && prod(size) > there) {
    abort_input(sprintf("'%s' ends after %.0f numbers; %.0f are needed.", parts$path, there, prod(size)),
                i = "It was truncated after the call of `weft_file()`.")
  }
  parts
}

#' @export
dim.weft_file <- function(x) whole_file(x)$dim

#' @export
as.matrix.weft_file <- function(x, ...) {
  d <- dim(x)
  if (any(d > .Machine$integer.max)) {
    abort_input("A matrix in memory must have at most 2147483647 rows and columns.",
                x = sprintf("The file has %.0f rows and %.0f columns.", d[1L], d[2L]))
  }
  if (x$layout == "row") t(matrix(read_numbers(x, 0, prod(d)), d[2L], d[1L]))
  else matrix(read_numbers(x, 0, prod(d)), d[1L], d[2L])
}

#' @export
`[.weft_file` <- function(x, i, j, ...) {
  d <- dim(x)
  by_row <- x$layout == "row"
  if (by_row && missing(j) && !missing(i)) {
    i <- check_block(i, d[1L], "i")
    t(matrix(read_numbers(x, (i[1L] - 1) * d[2L], length(i) * d[2L]), d[2L], length(i)))
  } else if (!by_row && missing(i) && !missing(j)) {
    j <- check_block(j, d[2L], "j")
    matrix(read_numbers(x, (j[1L] - 1) * d[1L], length(j) * d[1L]), d[1L], length(j))
  } else {
    abort_input(sprintf("A file with layout \"%s\" must be indexed by consecutive %ss: x[%s].", x$layout,
                        x$layout, if (by_row) "i, " else ", j"))
  }
}

check_block <- function(i, most, arg) {
  if (!is.numeric(i) || !length(i) || anyNA(i) || i[1L] < 1 || i[1L] %% 1 != 0 || i[length(i)] > most ||
      any(diff(i) != 1)) {
    abort_input(sprintf("`%s` must be consecutive indices from 1 to %.0f.", arg, most),
                x = paste0("It is ", describe(i), "."))
  }
  i
}

read_numbers <- function(x, first, count) {
  .Call(C_weft_file_read, x$path, x$type == "float", first, count,
        run_control(task = "Reading"))
}

#' @export
print.weft_file <- function(x, ...) {
  cat(sprintf("<weft_file> %.0f x %.0f, type \"%s\", layout \"%s\"\n%s\n", dim(x)[1L], dim(x)[2L],
              x$type, x$layout, x$path))
  invisible(x)
}
