# Interventions: samples in which a regulator was knocked out, knocked down or over-expressed. Each perturbed regulator
# shifts the genes that depend on it. The shift is tested against controls with a variance that all genes have a say in
# (ranking-moderate.R) and, in cells, with their skewness; it is cleared of what goes through other perturbed
# regulators, and put together with what regression on the same samples says, in which a gene's own perturbed samples
# are no outcome.

control_words <- c("", "control", "controls", "ctrl", "none", "non-targeting", "nontargeting", "wild type", "wildtype",
                   "wt")
min_controls <- 3L # fewer say less than all other samples do
max_path_z <- 3    # from here on a shift is taken for one that may be passed on
path_share <- 0.7  # of the evidence is what a path through another regulator does not explain
evidence_level <- 0.05

# ---- what was perturbed in which sample ----

# list(sample, gene: one entry per perturbation, numbers of rows and columns; n). A gene that `names` lacks but `others`
# has is negative: its samples are no controls, and nothing is said of it.
perturbations <- function(interventions, x, names, n, others = NULL) {
  if (inherits(interventions, "weft_perturbations")) return(interventions)
  entries <- if (length(dim(interventions)) == 2L && !is.data.frame(interventions)) {
    perturbed_columns(interventions, names, n)
  } else {
    perturbed_entries(container_value(interventions, x, "interventions"), c(names, others), n)
  }
  found <- unlist(entries, use.names = FALSE)
  unknown <- setdiff(found, c(names, others))
  if (length(unknown)) {
    abort_input("`interventions` must contain names of genes in `x`, with NA or \"\" for controls.",
                x = paste0("Not in `x`: ", label_some(unknown), "."),
                i = "Remove these samples, or use the column names of `x`.")
  }
  if (!length(found)) {
    abort_input("`interventions` must contain a gene name in at least one sample.", x = "All samples are controls.")
  }
  gene <- match(found, names)
  gene[is.na(gene)] <- -match(found[is.na(gene)], others)
  sample <- rep(seq_len(n), lengths(entries))
  once <- !duplicated(sample + n * (match(found, unique(found)) - 1))
  structure(list(sample = sample[once], gene = gene[once], n = n), class = "weft_perturbations")
}

# A column of the sample table, where one is named.
container_value <- function(value, x, arg) {
  if (!is_experiment(x) || !is.character(value) || length(value) != 1L) return(value)
  samples <- container_samples(x)
  if (value %in% names(samples)) return(samples[[value]])
  abort_input(sprintf("`%s` must be the name of a column in `%s`, or have one entry per sample.", arg,
                      container_samples_name(x)),
              x = sprintf("There is no \"%s\".", value), i = paste0("Available: ", label_some(names(samples)), "."))
}

# A list with the names of the genes perturbed in each sample.
perturbed_entries <- function(interventions, names, n) {
  if (is.data.frame(interventions) || !is.list(interventions) && !is.factor(interventions) &&
        !is.character(interventions) && !(is.logical(interventions) && all(is.na(interventions)))) {
    abort_input(paste("`interventions` must contain the perturbed gene of every sample, with NA for controls, or",
                      "be a list of such names, or a matrix with samples in rows and genes in columns."),
                x = paste0("It is ", describe(interventions), "."))
  }
  if (!is.list(interventions) && length(interventions) == n) { # many cells have the same few words
    check_factor(interventions, "`interventions`")
    words <- as.character(interventions)
    kinds <- unique(words)
    return(lapply(kinds, perturbed_genes, names)[match(words, kinds)])
  }
  entries <- intervention_entries(interventions, n, "genes")
  kinds <- unique(unlist(lapply(entries, as.character)))
  parts <- stats::setNames(lapply(kinds, perturbed_genes, names), kinds)
  lapply(entries, function(e) unlist(parts[match(as.character(e), kinds)], use.names = FALSE))
}

# "A", or "A+B" where that is not itself a gene; nothing for a control.
perturbed_genes <- function(text, names) {
  if (is.na(text)) return(character())
  parts <- if (text %in% names) text else trimws(strsplit(text, "[+;,|]")[[1L]])
  parts[parts %in% names | !tolower(parts) %in% control_words]
}

