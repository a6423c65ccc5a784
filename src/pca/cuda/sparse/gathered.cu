/* Products of sparse blocks that stay on a device: X v from compressed rows, X'u from compressed columns, so that each
 * sum is one warp's. Vectors lie row by row, `width` numbers each: b, rounded up. A warp takes a row (or column) of the
 * block and 2 LANES of its numbers; of its lanes LANES share a stored value, two numbers each:
 *
 *   lane   0 .. LANES - 1    LANES .. 2 LANES - 1    ...        stored values e, e + 1, ..; then e + 32 / LANES, ..
 *          value e           value e + 1             ...        and in the end the lanes' sums, always in one order
 *
 * X is not centred: X D v less the rank-one term of the centres, as on the CPU. Nothing here depends on the device or
 * on what else it does, so results are the same bits. */
#include <cmath>
#include <cub/device/device_radix_sort.cuh>
#include "pca/cuda/sparse/gathered.cuh"

#define FEW 20.0          /* a block with fewer stored values than a twentieth is not spread out */
#define ENOUGH_WARPS 8192 /* below, several share a row of the block, */
#define PART 64           /* which has at least this many stored values for each, on average */
#define PARTS 32
#define SUM_THREADS 1024

/* ---- compressed rows ---- */

/* order[e] = e and column[e]: which column the stored value e is in; a thread block per column. */
__global__ static void number_values(const int32_t *starts, uint32_t *order, int32_t *column)
{
  const int64_t j = blockIdx.x;
  for (int64_t e = starts[j] + (int64_t) threadIdx.x; e < starts[j + 1]; e += blockDim.x) {
    order[e] = (uint32_t) e;
    column[e] = (int32_t) j;
  }
}

/* starts[i], i = 0 .. n: the first of `stored` sorted rows that is not before i. */
__global__ static void find_starts(const uint32_t *rows, int64_t stored, int64_t n, int32_t *starts)
{
  const int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x;
  if (i > n) return;
  int64_t from = 0, to = stored;
  while (from < to) {
    const int64_t mid = from + (to - from) / 2;
    if (rows[mid] < (uint64_t) i)
      from = mid + 1;
    else
      to = mid;
  }
  starts[i] = (int32_t) from;
}

__global__ static void put_in_order(const uint32_t *order, int64_t stored, const int32_t *column, const double *values,
                                    int32_t *columns, double *row_values)
{
  const int64_t at = blockIdx.x * (int64_t) blockDim.x + threadIdx.x;
  if (at >= stored) return;
  columns[at] = column[order[at]];
  row_values[at] = values[order[at]];
}

static int bits_below(int64_t n)
{
  int bits = 1;
  while (bits < 32 && (n - 1) >> bits) bits++;
  return bits;
}

/* Compressed rows of a block: its values sorted by row, which leaves those of a row in the order of the columns. */
static weft_status make_rows(weft_pca_space *space, weft_pca_stored *x)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const int64_t p = (int64_t) space->data->p, stored = (int64_t) x->stored;
  const cudaStream_t stream = space->mem.stream;
  const uint32_t *rows = (const uint32_t *) x->rows;
  uint32_t *order = NULL, *sorted_order, *sorted_rows;
  int32_t *column;
  char *scratch = NULL;
  size_t bytes = 0;
  WEFT_DEVICE_TAKE(x->row_values, &space->mem, x->stored + 1 + (x->stored + (size_t) x->n + 3) / 2);
  x->columns = (int32_t *) (x->row_values + x->stored + 1);
  x->row_starts = x->columns + x->stored + 1;
  WEFT_DEVICE_TAKE(order, &space->mem, 4 * (x->stored + 1));
  sorted_order = order + x->stored + 1;
  sorted_rows = sorted_order + x->stored + 1;
  column = (int32_t *) (sorted_rows + x->stored + 1);
  if (stored) {
    number_values<<<(unsigned) p, 128, 0, stream>>>(x->starts, order, column);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cub::DeviceRadixSort::SortPairs(NULL, bytes, rows, sorted_rows, order, sorted_order, stored, 0,
                                              bits_below(x->n), stream));
    WEFT_DEVICE_TAKE(scratch, &space->mem, bytes + 1);
    WEFT_CUDA(cub::DeviceRadixSort::SortPairs(scratch, bytes, rows, sorted_rows, order, sorted_order, stored, 0,
                                              bits_below(x->n), stream));
    put_in_order<<<weft_pca_blocks_for(x->stored), 256, 0, stream>>>(sorted_order, stored, column, x->values,
                                                                     x->columns, x->row_values);
    WEFT_CUDA(cudaGetLastError());
  }
  find_starts<<<weft_pca_blocks_for((size_t) x->n + 1), 256, 0, stream>>>(sorted_rows, stored, x->n, x->row_starts);
  WEFT_CUDA(cudaGetLastError());
