/* A store: one file with a sparse matrix in blocks of rows, compressed, with checksums, and vectors beside it (names,
 * columns of data frames). inst/store-format.md describes every byte. Structs in, structs out; no R.
 *
 *   os.c               files: read at a place, written under a temporary name and renamed when whole
 *   bitpack.c          whole numbers in as few bits as the largest of 128 needs; checksums
 *   file/block.c       one block: entries by columns <-> bytes
 *   file/read.c        a file's directory, its blocks and vectors; everything in a file is checked
 *   pass.c             what needs every block: sums, and any rows and columns as compressed columns
 *   file/write.c       rows in, blocks out
 *   hdf5_chunks.c      numbers of other programs' files, plain or deflated
 *   block_of_rows.c    compressed rows that are a block, without entries
 *   blocks_parallel.c  the same work for several blocks at once
 *   resume.c           continues what an import that was stopped has written
 *   sort.c             entries in any order, through a file that has no name
 *   market.c           Matrix Market text, piece after piece
 *
 * Rows and columns count from 0. A row that is handed over holds its entries in any order; equal places are summed, and
 * zeros are not stored. */
#pragma once

#include "core/call/arena.h"
#include "core/call/context.h"
#include "store/file/bytes.h"
#include "store/import/hdf5_chunks.h"

#define WEFT_STORE_ROWS 65536 /* most rows of a block: 16 bits hold a place in it */

/* How a block holds its values. */
typedef enum {
  WEFT_STORE_WHOLE = 1, /* whole numbers from 1 to 2^32, packed */
  WEFT_STORE_SINGLE,    /* numbers that 32-bit floats hold exactly */
  WEFT_STORE_DOUBLE
} weft_store_kind;

typedef enum { WEFT_STORE_TEXT = 1, WEFT_STORE_NUMBERS, WEFT_STORE_INTEGERS } weft_store_type;

typedef struct weft_store_block {
  uint64_t offset, bytes, values; /* where it lies; how many entries it has */
  uint64_t first, rows;           /* its rows */
  uint32_t kind, crc;
} weft_store_block;

typedef struct weft_store_section {
  char *name;
  uint64_t offset, bytes, count;
  uint32_t type, crc;
} weft_store_section;

/* ---- reading ---- */

typedef struct weft_store {
  int file;   /* descriptor + 1; 0: none */
  char *name; /* in messages */
  uint64_t size, n, p, values;
  int version;  /* of the format */
  uint32_t crc; /* of the directory: tells one store from another */
  size_t blocks, sections, max_rows;
  uint64_t max_bytes, max_values; /* of one block */
  weft_store_block *block;
  weft_store_section *section;
  weft_arena mem;
  weft_ctx own;
} weft_store;

weft_status weft_store_open(weft_ctx *ctx, const char *path, weft_store *out);
void weft_store_close(weft_store *store);

/* A vector's bytes, checked against their checksum. */
weft_status weft_store_section_bytes(weft_ctx *ctx, const weft_store *store, size_t index, uint8_t *out);

/* What is done to each value v of row i as it is read: v / size[i], then log1p. NULL and 0: nothing. */
typedef struct weft_store_recipe {
  const double *size; /* n, all positive */
  int log1p;
} weft_store_recipe;

/* Chosen rows and columns. Each: strictly rising, NULL for all. */
typedef struct weft_store_choice {
  const double *rows, *columns;
  size_t row_count, column_count;
} weft_store_choice;

/* Sums and counts of stored values of chosen columns, by these and by rows (n), and the range of stored values. */
typedef struct weft_store_sums {
  double *columns, *column_counts, *rows, *row_counts;
  double least, greatest;
  int skip_missing;
} weft_store_sums;

weft_status weft_store_sum(weft_ctx *ctx, const weft_store *store, const weft_store_choice *choice,
                           const weft_store_recipe *recipe, const weft_store_sums *out, double range[2]);