perturbed_columns <- function(interventions, names, n) {
  if (nrow(interventions) != n) {
    abort_input(sprintf("`interventions` must have as many rows as `x` (%d).", n),
                x = sprintf("It has %d.", nrow(interventions)))
  }
  sparse <- inherits(interventions, "Matrix")
  if (!sparse && !is.logical(interventions) && !is.numeric(interventions)) {
    abort_input("If `interventions` is a matrix, it must be logical or numeric, with TRUE or 1 for perturbed genes.",
                x = paste0("It is ", describe(interventions), "."))
  }
  columns <- colnames(interventions)
  if (is.null(columns) && ncol(interventions) == length(names)) columns <- names
  if (is.null(columns)) {
    abort_input("The columns of `interventions` must be named after genes.", x = "The columns have no names.")
  }
  if (anyNA(if (sparse) interventions@x else interventions)) {
    abort_input("If `interventions` is a matrix, it must not have missing values.")
  }
  at <- which(as.matrix(interventions != 0), arr.ind = TRUE)
  unname(split(columns[at[, 2L]], factor(at[, 1L], seq_len(n))))
}

# list(data, sample, perturbed): samples that say what interventions do. Where regulators are perturbed outside of
# series alone, these are the samples outside of series, at rest.
samples_of_shifts <- function(data, perturbed, times) {
  shifts <- list(data = data, sample = seq_len(perturbed$n), perturbed = perturbed)
  if (is.null(times) || !all(is.na(times$time[perturbed$sample]))) return(shifts)
  shifts_without(shifts, which(!is.na(times$time)))
}

shifts_without <- function(shifts, samples) {
  kept <- which(!shifts$sample %in% samples)
  list(data = shifts$data[kept, , drop = FALSE], sample = shifts$sample[kept],
       perturbed = some_perturbations(shifts$perturbed, kept))
}

some_perturbations <- function(set, samples) {
  at <- match(set$sample, samples)
  structure(list(sample = at[!is.na(at)], gene = set$gene[!is.na(at)], n = length(samples), moments = set$moments),
            class = "weft_perturbations")
}

need_perturbed <- function(set, regulators) {
  if (any(all_perturbations(set)$gene %in% regulators)) return(invisible())
  abort_input("`interventions` must perturb at least one of the `regulators`.",
              x = "None of the perturbed genes is among the regulators.")
}

# The data as outcomes: in samples in which a gene was perturbed, its value says nothing of its regulators, and is that
# of the gene where it was left alone.
outcomes_of <- function(data, set) {
  own <- which(set$gene > 0L)
  for (gene in unique(set$gene[own])) {
    rows <- set$sample[set$gene == gene]
    rest <- data[-rows, gene]
    if (length(rest)) data[rows, gene] <- stats::median(rest)
  }
  data
}

# ---- shifts ----

# Shifts of all genes by each perturbed regulator among `regulators` (columns, from 1). A list of matrices, regulators x
# genes: shift, se, t (moderated), its normal score z, and p; of a gene by itself 0 and NA; gene: the regulators'
# columns; raised: whether each was raised; reference, samples: for print.
#
# Samples of a regulator count with the sign of its own change against the others of it, so that a knock-out and an
# over-expression add up. Several perturbations in one sample are told apart by least squares. The reference is the
# mean of the controls or, with fewer than three, the median over all samples that are not of the regulator. Guides of
# cells act one way: values are counts, many of them 0, and a cell that has more than controls has it by chance. `set`
# may have the sums of a store (regulation-interventions-store.R), which then say all of this.
intervention_shifts <- function(data, set, regulators) {
  if (!is.null(set$moments)) return(stored_shifts(set$moments, regulators))
  n <- nrow(data)
  by_cells <- mean(data == 0) >= zeros_of_cells && n - length(unique(set$sample)) >= min_controls
  outcomes <- if (by_cells) outcomes_as_controls(data, set) else outcomes_of(data, set)
  unit <- column_units(outcomes)
  x <- data / rep(unit, each = n)
  outcomes <- outcomes / rep(unit, each = n)
  genes <- sort(unique(set$gene))
  controls <- setdiff(seq_len(n), set$sample)
  by_controls <- length(controls) >= min_controls
  centre <- if (by_controls) colMeans(x[controls, , drop = FALSE]) else apply(outcomes, 2L, stats::median)
  design <- perturbation_design(set, genes, x - rep(centre, each = n), one_way = by_cells)
  solved <- solve_design(design$matrix, outcomes - rep(centre, each = n))
  spread <- shift_variance(outcomes, set, controls, solved, by_controls)
  tested <- which(genes %in% regulators & genes > 0L)
  genes <- genes[tested]
  shift <- solved$shift[tested, , drop = FALSE]
  share <- solved$share[tested]
  weight <- design$mean[tested]^2 # of the reference's own error
  if (by_controls) {
    share <- share + weight / length(controls)
  } else {
    median_without <- medians_without(outcomes)
    for (k in seq_along(genes)) {
      rows <- set$sample[set$gene == genes[k]]
      if (length(rows) == n) next
      shift[k, ] <- shift[k, ] + design$mean[tested[k]] * (centre - median_without(rows))
      share[k] <- share[k] + weight[k] * pi / 2 / (n - length(rows))
    }
  }
  changes <- vapply(tested, function(k) {
    rows <- which(design$matrix[, k] != 0)
    gene <- genes[match(k, tested)]
    mean(design$matrix[rows, k] * (x[rows, gene] - centre[gene]))
  }, 0)
  skew <- if (by_cells) {
    list(third = third_moments(solved$rest, set, length(design$mean)),
         cube = weight_cubes(solved, design$matrix, tested) - 1 / length(controls)^2)
  }
  c(tested_shifts(shift, share, spread, genes, changes, skew),
    list(unit = unit, reference = if (by_controls) "controls" else "samples", controls = length(controls)))
}

