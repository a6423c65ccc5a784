/* The AVX2 variant of bits.h. Masks come from movemask; bits are counted by a table of sixteen nibble counts looked up
 * with PSHUFB (W. Mula), summed in bytes, and PSADBW adds the bytes of each 64-bit lane.
 *
 * The tile rearranges b into groups of 8 planes, word by word, with the nibbles already apart:
 *
 *   group[w * 16 + j]     = low nibbles of word w of plane j      two vectors
 *   group[w * 16 + 8 + j] = its high nibbles, shifted down        two vectors
 *
 * so that a word of a, broadcast as it is and shifted by four, needs two ANDs, two look-ups and two additions for
 * four planes, and every lane counts its own pair. */
/* Build: shared. */
#include "core/data/bits.h"
#include "core/data/bits_portable.h"

#if WEFT_SIMD_X86
#  include <immintrin.h>
#  include <math.h>

#  define TARGET WEFT_TARGET_AVX2
#  define TARGET_INLINE TARGET static inline __attribute__((always_inline))

TARGET_INLINE __m256i load(const void *x) { return _mm256_loadu_si256((const __m256i *) x); }
TARGET_INLINE void store(void *x, __m256i v) { _mm256_storeu_si256((__m256i *) x, v); }

/* ---- scans: whole vectors here, the rest by the portable code ---- */

TARGET static void scan_i32(const int32_t *x, size_t n, int32_t *min, int32_t *max, size_t *n_na)
{
  const __m256i na = _mm256_set1_epi32(WEFT_NA_I32), flip = _mm256_set1_epi32(INT32_MAX);
  /* x + INT32_MAX, read unsigned, keeps the order of the integers and makes the missing value the greatest. */
  __m256i least = _mm256_set1_epi32(-1), greatest = _mm256_set1_epi32(-INT32_MAX);
  size_t whole = n - n % 8, missing = 0, missing_rest;
  for (size_t row = 0; row < whole; row += 8) {
    __m256i v = load(x + row);
    missing += (size_t) _mm_popcnt_u32((unsigned) _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(v, na))));
    least = _mm256_min_epu32(least, _mm256_add_epi32(v, flip));
    greatest = _mm256_max_epi32(greatest, v);
  }
  uint32_t low_lanes[8];
  int32_t high_lanes[8], low, high;
  store(low_lanes, least), store(high_lanes, greatest);
  weft_bits_portable.scan_i32(x + whole, n - whole, &low, &high, &missing_rest);
  for (int i = 0; i < 8; i++) {
    if (low_lanes[i] != UINT32_MAX) {
      int32_t v = (int32_t) ((int64_t) low_lanes[i] - INT32_MAX);
      if (v < low) low = v;
    }
    if (high_lanes[i] > high) high = high_lanes[i];
  }
  *min = low, *max = high, *n_na = missing + missing_rest;
}

/* The smallest and largest byte, 32 at a time; without bytes *min is 255 and *max is 0. */
TARGET static void scan_u8(const uint8_t *x, size_t n, uint8_t *min, uint8_t *max)
{
  __m256i least = _mm256_set1_epi8(-1), greatest = _mm256_setzero_si256();
  size_t whole = n - n % 32;
  for (size_t row = 0; row < whole; row += 32) {
    __m256i v = load(x + row);
    least = _mm256_min_epu8(least, v);
    greatest = _mm256_max_epu8(greatest, v);
  }
  uint8_t lanes[2][32], low, high;
  store(lanes[0], least), store(lanes[1], greatest);
  weft_bits_portable.scan_u8(x + whole, n - whole, &low, &high);
  for (int i = 0; i < 32; i++) {
    if (lanes[0][i] < low) low = lanes[0][i];
    if (lanes[1][i] > high) high = lanes[1][i];
  }
  *min = low, *max = high;
}

