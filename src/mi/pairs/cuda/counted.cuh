/* Pairs of attributes of any few levels from counts of all products of their planes: the table of a class, and a
 * screen (counted_hopper.cu, fused_hopper.cu).
 *
 * Classes may belong to several strata, each with the same number of them, one stratum after the other; the information
 * is then that within strata. With k of a cell's m rows of a stratum in class c, n_c rows of the class and n of the
 * stratum, n times the information of a stratum is
 *
 *   Σ over cells of Σ_c k log2(k w_c) - m log2(m w),     w_c = cells / n_c,   w = cells / n
 *
 * What the weights add is what the classes by themselves take off, Σ_c n_c log2(n_c) - n log2(n), and the same holds
 * for the information of an attribute by itself, which is the same sum over its levels. Where values are missing all of
 * it is over the rows in which both are known: the rows of a class are then its cells' sum. */
#pragma once

#include "mi/pairs/cuda/ternary.cuh"

#define WEFT_PRODUCTS_LEVELS 5u /* attributes of more levels are scored without a screen */

#define UNROLLED _Pragma("unroll") for /* tables are in registers: no index may be left */

/* Two attributes; constants in a kernel that is made for them. */
typedef struct weft_products_shape {
  uint32_t la, lb;
  int missing_a, missing_b;
} weft_products_shape;

/* Completes the la × lb cells of a class, cell (x, y) at [x * lb + y]. Those of two planes are there. Margins are those
 * of planes; an attribute without missing values has no plane of its last level. `all`: rows of the class. */
static __device__ inline void weft_products_cells(const weft_products_shape shape, const uint32_t *of_a,
                                                  const uint32_t *of_b, uint32_t all, uint32_t *cell)
{
  if (!shape.missing_b) {
    UNROLLED(uint32_t x = 0; x < shape.la; x++)
    {
      uint32_t left = of_a[x];
      UNROLLED(uint32_t y = 0; y + 1 < shape.lb; y++) left -= cell[x * shape.lb + y];
      cell[x * shape.lb + shape.lb - 1] = left; /* of a's last level it is made again below */
    }
  }
  if (!shape.missing_a) {
    uint32_t behind = all; /* rows in b's last level, where it has no plane */
    UNROLLED(uint32_t y = 0; y < shape.lb; y++)
    {
      uint32_t left = y + 1 < shape.lb || shape.missing_b ? of_b[y] : behind;
      behind -= left;
      UNROLLED(uint32_t x = 0; x + 1 < shape.la; x++) left -= cell[x * shape.lb + y];
      cell[(shape.la - 1) * shape.lb + y] = left;
    }
  }
}

static __device__ inline uint32_t weft_products_rows(const weft_products_shape shape, const uint32_t *cell)
{
  uint32_t rows = 0;
  UNROLLED(uint32_t i = 0; i < shape.la * shape.lb; i++) rows += cell[i];
  return rows;
}

/* What the screen has of a pair: n times the information of both and of each, in bits, and n. */
typedef struct weft_products_sums {
  float joint, one, other;
  uint32_t n;
} weft_products_sums;

/* Adds sign × Σ k log2(k w) over cells with those numbers of rows; with `each`, over the levels of each attribute too.
 */
static __device__ inline void weft_products_add(const weft_products_shape shape, const uint32_t *cell, uint32_t rows,
                                                float sign, int each, weft_products_sums *sums)
{
  const float w = (float) (shape.la * shape.lb) / (float) rows;
  float joint = 0, one = 0, other = 0;
  UNROLLED(uint32_t i = 0; i < shape.la * shape.lb; i++) joint += weft_planes_term(cell[i], w);
  sums->joint += sign * joint;
  if (!each) return;
  UNROLLED(uint32_t x = 0; x < shape.la; x++)
  {
    uint32_t level = 0;
    UNROLLED(uint32_t y = 0; y < shape.lb; y++) level += cell[x * shape.lb + y];
    one += weft_planes_term(level, w);
  }
  UNROLLED(uint32_t y = 0; y < shape.lb; y++)
  {
    uint32_t level = 0;
    UNROLLED(uint32_t x = 0; x < shape.la; x++) level += cell[x * shape.lb + y];
    other += weft_planes_term(level, w);
  }
  sums->one += sign * one;
  sums->other += sign * other;
}

/* One class of a stratum, and `level`, which gathers the stratum's cells. */
static __device__ inline void weft_products_class(const weft_products_shape shape, const uint32_t *cell, int each,
                                                  uint32_t *level, weft_products_sums *sums)
{
  weft_products_add(shape, cell, weft_products_rows(shape, cell), 1.0f, each, sums);
  UNROLLED(uint32_t i = 0; i < shape.la * shape.lb; i++) level[i] += cell[i];
}

/* The end of a stratum: takes its cells off, and clears them. */
static __device__ inline void weft_products_stratum(const weft_products_shape shape, int each, uint32_t *level,
                                                    weft_products_sums *sums)
{
  const uint32_t rows = weft_products_rows(shape, level);
  weft_products_add(shape, level, rows, -1.0f, each, sums);
  sums->n += rows;
  UNROLLED(uint32_t i = 0; i < shape.la * shape.lb; i++) level[i] = 0;
}

/* The greatest error of a sum, per row. The sizes Σ k |log2(k w_c)| and Σ m |log2(m w)| are below (log2 cells + 0.54) n
 * each: at most log2 cells above zero, and -y log2 y <= 0.54 of each of the cells below. In units of 2^-24 of a size: a
 * logarithm is off by 4, the argument's roundings and the weight's add 8, products, the threshold and own information 8
 * more. A class's cells are added up among themselves, so that a class has its own rows' share of `cells` roundings;
 * the same holds for strata; and then classes and strata are added up. */
static inline double weft_products_error(uint32_t cells, uint32_t classes)
{
  return (log2((double) cells) + 1.54) * (2.0 * cells + 2.0 * classes + 24) * 0x1p-24;
}
#define WEFT_PRODUCTS_LITTLE 1e-3f /* for small sums, besides */

/* 0 when a pair cannot reach the thresholds, in bits. `own`: n times what both say alone, where no value is missing. */
static __device__ inline int weft_products_passes(const weft_products_sums *sums, int each, float own,
                                                  float threshold_mi, float threshold_gain, float error)
{
  const float n = (float) sums->n, slack = error * n + WEFT_PRODUCTS_LITTLE;
  if (sums->joint < threshold_mi * n - slack) return 0;
  if (!(threshold_gain > -INFINITY)) return 1;
  if (each) own = fmaxf(sums->one, 0.0f) + fmaxf(sums->other, 0.0f);
  return !(fmaxf(sums->joint, 0.0f) - own < threshold_gain * n - 3 * slack);
}
