/* Scores in single precision, sixteen neighbouring pairs at a time: a screen. What passes is scored exactly, so the
 * screen decides nothing but the speed; its error is bounded and allowed for.
 *
 * Complete attributes of few levels and two classes are bounded by squares first: with k of a cell's m rows in the
 * first class and p that class's share, the information is Σ m KL(k/m || p) / n, and KL(q || p) <= s (q - p)² with s
 * the greatest ratio over q, so it is at most s (Σ k²/m - p n0) / n. Logarithms are for sixteens of which one may pass.
 *
 * log2(2^e m) = e + P(m - 1), 1 <= m < 2, with a polynomial of degree 6 that is off by at most 1.85e-6. */
/* Build: shared, fused. */
#include <math.h>
#include <string.h>
#include "core/call/simd.h"
#include "mi/search/search.h"
#include "mi/search/both/screen.h"

#define LANES 16
#define LOG_ERROR 1.9e-6
#define MAX_CELLS (WEFT_MI_PLANAR_LEVELS * WEFT_MI_PLANAR_LEVELS)
#define INLINE static inline __attribute__((always_inline))

/* Counts are unsigned, because the lanes beyond the last pair add up whatever lies there. */
typedef uint32_t ints __attribute__((vector_size(4 * LANES)));
typedef int32_t signed_ints __attribute__((vector_size(4 * LANES)));
typedef float floats __attribute__((vector_size(4 * LANES)));

INLINE void load(const uint32_t *p, ints *out) { memcpy(out, p, sizeof *out); }

/* *sum += k log2 k */
INLINE void add_f(const ints *k, floats *sum)
{
  floats x = __builtin_convertvector((signed_ints) *k, floats), t, p;
  signed_ints bits, fraction;
  memcpy(&bits, &x, sizeof bits);
  fraction = (bits & 0x7fffff) | 0x3f800000;
  memcpy(&t, &fraction, sizeof t);
  t -= 1.0f;
  p = t * -0.0256910761f + 0.1210022f;
  p = p * t - 0.276540698f;
  p = p * t + 0.456521639f;
  p = p * t - 0.717791071f;
  p = p * t + 1.44249532f;
  p = p * t + 1.84569198e-06f;
  *sum += x * (__builtin_convertvector((bits >> 23) - 127, floats) + p);
}

/* Sixteen pairs from j on. The dimensions are constants where that pays. */
INLINE void sixteen(const weft_mi_counts *counts, uint32_t parts, uint32_t classes, uint32_t pa, uint32_t pb,
                    int missing_a, int missing_b, int vary, int stratified, float class_sum, float n, size_t i,
                    size_t j, float *out)
{
  const uint32_t la = pa + !missing_a, lb = pb + !missing_b;
  ints levels[MAX_CELLS], by_class[WEFT_MI_PLANAR_CLASSES], column_left[WEFT_MI_PLANAR_LEVELS];
  ints rows = (ints){ 0 };
  floats joint = { 0 }, of_levels = { 0 }, of_classes = { 0 }, of_rows = { 0 };
  if (vary)
    for (uint32_t c = 0; c < classes; c++) by_class[c] = (ints){ 0 };
  for (uint32_t part = 0; part < parts; part++) {
    const uint32_t c = part % classes;
    const uint32_t *both = counts->both + (size_t) part * pa * pb * counts->stride + i * counts->ld + j;
    /* in the last level of both: the rows of the part - margins of a - margins of b + all popcounts */
    ints corner = (ints){ 0 } + counts->totals[part], cell;
    if (!missing_a)
      for (uint32_t y = 0; y < pb; y++) {
        load(counts->margin_b + part * counts->part_b + y * counts->plane_b + j, &column_left[y]);
        corner -= column_left[y];
      }
#define CELL(x, y) \
  do { \
    add_f(&cell, &joint); \
    levels[(x) *lb + (y)] = c ? levels[(x) *lb + (y)] + cell : cell; \
    if (vary) by_class[c] += cell; \
  } while (0)
    for (uint32_t x = 0; x < pa; x++) {
      ints left = (ints){ 0 };
      if (!missing_b) left += counts->margin_a[part * counts->part_a + x * counts->plane_a + i];
      corner -= left;
      for (uint32_t y = 0; y < pb; y++, both += counts->stride) {
        load(both, &cell);
        CELL(x, y);
        left -= cell;
        if (!missing_a) column_left[y] -= cell;
      }
      if (!missing_b) {
        cell = left;
        CELL(x, pb);
      }
    }
    if (!missing_a) {
      for (uint32_t y = 0; y < pb; y++) {
        cell = column_left[y];
        CELL(pa, y);
      }
      if (!missing_b) {
        for (uint32_t p = 0; p < pa * pb; p++) {
          load(counts->both + ((size_t) part * pa * pb + p) * counts->stride + i * counts->ld + j, &cell);
          corner += cell;
        }
        cell = corner;
        CELL(pa, pb);
      }
    }
#undef CELL
    if (c == classes - 1)
      for (uint32_t k = 0; k < la * lb; k++) add_f(&levels[k], &of_levels);
    if (vary && (stratified ? c == classes - 1 : part == parts - 1)) {
      ints all = (ints){ 0 };
      for (uint32_t k = 0; k < classes; k++) {
        add_f(&by_class[k], &of_classes);
        all += by_class[k];
        by_class[k] = (ints){ 0 };
      }
      add_f(&all, &of_rows);
      rows += all;
    }
  }
  floats score;
  if (vary) {
    const floats real = /* a comparison is -1 where it holds */
        __builtin_convertvector((signed_ints) rows - (rows == 0), floats);
    score = ((joint - of_levels) - (of_classes - of_rows)) / real;
  } else {
    score = ((joint - of_levels) - class_sum) / n;
  }
  memcpy(out, &score, sizeof score);
}

