/* Direct sums in float on the device, with a bound for every query.
 *
 * Coordinates are z = (x - first reference) * scale / h as pairs of floats, taken relative to the middle of a block of
 * 128 queries, so that far clusters and outliers cost only the blocks they are in. The bound, with u = 2^-24, rho the
 * block's radius and r the distance in bandwidths:
 *   a rounded coordinate is off by 2u |z - c|; s = |q|² + |x|² - 2 q·x from d + 2 rounded products and sums is off by
 *   at most u (2d + 9) ((2 rho + r)² + 1), and k by that times |k'(s)|; with E0 = max |k'(s)| and E1 = max s |k'(s)|,
 *   at most
 *     u (2d + 9) ((8 rho² + 1) E0 + 2 E1)
 *   of differences, with D1 = max |k'(r)| and D2 = max r |k'(r)|, at most u (8 rho D1 + (4 + (d + 12) / 2) D2)
 *   a coordinate z itself is off by u² |z| in its pair and by 2^-52 |z| before that, so that with R the greatest |z| of
 *   the block's queries, as a vector, r is off by at most 2.2 u² (R + r), and k by D1 times that; rho, found from the
 *   first floats of the pairs, is off by u R k's own arithmetic adds 16u of k, and 128 terms in a lane 128u of Σ|w|
 *   k. */
#include "kernel/cuda/host.cuh"
#include "kernel/cuda/direct/single.cuh"
#include "kernel/cuda/direct/chunks.cuh"
#include "kernel/cuda/direct/single_tensor.cuh"

#define WIDE_SLAB (4 * QUERY_SLAB) /* where the sums of chunks take little memory */
#define WIDE_ROWS ((int64_t) 1 << 21)
#define SLAB_ROWS ((int64_t) 1 << 24)
#define LAUNCH_WORK 1.2e12 /* pairs x (dimensions + 10) of a launch: some 50 ms */
#define COLUMNS 4
#define UNIT 5.9604644775390625e-08 /* u */

/* z = (x - origin) * factor in two floats, dimension-major. */
__global__ void split_points(const double *x, int64_t n, int d, const double *origin, double factor, int64_t stride,
                             float *hi, float *lo)
{
  for (int64_t k = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; k < n * d; k += (int64_t) gridDim.x * blockDim.x) {
    const double z = (x[k] - origin[k % d]) * factor;
    const float h = (float) z;
    const int64_t to = k % d * stride + k / d;
    hi[to] = h, lo[to] = (float) (z - (double) h);
  }
}

__global__ void split_weights(const double *w, int64_t n, int m, int64_t stride, float *out)
{
  for (int64_t k = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; k < n * m; k += (int64_t) gridDim.x * blockDim.x)
    out[k % m * stride + k / m] = (float) w[k];
}

/* The middle of each block's box, half its diagonal, and the length of the vector of its greatest |coordinates|. One
 * warp per block. */
__global__ void find_middles(const float *q, int64_t n, int d, int64_t stride, int tile, float *middle, float *radius,
                             float *far)
{
  const int64_t block = blockIdx.x;
  const int64_t first = block * tile, last = first + tile < n ? first + tile : n;
  float square = 0, far_square = 0;
  for (int j = 0; j < d; j++) {
    float low = INFINITY, high = -INFINITY;
    for (int64_t i = first + threadIdx.x; i < last; i += 32) {
      low = fminf(low, q[j * stride + i]), high = fmaxf(high, q[j * stride + i]);
    }
    for (int half = 16; half; half >>= 1) {
      low = fminf(low, __shfl_xor_sync(~0u, low, half)), high = fmaxf(high, __shfl_xor_sync(~0u, high, half));
    }
    const float half = 0.5f * (high - low), most = fmaxf(fabsf(low), fabsf(high));
    square = fmaf(half, half, square), far_square = fmaf(most, most, far_square);
    if (threadIdx.x == 0) middle[block * d + j] = low + half;
  }
  if (threadIdx.x == 0) radius[block] = sqrtf(square) * 1.00001f, far[block] = sqrtf(far_square) * 1.00001f;
}

