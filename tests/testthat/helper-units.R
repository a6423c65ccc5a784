# Calls whose numbers must not depend on units: by column, where each column may have a unit and an origin of its own,
# or all together, where all columns share one unit. test-units.R makes them once, test-units-long.R often.

# A chain with one skewed column and one of few values; named samples, by which regulation() draws.
unit_data <- function(seed = 1, n = 80, p = 6) {
  withr::local_seed(seed)
  x <- matrix(stats::rnorm(n * p), n, dimnames = list(paste0("s", seq_len(n)), paste0("v", seq_len(p))))
  for (j in seq_len(p)[-1L]) x[, j] <- x[, j] + 0.8 * x[, j - 1L]
  x[, p - 1L] <- exp(x[, p - 1L])
  x[, p] <- round(2 * x[, p])
  x
}

# Other units and origins of the columns of x: powers of ten within 10^-`range` and 10^`range`, times some digits.
in_other_units <- function(x, seed, range = 6, shift = TRUE) {
  withr::local_seed(seed)
  unit <- 10^stats::runif(ncol(x), -range, range)
  origin <- if (shift) stats::rnorm(ncol(x), 0, 10) else double(ncol(x))
  sweep(sweep(x, 2L, origin, `+`), 2L, unit, `*`)
}

# The graph of a chain with one more edge, for parameters.
unit_dag <- function(x) {
  names <- colnames(x)
  dag <- matrix(0, length(names), length(names), dimnames = list(names, names))
  dag[cbind(seq_along(names)[-length(names)], seq_along(names)[-1L])] <- 1
  dag[1L, 3L] <- 1
  dag
}

# In units of the column's spread, which no square may overflow.
in_spreads <- function(error, column) {
  unit <- max(abs(column))
  (error / unit) / stats::sd(column / unit)
}

unit_numbers <- function(frame) unlist(frame[vapply(frame, is.numeric, NA)], use.names = FALSE)

calls_by_column <- list(
  bn_score = function(x) bn_score(x, unit_dag(x), "bge"),
  bn_local_score = function(x) {
    bn_local_score(x, "v3", c("v1", "v5"), "bge", interventions = rep_len(c("v3", NA, "v1"), nrow(x)))
  },
  bn_scores = function(x) as.data.frame(bn_scores(x, 3, "bge", keep = "all"))$score,
  `bn_scores, candidates` = function(x) as.data.frame(bn_scores(x, 2, "bge", candidates = 3))$score,
  bn_exact = function(x) unlist(bn_exact(x, 3, "bge")[c("dag", "score")]),
  `bn_exact, edges` = function(x) c(bn_exact(x, 3, "bge", posterior = "dag")$edges),
  bn_learn = function(x) unlist(bn_learn(x, score = "bge", iterations = 200, seed = 1)[c("dag", "score")]),
  `bn_learn, halves` = function(x) {
    c(bn_learn(x, score = "bge", target = "sum", iterations = 100, resample = 2, seed = 1)$edges)
  },
  bn_search = function(x) unlist(bn_search(x, seed = 1)[c("dag", "score")]),
  predict.weft_bn_fit = function(x) {
    fit <- bn_fit(x, unit_dag(x))
    data <- as.data.frame(x)
    c(in_spreads(predict(fit, data[-3L], "v3") - x[, 3L], x[, 3L]),
      in_spreads(predict(fit, data[1L], "v5") - x[, 5L], x[, 5L]))
  },
  bn_log_lik = function(x) diff(bn_log_lik(bn_fit(x, unit_dag(x)), x)),
  pca = function(x) abs(unlist(pca(x, 2, scale = TRUE, seed = 1)[c("sdev", "x")])),
  `pca, missing` = function(x) {
    pca(replace(x, cbind(1:6, 1:6), NA), 2, scale = TRUE, na = "em", seed = 1, control = list(tolerance = 1e-10))$sdev
  },
  pca_choose_k = function(x) unlist(pca_choose_k(x, scale = TRUE, seed = 1)[c("k", "curve")]),
  `pca_choose_k, q2` = function(x) unlist(pca_choose_k(x, "q2", scale = TRUE, folds = 5)[c("k", "curve")]),
  mi_matrix = function(x) {
    unlist(lapply(c("pearson", "spearman", "copula"), function(by) c(mi_matrix(x, estimator = by))))
  },
  mi_network = function(x) unit_numbers(as.data.frame(mi_network(x, "aracne", estimator = "pearson"))),
  mi_rank = function(x) unit_numbers(mi_rank(as.data.frame(x), x[, 1L] > stats::median(x[, 1L]), bins = 3)),
  discretize = function(x) unlist(lapply(discretize(x, "equalfreq", 4), as.integer)),
  regulation = function(x) c(regulation(x, seed = 1, control = list(resamples = 20)))
)

# Each takes the data and the unit in which they are; numbers come back in unit 1.
calls_in_one_unit <- list(
  `kde, scott` = function(x, unit) predict(kde(x[, 1:2]), log = TRUE) + 2 * log(unit),
  `kde, plugin` = function(x, unit) kde(x[, 1:3], "plugin")$bandwidth / unit,
  `kde, lscv` = function(x, unit) kde(x[, 1L], "lscv")$bandwidth / unit,
  `kde, lcv` = function(x, unit) kde(x[, 1:2], "lcv", kernel = "laplacian")$bandwidth / unit,
  kernel_bandwidth = function(x, unit) attr(kernel_bandwidth(x[, 1:2]), "best") / unit,
  kernel_sum = function(x, unit) kernel_sum(x, bandwidth = 2 * unit),
  kernel_regression = function(x, unit) {
    by_two <- kernel_regression(x[, 1:2], unit_data()[, 3L])
    response <- kernel_regression(unit_data()[, 1:2], x[, 3L])
    c(by_two$bandwidth / unit, by_two$r_squared, response$r_squared, predict(response, interval = "confidence") / unit)
  },
  gp_regression = function(x, unit) {
    c(unlist(predict(gp_regression(x[, 1:2], unit_data()[, 3L], bandwidth = unit, noise = 0.1), se = TRUE)),
      predict(gp_regression(unit_data()[, 1:2], x[, 3L], noise = 0.1)) / unit)
  },
  kernel_pca = function(x, unit) kernel_pca(x, 2, bandwidth = 2 * unit, seed = 1)$values,
  pca = function(x, unit) pca(x, 2, seed = 1)$sdev / unit,
  `pca_choose_k, q2` = function(x, unit) unlist(pca_choose_k(x, "q2", folds = 5)[c("k", "curve")])
)

# Numbers agree to `tolerance` of each or of a millionth of the greatest.
expect_same_numbers <- function(found, wanted, label, tolerance = 1e-6) {
  expect_length(found, length(wanted))
  unit <- abs(wanted) + 1e-6 * max(abs(wanted), 1e-300)
  expect_lt(max(abs(found - wanted) / unit), tolerance, label = label)
}

# As expect_same_numbers(), or a classed error.
expect_same_or_refused <- function(call, wanted, label, tolerance = 1e-6) {
  found <- tryCatch(call(), weft_error_input = function(e) NULL)
  if (is.null(found)) succeed() else expect_same_numbers(found, wanted, label, tolerance)
}
