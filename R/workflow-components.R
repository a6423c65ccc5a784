# Components of the samples: what they are of, how many stand out, and whether classes differ along them.

#' @rdname gene_steps
#' @export
gene_components <- function(x, k = NULL, leading = NULL, seed = NULL, run = NULL, ...) {
  run <- as_run(run)
  check_dots(...)
  q <- checked_data(x)
  data <- component_data(q)
  room <- max(1L, min(nrow(q$x) - 1L - NCOL(data$part) * !is.null(data$part), ncol(q$x)))
  k <- check_number(k %||% min(10, room), "k", min = 1, max = min(nrow(q$x) - 1L, ncol(q$x)), whole = TRUE)
  if (!is.null(leading)) leading <- check_number(leading, "leading", min = 1, max = k, whole = TRUE)
  fit <- pca(data$x, k, scale = data$scale, seed = seed, run = run)
  choice <- NULL
  if (is.null(leading)) {
    choice <- standing_components(data, min(k, room), seed)
    leading <- min(max(choice$k, min(2, k)), k)
  }
  fit$leading <- as.integer(leading)
  fit$choice <- choice
  fit$apart <- if (!is.null(q$class)) classes_on_components(fit$x, q)
  fit$hidden <- hidden_groups(q, data, fit)
  if (!is.null(fit$hidden)) warn_hidden(q, fit$hidden)
  fit$confounding <- confounding(q, fit)
  fit
}

# ---- what components are of ----

# list(x: a complete matrix, samples x genes; scale: whether genes are scaled; part: centred columns of batches and
# covariates, which have been taken out of x; model: of the counts, where x is residuals of these).
component_data <- function(q) {
  part <- if (q$kind == "expression") nuisance_design(q)
  if (!is.null(part)) part <- independent_columns(part)
  if (is.null(q$counts) || q$kind == "levels") return(list(x = q$x, scale = TRUE, part = part))
  cells <- identical(q$scale, "cells")
  model <- count_model(q$counts, cells)
  list(x = without_nuisance(count_residuals(q$counts, model), part), scale = !cells, part = part, model = model)
}

independent_columns <- function(part) {
  found <- qr(part)
  part[, found$pivot[seq_len(found$rank)], drop = FALSE]
}

# ---- counts ----

# Counts of independent genes: negative binomial, with a mean that is the product of the sample's depth and the gene's
# share, and a dispersion by moments. Of cells, which say little about the dispersion of one gene, all are taken to have
# the median one: what varies more is what sets cells apart, and keeps its greater weight (Lause, Berens and Kobak
# 2021). Their depths are totals. Those of bulk samples are not: a few genes may have most of the counts, and what these
# do by chance would move the shares of all others. Every gene tells a depth, its count over its share, and the depth is
# the mean of these, with the inverse of their variances as weights.
count_model <- function(counts, cells) {
  depth <- rowSums(counts)
  share <- colSums(counts) / sum(depth)
  moments <- function() .Call(C_weft_pca_counts_moments, counts, list(depth = depth, share = share), pass_control())
  own <- moments()
  for (round in if (cells) integer() else 1:2) {
    usual <- mean(depth) * share
    weight <- share / (usual + stats::median(own) * usual^2)
    depth <- drop(counts %*% weight) / sum(share * weight)
    share <- colSums(counts) / sum(depth)
    own <- moments()
  }
  list(depth = depth, share = share, own = own, cells = cells,
       dispersion = if (cells) rep(min(1, max(0.01, stats::median(own))), length(own)) else own)
}

# Pearson residuals, cut off at the root of the number of samples: of a gene with few counts a single large one would
# otherwise be most of its variance.
count_residuals <- function(counts, model) {
  how <- list(depth = model$depth, share = model$share, dispersion = model$dispersion, most = sqrt(nrow(counts)))
  out <- .Call(C_weft_pca_counts_residuals, counts, how, pass_control())
  dimnames(out) <- dimnames(counts)
  out
}

# Residuals of counts that are drawn from the model, to which the model is fitted anew: a few genes with most of the
# counts move the shares of all others in the draws as they do in the data.
drawn_residuals <- function(model, key, stream) {
  how <- list(depth = model$depth, share = model$share, dispersion = model$own, key = as_halves(key), stream = stream)
  drawn <- .Call(C_weft_pca_counts_draw, how, pass_control())
  drawn <- drawn[, colSums(drawn) > 0, drop = FALSE]
  if (any(rowSums(drawn) == 0)) drawn[rowSums(drawn) == 0, 1L] <- 1
  count_residuals(drawn, count_model(drawn, model$cells))
}

# ---- how many stand out ----

