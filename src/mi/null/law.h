/* What the laws of a table's score with fixed margins share: walk.h (exact), smooth.h (an approximation) and sample.h
 * (random tables). exact_test.c says which is used. */
#pragma once

#include "core/call/arena.h"
#include "core/numbers/math.h"

/* Margins of a table, the least first, and logarithms that depend on no table. */
typedef struct weft_mi_margins {
  const uint32_t *levels, *classes;
  uint32_t l, k;
  uint64_t n;
} weft_mi_margins;

typedef struct weft_mi_logs {
  double *factorial; /* log x!, x = 0 .. known - 1 */
  double *entropy;   /* x log x */
  size_t known;
} weft_mi_logs;

/* Distinct margins of a table: r and c, of which m levels and w classes have each. */
#define WEFT_MI_MAX_GROUPS 48  /* of classes, which have fewer groups than levels */
#define WEFT_MI_MAX_CELLS 2048 /* groups of levels by groups of classes: enough for any table of 1,000 rows */
typedef struct weft_mi_groups {
  uint32_t g_count, h_count;
  double n, r[WEFT_MI_MAX_CELLS], c[WEFT_MI_MAX_GROUPS], m[WEFT_MI_MAX_CELLS], w[WEFT_MI_MAX_GROUPS];
} weft_mi_groups;
