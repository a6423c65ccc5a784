/* The operations of pca.h on a device. X is centred and scaled where it is put: in place after the upload, in a copy of
 * a resident matrix. What does not fit is prepared piece by piece, column after column, in each product. Sparse blocks
 * are kept by columns and by rows, so that both products gather; the centre comes off afterwards (see pca_cpu.c). Those
 * that are read in blocks have a file of their own. */
#include <cmath>
#include <cstring>
#include <new>
#include "../base/parallel.h"
#include "pca_cuda.cuh"

weft_status weft_pca_library_error(weft_ctx *ctx, const char *library, int code, const char *file, int line)
{
  const char *name = strrchr(file, '/');
  if (code == CUBLAS_STATUS_ALLOC_FAILED)
    return weft_fail(ctx, WEFT_ERR_MEMORY, "Not enough device memory (%s).", library);
  return weft_fail(ctx, WEFT_ERR_DEVICE, "%s: error %d (%s:%d)", library, code, name ? name + 1 : file, line);
}

/* Made once a process for each host thread of a call, which has a device: making one costs milliseconds. */
static cublasHandle_t blas_handle(const weft_ctx *ctx)
{
  static struct { cublasHandle_t handle; int device; } kept[WEFT_MOST_DEVICES + 1];
  auto &own = kept[ctx->lane];
  if (own.handle && own.device != ctx->device) {
    cublasDestroy(own.handle);
    own.handle = NULL;
  }
  own.device = ctx->device;
  if (!own.handle && cublasCreate(&own.handle) != CUBLAS_STATUS_SUCCESS) own.handle = NULL;
  return own.handle;
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
static cudaError_t prepare_piece(const weft_pca_space *s, const From *from, int64_t row, int64_t column, int64_t rows,
                                 int64_t columns, To *to, int64_t ld, bool form)
{
  const dim3 grid((unsigned) ((ld + 1023) / 1024 < 64 ? (ld + 1023) / 1024 : 64),
                  (unsigned) (columns < 4096 ? columns : 4096));
  prepare<<<grid, 256, 0, s->mem.stream>>>(from, rows, columns, form ? s->center + column : NULL,
                                           form ? s->factor + column : NULL, form && s->row ? s->row + row : NULL, to,
                                           ld);
  return cudaGetLastError();
}

struct columns { const double *x; size_t rows, ld; };

/* Elements of columns of `rows` rows, one after another, from columns that lie `ld` apart. */
static void fill_columns(const void *data, size_t first, size_t count, void *out, int threads)
{
  const columns *c = (const columns *) data;
  const size_t share = (count + threads - 1) / threads;
  if (c->rows == c->ld) { weft_fill_doubles(c->x, first, count, out, threads); return; }
  WEFT_PARALLEL(threads)
  WEFT_FOR(static)
  for (int t = 0; t < threads; t++) {
    const size_t end = t * share + share < count ? t * share + share : count;
    for (size_t at = t * share; at < end; ) {
      const size_t row = (first + at) % c->rows, run = c->rows - row < end - at ? c->rows - row : end - at;
      memcpy((double *) out + at, c->x + (first + at) / c->rows * c->ld + row, run * sizeof *c->x);
      at += run;
    }
  }
}

/* ---- pieces: everything that a product meets ---- */

/* Columns of `rows` rows that the piece buffer holds. */
static int64_t columns_at_once(const weft_pca_space *s, int64_t rows)
{
  return (int64_t) (s->piece_count / (size_t) rows);
}

template <typename From>
static weft_status pieces_of_device(weft_pca_space *s, const From *from, bool form, weft_pca_piece_work work,
                                    void *data)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const int64_t n = (int64_t) s->data->n, p = (int64_t) s->data->p, step = columns_at_once(s, n);
  for (int64_t j = 0; j < p; j += step) {
    const int64_t now = p - j < step ? p - j : step;
    const weft_pca_piece x = { s->piece, 0, j, n, now, n };
    WEFT_TRY(weft_poll(ctx, 0, 0));
    WEFT_CUDA(prepare_piece(s, from + j * n, 0, j, n, now, s->piece, n, form));
    WEFT_TRY(work(s, &x, data));
  }
done:
  return st;
}

