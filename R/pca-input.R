# From what users have to a source of numbers for src/pca: list(kind, n, p, data, starts, by_row, row_names, names).
# `kind`:
#   "dense"     a double matrix
#   "sparse"    a list of dgCMatrix, blocks of rows
#   "blocks"    a function(i) that reads block i of rows or columns
#   "stored"    a function(i) that reads block i of rows as the slots p, i, x of a dgCMatrix; `values`: how many in all;
#               for_device() makes it a source in larger blocks with packed(i), which reads one for a device to unpack;
#               with `devices`, which have the blocks, packed says which (kept_source())
#   "resident"  the pointer of a weft_upload() handle
#   "genotypes" what genotype_columns() makes of a plink_file(); `missing`: what stands for missing ones, by columns

pca_source <- function(x, assay = NULL, block_size = 2^28, arg = "x", threads = NULL) {
  given <- as_source(x, assay, arg, stored = TRUE)
  x <- given$data
  source <- switch(given$kind,
    store = store_source(x, block_size, arg, threads), resident = resident_source(x, arg),
    file = file_source(x, block_size),
    genotypes = plink_source(x, block_size),
    delayed = delayed_source(x, block_size),
    frame = dense_source(frame_matrix(x, arg)), blocks = sparse_source(x, arg), sparse = sparse_source(list(x), arg),
    matrix = if (is.numeric(x) || is.logical(x)) dense_source(x)
  )
  if (is.null(source)) abort_input(
    sprintf(paste("`%s` must be a numeric matrix or data frame, a sparse Matrix or a list of them (blocks of rows), a",
                  "SummarizedExperiment, a DelayedMatrix, a weft_store(), a weft_file(), a plink_file() or a",
                  "weft_upload() handle."),
            arg),
    x = paste0("It is ", describe(x), "."), i = if (is.numeric(x)) "For one feature, use `cbind(feature = x)`."
  )
  if (source$n < 1 || source$p < 1) {
    abort_input(sprintf("`%s` must have at least one row and one column.", arg),
                x = sprintf("It has %.0f rows and %.0f columns.", source$n, source$p))
  }
  most <- .Machine$integer.max # of the sides of a matrix of scores or loadings
  if (source$n > most || source$p > most) {
    abort_input(sprintf("`%s` must have at most %d rows and columns.", arg, most),
                x = sprintf("It has %.0f rows and %.0f columns.", source$n, source$p))
  }
  source
}

dense_source <- function(x) {
  if (!is.double(x)) storage.mode(x) <- "double"
  list(kind = "dense", n = as.double(nrow(x)), p = as.double(ncol(x)), data = x, row_names = rownames(x),
       names = colnames(x))
}

frame_matrix <- function(x, arg) {
  for (j in seq_along(x)) {
    if (is.numeric(x[[j]]) && !is.object(x[[j]]) && is.null(dim(x[[j]]))) next
    abort_input(sprintf("Every column of `%s` must be numeric.", arg),
                x = sprintf("Column `%s` is %s.", names(x)[j], describe(x[[j]])),
                i = "Remove it, or convert it into numbers, for example with `model.matrix()`.")
  }
  as.matrix(x)
}

sparse_source <- function(blocks, arg) {
  blocks <- lapply(blocks, function(x) {
    if (!inherits(x, "dgCMatrix")) x <- methods::as(methods::as(methods::as(x, "dMatrix"), "generalMatrix"),
                                                    "CsparseMatrix")
    x
  })
  columns <- vapply(blocks, ncol, 0L)
  if (any(columns != columns[1L])) {
    abort_input(sprintf("The blocks of `%s` must have the same columns.", arg),
                x = sprintf("They have %s columns.", paste(unique(columns), collapse = ", ")))
  }
  rows <- as.double(vapply(blocks, nrow, 0L))
  names <- lapply(blocks, rownames)
  list(kind = "sparse", n = sum(rows), p = as.double(columns[1L]), data = unname(blocks),
       starts = cumsum(c(0, rows))[seq_along(rows)],
       by_row = TRUE, row_names = if (!any(vapply(names, is.null, NA))) unlist(names), names = colnames(blocks[[1L]]))
}

resident_source <- function(x, arg) {
  if (!is_resident(x)) {
    abort_input(sprintf("`%s` must be on the device.", arg), x = "It was freed or belongs to another R session.",
                i = "Create it again with `weft_upload()`.")
  }
  d <- as.double(dim(x))
  list(kind = "resident", n = d[1L], p = d[2L], data = x$pointer, row_names = dimnames(x)[[1L]],
       names = dimnames(x)[[2L]])
}

