# Single cells: from counts, sparse in memory or in a store, to variable genes, components, groups, metacells and marker
# genes. No step makes the counts dense: what is dense has a row per cell and a column per component, or a row per
# metacell.

cells_sampled <- 20000L # cells from which centres of groups, and the number of components, are found
cells_least <- 2000L    # gene_network() makes metacells of sparse counts of as many cells or more

#' Cluster single cells and make metacells
#'
#' `gene_cells()` processes counts of single cells: it selects variable genes, computes components, clusters the cells,
#' lists marker genes, and sums the counts of similar cells into metacells. Metacells have enough counts for networks.
#' The shortest call is `gene_cells(counts)`. [gene_network()] calls this function if its input is a store or a sparse
#' matrix with many cells.
#'
#' @section Steps:
#' 1. The size factor of a cell is its total divided by the mean total. Cells without counts are ignored.
#' 2. Genes: For counts divided by size factors, a local regression of log(variance / mean) on the logarithm of the mean
#'    gives the expected variance. The `genes` with the largest ratio of observed to expected variance are selected.
#' 3. Components: [pca()] of log(1 + count / size factor) of the selected genes, which are centred but not scaled. The
#'    number of `leading` components is determined in a sample of up to 20,000 cells. A component is used if its
#'    standard deviation exceeds the largest standard deviation of noise. The noise is the difference of two
#'    permutations of the values within genes, among cells with similar totals. If totals differ greatly, there is a
#'    component for them.
#' 4. Groups: The sampled cells are divided into up to 400 small clusters on the leading components (Lloyd's algorithm).
#'    Their centres are clustered by [irm()] for continuous values, which estimates the number of groups. Each cell is
#'    assigned to the group of the nearest centre. Groups are numbered by size. If no component is significant, all
#'    cells form one group.
#' 5. Metacells: Each group is divided into small clusters in the same way. Cells of a group with the same nearest
#'    centre, `class` and `batch` form a metacell if there are at least `min_cells` of them.
#' 6. Markers: The mutual information (in bits) between the detection of a gene and the group, and the group in which
#'    the gene is detected most often. There are no p-values, because the groups were derived from the same counts.
#'    Genes that were not used for the groups can be tested; see `vignette("hundred-thousand-cells")`.
#'
#' All data are read in blocks, so a store may be larger than the memory. The first three steps need four passes over
#' the data, and the last two steps need one pass. The scores of all cells must fit into the memory.
#'
#' @section Metacells as samples: Cells from the same animal or patient are not independent, and neither are their
#'   metacells. A test between metacells of two classes refers to these cells. If there are several donors, sum the
#'   counts by donor instead.
#'
#' @inheritParams gene_quality
#' @param x counts, with cells in rows: an imported [weft_store()], a sparse Matrix, a list of sparse matrices (blocks
#'   of cells), a matrix, or a SummarizedExperiment or SingleCellExperiment.
#' @param class,batch one category per cell, or the name of a column of `colData(x)` or [store_data()]. Each metacell
#'   contains cells of one class and batch. They are not used to find groups.
#' @param genes the number of genes to select, or their names.
#' @param k the maximum number of components.
#' @param metacells the approximate number of metacells. By default, there is one metacell for every 50 cells, and at
#'   most 400.
#' @param max_groups the maximum number of groups.
#' @param control a list of rarely used settings:
#'   * `leading`: the number of components that are used. By default, it is estimated from the data.
#'   * `min_cells`: the minimum number of cells in a metacell.
#'   * `sweeps`: see [irm()].
#'   * `block_size`: see [pca()].
#' @param seed a whole number. By default, random numbers depend on R's generator.
#' @param run see [weft_run()].
#' @return An object of class `weft_cells`. `as.matrix()` returns its `counts`, and functions for matrices of samples by
#'   genes accept the object. It is a list with these elements:
#'   * `group`, `metacell`: the group and the metacell of each cell (NA for none).
#'   * `genes`: a data frame with the columns `gene`, `mean`, `variance`, `excess` (over the expected variance),
#'     `chosen` and, if known, `symbol` and `description`.
#'   * `components`: a result of [pca()] for the cells with counts, with `leading`. Cells without counts have the scores
#'     of a cell of zeros and a weight of 0.
#'   * `markers`: a sorted data frame with the columns `gene`, `group`, `information`, `share` (the proportion of cells
#'     of the group in which the gene was detected) and `elsewhere`.
#'   * `metacells`: a data frame with the columns `cells`, `group` and, if given, `class` and `batch`.
#'   * `counts`: a matrix of metacells by genes. `size`: the size factors of the cells. `seed`: the seed.
#' @seealso [gene_network()], [regulation()], [weft_import()]
#' @export
#' @examples
#' type <- rep(1:3, each = 100)
#' rate <- matrix(0.3, 300, 60)
#' for (t in 1:3) rate[type == t, 10 * t + 1:10] <- 3
#' counts <- matrix(rpois(length(rate), rate), 300, dimnames = list(NULL, paste0("gene", 1:60)))
#' cells <- gene_cells(Matrix::Matrix(counts, sparse = TRUE), seed = 1)
#' cells
#' table(cells$group, type)
#' head(cells$markers)
gene_cells <- function(x, class = NULL, batch = NULL, assay = NULL, genes = 2000, k = 30, metacells = NULL,
                       max_groups = 60, control = list(), seed = NULL, run = NULL, ...) {
  run <- as_run(run)
  control <- check_control(control, gene_cells_control)
  check_dots(..., .control = gene_cells_control)
  need_args("x")
  need_package("Matrix", "`gene_cells()`")
  cells <- cells_input(x, assay, check_number(control$block_size, "block_size", min = 8))
  labels <- cell_labels(list(class = class, batch = batch), x, cells)
  if (missing(k)) k <- min(k, cells$n, cells$p)
  k <- check_number(k, "k", min = 1, max = min(cells$n, cells$p), whole = TRUE)
  leading <- if (!is.null(control$leading)) check_number(control$leading, "leading", min = 1, max = k, whole = TRUE)
  if (!is.null(metacells)) metacells <- check_number(metacells, "metacells", min = 1, max = 1e5, whole = TRUE)
  min_cells <- check_number(control$min_cells, "min_cells", min = 1, whole = TRUE)
  max_groups <- check_number(max_groups, "max_groups", min = 1, max = 1e4, whole = TRUE)
  seed <- if (is.null(seed)) floor(stats::runif(1L) * 2^31)
          else check_number(seed, "seed", min = 0, max = 2^31, whole = TRUE)
  cells <- cell_sizes(cells)
  table <- variable_genes(cells, genes, run$threads)
  if (sum(table$chosen) < 2L) abort_input("At least two genes must vary.", i = "Are these counts of several cells?")
  for (name in c("symbol", "description")) {
    table[[name]] <- known_column(x, if (name == "symbol") symbol_columns else description_columns)
  }
  data <- normalised_cells(cells, table$chosen)
  k <- min(k, sum(table$chosen), sum(cells$size > 0))
  fit <- pca_of_cells(data, k, cells$size > 0, seed = seed, run = run,
                      control = list(block_size = control$block_size))
  some <- some_cells_of(cells, seed)
  if (is.null(leading)) {
    beyond <- components_beyond_chance(cells_at(data, cells, some), cells$size[some], k, seed, run$threads)
    fit$choice <- list(k = beyond)
    leading <- max(1L, beyond)
  }
  fit$leading <- as.integer(min(leading, k))
  scores <- fit$x[, seq_len(fit$leading), drop = FALSE]
  if (identical(fit$choice$k, 0L)) max_groups <- 1
  found <- group_cells(scores, some, cells$size > 0, metacells %||% max(1, min(400, sum(cells$size > 0) %/% 50)),
                       list(max_groups = max_groups, sweeps = control$sweeps, seed = seed, threads = run$threads))
  made <- number_metacells(found, labels, min_cells)
  sums <- sum_cells(cells, made$metacell, found$group, nrow(made$table), run$threads)
  if (nrow(sums$counts)) rownames(sums$counts) <- sprintf("metacell%d", seq_len(nrow(sums$counts)))
  colnames(sums$counts) <- cells$names
  new_result(class = "weft_cells", list(
    group = found$group, metacell = made$metacell, genes = table, components = fit,
    markers = marker_genes(sums$seen, tabulate(found$group, max(found$group, na.rm = TRUE)), cells$names),
    metacells = made$table, counts = sums$counts, size = cells$size, seed = seed
  ))
}

