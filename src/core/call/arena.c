/* Host blocks in a doubly linked list; see arena.h. */
/* Build: shared. */
#ifndef _POSIX_C_SOURCE
#  define _POSIX_C_SOURCE 200809L
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef _WIN32
#  include <sys/resource.h>
#endif
#include "core/call/arena.h"

/* 64 bytes, so that the data behind a 64-byte aligned header are aligned too. */
struct weft_block {
  weft_block *next, *previous;
  size_t bytes;
  void *origin;
  char pad[64 - 4 * sizeof(void *)];
};

/* A block of at least this size is compared with the machine's free memory before it is requested. */
#define LARGE_BLOCK ((size_t) 64 << 20)

static void account(int64_t *live, int64_t *peak, int64_t bytes)
{
  int64_t now = __atomic_add_fetch(live, bytes, __ATOMIC_RELAXED);
  int64_t most = __atomic_load_n(peak, __ATOMIC_RELAXED);
  while (now > most && !__atomic_compare_exchange_n(peak, &most, now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

void weft_memory_count_host(weft_memory *m, int64_t bytes) { account(&m->host_live, &m->host_peak, bytes); }
void weft_memory_count_device(weft_memory *m, int device, int64_t bytes)
{
  if (device >= 0 && device < WEFT_MOST_DEVICES) __atomic_add_fetch(&m->device_on[device], bytes, __ATOMIC_RELAXED);
  account(&m->device_live, &m->device_peak, bytes);
}

void weft_memory_count_kept(weft_memory *m, int64_t bytes)
{
  if (m) __atomic_add_fetch(&m->device_kept, bytes, __ATOMIC_RELAXED);
}

void weft_memory_count_made(weft_memory *m)
{
  if (m) __atomic_add_fetch(&m->made, 1, __ATOMIC_RELAXED);
}

int weft_memory_ask(weft_memory *m)
{
  int64_t k = __atomic_add_fetch(&m->allocations, 1, __ATOMIC_RELAXED);
  return m->fail_at > 0 ? k == m->fail_at : m->fail_at < 0 && k == -m->fail_at;
}

weft_arena weft_arena_begin(weft_ctx *ctx)
{
  weft_arena arena = { ctx, NULL };
  return arena;
}

/* `count` items of `size` bytes on a 64-byte boundary, owned by the arena and counted in the call's account. NULL, with
 * the message set, where memory is short: large blocks are refused before malloc() is asked, since Linux would grant
 * them and kill the process later. */
void *weft_arena_take(weft_arena *arena, size_t count, size_t size)
{
  weft_ctx *ctx = arena->ctx;
  const size_t extra = sizeof(weft_block) + 64;
  double need = (double) count * (double) size;
  if (size && count > (SIZE_MAX - extra) / size) {
    weft_fail_memory(ctx, "host", need, weft_host_available(), "");
    return NULL;
  }
  size_t bytes = count * size;
  if (bytes >= LARGE_BLOCK) {
    double have = weft_host_available();
    if (have >= 0 && need > have) {
      weft_fail_memory(ctx, "host", need, have, "");
      return NULL;
    }
  }
  void *origin = weft_memory_ask(ctx->memory) ? NULL : malloc(bytes + extra);
  if (!origin) {
    weft_fail_memory(ctx, "host", need, weft_host_available(), "");
    return NULL;
  }
  weft_block *block = (weft_block *) (((uintptr_t) origin + 63) & ~(uintptr_t) 63);
  block->origin = origin;
  block->bytes = bytes;
  block->previous = NULL;
  block->next = arena->blocks;
  if (block->next) block->next->previous = block;
  arena->blocks = block;
  weft_memory_count_host(ctx->memory, (int64_t) bytes);
  return block + 1;
}

void *weft_arena_take0(weft_arena *arena, size_t count, size_t size)
{
  void *block = weft_arena_take(arena, count, size);
  if (block) memset(block, 0, count * size);
  return block;
}

void weft_arena_drop(weft_arena *arena, void *block)
{
  if (!block) return;
  weft_block *b = (weft_block *) block - 1;
  if (b->previous)
    b->previous->next = b->next;
  else
    arena->blocks = b->next;
  if (b->next) b->next->previous = b->previous;
  weft_memory_count_host(arena->ctx->memory, -(int64_t) b->bytes);
  free(b->origin);
}

void weft_arena_end(weft_arena *arena)
{
  while (arena->blocks) weft_arena_drop(arena, arena->blocks + 1);
}

/* The first number after `key` in a file that the operating system provides; -1 when there is none. */
static double number_in(const char *path, const char *key)
{
  char line[256];
  double value = -1;
  FILE *f = fopen(path, "r");
  if (!f) return -1;
  while (value < 0 && fgets(line, sizeof line, f))
    if (!strncmp(line, key, strlen(key)) && sscanf(line + strlen(key), "%lf", &value) != 1) value = -1;
  fclose(f);
  return value;
}

/* Bytes that a limit on addresses (ulimit -v) leaves to this process; -1 where there is no limit. */
static double left_to_process(void)
{
#ifndef _WIN32
  struct rlimit limit;
  const double used = 1024 * number_in("/proc/self/status", "VmSize:");
  if (used >= 0 && !getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY)
    return (double) limit.rlim_cur > used ? (double) limit.rlim_cur - used : 0;
#endif
  return -1;
}

double weft_host_available(void)
{
  double kib = number_in("/proc/meminfo", "MemAvailable:");
  if (kib < 0) return -1;
  double have = kib * 1024;
  double limit = number_in("/sys/fs/cgroup/memory.max", ""), used = number_in("/sys/fs/cgroup/memory.current", "");
  if (limit >= 0 && used >= 0 && limit - used < have) have = limit > used ? limit - used : 0;
  const double left = left_to_process();
  return left >= 0 && left < have ? left : have;
}
