/* Products of tiles; see tiles.h. Sums run over a tile's columns, over a group's tiles and over groups, in their
 * order, and every lane sums by itself, so threads do not change a bit. */
/* Build: fused. */
#include <math.h>
#include <string.h>
#include "core/numbers/loops.h"
#include "core/call/parallel.h"
#include "pca/cpu/sparse.h"
#include "pca/cpu/tiles.h"
#include "pca/cpu/tiles_products.h"

#define PLACES_AHEAD 1024
#define VALUES_AHEAD 512

/* Products of one tile S with b vectors: out += S in, or out += S'in. */
typedef void (*tile_work)(const weft_pca_tiles *x, size_t tile, const double *in, double *out);
typedef struct {
  tile_work times, transposed;
} tile_kernels;

/* Fetches what follows about a microsecond later: the processor does so by itself only within a page of memory, and
 * later. */
INLINE void fetch_ahead(const uint16_t *places, const double *values, size_t length)
{
  for (size_t i = 0; i < length; i += 32) { /* a line of places */
    __builtin_prefetch(places + i + PLACES_AHEAD);
    for (size_t l = 0; values && l < 32; l += 8) __builtin_prefetch(values + i + l + VALUES_AHEAD);
  }
}

/* `lanes` has `wide` numbers, b / wide of them are a row's vectors. The values of a column have rows of their own. */
#define TILE_KERNELS(name, target, lanes, wide, b) \
  enum { name##_parts = b / wide }; \
  target INLINE void name##_times_tabled(const weft_pca_tiles *x, size_t tile, const int tabled, const double *v, \
                                         double *u) \
  { \
    const uint32_t *column = weft_pca_tile_columns(x, tile); \
    const uint16_t *places = x->places + x->begin[tile]; \
    const double *values = x->values[tile]; \
    const size_t mask = ((size_t) 1 << x->side) - 1; \
    for (const weft_pca_runs *run = x->runs + tile * x->max_runs; run->length; run++) { \
      const size_t length = run->length; \
      for (uint32_t c = 0; c < run->columns; c++, column++, places += length, values += tabled ? 0 : length) { \
        lanes own[name##_parts]; \
        __builtin_prefetch(v + (size_t) column[WEFT_PCA_TILE_AHEAD] * b); \
        fetch_ahead(places, tabled ? NULL : values, length); \
        for (int l = 0; l < name##_parts; l++) own[l] = ((const lanes *) (v + (size_t) *column * b))[l]; \
        size_t i = 0; \
        for (; i + 4 <= length; i += 4) { \
          WEFT_UNROLLED \
          for (size_t a = 0; a < 4; a++) { \
            lanes *row = (lanes *) (u + (places[i + a] & mask) * b); \
            const double value = values[tabled ? places[i + a] : i + a]; \
            for (int l = 0; l < name##_parts; l++) row[l] += own[l] * value; \
          } \
        } \
        for (; i < length; i++) { \
          lanes *row = (lanes *) (u + (places[i] & mask) * b); \
          const double value = values[tabled ? places[i] : i]; \
          for (int l = 0; l < name##_parts; l++) row[l] += own[l] * value; \
        } \
      } \
    } \
  } \
  target INLINE void name##_transposed_tabled(const weft_pca_tiles *x, size_t tile, const int tabled, const double *u, \
                                              double *out) \
  { \
    const uint32_t *column = weft_pca_tile_columns(x, tile); \
    const uint16_t *places = x->places + x->begin[tile]; \
    const double *values = x->values[tile]; \
    const size_t mask = ((size_t) 1 << x->side) - 1; \
    for (const weft_pca_runs *run = x->runs + tile * x->max_runs; run->length; run++) { \
      const size_t length = run->length; \
      for (uint32_t c = 0; c < run->columns; c++, column++, places += length, values += tabled ? 0 : length) { \
        lanes sum[4][name##_parts]; /* each addition waits for the one before */ \
        size_t i = 0; \
        __builtin_prefetch(out + (size_t) column[WEFT_PCA_TILE_AHEAD] * b, 1); \
        fetch_ahead(places, tabled ? NULL : values, length); \
        for (int a = 0; a < 4; a++) \
          for (int l = 0; l < name##_parts; l++) sum[a][l] = (lanes){ 0 }; \
        for (; i + 4 <= length; i += 4) { \
          WEFT_UNROLLED \
          for (size_t a = 0; a < 4; a++) { \
            const lanes *row = (const lanes *) (u + (places[i + a] & mask) * b); \
            const double value = values[tabled ? places[i + a] : i + a]; \
            for (int l = 0; l < name##_parts; l++) sum[a][l] += row[l] * value; \
          } \
        } \
        for (; i < length; i++) { \
          const lanes *row = (const lanes *) (u + (places[i] & mask) * b); \
          const double value = values[tabled ? places[i] : i]; \
          for (int l = 0; l < name##_parts; l++) sum[0][l] += row[l] * value; \
        } \
        for (int l = 0; l < name##_parts; l++) \
          ((lanes *) (out + (size_t) *column * b))[l] += (sum[0][l] + sum[1][l]) + (sum[2][l] + sum[3][l]); \
      } \
    } \
  } \
  target static void name##_times(const weft_pca_tiles *x, size_t tile, const double *in, double *out) \
  { \
    if (x->tabled[tile]) \
      name##_times_tabled(x, tile, 1, in, out); \
    else \
      name##_times_tabled(x, tile, 0, in, out); \
  } \
  target static void name##_transposed(const weft_pca_tiles *x, size_t tile, const double *in, double *out) \
  { \
    if (x->tabled[tile]) \
      name##_transposed_tabled(x, tile, 1, in, out); \
    else \
      name##_transposed_tabled(x, tile, 0, in, out); \
  } \
  static const tile_kernels name = { name##_times, name##_transposed };

typedef double two_lanes __attribute__((vector_size(16), aligned(8)));
TILE_KERNELS(portable_4, , two_lanes, 2, 4)
TILE_KERNELS(portable_8, , two_lanes, 2, 8)
#if WEFT_SIMD_X86
#  define AVX2 __attribute__((target("avx2,fma")))
#  define AVX512 __attribute__((target("avx512f,avx2,fma")))
typedef double four_lanes __attribute__((vector_size(32), aligned(8)));
typedef double eight_lanes __attribute__((vector_size(64), aligned(8)));
TILE_KERNELS(avx2_4, AVX2, four_lanes, 4, 4)
TILE_KERNELS(avx2_8, AVX2, four_lanes, 4, 8)
TILE_KERNELS(avx512_8, AVX512, eight_lanes, 8, 8)
#endif

static const tile_kernels *kernels_of(size_t b)
{
#if WEFT_SIMD_X86
  if (weft_simd_level() >= WEFT_SIMD_AVX2 && __builtin_cpu_supports("fma")) {
    if (b == 4) return &avx2_4;
    return weft_simd_level() == WEFT_SIMD_AVX512 ? &avx512_8 : &avx2_8;
  }
#endif
  return b == 4 ? &portable_4 : &portable_8;
}

static size_t end_of(const weft_pca_tiles *x, size_t tile)
{
  const size_t next = (tile + 1) << x->side;
  return next < x->n ? next : x->n;
}

/* Threads share tiles. */
weft_status weft_pca_tiles_times(weft_ctx *ctx, const weft_pca_tiles *x, const double *v, size_t b, double *out)
{
  const tile_kernels *k = kernels_of(b);
  const int threads = weft_pca_threads_for_cells(ctx, (double) x->begin[x->tiles] * (double) b);
  const int64_t tiles = (int64_t) x->tiles, at_once = 4 * (int64_t) ctx->threads;
  for (int64_t first = 0; first < tiles; first += at_once) {
    const int64_t last = first + at_once < tiles ? first + at_once : tiles;
    const weft_status st = weft_poll(ctx, 0, 0);
    if (st != WEFT_OK) return st;
    WEFT_PARALLEL_FOR(threads, dynamic)
    for (int64_t t = first; t < last; t++) {
      const size_t row = (size_t) t << x->side;
      memset(out + row * b, 0, (end_of(x, (size_t) t) - row) * b * sizeof *out);
      k->times(x, (size_t) t, v, out + row * b);
    }
  }
  return WEFT_OK;
}

/* The vectors that S' is multiplied by: u itself, or R^2 (S v - 1 shift'). */
typedef struct {
  const double *u, *v, *shift, *row;
  size_t b;
} near_side;

/* `far` := the tile's rows of u; their sums are added to `total`. */
static void far_rows(const weft_pca_tiles *x, const tile_kernels *k, const near_side *of, size_t tile, double *far,
                     double *total)
{
  const size_t b = of->b, row = tile << x->side, rows = end_of(x, tile) - row;
  memset(far, 0, rows * b * sizeof *far);
  k->times(x, tile, of->v, far);
  for (size_t i = 0; i < rows; i++) {
    const double weight = of->row ? of->row[row + i] * of->row[row + i] : 1;
    for (size_t l = 0; l < b; l++) {
      far[i * b + l] = (far[i * b + l] - of->shift[l]) * weight;
      total[l] += far[i * b + l];
    }
  }
}

/* Threads share groups. Between two polls they take the same number of tiles of each, or one tile of some of them. */
static weft_status to_near(weft_ctx *ctx, const weft_pca_tiles *x, const near_side *of, double *total, double *out)
{
  const size_t b = of->b, groups = x->groups, each = (x->tiles + groups - 1) / groups, count = x->p * b;
  const tile_kernels *k = kernels_of(b);
  const double stored = (double) x->begin[x->tiles], at_once = 1e7 * (double) ctx->threads;
  const int threads = weft_pca_threads_for_cells(ctx, stored * (double) b);
  const size_t turns = (size_t) (stored / at_once) + 1, turn = (each + turns - 1) / turns;
  const double fit = at_once * (double) x->tiles / ((stored + 1) * (double) turn);
  const size_t wide = (size_t) fmax(1, fmin(fit, (double) groups));
  double totals[WEFT_PCA_TILE_GROUPS][WEFT_PCA_TILE_BLOCK] = { { 0 } };
  for (size_t first = 0; first < each; first += turn)
    for (size_t from = 0; from < groups; from += wide) {
      const int64_t last = (int64_t) (from + wide < groups ? from + wide : groups);
      const weft_status st = weft_poll(ctx, 0, 0);
      if (st != WEFT_OK) return st;
      WEFT_PARALLEL_FOR(threads, dynamic)
      for (int64_t g = (int64_t) from; g < last; g++) {
        double *sums = x->sums + (size_t) g * count, *far = x->far + ((size_t) g << x->side) * b;
        if (!first) memset(sums, 0, count * sizeof *sums);
        for (size_t t = first; t < first + turn && t < each; t++) {
          const size_t tile = (size_t) g * each + t;
          if (tile >= x->tiles) break;
          if (of->v) far_rows(x, k, of, tile, far, totals[g]);
          k->transposed(x, tile, of->v ? far : of->u + (tile << x->side) * b, sums);
        }
      }
    }
  WEFT_PARALLEL_FOR(weft_pca_threads_for_cells(ctx, (double) groups * (double) count), static)
  for (int64_t i = 0; i < (int64_t) count; i++)
    for (size_t g = 0; g < groups; g++) out[i] += x->sums[g * count + (size_t) i];
  for (size_t g = 0; g < groups; g++)
    for (size_t l = 0; of->v && l < b; l++) total[l] += totals[g][l];
  return WEFT_OK;
}

weft_status weft_pca_tiles_transposed(weft_ctx *ctx, const weft_pca_tiles *x, const double *u, size_t b, double *out)
{
  const near_side of = { .u = u, .b = b };
  return to_near(ctx, x, &of, NULL, out);
}

weft_status weft_pca_tiles_twice(weft_ctx *ctx, const weft_pca_tiles *x, const double *v, size_t b, const double *shift,
                                 const double *row, double *total, double *out)
{
  const near_side of = { .v = v, .shift = shift, .row = row, .b = b };
  return to_near(ctx, x, &of, total, out);
}
