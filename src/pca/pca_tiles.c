/* A sparse panel once more, in tiles of some hundred rows: see pca_tiles.h. A tile's part of the vectors stays in the
 * nearest cache, and its values lie in the order in which they are read: that is worth a copy when there are several
 * products. Sums run over columns, and over tiles, in their order, and every lane sums by itself, so threads do
 * not change a bit. */
#include <string.h>
#include "../base/parallel.h"
#include "../base/simd.h"
#include "pca_sparse.h"
#include "pca_tiles.h"

#define LEAST_SIDE 9   /* 2^9 rows of 4 vectors are 16 KB */
#define MOST_SIDE 16   /* a row's place in its tile has 16 bits */
#define VALUES_EACH 16 /* of a column in a tile, on average, or tiles are larger */

/* Where a column's values in a tile begin, from those of the tile. */
static uint32_t *starts_of(const weft_pca_tiles *x, size_t tile) { return x->starts + tile * (x->p + 1); }

static int side_for(const weft_pca_panel *x)
{
  const double density = (double) x->starts[x->p] / ((double) x->n * (double) x->p);
  int side = LEAST_SIDE;
  while (side < MOST_SIDE && density * (double) ((size_t) 1 << side) < VALUES_EACH) side++;
  return side;
}

/* What a column of the panel has in each tile; fill: the values themselves. */
static void tile_column(weft_pca_tiles *out, const weft_pca_panel *x, size_t j, int fill)
{
  const int32_t mask = (int32_t) ((1u << out->side) - 1);
  for (int32_t at = x->starts[j]; at < x->starts[j + 1];) {
    const size_t tile = (size_t) (x->rows[at] >> out->side);
    const int32_t first = at;
    uint32_t *start = &starts_of(out, tile)[j];
    size_t to = fill ? out->begin[tile] + *start : 0;
    for (; at < x->starts[j + 1] && (size_t) (x->rows[at] >> out->side) == tile; at++) {
      if (!fill) continue;
      out->rows[to] = (uint16_t) (x->rows[at] & mask);
      out->values[to++] = x->values[at];
    }
    if (!fill) start[1] = (uint32_t) (at - first);
  }
}

static weft_status all_columns(weft_ctx *ctx, weft_pca_tiles *out, const weft_pca_panel *x, int fill)
{
  const int threads = weft_pca_threads_for_cells(ctx, (double) x->starts[x->p]);
  for (size_t first = 0; first < x->p; first += 1024) {
    const int64_t last = (int64_t) (first + 1024 < x->p ? first + 1024 : x->p);
    const weft_status st = weft_poll(ctx, 0, 0);
    if (st != WEFT_OK) return st;
    WEFT_PARALLEL_FOR(threads, static)
    for (int64_t j = (int64_t) first; j < last; j++) tile_column(out, x, (size_t) j, fill);
  }
  return WEFT_OK;
}

weft_status weft_pca_tile(weft_ctx *ctx, const weft_pca_panel *x, weft_arena *mem, weft_pca_tiles *out)
{
  weft_status st = WEFT_OK;
  const size_t stored = (size_t) x->starts[x->p];
  weft_pca_tiles t = { .n = x->n, .p = x->p, .side = side_for(x) };
  t.tiles = (x->n + ((size_t) 1 << t.side) - 1) >> t.side;
  WEFT_TAKE0(t.starts, mem, t.tiles * (t.p + 1));
  WEFT_TAKE(t.begin, mem, t.tiles + 1);
  WEFT_TAKE(t.rows, mem, stored + 1);
  WEFT_TAKE(t.values, mem, stored + 1);
  WEFT_TRY(all_columns(ctx, &t, x, 0));
  t.begin[0] = 0;
  for (size_t tile = 0; tile < t.tiles; tile++) {
    uint32_t *start = starts_of(&t, tile);
    for (size_t j = 0; j < t.p; j++) start[j + 1] += start[j];
    t.begin[tile + 1] = t.begin[tile] + start[t.p];
  }
  WEFT_TRY(all_columns(ctx, &t, x, 1));
  *out = t;
done:
  return st;
}

/* ---- products ---- */

/* Of one tile, columns from .. to - 1, with b vectors, a multiple of 4: u += S v, and out += S'u. */
typedef void (*tile_work)(const weft_pca_tiles *x, size_t tile, size_t from, size_t to, size_t b, const double *in,
                          double *out);
typedef struct { tile_work times, transposed; } tile_kernels;

