/* Scores of clusters as whole numbers, and the draw from them: the same on every machine, in any order of additions.
 *
 * A score is in units of 2^-15 bits, so that a step is 2e-5 nats. The drawn log odds of a block are rounded to this
 * grid, and its log(1 - η) is computed from what was rounded: the sampler is exact for an η that differs from the draw
 * by less than its posterior tells apart. Sums of grid values are exact in doubles, and in 32 bits for a light node:
 *
 *   at most IRM_LIGHT links, each within IRM_NARROW of the middle of its row:    |Σ| <= 255 · 2^21 < 2^29
 *   the base, below the greatest one by at most 2^30 + 2^21:                     |score| < 2^31
 *
 * What is cut off there lies 2^21 units (64 bits) and more below another cluster whatever the links are: it has no
 * weight.
 *
 * The draw. Clusters go in chunks of 128. In a chunk, w = 2^28 · 2^-(greatest - score), truncated, and one uniform
 * picks from the chunk's whole-number sum, by columns c % 8 first, then c / 8: the order in which a tensor core's
 * threads and a vector's lanes hold them. Another uniform picks the chunk by sum · 2^-(its distance from the
 * greatest). */
#pragma once

#include "core/numbers/draws.h"

#define IRM_LIGHT 255
#define IRM_CHUNK 128
#define IRM_UNITS 47274.182946874724 /* a nat: 2^15 log2(e) */
#define IRM_NARROW (1 << 21)
#define IRM_FLOOR (-(1 << 30) - (1 << 21))
#define IRM_FARTHEST 2147483647.0

/* Nats to the grid. */
static WEFT_HD inline double irm_units(double nats)
{
  const double most = 1099511627776.0, x = nats * IRM_UNITS;
  return x > most ? most : x < -most ? -most : floor(x + 0.5);
}

/* log(1 - η) of log odds on the grid, in nats; for counts -η of log η. */
static WEFT_HD inline double irm_none(int poisson, double units)
{
  const double x = units / IRM_UNITS;
  if (poisson) return -weft_exp(x);
  return x > 0 ? -(x + weft_log1p(weft_exp(-x))) : -weft_log1p(weft_exp(x));
}

/* Log odds of η from its posterior given N links in P pairs (counts: log η), on the grid. */
static WEFT_HD inline double irm_draw_log_odds(weft_rng rng, uint64_t index, int poisson, const double *beta,
                                               double links, double pairs)
{
  double link, none;
  if (poisson) return irm_units(weft_draw_log_gamma(rng, index, beta[0] + links) - weft_log(beta[1] + pairs));
  weft_draw_log_beta(rng, index, beta[0] + links, beta[1] + pairs - links, &link, &none);
  return irm_units(link - none);
}

/* What is taken off a row whose values lie between low and high: a whole number. */
static WEFT_HD inline double irm_middle(double low, double high) { return floor((low + high) * 0.5); }

/* 2^28 · 2^-(distance / 2^15), relative error below 4e-7. With y = 1 + fraction, the polynomial is 3 + 2^(1 - y): in
 * [3.5, 4] a float's bits are a straight function of its value. */
#define IRM_WEIGHT_POLYNOMIAL(y) \
  (((((y) * -0.00094823026f + 0.013953722f) * (y) -0.10163368f) * (y) + 0.47084103f) * (y) -1.380998f) * (y) + \
      4.9987851f
#define IRM_WEIGHT_ONE 0x3f800000u
#define IRM_WEIGHT_THREE 0x40400000u

static WEFT_HD inline uint32_t irm_weight(uint32_t distance)
{
  const uint32_t halvings = distance >> 15, y_bits = IRM_WEIGHT_ONE | (distance & 32767u) << 8;
  float y, p;
  uint32_t bits;
  memcpy(&y, &y_bits, sizeof y);
  p = IRM_WEIGHT_POLYNOMIAL(y);
  memcpy(&bits, &p, sizeof bits);
  return (bits - IRM_WEIGHT_THREE) << 6 >> (halvings < 31u ? halvings : 31u);
}
