# Groups of samples and of genes. k-means starts from the parts between valleys of the density; subsamples vote on the
# groups; and the number of groups is tested against data without groups (src/clusters).

#' Groups of samples and of genes
#'
#' `gene_clusters()` finds the number of groups that the samples form, which may be one, and assigns each sample to a
#' group with a probability. The shortest call is `gene_clusters(x)`, with samples in the rows of `x`; the result lists
#' the group of each sample and the test of each division. Genes are grouped by the same rule.
#'
#' @section Method: Samples are compared on the principal components that stand out from data without dependence between
#'   genes ([gene_components()]). If no component stands out, there is one group. The samples are divided in two at the
#'   deepest valley of their density along several directions: the first ten principal axes, the lines between the
#'   centres of 2 to 5 k-means groups, and the lines between the centres of 2 and 3 groups in units in which the axes
#'   vary more equally. Then the discriminant direction of the two sides is tried, up to four times, as long as the
#'   valley becomes deeper. Each part is divided again in the same way.
#'
#'   A valley divides the samples only if it is deeper than chance. Its depth measures how clearly the density rises on
#'   both sides, in standard errors. It is compared with null data sets, which have the same covariances but no groups
#'   and are searched in the same way. Null data sets are uniform along each principal axis; for more than 1,000
#'   samples, half of them are normal, and the kind with the larger p-value counts. A part with a proportion s of the
#'   samples is tested at level \eqn{0.05 s}, so the probability of any wrong division is about 0.05. Samples along one
#'   continuous factor with a unimodal distribution, samples with different noise levels, and samples from distributions
#'   with heavy tails have only one mode, and therefore form one group.
#'
#'   The centres of the parts are the starting points of k-means. The same is done in 30 random subsamples of four
#'   fifths of the samples (at most 2,000). Each sample belongs to the group to which most subsamples assign it;
#'   `probability` is the proportion of these subsamples. A group must be recovered: the Jaccard index of the group and
#'   its best match in a subsample, averaged over the subsamples, must be at least 0.5 (below this value, a group counts
#'   as dissolved, Hennig 2008), and k-means must not turn it into another group. Otherwise the least clear division is
#'   undone. The order in which valleys are divided may differ between subsamples. A subsample is therefore divided up
#'   to three more times than the whole set, and then the divisions that agree least with the groups of the whole set
#'   are undone.
#'
#'   If there are more than 5,000 samples, the tests and the subsamples use 5,000 random ones, and all others are
#'   assigned to the nearest centre. A group with fewer than about 10 samples among the 5,000 is not found.
#'
#'   A group here is a mode of the density. If types of cells overlap so much that there is no valley between them, they
#'   are one group; give `k` to divide them nevertheless. Samples along a curved path or a ring may be divided.
#'
#' @section Co-clustering: `method = "irm"` groups samples and genes at the same time by the infinite relational model
#'   ([irm()]), using the 300 genes that vary most. The values of each gene are centred and divided by its standard
#'   deviation. Genotypes and other discrete values are replaced by whether they are above the gene's median. If genes
#'   rise and fall gradually rather than in blocks, it divides them into many groups, and its chains may not converge;
#'   `converged` says whether they did.
#'
#' @param x an object returned by [gene_quality()], data for it, or principal components: an object returned by
#'   [gene_components()] or [pca()], or a `prcomp` object.
#' @param k the number of groups of samples; `NULL` to find it by the tests.
#' @param genes names of genes, or the number of genes to use (those with the largest spread); `NULL` for all genes, or
#'   300 for `method = "irm"`.
#' @param max_clusters the largest number of groups of samples, and of genes; 30 by default. For `method = "irm"`, see
#'   [irm()].
#' @param method `"consensus"` or `"irm"`.
#' @param components an object returned by [gene_components()] for `x`, if you have it already.
#' @param chains,sweeps for `method = "irm"` only: see [irm()]; 4 and 100 by default.
#' @param seed a whole number; by default, it is drawn from R's generator.
#' @param run see [weft_run()].
#' @param ... not used; unknown arguments cause an error.
#' @return For `"irm"`, the object that [irm()] returns, with `converged`. For `"consensus"`, an object of class
#'   `weft_clusters`, a list:
#'   \item{cluster}{the group of each sample, by name; the largest group is 1}
#'   \item{k}{the number of groups of samples}
#'   \item{probability}{the proportion of subsamples that assign the sample to its group}
#'   \item{stability}{a data frame with one row for each number of groups that was considered: `k`; `observed`, the
#'     depth of the valley of the last division; `null`, the depth that 5 % of null data sets exceed; `p_value` and the
#'     `level` that it must not exceed; `jaccard`, the Jaccard index in subsamples of the least stable of the k groups
#'     (`NA` if this was not tried); `kept`, whether the divisions into k groups were kept}
#'   \item{gene_cluster}{the group of each gene, or `NULL` if `x` is components without loadings}
#'   \item{gene_stability}{the same as `stability`, for genes}
#'   \item{components}{the components used: `x` (the scores) and `share` of the variance}
#'   \item{converged}{whether every group is recovered (Jaccard index at least 0.5); always `TRUE` unless `k` was given}
#'   \item{method, backend, seconds}{the method and the run}
#'   `as.data.frame()` and `tidy()` list the samples (or genes: `what = "genes"`) with group and probability, `glance()`
#'   gives a summary in one row, and `plot()` draws the samples on two components.
#' @references Hennig, C. (2008). Dissolution point and isolation robustness: robustness criteria for general cluster
#'   analysis methods. Journal of Multivariate Analysis 99, 1154-1176.
#'
#'   Kimes, P. K., Liu, Y., Hayes, D. N. and Marron, J. S. (2017). Statistical significance for hierarchical clustering.
#'   Biometrics 73, 811-821.
#'
#'   Tibshirani, R., Walther, G. and Hastie, T. (2001). Estimating the number of clusters in a data set via the gap
#'   statistic. Journal of the Royal Statistical Society B 63, 411-423.
#' @seealso [gene_components()], [irm()], [gene_network()]
#' @export
#' @examples
#' e <- weft_example("expression", n = 80, p = 40)
#' groups <- gene_clusters(e$x, seed = 1)
#' groups
#' groups$stability
#' head(as.data.frame(groups))
#'
#' # measurements of three species of flowers; two species overlap
#' gene_clusters(iris[1:4], seed = 1)
#' gene_clusters(iris[1:4], k = 3, seed = 1)
gene_clusters <- function(x, k = NULL, genes = NULL, max_clusters = NULL, method = c("consensus", "irm"),
                          components = NULL, chains = NULL, sweeps = NULL, seed = NULL, run = NULL, ...) {
  run <- as_run(run)
  check_dots(...)
  need_args("x")
  method <- check_choice(method, c("consensus", "irm"), "method")
  if (method == "irm") {
    if (!is.null(k)) abort_input("`k` must not be given for `method = \"irm\"`.",
                                 i = "`max_clusters` limits the number of groups.")
    return(irm_clusters(checked_data(x), genes, max_clusters, chains %||% 4, sweeps %||% 100, seed, run))
  }
  for (arg in c("chains", "sweeps")[c(!is.null(chains), !is.null(sweeps))]) {
    abort_input(sprintf("`%s` must not be given unless `method` is \"irm\".", arg),
                i = "`method = \"irm\"` is for co-clustering; `k` sets the number of groups.")
  }
  started <- proc.time()[[3L]]
  if (!is.null(run$backend)) check_choice(run$backend, backends, "backend")
  space <- cluster_space(x, genes, components, seed, run)
  n <- nrow(space$scores)
  if (n < smallest_clustered) {
    abort_input(sprintf("`x` must have at least %d samples for clustering.", smallest_clustered),
                x = sprintf("It has %s.", several(n, "sample")))
  }
  if (!is.null(k)) k <- check_number(k, "k", min = 1, max = n %/% 4, whole = TRUE)
  most <- check_number(max_clusters %||% max(30, k), "max_clusters", min = 1, max = 1000, whole = TRUE)
  if (!is.null(k) && k > most) {
    abort_input("`k` must be at most `max_clusters`.", x = sprintf("`k` is %.0f, and `max_clusters` is %.0f.", k, most))
  }
  how <- list(key = random_key(seed), control = run_control("cpu", run$threads, run$progress, task = "Grouping"))
  samples <- consensus_groups(space$scores, k, most, how)
  loadings <- space$loadings
  genes <- if (!is.null(loadings)) consensus_groups(loadings, NULL, most, how)
  new_result(class = "weft_clusters", list(
    cluster = stats::setNames(samples$cluster, rownames(space$scores)), k = samples$k,
    probability = stats::setNames(samples$probability, rownames(space$scores)), stability = samples$stability,
    gene_cluster = if (!is.null(genes)) stats::setNames(genes$cluster, rownames(loadings)),
    gene_stability = genes$stability, components = list(x = space$scores, share = space$share),
    given = !is.null(k), converged = samples$found_again, method = "consensus", backend = "cpu",
    seconds = proc.time()[[3L]] - started
  ))
}