/* What the bound by squares is made of: information <= scale × Σ k²/m + shift. */
typedef struct {
  float scale, shift;
} squares;

/* The sum's terms are positive and add up to n0 at most; thirty roundings of 2^-24 of it, and a little, are allowed. */
static squares squares_of(const weft_mi_screening *screening)
{
  const double n = (double) screening->n, n0 = (double) screening->class0;
  const squares out = { (float) (screening->steepest / n),
                        (float) ((2e-6 * n0 + 0.02 - n0 * n0 / n) * screening->steepest / n) };
  return out;
}

INLINE void real(const ints *k, floats *out) { *out = __builtin_convertvector((signed_ints) *k, floats); }

/* *sum += k²/m of two cells with one division; an empty cell has k = 0 and may have m = 1. */
INLINE void add_squares(const ints *k0, const ints *m0, const ints *k1, const ints *m1, floats *sum)
{
  const ints one = (ints){ 0 } + 1;
  const ints safe0 = *m0 | ((ints) (*m0 == 0) & one), safe1 = *m1 | ((ints) (*m1 == 0) & one);
  floats a, b, c, d;
  real(k0, &a);
  real(k1, &b);
  real(&safe0, &c);
  real(&safe1, &d);
  *sum += (a * a * d + b * b * c) / (c * d);
}

/* Cells of one part of sixteen pairs, of complete attributes. */
INLINE void part_cells(const weft_mi_counts *counts, uint32_t part, uint32_t pa, uint32_t pb, size_t i, size_t j,
                       ints *cell)
{
  const uint32_t *both = counts->both + (size_t) part * pa * pb * counts->stride + i * counts->ld + j;
  ints last[3], corner = (ints){ 0 } + counts->totals[part];
  for (uint32_t y = 0; y < pb; y++) {
    load(counts->margin_b + part * counts->part_b + y * counts->plane_b + j, &last[y]);
    corner -= last[y];
  }
  for (uint32_t x = 0; x < pa; x++) {
    ints left = (ints){ 0 } + counts->margin_a[part * counts->part_a + x * counts->plane_a + i];
    for (uint32_t y = 0; y < pb; y++, both += counts->stride) {
      load(both, &cell[x * (pb + 1) + y]);
      left -= cell[x * (pb + 1) + y];
      last[y] -= cell[x * (pb + 1) + y];
    }
    cell[x * (pb + 1) + pb] = left;
    corner -= left;
  }
  for (uint32_t y = 0; y < pb; y++) cell[pa * (pb + 1) + y] = last[y];
  cell[pa * (pb + 1) + pb] = corner;
}

/* Bounds of sixteen pairs; 0 when one of the `now` that count is not below `threshold`. */
INLINE int all_below(const weft_mi_counts *counts, uint32_t groups, uint32_t pa, uint32_t pb, squares by,
                     float threshold, size_t i, size_t j, size_t now, float *out)
{
  const uint32_t cells = (pa + 1) * (pb + 1);
  ints k[10], m[10];
  floats sum = { 0 };
  int below = 1;
  for (uint32_t g = 0; g < groups; g++) {
    part_cells(counts, 2 * g, pa, pb, i, j, k);
    part_cells(counts, 2 * g + 1, pa, pb, i, j, m);
    for (uint32_t c = 0; c < cells; c++) m[c] += k[c];
    k[cells] = m[cells] = (ints){ 0 };
    for (uint32_t c = 0; c < cells; c += 2) add_squares(&k[c], &m[c], &k[c + 1], &m[c + 1], &sum);
  }
  sum = sum * by.scale + by.shift;
  memcpy(out, &sum, sizeof sum);
  for (size_t l = 0; l < LANES; l++) below &= l >= now || out[l] < threshold;
  return below;
}

/* Screens pairs of attribute i with `count` neighbours, sixteen at a time: by squares where these show that all are
 * below `threshold`, else by logarithms, in a copy of the loop made for the shape. */
