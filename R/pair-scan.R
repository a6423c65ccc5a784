# pair_scan(): pairs of variants in linear and logistic models with covariates. Both stages are native (src/mi/scan/);
# what goes into them is made in pair-scan-model.R, the result's methods are in pair-scan-result.R.

#' Pairs of variants that act together, with covariates
#'
#' `pair_scan()` tests pairs of genetic variants for interaction effects on a trait or a disease status, adjusted for
#' covariates and for the main effects of both variants. The shortest call is `pair_scan(x, outcome)`, with allele
#' counts in `x`; it returns a table with one row per fitted pair. A screen first scores all pairs, on the CPU or on a
#' device. The best pairs are then fitted one by one on the CPU.
#'
#' @section The model: The model is linear for a quantitative trait, `lm(outcome ~ covariates + a + b + a:b)`, and
#'   logistic for two classes, `glm()` with the same formula and `family = binomial()`. Here, a and b are allele counts.
#'   `df = 4` treats the genotypes as categories, `outcome ~ covariates + A * B`, and jointly tests the interaction
#'   terms (up to four), with an F test or, for classes, a likelihood ratio test.
#'
#' @section The screen: The screen computes a score test of `a:b` for every pair, which has a chi-squared distribution
#'   with 1 degree of freedom. With `df = 4`, it jointly tests the terms of `A:B` (up to four), adjusted for both
#'   genotypes as categories. Pairs are selected by this score. `max_p` treats it as chi-squared with `df` degrees of
#'   freedom, even if some combinations of genotypes do not occur and there are fewer. Main effects and covariates are
#'   regressed out of both the product of the genotypes and the outcome, for each pair from the rows in which both
#'   genotypes are known. For a trait this is exact: the score is \eqn{m R^2}, where \eqn{R^2} is the proportion of the
#'   residual variance of the smaller model that the interaction explains, and m is the number of residual degrees of
#'   freedom of that model. For classes, weights and residuals come from the logistic model with the covariates alone,
#'   and main effects are removed with one step of weighted least squares. If variants have very strong main effects,
#'   this is an approximation, which only affects the choice of the pairs to fit.
#'
#' @section On a device: A device screens pairs of variants, using 8-bit integer products that are summed exactly. This
#'   gives an interval for the score of each pair. The CPU computes the scores of all pairs that may be among the best
#'   again, so the result is the same as on the CPU alone. On a device, `top` can be at most 1,048,576, and there can be
#'   up to 8.5 million rows. Variants with more than 10 % missing genotypes are screened on the CPU. If the covariates
#'   and the constant have more than 24 columns, so are all variants with missing genotypes.
#'
#' @section The fits: The best `top` pairs of the screen are fitted as by `lm()` and `glm()`, from the rows in which
#'   both genotypes are known. `p_value` comes from the t, z, F or chi-squared statistic of the fit. `p_bonferroni`
#'   multiplies it by the number of pairs with a score, not by the number of fitted pairs. The z test of logistic
#'   regression is conservative if few people carry both variants; `min_maf` excludes rare variants.
#'
#' @section Ancestry: Variants whose frequencies differ between ancestries appear to interact if the outcome also
#'   differs between ancestries. Using the first principal components of many variants as covariates prevents this.
#'   These covariates are additive: if the effect of a variant depends on ancestry, its pairs with variants of
#'   ancestry-dependent frequency may still be significant, even if these have no effect.
#'
#' @section Permutations: Residuals of the model with the covariates alone are permuted among the people, and all pairs
#'   are scored again. `p_fwer` is the proportion of permutations, including the original data, in which the best pair
#'   of the screen scores at least as high as this pair. It is valid for any linkage disequilibrium between variants.
#'
#' @section Missing values: Rows with a missing outcome or covariate are removed. Rows with a missing genotype are
#'   removed for each pair separately, in the screen and in the fits. Nothing is imputed.
#'
#' @param x allele counts (0, 1, 2 or NA) with people in rows: a matrix, a data frame or a [plink_file()].
#' @param outcome one value per row of `x`. Numbers are treated as a quantitative trait, unless there are only two
#'   distinct values. A factor, character or logical vector gives two classes, and the model is for the second class.
#' @param covariates numeric or categorical variables, such as age, sex and the scores `x` from [pca()]: a vector,
#'   matrix or data frame with one row per row of `x`, in the same order (names are not compared). Columns that are
#'   linear combinations of others have no effect.
#' @param top the number of pairs from the screen to fit.
#' @param features names or numbers of variants; only pairs among these are screened.
#' @param pairs a data frame of pairs to fit without a screen, with variant names in the columns `feature1` and
#'   `feature2`, for example from [mi_pairs()]. `p_bonferroni` then counts the pairs that [mi_pairs()] searched, or the
#'   pairs in the table.
#' @param df 1 for the product of allele counts, 4 for all combinations of genotypes.
#' @param permutations the number of permutations of the residuals; 0 for no permutation test.
#' @param control a list of settings that are rarely needed:
#'   * `with`: names or numbers of variants; only pairs of one of `features` (by default all) with one of these are
#'     screened.
#'   * `min_maf`, `max_missing`: exclude variants with a smaller minor allele frequency, or a larger proportion of
#'     missing genotypes, among the rows that are used.
#'   * `min_distance`, `positions`: exclude pairs of variants that are close to each other, as in [mi_pairs()].
#'   * `max_p`: fit only pairs whose p-value in the screen is at most this value.
#'   * `model`: `"linear"` or `"logistic"`; the default, `"auto"`, chooses by the type of `outcome`.
#'   * `scores`: `"normal"` replaces a trait by normal scores of its ranks, which prevents interactions that are due to
#'     a few extreme values; `"raw"` uses the original values.
#' @param seed a whole number that seeds the permutations; by default, it is drawn from R's generator.
#' @param run see [weft_run()].
#' @param ... not used; for an unknown argument, the error suggests the intended one.
#' @return A data frame of class `weft_pair_scan`, one row per fitted pair, in increasing order of `p_value` (with
#'   `pairs`, in their order):
#'   * `feature1` and `feature2`, `n` rows, and the `score` of the screen;
#'   * `estimate` and `std_error` of the product of allele counts (log odds ratio for classes), with `df = 1`;
#'   * `statistic`: t or z, or F or chi-squared of `df` terms; `p_value`, `p_bonferroni`, and `p_fwer` with
#'     permutations;
#'   * `reason`: why a pair has no test, otherwise NA: `"few rows"`, there are not more rows than terms; `"collinear"`,
#'     the interaction is a linear combination of the other terms; `"one class"`; `"separated"`, the likelihood of a
#'     logistic model has no maximum because a combination of terms separates the classes; `"no residuals"`, a linear
#'     model fits exactly.
#'
#'   The attributes `searched` and `tested` are the numbers of requested pairs and of pairs with a score. The attribute
#'   `left_out` contains the numbers of excluded variants with the reasons, and `model` describes the model.
#' @seealso [mi_pairs()], [mi_trait()], [plink_file()], [pca()]
#' @export
#' @examples
#' set.seed(1)
#' x <- matrix(rbinom(400 * 30, 2, 0.4), 400)
#' age <- rnorm(400, 50, 10)
#' trait <- 0.05 * age + 0.6 * x[, 4] * x[, 9] + rnorm(400)
#' found <- pair_scan(x, trait, covariates = age, top = 5)
#' found
#' pair_scan(x, trait > 3, age, top = 3, permutations = 19, seed = 1)
#' pair_scan(x, trait, age, pairs = found, df = 4)
pair_scan <- function(x, outcome, covariates = NULL, top = 1000, features = NULL, pairs = NULL, df = 1,
                      permutations = 0, control = list(), seed = NULL, run = NULL, ...) {
  run <- as_run(run, dry_run = TRUE)
  control <- scan_settings(control)
  check_dots(..., .control = pair_scan_control, .known = c(mi_names_elsewhere, class = "outcome", trait = "outcome"))
  need_args("x", "outcome")
  started <- proc.time()[[3L]]
  top <- check_number(top, "top", min = 1)
  if (is.finite(top)) top <- check_number(top, "top", min = 1, max = 2^31 - 1, whole = TRUE)
  df <- check_number(df, "df")
  if (!df %in% c(1, 4)) abort_input("`df` must be 1 or 4.", x = sprintf("It is %s.", number_text(df)))
  permutations <- check_number(permutations, "permutations", min = 0, max = 1e7, whole = TRUE)
  if (permutations > 0) key <- mi_key(seed) else if (!is.null(seed)) mi_key(seed)
  variants <- scan_variants(x)
  model <- scan_model(outcome, covariates, x, variants, control)
  native <- run_control("cpu", run$threads, run$progress, variants$names, "Scanning pairs")
  use <- if (is.null(pairs)) scanned_variants(variants, model, features, control, native)
  chosen <- choose_for_scan(run, model, use, top, df, permutations)
  if (run$dry_run) return(dry_plan("pair_scan", chosen))
  if (is.null(pairs)) {
    there <- run_control(chosen$name, run$threads, run$progress, variants$names, "Scanning pairs")
    found <- screen_pairs(variants, model, use, df, top, control, there)
    chance <- if (permutations > 0) permuted_greatest(variants, model, use, df, permutations, key, there)
  } else {
    refuse_screen(features, control, permutations)
    found <- given_pairs(pairs, variants)
    check_genotypes(variant_counts(variants, model$rows, found$columns, native), variants$names[found$columns])
  }
  out <- fitted_pairs(variants, model, found, df, native)
  if (!is.null(pairs)) found$tested <- found$tested %||% sum(!is.na(out$p_value))
  out$p_bonferroni <- pmin(1, out$p_value * found$tested)
  if (is.null(pairs) && permutations > 0) out$p_fwer <- fwer(out$score * (1 - 1e-9), chance) # rounding
  out$reason <- scan_reasons[attr(out, "reason")]
  if (is.null(pairs)) out <- out[order(out$p_value, -out$score), ]
  row.names(out) <- NULL
  record(new_result(as_frame(as.list(out)), class = c("weft_pair_scan", "data.frame")), match.call(), chosen, started,
         searched = found$searched, tested = found$tested, left_out = found$left_out, permutations = permutations,
         model = list(kind = model$kind, levels = model$levels, rows = length(model$rows),
                      covariates = model$covariates, df = df, scores = control$scores))
}

