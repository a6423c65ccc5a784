/* The Gram matrix on a device, and its eigenvectors. */
#include <cmath>
#include <cstring>
#include "pca/cuda/pca.cuh"
#include "pca/cuda/gram_kernels.cuh"
#include "pca/cuda/gram.cuh"
#include "pca/cuda/product.cuh"
#include "pca/cuda/sparse/stored.cuh"

__global__ void set_diagonal(double *g, int64_t order, const double *diagonal, double by)
{
  const int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x;
  if (i < order) g[i + i * order] = diagonal[i] - by;
}

weft_status weft_pca_shift(weft_pca_space *space, double *g, size_t order, const double *diagonal, double by)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  set_diagonal<<<weft_pca_blocks_for(order), 256, 0, space->mem.stream>>>(g, (int64_t) order, diagonal, by);
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
static weft_status take_halves(weft_pca_space *space, int64_t rows, int64_t columns, int by_rows, halves *parts)
{
  weft_status st = WEFT_OK;
  memset(parts, 0, sizeof *parts);
  parts->rows = (rows + 15) / 16 * 16;
  parts->columns = (columns + 15) / 16 * 16;
  parts->by_rows = by_rows;
  parts->order = by_rows ? parts->rows : parts->columns;
  WEFT_DEVICE_TAKE(parts->bits, &space->mem, 1);
  /* one block: allocating and freeing cost time */
  WEFT_DEVICE_TAKE(parts->main, &space->mem, (size_t) (parts->rows * parts->columns + 2 * parts->order * parts->order));
  parts->cross = parts->main + parts->order * parts->order;
  parts->high = (__half *) (parts->cross + parts->order * parts->order);
  parts->low = parts->high + parts->rows * parts->columns;
done:
  return st;
}

static void drop_halves(weft_pca_space *space, halves *parts)
{
  cudaStreamSynchronize(space->mem.stream);
  if (parts->bits) weft_device_drop(&space->mem, parts->bits);
  if (parts->main) weft_device_drop(&space->mem, parts->main);
}

/* A matrix with `h->rows` rows and `columns` columns that are there. */
static weft_status halve(weft_pca_space *space, const double *x, int64_t columns, halves *parts)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const int64_t count = parts->rows * columns;
  double largest;
  WEFT_CUDA(cudaMemsetAsync(parts->bits, 0, sizeof *parts->bits, space->mem.stream));
  largest_bits<<<2048, 256, 0, space->mem.stream>>>(x, count, parts->bits);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaMemcpyAsync(&largest, parts->bits, sizeof largest, cudaMemcpyDeviceToHost, space->mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(space->mem.stream));
  frexp(largest, &parts->exponent);
  parts->exponent = 14 - parts->exponent; /* the largest becomes less than 2^14 */
  split<<<2048, 256, 0, space->mem.stream>>>(x, count, parts->rows * parts->columns, ldexp(1, parts->exponent),
                                             parts->high, parts->low);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Lower triangle of g: the products of what is halved, or these added. */
