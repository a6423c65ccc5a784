/* Exact sums of a task with a compact kernel over a grid: its points sent to all devices, the grid built
 * (grid.cu) and summed over (sum.cu). */
#include "core/together/exchange.h"
#include "core/together/spread.h"
#include "kernel/cuda/grid/grid.cuh"
#include "kernel/cuda/grid/sum.cuh"
#include "kernel/cuda/grid/task.cuh"

__global__ void sort_weights(const double *w, const uint32_t *order, int64_t n, int m, double *out)
{
  for (int64_t k = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; k < n * m; k += (int64_t) gridDim.x * blockDim.x)
    out[k] = w[(int64_t) order[k % n] * m + k / n];
}

__global__ void gather_rows(const double *columns, int64_t n, int d, double *rows)
{
  for (int64_t k = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; k < n * d; k += (int64_t) gridDim.x * blockDim.x)
    rows[k] = columns[k % d * n + k / d];
}

static int parts_of(const weft_ctx *ctx) { return ctx->meeting ? ctx->meeting->parts : 1; }

/* The same numbers for all parts: each part sends its share, and copies the others' from their devices. */
static weft_status send_numbers(weft_ctx *ctx, weft_device_arena *mem, const double *x, size_t count, double *out)
{
  weft_status st = WEFT_OK;
  const int parts = parts_of(ctx);
  const size_t first = weft_share_start(count, ctx->part, parts), end = weft_share_start(count, ctx->part + 1, parts);
  size_t starts[WEFT_MOST_DEVICES + 1];
  WEFT_TRY(weft_device_upload(mem, out + first, end - first, sizeof *x, weft_fill_doubles, x + first));
  for (int r = 0; r <= parts; r++) starts[r] = weft_share_start(count, r, parts) * sizeof *x;
  if (parts > 1) WEFT_TRY(weft_device_join_shares(mem, out, starts));
done:
  return st;
}

/* Sends the points to the device, a point's coordinates together, with low parts where there are any. *out and *out_lo
 * belong to mem. */
static weft_status send(weft_ctx *ctx, weft_device_arena *mem, const weft_points *p, int columns, double **out,
                        double **out_lo)
{
  weft_status st = WEFT_OK;
  double *rows, *lo = NULL;
  WEFT_DEVICE_TAKE(rows, mem, p->n * p->d);
  WEFT_TRY(send_numbers(ctx, mem, p->x, p->n * p->d, rows));
  if (columns && p->d > 1) {
    double *raw = rows;
    WEFT_DEVICE_TAKE(rows, mem, p->n * p->d);
    gather_rows<<<grid_for((double) p->n * p->d), 256, 0, mem->stream>>>(raw, (int64_t) p->n, (int) p->d, rows);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaStreamSynchronize(mem->stream));
    weft_device_drop(mem, raw);
  }
  if (p->lo) {
    WEFT_DEVICE_TAKE(lo, mem, p->n * p->d);
    WEFT_TRY(send_numbers(ctx, mem, p->lo, p->n * p->d, lo));
  }
  *out = rows, *out_lo = lo;
done:
  return st;
}

/* part: least, then greatest coordinate of the points of each block, dimension by dimension */
__global__ void __launch_bounds__(256) bound_rows(const double *rows, int64_t n, int d, double *part)
{
  __shared__ double least[256], greatest[256];
  const int t = threadIdx.x;
  for (int j = 0; j < d; j++) {
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = blockIdx.x * (int64_t) 256 + t; i < n; i += (int64_t) gridDim.x * 256)
      low = fmin(low, rows[i * d + j]), high = fmax(high, rows[i * d + j]);
    least[t] = low, greatest[t] = high;
    __syncthreads();
    for (int half = 128; half; half >>= 1) {
      if (t < half) least[t] = fmin(least[t], least[t + half]), greatest[t] = fmax(greatest[t], greatest[t + half]);
      __syncthreads();
    }
    if (!t)
      part[((int64_t) blockIdx.x * d + j) * 2] = least[0], part[((int64_t) blockIdx.x * d + j) * 2 + 1] = greatest[0];
    __syncthreads();
  }
}

