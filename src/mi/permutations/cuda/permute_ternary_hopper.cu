/* Permutation tests of pairs (permute_ternary.cu) on Hopper's 1-bit tensor cores (wgmma, compute capability 9.0a): the
 * greatest score of every label set.
 *
 * Counts of all rows are the same whatever the labels, so that a tile's are made once; of each label set only the rows
 * of the rarer class are counted. A tile is counted for one set after the other, and while a set is counted, the one
 * before is screened (screen_words.cuh). Four warpgroups have a half of each side, so that each scheduler has four
 * warps whose results it need not wait for.
 *
 * A set's sides are new in every tile, so that no cache of the multiprocessor has them: the producer brings them into
 * shared memory behind the set's rows, and threads read the set's threshold before they count it. They raise the
 * greatest score in memory. */
/* Build: hopper. */
#include <climits>
#include <cmath>
#include "mi/permutations/cuda/permute_ternary.cuh"
#include "mi/search/cuda/products_hopper.cuh"
#include "mi/search/cuda/tiles_hopper.cuh"
#include "mi/permutations/cuda/permute_ternary_hopper.cuh"

#define STAGES 7
#define AT_ONCE 4                      /* products */
#define COUNTING 512                   /* threads: four warpgroups */
#define LABEL_THREADS (COUNTING + 128) /* registers go from warpgroup to warpgroup, so the producer is a whole one */
#define PAIRS 16                       /* of a thread in a tile */
#define SCREENED 2                     /* of them at a time */
#define WORDS_BYTES (PAIRS * COUNTING * 16)
#define SLOTS 2 /* of a set's sides */
#define SHARED_BYTES (STAGES * STAGE_BYTES + WORDS_BYTES + SLOTS * sizeof(tile_sides))

