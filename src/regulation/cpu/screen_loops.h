/* The loops of the screen (screen.c) that do most of its work, in vectors: the update of all features when
 * one has been chosen (a turn), with the test of which may now be the best, and exact products of two features. */
#pragma once

#include <string.h>
#include "core/numbers/loops.h"
#include "regulation/regulation.h"
#include "regulation/cpu/selection_loops.h"
#if WEFT_SIMD_X86
#  include <immintrin.h>
#endif

#define RUN ((size_t) 32) /* regulators whose flags are one word */

/* The direction of the feature that was chosen last. */
typedef struct {
  const int16_t *near;
  int16_t before[WEFT_REGULATION_MAX_STEPS], stretch, share;
  int shift;
} turn;

/* What is tested for: the square of |r| + add, shifted after a cap, times the favour, and d times threshold, less
 * slack. */
typedef struct {
  int16_t add, slack, cap, threshold;
  int shift;
} test;

/* Turns and tests all features, up to the first run with a regulator that may be the best by some kind: the test takes
 * the greatest |r| of its kinds and the least of their d. */
typedef struct {
  const turn *turn;
  const test *test;
  size_t step, padded, features;
  const int16_t *part, *favour;
  int16_t *q, *r, *d;    /* q: of all steps */
  const int16_t *before; /* d before this step */
  int last;              /* no turn follows: q, r and d stay as they are */
} sweep;

/* From `at`, up to the first run with a flag; returns where the next run begins. */
typedef size_t sweep_loop(const sweep *w, int hinges, size_t at, uint32_t *flags);

INLINE int16_t times(int16_t a, int16_t b) { return (int16_t) ((a * b + (1 << 14)) >> 15); }
INLINE int16_t lesser(int16_t a, int16_t b) { return a < b ? a : b; }
INLINE int16_t greater(int16_t a, int16_t b) { return a > b ? a : b; }
INLINE int16_t size_of(int16_t a) { return (int16_t) (a < 0 ? -a : a); }

/* Regulator j after the turn, by part and by kind. */
typedef struct {
  int16_t q[2], r[2], d[WEFT_REGULATION_KINDS];
} turned;

/* Regulator j after the latest direction was taken, without vectors: the 16-bit products with it, correlations and
 * residual variances that the vector code gives too. */
INLINE turned turn_one(const sweep *w, int hinges, size_t j)
{
  const turn *turn = w->turn;
  turned after = { { 0, 0 }, { 0, 0 }, { 0, 0, 0 } };
  for (int part = 0; part <= hinges; part++) {
    const size_t feature = (size_t) part * w->padded + j;
    int16_t num = turn->near[feature];
    for (size_t k = 0; k < w->step; k++)
      num = (int16_t) (num - times(w->q[k * w->features + feature], turn->before[k]));
    num = (int16_t) (num * (1 << turn->shift));
    after.q[part] = (int16_t) (num + times(num, turn->stretch));
    after.r[part] = (int16_t) (w->r[feature] - times(after.q[part], turn->share));
  }
  for (int kind = 0; kind <= 2 * hinges; kind++) {
    const int16_t *part = w->part + j;
    const int16_t q = !hinges ? after.q[0]
                      : kind  ? after.q[kind - 1]
                              : (int16_t) (times(after.q[0], part[0]) + times(after.q[1], part[w->padded]));
    after.d[kind] = (int16_t) (w->before[(size_t) kind * w->padded + j] - times(q, q));
  }
  return after;
}

/* The same as the last sweep left it, with nothing in q. */
INLINE turned turned_before(const sweep *w, int hinges, const int16_t *d, size_t j)
{
  turned after = { { 0, 0 }, { w->r[j], hinges ? w->r[w->padded + j] : 0 }, { 0, 0, 0 } };
  for (int kind = 0; kind <= 2 * hinges; kind++) after.d[kind] = d[(size_t) kind * w->padded + j];
  return after;
}

