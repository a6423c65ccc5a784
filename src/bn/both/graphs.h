/* Exact edge posteriors under a uniform prior over graphs, by inclusion and exclusion over subsets (Tian and He 2009),
 * 3^p steps in each of two directions. With a_v(C) = Σ of the weights of v's parent sets within C, and R a set of nodes
 * outside C that have all their parents within C:
 *   B(C) = Σ_{R not empty} (-1)^(|R| + 1) Π_{v in R} a_v(C) B(C + R)          what all nodes outside C can add
 *   T_C(R) = (-1)^(|R| + 1) Q(C) / B(C) Π_{v in R} a_v(C) B(C + R)
 *   Q(C + R) gets T_C(R), from Q(none) = 1                                    probability that no edge enters C
 *   S_v(C) = Σ_{R with v} T_C(R)                                  probability that C is all but v and v's descendants
 *   P(v has parents P) = weight_v(P) Σ_{C with P} S_v(C) / a_v(C)
 * A term of B(C) is the weight of those graphs in which no node of R has a parent outside C, so that none exceeds B(C);
 * and no T_C(R) exceeds Q(C). So terms are whole numbers, in units that are known beforehand: for B(C) of the power of
 * two above Σ_v a_v(C) B(C + v), which is between B(C) and p B(C); for Q and S of 1. Sums of whole numbers are the same
 * in any order: threads and devices give the same bits. The loss by cancellation is counted in units: a unit is 2^-60
 * of what the sum can be, and a rounding error of B(C) enters the result times Q(C).
 *
 * Of the k nodes outside C the first eight are R's low part, eight more its middle part, the others its top part. Each
 * part has the product of its a_v(C), and a term is the product of four numbers (weft_bn_graph_term). */
#pragma once

#include "bn/bn.h"
#include "core/numbers/math.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_BN_MAX_GRAPH_NODES 28
#define WEFT_BN_LOW_NODES 8
#define WEFT_BN_MIDDLE_NODES 8
#define WEFT_BN_GRAPH_BITS 60 /* a sum's greatest value, in bits */

/* fraction × 2^exponent; the fraction is 0 or has bit 63. Products and sums are cut off, not rounded. */
typedef struct weft_bn_real {
  uint64_t fraction;
  int32_t exponent;
} weft_bn_real;

/* Tables of such numbers. */
typedef struct weft_bn_reals {
  uint64_t *fraction;
  int32_t *exponent;
} weft_bn_reals;

static WEFT_HD inline weft_bn_real weft_bn_real_of(uint64_t fraction, int32_t exponent)
{
  weft_bn_real x;
  x.fraction = fraction;
  x.exponent = exponent;
  return x;
}

static WEFT_HD inline weft_bn_real weft_bn_one(void) { return weft_bn_real_of(UINT64_C(1) << 63, -63); }

static WEFT_HD inline weft_bn_real weft_bn_read(weft_bn_reals from, size_t at)
{
  return weft_bn_real_of(from.fraction[at], from.exponent[at]);
}

static WEFT_HD inline void weft_bn_write(weft_bn_reals to, size_t at, weft_bn_real x)
{
  to.fraction[at] = x.fraction;
  to.exponent[at] = x.exponent;
}

/* The upper half of a product. */
static WEFT_HD inline uint64_t weft_bn_high(uint64_t x, uint64_t y)
{
#ifdef __CUDA_ARCH__
  return __umul64hi(x, y);
#elif defined(__SIZEOF_INT128__)
  __extension__ typedef unsigned __int128 product;
  return (uint64_t) ((product) x * y >> 64);
#else
  const uint64_t x0 = (uint32_t) x, x1 = x >> 32, y0 = (uint32_t) y, y1 = y >> 32;
  const uint64_t inner = x1 * y0 + (x0 * y0 >> 32), other = x0 * y1 + (uint32_t) inner;
  return x1 * y1 + (inner >> 32) + (other >> 32);
#endif
}

/* The number of bits of x. */
static WEFT_HD inline int weft_bn_length(uint64_t x)
{
#ifdef __CUDA_ARCH__
  return 64 - __clzll((long long) x);
#else
  return x ? 64 - __builtin_clzll(x) : 0;
#endif
}

/* units × 2^unit */
static WEFT_HD inline weft_bn_real weft_bn_real_of_units(uint64_t units, int32_t unit)
{
  const int up = 64 - weft_bn_length(units);
  return units ? weft_bn_real_of(units << up, unit - up) : weft_bn_real_of(0, 0);
}

static WEFT_HD inline weft_bn_real weft_bn_real_product(weft_bn_real x, weft_bn_real y)
{
  const uint64_t high = weft_bn_high(x.fraction, y.fraction);
  const int up = high >> 63 ? 0 : 1;
  return weft_bn_real_of(high << up, x.exponent + y.exponent + 64 - up);
}

static WEFT_HD inline weft_bn_real weft_bn_real_sum(weft_bn_real x, weft_bn_real y)
{
  const int swap = !x.fraction || (y.fraction && y.exponent > x.exponent);
  const weft_bn_real most = swap ? y : x, least = swap ? x : y;
  const int64_t apart = (int64_t) most.exponent - least.exponent;
  const uint64_t added = least.fraction && apart < 64 ? least.fraction >> apart : 0, sum = most.fraction + added;
  const int carry = sum < added;
  return weft_bn_real_of(carry ? sum >> 1 | UINT64_C(1) << 63 : sum, most.exponent + carry);
}

/* Numbers that may be negative, as two's complements of 63 bits: what rounding makes of small ones must not have a
 * bias. */
static WEFT_HD inline weft_bn_real weft_bn_signed_of(weft_bn_real size, int negative)
{
  return weft_bn_real_of(negative ? 0 - (size.fraction >> 1) : size.fraction >> 1, size.exponent + 1);
}

