/* Columns to codes, codes to bit planes, and counting: the inner loops of everything that counts categories.
 *
 * A bit plane of a column holds one bit per row, 64 rows per word, row r at bit r % 64 of word r / 64; the tail of the
 * last word is zero. A table of two attributes is then a few popcounts of ANDs of planes. Codes are bytes or 16-bit
 * words from 0; the largest value, 255 or 65535, means missing.
 *
 * Each operation has a portable, an AVX2 and an AVX-512 variant behind one table of function pointers (simd.h chooses).
 * Short calls in a hot loop should take the table once: `const weft_bits_ops *ops = weft_bits();`. Results are exact
 * and the same for every variant. Pointers need the alignment of their type only. Counts are 32 bits wide: at most
 * 2^32 - 1 rows. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include "core/call/simd.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_NA_I32 INT32_MIN
#define WEFT_NA_U8 255
#define WEFT_NA_U16 65535

static inline size_t weft_plane_words(size_t n) { return n / 64 + (n % 64 != 0); }

typedef struct weft_bits_ops {
  /* Least and greatest of the values that are not missing, and how many are missing (NA_integer_, NaN). When every
   * value is missing, the least is greater than the greatest. `all_whole` is 1 when every value is whole and below 2^31
   * in magnitude. */
  void (*scan_i32)(const int32_t *x, size_t n, int32_t *min, int32_t *max, size_t *n_na);
  void (*scan_u8)(const uint8_t *x, size_t n, uint8_t *min, uint8_t *max);
  void (*scan_f64)(const double *x, size_t n, double *min, double *max, size_t *n_na, int *all_whole);

  /* out = x - base, missing as the code's largest value. The caller has scanned: x - base is from 0 to 254 (65534), and
   * doubles are whole and below 2^31 in magnitude. */
  void (*narrow_i32_u8)(const int32_t *x, size_t n, int32_t base, uint8_t *out);
  void (*narrow_i32_u16)(const int32_t *x, size_t n, int32_t base, uint16_t *out);
  void (*narrow_f64_u8)(const double *x, size_t n, int32_t base, uint8_t *out);
  void (*narrow_f64_u16)(const double *x, size_t n, int32_t base, uint16_t *out);

  /* The plane of the rows whose code is `level` (the missing code gives the plane of the missing). */
  void (*plane_u8)(const uint8_t *codes, size_t n, uint8_t level, uint64_t *words);
  void (*plane_u16)(const uint16_t *codes, size_t n, uint16_t level, uint64_t *words);

  /* A two-valued integer column in one pass over memory: the plane of base + 1, the plane of the missing and their
   * number. Returns 1 when every value is base, base + 1 or missing; else 0, and the outputs are undefined. `na` may be
   * NULL: then a missing value returns 0 too. A base is cheaply guessed by scanning the first few hundred rows. */
  int (*scan_pack_binary_i32)(const int32_t *x, size_t n, int32_t base, uint64_t *ones, uint64_t *na, size_t *n_na);

  /* Set bits of a, a & b, a & b & c. */
  uint64_t (*popcount)(const uint64_t *a, size_t words);
  uint64_t (*popcount_and)(const uint64_t *a, const uint64_t *b, size_t words);
  uint64_t (*popcount_and3)(const uint64_t *a, const uint64_t *b, const uint64_t *c, size_t words);
  /* out[j] = set bits of a & b[j], for j < nb. */
  void (*popcount_and_many)(const uint64_t *a, const uint64_t *const *b, size_t nb, size_t words, uint32_t *out);
  /* out[i * ldo + j] = set bits of (plane i of a) & (plane j of b). Plane i of a starts at a + i * lda. Fastest when nb
   * is a multiple of 32, and na * words * 8 bytes fit the second-level cache; na should be 64 or more, because b is
   * rearranged once per call. */
  void (*popcount_tile)(const uint64_t *a, size_t na, size_t lda, const uint64_t *b, size_t nb, size_t ldb,
                        size_t words, uint32_t *out, size_t ldo);
} weft_bits_ops;

extern const weft_bits_ops weft_bits_portable;
#if WEFT_SIMD_X86
extern const weft_bits_ops weft_bits_avx2, weft_bits_avx512;
#endif

/* The table of the level in use. */
const weft_bits_ops *weft_bits(void);

static inline uint64_t weft_popcount(const uint64_t *a, size_t words) { return weft_bits()->popcount(a, words); }

/* counts[code * classes + class] += 1 for every row; the caller has zeroed them. Rows whose code is not below `levels`
 * or whose class is not below `classes` are skipped: with at most 255 (65535) levels, these are the missing. */
void weft_hist_u8(const uint8_t *codes, const uint8_t *class_codes, size_t n, size_t levels, size_t classes,
                  uint32_t *counts);
void weft_hist_u16(const uint16_t *codes, const uint16_t *class_codes, size_t n, size_t levels, size_t classes,
                   uint32_t *counts);

/* The table of a variant, whose functions have the names of the operations. */
#define WEFT_BITS_TABLE \
  { \
    .scan_i32 = scan_i32, .scan_u8 = scan_u8, .scan_f64 = scan_f64, .narrow_i32_u8 = narrow_i32_u8, \
    .narrow_i32_u16 = narrow_i32_u16, .narrow_f64_u8 = narrow_f64_u8, .narrow_f64_u16 = narrow_f64_u16, \
    .plane_u8 = plane_u8, .plane_u16 = plane_u16, .scan_pack_binary_i32 = scan_pack_binary_i32, .popcount = popcount, \
    .popcount_and = popcount_and, .popcount_and3 = popcount_and3, .popcount_and_many = popcount_and_many, \
    .popcount_tile = popcount_tile, \
  }

#ifdef __cplusplus
}
#endif
