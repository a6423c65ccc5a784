/* Rows in, blocks out; see store.h. The file has a temporary name, and no header, until it is whole: what a killed
 * process leaves behind cannot be opened. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "store/file/block.h"
#include "store/file/os.h"
#include "store/file/blocks_parallel.h"
#include "store/file/write.h"
#include "store/import/from_memory.h"
#include "store/file/block_of_rows.h"

#define MAX_ENTRIES ((size_t) 1 << 19) /* of a block: 6 MB when it is decoded */
#define MIN_ENTRIES ((size_t) 1 << 12)
#define BYTES_EACH (64 * WEFT_STORE_WAITING) /* of an entry while blocks are made: itself, sorted, packed */

static weft_status push_bytes(weft_ctx *ctx, weft_store_writer *writer, const uint8_t *bytes, uint64_t size)
{
  const weft_status st = weft_store_os_write(ctx, writer->file - 1, writer->name, writer->at, bytes, (size_t) size);
  if (st == WEFT_OK) writer->at += size;
  return st;
}

/* A larger copy of an array of the writer's. The part that is not used yet is not cleared: the system provides its
 * pages when they are written, so that a small import does not pay for the room of a large one. */
static void *grown(weft_arena *mem, void *old, size_t used, size_t room, size_t size)
{
  void *out = weft_arena_take(mem, room, size);
  if (!out) return NULL;
  if (used) memcpy(out, old, used * size);
  weft_arena_drop(mem, old);
  return out;
}

/* The writer outlives the call: in a call, its memory is the call's. */
static void bind(weft_store_writer *writer, weft_ctx *ctx) { writer->mem.ctx = ctx ? ctx : &writer->own; }

/* Makes the file under a temporary name beside `path`, which it gets when finished. *writer owns everything until it is
 * finished or abandoned; after a failure it is abandoned. */
weft_status weft_store_begin(weft_ctx *ctx, const char *path, int overwrite, uint64_t n, uint64_t p, double memory,
                             weft_store_writer *writer)
{
  weft_status st = WEFT_OK;
  const char *slash = strrchr(path, '/');
  const size_t folder = slash ? (size_t) (slash - path) + 1 : 0, length = strlen(path);
  const size_t fits = (size_t) (memory / BYTES_EACH);
  weft_store_abandon(writer); /* of a first try */
  writer->own.memory = ctx->memory;
  writer->mem = weft_arena_begin(ctx);
  WEFT_TAKE0(writer->path, &writer->mem, length + 1);
  WEFT_TAKE0(writer->name, &writer->mem, length + 1);
  WEFT_TAKE0(writer->part, &writer->mem, length + 32);
  memcpy(writer->path, path, length);
  memcpy(writer->name, path + folder, length - folder);
  writer->overwrite = overwrite;
  writer->n = n;
  writer->p = p;
  writer->max_entries = fits < MIN_ENTRIES ? MIN_ENTRIES : fits > MAX_ENTRIES ? MAX_ENTRIES : fits;
  writer->at = WEFT_STORE_HEADER;
  writer->slots = ctx->threads < WEFT_STORE_WAITING ? (size_t) ctx->threads : WEFT_STORE_WAITING;
  weft_store_crc(0, NULL, 0); /* its table, before threads ask for it */
  WEFT_TRY(weft_store_room(ctx, writer, writer->max_entries));
  for (int tries = 0; tries < 100 && !writer->file; tries++) {
    snprintf(writer->part, length + 32, "%.*s.%s.%08llx.part", (int) folder, path, writer->name,
             (unsigned long long) weft_file_unique() & 0xffffffffull);
    writer->file = weft_file_create(writer->part) + 1;
    if (!writer->file && errno != EEXIST) break;
  }
  if (!writer->file) st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' cannot be written: %s.", writer->name, strerror(errno));
done:
  bind(writer, NULL);
  if (st != WEFT_OK) weft_store_abandon(writer);
  return st;
}

void weft_store_abandon(weft_store_writer *writer)
{
  if (writer->file) {
    weft_file_close(writer->file - 1);
    weft_store_os_remove(writer->part);
  }
  if (writer->mem.blocks) weft_arena_end(&writer->mem);
  memset(writer, 0, sizeof *writer);
}

