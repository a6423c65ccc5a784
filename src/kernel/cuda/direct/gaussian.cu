/* Gaussian sums and their slopes on tensor cores, with bounds relative to each sum (gaussian_tensor.cuh has the sums).
 *
 * With u = 2^-23, r a distance in bandwidths, and all addends of a product of tensor cores cut at the last of 24 bits
 * of the largest of them: A point's coordinates are off by |Δ| = |z - a - b|, which is found for each query, and at
 * most for all references: the exponent by r √(log2 e) |Δ| + |Δ|² / 2. Sums of products a a less half squares are
 * exact. Other products are at most (|z_q| + |z_x| + √d grid / 2) √d grid / 2, and their sum is off by 17 u of that for
 * each step of 16, 3 steps for 16 dimensions; |z_x| <= |z_q| + r √(log2 e). The two sums are added with an error of u /
 * 2 of the result, which is 26 - r² log2(e) / 2, and 2^t is off by 4 u at most. So a value is off by a0 + a1 r + a2 r²
 * of itself. For R with exp(-R² / 2) = S / (100 W), S the sum and W all weights, terms beyond R add at most (a0 + a1 R
 * + a2 R²) S / 100. So the sum is off by 1.01 (a0 + a1 R + a2 R²), and by 20 u as 32 numbers are added in float. Of a
 * slope sum w k (x_j - q_j) the error is at most sum w k r (a0 + a1 r + a2 r²), where sum w k r² is known from the sum
 * of p t, and sum w k r at most √(S sum w k r²). Terms p V_j are added by 4 steps of 17 u for 64 references and 16
 * additions in float; p and V_j in two 16-bit floats are off by less than 4 u. |V_j| <= |q_j| + r. What leaves q_j S
 * from it has the error of S in adding times |q_j|. The smaller 16-bit float of p ends at 2^-51 of the value of a pair
 * at distance 0. References beyond the grid count as none. Their values are at most exp(-ρ²/2), ρ = (|nearest of them|
 * - |q|) / √(log2 e); those whose weights are below 2^-40 of the greatest are added to the bound. Queries beyond the
 * grid have no bound. */
#include "kernel/cuda/host.cuh"
#include "kernel/cuda/direct/gaussian.cuh"
#include "kernel/cuda/direct/gaussian_tensor.cuh"

#define SAMPLE 4096 /* references by which the grid is chosen */
#define SLAB_ROWS ((int64_t) 1 << 20)
#define SLAB_QUERIES 65536
#define LAUNCH_WORK 3e11 /* pairs x blocks of 8 dimensions of a launch */

/* Blocks of 8 dimensions of which there are instances. */
static int blocks_of(int64_t d) { return d <= 8 ? 1 : d <= 16 ? 2 : d <= 24 ? 3 : d <= 32 ? 4 : d <= 48 ? 6 : 8; }

template <int BLOCKS, bool SLOPES> struct gauss_shape {
  static const int MT = BLOCKS <= 2 ? 2 : 1, WARPS = 8, RESIDENT = BLOCKS <= 2 && !SLOPES ? 2 : 1;
};

