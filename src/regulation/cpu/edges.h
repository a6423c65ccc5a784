/* From choices to edges. */
#pragma once

#include "regulation/regulation.h"

typedef struct weft_regulation_chosen {
  size_t regulators, targets, worlds, halves, steps;
  const int32_t *choices;
  size_t world; /* 0: the data; else the null copy */
} weft_regulation_chosen;

/* counts[t]: how many regulators were ever chosen for target t. sums, squares: of each regulator's areas (below), over
 * targets. */
weft_status weft_regulation_counts(weft_ctx *ctx, const weft_regulation_chosen *chosen, double *counts, double *sums,
                                   double *squares);

/* Edges of target t at starts[t] .. starts[t + 1] - 1, by regulator. area: sum over halves of steps - step;
 * signed_area: with the sign of the effect; times: in how many halves; both: in how many pairs of halves twice. */
typedef struct {
  int32_t *regulator, *target, *area, *signed_area, *times, *both;
} weft_regulation_edges;

weft_status weft_regulation_list(weft_ctx *ctx, const weft_regulation_chosen *chosen, const double *starts,
                                 const weft_regulation_edges *out);
