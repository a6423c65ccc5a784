/* Triples of attributes of at most three levels and two classes on Hopper's 1-bit tensor cores (wgmma, compute
 * capability 9.0a), with rows sorted by the level of the attribute that is held fixed: triples/cuda/ternary_screen.cuh.
 * A tile is 64 attributes by 128, as in pairs/cuda/ternary_hopper.cu; the levels of the fixed attribute are counted one
 * after the other, and each is screened before the next, from registers. What a level adds to the bound of a pair is
 * kept in shared memory, to which the producer also brings the margins of a tile's attributes: as they are new in every
 * tile, threads would otherwise have to wait for them.
 *
 * Four warpgroups share a tile, each with a quarter of its counts in registers: the tensor cores count for one of them
 * while the others screen, which takes longer.
 *
 * Nothing is scored here. What passes is noted, and scored by kernels of their own. */
/* Build: hopper. */
#include <cmath>
#include "mi/triples/cuda/ternary.cuh"
#include "mi/search/cuda/tiles_hopper.cuh"
#include "mi/triples/cuda/ternary_hopper.cuh"

#define STAGES 14 /* a block of other kernels has room beside them */
#define SLOTS 2   /* of tiles' margins */
#define AT_ONCE 8 /* k-steps */
#define SCREENERS WEFT_TRIPLES_THREADS
#define SORTED_THREADS (SCREENERS + 32)
#define SUMS_BYTES (SCREENERS * WEFT_TRIPLES_PAIRS * 4)
#define SHARED_BYTES (STAGES * STAGE_BYTES + SUMS_BYTES + SLOTS * sizeof(tile_margins))

/* Words of a tile's attributes in every level. */
struct tile_margins {
  weft_words_side a[TRIPLE_LEVELS][WEFT_PLANES_A], b[TRIPLE_LEVELS][WEFT_PLANES_B];
};

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

/* Adds a class's counts; without `add`, what was there is discarded. */
__device__ static inline void count_class(ring_place<STAGES> *w, uint32_t steps, uint32_t *add, uint32_t (&c)[64])
{
  const auto start = [&](uint64_t a, uint64_t b) {
    mma_64x128x256(c, a, b, *add);
    *add = 1;
  };
  count_at_once<AT_ONCE>(w, steps, c, start, [](uint32_t) {});
}

/* Words of rows in class 0 above rows of both classes. */
__device__ static inline void count_level(ring_place<STAGES> *w, uint32_t steps0, uint32_t steps1, uint32_t (&c)[64])
{
  uint32_t add = 0;
  count_class(w, steps0, &add, c);
#  pragma unroll
  for (int i = 0; i < 64; i++) c[i] *= 65537u;
  count_class(w, steps1, &add, c);
}

/* Adds what a level says of the thread's pairs to the sums. a, b: the tile's attributes of both sides. */
template <bool MANY>
__device__ static inline void screen_level(const uint32_t (&c)[64], const weft_words_side *a, const weft_words_side *b,
                                           uint32_t rows, float weight, uint32_t magic, float4 *sums)
{
  const weft_words_side one = a[weft_triples_a(threadIdx.x)];
  const uint4 *const others = (const uint4 *) (b + weft_triples_b(threadIdx.x, 0)); /* of two pairs */
#  pragma unroll
  for (uint32_t four = 0; four < WEFT_TRIPLES_PAIRS / 4; four++) {
    float4 sum = sums[four * SCREENERS];
    float squares[4];
#  pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
      const uint32_t pair = 4 * four + k;
      const uint32_t both[4] = { c[weft_planes_register(pair, 0, 0)], c[weft_planes_register(pair, 0, 1)],
                                 c[weft_planes_register(pair, 1, 0)], c[weft_planes_register(pair, 1, 1)] };
      const uint4 two = others[weft_planes_b(0, pair) / 2];
      const weft_words_side other = { { pair % 2 ? two.z : two.x, pair % 2 ? two.w : two.y } };
      squares[k] = weft_words_squares(both, one, other, rows, MANY, magic);
    }
    sum.x = fmaf(weight, squares[0], sum.x);
    sum.y = fmaf(weight, squares[1], sum.y);
    sum.z = fmaf(weight, squares[2], sum.z);
    sum.w = fmaf(weight, squares[3], sum.w);
    sums[four * SCREENERS] = sum;
  }
}

/* A tile of a fixed attribute: false when nothing is in it. */
struct unit {
  uint32_t index, fixed, ta, tb;
};

