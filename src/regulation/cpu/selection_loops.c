/* Products of scores, correlations for the screen, and forward selection for one target by all exact gains; see
 * selection_loops.h and step.h. */
#include <math.h>
#include <string.h>
#include "core/numbers/loops.h"
#include "regulation/regulation.h"
#include "regulation/cpu/selection_loops.h"
#include "regulation/both/step.h"
#if WEFT_SIMD_X86
#  include <immintrin.h>
#endif

#define LANES WEFT_REGULATION_LANES
/* features that are finished before the next are begun: they stay in the first-level cache */
#define BLOCK ((size_t) 256)

/* ---- products ---- */

static void products_portable(const int32_t *row, size_t rows, size_t kp, const int32_t *panel, int32_t *out,
                              size_t ldo)
{
  for (size_t i = 0; i < rows; i++) {
    int32_t sum[LANES] = { 0 };
    const int16_t *a = (const int16_t *) (row + i * kp), *b = (const int16_t *) panel;
    for (size_t k = 0; k < kp; k++)
      for (size_t lane = 0; lane < LANES; lane++)
        sum[lane] += a[2 * k] * b[2 * (k * LANES + lane)] + a[2 * k + 1] * b[2 * (k * LANES + lane) + 1];
    memcpy(out + i * ldo, sum, sizeof sum);
  }
}

#if WEFT_SIMD_X86
/* A fixed number of rows at once, so that sums stay in registers: every loop over them is unrolled. */
#  define ROWS_AVX2(count) \
    WEFT_TARGET_AVX2 static void rows_##count##_avx2(const int32_t *row, size_t kp, const int32_t *panel, \
                                                     int32_t *out, size_t ldo) \
    { \
      __m256i low[count], high[count]; \
      WEFT_UNROLLED \
      for (int i = 0; i < count; i++) low[i] = high[i] = _mm256_setzero_si256(); \
      for (size_t k = 0; k < kp; k++) { \
        const __m256i b0 = _mm256_loadu_si256((const __m256i *) (panel + k * LANES)); \
        const __m256i b1 = _mm256_loadu_si256((const __m256i *) (panel + k * LANES + 8)); \
        WEFT_UNROLLED \
        for (int i = 0; i < count; i++) { \
          const __m256i a = _mm256_set1_epi32(row[(size_t) i * kp + k]); \
          low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(a, b0)); \
          high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(a, b1)); \
        } \
      } \
      WEFT_UNROLLED \
      for (int i = 0; i < count; i++) { \
        _mm256_storeu_si256((__m256i *) (out + (size_t) i * ldo), low[i]); \
        _mm256_storeu_si256((__m256i *) (out + (size_t) i * ldo + 8), high[i]); \
      } \
    }
#  define ADD_PRODUCTS(sum, a, b) _mm512_add_epi32(sum, _mm512_madd_epi16(a, b))
#  define ROWS_AVX512(count, variant, target, add_products) \
    target static void rows_##count##_##variant(const int32_t *row, size_t kp, const int32_t *panel, int32_t *out, \
                                                size_t ldo) \
    { \
      __m512i sum[count]; \
      WEFT_UNROLLED \
      for (int i = 0; i < count; i++) sum[i] = _mm512_setzero_si512(); \
      for (size_t k = 0; k < kp; k++) { \
        const __m512i b = _mm512_loadu_si512(panel + k * LANES); \
        WEFT_UNROLLED \
        for (int i = 0; i < count; i++) sum[i] = add_products(sum[i], _mm512_set1_epi32(row[(size_t) i * kp + k]), b); \
      } \
      WEFT_UNROLLED \
      for (int i = 0; i < count; i++) _mm512_storeu_si512(out + (size_t) i * ldo, sum[i]); \
    }
