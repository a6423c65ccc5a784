/* The Gram matrix of sparse rows; see gram_sparse.c. */
#pragma once

#include "pca/pca.h"

/* g (p × p, lower triangle) += S'R²S and m (p) += S'R²1 of a sparse panel; `row`: weights of its rows, or NULL. */
weft_status weft_pca_gram_sparse_add(weft_ctx *ctx, const weft_pca_panel *x, const double *row, double *g, double *m);
/* The centre off, and the factors on. `weight`: 1'R²1 */
void weft_pca_gram_sparse_centre(const weft_pca_form *form, size_t p, double weight, const double *m, double *g,
                                 int threads);
