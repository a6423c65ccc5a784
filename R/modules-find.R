# The search for modules of gene_modules(). It begins with the communities of the graph of shared neighbours. Then it
# updates eigengenes, and the genes that correlate with them, in turn (k-means with lines in place of centres). Last, it
# joins modules that one factor explains. Genes are columns of `z`, with sum 0 and sum of squares 1.

# Numbers of the method: neighbours per gene; how many genes are expected by chance to pass the correlation that makes
# a neighbour; shared neighbours of an edge; rounds of eigengenes and members; the eigengenes' correlation at which
# modules are one, and below which they are never compared; the level at which a gene belongs to a module.
module_settings <- list(neighbours = 30L, chance = 3, shared = 2L, rounds = 3L, same = 0.9, compared = 0.4,
                        level = 0.05, folds = 5L, repeats = 2L, found_again = 0.5, smallest = 10L)

# Normal scores of the ranks, as unit vectors.
module_scores <- function(x) {
  n <- nrow(x)
  for (j in seq_len(ncol(x))) x[, j] <- stats::qnorm((rank(x[, j]) - 0.5) / n)
  unit_columns(x)
}

unit_columns <- function(z) {
  z <- z - rep(colMeans(z), each = nrow(z))
  size <- sqrt(colSums(z^2))
  z / rep(ifelse(size > 1e-9, size, 1), each = nrow(z))
}

# The correlation that `expected` of p - 1 independent genes exceed.
chance_correlation <- function(expected, n, p, positive) {
  tail <- min(0.25, expected / max(1, p - 1) / (if (positive) 1 else 2))
  t <- stats::qt(tail, n - 2, lower.tail = FALSE)
  t / sqrt(n - 2 + t^2)
}

# Pairs of neighbours, each once: list(from, to, weight).
neighbour_pairs <- function(z, how) {
  p <- ncol(z)
  rule <- list(k = min(module_settings$neighbours, p - 1L),
               least = chance_correlation(module_settings$chance, nrow(z), p, how$signed), positive = how$signed)
  found <- .Call(C_weft_modules_neighbours, z, rule, how$control)
  use <- which(found$index > 0L)
  own <- (use - 1L) %/% rule$k + 1L
  other <- found$index[use]
  from <- pmin(own, other)
  to <- pmax(own, other)
  key <- to * as.double(p) + from
  first <- which(!duplicated(key))
  first <- first[order(key[first])]
  list(from = from[first], to = to[first], weight = found$value[use[first]]^2)
}

# Communities of at least `smallest` genes, by number; other genes have 0.
communities_of <- function(pairs, p, shared, smallest, how) {
  order <- order(draws("uniform", p, key = how$key, stream = 11)) - 1L
  label <- .Call(C_weft_modules_communities, c(pairs, list(shared = shared)), order, how$control)
  renumber(label, smallest)
}

# Labels from 1 for groups of at least `smallest`, the largest first; 0 for others.
renumber <- function(label, smallest) {
  size <- tabulate(label[label > 0L], max(label, 1L))
  place <- order(-size)
  match(label, place[size[place] >= smallest & size[place] > 0L], nomatch = 0L)
}

# ---- eigengenes and members ----

# First left singular vectors of the genes of each group, turned to rise with most of them.
eigengenes_of <- function(z, label) {
  groups <- split(seq_along(label), factor(label, seq_len(max(label, 0L))))
  matrix(vapply(groups, function(genes) first_direction(z[, genes, drop = FALSE]), numeric(nrow(z))), nrow(z))
}

# The first left singular vector, as a unit vector: of few genes from their correlations, else by power iteration from
# the sum of all genes, each turned as the gene that has most in common with the first ones.
first_direction <- function(own, rounds = 30L) {
  if (ncol(own) <= min(nrow(own), 100L)) {
    u <- own %*% eigen(crossprod(own), symmetric = TRUE)$vectors[, 1L]
  } else {
    few <- crossprod(own, own[, seq_len(min(20L, ncol(own)))])
    u <- own %*% few[, which.max(colSums(few^2))]
    for (round in seq_len(rounds)) u <- own %*% crossprod(own, u / sqrt(sum(u^2)))
  }
  turn <- if (sum(crossprod(own, u)) < 0) -1 else 1
  turn * as.vector(u) / sqrt(sum(u^2))
}

