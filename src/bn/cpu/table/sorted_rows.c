/* Counting in sorted rows; see sorted_rows.h. */
/* Build: shared. */
#include <string.h>
#include "core/data/bits.h"
#include "bn/cpu/table/sorted_rows.h"
#if WEFT_SIMD_X86
#  include <immintrin.h>
#endif

#define LANES WEFT_BN_LANES
/* Cells hold 16 rows on average, or more: with fewer, most bits of their words are empty. */
#define MIN_ROWS 16
#define STEPS 6 /* of moving the bits of a word together */

#define INLINE static inline __attribute__((always_inline))

static size_t lane_of(const weft_bn_layout *layout, size_t label)
{
  return label - layout->group[layout->group_of[label]].first;
}

/* ---- set-up ---- */

weft_status weft_bn_layout_make(weft_arena *mem, const weft_bn_columns *columns, weft_bn_layout *out)
{
  weft_status st = WEFT_OK;
  const size_t p = columns->p;
  size_t most = 0, label = 0;
  *out = (weft_bn_layout){ .p = p };
  WEFT_TAKE(out->node, mem, p);
  WEFT_TAKE(out->group_of, mem, p);
  WEFT_TAKE(out->group, mem, p);
  for (size_t j = 0; j < p; j++)
    if (columns->levels[j] > most) most = columns->levels[j];
  for (size_t levels = 0; levels <= most; levels++)
    for (size_t j = 0, fresh = 1; j < p; j++) {
      if (columns->levels[j] != levels) continue;
      out->node[label] = j;
      if (levels <= WEFT_BN_PLANE_LEVELS && columns->n > 1) {
        weft_bn_group *group = out->groups ? &out->group[out->groups - 1] : NULL;
        if (fresh || group->count == LANES) {
          group = &out->group[out->groups++];
          *group = (weft_bn_group){ label, 0, levels, out->columns };
          out->columns += levels - 1;
          out->max_levels = levels;
        }
        fresh = 0;
        group->count++;
        out->group_of[label] = out->groups - 1;
        out->plain = label + 1;
      }
      label++;
    }
done:
  return st;
}

static size_t max_cells(const weft_bn_columns *columns) { return columns->n / MIN_ROWS + 1; }

/* Room for at most n / MIN_ROWS + 1 cells: sets with more are counted without sorting (weft_bn_sort_more() says so). */
weft_status weft_bn_sorted_make(weft_arena *mem, const weft_bn_columns *columns, const weft_bn_layout *layout,
                                size_t members, weft_bn_sorted *out)
{
  weft_status st = WEFT_OK;
  size_t cells = 1;
  for (size_t k = 0; k < members && cells < max_cells(columns); k++) cells *= layout->max_levels;
  if (cells > max_cells(columns)) cells = max_cells(columns);
  memset(out, 0, sizeof *out);
  out->max_cells = (uint32_t) cells;
  WEFT_TAKE(out->count, mem, cells);
  WEFT_TAKE(out->begin, mem, cells + 1);
  WEFT_TAKE(out->plane, mem, layout->columns * (columns->words + cells) * LANES);
  WEFT_TAKE(out->seen, mem, cells * layout->columns * LANES);
done:
  return st;
}

weft_status weft_bn_sorter_make(weft_arena *mem, const weft_bn_columns *columns, weft_bn_sorter *out)
{
  weft_status st = WEFT_OK;
  const size_t words = columns->words + max_cells(columns) + LANES;
  WEFT_TAKE(out->rows, mem, WEFT_BN_PLANE_LEVELS * words);
  WEFT_TAKE(out->move, mem, STEPS * words);
done:
  return st;
}

/* ---- counts of each level ---- */

