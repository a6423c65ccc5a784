/* Device memory, errors, uploads and resident matrices; see device.cuh. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cmath>
#include "core/device/device.cuh"
#include "core/device/kept.cuh"
#include "core/call/parallel.h"

#ifndef WEFT_BUILT_FOR
#  define WEFT_BUILT_FOR "unknown"
#endif

/* ---- errors ---- */

weft_status weft_device_error(weft_ctx *ctx, cudaError_t error, const char *step, const char *file, int line)
{
  (void) cudaGetLastError();
  const char *name = strrchr(file, '/');
  if (error == cudaErrorMemoryAllocation)
    return weft_fail(ctx, WEFT_ERR_MEMORY, "Not enough device memory (%s).", step);
  if (error == cudaErrorNoKernelImageForDevice)
    return weft_fail(ctx, WEFT_ERR_DEVICE,
                     "weft was built for compute capabilities %s, not for this device; install it "
                     "again with WEFT_CUDA_ARCH set.",
                     WEFT_BUILT_FOR);
  return weft_fail(ctx, WEFT_ERR_DEVICE, "CUDA: %s (%s:%d, %s)", cudaGetErrorString(error), name ? name + 1 : file,
                   line, step);
}

int weft_device_count(char *why, size_t len)
{
  int n = 0, driver = 0;
  cudaError_t error = cudaGetDeviceCount(&n);
  if (error == cudaSuccess && n > 0) return n;
  (void) cudaGetLastError();
  (void) cudaDriverGetVersion(&driver);
  if (driver == 0) /* the runtime would say "driver version is insufficient" */
    snprintf(why, len, "no NVIDIA driver is installed on this machine");
  else if (error == cudaErrorNoDevice || error == cudaSuccess)
    snprintf(why, len, "no CUDA device is visible (CUDA_VISIBLE_DEVICES?)");
  else
    snprintf(why, len, "%s (runtime %d, driver for up to %d)", cudaGetErrorString(error), CUDART_VERSION, driver);
  return 0;
}

/* Devices on which this process has a context. */
static unsigned char open_devices[WEFT_MOST_DEVICES];

static void note_open(int device)
{
  if (device < WEFT_MOST_DEVICES) __atomic_store_n(&open_devices[device], 1, __ATOMIC_RELEASE);
}

int weft_device_opened(int device)
{
  return device < WEFT_MOST_DEVICES && __atomic_load_n(&open_devices[device], __ATOMIC_ACQUIRE);
}

void weft_device_open(int device)
{
  if (cudaSetDevice(device) == cudaSuccess && cudaFree(NULL) == cudaSuccess) note_open(device);
  (void) cudaGetLastError();
}

bool weft_device_compiled_for(const void *kernel, int version)
{
  cudaFuncAttributes a;
  if (cudaFuncGetAttributes(&a, kernel) == cudaSuccess) return a.ptxVersion >= version;
  (void) cudaGetLastError();
  return false;
}

/* What has been allowed, a bit per device: asking the driver takes microseconds, and a search over triples launches
 * once per feature. For a kernel that finds no room in the table, the driver is asked each time. */
static struct {
  const void *kernel;
  uint64_t devices;
} allowed[512];

static uint64_t *allowed_on(const void *kernel)
{
  const size_t room = sizeof allowed / sizeof *allowed, start = (uintptr_t) kernel / 16 % room;
  for (size_t k = 0; k < room; k++) {
    auto *slot = &allowed[(start + k) % room];
    const void *there = NULL;
    if (__atomic_compare_exchange_n(&slot->kernel, &there, kernel, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
        there == kernel)
      return &slot->devices;
  }
  return NULL;
}

/* Lets a kernel on the current device take as much dynamic shared memory as there is, where more than 48 KB are needed.
 * Remembers which devices have been told, since asking takes microseconds. */
cudaError_t weft_device_allow_shared(const void *kernel, size_t bytes)
{
  cudaFuncAttributes a;
  int device, most;
  uint64_t *devices = allowed_on(kernel);
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  if (devices && device < WEFT_MOST_DEVICES && __atomic_load_n(devices, __ATOMIC_ACQUIRE) >> device & 1) return error;
  if ((error = cudaFuncGetAttributes(&a, kernel)) != cudaSuccess || bytes + a.sharedSizeBytes <= 48 << 10) return error;
  if ((error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device)) != cudaSuccess)
    return error;
  error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most - (int) a.sharedSizeBytes);
  if (error == cudaSuccess && devices && device < WEFT_MOST_DEVICES)
    __atomic_fetch_or(devices, (uint64_t) 1 << device, __ATOMIC_RELEASE);
  return error;
}