/* A comparison with NaN is false and a minimum with NaN is its second operand, so the accumulator stands second. */
TARGET static void scan_f64(const double *x, size_t n, double *min, double *max, size_t *n_na, int *all_whole)
{
  const __m256d limit = _mm256_set1_pd(2147483648.0), sign = _mm256_set1_pd(-0.0);
  __m256d least = _mm256_set1_pd(INFINITY), greatest = _mm256_set1_pd(-INFINITY);
  size_t whole = n - n % 4, present = 0, missing_rest;
  unsigned fractions = 0;
  for (size_t row = 0; row < whole; row += 4) {
    __m256d v = _mm256_loadu_pd(x + row);
    __m256d is_whole = _mm256_cmp_pd(v, _mm256_round_pd(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC), _CMP_EQ_OQ);
    __m256d is_small = _mm256_cmp_pd(_mm256_andnot_pd(sign, v), limit, _CMP_LT_OQ);
    unsigned has = (unsigned) _mm256_movemask_pd(_mm256_cmp_pd(v, v, _CMP_ORD_Q));
    fractions |= has & ~(unsigned) _mm256_movemask_pd(_mm256_and_pd(is_whole, is_small));
    present += (size_t) _mm_popcnt_u32(has);
    least = _mm256_min_pd(v, least);
    greatest = _mm256_max_pd(v, greatest);
  }
  double lanes[2][4], low, high;
  int rest_whole;
  _mm256_storeu_pd(lanes[0], least), _mm256_storeu_pd(lanes[1], greatest);
  weft_bits_portable.scan_f64(x + whole, n - whole, &low, &high, &missing_rest, &rest_whole);
  for (int i = 0; i < 4; i++) {
    if (lanes[0][i] < low) low = lanes[0][i];
    if (lanes[1][i] > high) high = lanes[1][i];
  }
  *min = low + 0.0, *max = high + 0.0; /* no -0 */
  *n_na = whole - present + missing_rest, *all_whole = rest_whole && !fractions;
}

/* ---- codes ---- */

TARGET_INLINE __m256i code_i32(__m256i v, __m256i base, __m256i missing)
{
  __m256i is_na = _mm256_cmpeq_epi32(v, _mm256_set1_epi32(WEFT_NA_I32));
  return _mm256_blendv_epi8(_mm256_sub_epi32(v, base), missing, is_na);
}

/* NaN converts to INT32_MIN, which is the missing integer. */
TARGET_INLINE __m256i load_f64_as_i32(const double *x)
{
  return _mm256_set_m128i(_mm256_cvttpd_epi32(_mm256_loadu_pd(x + 4)), _mm256_cvttpd_epi32(_mm256_loadu_pd(x)));
}

/* Packing works within 128-bit lanes; the permutations put the rows back in order. */
TARGET_INLINE __m256i pack_u16(__m256i first, __m256i second)
{
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(first, second), 0xd8);
}

