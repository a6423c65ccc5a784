/* Moments of the columns of a resident matrix, and missing values of its rows. Moments: a block per column. Sums are
 * taken of values divided by a power of two near the largest, so that nothing overflows or vanishes. */
#include <cmath>
#include "pca_cuda.cuh"

enum { MOMENT_THREADS = 256 };

struct column_sums { double weight, sum, least, greatest, missing, infinite; };

template <typename T>
static __device__ T reduce(T x, T (*join)(T, T), T *shared)
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

template <typename From>
__global__ void column_moments(const From *x, int64_t n, int64_t p, const double *weights, weft_pca_moments out)
{
  __shared__ double shared[MOMENT_THREADS];
  for (int64_t j = blockIdx.x; j < p; j += gridDim.x) {
    const From *column = x + j * n;
    double weight = 0, missing = 0, infinite = 0, least = INFINITY, greatest = -INFINITY, sum = 0, square = 0;
    for (int64_t i = threadIdx.x; i < n; i += MOMENT_THREADS) {
      const double value = (double) column[i], w = weights ? weights[i] : 1;
      if (isnan(value)) { missing++; continue; }
      if (isinf(value)) { infinite++; continue; }
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

weft_status weft_pca_moments_cuda(weft_ctx *ctx, const weft_pca_data *data, const double *weights,
                                  const weft_pca_moments *out)
{
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
template <typename From>
__global__ void count_seen(const From *x, int64_t n, int64_t p, double *out)
{
  const int64_t each = (p + gridDim.y - 1) / gridDim.y, first = blockIdx.y * each;
  const int64_t last = first + each < p ? first + each : p, stride = (int64_t) gridDim.x * MOMENT_THREADS;
  for (int64_t i = blockIdx.x * (int64_t) MOMENT_THREADS + threadIdx.x; i < n; i += stride) {
    double count = 0;
    for (int64_t j = first; j < last; j++) count += !isnan((double) x[i + j * n]);
    atomicAdd(&out[i], count);
  }
}

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
  if (m->single) count_seen<<<grid, MOMENT_THREADS, 0, mem.stream>>>((const float *) m->data, m->n, m->p, d);
  else count_seen<<<grid, MOMENT_THREADS, 0, mem.stream>>>((const double *) m->data, m->n, m->p, d);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaMemcpyAsync(out, d, n * sizeof *d, cudaMemcpyDeviceToHost, mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(mem.stream));
done:
  weft_device_end(&mem);
  return st;
}
