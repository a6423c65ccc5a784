/* How much information chance gives: the distribution of a table's score when class labels are assigned to the rows at
 * random. */
#pragma once

#include "pack/mi_pack.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For attributes `columns` (numbers from 0) of a pack with classes. p[i]: the probability of at least as high a score,
 * exact or simulated as mi_null.c says, or NaN where chi-squared with a correction is as good.
 * correction[i] = (n Σ 1/n_a - 1)(n Σ 1/n_c - 1) / 6n: G divided by 1 + correction / df is nearer to chi-squared with
 * df degrees of freedom (Williams 1976). */
weft_status weft_mi_null(weft_ctx *ctx, const weft_mi_pack *pack, const uint32_t *columns, size_t count, double *p,
                         double *correction);

#ifdef __cplusplus
}
#endif
