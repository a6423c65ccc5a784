/* Zstandard (RFC 8878), by libzstd where configure found it. */
#pragma once

#include "core/call/context.h"

typedef struct weft_zstd weft_zstd;

/* An error that says so where it was not found. `name`: what is read, for messages. */
weft_status weft_zstd_begin(weft_ctx *ctx, const char *name, weft_zstd **out);
void weft_zstd_end(weft_zstd *x);
/* A whole frame, to at most `room` bytes; *made: how many. WEFT_ERR_INPUT without a message: the frame is damaged, or
 * has more, in which case *made is `room` + 1. */
weft_status weft_zstd_next(weft_ctx *ctx, weft_zstd *x, const uint8_t *bytes, size_t size, uint8_t *to, size_t room,
                           size_t *made);
