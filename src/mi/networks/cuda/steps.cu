/* CLR, MRNET and MRNETB on the device, step by step as cpu/network.c takes them: sums in the same order and without
 * contraction, so that all choices and weights have the same bits. MRNET and MRNETB give a block to a target; a thread
 * has the features thread, thread + THREADS, ... to itself, and only the choice of the best is shared. */
/* Build: exact. */
#include <cmath>
#include <cstring>
#include "core/device/device.cuh"
#include "core/call/parallel.h"
#include "mi/networks/cuda/steps.cuh"

#define THREADS 512
#define COLUMNS 32 /* summed by one block */
#define DEPTH 64
#define FULL 0xffffffffu
#define BAND_BYTES ((size_t) 256 << 20) /* results and room of the targets between two polls */
#define MAX_WORK 2e11                   /* p² per target between two polls: some 50 ms */

/* ---- sums of columns, entry after entry ---- */

/* first: sums without the diagonal; with `second`, means, and second: standard deviations, 0 for a constant row. */
__global__ static void __launch_bounds__(256)
    sum_columns(const double *m, size_t p, double rounding, double *first, double *second)
{
  __shared__ double tile[COLUMNS][DEPTH + 1];
  const size_t j0 = (size_t) blockIdx.x * COLUMNS
  , j = j0 + threadIdx.x;
  const bool mine = threadIdx.x < COLUMNS
  &&j < p;
  double sum = 0, mean = 0, squares = 0, least = INFINITY, largest = -INFINITY;
  for (int turn = 0; turn < (second ? 2 : 1); turn++) {
    for (size_t i0 = 0; i0 < p; i0 += DEPTH) {
      for (uint32_t e = threadIdx.x; e < COLUMNS * DEPTH; e += 256) {
        const uint32_t c = e / DEPTH, k = e % DEPTH;
        if (j0 + c < p && i0 + k < p) tile[c][k] = m[i0 + k + (j0 + c) * p];
      }
      __syncthreads();
      for (size_t i = i0; mine && i < i0 + DEPTH && i < p; i++) {
        const double w = tile[threadIdx.x][i - i0];
        if (i == j) continue;
        if (turn) {
          squares += (w - mean) * (w - mean);
          continue;
        }
        sum += w;
        if (w < least) least = w;
        if (w > largest) largest = w;
      }
      __syncthreads();
    }
    if (!turn) mean = sum / ((double) p - 1);
  }
  if (!mine) return;
  first[j] = second ? mean : sum;
  if (second) second[j] = p > 2 && largest - least > rounding ? sqrt(squares / ((double) p - 2)) : 0;
}

/* Columns from `column` on, above the diagonal. */
__global__ static void clr_columns(const double *m, size_t p, size_t column, const double *mean, const double *sd,
                                   double rounding, double *out)
{
  const size_t i = blockIdx.x * (size_t) blockDim.x + threadIdx.x, j = column + blockIdx.y;
  if (i >= p) return;
  double weight = 0;
  if (i < j) {
    const double above_i = m[i + j * p] - mean[i], above_j = m[i + j * p] - mean[j];
    const double a = sd[i] > 0 && above_i > rounding ? above_i / sd[i] : 0;
    const double b = sd[j] > 0 && above_j > rounding ? above_j / sd[j] : 0;
    weight = sqrt(a * a + b * b);
  }
  out[i + blockIdx.y * p] = weight;
}

/* ---- greedy methods ---- */

struct best {
  double value;
  size_t index;
};

/* The greatest of all threads, the first one of equals. */
__device__ static best choose(best own)
{
  __shared__ double values[THREADS / 32];
  __shared__ size_t indices[THREADS / 32];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int level = 0; level < 2; level++) {
    for (int half = 16; half; half /= 2) {
      const double value = __shfl_down_sync(FULL, own.value, half);
      const size_t index = __shfl_down_sync(FULL, (unsigned long long) own.index, half);
      if (value > own.value || (value == own.value && index < own.index)) {
        own.value = value;
        own.index = index;
      }
    }
    if (level) break;
    __syncthreads(); /* what the last choice left has been read */
    if (lane == 0) {
      values[warp] = own.value;
      indices[warp] = own.index;
    }
    __syncthreads();
    own.value = lane < THREADS / 32 ? values[lane] : -INFINITY;
    own.index = lane < THREADS / 32 ? indices[lane] : SIZE_MAX;
  }
  own.value = __shfl_sync(FULL, own.value, 0);
  own.index = __shfl_sync(FULL, (unsigned long long) own.index, 0);
  return own;
}

