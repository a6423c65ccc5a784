# The laws of pairs' information when the two are independent: one column's rows are in random order (what is known of
# the other does not matter). Columns are of kinds with the same law, so that a false discovery rate needs one threshold
# of information per pair of kinds.
#
# Correlations (Pearson, Spearman, copula): r^2 has the mean 1 / (n - 1), and a second moment that the excess kurtosis
# of both columns gives (Pitman 1937). A beta distribution with these is Student's t for normal columns; columns with
# outliers, ties and few rows have heavier tails. Counts: chi-squared of G with Williams' correction for levels of equal
# frequency. No p-value of numbers is below one over the number of different orders of the rows
# (src/mi/null/permutation_moments.h).

# What mi_matrix() records of its columns for this (src/mi/null/permutation_moments.h).
column_tails <- function(data, estimator, control) {
  tails <- .Call(C_weft_mi_tails, data, estimator, control)
  list(kurtosis = tails[1L, ], stretch = tails[2L, ], orders = tails[3L, ])
}

# list(kind: of every column, from 1; p_value(nats, n, i, j) of pairs of columns; least(t, n, a, b): the nats that kinds
# a and b have at p = t; orders: the logarithm of how many orders each column has).
pair_law <- function(test, p) {
  c(if (!is.null(test$levels)) counts_law(test) else correlation_law(test, p),
    list(orders = test$orders %||% rep(Inf, p)))
}

correlation_law <- function(test, p) {
  kurtosis <- steps_of(test$kurtosis %||% numeric(p))
  kendall <- test$estimator == "kendall"
  stretch <- if (kendall) 1.02^round(log(test$stretch %||% rep(1, p), 1.02)) else rep(1, p)
  about <- paste(kurtosis, stretch)
  kinds <- which(!duplicated(about)) # a column of each
  # the mean of the squared correlation of columns i and j, and the beta distribution of what it leaves of 1
  mean_of <- function(n, i, j) {
    if (kendall) 2 * (2 * n + 5) / (9 * n * (n - 1)) * stretch[i] * stretch[j] else 1 / (n - 1)
  }
  beta <- function(n, i, j) {
    mean <- mean_of(n, i, j)
    second <- 3 * mean^2 * (n - 1) / (n + 1) * (1 + (n - 2) * (n - 3) / (3 * n * (n - 1)^2) * kurtosis[i] * kurtosis[j])
    spread <- pmax(second - mean^2, 1e-6 * mean^2)
    size <- pmax(mean * (1 - mean) / spread - 1, 1e-3)
    list((1 - mean) * size, mean * size)
  }
  list(
    kind = match(about, about[kinds]),
    p_value = function(nats, n, i, j) {
      few <- rep_len(n < 3, length(nats))
      n <- pmax(n, 3)
      shape <- beta(n, i, j)
      p <- stats::pbeta(exp(-2 * nats), shape[[1L]], shape[[2L]])
      # tau-b without ties has lighter tails than the beta distribution where few orders make it
      if (kendall) p <- pmax(p, stats::pchisq(-expm1(-2 * nats) / mean_of(n, i, j), 1, lower.tail = FALSE))
      p[few] <- 1
      p
    },
    least = function(t, n, a, b) {
      i <- kinds[a]
      j <- kinds[b]
      if (n < 3) return(rep(Inf, length(i)))
      shape <- beta(n, i, j)
      rest <- stats::qbeta(t, shape[[1L]], shape[[2L]])
      if (kendall) rest <- pmin(rest, pmax(1 - stats::qchisq(t, 1, lower.tail = FALSE) * mean_of(n, i, j), 0))
      -log(rest) / 2
    }
  )
}

# Kurtosis in steps of a quarter from its least value, -2, so that there are few kinds; ranks without ties are a step.
steps_of <- function(kurtosis) 0.8 * 1.25^round(log(pmax(kurtosis + 2, 0.05) / 0.8, 1.25)) - 2

counts_law <- function(test) {
  levels <- pmax(as.double(test$levels), 1)
  kinds <- unique(levels)
  df <- function(a, b) (a - 1) * (b - 1)
  g <- function(nats, n, a, b) 2 * n * nats / (1 + (a + 1) * (b + 1) / (6 * n))
  list(
    kind = match(levels, kinds),
    p_value = function(nats, n, i, j) {
      free <- df(levels[i], levels[j])
      ifelse(free == 0, 1, stats::pchisq(g(nats, n, levels[i], levels[j]), pmax(free, 1), lower.tail = FALSE))
    },
    least = function(t, n, a, b) {
      free <- df(kinds[a], kinds[b])
      ifelse(free == 0, Inf, stats::qchisq(t, pmax(free, 1), lower.tail = FALSE) / g(1, n, kinds[a], kinds[b]))
    }
  )
}

# p-values of pairs, or NULL when there is no test. at: a matrix of row and column numbers; columns: whole columns, as a
# matrix.
pair_p_values <- function(m, at = NULL, columns = seq_len(ncol(m)), test = pair_test(m)) {
  if (is.null(test)) return(NULL)
  law <- pair_law(test, ncol(m))
  whole <- is.null(at)
  if (whole) at <- cbind(rep(seq_len(nrow(m)), length(columns)), rep(columns, each = nrow(m)))
  nats <- unclass(m)[at] * nats_per(attr(m, "unit"))
  n <- if (length(test$n) > 1L) matrix(test$n, nrow(m))[at] else as.double(test$n)
  p <- law$p_value(nats, n, at[, 1L], at[, 2L])
  p <- pmax(p, exp(-pmin(law$orders[at[, 1L]], law$orders[at[, 2L]])))
  if (!whole) return(p)
  dim(p) <- c(nrow(m), length(columns))
  p[cbind(columns, seq_along(columns), deparse.level = 0)] <- NA
  p
}

