/* Products of scores, and forward selection for one target; see regulation_loops.h and regulation_step.h. */
#include <string.h>
#include "../base/loops.h"
#include "regulation.h"
#include "regulation_loops.h"
#include "regulation_step.h"
#if WEFT_SIMD_X86
# include <immintrin.h>
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
/* A fixed number of rows at once, so that sums stay in registers. */
#define ROWS_AVX2(count) \
  WEFT_TARGET_AVX2 static void rows_##count##_avx2(const int32_t *row, size_t kp, const int32_t *panel, int32_t *out, \
                                                   size_t ldo) \
  { \
    __m256i low[count], high[count]; \
    for (int i = 0; i < count; i++) low[i] = high[i] = _mm256_setzero_si256(); \
    for (size_t k = 0; k < kp; k++) { \
      const __m256i b0 = _mm256_loadu_si256((const __m256i *) (panel + k * LANES)); \
      const __m256i b1 = _mm256_loadu_si256((const __m256i *) (panel + k * LANES + 8)); \
      for (int i = 0; i < count; i++) { \
        const __m256i a = _mm256_set1_epi32(row[(size_t) i * kp + k]); \
        low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(a, b0)); \
        high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(a, b1)); \
      } \
    } \
    for (int i = 0; i < count; i++) { \
      _mm256_storeu_si256((__m256i *) (out + (size_t) i * ldo), low[i]); \
      _mm256_storeu_si256((__m256i *) (out + (size_t) i * ldo + 8), high[i]); \
    } \
  }
#define ROWS_AVX512(count) \
  WEFT_TARGET_AVX512 static void rows_##count##_avx512(const int32_t *row, size_t kp, const int32_t *panel, \
                                                       int32_t *out, size_t ldo) \
  { \
    __m512i sum[count]; \
    for (int i = 0; i < count; i++) sum[i] = _mm512_setzero_si512(); \
    for (size_t k = 0; k < kp; k++) { \
      const __m512i b = _mm512_loadu_si512(panel + k * LANES); \
      for (int i = 0; i < count; i++) \
        sum[i] = _mm512_add_epi32(sum[i], _mm512_madd_epi16(_mm512_set1_epi32(row[(size_t) i * kp + k]), b)); \
    } \
    for (int i = 0; i < count; i++) _mm512_storeu_si512(out + (size_t) i * ldo, sum[i]); \
  }
ROWS_AVX2(6) ROWS_AVX2(1)
ROWS_AVX512(12) ROWS_AVX512(1)

#define PRODUCTS(variant, most) \
  static void products_##variant(const int32_t *row, size_t rows, size_t kp, const int32_t *panel, int32_t *out, \
                                 size_t ldo) \
  { \
    size_t i = 0; \
    for (; i + most <= rows; i += most) rows_##most##_##variant(row + i * kp, kp, panel, out + i * ldo, ldo); \
    for (; i < rows; i++) rows_1_##variant(row + i * kp, kp, panel, out + i * ldo, ldo); \
  }
PRODUCTS(avx2, 6)
PRODUCTS(avx512, 12)
#endif

/* ---- selection ---- */

typedef struct { double *positive, *negative; } parts;
typedef struct {
  double *d[WEFT_REGULATION_KINDS], *gain[WEFT_REGULATION_KINDS];
  parts r, q[WEFT_REGULATION_MOST_STEPS];
} state;

/* A step's chosen feature: where its products are, and what its direction takes from others. */
typedef struct {
  const int32_t *with, *with_too;   /* z is the sum of its parts; else the second is NULL */
  double sum, scale, share;         /* 1 / sqrt(d), r / sqrt(d) */
  double before[WEFT_REGULATION_MOST_STEPS]; /* of the earlier directions, at this feature */
} direction;

static state state_in(double *work, size_t padded, size_t steps)
{
  state s;
  for (int k = 0; k < WEFT_REGULATION_KINDS; k++) { s.d[k] = work; work += padded; s.gain[k] = work; work += padded; }
  s.r.positive = work; work += padded;
  s.r.negative = work; work += padded;
  for (size_t k = 0; k < steps; k++) {
    s.q[k].positive = work; work += padded;
    s.q[k].negative = work; work += padded;
  }
  return s;
}