gene_cells_control <- function(leading = NULL, min_cells = 10, sweeps = 100, block_size = 2^28) as.list(environment())

# ---- what comes in ----

# list(n, p, names, row_names, and `store`, or `blocks`: dgCMatrices of counts)
cells_input <- function(x, assay, block_size) {
  given <- as_source(x, assay, stored = TRUE)
  data <- given$data
  blocks <- switch(given$kind, sparse = list(data), blocks = data, delayed = list(methods::as(data, "dgCMatrix")),
                   matrix = if (is.numeric(data)) list(Matrix::Matrix(data, sparse = TRUE)),
                   frame = list(Matrix::Matrix(frame_matrix(data, "x"), sparse = TRUE)))
  if (is.null(blocks) && given$kind != "store") {
    abort_input("`x` must be counts: a weft_store(), a sparse Matrix or a list of them, or a matrix.",
                x = paste0("It is ", describe(x), "."))
  }
  if (!is.null(blocks)) {
    source <- sparse_source(blocks, "x")
    cells <- list(n = source$n, p = source$p, names = source$names, row_names = source$row_names, blocks = source$data)
  } else {
    if (!is.null(unclass(data)$recipe$what)) {
      abort_input("`x` must be a store of counts.", x = "It is normalised.",
                  i = "Open the file again with `weft_store()`.")
    }
    cells <- list(n = as.double(nrow(data)), p = as.double(ncol(data)), names = dimnames(data)[[2L]],
                  row_names = dimnames(data)[[1L]], store = data)
  }
  if (cells$n < 20 || cells$p < 3) {
    abort_input("`x` must have at least 20 cells and 3 genes.", x = sprintf("It has %.0f and %.0f.", cells$n, cells$p))
  }
  cells$names <- if (is.null(cells$names)) sprintf("V%.0f", seq_len(cells$p)) else make.unique(valid_utf8(cells$names))
  cells$block_size <- block_size
  cells
}

