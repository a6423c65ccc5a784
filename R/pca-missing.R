# Principal components of data with missing values: NIPALS and GS-PCA over what is observed (src/pca/pca_missing.c), and
# the least-squares fit by EM.

pca_missing <- function(source, moments, method, na, job, settings, control) {
  if (na == "em") return(pca_em(source, job, settings, control))
  if (!method %in% c("nipals", "gs")) {
    bad <- which(moments$missing > 0)
    abort_input(
      sprintf("Method \"%s\" does not take missing values.", method),
      x = sprintf("Missing in %d of %d columns: %s.", length(bad), source$p,
                  label_some((source$names %||% seq_len(source$p))[bad])),
      i = "`na = \"em\"` gives the least-squares fit; methods \"nipals\" and \"gs\" regress over what is observed."
    )
  }
  if (!is.null(settings$weights)) abort_input("`weights` must be NULL when values are missing.",
                                              i = "`na = \"em\"` takes weights.")
  form <- pca_form(moments, settings$center, settings$scale, NULL, settings$col_weights, source$n)
  form$native$own <- TRUE
  run <- pca_native(source, form, job, FALSE, control)
  flip <- sign_of(run$v)
  run$v <- run$v * rep(flip, each = nrow(run$v))
  run$u <- run$u * rep(flip, each = nrow(run$u))
  run
}

sign_of <- function(v) apply(v, 2L, function(l) if (l[which(abs(l) >= max(abs(l)) * (1 - 1e-7))[1L]] < 0) -1 else 1)

pca_em <- function(source, job, settings, control) {
  if (source$kind == "resident") {
    abort_input("`na = \"em\"` needs a matrix in memory.", x = "`x` is on the device.",
                i = "`as.matrix()` returns the numbers.")
  }
  em_fit(source, NULL, job, settings, control)$run
}

# The least-squares fit of the observed values. Missing cells start at `cells` (NULL: their column's mean); components,
# means (and standard deviations) and the cells' fits are found in turn until the cells change by at most job$tol,
# relative to the spread of their columns, or what is left of the observed squares falls by at most job$fall of itself.
# list(run, cells, steps).
em_fit <- function(source, cells, job, settings, control) {
  x <- source$data
  gaps <- which(is.na(x))
  column <- as.integer((gaps - 1) %/% source$n + 1) # pca_source() takes no more than there are integers
  row <- as.integer((gaps - 1) %% source$n + 1)
  moments <- column_moments(source, settings$weights, control)
  x[gaps] <- cells %||% moments$mean[column]
  spread <- pmax(moments$norm / sqrt(pmax(1, moments$weight)), .Machine$double.xmin)[column]
  inner <- c(list(method = "krylov", choose = FALSE, k = job$k, tol = 1e-3, paper = FALSE, max_iter = job$max_iter,
                  block = 0L, key = job$key, start = NULL), never_gives_way)
  converged <- FALSE
  passes <- 0
  before <- Inf
  for (iteration in seq_len(job$max_iter)) {
    source$data <- x
    form <- pca_form(column_moments(source, settings$weights, control), settings$center, settings$scale,
                     settings$weights,
                     settings$col_weights, if (is.null(settings$weights)) source$n else sum(settings$weights))
    if (iteration == 1L) first <- form$exponent
    run <- pca_native(source, form, inner, FALSE, control)
    passes <- passes + run$passes
    inner$start <- run$v
    fit <- 0
    for (k in seq_along(run$d)) fit <- fit + (run$d[k] * run$u[, k])[row] * run$v[, k][column]
    if (!is.null(settings$weights)) fit <- fit / sqrt(settings$weights[row])
    back <- ifelse(form$native$factor > 0, 1 / form$native$factor, 0)
    fit <- fit * back[column] + form$native$center[column]
    moved <- fit - x[gaps]
    change <- max(abs(moved) / spread)
    x[gaps] <- fit
    if (change <= job$tol && inner$tol <= max(job$tol, 1e-10)) {
      converged <- TRUE
      break
    }
    left <- (form$total - sum(run$d^2) - sum((moved * form$native$factor[column])^2)) * 4^(form$exponent - first)
    if (!is.null(job$fall) && before - left <= job$fall * left) break
    before <- left
    inner$tol <- max(1e-10, min(inner$tol, 0.01 * change)) # no more exact than the cells are
  }
  run$iterations[] <- iteration
  run$converged[] <- converged
  run$residual[] <- change
  run$passes <- passes
  run$method <- "em"
  list(run = run, cells = x[gaps], steps = iteration)
}
