# Batches and other variables that change expression but are not of interest: removed where they are known, and reported
# where they cannot be distinguished from the class, or where samples fall into groups that no variable names.

# ---- covariates ----

# A data frame, one row per sample of `data`; NA where a sample has no value.
covariate_frame <- function(covariates, x, data, arg = "covariates") {
  if (is.null(covariates)) return(NULL)
  if (is_experiment(x) && is.character(covariates) && length(covariates) != nrow(data)) {
    known <- as.data.frame(container_samples(x), optional = TRUE)
    lost <- setdiff(covariates, names(known))
    if (length(lost)) {
      abort_input(sprintf("`%s` must name columns of `%s`, or be values.", arg, container_samples_name(x)),
                  x = sprintf("There is no %s.", label_some(lost)))
    }
    covariates <- known[covariates]
  }
  named <- if (is.null(dim(covariates))) names(covariates)
           else if (.row_names_info(covariates) > 0L) rownames(covariates)
  if (is.matrix(covariates)) named <- rownames(covariates)
  frame <- if (is_covariate(covariates)) data.frame(covariate = unname(covariates))
           else if (is.matrix(covariates) || is.data.frame(covariates)) as.data.frame(covariates)
  if (is.null(frame) || !ncol(frame) || !all(vapply(frame, is_covariate, NA))) {
    abort_input(sprintf("`%s` must be numeric or categorical, with one value or one row per sample.", arg),
                x = paste0("It is ", describe(covariates), "."))
  }
  samples <- rownames(data)
  if (!is.null(named) && !anyDuplicated(named) && any(named %in% samples)) {
    lost <- setdiff(samples, named)
    if (length(lost) && nrow(frame) == nrow(data)) { # row numbers of a part of a table look like names of samples
      abort_input(sprintf("`%s` must have the names of all samples, or of none.", arg),
                  x = sprintf("It has %d rows, and none for %s.", nrow(frame), label_some(lost)),
                  i = "Where its rows are in the order of the samples, remove its names.")
    }
    frame <- frame[match(samples, named), , drop = FALSE]
  } else if (nrow(frame) != nrow(data)) {
    abort_input(sprintf("`%s` must have a value or row for every sample.", arg),
                x = sprintf("It has %d for %d samples.", nrow(frame), nrow(data)))
  }
  known <- names(frame)
  names(frame) <- make.unique(ifelse(is.na(known) | !nzchar(known), "covariate", valid_utf8(known)))
  frame[] <- lapply(frame, function(v) if (is.character(v) || is.logical(v)) factor(sortable_text(v)) else v)
  rownames(frame) <- samples
  frame
}

is_covariate <- function(v) {
  is.null(dim(v)) && (is.factor(v) ||
                      (!is.object(v) && (is.character(v) || is.logical(v) || is.numeric(v) && !any(is.infinite(v)))))
}

check_covariates <- function(q) {
  lost <- rownames(q$x)[!stats::complete.cases(q$covariates)]
  if (length(lost)) {
    abort_input("`covariates` must be known for every sample.",
                x = sprintf("Missing for %d of %d: %s.", length(lost), nrow(q$x), label_some(lost)))
  }
  for (name in names(q$covariates)) check_factor(q$covariates[[name]], sprintf("The covariate `%s`", name))
  q$covariates[] <- lapply(q$covariates, function(v) if (is.factor(v)) droplevels(v) else v)
  same <- vapply(q$covariates, function(v) length(unique(v)) < 2L, NA)
  if (any(same)) q <- note(q, "batch",
                           sprintf("Covariates with a single value were ignored: %s.", some_named(names(which(same)))))
  q$covariates <- q$covariates[!same]
  q
}

# ---- what is taken out ----

# Centred columns for batches and covariates; NULL when there are none.
nuisance_design <- function(q) {
  parts <- list()
  if (!is.null(q$batch) && nlevels(q$batch) > 1L) parts$batch <- contrast_columns(q$batch)
  for (v in q$covariates) parts[[length(parts) + 1L]] <- if (is.factor(v)) contrast_columns(v) else as.matrix(v)
  if (length(parts)) scale(do.call(cbind, parts), scale = FALSE)
}

contrast_columns <- function(group) {
  columns <- stats::model.matrix(~group, data.frame(group = group), contrasts.arg = list(group = "contr.sum"))
  columns[, -1L, drop = FALSE]
}

