/* Inflates zlib and gzip streams, by libdeflate or zlib, whichever configure found. */
#pragma once

#include "core/call/arena.h"

typedef enum { WEFT_DEFLATED_ZLIB, WEFT_DEFLATED_GZIP } weft_deflated;
typedef enum { WEFT_INFLATE_DAMAGED, WEFT_INFLATE_DONE, WEFT_INFLATE_SHORT, WEFT_INFLATE_STOPPED } weft_inflated;
typedef struct weft_inflater weft_inflater;

/* Whether anything can be inflated here. */
int weft_inflates(void);
/* NULL where there is no memory for it, or nothing can be inflated here. weft_inflate_end() takes NULL, too. */
weft_inflater *weft_inflate_begin(weft_arena *mem);
void weft_inflate_end(weft_inflater *x);
/* At most `room` bytes to `to`; *made: how many. WEFT_INFLATE_SHORT: there are more. Outside of parallel regions ctx
 * may be given, which is polled between pieces (by libdeflate, which knows none, before): WEFT_INFLATE_STOPPED. */
weft_inflated weft_inflate(weft_ctx *ctx, weft_inflater *x, weft_deflated kind, const uint8_t *bytes, size_t size,
                           uint8_t *to, size_t room, size_t *made);