pair_scan_control <- function(with = NULL, min_maf = 0, max_missing = 1, min_distance = 0, positions = NULL, max_p = 1,
                              model = c("auto", "linear", "logistic"), scores = c("raw", "normal")) {
  as.list(environment())
}

scan_settings <- function(control) {
  control <- check_control(control, pair_scan_control)
  control$min_maf <- check_number(control$min_maf, "min_maf", min = 0, max = 0.5)
  control$max_missing <- check_number(control$max_missing, "max_missing", min = 0, max = 1)
  control$max_p <- check_number(control$max_p, "max_p", min = 0, max = 1)
  control$model <- check_choice(control$model, c("auto", "linear", "logistic"), "model")
  control$scores <- check_choice(control$scores, c("raw", "normal"), "scores")
  control
}

# In the order of enum weft_refit_reason (src/mi/scan/scan.h), from 1.
scan_reasons <- c(NA, "few rows", "collinear", "one class", "separated", "no residuals")

# ---- the screen ----

# The back end of a screen; fits run on the CPU.
choose_for_scan <- function(run, model, use, top, df, permutations) {
  if (is.null(use)) return(cpu_only(run$backend, "Given pairs are fitted"))
  plan <- function() {
    mi_plan("scan", pairs = use$searched, whole_pairs = use$searched * use$whole^2,
            screened_pairs = use$searched * use$screened^2, n = length(model$rows),
            p = length(use$columns), columns = ncol(model$basis), terms = df, permutations = permutations,
            top = min(top, use$searched), threads = run$threads)
  }
  stays <- plan()$stays
  if (is.null(stays)) expect_libraries(run)
  chosen <- if (is.null(stays)) choose_backend(run$backend, plan()) else cpu_only(run$backend, stays, plan())
  report_backend(chosen, run)
  chosen
}

