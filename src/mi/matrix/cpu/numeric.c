/* All pairs of numeric columns on the CPU: threads share tiles of pairs. */
/* Build: shared. */
#include <string.h>
#include "core/call/parallel.h"
#include "mi/matrix/both/numeric.h"
#include "mi/matrix/both/ksg.h"
#include "core/numbers/loops.h"
#include "mi/matrix/cpu/kendall.h"
#include "mi/matrix/both/numeric_columns.h"

#define TILE 32                /* columns per side: a tile's columns stay in the second-level cache */
#define BLOCK_A WEFT_DOT_SPARE /* columns times columns in registers */
#define BLOCK_B 2
#define BATCH_SECONDS 0.03

typedef double lanes __attribute__((vector_size(8 * WEFT_DOT_LANES), aligned(8)));

/* ---- correlations ---- */

/* rho[a + b * BLOCK_A] of BLOCK_A columns from `a` with BLOCK_B from `b`, `stride` apart. */
INLINE void dot_block(const double *a, const double *b, size_t stride, double *rho)
{
  lanes sum[BLOCK_A][BLOCK_B];
  memset(sum, 0, sizeof sum);
  for (size_t r = 0; r < stride; r += WEFT_DOT_LANES) {
    lanes x[BLOCK_A], y[BLOCK_B];
    WEFT_UNROLLED
    for (int s = 0; s < BLOCK_A; s++) x[s] = *(const lanes *) (a + (size_t) s * stride + r);
    WEFT_UNROLLED
    for (int t = 0; t < BLOCK_B; t++) y[t] = *(const lanes *) (b + (size_t) t * stride + r);
    WEFT_UNROLLED
    for (int s = 0; s < BLOCK_A; s++) {
      WEFT_UNROLLED
      for (int t = 0; t < BLOCK_B; t++) sum[s][t] += x[s] * y[t];
    }
  }
  WEFT_UNROLLED
  for (int s = 0; s < BLOCK_A; s++) {
    WEFT_UNROLLED
    for (int t = 0; t < BLOCK_B; t++) {
      double part[WEFT_DOT_LANES];
      memcpy(part, &sum[s][t], sizeof part);
      rho[s + t * BLOCK_A] = weft_dot_tree(part);
    }
  }
}

#define DOTS(name, target) \
  target static void dots_##name(const double *a, const double *b, size_t stride, double *rho) \
  { \
    dot_block(a, b, stride, rho); \
  }
WEFT_VARIANTS(DOTS)

typedef void dot_variant(const double *, const double *, size_t, double *);

typedef struct {
  const weft_mi_ready *ready;
  weft_mi_tiles tiles;
  dot_variant *dots;
  double *out;
} job;

/* Information of a tile's pairs from dot products of standardised columns. Columns with missing values are left out; a
 * constant one says nothing. */
static void correlate_tile(const job *w, size_t index)
{
  const weft_mi_ready *ready = w->ready;
  size_t i0, i1, j0, j1;
  if (!weft_mi_tile(&w->tiles, index, &i0, &i1, &j0, &j1)) return;
  for (size_t i = i0; i < i1; i += BLOCK_A)
    for (size_t j = j0; j < j1; j += BLOCK_B) {
      double rho[BLOCK_A * BLOCK_B];
      w->dots(ready->z + i * ready->stride, ready->z + j * ready->stride, ready->stride, rho);
      for (int s = 0; s < BLOCK_A; s++)
        for (int t = 0; t < BLOCK_B; t++) {
          const size_t u = i + (size_t) s, v = j + (size_t) t;
          if (u >= i1 || v >= j1 || (!ready->data->split && u >= v)) continue;
          if (ready->columns[u].incomplete || ready->columns[v].incomplete) continue;
          const int constant = ready->columns[u].constant || ready->columns[v].constant;
          weft_mi_put(ready->data, w->out, u, v, constant ? 0 : weft_mi_of_rho(rho[s + t * BLOCK_A]));
        }
    }
}

/* ---- KSG ---- */

static void ksg_tile(const job *w, size_t index, weft_mi_scratch *scratch)
{
  const weft_mi_ready *ready = w->ready;
  const size_t n = ready->data->n;
  size_t i0, i1, j0, j1;
  if (!weft_mi_tile(&w->tiles, index, &i0, &i1, &j0, &j1)) return;
  weft_ksg_work work = { scratch->distance, scratch->nearest, scratch->found };
  for (size_t i = i0; i < i1; i++) {
    const uint32_t *order = ready->order + i * n;
    if (!ready->columns[i].incomplete)
      for (size_t t = 0; t < n; t++) scratch->near_x[t] = ready->near[i * n + order[t]];
    for (size_t j = ready->data->split || j0 > i ? j0 : i + 1; j < j1; j++) {
      const weft_mi_column *a = &ready->columns[i], *b = &ready->columns[j];
      if (a->incomplete || b->incomplete) continue;
      if (a->constant || b->constant) {
        weft_mi_put(ready->data, w->out, i, j, 0);
        continue;
      }
      const double *u = ready->scaled + j * n, *near = ready->near + j * n;
      for (size_t t = 0; t < n; t++) {
        scratch->y[t] = u[order[t]];
        scratch->near_y[t] = near[order[t]];
      }
      weft_ksg_pair pair = { n,
                             ready->data->k,
                             ready->sorted + i * n,
                             scratch->y,
                             ready->sorted + j * n,
                             scratch->near_x,
                             scratch->near_y,
                             a->inverse_sd,
                             b->inverse_sd,
                             a->slack,
                             b->slack };
      weft_mi_put(ready->data, w->out, i, j,
                  weft_ksg_bits_of_pair(&pair, ready->psi, ready->shifted, &work, scratch->counts));
    }
  }
}

