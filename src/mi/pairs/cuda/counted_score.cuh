/* What the kernels that score pairs and triples from counts of products have in common: any cell of a table, the screen
 * of a pair within the strata of its classes, and the queue of those that pass.
 *
 * Few pass, and scoring one exactly reads dozens of words one after the other: a thread that did so at once would keep
 * its warp, and in the end the kernel, waiting. So a block notes what passes in its strip of a tile, and then each of
 * its warps scores one pair at a time, all lanes together, from a table in shared memory. Where many pass, one thread
 * per pair is faster. */
#pragma once

#include "mi/search/cuda/exact_score.cuh"
extern "C" {
#include "mi/pairs/cuda/counted.cuh"
#include "mi/search/cuda/hopper_layout.cuh"
}

#define STRIP 8 /* rows of a tile that a block scores */
#define QUEUE (STRIP * ROWS_B)
#define MANY (QUEUE / 8) /* that pass */
#define TABLE_WORDS 480  /* a warp's room for one pair */

struct mi_scoring {
  const uint32_t *counts; /* [tile of the batch][product][row][column] */
  uint32_t planes_a, planes_b, products;
  weft_mi_shape a, b;
  uint32_t classes, per, words; /* classes of all strata, of one, and words of counts these take */
  int packed;
  const uint32_t *margin_a, *margin_b; /* [class * plane_rows + plane * count + attribute] */
  const uint32_t *class_rows;
  size_t plane_rows, count_a, count_b, place_a, place_b, columns;
  const uint32_t *column;
  const int64_t *alone;
  weft_mi_log f;
  int64_t class_fixed;
  tile_grid grid;
  tile_walk start;
  uint64_t first;
  float threshold_mi, threshold_gain, error;
  mi_threshold threshold;
  mi_hits hits;
};

/* A pair: its counts, and where it is. */
struct counted {
  const uint32_t *words;
  size_t one, other;
};

__device__ static inline uint32_t margin_a(const mi_scoring &args, const counted &p, uint32_t c, uint32_t x)
{
  return __ldg(&args.margin_a[c * args.plane_rows + x * args.count_a + p.one]);
}
__device__ static inline uint32_t margin_b(const mi_scoring &args, const counted &p, uint32_t c, uint32_t y)
{
  return __ldg(&args.margin_b[c * args.plane_rows + y * args.count_b + p.other]);
}

/* The word of planes x and y that has class k of a stratum, and that class's part of it. */
__device__ static inline uint32_t word_of(const mi_scoring &args, const counted &p, uint32_t stratum, uint32_t k,
                                          uint32_t x, uint32_t y)
{
  const uint32_t word = stratum * args.words + (args.packed ? k / 2 : k);
  return p.words[(size_t) ((word * args.planes_a + x) * args.planes_b + y) * AREA];
}
__device__ static inline uint32_t part_of(const mi_scoring &args, uint32_t word, uint32_t k)
{
  return !args.packed ? word : k % 2 ? word & 0xffffu : word >> 16;
}

/* Any cell of a class, from counts of planes, margins and the rows of the class. */
template <class Both, class OfA, class OfB>
__device__ static inline uint32_t cell_from(uint32_t pa, uint32_t pb, uint32_t rows, uint32_t x, uint32_t y,
                                            const Both &both, const OfA &of_a, const OfB &of_b)
{
  uint32_t k;
  if (x < pa && y < pb) return both(x, y);
  if (x < pa) {
    k = of_a(x);
    for (uint32_t q = 0; q < pb; q++) k -= both(x, q);
    return k;
  }
  if (y < pb) {
    k = of_b(y);
    for (uint32_t q = 0; q < pa; q++) k -= both(q, y);
    return k;
  }
  k = rows;
  for (uint32_t q = 0; q < pb; q++) k -= of_b(q);
  for (uint32_t q = 0; q < pa; q++) {
    k -= of_a(q);
    for (uint32_t r = 0; r < pb; r++) k += both(q, r);
  }
  return k;
}

__device__ static uint32_t cell_of(const mi_scoring &args, const counted &p, uint32_t c, uint32_t x, uint32_t y)
{
  const uint32_t stratum = c / args.per, of_stratum = c % args.per;
  const auto both = [&](uint32_t q, uint32_t r) {
    return part_of(args, word_of(args, p, stratum, of_stratum, q, r), of_stratum);
  };
  return cell_from(
      args.planes_a, args.planes_b, __ldg(&args.class_rows[c]), x, y, both,
      [&](uint32_t q) { return margin_a(args, p, c, q); }, [&](uint32_t q) { return margin_b(args, p, c, q); });
}