# Variants with a greater proportion of missing genotypes are not screened on a device: the bounds of their scores
# are wide.
screened_missing <- 0.1

# What native code reads of a screen.
screen_list <- function(model, use, outcomes, df, top, min_score) {
  c(list(basis = model$weighted, root = model$root, outcomes = outcomes, estimated = model$kind == "linear",
         genotypes = df == 4, side = use$side, max_missing = floor(screened_missing * length(model$rows)), top = top,
         min_score = min_score), near_list(use$near))
}

# The pairs to fit: list(columns: 2 × pairs, score, searched, tested, left_out).
screen_pairs <- function(variants, model, use, df, top, control, native) {
  least <- stats::qchisq(control$max_p, df, lower.tail = FALSE)
  found <- .Call(C_weft_mi_scan, variants$data, list(rows = model$rows, columns = use$columns - 1L),
                 screen_list(model, use, matrix(model$residual), df, min(top, use$searched), least), native)
  list(columns = rbind(use$columns[found$first], use$columns[found$second]), score = found$score,
       searched = use$searched, tested = found$tested, left_out = use$left_out)
}

# The greatest score of each permutation. Permuted residuals are made orthogonal to the covariates again.
permuted_greatest <- function(variants, model, use, df, permutations, key, native) {
  n <- length(model$rows)
  at_once <- max(1, min(permutations, 64, floor(2^27 / n)))
  starts <- seq(0, permutations - 1, by = at_once)
  unlist(lapply(starts, function(first) {
    count <- min(at_once, permutations - first)
    outcomes <- vapply(first + seq_len(count), function(stream) {
      moved <- model$residual[order(draws("uniform", n, key = key, stream = stream, threads = 1))]
      moved - as.vector(model$weighted %*% crossprod(model$weighted, moved))
    }, numeric(n))
    .Call(C_weft_mi_scan, variants$data, list(rows = model$rows, columns = use$columns - 1L),
          screen_list(model, use, matrix(outcomes, n), df, 0, Inf), native)$greatest
  }))
}

