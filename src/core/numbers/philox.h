/* Philox4x32-10: 128 random bits as a function of a 64-bit key and a 128-bit counter (Salmon, Moraes, Dror and Shaw,
 * "Parallel random numbers: as easy as 1, 2, 3", SC 2011). No state: any block is reached at once, by any thread.
 *
 *   counter word     0          1          2         3
 *                 +----------+----------+---------+---------+
 *                 |   index, low, high  | stream  | sub     |
 *                 +----------+----------+---------+---------+
 *   key word      0: low, 1: high
 *
 * cuRAND's curandStatePhilox4_32_10 gives the same words in the same order from
 *   curand_init(seed = key, subsequence = stream + sub * 2^32, offset = 4 * index) and curand4(), index < 2^62. */
#pragma once

#include "core/numbers/math.h"

typedef struct {
  uint32_t v[4];
} weft_u32x4;

/* Philox4x32-10 (Salmon and others 2011): 128 random bits as a function of key and counter (index, stream, sub), with
 * no state. The ten rounds mix by 32-bit products. */
static WEFT_HD inline weft_u32x4 weft_philox(uint64_t key, uint64_t index, uint32_t stream, uint32_t sub)
{
  uint32_t k0 = (uint32_t) key, k1 = (uint32_t) (key >> 32);
  uint32_t c0 = (uint32_t) index, c1 = (uint32_t) (index >> 32), c2 = stream, c3 = sub;
  weft_u32x4 block;
  for (int round = 0; round < 10; round++) {
    uint64_t a = (uint64_t) 0xD2511F53u * c0, b = (uint64_t) 0xCD9E8D57u * c2;
    c0 = (uint32_t) (b >> 32) ^ c1 ^ k0;
    c1 = (uint32_t) b;
    c2 = (uint32_t) (a >> 32) ^ c3 ^ k1;
    c3 = (uint32_t) a;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  block.v[0] = c0;
  block.v[1] = c1;
  block.v[2] = c2;
  block.v[3] = c3;
  return block;
}

/* An odd multiple of 2^-53: in the open interval (0, 1), symmetric about 1/2, and every value exact. The last of the 53
 * bits is set rather than drawn: (k + 1/2) 2^-53 for all 53-bit k would round to 1 at the upper end. */
static WEFT_HD inline double weft_u01(uint32_t hi, uint32_t lo)
{
  uint64_t bits = (((uint64_t) hi << 32) | lo) >> 11;
  return weft_mul((double) (bits | 1), 1.0 / 9007199254740992.0);
}
