/* Host memory of one call. A function that needs memory opens an arena, takes blocks from it, and ends it at its one
 * exit label; whatever went wrong in between, everything is freed.
 *
 *   weft_status f(weft_ctx *ctx, ...) {
 *     weft_status st = WEFT_OK;
 *     weft_arena mem = weft_arena_begin(ctx);
 *     double *w;
 *     WEFT_TAKE(w, &mem, n);              (sets st and goes to done on failure)
 *     WEFT_TRY(step(ctx, w, n));
 *   done:
 *     weft_arena_end(&mem);
 *     return st;
 *   }
 *
 * Blocks are aligned to 64 bytes. Sizes are checked for overflow in 64 bits, and a large block is refused before the
 * operating system is asked when the machine has less free (Linux would promise it and kill the process later). */
#pragma once

#include "core/call/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_block weft_block;
typedef struct weft_arena {
  weft_ctx *ctx;
  weft_block *blocks;
} weft_arena;

weft_arena weft_arena_begin(weft_ctx *ctx);
void weft_arena_end(weft_arena *arena);

/* NULL with the context's message filled on failure. Contents are undefined (take) or zero (take0). */
void *weft_arena_take(weft_arena *arena, size_t count, size_t size);
void *weft_arena_take0(weft_arena *arena, size_t count, size_t size);
/* Gives one block back before the arena ends; NULL is ignored. */
void weft_arena_drop(weft_arena *arena, void *block);

#ifdef __cplusplus
#  define WEFT_AS_TYPE_OF(p) (decltype(p))
#else
#  define WEFT_AS_TYPE_OF(p)
#endif
#define WEFT_TAKE_WITH(take, p, arena, count) \
  do { \
    if (!((p) = WEFT_AS_TYPE_OF(p) take((arena), (count), sizeof *(p)))) { \
      st = WEFT_ERR_MEMORY; \
      goto done; \
    } \
  } while (0)
#define WEFT_TAKE(p, arena, count) WEFT_TAKE_WITH(weft_arena_take, p, arena, count)
#define WEFT_TAKE0(p, arena, count) WEFT_TAKE_WITH(weft_arena_take0, p, arena, count)

/* The account: 0 when the allocation may go on, 1 when the test's `fail_at` has come. Shared by host and device
 * code. */
int weft_memory_ask(weft_memory *account);
void weft_memory_count_host(weft_memory *account, int64_t bytes);
void weft_memory_count_device(weft_memory *account, int device, int64_t bytes);
/* NULL: work of no call, such as opening a device beside one. */
void weft_memory_count_kept(weft_memory *account, int64_t bytes);
void weft_memory_count_made(weft_memory *account);

/* Bytes that this process may still take without swapping or being killed; -1 when unknown. */
double weft_host_available(void);

#ifdef __cplusplus
}
#endif