/* ---- what passes ---- */

struct score_room {
  uint32_t count;
  uint16_t queue[QUEUE]; /* row of the strip * ROWS_B + column */
  uint32_t table[ROWS_B / 32][TABLE_WORDS];
};

__device__ static inline void queue_pair(score_room *room, uint32_t row)
{
  room->queue[atomicAdd(&room->count, 1u)] = (uint16_t) (row % STRIP * ROWS_B + threadIdx.x);
}

__device__ static inline counted pair_at(const mi_scoring &args, uint32_t ta, uint32_t tb, uint32_t row,
                                         uint32_t column)
{
  counted p;
  p.one = (size_t) ta * ROWS_A + row;
  p.other = (size_t) tb * ROWS_B + column;
  p.words = args.counts + (size_t) blockIdx.y * args.products * AREA + row * ROWS_B + column;
  return p;
}

__device__ static inline uint32_t table_words(const mi_scoring &args)
{
  return args.products + args.classes * (args.planes_a + args.planes_b + args.a.levels * args.b.levels);
}

/* A pair's cells, class after class, made by all lanes of a warp. */
__device__ static const uint32_t *fill_table(const mi_scoring &args, const counted &p, uint32_t *room)
{
  const uint32_t lane = threadIdx.x % 32, pa = args.planes_a, pb = args.planes_b, lb = args.b.levels,
                 area = args.a.levels * lb;
  uint32_t *words = room, *of_a = words + args.products, *of_b = of_a + args.classes * pa,
           *cells = of_b + args.classes * pb;
  __syncwarp(); /* all have read the one before */
  for (uint32_t i = lane; i < args.products; i += 32) words[i] = p.words[(size_t) i * AREA];
  for (uint32_t i = lane; i < args.classes * pa; i += 32) of_a[i] = margin_a(args, p, i / pa, i % pa);
  for (uint32_t i = lane; i < args.classes * pb; i += 32) of_b[i] = margin_b(args, p, i / pb, i % pb);
  __syncwarp();
  for (uint32_t i = lane; i < args.classes * area; i += 32) {
    const uint32_t c = i / area, stratum = c / args.per, k = c % args.per,
                   word = stratum * args.words + (args.packed ? k / 2 : k);
    const auto both = [&](uint32_t q, uint32_t r) { return part_of(args, words[(word * pa + q) * pb + r], k); };
    cells[i] = cell_from(
        pa, pb, __ldg(&args.class_rows[c]), i % area / lb, i % lb, both, [&](uint32_t q) { return of_a[c * pa + q]; },
        [&](uint32_t q) { return of_b[c * pb + q]; });
  }
  __syncwarp();
  return cells;
}

/* The sum that weft_mi_by_class makes, over `levels` levels; count(class, level) gives their rows. The lanes of a warp
 * share the work, and all get the sum. */
template <class Count>
__device__ static int64_t warp_sum(const weft_mi_log &f, uint32_t classes, uint32_t per, uint32_t levels,
                                   const Count &count, uint64_t *n)
{
  int64_t sum = 0;
  uint64_t rows = 0;
  for (uint32_t u = threadIdx.x % 32; u < classes / per * levels; u += 32) {
    weft_mi_by_class one = weft_mi_by_class_of(&f, per);
    for (uint32_t k = 0; k < per; k++) weft_mi_by_class_add(&one, count(u / levels * per + k, u % levels));
    sum += one.sum;
    rows += one.n;
  }
  for (int half = 16; half; half /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, half);
    rows += __shfl_xor_sync(0xffffffffu, rows, half);
  }
  *n = rows;
  return sum;
}

/* The information of three attributes, and the most that two of them have. */
struct triple_score {
  int64_t joint, greatest;
  uint64_t n;
};

/* Scores a triple from the cells of three attributes of `levels` levels each: [level of the first and class][level of
 * the second][level of the third]. The lanes of a warp share the work, and all get the score. */