static weft_status room_for(weft_ctx *ctx, weft_store_writer *writer, weft_store_entry **entry, size_t *room,
                            size_t used, size_t count)
{
  if (count <= *room) return WEFT_OK;
  if (count > INT32_MAX) return weft_fail(ctx, WEFT_ERR_INPUT, "A row has more than 2147483647 entries.");
  size_t more = *room ? 2 * *room : writer->max_entries;
  if (more < count) more = count;
  bind(writer, ctx);
  weft_store_entry *larger = grown(&writer->mem, *entry, used, more, sizeof *larger);
  bind(writer, NULL);
  if (!larger) return WEFT_ERR_MEMORY;
  *entry = larger;
  *room = more;
  return WEFT_OK;
}

weft_status weft_store_room(weft_ctx *ctx, weft_store_writer *writer, size_t count)
{
  return room_for(ctx, writer, &writer->entry, &writer->room, writer->count, count);
}

/* ---- a block's entries in order ---- */

/* Stable, by a key below `keys`. */
static weft_status sort_by(weft_ctx *ctx, const weft_store_entry *from, size_t count, int by_row, size_t keys,
                           weft_store_entry *to)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  uint32_t *next, total = 0;
  WEFT_TAKE0(next, &mem, keys + 1);
  for (size_t i = 0; i < count; i++) next[by_row ? from[i].row : from[i].column]++;
  for (size_t k = 0; k < keys; k++) {
    const uint32_t here = next[k];
    next[k] = total;
    total += here;
  }
  for (size_t i = 0; i < count; i++) to[next[by_row ? from[i].row : from[i].column]++] = from[i];
done:
  weft_arena_end(&mem);
  return st;
}

/* Equal places are summed, zeros left out; how many remain. */
static size_t merge_equal(weft_store_entry *entry, size_t count)
{
  size_t kept = 0;
  for (size_t i = 0; i < count;) {
    weft_store_entry sum = entry[i++];
    for (; i < count && entry[i].column == sum.column && entry[i].row == sum.row; i++) sum.value += entry[i].value;
    if (sum.value != 0) entry[kept++] = sum;
  }
  return kept;
}

/* A block's entries by columns, rows rising; *out is x->entry where they were so, else a copy in `mem`. */
static weft_status in_order(weft_ctx *ctx, const weft_store_waiting *x, uint64_t p, weft_arena *mem,
                            weft_store_entry **out)
{
  weft_status st = WEFT_OK;
  weft_store_entry *from = x->entry, *to, *second;
  int rows_rise = 1, sorted = 1;
  for (size_t i = 1; i < x->count; i++) {
    rows_rise &= from[i - 1].row <= from[i].row;
    sorted &=
        from[i - 1].column < from[i].column || (from[i - 1].column == from[i].column && from[i - 1].row < from[i].row);
  }
  *out = from;
  if (sorted) return WEFT_OK;
  WEFT_TAKE(to, mem, x->count);
  if (!rows_rise) {
    WEFT_TAKE(second, mem, x->count);
    WEFT_TRY(sort_by(ctx, from, x->count, 1, (size_t) x->rows, second));
    from = second;
  }
  WEFT_TRY(sort_by(ctx, from, x->count, 0, (size_t) p, to));
  *out = to;
done:
  return st;
}

/* ---- blocks ---- */

typedef struct {
  weft_ctx *ctx; /* to which the bytes' memory belongs */
  const weft_store_writer *writer;
  weft_arena mem[WEFT_STORE_WAITING];
  uint8_t *bytes[WEFT_STORE_WAITING];
  weft_store_block block[WEFT_STORE_WAITING];
} encoding;

/* Encodes one waiting block on a thread of its own: from rows where they are plain, else from entries, sorted and with
 * equal places summed. Bytes are from all->mem[item]; the block's record gets sizes and checksum. */
static weft_status encode_one(weft_ctx *ctx, size_t item, void *data)
{
  encoding *all = data;
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  weft_store_waiting x = all->writer->wait[item];
  weft_store_block *block = &all->block[item];
  weft_store_entry *entry;
  all->mem[item].ctx = ctx;
  block->first = x.first;
  block->rows = x.rows;
  block->values = x.count;
  if (x.given.starts) {
    if (x.given.raw) WEFT_TRY(weft_raw_fill(ctx, x.given.raw, x.count));
    WEFT_TRY(weft_store_encode_rows(ctx, &x.given, all->writer->p, x.entry, &all->mem[item], &all->bytes[item],
                                    &block->bytes, &block->kind));
    if (all->bytes[item]) goto sum;
    WEFT_TRY(weft_store_entries(ctx, &x.given, all->writer->p, x.entry, &x.count));
  }
  WEFT_TRY(in_order(ctx, &x, all->writer->p, &own, &entry));
  block->values = merge_equal(entry, x.count);
  WEFT_TRY(weft_store_encode(ctx, entry, (size_t) block->values, all->writer->p, &all->mem[item], &all->bytes[item],
                             &block->bytes, &block->kind));
sum:
  block->crc = weft_store_crc(0, all->bytes[item], (size_t) block->bytes);
done:
  all->mem[item].ctx = all->ctx;
  weft_arena_end(&own);
  return st;
}

