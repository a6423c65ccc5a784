# The models of pair_scan() in plain R, for its tests and benchmark.

# lm() or glm() of one pair: c(n, estimate, std_error, statistic, p_value), or of genotypes c(n, statistic, df,
# p_value).
model_of_pair <- function(a, b, y, covariates = NULL, df = 1, class = FALSE) {
  d <- data.frame(y = y, a = a, b = b)
  if (df == 4) d[c("a", "b")] <- lapply(d[c("a", "b")], factor)
  if (!is.null(covariates)) d <- cbind(d, covariates)
  d <- d[stats::complete.cases(d), ]
  fit <- function(formula) {
    if (!class) return(stats::lm(formula, d))
    near <- suppressWarnings(stats::glm(formula, stats::binomial(), d, control = list(epsilon = 1e-12, maxit = 100)))
    if (df == 4) return(near)
    start <- replace(stats::coef(near), is.na(stats::coef(near)), 0) # one step more, for weights that have converged
    suppressWarnings(stats::glm(formula, stats::binomial(), d, start = start, control = list(epsilon = 1e-14)))
  }
  terms <- paste(c(names(covariates), "a", "b"), collapse = "+")
  whole <- fit(stats::as.formula(paste("y ~", terms, "+ a:b")))
  if (df == 4) {
    test <- stats::anova(fit(stats::as.formula(paste("y ~", terms))), whole, test = if (class) "Chisq" else "F")
    if (class) return(c(nrow(d), test$Deviance[2L], test$Df[2L], test$`Pr(>Chi)`[2L]))
    return(c(nrow(d), test$F[2L], test$Df[2L], test$`Pr(>F)`[2L]))
  }
  table <- summary(whole)$coefficients
  if (!"a:b" %in% rownames(table)) return(c(nrow(d), NA, NA, NA, NA))
  c(nrow(d), table["a:b", ])
}

# The score of one pair by its definition, from least squares with weights on the rows where both genotypes are known.
model_score <- function(a, b, y, covariates = NULL, class = FALSE, df = 1) {
  design <- if (is.null(covariates)) matrix(1, length(y)) else stats::model.matrix(~ ., covariates)
  weight <- rep(1, length(y))
  residual <- y
  if (class) {
    share <- stats::glm.fit(design, y, family = stats::binomial(), control = list(epsilon = 1e-14))$fitted.values
    weight <- share * (1 - share)
    residual <- (y - share) / weight
  }
  rows <- !is.na(a) & !is.na(b)
  root <- sqrt(weight[rows])
  levels <- function(g) if (df == 4) cbind(g == 1, g == 2) else cbind(g)
  one <- levels(a)[rows, , drop = FALSE]
  other <- levels(b)[rows, , drop = FALSE]
  both <- do.call(cbind, lapply(seq_len(ncol(other)), function(j) one * other[, j]))
  smaller <- qr(root * cbind(design[rows, , drop = FALSE], one, other))
  larger <- qr(root * cbind(design[rows, , drop = FALSE], one, other, both))
  left <- sum(qr.resid(smaller, root * residual[rows])^2)
  variance <- if (class) 1 else left / (sum(rows) - smaller$rank)
  (left - sum(qr.resid(larger, root * residual[rows])^2)) / variance
}
