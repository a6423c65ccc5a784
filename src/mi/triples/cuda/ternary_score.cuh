/* What pairs say, and exact scores of the triples that passed; see ternary_score.cu. */
#pragma once

#include "mi/triples/cuda/ternary.cuh"

/* What pairs say. */
struct mi_sorted_pairs {
  mi_placed p;
  const uint32_t *margins; /* [plane][position]: words */
  size_t ld;
  weft_mi_log f;
  int64_t class_fixed;
  float *pairs;             /* in n bits, both (i, j) and (j, i); NULL: not wanted */
  uint4 *words;             /* of planes of both, where the first comes before the second */
  unsigned long long *best; /* in fixed point */
};

/* Exact scores of what passed, by a warp each. Nothing when more passed than there was room for: they come again. */
struct mi_sorted_scores {
  mi_placed p;
  mi_candidates passed;
  const uint32_t *margins; /* as in mi_sorted_pairs, and these two */
  const uint4 *words;
  const float *pairs;
  size_t ld;
  uint32_t all; /* rows, a word */
  uint64_t n;
  double min_mi, min_gain, share; /* min_gain: lower by what the pairs' rounding takes; share: 1 / n */
  const uint32_t *column;         /* by position */
  uint64_t columns;
  weft_mi_log f;
  int64_t class_fixed;
  mi_threshold threshold;
  mi_hits hits;
};

/* Launches the counting of all pairs of attributes, once for a search. */
weft_status weft_mi_sorted_pairs(weft_ctx *ctx, const mi_sorted_pairs *args, cudaStream_t stream);
/* Launches the exact scores of the triples that passed, and appends what is not behind the threshold to the hits. */
weft_status weft_mi_sorted_score(weft_ctx *ctx, const mi_sorted_scores *args, cudaStream_t stream);
