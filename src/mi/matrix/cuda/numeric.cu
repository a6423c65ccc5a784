/* All pairs of numeric columns on the device. The host prepares the columns and scores pairs with missing values, as on
 * the CPU (numeric_columns.c); sums are taken in the same order, so that results have the same bits.
 *
 * Correlations: a block of 16 x 16 threads scores 32 x 32 pairs, each thread 2 x 2 with eight partial sums per pair;
 * both 32 columns pass through shared memory 32 rows at a time. KSG: a block per pair, a thread per point; neighbours
 * are searched outwards in the order of x (ksg.h). Kendall: a block per pair, all pairs of rows. */
#include <cstring>
#include "core/device/device.cuh"
#include "mi/matrix/both/numeric.h"
#include "mi/matrix/both/ksg.h"
extern "C" {
#include "mi/matrix/both/numeric_columns.h"
}

#define SIDE 32
#define ROWS 32     /* of the columns in shared memory at a time; a multiple of WEFT_DOT_LANES */
#define THREADS 128 /* of the kernels with a block per pair */
#define FULL 0xffffffffu
#define MAX_NEIGHBOURS 32         /* kept in a thread's local memory; more are left to the CPU */
#define SHARED_BYTES (160u << 10) /* a block's points and counts; more live in global memory */
#define PAIRS_AT_ONCE ((size_t) 1 << 20)

struct pair_of {
  uint32_t i, j;
};

/* ---- correlations ---- */

/* Columns first_i .. and first_j .. of z; out is column major, `rows` high, its column 0 being column first_j of z. */
__global__ static void __launch_bounds__(256)
    correlate(const double *z, size_t stride, size_t rows, size_t first_j, size_t last_j, int same, double *out)
{
  __shared__ double a[SIDE][ROWS + 1], b[SIDE][ROWS + 1];
  const size_t i0 = (size_t) blockIdx.x * SIDE, j0 = first_j + (size_t) blockIdx.y * SIDE;
  const int tx = threadIdx.x, ty = threadIdx.y, id = ty * 16 + tx;
  double sum[2][2][WEFT_DOT_LANES] = {};
  for (size_t r0 = 0; r0 < stride; r0 += ROWS) {
    for (int e = id; e < SIDE * ROWS; e += 256) {
      const int c = e / ROWS, r = e % ROWS;
      a[c][r] = i0 + c < rows && r0 + r < stride ? z[(i0 + c) * stride + r0 + r] : 0;
      b[c][r] = j0 + c < last_j && r0 + r < stride ? z[(j0 + c) * stride + r0 + r] : 0;
    }
    __syncthreads();
    for (int r = 0; r < ROWS; r += WEFT_DOT_LANES)
#pragma unroll
      for (int l = 0; l < WEFT_DOT_LANES; l++) {
        const double x[2] = { a[tx][r + l], a[tx + 16][r + l] }, y[2] = { b[ty][r + l], b[ty + 16][r + l] };
#pragma unroll
        for (int s = 0; s < 2; s++)
#pragma unroll
          for (int t = 0; t < 2; t++) sum[s][t][l] = weft_add(sum[s][t][l], weft_mul(x[s], y[t]));
      }
    __syncthreads();
  }
#pragma unroll
  for (int s = 0; s < 2; s++)
#pragma unroll
    for (int t = 0; t < 2; t++) {
      const size_t i = i0 + tx + 16 * s, j = j0 + ty + 16 * t;
#pragma unroll
      for (int half = WEFT_DOT_LANES / 2; half; half /= 2)
#pragma unroll
        for (int l = 0; l < half; l++) sum[s][t][l] = weft_add(sum[s][t][l], sum[s][t][l + half]);
      if (i < rows && j < last_j) out[i + (j - first_j) * rows] = same && i == j ? 0 : weft_mi_of_rho(sum[s][t][0]);
    }
}

/* ---- KSG ---- */

struct ksg_columns {
  const double *sorted, *scaled, *inverse_sd, *slack, *psi, *shifted;
  const uint32_t *order;
  uint32_t n;
  int k;
};

/* The neighbours of point r of the points (x, y) in order of x, counted. The window holds every point within `reach`
 * and what lies within the slack beyond it. */
