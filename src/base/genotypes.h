/* Genotypes as PLINK's binary format has them: two bits a sample, four samples a byte, the first in the lowest bits; 00
 * two copies of the first allele, 10 one, 11 none, 01 missing. A column of them takes (n + 3) / 4 bytes. */
#ifndef WEFT_GENOTYPES_H
#define WEFT_GENOTYPES_H

#include <string.h>
#include "bits.h"

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

/* Low and high bits of samples 64 w .. 64 w + 63; bits past the last sample are whatever lies there, or 0. */
static inline void weft_genotype_word(const uint8_t *packed, size_t n, size_t w, uint64_t *low, uint64_t *high)
{
  const size_t bytes = weft_genotype_bytes(n) - 16 * w;
  uint8_t sixteen[16] = { 0 };
  uint64_t half[2] = { 0, 0 };
  memcpy(sixteen, packed + 16 * w, bytes < 16 ? bytes : 16);
  for (int k = 0; k < 16; k++) half[k / 8] |= (uint64_t) sixteen[k] << (8 * (k % 8));
  *low = weft_even_bits(half[0]) | weft_even_bits(half[1]) << 32;
  *high = weft_even_bits(half[0] >> 1) | weft_even_bits(half[1] >> 1) << 32;
}

/* count[0 .. 2]: samples with so many copies; count[3]: missing. keep: a bit a sample that counts, or NULL for all. */
static inline void weft_genotype_counts(const uint8_t *packed, size_t n, const uint64_t *keep, uint64_t count[4])
{
  enum { AT_ONCE = 64 };
  const size_t words = weft_plane_words(n);
  uint64_t of[4][AT_ONCE];
  count[0] = count[1] = count[2] = count[3] = 0;
  for (size_t first = 0; first < words; first += AT_ONCE) {
    const size_t now = words - first < AT_ONCE ? words - first : AT_ONCE;
    for (size_t k = 0; k < now; k++) {
      const size_t w = first + k;
      const uint64_t there = n - w * 64 < 64 ? (UINT64_C(1) << n % 64) - 1 : ~UINT64_C(0), rows = keep ? keep[w] : there;
      uint64_t low, high;
      weft_genotype_word(packed, n, w, &low, &high);
      of[0][k] = high & low & rows;
      of[1][k] = high & ~low & rows;
      of[2][k] = ~(high | low) & rows;
      of[3][k] = ~high & low & rows;
    }
    for (int g = 0; g < 4; g++) count[g] += weft_popcount(of[g], now);
  }
}

#endif