INLINE void count_seen(const weft_bn_layout *layout, const weft_bn_sorted *sorted, size_t columns)
{
  for (size_t cell = 0; cell < sorted->cells; cell++)
    for (size_t column = 0; column < columns; column++) {
      uint64_t count[LANES] = { 0 };
      for (size_t w = sorted->begin[cell]; w < sorted->begin[cell + 1]; w++)
        for (int j = 0; j < LANES; j++)
          count[j] += (uint64_t) __builtin_popcountll(sorted->plane[(column * sorted->words + w) * LANES + (size_t) j]);
      memcpy(sorted->seen + (cell * layout->columns + column) * LANES, count, sizeof count);
    }
}

/* ---- adding a node ---- */

/* Eight lanes side by side; the compiler divides them where registers are shorter. */
typedef uint64_t eight __attribute__((vector_size(64), may_alias));

/* What each of six steps moves by 1, 2, 4 .. 32 so that the bits of a mask end side by side (Hacker's Delight, 7-4):
 * eight words from `mask` at a time, step i of a word `stride` words after that before. */
INLINE void plan_move(const eight *mask, eight *move, size_t count, size_t stride)
{
  for (size_t w = 0; w < count; w++) {
    eight left = mask[w], zeros = ~left << 1;
    for (int i = 0; i < STEPS; i++) {
      eight odd = zeros ^ zeros << 1; /* bits with an odd number of zeros below */
      for (int shift = 2; shift < 64; shift *= 2) odd ^= odd << shift;
      const eight moved = odd & left;
      move[(size_t) i * stride + w] = moved;
      left = (left ^ moved) | moved >> (1 << i);
      zeros &= ~odd;
    }
  }
}

/* Words `from` .. `to` - 1 of a column, of which `rows` has the bits that stay, to `out`. */
INLINE void move_together(const eight *plane, const uint64_t *rows, const uint64_t *move, size_t stride, size_t from,
                          size_t to, eight *out)
{
  eight made = { 0 };
  unsigned filled = 0;
  for (size_t w = from; w < to; w++) {
    if (!rows[w]) continue;
    eight x = plane[w] & rows[w];
    for (int i = 0; i < STEPS; i++) {
      const eight moved = x & move[(size_t) i * stride + w];
      x = (x ^ moved) | moved >> (1 << i);
    }
    const unsigned count = (unsigned) __builtin_popcountll(rows[w]);
    made |= x << filled;
    if ((filled += count) < 64) continue;
    *out++ = made;
    filled -= 64;
    made = x >> (count - filled) / 2 >> (count - filled + 1) / 2; /* 64 bits, when none are left */
  }
  if (filled) *out = made;
}

/* How many rows of a cell have level l of a node. */
static uint32_t seen_of(const weft_bn_layout *layout, const weft_bn_sorted *sorted, size_t cell, size_t label,
                        size_t level)
{
  const weft_bn_group *group = &layout->group[layout->group_of[label]];
  const uint64_t *seen = sorted->seen + (cell * layout->columns + group->column) * LANES + lane_of(layout, label);
  uint64_t left = sorted->count[cell];
  if (level + 1 < group->levels) return (uint32_t) seen[level * LANES];
  for (size_t k = 0; k + 1 < group->levels; k++) left -= seen[k * LANES];
  return (uint32_t) left;
}

/* The first level's plane, of which every eighth word is the node's. */
static const uint64_t *plane_of(const weft_bn_layout *layout, const weft_bn_sorted *sorted, size_t label)
{
  const weft_bn_group *group = &layout->group[layout->group_of[label]];
  return sorted->plane + group->column * sorted->words * LANES + lane_of(layout, label);
}

/* The rows of each level of a node, by words of the sorted rows. */
static void take_rows(const weft_bn_layout *layout, const weft_bn_sorted *sorted, size_t label, size_t stride,
                      uint64_t *rows)
{
  const size_t levels = layout->group[layout->group_of[label]].levels;
  const uint64_t *plane = plane_of(layout, sorted, label);
  uint64_t *last = rows + (levels - 1) * stride;
  for (size_t cell = 0; cell < sorted->cells; cell++)
    for (size_t w = sorted->begin[cell], left = sorted->count[cell]; w < sorted->begin[cell + 1]; w++, left -= 64)
      last[w] = left < 64 ? (UINT64_C(1) << left) - 1 : ~UINT64_C(0);
  for (size_t level = 0; level + 1 < levels; level++)
    for (size_t w = 0; w < sorted->words; w++)
      last[w] &= ~(rows[level * stride + w] = plane[(level * sorted->words + w) * LANES]);
}

