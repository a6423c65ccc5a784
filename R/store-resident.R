# A store whose blocks stay on devices, as weft_upload() makes it of a weft_store(). Components, moments and sums of
# counts are computed there (src/core/device/resident.h); everything else is read from the file, as of any store.
# `resident`: list(pointer, devices), the device of each part of the rows, which may come twice.

upload_store <- function(x, devices = NULL, block_size = 2^28) {
  why <- cuda_missing()
  if (!is.null(why)) {
    weft_abort("device", "A store can only be uploaded to a CUDA device.", x = paste0("CUDA: ", why, "."),
               i = "`pca()` and `gene_cells()` read the file of a store; `weft_sitrep()` shows the devices.")
  }
  parts <- whole_store(x)
  file <- open_store(x)
  if (file$about$n < 1 || file$about$p < 1) {
    abort_input("`x` must have at least one row and one column.",
                x = sprintf("It has %.0f rows and %.0f columns.", file$about$n, file$about$p))
  }
  on <- devices_for(devices, "cuda")
  check_store_fits(sum(file$about$block_bytes), on)
  runs <- resident_runs(file, file$about$block_values * parts$recipe$share, length(on), block_size)
  on <- on[seq_len(max(runs$part))]
  pointer <- .Call(C_weft_panels_begin, c(length(runs$starts), file$about$n, file$about$p), run_control())
  parts$live <- list2env(mget(c("pointer", "about"), parts$live), parent = emptyenv())
  parts$resident <- list(pointer = pointer, devices = on)
  out <- structure(parts, class = c("weft_resident_store", "weft_store"))
  memory_errors(tryCatch({
    send_runs(file, runs, pointer, on)
    column_moments(kept_source(out, "x"), NULL) # unpacks everything once, which finds damage
  }, error = function(e) {
    .Call(C_weft_panels_free, pointer)
    if (inherits(e, "weft_error_internal")) file_sums(x) # which names the block that is damaged
    stop(e)
  }))
  out
}

# The same runs of blocks that a device reads from the file, or shorter ones where devices are more; and the part of the
# rows, from 1, that each belongs to.
resident_runs <- function(file, values, devices, block_size) {
  most <- min(block_size / 16, device_free() / 100)
  if (devices > 1L) most <- min(most, ceiling(sum(values) / devices))
  runs <- store_runs(file, values, most)
  ends <- cumsum(file$about$rows)
  held <- as.vector(tapply(values, findInterval(ends - file$about$rows, runs$starts), sum))
  part <- pmax(1, ceiling((cumsum(held) - held / 2) / max(sum(held), 1) * devices))
  c(runs, list(part = match(part, unique(part))))
}

send_runs <- function(file, runs, pointer, on) {
  room <- NULL
  reading <- run_control(progress = FALSE)
  nothing <- list(size = NULL, log1p = FALSE)
  for (i in seq_along(runs$starts)) {
    room <- .Call(C_weft_store_packed, file$pointer, as.double(c(runs$starts[i], runs$ends[i])), NULL, nothing,
                  as.double(.Machine$integer.max), room, reading)
    .Call(C_weft_panels_add, pointer, room, as.double(runs$part[i] - 1),
          run_control("cuda", progress = FALSE, devices = on[runs$part[i]]))
  }
}

# Blocks take the same bytes on a device as in the file.
check_store_fits <- function(bytes, on) {
  limit <- getOption("weft.device_memory", 0)
  free <- weft_devices()$available[unique(on) + 1]
  if (limit > 0) free <- pmin(free, limit)
  each <- table(factor(on, unique(on))) / length(on)
  short <- which(bytes * each > free)
  if (!length(short)) return(invisible())
  weft_abort("memory", "The blocks of the store must fit into the memory of the devices.",
             x = sprintf("Device %d must hold %s, but only %s are free.", unique(on)[short[1L]],
                         bytes_text(bytes * each[[short[1L]]]), bytes_text(free[short[1L]])),
             i = "Use more `devices`, or give the store itself to `pca()`, which then reads it in blocks.")
}

is_resident_store <- function(x) inherits(x, "weft_resident_store")

# list(starts, part, values, bytes, devices, pointer) of a store that is on its devices, or NULL.
panels_of <- function(x) {
  parts <- whole_store(x)
  kept <- parts$resident
  about <- if (is.list(kept) && typeof(kept$pointer) == "externalptr") .Call(C_weft_panels_about, kept$pointer)
  fine <- !is.null(about) && identical(c(about$n, about$p), c(parts$n, parts$p)) &&
    is_numbers(kept$devices, max(about$part, -1) + 1, min = 0, whole = TRUE)
  if (fine) c(about, kept)
}

