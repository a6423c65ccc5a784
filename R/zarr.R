# Zarr folders for weft_import(), in the versions 2 and 3 that AnnData writes. Each group and each array is a folder
# with metadata in JSON (.zgroup, .zarray and .zattrs, or zarr.json), and each chunk of an array is a file. Nothing in
# them is trusted; C decodes the chunks (src/store/import/codecs.c). R/store-anndata.R explains the functions of a file.

max_metadata <- 2^26 # bytes of a file of metadata
max_chunk <- 2^31 - 1 # bytes of a chunk

zarr_import <- function(path, layer, memory) {
  source <- anndata_import(zarr_file(path), layer, memory)
  for (note in source$notes) weft_warn("import", note$message, note$i)
  source
}

is_zarr <- function(path) any(file.exists(file.path(path, c("zarr.json", ".zgroup", ".zarray"))))

zarr_file <- function(path) {
  nodes <- new.env(parent = emptyenv())
  cache <- new.env(parent = emptyenv()) # the last chunk of each array
  file <- list(path = path, name = basename(path), what = "a Zarr folder of AnnData")
  version <- if (file.exists(file.path(path, "zarr.json"))) 3L else 2L
  node <- function(name) {
    key <- paste0("/", name)
    if (is.null(nodes[[key]])) nodes[[key]] <- list(zarr_node(file, name, version))
    nodes[[key]][[1L]]
  }
  array_at <- function(name) {
    found <- node(name)
    if (!identical(found$kind, "array")) wrong_file(file, sprintf("\"%s\" is not an array.", name))
    found
  }
  c(file, list(
    said = function(code, name) code,
    has = function(name) !is.null(node(name)),
    is_group = function(name) identical(node(name)$kind, "group"),
    is_known = function(name) is.null(zarr_unknown(array_at(name))),
    size = function(name) rev(array_at(name)$shape),
    attribute = function(name, which) plain_values(node(name)$attributes[[which]]),
    members = function(name) {
      inside <- list.dirs(file.path(path, name), full.names = FALSE, recursive = FALSE)
      Filter(function(m) !is.null(node(paste0(name, "/", m))), inside)
    },
    read = function(name, first = NULL, count = NULL) {
      x <- array_at(name)
      problem <- zarr_unknown(x)
      if (!is.null(problem)) wrong_file(file, sprintf("\"%s\" %s, which weft cannot read.", name, problem))
      size <- rev(x$shape)
      first <- (first %||% rep(1, length(size))) - 1
      zarr_region(file, name, x, first, count %||% (size - first), cache)
    }
  ))
}

# ---- metadata ----

# NULL where there is none. Steps of a path that lead elsewhere are names of nothing.
zarr_node <- function(file, name, version) {
  steps <- strsplit(name, "/", fixed = TRUE)[[1L]]
  if (!all(nzchar(steps)) || any(steps %in% c(".", "..")) || any(grepl("[\\\\\\x01-\\x1f]", steps, perl = TRUE))) {
    return(NULL)
  }
  read <- function(part) zarr_json(file, paste(c(steps, part), collapse = "/"))
  if (version == 3L) {
    about <- read("zarr.json")
    if (is.null(about)) return(NULL)
    attributes <- about$attributes
  } else {
    about <- read(".zarray") %||% read(".zgroup")
    if (is.null(about)) return(NULL)
    attributes <- read(".zattrs")
  }
  if (!is.list(about)) wrong_file(file, sprintf("\"%s\" has metadata of unknown form.", name))
  if (!is.null(attributes) && !is.list(attributes)) attributes <- NULL
  kind <- if (version == 2L) { if (is.null(about$shape)) "group" else "array" } else about$node_type
  if (identical(kind, "group")) return(list(kind = "group", attributes = attributes))
  if (!identical(kind, "array")) wrong_file(file, sprintf("\"%s\" is neither a group nor an array.", name))
  found <- if (version == 3L) zarr_array_3(about) else zarr_array_2(about)
  d <- length(found$shape)
  fits <- length(found$chunks) == d && is_numbers(found$shape, d, min = 0, max = 2^53, whole = TRUE) &&
    is_numbers(found$chunks, d, min = 1, max = 2^53, whole = TRUE)
  if (!fits || !d) wrong_file(file, sprintf("\"%s\" has no shape.", name))
  c(found, list(kind = "array", attributes = attributes))
}

