/* Rows in, blocks out; see store.h. The file has a temporary name, and no header, until it is whole: what a killed
 * process leaves behind cannot be opened. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "store/file/block.h"
#include "store/file/os.h"
#include "store/file/blocks_parallel.h"

#define MAX_ENTRIES ((size_t) 1 << 19) /* of a block: 6 MB when it is decoded */
#define MIN_ENTRIES ((size_t) 1 << 12)
#define BYTES_EACH (64 * WEFT_STORE_WAITING) /* of an entry while blocks are made: itself, sorted, packed */

static weft_status push_bytes(weft_ctx *ctx, weft_store_writer *w, const uint8_t *bytes, uint64_t size)
{
  const weft_status st = weft_store_os_write(ctx, w->file - 1, w->name, w->at, bytes, (size_t) size);
  if (st == WEFT_OK) w->at += size;
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
static void bind(weft_store_writer *w, weft_ctx *ctx) { w->mem.ctx = ctx ? ctx : &w->own; }

/* Makes the file under a temporary name beside `path`, which it gets when finished, or takes up what an import with the
 * same key has left. *w owns everything until it is finished or abandoned; after a failure it is abandoned. */
weft_status weft_store_begin(weft_ctx *ctx, const char *path, int overwrite, uint64_t n, uint64_t p, double memory,
                             const char *key, int anew, weft_store_writer *w)
{
  weft_status st = WEFT_OK;
  const char *slash = strrchr(path, '/');
  const size_t folder = slash ? (size_t) (slash - path) + 1 : 0, length = strlen(path);
  const size_t fits = (size_t) (memory / BYTES_EACH);
  weft_store_abandon(w); /* of a first try */
  w->own.memory = ctx->memory;
  w->mem = weft_arena_begin(ctx);
  WEFT_TAKE0(w->path, &w->mem, length + 1);
  WEFT_TAKE0(w->name, &w->mem, length + 1);
  WEFT_TAKE0(w->part, &w->mem, length + 32);
  memcpy(w->path, path, length);
  memcpy(w->name, path + folder, length - folder);
  w->overwrite = overwrite;
  w->n = n;
  w->p = p;
  w->max_entries = fits < MIN_ENTRIES ? MIN_ENTRIES : fits > MAX_ENTRIES ? MAX_ENTRIES : fits;
  w->at = WEFT_STORE_HEADER;
  w->slots = ctx->threads < WEFT_STORE_WAITING ? (size_t) ctx->threads : WEFT_STORE_WAITING;
  weft_store_crc(0, NULL, 0); /* its table, before threads ask for it */
  WEFT_TRY(weft_store_room(ctx, w, w->max_entries));
  if (key) {
    snprintf(w->part, length + 32, "%.*s.%s.resume.part", (int) folder, path, w->name);
    WEFT_TRY(weft_store_resume(ctx, w, key, anew));
    goto done;
  }
  for (int tries = 0; tries < 100 && !w->file; tries++) {
    snprintf(w->part, length + 32, "%.*s.%s.%08llx.part", (int) folder, path, w->name,
             (unsigned long long) weft_file_unique() & 0xffffffffull);
    w->file = weft_file_create(w->part) + 1;
    if (!w->file && errno != EEXIST) break;
  }
  if (!w->file) st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' cannot be written: %s.", w->name, strerror(errno));
done:
  bind(w, NULL);
  if (st != WEFT_OK) weft_store_abandon(w);
  return st;
}

void weft_store_abandon(weft_store_writer *w)
{
  if (w->file) {
    weft_file_close(w->file - 1);
    if (!w->list) weft_store_os_remove(w->part);
  }
  if (w->list) weft_file_close(w->list - 1);
  if (w->mem.blocks) weft_arena_end(&w->mem);
  memset(w, 0, sizeof *w);
}

static weft_status room_for(weft_ctx *ctx, weft_store_writer *w, weft_store_entry **entry, size_t *room, size_t used,
                            size_t count)
{
  if (count <= *room) return WEFT_OK;
  if (count > INT32_MAX) return weft_fail(ctx, WEFT_ERR_INPUT, "A row has more than 2147483647 entries.");
  size_t more = *room ? 2 * *room : w->max_entries;
  if (more < count) more = count;
  bind(w, ctx);
  weft_store_entry *larger = grown(&w->mem, *entry, used, more, sizeof *larger);
  bind(w, NULL);
  if (!larger) return WEFT_ERR_MEMORY;
  *entry = larger;
  *room = more;
  return WEFT_OK;
}

weft_status weft_store_room(weft_ctx *ctx, weft_store_writer *w, size_t count)
{
  return room_for(ctx, w, &w->entry, &w->room, w->count, count);
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
  const weft_store_writer *w;
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
  weft_store_waiting x = all->w->wait[item];
  weft_store_block *b = &all->block[item];
  weft_store_entry *entry;
  all->mem[item].ctx = ctx;
  b->first = x.first;
  b->rows = x.rows;
  b->values = x.count;
  if (x.given.starts) {
    if (x.given.raw) WEFT_TRY(weft_raw_fill(ctx, x.given.raw, x.count));
    WEFT_TRY(weft_store_encode_rows(ctx, &x.given, all->w->p, x.entry, &all->mem[item], &all->bytes[item], &b->bytes,
                                    &b->kind));
    if (all->bytes[item]) goto sum;
    WEFT_TRY(weft_store_entries(ctx, &x.given, all->w->p, x.entry, &x.count));
  }
  WEFT_TRY(in_order(ctx, &x, all->w->p, &own, &entry));
  b->values = merge_equal(entry, x.count);
  WEFT_TRY(weft_store_encode(ctx, entry, (size_t) b->values, all->w->p, &all->mem[item], &all->bytes[item], &b->bytes,
                             &b->kind));
sum:
  b->crc = weft_store_crc(0, all->bytes[item], (size_t) b->bytes);
done:
  all->mem[item].ctx = all->ctx;
  weft_arena_end(&own);
  return st;
}

/* Takes the first `count` from those that wait; their memory is kept for others. */
static void no_longer_wait(weft_store_writer *w, size_t count)
{
  for (size_t i = 0; i + count < w->waiting; i++) {
    const weft_store_waiting first = w->wait[i];
    w->wait[i] = w->wait[i + count];
    w->wait[i + count] = first;
  }
  w->waiting -= count;
}

weft_status weft_store_room_for_blocks(weft_ctx *ctx, weft_store_writer *w, size_t more)
{
  if (w->blocks + more <= w->block_room) return WEFT_OK;
  bind(w, ctx);
  weft_store_block *block = grown(&w->mem, w->block, w->blocks, 2 * w->blocks + 16, sizeof *block);
  bind(w, NULL);
  if (!block) return WEFT_ERR_MEMORY;
  w->block = block;
  w->block_room = 2 * w->blocks + 16;
  return WEFT_OK;
}

/* One thread per block; the blocks are written in their order. */
weft_status weft_store_settle(weft_ctx *ctx, weft_store_writer *w)
{
  weft_status st = WEFT_OK;
  encoding all = { .ctx = ctx, .w = w };
  size_t done = 0, entries = 0;
  for (size_t i = 0; i < w->waiting; i++) {
    all.mem[i] = weft_arena_begin(ctx);
    entries += w->wait[i].count;
  }
  WEFT_TRY(weft_poll(ctx, (double) w->first, (double) w->n));
  WEFT_TRY(weft_store_room_for_blocks(ctx, w, w->waiting));
  WEFT_TRY(weft_store_together(ctx, w->waiting, 20.0 * (double) entries, encode_one, &all));
  for (; done < w->waiting; done++) {
    all.block[done].offset = w->at;
    WEFT_TRY(push_bytes(ctx, w, all.bytes[done], all.block[done].bytes));
    w->block[w->blocks] = all.block[done];
    WEFT_TRY(weft_store_resume_add(ctx, w, w->blocks));
    w->blocks++;
    w->values += all.block[done].values;
  }
done:
  for (size_t i = 0; i < w->waiting; i++) weft_arena_end(&all.mem[i]);
  no_longer_wait(w, done);
  return st;
}

weft_status weft_store_flush(weft_ctx *ctx, weft_store_writer *w, uint64_t rows)
{
  weft_status st = WEFT_OK;
  if (w->waiting == w->slots) WEFT_TRY(weft_store_settle(ctx, w));
  weft_store_waiting *to = &w->wait[w->waiting++];
  const weft_store_waiting open = { w->entry, w->room, w->count, w->first, rows, { .starts = NULL } };
  w->entry = to->entry;
  w->room = to->room;
  *to = open;
  w->count = 0;
  w->first += rows;
  w->last = w->first;
done:
  return st;
}

/* Queues the rows as they are; when all slots wait, they are encoded and written first. */
weft_status weft_store_take_block(weft_ctx *ctx, weft_store_writer *w, const weft_store_rows *rows)
{
  weft_status st = WEFT_OK;
  const size_t count = (size_t) (rows->starts[rows->rows] - rows->starts[0]);
  if (w->waiting == w->slots) WEFT_TRY(weft_store_settle(ctx, w));
  weft_store_waiting *to = &w->wait[w->waiting];
  WEFT_TRY(room_for(ctx, w, &to->entry, &to->room, 0, count));
  to->count = count;
  to->first = w->first;
  to->rows = rows->rows;
  to->given = *rows;
  w->waiting++;
  w->first += rows->rows;
  w->last = w->first;
done:
  return st;
}

/* The open block without its last row, which begins the next one. */
static weft_status flush_but_last(weft_ctx *ctx, weft_store_writer *w)
{
  const uint32_t last = (uint32_t) (w->last - w->first);
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_store_entry *kept;
  size_t before = 0, moved = 0;
  if (w->waiting == w->slots) WEFT_TRY(weft_store_settle(ctx, w)); /* nothing can fail once entries have moved, */
  WEFT_TAKE(kept, &mem, w->count);
  for (size_t i = 0; i < w->count; i++) moved += w->entry[i].row == last;
  WEFT_TRY(room_for(ctx, w, &w->wait[w->waiting].entry, &w->wait[w->waiting].room, 0, moved)); /* for there is room */
  moved = 0;
  for (size_t i = 0; i < w->count; i++)
    if (w->entry[i].row == last)
      kept[moved++] = w->entry[i];
    else
      w->entry[before++] = w->entry[i];
  w->count = before;
  WEFT_TRY(weft_store_flush(ctx, w, last));
  for (size_t i = 0; i < moved; i++) kept[i].row = 0;
  memcpy(w->entry, kept, moved * sizeof *kept);
  w->count = moved;
done:
  weft_arena_end(&mem);
  return st;
}

/* Adds an entry to the open block; closes blocks that are full (rows or entries) or that the row is beyond. Rows that a
 * resumed import already has are only counted. */
weft_status weft_store_push(weft_ctx *ctx, weft_store_writer *w, uint64_t row, uint64_t column, double value, int *late)
{
  weft_status st = WEFT_OK;
  if (row < w->resumed) {
    *late = 0;
    w->passed += value != 0;
    return st;
  }
  *late = row < w->first;
  if (*late || value == 0) return WEFT_OK;
  while (row - w->first >= WEFT_STORE_ROWS) WEFT_TRY(weft_store_flush(ctx, w, WEFT_STORE_ROWS));
  if (w->count >= w->max_entries) {
    if (row > w->last)
      WEFT_TRY(weft_store_flush(ctx, w, row - w->first));
    else if (w->last > w->first)
      WEFT_TRY(flush_but_last(ctx, w));
    *late = row < w->first;
    if (*late) return WEFT_OK;
  }
  WEFT_TRY(weft_store_room(ctx, w, w->count + 1));
  const weft_store_entry entry = { (uint32_t) (row - w->first), (uint32_t) column, value };
  w->entry[w->count++] = entry;
  if (row > w->last) w->last = row;
done:
  return st;
}

uint64_t weft_store_fit(const weft_store_writer *w, const uint32_t *counts, uint64_t first, uint64_t end,
                        uint64_t count, uint64_t before)
{
  uint64_t rows = 0;
  for (; first + rows < end && before + rows < WEFT_STORE_ROWS; rows++) {
    const uint64_t here = counts[first + rows];
    if (here && count && count + here > w->max_entries) break;
    count += here;
  }
  return rows;
}

/* Everything that waits, the open block, and empty ones up to the last row. */
static weft_status close_rows(weft_ctx *ctx, weft_store_writer *w)
{
  weft_status st = WEFT_OK;
  while (w->first < w->n && st == WEFT_OK) {
    const uint64_t left = w->n - w->first;
    st = weft_store_flush(ctx, w, left < WEFT_STORE_ROWS ? left : WEFT_STORE_ROWS);
  }
  return st == WEFT_OK && w->waiting ? weft_store_settle(ctx, w) : st;
}

/* ---- vectors ---- */

weft_status weft_store_add_section(weft_ctx *ctx, weft_store_writer *w, const char *name, weft_store_type type,
                                   uint64_t count, const uint8_t *bytes, uint64_t size)
{
  weft_status st = WEFT_OK;
  const size_t length = strlen(name);
  weft_store_section v = { NULL, 0, size, count, (uint32_t) type, weft_store_crc(0, bytes, (size_t) size) };
  WEFT_TRY(close_rows(ctx, w));
  v.offset = w->at;
  bind(w, ctx);
  if (w->sections == w->section_room) {
    weft_store_section *section = grown(&w->mem, w->section, w->sections, 2 * w->sections + 16, sizeof *section);
    if (!section) {
      st = WEFT_ERR_MEMORY;
      goto done;
    }
    w->section = section;
    w->section_room = 2 * w->sections + 16;
  }
  WEFT_TAKE0(v.name, &w->mem, length + 1);
  memcpy(v.name, name, length);
  WEFT_TRY(push_bytes(ctx, w, bytes, size));
  w->section[w->sections++] = v;
done:
  bind(w, NULL);
  return st;
}

/* ---- the end ---- */

static uint8_t *put_blocks(uint8_t *at, const weft_store_writer *w)
{
  for (size_t k = 0; k < w->blocks; k++, at += WEFT_STORE_BLOCK) {
    const weft_store_block *b = &w->block[k];
    weft_store_put(at, b->offset, 8);
    weft_store_put(at + 8, b->bytes, 8);
    weft_store_put(at + 16, b->values, 8);
    weft_store_put(at + 24, b->rows, 4);
    weft_store_put(at + 28, b->kind, 4);
    weft_store_put(at + 32, b->crc, 4);
  }
  return at;
}

/* Writes the directory's records of vectors, names padded to 8 bytes, and returns the end; `at` must have room. */
static uint8_t *put_sections(uint8_t *at, const weft_store_writer *w)
{
  for (size_t k = 0; k < w->sections; k++) {
    const weft_store_section *v = &w->section[k];
    const size_t length = strlen(v->name);
    weft_store_put(at, v->offset, 8);
    weft_store_put(at + 8, v->bytes, 8);
    weft_store_put(at + 16, v->count, 8);
    weft_store_put(at + 24, v->type, 4);
    weft_store_put(at + 28, v->crc, 4);
    weft_store_put(at + 32, length, 4);
    memcpy(at + WEFT_STORE_SECTION, v->name, length);
    at += WEFT_STORE_SECTION + (length + 7) / 8 * 8;
  }
  return at;
}

/* Writes directory and header, the header last: until then the file is no store. */
static weft_status write_ends(weft_ctx *ctx, weft_store_writer *w)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  size_t size = WEFT_STORE_COUNTS + w->blocks * WEFT_STORE_BLOCK;
  uint8_t header[WEFT_STORE_HEADER] = { 0 }, *directory, *end;
  for (size_t k = 0; k < w->sections; k++) size += WEFT_STORE_SECTION + (strlen(w->section[k].name) + 7) / 8 * 8;
  WEFT_TAKE0(directory, &mem, size);
  weft_store_put(directory, w->blocks, 8);
  weft_store_put(directory + 8, w->sections, 8);
  end = put_sections(put_blocks(directory + WEFT_STORE_COUNTS, w), w);
  memcpy(header, WEFT_STORE_MAGIC, 8);
  weft_store_put(header + WEFT_STORE_AT_VERSION, WEFT_STORE_VERSION, 8);
  weft_store_put(header + WEFT_STORE_AT_N, w->n, 8);
  weft_store_put(header + WEFT_STORE_AT_P, w->p, 8);
  weft_store_put(header + WEFT_STORE_AT_VALUES, w->values, 8);
  weft_store_put(header + WEFT_STORE_AT_DIRECTORY, w->at, 8);
  weft_store_put(header + WEFT_STORE_AT_SIZE, (uint64_t) (end - directory), 8);
  weft_store_put(header + WEFT_STORE_AT_DIRECTORY_CRC, weft_store_crc(0, directory, (size_t) (end - directory)), 4);
  weft_store_put(header + WEFT_STORE_AT_CRC, weft_store_crc(0, header, WEFT_STORE_AT_CRC), 4);
  WEFT_TRY(weft_store_os_write(ctx, w->file - 1, w->name, w->at, directory, (size_t) (end - directory)));
  WEFT_TRY(weft_store_os_write(ctx, w->file - 1, w->name, 0, header, sizeof header));
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_store_finish(weft_ctx *ctx, weft_store_writer *w)
{
  weft_status st = WEFT_OK;
  char why[WEFT_FILE_WHY];
  WEFT_TRY(close_rows(ctx, w));
  WEFT_TRY(write_ends(ctx, w));
  const int file = w->file - 1;
  w->file = 0; /* publishing closes it */
  if (!weft_file_publish(file, w->part, w->path, w->overwrite, why))
    st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' %s.", w->name, why);
  if (st != WEFT_OK && !w->list) weft_store_os_remove(w->part);
  if (st == WEFT_OK && w->list) weft_store_os_remove(w->list_path);
done:
  return st;
}