/* ---- tiles ---- */

static void incomplete_tile(const job *w, size_t index, weft_mi_scratch *scratch)
{
  const weft_mi_ready *ready = w->ready;
  size_t i0, i1, j0, j1;
  if (!weft_mi_tile(&w->tiles, index, &i0, &i1, &j0, &j1)) return;
  for (size_t i = i0; i < i1; i++)
    for (size_t j = ready->data->split || j0 > i ? j0 : i + 1; j < j1; j++)
      if (ready->columns[i].incomplete || ready->columns[j].incomplete)
        weft_mi_put(ready->data, w->out, i, j, weft_mi_incomplete_pair(ready, i, j, scratch));
}

static int is_ksg(const weft_mi_ready *ready) { return weft_mi_way(ready->data->estimator) == WEFT_MI_NEIGHBOURS; }

/* Nanoseconds that a pair takes, roughly: decides how much work is done between two polls. */
static double pair_cost(const weft_mi_ready *ready)
{
  const double n = (double) ready->data->n;
  return (is_ksg(ready) ? n * (100 + 2 * ready->data->k) : n / 4 + 20) + (ready->any_incomplete ? 60 * n : 0);
}

/* Goes through all tiles, threads sharing them, with a poll after some 30 ms of each thread's work. only_incomplete:
 * only pairs with missing values, since a device has done the others. */
static weft_status all_tiles(weft_ctx *ctx, const weft_mi_ready *ready, double *out, int only_incomplete)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const double tile_pairs = BATCH_SECONDS * 1e9 / pair_cost(ready);
  const size_t side = tile_pairs >= TILE * TILE ? TILE : tile_pairs >= 64 ? 8 : 1;
  job w = { ready, weft_mi_tiles_of(ready->data, side), WEFT_VARIANT_HERE(dots), out };
  const size_t total = w.tiles.rows * w.tiles.columns;
  const size_t batch = (size_t) ((double) ctx->threads * (1 + tile_pairs / (double) (side * side)));
  weft_mi_scratch *scratch;
  WEFT_TAKE0(scratch, &mem, (size_t) ctx->threads);
  if (is_ksg(ready) || ready->any_incomplete)
    for (int thread = 0; thread < ctx->threads; thread++)
      WEFT_TRY(weft_mi_scratch_take(&mem, ready->data->n, &scratch[thread]));
  for (size_t first = 0; first < total; first += batch) {
    const int64_t end = (int64_t) (total - first < batch ? total : first + batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) total));
    const double all = (double) ready->data->p * (double) ready->data->p; /* tiles at the edges are not full */
    const double pairs = fmin(all, (double) (end - (int64_t) first) * (double) (side * side));
    WEFT_PARALLEL(weft_threads_worth(ctx->threads, pairs * pair_cost(ready)))
    {
      weft_mi_scratch *own = &scratch[WEFT_THREAD()];
      WEFT_FOR(dynamic)
      for (int64_t index = (int64_t) first; index < end; index++) {
        if (!only_incomplete && is_ksg(ready))
          ksg_tile(&w, (size_t) index, own);
        else if (!only_incomplete)
          correlate_tile(&w, (size_t) index);
        if (ready->any_incomplete) incomplete_tile(&w, (size_t) index, own);
      }
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_mi_incomplete_pairs(weft_ctx *ctx, const weft_mi_ready *ready, double *out)
{
  return ready->any_incomplete ? all_tiles(ctx, ready, out, 1) : WEFT_OK;
}

/* Zeros, written by all threads: most of the time is spent by the operating system on providing pages. */
static weft_status clear(weft_ctx *ctx, double *out, size_t count)
{
  weft_status st = WEFT_OK;
  const size_t piece = (size_t) 1 << 18, batch = piece * 16 * (size_t) ctx->threads;
  for (size_t first = 0; first < count; first += batch) {
    const int64_t end = (int64_t) (count - first < batch ? count : first + batch);
    WEFT_TRY(weft_poll(ctx, 0, 1));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) end - (double) first), static)
    for (int64_t at = (int64_t) first; at < end; at += (int64_t) piece)
      memset(out + at, 0, ((size_t) (end - at) < piece ? (size_t) (end - at) : piece) * sizeof *out);
  }
done:
  return st;
}

/* weft_mi_ops.numeric on the CPU: Kendall's tau by bit planes, the others from columns that are prepared once. */
weft_status weft_mi_numeric_cpu(weft_ctx *ctx, const weft_mi_numeric *data, double *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_mi_ready ready;
  const size_t rows = data->split ? data->split : data->p, columns = data->split ? data->p - data->split : data->p;
  WEFT_TRY(clear(ctx, out, rows * columns));
  if (data->n < 2 || !rows || !columns) goto done;
  switch (weft_mi_way(data->estimator)) {
  case WEFT_MI_KENDALLS_TAU: WEFT_TRY(weft_mi_kendall(ctx, data, out)); break;
  case WEFT_MI_CORRELATION:
  case WEFT_MI_NEIGHBOURS:
    WEFT_TRY(weft_mi_make_ready(ctx, &mem, data, &ready));
    WEFT_TRY(all_tiles(ctx, &ready, out, 0));
    break;
  }
done:
  weft_arena_end(&mem);
  return st;
}
