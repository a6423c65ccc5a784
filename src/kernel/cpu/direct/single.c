/* Direct sums in single precision. Coordinates are taken relative to the middle of each block of 64 queries, in double,
 * before they are rounded, so that far clusters and outliers cost only the blocks they are in, and in units of the
 * power of two next to h, so that squares neither vanish nor overflow.
 *
 * The bound. With u = 2^-24, a rounded coordinate difference is off by at most u (|x - c| + |q - c| + |x - q|), so a
 * distance r <= its true value by 2u (r + 2ρ) at most, where ρ is the block's radius; the sum of squares, the scaling
 * and the kernel's own arithmetic add (d + 12) u r / 2 and 8 u of k. With D1 = max |k'| h and D2 = max r |k'| over r:
 *   |k error| <= u (4 ρ D1 / h + (2 + (d + 12) / 2) D2) + 8 u k
 * and adding RUN terms in a lane before they go on in double, at most RUN u more of Σ|w| k. What is relative to k is
 * known from the sum itself, which may be a small part of Σ|w|.
 *
 * For the Gaussian kernel, whose |k'| is r k, the first part is u (4 ρ r / h + (2 + (d + 12) / 2) r²) k for a pair, so
 * where sums are small a bound relative to them is less: with R >= √2, beyond which r k and r² k fall, at most
 *   u (4 ρ R / h + (2 + (d + 12) / 2) R²) Σ|w| (k + k(R))
 * of which R with k(R) a tenth of the mean of k makes little more than the sum itself.
 *
 * Coordinates with low parts, which are left out, are off by half a unit of their last place, in place of 4 u ρ. */
#include <stdlib.h>
#include "core/call/parallel.h"
#include "kernel/cpu/direct/block.h"
#include "kernel/cpu/direct/single.h"

#define RUN 128
#define VANISHES 1e-36 /* values below it are not floats with all their digits, or 0 */
#define BATCH_PAIRS 4e7

typedef struct {
  const weft_kernel_task *task;
  weft_tile_sum_single tile;
  weft_shift shift;
  const int32_t *own;
  double *out, *bound;
  const double *weight; /* of all references, by column */
  double slip;          /* of a distance, in bandwidths, by low parts that are left out */
} single;

/* Floats that one thread needs. */
static size_t memory_floats(size_t d, size_t m) { return WEFT_TILE_SINGLE * (d + m) + RUN * (d + m); }

/* The error of a column's sum `at`, over its weights `all`. radius: of the block, in bandwidths. */
static double bound_of(const single *w, double radius, double at, double all)
{
  const weft_kernel_row *kernel = weft_kernel_row_of(w->task->kind);
  const double u = 5.9604644775390625e-08, squares = 2 + ((double) w->task->reference.d + 12) / 2;
  const double apart = 4 * u * radius + w->slip, share = fmin(1.001 * at / all, 1);
  double distances = apart * kernel->d1 + u * squares * kernel->d2;
  if (w->task->kind == WEFT_GAUSSIAN && share > 0) {
    const double far = fmax(2 * log(10 / share), 2);
    distances = fmin(distances, (apart * sqrt(far) + u * squares * far) * (share + exp(-far / 2)) + VANISHES);
  }
  return distances + (8 + RUN) * u * share;
}

static int by_number(const void *a, const void *b)
{
  const int32_t x = *(const int32_t *) a, y = *(const int32_t *) b;
  return (x > y) - (x < y);
}

/* Reference k, which some query of the block leaves out, pair by pair in double for the others. */
static void add_left_out(const single *w, size_t first, size_t count, size_t k, double *total)
{
  const weft_kernel_task *task = w->task;
  for (size_t lane = 0; lane < count; lane++) {
    if ((size_t) w->own[first + lane] == k) continue;
    const double value = weft_kernel_pair(task->kind, &task->query, first + lane, &task->reference, k, task->h, 0);
    for (size_t c = 0; c < task->m; c++) total[c * WEFT_TILE_SINGLE + lane] += task->weights[k * task->m + c] * value;
  }
}

/* Sums of 64 queries over all references, in float around the middle of these queries, every run of references added to
 * doubles. Writes out and bound: the errors of distances grow with the block's radius, those of adding with the
 * greatest share of the weights. */
