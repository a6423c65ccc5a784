/* Tiles of 128 rows of bits by 256 on Hopper's 1-bit tensor cores: what the kernels over pairs have in common.
 *
 * Two warpgroups own 64 rows each; a producer warp brings the rows by bulk copies through a ring of stages, one k-step
 * of 256 bits per stage, and runs ahead into the next tile while this one is scored:
 *
 *   stage   | a: 128 × 32 bytes | b: 256 × 32 bytes |
 *
 * Rows lie in global memory in the order of shared memory (hopper_layout.cuh), so a stage is straight copies. */
#pragma once

#include "mi/search/cuda/search.cuh"
#include "core/device/hopper.cuh"
#include "mi/search/cuda/hopper_layout.cuh"

#define CONSUMERS 256
#define THREADS (CONSUMERS + 32)
#define SCREENING_THREADS (CONSUMERS + 128) /* registers go from warpgroup to warpgroup: the producer is one */

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Each of SCREENING_THREADS starts with 168 registers: the producer's warpgroup gives some away, the others take them.
 */
__device__ static inline void give_registers(void) { asm volatile("setmaxnreg.dec.sync.aligned.u32 24;"); }
__device__ static inline void take_registers(void) { asm volatile("setmaxnreg.inc.sync.aligned.u32 240;"); }

/* c += popcounts of 64 rows of a and 256 of b over 256 bits. */
__device__ static inline void mma_64x256x256(uint32_t (&c)[128], uint64_t a, uint64_t b)
{
  asm volatile("{.reg .pred p; setp.eq.u32 p, 0, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n256k256.s32.b1.b1.and.popc "
               "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,"
               "%28,%29,%30,%31,"
               "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%"
               "57,%58,%59,%60,%61,%62,%63,"
               "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%"
               "89,%90,%91,%92,%93,%94,%95,"
               "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%"
               "117,%118,%119,%120,%121,"
               "%122,%123,%124,%125,%126,%127}, %128, %129, p;}\n"
               : R16(0), R16(16), R16(32), R16(48), R16(64), R16(80), R16(96), R16(112)
               : "l"(a), "l"(b));
}

/* Stages that are full and that are empty. */
template <uint32_t STAGES> struct ring {
  uint64_t full[STAGES], empty[STAGES];
};

/* Makes the ring; all threads of a block call this. A stage is empty again after `arrivals` arrivals. */
template <uint32_t STAGES> __device__ static inline void make_ring(ring<STAGES> *copies, uint32_t arrivals = CONSUMERS)
{
  if (threadIdx.x == 0) {
    for (uint32_t s = 0; s < STAGES; s++) {
      barrier_init(&copies->full[s], 1);
      barrier_init(&copies->empty[s], arrivals);
    }
    barriers_made();
  }
  __syncthreads();
}

/* Loads k-steps first .. end-1 of a tile's rows, which have `steps`, by one thread. *step: k-steps since the start,
 * which give stage and phase of the ring. */
template <uint32_t STAGES>
__device__ static inline void bring_steps(ring<STAGES> *copies, uint8_t *stages, const uint8_t *a, const uint8_t *b,
                                          int steps, int first, int end, uint32_t *step)
{
  for (int s = first; s < end; s++, ++*step) {
    const uint32_t at = *step % STAGES;
    if (*step >= STAGES) barrier_wait(&copies->empty[at], (*step / STAGES - 1) & 1);
    barrier_expect(&copies->full[at], STAGE_BYTES);
    uint8_t *to = stages + at * STAGE_BYTES;
    bulk_copy(to, a + (size_t) s * BLOCK_BYTES, BLOCK_BYTES, &copies->full[at]);
    bulk_copy(to + BLOCK_BYTES, b + (size_t) s * BLOCK_BYTES, BLOCK_BYTES, &copies->full[at]);
    bulk_copy(to + 2 * BLOCK_BYTES, b + (size_t) (steps + s) * BLOCK_BYTES, BLOCK_BYTES, &copies->full[at]);
  }
}

/* All of them. */
template <uint32_t STAGES>
__device__ static inline void bring_tile(ring<STAGES> *copies, uint8_t *stages, const uint8_t *a, const uint8_t *b,
                                         int steps, uint32_t *step)
{
  bring_steps(copies, stages, a, b, steps, 0, steps, step);
}

/* Where a warpgroup is in a ring of stages, with its operands in the first of them. */
template <uint32_t STAGES> struct ring_place {
  ring<STAGES> *copies;
  uint64_t a, b;
  uint32_t at, phase;
};

template <uint32_t STAGES>
__device__ static inline ring_place<STAGES> first_place(ring<STAGES> *copies, const uint8_t *a, const uint8_t *b)
{
  const ring_place<STAGES> w = { copies, operand_descriptor(a), operand_descriptor(b), 0, 0 };
  return w;
}

