/* Counting cells by refinement; see count.h. The leaf is the hot loop of every score table: planes of eight cells
 * are intersected with the planes of one more node, a 512-bit AND and a popcount per word, and f is gathered by
 * count. */
/* Build: shared. */
#include <math.h>
#include <string.h>
#include "core/data/bits.h"
#include "core/numbers/math.h"
#include "bn/both/count.h"
#if WEFT_SIMD_X86
#  include <immintrin.h>
#endif

#define LANES 8
/* What the planes of one set of cells may take, and what of that stays in the second-level cache: beyond it a word
 * takes about four times as long, which is still far less than walking the rows. */
#define PLANE_BYTES ((size_t) 2 << 20)
#define NEAR_BYTES ((size_t) 192 << 10)
#define FAR_FACTOR 4
#define TABLE_BYTES ((size_t) 24 << 20)

/* ---- set-up ---- */

weft_status weft_bn_columns_make(weft_arena *mem, const weft_bn_problem *problem, weft_bn_columns *out)
{
  weft_status st = WEFT_OK;
  const size_t n = problem->n, p = problem->p, words = weft_plane_words(n);
  size_t planes = 0;
  uint64_t *at;
  out->n = n;
  out->p = p;
  out->words = words;
  out->completions = problem->completions;
  WEFT_TAKE(out->codes, mem, n * p);
  WEFT_TAKE(out->levels, mem, p);
  WEFT_TAKE0(out->planes, mem, p);
  for (size_t j = 0; j < p; j++) {
    out->levels[j] = (uint32_t) problem->levels[j];
    if (out->levels[j] <= WEFT_BN_PLANE_LEVELS) planes += out->levels[j];
    for (size_t i = 0; i < n; i++) out->codes[j * n + i] = (uint16_t) problem->codes[j * n + i];
  }
  WEFT_TAKE(at, mem, planes * words);
  for (size_t j = 0; j < p; j++) {
    if (out->levels[j] > WEFT_BN_PLANE_LEVELS) continue;
    out->planes[j] = at;
    for (uint32_t l = 0; l < out->levels[j]; l++, at += words)
      weft_bits()->plane_u16(out->codes + j * n, n, (uint16_t) l, at);
  }
  out->plane_cells = words ? PLANE_BYTES / (8 * words) : 0;
  if (out->plane_cells > n / 2) out->plane_cells = n / 2;
  if (!out->plane_cells) out->plane_cells = 1;
done:
  return st;
}

/* Makes one thread's counter in `mem`: as many tables of f as fit TABLE_BYTES, from 8 to 1,024, a power of two. */
weft_status weft_bn_counter_make(weft_arena *mem, const weft_bn_columns *columns, int bits, weft_bn_counter *out)
{
  weft_status st = WEFT_OK;
  int64_t *values;
  uint32_t most = 1;
  for (size_t j = 0; j < columns->p; j++)
    if (columns->levels[j] > most) most = columns->levels[j];
  out->columns = columns;
  out->unit = ldexp(1.0, bits + WEFT_BN_GUARD_BITS);
  out->completions = columns->completions;
  out->slots = 1024;
  while (out->slots > 8 && out->slots * (columns->n + 1) * 8 > TABLE_BYTES) out->slots /= 2;
  WEFT_TAKE0(out->tables, mem, out->slots);
  WEFT_TAKE(values, mem, out->slots * (columns->n + 1));
  WEFT_TAKE0(out->seen, mem, most);
  for (size_t k = 0; k < out->slots; k++) out->tables[k].value = values + k * (columns->n + 1);
done:
  return st;
}

weft_status weft_bn_cells_make(weft_arena *mem, const weft_bn_columns *columns, weft_bn_cells *out)
{
  weft_status st = WEFT_OK;
  const size_t blocks = (columns->plane_cells + LANES - 1) / LANES;
  memset(out, 0, sizeof *out);
  WEFT_TAKE(out->plane, mem, blocks * LANES * columns->words);
  WEFT_TAKE(out->count, mem, columns->n / 2 + LANES + 1);
  WEFT_TAKE(out->row, mem, columns->n);
  WEFT_TAKE(out->begin, mem, columns->n / 2 + 2);
done:
  return st;
}