TARGET_INLINE __m256i pack_u8(__m256i c0, __m256i c1, __m256i c2, __m256i c3)
{
  __m256i bytes = _mm256_packus_epi16(_mm256_packus_epi32(c0, c1), _mm256_packus_epi32(c2, c3));
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

TARGET static void narrow_i32_u8(const int32_t *x, size_t n, int32_t base, uint8_t *out)
{
  const __m256i from = _mm256_set1_epi32(base), missing = _mm256_set1_epi32(WEFT_NA_U8);
  size_t whole = n - n % 32;
  for (size_t row = 0; row < whole; row += 32)
    store(out + row, pack_u8(code_i32(load(x + row), from, missing), code_i32(load(x + row + 8), from, missing),
                             code_i32(load(x + row + 16), from, missing), code_i32(load(x + row + 24), from, missing)));
  weft_bits_portable.narrow_i32_u8(x + whole, n - whole, base, out + whole);
}

TARGET static void narrow_i32_u16(const int32_t *x, size_t n, int32_t base, uint16_t *out)
{
  const __m256i from = _mm256_set1_epi32(base), missing = _mm256_set1_epi32(WEFT_NA_U16);
  size_t whole = n - n % 16;
  for (size_t row = 0; row < whole; row += 16)
    store(out + row, pack_u16(code_i32(load(x + row), from, missing), code_i32(load(x + row + 8), from, missing)));
  weft_bits_portable.narrow_i32_u16(x + whole, n - whole, base, out + whole);
}

TARGET static void narrow_f64_u8(const double *x, size_t n, int32_t base, uint8_t *out)
{
  const __m256i from = _mm256_set1_epi32(base), missing = _mm256_set1_epi32(WEFT_NA_U8);
  size_t whole = n - n % 32;
  for (size_t row = 0; row < whole; row += 32) {
    __m256i c[4];
    for (int part = 0; part < 4; part++) c[part] = code_i32(load_f64_as_i32(x + row + 8 * part), from, missing);
    store(out + row, pack_u8(c[0], c[1], c[2], c[3]));
  }
  weft_bits_portable.narrow_f64_u8(x + whole, n - whole, base, out + whole);
}

TARGET static void narrow_f64_u16(const double *x, size_t n, int32_t base, uint16_t *out)
{
  const __m256i from = _mm256_set1_epi32(base), missing = _mm256_set1_epi32(WEFT_NA_U16);
  size_t whole = n - n % 16;
  for (size_t row = 0; row < whole; row += 16)
    store(out + row, pack_u16(code_i32(load_f64_as_i32(x + row), from, missing),
                              code_i32(load_f64_as_i32(x + row + 8), from, missing)));
  weft_bits_portable.narrow_f64_u16(x + whole, n - whole, base, out + whole);
}

/* ---- planes ---- */

TARGET_INLINE uint64_t byte_mask(__m256i v) { return (uint32_t) _mm256_movemask_epi8(v); }

TARGET static void plane_u8(const uint8_t *codes, size_t n, uint8_t level, uint64_t *words)
{
  const __m256i wanted = _mm256_set1_epi8((char) level);
  size_t whole = n - n % 64;
  for (size_t row = 0; row < whole; row += 64)
    words[row / 64] = byte_mask(_mm256_cmpeq_epi8(load(codes + row), wanted)) |
                      byte_mask(_mm256_cmpeq_epi8(load(codes + row + 32), wanted)) << 32;
  if (whole < n) words[whole / 64] = weft_plane_word_u8(codes + whole, n - whole, level);
}

TARGET_INLINE uint64_t half_word_u16(const uint16_t *codes, __m256i wanted)
{
  __m256i first = _mm256_cmpeq_epi16(load(codes), wanted), second = _mm256_cmpeq_epi16(load(codes + 16), wanted);
  return byte_mask(_mm256_permute4x64_epi64(_mm256_packs_epi16(first, second), 0xd8));
}

TARGET static void plane_u16(const uint16_t *codes, size_t n, uint16_t level, uint64_t *words)
{
  const __m256i wanted = _mm256_set1_epi16((short) level);
  size_t whole = n - n % 64;
  for (size_t row = 0; row < whole; row += 64)
    words[row / 64] = half_word_u16(codes + row, wanted) | half_word_u16(codes + row + 32, wanted) << 32;
  if (whole < n) words[whole / 64] = weft_plane_word_u16(codes + whole, n - whole, level);
}

/* Whole words without a missing value: the differences from the base are all 0 or 1, and one OR shows it. */
TARGET_INLINE int binary_word_no_na(const int32_t *x, __m256i base, uint64_t *ones)
{
  __m256i any = _mm256_setzero_si256();
  uint64_t word = 0;
  for (int part = 0; part < 64; part += 8) {
    __m256i d = _mm256_sub_epi32(load(x + part), base);
    any = _mm256_or_si256(any, d);
    word |= (uint64_t) (unsigned) _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_slli_epi32(d, 31))) << part;
  }
  *ones = word;
  return _mm256_testz_si256(any, _mm256_set1_epi32(~1));
}

/* 64 rows at a time by vectors where none is missing; a word with missing values, and the last one, go through the
 * portable code. */