# Least squares of every gene on batch and covariates, which are taken out; genes with gaps one by one. The class is not
# in the model: the means of batches are then as uncertain as batch and class are alike, and their errors, taken out of
# the values, would be differences between classes in all genes at once.
take_out_nuisance <- function(q) {
  if (!is.null(q$covariates)) q <- check_covariates(q)
  if (!is.null(q$batch) && nlevels(q$batch) < 2L) q <- note(q, "batch", "There is only one batch.")
  part <- nuisance_design(q)
  if (is.null(part)) return(q)
  if (q$kind == "levels") return(note(q, "batch",
                                      paste("Values are levels, not measurements, so effects of batches and",
                                            "covariates were not removed.")))
  class <- if (!is.null(q$class)) contrast_columns(q$class)
  design <- cbind(1, part, class)
  if (qr(design)$rank < ncol(design)) {
    alone <- is.null(q$covariates)
    abort_input(if (alone) "Batches and classes must not be identical."
                else "Batches, covariates and classes must not determine each other.",
                x = if (alone) "Each batch contains only one class, or each class is in only one batch."
                    else "One of them is a linear combination of the others.",
                i = sprintf(paste("Their effects cannot be separated. Remove %s, and note that differences between",
                                  "classes may then be due to it."), if (alone) "`batch`" else "one of them"))
  }
  q <- warn_confounded(q, part, class)
  gaps <- colSums(is.na(q$x)) > 0
  q$before <- first_scores(q$x[, !gaps, drop = FALSE])
  q$taken_out <- TRUE
  if (any(!gaps)) q$x[, !gaps] <- without_nuisance(q$x[, !gaps, drop = FALSE], part)
  for (j in which(gaps)) {
    seen <- !is.na(q$x[, j])
    beta <- qr.coef(qr(cbind(1, part)[seen, , drop = FALSE]), q$x[seen, j])[-1L]
    q$x[, j] <- q$x[, j] - drop(part %*% ifelse(is.na(beta), 0, beta))
  }
  note(q, "batch", nuisance_text(q), ncol(q$x), nrow(q$x))
}

# A complete matrix less what centred columns explain of it; its means stay.
without_nuisance <- function(x, part) if (is.null(part)) x else x - part %*% qr.coef(qr(part), x)

# Samples on up to five components, for the report to show what was there before; NULL where too few genes have no gaps.
first_scores <- function(x) {
  if (ncol(x) < 3L) return(NULL)
  genes <- component_genes(dim(x))
  if (genes < ncol(x)) x <- x[, sort(order(draws("uniform", ncol(x), key = 1))[seq_len(genes)]), drop = FALSE]
  pca(x, min(5, dim(x) - c(1L, 0L)), scale = TRUE, seed = 1, run = weft_run("cpu", progress = FALSE))$x
}

nuisance_text <- function(q) {
  batch <- if (!is.null(q$batch) && nlevels(q$batch) > 1L) sprintf("Differences between the means of %d batches",
                                                                   nlevels(q$batch))
  count <- length(q$covariates)
  with <- if (count) sprintf("%s effects of %s", if (is.null(batch)) "Linear" else "linear",
                             some_named(names(q$covariates)))
  sprintf("%s were removed%s.", paste(c(batch, with), collapse = " and "),
          if (is.null(q$class)) "" else paste(" for components, networks and figures. Tests of the class include them",
                                              "in the model"))
}

# ---- batch and class nearly the same ----

# The share of the variance of the class contrast that is hardest to tell from batches and covariates that these
# explain: the square of the first canonical correlation. What is left is how many of the samples are as good as lost.
class_explained <- function(part, class) {
  centred <- function(m) qr.Q(qr(scale(m, scale = FALSE)))
  min(1, svd(crossprod(centred(part), centred(class)), 0L, 0L)$d[1L])^2
}

warn_confounded <- function(q, part, class) {
  if (is.null(class)) return(q)
  explained <- class_explained(part, class)
  if (explained < 0.5) return(q)
  counted <- if (!is.null(q$batch) && is.null(q$covariates)) table(q$batch, q$class)
  agree <- if (!is.null(counted)) {
    sprintf(": %d of %d samples belong to the most common class of their batch",
            as.integer(sum(apply(counted, 1L, max))), nrow(q$x))
  } else ""
  text <- sprintf(paste("`class` is confounded with `%s`%s. These explain %s of the class, so the differences between",
                        "classes are estimated only as precisely as from %s of the samples."),
                  if (is.null(q$covariates)) "batch"
                  else if (is.null(q$batch)) "covariates" else "batch` and `covariates",
                  agree, share_text(explained), share_text(1 - explained))
  weft_warn("batch_class", text,
            i = paste("No analysis can separate confounded effects. Analyse each batch separately, or measure each",
                      "class in each batch. Without `batch`, effects of the batch would appear as effects of the",
                      "class."))
  note(q, "batch", text)
}

