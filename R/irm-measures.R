#' Log posterior of a co-clustering
#'
#' The logarithm of p(A | clusters), with the link probabilities integrated out, plus that of the Chinese restaurant
#' process of each partition: the scale on which [irm()] and its methods compare partitions.
#'
#' A block of N links in P observed pairs contributes \eqn{\log B(\beta_1 + N, \beta_2 + P - N) - \log B(\beta_1,
#' \beta_2)}; for counts, with gamma rates, \eqn{\log\Gamma(\beta_1 + N) - \log\Gamma(\beta_1) + \beta_1 \log \beta_2 -
#' (\beta_1 + N)
#' \log(\beta_2 + P) - \sum \log A_{ij}!}. For real values, with sum S and sum of squares Q of the block's values less
#' the mean of all and divided by their standard deviation s, it contributes \eqn{\log\Gamma(\beta_1 + P/2) -
#' \log\Gamma(\beta_1) + \beta_1 \log \beta_2 - \log(1 + P)/2 - (\beta_1 + P/2) \log(\beta_2 + (Q - S^2/(1 + P))/2) -
#' P \log(2\pi s^2)/2}.
#'
#' @inheritParams irm
#' @param row_cluster,col_cluster one cluster per row and per column of `x`: numbers, characters or a factor. A one-mode
#'   graph has `row_cluster` only.
#' @param alpha,beta as in [irm_prior()], but fixed.
#' @param self,assay,threshold,dim see [`irm_control`].
#' @return A number.
#' @export
#' @examples
#' A <- rbind(c(1, 1, 0), c(1, 1, 0), c(0, 0, 1))
#' irm_log_posterior(A, c(1, 1, 2), c(1, 1, 2))
#' irm_log_posterior(A, c(1, 1, 1), c(1, 1, 1))
irm_log_posterior <- function(x, row_cluster, col_cluster = NULL, alpha = 1, beta = c(1, 1), missing = NULL,
                              type = NULL, family = c("bernoulli", "poisson", "gaussian"), self = FALSE, assay = NULL,
                              threshold = NULL, dim = NULL) {
  need_args("x", "row_cluster")
  family <- check_choice(family, irm_families, "family")
  graph <- irm_graph(x, type, family, missing,
                     list(self = self, assay = assay, threshold = threshold, dim = dim))
  hyper <- check_hyper(alpha, beta)
  if (hyper$sample_alpha || hyper$sample_beta) {
    abort_input("`alpha` and `beta` must be numbers.", x = "One is \"sample\".")
  }
  row <- cluster_codes(row_cluster, graph$links$n_row, "row_cluster")
  one_mode <- graph$kind != "bipartite"
  if (one_mode && !is.null(col_cluster) &&
      !identical(cluster_codes(col_cluster, graph$links$n_row, "col_cluster"), row)) {
    abort_input("`col_cluster` must not be given for a one-mode graph, which has one partition.")
  }
  col <- if (one_mode) row else cluster_codes(col_cluster, graph$links$n_col, "col_cluster")
  prior <- list(alpha = rep_len(hyper$alpha, 2L), beta = hyper$beta, poisson = family == "poisson")
  .Call(C_weft_irm_log_posterior, native_graph(graph), native_partition(row, col), prior,
        run_control("cpu", NULL, FALSE))
}

# Labels from 0 by first appearance.
cluster_codes <- function(x, n, arg) {
  if (!is.atomic(x) || length(x) != n || anyNA(x)) {
    abort_input(sprintf("`%s` must contain one cluster for each of %d nodes, without missing values.", arg,
                        as.integer(n)),
                x = paste0("It is ", describe(x), if (is.atomic(x) && anyNA(x)) ", with missing values" else "", "."))
  }
  check_factor(x, sprintf("`%s`", arg))
  match(x, unique(x)) - 1L
}