TARGET static int scan_pack_binary_i32(const int32_t *x, size_t n, int32_t base, uint64_t *ones, uint64_t *na,
                                       size_t *n_na)
{
  const __m256i from = _mm256_set1_epi32(base);
  size_t missing = 0;
  if (base == WEFT_NA_I32 || base == INT32_MAX) return 0; /* base or base + 1 would be the missing value */
  for (size_t row = 0; row < n; row += 64) {
    size_t rows = n - row < 64 ? n - row : 64;
    uint64_t gaps = 0;
    if (rows < 64 || !binary_word_no_na(x + row, from, &ones[row / 64]))
      if (!weft_binary_word_i32(x + row, rows, base, &ones[row / 64], &gaps)) return 0;
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

/* For each nibble value its number of set bits. */
TARGET_INLINE __m256i nibble_counts(void)
{
  return _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
}

/* Set bits of each 64-bit lane. */
TARGET_INLINE __m256i popcount_lanes(__m256i v)
{
  const __m256i low = _mm256_set1_epi8(15), table = nibble_counts();
  __m256i bytes = _mm256_add_epi8(_mm256_shuffle_epi8(table, _mm256_and_si256(v, low)),
                                  _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(v, 4), low)));
  return _mm256_sad_epu8(bytes, _mm256_setzero_si256());
}

TARGET_INLINE uint64_t sum_lanes(__m256i v)
{
  uint64_t lanes[4];
  store(lanes, v);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

TARGET_INLINE uint64_t popcount_word(uint64_t v) { return (uint64_t) _mm_popcnt_u64(v); }

TARGET static uint64_t popcount(const uint64_t *a, size_t words)
{
  __m256i lanes = _mm256_setzero_si256();
  size_t w = 0;
  for (; w + 4 <= words; w += 4) lanes = _mm256_add_epi64(lanes, popcount_lanes(load(a + w)));
  uint64_t count = sum_lanes(lanes);
  for (; w < words; w++) count += popcount_word(a[w]);
  return count;
}

TARGET static uint64_t popcount_and(const uint64_t *a, const uint64_t *b, size_t words)
{
  __m256i lanes = _mm256_setzero_si256();
  size_t w = 0;
  for (; w + 4 <= words; w += 4)
    lanes = _mm256_add_epi64(lanes, popcount_lanes(_mm256_and_si256(load(a + w), load(b + w))));
  uint64_t count = sum_lanes(lanes);
  for (; w < words; w++) count += popcount_word(a[w] & b[w]);
  return count;
}

TARGET static uint64_t popcount_and3(const uint64_t *a, const uint64_t *b, const uint64_t *c, size_t words)
{
  __m256i lanes = _mm256_setzero_si256();
  size_t w = 0;
  for (; w + 4 <= words; w += 4) {
    __m256i all = _mm256_and_si256(_mm256_and_si256(load(a + w), load(b + w)), load(c + w));
    lanes = _mm256_add_epi64(lanes, popcount_lanes(all));
  }
  uint64_t count = sum_lanes(lanes);
  for (; w < words; w++) count += popcount_word(a[w] & b[w] & c[w]);
  return count;
}

TARGET static void popcount_and_many(const uint64_t *a, const uint64_t *const *b, size_t nb, size_t words,
                                     uint32_t *out)
{
  for (size_t j = 0; j < nb; j++) out[j] = (uint32_t) popcount_and(a, b[j], words);
}

/* ---- the tile ---- */

enum { GROUP = 8, VECTORS = GROUP / 4, ROWS = 2, STRIDE = 2 * GROUP, WORDS = 31 }; /* 31 words of 8 fit a byte */

/* Planes past nb are zero. */
static void arrange(const uint64_t *b, size_t nb, size_t ldb, size_t words, uint64_t *group)
{
  const uint64_t low = 0x0f0f0f0f0f0f0f0fu;
  for (size_t j = 0; j < GROUP; j++)
    for (size_t w = 0; w < words; w++) {
      uint64_t word = j < nb ? b[j * ldb + w] : 0;
      group[w * STRIDE + j] = word & low;
      group[w * STRIDE + GROUP + j] = (word >> 4) & low;
    }
}

/* The bytes of eight lanes summed, as eight 32-bit counts in order, added to what earlier words gave. */
TARGET_INLINE void store_counts(__m256i first, __m256i second, size_t count, int add, uint32_t *out)
{
  const __m256i zero = _mm256_setzero_si256();
  __m256 a = _mm256_castsi256_ps(_mm256_sad_epu8(first, zero)), b = _mm256_castsi256_ps(_mm256_sad_epu8(second, zero));
  __m256i counts = _mm256_permute4x64_epi64(_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88)), 0xd8);
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  __m256i wanted = _mm256_cmpgt_epi32(_mm256_set1_epi32(count < GROUP ? (int) count : GROUP), lane);
  if (add) counts = _mm256_add_epi32(counts, _mm256_maskload_epi32((const int *) out, wanted));
  _mm256_maskstore_epi32((int *) out, wanted, counts);
}

