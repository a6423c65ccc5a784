/* Numeric columns prepared for their pairs, and pairs with missing values; both back ends use them. */
#pragma once

#include "mi/matrix/both/numeric.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Prepares the columns for their pairs. What *ready points to is from `mem`, and `data` must outlive it. */
weft_status weft_mi_make_ready(weft_ctx *ctx, weft_arena *mem, const weft_mi_numeric *data, weft_mi_ready *ready);

/* Rows of x that are not missing, in increasing order of x, then of rows; returns how many. `other`: n words. */
uint32_t weft_mi_order(const double *x, size_t n, uint32_t *order, uint32_t *other);

double weft_mi_lower_quantile(double p); /* Φ⁻¹(p) for p in (0, 1/2] */

/* Takes one thread's room for pairs of n rows with missing values from `mem`. */
weft_status weft_mi_scratch_take(weft_arena *mem, size_t n, weft_mi_scratch *scratch);

/* Information of columns i and j over their common rows: any estimator but Kendall. */
double weft_mi_incomplete_pair(const weft_mi_ready *ready, size_t i, size_t j, weft_mi_scratch *scratch);

#ifdef __cplusplus
}
#endif