/* ---- tables of f ---- */

/* f of a number of rows that need not be whole: an expected count. */
static double of_expected(double a, double rows)
{
  return a < 0 ? rows * weft_log(rows) : lgamma(a + rows) - lgamma(a);
}

const int64_t *weft_bn_function(weft_bn_counter *counter, double a, uint32_t most)
{
  const uint64_t bits = weft_bits_of(a), hash = (bits ^ bits >> 32) * UINT64_C(0x9e3779b97f4a7c15);
  weft_bn_ftable *values = &counter->tables[hash >> 48 & (counter->slots - 1)];
  if (values->a != a) { /* an empty slot has a = 0, which no score asks for */
    values->a = a;
    values->filled = 0;
    values->sum = values->lost = 0;
    values->value[0] = 0;
  }
  while (values->filled < most) {
    uint32_t k = values->filled++;
    if (counter->completions > 1) {
      values->value[k + 1] = (int64_t) rint(of_expected(a, (double) (k + 1) / counter->completions) * counter->unit);
      continue;
    }
    if (a < 0) {
      values->value[k + 1] = (int64_t) rint((double) (k + 1) * weft_log((double) (k + 1)) * counter->unit);
      continue;
    }
    double term = weft_log(a + (double) k), sum = values->sum + term; /* Neumaier's sum */
    values->lost += fabs(values->sum) >= fabs(term) ? (values->sum - sum) + term : (term - sum) + values->sum;
    values->sum = sum;
    values->value[k + 1] = (int64_t) rint((sum + values->lost) * counter->unit);
  }
  return values->value;
}

static uint32_t largest(const weft_bn_cells *cells)
{
  uint32_t most = 1;
  for (uint32_t k = 0; k < cells->cells; k++)
    if (cells->count[k] > most) most = cells->count[k];
  return most;
}

int64_t weft_bn_value(weft_bn_counter *counter, const weft_bn_cells *cells, double a)
{
  const int64_t *f = weft_bn_function(counter, a, cells->most);
  int64_t sum = (int64_t) cells->ones * f[1];
  for (uint32_t k = 0; k < cells->cells; k++) sum += f[cells->count[k]];
  return weft_bn_rounded(sum);
}

/* ---- cells ---- */

/* Lane `cell` of the planes: every LANES-th word from here. */
static uint64_t *lane(const weft_bn_columns *columns, const weft_bn_cells *cells, size_t cell)
{
  return cells->plane + (cell / LANES) * columns->words * LANES + cell % LANES;
}

/* Clears the unused lanes of the last block. */
static void finish_planes(const weft_bn_columns *columns, weft_bn_cells *cells)
{
  for (uint32_t k = 0; k < LANES; k++) cells->count[cells->cells + k] = 0;
  for (uint32_t cell = cells->cells; cell % LANES; cell++)
    for (size_t w = 0; w < columns->words; w++) lane(columns, cells, cell)[w * LANES] = 0;
}

static void rows_from_planes(const weft_bn_columns *columns, weft_bn_cells *cells)
{
  uint32_t at = 0;
  for (uint32_t k = 0; k < cells->cells; k++) {
    const uint64_t *plane = lane(columns, cells, k);
    cells->begin[k] = at;
    for (size_t w = 0; w < columns->words; w++)
      for (uint64_t word = plane[w * LANES]; word; word &= word - 1)
        cells->row[at++] = (uint32_t) (64 * w + (size_t) __builtin_ctzll(word));
  }
  cells->begin[cells->cells] = at;
  cells->has_rows = 1;
}

/* Time of intersecting the cells with r - 1 planes against walking the rows, both roughly in nanoseconds. */
static int planes_pay(const weft_bn_columns *columns, const weft_bn_cells *cells, size_t v)
{
  if (!cells->has_planes || !columns->planes[v]) return 0;
  const double blocks = (double) (cells->cells + LANES - 1) / LANES, words = (double) columns->words;
  const double slower = blocks * words * 8 * LANES > NEAR_BYTES ? FAR_FACTOR : 1;
  return slower * blocks * (columns->levels[v] - 1) * (words + 5) < 2.5 * cells->rows + 20;
}

