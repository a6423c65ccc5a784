/* Whole numbers in few bits, and checksums; see inst/store-format.md. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define WEFT_STORE_CHUNK 128

/* CRC-32C of `size` bytes behind those whose sum is `crc` (0 at first). From the thread of R alone. */
uint32_t weft_store_crc(uint32_t crc, const void *data, size_t size);

static inline size_t weft_store_chunks(uint64_t count)
{
  return (size_t) ((count + WEFT_STORE_CHUNK - 1) / WEFT_STORE_CHUNK);
}

/* The most bytes that `count` numbers may take; and packing them, which returns how many they took. */
static inline size_t weft_store_packed_max(uint64_t count) { return weft_store_chunks(count) * (2 + 16 * 32 + 48); }
size_t weft_store_pack(const uint32_t *x, size_t count, uint8_t *out);

/* The same chunk by chunk, the last one padded with zeros. */
typedef struct weft_store_packer {
  uint8_t *widths, *high, *bits;
} weft_store_packer; /* where the next one goes */
weft_store_packer weft_store_pack_begin(uint8_t *out, size_t count);
void weft_store_pack_next(weft_store_packer *packer, const uint32_t x[WEFT_STORE_CHUNK]);

/* Packed numbers: per chunk how many low bits its numbers have, how many bytes their high parts take (NULL: there are
 * none, as in version 1), and where its bits begin. */
typedef struct weft_store_packed {
  const uint8_t *widths, *high, *bits;
  uint64_t *begin;
} weft_store_packed;

/* Prepares `size` bytes, in a version of the format, for unpacking `count` numbers chunk by chunk. `begin` has room
 * for one entry per chunk. Returns 0 where the bytes cannot hold exactly that many numbers. */
int weft_store_packed_view(const uint8_t *bytes, size_t size, uint64_t count, int version, uint64_t *begin,
                           weft_store_packed *out);
void weft_store_unpack(const weft_store_packed *packed, size_t chunk, uint32_t out[WEFT_STORE_CHUNK]);
