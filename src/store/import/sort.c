/* Entries in any order; see store.h. All are counted by rows, which says which rows go into which block and how many
 * entries each block has. Then they are placed: a block's entries go to its own stretch of a file without a name,
 * through a buffer. Finally each block is read, put in order and written. So everything is written once and read once
 * more, within the memory that was asked for. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "store/store.h"
#include "store/file/os.h"

weft_status weft_store_sort_begin(weft_ctx *ctx, const weft_store_writer *w, double memory, weft_store_sorter *s)
{
  weft_status st = WEFT_OK;
  weft_store_sort_end(s); /* of a first try */
  s->own.memory = ctx->memory;
  s->mem = weft_arena_begin(ctx);
  s->memory = memory;
  WEFT_TAKE0(s->counts, &s->mem, (size_t) w->n + 1);
done:
  s->mem.ctx = &s->own;
  if (st != WEFT_OK) weft_store_sort_end(s);
  return st;
}

void weft_store_sort_end(weft_store_sorter *s)
{
  if (s->file) weft_file_close(s->file - 1);
  if (s->mem.blocks) weft_arena_end(&s->mem);
  memset(s, 0, sizeof *s);
}

void weft_store_sort_count(weft_store_sorter *s, uint64_t row) { s->counts[row]++; }

static size_t count_blocks(const weft_store_writer *w, const weft_store_sorter *s)
{
  size_t blocks = 0;
  for (uint64_t row = 0; row < w->n; blocks++) row += weft_store_fit(w, s->counts, row, w->n, 0, 0);
  return blocks;
}

/* From the counts of rows: which rows make a block, where its entries go in the file without a name, and a buffer for
 * each block. s owns all of it until weft_store_sort_end(). */
weft_status weft_store_sort_plan(weft_ctx *ctx, weft_store_writer *w, weft_store_sorter *s)
{
  weft_status st = WEFT_OK;
  char *path;
  weft_arena mem = weft_arena_begin(ctx);
  uint64_t row = 0, total = 0;
  s->mem.ctx = ctx;
  s->blocks = count_blocks(w, s);
  WEFT_TAKE0(s->first_row, &s->mem, s->blocks + 1);
  WEFT_TAKE0(s->begin, &s->mem, s->blocks + 1);
  WEFT_TAKE0(s->placed, &s->mem, s->blocks + 1);
  WEFT_TAKE0(s->held, &s->mem, s->blocks + 1);
  WEFT_TAKE0(s->block_of, &s->mem, (size_t) w->n + 1);
  s->room = (size_t) (s->memory / 4 / sizeof *s->buffer / (double) (s->blocks + 1)) + 16;
  WEFT_TAKE(s->buffer, &s->mem, s->room * (s->blocks + 1));
  for (size_t k = 0; k < s->blocks; k++) {
    const uint64_t rows = weft_store_fit(w, s->counts, row, w->n, 0, 0);
    s->first_row[k] = row;
    s->begin[k] = total;
    for (uint64_t i = row; i < row + rows; i++) {
      s->block_of[i] = (uint32_t) k;
      total += s->counts[i];
    }
    row += rows;
  }
  s->first_row[s->blocks] = row;
  s->begin[s->blocks] = total;
  WEFT_TAKE(path, &mem, strlen(w->part) + 8);
  snprintf(path, strlen(w->part) + 8, "%s.sort", w->part);
  if (!s->file) s->file = weft_store_os_scratch(path) + 1;
  if (!s->file) st = weft_fail(ctx, WEFT_ERR_INPUT, "Can't make '%s.sort': %s.", w->name, strerror(errno));
done:
  s->mem.ctx = &s->own;
  weft_arena_end(&mem);
  return st;
}

static weft_status changed(weft_ctx *ctx)
{
  return weft_fail(ctx, WEFT_ERR_INPUT, "The data changed while they were read.");
}

static weft_status empty_buffer(weft_ctx *ctx, const weft_store_writer *w, weft_store_sorter *s, size_t k)
{
  const size_t size = sizeof *s->buffer;
  weft_status st = WEFT_OK;
  if (s->placed[k] + s->held[k] > s->begin[k + 1] - s->begin[k]) return changed(ctx);
  WEFT_TRY(weft_poll(ctx, 0, 0));
  WEFT_TRY(weft_store_os_write(ctx, s->file - 1, w->name, (s->begin[k] + s->placed[k]) * size, s->buffer + k * s->room,
                               s->held[k] * size));
  s->placed[k] += s->held[k];
  s->held[k] = 0;
done:
  return st;
}

weft_status weft_store_sort_place(weft_ctx *ctx, weft_store_writer *w, weft_store_sorter *s, uint64_t row,
                                  uint64_t column, double value)
{
  const size_t k = s->block_of[row];
  const weft_store_entry entry = { (uint32_t) (row - s->first_row[k]), (uint32_t) column, value };
  if (s->held[k] == s->room) {
    const weft_status st = empty_buffer(ctx, w, s, k);
    if (st != WEFT_OK) return st;
  }
  s->buffer[k * s->room + s->held[k]++] = entry;
  return WEFT_OK;
}

/* Empties the buffers, then reads block after block and writes it to the store. Fails where there are not as many
 * entries as were counted: the source changed between its two readings. */
weft_status weft_store_sort_drain(weft_ctx *ctx, weft_store_writer *w, weft_store_sorter *s)
{
  weft_status st = WEFT_OK;
  for (size_t k = 0; k < s->blocks; k++)
    if (s->held[k]) WEFT_TRY(empty_buffer(ctx, w, s, k));
  if (w->resumed && (w->blocks + w->waiting > s->blocks || s->first_row[w->blocks + w->waiting] != w->first))
    return changed(ctx);
  for (size_t k = w->blocks + w->waiting; k < s->blocks; k++) {
    const uint64_t count = s->begin[k + 1] - s->begin[k];
    if (s->placed[k] != count) return changed(ctx);
    WEFT_TRY(weft_store_room(ctx, w, (size_t) count));
    WEFT_TRY(weft_store_os_read(ctx, s->file - 1, w->name, s->begin[k] * sizeof *w->entry, w->entry,
                                (size_t) count * sizeof *w->entry));
    w->count = (size_t) count;
    WEFT_TRY(weft_store_flush(ctx, w, s->first_row[k + 1] - s->first_row[k]));
  }
done:
  return st;
}
