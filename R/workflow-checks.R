# What the functions of the workflow are given: results that may have been saved, changed, or made by another version.
# They are checked before anything is done with them, and only methods of weft are called on them: no part of a saved
# object is evaluated or trusted.

# The classes that the steps' own functions return.
step_classes <- list(
  cells = list("weft_cells"), components = list(c("weft_pca", "prcomp")),
  ranking = list(c("weft_ranking", "data.frame"), c("weft_mi", "data.frame")),
  pairs = list(c("weft_mi_tuples", "data.frame")),
  network = list(c("weft_network", "matrix", "array"), c("weft_regulation", "weft_network", "matrix", "array")),
  clusters = list("weft_irm", "weft_clusters"),
  bayes = list("weft_bn", c("weft_bn_exact", "weft_bn")), outliers = list(c("weft_outliers", "data.frame"))
)

own_result <- function(step, result) any(vapply(step_classes[[step]], identical, NA, class(result)))

# `fit` with those of its parts that the functions of weft made; `foreign` has the classes of the others, which stand in
# for a step.
checked_fit <- function(fit, arg) {
  if (!inherits(fit, "weft_gene_network") || !is.list(fit)) {
    abort_input(sprintf("`%s` must be an object returned by `gene_network()`.", arg),
                x = paste0("It is ", describe(fit), "."))
  }
  check_format(fit, arg)
  fit <- unclass(fit)
  damaged <- function(part) {
    abort_input(sprintf("`%s` must be an unmodified object returned by `gene_network()`.", arg),
                x = sprintf("Its part `%s` is damaged.", part),
                i = "Was it modified, or made by another version of weft? Call `gene_network()` again.")
  }
  if (!sound_quality(fit$quality)) damaged("quality")
  steps <- c(step = "character", seconds = "numeric", backend = "character", note = "character")
  if (!is_frame(fit$steps, steps)) damaged("steps")
  estimate <- c(step = "character", seconds = "numeric", bytes = "numeric")
  if (!is.null(fit$estimate) && !is_frame(fit$estimate, estimate)) damaged("estimate")
  if (!is_number(fit$seed)) damaged("seed")
  if (!is_word(fit$version)) damaged("version")
  if (!is_number(unclass(fit$date))) damaged("date")
  if (!is.null(fit$call) && !is.language(fit$call)) damaged("call")
  if (!is.null(fit$settings) && !(is.list(fit$settings) && is_labels(names(fit$settings)))) damaged("settings")
  sentences <- fit$left_out
  if (!is.null(sentences) && !(is_text(sentences) && all(names(sentences) %in% names(step_classes)) &&
                                 !is.null(names(sentences)))) damaged("left_out")
  if (!is.null(fit$sitrep) && !(identical(class(fit$sitrep), "weft_sitrep") && is.list(fit$sitrep))) damaged("sitrep")
  made <- names(step_classes)[vapply(names(step_classes), function(step) !is.null(fit[[step]]), NA)]
  own <- vapply(made, function(step) own_result(step, fit[[step]]), NA)
  for (step in made[own]) {
    check_format(fit[[step]], sprintf("%s$%s", arg, step))
    if (!holds(sound_step(step, fit[[step]]))) damaged(step)
  }
  before <- fit$foreign # of a fit that was checked already
  if (!is.null(before) && !(is.character(before) && all(names(before) %in% names(step_classes)))) damaged("foreign")
  fit$foreign <- c(vapply(made[!own], function(step) class(fit[[step]])[1L], ""), before[setdiff(names(before), made)])
  fit[made[!own]] <- list(NULL)
  structure(fit, class = "weft_gene_network")
}

checked_quality <- function(q, arg) {
  if (inherits(q, "weft_quality")) check_format(q, arg)
  if (sound_quality(q)) return(q)
  abort_input(sprintf("`%s` must be an unmodified object returned by `gene_quality()`.", arg), x = "It is damaged.",
              i = "Was it modified, or made by another version of weft? Call `gene_quality()` again.")
}

# A result of one step, given by itself.
checked_step <- function(result, step, arg, maker) {
  if (is.null(result)) return(NULL)
  if (!own_result(step, result)) {
    abort_input(sprintf("`%s` must be an object returned by `%s`.", arg, maker),
                x = paste0("It is ", describe(result), "."))
  }
  check_format(result, arg)
  if (!holds(sound_step(step, result))) {
    abort_input(sprintf("`%s` must be an unmodified object returned by `%s`.", arg, maker), x = "It is damaged.")
  }
  result
}