# Of the data's leading components those that exceed the greatest of `times` sets without dependence between genes; what
# was taken out of the data is taken out of these sets too, since that leaves less room, and greater components in it.
# Values are permuted within genes; counts are drawn instead, as those of deep and of shallow samples cannot change
# places. Distances from the medians get random signs besides, which preserves what noisier samples do.
standing_components <- function(data, most, seed, times = 19) {
  genes <- component_genes(dim(data$x))
  some <- if (genes < ncol(data$x)) sort(order(draws("uniform", ncol(data$x), key = 1))[seq_len(genes)])
          else seq_len(ncol(data$x))
  x <- data$x[, some, drop = FALSE]
  most <- min(most, genes)
  values <- leading_values(TRUE, data$scale)
  without <- function(null) function(...) without_nuisance(null(...), data$part)
  model <- data$model
  if (!is.null(model)) for (part in c("share", "own", "dispersion")) model[[part]] <- model[[part]][some]
  drawn <- if (is.null(model)) permute_columns else function(x, key, stream) drawn_residuals(model, key, stream)
  found <- suppressWarnings(parallel_analysis(values(x, most), x, times, 0.95, random_key(seed), values,
                                              c(without(drawn), without(draw_signs(x)))), classes = "weft_warning")
  new_result(class = "weft_pca_k", c(found, list(method = "signs")))
}

# How many components are significant, which may be none although two are used; NULL if that was not tested.
standing_out <- function(pc) if (!is.null(pc$choice$k)) min(pc$choice$k, pc$leading)

# How many genes the number of components is found from: their data are decomposed 39 times.
component_genes <- function(shape) min(shape[2L], max(200, 5e5 %/% shape[1L]))

# ---- classes along components ----

# On which component classes differ most: list(best, share: of its variance that lies between them, p: over all
# components, each: the shares of all, permutations). Without batches and covariates it is an analysis of variance. With
# them classes are compared within batches: the share is what the class adds to these, and its test permutes the class
# within batches. Scores do not depend on the class, as what was taken out of the data does not. Where the class has no
# effect each permutation is therefore as good as the data, however far batch and class agree.
classes_on_components <- function(scores, q, permutations = 999) {
  part <- if (q$kind == "expression") nuisance_design(q)
  if (is.null(part)) {
    found <- apply(scores, 2L, share_explained, q$class)
    best <- which.min(found["p", ])
    return(list(best = unname(best), share = found[["share", best]], p = min(1, found[["p", best]] * ncol(scores)),
                each = found["share", ], permutations = 0))
  }
  known <- qr.Q(qr(cbind(1, independent_columns(part))))
  scores <- scores - known %*% crossprod(known, scores)
  orders <- orders_within(q$batch, nrow(scores), permutations)
  class <- contrast_columns(q$class)
  squares <- pmax(colSums(scores^2), 1e-300)
  share_of <- function(class) {
    rest <- class - known %*% crossprod(known, class)
    rest <- qr(rest)
    if (rest$rank < 1L) return(numeric(ncol(scores)))
    colSums(crossprod(qr.Q(rest)[, seq_len(rest$rank), drop = FALSE], scores)^2) / squares
  }
  each <- share_of(class)
  greatest <- vapply(seq_len(permutations), function(k) max(share_of(class[orders[, k], , drop = FALSE])), 0)
  best <- which.max(each)
  list(best = unname(best), share = each[[best]],
       p = (1 + sum(greatest >= each[[best]] * (1 - 1e-9))) / (1 + permutations), each = each,
       permutations = permutations)
}

# Orders of samples, a column for each permutation; without batches of all, with them within each.
orders_within <- function(batch, n, permutations) {
  batch <- if (is.null(batch)) rep(1L, n) else as.integer(batch)
  set <- rep(seq_len(permutations), each = n)
  where <- rep(batch, permutations)
  drawn <- order(set, where, draws("uniform", n * permutations, key = 2))
  there <- order(set, where)
  orders <- integer(n * permutations)
  orders[there] <- drawn - (set[drawn] - 1L) * n
  matrix(orders, n)
}

# What gene_components() found of that; for results that have none of it, an analysis of variance.
apart_on_components <- function(pc, q) {
  if (!is.null(pc$apart)) return(pc$apart)
  classes_on_components(pc$x, q)
}

# The share of a component's variance that a variable explains beyond those in the list `beside`, and its p-value in an
# analysis of variance that has these in the model.
share_explained <- function(scores, variable, beside = NULL) {
  columns <- function(v) if (is.factor(v)) contrast_columns(v) else as.numeric(v)
  known <- do.call(cbind, c(list(rep(1, length(scores))), unname(lapply(beside, columns))))
  reduced <- qr(known)
  whole <- qr(cbind(known, columns(variable)))
  total <- sum((scores - mean(scores))^2)
  left <- sum(qr.resid(reduced, scores)^2)
  rest <- sum(qr.resid(whole, scores)^2)
  df <- c(whole$rank - reduced$rank, length(scores) - whole$rank)
  p <- if (any(df < 1L) || left <= 1e-24 * sum(scores^2)) 1 # nothing but rounding
       else if (rest <= 0) 0
       else stats::pf((left - rest) / df[1L] / (rest / df[2L]), df[1L], df[2L], lower.tail = FALSE)
  c(share = if (total > 0) max(0, (left - rest) / total) else 0, p = p)
}
