# From a data frame to what the Bayesian-network functions count: level codes or numbers, which nodes were set from
# outside, and the checked settings of a score.

bn_few_values <- 50L # an integer or character column with more is taken for a measurement or an identifier

# list(names, n, p, codes, levels, labels, x, set); `codes` is a matrix of levels from 0, or `x` a double matrix: its
# columns are standardised for BGe, so that the prior has the scale of each, and as they are for the "score" "numbers".
bn_input <- function(data, score, interventions = NULL, na = "fail") {
  about <- prepared_parts(data)
  data <- nodes_frame(data)
  names <- names(data)
  if (!ncol(data) || is.null(names) || anyDuplicated(names) || anyNA(names) || !all(nzchar(names))) {
    twice <- unique(names[duplicated(names)])
    nameless <- which(is.na(names) | !nzchar(names))
    abort_input("`x` must have at least one column, and unique column names.",
                x = if (length(nameless)) sprintf("Columns without a name: %s.", label_some(nameless))
                    else if (length(twice)) sprintf("Duplicated: %s.", label_some(twice))
                    else if (ncol(data)) "The columns have no names." else "It has no columns.")
  }
  check_encoding(names, "x")
  if (ncol(data) > 4096L) {
    abort_input("`x` must have at most 4096 columns.", x = sprintf("It has %d.", ncol(data)),
                i = "Remove columns that carry little information; `mi_rank()` ranks them.")
  }
  set <- bn_interventions(interventions %||% about$interventions, names, nrow(data))
  missing <- vapply(data, anyNA, NA)
  if (any(missing)) {
    if (na == "fail") {
      abort_input("`x` must not have missing values.",
                  x = sprintf("Missing in %d of %d columns: %s.", sum(missing), ncol(data), label_some(names[missing])),
                  i = "`na = \"drop\"` removes these rows.")
    }
    whole <- stats::complete.cases(data)
    data <- data[whole, , drop = FALSE]
    if (!is.null(set)) set <- set[whole, , drop = FALSE]
  }
  input <- list(names = names, n = nrow(data), p = ncol(data), set = set, completions = about$completions %||% 1,
                forbidden = about$forbidden, standard = isTRUE(about$standard))
  in_units <- if (input$standard) identity else standard_columns
  c(input, switch(score, bge = list(x = in_units(bn_numbers(data))), numbers = list(x = bn_numbers(data)),
                  "bic-cg" = , "aic-cg" = bn_mixed(data),
                  mixed = bn_mixed(data, standard = FALSE), bn_codes(data)))
}

nodes_frame <- function(data) {
  source <- as_source(data, NULL, "x")
  whole <- source_matrix(source)
  data <- if (is.null(whole)) source$data else as.data.frame(whole, stringsAsFactors = FALSE)
  if (is.data.frame(data)) return(data)
  abort_input("`x` must be a data frame or matrix with one node per column, or a SummarizedExperiment.",
              x = paste0("It is ", describe(data), "."))
}

mixed_scores <- c("bic-cg", "aic-cg")

# Data that this package has prepared for learning, with what else is known of them: `forbidden` edges [from, to],
# `interventions`, `completions` (rows that stand for one row of data), `standard` (numbers have units already).
prepared_data <- function(data, kind, ...) {
  structure(data, prepared = list(...), dimensions = dim(data), class = unique(c(kind, "weft_bn_data", "data.frame")))
}

# What is known of prepared data; NULL of others. They may be saved ones, or ones that were changed afterwards.
prepared_parts <- function(data, arg = "x") {
  if (!inherits(data, "weft_bn_data")) return(NULL)
  parts <- attr(data, "prepared", exact = TRUE)
  whole <- is.data.frame(data) && is.list(data) && is.list(parts) &&
    identical(as.integer(attr(data, "dimensions", exact = TRUE)), dim(data)) &&
    (is.null(parts$forbidden) || is.matrix(parts$forbidden) && is.logical(parts$forbidden) &&
       identical(dim(parts$forbidden), rep(length(data), 2L)) && !anyNA(parts$forbidden)) &&
    (is.null(parts$completions) || is_number(parts$completions, min = 1)) &&
    (is.null(parts$standard) || is_flag(parts$standard))
  if (whole) return(parts)
  abort_input(sprintf("`%s` must be the unmodified prepared data.", arg),
              x = "Rows or columns were changed after the preparation, or parts are damaged.",
              i = "Choose rows and columns before the preparation, or use `as.data.frame(as.list(x))`.")
}

