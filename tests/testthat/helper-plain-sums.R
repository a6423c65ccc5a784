# Random calls of kernel sums, models of them, and scores and posteriors of Bayesian networks, each with the same
# numbers from a few lines of plain R that share nothing with weft. plain_checks() (helper-plain-mi.R) has them, too.
plain_sums <- function() {
  list(kernel_sum = plain_kernel_sum, kde = plain_kde, kernel_regression = plain_regression,
       bn_scores = plain_bn_scores, bn_exact = plain_bn_exact, pca = plain_pca)
}

# Kernels by the square of the distance in bandwidths.
kernel_formulas <- list(
  gaussian = function(s) exp(-s / 2), laplacian = function(s) exp(-sqrt(s)), cauchy = function(s) 1 / (1 + s),
  matern32 = function(s) (1 + sqrt(3 * s)) * exp(-sqrt(3 * s)),
  matern52 = function(s) (1 + sqrt(5 * s) + 5 * s / 3) * exp(-sqrt(5 * s)),
  uniform = function(s) as.double(s <= 1), epanechnikov = function(s) pmax(1 - s, 0),
  triangular = function(s) pmax(1 - sqrt(s), 0), biweight = function(s) pmax(1 - s, 0)^2,
  cosine = function(s) ifelse(s < 1, cos(pi * sqrt(s) / 2), 0)
)

# A matrix: queries by points.
kernel_values <- function(kernel, q, x, h) {
  matrix(kernel_formulas[[kernel]](squared_distances(q, x, h)), nrow(q))
}

squared_distances <- function(q, x, h) {
  h <- rep_len(h, ncol(x))
  Reduce(`+`, lapply(seq_len(ncol(x)), function(j) outer(q[, j], x[, j], "-")^2 / h[j]^2))
}

plain_points <- function(d = sample(1:4, 1L)) {
  n <- sample(c(1:5, 40, 200), 1L)
  x <- matrix(stats::rnorm(n * d), n)
  if (stats::runif(1) < 0.3) x <- round(x, 1) # ties, and copies
  x
}

# list(got, right, bound, text): |got - right| must not exceed `bound`.
plain_kernel_sum <- function() {
  x <- plain_points()
  q <- matrix(stats::rnorm(20 * ncol(x)), 20)
  h <- if (stats::runif(1) < 0.7) stats::rexp(1) + 0.05 else stats::rexp(ncol(x)) + 0.05
  kernel <- sample(names(kernel_formulas), 1L)
  method <- sample(c("direct", "tree", "auto"), 1L)
  rel_error <- sample(c(0, 1e-6, 1e-3, 0.1), 1L)
  w <- if (stats::runif(1) < 0.5) stats::rexp(nrow(x)) else rep(1, nrow(x))
  got <- weft::kernel_sum(q, x, kernel = kernel, bandwidth = h, weights = w, method = method, rel_error = rel_error)
  right <- drop(kernel_values(kernel, q, x, h) %*% w)
  list(got = as.vector(got), right = right, bound = (rel_error + 1e-12) * right + 1e-300,
       text = sprintf("%s %s, %d x %d, error %g", kernel, method, nrow(x), ncol(x), rel_error))
}

# A kernel's integral by quadrature over radii, so that no constant of weft's is used.
kernel_integral <- function(kernel, d) {
  sphere <- 2 * pi^(d / 2) / gamma(d / 2)
  end <- if (kernel_formulas[[kernel]](1 + 1e-9) > 0) 60 else 1
  radial <- function(r) kernel_formulas[[kernel]](r^2) * r^(d - 1)
  pieces <- seq(0, end, length.out = 61)
  sphere * sum(mapply(function(a, b) stats::integrate(radial, a, b, rel.tol = 1e-10)$value, utils::head(pieces, -1L),
                      pieces[-1L]))
}

plain_kde <- function() {
  x <- plain_points()
  kernel <- sample(setdiff(names(kernel_formulas), "cauchy"), 1L)
  h <- stats::rexp(1) + 0.1
  q <- matrix(stats::rnorm(10 * ncol(x)), 10)
  fit <- weft::kde(x, bandwidth = h, kernel = kernel, rel_error = 0)
  right <- rowMeans(kernel_values(kernel, q, x, h)) / (kernel_integral(kernel, ncol(x)) * h^ncol(x))
  list(got = as.vector(stats::predict(fit, q)), right = right, bound = 1e-7 * right + 1e-12,
       text = sprintf("%s, %d x %d, h %g", kernel, nrow(x), ncol(x), h))
}

