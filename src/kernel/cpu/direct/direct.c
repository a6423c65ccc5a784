/* Direct sums: every query meets every reference.
 *
 * The work is cut into items, a block of 32 queries by a chunk of references. Threads compute a batch of items; their
 * totals are then added in the items' order, so that the result does not depend on the number of threads. Within an
 * item, runs of 256 references are added without compensation, and the runs with it. */
#include "core/call/parallel.h"
#include "kernel/cpu/direct/block.h"
#include "kernel/cpu/direct/direct.h"

#define CHUNK 8192
#define BATCH_PAIRS 2e7 /* pairs x (dimensions + 8) / 16 that a thread computes between two polls: some 30 ms */
#define LOG_MIN 1e-280  /* sums below it are done again with a shifted exponent when logarithms are asked for */
#define ALLOWED 2e-13   /* of a sum that may be rounding near the boundary of a compact kernel */

typedef struct {
  const weft_kernel_task *task;
  weft_tile_sum tile;
  size_t blocks, chunks, block_doubles;
} direct;

static void item_sum(const direct *w, size_t item, double *memory, double *result)
{
  const weft_kernel_task *task = w->task;
  const size_t first = item / w->chunks * WEFT_TILE, from = item % w->chunks * CHUNK, m = task->m;
  const size_t rest = task->query.n - first, left = task->reference.n - from;
  weft_block_query block = weft_block_in(memory, task->reference.d, m, task->reference.lo != NULL);
  weft_block_load(&block, &task->query, first, rest < WEFT_TILE ? rest : WEFT_TILE, m);
  weft_block_add(&block, task, w->tile, from, left < CHUNK ? left : CHUNK);
  memcpy(result, block.total, 3 * m * WEFT_TILE * sizeof *result);
}

