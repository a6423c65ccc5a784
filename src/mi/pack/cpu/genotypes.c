/* Packing of genotypes; see genotypes.h. */
/* Build: shared. */
#include <string.h>
#include "core/data/genotypes.h"
#include "mi/pack/cpu/genotypes.h"

#if WEFT_SIMD_X86
#  include <immintrin.h>
#endif

/* Columns from which on the sorter is made for byte codes. */
#define WORTH_SORTING 8

/* One instruction in place of a dozen; processors that have AVX-512 execute it quickly. */
static int has_pext(void)
{
#if WEFT_SIMD_X86
  return weft_simd_level() == WEFT_SIMD_AVX512;
#else
  return 0;
#endif
}

/* ---- which rows move where ---- */

/* The steps that push the bits of `rows` together: a bit moves down by as many places as there are zeros below it, one
 * binary digit of that number per step. `below` has the parity of the zeros below each place. */
static void plan_steps(uint64_t rows, uint64_t step[6])
{
  uint64_t left = rows, below = ~rows << 1;
  for (int k = 0; k < 6; k++) {
    uint64_t odd = below;
    for (int shift = 1; shift < 64; shift *= 2) odd ^= odd << shift;
    step[k] = odd & left;
    left = (left ^ step[k]) | step[k] >> (1 << k);
    below &= ~odd;
  }
}

static inline uint64_t push_together(const weft_mi_move *move, uint64_t x)
{
  x &= move->rows;
  for (int k = 0; k < 6; k++) {
    const uint64_t moving = x & move->step[k];
    x = (x ^ moving) | moving >> (1 << k);
  }
  return x;
}

/* Plans for every 64 rows which bits go to which class and where, once for all columns. The sorter stays empty (no
 * classes) where no column would use it or there are too many classes. */
weft_status weft_mi_sorter_make(weft_arena *mem, const weft_mi_pack *pack, const weft_column *columns, size_t p,
                                const uint16_t *classes, weft_mi_sorter *out)
{
  weft_status st = WEFT_OK;
  size_t at[WEFT_MI_SORTED_CLASSES] = { 0 };
  int any = 0;
  memset(out, 0, sizeof *out);
  any = p >= WORTH_SORTING;
  for (size_t j = 0; j < p && !any; j++) any = columns[j].type == WEFT_COLUMN_GENOTYPE;
  if (!any || !pack->classes || pack->classes > WEFT_MI_SORTED_CLASSES) goto done;
  out->n = pack->rows_in;
  out->words = weft_plane_words(out->n);
  out->classes = pack->classes;
  WEFT_TAKE0(out->counting, mem, out->words);
  WEFT_TAKE0(out->moves, mem, out->words * out->classes);
  for (size_t i = 0; i < out->n; i++) {
    if (classes[i] == WEFT_NA_U16) continue;
    out->counting[i / 64] |= UINT64_C(1) << i % 64;
    out->moves[i / 64 * out->classes + classes[i]].rows |= UINT64_C(1) << i % 64;
  }
  out->some = pack->n < out->n;
  for (size_t w = 0; w < out->words; w++)
    for (uint32_t c = 0; c < out->classes; c++) {
      weft_mi_move *move = &out->moves[w * out->classes + c];
      if (!has_pext()) plan_steps(move->rows, move->step);
      move->count = (uint32_t) __builtin_popcountll(move->rows);
      move->at = at[c];
      at[c] += move->count;
    }
done:
  return st;
}

/* ---- columns ---- */

uint32_t weft_mi_genotypes_learn(const weft_mi_sorter *sorter, const uint8_t *packed, int na_level, int *missing,
                                 size_t *all_missing)
{
  uint64_t count[4], all[4];
  uint32_t levels = 0;
  weft_genotype_counts(packed, sorter->n, NULL, all);
  memcpy(count, all, sizeof count);
  if (sorter->some) weft_genotype_counts(packed, sorter->n, sorter->counting, count);
  for (int k = 0; k < WEFT_GENOTYPE_MISSING; k++) levels += count[k] > 0;
  *all_missing = (size_t) all[WEFT_GENOTYPE_MISSING];
  *missing = !na_level && count[WEFT_GENOTYPE_MISSING];
  return levels + (na_level && count[WEFT_GENOTYPE_MISSING]);
}

/* Adds a run of a class's bits behind those before it. */
static inline void append(const weft_mi_move *move, size_t first_word, uint64_t low, uint64_t high, uint64_t *lows,
                          uint64_t *highs)
{
  const size_t word = first_word + move->at / 64;
  const uint32_t shift = (uint32_t) (move->at % 64);
  lows[word] |= low << shift;
  highs[word] |= high << shift;
  if (shift + move->count > 64) {
    lows[word + 1] |= low >> (64 - shift);
    highs[word + 1] |= high >> (64 - shift);
  }
}

/* Low and high bits of the rows that count, sorted by class; both zeroed before. */
static void sort_portable(const weft_mi_sorter *sorter, const weft_mi_pack *pack, const uint8_t *packed, uint64_t *lows,
                          uint64_t *highs)
{
  for (size_t w = 0; w < sorter->words; w++) {
    uint64_t low, high;
    weft_genotype_word(packed, sorter->n, w, &low, &high);
    for (uint32_t c = 0; c < sorter->classes; c++) {
      const weft_mi_move *move = &sorter->moves[w * sorter->classes + c];
      if (move->count)
        append(move, pack->class_word[c], push_together(move, low), push_together(move, high), lows, highs);
    }
  }
}

