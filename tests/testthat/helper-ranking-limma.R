# gene_ranking() on random small designs beside limma, called as its users call it: two classes, several levels with and
# without contrasts, batches, blocks, a covariate, a number as outcome, gaps, trends, counts. For
# test-ranking-limma.R and proofs/ranking-limma.R.

# The difference in words for a seed, or NULL.
limma_difference <- function(seed) {
  d <- limma_design(seed)
  r <- tryCatch(suppressWarnings(weft_ranking_of(d), classes = "weft_warning"), error = identity)
  if (inherits(r, "error")) return(paste(d$text, "an error:", conditionMessage(r)))
  right <- limma_ranking(d, r$gene)
  model <- attr(r, "model")
  statistic <- r[[if (is.null(right$f)) "t" else "f"]]
  first_of(
    if (model$n != nrow(d$data)) sprintf("%s: %d samples of %d", d$text, model$n, nrow(d$data)),
    near_limma(statistic, right$f %||% right$t, paste(d$text, "statistic")),
    near_limma(r$log10_p, right$log10_p, paste(d$text, "log10 p")),
    near_limma(r$p_value, right$p, paste(d$text, "p")),
    if (is.null(right$f)) near_limma(r$log2_fold_change, right$estimate, paste(d$text, "fold change")),
    near_limma(model$d0, right$d0, paste(d$text, "d0")),
    near_limma(model$s02, right$s02, paste(d$text, "s02"))
  )
}

# To 1e-6 of their size. Of d0, which has no bound, 1/d0 is compared where that is near 0.
near_limma <- function(a, b, what) {
  a <- unname(a)
  b <- unname(b)
  if (!identical(is.na(a), is.na(b))) return(sprintf("%s: %d and %d missing", what, sum(is.na(a)), sum(is.na(b))))
  size <- pmax(abs(b), 1e-12)
  within(a, b, ifelse(is.finite(size), 1e-6 * size, 0), what)
}

# list(x, data, formula, term, contrasts, tested: names of what is tested in `design`, whose last columns these are;
# design, counts, factors, trend, text).
limma_design <- function(seed) {
  seed_numbers(seed)
  kind <- pick("two", "levels", "one contrast", "contrasts", "number", "pairs")
  counts <- chance(0.25)
  n <- 2L * whole(if (kind == "two") 2 else 7, 15)
  p <- whole(15, 150)
  levels <- if (kind %in% c("two", "pairs")) 2L else whole(3, 4)
  data <- data.frame(class = factor(rep_len(letters[seq_len(levels)], n)), age = stats::rnorm(n, 50, 10),
                     pair = factor(rep(seq_len(n / 2), each = 2L)))
  others <- if (n > 4L) c(if (kind == "pairs") "pair" else if (chance(0.5)) "batch", if (chance(0.3)) "age")
  repeat {
    data$batch <- factor(sample(rep_len(c("u", "v"), n)))
    if (all(table(data$class, data$batch) > 0L)) break
  }
  term <- "class"
  if (kind == "number") {
    data$dose <- stats::rnorm(n)
    term <- "dose"
  }
  x <- limma_values(n, p, data, counts)
  gaps <- if (counts || chance(0.6)) 0 else log_uniform(-2.5, -1.2)
  x <- with_gaps(x, gaps)
  d <- list(x = x, data = data, term = term, counts = counts, trend = chance(0.5), gaps = gaps > 0,
            formula = stats::reformulate(c(others, term)), factors = if (counts) stats::runif(n, 0.7, 1.4))
  d <- c(d, limma_hypothesis(d, kind, others))
  d$text <- sprintf("seed %.0f, %s, ~ %s, %d x %d%s%s%s:", seed, kind, paste(c(others, term), collapse = " + "), n, p,
                    if (counts) ", counts" else "", if (gaps > 0) ", gaps" else "", if (d$trend) ", trend" else "")
  d
}

# Genes of different variance, some of which differ between classes.
limma_values <- function(n, p, data, counts) {
  spread <- exp(stats::rnorm(p, 0, pick(0, 0.3, 0.8)))
  level <- stats::runif(p, 5, 11)
  shift <- outer(as.integer(data$class) - 1, replace(numeric(p), seq_len(p %/% 5), stats::rnorm(p %/% 5)))
  x <- rep(level, each = n) + shift + matrix(stats::rnorm(n * p), n) * rep(spread, each = n) * 0.5
  if (counts) x <- matrix(stats::rnbinom(n * p, mu = 2^x, size = 10), n)
  dimnames(x) <- list(paste0("s", seq_len(n)), paste0("g", seq_len(p)))
  x
}

