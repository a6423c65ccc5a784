/* The law of `shape` when groups are permuted within strata. */
#pragma once

#include "ranking/ranking.h"

typedef struct weft_ranking_null {
  size_t strata, groups;
  const int32_t *sizes; /* groups × strata: samples of each group in each stratum */
  size_t draws;         /* permutations, where the law is not summed */
  uint64_t key;
} weft_ranking_null;

/* How many tables the exact law has, 0 where it would take too long or there are more than two groups. */
size_t weft_ranking_law_size(const weft_ranking_null *null);
/* Statistics and probabilities of that many tables, in no order. */
weft_status weft_ranking_law(weft_ctx *ctx, const weft_ranking_null *null, double *statistic, double *probability);
/* Statistics of `draws` permutations. */
weft_status weft_ranking_permuted(weft_ctx *ctx, const weft_ranking_null *null, double *statistic);
