/* The Gram matrix on a device, and its eigenvectors. */
#include <cmath>
#include <cstring>
#include "pca/cuda/pca.cuh"
#include "pca/cuda/gram_kernels.cuh"

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

/* ---- to about single precision ---- */

#define DEPTH 8192 /* rows of a product in single precision: more would lose digits */

/* The units for halves take products exactly and sum them in single. The halves are padded in both directions to
 * multiples of 16: for other sizes cuBLAS is three times slower. */
struct halves {
  int64_t rows, columns, order; /* padded; and of the matrix of products */
  int by_rows;
  unsigned long long *bits;
  float *main, *cross;
  __half *high, *low;
  int exponent;
};

static double bytes_of_halves(int64_t rows, int64_t columns, int by_rows)
{
  const double order = (double) (by_rows ? rows : columns);
  return 4.0 * (double) rows * (double) columns + 8.0 * order * order + 4096;
}

/* Device memory for a matrix in two halves per number, with sides padded to 16 (cuBLAS is three times slower
 * otherwise), and for the two sums in single precision. */
static weft_status take_halves(weft_pca_space *s, int64_t rows, int64_t columns, int by_rows, halves *h)
{
  weft_status st = WEFT_OK;
  memset(h, 0, sizeof *h);
  h->rows = (rows + 15) / 16 * 16;
  h->columns = (columns + 15) / 16 * 16;
  h->by_rows = by_rows;
  h->order = by_rows ? h->rows : h->columns;
  WEFT_DEVICE_TAKE(h->bits, &s->mem, 1);
  /* one block: allocating and freeing cost time */
  WEFT_DEVICE_TAKE(h->main, &s->mem, (size_t) (h->rows * h->columns + 2 * h->order * h->order));
  h->cross = h->main + h->order * h->order;
  h->high = (__half *) (h->cross + h->order * h->order);
  h->low = h->high + h->rows * h->columns;
done:
  return st;
}

static void drop_halves(weft_pca_space *s, halves *h)
{
  cudaStreamSynchronize(s->mem.stream);
  if (h->bits) weft_device_drop(&s->mem, h->bits);
  if (h->main) weft_device_drop(&s->mem, h->main);
}

/* A matrix with `h->rows` rows and `columns` columns that are there. */
static weft_status halve(weft_pca_space *s, const double *x, int64_t columns, halves *h)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const int64_t count = h->rows * columns;
  double largest;
  WEFT_CUDA(cudaMemsetAsync(h->bits, 0, sizeof *h->bits, s->mem.stream));
  largest_bits<<<2048, 256, 0, s->mem.stream>>>(x, count, h->bits);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaMemcpyAsync(&largest, h->bits, sizeof largest, cudaMemcpyDeviceToHost, s->mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(s->mem.stream));
  frexp(largest, &h->exponent);
  h->exponent = 14 - h->exponent; /* the largest becomes less than 2^14 */
  split<<<2048, 256, 0, s->mem.stream>>>(x, count, h->rows * h->columns, ldexp(1, h->exponent), h->high, h->low);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Lower triangle of g: the products of what is halved, or these added. */
