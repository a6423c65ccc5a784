/* The exact score of one pair a thread, from a part's counts. */
#ifndef WEFT_MI_TABLES_CUH
#define WEFT_MI_TABLES_CUH

#include "mi_panel.cuh"

#define SCORE_THREADS 128

struct pair_score { int64_t joint, gain; uint64_t n; };

/* The sums of mi_table.h, cell by cell: no table is kept. */
__device__ static pair_score score_pair(const part &p, size_t i, size_t j)
{
  const weft_mi_counts &t = p.counts;
  const uint32_t la = t.a.levels, lb = t.b.levels;
  int64_t joint = 0, of_a = 0, of_b = 0, of_classes = 0;
  uint64_t n = 0;
  for (uint32_t x = 0; x < la; x++)
    for (uint32_t y = 0; y < lb; y++) {
      uint64_t level = 0;
      for (uint32_t c = 0; c < p.classes; c++) {
        const uint32_t k = weft_mi_cell(&t, c, i, j, x, y);
        joint += weft_mi_fixed(&p.f, k);
        level += k;
      }
      joint -= weft_mi_fixed(&p.f, level);
      n += level;
    }
  pair_score out;
  out.n = n;
  if (!t.vary) {
    joint -= p.class_fixed;
    out.joint = joint > 0 ? joint : 0;
    out.gain = out.joint - p.alone[p.place_a + i] - p.alone[p.place_b + j];
    return out;
  }
  for (uint32_t c = 0; c < p.classes; c++) {
    uint64_t rows = 0;
    for (uint32_t x = 0; x < la; x++) {
      uint64_t k = 0;
      for (uint32_t y = 0; y < lb; y++) k += weft_mi_cell(&t, c, i, j, x, y);
      of_a += weft_mi_fixed(&p.f, k);
      rows += k;
    }
    for (uint32_t y = 0; y < lb; y++) {
      uint64_t k = 0;
      for (uint32_t x = 0; x < la; x++) k += weft_mi_cell(&t, c, i, j, x, y);
      of_b += weft_mi_fixed(&p.f, k);
    }
    of_classes += weft_mi_fixed(&p.f, rows);
  }
  for (uint32_t x = 0; x < la; x++) {
    uint64_t k = 0;
    for (uint32_t c = 0; c < p.classes; c++) for (uint32_t y = 0; y < lb; y++) k += weft_mi_cell(&t, c, i, j, x, y);
    of_a -= weft_mi_fixed(&p.f, k);
  }
  for (uint32_t y = 0; y < lb; y++) {
    uint64_t k = 0;
    for (uint32_t c = 0; c < p.classes; c++) for (uint32_t x = 0; x < la; x++) k += weft_mi_cell(&t, c, i, j, x, y);
    of_b -= weft_mi_fixed(&p.f, k);
  }
  of_classes -= weft_mi_fixed(&p.f, n);
  joint -= of_classes;
  of_a -= of_classes;
  of_b -= of_classes;
  out.joint = joint > 0 ? joint : 0;
  out.gain = out.joint - (of_a > 0 ? of_a : 0) - (of_b > 0 ? of_b : 0);
  return out;
}

/* One thread a pair. With `mi`, all scores are written there and to `interaction`: pair (i, j) at i * nb + j. */
__global__ static void __launch_bounds__(SCORE_THREADS)
    score_part(part p, mi_bar bar, mi_hits hits, double *mi, double *interaction)
{
  const size_t j = (size_t) blockIdx.x * SCORE_THREADS + threadIdx.x, i = blockIdx.y;
  if (j >= p.nb || (p.same && p.place_b + j <= p.place_a + i)) return;
  const pair_score s = score_pair(p, i, j);
  const double joint = weft_mi_bits(s.joint, p.f.unit, s.n), gain = weft_mi_bits(s.gain, p.f.unit, s.n);
  if (mi) {
    mi[i * p.nb + j] = joint;
    interaction[i * p.nb + j] = gain;
    return;
  }
  const uint64_t x = p.column[p.place_a + i], y = p.column[p.place_b + j];
  mi_offer(bar, hits, joint, gain, (x < y ? x : y) * p.columns + (x < y ? y : x));
}

#endif