static weft_status multiply_halves(weft_pca_space *space, const halves *parts, int64_t first, int64_t depth,
                                   int64_t order, int more, double *g)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const int64_t tenth = (parts->order / 10 + 255) / 256 * 256,
                width = tenth < 1024 ? 1024 : tenth; /* for all processors */
  const int64_t step = parts->by_rows ? 1 : parts->rows, from = parts->by_rows ? first * parts->rows : first;
  const unsigned squares = (unsigned) ((order + 31) / 32);
  const cublasOperation_t left = parts->by_rows ? CUBLAS_OP_N : CUBLAS_OP_T,
                          right = parts->by_rows ? CUBLAS_OP_T : CUBLAS_OP_N;
  const float one = 1, none = 0;
  const __half *high = parts->high + from, *low = parts->low + from;
  const int m = (int) parts->order, ld = (int) parts->rows, deep = (int) depth;
  for (int64_t j = 0; j < parts->order; j += width) {
    const int wide = (int) (parts->order - j < width ? parts->order - j : width);
    LIBRARY("cuBLAS", weft_blas.gemm_ex(space->blas, left, right, (int) (parts->order - j), wide, deep, &one,
                                        high + j * step, CUDA_R_16F, ld, high + j * step, CUDA_R_16F, ld, &none,
                                        parts->main + j + j * parts->order, CUDA_R_32F, m, CUBLAS_COMPUTE_32F,
                                        CUBLAS_GEMM_DEFAULT));
  }
  LIBRARY("cuBLAS", weft_blas.gemm_ex(space->blas, left, right, m, m, deep, &one, high, CUDA_R_16F, ld, low, CUDA_R_16F,
                                      ld, &none, parts->cross, CUDA_R_32F, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  join<<<dim3(squares, squares), dim3(32, 8), 0, space->mem.stream>>>(parts->main, parts->cross, parts->order, order,
                                                                      ldexp(1, -parts->exponent), more, g);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

static weft_status coarse_square(weft_pca_space *space, int rows, int64_t order, double *g)
{
  weft_status st = WEFT_OK;
  halves parts;
  WEFT_TRY(take_halves(space, space->ld, (int64_t) space->data->p, rows, &parts));
  WEFT_TRY(halve(space, space->x, (int64_t) space->data->p, &parts));
  WEFT_TRY(multiply_halves(space, &parts, 0, rows ? parts.columns : parts.rows, order, 0, g));
done:
  drop_halves(space, &parts);
  return st;
}

struct rough_sum {
  double *g;
  halves *parts;
  int more;
};

/* Adds one piece's rough Gram matrix to sum->g: split into halves, multiplied at most DEPTH rows at a time in single
 * precision, and added up in double. */
static weft_status add_rough_square(weft_pca_space *space, const weft_pca_piece *x, void *data)
{
  weft_status st = WEFT_OK;
  rough_sum *sum = (rough_sum *) data;
  halves *parts = sum->parts;
  parts->rows = x->ld;
  parts->low = parts->high + parts->rows * parts->columns;
  WEFT_TRY(halve(space, x->x, x->columns, parts));
  for (int64_t first = 0; first < parts->rows; first += DEPTH) {
    const int64_t depth = parts->rows - first < DEPTH ? parts->rows - first : DEPTH;
    WEFT_TRY(multiply_halves(space, parts, first, depth, x->columns, sum->more, sum->g));
    sum->more = 1;
  }
done:
  return st;
}

static weft_status rough_square(weft_pca_space *space, double *g)
{
  weft_status st = WEFT_OK;
  const int64_t p = (int64_t) space->data->p;
  halves parts;
  rough_sum sum = { g, &parts, 0 };
  WEFT_TRY(take_halves(space, (int64_t) space->piece_count / p, p, 0, &parts));
  WEFT_TRY(weft_pca_each_stored(space, add_rough_square, &sum));
done:
  drop_halves(space, &parts);
  return st;
}

/* ---- exactly ---- */

/* Pieces that have all columns add up to X'X; a poll between two of them must not wait for many. */
struct sum_of_squares {
  double *g, work;
};

static weft_status add_square(weft_pca_space *space, const weft_pca_piece *x, void *data)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  sum_of_squares *sum = (sum_of_squares *) data;
  const double one = 1, none = 0;
  LIBRARY("cuBLAS", weft_blas.dsyrk(space->blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, (int) x->columns, (int) x->rows,
                                    &one, x->x, (int) x->ld, x->row ? &one : &none, sum->g, (int) x->columns));
  sum->work += (double) x->rows * (double) x->columns * (double) x->columns;
  if (sum->work < 1e12) return st;
  WEFT_CUDA(cudaStreamSynchronize(space->mem.stream));
  sum->work = 0;
done:
  return st;
}

/* The Gram matrix, by what the data are: blocks of a store piece by piece, a whole matrix at once (both from halves
 * where `coarse` and there is room, else in double), anything else by products with 64 unit vectors at a time. */
weft_status weft_pca_square(weft_pca_space *space, int rows, int coarse, double *g, double *diagonal)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const size_t n = space->data->n, p = space->data->p, order = rows ? n : p, other = rows ? p : n;
  double *unit = NULL, *y = NULL;
  const double one = 1, none = 0;
  const unsigned squares = (unsigned) ((order + 31) / 32);
  const double at_once = fmax(1024, 4e12 / ((double) order * (double) order)); /* between two polls */
  sum_of_squares sum = { g, 0 };
  if (space->held && !rows) {
    const double room = bytes_of_halves((int64_t) (space->piece_count / p), (int64_t) p, 0);
    if (coarse && room < 0.8 * weft_device_available(ctx))
      WEFT_TRY(rough_square(space, g));
    else
      WEFT_TRY(weft_pca_each_stored(space, add_square, &sum));
  } else if (space->x) {
    const double room = bytes_of_halves(space->ld, (int64_t) p, rows);
    if (coarse && (double) other <= 5 * at_once && room < 0.8 * weft_device_available(ctx)) {
      WEFT_TRY(coarse_square(space, rows, (int64_t) order, g));
    } else {
      for (size_t at = 0; at < other;) {
        const size_t depth = (double) (other - at) < at_once ? other - at : (size_t) at_once;
        WEFT_TRY(weft_poll(ctx, (double) at, (double) other));
        LIBRARY("cuBLAS",
                weft_blas.dsyrk(space->blas, CUBLAS_FILL_MODE_LOWER, rows ? CUBLAS_OP_N : CUBLAS_OP_T, (int) order,
                                (int) depth, &one, space->x + at * (rows ? (size_t) space->ld : 1), (int) space->ld,
                                at ? &one : &none, g, (int) order));
        at += depth;
        if (at < other) WEFT_CUDA(cudaStreamSynchronize(space->mem.stream));
      }
    }
  } else { /* by products with unit vectors */
    WEFT_DEVICE_TAKE(unit, &space->mem, order * 64);
    WEFT_DEVICE_TAKE(y, &space->mem, other * 64);
    for (size_t j = 0; j < order; j += 64) {
      const size_t b = order - j < 64 ? order - j : 64;
      WEFT_CUDA(cudaMemsetAsync(unit, 0, order * b * sizeof *unit, space->mem.stream));
      for (size_t i = 0; i < b; i++) { WEFT_CUDA(weft_pca_fill(unit + j + i + i * order, 1, 1, space->mem.stream)); }
      WEFT_TRY(weft_pca_product(space, rows, unit, b, y));
      WEFT_TRY(weft_pca_product(space, !rows, y, b, g + j * order));
      WEFT_CUDA(cudaStreamSynchronize(space->mem.stream));
      WEFT_TRY(weft_poll(ctx, (double) j, (double) order));
    }
  }
  mirror<<<dim3(squares, squares), dim3(32, 8), 0, space->mem.stream>>>(g, (int64_t) order, diagonal);
  WEFT_CUDA(cudaGetLastError());
done:
  if (unit) weft_device_drop(&space->mem, unit);
  if (y) weft_device_drop(&space->mem, y);
  return st;
}