__global__ void finish_single(int64_t nq, int m, int tile, const double *total, const double *rest, const double *own,
                              const float *radius, const float *far, double unscale, double constant, double per_rho,
                              double per_rho2, double per_far, double *out, double *bound)
{
  for (int64_t q = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; q < nq; q += (int64_t) gridDim.x * blockDim.x) {
    const double off = (double) far[q / tile] * unscale, rho = (double) radius[q / tile] * unscale + UNIT * off;
    bound[q] = UNIT * (constant + per_rho * rho + per_rho2 * rho * rho + per_far * off);
    for (int c = 0; c < m; c++) {
      double sum = total[c * nq + q] + rest[c * nq + q];
      if (own) sum = fmax(sum - own[q * m + c], 0.0);
      out[c * nq + q] = sum;
    }
  }
}

/* Launches sum_tiles() in single precision for the kernel and the number of columns of `tiles`. */
static weft_status launch_single(const tile_launch<float> &tiles)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = tiles.ctx;
#define LAUNCH(KIND, EXPAND, COLS) \
  WEFT_CUDA(launch_tiles((sum_tiles<float, KIND, EXPAND, false, COLS>), tiles, COLS, false))
/* clang-format off */
#define CASE(name, EXPAND) \
  case WEFT_##name: \
    if (tiles.args.cols == 1) LAUNCH(WEFT_##name, EXPAND, 1); else LAUNCH(WEFT_##name, EXPAND, COLUMNS); \
    break;
/* clang-format on */
#define CASE_EXPANDED(name) CASE(name, true)
#define CASE_APART(name) CASE(name, false)
#define CASE_NEVER(name)
#define ROW(name, known_as, form, single, ...) CASE_##single(name)
  switch (tiles.kind) {
    WEFT_KERNEL_ROWS(ROW)
#undef ROW
  default: st = weft_fail(ctx, WEFT_ERR_INTERNAL, "no such kernel in single precision: %d", tiles.kind);
  }
done:
  return st;
}

/* The rounding of 16-bit pairs: see single_tensor.cu. */
static void bound_of(int kind, int tensor, double d, double *constant, double *per_rho, double *per_rho2,
                     double *per_far)
{
  const weft_kernel_row *k = weft_kernel_row_of(kind);
  *constant = 16 + RUN_TERMS, *per_rho = *per_rho2 = 0;
  *per_far = 2.2 * UNIT * k->d1;
  if (WEFT_KERNEL_IN(EXPANDED, kind)) {
    const double f = (2 * d + 9) + (tensor ? TENSOR_ERROR(d) : 0);
    *constant += f * (k->e0 + 2 * k->e1), *per_rho2 = f * 8 * k->e0;
  } else {
    *constant += (4 + (d + 12) / 2) * k->d2, *per_rho = 8 * k->d1;
  }
}

/* Tiles of a launch, at most `most`, that keep all processors busy to its end with two blocks each, where it is long
 * enough for that. */
static int64_t even_launch(int64_t most, int64_t chunks, int processors)
{
  const int64_t at_once = 2 * processors, rounds = most * chunks / at_once, even = rounds * at_once / chunks;
  return even ? even : most;
}

/* Direct sums in single precision on the device, by tensor cores where the task fits them, else by tiles.
 * Coordinates are pairs of floats relative to each tile's middle; bound[i] comes from the tile's radius and the sum
 * itself. */