done:
  if (scratch) weft_device_drop(&space->mem, scratch);
  if (order) weft_device_drop(&space->mem, order);
  return st;
}

/* Rows take as much memory as columns, and sorting twice as much for a while; where there is no room for them, products
 * take pieces. */
weft_status weft_pca_gather_from(weft_pca_space *space)
{
  weft_status st = WEFT_OK;
  const weft_pca_data *data = space->data;
  double stored = 0, largest = 0;
  for (const weft_pca_stored &x : *space->held) {
    stored += (double) x.stored;
    largest = fmax(largest, (double) x.stored);
  }
  const double bytes = 12 * stored + 24 * largest + 4 * (double) data->n;
  if (space->held->size() < data->panels || FEW * stored > (double) data->n * (double) data->p ||
      bytes > 0.4 * weft_device_available(space->ctx))
    return st;
  for (weft_pca_stored &x : *space->held) WEFT_TRY(make_rows(space, &x));
  space->gathers = true;
done:
  return st;
}

/* ---- products ---- */

/* to[i width + j] = from[i + j rows] times[i], 0 where j >= b */
__global__ static void by_rows(double *to, const double *from, int64_t rows, int b, int width, const double *times)
{
  const int64_t at = blockIdx.x * (int64_t) blockDim.x + threadIdx.x;
  if (at >= rows * width) return;
  const int64_t i = at % rows, j = at / rows;
  to[i * width + j] = j < b ? from[at] * (times ? times[i] : 1) : 0;
}

/* shift[j] = the sum of from[i + j rows] times[i] center[i]; a thread block per vector. */
__global__ static void centre_share(const double *from, int64_t rows, const double *times, const double *center,
                                    double *shift)
{
  __shared__ double sums[SUM_THREADS];
  const double *own = from + blockIdx.x * rows;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < rows; i += SUM_THREADS)
    sum += own[i] * ((times ? times[i] : 1) * (center ? center[i] : 1));
  sums[threadIdx.x] = sum;
  for (int half = SUM_THREADS / 2; half; half /= 2) {
    __syncthreads();
    if ((int) threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) shift[blockIdx.x] = sums[0];
}

/* Rows of sums, `width` numbers each: the stored values of a compressed row times the rows of `in` that they belong to,
 * for part k of them in slice k; or these added. See the top of the file. */
template <int LANES>
__global__ static void gather(const int32_t *__restrict__ starts, const int32_t *__restrict__ index,
                              const double *__restrict__ values, int64_t rows, int parts, int width,
                              const double *__restrict__ in, int add, double *sums, int64_t slice)
{
  const int64_t warp = (blockIdx.x * (int64_t) blockDim.x + threadIdx.x) / 32;
  const int chunks = width / (2 * LANES), lane = (int) threadIdx.x % 32, own = lane % LANES;
  const int64_t chunk = warp % chunks, part = warp / chunks % parts, row = warp / chunks / parts;
  if (row >= rows) return; /* all lanes of the warp */
  const int64_t first = starts[row], count = starts[row + 1] - first, share = (count + parts - 1) / parts;
  const int64_t from = first + (share * part < count ? share * part : count);
  const int64_t to = first + (share * (part + 1) < count ? share * (part + 1) : count);
  const double2 *vectors = (const double2 *) in + chunk * LANES + own;
  const int64_t pitch = width / 2;
  double2 sum = make_double2(0, 0);
#pragma unroll 4
  for (int64_t e = from + lane / LANES; e < to; e += 32 / LANES) {
    const double2 v = vectors[index[e] * pitch];
    const double x = values[e];
    sum.x += x * v.x;
    sum.y += x * v.y;
  }
#pragma unroll
  for (int step = LANES; step < 32; step *= 2) {
    sum.x += __shfl_xor_sync(0xffffffffu, sum.x, step);
    sum.y += __shfl_xor_sync(0xffffffffu, sum.y, step);
  }
  if (lane >= LANES) return;
  double2 *out = (double2 *) (sums + part * slice + row * width) + chunk * LANES + own;
  if (add) {
    sum.x += out->x;
    sum.y += out->y;
  }
  *out = sum;
}

/* out[i + j rows] = (the slices of sums[i width + j] - shift[j] center[i]) times[i] */
__global__ static void take_centre(double *out, const double *sums, int64_t slice, int parts, int64_t rows, int b,
                                   int width, const double *shift, const double *center, const double *times)
{
  const int64_t at = blockIdx.x * (int64_t) blockDim.x + threadIdx.x;
  if (at >= rows * b) return;
  const int64_t i = at % rows, j = at / rows;
  double sum = sums[i * width + j];
  for (int k = 1; k < parts; k++) sum += sums[k * slice + i * width + j];
  out[at] = (sum - shift[j] * (center ? center[i] : 1)) * (times ? times[i] : 1);
}