/* sums[g + j count]: of column j over the rows of group g. of: the group of each row, from 1; others (R's NA) have
 * none. seen: the numbers of values other than 0 instead. */
typedef struct weft_store_groups {
  const int32_t *of;
  size_t count;
  int seen;
  double *sums;
} weft_store_groups;

weft_status weft_store_sum_groups(weft_ctx *ctx, const weft_store *store, const weft_store_groups *groups,
                                  size_t count);

/* The choice as compressed columns; starts: column_count + 1 */
weft_status weft_store_count(weft_ctx *ctx, const weft_store *store, const weft_store_choice *choice, double *starts);
/* `starts` as weft_store_count() gave them; `rows` are places in the choice. */
weft_status weft_store_select(weft_ctx *ctx, const weft_store *store, const weft_store_choice *choice,
                              const weft_store_recipe *recipe, const double *starts, int32_t *rows, double *values);

/* ---- writing ---- */

/* Values of one type, or none: all 1. Integers may be missing (R's NA). */
typedef struct weft_store_values {
  const double *doubles;
  const int32_t *integers;
  const float *floats;
} weft_store_values;

static inline weft_store_values weft_store_values_from(const weft_store_values *x, size_t at)
{
  const weft_store_values out = { x->doubles ? x->doubles + at : NULL, x->integers ? x->integers + at : NULL,
                                  x->floats ? x->floats + at : NULL };
  return out;
}

/* Rows one after another, the next ones of the store. starts: rows + 1, from 0; `done` rows were taken by a first try.
 * Columns are checked. */
typedef struct weft_store_rows {
  uint64_t first; /* the store's row that they begin with */
  size_t rows, done;
  const double *starts;
  const int32_t *columns;
  weft_store_values values;
  const weft_raw_rows *raw; /* what puts these there first; NULL: they are there */
} weft_store_rows;

typedef struct {
  uint32_t row, column;
  double value;
} weft_store_entry; /* row: in its block */

#define WEFT_STORE_WAITING 8 /* most blocks that are encoded at once */

/* A block whose rows are complete: as entries, or as rows that are kept elsewhere, for which the entries' room is
 * scratch. */
typedef struct weft_store_waiting {
  weft_store_entry *entry;
  size_t room, count;
  uint64_t first, rows;
  weft_store_rows given; /* starts NULL: none */
} weft_store_waiting;

typedef struct weft_store_writer {
  int file;                 /* descriptor + 1; 0: none */
  char *path, *part, *name; /* its final name, its name until then, and its name in messages */
  int list;                 /* of blocks, for an import to go on: descriptor + 1 */
  char *list_path;
  uint64_t resumed, passed; /* rows that were there already; entries of these that were handed over again */
  int overwrite;
  uint64_t n, p, at;    /* `at`: bytes written */
  uint64_t first, last; /* of the block that is being filled: its first row, the greatest that has an entry */
  size_t max_entries;   /* of a block, unless one row has more */
  size_t room, count;   /* for entries, and how many there are */
  uint64_t values;
  weft_store_entry *entry;
  weft_store_waiting wait[WEFT_STORE_WAITING];
  size_t waiting, slots; /* of them: blocks that wait to be written, and how many are to */
  weft_store_block *block;
  weft_store_section *section;
  size_t blocks, block_room, sections, section_room;
  weft_arena mem;
  weft_ctx own;
} weft_store_writer;

/* Work functions may be run a second time when memory was short: each of the following functions either completes or
 * does nothing. */

/* `memory`: bytes that a block being made may take. `key` is NULL, or says what is imported: what was written for the
 * same key stays when the writer is abandoned, and is taken over unless `anew`. Rows before out->resumed are then there
 * already, and are skipped when they are handed over. */
weft_status weft_store_begin(weft_ctx *ctx, const char *path, int overwrite, uint64_t n, uint64_t p, double memory,
                             const char *key, int anew, weft_store_writer *out);
