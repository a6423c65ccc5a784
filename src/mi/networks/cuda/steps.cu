/* MRNET and MRNETB on the device, step by step as cpu/network.c takes them: sums in the same order and without
 * contraction, so that all choices and weights have the same bits. A block has a target; a thread has the features
 * thread, thread + THREADS, ... to itself, and only the choice of the best is shared. */
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

/* sums[j]: of column j without the diagonal. */
__global__ static void __launch_bounds__(256) sum_columns(const double *m, size_t p, double *sums)
{
  __shared__ double tile[COLUMNS][DEPTH + 1];
  const size_t j0 = (size_t) blockIdx.x * COLUMNS
  , j = j0 + threadIdx.x;
  const bool mine = threadIdx.x < COLUMNS
  &&j < p;
  double sum = 0;
  for (size_t i0 = 0; i0 < p; i0 += DEPTH) {
    for (uint32_t e = threadIdx.x; e < COLUMNS * DEPTH; e += 256) {
      const uint32_t c = e / DEPTH, k = e % DEPTH;
      if (j0 + c < p && i0 + k < p) tile[c][k] = m[i0 + k + (j0 + c) * p];
    }
    __syncthreads();
    for (size_t i = i0; mine && i < i0 + DEPTH && i < p; i++)
      if (i != j) sum += tile[threadIdx.x][i - i0];
    __syncthreads();
  }
  if (mine) sums[j] = sum;
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

/* What a method's band of columns is made from: sums of all columns, room of each target in a band. */
struct band_job {
  const double *m, *sums;
  size_t p;
  double rounding, *room, *out;
};

static void mrnet_band(const band_job &job, size_t column, size_t count, cudaStream_t stream)
{
  mrnet<<<(unsigned) count, THREADS, 0, stream>>>(job.m, job.p, column, job.rounding, job.room, job.out);
}

static void mrnetb_band(const band_job &job, size_t column, size_t count, cudaStream_t stream)
{
  mrnetb<<<(unsigned) count, THREADS, 0, stream>>>(job.m, job.p, column, job.sums, job.rounding, job.room, job.out);
}

/* <name>_band() for each method whose column `device` in the sheet says `steps`, else NULL. */
typedef void make_band(const band_job &, size_t, size_t, cudaStream_t);
#define BAND_tiles(name) NULL
#define BAND_steps(name) name##_band
#define BAND_host(name) NULL
#define BAND(kind, name, before, greedy, in_bits, nanoseconds, device) BAND_##device(name),
static make_band *const bands[] = { WEFT_NETWORK_KINDS(BAND) };
#undef BAND

/* Targets between two polls. */
static size_t batch_of(size_t p)
{
  size_t batch = BAND_BYTES / (3 * p * sizeof(double));
  const double largest = MAX_WORK / ((double) p * (double) p);
  if ((double) batch > largest) batch = (size_t) largest;
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
  const size_t p = job->p, batch = batch_of(p);
  const double rounding = weft_network_rounding(job, greatest);
  double *sums, *band, *room;
  WEFT_DEVICE_TAKE(sums, mem, p);
  WEFT_DEVICE_TAKE(band, mem, batch * p);
  WEFT_DEVICE_TAKE(room, mem, 2 * batch * p);
  if (kind->before == WEFT_NETWORK_SUMS) {
    sum_columns<<<(unsigned) ((p + COLUMNS - 1) / COLUMNS), 256, 0, mem->stream>>>(m, p, sums);
    WEFT_CUDA(cudaGetLastError());
  }
  for (size_t column = 0; column < p; column += batch) {
    const size_t count = p - column < batch ? p - column : batch;
    const band_job b = { m, sums, p, rounding, room, band };
    WEFT_TRY(weft_poll(ctx, (double) column, (double) p));
    bands[job->method](b, column, count, mem->stream);
    WEFT_CUDA(cudaGetLastError());
    WEFT_TRY(weft_device_download(mem, out + column * p, band, count * p * sizeof *out));
  }
  WEFT_TRY(weft_network_mirror(ctx, job, rounding, out));
done:
  return st;
}