__device__ static inline bool unit_at(const mi_sorted &sorted, uint32_t k, tile_walk *walk, unit *work)
{
  const uint32_t index = (sorted.first + k) / sorted.tiles;
  if (index != work->index) { /* the walk begins anew */
    walk->base = 0;
    walk->group = 0;
    work->index = index;
    work->fixed = sorted.fixed[index];
  }
  return place_tile(&sorted.grid, walk, (sorted.first + k) % sorted.tiles, &work->ta, &work->tb) &&
         sorted.base + (work->ta + 1) * WEFT_PLANES_A > work->fixed + 1;
}

/* Whether any of the warpgroup's pairs of a tile is a triple with the fixed attribute. */
__device__ static inline bool has_triples(const mi_sorted &sorted, const unit &work, uint32_t group)
{
  const uint32_t a = sorted.base + work.ta * WEFT_PLANES_A + group / 2 * 32,
                 b = sorted.base + work.tb * WEFT_PLANES_B + group % 2 * 64;
  return a + 31 > work.fixed && b + 63 > a && b < sorted.count;
}

/* Notes the thread's pairs whose sums reach the threshold. */
template <bool GAINS>
__device__ static inline void note_passed(const mi_sorted &sorted, const unit &work, float base, const float4 *sums)
{
  const uint32_t a = sorted.base + work.ta * WEFT_PLANES_A + weft_triples_a(threadIdx.x),
                 b0 = sorted.base + work.tb * WEFT_PLANES_B;
  const float threshold_mi = sorted.threshold_mi + base, threshold_gain = sorted.threshold_gain + base;
  const float *const of_a = sorted.pairs + a * sorted.ld, *const of_fixed = sorted.pairs + work.fixed * sorted.ld;
  uint32_t passed = 0;
  float with_a = 0;
  if (GAINS) with_a = __ldg(of_fixed + a);
#  pragma unroll 1
  for (uint32_t four = 0; four < WEFT_TRIPLES_PAIRS / 4; four++) {
    const float4 sum = sums[four * SCREENERS];
    const float of[4] = { sum.x, sum.y, sum.z, sum.w };
#  pragma unroll
    for (uint32_t k = 0; k < 4; k += 2) {
      float threshold[2] = { threshold_mi, threshold_mi };
      if (GAINS) { /* the interaction is what is said beyond the best of the pairs */
        const uint32_t b = b0 + weft_triples_b(threadIdx.x, 4 * four + k);
        const float2 both = __ldg((const float2 *) (of_a + b)), with_b = __ldg((const float2 *) (of_fixed + b));
        threshold[0] = fmaxf(threshold_mi, threshold_gain + fmaxf(with_a, fmaxf(both.x, with_b.x)));
        threshold[1] = fmaxf(threshold_mi, threshold_gain + fmaxf(with_a, fmaxf(both.y, with_b.y)));
      }
#  pragma unroll
      for (uint32_t e = 0; e < 2; e++) passed |= (uint32_t) !(of[k + e] < threshold[e]) << (4 * four + k + e);
    }
  }
  for (; passed; passed &= passed - 1) {
    const uint32_t b = b0 + weft_triples_b(threadIdx.x, (uint32_t) __ffs((int) passed) - 1);
    if (a <= work.fixed || b <= a || b >= sorted.count) continue;
    const uint32_t at = atomicAdd(sorted.passed.count, 1u);
    if (at < sorted.passed.capacity)
      sorted.passed.items[at] = (unsigned long long) work.fixed << 42 | (unsigned long long) a << 21 | b;
  }
}

__device__ static inline void bring_margins(const mi_sorted &sorted, const unit &work, tile_margins *to, uint64_t *full)
{
  const weft_words_side *from = sorted.margins + (size_t) work.index * TRIPLE_LEVELS * sorted.room;
  barrier_expect(full, sizeof *to);
  for (int level = 0; level < TRIPLE_LEVELS; level++, from += sorted.room) {
    bulk_copy(to->a[level], from + work.ta * WEFT_PLANES_A, sizeof to->a[level], full);
    bulk_copy(to->b[level], from + work.tb * WEFT_PLANES_B, sizeof to->b[level], full);
  }
}

/* One thread loads; four warpgroups count the tile's pairs within each level of the fixed attribute, add up the bound
 * level by level in shared memory, and note what reaches the threshold. */
