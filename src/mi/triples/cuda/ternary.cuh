/* Triples with rows sorted by the fixed attribute's level, on Hopper: what the kernel that counts and screens
 * (ternary_hopper.cu), exact scores (ternary_score.cu) and the search (ternary.cu) have in common. */
#pragma once

#include "mi/search/cuda/progress.cuh"
#include "mi/search/cuda/arrange.cuh"
extern "C" {
#include "mi/triples/both/ternary.h"
}

#define MAX_FIXED 32    /* attributes held fixed in one launch */
#define FEW_THREADS 128 /* of blocks that have room beside one that screens */
#define TRIPLE_LEVELS 3

/* Triples that passed the screen: three positions in a number. */
struct mi_candidates {
  unsigned long long *items;
  uint32_t *count, capacity; /* count: that passed, also when more than there is room for */
};

/* Some fixed attributes, and all pairs of attributes from position `base` on behind each of them. Attributes go by
 * position here, the strongest first. */
struct mi_sorted {
  const uint8_t *planes;          /* [fixed]: arranged, sorted for this one */
  size_t bytes;                   /* of one */
  const weft_words_side *margins; /* [fixed][level][attribute from base on] */
  size_t room;                    /* attributes in `margins` */
  const weft_triples_fixed *of;   /* by position */
  uint32_t fixed[MAX_FIXED], fixed_count;
  uint32_t base, count;   /* count: of all attributes */
  tile_grid grid;         /* of attributes from base on */
  uint32_t tiles;         /* of one fixed attribute */
  uint32_t first, units;  /* of this launch: tiles of the first fixed attribute, then of the next */
  float bar_mi, bar_gain; /* in n bits */
  const float *pairs;     /* what pairs say, in n bits, count × ld; NULL: no bar for the interaction */
  size_t ld;
  int many;       /* more than WEFT_TRIPLES_FEW rows */
  uint32_t magic; /* WEFT_WORDS_MAGIC */
  mi_candidates passed;
};

/* A pack's planes by position. */
struct mi_placed {
  const uint32_t *planes;
  uint32_t words;
  const uint32_t *plane_row; /* [plane][position], UINT32_MAX where there is none */
  uint32_t count;
  uint32_t first[2], last[2]; /* words of a class */
  uint32_t class_rows[2];
};

/* A plane's word; rows of a class that are there, in a word of it. */
__device__ static inline uint32_t plane_word(const mi_placed &p, uint32_t position, uint32_t plane, uint32_t word)
{
  const uint32_t row = position < p.count ? __ldg(&p.plane_row[plane * p.count + position]) : UINT32_MAX;
  return row == UINT32_MAX ? 0 : __ldg(&p.planes[(size_t) row * p.words + word]);
}
__device__ static inline uint32_t valid_rows(const mi_placed &p, uint32_t c, uint32_t word)
{
  const uint32_t before = (word - p.first[c]) * 32;
  if (before >= p.class_rows[c]) return 0;
  return p.class_rows[c] - before >= 32 ? UINT32_MAX : (1u << (p.class_rows[c] - before)) - 1;
}

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
  mi_bar bar;
  mi_hits hits;
};

weft_status weft_mi_sorted_screen(weft_ctx *ctx, const mi_sorted *sorted, cudaStream_t stream);
weft_status weft_mi_sorted_pairs(weft_ctx *ctx, const mi_sorted_pairs *args, cudaStream_t stream);
weft_status weft_mi_sorted_score(weft_ctx *ctx, const mi_sorted_scores *args, cudaStream_t stream);