static WEFT_HD inline weft_bn_real weft_bn_signed_sum(weft_bn_real x, weft_bn_real y)
{
  const int swap = !x.fraction || (y.fraction && y.exponent > x.exponent);
  const weft_bn_real most = swap ? y : x, least = swap ? x : y;
  const int64_t apart = (int64_t) most.exponent - least.exponent;
  const int64_t added = (int64_t) least.fraction >> (least.fraction && apart < 63 ? apart : 63);
  const int64_t half = ((int64_t) most.fraction >> 1) + (added >> 1);
  const int up = 63 - weft_bn_length((uint64_t) (half < 0 ? -half : half));
  if (!least.fraction) return most;
  return half ? weft_bn_real_of((uint64_t) half << up, most.exponent + 1 - up) : weft_bn_real_of(0, 0);
}

static WEFT_HD inline int weft_bn_is_negative(uint64_t units) { return (int) (units >> 63); }

static WEFT_HD inline uint64_t weft_bn_size(uint64_t units) { return weft_bn_is_negative(units) ? 0 - units : units; }

/* floor(x 2^64 / y) for x < y, y with bit 63: two digits of 32 bits (Knuth's algorithm D). */
static WEFT_HD inline uint64_t weft_bn_quotient(uint64_t x, uint64_t y)
{
  const uint64_t y1 = y >> 32, y0 = (uint32_t) y;
  uint64_t rest = x, result = 0;
  for (int digit = 0; digit < 2; digit++) {
    uint64_t guess = rest / y1, left = rest % y1;
    while (!(left >> 32) && (guess >> 32 || guess * y0 > left << 32)) {
      guess--;
      left += y1;
    }
    rest = (rest << 32) - guess * y;
    result = result << 32 | guess;
  }
  return result;
}

/* x / y; 0 where y is 0. */
static WEFT_HD inline weft_bn_real weft_bn_real_ratio(weft_bn_real x, weft_bn_real y)
{
  const int above = x.fraction >= y.fraction;
  if (!x.fraction || !y.fraction) return weft_bn_real_of(0, 0);
  const uint64_t low = weft_bn_quotient(above ? x.fraction - y.fraction : x.fraction, y.fraction);
  return weft_bn_real_of(above ? low >> 1 | UINT64_C(1) << 63 : low, x.exponent - y.exponent - 64 + above);
}

/* base × middle × after in units of 2^unit, to nearest: base is λ Π a_v(C) over R's low and top part, with λ = 1 for
 * B(C) and Q(C) / B(C) for T_C(R); after is B(C + R). It is below 2^61 units, and the product of fractions not, so that
 * the shift is positive. */
static WEFT_HD inline uint64_t weft_bn_graph_term(weft_bn_real base, weft_bn_real middle, weft_bn_real after,
                                                  int32_t unit)
{
  const uint64_t product = weft_bn_high(weft_bn_high(base.fraction, middle.fraction), after.fraction);
  const uint32_t shift = (uint32_t) (unit - base.exponent - middle.exponent - after.exponent - 129);
  return shift < 64 ? ((product >> shift) + 1) >> 1 : 0;
}

/* What node v may add to the bound of B(C), a_v(C) B(C + v): below 2^64 × 2^exponent. */
static WEFT_HD inline weft_bn_real weft_bn_graph_step(weft_bn_real a, weft_bn_real after)
{
  return weft_bn_real_of(weft_bn_high(a.fraction, after.fraction), a.exponent + after.exponent + 64);
}

/* The step in units of 2^(most + 8), upwards, for `most` the greatest exponent among the steps that are not 0. */
static WEFT_HD inline uint64_t weft_bn_graph_bound(weft_bn_real step, int32_t most)
{
  const int64_t shift = (int64_t) most + 8 - step.exponent;
  return step.fraction ? (shift < 64 ? step.fraction >> shift : 0) + 1 : 0;
}

/* |Q(C)| / B(C), and S_v(C) / a_v(C) with its sign, from sums in units. */
static WEFT_HD inline weft_bn_real weft_bn_graph_scale(uint64_t closed, weft_bn_real after)
{
  return weft_bn_real_ratio(weft_bn_real_of_units(weft_bn_size(closed), -WEFT_BN_GRAPH_BITS), after);
}

static WEFT_HD inline weft_bn_real weft_bn_graph_share(uint64_t sum, weft_bn_real a)
{
  return weft_bn_signed_of(weft_bn_real_ratio(weft_bn_real_of_units(weft_bn_size(sum), -WEFT_BN_GRAPH_BITS), a),
                           weft_bn_is_negative(sum));
}

/* The unit of B(C) from the sum of those bounds. */
static WEFT_HD inline int32_t weft_bn_graph_unit(uint64_t bound, int32_t most)
{
  return most + 8 + weft_bn_length(bound) - WEFT_BN_GRAPH_BITS;
}

/* What both back ends start from and end with. weight: exp(score - the node's best) of each set. through: of each set
 * Σ_{C with it} S_v(C) / a_v(C), with a sign. */
typedef struct weft_bn_graph_plan {
  size_t p, all, sets; /* all: 2^p */
  weft_bn_reals weight, through;
  uint32_t *by_size; /* the subsets, and where those of each size begin */
  size_t begin[WEFT_BN_MAX_GRAPH_NODES + 2];
} weft_bn_graph_plan;

/* On the CPU: a_v(C), at v 2^p + C, and B(C). */
weft_status weft_bn_graph_completions(weft_ctx *ctx, weft_arena *mem, const weft_bn_table *table,
                                      const weft_bn_graph_plan *plan, double progress, weft_bn_reals *a,
                                      weft_bn_reals *after);

#ifdef __cplusplus
}
#endif
