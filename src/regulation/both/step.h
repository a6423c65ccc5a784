/* The arithmetic of forward selection, written once for C and CUDA. Everything is elementwise, so that results do not
 * depend on how features are divided; it is compiled without contraction, so that they have the same bits everywhere.
 *
 * Covariances are kept times m^2: m * sum(x y) - sum(x) sum(y), whole numbers below 2^53 for scores as in regulation.h
 * and m up to 2^21. Gains r^2 / d are compared within one target, so that no scale matters. The direction of step k is
 *
 *   q_k = (c_k - sum over l < k of q_l a_kl) / sqrt(d of the chosen)      c_k: covariances with the chosen feature,
 *                                                                         a_kl = q_l at the chosen feature
 * and every feature's r loses q_k times (r of the chosen) / sqrt(d of the chosen), its d loses q_k^2. q and r of z are
 * the sums of its parts'. */
#pragma once

#include "core/numbers/math.h"

/* A feature with less than this share of its variance left contributes nothing new. */
#define WEFT_REGULATION_LEFT 1e-3

static WEFT_HD inline double weft_regulation_covariance(double m, double product, double sum_x, double sum_y)
{
  return weft_sub(weft_mul(m, product), weft_mul(sum_x, sum_y));
}

/* The least d with which a feature of this variance may be chosen: above every d for constants. */
static WEFT_HD inline double weft_regulation_min_residual(double variance)
{
  return variance > 0 ? weft_mul(WEFT_REGULATION_LEFT, variance) : WEFT_INFINITY;
}

/* The criterion of choice: r^2 / d times how much its regulator is favoured; negative where the feature may not be
 * chosen. */
static WEFT_HD inline double weft_regulation_gain(double r, double d, double least, double favour)
{
  return d >= least ? weft_mul(favour, weft_div(weft_mul(r, r), d)) : -1.0;
}