/* How a product with b vectors runs, whose result has `to` rows of sums. */
struct gathering {
  int width, lanes, parts;
};

static gathering gathering_for(size_t b, size_t to, double stored)
{
  const int width = b <= 2 ? 2 : b <= 4 ? 4 : (int) ((b + 7) / 8 * 8);
  const int lanes = width % 32 == 0 ? 16 : width % 16 == 0 ? 8 : width % 8 == 0 ? 4 : width / 2;
  const double warps = (double) to * (double) (width / (2 * lanes)), each = stored / (double) to;
  const double parts = fmin(fmin(ENOUGH_WARPS / warps, each / PART), PARTS);
  return { width, lanes, parts < 1 ? 1 : (int) parts };
}

/* sums (+)= a compressed matrix times `in`. */
static cudaError_t launch_gather(const gathering *by, const int32_t *starts, const int32_t *index, const double *values,
                                 int64_t rows, const double *in, int add, double *sums, int64_t slice,
                                 cudaStream_t stream)
{
  const int64_t warps = rows * by->parts * (by->width / (2 * by->lanes));
  const unsigned blocks = (unsigned) ((warps + 7) / 8);
  const auto kernel = by->lanes == 16  ? gather<16>
                      : by->lanes == 8 ? gather<8>
                      : by->lanes == 4 ? gather<4>
                      : by->lanes == 2 ? gather<2>
                                       : gather<1>;
  if (!rows) return cudaSuccess;
  kernel<<<blocks, 256, 0, stream>>>(starts, index, values, rows, by->parts, by->width, in, add, sums, slice);
  return cudaGetLastError();
}

/* Room for `count` numbers, kept for the products that follow. */
static weft_status scratch_of(weft_pca_space *space, size_t count, double **out)
{
  weft_status st = WEFT_OK;
  if (space->scratch_count < count) {
    if (space->scratch) weft_device_drop(&space->mem, space->scratch);
    space->scratch = NULL;
    space->scratch_count = 0;
    WEFT_DEVICE_TAKE(space->scratch, &space->mem, count);
    space->scratch_count = count;
  }
  *out = space->scratch;
done:
  return st;
}

/* Vectors are laid row by row and scaled, each block's share of the sums is gathered, and the result becomes vectors
 * again, without the centre's share and scaled: four launches for one block, and no wait. */
weft_status weft_pca_gathered(weft_pca_space *space, int transposed, const double *v, size_t b, double *out)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const size_t n = space->data->n, p = space->data->p, from = transposed ? n : p, to = transposed ? p : n;
  const cudaStream_t stream = space->mem.stream;
  const double *times = transposed ? space->row : space->factor;
  double stored = 0, *in, *sums, *shift;
  int add = 0;
  for (const weft_pca_stored &x : *space->held) stored += (double) x.stored;
  const gathering by = gathering_for(b, to, stored);
  const size_t slice = to * (size_t) by.width;
  WEFT_TRY(scratch_of(space, from * (size_t) by.width + (size_t) by.parts * slice + b, &in));
  sums = in + from * (size_t) by.width;
  shift = sums + (size_t) by.parts * slice;
  by_rows<<<weft_pca_blocks_for(from * (size_t) by.width), 256, 0, stream>>>(in, v, (int64_t) from, (int) b, by.width,
                                                                             times);
  WEFT_CUDA(cudaGetLastError());
  centre_share<<<(unsigned) b, SUM_THREADS, 0, stream>>>(v, (int64_t) from, times, transposed ? NULL : space->center,
                                                         shift);
  WEFT_CUDA(cudaGetLastError());
  for (const weft_pca_stored &x : *space->held) {
    const int64_t first = x.row * by.width;
    WEFT_TRY(weft_poll(ctx, 0, 0));
    if (transposed)
      WEFT_CUDA(
          launch_gather(&by, x.starts, x.rows, x.values, (int64_t) p, in + first, add, sums, (int64_t) slice, stream));
    else
      WEFT_CUDA(
          launch_gather(&by, x.row_starts, x.columns, x.row_values, x.n, in, 0, sums + first, (int64_t) slice, stream));
    add = 1;
  }
  take_centre<<<weft_pca_blocks_for(to * b), 256, 0, stream>>>(out, sums, (int64_t) slice, by.parts, (int64_t) to,
                                                               (int) b, by.width, shift,
                                                               transposed ? space->center : NULL,
                                                               transposed ? space->factor : space->row);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}
