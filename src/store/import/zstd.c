/* Zstandard; see zstd.h. The library takes its own memory, a window of at most 2^27 bytes, outside of arenas. */
#ifdef WEFT_ZSTD
#  include <zstd.h>
#endif
#include "store/import/zstd.h"

#ifdef WEFT_ZSTD
#  define PIECE ((size_t) 1 << 24) /* bytes that are made between two polls */

weft_status weft_zstd_begin(weft_ctx *ctx, const char *name, weft_zstd **out)
{
  (void) name;
  *out = (weft_zstd *) ZSTD_createDCtx();
  return *out ? WEFT_OK : weft_fail_memory(ctx, "host", 1 << 18, -1, "decompressing");
}

void weft_zstd_end(weft_zstd *x) { ZSTD_freeDCtx((ZSTD_DCtx *) x); }

/* Decodes in pieces, between which it polls. */
weft_status weft_zstd_next(weft_ctx *ctx, weft_zstd *x, const uint8_t *bytes, size_t size, uint8_t *to, size_t room,
                           size_t *made)
{
  ZSTD_DCtx *work = (ZSTD_DCtx *) x;
  uint8_t more;
  ZSTD_inBuffer in = { bytes, size, 0 };
  ZSTD_outBuffer out = { to, 0, 0 };
  ZSTD_DCtx_reset(work, ZSTD_reset_session_only);
  *made = 0;
  for (;;) {
    const size_t before_in = in.pos, before_out = out.pos;
    out.size = room - out.pos < PIECE ? room : out.pos + PIECE;
    const int full = out.pos == room;
    ZSTD_outBuffer beyond = { &more, full, 0 };
    const size_t left = ZSTD_decompressStream(work, full ? &beyond : &out, &in);
    *made = full && beyond.pos ? room + 1 : out.pos;
    if (ZSTD_isError(left) || *made > room) return WEFT_ERR_INPUT;
    if (!left) return in.pos == in.size ? WEFT_OK : WEFT_ERR_INPUT;
    if (in.pos == before_in && out.pos == before_out) return WEFT_ERR_INPUT; /* cut short */
    if (weft_poll(ctx, 0, 0) != WEFT_OK) return WEFT_ERR_INTERRUPT;
  }
}
#else
weft_status weft_zstd_begin(weft_ctx *ctx, const char *name, weft_zstd **out)
{
  *out = NULL;
  return weft_fail(ctx, WEFT_ERR_INPUT,
                   "'%s' is compressed with Zstandard: install weft with libzstd (libzstd-dev), or write the "
                   "file with another compressor.",
                   name);
}

void weft_zstd_end(weft_zstd *x) { (void) x; }

weft_status weft_zstd_next(weft_ctx *ctx, weft_zstd *x, const uint8_t *bytes, size_t size, uint8_t *to, size_t room,
                           size_t *made)
{
  (void) ctx, (void) x, (void) bytes, (void) size, (void) to, (void) room;
  *made = 0;
  return WEFT_ERR_INPUT;
}
#endif
