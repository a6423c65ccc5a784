/* Tables of attributes of any shape on the device: counting by products of bit matrices, and the exact score of one pair a
 * thread. */
#ifndef WEFT_MI_TABLES_CUH
#define WEFT_MI_TABLES_CUH

#include "mi_pairs_cuda.cuh"

#define SCORE_THREADS 128
#define COUNT_TILE 64 /* planes a side of a block */

/* ---- counting ---- */

/* One product of bit matrices: na × nb counts. */
struct product { size_t row_a, row_b; uint32_t first_word, steps; size_t out; };

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
__device__ static inline void mma_16x8x256(int (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
  asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

/* Blocks of 64 × 64 counts, four warps of 32 × 32. Rows past the end read row 0 and are not written. */
__global__ static void __launch_bounds__(128) count_planes(const uint32_t *planes, uint32_t words, const product *products,
    size_t na, size_t nb, size_t ld, uint32_t *out)
{
  const product p = products[blockIdx.z];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const size_t i0 = (size_t) blockIdx.y * COUNT_TILE + warp / 2 * 32, j0 = (size_t) blockIdx.x * COUNT_TILE + warp % 2 * 32;
  if (i0 >= na || j0 >= nb) return;
  out += p.out;
#if __CUDA_ARCH__ >= 800
  int c[2][4][4] = {};
  const uint32_t *a[4], *b[4];
  for (int k = 0; k < 4; k++) {
    const size_t i = i0 + 8 * k + lane / 4, j = j0 + 8 * k + lane / 4;
    a[k] = planes + (p.row_a + (i < na ? i : 0)) * words + p.first_word + lane % 4;
    b[k] = planes + (p.row_b + (j < nb ? j : 0)) * words + p.first_word + lane % 4;
  }
  for (uint32_t s = 0; s < p.steps; s++) {
    uint32_t fa[2][4], fb[4][2];
    for (int m = 0; m < 2; m++)
      for (int k = 0; k < 4; k++) fa[m][k] = a[2 * m + k % 2][s * STEP_WORDS + k / 2 * 4];
    for (int n = 0; n < 4; n++)
      for (int k = 0; k < 2; k++) fb[n][k] = b[n][s * STEP_WORDS + k * 4];
    for (int m = 0; m < 2; m++)
      for (int n = 0; n < 4; n++) mma_16x8x256(c[m][n], fa[m], fb[n]);
  }
  for (int m = 0; m < 2; m++)
    for (int n = 0; n < 4; n++)
      for (int k = 0; k < 4; k++) {
        const size_t i = i0 + 16 * m + lane / 4 + k / 2 * 8, j = j0 + 8 * n + lane % 4 * 2 + k % 2;
        if (i < na && j < nb) out[i * ld + j] = (uint32_t) c[m][n][k];
      }
#else
  const size_t j = j0 + lane;
  if (j >= nb) return;
  const uint32_t *b = planes + (p.row_b + j) * words + p.first_word;
  for (size_t i = i0; i < i0 + 32 && i < na; i++) {
    const uint32_t *a = planes + (p.row_a + i) * words + p.first_word;
    uint32_t count = 0;
    for (uint32_t w = 0; w < p.steps * STEP_WORDS; w++) count += __popc(a[w] & b[w]);
    out[i * ld + j] = count;
  }
#endif
}

/* ---- scoring ---- */

/* A part of a panel: members i0 .. i0+na-1 of one group against j0 .. j0+nb-1 of another. */
struct part {
  weft_mi_counts counts;
  weft_mi_log f;
  size_t na, nb, place_a, place_b, columns;
  uint32_t classes;
  uint64_t n;
  int64_t class_fixed;
  int same;
  const uint32_t *column;
  const int64_t *alone;
};

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
__global__ static void __launch_bounds__(SCORE_THREADS) score_part(part p, mi_bar bar, mi_hits hits, double *mi, double *interaction)
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