#if WEFT_SIMD_X86
/* The same with PEXT, which pushes the bits of a class together in one instruction. */
__attribute__((target("bmi2"))) static void sort_pext(const weft_mi_sorter *sorter, const weft_mi_pack *pack,
                                                      const uint8_t *packed, uint64_t *lows, uint64_t *highs)
{
  const uint64_t even = UINT64_C(0x5555555555555555);
  for (size_t w = 0; w < sorter->words; w++) {
    uint64_t pairs[2];
    weft_genotype_pairs(packed, sorter->n, w, pairs);
    const uint64_t low = _pext_u64(pairs[0], even) | _pext_u64(pairs[1], even) << 32,
                   high = _pext_u64(pairs[0], ~even) | _pext_u64(pairs[1], ~even) << 32;
    for (uint32_t c = 0; c < sorter->classes; c++) {
      const weft_mi_move *move = &sorter->moves[w * sorter->classes + c];
      if (move->count)
        append(move, pack->class_word[c], _pext_u64(low, move->rows), _pext_u64(high, move->rows), lows, highs);
    }
  }
}
#endif

static void sort_halves(const weft_mi_sorter *sorter, const weft_mi_pack *pack, const uint8_t *packed, uint64_t *lows,
                        uint64_t *highs)
{
  memset(lows, 0, pack->words * sizeof *lows);
  memset(highs, 0, pack->words * sizeof *highs);
#if WEFT_SIMD_X86
  if (has_pext()) {
    sort_pext(sorter, pack, packed, lows, highs);
    return;
  }
#endif
  sort_portable(sorter, pack, packed, lows, highs);
}

/* ---- byte codes ---- */

#if WEFT_SIMD_X86
__attribute__((target("bmi2"))) static void sort_bits_pext(const weft_mi_sorter *sorter, const weft_mi_pack *pack,
                                                           const uint64_t *low, const uint64_t *high, uint64_t *lows,
                                                           uint64_t *highs)
{
  for (size_t w = 0; w < sorter->words; w++)
    for (uint32_t c = 0; c < sorter->classes; c++) {
      const weft_mi_move *move = &sorter->moves[w * sorter->classes + c];
      if (move->count)
        append(move, pack->class_word[c], _pext_u64(low[w], move->rows), _pext_u64(high[w], move->rows), lows, highs);
    }
}
#endif

/* Sorts the two bits of every genotype into classes: `low` and `high` have the input's order, `lows` and `highs` the
 * pack's, with classes padded to whole words. */
void weft_mi_sort_bits(const weft_mi_sorter *sorter, const weft_mi_pack *pack, const uint64_t *low,
                       const uint64_t *high, uint64_t *lows, uint64_t *highs)
{
  memset(lows, 0, pack->words * sizeof *lows);
  memset(highs, 0, pack->words * sizeof *highs);
#if WEFT_SIMD_X86
  if (has_pext()) {
    sort_bits_pext(sorter, pack, low, high, lows, highs);
    return;
  }
#endif
  for (size_t w = 0; w < sorter->words; w++)
    for (uint32_t c = 0; c < sorter->classes; c++) {
      const weft_mi_move *move = &sorter->moves[w * sorter->classes + c];
      if (move->count)
        append(move, pack->class_word[c], push_together(move, low[w]), push_together(move, high[w]), lows, highs);
    }
}

/* Rows with so many copies, or missing, in a word of sorted halves. */
static inline uint64_t rows_with(int copies, uint64_t low, uint64_t high)
{
  switch (copies) {
  case 0: return high & low;
  case 1: return high & ~low;
  case 2: return ~(high | low);
  default: return ~high & low;
  }
}

/* Writes the planes and margins of one attribute from its two-bit codes: one plane for each value that occurs, but for
 * the last level of an attribute without missing values. `halves` is room for two rows. */
void weft_mi_genotypes_write(const weft_mi_sorter *sorter, const weft_mi_pack *pack, const uint8_t *packed,
                             int na_level, const weft_mi_group *group, size_t place, uint64_t *halves)
{
  const uint64_t *low = halves, *high = halves + pack->words;
  uint32_t q = 0;
  sort_halves(sorter, pack, packed, halves, halves + pack->words);
  for (int value = 0; value < 4 && q < group->shape.planes; value++) { /* levels that occur, missing as the last */
    const size_t row = weft_mi_plane_row(group, place, q);
    uint64_t *plane = pack->bits + row * pack->words, all = 0;
    if (value == WEFT_GENOTYPE_MISSING && !na_level) break;
    for (size_t w = 0; w < pack->words; w++) plane[w] = rows_with(value, low[w], high[w]);
    for (uint32_t c = 0; c < pack->classes; c++) {
      const size_t first = pack->class_word[c], end = pack->class_word[c + 1];
      if (pack->class_rows[c] % 64) plane[end - 1] &= (UINT64_C(1) << pack->class_rows[c] % 64) - 1;
      const uint64_t rows = weft_popcount(plane + first, end - first);
      pack->margins[c * pack->plane_rows + row] = (uint32_t) rows;
      all += rows;
    }
    q += all > 0;
  }
}