weft_status weft_pca_correct(weft_pca_space *space, double *g, size_t order, const double *m, const double *v, size_t b,
                             double *diagonal)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const double one = 1;
  const unsigned squares = (unsigned) ((order + 31) / 32);
  LIBRARY("cuBLAS", weft_blas.dsyr2k(space->blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, (int) order, (int) b, &one, m,
                                     (int) order, v, (int) order, &one, g, (int) order));
  mirror<<<dim3(squares, squares), dim3(32, 8), 0, space->mem.stream>>>(g, (int64_t) order, diagonal);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* By cuSOLVER, which destroys g and gives ascending values: the last k columns are copied in reverse. WEFT_ERR_INTERNAL
 * where it finds fewer. */
weft_status weft_pca_eigen(weft_pca_space *space, double *g, size_t order, size_t k, double *vectors)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  double *values = NULL, *work = NULL;
  int *info = NULL, found = 0, size = 0, failed = 0;
  const double zero = 0;
  const int m = (int) order, first = (int) (order - k) + 1;
  WEFT_TRY(weft_solver_handle(ctx, space->mem.stream, &space->solver));
  WEFT_DEVICE_TAKE(values, &space->mem, order);
  WEFT_DEVICE_TAKE(info, &space->mem, 1);
  LIBRARY("cuSOLVER",
          weft_solver.dsyevdx_size(space->solver, CUSOLVER_EIG_MODE_VECTOR, CUSOLVER_EIG_RANGE_I,
                                   CUBLAS_FILL_MODE_LOWER, m, g, m, zero, zero, first, m, &found, values, &size));
  WEFT_DEVICE_TAKE(work, &space->mem, (size_t) size);
  LIBRARY("cuSOLVER",
          weft_solver.dsyevdx(space->solver, CUSOLVER_EIG_MODE_VECTOR, CUSOLVER_EIG_RANGE_I, CUBLAS_FILL_MODE_LOWER, m,
                              g, m, zero, zero, first, m, &found, values, work, size, info));
  WEFT_CUDA(cudaMemcpyAsync(&failed, info, sizeof failed, cudaMemcpyDeviceToHost, space->mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(space->mem.stream));
  if (failed || found != (int) k) {
    st = weft_fail(ctx, WEFT_ERR_INTERNAL, "cuSOLVER's syevdx failed (info %d)", failed);
    goto done;
  }
  for (size_t j = 0; j < k; j++)
    WEFT_CUDA(cudaMemcpyAsync(vectors + j * order, g + (k - 1 - j) * order, order * sizeof *g, cudaMemcpyDeviceToDevice,
                              space->mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(space->mem.stream));
done:
  double *blocks[] = { values, work, (double *) info };
  for (double *block : blocks)
    if (block) weft_device_drop(&space->mem, block);
  return st;
}
