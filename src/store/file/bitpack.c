/* Whole numbers in few bits; see bitpack.h. Each is cut into low bits, as many for all 128 numbers of a chunk, and a
 * high part in unary, as many zero bits as its value and then a one (Golomb 1966, Rice 1979): about 0.1 bits per number
 * more than the entropy of gaps between rows and of small counts. The low bits, w each, are four lanes of 32 numbers:
 * number i is in lane i % 4, which has w words of 32 bits, and word k of lane l is word 4 k + l of the chunk. So four
 * numbers come out at once. */
#include <string.h>
#include "core/call/simd.h"
#include "store/file/bytes.h"
#include "store/file/bitpack.h"

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

/* CRC-32C of `size` bytes, continued from `crc` (0 to begin): by the processor's instruction, else by eight tables, 8
 * bytes at a time. The first call makes the tables, before threads may ask. */
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
#  define INLINE static inline __attribute__((always_inline))
#else
#  define INLINE static inline
#endif

/* Two sums of 16-bit halves, none of which overflows. */
INLINE uint64_t sum_of(const uint32_t *x)
{
  uint32_t low = 0, high = 0;
  for (int i = 0; i < WEFT_STORE_CHUNK; i++) {
    low += x[i] & 0xffff;
    high += x[i] >> 16;
  }
  return low + ((uint64_t) high << 16);
}

/* Where the sum of all is below 2^32. */
INLINE uint32_t high_sum(const uint32_t *x, unsigned w)
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
INLINE unsigned width_of(const uint32_t *x, uint64_t *high)
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

#define EIGHT(X, a) X(a) X(a + 1) X(a + 2) X(a + 3) X(a + 4) X(a + 5) X(a + 6) X(a + 7)