__device__ static void count_point(const ksg_columns &prepared, const double *xs, const double *ys,
                                   const double *y_sorted, pair_of p, uint32_t row, uint32_t *counts)
{
  const double x = xs[row], y = ys[row], scale_x = prepared.inverse_sd[p.i], scale_y = prepared.inverse_sd[p.j];
  const double beyond_x = weft_mul(prepared.slack[p.i], scale_x), beyond_y = weft_mul(prepared.slack[p.j], scale_y);
  const double beyond = WEFT_KSG_SLACKS * (beyond_x > beyond_y ? beyond_x : beyond_y);
  double near[MAX_NEIGHBOURS], reach = INFINITY, e_x = 0, e_y = 0;
  uint32_t left = row, right = row + 1, k = 0; /* the window is [left, right) */
  bool go_left = true, go_right = true;
  for (int place = 0; place < prepared.k; place++) near[place] = INFINITY;
  while (go_left || go_right) {
    for (int side = 0; side < 2; side++) {
      bool &go = side ? go_left : go_right;
      go = go && (side ? left > 0 : right < prepared.n);
      if (!go) continue;
      const uint32_t other = side ? left - 1 : right;
      const double dx = fabs(xs[other] - x) * scale_x, dy = fabs(ys[other] - y) * scale_y, d = dx > dy ? dx : dy;
      go = dx <= weft_add(reach, beyond);
      if (!go) continue;
      if (side)
        left--;
      else
        right++;
      if (!(d < reach)) continue;
      int at = prepared.k - 1;
      for (; at > 0 && near[at - 1] > d; at--) near[at] = near[at - 1];
      near[at] = d;
      reach = near[prepared.k - 1];
    }
  }
  const double reach_x = weft_add(reach, beyond_x), reach_y = weft_add(reach, beyond_y);
  for (uint32_t other = left; other < right; other++) {
    const double dx = fabs(xs[other] - x), dy = fabs(ys[other] - y);
    if (!(dx * scale_x <= reach_x && dy * scale_y <= reach_y)) continue;
    k++;
    if (dx > e_x) e_x = dx;
    if (dy > e_y) e_y = dy;
  }
  atomicAdd(&counts[weft_ksg_within(xs + left, right - left, x, weft_add(e_x, prepared.slack[p.i]))], 1u);
  atomicAdd(&counts[weft_ksg_within(y_sorted, prepared.n, y, weft_add(e_y, prepared.slack[p.j]))], 1u);
  atomicAdd(&counts[prepared.n + k - 1], 1u);
}

/* The first warp's sum of counts[i] f[i]: a lane is one of the 32 partial sums of weft_ksg_sum(). */
__device__ static double sum_counts(const uint32_t *counts, const double *f, uint32_t n)
{
  double sum = 0;
  for (uint32_t i = threadIdx.x; i < n; i += 32)
    if (counts[i]) sum = weft_add(sum, weft_mul((double) counts[i], f[i]));
  for (int half = 16; half; half /= 2) sum = weft_add(sum, __shfl_down_sync(FULL, sum, half));
  return sum;
}

/* `scratch` holds n doubles and 2n words per block, or is NULL: then they are in shared memory. */
__global__ static void __launch_bounds__(THREADS)
    ksg_pairs(ksg_columns prepared, const pair_of *pairs, size_t count, char *scratch, double *out)
{
  extern __shared__ double shared[];
  double *ys = scratch ? (double *) (scratch + (size_t) blockIdx.x * 16 * prepared.n) : shared;
  uint32_t *counts = (uint32_t *) (ys + prepared.n);
  for (size_t at = blockIdx.x; at < count; at += gridDim.x) {
    const pair_of p = pairs[at];
    const double *xs = prepared.sorted + (size_t) p.i * prepared.n,
                 *y_sorted = prepared.sorted + (size_t) p.j * prepared.n;
    for (uint32_t r = threadIdx.x; r < prepared.n; r += THREADS) {
      ys[r] = prepared.scaled[(size_t) p.j * prepared.n + prepared.order[(size_t) p.i * prepared.n + r]];
      counts[r] = counts[prepared.n + r] = 0;
    }
    __syncthreads();
    for (uint32_t r = threadIdx.x; r < prepared.n; r += THREADS) count_point(prepared, xs, ys, y_sorted, p, r, counts);
    __syncthreads();
    if (threadIdx.x < 32) {
      const double sum_psi = sum_counts(counts, prepared.psi, prepared.n),
                   sum_k = sum_counts(counts + prepared.n, prepared.shifted, prepared.n);
      if (threadIdx.x == 0) out[at] = weft_ksg_bits(sum_psi, sum_k, (double) prepared.n, prepared.psi[prepared.n]);
    }
    __syncthreads();
  }
}

