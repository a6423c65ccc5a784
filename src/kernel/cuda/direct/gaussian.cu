/* Gaussian sums and their slopes on tensor cores, with bounds relative to each sum (gaussian_tensor.cuh has the sums).
 *
 * With u = 2^-23 and r a distance in bandwidths:
 *   Addends of a product of tensor cores are cut at the last of 24 + e bits of the largest one, e being found by a
 *   probe, and the sum at its 24th: a step of 16 is off by v = (17 / 2^e + 1) u of its largest addend.
 *   A point's coordinates are off by |D| = |z - a - b|, which is found for each query and, at most, for all references:
 *   exponents are off by r s |D| + |D|^2 / 2, s = sqrt(log2 e). Sums of products a a less half squares are exact. The
 *   others are sums of numbers that are at most (2 |z_q| + s r) g in all, g = sqrt(d) grid / 2, in 2 or 3 steps for 16
 *   dimensions, each off by v. Up to 16 dimensions z_q b is a product of one 16-bit float for z_q, and what this
 *   leaves, of known length c, adds c g. The two sums are added, off by u / 2 of the result, and 2^t by 4 u at most. So
 *   a value is off by a0 + a1 r + a2 r^2 of itself.
 *   For R with exp(-R^2 / 2) = S / (100 W), S the sum and W all weights, terms beyond R add at most
 *   (a0 + a1 R + a2 R^2) S / 100 to the error of the sum, which is 1.03 (a0 + a1 R + a2 R^2) S, and 20 u S as 32
 *   numbers are added in float.
 *   A slope, sum w k (x_j - q_j) in bandwidths, is off by sum w k r (a0 + a1 r + a2 r^2). Q = sum w k r^2 is known from
 *   the sum of p t; sum w k r <= sqrt(S Q). Terms p V_j, |V_j| <= |q_j| + r, are added in 4 steps of v and 16 times in
 *   float; p and V_j are pairs of 16-bit floats, off by less than 4 u. q_j S is subtracted, S with its error of adding.
 *   The smaller float of p ends at 2^-25.
 *   References beyond the grid count as none: their values are at most exp(-y^2 / 2), y = (|nearest of them| - |q|) /
 * s. Weights below 2^-40 of the greatest are added to the bound. Queries beyond the grid have no bound. */
#include "kernel/cuda/host.cuh"
#include "kernel/cuda/direct/gaussian.cuh"
#include "kernel/cuda/direct/gaussian_tensor.cuh"

#define SAMPLE 4096 /* references by which the grid is chosen */
#define SLAB_ROWS ((int64_t) 1 << 20)
#define SLAB_QUERIES 65536
#define LAUNCH_WORK 3e11 /* pairs x blocks of 8 dimensions of a launch */

/* Blocks of 8 dimensions of which there are instances. */
static int blocks_of(int64_t d) { return d <= 8 ? 1 : d <= 16 ? 2 : d <= 24 ? 3 : d <= 32 ? 4 : d <= 48 ? 6 : 8; }

template <int BLOCKS> struct gauss_shape {
  static const int MT = BLOCKS <= 2 ? 2 : 1, WARPS = BLOCKS <= 2 ? 4 : 8, RESIDENT = BLOCKS <= 2 ? 3 : 1;
};

#define GAUSS_TILE_QUERIES 128 /* of a block of threads, by gauss_shape */

static int compare(const void *a, const void *b)
{
  const double x = *(const double *) a, y = *(const double *) b;
  return (x > y) - (x < y);
}

/* The centre is the middle of each coordinate of a sample of the references, and the grid the finest that has room for
 * one and a half of what coordinates and squares there are. */
