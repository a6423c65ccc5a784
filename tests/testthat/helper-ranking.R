# References for gene_ranking() that share nothing with it: one lm() per gene, Smyth's (2004) moments, and lists of
# values.

# The excess of the variance of log s2 over its error, and what it makes d0 and s02; by a search rather than Newton's
# method.
plain_prior <- function(s2, df) {
  e <- log(s2) - digamma(df / 2) + log(df / 2)
  excess <- var(e) - mean(trigamma(df / 2))
  if (excess <= 0) return(list(d0 = Inf, s02 = mean(s2)))
  half <- exp(uniroot(function(log_half) trigamma(exp(log_half)) - excess, c(-15, 15), tol = 1e-14)$root)
  list(d0 = 2 * half, s02 = exp(mean(e) + digamma(half) - log(half)))
}

# One lm() per gene; `tested`: names of coefficients, tested together. A data frame with a row per gene.
plain_ranking <- function(x, formula, data, tested, weights = NULL) {
  fits <- lapply(seq_len(ncol(x)), function(j) {
    data$y <- x[, j]
    data$w <- if (is.null(weights)) rep(1, nrow(x)) else weights
    fit <- lm(update(formula, y ~ .), data, weights = w)
    beta <- coef(fit)[tested]
    unscaled <- summary(fit)$cov.unscaled[tested, tested, drop = FALSE]
    list(s2 = sum(fit$weights * residuals(fit)^2) / fit$df.residual, df = fit$df.residual, estimate = unname(beta[1L]),
         unscaled = sqrt(unscaled[1L, 1L]), numerator = drop(beta %*% solve(unscaled, beta)) / length(beta))
  })
  out <- as.data.frame(lapply(stats::setNames(nm = names(fits[[1L]])),
                              function(name) vapply(fits, `[[`, 0, name)))
  prior <- plain_prior(out$s2, out$df)
  post <- if (is.finite(prior$d0)) (prior$d0 * prior$s02 + out$df * out$s2) / (prior$d0 + out$df) else prior$s02
  total <- pmin(prior$d0 + out$df, sum(out$df))
  out$t <- out$estimate / (out$unscaled * sqrt(post))
  out$f <- out$numerator / post
  out$p_t <- 2 * pt(-abs(out$t), total)
  out$p_f <- pf(out$f, length(tested), total, lower.tail = FALSE)
  out$wide <- qt(0.975, total) * out$unscaled * sqrt(post)
  out$d0 <- prior$d0
  out$s02 <- prior$s02
  rownames(out) <- colnames(x)
  out
}

# Genes with variances that differ, of which the first ten differ between classes.
ranked_data <- function(n = 16, p = 60, seed = 1, levels = 2) {
  set.seed(seed)
  class <- factor(rep(letters[seq_len(levels)], length.out = n))
  batch <- factor(rep(c("u", "v"), each = n / 2))
  x <- matrix(rnorm(n * p), n) * rep(exp(rnorm(p, 0, 0.5)), each = n) + 8
  x[class == "b", 1:10] <- x[class == "b", 1:10] + 2
  x <- x + (batch == "v")
  dimnames(x) <- list(paste0("s", seq_len(n)), paste0("g", seq_len(p)))
  list(x = x, class = class, batch = batch, age = rnorm(n, 50, 10))
}

plain_control <- list(trend = FALSE, robust = FALSE, weights = "none")

# What gene_quality() returns, with the values before batches were taken out.
measured_quality <- function(d, ...) {
  q <- suppressWarnings(call_with(gene_quality, list(d$x, d$class, ...)), classes = "weft_warning")
  q$measured <- d$x[, colnames(q$x)]
  q
}

counted_quality <- function(counts, class, ...) {
  q <- suppressWarnings(call_with(gene_quality, list(counts, class, ..., transform = "counts")),
                        classes = "weft_warning")
  q$counts <- counts[, colnames(q$x)]
  q
}
