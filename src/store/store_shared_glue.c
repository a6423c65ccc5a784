/* .Call entry points through which compressed rows come from an HDF5 file: a forked child reads them into memory that
 * it shares with its parent, which meanwhile makes blocks of the previous ones (R/store-hdf5.R). The memory is divided
 * into slots of equal size: a piece's columns, int32_t, and behind them its values in a type that the file's fit in. A
 * slot is the child's until it says that it is full, and then the parent's until the block has been written.
 *
 * weft is not linked to libhdf5. What is called here is the library that the package rhdf5 has loaded. */
#include <stdatomic.h>
#include <string.h>
#ifndef _WIN32
# include <dlfcn.h>
# include <sys/mman.h>
# include <time.h>
# include <unistd.h>
#endif
#include "store_glue.h"

typedef struct {
  unsigned char *bytes;
  size_t size, slots, room; /* room: values of a slot */
  long owner;               /* the process that made it */
} shared_memory;

typedef enum { INTEGERS, FLOATS, DOUBLES } value_type;

/* HDF5's own types and constants, version 1.10 and later. */
typedef int64_t h5_id;
typedef struct {
  h5_id (*open_file)(const char *path, unsigned flags, h5_id access);
  h5_id (*open_data)(h5_id file, const char *name, h5_id access);
  h5_id (*space_of)(h5_id data);
  h5_id (*type_of)(h5_id data);
  int (*class_of)(h5_id type);
  size_t (*size_of)(h5_id type);
  int (*sign_of)(h5_id type);
  int (*dimensions)(h5_id space);
  h5_id (*new_space)(int dimensions, const unsigned long long *size, const unsigned long long *most);
  int (*choose)(h5_id space, int how, const unsigned long long *start, const unsigned long long *stride,
                const unsigned long long *count, const unsigned long long *block);
  int (*read)(h5_id data, h5_id memory_type, h5_id memory_space, h5_id file_space, h5_id how, void *to);
  int (*close_space)(h5_id), (*close_type)(h5_id), (*close_data)(h5_id), (*close_file)(h5_id);
  h5_id native[3]; /* by value_type */
} h5_library;
enum { H5_INTEGER = 0, H5_FLOAT = 1 };

typedef struct {
  h5_library lib;
  h5_id file, indices, values; /* 0: not open */
  value_type type;
} h5_rows;

static void release_shared(void *object)
{
  shared_memory *m = object;
#ifndef _WIN32
  if (m->bytes) munmap(m->bytes, m->size);
#endif
  m->bytes = NULL;
}

static void release_h5(void *object)
{
  h5_rows *x = object;
  if (x->indices > 0) x->lib.close_data(x->indices);
  if (x->values > 0) x->lib.close_data(x->values);
  if (x->file > 0) x->lib.close_file(x->file);
  memset(x, 0, sizeof *x);
}

static const weft_handle_kind shared_kind = { "weft_store_shared", release_shared };
static const weft_handle_kind h5_kind = { "weft_store_h5", release_h5 };

#define SLOT_HEAD 64
static atomic_int *slot_full(const shared_memory *m, size_t slot)
{
  return (atomic_int *) (m->bytes + SLOT_HEAD * slot);
}

static int32_t *slot_columns(const shared_memory *m, size_t slot)
{
  return (int32_t *) (m->bytes + SLOT_HEAD * m->slots + 12 * m->room * slot);
}

static void *slot_values(const shared_memory *m, size_t slot) { return slot_columns(m, slot) + m->room; }

/* NULL where there is no such memory. */
SEXP C_weft_store_shared(SEXP room, SEXP slots)
{
#ifdef _WIN32
  (void) room;
  (void) slots;
  return R_NilValue;
#else
  shared_memory m = { .slots = (size_t) Rf_asReal(slots), .room = ((size_t) Rf_asReal(room) + 15) / 16 * 16,
                      .owner = (long) getpid() };
  m.size = m.slots * (SLOT_HEAD + 12 * m.room);
  void *bytes = mmap(NULL, m.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED) return R_NilValue;
  m.bytes = bytes;
  SEXP handle = weft_glue_handle(&shared_kind, sizeof m);
  memcpy(weft_glue_handle_peek(handle, &shared_kind), &m, sizeof m);
  return handle;
#endif
}

/* ---- in the child ---- */

