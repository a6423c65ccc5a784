# The empirical Bayes step of gene_ranking(): a prior for the variance of each gene, estimated from all genes.
#
# Genes' variances s2 are taken for draws of s02 F(df, d0) (Smyth 2004). log s2 has mean log s02 + digamma(df / 2) -
# log(df / 2) - digamma(d0 / 2) + log(d0 / 2) and variance trigamma(df / 2) + trigamma(d0 / 2), which gives d0 and s02;
# with a trend, log s02 is a natural cubic spline of the genes' means. The variance that tests use is the mean of s2 and
# s02, weighted by df and d0.

# variance, df: one per gene, NA and 0 where there is none. covariate: the genes' means, or NULL. A list: d0 (one
# number, or one per gene where some are set apart), s02 (one number, or one per gene with a trend), post (variances for
# the tests), df (their degrees of freedom), odd (how many genes were set apart).
moderate <- function(variance, df, covariate = NULL, robust = TRUE) {
  prior <- variance_prior(variance, df, covariate)
  odd <- 0L
  if (robust && sum(df > 0) >= least_robust && any(prior$s02 > 0)) {
    prior <- robust_prior(variance, df, covariate, prior)
    odd <- sum(prior$d0 < max(prior$d0))
  }
  finite <- rep(is.finite(prior$d0), length.out = length(df))
  own <- ifelse(df > 0, df * variance, 0)
  post <- (ifelse(finite, prior$d0, 1) * prior$s02 + ifelse(finite, own, 0)) / ifelse(finite, prior$d0 + df, 1)
  list(d0 = prior$d0, s02 = prior$s02, post = post, df = pmin(df + prior$d0, sum(df)), odd = odd)
}

least_robust <- 10L # genes: quantiles of fewer say little

# Logarithms of variances; those of 0 count as a hundred-thousandth of the median.
log_variances <- function(variance) {
  middle <- stats::median(variance)
  if (middle == 0) middle <- mean(variance)
  log(pmax(variance, 1e-5 * middle))
}

variance_prior <- function(variance, df, covariate = NULL) {
  use <- which(df > 0 & !is.na(variance))
  count <- length(variance)
  if (!length(use) || all(variance[use] == 0)) return(list(d0 = 0, s02 = 0))
  z <- log_variances(variance[use]) - log_chisq_mean(df[use])
  if (length(use) < 2L) return(list(d0 = 0, s02 = exp(z)))
  level <- level_of(z, if (!is.null(covariate)) covariate[use])
  excess <- sum((z - level$fitted)^2) / max(1, length(use) - level$rank) - mean(trigamma(df[use] / 2))
  d0 <- if (excess > 0) 2 * inverse_trigamma(excess) else Inf
  shift <- if (is.finite(d0)) -log_chisq_mean(d0) else 0
  if (is.null(covariate)) {
    return(list(d0 = d0, s02 = if (is.finite(d0)) exp(level$fitted[1L] - shift) else mean(variance[use])))
  }
  s02 <- rep(NA_real_, count)
  s02[use] <- exp(level$fitted - shift)
  rest <- which(is.na(s02) & !is.na(covariate))
  if (length(rest)) s02[rest] <- exp(level$at(covariate[rest]) - shift)
  list(d0 = d0, s02 = s02)
}

# E log(chi-squared / df)
log_chisq_mean <- function(df) digamma(df / 2) - log(df / 2)

# The mean of z, or a natural spline over the covariate: as many columns as genes allow, four from 30 on.
level_of <- function(z, covariate) {
  if (is.null(covariate)) return(list(fitted = rep(mean(z), length(z)), rank = 1L))
  count <- min(1L + (length(z) >= 3L) + (length(z) >= 6L) + (length(z) >= 30L), length(unique(covariate)))
  flat <- list(fitted = rep(mean(z), length(z)), rank = 1L, at = function(new) rep(mean(z), length(new)))
  if (count < 2L) return(flat)
  # fails where one gene is so far from the others that these have one mean
  basis <- tryCatch(splines::ns(covariate, df = count, intercept = TRUE), error = function(e) NULL)
  if (is.null(basis) || !all(is.finite(basis))) return(flat)
  solved <- qr(basis)
  beta <- qr.coef(solved, z)
  beta[is.na(beta)] <- 0
  list(fitted = drop(basis %*% beta), rank = solved$rank,
       at = function(new) drop(stats::predict(basis, new) %*% beta))
}

# The x with trigamma(x) = y, by Newton's method on 1 / trigamma, which is nearly linear and convex: from below it
# never passes the root.
inverse_trigamma <- function(y) {
  if (y > 1e7) return(1 / sqrt(y))
  if (y < 1e-6) return(1 / y)
  x <- 0.5 + 1 / y
  for (turn in 1:50) {
    value <- trigamma(x)
    step <- value * (1 - value / y) / psigamma(x, 2L)
    x <- x + step
    if (abs(step) < 1e-10 * x) break
  }
  x
}

# ---- odd genes ----

