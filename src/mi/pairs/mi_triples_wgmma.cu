/* Triples of attributes of at most three levels and two classes on Hopper's 1-bit tensor cores (wgmma, compute
 * capability 9.0a), with rows sorted by the level of the attribute that is held fixed: mi_triples.h. A tile is 64
 * attributes by 128, as in mi_planes_wgmma.cu; the levels of the fixed attribute are counted one after the other, and
 * each is screened before the next, from registers. What a level adds to the bound of a pair is kept in shared memory.
 *
 * Four warpgroups share a tile. The tensor cores count for one of them while the others screen, which takes longer: they
 * take turns, a level each, so that they never all wait for the same thing. With many rows a turn is shorter, since all
 * four must have had theirs before the ring of stages goes on.
 *
 * Nothing is scored here. What passes is noted, and scored by kernels of their own. */
#include <cmath>
#include "mi_triples.cuh"
#include "mi_tiles_wgmma.cuh"

#define STAGES 16
#define GROUPS 4
#define SCREENERS WEFT_TRIPLES_THREADS
#define SORTED_THREADS (SCREENERS + 32)
#define SUMS_BYTES (SCREENERS * WEFT_TRIPLES_PAIRS * 4)
#define SHARED_BYTES (STAGES * STAGE_BYTES + SUMS_BYTES)

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* c += popcounts of 64 rows of a and 128 of b over 256 bits; without `add`, c = these. */
__device__ static inline void mma_64x128x256(uint32_t (&c)[64], uint64_t a, uint64_t b, uint32_t add)
{
  asm volatile("{.reg .pred p; setp.ne.u32 p, %66, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n128k256.s32.b1.b1.and.popc "
               "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,"
               "%28,%29,%30,%31,"
               "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%"
               "57,%58,%59,%60,%61,%62,%63}, %64, %65, p;}\n"
               : R16(0), R16(16), R16(32), R16(48)
               : "l"(a), "l"(b), "r"(add));
}

/* Turns of the warpgroups: each waits for a barrier of its own, at which the one before arrives. */
struct turns { uint64_t of[GROUPS]; };

struct counter {
  ring<STAGES> *copies;
  turns *order;
  const uint8_t *stages;
  uint32_t group, step, visit;  /* step: k-steps since the start; visit: turns */
};

__device__ static inline bool speaks_for_warp() { return threadIdx.x % 32 == 0; }

__device__ static inline void free_stage(const counter &w)
{
  __syncwarp();
  if (speaks_for_warp()) barrier_arrive(&w.copies->empty[(w.step - 1) % STAGES]);
}

/* Counts a class of a level, of which `left` k-steps are left with those of the class behind it; `turn`: of these, the
 * k-steps of this turn. */
__device__ static inline void count_class(counter *w, uint32_t steps, uint32_t *left, uint32_t *turn, uint32_t *add,
                                          uint32_t (&c)[64])
{
  if (!steps) return;
#pragma unroll 1
  for (uint32_t s = 0; s < steps; s++) {
    const uint32_t at = w->step % STAGES;
    const uint8_t *from = w->stages + at * STAGE_BYTES;
    if (*turn == 0) {
      barrier_wait(&w->order->of[w->group], w->visit++ & 1);
      *turn = *left <= STAGES ? *left : STAGES / 2;
    }
    barrier_wait(&w->copies->full[at], w->step / STAGES & 1);
    hold(c);
    product_fence();
    mma_64x128x256(c, operand_descriptor(from + w->group / 2 * 64 * 32),
                   operand_descriptor(from + BLOCK_BYTES + w->group % 2 * BLOCK_BYTES), *add);
    product_commit();
    *add = 1;
    --*left;
    if (--*turn == 0) {
      __syncwarp();
      if (speaks_for_warp()) barrier_arrive(&w->order->of[(w->group + 1) % GROUPS]);
    }
    if (s > 0) { /* the step before is done: its stage is free */
      product_wait<1>();
      hold(c);
      free_stage(*w);
    }
    w->step++;
  }
  product_wait<0>();
  hold(c);
  free_stage(*w);
}

/* Words of rows in class 0 above rows of both classes. */
__device__ static inline void count_level(counter *w, uint32_t steps0, uint32_t steps1, uint32_t (&c)[64])
{
  uint32_t left = steps0 + steps1, turn = 0, add = 0;
  count_class(w, steps0, &left, &turn, &add, c);
#pragma unroll
  for (int i = 0; i < 64; i++) c[i] *= 65537u;
  count_class(w, steps1, &left, &turn, &add, c);
}

