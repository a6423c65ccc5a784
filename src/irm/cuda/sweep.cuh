/* What the files of the device's sweep share; see sweep.cu. Compiled without contraction, so that the scores and
 * draws are the CPU's, bit by bit. */
#pragma once

#include "irm/limits.h"
#include "core/device/device.cuh"
#include "irm/both/state.h"
#include "irm/both/units.h"

#define FULL 0xffffffffu
#define PLANES 3 /* a table's values in signed bytes: v = p0 + 2^8 p1 + 2^16 p2 */
#define LIGHT_CLUSTERS WEFT_IRM_LIGHT_CLUSTERS

/* The tables of one mode on the device; `width` clusters per row, a multiple of 128, zero in the padding. */
struct irm_device_tables {
  int32_t k, k_other, width;
  double *link, *missing; /* k_other rows; missing NULL: no pair is */
  uint8_t *planes;        /* [plane][m / 4][l][m % 4] */
  uint8_t *tiles;         /* the same for wgmma, or NULL */
  double *base;           /* units, the greatest 0; -Inf in the padding */
  int32_t *base_narrow;
  double *nats; /* scratch */
};

/* Nodes of a shard that are scored in 32 bits. */
struct irm_light_job {
  irm_device_tables t;
  const uint32_t *start;
  const int32_t *to, *weight, *order; /* order: the nodes, from 0 in the shard, by degree */
  int32_t count;
  const uint16_t *other;
  uint16_t *labels; /* of the shard's first node on */
  weft_rng rng;
  uint64_t index; /* of the shard's first node */
};

/* WEFT_DEVICE_TAKE for an element of an array. */
template <typename T> static T *take_into(weft_device_arena *mem, T *&p, size_t count)
{
  return p = (T *) weft_device_take(mem, count, sizeof *p);
}

#define TAKE_AT(p, arena, count) \
  do { \
    if (!take_into((arena), p, (count))) { \
      st = (arena)->opened != WEFT_OK ? (arena)->opened : WEFT_ERR_MEMORY; \
      goto done; \
    } \
  } while (0)

#ifdef __CUDACC__

/* The greatest of a chunk's scores, the sum of its weights, and the label in it that u picks: the lane holds columns
 * lane + 32 i. All lanes get the same. */
struct irm_chunk {
  uint64_t total;
  int32_t most, label;
};

/* The warp together: weights by distance from the greatest score, then the label at u of their sum, by columns
 * modulo 8 first, as everywhere (units.h). */
__device__ static inline irm_chunk irm_pick_chunk(const int32_t (&s)[4], double u)
{
  const uint32_t lane = threadIdx.x % 32;
  irm_chunk out;
  int32_t most = max(max(s[0], s[1]), max(s[2], s[3]));
  for (int half = 16; half; half /= 2) most = max(most, __shfl_xor_sync(FULL, most, half));
  uint32_t w[4];
  uint64_t sum = 0;
  for (int i = 0; i < 4; i++) sum += w[i] = irm_weight((uint32_t) most - (uint32_t) s[i]);
  sum += __shfl_xor_sync(FULL, sum, 8);
  sum += __shfl_xor_sync(FULL, sum, 16);
  uint64_t reached = sum; /* over columns 0 .. lane % 8 */
  for (int step = 1; step < 8; step *= 2) {
    const uint64_t before = __shfl_up_sync(FULL, reached, step, 8);
    if (lane % 8 >= (uint32_t) step) reached += before;
  }
  out.most = most;
  out.total = __shfl_sync(FULL, reached, 7);
  out.label = 0;
  uint64_t target = (uint64_t) (u * (double) out.total);
  const uint32_t group = __popc(__ballot_sync(FULL, reached <= target) & 0xffu);
  target -= __shfl_sync(FULL, reached - sum, group);
  bool found = false;
  for (int i = 0; i < 4; i++) { /* the group's values in increasing column */
    uint64_t x = w[i];
    const uint64_t one = __shfl_up_sync(FULL, x, 8);
    if (lane >= 8) x += one;
    const uint64_t two = __shfl_up_sync(FULL, x, 16);
    if (lane >= 16) x += two;
    const uint32_t over = __ballot_sync(FULL, target < x) & (0x01010101u << group);
    if (!found && over) {
      out.label = 32 * i + __ffs(over) - 1;
      found = true;
    }
    target -= found ? 0 : __shfl_sync(FULL, x, 24 + group);
  }
  return out;
}

/* Which of the chunks u picks: by their sums, less their distances from the greatest. */
template <typename Chunk> __device__ static inline int irm_pick_among(int chunks, double u, Chunk chunk)
{
  double all = 0, reached = 0;
  int chosen = 0;
  int32_t top = chunk(0).most;
  if (chunks == 1) return 0;
  for (int c = 1; c < chunks; c++) top = max(top, chunk(c).most);
  for (int c = 0; c < chunks; c++)
    all += (double) chunk(c).total * irm_weight((uint32_t) top - (uint32_t) chunk(c).most);
  const double target = u * all;
  for (int c = 0; c < chunks && target >= reached; c++) {
    const double share = (double) chunk(c).total * irm_weight((uint32_t) top - (uint32_t) chunk(c).most);
    reached += share;
    if (share > 0) chosen = c;
  }
  return chosen;
}

#endif