static weft_status choose_grid(weft_ctx *ctx, const weft_kernel_task *task, double factor, double *centre, double *grid)
{
  weft_status st = WEFT_OK;
  const size_t n = task->reference.n, d = task->reference.d, count = n < SAMPLE ? n : SAMPLE;
  const double *x = task->reference.x, *lo = task->reference.lo;
  const size_t by_row = task->columns ? 1 : d, by_column = task->columns ? n : 1;
  weft_arena mem = weft_arena_begin(ctx);
  double *column, *square, longest = 0, most = 0;
  WEFT_TAKE(column, &mem, count);
  WEFT_TAKE(square, &mem, count);
  for (size_t k = 0; k < count; k++) square[k] = 0;
  for (size_t j = 0; j < d; j++) {
    for (size_t k = 0; k < count; k++) {
      const size_t at = (size_t) ((double) k * (double) n / (double) count) * by_row + j * by_column;
      column[k] = x[at] + (lo ? lo[at] : 0);
    }
    qsort(column, count, sizeof *column, compare);
    centre[j] = column[count / 2];
  }
  for (size_t k = 0; k < count; k++) {
    const size_t row = (size_t) ((double) k * (double) n / (double) count) * by_row;
    double length = 0;
    column[k] = 0;
    for (size_t j = 0; j < d; j++) {
      const double z = fabs(x[row + j * by_column] - centre[j] + (lo ? lo[row + j * by_column] : 0)) * factor;
      column[k] = fmax(column[k], z), length += z * z;
    }
    square[k] = length;
  }
  /* one in a thousand may be far from all others */
  qsort(column, count, sizeof *column, compare);
  qsort(square, count, sizeof *square, compare);
  longest = column[count - 1 - count / 1000], most = square[count - 1 - count / 1000];
  *grid = 0x1p-8;
  while (*grid < 0x1p-6 && (1.5 * longest > GAUSS_STEPS * *grid || 0.75 * most > GAUSS_LIMIT * *grid * *grid))
    *grid *= 2;
done:
  weft_arena_end(&mem);
  return st;
}

__global__ void add_gauss(const double *partial, int64_t chunks, int64_t columns, int64_t stride, int64_t first,
                          int64_t count, int64_t queries, double *total)
{
  for (int64_t k = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; k < count * columns;
       k += (int64_t) gridDim.x * blockDim.x) {
    const int64_t q = k % count, c = k / count;
    double sum = total[c * queries + first + q];
    for (int64_t chunk = 0; chunk < chunks; chunk++) sum += partial[(chunk * columns + c) * stride + q];
    total[c * queries + first + q] = sum;
  }
}

/* Sums, and slopes times `scale` in the units of the points, over their totals; moved: the points moved by slopes over
 * sums instead. */
__global__ void finish_gauss(const gauss_scheme s, const gauss_points x, int64_t queries, const double *scale,
                             bool moved, int blocks, double n, const gauss_query *about, const gauss_left_out *left,
                             double *total, double *bounds)
{
  const gauss_left_out gone = *left;
  const double nearest = __uint_as_float(gone.nearest), rounding = __uint_as_float(gone.rounding);
  for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < queries;
       i += (int64_t) gridDim.x * blockDim.x) {
    const double unshift = exp2(-GAUSS_TOP - (double) about[i].shift), p = total[i] * unshift;
    const double rest = exp2((double) about[i].rest) * s.top_weight;
    const double square = scale ? gauss_square(total[i], total[queries + i], about[i]) : 0;
    gauss_bounds(s, gone, nearest, rounding, blocks, n, about[i], p, square, &bounds[i], &bounds[queries + i]);
    total[i] = p * rest;
    for (int j = 0; scale && j < s.d; j++) {
      double *column = total + (2 + j) * queries;
      const double slope = (column[i] * unshift - gauss_coordinate(s, x, i, j) * p) / s.factor * scale[j];
      column[i] = moved ? x.x[i * x.row + j * x.column] + slope / p : slope * rest;
    }
  }
}

template <int BLOCKS, gauss_mode MODE>
static cudaError_t launch_mode(const gauss_args &args, dim3 grid, cudaStream_t stream)
{
  typedef gauss_shape<BLOCKS> shape;
  const auto kernel = gauss_sums<BLOCKS, shape::MT, shape::WARPS, shape::RESIDENT, MODE>;
  const size_t bytes = gauss_bytes<BLOCKS, shape::MT, shape::WARPS, MODE>();
  const cudaError_t e = weft_device_allow_shared((const void *) kernel, bytes);
  if (e != cudaSuccess) return e;
  kernel<<<grid, 32 * shape::WARPS, bytes, stream>>>(args);
  return cudaGetLastError();
}

template <int BLOCKS>
static cudaError_t launch_blocks(gauss_mode mode, const gauss_args &args, dim3 grid, cudaStream_t stream)
{
  return mode == GAUSS_SUMS ? launch_mode<BLOCKS, GAUSS_SUMS>(args, grid, stream)
                            : launch_mode<BLOCKS, GAUSS_SLOPES>(args, grid, stream);
}