# What fits into `block_size` bytes is read once; else blocks are read again for each pass.
delayed_source <- function(x, block_size) {
  d <- as.double(dim(x))
  if (8 * prod(d) <= block_size) return(dense_source(as.matrix(x)))
  block_source(d[1L], d[2L], d[1L] >= d[2L], block_size, dimnames(x), function(range, by_row) {
    if (by_row) as.matrix(x[range, , drop = FALSE]) else as.matrix(x[, range, drop = FALSE])
  })
}

file_source <- function(x, block_size) {
  d <- as.double(dim(x))
  if (8 * prod(d) <= block_size) return(dense_source(as.matrix(x)))
  block_source(d[1L], d[2L], x$layout == "row", block_size, NULL, function(range, by_row) if (by_row) x[range, ]
               else x[, range])
}

# Genotypes that fit become numbers; others stay in the mapped file, two bits each.
plink_source <- function(x, block_size) {
  d <- as.double(dim(x))
  if (8 * prod(d) <= block_size) return(dense_source(as.matrix(x)))
  names <- dimnames(x)
  list(kind = "genotypes", n = d[1L], p = d[2L], data = unclass(genotype_columns(x)), row_names = names[[1L]],
       names = names[[2L]])
}

# A store that fits is a sparse matrix; else runs of its blocks are read again for each pass. What data() and packed()
# return is overwritten by their next call.
store_source <- function(x, block_size, arg, threads) {
  if (is_resident_store(x)) return(kept_source(x, arg))
  file <- open_store(x)
  recipe <- unclass(x)$recipe
  values <- file$about$block_values * recipe$share
  columns <- zero_based(recipe$columns)
  if (12 * sum(values) <= min(block_size, 12 * .Machine$integer.max)) {
    return(sparse_source(list(store_sparse(x)), arg))
  }
  control <- run_control(threads = threads, progress = FALSE)
  most <- as.double(.Machine$integer.max)
  names <- dimnames(x)
  by_runs <- function(runs, ...) {
    room <- list()
    list(kind = "stored", n = file$about$n, p = as.double(dim(x)[2L]), values = sum(values), starts = runs$starts,
         by_row = TRUE, row_names = names[[1L]], names = names[[2L]], data = function(i) {
           room <<- .Call(C_weft_store_select, file$pointer, as.double(seq(runs$starts[i], runs$ends[i] - 1)), columns,
                          file$recipe, most, room, control)
           room
         }, ...)
  }
  for_device <- function() { # values take some 2 bytes packed, and 26 there with what unpacking takes
    runs <- store_runs(file, values, min(block_size / 16, device_free() / 100))
    room <- NULL
    by_runs(runs, packed = function(i) {
      room <<- .Call(C_weft_store_packed, file$pointer, as.double(c(runs$starts[i], runs$ends[i])), columns,
                     file$recipe, most, room, control)
      room
    })
  }
  by_runs(store_runs(file, values, block_size / 4 / 12), for_device = for_device) # 12 bytes for each value
}

# Runs of a store's blocks with at most `most` of `values` (one number per block) each, or one block: list(starts,
# ends), rows from 0.
store_runs <- function(file, values, most) {
  most <- min(most, .Machine$integer.max)
  held <- 0
  begins <- vapply(seq_along(values), function(k) {
    fits <- k > 1L && held + values[k] <= most
    held <<- if (fits) held + values[k] else values[k]
    !fits
  }, NA)
  ends <- cumsum(file$about$rows)
  starts <- (ends - file$about$rows)[begins]
  list(starts = starts, ends = c(starts[-1L], sum(file$about$rows)))
}

block_source <- function(n, p, by_row, block_size, names, read) {
  most <- if (by_row) n else p
  at_once <- max(1, floor(block_size / 8 / (if (by_row) p else n)))
  starts <- seq(0, most - 1, by = at_once)
  list(kind = "blocks", n = n, p = p, starts = starts, by_row = by_row, row_names = names[[1L]], names = names[[2L]],
       data = function(i) {
         block <- tryCatch(read(seq(starts[i] + 1, min(starts[i] + at_once, most)), by_row), error = function(e) {
           abort_input(sprintf("Block %.0f of `x` could not be read.", i), x = conditionMessage(e))
         })
         storage.mode(block) <- "double"
         block
       })
}

# What src/pca/r/pca.c reads of a source.
native_source <- function(source) {
  list(kind = source$kind, n = source$n, p = source$p, data = source$data, packed = source$packed,
       starts = source$starts, by_row = isTRUE(source$by_row), ranks = source$ranks)
}

