/* Sums over a grid of points that are made on the device from a key, as many as its memory holds; cpu/test/cube.c is
 * the CPU's twin. */
#include "core/numbers/draws.h"
#include "kernel/both/test/cube.h"
#include "kernel/cuda/grid/grid.cuh"
#include "kernel/cuda/grid/sum.cuh"
#include "kernel/cuda/test/cube.cuh"

/* Uniform in the unit cube: 24 bits each, four to a Philox block. */
__global__ void make_points(uint64_t key, int64_t n, int d, float *x)
{
  const int blocks = (d + 3) / 4;
  for (int64_t k = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; k < n * blocks;
       k += (int64_t) gridDim.x * blockDim.x) {
    const int64_t i = k / blocks;
    const int part = (int) (k % blocks);
    const weft_u32x4 w = weft_philox(key, (uint64_t) i, WEFT_STREAM_CUBE, (uint32_t) part);
    for (int j = 4 * part; j < 4 * part + 4 && j < d; j++) x[i * d + j] = weft_kernel_cube_at(w.v[j & 3]);
  }
}

#define CHECK_MAX 64
/* Every point against a few queries, in double, one thread per point; sums of 256 points go to their own place. */
__global__ void __launch_bounds__(256)
    check_sums(const float *x, int64_t n, int d, const float *q, int count, int kind, double inv_h2, double *partial)
{
  __shared__ double part[8][CHECK_MAX];
  extern __shared__ float own[]; /* count * d */
  for (int k = threadIdx.x; k < count * d; k += 256) own[k] = q[k];
  for (int k = threadIdx.x; k < 8 * CHECK_MAX; k += 256) (&part[0][0])[k] = 0;
  __syncthreads();
  for (int64_t i = blockIdx.x * (int64_t) 256 + threadIdx.x; i - threadIdx.x < n; i += (int64_t) gridDim.x * 256)
    for (int c = 0; c < count; c++) {
      double s = 0;
      for (int j = 0; i < n && j < d; j++) {
        const double gap = (double) x[i * d + j] - (double) own[c * d + j];
        s += gap * gap;
      }
      double value = i < n ? weft_kernel_of(kind, s * inv_h2, 0) : 0;
      if (!__any_sync(~0u, value != 0)) continue;
      for (int half = 16; half; half >>= 1) value += __shfl_xor_sync(~0u, value, half);
      if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5][c] += value;
    }
  __syncthreads();
  for (int c = threadIdx.x; c < count; c += 256) {
    double s = 0;
    for (int w = 0; w < 8; w++) s += part[w][c];
    partial[(int64_t) blockIdx.x * CHECK_MAX + c] = s;
  }
}

__global__ void take_rows(const float *x, int d, int64_t step, int count, float *out)
{
  for (int k = threadIdx.x; k < count * d; k += blockDim.x) out[k] = x[(k / d) * step * d + k % d];
}

__global__ void take_sums(const double *sums, int64_t step, int count, double *out)
{
  for (int k = threadIdx.x; k < count; k += blockDim.x) out[k] = sums[k * step];
}

__global__ void __launch_bounds__(256) mean_of(const double *sums, int64_t n, double *out)
{
  __shared__ double part[256];
  double s = 0;
  for (int64_t i = blockIdx.x * (int64_t) 256 + threadIdx.x; i < n; i += (int64_t) gridDim.x * 256) s += sums[i];
  part[threadIdx.x] = s;
  __syncthreads();
  for (int half = 128; half; half >>= 1) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (!threadIdx.x) out[blockIdx.x] = part[0];
}

/* The device's cube: makes the points, builds the grid, and for each bandwidth sums all points, then the samples
 * directly. */