/* One part's direction, from feature `at` on, and its residuals less it. */
INLINE void turn_part(const direction *c, int two, size_t step, const parts *q, int negative, size_t offset, double m,
                      const double *sum, size_t at, size_t count, double *r, double *own)
{
  const int32_t *a = c->with + offset + at, *b = two ? c->with_too + offset + at : a;
  const double *feature_sum = sum + offset + at, chosen_sum = c->sum, scale = c->scale, share = c->share;
  WEFT_SIMD_PRAGMA(omp simd)
  for (size_t j = 0; j < count; j++)
    own[j] = weft_regulation_covariance(m, (double) (two ? a[j] + b[j] : a[j]), feature_sum[j], chosen_sum);
  for (size_t k = 0; k < step; k++) {
    const double *earlier = (negative ? q[k].negative : q[k].positive) + at, there = c->before[k];
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
  for (size_t j = 0; j < count; j++) { const double q = weft_add(a[j], b[j]); d[j] = weft_sub(d[j], weft_mul(q, q)); }
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
INLINE void begin(const weft_regulation_half *h, int hinges, const int32_t *with, double sum, int64_t own, state *s)
{
  const size_t padded = h->padded;
  double *r[2] = { s->r.positive, s->r.negative };
  for (int part = 0; part <= hinges; part++) {
    const double *feature_sum = h->sum + (size_t) part * padded, m = h->m;
    const int32_t *product = with + (size_t) part * padded;
    double *out = r[part];
    WEFT_SIMD_PRAGMA(omp simd)
    for (size_t j = 0; j < padded; j++)
      out[j] = weft_regulation_covariance(m, (double) product[j], feature_sum[j], sum);
  }
  for (int kind = 0; kind <= 2 * hinges; kind++) {
    memcpy(s->d[kind], h->variance + (size_t) kind * padded, padded * sizeof(double));
    if (own >= 0) s->d[kind][own] = -1;
  }
}

/* All features lose the direction of `chosen` (NULL: before the first step) and say what they would gain: the best by
 * kind. */
INLINE void step_over(const weft_regulation_half *h, int hinges, const direction *chosen, size_t step, state *s,
                      double *best)
{
  const size_t padded = h->padded;
  const parts *q = step ? &s->q[step - 1] : NULL; /* the direction that this step begins with */
  for (int kind = 0; kind <= 2 * hinges; kind++) best[kind] = 0;
  for (size_t at = 0, count; at < padded; at += count) {
    count = padded - at < BLOCK ? padded - at : BLOCK;
    if (chosen) {
      for (int part = 0; part <= hinges; part++) {
        double *r = (part ? s->r.negative : s->r.positive) + at, *own = (part ? q->negative : q->positive) + at;
        const size_t offset = (size_t) part * padded;
        if (chosen->with_too) turn_part(chosen, 1, step - 1, s->q, part, offset, h->m, h->sum, at, count, r, own);
        else turn_part(chosen, 0, step - 1, s->q, part, offset, h->m, h->sum, at, count, r, own);
        lose(s->d[part + hinges] + at, own, count);
      }
      if (hinges) lose_both(s->d[0] + at, q->positive + at, q->negative + at, count);
    }
    for (int part = 0; part <= hinges; part++) {
      const int kind = part + hinges;
      best[kind] = gains((part ? s->r.negative : s->r.positive) + at, s->d[kind] + at,
                         h->least + (size_t) kind * padded + at, h->favour + at, count, s->gain[kind] + at, best[kind]);
    }
    if (hinges)
      best[0] = gains_both(s->r.positive + at, s->r.negative + at, s->d[0] + at, h->least + at, h->favour + at, count,
                           s->gain[0] + at, best[0]);
  }
}

INLINE double of_kind(const parts *p, int hinges, int kind, size_t j)
{
  if (!hinges || kind == 1) return p->positive[j];
  return kind == 0 ? weft_add(p->positive[j], p->negative[j]) : p->negative[j];
}

/* The direction of feature (kind, j), chosen in step `step`. */
INLINE void take_direction(const weft_regulation_half *h, int hinges, const state *s, size_t step, int kind, size_t j,
                           direction *out)
{
  const size_t features = h->padded * (size_t) (1 + hinges), negative = j + h->padded;
  const int32_t *first = h->products + j * features, *second = h->products + negative * features;
  const double root = weft_sqrt(s->d[kind][j]);
  out->with = kind == 2 ? second : first;
  out->with_too = hinges && kind == 0 ? second : NULL;
  out->sum = !hinges || kind == 1 ? h->sum[j] : kind == 2 ? h->sum[negative] : weft_add(h->sum[j], h->sum[negative]);
  out->scale = weft_div(1.0, root);
  out->share = weft_div(of_kind(&s->r, hinges, kind, j), root);
  for (size_t k = 0; k < step; k++) out->before[k] = of_kind(&s->q[k], hinges, kind, j);
}

INLINE void select_body(const weft_regulation_half *h, int hinges, const int32_t *with, double sum, int64_t own,
                        double *work, int32_t *choice)
{
  state s = state_in(work, h->padded, h->steps);
  direction chosen;
  begin(h, hinges, with, sum, own, &s);
  memset(choice, 0, h->steps * sizeof *choice);
  for (size_t step = 0; step < h->steps; step++) {
    double best[WEFT_REGULATION_KINDS] = { 0, 0, 0 };
    int kind = 0;
    size_t j = 0;
    step_over(h, hinges, step ? &chosen : NULL, step, &s, best);
    for (int k = 1; k <= 2 * hinges; k++) if (best[k] > best[kind]) kind = k;
    if (!(best[kind] > 0)) return;
    while (s.gain[kind][j] != best[kind]) j++;
    const int32_t feature = 1 + (int32_t) ((size_t) kind * h->regulators + j);
    choice[step] = of_kind(&s.r, hinges, kind, j) > 0 ? feature : -feature;
    if (step + 1 == h->steps) return;
    take_direction(h, hinges, &s, step, kind, j, &chosen);
    for (int k = 0; k <= 2 * hinges; k++) s.d[k][j] = -1;
  }
}

#define SELECT(variant, target) \
  target static void select_##variant(const weft_regulation_half *h, const int32_t *with, double sum, int64_t own, \
                                      double *work, \
                                      int32_t *choice) \
  { \
    if (h->hinges) select_body(h, 1, with, sum, own, work, choice); \
    else select_body(h, 0, with, sum, own, work, choice); \
  }
WEFT_VARIANTS(SELECT)

#define TABLE(variant, target) \
  static const weft_regulation_loops loops_in_##variant = { products_##variant, select_##variant }; \
  static const weft_regulation_loops *loops_##variant(void) { return &loops_in_##variant; }
WEFT_VARIANTS(TABLE)

const weft_regulation_loops *weft_regulation_loops_here(void) { return WEFT_VARIANT_HERE(loops)(); }
