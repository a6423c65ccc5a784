/* Kernels about the Gram matrix; tools/race-pca.cu runs them alone. */
#pragma once

#include <cstdint>
#include <cuda_fp16.h>

/* The upper triangle from the lower, 32 × 32 numbers at a time; `diagonal` too. */
__global__ void mirror(double *g, int64_t order, double *diagonal)
{
  __shared__ double tile[32][33];
  const int64_t ii = (int64_t) blockIdx.x * 32, jj = (int64_t) blockIdx.y * 32;
  if (ii < jj) return; /* (ii, jj) is read, (jj, ii) written */
  for (int y = threadIdx.y; y < 32; y += blockDim.y) {
    const int64_t i = ii + threadIdx.x, j = jj + y;
    if (i < order && j <= i) tile[y][threadIdx.x] = g[i + j * order];
    if (i == j && i < order) diagonal[i] = g[i + j * order];
  }
  __syncthreads();
  for (int y = threadIdx.y; y < 32; y += blockDim.y) {
    const int64_t i = jj + threadIdx.x, j = ii + y;
    if (i < j && j < order) g[i + j * order] = tile[threadIdx.x][y];
  }
}

/* The largest magnitude, as its bits, which are in the order of the numbers. */
__global__ void largest_bits(const double *x, int64_t count, unsigned long long *bits)
{
  double most = 0;
  for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < count; i += (int64_t) gridDim.x * blockDim.x)
    most = fmax(most, fabs(x[i]));
  for (int d = 16; d; d /= 2) most = fmax(most, __shfl_xor_sync(0xffffffffu, most, d));
  if (threadIdx.x % 32 == 0) atomicMax(bits, (unsigned long long) __double_as_longlong(most));
}

/* Splits scale x into high + low / LOW, two halves with 22 bits together (fewer for numbers far below the largest).
 * Places from `count` to `padded` become 0. */
#define LOW 2048.0
__global__ void split(const double *x, int64_t count, int64_t padded, double scale, __half *high, __half *low)
{
  for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < padded; i += (int64_t) gridDim.x * blockDim.x) {
    const double scaled = i < count ? scale * x[i] : 0;
    const __half h = __double2half(scaled);
    high[i] = h;
    low[i] = __double2half(LOW * (scaled - (double) __half2float(h)));
  }
}

/* Lower triangle: g = (high + (cross + cross') / LOW) / scale^2, and what g was where `more`; ld numbers per column of
 * what is joined. */
__global__ void join(const float *high, const float *cross, int64_t ld, int64_t order, double back, int more, double *g)
{
  __shared__ float tile[32][33];
  const int64_t ii = (int64_t) blockIdx.x * 32, jj = (int64_t) blockIdx.y * 32;
  if (ii < jj) return;
  for (int y = threadIdx.y; y < 32; y += blockDim.y) {
    const int64_t i = jj + threadIdx.x, j = ii + y;
    if (i < order && j < order) tile[y][threadIdx.x] = cross[i + j * ld];
  }
  __syncthreads();
  for (int y = threadIdx.y; y < 32; y += blockDim.y) {
    const int64_t i = ii + threadIdx.x, j = jj + y;
    if (i < order && j <= i) {
      const double sum = high[i + j * ld] + ((double) cross[i + j * ld] + tile[threadIdx.x][y]) / LOW;
      g[i + j * order] = (more ? g[i + j * order] : 0) + back * back * sum;
    }
  }
}
