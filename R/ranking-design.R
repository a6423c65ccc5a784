# The linear model of gene_ranking(): its variables, the columns of its design, and the columns that are tested. Tested
# columns come last (src/ranking/ranking.h).

# formula: right side only; frame: one row per sample. A list: design (tested columns last), tested (how many), term,
# formula, levels and group (codes from 0) of the tested factor or else NULL, number (the tested outcome is a number),
# shown and labels (contrasts of the tested coefficients that are reported), strata (codes of the other factors),
# adjusted (there is more than a constant beside what is tested).
ranking_model <- function(formula, frame, term = NULL, contrasts = NULL) {
  parts <- stats::terms(formula, data = frame)
  check_formula(formula, parts, frame)
  labels <- attr(parts, "term.labels")
  at <- if (is.null(term)) length(labels) else match(check_choice(check_text(term, "term"), labels, "term"), labels)
  term <- labels[at]
  frame <- model_frame(parts, frame)
  factors <- names(frame)[vapply(frame, is.factor, NA)]
  columns <- stats::model.matrix(parts, frame, contrasts.arg = stats::setNames(rep(list("contr.treatment"),
                                                                                   length(factors)), factors))
  assign <- attr(columns, "assign")
  is_tested <- assign == match(term, labels)
  check_alone(term, parts)
  scaled <- scaled_design(matrix(as.double(columns), nrow(columns), dimnames = list(NULL, colnames(columns))))
  design <- cbind(scaled$design[, !is_tested, drop = FALSE], scaled$design[, is_tested, drop = FALSE])
  check_rank(design, term)
  model <- list(design = design, per = scaled$unit[is_tested], tested = sum(is_tested), term = term, formula = formula,
                number = term %in% names(frame) && !term %in% factors, adjusted = sum(!is_tested) > 1L)
  if (term %in% factors) {
    model$levels <- levels(frame[[term]])
    model$group <- as.integer(frame[[term]]) - 1L
  }
  if (model$number && is.null(dim(frame[[term]]))) model$outcome <- as.double(frame[[term]])
  others <- setdiff(factors, term)
  model$strata <- if (length(others)) as.integer(interaction(frame[others], drop = TRUE)) - 1L
                  else integer(nrow(design))
  with_contrasts(model, contrasts)
}

# Numbers less their mean and over a power of 2, so that neither squares leave the range of doubles nor a date in
# seconds looks like the intercept. The intercept takes up the means; coefficients are per `unit`.
scaled_design <- function(design) {
  unit <- rep(1, ncol(design))
  for (j in which(colSums(design != 0 & design != 1) > 0)) {
    size <- 2^floor(log2(max(abs(design[, j]))))
    column <- design[, j] / size
    column <- column - mean(column)
    spread <- max(abs(column))
    more <- if (spread > 0) 2^floor(log2(spread)) else 1
    design[, j] <- column / more
    unit[j] <- size * more
  }
  list(design = design, unit = unit)
}

check_formula <- function(formula, parts, frame) {
  if (attr(parts, "response")) {
    abort_input("The formula must have no left side.",
                x = sprintf("It is `%s`.", formula_text(formula)),
                i = "The left side is always the genes. Use, for example, `~ batch + class`.")
  }
  if ("|" %in% all.names(formula) || "||" %in% all.names(formula)) {
    abort_input("The formula must not have random effects.", x = sprintf("It is `%s`.", formula_text(formula)),
                i = "Use a variable for blocks such as pairs or subjects: `~ subject + class`.")
  }
  if (!attr(parts, "intercept") || !length(attr(parts, "term.labels"))) {
    abort_input("The formula must have an intercept and at least one variable.",
                x = sprintf("It is `%s`.", formula_text(formula)), i = "For example `~ batch + class`.")
  }
  if (!is.null(attr(parts, "offset"))) {
    abort_input("The formula must not have an offset.", x = sprintf("It is `%s`.", formula_text(formula)),
                i = "Give scaling factors of counts as `control = list(factors = )`.")
  }
  unknown <- setdiff(all.vars(formula), c(names(frame), "."))
  if (length(unknown)) {
    abort_input("Every variable of the formula must be in `data` or `colData(x)`.",
                x = sprintf("There is no %s.", label_some(unknown)),
                i = if (length(frame)) sprintf("Available: %s.", label_some(names(frame))))
  }
}