/* The low w bits into words, and the high parts. With w known to the compiler every shift is a constant. */
INLINE void cut_chunk(const uint32_t *x, const unsigned w, uint32_t *out, uint32_t *high)
{
  const uint32_t mask = w == 32 ? UINT32_MAX : (UINT32_C(1) << w) - 1;
#if defined(__GNUC__)
  four word = { 0 }, low;
#  define CUT_FOUR(t) \
    low = *(const four *) (x + 4 * (t)); \
    *(four *) (high + 4 * (t)) = w < 32 ? low >> (w & 31) : low ^ low; \
    low &= mask; \
    word |= low << ((t) *w & 31); \
    if (((t) *w & 31) + w >= 32) { \
      *(four *) (out + 4 * ((t) *w >> 5)) = word; \
      word = ((t) *w & 31) + w > 32 ? low >> ((32 - ((t) *w & 31)) & 31) : low ^ low; \
    }
  EIGHT(CUT_FOUR, 0)
  EIGHT(CUT_FOUR, 8)
  EIGHT(CUT_FOUR, 16)
  EIGHT(CUT_FOUR, 24)
#else
  memset(out, 0, 16 * w);
  for (unsigned i = 0; i < WEFT_STORE_CHUNK; i++) {
    const unsigned bit = i / 4 * w, word = 4 * (bit >> 5) + i % 4, shift = bit & 31;
    high[i] = w < 32 ? x[i] >> w : 0;
    out[word] |= (x[i] & mask) << shift;
    if (shift + w > 32) out[word + 4] |= (x[i] & mask) >> (32 - shift);
  }
#endif
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#  define LITTLE 1
#else
#  define LITTLE 0
#endif

INLINE void put_word(uint8_t *to, uint64_t word)
{
  if (LITTLE)
    memcpy(to, &word, sizeof word);
  else
    weft_store_put(to, word, 8);
}

INLINE void put_words(uint8_t *to, const uint32_t *words, size_t count)
{
  if (LITTLE)
    memcpy(to, words, 4 * count);
  else
    for (size_t i = 0; i < count; i++) weft_store_put(to + 4 * i, words[i], 4);
}

/* The high parts, eight at a time, which seldom take more than 56 bits. Up to 8 bytes behind them are overwritten. */
INLINE void put_high(const uint32_t *high, uint8_t *to)
{
  uint64_t word = 0; /* of which `bit` bits, at most 8, are not written yet */
  uint32_t bit = 0;
  for (int i = 0; i < WEFT_STORE_CHUNK; i += 8) {
    uint32_t at = 0;
    uint64_t ones = 0;
#define PUT_ONE(k) \
  at += high[i + (k)]; \
  ones |= UINT64_C(1) << (at & 63); \
  at++;
    EIGHT(PUT_ONE, 0)
    if (at < 56) {
      word |= ones << bit;
      put_word(to, word);
      bit += at;
      to += bit >> 3;
      word >>= bit & 56;
      bit &= 7;
      continue;
    }
    for (int k = 0; k < 8; k++, bit++) {
      for (bit += high[i + k]; bit >= 8; bit -= 8, word >>= 8) *to++ = (uint8_t) word;
      word |= UINT64_C(1) << bit;
    }
  }
  put_word(to, word);
}

/* clang-format off */
#define CUT_WIDTH(w) case w: cut_chunk(x, w, words, high); break;
/* clang-format on */

/* One chunk: how many bytes its high parts take. */
INLINE size_t pack_chunk(const uint32_t *x, uint8_t *width, uint8_t *bits)
{
  uint32_t words[WEFT_STORE_CHUNK], high[WEFT_STORE_CHUNK];
  uint64_t sum;
  const unsigned w = width_of(x, &sum);
  switch (w) {
    CUT_WIDTH(0)
    EIGHT(CUT_WIDTH, 1)
  default: cut_chunk(x, w, words, high);
  }
  *width = (uint8_t) w;
  put_words(bits, words, 4 * (size_t) w);
  put_high(high, bits + 16 * w);
  return (size_t) (sum + WEFT_STORE_CHUNK + 7) / 8;
}

static size_t pack_portable(const uint32_t *x, uint8_t *width, uint8_t *bits) { return pack_chunk(x, width, bits); }

#if WEFT_SIMD_X86
/* Every processor with AVX2 has these, too. */
__attribute__((target("avx2,bmi,bmi2"))) static size_t pack_avx2(const uint32_t *x, uint8_t *width, uint8_t *bits)
{
  return pack_chunk(x, width, bits);
}
#endif

weft_store_packer weft_store_pack_begin(uint8_t *out, size_t count)
{
  const size_t chunks = weft_store_chunks(count);
  const weft_store_packer packer = { out, out + chunks, out + 2 * chunks };
  return packer;
}

void weft_store_pack_next(weft_store_packer *packer, const uint32_t x[WEFT_STORE_CHUNK])
{
  size_t (*pack)(const uint32_t *, uint8_t *, uint8_t *) = pack_portable;
#if WEFT_SIMD_X86
  if (weft_simd_level() >= WEFT_SIMD_AVX2) pack = pack_avx2;
#endif
  const size_t high = pack(x, packer->widths, packer->bits);
  packer->bits += 16 * (size_t) *packer->widths++ + high;
  *packer->high++ = (uint8_t) high;
}

size_t weft_store_pack(const uint32_t *x, size_t count, uint8_t *out)
{
  weft_store_packer packer = weft_store_pack_begin(out, count);
  uint32_t padded[WEFT_STORE_CHUNK] = { 0 };
  for (; count >= WEFT_STORE_CHUNK; count -= WEFT_STORE_CHUNK, x += WEFT_STORE_CHUNK) weft_store_pack_next(&packer, x);
  if (count) {
    memcpy(padded, x, count * sizeof *padded);
    weft_store_pack_next(&packer, padded);
  }
  return (size_t) (packer.bits - out);
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

/* clang-format off */
#define ONE_WIDTH(w) case w: unpack_width(in, out, w); break;
/* clang-format on */

void weft_store_unpack(const weft_store_packed *packed, size_t chunk, uint32_t out[WEFT_STORE_CHUNK])
{
  const unsigned width = packed->widths[chunk];
  const uint8_t *bits = packed->bits + packed->begin[chunk];
  uint32_t in[WEFT_STORE_CHUNK];
  get_words(bits, in, 4 * (size_t) width);
  switch (width) {
    EIGHT(ONE_WIDTH, 1)
    EIGHT(ONE_WIDTH, 9)
    EIGHT(ONE_WIDTH, 17)
    EIGHT(ONE_WIDTH, 25)
  default: memset(out, 0, WEFT_STORE_CHUNK * sizeof *out);
  }
  if (packed->high) add_high(bits + 16 * (size_t) width, packed->high[chunk], width, out);
}
