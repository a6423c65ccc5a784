/* Moments of columns and counts of rows on a device: operations of pca.h. */
#pragma once

#include "pca/cuda/pca.cuh"

weft_status weft_pca_moments_cuda(weft_ctx *ctx, const weft_pca_data *data, const double *weights,
                                  const weft_pca_moments *out);
weft_status weft_pca_seen_cuda(weft_ctx *ctx, const weft_pca_data *data, double *out);