# What an object that was checked says, read by `expr`: an error that no check foresaw is a bug.
reading <- function(arg, expr) {
  old <- options(OutDec = ".") # what is written is English, and its commas part thousands
  on.exit(options(old))
  tryCatch(expr, error = function(e) {
    abort_bug(e, sprintf("An object that was changed after weft made it may cause it, too: is `%s` one?", arg))
  })
}

# Pictures also fail for reasons of R's own, such as margins that leave no room.
drawing <- function(arg, expr) {
  tryCatch(expr, error = function(e) {
    if (inherits(e, "weft_error")) stop(e)
    abort_input(sprintf("`%s` could not be drawn.", arg), x = plain_text(conditionMessage(e)),
                i = paste("Is the device too small, or does the figure not take an argument? Otherwise this is a bug",
                          "in weft.", how_to_report))
  })
}

# ---- sound or not ----

sound_quality <- function(q) {
  identical(class(q), "weft_quality") && is.list(q) && holds({
    q <- unclass(q)
    log <- c(step = "character", genes = "numeric", samples = "numeric", what = "character")
    genes <- c(gene = "character", kept = "logical", reason = "character", missing = "numeric", median = "numeric",
               mad = "numeric")
    samples <- c(sample = "character", kept = "logical", reason = "character", missing = "numeric")
    is_matrix(q$x) && length(q$x) && all_finite(q$x) && is_labels(rownames(q$x)) && is_labels(colnames(q$x)) &&
      is_groups(q$class, nrow(q$x)) && is_groups(q$batch, nrow(q$x)) && sound_covariates(q$covariates, nrow(q$x)) &&
      sound_symbols(q$genes) && sound_before(q$before, nrow(q$x)) && sound_measured(q) &&
      is_word(q$kind) && q$kind %in% c("expression", "levels") && is_number(q$imputed) &&
      is.numeric(q$input) && length(q$input) == 2L && !anyNA(q$input) && (is.null(q$log) || is_frame(q$log, log)) &&
      is_frame(q$genes, genes) && !anyNA(q$genes$kept) && identical(q$genes$gene[q$genes$kept], colnames(q$x)) &&
      is_frame(q$samples, samples) && !anyNA(q$samples$kept) &&
      identical(q$samples$sample[q$samples$kept], rownames(q$x))
  })
}

sound_covariates <- function(d, n) {
  is.null(d) || identical(class(d), "data.frame") && length(attr(d, "row.names")) == n && is_text(names(d)) &&
    all(vapply(d, function(v) is_groups(v, n) || is_numbers(v, n), NA))
}

sound_symbols <- function(genes) {
  described <- genes$description
  (is.null(described) || is.character(described) && !is.object(described)) && sound_symbol(genes)
}

sound_symbol <- function(genes) {
  is.null(genes$symbol) && is.null(genes$representative) ||
    is.character(genes$symbol) && !is.object(genes$symbol) && is_bare(genes$representative, "logical") &&
      !anyNA(genes$representative) && !any(genes$representative & !genes$kept)
}

sound_before <- function(before, n) {
  is.null(before) || is_matrix(before) && nrow(before) == n && ncol(before) >= 1L && all(is.finite(before))
}

# Both may be absent; what is there has the shape and names of x.
sound_measured <- function(q) {
  alike <- function(v) is.null(v) || is_matrix(v) && identical(dimnames(v), dimnames(q$x))
  confounding <- c(kind = "character", text = "character", p = "numeric")
  alike(q$measured) && !any(is.infinite(q$measured)) && alike(q$counts) &&
    (is.null(q$counts) || all_finite(q$counts) && all(q$counts >= 0) && all(rowSums(q$counts) > 0)) &&
    (is.null(q$scale) || is_word(q$scale)) && (is.null(q$confounding) || is_frame(q$confounding, confounding))
}

sound_apart <- function(apart, k) {
  is.null(apart) || is.list(apart) && is_number(apart$best, 1, k) && is_number(apart$share) && is_number(apart$p)
}

sound_hidden <- function(h, n) {
  is.null(h) || is.list(h) && is_numbers(h$score, n) && is_groups(h$group, n) && nlevels(h$group) == 2L &&
    is_number(h$share) && is_number(h$genes) && is_number(h$split)
}

