/* Blocks and streams that stay with the process; see kept.cuh. A block is kept as the driver gave it, in a list for
 * each device, the latest first. It serves a call that needs at least two thirds of it; the oldest go first when there
 * are too many. */
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include "core/call/arena.h"
#include "core/device/kept.cuh"

#define LARGEST_KEPT ((size_t) 32 << 20) /* bytes of a block; taking larger ones is little beside the work on them */
#define KEPT_BYTES ((size_t) 128 << 20)  /* on a device */
#define KEPT_BLOCKS 256
#define KEPT_STREAMS 16
#define GRAIN ((size_t) 512) /* what the driver rounds to */

struct kept_block {
  kept_block *next;
  void *data;
  size_t room;
  weft_memory *memory; /* the account in which it is kept */
};

static struct {
  kept_block *blocks;
  size_t bytes;
  int count, streams;
  cudaStream_t stream[KEPT_STREAMS];
} kept[WEFT_MOST_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* compute-sanitizer sees a read beyond a block, or of what nobody wrote, only where each block is the driver's own:
 * WEFT_DEVICE_KEEP=no. Twice does no harm. */
bool weft_keeps(const weft_ctx *ctx)
{
  static int said;
  if (!said) {
    const char *variable = getenv("WEFT_DEVICE_KEEP");
    said = variable && !strcmp(variable, "no") ? 2 : 1;
  }
  return said == 1 && ctx->device >= 0 && ctx->device < WEFT_MOST_DEVICES;
}

/* Takes the block behind *at out of its device's list. */
static kept_block *unlist(int device, kept_block **at)
{
  kept_block *block = *at;
  *at = block->next;
  kept[device].bytes -= block->room;
  kept[device].count--;
  weft_memory_count_kept(block->memory, -(int64_t) block->room);
  return block;
}

static void release(kept_block *block)
{
  if (cudaFree(block->data) != cudaSuccess) (void) cudaGetLastError();
  free(block);
}

static void free_blocks(int device)
{
  while (kept[device].blocks) release(unlist(device, &kept[device].blocks));
}

/* The smallest that is large enough, and not much larger. */
void *weft_kept_block(weft_ctx *ctx, size_t bytes, size_t *room)
{
  void *data = NULL;
  if (!weft_keeps(ctx)) return NULL;
  pthread_mutex_lock(&lock);
  kept_block **best = NULL;
  for (kept_block **at = &kept[ctx->device].blocks; *at; at = &(*at)->next) {
    const size_t has = (*at)->room;
    if (has >= bytes && has <= bytes + bytes / 2 + GRAIN && (!best || has < (*best)->room)) best = at;
  }
  if (best) {
    kept_block *block = unlist(ctx->device, best);
    data = block->data;
    *room = block->room;
    free(block);
  }
  pthread_mutex_unlock(&lock);
  return data;
}

/* Where the driver has no memory, what is kept goes back, and it is asked once more. */
void *weft_new_block(weft_ctx *ctx, size_t bytes, size_t *room)
{
  void *data = NULL;
  *room = weft_keeps(ctx) ? (bytes + GRAIN) / GRAIN * GRAIN : bytes ? bytes : 1;
  cudaError_t error = cudaMalloc(&data, *room);
  if (error != cudaSuccess && weft_kept_bytes(ctx) > 0) {
    (void) cudaGetLastError();
    weft_kept_free(ctx);
    error = cudaMalloc(&data, *room);
  }
  weft_memory_count_made(ctx->memory);
  if (error == cudaSuccess) return data;
  (void) cudaGetLastError();
  return NULL;
}

/* To the front of its device's list; frees from the end what is then too much. A large block, one of a call that failed
 * or whose memory is limited, is freed at once. */
void weft_keep_block(weft_ctx *ctx, void *data, size_t room, bool sound)
{
  kept_block *block = NULL;
  if (sound && weft_keeps(ctx) && room <= LARGEST_KEPT && !(ctx->device_limit > 0))
    block = (kept_block *) malloc(sizeof *block);
  if (!block) {
    if (cudaFree(data) != cudaSuccess) (void) cudaGetLastError();
    return;
  }
  pthread_mutex_lock(&lock);
  auto &own = kept[ctx->device];
  *block = { own.blocks, data, room, ctx->memory };
  own.blocks = block;
  own.bytes += room;
  own.count++;
  weft_memory_count_kept(ctx->memory, (int64_t) room);
  while (own.bytes > KEPT_BYTES || own.count > KEPT_BLOCKS) {
    kept_block **last = &own.blocks;
    while ((*last)->next) last = &(*last)->next;
    release(unlist(ctx->device, last));
  }
  pthread_mutex_unlock(&lock);
}

double weft_kept_bytes(const weft_ctx *ctx)
{
  if (!weft_keeps(ctx)) return 0;
  pthread_mutex_lock(&lock);
  const double bytes = (double) kept[ctx->device].bytes;
  pthread_mutex_unlock(&lock);
  return bytes;
}

void weft_kept_free(const weft_ctx *ctx)
{
  if (!weft_keeps(ctx)) return;
  pthread_mutex_lock(&lock);
  free_blocks(ctx->device);
  pthread_mutex_unlock(&lock);
}

void weft_kept_free_all(void)
{
  pthread_mutex_lock(&lock);
  for (int device = 0; device < WEFT_MOST_DEVICES; device++) free_blocks(device);
  pthread_mutex_unlock(&lock);
}

cudaError_t weft_kept_stream(weft_ctx *ctx, cudaStream_t *out)
{
  *out = NULL;
  if (weft_keeps(ctx)) {
    pthread_mutex_lock(&lock);
    auto &own = kept[ctx->device];
    if (own.streams) *out = own.stream[--own.streams];
    pthread_mutex_unlock(&lock);
  }
  if (*out) return cudaSuccess;
  weft_memory_count_made(ctx->memory);
  return cudaStreamCreateWithFlags(out, cudaStreamNonBlocking);
}

void weft_keep_stream(weft_ctx *ctx, cudaStream_t stream, bool sound)
{
  bool stays = false;
  if (sound && weft_keeps(ctx)) {
    pthread_mutex_lock(&lock);
    auto &own = kept[ctx->device];
    stays = own.streams < KEPT_STREAMS;
    if (stays) own.stream[own.streams++] = stream;
    pthread_mutex_unlock(&lock);
  }
  if (!stays && cudaStreamDestroy(stream) != cudaSuccess) (void) cudaGetLastError();
}
