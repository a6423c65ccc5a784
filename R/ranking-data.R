# The input of gene_ranking(), turned into checked data and a formula with its variables.

# list(q, formula, frame, term, notes): what gene_quality() returned, the model's formula (NULL: levels, ranked by their
# information) and its variables, one row per sample of `q`.
ranking_input <- function(x, class, data, term, subject) {
  if (inherits(class, "formula")) return(formula_input(x, class, data, term, subject))
  for (arg in c("data", "term")) {
    if (!is.null(get(arg))) abort_input(sprintf("`%s` must not be given without a formula.", arg),
                                        i = "For example `gene_ranking(x, ~ batch + class, data = samples)`.")
  }
  if (!inherits(x, "weft_quality")) {
    outcome <- named_column(class, x)
    if (!is.null(subject) || is_outcome(outcome)) {
      if (is.null(class)) abort_input("`gene_ranking()` needs `class`: one category per sample.")
      if (!is.atomic(outcome) || !is.null(dim(outcome))) {
        abort_input("`class` must be one category or number per sample.", x = paste0("It is ", describe(outcome), "."))
      }
      frame <- as_frame(list(class = unname(outcome)), length(outcome))
      return(formula_input(x, stats::as.formula("~class", baseenv()), frame, NULL, subject))
    }
  } else if (!is.null(subject)) {
    abort_subject_of_quality()
  }
  q <- checked_data(x, class)
  needs_class(q, "`gene_ranking()`")
  if (q$kind == "levels") return(list(q = q))
  frame <- quality_variables(q)
  names <- names(frame)
  sum <- Reduce(function(left, right) call("+", left, right), lapply(c(names[-1L], names[1L]), as.name))
  list(q = q, formula = stats::as.formula(call("~", sum), baseenv()), frame = frame, term = "class")
}

abort_subject_of_quality <- function() {
  abort_input("`subject` must not be given with a result of `gene_quality()`.",
              i = "Use the counts instead: `gene_ranking(counts, class, subject = subject)`.")
}

# A number per sample, rather than categories that happen to be numbers.
is_outcome <- function(v) {
  is.numeric(v) && !is.object(v) && is.null(dim(v)) &&
    (any(v != round(v), na.rm = TRUE) || length(unique(v)) > 10L)
}

# A column of colData(x) by its name, else the value itself.
named_column <- function(value, x) {
  if (!inherits(x, "SummarizedExperiment") || !is_word(value)) return(value)
  known <- SummarizedExperiment::colData(x)
  if (value %in% names(known)) known[[value]] else value
}

# Class, batch and covariates of what gene_quality() returned, under names that differ.
quality_variables <- function(q) {
  parts <- list(class = q$class, batch = if (!is.null(q$batch) && nlevels(q$batch) > 1L) q$batch)
  parts <- c(parts[!vapply(parts, is.null, NA)], q$covariates)
  named <- names(parts)
  strange <- is.na(named) | !nzchar(named) | grepl("^[.]+[0-9]*$", named) # what a formula cannot name
  named[strange] <- sprintf("covariate%d", which(strange))
  names(parts) <- make.unique(named)
  as_frame(lapply(parts, unname), nrow(q$x))
}

# ---- formulas ----