ROWS_AVX2(6)
ROWS_AVX2(1)
ROWS_AVX512(12, avx512, WEFT_TARGET_AVX512, ADD_PRODUCTS)
ROWS_AVX512(1, avx512, WEFT_TARGET_AVX512, ADD_PRODUCTS)
/* For processors in which one instruction multiplies and adds. */
#  define WEFT_TARGET_VNNI __attribute__((target("avx512f,avx512bw,avx512vnni")))
ROWS_AVX512(12, vnni, WEFT_TARGET_VNNI, _mm512_dpwssd_epi32)
ROWS_AVX512(1, vnni, WEFT_TARGET_VNNI, _mm512_dpwssd_epi32)

#  define PRODUCTS(variant, most) \
    static void products_##variant(const int32_t *row, size_t rows, size_t kp, const int32_t *panel, int32_t *out, \
                                   size_t ldo) \
    { \
      size_t i = 0; \
      for (; i + most <= rows; i += most) rows_##most##_##variant(row + i * kp, kp, panel, out + i * ldo, ldo); \
      for (; i < rows; i++) rows_1_##variant(row + i * kp, kp, panel, out + i * ldo, ldo); \
    }
PRODUCTS(avx2, 6)
PRODUCTS(avx512, 12)
PRODUCTS(vnni, 12)
#endif

/* ---- selection ---- */

typedef struct {
  double *positive, *negative;
} parts;
typedef struct {
  int32_t *products;
  double *d[WEFT_REGULATION_KINDS], *gain[WEFT_REGULATION_KINDS];
  parts r, q[WEFT_REGULATION_MAX_STEPS];
} state;

/* A step's chosen feature: its products with all features, and what its direction takes from others. */
typedef struct {
  const int32_t *with, *with_too;           /* z may be the sum of its parts; else the second is NULL */
  double sum, scale, share;                 /* 1 / sqrt(d), r / sqrt(d) */
  double before[WEFT_REGULATION_MAX_STEPS]; /* of the earlier directions, at this feature */
} direction;

/* Divides the working memory of a selection among its arrays; weft_regulation_work() gives the size. */
INLINE state state_in(char *room, size_t padded, size_t steps)
{
  state own;
  double *work = (double *) (void *) room;
  for (int k = 0; k < WEFT_REGULATION_KINDS; k++) {
    own.d[k] = work;
    work += padded;
    own.gain[k] = work;
    work += padded;
  }
  own.r.positive = work;
  work += padded;
  own.r.negative = work;
  work += padded;
  for (size_t k = 0; k < steps; k++) {
    own.q[k].positive = work;
    work += padded;
    own.q[k].negative = work;
    work += padded;
  }
  own.products = (int32_t *) (void *) work;
  return own;
}

/* One part's direction, from feature `at` on, and its residuals less it. */
INLINE void turn_part(const direction *chosen, int two, size_t step, const parts *q, int negative, size_t offset,
                      double m, const double *sum, size_t at, size_t count, double *r, double *own)
{
  const int32_t *a = chosen->with + offset + at, *b = two ? chosen->with_too + offset + at : a;
  const double *feature_sum = sum + offset + at, chosen_sum = chosen->sum, scale = chosen->scale, share = chosen->share;
  WEFT_SIMD_PRAGMA(omp simd)
  for (size_t j = 0; j < count; j++)
    own[j] = weft_regulation_covariance(m, (double) (two ? a[j] + b[j] : a[j]), feature_sum[j], chosen_sum);
  for (size_t k = 0; k < step; k++) {
    const double *earlier = (negative ? q[k].negative : q[k].positive) + at, there = chosen->before[k];
    WEFT_SIMD_PRAGMA(omp simd)
    for (size_t j = 0; j < count; j++) own[j] = weft_sub(own[j], weft_mul(earlier[j], there));
  }
  WEFT_SIMD_PRAGMA(omp simd)
  for (size_t j = 0; j < count; j++) {
    own[j] = weft_mul(own[j], scale);
    r[j] = weft_sub(r[j], weft_mul(own[j], share));
  }
}

INLINE void lose(double *d, const double *q, size_t count)
{
  WEFT_SIMD_PRAGMA(omp simd)
  for (size_t j = 0; j < count; j++) d[j] = weft_sub(d[j], weft_mul(q[j], q[j]));
}