/* Adds what a level says of the thread's pairs to the sums. margins: of the tile's attributes of both sides. */
template <bool MANY>
__device__ static inline void screen_level(const uint32_t (&c)[64], const uint2 *margins_a, const uint2 *margins_b,
                                           uint32_t rows, float weight, uint32_t magic, float4 *sums)
{
  const uint2 of_a = __ldg(margins_a + weft_triples_a(threadIdx.x));
  const uint32_t a[2] = { of_a.x, of_a.y }, rest = rows - of_a.x - of_a.y;
  const uint4 *const two_of_b = (const uint4 *) (margins_b + weft_triples_b(threadIdx.x, 0));
#pragma unroll
  for (uint32_t four = 0; four < WEFT_TRIPLES_PAIRS / 4; four++) {
    float4 sum = sums[four * SCREENERS];
    float squares[4];
#pragma unroll
    for (uint32_t k = 0; k < 4; k += 2) {
      const uint32_t pair = 4 * four + k;
      const uint4 of_b = __ldg(two_of_b + weft_planes_b(0, pair) / 2);
      const uint32_t b[2][2] = { { of_b.x, of_b.y }, { of_b.z, of_b.w } };
#pragma unroll
      for (uint32_t e = 0; e < 2; e++) {
        const uint32_t both[4] = { c[weft_planes_register(pair + e, 0, 0)], c[weft_planes_register(pair + e, 0, 1)],
                                   c[weft_planes_register(pair + e, 1, 0)], c[weft_planes_register(pair + e, 1, 1)] };
        squares[k + e] = weft_triples_squares(both, a, b[e], rest, MANY, magic);
      }
    }
    sum.x = fmaf(weight, squares[0], sum.x);
    sum.y = fmaf(weight, squares[1], sum.y);
    sum.z = fmaf(weight, squares[2], sum.z);
    sum.w = fmaf(weight, squares[3], sum.w);
    sums[four * SCREENERS] = sum;
  }
}

/* A tile of a fixed attribute: false when nothing is in it. */
struct unit { uint32_t index, fixed, ta, tb; };

__device__ static inline bool unit_at(const mi_sorted &t, uint32_t k, tile_walk *walk, unit *u)
{
  const uint32_t index = (t.first + k) / t.tiles;
  if (index != u->index) { /* the walk begins anew */
    walk->base = 0;
    walk->group = 0;
    u->index = index;
    u->fixed = t.fixed[index];
  }
  return place_tile(&t.grid, walk, (t.first + k) % t.tiles, &u->ta, &u->tb) &&
         t.base + (u->ta + 1) * WEFT_PLANES_A > u->fixed + 1;
}

/* Whether any of the warpgroup's pairs of a tile is a triple with the fixed attribute. */
__device__ static inline bool has_triples(const mi_sorted &t, const unit &u, uint32_t group)
{
  const uint32_t a = t.base + u.ta * WEFT_PLANES_A + group / 2 * 32, b = t.base + u.tb * WEFT_PLANES_B + group % 2 * 64;
  return a + 31 > u.fixed && b + 63 > a && b < t.count;
}

/* Notes the thread's pairs whose sums reach the bar. */
template <bool GAINS>
__device__ static inline void note_passed(const mi_sorted &t, const unit &u, float base, const float4 *sums)
{
  const uint32_t a = t.base + u.ta * WEFT_PLANES_A + weft_triples_a(threadIdx.x),
                 b0 = t.base + u.tb * WEFT_PLANES_B;
  const float bar_mi = t.bar_mi + base, bar_gain = t.bar_gain + base;
  const float *const of_a = t.pairs + a * t.ld, *const of_fixed = t.pairs + u.fixed * t.ld;
  uint32_t passed = 0;
  float with_a = 0;
  if (GAINS) with_a = __ldg(of_fixed + a);
#pragma unroll 1
  for (uint32_t four = 0; four < WEFT_TRIPLES_PAIRS / 4; four++) {
    const float4 sum = sums[four * SCREENERS];
    const float of[4] = { sum.x, sum.y, sum.z, sum.w };
#pragma unroll
    for (uint32_t k = 0; k < 4; k += 2) {
      float bar[2] = { bar_mi, bar_mi };
      if (GAINS) { /* the interaction is what is said beyond the best of the pairs */
        const uint32_t b = b0 + weft_triples_b(threadIdx.x, 4 * four + k);
        const float2 both = __ldg((const float2 *) (of_a + b)), with_b = __ldg((const float2 *) (of_fixed + b));
        bar[0] = fmaxf(bar_mi, bar_gain + fmaxf(with_a, fmaxf(both.x, with_b.x)));
        bar[1] = fmaxf(bar_mi, bar_gain + fmaxf(with_a, fmaxf(both.y, with_b.y)));
      }
#pragma unroll
      for (uint32_t e = 0; e < 2; e++) passed |= (uint32_t) !(of[k + e] < bar[e]) << (4 * four + k + e);
    }
  }
  for (; passed; passed &= passed - 1) {
    const uint32_t b = b0 + weft_triples_b(threadIdx.x, (uint32_t) __ffs((int) passed) - 1);
    if (a <= u.fixed || b <= a || b >= t.count) continue;
    const uint32_t at = atomicAdd(t.passed.count, 1u);
    if (at < t.passed.capacity)
      t.passed.items[at] = (unsigned long long) u.fixed << 42 | (unsigned long long) a << 21 | b;
  }
}