# Shifts of `genes` beside their standard errors, sqrt(share x variance); changes: of the perturbed genes themselves;
# skew: of cells, list(third: third central moments of the genes' values; cube: sums of the cubes of what each shift
# multiplies its cells by), which make the third central moments of shifts.
tested_shifts <- function(shift, share, spread, genes, changes, skew = NULL) {
  se <- sqrt(outer(share, spread$post))
  t <- shift / se
  t[se == 0] <- 0
  log_p <- stats::pt(-abs(t), rep(spread$df, each = length(genes)), log.p = TRUE)
  z <- -stats::qnorm(log_p, log.p = TRUE)
  if (!is.null(skew)) {
    skewness <- sign(t) * outer(skew$cube, skew$third) / se^3
    log_p <- skewed_tail(z, replace(skewness, se == 0, 0))
    z <- -stats::qnorm(log_p, log.p = TRUE)
  }
  z <- sign(t) * z
  own <- cbind(seq_along(genes), genes)
  shift[own] <- changes
  z[own] <- 0
  p <- pmin(2 * exp(log_p), 1)
  p[own] <- NA
  list(gene = genes, shift = shift, se = se, z = z, t = t, p = p, raised = changes > 0)
}

# Logarithms of the tails from z >= 0 on, at most 1/2, of laws with mean 0, variance 1 and these skewnesses (positive:
# the tail is the heavy one): Pearson's type III, (gamma(k) - k) / sqrt(k) with k = 4 / skewness^2. The light tail of
# this law ends at 2 / skewness, where data may go on. A Poisson count comes to 0 at z = 1 / skewness: beyond it, the
# skewness is taken for 1 / z.
skewed_tail <- function(z, skewness) {
  size <- abs(skewness)
  light <- skewness < 0
  size[light] <- pmin(size[light], 1 / z[light])
  shape <- 4 / size^2
  step <- 2 * z / size
  log_p <- stats::pnorm(z, lower.tail = FALSE, log.p = TRUE)
  heavy <- which(!light & size > min_skewness)
  log_p[heavy] <- stats::pgamma(shape[heavy] + step[heavy], shape[heavy], lower.tail = FALSE, log.p = TRUE)
  light <- which(light & size > min_skewness)
  log_p[light] <- stats::pgamma(shape[light] - step[light], shape[light], log.p = TRUE)
  pmin(log_p, -log(2))
}

min_skewness <- 1e-7 # a smaller one does not change a tail

# Sums over samples of the cubes of what the shifts of the genes `tested` of a design multiply them by; count: of
# samples in each row of the design.
weight_cubes <- function(solved, design, tested, count = 1) {
  if (is.null(solved$inverse)) return(solved$share[tested]^2)
  vapply(tested, function(k) sum(count * as.vector(design %*% solved$inverse[, k])^3), 0)
}

