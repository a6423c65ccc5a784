/* The CPU's operations `moments` and `seen` of pca.h. */
#pragma once

#include "pca.h"

weft_status weft_pca_moments_cpu(weft_ctx *ctx, const weft_pca_data *data, const double *weights,
                                 const weft_pca_moments *out);
weft_status weft_pca_seen_cpu(weft_ctx *ctx, const weft_pca_data *data, double *out);