INLINE void row(const weft_mi_counts *counts, const weft_mi_screening *screening, squares by, size_t i, size_t count,
                float threshold, float *out)
{
  const uint32_t pa = counts->a.planes, pb = counts->b.planes, parts = counts->parts, classes = screening->classes;
  const float class_sum = screening->class_sum, n = (float) screening->n;
  const int known = !counts->vary, flat = known && parts == 2 && classes == 2;
  const int bounded = known && by.scale > 0 && threshold > -INFINITY;
  for (size_t j = 0; j < count; j += LANES) {
    const size_t now = count - j < LANES ? count - j : LANES;
    if (bounded && parts == 2 && pa == 1 && pb == 1 && all_below(counts, 1, 1, 1, by, threshold, i, j, now, out + j))
      continue;
    if (bounded && parts == 2 && pa == 2 && pb == 2 && all_below(counts, 1, 2, 2, by, threshold, i, j, now, out + j))
      continue;
    if (bounded && parts == 4 && pa == 1 && pb == 1 && all_below(counts, 2, 1, 1, by, threshold, i, j, now, out + j))
      continue;
    if (flat && pa == 1 && pb == 1)
      sixteen(counts, 2, 2, 1, 1, 0, 0, 0, 0, class_sum, n, i, j, out + j);
    else if (flat && pa == 2 && pb == 2)
      sixteen(counts, 2, 2, 2, 2, 0, 0, 0, 0, class_sum, n, i, j, out + j);
    else if (known && pa == 1 && pb == 1 && parts == 4 && classes == 2)
      sixteen(counts, 4, 2, 1, 1, 0, 0, 0, 0, class_sum, n, i, j, out + j);
    else if (known)
      sixteen(counts, parts, classes, pa, pb, 0, 0, 0, 0, class_sum, n, i, j, out + j);
    else if (!screening->stratified)
      sixteen(counts, parts, classes, pa, pb, counts->a.missing, counts->b.missing, 1, 0, class_sum, n, i, j, out + j);
    else
      sixteen(counts, parts, classes, pa, pb, counts->a.missing, counts->b.missing, 1, 1, class_sum, n, i, j, out + j);
  }
}

typedef void (*row_function)(const weft_mi_counts *, const weft_mi_screening *, squares, size_t, size_t, float,
                             float *);

static void row_portable(const weft_mi_counts *counts, const weft_mi_screening *screening, squares by, size_t i,
                         size_t count, float threshold, float *out)
{
  row(counts, screening, by, i, count, threshold, out);
}

#if WEFT_SIMD_X86
WEFT_TARGET_AVX2 static void row_avx2(const weft_mi_counts *counts, const weft_mi_screening *screening, squares by,
                                      size_t i, size_t count, float threshold, float *out)
{
  row(counts, screening, by, i, count, threshold, out);
}

WEFT_TARGET_AVX512 static void row_avx512(const weft_mi_counts *counts, const weft_mi_screening *screening, squares by,
                                          size_t i, size_t count, float threshold, float *out)
{
  row(counts, screening, by, i, count, threshold, out);
}

static const row_function rows[] = { row_portable, row_avx2, row_avx512 };
#else
static const row_function rows[] = { row_portable, row_portable, row_portable };
#endif

weft_mi_screening weft_mi_screening_of(const weft_mi_pack *pack)
{
  weft_mi_screening screening = {
    pack->per, pack->per < pack->classes, (float) ((double) pack->class_fixed * pack->f.unit), pack->n, 0, 0
  };
  if (pack->classes == 2 && pack->per == 2 && pack->class_rows[0] && pack->class_rows[1]) {
    screening.class0 = pack->class_rows[0];
    screening.steepest = weft_mi_steepest((double) screening.class0 / (double) screening.n);
  }
  return screening;
}

void weft_mi_screen(const weft_mi_counts *counts, const weft_mi_screening *screening, size_t i, size_t count,
                    float threshold, float *out)
{
  const weft_simd level = weft_simd_level();
  const squares none = { 0, 0 }; /* with AVX-512 logarithms take no longer than divisions */
  rows[level](counts, screening, screening->class0 && level != WEFT_SIMD_AVX512 ? squares_of(screening) : none, i,
              count, threshold, out);
}

double weft_mi_screen_error(const weft_mi_counts *counts, const weft_mi_screening *screening)
{
  const double strata = screening->stratified ? counts->parts / (double) screening->classes : 1;
  const double cells =
      (double) counts->a.levels * counts->b.levels * (counts->parts + strata) + counts->parts + strata + 7;
  return 4 * LOG_ERROR + (cells + 16) * 0x1p-23 * log2((double) screening->n + 2) * 2;
}

/* A little above the greatest, for the points between those looked at. The searches of permuted classes, a hundred in a
 * row, ask for the same share. */
double weft_mi_steepest(double p)
{
  static _Thread_local struct {
    double share, steepest;
  } last;
  double largest = 0;
  if (p == last.share) return last.steepest;
  for (int k = 0; k <= 20000; k++) {
    const double q = k / 20000.0, d = (q - p) * (q - p);
    double kl = 0;
    if (fabs(q - p) < 1e-4) continue;
    if (q > 0) kl += q * log2(q / p);
    if (q < 1) kl += (1 - q) * log2((1 - q) / (1 - p));
    largest = fmax(largest, kl / d);
  }
  last.share = p;
  return last.steepest = fmax(largest, 0.5 / (log(2.0) * p * (1 - p))) * 1.002;
}
