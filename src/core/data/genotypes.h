/* Genotypes as PLINK's binary format has them: two bits per sample, four samples per byte, the first in the lowest
 * bits; 00 two copies of the first allele, 10 one, 11 none, 01 missing. A column of them takes (n + 3) / 4 bytes. */
#pragma once

#include <string.h>
#include "core/data/bits.h"

#define WEFT_GENOTYPE_MISSING 3 /* in place of copies */
#define WEFT_GENOTYPE_HEAD 3    /* bytes of a file before the first column */

static inline size_t weft_genotype_bytes(size_t n) { return n / 4 + (n % 4 != 0); }

/* Copies of the first allele of sample i, or WEFT_GENOTYPE_MISSING. */
static inline int weft_genotype_at(const uint8_t *packed, size_t i)
{
  static const uint8_t copies[4] = { 2, WEFT_GENOTYPE_MISSING, 1, 0 };
  return copies[packed[i / 4] >> (2 * (i % 4)) & 3];
}

/* The even bits of x, next to each other. */
static inline uint64_t weft_even_bits(uint64_t x)
{
  x &= UINT64_C(0x5555555555555555);
  x = (x | x >> 1) & UINT64_C(0x3333333333333333);
  x = (x | x >> 2) & UINT64_C(0x0f0f0f0f0f0f0f0f);
  x = (x | x >> 4) & UINT64_C(0x00ff00ff00ff00ff);
  x = (x | x >> 8) & UINT64_C(0x0000ffff0000ffff);
  return (x | x >> 16) & UINT64_C(0x00000000ffffffff);
}

/* Eight bytes, the first lowest. */
static inline uint64_t weft_eight_bytes(const uint8_t *bytes)
{
  uint64_t word = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  memcpy(&word, bytes, 8);
#else
  for (int k = 0; k < 8; k++) word |= (uint64_t) bytes[k] << (8 * k);
#endif
  return word;
}

/* Samples 64 w .. 64 w + 31 and the next 32 as they are; 0 past the column's last byte. */
static inline void weft_genotype_pairs(const uint8_t *packed, size_t n, size_t w, uint64_t pairs[2])
{
  const size_t bytes = weft_genotype_bytes(n) - 16 * w;
  uint8_t sixteen[16] = { 0 };
  const uint8_t *from = packed + 16 * w;
  if (bytes < 16) from = (const uint8_t *) memcpy(sixteen, from, bytes);
  pairs[0] = weft_eight_bytes(from);
  pairs[1] = weft_eight_bytes(from + 8);
}

/* Low and high bits of samples 64 w .. 64 w + 63; bits past the last sample are whatever lies there, or 0. */
static inline void weft_genotype_word(const uint8_t *packed, size_t n, size_t w, uint64_t *low, uint64_t *high)
{
  uint64_t pairs[2];
  weft_genotype_pairs(packed, n, w, pairs);
  *low = weft_even_bits(pairs[0]) | weft_even_bits(pairs[1]) << 32;
  *high = weft_even_bits(pairs[0] >> 1) | weft_even_bits(pairs[1] >> 1) << 32;
}

/* count[c]: samples with c copies, c from 0 to 2; count[3]: missing ones. keep: bits of the samples that count; NULL:
 * all. */
static inline void weft_genotype_counts(const uint8_t *packed, size_t n, const uint64_t *keep, uint64_t count[4])
{
  enum { AT_ONCE = 64 };
  const uint64_t even = UINT64_C(0x5555555555555555);
  const size_t words = weft_plane_words(n);
  uint64_t of[3][2 * AT_ONCE], rows = keep ? weft_popcount(keep, words) : n;
  count[0] = count[1] = count[3] = 0;
  for (size_t first = 0; first < words; first += AT_ONCE) {
    const size_t now = words - first < AT_ONCE ? words - first : AT_ONCE;
    for (size_t k = 0; k < now; k++) {
      const size_t w = first + k, left = n - w * 64;
      uint64_t pairs[2], low[2], high[2];
      if (keep) {
        weft_genotype_word(packed, n, w, &low[0], &high[0]);
        low[0] &= keep[w];
        high[0] &= keep[w];
        low[1] = high[1] = 0;
      } else {
        weft_genotype_pairs(packed, n, w, pairs);
        for (int h = 0; h < 2; h++) {
          const size_t here = left < 32 * (size_t) h ? 0 : left - 32 * (size_t) h;
          const uint64_t there = here < 32 ? (UINT64_C(1) << 2 * here) - 1 : ~UINT64_C(0);
          low[h] = pairs[h] & even & there;
          high[h] = pairs[h] >> 1 & even & there;
        }
      }
      for (int h = 0; h < 2; h++) {
        of[0][2 * k + (size_t) h] = high[h] & low[h];
        of[1][2 * k + (size_t) h] = high[h] & ~low[h];
        of[2][2 * k + (size_t) h] = low[h] & ~high[h];
      }
    }
    count[0] += weft_popcount(of[0], 2 * now);
    count[1] += weft_popcount(of[1], 2 * now);
    count[3] += weft_popcount(of[2], 2 * now);
  }
  count[2] = rows - count[0] - count[1] - count[3];
}
