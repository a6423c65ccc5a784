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
