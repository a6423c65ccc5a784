/* The same work for several blocks at once, one thread per block. */
#pragma once

#include "core/call/context.h"

#define WEFT_STORE_TOGETHER 64 /* most blocks at once */

typedef weft_status (*weft_store_work)(weft_ctx *ctx, size_t item, void *data);

/* Calls work(ctx, item, data) for items 0 .. count - 1, which must not touch what is another's: all of them about
 * `operations` of a nanosecond. If that is worth several threads, each item has a context of its own with one thread
 * and no poll, and an arena that is to outlive its item must be given another one. What is returned, with its message,
 * is the error of the first item that failed. */
weft_status weft_store_together(weft_ctx *ctx, size_t count, double operations, weft_store_work work, void *data);
