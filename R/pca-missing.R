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
  em_fit(source, moments, NULL, job, settings, control)$run
}

# The least-squares fit of the observed values (src/pca/engines/em.c), whose column moments are given. Missing cells
# start at `cells` (NULL: their column's mean); it ends when they change by at most job$tol, relative to the spread of
# their columns, or when what is left of the observed squares falls by at most job$fall of itself. list(run, cells,
# steps).
em_fit <- function(source, moments, cells, job, settings, control) {
  weights <- settings$weights
  em <- list(first = cells %||% rep(moments$mean, moments$missing), weights = weights,
             spread = pmax(moments$norm / sqrt(pmax(1, moments$weight)), .Machine$double.xmin),
             row = if (!is.null(weights)) sqrt(weights), fall = job$fall %||% -1)
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
