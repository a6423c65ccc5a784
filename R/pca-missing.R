# Principal components of data with missing values: NIPALS and GS-PCA over what is observed
# (src/pca/engines/nipals_missing.c), and the least-squares fit by EM.

pca_missing <- function(source, moments, method, na, job, settings, control) {
  if (na == "em") return(pca_em(source, moments, job, settings, control))
  if (!method %in% c("nipals", "gs")) {
    bad <- which(moments$missing > 0)
    abort_input(
      sprintf("Method \"%s\" does not accept missing values.", method),
      x = sprintf("Missing in %d of %d columns: %s.", length(bad), source$p,
                  label_some((source$names %||% seq_len(source$p))[bad])),
      i = "`na = \"em\"` computes the least-squares fit; methods \"nipals\" and \"gs\" regress on the observed values."
    )
  }
  if (!is.null(settings$weights)) abort_input("`weights` must not be given if values are missing.",
                                              i = "`na = \"em\"` accepts weights.")
  form <- pca_form(moments, settings$center, settings$scale, NULL, settings$col_weights, source$n)
  form$native$own <- TRUE
  solved <- pca_native(source, form, job, FALSE, control)
  flip <- sign_of(solved$v)
  solved$v <- solved$v * rep(flip, each = nrow(solved$v))
  solved$u <- solved$u * rep(flip, each = nrow(solved$u))
  solved
}

sign_of <- function(v) apply(v, 2L, function(l) if (l[which(abs(l) >= max(abs(l)) * (1 - 1e-7))[1L]] < 0) -1 else 1)

pca_em <- function(source, moments, job, settings, control) {
  if (source$kind == "resident") {
    abort_input("`na = \"em\"` needs a matrix in memory.", x = "`x` is on the device.",
                i = "`as.matrix()` copies it into memory.")
  }
  found <- em_fit(source, moments, NULL, job, settings, control)
  if (any(is.infinite(found$run$residual))) warn_runaway(source, moments, found$cells, job$k)
  warn_undetermined(source, moments, settings, job$k)
  found$run
}

# A value fitted to a missing cell has no end (runs_away() in em.c).
warn_runaway <- function(source, moments, cells, k) {
  column <- rep(seq_len(source$p), moments$missing)
  far <- abs(cells - moments$mean[column]) / em_spread(moments)[column]
  at <- which.max(far)
  row <- which(is.na(source$data[, column[at]]))[at - sum(moments$missing[seq_len(column[at] - 1L)])]
  weft_warn("undetermined", sprintf(
    "With %s, there is no least-squares fit: the value fitted to row %s, column %s grows without end.",
    several(k, "component"), label_some((source$row_names %||% seq_len(source$n))[row]),
    label_some((source$names %||% seq_len(source$p))[column[at]])),
    i = paste("The result is where EM stopped, and other machines may stop elsewhere. Use a smaller `k`, or remove the",
              "row or the column."))
}

# Fewer known values than free numbers: of a row (its k scores), a column (its loadings and its mean), or all.
warn_undetermined <- function(source, moments, settings, k) {
  centred <- isTRUE(settings$center)
  counted <- if (is.null(settings$weights)) rep(TRUE, source$n) else settings$weights > 0
  n <- sum(counted)
  known <- n - if (all(counted)) moments$missing else colSums(is.na(source$data[counted, , drop = FALSE]))
  rows <- which(source$seen < min(k, source$p))
  columns <- which(known < n & known < k + centred)
  free <- centred * source$p + k * (n - centred + source$p - k)
  few <- c(
    if (length(rows)) sprintf("fewer than %.0f in row %s", k,
                              label_some((source$row_names %||% seq_len(source$n))[rows])),
    if (length(columns)) sprintf("fewer than %.0f in column %s", k + centred,
                                 label_some((source$names %||% seq_len(source$p))[columns])),
    if (!length(rows) && !length(columns) && sum(known) < free) sprintf("%.0f for %.0f free numbers", sum(known), free)
  )
  if (!length(few)) return(invisible())
  weft_warn("undetermined", sprintf("Too few values are known for %s: %s.", several(k, "component"),
                                    paste(few, collapse = ", ")),
            i = "Many fits are equally good, and which one is found depends on rounding. Use a smaller `k`.")
}

# The unit of changes of fitted values.
em_spread <- function(moments) {
  pmax(moments$norm / sqrt(pmax(1, moments$weight)), 1e-6 * abs(moments$mean), .Machine$double.xmin)
}

# The least-squares fit of the observed values (src/pca/engines/em.c), whose column moments are given. Missing cells
# start at `cells` (NULL: their column's mean); it ends when they change by at most job$tol, relative to the spread of
# their columns, or when what is left of the observed squares falls by at most job$fall of itself. list(run, cells,
# steps).
em_fit <- function(source, moments, cells, job, settings, control) {
  weights <- settings$weights
  em <- list(first = cells %||% rep(moments$mean, moments$missing), weights = weights,
             spread = em_spread(moments), row = if (!is.null(weights)) sqrt(weights), fall = job$fall %||% -1)
  inner <- c(list(method = "krylov", choose = FALSE, k = job$k, tol = job$tol, paper = FALSE, max_iter = job$max_iter,
                  block = 0L, key = job$key, start = NULL), never_gives_way)
  found <- .Call(C_weft_pca_em, source$data, em, pca_scaling(settings$center, settings$scale, settings$col_weights),
                 inner, control)
  found$run$method <- "em"
  found$run$form <- as_form(found$made, settings$center, settings$scale, weights, settings$col_weights,
                            if (is.null(weights)) source$n else sum(weights))
  found$run$cells <- found$cells
  list(run = found$run, cells = found$cells, steps = found$run$iterations[1L])
}