plain_regression <- function() {
  x <- plain_points()
  y <- stats::rnorm(nrow(x))
  h <- stats::rexp(1) + 0.5
  q <- x[sample(nrow(x), 10L, TRUE), , drop = FALSE]
  fit <- weft::kernel_regression(x, y, bandwidth = h, rel_error = 0)
  w <- kernel_values("gaussian", q, x, h)
  list(got = as.vector(stats::predict(fit, q)), right = drop(w %*% y) / rowSums(w), bound = 1e-9 * max(abs(y)),
       text = sprintf("%d x %d, h %g", nrow(x), ncol(x), h))
}

# ---- Bayesian networks ----

plain_bn_table <- function(p) {
  n <- sample(c(1, 5, 30, 200), 1L)
  d <- as.data.frame(lapply(seq_len(p), function(j) factor(sample(sample(2:4, 1L), n, TRUE), 1:4)))
  names(d) <- letters[seq_len(p)]
  if (p > 2L) d[[3L]][] <- ifelse(stats::runif(n) < 0.7, as.character(d[[1L]]), as.character(d[[2L]]))
  d
}

# Every parent set of one node, by table() and log-gamma.
plain_bn_scores <- function() {
  d <- plain_bn_table(sample(2:5, 1L))
  score <- sample(c("bdeu", "bic", "k2", "aic", "bds"), 1L)
  table <- weft::bn_scores(d, max_parents = 2, score = score, keep = "all")
  parents <- apply(table$parents, 2L, function(j) table$nodes[j[j > 0]], simplify = FALSE)
  node <- rep(table$nodes, diff(table$start))
  right <- mapply(function(node, parents) reference_score(d, node, parents, score), node, parents)
  list(got = table$score, right = unname(right), bound = 1e-9 * pmax(1, abs(right)),
       text = sprintf("%s, %d x %d", score, nrow(d), ncol(d)))
}

plain_bn_exact <- function() {
  d <- plain_bn_table(sample(2:4, 1L))
  over <- sample(c("dag", "order"), 1L)
  scores <- weft::bn_scores(d, max_parents = ncol(d) - 1, keep = "all")
  fit <- weft::bn_exact(scores, posterior = over)
  dags <- all_dags(ncol(d))
  edges <- enumerated_edges(scores, dags, over)$edges
  best <- max(graph_scores(scores, dags))
  list(got = c(fit$edges, fit$score), right = c(edges, best), bound = 1e-8 * c(rep(1, length(edges)), max(1, -best)),
       text = sprintf("over %ss, %d x %d", over, nrow(d), ncol(d)))
}

# ---- components ----

# By svd() of the centred, scaled and weighted matrix; weights count rows.
plain_pca <- function() {
  n <- sample(3:40, 1L)
  p <- sample(2:20, 1L)
  x <- matrix(stats::rnorm(n * p), n) %*% diag(0.8^seq_len(p), p) + 5
  w <- if (stats::runif(1) < 0.4) sample(1:4, n, TRUE) else rep(1, n)
  k <- sample(min(n - 1, p), 1L)
  scale <- stats::runif(1) < 0.5
  fit <- weft::pca(x, k, scale = scale, weights = if (any(w != 1)) w)
  rows <- x[rep(seq_len(n), w), ]
  right <- stats::prcomp(rows, scale. = scale)$sdev[seq_len(k)]
  ratio <- fit$sdev / right # whatever the divisor of variances is with weights, it is one for all
  list(got = c(fit$sdev, ratio), right = c(if (any(w != 1)) fit$sdev else right, rep(ratio[1L], k)),
       bound = 1e-7 * max(right, 1), text = sprintf("%d x %d, k %d", n, p, k))
}

# The difference in words, or NULL.
plain_difference <- function(call) {
  off <- abs(call$got - call$right)
  bad <- which(!(off <= call$bound))
  if (length(call$got) != length(call$right)) return(paste("lengths differ:", call$text))
  if (length(bad)) sprintf("%s: value %d is %.15g, must be %.15g", call$text, bad[1L], call$got[bad[1L]],
                           call$right[bad[1L]])
}
