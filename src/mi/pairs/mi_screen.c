/* Scores in single precision, sixteen neighbouring pairs at a time: a screen. What passes is scored exactly, so the
 * screen decides nothing but the speed; its error is bounded and allowed for.
 *
 * log2(2^e m) = e + P(m - 1), 1 <= m < 2, with a polynomial of degree 6 that is off by at most 1.85e-6. */
#include <math.h>
#include <string.h>
#include "../../base/simd.h"
#include "mi_pairs.h"

#define LANES 16
#define LOG_ERROR 1.9e-6
#define MOST_CELLS (WEFT_MI_PLANAR_LEVELS * WEFT_MI_PLANAR_LEVELS)
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
INLINE void sixteen(const weft_mi_counts *t, uint32_t parts, uint32_t classes, uint32_t pa, uint32_t pb, int missing_a,
                    int missing_b, int vary, float class_sum, float n, size_t i, size_t j, float *out)
{
  const uint32_t la = pa + !missing_a, lb = pb + !missing_b;
  ints levels[MOST_CELLS], by_class[WEFT_MI_PLANAR_CLASSES], column_left[WEFT_MI_PLANAR_LEVELS];
  floats joint = { 0 }, of_levels = { 0 };
  if (vary)
    for (uint32_t c = 0; c < classes; c++) by_class[c] = (ints){ 0 };
  for (uint32_t part = 0; part < parts; part++) {
    const uint32_t c = part % classes;
    const uint32_t *both = t->both + (size_t) part * pa * pb * t->stride + i * t->ld + j;
    /* in the last level of both: the rows of the part - margins of a - margins of b + all popcounts */
    ints corner = (ints){ 0 } + t->totals[part], cell;
    if (!missing_a)
      for (uint32_t y = 0; y < pb; y++) {
        load(t->margin_b + part * t->part_b + y * t->plane_b + j, &column_left[y]);
        corner -= column_left[y];
      }
#define CELL(x, y) do { add_f(&cell, &joint); levels[(x) * lb + (y)] = c ? levels[(x) * lb + (y)] + cell : cell; \
                        if (vary) by_class[c] += cell; } while (0)
    for (uint32_t x = 0; x < pa; x++) {
      ints left = (ints){ 0 };
      if (!missing_b) left += t->margin_a[part * t->part_a + x * t->plane_a + i];
      corner -= left;
      for (uint32_t y = 0; y < pb; y++, both += t->stride) {
        load(both, &cell);
        CELL(x, y);
        left -= cell;
        if (!missing_a) column_left[y] -= cell;
      }
      if (!missing_b) { cell = left; CELL(x, pb); }
    }
    if (!missing_a) {
      for (uint32_t y = 0; y < pb; y++) {
        cell = column_left[y];
        CELL(pa, y);
      }
      if (!missing_b) {
        for (uint32_t p = 0; p < pa * pb; p++) {
          load(t->both + ((size_t) part * pa * pb + p) * t->stride + i * t->ld + j, &cell);
          corner += cell;
        }
        cell = corner;
        CELL(pa, pb);
      }
    }
#undef CELL
    if (c == classes - 1)
      for (uint32_t k = 0; k < la * lb; k++) add_f(&levels[k], &of_levels);
  }
  floats score;
  if (vary) {
    ints rows = (ints){ 0 };
    floats of_classes = { 0 }, of_rows = { 0 }, real;
    for (uint32_t c = 0; c < classes; c++) {
      add_f(&by_class[c], &of_classes);
      rows += by_class[c];
    }
    add_f(&rows, &of_rows);
    real = __builtin_convertvector((signed_ints) rows - (rows == 0), floats); /* a comparison is -1 where it holds */
    score = ((joint - of_levels) - (of_classes - of_rows)) / real;
  } else {
    score = ((joint - of_levels) - class_sum) / n;
  }
  memcpy(out, &score, sizeof score);
}

INLINE void row(const weft_mi_counts *t, uint32_t classes, float class_sum, float n, size_t i, size_t count, float *out)
{
  const uint32_t pa = t->a.planes, pb = t->b.planes, parts = t->parts;
  const int known = !t->vary, flat = known && parts == 2 && classes == 2;
  for (size_t j = 0; j < count; j += LANES) {
    if (flat && pa == 1 && pb == 1) sixteen(t, 2, 2, 1, 1, 0, 0, 0, class_sum, n, i, j, out + j);
    else if (flat && pa == 2 && pb == 2) sixteen(t, 2, 2, 2, 2, 0, 0, 0, class_sum, n, i, j, out + j);
    else if (known && pa == 1 && pb == 1 && parts == 4 && classes == 2)
      sixteen(t, 4, 2, 1, 1, 0, 0, 0, class_sum, n, i, j, out + j);
    else if (known) sixteen(t, parts, classes, pa, pb, 0, 0, 0, class_sum, n, i, j, out + j);
    else sixteen(t, parts, classes, pa, pb, t->a.missing, t->b.missing, 1, class_sum, n, i, j, out + j);
  }
}

typedef void (*row_function)(const weft_mi_counts *, uint32_t, float, float, size_t, size_t, float *);

static void row_portable(const weft_mi_counts *t, uint32_t classes, float class_sum, float n, size_t i, size_t count,
                         float *out)
{
  row(t, classes, class_sum, n, i, count, out);
}

#if WEFT_SIMD_X86
WEFT_TARGET_AVX2 static void row_avx2(const weft_mi_counts *t, uint32_t classes, float class_sum, float n, size_t i,
                                      size_t count, float *out)
{
  row(t, classes, class_sum, n, i, count, out);
}

WEFT_TARGET_AVX512 static void row_avx512(const weft_mi_counts *t, uint32_t classes, float class_sum, float n, size_t i,
                                          size_t count, float *out)
{
  row(t, classes, class_sum, n, i, count, out);
}

static const row_function rows[] = { row_portable, row_avx2, row_avx512 };
#else
static const row_function rows[] = { row_portable, row_portable, row_portable };
#endif

void weft_mi_screen(const weft_mi_counts *t, uint32_t classes, float class_sum, uint64_t n, size_t i, size_t count,
                    float *out)
{
  rows[weft_simd_level()](t, classes, class_sum, (float) n, i, count, out);
}

double weft_mi_screen_error(const weft_mi_counts *t, uint64_t n)
{
  const double cells = (double) t->a.levels * t->b.levels * (t->parts + 1.0) + t->parts + 8;
  return 4 * LOG_ERROR + (cells + 16) * 0x1p-23 * log2((double) n + 2) * 2;
}

/* A little above the greatest, for the points between those looked at. */
double weft_mi_steepest(double p)
{
  double most = 0;
  for (int k = 0; k <= 20000; k++) {
    const double q = k / 20000.0, d = (q - p) * (q - p);
    double kl = 0;
    if (fabs(q - p) < 1e-4) continue;
    if (q > 0) kl += q * log2(q / p);
    if (q < 1) kl += (1 - q) * log2((1 - q) / (1 - p));
    most = fmax(most, kl / d);
  }
  return fmax(most, 0.5 / (log(2.0) * p * (1 - p))) * 1.002;
}
