# gene_ranking(): a linear model per gene, with variances moderated over all genes. The fits are native (src/ranking/).
# ranking-design.R makes the columns of the model, ranking-moderate.R has the moderation, ranking-data.R the data.

#' Genes that differ between classes
#'
#' `gene_ranking()` finds the genes that differ between classes, or that change with another variable. The shortest call
#' is `gene_ranking(x, class)`, with samples in the rows of `x`; it returns a table with one row per gene, smallest
#' p-value first.
#'
#' The function fits a linear model to every gene and tests the class by moderated t or F statistics. Batches and
#' covariates are part of the model. A second test looks for differences in spread or shape, which a linear model cannot
#' detect.
#'
#' @section The model: Without a formula, the model has the class and the batch and covariates that were given to
#'   [gene_quality()]. It is fitted to values from which no batch or covariate was removed. A formula states the model
#'   explicitly: `gene_ranking(x, ~ batch + class)` tests the last term, and `term = "batch"` tests another one. Text,
#'   logical values and ordered factors are categories. Pairs or blocks are further variables of the formula:
#'   `~ patient + treatment`. If a variable is a linear combination of others, an
#'   error message names it.
#'
#'   Two levels are compared by t, and the fold change is the second level minus the first. More levels are compared by
#'   F; the fold change then belongs to the pair that differs most clearly, which `contrast` names. `contrasts` tests
#'   only the differences that you name: `"C - A"`, or several of them together, or a matrix with one row per level. If
#'   the outcome is a number, its slope is tested. Each class needs two samples; one is enough if another class has
#'   more.
#'
#' @section Variances: With few samples, the variance of a single gene is uncertain. It is therefore combined with a
#'   prior variance that is estimated from all genes (Smyth 2004). The prior variance is a spline in the mean of the
#'   gene if this spline explains at least half of the variation between the variances and spans at least a factor of 4.
#'   Genes with an unusually large variance keep their own (Phipson et al. 2016). Missing values are left out of the fit
#'   of their gene.
#'
#'   Samples get weights by class under two conditions: the variances of the classes differ clearly over all genes (p at
#'   most .001 between samples), and a common variance would make the variance of the fold change wrong by a quarter. If
#'   two classes differ in size, and the class that varies more depends strongly on the gene, each class has a moderated
#'   variance of its own. Counts are weighted by precision only.
#'
#' @section Counts: Raw counts are scaled by the trimmed mean of M-values (Robinson and Oshlack 2010) and become log2
#'   counts per million. Each value is weighted by its precision, which follows from the trend of the variance over the
#'   fitted count (Law et al. 2014).
#'
#' @section Cells of few subjects: Cells of one subject resemble each other, and a test that treats them as independent
#'   finds differences where there are none. With `subject`, the counts of each subject (and class, and other variables
#'   of the model) are summed, and the sums are tested. Subjects that have samples in several classes become blocks.
#'
#' @section Spread or shape: The residuals of the model are put into three bins of equal size within each batch.
#'   `shape_p` compares the information that the bins have about the class with all permutations of the class within
#'   batches. It has its own false discovery rate, `shape_q`. The test needs at least 8 samples in each class, and genes
#'   without missing values and without many equal values.
#'
#' @param x an object returned by [gene_quality()], or data for it. See there for `x` and `class`.
#' @param class if `x` is data: one category per sample, or one number per sample (with fractions or more than 10
#'   different values); or a formula.
#' @param data a data frame with the variables of the formula, one row per sample. The columns of `colData(x)`, and the
#'   class, batch and covariates that [gene_quality()] returned, need not be given again.
#' @param term the term of the formula that is tested; by default the last one.
#' @param contrasts differences of levels to test, such as `"C - A"`, or a matrix with one row per level and one column
#'   per contrast.
#' @param subject the subject of each sample or cell, over which counts are summed: one value per sample, or the name of
#'   a variable of `data` or `colData(x)`.
#' @param control a list of rare settings, each of which is optional: `trend` (`"auto"`, `TRUE` or `FALSE`), `robust`
#'   (`TRUE` or `FALSE`), `weights` (`"auto"`, `"none"` or `"group"`; for counts, `"auto"` weights by precision),
#'   `factors` (scaling factors of counts, one per sample, in place of the computed ones), `shape` (`FALSE` leaves this
#'   test out), and, for genotypes and other levels, `permutations` (see [mi_rank()]).
#' @param seed a whole number for the permutations of levels; by default, it is drawn from R's generator.
#' @param run see [weft_run()].
#' @param ... not used; unknown arguments cause an error.
#' @return For genotypes and other levels, the same as [mi_rank()]. Otherwise a data frame of class `weft_ranking`, one
#'   row per gene, smallest p-value first:
#'   * `gene`, `log2_fold_change` with its 95 % interval from `lower` to `upper` (in the units of the values; if the
#'     outcome is a number, per unit of it), `contrast` if there are several, `mean`;
#'   * `t`, or `f` if more than one coefficient is tested, `p_value`, `log10_p` (which does not underflow) and `q_value`
#'     (Benjamini and Hochberg);
#'   * `bits`, the information that three bins of the gene have about the class, and `auc`, the probability that a
#'     sample of the second class has the greater value, both adjusted for batches and covariates;
#'   * `shape_p` and `shape_q`, see above.
#'
#'   The attribute `model` is a list: `formula`, `term`, `levels`, `samples` of each level, `df_residual`, `d0` and
#'   `s02` (degrees of freedom and value of the prior variance, which all genes share), `trend`, `robust`, `weights`
#'   (`"none"`, `"precision"` or `"group"`), `by_class` (whether each class has a variance of its own), `n`, and
#'   `notes`, sentences that help to interpret this test.
#' @references Smyth (2004), \doi{10.2202/1544-6115.1027}. Robinson and Oshlack (2010),
#'   \doi{10.1186/gb-2010-11-3-r25}. Law, Chen, Shi and Smyth (2014), \doi{10.1186/gb-2014-15-2-r29}. Phipson, Lee,
#'   Majewski, Alexander and Smyth (2016), \doi{10.1214/16-AOAS920}.
#' @seealso [gene_quality()], [gene_network()], [mi_rank()]
#' @export
#' @examples
#' e <- weft_example("expression", n = 60, p = 40)
#' q <- gene_quality(e$x, e$class, e$batch)
#' gene_ranking(q)
#'
#' # the same by a formula, and another outcome
#' samples <- data.frame(batch = e$batch, class = e$class, age = rnorm(60, 50, 10))
#' head(gene_ranking(e$x, ~ batch + class, data = samples), 3)
#' head(gene_ranking(e$x, ~ batch + class + age, data = samples), 3)
gene_ranking <- function(x, class = NULL, data = NULL, term = NULL, contrasts = NULL, subject = NULL, control = list(),
                         seed = NULL, run = NULL, ...) {
  run <- as_run(run)
  check_dots(...)
  need_args("x")
  started <- proc.time()[[3L]]
  control <- ranking_control(control)
  input <- ranking_input(x, class, data, term, subject)
  q <- input$q
  if (is.null(input$formula)) {
    return(mi_rank(q$x, q$class, permutations = control$permutations, seed = seed, run = run))
  }
  chosen <- cpu_only(run$backend, "Linear models run")
  if (!is.null(seed)) check_number(seed, "seed", min = 0, max = 2^53, whole = TRUE)
  model <- ranking_model(input$formula, input$frame, input$term, contrasts)
  native <- run_control("cpu", run$threads, run$progress, colnames(q$x), "Ranking genes")
  values <- ranking_values(q, control, native)
  fit <- weighted_fit(values, model, control, native)
  result <- ranking_table(values, model, fit, control, native)
  notes <- c(input$notes, values$notes, fit$notes, model_notes(values, model), shift_note(fit$fit))
  record(result, match.call(), chosen, started, model = model_summary(values, model, fit, control$robust, notes))
}

