# Matrices for weft_import() in the layout of AnnData: compressed rows or columns, or dense, with tables of rows and
# columns. `file` represents an HDF5 file or a folder by functions of a path in it; see with_h5() in R/store-hdf5.R, and
# R/zarr.R, R/bpcells.R.

# use(item) for each item that produce(file, send) hands to send(): of an HDF5 file, in a child that works ahead.
file_stream <- function(path, produce, use) {
  if (dir.exists(path)) return(produce(open_folder(path), use))
  stream_apart(function(send) with_h5(path, function(file) produce(file, send)), use, function() h5_ended(path))
}

# The open folder of a Zarr or BPCells matrix.
open_folder <- function(path) if (is_bpcells(path)) bpcells_file(path) else zarr_file(path)

wrong_file <- function(file, what) abort_input(sprintf("'%s' must be %s.", file$name, file$what), x = what)

# ---- AnnData ----

# The older layout, before AnnData 0.7: obs and var are data sets of records, categories lie in uns, and raw is called
# "raw.X" and "raw.var". Both are read.
anndata_import <- function(file, layer, memory) {
  raw <- Find(file$has, c("raw/X", "raw.X"))
  where <- if (is.null(layer) || identical(layer, "X")) "X" else if (identical(layer, "raw")) raw
  else if (is_word(layer)) paste0("layers/", layer)
  if (is.null(where) || !file$has(where)) {
    known <- c(if (file$has("X")) "X", if (!is.null(raw)) "raw", if (file$is_group("layers")) file$members("layers"))
    abort_input("`layer` must be the name of a matrix in the file.", x = paste0("It is ", describe(layer), "."),
                i = sprintf("Available: %s.", label_some(known)))
  }
  scaled <- is.null(layer) && has_negative(file, where)
  if (scaled && !is.null(raw)) where <- raw
  source <- if (file$is_group(where)) compressed_import(file, where, memory)
            else dense_import(file, where, TRUE, memory)
  rows <- anndata_table(file, "obs", source$n)
  raw_genes <- if (identical(where, raw)) Find(file$has, sub("X$", "var", raw))
  columns <- anndata_table(file, raw_genes %||% "var", source$p)
  source[c("row_names", "names", "row_data", "column_data")] <- list(rows$names, columns$names, rows$data, columns$data)
  source$notes <- c(if (scaled) list(scaled_note(file, raw)), nameless_note(file, "cells", rows$names),
                    nameless_note(file, "genes", columns$names))
  source
}

# Whether the matrix has values below 0, as scaled ones do in all rows: the first rows tell.
has_negative <- function(file, where) {
  most <- 2^22
  if (file$is_group(where)) {
    at <- paste0(where, "/data")
    if (!file$has(at)) return(FALSE)
    values <- file$read(at, 1, min(most, file$size(at)))
  } else {
    d <- file$size(where)
    if (length(d) != 2L || any(d < 1)) return(FALSE)
    values <- file$read(where, c(1, 1), c(d[1L], max(1, min(d[2L], floor(most / d[1L])))))
  }
  is.numeric(values) && any(values < 0, na.rm = TRUE)
}

scaled_note <- function(file, raw) {
  begins <- sprintf("X in '%s' contains negative values, like scaled data", file$name)
  if (is.null(raw)) {
    return(list(message = paste0(begins, ", and the file has no raw values. X was imported."),
                i = "Steps that need counts will stop with an error. `layer = \"X\"` imports X without this warning."))
  }
  list(message = paste0(begins, ". The raw values were imported instead."),
       i = "`layer = \"X\"` imports X, and `layer = \"raw\"` the raw values without this warning.")
}

nameless_note <- function(file, what, names) {
  if (is.null(names)) list(list(message = sprintf("No names of %s were found in '%s'.", what, file$name),
                                i = "They are numbered in the store."))
}

