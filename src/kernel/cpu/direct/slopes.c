/* Sums over all pairs of a kernel's values times differences: the twin of the device's (cuda/direct/slopes.cu), pair by
 * pair. On the CPU gradients are made of kernel sums (R/kernel-gradient.R), which trees, lines and meshes take. */
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "kernel/both/scalar.h"
#include "kernel/cpu/direct/direct.h"
#include "kernel/cpu/direct/slopes.h"

#define BATCH_WORK 2e8 /* dimensions of pairs between two polls, on each thread */

/* One query: sums[0] of w k, sums[1 + j] of w k (x - q)_j, sums[d + 1] of w k sum_j each_j (x - q)_j^2. */
static void slopes_of(const weft_kernel_task *task, const double *each, size_t i, double *sums)
{
  const size_t d = task->query.d;
  const double *q = task->query.x + i * d, inv_h2 = 1 / (task->h * task->h);
  memset(sums, 0, (d + 2) * sizeof *sums);
  for (size_t k = 0; k < task->reference.n; k++) {
    const double *x = task->reference.x + k * d;
    double s = 0, weighted = 0;
    if (weft_left_out(task, i, k)) continue;
    for (size_t j = 0; j < d; j++) {
      s += (x[j] - q[j]) * (x[j] - q[j]);
      weighted += (x[j] - q[j]) * (x[j] - q[j]) * each[j];
    }
    const double value = task->weights[k] * weft_kernel_of(task->kind, s * inv_h2, 0);
    sums[0] += value;
    for (size_t j = 0; j < d; j++) sums[1 + j] += value * (x[j] - q[j]);
    sums[d + 1] += value * weighted;
  }
}

weft_status weft_kernel_slopes(weft_ctx *ctx, const weft_kernel_task *task, const double *each, double *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t nq = task->query.n, columns = task->query.d + 2, threads = (size_t) ctx->threads;
  const double work = ((double) task->reference.n + 1) * (double) columns;
  const size_t batch = ((size_t) (BATCH_WORK / work) + 1) * threads;
  double *room;
  WEFT_TAKE(room, &mem, columns * threads);
  for (size_t start = 0; start < nq; start += batch) {
    const size_t end = nq - start < batch ? nq : start + batch;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) nq));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, work * (double) (end - start)), dynamic)
    for (int64_t i = (int64_t) start; i < (int64_t) end; i++) {
      double *sums = room + (size_t) WEFT_THREAD() * columns;
      slopes_of(task, each, (size_t) i, sums);
      for (size_t c = 0; c < columns; c++) out[c * nq + (size_t) i] = sums[c];
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* The twin of the device's (cuda/direct/gaussian.cu); errors are those of rounding. */
weft_status weft_kernel_gaussian(weft_ctx *ctx, const weft_kernel_task *task, const double *scale, int moved,
                                 double *out, double *slopes, double *bounds)
{
  weft_status st = WEFT_OK;
  const size_t nq = task->query.n, d = task->query.d;
  weft_arena mem = weft_arena_begin(ctx);
  weft_kernel_effort effort = { 0 };
  double *each, *sums;
  for (size_t i = 0; i < nq * 2; i++) bounds[i] = 1e-12;
  if (!scale) {
    WEFT_TRY(weft_kernel_direct(ctx, task, out, &effort));
    goto done;
  }
  WEFT_TAKE(each, &mem, d);
  WEFT_TAKE(sums, &mem, nq * (d + 2));
  memset(each, 0, d * sizeof *each);
  WEFT_TRY(weft_kernel_slopes(ctx, task, each, sums));
  memcpy(out, sums, nq * sizeof *out);
  for (size_t j = 0; j < d; j++)
    for (size_t i = 0; i < nq; i++)
      slopes[j * nq + i] = moved ? task->query.x[i * d + j] + sums[(j + 1) * nq + i] * scale[j] / sums[i]
                                 : sums[(j + 1) * nq + i] * scale[j];
done:
  weft_arena_end(&mem);
  return st;
}
