/* Sums with the queries divided among the devices of a call; see core/together/spread.h. */
#include <string.h>
#include "core/together/spread.h"
#include "kernel/kernel.h"
#include "kernel/cpu/spread.h"

#define RUN ((size_t) 4096) /* queries; a multiple of every kernel's block */

/* ---- direct sums ---- */

/* Runs of queries start at whole blocks of the kernels, so blocks are what they are on one device; how many references
 * a launch adds at once depends on the number of queries, so sums may differ in their last bits. */
typedef struct {
  const weft_kernel_ops *ops;
  const weft_kernel_task *task;
  const int32_t *own;
  int single, tensor, gaussian, moved;
  const double *slopes; /* as ops->slopes() takes them, or NULL */
  const double *scale;  /* the same of ops->gaussian() */
  double *gradient;
  size_t parts;
  double *out, *bound;
  weft_kernel_effort effort[WEFT_MOST_DEVICES];
} sum_job;

/* Direct sums of this part's share of the queries, whole runs of them, on its device; copies them to their place in
 * job->out. */
static weft_status sum_part(weft_ctx *ctx, size_t part, void *data)
{
  sum_job *job = data;
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_kernel_task own = *job->task;
  const size_t all = own.query.n, d = own.query.d, runs = (all + RUN - 1) / RUN;
  const size_t first = (size_t) weft_share_start(runs, part, job->parts) * RUN;
  size_t end = (size_t) weft_share_start(runs, part + 1, job->parts) * RUN;
  double *sums, *bounds;
  if (end > all) end = all;
  if (first >= end) return WEFT_OK;
  own.query.n = end - first;
  own.query.x += first * d;
  own.own_first = first;
  if (own.query.lo) own.query.lo += first * d;
  const size_t columns = job->slopes ? d + 2 : job->scale ? d + 1 : own.m;
  WEFT_TAKE(sums, &mem, own.query.n * columns);
  if (job->gaussian) {
    WEFT_TAKE(bounds, &mem, own.query.n * 2);
    WEFT_TRY(job->ops->gaussian(ctx, &own, job->scale, job->moved, sums, sums + own.query.n, bounds));
    for (int c = 0; c < 2; c++)
      memcpy(job->bound + c * all + first, bounds + c * own.query.n, own.query.n * sizeof *bounds);
  } else if (job->slopes)
    WEFT_TRY(job->ops->slopes(ctx, &own, job->slopes, sums));
  else if (job->single)
    WEFT_TRY(job->ops->single(ctx, &own, job->own ? job->own + first : NULL, job->tensor, sums, job->bound + first));
  else
    WEFT_TRY(job->ops->direct(ctx, &own, sums, &job->effort[part]));
  for (size_t c = 0; c < columns; c++)
    memcpy((c && job->scale ? job->gradient + (c - 1) * all : job->out + c * all) + first, sums + c * own.query.n,
           own.query.n * sizeof *sums);
done:
  weft_arena_end(&mem);
  return st;
}

static int one_device(const weft_ctx *ctx, const weft_kernel_task *task)
{
  return ctx->device_count == 1 || task->query.n <= RUN;
}

weft_status weft_kernel_direct_spread(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_task *task,
                                      double *out, weft_kernel_effort *effort)
{
  weft_status st = WEFT_OK;
  sum_job job = { .ops = ops, .task = task, .parts = (size_t) ctx->device_count, .out = out };
  if (one_device(ctx, task)) return ops->direct(ctx, task, out, effort);
  WEFT_TRY(weft_spread(ctx, sum_part, &job));
  for (size_t k = 0; k < job.parts; k++)
    effort->pairs += job.effort[k].pairs, effort->repeated += job.effort[k].repeated;
done:
  return st;
}

weft_status weft_kernel_single_spread(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_task *task,
                                      const int32_t *own, int tensor, double *out, double *bound)
{
  sum_job job = { .ops = ops,
                  .task = task,
                  .own = own,
                  .single = 1,
                  .tensor = tensor,
                  .parts = (size_t) ctx->device_count,
                  .out = out,
                  .bound = bound };
  if (one_device(ctx, task)) return ops->single(ctx, task, own, tensor, out, bound);
  return weft_spread(ctx, sum_part, &job);
}

weft_status weft_kernel_slopes_spread(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_task *task,
                                      const double *each, double *out)
{
  sum_job job = { .ops = ops, .task = task, .slopes = each, .parts = (size_t) ctx->device_count, .out = out };
  if (one_device(ctx, task)) return ops->slopes(ctx, task, each, out);
  return weft_spread(ctx, sum_part, &job);
}

weft_status weft_kernel_gaussian_spread(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_task *task,
                                        const double *scale, int moved, double *out, double *slopes, double *bounds)
{
  sum_job job = { .ops = ops,
                  .task = task,
                  .gaussian = 1,
                  .scale = scale,
                  .moved = moved,
                  .gradient = slopes,
                  .parts = (size_t) ctx->device_count,
                  .out = out,
                  .bound = bounds };
  if (one_device(ctx, task)) return ops->gaussian(ctx, task, scale, moved, out, slopes, bounds);
  return weft_spread(ctx, sum_part, &job);
}

/* ---- over a grid ---- */

typedef struct {
  const weft_kernel_ops *ops;
  const weft_kernel_task *task;
  double reach, *out;
  int done[WEFT_MOST_DEVICES];
  weft_kernel_effort effort[WEFT_MOST_DEVICES];
} grid_job;

static weft_status grid_part(weft_ctx *ctx, size_t part, void *data)
{
  grid_job *job = data;
  return job->ops->grid(ctx, job->task, job->reach, &job->done[part], job->out, &job->effort[part]);
}

weft_status weft_kernel_grid_spread(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_task *task,
                                    double reach, int *done, double *out, weft_kernel_effort *effort)
{
  weft_status st = WEFT_OK;
  grid_job job = { .ops = ops, .task = task, .reach = reach, .out = out };
  if (one_device(ctx, task)) return ops->grid(ctx, task, reach, done, out, effort);
  WEFT_TRY(weft_spread(ctx, grid_part, &job));
  *done = job.done[0];
  for (int k = 0; k < ctx->device_count; k++) {
    effort->pairs += job.effort[k].pairs, effort->nodes += job.effort[k].nodes,
        effort->repeated += job.effort[k].repeated;
  }
done:
  return st;
}
