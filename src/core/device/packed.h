/* Rows of a sparse matrix as blocks of compressed columns that are packed as in a store (inst/store-format.md), for a
 * device to unpack: sending these bytes and unpacking them there takes a tenth of the time of sending numbers that the
 * host's threads have unpacked. store/file/device_blocks.c makes a panel, packed.cu unpacks it. */
#pragma once

#include "core/call/arena.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_PACKED_CHUNK 128 /* numbers that have the same number of low bits */

/* A stream of whole numbers, as places in the panel's bytes of three arrays with an entry per chunk: the number of low
 * bits, the bytes of the high parts (high 0: there are none), and where the chunk begins behind `bits` (64 bits each).
 */
typedef struct weft_packed_numbers {
  uint64_t widths, high, bits, begin;
} weft_packed_numbers;

/* Entries lie column by column. gaps: rows between one entry of a column and the next. */
typedef struct weft_packed_block {
  uint64_t row, rows, values;
  uint64_t entry;                  /* the first of them among those of all blocks */
  weft_packed_numbers gaps, whole; /* whole: the values less 1 */
  uint64_t raw, raw_bytes;         /* instead of them, numbers of 4 or 8 bytes; raw_bytes 0: none */
} weft_packed_block;

/* Rows row .. row + n - 1 of a matrix with p columns. A value v of row i becomes v / size[i], then log1p. Entries of
 * column j of block b are first[b p + j] and those that follow among the block's, which may have more columns; they go
 * to places place[b p + j] .. place[(b + 1) p + j] - 1 of the panel's. */
typedef struct weft_packed_panel {
  size_t row, n, p, blocks, stored;
  uint8_t *bytes; /* all that follows, where the block table is first */
  size_t size;
  const void *there; /* where the device has the block table and the streams already (resident.h); else NULL */
  uint64_t at_size, at_first, at_place; /* double (0: nothing is divided), uint32_t, uint32_t */
  int log1p;
} weft_packed_panel;

static inline const weft_packed_block *weft_packed_blocks(const weft_packed_panel *x)
{
  return (const weft_packed_block *) (const void *) x->bytes;
}

/* A panel, and the memory in which the next one is made. */
typedef struct weft_packed {
  weft_packed_panel panel;
  size_t room;
  weft_arena mem;
  weft_ctx own; /* of that memory, which outlives a call */
} weft_packed;

/* Room for `bytes` bytes at x->panel.bytes, kept for the panels that follow: new pages would take longer than reading
 * into them. weft_packed_end() gives it back (panels.c). */
weft_status weft_packed_room(weft_ctx *ctx, weft_packed *x, size_t bytes);
void weft_packed_end(weft_packed *x);

/* From how many entries column j of block b has, at place[(b + 1) p + j], to where they go; panel->stored is how many
 * there are, and more than `most` are refused. */
weft_status weft_packed_places(weft_ctx *ctx, weft_packed_panel *panel, double most);

/* Places behind one another, each for words of up to eight bytes. */
static inline uint64_t weft_packed_reserve(uint64_t *at, uint64_t bytes)
{
  const uint64_t here = *at;
  *at += (bytes + 7) / 8 * 8;
  return here;
}

#ifdef __cplusplus
}
#endif
