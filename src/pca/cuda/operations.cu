/* The operations of pca.h on a device. X is centred and scaled where it is stored: in place after the upload, in a copy
 * of a resident matrix. What does not fit is prepared piece by piece, column after column, in each product.
 * product.cu places X and multiplies it; sparse/ does so for sparse blocks. */
#include <cstring>
#include <new>
#include "core/device/kept.cuh"
#include "pca/cuda/pca.cuh"
#include "pca/cuda/gram.cuh"
#include "pca/cuda/gs_step.cuh"
#include "pca/cuda/moments.cuh"
#include "pca/cuda/observed.cuh"
#include "pca/cuda/product.cuh"
#include "pca/cuda/refilled.cuh"
#include "pca/limits.h"

#define LITTLE ((size_t) 1 << 17) /* numbers of a block that stays with the space, a megabyte */

/* ---- opening ---- */

static void close_space(weft_pca_space *space)
{
  if (space->mem.stream) cudaStreamSynchronize(space->mem.stream);
  delete space->held;
  if (space->numbers) cudaFreeHost(space->numbers);
  weft_device_end(&space->mem);
  delete space;
}

/* The form stays where it is until the space is closed, so that nobody waits for the copy. */
static weft_status send(weft_pca_space *space, const double *from, size_t count, double **out)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  double *to;
  WEFT_DEVICE_TAKE(to, &space->mem, count);
  WEFT_CUDA(cudaMemcpyAsync(to, from, count * sizeof *from, cudaMemcpyHostToDevice, space->mem.stream));
  *out = to;
done:
  return st;
}

/* Opens cuBLAS and sends what X is made of. The space owns all of it; on failure close_space() frees what there
 * is. */
static weft_status open_space(weft_ctx *ctx, const weft_pca_data *data, const weft_pca_form *form, weft_pca_space **out)
{
  weft_status st = WEFT_OK;
  weft_pca_space *space = new (std::nothrow) weft_pca_space();
  if (!space) return weft_fail_memory(ctx, "host", sizeof *space, -1, "");
  space->ctx = ctx;
  space->mem = weft_device_begin(ctx);
  space->data = data;
  space->form = form;
  space->ld = ((int64_t) data->n + 15) / 16 * 16;
  if (space->mem.opened != WEFT_OK) {
    st = space->mem.opened;
    goto done;
  }
  WEFT_TRY(weft_blas_handle(ctx, space->mem.stream, &space->blas));
  WEFT_TRY(send(space, form->center, data->p, &space->center));
  WEFT_TRY(send(space, form->factor, data->p, &space->factor));
  if (form->row) WEFT_TRY(send(space, form->row, data->n, &space->row));
  WEFT_TRY(weft_pca_place(space));
  *out = space;
  return WEFT_OK;
done:
  close_space(space);
  return st;
}

/* Little blocks that were dropped serve later ones: what uses them follows in the stream, so that nobody waits. Not
 * where memory is limited, or for compute-sanitizer (kept.cuh). */
static bool keeps_little(const weft_pca_space *space, size_t count)
{
  return count <= LITTLE && weft_keeps(space->ctx) && !(space->ctx->device_limit > 0);
}

/* A little block that is free and at most twice as large, or a new one, which a list remembers. */
static weft_status take(weft_pca_space *space, size_t count, double **out)
{
  weft_status st = WEFT_OK;
  double *block;
  const bool little = keeps_little(space, count);
  for (size_t i = 0; little && i < space->little_count; i++) {
    weft_pca_little *own = &space->little[i];
    if (own->used || own->count < count || own->count > 2 * count + 64) continue;
    own->used = true;
    *out = own->block;
    return st;
  }
  WEFT_DEVICE_TAKE(block, &space->mem, count);
  *out = block;
  if (little && space->little_count < WEFT_PCA_MAX_LITTLE)
    space->little[space->little_count++] = { block, count, true };
done:
  return st;
}

static void drop(weft_pca_space *space, double *block)
{
  for (size_t i = 0; i < space->little_count; i++) {
    if (space->little[i].block != block) continue;
    space->little[i].used = false;
    return;
  }
  weft_device_drop(&space->mem, block);
}

static weft_status move(weft_pca_space *space, double *to, const double *from, size_t count, cudaMemcpyKind kind)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  WEFT_CUDA(cudaMemcpyAsync(to, from, count * sizeof *to, kind, space->mem.stream));
done:
  return st;
}

static weft_status put(weft_pca_space *space, double *to, const double *from, size_t count)
{
  return move(space, to, from, count, cudaMemcpyHostToDevice);
}

static weft_status get(weft_pca_space *space, double *to, const double *from, size_t count)
{
  if (count >= (size_t) 1 << 20) return weft_device_download(&space->mem, to, from, count * sizeof *to);
  return weft_device_fetch(&space->mem, to, from, count * sizeof *to);
}

static weft_status copy(weft_pca_space *space, double *to, const double *from, size_t count)
{
  return move(space, to, from, count, cudaMemcpyDeviceToDevice);
}

__global__ static void fill_random(weft_rng rng, uint64_t first, double *to, size_t count)
{
  const size_t i = blockIdx.x * (size_t) blockDim.x + threadIdx.x;
  if (i < count) to[i] = 2 * weft_draw_uniform(rng, first + i) - 1;
}