# Whether some columns are doubles, and others are not.
is_mixed <- function(data) {
  if (!is.data.frame(data) || !is.list(data) || !length(data)) return(FALSE)
  number <- vapply(data, is.double, NA) & !vapply(data, is.object, NA)
  any(number) && !all(number)
}

# Numbers and categories: numbers have one level, and codes of 0; `x` has them in units of their standard deviation,
# `log_unit` the logarithms of these, unless they are not wanted `standard`; categories are 0 there.
bn_mixed <- function(data, standard = TRUE) {
  number <- vapply(data, function(column) is.double(column) && !is.object(column), NA, USE.NAMES = FALSE)
  x <- matrix(0, nrow(data), length(data))
  log_unit <- double(length(data))
  if (any(number)) x[, number] <- bn_numbers(data[number])
  for (j in which(number & standard)) {
    unit <- power_of_two(x[, j])
    values <- x[, j] / unit
    deviation <- if (nrow(data) > 1L) stats::sd(values - values[1L]) else 0
    if (!(deviation > 0)) deviation <- 1
    x[, j] <- standard_values(x[, j])
    log_unit[j] <- log(deviation) + log(unit)
  }
  plain <- data
  plain[number] <- rep(list(factor(rep("", nrow(data)), "")), sum(number))
  out <- bn_codes(plain)
  out$labels[number] <- list(NULL)
  c(out, list(x = x, number = number, log_unit = log_unit))
}

bn_numbers <- function(data) {
  fine <- vapply(data, function(column) is.numeric(column) && !is.factor(column), NA)
  if (!all(fine)) {
    abort_input("With `score = \"bge\"` every column of `x` must be numeric.",
                x = sprintf("Column `%s` is %s.", names(data)[!fine][1L], describe(data[[which(!fine)[1L]]])),
                i = "Remove it, or use `discretize()` on the numeric columns and a score for categories.")
  }
  x <- as.matrix(data)
  if (!is.double(x)) storage.mode(x) <- "double"
  bad <- colSums(!is.finite(x)) > 0
  if (any(bad)) abort_input("`x` must be finite.",
                            x = paste0("Infinite values occur in ", label_some(names(data)[bad]), "."))
  unname(x)
}

# Every column with mean 0 and variance 1; a constant one is 0 throughout.
standard_columns <- function(x) {
  for (j in seq_len(ncol(x))) x[, j] <- standard_values(x[, j])
  x
}

# Numbers of any unit and origin: a power of two takes them between -2 and 2, where no square overflows or vanishes, and
# the first is subtracted before the mean, so that equal numbers differ by nothing.
standard_values <- function(x) {
  if (!length(x)) return(x)
  x <- x / power_of_two(x)
  x <- x - x[1L]
  x <- x - mean(x)
  squares <- sum(x^2)
  if (squares > 0) x / sqrt(squares / (length(x) - 1)) else x
}

# The power of two at or below the greatest magnitude, or 1: dividing by it rounds no number but the tiniest.
power_of_two <- function(x) {
  greatest <- max(abs(x), 0)
  if (greatest > 0) 2^min(floor(log2(greatest)), 1023) else 1
}

bn_codes <- function(data) {
  columns <- lapply(seq_along(data), function(j) bn_category(data[[j]], names(data)[j]))
  list(
    codes = matrix(as.integer(unlist(lapply(columns, as.integer))) - 1L, nrow(data), length(columns)),
    levels = vapply(columns, nlevels, 0L), labels = stats::setNames(lapply(columns, levels), names(data))
  )
}

bn_category <- function(column, name) {
  if (is.factor(column)) check_factor(column, sprintf("Column `%s`", name))
  else column <- bn_factor(column, name)
  if (!nlevels(column)) abort_input(sprintf("Column `%s` must have at least one level.", name), x = "It has none.")
  if (nlevels(column) > 65535L) {
    abort_input(sprintf("Column `%s` must have at most 65535 levels.", name),
                x = sprintf("It has %d.", nlevels(column)))
  }
  column
}

bn_factor <- function(column, name) {
  if (is.logical(column)) return(factor(column, levels = c(FALSE, TRUE)))
  column <- sortable_text(column)
  values <- if (is.character(column) || (is.integer(column) && !is.object(column))) sort(unique(column))
  if (is.null(values) || length(values) > bn_few_values) {
    abort_input(
      sprintf(paste("Every column of `x` must be a factor, logical, or an integer or character column of at most",
                    "%d values."), bn_few_values),
      x = if (is.null(values)) sprintf("Column `%s` is %s.", name, describe(column))
          else sprintf("Column `%s` has %d distinct values.", name, length(values)),
      i = "Convert it into a factor (numbers with `discretize()`), or use `score = \"bge\"` if all columns are numeric."
    )
  }
  factor(column, levels = values)
}

