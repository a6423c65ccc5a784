# Perturb-seq from a store: interventions in more cells than fit into memory. Shifts and their variances need, for each
# guide (or set of guides that cells have together) and each gene, the sums of the values, of their squares and of
# their cubes: one pass over the file. Regressions take some of the cells. What is said of the shifts is what
# intervention_shifts() says of the same cells in memory.

most_observed <- 2000L # cells that regressions take of a store
most_guide_sets <- 20000L

# NULL, or of a store list(input: as regulation_input() has it, of some cells; perturbed: what was perturbed in these,
# with `moments` of all).
stored_cells <- function(x, interventions, transform) {
  if (!inherits(x, "weft_store")) return(NULL)
  names <- distinct_names(feature_names(x))
  n <- nrow(x)
  if (n < 4L || ncol(x) < 2L) return(NULL) # an error elsewhere
  set <- perturbations(interventions, x, names, n)
  values <- stored_values_of(x, transform)
  moments <- stored_moments(values, set)
  rows <- unique(as.integer(seq(1, n, length.out = min(n, most_observed))))
  data <- as.matrix(store_sparse(x, if (length(rows) < n) as.double(rows)))
  if (!is.null(values$size)) data <- log2(1 + data / values$size[rows]) # the bits of regulation_input(): ties stay
  if (length(rows) < n) {
    message(sprintf("Regressions use %s of %s cells (evenly spaced); intervention effects use all cells.",
                    thousands(length(rows)), thousands(n)))
  }
  perturbed <- some_perturbations(set, rows)
  perturbed$moments <- moments
  list(input = list(data = data, names = names, n = length(rows), p = ncol(x), normalised = values$what),
       perturbed = perturbed)
}

# list(store: with what becomes of its values; scale: what these are multiplied by then; size: what counts are divided
# by; what: in words).
stored_values_of <- function(x, transform) {
  sums <- store_sums(x)
  if (!all(is.finite(sums$rows))) {
    abort_input("`x` must not have missing or infinite values.",
                i = "Remove these genes or samples before the import.")
  }
  parts <- unclass(x)
  plain <- is.null(parts$recipe$size) && !parts$recipe$log1p
  counts <- transform == "counts" || transform == "auto" && plain && sums$range[1L] >= 0 && stored_counts(x)
  if (counts && sums$range[1L] < 0) {
    abort_input("`transform = \"counts\"` needs non-negative values.",
                x = sprintf("The smallest value is %g.", sums$range[1L]))
  }
  total <- sums$rows
  if (!counts || !any(total > 0)) return(list(store = x, scale = 1))
  if (!plain) {
    abort_input("`transform` must be \"none\" for a normalised store.")
  }
  size <- ifelse(total > 0, total, 1)
  parts$recipe$size <- size / mean(sort(size))
  parts$recipe$log1p <- TRUE
  parts$recipe$what <- "Normalised."
  what <- "Counts were transformed to log2(1 + x / size factor); size factors are totals relative to their mean."
  if (transform == "auto") {
    message(what, " `transform = \"counts\"` requests this, `\"none\"` leaves values unchanged.")
  }
  list(store = structure(parts, class = "weft_store"), scale = 1 / log(2), size = parts$recipe$size,
       what = what)
}

# Whether values are whole numbers, judging by some rows.
stored_counts <- function(x) {
  some <- store_sparse(x, as.double(unique(as.integer(seq(1, nrow(x), length.out = min(nrow(x), 100L))))))
  has_counts(some@x)
}

# list(set; groups: genes x sets of guides, 1 where a set has the gene; count: cells of each, the controls first; sums,
# squares, cubes: by these and genes).
stored_moments <- function(values, set) {
  n <- set$n
  genes <- sort(unique(set$gene))
  several <- unique(set$sample[duplicated(set$sample)])
  of <- integer(n)
  alone <- !set$sample %in% several
  of[set$sample[alone]] <- match(set$gene[alone], genes)
  together <- vapply(split(set$gene[!alone], set$sample[!alone]), function(g) toString(sort(g)), "")
  sets <- unique(together)
  of[as.integer(names(together))] <- length(genes) + match(together, sets)
  count <- 1L + length(genes) + length(sets)
  if (count > most_guide_sets) {
    abort_input(sprintf("Cells must have at most %s different combinations of guides.", thousands(most_guide_sets)),
                x = sprintf("There are %s.", thousands(count)), i = "Remove cells with several guides.")
  }
  members <- c(as.list(genes), lapply(strsplit(sets, ", ", fixed = TRUE), as.integer))
  groups <- Matrix::sparseMatrix(match(unlist(members), genes), rep(seq_along(members), lengths(members)), x = 1,
                                 dims = c(length(genes), length(members)))
  file <- open_store(values$store)
  found <- memory_errors(.Call(C_weft_store_moments, file$pointer, of + 1L, count, file$recipe,
                               run_control(task = "Adding up guides")))
  columns <- unclass(values$store)$recipe$columns
  if (!is.null(columns)) found <- lapply(found, function(m) m[, columns, drop = FALSE])
  list(set = set, genes = genes, groups = groups, members = members, count = tabulate(of + 1L, count),
       sums = found$sums * values$scale, squares = found$squares * values$scale^2,
       cubes = found$cubes * values$scale^3)
}