INLINE void lose_both(double *d, const double *a, const double *b, size_t count)
{
  WEFT_SIMD_PRAGMA(omp simd)
  for (size_t j = 0; j < count; j++) {
    const double q = weft_add(a[j], b[j]);
    d[j] = weft_sub(d[j], weft_mul(q, q));
  }
}

INLINE double gains(const double *r, const double *d, const double *least, const double *favour, size_t count,
                    double *gain, double best)
{
  WEFT_SIMD_GREATEST(best)
  for (size_t j = 0; j < count; j++) {
    gain[j] = weft_regulation_gain(r[j], d[j], least[j], favour[j]);
    best = gain[j] > best ? gain[j] : best;
  }
  return best;
}

INLINE double gains_both(const double *a, const double *b, const double *d, const double *least, const double *favour,
                         size_t count, double *gain, double best)
{
  WEFT_SIMD_GREATEST(best)
  for (size_t j = 0; j < count; j++) {
    gain[j] = weft_regulation_gain(weft_add(a[j], b[j]), d[j], least[j], favour[j]);
    best = gain[j] > best ? gain[j] : best;
  }
  return best;
}

/* Before the first step: residuals are covariances with the target, nothing has been lost. */
INLINE void begin(const weft_regulation_half *half, int hinges, const int32_t *with, double sum, int64_t own,
                  state *state)
{
  const size_t padded = half->padded;
  double *r[2] = { state->r.positive, state->r.negative };
  for (int part = 0; part <= hinges; part++) {
    const double *feature_sum = half->sum + (size_t) part * padded, m = half->m;
    const int32_t *product = with + (size_t) part * padded;
    double *out = r[part];
    WEFT_SIMD_PRAGMA(omp simd)
    for (size_t j = 0; j < padded; j++)
      out[j] = weft_regulation_covariance(m, (double) product[j], feature_sum[j], sum);
  }
  for (int kind = 0; kind <= 2 * hinges; kind++) {
    memcpy(state->d[kind], half->variance + (size_t) kind * padded, padded * sizeof(double));
    if (own >= 0) state->d[kind][own] = -1;
  }
}

/* Removes the direction of `chosen` from all features (NULL: before the first step) and computes their gains: the best
 * by kind. */
INLINE void step_over(const weft_regulation_half *half, const double *favour, int hinges, const direction *chosen,
                      size_t step, state *state, double *best)
{
  const size_t padded = half->padded;
  const parts *q = step ? &state->q[step - 1] : NULL; /* the direction that this step begins with */
  for (int kind = 0; kind <= 2 * hinges; kind++) best[kind] = 0;
  for (size_t at = 0, count; at < padded; at += count) {
    count = padded - at < BLOCK ? padded - at : BLOCK;
    if (chosen) {
      for (int part = 0; part <= hinges; part++) {
        double *r = (part ? state->r.negative : state->r.positive) + at, *own = (part ? q->negative : q->positive) + at;
        const size_t offset = (size_t) part * padded;
        if (chosen->with_too)
          turn_part(chosen, 1, step - 1, state->q, part, offset, half->m, half->sum, at, count, r, own);
        else
          turn_part(chosen, 0, step - 1, state->q, part, offset, half->m, half->sum, at, count, r, own);
        lose(state->d[part + hinges] + at, own, count);
      }
      if (hinges) lose_both(state->d[0] + at, q->positive + at, q->negative + at, count);
    }
    for (int part = 0; part <= hinges; part++) {
      const int kind = part + hinges;
      best[kind] =
          gains((part ? state->r.negative : state->r.positive) + at, state->d[kind] + at,
                half->least + (size_t) kind * padded + at, favour + at, count, state->gain[kind] + at, best[kind]);
    }
    if (hinges)
      best[0] = gains_both(state->r.positive + at, state->r.negative + at, state->d[0] + at, half->least + at,
                           favour + at, count, state->gain[0] + at, best[0]);
  }
}