smallest_clustered <- 8L

# Numbers of the method: samples in tests and subsamples, divisions that subsamples may have more than all samples,
# level of the tests, null data sets, the Jaccard index below which a group is dissolved.
cluster_settings <- list(pool = 5000, subsample = 2000, share = 0.8, subsamples = 30, spare = 3, means = 5,
                         equal_means = 3, level = 0.05, null_sets = 99L, dissolved = 0.5, starts = 20)

# Co-clustering by the infinite relational model.
irm_clusters <- function(q, genes, max_clusters, chains, sweeps, seed, run) {
  data <- q$x[, cluster_genes(q, genes %||% 300), drop = FALSE]
  real <- q$kind == "expression"
  data <- if (real) scaled_columns(data)
          else 1 * (data > rep(column_spreads(data, run$threads)$median, each = nrow(data)))
  fit <- irm(data, family = if (real) "gaussian" else "bernoulli", max_clusters = max_clusters, chains = chains,
             sweeps = sweeps, seed = seed, run = if (real) run_but(run, backend = "cpu") else run)
  fit$converged <- groups_rhat(fit) <= greatest_rhat
  fit
}

# Columns of the genes to take: those named, or as many as vary most.
cluster_genes <- function(q, genes) {
  if (is.null(genes)) return(seq_len(ncol(q$x)))
  if (is.character(genes)) return(chosen_columns(genes, colnames(q$x), "genes"))
  genes <- check_number(genes, "genes", min = 3, whole = TRUE)
  if (genes >= ncol(q$x)) return(seq_len(ncol(q$x)))
  q$class <- NULL
  sort(leading_genes(q, genes))
}