# What intervention_shifts() gives.
stored_shifts <- function(moments, regulators) {
  count <- moments$count
  n <- sum(count)
  genes <- moments$genes
  p <- ncol(moments$sums)
  if (count[1L] < min_controls) {
    abort_input(sprintf("`interventions` must contain at least %d controls for a store.", min_controls),
                x = sprintf("There are %d.", count[1L]), i = "Controls are marked by NA, \"\" or \"non-targeting\".")
  }
  centre <- moments$sums[1L, ] / count[1L]
  change <- moments$sums[-1L, , drop = FALSE] - count[-1L] * rep(centre, each = length(count) - 1L)
  at <- cbind(rep(seq_along(moments$members), lengths(moments$members)), unlist(moments$members))
  at <- at[at[, 2L] > 0, , drop = FALSE]
  cells <- as.vector(moments$groups %*% count[-1L]) # of each gene
  own_change <- tapply(change[at], factor(at[, 2L], genes), sum) / cells
  # squares about the mean of controls; genes have this mean where they were perturbed themselves
  squares <- moments$squares - 2 * rep(centre, each = length(count)) * moments$sums +
    count * rep(centre^2, each = length(count))
  cubes <- moments$cubes - 3 * rep(centre, each = length(count)) * moments$squares +
    3 * rep(centre^2, each = length(count)) * moments$sums - count * rep(centre^3, each = length(count))
  lost <- 1e-11 * (abs(colSums(moments$cubes)) + n * abs(centre)^3) # what rounding may leave of nothing
  change[at] <- 0
  own_rows <- at + rep(c(1L, 0L), each = nrow(at))
  squares[own_rows] <- 0
  cubes[own_rows] <- 0
  total <- colSums(change)
  whole <- colSums(squares)
  unit <- sqrt(pmax(whole - total^2 / n, 0) / (n - 1))
  unit[!unit > 1e-14 * sqrt(whole)] <- 1
  change <- change / rep(unit, each = nrow(change))
  solved <- solve_groups(moments$groups, count[-1L], change)
  rest <- pmax(whole / unit^2 - colSums(solved$shift * solved$outer), 0)
  own <- replace(numeric(p), genes[genes > 0L], cells[genes > 0L])
  df <- n - length(genes) - 1 - pmax(own - 1, 0)
  if (any(df < 0.37 * (n - own))) {
    abort_input("Each guide must occur in several cells for a store.",
                x = sprintf("There are %s in %s.", several(length(genes), "perturbed gene"), several(n, "cell")),
                i = "Read the store into memory with `x[, ]`.")
  }
  spread <- moderate(rest / df, df)
  tested <- which(genes %in% regulators & genes > 0L)
  share <- solved$share[tested] + 1 / count[1L]
  fitted <- as.matrix(Matrix::crossprod(moments$groups, solved$shift))
  third <- colSums(cubes) / unit^3 - 3 * colSums(fitted * squares[-1L, , drop = FALSE]) / unit^2 +
    3 * colSums(fitted^2 * change) - colSums(count[-1L] * fitted^3)
  third[!is.finite(third) | abs(third) < lost / unit^3] <- 0 # cubes of huge numbers
  skew <- list(third = third * (n - own)^2 / df^3,
               cube = weight_cubes(solved, Matrix::t(moments$groups), tested, count[-1L]) - 1 / count[1L]^2)
  c(tested_shifts(solved$shift[tested, , drop = FALSE], share, spread, genes[tested],
                  as.vector(own_change[tested]) / unit[genes[tested]], skew),
    list(unit = unit, reference = "controls", controls = count[1L]))
}

# Least squares of the cells' values on their guides, from sums: as solve_design(), with `outer` beside.
solve_groups <- function(groups, count, change) {
  inner <- as.matrix(Matrix::tcrossprod(groups %*% Matrix::Diagonal(x = count), groups))
  outer <- as.matrix(groups %*% change)
  c(solve_inner(inner, outer), list(outer = outer))
}