# Third central moments of the genes' values: about fitted ones, whose own error takes about (df / n)^3 away.
third_moments <- function(rest, set, genes) {
  left <- nrow(rest) - tabulate(set$gene[set$gene > 0L], ncol(rest))
  df <- left - genes - (left == nrow(rest))
  third <- colSums(rest^3) * left^2 / df^3
  replace(third, df <= 0, 0)
}

zeros_of_cells <- 0.25 # from this share of zeros on, values are counts of cells

# As outcomes_of(), with the mean of the controls, which sums of a store tell.
outcomes_as_controls <- function(data, set) {
  centre <- colMeans(data[setdiff(seq_len(nrow(data)), set$sample), , drop = FALSE])
  at <- cbind(set$sample, set$gene)[set$gene > 0L, , drop = FALSE]
  data[at] <- centre[at[, 2L]]
  data
}

# Standard deviations, 1 of constant columns; of numbers whose squares would overflow, too.
column_units <- function(x) {
  largest <- apply(abs(x), 2L, max)
  largest[largest == 0] <- 1
  unit <- largest * apply(x / rep(largest, each = nrow(x)), 2L, stats::sd)
  ifelse(unit > 1e-14 * largest, unit, largest)
}

# list(matrix: samples x genes with 1, or -1 where the gene changed the other way round than in most of its samples;
# mean: of each gene's entries).
perturbation_design <- function(set, genes, y, one_way = FALSE) {
  sign <- rep(1, length(set$gene))
  for (gene in if (!one_way) genes[genes > 0L]) {
    here <- which(set$gene == gene)
    rows <- set$sample[here]
    change <- y[rows, gene]
    clear <- max_path_z * if (length(rows) < nrow(y)) stats::mad(y[-rows, gene]) else 0
    sign[here][change * mean(change) < 0 & abs(change) > clear] <- -1
  }
  list(matrix = Matrix::sparseMatrix(set$sample, match(set$gene, genes), x = sign, dims = c(set$n, length(genes))),
       mean = as.vector(tapply(sign, factor(set$gene, genes), mean)))
}

# Least squares: shift (genes of the design x genes), share (diagonal of the inverse, which is NULL where it is
# diagonal), rest (residuals).
solve_design <- function(design, y) {
  solved <- solve_inner(as.matrix(Matrix::crossprod(design)), as.matrix(Matrix::crossprod(design, y)))
  c(solved, list(rest = y - as.matrix(design %*% solved$shift)))
}

solve_inner <- function(inner, outer) {
  inverse <- NULL
  if (all(inner[upper.tri(inner)] == 0)) {
    share <- 1 / diag(inner)
    shift <- outer * share
  } else {
    inverse <- tryCatch(chol2inv(chol(inner)), error = function(e) NULL)
    if (is.null(inverse) || max(diag(inverse) * diag(inner)) > 1e8) {
      abort_input("Perturbed genes in `interventions` must be separable: no two always perturbed together.",
                  x = "Some are always perturbed together.",
                  i = "Remove one of them.")
    }
    share <- diag(inverse)
    shift <- inverse %*% outer
  }
  list(shift = shift, share = share, inverse = inverse)
}

# The variance of each gene among samples that are alike, and what all genes say of it (moderate()). Where regulators
# have too few samples each, it is that of all samples about their median, as if few of them were shifted.
shift_variance <- function(outcomes, set, controls, solved, by_controls) {
  n <- nrow(outcomes)
  alike <- if (by_controls) seq_len(n) else sort(unique(set$sample))
  own <- tabulate(set$gene[set$gene > 0L], ncol(outcomes)) # samples in which a gene is no outcome
  df <- length(alike) - nrow(solved$shift) - by_controls - pmax(own - 1L, 0L)
  median_df <- 0.37 * (n - own) # the efficiency of the median absolute deviation
  if (all(df >= median_df)) {
    variance <- colSums(solved$rest[alike, , drop = FALSE]^2) / df
  } else {
    df <- median_df
    at <- which(set$gene > 0L)
    outcomes[cbind(set$sample[at], set$gene[at])] <- NA
    variance <- apply(outcomes, 2L, stats::mad, na.rm = TRUE)^2
    flat <- which(variance == 0)
    variance[flat] <- apply(outcomes[, flat, drop = FALSE], 2L, stats::var, na.rm = TRUE)
  }
  variance[df <= 0] <- NA
  moderate(variance, pmax(df, 0))
}

