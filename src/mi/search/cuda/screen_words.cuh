/* The screen of two classes by words (pairs/cuda/ternary.cuh) as whole numbers, for kernels whose threads have few
 * registers: triples (triples/cuda/ternary_hopper.cu) and label sets (permute_ternary_hopper.cu). It takes 66
 * instructions for a pair, about ten fewer than weft_planes_squares(). Pairs, which screen with two warps for each
 * scheduler, do not gain from it. */
#pragma once

#include "mi/pairs/cuda/ternary.cuh"

/* Rows of both classes in a word, and a little more, which keeps empty cells finite and is exact beside 16 bits. When
 * there are at most WEFT_WORDS_FEW rows, not `many`, a kernel puts them into the fraction of 2^15: `magic` is
 * WEFT_WORDS_MAGIC, which the kernel is given, so that its compiler keeps it in a register. */
#define WEFT_WORDS_EMPTY 0.00390625f
#define WEFT_WORDS_FEW 32767u
#define WEFT_WORDS_MAGIC 0x47000001u /* 2^15 and that */

static __device__ inline float weft_words_rows(uint32_t word, int many, uint32_t magic)
{
  if (!many) return __uint_as_float(__byte_perm(word, magic, 0x7104)) - 32768.0f;
  return (float) (word & 0xffffu) + WEFT_WORDS_EMPTY;
}

/* Words of an attribute's planes. */
typedef struct weft_words_side {
  uint32_t plane[2];
} weft_words_side;

/* Σ w²/m over the cells' words as whole numbers, a little less for empty cells. both: 2 x + y; all: the rows. A word is
 * 2^16 k + m, so that with ε = 2^-16 the sum is 2^32 (Σ k²/m + 2 ε n0 + ε² n): class 0 need not be taken out of it. */
#define WEFT_WORDS_SCALE 0x1p32

/* The bound of a pair by squares, a sum over its nine cells, from words that hold two classes' counts. both: products
 * of planes; all: rows of both classes; many, magic: how counts become floats without a conversion. */
static __device__ inline float weft_words_squares(const uint32_t both[4], weft_words_side a, weft_words_side b,
                                                  uint32_t all, int many, uint32_t magic)
{
  uint32_t cell[WEFT_PLANES_CELLS];
  float k[WEFT_PLANES_CELLS], m[WEFT_PLANES_CELLS];
  weft_planes_cells(both, a.plane, b.plane, all, cell);
  for (int i = 0; i < WEFT_PLANES_CELLS; i++) {
    k[i] = (float) cell[i];
    m[i] = weft_words_rows(cell[i], many, magic);
  }
  /* two cells with one inverse save a slow instruction at the cost of a fast one */
  float sum = weft_planes_two_squares(k[0], m[0], k[1], m[1]) + weft_planes_two_squares(k[3], m[3], k[4], m[4]);
  for (int i = 2; i < WEFT_PLANES_CELLS; i++)
    if (i != 3 && i != 4) sum += k[i] * k[i] * weft_planes_inverse(m[i]);
  return sum;
}

/* p n0, which the sum is without any information, with what words add. */
static inline double weft_words_min(double n0, double n)
{
  const double shift = 0x1p-16;
  return n > 0 ? n0 / n * n0 + shift * (2 * n0 + shift * n) : 0;
}

/* More than the rounding of the sum and of a threshold, and than empty cells take off: n0, with what words add, is no
 * less than the sum, of which each of two dozen roundings is 2^-24, and k²/m - k²/(m + e) <= e in each cell. */
static inline double weft_words_error(double n0)
{
  return 3e-6 * (n0 + 1) + 1.001 * WEFT_PLANES_CELLS * (double) WEFT_WORDS_EMPTY;
}

/* The units of the screen of one table, as weft_planes_measure() gives them. */
static inline weft_planes_units weft_words_measure(const uint32_t class_rows[2], double steepest)
{
  const double n0 = class_rows[0], n = n0 + class_rows[1];
  const weft_planes_units units = { (weft_words_min(n0, n) - weft_words_error(n0) - 0.02) * WEFT_WORDS_SCALE,
                                    n / steepest * WEFT_WORDS_SCALE };
  return units;
}
