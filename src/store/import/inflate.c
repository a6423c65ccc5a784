/* zlib and gzip data; see inflate.h. */
#if defined(WEFT_DEFLATE)
#  include <libdeflate.h>
#elif defined(WEFT_ZLIB)
#  include <zlib.h>
#endif
#include "store/import/inflate.h"

#if defined(WEFT_DEFLATE)
int weft_inflates(void) { return 1; }

weft_inflater *weft_inflate_begin(weft_arena *mem)
{
  (void) mem;
  return (weft_inflater *) libdeflate_alloc_decompressor();
}

void weft_inflate_end(weft_inflater *x)
{
  if (x) libdeflate_free_decompressor((struct libdeflate_decompressor *) x);
}

weft_inflated weft_inflate(weft_ctx *ctx, weft_inflater *x, weft_deflated kind, const uint8_t *bytes, size_t size,
                           uint8_t *to, size_t room, size_t *made)
{
  struct libdeflate_decompressor *work = (struct libdeflate_decompressor *) x;
  if (ctx && weft_poll(ctx, 0, 0) != WEFT_OK) return WEFT_INFLATE_STOPPED;
  const enum libdeflate_result got = kind == WEFT_DEFLATED_GZIP
                                         ? libdeflate_gzip_decompress(work, bytes, size, to, room, made)
                                         : libdeflate_zlib_decompress(work, bytes, size, to, room, made);
  if (got == LIBDEFLATE_INSUFFICIENT_SPACE) return WEFT_INFLATE_SHORT;
  return got == LIBDEFLATE_SUCCESS ? WEFT_INFLATE_DONE : WEFT_INFLATE_DAMAGED;
}
#elif defined(WEFT_ZLIB)
#  define PIECE ((size_t) 1 << 24) /* bytes that are made between two polls */

struct weft_inflater {
  z_stream stream;
};

int weft_inflates(void) { return 1; }

weft_inflater *weft_inflate_begin(weft_arena *mem)
{
  weft_inflater *x = weft_arena_take0(mem, 1, sizeof *x);
  return x && inflateInit(&x->stream) == Z_OK ? x : NULL;
}

void weft_inflate_end(weft_inflater *x)
{
  if (x) inflateEnd(&x->stream);
}

weft_inflated weft_inflate(weft_ctx *ctx, weft_inflater *x, weft_deflated kind, const uint8_t *bytes, size_t size,
                           uint8_t *to, size_t room, size_t *made)
{
  z_stream *stream = &x->stream;
  uint8_t none;
  if (size > UINT32_MAX || room > UINT32_MAX || inflateReset2(stream, kind == WEFT_DEFLATED_GZIP ? 31 : 15) != Z_OK)
    return WEFT_INFLATE_DAMAGED;
  stream->next_in = (Bytef *) bytes;
  stream->avail_in = (uInt) size;
  stream->next_out = room ? to : &none;
  stream->avail_out = 0;
  for (*made = 0;;) {
    if (ctx && weft_poll(ctx, 0, 0) != WEFT_OK) return WEFT_INFLATE_STOPPED;
    const size_t now = ctx && room - *made > PIECE ? PIECE : room - *made;
    stream->avail_out = (uInt) now;
    const int got = inflate(stream, *made + now == room ? Z_FINISH : Z_NO_FLUSH);
    *made += now - stream->avail_out;
    if (got == Z_STREAM_END) return WEFT_INFLATE_DONE;
    if ((got != Z_OK && got != Z_BUF_ERROR) || stream->avail_out) return WEFT_INFLATE_DAMAGED;
    if (*made == room) return WEFT_INFLATE_SHORT;
  }
}
#else
int weft_inflates(void) { return 0; }

weft_inflater *weft_inflate_begin(weft_arena *mem)
{
  (void) mem;
  return NULL;
}

void weft_inflate_end(weft_inflater *x) { (void) x; }

weft_inflated weft_inflate(weft_ctx *ctx, weft_inflater *x, weft_deflated kind, const uint8_t *bytes, size_t size,
                           uint8_t *to, size_t room, size_t *made)
{
  (void) ctx, (void) x, (void) kind, (void) bytes, (void) size, (void) to, (void) room, (void) made;
  return WEFT_INFLATE_DAMAGED;
}
#endif
