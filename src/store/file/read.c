/* A store's header, directory, blocks and vectors; see store.h. Lengths, offsets and counts are compared with the
 * file's size, with each other and with their checksums before anything is read from these places, or memory is
 * allocated for it. */
#include <errno.h>
#include <string.h>
#include "store/file/os.h"
#include "store/file/read.h"

static weft_status no_store(weft_ctx *ctx, const weft_store *store, const char *what)
{
  return weft_fail(ctx, WEFT_ERR_INPUT, "'%s' %s.", store->name, what);
}

static weft_status damaged(weft_ctx *ctx, const weft_store *store, const char *what)
{
  return weft_fail(ctx, WEFT_ERR_INPUT, "'%s' is damaged: %s.", store->name, what);
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
static weft_status read_blocks(weft_ctx *ctx, weft_store *store, const uint8_t *at, uint64_t end)
{
  uint64_t first = 0, values = 0;
  for (size_t k = 0; k < store->blocks; k++, at += WEFT_STORE_BLOCK) {
    weft_store_block *block = &store->block[k];
    block->offset = weft_store_get(at, 8);
    block->bytes = weft_store_get(at + 8, 8);
    block->values = weft_store_get(at + 16, 8);
    block->rows = weft_store_get(at + 24, 4);
    block->kind = (uint32_t) weft_store_get(at + 28, 4);
    block->crc = (uint32_t) weft_store_get(at + 32, 4);
    block->first = first;
    if (!lies_within(block->offset, block->bytes, end) || block->bytes < WEFT_STORE_STREAMS || block->rows < 1 ||
        block->rows > WEFT_STORE_ROWS || block->rows > store->n - first || !valid_kind(block->kind) ||
        block->values > INT32_MAX || block->values > block->rows * store->p || block->values > store->values - values ||
        weft_store_chunks(block->values) + weft_store_chunks(store->p) > block->bytes - WEFT_STORE_STREAMS)
      return weft_store_damaged(ctx, store, k, "does not have the position or size given in the directory");
    first += block->rows;
    values += block->values;
    if (block->rows > store->max_rows) store->max_rows = (size_t) block->rows;
    if (block->bytes > store->max_bytes) store->max_bytes = block->bytes;
    if (block->values > store->max_values) store->max_values = block->values;
  }
  if (first != store->n || values != store->values)
    return damaged(ctx, store, "its blocks do not cover the whole store");
  return WEFT_OK;
}

/* The directory's records of vectors: place, type, count and name, all checked against the file's size. Names are taken
 * from the store's arena. */
static weft_status read_sections(weft_ctx *ctx, weft_store *store, const uint8_t *at, const uint8_t *end,
                                 uint64_t before)
{
  for (size_t k = 0; k < store->sections; k++) {
    weft_store_section *section = &store->section[k];
    if (end - at < WEFT_STORE_SECTION) return damaged(ctx, store, "its directory ends too early");
    const uint64_t length = weft_store_get(at + 32, 4), padded = (length + 7) / 8 * 8;
    section->offset = weft_store_get(at, 8);
    section->bytes = weft_store_get(at + 8, 8);
    section->count = weft_store_get(at + 16, 8);
    section->type = (uint32_t) weft_store_get(at + 24, 4);
    section->crc = (uint32_t) weft_store_get(at + 28, 4);
    at += WEFT_STORE_SECTION;
    if (padded > (uint64_t) (end - at)) return damaged(ctx, store, "its directory ends too early");
    const uint64_t least = section->type == WEFT_STORE_NUMBERS ? 8 : 4;
    if (!lies_within(section->offset, section->bytes, before) || section->type < WEFT_STORE_TEXT ||
        section->type > WEFT_STORE_INTEGERS || section->count > section->bytes / least ||
        (section->type != WEFT_STORE_TEXT && section->count * least != section->bytes) ||
        memchr(at, 0, (size_t) length))
      return damaged(ctx, store, "a vector does not have the position or size given in the directory");
    section->name = weft_arena_take0(&store->mem, (size_t) length + 1, 1);
    if (!section->name) return WEFT_ERR_MEMORY;
    memcpy(section->name, at, (size_t) length);
    at += padded;
  }
  return at == end ? WEFT_OK : damaged(ctx, store, "its directory is longer than its content");
}

/* Reads the directory, which must end the file and have its checksum, and from it blocks and vectors. */
static weft_status read_directory(weft_ctx *ctx, weft_store *store, const uint8_t *header)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const uint64_t at = weft_store_get(header + WEFT_STORE_AT_DIRECTORY, 8);
  const uint64_t size = weft_store_get(header + WEFT_STORE_AT_SIZE, 8);
  uint64_t blocks, sections;
  uint8_t *bytes;
  if (!lies_within(at, size, store->size) || at + size != store->size || size < WEFT_STORE_COUNTS) {
    st = damaged(ctx, store, "its directory is not at its end: the file was truncated or extended");
    goto done;
  }
  WEFT_TAKE(bytes, &mem, (size_t) size);
  WEFT_TRY(weft_store_os_read(ctx, store->file - 1, store->name, at, bytes, (size_t) size));
  if (weft_store_crc(0, bytes, (size_t) size) != store->crc) {
    st = damaged(ctx, store, "the checksum of its directory is wrong");
    goto done;
  }
  blocks = weft_store_get(bytes, 8);
  sections = weft_store_get(bytes + 8, 8);
  if (blocks > (size - WEFT_STORE_COUNTS) / WEFT_STORE_BLOCK ||
      sections > (size - WEFT_STORE_COUNTS - blocks * WEFT_STORE_BLOCK) / WEFT_STORE_SECTION) {
    st = damaged(ctx, store, "its directory is too short for its content");
    goto done;
  }
  store->blocks = (size_t) blocks;
  store->sections = (size_t) sections;
  WEFT_TAKE0(store->block, &store->mem, store->blocks + 1);
  WEFT_TAKE0(store->section, &store->mem, store->sections + 1);
  WEFT_TRY(read_blocks(ctx, store, bytes + WEFT_STORE_COUNTS, at));
  WEFT_TRY(read_sections(ctx, store, bytes + WEFT_STORE_COUNTS + blocks * WEFT_STORE_BLOCK, bytes + size, at));
done:
  weft_arena_end(&mem);
  return st;
}