# Less their means, over their standard deviations; constant ones are 0. Squares neither overflow nor vanish.
scaled_columns <- function(x) {
  x <- x / rep(apply(x, 2L, function(column) power_of_two(column[!is.na(column)])), each = nrow(x))
  x <- x - rep(colMeans(x), each = nrow(x))
  spread <- sqrt(colSums(x^2) / max(1, nrow(x) - 1))
  x / rep(ifelse(spread > 0, spread, 1), each = nrow(x))
}

# ---- components ----

# Scores of the samples on the components that stand out (none: 0 columns), their shares of the variance, and the
# genes' loadings.
cluster_space <- function(x, genes, components, seed, run) {
  if (inherits(x, "prcomp")) {
    if (!is.null(components) || !is.null(genes)) {
      abort_input("`genes` and `components` must not be given if `x` already contains components.")
    }
    return(space_of(checked_components(x, "x")))
  }
  q <- checked_data(x)
  if (nrow(q$x) < smallest_clustered) return(list(scores = q$x))
  if (!is.null(genes)) {
    q$x <- q$x[, cluster_genes(q, genes), drop = FALSE]
    q$hidden <- NULL
  } else if (!is.null(components)) {
    pc <- checked_components(components, "components")
    if (nrow(pc$x) != nrow(q$x)) {
      abort_input("`components` must be computed from `x`.",
                  x = sprintf("They have %s, and `x` has %s.", several(nrow(pc$x), "sample"),
                              several(nrow(q$x), "sample")))
    }
    return(space_of(pc))
  }
  space_of(own_components(q, seed, run))
}

# Components of the data; of few genes all of them, as groups may show in each gene by itself.
own_components <- function(q, seed, run) {
  if (ncol(q$x) > few_genes) {
    return(withCallingHandlers(gene_components(q, seed = seed, run = run_but(run, backend = NULL)),
                               weft_warning_hidden_batch = function(w) invokeRestart("muffleWarning")))
  }
  pc <- pca(q$x, min(ncol(q$x), nrow(q$x) - 1L), scale = TRUE, seed = seed,
            run = run_but(run, backend = "cpu", progress = FALSE))
  pc$leading <- length(pc$sdev)
  pc
}

# Up to this number of genes, all components are used: whether one stands out is a statement on many.
few_genes <- 10L

space_of <- function(pc) {
  used <- seq_len(standing_out(pc) %||% pc$leading %||% ncol(pc$x))
  variance <- (pc$sdev / power_of_two(pc$sdev))^2
  share <- pc$share %||% (variance / max(sum(variance), 1e-300))
  genes <- nrow(pc$rotation)
  loadings <- if (genes >= smallest_clustered) {
    own <- pc$rotation[, used, drop = FALSE] * rep(sqrt(variance[used]), each = genes)
    noise_units(own, sum(variance) / max(sum(share), 1e-300) / genes)
  }
  list(scores = pc$x[, used, drop = FALSE], share = share[used], loadings = loadings)
}

