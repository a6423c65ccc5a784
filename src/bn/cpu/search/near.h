/* Which nodes may be whose parents, as lists that the files of the search share; candidates.c makes them. */
#pragma once

#include "bn/bn.h"

/* The candidates of i are node[start[i] .. start[i + 1] - 1]; i is a candidate of kid[kid_start[i] ..
 * kid_start[i + 1] - 1]. */
typedef struct weft_bn_near {
  uint8_t *is; /* [child, parent] */
  size_t *start, *kid_start;
  int32_t *node, *kid;
  uint8_t *grown; /* p: gets a candidate by widening */
  size_t pairs, widest;
  /* Gaussian, where there is room: of each node, rows of its candidates' covariances with each other and with it, a row
   * of its own with them, a row of their variances; and what each candidate adds as an edge. NULL elsewhere. */
  double *covariance;
  size_t *covariance_start;
  int64_t *share;
} weft_bn_near;

/* Nodes as bits of one word, which 64 nodes apart share. */
static inline uint64_t weft_bn_bit(int32_t node) { return UINT64_C(1) << (node & 63); }

/* Candidates that gauss.c scores at once; rows of covariances are that much longer, up to a multiple of it. */
#define WEFT_BN_GAUSS_LANES 16
static inline size_t weft_bn_near_stride(const weft_bn_near *near, size_t i)
{
  return (near->start[i + 1] - near->start[i] + WEFT_BN_GAUSS_LANES) / WEFT_BN_GAUSS_LANES * WEFT_BN_GAUSS_LANES;
}

/* Puts v into the ascending set of m members. */
static inline void weft_bn_set_insert(size_t *set, size_t m, size_t v)
{
  while (m > 0 && set[m - 1] > v) {
    set[m] = set[m - 1];
    m--;
  }
  set[m] = v;
}
