/* A column of a panel at a time; see moments.h. */
#include <math.h>
#include <string.h>
#include "core/call/arena.h"
#include "core/numbers/loops.h"
#include "core/call/parallel.h"
#include "pca/both/moments.h"
#include "pca/cpu/genotypes.h"
#include "pca/cpu/sparse.h"

/* ---- columns whose values count the same ---- */

#define LANES 16 /* partial sums, whatever the width of registers, so that all machines have the same bits */

/* Three passes over a column in vectors of `wide` numbers, about its finite values: how many, the smallest and the
 * largest; the sum of x unit; the sum of (x unit - mean)^2. The last turn is filled up with NaN. */
#define COLUMNS(name, target, wide) \
  typedef double name##_vector __attribute__((vector_size(8 * wide), aligned(8))); \
  typedef int64_t name##_mask __attribute__((vector_size(8 * wide), aligned(8))); \
  enum { name##_vectors = LANES / wide }; \
  target static size_t name##_range(size_t n, const double *x, double *least, double *greatest) \
  { \
    name##_vector low[name##_vectors], high[name##_vectors]; \
    name##_mask count[name##_vectors]; \
    double rest[LANES]; \
    size_t finite = 0; \
    WEFT_UNROLLED \
    for (int values = 0; values < name##_vectors; values++) { \
      count[values] = (name##_mask){ 0 }; \
      low[values] = (name##_vector){ 0 } + INFINITY; \
      high[values] = (name##_vector){ 0 } - INFINITY; \
    } \
    for (size_t i = 0; i < n; i += LANES) { \
      const double *from = whole_turn(x, i, n, rest); \
      WEFT_UNROLLED \
      for (int values = 0; values < name##_vectors; values++) { \
        const name##_vector now = *(const name##_vector *) (from + values * wide); \
        const name##_mask seen = now - now == 0, less = seen & (now < low[values]), \
                          more = seen & (now > high[values]); \
        low[values] = (name##_vector)(((name##_mask) now & less) | ((name##_mask) low[values] & ~less)); \
        high[values] = (name##_vector)(((name##_mask) now & more) | ((name##_mask) high[values] & ~more)); \
        count[values] -= seen; \
      } \
    } \
    for (int values = 0; values < name##_vectors; values++) \
      for (int l = 0; l < wide; l++) { \
        if (low[values][l] < *least) *least = low[values][l]; \
        if (high[values][l] > *greatest) *greatest = high[values][l]; \
        finite += (size_t) count[values][l]; \
      } \
    return finite; \
  } \
  target static double name##_sum(size_t n, const double *x, double unit, double mean, int squares) \
  { \
    name##_vector sum[name##_vectors]; \
    double rest[LANES], total = 0; \
    WEFT_UNROLLED \
    for (int values = 0; values < name##_vectors; values++) sum[values] = (name##_vector){ 0 }; \
    for (size_t i = 0; i < n; i += LANES) { \
      const double *from = whole_turn(x, i, n, rest); \
      WEFT_UNROLLED \
      for (int values = 0; values < name##_vectors; values++) { \
        const name##_vector d = *(const name##_vector *) (from + values * wide) * unit - mean; \
        sum[values] += (name##_vector)((name##_mask)(squares ? d * d : d) & (name##_mask)(d - d == 0)); \
      } \
    } \
    for (int values = 0; values < name##_vectors; values++) \
      for (int l = 0; l < wide; l++) total += sum[values][l]; \
    return total; \
  } \
  static const column_kernels name = { name##_range, name##_sum };

typedef struct {
  size_t (*range)(size_t n, const double *x, double *least, double *greatest);
  double (*sum)(size_t n, const double *x, double unit, double mean, int squares);
} column_kernels;

static inline const double *whole_turn(const double *x, size_t i, size_t n, double *rest)
{
  if (i + LANES <= n) return x + i;
  for (size_t l = 0; l < LANES; l++) rest[l] = i + l < n ? x[i + l] : NAN;
  return rest;
}

COLUMNS(portable, , 2)
#if WEFT_SIMD_X86
COLUMNS(avx2, WEFT_TARGET_AVX2, 4)
COLUMNS(avx512, WEFT_TARGET_AVX512, 8)
#endif

static const column_kernels *kernels(void)
{
#if WEFT_SIMD_X86
  if (weft_simd_level() == WEFT_SIMD_AVX512) return &avx512;
  if (weft_simd_level() == WEFT_SIMD_AVX2) return &avx2;
#endif
  return &portable;
}

/* ---- any column ---- */

/* Zeros that a sparse column does not store have a total weight of `zeros`. Sums are taken of values divided by a power
 * of two near the largest, so that nothing overflows or vanishes. */
static weft_pca_column part_of(const double *x, const int32_t *rows, size_t count, const double *weights, double zeros)
{
  weft_pca_column a = { 0, 0, 0, INFINITY, -INFINITY, 0, 0 };
  double sum = 0, square = 0, unit;
  int exponent = 0;
  const column_kernels *use = kernels();
  if (!weights) {
    const size_t finite = use->range(count, x, &a.least, &a.greatest);
    a.weight = (double) finite;
    for (size_t i = 0; i < count && finite < count; i++) {
      a.missing += isnan(x[i]) != 0;
      a.infinite += isinf(x[i]) != 0;
    }
  }
  for (size_t i = 0; i < count && weights; i++) {
    const double w = weights[rows ? (size_t) rows[i] : i];
    if (isnan(x[i])) {
      a.missing++;
      continue;
    }
    if (isinf(x[i])) {
      a.infinite++;
      continue;
    }
    if (w == 0) continue;
    a.weight += w;
    if (x[i] < a.least) a.least = x[i];
    if (x[i] > a.greatest) a.greatest = x[i];
  }
  if (zeros > 0) {
    a.weight += zeros;
    a.least = fmin(a.least, 0);
    a.greatest = fmax(a.greatest, 0);
  }
  if (a.weight == 0) return a;
  if (a.least == a.greatest) {
    a.mean = a.least;
    return a;
  }
  frexp(fmax(fabs(a.least), fabs(a.greatest)), &exponent);
  unit = ldexp(1, exponent < -1000 ? 1000 : -exponent);
  if (!weights)
    sum = use->sum(count, x, unit, 0, 0);
  else
    for (size_t i = 0; i < count; i++)
      if (isfinite(x[i])) sum += weights[rows ? (size_t) rows[i] : i] * (x[i] * unit);
  const double mean = sum / a.weight;
  if (!weights)
    square = use->sum(count, x, unit, mean, 1);
  else
    for (size_t i = 0; i < count; i++) {
      const double d = x[i] * unit - mean;
      if (isfinite(x[i])) square += weights[rows ? (size_t) rows[i] : i] * d * d;
    }
  square += zeros * mean * mean;
  a.mean = mean / unit;
  a.norm = sqrt(square) / unit;
  return a;
}

/* Every panel's columns are summed up by themselves and merged with what was found before. Zeros that a sparse panel
 * does not store enter by their total weight. */
weft_status weft_pca_moments_cpu(weft_ctx *ctx, const weft_pca_data *data, const double *weights,
                                 const weft_pca_moments *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_pca_panel x;
  weft_pca_column *parts;
  if (data->coded) return weft_pca_genotype_moments(ctx, data, weights, out);
  WEFT_TAKE0(parts, &mem, data->p);
  for (size_t t = 0; t < data->panels; t++) {
    double total = 0;
    WEFT_TRY(data->fetch(ctx, data->source, t, &x));
    const double *w = weights ? weights + x.row : NULL;
    for (size_t i = 0; i < x.n; i++) total += w ? w[i] : 1;
    for (size_t first = 0; first < x.p; first += 4096) { /* between polls */
      const size_t last = first + 4096 < x.p ? first + 4096 : x.p;
      WEFT_TRY(weft_poll(ctx, 0, 0));
      const double cells = x.dense ? (double) x.n * (double) (last - first) : x.starts[last] - x.starts[first];
      WEFT_PARALLEL_FOR(weft_pca_threads_for_cells(ctx, cells), static)
      for (int64_t j = (int64_t) first; j < (int64_t) last; j++) {
        weft_pca_column *p = &parts[x.column + (size_t) j];
        if (x.dense) {
          *p = weft_pca_merged(*p, part_of(x.dense + (size_t) j * x.ld, NULL, x.n, w, 0));
        } else {
          const int32_t *rows = x.rows + x.starts[j];
          const size_t stored = (size_t) (x.starts[j + 1] - x.starts[j]);
          double zeros = stored == x.n ? 0 : total;
          if (stored < x.n)
            for (size_t i = 0; i < stored; i++) zeros -= w ? w[rows[i]] : 1;
          *p = weft_pca_merged(*p, part_of(x.values + x.starts[j], rows, stored, w, zeros > 0 ? zeros : 0));
        }
      }
    }
  }
  weft_pca_put_moments(parts, data->p, out);
done:
  weft_arena_end(&mem);
  return st;
}

#define ROWS_AT_ONCE 2048

weft_status weft_pca_seen_cpu(weft_ctx *ctx, const weft_pca_data *data, double *out)
{
  weft_status st = WEFT_OK;
  weft_pca_panel x;
  memset(out, 0, data->n * sizeof *out);
  WEFT_TRY(data->fetch(ctx, data->source, 0, &x));
  const int64_t parts = (int64_t) ((x.n + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE);
  for (size_t from = 0; from < x.p; from += 1024) {
    const size_t to = from + 1024 < x.p ? from + 1024 : x.p;
    WEFT_TRY(weft_poll(ctx, 0, 0));
    WEFT_PARALLEL_FOR(weft_pca_threads_for_cells(ctx, (double) x.n * (double) (to - from)), static)
    for (int64_t part = 0; part < parts; part++) {
      const size_t first = (size_t) part * ROWS_AT_ONCE, last = first + ROWS_AT_ONCE < x.n ? first + ROWS_AT_ONCE : x.n;
      for (size_t j = from; j < to; j++)
        for (size_t i = first; i < last; i++) out[i] += !isnan(x.dense[i + j * x.ld]);
    }
  }
done:
  return st;
}
