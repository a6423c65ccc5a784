/* The choice of the variant, and the histograms, which no vector unit helps.
 *
 * A histogram is bound by store forwarding when neighbouring rows hit one counter; rows go to four tables in turn,
 * added up at the end. Rows to skip go to one extra cell, so that the loop has no branch to mispredict. */
/* Build: shared. */
#include "core/data/bits.h"

#include <string.h>

const weft_bits_ops *weft_bits(void)
{
#if WEFT_SIMD_X86
  switch (weft_simd_level()) {
  case WEFT_SIMD_AVX512: return &weft_bits_avx512;
  case WEFT_SIMD_AVX2: return &weft_bits_avx2;
  default: break;
  }
#endif
  return &weft_bits_portable;
}

/* ---- histograms ---- */

enum { HIST_TABLES = 4, HIST_CELLS = 1024 }; /* 16 KiB of stack: half of a first-level cache */

/* The cell of a row in a table of `cells` cells and one more for the rows to skip; without short-circuits, so that it
 * compiles to a conditional move. */
static inline size_t hist_cell(size_t code, size_t class_code, size_t levels, size_t classes, size_t cells)
{
  size_t cell = code * classes + class_code;
  return ((code >= levels) | (class_code >= classes)) ? cells : cell;
}

/* A large table spreads its hits, so one is enough, and skipping by branch saves the extra cell. */
#define HIST_CELL(r) hist_cell(codes[r], class_codes[r], levels, classes, cells)
#define HIST_BODY \
  size_t cells = levels * classes, r = 0; \
  if (cells >= HIST_CELLS) { \
    for (; r < n; r++) { \
      size_t cell = HIST_CELL(r); \
      if (cell < cells) counts[cell]++; \
    } \
    return; \
  } \
  uint32_t table[HIST_TABLES][HIST_CELLS]; \
  for (size_t t = 0; t < HIST_TABLES; t++) memset(table[t], 0, (cells + 1) * sizeof **table); \
  for (; r + HIST_TABLES <= n; r += HIST_TABLES) { \
    table[0][HIST_CELL(r)]++; \
    table[1][HIST_CELL(r + 1)]++; \
    table[2][HIST_CELL(r + 2)]++; \
    table[3][HIST_CELL(r + 3)]++; \
  } \
  for (; r < n; r++) table[0][HIST_CELL(r)]++; \
  for (size_t cell = 0; cell < cells; cell++) \
    for (size_t t = 0; t < HIST_TABLES; t++) counts[cell] += table[t][cell];

void weft_hist_u8(const uint8_t *codes, const uint8_t *class_codes, size_t n, size_t levels, size_t classes,
                  uint32_t *counts)
{
  HIST_BODY
}

void weft_hist_u16(const uint16_t *codes, const uint16_t *class_codes, size_t n, size_t levels, size_t classes,
                   uint32_t *counts)
{
  HIST_BODY
}
