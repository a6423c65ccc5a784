/* The loops of the screen (regulation_screen.c) that do most of its work, in vectors: how all features turn when one
 * has been chosen, with the test which of them may be the best now, and exact products of two features. */
#pragma once

#include "../base/loops.h"
#include "regulation.h"
#include "regulation_loops.h"
#if WEFT_SIMD_X86
# include <immintrin.h>
#endif

#define RUN ((size_t) 32)         /* regulators whose flags are one word */

/* The direction of the feature that was chosen last. */
typedef struct {
  const int16_t *near;
  int16_t before[WEFT_REGULATION_MOST_STEPS], stretch, share;
  int shift;
} turn;

/* What is tested for: |r| + add, shifted after a cap; bar and slack. */
typedef struct { int16_t add[WEFT_REGULATION_KINDS], slack[WEFT_REGULATION_KINDS], cap, bar; int shift; } test;

/* A run of regulators turns and is tested, up to the first LANES of them with one that may be the best. */
typedef struct {
  const turn *turn;
  const test *test;
  size_t step, padded, features;
  const int16_t *part, *favour;
  int16_t *q, *r, *d;               /* q: of all steps */
} sweep;


/* From `at`, up to the first run with a flag, by kind; returns where the next run begins. */
typedef size_t sweep_loop(const sweep *w, int hinges, size_t at, uint32_t *flags);

INLINE int16_t times(int16_t a, int16_t b) { return (int16_t) ((a * b + (1 << 14)) >> 15); }

INLINE int flag_of(int16_t q, int16_t r, int16_t favour, const test *t, int kind, int16_t *d)
{
  const int16_t size = (int16_t) ((r < 0 ? -r : r) + t->add[kind]);
  const int16_t up = (int16_t) ((size < t->cap ? size : t->cap) * (1 << t->shift));
  *d = (int16_t) (*d - times(q, q));
  return times(*d, t->bar) - t->slack[kind] <= times(times(up, up), favour);
}

static size_t sweep_portable(const sweep *w, int hinges, size_t at, uint32_t *flags)
{
  const turn *t = w->turn;
  uint32_t any = 0;
  for (; at < w->padded && !any; at += RUN) {
    flags[0] = flags[1] = flags[2] = 0;
    for (size_t j = at; j < at + RUN; j++) {
      int16_t q[2] = { 0, 0 }, r[2] = { 0, 0 };
      for (int part = 0; part <= hinges; part++) {
        const size_t f = (size_t) part * w->padded + j;
        int16_t num = t->near[f];
        for (size_t k = 0; k < w->step; k++) num = (int16_t) (num - times(w->q[k * w->features + f], t->before[k]));
        num = (int16_t) (num * (1 << t->shift));
        q[part] = w->q[w->step * w->features + f] = (int16_t) (num + times(num, t->stretch));
        r[part] = w->r[f] = (int16_t) (w->r[f] - times(q[part], t->share));
        flags[part + hinges] |= (uint32_t) flag_of(q[part], r[part], w->favour[j], w->test, part + hinges,
                                                   &w->d[(size_t) (part + hinges) * w->padded + j]) << (j - at);
      }
      if (!hinges) continue;
      const int16_t one = w->part[j], two = w->part[w->padded + j];
      flags[0] |= (uint32_t) flag_of((int16_t) (times(q[0], one) + times(q[1], two)),
                                     (int16_t) (times(r[0], one) + times(r[1], two)), w->favour[j], w->test, 0,
                                     &w->d[j]) << (j - at);
    }
    any = flags[0] | flags[1] | flags[2];
  }
  return at;
}

