/* Attributes of at most three levels on Hopper's 1-bit tensor cores (wgmma, compute capability 9.0a): two planes each,
 * so four products per pair and class. The memory layout and the bounds that make most exact scores unnecessary are in
 * pairs/cuda/ternary.cuh; how tiles are loaded and counted, in tiles_hopper.cuh. A tile is 64 attributes by 128.
 *
 * Two classes of at most 65,535 rows together: the accumulators of class 0 are put into both halves of their words
 * before class 1 is added. A thread passes the words of its pairs through shared memory of its own, so that the screen
 * is a short loop and not 32 copies of its code (registers have no index). There they wait until the tensor cores are
 * at work on the next tile: then they are screened, a few in each step (ternary_screen.cuh).
 *
 * More classes or rows: every class's counts go to memory of the block's own, which the second-level cache holds for
 * few classes, and come back to the same thread. With many rows counting takes longer than this. */
/* Build: hopper. */
#include <cmath>
#define SCREENED 4 /* pairs at a time */
#include "mi/pairs/cuda/ternary_screen.cuh"
#include "mi/pairs/cuda/ternary_hopper.cuh"

#define STAGES 8
#define BATCH 4 /* products started at once */

struct ternary_args {
  const uint8_t *a, *b;
  int steps[WEFT_MI_TERNARY_CLASSES], all_steps; /* k-steps of a class, of all */
  uint32_t classes, count_a, count_b;
  tile_grid grid;
  uint64_t first, count;              /* tiles of this launch */
  const float4 *of_a, *of_b;          /* sides of the screen (pairs/cuda/ternary.cuh), of packed counts */
  const float *own_a, *own_b;         /* own information in the units of the threshold */
  const uint2 *margins_a, *margins_b; /* of both planes, [class * room + attribute]; not of packed counts */
  size_t room_a, room_b;
  uint4 *counts; /* [((block * classes + class) * pairs + pair) * threads + thread] */
  weft_planes_weights weights;
  float threshold_mi, threshold_gain; /* in units of the screen */
  uint32_t all;                       /* packed rows */
  uint32_t class_rows[WEFT_MI_TERNARY_CLASSES];
  /* exact scores */
  size_t place_a, place_b, columns;
  const uint32_t *column;
  const int64_t *alone;
  weft_mi_log f;
  uint64_t n;
  int64_t class_fixed;
  mi_threshold threshold;
  mi_hits hits;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__device__ static void offer_pair(const ternary_args &args, uint32_t a, uint32_t b, int64_t joint)
{
  if (joint < 0) joint = 0;
  const int64_t gain = joint - args.alone[args.place_a + a] - args.alone[args.place_b + b];
  const uint64_t x = args.column[args.place_a + a], y = args.column[args.place_b + b];
  mi_offer(args.threshold, args.hits, weft_mi_bits(joint, args.f.unit, args.n), weft_mi_bits(gain, args.f.unit, args.n),
           (x < y ? x : y) * args.columns + (x < y ? y : x));
}

/* Not in the padding behind the last attribute, nor on or below the diagonal. */
__device__ static inline int is_pair(const ternary_args &args, uint32_t a, uint32_t b)
{
  return a < args.count_a && b < args.count_b && (!args.grid.same || a < b);
}

/* ---- packed counts ---- */

__device__ static inline ternary_screen begin_packed(const ternary_args &args, uint32_t one, uint32_t b0)
{
  ternary_screen screen = { one, b0, 0, 0, load_side(&args.of_a[one]), args.threshold_gain + __ldg(&args.own_a[one]) };
  return screen;
}

/* Screens the next pairs. */
__device__ static inline void screen_packed(const ternary_args &args, const uint4 *mine, ternary_screen *screen)
{
  const uint32_t b0 = screen->b0 + weft_planes_b(threadIdx.x, screen->at);
#  pragma unroll
  for (uint32_t k = 0; k < SCREENED; k++) {
    const uint32_t b = b0 + weft_planes_b(0, k);
    const float over = squares_of(mine[(screen->at + k) * CONSUMERS], screen->a, load_side(&args.of_b[b]), args.all) -
                       fmaxf(args.threshold_mi, screen->threshold_gain + __ldg(&args.own_b[b]));
    screen->passed |= (uint32_t) !(over < 0) << (screen->at + k);
  }
  screen->at += SCREENED;
}

/* Screens what is left, and scores what passed. */
__device__ static inline void end_packed(const ternary_args &args, const uint4 *mine, ternary_screen *screen)
{
  while (screen->at < WEFT_PLANES_PAIRS) screen_packed(args, mine, screen);
  for (; screen->passed; screen->passed &= screen->passed - 1) {
    const uint32_t k = (uint32_t) __ffs((int) screen->passed) - 1, other = screen->b0 + weft_planes_b(threadIdx.x, k);
    if (!is_pair(args, screen->one, other)) continue;
    const weft_planes_side b = load_side(&args.of_b[other]);
    const uint4 four = mine[k * CONSUMERS];
    const uint32_t both[4] = { four.x, four.y, four.z, four.w };
    uint32_t cell[WEFT_PLANES_CELLS], of_a[2], of_b[2];
    words_of(screen->a, of_a);
    words_of(b, of_b);
    weft_planes_cells(both, of_a, of_b, args.all, cell);
    offer_pair(args, screen->one, other, weft_planes_joint(&args.f, cell) - args.class_fixed);
  }
}

/* ---- counts of any size ---- */

/* Where this thread puts a class's counts. */
__device__ static inline uint4 *counts_of(const ternary_args &args, uint32_t class_index)
{
  return args.counts + ((size_t) blockIdx.x * args.classes + class_index) * WEFT_PLANES_PAIRS * CONSUMERS + threadIdx.x;
}

__device__ static inline void class_cells(const ternary_args &args, uint32_t class_index, uint32_t pair, uint32_t one,
                                          uint32_t other, uint32_t (&cell)[WEFT_PLANES_CELLS])
{
  const uint4 four = counts_of(args, class_index)[pair * CONSUMERS];
  const uint2 of_a = __ldg(&args.margins_a[class_index * args.room_a + one]),
              of_b = __ldg(&args.margins_b[class_index * args.room_b + other]);
  const uint32_t both[4] = { four.x, four.y, four.z, four.w }, a[2] = { of_a.x, of_a.y }, b[2] = { of_b.x, of_b.y };
  weft_planes_cells(both, a, b, args.class_rows[class_index], cell);
}

__device__ static int64_t wide_joint(const ternary_args &args, uint32_t pair, uint32_t one, uint32_t other)
{
  int64_t sum = -args.class_fixed;
  uint32_t rows[WEFT_PLANES_CELLS] = {}, cell[WEFT_PLANES_CELLS];
  for (uint32_t c = 0; c < args.classes; c++) {
    class_cells(args, c, pair, one, other, cell);
    for (int i = 0; i < WEFT_PLANES_CELLS; i++) {
      sum += weft_mi_fixed(&args.f, cell[i]);
      rows[i] += cell[i];
    }
  }
  for (int i = 0; i < WEFT_PLANES_CELLS; i++) sum -= weft_mi_fixed(&args.f, rows[i]);
  return sum;
}

/* Screens a thread's pairs by logarithms, from the counts of all classes in memory, and scores those that may reach the
 * threshold. */
__device__ static inline void search_wide(const ternary_args &args, uint32_t one, uint32_t b0)
{
  const float threshold_gain = args.threshold_gain + __ldg(&args.own_a[one]);
#  pragma unroll 1
  for (uint32_t pair = 0; pair < WEFT_PLANES_PAIRS; pair++) {
    const uint32_t other = b0 + weft_planes_b(threadIdx.x, pair);
    uint32_t rows[WEFT_PLANES_CELLS] = {}, cell[WEFT_PLANES_CELLS];
    float sum[WEFT_PLANES_CELLS] = {}, total = 0;
#  pragma unroll 1
    for (uint32_t c = 0; c < args.classes; c++) {
      class_cells(args, c, pair, one, other, cell);
#  pragma unroll
      for (int i = 0; i < WEFT_PLANES_CELLS; i++) {
        sum[i] += weft_planes_term(cell[i], args.weights.of_class[c]);
        rows[i] += cell[i];
      }
    }
#  pragma unroll
    for (int i = 0; i < WEFT_PLANES_CELLS; i++) total += sum[i] - weft_planes_term(rows[i], args.weights.of_rows);
    if (total < fmaxf(args.threshold_mi, threshold_gain + __ldg(&args.own_b[other])) || !is_pair(args, one, other))
      continue;
    offer_pair(args, one, other, wide_joint(args, pair, one, other));
  }
}

/* ---- the kernel ---- */

/* One warpgroup loads tiles, two count. Packed counts of a tile are screened while the next one is counted; unpacked
 * ones go through memory, class by class. */
template <bool PACKED>
__global__ static void __launch_bounds__(SCREENING_THREADS, 1) search_ternary(const __grid_constant__ ternary_args args)
{
  extern __shared__ __align__(1024) uint8_t stages[];
  __shared__ ring<STAGES> copies;
  const uint32_t thread = threadIdx.x, warp_of_block = __shfl_sync(0xffffffffu, thread / 32, 0);
  make_ring(&copies, PACKED ? CONSUMERS / 32 : CONSUMERS); /* that give a stage back */

  uint32_t step = 0; /* k-steps since the start */
  tile_walk at_tile = { 0, 0 };
  if (warp_of_block >= CONSUMERS / 32) {
    give_registers();
    if (thread == CONSUMERS)
      for (uint64_t k = blockIdx.x; k < args.count; k += gridDim.x) {
        uint32_t ta, tb;
        if (!place_tile(&args.grid, &at_tile, args.first + k, &ta, &tb)) continue;
        bring_tile(&copies, stages, args.a + (size_t) ta * args.all_steps * BLOCK_BYTES,
                   args.b + (size_t) tb * 2 * args.all_steps * BLOCK_BYTES, args.all_steps, &step);
      }
    return;
  }

  take_registers();
  uint4 *const mine = (uint4 *) (stages + STAGES * STAGE_BYTES) + thread; /* of packed counts */
  ternary_screen last = nothing_to_screen();
  for (uint64_t k = blockIdx.x; k < args.count; k += gridDim.x) {
    uint32_t ta, tb, c[128], due = 0;
    if (!place_tile(&args.grid, &at_tile, args.first + k, &ta, &tb)) continue;
    const uint32_t one = ta * WEFT_PLANES_A + weft_planes_a(thread), b0 = tb * WEFT_PLANES_B;
    if constexpr (PACKED) {
      const auto meanwhile = [&](uint32_t products) {
        const uint32_t steps = (uint32_t) args.all_steps;
        for (due += products * (WEFT_PLANES_PAIRS / SCREENED); due >= steps; due -= steps)
          if (last.at < WEFT_PLANES_PAIRS) screen_packed(args, mine, &last);
      };
      count_packed<BATCH>(&copies, stages, args.steps, &step, c, meanwhile);
      end_packed(args, mine, &last);
      put_all(c, mine);
      last = begin_packed(args, one, b0);
    } else {
#  pragma unroll 1
      for (uint32_t class_index = 0; class_index < args.classes; class_index++) {
#  pragma unroll
        for (int i = 0; i < 128; i++) c[i] = 0;
        count_steps(&copies, stages, args.steps[class_index], &step, c);
        put_all(c, counts_of(args, class_index));
      }
      search_wide(args, one, b0);
    }
  }
  if constexpr (PACKED) end_packed(args, mine, &last);
}

#else /* host side, and devices that never run it */
template <bool PACKED> __global__ static void search_ternary(const __grid_constant__ ternary_args args) { (void) args; }
#endif

/* ---- layout and constants ---- */

/* One thread per 16 bytes of an arranged row. A plane that an attribute lacks is zero, and so are rows past the end. */
__global__ static void arrange_ternary(const uint32_t *planes, uint32_t words, size_t first, size_t count,
                                       uint32_t planes_each, size_t rows, uint8_t *out)
{
  const uint32_t pieces = words / 4;
  const size_t k = (size_t) blockIdx.x * blockDim.x + threadIdx.x, row = k / pieces;
  const uint32_t piece = (uint32_t) (k % pieces), plane = weft_planes_plane(row);
  const size_t attribute = weft_planes_attribute(row);
  if (row >= rows) return;
  uint4 v = { 0, 0, 0, 0 };
  if (attribute < count && plane < planes_each)
    v = *(const uint4 *) (planes + (first + plane * count + attribute) * words + piece * 4);
  *(uint4 *) (out + piece_offset(row, piece, words / STEP_WORDS)) = v;
}

struct sides_args {
  const uint32_t *margins;
  size_t plane_rows, row, count, room;
  uint32_t planes, classes;
  const int64_t *alone;
  double scale;
  float *own;
  float4 *packed; /* one of these two */
  uint2 *by_class;
};

/* A thread per attribute: its margins as the screen reads them, in words of two classes or by class, and its
 * information alone in the screen's units. */
__global__ static void make_sides(sides_args args)
{
  const size_t k = (size_t) blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= args.room) return;
  uint32_t plane[2] = { 0, 0 };
  for (uint32_t c = 0; c < args.classes; c++) {
    uint32_t rows[2] = { 0, 0 };
    for (uint32_t q = 0; q < args.planes && k < args.count; q++) {
      rows[q] = args.margins[c * args.plane_rows + args.row + q * args.count + k];
      if (args.packed) plane[q] += weft_planes_pack(c ? 0 : rows[q], c ? rows[q] : 0);
    }
    if (args.by_class) args.by_class[c * args.room + k] = make_uint2(rows[0], rows[1]);
  }
  if (args.packed) args.packed[k] = words_of_side(weft_planes_side_of(plane));
  args.own[k] = k < args.count ? (float) ((double) args.alone[k] * args.scale) : 0;
}