/* Takes the first `count` from those that wait; their memory is kept for others. */
static void no_longer_wait(weft_store_writer *writer, size_t count)
{
  for (size_t i = 0; i + count < writer->waiting; i++) {
    const weft_store_waiting first = writer->wait[i];
    writer->wait[i] = writer->wait[i + count];
    writer->wait[i + count] = first;
  }
  writer->waiting -= count;
}

static weft_status room_for_blocks(weft_ctx *ctx, weft_store_writer *writer, size_t more)
{
  if (writer->blocks + more <= writer->block_room) return WEFT_OK;
  bind(writer, ctx);
  weft_store_block *block = grown(&writer->mem, writer->block, writer->blocks, 2 * writer->blocks + 16, sizeof *block);
  bind(writer, NULL);
  if (!block) return WEFT_ERR_MEMORY;
  writer->block = block;
  writer->block_room = 2 * writer->blocks + 16;
  return WEFT_OK;
}

/* One thread per block; the blocks are written in their order. */
weft_status weft_store_settle(weft_ctx *ctx, weft_store_writer *writer)
{
  weft_status st = WEFT_OK;
  encoding all = { .ctx = ctx, .writer = writer };
  size_t done = 0, entries = 0;
  for (size_t i = 0; i < writer->waiting; i++) {
    all.mem[i] = weft_arena_begin(ctx);
    entries += writer->wait[i].count;
  }
  WEFT_TRY(weft_poll(ctx, (double) writer->first, (double) writer->n));
  WEFT_TRY(room_for_blocks(ctx, writer, writer->waiting));
  WEFT_TRY(weft_store_together(ctx, writer->waiting, 20.0 * (double) entries, encode_one, &all));
  for (; done < writer->waiting; done++) {
    all.block[done].offset = writer->at;
    WEFT_TRY(push_bytes(ctx, writer, all.bytes[done], all.block[done].bytes));
    writer->block[writer->blocks] = all.block[done];
    writer->blocks++;
    writer->values += all.block[done].values;
  }
done:
  for (size_t i = 0; i < writer->waiting; i++) weft_arena_end(&all.mem[i]);
  no_longer_wait(writer, done);
  return st;
}

/* Exchanges the open block's entries with a free slot's, so that nothing is copied; where all slots wait, these are
 * written first. */
weft_status weft_store_flush(weft_ctx *ctx, weft_store_writer *writer, uint64_t rows)
{
  weft_status st = WEFT_OK;
  if (writer->waiting == writer->slots) WEFT_TRY(weft_store_settle(ctx, writer));
  weft_store_waiting *to = &writer->wait[writer->waiting++];
  const weft_store_waiting open = {
    writer->entry, writer->room, writer->count, writer->first, rows, { .starts = NULL }
  };
  writer->entry = to->entry;
  writer->room = to->room;
  *to = open;
  writer->count = 0;
  writer->first += rows;
  writer->last = writer->first;
done:
  return st;
}

/* Queues the rows as they are; when all slots wait, they are encoded and written first. */
weft_status weft_store_take_block(weft_ctx *ctx, weft_store_writer *writer, const weft_store_rows *rows)
{
  weft_status st = WEFT_OK;
  const size_t count = (size_t) (rows->starts[rows->rows] - rows->starts[0]);
  if (writer->waiting == writer->slots) WEFT_TRY(weft_store_settle(ctx, writer));
  weft_store_waiting *to = &writer->wait[writer->waiting];
  WEFT_TRY(room_for(ctx, writer, &to->entry, &to->room, 0, count));
  to->count = count;
  to->first = writer->first;
  to->rows = rows->rows;
  to->given = *rows;
  writer->waiting++;
  writer->first += rows->rows;
  writer->last = writer->first;
done:
  return st;
}

