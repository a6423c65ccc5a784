/* Direct sums on the device, in double: the same promise as on the CPU (direct.c); queries that need more digits
 * are summed again. References that do not fit are sent slab by slab. */
#include "kernel/cuda/host.cuh"
#include "kernel/cuda/direct/chunks.cuh"
#include "kernel/cuda/grid/task.cuh"
#include "kernel/cuda/direct/single.cuh"
#include "kernel/cuda/direct/gaussian.cuh"
#include "kernel/cuda/direct/slopes.cuh"
#include "kernel/cuda/mesh/mesh.cuh"

/* ---- points and weights ---- */

__global__ void transpose_points(const double *x, int64_t n, int d, int64_t stride, double *out)
{
  for (int64_t k = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; k < n * d; k += (int64_t) gridDim.x * blockDim.x)
    out[k % d * stride + k / d] = x[k];
}

/* ---- the end of sums ---- */

/* Finishes sums; lists the queries that need more digits or a shifted exponent. */
__global__ void finish_sums(int kind, int logarithm, double error, int64_t nq, int m, const double *total,
                            const double *rest, const double *inside, double *out, unsigned *list, unsigned *listed)
{
  for (int64_t q = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; q < nq; q += (int64_t) gridDim.x * blockDim.x) {
    int repeat = 0;
    for (int c = 0; c < m; c++) {
      const int64_t at = c * nq + q;
      const double sum = total[at] + rest[at];
      out[at] = logarithm ? log(sum) : sum;
      if (weft_kernel_compact(kind))
        repeat |= weft_kernel_step(kind) ? inside[at] > 0 : error * inside[at] > 2e-13 * sum;
      else if (logarithm && weft_kernel_exponential(kind))
        repeat |= sum < 1e-280;
    }
    if (repeat) list[atomicAdd(listed, 1u)] = (unsigned) q;
  }
}

/* ---- queries again, pair by pair ---- */

struct again_args {
  int kind, logarithm, leave_one_out;
  double h;
  weft_points query, reference; /* on the device; the slab's references */
  int64_t row0;                 /* of the slab, less the reference that query 0 leaves out */
  const double *weights;        /* row-major: weights[i * m + c] */
  int m;
  const unsigned *list;
  double *least; /* listed: least s so far */
  double *sums;  /* listed * m pairs: total and rest */
};

/* A block for each listed query: its least squared distance from the references of this slab and of those before it. */
__global__ void __launch_bounds__(128) find_min_distance(const again_args args)
{
  __shared__ double part[128];
  const size_t q = args.list[blockIdx.x];
  double least = INFINITY;
  for (size_t k = threadIdx.x; k < args.reference.n; k += 128) {
    if (args.leave_one_out && args.row0 + (int64_t) k == (int64_t) q) continue;
    least = fmin(least, weft_square_distance(&args.query, q, &args.reference, k));
  }
  part[threadIdx.x] = least;
  __syncthreads();
  for (int half = 64; half; half >>= 1) {
    if (threadIdx.x < half) part[threadIdx.x] = fmin(part[threadIdx.x], part[threadIdx.x + half]);
    __syncthreads();
  }
  if (!threadIdx.x) args.least[blockIdx.x] = fmin(args.least[blockIdx.x], part[0]);
}

__device__ static double shift_of(const again_args &args, double least)
{
  return args.logarithm && weft_kernel_exponential(args.kind) && least < INFINITY
             ? weft_kernel_exponent(args.kind, least / (args.h * args.h))
             : 0;
}

/* A block for each listed query: its sums over the slab, pair by pair with more digits, added to args.sums as total and
 * rest. */