#ifndef _WIN32
/* Of the object at `path`, which R has loaded, or of one that it is linked to. 0: something is missing, or too old. */
static int find_library(const char *path, h5_library *lib)
{
  const struct { const char *name; void *to; } functions[] = {
    { "H5Fopen", &lib->open_file }, { "H5Dopen2", &lib->open_data }, { "H5Dget_space", &lib->space_of },
    { "H5Dget_type", &lib->type_of }, { "H5Tget_class", &lib->class_of }, { "H5Tget_size", &lib->size_of },
    { "H5Tget_sign", &lib->sign_of }, { "H5Sget_simple_extent_ndims", &lib->dimensions },
    { "H5Screate_simple", &lib->new_space }, { "H5Sselect_hyperslab", &lib->choose }, { "H5Dread", &lib->read },
    { "H5Sclose", &lib->close_space }, { "H5Tclose", &lib->close_type }, { "H5Dclose", &lib->close_data },
    { "H5Fclose", &lib->close_file }
  };
  static const char *const natives[] = { "H5T_NATIVE_INT_g", "H5T_NATIVE_FLOAT_g", "H5T_NATIVE_DOUBLE_g" };
  union { void *p; int (*call)(unsigned *, unsigned *, unsigned *); } version;
  unsigned major = 0, minor = 0, release = 0;
  int found = 1;
  void *object = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (!object) return 0;
  for (size_t i = 0; i < sizeof functions / sizeof *functions && found; i++) {
    void *at = dlsym(object, functions[i].name);
    memcpy(functions[i].to, &at, sizeof at);
    found = at != NULL;
  }
  version.p = dlsym(object, "H5get_libversion");
  found = found && version.p && version.call(&major, &minor, &release) >= 0 && (major > 1 || minor >= 10);
  for (int i = 0; i < 3 && found; i++) {
    const h5_id *type = dlsym(object, natives[i]);
    found = type && *type > 0;
    if (found) lib->native[i] = *type;
  }
  dlclose(object); /* R keeps it loaded */
  return found;
}

/* Whether `data` is a vector of numbers that fit in *type. */
static int type_of(const h5_library *lib, h5_id data, value_type *type)
{
  const h5_id space = lib->space_of(data), own = lib->type_of(data);
  int fits = space > 0 && own > 0 && lib->dimensions(space) == 1;
  const int kind = fits ? lib->class_of(own) : -1;
  const size_t size = fits ? lib->size_of(own) : 0;
  if (kind == H5_FLOAT) *type = size <= 4 ? FLOATS : DOUBLES;
  else if (kind == H5_INTEGER) *type = size < 4 || (size == 4 && lib->sign_of(own)) ? INTEGERS : DOUBLES;
  fits = (kind == H5_FLOAT || kind == H5_INTEGER) && size <= 8;
  if (space > 0) lib->close_space(space);
  if (own > 0) lib->close_type(own);
  return fits;
}

static int open_rows(h5_rows *x, const char *library, const char *path, const char *indices, const char *values)
{
  value_type columns;
  if (!find_library(library, &x->lib) || (x->file = x->lib.open_file(path, 0, 0)) <= 0) return 0;
  x->indices = x->lib.open_data(x->file, indices, 0);
  x->values = x->lib.open_data(x->file, values, 0);
  if (x->indices <= 0 || x->values <= 0) return 0;
  return type_of(&x->lib, x->indices, &columns) && columns != FLOATS && type_of(&x->lib, x->values, &x->type);
}

static int read_part(const h5_rows *x, h5_id data, value_type type, double from, double count, void *to)
{
  const unsigned long long start = (unsigned long long) from, length = (unsigned long long) count;
  const h5_id space = x->lib.space_of(data), here = x->lib.new_space(1, &length, NULL);
  const int done = space > 0 && here > 0 && x->lib.choose(space, 0, &start, NULL, &length, NULL) >= 0 &&
    x->lib.read(data, x->lib.native[type], here, space, 0, to) >= 0;
  if (space > 0) x->lib.close_space(space);
  if (here > 0) x->lib.close_space(here);
  return done;
}

/* Waits until the parent has finished with the slot. It looks ever more rarely, since a look costs microseconds of the
 * system's time; a block takes the parent ten milliseconds and more, and others are full by then. */
static void wait_for_slot(const shared_memory *m, size_t slot)
{
  struct timespec moment = { 0, 50000 };
  while (atomic_load_explicit(slot_full(m, slot), memory_order_acquire)) {
    if ((long) getpid() == m->owner || (long) getppid() != m->owner)
      weft_glue_fail(WEFT_ERR_INTERNAL, "Slot %.0f is in use, and nobody empties it.", (double) slot + 1);
    nanosleep(&moment, NULL);
    if (moment.tv_nsec < 1000000) moment.tv_nsec *= 2;
  }
}
#endif

