/* Numbers of wide range with twice a double's precision, for sums whose terms cancel: (hi + lo) × 2^exponent, where lo
 * is some 2^-53 of hi or less, and hi = 0 is zero. Products of a few numbers with hi in [1, 2) need no new exponent;
 * weft_bn_pair_normal() makes one. */
#ifndef WEFT_BN_PAIR_H
#define WEFT_BN_PAIR_H

#include <math.h>
#include "bn_wide.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_bn_pair { double hi, lo; int32_t exponent; } weft_bn_pair;

static WEFT_HD inline double weft_bn_fma(double x, double y, double z)
{
  return WEFT_BY_DEVICE(__fma_rn(x, y, z), fma(x, y, z));
}

static WEFT_HD inline weft_bn_pair weft_bn_pair_times(weft_bn_pair x, weft_bn_pair y)
{
  const double hi = weft_mul(x.hi, y.hi);
  const double lo = weft_bn_fma(x.lo, y.hi, weft_bn_fma(x.hi, y.lo, weft_bn_fma(x.hi, y.hi, -hi)));
  const weft_bn_pair product = { hi, lo, x.exponent + y.exponent };
  return product;
}

/* By a word of bn_wide.h; negative: by what is opposite to it. */
static WEFT_HD inline weft_bn_pair weft_bn_pair_times_word(weft_bn_wide form, weft_bn_pair x, uint64_t word,
                                                           int negative)
{
  const double size = word ? weft_bn_wide_fraction(form, word) : 0;
  const weft_bn_pair y = { negative ? -size : size, 0, weft_bn_wide_field(form, word) - form.bias };
  return weft_bn_pair_times(x, y);
}

/* x + y × 2^(y's exponent - x's), with x's exponent. */
static WEFT_HD inline weft_bn_pair weft_bn_pair_add(weft_bn_pair x, weft_bn_pair y)
{
  const double power = y.hi == 0 ? 0 : weft_bn_power(y.exponent - x.exponent), term = weft_mul(y.hi, power);
  const double rough = weft_add(x.hi, term), taken = weft_sub(rough, x.hi);
  const double lost = weft_add(weft_sub(x.hi, weft_sub(rough, taken)), weft_sub(term, taken));
  const double low = weft_add(weft_add(x.lo, weft_mul(y.lo, power)), lost), hi = weft_add(rough, low);
  const weft_bn_pair sum = { hi, weft_sub(low, weft_sub(hi, rough)), x.exponent };
  return sum;
}

/* With hi in [1, 2); what is not positive becomes zero. */
static WEFT_HD inline weft_bn_pair weft_bn_pair_normal(weft_bn_pair x)
{
  const weft_bn_pair zero = { 0, 0, 0 };
  if (!(x.hi > 0)) return zero;
  const int32_t exponent = (int32_t) (weft_bits_of(x.hi) >> 52) - 1023;
  const double power = weft_bn_power(-exponent);
  const weft_bn_pair normal = { weft_mul(x.hi, power), weft_mul(x.lo, power), x.exponent + exponent };
  return normal;
}

#ifdef __cplusplus
}
#endif
#endif