/* Leaves out the rows in which `set` is nonzero; all others are one cell. */
void weft_bn_root(const weft_bn_columns *columns, const int32_t *set, weft_bn_cells *out)
{
  const size_t words = columns->words, past = 64 * words - columns->n;
  uint32_t rows = (uint32_t) columns->n;
  for (size_t w = 0; w < words; w++)
    out->plane[w * LANES] = w + 1 < words || !past ? ~UINT64_C(0) : ~UINT64_C(0) >> past;
  for (size_t i = 0; set && i < columns->n; i++) {
    if (!set[i]) continue;
    out->plane[i / 64 * LANES] &= ~(UINT64_C(1) << (i % 64));
    rows--;
  }
  out->q = 1;
  out->cells = rows > 1;
  out->ones = rows == 1;
  out->rows = rows > 1 ? rows : 0;
  out->count[0] = rows;
  out->has_planes = 1;
  out->has_rows = 0;
  out->most = rows ? rows : 1;
  finish_planes(columns, out);
}

/* Splits each cell by the levels of v with an AND and a popcount per word; cells of one row are only counted. */
static inline __attribute__((always_inline)) void refine_planes(const weft_bn_columns *columns,
                                                                const weft_bn_cells *from, size_t v, weft_bn_cells *out)
{
  const size_t words = columns->words;
  const uint64_t *planes = columns->planes[v];
  for (uint32_t k = 0; k < from->cells; k++) {
    const uint64_t *cell = lane(columns, from, k);
    uint32_t left = from->count[k];
    for (uint32_t l = 0; l < columns->levels[v] && left; l++) {
      uint64_t *made = lane(columns, out, out->cells);
      const uint64_t *level = planes + l * words;
      uint32_t count = 0;
      for (size_t w = 0; w < words; w++) {
        uint64_t both = cell[w * LANES] & level[w];
        made[w * LANES] = both;
        count += (uint32_t) __builtin_popcountll(both);
      }
      left -= count;
      out->ones += count == 1;
      if (count < 2) continue;
      out->rows += count;
      out->count[out->cells++] = count;
    }
  }
  out->has_planes = 1;
  finish_planes(columns, out);
}

static void refine_planes_portable(const weft_bn_columns *columns, const weft_bn_cells *from, size_t v,
                                   weft_bn_cells *out)
{
  refine_planes(columns, from, v, out);
}

#if WEFT_SIMD_X86
__attribute__((target("popcnt"))) static void
refine_planes_popcnt(const weft_bn_columns *columns, const weft_bn_cells *from, size_t v, weft_bn_cells *out)
{
  refine_planes(columns, from, v, out);
}
#endif

#if WEFT_SIMD_X86
WEFT_TARGET_AVX512
/* Eight cells at a time: those with two rows or more move together and then on to the next free lanes of `out`. */
/* As refine_planes(), eight cells at a time: those with two rows or more move together and then on to the next free
 * lanes of `out`. */
