/* The sheet of kernels: a row for each, and below the rows its formulas. The enum, the tables, the cases of switches
 * and the instances of tiles and device kernels are made from the rows, so that a kernel that lacks something does not
 * compile.
 *
 * A kernel is a function of s = r²/h² with k(0) = 1. None increases with s, and all but steps are convex in it, which
 * is what the bounds of nodes rely on (tile.h). The columns of a row:
 *
 *   name, R's name
 *   form      EXPONENTIAL  factor(s, u) exp(-u) with u = exponent(s): logarithms may shift the exponent
 *             ALGEBRAIC    of s, without an end
 *             COMPACT      of t = 1 - s and s where s < 1, else 0
 *             STEP         1 where s <= 1, else 0; no formula
 *   single    sums in float: EXPANDED, s comes from |q|² + |x|² - 2 q·x; APART, from differences; NEVER
 *   tensor    YES: on the device's tensor cores too. Needs EXPANDED, and takes k for 0 where scale² s > 60000
 *   scale     of coordinates in float on the device, so that an exponent takes no product; 1 where there is none
 *   D1, D2    max |dk/dr| and max r |dk/dr| at h = 1: the effect of errors of distances
 *   E0, E1    max |dk/ds| and max s |dk/ds|: the effect of errors of their squares. All four are rounded up, or NONE
 *
 * tile.h includes this again for the formulas in vectors, tiles.cuh for those in the device's fast floats.
 * README.md says how a kernel is added. */
#ifndef WEFT_KERNEL_KINDS_H
#define WEFT_KERNEL_KINDS_H

#include <math.h>

#ifndef WEFT_HD
#  ifdef __CUDACC__
#    define WEFT_HD __host__ __device__
#  else
#    define WEFT_HD
#  endif
#endif

/* clang-format off */
#define WEFT_KERNEL_ROWS(ROW) \
  ROW(GAUSSIAN,     "gaussian",     EXPONENTIAL, EXPANDED, YES, 0.84932180028801907, 0.6066, 0.7358, 0.5,    0.3679) \
  ROW(LAPLACIAN,    "laplacian",    EXPONENTIAL, APART,    NO,  1,                   1,      0.3679, NONE,   NONE) \
  ROW(MATERN32,     "matern32",     EXPONENTIAL, EXPANDED, NO,  1.7320508075688772,  0.6373, 0.5414, 1.5,    0.2707) \
  ROW(MATERN52,     "matern52",     EXPONENTIAL, EXPANDED, NO,  2.2360679774997898,  0.6262, 0.6044, 0.8334, 0.3023) \
  ROW(MATERN72,     "matern72",     EXPONENTIAL, EXPANDED, NO,  2.6457513110645907,  0.6219, 0.6372, 0.7,    0.3186) \
  ROW(CAUCHY,       "cauchy",       ALGEBRAIC,   EXPANDED, NO,  1,                   0.6496, 0.5,    1,      0.25) \
  ROW(UNIFORM,      "uniform",      STEP,        NEVER,    NO,  1,                   NONE,   NONE,   NONE,   NONE) \
  ROW(EPANECHNIKOV, "epanechnikov", COMPACT,     EXPANDED, YES, 1,                   2,      2,      1,      1) \
  ROW(TRIANGULAR,   "triangular",   COMPACT,     APART,    NO,  1,                   1,      1,      NONE,   NONE) \
  ROW(BIWEIGHT,     "biweight",     COMPACT,     EXPANDED, YES, 1,                   1.5397, 1,      2,      0.5) \
  ROW(COSINE,       "cosine",       COMPACT,     EXPANDED, YES, 1,                   1.5708, 1.5708, 1.2338, 0.7854) \
  ROW(WENDLAND,     "wendland",     COMPACT,     EXPANDED, NO,  1,                   2.1094, 0.6912, 10,     0.3456)
/* clang-format on */

/* ---- made from the rows ---- */

#define ROW(name, ...) WEFT_##name,
typedef enum { WEFT_KERNEL_ROWS(ROW) WEFT_KERNELS } weft_kernel_kind;
#undef ROW

