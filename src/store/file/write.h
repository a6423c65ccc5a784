/* Rows in, blocks out: a store that is being made. */
#pragma once

#include "store/store.h"

/* Work functions may be run a second time when memory was short: each of the following functions either completes or
 * does nothing. */

/* `memory`: bytes that a block being made may take. */
weft_status weft_store_begin(weft_ctx *ctx, const char *path, int overwrite, uint64_t n, uint64_t p, double memory,
                             weft_store_writer *out);
/* One entry. Rows come in order, but for those of the block that is being filled. *late: the row's block has been
 * written, and nothing was done. */
weft_status weft_store_push(weft_ctx *ctx, weft_store_writer *writer, uint64_t row, uint64_t column, double value,
                            int *late);
/* Closes a block of the next `rows` rows, with their entries; it waits and is written together with others. */
weft_status weft_store_flush(weft_ctx *ctx, weft_store_writer *writer, uint64_t rows);
/* Makes room for `count` entries in the open block. */
weft_status weft_store_room(weft_ctx *ctx, weft_store_writer *writer, size_t count);
/* How many rows from `first` on, by how many entries each has, go into a block that has `count` entries of rows
 * before them, `before` rows: 0 where not even one does. */
uint64_t weft_store_fit(const weft_store_writer *writer, const uint32_t *counts, uint64_t first, uint64_t end,
                        uint64_t count, uint64_t before);
/* A vector, when all rows have come. */
weft_status weft_store_add_section(weft_ctx *ctx, weft_store_writer *writer, const char *name, weft_store_type type,
                                   uint64_t count, const uint8_t *bytes, uint64_t size);
/* Writes what is open, the directory and the header, and gives the file its name. */
weft_status weft_store_finish(weft_ctx *ctx, weft_store_writer *writer);
/* Removes what was written, unless it is finished. */
void weft_store_abandon(weft_store_writer *writer);

/* Rows that make one block, the next ones, where no block is open. Their arrays must stay until weft_store_settle(). */
weft_status weft_store_take_block(weft_ctx *ctx, weft_store_writer *writer, const weft_store_rows *rows);

/* Writes the blocks that wait. */
weft_status weft_store_settle(weft_ctx *ctx, weft_store_writer *writer);
