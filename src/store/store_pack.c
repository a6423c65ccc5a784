/* Whole numbers in few bits; see store_pack.h. Each is cut into low bits, as many for all 128 numbers of a chunk, and a
 * high part, which is so many zero bits and a one (Golomb 1966, Rice 1979): about 0.1 bits per number more than the
 * entropy of gaps between rows and of small counts. The low bits, w each, are four lanes of 32 numbers: number i is in
 * lane i % 4, which has w words of 32 bits, and word k of lane l is word 4 k + l of the chunk. So four numbers come out
 * at once. */
#include <string.h>
#include "../base/simd.h"
#include "store_bytes.h"
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

#if WEFT_SIMD_X86
/* Words of eight bytes by the instruction that x86 has for this polynomial; every processor with AVX2 has it. */
__attribute__((target("sse4.2"))) static uint32_t sum_words(uint32_t crc, const uint8_t *x, size_t words)
{
  uint64_t sum = crc;
  for (size_t i = 0; i < words; i++) {
    uint64_t word;
    memcpy(&word, x + 8 * i, sizeof word);
    sum = __builtin_ia32_crc32di(sum, word);
  }
  return (uint32_t) sum;
}
#endif

uint32_t weft_store_crc(uint32_t crc, const void *data, size_t size)
{
  const uint8_t *x = data;
  if (!table[0][1]) make_table();
  crc = ~crc;
#if WEFT_SIMD_X86
  if (weft_simd_level() >= WEFT_SIMD_AVX2 && size >= 8) {
    crc = sum_words(crc, x, size / 8);
    x += size / 8 * 8;
    size %= 8;
  }
#endif
  for (; size >= 8; size -= 8, x += 8) {
    crc ^= (uint32_t) x[0] | (uint32_t) x[1] << 8 | (uint32_t) x[2] << 16 | (uint32_t) x[3] << 24;
    crc = table[7][crc & 255] ^ table[6][crc >> 8 & 255] ^ table[5][crc >> 16 & 255] ^ table[4][crc >> 24] ^
      table[3][x[4]] ^ table[2][x[5]] ^ table[1][x[6]] ^ table[0][x[7]];
  }
  for (; size; size--, x++) crc = crc >> 8 ^ table[0][(crc ^ *x) & 255];
  return ~crc;
}

/* ---- packing ---- */

/* The lanes of four numbers. */
#if defined(__GNUC__)
typedef uint32_t four __attribute__((vector_size(16), aligned(4)));
#endif

/* Two sums of 16-bit halves, none of which overflows. */
static uint64_t sum_of(const uint32_t *x)
{
  uint32_t low = 0, high = 0;
  for (int i = 0; i < WEFT_STORE_CHUNK; i++) low += x[i] & 0xffff;
  for (int i = 0; i < WEFT_STORE_CHUNK; i++) high += x[i] >> 16;
  return low + ((uint64_t) high << 16);
}

/* Where the sum of all is below 2^32. */
static uint32_t high_sum(const uint32_t *x, unsigned w)
{
  uint32_t sum = 0;
  for (int i = 0; i < WEFT_STORE_CHUNK; i++) sum += x[i] >> w;
  return sum;
}

static uint64_t long_high_sum(const uint32_t *x, unsigned w)
{
  uint64_t sum = 0;
  for (int i = 0; i < WEFT_STORE_CHUNK; i++) sum += w < 32 ? x[i] >> w : 0;
  return sum;
}

/* How many low bits take the fewest in all, and the sum of the high parts. One more takes 128, and at least halves the
 * high parts: these end at a sum of at most 256. */
static unsigned width_of(const uint32_t *x, uint64_t *high)
{
  unsigned width = 0;
  uint64_t sum = sum_of(x), next;
  const int small = sum <= UINT32_MAX;
  while (width < 31 && sum >> (width + 2) >= WEFT_STORE_CHUNK) width++; /* a mean of 4 and more */
  if (width) sum = small ? high_sum(x, width) : long_high_sum(x, width);
  while (sum > WEFT_STORE_CHUNK) { /* one bit more would not save more */
    next = small && width < 31 ? high_sum(x, width + 1) : long_high_sum(x, width + 1);
    if (sum - next <= WEFT_STORE_CHUNK) break;
    sum = next;
    width++;
  }
  *high = sum;
  return width;
}

/* The bytes of 128 high parts, whose sum is given, written word by word. */
static size_t put_high(const uint32_t *x, unsigned w, uint64_t sum, uint8_t *out)
{
  const size_t size = (size_t) (sum + WEFT_STORE_CHUNK + 7) / 8;
  uint8_t bytes[56] = { 0 }, *to = bytes;
  uint64_t word = 0;
  uint32_t bit = 0;
  for (int i = 0; i < WEFT_STORE_CHUNK; i++, bit++) {
    bit += w < 32 ? x[i] >> w : 0;
    for (; bit >= 64; bit -= 64, to += 8, word = 0) weft_store_put(to, word, 8);
    word |= UINT64_C(1) << bit;
  }
  weft_store_put(to, word, 8);
  memcpy(out, bytes, size);
  return size;
}

