/* A store: one file with a sparse matrix in blocks of rows, compressed, with checksums, and vectors beside it (names,
 * columns of data frames). inst/store-format.md describes every byte. Structs in, structs out; no R.
 *
 *   os.c               files: read at a place, written under a temporary name and renamed when whole
 *   bitpack.c          whole numbers in as few bits as the largest of 128 needs; checksums
 *   file/block.c       one block: entries by columns <-> bytes
 *   file/read.c        a file's directory, its blocks and vectors; everything in a file is checked
 *   file/pass.c        what needs every block: sums, and any rows and columns as compressed columns
 *   file/write.c       rows in, blocks out
 *   hdf5_chunks.c      numbers of other programs' files, plain or deflated
 *   codecs.c           compressed pieces of other programs' files (blosc.c, lz.c, inflate.c, zstd.c)
 *   bp128.c            packed numbers of BPCells
 *   block_of_rows.c    compressed rows that are a block, without entries
 *   blocks_parallel.c  the same work for several blocks at once
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
