# What pair_scan() fits: the variants, the rows that are used, and the model without variants.

# ---- variants ----

# list(data: what native code reads, names, n, positions).
scan_variants <- function(x) {
  source <- as_source(x)
  data <- source$data
  columns <- if (source$kind == "frame") as.list.data.frame(data)
             else if (source$kind == "genotypes") genotype_columns(data)
             else source_matrix(source)
  bad <- if (source$kind == "frame") Filter(function(j) !is_genotypes(columns[[j]]), seq_along(columns))
  if (is.null(columns) || length(bad) || source$kind == "matrix" && !is_genotypes(as.vector(columns[0L]))) {
    abort_input("`x` must contain allele counts (0, 1, 2 or NA) in a matrix, a data frame or a `plink_file()`.",
                x = if (length(bad)) sprintf("Column `%s` is %s.", names(data)[bad[1L]], describe(data[[bad[1L]]]))
                    else paste0("It is ", describe(x), "."))
  }
  if (is.matrix(columns) && is.object(columns)) columns <- unclass(columns)
  list(data = columns, names = feature_names(data), n = nrow(data), positions = positions_of(x))
}

is_genotypes <- function(column) {
  is.null(dim(column)) && !is.object(column) && (is.numeric(column) || is.raw(column) || is.logical(column))
}

# How often each of `columns` has 0, 1 and 2 copies, is missing, and has something else, in the rows that are used.
variant_counts <- function(variants, rows, columns, native) {
  .Call(C_weft_mi_variant_counts, variants$data, list(rows = rows, columns = as.integer(columns) - 1L), native)
}

check_genotypes <- function(counts, names) {
  bad <- which(counts[5L, ] > 0)
  if (length(bad)) {
    abort_input("`x` must contain allele counts (0, 1, 2 or NA).",
                x = sprintf("Other values occur in %s.", label_some(names[bad])))
  }
}

# The variants of a screen: list(columns, side, near, searched, left_out; whole and screened: the proportions
# without missing genotypes, and of those that a device may screen).
scanned_variants <- function(variants, model, features, control, native) {
  p <- length(variants$names)
  side <- sides(variants$names, features, control$with)
  near <- near_pairs(control$min_distance, control$positions %||% variants$positions, p)
  columns <- if (is.null(side)) seq_len(p) else which(side != 0)
  counts <- variant_counts(variants, model$rows, columns, native)
  check_genotypes(counts, variants$names[columns])
  known <- colSums(counts[1:3, , drop = FALSE])
  share <- ifelse(known > 0, (counts[2L, ] + 2 * counts[3L, ]) / (2 * known), 0)
  missing <- known == 0 | counts[4L, ] > control$max_missing * length(model$rows)
  rare <- !missing & pmin(share, 1 - share) < control$min_maf
  constant <- !missing & !rare & colSums(counts[1:3, , drop = FALSE] > 0) < 2L
  keep <- !missing & !rare & !constant
  left_out <- c(missing = sum(missing), rare = sum(rare), constant = sum(constant))
  if (sum(keep) < 2L) {
    why <- left_out[left_out > 0]
    abort_input("`x` must have at least two variants that can be tested.",
                x = sprintf("%s %s%s.", several(sum(keep), "variant"), if (sum(keep) == 1L) "is left" else "are left",
                            if (length(why)) paste0("; excluded: ", toString(paste(why, names(why)))) else ""))
  }
  columns <- columns[keep]
  if (!is.null(side)) side <- side[columns]
  if (!is.null(near)) near <- near_of(near, columns)
  list(columns = columns, side = side, near = near, left_out = left_out, whole = mean(counts[4L, keep] == 0),
       screened = mean(counts[4L, keep] <= screened_missing * length(model$rows)),
       searched = choose_tuples(side, length(columns), 2) - count_near(near, side))
}

# ---- the model without variants ----

# list(kind, levels, rows from 0, y, basis, weighted and root (see weft_scan_job), residual, predictor, scale,
# covariates: how many columns).
scan_model <- function(outcome, covariates, x, variants, control) {
  n <- variants$n
  if (n < 1L) abort_input("`x` must have at least one row.", x = "It has none.")
  y <- scan_outcome(outcome, x, n, control)
  frame <- covariate_frame(covariates, x, matrix(0, n, 0L)) # by row: names of people may be numbers of other rows
  rows <- which(!is.na(y$values) & (if (is.null(frame)) TRUE else stats::complete.cases(frame)))
  basis <- if (length(rows)) scan_design(frame, rows)
  terms <- max(1L, ncol(basis)) + 3L
  if (length(rows) <= terms) {
    abort_input("`x` must have more complete rows (outcome and covariates) than the model has terms.",
                x = sprintf("There are %s and %d terms.", several(length(rows), "row"), terms))
  }
  values <- y$values[rows]
  if (length(unique(values)) < 2L) {
    abort_input("`outcome` must vary between the rows that are used.",
                x = sprintf("It is equal in all %s.", several(length(rows), "row")))
  }
  out <- list(kind = y$kind, levels = y$levels, rows = rows - 1L, basis = basis,
              covariates = ncol(basis) - 1L)
  c(out, if (y$kind == "linear") linear_null(values, basis, control$scores)
         else logistic_null(values, basis))
}