/* ---- host ---- */

static size_t room_of(size_t count) { return (count + WEFT_PLANES_B - 1) / WEFT_PLANES_B * WEFT_PLANES_B; }

static tile_grid grid_of(const mi_planar *planar)
{
  const tile_grid grid = { (uint32_t) ((planar->count_a + WEFT_PLANES_A - 1) / WEFT_PLANES_A),
                           (uint32_t) ((planar->count_b + WEFT_PLANES_B - 1) / WEFT_PLANES_B), planar->same, 0 };
  return grid;
}

uint64_t weft_mi_planes_tiles(const mi_planar *planar)
{
  const tile_grid grid = grid_of(planar);
  return tiles_of(&grid);
}

size_t weft_mi_planes_bytes(const weft_mi_resident *resident, size_t count)
{
  return 2 * room_of(count) * resident->words * 4;
}

weft_status weft_mi_planes_arrange(weft_ctx *ctx, const weft_mi_resident *resident, size_t first, size_t count,
                                   uint32_t planes, uint8_t *out, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const size_t rows = 2 * room_of(count), pieces = rows * (resident->words / 4);
  if (!pieces) goto done;
  arrange_ternary<<<(unsigned) ((pieces + 255) / 256), 256, 0, stream>>>(resident->planes, resident->words, first,
                                                                         count, planes, rows, out);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

static weft_status processors_of(weft_ctx *ctx, int *out)
{
  weft_status st = WEFT_OK;
  WEFT_CUDA(cudaDeviceGetAttribute(out, cudaDevAttrMultiProcessorCount, ctx->device));
done:
  return st;
}

/* The parts of `room`: counts where these are not packed, margins by class or sides of a and b, and what both say
 * alone. */
struct ternary_room {
  size_t counts, of_a, of_b, own_a, own_b, bytes;
};

static ternary_room parts_of(const mi_planar *planar, int processors)
{
  const size_t room_a = room_of(planar->count_a), room_b = room_of(planar->count_b);
  const size_t wide = planar->packed ? 0 : planar->classes,
               side = planar->packed ? sizeof(float4) : wide * sizeof(uint2);
  ternary_room parts;
  parts.counts = 0;
  parts.of_a = wide * (size_t) processors * WEFT_PLANES_PAIRS * CONSUMERS * sizeof(uint4);
  parts.of_b = parts.of_a + room_a * side;
  parts.own_a = parts.of_b + room_b * side;
  parts.own_b = parts.own_a + room_a * sizeof(float);
  parts.bytes = parts.own_b + room_b * sizeof(float);
  return parts;
}

weft_status weft_mi_planes_room(weft_ctx *ctx, const mi_planar *planar, size_t *bytes)
{
  weft_status st = WEFT_OK;
  int processors = 0;
  WEFT_TRY(processors_of(ctx, &processors));
  *bytes = parts_of(planar, processors).bytes;
done:
  return st;
}

/* What the screen compares with; *scale: of own information in fixed point. */
static void set_thresholds(const mi_planar *planar, const mi_threshold *threshold, ternary_args *args, double *scale)
{
  const weft_planes_units work =
      weft_planes_measure(planar->packed, planar->class_rows, planar->classes, planar->steepest, 1);
  const double mi = threshold->by_interaction ? threshold->min_mi : fmax(threshold->min_mi, threshold->score);
  const double gain = threshold->by_interaction ? fmax(threshold->min_gain, threshold->score) : threshold->min_gain;
  args->threshold_mi = (float) (work.base + mi * work.unit);
  args->threshold_gain = (float) (work.base + gain * work.unit);
  *scale = args->f.unit * work.unit / (double) args->n;
}

/* What the kernel has to know of a panel, but for the threshold and the tiles to search. */
static ternary_args make_args(const mi_planar *planar, const uint8_t *tiles_a, const uint8_t *tiles_b,
                              const mi_hits *hits)
{
  ternary_args args;
  memset(&args, 0, sizeof args);
  args.a = tiles_a;
  args.b = tiles_b;
  args.classes = planar->classes;
  args.f = planar->resident->f;
  for (uint32_t c = 0; c < planar->classes; c++) {
    args.steps[c] = (int) ((planar->class_rows[c] + STEP_BITS - 1) / STEP_BITS);
    args.all_steps += args.steps[c];
    args.class_rows[c] = planar->class_rows[c];
    args.n += planar->class_rows[c];
    args.class_fixed += weft_mi_fixed_of(planar->class_rows[c], args.f.unit);
  }
  args.class_fixed -= weft_mi_fixed_of(args.n, args.f.unit);
  args.all = planar->packed ? weft_planes_pack(planar->class_rows[0], planar->class_rows[1]) : 0;
  args.weights = weft_planes_weigh(planar->class_rows, planar->classes);
  args.count_a = (uint32_t) planar->count_a;
  args.count_b = (uint32_t) planar->count_b;
  args.room_a = room_of(planar->count_a);
  args.room_b = room_of(planar->count_b);
  args.grid = grid_of(planar);
  args.place_a = planar->first_a;
  args.place_b = planar->first_b;
  args.columns = planar->columns;
  args.column = planar->resident->column;
  args.alone = planar->resident->alone;
  args.hits = *hits;
  return args;
}

/* Makes the sides for this threshold in `room`, and launches a block per multiprocessor; they take tiles in turn. */
weft_status weft_mi_planes_pairs(weft_ctx *ctx, const mi_planar *planar, const uint8_t *tiles_a, const uint8_t *tiles_b,
                                 uint8_t *room, const mi_threshold *threshold, const mi_hits *hits, uint64_t first,
                                 uint64_t count, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  ternary_args args = make_args(planar, tiles_a, tiles_b, hits);
  void (*const kernel)(const ternary_args) = planar->packed ? search_ternary<true> : search_ternary<false>;
  const int bytes = STAGES * STAGE_BYTES + (planar->packed ? WORDS_BYTES : 0);
  int processors = 0;
  double scale;
  ternary_room at;
  set_thresholds(planar, threshold, &args, &scale);
  args.threshold = *threshold;
  WEFT_TRY(processors_of(ctx, &processors));
  at = parts_of(planar, processors);
  args.counts = (uint4 *) (room + at.counts);
  for (int side = 0; side < 2; side++) {
    void *const of = room + (side ? at.of_b : at.of_a);
    float *const own = (float *) (room + (side ? at.own_b : at.own_a));
    const sides_args make = { planar->resident->margins,
                              planar->plane_rows,
                              side ? planar->row_b : planar->row_a,
                              side ? planar->count_b : planar->count_a,
                              side ? args.room_b : args.room_a,
                              side ? planar->planes_b : planar->planes_a,
                              planar->classes,
                              planar->resident->alone + (side ? planar->first_b : planar->first_a),
                              scale,
                              own,
                              planar->packed ? (float4 *) of : NULL,
                              planar->packed ? NULL : (uint2 *) of };
    make_sides<<<(unsigned) ((make.room + 255) / 256), 256, 0, stream>>>(make);
    WEFT_CUDA(cudaGetLastError());
    (side ? args.of_b : args.of_a) = make.packed;
    (side ? args.margins_b : args.margins_a) = make.by_class;
    (side ? args.own_b : args.own_a) = own;
  }
  args.first = first;
  args.count = count;
  WEFT_CUDA(weft_device_allow_shared((const void *) kernel, bytes));
  kernel<<<(count < (uint64_t) processors ? (unsigned) count : (unsigned) processors), SCREENING_THREADS, bytes,
           stream>>>(args);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}