# A list with one entry for each row: names of what was set from outside, NULL or NA. `things`: nodes or genes.
intervention_entries <- function(interventions, n, things) {
  if (length(interventions) != n) {
    abort_input(sprintf("`interventions` must have one entry per row of `x` (%d).", n),
                x = sprintf("It has %d.", length(interventions)))
  }
  check_factor(interventions, "`interventions`")
  entries <- if (is.list(interventions)) unclass(interventions) else as.list(as.character(interventions))
  are_names <- function(e) is.null(e) || is.character(e) || is.factor(e) || is.logical(e) && all(is.na(e))
  odd <- which(!vapply(entries, are_names, NA))
  if (length(odd)) {
    abort_input(sprintf("Each entry of `interventions` must be NULL, NA or names of %s.", things),
                x = sprintf("Entry %d is %s.", odd[1L], describe(entries[[odd[1L]]])))
  }
  entries
}

# An n x p integer matrix, 1 where the row's node was set from outside, or NULL.
bn_interventions <- function(interventions, names, n) {
  if (is.null(interventions)) return(NULL)
  if (!is.list(interventions) && !is.factor(interventions) && !is.character(interventions)) {
    abort_input(
      "`interventions` must be a list of node names with one entry per row, or a factor with the node that was set.",
      x = paste0("It is ", describe(interventions), "."))
  }
  entries <- intervention_entries(interventions, n, "nodes")
  entries <- lapply(entries, function(e) {
    e <- as.character(check_factor(e, "An entry of `interventions`"))
    e[!is.na(e)]
  })
  found <- unlist(entries)
  unknown <- setdiff(found, names)
  if (length(unknown)) {
    abort_input("`interventions` must contain column names of `x`, or NA for rows without an intervention.",
                x = paste0("There is no column ", label_some(unknown), "."))
  }
  set <- matrix(0L, n, length(names))
  set[cbind(rep(seq_len(n), lengths(entries)), match(found, names))] <- 1L
  if (any(set > 0L)) set
}

# The largest number of parents where none is given. Scores without a penalty rise again where parents separate all
# rows: among 12 independent columns of three levels and 50 rows, sets of four made 16 edges, sets of three none.
usual_parents <- function(input, score) {
  if (!score %in% c("bdeu", "bds", "k2") || !input$p) return(4)
  levels <- exp(mean(log(pmax(input$levels, 1))))
  max(1, min(4, floor(log(max(input$n / input$completions, 1)) / log(max(levels, 1.5)) + 1e-9)))
}

# Limits of parents: one number, or a named vector for some or all nodes (the others have the default 4).
bn_limits <- function(max_parents, names) {
  p <- length(names)
  fine <- !is.object(max_parents) && is.numeric(max_parents) && length(max_parents) && !anyNA(max_parents) &&
    all(max_parents >= 0) && all(max_parents == round(max_parents))
  if (fine && length(max_parents) > 1L) fine <- !is.null(names(max_parents))
  unknown <- setdiff(names(max_parents), names)
  twice <- unique(names(max_parents)[duplicated(names(max_parents))])
  if (!fine || length(unknown) || length(twice)) {
    abort_input("`max_parents` must be one whole number, or a vector of whole numbers named by nodes.",
                x = if (!fine) paste0("It is ", describe(max_parents), ".")
                    else if (length(unknown)) sprintf("There is no %s.", label_some(unknown))
                    else sprintf("Duplicated: %s.", label_some(twice)))
  }
  limits <- if (is.null(names(max_parents))) rep(max_parents, p)
            else replace(rep(4, p), match(names(max_parents), names), max_parents)
  as.integer(pmin(limits, max(p - 1L, 0L), 62L))
}

