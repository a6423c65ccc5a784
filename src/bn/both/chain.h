/* The lists of sets that chains walk through, and where they start; see cpu/chains/chain.c. */
#pragma once

#include "bn/bn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Weights of a node's sets relative to `reference`, in chunks of 64 (order_by_sum.c). Once a set of a chunk fits, what
 * is added ends before chunk `stop`; `copies`: only looked at when a set of an earlier chunk fitted; `pick`: the first
 * one's place among the node's sets. */
#define WEFT_BN_CHUNK 64
typedef struct weft_bn_chunk {
  int64_t reference;
  uint32_t stop;
  int32_t copies, pick;
} weft_bn_chunk;
typedef struct weft_bn_weights {
  uint32_t *begin; /* p + 1: chunks of a node */
  weft_bn_chunk *chunk;
  uint64_t *mask; /* words per set; where a chunk has no set, masks that never fit */
  double *weight;
  size_t count; /* chunks */
} weft_bn_weights;

typedef struct weft_bn_lists {
  const weft_bn_table *table;
  size_t p, words;
  uint64_t *users; /* p × words: nodes that have a set with this parent */
  double unit;
  weft_bn_weights *weights; /* sum */
  /* layers */
  uint64_t *offered;     /* p × words: nodes that are in some set of this one */
  double *log_factorial; /* of 0 .. p */
  /* graphs: sets by their members, each its number + 1 among all; the largest set */
  uint32_t *index;
  size_t index_last, largest;
  double *light;    /* weights of sets, relative to the first of their node */
  uint64_t *strong; /* p × words: nodes that much of the weight of a node's sets asks for */
} weft_bn_lists;

/* The lists of a table, in `mem`; `sum`: with weights. */
weft_status weft_bn_lists_make(weft_arena *mem, const weft_bn_table *table, int sum, weft_bn_lists *out);
/* Fills in the orders to start from, p × replicas, and checks those given. */
weft_status weft_bn_start_orders(weft_ctx *ctx, const weft_bn_lists *lists, const weft_bn_run *run, int32_t *order);

#ifdef __cplusplus
}
#endif