static void sum_block(const single *w, size_t first, float *memory, double *doubles)
{
  const weft_kernel_task *task = w->task;
  const size_t d = task->reference.d, m = task->m, n = task->reference.n, nq = task->query.n;
  const size_t count = nq - first < WEFT_TILE_SINGLE ? nq - first : WEFT_TILE_SINGLE;
  const double *from = task->query.x;
  const double scale = ldexp(1, -ilogb(task->h)), h = task->h * scale; /* from 1 to 2 */
  float *q = memory, *sum = q + WEFT_TILE_SINGLE * d, *x = sum + WEFT_TILE_SINGLE * m, *weight = x + RUN * d;
  double *middle = doubles, *total = doubles + RUN * d, radius = 0; /* the middle RUN times */
  for (size_t j = 0; j < d; j++) {
    double low = INFINITY, high = -INFINITY;
    for (size_t lane = 0; lane < count; lane++) {
      double at = from[(first + lane) * d + j];
      low = at < low ? at : low, high = at > high ? at : high;
    }
    middle[j] = low + (high - low) / 2;
    radius += (high - low) / task->h * ((high - low) / task->h) / 4;
    for (size_t lane = 0; lane < WEFT_TILE_SINGLE; lane++)
      q[j * WEFT_TILE_SINGLE + lane] =
          (float) ((from[(first + (lane < count ? lane : count - 1)) * d + j] - middle[j]) * scale);
  }
  for (size_t k = d; k < RUN * d; k++) middle[k] = middle[k - d];
  memset(total, 0, m * WEFT_TILE_SINGLE * sizeof *total);
  int32_t left_out[WEFT_TILE_SINGLE];
  size_t next = 0, out = w->own ? count : 0;
  if (out) memcpy(left_out, w->own + first, count * sizeof *left_out);
  qsort(left_out, out, sizeof *left_out, by_number);
  for (size_t start = 0; start < n; start += RUN) {
    const size_t rows = n - start < RUN ? n - start : RUN;
    w->shift(task->reference.x + start * d, middle, scale, rows * d, x);
    for (size_t k = 0; k < rows * m; k++) weight[k] = (float) task->weights[start * m + k];
    for (; next < out && (size_t) left_out[next] < start + rows; next++) {
      const size_t k = (size_t) left_out[next];
      if (next && left_out[next - 1] == left_out[next]) continue;
      memset(weight + (k - start) * m, 0, m * sizeof *weight);
      add_left_out(w, first, count, k, total);
    }
    memset(sum, 0, m * WEFT_TILE_SINGLE * sizeof *sum);
    weft_tile_single tile = { q, x, weight, d, m, rows, (float) (1 / (h * h)), sum };
    w->tile(&tile, task->kind);
    for (size_t i = 0; i < m * WEFT_TILE_SINGLE; i++) total[i] += (double) sum[i];
  }
  for (size_t lane = 0; lane < count; lane++) {
    double bound = 0;
    for (size_t c = 0; c < m; c++) {
      const double sum = total[c * WEFT_TILE_SINGLE + lane];
      if (w->weight[c] > 0) bound = fmax(bound, bound_of(w, sqrt(radius), sum, w->weight[c]));
      w->out[first + lane + c * nq] = sum;
    }
    w->bound[first + lane] = bound;
  }
}

/* The distances' errors by low parts: half a unit in the last place of each coordinate of either point. */
static double slip_of(const weft_kernel_task *task)
{
  const weft_points *both[] = { &task->query, &task->reference };
  double reach = 0;
  for (size_t k = 0; k < 2; k++)
    for (size_t i = 0; both[k]->lo && i < both[k]->n * both[k]->d; i++) reach = fmax(reach, fabs(both[k]->x[i]));
  return 2.3e-16 * reach * sqrt((double) task->reference.d) / task->h;
}

/* Blocks of 64 queries, which threads share. `tensor` is for devices and has no effect here. */
weft_status weft_kernel_direct_single(weft_ctx *ctx, const weft_kernel_task *task, const int32_t *own, int tensor,
                                      double *out, double *bound)
{
  weft_status st = WEFT_OK;
  (void) tensor;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t d = task->reference.d, m = task->m, nq = task->query.n, threads = (size_t) ctx->threads;
  const size_t blocks = (nq + WEFT_TILE_SINGLE - 1) / WEFT_TILE_SINGLE, doubles_each = RUN * d + m * WEFT_TILE_SINGLE;
  double *weight;
  const double cost = ((double) task->reference.n + 1) * WEFT_TILE_SINGLE * (double) (d + 8) / 16;
  const size_t batch = ((size_t) (BATCH_PAIRS / cost) + 1) * threads;
  float *memory;
  double *doubles;
  WEFT_TAKE0(weight, &mem, m);
  for (size_t i = 0; i < task->reference.n; i++)
    for (size_t c = 0; c < m; c++) weight[c] += task->weights[i * m + c];
  const single w = { task, weft_tile_single_variant(), weft_shift_variant(), own, out, bound, weight, slip_of(task) };
  WEFT_TAKE(memory, &mem, memory_floats(d, m) * threads);
  WEFT_TAKE(doubles, &mem, doubles_each * threads);
  for (size_t start = 0; start < blocks; start += batch) {
    const size_t end = blocks - start < batch ? blocks : start + batch;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) blocks));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - start) * cost), dynamic)
    for (size_t b = start; b < end; b++)
      sum_block(&w, b * WEFT_TILE_SINGLE, memory + (size_t) WEFT_THREAD() * memory_floats(d, m),
                doubles + (size_t) WEFT_THREAD() * doubles_each);
  }
done:
  weft_arena_end(&mem);
  return st;
}
