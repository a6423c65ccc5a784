/* .Call entry points through which compressed rows come from an HDF5 file: a forked child reads them into memory that
 * it shares with its parent (hdf5.c), which meanwhile makes blocks of the previous ones. The memory is divided
 * into slots of equal size (shared_memory.h): a piece's columns, int32_t, and behind them its values in a type that the
 * file's fit in. A slot is the child's until it says that it is full, and then the parent's until the block has been
 * written. If a piece is in the file in the form that is needed, the child only says where, and the piece's slot never
 * belongs to the child. */
#include <string.h>
#ifndef _WIN32
#  include <sys/mman.h>
#  include <unistd.h>
#endif
#include "store/r/write.h"
#include "store/file/os.h"
#include "store/r/shared_memory.h"
#include "store/file/write.h"

static void release_shared(void *object)
{
  weft_shared *memory = object;
#ifndef _WIN32
  if (memory->bytes) munmap(memory->bytes, memory->size);
#endif
  if (memory->file) weft_file_close(memory->file - 1);
  memset(memory, 0, sizeof *memory);
}

static const weft_handle_kind shared_kind = { "weft_store_shared", release_shared };

weft_shared *weft_shared_of(SEXP handle) { return weft_glue_handle_peek(handle, &shared_kind); }

/* For rows of the file at `path`; NULL where there is no such memory. */
SEXP C_weft_store_shared(SEXP room, SEXP slots, SEXP path)
{
#ifdef _WIN32
  (void) room;
  (void) slots;
  (void) path;
  return R_NilValue;
#else
  char why[WEFT_FILE_WHY];
  weft_shared memory = { .slots = (size_t) Rf_asReal(slots),
                         .room = ((size_t) Rf_asReal(room) + 15) / 16 * 16,
                         .owner = (long) getpid() };
  const char *from = Rf_translateChar(STRING_ELT(path, 0)), *slash = strrchr(from, '/');
  SEXP handle = PROTECT(weft_glue_handle(&shared_kind, sizeof memory));
  memory.size = memory.slots * (WEFT_SHARED_HEAD + WEFT_SHARED_EACH * memory.room);
  void *bytes = mmap(NULL, memory.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  UNPROTECT(1);
  if (bytes == MAP_FAILED) return R_NilValue;
  memory.bytes = bytes;
  memory.file = weft_file_open(from, &memory.file_size, why) + 1;
  strncpy(memory.name, slash ? slash + 1 : from, sizeof memory.name - 1);
  memcpy(weft_glue_handle_peek(handle, &shared_kind), &memory, sizeof memory);
  return handle;
#endif
}

/* ---- what a piece says ---- */

static void wrong_piece(const char *what) { weft_glue_fail(WEFT_ERR_INTERNAL, "A piece %s.", what); }

static weft_raw_type type_of(double x)
{
  if (!(x >= 0 && x < WEFT_RAW_TYPES)) wrong_piece("has numbers of an unknown type");
  return (weft_raw_type) x;
}

/* Reads the description of a piece's chunks from the words at `at` (at most `room`); returns how many words it had. */
static size_t chunks_at(const uint64_t *at, size_t room, weft_raw_part *x)
{
  if (room < WEFT_CHUNKS_WORDS) wrong_piece("lacks its chunks");
  x->type = type_of((double) at[WEFT_CHUNKS_TYPE]);
  x->skip = at[WEFT_CHUNKS_SKIP];
  x->length = at[WEFT_CHUNKS_LENGTH];
  x->chunks = at[WEFT_CHUNKS_COUNT];
  x->room = at[WEFT_CHUNKS_BYTES];
  x->shuffled = at[WEFT_CHUNKS_SHUFFLED] != 0;
  x->sizes = at + WEFT_CHUNKS_WORDS;
  room -= WEFT_CHUNKS_WORDS;
  if (x->chunks > room || x->room > 8 * (room - x->chunks)) wrong_piece("has an endless list of chunks");
  x->bytes = (const uint8_t *) (x->sizes + x->chunks);
  return WEFT_CHUNKS_WORDS + (size_t) x->chunks + (x->room + 7) / 8;
}

/* Where numbers of a slot that are not in their places come from, as C_weft_store_h5_read() said. */
static const weft_raw_rows *raw_of(const weft_shared *memory, size_t slot, SEXP how, weft_raw_target target)
{
  weft_raw_rows *x = (weft_raw_rows *) R_alloc(1, sizeof *x);
  const uint64_t *chunks = weft_slot_chunks(memory, slot);
  size_t room = WEFT_SHARED_EACH / 2 / 8 * memory->room;
  memset(x, 0, sizeof *x);
  x->file = memory->file - 1;
  x->size = memory->file_size;
  x->name = memory->name;
  for (int i = 0; i < 2; i++) {
    weft_raw_part *part = &x->part[i];
    if (Rf_xlength(how) == 5) {
      const double address = REAL(how)[2 + 2 * i];
      if (!memory->file || !(address >= 0 && address < 9e15)) wrong_piece("is outside of its file");
      part->type = type_of(REAL(how)[1 + 2 * i]);
      part->address = (uint64_t) address;
    } else {
      const size_t used = chunks_at(chunks, room, part);
      if (part->length > memory->room) wrong_piece("has chunks that are too long");
      chunks += used;
      room -= used;
    }
    part->target = i ? target : WEFT_RAW_INTEGERS;
    part->to = i ? weft_slot_values(memory, slot) : weft_slot_columns(memory, slot);
  }
  return x;
}

/* The rows that R's `piece` describes: list(first, starts, slot, how) or list(first, starts, indices, values). */
static weft_store_rows rows_of(SEXP piece, const weft_shared *memory, double first)
{
  SEXP starts = VECTOR_ELT(piece, 1), third = VECTOR_ELT(piece, 2), fourth = VECTOR_ELT(piece, 3);
  weft_store_rows x = { .first = (uint64_t) first, .rows = (size_t) Rf_xlength(starts) - 1 };
  if (TYPEOF(starts) != REALSXP || Rf_xlength(starts) < 2 || x.rows > WEFT_STORE_ROWS ||
      Rf_asReal(VECTOR_ELT(piece, 0)) != first)
    weft_glue_fail(WEFT_ERR_INTERNAL, "A piece of %.0f rows that are not the next.", (double) x.rows);
  x.starts = REAL(starts);
  const double count = x.starts[x.rows];
  for (size_t i = 0; i <= x.rows; i++)
    if (!(x.starts[i] >= (i ? x.starts[i - 1] : 0)) || x.starts[0] != 0)
      weft_glue_fail(WEFT_ERR_INPUT, "Where rows begin must rise from 0 to the number of entries.");
  if (TYPEOF(third) == INTSXP) {
    if (count != (double) Rf_xlength(third))
      weft_glue_fail(WEFT_ERR_INTERNAL, "A piece of %.0f entries has %.0f.", count, (double) Rf_xlength(third));
    x.columns = INTEGER(third);
    x.values = weft_store_values_of(fourth, count);
    return x;
  }
  const size_t slot = (size_t) Rf_asReal(third);
  if (!memory || slot >= memory->slots || count > (double) memory->room || TYPEOF(fourth) != REALSXP ||
      Rf_xlength(fourth) < 1)
    weft_glue_fail(WEFT_ERR_INTERNAL, "%.0f values in slot %.0f.", count, (double) slot + 1);
  (void) atomic_load_explicit(weft_slot_full(memory, slot), memory_order_acquire);
  x.columns = weft_slot_columns(memory, slot);
  const void *values = weft_slot_values(memory, slot);
  if (!(REAL(fourth)[0] >= 0 && REAL(fourth)[0] <= WEFT_RAW_DOUBLES)) wrong_piece("has values of an unknown type");
  const weft_raw_target target = (weft_raw_target) REAL(fourth)[0];
  switch (target) {
  case WEFT_RAW_INTEGERS: x.values.integers = values; break;
  case WEFT_RAW_FLOATS: x.values.floats = values; break;
  case WEFT_RAW_DOUBLES: x.values.doubles = values; break;
  }
  if (Rf_xlength(fourth) > 1) x.raw = raw_of(memory, slot, fourth, target);
  return x;
}

/* ---- blocks ---- */

typedef struct {
  weft_store_writer *writer;
  weft_store_rows *rows;
  size_t count, done;
} blocks_job;

static weft_status run_blocks(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  blocks_job *job = data;
  weft_status st = WEFT_OK;
  (void) backend;
  for (; job->done < job->count; job->done++) WEFT_TRY(weft_store_take_block(ctx, job->writer, &job->rows[job->done]));
  st = weft_store_settle(ctx, job->writer);
done:
  return st;
}

/* Each piece becomes a block. Their slots are free then. */
SEXP C_weft_store_blocks(SEXP handle, SEXP shared, SEXP pieces, SEXP control)
{
  blocks_job job = { .writer = weft_store_writer_of(handle), .count = (size_t) Rf_xlength(pieces) };
  const weft_shared *memory = shared == R_NilValue ? NULL : weft_glue_handle_take(shared, &shared_kind);
  double first = (double) job.writer->first;
  job.rows = (weft_store_rows *) R_alloc(job.count + 1, sizeof *job.rows);
  for (size_t i = 0; i < job.count; i++) {
    job.rows[i] = rows_of(VECTOR_ELT(pieces, (R_xlen_t) i), memory, first);
    first += (double) job.rows[i].rows;
  }
  if (first > (double) job.writer->n) weft_glue_fail(WEFT_ERR_INTERNAL, "More rows than the store has.");
  weft_glue_run(control, run_blocks, &job);
  for (size_t i = 0; i < job.count; i++) {
    SEXP slot = VECTOR_ELT(VECTOR_ELT(pieces, (R_xlen_t) i), 2);
    if (TYPEOF(slot) == REALSXP)
      atomic_store_explicit(weft_slot_full(memory, (size_t) Rf_asReal(slot)), 0, memory_order_release);
  }
  return R_NilValue;
}