# obs or var: list(names, data). Columns of kinds that are unknown are left out, and those that the table does not name
# itself: listing what is in a damaged group may end R (rhdf5 2.42), so that a group is listed only where it has to be.
anndata_table <- function(file, where, count) {
  if (!file$has(where)) return(NULL)
  if (!file$is_group(where)) return(record_table(file, where, count))
  index <- file$attribute(where, "_index") %||% "_index"
  order <- file$attribute(where, "column-order")
  data <- lapply(stats::setNames(nm = as.character(order)), function(name) {
    column <- anndata_column(file, paste0(where, "/", name), where, name)
    if (!is.null(column) && length(column) != count) {
      wrong_file(file, sprintf("\"%s/%s\" has %d values instead of %.0f.", where, name, length(column), count))
    }
    column
  })
  names <- if (file$has(paste0(where, "/", index))) as.character(file$read(paste0(where, "/", index)))
  if (!is.null(names) && length(names) != count) {
    wrong_file(file, sprintf("\"%s\" has %d names instead of %.0f.", where, length(names), count))
  }
  list(names = names, data = data[!vapply(data, is.null, NA)])
}

# A table in the older layout: a data set of records, one field of which has the names. Whole numbers with categories
# in uns stand for these.
record_table <- function(file, where, count) {
  table <- as.list(file$read(where))
  size <- unique(lengths(table))
  if (length(size) > 1L || length(size) == 1L && size != count) {
    wrong_file(file, sprintf("\"%s\" has %s records instead of %.0f.", where, label_some(size), count))
  }
  index <- intersect(c("index", "_index", "obs_names", "var_names", "smp_names", "row_names", "col_names"),
                     names(table))
  column <- function(name) {
    values <- table[[name]]
    if (!is.atomic(values) || length(dim(values)) > 1L) return(NULL)
    values <- plain_column(values)
    if (is.character(values)) Encoding(values) <- "UTF-8"
    at <- sprintf("uns/%s_categories", name)
    if (!is.numeric(values) || !file$has(at)) return(values)
    categories <- as.vector(file$read(at))
    fits <- all(values %in% c(NA, seq_along(categories) - 1, -1)) && !anyDuplicated(categories)
    if (!fits) values
    else coded_column(file, paste0(where, "/", name), values, categories)
  }
  data <- lapply(stats::setNames(nm = setdiff(names(table), index)), column)
  list(names = if (length(index)) as.character(column(index[1L])), data = data[!vapply(data, is.null, NA)])
}

anndata_column <- function(file, at, where, name) {
  if (!file$has(at)) return(NULL)
  part <- function(what) plain_column(file$read(paste0(at, "/", what)))
  if (file$is_group(at)) {
    if (file$has(paste0(at, "/codes"))) return(coded_column(file, at, part("codes"), part("categories")))
    if (!file$has(paste0(at, "/values")) || !file$has(paste0(at, "/mask"))) return(NULL)
    values <- part("values")
    missing <- part("mask")
    if (!is.logical(missing)) missing <- missing != 0
    if (length(missing) == length(values)) values[missing] <- NA
    return(values)
  }
  if (!file$is_known(at)) return(NULL)
  values <- file$read(at)
  older <- paste0(where, "/__categories/", name) # AnnData 0.7
  if (file$has(older)) coded_column(file, at, as.vector(values), as.vector(file$read(older)))
  else if (is.atomic(values) && length(dim(values)) <= 1L) plain_column(values)
}

coded_column <- function(file, at, codes, categories) {
  if (!is.numeric(codes) || any(codes >= length(categories), na.rm = TRUE) || anyDuplicated(categories)) {
    wrong_file(file, sprintf("\"%s\" has codes without a category.", at))
  }
  factor(as.character(categories)[ifelse(codes < 0, NA, codes + 1)], as.character(categories))
}

# Flags are an enumeration in HDF5, which becomes a factor.
plain_column <- function(values) {
  if (is.factor(values) && all(levels(values) %in% c("FALSE", "TRUE"))) return(as.character(values) == "TRUE")
  if (is.factor(values)) return(factor(as.character(values), levels(values)))
  as.vector(values)
}

# ---- compressed rows or columns ----