# The contrasts, and a design whose last columns have them as coefficients.
limma_hypothesis <- function(d, kind, others) {
  levels <- levels(d$data$class)
  before <- stats::model.matrix(stats::reformulate(c("1", others)), d$data)
  if (kind == "number") return(list(design = cbind(before, tested = d$data$dose), tested = "tested"))
  own <- stats::model.matrix(~ class, d$data)[, -1L, drop = FALSE]
  if (!kind %in% c("one contrast", "contrasts")) return(list(design = cbind(before, own), tested = colnames(own)))
  count <- if (kind == "contrasts") 2L else 1L
  at <- sample(length(levels), count + 1L)
  pairs <- paste(levels[at[-1L]], "-", levels[at[1L]])
  given <- pairs
  wanted <- matrix(0, length(levels), count)
  wanted[cbind(at[-1L], seq_len(count))] <- 1
  wanted[at[1L], ] <- -1
  if (chance(0.3)) { # against the mean of two others
    wanted <- matrix(0, length(levels), 1L, dimnames = list(levels, "mean"))
    wanted[sample(length(levels), 3L), 1L] <- c(1, -0.5, -0.5)
    given <- wanted
  }
  # the class's means are M c, where C'M are the contrasts and the other rows of M are any that complete them
  full <- rbind(t(wanted), 0)[seq_len(ncol(wanted)), , drop = FALSE]
  rest <- t(orthogonal_to(rbind(full, 1)))
  means <- stats::model.matrix(~ 0 + class, d$data)
  turned <- means %*% solve(rbind(1, rest, full))
  turned <- turned[, -1L, drop = FALSE]
  colnames(turned) <- c(rep("rest", nrow(rest)), sprintf("tested%d", seq_len(nrow(full))))
  list(design = cbind(before, turned), tested = sprintf("tested%d", seq_len(nrow(full))), contrasts = given)
}

# Columns that are orthogonal to all rows.
orthogonal_to <- function(rows) {
  turned <- qr(t(rows))
  qr.Q(turned, complete = TRUE)[, -seq_len(turned$rank), drop = FALSE]
}

weft_ranking_of <- function(d) {
  control <- list(trend = d$trend, robust = FALSE, shape = FALSE, weights = if (d$counts) "auto" else "none")
  control$factors <- d$factors
  weft::gene_ranking(d$x, d$formula, data = d$data, term = d$term, contrasts = d$contrasts, control = control,
                     run = weft_run(threads = 1, progress = FALSE))
}

# list(t or f, p, log10_p, estimate, d0, s02) of the named genes.
limma_ranking <- function(d, genes) {
  y <- t(d$x[, sort_genes(genes, d), drop = FALSE])
  if (d$counts) y <- limma::voom(y, d$design, lib.size = colSums(y) * d$factors)
  fit <- suppressWarnings(limma::lmFit(y, d$design))
  e <- suppressWarnings(limma::eBayes(fit, trend = d$trend))
  out <- list(d0 = max(e$df.prior), s02 = stats::median(e$s2.prior))
  if (length(d$tested) == 1L) {
    of <- function(m) m[genes, d$tested]
    t <- of(e$t)
    return(c(out, list(t = t, p = of(e$p.value), estimate = of(e$coefficients),
                       log10_p = (log(2) + stats::pt(-abs(t), e$df.total[match(genes, rownames(e))],
                                                     log.p = TRUE)) / log(10))))
  }
  f <- if (d$gaps || d$counts) several_coefficients(d, y, e) else {
    weighed <- e[, d$tested]
    stats::setNames(weighed$F, rownames(e)) # of an MArrayLM, these are the F of the columns kept
  }
  total <- stats::setNames(e$df.total, rownames(e))[genes]
  f <- f[genes]
  log_p <- stats::pf(f, length(d$tested), total, lower.tail = FALSE, log.p = TRUE)
  c(out, list(f = f, p = exp(log_p), log10_p = log_p / log(10)))
}

sort_genes <- function(genes, d) intersect(colnames(d$x), genes)

# limma takes all genes' coefficients as correlated alike, which they are not with gaps or weights: F of each gene's own
# least squares, with limma's variances.
several_coefficients <- function(d, y, e) {
  values <- if (d$counts) y$E else y
  weights <- if (d$counts) y$weights else matrix(1, nrow(values), ncol(values))
  f <- vapply(seq_len(nrow(values)), function(j) {
    there <- !is.na(values[j, ])
    fit <- stats::lm.wfit(d$design[there, , drop = FALSE], values[j, there], weights[j, there])
    beta <- fit$coefficients[d$tested]
    if (anyNA(beta)) return(NA_real_)
    kept <- fit$qr$pivot[seq_len(fit$rank)]
    names <- colnames(d$design)[kept]
    unscaled <- chol2inv(fit$qr$qr[seq_len(fit$rank), seq_len(fit$rank), drop = FALSE])
    at <- match(d$tested, names)
    drop(beta %*% solve(unscaled[at, at], beta)) / length(beta) / e$s2.post[j]
  }, 0)
  stats::setNames(f, rownames(values))
}