# Loadings over the standard deviation of what is left of each gene, where `total` is the mean variance of a gene.
# Correlations themselves crowd near 1 and -1, and would show a group at either end of one continuous factor.
noise_units <- function(loadings, total) {
  explained <- rowSums(loadings^2)
  total <- max(total, explained)
  loadings / sqrt(pmax(total - explained, 0.02 * total))
}

checked_components <- function(pc, arg) {
  if (inherits(pc, "weft_pca")) check_format(pc, arg)
  sound <- inherits(pc, "prcomp") && holds({
    fields <- unclass(pc)
    is_matrix(fields$x) && all_finite(fields$x) && is_matrix(fields$rotation) && all_finite(fields$rotation) &&
      ncol(fields$rotation) == ncol(fields$x) && is_numbers(fields$sdev) && length(fields$sdev) >= ncol(fields$x) &&
      (is.null(fields$leading) || is_count(fields$leading, 0, ncol(fields$x))) &&
      (is.null(fields$share) || is_numbers(fields$share) && length(fields$share) >= ncol(fields$x)) &&
      (is.null(fields$choice) || is.list(fields$choice) && is_count(fields$choice$k))
  })
  if (sound) return(pc)
  abort_input(sprintf("`%s` must be an object with scores, returned by `gene_components()`, `pca()` or `prcomp()`.",
                      arg),
              x = if (inherits(pc, "prcomp")) "It is damaged or has no scores."
                  else paste0("It is ", describe(pc), "."))
}

# ---- groups ----

# Groups of the rows of `scores`: list(cluster, k, probability, stability, found_again).
consensus_groups <- function(scores, k, most, how) {
  points <- comparable_points(scores)
  pool <- if (ncol(points)) points_pool(points, how$key)
  if (length(pool) < smallest_clustered) {
    return(c(one_group(nrow(scores)), list(stability = no_stability, found_again = TRUE)))
  }
  all <- t(points)
  few <- all[, pool, drop = FALSE]
  tree <- valley_tree(few, most, cluster_settings$level, how)
  if (is.null(k)) {
    kept <- which(tree$nodes$order > 0)
    found <- stable_partition(all, few, tree, kept, how)
    return(c(found, list(stability = stability_table(tree$nodes, found$tried, found$k), found_again = TRUE)))
  }
  found <- if (k == 1) one_group(nrow(scores))
           else vote_on(all, subsamples_of(few, k, 1, how)$centres,
                        subsamples_of(few, k, cluster_settings$subsamples, how), how)
  tried <- stats::setNames(min(found$jaccard), k)
  c(found, list(stability = stability_table(tree$nodes, tried, found$k),
                found_again = all(found$jaccard >= cluster_settings$dissolved)))
}

one_group <- function(n) list(cluster = rep(1L, n), k = 1L, probability = rep(1, n), jaccard = 1)

# Less their means, in units in which squares neither overflow nor vanish; no coordinates where none varies.
comparable_points <- function(scores) {
  points <- scores / power_of_two(scores)
  points <- points - rep(colMeans(points), each = nrow(points))
  if (any(points != 0)) points / power_of_two(points) else points[, 0L, drop = FALSE]
}

# The different points, at most as many as are examined: equal ones would look like groups of their own.
points_pool <- function(points, key) {
  n <- nrow(points)
  if (n > cluster_settings$pool) {
    pool <- order(draws("uniform", n, key = key, stream = 4))[seq_len(cluster_settings$pool)]
  } else {
    pool <- seq_len(n)
  }
  pool <- sort(pool)
  pool[!duplicated(round(points[pool, , drop = FALSE] * 2^30))]
}

# Divides points (columns) at their valleys: list(rows, nodes), as src/clusters/clusters.h describes them.
valley_tree <- function(points, leaves, level, how) {
  rule <- c(valley_search(how), list(leaves = leaves, level = level,
                                     null_sets = if (level > 0) cluster_settings$null_sets else 0L))
  tree <- .Call(C_weft_clusters_tree, points, rule, how$control)
  colnames(tree$nodes) <- c("parent", "left", "right", "order", "first", "count", "valley", "null_mean", "null_sd",
                            "p_value", "null_sets")
  tree$nodes <- as.data.frame(tree$nodes)
  tree
}