INLINE double of_kind(const parts *p, int hinges, int kind, size_t j)
{
  if (!hinges || kind == 1) return p->positive[j];
  return kind == 0 ? weft_add(p->positive[j], p->negative[j]) : p->negative[j];
}

/* A chosen feature's products with all others, computed from scores. */
INLINE void compute_products(const weft_regulation_half *half, size_t features, int kind, size_t j, int32_t *out)
{
  const weft_regulation_loops *loops = weft_regulation_loops_here();
  const int32_t *row = half->rows + ((size_t) kind * half->padded + j) * half->kp;
  for (size_t panel = 0; panel < features / LANES; panel++)
    loops->products(row, 1, half->kp, half->panels + panel * half->kp * LANES, out + panel * LANES, features);
}

/* The direction of feature (kind, j), chosen in step `step`. */
INLINE void take_direction(const weft_regulation_half *half, int hinges, const state *state, size_t step, int kind,
                           size_t j, direction *out)
{
  const size_t features = half->padded * (size_t) (1 + hinges), negative = j + half->padded;
  const double root = weft_sqrt(state->d[kind][j]);
  out->with_too = NULL;
  if (half->products) {
    out->with = half->products + (kind == 2 ? negative : j) * features;
    if (hinges && kind == 0) out->with_too = half->products + negative * features;
  } else {
    compute_products(half, features, kind, j, state->products);
    out->with = state->products;
  }
  out->sum = !hinges || kind == 1 ? half->sum[j]
             : kind == 2          ? half->sum[negative]
                                  : weft_add(half->sum[j], half->sum[negative]);
  out->scale = weft_div(1.0, root);
  out->share = weft_div(of_kind(&state->r, hinges, kind, j), root);
  for (size_t k = 0; k < step; k++) out->before[k] = of_kind(&state->q[k], hinges, kind, j);
}

/* Selection for one target, all gains in double: `steps` times the feature of greatest gain, the first one where
 * several are equal. work: weft_regulation_work() bytes; choice stays 0 from the step at which nothing is left. */
INLINE void select_body(const weft_regulation_half *half, const double *favour, int hinges, const int32_t *with,
                        double sum, int64_t own, char *work, int32_t *choice)
{
  state state = state_in(work, half->padded, half->steps);
  direction chosen;
  begin(half, hinges, with, sum, own, &state);
  memset(choice, 0, half->steps * sizeof *choice);
  for (size_t step = 0; step < half->steps; step++) {
    double best[WEFT_REGULATION_KINDS] = { 0, 0, 0 };
    int kind = 0;
    size_t j = 0;
    step_over(half, favour, hinges, step ? &chosen : NULL, step, &state, best);
    for (int k = 1; k <= 2 * hinges; k++)
      if (best[k] > best[kind]) kind = k;
    if (!(best[kind] > 0)) return;
    while (state.gain[kind][j] != best[kind]) j++;
    const int32_t feature = 1 + (int32_t) ((size_t) kind * half->regulators + j);
    choice[step] = of_kind(&state.r, hinges, kind, j) > 0 ? feature : -feature;
    if (step + 1 == half->steps) return;
    take_direction(half, hinges, &state, step, kind, j, &chosen);
    for (int k = 0; k <= 2 * hinges; k++) state.d[k][j] = -1;
  }
}

#define SELECT(variant, target) \
  target static void select_##variant(const weft_regulation_half *h, const weft_regulation_favour *favour, \
                                      const int32_t *with, double sum, int64_t own, char *work, int32_t *choice) \
  { \
    if (h->hinges) \
      select_body(h, favour->whole, 1, with, sum, own, work, choice); \
    else \
      select_body(h, favour->whole, 0, with, sum, own, work, choice); \
  }
WEFT_VARIANTS(SELECT)

/* ---- what features are screened by ---- */

/* Sums of products with one more feature or target, whose own sum is `sum`, as correlations in the units that the
 * factor `by` gives. */
