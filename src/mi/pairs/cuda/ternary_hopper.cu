/* Attributes of at most three levels on Hopper's 1-bit tensor cores (wgmma, compute capability 9.0a): two planes each,
 * so four products per pair and class. The memory layout and the bounds that make most exact scores unnecessary are in
 * pairs/both/ternary.h; how tiles are loaded and counted, in tiles_hopper.cuh. A tile is 64 attributes by 128.
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

#define STAGES 8
#define BATCH 4 /* products started at once */

struct planes_args {
  const uint8_t *a, *b;
  int steps[WEFT_PLANES_CLASSES], all_steps; /* k-steps of a class, of all */
  uint32_t classes, count_a, count_b;
  tile_grid grid;
  uint64_t first, count;              /* tiles of this launch */
  const float4 *of_a, *of_b;          /* sides of the screen (pairs/both/ternary.h), of packed counts */
  const float *own_a, *own_b;         /* own information in the units of the bar */
  const uint2 *margins_a, *margins_b; /* of both planes, [class * room + attribute]; not of packed counts */
  size_t room_a, room_b;
  uint4 *counts; /* [((block * classes + class) * pairs + pair) * threads + thread] */
  weft_planes_weights weights;
  float bar_mi, bar_gain; /* in units of the screen */
  uint32_t all;           /* packed rows */
  uint32_t class_rows[WEFT_PLANES_CLASSES];
  /* exact scores */
  size_t place_a, place_b, columns;
  const uint32_t *column;
  const int64_t *alone;
  weft_mi_log f;
  uint64_t n;
  int64_t class_fixed;
  mi_bar bar;
  mi_hits hits;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__device__ static void offer_pair(const planes_args &t, uint32_t a, uint32_t b, int64_t joint)
{
  if (joint < 0) joint = 0;
  const int64_t gain = joint - t.alone[t.place_a + a] - t.alone[t.place_b + b];
  const uint64_t x = t.column[t.place_a + a], y = t.column[t.place_b + b];
  mi_offer(t.bar, t.hits, weft_mi_bits(joint, t.f.unit, t.n), weft_mi_bits(gain, t.f.unit, t.n),
           (x < y ? x : y) * t.columns + (x < y ? y : x));
}

/* Not in the padding behind the last attribute, nor on or below the diagonal. */
__device__ static inline int is_pair(const planes_args &t, uint32_t a, uint32_t b)
{
  return a < t.count_a && b < t.count_b && (!t.grid.same || a < b);
}

/* ---- packed counts ---- */

__device__ static inline planes_screen begin_packed(const planes_args &t, uint32_t one, uint32_t b0)
{
  planes_screen s = { one, b0, 0, 0, load_side(&t.of_a[one]), t.bar_gain + __ldg(&t.own_a[one]) };
  return s;
}

/* Screens the next pairs. */
__device__ static inline void screen_packed(const planes_args &t, const uint4 *mine, planes_screen *s)
{
  const uint32_t b0 = s->b0 + weft_planes_b(threadIdx.x, s->at);
#  pragma unroll
  for (uint32_t k = 0; k < SCREENED; k++) {
    const uint32_t b = b0 + weft_planes_b(0, k);
    const float over = squares_of(mine[(s->at + k) * CONSUMERS], s->a, load_side(&t.of_b[b]), t.all) -
                       fmaxf(t.bar_mi, s->bar_gain + __ldg(&t.own_b[b]));
    s->passed |= (uint32_t) !(over < 0) << (s->at + k);
  }
  s->at += SCREENED;
}

/* Screens what is left, and scores what passed. */
__device__ static inline void end_packed(const planes_args &t, const uint4 *mine, planes_screen *s)
{
  while (s->at < WEFT_PLANES_PAIRS) screen_packed(t, mine, s);
  for (; s->passed; s->passed &= s->passed - 1) {
    const uint32_t k = (uint32_t) __ffs((int) s->passed) - 1, other = s->b0 + weft_planes_b(threadIdx.x, k);
    if (!is_pair(t, s->one, other)) continue;
    const weft_planes_side b = load_side(&t.of_b[other]);
    const uint4 four = mine[k * CONSUMERS];
    const uint32_t both[4] = { four.x, four.y, four.z, four.w };
    uint32_t cell[WEFT_PLANES_CELLS], of_a[2], of_b[2];
    words_of(s->a, of_a);
    words_of(b, of_b);
    weft_planes_cells(both, of_a, of_b, t.all, cell);
    offer_pair(t, s->one, other, weft_planes_joint(&t.f, cell) - t.class_fixed);
  }
}

/* ---- counts of any size ---- */

/* Where this thread puts a class's counts. */
__device__ static inline uint4 *counts_of(const planes_args &t, uint32_t class_index)
{
  return t.counts + ((size_t) blockIdx.x * t.classes + class_index) * WEFT_PLANES_PAIRS * CONSUMERS + threadIdx.x;
}

__device__ static inline void class_cells(const planes_args &t, uint32_t class_index, uint32_t pair, uint32_t one,
                                          uint32_t other, uint32_t (&cell)[WEFT_PLANES_CELLS])
{
  const uint4 four = counts_of(t, class_index)[pair * CONSUMERS];
  const uint2 of_a = __ldg(&t.margins_a[class_index * t.room_a + one]),
              of_b = __ldg(&t.margins_b[class_index * t.room_b + other]);
  const uint32_t both[4] = { four.x, four.y, four.z, four.w }, a[2] = { of_a.x, of_a.y }, b[2] = { of_b.x, of_b.y };
  weft_planes_cells(both, a, b, t.class_rows[class_index], cell);
}

__device__ static int64_t wide_joint(const planes_args &t, uint32_t pair, uint32_t one, uint32_t other)
{
  int64_t sum = -t.class_fixed;
  uint32_t rows[WEFT_PLANES_CELLS] = {}, cell[WEFT_PLANES_CELLS];
  for (uint32_t c = 0; c < t.classes; c++) {
    class_cells(t, c, pair, one, other, cell);
    for (int i = 0; i < WEFT_PLANES_CELLS; i++) {
      sum += weft_mi_fixed(&t.f, cell[i]);
      rows[i] += cell[i];
    }
  }
  for (int i = 0; i < WEFT_PLANES_CELLS; i++) sum -= weft_mi_fixed(&t.f, rows[i]);
  return sum;
}

/* Screens a thread's pairs by logarithms, from the counts of all classes in memory, and scores those that may reach the
 * bar. */
__device__ static inline void search_wide(const planes_args &t, uint32_t one, uint32_t b0)
{
  const float bar_gain = t.bar_gain + __ldg(&t.own_a[one]);
#  pragma unroll 1
  for (uint32_t pair = 0; pair < WEFT_PLANES_PAIRS; pair++) {
    const uint32_t other = b0 + weft_planes_b(threadIdx.x, pair);
    uint32_t rows[WEFT_PLANES_CELLS] = {}, cell[WEFT_PLANES_CELLS];
    float sum[WEFT_PLANES_CELLS] = {}, total = 0;
#  pragma unroll 1
    for (uint32_t c = 0; c < t.classes; c++) {
      class_cells(t, c, pair, one, other, cell);
#  pragma unroll
      for (int i = 0; i < WEFT_PLANES_CELLS; i++) {
        sum[i] += weft_planes_term(cell[i], t.weights.of_class[c]);
        rows[i] += cell[i];
      }
    }
#  pragma unroll
    for (int i = 0; i < WEFT_PLANES_CELLS; i++) total += sum[i] - weft_planes_term(rows[i], t.weights.of_rows);
    if (total < fmaxf(t.bar_mi, bar_gain + __ldg(&t.own_b[other])) || !is_pair(t, one, other)) continue;
    offer_pair(t, one, other, wide_joint(t, pair, one, other));
  }
}

/* ---- the kernel ---- */

/* One warpgroup loads tiles, two count. Packed counts of a tile are screened while the next one is counted; unpacked
 * ones go through memory, class by class. */
template <bool PACKED>
__global__ static void __launch_bounds__(SCREENING_THREADS, 1) search_planes(const __grid_constant__ planes_args t)
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
      for (uint64_t k = blockIdx.x; k < t.count; k += gridDim.x) {
        uint32_t ta, tb;
        if (!place_tile(&t.grid, &at_tile, t.first + k, &ta, &tb)) continue;
        bring_tile(&copies, stages, t.a + (size_t) ta * t.all_steps * BLOCK_BYTES,
                   t.b + (size_t) tb * 2 * t.all_steps * BLOCK_BYTES, t.all_steps, &step);
      }
    return;
  }

  take_registers();
  uint4 *const mine = (uint4 *) (stages + STAGES * STAGE_BYTES) + thread; /* of packed counts */
  planes_screen last = nothing_to_screen();
  for (uint64_t k = blockIdx.x; k < t.count; k += gridDim.x) {
    uint32_t ta, tb, c[128], due = 0;
    if (!place_tile(&t.grid, &at_tile, t.first + k, &ta, &tb)) continue;
    const uint32_t one = ta * WEFT_PLANES_A + weft_planes_a(thread), b0 = tb * WEFT_PLANES_B;
    if constexpr (PACKED) {
      const auto meanwhile = [&](uint32_t products) {
        const uint32_t steps = (uint32_t) t.all_steps;
        for (due += products * (WEFT_PLANES_PAIRS / SCREENED); due >= steps; due -= steps)
          if (last.at < WEFT_PLANES_PAIRS) screen_packed(t, mine, &last);
      };
      count_packed<BATCH>(&copies, stages, t.steps, &step, c, meanwhile);
      end_packed(t, mine, &last);
      put_all(c, mine);
      last = begin_packed(t, one, b0);
    } else {
#  pragma unroll 1
      for (uint32_t class_index = 0; class_index < t.classes; class_index++) {
#  pragma unroll
        for (int i = 0; i < 128; i++) c[i] = 0;
        count_steps(&copies, stages, t.steps[class_index], &step, c);
        put_all(c, counts_of(t, class_index));
      }
      search_wide(t, one, b0);
    }
  }
  if constexpr (PACKED) end_packed(t, mine, &last);
}

