/* Entries in any order, into a store, through a file that has no name. */
#pragma once

#include "store/store.h"

/* First all entries are counted, then all are placed (in a file without a name, where each block has its place), then
 * the blocks are written. */
typedef struct weft_store_sorter {
  int file;                             /* descriptor + 1 */
  uint32_t *counts;                     /* entries of each row */
  size_t blocks, room;                  /* `room`: entries of a block's buffer */
  uint64_t *first_row, *begin, *placed; /* blocks + 1, blocks + 1, blocks */
  uint32_t *block_of;                   /* per row */
  weft_store_entry *buffer;
  size_t *held; /* entries in a block's buffer */
  double memory;
  weft_arena mem;
  weft_ctx own;
} weft_store_sorter;

weft_status weft_store_sort_begin(weft_ctx *ctx, const weft_store_writer *writer, double memory,
                                  weft_store_sorter *out);
/* One entry of the row. */
void weft_store_sort_count(weft_store_sorter *sorter, uint64_t row);
/* After all were counted: makes the file and the places. */
weft_status weft_store_sort_plan(weft_ctx *ctx, weft_store_writer *writer, weft_store_sorter *sorter);
weft_status weft_store_sort_place(weft_ctx *ctx, weft_store_writer *writer, weft_store_sorter *sorter, uint64_t row,
                                  uint64_t column, double value);
/* Writes all blocks to the store; an error where other entries were placed than counted. */
weft_status weft_store_sort_drain(weft_ctx *ctx, weft_store_writer *writer, weft_store_sorter *sorter);
void weft_store_sort_end(weft_store_sorter *sorter);
