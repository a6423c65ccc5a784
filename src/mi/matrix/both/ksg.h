/* The second estimator of Kraskov, Stögbauer and Grassberger (2004) with the maximum norm, for one pair of columns.
 *
 * Columns are divided by their standard deviations. With the k nearest neighbours of point i, e_x and e_y their
 * greatest distances along x and y, n_x and n_y the points within e_x and e_y (i left out): I = ψ(k) - 1/k + ψ(n) -
 * mean(ψ(n_x) + ψ(n_y)). No noise is added. Points as far away as the k-th neighbour count as neighbours too, and k is
 * then their number, so that ties neither depend on the order of the rows nor break the estimate.
 *
 * Ties must not depend on units: distances between decimals, 0.3 - 0.2 and 0.2 - 0.1, are equal, but rounding makes
 * them differ, in another way after each multiplication or shift. Distances along a column are therefore equal when
 * they differ by less than its slack, WEFT_KSG_SLACK of its greatest absolute value: some times what rounding of two
 * values, of their difference and of the standard deviation can make. Neighbours are the points within the k-th
 * distance and this slack along both columns, n_x counts points within e_x and the slack of x, n_y likewise.
 *
 * The counts n_x, n_y and k are collected as how often each number occurs, and the digammas summed over them in a fixed
 * order: the same bits on both back ends and for (x, y) as for (y, x). */
#pragma once

#include "mi/matrix/both/numeric.h"
#include "mi/features/both/column_score.h"

#define WEFT_KSG_SLACK 7.105427357601002e-15 /* 2^-47 */
/* Slacks by which points are collected beyond the k-th distance: one for neighbours, one for n_x, one for rounding. */
#define WEFT_KSG_SLACKS 3

/* Points in increasing order of x. near_x × near_y is a guess, from each column alone, of how far away the k-th
 * neighbour of a point is: a good one saves time, none changes the result. */
typedef struct weft_ksg_pair {
  size_t n;
  int k;
  const double *x, *y, *y_sorted, *near_x, *near_y;
  double scale_x, scale_y; /* 1 / standard deviation */
  double slack_x, slack_y; /* in the units of x and y */
} weft_ksg_pair;

typedef struct weft_ksg_work {
  double *distance, *nearest;
  uint32_t *found;
} weft_ksg_work; /* n, k and n + 1 */

/* The guesses of one column, by row. order: rows in increasing order of their values. */
void weft_ksg_near(const double *values, const uint32_t *order, size_t n, int k, double inverse_sd, double *near);

/* The information of a pair in bits, from the tables psi = ψ(c) and shifted = ψ(c) - 1/c. `counts` is room for 2n
 * numbers, zero before and after: how many n_x and n_y are c at counts[c], and how many points have c neighbours at
 * counts[n + c]. */
double weft_ksg_bits_of_pair(const weft_ksg_pair *pair, const double *psi, const double *shifted, weft_ksg_work *work,
                             uint32_t *counts);

/* How many of n increasing values lie within e of y, itself left out. */
static WEFT_HD inline uint32_t weft_ksg_within(const double *sorted, uint32_t n, double y, double e)
{
  uint32_t below = 0, upto = 0; /* values more than e below y; values not more than e above it */
  for (uint32_t left = n, half; left > 1; left -= half) {
    half = left / 2;
    below += y - sorted[below + half - 1] > e ? half : 0;
    upto += sorted[upto + half - 1] - y <= e ? half : 0;
  }
  below += y - sorted[below] > e;
  upto += sorted[upto] - y <= e;
  return upto - below - 1;
}

/* Σ counts[c] f[c] in 32 partial sums and a tree, as column_score.h sums over cells. */
static inline double weft_ksg_sum(const uint32_t *counts, const double *f, size_t n)
{
  double lanes[WEFT_MI_LANES] = { 0 };
  for (size_t c = 0; c < n; c++)
    if (counts[c]) lanes[c % WEFT_MI_LANES] = weft_add(lanes[c % WEFT_MI_LANES], weft_mul((double) counts[c], f[c]));
  return weft_mi_tree(lanes);
}

/* The information in bits, from the sums over n points of ψ(n_x) + ψ(n_y) and of ψ(k) - 1/k. */
static WEFT_HD inline double weft_ksg_bits(double sum_psi, double sum_k, double n, double psi_n)
{
  double nats = weft_sub(weft_add(weft_div(sum_k, n), psi_n), weft_div(sum_psi, n));
  return weft_mul(nats, 1.4426950408889634);
}
