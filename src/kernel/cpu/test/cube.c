/* Sums over points made from a key: the CPU's twin of cube.cu, pair by pair, for small numbers of points;
 * and the call on several devices. */
#include <string.h>
#include "core/numbers/philox.h"
#include "core/together/spread.h"
#include "kernel/both/test/cube.h"
#include "kernel/cpu/direct/direct.h"
#include "kernel/both/mesh.h"

/* The CPU's cube: makes the points and sums them directly; see cube.h for what the job gets. */
weft_status weft_kernel_cube(weft_ctx *ctx, const weft_kernel_cube_job *job)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t n = job->n, d = job->d, step = n / job->samples, size = 2 * job->samples + 4;
  double *x, *ones, *sums;
  WEFT_TAKE(x, &mem, n * d);
  WEFT_TAKE(ones, &mem, n);
  WEFT_TAKE(sums, &mem, n);
  for (size_t i = 0; i < n; i++) {
    ones[i] = 1;
    for (size_t j = 0; j < d; j++)
      x[i * d + j] =
          (double) weft_kernel_cube_at(weft_philox(job->key, i, WEFT_STREAM_CUBE, (uint32_t) (j / 4)).v[j & 3]);
  }
  memset(job->seconds, 0, (5 + job->bandwidths) * sizeof *job->seconds);
  for (size_t k = 0; k < job->bandwidths; k++) {
    weft_kernel_effort effort = { 0 };
    const weft_kernel_task task = { .kind = job->kind,
                                    .h = job->h[k],
                                    .query = { n, d, x, NULL },
                                    .reference = { n, d, x, NULL },
                                    .weights = ones,
                                    .m = 1,
                                    .confidence = 1 };
    double *at = job->out + k * size, total = 0;
    WEFT_TRY(weft_kernel_direct(ctx, &task, sums, &effort));
    for (size_t i = 0; i < n; i++) total += sums[i] / (double) n;
    for (size_t c = 0; c < job->samples; c++) at[c] = at[job->samples + c] = sums[c * step];
    at[2 * job->samples] = total;
    at[2 * job->samples + 1] = at[2 * job->samples + 2] = 0, at[2 * job->samples + 3] = effort.pairs;
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* The CPU's cube_mesh: makes the points, sums them over the job's mesh, and the samples directly. */
weft_status weft_kernel_cube_mesh(weft_ctx *ctx, const weft_kernel_cube_mesh_job *job)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t n = job->n, d = job->d, step = n / job->samples;
  const double total = (double) n;
  weft_kernel_effort effort = { 0 };
  double *x, *q, *ones, *sums;
  WEFT_TAKE(x, &mem, n * d);
  WEFT_TAKE(q, &mem, job->samples * d);
  WEFT_TAKE(ones, &mem, n);
  WEFT_TAKE(sums, &mem, n);
  for (size_t i = 0; i < n; i++) {
    const weft_u32x4 word = weft_philox(job->key, i, WEFT_STREAM_CUBE, 0);
    ones[i] = 1;
    for (size_t j = 0; j < d; j++) x[i * d + j] = (double) weft_kernel_cube_at(word.v[j]);
  }
  for (size_t c = 0; c < job->samples; c++) memcpy(q + c * d, x + c * step * d, d * sizeof *q);
  memset(job->seconds, 0, 5 * sizeof *job->seconds);
  weft_kernel_task task = { .kind = WEFT_GAUSSIAN,
                            .h = job->h,
                            .query = { n, d, x, NULL },
                            .reference = { n, d, x, NULL },
                            .weights = ones,
                            .m = 1,
                            .confidence = 1 };
  WEFT_TRY(weft_kernel_mesh_sums(ctx, &task, job->mesh, &total, sums, job->rounding));
  for (size_t c = 0; c < job->samples; c++) job->out[c] = sums[c * step];
  task.query = (weft_points){ job->samples, d, q, NULL };
  WEFT_TRY(weft_kernel_direct(ctx, &task, job->out + job->samples, &effort));
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- on several devices ---- */

typedef struct {
  const weft_kernel_ops *ops;
  weft_kernel_cube_job part[WEFT_MOST_DEVICES];
} cube_job;

static weft_status cube_part(weft_ctx *ctx, size_t part, void *data)
{
  cube_job *job = data;
  return job->ops->cube(ctx, &job->part[part]);
}

/* All devices work on the first job's sums; the others have numbers of their own for what they did, which are
 * added up. */
weft_status weft_kernel_cube_spread(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_cube_job *job)
{
  if (ctx->device_count == 1 || ops->cube == weft_kernel_cube) return ops->cube(ctx, job);
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t size = 2 * job->samples + 4;
  cube_job jobs = { .ops = ops };
  for (int k = 0; k < ctx->device_count; k++) {
    jobs.part[k] = *job;
    if (!k) continue;
    WEFT_TAKE(jobs.part[k].seconds, &mem, 5 + job->bandwidths);
    WEFT_TAKE(jobs.part[k].out, &mem, size * job->bandwidths);
  }
  WEFT_TRY(weft_spread(ctx, cube_part, &jobs));
  for (int k = 1; k < ctx->device_count; k++) /* all have the sums, each what it did for them */
    for (size_t b = 0; b < job->bandwidths; b++)
      for (size_t c = size - 3; c < size; c++) job->out[b * size + c] += jobs.part[k].out[b * size + c];
done:
  weft_arena_end(&mem);
  return st;
}