# A function of rows: medians of the columns of x without these. Of all rows in order, the place of the k-th that is
# left goes on by one for each removed row up to it.
medians_without <- function(x) {
  n <- nrow(x)
  columns <- seq_len(ncol(x))
  place <- apply(x, 2L, rank, ties.method = "first")
  sorted <- apply(x, 2L, sort)
  function(rows) {
    removed <- place[rows, , drop = FALSE]
    value <- function(k) {
      at <- rep(k, ncol(x))
      repeat {
        further <- k + colSums(removed <= rep(at, each = length(rows)))
        if (all(further == at)) return(sorted[cbind(at, columns)])
        at <- further
      }
    }
    left <- n - length(rows)
    (value((left + 1) %/% 2) + value(left %/% 2 + 1)) / 2
  }
}

# What is left of |z| without paths: of regulator i, over each other perturbed regulator k that i shifts and that itself
# shifts a gene, the shift that k passes on is that of k times the share of k's own change that i brings about. The
# least distance between an observed shift and these counts for `path_share`, the observed one for the rest.
direct_evidence <- function(effects) {
  z <- abs(effects$z)
  shift <- effects$shift
  se <- effects$se
  genes <- effects$gene
  own <- shift[cbind(seq_along(genes), genes)]
  own_se <- se[cbind(seq_along(genes), genes)]
  known <- abs(own) > max_path_z * own_se
  direct <- z
  reached <- lapply(seq_along(genes), function(k) setdiff(which(z[k, ] > max_path_z), genes[k]))
  for (i in seq_along(genes)) {
    for (k in setdiff(which(z[i, genes] > max_path_z & known), i)) {
      to <- setdiff(reached[[k]], genes[i])
      share <- shift[i, genes[k]] / own[k]
      share_se <- sqrt(se[i, genes[k]]^2 + share^2 * own_se[k]^2) / abs(own[k])
      error <- sqrt(se[i, to]^2 + share^2 * se[k, to]^2 + shift[k, to]^2 * share_se^2)
      direct[i, to] <- pmin(direct[i, to], abs(shift[i, to] - share * shift[k, to]) / error)
    }
  }
  (1 - path_share) * z + path_share * direct
}

# ---- one score ----

# From where on |z| counts in full: 1 where many shifts stand out, more where |z| must be greater than 3.3 for a q-value
# of .05, as most z are then noise, and large ones are tails.
evidence_scale <- function(z, p) {
  count <- sum(!is.na(p))
  low <- which(p <= evidence_level) # no others can be found
  sorted <- sort(p[low])
  last <- max(0L, which(count / seq_along(sorted) * sorted <= evidence_level))
  least <- if (last) min(abs(z[low][p[low] <= sorted[last]]))
           else stats::qnorm(evidence_level / 2 / count, lower.tail = FALSE)
  max(1, 3 * (least - 3))
}

# The network of regression, and shifts, put together. Evidence adds up: sqrt(d^2 + z^2) - d of the shift, with d from
# evidence_scale(), and 0.7 log(1 + 99 w) of the weight w of regression relative to the greatest. p-values of both
# (Simes) give one q-value.
with_interventions <- function(found, null, how) {
  regulators <- how$genes$regulators + 1L
  targets <- how$genes$targets + 1L
  effects <- intervention_shifts(how$shifts$data, how$shifts$perturbed, regulators)
  rows <- match(effects$gene, regulators)
  columns <- targets
  z <- direct_evidence(effects)[, columns, drop = FALSE]
  weights <- found$weights
  observed <- 0.7 * log1p(99 * weights / max(weights, .Machine$double.xmin))
  scale <- evidence_scale(effects$z, effects$p)
  total <- observed
  total[rows, ] <- total[rows, ] + sqrt(scale^2 + z^2) - scale
  own <- cbind(match(targets, regulators), seq_along(targets))
  own <- own[!is.na(own[, 1L]), , drop = FALSE]
  total[own] <- 0
  found$weights[] <- total / (3 + total)
  found$edges <- edges_of_both(found$edges, null, effects, list(rows = rows, columns = columns, own = own),
                               dim(weights), how)
  set <- all_perturbations(how$shifts$perturbed)
  found$about <- list(regulators = length(rows), perturbed = length(unique(set$sample[set$gene %in% effects$gene])),
                      controls = effects$controls, reference = effects$reference)
  found
}

