/* Sums over all pairs of a kernel's values times differences, in double precision on the device: what gradients of
 * kernel sums are made of. A thread has a query, its coordinates and its sums in registers; a block of 128 goes through
 * a chunk of references, 32 at a time in shared memory. A pair costs 3 d operations and a value of the kernel.
 * Differences are taken before they are multiplied, so nothing is lost to cancellation, however far from 0 the points
 * are. */
#include "kernel/cuda/host.cuh"
#include "kernel/cuda/direct/slopes.cuh"

#define SLOPE_THREADS 128
#define SLOPE_ROWS 32
#define SLOPE_QUERIES 16384 /* of a launch at most, and of its sums of chunks */
#define SLOPE_CHUNKS 32
#define SLOPE_SLAB ((int64_t) 1 << 20) /* references of a launch: with a launch's queries 1.7e10 pairs */

struct slope_args {
  const double *query, *reference, *weights, *each; /* point by point; each: d, what squares are multiplied with */
  int64_t first, count, queries;                    /* queries of this launch, and all */
  int64_t rows, chunk;                              /* references of this slab */
  int64_t omit;                                     /* query i leaves reference i - omit out; INT64_MIN: none does */
  int d;
  double inv_h2;
  double *partial; /* (chunk * (d + 2) + column) * SLOPE_QUERIES + query */
};

/* D: dimensions, with zeros beyond args.d. SQUARES: their sum is wanted. */
template <int KIND, int D, bool SQUARES>
__global__ void __launch_bounds__(SLOPE_THREADS) sum_slopes(const slope_args args)
{
  __shared__ double x[SLOPE_ROWS * D], w[SLOPE_ROWS];
  const int64_t local = blockIdx.y * (int64_t) SLOPE_THREADS + threadIdx.x, own = args.first + local;
  const int64_t from = blockIdx.x * args.chunk, end = from + args.chunk < args.rows ? from + args.chunk : args.rows;
  const int64_t left_out = args.omit == INT64_MIN ? -1 : own - args.omit;
  double q[D], each[D], sum[D], total = 0, squares = 0;
#pragma unroll
  for (int j = 0; j < D; j++) {
    q[j] = local < args.count && j < args.d ? args.query[own * args.d + j] : 0;
    each[j] = SQUARES && j < args.d ? args.each[j] : 0;
    sum[j] = 0;
  }
  for (int64_t at = from; at < end; at += SLOPE_ROWS) {
    const int here = end - at < SLOPE_ROWS ? (int) (end - at) : SLOPE_ROWS;
    __syncthreads();
    for (int k = threadIdx.x; k < here * D; k += SLOPE_THREADS)
      x[k] = k % D < args.d ? args.reference[(at + k / D) * args.d + k % D] : 0;
    if ((int) threadIdx.x < here) w[threadIdx.x] = args.weights[at + threadIdx.x];
    __syncthreads();
#pragma unroll 1
    for (int r = 0; r < here; r++) {
      double gap[D], s = 0, weighted = 0;
#pragma unroll
      for (int j = 0; j < D; j++) {
        gap[j] = x[r * D + j] - q[j];
        s += gap[j] * gap[j];
        if (SQUARES) weighted += gap[j] * gap[j] * each[j];
      }
      const double value = at + r == left_out ? 0 : w[r] * value_double<KIND>(s * args.inv_h2);
      total += value;
      if (SQUARES) squares += value * weighted;
#pragma unroll
      for (int j = 0; j < D; j++) sum[j] += value * gap[j];
    }
  }
  if (local >= args.count) return;
  double *out = args.partial + blockIdx.x * (int64_t) (args.d + 2) * SLOPE_QUERIES + local;
  out[0] = total;
#pragma unroll
  for (int j = 0; j < D; j++)
    if (j < args.d) out[(int64_t) (j + 1) * SLOPE_QUERIES] = sum[j];
  out[(int64_t) (args.d + 1) * SLOPE_QUERIES] = squares;
}

/* Adds the chunks in their order. */
__global__ void add_slopes(const slope_args args, int chunks, double *out)
{
  const int64_t k = blockIdx.x * (int64_t) blockDim.x + threadIdx.x, columns = args.d + 2;
  if (k >= args.count * columns) return;
  const int64_t local = k % args.count, column = k / args.count;
  double sum = 0;
  for (int chunk = 0; chunk < chunks; chunk++) sum += args.partial[(chunk * columns + column) * SLOPE_QUERIES + local];
  out[column * args.queries + args.first + local] += sum;
}

template <int KIND, bool SQUARES> static cudaError_t launch_kind(const slope_args &args, dim3 grid, cudaStream_t stream)
{
  if (args.d <= 2)
    sum_slopes<KIND, 2, SQUARES><<<grid, SLOPE_THREADS, 0, stream>>>(args);
  else if (args.d <= 4)
    sum_slopes<KIND, 4, SQUARES><<<grid, SLOPE_THREADS, 0, stream>>>(args);
  else if (args.d <= 8)
    sum_slopes<KIND, 8, SQUARES><<<grid, SLOPE_THREADS, 0, stream>>>(args);
  else if (args.d <= 16)
    sum_slopes<KIND, 16, SQUARES><<<grid, SLOPE_THREADS, 0, stream>>>(args);
  else
    sum_slopes<KIND, 32, SQUARES><<<grid, SLOPE_THREADS, 0, stream>>>(args);
  return cudaGetLastError();
}