INLINE int16_t correlation(float product, float slope, float offset, float sum, float by)
{
  return (int16_t) ((int32_t) ((product * slope - offset * sum) * by + 40000.5f) - 40000); /* rounded */
}

/* Correlations of regulator j with all features, kind by kind, rounded to 16 bits in units of 2^-14: to half->near. */
INLINE void near_body(const weft_regulation_half *half, size_t j, const int32_t *positive, const int32_t *negative)
{
  const size_t padded = half->padded, features = padded * (size_t) (1 + half->hinges);
  for (int kind = 0; kind <= 2 * half->hinges; kind++) {
    const int32_t *a = kind == 2 ? negative : positive, *b = negative;
    const double of_first = half->sum[j], of_second = half->hinges ? half->sum[padded + j] : 0;
    const float sum = (float) (kind == 2 ? of_second : half->hinges && kind == 0 ? of_first + of_second : of_first);
    const float by = (float) (16384 * half->unit[(size_t) kind * padded + j]);
    const float *slope = half->slope, *offset = half->offset;
    int16_t *to = half->near + ((size_t) kind * padded + j) * features;
    if (half->hinges && kind == 0) {
      WEFT_SIMD_PRAGMA(omp simd)
      for (size_t feature = 0; feature < features; feature++)
        to[feature] = correlation((float) (a[feature] + b[feature]), slope[feature], offset[feature], sum, by);
    } else {
      WEFT_SIMD_PRAGMA(omp simd)
      for (size_t feature = 0; feature < features; feature++)
        to[feature] = correlation((float) a[feature], slope[feature], offset[feature], sum, by);
    }
  }
}

#define NEAR(variant, target) \
  target static void near_##variant(const weft_regulation_half *h, size_t j, const int32_t *positive, \
                                    const int32_t *negative) \
  { \
    near_body(h, j, positive, negative); \
  }
WEFT_VARIANTS(NEAR)

INLINE void correlate_body(const weft_regulation_half *half, size_t at, const int32_t *products, size_t targets,
                           const weft_regulation_target *target)
{
  const float *slope = half->slope + at, *offset = half->offset + at;
  for (size_t t = 0; t < targets; t++) {
    const float sum = (float) target[t].sum, by = target[t].by;
    const int32_t *product = products + t * LANES;
    int16_t *near = target[t].near + at;
    WEFT_SIMD_PRAGMA(omp simd)
    for (size_t lane = 0; lane < LANES; lane++)
      near[lane] = correlation((float) product[lane], slope[lane], offset[lane], sum, by);
  }
}

#define CORRELATE(variant, target_of) \
  target_of static void correlate_##variant(const weft_regulation_half *h, size_t at, const int32_t *products, \
                                            size_t targets, const weft_regulation_target *target) \
  { \
    correlate_body(h, at, products, targets, target); \
  }
/* correlate_portable() and its faster variants: the same results bit by bit. */
WEFT_VARIANTS(CORRELATE)

void weft_regulation_note_moments(const weft_regulation_half *half, size_t j, const double *sum, const double *squares)
{
  const int hinges = half->hinges;
  for (int part = 0; part <= hinges; part++) half->sum[(size_t) part * half->padded + j] = sum[part];
  for (int kind = 0; kind <= 2 * hinges; kind++) {
    const double whole = (kind == 2 ? 0 : sum[0]) + (kind == 1 ? 0 : sum[1]);
    const double square = (kind == 2 ? 0 : squares[0]) + (kind == 1 ? 0 : squares[1]);
    const size_t at = (size_t) kind * half->padded + j;
    const double variance = weft_regulation_covariance(half->m, square, whole, whole);
    half->variance[at] = variance;
    half->least[at] = weft_regulation_min_residual(variance);
    half->unit[at] = variance > 0 ? 1 / sqrt(variance) : 0;
    half->start[at] = variance > 0 ? 8192 : 32767;
  }
  for (int part = 0; part <= hinges; part++) {
    const size_t at = (size_t) part * half->padded + j;
    const double unit = half->unit[(size_t) (part + hinges) * half->padded + j];
    half->slope[at] = (float) (half->m * unit);
    half->offset[at] = (float) (sum[part] * unit);
    half->part[at] = (int16_t) (unit > 0 ? fmin(32767, rint(32768 * half->unit[j] / unit)) : 0);
  }
}

