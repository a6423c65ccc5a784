/* log, log1p, exp and the sine and cosine of a turn in double, written once for C and CUDA: the same bits on the host
 * and on the device, with any compiler and any instruction set. The draws (draws.h) use them.
 *
 * Bit-identity needs each sum and product rounded by itself, so all arithmetic goes through weft_add ... weft_sqrt. On
 * the device they are the __d*_rn intrinsics, which nvcc never contracts; on the host they are plain operators, so C
 * files that include this header are compiled with -ffp-contract=off (on arm64, or with -march=native, gcc would form
 * fma otherwise).
 *
 * Argument reduction and the order of the sums follow fdlibm (Sun Microsystems 1993) as known from its papers (Tang
 * 1989, 1990; Ng 1992); the coefficients are minimax fits of our own (Remez, 300 bits, rounded to double). Greatest
 * error seen against 113-bit arithmetic, 16 to 24 million points per function over its whole range and near its
 * special points: log 0.83 ulp, log1p 0.84, exp 0.89 (0.87 where the result is denormal), sine 1.05, cosine 1.04. The
 * directory must not be on the compiler's -I path: <math.h> means the system's. */
#pragma once

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#  define WEFT_HD __host__ __device__
#else
#  define WEFT_HD
#endif

#ifdef __FAST_MATH__
#  error "weft's draws need IEEE arithmetic: compile without -ffast-math"
#endif
#if !defined(__CUDACC__) && defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#  error "weft's draws need double arithmetic without excess precision (x87: use -msse2 -mfpmath=sse)"
#endif
#if defined(__clang__) && !defined(__CUDACC__)
#  pragma STDC FP_CONTRACT OFF
#endif

#ifdef __CUDA_ARCH__
#  define WEFT_BY_DEVICE(device, host) (device)
#else
#  define WEFT_BY_DEVICE(device, host) (host)
#endif

static WEFT_HD inline double weft_add(double x, double y) { return WEFT_BY_DEVICE(__dadd_rn(x, y), x + y); }
static WEFT_HD inline double weft_sub(double x, double y) { return WEFT_BY_DEVICE(__dsub_rn(x, y), x - y); }
static WEFT_HD inline double weft_mul(double x, double y) { return WEFT_BY_DEVICE(__dmul_rn(x, y), x * y); }
static WEFT_HD inline double weft_div(double x, double y) { return WEFT_BY_DEVICE(__ddiv_rn(x, y), x / y); }
static WEFT_HD inline double weft_sqrt(double x) { return WEFT_BY_DEVICE(__dsqrt_rn(x), sqrt(x)); }
/* x * y + z, rounded twice */
static WEFT_HD inline double weft_mul_add(double x, double y, double z) { return weft_add(weft_mul(x, y), z); }

static WEFT_HD inline uint64_t weft_bits_of(double x)
{
  uint64_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}
static WEFT_HD inline double weft_from_bits(uint64_t b)
{
  double x;
  memcpy(&x, &b, sizeof x);
  return x;
}

#define WEFT_INFINITY weft_from_bits(UINT64_C(0x7ff0000000000000))
#define WEFT_NAN weft_from_bits(UINT64_C(0x7ff8000000000000))

/* ln 2 in two parts; the first has 38 bits, so that its product with any exponent is exact. */
#define WEFT_LN2_HI 0.69314718055829871
#define WEFT_LN2_LO 1.6465949582897082e-12

/* x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), x positive, finite and normal. f is exact. */
static WEFT_HD inline int weft_split_exponent(double x, double *f)
{
  const uint64_t root_half = UINT64_C(0x3fe6a09e00000000), one = UINT64_C(0x3ff0000000000000);
  uint64_t b = weft_bits_of(x) + (one - root_half);
  *f = weft_sub(weft_from_bits((b & UINT64_C(0x000fffffffffffff)) + root_half), 1.0);
  return (int) (b >> 52) - 1023;
}

