/* Sparse scores: how counts become scores, and selection from them. */
#pragma once

#include "regulation/regulation.h"

/* Sparse values, n × p by columns: rows of column g at starts[g] .. starts[g + 1] - 1. size: what each row's values are
 * divided by, or NULL. */
typedef struct {
  size_t n, p;
  const int32_t *starts, *rows;
  const double *values, *size;
} weft_regulation_counts_of;

/* The same scores: out, one for each stored value; absent, of each gene where nothing is stored. */
weft_status weft_regulation_cell_scores(weft_ctx *ctx, const weft_regulation_counts_of *x, const double *quantile,
                                        int32_t most, int16_t *out, int32_t *absent);

/* Selection with cells on the CPU, which `select` of its table leads to. */
weft_status weft_regulation_select_cells(weft_ctx *ctx, const weft_regulation_job *job, int32_t *choices);
