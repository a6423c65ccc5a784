/* The rates of a device, see rates.h: each the best of three short runs. */
#include "core/device/device.cuh"
#include "core/call/parallel.h"
#include "core/call/rates.h"
#include "core/device/rates.cuh"

enum { RUNS = 3, THREADS = 256, CHAINS = 8, ROUNDS = 4096, STARTS = 20 };
#define NUMBERS ((size_t) 1 << 23) /* doubles, 64 MB */

template <typename T> __global__ void multiply_add(T by, int rounds, T *out)
{
  T x[CHAINS], sum = 0;
#pragma unroll
  for (int k = 0; k < CHAINS; k++) x[k] = (T) (threadIdx.x + k);
  for (int round = 0; round < rounds; round++) {
#pragma unroll
    for (int k = 0; k < CHAINS; k++) x[k] = x[k] * by + (T) 1;
  }
#pragma unroll
  for (int k = 0; k < CHAINS; k++) sum += x[k];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

static void copy_numbers(const void *data, size_t first, size_t count, void *out, int threads)
{
  const double *from = (const double *) data + first;
  double *to = (double *) out;
  const size_t part = (count + (size_t) threads - 1) / (size_t) threads;
  WEFT_PARALLEL(threads)
  WEFT_FOR(static)
  for (int t = 0; t < threads; t++) {
    const size_t end = (size_t) (t + 1) * part < count ? (size_t) (t + 1) * part : count;
    for (size_t i = (size_t) t * part; i < end; i++) to[i] = from[i];
  }
}

/* Seconds since `*from`, which becomes now; everything that the stream was given has been done. */
static cudaError_t lap(cudaStream_t stream, double *from, double *took)
{
  const cudaError_t e = cudaStreamSynchronize(stream);
  const double now = weft_seconds();
  *took = now - *from + 1e-9;
  *from = now;
  return e;
}

/* Measures the device: starts of kernels, bytes each way and within its memory, multiply-adds in double and single
 * precision, all per second. Each rate is the best of RUNS. */
weft_status weft_device_rates(weft_ctx *ctx, double rates[WEFT_DEVICE_RATE_COUNT])
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  const double bytes = (double) NUMBERS * sizeof(double);
  int processors = 0, blocks;
  double *host, *a, *b, at, took, each[WEFT_DEVICE_RATE_COUNT], operations;
  for (int k = 0; k < WEFT_DEVICE_RATE_COUNT; k++) rates[k] = 0;
  WEFT_TAKE(host, &own, NUMBERS);
  for (size_t i = 0; i < NUMBERS; i++) host[i] = 1;
  WEFT_DEVICE_TAKE(a, &mem, NUMBERS);
  WEFT_DEVICE_TAKE(b, &mem, NUMBERS);
  WEFT_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, ctx->device));
  blocks = 8 * processors;
  if ((size_t) blocks * THREADS > NUMBERS) blocks = (int) (NUMBERS / THREADS);
  operations = (double) blocks * THREADS * CHAINS * ROUNDS;
  for (int run = 0; run < RUNS; run++) {
    WEFT_TRY(weft_poll(ctx, run, RUNS));
    WEFT_CUDA(cudaStreamSynchronize(mem.stream));
    at = weft_seconds();
    for (int k = 0; k < STARTS; k++) {
      multiply_add<<<1, THREADS, 0, mem.stream>>>(0.5, 1, a);
      WEFT_CUDA(cudaGetLastError());
      WEFT_CUDA(cudaStreamSynchronize(mem.stream));
    }
    WEFT_CUDA(lap(mem.stream, &at, &took));
    each[WEFT_RATE_calls] = STARTS / took;
    WEFT_TRY(weft_device_upload(&mem, a, NUMBERS, sizeof(double), copy_numbers, host));
    WEFT_CUDA(lap(mem.stream, &at, &took));
    each[WEFT_RATE_up] = bytes / took;
    WEFT_TRY(weft_device_download(&mem, host, a, NUMBERS * sizeof(double)));
    WEFT_CUDA(lap(mem.stream, &at, &took));
    each[WEFT_RATE_down] = bytes / took;
    WEFT_CUDA(cudaMemcpyAsync(b, a, NUMBERS * sizeof(double), cudaMemcpyDeviceToDevice, mem.stream));
    WEFT_CUDA(lap(mem.stream, &at, &took));
    each[WEFT_RATE_device_memory] = 2 * bytes / took;
    multiply_add<<<blocks, THREADS, 0, mem.stream>>>(0.5, ROUNDS, b);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(lap(mem.stream, &at, &took));
    each[WEFT_RATE_device_core] = operations / took;
    multiply_add<<<blocks, THREADS, 0, mem.stream>>>(0.5f, ROUNDS, (float *) b);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(lap(mem.stream, &at, &took));
    each[WEFT_RATE_device_single] = operations / took;
    for (int k = 0; k < WEFT_DEVICE_RATE_COUNT; k++)
      if (each[k] > rates[k]) rates[k] = each[k];
  }
done:
  weft_device_end(&mem);
  weft_arena_end(&own);
  return st;
}
