/* Vectors of draws on the device (draws_fill.h): the functions of draws.h, compiled by nvcc, in a grid-stride loop over
 * 64-bit indices. The result comes to the host in chunks, each a launch well below 100 ms. cuRAND's own Philox words
 * are here as well, as the independent witness of ours (philox.h has the mapping). */
#include <curand_kernel.h>
#include "core/device/device.cuh"
#include "core/numbers/draws_fill.h"

static const size_t CHUNK = 1 << 22, MAX_BLOCKS = 4096;
static const unsigned THREADS = 256;

static __global__ void fill_words(weft_rng rng, uint64_t first, int64_t n, uint32_t sub, double *out)
{
  for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n; i += (int64_t) gridDim.x * blockDim.x) {
    weft_u32x4 w = weft_draw_words(rng, first + (uint64_t) i, sub);
    for (int j = 0; j < 4; j++) out[4 * i + j] = w.v[j];
  }
}

static __global__ void fill_curand_words(weft_rng rng, uint64_t first, int64_t n, uint32_t sub, double *out)
{
  for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n; i += (int64_t) gridDim.x * blockDim.x) {
    curandStatePhilox4_32_10_t state;
    curand_init(rng.key, rng.stream | (uint64_t) sub << 32, 4 * (first + (uint64_t) i), &state);
    uint4 w = curand4(&state);
    out[4 * i] = w.x;
    out[4 * i + 1] = w.y;
    out[4 * i + 2] = w.z;
    out[4 * i + 3] = w.w;
  }
}

static __global__ void fill_draws(weft_draws_law law, weft_rng rng, uint64_t first, int64_t n, double *out)
{
  for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n; i += (int64_t) gridDim.x * blockDim.x)
    out[i] = weft_draws_one(&law, rng, first + (uint64_t) i);
}

/* weft_draws_fill() on the device, CHUNK draws at a time; the same bits as on the CPU. `out` is host memory. */
weft_status weft_draws_fill_cuda(weft_ctx *ctx, int kind, uint64_t key, uint32_t stream, uint64_t first, size_t n,
                                 double a, double b, double *out)
{
  weft_status st = WEFT_OK;
  weft_draws_law law;
  weft_rng rng = { key, stream };
  double *device;
  weft_device_arena mem = weft_device_begin(ctx);
  size_t width = weft_draws_width(kind), most = n < CHUNK ? n : CHUNK;
  const char *wrong = weft_draws_law_make(kind, a, b, &law);
  if (wrong) {
    st = weft_fail(ctx, WEFT_ERR_INPUT, "%s", wrong);
    goto done;
  }
  WEFT_DEVICE_TAKE(device, &mem, most * width);
  for (size_t at = 0; at < n; at += CHUNK) {
    size_t count = n - at < CHUNK ? n - at : CHUNK, blocks = (count + THREADS - 1) / THREADS;
    unsigned grid = (unsigned) (blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS);
    WEFT_TRY(weft_poll(ctx, (double) at, (double) n));
    if (kind == WEFT_DRAW_WORDS)
      fill_words<<<grid, THREADS, 0, mem.stream>>>(rng, first + at, (int64_t) count, (uint32_t) a, device);
    else if (kind == WEFT_DRAW_CURAND_WORDS)
      fill_curand_words<<<grid, THREADS, 0, mem.stream>>>(rng, first + at, (int64_t) count, (uint32_t) a, device);
    else
      fill_draws<<<grid, THREADS, 0, mem.stream>>>(law, rng, first + at, (int64_t) count, device);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(
        cudaMemcpyAsync(out + at * width, device, count * width * sizeof *out, cudaMemcpyDeviceToHost, mem.stream));
    WEFT_CUDA(cudaStreamSynchronize(mem.stream));
  }
done:
  weft_device_end(&mem);
  return st;
}