static weft_status multiply_halves(weft_pca_space *s, const halves *h, int64_t first, int64_t depth, int64_t order,
                                   int more, double *g)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const int64_t tenth = (h->order / 10 + 255) / 256 * 256, width = tenth < 1024 ? 1024 : tenth; /* for all processors */
  const int64_t step = h->by_rows ? 1 : h->rows, from = h->by_rows ? first * h->rows : first;
  const unsigned squares = (unsigned) ((order + 31) / 32);
  const cublasOperation_t left = h->by_rows ? CUBLAS_OP_N : CUBLAS_OP_T, right = h->by_rows ? CUBLAS_OP_T : CUBLAS_OP_N;
  const float one = 1, none = 0;
  const __half *high = h->high + from, *low = h->low + from;
  const int m = (int) h->order, ld = (int) h->rows, deep = (int) depth;
  for (int64_t j = 0; j < h->order; j += width) {
    const int wide = (int) (h->order - j < width ? h->order - j : width);
    LIBRARY("cuBLAS", cublasGemmEx(s->blas, left, right, (int) (h->order - j), wide, deep, &one, high + j * step,
                                   CUDA_R_16F, ld, high + j * step, CUDA_R_16F, ld, &none, h->main + j + j * h->order,
                                   CUDA_R_32F, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }
  LIBRARY("cuBLAS", cublasGemmEx(s->blas, left, right, m, m, deep, &one, high, CUDA_R_16F, ld, low, CUDA_R_16F, ld,
                                 &none, h->cross, CUDA_R_32F, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  join<<<dim3(squares, squares), dim3(32, 8), 0, s->mem.stream>>>(h->main, h->cross, h->order, order,
                                                                  ldexp(1, -h->exponent), more, g);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

static weft_status coarse_square(weft_pca_space *s, int rows, int64_t order, double *g)
{
  weft_status st = WEFT_OK;
  halves h;
  WEFT_TRY(take_halves(s, s->ld, (int64_t) s->data->p, rows, &h));
  WEFT_TRY(halve(s, s->x, (int64_t) s->data->p, &h));
  WEFT_TRY(multiply_halves(s, &h, 0, rows ? h.columns : h.rows, order, 0, g));
done:
  drop_halves(s, &h);
  return st;
}

struct rough_sum {
  double *g;
  halves *h;
  int more;
};

/* Adds one piece's rough Gram matrix to sum->g: split into halves, multiplied at most DEPTH rows at a time in single
 * precision, and added up in double. */
static weft_status add_rough_square(weft_pca_space *s, const weft_pca_piece *x, void *data)
{
  weft_status st = WEFT_OK;
  rough_sum *sum = (rough_sum *) data;
  halves *h = sum->h;
  h->rows = x->ld;
  h->low = h->high + h->rows * h->columns;
  WEFT_TRY(halve(s, x->x, x->columns, h));
  for (int64_t first = 0; first < h->rows; first += DEPTH) {
    const int64_t depth = h->rows - first < DEPTH ? h->rows - first : DEPTH;
    WEFT_TRY(multiply_halves(s, h, first, depth, x->columns, sum->more, sum->g));
    sum->more = 1;
  }
done:
  return st;
}

static weft_status rough_square(weft_pca_space *s, double *g)
{
  weft_status st = WEFT_OK;
  const int64_t p = (int64_t) s->data->p;
  halves h;
  rough_sum sum = { g, &h, 0 };
  WEFT_TRY(take_halves(s, (int64_t) s->piece_count / p, p, 0, &h));
  WEFT_TRY(weft_pca_each_stored(s, add_rough_square, &sum));
done:
  drop_halves(s, &h);
  return st;
}

/* ---- exactly ---- */

/* Pieces that have all columns add up to X'X; a poll between two of them must not wait for many. */
struct sum_of_squares {
  double *g, work;
};

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

/* The Gram matrix, by what the data are: blocks of a store piece by piece, a whole matrix at once (both from halves
 * where `coarse` and there is room, else in double), anything else by products with 64 unit vectors at a time. */
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
    const double room = bytes_of_halves((int64_t) (s->piece_count / p), (int64_t) p, 0);
    if (coarse && room < 0.8 * weft_device_available(ctx))
      WEFT_TRY(rough_square(s, g));
    else
      WEFT_TRY(weft_pca_each_stored(s, add_square, &sum));
  } else if (s->x) {
    const double room = bytes_of_halves(s->ld, (int64_t) p, rows);
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
      for (size_t i = 0; i < b; i++) { WEFT_CUDA(weft_pca_fill(unit + j + i + i * order, 1, 1, s->mem.stream)); }
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

weft_status weft_pca_correct(weft_pca_space *s, double *g, size_t order, const double *m, const double *v, size_t b,
                             double *diagonal)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const double one = 1;
  const unsigned squares = (unsigned) ((order + 31) / 32);
  LIBRARY("cuBLAS", cublasDsyr2k(s->blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, (int) order, (int) b, &one, m,
                                 (int) order, v, (int) order, &one, g, (int) order));
  mirror<<<dim3(squares, squares), dim3(32, 8), 0, s->mem.stream>>>(g, (int64_t) order, diagonal);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* By cuSOLVER, which destroys g and gives ascending values: the last k columns are copied in reverse. WEFT_ERR_INTERNAL
 * where it finds fewer. */
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
  for (double *block : blocks)
    if (block) weft_device_drop(&s->mem, block);
  return st;
}