template <bool GAINS, bool MANY>
__global__ static void __launch_bounds__(SORTED_THREADS, 1) screen_triples(const __grid_constant__ mi_sorted sorted)
{
  extern __shared__ __align__(1024) uint8_t stages[];
  __shared__ ring<STAGES> copies;
  __shared__ ring<SLOTS> filled;
  tile_margins *const slots = (tile_margins *) (stages + STAGES * STAGE_BYTES + SUMS_BYTES);
  const uint32_t thread = threadIdx.x, warp_of_block = __shfl_sync(0xffffffffu, thread / 32, 0);
  make_ring(&filled, SCREENERS);
  make_ring(&copies, SCREENERS / 32);

  tile_walk walk = { 0, 0 };
  unit work = { UINT32_MAX, 0, 0, 0 };
  uint32_t turn = 0; /* tiles since the start */
  if (warp_of_block >= SCREENERS / 32) {
    uint32_t step = 0;
    if (thread == SCREENERS)
      for (uint32_t k = blockIdx.x; k < sorted.units; k += gridDim.x) {
        if (!unit_at(sorted, k, &walk, &work)) continue;
        const uint8_t *const planes = sorted.planes + work.index * sorted.bytes;
        const uint32_t steps = sorted.of[work.fixed].start[6];
        if (turn >= SLOTS) barrier_wait(&filled.empty[turn % SLOTS], (turn / SLOTS - 1) & 1);
        bring_margins(sorted, work, &slots[turn % SLOTS], &filled.full[turn % SLOTS]);
        turn++;
        bring_tile(&copies, stages, planes + (size_t) work.ta * steps * BLOCK_BYTES,
                   planes + (size_t) work.tb * 2 * steps * BLOCK_BYTES, (int) steps, &step);
      }
    return;
  }

  float4 *const sums = (float4 *) (stages + STAGES * STAGE_BYTES) + thread;
  const uint32_t group = warp_of_block / 4;
  ring_place<STAGES> w =
      first_place(&copies, stages + group / 2 * 64 * 32, stages + BLOCK_BYTES + group % 2 * BLOCK_BYTES);
  uint32_t c[64];
#  pragma unroll
  for (int i = 0; i < 64; i++) c[i] = 0;
  for (uint32_t k = blockIdx.x; k < sorted.units; k += gridDim.x) {
    if (!unit_at(sorted, k, &walk, &work)) continue;
    const weft_triples_fixed *const of = sorted.of + work.fixed;
    const tile_margins *const margins = &slots[turn % SLOTS];
    const bool wanted = has_triples(sorted, work, group);
#  pragma unroll
    for (uint32_t four = 0; four < WEFT_TRIPLES_PAIRS / 4; four++) sums[four * SCREENERS] = make_float4(0, 0, 0, 0);
    barrier_wait(&filled.full[turn % SLOTS], turn / SLOTS & 1);
#  pragma unroll 1
    for (uint32_t level = 0; level < TRIPLE_LEVELS; level++) {
      const uint32_t start = __ldg(&of->start[2 * level]), middle = __ldg(&of->start[2 * level + 1]),
                     end = __ldg(&of->start[2 * level + 2]);
      if (end == start) continue;
      count_level(&w, middle - start, end - middle, c);
      if (!wanted) continue;
      screen_level<MANY>(c, margins->a[level], margins->b[level], __ldg(&of->rows[level]), __ldg(&of->weight[level]),
                         sorted.magic, sums);
    }
    barrier_arrive(&filled.empty[turn % SLOTS]); /* by every thread that has read the margins */
    turn++;
    if (wanted) note_passed<GAINS>(sorted, work, __ldg(&of->base), sums);
  }
}

#else /* host side, and devices that never run it */
template <bool GAINS, bool MANY> __global__ static void screen_triples(const __grid_constant__ mi_sorted sorted)
{
  (void) sorted;
}
#endif

weft_status weft_mi_sorted_screen(weft_ctx *ctx, const mi_sorted *sorted, cudaStream_t stream)
{
  static void (*const kernels[2][2])(const mi_sorted) = { { screen_triples<false, false>, screen_triples<false, true> },
                                                          { screen_triples<true, false>, screen_triples<true, true> } };
  void (*const kernel)(const mi_sorted) = kernels[sorted->pairs != NULL][sorted->many];
  weft_status st = WEFT_OK;
  int processors = 0;
  WEFT_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, ctx->device));
  WEFT_CUDA(weft_device_allow_shared((const void *) kernel, SHARED_BYTES));
  kernel<<<(sorted->units < (uint32_t) processors ? sorted->units : (unsigned) processors), SORTED_THREADS,
           SHARED_BYTES, stream>>>(*sorted);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}
