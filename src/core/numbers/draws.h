/* Random draws that are functions of (key, stream, index): the same bits on the CPU and on the GPU, in any order, with
 * any number of threads. An index is a logical draw (cell i of matrix A, step t of chain c), never a thread.
 *
 *   key     64 bits   one per call: from the user's seed
 *   stream  32 bits   one per purpose: two kinds of draws, or two matrices, never share one
 *   index   64 bits   the draw
 *   sub     32 bits   blocks of four words inside one draw, so that a rejection never shifts another draw:
 *
 *     uniform, normal, exponential, gumbel   0
 *     below            t = 0 .. 63                   two candidates of 64 bits per block
 *     categorical_log  j / 2                         gumbel of category j in words 0 1 or 2 3
 *     gamma            2t                            normal of attempt t = 0 .. 63
 *                      2t + 1                        words 0 1 accept; at t = 0, words 2 3 boost a shape below 1
 *     beta             first gamma as above; second gamma the same with bit 31 set
 *
 *            31 30                                  7 6           1 0
 *           +--+-------------------------------------+-------------+-----+
 *     gamma |b | 0                                   | attempt t   | n/u |     b: second gamma of a beta
 *           +--+-------------------------------------+-------------+-----+
 *
 * Every loop is bounded; what it returns at the bound has a probability of at most 2^-128 (below) or 10^-80 (gamma). */
#pragma once

#include "core/numbers/philox.h"

typedef struct weft_rng {
  uint64_t key;
  uint32_t stream;
} weft_rng;

enum { WEFT_BELOW_BLOCKS = 64, WEFT_GAMMA_ATTEMPTS = 64 };
#define WEFT_SECOND_GAMMA 0x80000000u

static WEFT_HD inline weft_u32x4 weft_draw_words(weft_rng rng, uint64_t index, uint32_t sub)
{
  return weft_philox(rng.key, index, rng.stream, sub);
}

/* In (0, 1). */
static WEFT_HD inline double weft_draw_uniform(weft_rng rng, uint64_t index)
{
  weft_u32x4 w = weft_draw_words(rng, index, 0);
  return weft_u01(w.v[0], w.v[1]);
}

/* Box and Muller 1958. The second normal of the pair is discarded, so that one index is one draw; |x| is below 8.6. */
static WEFT_HD inline double weft_normal_of(weft_u32x4 w)
{
  double sine, cosine, radius = weft_sqrt(weft_mul(-2.0, weft_log(weft_u01(w.v[0], w.v[1]))));
  weft_sincos2pi(weft_u01(w.v[2], w.v[3]), &sine, &cosine);
  return weft_mul(radius, cosine);
}

static WEFT_HD inline double weft_draw_normal(weft_rng rng, uint64_t index)
{
  return weft_normal_of(weft_draw_words(rng, index, 0));
}

/* Rate 1. */
static WEFT_HD inline double weft_draw_exponential(weft_rng rng, uint64_t index)
{
  return -weft_log(weft_draw_uniform(rng, index));
}

static WEFT_HD inline double weft_gumbel_of(double u) { return -weft_log(-weft_log(u)); }

/* Location 0, scale 1: P(x <= g) = exp(-exp(-g)). */
static WEFT_HD inline double weft_draw_gumbel(weft_rng rng, uint64_t index)
{
  return weft_gumbel_of(weft_draw_uniform(rng, index));
}

/* The logarithm of Marsaglia and Tsang's acceptance probability over the normal, x^2/2 + d (1 - v + log v) with
 * v = (1 + y)^3, y = x / (3 sqrt(d)). It is 3 d (log(1 + y) - y + y^2/2 - y^3/3): written so, and by its series when y
 * is small, it loses nothing to cancellation at shapes up to the largest double. */
