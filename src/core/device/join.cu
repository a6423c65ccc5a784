/* What parts on several devices exchange (exchange.h), by copies from device to device: sums and shares of vectors of
 * which each part has its own. Sums are added in the order of the parts, so that all parts get the same bits, whatever
 * the connection.
 *
 * A sum goes in two steps, as every number travels twice at most then: each part adds up its own slice of all parts'
 * vectors in place, then takes the others' slices from them. */
#include "core/device/device.cuh"
#include "core/together/exchange.h"
#include "core/together/spread.h"

/* Lets this thread's device read another's memory without a detour through the host, where that is possible. */
static void reach(int from, int to)
{
  static unsigned char tried[WEFT_MOST_DEVICES][WEFT_MOST_DEVICES]; /* a row is its device's; twice does no harm */
  int can = 0;
  if (from == to || from >= WEFT_MOST_DEVICES || to >= WEFT_MOST_DEVICES || tried[from][to]) return;
  tried[from][to] = 1;
  if (cudaDeviceCanAccessPeer(&can, from, to) == cudaSuccess && can) cudaDeviceEnablePeerAccess(to, 0);
  (void) cudaGetLastError();
}

/* Copies `bytes` of what part r shows, from byte `at` on, in stream order. */
static weft_status copy_shown(weft_device_arena *arena, int part, void *to, size_t at, size_t bytes)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = arena->ctx;
  const weft_meeting *m = ctx->meeting;
  if (!bytes) return st;
  reach(ctx->device, m->device[part]);
  if (m->device[part] == ctx->device)
    WEFT_CUDA(cudaMemcpyAsync(to, (const char *) m->shown[part] + at, bytes, cudaMemcpyDeviceToDevice, arena->stream));
  else
    WEFT_CUDA(cudaMemcpyPeerAsync(to, ctx->device, (const char *) m->shown[part] + at, m->device[part], bytes,
                                  arena->stream));
done:
  return st;
}

/* Waits for the stream, then until the others have read. */
static weft_status end_looking(weft_device_arena *arena, weft_status st)
{
  weft_ctx *ctx = arena->ctx;
  const cudaError_t e = cudaStreamSynchronize(arena->stream);
  if (st == WEFT_OK && e != cudaSuccess) st = weft_device_error(ctx, e, "joining", __FILE__, __LINE__);
  return weft_meet_end(ctx, st);
}

/* x[i] = the sum over the parts; others: `count` numbers of each other part, part after part. */
template <typename T> __global__ void add_parts(T *x, const T *others, size_t count, int parts, int own)
{
  for (size_t i = blockIdx.x * (size_t) blockDim.x + threadIdx.x; i < count; i += (size_t) gridDim.x * blockDim.x) {
    T sum = 0;
    for (int part = 0; part < parts; part++)
      sum += part == own ? x[i] : others[(size_t) (part - (part > own)) * count + i];
    x[i] = sum;
  }
}

#define KEPT_BYTES ((size_t) 64 << 20)

static void drop_joining(weft_device_arena *arena)
{
  if (arena->joining) weft_device_drop(arena, arena->joining);
  arena->joining = NULL;
  arena->joining_bytes = 0;
}

/* Room for others' slices; small ones stay for the next join. */
static weft_status take_joining(weft_device_arena *arena, size_t bytes)
{
  weft_status st = WEFT_OK;
  if (bytes <= arena->joining_bytes) return st;
  drop_joining(arena);
  char *block;
  WEFT_DEVICE_TAKE(block, arena, bytes);
  arena->joining = block;
  arena->joining_bytes = bytes;
done:
  return st;
}

/* x becomes the sum over the parts of a call, in the order of the parts, the same bits on all. Each part adds up its
 * own slice of all the others', then everybody fetches the finished slices; between the steps all meet. Fails where
 * another part has stopped. */
template <typename T> static weft_status add(weft_device_arena *arena, T *x, size_t count)
{
  weft_status st = arena->opened;
  weft_ctx *ctx = arena->ctx;
  const int parts = ctx->meeting->parts, own = ctx->part;
  const size_t first = weft_share_start(count, own, parts), slice = weft_share_start(count, own + 1, parts) - first;
  T *others;
  if (st != WEFT_OK) return st;
  WEFT_TRY(take_joining(arena, slice * (size_t) (parts - 1) * sizeof(T)));
  others = (T *) arena->joining;
  WEFT_CUDA(cudaStreamSynchronize(arena->stream));

  WEFT_TRY(weft_meet(ctx, x));
  for (int part = 0; part < parts && st == WEFT_OK; part++)
    if (part != own)
      st = copy_shown(arena, part, others + (size_t) (part - (part > own)) * slice, first * sizeof(T),
                      slice * sizeof(T));
  if (st == WEFT_OK && slice) {
    const unsigned blocks = (unsigned) (slice < 256 * 1024 ? (slice + 255) / 256 : 1024);
    add_parts<<<blocks, 256, 0, arena->stream>>>(x + first, others, slice, parts, own);
    const cudaError_t e = cudaGetLastError();
    if (e != cudaSuccess) st = weft_device_error(ctx, e, "adding", __FILE__, __LINE__);
  }
  WEFT_TRY(end_looking(arena, st));

  WEFT_TRY(weft_meet(ctx, x));
  for (int part = 0; part < parts && st == WEFT_OK; part++) {
    const size_t from = weft_share_start(count, part, parts), until = weft_share_start(count, part + 1, parts);
    if (part != own) st = copy_shown(arena, part, x + from, from * sizeof(T), (until - from) * sizeof(T));
  }
  WEFT_TRY(end_looking(arena, st));
done:
  if (arena->joining_bytes > KEPT_BYTES) drop_joining(arena);
  return st;
}

weft_status weft_device_join_add(weft_device_arena *arena, double *x, size_t count) { return add(arena, x, count); }

weft_status weft_device_join_counts(weft_device_arena *arena, unsigned long long *x, size_t count)
{
  return add(arena, x, count);
}

weft_status weft_device_join_shares(weft_device_arena *arena, void *x, const size_t *starts)
{
  weft_status st = arena->opened;
  weft_ctx *ctx = arena->ctx;
  if (st != WEFT_OK) return st;
  WEFT_CUDA(cudaStreamSynchronize(arena->stream));
  WEFT_TRY(weft_meet(ctx, x));
  for (int part = 0; part < ctx->meeting->parts && st == WEFT_OK; part++)
    if (part != ctx->part)
      st = copy_shown(arena, part, (char *) x + starts[part], starts[part], starts[part + 1] - starts[part]);
  st = end_looking(arena, st);
done:
  return st;
}