ranking_control <- function(control) {
  usual <- list(trend = "auto", robust = TRUE, weights = "auto", factors = NULL, shape = TRUE, permutations = 0)
  known <- c("trend", "robust", "weights", "factors", "shape", "permutations")
  named <- is.list(control) && !is.object(control) && (!length(control) || !is.null(names(control)))
  if (!named) abort_input("`control` must be a named list of settings.", x = paste0("It is ", describe(control), "."))
  wrong <- setdiff(names(control), known)
  if (length(wrong)) {
    abort_input("`control` must be a named list of settings.", x = sprintf("There is no %s.", label_some(wrong)),
                i = sprintf("Available: %s.", label_some(known)))
  }
  out <- utils::modifyList(usual, control)
  if (!identical(out$trend, "auto")) out$trend <- check_flag(out$trend, "trend")
  out$robust <- check_flag(out$robust, "robust")
  out$weights <- check_choice(out$weights, c("auto", "none", "group"), "weights")
  out$shape <- check_flag(out$shape, "shape")
  out
}

# ---- fits ----

fit_genes <- function(values, model, native, weight = NULL, line = NULL, described = FALSE) {
  groups <- model$group %||% model$bins
  .Call(C_weft_ranking_fit, values$y,
        list(design = model$design, tested = model$tested, weight = weight, line_x = line$x, line_y = line$y,
             log_size = if (!is.null(line)) values$log_size, contrasts = model$shown,
             groups = if (is.null(groups)) 0 else max(groups) + 1, group = groups, strata = max(model$strata) + 1,
             stratum = model$strata, adjusted = model$adjusted, described = described), native)
}