/* The first of the greatest scores sign × (size × relevance - sum), after adding `add`, if any, to `sum`. */
__device__ static best add_and_find(const double *relevance, const double *add, double *sum, size_t p, double size,
                                    double sign)
{
  best own = { -INFINITY, SIZE_MAX };
  for (size_t i = threadIdx.x; i < p; i += THREADS) {
    const double s = sum[i] + (add ? add[i] : 0), score = (relevance[i] * size - s) * sign;
    sum[i] = s;
    if (score > own.value) {
      own.value = score;
      own.index = i;
    }
  }
  return choose(own);
}

/* room: two numbers per feature for every target. */
__global__ static void __launch_bounds__(THREADS)
    mrnet(const double *m, size_t p, size_t first, double rounding, double *room, double *out)
{
  const size_t t = first + blockIdx.x;
  double *relevance = room + 2 * p * blockIdx.x, *sum = relevance + p, *to = out + p * blockIdx.x;
  const double *last = NULL;
  for (size_t i = threadIdx.x; i < p; i += THREADS) {
    relevance[i] = i == t ? -INFINITY : m[i + t * p];
    sum[i] = to[i] = 0;
  }
  for (size_t turn = 0; turn + 1 < p; turn++) {
    const double size = turn ? (double) turn : 1;
    const best b = add_and_find(relevance, last, sum, p, size, 1);
    if (!(b.value > rounding * size)) break;
    if (b.index % THREADS == threadIdx.x) {
      to[b.index] = b.value / size;
      relevance[b.index] = -INFINITY;
    }
    last = m + b.index * p;
  }
}

/* A relevance that is infinite is outside. sums: of all columns. */
__global__ static void __launch_bounds__(THREADS)
    mrnetb(const double *m, size_t p, size_t first, const double *sums, double rounding, double *room, double *out)
{
  const size_t t = first + blockIdx.x;
  const double *own = m + t * p;
  double *relevance = room + 2 * p * blockIdx.x, *sum = relevance + p, *to = out + p * blockIdx.x,
         size = (double) p - 1;
  for (size_t i = threadIdx.x; i < p; i += THREADS) {
    relevance[i] = i == t ? INFINITY : own[i];
    sum[i] = sums[i] - own[i];
  }
  best low = add_and_find(relevance, NULL, sum, p, size, -1);
  while (size > 1 && low.value > rounding * size) {
    const double *leaving = m + low.index * p;
    size--;
    for (size_t i = threadIdx.x; i < p; i += THREADS) {
      if (i == low.index)
        relevance[i] = INFINITY; /* its own entry on the diagonal is in no sum */
      else
        sum[i] += -1 * leaving[i];
    }
    low = add_and_find(relevance, NULL, sum, p, size, -1);
  }
  for (size_t swaps = 0; swaps < p; swaps++) {
    const double *leaving = m + low.index * p;
    best in = { -INFINITY, SIZE_MAX };
    for (size_t i = threadIdx.x; i < p; i += THREADS) {
      if (relevance[i] != INFINITY || i == t) continue;
      const double score = size * own[i] - (sum[i] - leaving[i]);
      if (score > in.value) {
        in.value = score;
        in.index = i;
      }
    }
    in = choose(in);
    if (in.index == SIZE_MAX || !(in.value > -low.value + 1e-12 * fabs(low.value))) break;
    const double *entering = m + in.index * p;
    for (size_t i = threadIdx.x; i < p; i += THREADS) {
      if (i == low.index) {
        sum[i] = sum[i] + entering[i];
        relevance[i] = INFINITY;
      } else if (i == in.index) {
        sum[i] = sum[i] - leaving[i];
        relevance[i] = own[i];
      } else {
        sum[i] += entering[i] - leaving[i];
      }
    }
    low = add_and_find(relevance, NULL, sum, p, size, -1);
  }
  for (size_t i = threadIdx.x; i < p; i += THREADS) {
    const double score = relevance[i] != INFINITY ? own[i] - sum[i] / size : 0;
    to[i] = score > 0 ? score : 0;
  }
}

