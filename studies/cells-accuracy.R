# How accurate components of a store are. Small: against dense LAPACK (svd() of the centred matrix), every recipe by
# every method, in double precision from the store and in single precision from the same matrix in memory (what a store
# is read into is always double); those methods that find one component after another, and slowly, the first one of two
# recipes. Large: against components that the CPU finds in double precision, by the Gram matrix,
# to the smallest tolerance; other methods, tolerances and single precision beside them. Planted cells.
#
# Rscript cells-accuracy.R [backend = "cpu"] [cells of the large one = 20000; 0: none]
#   values     the largest error of a singular value, over the largest value
#   residual   the larger of |Xv - du| and |X'u - dv| over the largest d, worst of all components, found here by R's own
#              products; "told" is what pca() says of itself
#   sine       of the largest angle between a loading and the span of the true ones, and how large it may be at that
#              residual: residual over the gap behind the last value, relative too (Davis and Kahan), beside rounding
# Exit status 1: a sine or an error of a value is beyond what the residual allows, a residual beyond ten times `tol`
# (1e-8 in the end for what single precision cannot tell), or a component did not converge.
suppressMessages({
  library(weft)
  library(Matrix)
})
source("inst/bench/bench.R")
source(bench_file("cells-planted.R"))
given <- commandArgs(TRUE)
backend <- c(given, "cpu")[1L]
large <- as.numeric(c(given[-1L], 20000)[1L])
wrong <- 0

# list(x, total columns' centres, factors): what components are taken of is (x - centre) * factor.
form_of <- function(x, scaled) {
  centre <- Matrix::colMeans(x)
  spread <- sqrt((Matrix::colSums(x^2) - nrow(x) * centre^2) / (nrow(x) - 1))
  list(x = x, centre = centre, factor = if (scaled) ifelse(spread > 0, 1 / spread, 1) else rep(1, ncol(x)))
}
forwards <- function(form, v) {
  weighted <- v * form$factor
  as.matrix(form$x %*% weighted) - rep(colSums(form$centre * weighted), each = nrow(form$x))
}
back <- function(form, u) (as.matrix(Matrix::crossprod(form$x, u)) - outer(form$centre, colSums(u))) * form$factor

residual_of <- function(fit, form) {
  times <- function(of, by) of * rep(by, each = nrow(of))
  u <- times(fit$x, 1 / fit$d)
  size <- function(z) sqrt(max(colSums(z^2)))
  max(size(forwards(form, fit$rotation) - times(u, fit$d)), size(back(form, u) - times(fit$rotation, fit$d))) / fit$d[1]
}

sine_of <- function(v, right) max(svd(v - right %*% crossprod(right, v))$d)

heading <- function() {
  cat(sprintf("%-26s %-7s %-7s %6s %8s %9s %9s %9s %9s %9s\n", "", "", "method", "passes", "tol", "values", "residual",
              "told", "sine", "at most"))
}

# right: list(d, of k + 1 values; v, k vectors).
row <- function(name, precision, fit, tol, form, right) {
  k <- length(fit$d)
  values <- max(abs(fit$d - right$d[seq_len(k)])) / right$d[1]
  residual <- residual_of(fit, form)
  sine <- sine_of(fit$rotation, right$v)
  rounding <- 100 * .Machine$double.eps
  allowed <- 2 * (residual + rounding) / ((right$d[k] - right$d[k + 1]) / right$d[1])
  fine <- all(fit$converged) && values <= residual + rounding && sine <= allowed &&
    residual <= 10 * max(tol, if (precision == "single") 1e-8 else rounding)
  wrong <<- wrong + !fine
  cat(sprintf("%-26s %-7s %-7s %6.0f %8.0e %9.1e %9.1e %9.1e %9.1e %9.1e%s\n", name, precision, fit$method, fit$passes,
              tol, values, residual, max(fit$residual), sine, allowed, if (fine) "" else "  WRONG"))
}

imported <- function(blocks) {
  weft_import(blocks, tempfile(fileext = ".weft"), samples = "columns", run = weft_run(progress = FALSE))
}
components <- function(x, k, ..., on = backend) pca(x, k, ..., run = weft_run(on, progress = FALSE), seed = 1)

set.seed(1)
machine_line()
counts <- function(cells, genes, types, density) imported(planted_cells(cells, genes, types, density = density)$blocks)

# ---- small: six types and so five components that stand out, a flat spectrum behind them ----
opened <- function(x) weft_store(unclass(x)$path)
small <- counts(3000, 240, 6, 0.2)
recipes <- list(
  "counts" = list(opened(small)),
  "counts, scaled" = list(opened(small), scale = TRUE),
  "totals" = list(store_normalise(opened(small), log = FALSE)),
  "totals, log" = list(store_normalise(opened(small))),
  "totals, log, scaled" = list(store_normalise(opened(small)), scale = TRUE),
  "totals, log, 120 genes" = list(store_normalise(opened(small), total = NULL, genes = seq(1, 240, by = 2))))
cat(sprintf("3000 cells x 240 genes, 20 %%, 5 components on %s, against svd()\n", backend))
heading()
for (name in names(recipes)) {
  recipe <- recipes[[name]]
  scaled <- isTRUE(recipe$scale)
  form <- form_of(as.matrix(recipe[[1L]]), scaled)
  exact <- svd(t((t(form$x) - form$centre) * form$factor), 0, 5)
  for (method in c("krylov", "gram", "gs", "nipals")) for (precision in c("double", "single")) {
    one_by_one <- method %in% c("gs", "nipals")
    if (one_by_one && !name %in% c("counts", "totals, log")) next
    x <- if (precision == "double") recipe[[1L]] else form$x
    tol <- if (one_by_one) 1e-5 else if (precision == "double") 1e-12 else 1e-7
    k <- if (one_by_one) 1 else 5
    fit <- components(x, k, method, scale = scaled, precision = precision, tol = tol)
    row(name, precision, fit, tol, form, list(d = exact$d, v = exact$v[, seq_len(k), drop = FALSE]))
  }
}

# ---- large: 21 types ----
if (large > 0) {
  x <- store_normalise(counts(large, 2000, 21, 0.08))
  form <- form_of(x[, ], FALSE)
  first <- components(x, 21, "gram", tol = 1e-14, on = "cpu")
  right <- list(d = first$d, v = first$rotation[, 1:20])
  cat(sprintf(paste("%.0f cells x 2000 genes, 8 %%, 20 components on %s, against those of the CPU in double precision,",
                    "of which the residual is %.1e\n"), large, backend, residual_of(first, form)))
  heading()
  for (method in c("krylov", "gram")) for (tol in c(1e-12, 1e-8, 1e-5)) {
    row("totals, log", "double", components(x, 20, method, tol = tol), tol, form, right)
  }
  dense <- as.matrix(form$x)
  for (method in c("krylov", "gram")) {
    row("totals, log", "single", components(dense, 20, method, tol = 1e-7, precision = "single"), 1e-7, form, right)
  }
}
cat(sprintf("%d rows beyond what is allowed\n", wrong))
quit(status = wrong > 0)
