/* What the back ends share about numeric columns: the prepared columns, and pairs with missing values.
 *
 * Correlations (Pearson, Spearman, copula) are dot products of columns that are centred and of length one; what is
 * correlated are the values, their ranks (ties averaged), or the normal scores Φ⁻¹(rank / (n + 1)). A dot product is
 * eight partial sums, row r into partial r mod 8, then a halving tree, so that both back ends give the same bits. KSG
 * works on sorted columns: see ksg.h. */
#pragma once

#include "core/call/arena.h"
#include "core/numbers/math.h"
#include "mi/mi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_DOT_LANES 8
#define WEFT_DOT_SPARE 4 /* readable columns of z behind the last, so that blocks of columns are whole */
/* 1 - ρ² is not taken below this: it is what rounding leaves of a perfect correlation. log2 gives 23 bits. */
#define WEFT_MI_MIN_REST 1.4210854715202004e-14 /* 2^-46 */

typedef struct weft_mi_column {
  uint8_t constant, incomplete;
  double inverse_sd, slack; /* of the scaled values: KSG only; see ksg.h */
} weft_mi_column;

typedef struct weft_mi_ready {
  const weft_mi_numeric *data;
  weft_mi_column *columns;
  size_t stride;         /* of z: n rounded up to whole lanes */
  double *z;             /* centred, of length one, padded with zeros: correlations */
  double *scaled;        /* values times a power of two, n per column: KSG */
  double *sorted;        /* the same in increasing order: KSG */
  double *near;          /* weft_ksg_near(): KSG */
  uint32_t *order;       /* rows in increasing order of their values, missing ones left out: all but Pearson, Kendall */
  uint32_t *complete;    /* how many rows are not missing */
  double *psi, *shifted; /* ψ(c) and ψ(c) - 1/c, c = 0 .. n: KSG */
  int any_incomplete;
} weft_mi_ready;

/* Memory that a thread needs for pairs with missing values and for KSG. */
typedef struct weft_mi_scratch {
  double *a, *b, *x, *y, *y_sorted, *near_x, *near_y, *distance, *nearest, *scores;
  uint32_t *order_a, *order_b, *place, *counts, *found;
  size_t scored; /* rows that `scores` is for */
} weft_mi_scratch;

/* The information of a correlation, in bits. */
static WEFT_HD inline double weft_mi_of_rho(double rho)
{
  double rest = weft_mul(weft_sub(1, rho), weft_add(1, rho));
  if (rest < WEFT_MI_MIN_REST) rest = WEFT_MI_MIN_REST;
  double bits = weft_mul(-0.5, weft_log2(rest));
  return bits > 0 ? bits : 0;
}

/* τ-b from concordant less discordant pairs of rows, and the pairs not tied in either column. Counts below 2^53. */
static WEFT_HD inline double weft_mi_of_tau(int64_t difference, int64_t untied_a, int64_t untied_b)
{
  if (!untied_a || !untied_b) return 0;
  return weft_mi_of_rho(
      weft_div((double) difference, weft_mul(weft_sqrt((double) untied_a), weft_sqrt((double) untied_b))));
}

static inline double weft_dot_tree(double *lanes)
{
  for (int half = WEFT_DOT_LANES / 2; half; half /= 2)
    for (int l = 0; l < half; l++) lanes[l] = weft_add(lanes[l], lanes[l + half]);
  return lanes[0];
}

/* The pairs with a missing value somewhere, on the CPU; the other results stay. */
weft_status weft_mi_incomplete_pairs(weft_ctx *ctx, const weft_mi_ready *ready, double *out);

weft_mi_numeric_op weft_mi_numeric_cpu, weft_mi_numeric_cuda;

/* Where the result of columns i < j goes, and its mirror image when there is one. */
static inline void weft_mi_put(const weft_mi_numeric *data, double *out, size_t i, size_t j, double bits)
{
  if (data->split)
    out[i + (j - data->split) * data->split] = bits;
  else
    out[i + j * data->p] = out[j + i * data->p] = bits;
}

/* Tiles of pairs: rows of tiles start at multiples of `side` in the first range, columns in the second. */
typedef struct weft_mi_tiles {
  size_t side, rows, columns, first_column, p, split;
} weft_mi_tiles;
static inline weft_mi_tiles weft_mi_tiles_of(const weft_mi_numeric *data, size_t side)
{
  const size_t a = data->split ? data->split : data->p, b = data->split ? data->p - data->split : data->p;
  weft_mi_tiles tiles = { side, (a + side - 1) / side, (b + side - 1) / side, data->split, data->p, data->split };
  return tiles;
}
/* Columns [i0, i1) with [j0, j1); 0 when the tile lies below the diagonal. */
static inline int weft_mi_tile(const weft_mi_tiles *tiles, size_t index, size_t *i0, size_t *i1, size_t *j0, size_t *j1)
{
  const size_t row = index / tiles->columns, column = index % tiles->columns,
               last = tiles->split ? tiles->split : tiles->p;
  if (!tiles->split && column < row) return 0;
  *i0 = row * tiles->side;
  *i1 = *i0 + tiles->side < last ? *i0 + tiles->side : last;
  *j0 = tiles->first_column + column * tiles->side;
  *j1 = *j0 + tiles->side < tiles->p ? *j0 + tiles->side : tiles->p;
  return 1;
}

#ifdef __cplusplus
}
#endif