# Factors, one value per cell, or NULL.
cell_labels <- function(given, x, cells) {
  given <- given[!vapply(given, is.null, NA)]
  if (!length(given)) return(list())
  stand_in <- matrix(0, cells$n, 0, dimnames = list(cells$row_names %||% sprintf("cell%.0f", seq_len(cells$n)), NULL))
  labels <- lapply(names(given), function(arg) {
    value <- given[[arg]]
    if (is_word(value) && inherits(x, "weft_store")) {
      table <- store_data(x)
      if (!value %in% names(table)) {
        abort_input(sprintf("`%s` must name a column of `store_data(x)`, or have one value per cell.", arg),
                    x = sprintf("There is no \"%s\".", value), i = sprintf("There are %s.", label_some(names(table))))
      }
      value <- table[[value]]
    }
    sample_factor(value, x, stand_in, arg)
  })
  stats::setNames(labels, names(given))
}

# Calls f(block, rows) with a dgCMatrix of some cells and all genes, one block after another.
each_block <- function(blocks, f) {
  first <- 0
  for (block in blocks) {
    f(block, first + seq_len(nrow(block)))
    first <- first + nrow(block)
  }
}

# ---- totals and genes ----

# `size`: a cell's total over the mean of all; 0 of cells without counts.
cell_sizes <- function(cells) {
  if (is.null(cells$store)) {
    values <- lapply(cells$blocks, function(b) range(b@x, 0))
    low <- min(unlist(values))
    total <- unlist(lapply(cells$blocks, Matrix::rowSums), use.names = FALSE)
  } else {
    cells$sums <- store_sums(cells$store)
    low <- min(cells$sums$range[1L], 0)
    total <- cells$sums$rows
  }
  if (anyNA(total) || !all(is.finite(total)) || low < 0) {
    abort_input("`x` must contain counts.",
                x = if (isTRUE(low < 0)) sprintf("The least value is %g.", low) else "Some are missing or infinite.")
  }
  if (!any(total > 0)) abort_input("`x` must contain counts.", x = "All are 0.")
  cells$size <- total / mean(total[total > 0])
  cells
}