static weft_status each_piece(weft_pca_space *s, weft_pca_piece_work work, void *data)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const weft_pca_data *d = s->data;
  weft_pca_panel panel;
  if (s->x) {
    const weft_pca_piece x = { s->x, 0, 0, (int64_t) d->n, (int64_t) d->p, s->ld };
    return work(s, &x, data);
  }
  if (s->held) return weft_pca_each_stored(s, work, data);
  if (s->single && !s->refined) return pieces_of_device(s, s->single, false, work, data);
  if (d->resident && d->resident->single)
    return pieces_of_device(s, (const float *) d->resident->data, true, work, data);
  if (d->resident) return pieces_of_device(s, (const double *) d->resident->data, true, work, data);
  for (size_t t = 0; t < d->panels; t++) {
    WEFT_TRY(d->fetch(ctx, d->source, t, &panel));
    const int64_t rows = (int64_t) panel.n, step = columns_at_once(s, rows);
    for (int64_t j = 0; j < (int64_t) panel.p; j += step) {
      const int64_t now = (int64_t) panel.p - j < step ? (int64_t) panel.p - j : step;
      const weft_pca_piece x = { s->piece, (int64_t) panel.row, (int64_t) panel.column + j, rows, now, rows };
      const columns from = { panel.dense + (size_t) j * panel.ld, panel.n, panel.ld };
      WEFT_TRY(weft_device_upload(&s->mem, s->piece, (size_t) (rows * now), sizeof(double), fill_columns, &from));
      WEFT_CUDA(prepare_piece(s, s->piece, x.row, x.column, rows, now, s->piece, rows, true));
      WEFT_TRY(work(s, &x, data));
    }
  }
done:
  return st;
}

struct kept { double *x; float *single; }; /* one of them */

static weft_status keep_piece(weft_pca_space *s, const weft_pca_piece *x, void *data)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const kept *to = (const kept *) data;
  if (to->x)
    WEFT_CUDA(cudaMemcpy2DAsync(to->x + x->row + x->column * s->ld, s->ld * sizeof(double), x->x,
                                x->ld * sizeof(double), x->rows * sizeof(double), x->columns, cudaMemcpyDeviceToDevice,
                                s->mem.stream));
  else WEFT_CUDA(prepare_piece(s, x->x, 0, 0, x->rows, x->columns, to->single + x->column * x->ld, x->ld, false));
done:
  return st;
}

/* ---- opening ---- */

static weft_status send(weft_pca_space *s, double **to, const double *from, size_t count)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  double *block;
  WEFT_DEVICE_TAKE(block, &s->mem, count);
  *to = block;
  WEFT_CUDA(cudaMemcpyAsync(block, from, count * sizeof(double), cudaMemcpyHostToDevice, s->mem.stream));
done:
  return st;
}