# Puts the mean of its column in the place of each missing value, in the source and in the moments of its columns, whose
# rows weigh `total`.
filled_by_mean <- function(source, moments, total) {
  if (source$kind == "dense") {
    source$data[is.na(source$data)] <- rep(moments$mean, moments$missing)
  } else if (source$kind == "genotypes") {
    source$missing <- moments$mean
  } else {
    abort_input("`na = \"mean\"` needs an ordinary matrix, a data frame or a `plink_file()`.",
                x = sprintf("`x` is %s.", kind_in_words(source$kind)))
  }
  moments$weight[] <- total
  moments$missing[] <- 0
  list(source = source, moments = moments)
}

kind_in_words <- function(kind) {
  c(sparse = "sparse", stored = "a store", blocks = "read in blocks", resident = "on the device",
    genotypes = "genotypes in a file")[[kind]]
}

column_moments <- function(source, weights, control = NULL) {
  if (!is.null(source$devices)) return(kept_moments(source, weights))
  .Call(C_weft_pca_moments, native_source(source), weights, control)
}

# ---- centre, scale and weights ----

check_weights <- function(x, count, arg) {
  if (is.null(x)) return(NULL)
  if (!is.numeric(x) || length(x) != count || anyNA(x) || any(x < 0 | is.infinite(x)) || !any(x > 0)) {
    abort_input(sprintf("`%s` must contain %.0f finite numbers of at least 0 that are not all 0.", arg, count),
                x = paste0("It is ", describe(x), "."))
  }
  as.double(x)
}

check_center <- function(x, p, arg) {
  x <- bare_scalar(x)
  if (is.logical(x) && length(x) == 1L && !is.na(x)) return(x)
  if (is.numeric(x) && length(x) == p && all(is.finite(x)) && (arg != "scale" || all(x > 0))) return(as.double(x))
  abort_input(sprintf("`%s` must be TRUE, FALSE or %.0f %s numbers (one per column).", arg, p,
                      if (arg == "scale") "positive" else "finite"), x = paste0("It is ", describe(x), "."))
}

check_scale <- function(x, p) {
  if (identical(bare_text(x), "allele")) return("allele")
  if (is.character(x)) abort_input(sprintf("`scale` must be TRUE, FALSE, \"allele\" or %.0f positive numbers.", p),
                                   x = paste0("It is ", describe(x), "."))
  check_center(x, p, "scale")
}

# The standard deviation of a count of alleles in Hardy-Weinberg proportions, by columns: with q the allele's frequency,
# sqrt(2 q (1 - q)). Monomorphic variants, which are 0 once they are centred, are divided by 1.
allele_scale <- function(moments, names) {
  wrong <- which(moments$mean < 0 | moments$mean > 2)
  if (length(wrong)) {
    abort_input("`scale = \"allele\"` is for counts of alleles, from 0 to 2.",
                x = sprintf("The mean of column `%s` is %s.", (names %||% wrong)[if (is.null(names)) 1L else wrong[1L]],
                            format(moments$mean[wrong[1L]])))
  }
  scale <- sqrt(moments$mean * (1 - moments$mean / 2))
  ifelse(scale > 0, scale, 1)
}

# The form in which the native code sees X: (x - center) * factor * row; see weft_pca_made in src/pca/pca.h. `scale`
# holds the columns' weights too, so that (x - center) / scale is what loadings belong to. `total`: rows, or the sum of
# their weights.
pca_form <- function(moments, center, scale, weights, col_weights, total) {
  as_form(.Call(C_weft_pca_form, moments[c("mean", "norm", "weight")], pca_scaling(center, scale, col_weights)),
          center, scale, weights, col_weights, total)
}

pca_scaling <- function(center, scale, col_weights) {
  list(centred = isTRUE(center), scaled = isTRUE(scale), center = if (is.numeric(center)) center,
       scale = if (is.numeric(scale)) scale, weights = col_weights)
}

as_form <- function(made, center, scale, weights, col_weights, total) {
  list(
    native = list(center = made$center, factor = made$factor, row = if (!is.null(weights)) sqrt(weights),
                  missing = NULL, single = FALSE, own = FALSE),
    center = if (isFALSE(center)) FALSE else made$center,
    scale = if (isFALSE(scale) && is.null(col_weights)) FALSE else made$divide,
    exponent = made$exponent, total = made$total, df = max(1, total - 1), constant = made$constant
  )
}

hypotenuse <- function(a, b) {
  most <- pmax(abs(a), abs(b))
  ifelse(most > 0, most * sqrt((a / most)^2 + (b / most)^2), 0)
}

random_key <- function(seed) {
  if (is.null(seed)) return(floor(stats::runif(2) * 2^32))
  seed <- check_number(seed, "seed", min = 0, max = 2^53, whole = TRUE)
  c(seed %/% 2^32, seed %% 2^32)
}
