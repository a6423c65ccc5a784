/* Genotypes on a device. Columns stay packed, each from a multiple of 64 bytes on, and every product reads them again
 * (genotype_kernels.cuh). What has no room beside the vectors of an iteration is sent again for each product. */
#include <cmath>
#include <cstdlib>
#include <cstring>
#include "core/call/parallel.h"
#include "pca/both/genotypes.h"
#include "pca/cuda/genotype_kernels.cuh"
#include "pca/cuda/genotypes.cuh"

#define COLUMNS 64
#define VECTORS 1200      /* that an iteration may take (engines/block.c), for which room is left */
#define PASSING 5e8       /* bytes of columns that do not stay */
#define ENOUGH_BLOCKS 264 /* of threads; where there are fewer, blocks share the terms */

/* ---- the product ---- */

/* Few rows and many terms: blocks of threads take shares of these. The shares depend on the shape alone. */
static weft_status multiply_run(weft_pca_space *space, int transposed, genotype_job job)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  weft_pca_device_genotypes *own = &space->genotypes;
  const int64_t tall = (job.rows + ROWS - 1) / ROWS, most = (job.terms + 2047) / 2048;
  int64_t shares = (ENOUGH_BLOCKS + tall - 1) / tall;
  if (shares > most) shares = most;
  job.depth = ((job.terms + shares - 1) / shares + DEPTH - 1) / DEPTH * DEPTH;
  shares = (job.terms + job.depth - 1) / job.depth;
  const dim3 blocks((unsigned) tall, (unsigned) shares);
  if (shares > 1) {
    const size_t count = (size_t) (shares * job.rows * job.b);
    if (count > own->partial_count) {
      if (own->partial) {
        cudaStreamSynchronize(space->mem.stream);
        weft_device_drop(&space->mem, own->partial);
        own->partial = NULL;
        own->partial_count = 0;
      }
      WEFT_DEVICE_TAKE(own->partial, &space->mem, count);
      own->partial_count = count;
    }
    job.partial = own->partial;
  }
  if (transposed)
    launch<true>(job, blocks, space->mem.stream);
  else
    launch<false>(job, blocks, space->mem.stream);
  WEFT_CUDA(cudaGetLastError());
  if (shares > 1) {
    add_shares<<<weft_pca_blocks_for((size_t) (job.rows * job.b)), 256, 0, space->mem.stream>>>(job, (int) shares);
    WEFT_CUDA(cudaGetLastError());
  }
done:
  return st;
}

/* ---- columns on the device ---- */

struct columns_of_file {
  const weft_pca_genotypes *x;
  size_t first, bytes, pitch;
};

static void fill_columns(const void *data, size_t first, size_t count, void *out, int threads)
{
  const columns_of_file *from = (const columns_of_file *) data;
  WEFT_PARALLEL(threads)
  WEFT_FOR(static)
  for (int64_t j = 0; j < (int64_t) count; j++) {
    const size_t place = (size_t) from->x->place[from->first + first + (size_t) j];
    uint8_t *to = (uint8_t *) out + (size_t) j * from->pitch;
    memcpy(to, from->x->bytes + place * from->x->stride, from->bytes);
    memset(to + from->bytes, 0, from->pitch - from->bytes);
  }
}

static weft_status send_columns(weft_pca_space *space, const weft_pca_genotypes *x, size_t first, size_t count,
                                uint8_t *to)
{
  const size_t pitch = (size_t) space->genotypes.pitch;
  const columns_of_file from = { x, first, (space->data->n + 3) / 4, pitch };
  return weft_device_upload(&space->mem, to, count, pitch, fill_columns, &from);
}

__global__ void code_values(const double *center, const double *factor, const double *missing, int64_t p,
                            double *values)
{
  const int64_t j = blockIdx.x * (int64_t) blockDim.x + threadIdx.x;
  if (j < p) weft_pca_code_values(center[j], factor[j], missing ? missing[j] : center[j], values + 4 * j);
}

