# HDF5 files for weft_import(): AnnData's .h5ad (R/store-anndata.R reads its parts), 10x Genomics' .h5, and .loom. The
# package rhdf5 reads them in pieces. Their contents are not trusted, and are checked here and in C before use. libhdf5
# crashes on some damaged files, so only forked children call it, if R can fork (R/in-child.R).

# f(file) with the open file as functions of a path in it: list(path, name, what, has, said, is_group, is_known, size,
# attribute, members, read). said(code, path) is what code returns, or an error of weft's own. read() takes first
# elements from 1 and counts, one per dimension of R's order, which is the file's reversed. `what`: what the file must
# be; is_known(): whether read() knows what is there.
with_h5 <- function(path, f) {
  refuse <- function(said) abort_input(sprintf("'%s' must be an HDF5 file.", basename(path)), x = said)
  file <- tryCatch(suppressMessages(rhdf5::H5Fopen(path, flags = "H5F_ACC_RDONLY")), error = conditionMessage)
  if (is.character(file)) refuse(file)
  if (!isS4(file)) refuse("It cannot be opened.") # where errors of the HDF5 library are not R's
  on.exit(rhdf5::H5Fclose(file))
  said <- function(code, name) tryCatch(code, error = function(e) {
    if (inherits(e, "weft_error")) stop(e)
    abort_input(sprintf("'%s' could not be read at \"%s\".", basename(path), name), x = conditionMessage(e))
  })
  has <- function(name) {
    steps <- strsplit(name, "/", fixed = TRUE)[[1L]]
    all(vapply(seq_along(steps), function(k) {
      said(rhdf5::H5Lexists(file, paste(steps[seq_len(k)], collapse = "/")), name)
    }, NA))
  }
  with_object <- function(name, f) said({
    object <- rhdf5::H5Oopen(file, name)
    tryCatch(f(object), finally = rhdf5::H5Oclose(object))
  }, name)
  f(list(
    path = path, name = basename(path), what = "an HDF5 file of AnnData, 10x Genomics or loom", has = has, said = said,
    is_known = function(name) TRUE,
    is_group = function(name) has(name) && with_object(name, function(o) rhdf5::H5Iget_type(o) == "H5I_GROUP"),
    size = function(name) with_object(name, function(o) {
      space <- rhdf5::H5Dget_space(o)
      on.exit(rhdf5::H5Sclose(space))
      as.double(rhdf5::H5Sget_simple_extent_dims(space)$size)
    }),
    attribute = function(name, which) said(rhdf5::h5readAttributes(file, name, bit64conversion = "double")[[which]],
                                           name),
    members = function(name) said({
      group <- rhdf5::H5Gopen(file, name)
      on.exit(rhdf5::H5Gclose(group))
      rhdf5::h5ls(group, recursive = FALSE, datasetinfo = FALSE)$name
    }, name),
    read = function(name, first = NULL, count = NULL) {
      out <- said(rhdf5::h5read(file, name, start = first, count = count, bit64conversion = "double"), name)
      if (is.character(out)) Encoding(out) <- "UTF-8"
      if (is.raw(out)) storage.mode(out) <- "integer" # numbers of one byte
      out
    }
  ))
}

# What f(file) returns of a file that is open in a child only.
h5_apart <- function(path, f) apart(function() with_h5(path, f), function() h5_ended(path))

h5_ended <- function(path) {
  abort_input(sprintf("'%s' could not be read.", basename(path)), x = "The HDF5 library crashed.",
              i = "The file is damaged. Create it again, or import another copy.")
}

hdf5_import <- function(path, samples, layer, memory) {
  need_package("rhdf5", sprintf("'%s'", basename(path)))
  source <- h5_apart(path, function(file) {
    if (file$has("X") || file$has("raw/X") || file$has("raw.X")) anndata_import(file, layer, memory)
    else if (file$has("matrix") && file$has("col_attrs")) loom_import(file, layer, memory)
    else tenx_import(file, layer, memory)
  })
  if (!is.null(samples)) {
    abort_input("`samples` must not be given for HDF5 files, whose formats define the orientation.")
  }
  for (note in source$notes) weft_warn("import", note$message, note$i) # a child's warnings are not heard
  source
}

no_layer <- function(layer) {
  if (!is.null(layer)) abort_input("`layer` must only be given if `x` is an .h5ad or .loom file or a Zarr folder.")
}

# ---- 10x Genomics, loom ----

# One group with the matrix of features and cells: "matrix", or before version 3 one named by the genome.
tenx_import <- function(file, layer, memory) {
  no_layer(layer)
  groups <- if (file$has("matrix")) "matrix" else file$members("/")
  groups <- Filter(function(g) file$is_group(g) && file$has(paste0(g, "/indptr")), groups)
  if (!length(groups)) wrong_file(file, "It contains no group with a matrix.")
  if (length(groups) > 1L) wrong_file(file, sprintf("It contains several matrices: %s.", label_some(groups)))
  at <- function(part) paste0(groups, "/", part)
  d <- if (file$has(at("shape"))) as.double(file$read(at("shape")))
  source <- compressed_parts(file, groups, rev(d), TRUE, memory)
  texts <- function(part, count) {
    if (!file$has(at(part))) return(NULL)
    out <- as.character(file$read(at(part)))
    if (length(out) != count) {
      wrong_file(file, sprintf("\"%s\" has %d strings instead of %.0f.", at(part), length(out), count))
    }
    out
  }
  features <- function(part) texts(part, source$p)
  source$row_names <- texts("barcodes", source$n)
  source$names <- features("features/id") %||% features("genes")
  data <- list(symbol = features("features/name") %||% features("gene_names"), type = features("features/feature_type"))
  source$column_data <- data[!vapply(data, is.null, NA)]
  source
}

# /matrix has genes in its rows; layers lie in /layers.
loom_import <- function(file, layer, memory) {
  where <- if (is.null(layer)) "matrix" else if (is_word(layer)) paste0("layers/", layer)
  if (is.null(where) || !file$has(where)) {
    abort_input("`layer` must be the name of a layer in the file.", x = paste0("It is ", describe(layer), "."))
  }
  source <- dense_import(file, where, FALSE, memory)
  table <- function(group, count) {
    columns <- lapply(stats::setNames(nm = file$members(group)), function(name) {
      column <- file$read(paste0(group, "/", name))
      if (is.atomic(column) && length(dim(column)) <= 1L && length(column) == count) plain_column(column)
    })
    columns[!vapply(columns, is.null, NA)]
  }
  source$row_data <- table("col_attrs", source$n)
  source$column_data <- table("row_attrs", source$p)
  source$row_names <- source$row_data$CellID
  source$names <- source$column_data$Gene %||% source$column_data$Accession
  source
}