enum { WEFT_FORM_EXPONENTIAL, WEFT_FORM_ALGEBRAIC, WEFT_FORM_COMPACT, WEFT_FORM_STEP };
enum { WEFT_SINGLE_NEVER, WEFT_SINGLE_APART, WEFT_SINGLE_EXPANDED };
enum { WEFT_TENSOR_NO, WEFT_TENSOR_YES };

/* Sets of kernels, a bit for each. */
enum {
#define ROW(name, known_as, form, ...) | ((WEFT_FORM_##form == WEFT_FORM_EXPONENTIAL) << WEFT_##name)
  WEFT_EXPONENTIAL_KERNELS = 0 WEFT_KERNEL_ROWS(ROW),
#undef ROW
#define ROW(name, known_as, form, ...) | ((WEFT_FORM_##form >= WEFT_FORM_COMPACT) << WEFT_##name)
  WEFT_COMPACT_KERNELS = 0 WEFT_KERNEL_ROWS(ROW),
#undef ROW
#define ROW(name, known_as, form, ...) | ((WEFT_FORM_##form == WEFT_FORM_STEP) << WEFT_##name)
  WEFT_STEP_KERNELS = 0 WEFT_KERNEL_ROWS(ROW),
#undef ROW
#define ROW(name, known_as, form, single, ...) | ((WEFT_SINGLE_##single == WEFT_SINGLE_EXPANDED) << WEFT_##name)
  WEFT_EXPANDED_KERNELS = 0 WEFT_KERNEL_ROWS(ROW),
#undef ROW
#define ROW(name, known_as, form, single, tensor, ...) | (WEFT_TENSOR_##tensor << WEFT_##name)
  WEFT_TENSOR_KERNELS = 0 WEFT_KERNEL_ROWS(ROW)
#undef ROW
};
#define WEFT_KERNEL_IN(set, kind) ((WEFT_##set##_KERNELS >> (kind)) & 1)

/* Steps are compact too. */
static WEFT_HD inline int weft_kernel_compact(int kind) { return WEFT_KERNEL_IN(COMPACT, kind); }
static WEFT_HD inline int weft_kernel_step(int kind) { return WEFT_KERNEL_IN(STEP, kind); }
static WEFT_HD inline int weft_kernel_exponential(int kind) { return WEFT_KERNEL_IN(EXPONENTIAL, kind); }

typedef struct weft_kernel_row {
  const char *name, *form, *single;
  double scale, d1, d2, e0, e1;
} weft_kernel_row;

#define NONE HUGE_VAL
static inline const weft_kernel_row *weft_kernel_row_of(int kind)
{
#define ROW(name, known_as, form, single, tensor, ...) { known_as, #form, #single, __VA_ARGS__ },
  static const weft_kernel_row rows[WEFT_KERNELS] = { WEFT_KERNEL_ROWS(ROW) };
#undef ROW
  return &rows[kind];
}
#undef NONE

