/* Blosc 1; see blosc.h. A header of 16 bytes: versions of the format and of the compressor, flags, bytes of a number,
 * and as 32 bits each the size of what was compressed, of a block, and of all. Then where each block begins, as 32
 * bits. A block is one part, or one for each byte of its numbers, behind its size; a part as long as what it holds is
 * not compressed. The last block may be shorter, and is one part. */
#include <string.h>
#include "store/file/bytes.h"
#include "store/import/blosc.h"
#include "store/import/hdf5_chunks.h"
#include "store/import/inflate.h"
#include "store/import/lz.h"
#include "store/import/zstd.h"

enum { HEADER = 16, BY_BYTES = 1, AS_IT_IS = 2, BY_BITS = 4, ONE_PART = 16 };
enum { BLOSCLZ = 0, LZ4 = 1, ZLIB = 3, ZSTD = 4 };
enum { MAX_PARTS = 16, MIN_PART = 128 }; /* where blocks are divided */

typedef struct {
  const uint8_t *bytes;
  size_t size, whole, block;
  size_t wide; /* bytes of a number */
  int flags, compressor;
  uint8_t *scratch; /* for a block; NULL: nothing is shuffled */
  weft_inflater *inflater;
  weft_zstd *zstd;
} blosc_state;

static weft_status damaged(weft_ctx *ctx, const weft_bytes *x, const char *what)
{
  return weft_fail(ctx, WEFT_ERR_INPUT, "'%s' is damaged: %s.", x->name, what);
}

int weft_blosc_size(const weft_bytes *x, size_t *whole)
{
  if (x->size < HEADER) return 0;
  *whole = (size_t) weft_store_get(x->at + 4, 4);
  return 1;
}

/* Bits of eight numbers at a time: byte `j` of row `8 b + k` has bit k of byte b of numbers 8 j to 8 j + 7. Numbers
 * that are no multiple of eight were left as they are. */
static void unshuffle_bits(const uint8_t *from, size_t wide, size_t size, uint8_t *to)
{
  const size_t count = size / wide, rows = count / 8;
  if (count % 8) {
    memcpy(to, from, size);
    return;
  }
  memset(to, 0, wide * count);
  for (size_t byte = 0; byte < wide; byte++)
    for (size_t bit = 0; bit < 8; bit++) {
      const uint8_t *row = from + (8 * byte + bit) * rows;
      for (size_t i = 0; i < count; i++) to[wide * i + byte] |= (uint8_t) ((row[i / 8] >> i % 8 & 1) << bit);
    }
  memcpy(to + wide * count, from + wide * count, size - wide * count);
}

static void unshuffle(const blosc_state *s, size_t size, uint8_t *to)
{
  if (s->flags & BY_BITS) {
    unshuffle_bits(s->scratch, s->wide, size, to);
    return;
  }
  const size_t count = size / s->wide;
  weft_raw_unshuffle(s->scratch, s->wide, count, to);
  memcpy(to + s->wide * count, s->scratch + s->wide * count, size - s->wide * count);
}

/* One part, whose size is known to be there. */
static weft_status part(weft_ctx *ctx, const blosc_state *s, const uint8_t *from, size_t size, uint8_t *to,
                        size_t whole)
{
  size_t made = 0;
  switch (s->compressor) {
  case BLOSCLZ: return weft_blosclz(ctx, from, size, to, whole);
  case LZ4: return weft_lz4(ctx, from, size, to, whole);
  case ZLIB: {
    const weft_inflated got = weft_inflate(ctx, s->inflater, WEFT_DEFLATED_ZLIB, from, size, to, whole, &made);
    if (got == WEFT_INFLATE_STOPPED) return WEFT_ERR_INTERRUPT;
    return got == WEFT_INFLATE_DONE && made == whole ? WEFT_OK : WEFT_ERR_INPUT;
  }
  default: {
    const weft_status st = weft_zstd_next(ctx, s->zstd, from, size, to, whole, &made);
    return st == WEFT_OK && made != whole ? WEFT_ERR_INPUT : st;
  }
  }
}

