/* A store's header, directory, blocks and vectors; see store.h. Lengths, offsets and counts are compared with the
 * file's size, with each other and with their checksums before anything is read from these places, or memory is
 * allocated for it. */
#include <errno.h>
#include <string.h>
#include "store/file/os.h"
#include "store/file/read.h"

static weft_status no_store(weft_ctx *ctx, const weft_store *s, const char *what)
{
  return weft_fail(ctx, WEFT_ERR_INPUT, "'%s' %s.", s->name, what);
}

static weft_status damaged(weft_ctx *ctx, const weft_store *s, const char *what)
{
  return weft_fail(ctx, WEFT_ERR_INPUT, "'%s' is damaged: %s.", s->name, what);
}

/* Whether bytes at .. at + size - 1 lie between the header and `end`. */
static int lies_within(uint64_t at, uint64_t size, uint64_t end)
{
  return at >= WEFT_STORE_HEADER && at <= end && size <= end - at;
}

/* ---- the directory ---- */

static int valid_kind(uint32_t kind) { return kind >= WEFT_STORE_WHOLE && kind <= WEFT_STORE_DOUBLE; }

/* The directory's records of blocks, each checked against the file's size and the store's totals; finds the largest
 * sizes, for which readers take memory. */
static weft_status read_blocks(weft_ctx *ctx, weft_store *s, const uint8_t *at, uint64_t end)
{
  uint64_t first = 0, values = 0;
  for (size_t k = 0; k < s->blocks; k++, at += WEFT_STORE_BLOCK) {
    weft_store_block *b = &s->block[k];
    b->offset = weft_store_get(at, 8);
    b->bytes = weft_store_get(at + 8, 8);
    b->values = weft_store_get(at + 16, 8);
    b->rows = weft_store_get(at + 24, 4);
    b->kind = (uint32_t) weft_store_get(at + 28, 4);
    b->crc = (uint32_t) weft_store_get(at + 32, 4);
    b->first = first;
    if (!lies_within(b->offset, b->bytes, end) || b->bytes < WEFT_STORE_STREAMS || b->rows < 1 ||
        b->rows > WEFT_STORE_ROWS || b->rows > s->n - first || !valid_kind(b->kind) || b->values > INT32_MAX ||
        b->values > b->rows * s->p || b->values > s->values - values ||
        weft_store_chunks(b->values) + weft_store_chunks(s->p) > b->bytes - WEFT_STORE_STREAMS)
      return weft_store_damaged(ctx, s, k, "cannot be where, or as large as, the directory says");
    first += b->rows;
    values += b->values;
    if (b->rows > s->max_rows) s->max_rows = (size_t) b->rows;
    if (b->bytes > s->max_bytes) s->max_bytes = b->bytes;
    if (b->values > s->max_values) s->max_values = b->values;
  }
  if (first != s->n || values != s->values) return damaged(ctx, s, "its blocks do not make up the whole");
  return WEFT_OK;
}

/* The directory's records of vectors: place, type, count and name, all checked against the file's size. Names are taken
 * from the store's arena. */
static weft_status read_sections(weft_ctx *ctx, weft_store *s, const uint8_t *at, const uint8_t *end, uint64_t before)
{
  for (size_t k = 0; k < s->sections; k++) {
    weft_store_section *v = &s->section[k];
    if (end - at < WEFT_STORE_SECTION) return damaged(ctx, s, "its directory ends too early");
    const uint64_t length = weft_store_get(at + 32, 4), padded = (length + 7) / 8 * 8;
    v->offset = weft_store_get(at, 8);
    v->bytes = weft_store_get(at + 8, 8);
    v->count = weft_store_get(at + 16, 8);
    v->type = (uint32_t) weft_store_get(at + 24, 4);
    v->crc = (uint32_t) weft_store_get(at + 28, 4);
    at += WEFT_STORE_SECTION;
    if (padded > (uint64_t) (end - at)) return damaged(ctx, s, "its directory ends too early");
    const uint64_t least = v->type == WEFT_STORE_NUMBERS ? 8 : 4;
    if (!lies_within(v->offset, v->bytes, before) || v->type < WEFT_STORE_TEXT || v->type > WEFT_STORE_INTEGERS ||
        v->count > v->bytes / least || (v->type != WEFT_STORE_TEXT && v->count * least != v->bytes) ||
        memchr(at, 0, (size_t) length))
      return damaged(ctx, s, "a vector cannot be where, or as large as, the directory says");
    v->name = weft_arena_take0(&s->mem, (size_t) length + 1, 1);
    if (!v->name) return WEFT_ERR_MEMORY;
    memcpy(v->name, at, (size_t) length);
    at += padded;
  }
  return at == end ? WEFT_OK : damaged(ctx, s, "its directory is longer than what it holds");
}