template <bool GAINS, bool MANY>
__global__ static void __launch_bounds__(SORTED_THREADS, 1) screen_triples(const __grid_constant__ mi_sorted t)
{
  extern __shared__ __align__(1024) uint8_t stages[];
  __shared__ ring<STAGES> copies;
  __shared__ turns order;
  const uint32_t thread = threadIdx.x, warp_of_block = __shfl_sync(0xffffffffu, thread / 32, 0);
  if (thread == 0) {
    for (uint32_t s = 0; s < STAGES; s++) {
      barrier_init(&copies.full[s], 1);
      barrier_init(&copies.empty[s], SCREENERS / 32);
    }
    for (uint32_t g = 0; g < GROUPS; g++) barrier_init(&order.of[g], SCREENERS / 32 / GROUPS);
    barriers_made();
    for (uint32_t k = 0; k < SCREENERS / 32 / GROUPS; k++) barrier_arrive(&order.of[0]); /* the first turn */
  }
  __syncthreads();

  tile_walk walk = { 0, 0 };
  unit u = { UINT32_MAX, 0, 0, 0 };
  if (warp_of_block >= SCREENERS / 32) {
    uint32_t step = 0;
    if (thread == SCREENERS) for (uint32_t k = blockIdx.x; k < t.units; k += gridDim.x) {
      if (!unit_at(t, k, &walk, &u)) continue;
      const uint8_t *const planes = t.planes + u.index * t.bytes;
      const uint32_t steps = t.of[u.fixed].start[6];
      bring_tile(&copies, stages, planes + (size_t) u.ta * steps * BLOCK_BYTES,
                 planes + (size_t) u.tb * 2 * steps * BLOCK_BYTES, (int) steps, &step);
    }
    return;
  }

  float4 *const sums = (float4 *) (stages + STAGES * STAGE_BYTES) + thread;
  counter w = { &copies, &order, stages, warp_of_block / 4, 0, 0 };
  uint32_t c[64];
#pragma unroll
  for (int i = 0; i < 64; i++) c[i] = 0;
  for (uint32_t k = blockIdx.x; k < t.units; k += gridDim.x) {
    if (!unit_at(t, k, &walk, &u)) continue;
    const weft_triples_fixed *const of = t.of + u.fixed;
    const uint2 *const margins = t.margins + (size_t) u.index * 3 * t.room;
    const bool wanted = has_triples(t, u, w.group);
#pragma unroll
    for (uint32_t four = 0; four < WEFT_TRIPLES_PAIRS / 4; four++) sums[four * SCREENERS] = make_float4(0, 0, 0, 0);
#pragma unroll 1
    for (uint32_t level = 0; level < 3; level++) {
      const uint32_t start = __ldg(&of->start[2 * level]), middle = __ldg(&of->start[2 * level + 1]),
                     end = __ldg(&of->start[2 * level + 2]);
      if (end == start) continue;
      count_level(&w, middle - start, end - middle, c);
      if (!wanted) continue;
      screen_level<MANY>(c, margins + level * t.room + u.ta * WEFT_PLANES_A,
                         margins + level * t.room + u.tb * WEFT_PLANES_B, __ldg(&of->rows[level]),
                         __ldg(&of->weight[level]), t.magic, sums);
    }
    if (wanted) note_passed<GAINS>(t, u, __ldg(&of->base), sums);
  }
}

#else /* host side, and devices that never run it */
template <bool GAINS, bool MANY> __global__ static void screen_triples(const __grid_constant__ mi_sorted t) { (void) t; }
#endif

weft_status weft_mi_sorted_screen(weft_ctx *ctx, const mi_sorted *t, cudaStream_t s)
{
  static void (*const kernels[2][2])(const mi_sorted) = { { screen_triples<false, false>, screen_triples<false, true> },
                                                          { screen_triples<true, false>, screen_triples<true, true> } };
  void (*const kernel)(const mi_sorted) = kernels[t->pairs != NULL][t->many];
  weft_status st = WEFT_OK;
  int processors = 0;
  WEFT_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, ctx->device));
  WEFT_CUDA(weft_device_allow_shared((const void *) kernel, SHARED_BYTES));
  kernel<<<t->units < (uint32_t) processors ? t->units : (unsigned) processors, SORTED_THREADS, SHARED_BYTES, s>>>(*t);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}