# Counts over size factors, or log(1 + these) of chosen genes. With the usual totals of 10,000, 1 is little beside the
# counts of cells that have a few hundred: their first component then is how many they have.
normalised_cells <- function(cells, chosen = NULL) {
  logs <- !is.null(chosen)
  if (!is.null(cells$store)) {
    total <- cells$sums$rows
    return(with_recipe(cells$store, cells$sums, mean(total[total > 0]), logs, if (logs) as.double(which(chosen))))
  }
  unit <- ifelse(cells$size > 0, cells$size, 1)
  first <- 0
  lapply(cells$blocks, function(block) {
    rows <- first + seq_len(nrow(block))
    first <<- first + nrow(block)
    if (logs) block <- block[, chosen, drop = FALSE]
    block@x <- block@x / unit[rows][block@i + 1L]
    if (logs) block@x <- log1p(block@x)
    block
  })
}

variable_genes <- function(cells, genes, threads) {
  control <- run_control("cpu", threads, FALSE)
  moments <- column_moments(pca_source(normalised_cells(cells), NULL, cells$block_size), NULL, control)
  seen <- sum(cells$size > 0) # the zeros of the other cells count neither for means nor for variances
  mean <- moments$mean * cells$n / seen
  squares <- moments$norm^2 - moments$mean^2 * cells$n * (cells$n - seen) / seen
  variance <- pmax(0, squares) / max(1, seen - 1)
  varies <- variance > 0 & mean > 0
  excess <- rep(NA_real_, cells$p)
  if (sum(varies) > 2L) {
    level <- log(mean[varies])
    ratio <- log(variance[varies]) - level
    trend <- stats::lowess(level, ratio, f = 0.3)
    excess[varies] <- exp(ratio - stats::approx(trend$x, trend$y, level, rule = 2, ties = "mean")$y)
  }
  chosen <- if (is.character(genes)) {
    seq_len(cells$p) %in% chosen_columns(genes, cells$names, "genes")
  } else {
    count <- check_number(genes, "genes", min = 2, whole = TRUE)
    rank(-excess, na.last = "keep", ties.method = "first") <= count
  }
  data.frame(gene = cells$names, mean = mean, variance = variance, excess = excess,
             chosen = varies & !is.na(chosen) & chosen)
}

# ---- components ----

# Components of the cells with counts, `there`. The others have no weight; pca() takes weights of 0 only of matrices in
# memory, so that these are too small to add to any sum. Their scores are those of a cell of zeros.
pca_of_cells <- function(data, k, there, ...) {
  if (all(there)) return(pca(data, k, ...))
  fit <- pca(data, k, weights = ifelse(there, 1, 1e-200), ...)
  fit$weights <- as.double(there)
  fit$x[!there, ] <- rep(-colSums(fit$center * fit$rotation), each = sum(!there))
  fit
}

# Places of cells with counts, at random, rising.
some_cells_of <- function(cells, seed) {
  there <- which(cells$size > 0)
  if (length(there) <= cells_sampled) return(there)
  sort(there[order(draws("uniform", length(there), key = seed, stream = 11))[seq_len(cells_sampled)]])
}

cells_at <- function(data, cells, rows) {
  bare <- function(m) {
    m@Dimnames <- list(NULL, NULL)
    m
  }
  if (inherits(data, "weft_store")) return(bare(store_sparse(data, as.double(rows))))
  first <- 0
  parts <- lapply(data, function(block) {
    here <- rows[rows > first & rows <= first + nrow(block)] - first
    first <<- first + nrow(block)
    block[here, , drop = FALSE]
  })
  bare(do.call(rbind, parts))
}

# How many components of some cells exceed those of noise: of the differences of permutations within genes, among cells
# of similar totals, over sqrt(2), which have the values' variances, greater in cells of few counts, and no means. Of
# three of these the greatest counts, and more by what the greatest values of such matrices differ (three of the scales
# of Johnstone 2001).
components_beyond_chance <- function(some, size, k, seed, threads) {
  k <- min(k, dim(some) - 1L)
  if (k < 1L) return(0L)
  values <- function(x, k) {
    suppressWarnings(pca(x, k, seed = seed, run = weft_run("cpu", threads = threads, progress = FALSE),
                         control = list(tolerance = 1e-5))$sdev)
  }
  permuted <- lapply(1:4, function(t) permuted_cells(some, size, seed, 20 * t))
  noise <- vapply(permuted[-1L], function(other) values((permuted[[1L]] - other) / sqrt(2), 1), 0)
  root <- sqrt(dim(some))
  sum(values(some, k) > max(noise) * sqrt(1 + 3 * sum(1 / root)^(1 / 3) / sum(root)))
}

