# Samples that lie where no others are: their density among the leading components, and their distance from these.

#' Detect outliers among the samples
#'
#' `gene_outliers()` tests each sample in two ways. The shortest call is `gene_outliers(components, data = q)`. It
#' returns a data frame with a p-value, a q-value and a decision for each sample.
#'
#' * The `density` is the leave-one-out kernel density of the sample among the scores on the leading components
#'   ([kde()]). It is low if there are no other samples nearby.
#' * The `distance` is the distance of the sample from the subspace that the components of the *other* samples span. It
#'   is large if many genes behave differently in this sample than in all others. The sample itself is not used for the
#'   subspace, because an extreme sample creates a component of its own.
#'
#' Two similar outliers might hide each other, because each of them pulls the subspace towards the other. Each sample is
#' therefore compared with the sample that has the largest influence on its distance. If the residuals of both samples
#' have nearly the same direction (a cosine of at least `r least_alike`), each of them is also tested without the other.
#' This needs `data`, and at most `r most_with_twins` samples.
#'
#' @section Method: Scores are divided by robust standard deviations (1.4826 times the median absolute deviation). The
#'   bandwidth follows Silverman's rule, but is at least 0.85, so that the result for an extreme sample does not depend
#'   on the width of the kernel. The density is converted to the logarithm of the distance at which a normal density has
#'   this value. The most extreme tenth of the samples (at least two) are compared with the next samples, up to a third
#'   of all samples or eight. The spacings of these samples determine how fast the tail decreases. The tail is assumed
#'   to be exponential, as it is for distances that follow a power law. Therefore, groups of unequal size and
#'   heavy-tailed values are not reported as outliers.
#'
#'   The logarithms of the distances are compared with samples from a multivariate t distribution with five degrees of
#'   freedom, in which the noise differs between samples. Location and scale are estimated by a line through the
#'   quantiles between the lowest twentieth and the highest fifth, and the p-values account for the error of this line.
#'   With fewer than ten samples, the distance is not used. The p-value of a sample is twice the smaller of its two
#'   p-values. Outliers have a q-value (Benjamini and Hochberg) of at most `fdr`.
#'
#' @section Accuracy: The method assumes that fewer than a tenth of the samples are outliers. We simulated three
#'   outliers, in which a quarter of the genes were shifted by about four standard deviations
#'   (`inst/bench/workflow-outliers.R`). Among 24 samples, between 77 and 100 % of them were detected in normal data,
#'   with groups, batches or factors, in counts and in a regulatory network. Among 60 samples, all were detected.
#'   Detection rates are lower for heavy tails. Among 24 samples, they were 84 % for values from a t distribution with
#'   three degrees of freedom, 39 % if the factors also had heavy tails, and 48 % for leukaemia data. If the noise
#'   differs between samples as in a t distribution, hardly any outlier is detected.
#'
#'   If two samples have the same shifted genes, the detection rate was at least 95 % of the rate for a single outlier,
#'   except if the noise differs between samples.
#'
#'   In data without outliers, at most 5 % of data sets had a false positive, with three exceptions. The rate was 9 %
#'   for 60 samples whose noise differs gradually. In this case, check the quality of the reported samples before you
#'   exclude them. It was 15 % for 24 samples of counts, where a few highly expressed genes took up more of the counts
#'   in the reported samples. It was 11 % for 24 samples in three batches, where the reported samples were a batch of
#'   one or two samples.
#'
#' @param x a result of [gene_components()] or [pca()], or data for them.
#' @param k the number of components. The default is the number of leading components, and at most five.
#' @param fdr the false discovery rate.
#' @param data the matrix from which `x` was computed. It is needed for the distance.
#' @param run see [weft_run()].
#' @return A data frame of class `weft_outliers`, with the most extreme samples first. The columns are `sample`,
#'   `log_density`, `distance`, `score`, `p_value`, `q_value` and `outlier`. The `score` is the larger of the two test
#'   results, converted to standard deviations of a normal distribution. The attribute `"kde"` contains the density.
#' @seealso [gene_network()]
#' @export
#' @examples
#' e <- weft_example("expression", n = 80, p = 30, seed = 2)
#' q <- gene_quality(e$x, e$class, e$batch)
#' gene_outliers(gene_components(q), data = q)
#' e$outliers
gene_outliers <- function(x, k = NULL, fdr = 0.05, data = NULL, run = NULL, ...) {
  run <- as_run(run)
  check_dots(...)
  need_args("x")
  fdr <- check_number(fdr, "fdr", min = 0, max = 1)
  if (!inherits(x, "weft_pca")) {
    data <- checked_data(x)
    x <- gene_components(data, run = run)
  }
  x <- checked_step(x, "components", "x", "gene_components()")
  k <- check_number(k %||% min(x$leading %||% 2L, 5L), "k", min = 1, max = ncol(x$x), whole = TRUE)
  scores <- x$x[, seq_len(k), drop = FALSE]
  spread <- apply(scores, 2L, robust_sd)
  scores <- scores / rep(ifelse(spread > 0, spread, 1), each = nrow(scores))
  n <- nrow(scores)
  width <- max((4 / ((k + 2) * n))^(1 / (k + 4)), least_width)
  density <- kde(scores, rep(width, k), run = run)
  log_density <- stats::predict(density, log = TRUE, leave_one_out = TRUE, run = run)
  if (!is.null(data)) data <- outlier_data(data, x)
  wide <- if (!is.null(data)) with_spare_components(x, data, run$threads)
  twin <- if (is.null(data)) rep(NA_integer_, n) else sample_twins(wide, data)
  log_density[!is.na(twin)] <- density_without_twin(scores, twin, width)
  peak <- max(stats::predict(density, log = TRUE, run = run))
  p_density <- tail_p(0.5 * log(pmax(peak - log_density, 1e-6)))
  distance <- rep(NA_real_, n)
  p_distance <- rep(1, n)
  if (!is.null(data)) {
    distance <- distance_from_others(wide, data, run$threads)
    usual <- log(pmax(distance, 1e-6))
    distance[!is.na(twin)] <- distance_without_twin(wide, data, twin)
    p_distance <- spread_p(log(pmax(distance, 1e-6)), usual)
  }
  p <- pmin(1, 2 * pmin(p_density, p_distance))
  q <- stats::p.adjust(p, "BH")
  out <- data.frame(sample = rownames(x$x) %||% as.character(seq_len(n)), log_density = log_density,
                    distance = distance, score = stats::qnorm(pmax(p, 1e-300) / 2,
                                         lower.tail = FALSE), p_value = p, q_value = q, outlier = q <= fdr)
  out <- out[order(p, log_density), ]
  rownames(out) <- NULL
  new_result(out, class = c("weft_outliers", "data.frame"), kde = density, components = as.integer(k), fdr = fdr,
            scale = spread, samples = n)
}

