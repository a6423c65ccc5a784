/* The AVX-512 variant of bits.h (F, BW, VPOPCNTDQ). Comparisons yield bit masks, so a plane's word is one comparison of
 * 64 bytes; population counts are one instruction on eight words.
 *
 * The tile rearranges b into groups of 32 planes, word by word:
 *
 *   group[w * 32 + j] = word w of plane j        four vectors per word, a lane per plane
 *
 * so that one word of a plane of a, broadcast, meets 32 planes of b and every lane is the count of its own pair: no sum
 * across lanes is ever taken. 4 planes of a by 32 of b are 16 accumulators; a word costs each an AND, a POPCNT and an
 * ADD, which is what bounds the speed. */
/* Build: shared. */
#include "core/data/bits.h"
#include "core/data/bits_portable.h"

#if WEFT_SIMD_X86
#  include <immintrin.h>
#  include <math.h>

#  define TARGET WEFT_TARGET_AVX512
#  define TARGET_INLINE TARGET static inline __attribute__((always_inline))

/* Lanes 0 .. count - 1 of a vector; count may exceed the lanes. */
TARGET_INLINE __mmask8 lanes8(size_t count) { return (__mmask8) (count < 8 ? (1u << count) - 1 : 0xffu); }
TARGET_INLINE __mmask16 lanes16(size_t count) { return (__mmask16) (count < 16 ? (1u << count) - 1 : 0xffffu); }
TARGET_INLINE __mmask64 lanes64(size_t count) { return count < 64 ? ((__mmask64) 1 << count) - 1 : ~(__mmask64) 0; }

/* ---- scans ---- */

TARGET static void scan_i32(const int32_t *x, size_t n, int32_t *min, int32_t *max, size_t *n_na)
{
  const __m512i na = _mm512_set1_epi32(WEFT_NA_I32);
  __m512i least = _mm512_set1_epi32(INT32_MAX), greatest = _mm512_set1_epi32(-INT32_MAX);
  size_t present = 0;
  for (size_t row = 0; row < n; row += 16) {
    __m512i v = _mm512_mask_loadu_epi32(na, lanes16(n - row), x + row);
    __mmask16 has = _mm512_cmpneq_epi32_mask(v, na);
    present += (size_t) _mm_popcnt_u32(has);
    least = _mm512_mask_min_epi32(least, has, least, v);
    greatest = _mm512_max_epi32(greatest, v);
  }
  *min = _mm512_reduce_min_epi32(least), *max = _mm512_reduce_max_epi32(greatest), *n_na = n - present;
}

/* The smallest and largest byte, 64 at a time, the last ones under a mask; without bytes *min is 255 and *max is 0. */
TARGET static void scan_u8(const uint8_t *x, size_t n, uint8_t *min, uint8_t *max)
{
  __m512i least = _mm512_set1_epi8(-1), greatest = _mm512_setzero_si512();
  for (size_t row = 0; row < n; row += 64) {
    __mmask64 rows = lanes64(n - row);
    __m512i v = _mm512_maskz_loadu_epi8(rows, x + row);
    least = _mm512_mask_min_epu8(least, rows, least, v);
    greatest = _mm512_max_epu8(greatest, v);
  }
  uint8_t lanes[2][64], low = UINT8_MAX, high = 0;
  _mm512_storeu_si512(lanes[0], least), _mm512_storeu_si512(lanes[1], greatest);
  for (int i = 0; i < 64; i++) {
    if (lanes[0][i] < low) low = lanes[0][i];
    if (lanes[1][i] > high) high = lanes[1][i];
  }
  *min = low, *max = high;
}