void weft_regulation_end_moments(weft_regulation_half *half)
{
  half->max_offset = 0;
  for (size_t feature = 0; feature < half->padded * (size_t) (1 + half->hinges); feature++)
    half->max_offset = fmaxf(half->max_offset, fabsf(half->offset[feature]));
}

/* `near` is taken only where features are screened; sums begin at 0, as padding must. */
weft_status weft_regulation_take_half(weft_arena *mem, weft_regulation_half *half, int screened)
{
  weft_status st = WEFT_OK;
  const size_t features = half->padded * (size_t) (1 + half->hinges),
               kinds = half->padded * (size_t) (1 + 2 * half->hinges);
  WEFT_TAKE0(half->sum, mem, features);
  WEFT_TAKE(half->variance, mem, kinds);
  WEFT_TAKE(half->least, mem, kinds);
  WEFT_TAKE(half->unit, mem, kinds);
  WEFT_TAKE(half->slope, mem, features);
  WEFT_TAKE(half->offset, mem, features);
  WEFT_TAKE(half->part, mem, features);
  WEFT_TAKE(half->start, mem, kinds);
  if (screened) WEFT_TAKE(half->near, mem, kinds * features);
done:
  return st;
}

/* One for each world, in mem. Parts of the greatest favour are rounded up where they bound gains; padding counts
 * as 1. */
weft_status weft_regulation_favours(weft_arena *mem, const double *given, size_t regulators, size_t padded,
                                    size_t worlds, weft_regulation_favour **out)
{
  weft_status st = WEFT_OK;
  WEFT_TAKE(*out, mem, worlds);
  for (size_t world = 0; world < worlds; world++) {
    weft_regulation_favour *favour = &(*out)[world];
    const double *from = given + world * regulators;
    favour->greatest = favour->least = from[0];
    for (size_t j = 1; j < regulators; j++) {
      favour->greatest = fmax(favour->greatest, from[j]);
      favour->least = fmin(favour->least, from[j]);
    }
    favour->least /= favour->greatest;
    WEFT_TAKE(favour->whole, mem, padded);
    WEFT_TAKE(favour->parts, mem, padded);
    WEFT_TAKE(favour->coarse, mem, padded);
    WEFT_TAKE(favour->root, mem, padded);
    for (size_t j = 0; j < padded; j++) {
      favour->whole[j] = j < regulators ? from[j] : favour->greatest;
      favour->parts[j] = (float) (favour->whole[j] / favour->greatest);
      favour->coarse[j] = (int16_t) fmin(32767, ceil(32768 * (favour->whole[j] / favour->greatest)));
      favour->root[j] = (int16_t) fmin(32767, ceil(32768 * sqrt(favour->whole[j] / favour->greatest)));
    }
  }
done:
  return st;
}

#define TABLE(variant, target) \
  static const weft_regulation_loops loops_in_##variant = { products_##variant, near_##variant, correlate_##variant, \
                                                            select_##variant }; \
  static const weft_regulation_loops *loops_##variant(void) { return &loops_in_##variant; }
WEFT_VARIANTS(TABLE)

#if WEFT_SIMD_X86
static const weft_regulation_loops loops_in_vnni = { products_vnni, near_avx512, correlate_avx512, select_avx512 };
#endif

const weft_regulation_loops *weft_regulation_loops_here(void)
{
#if WEFT_SIMD_X86
  if (weft_simd_level() == WEFT_SIMD_AVX512 && __builtin_cpu_supports("avx512vnni")) return &loops_in_vnni;
#endif
  return WEFT_VARIANT_HERE(loops)();
}
