# Sets of genes whose members shift together: a test over the whole ranking, for sets in which no single gene need
# differ
# clearly. Genes of a set are correlated, which makes their mean vary more than that of independent genes: the test
# allows for it (Wu and Smyth 2012).

# A data frame, least p-value first: `set`, `size`, `direction` (text), `shift` (the mean statistic of the set less
# that of
# the other genes, in standard deviations), `correlation` (mean over pairs of the set's genes), `p_value`, `q_value`.
# NULL
# where the ranking has no sign: of levels, or of more than two classes.
ranked_sets <- function(fit, sets, min_size = 5, max_size = 500) {
  r <- fit$ranking
  if (!inherits(r, "weft_ranking") || !is.null(r$contrast) || is.null(r$t)) return(NULL)
  q <- fit$quality
  genes <- representatives(q)
  name <- colnames(q$x)[genes]
  symbol <- q$genes$symbol[match(name, q$genes$gene)] %||% name
  symbol <- ifelse(is.na(symbol), name, symbol)
  place <- match(name, r$gene)
  z <- sign(r$t[place]) * stats::qnorm(r$log10_p[place] * log(10) - log(2), lower.tail = FALSE, log.p = TRUE)
  known <- is.finite(z)
  rest <- unit_residuals(q, genes[known])
  set_shifts(z[known], rest$units, rest$df, lapply(sets, function(set) which(symbol[known] %in% set)),
             c(min_size, max_size), ranking_levels(fit))
}

# What the classes leave of each gene, as columns of length 1, and its degrees of freedom.
unit_residuals <- function(q, genes) {
  x <- q$x[, genes, drop = FALSE]
  design <- cbind(1, if (!is.null(q$class)) contrast_columns(q$class))
  rest <- stats::lm.fit(design, x)$residuals
  length <- sqrt(colSums(rest^2))
  list(units = rest / rep(ifelse(length > 0, length, 1), each = nrow(rest)), df = nrow(x) - ncol(design))
}

# The statistics z of the genes of each set (`members`, places among the genes) against those of all others: Student's t
# with the variance of the set's mean inflated by its genes' correlation.
set_shifts <- function(z, units, df, members, sizes, levels) {
  size <- lengths(members)
  members <- members[size >= sizes[1L] & size <= sizes[2L] & size < length(z) - 1L]
  size <- lengths(members)
  if (!length(members)) return(NULL)
  all <- length(z)
  inflation <- vapply(members, function(at) sum(rowSums(units[, at, drop = FALSE])^2) / length(at), 0)
  shift <- all / (all - size) * (vapply(members, function(at) mean(z[at]), 0) - mean(z))
  pooled <- ((all - 1) * stats::var(z) - shift^2 * size * (all - size) / all) / (all - 2)
  t <- shift / sqrt(pooled * (pmax(inflation, 1) / size + 1 / (all - size)))
  p <- 2 * stats::pt(abs(t), min(df, all - 2), lower.tail = FALSE)
  up <- if (length(levels) == 2L) sprintf(c("higher in %s", "higher in %s"), levels[2:1]) else c("rising", "falling")
  out <- data.frame(set = names(members), size = unname(size), direction = ifelse(shift > 0, up[1L], up[2L]),
                    shift = unname(shift), correlation = unname((inflation - 1) / pmax(size - 1, 1)),
                    p_value = unname(p), q_value = stats::p.adjust(unname(p), "BH"), row.names = NULL)
  out <- out[order(out$p_value, -abs(out$shift)), ]
  rownames(out) <- NULL
  out
}