#' Normalised mutual information of two partitions
#'
#' \eqn{2 I(a;b) / (H(a) + H(b))}: 1 for the same partition under any names, near 0 for unrelated ones; 1 when both are
#' constant.
#'
#' @param a,b one cluster per node: numbers, characters or factors.
#' @return A number from 0 to 1.
#' @export
#' @examples
#' irm_nmi(c(1, 1, 2, 2), c("b", "b", "a", "a"))
#' irm_nmi(c(1, 1, 2, 2), c(1, 2, 1, 2))
irm_nmi <- function(a, b) {
  need_args("a", "b")
  a <- factor_text(a)
  b <- factor_text(b)
  if (!is.atomic(a) || !is.atomic(b) || length(a) != length(b) || length(a) == 0L || anyNA(a) || anyNA(b)) {
    abort_input("`a` and `b` must be two partitions of the same nodes, without missing values.",
                x = sprintf("They are %s and %s.", describe(a), describe(b)))
  }
  a <- match(a, unique(a))
  b <- cbind(match(b, unique(b)))
  apart <- own_entropies(cbind(a)) + own_entropies(b)
  if (apart == 0) return(1)
  max(0, min(1, 2 * (apart - joint_entropies(a, b)) / apart))
}

# Entropies in nats of a partition that is joined with each of others (columns); labels are whole numbers from 1. Several
# are counted together, as many as have a million nodes, and cells of their table, at most.
joint_entropies <- function(z, others) {
  n <- length(z)
  k <- as.double(max(z))
  cells <- k * max(others)
  entropy_of <- function(counts) log(n) - colSums(counts * log(pmax(counts, 1))) / n
  if (cells > 1e7) return(apply(others, 2L, function(b) entropy_of(cbind(rle(sort(z + k * (b - 1)))$lengths))))
  at_once <- max(1, floor(1e6 / max(cells, n)))
  unlist(lapply(seq(1, ncol(others), by = at_once), function(first) {
    some <- others[, seq.int(first, min(ncol(others), first + at_once - 1)), drop = FALSE]
    code <- z + k * (some - 1) + cells * (col(some) - 1)
    entropy_of(matrix(tabulate(code, cells * ncol(some)), cells))
  }))
}
own_entropies <- function(partitions) joint_entropies(rep(1L, nrow(partitions)), partitions)

#' Area under the ROC curve
#'
#' The probability that a random link scores above a random non-link; ties count one half.
#'
#' @param score numbers, larger for likelier links.
#' @param truth TRUE or 1 for links, FALSE or 0 for non-links; both must occur.
#' @return A number from 0 to 1.
#' @export
#' @examples
#' irm_auc(c(0.9, 0.8, 0.3, 0.1), c(1, 0, 1, 0))
irm_auc <- function(score, truth) {
  need_args("score", "truth")
  truth <- factor_text(truth)
  ok <- is.numeric(score) && is.atomic(truth) && length(score) == length(truth) && !anyNA(score) && !anyNA(truth)
  if (!ok || !all(truth %in% c(0, 1))) {
    abort_input("`score` must be numeric and `truth` logical, of equal length and without missing values.",
                x = sprintf("They are %s and %s.", describe(score), describe(truth)))
  }
  links <- sum(truth == 1)
  others <- length(truth) - links
  if (links == 0 || others == 0) {
    abort_input("`truth` must contain links and non-links.",
                x = sprintf("It has %d and %d.", as.integer(links), as.integer(others)))
  }
  (sum(rank(score)[truth == 1]) - links * (links + 1) / 2) / (as.double(links) * others)
}