static void refine_planes_avx512(const weft_bn_columns *columns, const weft_bn_cells *from, size_t v,
                                 weft_bn_cells *out)
{
  const size_t words = columns->words;
  const __m512i lanes = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), one = _mm512_set1_epi64(1);
  for (uint32_t k = 0; k < from->cells; k += LANES) {
    const uint64_t *block = from->plane + (size_t) k * words;
    __m512i left = _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *) (from->count + k)));
    for (uint32_t l = 0; l < columns->levels[v] && _mm512_test_epi64_mask(left, left); l++) {
      const uint64_t *level = columns->planes[v] + l * words;
      __m512i count = _mm512_setzero_si512();
      for (size_t w = 0; w < words; w++)
        count = _mm512_add_epi64(count, _mm512_popcnt_epi64(_mm512_and_si512(_mm512_loadu_si512(block + w * LANES),
                                                                             _mm512_set1_epi64((long long) level[w]))));
      left = _mm512_sub_epi64(left, count);
      out->ones += (uint32_t) __builtin_popcount(_mm512_cmpeq_epi64_mask(count, one));
      const __mmask8 kept = _mm512_cmpgt_epi64_mask(count, one);
      if (!kept) continue;
      const uint32_t found = (uint32_t) __builtin_popcount(kept), used = out->cells % LANES, end = used + found;
      const __m512i source = _mm512_maskz_compress_epi64(kept, lanes);
      const __m512i turned =
          _mm512_permutexvar_epi64(_mm512_sub_epi64(lanes, _mm512_set1_epi64(used)), source); /* modulo 8 */
      const __mmask8 here = (__mmask8) ((1u << (end < LANES ? end : LANES)) - (1u << used));
      const __mmask8 next = (__mmask8) (end > LANES ? (1u << (end - LANES)) - 1 : 0);
      uint64_t *made = out->plane + (size_t) (out->cells - used) * words;
      for (size_t w = 0; w < words; w++) {
        const __m512i both =
            _mm512_and_si512(_mm512_loadu_si512(block + w * LANES), _mm512_set1_epi64((long long) level[w]));
        const __m512i placed = _mm512_permutexvar_epi64(turned, both);
        _mm512_mask_storeu_epi64(made + w * LANES, here, placed);
        if (next) _mm512_mask_storeu_epi64(made + (words + w) * LANES, next, placed);
      }
      const __m512i counts = _mm512_maskz_compress_epi64(kept, count);
      _mm256_storeu_si256((__m256i *) (out->count + out->cells), _mm512_cvtepi64_epi32(counts));
      out->rows += (uint32_t) _mm512_reduce_add_epi64(counts);
      out->cells += found;
    }
  }
  out->has_planes = 1;
  finish_planes(columns, out);
}
#endif

/* Splits each cell by walking its list of rows: for many levels, or cells so small that planes would be mostly
 * zeros. */
static void refine_rows(weft_bn_counter *counter, const weft_bn_cells *from, size_t v, weft_bn_cells *out)
{
  const uint16_t *codes = counter->columns->codes + v * counter->columns->n;
  uint32_t *seen = counter->seen; /* count by level, then where the level's next row goes */
  for (uint32_t k = 0; k < from->cells; k++) {
    const uint32_t *row = from->row + from->begin[k], size = from->begin[k + 1] - from->begin[k];
    for (uint32_t i = 0; i < size; i++) seen[codes[row[i]]]++;
    for (uint32_t i = 0; i < size; i++) { /* levels in the order in which rows meet them */
      uint32_t *entry = &seen[codes[row[i]]], count = *entry;
      if (count & 0x80000000u) continue;
      if (count < 2) {
        out->ones++;
        *entry = 0xffffffffu;
        continue;
      }
      out->begin[out->cells] = out->rows;
      out->count[out->cells++] = count;
      *entry = 0x80000000u | out->rows;
      out->rows += count;
    }
    for (uint32_t i = 0; i < size; i++) {
      uint32_t *entry = &seen[codes[row[i]]];
      if (*entry != 0xffffffffu) out->row[(*entry)++ & 0x7fffffffu] = row[i];
    }
    for (uint32_t i = 0; i < size; i++) seen[codes[row[i]]] = 0;
  }
  out->begin[out->cells] = out->rows;
  out->has_rows = 1;
}

/* Makes the cells of the set and v in `out`, by planes or by rows, whichever planes_pay() takes for faster. `from`
 * gets lists of rows where these are needed. */