/* What the screen of a set and tile needs. */
struct tile_sides {
  weft_words_side b[WEFT_PLANES_B], a[WEFT_PLANES_A];
  float own_b[WEFT_PLANES_B], own_a[WEFT_PLANES_A];
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* A thread's attribute of side a, and that of side b in one of its pairs. */
__device__ static inline uint32_t a_of(uint32_t thread) { return weft_planes_a(thread / 256 * 128 + thread % 128); }
__device__ static inline uint32_t b_of(uint32_t thread, uint32_t pair)
{
  return thread / 128 % 2 * (WEFT_PLANES_B / 2) + weft_planes_b(thread, pair);
}

/* How far the screen of a thread's pairs in a set has come. */
struct set_screen {
  uint32_t one, b0;    /* the thread's attribute of side a, the tile's first of side b */
  uint32_t at, passed; /* pairs seen, and a bit for each that may reach the threshold */
  weft_words_side a;
  float threshold_gain;
  uint32_t set;
  const tile_sides *of; /* NULL: of none */
};

/* The threshold of a label set in units of the screen: the better of its best pair so far and its best single
 * attribute. */
__device__ static inline float threshold_of(const label_args &args, long long best, long long start)
{
  const long long known = best > start ? best : start;
  return known == LLONG_MIN ? -INFINITY : (float) (args.base + (double) known * args.scale);
}

__device__ static inline set_screen begin_set(const label_args &args, const tile_sides *of, uint32_t set, uint32_t one,
                                              uint32_t b0, float threshold)
{
  const uint32_t at = a_of(threadIdx.x);
  const set_screen screen = { one, b0, 0, 0, of->a[at], args.by_interaction ? threshold + of->own_a[at] : threshold,
                              set, of };
  return screen;
}

template <bool MANY>
__device__ static inline void screen_set(const label_args &args, const uint4 *mine, set_screen *screen)
{
  const uint32_t b0 = b_of(threadIdx.x, screen->at);
#  pragma unroll
  for (uint32_t k = 0; k < SCREENED; k++) {
    const uint32_t b = b0 + weft_planes_b(0, k);
    const uint4 four = mine[(screen->at + k) * COUNTING];
    const uint32_t both[4] = { four.x, four.y, four.z, four.w };
    float over =
        weft_words_squares(both, screen->a, screen->of->b[b], args.all, MANY, args.magic) - screen->threshold_gain;
    if (args.by_interaction) over -= screen->of->own_b[b];
    screen->passed |= (uint32_t) !(over < 0) << (screen->at + k);
  }
  screen->at += SCREENED;
}

__device__ static inline bool is_allowed(const label_args &args, uint32_t one, uint32_t other)
{
  if (one >= other || other >= args.count) return false;
  const uint32_t a = args.side[one], b = args.side[other];
  if (!((a & 1 && b & 2) || (a & 2 && b & 1))) return false;
  return !args.near.chromosome || !weft_mi_is_near(&args.near, args.column[one], args.column[other]);
}

/* Screens what is left, scores what passed, and gives the sides' slot back. */
template <bool MANY>
__device__ static inline void end_set(const label_args &args, const uint4 *mine, set_screen *screen, uint64_t *empty)
{
  if (!screen->of) return;
  while (screen->at < PAIRS) screen_set<MANY>(args, mine, screen);
  for (; screen->passed; screen->passed &= screen->passed - 1) {
    const uint32_t k = (uint32_t) __ffs((int) screen->passed) - 1, other = screen->b0 + b_of(threadIdx.x, k);
    if (!is_allowed(args, screen->one, other)) continue;
    const size_t a = screen->set * args.room + screen->one, b = screen->set * args.room + other;
    const uint4 four = mine[k * COUNTING];
    const uint32_t both[4] = { four.x, four.y, four.z, four.w };
    uint32_t cell[WEFT_PLANES_CELLS];
    weft_planes_cells(both, screen->a.plane, screen->of->b[b_of(threadIdx.x, k)].plane, args.all, cell);
    int64_t score = weft_planes_joint(&args.f, cell) - args.class_fixed;
    if (score < 0) score = 0;
    if (args.by_interaction) score -= args.alone[a] + args.alone[b];
    if (score > *(volatile long long *) &args.best[screen->set]) atomicMax(&args.best[screen->set], (long long) score);
  }
  screen->of = NULL;
  barrier_arrive(empty); /* by every thread that has read the sides */
}

/* Counts of all rows. */
__device__ static inline void put_rows(const uint32_t (&c)[64], uint4 *mine)
{
#  pragma unroll
  for (uint32_t k = 0; k < PAIRS; k++)
    mine[k * COUNTING] = make_uint4(c[weft_planes_register(k, 0, 0)], c[weft_planes_register(k, 0, 1)],
                                    c[weft_planes_register(k, 1, 0)], c[weft_planes_register(k, 1, 1)]);
}

/* Counts of a set's class above those of all rows. */
__device__ static inline void put_above(const uint32_t (&c)[64], uint4 *mine)
{
#  pragma unroll
  for (uint32_t k = 0; k < PAIRS; k++) {
    const uint4 rows = mine[k * COUNTING];
    mine[k * COUNTING] = make_uint4(__byte_perm(rows.x, c[weft_planes_register(k, 0, 0)], 0x5410),
                                    __byte_perm(rows.y, c[weft_planes_register(k, 0, 1)], 0x5410),
                                    __byte_perm(rows.z, c[weft_planes_register(k, 1, 0)], 0x5410),
                                    __byte_perm(rows.w, c[weft_planes_register(k, 1, 1)], 0x5410));
  }
}

__device__ static inline void bring_sides(const label_args &args, uint32_t set, uint32_t ta, uint32_t tb,
                                          tile_sides *to, uint64_t *full)
{
  const size_t a = set * args.room + (size_t) ta * WEFT_PLANES_A, b = set * args.room + (size_t) tb * WEFT_PLANES_B;
  barrier_expect(full, sizeof *to);
  bulk_copy(to->b, args.sides + b, sizeof to->b, full);
  bulk_copy(to->a, args.sides + a, sizeof to->a, full);
  bulk_copy(to->own_b, args.own + b, sizeof to->own_b, full);
  bulk_copy(to->own_a, args.own + a, sizeof to->own_a, full);
}

/* A thread of the fifth warpgroup loads; four warpgroups count a tile for all rows and then for each label set, and
 * screen a set while the next is counted. */
template <bool MANY>
__global__ static void __launch_bounds__(LABEL_THREADS, 1) search_labels(const __grid_constant__ label_args args)
{
  extern __shared__ __align__(1024) uint8_t stages[];
  __shared__ ring<STAGES> copies;
  __shared__ ring<SLOTS> filled;
  tile_sides *const slots = (tile_sides *) (stages + STAGES * STAGE_BYTES + WORDS_BYTES);
  const uint32_t thread = threadIdx.x, warp_of_block = __shfl_sync(0xffffffffu, thread / 32, 0);
  make_ring(&filled, COUNTING);
  make_ring(&copies, COUNTING / 32);

  uint32_t turn = 0, ta, tb; /* sets since the start */
  tile_walk at = { 0, 0 };
  if (warp_of_block >= COUNTING / 32) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    uint32_t step = 0;
    if (thread == COUNTING)
      for (uint64_t k = blockIdx.x; k < args.tiles; k += gridDim.x) {
        if (!place_tile(&args.grid, &at, args.first + k, &ta, &tb)) continue;
        for (uint32_t s = 0; s <= args.sets; s++) { /* all rows, then the sets */
          const uint8_t *const planes = s ? args.planes + (s - 1) * args.bytes : args.whole;
          const int steps = s ? args.steps : args.steps_all;
          bring_tile(&copies, stages, planes + (size_t) ta * steps * BLOCK_BYTES,
                     planes + (size_t) tb * 2 * steps * BLOCK_BYTES, steps, &step);
          if (!s) continue;
          if (turn >= SLOTS) barrier_wait(&filled.empty[turn % SLOTS], (turn / SLOTS - 1) & 1);
          bring_sides(args, s - 1, ta, tb, &slots[turn % SLOTS], &filled.full[turn % SLOTS]);
          turn++;
        }
      }
    return;
  }