# Robust standard deviations. A kernel that narrows with the number of samples makes the logarithm of a distance jump
# where samples have no others nearby, and makes outliers of heavy tails.
least_width <- 0.85

# The complete matrix that the components `fit` are of.
outlier_data <- function(data, fit) {
  if (inherits(data, "weft_quality")) data <- component_data(checked_quality(data, "data"))$x
  fits <- length(dim(data)) == 2L && nrow(data) == nrow(fit$x) && ncol(data) == nrow(fit$rotation)
  if (fits && is.data.frame(data)) data <- plain_matrix(data)
  else if (fits && inherits(data, c("Matrix", "DelayedArray"))) {
    check_dense_fits(data)
    data <- as.matrix(data)
  }
  if (!is.matrix(data) || !(is.numeric(data) || is.logical(data)) || nrow(data) != nrow(fit$x) ||
        ncol(data) != nrow(fit$rotation) || !all_finite(data)) {
    abort_input("`data` must be the complete matrix that `x` was made from.",
                x = sprintf("It is %s; `x` is of %d samples and %d genes.", describe(data), nrow(fit$x),
                            nrow(fit$rotation)))
  }
  data
}

robust_sd <- function(x) stats::mad(x)

# p-values of surprises whose upper tail is exponential. With s_1 >= s_2 >= ..., the spacings i (s_i - s_(i + 1)) of the
# tail are then independent with one exponential distribution (Renyi 1953); those below the `top` greatest give its
# rate, and the excess of each of these over s_(top + 1), divided by their sum, exceeds t with probability (1 +
# t)^-(their number). Others have their share of samples at least as strange.
tail_p <- function(s) {
  n <- length(s)
  top <- max(2L, as.integer(ceiling(n / 10)))
  deep <- min(n - 1L, max(top + 8L, as.integer(ceiling(0.35 * n))))
  share <- rank(-s, ties.method = "max") / n
  if (deep <= top) return(share)
  sorted <- sort(s, decreasing = TRUE)
  i <- (top + 1L):deep
  total <- sum(i * (sorted[i] - sorted[i + 1L]))
  if (!(total > 1e-9)) return(rep(1, n)) # as many as that are equal but for rounding
  excess <- (s - sorted[top + 1L]) / total
  ifelse(excess > 0, top / n * (1 + pmax(excess, 0))^-(deep - top), share)
}