/* `rows` planes of a against one group; `rows` is a constant where it is inlined, so that the accumulators are
 * registers. */
TARGET_INLINE void rows_by_group(const size_t rows, const uint64_t *a, size_t lda, const uint64_t *group, size_t words,
                                 size_t nb, int add, uint32_t *out, size_t ldo)
{
  const __m256i table = nibble_counts();
  __m256i count[ROWS][VECTORS];
#  pragma GCC unroll 2
  for (size_t i = 0; i < ROWS; i++)
#  pragma GCC unroll 2
    for (size_t v = 0; v < VECTORS; v++) count[i][v] = _mm256_setzero_si256();
  for (size_t w = 0; w < words; w++) {
#  pragma GCC unroll 2
    for (size_t i = 0; i < rows; i++) {
      __m256i word = _mm256_set1_epi64x((long long) a[i * lda + w]), shifted = _mm256_srli_epi64(word, 4);
#  pragma GCC unroll 2
      for (size_t v = 0; v < VECTORS; v++) {
        __m256i low = _mm256_and_si256(word, load(group + w * STRIDE + v * 4));
        __m256i high = _mm256_and_si256(shifted, load(group + w * STRIDE + GROUP + v * 4));
        __m256i bits = _mm256_add_epi8(_mm256_shuffle_epi8(table, low), _mm256_shuffle_epi8(table, high));
        count[i][v] = _mm256_add_epi8(count[i][v], bits);
      }
    }
  }
#  pragma GCC unroll 2
  for (size_t i = 0; i < rows; i++) store_counts(count[i][0], count[i][1], nb, add, out + i * ldo);
}

/* Planes of b are rearranged in groups of 8, so that one load serves four of them; each group is counted against all
 * planes of a, 31 words at a time, so that counts of bits fit a byte. */
TARGET static void popcount_tile(const uint64_t *a, size_t na, size_t lda, const uint64_t *b, size_t nb, size_t ldb,
                                 size_t words, uint32_t *out, size_t ldo)
{
  uint64_t group[WORDS * STRIDE] __attribute__((aligned(32)));
  for (size_t j = 0; j < nb; j += GROUP) {
    size_t planes = nb - j < GROUP ? nb - j : GROUP, w = 0;
    do { /* once even for no words, so that the counts are written */
      size_t part = words - w < WORDS ? words - w : WORDS, i = 0;
      arrange(b + j * ldb + w, planes, ldb, part, group);
      for (; i + ROWS <= na; i += ROWS)
        rows_by_group(ROWS, a + i * lda + w, lda, group, part, planes, w > 0, out + i * ldo + j, ldo);
      if (i < na) rows_by_group(1, a + i * lda + w, lda, group, part, planes, w > 0, out + i * ldo + j, ldo);
      w += part;
    } while (w < words);
  }
}

const weft_bits_ops weft_bits_avx2 = WEFT_BITS_TABLE;
#else
typedef int weft_bits_avx2_unused; /* a translation unit may not be empty */
#endif