/* Opens the device, if need be, and fills `out`: name, compute capability, multiprocessors, memory in bytes,
 * versions. */
weft_status weft_device_describe(weft_ctx *ctx, int device, weft_device_info *out)
{
  weft_status st = WEFT_OK;
  cudaDeviceProp p;
  size_t available, total;
  memset(out, 0, sizeof *out);
  WEFT_CUDA(cudaGetDeviceProperties(&p, device));
  WEFT_CUDA(cudaSetDevice(device));
  WEFT_CUDA(cudaMemGetInfo(&available, &total));
  note_open(device);
  WEFT_CUDA(cudaDriverGetVersion(&out->driver));
  WEFT_CUDA(cudaRuntimeGetVersion(&out->runtime));
  snprintf(out->name, sizeof out->name, "%.127s", p.name);
  snprintf(out->architectures, sizeof out->architectures, "%s", WEFT_BUILT_FOR);
  out->major = p.major;
  out->minor = p.minor;
  out->processors = p.multiProcessorCount;
  out->total = (double) total;
  out->available = (double) available;
done:
  return st;
}

/* ---- memory ---- */

#define LITTLE_BLOCK 1e6 /* bytes for which the device need not be asked what is free */

struct weft_device_block {
  weft_device_block *next;
  void *data;
  size_t bytes, room; /* asked for, and there */
};

weft_device_arena weft_device_begin(weft_ctx *ctx)
{
  weft_device_arena arena = { ctx, NULL, NULL, WEFT_OK, NULL, 0 };
  cudaError_t error = cudaSetDevice(ctx->device);
  if (error == cudaSuccess) error = weft_kept_stream(ctx, &arena.stream);
  if (ctx->device_limit > 0) weft_kept_free(ctx); /* what is kept is not within the limit */
  if (error != cudaSuccess)
    arena.opened = weft_device_error(ctx, error, "opening the device", __FILE__, __LINE__);
  else
    note_open(ctx->device);
  return arena;
}

/* Takes the block behind *at out of the arena, when no work uses it any more. */
static void end_block(weft_device_arena *arena, weft_device_block **at, bool sound)
{
  weft_device_block *block = *at;
  *at = block->next;
  weft_memory_count_device(arena->ctx->memory, arena->ctx->device, -(int64_t) block->bytes);
  weft_keep_block(arena->ctx, block->data, block->room, sound);
  free(block);
}

static bool stream_ended(const weft_device_arena *arena)
{
  return !arena->stream || cudaStreamSynchronize(arena->stream) == cudaSuccess;
}

void weft_device_end(weft_device_arena *arena)
{
  const bool sound = stream_ended(arena);
  while (arena->blocks) end_block(arena, &arena->blocks, sound);
  if (arena->stream) weft_keep_stream(arena->ctx, arena->stream, sound);
  arena->stream = NULL;
}

/* Bytes that may still be taken on the context's device: what is free, or kept and unused, less a reserve, within what
 * is left of the user's limit; 0 where the device does not answer. */
double weft_device_available(weft_ctx *ctx)
{
  size_t available = 0, total = 0;
  if (cudaMemGetInfo(&available, &total) != cudaSuccess) {
    (void) cudaGetLastError();
    return 0;
  }
  const double reserve = 64e6; /* kernels' local memory and cuBLAS workspaces come on top of what is asked for */
  const double unused = (double) available + weft_kept_bytes(ctx);
  double have = unused > reserve ? unused - reserve : 0;
  if (ctx->device_limit > 0) {
    const int device = ctx->device < WEFT_MOST_DEVICES ? ctx->device : WEFT_MOST_DEVICES - 1;
    double left = ctx->device_limit - (double) __atomic_load_n(&ctx->memory->device_on[device], __ATOMIC_RELAXED);
    have = fmin(have, left > 0 ? left : 0);
  }
  return have;
}