/* All of X on the device when it fits beside what the iteration takes; else room for a piece. */
static weft_status place_dense(weft_pca_space *s)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const weft_pca_data *d = s->data;
  const int64_t n = (int64_t) d->n, p = (int64_t) d->p;
  const double have = weft_device_available(ctx), whole = 8.0 * (double) ((n + 15) / 16 * 16) * (double) p;
  const double most = 0.25 * have / 8, tallest = d->resident || d->panels == 1 ? (double) n : most;
  const bool fits = !s->form->single && (whole < 0.6 * have || s->form->own);
  double *x = NULL;
  float *held;
  kept to = { NULL, NULL };
  s->piece_count = (size_t) fmin(most, fmax(tallest, (double) ((size_t) 1 << 24)));
  if (s->piece_count < (size_t) n && (d->resident || d->panels == 1))
    return weft_fail_memory(ctx, "device", 8.0 * (double) n, have, "one column");
  if (fits && d->resident) {
    WEFT_DEVICE_TAKE(x, &s->mem, (size_t) (s->ld * p));
    if (d->resident->single) WEFT_CUDA(prepare_piece(s, (const float *) d->resident->data, 0, 0, n, p, x, s->ld, true));
    else WEFT_CUDA(prepare_piece(s, (const double *) d->resident->data, 0, 0, n, p, x, s->ld, true));
    s->x = x;
    return WEFT_OK;
  }
  WEFT_DEVICE_TAKE(s->piece, &s->mem, s->piece_count);
  if (fits) {
    WEFT_DEVICE_TAKE(x, &s->mem, (size_t) (s->ld * p));
    WEFT_CUDA(cudaMemsetAsync(x, 0, (size_t) (s->ld * p) * sizeof *x, s->mem.stream));
    to.x = x;
    WEFT_TRY(each_piece(s, keep_piece, &to));
    s->x = x;
    WEFT_CUDA(cudaStreamSynchronize(s->mem.stream));
    weft_device_drop(&s->mem, s->piece);
    s->piece = NULL;
  } else if (s->form->single && 4.0 * (double) n * (double) p < 0.5 * have) {
    WEFT_DEVICE_TAKE(held, &s->mem, (size_t) (n * p));
    to.single = held;
    WEFT_TRY(each_piece(s, keep_piece, &to));
    s->single = held;
  }
done:
  return st;
}