formula_input <- function(x, formula, data, term, subject) {
  if (typeof(formula) != "language" || length(formula) < 2L || !identical(formula[[1L]], quote(`~`))) {
    abort_input("The formula must be one that R can evaluate.", x = paste0("It is ", describe(formula), "."))
  }
  if (inherits(x, "weft_quality")) {
    if (!is.null(subject)) abort_subject_of_quality()
    q <- checked_quality(x, "x")
    frame <- with_data(quality_variables(q), data, nrow(q$x), q$samples$kept)
    return(list(q = q, formula = formula, frame = frame, term = term))
  }
  known <- if (inherits(x, "SummarizedExperiment")) {
    as.data.frame(SummarizedExperiment::colData(x), optional = TRUE)
  }
  rows <- if (inherits(x, "SummarizedExperiment")) ncol(x)
          else if (!is.null(dim(x))) nrow(x)
          else nrow(data) %||% length(x)
  frame <- with_data(known, data, rows)
  notes <- NULL
  if (!is.null(subject)) {
    summed <- sum_subjects(x, formula, frame, subject)
    x <- summed$x
    frame <- summed$frame
    formula <- summed$formula
    notes <- summed$notes
  }
  tested <- tested_variable(formula, frame, term)
  group <- if (!is.null(tested) && !is.numeric(frame[[tested]])) frame[[tested]]
  q <- if (is.null(subject)) gene_quality(x, group) else gene_quality(x, group, transform = "counts")
  list(q = q, formula = formula, frame = frame[q$samples$kept, , drop = FALSE], term = term, notes = notes)
}

# The columns of `data` beside those that are known. It may have a row for each sample that entered, of which `kept`
# remain.
with_data <- function(known, data, rows, kept = NULL) {
  if (is.null(data)) return(known %||% as_frame(list(), rows))
  if (inherits(data, "DataFrame")) data <- as.data.frame(data, optional = TRUE)
  if (!is.data.frame(data)) abort_input("`data` must be a data frame with one row per sample.",
                                        x = paste0("It is ", describe(data), "."))
  check_frame(data, "data")
  data <- as.data.frame(data)
  if (!is.null(kept) && nrow(data) == length(kept) && length(kept) != rows) data <- data[kept, , drop = FALSE]
  if (nrow(data) != rows) abort_input("`data` must be a data frame with one row per sample.",
                                      x = sprintf("It has %d rows for %d samples.", nrow(data), rows))
  as_frame(c(as.list(known[setdiff(names(known), names(data))]), as.list(data)), rows)
}

# The name of the variable that is the tested term, or NULL where that is something made of variables.
tested_variable <- function(formula, frame, term) {
  labels <- tryCatch(attr(stats::terms(formula, data = frame), "term.labels"), error = function(e) NULL)
  if (!length(labels) || !is.null(term) && !is_word(term)) return(NULL)
  name <- gsub("^`|`$", "", term %||% labels[length(labels)])
  if (is_word(name) && name %in% names(frame)) names(frame)[match(name, names(frame))]
}

# ---- subjects ----

# Counts summed over the samples of each subject that have the same values of the model's variables: list(x, frame,
# formula, notes).
sum_subjects <- function(x, formula, frame, subject) {
  counts <- subject_counts(x)
  n <- nrow(counts)
  who <- if (is_word(subject) && subject %in% names(frame)) frame[[subject]] else subject
  if (!is.atomic(who) || is.null(who) || length(who) != n || anyNA(who)) {
    abort_input("`subject` must be the name of a variable, or contain one value per sample.",
                x = paste0("It is ", describe(subject), "."), i = sprintf("There are %d samples.", n))
  }
  check_factor(who, "`subject`")
  who <- if (is.factor(who)) who else sortable_text(as.vector(unclass(who)))
  variables <- setdiff(all.vars(formula), if (is_word(subject)) subject)
  variables <- intersect(if ("." %in% variables) names(frame) else variables, names(frame))
  for (name in variables) check_factor(frame[[name]], sprintf("`%s`", name))
  texts <- lapply(frame[variables], function(v) sortable_text(as.character(v)))
  unit <- interaction(c(list(who), texts), drop = TRUE, lex.order = TRUE)
  if (nlevels(unit) > n / 2) {
    abort_input("Each subject must have several samples with the same values of the model's variables.",
                x = sprintf("%s would give %s.", several(n, "sample"), several(nlevels(unit), "sum")),
                i = "Remove variables that differ between the cells of one subject from the model.")
  }
  first <- match(levels(unit), unit)
  summed <- sum_rows(counts, unit)
  who <- factor(as.character(who[first]))
  rownames(summed) <- make.unique(as.character(who))
  frame <- frame[first, , drop = FALSE]
  rownames(frame) <- NULL
  notes <- sprintf("Counts of %s were summed to %s of %s.", several(n, "sample"), several(nrow(summed), "sum"),
                   several(nlevels(who), "subject"))
  repeated <- table(who) > 1L
  in_model <- is_word(subject) && subject %in% all.vars(formula)
  if (all(repeated) && !in_model) {
    name <- utils::tail(make.unique(c(names(frame), "subject")), 1L)
    frame[[name]] <- who
    formula <- stats::update(formula, stats::as.formula(call("~", call("+", as.name(name), as.name("."))), baseenv()))
    notes <- c(notes, "Every subject has several sums, so subjects are blocks in the model.")
  } else if (any(repeated) && !in_model) {
    notes <- c(notes, sprintf(paste("%s of %s subjects have several sums, which are treated as independent; to make",
                                    "subjects blocks, add them to the formula."), sum(repeated),
                              length(repeated)))
  }
  list(x = summed, frame = frame, formula = formula, notes = notes)
}

