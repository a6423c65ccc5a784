/* How much information chance gives: the distribution of a table's score when class labels are assigned to the rows at
 * random. */
#pragma once

#include "mi/pack/pack.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is known of each attribute's test. `p`: the probability of at least as high a score, or NaN. `statistic`: what
 * has, where p is NaN, the chi-squared distribution with df degrees of freedom, or NaN where 2 n I does after
 * correction: G divided by 1 + correction / df, with correction = (n Σ 1/n_a - 1)(n Σ 1/n_c - 1) / 6n (Williams 1976).
 * `log_table`: log of the probability of the attribute's own table and of those that only differ in the order of levels
 * with the same margin, which p is at least, or NaN. `error`: the relative standard error of a p-value from random
 * tables, or NaN. */
typedef struct weft_mi_tests {
  double *p, *statistic, *correction, *log_table, *error;
} weft_mi_tests;

/* Tests the attributes `columns` (numbers from 0) of a pack with classes; exact_test.c says how. */
weft_status weft_mi_null(weft_ctx *ctx, const weft_mi_pack *pack, const uint32_t *columns, size_t count,
                         const weft_mi_tests *out);

#ifdef __cplusplus
}
#endif
