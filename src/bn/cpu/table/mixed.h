/* Conditional Gaussian nodes: scores of numbers given categories and numbers; see mixed.c. */
#pragma once

#include "bn/both/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One thread's rows, sorted by the categories that are parents, and room for one configuration's numbers. */
typedef struct weft_bn_mixed {
  int32_t *row, *other, *end; /* n: rows; one past the last row of each configuration */
  uint32_t *count;            /* most levels + 1 */
  size_t sorted[WEFT_BN_MAX_PARENTS + 1], by, child, parts;
  int held;      /* the rows are sorted by `sorted`, `by` of them */
  double *value; /* (MAX_PARENTS + 2) × n */
} weft_bn_mixed;

weft_status weft_bn_mixed_make(weft_arena *mem, const weft_bn_ready *ready, weft_bn_mixed *out);
/* The score of a node of numbers, with its penalty and without what edges add; NEVER where there is none. */
int64_t weft_bn_mixed_value(const weft_bn_ready *ready, weft_bn_mixed *mixed, size_t i, const size_t *parents,
                            size_t m);

#ifdef __cplusplus
}
#endif
