/* Rows and columns in memory, into a store. */
#pragma once

#include "store/store.h"

/* Adds rows to the store; rows->done counts those that are in, also after an error. */
weft_status weft_store_take_rows(weft_ctx *ctx, weft_store_writer *writer, weft_store_rows *rows);
/* All of these as entries, for which there is room; *count: how many there are. */
weft_status weft_store_entries(weft_ctx *ctx, const weft_store_rows *rows, uint64_t p, weft_store_entry *out,
                               size_t *count);

/* The store's next `rows` rows, as compressed columns or, where starts is NULL, as a dense matrix; p columns. */
typedef struct weft_store_columns {
  uint64_t first;
  size_t rows, done;
  const int32_t *starts, *at;
  weft_store_values values;
} weft_store_columns;
/* Adds the rows of these columns; columns->done counts those that are in, also after an error. */
weft_status weft_store_take_columns(weft_ctx *ctx, weft_store_writer *writer, weft_store_columns *columns);