# Two samples that are alike and far from all others hide each other: each is near the other, and the component of both
# is in the plane of the rest. Each of two such samples is judged without the other as well. They are two of which the
# plane of all others leaves remainders that point in one direction: noise leaves remainders at right angles, and what
# many samples share is in the plane, however far the two differ in it. Among more samples than these, two seldom have a
# component of their own, and none are looked for.
most_with_twins <- 1000L
least_alike <- 0.65

# The number of each sample's twin, NA where it has none. Each sample is tried with the one that draws the plane most
# towards it, by the leverage of the leading components; 400 genes say how alike two remainders are.
sample_twins <- function(fit, x) {
  n <- nrow(x)
  twin <- rep(NA_integer_, n)
  if (n > most_with_twins || n < 5L) return(twin)
  scores <- fit$x[, seq_len(min(fit$leading, ncol(fit$x))), drop = FALSE]
  leverage <- tcrossprod(scores / rep(pmax(sqrt(colSums(scores^2)), 1e-300), each = n))
  diag(leverage) <- -Inf
  near <- max.col(leverage, "first")
  pairs <- unique(cbind(pmin(seq_len(n), near), pmax(seq_len(n), near)))
  some <- unique(round(seq(1, ncol(x), length.out = min(ncol(x), 400))))
  alike <- apply(pairs, 1L, function(two) {
    rest <- remainders(fit, x, two, some) / rep(sd_without(fit, x, two, some), each = 2L)
    sum(rest[1L, ] * rest[2L, ]) / max(sqrt(prod(rowSums(rest^2))), 1e-300)
  })
  for (j in order(-alike)[seq_len(sum(alike >= least_alike))]) {
    two <- pairs[j, ]
    if (all(is.na(twin[two]))) twin[two] <- rev(two)
  }
  twin
}

# The logarithm of the density of a normal kernel at those samples that have a twin, without both.
density_without_twin <- function(scores, twin, width) {
  some <- which(!is.na(twin))
  vapply(some, function(i) {
    apart <- colSums((t(scores[-c(i, twin[i]), , drop = FALSE]) - scores[i, ])^2)
    height <- -apart / (2 * width^2)
    max(height) + log(mean(exp(height - max(height))))
  }, 0) - ncol(scores) * log(width * sqrt(2 * pi))
}

# Distances of samples from the plane of the `leading` components of the others, per gene: roots of mean squares of what
# the plane leaves. What is left of the squared length of a sample needs no matrix of residuals.
distance_from_others <- function(fit, x, threads = NULL) {
  n <- nrow(x)
  if (!is.double(x)) storage.mode(x) <- "double"
  all <- row_squares(x, center_of(fit, ncol(x)), scale_of(fit, ncol(x)), threads)
  squares <- colSums(fit$x^2)
  along <- vapply(seq_len(n), function(i) sum(scores_along_others(fit, i, squares)^2), 0)
  sqrt(pmax(0, (1 + 1 / (n - 1))^2 * all - along) / ncol(x))
}

# The part of the scores of samples `who` that lies in the plane of the others. Without the rows z of their scores,
# whose sum is s, and centred anew, the cross products of the scores of the other m samples are diag(d^2) - z'z -
# s's / m, and the samples lie z + s / m from their mean; the plane is sought among the components that `fit` has, of
# which there are a few to spare.
scores_along_others <- function(fit, who, squares = colSums(fit$x^2)) {
  z <- fit$x[who, , drop = FALSE]
  left <- nrow(fit$x) - length(who)
  sum_of <- colSums(z)
  others <- diag(squares, length(squares)) - crossprod(z) - tcrossprod(sum_of) / left
  plane <- eigen(others, symmetric = TRUE)$vectors[, seq_len(min(fit$leading, length(squares))), drop = FALSE]
  (z + rep(sum_of / left, each = nrow(z))) %*% tcrossprod(plane)
}

# What the plane of the others leaves of two samples, in the genes `some`.
remainders <- function(fit, x, two, some = seq_len(ncol(x))) {
  z <- samples_scaled(fit, x, two, some)
  z + rep(colSums(z) / (nrow(x) - 2), each = 2L) -
    tcrossprod(scores_along_others(fit, two), fit$rotation[some, , drop = FALSE])
}

samples_scaled <- function(fit, x, who, some = seq_len(ncol(x))) {
  center <- center_of(fit, ncol(x))[some]
  (x[who, some, drop = FALSE] - rep(center, each = length(who))) /
    rep(scale_of(fit, ncol(x))[some], each = length(who))
}

