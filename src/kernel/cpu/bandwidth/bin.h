/* Points on a grid, for rules for bandwidths. */
#pragma once

#include "kernel/kernel.h"

/* Weights of points on a grid, by which smooth functions of two points' distance are summed over all pairs. */
typedef struct weft_binning {
  size_t n, bins;
  const double *x;
  double least, per_bin; /* place of x: (x - least) * per_bin, at least 1, less than bins - 2 */
} weft_binning;
/* bin: bins, the points' shares, each parted among the four bins around it by cubic interpolation. own: 4, the sum over
 * the points of the products of their own shares 0, 1, 2 and 3 bins apart. */
weft_status weft_kernel_bin(weft_ctx *ctx, const weft_binning *binning, double *bin, double *own);

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
