/* Codecs of pieces of files: the first byte says which, and whether the size is known. What is made has the size that
 * was asked for, and all of it was written. */
#include "parsers.h"
#include "store/import/bp128.h"
#include "store/import/codecs.h"

enum { MOST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const weft_codec chains[][2] = { { WEFT_CODEC_BLOSC }, { WEFT_CODEC_ZSTD }, { WEFT_CODEC_ZLIB },
                                          { WEFT_CODEC_GZIP },  { WEFT_CODEC_LZ4 },  { WEFT_CODEC_CRC32C },
                                          { WEFT_CODEC_CRC32C, WEFT_CODEC_BLOSC },   { WEFT_CODEC_ZSTD, WEFT_CODEC_LZ4 } };
  if (size < 3) return 0;
  const size_t which = data[0] % 8, count = which < 6 ? 1 : 2;
  const size_t whole = data[0] & 8 ? SIZE_MAX : (size_t) data[1] | (size_t) data[2] << 8;
  weft_ctx ctx = one_thread();
  weft_arena mem = weft_arena_begin(&ctx);
  uint8_t *exact = malloc(size - 3 ? size - 3 : 1); /* so that reading one byte too far is noticed */
  if (!exact) abort();
  memcpy(exact, data + 3, size - 3);
  weft_bytes x = { "input", exact, size - 3 };
  const weft_status st = weft_decode(&ctx, &mem, chains[which], count, whole, MOST, &x);
  if (st == WEFT_OK) {
    unsigned sum = 0;
    if (whole != SIZE_MAX && x.size != whole) abort();
    if (count && which != 5 && x.size > MOST) abort();
    for (size_t i = 0; i < x.size; i++) sum += x.at[i];
    if (sum == 1) fputc(' ', stderr);
  } else if (st != WEFT_ERR_INPUT && st != WEFT_ERR_MEMORY) {
    abort();
  }
  weft_arena_end(&mem);
  nothing_left();
  if (size >= 3 + 16 * 32) {
    uint32_t out[WEFT_BP128];
    weft_bp128(exact, data[0] % 33, out);
    weft_bp128_sum(data[1], out);
  }
  free(exact);
  return 0;
}