# Correlations of genes with eigengenes, those of a gene with its own module's without the gene itself.
memberships <- function(z, label, eigen, control) {
  r <- matrix_product(z, eigen, control, transposed = TRUE)
  for (m in seq_len(ncol(eigen))) {
    own <- which(label == m)
    loading <- r[own, m]
    sum <- z[, own, drop = FALSE] %*% loading
    with <- as.vector(crossprod(z[, own, drop = FALSE], sum))
    r[own, m] <- (with - loading) / sqrt(pmax(sum(sum^2) - 2 * loading * with + loading^2, 1e-12))
  }
  r
}

# The module of each gene: the one whose eigengene it follows most, if beyond chance (false discovery rate); else 0.
assign_genes <- function(z, label, how) {
  if (!max(label)) return(label)
  r <- memberships(z, label, eigengenes_of(z, label), how$control)
  if (!how$signed) r <- abs(r)
  best <- max.col(r, "first")
  p <- chance_p(r[cbind(seq_along(best), best)], nrow(z), ncol(r), how$signed)
  best[stats::p.adjust(p, "BH") > module_settings$level] <- 0L
  renumber(best, how$smallest)
}

# p-value of the largest of `count` correlations.
chance_p <- function(r, n, count, signed) {
  r <- pmin(r, 1 - 1e-12)
  p <- stats::pt(r * sqrt((n - 2) / (1 - r^2)), n - 2, lower.tail = FALSE) * (if (signed) 1 else 2)
  -expm1(count * log1p(-pmin(p, 1 - 1e-12)))
}

# ---- modules that are one ----

# The second eigenvalue of the correlations of genes over the largest that noise has, beside one factor.
second_over_noise <- function(own) {
  n <- nrow(own)
  m <- ncol(own)
  values <- two_largest(own)
  edge <- (sqrt(n - 2) + sqrt(m))^2
  edge <- edge + 1.5 * sqrt(edge) * (1 / sqrt(n - 2) + 1 / sqrt(m))^(1 / 3)
  values[2L] / (max(1 - values[1L] / m, 1e-9) * edge / (n - 1))
}

two_largest <- function(own) {
  gram <- if (ncol(own) < nrow(own)) crossprod(own) else tcrossprod(own)
  if (nrow(gram) <= 250L) return(eigen(gram, symmetric = TRUE, only.values = TRUE)$values[1:2])
  block <- cbind(gram[, order(-colSums(gram^2))[1:4]])
  for (round in 1:20) block <- gram %*% qr.Q(qr(block))
  svd(block, 0, 0)$d[1:2]
}

# Joins modules that one factor explains, until none are left. They are examined from all that are alike down to pairs:
# parts of one factor are chosen for what noise they share, and only all of its genes together show that it is one.
join_modules <- function(z, label, how) {
  while (max(label) > 1L) {
    joined <- joined_once(z, label, how$signed)
    if (max(joined) == max(label)) break
    label <- assign_genes(z, joined, how)
  }
  label
}

joined_once <- function(z, label, signed) {
  r <- crossprod(eigengenes_of(z, label))
  tree <- stats::hclust(stats::as.dist(1 - if (signed) r else abs(r)), "average")
  parts <- list()
  for (step in seq_len(nrow(tree$merge))) {
    parts[[step]] <- unlist(lapply(tree$merge[step, ], function(at) if (at < 0L) -at else parts[[at]]))
  }
  for (step in rev(seq_along(parts))) {
    if (1 - tree$height[step] < module_settings$compared || length(unique(label[label %in% parts[[step]]])) < 2L) next
    if (is_one(z, label, tree$merge[step, ], parts)) label[label %in% parts[[step]]] <- parts[[step]][1L]
  }
  renumber(label, 1L)
}