# The standard deviations of scaled genes without one or two samples: where these lie far out, those of all are theirs.
sd_without <- function(fit, x, who, some = seq_len(ncol(x))) {
  if (isFALSE(fit$scale)) return(rep(1, length(some)))
  left <- nrow(x) - length(who)
  z <- samples_scaled(fit, x, who, some)
  sqrt(pmax(1e-3, (nrow(x) - 1 - colSums(z^2) - colSums(z)^2 / left) / (left - 1)))
}

# The distances of samples that have a twin from the plane of all others; genes are scaled without the twin.
distance_without_twin <- function(fit, x, twin) {
  vapply(which(!is.na(twin)), function(i) {
    sqrt(mean((remainders(fit, x, c(i, twin[i]))[1L, ] / sd_without(fit, x, twin[i]))^2))
  }, 0)
}

# Two are what leaving a sample and its twin out can take away.
spare_components <- 4L

with_spare_components <- function(fit, x, threads = NULL) {
  fit$leading <- fit$leading %||% min(2L, ncol(fit$x))
  room <- min(nrow(x) - 1L, ncol(x), fit$leading + spare_components)
  if (ncol(fit$x) >= room) return(fit)
  more <- pca(x, room, center = fit$center, scale = fit$scale, seed = 1,
              run = weft_run(threads = threads, progress = FALSE))
  more$leading <- fit$leading
  more
}

# p-values of logarithms of distances whose distribution is that of log(sqrt(5 / X)), X being chi-squared with five
# degrees of freedom, moved and stretched. Both come from a line through the quantile plot between `line_range`: the
# greatest fifth, where samples that stand apart would be, has no say. For samples drawn from that distribution itself,
# the line has other places and slopes; the probability of exceeding a distance is the mean over these. The sample that
# is asked about lies above those that the line is of, whose distribution is that of the lowest of the n - 1 others. The
# line is of the `usual` distances, which no sample's twin makes longer.
spread_p <- function(s, usual = s) {
  n <- length(s)
  if (n < 10L) return(rank(-s, ties.method = "max") / n)
  line <- quantile_line(n)
  fitted <- line$fit(sort(usual))
  if (!(fitted$slope > 1e-9)) return(rep(1, n)) # as many as that are equal but for rounding
  times <- as.integer(ceiling(1e4 / n))
  chi_squared <- 2 * draws("gamma", (n - 1L) * times, a = law_df / 2, b = 1, key = 1, threads = 1)
  drawn <- matrix(law_log(chi_squared), n - 1L)
  null <- line$fit(apply(drawn, 2L, sort))
  z <- (s - fitted$place) / fitted$slope
  vapply(z, function(one) mean(stats::pchisq(law_df * exp(-2 * (null$place + null$slope * one)), law_df)), 0)
}

law_df <- 5
law_log <- function(chi_squared) 0.5 * log(law_df / chi_squared)
line_range <- c(0.05, 0.8)

# The least-squares line of sorted values, each column by itself, on the quantiles of the distribution.
quantile_line <- function(n) {
  used <- seq(floor(line_range[1L] * n) + 1, ceiling(line_range[2L] * n))
  law <- law_log(stats::qchisq((used - 0.5) / n, law_df, lower.tail = FALSE))
  weight <- (law - mean(law)) / sum((law - mean(law))^2)
  list(fit = function(sorted) {
    sorted <- as.matrix(sorted)[used, , drop = FALSE]
    slope <- colSums(sorted * weight)
    list(slope = slope, place = colMeans(sorted) - slope * mean(law))
  })
}

#' @rdname gene_outliers
#' @param n the number of samples to show.
#' @param ... ignored.
#' @export
print.weft_outliers <- function(x, n = 6L, ...) {
  whole <- c("sample", "log_density", "distance", "score", "p_value", "q_value", "outlier")
  if (is.null(attr(x, "components")) || !all(whole %in% names(x))) return(print_as_frame(x, n))
  n <- check_number(n, "n", min = 0, whole = TRUE)
  x <- checked_step(x, "outliers", "x", "gene_outliers()")
  found <- sum(x$outlier)
  cat_wrapped(sprintf("%s: %d stand%s apart among %d components (false discovery rate %g)",
                      counted_of(nrow(x), attr(x, "samples"), "sample"), found, if (found == 1L) "s" else "",
                      attr(x, "components"), attr(x, "fdr")))
  print_rows(utils::head(as.data.frame(x), n))
  invisible(x)
}

#' @rdname gene_outliers
#' @export
as.data.frame.weft_outliers <- function(x, ...) {
  check_frame(x, "x")
  list2DF(unclass(x)[names(x)])
}