void weft_bn_refine(weft_bn_counter *counter, weft_bn_cells *from, size_t v, weft_bn_cells *out)
{
  const weft_bn_columns *columns = counter->columns;
  out->q = from->q * columns->levels[v];
  out->cells = out->rows = 0;
  out->ones = from->ones;
  out->has_planes = out->has_rows = 0;
  /* one lane more than there are cells is written to */
  if (planes_pay(columns, from, v) && (size_t) from->cells * columns->levels[v] < columns->plane_cells) {
#if WEFT_SIMD_X86
    (weft_simd_level() == WEFT_SIMD_PORTABLE ? refine_planes_portable
     : weft_simd_level() == WEFT_SIMD_AVX512 ? refine_planes_avx512
                                             : refine_planes_popcnt)(columns, from, v, out);
#else
    refine_planes_portable(columns, from, v, out);
#endif
  } else {
    if (!from->has_rows) rows_from_planes(columns, from);
    refine_rows(counter, from, v, out);
  }
  out->most = largest(out);
}

/* ---- the leaf ---- */

typedef int64_t leaf_function(const weft_bn_columns *columns, const weft_bn_cells *from, const uint64_t *planes,
                              uint32_t levels, const int64_t *f, uint32_t *occupied);

/* Σ f over the cells of the set and one more node, from its planes; the last level's counts are what the others
 * leave. Adds the occupied cells to *occupied. */
static inline __attribute__((always_inline)) int64_t leaf_scalar(const weft_bn_columns *columns,
                                                                 const weft_bn_cells *from, const uint64_t *planes,
                                                                 uint32_t levels, const int64_t *f, uint32_t *occupied)
{
  const size_t words = columns->words;
  int64_t sum = 0;
  uint32_t held = 0;
  for (uint32_t k = 0; k < from->cells; k += LANES) {
    const uint64_t *block = from->plane + (size_t) k * words;
    uint32_t rest[LANES];
    memcpy(rest, from->count + k, sizeof rest);
    for (uint32_t l = 0; l + 1 < levels; l++) {
      uint32_t count[LANES] = { 0 };
      for (size_t w = 0; w < words; w++)
        for (int j = 0; j < LANES; j++)
          count[j] += (uint32_t) __builtin_popcountll(block[w * LANES + (size_t) j] & planes[l * words + w]);
      for (int j = 0; j < LANES; j++) {
        sum += f[count[j]];
        held += count[j] != 0;
        rest[j] -= count[j];
      }
    }
    for (int j = 0; j < LANES; j++) {
      sum += f[rest[j]];
      held += rest[j] != 0;
    }
  }
  *occupied += held;
  return sum;
}

static int64_t leaf_portable(const weft_bn_columns *columns, const weft_bn_cells *from, const uint64_t *planes,
                             uint32_t levels, const int64_t *f, uint32_t *occupied)
{
  return leaf_scalar(columns, from, planes, levels, f, occupied);
}

#if WEFT_SIMD_X86
__attribute__((target("popcnt"))) static int64_t leaf_popcnt(const weft_bn_columns *columns, const weft_bn_cells *from,
                                                             const uint64_t *planes, uint32_t levels, const int64_t *f,
                                                             uint32_t *occupied)
{
  return leaf_scalar(columns, from, planes, levels, f, occupied);
}