#if WEFT_SIMD_X86
/* The same with vectors of LANES numbers. */
# define SWEEP(variant, target, VECTOR, LANES, OF_ALL, LOAD, STORE, MUL, ADD, SUB, ABS, MIN, UP, MASK) \
  target INLINE uint32_t flag_##variant(VECTOR q, VECTOR r, VECTOR favour, const test *t, int shifted, int kind, \
                                        int16_t *d) \
  { \
    const VECTOR left = SUB(LOAD((const void *) d), MUL(q, q)); \
    VECTOR size = ADD(ABS(r), OF_ALL(t->add[kind])); \
    if (shifted) size = UP(MIN(size, OF_ALL(t->cap)), _mm_cvtsi32_si128(t->shift)); \
    STORE((void *) d, left); \
    return MASK(SUB(MUL(left, OF_ALL(t->bar)), OF_ALL(t->slack[kind])), MUL(MUL(size, size), favour)); \
  } \
  target INLINE size_t sweep_of_##variant(const sweep *w, int hinges, int shifted, size_t step, size_t at, \
                                          uint32_t *flags) \
  { \
    const turn *t = w->turn; \
    const __m128i shift = _mm_cvtsi32_si128(t->shift); \
    const VECTOR stretch = OF_ALL(t->stretch), share = OF_ALL(t->share); \
    VECTOR before[WEFT_REGULATION_MOST_STEPS]; \
    for (size_t k = 0; k < step; k++) before[k] = OF_ALL(t->before[k]); \
    flags[0] = flags[1] = flags[2] = 0; \
    for (; at < w->padded && !(flags[0] | flags[1] | flags[2]); at += RUN) \
      for (size_t first = 0; first < RUN; first += LANES) { \
        const size_t j = at + first; \
        const VECTOR favour = LOAD((const void *) (w->favour + j)); \
        VECTOR q[2], r[2]; \
        for (int part = 0; part <= hinges; part++) { \
          const size_t f = (size_t) part * w->padded + j; \
          const int16_t *earlier = w->q + f; \
          VECTOR num = LOAD((const void *) (t->near + f)); \
          for (size_t k = 0; k < step; k++, earlier += w->features) \
            num = SUB(num, MUL(LOAD((const void *) earlier), before[k])); \
          num = UP(num, shift); \
          q[part] = ADD(num, MUL(num, stretch)); \
          r[part] = SUB(LOAD((const void *) (w->r + f)), MUL(q[part], share)); \
          STORE((void *) (w->q + step * w->features + f), q[part]); \
          STORE((void *) (w->r + f), r[part]); \
          flags[part + hinges] |= flag_##variant(q[part], r[part], favour, w->test, shifted, part + hinges, \
                                                 w->d + (size_t) (part + hinges) * w->padded + j) << first; \
        } \
        if (hinges) { \
          const VECTOR one = LOAD((const void *) (w->part + j)); \
          const VECTOR two = LOAD((const void *) (w->part + w->padded + j)); \
          flags[0] |= flag_##variant(ADD(MUL(q[0], one), MUL(q[1], two)), ADD(MUL(r[0], one), MUL(r[1], two)), \
                                     favour, w->test, shifted, 0, w->d + j) << first; \
        } \
      } \
    return at; \
  } \
  target static size_t sweep_##variant(const sweep *w, int hinges, size_t at, uint32_t *flags) \
  { \
    if (!hinges) return sweep_of_##variant(w, 0, 1, w->step, at, flags); \
    if (!w->test->shift && w->step == 0) return sweep_of_##variant(w, 1, 0, 0, at, flags); \
    if (!w->test->shift && w->step == 1) return sweep_of_##variant(w, 1, 0, 1, at, flags); \
    if (!w->test->shift && w->step == 2) return sweep_of_##variant(w, 1, 0, 2, at, flags); \
    if (!w->test->shift && w->step == 3) return sweep_of_##variant(w, 1, 0, 3, at, flags); \
    return sweep_of_##variant(w, 1, 1, w->step, at, flags); \
  }
/* Which of 16 numbers a are at most b. */
WEFT_TARGET_AVX2 INLINE uint32_t at_most_avx2(__m256i a, __m256i b)
{
  const __m256i above = _mm256_packs_epi16(_mm256_cmpgt_epi16(a, b), _mm256_setzero_si256());
  return ~(uint32_t) _mm256_movemask_epi8(_mm256_permute4x64_epi64(above, 0xd8)) & 0xffff;
}
SWEEP(avx2, WEFT_TARGET_AVX2, __m256i, 16, _mm256_set1_epi16, _mm256_loadu_si256, _mm256_storeu_si256,
      _mm256_mulhrs_epi16, _mm256_add_epi16, _mm256_sub_epi16, _mm256_abs_epi16, _mm256_min_epi16, _mm256_sll_epi16,
      at_most_avx2)
SWEEP(avx512, WEFT_TARGET_AVX512, __m512i, 32, _mm512_set1_epi16, _mm512_loadu_si512, _mm512_storeu_si512,
      _mm512_mulhrs_epi16, _mm512_add_epi16, _mm512_sub_epi16, _mm512_abs_epi16, _mm512_min_epi16, _mm512_sll_epi16,
      _mm512_cmple_epi16_mask)
#endif

/* ---- exact products ---- */

static int32_t dot_portable(const int32_t *a, const int32_t *b, size_t kp)
{
  const int16_t *x = (const int16_t *) a, *y = (const int16_t *) b;
  int32_t sum = 0;
  for (size_t k = 0; k < 2 * kp; k++) sum += x[k] * y[k];
  return sum;
}

#if WEFT_SIMD_X86
WEFT_TARGET_AVX2 static int32_t dot_avx2(const int32_t *a, const int32_t *b, size_t kp)
{
  __m256i sum = _mm256_setzero_si256();
  __m128i half;
  size_t k = 0;
  for (; k + 8 <= kp; k += 8)
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_loadu_si256((const void *) (a + k)),
                                                  _mm256_loadu_si256((const void *) (b + k))));
  half = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1));
  return _mm_cvtsi128_si32(half) + dot_portable(a + k, b + k, kp - k);
}

WEFT_TARGET_AVX512 static int32_t dot_avx512(const int32_t *a, const int32_t *b, size_t kp)
{
  __m512i sum = _mm512_setzero_si512();
  for (size_t k = 0; k < kp; k += 16) {
    const __mmask16 mask = (__mmask16) (kp - k < 16 ? (1 << (kp - k)) - 1 : 0xffff);
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maskz_loadu_epi32(mask, a + k),
                                                  _mm512_maskz_loadu_epi32(mask, b + k)));
  }
  return _mm512_reduce_add_epi32(sum);
}
#endif