# What the native side is handed of data and score, but for `forbidden`; matrices over edges are [child, parent]. The
# caller fills in the limits and candidates.
bn_problem <- function(input, score, ess, prior, gamma) {
  p <- input$p
  prior <- bn_use_prior(prior, input$names)
  shares <- if (!is.null(prior)) prior$nats
  if (gamma != 1) shares <- (if (is.null(shares)) matrix(0, p, p) else shares) + log(gamma)
  problem <- list(
    n = as.double(input$n), p = as.double(p), completions = as.double(input$completions), score = score, ess = ess,
    codes = input$codes, levels = input$levels, set = input$set, edge_prior = shares, alpha_mu = 1, alpha_w = p + 2,
    required = if (!is.null(prior) && any(prior$required)) prior$required + 0L,
    forbidden = if (is.null(prior)) matrix(FALSE, p, p) else prior$forbidden, scatter = NULL, scatter_rows = double(),
    group = NULL, number = NULL, numbers = NULL, log_unit = NULL, max_parents = integer(p), slack = 0,
    allowed = matrix(0L, p, p), outside = NULL
  )
  if (!is.null(problem$edge_prior)) problem$edge_prior[!is.finite(shares)] <- 0
  if (!is.null(input$forbidden)) problem <- forbid_prepared(problem, input, prior)
  if (score %in% mixed_scores) problem <- mixed_problem(problem, input, prior)
  if (score == "bge") problem[bn_scattered] <- bn_scatter(input)[bn_scattered]
  problem
}

# What prepared data forbid cannot be required.
forbid_prepared <- function(problem, input, prior) {
  never <- t(input$forbidden)
  if (!is.null(prior) && any(prior$required & never)) {
    at <- which(prior$required & never, arr.ind = TRUE)[1L, ]
    abort_input("`prior` must not require an edge that the data forbid.",
                x = sprintf("It requires `%s` as a parent of `%s`.", input$names[at[2L]], input$names[at[1L]]))
  }
  problem$forbidden <- problem$forbidden | never
  problem
}

# A number cannot be the parent of a category.
mixed_problem <- function(problem, input, prior) {
  never <- outer(!input$number, input$number)
  wrong <- !is.null(prior) && any(prior$required & never)
  if (wrong) {
    at <- which(prior$required & never, arr.ind = TRUE)[1L, ]
    abort_input("A numeric column must not be a required parent of a categorical one.",
                x = sprintf("`%s` is required as a parent of `%s`.", input$names[at[2L]], input$names[at[1L]]),
                i = "Discretise the numeric column with `discretize()`, or forbid the edge.")
  }
  problem$forbidden <- problem$forbidden | never
  problem[c("number", "numbers", "log_unit")] <- list(input$number + 0L, input$x, input$log_unit)
  problem
}

bn_scattered <- c("scatter", "scatter_rows", "group")
bn_native_problem <- function(problem) problem[names(problem) != "forbidden"]

# Posterior scatter matrices for BGe of standardised columns, one for each pattern of rows in which a node was not set:
# T0 + S + n a / (n + a) (nu - mean)(nu - mean)', T0 = t I, t = a (w - p - 1) / (a + 1), with a = 1, w = p + 2, nu =
# means of all rows, or 0 where the units are given.
bn_scatter <- function(input) {
  p <- input$p
  pattern <- if (is.null(input$set)) rep("", p) else apply(input$set, 2L, paste, collapse = "")
  group <- match(pattern, unique(pattern))
  nu <- if (input$n && !input$standard) colMeans(input$x) else double(p)
  parts <- lapply(which(!duplicated(pattern)), function(j) {
    x <- if (is.null(input$set)) input$x else input$x[input$set[, j] == 0L, , drop = FALSE]
    n <- nrow(x)
    if (!n) return(list(n = 0, matrix = diag(0.5, p)))
    mean <- colMeans(x)
    squares <- crossprod(sweep(x, 2L, mean)) / input$completions
    n <- n / input$completions
    list(n = n, matrix = diag(0.5, p) + squares + n / (n + 1) * tcrossprod(nu - mean))
  })
  list(scatter = as.double(unlist(lapply(parts, `[[`, "matrix"))),
       scatter_rows = as.double(vapply(parts, `[[`, 0, "n")), group = group - 1L)
}

check_ess <- function(ess) {
  ess <- check_number(ess, "ess", min = 0)
  if (ess <= 0 || !is.finite(ess)) {
    abort_input("`ess` must be a positive number.", x = paste0("It is ", describe(ess), "."))
  }
  ess
}

check_gamma <- function(gamma) {
  gamma <- check_number(gamma, "gamma", min = 0)
  if (gamma <= 0 || !is.finite(gamma)) {
    abort_input("`gamma` must be a positive number.", x = paste0("It is ", describe(gamma), "."))
  }
  gamma
}