# Phipson and others (2016): d0 and s02 from log variances whose tails, 5 % below and 10 % above, are drawn in to their
# quantiles; genes whose variance is too large for the others get fewer degrees of freedom of the prior.
robust_prior <- function(variance, df, covariate, plain) {
  use <- which(df > 0 & !is.na(variance))
  most <- max(df[use])
  s2 <- exp(log_variances(variance[use]))
  if (any(df[use] < most)) s2 <- same_freedom(s2, df[use], most, plain, use)
  z <- log(s2)
  level <- robust_level(z, if (!is.null(covariate)) covariate[use])
  rest <- z - level$fitted
  ends <- stats::quantile(rest, c(drawn_in[1L], 1 - drawn_in[2L]), names = FALSE)
  drawn <- pmin(pmax(rest, ends[1L]), ends[2L])
  d0 <- max(freedom_for(stats::var(drawn), most), plain$d0) # odd genes can only make variances look more different
  shift <- mean(drawn) - drawn_moments(most, d0)$mean
  s02 <- rep(exp(level$fitted + shift), length.out = length(use))
  each <- prior_freedom(s2 / s02, most, d0)
  out <- list(d0 = rep(d0, length(variance)), s02 = plain$s02)
  out$d0[use] <- each
  if (is.null(covariate)) {
    out$s02 <- s02[1L]
  } else {
    out$s02[use] <- s02
    others <- setdiff(which(!is.na(covariate)), use)
    if (length(others)) out$s02[others] <- exp(level$at(covariate[others]) + shift)
  }
  out
}

drawn_in <- c(0.05, 0.1)

# The trend that odd genes do not move: the spline, then three times that of values whose tails are drawn in towards it.
robust_level <- function(z, covariate) {
  if (is.null(covariate)) return(list(fitted = rep(0, length(z))))
  level <- level_of(z, covariate)
  for (turn in 1:3) {
    rest <- z - level$fitted
    ends <- stats::quantile(rest, c(drawn_in[1L], 1 - drawn_in[2L]), names = FALSE)
    level <- level_of(level$fitted + pmin(pmax(rest, ends[1L]), ends[2L]), covariate)
  }
  level
}

# Variances of genes with gaps, as they would be with `most` degrees of freedom.
same_freedom <- function(s2, df, most, plain, use) {
  s02 <- if (length(plain$s02) > 1L) plain$s02[use] else plain$s02
  ratio <- s2 / s02
  few <- which(df < most)
  s02 <- rep(s02, length.out = length(s2))
  upper <- ratio[few] > 1 # the smaller tail has all its digits
  p <- ifelse(upper, stats::pf(ratio[few], df[few], plain$d0, lower.tail = FALSE, log.p = TRUE),
              stats::pf(ratio[few], df[few], plain$d0, log.p = TRUE))
  s2[few] <- s02[few] * ifelse(upper, stats::qf(p, most, plain$d0, lower.tail = FALSE, log.p = TRUE),
                               stats::qf(p, most, plain$d0, log.p = TRUE))
  s2
}

# Mean and variance of log F(df, d0) with its tails drawn in: integrals of the quantile function between them.
drawn_moments <- function(df, d0) {
  nodes <- gauss_legendre(64L)
  low <- drawn_in[1L]
  high <- 1 - drawn_in[2L]
  at <- log(stats::qf(c(low, high, low + (high - low) * nodes$x), df, d0))
  weight <- c(drawn_in, (high - low) * nodes$w)
  mean <- sum(weight * at)
  list(mean = mean, variance = sum(weight * (at - mean)^2))
}

# The d0 with which log F has this variance when its tails are drawn in; Inf where even that has more.
freedom_for <- function(variance, df) {
  beyond <- function(share) drawn_moments(df, share / (1 - share))$variance - variance
  if (drawn_moments(df, Inf)$variance >= variance) return(Inf)
  share <- c(0.01, 1 - 1e-8)
  if (beyond(share[1L]) <= 0) return(share[1L] / (1 - share[1L]))
  if (beyond(share[2L]) >= 0) return(Inf)
  found <- stats::uniroot(beyond, share, tol = 1e-12)$root
  found / (1 - found)
}

# Each gene's degrees of freedom of the prior. A gene is odd with the probability 1 - (tail of F) / (share of genes with
# as large a ratio); odd ones have so few degrees of freedom that the largest ratio is the median; larger ratios never
# have more than smaller ones.
prior_freedom <- function(ratio, df, d0) {
  count <- length(ratio)
  tail <- stats::pf(ratio, df, d0, lower.tail = FALSE, log.p = TRUE)
  seen <- (count - rank(ratio) + 0.5) / count
  regular <- pmin(exp(tail - log(seen)), 1)
  if (all(regular == 1)) return(rep(d0, count))
  fewest <- freedom_of_largest(ratio, df, d0, min(tail))
  each <- if (is.finite(d0)) regular * d0 + (1 - regular) * fewest
          else 1 / ((1 - regular) / fewest) # Inf where a gene is regular
  order <- order(-ratio)
  sorted <- each[order]
  mean <- cumsum(sorted) / seq_along(sorted)
  lowest <- which.min(mean)
  sorted[seq_len(lowest)] <- mean[lowest]
  each[order] <- cummax(sorted)
  each
}

# The d0 with which the largest ratio is the median of F. `log_tail` is -Inf where the tail underflows.
freedom_of_largest <- function(ratio, df, d0, log_tail) {
  largest <- max(ratio)
  few <- if (is.finite(d0)) log(0.5) / log_tail * d0 else log(0.5) / log_tail * 1000
  above <- function(log_d0) stats::pf(largest, df, exp(log_d0), lower.tail = FALSE, log.p = TRUE) - log(0.5)
  ends <- c(log(max(min(few, 1e-4), 1e-10)), log(if (is.finite(d0)) d0 else 1e6))
  if (above(ends[1L]) <= 0) return(exp(ends[1L]))
  if (above(ends[2L]) >= 0) return(exp(ends[2L]))
  exp(stats::uniroot(above, ends, tol = 1e-8)$root)
}
