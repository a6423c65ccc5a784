# Sparse cells: scores of what is stored, and halves that are unions of blocks of cells, so that products of all genes
# are counted once and nothing is made dense.

least_cells <- 1000L # of fewer samples a dense matrix is no burden
cell_blocks <- 50L

is_cells <- function(data) inherits(data, "dgCMatrix")

# What native code reads; nothing is copied.
sparse_parts <- function(data) list(starts = data@p, rows = data@i, values = data@x, n = nrow(data))

# As regulation_scores(), of values divided by `size` where that is given.
cell_scores <- function(data, size, control) {
  n <- nrow(data)
  most <- min(2047, floor(sqrt((2^31 - 1) / (n %/% 2))))
  parts <- sparse_parts(data)
  scale <- list(quantile = rank_quantiles(n), size = size, most = most)
  found <- .Call(C_weft_regulation_cell_scores, parts, scale, control)
  c(parts[c("starts", "rows", "n")], found)
}

# Scores of a thousand cells, dense: enough to see which genes are related to many.
some_cells <- function(input, control) {
  rows <- unique(as.integer(seq(1, input$n, length.out = min(input$n, 1000))))
  few <- as.matrix(input$data[rows, , drop = FALSE])
  regulation_scores(if (is.null(input$size)) few else few / input$size[rows], control)
}

# A number for every cell that depends on its values alone, wherever it is.
cell_names <- function(data) {
  some <- matrix(draws("normal", 2 * ncol(data), key = 1), ncol(data))
  as.matrix(data %*% some)
}

# As C_weft_regulation_halves(), of blocks: rows (blocks of every half, from 0), position, block_rows, blocks.
cell_halves <- function(named, how) {
  n <- nrow(named)
  blocks <- how$blocks
  block_rows <- n %/% blocks
  in_order <- .Call(C_weft_regulation_orders, named, list(count = 1, purpose = 2, key = how$key), how$host)
  position <- rep(-1L, n)
  used <- seq_len(blocks * block_rows)
  position[in_order[used] + 1L] <- used - 1L
  pairs <- how$resamples / 2
  place <- draws("uniform", blocks * pairs, key = how$key, stream = 5)
  chosen <- vapply(seq_len(pairs), function(k) order(place[(k - 1) * blocks + seq_len(blocks)]) - 1L, integer(blocks))
  rows <- rbind(chosen[seq_len(blocks / 2), , drop = FALSE], chosen[-seq_len(blocks / 2), , drop = FALSE])
  dim(rows) <- c(blocks / 2, how$resamples)
  plan <- list(half = 1, pairs = 0, copies = how$copies, key = how$key)
  partner <- .Call(C_weft_regulation_halves, named, plan, how$host)$partner
  list(rows = rows, partner = partner, position = position, block_rows = block_rows, blocks = blocks)
}

# ---- counts ----

# Cells have different depths. list(size: what each sample's values are divided by, or NULL; what: a sentence).
size_factors <- function(data, transform) {
  if (transform == "none" || transform == "auto" && !(is_cells(data) && has_counts(data@x))) return(NULL)
  low <- min(if (is_cells(data)) data@x else data, 0)
  if (low < 0) {
    abort_input("`transform = \"counts\"` needs non-negative values.", x = sprintf("The smallest value is %g.", low))
  }
  total <- if (is_cells(data)) Matrix::rowSums(data) else rowSums(data)
  if (!any(total > 0)) return(NULL)
  size <- ifelse(total > 0, total, 1)
  # ranks do not mind that `size` is not divided by its mean; sorted, the order of the samples does not change the mean
  list(size = size, relative = size / mean(sort(size)),
       what = "Counts were transformed to log2(1 + x / size factor); size factors are totals relative to their mean.")
}

# Whether these are whole numbers, judging by some of them.
has_counts <- function(values) {
  some <- values[unique(as.integer(seq(1, length(values), length.out = min(length(values), 1e6))))]
  length(some) > 0 && all(some >= 0 & some == round(some))
}
