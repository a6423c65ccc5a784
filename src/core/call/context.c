/* Error text and polling. See context.h. This file and arena.c are linked into all three shared objects: they keep
 * no state of their own, so that each object may have its copy. */
/* Build: shared. */
#ifndef _POSIX_C_SOURCE
#  define _POSIX_C_SOURCE 200809L
#endif
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include "core/call/context.h"

weft_status weft_fail(weft_ctx *ctx, weft_status st, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vsnprintf(ctx->message, sizeof ctx->message, format, args);
  va_end(args);
  return st;
}

weft_status weft_fail_column(weft_ctx *ctx, size_t column, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vsnprintf(ctx->message, sizeof ctx->message, format, args);
  va_end(args);
  ctx->column = (int64_t) column;
  return WEFT_ERR_INPUT;
}

double weft_seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

weft_status weft_poll(weft_ctx *ctx, double done, double total)
{
  if (ctx->stages > 0) {
    const double share = total > 0 ? done / total : 0;
    done = ctx->stage + (share < 1 ? share : 1);
    total = ctx->stages;
  }
  if (ctx->poll && ctx->poll(ctx->poll_data, done, total))
    return weft_fail(ctx, WEFT_ERR_INTERRUPT, "stopped by the user");
  return WEFT_OK;
}

weft_status weft_fail_memory(weft_ctx *ctx, const char *where, double need, double have, const char *what)
{
  char free_text[64] = "unknown";
  if (have >= 0) snprintf(free_text, sizeof free_text, "%.0f bytes (%.2f GB)", have, have / 1e9);
  return weft_fail(ctx, WEFT_ERR_MEMORY, "Not enough %s memory%s%s: %.0f bytes (%.2f GB) needed, %s free.", where,
                   *what ? " for " : "", what, need, need / 1e9, free_text);
}