#else /* host side, and devices that never run it */
template <bool PACKED> __global__ static void search_planes(const __grid_constant__ planes_args t) { (void) t; }
#endif

/* ---- layout and constants ---- */

/* One thread per 16 bytes of an arranged row. A plane that an attribute lacks is zero, and so are rows past the end. */
__global__ static void arrange_planes(const uint32_t *planes, uint32_t words, size_t first, size_t count,
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
__global__ static void make_sides(sides_args s)
{
  const size_t k = (size_t) blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= s.room) return;
  uint32_t plane[2] = { 0, 0 };
  for (uint32_t c = 0; c < s.classes; c++) {
    uint32_t rows[2] = { 0, 0 };
    for (uint32_t q = 0; q < s.planes && k < s.count; q++) {
      rows[q] = s.margins[c * s.plane_rows + s.row + q * s.count + k];
      if (s.packed) plane[q] += weft_planes_pack(c ? 0 : rows[q], c ? rows[q] : 0);
    }
    if (s.by_class) s.by_class[c * s.room + k] = make_uint2(rows[0], rows[1]);
  }
  if (s.packed) s.packed[k] = words_of_side(weft_planes_side_of(plane));
  s.own[k] = k < s.count ? (float) ((double) s.alone[k] * s.scale) : 0;
}