/* indices, values: names of data sets in the file at `path`; library: of rhdf5. NULL where R has to read them. */
SEXP C_weft_store_h5(SEXP library, SEXP path, SEXP indices, SEXP values)
{
#ifdef _WIN32
  (void) library;
  (void) path;
  (void) indices;
  (void) values;
  return R_NilValue;
#else
  SEXP handle = PROTECT(weft_glue_handle(&h5_kind, sizeof(h5_rows)));
  const int open = open_rows(weft_glue_handle_peek(handle, &h5_kind), CHAR(STRING_ELT(library, 0)),
                             Rf_translateChar(STRING_ELT(path, 0)), CHAR(STRING_ELT(indices, 0)),
                             CHAR(STRING_ELT(values, 0)));
  if (!open) weft_glue_handle_free(handle, &h5_kind);
  UNPROTECT(1);
  return open ? handle : R_NilValue;
#endif
}

/* Values from .. from + count - 1 into a slot, as soon as it is free: the type of its values, or NULL where they could
 * not be read. */
SEXP C_weft_store_h5_read(SEXP h5, SEXP shared, SEXP slot, SEXP from, SEXP count)
{
#ifdef _WIN32
  (void) h5;
  (void) shared;
  (void) slot;
  (void) from;
  (void) count;
  return R_NilValue;
#else
  const h5_rows *x = weft_glue_handle_peek(h5, &h5_kind);
  const shared_memory *m = weft_glue_handle_peek(shared, &shared_kind);
  const size_t at = (size_t) Rf_asReal(slot);
  const double start = Rf_asReal(from), length = Rf_asReal(count);
  if (!x || !m || at >= m->slots || !(start >= 0 && length >= 0 && length <= (double) m->room))
    weft_glue_fail(WEFT_ERR_INTERNAL, "%.0f values for slot %.0f.", length, (double) at + 1);
  wait_for_slot(m, at);
  if (length > 0 && !(read_part(x, x->indices, INTEGERS, start, length, slot_columns(m, at)) &&
                      read_part(x, x->values, x->type, start, length, slot_values(m, at))))
    return R_NilValue;
  atomic_store_explicit(slot_full(m, at), 1, memory_order_release);
  return Rf_ScalarInteger((int) x->type);
#endif
}

/* ---- in the parent ---- */

/* Of a piece, list(first, starts, slot, type) or list(first, starts, indices, values). */
static weft_store_rows rows_of(SEXP piece, const shared_memory *m, double first)
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
  if (!m || slot >= m->slots || count > (double) m->room)
    weft_glue_fail(WEFT_ERR_INTERNAL, "%.0f values in slot %.0f.", count, (double) slot + 1);
  (void) atomic_load_explicit(slot_full(m, slot), memory_order_acquire);
  x.columns = slot_columns(m, slot);
  const void *values = slot_values(m, slot);
  switch ((value_type) Rf_asInteger(fourth)) {
    case INTEGERS: x.values.integers = values; break;
    case FLOATS: x.values.floats = values; break;
    case DOUBLES: x.values.doubles = values; break;
  }
  return x;
}

typedef struct { weft_store_writer *writer; weft_store_rows *rows; size_t count, done; } blocks_job;

static weft_status run_blocks(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  blocks_job *job = data;
  weft_status st = WEFT_OK;
  (void) backend;
  for (; job->done < job->count; job->done++)
    WEFT_TRY(weft_store_take_block(ctx, job->writer, &job->rows[job->done]));
  st = weft_store_settle(ctx, job->writer);
done:
  return st;
}

/* Each piece becomes a block. Their slots are free then. */
SEXP C_weft_store_blocks(SEXP handle, SEXP shared, SEXP pieces, SEXP control)
{
  blocks_job job = { .writer = weft_store_writer_of(handle), .count = (size_t) Rf_xlength(pieces) };
  const shared_memory *m = shared == R_NilValue ? NULL : weft_glue_handle_take(shared, &shared_kind);
  double first = (double) job.writer->first;
  job.rows = (weft_store_rows *) R_alloc(job.count + 1, sizeof *job.rows);
  for (size_t i = 0; i < job.count; i++) {
    job.rows[i] = rows_of(VECTOR_ELT(pieces, (R_xlen_t) i), m, first);
    first += (double) job.rows[i].rows;
  }
  if (first > (double) job.writer->n) weft_glue_fail(WEFT_ERR_INTERNAL, "More rows than the store has.");
  weft_glue_run(control, run_blocks, &job);
  for (size_t i = 0; i < job.count; i++) {
    SEXP slot = VECTOR_ELT(VECTOR_ELT(pieces, (R_xlen_t) i), 2);
    if (TYPEOF(slot) == REALSXP) atomic_store_explicit(slot_full(m, (size_t) Rf_asReal(slot)), 0, memory_order_release);
  }
  return R_NilValue;
}