# The fit that is tested, with its weights: list(fit, weights, prior, trend, by_class, errors, notes). errors: standard
# errors of the fold changes and their degrees of freedom.
weighted_fit <- function(values, model, control, native) {
  if (model$number) model$bins <- outcome_bins(model$outcome)
  weight <- line <- notes <- NULL
  weights <- "none"
  by_class <- FALSE
  if (!is.null(values$log_size)) {
    line <- precision_line(values, fit_genes(values, model, native))
    if (!is.null(line)) weights <- "precision"
  } else if (!is.null(model$group) && control$weights != "none") {
    spread <- group_spread(fit_genes(values, model, native), model)
    by_class <- control$weights == "auto" && isTRUE(spread$by_class)
    if (!by_class && (spread$clear || control$weights == "group" && spread$known)) {
      weight <- spread$weight
      again <- group_spread(fit_genes(values, model, native, weight), model, weight)
      if (again$known) weight <- weight * again$weight
      weight <- weight / mean(weight)
      weights <- "group"
      notes <- spread$said
    }
    notes <- c(notes, spread$differing)
  }
  fit <- fit_genes(values, model, native, weight, line, described = TRUE)
  trend <- control$trend
  if (identical(trend, "auto")) trend <- is.null(values$log_size) && has_trend(fit)
  prior <- moderate(fit$variance, fit$df, if (trend) fit$mean, control$robust)
  errors <- list(error = fit$unscaled * sqrt(prior$post), df = prior$df)
  if (by_class) errors <- class_errors(fit, model, errors, trend, control$robust)
  list(fit = fit, weights = weights, prior = prior, trend = trend, by_class = by_class, errors = errors, notes = notes)
}

# Three bins of equal size of a number; equal ones share a bin.
outcome_bins <- function(outcome) {
  if (is.null(outcome)) return(NULL)
  cuts <- unique(sort(outcome)[ceiling(length(outcome) * (1:2) / 3)])
  findInterval(outcome, cuts[cuts < max(outcome)], left.open = TRUE)
}

# Whether variances follow the mean: a spline explains half of what sets them apart beyond their own error, so that the
# prior says twice as much, and along it they change by a factor that matters.
has_trend <- function(fit) {
  use <- fit$df > 0 & !is.na(fit$variance)
  if (sum(use) < 100L) return(FALSE)
  apart <- function(prior) if (is.finite(prior$d0) && prior$d0 > 0) trigamma(prior$d0 / 2) else 0
  without <- apart(variance_prior(fit$variance[use], fit$df[use]))
  with <- variance_prior(fit$variance[use], fit$df[use], fit$mean[use])
  range <- stats::quantile(with$s02, c(0.05, 0.95), names = FALSE)
  without > 0 && apart(with) <= 0.5 * without && range[2L] >= trend_factor * range[1L]
}

