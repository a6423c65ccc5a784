/* What rules for bandwidths need to know of a column of numbers. */
#pragma once

#include "kernel/kernel.h"

/* The standard deviation, NaN of fewer than two; quantiles as R's quantile() has them by default, of finite numbers. */
weft_status weft_kernel_deviation(weft_ctx *ctx, const double *x, size_t n, double *out);
weft_status weft_kernel_quantiles(weft_ctx *ctx, const double *x, size_t n, const double *probability, size_t quantiles,
                                  double *out);