there_or_stop <- function(x, arg) {
  panels_of(x) %||% abort_input(sprintf("`%s` must be on its devices.", arg),
                                x = "It was freed or belongs to another R session.",
                                i = "Upload the store again with `weft_upload()`.")
}

# A source of pca() whose blocks are on `devices`. `row_parts`: how many rows each device has.
kept_source <- function(x, arg) {
  kept <- there_or_stop(x, arg)
  parts <- unclass(x)
  names <- dimnames(x)
  first <- kept$starts[!duplicated(kept$part)]
  list(kind = "stored", n = parts$n, p = as.double(dim(x)[2L]), values = parts$values * parts$recipe$share,
       starts = kept$starts, by_row = TRUE, row_names = names[[1L]], names = names[[2L]], data = NULL,
       packed = list(pointer = kept$pointer, columns = zero_based(parts$recipe$columns), size = parts$recipe$size,
                     log1p = parts$recipe$log1p, part = NULL),
       devices = as.integer(kept$devices), row_parts = diff(c(first, parts$n)), live = parts$live)
}

# f(source, rows, control) of each part of the rows, on its device.
each_part <- function(source, f) {
  ends <- cumsum(source$row_parts)
  lapply(seq_along(ends), function(r) {
    part <- source
    if (length(ends) > 1L) part$packed["part"] <- list(r - 1)
    part$n <- source$row_parts[r]
    f(part, if (length(ends) > 1L) seq.int(ends[r] - part$n + 1, ends[r]) else TRUE,
      run_control("cuda", progress = FALSE, devices = source$devices[r]))
  })
}

# Those without weights are kept for the last two recipes: a workflow asks for them more than once.
kept_moments <- function(source, weights) {
  key <- source$packed[c("columns", "size", "log1p")]
  if (is.null(weights)) {
    for (known in source$live$moments) if (identical(known$key, key)) return(known$moments)
  }
  found <- joint_moments(each_part(source, function(part, rows, control) {
    .Call(C_weft_pca_moments, native_source(part), weights[rows], control)
  }))
  if (is.null(weights)) {
    source$live$moments <- utils::head(c(list(list(key = key, moments = found)), source$live$moments), 2L)
  }
  found
}

# X v, or X'v, of the values as the recipe has them.
kept_product <- function(source, v, transposed = FALSE) {
  plain <- list(center = numeric(source$p), factor = rep(1, source$p), row = NULL, missing = NULL, single = FALSE,
                own = FALSE)
  found <- each_part(source, function(part, rows, control) {
    .Call(C_weft_pca_times, native_source(part), plain, if (transposed) v[rows, , drop = FALSE] else v, transposed,
          control)
  })
  if (transposed) Reduce(`+`, found) else do.call(rbind, found)
}

# Whether its sums are computed on the devices: of counts, none of which is missing or below 0. Sums of others are read
# from the file.
sums_on_devices <- function(x) is_resident_store(x) && all(open_store(x)$about$kinds == "whole")

# As file_sums(), without what is counted by rows; 0 is in the range.
kept_sums <- function(x) {
  source <- kept_source(x, "x")
  list(columns = drop(kept_product(source, matrix(1, source$n, 1L), transposed = TRUE)),
       column_counts = .Call(C_weft_panels_counts, source$packed$pointer, source$packed$columns),
       rows = drop(kept_product(source, matrix(1, source$p, 1L))), row_counts = NULL, range = c(0, NA))
}

# The devices of a decomposition, which are those that have the rows.
devices_of_kept <- function(run, source, method, na) {
  on <- source$devices
  if (is.numeric(run$devices) && !identical(as.integer(run$devices), on)) {
    abort_input("`devices` must be those that `x` was uploaded to, or NULL.",
                x = sprintf("`x` is on %s.", label_some(sprintf("device %d", on))))
  }
  if (length(on) == 1L) return(on)
  why <- if (!method %in% c("auto", "krylov", "gram")) sprintf("`method` is \"%s\".", method)
  else if (na != "fail") sprintf("`na` is \"%s\".", na)
  else if (!is.null(source$ranks)) "`weft_run(ranks = TRUE)` uses one device per rank."
  if (is.null(why)) return(on)
  abort_input("A store on several devices needs method \"krylov\" or \"gram\" and `na = \"fail\"`.", x = why,
              i = "Upload it to one device.")
}

#' @export
print.weft_resident_store <- function(x, ...) {
  NextMethod()
  kept <- panels_of(x)
  cat(if (is.null(kept)) "not on a device: freed, or from another session\n"
      else sprintf("%s on device %s\n", bytes_text(sum(kept$bytes)), toString(unique(kept$devices))))
  invisible(x)
}