/* Reads the header: magic, checksum, version, sizes; then the directory. WEFT_ERR_INPUT says whether the file is no
 * store, a later one, or damaged. */
static weft_status read_header(weft_ctx *ctx, weft_store *store)
{
  uint8_t header[WEFT_STORE_HEADER];
  weft_status st;
  if (store->size < sizeof header) return no_store(ctx, store, "is too short for a store");
  if ((st = weft_store_os_read(ctx, store->file - 1, store->name, 0, header, sizeof header)) != WEFT_OK) return st;
  if (memcmp(header, WEFT_STORE_MAGIC, 8)) return no_store(ctx, store, "is not a store, or was not finished");
  if (weft_store_crc(0, header, WEFT_STORE_AT_CRC) != weft_store_get(header + WEFT_STORE_AT_CRC, 4))
    return damaged(ctx, store, "the checksum of its header is wrong");
  const uint64_t version = weft_store_get(header + WEFT_STORE_AT_VERSION, 8);
  if (version < 1 || version > WEFT_STORE_VERSION)
    return no_store(ctx, store, "has a newer format; update weft to read it");
  store->version = (int) version;
  store->n = weft_store_get(header + WEFT_STORE_AT_N, 8);
  store->p = weft_store_get(header + WEFT_STORE_AT_P, 8);
  store->values = weft_store_get(header + WEFT_STORE_AT_VALUES, 8);
  store->crc = (uint32_t) weft_store_get(header + WEFT_STORE_AT_DIRECTORY_CRC, 4);
  if (store->n > INT32_MAX || store->p > INT32_MAX)
    return no_store(ctx, store, "has more than 2147483647 rows or columns");
  return read_directory(ctx, store, header);
}

/* Opens a store and checks its directory; blocks are checked when they are read. *s owns descriptor and memory until
 * weft_store_close(); after a failure it is closed. */