static weft_status draw(weft_pca_space *space, weft_rng rng, uint64_t first, double *to, size_t count)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  fill_random<<<weft_pca_blocks_for(count), 256, 0, space->mem.stream>>>(rng, first, to, count);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

static void refine(weft_pca_space *space) { space->refined = true; }

static weft_status join(weft_pca_space *space, double *x, size_t count)
{
  return weft_device_join_add(&space->mem, x, count);
}

static int squares(const weft_pca_space *space, size_t order)
{
  const bool summed = space->x || (space->held && order == space->data->p);
  const double bytes = 8.0 * (double) order * (double) order;
  return summed && bytes < 0.5 * weft_pca_available(space->ctx, bytes);
}

/* The units for halves are ten times as fast as those for doubles. A correction reads X once more, which pays for fewer
 * columns only where nothing is sent again. */
static int rough(const weft_pca_space *space, size_t order)
{
  return space->held && order == space->data->p &&
         (order >= WEFT_PCA_ROUGH_ORDER || space->held->size() == space->data->panels);
}

static weft_status by_square(weft_pca_space *space, const double *g, size_t order, size_t b, double alpha,
                             const double *v, double beta, double *out)
{
  return weft_pca_gemm(space, 0, 0, order, b, order, alpha, g, order, v, order, beta, out, order);
}

/* ---- a step of GS-PCA ---- */

/* Waits for the numbers of the step without the driver's detour; looks for errors now and then. */
static weft_status numbers_of_step(weft_pca_space *space, double out[3])
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const volatile double *numbers = space->numbers;
  for (int spins = 1; numbers[3] != space->turn; spins++) {
    if (spins % 4096) continue;
    const cudaError_t e = cudaStreamQuery(space->mem.stream);
    if (e != cudaErrorNotReady) WEFT_CUDA(e);
  }
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  for (int i = 0; i < 3; i++) out[i] = numbers[i];
done:
  return st;
}

/* X in panels beside X, when there is room for both. */
static weft_status open_fused(weft_pca_space *space)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const int64_t n = (int64_t) space->data->n, p = (int64_t) space->data->p;
  const size_t count = weft_pca_tiled_count(n, p);
  WEFT_CUDA(cudaHostAlloc((void **) &space->numbers, 4 * sizeof *space->numbers, cudaHostAllocDefault));
  space->numbers[3] = 0;
  space->plain = !space->x || !weft_pca_fused_fits(p) || 8.0 * (double) count > 0.8 * weft_device_available(ctx);
  if (space->plain) return st;
  WEFT_DEVICE_TAKE(space->partial, &space->mem, weft_pca_fused_partial(p));
  WEFT_DEVICE_TAKE(space->tiled, &space->mem, count);
  WEFT_CUDA(weft_pca_tile(space->x, n, p, space->ld, space->tiled, space->mem.stream));
done:
  return st;
}

/* By the fused kernel where X has its layout, else by two products; then one kernel for the rest, whose three numbers
 * the host reads from pinned memory. */
static weft_status step(weft_pca_space *space, const double *found, size_t k, double *v, double *u, double *w,
                        double out[3])
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const int64_t n = (int64_t) space->data->n, p = (int64_t) space->data->p;
  double *c = NULL;
  int parts = 0;
  if (!space->numbers) WEFT_TRY(open_fused(space));
  if (!space->plain && k <= 256) {
    const weft_pca_dense m = { space->tiled, n, p };
    WEFT_CUDA(weft_pca_fused(&m, v, u, space->partial, &parts, space->mem.stream));
  } else {
    WEFT_TRY(weft_pca_product(space, 0, v, 1, u));
    WEFT_TRY(weft_pca_product(space, 1, u, 1, w));
  }
  if (k > 256) { /* the kernel that follows holds at most 256 coefficients */
    WEFT_DEVICE_TAKE(c, &space->mem, k);
    for (int twice = 0; twice < 2; twice++) {
      WEFT_TRY(weft_pca_gemm(space, 1, 0, k, 1, (size_t) p, 1, found, (size_t) p, w, (size_t) p, 0, c, k));
      WEFT_TRY(weft_pca_gemm(space, 0, 0, (size_t) p, 1, k, -1, found, (size_t) p, c, k, 1, w, (size_t) p));
    }
    k = 0;
  }
  space->turn++;
  WEFT_CUDA(weft_pca_after(found, (int) k, space->partial, parts, v, u, w, n, p, space->numbers, space->turn,
                           space->mem.stream));
  WEFT_TRY(numbers_of_step(space, out));
done:
  if (c) drop(space, c);
  return st;
}

extern "C" {
extern const weft_pca_ops weft_pca_cuda;
const weft_pca_ops weft_pca_cuda = { weft_pca_moments_cuda,
                                     weft_pca_seen_cuda,
                                     open_space,
                                     close_space,
                                     weft_pca_refill_cuda,
                                     take,
                                     drop,
                                     put,
                                     get,
                                     copy,
                                     draw,
                                     weft_pca_product,
                                     weft_pca_twice_cuda,
                                     weft_pca_gemm,
                                     squares,
                                     rough,
                                     weft_pca_square,
                                     by_square,
                                     weft_pca_shift,
                                     weft_pca_correct,
                                     weft_pca_eigen,
                                     step,
                                     refine,
                                     join,
                                     weft_pca_observed_cuda,
                                     weft_pca_observed_loads_cuda,
                                     weft_pca_observed_scores_cuda,
                                     weft_pca_deflate_cuda };
}
