/* Regressions over what is observed in a column-major n × p matrix, NaN elsewhere: see weft_pca_ops. */
#pragma once

#include "core/call/context.h"

weft_status weft_pca_observed(weft_ctx *ctx, const double *x, size_t n, size_t p, double *t, double *loads);
weft_status weft_pca_observed_loads(weft_ctx *ctx, const double *x, size_t n, size_t p, const double *t, double *loads);
weft_status weft_pca_observed_scores(weft_ctx *ctx, const double *x, size_t n, size_t p, const double *loads,
                                     double *t);
weft_status weft_pca_deflate(weft_ctx *ctx, double *x, size_t n, size_t p, const double *t, const double *loads);