static WEFT_HD inline double weft_gamma_log_ratio(double d, double y)
{
  double q;
  if (y > -0.03 && y < 0.03) {
    q = weft_mul_add(y,
                     weft_mul_add(y,
                                  weft_mul_add(y,
                                               weft_mul_add(y,
                                                            weft_mul_add(y, weft_mul_add(y, -1.0 / 10, 1.0 / 9),
                                                                         -1.0 / 8),
                                                            1.0 / 7),
                                               -1.0 / 6),
                                  1.0 / 5),
                     -1.0 / 4);
    /* d y^2 = x^2 / 9 first: y^4 alone would underflow where d is huge */
    return weft_mul(3.0, weft_mul(weft_mul(weft_mul(d, y), y), weft_mul(weft_mul(y, y), q)));
  }
  q = weft_sub(weft_log(weft_add(1.0, y)), weft_mul(y, weft_sub(1.0, weft_mul(y, weft_sub(0.5, weft_div(y, 3.0))))));
  return weft_mul(weft_mul(3.0, d), q);
}

/* Gamma of a shape >= 1 (Marsaglia and Tsang 2000); *boost is a uniform that the acceptance does not depend on. */
static WEFT_HD inline double weft_gamma_from_one(weft_rng rng, uint64_t index, uint32_t sub, double shape,
                                                 double *boost)
{
  double d = weft_sub(shape, 1.0 / 3.0), scale = weft_div(1.0 / 3.0, weft_sqrt(d));
  for (uint32_t t = 0; t < WEFT_GAMMA_ATTEMPTS; t++) {
    double x = weft_normal_of(weft_draw_words(rng, index, sub + 2 * t));
    weft_u32x4 w = weft_draw_words(rng, index, sub + 2 * t + 1);
    double u = weft_u01(w.v[0], w.v[1]), y = weft_mul(scale, x), v = weft_add(1.0, y), square = weft_mul(x, x);
    if (t == 0) *boost = weft_u01(w.v[2], w.v[3]);
    if (v <= 0.0) continue;
    if (u < weft_sub(1.0, weft_mul(0.0331, weft_mul(square, square))) || weft_log(u) < weft_gamma_log_ratio(d, y))
      return weft_mul(d, weft_mul(v, weft_mul(v, v)));
  }
  return d;
}

/* log of gamma(shape + 1) * u^(1 / shape), which is a gamma of that shape; never below -DBL_MAX. */
static WEFT_HD inline double weft_log_gamma_of(weft_rng rng, uint64_t index, uint32_t sub, double shape)
{
  double boost, log_gamma;
  if (!(shape > 0.0)) return WEFT_NAN;
  if (shape >= 1.0) return weft_log(weft_gamma_from_one(rng, index, sub, shape, &boost));
  log_gamma = weft_log(weft_gamma_from_one(rng, index, sub, weft_add(shape, 1.0), &boost));
  log_gamma = weft_add(log_gamma, weft_div(weft_log(boost), shape));
  return log_gamma < -DBL_MAX ? -DBL_MAX : log_gamma;
}

/* Scale 1, shape > 0 (else NaN). Small shapes underflow to 0 where weft_draw_log_gamma, the logarithm of the same draw,
 * does not; it is exact in law for shapes from 1e-306, below which -DBL_MAX stands for all that is smaller. */
static WEFT_HD inline double weft_draw_gamma(weft_rng rng, uint64_t index, double shape)
{
  double boost;
  if (shape >= 1.0) return weft_gamma_from_one(rng, index, 0, shape, &boost);
  return weft_exp(weft_log_gamma_of(rng, index, 0, shape));
}

static WEFT_HD inline double weft_draw_log_gamma(weft_rng rng, uint64_t index, double shape)
{
  return weft_log_gamma_of(rng, index, 0, shape);
}

/* log x and log(1 - x) of a beta(a, b) draw x, both finite for a, b in 1e-306 .. 1e300. With gammas G and H,
 * x = G / (G + H), so both follow from log G - log H. */
static WEFT_HD inline void weft_draw_log_beta(weft_rng rng, uint64_t index, double a, double b, double *log_x,
                                              double *log_1mx)
{
  double log_odds = weft_sub(weft_log_gamma_of(rng, index, 0, a), weft_log_gamma_of(rng, index, WEFT_SECOND_GAMMA, b));
  int below_half = log_odds < 0.0;
  double distance = below_half ? -log_odds : log_odds;
  double log_larger = -weft_log1p(weft_exp(-distance)), log_smaller = weft_sub(log_larger, distance);
  *log_x = below_half ? log_smaller : log_larger;
  *log_1mx = below_half ? log_larger : log_smaller;
}