# Whether both sides of a node of the tree are one module: their eigengenes are nearly the same, or the correlations of
# all their genes have no second eigenvalue beyond noise.
is_one <- function(z, label, sides, parts) {
  genes <- lapply(sides, function(at) which(label %in% (if (at < 0L) -at else parts[[at]])))
  eigen <- lapply(genes, function(own) first_direction(z[, own, drop = FALSE]))
  abs(sum(eigen[[1L]] * eigen[[2L]])) >= module_settings$same || second_over_noise(z[, unlist(genes), drop = FALSE]) < 1
}

# ---- all together ----

# Labels of the genes of `z` (unit columns): the modules from 1, the largest first, and 0.
find_modules <- function(z, how, pairs = NULL) {
  shared <- if (is.null(pairs)) module_settings$shared else 0L
  label <- communities_of(pairs %||% neighbour_pairs(z, how), ncol(z), shared, max(3L, how$smallest %/% 2L), how)
  for (round in seq_len(module_settings$rounds)) label <- assign_genes(z, label, how)
  label <- join_modules(z, label, how)
  for (round in seq_len(module_settings$rounds)) label <- assign_genes(z, label, how)
  label
}

# Whether modules are found again without a fifth of the samples, and correlate in this fifth. list(jaccard, p_value),
# one for each module of `label`: the mean Jaccard index over all fifths, and twice the median p-value.
validate_modules <- function(z, label, how) {
  count <- max(label)
  if (!count) return(list(jaccard = numeric(), p_value = numeric()))
  n <- nrow(z)
  tried <- list()
  for (again in seq_len(module_settings$repeats)) {
    fold <- order(order(draws("uniform", n, key = how$key, stream = 11L + again))) %% module_settings$folds
    for (left_out in seq_len(module_settings$folds) - 1L) {
      held <- fold == left_out
      tried[[length(tried) + 1L]] <- held_out(z, label, held, how)
    }
  }
  part <- function(name) matrix(vapply(tried, `[[`, numeric(count), name), count)
  list(jaccard = rowMeans(part("jaccard")), p_value = pmin(1, 2 * apply(part("p"), 1L, stats::median)))
}

held_out <- function(z, label, held, how) {
  count <- max(label)
  kept <- unit_columns(z[!held, , drop = FALSE])
  found <- find_modules(kept, how)
  if (!max(found)) return(list(jaccard = numeric(count), p = rep(1, count)))
  both <- table(factor(label, seq_len(count)), factor(found, seq_len(max(found))))
  jaccard <- both / (outer(tabulate(label, count), tabulate(found, max(found)), `+`) - both)
  match <- max.col(jaccard, "first")
  eigen <- eigengenes_of(kept, found)
  other <- unit_columns(z[held, , drop = FALSE])
  p <- vapply(seq_len(count), function(m) {
    genes <- which(found == match[m])
    weight <- crossprod(kept[, genes, drop = FALSE], eigen[, match[m]])
    freedom <- sum(held) - 1
    ratio <- sum((other[, genes, drop = FALSE] %*% weight)^2) / sum(weight^2) * freedom
    if (jaccard[m, match[m]] > 0) stats::pchisq(ratio, freedom, lower.tail = FALSE) else 1
  }, 0)
  list(jaccard = jaccard[cbind(seq_len(count), match)], p = p)
}

# The modules that stay: list(label, stability, p_value, left_out).
stable_modules <- function(z, how, pairs = NULL) {
  label <- find_modules(z, how, pairs)
  tried <- validate_modules(z, label, how)
  count <- max(label)
  kept <- tried$jaccard >= module_settings$found_again & tried$p_value <= module_settings$level / max(1L, count)
  size <- tabulate(label, count)
  left_out <- data.frame(size = size, stability = tried$jaccard, p_value = tried$p_value)[!kept, ]
  rownames(left_out) <- NULL
  list(label = match(label, which(kept), nomatch = 0L), stability = tried$jaccard[kept], p_value = tried$p_value[kept],
       left_out = left_out)
}