weft_status weft_pca_place_genotypes(weft_pca_space *space)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const weft_pca_data *data = space->data;
  weft_pca_device_genotypes *own = &space->genotypes;
  const size_t n = data->n, p = data->p, pitch = (n + 255) / 256 * (ROWS / 4);
  double *missing = NULL;
  weft_pca_panel x;
  own->pitch = (int64_t) pitch;
  WEFT_TRY(data->fetch(ctx, data->source, 0, &x));
  WEFT_DEVICE_TAKE(own->values, &space->mem, 4 * p);
  if (space->form->missing) WEFT_TRY(weft_device_send(&space->mem, space->form->missing, p, &missing));
  code_values<<<weft_pca_blocks_for(p), 256, 0, space->mem.stream>>>(space->center, space->factor, missing, (int64_t) p,
                                                                     own->values);
  WEFT_CUDA(cudaGetLastError());
  {
    const double have = weft_device_available(ctx), all = (double) pitch * (double) p;
    const double room = have - fmin(0.5 * have, 8.0 * VECTORS * ((double) n + (double) p) + 1e8);
    own->held = p;
    if (all > room) {
      const double passing = fmin(PASSING, 0.5 * room) / (double) pitch, left = room / (double) pitch - passing;
      own->room = passing > 1 ? (size_t) passing : 1;
      own->held = left > 0 ? (size_t) left : 0;
    }
#ifdef WEFT_TESTS
    const char *few = getenv("WEFT_PCA_HELD"); /* columns that stay, and that pass at once */
    if (few && (size_t) atoi(few) < p) own->held = own->room = (size_t) atoi(few);
#endif
  }
  if (own->room) WEFT_DEVICE_TAKE(own->passing, &space->mem, own->room * pitch);
  if (own->held) {
    WEFT_DEVICE_TAKE(own->codes, &space->mem, own->held * pitch);
    WEFT_TRY(send_columns(space, x.genotypes, 0, own->held, own->codes));
  }
done:
  return st;
}

/* Both kinds of columns, those that stay and those that pass, with at most COLUMNS vectors. */
static weft_status multiply_columns(weft_pca_space *space, int transposed, const double *v, int b, double *out)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const weft_pca_data *data = space->data;
  const weft_pca_device_genotypes *own = &space->genotypes;
  weft_pca_panel x;
  WEFT_TRY(data->fetch(ctx, data->source, 0, &x));
  for (size_t first = 0; first < data->p;) {
    const bool stays = first < own->held;
    const size_t left = data->p - first, count = stays ? own->held : left < own->room ? left : own->room;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) data->p));
    if (!stays) WEFT_TRY(send_columns(space, x.genotypes, first, count, own->passing));
    genotype_job job = {};
    job.codes = stays ? own->codes : own->passing;
    job.pitch = own->pitch;
    job.values = own->values + 4 * first;
    job.rows = (int64_t) (transposed ? count : data->n);
    job.terms = (int64_t) (transposed ? data->n : count);
    job.in = transposed ? v : v + first;
    job.in_rows = (int64_t) (transposed ? data->n : data->p);
    job.b = b;
    job.out = transposed ? out + first : out;
    job.out_rows = (int64_t) (transposed ? data->p : data->n);
    job.times = transposed ? NULL : space->row;
    job.add = !transposed && first > 0;
    WEFT_TRY(multiply_run(space, transposed, job));
    first += count;
  }
done:
  return st;
}

weft_status weft_pca_genotype_product(weft_pca_space *space, int transposed, const double *v, size_t b, double *out)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const size_t n = space->data->n, p = space->data->p, from = transposed ? n : p, to = transposed ? p : n;
  double *weighted = NULL;
  if (transposed && space->row) WEFT_DEVICE_TAKE(weighted, &space->mem, n * (b < COLUMNS ? b : COLUMNS));
  for (size_t first = 0; first < b; first += COLUMNS) {
    const size_t now = b - first < COLUMNS
    ? b - first : COLUMNS;
    const double *in = v + first * from;
    if (weighted) {
      weigh_rows<<<weft_pca_blocks_for(n * now), 256, 0, space->mem.stream>>>(weighted, in, (int64_t) n,
                                                                              (int64_t) (n * now), space->row);
      WEFT_CUDA(cudaGetLastError());
      in = weighted;
    }
    WEFT_TRY(multiply_columns(space, transposed, in, (int) now, out + first * to));
  }
done:
  if (weighted) {
    cudaStreamSynchronize(space->mem.stream);
    weft_device_drop(&space->mem, weighted);
  }
  return st;
}
