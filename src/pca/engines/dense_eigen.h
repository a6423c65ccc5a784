/* Small decompositions on the host. */
#pragma once

#include <stddef.h>
#include "core/call/context.h"

/* The k leading eigenpairs, greatest first, of the symmetric order × order matrix `a`, which is destroyed. */
weft_status weft_pca_leading(weft_ctx *ctx, double *a, size_t order, size_t k, double *values, double *vectors);

/* a = left diag(values) right', all order × order; small values keep the accuracy of the largest. `a` is kept. */
weft_status weft_pca_svd(weft_ctx *ctx, const double *a, size_t order, double *values, double *left, double *right);

/* The k leading triplets (left, right: order × k), by eigenvectors of a a' and a Rayleigh-Ritz step; by weft_pca_svd()
 * when that leaves residuals above tol × the largest value. `a` is kept. */
weft_status weft_pca_svd_leading(weft_ctx *ctx, const double *a, size_t order, size_t k, double tol, double *values,
                                 double *left, double *right);
