# References for the mi_ functions, as plain as can be.

# Entropy in bits of the combinations of some vectors.
ref_entropy <- function(...) {
  p <- as.vector(table(interaction(..., drop = TRUE))) / length(..1)
  -sum(p[p > 0] * log2(p[p > 0]))
}
ref_mi <- function(x, y) ref_entropy(x) + ref_entropy(y) - ref_entropy(x, y)

# Second estimator of Kraskov and others, in bits.
ref_ksg <- function(x, y, k) {
  n <- length(x)
  dx <- abs(outer(x / sd(x), x / sd(x), "-"))
  dy <- abs(outer(y / sd(y), y / sd(y), "-"))
  d <- pmax(dx, dy)
  diag(d) <- Inf
  each <- vapply(seq_len(n), function(i) {
    near <- order(d[i, ])[seq_len(k)]
    digamma(sum(dx[i, ] <= max(dx[i, near])) - 1) + digamma(sum(dy[i, ] <= max(dy[i, near])) - 1)
  }, 0)
  (digamma(k) - 1 / k + digamma(n) - mean(each)) / log(2)
}

ref_of_rho <- function(rho) -0.5 * log2(pmax(1 - rho^2, 2^-46))
plain_matrix <- function(m) unname(as.matrix(m))

# ---- bins ----

# Whether values are looked at from the greatest down: their class counts, read from there, come first.
ref_backward <- function(x, class) {
  counts <- unclass(table(x, class))
  reads <- t(counts - counts[rev(seq_len(nrow(counts))), , drop = FALSE])
  first <- reads[reads != 0][1]
  !is.na(first) && first < 0
}

# One greedy pass by the definitions. The first of equal cuts is taken.
ref_top_down <- function(x, class, method) {
  values <- sort(unique(x))
  candidates <- (values[-1] + values[-length(values)]) / 2
  backward <- ref_backward(x, class)
  value_of <- function(cuts) {
    q <- table(findInterval(x, cuts), class)
    q <- q[rowSums(q) > 0, , drop = FALSE]
    r <- nrow(q)
    chi <- sum(q) * (sum(q^2 / outer(rowSums(q), colSums(q))) - 1)
    switch(method, caim = mean(apply(q, 1, max)^2 / rowSums(q)), ameva = chi / (r * (ncol(q) - 1)),
           cacc = sqrt(chi / log(r) / (chi / log(r) + sum(q))))
  }
  cuts <- numeric()
  reached <- 0
  repeat {
    left <- setdiff(candidates, cuts)
    if (!length(left)) break
    found <- vapply(left, function(cut) value_of(sort(c(cuts, cut))), 0)
    bins <- length(cuts) + 1
    if (!(max(found) > reached || (method != "ameva" && bins < length(unique(class))))) break
    equal <- left[found >= max(found) - 1e-12 * max(1, abs(max(found)))]
    best <- if (backward) max(equal) else min(equal)
    reached <- max(found)
    cuts <- sort(c(cuts, best))
  }
  cuts
}

# Ties, zero-inflated columns, pure bins at either end.
some_cut_column <- function(n) {
  x <- switch(sample(4L, 1L), sample(0:9, n, TRUE), stats::rpois(n, 1), round(stats::rnorm(n), 1),
              ifelse(stats::runif(n) < 0.5, 0, stats::rexp(n)))
  class <- if (stats::runif(1) < 0.5) sample(3L, n, TRUE) else 1L + (x > stats::median(x)) + (stats::runif(n) < 0.2)
  list(x = as.double(x), class = class)
}

# Splits by description length (Fayyad and Irani 1993), as long as they pay. The first of equal cuts is taken.
ref_mdl <- function(x, class) {
  backward <- ref_backward(x, class)
  split_part <- function(x, class) {
    values <- sort(unique(x))
    if (length(values) < 2L) return(NULL)
    n <- length(x)
    entropy <- function(z) { p <- table(z) / length(z); -sum(p * log2(p)) }
    cuts <- values[-1L] / 2 + values[-length(values)] / 2
    after <- vapply(cuts, function(cut) {
      low <- class[x <= cut]
      high <- class[x > cut]
      (length(low) * entropy(low) + length(high) * entropy(high)) / n
    }, 0)
    equal <- cuts[after <= min(after) + 1e-12]
    cut <- if (backward) max(equal) else min(equal)
    low <- class[x <= cut]
    high <- class[x > cut]
    k <- function(z) length(unique(z))
    cost <- log2(n - 1) + log2(3^k(class) - 2) - (k(class) * entropy(class) - k(low) * entropy(low) -
                                                    k(high) * entropy(high))
    if (!(entropy(class) - min(after) > cost / n)) return(NULL)
    c(split_part(x[x <= cut], low), cut, split_part(x[x > cut], high))
  }
  split_part(x, class)
}