nats_per <- function(unit) if (identical(unit, "nats")) 1 else log(2)

# Which pairs pass at a false discovery rate (Benjamini and Hochberg, over all pairs): those whose information in m
# reaches the threshold of their kinds, `thresholds`, or where every pair has its own number of rows, those whose entry
# of `measure` (-p, which takes one more matrix) is above `cut`. Where all pairs have one threshold, `measure` is m.
# `information`: what all of them have more of. NULL where there is no test. With targets, only pairs with one of them
# are tested.
significant_pairs <- function(m, fdr, threads = NULL, targets = NULL) {
  test <- pair_test(m)
  if (is.null(test)) return(NULL)
  if (!is.null(targets)) return(significant_with_targets(m, test, fdr, targets))
  if (length(test$n) > 1L) return(significant_measures(m, test, fdr, threads))
  law <- pair_law(test, ncol(m))
  thresholds <- function(t) thresholds_at(law, t, as.double(test$n), attr(m, "unit"))
  one <- all(law$kind == 1L) && all(law$orders == law$orders[1L])
  threshold <- function(t) if (t < exp(-law$orders[1L])) Inf else thresholds(t)$threshold[1L]
  t <- step_up(fdr, choose(ncol(m), 2), function(t) {
    if (one) pairs_reaching(m, threshold(t), threads)
    else sum(.Call(C_weft_mi_reaching_thresholds, m, thresholds(t), pass_control(threads)))
  })
  if (one || t == 0) {
    cut <- if (t == 0) Inf else threshold(t)
    return(list(measure = m, cut = cut, information = cut))
  }
  found <- thresholds(t)
  list(thresholds = found, information = min(found$threshold))
}

# What C_weft_mi_cut_thresholds takes; columns with too few orders for p = t are of the last kind, which has infinite
# thresholds.
thresholds_at <- function(law, t, n, unit) {
  kinds <- max(law$kind, 0L)
  threshold <- matrix(Inf, kinds + 1L, kinds + 1L)
  pairs <- which(upper.tri(diag(kinds), diag = TRUE), arr.ind = TRUE)
  least <- law$least(t, n, pairs[, 1L], pairs[, 2L]) / nats_per(unit) * (1 - 1e-12) # pairs at the threshold pass
  threshold[pairs] <- threshold[pairs[, 2:1, drop = FALSE]] <- least
  list(kind = ifelse(t < exp(-law$orders), kinds, law$kind - 1L), threshold = threshold)
}

significant_measures <- function(m, test, fdr, threads) {
  measure <- matrix(0, nrow(m), ncol(m))
  at_once <- max(1, 2^20 %/% max(1, nrow(m)))
  for (first in seq.int(1, by = at_once, length.out = ceiling(ncol(m) / at_once))) {
    columns <- seq.int(first, min(first + at_once - 1, ncol(m)))
    measure[, columns] <- -pair_p_values(m, columns = columns, test = test)
  }
  t <- step_up(fdr, choose(ncol(m), 2), function(t) pairs_reaching(measure, -t, threads))
  cut <- if (t > 0) -t * (1 + 1e-12) else Inf
  list(measure = measure, cut = cut, information = least_information(m, measure, cut))
}

significant_with_targets <- function(m, test, fdr, targets) {
  p <- pair_p_values(m, columns = targets, test = test)
  both <- p[targets, , drop = FALSE]
  both[upper.tri(both)] <- NA # pairs of two targets count once
  once <- c(p[-targets, ], both)
  once <- once[!is.na(once)]
  t <- fdr * sum(false_rates(once) <= fdr) / max(1, length(once))
  if (t == 0) return(list(measure = m, cut = Inf, information = Inf))
  measure <- matrix(-Inf, nrow(m), ncol(m))
  measure[, targets] <- -p
  measure[targets, ] <- t(-p)
  measure[cbind(targets, targets)] <- -Inf
  cut <- -t * (1 + 1e-12)
  list(measure = measure, cut = cut, information = min(m[, targets][!is.na(p) & -p > cut]))
}

# The weights w of the pairs of m that are significant; the others' become 0.
cut_to_significant <- function(w, m, significant, control) {
  if (is.null(significant$thresholds)) .Call(C_weft_mi_cut_edges, w, significant$measure, significant$cut, 0, control)
  else .Call(C_weft_mi_cut_thresholds, w, m, significant$thresholds, control)
}

# The greatest t with t = fdr * (pairs with p <= t) / pairs: from fdr down, until it no longer changes.
step_up <- function(fdr, pairs, count) {
  t <- if (pairs > 0) fdr else 0
  while (t > 0) {
    next_t <- fdr * count(t) / pairs
    if (next_t >= t) break
    t <- next_t
  }
  t
}

least_information <- function(m, measure, cut) {
  least <- Inf
  for (j in seq_len(ncol(m))) {
    passes <- which(measure[seq_len(j - 1L), j] > cut)
    if (length(passes)) least <- min(least, m[passes, j])
  }
  least
}
