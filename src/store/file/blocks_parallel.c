/* The same work for several blocks at once; see blocks_parallel.h. */
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "store/file/blocks_parallel.h"

static weft_status one_by_one(weft_ctx *ctx, size_t count, weft_store_work work, void *data)
{
  weft_status st = WEFT_OK;
  for (size_t i = 0; i < count && st == WEFT_OK; i++) st = work(ctx, i, data);
  return st;
}

/* Does `work` for items 0 .. count - 1 on several threads, each item with a context of its own that does not poll. The
 * error reported is that of the first item, whatever thread ended first. */
weft_status weft_store_together(weft_ctx *ctx, size_t count, double operations, weft_store_work work, void *data)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_ctx *own;
  weft_status *ends;
  const int threads = weft_threads_worth(ctx->threads, operations);
  if (count < 2 || threads < 2) return one_by_one(ctx, count, work, data);
  WEFT_TAKE(own, &mem, count);
  WEFT_TAKE(ends, &mem, count);
  for (size_t i = 0; i < count; i++) {
    own[i] = *ctx;
    own[i].poll = NULL;
    own[i].threads = 1;
  }
  WEFT_PARALLEL_FOR(threads, dynamic)
  for (int64_t i = 0; i < (int64_t) count; i++) ends[i] = work(&own[i], (size_t) i, data);
  for (size_t i = 0; i < count && st == WEFT_OK; i++) {
    if (ends[i] == WEFT_OK) continue;
    st = ends[i];
    memcpy(ctx->message, own[i].message, sizeof ctx->message);
    ctx->column = own[i].column;
  }
done:
  weft_arena_end(&mem);
  return st;
}