compressed_import <- function(file, where, memory) {
  kind <- file$attribute(where, "encoding-type") %||% file$attribute(where, "h5sparse_format")
  d <- file$attribute(where, "shape") %||% file$attribute(where, "h5sparse_shape")
  by_row <- identical(substr(as.character(kind)[1L], 1L, 3L), "csr")
  if (!by_row && !identical(substr(as.character(kind)[1L], 1L, 3L), "csc")) {
    wrong_file(file, sprintf("\"%s\" has the unsupported type %s.", where, describe(kind)))
  }
  compressed_parts(file, where, as.double(d), by_row, memory)
}

# `d`: rows and columns; data, indices and indptr lie in the group `where`.
compressed_parts <- function(file, where, d, by_row, memory) {
  at <- function(part) paste0(where, "/", part)
  if (length(d) != 2L || !is_numbers(d, 2L, min = 0, max = .Machine$integer.max, whole = TRUE) ||
      !all(vapply(c("data", "indices", "indptr"), function(part) file$has(at(part)), NA))) {
    wrong_file(file, sprintf("\"%s\" has no shape, or parts are missing.", where))
  }
  stored <- file$size(at("data"))
  if (!identical(file$size(at("indices")), stored) || !identical(file$size(at("indptr")), d[2L - by_row] + 1) ||
      length(stored) != 1L) {
    wrong_file(file, sprintf("\"%s\" has parts of inconsistent length.", where))
  }
  new_import(d, NULL, compressed_fill(file$path, where, by_row, d[2L - by_row], stored, memory))
}

# The function `fill` of an import; it does not hold the file, which is closed by then.
compressed_fill <- function(path, where, by_row, count, stored, memory) {
  force(list(path, where, by_row, count, stored, memory))
  if (by_row) return(function(begin, control) {
    rows_stream(begin(), control, path, where, count, stored)
  })
  pieces <- function(with_values, f) {
    file_stream(path, function(file, send) {
      read <- read_pieces(file, where, with_values)
      compressed_pieces(file, where, count, stored, max(2^12, floor(memory / 512)), read, send)
    }, function(part) f(part$first, part$starts, part$indices, part$values))
  }
  function(begin, control) {
    writer <- begin()
    sorter <- .Call(C_weft_store_sorter, writer, memory, control)
    sort <- function(first, starts, indices, values) {
      columns <- rep.int(as.integer(first) + seq_len(length(starts) - 1L) - 1L, diff(starts))
      .Call(C_weft_store_sort, writer, sorter, indices, columns, values, control)
    }
    pieces(FALSE, sort)
    pieces(TRUE, sort)
    .Call(C_weft_store_drain, writer, sorter, control)
  }
}

# Rows into blocks, some of them at once while the child reads the next.
rows_stream <- function(writer, control, path, where, count, stored) {
  at_once <- .Call(C_weft_store_at_once, writer)
  shared <- if (!dir.exists(path)) .Call(C_weft_store_shared, at_once[2L], 2 * at_once[1L], path)
  held <- list()
  put <- function() {
    if (length(held)) .Call(C_weft_store_blocks, writer, shared, held, control)
    held <<- list()
  }
  file_stream(path, function(file, send) {
    read <- shared_pieces(file, where, shared, at_once) %||% read_pieces(file, where, TRUE)
    compressed_pieces(file, where, count, stored, at_once[2L], read, send)
  }, function(part) {
    held[[length(held) + 1L]] <<- part
    if (length(held) == at_once[1L]) put()
  })
  put()
}

# Returns a function that reads `number` values after the first `start`, by way of R: list(indices, values). Values are
# NULL without `with_values`.
read_pieces <- function(file, where, with_values) {
  at <- function(part) paste0(where, "/", part)
  function(start, number) {
    read <- function(part) if (number) plain_column(file$read(at(part), start + 1, number)) else numeric()
    indices <- suppressWarnings(as.integer(read("indices")))
    if (anyNA(indices)) wrong_file(file, sprintf("\"%s\" has numbers beyond 2^31.", at("indices")))
    list(indices = indices, values = if (with_values) stored_numbers(file, read("data"), at("data")))
  }
}

