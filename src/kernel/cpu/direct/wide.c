/* Direct sums for many bandwidths in one pass: a distance is computed once, and only the kernel's value for each
 * bandwidth, in float. Blocks of 64 queries meet runs of 128 references, whose distances stay in the cache.
 *
 * Values of exponential kernels are relative to the value of the nearest reference so far; where a run has a nearer
 * one, the sums before it are scaled. So a narrow bandwidth, for which all values would vanish even in double, still
 * gives ratios of sums. Sums of a run are floats, their totals doubles. */
#include <math.h>
#include <string.h>
#include "core/call/parallel.h"
#include "kernel/cpu/direct/tile_portable.h"
#include "kernel/cpu/direct/wide.h"

#define RUN 128
#define FAR 1e20f /* squared: beyond every kernel with an end or an exponent; the formulas are finite there */
#define BATCH_PAIRS 4e7

typedef struct {
  const weft_kernel_task *task;
  size_t bandwidths;
  weft_sum_squares squares;
  weft_tile_sum_wide tile;
  const float *inv_h2, *weights;
  double *out, *shift;
} wide;

typedef struct {
  double *q, *total;             /* d * 64; bandwidths * 2 * 64 */
  float *square, *sum, *shift;   /* RUN * 64; bandwidths * 2 * 64; bandwidths * 64 */
  float *here, *least;           /* 64 each: squared distances of the nearest of the run, and of all so far */
  int64_t own[WEFT_TILE_SINGLE]; /* or -1 */
} block;

static void load(const wide *w, block *b, size_t first, size_t count)
{
  const size_t d = w->task->query.d;
  for (size_t lane = 0; lane < WEFT_TILE_SINGLE; lane++) {
    const size_t i = first + (lane < count ? lane : count - 1);
    for (size_t j = 0; j < d; j++) b->q[j * WEFT_TILE_SINGLE + lane] = w->task->query.x[i * d + j];
    b->own[lane] = w->task->own ? w->task->own[i] : -1;
    b->least[lane] = INFINITY;
  }
  memset(b->total, 0, 2 * w->bandwidths * WEFT_TILE_SINGLE * sizeof *b->total);
  memset(b->shift, 0, w->bandwidths * WEFT_TILE_SINGLE * sizeof *b->shift);
}

/* Makes the exponents of lane's values relative to the run's nearest reference. */
static void come_nearer(const wide *w, block *b, size_t lane)
{
  for (size_t k = 0; k < w->bandwidths; k++) {
    float *shift = b->shift + k * WEFT_TILE_SINGLE + lane;
    const float now = (float) weft_kernel_exponent(w->task->kind, (double) (b->here[lane] * w->inv_h2[k]));
    const double by = b->least[lane] < INFINITY ? exp((double) now - (double) *shift) : 0;
    b->total[2 * k * WEFT_TILE_SINGLE + lane] *= by;
    b->total[(2 * k + 1) * WEFT_TILE_SINGLE + lane] *= by;
    *shift = now;
  }
  b->least[lane] = b->here[lane];
}

static void sum_block(const wide *w, size_t first, block *b)
{
  const weft_kernel_task *task = w->task;
  const size_t n = task->reference.n, d = task->reference.d, nq = task->query.n;
  const size_t count = nq - first < WEFT_TILE_SINGLE ? nq - first : WEFT_TILE_SINGLE;
  const int exponential = weft_kernel_exponential(task->kind), ends = weft_kernel_compact(task->kind);
  load(w, b, first, count);
  for (size_t start = 0; start < n; start += RUN) {
    const size_t rows = n - start < RUN ? n - start : RUN;
    const weft_tile_squares squares = { .q = b->q,
                                        .x = task->reference.x + start * d,
                                        .d = d,
                                        .count = rows,
                                        .first = (int64_t) start,
                                        .own = b->own,
                                        .far = exponential || ends ? FAR : INFINITY,
                                        .square = b->square,
                                        .least = b->here };
    w->squares(&squares);
    for (size_t lane = 0; lane < WEFT_TILE_SINGLE && exponential; lane++)
      if (b->here[lane] < b->least[lane]) come_nearer(w, b, lane);
    const weft_tile_wide tile = { b->square, w->weights + 2 * start, w->inv_h2, b->shift, rows, w->bandwidths, b->sum };
    w->tile(&tile, task->kind);
    for (size_t i = 0; i < 2 * w->bandwidths * WEFT_TILE_SINGLE; i++) b->total[i] += (double) b->sum[i];
  }
  for (size_t lane = 0; lane < count; lane++)
    for (size_t k = 0; k < w->bandwidths; k++) {
      for (size_t c = 2 * k; c < 2 * k + 2; c++) w->out[first + lane + c * nq] = b->total[c * WEFT_TILE_SINGLE + lane];
      w->shift[first + lane + k * nq] = (double) b->shift[k * WEFT_TILE_SINGLE + lane];
    }
}

weft_status weft_kernel_direct_wide(weft_ctx *ctx, const weft_kernel_task *task, const double *h, size_t bandwidths,
                                    double *out, double *shift)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t d = task->reference.d, n = task->reference.n, threads = (size_t) ctx->threads;
  const size_t blocks = (task->query.n + WEFT_TILE_SINGLE - 1) / WEFT_TILE_SINGLE;
  const double cost = ((double) n + 1) * WEFT_TILE_SINGLE * (2 * (double) d + 12 * (double) bandwidths) / 16;
  const size_t batch = ((size_t) (BATCH_PAIRS / cost) + 1) * threads;
  block *each;
  float *inv_h2, *weights;
  WEFT_TAKE(inv_h2, &mem, bandwidths);
  WEFT_TAKE(weights, &mem, 2 * n);
  WEFT_TAKE(each, &mem, threads);
  for (size_t k = 0; k < bandwidths; k++) inv_h2[k] = (float) (1 / (h[k] * h[k]));
  for (size_t i = 0; i < 2 * n; i++) weights[i] = (float) task->weights[i];
  for (size_t t = 0; t < threads; t++) {
    WEFT_TAKE(each[t].q, &mem, d * WEFT_TILE_SINGLE);
    WEFT_TAKE(each[t].total, &mem, 2 * bandwidths * WEFT_TILE_SINGLE);
    WEFT_TAKE(each[t].square, &mem, RUN * WEFT_TILE_SINGLE);
    WEFT_TAKE(each[t].sum, &mem, 2 * bandwidths * WEFT_TILE_SINGLE);
    WEFT_TAKE(each[t].shift, &mem, bandwidths * WEFT_TILE_SINGLE);
    WEFT_TAKE(each[t].here, &mem, WEFT_TILE_SINGLE);
    WEFT_TAKE(each[t].least, &mem, WEFT_TILE_SINGLE);
  }
  const wide w = { task, bandwidths, weft_squares_variant(), weft_wide_variant(), inv_h2, weights, out, shift };
  for (size_t start = 0; start < blocks; start += batch) {
    const size_t end = blocks - start < batch ? blocks : start + batch;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) blocks));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - start) * cost), dynamic)
    for (size_t b = start; b < end; b++) sum_block(&w, b * WEFT_TILE_SINGLE, each + WEFT_THREAD());
  }
done:
  weft_arena_end(&mem);
  return st;
}