/* totals: blocks * 3 * m * WEFT_TILE, of total, rest and inside. */
static weft_status sum_items(weft_ctx *ctx, const direct *w, double *totals)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t m = w->task->m, size = 3 * m * WEFT_TILE, items = w->blocks * w->chunks;
  const size_t rows = w->task->reference.n < CHUNK ? w->task->reference.n : CHUNK;
  double cost = (double) rows * WEFT_TILE * (double) (w->task->reference.d + 8 + 2 * m) / 16;
  size_t batch = (size_t) (BATCH_PAIRS / cost) + 1;
  double *memory, *results;
  batch *= (size_t) ctx->threads;
  if (batch > items) batch = items;
  WEFT_TAKE(memory, &mem, (size_t) ctx->threads * w->block_doubles);
  WEFT_TAKE(results, &mem, batch * size);
  for (size_t start = 0; start < items; start += batch) {
    const size_t count = items - start < batch ? items - start : batch;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) items));
    WEFT_PARALLEL(weft_threads_worth(ctx->threads, (double) count * cost))
    {
      double *own = memory + (size_t) WEFT_THREAD() * w->block_doubles;
      WEFT_FOR(dynamic)
      for (size_t i = 0; i < count; i++) item_sum(w, start + i, own, results + i * size);
    }
    for (size_t i = 0; i < count; i++) {
      double *to = totals + (start + i) / w->chunks * size, *from = results + i * size;
      const size_t half = m * WEFT_TILE;
      for (size_t k = 0; k < half; k++) {
        weft_add_to(&to[k], &to[half + k], from[k]);
        to[half + k] += from[half + k];
        to[2 * half + k] += from[2 * half + k];
      }
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* One query again, pair by pair. With logarithms, exponents are relative to the least, so that nothing underflows. */
static void sum_one(const weft_kernel_task *task, size_t i, double *out)
{
  const size_t n = task->reference.n, m = task->m;
  double shift = 0;
  double sums[2 * 64];
  if (task->logarithm && weft_kernel_exponential(task->kind)) {
    double least = INFINITY;
    for (size_t k = 0; k < n; k++) {
      if (weft_left_out(task, i, k)) continue;
      double s = weft_square_distance(&task->query, i, &task->reference, k);
      if (s < least) least = s;
    }
    if (least < INFINITY) shift = weft_kernel_exponent(task->kind, least / (task->h * task->h));
  }
  for (size_t c = 0; c < m; c += 64) {
    const size_t width = m - c < 64 ? m - c : 64;
    memset(sums, 0, sizeof sums);
    for (size_t k = 0; k < n; k++) {
      if (weft_left_out(task, i, k)) continue;
      double value = weft_kernel_pair(task->kind, &task->query, i, &task->reference, k, task->h, shift);
      if (value == 0) continue;
      for (size_t j = 0; j < width; j++) weft_add_to(&sums[j], &sums[64 + j], task->weights[k * m + c + j] * value);
    }
    for (size_t j = 0; j < width; j++) {
      double sum = sums[j] + sums[64 + j];
      out[i + (c + j) * task->query.n] = task->logarithm ? log(sum) - shift : sum;
    }
  }
}

/* Lists the queries that need sum_one(). */
static size_t find_repeats(const direct *w, const double *totals, size_t *list)
{
  const weft_kernel_task *task = w->task;
  const size_t m = task->m, half = m * WEFT_TILE;
  size_t found = 0;
  for (size_t i = 0; i < task->query.n; i++) {
    const double *at = totals + i / WEFT_TILE * 3 * half;
    weft_block_query block;
    memset(&block, 0, sizeof block);
    block.total = (double *) at, block.inside = (double *) at + 2 * half;
    int repeat = weft_block_doubtful(&block, task, i % WEFT_TILE, ALLOWED);
    for (size_t c = 0; c < m && task->logarithm && weft_kernel_exponential(task->kind); c++)
      repeat |= at[c * WEFT_TILE + i % WEFT_TILE] < LOG_MIN;
    if (repeat) list[found++] = i;
  }
  return found;
}

weft_status weft_kernel_repeat(weft_ctx *ctx, const weft_kernel_task *task, const size_t *list, size_t count,
                               double *out)
{
  weft_status st = WEFT_OK;
  const size_t n = task->reference.n, d = task->reference.d;
  const size_t at_once = ((size_t) (BATCH_PAIRS / ((double) (n + 1) * (double) d)) + 1) * (size_t) ctx->threads;
  for (size_t start = 0; start < count; start += at_once) {
    const size_t end = count - start < at_once ? count : start + at_once;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) count));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) ((end - start) * n * d * 8)), dynamic)
    for (size_t i = start; i < end; i++) sum_one(task, list[i], out);
  }
done:
  return st;
}

/* Sums by tiles, then once more, pair by pair, those of queries whose rounding may be above what exact sums promise. */
weft_status weft_kernel_direct(weft_ctx *ctx, const weft_kernel_task *task, double *out, weft_kernel_effort *effort)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t nq = task->query.n, n = task->reference.n, m = task->m, half = m * WEFT_TILE;
  direct w = { task, weft_tile_variant(), (nq + WEFT_TILE - 1) / WEFT_TILE, n ? (n + CHUNK - 1) / CHUNK : 1,
               weft_block_size(task->reference.d, m) };
  double *totals;
  size_t *list, repeats;
  WEFT_TAKE0(totals, &mem, w.blocks * 3 * half);
  WEFT_TAKE(list, &mem, nq);
  if (n) WEFT_TRY(sum_items(ctx, &w, totals));
  for (size_t i = 0; i < nq; i++)
    for (size_t c = 0; c < m; c++) {
      const double *at = totals + i / WEFT_TILE * 3 * half + c * WEFT_TILE + i % WEFT_TILE;
      double sum = at[0] + at[half];
      out[i + c * nq] = task->logarithm ? log(sum) : sum;
    }
  repeats = find_repeats(&w, totals, list);
  WEFT_TRY(weft_kernel_repeat(ctx, task, list, repeats, out));
  effort->pairs += (double) nq * (double) n;
  effort->repeated += (double) repeats;
done:
  weft_arena_end(&mem);
  return st;
}