valley_search <- function(how) c(cluster_settings[c("means", "equal_means")], list(key = how$key))

# The nodes that are groups where only the divisions `kept` are made.
leaves_of <- function(nodes, kept) setdiff(which(nodes$parent == 0 | nodes$parent %in% kept), kept)

# k-means from the groups of a tree, and the vote of the subsamples on the points in `few`.
partition_of <- function(few, tree, kept, grown, how) {
  leaves <- leaves_of(tree$nodes, kept)
  if (length(leaves) == 1L) return(c(one_group(ncol(few)), list(leaves = leaves)))
  label <- integer(ncol(few))
  for (group in seq_along(leaves)) {
    leaf <- tree$nodes[leaves[group], ]
    label[tree$rows[leaf$first + seq_len(leaf$count)]] <- group
  }
  turn <- within_units(few, label)
  few <- turn %*% few
  centres <- vapply(seq_along(leaves), function(g) rowMeans(few[, label == g, drop = FALSE]), numeric(nrow(few)))
  settled <- .Call(C_weft_clusters_settle, few, matrix(centres, nrow(few)), how$control)
  grown <- merged_subsamples(grown, settled$labels, length(leaves))
  subsamples <- subsamples_of(few, length(leaves), cluster_settings$subsamples, how, grown)
  found <- vote_on(few, settled$centres, subsamples, how)
  found$jaccard <- pmin(found$jaccard, 2 * same_groups(label, settled$labels, length(leaves)))
  c(found, list(leaves = leaves, turn = turn, centres = settled$centres, subsamples = subsamples))
}

# The Jaccard index of each part and the group that k-means made of it. From a few points at the edge of a large group,
# k-means divides that group, where there is no valley: their index is near 0. A border that moves leaves small groups
# 0.35 and more, and so half of what subsamples must reach is enough.
same_groups <- function(part, group, k) {
  both <- tabulate(part[part == group], k)
  both / (tabulate(part, k) + tabulate(group, k) - both)
}

# The matrix that gives points units in which the variance within groups is more equal in all directions. Without it,
# k-means would move borders along what differs within groups, such as a factor that all of them share. The mean
# variance is added, as few points have directions of nearly no variance by chance.
within_units <- function(points, label) {
  centres <- rowsum(t(points), label) / as.vector(table(label))
  within <- tcrossprod(points - t(centres[label, , drop = FALSE])) / ncol(points)
  add <- mean(diag(within))
  if (!(add > 0)) return(diag(nrow(points)))
  turn <- backsolve(chol(within + diag(add, nrow(within))), diag(nrow(within)), transpose = TRUE)
  turn / max(abs(turn))
}

# Random subsamples of the points, each divided at its valleys into up to k groups.
grown_subsamples <- function(few, k, how) {
  resample <- c(valley_search(how), list(samples = cluster_settings$subsamples, m = subsample_size(ncol(few)), k = k,
                                         starts = 0))
  .Call(C_weft_clusters_grow, few, resample, how$control)
}

# Subsamples of which divisions are undone until there are k groups: of the last ones, that without which the groups
# agree best with those of all points (`labels`). Were it always the last, a group would be lost where another valley of
# the subsample happens to be deeper.
merged_subsamples <- function(grown, labels, k) {
  most <- nrow(grown$parents)
  for (sample in which(grown$found > k)) {
    own <- grown$labels[, sample] + 1L
    parent <- grown$parents[, sample] + 1L
    shared <- matrix(tabulate(own + most * (labels[grown$rows[, sample] + 1L] - 1L), most * k), most)
    left <- seq_len(grown$found[sample])
    while (length(left) > k) {
      last <- last_divided(left, parent)
      agreement <- vapply(last, function(g) groups_agreement_of(merge_group(shared, g, parent[g])), 0)
      g <- last[which.max(agreement)]
      shared <- merge_group(shared, g, parent[g])
      own[own == g] <- parent[g]
      left <- setdiff(left, g)
    }
    grown$labels[, sample] <- match(own, left) - 1L
    grown$found[sample] <- as.integer(k)
  }
  grown
}

# Groups that, as their parents, were not divided any more since they were made.
last_divided <- function(left, parent) {
  Filter(function(g) g > 1L && !any(parent[left[left > g]] %in% c(g, parent[g])), left)
}

merge_group <- function(shared, group, parent) {
  shared[parent, ] <- shared[parent, ] + shared[group, ]
  shared[group, ] <- 0L
  shared
}

