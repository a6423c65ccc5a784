/* Products of a sparse panel on the CPU; see sparse.c. */
#pragma once

#include "core/call/parallel.h"
#include "pca/pca.h"

/* out (x->n rows of b) = S v; v and out have their rows one after another. */
weft_status weft_pca_sparse_times(weft_ctx *ctx, const weft_pca_panel *x, const double *v, size_t b, double *out);
/* out (x->p rows of b) += S'u. */
weft_status weft_pca_sparse_transposed(weft_ctx *ctx, const weft_pca_panel *x, const double *u, size_t b, double *out);

static inline int weft_pca_threads_for_cells(const weft_ctx *ctx, double cells)
{
  return weft_threads_worth(ctx->threads, 5 * cells);
}
