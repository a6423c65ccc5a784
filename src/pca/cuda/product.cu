/* X on a device and its products: see operations.cu. */
#include <cmath>
#include <cstring>
#include "core/call/parallel.h"
#include "pca/cuda/genotypes.cuh"
#include "pca/cuda/pca.cuh"
#include "pca/cuda/product.cuh"
#include "pca/cuda/sparse/gathered.cuh"
#include "pca/cuda/sparse/stored.cuh"
#include "pca/limits.h"

weft_status weft_pca_library_error(weft_ctx *ctx, const char *library, int code, const char *file, int line)
{
  const char *name = strrchr(file, '/');
  if (code == CUBLAS_STATUS_ALLOC_FAILED)
    return weft_fail(ctx, WEFT_ERR_MEMORY, "Not enough device memory (%s).", library);
  return weft_fail(ctx, WEFT_ERR_DEVICE, "%s: error %d (%s:%d)", library, code, name ? name + 1 : file, line);
}

__global__ void fill_with(double *x, int64_t count, double value)
{
  const int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x;
  if (i < count) x[i] = value;
}

cudaError_t weft_pca_fill(double *x, int64_t count, double value, cudaStream_t stream)
{
  fill_with<<<weft_pca_blocks_for((size_t) count), 256, 0, stream>>>(x, count, value);
  return cudaGetLastError();
}

/* ---- preparing ---- */

/* to[i + j ld] = (from[i + j rows] - center[j]) factor[j] row[i], rows .. ld-1 zero; to may be from when ld is rows. */
template <typename From, typename To>
__global__ void prepare(const From *from, int64_t rows, int64_t columns, const double *center, const double *factor,
                        const double *row, To *to, int64_t ld)
{
  for (int64_t j = blockIdx.y; j < columns; j += gridDim.y) {
    const double c = center ? center[j] : 0, f = factor ? factor[j] : 1;
    for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < ld; i += (int64_t) gridDim.x * blockDim.x) {
      double x = 0;
      if (i < rows) {
        x = ((double) from[i + j * rows] - c) * f;
        if (row) x *= row[i];
      }
      to[i + j * ld] = (To) x;
    }
  }
}

template <typename From, typename To>
static cudaError_t prepare_piece(const weft_pca_space *space, const From *from, int64_t row, int64_t column,
                                 int64_t rows, int64_t columns, To *to, int64_t ld, bool form)
{
  const dim3 grid((unsigned) ((ld + 1023) / 1024 < 64 ? (ld + 1023) / 1024 : 64),
                  (unsigned) (columns < 4096 ? columns : 4096));
  prepare<<<grid, 256, 0, space->mem.stream>>>(from, rows, columns, form ? space->center + column : NULL,
                                               form ? space->factor + column : NULL,
                                               form && space->row ? space->row + row : NULL, to, ld);
  return cudaGetLastError();
}

struct columns {
  const double *x;
  size_t rows, ld;
};

/* Elements of columns of `rows` rows, one after another, from columns that lie `ld` apart. */
static void fill_columns(const void *data, size_t first, size_t count, void *out, int threads)
{
  const columns *c = (const columns *) data;
  const size_t share = (count + threads - 1) / threads;
  if (c->rows == c->ld) {
    weft_fill_doubles(c->x, first, count, out, threads);
    return;
  }
  WEFT_PARALLEL(threads)
  WEFT_FOR(static)
  for (int t = 0; t < threads; t++) {
    const size_t end = t * share + share < count ? t * share + share : count;
    for (size_t at = t * share; at < end;) {
      const size_t row = (first + at) % c->rows, run = c->rows - row < end - at ? c->rows - row : end - at;
      memcpy((double *) out + at, c->x + (first + at) / c->rows * c->ld + row, run * sizeof *c->x);
      at += run;
    }
  }
}

/* ---- pieces: everything that a product meets ---- */

/* Columns of `rows` rows that the piece buffer holds. */
static int64_t columns_at_once(const weft_pca_space *space, int64_t rows)
{
  return (int64_t) (space->piece_count / (size_t) rows);
}

/* Calls `work` for runs of all rows and some columns of a matrix that is on the device, copied to s->piece as doubles;
 * with `form` centred and scaled, without it they are so already. */
template <typename From>
static weft_status pieces_of_device(weft_pca_space *space, const From *from, bool form, weft_pca_piece_work work,
                                    void *data)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const int64_t n = (int64_t) space->data->n, p = (int64_t) space->data->p, step = columns_at_once(space, n);
  for (int64_t j = 0; j < p; j += step) {
    const int64_t now = p - j < step ? p - j : step;
    const weft_pca_piece x = { space->piece, 0, j, n, now, n };
    WEFT_TRY(weft_poll(ctx, 0, 0));
    WEFT_CUDA(prepare_piece(space, from + j * n, 0, j, n, now, space->piece, n, form));
    WEFT_TRY(work(space, &x, data));
  }