trend_factor <- 4 # between the 5 % of genes with the smallest and the greatest variance on the line

# The trend of the square root of the residual standard deviation over log2 counts; NULL where too few genes have one.
precision_line <- function(values, fit) {
  x <- fit$mean + mean(values$log_size)
  y <- sqrt(sqrt(fit$variance))
  use <- is.finite(y) & values$counted
  if (sum(use) < 3L) return(NULL)
  line <- stats::lowess(x[use], y[use], f = 0.5)
  first <- !duplicated(line$x)
  level <- as.vector(rowsum(line$y, cumsum(first))) / tabulate(cumsum(first))
  level <- pmax(level, 1e-3 * max(level))
  if (max(level) > 0) thin_line(line$x[first], level)
}

# Without the knots that lie on the line between their neighbours.
thin_line <- function(x, y) {
  if (length(x) < 3L) return(list(x = x, y = y))
  slope <- diff(y) / diff(x)
  bend <- c(TRUE, abs(diff(slope)) > 1e-9 * max(abs(slope)), TRUE)
  list(x = x[bend], y = y[bend])
}

# ---- variances of classes ----

clear_p <- 0.001
distorted <- 1.25 # variance of a difference over what one variance for all classes makes it, or the inverse
far_distorted <- 1.5 # the same for genes whose ratio is a standard deviation from the mean: classes need own variances

# How variances of classes compare over all genes. Genes depend on each other; whether the ratio is more than chance is
# therefore tested between samples, each with the mean of its squared studentised residuals over the genes. Weights
# by class pay where one variance for all classes would distort the test: towards false findings in any case, towards
# none only where the ratio is common to the genes.
# Where the ratio depends on the gene, two classes of different size get variances of their own.
# A list: known (at least two classes have a variance), clear, weight (one per sample), by_class, said and differing
# (sentences).
group_spread <- function(fit, model, weight = NULL) {
  spare <- spare_of(model$design, weight)
  freedom <- as.vector(rowsum(spare, model$group))
  usable <- which(freedom > 0.9)
  unknown <- colSums(is.na(fit$group_variance[usable, , drop = FALSE])) > 0
  genes <- which(is.finite(fit$variance) & fit$variance > 0 & !unknown)
  if (length(usable) < 2L || length(genes) < 10L) return(list(known = FALSE, clear = FALSE))
  logs <- vapply(usable, function(g) log_variances(fit$group_variance[g, genes]) - log_chisq_mean(freedom[g]),
                 numeric(length(genes)))
  level <- colMeans(logs)
  own <- rep(mean(level), length(freedom))
  own[usable] <- level
  measured <- model$group %in% (usable - 1L) & spare > 1e-6 & fit$sample_noise > 0
  p <- noise_p(log(fit$sample_noise[measured]), factor(model$group[measured]))
  wrong <- distortion(model, spare, exp(own)[model$group + 1L])
  apart <- ratio_spread(logs, freedom[usable])
  by_gene <- exp(max(abs(log(distortion(model, spare, exp(apart * (model$group == 0L)))))))
  high <- usable[which.max(level)]
  low <- usable[which.min(level)]
  ratio <- format(signif(exp(max(level) - min(level)), 2))
  list(known = TRUE, weight = exp(mean(level) - own)[model$group + 1L],
       clear = p <= clear_p && (wrong[2L] >= distorted || wrong[1L] <= 1 / distorted && by_gene < distorted),
       by_class = by_gene >= far_distorted,
       said = sprintf(paste("Over all genes, the variance of %s is %s times the variance of %s: samples are weighted",
                            "by class."), model$levels[high], ratio, model$levels[low]),
       differing = if (by_gene >= far_distorted) {
         "Which class varies more depends on the gene, so the test uses one variance per class."
       } else if (by_gene >= distorted) {
         paste("Some genes vary more in one class and some in another, and the classes differ in size, so the p-values",
               "of individual genes are approximate.")
       })
}