__global__ void __launch_bounds__(128) sum_again(const again_args args)
{
  __shared__ double total[128], rest[128];
  const size_t q = args.list[blockIdx.x];
  const double shift = shift_of(args, args.least[blockIdx.x]);
  for (int c = 0; c < args.m; c++) {
    double t = 0, r = 0;
    for (size_t k = threadIdx.x; k < args.reference.n; k += 128) {
      if (args.leave_one_out && args.row0 + (int64_t) k == (int64_t) q) continue;
      weft_add_to(&t, &r,
                  args.weights[k * args.m + c] *
                      weft_kernel_pair(args.kind, &args.query, q, &args.reference, k, args.h, shift));
    }
    __syncthreads();
    total[threadIdx.x] = t, rest[threadIdx.x] = r;
    __syncthreads();
    for (int half = 64; half; half >>= 1) {
      if (threadIdx.x < half) {
        rest[threadIdx.x] += rest[threadIdx.x + half];
        weft_add_to(&total[threadIdx.x], &rest[threadIdx.x], total[threadIdx.x + half]);
      }
      __syncthreads();
    }
    if (!threadIdx.x) {
      double *to = args.sums + ((size_t) blockIdx.x * args.m + c) * 2;
      weft_add_to(&to[0], &to[1], total[0]);
      to[1] += rest[0];
    }
  }
}

__global__ void store_again(const again_args args, unsigned count, int64_t nq, double *out)
{
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= count) return;
  for (int c = 0; c < args.m; c++) {
    const double *s = args.sums + ((size_t) k * args.m + c) * 2, sum = s[0] + s[1];
    out[c * nq + args.list[k]] = args.logarithm ? log(sum) - shift_of(args, args.least[k]) : sum;
  }
}

/* ---- one call ---- */

#define SLAB_ROWS ((size_t) 1 << 24)
#define LAUNCH_WORK 2.5e11 /* pairs x (dimensions + 12) of a launch: some 30 ms */
#define AGAIN_WORK 2e9     /* pairs x (dimensions + 12) done again in a launch */
#define COLUMNS 2          /* of weights a launch sums */

struct direct_run {
  weft_ctx *ctx;
  const weft_kernel_task *task;
  weft_device_arena *mem;
  size_t slab;                               /* most references on the device at a time */
  size_t resident_first, resident;           /* those there now */
  double *raw, *raw_lo, *x, *lo, *w_raw, *w; /* references of the slab: row-major, then dimension-major */
  double *q_raw, *q_raw_lo, *q, *q_lo;
  int64_t stride; /* of partial sums: queries of a slab */
};

/* Makes references first .. first + count - 1 the resident slab, coordinates of a dimension together; nothing is sent
 * where they are there already. */
static weft_status send_slab(direct_run *run, size_t first, size_t count)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = run->ctx;
  const weft_kernel_task *task = run->task;
  const size_t d = task->reference.d, m = task->m;
  if (run->resident == count && run->resident_first == first) return st;
  run->resident = 0;
  WEFT_TRY(weft_device_upload(run->mem, run->raw, count * d, sizeof(double), weft_fill_doubles,
                              task->reference.x + first * d));
  if (run->lo)
    WEFT_TRY(weft_device_upload(run->mem, run->raw_lo, count * d, sizeof(double), weft_fill_doubles,
                                task->reference.lo + first * d));
  WEFT_TRY(weft_device_upload(run->mem, run->w_raw, count * m, sizeof(double), weft_fill_doubles,
                              task->weights + first * m));
  transpose_points<<<grid_for(count * d), 256, 0, run->mem->stream>>>(run->raw, count, (int) d, run->slab, run->x);
  if (run->lo)
    transpose_points<<<grid_for(count * d), 256, 0, run->mem->stream>>>(run->raw_lo, count, (int) d, run->slab,
                                                                        run->lo);
  transpose_points<<<grid_for(count * m), 256, 0, run->mem->stream>>>(run->w_raw, count, (int) m, run->slab, run->w);
  WEFT_CUDA(cudaGetLastError());
  run->resident_first = first, run->resident = count;
done:
  return st;
}

/* Launches sum_tiles() in double precision for the kernel, the presence of low parts and the number of columns of
 * `tiles`. */
static weft_status launch_double(const tile_launch<double> &tiles)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = tiles.ctx;
#define LAUNCH(KIND, PAIRS, COLS) \
  WEFT_CUDA(launch_tiles((sum_tiles<double, KIND, false, PAIRS, COLS>), tiles, COLS, PAIRS))