weft_status weft_kernel_cube_cuda(weft_ctx *ctx, const weft_kernel_cube_job *job)
{
  weft_status st = WEFT_OK;
  const int64_t n = (int64_t) job->n, step = n / job->samples;
  const int d = (int) job->d, blocks = 1024;
  double low[64], high[64], most = 0, began, *sums, *partial, *few, host[1024], *host_partial;
  float *x, *q;
  grid_plan plan;
  grid_points<float> points;
  weft_arena hold = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  memset(&points, 0, sizeof points);
  for (int j = 0; j < d; j++) low[j] = 0, high[j] = 1;
  for (size_t k = 0; k < job->bandwidths; k++) most = fmax(most, job->h[k]);
  if (!weft_grid_plan(&plan, job->n, job->d, low, high, most))
    WEFT_TRY(weft_fail(ctx, WEFT_ERR_INPUT, "No grid suits these points."));
  WEFT_DEVICE_TAKE(partial, &mem, blocks * CHECK_MAX);
  WEFT_DEVICE_TAKE(few, &mem, CHECK_MAX);
  WEFT_DEVICE_TAKE(q, &mem, CHECK_MAX * d);
  WEFT_TAKE(host_partial, &hold, blocks * CHECK_MAX);
  WEFT_DEVICE_TAKE(x, &mem, n * d);
  WEFT_CUDA(cudaStreamSynchronize(mem.stream));
  began = weft_seconds();
  make_points<<<65536, 256, 0, mem.stream>>>(job->key, n, d, x);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaStreamSynchronize(mem.stream));
  job->seconds[0] = weft_seconds() - began;
  take_rows<<<1, 256, 0, mem.stream>>>(x, d, step, (int) job->samples, q);
  WEFT_CUDA(cudaGetLastError());
  WEFT_TRY(weft_grid_build(ctx, &mem, plan, n, x, (float *) NULL, &points, job->seconds + 1));
  WEFT_DEVICE_TAKE(sums, &mem, n);
  for (size_t k = 0; k < job->bandwidths; k++) {
    const double h = job->h[k];
    double *at = job->out + k * (2 * job->samples + 4);
    weft_grid_reach(&plan, h);
    WEFT_CUDA(cudaStreamSynchronize(mem.stream));
    began = weft_seconds();
    WEFT_TRY(weft_grid_sum(ctx, &mem, plan, job->kind, h, 0, points, points, 1, sums, at + 2 * job->samples + 1));
    job->seconds[5 + k] = weft_seconds() - began;
    mean_of<<<1024, 256, 0, mem.stream>>>(sums, n, partial);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaMemcpyAsync(host, partial, sizeof host, cudaMemcpyDeviceToHost, mem.stream));
    WEFT_CUDA(cudaStreamSynchronize(mem.stream));
    at[2 * job->samples] = 0;
    for (int b = 0; b < 1024; b++) at[2 * job->samples] += host[b] / (double) n;
    WEFT_CUDA(cudaMemsetAsync(partial, 0, blocks * CHECK_MAX * sizeof *partial, mem.stream));
    take_sums<<<1, 64, 0, mem.stream>>>(sums, step, (int) job->samples, few);
    check_sums<<<blocks, 256, job->samples * d * sizeof(float), mem.stream>>>(points.rows, n, d, q, (int) job->samples,
                                                                              job->kind, 1 / (h * h), partial);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaMemcpyAsync(at, few, job->samples * sizeof *at, cudaMemcpyDeviceToHost, mem.stream));
    WEFT_CUDA(cudaMemcpyAsync(host_partial, partial, blocks * CHECK_MAX * sizeof *partial, cudaMemcpyDeviceToHost,
                              mem.stream));
    WEFT_CUDA(cudaStreamSynchronize(mem.stream));
    for (size_t c = 0; c < job->samples; c++) {
      at[job->samples + c] = 0;
      for (int b = 0; b < blocks; b++) at[job->samples + c] += host_partial[(size_t) b * CHECK_MAX + c];
    }
  }
done:
  weft_device_end(&mem);
  weft_arena_end(&hold);
  return st;
}