  asm volatile("setmaxnreg.inc.sync.aligned.u32 112;"); /* of 96 that a thread starts with */
  const uint32_t group = warp_of_block / 4;
  ring_place<STAGES> w =
      first_place(&copies, stages + group / 2 * 64 * 32, stages + BLOCK_BYTES + group % 2 * BLOCK_BYTES);
  uint4 *const mine = (uint4 *) (stages + STAGES * STAGE_BYTES) + thread;
  set_screen last = { 0, 0, PAIRS, 0, { { 0, 0 } }, 0, 0, NULL };
  for (uint64_t k = blockIdx.x; k < args.tiles; k += gridDim.x) {
    if (!place_tile(&args.grid, &at, args.first + k, &ta, &tb)) continue;
    const uint32_t one = ta * WEFT_PLANES_A + a_of(thread), b0 = tb * WEFT_PLANES_B;
#  pragma unroll 1
    for (uint32_t s = 0; s <= args.sets; s++) {
      const uint32_t steps = (uint32_t) (s ? args.steps : args.steps_all);
      long long best = 0, begun = 0; /* needed after the set was counted: it may have risen since */
      if (s) {
        best = *(volatile long long *) &args.best[s - 1];
        begun = *(volatile long long *) &args.start[s - 1];
      }
      uint32_t c[64], due = 0;
#  pragma unroll
      for (int i = 0; i < 64; i++) c[i] = 0;
      const auto start = [&](uint64_t a, uint64_t b) { mma_64_rows(c, a, b); };
      count_at_once<AT_ONCE>(&w, steps, c, start, [&](uint32_t products) {
        for (due += products * (PAIRS / SCREENED); due >= steps; due -= steps)
          if (last.at < PAIRS) screen_set<MANY>(args, mine, &last);
      });
      end_set<MANY>(args, mine, &last, &filled.empty[(turn - 1) % SLOTS]);
      if (s) {
        put_above(c, mine);
        barrier_wait(&filled.full[turn % SLOTS], turn / SLOTS & 1);
        last = begin_set(args, &slots[turn % SLOTS], s - 1, one, b0, threshold_of(args, best, begun));
        turn++;
      } else
        put_rows(c, mine);
    }
  }
  end_set<MANY>(args, mine, &last, &filled.empty[(turn - 1) % SLOTS]);
}

#else /* host side, and devices that never run it */
template <bool MANY> __global__ static void search_labels(const __grid_constant__ label_args args) { (void) args; }
#endif

weft_status weft_mi_search_labels(weft_ctx *ctx, const label_args *args, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  void (*const kernel)(const label_args) = args->many ? search_labels<true> : search_labels<false>;
  int processors = 0;
  WEFT_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, ctx->device));
  WEFT_CUDA(weft_device_allow_shared((const void *) kernel, SHARED_BYTES));
  kernel<<<(args->tiles < (uint64_t) processors ? (unsigned) args->tiles : (unsigned) processors), LABEL_THREADS,
           SHARED_BYTES, stream>>>(*args);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}