/* The columns that nodes below `label` have. */
static size_t columns_below(const weft_bn_layout *layout, size_t label)
{
  if (!label) return 0;
  const weft_bn_group *group = &layout->group[layout->group_of[label - 1]];
  return group->column + group->levels - 1;
}

/* Moves the bits of every column below `label` to where the cells of `from` split by that node's levels are in
 * `out`, whose cells are laid out already, and counts them. */
INLINE void split(const weft_bn_layout *layout, weft_bn_sorter *sorter, const weft_bn_sorted *from, size_t label,
                  weft_bn_sorted *out)
{
  const size_t levels = layout->group[layout->group_of[label]].levels, columns = columns_below(layout, label);
  const size_t blocks = (from->words + LANES - 1) / LANES, stride = blocks * LANES;
  size_t made = 0;
  take_rows(layout, from, label, stride, sorter->rows);
  for (size_t level = 0; level < levels; level++) {
    const uint64_t *rows = sorter->rows + level * stride;
    plan_move((const eight *) rows, (eight *) sorter->move, blocks, blocks);
    for (size_t cell = 0; cell < from->cells; cell++) {
      if (seen_of(layout, from, cell, label, level) < 2) continue;
      for (size_t column = 0; column < columns; column++)
        move_together((const eight *) from->plane + column * from->words, rows, sorter->move, stride, from->begin[cell],
                      from->begin[cell + 1], (eight *) out->plane + column * out->words + out->begin[made]);
      made++;
    }
  }
  count_seen(layout, out, columns);
}

typedef void split_function(const weft_bn_layout *layout, weft_bn_sorter *sorter, const weft_bn_sorted *from,
                            size_t label, weft_bn_sorted *out);
#define SPLIT(name) \
  static void name(const weft_bn_layout *layout, weft_bn_sorter *sorter, const weft_bn_sorted *from, size_t label, \
                   weft_bn_sorted *out) \
  { \
    split(layout, sorter, from, label, out); \
  }
SPLIT(split_portable)
#if WEFT_SIMD_X86
WEFT_TARGET_AVX2 SPLIT(split_avx2)
WEFT_TARGET_AVX512 SPLIT(split_avx512)
#endif

static split_function *split_variant(void)
{
#if WEFT_SIMD_X86
  if (weft_simd_level() == WEFT_SIMD_AVX512) return split_avx512;
  if (weft_simd_level() == WEFT_SIMD_AVX2) return split_avx2;
#endif
  return split_portable;
}

/* Lays out the cells of two rows or more of the set and `label` in `out`, then moves the bits there. */
int weft_bn_sort_more(const weft_bn_layout *layout, weft_bn_sorter *sorter, const weft_bn_sorted *from, size_t label,
                      weft_bn_sorted *out)
{
  const size_t levels = layout->group[layout->group_of[label]].levels;
  out->q = from->q * (double) levels;
  out->cells = out->rows = 0;
  out->ones = from->ones;
  out->most = 1;
  out->words = 0;
  for (size_t level = 0; level < levels; level++)
    for (size_t cell = 0; cell < from->cells; cell++) {
      const uint32_t count = seen_of(layout, from, cell, label, level);
      out->ones += count == 1;
      if (count < 2) continue;
      if (out->cells == out->max_cells) return 0;
      out->begin[out->cells] = out->words;
      out->count[out->cells++] = count;
      out->rows += count;
      out->words += weft_plane_words(count);
      if (count > out->most) out->most = count;
    }
  out->begin[out->cells] = out->words;
  split_variant()(layout, sorter, from, label, out);
  return 1;
}

