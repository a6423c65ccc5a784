/* Regressions over what is observed, on a device: see weft_pca_ops and observed.c. A NaN is its own mask. Loads: a
 * block per column. Scores: a thread per row, the columns in slices whose sums are added in order. Both read X once. */
#include "pca/cuda/pca.cuh"
#include "pca/cuda/observed.cuh"

enum { THREADS = 256, SLICES = 32 };

static __device__ double sum_block(double x, double *shared)
{
  shared[threadIdx.x] = x;
  __syncthreads();
  for (int half = THREADS / 2; half; half /= 2) {
    if ((int) threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  x = shared[0];
  __syncthreads();
  return x;
}

/* A block per column: loads[j] = sum_i x_ij t_i / sum_i t_i^2 over the rows observed in it; 0 where none is. */
__global__ void find_loads(const double *x, int64_t n, int64_t p, int64_t ld, const double *t, double *loads)
{
  __shared__ double shared[THREADS];
  for (int64_t j = blockIdx.x; j < p; j += gridDim.x) {
    double over = 0, under = 0;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < n; i += THREADS) {
      const double a = x[i + j * ld], b = t[i];
      if (a == a) {
        over += a * b;
        under += b * b;
      }
    }
    over = sum_block(over, shared);
    under = sum_block(under, shared);
    if (threadIdx.x == 0) loads[j] = under > 0 ? over / under : 0;
  }
}

/* A thread per row and slice of columns: both sums of a score over its slice, which are added up later in the order of
 * the slices. */
__global__ void sum_scores(const double *x, int64_t n, int64_t p, int64_t ld, const double *loads, double *sums)
{
  const int64_t i = blockIdx.x * (int64_t) THREADS + threadIdx.x, each = (p + SLICES - 1) / SLICES,
                first = blockIdx.y * each;
  const int64_t last = first + each < p ? first + each : p;
  double over = 0, under = 0;
  if (i >= n) return;
#pragma unroll 4
  for (int64_t j = first; j < last; j++) {
    const double a = x[i + j * ld], b = loads[j];
    if (a == a) {
      over += a * b;
      under += b * b;
    }
  }
  sums[(2 * (int64_t) blockIdx.y) * n + i] = over;
  sums[(2 * (int64_t) blockIdx.y + 1) * n + i] = under;
}

__global__ void find_scores(const double *sums, int64_t n, double *t)
{
  const int64_t i = blockIdx.x * (int64_t) THREADS + threadIdx.x;
  double over = 0, under = 0;
  if (i >= n) return;
  for (int space = 0; space < SLICES; space++) {
    over += sums[2 * (int64_t) space * n + i];
    under += sums[(2 * (int64_t) space + 1) * n + i];
  }
  t[i] = under > 0 ? over / under : 0;
}

__global__ void take_off(double *x, int64_t n, int64_t p, int64_t ld, const double *t, const double *loads)
{
  for (int64_t j = blockIdx.y; j < p; j += gridDim.y) {
    const double load = loads[j];
    for (int64_t i = blockIdx.x * (int64_t) THREADS + threadIdx.x; i < n; i += (int64_t) gridDim.x * THREADS)
      x[i + j * ld] -= t[i] * load;
  }
}

static weft_status vectors(weft_pca_space *space)
{
  weft_status st = WEFT_OK;
  if (!space->t) WEFT_DEVICE_TAKE(space->t, &space->mem, space->data->n);
  if (!space->loads) WEFT_DEVICE_TAKE(space->loads, &space->mem, space->data->p);
  if (!space->sums) WEFT_DEVICE_TAKE(space->sums, &space->mem, 2 * SLICES * space->data->n);
done:
  return st;
}

/* Loads from t (both on the host), scores from loads, or one after the other. */
static weft_status regress(weft_pca_space *space, bool find_them, const double *t, double *loads, double *scores)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const int64_t n = (int64_t) space->data->n, p = (int64_t) space->data->p;
  const unsigned blocks = (unsigned) ((n + THREADS - 1) / THREADS);
  const cudaStream_t stream = space->mem.stream;
  WEFT_TRY(vectors(space));
  if (find_them) {
    WEFT_CUDA(cudaMemcpyAsync(space->t, t, (size_t) n * sizeof *t, cudaMemcpyHostToDevice, stream));
    find_loads<<<(unsigned) (p < 65536 ? p : 65536), THREADS, 0, stream>>>(space->x, n, p, space->ld, space->t,
                                                                           space->loads);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaMemcpyAsync(loads, space->loads, (size_t) p * sizeof *loads, cudaMemcpyDeviceToHost, stream));
  } else {
    WEFT_CUDA(cudaMemcpyAsync(space->loads, loads, (size_t) p * sizeof *loads, cudaMemcpyHostToDevice, stream));
  }
  if (scores) {
    sum_scores<<<dim3(blocks, SLICES), THREADS, 0, stream>>>(space->x, n, p, space->ld, space->loads, space->sums);
    WEFT_CUDA(cudaGetLastError());
    find_scores<<<blocks, THREADS, 0, stream>>>(space->sums, n, space->t);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaMemcpyAsync(scores, space->t, (size_t) n * sizeof *scores, cudaMemcpyDeviceToHost, stream));
  }
  WEFT_CUDA(cudaStreamSynchronize(stream));
done:
  return st;
}

weft_status weft_pca_observed_cuda(weft_pca_space *space, double *t, double *loads)
{
  return regress(space, true, t, loads, t);
}

weft_status weft_pca_observed_loads_cuda(weft_pca_space *space, const double *t, double *loads)
{
  return regress(space, true, t, loads, NULL);
}

weft_status weft_pca_observed_scores_cuda(weft_pca_space *space, const double *loads, double *t)
{
  return regress(space, false, NULL, (double *) loads, t);
}

/* Sends t and loads, and takes their product off the space's own copy of X; NaN stays NaN. */
weft_status weft_pca_deflate_cuda(weft_pca_space *space, const double *t, const double *loads)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const int64_t n = (int64_t) space->data->n, p = (int64_t) space->data->p;
  const unsigned blocks = (unsigned) ((n + THREADS - 1) / THREADS < 64 ? (n + THREADS - 1) / THREADS : 64);
  WEFT_TRY(vectors(space));
  WEFT_CUDA(cudaMemcpyAsync(space->t, t, (size_t) n * sizeof *t, cudaMemcpyHostToDevice, space->mem.stream));
  WEFT_CUDA(
      cudaMemcpyAsync(space->loads, loads, (size_t) p * sizeof *loads, cudaMemcpyHostToDevice, space->mem.stream));
  take_off<<<dim3(blocks, (unsigned) (p < 4096 ? p : 4096)), THREADS, 0, space->mem.stream>>>(space->x, n, p, space->ld,
                                                                                              space->t, space->loads);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaStreamSynchronize(space->mem.stream));
done:
  return st;
}