# NULL where there is no such file.
zarr_json <- function(file, part) {
  path <- file.path(file$path, part)
  if (!file.exists(path)) return(NULL)
  bytes <- zarr_bytes(path, part, most = max_metadata)
  refuse <- function(what) wrong_file(file, sprintf("\"%s\" %s.", part, what))
  if (any(bytes == 0)) refuse("is not text")
  text <- rawToChar(bytes)
  Encoding(text) <- "UTF-8"
  tryCatch(parse_json(text), weft_json = function(e) refuse(conditionMessage(e)))
}

# Arrays of JSON that hold single values of one kind, as a vector.
plain_values <- function(x) {
  if (!is.list(x)) return(x)
  single <- all(vapply(x, function(v) is.atomic(v) && length(v) == 1L, NA))
  if (single && length(x)) unlist(x, use.names = FALSE) else if (!length(x)) character() else x
}

numbers_of <- function(x) {
  x <- plain_values(x)
  if (is.numeric(x)) as.double(x) else if (length(x)) NULL else double()
}

# An array as list(shape, chunks, type, shard, big, codecs, texts, fill, turned, problem, key). `codecs` in the order in
# which they are undone; `type` NULL and `problem` where something is unknown. key(place) is the file of a chunk, or of
# the several chunks of a shard.
zarr_array_2 <- function(about) {
  separator <- if (identical(about$dimension_separator, "/")) "/" else "."
  type <- zarr_type_2(about$dtype)
  filters <- lapply(about$filters, function(f) f$id)
  codec <- about$compressor$id
  texts <- identical(filters, list("vlen-utf8"))
  problem <- if (is.null(type) && !texts) sprintf("has values of type %s", describe(about$dtype))
             else if (length(filters) && !texts) "has filters"
             else if (!is.null(codec) && !isTRUE(codec %in% zarr_codecs)) {
               sprintf("is compressed by %s", describe(codec))
             }
  list(shape = numbers_of(about$shape), chunks = numbers_of(about$chunks), type = type$name, big = isTRUE(type$big),
       codecs = as.character(codec), texts = texts, fill = about$fill_value, turned = identical(about$order, "F"),
       problem = problem, key = function(place) paste(chunk_numbers(place), collapse = separator))
}

zarr_codecs <- c("blosc", "zstd", "zlib", "gzip", "lz4", "crc32c")

# numpy's "<f4" and others.
zarr_type_2 <- function(type) {
  if (!is_word(type) || !grepl("^[<>|=][biuf][1248]$", type)) return(NULL)
  name <- switch(substring(type, 2L), b1 = "bool", i1 = "int8", i2 = "int16", i4 = "int32", i8 = "int64", u1 = "uint8",
                 u2 = "uint16", u4 = "uint32", u8 = "uint64", f4 = "float32", f8 = "float64")
  if (is.null(name)) NULL else list(name = name, big = startsWith(type, ">"))
}

# Codecs of version 3, as list(name, codecs), each with a name.
named_codecs <- function(codecs) {
  codecs <- lapply(codecs, function(codec) if (is.list(codec)) codec else list(name = codec))
  list(name = vapply(codecs, function(codec) if (is_word(codec$name)) codec$name else "", ""), codecs = codecs)
}

zarr_array_3 <- function(about) {
  of <- named_codecs(about$codecs)
  chunks <- numbers_of(about$chunk_grid$configuration$chunk_shape)
  shard <- NULL
  if (identical(of$name, "sharding_indexed")) { # a file holds several chunks
    about_shard <- of$codecs[[1L]]$configuration
    of <- named_codecs(about_shard$codecs)
    whole <- chunks
    chunks <- numbers_of(about_shard$chunk_shape)
    shard <- list(per = if (length(chunks) == length(whole)) whole / chunks,
                  first = identical(about_shard$index_location, "start"),
                  index = named_codecs(about_shard$index_codecs)$name)
  }
  type <- if (is_word(about$data_type) && about$data_type %in% names(zarr_sizes)) about$data_type
  texts <- identical(about$data_type, "string") && "vlen-utf8" %in% of$name
  order <- if ("transpose" %in% of$name) numbers_of(of$codecs[[match("transpose", of$name)]]$configuration$order)
  turned <- identical(order, rev(seq_along(about$shape)) - 1)
  keys <- about$chunk_key_encoding
  separator <- keys$configuration$separator %||% if (identical(keys$name, "v2")) "." else "/"
  bytes <- of$codecs[[match("bytes", of$name, 1L)]]
  problem <- if (is.null(type) && !texts) sprintf("has values of type %s", describe(about$data_type))
             else if (!all(of$name %in% c("bytes", "endian", "vlen-utf8", "transpose", zarr_codecs))) {
               sprintf("has chunks of type %s", label_some(of$name))
             }
             else if (!is.null(order) && !turned && !identical(order, seq_along(about$shape) - 1)) {
               "has transposed chunks"
             }
             else if (!identical(about$chunk_grid$name, "regular")) "has chunks of several sizes"
             else if (!isTRUE(separator %in% c(".", "/")) || !isTRUE(keys$name %in% c("default", "v2"))) {
               "has chunks with unknown names"
             }
             else shard_problem(shard)
  list(shape = numbers_of(about$shape), chunks = chunks, type = type, shard = shard,
       big = identical(bytes$configuration$endian, "big"), codecs = rev(of$name[of$name %in% zarr_codecs]),
       texts = texts, fill = about$fill_value, turned = turned, problem = problem,
       key = function(place) {
         paste(c(if (identical(keys$name, "default")) "c", chunk_numbers(place)), collapse = separator)
       })
}