#ifdef __cplusplus
#  define WEFT_ASSERT static_assert
#else
#  define WEFT_ASSERT _Static_assert
#endif
#define ROW(name, known_as, form, single, tensor, ...) \
  WEFT_ASSERT(sizeof known_as > 1, "a kernel needs a name"); \
  WEFT_ASSERT(!WEFT_TENSOR_##tensor || WEFT_SINGLE_##single == WEFT_SINGLE_EXPANDED, "tensor cores expand"); \
  WEFT_ASSERT(WEFT_FORM_##form != WEFT_FORM_STEP || !WEFT_SINGLE_##single, "a step has no bound in float");
WEFT_KERNEL_ROWS(ROW)
#undef ROW
WEFT_ASSERT(WEFT_KERNELS < 32, "sets of kernels have 31 bits");

/* ---- formulas, in double ---- */

static WEFT_HD inline double weft_exponent_GAUSSIAN(double s) { return s / 2; }
static WEFT_HD inline double weft_factor_GAUSSIAN(double s, double u)
{
  (void) s, (void) u;
  return 1;
}

static WEFT_HD inline double weft_exponent_LAPLACIAN(double s) { return sqrt(s); }
static WEFT_HD inline double weft_factor_LAPLACIAN(double s, double u)
{
  (void) s, (void) u;
  return 1;
}

static WEFT_HD inline double weft_exponent_MATERN32(double s) { return sqrt(3 * s); }
static WEFT_HD inline double weft_factor_MATERN32(double s, double u)
{
  (void) s;
  return 1 + u;
}

static WEFT_HD inline double weft_exponent_MATERN52(double s) { return sqrt(5 * s); }
static WEFT_HD inline double weft_factor_MATERN52(double s, double u) { return 1 + u + s * (5.0 / 3); }

/* 1 + u + 2u²/5 + u³/15, where s u must not overflow */
static WEFT_HD inline double weft_exponent_MATERN72(double s) { return sqrt(7 * s); }
static WEFT_HD inline double weft_factor_MATERN72(double s, double u)
{
  return 1 + u + s * (14.0 / 5 + (u < 1e100 ? u : 1e100) * (7.0 / 15));
}

static WEFT_HD inline double weft_value_CAUCHY(double s) { return 1 / (1 + s); }

static WEFT_HD inline double weft_value_EPANECHNIKOV(double t, double s)
{
  (void) s;
  return t;
}

static WEFT_HD inline double weft_value_TRIANGULAR(double t, double s) { return t / (1 + sqrt(s)); }

static WEFT_HD inline double weft_value_BIWEIGHT(double t, double s)
{
  (void) s;
  return t * t;
}

/* cos(π√s / 2) = sin(π (1 - √s) / 2) */
static WEFT_HD inline double weft_value_COSINE(double t, double s)
{
  return sin(1.5707963267948966 * t / (1 + sqrt(s)));
}

/* (1 - r)^4 (4r + 1), of two continuous derivatives and positive definite in three dimensions (Wendland 1995) */
static WEFT_HD inline double weft_value_WENDLAND(double t, double s)
{
  const double r = sqrt(s), m = t / (1 + r);
  return m * m * (m * m) * (4 * r + 1);
}

/* Cases of switches by kernel. Names of functions are in parentheses: C implicitly declares a missing function where it
 * is called by its bare name. */
/* clang-format off */
#define WEFT_CASE_EXPONENTIAL(name) \
  case WEFT_##name: u = (weft_exponent_##name)(s); return (weft_factor_##name)(s, u) * exp(shift - u);
#define WEFT_CASE_ALGEBRAIC(name) case WEFT_##name: return (weft_value_##name)(s);
#define WEFT_CASE_COMPACT(name) case WEFT_##name: return s < 1 ? (weft_value_##name)(1 - s, s) : 0;
#define WEFT_CASE_STEP(name) case WEFT_##name: return s <= 1;
/* clang-format on */

/* k(s); exp(-u) is taken as exp(shift - u). */
static WEFT_HD inline double weft_kernel_of(int kind, double s, double shift)
{
  double u;
  switch (kind) {
#define ROW(name, known_as, form, ...) WEFT_CASE_##form(name)
    WEFT_KERNEL_ROWS(ROW)
#undef ROW
  }
  return NAN;
}

/* clang-format off */
#define WEFT_EXPONENT_EXPONENTIAL(name) case WEFT_##name: return (weft_exponent_##name)(s);
#define WEFT_EXPONENT_ALGEBRAIC(name) case WEFT_##name: return 0;
#define WEFT_EXPONENT_COMPACT(name) case WEFT_##name: return 0;
#define WEFT_EXPONENT_STEP(name) case WEFT_##name: return 0;
/* clang-format on */

/* What exp(-u) has in its exponent; 0 where there is none. */
static WEFT_HD inline double weft_kernel_exponent(int kind, double s)
{
  switch (kind) {
#define ROW(name, known_as, form, ...) WEFT_EXPONENT_##form(name)
    WEFT_KERNEL_ROWS(ROW)
#undef ROW
  }
  return NAN;
}

#define WEFT_INSIDE_EXPONENTIAL(name)
#define WEFT_INSIDE_ALGEBRAIC(name)
/* clang-format off */
#define WEFT_INSIDE_COMPACT(name) case WEFT_##name: return (weft_value_##name)(t, s);
#define WEFT_INSIDE_STEP(name) case WEFT_##name: return 1;
/* clang-format on */

/* k of a compact kernel where t = 1 - s is positive; both have all their digits. */
static WEFT_HD inline double weft_kernel_inside(int kind, double t, double s)
{
  switch (kind) {
#define ROW(name, known_as, form, ...) WEFT_INSIDE_##form(name)
    WEFT_KERNEL_ROWS(ROW)
#undef ROW
  }
  return NAN;
}

#endif

/* ---- formulas, in the vectors of a tile ---- */

#ifdef WEFT_KINDS_IN_VECTORS

TARGET_INLINE VEC NAME(value_GAUSSIAN)(VEC s, VEC shift)
{
  return NAME(exp)(OP(fmadd)(s, OP(set1)((REAL) -0.5), shift));
}

TARGET_INLINE VEC NAME(value_LAPLACIAN)(VEC s, VEC shift) { return NAME(exp)(OP(sub)(shift, OP(sqrt)(s))); }

TARGET_INLINE VEC NAME(value_MATERN32)(VEC s, VEC shift)
{
  const VEC u = OP(sqrt)(OP(mul)(s, OP(set1)((REAL) 3)));
  return OP(mul)(OP(add)(OP(set1)((REAL) 1), u), NAME(exp)(OP(sub)(shift, u)));
}

TARGET_INLINE VEC NAME(value_MATERN52)(VEC s, VEC shift)
{
  const VEC u = OP(sqrt)(OP(mul)(s, OP(set1)((REAL) 5)));
  return OP(mul)(OP(fmadd)(s, OP(set1)((REAL) (5.0 / 3)), OP(add)(OP(set1)((REAL) 1), u)),
                 NAME(exp)(OP(sub)(shift, u)));
}

/* u is at most 1e4 in float, where exp(-u) is 0 long before: s may be 1e30 */
TARGET_INLINE VEC NAME(value_MATERN72)(VEC s, VEC shift)
{
  const VEC u = OP(sqrt)(OP(mul)(s, OP(set1)((REAL) 7))), some = OP(min)(u, OP(set1)((REAL) (TRACK ? 1e100 : 1e4)));
  const VEC high = OP(fmadd)(some, OP(set1)((REAL) (7.0 / 15)), OP(set1)((REAL) (14.0 / 5)));
  return OP(mul)(OP(fmadd)(s, high, OP(add)(OP(set1)((REAL) 1), u)), NAME(exp)(OP(sub)(shift, u)));
}

TARGET_INLINE VEC NAME(value_CAUCHY)(VEC s) { return OP(div)(OP(set1)((REAL) 1), OP(add)(OP(set1)((REAL) 1), s)); }

/* Compact ones from t = max(1 - s, 0) and s. */
TARGET_INLINE VEC NAME(value_EPANECHNIKOV)(VEC t, VEC s)
{
  (void) s;
  return t;
}

TARGET_INLINE VEC NAME(value_TRIANGULAR)(VEC t, VEC s)
{
  (void) t;
  return OP(max)(OP(sub)(OP(set1)((REAL) 1), OP(sqrt)(s)), OP(set1)((REAL) 0));
}

TARGET_INLINE VEC NAME(value_BIWEIGHT)(VEC t, VEC s)
{
  (void) s;
  return OP(mul)(t, t);
}

/* t times a Chebyshev interpolant of cos(π√s / 2) / (1 - s) on 0..1: relative errors 4e-23 and 4e-12 */
TARGET_INLINE VEC NAME(value_COSINE)(VEC t, VEC s)
{
#if TRACK
  static const REAL c[] = { -3.3292358332931597e-15, 5.2582964440408023e-13,
                            -6.5133386454080502e-11, 6.321469314047631e-9,
                            -4.647660083386426e-7,   2.4737276364633256e-5,
                            -0.00089452299847477171, 0.019968957764878186,
                            -0.23370055013616983,    1.0 };
#else
  static const REAL c[] = { -4.4616354394834169e-7f, 2.4716479526910785e-5f, -0.00089451224663f,
                            0.0199689552488f,        -0.23370054992f,        1.0f };
#endif
  VEC p = OP(set1)(c[0]);
  s = OP(min)(s, OP(set1)((REAL) 1));
  UNROLL for (size_t i = 1; i < sizeof c / sizeof *c; i++) p = OP(fmadd)(p, s, OP(set1)(c[i]));
  return OP(mul)(t, p);
}

/* The end is where √s is 1, and there the error of 1 - √s is that of s, halved. */
TARGET_INLINE VEC NAME(value_WENDLAND)(VEC t, VEC s)
{
  const VEC one = OP(set1)((REAL) 1), r = OP(sqrt)(OP(min)(s, one)), m = OP(sub)(one, r), square = OP(mul)(m, m);
  (void) t;
  return OP(mul)(OP(mul)(square, square), OP(fmadd)(r, OP(set1)((REAL) 4), one));
}

#endif

/* ---- formulas, in the device's fast floats ----
 *
 * Of what tiles have: for EXPANDED kernels t = B - scale² s, where B is 1 for compact ones and else 0, and t may be off
 * at either end by rounding; for those APART scale² s. */

#ifdef WEFT_KINDS_IN_FAST_FLOATS

__device__ static inline float single_GAUSSIAN(float t) { return fast_exp2(t); }

__device__ static inline float single_LAPLACIAN(float s) { return fast_exp2(-LOG2_E * fast_sqrt(s)); }

__device__ static inline float single_MATERN32(float t)
{
  const float u = fast_sqrt(fmaxf(-t, 0.0f));
  return (1.0f + u) * fast_exp2(-LOG2_E * u);
}

__device__ static inline float single_MATERN52(float t)
{
  const float s = fmaxf(-t, 0.0f), u = fast_sqrt(s);
  return fmaf(s, 1.0f / 3, 1.0f + u) * fast_exp2(-LOG2_E * u);
}

__device__ static inline float single_MATERN72(float t)
{
  const float s = fmaxf(-t, 0.0f), u = fast_sqrt(s);
  return fmaf(s, fmaf(fminf(u, 1e4f), 1.0f / 15, 0.4f), 1.0f + u) * fast_exp2(-LOG2_E * u);
}

__device__ static inline float single_CAUCHY(float t) { return fast_inverse(1.0f - t); }

__device__ static inline float single_EPANECHNIKOV(float t) { return fmaxf(t, 0.0f); }

__device__ static inline float single_TRIANGULAR(float s) { return fmaxf(1.0f - fast_sqrt(s), 0.0f); }

__device__ static inline float single_BIWEIGHT(float t)
{
  const float m = fmaxf(t, 0.0f);
  return m * m;
}

/* As in vectors. */
__device__ static inline float single_COSINE(float t)
{
  const float m = fmaxf(t, 0.0f), s = fminf(fmaxf(1.0f - t, 0.0f), 1.0f);
  float p = -4.4616354394834169e-7f;
  p = fmaf(p, s, 2.4716479526910785e-5f);
  p = fmaf(p, s, -0.00089451224663f);
  p = fmaf(p, s, 0.0199689552488f);
  p = fmaf(p, s, -0.23370054992f);
  p = fmaf(p, s, 1.0f);
  return m * p;
}

__device__ static inline float single_WENDLAND(float t)
{
  const float r = fast_sqrt(fminf(fmaxf(1.0f - t, 0.0f), 1.0f)), m = 1.0f - r, square = m * m;
  return square * square * fmaf(r, 4.0f, 1.0f);
}

#endif