/* `lanes` has `wide` numbers; `count` vectors out of b, 4 or 8, are summed at once. */
#define TILE_KERNELS(name, target, lanes, wide) \
  target static inline void name##_times_b(const weft_pca_tiles *x, size_t tile, size_t from, size_t to, \
                                           const size_t count, size_t b, const double *v, double *u) \
  { \
    const uint32_t *start = starts_of(x, tile); \
    const uint16_t *rows = x->rows + x->begin[tile]; \
    const double *values = x->values + x->begin[tile]; \
    for (size_t j = from; j < to; j++) { \
      lanes own[8 / wide]; \
      for (size_t l = 0; l < count / wide; l++) own[l] = *(const lanes *) (v + j * b + l * wide); \
      for (uint32_t i = start[j]; i < start[j + 1]; i++) { \
        lanes *row = (lanes *) (u + (size_t) rows[i] * b); \
        for (size_t l = 0; l < count / wide; l++) row[l] += own[l] * values[i]; \
      } \
    } \
  } \
  target static inline void name##_transposed_b(const weft_pca_tiles *x, size_t tile, size_t from, size_t to, \
                                                const size_t count, size_t b, const double *u, \
                                                double *out) \
  { \
    const uint32_t *start = starts_of(x, tile); \
    const uint16_t *rows = x->rows + x->begin[tile]; \
    const double *values = x->values + x->begin[tile]; \
    for (size_t j = from; j < to; j++) { \
      lanes even[8 / wide], odd[8 / wide]; \
      uint32_t i = start[j]; \
      for (size_t l = 0; l < count / wide; l++) even[l] = odd[l] = (lanes) { 0 }; \
      for (; i + 2 <= start[j + 1]; i += 2) { \
        const lanes *one = (const lanes *) (u + (size_t) rows[i] * b); \
        const lanes *other = (const lanes *) (u + (size_t) rows[i + 1] * b); \
        for (size_t l = 0; l < count / wide; l++) even[l] += one[l] * values[i]; \
        for (size_t l = 0; l < count / wide; l++) odd[l] += other[l] * values[i + 1]; \
      } \
      if (i < start[j + 1]) { \
        const lanes *one = (const lanes *) (u + (size_t) rows[i] * b); \
        for (size_t l = 0; l < count / wide; l++) even[l] += one[l] * values[i]; \
      } \
      for (size_t l = 0; l < count / wide; l++) *(lanes *) (out + j * b + l * wide) += even[l] + odd[l]; \
    } \
  } \
  target static void name##_times(const weft_pca_tiles *x, size_t tile, size_t from, size_t to, size_t b, \
                                  const double *in, double *out) \
  { \
    size_t l = 0; \
    for (; l + 8 <= b; l += 8) name##_times_b(x, tile, from, to, 8, b, in + l, out + l); \
    if (l < b) name##_times_b(x, tile, from, to, 4, b, in + l, out + l); \
  } \
  target static void name##_transposed(const weft_pca_tiles *x, size_t tile, size_t from, size_t to, size_t b, \
                                       const double *in, double *out) \
  { \
    size_t l = 0; \
    for (; l + 8 <= b; l += 8) name##_transposed_b(x, tile, from, to, 8, b, in + l, out + l); \
    if (l < b) name##_transposed_b(x, tile, from, to, 4, b, in + l, out + l); \
  } \
  static const tile_kernels name = { name##_times, name##_transposed };

#if defined(__GNUC__)
typedef double two_lanes __attribute__((vector_size(16), aligned(8)));
TILE_KERNELS(portable, , two_lanes, 2)
#else
typedef double one_lane;
TILE_KERNELS(portable, , one_lane, 1)
#endif
#if WEFT_SIMD_X86
typedef double four_lanes __attribute__((vector_size(32), aligned(8)));
TILE_KERNELS(avx2, WEFT_TARGET_AVX2, four_lanes, 4)
#endif

static const tile_kernels *kernels(void)
{
#if WEFT_SIMD_X86
  if (weft_simd_level() >= WEFT_SIMD_AVX2) return &avx2;
#endif
  return &portable;
}

/* Threads share tiles. */
weft_status weft_pca_tiles_times(weft_ctx *ctx, const weft_pca_tiles *x, const double *v, size_t b, double *out)
{
  const tile_kernels *k = kernels();
  const int threads = weft_pca_threads_for_cells(ctx, (double) x->begin[x->tiles] * (double) b);
  const int64_t tiles = (int64_t) x->tiles, at_once = 4 * (int64_t) ctx->threads;
  for (int64_t first = 0; first < tiles; first += at_once) {
    const int64_t last = first + at_once < tiles ? first + at_once : tiles;
    const weft_status st = weft_poll(ctx, 0, 0);
    if (st != WEFT_OK) return st;
    WEFT_PARALLEL_FOR(threads, dynamic)
    for (int64_t t = first; t < last; t++) {
      const size_t row = (size_t) t << x->side, next = row + ((size_t) 1 << x->side), end = next < x->n ? next : x->n;
      memset(out + row * b, 0, (end - row) * b * sizeof *out);
      k->times(x, (size_t) t, 0, x->p, b, v, out + row * b);
    }
  }
  return WEFT_OK;
}

/* Threads share runs of columns. */
weft_status weft_pca_tiles_transposed(weft_ctx *ctx, const weft_pca_tiles *x, const double *u, size_t b, double *out)
{
  const tile_kernels *k = kernels();
  const int threads = weft_pca_threads_for_cells(ctx, (double) x->begin[x->tiles] * (double) b);
  const int64_t runs = threads == 1 ? 1 : 4 * (int64_t) threads;
  for (size_t first = 0; first < x->tiles; first += 16) {
    const size_t last = first + 16 < x->tiles ? first + 16 : x->tiles;
    const weft_status st = weft_poll(ctx, 0, 0);
    if (st != WEFT_OK) return st;
    WEFT_PARALLEL_FOR(threads, dynamic)
    for (int64_t r = 0; r < runs; r++)
      for (size_t t = first; t < last; t++)
        k->transposed(x, t, x->p * (size_t) r / (size_t) runs, x->p * (size_t) (r + 1) / (size_t) runs, b,
                      u + (t << x->side) * b, out);
  }
  return WEFT_OK;
}
