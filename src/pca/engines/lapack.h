/* The Fortran LAPACK that R was built with. This file's .c is the only place that sees R's headers outside the glue; no
 * routine called there raises an R error on valid sizes. */
#pragma once

#include "core/call/context.h"

/* The k leading eigenpairs, greatest first, of a symmetric tridiagonal matrix; `diagonal` and `off` (order each) are
 * destroyed. */
weft_status weft_pca_tridiagonal(weft_ctx *ctx, size_t order, double *diagonal, double *off, size_t k, double *values,
                                 double *vectors);
