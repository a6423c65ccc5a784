/* Products of tiles with blocks of 4 or 8 vectors. */
#pragma once

#include "pca/cpu/tiles.h"

/* As weft_pca_sparse_times() and weft_pca_sparse_transposed(); b is 4 or 8. */
weft_status weft_pca_tiles_times(weft_ctx *ctx, const weft_pca_tiles *x, const double *v, size_t b, double *out);
weft_status weft_pca_tiles_transposed(weft_ctx *ctx, const weft_pca_tiles *x, const double *u, size_t b, double *out);
/* With u = R^2 (S v - 1 shift'): out += S'u, total += 1'u; u is not kept. row: R's diagonal, or NULL. */
weft_status weft_pca_tiles_twice(weft_ctx *ctx, const weft_pca_tiles *x, const double *v, size_t b, const double *shift,
                                 const double *row, double *total, double *out);