/* Queries of a block of threads. */
static int tile_of(int blocks) { return blocks <= 2 ? 256 : 128; }

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
  weft_arena mem = weft_arena_begin(ctx);
  double *column, *square, longest = 0, most = 0;
  WEFT_TAKE(column, &mem, count);
  WEFT_TAKE(square, &mem, count);
  for (size_t k = 0; k < count; k++) square[k] = 0;
  for (size_t j = 0; j < d; j++) {
    for (size_t k = 0; k < count; k++) {
      const size_t at = (size_t) ((double) k * (double) n / (double) count) * d + j;
      column[k] = x[at] + (lo ? lo[at] : 0);
    }
    qsort(column, count, sizeof *column, compare);
    centre[j] = column[count / 2];
  }
  for (size_t k = 0; k < count; k++) {
    const size_t row = (size_t) ((double) k * (double) n / (double) count) * d;
    double length = 0;
    column[k] = 0;
    for (size_t j = 0; j < d; j++) {
      const double z = fabs(x[row + j] - centre[j] + (lo ? lo[row + j] : 0)) * factor;
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

/* Writes the sum over the first column of totals, slopes over the columns from the third one on. */
__global__ void finish_gauss(const gauss_scheme s, const double *x, const double *lo, int64_t queries, bool slopes,
                             int blocks, double n, const gauss_query *about, const gauss_left_out *left, double *total,
                             double *bounds)
{
  const gauss_left_out gone = *left;
  const double nearest = __uint_as_float(gone.nearest), rounding = __uint_as_float(gone.rounding);
  for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < queries;
       i += (int64_t) gridDim.x * blockDim.x) {
    const double p = total[i], scale = exp2((double) about[i].rest) * s.top_weight, sum = p * 0x1p-26 * scale;
    gauss_bounds(s, gone, nearest, rounding, blocks, n, about[i], p, slopes ? total[queries + i] : 0, &bounds[i],
                 &bounds[queries + i]);
    total[i] = sum;
    for (int j = 0; slopes && j < s.d; j++) {
      double *column = total + (2 + j) * queries;
      column[i] = (column[i] * 0x1p-15 * scale - gauss_coordinate(s, x, lo, i, j) * sum) / s.factor;
    }
  }
}

template <int BLOCKS, bool SLOPES>
static cudaError_t launch_shape(const gauss_args &args, dim3 grid, cudaStream_t stream)
{
  typedef gauss_shape<BLOCKS, SLOPES> shape;
  const auto kernel = gauss_sums<BLOCKS, shape::MT, shape::WARPS, shape::RESIDENT, SLOPES>;
  const size_t bytes = gauss_bytes<BLOCKS, shape::MT, shape::WARPS, SLOPES>();
  const cudaError_t e = weft_device_allow_shared((const void *) kernel, bytes);
  if (e != cudaSuccess) return e;
  kernel<<<grid, 32 * shape::WARPS, bytes, stream>>>(args);
  return cudaGetLastError();
}

template <bool SLOPES>
static cudaError_t launch_gauss(int blocks, const gauss_args &args, dim3 grid, cudaStream_t stream)
{
  switch (blocks) {
  case 1: return launch_shape<1, SLOPES>(args, grid, stream);
  case 2: return launch_shape<2, SLOPES>(args, grid, stream);
  case 3: return launch_shape<3, SLOPES>(args, grid, stream);
  case 4: return launch_shape<4, SLOPES>(args, grid, stream);
  case 6: return launch_shape<6, SLOPES>(args, grid, stream);
  default: return launch_shape<8, SLOPES>(args, grid, stream);
  }
}

static bool has_cores()
{
  return weft_device_compiled_for((const void *) gauss_sums<1, gauss_shape<1, false>::MT, gauss_shape<1, false>::WARPS,
                                                            gauss_shape<1, false>::RESIDENT, false>,
                                  80);
}

/* References come in slabs of prepared tiles, queries in runs, each a launch after which the user is asked. Where the
 * queries are among the references and all of these are on the device, they are not sent again. */
weft_status weft_kernel_gaussian_cuda(weft_ctx *ctx, const weft_kernel_task *task, int slopes, double *out,
                                      double *bounds)
{
  weft_status st = WEFT_OK;
  const int64_t nq = (int64_t) task->query.n, n = (int64_t) task->reference.n, d = (int64_t) task->query.d;
  const int blocks = blocks_of(d), tile = tile_of(blocks);
  const int64_t columns = slopes ? d + 2 : 1, padded = (nq + tile - 1) / tile * tile;
  const int64_t stride = padded < SLAB_QUERIES ? padded : SLAB_QUERIES;
  const int64_t tile_words = gauss_words(blocks, slopes), most_rows = n < SLAB_ROWS ? n : SLAB_ROWS;
  const bool pairs = task->query.lo != NULL;
  const gauss_left_out none = { 0, 0, 0x7f800000u, 0 };
  gauss_scheme s = { NULL, (int) d, sqrt(1.4426950408889634) / task->h, 0, 0 };
  double *centre, *raw, *raw_lo = NULL, *weights, *total, *partial, *query, *query_lo = NULL, *of_sums;
  unsigned *tiles, *words;
  gauss_query *about;
  gauss_left_out *left;
  int64_t slab, chunks;
  bool among;
  weft_device_arena mem = weft_device_begin(ctx);
  weft_arena host = weft_arena_begin(ctx);
  for (int64_t i = 0; i < n; i++) s.top_weight = fmax(s.top_weight, task->weights[i]);
  if (!nq || !n || d > WEFT_KERNEL_GAUSSIAN_DIMS || !(s.top_weight > 0) || !has_cores()) {
    for (int64_t i = 0; i < nq * (slopes ? d + 1 : 1); i++) out[i] = 0;
    for (int64_t i = 0; i < nq * 2; i++) bounds[i] = n && s.top_weight > 0 ? INFINITY : 0;
    goto done;
  }
  WEFT_TAKE(centre, &host, d);
  WEFT_TRY(choose_grid(ctx, task, s.factor, centre, &s.grid));
  WEFT_TRY(weft_device_send(&mem, centre, d, (double **) &s.centre));
  WEFT_TRY(weft_device_send(&mem, &none, 1, &left));
  chunks = 2048 / ((stride + tile - 1) / tile) + 3 + most_rows / 65536;
  WEFT_DEVICE_TAKE(words, &mem, padded * 8 * blocks);
  WEFT_DEVICE_TAKE(about, &mem, padded);
  WEFT_DEVICE_TAKE(total, &mem, nq * columns);
  WEFT_DEVICE_TAKE(of_sums, &mem, nq * 2);
  slab =
      (int64_t) weft_device_chunk(ctx, most_rows, 8.0 * (double) (d * (pairs ? 2 : 1) + 1) + (double) tile_words / 16,
                                  8.0 * (double) (chunks * columns * stride + (pairs ? 2 : 1) * nq * d) + 1e6);
  if (!slab) {
    st = WEFT_ERR_MEMORY;
    goto done;
  }
  among = slab == n && task->query.x >= task->reference.x && task->query.x + nq * d <= task->reference.x + n * d;
  WEFT_DEVICE_TAKE(partial, &mem, chunks * columns * stride);
  WEFT_DEVICE_TAKE(raw, &mem, slab * d);
  if (pairs) WEFT_DEVICE_TAKE(raw_lo, &mem, slab * d);
  WEFT_DEVICE_TAKE(weights, &mem, slab);
  WEFT_DEVICE_TAKE(tiles, &mem, (slab + GAUSS_TILE - 1) / GAUSS_TILE * tile_words);
  query = raw + (among ? task->query.x - task->reference.x : 0);
  if (pairs) query_lo = raw_lo + (among ? task->query.x - task->reference.x : 0);
  if (!among) {
    WEFT_DEVICE_TAKE(query, &mem, nq * d);
    WEFT_TRY(weft_device_upload(&mem, query, nq * d, sizeof(double), weft_fill_doubles, task->query.x));
    if (pairs) {
      WEFT_DEVICE_TAKE(query_lo, &mem, nq * d);
      WEFT_TRY(weft_device_upload(&mem, query_lo, nq * d, sizeof(double), weft_fill_doubles, task->query.lo));
    }
  }
  WEFT_CUDA(cudaMemsetAsync(total, 0, nq * columns * sizeof *total, mem.stream));
  for (int64_t at = 0; at < n; at += slab) {
    const int64_t rows = n - at < slab ? n - at : slab, chunk = chunk_rows(nq, rows, tile);
    const int64_t of_tiles = (rows + GAUSS_TILE - 1) / GAUSS_TILE, parts = (rows + chunk - 1) / chunk;
    const double work = LAUNCH_WORK / ((double) rows * blocks * tile);
    const int64_t most = work < 1 ? 1 : work < stride / tile ? (int64_t) work : stride / tile;
    WEFT_TRY(weft_device_upload(&mem, raw, rows * d, sizeof(double), weft_fill_doubles, task->reference.x + at * d));
    if (pairs)
      WEFT_TRY(
          weft_device_upload(&mem, raw_lo, rows * d, sizeof(double), weft_fill_doubles, task->reference.lo + at * d));
    WEFT_TRY(weft_device_upload(&mem, weights, rows, sizeof(double), weft_fill_doubles, task->weights + at));
    gauss_references<<<(unsigned) ((of_tiles * GAUSS_TILE + 127) / 128), 128, 0, mem.stream>>>(s, raw, raw_lo, weights,
                                                                                               rows,
                                                                                               of_tiles * GAUSS_TILE,
                                                                                               blocks, slopes, tiles,
                                                                                               left);
    WEFT_CUDA(cudaGetLastError());
    if (!at) {
      gauss_queries<<<(unsigned) ((padded + 127) / 128), 128, 0, mem.stream>>>(s, query, query_lo, nq, padded, blocks,
                                                                               words, about);
      WEFT_CUDA(cudaGetLastError());
    }
    for (int64_t first = 0; first < padded; first += most * tile) {
      const int64_t count = padded - first < most * tile ? padded - first : most * tile;
      const int64_t counted = nq - first < count ? nq - first : count;
      const dim3 grid((unsigned) parts, (unsigned) (count / tile));
      const gauss_args args = {
        tiles, words + first * 8 * blocks, about + first, of_tiles, chunk / GAUSS_TILE, (int) d, partial, stride
      };
      WEFT_TRY(weft_poll(ctx, (double) at * (double) nq + (double) rows * (double) first, (double) n * (double) nq));
      WEFT_CUDA(slopes ? launch_gauss<true>(blocks, args, grid, mem.stream)
                       : launch_gauss<false>(blocks, args, grid, mem.stream));
      add_gauss<<<grid_for((double) (counted * columns)), 256, 0, mem.stream>>>(partial, parts, columns, stride, first,
                                                                                counted, nq, total);
      WEFT_CUDA(cudaGetLastError());
      WEFT_CUDA(cudaStreamSynchronize(mem.stream));
    }
  }
  finish_gauss<<<grid_for((double) nq), 256, 0, mem.stream>>>(s, query, query_lo, nq, slopes, blocks, (double) n, about,
                                                              left, total, of_sums);
  WEFT_CUDA(cudaGetLastError());
  WEFT_TRY(weft_device_download(&mem, out, total, nq * sizeof *out));
  if (slopes) WEFT_TRY(weft_device_download(&mem, out + nq, total + 2 * nq, nq * d * sizeof *out));
  WEFT_TRY(weft_device_download(&mem, bounds, of_sums, nq * 2 * sizeof *bounds));
done:
  weft_arena_end(&host);
  weft_device_end(&mem);
  return st;
}
