# Kernel sums in 113-bit arithmetic, compiled once a session: the reference that exact sums are held against.
quad_source <- '
#include <quadmath.h>
#include <string.h>
#include <Rinternals.h>
typedef __float128 quad;
static quad value(const char *k, quad s) {
  quad r = sqrtq(s), u;
  if (!strcmp(k, "gaussian")) return expq(-s / 2);
  if (!strcmp(k, "laplacian") || !strcmp(k, "matern12")) return expq(-r);
  if (!strcmp(k, "matern32")) { u = sqrtq(3) * r; return (1 + u) * expq(-u); }
  if (!strcmp(k, "matern52")) { u = sqrtq(5) * r; return (1 + u + u * u / 3) * expq(-u); }
  if (!strcmp(k, "matern72")) { u = sqrtq(7) * r; return (1 + u + 2 * u * u / 5 + u * u * u / 15) * expq(-u); }
  if (!strcmp(k, "cauchy")) return 1 / (1 + s);
  if (!strcmp(k, "uniform")) return s <= 1;
  if (s >= 1) return 0;
  if (!strcmp(k, "epanechnikov")) return 1 - s;
  if (!strcmp(k, "triangular")) return 1 - r;
  if (!strcmp(k, "biweight")) return (1 - s) * (1 - s);
  if (!strcmp(k, "wendland")) return (1 - r) * (1 - r) * (1 - r) * (1 - r) * (4 * r + 1);
  if (!strcmp(k, "cosine")) return cosq(M_PIq * r / 2);
  return nanq("");
}
/* h: one number, d numbers, or a lower triangle */
SEXP quad_sum(SEXP q, SEXP x, SEXP w, SEXP h, SEXP kernel, SEXP loo) {
  int nq = Rf_nrows(q), n = Rf_nrows(x), d = Rf_ncols(x), m = Rf_ncols(w), omit = Rf_asLogical(loo);
  int full = Rf_xlength(h) == d * d && d > 1;
  const char *k = CHAR(STRING_ELT(kernel, 0));
  SEXP out = PROTECT(Rf_allocVector(VECSXP, 3));
  for (int part = 0; part < 3; part++) SET_VECTOR_ELT(out, part, Rf_allocMatrix(REALSXP, nq, m));
  for (int i = 0; i < nq; i++) for (int c = 0; c < m; c++) {
    quad f = 0, a = 0, z[64];
    for (int t = 0; t < n; t++) {
      quad s = 0;
      if (omit && t == i) continue;
      for (int j = 0; j < d; j++) {
        quad g = (quad) REAL(q)[i + (size_t) j * nq] - REAL(x)[t + (size_t) j * n];
        for (int b = 0; full && b < j; b++) g -= z[b] * REAL(h)[j + (size_t) b * d];
        z[j] = g / REAL(h)[full ? j + (size_t) j * d : Rf_xlength(h) == 1 ? 0 : j];
        s += z[j] * z[j];
      }
      if (Rf_xlength(h) == 1) { /* the same quotient as the definition: r^2 / h^2 */
        s = 0;
        for (int j = 0; j < d; j++) { quad g = (quad) REAL(q)[i + (size_t) j * nq] - REAL(x)[t + (size_t) j * n];
          s += g * g; }
        s /= (quad) REAL(h)[0] * REAL(h)[0];
      }
      quad term = REAL(w)[t + (size_t) c * n] * value(k, s);
      f += term; a += fabsq(term);
    }
    REAL(VECTOR_ELT(out, 0))[i + (size_t) c * nq] = f;
    REAL(VECTOR_ELT(out, 1))[i + (size_t) c * nq] = a;
    REAL(VECTOR_ELT(out, 2))[i + (size_t) c * nq] = logq(f);
  }
  UNPROTECT(1);
  return out;
}
'
quad_library <- local({
  loaded <- NULL
  function() {
    if (is.null(loaded)) {
      dir <- tempfile("quad")
      dir.create(dir)
      writeLines(quad_source, file.path(dir, "quad.c"))
      writeLines("PKG_LIBS = -lquadmath", file.path(dir, "Makevars"))
      old <- setwd(dir)
      on.exit(setwd(old))
      built <- suppressWarnings(system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "quad.c"), stdout = FALSE,
                                        stderr = FALSE))
      loaded <<- built == 0 && !inherits(try(dyn.load(file.path(dir, paste0("quad", .Platform$dynlib.ext))), TRUE),
                                         "try-error")
    }
    loaded
  }
})

# list(sum, absolute, log): matrices, one column per column of w.
quad_sum <- function(q, x, w, h, kernel, leave_one_out = FALSE) {
  if (!quad_library()) testthat::skip("no compiler with libquadmath")
  if (is.matrix(h)) h <- t(chol(h))
  out <- .Call("quad_sum", q, x, as.matrix(w), as.double(h), kernel, leave_one_out, PACKAGE = "quad")
  stats::setNames(out, c("sum", "absolute", "log"))
}