/* The block that begins at byte `at` and becomes `size` bytes. */
static weft_status block(weft_ctx *ctx, const blosc_state *s, size_t at, size_t size, int last, uint8_t *to)
{
  const int split = !(s->flags & ONE_PART) && s->wide <= MAX_PARTS && size / s->wide >= MIN_PART && !last;
  const size_t parts = split ? s->wide : 1, whole = size / parts;
  uint8_t *place = s->scratch ? s->scratch : to;
  for (size_t k = 0; k < parts; k++, place += whole) {
    if (at > s->size || s->size - at < 4) return WEFT_ERR_INPUT;
    const size_t bytes = (size_t) weft_store_get(s->bytes + at, 4);
    at += 4;
    if (bytes > s->size - at) return WEFT_ERR_INPUT;
    if (bytes == whole) {
      memcpy(place, s->bytes + at, whole);
    } else {
      const weft_status st = part(ctx, s, s->bytes + at, bytes, place, whole);
      if (st != WEFT_OK) return st;
    }
    at += bytes;
  }
  if (whole * parts != size) return WEFT_ERR_INPUT;
  if (s->scratch) unshuffle(s, size, to);
  return WEFT_OK;
}

/* Makes ready the compressor of the blocks, or fails where weft was installed without it. */
static weft_status begin(weft_ctx *ctx, weft_arena *mem, const weft_bytes *x, blosc_state *s)
{
  weft_status st = WEFT_OK;
  const int shuffled = s->flags & BY_BITS ? s->block >= s->wide : s->flags & BY_BYTES && s->wide > 1;
  if (s->compressor != BLOSCLZ && s->compressor != LZ4 && s->compressor != ZLIB && s->compressor != ZSTD)
    return weft_fail(ctx, WEFT_ERR_INPUT, "'%s' is compressed in a way that weft cannot read (Blosc's number %d).",
                     x->name, s->compressor);
  if (shuffled) WEFT_TAKE(s->scratch, mem, s->block);
  if (s->compressor == ZLIB) {
    if (!weft_inflates())
      return weft_fail(ctx, WEFT_ERR_INPUT,
                       "'%s' is compressed with zlib: install weft where libdeflate or zlib is available.", x->name);
    s->inflater = weft_inflate_begin(mem);
    if (!s->inflater) st = weft_fail_memory(ctx, "host", 1 << 15, -1, "inflating");
  } else if (s->compressor == ZSTD) {
    st = weft_zstd_begin(ctx, x->name, &s->zstd);
  }
done:
  return st;
}

weft_status weft_blosc(weft_ctx *ctx, weft_arena *mem, const weft_bytes *x, uint8_t *to)
{
  weft_status st = WEFT_OK;
  blosc_state s = { .bytes = x->at, .size = x->size };
  if (!weft_blosc_size(x, &s.whole)) return damaged(ctx, x, "a chunk has no Blosc header");
  s.flags = x->at[2];
  s.compressor = s.flags >> 5;
  s.wide = x->at[3] ? x->at[3] : 1;
  s.block = (size_t) weft_store_get(x->at + 8, 4);
  if (x->at[0] < 1 || x->at[0] > 2 || weft_store_get(x->at + 12, 4) != x->size || (s.whole && !s.block) ||
      s.block > (s.whole > 1 ? s.whole : 1) + 65536)
    return damaged(ctx, x, "a Blosc header is invalid");
  if (!s.whole) return WEFT_OK;
  if (s.flags & AS_IT_IS) {
    if (x->size - HEADER != s.whole) return damaged(ctx, x, "a chunk does not have its stated size");
    memcpy(to, x->at + HEADER, s.whole);
    return WEFT_OK;
  }
  const size_t blocks = (s.whole - 1) / s.block + 1;
  if (blocks > (x->size - HEADER) / 4) return damaged(ctx, x, "a chunk has more blocks than bytes");
  WEFT_TRY(begin(ctx, mem, x, &s));
  for (size_t k = 0; k < blocks && st == WEFT_OK; k++) {
    const size_t at = (size_t) weft_store_get(x->at + HEADER + 4 * k, 4), first = s.block * k;
    const int last = k + 1 == blocks && s.whole % s.block;
    WEFT_TRY(weft_poll(ctx, 0, 0));
    st = block(ctx, &s, at, last ? s.whole % s.block : s.block, last, to + first);
    if (st == WEFT_ERR_INPUT) damaged(ctx, x, "a block cannot be decompressed");
  }
done:
  weft_inflate_end(s.inflater);
  weft_zstd_end(s.zstd);
  return st;
}