/* What weft_store_begin() and the writing of blocks do for a key. */
weft_status weft_store_resume(weft_ctx *ctx, weft_store_writer *writer, const char *key, int anew);
weft_status weft_store_resume_add(weft_ctx *ctx, const weft_store_writer *writer, size_t index);
weft_status weft_store_room_for_blocks(weft_ctx *ctx, weft_store_writer *writer, size_t more);
/* One entry. Rows come in order, but for those of the block that is being filled. *late: the row's block has been
 * written, and nothing was done. */
weft_status weft_store_push(weft_ctx *ctx, weft_store_writer *writer, uint64_t row, uint64_t column, double value,
                            int *late);
/* Makes a block of so many rows of the open block's entries; it is written together with others. */
weft_status weft_store_flush(weft_ctx *ctx, weft_store_writer *writer, uint64_t rows);
/* Makes room for so many entries in the open block. */
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
/* Removes what was written, unless it is finished or has a key. */
void weft_store_abandon(weft_store_writer *writer);

/* ---- what is in memory (from_memory.c) ---- */

weft_status weft_store_take_rows(weft_ctx *ctx, weft_store_writer *writer, weft_store_rows *rows);
/* Rows that make one block, the next ones, where no block is open. Their arrays must stay until weft_store_settle(). */
weft_status weft_store_take_block(weft_ctx *ctx, weft_store_writer *writer, const weft_store_rows *rows);
/* All of these as entries, for which there is room; *count: how many there are. */
weft_status weft_store_entries(weft_ctx *ctx, const weft_store_rows *rows, uint64_t p, weft_store_entry *out,
                               size_t *count);
/* Writes the blocks that wait. */
weft_status weft_store_settle(weft_ctx *ctx, weft_store_writer *writer);

/* Compressed columns of so many rows, or a dense matrix (starts NULL), the next ones of the store; p columns. */
typedef struct weft_store_columns {
  uint64_t first;
  size_t rows, done;
  const int32_t *starts, *at;
  weft_store_values values;
} weft_store_columns;
weft_status weft_store_take_columns(weft_ctx *ctx, weft_store_writer *writer, weft_store_columns *columns);

/* ---- entries in any order (sort.c) ---- */

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
void weft_store_sort_count(weft_store_sorter *sorter, uint64_t row);
weft_status weft_store_sort_plan(weft_ctx *ctx, weft_store_writer *writer, weft_store_sorter *sorter);
weft_status weft_store_sort_place(weft_ctx *ctx, weft_store_writer *writer, weft_store_sorter *sorter, uint64_t row,
                                  uint64_t column, double value);
weft_status weft_store_sort_drain(weft_ctx *ctx, weft_store_writer *writer, weft_store_sorter *sorter);
void weft_store_sort_end(weft_store_sorter *sorter);

/* ---- Matrix Market text (market.c) ---- */

typedef struct weft_store_market {
  int begun, sized;           /* the first line, and the line of sizes, have been read */
  int dense, pattern, mirror; /* mirror: 1 symmetric, -1 skew-symmetric */
  int half;                   /* an entry was handed over, its mirror image was not */
  uint64_t line, rows, columns, stored, read;
  uint64_t row, column; /* of the next value of a dense matrix */
  int skipping;         /* a long comment */
  size_t held;
  char carry[512]; /* the beginning of a line whose end has not come yet */
} weft_store_market;

/* What is done with an entry, rows and columns as in the file and from 0. */
typedef weft_status (*weft_store_entry_work)(weft_ctx *ctx, void *data, uint64_t row, uint64_t column, double value);

/* Reads bytes *at .. size - 1, and moves *at; with `size_only` until the sizes are known. */
weft_status weft_store_market_read(weft_ctx *ctx, weft_store_market *market, const uint8_t *bytes, size_t size,
                                   size_t *at, int size_only, weft_store_entry_work work, void *data);
/* The file has ended: an error unless everything it announced has come. */
weft_status weft_store_market_end(weft_ctx *ctx, weft_store_market *market, weft_store_entry_work work, void *data);