/* k ln 2 + log(1 + f) + c for a small correction c. With s = f / (2 + f), log(1 + f) = log((1 + s) / (1 - s))
 * = f - f^2/2 + s (f^2/2 + R(s^2)): the leading terms are f and f^2/2, whose rounding is all that shows. */
static WEFT_HD inline double weft_log_parts(int k, double f, double c)
{
  double s = weft_div(f, weft_add(2.0, f)), z = weft_mul(s, s), w = weft_mul(z, z);
  double odd =
      weft_mul_add(w, weft_mul_add(w, weft_mul_add(w, 0.14796623610964973, 0.18183566665316644), 0.28571428742765109),
                   0.66666666666667351);
  double even = weft_mul_add(w, weft_mul_add(w, 0.15313986868808385, 0.22222198531212539), 0.39999999999413133);
  double r = weft_add(weft_mul(z, odd), weft_mul(w, even));
  double half_square = weft_mul(0.5, weft_mul(f, f));
  double low = weft_mul_add((double) k, WEFT_LN2_LO, c);
  double tail = weft_sub(weft_add(weft_mul(s, weft_add(half_square, r)), low), half_square);
  return weft_add(weft_add(tail, f), weft_mul((double) k, WEFT_LN2_HI));
}

/* log(0) is -Inf, log of a negative number NaN. */
static WEFT_HD inline double weft_log(double x)
{
  double f;
  int k = 0;
  if (!(x > 0.0)) return x == 0.0 ? -WEFT_INFINITY : WEFT_NAN;
  if (x > DBL_MAX) return x;
  if (x < DBL_MIN) {
    x = weft_mul(x, 18014398509481984.0);
    k = -54;
  }
  k += weft_split_exponent(x, &f);
  return weft_log_parts(k, f, 0.0);
}

/* Exact at powers of two. */
static WEFT_HD inline double weft_log2(double x)
{
  double f;
  int k = 0;
  if (!(x > 0.0)) return x == 0.0 ? -WEFT_INFINITY : WEFT_NAN;
  if (x > DBL_MAX) return x;
  if (x < DBL_MIN) {
    x = weft_mul(x, 18014398509481984.0);
    k = -54;
  }
  k += weft_split_exponent(x, &f);
  return weft_mul_add(weft_log_parts(0, f, 0.0), 1.4426950408889634, (double) k);
}

/* log(1 + x). What the sum 1 + x loses is put back as a first-order correction. */
static WEFT_HD inline double weft_log1p(double x)
{
  double u, f, lost;
  int k;
  if (!(x > -1.0)) return x == -1.0 ? -WEFT_INFINITY : WEFT_NAN;
  if (x > DBL_MAX || x == 0.0) return x;
  u = weft_add(1.0, x);
  k = weft_split_exponent(u, &f);
  if (k == 0) return weft_log_parts(0, x, 0.0);
  lost = x > 1.0 ? weft_sub(1.0, weft_sub(u, x)) : weft_sub(x, weft_sub(u, 1.0));
  return weft_log_parts(k, f, weft_div(lost, u));
}

/* exp(x) = 2^k exp(r), |r| <= ln(2) / 2, exp(r) = 1 + r + r^2 Q(r). 2^k is applied in two factors, so that a result
 * below the normal range is rounded once. */
