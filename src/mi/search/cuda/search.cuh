/* What the kernels of pairs and triples share: a pack on the device, the threshold, and the buffer of what reached it.
 *
 * A kernel scores its pairs exactly (fixed_point.h: whole numbers, so the same bits as on the CPU) and appends what is
 * not behind the threshold to a buffer; the host merges the buffer into its top-k, raises the threshold and goes on
 * with more tiles at a time. When more passes than the buffer holds, the host runs the same tiles again behind a higher
 * threshold, or fewer of them. */
#pragma once

#include "core/device/device.cuh"
extern "C" {
#include "mi/pairs/cuda/ternary.cuh"
#include "mi/search/search.h"
}

/* Bits of a class on the device are padded to whole steps of the tensor cores. */
#define STEP_BITS 256
#define STEP_WORDS 8

static inline uint32_t mi_padded_words(uint32_t rows) { return (rows + STEP_BITS - 1) / STEP_BITS * STEP_WORDS; }

#define MI_STRONGEST 64

struct weft_mi_resident {
  weft_ctx own; /* outlives the call that made it */
  weft_device_arena mem;
  uint32_t *planes;  /* plane_rows × words, class after class */
  uint32_t *margins; /* as the pack's */
  uint32_t *column, *class_rows;
  int64_t *table, *alone;
  int64_t strongest[MI_STRONGEST]; /* the greatest of `alone`, best first */
  size_t complete;                 /* attributes without missing values and codes: those that `alone` is about */
  uint32_t *class_word;            /* classes + 1 */
  uint32_t words;
  weft_mi_log f;  /* with the table on the device */
  uint8_t *tiles; /* one group, in the order of the shared memory of wgmma; made when first used */
  size_t tiles_first;
  int tiles_rows; /* an attribute: 1 as in binary_hopper.cu, 2 as in pairs/cuda/ternary_hopper.cu */
  uint32_t *from; /* of a copy with rows exchanged: for every bit of a row of planes, where it comes from */
};

/* A score is behind the threshold when it is lower, or equal with a higher index. */
struct mi_threshold {
  double score;
  uint64_t index;
  double min_mi, min_gain;
  int by_interaction;
  weft_mi_near near; /* on the device */
  uint64_t columns;  /* of pairs: an index is x * columns + y */
};

struct mi_hits {
  weft_scored *items;
  unsigned long long *count;
  uint64_t capacity;
};

/* Whether a tuple, of any order, reaches what the user asked for and is not behind the threshold. */
__device__ static inline int mi_passes(const mi_threshold &threshold, double mi, double gain, uint64_t index)
{
  const double score = threshold.by_interaction ? gain : mi;
  return mi >= threshold.min_mi && gain >= threshold.min_gain && score >= threshold.score &&
         !(score == threshold.score && index >= threshold.index);
}

__device__ static inline void mi_append(const mi_hits &hits, double score, uint64_t index)
{
  const unsigned long long at = atomicAdd(hits.count, 1ull);
  if (at < hits.capacity) {
    hits.items[at].score = score;
    hits.items[at].index = index;
  }
}

/* A pair: neighbours are left out. */
__device__ static inline void mi_offer(const mi_threshold &threshold, const mi_hits &hits, double mi, double gain,
                                       uint64_t index)
{
  if (!mi_passes(threshold, mi, gain, index)) return;
  if (threshold.near.chromosome &&
      weft_mi_is_near(&threshold.near, index / threshold.columns, index % threshold.columns))
    return;
  mi_append(hits, threshold.by_interaction ? gain : mi, index);
}

/* Attributes of two groups of a pack, on the two sides of tiles. */
struct mi_sides {
  const weft_mi_resident *resident;
  size_t first_a, first_b; /* first place of the groups */
  size_t count_a, count_b;
  size_t row_a, row_b; /* first row of planes */
  size_t columns, plane_rows;
  int same;
};

/* A side of the screen (pairs/cuda/ternary.cuh) as it lies in memory. */
__device__ static inline float4 words_of_side(weft_planes_side side)
{
  return make_float4(side.class0[0], side.class0[1], side.rows[0], side.rows[1]);
}
