/* Decompresses a piece of another program's file: Blosc (with LZ4, BloscLZ, zlib, Zstandard), Zstandard,
 * zlib, gzip, LZ4, checksums. Nothing that the bytes say is trusted. */
#pragma once

#include "core/call/arena.h"

typedef enum {
  WEFT_CODEC_BLOSC,
  WEFT_CODEC_ZSTD,
  WEFT_CODEC_ZLIB,
  WEFT_CODEC_GZIP,
  WEFT_CODEC_LZ4,   /* behind 4 bytes for the size */
  WEFT_CODEC_CRC32C /* four bytes behind the others */
} weft_codec;
#define WEFT_CODEC_NAMES \
  { \
    "blosc", "zstd", "zlib", "gzip", "lz4", "crc32c" \
  }
enum { WEFT_CODECS = 6 };

/* Bytes, and the name of what they are from, for messages. */
typedef struct weft_bytes {
  const char *name;
  const uint8_t *at;
  size_t size;
} weft_bytes;

/* Whether Zstandard was found by configure. */
int weft_has_zstd(void);

/* Undoes `count` codecs, in this order. `whole`: how many bytes there must be in the end; SIZE_MAX: at most `most`.
 * What *x is from then on lives in the arena, or is what it was. */
weft_status weft_decode(weft_ctx *ctx, weft_arena *mem, const weft_codec *codecs, size_t count, size_t whole,
                        size_t most, weft_bytes *x);