template <bool SQUARES>
static weft_status launch_slopes(weft_ctx *ctx, int kind, const slope_args &args, int chunks, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const dim3 grid((unsigned) chunks, (unsigned) ((args.count + SLOPE_THREADS - 1) / SLOPE_THREADS));
  switch (kind) {
  case WEFT_GAUSSIAN: WEFT_CUDA((launch_kind<WEFT_GAUSSIAN, SQUARES>(args, grid, stream))); break;
  case WEFT_EPANECHNIKOV: WEFT_CUDA((launch_kind<WEFT_EPANECHNIKOV, SQUARES>(args, grid, stream))); break;
  case WEFT_LAPLACIAN: WEFT_CUDA((launch_kind<WEFT_LAPLACIAN, SQUARES>(args, grid, stream))); break;
  case WEFT_MATERN32: WEFT_CUDA((launch_kind<WEFT_MATERN32, SQUARES>(args, grid, stream))); break;
  case WEFT_MATERN52: WEFT_CUDA((launch_kind<WEFT_MATERN52, SQUARES>(args, grid, stream))); break;
  default: st = weft_fail(ctx, WEFT_ERR_INTERNAL, "no slopes of such a kernel: %d", kind);
  }
done:
  return st;
}

/* References come in slabs, queries in runs of SLOPE_QUERIES, each a launch after which the user is asked. */
weft_status weft_kernel_slopes_cuda(weft_ctx *ctx, const weft_kernel_task *task, const double *each, double *out)
{
  weft_status st = WEFT_OK;
  const int64_t nq = (int64_t) task->query.n, n = (int64_t) task->reference.n, d = (int64_t) task->query.d;
  const int64_t columns = d + 2;
  bool squares = false;
  int64_t slab;
  double *query, *reference, *weights, *factor, *partial, *sums;
  weft_device_arena mem = weft_device_begin(ctx);
  for (int64_t i = 0; i < nq * columns; i++) out[i] = 0;
  for (int64_t j = 0; j < d; j++) squares = squares || each[j] != 0;
  if (!n || !nq) goto done;
  if (d > WEFT_KERNEL_SLOPE_DIMS) {
    st = weft_fail(ctx, WEFT_ERR_INTERNAL, "slopes in %.0f dimensions", (double) d);
    goto done;
  }
  WEFT_DEVICE_TAKE(query, &mem, nq * d);
  WEFT_DEVICE_TAKE(factor, &mem, d);
  WEFT_DEVICE_TAKE(sums, &mem, nq * columns);
  WEFT_DEVICE_TAKE(partial, &mem, SLOPE_CHUNKS * columns * SLOPE_QUERIES);
  slab = (int64_t) weft_device_chunk(ctx, (size_t) (n < SLOPE_SLAB ? n : SLOPE_SLAB), 8.0 * (double) (d + 1), 1e6);
  if (!slab) {
    st = WEFT_ERR_MEMORY;
    goto done;
  }
  WEFT_DEVICE_TAKE(reference, &mem, slab * d);
  WEFT_DEVICE_TAKE(weights, &mem, slab);
  WEFT_TRY(weft_device_upload(&mem, query, nq * d, sizeof(double), weft_fill_doubles, task->query.x));
  WEFT_TRY(weft_device_upload(&mem, factor, d, sizeof(double), weft_fill_doubles, each));
  WEFT_CUDA(cudaMemsetAsync(sums, 0, nq * columns * sizeof *sums, mem.stream));
  for (int64_t at = 0; at < n; at += slab) {
    const int64_t rows = n - at < slab ? n - at : slab;
    const int64_t chunk = (rows + SLOPE_CHUNKS * SLOPE_ROWS - 1) / (SLOPE_CHUNKS * SLOPE_ROWS) * SLOPE_ROWS;
    const int chunks = (int) ((rows + chunk - 1) / chunk);
    WEFT_TRY(
        weft_device_upload(&mem, reference, rows * d, sizeof(double), weft_fill_doubles, task->reference.x + at * d));
    WEFT_TRY(weft_device_upload(&mem, weights, rows, sizeof(double), weft_fill_doubles, task->weights + at));
    for (int64_t first = 0; first < nq; first += SLOPE_QUERIES) {
      const slope_args args = { query,   reference,
                                weights, factor,
                                first,   nq - first < SLOPE_QUERIES ? nq - first : SLOPE_QUERIES,
                                nq,      rows,
                                chunk,   task->leave_one_out ? at - (int64_t) task->own_first : INT64_MIN,
                                (int) d, 1 / (task->h * task->h),
                                partial };
      WEFT_TRY(weft_poll(ctx, (double) at * (double) nq + (double) rows * (double) first, (double) n * (double) nq));
      WEFT_TRY(squares ? launch_slopes<true>(ctx, task->kind, args, chunks, mem.stream)
                       : launch_slopes<false>(ctx, task->kind, args, chunks, mem.stream));
      add_slopes<<<(unsigned) ((args.count * columns + 255) / 256), 256, 0, mem.stream>>>(args, chunks, sums);
      WEFT_CUDA(cudaGetLastError());
      WEFT_CUDA(cudaStreamSynchronize(mem.stream));
    }
  }
  WEFT_CUDA(cudaMemcpyAsync(out, sums, nq * columns * sizeof *out, cudaMemcpyDeviceToHost, mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(mem.stream));
done:
  weft_device_end(&mem);
  return st;
}