formula_text <- function(formula) paste(deparse(formula, width.cutoff = 500L), collapse = " ")

# The variables of a formula, with functions of them evaluated; text, truth values and ordered factors are factors.
model_frame <- function(parts, frame) {
  used <- intersect(all.vars(parts), names(frame))
  for (name in used) frame[[name]] <- model_variable(frame[[name]], name)
  lost <- which(!stats::complete.cases(frame[used]))
  if (length(lost)) {
    abort_input("Variables of the formula must not have missing values.",
                x = sprintf("Values are missing for %d of %d samples; the first is in row %d.", length(lost),
                            nrow(frame),
                            lost[1L]),
                i = "Remove these samples.")
  }
  environment(parts) <- new.env(parent = asNamespace("stats"))
  made <- tryCatch(stats::model.frame(parts, frame, na.action = stats::na.pass, drop.unused.levels = TRUE),
                   error = function(e) {
    abort_input("The formula must be one that R can evaluate.", x = paste0(plain_text(conditionMessage(e)), "."))
  })
  made[] <- lapply(made, function(v) if (is.character(v) || is.logical(v)) factor(sortable_text(v)) else v)
  bad <- names(made)[vapply(made, function(v) is.numeric(v) && !all(is.finite(v)), NA)]
  if (length(bad)) abort_input("Variables of the formula must be finite.",
                               x = sprintf("%s has infinite values.", label_some(bad)))
  single <- names(made)[vapply(made, function(v) is.factor(v) && nlevels(v) < 2L, NA)]
  if (length(single)) abort_input("Every variable of the formula must have at least two distinct values.",
                                  x = sprintf("%s has one.", label_some(single)))
  made
}

model_variable <- function(v, name) {
  if (is.character(v) || is.logical(v)) return(factor(sortable_text(v)))
  if (is.factor(v)) {
    check_factor(v, sprintf("`%s`", name))
    return(factor(as.character(v), levels = levels(droplevels(v))))
  }
  if (is.numeric(v) && !is.object(v)) return(v)
  abort_input("Variables of the formula must be numeric or categorical.",
              x = sprintf("`%s` is %s.", name, describe(v)))
}

# A main effect beside its interaction is the effect in the other variable's first level only.
check_alone <- function(term, parts) {
  inside <- attr(parts, "factors") > 0
  own <- inside[, term]
  wider <- colnames(inside)[vapply(colnames(inside), function(other) {
    other != term && all(inside[own, other]) && sum(inside[, other]) > sum(own)
  }, NA)]
  if (length(wider)) {
    abort_input("The tested term must not be part of another term.",
                x = sprintf("`%s` is part of %s.", term, label_some(wider)),
                i = sprintf("Test `term = \"%s\"`, or remove it from the formula.", wider[1L]))
  }
}

check_rank <- function(design, term) {
  size <- sqrt(colSums(design^2))
  scaled <- design / rep(ifelse(size > 0, size, 1), each = nrow(design))
  solved <- qr(scaled, tol = 1e-7)
  columns <- colnames(design)
  if (solved$rank < ncol(design)) {
    order <- solved$pivot
    kept <- order[seq_len(solved$rank)]
    extra <- order[-seq_len(solved$rank)]
    parts <- qr.coef(qr(scaled[, kept, drop = FALSE]), scaled[, extra, drop = FALSE])
    from <- vapply(seq_along(extra), function(j) {
      used <- kept[abs(parts[, j]) > 1e-6]
      sprintf("`%s` is determined by %s", columns[extra[j]], label_some(columns[used]))
    }, "")
    abort_input("Variables of the formula must not determine each other.",
                x = paste0(paste(utils::head(from, 3L), collapse = "; "), "."),
                i = sprintf(paste("Their effects cannot be separated from those of `%s` or from each other. Remove",
                                  "one of them."), term))
  }
  if (nrow(design) <= ncol(design)) {
    abort_input("The model must have fewer coefficients than there are samples.",
                x = sprintf("There are %s and %s, which leaves no degrees of freedom for the variance.",
                            several(nrow(design), "sample"), several(ncol(design), "coefficient")),
                i = "A model needs at least two samples of one class and one of another.")
  }
}