size_t weft_device_chunk(weft_ctx *ctx, size_t items, double bytes_each, double fixed)
{
  double have = weft_device_available(ctx), fit = (have - fixed) / bytes_each;
  if (fit < 1) {
    weft_fail_memory(ctx, "device", fixed + bytes_each, have, "the smallest chunk");
    return 0;
  }
  return fit < (double) items ? (size_t) fit : items;
}

/* A block that the driver is asked for, where there is room for it. What is kept must not take the reserve. */
static void *take_new(weft_ctx *ctx, double need, size_t bytes, size_t *room)
{
  /* to ask takes longer than small calls' work */
  if (need > LITTLE_BLOCK || ctx->device_limit > 0) {
    const double have = weft_device_available(ctx);
    if (need > have) return NULL;
    if (need > have - weft_kept_bytes(ctx)) weft_kept_free(ctx);
  }
  return weft_new_block(ctx, bytes, room);
}

/* `count` items of `size` bytes on the device, owned by the arena and counted in the call's account. NULL, with the
 * message set, where they exceed what is available. */
void *weft_device_take(weft_device_arena *arena, size_t count, size_t size)
{
  weft_ctx *ctx = arena->ctx;
  if (arena->opened != WEFT_OK) return NULL;
  const size_t bytes = count * size;
  const double need = (double) count * (double) size;
  weft_device_block *block = weft_memory_ask(ctx->memory) ? NULL : (weft_device_block *) malloc(sizeof *block);
  if (block) {
    block->data = ctx->device_limit > 0 ? NULL : weft_kept_block(ctx, bytes, &block->room);
    if (!block->data) block->data = take_new(ctx, need, bytes, &block->room);
  }
  if (!block || !block->data) {
    free(block);
    weft_fail_memory(ctx, "device", need, weft_device_available(ctx), "");
    return NULL;
  }
  block->bytes = bytes;
  block->next = arena->blocks;
  arena->blocks = block;
  weft_memory_count_device(ctx->memory, ctx->device, (int64_t) block->bytes);
  return block->data;
}

void weft_device_drop(weft_device_arena *arena, void *block)
{
  for (weft_device_block **p = &arena->blocks; *p; p = &(*p)->next) {
    if ((*p)->data != block) continue;
    end_block(arena, p, stream_ended(arena));
    return;
  }
}

/* ---- uploads and downloads through pinned buffers ---- */

#define STAGING_BYTES ((size_t) 32 << 20)
#define LITTLE_STAGING ((size_t) 1 << 20)

/* A pair for each host thread of a call, of STAGING_BYTES from the first transfer on that needs them: pinning these
 * takes some 20 ms. Pinned memory serves all devices; an event belongs to one. */
struct staging {
  void *buffer[2];
  size_t bytes; /* of each */
  cudaEvent_t sent[2];
  int device;
};
static struct staging staging_of[WEFT_MOST_DEVICES + 1];

static void forget_events(struct staging *s)
{
  for (int i = 0; i < 2; i++) {
    if (s->sent[i]) {
      cudaEventSynchronize(s->sent[i]);
      cudaEventDestroy(s->sent[i]);
    }
    s->sent[i] = NULL;
  }
}

static void forget(struct staging *s)
{
  forget_events(s);
  for (int i = 0; i < 2; i++) {
    if (s->buffer[i]) cudaFreeHost(s->buffer[i]);
    s->buffer[i] = NULL;
  }
  s->bytes = 0;
}

/* Buffers for a transfer of `bytes`. */
static weft_status open_staging(weft_ctx *ctx, struct staging *s, size_t bytes)
{
  weft_status st = WEFT_OK;
  const size_t wanted = bytes <= LITTLE_STAGING ? LITTLE_STAGING : STAGING_BYTES;
  if (s->device != ctx->device) forget_events(s);
  if (s->bytes && s->bytes < wanted) forget(s);
  s->device = ctx->device;
  s->bytes = s->bytes ? s->bytes : wanted;
  for (int i = 0; i < 2; i++) {
    if (!s->buffer[i]) WEFT_CUDA(cudaMallocHost(&s->buffer[i], s->bytes));
    if (!s->sent[i]) WEFT_CUDA(cudaEventCreateWithFlags(&s->sent[i], cudaEventDisableTiming));
  }
done:
  if (st != WEFT_OK) forget(s);
  return st;
}

