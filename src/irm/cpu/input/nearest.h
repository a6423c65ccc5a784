/* Each row's nearest centre; see nearest.c. */
#pragma once

#include "core/call/context.h"

/* x: n x d and centres: m x d, by columns, m > 0; near[i]: from 1, the first of those that are equally near. */
weft_status weft_irm_nearest(weft_ctx *ctx, const double *x, size_t n, size_t d, const double *centres, size_t m,
                             int32_t *near);