# What each sample counts in the contrasts by least squares: a row per contrast.
contrast_rows <- function(model) {
  own <- nrow(model$shown) # the last coefficients
  rows <- qr.coef(qr(model$design), diag(nrow(model$design)))
  crossprod(model$shown, rows[ncol(model$design) - own + seq_len(own), , drop = FALSE])
}

# 1 - leverage of each sample.
spare_of <- function(design, weight = NULL) {
  pmax(1 - rowSums(qr.Q(qr(design * sqrt(weight %||% rep(1, nrow(design)))))^2), 0)
}

# The variance of the contrasts by least squares when samples have these variances, over what the residual variance
# makes it: the least and the greatest.
distortion <- function(model, spare, variance) {
  rows <- contrast_rows(model)
  range((rows^2 %*% variance) / rowSums(rows^2) / (sum(spare * variance) / sum(spare)))
}

# Welch's test of equal means; 1 where a class has fewer than two samples.
noise_p <- function(noise, group) {
  if (nlevels(group) < 2L || any(table(group) < 2L)) return(1)
  spread <- tapply(noise, group, stats::var)
  if (any(spread <= 0)) return(1)
  stats::oneway.test(noise ~ group)$p.value
}

# The standard deviation over genes of the logarithm of the ratio of two classes' variances, less its error.
ratio_spread <- function(logs, freedom) {
  if (ncol(logs) != 2L || min(freedom) < 3) return(0)
  sqrt(max(0, stats::var(logs[, 1L] - logs[, 2L]) - sum(trigamma(freedom / 2))))
}

# Standard errors where each of two classes has its own variance, moderated over the genes, with Satterthwaite's degrees
# of freedom; genes with gaps keep theirs.
class_errors <- function(fit, model, errors, trend, robust) {
  rows <- contrast_rows(model)
  share <- as.vector(rowsum(as.vector(rows^2), model$group))
  freedom <- as.vector(rowsum(spare_of(model$design), model$group))
  known <- which(colSums(is.na(fit$group_variance)) == 0)
  parts <- lapply(seq_along(share), function(k) {
    own <- moderate(fit$group_variance[k, known], rep(freedom[k], length(known)), if (trend) fit$mean[known], robust)
    list(part = share[k] * own$post, df = own$df)
  })
  total <- parts[[1L]]$part + parts[[2L]]$part
  errors$error[known] <- sqrt(total)
  errors$df[known] <- total^2 / (parts[[1L]]$part^2 / parts[[1L]]$df + parts[[2L]]$part^2 / parts[[2L]]$df)
  errors
}

# ---- the table ----

ranking_table <- function(values, model, fit, control, native) {
  f <- fit$fit
  prior <- fit$prior
  one <- model$tested == 1L
  error <- fit$errors$error
  df <- fit$errors$df
  statistic <- if (one) f$estimate / error else f$numerator / prior$post
  statistic[which(error == 0)] <- NA
  statistic[which(error == 0 & f$numerator == 0)] <- 0
  log_p <- if (one) pmin(0, log(2) + stats::pt(-abs(statistic), df, log.p = TRUE))
           else stats::pf(statistic, model$tested, df, lower.tail = FALSE, log.p = TRUE)
  log_p[is.nan(log_p)] <- NA
  wide <- stats::qt(0.975, pmax(df, 1e-300)) * error
  p <- exp(log_p)
  unit <- values$unit
  per <- if (is.null(model$levels)) unit / model$per[f$contrast + 1L] else unit
  columns <- list(gene = colnames(values$y), log2_fold_change = f$estimate * per, lower = (f$estimate - wide) * per,
                  upper = (f$estimate + wide) * per)
  if (length(model$labels) > 1L) columns$contrast <- ifelse(is.na(f$estimate), NA, model$labels[f$contrast + 1L])
  columns$mean <- f$mean * unit
  columns[[if (one) "t" else "f"]] <- statistic
  shape <- shape_p(values, model, f, control, native)
  columns <- c(columns, list(p_value = p, log10_p = log_p / log(10), q_value = stats::p.adjust(p, "BH"),
                             bits = f$bits, auc = if (model$number) rep(NA_real_, length(p)) else f$auc,
                             shape_p = shape, shape_q = stats::p.adjust(shape, "BH")))
  order <- order(log_p, -abs(statistic))
  new_result(as_frame(lapply(columns, function(column) unname(column)[order])), class = c("weft_ranking", "data.frame"))
}

