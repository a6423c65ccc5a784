/* Scores from counts, written once for C and CUDA: the order of the additions is part of the definition.
 *
 * A sum over cells is 32 partial sums, cell i into partial i mod 32 in increasing i, then a halving tree:
 *   partial[l] += partial[l + 16], then 8, 4, 2, 1.
 * On the device the partials are a warp's lanes. Cells that are zero add nothing, so a sparse count that visits the
 * occupied cells in order gives the same bits. */
#pragma once

#include "mi/mi.h"
#include "mi/pack/both/fixed_point.h"

#define WEFT_MI_LANES 32

typedef struct weft_mi_sums {
  double joint, attribute, classes, n; /* Σ f(n_ac), Σ f(n_a), Σ f(n_c), n */
  int levels, class_levels;            /* that occur */
} weft_mi_sums;

static WEFT_HD inline double weft_mi_entropy(double sum, double n, int levels)
{
  if (levels < 2) return 0;
  double h = weft_div(weft_sub(weft_mi_f(n), sum), n);
  return h > 0 ? h : 0;
}

/* The halving tree over the partial sums of one sum, on the host. */
static inline double weft_mi_tree(double *partial)
{
  for (int half = WEFT_MI_LANES / 2; half; half /= 2)
    for (int l = 0; l < half; l++) partial[l] = weft_add(partial[l], partial[l + half]);
  return partial[0];
}

/* Exact zeros for constants; never negative, never above either entropy. */
static WEFT_HD inline double weft_mi_information(weft_mi_sums sums)
{
  if (sums.levels < 2 || sums.class_levels < 2) return 0;
  double i =
      weft_div(weft_sub(weft_sub(sums.joint, sums.attribute), weft_sub(sums.classes, weft_mi_f(sums.n))), sums.n);
  double a = weft_mi_entropy(sums.attribute, sums.n, sums.levels),
         c = weft_mi_entropy(sums.classes, sums.n, sums.class_levels);
  if (i > a) i = a;
  if (i > c) i = c;
  return i > 0 ? i : 0;
}

/* Results of attribute j. */
static WEFT_HD inline void weft_mi_store(const weft_mi_sums *sums, const weft_mi_rank *out, size_t j)
{
  out->mi[j] = weft_mi_information(*sums);
  out->entropy[j] = weft_mi_entropy(sums->attribute, sums->n, sums->levels);
  out->class_entropy[j] = weft_mi_entropy(sums->classes, sums->n, sums->class_levels);
  out->n[j] = sums->n;
  out->levels[j] = sums->levels;
  out->class_levels[j] = sums->class_levels;
}