static cudaError_t launch_gauss(int blocks, gauss_mode mode, const gauss_args &args, dim3 grid, cudaStream_t stream)
{
  switch (blocks) {
  case 1: return launch_blocks<1>(mode, args, grid, stream);
  case 2: return launch_blocks<2>(mode, args, grid, stream);
  case 3: return launch_blocks<3>(mode, args, grid, stream);
  case 4: return launch_blocks<4>(mode, args, grid, stream);
  case 6: return launch_blocks<6>(mode, args, grid, stream);
  default: return launch_blocks<8>(mode, args, grid, stream);
  }
}

static bool has_cores()
{
  return weft_device_compiled_for(
      (const void *) gauss_sums<1, gauss_shape<1>::MT, gauss_shape<1>::WARPS, gauss_shape<1>::RESIDENT, GAUSS_SUMS>,
      80);
}

typedef struct {
  weft_ctx *ctx;
  const weft_kernel_task *task;
  weft_device_arena *mem;
  gauss_scheme s;
  int blocks, tile;
  bool slopes, among, own; /* queries are among the references on the device, each its reference of weight 1 */
  int64_t padded, stride, slab;
  gauss_points reference, query; /* on the device */
  double *raw, *raw_lo, *weights, *partial;
  unsigned *tiles, *words;
  gauss_query *about;
  gauss_left_out *left;
} gauss_run;

/* Sends points at .. at + rows - 1 of `all`; in columns, these are `stride` apart there. */
static weft_status send_points(gauss_run *run, double *to, const double *from, int64_t at, int64_t rows, int64_t all,
                               int64_t stride)
{
  weft_status st = WEFT_OK;
  const int64_t d = run->s.d;
  if (!run->task->columns || rows == all)
    return weft_device_upload(run->mem, to, rows * d, sizeof(double), weft_fill_doubles,
                              from + (run->task->columns ? 0 : at * d));
  for (int64_t j = 0; j < d; j++)
    WEFT_TRY(
        weft_device_upload(run->mem, to + j * stride, rows, sizeof(double), weft_fill_doubles, from + j * all + at));
done:
  return st;
}

/* Sends references at .. at + rows - 1 and prepares their tiles. */
static weft_status send_references(gauss_run *run, int64_t at, int64_t rows)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = run->ctx;
  const weft_kernel_task *task = run->task;
  const int64_t n = (int64_t) task->reference.n, padded = (rows + GAUSS_TILE - 1) / GAUSS_TILE * GAUSS_TILE;
  const gauss_left_out none = { 0, 0, 0x7f800000u, 0, 0 };
  if (!at) {
    WEFT_CUDA(cudaMemcpyAsync(run->left, &none, sizeof none, cudaMemcpyHostToDevice, run->mem->stream));
    gauss_probe<<<1, 32, 0, run->mem->stream>>>(run->left);
    WEFT_CUDA(cudaGetLastError());
  }
  WEFT_TRY(send_points(run, run->raw, task->reference.x, at, rows, n, run->slab));
  if (run->raw_lo) WEFT_TRY(send_points(run, run->raw_lo, task->reference.lo, at, rows, n, run->slab));
  WEFT_TRY(weft_device_upload(run->mem, run->weights, rows, sizeof(double), weft_fill_doubles, task->weights + at));
  gauss_references<<<(unsigned) ((padded + 127) / 128), 128, 0, run->mem->stream>>>(run->s, run->reference,
                                                                                    run->weights, rows, padded,
                                                                                    run->blocks, run->slopes,
                                                                                    run->tiles, run->left);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Adds the sums over all references to `total`, which has gauss_columns() columns. References come in slabs, queries in
 * runs, each a launch after which the user is asked. */