# Those of all cells, where `set` is of some that stand for them.
all_perturbations <- function(set) if (is.null(set$moments)) set else set$moments$set

# Edges of regression, and those with a shift of a p-value up to .05: with the shift, its q-value among all shifts, the
# sign of the effect, which evidence there is, and the q-value of both together.
edges_of_both <- function(edges, null, effects, at, shape, how) {
  p <- matrix(NA_real_, shape[1L], shape[2L])
  p[at$rows, ] <- effects$p[, at$columns]
  shift <- matrix(NA_real_, shape[1L], shape[2L])
  shift[at$rows, ] <- (effects$shift * rep(effects$unit, each = length(at$rows)))[, at$columns]
  raised <- rep(NA, shape[1L])
  raised[at$rows] <- effects$raised
  here <- pair_number(edges, shape)
  further <- setdiff(which(p <= 0.05), here)
  pairs <- c(here, further)
  in_order <- order(pairs)
  pairs <- pairs[in_order]
  none <- integer(length(further))
  out <- lapply(edges[c("area", "signed_area", "times", "both")], function(v) c(v, none)[in_order])
  out <- c(list(from = as.integer((pairs - 1) %% shape[1L] + 1), to = as.integer((pairs - 1) %/% shape[1L] + 1)), out)
  out$shift <- shift[pairs]
  count <- prod(shape) - nrow(at$own)
  q <- function(p) stats::p.adjust(p, "BH", max(count, length(p)))
  shift_q <- stats::p.adjust(p, "BH")[pairs]
  out$shift_q <- shift_q
  observed_p <- if (how$copies > 0) area_p_values(out$area, null, how$copies * count) else rep(1, length(pairs))
  shift_p <- p[pairs]
  out$q_value <- q(ifelse(is.na(shift_p), observed_p,
                          pmin(2 * pmin(shift_p, observed_p), pmax(shift_p, observed_p))))
  often <- if (how$copies > 0) q(observed_p) <= evidence_level else 2 * out$times >= how$resamples
  by_shift <- out$area == 0L | !is.na(shift_p) & shift_q <= evidence_level
  by_area <- out$area > 0L & (often | !by_shift)
  out$evidence <- 1L + by_shift + (by_shift & by_area)
  out$effect <- ifelse(by_shift, as.integer(sign(out$shift)) * ifelse(raised[out$from], 1L, -1L), NA_integer_)
  out
}

evidence_words <- c("observed", "intervention", "both")

# The share of areas of null copies that reach each area.
area_p_values <- function(area, null, count) {
  top <- max(area, 0L)
  if (top == 0L) return(rep(1, length(area)))
  reach <- rev(cumsum(rev(tabulate(pmin(null, top), top))))
  out <- rep(1, length(area))
  out[area > 0L] <- (reach[area[area > 0L]] + 1) / (count + 1)
  pmin(out, 1)
}

# ---- what print and reports say ----

interventions_text <- function(x) {
  a <- attr(x, "interventions")
  if (is.null(a)) return(NULL)
  e <- attr(x, "edges")
  fdr <- attr(x, "fdr") %||% 0.05
  count <- tabulate(e$evidence[e$q_value <= fdr], 3L)
  sprintf(paste("%s perturbed in %s, compared with %s. Of %s at a false discovery rate of %g, %s are supported by",
                "interventions only, %s by regression only, and %s by both."),
          several(a$regulators, "regulator"), several(a$perturbed, "sample"),
          if (a$reference == "controls") several(a$controls, "control") else "the median of all other samples",
          several(sum(count), "edge"), fdr, thousands(count[2L]), thousands(count[1L]), thousands(count[3L]))
}

sound_interventions <- function(r) {
  a <- attr(r, "interventions")
  e <- attr(r, "edges")
  count <- length(e$area)
  is.null(a) || is.list(a) && is_number(a$regulators) && is_number(a$perturbed) && is_number(a$controls) &&
    is_word(a$reference) && is_bare(e$shift, "double", count) && is_bare(e$shift_q, "double", count) &&
    is_integers(e$evidence, count, 1, 3) && is_bare(e$effect, "integer", count)
}
