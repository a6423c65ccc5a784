/* Data without components, with which those of given data are compared (R/pca-choose.R). */
#pragma once

#include "core/call/context.h"
#include "core/numbers/draws.h"

/* Every column of x in the order of draws of its own or, with `mean` (one per column), each value less that and with a
 * sign of its own: draw i + j n is of row i of column j. */
weft_status weft_pca_null(weft_ctx *ctx, const double *x, size_t n, size_t p, weft_rng rng, const double *mean,
                          double *out);