done:
  return st;
}

/* Calls `work` for pieces that together are X, centred and scaled, wherever X is: whole on the device, in a store's
 * blocks, in single precision, resident, or on the host, from where it is sent again each time. */
static weft_status each_piece(weft_pca_space *space, weft_pca_piece_work work, void *data)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const weft_pca_data *d = space->data;
  weft_pca_panel panel;
  if (space->x) {
    const weft_pca_piece x = { space->x, 0, 0, (int64_t) d->n, (int64_t) d->p, space->ld };
    return work(space, &x, data);
  }
  if (space->held) return weft_pca_each_stored(space, work, data);
  if (space->single && !space->refined) return pieces_of_device(space, space->single, false, work, data);
  if (d->resident && d->resident->single)
    return pieces_of_device(space, (const float *) d->resident->data, true, work, data);
  if (d->resident) return pieces_of_device(space, (const double *) d->resident->data, true, work, data);
  for (size_t t = 0; t < d->panels; t++) {
    WEFT_TRY(d->fetch(ctx, d->source, t, &panel));
    const int64_t rows = (int64_t) panel.n, step = columns_at_once(space, rows);
    for (int64_t j = 0; j < (int64_t) panel.p; j += step) {
      const int64_t now = (int64_t) panel.p - j < step ? (int64_t) panel.p - j : step;
      const weft_pca_piece x = { space->piece, (int64_t) panel.row, (int64_t) panel.column + j, rows, now, rows };
      const columns from = { panel.dense + (size_t) j * panel.ld, panel.n, panel.ld };
      WEFT_TRY(
          weft_device_upload(&space->mem, space->piece, (size_t) (rows * now), sizeof(double), fill_columns, &from));
      WEFT_CUDA(prepare_piece(space, space->piece, x.row, x.column, rows, now, space->piece, rows, true));
      WEFT_TRY(work(space, &x, data));
    }
  }
done:
  return st;
}

struct kept {
  double *x;
  float *single;
}; /* one of them */

static weft_status keep_piece(weft_pca_space *space, const weft_pca_piece *x, void *data)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const kept *to = (const kept *) data;
  if (to->x)
    WEFT_CUDA(cudaMemcpy2DAsync(to->x + x->row + x->column * space->ld, space->ld * sizeof(double), x->x,
                                x->ld * sizeof(double), x->rows * sizeof(double), x->columns, cudaMemcpyDeviceToDevice,
                                space->mem.stream));
  else
    WEFT_CUDA(prepare_piece(space, x->x, 0, 0, x->rows, x->columns, to->single + x->column * x->ld, x->ld, false));
done:
  return st;
}

/* ---- placing ---- */

/* All of X on the device when it fits beside what the iteration takes; else room for a piece. */
static weft_status place_dense(weft_pca_space *space)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const weft_pca_data *data = space->data;
  const int64_t n = (int64_t) data->n, p = (int64_t) data->p;
  const double whole = 8.0 * (double) ((n + 15) / 16 * 16) * (double) p, have = weft_pca_available(ctx, whole);
  const double most = 0.25 * have / 8, tallest = data->resident || data->panels == 1 ? (double) n : most;
  const bool fits = !space->form->single && (whole < 0.6 * have || space->form->own);
  double *x = NULL;
  float *held;
  kept to = { NULL, NULL };
  space->piece_count = (size_t) fmin(most, fmin((double) n * (double) p, fmax(tallest, (double) ((size_t) 1 << 24))));
  if (space->piece_count < (size_t) n && (data->resident || data->panels == 1))
    return weft_fail_memory(ctx, "device", 8.0 * (double) n, have, "one column");
  if (fits && data->resident) {
    WEFT_DEVICE_TAKE(x, &space->mem, (size_t) (space->ld * p));
    if (data->resident->single)
      WEFT_CUDA(prepare_piece(space, (const float *) data->resident->data, 0, 0, n, p, x, space->ld, true));
    else
      WEFT_CUDA(prepare_piece(space, (const double *) data->resident->data, 0, 0, n, p, x, space->ld, true));
    space->x = x;
    return WEFT_OK;
  }
  WEFT_DEVICE_TAKE(space->piece, &space->mem, space->piece_count);
  if (fits) {
    WEFT_DEVICE_TAKE(x, &space->mem, (size_t) (space->ld * p));
    WEFT_CUDA(cudaMemsetAsync(x, 0, (size_t) (space->ld * p) * sizeof *x, space->mem.stream));
    to.x = x;
    WEFT_TRY(each_piece(space, keep_piece, &to));
    space->x = x;
    WEFT_CUDA(cudaStreamSynchronize(space->mem.stream));
    weft_device_drop(&space->mem, space->piece);
    space->piece = NULL;
  } else if (space->form->single && 4.0 * (double) n * (double) p < 0.5 * have) {
    WEFT_DEVICE_TAKE(held, &space->mem, (size_t) (n * p));
    to.single = held;
    WEFT_TRY(each_piece(space, keep_piece, &to));
    space->single = held;
  }
