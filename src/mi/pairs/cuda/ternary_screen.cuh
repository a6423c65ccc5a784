/* Packed counts of pairs of attributes of at most three levels (pairs/cuda/ternary.cuh) on Hopper: how a tile is
 * counted while the one before is screened. The tensor cores need nothing from a thread for hundreds of cycles after it
 * has started a step, and the screen needs nothing from them: its words lie in the thread's own part of shared memory.
 * Includers define SCREENED, how many pairs are screened at a time: many where the screen takes longer than the
 * products. */
#pragma once

#include "mi/search/cuda/tiles_hopper.cuh"

#define WORDS_BYTES (WEFT_PLANES_PAIRS * CONSUMERS * 16)

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* How far the screen of a thread's pairs has come. */
struct ternary_screen {
  uint32_t one, b0;    /* the thread's attribute of side a, the tile's first of side b */
  uint32_t at, passed; /* pairs seen, and a bit for each that may reach the threshold */
  weft_planes_side a;
  float threshold_gain;
};

__device__ static inline ternary_screen nothing_to_screen(void)
{
  ternary_screen none = { 0, 0, WEFT_PLANES_PAIRS, 0, { { 0, 0 }, { 0, 0 } }, 0 };
  return none;
}

__device__ static inline weft_planes_side load_side(const float4 *from)
{
  const float4 words = __ldg(from);
  weft_planes_side out = { { words.x, words.y }, { words.z, words.w } };
  return out;
}

/* The packed margins that a side was made of. */
__device__ static inline void words_of(weft_planes_side side, uint32_t (&out)[2])
{
#  pragma unroll
  for (int q = 0; q < 2; q++) out[q] = (uint32_t) side.class0[q] << 16 | (uint32_t) side.rows[q];
}

__device__ static inline float squares_of(uint4 four, weft_planes_side a, weft_planes_side b, uint32_t all)
{
  const uint32_t both[4] = { four.x, four.y, four.z, four.w };
  return weft_planes_squares(both, a, b, all);
}

/* A thread's counts, pair k's at k * CONSUMERS. */
__device__ static inline void put_all(const uint32_t (&c)[128], uint4 *mine)
{
#  pragma unroll
  for (uint32_t k = 0; k < WEFT_PLANES_PAIRS; k++)
    mine[k * CONSUMERS] = make_uint4(c[weft_planes_register(k, 0, 0)], c[weft_planes_register(k, 0, 1)],
                                     c[weft_planes_register(k, 1, 0)], c[weft_planes_register(k, 1, 1)]);
}

/* Words of rows in class 0 above rows of both classes: `steps` k-steps of each. */
template <int BATCH, uint32_t STAGES, class Meanwhile>
__device__ static inline void count_packed(ring<STAGES> *copies, const uint8_t *stages, const int *steps,
                                           uint32_t *step, uint32_t (&c)[128], const Meanwhile &meanwhile)
{
  const uint32_t own = threadIdx.x / 128 * 64 * 32; /* bytes before this warpgroup's rows */
  const auto start = [&](const uint8_t *from) {
    mma_64x256x256(c, operand_descriptor(from + own), operand_descriptor(from + BLOCK_BYTES));
  };
#  pragma unroll
  for (int i = 0; i < 128; i++) c[i] = 0;
#  pragma unroll 1
  for (int k = 0; k < 2; k++) {
#  pragma unroll
    for (int i = 0; i < 128; i++) c[i] *= 65537u;
    count_batches<BATCH>(copies, stages, steps[k], step, c, start, meanwhile);
  }
}

#endif