WEFT_TARGET_AVX512
/* As leaf_scalar(), with eight cells in a register and two levels per pass over the cells. */
static int64_t leaf_avx512(const weft_bn_columns *columns, const weft_bn_cells *from, const uint64_t *planes,
                           uint32_t levels, const int64_t *f, uint32_t *occupied)
{
  const size_t words = columns->words;
  __m512i sum = _mm512_setzero_si512();
  uint32_t held = 0;
  for (uint32_t k = 0; k < from->cells; k += LANES) {
    const uint64_t *block = from->plane + (size_t) k * words;
    __m512i rest = _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *) (from->count + k)));
    uint32_t l = 0;
    for (; l + 2 < levels; l += 2) { /* two levels per pass: one load of the cells serves both */
      const uint64_t *one = planes + l * words, *two = one + words;
      __m512i first = _mm512_setzero_si512(), second = first;
      for (size_t w = 0; w < words; w++) {
        __m512i cells = _mm512_loadu_si512(block + w * LANES);
        first = _mm512_add_epi64(first,
                                 _mm512_popcnt_epi64(_mm512_and_si512(cells, _mm512_set1_epi64((long long) one[w]))));
        second = _mm512_add_epi64(second,
                                  _mm512_popcnt_epi64(_mm512_and_si512(cells, _mm512_set1_epi64((long long) two[w]))));
      }
      rest = _mm512_sub_epi64(rest, _mm512_add_epi64(first, second));
      sum = _mm512_add_epi64(sum, _mm512_i64gather_epi64(first, f, 8));
      sum = _mm512_add_epi64(sum, _mm512_i64gather_epi64(second, f, 8));
      held += (uint32_t) __builtin_popcount(_mm512_test_epi64_mask(first, first));
      held += (uint32_t) __builtin_popcount(_mm512_test_epi64_mask(second, second));
    }
    if (l + 1 < levels) {
      const uint64_t *one = planes + l * words;
      __m512i first = _mm512_setzero_si512(), second = first;
      size_t w = 0;
      for (; w + 1 < words; w += 2) {
        first = _mm512_add_epi64(first, _mm512_popcnt_epi64(_mm512_and_si512(_mm512_loadu_si512(block + w * LANES),
                                                                             _mm512_set1_epi64((long long) one[w]))));
        second =
            _mm512_add_epi64(second, _mm512_popcnt_epi64(_mm512_and_si512(_mm512_loadu_si512(block + (w + 1) * LANES),
                                                                          _mm512_set1_epi64((long long) one[w + 1]))));
      }
      if (w < words)
        first = _mm512_add_epi64(first, _mm512_popcnt_epi64(_mm512_and_si512(_mm512_loadu_si512(block + w * LANES),
                                                                             _mm512_set1_epi64((long long) one[w]))));
      first = _mm512_add_epi64(first, second);
      rest = _mm512_sub_epi64(rest, first);
      sum = _mm512_add_epi64(sum, _mm512_i64gather_epi64(first, f, 8));
      held += (uint32_t) __builtin_popcount(_mm512_test_epi64_mask(first, first));
    }
    sum = _mm512_add_epi64(sum, _mm512_i64gather_epi64(rest, f, 8));
    held += (uint32_t) __builtin_popcount(_mm512_test_epi64_mask(rest, rest));
  }
  *occupied += held;
  return _mm512_reduce_add_epi64(sum);
}
#endif

static leaf_function *leaf_variant(void)
{
#if WEFT_SIMD_X86
  if (weft_simd_level() == WEFT_SIMD_AVX512) return leaf_avx512;
  if (weft_simd_level() == WEFT_SIMD_AVX2) return leaf_popcnt;
#endif
  return leaf_portable;
}

/* As leaf_scalar(), by walking the rows of each cell. */
static int64_t leaf_rows(weft_bn_counter *counter, const weft_bn_cells *from, size_t v, const int64_t *f,
                         uint32_t *occupied)
{
  const uint16_t *codes = counter->columns->codes + v * counter->columns->n;
  uint32_t *seen = counter->seen, held = 0;
  int64_t sum = 0;
  for (uint32_t k = 0; k < from->cells; k++) {
    const uint32_t *row = from->row + from->begin[k], size = from->begin[k + 1] - from->begin[k];
    for (uint32_t i = 0; i < size; i++) seen[codes[row[i]]]++;
    for (uint32_t i = 0; i < size; i++) {
      uint32_t *entry = &seen[codes[row[i]]];
      sum += f[*entry]; /* 0 when the level was met before */
      held += *entry != 0;
      *entry = 0;
    }
  }
  *occupied += held;
  return sum;
}

int64_t weft_bn_leaf(weft_bn_counter *counter, weft_bn_cells *from, size_t v, double a, uint32_t *occupied)
{
  const weft_bn_columns *columns = counter->columns;
  const int64_t *f = weft_bn_function(counter, a, from->most);
  int64_t sum = (int64_t) from->ones * f[1];
  *occupied = from->ones;
  if (planes_pay(columns, from, v)) {
    sum += leaf_variant()(columns, from, columns->planes[v], columns->levels[v], f, occupied);
  } else {
    if (!from->has_rows) rows_from_planes(columns, from);
    sum += leaf_rows(counter, from, v, f, occupied);
  }
  return weft_bn_rounded(sum);
}