static WEFT_HD inline double weft_exp(double x)
{
  const double round_to_integer = 6755399441055744.0; /* 1.5 * 2^52: the sum's last bit is worth 1 */
  double shifted, kd, hi, lo, r, z, odd, even, y;
  int k, first;
  if (!(x <= 709.782712893384)) return x > 0.0 ? WEFT_INFINITY : WEFT_NAN;
  if (x < -745.13321910194122) return 0.0;
  shifted = weft_mul_add(x, 1.4426950408889634, round_to_integer);
  kd = weft_sub(shifted, round_to_integer);
  k = (int) kd;
  hi = weft_sub(x, weft_mul(kd, WEFT_LN2_HI));
  lo = weft_mul(kd, WEFT_LN2_LO);
  r = weft_sub(hi, lo);
  z = weft_mul(r, r);
  even = weft_mul_add(z,
                      weft_mul_add(z,
                                   weft_mul_add(z,
                                                weft_mul_add(z,
                                                             weft_mul_add(z, 2.092689415459037e-09,
                                                                          2.7557233525015299e-07),
                                                             2.4801587373538495e-05),
                                                0.0013888888888858549),
                                   0.041666666666666727),
                      0.5);
  odd = weft_mul_add(z,
                     weft_mul_add(z,
                                  weft_mul_add(z, weft_mul_add(z, 2.511224013663601e-08, 2.7557234235860313e-06),
                                               0.00019841269897059985),
                                  0.0083333333333167389),
                     0.16666666666666685);
  y = weft_mul(z, weft_mul_add(r, odd, even));
  y = weft_add(1.0, weft_add(hi, weft_sub(y, lo)));
  first = k / 2;
  y = weft_mul(y, weft_from_bits((uint64_t) (first + 1023) << 52));
  return weft_mul(y, weft_from_bits((uint64_t) (k - first + 1023) << 52));
}

/* sin(2 pi u) and cos(2 pi u) for any finite u; the reduction to r = u - q/4, |r| <= 1/8, is exact.
 * sin = 2 pi r + r^3 S(r^2), where r and 2 pi are split so that the leading product is exact;
 * cos = 1 - 2 pi^2 r^2 + r^4 C(r^2). */
static WEFT_HD inline void weft_sincos2pi(double u, double *sine, double *cosine)
{
  const double two_pi = 6.2831853071795862, two_pi_hi = 6.2831852436065674, two_pi_lo = 6.3573019094112784e-08;
  const double integers_from = 9007199254740992.0;
  double turns, r, r_hi, r_lo, z, poly, s, c, square, near_one;
  int quarter;
  if (!(u >= -DBL_MAX && u <= DBL_MAX)) {
    *sine = *cosine = WEFT_NAN;
    return;
  }
  if (u >= integers_from || u <= -integers_from) u = 0.0;
  u = weft_sub(u, (double) (int64_t) u);
  turns = weft_mul(4.0, u);
  quarter = (int) (turns < 0.0 ? weft_sub(turns, 0.5) : weft_add(turns, 0.5));
  r = weft_sub(u, weft_mul(0.25, (double) quarter));
  r_hi = weft_from_bits(weft_bits_of(r) & UINT64_C(0xfffffffff8000000));
  r_lo = weft_sub(r, r_hi);
  z = weft_mul(r, r);

  poly =
      weft_mul_add(z,
                   weft_mul_add(z,
                                weft_mul_add(z,
                                             weft_mul_add(z, weft_mul_add(z, 3.7813740419082409, -15.093829720234675),
                                                          42.058685514548294),
                                             -76.705859708855499),
                                81.605249275968518),
                   -41.341702240399677);
  s = weft_add(weft_mul(r_hi, two_pi_lo), weft_mul(r_lo, two_pi));
  s = weft_add(weft_mul(r_hi, two_pi_hi), weft_add(s, weft_mul(weft_mul(r, z), poly)));

  poly =
      weft_mul_add(z,
                   weft_mul_add(z,
                                weft_mul_add(z,
                                             weft_mul_add(z, weft_mul_add(z, -1.6978105536871293, 7.9031463110915574),
                                                          -26.42625213790798),
                                             60.244641342729182),
                                -85.456817206604072),
                   64.939394022668182);
  square = weft_mul(z, 19.739208802178716);
  near_one = weft_sub(1.0, square);
  c = weft_add(near_one, weft_add(weft_sub(weft_sub(1.0, near_one), square), weft_mul(weft_mul(z, z), poly)));

  switch (quarter & 3) {
  case 0:
    *sine = s;
    *cosine = c;
    break;
  case 1:
    *sine = c;
    *cosine = -s;
    break;
  case 2:
    *sine = -s;
    *cosine = -c;
    break;
  default:
    *sine = -c;
    *cosine = s;
    break;
  }
}