/* The greatest size of r and the least d of a regulator's kinds. */
INLINE int16_t size_of_all(const int16_t *r, const int16_t *part, size_t padded, int hinges)
{
  const int16_t most = greater(size_of(r[0]), size_of(r[1]));
  return hinges ? greater(most, size_of((int16_t) (times(r[0], part[0]) + times(r[1], part[padded])))) : most;
}

/* Whether regulator j may be the best after the turn. */
INLINE int sweep_one(const sweep *w, int hinges, size_t j)
{
  const turned after = turn_one(w, hinges, j);
  int16_t size = (int16_t) (size_of_all(after.r, w->part + j, w->padded, hinges) + w->test->add), left = 32767;
  for (int kind = 0; kind <= 2 * hinges; kind++) left = lesser(left, after.d[kind]);
  for (int part = 0; !w->last && part <= hinges; part++) {
    const size_t feature = (size_t) part * w->padded + j;
    w->q[w->step * w->features + feature] = after.q[part];
    w->r[feature] = after.r[part];
  }
  for (int kind = 0; !w->last && kind <= 2 * hinges; kind++) w->d[(size_t) kind * w->padded + j] = after.d[kind];
  size = (int16_t) (lesser(size, w->test->cap) * (1 << w->test->shift));
  return times(left, w->test->threshold) - w->test->slack <= times(times(size, size), w->favour[j]);
}

static size_t sweep_portable(const sweep *w, int hinges, size_t at, uint32_t *flags)
{
  for (*flags = 0; at < w->padded && !*flags; at += RUN)
    for (size_t j = at; j < at + RUN; j++) *flags |= (uint32_t) sweep_one(w, hinges, j) << (j - at);
  return at;
}

/* Before the first turn: size[j], the greatest |r| of regulator j's kinds times the root of its favour, and the
 * greatest of every RUN-th one, in `top`. */
typedef void size_loop(const sweep *w, int hinges, const int16_t *root, int16_t *size, int16_t *top);
/* Which of a run reach a threshold. */
typedef uint32_t reach_loop(const int16_t *size, int16_t threshold);

static void sizes_portable(const sweep *w, int hinges, const int16_t *root, int16_t *size, int16_t *top)
{
  memset(top, 0, RUN * sizeof *top);
  for (size_t j = 0; j < w->padded; j++) {
    const int16_t r[2] = { w->r[j], hinges ? w->r[w->padded + j] : 0 };
    size[j] = times(size_of_all(r, w->part + j, w->padded, hinges), root[j]);
    top[j % RUN] = greater(top[j % RUN], size[j]);
  }
}

static uint32_t reach_portable(const int16_t *size, int16_t threshold)
{
  uint32_t flags = 0;
  for (size_t i = 0; i < RUN; i++) flags |= (uint32_t) (size[i] >= threshold) << i;
  return flags;
}