# The sum of the columns' largest Jaccard index with a row.
groups_agreement_of <- function(shared) {
  union <- outer(rowSums(shared), colSums(shared), `+`) - shared
  sum(apply(shared / pmax(union, 1), 2L, max))
}

# Centres of k groups of random subsamples, or for one sample of all points themselves: by k-means from random starts,
# or from the groups at the valleys (`grown`).
subsamples_of <- function(few, k, samples, how, grown = NULL) {
  m <- if (samples == 1) ncol(few) else subsample_size(ncol(few))
  resample <- list(key = how$key, samples = samples, m = m, k = k,
                   starts = if (is.null(grown)) cluster_settings$starts else 0)
  .Call(C_weft_clusters_subsamples, few, resample, grown, how$control)
}

subsample_size <- function(n) min(floor(cluster_settings$share * n), cluster_settings$subsample)

# The groups that most subsamples find, where `centres` are the groups of the pool.
vote_on <- function(all, centres, subsamples, how) {
  k <- ncol(centres)
  labels <- nearest_centres(all, centres)
  voted <- .Call(C_weft_clusters_vote, all, labels - 1L, c(subsamples, list(k = k)), how$control)
  cluster <- max.col(voted$votes, "first")
  size <- tabulate(cluster, k)
  place <- order(-size, seq_len(k)) # the largest group is the first
  place <- place[size[place] > 0]
  list(cluster = match(cluster, place), k = length(place),
       probability = voted$votes[cbind(seq_along(cluster), cluster)] / cluster_settings$subsamples,
       jaccard = rowMeans(voted$agreement))
}

nearest_centres <- function(points, centres) {
  max.col(2 * crossprod(points, centres) - rep(colSums(centres^2), each = ncol(points)), "first")
}

# Undoes divisions until every group is found again in the subsamples, which are divided only once.
stable_partition <- function(all, few, tree, kept, how) {
  tried <- numeric()
  grown <- if (length(kept)) grown_subsamples(few, length(kept) + 1 + cluster_settings$spare, how)
  repeat {
    found <- partition_of(few, tree, kept, grown, how)
    tried[as.character(length(found$leaves))] <- min(found$jaccard)
    if (min(found$jaccard) >= cluster_settings$dissolved) break
    kept <- setdiff(kept, division_to_undo(tree$nodes, kept, found$leaves[which.min(found$jaccard)]))
  }
  if (found$k == 1L) found <- one_group(ncol(all))
  else if (ncol(all) > ncol(few)) found <- vote_on(found$turn %*% all, found$centres, found$subsamples, how)
  c(found[c("cluster", "k", "probability", "jaccard")], list(tried = tried))
}

# The division that made the dissolved group, if its other part was not divided further; else that of two groups that is
# least clear.
division_to_undo <- function(nodes, kept, dissolved) {
  last <- kept[!nodes$left[kept] %in% kept & !nodes$right[kept] %in% kept]
  parent <- nodes$parent[dissolved]
  if (parent %in% last) parent else last[which.max(nodes$p_value[last])]
}

no_stability <- data.frame(k = integer(), observed = numeric(), null = numeric(), p_value = numeric(),
                           level = numeric(), jaccard = numeric(), kept = logical())

# A row for each number of groups, from the first division on; the last row is of the clearest valley that does not
# divide.
stability_table <- function(nodes, tried, k) {
  made <- order(nodes$order)[sort(nodes$order) > 0]
  level <- cluster_settings$level * nodes$count / max(nodes$count)
  open <- setdiff(which(!is.na(nodes$p_value)), made)
  at <- c(made, if (length(open)) open[which.min(nodes$p_value[open] / level[open])])
  upper <- nodes$null_mean + nodes$null_sd * sqrt(6) / pi * (-0.57721566490153286 - log(-log(0.95)))
  if (!length(at)) return(no_stability)
  number <- seq_along(at) + 1L
  data.frame(k = number, observed = nodes$valley[at], null = upper[at], p_value = nodes$p_value[at],
             level = level[at], jaccard = as.double(tried[match(number, names(tried))]), kept = number <= k)
}

# ---- what others ask of either kind of result ----

sample_groups <- function(r) r$cluster %||% r$row_cluster
gene_groups <- function(r) if (inherits(r, "weft_irm")) r$col_cluster else r$gene_cluster
is_consensus <- function(r) inherits(r, "weft_clusters")

# Whether the groups may be interpreted.
groups_hold <- function(r) if (is_consensus(r)) r$converged else groups_rhat(r) <= greatest_rhat

