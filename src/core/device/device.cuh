/* What the CUDA code of every room uses: an arena of device memory with one exit path, translated errors, the size of
 * a chunk that fits, and uploads through pinned buffers that overlap conversion with transfer.
 *
 *   weft_status f(weft_ctx *ctx, ...) {
 *     weft_status st = WEFT_OK;
 *     double *d;                                   (declare before the first step: C++ forbids jumping over them)
 *     weft_device_arena mem = weft_device_begin(ctx);
 *     WEFT_DEVICE_TAKE(d, &mem, n);
 *     kernel<<<...>>>(d, n);
 *     WEFT_CUDA(cudaGetLastError());
 *   done:
 *     weft_device_end(&mem);                       (waits for the stream, then frees)
 *     return st;
 *   }
 *
 * All work of a call goes through one stream, `mem.stream`. */
#pragma once

#include <cuda_runtime.h>
#include "core/call/arena.h"
#include "core/call/backend.h"

struct weft_device_block;
struct weft_device_arena {
  weft_ctx *ctx;
  weft_device_block *blocks;
  cudaStream_t stream;
  weft_status opened; /* why there is no stream, when there is none */
  /* a block that joins use (join.cu), kept since devices that reach each other take memory slowly */
  void *joining;
  size_t joining_bytes;
};

weft_device_arena weft_device_begin(weft_ctx *ctx);
void weft_device_end(weft_device_arena *arena);
void *weft_device_take(weft_device_arena *arena, size_t count, size_t size);
void weft_device_drop(weft_device_arena *arena, void *block);

/* Bytes that this call may still take: what is free less a reserve, or what is left of ctx->device_limit. */
double weft_device_available(weft_ctx *ctx);
/* How many items of `bytes_each` fit beside `fixed` bytes: between 1 and `items`, or 0 with the error filled. */
size_t weft_device_chunk(weft_ctx *ctx, size_t items, double bytes_each, double fixed);

/* Whether the kernel's code, as the driver loaded it for this device, was compiled for compute capability `version` /
 * 10 or later: a newer device runs code of an older one, in which newer instructions are left out. */
bool weft_device_compiled_for(const void *kernel, int version);

/* Lets launches of the kernel ask for `bytes` of shared memory beyond what it declares. The limit belongs to the
 * process, and parts of a call launch the same kernel at the same time: it is only ever raised, to the most that the
 * device has. */
cudaError_t weft_device_allow_shared(const void *kernel, size_t bytes);

weft_status weft_device_error(weft_ctx *ctx, cudaError_t e, const char *step, const char *file, int line);

#define WEFT_CUDA(step) \
  do { \
    cudaError_t e_ = (step); \
    if (e_ != cudaSuccess) { \
      st = weft_device_error(ctx, e_, #step, __FILE__, __LINE__); \
      goto done; \
    } \
  } while (0)
#define WEFT_DEVICE_TAKE(p, arena, count) \
  do { \
    if (!((p) = (decltype(p)) weft_device_take((arena), (count), sizeof *(p)))) { \
      st = (arena)->opened != WEFT_OK ? (arena)->opened : WEFT_ERR_MEMORY; \
      goto done; \
    } \
  } while (0)

/* Writes elements first .. first+count-1 of the host data, in the device's form, to `out`. Called on the host with
 * `threads` to use; must not fail. */
typedef void (*weft_fill)(const void *data, size_t first, size_t count, void *out, int threads);
/* Copy doubles, or bytes, as they are. */
void weft_fill_doubles(const void *data, size_t first, size_t count, void *out, int threads);
void weft_fill_bytes(const void *data, size_t first, size_t count, void *out, int threads);

/* Fills device memory `out` (count × size bytes) through two pinned buffers: while one travels, the other is filled.
 * Polls between chunks. Complete in stream order; `data` may be changed when it returns. */
weft_status weft_device_upload(weft_device_arena *arena, void *out, size_t count, size_t size, weft_fill fill,
                               const void *data);

/* Takes device memory for a small array and copies it there, past the pinned buffers. `from` may be changed when it
 * returns. */
template <typename T>
static weft_status weft_device_send(weft_device_arena *arena, const T *from, size_t count, T **out)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = arena->ctx;
  T *to;
  WEFT_DEVICE_TAKE(to, arena, count);
  *out = to;
  WEFT_CUDA(cudaMemcpyAsync(to, from, count * sizeof *from, cudaMemcpyHostToDevice, arena->stream));
  WEFT_CUDA(cudaStreamSynchronize(arena->stream));
done:
  return st;
}

/* Writes `bytes` of device memory to host memory that the host may not have touched yet: through the pinned buffers,
 * from which all threads copy. Waits for what the stream was given before; polls between chunks. */
weft_status weft_device_download(weft_device_arena *arena, void *out, const void *from, size_t bytes);

/* The same for a small array, which is not worth threads or a poll. */
weft_status weft_device_fetch(weft_device_arena *arena, void *out, const void *from, size_t bytes);

/* In a part of several (exchange.h), all of which come to the same calls (join.cu). x, on each part's device, becomes
 * the sum over the parts. Returns when it is there. */
weft_status weft_device_join_add(weft_device_arena *arena, double *x, size_t count);
weft_status weft_device_join_counts(weft_device_arena *arena, unsigned long long *x, size_t count);
/* Bytes starts[r] .. starts[r + 1] - 1 of x are copied from part r. */
weft_status weft_device_join_shares(weft_device_arena *arena, void *x, const size_t *starts);

/* What the table of the back end is made of (backend.cu; backend.h says what each does). */
int weft_device_count(char *why, size_t len);
weft_status weft_device_describe(weft_ctx *ctx, int device, weft_device_info *out);

/* Whether the process has a context on the device; creates it, as far as the device can be opened. */
int weft_device_opened(int device);
void weft_device_open(int device);
weft_status weft_matrix_upload(weft_ctx *ctx, const double *x, int64_t n, int64_t p, int single,
                               weft_device_matrix *out);
weft_status weft_matrix_download(weft_ctx *ctx, const weft_device_matrix *m, double *out);
void weft_matrix_release(weft_ctx *ctx, weft_device_matrix *m);