# list(kind, values, levels): numbers, or 0 and 1.
scan_outcome <- function(outcome, x, n, control) {
  outcome <- readable_numbers(outcome, "outcome")
  numbers <- is.numeric(outcome) && !is.factor(outcome) && is.null(dim(outcome))
  two <- numbers && length(unique(outcome[!is.na(outcome)])) == 2L
  if (control$model != "logistic" && numbers && (control$model == "linear" || !two)) {
    if (length(outcome) != n) {
      abort_input(sprintf("`outcome` must have one value per row of `x` (%d).", n),
                  x = sprintf("It has %d.", length(outcome)))
    }
    if (any(is.infinite(outcome))) {
      abort_input("`outcome` must be finite or NA.", x = sprintf("%d are infinite.", sum(is.infinite(outcome))))
    }
    return(list(kind = "linear", values = as.double(outcome)))
  }
  if (control$model == "linear") {
    abort_input("`outcome` must be numeric for `model = \"linear\"`.", x = paste0("It is ", describe(outcome), "."))
  }
  if (two) outcome <- factor(outcome) # with fractions, too
  class <- class_input(outcome, x, n, "outcome")
  if (length(class$levels) != 2L) {
    abort_input("`outcome` must be numeric or have two classes.",
                x = sprintf("It has %s.", if (length(class$levels) == 1L) "one class"
                                          else sprintf("%d classes", length(class$levels))))
  }
  list(kind = "logistic", values = as.double(class$codes), levels = class$levels)
}

# Orthonormal columns that span the constant and the covariates in these rows.
scan_design <- function(frame, rows) {
  columns <- lapply(names(frame), function(name) {
    v <- frame[[name]][rows]
    check_factor(v, sprintf("The covariate `%s`", name))
    if (is.factor(v)) {
      v <- droplevels(v)
      return(vapply(levels(v)[-1L], function(level) (v == level) + 0, numeric(length(rows))))
    }
    v <- as.double(v)
    v <- v / max(1e-300, abs(v))
    v <- v - mean(v)
    v / max(1e-300, abs(v))
  })
  orthonormal(do.call(cbind, c(list(rep(1, length(rows))), columns)))
}

orthonormal <- function(design) {
  size <- sqrt(colSums(design^2))
  solved <- qr(design / rep(ifelse(size > 0, size, 1), each = nrow(design)), tol = 1e-7)
  qr.Q(solved)[, seq_len(solved$rank), drop = FALSE]
}

# Residuals with a standard deviation of 1; `scale` brings effects back.
linear_null <- function(y, basis, scores) {
  if (scores == "normal") y <- normal_scores(y)
  size <- max(abs(y))
  y <- y / size
  y <- y - mean(y)
  residual <- y
  for (time in 1:2) residual <- residual - as.vector(basis %*% crossprod(basis, residual))
  deviation <- sqrt(sum(residual^2) / (length(y) - ncol(basis)))
  if (deviation <= 1e-10 * sqrt(mean(y^2))) {
    abort_input("`outcome` must not be determined by the covariates.", x = "All residuals are 0.")
  }
  list(residual = residual / deviation, weighted = basis, root = rep(1, length(y)), scale = deviation * size)
}

# Weights, working residuals and linear predictor of the logistic model with the covariates alone.
logistic_null <- function(y, basis) {
  fit <- suppressWarnings(stats::glm.fit(basis, y, family = stats::binomial(), intercept = FALSE,
                                         control = list(epsilon = 1e-13, maxit = 50)))
  predictor <- as.vector(basis %*% fit$coefficients)
  if (!all(is.finite(predictor)) || max(abs(predictor)) > 25) {
    abort_input("Covariates must not separate the classes.",
                x = "They determine the class of some samples with certainty.",
                i = "Remove the covariate, or merge its categories.")
  }
  share <- stats::plogis(predictor)
  root <- sqrt(share * (1 - share))
  weighted <- orthonormal(basis * root)
  residual <- (y - share) / root
  residual <- residual - as.vector(weighted %*% crossprod(weighted, residual))
  list(y = y, residual = residual, weighted = weighted, root = root, predictor = predictor, scale = 1)
}
