/* X on a device of which a few cells change again and again (missing values, by EM): only these are sent. What the new
 * form does to the other cells is applied in place, x becomes (x + row (old center - new center) old factor) times new
 * factor / old factor: an error of rounding each time, far below what a step of EM changes. X that is sent in pieces
 * for each product is made of the data, which have the new values. */
#include "pca/cuda/pca.cuh"
#include "pca/cuda/refilled.cuh"

enum { THREADS = 256 };

struct two_forms {
  const double *center, *factor, *new_center, *new_factor, *row;
};

__global__ void move_form(double *x, int64_t n, int64_t p, int64_t ld, two_forms f)
{
  for (int64_t j = blockIdx.y; j < p; j += gridDim.y) {
    const double old = f.factor[j], moved = (f.center[j] - f.new_center[j]) * old;
    const double by = old != 0 ? f.new_factor[j] / old : 0;
    if (moved == 0 && by == 1) continue;
    for (int64_t i = blockIdx.x * (int64_t) THREADS + threadIdx.x; i < n; i += (int64_t) gridDim.x * THREADS)
      x[i + j * ld] = (x[i + j * ld] + (f.row ? f.row[i] * moved : moved)) * by;
  }
}

__global__ void put_cells(double *x, int64_t ld, size_t count, const int32_t *row, const int32_t *column,
                          const double *values, two_forms f)
{
  const size_t c = blockIdx.x * (size_t) THREADS + threadIdx.x;
  if (c >= count) return;
  const int64_t i = row[c], j = column[c];
  x[i + j * ld] = (values[c] - f.new_center[j]) * f.new_factor[j] * (f.row ? f.row[i] : 1);
}

/* Room for the cells and for another form, with the places of the cells, which stay. */
static weft_status open_cells(weft_pca_space *space, const weft_pca_cells *cells)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const cudaStream_t stream = space->mem.stream;
  WEFT_DEVICE_TAKE(space->new_center, &space->mem, space->data->p);
  WEFT_DEVICE_TAKE(space->new_factor, &space->mem, space->data->p);
  if (!space->x) goto done;
  WEFT_DEVICE_TAKE(space->cell_row, &space->mem, cells->count);
  WEFT_DEVICE_TAKE(space->cell_column, &space->mem, cells->count);
  WEFT_DEVICE_TAKE(space->cell, &space->mem, cells->count);
  WEFT_CUDA(
      cudaMemcpyAsync(space->cell_row, cells->row, cells->count * sizeof *cells->row, cudaMemcpyHostToDevice, stream));
  WEFT_CUDA(cudaMemcpyAsync(space->cell_column, cells->column, cells->count * sizeof *cells->column,
                            cudaMemcpyHostToDevice, stream));
done:
  return st;
}

weft_status weft_pca_refill_cuda(weft_pca_space *space, const weft_pca_cells *cells)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const cudaStream_t stream = space->mem.stream;
  const weft_pca_form *form = space->form;
  const int64_t n = (int64_t) space->data->n, p = (int64_t) space->data->p;
  const dim3 grid((unsigned) ((n + 1023) / 1024 < 64 ? (n + 1023) / 1024 : 64), (unsigned) (p < 4096 ? p : 4096));
  double *swap;
  if (!space->new_center) WEFT_TRY(open_cells(space, cells));
  WEFT_CUDA(
      cudaMemcpyAsync(space->new_center, form->center, (size_t) p * sizeof(double), cudaMemcpyHostToDevice, stream));
  WEFT_CUDA(
      cudaMemcpyAsync(space->new_factor, form->factor, (size_t) p * sizeof(double), cudaMemcpyHostToDevice, stream));
  if (space->x) {
    const two_forms f = { space->center, space->factor, space->new_center, space->new_factor, space->row };
    WEFT_TRY(
        weft_device_upload(&space->mem, space->cell, cells->count, sizeof(double), weft_fill_doubles, cells->values));
    move_form<<<grid, THREADS, 0, stream>>>(space->x, n, p, space->ld, f);
    WEFT_CUDA(cudaGetLastError());
    put_cells<<<weft_pca_blocks_for(cells->count), THREADS, 0, stream>>>(space->x, space->ld, cells->count,
                                                                         space->cell_row, space->cell_column,
                                                                         space->cell, f);
    WEFT_CUDA(cudaGetLastError());
  }
  swap = space->center;
  space->center = space->new_center;
  space->new_center = swap;
  swap = space->factor;
  space->factor = space->new_factor;
  space->new_factor = swap;
done:
  return st;
}