# ---- given pairs ----

refuse_screen <- function(features, control, permutations) {
  given <- c(if (!is.null(features)) "features", if (permutations > 0) "permutations",
             intersect(attr(control, "given"), setdiff(names(formals(pair_scan_control)), c("model", "scores"))))
  if (length(given)) {
    abort_input("Screening options must not be given with `pairs`, which are fitted without a screen.",
                x = sprintf("Given: %s.", label_some(given)))
  }
}

given_pairs <- function(pairs, variants) {
  fine <- is.data.frame(pairs) && all(c("feature1", "feature2") %in% names(pairs)) &&
    is_text(pairs$feature1) && is_text(pairs$feature2)
  if (!fine) {
    abort_input("`pairs` must be a data frame with names of variants in `feature1` and `feature2`.",
                x = paste0("It is ", describe(pairs), "."))
  }
  check_format(pairs, "pairs")
  columns <- rbind(match(pairs$feature1, variants$names), match(pairs$feature2, variants$names))
  if (anyNA(columns)) {
    lost <- setdiff(c(pairs$feature1, pairs$feature2), variants$names)
    abort_input("The features in `pairs` must occur in `x`.", x = sprintf("There is no %s.", label_some(lost)))
  }
  twice <- intersect(c(pairs$feature1, pairs$feature2), variants$names[duplicated(variants$names)])
  if (length(twice)) {
    abort_input("The features in `pairs` must have unique names in `x`.",
                x = sprintf("Duplicated: %s.", label_some(twice)))
  }
  searched <- attr(pairs, "searched", exact = TRUE)
  tested <- attr(pairs, "tested", exact = TRUE)
  if (any(same <- columns[1L, ] == columns[2L, ])) {
    abort_input("`pairs` must have two different variants in each row.",
                x = sprintf("Row %d contains one variant twice.", which(same)[1L]))
  }
  list(columns = columns, searched = if (is_count(searched)) as.double(searched) else as.double(nrow(pairs)),
       tested = if (is_count(tested)) as.double(tested) else if (is_count(searched)) as.double(searched),
       left_out = integer())
}

# ---- fits ----

# The table of pairs without p-values of the whole scan; attribute `reason`: numbers from 1.
fitted_pairs <- function(variants, model, found, df, native) {
  used <- sort(unique(as.vector(found$columns)))
  at <- matrix(match(found$columns, used) - 1L, 2L)
  linear <- model$kind == "linear"
  fit <- .Call(C_weft_mi_refit, variants$data, list(rows = model$rows, columns = used - 1L),
               list(basis = model$basis, y = if (linear) model$residual else model$y,
                    start = if (!linear) model$predictor, genotypes = df == 4, pairs = at), native)
  tail <- if (df == 1 && linear) 2 * stats::pt(-abs(fit$statistic), pmax(fit$residual, 1))
          else if (df == 1) 2 * stats::pnorm(-abs(fit$statistic))
          else if (linear) stats::pf(fit$statistic, pmax(fit$freedom, 1), pmax(fit$residual, 1), lower.tail = FALSE)
          else stats::pchisq(fit$statistic, pmax(fit$freedom, 1), lower.tail = FALSE)
  out <- list(feature1 = variants$names[found$columns[1L, ]], feature2 = variants$names[found$columns[2L, ]],
              n = fit$rows)
  if (!is.null(found$score)) out$score <- found$score
  if (df == 1) out[c("estimate", "std_error")] <- list(fit$estimate * model$scale, fit$error * model$scale)
  out$statistic <- fit$statistic
  if (df == 4) out$df <- fit$freedom
  out$p_value <- tail
  out[] <- lapply(out, function(v) if (is.double(v)) replace(v, is.nan(v), NA_real_) else v)
  structure(list2DF(out, length(fit$rows)), reason = fit$reason + 1L)
}
