/* Small sets of parents in full; see small_sets.c. */
#pragma once

#include "bn/cpu/search/scorer.h"
#include "bn/cpu/search/search.h"

/* All sets of few candidates that can be the best, best first: what greedy growth misses where only two parents
 * together are informative. Set k of node i, from start[i] on: member[width * k ..], -1 after the last. */
typedef struct weft_bn_listed {
  size_t *start, width;
  int64_t *score;
  uint64_t *bits; /* of the members (weft_bn_bit) */
  int32_t *member;
} weft_bn_listed;

/* Lists them in `mem`; width 0 when search->listed is 0. */
weft_status weft_bn_listed_make(weft_ctx *ctx, weft_arena *mem, const weft_bn_search *search, const weft_bn_near *near,
                                weft_bn_scorer *scorers, weft_bn_listed *out);
