/* Where the words of all subsets are; see subsets.cuh. */
#include <cmath>
#include <cstring>
#include "bn/cuda/exact/subsets.cuh"

#define WORK_BYTES 6e9  /* left free for the work itself, on the device that does it */
#define OTHER_BYTES 1e9 /* on other devices */

/* How many parts of `bytes` a device has room for, with `reserve` left free; of little memory at least three
 * quarters. */
static int room_for(weft_ctx *ctx, double bytes, double reserve)
{
  const double have = weft_device_available(ctx);
  return (int) fmin((have - fmin(reserve, have / 4)) / bytes, WEFT_BN_SUBSET_PARTS);
}

/* Lets the work's device use another one's memory; 0 where it cannot. */
static int reaches(int from, int to)
{
  int can = 0;
  if (cudaDeviceCanAccessPeer(&can, from, to) != cudaSuccess) can = 0;
  if (can) {
    const cudaError_t error = cudaDeviceEnablePeerAccess(to, 0);
    can = error == cudaSuccess || error == cudaErrorPeerAccessAlreadyEnabled;
  }
  (void) cudaGetLastError();
  return can;
}

/* Parts of `words` words on the other devices of the call, from number *have on. The work's device is current again
 * afterwards. */
static weft_status take_on_others(weft_ctx *ctx, weft_bn_subset_store *out, size_t words, int *have)
{
  weft_status st = WEFT_OK;
  WEFT_TAKE(out->others, &out->host, (size_t) ctx->device_count);
  WEFT_TAKE(out->arenas, &out->host, (size_t) ctx->device_count);
  for (int k = 0; k < ctx->device_count && *have < WEFT_BN_SUBSET_PARTS; k++) {
    int taken = ctx->devices[k] == ctx->device;
    for (int other = 0; other < out->other_count; other++) taken |= out->others[other].device == ctx->devices[k];
    if (taken || !reaches(ctx->device, ctx->devices[k])) continue;
    weft_ctx *other = &out->others[out->other_count];
    weft_device_arena *arena = &out->arenas[out->other_count++];
    *other = *ctx;
    other->device = ctx->devices[k];
    *arena = weft_device_begin(other);
    st = arena->opened;
    const int room = st == WEFT_OK ? room_for(other, 8.0 * (double) words, OTHER_BYTES) : 0;
    for (int part = 0; part < room && *have < WEFT_BN_SUBSET_PARTS && st == WEFT_OK; part++) {
      uint64_t *block = (uint64_t *) weft_device_take(arena, words, sizeof *block);
      if (block)
        out->subsets.part[(*have)++] = block;
      else
        st = WEFT_ERR_MEMORY;
    }
    if (st != WEFT_OK) memcpy(ctx->message, other->message, sizeof ctx->message);
    WEFT_CUDA(cudaSetDevice(ctx->device));
    if (st != WEFT_OK) break;
    WEFT_TRY(weft_poll(ctx, 0, 1));
  }
done:
  return st;
}

/* The remaining parts in the host's memory. */
static weft_status take_on_host(weft_ctx *ctx, weft_bn_subset_store *out, size_t words, int have)
{
  weft_status st = WEFT_OK;
  for (; have < WEFT_BN_SUBSET_PARTS; have++) {
    uint64_t *block;
    void *seen;
    WEFT_TAKE(block, &out->host, words);
    WEFT_CUDA(cudaHostRegister(block, words * sizeof *block, cudaHostRegisterMapped));
    out->pinned[out->pinned_count++] = block;
    WEFT_CUDA(cudaHostGetDevicePointer(&seen, block, 0));
    out->subsets.part[have] = (uint64_t *) seen;
    WEFT_TRY(weft_poll(ctx, 0, 1));
  }
done:
  return st;
}

/* Takes parts from this device while there is room, then from the other devices, then from the host's pinned memory. */
weft_status weft_bn_subsets_take(weft_device_arena *mem, int p, weft_bn_subset_store *out)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = mem->ctx;
  const double bytes = ldexp(8, p), have = weft_device_available(ctx);
  memset(out, 0, sizeof *out);
  out->mem = mem;
  out->host = weft_arena_begin(ctx);
  out->subsets.part_bits = p;
  if (p < WEFT_BN_SUBSET_PART_BITS + 6 || bytes <= have - fmin(OTHER_BYTES, have / 4)) {
    uint64_t *whole;
    WEFT_DEVICE_TAKE(whole, mem, (size_t) 1 << p);
    out->subsets.part[0] = whole;
  } else {
    const size_t words = ((size_t) 1 << p) / WEFT_BN_SUBSET_PARTS;
    const int room = room_for(ctx, 8.0 * (double) words, WORK_BYTES);
    int part = 0;
    out->subsets.part_bits = p - 6;
    for (; part < room; part++) {
      uint64_t *block;
      WEFT_DEVICE_TAKE(block, mem, words);
      out->subsets.part[part] = block;
    }
    WEFT_TRY(take_on_others(ctx, out, words, &part));
    WEFT_TRY(take_on_host(ctx, out, words, part));
  }
done:
  return st;
}

void weft_bn_subsets_end(weft_bn_subset_store *store)
{
  if (!store->mem) return;
  if (store->mem->stream) cudaStreamSynchronize(store->mem->stream);
  for (int k = 0; k < store->pinned_count; k++) cudaHostUnregister(store->pinned[k]);
  for (int k = 0; k < store->other_count; k++) {
    cudaSetDevice(store->others[k].device);
    weft_device_end(&store->arenas[k]);
  }
  if (store->other_count) cudaSetDevice(store->mem->ctx->device);
  (void) cudaGetLastError();
  weft_arena_end(&store->host);
}