subject_counts <- function(x) {
  source <- as_source(x, NULL, "x")
  counts <- if (source$kind == "sparse") source$data else source_matrix(source) %||%
    if (source$kind == "frame") plain_matrix(source$data)
  stored <- if (inherits(counts, "sparseMatrix")) methods::as(counts, "dMatrix")@x else counts
  if (is.null(counts) || !is.numeric(stored) || anyNA(stored) || any(stored < 0) || any(stored != round(stored))) {
    abort_input("`subject` needs counts (whole numbers of at least 0).", x = paste0("`x` is ", describe(x), "."),
                i = "For other values, put subjects into the formula: `~ subject + class`.")
  }
  counts
}

sum_rows <- function(counts, unit) {
  if (!inherits(counts, "sparseMatrix")) return(rowsum(counts + 0, as.integer(unit), reorder = TRUE))
  which <- Matrix::sparseMatrix(as.integer(unit), seq_along(unit), x = 1, dims = c(nlevels(unit), length(unit)))
  out <- as.matrix(which %*% counts)
  colnames(out) <- colnames(counts)
  out
}

# ---- values ----

# list(y: what is fitted; unit: what y was divided by; log_size: with counts, what makes a value a log2 count; counted
# and plenty: genes with counts, and with enough for their shape; notes).
ranking_values <- function(q, control, native) {
  if (!is.null(q$counts)) return(count_values(q, control, native))
  y <- q$measured %||% q$x
  if (!is.double(y)) storage.mode(y) <- "double"
  size <- max(0, abs(y), na.rm = TRUE)
  # squares must not leave the range of doubles
  unit <- if (size > 0 && (size > 1e50 || size < 1e-50)) 2^floor(log2(size)) else 1
  list(y = if (unit == 1) y else y / unit, unit = unit, plenty = TRUE)
}

count_values <- function(q, control, native) {
  counts <- q$counts
  storage.mode(counts) <- "double"
  factors <- control$factors
  if (is.null(factors)) {
    factors <- scaling_factors(counts, native)
  } else if (!is_plain_number(factors) || length(factors) != nrow(counts) || !all(is.finite(factors) & factors > 0)) {
    abort_input("`factors` must contain one positive number per sample.", x = paste0("It is ", describe(factors), "."))
  }
  size <- rowSums(counts, na.rm = TRUE) * factors
  total <- colSums(counts, na.rm = TRUE)
  list(y = log2(counts + 0.5) - log2(size + 1) + log2(1e6), unit = 1, log_size = log2(size + 1) - log2(1e6),
       counted = total > 0,
       plenty = total >= counts_for_shape * nrow(counts) &
         colSums(counts == 0, na.rm = TRUE) <= commonest_for_shape * nrow(counts),
       notes = sprintf("Counts were scaled by factors from %s to %s, and weighted by their precision.",
                       format(signif(min(factors), 3)), format(signif(max(factors), 3))))
}
