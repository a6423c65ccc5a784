/* Sums over a mesh of points that are made on the device from a key, as many as its memory holds; cpu/test/cube.c is
 * the CPU's twin. */
#include "core/numbers/draws.h"
#include "kernel/both/test/cube.h"
#include "kernel/cuda/mesh/mesh.cuh"
#include "kernel/cuda/test/cube_mesh.cuh"

/* In columns, d of them. */
__global__ void make_columns(uint64_t key, int64_t n, int d, double *x)
{
  for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n; i += (int64_t) gridDim.x * blockDim.x) {
    const weft_u32x4 w = weft_philox(key, (uint64_t) i, WEFT_STREAM_CUBE, 0);
    for (int j = 0; j < d; j++) x[j * n + i] = (double) weft_kernel_cube_at(w.v[j]);
  }
}

#define CHECK_THREADS 128
#define CHECK_BLOCKS 528
/* A thread has a query, and all of a block go through the same points. Adds to partial[block][query]. */
__global__ void __launch_bounds__(CHECK_THREADS)
    check_gaussian(const double *x, int64_t n, int d, int64_t first, int64_t end, int64_t step, int samples,
                   double half_inv_h2, double *partial)
{
  __shared__ double point[3][CHECK_THREADS];
  const int c = blockIdx.y * CHECK_THREADS + threadIdx.x;
  double own[3] = { 0, 0, 0 }, sum = 0;
  for (int j = 0; j < d; j++) own[j] = c < samples ? x[j * n + c * step] : 0;
  for (int64_t from = first + blockIdx.x * (int64_t) CHECK_THREADS; from < end;
       from += (int64_t) gridDim.x * CHECK_THREADS) {
    const int count = end - from < CHECK_THREADS ? (int) (end - from) : CHECK_THREADS;
    __syncthreads();
    for (int j = 0; j < 3; j++)
      point[j][threadIdx.x] = j < d && (int) threadIdx.x < count ? x[j * n + from + threadIdx.x] : 0;
    __syncthreads();
    for (int i = 0; i < count; i++) {
      const double a = point[0][i] - own[0], b = point[1][i] - own[1], e = point[2][i] - own[2];
      sum += exp(-half_inv_h2 * (a * a + b * b + e * e));
    }
  }
  if (c < samples) partial[(int64_t) blockIdx.x * samples + c] += sum;
}

__global__ void take_columns(const double *sums, int64_t step, int count, double *out)
{
  for (int k = threadIdx.x; k < count; k += blockDim.x) out[k] = sums[k * step];
}

/* The device's cube_mesh: makes, sorts, spreads, convolves and gathers, each timed apart, then sums the samples
 * directly. */
weft_status weft_kernel_cube_mesh_cuda(weft_ctx *ctx, const weft_kernel_cube_mesh_job *job)
{
  weft_status st = WEFT_OK;
  const int64_t n = (int64_t) job->n, step = n / (int64_t) job->samples, slice = (int64_t) 1 << 25;
  const int d = (int) job->d, samples = (int) job->samples;
  const double total = (double) n;
  double *x, *sums, *few, *partial, *host, began;
  mesh_run run;
  mesh_points points;
  weft_arena hold = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
#define LAP(k, work) \
  do { \
    WEFT_CUDA(cudaStreamSynchronize(mem.stream)); \
    began = weft_seconds(); \
    work; \
    WEFT_CUDA(cudaGetLastError()); \
    WEFT_CUDA(cudaStreamSynchronize(mem.stream)); \
    job->seconds[k] = weft_seconds() - began; \
  } while (0)
  WEFT_TAKE(host, &hold, CHECK_BLOCKS * job->samples);
  WEFT_DEVICE_TAKE(x, &mem, n * d);
  WEFT_DEVICE_TAKE(sums, &mem, n);
  WEFT_DEVICE_TAKE(few, &mem, samples);
  WEFT_DEVICE_TAKE(partial, &mem, CHECK_BLOCKS * samples);
  WEFT_TRY(weft_mesh_begin_cuda(&run, ctx, &mem, job->mesh, job->n));
  points.x = x, points.lo = NULL, points.n = n, points.point = 1, points.dimension = n;
  LAP(0, (make_columns<<<65536, 256, 0, mem.stream>>>(job->key, n, d, x)));
  LAP(1, WEFT_TRY(weft_mesh_sort_cuda(&run, &points)));
  LAP(2, WEFT_TRY(weft_mesh_spread_cuda(&run, &points, NULL, 0, total)));
  LAP(3, WEFT_TRY(weft_mesh_convolve_cuda(&run, 0, total)));
  LAP(4, WEFT_TRY(weft_mesh_gather_cuda(&run, &points, 0, sums)));
  *job->rounding = weft_mesh_rounding_cuda(&run);
  take_columns<<<1, 256, 0, mem.stream>>>(sums, step, samples, few);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaMemcpyAsync(job->out, few, job->samples * sizeof *few, cudaMemcpyDeviceToHost, mem.stream));
  WEFT_CUDA(cudaMemsetAsync(partial, 0, CHECK_BLOCKS * job->samples * sizeof *partial, mem.stream));
  for (int64_t first = 0; first < n; first += slice) {
    const int64_t end = n - first < slice ? n : first + slice;
    WEFT_TRY(weft_poll(ctx, (double) first, total));
    check_gaussian<<<dim3(CHECK_BLOCKS, (unsigned) ((samples + CHECK_THREADS - 1) / CHECK_THREADS)), CHECK_THREADS, 0,
                     mem.stream>>>(x, n, d, first, end, step, samples, 0.5 / (job->h * job->h), partial);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaStreamSynchronize(mem.stream));
  }
  WEFT_CUDA(
      cudaMemcpyAsync(host, partial, CHECK_BLOCKS * job->samples * sizeof *host, cudaMemcpyDeviceToHost, mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(mem.stream));
  for (size_t c = 0; c < job->samples; c++) {
    job->out[job->samples + c] = 0;
    for (size_t b = 0; b < CHECK_BLOCKS; b++) job->out[job->samples + c] += host[b * job->samples + c];
  }
done:
  weft_device_end(&mem);
  weft_arena_end(&hold);
  return st;
}