__device__ static triple_score score_cells(const weft_mi_log &f, uint32_t levels, uint32_t per, int64_t class_fixed,
                                           const uint32_t *cells)
{
  const uint32_t area = levels * levels;
  triple_score out;
  uint64_t rows;
  out.greatest = 0;
  const auto of_three = [&](uint32_t c, uint32_t i) { return cells[c * area + i]; };
  out.joint = warp_sum(f, levels * per, per, area, of_three, &out.n) - class_fixed;
  if (out.joint < 0) out.joint = 0;
  for (int without = 0; without < 3; without++) {
    const int64_t two = warp_sum(
                            f, per, per, area,
                            [&](uint32_t c, uint32_t i) {
                              const uint32_t u = i / levels, v = i % levels;
                              uint64_t k = 0;
                              for (uint32_t w = 0; w < levels; w++)
                                k += without == 0   ? cells[(w * per + c) * area + i]
                                     : without == 1 ? cells[(u * per + c) * area + w * levels + v]
                                                    : cells[(u * per + c) * area + v * levels + w];
                              return k;
                            },
                            &rows) -
                        class_fixed;
    if (two > out.greatest) out.greatest = two;
  }
  return out;
}

/* The index of a triple, from its three columns in any order. */
__device__ static inline uint64_t triple_index(uint64_t columns, uint64_t x, uint64_t y, uint64_t z)
{
  uint64_t swap;
  if (x > y) {
    swap = x;
    x = y;
    y = swap;
  }
  if (y > z) {
    swap = y;
    y = z;
    z = swap;
  }
  if (x > y) {
    swap = x;
    x = y;
    y = swap;
  }
  return (x * columns + y) * columns + z;
}

/* Scores what passed: `alone` by one thread, `together` by a warp, which are given room for a table. */
template <class Alone, class Together>
__device__ static void score_queue(const mi_scoring &args, uint32_t ta, uint32_t tb, score_room *room,
                                   const Alone &alone, const Together &together)
{
  const uint32_t warp = threadIdx.x / 32, count = room->count;
  const bool by_warps = count <= MANY && table_words(args) <= TABLE_WORDS;
  for (uint32_t k = by_warps ? warp : threadIdx.x; k < count; k += by_warps ? ROWS_B / 32 : ROWS_B) {
    const uint32_t at = room->queue[k];
    const counted p = pair_at(args, ta, tb, blockIdx.x * STRIP + at / ROWS_B, at % ROWS_B);
    if (by_warps)
      together(p, room->table[warp]);
    else
      alone(p);
  }
}

/* ---- the screen ---- */

/* What the screen knows of a pair of LA and LB levels. each: by itself, too. */
template <uint32_t LA, uint32_t LB>
__device__ static inline weft_products_sums screen_pair(const mi_scoring &args, const counted &p, int each)
{
  const weft_products_shape shape = { LA, LB, args.a.missing, args.b.missing };
  uint32_t words[LA * LB], cell[LA * LB], level[LA * LB] = {};
  weft_products_sums sums = { 0, 0, 0, 0 };
#pragma unroll 1
  for (uint32_t stratum = 0, c = 0; c < args.classes; stratum++) {
#pragma unroll 1
    for (uint32_t k = 0; k < args.per; k++, c++) {
      uint32_t of_a[LA] = {}, of_b[LB] = {};
      if (!args.packed || k % 2 == 0) {
#pragma unroll
        for (uint32_t x = 0; x < LA; x++)
#pragma unroll
          for (uint32_t y = 0; y < LB; y++)
            words[x * LB + y] = x < args.planes_a && y < args.planes_b ? word_of(args, p, stratum, k, x, y) : 0;
      }
#pragma unroll
      for (uint32_t i = 0; i < LA * LB; i++) cell[i] = part_of(args, words[i], k);
      if (!shape.missing_b)
#pragma unroll
        for (uint32_t x = 0; x < LA; x++)
          if (x < args.planes_a) of_a[x] = margin_a(args, p, c, x);
      if (!shape.missing_a)
#pragma unroll
        for (uint32_t y = 0; y < LB; y++)
          if (y < args.planes_b) of_b[y] = margin_b(args, p, c, y);
      weft_products_cells(shape, of_a, of_b, __ldg(&args.class_rows[c]), cell);
      weft_products_class(shape, cell, each, level, &sums);
    }
    weft_products_stratum(shape, each, level, &sums);
  }
  return sums;
}

/* n times the information of an attribute alone, in bits. */
__device__ static inline float alone_of(const mi_scoring &args, size_t place)
{
  return (float) ((double) args.alone[place] * args.f.unit);
}
