/* The Gram matrix on a device, and its eigenvectors. */
#include <cmath>
#include "pca_cuda.cuh"
#include "pca_gram_kernels.cuh"

__global__ void set_diagonal(double *g, int64_t order, const double *diagonal, double by)
{
  const int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x;
  if (i < order) g[i + i * order] = diagonal[i] - by;
}

weft_status weft_pca_shift(weft_pca_space *s, double *g, size_t order, const double *diagonal, double by)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  set_diagonal<<<weft_pca_blocks_for(order), 256, 0, s->mem.stream>>>(g, (int64_t) order, diagonal, by);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* The lower triangle to about single precision: the units for halves take products exactly and sum them in single. The
 * halves are padded in both directions to multiples of 16: for other sizes cuBLAS is three times slower. */
static weft_status coarse_square(weft_pca_space *s, int rows, int64_t order, double *g)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const int64_t columns = ((int64_t) s->data->p + 15) / 16 * 16, count = s->ld * columns, all = rows ? s->ld : columns;
  const int64_t step = rows ? 1 : s->ld, width = (all / 10 + 255) / 256 * 256;
  const unsigned squares = (unsigned) ((order + 31) / 32);
  const cublasOperation_t left = rows ? CUBLAS_OP_N : CUBLAS_OP_T, right = rows ? CUBLAS_OP_T : CUBLAS_OP_N;
  const float one = 1, none = 0;
  const int m = (int) all, ld = (int) s->ld, depth = (int) (rows ? columns : s->ld);
  unsigned long long *bits = NULL;
  double largest;
  int exponent;
  float *main = NULL, *cross;
  __half *high, *low;
  WEFT_DEVICE_TAKE(bits, &s->mem, 1);
  WEFT_CUDA(cudaMemsetAsync(bits, 0, sizeof *bits, s->mem.stream));
  largest_bits<<<2048, 256, 0, s->mem.stream>>>(s->x, s->ld * (int64_t) s->data->p, bits);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaMemcpyAsync(&largest, bits, sizeof largest, cudaMemcpyDeviceToHost, s->mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(s->mem.stream));
  frexp(largest, &exponent);
  exponent = 14 - exponent; /* the largest becomes less than 2^14 */
  WEFT_DEVICE_TAKE(main, &s->mem, (size_t) (count + 2 * all * all)); /* one block: allocating and freeing cost time */
  cross = main + all * all;
  high = (__half *) (cross + all * all);
  low = high + count;
  split<<<2048, 256, 0, s->mem.stream>>>(s->x, s->ld * (int64_t) s->data->p, count, ldexp(1, exponent), high, low);
  WEFT_CUDA(cudaGetLastError());
  for (int64_t j = 0; j < all; j += width) {
    const int wide = (int) (all - j < width ? all - j : width);
    LIBRARY("cuBLAS", cublasGemmEx(s->blas, left, right, (int) (all - j), wide, depth, &one, high + j * step,
                                   CUDA_R_16F, ld, high + j * step, CUDA_R_16F, ld, &none, main + j + j * all,
                                   CUDA_R_32F, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }
  LIBRARY("cuBLAS", cublasGemmEx(s->blas, left, right, m, m, depth, &one, high, CUDA_R_16F, ld, low, CUDA_R_16F, ld,
                                 &none, cross, CUDA_R_32F, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  join<<<dim3(squares, squares), dim3(32, 8), 0, s->mem.stream>>>(main, cross, all, order, ldexp(1, -exponent), g);
  WEFT_CUDA(cudaGetLastError());
done:
  cudaStreamSynchronize(s->mem.stream);
  if (bits) weft_device_drop(&s->mem, bits);
  if (main) weft_device_drop(&s->mem, main);
  return st;
}

/* Pieces that have all columns add up to X'X; a poll between two of them must not wait for many. */
struct sum_of_squares { double *g, work; };

static weft_status add_square(weft_pca_space *s, const weft_pca_piece *x, void *data)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  sum_of_squares *sum = (sum_of_squares *) data;
  const double one = 1, none = 0;
  LIBRARY("cuBLAS", cublasDsyrk(s->blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, (int) x->columns, (int) x->rows, &one,
                                x->x, (int) x->ld, x->row ? &one : &none, sum->g, (int) x->columns));
  sum->work += (double) x->rows * (double) x->columns * (double) x->columns;
  if (sum->work < 1e12) return st;
  WEFT_CUDA(cudaStreamSynchronize(s->mem.stream));
  sum->work = 0;
done:
  return st;
}

weft_status weft_pca_square(weft_pca_space *s, int rows, int coarse, double *g, double *diagonal)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const size_t n = s->data->n, p = s->data->p, order = rows ? n : p, other = rows ? p : n;
  double *unit = NULL, *y = NULL;
  const double one = 1, none = 0;
  const unsigned squares = (unsigned) ((order + 31) / 32);
  const double at_once = fmax(1024, 4e12 / ((double) order * (double) order)); /* between two polls */
  sum_of_squares sum = { g, 0 };
  if (s->held && !rows) {
    WEFT_TRY(weft_pca_each_stored(s, add_square, &sum));
  } else if (s->x) {
    const double room = 4.0 * (double) s->ld * (double) p + 8.0 * (double) order * (double) order;
    if (coarse && (double) other <= 5 * at_once && room < 0.8 * weft_device_available(ctx)) {
      WEFT_TRY(coarse_square(s, rows, (int64_t) order, g));
    } else {
      for (size_t at = 0; at < other;) {
        const size_t depth = (double) (other - at) < at_once ? other - at : (size_t) at_once;
        WEFT_TRY(weft_poll(ctx, (double) at, (double) other));
        LIBRARY("cuBLAS", cublasDsyrk(s->blas, CUBLAS_FILL_MODE_LOWER, rows ? CUBLAS_OP_N : CUBLAS_OP_T, (int) order,
                                      (int) depth, &one, s->x + at * (rows ? (size_t) s->ld : 1), (int) s->ld,
                                      at ? &one : &none, g, (int) order));
        at += depth;
        if (at < other) WEFT_CUDA(cudaStreamSynchronize(s->mem.stream));
      }
    }
  } else { /* by products with unit vectors */
    WEFT_DEVICE_TAKE(unit, &s->mem, order * 64);
    WEFT_DEVICE_TAKE(y, &s->mem, other * 64);
    for (size_t j = 0; j < order; j += 64) {
      const size_t b = order - j < 64 ? order - j : 64;
      WEFT_CUDA(cudaMemsetAsync(unit, 0, order * b * sizeof *unit, s->mem.stream));
      for (size_t i = 0; i < b; i++) {
        WEFT_CUDA(weft_pca_fill(unit + j + i + i * order, 1, 1, s->mem.stream));
      }
      WEFT_TRY(weft_pca_product(s, rows, unit, b, y));
      WEFT_TRY(weft_pca_product(s, !rows, y, b, g + j * order));
    }
  }
  mirror<<<dim3(squares, squares), dim3(32, 8), 0, s->mem.stream>>>(g, (int64_t) order, diagonal);
  WEFT_CUDA(cudaGetLastError());
done:
  cudaStreamSynchronize(s->mem.stream);
  if (unit) weft_device_drop(&s->mem, unit);
  if (y) weft_device_drop(&s->mem, y);
  return st;
}

weft_status weft_pca_eigen(weft_pca_space *s, double *g, size_t order, size_t k, double *vectors)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  double *values = NULL, *work = NULL;
  int *info = NULL, found = 0, size = 0, failed = 0;
  const double zero = 0;
  const int m = (int) order, first = (int) (order - k) + 1;
  LIBRARY("cuSOLVER", s->solver ? 0 : cusolverDnCreate(&s->solver));
  LIBRARY("cuSOLVER", cusolverDnSetStream(s->solver, s->mem.stream));
  WEFT_DEVICE_TAKE(values, &s->mem, order);
  WEFT_DEVICE_TAKE(info, &s->mem, 1);
  LIBRARY("cuSOLVER",
          cusolverDnDsyevdx_bufferSize(s->solver, CUSOLVER_EIG_MODE_VECTOR, CUSOLVER_EIG_RANGE_I,
                                       CUBLAS_FILL_MODE_LOWER, m, g, m, zero, zero, first, m, &found, values, &size));
  WEFT_DEVICE_TAKE(work, &s->mem, (size_t) size);
  LIBRARY("cuSOLVER",
          cusolverDnDsyevdx(s->solver, CUSOLVER_EIG_MODE_VECTOR, CUSOLVER_EIG_RANGE_I, CUBLAS_FILL_MODE_LOWER, m, g, m,
                            zero, zero, first, m, &found, values, work, size, info));
  WEFT_CUDA(cudaMemcpyAsync(&failed, info, sizeof failed, cudaMemcpyDeviceToHost, s->mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(s->mem.stream));
  if (failed || found != (int) k) {
    st = weft_fail(ctx, WEFT_ERR_INTERNAL, "cuSOLVER's syevdx failed (info %d)", failed);
    goto done;
  }
  for (size_t j = 0; j < k; j++)
    WEFT_CUDA(cudaMemcpyAsync(vectors + j * order, g + (k - 1 - j) * order, order * sizeof *g, cudaMemcpyDeviceToDevice,
                              s->mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(s->mem.stream));
done:
  double *blocks[] = { values, work, (double *) info };
  for (double *block : blocks) if (block) weft_device_drop(&s->mem, block);
  return st;
}
