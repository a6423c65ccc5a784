/* What rules for bandwidths need to know of a column of numbers (sample.c), and of points on a grid
 * (bin.c). */
#pragma once

#include "kernel/kernel.h"

/* Pairs of points by distance in bins, 0 .. lags - 1; a function of the distance over h, of which what lies beyond
 * `reach` is left out: exp(-u²/2) times the Hermite polynomial of order 0, 4 or 6. */
typedef struct weft_lags {
  size_t lags, bandwidths;
  const double *pairs, *h;
  double bin, reach;
  int order;
} weft_lags;
/* out[k]: the sum over all pairs for h[k]. */
weft_status weft_kernel_lag_sums(weft_ctx *ctx, const weft_lags *lags, double *out);

/* The standard deviation, NaN of fewer than two; quantiles as R's quantile() has them by default, of finite numbers. */
weft_status weft_kernel_deviation(weft_ctx *ctx, const double *x, size_t n, double *out);
weft_status weft_kernel_quantiles(weft_ctx *ctx, const double *x, size_t n, const double *probability, size_t quantiles,
                                  double *out);