/* ---- Kendall ---- */

__device__ static int64_t block_sum(int64_t v, int64_t *shared)
{
  for (int half = 16; half; half /= 2) v += __shfl_down_sync(FULL, v, half);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0;
  for (int w = 0; w < THREADS / 32; w++) v += shared[w];
  __syncthreads();
  return v;
}

/* A block per pair: each thread compares some of the rows with all rows after them, in quadratic time. */
__global__ static void __launch_bounds__(THREADS)
    kendall_pairs(const double *x, uint32_t n, const pair_of *pairs, double *out)
{
  __shared__ int64_t shared[THREADS / 32];
  const double *a = x + (size_t) pairs[blockIdx.x].i * n, *b = x + (size_t) pairs[blockIdx.x].j * n;
  int64_t difference = 0, untied_a = 0, untied_b = 0;
  for (uint32_t r = threadIdx.x; r < n; r += THREADS) {
    const double ar = a[r], br = b[r];
    int d = 0, ua = 0, ub = 0;
    if (ar != ar || br != br) continue;
    for (uint32_t s = r + 1; s < n; s++) {
      const double as = a[s], bs = b[s];
      if (as != as || bs != bs) continue;
      const int sa = (ar > as) - (ar < as), sb = (br > bs) - (br < bs);
      d += sa * sb;
      ua += sa != 0;
      ub += sb != 0;
    }
    difference += d;
    untied_a += ua;
    untied_b += ub;
  }
  difference = block_sum(difference, shared);
  untied_a = block_sum(untied_a, shared);
  untied_b = block_sum(untied_b, shared);
  if (threadIdx.x == 0) out[blockIdx.x] = weft_mi_of_tau(difference, untied_a, untied_b);
}

/* ---- host ---- */

template <typename T> static weft_status send(weft_device_arena *mem, T **to, const T *from, size_t count)
{
  weft_status st = WEFT_OK;
  T *block;
  WEFT_DEVICE_TAKE(block, mem, count);
  WEFT_TRY(weft_device_upload(mem, block, count * sizeof(T), 1, weft_fill_bytes, from));
  *to = block;
done:
  return st;
}

/* Sends the standardised columns and brings back bands of columns of the result, each a launch of some 50 ms at most.
 * */
static weft_status correlations(weft_ctx *ctx, const weft_mi_ready *ready, double *out)
{
  weft_status st = WEFT_OK;
  weft_device_arena mem = weft_device_begin(ctx);
  const weft_mi_numeric *data = ready->data;
  const size_t rows = data->split ? data->split : data->p, columns = data->p - data->split;
  double *z, *band;
  size_t width;
  WEFT_TRY(send(&mem, &z, (const double *) ready->z, ready->stride * data->p));
  width = (size_t) (1 + 2e11 / ((double) rows * (double) ready->stride)); /* a launch of some 50 ms at most */
  width = width > columns ? columns : width > 65535 ? 65535 : width;
  width = weft_device_chunk(ctx, width, 8.0 * (double) rows, 0);
  if (!width) {
    st = WEFT_ERR_MEMORY;
    goto done;
  }
  WEFT_DEVICE_TAKE(band, &mem, rows * width);
  for (size_t first = data->split; first < data->p; first += width) {
    const size_t last = data->p - first < width ? data->p : first + width;
    const dim3 grid((unsigned) ((rows + SIDE - 1) / SIDE), (unsigned) ((last - first + SIDE - 1) / SIDE));
    WEFT_TRY(weft_poll(ctx, (double) (first - data->split), (double) columns));
    correlate<<<grid, dim3(16, 16), 0, mem.stream>>>(z, ready->stride, rows, first, last, !data->split, band);
    WEFT_CUDA(cudaGetLastError());
    WEFT_TRY(weft_device_download(&mem, out + (first - data->split) * rows, band, (last - first) * rows * sizeof *out));
  }
done:
  weft_device_end(&mem);
  return st;
}

