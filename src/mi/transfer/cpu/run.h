/* A test of all pairs: passes of a back end, and what they decide. */
#pragma once

#include "mi/transfer/both/transfer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_transfer_job {
  const weft_column *columns;
  size_t n, genes;       /* rows and columns */
  const uint32_t *order; /* rows in the order of time, series after series */
  size_t samples;
  const uint32_t *starts; /* where series begin in `order`, and the end: series + 1 */
  size_t series;
  uint32_t lag, bins; /* bins: see codes.h */
  const uint32_t *sources, *targets;
  size_t source_count, target_count;
  size_t permutations; /* 0, or 2 and more: the first half says what is usual, the others how z is spread */
  uint64_t key;
  double fdr; /* edges have at most this q-value; without permutations it does not matter */
  double top; /* edges at most, and what else lies in the bin of the last one */
} weft_transfer_job;

/* Edges, in any order. te: plug-in bits. usual: the mean of permuted copies, as bits. */
typedef struct weft_transfer_edges {
  size_t count;
  uint32_t *source, *target;
  double *te, *usual, *z, *p, *q;
  double tested, significant; /* pairs with a score; those with a q-value up to fdr, whether or not they are here */
  double steps;
  uint32_t levels;
} weft_transfer_edges;

/* `mem` owns the edges' columns. */
weft_status weft_mi_transfer(weft_ctx *ctx, const weft_mi_ops *ops, const weft_transfer_job *job, weft_arena *mem,
                             weft_transfer_edges *out);

#ifdef __cplusplus
}
#endif