/* The low bits. */
static void pack_chunk(const uint32_t *x, unsigned w, uint32_t *out)
{
  const uint32_t mask = w == 32 ? UINT32_MAX : (UINT32_C(1) << w) - 1;
  memset(out, 0, 16 * w);
  for (unsigned t = 0; t < 32; t++) {
    const unsigned bit = t * w, word = bit >> 5, shift = bit & 31;
#if defined(__GNUC__)
    const four low = *(const four *) (x + 4 * t) & mask;
    *(four *) (out + 4 * word) |= low << shift;
    if (shift + w > 32) *(four *) (out + 4 * word + 4) |= low >> (32 - shift);
#else
    for (unsigned lane = 0; lane < 4; lane++) {
      const uint32_t low = x[4 * t + lane] & mask;
      out[4 * word + lane] |= low << shift;
      if (shift + w > 32) out[4 * (word + 1) + lane] |= low >> (32 - shift);
    }
#endif
  }
}

static void put_words(uint8_t *to, const uint32_t *words, size_t count)
{
  for (size_t i = 0; i < count; i++) weft_store_put(to + 4 * i, words[i], 4);
}

size_t weft_store_pack(const uint32_t *x, size_t count, uint8_t *out)
{
  const size_t chunks = weft_store_chunks(count);
  uint8_t *bits = out + 2 * chunks;
  uint32_t padded[WEFT_STORE_CHUNK], words[WEFT_STORE_CHUNK];
  for (size_t k = 0; k < chunks; k++) {
    const uint32_t *from = x + k * WEFT_STORE_CHUNK;
    const size_t left = count - k * WEFT_STORE_CHUNK;
    if (left < WEFT_STORE_CHUNK) {
      memset(padded, 0, sizeof padded);
      memcpy(padded, from, left * sizeof *padded);
      from = padded;
    }
    uint64_t sum;
    const unsigned w = width_of(from, &sum);
    out[k] = (uint8_t) w;
    if (w) pack_chunk(from, w, words);
    put_words(bits, words, 4 * (size_t) w);
    bits += 16 * w;
    const size_t high = put_high(from, w, sum, bits);
    out[chunks + k] = (uint8_t) high;
    bits += high;
  }
  return (size_t) (bits - out);
}

/* ---- unpacking ---- */

int weft_store_packed_view(const uint8_t *bytes, size_t size, uint64_t count, int version, uint64_t *begin,
                           weft_store_packed *out)
{
  const size_t chunks = weft_store_chunks(count), heads = version == 1 ? 1 : 2;
  uint64_t at = 0;
  if (chunks > size / heads) return 0;
  out->widths = bytes;
  out->high = heads == 2 ? bytes + chunks : NULL;
  out->bits = bytes + heads * chunks;
  out->begin = begin;
  for (size_t k = 0; k < chunks; k++) {
    if (bytes[k] > 32) return 0;
    begin[k] = at;
    at += 16 * (uint64_t) bytes[k] + (out->high ? out->high[k] : 0);
    if (at > size - heads * chunks) return 0;
  }
  return at == size - heads * chunks;
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

/* Adds the high parts to the low ones, `width` bits above. Of damaged bytes that lack some, these are 0. */
static void add_high(const uint8_t *from, size_t size, unsigned width, uint32_t out[WEFT_STORE_CHUNK])
{
  uint8_t bytes[256 + 8] = { 0 };
  size_t i = 0, next = 0; /* the bit behind the last number's */
  memcpy(bytes, from, size);
  for (size_t at = 0; at < size; at += 8) {
    for (uint64_t word = weft_store_get(bytes + at, 8); word; word &= word - 1) {
      const size_t bit = 8 * at + (size_t) __builtin_ctzll(word);
      if (i == WEFT_STORE_CHUNK) return;
      if (width < 32) out[i] |= (uint32_t) (bit - next) << width;
      next = bit + 1;
      i++;
    }
  }
}

#define EIGHT(X, a) X(a) X(a + 1) X(a + 2) X(a + 3) X(a + 4) X(a + 5) X(a + 6) X(a + 7)
#define ONE_WIDTH(w) case w: unpack_width(in, out, w); break;

void weft_store_unpack(const weft_store_packed *packed, size_t chunk, uint32_t out[WEFT_STORE_CHUNK])
{
  const unsigned width = packed->widths[chunk];
  const uint8_t *bits = packed->bits + packed->begin[chunk];
  uint32_t in[WEFT_STORE_CHUNK];
  get_words(bits, in, 4 * (size_t) width);
  switch (width) {
    EIGHT(ONE_WIDTH, 1) EIGHT(ONE_WIDTH, 9) EIGHT(ONE_WIDTH, 17) EIGHT(ONE_WIDTH, 25)
    default: memset(out, 0, WEFT_STORE_CHUNK * sizeof *out);
  }
  if (packed->high) add_high(bits + 16 * (size_t) width, packed->high[chunk], width, out);
}