# Rows exchanged in each column among each tenth of the rows by `size`, by i -> (a i + b) mod m, with a and b of the
# column's own; m, a prime, is how many rows a tenth has, and what is left over at the end stays where it is.
permuted_cells <- function(x, size, seed, stream) {
  n <- nrow(x)
  m <- largest_prime(if (n < 100L) n else n %/% 10L)
  if (m < 2) return(x)
  part <- (rank(size, ties.method = "first") - 1) %/% m
  row_at <- order(part, draws("uniform", n, key = seed, stream = stream))
  place <- integer(n)
  place[row_at] <- seq_len(n) - 1L
  a <- 1 + floor(draws("uniform", ncol(x), key = seed, stream = stream + 1) * (m - 1))
  b <- floor(draws("uniform", ncol(x), key = seed, stream = stream + 2) * m)
  column <- rep.int(seq_len(ncol(x)), diff(x@p))
  from <- place[x@i + 1L]
  to <- from - from %% m + (a[column] * (from %% m) + b[column]) %% m
  whole <- from < n - n %% m
  to[!whole] <- from[!whole]
  Matrix::sparseMatrix(row_at[to + 1], column, x = x@x, dims = dim(x))
}

largest_prime <- function(n) {
  while (n > 3 && any(n %% seq(2, floor(sqrt(n))) == 0)) n <- n - 1
  n
}

# ---- groups ----

nearest_centre <- function(x, centres, control) .Call(C_weft_irm_nearest, x, centres, control)

# Means of the rows of each of `count` pieces, 0 of those without any.
mean_rows <- function(x, of, count) {
  out <- matrix(0, count, ncol(x))
  sums <- rowsum(x, of)
  there <- as.integer(rownames(sums))
  out[there, ] <- sums / tabulate(of, count)[there]
  out
}

# list(group, piece): the group of each cell, and the nearest of the group's pieces, about `pieces` of these in all.
group_cells <- function(scores, some, there, pieces, how) {
  control <- run_control("cpu", how$threads, FALSE)
  storage.mode(scores) <- "double"
  scores <- unname(scores) / max(1e-300, sqrt(mean(scores[there, ]^2))) # a unit for all components alike
  x <- scores[some, , drop = FALSE]
  centres <- small_pieces(x, max(1, min(400, nrow(x) %/% 8)), how$seed, control)
  group <- rep(1L, nrow(centres))
  if (nrow(centres) > 2L && how$max_groups > 1) {
    most <- rep(min(how$max_groups, nrow(centres)), 2L)
    group <- irm(centres, family = "gaussian", max_clusters = most, chains = 4, sweeps = how$sweeps, seed = how$seed,
                 run = weft_run("cpu", threads = how$threads, progress = FALSE))$row_cluster
  }
  of <- group[nearest_centre(x, centres, control)]
  middle <- mean_rows(x, of, max(group))
  spread <- sqrt(colMeans((x - middle[of, , drop = FALSE])^2))
  spread[!(spread > 0)] <- 1
  cells <- nearest_centre(scores / rep(spread, each = nrow(scores)), middle / rep(spread, each = nrow(middle)), control)
  cells[!there] <- NA
  by_size <- order(-tabulate(cells, nrow(middle)))
  by_size <- by_size[tabulate(cells, nrow(middle))[by_size] > 0L]
  cells <- match(cells, by_size)
  piece <- rep(NA_integer_, nrow(scores))
  made <- 0L
  for (g in seq_along(by_size)) {
    rows <- which(cells == g)
    own <- scores[some[cells[some] == g], , drop = FALSE]
    if (!nrow(own)) own <- scores[rows, , drop = FALSE]
    centres <- small_pieces(own, max(1, round(pieces * length(rows) / sum(there))), how$seed, control)
    piece[rows] <- made + nearest_centre(scores[rows, , drop = FALSE], centres, control)
    made <- made + nrow(centres)
  }
  list(group = cells, piece = piece)
}