static weft_status place_sparse(weft_pca_space *s)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const weft_pca_data *d = s->data;
  const int64_t p = (int64_t) d->p;
  weft_pca_panel panel;
  LIBRARY("cuSPARSE", cusparseCreate(&s->sparse));
  LIBRARY("cuSPARSE", cusparseSetStream(s->sparse, s->mem.stream));
  for (size_t t = 0; t < d->panels; t++) {
    sparse_block b;
    int32_t *starts, *rows, *row_starts, *columns;
    double *values, *row_values;
    char *buffer;
    size_t bytes = 0;
    WEFT_TRY(d->fetch(ctx, d->source, t, &panel));
    memset(&b, 0, sizeof b);
    b.row = (int64_t) panel.row;
    b.n = (int64_t) panel.n;
    b.stored = panel.starts[p];
    const size_t stored = (size_t) b.stored;
    WEFT_DEVICE_TAKE(starts, &s->mem, (size_t) p + 1);
    WEFT_DEVICE_TAKE(rows, &s->mem, stored);
    WEFT_DEVICE_TAKE(values, &s->mem, stored);
    WEFT_DEVICE_TAKE(row_starts, &s->mem, (size_t) b.n + 1);
    WEFT_DEVICE_TAKE(columns, &s->mem, stored);
    WEFT_DEVICE_TAKE(row_values, &s->mem, stored);
    WEFT_TRY(weft_device_upload(&s->mem, values, stored, sizeof(double), weft_fill_doubles, panel.values));
    WEFT_TRY(weft_device_upload(&s->mem, rows, stored / 2, 8, weft_fill_doubles, panel.rows));
    if (stored % 2)
      WEFT_CUDA(cudaMemcpyAsync(rows + stored - 1, panel.rows + stored - 1, 4, cudaMemcpyHostToDevice, s->mem.stream));
    WEFT_CUDA(cudaMemcpyAsync(starts, panel.starts, ((size_t) p + 1) * 4, cudaMemcpyHostToDevice, s->mem.stream));
    LIBRARY("cuSPARSE",
            cusparseCsr2cscEx2_bufferSize(s->sparse, (int) p, (int) b.n, (int) stored, values, starts, rows, row_values,
                                          row_starts, columns, CUDA_R_64F, CUSPARSE_ACTION_NUMERIC,
                                          CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG1, &bytes));
    WEFT_DEVICE_TAKE(buffer, &s->mem, bytes + 1);
    LIBRARY("cuSPARSE", cusparseCsr2cscEx2(s->sparse, (int) p, (int) b.n, (int) stored, values, starts, rows,
                                           row_values, row_starts, columns, CUDA_R_64F, CUSPARSE_ACTION_NUMERIC,
                                           CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG1, buffer));
    WEFT_CUDA(cudaStreamSynchronize(s->mem.stream));
    weft_device_drop(&s->mem, buffer);
    LIBRARY("cuSPARSE", cusparseCreateCsr(&b.by_column, p, b.n, b.stored, starts, rows, values, CUSPARSE_INDEX_32I,
                                          CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    LIBRARY("cuSPARSE",
            cusparseCreateCsr(&b.by_row, b.n, p, b.stored, row_starts, columns, row_values, CUSPARSE_INDEX_32I,
                              CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    s->blocks->push_back(b);
  }
done:
  return st;
}

static void close_space(weft_pca_space *s)
{
  if (s->mem.stream) cudaStreamSynchronize(s->mem.stream);
  if (s->blocks) {
    for (const sparse_block &b : *s->blocks) { cusparseDestroySpMat(b.by_column); cusparseDestroySpMat(b.by_row); }
    delete s->blocks;
  }
  delete s->held;
  if (s->numbers) cudaFreeHost(s->numbers);
  if (s->sparse) cusparseDestroy(s->sparse);
  if (s->solver) cusolverDnDestroy(s->solver);
  weft_device_end(&s->mem);
  delete s;
}

static weft_status open_space(weft_ctx *ctx, const weft_pca_data *data, const weft_pca_form *form, weft_pca_space **out)
{
  weft_status st = WEFT_OK;
  weft_pca_space *s = new (std::nothrow) weft_pca_space();
  if (!s) return weft_fail_memory(ctx, "host", sizeof *s, -1, "");
  s->ctx = ctx;
  s->mem = weft_device_begin(ctx);
  s->data = data;
  s->form = form;
  s->ld = ((int64_t) data->n + 15) / 16 * 16;
  s->blocks = new (std::nothrow) std::vector<sparse_block>();
  if (s->mem.opened != WEFT_OK) { st = s->mem.opened; goto done; }
  s->blas = blas_handle(ctx);
  if (!s->blas) {
    st = weft_pca_library_error(ctx, "cuBLAS", CUBLAS_STATUS_NOT_INITIALIZED, __FILE__, __LINE__);
    goto done;
  }
  LIBRARY("cuBLAS", cublasSetStream(s->blas, s->mem.stream));
  WEFT_TRY(send(s, &s->center, form->center, data->p));
  WEFT_TRY(send(s, &s->factor, form->factor, data->p));
  if (form->row) WEFT_TRY(send(s, &s->row, form->row, data->n));
  WEFT_TRY(!data->sparse ? place_dense(s) : data->stays ? place_sparse(s) : weft_pca_place_stored(s));
  *out = s;
  return WEFT_OK;
done:
  close_space(s);
  return st;
}

static weft_status take(weft_pca_space *s, size_t count, double **out)
{
  weft_status st = WEFT_OK;
  double *block;
  WEFT_DEVICE_TAKE(block, &s->mem, count);
  *out = block;
done:
  return st;
}

static void drop(weft_pca_space *s, double *block)
{
  cudaStreamSynchronize(s->mem.stream);
  weft_device_drop(&s->mem, block);
}

static weft_status put(weft_pca_space *s, double *to, const double *from, size_t count)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  WEFT_CUDA(cudaMemcpyAsync(to, from, count * sizeof *to, cudaMemcpyHostToDevice, s->mem.stream));
done:
  return st;
}

static weft_status get(weft_pca_space *s, double *to, const double *from, size_t count)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  WEFT_CUDA(cudaMemcpyAsync(to, from, count * sizeof *to, cudaMemcpyDeviceToHost, s->mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(s->mem.stream));
done:
  return st;
}

static weft_status copy(weft_pca_space *s, double *to, const double *from, size_t count)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  WEFT_CUDA(cudaMemcpyAsync(to, from, count * sizeof *to, cudaMemcpyDeviceToDevice, s->mem.stream));
done:
  return st;
}

__global__ static void fill_random(weft_rng rng, uint64_t first, double *to, size_t count)
{
  const size_t i = blockIdx.x * (size_t) blockDim.x + threadIdx.x;
  if (i < count) to[i] = 2 * weft_draw_uniform(rng, first + i) - 1;
}

static weft_status draw(weft_pca_space *s, weft_rng rng, uint64_t first, double *to, size_t count)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  fill_random<<<weft_pca_blocks_for(count), 256, 0, s->mem.stream>>>(rng, first, to, count);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

static void refine(weft_pca_space *s) { s->refined = true; }

static weft_status join(weft_pca_space *s, double *x, size_t count) { return weft_device_join_add(&s->mem, x, count); }

/* ---- products ---- */

static weft_status gemm(weft_pca_space *s, int ta, int tb, size_t m, size_t n, size_t k, double alpha, const double *a,
                        size_t lda, const double *b, size_t ldb, double beta, double *c, size_t ldc)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  if (!m || !n) return st;
  if (n == 1 && !tb && k > 1 && m > 1) {
    LIBRARY("cuBLAS", cublasDgemv(s->blas, ta ? CUBLAS_OP_T : CUBLAS_OP_N, (int) (ta ? k : m), (int) (ta ? m : k),
                                  &alpha, a, (int) lda, b, 1, &beta, c, 1));
    return st;
  }
  LIBRARY("cuBLAS", cublasDgemm(s->blas, ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, (int) m,
                                (int) n, (int) k, &alpha, a, (int) lda, b, (int) ldb, &beta, c, (int) ldc));
done:
  return st;
}