fewest_for_shape <- 8L # samples in each class
commonest_for_shape <- 0.1 # of the samples: genes in which one value is more frequent are not tested
counts_for_shape <- 10 # mean count

# What residuals say about the class beyond chance; NA where it is not tested.
shape_p <- function(values, model, fit, control, native) {
  none <- rep(NA_real_, ncol(values$y))
  n <- nrow(values$y)
  if (!control$shape || is.null(model$group)) return(none)
  strata <- max(model$strata) + 1L
  sizes <- table(factor(model$group, seq_along(model$levels) - 1L), model$strata)
  if (min(rowSums(sizes)) < fewest_for_shape || n / strata < fewest_for_shape || n - ncol(model$design) < 0.7 * n) {
    return(none)
  }
  use <- which(!is.na(fit$shape) & fit$ties <= max(1, commonest_for_shape * n) & fit$variance > 0 & values$plenty)
  if (!length(use)) return(none)
  law <- .Call(C_weft_ranking_shape,
               list(sizes = matrix(as.integer(sizes), nrow(sizes)), draws = 1e5 - 1, key = as_halves(1)), native)
  order <- order(law$statistic)
  probability <- law$probability %||% rep(1e-5, 1e5 - 1)
  above <- rev(cumsum(rev(probability[order])))
  least <- if (is.null(law$probability)) 1e-5 else 0
  at <- findInterval(fit$shape[use] - 1e-9, law$statistic[order], left.open = TRUE) + 1L
  none[use] <- pmin(1, least + c(above, 0)[at])
  none
}

# ---- what the result says about itself ----

model_summary <- function(values, model, fit, robust, notes) {
  prior <- fit$prior
  samples <- if (!is.null(model$levels)) stats::setNames(tabulate(model$group + 1L, length(model$levels)), model$levels)
  list(formula = formula_text(model$formula), term = model$term, levels = model$levels, samples = samples,
       df_residual = nrow(model$design) - ncol(model$design), d0 = max(prior$d0),
       s02 = stats::median(prior$s02, na.rm = TRUE) * values$unit^2, trend = fit$trend, robust = robust,
       odd = prior$odd, weights = fit$weights, by_class = fit$by_class, n = nrow(model$design),
       genes = ncol(values$y), notes = as.character(notes))
}

model_notes <- function(values, model) {
  notes <- NULL
  samples <- tabulate(model$group + 1L, length(model$levels))
  single <- model$levels[samples == 1L]
  if (length(single)) notes <- sprintf("%s has only one sample, so its variance is estimated from the other classes.",
                                       label_some(single))
  if (!is.null(values$log_size) && length(samples) == 2L && min(samples) >= 2L) {
    depth <- split(values$log_size, model$group)
    if (all(vapply(depth, stats::var, 0) > 0)) {
      p <- stats::t.test(depth[[1L]], depth[[2L]])$p.value
      apart <- 2^abs(mean(depth[[1L]]) - mean(depth[[2L]]))
      if (p <= 0.01 && apart >= 1.5) {
        notes <- c(notes, sprintf(paste("Scaled total counts differ between the classes by a factor of %s;",
                                        "this may cause differences in genes with few counts."),
                                  format(signif(apart, 2))))
      }
    }
  }
  notes
}

# Samples whose values are shifted as a whole make genes look alike, so that many of them differ between classes by
# chance at once.
shift_note <- function(fit) {
  genes <- sum(fit$variance > 0 & colSums(is.na(fit$group_variance)) < nrow(fit$group_variance), na.rm = TRUE)
  if (genes < 10L || mean((fit$sample_shift / genes)^2) < shifted^2) return(NULL)
  paste("Whole samples differ by a shift of at least half a gene's standard deviation. Many",
        "genes may differ only for this reason. Normalise the samples first.")
}

shifted <- 0.5 # of a gene's standard deviation, over samples; normalised data have .01 to .35
