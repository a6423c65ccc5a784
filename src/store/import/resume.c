/* Imports that continue where one was stopped; see store.h. The unfinished file has a name of its own beside the
 * store's, and so has a list of the blocks that were written to it: a head that says what is imported, and 48 bytes per
 * block. Blocks are taken over as long as they lie one after another and have their checksums, and the rest is cut off.
 * An unfinished file has no header, so that it cannot be opened as a store. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "store/file/block.h"
#include "store/file/os.h"
#include "store/file/write.h"
#include "store/import/resume.h"

#define MAGIC "\x89weftgo\n"
enum { HEAD = 48, RECORD = 48 };

static void put_head(const weft_store_writer *writer, const char *key, uint8_t out[HEAD])
{
  memset(out, 0, HEAD);
  memcpy(out, MAGIC, 8);
  weft_store_put(out + 8, WEFT_STORE_VERSION, 8);
  weft_store_put(out + 16, writer->n, 8);
  weft_store_put(out + 24, writer->p, 8);
  weft_store_put(out + 32, writer->max_entries, 8);
  weft_store_put(out + 40, weft_store_crc(0, key, strlen(key)), 4);
  weft_store_put(out + 44, weft_store_crc(0, out, 44), 4);
}

static void put_record(const weft_store_block *block, uint8_t out[RECORD])
{
  const uint64_t parts[] = { block->offset, block->bytes, block->values, block->rows };
  for (int i = 0; i < 4; i++) weft_store_put(out + 8 * i, parts[i], 8);
  weft_store_put(out + 32, block->kind, 4);
  weft_store_put(out + 36, block->crc, 4);
  weft_store_put(out + 40, 0, 4);
  weft_store_put(out + 44, weft_store_crc(0, out, 44), 4);
}

weft_status weft_store_resume_add(weft_ctx *ctx, const weft_store_writer *writer, size_t index)
{
  uint8_t record[RECORD];
  if (!writer->list) return WEFT_OK;
  put_record(&writer->block[index], record);
  return weft_store_os_write(ctx, writer->list - 1, writer->name, HEAD + (uint64_t) index * RECORD, record, RECORD);
}

/* The next block of the list, if it is what the list says. */
static weft_status take_block(weft_ctx *ctx, weft_store_writer *writer, const uint8_t *record, uint64_t size,
                              int *sound)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  uint8_t again[RECORD], *bytes;
  const weft_store_block block = { .offset = weft_store_get(record, 8),
                                   .bytes = weft_store_get(record + 8, 8),
                                   .values = weft_store_get(record + 16, 8),
                                   .rows = weft_store_get(record + 24, 8),
                                   .kind = (uint32_t) weft_store_get(record + 32, 4),
                                   .crc = (uint32_t) weft_store_get(record + 36, 4),
                                   .first = writer->first };
  put_record(&block, again);
  *sound = !memcmp(record, again, RECORD) && block.offset == writer->at && block.bytes <= size &&
           block.offset <= size - block.bytes && block.rows >= 1 && block.rows <= WEFT_STORE_ROWS &&
           block.rows <= writer->n - writer->first;
  if (!*sound) goto done;
  WEFT_TAKE(bytes, &mem, (size_t) block.bytes);
  WEFT_TRY(weft_store_os_read(ctx, writer->file - 1, writer->name, block.offset, bytes, (size_t) block.bytes));
  *sound = weft_store_crc(0, bytes, (size_t) block.bytes) == block.crc;
  if (!*sound) goto done;
  WEFT_TRY(weft_store_room_for_blocks(ctx, writer, 1));
  writer->block[writer->blocks++] = block;
  writer->at += block.bytes;
  writer->first += block.rows;
  writer->values += block.values;
done:
  weft_arena_end(&mem);
  return st;
}

/* Takes over the blocks that the list names, where it has this import's head; stops at the first that is not sound.
 * Without a sound head nothing is taken over. */
static weft_status take_list(weft_ctx *ctx, weft_store_writer *writer, const uint8_t *head, uint64_t size,
                             uint64_t listed)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t count = listed < HEAD ? 0 : (size_t) ((listed - HEAD) / RECORD);
  uint8_t *list;
  int sound = listed >= HEAD;
  if (!sound) goto done;
  WEFT_TAKE(list, &mem, HEAD + count * RECORD);
  WEFT_TRY(weft_store_os_read(ctx, writer->list - 1, writer->name, 0, list, HEAD + count * RECORD));
  sound = !memcmp(list, head, HEAD);
  for (size_t k = 0; k < count && sound; k++) {
    WEFT_TRY(weft_poll(ctx, (double) writer->first, (double) writer->n));
    WEFT_TRY(take_block(ctx, writer, list + HEAD + k * RECORD, size, &sound));
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* Opens and locks file and list of an import that was stopped, takes over its sound blocks (none if `anew`), and cuts
 * both behind them. WEFT_ERR_INPUT where another process is writing. */
weft_status weft_store_resume(weft_ctx *ctx, weft_store_writer *writer, const char *key, int anew)
{
  weft_status st = WEFT_OK;
  uint8_t head[HEAD];
  uint64_t size, listed;
  const size_t length = strlen(writer->part) + 8;
  WEFT_TAKE(writer->list_path, &writer->mem, length);
  snprintf(writer->list_path, length, "%s.list", writer->part);
  writer->list = weft_store_os_keep(writer->list_path, &listed) + 1;
  if (writer->list) writer->file = weft_store_os_keep(writer->part, &size) + 1;
  if (!writer->file)
    return weft_fail(ctx, WEFT_ERR_INPUT, "Can't go on with '%s': %s.", writer->name,
                     errno == EAGAIN || errno == EACCES ? "another import may be writing it" : strerror(errno));
  put_head(writer, key, head);
  if (!anew) WEFT_TRY(take_list(ctx, writer, head, size, listed));
  writer->last = writer->resumed = writer->first;
  WEFT_TRY(weft_store_os_cut(ctx, writer->list - 1, writer->name,
                             writer->blocks ? HEAD + (uint64_t) writer->blocks * RECORD : 0));
  WEFT_TRY(weft_store_os_cut(ctx, writer->file - 1, writer->name, writer->at));
  if (!writer->blocks) WEFT_TRY(weft_store_os_write(ctx, writer->list - 1, writer->name, 0, head, HEAD));
done:
  return st;
}