/* Copies the planes of all nodes that have groups side by side, in one cell. */
void weft_bn_sort_none(const weft_bn_columns *columns, const weft_bn_layout *layout, weft_bn_sorted *out)
{
  const size_t words = columns->words;
  out->q = 1;
  out->cells = columns->n > 1;
  out->ones = columns->n == 1;
  out->rows = columns->n > 1 ? (uint32_t) columns->n : 0;
  out->most = columns->n ? (uint32_t) columns->n : 1;
  out->words = words;
  out->count[0] = (uint32_t) columns->n;
  out->begin[0] = 0;
  if (out->cells) out->begin[1] = words;
  memset(out->plane, 0, layout->columns * words * LANES * sizeof *out->plane);
  for (size_t label = 0; label < layout->plain; label++) {
    const weft_bn_group *group = &layout->group[layout->group_of[label]];
    const uint64_t *planes = columns->planes[layout->node[label]];
    uint64_t *plane = out->plane + group->column * words * LANES + lane_of(layout, label);
    for (size_t k = 0; k < (group->levels - 1) * words; k++) plane[k * LANES] = planes[k];
  }
  count_seen(layout, out, layout->columns);
}

/* ---- sums ---- */

/* Nanoseconds, roughly: a popcount of eight lanes, a look-up of eight values, a row. */
int weft_bn_sort_pays(const weft_bn_layout *layout, const weft_bn_sorted *sorted, size_t label, size_t group)
{
  const weft_bn_group *g = &layout->group[group];
  const double mine = (double) layout->group[layout->group_of[label]].levels, theirs = (double) g->levels;
  return (double) sorted->words * (mine - 1) * (theirs - 1) * 0.6 + sorted->cells * mine * theirs * 3 <
         2.5 * sorted->rows * (double) g->count;
}

typedef void sum_function(const weft_bn_layout *layout, const weft_bn_sorted *sorted, const weft_bn_group *group,
                          const uint64_t *mine, size_t label, const int64_t *f, int64_t *out);

/* Without a node `label` (`mine` NULL): the sums over one node. */
static void sum_portable(const weft_bn_layout *layout, const weft_bn_sorted *sorted, const weft_bn_group *group,
                         const uint64_t *mine, size_t label, const int64_t *f, int64_t *out)
{
  const size_t levels = mine ? layout->group[layout->group_of[label]].levels : 1, words = sorted->words;
  const uint64_t *plane = sorted->plane + group->column * words * LANES;
  for (size_t cell = 0; cell < sorted->cells; cell++) {
    uint64_t rest[WEFT_BN_PLANE_LEVELS][LANES];
    uint32_t left = sorted->count[cell];
    memcpy(rest, sorted->seen + (cell * layout->columns + group->column) * LANES, (group->levels - 1) * sizeof rest[0]);
    for (size_t k = 0; k < levels; k++) {
      const uint32_t rows = k + 1 < levels ? seen_of(layout, sorted, cell, label, k) : left;
      uint64_t last[LANES];
      left -= rows;
      if (!rows) continue;
      for (int j = 0; j < LANES; j++) last[j] = rows;
      for (size_t level = 0; level + 1 < group->levels; level++) {
        uint64_t count[LANES] = { 0 };
        if (k + 1 < levels) {
          for (size_t w = sorted->begin[cell]; w < sorted->begin[cell + 1]; w++)
            for (int j = 0; j < LANES; j++)
              count[j] += (uint64_t) __builtin_popcountll(plane[(level * words + w) * LANES + (size_t) j] &
                                                          mine[(k * words + w) * LANES]);
          for (int j = 0; j < LANES; j++) rest[level][j] -= count[j];
        } else {
          memcpy(count, rest[level], sizeof count);
        }
        for (int j = 0; j < LANES; j++) {
          out[j] += f[count[j]];
          last[j] -= count[j];
        }
      }
      for (int j = 0; j < LANES; j++) out[j] += f[last[j]];
    }
  }
}

#if WEFT_SIMD_X86
/* sum_portable() with AVX-512: a lane for each of a group's eight nodes, whose levels, `theirs`, are a constant to
 * the compiler. */