/* The next pairs that the device scores, from column pair (*i, *j) on: complete and not constant; others are 0. */
static size_t next_pairs(const weft_mi_numeric *data, const weft_mi_column *columns, size_t capacity, size_t *i,
                         size_t *j, pair_of *pairs)
{
  const size_t rows = data->split ? data->split : data->p;
  size_t count = 0;
  while (*i < rows && count < capacity) {
    if (*j >= data->p) {
      ++*i;
      *j = data->split ? data->split : *i + 1;
      continue;
    }
    if (!columns ||
        (!columns[*i].incomplete && !columns[*j].incomplete && !columns[*i].constant && !columns[*j].constant))
      pairs[count++] = { (uint32_t) *i, (uint32_t) *j };
    ++*j;
  }
  return count;
}

/* Device memory for pairs and their scores, and the same on the host. */
struct pair_buffers {
  pair_of *host, *device;
  double *scores, *device_scores;
  size_t capacity;
};

static weft_status take_buffers(weft_arena *host, weft_device_arena *mem, double seconds_a_pair, pair_buffers *buffers)
{
  weft_status st = WEFT_OK;
  const double fit = 0.05 / seconds_a_pair;
  buffers->capacity = fit < 256 ? 256 : fit > (double) PAIRS_AT_ONCE ? PAIRS_AT_ONCE : (size_t) fit;
  WEFT_TAKE(buffers->host, host, buffers->capacity);
  WEFT_TAKE(buffers->scores, host, buffers->capacity);
  WEFT_DEVICE_TAKE(buffers->device, mem, buffers->capacity);
  WEFT_DEVICE_TAKE(buffers->device_scores, mem, buffers->capacity);
done:
  return st;
}

