/* Counts of independent genes, as components of counts are compared with (R/workflow-components.R): the count of sample
 * i and gene j is negative binomial with mean m = depth[i] share[j] and variance m + dispersion[j] m^2. */
#pragma once

#include "core/call/context.h"
#include "core/numbers/draws.h"

typedef struct weft_pca_count_model {
  size_t n, p;
  const double *depth;      /* n, positive */
  const double *share;      /* p, not negative */
  const double *dispersion; /* p, not negative; NULL where they are asked for */
} weft_pca_count_model;

/* One dispersion per gene by moments, not below 0. x: counts, n by p by columns, as in all of these. */
weft_status weft_pca_counts_moments(weft_ctx *ctx, const double *x, const weft_pca_count_model *model, double *out);

/* (x - mean) / standard deviation, between -most and most; 0 where a gene has no counts. */
weft_status weft_pca_counts_residuals(weft_ctx *ctx, const double *x, const weft_pca_count_model *model, double most,
                                      double *out);

/* Counts drawn from the model; draw i + j n is of sample i of gene j. */
weft_status weft_pca_counts_draw(weft_ctx *ctx, const weft_pca_count_model *model, weft_rng rng, double *out);
