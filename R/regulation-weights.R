# The weights that rank edges: areas, how much each regulator is chosen, and, where all genes have much in common,
# correlations less their background.

# The squared correlation of two genes, on average beyond chance and beyond a gene's own neighbours: from the first on
# correlations count, from the second on nothing else does.
common_variation <- c(0.06, 0.1)
own_variation <- 0.8 # what a gene's squared correlations with its neighbours in the network add up to

# The same limits for the correlation of areas with those of the reversed edges, where the data do not show directions.
both_ways_alike <- c(0.75, 0.85)

between <- function(v, limits) min(1, max(0, (v - limits[1L]) / diff(limits)))

max_common_samples <- 1000L # for many genes; for few genes, max_common_values values in all
max_common_values <- 2^24

# list(share: of correlations in the weights, from 0 to 1; z: scores; gram: products of their columns or, if they are
# fewer, rows; ridge). data: what says which sample is which, as in halves_of().
common_of <- function(data, scores, how) {
  z <- standard_scores(common_scores(data, scores, how))
  turned <- if (ncol(z) <= nrow(z)) z else t(z)
  gram <- matrix_product(turned, turned, how$host, TRUE)
  varied <- sum(diag(gram)) # genes whose scores are not all equal
  if (varied < 2) return(list(share = 0, z = z, gram = gram, ridge = 1))
  total <- sum(gram^2)
  common <- (total - varied) / (varied * (varied - 1)) - 1 / (nrow(z) - 1) - own_variation / varied
  list(share = between(common, common_variation), z = z, gram = gram,
       ridge = total / varied * min(1, varied / nrow(z)))
}

# Similarities of genes over samples that count less the more they resemble others: z' (z z' + ridge)^-1 z, whole or as
# its factors, and its diagonal.
weigh_samples <- function(common, control) {
  inverse <- chol2inv(chol(common$gram + diag(common$ridge, nrow(common$gram))))
  if (ncol(common$z) <= nrow(common$z)) {
    whole <- diag(nrow(inverse)) - common$ridge * inverse
    return(list(whole = whole, z = NULL, weighted = NULL, own = pmax(0, diag(whole))))
  }
  weighted <- matrix_product(inverse, common$z, control)
  list(whole = NULL, z = common$z, weighted = weighted, own = pmax(0, colSums(common$z * weighted)))
}

# Scores of samples in an order that is theirs, wherever they are; of very many samples some.
common_scores <- function(data, scores, how) {
  n <- nrow(data)
  p <- ncol(data)
  most <- if (p <= max_common_samples) max(max_common_samples, max_common_values %/% p) else max_common_samples
  plan <- list(count = 1, purpose = 3, key = how$key)
  rows <- .Call(C_weft_regulation_orders, sample_names(data), plan, how$host)[seq_len(min(n, most))] + 1L
  if (!is_cells(data)) return(scores[rows, , drop = FALSE])
  some <- as.matrix(data[rows, , drop = FALSE])
  regulation_scores(if (is.null(how$size)) some else some / how$size[rows], how$host)
}

# Columns of mean 0 and length 1; of zeros where all scores are equal.
standard_scores <- function(scores) {
  n <- nrow(scores)
  z <- scores - rep(colMeans(scores), each = n)
  length <- sqrt(colSums(z^2))
  z / rep(ifelse(length > 0, length, 1), each = n)
}

# How far each edge's correlation stands out among those of its regulator and those of its target, from 0 to 1.
correlation_excess <- function(edges, genes, common, control,
                               block = max(1, 2000000 %/% length(genes$regulators))) {
  similar <- c(weigh_samples(common, control), list(block = block))
  .Call(C_weft_regulation_excess, c(genes[c("regulators", "targets")], edges[c("starts", "from")]), similar, control)
}

# A number from 0 to 1 for each edge. Where the regulators were named it does not matter how much the areas of one vary
# (which says that it regulates at all), but how much it is chosen.
edge_weights <- function(edges, genes, full, common, control) {
  area <- edges$area / full
  share <- common$share
  if (genes$named) {
    standing <- if (length(genes$targets) > 1L && length(area)) edges$sums / max(edges$sums) else 1 + 0 * edges$sums
  } else {
    standing <- edges$share
    reversed <- reversed_areas(edges, area, genes, control)
    share <- max(share, between(alike_both_ways(area, reversed, genes), both_ways_alike))
    if (share > 0) area <- (area + share * ifelse(is.na(reversed), 0, reversed)) / (1 + share)
  }
  if (share == 0) return(area * standing[edges$from])
  ((1 - share) * area + share * correlation_excess(edges, genes, common, control)) * standing[edges$from]^(1 - share)
}

# What the edge from its target to its regulator has, 0 where there is none; NaN where the target is not a regulator or
# the regulator no target.
reversed_areas <- function(edges, area, genes, control) {
  place <- function(x, table) match(x, table, nomatch = 0L) - 1L
  of <- list(area = area, back = place(genes$regulators, genes$targets), there = place(genes$targets, genes$regulators))
  .Call(C_weft_regulation_reversed, c(genes[c("regulators", "targets")], edges[c("starts", "from")]), of, control)
}

# The correlation between areas and those of the reversed edges, over all pairs of genes that are both regulators and
# targets; 0 where that says nothing.
alike_both_ways <- function(area, reversed, genes) {
  count <- length(intersect(genes$regulators, genes$targets))
  pairs <- count * (count - 1)
  used <- !is.na(reversed)
  mean <- sum(area[used]) / pairs
  variance <- sum(area[used]^2) / pairs - mean^2
  if (pairs < 6 || variance <= 1e-12) return(0)
  (sum(area[used] * reversed[used]) / pairs - mean^2) / variance
}
