/* Triples of attributes of at most three levels and two classes, counted on 1-bit tensor cores with rows sorted by the
 * level of one attribute, which is held fixed (ternary_hopper.cu): where everything lies, and the
 * screen.
 *
 * Rows are sorted by the fixed attribute's level and, within it, by class: six runs, each padded to whole k-steps. The
 * other attributes lie as in pairs/cuda/ternary.cuh, and the counts of a level are words of rows in class 0 above rows
 * of both.
 *
 * The screen. n times the information of a triple is n times what the fixed attribute says, and in each of its levels
 * Σ m KL(k/m || p), over the nine cells of the two others, with k of a cell's m rows in class 0 and p that class's
 * share of the level. KL(q || p) / (q - p)² is an average of 1 / (2 x (1 - x) ln 2) over points between p and q, hence
 * convex in q and greatest at 0 or 1; call that s. So the level adds at most s (Σ k²/m - p n0), n0 its rows in class
 * 0. */
#pragma once

#include "mi/search/cuda/screen_words.cuh"

#define WEFT_TRIPLES_THREADS 512 /* that count a tile */
#define WEFT_TRIPLES_PAIRS 16    /* of a thread in a tile */

/* Within a tile: a thread's attribute of side a, and that of side b in one of its pairs. Four warpgroups have half of
 * side a and half of side b each. */
static WEFT_HD inline uint32_t weft_triples_a(uint32_t thread)
{
  return thread / 256 * 32 + thread % 128 / 32 * 8 + thread % 32 / 4;
}
static WEFT_HD inline uint32_t weft_triples_b(uint32_t thread, uint32_t pair)
{
  return thread / 128 % 2 * 64 + weft_planes_b(thread, pair);
}

/* ---- the screen: weft_words_squares() in each level ---- */

/* What is known of a fixed attribute. */
typedef struct weft_triples_fixed {
  uint32_t start[7]; /* k-steps before each run, level after level, and all */
  uint32_t rows[3];  /* of a level: a word */
  float weight[3];   /* of a level's squares of words, in n bits */
  float base;        /* of all: a triple of so many n bits has at least base + n bits of squares */
} weft_triples_fixed;

static inline double weft_triples_steepest(double p)
{
  if (!(p > 0 && p < 1)) return 0;
  const double low = -log1p(-p) / (p * p), high = -log(p) / ((1 - p) * (1 - p));
  return (low > high ? low : high) / log(2.0) * (1 + 1e-9);
}

/* level: rows of each level by class; alone: n bits that the attribute says by itself.
 * The error: all terms of the squares are positive, and two dozen roundings of 2^-24 are less than 3e-6 of them, of the
 * threshold and of what single attributes say; k²/m - k²/(m + e) <= e in each cell, and a little more with words. */
static inline weft_triples_fixed weft_triples_fix(const uint32_t level[3][2], double alone, uint32_t step_bits)
{
  weft_triples_fixed out;
  double base = -alone, error = 1e-3 + 3e-6 * alone, n = 0;
  out.start[0] = 0;
  for (int q = 0; q < 3; q++) {
    const double n0 = level[q][0], m = n0 + level[q][1], steepest = m > 0 ? weft_triples_steepest(n0 / m) : 0;
    for (int c = 0; c < 2; c++)
      out.start[2 * q + c + 1] = out.start[2 * q + c] + (level[q][c] + step_bits - 1) / step_bits;
    out.rows[q] = weft_planes_pack(level[q][0], level[q][1]);
    out.weight[q] = (float) (steepest / WEFT_WORDS_SCALE);
    base += steepest * weft_words_min(n0, m);
    error += steepest * weft_words_error(n0);
    n += m;
  }
  out.base = (float) (base - error - 3e-6 * n);
  return out;
}
