/* Scores of contingency tables in fixed point, written once for C and CUDA.
 *
 * f(k) = k log2 k is kept as a whole number of units of 2^-shift. The counts of a table add up to n and f is convex
 * with f(0) = 0, so no sum of f over a table exceeds f(n), and `shift` is chosen so that f(n) stays below 2^62. Sums
 * and differences of such numbers are exact: they do not depend on the order of the cells, on threads or on the back
 * end, tables with the same counts have the same score, and a constant or a one-level class gives exactly zero. A score
 * is off by at most half a unit per cell, over n: below 1e-15 bits, beside the rounding of f itself (2^-52 of it).
 *
 *   I(C; X) n = (Σ f(n_xc) - Σ f(n_x)) - (Σ f(n_c) - f(n))        X: the levels of all attributes of the tuple
 * together */
#pragma once

#include "core/numbers/math.h"

/* k log2 k; exact at powers of two. */
static WEFT_HD inline double weft_mi_f(double k) { return k > 0 ? weft_mul(k, weft_log2(k)) : 0; }

typedef struct weft_mi_log {
  const int64_t *table; /* f of 0 .. known - 1 */
  uint64_t known;
  int shift;
  double unit; /* 2^-shift */
} weft_mi_log;

/* Beyond this many entries f is computed when it is asked for. */
#define WEFT_MI_LOG_TABLE ((uint64_t) 1 << 20)

static WEFT_HD inline int64_t weft_mi_fixed_of(uint64_t k, double unit)
{
  return (int64_t) weft_add(weft_div(weft_mi_f((double) k), unit), 0.5);
}

static WEFT_HD inline int64_t weft_mi_fixed(const weft_mi_log *f, uint64_t k)
{
  return k < f->known ? f->table[k] : weft_mi_fixed_of(k, f->unit);
}

/* Fixed point to bits, over n rows. */
static WEFT_HD inline double weft_mi_bits(int64_t fixed, double unit, uint64_t n)
{
  return n ? weft_div(weft_mul((double) fixed, unit), (double) n) : 0;
}

/* Counts of one level (a cell, a margin, all rows), class after class, `per` classes per stratum: Σ f(count) less Σ
 * f(count of a stratum). With one stratum this is a level's part of the information above. */
typedef struct weft_mi_by_class {
  const weft_mi_log *f;
  uint32_t per, seen;  /* seen: classes of the stratum so far */
  uint64_t stratum, n; /* its rows so far; rows of the strata that are complete */
  int64_t sum;
} weft_mi_by_class;

static WEFT_HD inline weft_mi_by_class weft_mi_by_class_of(const weft_mi_log *f, uint32_t per)
{
  const weft_mi_by_class out = { f, per, 0, 0, 0, 0 };
  return out;
}

static WEFT_HD inline void weft_mi_by_class_add(weft_mi_by_class *sums, uint64_t count)
{
  sums->sum += weft_mi_fixed(sums->f, count);
  sums->stratum += count;
  if (++sums->seen < sums->per) return;
  sums->sum -= weft_mi_fixed(sums->f, sums->stratum);
  sums->n += sums->stratum;
  sums->seen = 0;
  sums->stratum = 0;
}

/* How the counts of an attribute's levels follow from its planes. A complete attribute has a plane for every level but
 * the last, whose counts are what is left; one with missing values has a plane for every level. */
typedef struct weft_mi_shape {
  uint32_t planes, levels;
  int missing;
} weft_mi_shape;

/* Popcounts of a tile of pairs, and the margins that the levels without planes follow from. A table has `parts` parts:
 * the class levels, or, in a triple, the class levels within each level of the first attribute. */
typedef struct weft_mi_counts {
  weft_mi_shape a, b;
  int vary; /* the rows that count differ from pair to pair */
  uint32_t parts;
  const uint32_t *both; /* both[((part * a.planes + pa) * b.planes + pb) * stride + i * ld + j] */
  size_t stride, ld;
  const uint32_t *margin_a, *margin_b; /* margin_a[part * part_a + pa * plane_a + i], b likewise with j */
  size_t part_a, plane_a, part_b, plane_b;
  const uint32_t *totals; /* rows of a part */
} weft_mi_counts;

/* Cell (x, y) of a part of pair (i, j). */
static WEFT_HD inline uint32_t weft_mi_cell(const weft_mi_counts *counts, uint32_t part, size_t i, size_t j, uint32_t x,
                                            uint32_t y)
{
  const uint32_t pa = counts->a.planes, pb = counts->b.planes;
  const uint32_t *both = counts->both + (size_t) part * pa * pb * counts->stride + i * counts->ld + j;
  uint32_t n;
  if (x < pa && y < pb) return both[((size_t) x * pb + y) * counts->stride];
  if (x < pa) {
    n = counts->margin_a[part * counts->part_a + x * counts->plane_a + i];
    for (uint32_t q = 0; q < pb; q++) n -= both[((size_t) x * pb + q) * counts->stride];
    return n;
  }
  if (y < pb) {
    n = counts->margin_b[part * counts->part_b + y * counts->plane_b + j];
    for (uint32_t p = 0; p < pa; p++) n -= both[((size_t) p * pb + y) * counts->stride];
    return n;
  }
  n = counts->totals[part];
  for (uint32_t p = 0; p < pa; p++) n -= counts->margin_a[part * counts->part_a + p * counts->plane_a + i];
  for (uint32_t q = 0; q < pb; q++) n -= counts->margin_b[part * counts->part_b + q * counts->plane_b + j];
  for (uint32_t p = 0; p < pa * pb; p++) n += both[(size_t) p * counts->stride];
  return n;
}

/* A table as a plain array: cells[part * levels_a * levels_b + x * levels_b + y]. Each derived cell is made once. */
static WEFT_HD inline void weft_mi_cells(const weft_mi_counts *counts, size_t i, size_t j, uint32_t *cells)
{
  const uint32_t pa = counts->a.planes, pb = counts->b.planes, lb = counts->b.levels;
  for (uint32_t part = 0; part < counts->parts; part++, cells += counts->a.levels * lb) {
    const uint32_t *both = counts->both + (size_t) part * pa * pb * counts->stride + i * counts->ld + j;
    for (uint32_t x = 0; x < pa; x++) {
      uint32_t left = counts->b.missing ? 0 : counts->margin_a[part * counts->part_a + x * counts->plane_a + i];
      for (uint32_t y = 0; y < pb; y++, both += counts->stride) {
        cells[x * lb + y] = *both;
        left -= *both;
      }
      if (!counts->b.missing) cells[x * lb + pb] = left;
    }
    if (counts->a.missing) continue;
    uint32_t corner = counts->b.missing ? 0 : counts->totals[part];
    for (uint32_t x = 0; x < pa && !counts->b.missing; x++)
      corner -= counts->margin_a[part * counts->part_a + x * counts->plane_a + i];
    for (uint32_t y = 0; y < pb; y++) {
      uint32_t left = counts->margin_b[part * counts->part_b + y * counts->plane_b + j];
      for (uint32_t x = 0; x < pa; x++) left -= cells[x * lb + y];
      cells[pa * lb + y] = left;
      corner -= left;
    }
    if (!counts->b.missing) cells[pa * lb + pb] = corner;
  }
}
