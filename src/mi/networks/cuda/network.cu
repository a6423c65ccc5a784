/* Networks on the device: ARACNE here, the other methods in steps.cu.
 *
 * Edge ij is removed when f(t_ij) > w_ij with t_ij = max over k of min(w_ik, w_jk) and f(s) = min(s, keep s) - eps,
 * which grows with s. t is a product of matrices with min for times and max for plus, done in 64 x 64 tiles on w
 * rounded to float. Rounding keeps order, so the float t is t rounded: that decides an edge unless w_ij lies within t's
 * rounding; the few left are searched again in double. Exactly the CPU's edges are removed. */
#include <cfloat>
#include <cmath>
#include <cstring>
#include "core/device/device.cuh"
#include "core/call/parallel.h"
#include "mi/networks/cuda/steps.cuh"

#define SIDE 64
#define DEPTH 32
#define FULL 0xffffffffu
#define UNDECIDED 0x7ff8dec1ded00000ull /* a NaN that no weight is */

__global__ static void to_float(const double *m, size_t p, size_t first, double scale, float *out)
{
  const size_t i = blockIdx.x * (size_t) blockDim.x + threadIdx.x, j = first + blockIdx.y;
  if (i < p) out[i + j * p] = i == j ? -INFINITY : (float) (m[i + j * p] * scale);
}

__device__ static double threshold(double s, double keep, double eps)
{
  const double kept = __dmul_rn(s, keep);
  return __dsub_rn(kept < s ? kept : s, eps);
}

/* What becomes of an edge of weight w (scaled: v) whose second weakest partner rounds to t. */
__device__ static double decide(double w, double v, float t, double keep, double eps)
{
  const double low = 0.5 * ((double) nextafterf(t, -INFINITY) + t), high = 0.5 * ((double) nextafterf(t, INFINITY) + t);
  if (w == 0) return 0;
  if (t == -INFINITY) return w;
  if (fabsf(t) > 1e-30f) {
    if (threshold(low, keep, eps) > v) return 0;
    if (!(threshold(high, keep, eps) > v)) return w;
  }
  return __longlong_as_double(UNDECIDED);
}

/* Tiles of rows 0 .. blockIdx.x with tile `column` of columns. A thread has 4 x 4 edges. */
__global__ static void __launch_bounds__(256) weakest(const float *f, const double *m, size_t p, size_t column,
                                                      double scale, double keep, double eps, double *out)
{
  __shared__ __align__(16) float a[DEPTH][SIDE + 4], b[DEPTH][SIDE + 4];
  const size_t i0 = (size_t) blockIdx.x * SIDE, j0 = column * SIDE;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  float top[4][4];
  for (int s = 0; s < 4; s++)
    for (int t = 0; t < 4; t++) top[s][t] = -INFINITY;
  for (size_t k0 = 0; k0 < p; k0 += DEPTH) {
    for (int e = threadIdx.x; e < SIDE * DEPTH; e += 256) {
      const int c = e / DEPTH, k = e % DEPTH;
      a[k][c] = i0 + c < p && k0 + k < p ? f[k0 + k + (i0 + c) * p] : -INFINITY;
      b[k][c] = j0 + c < p && k0 + k < p ? f[k0 + k + (j0 + c) * p] : -INFINITY;
    }
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < DEPTH; k++) {
      const float4 x = *(const float4 *) &a[k][4 * tx], y = *(const float4 *) &b[k][4 * ty];
      const float xs[4] = { x.x, x.y, x.z, x.w }, ys[4] = { y.x, y.y, y.z, y.w };
#pragma unroll
      for (int s = 0; s < 4; s++)
#pragma unroll
        for (int t = 0; t < 4; t++) top[s][t] = fmaxf(top[s][t], fminf(xs[s], ys[t]));
    }
    __syncthreads();
  }
  for (int s = 0; s < 4; s++)
    for (int t = 0; t < 4; t++) {
      const size_t i = i0 + 4 * tx + s, j = j0 + 4 * ty + t;
      if (i >= p || j >= p) continue;
      const double w = m[i + j * p];
      out[i + (j - j0) * p] = i < j ? decide(w, w * scale, top[s][t], keep, eps * scale) : 0;
    }
}