# ---- hidden batches ----

# Two groups of samples along the leading components that class, batch and covariates do not explain, and that separate
# the values of many genes; else NULL. What separates those of the targets of one regulator, and leaves most genes as
# they are, is not a batch: the median gene must share `least_median` of its variance with the score. A list: `score`
# (along the best direction among the scores, with what is known taken out), `group`, `share` of the variance, `genes`
# (share of genes of whose variance the score explains a quarter), `split` (share of the score's variance that is
# between the groups).
hidden_groups <- function(q, data, fit) {
  n <- nrow(q$x)
  if (q$kind == "levels" || n < 13L) return(NULL)
  known <- cbind(rep(1, n), nuisance_design(q), if (!is.null(q$class)) contrast_columns(q$class))
  basis <- qr(known)
  scores <- qr.resid(basis, fit$x[, seq_len(max(fit$leading, min(2L, ncol(fit$x)))), drop = FALSE])
  turned <- svd(scores, nv = 0L)
  total <- if (data$scale) ncol(data$x) * (n - 1) else sum(row_squares(data$x, colMeans(data$x), rep(1, ncol(data$x))))
  found <- NULL
  for (j in which(turned$d^2 > 0.03 * total)) {
    score <- turned$u[, j]
    cut <- best_split(score)
    if (cut$share < max(0.8, 0.68 + 4 / n)) next
    shares <- gene_shares(data$x, basis, score)
    genes <- mean(shares >= 0.25)
    if (genes < 0.1 || stats::median(shares) < least_median || (!is.null(found) && genes <= found$genes)) next
    score <- stats::setNames(score * turned$d[j], rownames(q$x))
    found <- list(score = score,
                  group = stats::setNames(factor(ifelse(turned$u[, j] > cut$at, "high", "low")), rownames(q$x)),
                  share = turned$d[j]^2 / total, genes = genes, split = cut$share)
  }
  found
}

# Regulatory networks of modules reach .04 to .10, a batch that moves all genes by one standard deviation .10 to .20.
least_median <- 0.08

# Squared correlations of a score with genes from which what is known was taken out.
gene_shares <- function(x, basis, score) {
  at <- seq_len(ncol(x))
  unlist(lapply(split(at, (at - 1L) %/% 1000L), function(some) {
    rest <- qr.resid(basis, x[, some, drop = FALSE])
    rest <- rest / rep(pmax(apply(abs(rest), 2L, max), 1e-300), each = nrow(rest)) # squares stay within doubles
    drop(crossprod(rest, score))^2 / pmax(colSums(rest^2), 1e-300)
  }), use.names = FALSE)
}

# Where to cut a score into two groups, of a tenth of the samples and three at least, so that most variance is between
# them. A single normal distribution gives 2 / pi.
best_split <- function(score) {
  n <- length(score)
  sorted <- sort(score - mean(score))
  below <- max(3L, ceiling(n / 10)):(n - max(3L, ceiling(n / 10)))
  between <- cumsum(sorted)[below]^2 * n / (below * (n - below))
  best <- which.max(between)
  list(share = between[best] / sum(sorted^2), at = mean(sorted[below[best] + 0:1]) + mean(score))
}

warn_hidden <- function(q, hidden) {
  weft_warn("hidden_batch", paste("There may be a hidden batch:", hidden_text(q, hidden)),
            i = paste("If samples were processed in groups (days, plates, sites), pass these as `batch`. Otherwise,",
                      "pass `hidden$score` of the components as `covariates` of `gene_quality()`.",
                      if (is.null(q$class)) "If the groups are of interest, pass `hidden$group` as `class`."))
}

hidden_text <- function(q, hidden) {
  known <- c(if (!is.null(q$class)) "class", if (!is.null(q$batch)) "batch", names(q$covariates))
  sizes <- sort(tabulate(hidden$group, 2L), decreasing = TRUE)
  sprintf(paste("the samples form groups of %d and %d along a direction that explains %s of the variance%s. This",
                "direction explains at least a quarter of the variance of %s of the genes."),
          sizes[1L], sizes[2L], share_text(hidden$share),
          if (length(known)) sprintf(" and that %s cannot explain", joined(plain_text(known))) else "",
          share_text(hidden$genes))
}
