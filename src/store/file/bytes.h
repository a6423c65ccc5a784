/* Numbers as bytes, the least significant first, whatever the machine; and the layout of the header and of the
 * directory. */
#pragma once

#include <stdint.h>
#include <string.h>

#define WEFT_STORE_MAGIC "\x89weftst\n"
#define WEFT_STORE_VERSION 2 /* of what is written; all earlier ones can be read */

enum { /* bytes of the header */
       WEFT_STORE_AT_VERSION = 8,
       WEFT_STORE_AT_N = 16,
       WEFT_STORE_AT_P = 24,
       WEFT_STORE_AT_VALUES = 32,
       WEFT_STORE_AT_DIRECTORY = 40,
       WEFT_STORE_AT_SIZE = 48,
       WEFT_STORE_AT_DIRECTORY_CRC = 56,
       WEFT_STORE_AT_CRC = 60,
       WEFT_STORE_HEADER = 64
};
enum { WEFT_STORE_COUNTS = 16, WEFT_STORE_BLOCK = 40, WEFT_STORE_SECTION = 40 }; /* of the directory's parts */
enum { WEFT_STORE_STREAMS = 24 }; /* before a block's three streams: how long each is */

static inline void weft_store_put(uint8_t *to, uint64_t x, int bytes)
{
  for (int i = 0; i < bytes; i++) to[i] = (uint8_t) (x >> 8 * i);
}

static inline uint64_t weft_store_get(const uint8_t *from, int bytes)
{
  uint64_t x = 0;
  for (int i = 0; i < bytes; i++) x |= (uint64_t) from[i] << 8 * i;
  return x;
}

static inline void weft_store_put_double(uint8_t *to, double x)
{
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  weft_store_put(to, bits, 8);
}

static inline double weft_store_get_double(const uint8_t *from)
{
  const uint64_t bits = weft_store_get(from, 8);
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline void weft_store_put_float(uint8_t *to, float x)
{
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  weft_store_put(to, bits, 4);
}

static inline float weft_store_get_float(const uint8_t *from)
{
  const uint32_t bits = (uint32_t) weft_store_get(from, 4);
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
