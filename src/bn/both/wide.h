/* Positive numbers of a wide range in 64 bits, for sums whose terms lie thousands of nats apart: `fraction` bits of
 * fraction below an exponent field. The call chooses the split, so that no exponent which matters is lost
 * (orders_ends.c); 0 is the word 0. Words compare like the numbers they stand for. Additions round to nearest in
 * integers; products and their sums are doubles with an exponent of their own. The same bits on the host and on the
 * device. */
#pragma once

#include "core/numbers/math.h"

/* field = exponent + bias; fields below WEFT_BN_MIN_FIELD are zeros, which saves a special case in additions. */
typedef struct weft_bn_wide {
  int fraction;
  int32_t bias;
} weft_bn_wide;
#define WEFT_BN_MIN_FIELD 64
#define WEFT_BN_DOUBLE_FRACTION ((UINT64_C(1) << 52) - 1)

static WEFT_HD inline uint64_t weft_bn_wide_add(weft_bn_wide form, uint64_t x, uint64_t y)
{
  const uint64_t one = UINT64_C(1) << form.fraction, high = x > y ? x : y, low = x > y ? y : x;
  const uint64_t apart = (high >> form.fraction) - (low >> form.fraction), shift = apart < 63 ? apart : 63;
  const uint64_t added = (((low & (one - 1)) | one) + ((UINT64_C(1) << shift) >> 1)) >> shift;
  const uint64_t sum = ((high & (one - 1)) | one) + added, carry = sum >> (form.fraction + 1);
  const uint64_t result = (high & ~(one - 1)) + (carry << form.fraction) + ((sum + carry) >> carry) - one;
  return high ? result : 0;
}

/* 2^exponent for exponent <= 0; 0 where a double has none. */
static WEFT_HD inline double weft_bn_power(int32_t exponent)
{
  return weft_from_bits((uint64_t) (exponent > -1023 ? 1023 + exponent : 0) << 52);
}

/* In [1, 2). */
static WEFT_HD inline double weft_bn_wide_fraction(weft_bn_wide form, uint64_t x)
{
  const uint64_t fraction = x & ((UINT64_C(1) << form.fraction) - 1);
  return weft_from_bits(UINT64_C(1023) << 52 | fraction << (52 - form.fraction));
}

static WEFT_HD inline int32_t weft_bn_wide_field(weft_bn_wide form, uint64_t x)
{
  return (int32_t) (x >> form.fraction);
}

/* value × 2^(field - 2 bias): a sum of products of two numbers. */
typedef struct weft_bn_wide_sum {
  double value;
  int32_t field;
} weft_bn_wide_sum;

static WEFT_HD inline void weft_bn_wide_add_product(weft_bn_wide form, weft_bn_wide_sum *sum, uint64_t x, uint64_t y)
{
  if (!x || !y) return;
  const double term = weft_mul(weft_bn_wide_fraction(form, x), weft_bn_wide_fraction(form, y));
  const int32_t field = weft_bn_wide_field(form, x) + weft_bn_wide_field(form, y), up = field - sum->field;
  const double power = weft_bn_power(up > 0 ? -up : up);
  sum->value = up > 0 ? weft_mul_add(sum->value, power, term) : weft_mul_add(term, power, sum->value);
  sum->field = up > 0 ? field : sum->field;
}

/* value × 2^exponent, with value 0 or a normal double. */
static WEFT_HD inline uint64_t weft_bn_wide_of(weft_bn_wide form, double value, int32_t exponent)
{
  const uint64_t bits = weft_bits_of(value);
  const int32_t field = exponent + form.bias + (int32_t) (bits >> 52) - 1023, dropped = 52 - form.fraction;
  if (!(value > 0) || field < WEFT_BN_MIN_FIELD) return 0;
  return ((uint64_t) field << form.fraction) +
         (((bits & WEFT_BN_DOUBLE_FRACTION) + ((UINT64_C(1) << dropped) >> 1)) >> dropped);
}

static WEFT_HD inline uint64_t weft_bn_wide_of_sum(weft_bn_wide form, weft_bn_wide_sum sum)
{
  return weft_bn_wide_of(form, sum.value, sum.field - 2 * form.bias);
}

static WEFT_HD inline weft_bn_wide_sum weft_bn_wide_as_sum(weft_bn_wide form, uint64_t x)
{
  weft_bn_wide_sum sum = { 0, 0 };
  if (!x) return sum;
  sum.value = weft_bn_wide_fraction(form, x);
  sum.field = weft_bn_wide_field(form, x) + form.bias;
  return sum;
}

static WEFT_HD inline uint64_t weft_bn_wide_product(weft_bn_wide form, uint64_t x, uint64_t y)
{
  weft_bn_wide_sum sum = { 0, 0 };
  weft_bn_wide_add_product(form, &sum, x, y);
  return weft_bn_wide_of_sum(form, sum);
}