weft_status weft_kernel_single_cuda(weft_ctx *ctx, const weft_kernel_task *task, const int32_t *own, int tensor,
                                    double *out, double *bound)
{
  weft_status st = WEFT_OK;
  const int64_t nq = task->query.n, n = task->reference.n, d = task->reference.d, m = task->m;
  const int kind = task->kind;
  const bool on_tensor = tensor && m == 1 && weft_kernel_tensor_can(kind, d);
  const int T = on_tensor ? weft_kernel_tensor_tile((int) d) : tile_shape<float>::T;
  const int64_t blocks = (nq + T - 1) / T, query_slab = n <= WIDE_ROWS ? WIDE_SLAB : QUERY_SLAB;
  const int64_t stride = nq < query_slab ? nq : query_slab, max_columns = m < COLUMNS
  ? m : COLUMNS;
  const double factor = weft_kernel_row_of(kind)->scale / task->h;
  double *raw, *origin, *total, *rest, *partial, *d_out, *d_bound, *d_own = NULL, *own_weights, constant, per_rho,
                                                                   per_rho2, per_far;
  float *q, *q_lo, *x, *x_lo, *w, *middle, *radius, *far;
  int64_t slab, chunks, staged;
  int processors;
  weft_device_arena mem = weft_device_begin(ctx);
  weft_arena host = weft_arena_begin(ctx);
  if (!n || !nq) {
    for (int64_t i = 0; i < nq * m; i++) out[i] = 0;
    for (int64_t i = 0; i < nq; i++) bound[i] = 0;
    goto done;
  }
  bound_of(kind, on_tensor, (double) d, &constant, &per_rho, &per_rho2, &per_far);
  WEFT_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, ctx->device));
  WEFT_DEVICE_TAKE(q, &mem, nq * d);
  WEFT_DEVICE_TAKE(q_lo, &mem, nq * d);
  WEFT_DEVICE_TAKE(total, &mem, nq * m);
  WEFT_DEVICE_TAKE(rest, &mem, nq * m);
  WEFT_DEVICE_TAKE(d_out, &mem, nq * m);
  WEFT_DEVICE_TAKE(d_bound, &mem, nq);
  WEFT_DEVICE_TAKE(middle, &mem, blocks * d);
  WEFT_DEVICE_TAKE(radius, &mem, blocks);
  WEFT_DEVICE_TAKE(far, &mem, blocks);
  WEFT_DEVICE_TAKE(origin, &mem, d);
  if (own) WEFT_DEVICE_TAKE(d_own, &mem, nq * m);
  chunks = 2048 / ((stride + T - 1) / T) + 3 + (n < SLAB_ROWS ? n : SLAB_ROWS) / 65536;
  slab = weft_device_chunk(ctx, n < SLAB_ROWS ? n : SLAB_ROWS, (double) (8 * d + 12 * m + 8 * (d > m ? d : m)),
                           (double) chunks * (double) max_columns * (double) stride * sizeof(double) + 1e6);
  if (!slab) {
    st = WEFT_ERR_MEMORY;
    goto done;
  }
  WEFT_DEVICE_TAKE(x, &mem, slab * d);
  WEFT_DEVICE_TAKE(x_lo, &mem, slab * d);
  WEFT_DEVICE_TAKE(w, &mem, slab * m);
  staged = slab * (d > m ? d : m); /* doubles on their way */
  WEFT_DEVICE_TAKE(raw, &mem, staged);
  WEFT_DEVICE_TAKE(partial, &mem, chunks * max_columns * stride);
  /* the same whatever part of the queries this is */
  WEFT_TRY(weft_device_upload(&mem, origin, d, sizeof(double), weft_fill_doubles, task->reference.x));
  for (int64_t first = 0; first < nq; first += staged / d) {
    const int64_t count = nq - first < staged / d ? nq - first : staged / d;
    WEFT_TRY(weft_device_upload(&mem, raw, count * d, sizeof(double), weft_fill_doubles, task->query.x + first * d));
    split_points<<<grid_for((double) count * d), 256, 0, mem.stream>>>(raw, count, (int) d, origin, factor, nq,
                                                                       q + first, q_lo + first);
    WEFT_CUDA(cudaGetLastError());
  }
  find_middles<<<(unsigned) blocks, 32, 0, mem.stream>>>(q, nq, (int) d, nq, T, middle, radius, far);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaMemsetAsync(total, 0, nq * m * sizeof *total, mem.stream));
  WEFT_CUDA(cudaMemsetAsync(rest, 0, nq * m * sizeof *rest, mem.stream));
  for (int64_t at = 0; at < n; at += slab) {
    const int64_t rows = n - at < slab ? n - at : slab, chunk = chunk_rows(nq, rows, T);
    const int64_t most = (int64_t) (LAUNCH_WORK / ((double) rows * T * (double) (d + 10))) + 1;
    const int64_t per_launch = even_launch(most, (rows + chunk - 1) / chunk, processors);
    WEFT_TRY(weft_device_upload(&mem, raw, rows * d, sizeof(double), weft_fill_doubles, task->reference.x + at * d));
    split_points<<<grid_for((double) rows * d), 256, 0, mem.stream>>>(raw, rows, (int) d, origin, factor, slab, x,
                                                                      x_lo);
    WEFT_TRY(weft_device_upload(&mem, raw, rows * m, sizeof(double), weft_fill_doubles, task->weights + at * m));
    split_weights<<<grid_for((double) rows * m), 256, 0, mem.stream>>>(raw, rows, (int) m, slab, w);
    WEFT_CUDA(cudaGetLastError());
    for (int64_t first = 0; first < nq; first += query_slab) {
      const int64_t count = nq - first < query_slab ? nq - first : query_slab, tiles = (count + T - 1) / T;
      for (int64_t c = 0; c < m; c += COLUMNS) {
        const int cols = m - c < COLUMNS
        ? (int) (m - c) : COLUMNS;
        for (int64_t block = 0; block < tiles; block += per_launch) {
          tile_launch<float> l = { ctx,
                                   mem.stream,
                                   kind,
                                   (int) ((rows + chunk - 1) / chunk),
                                   (int) (tiles - block < per_launch ? tiles - block : per_launch),
                                   { { q + first, q_lo + first, count, nq },
                                     { x, x_lo, rows, slab },
                                     w + c * slab,
                                     middle + first / T * d,
                                     (int) d,
                                     cols,
                                     rows,
                                     chunk,
                                     (int) block,
                                     INT64_MIN,
                                     0,
                                     partial,
                                     NULL,
                                     stride,
                                     1 } };
          WEFT_TRY(weft_poll(ctx, (double) at * (double) nq + (double) rows * (double) (first + block * T),
                             (double) n * (double) nq));
          WEFT_TRY(on_tensor ? weft_kernel_launch_tensor(l) : launch_single(l));
          WEFT_CUDA(cudaStreamSynchronize(mem.stream));
        }
        launch_add_chunks(mem.stream, partial, NULL, (int) ((rows + chunk - 1) / chunk), cols, stride, first, count, nq,
                          total + c * nq, rest + c * nq, NULL);
        WEFT_CUDA(cudaGetLastError());
      }
    }
  }
  if (own) { /* the query's own term, which is its weight */
    WEFT_TAKE(own_weights, &host, nq * m);
    for (int64_t i = 0; i < nq; i++)
      for (int64_t c = 0; c < m; c++) own_weights[i * m + c] = task->weights[(size_t) own[i] * m + c];
    WEFT_TRY(weft_device_upload(&mem, d_own, nq * m, sizeof(double), weft_fill_doubles, own_weights));
  }
  finish_single<<<grid_for((double) nq), 256, 0, mem.stream>>>(nq, (int) m, T, total, rest, d_own, radius, far,
                                                               1 / weft_kernel_row_of(kind)->scale, constant, per_rho,
                                                               per_rho2, per_far, d_out, d_bound);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaMemcpyAsync(out, d_out, nq * m * sizeof *out, cudaMemcpyDeviceToHost, mem.stream));
  WEFT_CUDA(cudaMemcpyAsync(bound, d_bound, nq * sizeof *bound, cudaMemcpyDeviceToHost, mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(mem.stream));
done:
  weft_arena_end(&host);
  weft_device_end(&mem);
  return st;
}