# NULL, or why a file of several chunks cannot be read.
shard_problem <- function(shard) {
  if (is.null(shard)) return(NULL)
  if (!length(shard$per) || !is_numbers(shard$per, length(shard$per), min = 1, max = 1e6, whole = TRUE) ||
      prod(shard$per) > 1e7) {
    return("has shards that are not a multiple of the chunks")
  }
  if (!identical(shard$index, "bytes") && !identical(shard$index, c("bytes", "crc32c"))) "has shards of unknown type"
}

zarr_sizes <- c(bool = 1, int8 = 1, uint8 = 1, int16 = 2, uint16 = 2, int32 = 4, uint32 = 4, int64 = 8, uint64 = 8,
                float32 = 4, float64 = 8)

# NULL, or why an array cannot be read, as what follows its name.
zarr_unknown <- function(x) x$problem

chunk_numbers <- function(x) format(x, scientific = FALSE, trim = TRUE)

# What stands where there is no file for a chunk.
zarr_fill <- function(x) {
  fill <- x$fill
  if (x$texts) return(if (is_word(fill)) fill else "")
  if (identical(x$type, "bool")) return(isTRUE(fill) || identical(fill, 1))
  if (is.character(fill)) fill <- switch(fill, "NaN" = NaN, "Infinity" = Inf, "-Infinity" = -Inf)
  if (is.numeric(fill) && length(fill) == 1L) fill else 0
}

# ---- chunks ----

# Bytes of a file, after codecs were undone.
zarr_bytes <- function(path, label, codecs = character(), whole = NA_real_, most = max_chunk, first = 0,
                       size = NA_real_) {
  memory_errors(.Call(C_weft_store_bytes, list(path = path.expand(path), label = label, first = first, size = size,
                                               codecs = codecs, whole = whole, most = most), run_control()))
}

# Part of an array: `first` and `count` in R's order of dimensions, which is the file's reversed, from 0.
zarr_region <- function(file, name, x, first, count, cache) {
  chunks <- rev(x$chunks)
  if (any(first < 0 | count < 0 | first + count > rev(x$shape))) {
    wrong_file(file, sprintf("\"%s\" has fewer values than required.", name))
  }
  if (prod(count) > 2^40) wrong_file(file, sprintf("\"%s\" is too large.", name))
  places <- lapply(seq_along(count), function(k) {
    if (!count[k]) return(numeric())
    seq(floor(first[k] / chunks[k]), floor((first[k] + count[k] - 1) / chunks[k]))
  })
  if (prod(lengths(places)) == 1) { # the usual case of vectors
    out <- zarr_part(file, name, x, vapply(places, `[`, 0, 1L), first, count, cache)
    return(if (length(count) == 1L) as.vector(out$values) else out$values)
  }
  out <- array(zarr_fill(x), count)
  steps <- lengths(places)
  for (k in seq_len(prod(steps))) {
    .Call(C_weft_file_pause)
    at <- as.vector(arrayInd(k, steps))
    part <- zarr_part(file, name, x, mapply(`[`, places, at), first, count, cache)
    at <- part$ranges
    if (length(at) == 1L) out[at[[1L]]] <- part$values
    else if (length(at) == 2L) out[at[[1L]], at[[2L]]] <- part$values
    else out <- do.call(`[<-`, c(list(out), at, list(value = part$values)))
  }
  if (length(count) == 1L) as.vector(out) else out
}