all_kernels <- weft:::kernel_names
compact_kernels <- Filter(weft:::is_compact, all_kernels)
native_kernels <- setdiff(all_kernels, "matern12") # which is the Laplacian

# A hard case by number: list(q, x, w, h, what).
hard_case <- function(seed) {
  set.seed(seed)
  d <- sample(c(1, 2, 3, 5, 8, 16, 33, 64), 1, prob = c(4, 4, 3, 3, 2, 1, 0.5, 0.5))
  n <- sample(c(1, 2, 31, 33, 100, 300, 700), 1)
  nq <- sample(c(1, 7, 33, 90), 1)
  points <- function(n) matrix(stats::rnorm(n * d), n)
  kinds <- list(
    plain = function() list(points(n), points(nq), stats::runif(1, 0.05, 3)),
    far = function() list(points(n), points(nq) * 10^stats::runif(1, 1, 4), stats::runif(1, 0.1, 2)),
    duplicates = function() { x <- points(max(1, n %/% 10))[sample(max(1, n %/% 10), n, TRUE), , drop = FALSE]
                              list(x, x[sample(n, nq, TRUE), , drop = FALSE], stats::runif(1, 0.1, 2)) },
    identical = function() { p <- points(1); list(p[rep(1, n), , drop = FALSE], p[rep(1, nq), , drop = FALSE], 0.5) },
    clusters = function() { x <- points(n) * 0.01; x[seq_len(n) %% 2 == 0, ] <- x[seq_len(n) %% 2 == 0, ] + 1e4
                            list(x, x[sample(n, nq, TRUE), , drop = FALSE] + 0.003 * points(nq), 0.01 * sqrt(d)) },
    cauchy = function() list(matrix(stats::rcauchy(n * d), n), matrix(stats::rcauchy(nq * d), nq),
                             stats::runif(1, 0.2, 3)),
    outlier = function() { x <- points(n); x[1, ] <- 1e8; list(x, points(nq), stats::runif(1, 0.3, 2)) },
    lattice = function() { x <- matrix(sample(0:6, n * d, TRUE), n) * 0.1
                           list(x, matrix(sample(0:6, nq * d, TRUE), nq) * 0.1, sample(c(0.1, 0.2, 0.3, 0.5), 1)) },
    scale = function() { s <- 10^sample(c(-6, 6), 1)
      list(points(n) * s, points(nq) * s, s * stats::runif(1, 0.1, 2)) },
    offset = function() list(points(n) + 1e4, points(nq) + 1e4, stats::runif(1, 0.05, 2))
  )
  what <- sample(names(kinds), 1)
  parts <- kinds[[what]]()
  h <- parts[[3]] * if (d > 3) sqrt(d) / 2 else 1
  shape <- sample(c("one", "each", "matrix"), 1, prob = c(4, 1, 1))
  if (d > 1 && shape == "each") h <- h * stats::runif(d, 0.5, 2)
  if (d > 1 && shape == "matrix") { a <- matrix(stats::rnorm(d * d), d); h <- h^2 * (crossprod(a) / d + diag(d)) }
  list(q = parts[[2]], x = parts[[1]], h = h, what = paste(what, shape, "d", d, "n", n),
       w = matrix(stats::rexp(n), n), signed = matrix(stats::rnorm(2 * n), n))
}

# k of all pairs by R's own arithmetic.
kernel_value_matrix <- function(a, b, h, kernel) {
  r <- sqrt(Reduce(`+`, lapply(seq_len(ncol(a)), function(j) outer(a[, j], b[, j], "-")^2))) / h
  kernel_by_hand(kernel, r)
}

# Every kernel's definition in ?kernels, at h = 1.
kernel_by_hand <- function(kernel, r) {
  u <- r * switch(kernel, matern32 = sqrt(3), matern52 = sqrt(5), matern72 = sqrt(7), NA)
  switch(kernel,
    gaussian = exp(-r^2 / 2), epanechnikov = pmax(1 - r^2, 0), uniform = (r <= 1) + 0, triangular = pmax(1 - r, 0),
    laplacian = , matern12 = exp(-r), biweight = pmax(1 - r^2, 0)^2, cosine = ifelse(r < 1, cos(pi * r / 2), 0),
    cauchy = 1 / (1 + r^2), matern32 = (1 + u) * exp(-u), matern52 = (1 + u + u^2 / 3) * exp(-u),
    wendland = pmax(1 - r, 0)^4 * (4 * r + 1), matern72 = (1 + u + 2 * u^2 / 5 + u^3 / 15) * exp(-u),
    stop("no definition of ", kernel)
  )
}

# The seeds of hard cases that are tested every time: those that failed once, and some of every kind. A fresh case that
# fails adds its seed.
seeds_file <- function() testthat::test_path("kernel-seeds.txt")
kept_seeds <- function() scan(seeds_file(), quiet = TRUE, comment.char = "#")
keep_seed <- function(seed) {
  if (!seed %in% kept_seeds()) cat(format(seed, scientific = FALSE), "\n", file = seeds_file(), append = TRUE, sep = "")
}