# ---- contrasts ----

# Coefficients of a factor are its levels less the first one. Without `contrasts`, all of them are tested, and the pair
# of levels that differs most is shown. With `contrasts`, the design gets other columns, whose coefficients these are.
with_contrasts <- function(model, contrasts) {
  count <- model$tested
  if (is.null(contrasts)) {
    if (is.null(model$levels) || count == 1L) {
      model$shown <- diag(count)
      model$labels <- if (is.null(model$levels)) utils::tail(colnames(model$design), count)
                      else paste(rev(model$levels), collapse = " - ")
      return(model)
    }
    pairs <- utils::combn(length(model$levels), 2L)
    model$shown <- rbind(0, diag(count))
    model$shown <- t(model$shown[pairs[2L, ], , drop = FALSE] - model$shown[pairs[1L, ], , drop = FALSE])
    model$labels <- paste(model$levels[pairs[2L, ]], "-", model$levels[pairs[1L, ]])
    return(model)
  }
  if (is.null(model$levels)) {
    abort_input("`contrasts` must not be given if the tested term is not a class.",
                x = sprintf("The term is `%s`.", model$term))
  }
  wanted <- contrast_matrix(contrasts, model$levels)
  of_coefficients <- wanted[-1L, , drop = FALSE]
  if (qr(of_coefficients)$rank < ncol(wanted)) {
    abort_input("`contrasts` must be linearly independent.",
                x = sprintf("%s do.", label_some(colnames(wanted))))
  }
  rest <- qr.Q(qr(of_coefficients), complete = TRUE)[, -seq_len(ncol(wanted)), drop = FALSE]
  own <- ncol(model$design) - count + seq_len(count)
  turned <- model$design[, own, drop = FALSE] %*% solve(t(cbind(rest, of_coefficients)))
  colnames(turned) <- c(rep("rest", ncol(rest)), colnames(wanted))
  model$design <- cbind(model$design[, -own, drop = FALSE], turned)
  model$tested <- ncol(wanted)
  model$adjusted <- model$adjusted || ncol(rest) > 0L
  model$shown <- diag(ncol(wanted))
  model$labels <- colnames(wanted)
  model
}

# One column per contrast, one row per level.
contrast_matrix <- function(contrasts, levels) {
  if (is.numeric(contrasts)) {
    if (!is.matrix(contrasts)) contrasts <- matrix(contrasts, dimnames = list(names(contrasts), NULL))
    named <- rownames(contrasts)
    if (!is.null(named) && setequal(named, levels)) contrasts <- contrasts[levels, , drop = FALSE]
    sound <- nrow(contrasts) == length(levels) && ncol(contrasts) > 0L && all(is.finite(contrasts)) &&
      (is.null(named) || setequal(named, levels))
    if (!sound || any(abs(colSums(contrasts)) > 1e-8 * colSums(abs(contrasts))) || any(colSums(abs(contrasts)) == 0)) {
      abort_input("`contrasts` must have one row per level, and columns that sum to 0.",
                  x = paste0("It is ", describe(contrasts), "."), i = sprintf("The levels are %s.", label_some(levels)))
    }
    if (is.null(colnames(contrasts))) colnames(contrasts) <- sprintf("contrast%d", seq_len(ncol(contrasts)))
    return(contrasts)
  }
  pairs <- paste(rep(levels, each = length(levels)), "-", levels)
  if (!is.character(contrasts) || !length(contrasts) || !all(contrasts %in% pairs)) {
    abort_input("`contrasts` must be differences of levels, as text, or a matrix with one row per level.",
                x = paste0("It is ", describe(contrasts), "."),
                i = sprintf("For example \"%s - %s\". The levels are %s.", levels[2L], levels[1L], label_some(levels)))
  }
  at <- match(contrasts, pairs) - 1L
  plus <- at %/% length(levels) + 1L
  minus <- at %% length(levels) + 1L
  out <- matrix(0, length(levels), length(contrasts), dimnames = list(levels, contrasts))
  for (j in seq_along(contrasts)) {
    if (plus[j] == minus[j]) abort_input("`contrasts` must be differences of different levels.",
                                         x = sprintf("One is \"%s\".", contrasts[j]))
    out[plus[j], j] <- 1
    out[minus[j], j] <- -1
  }
  out
}