# ---- methods ----

check_clusters <- function(x, arg) {
  check_format(x, arg)
  if (identical(class(x), "weft_clusters") && holds(sound_consensus(x))) return(unclass(x))
  abort_input(sprintf("`%s` must be an unmodified object returned by `gene_clusters()`.", arg),
              x = if (inherits(x, "weft_clusters")) "It is damaged." else paste0("It is ", describe(x), "."))
}

sound_consensus <- function(r) {
  n <- length(r$cluster)
  columns <- c(k = "numeric", observed = "numeric", null = "numeric", p_value = "numeric", level = "numeric",
               jaccard = "numeric", kept = "logical")
  scores <- r$components$x
  is.list(r) && are_groups(r$cluster) && is_count(r$k, 1, n) && max(r$cluster) <= r$k &&
    is_numbers(r$probability, n, 0, 1) && is_frame(r$stability, columns) &&
    !anyNA(r$stability[c("p_value", "level")]) &&
    (is.null(r$gene_cluster) || are_groups(r$gene_cluster) && is_frame(r$gene_stability, columns)) &&
    is_matrix(scores) && nrow(scores) == n && all_finite(scores) &&
    is_numbers(r$components$share, ncol(scores), 0, 1 + 1e-9) && isTRUE(r$given %in% c(TRUE, FALSE)) &&
    isTRUE(r$converged %in% c(TRUE, FALSE)) && is_word(r$method) && is_word(r$backend) && is_number(r$seconds, 0)
}

are_groups <- function(z) {
  is_bare(z, "integer") && length(z) && !anyNA(z) && all(z >= 1L & z <= length(z)) && is_names(names(z), length(z))
}

#' Methods for groups of samples
#'
#' @param x an object returned by [gene_clusters()].
#' @param what `"samples"` or `"genes"`.
#' @param components for `plot()`: the two components to draw. If only one component was used, the other axis shows the
#'   order of the samples.
#' @param ... passed on to [graphics::plot()]; not used by the others.
#' @return `as.data.frame()` and `tidy()`: a data frame with the columns `sample` (or `gene`), `cluster` and, for
#'   samples, `probability`; `glance()`: one row; `print()` and `plot()`: `x`, invisibly.
#' @export
#' @examples
#' groups <- gene_clusters(weft_example("expression", n = 80, p = 40)$x, seed = 1)
#' plot(groups)
#' glance(groups)
print.weft_clusters <- function(x, ...) {
  r <- check_clusters(x, "x")
  writeLines(strwrap(paste0(consensus_text(r), "."), 100, exdent = 2))
  if (nrow(r$stability)) {
    shown <- r$stability
    shown$p_value <- format.pval(shown$p_value, 2, 1e-10)
    print(shown, digits = 3, row.names = FALSE)
  }
  invisible(x)
}

# "80 samples form 2 groups (50 and 30 samples), ...", without a full stop.
consensus_text <- function(r, word = "gene") {
  n <- length(r$cluster)
  genes <- if (!is.null(r$gene_cluster)) {
    if (max(r$gene_cluster) == 1L) sprintf("; the %s form no groups", several(length(r$gene_cluster), word))
    else sprintf("; %s form %s", several(length(r$gene_cluster), word), several(max(r$gene_cluster), "group"))
  }
  if (r$k == 1L) {
    return(paste0(sprintf("The %s form one group: %s", several(n, "sample"), one_group_reason(r)), genes))
  }
  size <- tabulate(r$cluster, r$k)
  sure <- sum(r$probability >= 0.9)
  paste0(sprintf("The %s form %s of %s; %s belong to their group with a probability of 0.9 or more",
                 several(n, "sample"), several(r$k, "group"),
                 if (r$k <= 12L) joined(format_whole(size)) else sprintf("%d to %d", min(size), max(size)),
                 if (sure == n) "all" else format_whole(sure)),
         if (r$given) " (the number of groups was given)", genes,
         if (!r$converged) paste("; a group was recovered in fewer than half of the subsamples: do not",
                                 "interpret the groups"))
}

one_group_reason <- function(r) {
  if (!ncol(r$components$x)) return("no component exceeds the level of independent genes")
  if (r$given) return("`k` was 1")
  if (!nrow(r$stability)) return("too few samples are distinct")
  first <- r$stability[1L, ]
  if (first$p_value > first$level) {
    return(sprintf("the deepest split is no deeper than expected in data without groups (p = %s)",
                   format(first$p_value, digits = 2)))
  }
  sprintf("the deepest split (p = %s) is not recovered in subsamples", format(first$p_value, digits = 2))
}