# What the chunk at `place` has of a region: list(values, ranges), ranges in the region, one per dimension.
zarr_part <- function(file, name, x, place, first, count, cache) {
  chunks <- rev(x$chunks)
  begin <- pmax(first, place * chunks)
  end <- pmin(first + count, (place + 1) * chunks)
  chunk <- zarr_chunk(file, name, x, place, cache)
  inside <- lapply(seq_along(place), function(k) seq(begin[k], end[k] - 1) - place[k] * chunks[k] + 1)
  whole <- all(end - begin == chunks)
  values <- if (whole) chunk
            else if (length(place) == 1L) chunk[inside[[1L]]]
            else do.call(`[`, c(list(chunk), inside, list(drop = FALSE)))
  list(values = values, ranges = lapply(seq_along(place), function(k) seq(begin[k], end[k] - 1) - first[k] + 1))
}

# Where a chunk lies: list(path, label, first, size), or NULL where it is nowhere. `place` is in the file's order.
zarr_find <- function(file, name, x, place, cache) {
  in_file <- if (is.null(x$shard)) place else place %/% x$shard$per
  part <- paste(name, x$key(in_file), sep = "/")
  path <- file.path(file$path, part)
  if (!file.exists(path) && !isTRUE(Sys.readlink(path) != "")) return(NULL)
  whole <- list(path = path, label = part, first = 0, size = NA_real_)
  if (is.null(x$shard)) return(whole)
  index <- zarr_index(whole, x$shard, cache)
  inside <- place %% x$shard$per
  number <- sum(inside * rev(cumprod(c(1, rev(x$shard$per)[-length(inside)])))) # the last one counts fastest
  begin <- index[2 * number + 1]
  size <- index[2 * number + 2]
  if (begin > 2^53 || size > 2^53) return(NULL)
  utils::modifyList(whole, list(first = begin, size = size))
}

# Where each chunk of a shard begins and how many bytes it has. That of the last shard is kept.
zarr_index <- function(whole, shard, cache) {
  if (identical(cache$index$path, whole$path)) return(cache$index$numbers)
  sum <- "crc32c" %in% shard$index
  size <- 16 * prod(shard$per) + 4 * sum
  first <- if (shard$first) 0 else max(0, file.size(whole$path) - size)
  bytes <- zarr_bytes(whole$path, whole$label, if (sum) "crc32c" else character(), size - 4 * sum, first = first,
                      size = size)
  numbers <- .Call(C_weft_store_numbers, bytes, "uint64", FALSE)
  cache$index <- list(path = whole$path, numbers = numbers)
  numbers
}

# The values of a chunk in R's order of dimensions. The last one of each array is kept.
zarr_chunk <- function(file, name, x, place, cache) {
  slot <- paste0("/", name)
  if (identical(cache[[slot]]$place, place)) return(cache[[slot]]$values)
  cache[[slot]] <- NULL
  number <- prod(x$chunks)
  if (number > max_chunk / 8) wrong_file(file, sprintf("\"%s\" has chunks of %.0f values.", name, number))
  at <- zarr_find(file, name, x, rev(place), cache)
  if (is.null(at)) values <- rep(zarr_fill(x), number)
  else if (x$texts) values <- zarr_texts(file, at, x, number)
  else {
    whole <- number * zarr_sizes[[x$type]]
    if (whole > max_chunk) wrong_file(file, sprintf("\"%s\" has chunks of %.0f bytes.", name, whole))
    bytes <- zarr_bytes(at$path, at$label, x$codecs, whole, first = at$first, size = at$size)
    type <- if (x$type == "bool") "uint8" else x$type
    values <- .Call(C_weft_store_numbers, bytes, type, x$big)
    if (x$type == "bool") values <- values != 0L
  }
  d <- x$chunks
  if (length(d) > 1L) values <- if (x$turned) aperm(array(values, d)) else array(values, rev(d))
  cache[[slot]] <- list(place = place, values = values)
  values
}

zarr_texts <- function(file, at, x, number) {
  texts <- .Call(C_weft_store_texts, zarr_bytes(at$path, at$label, x$codecs, first = at$first, size = at$size))
  if (length(texts) != number || is.null(texts)) {
    wrong_file(file, sprintf("\"%s\" does not contain %.0f strings.", at$label, number))
  }
  texts
}