#if WEFT_SIMD_X86
/* The same with vectors of LANES numbers. `steps`: how many have been taken before, at most. */
#  define SWEEP(variant, target, VECTOR, LANES, OF_ALL, LOAD, STORE, MUL, ADD, SUB, ABS, MIN, MAX, UP, MASK) \
    target INLINE VECTOR lose_##variant(const sweep *w, int kind, int last, size_t j, VECTOR q) \
    { \
      const size_t at = (size_t) kind * w->padded + j; \
      const VECTOR left = SUB(LOAD((const void *) (w->before + at)), MUL(q, q)); \
      if (!last) STORE((void *) (w->d + at), left); \
      return left; \
    } \
    target INLINE uint32_t sweep_at_##variant(const sweep *w, int hinges, int shifted, size_t step, int last, \
                                              size_t j, const VECTOR *before) \
    { \
      const turn *t = w->turn; \
      const test *now = w->test; \
      VECTOR q[2], r[2], size, left = OF_ALL(0); /* compilers that do not unroll warn else */ \
      WEFT_UNROLLED \
      for (int part = 0; part <= hinges; part++) { \
        const size_t f = (size_t) part * w->padded + j; \
        VECTOR num = LOAD((const void *) (t->near + f)); \
        WEFT_UNROLLED \
        for (size_t k = 0; k < step; k++) \
          num = SUB(num, MUL(LOAD((const void *) (w->q + k * w->features + f)), before[k])); \
        if (shifted) num = UP(num, _mm_cvtsi32_si128(t->shift)); \
        q[part] = ADD(num, MUL(num, OF_ALL(t->stretch))); \
        r[part] = SUB(LOAD((const void *) (w->r + f)), MUL(q[part], OF_ALL(t->share))); \
        if (!last) { \
          STORE((void *) (w->q + step * w->features + f), q[part]); \
          STORE((void *) (w->r + f), r[part]); \
        } \
        size = part ? MAX(size, ABS(r[part])) : ABS(r[part]); \
        left = part ? MIN(left, lose_##variant(w, 2, last, j, q[part])) : lose_##variant(w, hinges, last, j, q[part]); \
      } \
      if (hinges) { \
        const VECTOR one = LOAD((const void *) (w->part + j)), two = LOAD((const void *) (w->part + w->padded + j)); \
        size = MAX(size, ABS(ADD(MUL(r[0], one), MUL(r[1], two)))); \
        left = MIN(left, lose_##variant(w, 0, last, j, ADD(MUL(q[0], one), MUL(q[1], two)))); \
      } \
      size = ADD(size, OF_ALL(now->add)); \
      if (shifted) size = UP(MIN(size, OF_ALL(now->cap)), _mm_cvtsi32_si128(now->shift)); \
      return MASK(SUB(MUL(left, OF_ALL(now->threshold)), OF_ALL(now->slack)), \
                  MUL(MUL(size, size), LOAD((const void *) (w->favour + j)))); \
    } \
    target INLINE size_t sweep_of_##variant(const sweep *w, int hinges, int shifted, size_t step, int last, size_t at, \
                                            uint32_t *flags) \
    { \
      VECTOR before[WEFT_REGULATION_MAX_STEPS]; \
      uint32_t found = 0; \
      for (size_t k = 0; k < step; k++) before[k] = OF_ALL(w->turn->before[k]); \
      for (; at < w->padded && !found; at += RUN) \
        for (size_t first = 0; first < RUN; first += LANES) \
          found |= sweep_at_##variant(w, hinges, shifted, step, last, at + first, before) << first; \
      *flags = found; \
      return at; \
    } \
    target static size_t sweep_##variant(const sweep *w, int hinges, size_t at, uint32_t *flags) \
    { \
      if (!hinges) return sweep_of_##variant(w, 0, 1, w->step, w->last, at, flags); \
      if (!w->test->shift && !w->turn->shift) switch (2 * w->step + (size_t) w->last) { \
        case 0: return sweep_of_##variant(w, 1, 0, 0, 0, at, flags); \
        case 1: return sweep_of_##variant(w, 1, 0, 0, 1, at, flags); \
        case 2: return sweep_of_##variant(w, 1, 0, 1, 0, at, flags); \
        case 3: return sweep_of_##variant(w, 1, 0, 1, 1, at, flags); \
        case 4: return sweep_of_##variant(w, 1, 0, 2, 0, at, flags); \
        case 5: return sweep_of_##variant(w, 1, 0, 2, 1, at, flags); \
        case 7: return sweep_of_##variant(w, 1, 0, 3, 1, at, flags); \
        } \
      return sweep_of_##variant(w, 1, 1, w->step, w->last, at, flags); \
    }
#  define SIZES(variant, target, VECTOR, LANES, OF_ALL, LOAD, STORE, MUL, ADD, ABS, MAX, MASK) \
    target static void sizes_##variant(const sweep *w, int hinges, const int16_t *root, int16_t *size, int16_t *top) \
    { \
      const size_t padded = w->padded; \
      VECTOR most[RUN / LANES]; \
      WEFT_UNROLLED \
      for (size_t k = 0; k < RUN / LANES; k++) most[k] = OF_ALL(0); \
      for (size_t at = 0; at < padded; at += RUN) { \
        WEFT_UNROLLED \
        for (size_t k = 0; k < RUN / LANES; k++) { \
          const size_t j = at + k * LANES; \
          const VECTOR r = LOAD((const void *) (w->r + j)); \
          VECTOR out = ABS(r); \
          if (hinges) { \
            const VECTOR too = LOAD((const void *) (w->r + padded + j)); \
            const VECTOR z = ADD(MUL(r, LOAD((const void *) (w->part + j))), \
                                 MUL(too, LOAD((const void *) (w->part + padded + j)))); \
            out = MAX(MAX(out, ABS(too)), ABS(z)); \
          } \
          out = MUL(out, LOAD((const void *) (root + j))); \
          STORE((void *) (size + j), out); \
          most[k] = MAX(most[k], out); \
        } \
      } \
      WEFT_UNROLLED \
      for (size_t k = 0; k < RUN / LANES; k++) STORE((void *) (top + k * LANES), most[k]); \
    } \
    target INLINE uint32_t reach_##variant(const int16_t *size, int16_t threshold) \
    { \
      uint32_t flags = 0; \
      for (size_t k = 0; k < RUN; k += LANES) \
        flags |= (uint32_t) MASK(OF_ALL(threshold), LOAD((const void *) (size + k))) << k; \
      return flags; \
    }
/* Which of 16 numbers a are at most b. */
WEFT_TARGET_AVX2 INLINE uint32_t at_most_avx2(__m256i a, __m256i b)
{
  const __m256i above = _mm256_packs_epi16(_mm256_cmpgt_epi16(a, b), _mm256_setzero_si256());
  return ~(uint32_t) _mm256_movemask_epi8(_mm256_permute4x64_epi64(above, 0xd8)) & 0xffff;
}
SWEEP(avx2, WEFT_TARGET_AVX2, __m256i, 16, _mm256_set1_epi16, _mm256_loadu_si256, _mm256_storeu_si256,
      _mm256_mulhrs_epi16, _mm256_add_epi16, _mm256_sub_epi16, _mm256_abs_epi16, _mm256_min_epi16, _mm256_max_epi16,
      _mm256_sll_epi16, at_most_avx2)
SIZES(avx2, WEFT_TARGET_AVX2, __m256i, 16, _mm256_set1_epi16, _mm256_loadu_si256, _mm256_storeu_si256,
      _mm256_mulhrs_epi16, _mm256_add_epi16, _mm256_abs_epi16, _mm256_max_epi16, at_most_avx2)
SWEEP(avx512, WEFT_TARGET_AVX512, __m512i, 32, _mm512_set1_epi16, _mm512_loadu_si512, _mm512_storeu_si512,
      _mm512_mulhrs_epi16, _mm512_add_epi16, _mm512_sub_epi16, _mm512_abs_epi16, _mm512_min_epi16, _mm512_max_epi16,
      _mm512_sll_epi16, _mm512_cmple_epi16_mask)
SIZES(avx512, WEFT_TARGET_AVX512, __m512i, 32, _mm512_set1_epi16, _mm512_loadu_si512, _mm512_storeu_si512,
      _mm512_mulhrs_epi16, _mm512_add_epi16, _mm512_abs_epi16, _mm512_max_epi16, _mm512_cmple_epi16_mask)
#endif

/* ---- exact products ---- */

typedef int32_t dot_product(const int32_t *a, const int32_t *b, size_t kp);

INLINE int32_t dot_portable(const int32_t *a, const int32_t *b, size_t kp)
{
  const int16_t *x = (const int16_t *) a, *y = (const int16_t *) b;
  int32_t sum = 0;
  for (size_t k = 0; k < 2 * kp; k++) sum += x[k] * y[k];
  return sum;
}

#if WEFT_SIMD_X86
WEFT_TARGET_AVX2 INLINE int32_t dot_avx2(const int32_t *a, const int32_t *b, size_t kp)
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

WEFT_TARGET_AVX512 INLINE int32_t dot_avx512(const int32_t *a, const int32_t *b, size_t kp)
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
