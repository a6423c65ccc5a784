/* Codecs, undone one after another; see codecs.h. */
#include <string.h>
#include "store/file/bitpack.h"
#include "store/file/bytes.h"
#include "store/import/blosc.h"
#include "store/import/codecs.h"
#include "store/import/inflate.h"
#include "store/import/lz.h"
#include "store/import/zstd.h"

/* How much is made: exactly `whole` bytes, or at most `most` where `whole` is SIZE_MAX. */
typedef struct {
  size_t whole, most;
} wanted_size;

static weft_status damaged(weft_ctx *ctx, const weft_bytes *x, const char *what)
{
  return weft_fail(ctx, WEFT_ERR_INPUT, "'%s' is damaged: %s.", x->name, what);
}

int weft_has_zstd(void)
{
#ifdef WEFT_ZSTD
  return 1;
#else
  return 0;
#endif
}

/* Fails where what the bytes say about the size of the result is not what is wanted. */
static weft_status check_size(weft_ctx *ctx, const weft_bytes *x, size_t said, wanted_size wanted)
{
  if (wanted.whole == SIZE_MAX ? said <= wanted.most : said == wanted.whole) return WEFT_OK;
  return damaged(ctx, x, "a chunk has the wrong size");
}

static weft_status undo_blosc(weft_ctx *ctx, weft_arena *mem, wanted_size wanted, weft_bytes *x)
{
  weft_status st = WEFT_OK;
  size_t whole;
  uint8_t *to;
  if (!weft_blosc_size(x, &whole)) return damaged(ctx, x, "a chunk has no Blosc header");
  WEFT_TRY(check_size(ctx, x, whole, wanted));
  WEFT_TAKE(to, mem, whole + 1);
  WEFT_TRY(weft_blosc(ctx, mem, x, to));
  x->at = to;
  x->size = whole;
done:
  return st;
}

static weft_status undo_lz4(weft_ctx *ctx, weft_arena *mem, wanted_size wanted, weft_bytes *x)
{
  weft_status st = WEFT_OK;
  uint8_t *to;
  if (x->size < 4) return damaged(ctx, x, "an LZ4 chunk has no size");
  const size_t whole = (size_t) weft_store_get(x->at, 4);
  WEFT_TRY(check_size(ctx, x, whole, wanted));
  WEFT_TAKE(to, mem, whole + 1);
  st = weft_lz4(ctx, x->at + 4, x->size - 4, to, whole);
  if (st == WEFT_ERR_INPUT) damaged(ctx, x, "an LZ4 chunk cannot be decompressed");
  x->at = to;
  x->size = whole;
done:
  return st;
}

/* One try to make at most `room` bytes. WEFT_OK with *made above `room`: there are more. */
static weft_status expand(weft_ctx *ctx, weft_codec codec, weft_inflater *inflater, weft_zstd *zstd,
                          const weft_bytes *x, uint8_t *to, size_t room, size_t *made)
{
  weft_status st = WEFT_OK;
  if (codec == WEFT_CODEC_ZSTD) {
    st = weft_zstd_next(ctx, zstd, x->at, x->size, to, room, made);
    if (st == WEFT_ERR_INPUT && *made > room) return WEFT_OK;
  } else {
    const weft_deflated kind = codec == WEFT_CODEC_GZIP ? WEFT_DEFLATED_GZIP : WEFT_DEFLATED_ZLIB;
    const weft_inflated got = weft_inflate(ctx, inflater, kind, x->at, x->size, to, room, made);
    if (got == WEFT_INFLATE_STOPPED) return WEFT_ERR_INTERRUPT;
    if (got == WEFT_INFLATE_SHORT) *made = room + 1;
    if (got == WEFT_INFLATE_DAMAGED) st = WEFT_ERR_INPUT;
  }
  return st == WEFT_ERR_INPUT ? damaged(ctx, x, "a chunk cannot be decompressed") : st;
}

/* A stream that does not say at its beginning how much it becomes is expanded into ever more room. */
static weft_status undo_stream(weft_ctx *ctx, weft_arena *mem, weft_codec codec, wanted_size wanted, weft_bytes *x)
{
  weft_status st = WEFT_OK;
  weft_inflater *inflater = NULL;
  weft_zstd *zstd = NULL;
  uint8_t *to = NULL;
  const size_t limit = wanted.whole == SIZE_MAX ? wanted.most : wanted.whole;
  size_t made = 0, room = wanted.whole == SIZE_MAX ? 8 * x->size + 4096 : wanted.whole;
  if (codec == WEFT_CODEC_ZSTD) {
    WEFT_TRY(weft_zstd_begin(ctx, x->name, &zstd));
  } else if (!weft_inflates()) {
    st = weft_fail(ctx, WEFT_ERR_INPUT,
                   "'%s' is compressed with zlib: install weft where libdeflate or zlib is available.", x->name);
    goto done;
  } else if (!(inflater = weft_inflate_begin(mem))) {
    st = weft_fail_memory(ctx, "host", 1 << 15, -1, "inflating");
    goto done;
  }
  for (;; room = room > limit / 4 ? limit : 4 * room) {
    if (room > limit) room = limit;
    WEFT_TAKE(to, mem, room + 1);
    WEFT_TRY(expand(ctx, codec, inflater, zstd, x, to, room, &made));
    if (made <= room) break;
    if (room == limit) {
      st = damaged(ctx, x, "a chunk has too many bytes");
      goto done;
    }
    weft_arena_drop(mem, to);
  }
  WEFT_TRY(check_size(ctx, x, made, wanted));
  x->at = to;
  x->size = made;
done:
  weft_inflate_end(inflater);
  weft_zstd_end(zstd);
  return st;
}

static weft_status undo_crc32c(weft_ctx *ctx, weft_bytes *x)
{
  if (x->size < 4) return damaged(ctx, x, "a checksum is missing");
  x->size -= 4;
  if (weft_store_crc(0, x->at, x->size) != (uint32_t) weft_store_get(x->at + x->size, 4))
    return damaged(ctx, x, "a checksum is wrong");
  return WEFT_OK;
}

/* One codec after the other; what each writes is the next one's input. */
weft_status weft_decode(weft_ctx *ctx, weft_arena *mem, const weft_codec *codecs, size_t count, size_t whole,
                        size_t most, weft_bytes *x)
{
  weft_status st = WEFT_OK;
  for (size_t k = 0; k < count; k++) {
    const wanted_size wanted = { k + 1 == count ? whole : SIZE_MAX, most };
    switch (codecs[k]) {
    case WEFT_CODEC_BLOSC: WEFT_TRY(undo_blosc(ctx, mem, wanted, x)); break;
    case WEFT_CODEC_LZ4: WEFT_TRY(undo_lz4(ctx, mem, wanted, x)); break;
    case WEFT_CODEC_CRC32C: WEFT_TRY(undo_crc32c(ctx, x)); break;
    default: WEFT_TRY(undo_stream(ctx, mem, codecs[k], wanted, x));
    }
  }
  if (whole != SIZE_MAX && x->size != whole) st = damaged(ctx, x, "a chunk has the wrong size");
done:
  return st;
}