#define BOUND_BLOCKS 264

/* Box of the references; queries may lie outside. */
static weft_status find_box(weft_ctx *ctx, weft_arena *host, weft_device_arena *mem, const double *rows, int64_t n,
                            int d, double *low, double *high)
{
  weft_status st = WEFT_OK;
  double *part, *parts;
  WEFT_TAKE(parts, host, BOUND_BLOCKS * 2 * d);
  WEFT_DEVICE_TAKE(part, mem, BOUND_BLOCKS * 2 * d);
  bound_rows<<<BOUND_BLOCKS, 256, 0, mem->stream>>>(rows, n, d, part);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaMemcpyAsync(parts, part, BOUND_BLOCKS * 2 * d * sizeof *part, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  weft_device_drop(mem, part);
  for (int j = 0; j < d; j++) low[j] = INFINITY, high[j] = -INFINITY;
  for (int k = 0; k < BOUND_BLOCKS * d; k++)
    low[k % d] = fmin(low[k % d], parts[2 * k]), high[k % d] = fmax(high[k % d], parts[2 * k + 1]);
done:
  return st;
}

/* The grid's sums for a task: sends points, builds the grid of the references and that of the queries, sums, and copies
 * this part's share of the results. *done_here = 0 where no grid suits, or logarithms are asked for. */
weft_status weft_kernel_grid_cuda(weft_ctx *ctx, const weft_kernel_task *task, double reach, int *done_here,
                                  double *out, weft_kernel_effort *effort)
{
  weft_status st = WEFT_OK;
  const size_t n = task->reference.n, nq = task->query.n, d = task->reference.d, m = task->m;
  const bool self = task->query.x == task->reference.x;
  grid_plan plan;
  grid_points query, reference;
  double *low, *high, *rows, *lo, *weights, *d_out, counts[3];
  size_t first, end;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  *done_here = 0;
  if (!n || !nq || n > INT32_MAX || nq > INT32_MAX || task->logarithm) goto done;
  WEFT_TAKE(low, &host, d);
  WEFT_TAKE(high, &host, d);
  WEFT_TRY(send(ctx, &mem, &task->reference, task->columns, &rows, &lo));
  WEFT_TRY(find_box(ctx, &host, &mem, rows, (int64_t) n, (int) d, low, high));
  if (!weft_grid_plan(&plan, n, d, low, high, reach)) goto done;
  memset(&query, 0, sizeof query), memset(&reference, 0, sizeof reference);
  WEFT_TRY(weft_grid_build(ctx, &mem, plan, (int64_t) n, rows, lo, &reference));
  if (task->weights) {
    WEFT_DEVICE_TAKE(weights, &mem, n * m);
    WEFT_DEVICE_TAKE(reference.weights, &mem, n * m);
    WEFT_TRY(send_numbers(ctx, &mem, task->weights, n * m, weights));
    sort_weights<<<grid_for((double) n * m), 256, 0, mem.stream>>>(weights, reference.order, (int64_t) n, (int) m,
                                                                   reference.weights);
    WEFT_CUDA(cudaGetLastError());
  }
  if (self)
    query = reference;
  else {
    WEFT_TRY(send(ctx, &mem, &task->query, task->columns, &rows, &lo));
    WEFT_TRY(weft_grid_build(ctx, &mem, plan, (int64_t) nq, rows, lo, &query));
  }
  WEFT_DEVICE_TAKE(d_out, &mem, nq * m);
  WEFT_TRY(weft_grid_sum(ctx, &mem, plan, task->kind, task->h, task->leave_one_out, query, reference, (int) m, d_out,
                         counts));
  first = weft_share_start(nq * m, ctx->part, parts_of(ctx)),
  end = weft_share_start(nq * m, ctx->part + 1, parts_of(ctx));
  WEFT_TRY(weft_device_download(&mem, out + first, d_out + first, (end - first) * sizeof *out));
  effort->pairs += 32 * counts[1], effort->nodes += counts[0], effort->repeated += counts[2];
  *done_here = 1;
done:
  weft_device_end(&mem);
  weft_arena_end(&host);
  return st;
}