/* In [0, 1]: at small a or b the nearest double is often 0 or 1, where weft_draw_log_beta still tells them apart. */
static WEFT_HD inline double weft_draw_beta(weft_rng rng, uint64_t index, double a, double b)
{
  double log_x, log_1mx;
  weft_draw_log_beta(rng, index, a, b, &log_x, &log_1mx);
  return weft_exp(log_x);
}

/* The high 64 bits of x * y; *low gets the others. Plain 32-bit halves, since ISO C has no 128-bit type. */
static WEFT_HD inline uint64_t weft_multiply_high(uint64_t x, uint64_t y, uint64_t *low)
{
  uint64_t x0 = (uint32_t) x, x1 = x >> 32, y0 = (uint32_t) y, y1 = y >> 32;
  uint64_t mid = x1 * y0 + ((x0 * y0) >> 32), mid2 = x0 * y1 + (uint32_t) mid;
  *low = x * y;
  return x1 * y1 + (mid >> 32) + (mid2 >> 32);
}

/* A whole number in [0, n), each with the same probability (Lemire 2019); 0 when n is 0. */
static WEFT_HD inline uint64_t weft_draw_below(weft_rng rng, uint64_t index, uint64_t n)
{
  uint64_t high = 0, low, biased = 0;
  int biased_known = 0;
  for (uint32_t t = 0; t < WEFT_BELOW_BLOCKS; t++) {
    weft_u32x4 w = weft_draw_words(rng, index, t);
    for (int half = 0; half < 2; half++) {
      high = weft_multiply_high(((uint64_t) w.v[2 * half] << 32) | w.v[2 * half + 1], n, &low);
      if (low >= n) return high;
      /* rejects 2^64 mod n of all words, so that each result has as many; the division is rarely needed */
      if (!biased_known) {
        biased = (0 - n) % n;
        biased_known = 1;
      }
      if (low >= biased) return high;
    }
  }
  return high;
}

/* The first i with u * sum(weights) < weights[0] + ... + weights[i], both sums from 0 upwards. Weights that are not
 * positive count as 0; -1 when the sum is not positive and finite. */
static WEFT_HD inline int64_t weft_draw_categorical(weft_rng rng, uint64_t index, const double *weights, int64_t n)
{
  double total = 0.0, reached = 0.0, target;
  int64_t last = -1;
  for (int64_t i = 0; i < n; i++)
    if (weights[i] > 0.0) total = weft_add(total, weights[i]);
  if (!(total > 0.0 && total <= DBL_MAX)) return -1;
  target = weft_mul(weft_draw_uniform(rng, index), total);
  for (int64_t i = 0; i < n; i++) {
    if (!(weights[i] > 0.0)) continue;
    reached = weft_add(reached, weights[i]);
    last = i;
    if (target < reached) return i;
  }
  return last;
}

/* The same law from logarithms that need no common scale: the greatest of log_weights[i] + gumbel_i, the first on a
 * tie. -Inf and NaN are never drawn; -1 when there is nothing else. n is at most 2^33. */
static WEFT_HD inline int64_t weft_draw_categorical_log(weft_rng rng, uint64_t index, const double *log_weights,
                                                        int64_t n)
{
  double best = -WEFT_INFINITY;
  int64_t chosen = -1;
  weft_u32x4 w = { { 0, 0, 0, 0 } };
  for (int64_t i = 0; i < n; i++) {
    int half = (int) (i & 1);
    double score;
    if (half == 0) w = weft_draw_words(rng, index, (uint32_t) (i >> 1));
    score = weft_add(log_weights[i], weft_gumbel_of(half ? weft_u01(w.v[2], w.v[3]) : weft_u01(w.v[0], w.v[1])));
    if (score > best) {
      best = score;
      chosen = i;
    }
  }
  return chosen;
}