#define ROW(name, ...) \
  case WEFT_##name: \
    if (tiles.args.query.lo) { \
      if (tiles.args.cols == 1) \
        LAUNCH(WEFT_##name, true, 1); \
      else \
        LAUNCH(WEFT_##name, true, 2); \
    } else { \
      if (tiles.args.cols == 1) \
        LAUNCH(WEFT_##name, false, 1); \
      else \
        LAUNCH(WEFT_##name, false, 2); \
    } \
    break;
  switch (tiles.kind) {
    WEFT_KERNEL_ROWS(ROW)
#undef ROW
  default: st = weft_fail(ctx, WEFT_ERR_INTERNAL, "no such kernel: %d", tiles.kind);
  }
done:
  return st;
}

/* Adds the slab's references to every query. */
static weft_status sum_slab(direct_run *run, double *partial, double *partial_inside, double *total, double *rest,
                            double *inside)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = run->ctx;
  const weft_kernel_task *task = run->task;
  const int64_t nq = task->query.n, n = run->resident, d = task->reference.d;
  const int T = tile_shape<double>::T;
  const double share = (double) n * T * (double) (d + 12);
  const int64_t chunk = chunk_rows(nq, n, T), chunks = (n + chunk - 1) / chunk;
  const int64_t per_launch = (int64_t) (LAUNCH_WORK / share) + 1;
  for (int64_t first = 0; first < nq; first += QUERY_SLAB) {
    const int64_t count = nq - first < QUERY_SLAB ? nq - first : QUERY_SLAB, blocks = (count + T - 1) / T;
    for (size_t c = 0; c < task->m; c += COLUMNS) {
      const int cols = task->m - c < COLUMNS
      ? (int) (task->m - c) : COLUMNS;
      for (int64_t block = 0; block < blocks; block += per_launch) {
        tile_launch<double> tiles = {
          ctx,
          run->mem->stream,
          task->kind,
          (int) chunks,
          (int) (blocks - block < per_launch ? blocks - block : per_launch),
          { { run->q + first, run->q_lo ? run->q_lo + first : NULL, count, nq },
            { run->x, run->lo, n, (int64_t) run->slab },
            run->w + c * run->slab,
            NULL,
            (int) d,
            cols,
            n,
            chunk,
            (int) block,
            task->leave_one_out ? (int64_t) run->resident_first - (int64_t) task->own_first - first : INT64_MIN,
            weft_distance_error(d),
            partial,
            partial_inside }
        };
        tiles.args.out_stride = run->stride;
        tiles.args.inv_h2 = 1 / (task->h * task->h);
        WEFT_TRY(weft_poll(ctx,
                           (double) (first + block * T) +
                               (double) nq * (double) run->resident_first / (double) task->reference.n,
                           (double) nq));
        WEFT_TRY(launch_double(tiles));
        WEFT_CUDA(cudaStreamSynchronize(run->mem->stream));
      }
      launch_add_chunks(run->mem->stream, partial, partial_inside, (int) chunks, cols, run->stride, first, count, nq,
                        total + c * nq, rest + c * nq, inside ? inside + c * nq : NULL);
      WEFT_CUDA(cudaGetLastError());
    }
  }
done:
  return st;
}

/* Sums the listed queries again over all slabs, in batches of AGAIN_WORK between which the user is asked, and stores
 * them in out. Logarithms of exponential kernels take a pass for the least distance first. */
static weft_status sum_listed(direct_run *run, unsigned *list, unsigned listed, double *out)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = run->ctx;
  const weft_kernel_task *task = run->task;
  const size_t n = task->reference.n, m = task->m;
  const unsigned at_once = (unsigned) fmin(65536, AGAIN_WORK / ((double) n * (double) (task->reference.d + 12)) + 132);
  const bool shifted = task->logarithm && weft_kernel_exponential(task->kind);
  double *least, *sums;
  again_args args = { task->kind,
                      task->logarithm,
                      task->leave_one_out,
                      task->h,
                      { task->query.n, task->query.d, run->q_raw, run->q_raw_lo },
                      { 0, task->query.d, run->raw, run->raw_lo },
                      0,
                      run->w_raw,
                      (int) m,
                      list,
                      NULL,
                      NULL };
  WEFT_DEVICE_TAKE(least, run->mem, at_once);
  WEFT_DEVICE_TAKE(sums, run->mem, at_once * m * 2);
  args.least = least, args.sums = sums;
  for (unsigned first = 0; first < listed; first += at_once) {
    const unsigned count = listed - first < at_once ? listed - first : at_once;
    args.list = list + first;
    WEFT_CUDA(cudaMemsetAsync(sums, 0, count * m * 2 * sizeof *sums, run->mem->stream));
    WEFT_CUDA(cudaMemsetAsync(least, 0x7f, count * sizeof *least, run->mem->stream)); /* 1.4e306 */
    for (int pass = shifted ? 0 : 1; pass < 2; pass++)
      for (size_t at = 0; at < n; at += run->slab) {
        WEFT_TRY(weft_poll(ctx, first, listed));
        WEFT_TRY(send_slab(run, at, n - at < run->slab ? n - at : run->slab));
        args.reference.n = run->resident, args.row0 = (int64_t) at - (int64_t) task->own_first;
        if (pass)
          sum_again<<<count, 128, 0, run->mem->stream>>>(args);
        else
          find_min_distance<<<count, 128, 0, run->mem->stream>>>(args);
        WEFT_CUDA(cudaGetLastError());
        WEFT_CUDA(cudaStreamSynchronize(run->mem->stream));
      }
    store_again<<<grid_for(count), 256, 0, run->mem->stream>>>(args, count, (int64_t) task->query.n, out);
    WEFT_CUDA(cudaGetLastError());
  }
done:
  return st;
}

/* Direct sums in double precision on the device. References come in slabs that fit its memory; queries stay. Queries
 * whose rounding may be too large are listed by finish_sums() and summed again by sum_listed(). */
static weft_status direct_cuda(weft_ctx *ctx, const weft_kernel_task *task, double *out, weft_kernel_effort *effort)
{
  weft_status st = WEFT_OK;
  const size_t nq = task->query.n, n = task->reference.n, d = task->reference.d, m = task->m;
  const bool pairs = task->reference.lo != NULL, compact = weft_kernel_compact(task->kind);
  const size_t each = (d * (pairs ? 4 : 2) + 2 * m) * sizeof(double);
  double *total, *rest, *inside = NULL, *partial, *partial_inside = NULL, *d_out;
  unsigned *list, *counter, listed = 0;
  size_t chunks, stride;
  weft_device_arena mem = weft_device_begin(ctx);
  direct_run run = { ctx, task, &mem, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0 };
  if (n == 0 || nq == 0) {
    for (size_t i = 0; i < nq * m; i++) out[i] = task->logarithm ? -INFINITY : 0;
    goto done;
  }
  if (nq > UINT32_MAX) WEFT_TRY(weft_fail(ctx, WEFT_ERR_INPUT, "`query` has more than 2^32 rows."));
  WEFT_DEVICE_TAKE(run.q_raw, &mem, nq * d);
  WEFT_DEVICE_TAKE(run.q, &mem, nq * d);
  if (pairs) WEFT_DEVICE_TAKE(run.q_raw_lo, &mem, nq * d);
  if (pairs) WEFT_DEVICE_TAKE(run.q_lo, &mem, nq * d);
  WEFT_DEVICE_TAKE(total, &mem, nq * m);
  WEFT_DEVICE_TAKE(rest, &mem, nq * m);
  if (compact) WEFT_DEVICE_TAKE(inside, &mem, nq * m);
  WEFT_DEVICE_TAKE(d_out, &mem, nq * m);
  WEFT_DEVICE_TAKE(list, &mem, nq);
  WEFT_DEVICE_TAKE(counter, &mem, 1);
  stride = nq < QUERY_SLAB ? nq : QUERY_SLAB;
  chunks = 2048 / (((stride + tile_shape<double>::T - 1) / tile_shape<double>::T)) + 3 +
           (n < SLAB_ROWS ? n : SLAB_ROWS) / 65536;
  run.stride = (int64_t) stride;
  run.slab = weft_device_chunk(ctx, n < SLAB_ROWS ? n : SLAB_ROWS, (double) each,
                               (double) chunks * COLUMNS * (double) stride * sizeof(double) * (compact ? 2 : 1) + 1e6);
  if (!run.slab) {
    st = WEFT_ERR_MEMORY;
    goto done;
  }
  WEFT_DEVICE_TAKE(run.raw, &mem, run.slab * d);
  WEFT_DEVICE_TAKE(run.x, &mem, run.slab * d);
  if (pairs) WEFT_DEVICE_TAKE(run.raw_lo, &mem, run.slab * d);
  if (pairs) WEFT_DEVICE_TAKE(run.lo, &mem, run.slab * d);
  WEFT_DEVICE_TAKE(run.w_raw, &mem, run.slab * m);
  WEFT_DEVICE_TAKE(run.w, &mem, run.slab * m);
  WEFT_DEVICE_TAKE(partial, &mem, chunks * COLUMNS * stride);
  if (compact) WEFT_DEVICE_TAKE(partial_inside, &mem, chunks * COLUMNS * stride);
  WEFT_TRY(weft_device_upload(&mem, run.q_raw, nq * d, sizeof(double), weft_fill_doubles, task->query.x));
  transpose_points<<<grid_for((double) nq * d), 256, 0, mem.stream>>>(run.q_raw, (int64_t) nq, (int) d, (int64_t) nq,
                                                                      run.q);
  if (pairs) {
    WEFT_TRY(weft_device_upload(&mem, run.q_raw_lo, nq * d, sizeof(double), weft_fill_doubles, task->query.lo));
    transpose_points<<<grid_for((double) nq * d), 256, 0, mem.stream>>>(run.q_raw_lo, (int64_t) nq, (int) d,
                                                                        (int64_t) nq, run.q_lo);
  }
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaMemsetAsync(total, 0, nq * m * sizeof *total, mem.stream));
  WEFT_CUDA(cudaMemsetAsync(rest, 0, nq * m * sizeof *rest, mem.stream));
  if (compact) WEFT_CUDA(cudaMemsetAsync(inside, 0, nq * m * sizeof *inside, mem.stream));
  WEFT_CUDA(cudaMemsetAsync(counter, 0, sizeof *counter, mem.stream));
  for (size_t first = 0; first < n; first += run.slab) {
    WEFT_TRY(send_slab(&run, first, n - first < run.slab ? n - first : run.slab));
    WEFT_TRY(sum_slab(&run, partial, partial_inside, total, rest, inside));
  }
  finish_sums<<<grid_for((double) nq), 256, 0, mem.stream>>>(task->kind, task->logarithm, weft_distance_error(d),
                                                             (int64_t) nq, (int) m, total, rest, inside, d_out, list,
                                                             counter);
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaMemcpyAsync(&listed, counter, sizeof listed, cudaMemcpyDeviceToHost, mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(mem.stream));
  if (listed) WEFT_TRY(sum_listed(&run, list, listed, d_out));
  WEFT_CUDA(cudaMemcpyAsync(out, d_out, nq * m * sizeof *out, cudaMemcpyDeviceToHost, mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(mem.stream));
  effort->pairs += (double) nq * (double) n;
  effort->repeated += listed;
done:
  weft_device_end(&mem);
  return st;
}

extern "C" {
extern const weft_kernel_ops weft_kernel_cuda;
const weft_kernel_ops weft_kernel_cuda = {
  direct_cuda,           weft_kernel_single_cuda, weft_kernel_slopes_cuda, weft_kernel_gaussian_cuda,
  weft_kernel_grid_cuda, weft_kernel_mesh_cuda
};
}