/* The open block without its last row, which begins the next one. */
static weft_status flush_but_last(weft_ctx *ctx, weft_store_writer *writer)
{
  const uint32_t last = (uint32_t) (writer->last - writer->first);
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_store_entry *kept;
  size_t before = 0, moved = 0;
  if (writer->waiting == writer->slots)
    WEFT_TRY(weft_store_settle(ctx, writer)); /* nothing can fail once entries have moved, */
  WEFT_TAKE(kept, &mem, writer->count);
  for (size_t i = 0; i < writer->count; i++) moved += writer->entry[i].row == last;
  WEFT_TRY(room_for(ctx, writer, &writer->wait[writer->waiting].entry, &writer->wait[writer->waiting].room, 0,
                    moved)); /* for there is room */
  moved = 0;
  for (size_t i = 0; i < writer->count; i++)
    if (writer->entry[i].row == last)
      kept[moved++] = writer->entry[i];
    else
      writer->entry[before++] = writer->entry[i];
  writer->count = before;
  WEFT_TRY(weft_store_flush(ctx, writer, last));
  for (size_t i = 0; i < moved; i++) kept[i].row = 0;
  memcpy(writer->entry, kept, moved * sizeof *kept);
  writer->count = moved;
done:
  weft_arena_end(&mem);
  return st;
}

/* Adds an entry to the open block; closes blocks that are full (rows or entries) or that the row is beyond. */
weft_status weft_store_push(weft_ctx *ctx, weft_store_writer *writer, uint64_t row, uint64_t column, double value,
                            int *late)
{
  weft_status st = WEFT_OK;
  *late = row < writer->first;
  if (*late || value == 0) return WEFT_OK;
  while (row - writer->first >= WEFT_STORE_ROWS) WEFT_TRY(weft_store_flush(ctx, writer, WEFT_STORE_ROWS));
  if (writer->count >= writer->max_entries) {
    if (row > writer->last)
      WEFT_TRY(weft_store_flush(ctx, writer, row - writer->first));
    else if (writer->last > writer->first)
      WEFT_TRY(flush_but_last(ctx, writer));
    *late = row < writer->first;
    if (*late) return WEFT_OK;
  }
  WEFT_TRY(weft_store_room(ctx, writer, writer->count + 1));
  const weft_store_entry entry = { (uint32_t) (row - writer->first), (uint32_t) column, value };
  writer->entry[writer->count++] = entry;
  if (row > writer->last) writer->last = row;
done:
  return st;
}

uint64_t weft_store_fit(const weft_store_writer *writer, const uint32_t *counts, uint64_t first, uint64_t end,
                        uint64_t count, uint64_t before)
{
  uint64_t rows = 0;
  for (; first + rows < end && before + rows < WEFT_STORE_ROWS; rows++) {
    const uint64_t here = counts[first + rows];
    if (here && count && count + here > writer->max_entries) break;
    count += here;
  }
  return rows;
}

/* Everything that waits, the open block, and empty ones up to the last row. */
static weft_status close_rows(weft_ctx *ctx, weft_store_writer *writer)
{
  weft_status st = WEFT_OK;
  while (writer->first < writer->n && st == WEFT_OK) {
    const uint64_t left = writer->n - writer->first;
    st = weft_store_flush(ctx, writer, left < WEFT_STORE_ROWS ? left : WEFT_STORE_ROWS);
  }
  return st == WEFT_OK && writer->waiting ? weft_store_settle(ctx, writer) : st;
}

/* ---- vectors ---- */

weft_status weft_store_add_section(weft_ctx *ctx, weft_store_writer *writer, const char *name, weft_store_type type,
                                   uint64_t count, const uint8_t *bytes, uint64_t size)
{
  weft_status st = WEFT_OK;
  const size_t length = strlen(name);
  weft_store_section v = { NULL, 0, size, count, (uint32_t) type, weft_store_crc(0, bytes, (size_t) size) };
  WEFT_TRY(close_rows(ctx, writer));
  v.offset = writer->at;
  bind(writer, ctx);
  if (writer->sections == writer->section_room) {
    weft_store_section *section =
        grown(&writer->mem, writer->section, writer->sections, 2 * writer->sections + 16, sizeof *section);
    if (!section) {
      st = WEFT_ERR_MEMORY;
      goto done;
    }
    writer->section = section;
    writer->section_room = 2 * writer->sections + 16;
  }
  WEFT_TAKE0(v.name, &writer->mem, length + 1);
  memcpy(v.name, name, length);
  WEFT_TRY(push_bytes(ctx, writer, bytes, size));
  writer->section[writer->sections++] = v;
done:
  bind(writer, NULL);
  return st;
}

