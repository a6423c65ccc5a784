/* Moments of the columns of a resident matrix, or of one that is read in packed blocks, and missing values of rows.
 * Moments: a block per column. Sums are taken of values divided by a power of two near the largest, so that nothing
 * overflows or vanishes. */
#include <cmath>
#include "pca/cuda/pca.cuh"
#include "pca/both/moments.h"
#include "pca/cuda/moments.cuh"
#include "pca/cuda/sparse/stored.cuh"

enum { MOMENT_THREADS = 256 };

template <typename T> static __device__ T reduce(T x, T (*join)(T, T), T *shared)
{
  shared[threadIdx.x] = x;
  __syncthreads();
  for (int half = MOMENT_THREADS / 2; half; half /= 2) {
    if ((int) threadIdx.x < half) shared[threadIdx.x] = join(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  x = shared[0];
  __syncthreads();
  return x;
}

static __device__ double plus(double a, double b) { return a + b; }
static __device__ double lesser(double a, double b) { return fmin(a, b); }
static __device__ double greater(double a, double b) { return fmax(a, b); }

/* A block per column: one pass for weight and range, then mean and norm of the values times a power of two that brings
 * them near 1, so that squares neither overflow nor vanish. */
template <typename From>
__global__ void column_moments(const From *x, int64_t n, int64_t p, const double *weights, weft_pca_moments out)
{
  __shared__ double shared[MOMENT_THREADS];
  for (int64_t j = blockIdx.x; j < p; j += gridDim.x) {
    const From *column = x + j * n;
    double weight = 0, missing = 0, infinite = 0, least = INFINITY, greatest = -INFINITY, sum = 0, square = 0;
    for (int64_t i = threadIdx.x; i < n; i += MOMENT_THREADS) {
      const double value = (double) column[i], w = weights ? weights[i] : 1;
      if (isnan(value)) {
        missing++;
        continue;
      }
      if (isinf(value)) {
        infinite++;
        continue;
      }
      if (w == 0) continue;
      weight += w;
      least = fmin(least, value);
      greatest = fmax(greatest, value);
    }
    weight = reduce(weight, plus, shared);
    missing = reduce(missing, plus, shared);
    infinite = reduce(infinite, plus, shared);
    least = reduce(least, lesser, shared);
    greatest = reduce(greatest, greater, shared);
    int exponent = 0;
    frexp(fmax(fabs(least), fabs(greatest)), &exponent);
    const double unit = ldexp(1.0, exponent < -1000 ? 1000 : -exponent);
    for (int64_t i = threadIdx.x; i < n; i += MOMENT_THREADS) {
      const double value = (double) column[i], w = weights ? weights[i] : 1;
      if (isfinite(value) && w > 0) sum += w * (value * unit);
    }
    const double mean = weight > 0 ? reduce(sum, plus, shared) / weight : 0;
    for (int64_t i = threadIdx.x; i < n; i += MOMENT_THREADS) {
      const double value = (double) column[i], w = weights ? weights[i] : 1, d = value * unit - mean;
      if (isfinite(value) && w > 0) square += w * d * d;
    }
    square = reduce(square, plus, shared);
    if (threadIdx.x) continue;
    const bool equal = least == greatest || weight == 0;
    out.mean[j] = weight == 0 ? 0 : equal ? least : mean / unit;
    out.norm[j] = equal ? 0 : sqrt(square) / unit;
    out.weight[j] = weight;
    out.missing[j] = missing;
    out.infinite[j] = infinite;
  }
}

/* ---- of blocks ---- */

/* Moments of one column of a block with n rows, whose weights sum to `total`; values that are not stored are zeros. */
static __device__ weft_pca_column part_of(const int32_t *rows, const double *values, int32_t count, int64_t n,
                                          double total, const double *weights, double *shared)
{
  weft_pca_column a = { 0, 0, 0, INFINITY, -INFINITY, 0, 0 };
  double stored = 0, sum = 0, square = 0;
  for (int32_t i = (int32_t) threadIdx.x; i < count; i += MOMENT_THREADS) {
    const double value = values[i], w = weights ? weights[rows[i]] : 1;
    stored += w;
    if (isnan(value)) {
      a.missing++;
      continue;
    }
    if (isinf(value)) {
      a.infinite++;
      continue;
    }
    if (w == 0) continue;
    a.weight += w;
    a.least = fmin(a.least, value);
    a.greatest = fmax(a.greatest, value);
  }
  stored = reduce(stored, plus, shared);
  a.weight = reduce(a.weight, plus, shared);
  a.missing = reduce(a.missing, plus, shared);
  a.infinite = reduce(a.infinite, plus, shared);
  a.least = reduce(a.least, lesser, shared);
  a.greatest = reduce(a.greatest, greater, shared);
  const double zeros = count == n ? 0 : fmax(0.0, total - stored);
  if (zeros > 0) {
    a.weight += zeros;
    a.least = fmin(a.least, 0.0);
    a.greatest = fmax(a.greatest, 0.0);
  }
  if (a.weight == 0) return a;
  if (a.least == a.greatest) {
    a.mean = a.least;
    return a;
  }
  int exponent = 0;
  frexp(fmax(fabs(a.least), fabs(a.greatest)), &exponent);
  const double unit = ldexp(1.0, exponent < -1000 ? 1000 : -exponent);
  for (int32_t i = (int32_t) threadIdx.x; i < count; i += MOMENT_THREADS)
    if (isfinite(values[i])) sum += (weights ? weights[rows[i]] : 1) * (values[i] * unit);
  const double mean = reduce(sum, plus, shared) / a.weight;
  for (int32_t i = (int32_t) threadIdx.x; i < count; i += MOMENT_THREADS) {
    const double d = values[i] * unit - mean;
    if (isfinite(values[i])) square += (weights ? weights[rows[i]] : 1) * d * d;
  }
  square = reduce(square, plus, shared) + zeros * mean * mean;
  a.mean = mean / unit;
  a.norm = sqrt(square) / unit;
  return a;
}

__global__ static void add_block(weft_pca_stored x, int64_t p, double total, const double *weights,
                                 weft_pca_column *parts)
{
  __shared__ double shared[MOMENT_THREADS];
  for (int64_t j = blockIdx.x; j < p; j += gridDim.x) {
    const int32_t from = x.starts[j], count = x.starts[j + 1] - from;
    const weft_pca_column one = part_of(x.rows + from, x.values + from, count, x.n, total, weights, shared);
    if (threadIdx.x == 0) parts[j] = weft_pca_merged(parts[j], one);
    __syncthreads();
  }
}

static double total_of(const double *weights, int64_t n)
{
  double total = 0;
  if (!weights) return (double) n;
  for (int64_t i = 0; i < n; i++) total += weights[i];
  return total;
}

/* Moments of sparse data that come in panels: each panel is sent (packed where it can be), summed up and merged with
 * those before. */
static weft_status moments_of_blocks(weft_ctx *ctx, const weft_pca_data *data, const double *weights,
                                     const weft_pca_moments *out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  weft_unpacking unpacking = { &mem, NULL, NULL, NULL, NULL, 0, 0 };
  weft_pca_stored block = { 0 };
  weft_pca_read from;
  const size_t p = data->p;
  double *d_weights = NULL;
  weft_pca_column *parts, *d_parts;
  WEFT_TAKE0(parts, &host, p);
  WEFT_TRY(weft_device_send(&mem, parts, p, &d_parts));
  if (weights) WEFT_TRY(weft_device_send(&mem, weights, data->n, &d_weights));
  for (size_t t = 0; t < data->panels; t++) {
    WEFT_TRY(weft_pca_read_panel(ctx, data, t, &from));
    if (!block.starts || from.stored > block.room) {
      weft_pca_drop_panel(&mem, &block);
      WEFT_TRY(weft_pca_take_panel(&mem, p, from.stored + from.stored / 4, &block));
    }
    WEFT_TRY(weft_pca_put_panel(&unpacking, data, t, &from, &block));
    add_block<<<(unsigned) (p < 65536 ? p : 65536), MOMENT_THREADS, 0, mem.stream>>>(
        block, (int64_t) p, total_of(weights ? weights + block.row : NULL, block.n),
        d_weights ? d_weights + block.row : NULL, d_parts);
    WEFT_CUDA(cudaGetLastError());
  }
  WEFT_CUDA(cudaMemcpyAsync(parts, d_parts, p * sizeof *parts, cudaMemcpyDeviceToHost, mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(mem.stream));
  weft_pca_put_moments(parts, p, out);
done:
  weft_device_end(&mem);
  weft_arena_end(&host);
  return st;
}

/* ---- of a resident matrix ---- */

weft_status weft_pca_moments_cuda(weft_ctx *ctx, const weft_pca_data *data, const double *weights,
                                  const weft_pca_moments *out)
{
  if (!data->resident) return moments_of_blocks(ctx, data, weights, out);
  weft_status st = WEFT_OK;
  const weft_device_matrix *m = data->resident;
  weft_device_arena mem = weft_device_begin(ctx);
  const size_t p = data->p;
  double *d, *d_weights = NULL, *const to[] = { out->mean, out->norm, out->weight, out->missing, out->infinite };
  WEFT_DEVICE_TAKE(d, &mem, 5 * p);
  if (weights) {
    WEFT_DEVICE_TAKE(d_weights, &mem, data->n);
    WEFT_CUDA(cudaMemcpyAsync(d_weights, weights, data->n * sizeof(double), cudaMemcpyHostToDevice, mem.stream));
  }
  {
    const weft_pca_moments on_device = { d, d + p, d + 2 * p, d + 3 * p, d + 4 * p };
    const unsigned grid = (unsigned) (p < 65536 ? p : 65536);
    if (m->single)
      column_moments<<<grid, MOMENT_THREADS, 0, mem.stream>>>((const float *) m->data, m->n, m->p, d_weights,
                                                              on_device);
    else
      column_moments<<<grid, MOMENT_THREADS, 0, mem.stream>>>((const double *) m->data, m->n, m->p, d_weights,
                                                              on_device);
    WEFT_CUDA(cudaGetLastError());
  }
  for (int i = 0; i < 5; i++)
    WEFT_CUDA(cudaMemcpyAsync(to[i], d + i * p, p * sizeof *d, cudaMemcpyDeviceToHost, mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(mem.stream));
done:
  weft_device_end(&mem);
  return st;
}

/* Threads take rows, blocks slices of the columns; counts are whole numbers, whatever the order of their sum. */
template <typename From> __global__ void count_seen(const From *x, int64_t n, int64_t p, double *out)
{
  const int64_t each = (p + gridDim.y - 1) / gridDim.y, first = blockIdx.y * each;
  const int64_t last = first + each < p ? first + each : p, stride = (int64_t) gridDim.x * MOMENT_THREADS;
  for (int64_t i = blockIdx.x * (int64_t) MOMENT_THREADS + threadIdx.x; i < n; i += stride) {
    double count = 0;
    for (int64_t j = first; j < last; j++) count += !isnan((double) x[i + j * n]);
    atomicAdd(&out[i], count);
  }
}

/* Counts each row's values that are not NaN in a resident matrix: blocks of rows by slices of columns, added atomically
 * (whole numbers: the order does not matter). */
weft_status weft_pca_seen_cuda(weft_ctx *ctx, const weft_pca_data *data, double *out)
{
  weft_status st = WEFT_OK;
  const weft_device_matrix *m = data->resident;
  weft_device_arena mem = weft_device_begin(ctx);
  const size_t n = data->n, blocks = (n + MOMENT_THREADS - 1) / MOMENT_THREADS;
  const dim3 grid((unsigned) (blocks < 65536 ? blocks : 65536), (unsigned) (data->p < 32 ? data->p : 32));
  double *d;
  WEFT_DEVICE_TAKE(d, &mem, n);
  WEFT_CUDA(cudaMemsetAsync(d, 0, n * sizeof *d, mem.stream));
  if (m->single)
    count_seen<<<grid, MOMENT_THREADS, 0, mem.stream>>>((const float *) m->data, m->n, m->p, d);
  else
    count_seen<<<grid, MOMENT_THREADS, 0, mem.stream>>>((const double *) m->data, m->n, m->p, d);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaMemcpyAsync(out, d, n * sizeof *d, cudaMemcpyDeviceToHost, mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(mem.stream));
done:
  weft_device_end(&mem);
  return st;
}