/* ---- host ---- */

static size_t room_of(size_t count) { return (count + WEFT_PLANES_B - 1) / WEFT_PLANES_B * WEFT_PLANES_B; }

static tile_grid grid_of(const mi_planar *b)
{
  const tile_grid grid = { (uint32_t) ((b->count_a + WEFT_PLANES_A - 1) / WEFT_PLANES_A),
                           (uint32_t) ((b->count_b + WEFT_PLANES_B - 1) / WEFT_PLANES_B), b->same, 0 };
  return grid;
}

uint64_t weft_mi_planes_tiles(const mi_planar *b)
{
  const tile_grid grid = grid_of(b);
  return tiles_of(&grid);
}

size_t weft_mi_planes_bytes(const weft_mi_resident *r, size_t count) { return 2 * room_of(count) * r->words * 4; }

weft_status weft_mi_planes_arrange(weft_ctx *ctx, const weft_mi_resident *r, size_t first, size_t count,
                                   uint32_t planes, uint8_t *out, cudaStream_t s)
{
  weft_status st = WEFT_OK;
  const size_t rows = 2 * room_of(count), pieces = rows * (r->words / 4);
  if (!pieces) goto done;
  arrange_planes<<<(unsigned) ((pieces + 255) / 256), 256, 0, s>>>(r->planes, r->words, first, count, planes, rows,
                                                                   out);
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
struct planes_room {
  size_t counts, of_a, of_b, own_a, own_b, bytes;
};

static planes_room parts_of(const mi_planar *b, int processors)
{
  const size_t room_a = room_of(b->count_a), room_b = room_of(b->count_b);
  const size_t wide = b->packed ? 0 : b->classes, side = b->packed ? sizeof(float4) : wide * sizeof(uint2);
  planes_room r;
  r.counts = 0;
  r.of_a = wide * (size_t) processors * WEFT_PLANES_PAIRS * CONSUMERS * sizeof(uint4);
  r.of_b = r.of_a + room_a * side;
  r.own_a = r.of_b + room_b * side;
  r.own_b = r.own_a + room_a * sizeof(float);
  r.bytes = r.own_b + room_b * sizeof(float);
  return r;
}

weft_status weft_mi_planes_room(weft_ctx *ctx, const mi_planar *b, size_t *bytes)
{
  weft_status st = WEFT_OK;
  int processors = 0;
  WEFT_TRY(processors_of(ctx, &processors));
  *bytes = parts_of(b, processors).bytes;
done:
  return st;
}

/* What the screen compares with; *scale: of own information in fixed point. */
static void set_bars(const mi_planar *b, const mi_bar *bar, planes_args *t, double *scale)
{
  const weft_planes_units u = weft_planes_measure(b->packed, b->class_rows, b->classes, b->steepest, 1);
  const double mi = bar->by_interaction ? bar->min_mi : fmax(bar->min_mi, bar->score);
  const double gain = bar->by_interaction ? fmax(bar->min_gain, bar->score) : bar->min_gain;
  t->bar_mi = (float) (u.base + mi * u.unit);
  t->bar_gain = (float) (u.base + gain * u.unit);
  *scale = t->f.unit * u.unit / (double) t->n;
}

/* What the kernel has to know of a panel, but for the bar and the tiles to search. */
static planes_args make_args(const mi_planar *b, const uint8_t *tiles_a, const uint8_t *tiles_b, const mi_hits *hits)
{
  planes_args t;
  memset(&t, 0, sizeof t);
  t.a = tiles_a;
  t.b = tiles_b;
  t.classes = b->classes;
  t.f = b->r->f;
  for (uint32_t c = 0; c < b->classes; c++) {
    t.steps[c] = (int) ((b->class_rows[c] + STEP_BITS - 1) / STEP_BITS);
    t.all_steps += t.steps[c];
    t.class_rows[c] = b->class_rows[c];
    t.n += b->class_rows[c];
    t.class_fixed += weft_mi_fixed_of(b->class_rows[c], t.f.unit);
  }
  t.class_fixed -= weft_mi_fixed_of(t.n, t.f.unit);
  t.all = b->packed ? weft_planes_pack(b->class_rows[0], b->class_rows[1]) : 0;
  t.weights = weft_planes_weigh(b->class_rows, b->classes);
  t.count_a = (uint32_t) b->count_a;
  t.count_b = (uint32_t) b->count_b;
  t.room_a = room_of(b->count_a);
  t.room_b = room_of(b->count_b);
  t.grid = grid_of(b);
  t.place_a = b->first_a;
  t.place_b = b->first_b;
  t.columns = b->columns;
  t.column = b->r->column;
  t.alone = b->r->alone;
  t.hits = *hits;
  return t;
}

/* Makes the sides for this bar in `room`, and launches a block per multiprocessor; they take tiles in turn. */
weft_status weft_mi_planes_pairs(weft_ctx *ctx, const mi_planar *b, const uint8_t *tiles_a, const uint8_t *tiles_b,
                                 uint8_t *room, const mi_bar *bar, const mi_hits *hits, uint64_t first, uint64_t count,
                                 cudaStream_t s)
{
  weft_status st = WEFT_OK;
  planes_args t = make_args(b, tiles_a, tiles_b, hits);
  void (*const kernel)(const planes_args) = b->packed ? search_planes<true> : search_planes<false>;
  const int bytes = STAGES * STAGE_BYTES + (b->packed ? WORDS_BYTES : 0);
  int processors = 0;
  double scale;
  planes_room at;
  set_bars(b, bar, &t, &scale);
  t.bar = *bar;
  WEFT_TRY(processors_of(ctx, &processors));
  at = parts_of(b, processors);
  t.counts = (uint4 *) (room + at.counts);
  for (int side = 0; side < 2; side++) {
    void *const of = room + (side ? at.of_b : at.of_a);
    float *const own = (float *) (room + (side ? at.own_b : at.own_a));
    const sides_args make = { b->r->margins,
                              b->plane_rows,
                              side ? b->row_b : b->row_a,
                              side ? b->count_b : b->count_a,
                              side ? t.room_b : t.room_a,
                              side ? b->planes_b : b->planes_a,
                              b->classes,
                              b->r->alone + (side ? b->first_b : b->first_a),
                              scale,
                              own,
                              b->packed ? (float4 *) of : NULL,
                              b->packed ? NULL : (uint2 *) of };
    make_sides<<<(unsigned) ((make.room + 255) / 256), 256, 0, s>>>(make);
    WEFT_CUDA(cudaGetLastError());
    (side ? t.of_b : t.of_a) = make.packed;
    (side ? t.margins_b : t.margins_a) = make.by_class;
    (side ? t.own_b : t.own_a) = own;
  }
  t.first = first;
  t.count = count;
  WEFT_CUDA(weft_device_allow_shared((const void *) kernel, bytes));
  kernel<<<(count < (uint64_t) processors ? (unsigned) count : (unsigned) processors), SCREENING_THREADS, bytes, s>>>(
      t);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}