struct product_job { int transposed; const double *v; size_t b; double *out; };

static weft_status multiply_piece(weft_pca_space *s, const weft_pca_piece *x, void *data)
{
  const product_job *job = (const product_job *) data;
  const size_t n = s->data->n, p = s->data->p, ld = (size_t) x->ld;
  return job->transposed ? gemm(s, 1, 0, x->columns, job->b, x->rows, 1, x->x, ld, job->v + x->row, n, x->row ? 1 : 0,
                                job->out + x->column, p)
                         : gemm(s, 0, 0, x->rows, job->b, x->columns, 1, x->x, ld, job->v + x->column, p,
                                x->column ? 1 : 0, job->out + x->row, n);
}

/* to[i b + j] = from[i + j rows] times[i] */
__global__ void by_rows(double *to, const double *from, int64_t rows, int b, const double *times)
{
  const int64_t at = blockIdx.x * (int64_t) blockDim.x + threadIdx.x;
  if (at >= rows * b) return;
  const int64_t i = at % rows, j = at / rows;
  to[i * b + j] = from[at] * (times ? times[i] : 1);
}

/* out[i + j rows] = (sums[i b + j] - shift[j] center[i]) times[i] */
__global__ void take_centre(double *out, const double *sums, int64_t rows, int b, const double *shift,
                            const double *center, const double *times)
{
  const int64_t at = blockIdx.x * (int64_t) blockDim.x + threadIdx.x;
  if (at >= rows * b) return;
  const int64_t i = at % rows, j = at / rows;
  out[at] = (sums[i * b + j] - shift[j] * (center ? center[i] : 1)) * (times ? times[i] : 1);
}