# Centres of at most `count` pieces by Lloyd's algorithm, without those that few cells are next to.
small_pieces <- function(x, count, seed, control) {
  distinct <- which(!duplicated(x))
  start <- distinct[order(draws("uniform", length(distinct), key = seed, stream = 15))]
  centres <- x[start[seq_len(min(count, length(start)))], , drop = FALSE]
  of <- integer(nrow(x))
  for (turn in 1:30) {
    before <- of
    of <- nearest_centre(x, centres, control)
    if (identical(of, before)) break
    sizes <- tabulate(of, nrow(centres))
    centres <- mean_rows(x, of, nrow(centres))[sizes > 0L, , drop = FALSE]
    if (any(sizes == 0L)) of <- integer(nrow(x))
  }
  sizes <- tabulate(nearest_centre(x, centres, control), nrow(centres))
  few <- min(5, 0.1 * nrow(x) / nrow(centres))
  unname(centres[sizes >= few, , drop = FALSE])
}

# The metacell of each cell, and the table of metacells.
number_metacells <- function(found, labels, least) {
  key <- as.double(found$piece)
  for (label in labels) key <- (key - 1) * nlevels(label) + as.integer(label)
  there <- sort(unique(key)) # without NA
  number <- match(key, there)
  sizes <- tabulate(number, length(there))
  first <- match(there, key)
  kept <- which(sizes >= least)
  kept <- kept[order(found$group[first[kept]])]
  at <- first[kept]
  table <- data.frame(cells = sizes[kept], group = found$group[at])
  for (name in names(labels)) table[[name]] <- unname(labels[[name]])[at]
  list(metacell = match(number, kept), table = table)
}

# ---- sums ----

# list(counts: metacells x genes; seen: groups x genes, cells in which a gene has a count)
sum_cells <- function(cells, metacell, group, count, threads) {
  groups <- max(group, na.rm = TRUE)
  if (!is.null(cells$store)) {
    out <- .Call(C_weft_store_groups, open_store(cells$store)$pointer,
                 list(list(of = metacell, count = count, seen = FALSE), list(of = group, count = groups, seen = TRUE)),
                 run_control("cpu", threads, FALSE))
    return(list(counts = out[[1L]], seen = out[[2L]]))
  }
  out <- list(counts = matrix(0, count, cells$p), seen = matrix(0, groups, cells$p))
  member <- function(of, rows, count) {
    there <- which(!is.na(of[rows]))
    Matrix::sparseMatrix(of[rows][there], there, x = 1, dims = c(count, length(rows)))
  }
  each_block(cells$blocks, function(block, rows) {
    out$counts <<- out$counts + as.matrix(member(metacell, rows, count) %*% block)
    block@x <- as.double(block@x > 0)
    out$seen <<- out$seen + as.matrix(member(group, rows, groups) %*% block)
  })
  lapply(out, unname)
}

# What the detection of a gene says about the group.
marker_genes <- function(seen, sizes, names) {
  n <- sum(sizes)
  entropy <- function(p) ifelse(p > 0, -p * log2(p), 0)
  both <- function(table) colSums(entropy(table / n))
  any <- colSums(seen)
  alone <- entropy(any / n) + entropy(1 - any / n)
  information <- pmax(0, alone + sum(entropy(sizes / n)) - both(seen) - both(sizes - seen))
  share <- seen / sizes
  elsewhere <- (rep(any, each = nrow(seen)) - seen) / pmax(1, n - sizes)
  best <- max.col(t(share - elsewhere), "first")
  at <- cbind(best, seq_along(best))
  out <- data.frame(gene = names, group = best, information = information, share = share[at],
                    elsewhere = elsewhere[at])
  out <- out[order(-out$information, seq_along(best)), ]
  rownames(out) <- NULL
  out
}

# ---- in the workflow ----

# Whether gene_network() makes metacells of x.
is_many_cells <- function(x, assay, setting) {
  if (isFALSE(setting) || inherits(x, c("weft_cells", "weft_quality"))) return(FALSE)
  if (length(setting)) return(TRUE)
  if (!inherits(x, c("weft_store", "sparseMatrix", experiment_classes)) && !(is.list(x) && !is.data.frame(x))) {
    return(FALSE)
  }
  given <- as_source(x, assay, stored = TRUE)
  if (given$kind == "blocks") return(TRUE)
  if (!given$kind %in% c("store", "sparse") || nrow(given$data) < cells_least) return(FALSE)
  if (given$kind == "sparse") return(has_counts(sparse_numbers(given$data)@x))
  is.null(unclass(given$data)$recipe$what) && all(open_store(given$data)$about$kinds == "whole")
}