static weft_status sum_references(gauss_run *run, gauss_mode mode, double *total)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = run->ctx;
  const int64_t n = (int64_t) run->task->reference.n, nq = (int64_t) run->task->query.n, tile = run->tile;
  const int64_t columns = gauss_columns(mode, run->s.d);
  WEFT_CUDA(cudaMemsetAsync(total, 0, nq * columns * sizeof *total, run->mem->stream));
  for (int64_t at = 0; at < n; at += run->slab) {
    const int64_t rows = n - at < run->slab ? n - at : run->slab, chunk = chunk_rows(nq, rows, (int) tile);
    const int64_t parts = (rows + chunk - 1) / chunk, tiles = (rows + GAUSS_TILE - 1) / GAUSS_TILE;
    const double work = LAUNCH_WORK / ((double) rows * run->blocks * (double) tile);
    const int64_t count_most = tile * (work < 1 ? 1 : work < run->stride / tile ? (int64_t) work : run->stride / tile);
    if (n > run->slab) WEFT_TRY(send_references(run, at, rows));
    for (int64_t first = 0; first < run->padded; first += count_most) {
      const int64_t count = run->padded - first < count_most ? run->padded - first : count_most;
      const int64_t counted = nq - first < count ? nq - first : count;
      const gauss_args args = { run->tiles,
                                run->words + first * 12 * run->blocks,
                                run->about + first,
                                gauss_words(run->blocks, run->slopes),
                                tiles,
                                chunk / GAUSS_TILE,
                                run->s.d,
                                run->partial,
                                run->stride };
      WEFT_TRY(weft_poll(ctx, (double) at * (double) nq + (double) rows * (double) first, (double) n * (double) nq));
      WEFT_CUDA(
          launch_gauss(run->blocks, mode, args, dim3((unsigned) parts, (unsigned) (count / tile)), run->mem->stream));
      add_gauss<<<grid_for((double) (counted * columns)), 256, 0, run->mem->stream>>>(run->partial, parts, columns,
                                                                                      run->stride, first, counted, nq,
                                                                                      total);
      WEFT_CUDA(cudaGetLastError());
      WEFT_CUDA(cudaStreamSynchronize(run->mem->stream));
    }
  }
done:
  return st;
}

/* Takes the run's memory, and sends the queries where they are not among the references. */
static weft_status begin_run(gauss_run *run, int64_t columns)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = run->ctx;
  const weft_kernel_task *task = run->task;
  const int64_t nq = (int64_t) task->query.n, n = (int64_t) task->reference.n, d = run->s.d, tile = run->tile;
  const int64_t most = n < SLAB_ROWS ? n : SLAB_ROWS, words = gauss_words(run->blocks, run->slopes);
  const int64_t chunks = 2048 / ((run->stride + tile - 1) / tile) + 3 + most / 65536,
                ahead = task->query.x - task->reference.x;
  const bool pairs = task->query.lo != NULL;
  double *query;
  WEFT_DEVICE_TAKE(run->words, run->mem, run->padded * 12 * run->blocks);
  WEFT_DEVICE_TAKE(run->about, run->mem, run->padded);
  WEFT_DEVICE_TAKE(run->left, run->mem, 1);
  run->slab =
      (int64_t) weft_device_chunk(ctx, most, 8.0 * (double) (d * (pairs ? 2 : 1) + 1) + (double) words / 16,
                                  8.0 * (double) (chunks * columns * run->stride + (pairs ? 2 : 1) * nq * d) + 1e6);
  if (!run->slab) {
    st = WEFT_ERR_MEMORY;
    goto done;
  }
  run->among = run->among && run->slab == n;
  WEFT_DEVICE_TAKE(run->partial, run->mem, chunks * columns * run->stride);
  WEFT_DEVICE_TAKE(run->raw, run->mem, run->slab * d);
  if (pairs) WEFT_DEVICE_TAKE(run->raw_lo, run->mem, run->slab * d);
  WEFT_DEVICE_TAKE(run->weights, run->mem, run->slab);
  WEFT_DEVICE_TAKE(run->tiles, run->mem, (run->slab + GAUSS_TILE - 1) / GAUSS_TILE * words);
  run->reference = { run->raw, run->raw_lo, task->columns ? 1 : d, task->columns ? run->slab : 1 };
  run->query = run->reference;
  if (run->among) {
    run->query.x += ahead, run->query.lo += pairs ? ahead : 0;
    goto done;
  }
  run->query.column = task->columns ? nq : 1;
  WEFT_DEVICE_TAKE(query, run->mem, nq * d);
  WEFT_TRY(send_points(run, query, task->query.x, 0, nq, nq, nq));
  run->query.x = query;
  if (!pairs) goto done;
  WEFT_DEVICE_TAKE(query, run->mem, nq * d);
  WEFT_TRY(send_points(run, query, task->query.lo, 0, nq, nq, nq));
  run->query.lo = query;