done:
  return st;
}

static weft_status place_sparse(weft_pca_space *space)
{
  weft_status st = WEFT_OK;
  WEFT_TRY(weft_pca_place_stored(space));
  if (space->data->stays) WEFT_TRY(weft_pca_gather_from(space));
done:
  return st;
}

weft_status weft_pca_place(weft_pca_space *space)
{
  const weft_pca_data *data = space->data;
  const double count = (double) space->ld * (double) data->p;
  if (data->coded) return weft_pca_place_genotypes(space);
  if (!data->sparse) return place_dense(space);
  if (data->stays && count <= WEFT_PCA_SPREAD_OUT && 8 * count < 0.3 * weft_pca_available(space->ctx, 8 * count))
    return weft_pca_place_spread_out(space);
  return place_sparse(space);
}

/* ---- products ---- */

weft_status weft_pca_gemm(weft_pca_space *space, int ta, int tb, size_t m, size_t n, size_t k, double alpha,
                          const double *a, size_t lda, const double *b, size_t ldb, double beta, double *c, size_t ldc)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  if (!m || !n) return st;
  if (n == 1 && !tb && k > 1 && m > 1) {
    LIBRARY("cuBLAS", weft_blas.dgemv(space->blas, ta ? CUBLAS_OP_T : CUBLAS_OP_N, (int) (ta ? k : m),
                                      (int) (ta ? m : k), &alpha, a, (int) lda, b, 1, &beta, c, 1));
    return st;
  }
  LIBRARY("cuBLAS",
          weft_blas.dgemm(space->blas, ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, (int) m, (int) n,
                          (int) k, &alpha, a, (int) lda, b, (int) ldb, &beta, c, (int) ldc));
done:
  return st;
}

struct product_job {
  int transposed;
  const double *v;
  size_t b;
  double *out;
};

static weft_status multiply_piece(weft_pca_space *space, const weft_pca_piece *x, void *data)
{
  const product_job *job = (const product_job *) data;
  const size_t n = space->data->n, p = space->data->p, ld = (size_t) x->ld;
  return job->transposed ? weft_pca_gemm(space, 1, 0, x->columns, job->b, x->rows, 1, x->x, ld, job->v + x->row, n,
                                         x->row ? 1 : 0, job->out + x->column, p)
                         : weft_pca_gemm(space, 0, 0, x->rows, job->b, x->columns, 1, x->x, ld, job->v + x->column, p,
                                         x->column ? 1 : 0, job->out + x->row, n);
}

struct twice_job {
  const double *v;
  size_t b;
  double *far, *out;
}; /* far: X v of a piece */

static weft_status multiply_piece_twice(weft_pca_space *space, const weft_pca_piece *x, void *data)
{
  weft_status st = WEFT_OK;
  const twice_job *job = (const twice_job *) data;
  const size_t p = space->data->p, rows = (size_t) x->rows, ld = (size_t) x->ld;
  WEFT_TRY(weft_pca_gemm(space, 0, 0, rows, job->b, p, 1, x->x, ld, job->v, p, 0, job->far, rows));
  WEFT_TRY(weft_pca_gemm(space, 1, 0, p, job->b, rows, 1, x->x, ld, job->far, rows, x->row ? 1 : 0, job->out, p));
done:
  return st;
}

weft_status weft_pca_product(weft_pca_space *space, int transposed, const double *v, size_t b, double *out)
{
  product_job job = { transposed, v, b, out };
  if (space->data->coded) return weft_pca_genotype_product(space, transposed, v, b, out);
  if (space->gathers) return weft_pca_gathered(space, transposed, v, b, out);
  return each_piece(space, multiply_piece, &job);
}

/* out = X'(X v): where blocks are spread out both products follow on each piece, so that X is read once; else two
 * products. */
weft_status weft_pca_twice_cuda(weft_pca_space *space, const double *v, size_t b, double *out)
{
  weft_status st = WEFT_OK;
  const bool pieces = space->held && !space->gathers;
  const size_t rows = pieces ? space->piece_count / space->data->p : space->data->n; /* at once */
  twice_job job = { v, b, NULL, out };
  WEFT_DEVICE_TAKE(job.far, &space->mem, rows * b);
  if (pieces) {
    WEFT_TRY(weft_pca_each_stored(space, multiply_piece_twice, &job));
  } else {
    WEFT_TRY(weft_pca_product(space, 0, v, b, job.far));
    WEFT_TRY(weft_pca_product(space, 1, job.far, b, out));
  }
done:
  if (job.far) weft_device_drop(&space->mem, job.far);
  return st;
}