/* Reads the directory, which must end the file and have its checksum, and from it blocks and vectors. */
static weft_status read_directory(weft_ctx *ctx, weft_store *s, const uint8_t *header)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const uint64_t at = weft_store_get(header + WEFT_STORE_AT_DIRECTORY, 8);
  const uint64_t size = weft_store_get(header + WEFT_STORE_AT_SIZE, 8);
  uint64_t blocks, sections;
  uint8_t *bytes;
  if (!lies_within(at, size, s->size) || at + size != s->size || size < WEFT_STORE_COUNTS) {
    st = damaged(ctx, s, "its directory is not at its end: it was cut short, or something was added");
    goto done;
  }
  WEFT_TAKE(bytes, &mem, (size_t) size);
  WEFT_TRY(weft_store_os_read(ctx, s->file - 1, s->name, at, bytes, (size_t) size));
  if (weft_store_crc(0, bytes, (size_t) size) != s->crc) {
    st = damaged(ctx, s, "its directory does not have its checksum");
    goto done;
  }
  blocks = weft_store_get(bytes, 8);
  sections = weft_store_get(bytes + 8, 8);
  if (blocks > (size - WEFT_STORE_COUNTS) / WEFT_STORE_BLOCK ||
      sections > (size - WEFT_STORE_COUNTS - blocks * WEFT_STORE_BLOCK) / WEFT_STORE_SECTION) {
    st = damaged(ctx, s, "its directory is too short for what it is to hold");
    goto done;
  }
  s->blocks = (size_t) blocks;
  s->sections = (size_t) sections;
  WEFT_TAKE0(s->block, &s->mem, s->blocks + 1);
  WEFT_TAKE0(s->section, &s->mem, s->sections + 1);
  WEFT_TRY(read_blocks(ctx, s, bytes + WEFT_STORE_COUNTS, at));
  WEFT_TRY(read_sections(ctx, s, bytes + WEFT_STORE_COUNTS + blocks * WEFT_STORE_BLOCK, bytes + size, at));
done:
  weft_arena_end(&mem);
  return st;
}

/* Reads the header: magic, checksum, version, sizes; then the directory. WEFT_ERR_INPUT says whether the file is no
 * store, a later one, or damaged. */
static weft_status read_header(weft_ctx *ctx, weft_store *s)
{
  uint8_t header[WEFT_STORE_HEADER];
  weft_status st;
  if (s->size < sizeof header) return no_store(ctx, s, "is too short for a store");
  if ((st = weft_store_os_read(ctx, s->file - 1, s->name, 0, header, sizeof header)) != WEFT_OK) return st;
  if (memcmp(header, WEFT_STORE_MAGIC, 8)) return no_store(ctx, s, "is not a store, or was never finished");
  if (weft_store_crc(0, header, WEFT_STORE_AT_CRC) != weft_store_get(header + WEFT_STORE_AT_CRC, 4))
    return damaged(ctx, s, "its header does not have its checksum");
  const uint64_t version = weft_store_get(header + WEFT_STORE_AT_VERSION, 8);
  if (version < 1 || version > WEFT_STORE_VERSION)
    return no_store(ctx, s, "is of a later version of the format; a newer weft reads it");
  s->version = (int) version;
  s->n = weft_store_get(header + WEFT_STORE_AT_N, 8);
  s->p = weft_store_get(header + WEFT_STORE_AT_P, 8);
  s->values = weft_store_get(header + WEFT_STORE_AT_VALUES, 8);
  s->crc = (uint32_t) weft_store_get(header + WEFT_STORE_AT_DIRECTORY_CRC, 4);
  if (s->n > INT32_MAX || s->p > INT32_MAX) return no_store(ctx, s, "has more than 2147483647 rows or columns");
  return read_directory(ctx, s, header);
}