weft_status weft_store_open(weft_ctx *ctx, const char *path, weft_store *store)
{
  weft_status st = WEFT_OK;
  char why[WEFT_FILE_WHY];
  const char *slash = strrchr(path, '/');
  weft_store_close(store); /* of a first try */
  store->own.memory = ctx->memory;
  store->mem = weft_arena_begin(ctx);
  const char *name = slash ? slash + 1 : path;
  WEFT_TAKE(store->name, &store->mem, strlen(name) + 1);
  memcpy(store->name, name, strlen(name) + 1);
  store->file = weft_file_open(path, &store->size, why) + 1;
  if (!store->file) {
    st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' %s.", name, why);
    goto done;
  }
  WEFT_TRY(read_header(ctx, store));
done:
  store->mem.ctx = &store->own; /* the context ends before the store does */
  if (st != WEFT_OK) weft_store_close(store);
  return st;
}

void weft_store_close(weft_store *store)
{
  if (store->file) weft_file_close(store->file - 1);
  if (store->mem.blocks) weft_arena_end(&store->mem);
  memset(store, 0, sizeof *store);
}

/* ---- blocks and vectors ---- */

weft_status weft_store_load_to(weft_ctx *ctx, const weft_store *store, size_t index, uint8_t *bytes, weft_arena *mem,
                               weft_store_view *view)
{
  const weft_store_block *block = &store->block[index];
  weft_status st = WEFT_OK;
  WEFT_TRY(weft_store_os_read(ctx, store->file - 1, store->name, block->offset, bytes, (size_t) block->bytes));
  if (weft_store_crc(0, bytes, (size_t) block->bytes) != block->crc)
    return weft_store_damaged(ctx, store, index, "has a wrong checksum");
  st = weft_store_parse(ctx, store, index, bytes, 0, mem, view);
done:
  return st;
}

weft_status weft_store_load(weft_ctx *ctx, const weft_store *store, size_t index, weft_arena *mem,
                            weft_store_view *view)
{
  weft_status st = WEFT_OK;
  uint8_t *bytes;
  WEFT_TAKE(bytes, mem, (size_t) store->block[index].bytes);
  st = weft_store_load_to(ctx, store, index, bytes, mem, view);
done:
  return st;
}

/* Reads only the counts of a block's columns (view->starts); the checksum, which is of the whole block, is not
 * compared. */
weft_status weft_store_load_counts(weft_ctx *ctx, const weft_store *store, size_t index, weft_arena *mem,
                                   weft_store_view *view)
{
  const weft_store_block *block = &store->block[index];
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  uint8_t lengths[WEFT_STORE_STREAMS], *bytes;
  WEFT_TRY(weft_store_os_read(ctx, store->file - 1, store->name, block->offset, lengths, sizeof lengths));
  const uint64_t counts = weft_store_get(lengths, 8);
  if (counts > block->bytes - WEFT_STORE_STREAMS) {
    st = weft_store_damaged(ctx, store, index, "has parts of invalid length");
    goto done;
  }
  WEFT_TAKE(bytes, &own, (size_t) counts + WEFT_STORE_STREAMS);
  WEFT_TRY(weft_store_os_read(ctx, store->file - 1, store->name, block->offset, bytes,
                              (size_t) counts + WEFT_STORE_STREAMS));
  WEFT_TRY(weft_store_parse(ctx, store, index, bytes, 1, mem, view));
done:
  weft_arena_end(&own);
  return st;
}

weft_status weft_store_section_bytes(weft_ctx *ctx, const weft_store *store, size_t index, uint8_t *out)
{
  const weft_store_section *section = &store->section[index];
  weft_status st = WEFT_OK;
  WEFT_TRY(weft_store_os_read(ctx, store->file - 1, store->name, section->offset, out, (size_t) section->bytes));
  if (weft_store_crc(0, out, (size_t) section->bytes) != section->crc)
    st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' is damaged: the checksum of the vector \"%.200s\" is wrong.", store->name,
                   section->name);
done:
  return st;
}
