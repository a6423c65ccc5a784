/* The variant of bits.h for every processor; the other variants leave their last words to it. */
/* Build: shared. */
#include "core/data/bits.h"
#include "core/data/bits_portable.h"

#include <math.h>

/* Without a popcount instruction the compiler's builtin is a library call; these few operations beat it. */
static inline uint64_t popcount_word(uint64_t v)
{
#if defined(__GNUC__) && (defined(__POPCNT__) || !defined(__x86_64__))
  return (uint64_t) __builtin_popcountll(v);
#else
  v -= (v >> 1) & 0x5555555555555555u;
  v = (v & 0x3333333333333333u) + ((v >> 2) & 0x3333333333333333u);
  return (((v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u) >> 56;
#endif
}

/* ---- scans ---- */

static void scan_i32(const int32_t *x, size_t n, int32_t *min, int32_t *max, size_t *n_na)
{
  int32_t least = INT32_MAX, greatest = -INT32_MAX;
  size_t missing = 0;
  for (size_t row = 0; row < n; row++) {
    int32_t v = x[row], is_na = v == WEFT_NA_I32;
    missing += (size_t) is_na;
    if (!is_na && v < least) least = v;
    if (v > greatest) greatest = v; /* a missing value is the least integer */
  }
  *min = least, *max = greatest, *n_na = missing;
}

static void scan_u8(const uint8_t *x, size_t n, uint8_t *min, uint8_t *max)
{
  uint8_t least = UINT8_MAX, greatest = 0;
  for (size_t row = 0; row < n; row++) {
    if (x[row] < least) least = x[row];
    if (x[row] > greatest) greatest = x[row];
  }
  *min = least, *max = greatest;
}

static void scan_f64(const double *x, size_t n, double *min, double *max, size_t *n_na, int *all_whole)
{
  double least = INFINITY, greatest = -INFINITY;
  size_t missing = 0;
  int whole = 1;
  for (size_t row = 0; row < n; row++) {
    double v = x[row];
    missing += v != v;
    if (v < least) least = v;
    if (v > greatest) greatest = v;
    if (v == v) whole = whole && fabs(v) < 2147483648.0 && (double) (int32_t) v == v;
  }
  *min = least + 0.0, *max = greatest + 0.0; /* -0 becomes 0, whichever came first */
  *n_na = missing, *all_whole = whole;
}

/* ---- codes ---- */

/* The difference is taken unsigned: it is wanted modulo 2^32, and for a missing value it is discarded. */
#define CODE_I32(v, base, type, missing) ((v) == WEFT_NA_I32 ? (missing) : (type) ((uint32_t) (v) - (uint32_t) (base)))
#define CODE_F64(v, base, type, missing) \
  ((v) != (v) ? (missing) : (type) ((uint32_t) (int32_t) (v) - (uint32_t) (base)))

static void narrow_i32_u8(const int32_t *x, size_t n, int32_t base, uint8_t *out)
{
  for (size_t row = 0; row < n; row++) out[row] = CODE_I32(x[row], base, uint8_t, WEFT_NA_U8);
}

static void narrow_i32_u16(const int32_t *x, size_t n, int32_t base, uint16_t *out)
{
  for (size_t row = 0; row < n; row++) out[row] = CODE_I32(x[row], base, uint16_t, WEFT_NA_U16);
}

static void narrow_f64_u8(const double *x, size_t n, int32_t base, uint8_t *out)
{
  for (size_t row = 0; row < n; row++) out[row] = CODE_F64(x[row], base, uint8_t, WEFT_NA_U8);
}

static void narrow_f64_u16(const double *x, size_t n, int32_t base, uint16_t *out)
{
  for (size_t row = 0; row < n; row++) out[row] = CODE_F64(x[row], base, uint16_t, WEFT_NA_U16);
}

/* ---- planes ---- */

uint64_t weft_plane_word_u8(const uint8_t *codes, size_t rows, uint8_t level)
{
  uint64_t word = 0;
  for (size_t row = 0; row < rows; row++) word |= (uint64_t) (codes[row] == level) << row;
  return word;
}

uint64_t weft_plane_word_u16(const uint16_t *codes, size_t rows, uint16_t level)
{
  uint64_t word = 0;
  for (size_t row = 0; row < rows; row++) word |= (uint64_t) (codes[row] == level) << row;
  return word;
}

int weft_binary_word_i32(const int32_t *x, size_t rows, int32_t base, uint64_t *ones, uint64_t *na)
{
  uint64_t one = 0, missing = 0, other = 0;
  for (size_t row = 0; row < rows; row++) {
    uint64_t is_na = x[row] == WEFT_NA_I32, above = (uint32_t) x[row] - (uint32_t) base;
    one |= (uint64_t) (above == 1) << row;
    missing |= is_na << row;
    other |= (above > 1) & !is_na;
  }
  *ones = one, *na = missing;
  return !other;
}

static void plane_u8(const uint8_t *codes, size_t n, uint8_t level, uint64_t *words)
{
  for (size_t row = 0; row < n; row += 64)
    words[row / 64] = weft_plane_word_u8(codes + row, n - row < 64 ? n - row : 64, level);
}

static void plane_u16(const uint16_t *codes, size_t n, uint16_t level, uint64_t *words)
{
  for (size_t row = 0; row < n; row += 64)
    words[row / 64] = weft_plane_word_u16(codes + row, n - row < 64 ? n - row : 64, level);
}

/* One word of 64 rows at a time; ends with 0 at the first value that is neither base, base + 1 nor, where `na` is
 * given, missing. */
static int scan_pack_binary_i32(const int32_t *x, size_t n, int32_t base, uint64_t *ones, uint64_t *na, size_t *n_na)
{
  size_t missing = 0;
  if (base == WEFT_NA_I32 || base == INT32_MAX) return 0; /* base or base + 1 would be the missing value */
  for (size_t row = 0; row < n; row += 64) {
    uint64_t gaps;
    if (!weft_binary_word_i32(x + row, n - row < 64 ? n - row : 64, base, &ones[row / 64], &gaps)) return 0;
    if (na)
      na[row / 64] = gaps;
    else if (gaps)
      return 0;
    missing += popcount_word(gaps);
  }
  *n_na = missing;
  return 1;
}

/* ---- counts ---- */

static uint64_t popcount(const uint64_t *a, size_t words)
{
  uint64_t count = 0;
  for (size_t w = 0; w < words; w++) count += popcount_word(a[w]);
  return count;
}

static uint64_t popcount_and(const uint64_t *a, const uint64_t *b, size_t words)
{
  uint64_t count = 0;
  for (size_t w = 0; w < words; w++) count += popcount_word(a[w] & b[w]);
  return count;
}

static uint64_t popcount_and3(const uint64_t *a, const uint64_t *b, const uint64_t *c, size_t words)
{
  uint64_t count = 0;
  for (size_t w = 0; w < words; w++) count += popcount_word(a[w] & b[w] & c[w]);
  return count;
}

static void popcount_and_many(const uint64_t *a, const uint64_t *const *b, size_t nb, size_t words, uint32_t *out)
{
  for (size_t j = 0; j < nb; j++) out[j] = (uint32_t) popcount_and(a, b[j], words);
}

static void popcount_tile(const uint64_t *a, size_t na, size_t lda, const uint64_t *b, size_t nb, size_t ldb,
                          size_t words, uint32_t *out, size_t ldo)
{
  for (size_t i = 0; i < na; i++)
    for (size_t j = 0; j < nb; j++) out[i * ldo + j] = (uint32_t) popcount_and(a + i * lda, b + j * ldb, words);
}

const weft_bits_ops weft_bits_portable = WEFT_BITS_TABLE;