# What gene_quality() takes of it.
metacell_input <- function(x) {
  parts <- sound_cells(x)
  list(x = parts$counts, class = parts$metacells$class, batch = parts$metacells$batch, symbols = parts$genes$symbol,
       descriptions = parts$genes$description, what = metacells_text(parts))
}

metacells_text <- function(parts) {
  whole <- thousands
  empty <- sum(parts$size == 0)
  sprintf(paste("The counts of %s cells were summed to %s metacells of %s to %s similar cells, based on %s variable",
                "genes, %s and %s.%s"),
          whole(length(parts$group)), whole(nrow(parts$metacells)), whole(min(parts$metacells$cells)),
          whole(max(parts$metacells$cells)), whole(sum(parts$genes$chosen)),
          several(parts$components$leading, "component"), several(max(parts$group, na.rm = TRUE), "group"),
          if (empty) sprintf(" %s without counts %s removed.", several(empty, "cell"),
                             if (empty == 1) "was" else "were") else "")
}

# ---- methods ----

#' @export
print.weft_cells <- function(x, ...) {
  check_format(x, "x")
  reading("x", {
    parts <- unclass(x)
    whole <- thousands
    sizes <- tabulate(parts$group)
    shown <- utils::head(sizes, 12L)
    cat(sprintf("<weft_cells> %s cells, %s genes\n", whole(length(parts$group)), whole(nrow(parts$genes))))
    stand <- standing_out(parts$components)
    cat(sprintf("%s variable genes; %d components, of which %s\n", whole(sum(parts$genes$chosen)),
                length(parts$components$sdev),
                if (is.null(stand)) sprintf("%d were used", parts$components$leading)
                else paste(if (stand == 0) "none is" else if (stand == 1) "1 is" else paste(stand, "are"),
                           "significant")))
    cat_wrapped(sprintf("%d group%s of %s%s cells", length(sizes), if (length(sizes) == 1L) "" else "s",
                        paste(vapply(shown, whole, ""), collapse = ", "),
                        if (length(sizes) > length(shown)) ", ..." else ""))
    cat_wrapped(sprintf("%d metacells of %s to %s cells; %s cells are in no metacell", nrow(parts$metacells),
                        whole(min(parts$metacells$cells, Inf)), whole(max(parts$metacells$cells, 0)),
                        whole(sum(is.na(parts$metacell)))))
  })
  invisible(x)
}

#' @export
dim.weft_cells <- function(x) dim(unclass(x)$counts)

#' @export
dimnames.weft_cells <- function(x) dimnames(unclass(x)$counts)

#' @export
as.matrix.weft_cells <- function(x, ...) sound_cells(x)$counts

#' @exportS3Method
container_source.weft_cells <- function(x, assay, arg) new_source("matrix", sound_cells(x, arg)$counts)

# As gene_cells() made it: what goes on is the matrix and its table.
sound_cells <- function(x, arg = "x") {
  check_format(x, arg)
  parts <- if (is.list(x)) unclass(x)
  counts <- parts$counts
  fine <- holds({
    is_matrix(counts) && all_finite(counts) && is_labels(rownames(counts)) && is_labels(colnames(counts)) &&
      is_frame(parts$metacells, c(cells = "numeric", group = "numeric")) && nrow(parts$metacells) == nrow(counts) &&
      nrow(counts) > 0L && is_groups(parts$metacells$class, nrow(counts)) &&
      is_groups(parts$metacells$batch, nrow(counts)) &&
      is_frame(parts$genes, c(gene = "character", chosen = "logical")) &&
      identical(parts$genes$gene, colnames(counts)) && is.numeric(parts$group) &&
      is_numbers(parts$size, length(parts$group), 0) && is.numeric(parts$metacell) &&
      length(parts$metacell) == length(parts$group) &&
      is_count(parts$components$leading) &&
      (is.null(parts$components$choice) || is_count(parts$components$choice$k))
  })
  if (!isTRUE(fine)) {
    abort_input(sprintf("`%s` must be an unmodified object returned by `gene_cells()`.", arg), x = "It is damaged.")
  }
  parts
}
