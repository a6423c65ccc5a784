/* What the kernels that score pairs and triples from counts of products have in common: any cell of a table, and the
 * screen of a pair within the strata of its classes. */
#ifndef WEFT_MI_PRODUCTS_SCORE_CUH
#define WEFT_MI_PRODUCTS_SCORE_CUH

#include "mi_products.cuh"
#include "mi_scores.cuh"

#define STRIP 16 /* rows of a tile that a block scores */

struct mi_scoring {
  const uint32_t *counts;       /* [tile of the batch][product][row][column] */
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
  float bar_mi, bar_gain, error;
  mi_bar bar;
  mi_hits hits;
};

/* A pair: its counts, and where it is. */
struct counted { const uint32_t *words; size_t one, other; };

__device__ static inline uint32_t margin_a(const mi_scoring &t, const counted &p, uint32_t c, uint32_t x)
{
  return __ldg(&t.margin_a[c * t.plane_rows + x * t.count_a + p.one]);
}
__device__ static inline uint32_t margin_b(const mi_scoring &t, const counted &p, uint32_t c, uint32_t y)
{
  return __ldg(&t.margin_b[c * t.plane_rows + y * t.count_b + p.other]);
}

/* The word of planes x and y that has class k of a stratum, and that class's part of it. */
__device__ static inline uint32_t word_of(const mi_scoring &t, const counted &p, uint32_t stratum, uint32_t k,
                                          uint32_t x, uint32_t y)
{
  const uint32_t word = stratum * t.words + (t.packed ? k / 2 : k);
  return p.words[(size_t) ((word * t.planes_a + x) * t.planes_b + y) * AREA];
}
__device__ static inline uint32_t part_of(const mi_scoring &t, uint32_t word, uint32_t k)
{
  return !t.packed ? word : k % 2 ? word & 0xffffu : word >> 16;
}

/* Any cell of a class. */
__device__ static uint32_t cell_of(const mi_scoring &t, const counted &p, uint32_t c, uint32_t x, uint32_t y)
{
  const uint32_t pa = t.planes_a, pb = t.planes_b, stratum = c / t.per, of_stratum = c % t.per;
  const auto both = [&](uint32_t q, uint32_t r) {
    return part_of(t, word_of(t, p, stratum, of_stratum, q, r), of_stratum);
  };
  uint32_t k;
  if (x < pa && y < pb) return both(x, y);
  if (x < pa) {
    k = margin_a(t, p, c, x);
    for (uint32_t q = 0; q < pb; q++) k -= both(x, q);
    return k;
  }
  if (y < pb) {
    k = margin_b(t, p, c, y);
    for (uint32_t q = 0; q < pa; q++) k -= both(q, y);
    return k;
  }
  k = t.class_rows[c];
  for (uint32_t q = 0; q < pb; q++) k -= margin_b(t, p, c, q);
  for (uint32_t q = 0; q < pa; q++) {
    k -= margin_a(t, p, c, q);
    for (uint32_t r = 0; r < pb; r++) k += both(q, r);
  }
  return k;
}

/* What the screen knows of a pair of LA and LB levels. each: by itself, too. */
template <uint32_t LA, uint32_t LB>
__device__ static inline weft_products_sums screen_pair(const mi_scoring &t, const counted &p, int each)
{
  const weft_products_shape s = { LA, LB, t.a.missing, t.b.missing };
  uint32_t words[LA * LB], cell[LA * LB], level[LA * LB] = {};
  weft_products_sums sums = { 0, 0, 0, 0 };
#pragma unroll 1
  for (uint32_t stratum = 0, c = 0; c < t.classes; stratum++) {
#pragma unroll 1
    for (uint32_t k = 0; k < t.per; k++, c++) {
      uint32_t of_a[LA] = {}, of_b[LB] = {};
      if (!t.packed || k % 2 == 0) {
#pragma unroll
        for (uint32_t x = 0; x < LA; x++)
#pragma unroll
          for (uint32_t y = 0; y < LB; y++)
            words[x * LB + y] = x < t.planes_a && y < t.planes_b ? word_of(t, p, stratum, k, x, y) : 0;
      }
#pragma unroll
      for (uint32_t i = 0; i < LA * LB; i++) cell[i] = part_of(t, words[i], k);
      if (!s.missing_b)
#pragma unroll
        for (uint32_t x = 0; x < LA; x++) if (x < t.planes_a) of_a[x] = margin_a(t, p, c, x);
      if (!s.missing_a)
#pragma unroll
        for (uint32_t y = 0; y < LB; y++) if (y < t.planes_b) of_b[y] = margin_b(t, p, c, y);
      weft_products_cells(s, of_a, of_b, __ldg(&t.class_rows[c]), cell);
      weft_products_class(s, cell, each, level, &sums);
    }
    weft_products_stratum(s, each, level, &sums);
  }
  return sums;
}

/* n times what an attribute says alone, in bits. */
__device__ static inline float alone_of(const mi_scoring &t, size_t place)
{
  return (float) ((double) t.alone[place] * t.f.unit);
}

#endif