/* A comparison with NaN is false and a minimum with NaN is its second operand, so the accumulator stands second. */
TARGET static void scan_f64(const double *x, size_t n, double *min, double *max, size_t *n_na, int *all_whole)
{
  const __m512d limit = _mm512_set1_pd(2147483648.0), nan = _mm512_set1_pd(NAN);
  __m512d least = _mm512_set1_pd(INFINITY), greatest = _mm512_set1_pd(-INFINITY);
  unsigned fractions = 0;
  size_t present = 0;
  for (size_t row = 0; row < n; row += 8) {
    __m512d v = _mm512_mask_loadu_pd(nan, lanes8(n - row), x + row);
    __m512d whole = _mm512_roundscale_pd(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    __mmask8 has = _mm512_cmp_pd_mask(v, v, _CMP_ORD_Q), fits = _mm512_cmp_pd_mask(v, whole, _CMP_EQ_OQ);
    fits = _mm512_mask_cmp_pd_mask(fits, _mm512_abs_pd(v), limit, _CMP_LT_OQ);
    fractions |= (unsigned) has & ~(unsigned) fits;
    present += (size_t) _mm_popcnt_u32(has);
    least = _mm512_min_pd(v, least);
    greatest = _mm512_max_pd(v, greatest);
  }
  *min = _mm512_reduce_min_pd(least) + 0.0, *max = _mm512_reduce_max_pd(greatest) + 0.0; /* no -0 */
  *n_na = n - present, *all_whole = !fractions;
}

/* ---- codes ---- */

TARGET_INLINE __m512i code_i32(__m512i v, __m512i base, __m512i missing)
{
  __mmask16 is_na = _mm512_cmpeq_epi32_mask(v, _mm512_set1_epi32(WEFT_NA_I32));
  return _mm512_mask_mov_epi32(_mm512_sub_epi32(v, base), is_na, missing);
}

/* NaN converts to INT32_MIN, which is the missing integer. */
TARGET_INLINE __m512i load_f64_as_i32(const double *x, size_t rows)
{
  __m256i low = _mm512_cvttpd_epi32(_mm512_maskz_loadu_pd(lanes8(rows), x));
  __m256i high = _mm512_cvttpd_epi32(rows > 8 ? _mm512_maskz_loadu_pd(lanes8(rows - 8), x + 8) : _mm512_setzero_pd());
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

TARGET static void narrow_i32_u8(const int32_t *x, size_t n, int32_t base, uint8_t *out)
{
  const __m512i from = _mm512_set1_epi32(base), missing = _mm512_set1_epi32(WEFT_NA_U8);
  for (size_t row = 0; row < n; row += 16) {
    __m512i v = _mm512_maskz_loadu_epi32(lanes16(n - row), x + row);
    _mm512_mask_cvtepi32_storeu_epi8(out + row, lanes16(n - row), code_i32(v, from, missing));
  }
}

TARGET static void narrow_i32_u16(const int32_t *x, size_t n, int32_t base, uint16_t *out)
{
  const __m512i from = _mm512_set1_epi32(base), missing = _mm512_set1_epi32(WEFT_NA_U16);
  for (size_t row = 0; row < n; row += 16) {
    __m512i v = _mm512_maskz_loadu_epi32(lanes16(n - row), x + row);
    _mm512_mask_cvtepi32_storeu_epi16(out + row, lanes16(n - row), code_i32(v, from, missing));
  }
}

TARGET static void narrow_f64_u8(const double *x, size_t n, int32_t base, uint8_t *out)
{
  const __m512i from = _mm512_set1_epi32(base), missing = _mm512_set1_epi32(WEFT_NA_U8);
  for (size_t row = 0; row < n; row += 16)
    _mm512_mask_cvtepi32_storeu_epi8(out + row, lanes16(n - row),
                                     code_i32(load_f64_as_i32(x + row, n - row), from, missing));
}

TARGET static void narrow_f64_u16(const double *x, size_t n, int32_t base, uint16_t *out)
{
  const __m512i from = _mm512_set1_epi32(base), missing = _mm512_set1_epi32(WEFT_NA_U16);
  for (size_t row = 0; row < n; row += 16)
    _mm512_mask_cvtepi32_storeu_epi16(out + row, lanes16(n - row),
                                      code_i32(load_f64_as_i32(x + row, n - row), from, missing));
}

/* ---- planes ---- */

TARGET static void plane_u8(const uint8_t *codes, size_t n, uint8_t level, uint64_t *words)
{
  const __m512i wanted = _mm512_set1_epi8((char) level);
  for (size_t row = 0; row < n; row += 64) {
    __mmask64 rows = lanes64(n - row);
    words[row / 64] = _mm512_mask_cmpeq_epi8_mask(rows, _mm512_maskz_loadu_epi8(rows, codes + row), wanted);
  }
}

TARGET static void plane_u16(const uint16_t *codes, size_t n, uint16_t level, uint64_t *words)
{
  const __m512i wanted = _mm512_set1_epi16((short) level);
  for (size_t row = 0; row < n; row += 64) {
    __mmask32 low = (__mmask32) lanes64(n - row), high = (__mmask32) (lanes64(n - row) >> 32);
    uint64_t first = _mm512_mask_cmpeq_epi16_mask(low, _mm512_maskz_loadu_epi16(low, codes + row), wanted);
    uint64_t second = 0;
    if (high) second = _mm512_mask_cmpeq_epi16_mask(high, _mm512_maskz_loadu_epi16(high, codes + row + 32), wanted);
    words[row / 64] = first | second << 32;
  }
}

/* Whole words without a missing value: the differences from the base are all 0 or 1, and one OR shows it. */
TARGET_INLINE int binary_word_no_na(const int32_t *x, __m512i base, uint64_t *ones)
{
  const __m512i one = _mm512_set1_epi32(1);
  __m512i d0 = _mm512_sub_epi32(_mm512_loadu_si512(x), base), d1 = _mm512_sub_epi32(_mm512_loadu_si512(x + 16), base);
  __m512i d2 = _mm512_sub_epi32(_mm512_loadu_si512(x + 32), base);
  __m512i d3 = _mm512_sub_epi32(_mm512_loadu_si512(x + 48), base);
  __m512i any = _mm512_or_si512(_mm512_or_si512(d0, d1), _mm512_or_si512(d2, d3));
  *ones = (uint64_t) _mm512_test_epi32_mask(d0, one) | (uint64_t) _mm512_test_epi32_mask(d1, one) << 16 |
          (uint64_t) _mm512_test_epi32_mask(d2, one) << 32 | (uint64_t) _mm512_test_epi32_mask(d3, one) << 48;
  return !_mm512_cmpgt_epu32_mask(any, one);
}

/* The same with missing values among the 64 rows. */
TARGET_INLINE int binary_word(const int32_t *x, __m512i base, uint64_t *ones, uint64_t *na)
{
  const __m512i one = _mm512_set1_epi32(1), missing = _mm512_set1_epi32(WEFT_NA_I32);
  uint64_t above = 0, gaps = 0, fits = 0;
  for (int part = 0; part < 64; part += 16) {
    __m512i v = _mm512_loadu_si512(x + part), d = _mm512_sub_epi32(v, base);
    above |= (uint64_t) _mm512_cmpeq_epi32_mask(d, one) << part;
    gaps |= (uint64_t) _mm512_cmpeq_epi32_mask(v, missing) << part;
    fits |= (uint64_t) _mm512_cmple_epu32_mask(d, one) << part;
  }
  *ones = above, *na = gaps;
  return (fits | gaps) == ~(uint64_t) 0;
}

/* 64 rows at a time; the faster loop assumes that no value is missing, and is followed by the other where one is. */
TARGET static int scan_pack_binary_i32(const int32_t *x, size_t n, int32_t base, uint64_t *ones, uint64_t *na,
                                       size_t *n_na)
{
  const __m512i from = _mm512_set1_epi32(base);
  size_t missing = 0;
  if (base == WEFT_NA_I32 || base == INT32_MAX) return 0; /* base or base + 1 would be the missing value */
  for (size_t row = 0; row < n; row += 64) {
    uint64_t gaps = 0;
    if (n - row < 64) {
      if (!weft_binary_word_i32(x + row, n - row, base, &ones[row / 64], &gaps)) return 0;
    } else if (!binary_word_no_na(x + row, from, &ones[row / 64])) {
      if (!binary_word(x + row, from, &ones[row / 64], &gaps)) return 0;
    }
    if (na)
      na[row / 64] = gaps;
    else if (gaps)
      return 0;
    missing += (size_t) _mm_popcnt_u64(gaps);
  }
  *n_na = missing;
  return 1;
}

/* ---- counts ---- */

TARGET_INLINE __m512i load_words(const uint64_t *a, size_t left) { return _mm512_maskz_loadu_epi64(lanes8(left), a); }

TARGET static uint64_t popcount(const uint64_t *a, size_t words)
{
  __m512i count = _mm512_setzero_si512();
  for (size_t w = 0; w < words; w += 8)
    count = _mm512_add_epi64(count, _mm512_popcnt_epi64(load_words(a + w, words - w)));
  return (uint64_t) _mm512_reduce_add_epi64(count);
}

TARGET static uint64_t popcount_and(const uint64_t *a, const uint64_t *b, size_t words)
{
  __m512i count = _mm512_setzero_si512();
  for (size_t w = 0; w < words; w += 8) {
    __m512i both = _mm512_and_si512(load_words(a + w, words - w), load_words(b + w, words - w));
    count = _mm512_add_epi64(count, _mm512_popcnt_epi64(both));
  }
  return (uint64_t) _mm512_reduce_add_epi64(count);
}

TARGET static uint64_t popcount_and3(const uint64_t *a, const uint64_t *b, const uint64_t *c, size_t words)
{
  __m512i count = _mm512_setzero_si512();
  for (size_t w = 0; w < words; w += 8) {
    __m512i two = _mm512_and_si512(load_words(a + w, words - w), load_words(b + w, words - w));
    count = _mm512_add_epi64(count, _mm512_popcnt_epi64(_mm512_and_si512(two, load_words(c + w, words - w))));
  }
  return (uint64_t) _mm512_reduce_add_epi64(count);
}

/* Two planes of b at a time share the loads of a. */
TARGET static void popcount_and_many(const uint64_t *a, const uint64_t *const *b, size_t nb, size_t words,
                                     uint32_t *out)
{
  size_t j = 0;
  for (; j + 2 <= nb; j += 2) {
    __m512i count0 = _mm512_setzero_si512(), count1 = count0;
    for (size_t w = 0; w < words; w += 8) {
      __m512i v = load_words(a + w, words - w);
      __m512i both0 = _mm512_and_si512(v, load_words(b[j] + w, words - w));
      __m512i both1 = _mm512_and_si512(v, load_words(b[j + 1] + w, words - w));
      count0 = _mm512_add_epi64(count0, _mm512_popcnt_epi64(both0));
      count1 = _mm512_add_epi64(count1, _mm512_popcnt_epi64(both1));
    }
    out[j] = (uint32_t) _mm512_reduce_add_epi64(count0);
    out[j + 1] = (uint32_t) _mm512_reduce_add_epi64(count1);
  }
  if (j < nb) out[j] = (uint32_t) popcount_and(a, b[j], words);
}

/* ---- the tile ---- */

enum { GROUP = 32, VECTORS = GROUP / 8, ROWS = 4, WORDS = 64 }; /* a group of 64 words is 16 KiB, half of L1 */

/* Planes past nb are zero; a group narrower than 32 keeps its stride. */
TARGET static void arrange(const uint64_t *b, size_t nb, size_t ldb, size_t words, uint64_t *group)
{
  for (size_t j = 0; j < GROUP; j++)
    for (size_t w = 0; w < words; w++) group[w * GROUP + j] = j < nb ? b[j * ldb + w] : 0;
}

/* Low halves of sixteen 64-bit counts, in order, added to what earlier words gave. */
TARGET_INLINE void store_counts(__m512i first, __m512i second, size_t count, int add, uint32_t *out)
{
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  __m512i counts = _mm512_permutex2var_epi32(first, even, second);
  if (add) counts = _mm512_add_epi32(counts, _mm512_maskz_loadu_epi32(lanes16(count), out));
  _mm512_mask_storeu_epi32(out, lanes16(count), counts);
}

/* `rows` planes of a against one group; `rows` and `vectors` are constants where it is inlined, so that the
 * accumulators are registers. An odd last vector stores with zeros beside it. */
TARGET_INLINE void rows_by_group(const size_t rows, const size_t vectors, const uint64_t *a, size_t lda,
                                 const uint64_t *group, size_t words, size_t nb, int add, uint32_t *out, size_t ldo)
{
  __m512i count[ROWS][VECTORS];
#  pragma GCC unroll 4
  for (size_t i = 0; i < ROWS; i++)
#  pragma GCC unroll 4
    for (size_t v = 0; v < VECTORS; v++) count[i][v] = _mm512_setzero_si512();
  for (size_t w = 0; w < words; w++) {
#  pragma GCC unroll 4
    for (size_t i = 0; i < rows; i++) {
      __m512i word = _mm512_set1_epi64((long long) a[i * lda + w]);
#  pragma GCC unroll 4
      for (size_t v = 0; v < vectors; v++) {
        __m512i both = _mm512_and_si512(word, _mm512_loadu_si512(group + w * GROUP + v * 8));
        count[i][v] = _mm512_add_epi64(count[i][v], _mm512_popcnt_epi64(both));
      }
    }
  }
#  pragma GCC unroll 4
  for (size_t i = 0; i < rows; i++)
#  pragma GCC unroll 2
    for (size_t v = 0; v < vectors; v += 2)
      store_counts(count[i][v], count[i][v + 1], nb - v * 8, add, out + i * ldo + v * 8);
}

/* All planes of a against one group of 8 * vectors planes. */
TARGET_INLINE void block_by_group(const size_t vectors, const uint64_t *a, size_t na, size_t lda, const uint64_t *group,
                                  size_t words, size_t nb, int add, uint32_t *out, size_t ldo)
{
  size_t i = 0;
  for (; i + ROWS <= na; i += ROWS)
    rows_by_group(ROWS, vectors, a + i * lda, lda, group, words, nb, add, out + i * ldo, ldo);
  for (; i < na; i++) rows_by_group(1, vectors, a + i * lda, lda, group, words, nb, add, out + i * ldo, ldo);
}

/* Planes of b are rearranged in groups of 32, so that one load serves eight of them; each group is counted against all
 * planes of a, 64 words at a time, so that the group stays in the first-level cache. */
TARGET static void popcount_tile(const uint64_t *a, size_t na, size_t lda, const uint64_t *b, size_t nb, size_t ldb,
                                 size_t words, uint32_t *out, size_t ldo)
{
  uint64_t group[WORDS * GROUP] __attribute__((aligned(64)));
  for (size_t j = 0; j < nb; j += GROUP) {
    size_t planes = nb - j < GROUP ? nb - j : GROUP, w = 0;
    do { /* once even for no words, so that the counts are written */
      size_t part = words - w < WORDS ? words - w : WORDS;
      arrange(b + j * ldb + w, planes, ldb, part, group);
      switch ((planes + 7) / 8) {
      case 1: block_by_group(1, a + w, na, lda, group, part, planes, w > 0, out + j, ldo); break;
      case 2: block_by_group(2, a + w, na, lda, group, part, planes, w > 0, out + j, ldo); break;
      case 3: block_by_group(3, a + w, na, lda, group, part, planes, w > 0, out + j, ldo); break;
      default: block_by_group(4, a + w, na, lda, group, part, planes, w > 0, out + j, ldo);
      }
      w += part;
    } while (w < words);
  }
}

const weft_bits_ops weft_bits_avx512 = WEFT_BITS_TABLE;
#else
typedef int weft_bits_avx512_unused; /* a translation unit may not be empty */
#endif