void weft_fill_bytes(const void *data, size_t first, size_t count, void *out, int threads)
{
  const size_t parts = (size_t) weft_threads_worth(threads, (double) count / 8), block = (count + parts - 1) / parts;
  WEFT_PARALLEL((int) parts)
  WEFT_FOR(static)
  for (int64_t k = 0; k < (int64_t) parts; k++) {
    const size_t a = (size_t) k * block, b = a + block < count ? a + block : count;
    if (a < b) memcpy((char *) out + a, (const char *) data + first + a, b - a);
  }
}

void weft_fill_doubles(const void *data, size_t first, size_t count, void *out, int threads)
{
  weft_fill_bytes(data, first * sizeof(double), count * sizeof(double), out, threads);
}

/* Sends `count` items of `size` bytes, which `fill` writes into two pinned buffers in turn: one is filled by the
 * host's threads while the other travels. Ends before the last one has arrived; later work on the arena's stream
 * waits for it. */
weft_status weft_device_upload(weft_device_arena *arena, void *out, size_t count, size_t size, weft_fill fill,
                               const void *data)
{
  weft_status st = arena->opened;
  weft_ctx *ctx = arena->ctx;
  const size_t per_chunk = (count * size <= LITTLE_STAGING ? LITTLE_STAGING : STAGING_BYTES) / size;
  struct staging &staging = staging_of[ctx->lane];
  size_t first = 0;
  if (st != WEFT_OK) return st;
  if (!per_chunk) return weft_fail_memory(ctx, "device", (double) size, (double) STAGING_BYTES, "a single row");
  WEFT_TRY(open_staging(ctx, &staging, count * size));
  for (int turn = 0; first < count; turn ^= 1) {
    size_t now = count - first < per_chunk ? count - first : per_chunk;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) count));
    WEFT_CUDA(cudaEventSynchronize(staging.sent[turn]));
    fill(data, first, now, staging.buffer[turn], weft_threads_worth(ctx->threads, (double) (now * size) / 4));
    WEFT_CUDA(cudaMemcpyAsync((char *) out + first * size, staging.buffer[turn], now * size, cudaMemcpyHostToDevice,
                              arena->stream));
    WEFT_CUDA(cudaEventRecord(staging.sent[turn], arena->stream));
    first += now;
  }
done:
  return st;
}

/* Fetches `bytes` through two pinned buffers in turn, one copied by the host's threads while the other is filled;
 * everything is there at the end. */
weft_status weft_device_download(weft_device_arena *arena, void *out, const void *from, size_t bytes)
{
  weft_status st = arena->opened;
  weft_ctx *ctx = arena->ctx;
  const size_t chunks = (bytes + STAGING_BYTES - 1) / STAGING_BYTES;
  struct staging &staging = staging_of[ctx->lane];
  if (st != WEFT_OK) return st;
  WEFT_TRY(open_staging(ctx, &staging, bytes));
  for (size_t k = 0; k < chunks + 1; k++) { /* chunk k travels while chunk k - 1 is copied */
    WEFT_TRY(weft_poll(ctx, (double) k, (double) chunks));
    if (k < chunks) {
      const size_t first = k * STAGING_BYTES, now = bytes - first < STAGING_BYTES ? bytes - first : STAGING_BYTES;
      WEFT_CUDA(cudaEventSynchronize(staging.sent[k % 2]));
      WEFT_CUDA(cudaMemcpyAsync(staging.buffer[k % 2], (const char *) from + first, now, cudaMemcpyDeviceToHost,
                                arena->stream));
      WEFT_CUDA(cudaEventRecord(staging.sent[k % 2], arena->stream));
    }
    if (k > 0) {
      const size_t first = (k - 1) * STAGING_BYTES, now = bytes - first < STAGING_BYTES ? bytes - first : STAGING_BYTES;
      WEFT_CUDA(cudaEventSynchronize(staging.sent[(k - 1) % 2]));
      weft_fill_bytes(staging.buffer[(k - 1) % 2], 0, now, (char *) out + first, ctx->threads);
    }
  }
done:
  return st;
}