#' A random graph with planted clusters
#'
#' Every block draws its link probability from Beta(s d, s (1 - d)) with mean `density` d; every node is put into a
#' random cluster, and no cluster is empty.
#'
#' @param n_row,n_col the numbers of rows and columns.
#' @param k the number of clusters: one value or c(row, col).
#' @param density the mean proportion of links.
#' @param contrast how much blocks differ: the variance of their probabilities over d (1 - d), between 0 and 1. It is
#'   1 / (s + 1). The default makes them exponential-like at small densities and uniform at one half.
#' @param seed a whole number; by default, it is drawn from R's generator.
#' @return A list: `A`, an ngCMatrix; `row_cluster`, `col_cluster`; `eta`, the probabilities of the blocks.
#' @export
#' @examples
#' planted <- irm_sample(60, 40, k = 3, density = 0.2, seed = 1)
#' dim(planted$A)
#' round(planted$eta, 2)
irm_sample <- function(n_row, n_col, k, density = 0.1, contrast = NULL, seed = NULL) {
  need_args("n_row", "n_col", "k")
  n_row <- check_number(n_row, "n_row", min = 1, max = .Machine$integer.max - 1, whole = TRUE)
  n_col <- check_number(n_col, "n_col", min = 1, max = .Machine$integer.max - 1, whole = TRUE)
  k <- check_pair(k, "k")
  if (any(k < 1 | k != round(k) | k > c(n_row, n_col))) {
    abort_input("`k` must contain whole numbers from 1 to the numbers of rows and columns.",
                x = sprintf("It is %s.", toString(k)))
  }
  density <- check_number(density, "density", min = 0, max = 1)
  ask_memory(16 * (n_row + n_col) + 24 * prod(k) + 16 * density * n_row * n_col,
             "The graph's nodes, blocks and links must fit into memory.")
  spread <- if (is.null(contrast)) 1 / min(density, 1 - density)
    else 1 / check_number(contrast, "contrast", 1e-6, 1) - 1
  key <- irm_key(seed)
  clusters <- function(n, k, stream) {
    z <- c(seq_len(k), 1L + as.integer(draws("below", n - k, a = k, key = key, stream = stream)))
    z[order(draws("uniform", n, key = key, stream = stream + 1))]
  }
  row <- clusters(n_row, k[1L], 10)
  col <- clusters(n_col, k[2L], 20)
  flat <- density == 0 || density == 1 || spread == 0
  eta <- if (flat) rep(density, prod(k)) else
    draws("beta", prod(k), a = spread * density, b = spread * (1 - density), key = key, stream = 30)
  eta <- matrix(eta, k[1L], k[2L])
  A <- sample_links(row, col, eta, key)
  list(A = A, row_cluster = row, col_cluster = col, eta = eta)
}

# Every block by gaps between links: geometric steps over its pairs, so that the cost is the number of links.
sample_links <- function(row, col, eta, key) {
  rows <- split(seq_along(row), factor(row, seq_len(nrow(eta))))
  cols <- split(seq_along(col), factor(col, seq_len(ncol(eta))))
  from <- to <- vector("list", length(eta))
  for (b in seq_along(eta)) {
    r <- rows[[(b - 1L) %% nrow(eta) + 1L]]
    c <- cols[[(b - 1L) %/% nrow(eta) + 1L]]
    pairs <- as.double(length(r)) * length(c)
    at <- links_among(pairs, eta[b], key, 100 + b)
    from[[b]] <- r[at %% length(r) + 1]
    to[[b]] <- c[at %/% length(r) + 1]
  }
  Matrix::sparseMatrix(i = unlist(from), j = unlist(to), dims = c(length(row), length(col)))
}

links_among <- function(pairs, p, key, stream) {
  if (p <= 0) return(numeric())
  if (p >= 1) return(seq_len(pairs) - 1)
  at <- numeric()
  last <- -1
  first <- 0
  repeat {
    n <- ceiling(max(0, pairs - last) * p + 4 * sqrt(pairs * p) + 10)
    steps <- floor(draws("exponential", n, key = key, stream = stream, first = first) / -log1p(-p)) + 1
    reached <- last + cumsum(steps)
    at <- c(at, reached[reached < pairs])
    last <- reached[n]
    if (last >= pairs) return(at)
    first <- first + n
  }
}

# One value or one per mode.
check_pair <- function(x, arg, min = -Inf) {
  x <- readable_numbers(x, arg)
  if (!is.numeric(x) || !length(x) %in% 1:2 || anyNA(x) || any(x < min) || any(is.infinite(x))) {
    abort_input(sprintf("`%s` must be one number or c(row, col)%s.", arg,
                        if (is.finite(min)) sprintf(", at least %g", min) else ""),
                x = paste0("It is ", describe(x), "."))
  }
  rep_len(as.double(x), 2L)
}

# The 64-bit key of a call: c(high, low).
irm_key <- function(seed) {
  if (is.null(seed)) return(floor(stats::runif(2) * 2^32))
  seed <- check_number(seed, "seed", min = 0, max = 2^53, whole = TRUE)
  c(seed %/% 2^32, seed %% 2^32)
}