/* ---- host ---- */

/* What a method's band of columns is made from; `first` and `second` of all columns, `room` of each target in a
 * band. */
struct band_job {
  const double *m, *first, *second;
  size_t p;
  double rounding, *room, *out;
};

static void clr_band(const band_job &job, size_t column, size_t count, cudaStream_t stream)
{
  const dim3 grid((unsigned) ((job.p + 255) / 256), (unsigned) count);
  clr_columns<<<grid, 256, 0, stream>>>(job.m, job.p, column, job.first, job.second, job.rounding, job.out);
}

static void mrnet_band(const band_job &job, size_t column, size_t count, cudaStream_t stream)
{
  mrnet<<<(unsigned) count, THREADS, 0, stream>>>(job.m, job.p, column, job.rounding, job.room, job.out);
}

static void mrnetb_band(const band_job &job, size_t column, size_t count, cudaStream_t stream)
{
  mrnetb<<<(unsigned) count, THREADS, 0, stream>>>(job.m, job.p, column, job.first, job.rounding, job.room, job.out);
}

/* <name>_band() for each method whose column `device` in the sheet says `steps`, else NULL. */
typedef void make_band(const band_job &, size_t, size_t, cudaStream_t);
#define BAND_tiles(name) NULL
#define BAND_steps(name) name##_band
#define BAND_host(name) NULL
#define BAND(kind, name, before, greedy, in_bits, nanoseconds, device) BAND_##device(name),
static make_band *const bands[] = { WEFT_NETWORK_KINDS(BAND) };
#undef BAND

/* Columns between two polls. */
static size_t batch_of(size_t p, int greedy)
{
  size_t batch = BAND_BYTES / (3 * p * sizeof(double));
  const double largest = MAX_WORK / ((double) p * (double) p);
  if (greedy && (double) batch > largest) batch = (size_t) largest;
  if (batch < 132) batch = 132;
  if (batch > p) batch = p;
  return batch > 32768 ? 32768 : batch;
}

/* Runs a method of the sheet by bands of columns: what must be known of all columns first, then one launch per band,
 * which is brought back before the next. */
weft_status weft_network_steps(weft_ctx *ctx, weft_device_arena *mem, const weft_network_job *job, const double *m,
                               double greatest, double *out)
{
  weft_status st = WEFT_OK;
  const weft_network_kind *kind = weft_network_kind_of(job->method);
  const size_t p = job->p, batch = batch_of(p, kind->greedy);
  const double rounding = weft_network_rounding(job, greatest);
  double *first, *second, *band, *room = NULL;
  WEFT_DEVICE_TAKE(first, mem, p);
  WEFT_DEVICE_TAKE(second, mem, p);
  WEFT_DEVICE_TAKE(band, mem, batch * p);
  if (kind->greedy) WEFT_DEVICE_TAKE(room, mem, 2 * batch * p);
  if (kind->before != WEFT_NETWORK_NOTHING) {
    double *deviations = kind->before == WEFT_NETWORK_MOMENTS ? second : NULL;
    sum_columns<<<(unsigned) ((p + COLUMNS - 1) / COLUMNS), 256, 0, mem->stream>>>(m, p, rounding, first, deviations);
    WEFT_CUDA(cudaGetLastError());
  }
  for (size_t column = 0; column < p; column += batch) {
    const size_t count = p - column < batch ? p - column : batch;
    const band_job b = { m, first, second, p, rounding, room, band };
    WEFT_TRY(weft_poll(ctx, (double) column, (double) p));
    bands[job->method](b, column, count, mem->stream);
    WEFT_CUDA(cudaGetLastError());
    WEFT_TRY(weft_device_download(mem, out + column * p, band, count * p * sizeof *out));
  }
  WEFT_TRY(weft_network_mirror(ctx, job, rounding, out));
done:
  return st;
}