WEFT_TARGET_AVX512 INLINE void sum_lanes(const weft_bn_layout *layout, const weft_bn_sorted *sorted,
                                         const weft_bn_group *group, const uint64_t *mine, size_t label,
                                         const int64_t *f, int64_t *out, const size_t theirs)
{
  const size_t levels = mine ? layout->group[layout->group_of[label]].levels : 1, words = sorted->words;
  const uint64_t *plane = sorted->plane + group->column * words * LANES;
  __m512i sum = _mm512_setzero_si512();
  for (size_t cell = 0; cell < sorted->cells; cell++) {
    const uint64_t *seen = sorted->seen + (cell * layout->columns + group->column) * LANES;
    const size_t from = sorted->begin[cell], to = sorted->begin[cell + 1];
    __m512i rest[WEFT_BN_PLANE_LEVELS];
    uint32_t left = sorted->count[cell];
    for (size_t level = 0; level + 1 < theirs; level++) rest[level] = _mm512_loadu_si512(seen + level * LANES);
    for (size_t k = 0; k < levels; k++) {
      const uint32_t rows = k + 1 < levels ? seen_of(layout, sorted, cell, label, k) : left;
      left -= rows;
      if (!rows) continue;
      __m512i last = _mm512_set1_epi64(rows);
      for (size_t level = 0; level + 1 < theirs; level++) {
        __m512i count;
        if (k + 1 < levels) {
          count = _mm512_setzero_si512();
          for (size_t w = from; w < to; w++)
            count =
                _mm512_add_epi64(count,
                                 _mm512_popcnt_epi64(
                                     _mm512_and_si512(_mm512_loadu_si512(plane + (level * words + w) * LANES),
                                                      _mm512_set1_epi64((long long) mine[(k * words + w) * LANES]))));
          rest[level] = _mm512_sub_epi64(rest[level], count);
        } else {
          count = rest[level];
        }
        sum = _mm512_add_epi64(sum, _mm512_i64gather_epi64(count, f, 8));
        last = _mm512_sub_epi64(last, count);
      }
      sum = _mm512_add_epi64(sum, _mm512_i64gather_epi64(last, f, 8));
    }
  }
  _mm512_storeu_si512(out, _mm512_add_epi64(_mm512_loadu_si512(out), sum));
}

WEFT_TARGET_AVX512
static void sum_avx512(const weft_bn_layout *layout, const weft_bn_sorted *sorted, const weft_bn_group *group,
                       const uint64_t *mine, size_t label, const int64_t *f, int64_t *out)
{
  switch (group->levels) {
  case 2: sum_lanes(layout, sorted, group, mine, label, f, out, 2); break;
  case 3: sum_lanes(layout, sorted, group, mine, label, f, out, 3); break;
  case 4: sum_lanes(layout, sorted, group, mine, label, f, out, 4); break;
  default: sum_lanes(layout, sorted, group, mine, label, f, out, group->levels);
  }
}
#endif

static void sum_lanes_of(const weft_bn_layout *layout, const weft_bn_sorted *sorted, size_t group, const uint64_t *mine,
                         size_t label, const int64_t *f, int64_t *out)
{
  sum_function *sum = sum_portable;
#if WEFT_SIMD_X86
  if (weft_simd_level() == WEFT_SIMD_AVX512) sum = sum_avx512;
#endif
  for (int j = 0; j < LANES; j++) out[j] = (int64_t) sorted->ones * f[1];
  sum(layout, sorted, &layout->group[group], mine, label, f, out);
}

void weft_bn_sum_one(const weft_bn_layout *layout, const weft_bn_sorted *sorted, size_t group, const int64_t *f,
                     int64_t *out)
{
  sum_lanes_of(layout, sorted, group, NULL, 0, f, out);
}

void weft_bn_sum_two(const weft_bn_layout *layout, const weft_bn_sorted *sorted, size_t label, size_t group,
                     const int64_t *f, int64_t *out)
{
  sum_lanes_of(layout, sorted, group, plane_of(layout, sorted, label), label, f, out);
}