/* The driver's own copy to memory that is not pinned takes twice as long. */
weft_status weft_device_fetch(weft_device_arena *arena, void *out, const void *from, size_t bytes)
{
  weft_status st = arena->opened;
  weft_ctx *ctx = arena->ctx;
  struct staging &staging = staging_of[ctx->lane];
  void *to = out;
  if (st != WEFT_OK) return st;
  if (bytes <= LITTLE_STAGING) {
    WEFT_TRY(open_staging(ctx, &staging, bytes));
    WEFT_CUDA(cudaEventSynchronize(staging.sent[0])); /* an upload may be under way */
    to = staging.buffer[0];
  }
  WEFT_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, arena->stream));
  WEFT_CUDA(cudaStreamSynchronize(arena->stream));
  if (to != out) memcpy(out, to, bytes);
done:
  return st;
}

/* ---- resident matrices ---- */

static void fill_float(const void *data, size_t first, size_t count, void *out, int threads)
{
  const double *x = (const double *) data + first;
  float *y = (float *) out;
  WEFT_PARALLEL(threads)
  WEFT_FOR(static)
  for (int64_t i = 0; i < (int64_t) count; i++) y[i] = (float) x[i];
}

void weft_matrix_release(weft_ctx *ctx, weft_device_matrix *matrix)
{
  if (!matrix->data) return;
  int before = 0;
  cudaGetDevice(&before);
  cudaSetDevice(matrix->device);
  cudaFree(matrix->data);
  cudaSetDevice(before);
  weft_memory_count_device(ctx->memory, matrix->device, -(int64_t) (matrix->n * matrix->p * (matrix->single ? 4 : 8)));
  matrix->data = NULL;
}

/* Puts an n × p matrix of doubles on the device, as floats where `single`. It outlives the call: the block leaves the
 * arena and belongs to *out, whose owner frees it; the account goes on counting it. */
weft_status weft_matrix_upload(weft_ctx *ctx, const double *x, int64_t n, int64_t p, int single,
                               weft_device_matrix *out)
{
  weft_status st = WEFT_OK;
  const size_t count = (size_t) n * (size_t) p, size = single ? sizeof(float) : sizeof(double);
  weft_device_arena mem = weft_device_begin(ctx);
  weft_device_matrix m = { NULL, n, p, ctx->device, single };
  char *data;
  data = (char *) weft_device_take(&mem, count, size);
  if (!data) {
    st = mem.opened != WEFT_OK ? mem.opened : WEFT_ERR_MEMORY;
    goto done;
  }
  WEFT_TRY(weft_device_upload(&mem, data, count, size, single ? fill_float : weft_fill_doubles, x));
  WEFT_CUDA(cudaStreamSynchronize(mem.stream));
  /* from the call's arena to the handle: the account goes on counting it */
  m.data = data;
  for (weft_device_block **b = &mem.blocks; *b; b = &(*b)->next)
    if ((*b)->data == data) {
      weft_device_block *own = *b;
      *b = own->next;
      free(own);
      break;
    }
  *out = m;
done:
  weft_device_end(&mem);
  return st;
}

/* The matrix as doubles in `out`, 2^22 numbers between two polls; floats come through a part of host memory. */
weft_status weft_matrix_download(weft_ctx *ctx, const weft_device_matrix *matrix, double *out)
{
  weft_status st = WEFT_OK;
  const size_t count = (size_t) matrix->n * (size_t) matrix->p, step = (size_t) 1 << 22;
  weft_arena mem = weft_arena_begin(ctx);
  float *part = NULL;
  WEFT_CUDA(cudaSetDevice(matrix->device));
  if (matrix->single) WEFT_TAKE(part, &mem, count < step ? count : step);
  for (size_t first = 0; first < count; first += step) {
    size_t now = count - first < step ? count - first : step;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) count));
    if (matrix->single) {
      WEFT_CUDA(cudaMemcpy(part, (const float *) matrix->data + first, now * sizeof *part, cudaMemcpyDeviceToHost));
      for (size_t i = 0; i < now; i++) out[first + i] = part[i];
    } else {
      WEFT_CUDA(
          cudaMemcpy(out + first, (const double *) matrix->data + first, now * sizeof *out, cudaMemcpyDeviceToHost));
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}
