/* Whole numbers in few bits; see store_pack.h. A chunk of 128 numbers of w bits each is four lanes of 32: number i is
 * in lane i % 4, which has w words of 32 bits, and word k of lane l is word 4 k + l of the chunk. So four numbers come
 * out at once, with a processor's vectors or with a thread of a device each. */
#include <string.h>
#include "store_pack.h"

/* ---- checksums ---- */

#define POLYNOMIAL 0x82F63B78u /* CRC-32C (Castagnoli), bits reversed */

static uint32_t table[8][256]; /* table[k]: of a byte with k zero bytes behind it */

static void make_table(void)
{
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; bit++) c = c & 1 ? c >> 1 ^ POLYNOMIAL : c >> 1;
    table[0][i] = c;
  }
  for (int k = 1; k < 8; k++)
    for (int i = 0; i < 256; i++) table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
}

uint32_t weft_store_crc(uint32_t crc, const void *data, size_t size)
{
  const uint8_t *x = data;
  if (!table[0][1]) make_table();
  crc = ~crc;
  for (; size >= 8; size -= 8, x += 8) {
    crc ^= (uint32_t) x[0] | (uint32_t) x[1] << 8 | (uint32_t) x[2] << 16 | (uint32_t) x[3] << 24;
    crc = table[7][crc & 255] ^ table[6][crc >> 8 & 255] ^ table[5][crc >> 16 & 255] ^ table[4][crc >> 24] ^
      table[3][x[4]] ^ table[2][x[5]] ^ table[1][x[6]] ^ table[0][x[7]];
  }
  for (; size; size--, x++) crc = crc >> 8 ^ table[0][(crc ^ *x) & 255];
  return ~crc;
}

/* ---- packing ---- */

static unsigned width_of(const uint32_t *x)
{
  uint32_t all = 0;
  unsigned width = 0;
  for (int i = 0; i < WEFT_STORE_CHUNK; i++) all |= x[i];
  for (; all; all >>= 1) width++;
  return width;
}

static void pack_chunk(const uint32_t *x, unsigned w, uint32_t *out)
{
  memset(out, 0, 16 * w);
  for (unsigned t = 0; t < 32; t++) {
    const unsigned bit = t * w, word = bit >> 5, shift = bit & 31;
    for (unsigned lane = 0; lane < 4; lane++) {
      out[4 * word + lane] |= x[4 * t + lane] << shift;
      if (shift + w > 32) out[4 * (word + 1) + lane] |= x[4 * t + lane] >> (32 - shift);
    }
  }
}

static void put_words(uint8_t *to, const uint32_t *words, size_t count)
{
  for (size_t i = 0; i < count; i++)
    for (int byte = 0; byte < 4; byte++) to[4 * i + byte] = (uint8_t) (words[i] >> 8 * byte);
}

size_t weft_store_pack(const uint32_t *x, size_t count, uint8_t *out)
{
  const size_t chunks = weft_store_chunks(count);
  uint8_t *bits = out + chunks;
  uint32_t padded[WEFT_STORE_CHUNK], words[WEFT_STORE_CHUNK];
  for (size_t k = 0; k < chunks; k++) {
    const uint32_t *from = x + k * WEFT_STORE_CHUNK;
    const size_t left = count - k * WEFT_STORE_CHUNK;
    if (left < WEFT_STORE_CHUNK) {
      memset(padded, 0, sizeof padded);
      memcpy(padded, from, left * sizeof *padded);
      from = padded;
    }
    const unsigned w = width_of(from);
    out[k] = (uint8_t) w;
    if (w) pack_chunk(from, w, words);
    put_words(bits, words, 4 * (size_t) w);
    bits += 16 * w;
  }
  return (size_t) (bits - out);
}

/* ---- unpacking ---- */

int weft_store_packed_view(const uint8_t *bytes, size_t size, uint64_t count, uint32_t *begin, weft_store_packed *out)
{
  const size_t chunks = weft_store_chunks(count);
  uint64_t at = 0;
  if (chunks > size) return 0;
  for (size_t k = 0; k < chunks; k++) {
    if (bytes[k] > 32) return 0;
    begin[k] = (uint32_t) at;
    at += bytes[k];
    if (at > (size - chunks) / 16) return 0;
  }
  out->widths = bytes;
  out->bits = bytes + chunks;
  out->begin = begin;
  return chunks + 16 * at == size;
}

/* With w known to the compiler every shift below is a constant. */
static inline void unpack_width(const uint32_t *restrict in, uint32_t *restrict out, const unsigned w)
{
  const uint32_t mask = w == 32 ? UINT32_MAX : (UINT32_C(1) << w) - 1;
  for (unsigned t = 0; t < 32; t++) {
    const unsigned bit = t * w, word = bit >> 5, shift = bit & 31;
    for (unsigned lane = 0; lane < 4; lane++) {
      uint32_t v = in[4 * word + lane] >> shift;
      if (shift + w > 32) v |= in[4 * (word + 1) + lane] << (32 - shift);
      out[4 * t + lane] = v & mask;
    }
  }
}

static void get_words(const uint8_t *from, uint32_t *words, size_t count)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  memcpy(words, from, 4 * count);
#else
  for (size_t i = 0; i < count; i++)
    words[i] = (uint32_t) from[4 * i] | (uint32_t) from[4 * i + 1] << 8 | (uint32_t) from[4 * i + 2] << 16 |
      (uint32_t) from[4 * i + 3] << 24;
#endif
}

#define EIGHT(X, a) X(a) X(a + 1) X(a + 2) X(a + 3) X(a + 4) X(a + 5) X(a + 6) X(a + 7)
#define ONE_WIDTH(w) case w: unpack_width(in, out, w); break;

void weft_store_unpack(const weft_store_packed *packed, size_t chunk, uint32_t out[WEFT_STORE_CHUNK])
{
  const unsigned width = packed->widths[chunk];
  uint32_t in[WEFT_STORE_CHUNK];
  get_words(packed->bits + 16 * (size_t) packed->begin[chunk], in, 4 * (size_t) width);
  switch (width) {
    EIGHT(ONE_WIDTH, 1) EIGHT(ONE_WIDTH, 9) EIGHT(ONE_WIDTH, 17) EIGHT(ONE_WIDTH, 25)
    default: memset(out, 0, WEFT_STORE_CHUNK * sizeof *out);
  }
}