/* A warp looks at 32 edges of a column, and searches all k for those left undecided. */
__global__ static void settle(const double *m, size_t p, size_t first, double keep, double eps, double *out)
{
  const size_t j = first + blockIdx.y, i0 = (blockIdx.x * (size_t) blockDim.x + threadIdx.x) / 32 * 32;
  const uint32_t lane = threadIdx.x % 32;
  if (i0 >= j) return;
  double *edge = out + (j - first) * p;
  const bool open = i0 + lane < j && __double_as_longlong(edge[i0 + lane]) == UNDECIDED;
  for (uint32_t left = __ballot_sync(FULL, open); left; left &= left - 1) {
    const size_t i = i0 + (size_t) __ffs((int) left) - 1;
    const double w = m[i + j * p];
    bool goes = false;
    for (size_t k0 = 0; k0 < p && !goes; k0 += 32) {
      const size_t k = k0 + lane;
      const double x = k < p ? m[k + i * p] : -INFINITY, y = k < p ? m[k + j * p] : -INFINITY;
      /* k = i or j never removes it: then s <= w */
      goes = __any_sync(FULL, k < p && k != i && k != j && threshold(x < y ? x : y, keep, eps) > w);
    }
    if (lane == 0) edge[i] = goes ? 0 : w;
  }
}

/* The power of two that brings the greatest weight into [1/2, 1). */
static double scale_of(double greatest)
{
  int exponent;
  if (greatest == 0) return 1;
  frexp(greatest, &exponent);
  return ldexp(1, exponent > 1000 ? -1000 : exponent < -1000 ? 1000 : -exponent);
}

/* ARACNE by columns of tiles: the weakest links in single precision, then a second look in double precision at the
 * edges that rounding leaves open. Brings back a band of columns at a time. */
static weft_status aracne_tiles(weft_ctx *ctx, weft_device_arena *mem, const weft_network_job *job, const double *m,
                                double greatest, double *out)
{
  weft_status st = WEFT_OK;
  const size_t p = job->p, tiles = (p + SIDE - 1) / SIDE;
  const double scale = scale_of(greatest);
  double *band;
  float *rounded;
  WEFT_DEVICE_TAKE(rounded, mem, p * p);
  WEFT_DEVICE_TAKE(band, mem, p * SIDE);
  WEFT_CUDA(cudaMemsetAsync(band, 0, p * SIDE * sizeof *band, mem->stream));
  for (size_t first = 0; first < p; first += 32768) {
    const size_t count = p - first < 32768 ? p - first : 32768;
    const dim3 grid((unsigned) ((p + 255) / 256), (unsigned) count);
    to_float<<<grid, 256, 0, mem->stream>>>(m, p, first, scale, rounded);
    WEFT_CUDA(cudaGetLastError());
  }
  for (size_t column = 0; column < tiles; column++) {
    const size_t first = column * SIDE, count = p - first < SIDE ? p - first : SIDE;
    const dim3 grid((unsigned) ((first + SIDE + 255) / 256), (unsigned) count);
    WEFT_TRY(weft_poll(ctx, (double) column * (double) column, (double) tiles * (double) tiles));
    weakest<<<(unsigned) column + 1, 256, 0, mem->stream>>>(rounded, m, p, column, scale, job->keep, job->eps, band);
    WEFT_CUDA(cudaGetLastError());
    settle<<<grid, 256, 0, mem->stream>>>(m, p, first, job->keep, job->eps, band);
    WEFT_CUDA(cudaGetLastError());
    /* what comes below the diagonal has no meaning */
    WEFT_TRY(weft_device_download(mem, out + first * p, band, count * p * sizeof *out));
  }
  WEFT_TRY(weft_network_mirror(ctx, job, weft_network_rounding(job, greatest), out));
done:
  return st;
}

/* How the device does a method, by its column `device` in the sheet; NULL: the CPU does it. */
typedef weft_status device_way(weft_ctx *, weft_device_arena *, const weft_network_job *, const double *, double,
                               double *);
#define WAY_tiles(name) name##_tiles
#define WAY_steps(name) weft_network_steps
#define WAY_host(name) NULL
#define WAY(kind, name, before, greedy, in_bits, nanoseconds, device) WAY_##device(name),
static device_way *const ways[] = { WEFT_NETWORK_KINDS(WAY) };
#undef WAY

/* weft_mi_ops.network on the device, for methods that have a way there; the others run on the CPU. The whole matrix is
 * on the device. */
weft_status weft_network_cuda(weft_ctx *ctx, const weft_network_job *job, double *out)
{
  device_way *const way = ways[job->method];
  const size_t p = job->p;
  if (!p || !way) return weft_network_cpu(ctx, job, out);
  weft_status st = WEFT_OK;
  weft_device_arena mem = weft_device_begin(ctx);
  double *m, greatest = 0;
  WEFT_TRY(weft_network_check(ctx, job, &greatest));
  WEFT_DEVICE_TAKE(m, &mem, p * p);
  WEFT_TRY(weft_device_upload(&mem, m, p * p, sizeof *m, weft_fill_doubles, job->m));
  WEFT_TRY(way(ctx, &mem, job, m, greatest, out));
done:
  weft_device_end(&mem);
  return st;
}