done:
  return st;
}

/* Slopes of queries that are not references of one weight need the sums first: exponents are shifted by them, so that
 * values fit 16-bit floats. */
weft_status weft_kernel_gaussian_cuda(weft_ctx *ctx, const weft_kernel_task *task, const double *scale, int moved,
                                      double *out, double *slopes, double *bounds)
{
  weft_status st = WEFT_OK;
  const int64_t nq = (int64_t) task->query.n, n = (int64_t) task->reference.n, d = (int64_t) task->query.d;
  const int64_t columns = scale ? d + 2 : 1;
  double *factors = NULL, *centre, *total, *of_sums, least = INFINITY;
  weft_device_arena mem = weft_device_begin(ctx);
  weft_arena host = weft_arena_begin(ctx);
  gauss_run run = {};
  run.ctx = ctx, run.task = task, run.mem = &mem, run.slopes = scale != NULL;
  run.s.d = (int) d, run.s.factor = sqrt(1.4426950408889634) / task->h;
  run.blocks = blocks_of(d), run.tile = GAUSS_TILE_QUERIES;
  run.padded = (nq + run.tile - 1) / run.tile * run.tile;
  run.stride = run.padded < SLAB_QUERIES ? run.padded : SLAB_QUERIES;
  for (int64_t i = 0; i < n; i++)
    run.s.top_weight = fmax(run.s.top_weight, task->weights[i]), least = fmin(least, task->weights[i]);
  if (!nq || !n || d > WEFT_KERNEL_GAUSSIAN_DIMS || !(run.s.top_weight > 0) || !has_cores()) {
    for (int64_t i = 0; i < nq; i++) out[i] = 0;
    for (int64_t i = 0; scale && i < nq * d; i++) slopes[i] = 0;
    for (int64_t i = 0; i < nq * 2; i++) bounds[i] = n && run.s.top_weight > 0 ? INFINITY : 0;
    goto done;
  }
  run.among = task->columns ? task->query.x == task->reference.x && nq == n
                            : task->query.x >= task->reference.x && task->query.x + nq * d <= task->reference.x + n * d;
  run.own = run.among && least == run.s.top_weight;
  WEFT_TAKE(centre, &host, d);
  WEFT_TRY(choose_grid(ctx, task, run.s.factor, centre, &run.s.grid));
  WEFT_TRY(weft_device_send(&mem, centre, d, (double **) &run.s.centre));
  if (scale) WEFT_TRY(weft_device_send(&mem, scale, d, &factors));
  WEFT_DEVICE_TAKE(total, &mem, nq * columns);
  WEFT_DEVICE_TAKE(of_sums, &mem, nq * 2);
  WEFT_TRY(begin_run(&run, columns));
  if (n <= run.slab) WEFT_TRY(send_references(&run, 0, n));
  gauss_queries<<<(unsigned) ((run.padded + 127) / 128), 128, 0, mem.stream>>>(run.s, run.query, nq, run.padded,
                                                                               run.blocks, run.words, run.about);
  WEFT_CUDA(cudaGetLastError());
  if (scale && !run.own) {
    WEFT_TRY(sum_references(&run, GAUSS_SUMS, total));
    gauss_shift<<<(unsigned) ((nq + 127) / 128), 128, 0, mem.stream>>>(nq, total, run.about);
    WEFT_CUDA(cudaGetLastError());
  }
  WEFT_TRY(sum_references(&run, scale ? GAUSS_SLOPES : GAUSS_SUMS, total));
  finish_gauss<<<grid_for((double) nq), 256, 0, mem.stream>>>(run.s, run.query, nq, factors, moved, run.blocks,
                                                              (double) n, run.about, run.left, total, of_sums);
  WEFT_CUDA(cudaGetLastError());
  WEFT_TRY(weft_device_download(&mem, out, total, nq * sizeof *out));
  if (scale) WEFT_TRY(weft_device_download(&mem, slopes, total + 2 * nq, nq * d * sizeof *slopes));
  WEFT_TRY(weft_device_download(&mem, bounds, of_sums, nq * 2 * sizeof *bounds));
done:
  weft_arena_end(&host);
  weft_device_end(&mem);
  return st;
}
