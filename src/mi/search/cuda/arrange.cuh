/* Planes of attributes of at most three levels with their rows of data in any order, arranged for Hopper's tensor cores
 * (pairs/cuda/ternary.cuh): the bits of all planes of each row of data are put together once; for whatever order is
 * wanted, words of 32 rows of data are then loaded together and transposed. */
#pragma once

#include "core/device/device.cuh"
extern "C" {
#include "mi/pairs/cuda/ternary.cuh"
#include "mi/search/search.h"
#include "mi/search/cuda/hopper_layout.cuh"
}

#define ARRANGE_THREADS 256
#define ARRANGE_WARPS (ARRANGE_THREADS / 32)
#define ARRANGED_PLANES 2  /* of an attribute */
#define NOWHERE UINT32_MAX /* a bit behind the end */

/* Attributes in order of place. */
struct arranged_planes {
  const uint32_t *planes; /* the pack's, `words` per row */
  uint32_t words;
  const uint32_t *plane_row; /* [plane][place], UINT32_MAX where there is none */
  size_t count, room;        /* attributes, and rounded up to whole tiles */
  uint32_t *by_bit;          /* [bit of a row of planes][32 arranged rows] */
};

/* Bit i of lane k's word becomes bit k of lane i's: blocks across the diagonal change places, ever smaller ones. */
__device__ static inline uint32_t transposed(uint32_t x)
{
  const uint32_t lane = threadIdx.x % 32;
  uint32_t low = 0x0000ffffu;
#pragma unroll
  for (uint32_t d = 16; d; d /= 2, low ^= low << d) {
    const uint32_t y = __shfl_xor_sync(0xffffffffu, x, (int) d);
    x = lane & d ? (x & ~low) | (y >> d & low) : (x & low) | (y & low) << d;
  }
  return x;
}

/* Takes memory for and makes what is above of a pack whose attributes have at most two planes. */
weft_status weft_mi_arranged_begin(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                   const weft_mi_resident *resident, arranged_planes *out);
/* The same with the attribute of place order[k] in place of attribute k; NULL: in order. */
weft_status weft_mi_arranged_in_order(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack,
                                      const weft_mi_resident *resident, const uint32_t *order, arranged_planes *out);

/* A warp arranges a block of 128 rows of planes: pieces first .. end-1 of 128 bits, whose rows of data `from` lists, of
 * rows that have `steps` k-steps. Each lane loads the bits of one row of data and gets words of 32 bits of four rows,
 * whose set bits it adds to `count`. */
__device__ static inline void arrange_run(const arranged_planes &arranged, const uint32_t *from, size_t block,
                                          uint32_t first, uint32_t end, uint32_t steps, uint8_t *out,
                                          uint32_t (&count)[4])
{
  const uint32_t lane = threadIdx.x % 32;
  const uint4 *const bits = (const uint4 *) arranged.by_bit + block;
  const size_t across = ARRANGED_PLANES * arranged.room / 128;
  for (uint32_t piece = first; piece < end; piece++) {
    uint32_t made[4][4]; /* [row][word] */
#pragma unroll
    for (int w = 0; w < 4; w++) {
      const uint32_t bit = from[(size_t) piece * 128 + w * 32 + lane];
      uint4 of = { 0, 0, 0, 0 };
      if (bit != NOWHERE) of = __ldg(&bits[bit * across]);
      made[0][w] = transposed(of.x);
      made[1][w] = transposed(of.y);
      made[2][w] = transposed(of.z);
      made[3][w] = transposed(of.w);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      *(uint4 *) (out + piece_offset(block * 128 + i * 32 + lane, piece, steps)) =
          make_uint4(made[i][0], made[i][1], made[i][2], made[i][3]);
      for (int w = 0; w < 4; w++) count[i] += (uint32_t) __popc(made[i][w]);
    }
  }
}

/* Bytes of the arranged planes of `room` attributes when each row has `bits` bits. */
static inline size_t arranged_bytes_of(size_t room, size_t bits) { return ARRANGED_PLANES * room * bits / 8; }