sound_step <- function(step, r) {
  switch(step,
    cells = is.list(sound_cells(r)),
    components = sound_components(r),
    ranking = if (inherits(r, "weft_ranking")) sound_ranking(r)
              else is_frame(r, c(feature = "character", mi = "numeric", statistic = "numeric", df = "numeric",
                                 p_value = "numeric", q_value = "numeric")) && is_word(attr(r, "unit")),
    pairs = is_frame(r, c(feature1 = "character", feature2 = "character", mi = "numeric", interaction = "numeric")) &&
      is_word(attr(r, "unit")) && is_number(attr(r, "searched")),
    network = if (is_directed(r)) sound_regulation(r) else is_square(r) && is_word(attr(r, "method")) && sound_cut(r) &&
      (is.null(attr(r, "mi")) || is_square(attr(r, "mi")) && identical(dim(attr(r, "mi")), dim(r)) &&
         (is.null(attr(attr(r, "mi"), "estimator")) || is_word(attr(attr(r, "mi"), "estimator")))),
    clusters = if (is_consensus(r)) sound_consensus(r) else {
      is.list(r) && are_clusters(r$row_cluster) && are_clusters(r$col_cluster) && is.matrix(r$log_posterior)
    },
    bayes = is.list(r) && is_square(r$dag) && all(r$dag %in% 0:1) && !length(find_cycle(r$dag != 0)) &&
      (is.null(r$edges) || is_square(r$edges) && identical(dim(r$edges), dim(r$dag))),
    outliers = is_frame(r, c(sample = "character", log_density = "numeric", distance = "numeric", score = "numeric",
                             p_value = "numeric", q_value = "numeric", outlier = "logical")) && !anyNA(r$outlier) &&
      is_number(attr(r, "components")) && is_number(attr(r, "fdr"))
  )
}

# The information that edges exceed, NA where there was no test, and its false discovery rate.
sound_cut <- function(net) {
  cut <- attr(net, "cut")
  is.null(cut) || is.numeric(cut) && length(cut) == 1L && is_number(attr(net, "fdr"))
}

sound_components <- function(r) {
  named_or_not <- function(names) is.null(names) || is_labels(names, unique = FALSE)
  is.list(r) && is_matrix(r$x) && is_matrix(r$rotation) && named_or_not(rownames(r$x)) &&
    named_or_not(rownames(r$rotation)) && ncol(r$x) >= 1L && is_labels(colnames(r$rotation)) &&
    identical(colnames(r$x), colnames(r$rotation)) && is_plain_number(r$sdev) && is_plain_number(r$share) &&
    length(r$sdev) == ncol(r$x) && length(r$share) == ncol(r$x) && is_word(r$method) &&
    sound_hidden(r$hidden, nrow(r$x)) && sound_apart(r$apart, ncol(r$x)) &&
    (is.null(r$choice) || is.list(r$choice) && is_count(r$choice$k)) &&
    (if (is.null(r$leading)) is.null(r$choice) else is_number(r$leading, 1, ncol(r$x)))
}

# TRUE or not; what cannot be examined is not. Lack of memory says nothing about it.
holds <- function(expr) {
  isTRUE(tryCatch(expr, error = function(e) if (inherits(e, "weft_error_memory")) stop(e) else FALSE))
}

is_plain_number <- function(x) is.numeric(x) && !is.object(x)
is_matrix <- function(x) is_plain_number(x) && is.matrix(x)

is_groups <- function(x, n) {
  is.null(x) || identical(class(x), "factor") && typeof(x) == "integer" && length(x) == n && !anyNA(x) &&
    is_labels(levels(x)) && all(unclass(x) >= 1L & unclass(x) <= nlevels(x))
}

are_clusters <- function(z) {
  is.integer(z) && length(z) && !anyNA(z) && all(z >= 1L & z <= length(z)) && is_labels(names(z), unique = FALSE)
}

# A square matrix of doubles or integers with names, the same for rows and columns; in whatever encoding they came.
is_square <- function(x) {
  names <- colnames(x)
  is.matrix(x) && typeof(x) %in% c("double", "integer") && nrow(x) == ncol(x) && nrow(x) >= 1L &&
    is_bare(names, "character", ncol(x)) && !anyNA(names) && identical(rownames(x), names)
}

# ---- single arguments ----

check_text <- function(x, arg) {
  x <- bare_scalar(x)
  if (is_bare(x, "character", 1L) && !is.na(x) && Encoding(x) != "bytes") return(x)
  abort_input(sprintf("`%s` must be one text.", arg), x = paste0("It is ", describe(x), "."))
}
