/* Entries in any order; see store.h. All are counted by rows, which says which rows go into which block and how many
 * entries each block has. Then they are placed: a block's entries go to its own stretch of a file without a name,
 * through a buffer. Finally each block is read, put in order and written. So everything is written once and read once
 * more, within the memory that was asked for. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "store/store.h"
#include "store/file/os.h"
#include "store/file/write.h"
#include "store/import/sort.h"

weft_status weft_store_sort_begin(weft_ctx *ctx, const weft_store_writer *writer, double memory,
                                  weft_store_sorter *sorter)
{
  weft_status st = WEFT_OK;
  weft_store_sort_end(sorter); /* of a first try */
  sorter->own.memory = ctx->memory;
  sorter->mem = weft_arena_begin(ctx);
  sorter->memory = memory;
  WEFT_TAKE0(sorter->counts, &sorter->mem, (size_t) writer->n + 1);
done:
  sorter->mem.ctx = &sorter->own;
  if (st != WEFT_OK) weft_store_sort_end(sorter);
  return st;
}

void weft_store_sort_end(weft_store_sorter *sorter)
{
  if (sorter->file) weft_file_close(sorter->file - 1);
  if (sorter->mem.blocks) weft_arena_end(&sorter->mem);
  memset(sorter, 0, sizeof *sorter);
}

void weft_store_sort_count(weft_store_sorter *sorter, uint64_t row) { sorter->counts[row]++; }

static size_t count_blocks(const weft_store_writer *writer, const weft_store_sorter *sorter)
{
  size_t blocks = 0;
  for (uint64_t row = 0; row < writer->n; blocks++) row += weft_store_fit(writer, sorter->counts, row, writer->n, 0, 0);
  return blocks;
}

/* From the counts of rows: which rows make a block, where its entries go in the file without a name, and a buffer for
 * each block. s owns all of it until weft_store_sort_end(). */
weft_status weft_store_sort_plan(weft_ctx *ctx, weft_store_writer *writer, weft_store_sorter *sorter)
{
  weft_status st = WEFT_OK;
  char *path;
  weft_arena mem = weft_arena_begin(ctx);
  uint64_t row = 0, total = 0;
  sorter->mem.ctx = ctx;
  sorter->blocks = count_blocks(writer, sorter);
  WEFT_TAKE0(sorter->first_row, &sorter->mem, sorter->blocks + 1);
  WEFT_TAKE0(sorter->begin, &sorter->mem, sorter->blocks + 1);
  WEFT_TAKE0(sorter->placed, &sorter->mem, sorter->blocks + 1);
  WEFT_TAKE0(sorter->held, &sorter->mem, sorter->blocks + 1);
  WEFT_TAKE0(sorter->block_of, &sorter->mem, (size_t) writer->n + 1);
  sorter->room = (size_t) (sorter->memory / 4 / sizeof *sorter->buffer / (double) (sorter->blocks + 1)) + 16;
  WEFT_TAKE(sorter->buffer, &sorter->mem, sorter->room * (sorter->blocks + 1));
  for (size_t k = 0; k < sorter->blocks; k++) {
    const uint64_t rows = weft_store_fit(writer, sorter->counts, row, writer->n, 0, 0);
    sorter->first_row[k] = row;
    sorter->begin[k] = total;
    for (uint64_t i = row; i < row + rows; i++) {
      sorter->block_of[i] = (uint32_t) k;
      total += sorter->counts[i];
    }
    row += rows;
  }
  sorter->first_row[sorter->blocks] = row;
  sorter->begin[sorter->blocks] = total;
  WEFT_TAKE(path, &mem, strlen(writer->part) + 8);
  snprintf(path, strlen(writer->part) + 8, "%s.sort", writer->part);
  if (!sorter->file) sorter->file = weft_store_os_scratch(path) + 1;
  if (!sorter->file) st = weft_fail(ctx, WEFT_ERR_INPUT, "Can't make '%s.sort': %s.", writer->name, strerror(errno));
done:
  sorter->mem.ctx = &sorter->own;
  weft_arena_end(&mem);
  return st;
}

static weft_status changed(weft_ctx *ctx)
{
  return weft_fail(ctx, WEFT_ERR_INPUT, "The data changed while they were read.");
}

static weft_status empty_buffer(weft_ctx *ctx, const weft_store_writer *writer, weft_store_sorter *sorter, size_t k)
{
  const size_t size = sizeof *sorter->buffer;
  weft_status st = WEFT_OK;
  if (sorter->placed[k] + sorter->held[k] > sorter->begin[k + 1] - sorter->begin[k]) return changed(ctx);
  WEFT_TRY(weft_poll(ctx, 0, 0));
  WEFT_TRY(weft_store_os_write(ctx, sorter->file - 1, writer->name, (sorter->begin[k] + sorter->placed[k]) * size,
                               sorter->buffer + k * sorter->room, sorter->held[k] * size));
  sorter->placed[k] += sorter->held[k];
  sorter->held[k] = 0;
done:
  return st;
}

weft_status weft_store_sort_place(weft_ctx *ctx, weft_store_writer *writer, weft_store_sorter *sorter, uint64_t row,
                                  uint64_t column, double value)
{
  const size_t k = sorter->block_of[row];
  const weft_store_entry entry = { (uint32_t) (row - sorter->first_row[k]), (uint32_t) column, value };
  if (sorter->held[k] == sorter->room) {
    const weft_status st = empty_buffer(ctx, writer, sorter, k);
    if (st != WEFT_OK) return st;
  }
  sorter->buffer[k * sorter->room + sorter->held[k]++] = entry;
  return WEFT_OK;
}

/* Empties the buffers, then reads block after block and writes it to the store. Fails where there are not as many
 * entries as were counted: the source changed between its two readings. */
weft_status weft_store_sort_drain(weft_ctx *ctx, weft_store_writer *writer, weft_store_sorter *sorter)
{
  weft_status st = WEFT_OK;
  for (size_t k = 0; k < sorter->blocks; k++)
    if (sorter->held[k]) WEFT_TRY(empty_buffer(ctx, writer, sorter, k));
  for (size_t k = writer->blocks + writer->waiting; k < sorter->blocks; k++) {
    const uint64_t count = sorter->begin[k + 1] - sorter->begin[k];
    if (sorter->placed[k] != count) return changed(ctx);
    WEFT_TRY(weft_store_room(ctx, writer, (size_t) count));
    WEFT_TRY(weft_store_os_read(ctx, sorter->file - 1, writer->name, sorter->begin[k] * sizeof *writer->entry,
                                writer->entry, (size_t) count * sizeof *writer->entry));
    writer->count = (size_t) count;
    WEFT_TRY(weft_store_flush(ctx, writer, sorter->first_row[k + 1] - sorter->first_row[k]));
  }
done:
  return st;
}