/* Opens a store and checks its directory; blocks are checked when they are read. *s owns descriptor and memory until
 * weft_store_close(); after a failure it is closed. */
weft_status weft_store_open(weft_ctx *ctx, const char *path, weft_store *s)
{
  weft_status st = WEFT_OK;
  char why[WEFT_FILE_WHY];
  const char *slash = strrchr(path, '/');
  weft_store_close(s); /* of a first try */
  s->own.memory = ctx->memory;
  s->mem = weft_arena_begin(ctx);
  const char *name = slash ? slash + 1 : path;
  WEFT_TAKE(s->name, &s->mem, strlen(name) + 1);
  memcpy(s->name, name, strlen(name) + 1);
  s->file = weft_file_open(path, &s->size, why) + 1;
  if (!s->file) {
    st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' %s.", name, why);
    goto done;
  }
  WEFT_TRY(read_header(ctx, s));
done:
  s->mem.ctx = &s->own; /* the context ends before the store does */
  if (st != WEFT_OK) weft_store_close(s);
  return st;
}

void weft_store_close(weft_store *s)
{
  if (s->file) weft_file_close(s->file - 1);
  if (s->mem.blocks) weft_arena_end(&s->mem);
  memset(s, 0, sizeof *s);
}

/* ---- blocks and vectors ---- */

weft_status weft_store_load_to(weft_ctx *ctx, const weft_store *s, size_t index, uint8_t *bytes, weft_arena *mem,
                               weft_store_view *view)
{
  const weft_store_block *b = &s->block[index];
  weft_status st = WEFT_OK;
  WEFT_TRY(weft_store_os_read(ctx, s->file - 1, s->name, b->offset, bytes, (size_t) b->bytes));
  if (weft_store_crc(0, bytes, (size_t) b->bytes) != b->crc)
    return weft_store_damaged(ctx, s, index, "does not have its checksum");
  st = weft_store_parse(ctx, s, index, bytes, 0, mem, view);
done:
  return st;
}

weft_status weft_store_load(weft_ctx *ctx, const weft_store *s, size_t index, weft_arena *mem, weft_store_view *view)
{
  weft_status st = WEFT_OK;
  uint8_t *bytes;
  WEFT_TAKE(bytes, mem, (size_t) s->block[index].bytes);
  st = weft_store_load_to(ctx, s, index, bytes, mem, view);
done:
  return st;
}

/* Reads only the counts of a block's columns (view->starts); the checksum, which is of the whole block, is not
 * compared. */
weft_status weft_store_load_counts(weft_ctx *ctx, const weft_store *s, size_t index, weft_arena *mem,
                                   weft_store_view *view)
{
  const weft_store_block *b = &s->block[index];
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  uint8_t lengths[WEFT_STORE_STREAMS], *bytes;
  WEFT_TRY(weft_store_os_read(ctx, s->file - 1, s->name, b->offset, lengths, sizeof lengths));
  const uint64_t counts = weft_store_get(lengths, 8);
  if (counts > b->bytes - WEFT_STORE_STREAMS) {
    st = weft_store_damaged(ctx, s, index, "has parts of impossible lengths");
    goto done;
  }
  WEFT_TAKE(bytes, &own, (size_t) counts + WEFT_STORE_STREAMS);
  WEFT_TRY(weft_store_os_read(ctx, s->file - 1, s->name, b->offset, bytes, (size_t) counts + WEFT_STORE_STREAMS));
  WEFT_TRY(weft_store_parse(ctx, s, index, bytes, 1, mem, view));
done:
  weft_arena_end(&own);
  return st;
}

weft_status weft_store_section_bytes(weft_ctx *ctx, const weft_store *s, size_t index, uint8_t *out)
{
  const weft_store_section *v = &s->section[index];
  weft_status st = WEFT_OK;
  WEFT_TRY(weft_store_os_read(ctx, s->file - 1, s->name, v->offset, out, (size_t) v->bytes));
  if (weft_store_crc(0, out, (size_t) v->bytes) != v->crc)
    st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' is damaged: the vector \"%.200s\" does not have its checksum.", s->name,
                   v->name);
done:
  return st;
}