# The same into one slot after another of memory that the parent shares, or by its threads: list(slot, how). NULL where
# that cannot be had; rows that are longer than a slot come by way of R.
shared_pieces <- function(file, where, shared, at_once) {
  at <- function(part) paste0(where, "/", part)
  library <- getLoadedDLLs()[["rhdf5"]]
  h5 <- if (!is.null(shared) && !is.null(library) && !dir.exists(file$path)) {
    tryCatch(.Call(C_weft_store_h5, library[["path"]], file$path, at("indices"), at("data")), error = function(e) NULL)
  }
  if (is.null(h5)) return(NULL)
  others <- read_pieces(file, where, TRUE)
  slot <- -1
  function(start, number) {
    if (number > at_once[2L]) return(others(start, number))
    slot <<- (slot + 1) %% (2 * at_once[1L])
    how <- file$said(.Call(C_weft_store_h5_read, h5, shared, slot, start, number), where)
    if (is.null(how)) wrong_file(file, sprintf("\"%s\" cannot be read.", where))
    list(slot = slot, how = how)
  }
}

# Calls send(list(first, starts, and what read(from, number) returns)) for runs of rows (or columns) with
# at most `most` values, unless one row has more.
compressed_pieces <- function(file, where, count, stored, most, read, send) {
  at <- function(part) paste0(where, "/", part)
  first <- 0
  while (first < count) {
    reach <- min(count - first, 2^17)
    pointers <- as.double(file$read(at("indptr"), first + 1, reach + 1))
    last <- pointers[reach + 1]
    ended <- first + reach < count || last == stored || !dir.exists(file$path) # a folder may lack a file
    if (anyNA(pointers) || is.unsorted(pointers) || pointers[1L] < 0 || last > stored ||
        first == 0 && pointers[1L] != 0 || !ended) {
      wrong_file(file, sprintf("\"%s\" does not increase from 0 to %.0f.", at("indptr"), stored))
    }
    ends <- piece_ends(pointers, most)
    if (first + reach < count) ends <- ends[-length(ends)] # it may go on
    done <- 0
    for (end in ends) {
      starts <- pointers[seq(done + 1, end + 1)]
      number <- starts[length(starts)] - starts[1L]
      send(c(list(first = first + done, starts = starts - starts[1L]), read(starts[1L], number)))
      done <- end
    }
    first <- first + done
  }
}

# Divides rows into runs of at most 2^16 rows and at most `most` values, but one row at least: the last row of each.
piece_ends <- function(pointers, most) {
  ends <- numeric()
  done <- 0
  while (done < length(pointers) - 1) {
    done <- max(done + 1, min(done + 2^16, findInterval(pointers[done + 1] + most, pointers) - 1))
    ends <- c(ends, done)
  }
  ends
}

stored_numbers <- function(file, values, at) {
  if (is.factor(values)) values <- as.integer(plain_column(values))
  if (is.logical(values)) values <- as.integer(values)
  if (!is.numeric(values)) wrong_file(file, sprintf("\"%s\" contains no numbers.", at))
  as.vector(values)
}

# ---- dense ----

# Rows of the file are samples (`rows_first`: AnnData) or features (loom); R sees them transposed.
dense_import <- function(file, where, rows_first, memory) {
  d <- file$size(where)
  if (length(d) != 2L) wrong_file(file, sprintf("\"%s\" is not a matrix.", where))
  if (rows_first) d <- rev(d)
  new_import(d, NULL, dense_fill(file$path, where, rows_first, d, memory))
}

dense_fill <- function(path, where, rows_first, d, memory) {
  force(list(path, where, rows_first, d))
  at_once <- max(1, floor(memory / 64 / max(1, d[2L])))
  function(begin, control) {
    writer <- begin()
    file_stream(path, function(file, send) {
      for (first in seq(0, length.out = ceiling(d[1L] / at_once), by = at_once)) {
        rows <- min(at_once, d[1L] - first)
        part <- if (rows_first) file$read(where, c(1, first + 1), c(d[2L], rows))
                else file$read(where, c(first + 1, 1), c(rows, d[2L]))
        send(list(first = first, part = array(stored_numbers(file, part, where), dim(part))))
      }
    }, function(item) {
      part <- if (rows_first) t(item$part) else item$part
      .Call(C_weft_store_columns, writer, item$first, as.double(nrow(part)), NULL, NULL, part, control)
    })
  }
}