/* sums (rows of b) += block × in, both with rows one after another. */
static weft_status sparse_piece(weft_pca_space *s, const sparse_block *x, int transposed, double *in, double *sums,
                                size_t b)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const int64_t p = (int64_t) s->data->p, from = transposed ? x->n : p, to = transposed ? p : x->n;
  const double one = 1, keep = transposed ? 1 : 0;
  cusparseDnMatDescr_t left = NULL, right = NULL;
  cusparseSpMatDescr_t matrix = transposed ? x->by_column : x->by_row;
  size_t bytes = 0;
  char *buffer = NULL;
  LIBRARY("cuSPARSE",
          cusparseCreateDnMat(&left, from, (int64_t) b, (int64_t) b, in + (transposed ? x->row * (int64_t) b : 0),
                              CUDA_R_64F, CUSPARSE_ORDER_ROW));
  LIBRARY("cuSPARSE",
          cusparseCreateDnMat(&right, to, (int64_t) b, (int64_t) b, sums + (transposed ? 0 : x->row * (int64_t) b),
                              CUDA_R_64F, CUSPARSE_ORDER_ROW));
  LIBRARY("cuSPARSE",
          cusparseSpMM_bufferSize(s->sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &one,
                                  matrix, left, &keep, right, CUDA_R_64F, CUSPARSE_SPMM_CSR_ALG2, &bytes));
  WEFT_DEVICE_TAKE(buffer, &s->mem, bytes + 1);
  LIBRARY("cuSPARSE", cusparseSpMM(s->sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &one,
                                   matrix, left, &keep, right, CUDA_R_64F, CUSPARSE_SPMM_CSR_ALG2, buffer));
done:
  if (left) cusparseDestroyDnMat(left);
  if (right) cusparseDestroyDnMat(right);
  if (buffer) { cudaStreamSynchronize(s->mem.stream); weft_device_drop(&s->mem, (double *) buffer); }
  return st;
}

static weft_status sparse_product(weft_pca_space *s, int transposed, const double *v, size_t b, double *out)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const size_t n = s->data->n, p = s->data->p, from = transposed ? n : p, to = transposed ? p : n;
  const double one = 1, none = 0;
  double *in = NULL, *sums = NULL, *shift = NULL, *ones = NULL;
  WEFT_DEVICE_TAKE(in, &s->mem, from * b);
  WEFT_DEVICE_TAKE(sums, &s->mem, to * b);
  WEFT_DEVICE_TAKE(shift, &s->mem, b);
  if (transposed) {
    WEFT_DEVICE_TAKE(ones, &s->mem, n);
    WEFT_CUDA(weft_pca_fill(ones, (int64_t) n, 1, s->mem.stream));
  }
  WEFT_CUDA(cudaMemsetAsync(sums, 0, to * b * sizeof *sums, s->mem.stream));
  by_rows<<<weft_pca_blocks_for(from * b), 256, 0, s->mem.stream>>>(in, v, (int64_t) from, (int) b,
                                                                    transposed ? s->row : s->factor);
  WEFT_CUDA(cudaGetLastError());
  LIBRARY("cuBLAS", cublasDgemv(s->blas, CUBLAS_OP_N, (int) b, (int) from, &one, in, (int) b,
                                transposed ? ones : s->center, 1, &none, shift, 1));
  for (const sparse_block &x : *s->blocks) {
    WEFT_TRY(weft_poll(ctx, 0, 0));
    WEFT_TRY(sparse_piece(s, &x, transposed, in, sums, b));
  }
  take_centre<<<weft_pca_blocks_for(to * b), 256, 0, s->mem.stream>>>(out, sums, (int64_t) to, (int) b, shift,
                                                                      transposed ? s->center : NULL,
                                                                      transposed ? s->factor : s->row);
  WEFT_CUDA(cudaGetLastError());
done:
  cudaStreamSynchronize(s->mem.stream);
  double *blocks[] = { in, sums, shift, ones };
  for (double *block : blocks) if (block) weft_device_drop(&s->mem, block);
  return st;
}

weft_status weft_pca_product(weft_pca_space *s, int transposed, const double *v, size_t b, double *out)
{
  product_job job = { transposed, v, b, out };
  return s->blocks->empty() ? each_piece(s, multiply_piece, &job) : sparse_product(s, transposed, v, b, out);
}

static int squares(const weft_pca_space *s, size_t order)
{
  const bool summed = s->x || (s->held && order == s->data->p);
  return summed && 8.0 * (double) order * (double) order < 0.5 * weft_device_available(s->ctx);
}

