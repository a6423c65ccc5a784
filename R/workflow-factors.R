# Hidden factors: components of what class, batches and covariates do not explain, along which most genes move. They are
# taken out as covariates where that is asked for, and the edges of a network are held against them.

# The median gene shares this much of its variance with such a component. In networks without hidden factors the first
# component reaches .01 to .08, with one to three of them .02 to .17 (src/regulation/README.md).
least_factor <- 0.05

# Whether covariates are "components", unless a column of the sample table has this name.
wants_factors <- function(covariates, x) {
  identical(covariates, "components") && !(is_experiment(x) && "components" %in% names(container_samples(x)))
}

# Which of the components that stand out are such; basis: qr() of what is known of the samples.
broad_components <- function(x, scores, standing, basis) {
  tried <- seq_len(min(standing, ncol(scores)))
  tried[vapply(tried, function(k) {
    score <- qr.resid(basis, scores[, k])
    length <- sqrt(sum(score^2))
    length > 0 && stats::median(gene_shares(x, basis, score / length)) >= least_factor
  }, NA)]
}

# q with its hidden factors among the covariates. Of the class, too, nothing is left in them, so that none of it goes
# with them.
with_hidden_factors <- function(q) {
  if (q$kind == "levels") return(note(q, "batch", "Values are levels, so hidden factors were not searched for."))
  known <- q
  if (anyNA(known$x)) known <- fill_gaps(known, "median", 1L)
  if (!is.null(q$class)) {
    known$covariates <- as_frame(c(as.list(q$covariates), list(class = q$class)), nrow(q$x))
  }
  data <- component_data(known)
  if (is.null(data$model)) data$x <- without_nuisance(data$x, data$part)
  room <- min(10L, nrow(q$x) - 2L - NCOL(data$part) * !is.null(data$part), ncol(q$x))
  if (room < 1L) return(note(q, "batch", "There are too few samples to search for hidden factors."))
  scores <- pca(data$x, room, scale = data$scale, seed = 1, run = weft_run("cpu", progress = FALSE))$x
  basis <- qr(cbind(rep(1, nrow(q$x)), data$part))
  found <- broad_components(data$x, scores, standing_components(data, room, 1)$k, basis)
  if (!length(found)) {
    return(note(q, "batch", "No significant component is correlated with most genes, so there is no hidden factor."))
  }
  factors <- as.data.frame(qr.resid(basis, scores[, found, drop = FALSE]))
  names(factors) <- sprintf("component%d", found)
  rownames(factors) <- rownames(q$x)
  q$covariates <- if (is.null(q$covariates)) factors else cbind(q$covariates, factors)
  note(q, "batch", sprintf("%s correlated with most genes and adjusted for as hidden %s: %s.",
                           several_are(length(found), "significant component"),
                           if (length(found) == 1L) "factor" else "factors", toString(names(factors))))
}

# What edges of a network say beside the components that move most genes: list(components: their numbers, p: of the
# correlation of each edge's genes given these), or NULL where there are none, or where samples were perturbed or follow
# each other, which moves most genes by design. edges: columns `from` and `to`.
edges_given_factors <- function(fit, edges) {
  pc <- fit$components
  q <- fit$quality
  designed <- !is.null(attr(fit$network, "interventions")) || !is.null(attr(fit$network, "series"))
  if (designed || !nrow(edges) || is.null(pc$x) || is.null(standing_out(pc))) return(NULL)
  if (nrow(pc$x) != network_samples(fit)) return(NULL)
  place <- function(names) if (all(names %in% colnames(q$x))) match(names, colnames(q$x)) else shown_columns(fit, names)
  columns <- cbind(place(edges$from), place(edges$to))
  if (q$kind == "levels" || anyNA(columns)) return(NULL)
  known <- cbind(rep(1, nrow(q$x)), nuisance_design(q), if (!is.null(q$class)) contrast_columns(q$class))
  factors <- broad_components(q$x, pc$x, standing_out(pc), qr(known))
  known <- qr(cbind(rep(1, nrow(q$x)), nuisance_design(q), pc$x[, factors, drop = FALSE]))
  df <- nrow(q$x) - known$rank - 1
  if (!length(factors) || df < 1) return(NULL)
  used <- unique(c(columns))
  rest <- qr.resid(known, q$x[, used, drop = FALSE])
  rest <- rest / rep(pmax(sqrt(colSums(rest^2)), 1e-300), each = nrow(rest))
  r <- colSums(rest[, match(columns[, 1L], used), drop = FALSE] * rest[, match(columns[, 2L], used), drop = FALSE])
  r2 <- pmin(r^2, 1)
  list(components = factors, p = 2 * stats::pt(-sqrt(r2 * df / pmax(1 - r2, 1e-15)), df))
}

# A sentence on the pairs that follow such components, or NULL.
factors_text <- function(fit, edges) {
  found <- edges_given_factors(fit, edges)
  if (is.null(found)) return(NULL)
  pair <- paste(pmin(edges$from, edges$to), pmax(edges$from, edges$to), sep = "\r")
  once <- !duplicated(pair)
  follow <- sum(found$p[once] > 0.05)
  them <- if (length(found$components) == 1L) "it" else "them"
  what <- joined(sprintf("PC%d", found$components))
  if (!follow) {
    return(sprintf(paste("Most genes are correlated with %s. All pairs remain correlated after adjustment for %s (p up",
                         "to 0.05)."), what, them))
  }
  sprintf(paste("Most genes are correlated with %s. After adjustment for %s, %d of %s %s no longer correlated (p above",
                "0.05). A hidden factor may explain %s; `covariates = \"components\"` adjusts for such factors. A",
                "regulator of most genes would have the same effect."),
          what, them, follow, several(sum(once), "pair"), if (follow == 1L) "is" else "are",
          if (follow == 1L) "this pair" else "these pairs")
}