/* An operand in the stage where the warpgroup is. */
template <uint32_t STAGES>
__device__ static inline uint64_t operand_at(const ring_place<STAGES> &w, uint64_t first, uint32_t bytes = STAGE_BYTES)
{
  return first + w.at * bytes / 16;
}

template <uint32_t STAGES> __device__ static inline void next_place(ring_place<STAGES> *w)
{
  if (++w->at == STAGES) {
    w->at = 0;
    w->phase ^= 1;
  }
}

/* Adds counts of so many k-steps, by all threads of a warpgroup: `start` begins a step's product. AT_ONCE of them are
 * started, `meanwhile` is called with their number while the tensor cores are at work (it must leave the accumulators
 * alone), and then their stages are given back together, by a lane each. */
template <uint32_t AT_ONCE, uint32_t STAGES, int COUNTS, class Start, class Meanwhile>
__device__ static inline void count_at_once(ring_place<STAGES> *w, uint32_t steps, uint32_t (&c)[COUNTS],
                                            const Start &start, const Meanwhile &meanwhile)
{
  const uint32_t lane = threadIdx.x % 32;
  if (!steps) return;
#  pragma unroll 1
  do {
    const uint32_t first = w->at, now = steps < AT_ONCE ? steps : AT_ONCE;
    uint32_t s = 0;
#  pragma unroll 1
    do {
      barrier_wait(&w->copies->full[w->at], w->phase);
      hold(c);
      product_fence();
      start(operand_at(*w, w->a), operand_at(*w, w->b));
      product_commit();
      next_place(w);
    } while (++s < now);
    meanwhile(now);
    product_wait<0>();
    hold(c);
    if (lane < now) barrier_arrive(&w->copies->empty[(first + lane) % STAGES]);
    steps -= now;
  } while (steps);
}

/* Adds a class's counts, by all threads of a warpgroup: `start` begins a step's product. BATCH of them at a time, and
 * while the tensor cores are at work, `meanwhile` is called with their number; it must leave the accumulators alone. A
 * warp gives a stage back by one arrival. */
template <int BATCH, uint32_t STAGES, int COUNTS, class Start, class Meanwhile>
__device__ static inline void count_batches(ring<STAGES> *copies, const uint8_t *stages, int steps, uint32_t *step,
                                            uint32_t (&c)[COUNTS], const Start &start, const Meanwhile &meanwhile)
{
  if (!steps) return;
  const bool first_lane = threadIdx.x % 32 == 0;
  for (int s = 0, started = 1; s < steps; s++, started++, ++*step) {
    const uint32_t at = *step % STAGES;
    barrier_wait(&copies->full[at], *step / STAGES & 1);
    hold(c);
    product_fence();
    start(stages + at * STAGE_BYTES);
    product_commit();
    if (started == BATCH || s == steps - 1) {
      meanwhile((uint32_t) started);
      started = 0;
    }
    if (s >= BATCH - 1) { /* the first of as many is done: its stage is free */
      product_wait<BATCH - 1>();
      hold(c);
      if (first_lane) barrier_arrive(&copies->empty[(*step - (BATCH - 1)) % STAGES]);
    }
  }
  product_wait<0>();
  hold(c);
  for (int k = steps < BATCH - 1 ? steps : BATCH - 1; k > 0; k--)
    if (first_lane) barrier_arrive(&copies->empty[(*step - (uint32_t) k) % STAGES]);
}

/* Adds a class's counts, step by step: by all threads of both warpgroups. */
template <uint32_t STAGES>
__device__ static inline void count_steps(ring<STAGES> *copies, const uint8_t *stages, int steps, uint32_t *step,
                                          uint32_t (&c)[128])
{
  if (!steps) return;
  const uint32_t own = threadIdx.x / 128 * 64 * 32; /* bytes before this warpgroup's rows */
  for (int s = 0; s < steps; s++, ++*step) {
    const uint32_t at = *step % STAGES;
    const uint8_t *from = stages + at * STAGE_BYTES;
    barrier_wait(&copies->full[at], *step / STAGES & 1);
    hold(c);
    product_fence();
    mma_64x256x256(c, operand_descriptor(from + own), operand_descriptor(from + BLOCK_BYTES));
    product_commit();
    if (s > 0) { /* the step before is done: its stage is free */
      product_wait<1>();
      hold(c);
      barrier_arrive(&copies->empty[(*step - 1) % STAGES]);
    }
  }
  product_wait<0>();
  hold(c);
  barrier_arrive(&copies->empty[(*step - 1) % STAGES]);
}

#endif