# Samples and genes are examined alike, in pools of limited size; then all are assigned.
cost_consensus <- function(n, p) {
  pool <- pmin(c(n, p), cluster_settings$pool)
  cost(sum(2e-3 * pool + 5e-5 * c(n, p)), Inf, 400 * (n + p))
}

# For the paragraph on methods of a report.
clusters_methods <- function(r) {
  sprintf(paste("Samples were split along %s at valleys in the density that are deeper than in null data with the same",
                "covariances and no groups (level %g, %d null data sets). Groups were refined by k-means and by a",
                "consensus over %d subsamples."), several(ncol(r$components$x), "principal component"),
          cluster_settings$level, cluster_settings$null_sets, cluster_settings$subsamples)
}

format_whole <- function(x) format(x, big.mark = ",", trim = TRUE, scientific = FALSE)

#' @rdname print.weft_clusters
#' @export
as.data.frame.weft_clusters <- function(x, ..., what = c("samples", "genes")) {
  r <- check_clusters(x, "x")
  what <- check_choice(what, c("samples", "genes"), "what")
  named <- function(z) names(z) %||% as.character(seq_along(z))
  if (what == "samples") {
    return(data.frame(sample = named(r$cluster), cluster = unname(r$cluster), probability = unname(r$probability)))
  }
  if (is.null(r$gene_cluster)) abort_input("`x` must contain groups of genes.",
                                           x = "It was computed from components without loadings.")
  data.frame(gene = named(r$gene_cluster), cluster = unname(r$gene_cluster))
}

#' @rdname print.weft_clusters
#' @export
tidy.weft_clusters <- function(x, ...) as.data.frame(x, ...)

#' @rdname print.weft_clusters
#' @export
glance.weft_clusters <- function(x, ...) {
  r <- check_clusters(x, "x")
  first <- if (nrow(r$stability)) r$stability$p_value[1L] else NA_real_
  data.frame(samples = length(r$cluster), k = r$k, gene_clusters = if (is.null(r$gene_cluster)) NA_integer_
             else max(r$gene_cluster), components = ncol(r$components$x), p.value = first,
             probability = mean(r$probability), converged = r$converged, method = r$method, backend = r$backend,
             seconds = r$seconds)
}

#' @rdname print.weft_clusters
#' @export
plot.weft_clusters <- function(x, components = 1:2, ...) {
  r <- check_clusters(x, "x")
  drawing("x", draw_clusters(r, components, ...))
  invisible(x)
}

# Samples on two components; the paler, the less probable is the group.
draw_clusters <- function(r, components, ...) {
  picture <- clusters_picture(r, components)
  colour <- grDevices::col2rgb(class_palette(max(r$cluster))[r$cluster]) / 255
  settings <- list(x = picture$data$x, y = picture$data$y, xlab = picture$labels[1L], ylab = picture$labels[2L],
                   pch = 16, las = 1, main = picture$title,
                   col = grDevices::rgb(colour[1L, ], colour[2L, ], colour[3L, ], 0.25 + 0.75 * r$probability))
  do.call(graphics::plot, utils::modifyList(settings, list(...)))
  if (r$k > 1L && r$k <= 12L) {
    graphics::legend("topright", bty = "n", pch = 16, col = class_palette(r$k), cex = 0.8,
                     legend = sprintf("%d (%s)", seq_len(r$k), format_whole(tabulate(r$cluster, r$k))))
  }
}

# list(data: x, y, group, probability; labels; title).
clusters_picture <- function(r, components) {
  scores <- r$components$x
  label <- function(j) sprintf("PC%d (%s of the variance)", j, vapply(r$components$share[j], share_text, ""))
  if (ncol(scores) >= 2L) {
    components <- vapply(components, check_number, 0, arg = "components", min = 1, max = ncol(scores), whole = TRUE)
    if (length(components) != 2L) abort_input("`components` must contain two numbers.")
    at <- list(scores[, components[1L]], scores[, components[2L]])
    labels <- label(components)
  } else {
    at <- list(if (ncol(scores)) scores[, 1L] else seq_along(r$cluster), seq_along(r$cluster))
    labels <- c(if (ncol(scores)) label(1L) else "sample", "sample")
  }
  list(data = data.frame(x = at[[1L]], y = at[[2L]], group = factor(r$cluster), probability = unname(r$probability)),
       labels = labels, title = if (r$k == 1L) "one group" else sprintf("%d groups of samples", r$k))
}
