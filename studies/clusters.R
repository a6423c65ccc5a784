# Groups of samples by gene_clusters() beside k-means, Ward and (with igraph) Leiden in the same components.
#
#   Rscript studies/clusters.R level [SETS]     data without groups: how often k = 1
#   Rscript studies/clusters.R planted [SETS]   planted groups: k, and the adjusted Rand index
#   Rscript studies/clusters.R pbmc FILE        FILE: an RDS file with list(x, labels): cells in rows, log scale
#   Rscript studies/clusters.R large [N]        time of N samples on 50 components
library(weft)

adjusted_rand <- function(a, b) {
  shared <- table(a, b)
  pairs <- function(counts) sum(choose(counts, 2))
  expected <- pairs(rowSums(shared)) * pairs(colSums(shared)) / choose(length(a), 2)
  most <- (pairs(rowSums(shared)) + pairs(colSums(shared))) / 2
  if (most == expected) 1 else (pairs(shared) - expected) / (most - expected)
}

# The mean silhouette width (Rousseeuw 1987) of a partition.
silhouette <- function(distance, z) {
  size <- tabulate(z)
  sums <- vapply(seq_along(size), function(g) rowSums(distance[, z == g, drop = FALSE]), numeric(length(z)))
  own <- cbind(seq_along(z), z)
  within <- sums[own] / pmax(size[z] - 1, 1)
  between <- sums / rep(size, each = length(z))
  between[own] <- Inf
  nearest <- apply(between, 1L, min)
  mean((nearest - within) / pmax(nearest, within))
}

# Each peer at its own k: k-means and Ward by the silhouette, Leiden by modularity among 15 neighbours.
peers <- function(scores) {
  distance <- stats::dist(scores)
  own_k <- function(parts) parts[[which.max(vapply(parts, silhouette, 0, distance = as.matrix(distance)))]]
  tree <- stats::hclust(distance, "ward.D2")
  found <- list(
    kmeans = own_k(lapply(2:12, function(k) stats::kmeans(scores, k, nstart = 50, iter.max = 100)$cluster)),
    ward = own_k(lapply(2:12, function(k) stats::cutree(tree, k)))
  )
  if (requireNamespace("igraph", quietly = TRUE)) {
    near <- apply(as.matrix(distance), 1L, function(row) order(row)[2:16])
    graph <- igraph::simplify(igraph::graph_from_edgelist(cbind(c(col(near)), c(near)), directed = FALSE))
    found$leiden <- as.integer(igraph::membership(igraph::cluster_leiden(graph, "modularity", n_iterations = -1)))
  }
  found
}

noise <- function(n, p) matrix(stats::rnorm(n * p), n)
rows <- function(n) sample(c(1, 3), n, TRUE, c(0.8, 0.2))
along <- function(values, p) outer(values, stats::rnorm(p))
without_groups <- list(
  noise = noise, t3 = function(n, p) matrix(stats::rt(n * p, 3), n), noisy = function(n, p) noise(n, p) * rows(n),
  factor = function(n, p) along(stats::rnorm(n), p) + noise(n, p),
  even = function(n, p) along(stats::runif(n, -1.7, 1.7), p) + noise(n, p),
  skewed = function(n, p) along(stats::rexp(n), p) + noise(n, p),
  heavy = function(n, p) along(stats::rt(n, 3), p) + matrix(stats::rt(n * p, 3), n),
  factors = function(n, p) along(stats::rnorm(n), p) + along(stats::rnorm(n), p) + noise(n, p),
  `noisy factor` = function(n, p) (along(stats::rnorm(n), p) + noise(n, p)) * rows(n)
)

level <- function(sets) {
  for (kind in names(without_groups)) {
    k <- vapply(seq_len(sets), function(set) {
      set.seed(set)
      suppressWarnings(gene_clusters(without_groups[[kind]](sample(60:100, 1L), 200), seed = set))$k
    }, 0L)
    cat(sprintf("%-14s one group in %d of %d\n", kind, sum(k == 1L), sets))
  }
}

planted <- function(sets) {
  for (sizes in list(c(20, 20, 20), c(30, 30, 30), c(40, 20, 10), c(60, 25, 8), c(150, 100, 50), c(25, 25, 25, 25, 20)))
    for (shared in c(0, 1)) {
      found <- vapply(seq_len(sets), function(set) {
        set.seed(set)
        z <- rep(seq_along(sizes), sizes)
        means <- noise(length(sizes), 200) * 1.5 * (stats::runif(200 * length(sizes)) < 0.3)
        x <- means[z, ] + shared * along(stats::rnorm(length(z)), 200) * 0.7 + noise(length(z), 200)
        fit <- suppressWarnings(gene_clusters(x, seed = set))
        scores <- fit$components$x
        c(fit$k, adjusted_rand(fit$cluster, z), vapply(peers(scores), adjusted_rand, 0, b = z))
      }, numeric(4L + requireNamespace("igraph", quietly = TRUE)))
      cat(sprintf("%-16s factor %d: k right in %d of %d; adjusted Rand %.2f; %s\n",
                  paste(sizes, collapse = "/"), shared,
                  sum(found[1L, ] == length(sizes)), sets, mean(found[2L, ]),
                  paste(rownames(found)[-(1:2)], sprintf("%.2f", rowMeans(found[-(1:2), , drop = FALSE])),
                        collapse = ", ")))
    }
}

labelled <- function(file) {
  data <- readRDS(file)
  agreement <- function(z) irm_nmi(z, data$labels)
  fits <- lapply(1:6, function(seed) gene_clusters(data$x, seed = seed))
  print(fits[[1L]])
  nmi <- vapply(fits, function(fit) agreement(fit$cluster), 0)
  cat(sprintf("six seeds: k %s; NMI %s, mean %.3f\n", paste(vapply(fits, `[[`, 0L, "k"), collapse = " "),
              paste(sprintf("%.3f", nmi), collapse = " "), mean(nmi)))
  set.seed(1)
  for (peer in names(found <- peers(fits[[1L]]$components$x))) {
    cat(sprintf("%-8s k %d, NMI %.3f\n", peer, max(found[[peer]]), agreement(found[[peer]])))
  }
}

large <- function(n) {
  set.seed(1)
  z <- sample(12L, n, TRUE, c(30, 20, 10, 10, 8, 7, 5, 4, 3, 1.5, 1, 0.5))
  x <- (noise(12L, 50) * rep(3 * 2^-(0:49 / 8), each = 12))[z, ] + noise(n, 50) * rep(2^-(0:49 / 16), each = n)
  axes <- stats::prcomp(x[1:2000, ])$rotation
  scores <- x %*% axes
  pc <- structure(list(x = scores, sdev = apply(scores, 2L, stats::sd), rotation = axes), class = "prcomp")
  time <- system.time(fit <- gene_clusters(pc, seed = 1))
  cat(sprintf("%d x 50: %d groups, adjusted Rand %.3f, %.1f s, %.1f s of processor time\n", n, fit$k,
              adjusted_rand(fit$cluster, z), time[[3L]], time[[1L]] + time[[2L]]))
}

args <- commandArgs(TRUE)
number <- function(usual) if (length(args) > 1L) as.numeric(args[2L]) else usual
switch(args[1L], level = level(number(200)), planted = planted(number(20)), pbmc = labelled(args[2L]),
       large = large(number(1e5)), stop("Give level, planted, pbmc or large."))