static weft_status bring_scores(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_numeric *data,
                                const pair_buffers *buffers, size_t count, double *out)
{
  weft_status st = WEFT_OK;
  WEFT_CUDA(cudaGetLastError());
  WEFT_CUDA(cudaMemcpyAsync(buffers->scores, buffers->device_scores, count * sizeof(double), cudaMemcpyDeviceToHost,
                            mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  for (size_t k = 0; k < count; k++) weft_mi_put(data, out, buffers->host[k].i, buffers->host[k].j, buffers->scores[k]);
done:
  return st;
}

/* Sends the columns and scores the pairs in batches, as many as take a moment. */
static weft_status kendall(weft_ctx *ctx, const weft_mi_numeric *data, double *out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  size_t i = 0, j = data->split ? data->split : 1, count;
  pair_buffers buffers;
  double *x;
  WEFT_TRY(send(&mem, &x, data->x, data->n * data->p));
  WEFT_TRY(take_buffers(&host, &mem, (double) data->n * (double) data->n * 2e-13, &buffers));
  while ((count = next_pairs(data, NULL, buffers.capacity, &i, &j, buffers.host)) > 0) {
    WEFT_TRY(weft_poll(ctx, (double) i, (double) (data->split ? data->split : data->p)));
    WEFT_TRY(weft_device_upload(&mem, buffers.device, count * sizeof(pair_of), 1, weft_fill_bytes, buffers.host));
    kendall_pairs<<<(unsigned) count, THREADS, 0, mem.stream>>>(x, (uint32_t) data->n, buffers.device,
                                                                buffers.device_scores);
    WEFT_TRY(bring_scores(ctx, &mem, data, &buffers, count, out));
  }
done:
  weft_device_end(&mem);
  weft_arena_end(&host);
  return st;
}

/* Sends the prepared columns and scores the pairs of complete columns in batches. A block keeps its points in shared
 * memory while they fit, else in its own part of `scratch`. */
static weft_status ksg(weft_ctx *ctx, const weft_mi_ready *ready, double *out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  const weft_mi_numeric *data = ready->data;
  const size_t bytes = 16 * data->n, grid = 4096;
  const bool in_shared = bytes <= SHARED_BYTES;
  size_t i = 0, j = data->split ? data->split : 1, count;
  double *sorted, *scaled, *inverse_sd, *slack, *scales, *slacks, *psi, *shifted;
  uint32_t *order;
  char *scratch = NULL;
  pair_buffers buffers;
  ksg_columns prepared;
  WEFT_TAKE(scales, &host, data->p);
  WEFT_TAKE(slacks, &host, data->p);
  for (size_t k = 0; k < data->p; k++) {
    scales[k] = ready->columns[k].inverse_sd;
    slacks[k] = ready->columns[k].slack;
  }
  WEFT_TRY(send(&mem, &sorted, (const double *) ready->sorted, data->n * data->p));
  WEFT_TRY(send(&mem, &scaled, (const double *) ready->scaled, data->n * data->p));
  WEFT_TRY(send(&mem, &order, (const uint32_t *) ready->order, data->n * data->p));
  WEFT_TRY(send(&mem, &inverse_sd, (const double *) scales, data->p));
  WEFT_TRY(send(&mem, &slack, (const double *) slacks, data->p));
  WEFT_TRY(send(&mem, &psi, (const double *) ready->psi, data->n + 1));
  WEFT_TRY(send(&mem, &shifted, (const double *) ready->shifted, data->n + 1));
  WEFT_TRY(take_buffers(&host, &mem, (double) data->n * 2e-9 * sqrt((double) data->n / 100), &buffers));
  if (!in_shared)
    WEFT_DEVICE_TAKE(scratch, &mem, grid * bytes);
  else
    WEFT_CUDA(weft_device_allow_shared((const void *) ksg_pairs, bytes));
  prepared = { sorted, scaled, inverse_sd, slack, psi, shifted, order, (uint32_t) data->n, data->k };
  while ((count = next_pairs(data, ready->columns, buffers.capacity, &i, &j, buffers.host)) > 0) {
    WEFT_TRY(weft_poll(ctx, (double) i, (double) (data->split ? data->split : data->p)));
    WEFT_TRY(weft_device_upload(&mem, buffers.device, count * sizeof(pair_of), 1, weft_fill_bytes, buffers.host));
    ksg_pairs<<<(unsigned) (in_shared      ? count
                            : count < grid ? count
                                           : grid),
                THREADS, in_shared ? bytes : 0, mem.stream>>>(prepared, buffers.device, count, scratch,
                                                              buffers.device_scores);
    WEFT_TRY(bring_scores(ctx, &mem, data, &buffers, count, out));
  }
done:
  weft_device_end(&mem);
  weft_arena_end(&host);
  return st;
}

/* weft_mi_ops.numeric on the device. Columns are prepared on the CPU, which also scores pairs with missing values, and
 * everything where k is too large or there is nothing to do. */
weft_status weft_mi_numeric_cuda(weft_ctx *ctx, const weft_mi_numeric *data, double *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_mi_ready ready;
  const size_t rows = data->split ? data->split : data->p, columns = data->p - data->split;
  const weft_mi_numeric_way way = weft_mi_way(data->estimator);
  const bool too_many = way == WEFT_MI_NEIGHBOURS && data->k > MAX_NEIGHBOURS;
  if (data->n < 2 || !rows || !columns || too_many) {
    st = weft_mi_numeric_cpu(ctx, data, out);
    goto done;
  }
  if (way != WEFT_MI_CORRELATION) memset(out, 0, rows * columns * sizeof *out);
  if (way != WEFT_MI_KENDALLS_TAU) WEFT_TRY(weft_mi_make_ready(ctx, &mem, data, &ready));
  switch (way) {
  case WEFT_MI_KENDALLS_TAU: WEFT_TRY(kendall(ctx, data, out)); break;
  case WEFT_MI_NEIGHBOURS: WEFT_TRY(ksg(ctx, &ready, out)); break;
  case WEFT_MI_CORRELATION: WEFT_TRY(correlations(ctx, &ready, out)); break;
  }
  if (way != WEFT_MI_KENDALLS_TAU) WEFT_TRY(weft_mi_incomplete_pairs(ctx, &ready, out));
done:
  weft_arena_end(&mem);
  return st;
}