static weft_status by_square(weft_pca_space *s, const double *g, size_t order, size_t b, double alpha, const double *v,
                             double beta, double *out)
{
  return gemm(s, 0, 0, order, b, order, alpha, g, order, v, order, beta, out, order);
}

/* ---- a step of GS-PCA ---- */

/* Waits for the numbers of the step without the driver's detour; looks for errors now and then. */
static weft_status numbers_of_step(weft_pca_space *s, double out[3])
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const volatile double *numbers = s->numbers;
  for (int spins = 1; numbers[3] != s->turn; spins++) {
    if (spins % 4096) continue;
    const cudaError_t e = cudaStreamQuery(s->mem.stream);
    if (e != cudaErrorNotReady) WEFT_CUDA(e);
  }
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  for (int i = 0; i < 3; i++) out[i] = numbers[i];
done:
  return st;
}

/* X in panels beside X, when there is room for both. */
static weft_status open_fused(weft_pca_space *s)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const int64_t n = (int64_t) s->data->n, p = (int64_t) s->data->p;
  const size_t count = weft_pca_tiled_count(n, p);
  WEFT_CUDA(cudaHostAlloc((void **) &s->numbers, 4 * sizeof *s->numbers, cudaHostAllocDefault));
  s->numbers[3] = 0;
  s->plain = !s->x || !weft_pca_fused_fits(p) || 8.0 * (double) count > 0.8 * weft_device_available(ctx);
  if (s->plain) return st;
  WEFT_DEVICE_TAKE(s->partial, &s->mem, weft_pca_fused_partial(p));
  WEFT_DEVICE_TAKE(s->tiled, &s->mem, count);
  WEFT_CUDA(weft_pca_tile(s->x, n, p, s->ld, s->tiled, s->mem.stream));
done:
  return st;
}

static weft_status step(weft_pca_space *s, const double *found, size_t k, double *v, double *u, double *w,
                        double out[3])
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const int64_t n = (int64_t) s->data->n, p = (int64_t) s->data->p;
  double *c = NULL;
  int parts = 0;
  if (!s->numbers) WEFT_TRY(open_fused(s));
  if (!s->plain && k <= 256) {
    const weft_pca_dense m = { s->tiled, n, p };
    WEFT_CUDA(weft_pca_fused(&m, v, u, s->partial, &parts, s->mem.stream));
  } else {
    WEFT_TRY(weft_pca_product(s, 0, v, 1, u));
    WEFT_TRY(weft_pca_product(s, 1, u, 1, w));
  }
  if (k > 256) { /* the kernel that follows holds at most 256 coefficients */
    WEFT_DEVICE_TAKE(c, &s->mem, k);
    for (int twice = 0; twice < 2; twice++) {
      WEFT_TRY(gemm(s, 1, 0, k, 1, (size_t) p, 1, found, (size_t) p, w, (size_t) p, 0, c, k));
      WEFT_TRY(gemm(s, 0, 0, (size_t) p, 1, k, -1, found, (size_t) p, c, k, 1, w, (size_t) p));
    }
    k = 0;
  }
  s->turn++;
  WEFT_CUDA(weft_pca_after(found, (int) k, s->partial, parts, v, u, w, n, p, s->numbers, s->turn, s->mem.stream));
  WEFT_TRY(numbers_of_step(s, out));
done:
  if (c) drop(s, c);
  return st;
}

extern "C" {
extern const weft_pca_ops weft_pca_cuda;
const weft_pca_ops weft_pca_cuda = {
  weft_pca_moments_cuda, weft_pca_seen_cuda, open_space, close_space, take, drop, put, get, copy, draw,
  weft_pca_product, gemm, squares, weft_pca_square, by_square, weft_pca_shift, weft_pca_eigen, step, refine, join,
  weft_pca_observed_cuda, weft_pca_observed_loads_cuda, weft_pca_observed_scores_cuda, weft_pca_deflate_cuda
};
}
