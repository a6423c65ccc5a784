/* One block: entries by columns <-> bytes. */
#pragma once

#include "store/store.h"
#include "store/file/bitpack.h"

/* Entries in the order of columns, and of rows within a column, each place once and no zeros, as bytes taken from
 * `mem`; `kind` says how values are held. */
weft_status weft_store_encode(weft_ctx *ctx, const weft_store_entry *entry, size_t count, uint64_t p, weft_arena *mem,
                              uint8_t **bytes, uint64_t *size, uint32_t *kind);

/* A block that was read, its lengths checked: entry e of column j has starts[j] <= e < starts[j + 1]. */
typedef struct weft_store_view {
  const weft_store_block *block;
  size_t index, p;
  uint32_t *starts; /* p + 1 */
  weft_store_packed gaps, whole;
  const uint8_t *raw;
} weft_store_view;

/* The parts of view live in `mem`. `counts_only`: `bytes` are the block's head, of which only `starts` are made. */
weft_status weft_store_parse(weft_ctx *ctx, const weft_store *store, size_t index, const uint8_t *bytes,
                             int counts_only, weft_arena *mem, weft_store_view *out);

/* A block to decode. Entry e of a column goes to rows[e + shift] and values[e + shift], with the column's shift (modulo
 * 2^64; `shift` NULL: 0); `base` is added to rows, which are those in the block. */
typedef struct weft_store_decoding {
  const weft_store_view *view;
  int32_t *rows;
  double *values;
  const size_t *shift;
  int32_t base;
} weft_store_decoding;

#define WEFT_STORE_GROUP 32 /* columns that a thread decodes at a time */

/* Decodes the columns at places first .. last - 1 of `columns`, a rising list (NULL: all); decoding->shift has an
 * entry per place. Returns 0 where an entry lies outside the block's rows. */
int weft_store_decode(const weft_store_decoding *decoding, const double *columns, size_t first, size_t last);

weft_status weft_store_damaged(weft_ctx *ctx, const weft_store *store, size_t index, const char *what);
