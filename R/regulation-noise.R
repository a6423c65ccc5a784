# Comparisons on equal noise: where one condition is noisier than another, all its correlations are weaker, and that by
# itself is no other network.

# list(placed, about): the places of compare_regulation(), to which noise was added in the conditions whose correlations
# are stronger, until they are as strong as in the weakest; about: NULL where no noise was needed, or a list of
# `weakest`, the condition; `factor`, one per condition, what the median correlation was multiplied by; and `p_value`.
#
# The pairs that count are those with the greatest correlations over all conditions together. In each condition the
# strength is the median of their correlations, relative to those over all: edges that only one condition has are too
# few to move it. It is tested by permuting the conditions. `data` has the values themselves: a gene gets noise as its
# variance is smaller than in the weakest condition, and all get the same where that does not account for the strength.
equal_noise <- function(data, placed, groups, how) {
  none <- list(placed = placed, about = NULL)
  pairs <- strong_pairs(placed, groups, how$genes)
  if (is.null(pairs)) return(none)
  n <- length(groups)
  drawn <- matrix(draws("uniform", n * noise_permutations, key = how$key, stream = 71), n)
  strength <- correlation_strength(pairs, groups)
  spread <- function(v) diff(range(v))
  chance <- apply(drawn, 2L, function(u) spread(correlation_strength(pairs, groups[order(u)])))
  p <- (1 + sum(chance >= spread(strength) * (1 - 1e-9))) / (1 + noise_permutations)
  if (p > noise_level || min(strength) <= 0) return(none)
  weakest <- which.min(strength)
  variances <- vapply(split(seq_len(n), groups), function(rows) {
    apply(data[rows, , drop = FALSE], 2L, stats::mad)^2
  }, numeric(ncol(data)))
  noise <- matrix(draws("normal", length(placed), key = how$key, stream = 72), n)
  for (g in setdiff(seq_along(strength), weakest)) {
    rows <- which(as.integer(groups) == g)
    ratio <- variances[, weakest] / variances[, g]
    share <- noise_share(pairs, rows, strength[[weakest]], pmax(0, ifelse(is.finite(ratio), ratio, 1) - 1))
    spreads <- sqrt(share) * apply(placed[rows, , drop = FALSE], 2L, stats::sd)
    placed[rows, ] <- placed[rows, ] + noise[rows, ] * rep(spreads, each = length(rows))
  }
  list(placed = places_in_groups(placed, groups, how$host),
       about = list(weakest = levels(groups)[weakest],
                    factor = stats::setNames(min(strength) / strength, levels(groups)), p_value = p))
}

noise_permutations <- 199
noise_level <- 0.1 # from here on networks are compared on equal noise as well

# list(first, second: columns; products: of the scaled places of each pair's genes, samples x pairs; overall: their
# correlations over all conditions), of pairs of a regulator and a target; NULL where fewer than ten have a correlation
# beyond chance. Of many genes some hundreds are looked at.
strong_pairs <- function(placed, groups, genes, most = 300L) {
  some <- sort(unique(c(genes$regulators, genes$targets))) + 1L
  if (length(some) > most) some <- some[unique(round(seq(1, length(some), length.out = most)))]
  z <- placed[, some, drop = FALSE]
  for (rows in split(seq_along(groups), groups)) z[rows, ] <- scaled_columns(z[rows, , drop = FALSE])
  n <- nrow(z)
  r <- crossprod(z) / n
  pair <- which(upper.tri(r) & abs(r) > stats::qnorm(0.0005, lower.tail = FALSE) / sqrt(n), arr.ind = TRUE)
  if (nrow(pair) < 10L) return(NULL)
  pair <- pair[utils::head(order(-abs(r[pair])), 2L * length(some)), , drop = FALSE]
  list(first = some[pair[, 1L]], second = some[pair[, 2L]], overall = r[pair],
       products = z[, pair[, 1L], drop = FALSE] * z[, pair[, 2L], drop = FALSE])
}

# One per condition.
correlation_strength <- function(pairs, groups) {
  own <- rowsum(pairs$products, as.integer(groups)) / as.vector(table(groups))
  apply(own / rep(pairs$overall, each = nrow(own)), 1L, stats::median)
}

# The variance of the noise to add to each gene of a condition, in units of the gene's own, so that its correlations are
# as strong as `wanted`: so much of `excess` as is needed and, where that does not do, the same more for all genes.
noise_share <- function(pairs, rows, wanted, excess) {
  own <- colMeans(pairs$products[rows, , drop = FALSE]) / pairs$overall
  left <- function(share) stats::median(own / sqrt((1 + share[pairs$first]) * (1 + share[pairs$second])))
  if (left(excess) <= wanted) {
    part <- stats::uniroot(function(part) left(part * excess) - wanted, c(0, 1))$root
    return(part * excess)
  }
  (1 + excess) * left(excess) / wanted - 1
}

# The changes of both comparisons: what changed did so in both.
changed_in_both <- function(tested, equal) {
  at <- match(tested$pair, equal$pair)
  greater <- function(what) pmax(tested[[what]], ifelse(is.na(at), 1, equal[[what]][at]))
  list(pair = tested$pair, p_value = greater("p_value"), q_value = greater("q_value"),
       overall = max(tested$overall, equal$overall))
}

# What print says of it.
noise_text <- function(noise) {
  if (is.null(noise)) return(NULL)
  less <- noise$factor[noise$factor < 1]
  sprintf(paste("Correlations are weaker in %s (p = %.2g), possibly due to noise. Networks are therefore also compared",
                "at equal noise (correlations of %s multiplied by %s); p- and q-values are the larger",
                "of the two."),
          noise$weakest, noise$p_value, joined(names(less)), joined(sprintf("%.2g", less)))
}