/* ---- the end ---- */

static uint8_t *put_blocks(uint8_t *at, const weft_store_writer *writer)
{
  for (size_t k = 0; k < writer->blocks; k++, at += WEFT_STORE_BLOCK) {
    const weft_store_block *block = &writer->block[k];
    weft_store_put(at, block->offset, 8);
    weft_store_put(at + 8, block->bytes, 8);
    weft_store_put(at + 16, block->values, 8);
    weft_store_put(at + 24, block->rows, 4);
    weft_store_put(at + 28, block->kind, 4);
    weft_store_put(at + 32, block->crc, 4);
  }
  return at;
}

/* Writes the directory's records of vectors, names padded to 8 bytes, and returns the end; `at` must have room. */
static uint8_t *put_sections(uint8_t *at, const weft_store_writer *writer)
{
  for (size_t k = 0; k < writer->sections; k++) {
    const weft_store_section *section = &writer->section[k];
    const size_t length = strlen(section->name);
    weft_store_put(at, section->offset, 8);
    weft_store_put(at + 8, section->bytes, 8);
    weft_store_put(at + 16, section->count, 8);
    weft_store_put(at + 24, section->type, 4);
    weft_store_put(at + 28, section->crc, 4);
    weft_store_put(at + 32, length, 4);
    memcpy(at + WEFT_STORE_SECTION, section->name, length);
    at += WEFT_STORE_SECTION + (length + 7) / 8 * 8;
  }
  return at;
}

/* Writes directory and header, the header last: until then the file is no store. */
static weft_status write_ends(weft_ctx *ctx, weft_store_writer *writer)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  size_t size = WEFT_STORE_COUNTS + writer->blocks * WEFT_STORE_BLOCK;
  uint8_t header[WEFT_STORE_HEADER] = { 0 }, *directory, *end;
  for (size_t k = 0; k < writer->sections; k++)
    size += WEFT_STORE_SECTION + (strlen(writer->section[k].name) + 7) / 8 * 8;
  WEFT_TAKE0(directory, &mem, size);
  weft_store_put(directory, writer->blocks, 8);
  weft_store_put(directory + 8, writer->sections, 8);
  end = put_sections(put_blocks(directory + WEFT_STORE_COUNTS, writer), writer);
  memcpy(header, WEFT_STORE_MAGIC, 8);
  weft_store_put(header + WEFT_STORE_AT_VERSION, WEFT_STORE_VERSION, 8);
  weft_store_put(header + WEFT_STORE_AT_N, writer->n, 8);
  weft_store_put(header + WEFT_STORE_AT_P, writer->p, 8);
  weft_store_put(header + WEFT_STORE_AT_VALUES, writer->values, 8);
  weft_store_put(header + WEFT_STORE_AT_DIRECTORY, writer->at, 8);
  weft_store_put(header + WEFT_STORE_AT_SIZE, (uint64_t) (end - directory), 8);
  weft_store_put(header + WEFT_STORE_AT_DIRECTORY_CRC, weft_store_crc(0, directory, (size_t) (end - directory)), 4);
  weft_store_put(header + WEFT_STORE_AT_CRC, weft_store_crc(0, header, WEFT_STORE_AT_CRC), 4);
  WEFT_TRY(weft_store_os_write(ctx, writer->file - 1, writer->name, writer->at, directory, (size_t) (end - directory)));
  WEFT_TRY(weft_store_os_write(ctx, writer->file - 1, writer->name, 0, header, sizeof header));
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_store_finish(weft_ctx *ctx, weft_store_writer *writer)
{
  weft_status st = WEFT_OK;
  char why[WEFT_FILE_WHY];
  WEFT_TRY(close_rows(ctx, writer));
  WEFT_TRY(write_ends(ctx, writer));
  const int file = writer->file - 1;
  writer->file = 0; /* publishing closes it */
  if (!weft_file_publish(file, writer->part, writer->path, writer->overwrite, why))
    st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' %s.", writer->name, why);
  if (st != WEFT_OK) weft_store_os_remove(writer->part);
done:
  return st;
}
