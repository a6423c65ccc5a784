/* Matrix Market text, piece after piece. */
#pragma once

#include "store/store.h"

typedef struct weft_store_market {
  int begun, sized;           /* the first line, and the line of sizes, have been read */
  int dense, pattern, mirror; /* mirror: 1 symmetric, -1 skew-symmetric */
  int half;                   /* an entry was handed over, its mirror image was not */
  uint64_t line, rows, columns, stored, read;
  uint64_t row, column; /* of the next value of a dense matrix */
  int skipping;         /* a long comment */
  size_t held;
  char carry[512]; /* the beginning of a line whose end has not come yet */
} weft_store_market;

/* What is done with an entry, rows and columns as in the file and from 0. */
typedef weft_status (*weft_store_entry_work)(weft_ctx *ctx, void *data, uint64_t row, uint64_t column, double value);

/* Reads bytes *at .. size - 1, and moves *at; with `size_only` until the sizes are known. */
weft_status weft_store_market_read(weft_ctx *ctx, weft_store_market *market, const uint8_t *bytes, size_t size,
                                   size_t *at, int size_only, weft_store_entry_work work, void *data);
/* The file has ended: an error unless everything it announced has come. */
weft_status weft_store_market_end(weft_ctx *ctx, weft_store_market *market, weft_store_entry_work work, void *data);
